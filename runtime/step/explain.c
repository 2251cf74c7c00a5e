/* explain.c: what steps are at: the instruction that each of their frames runs or waits in, and the tasks that have not reported. */
#include <stdio.h>
#include <string.h>

#include "runtime/step/task_state.h"

struct words {
  char *text;
  size_t size, used;
  uint32_t count;
};

static void say(struct words *words, const char *what) {
  if (words->used + 1 >= words->size)
    return;
  int size = snprintf(words->text + words->used, words->size - words->used, "%s%s", words->count++ ? "; " : "", what);
  words->used += (size_t)size;
}

static bool is_meant(const struct step *step, const atomic_bool *gone) { return !step->is_background && (!gone || step->gone == gone); }

static void say_instr(struct words *words, const struct frame *frame, const struct program_instr *instr) {
  const struct program *program = frame->program;
  const struct task *task = frame->part->task;
  char text[768], from[300] = "";
  const char *verb = "is in";
  if (instr->op == INSTR_RECV || instr->op == INSTR_FEED)
    verb = "waits for";
  if (instr->op == INSTR_RECV && instr->peer == program->task)
    return; /* of another part here, which says itself where it is */
  if (instr->op == INSTR_RECV && instr->peer < program->tables[PROGRAM_TASKS].count) {
    const struct program_task *peer = program_task(program, instr->peer);
    snprintf(from, sizeof from, " from /job:%.200s/task:%u", program_text(program, peer->job), peer->index);
  }
  snprintf(text, sizeof text, "%s %s %s '%s'%s", task->name, verb, program_text(program, instr->tf_op), program_text(program, instr->node),
           from);
  say(words, text);
}

/* Under the part's lock. */
static void say_frame(struct words *words, const struct frame *frame) {
  const struct part *part = frame->part;
  const struct program_block *block = program_block(part->program, part->code->block);
  bool waits = false;
  for (uint32_t i = 0; part->code->dataflow && i < block->instrs.count; i++)
    if (atomic_load(&frame->waits[i].pending)) {
      say_instr(words, frame, program_instr(part->program, block->instrs.first + i));
      waits = true;
    }
  const struct program_instr *at = atomic_load(&frame->at);
  if (!waits && at)
    say_instr(words, frame, at);
}

/* The others that have not reported. Under the task's lock. */
static void say_missing(struct words *words, const struct step *step) {
  const struct program *program = step->task->program;
  const struct program_range tasks = program_entry(program, step->entry)->tasks;
  for (uint32_t i = 0; i < tasks.count && i < STEP_REPORTS; i++) {
    uint32_t number = program_operands(program, tasks.first)[i];
    char text[512];
    if (number == program->task || step->driver != program->task || step->reported[i])
      continue;
    snprintf(text, sizeof text, "/job:%s/task:%u has not ended its part", program_text(program, program_task(program, number)->job),
             program_task(program, number)->index);
    say(words, text);
  }
}

void task_explain(struct task *task, const atomic_bool *gone, char *out, size_t size) {
  struct words words = {.text = out, .size = size};
  *out = 0;
  for (uint32_t i = 0; i < task->part_count; i++) {
    struct part *part = &task->parts[i];
    pthread_mutex_lock(&part->lock);
    for (const struct frame *frame = part->busy; frame; frame = frame->next)
      if (is_meant(frame->step, gone))
        say_frame(&words, frame);
    pthread_mutex_unlock(&part->lock);
  }
  pthread_mutex_lock(&task->lock);
  for (const struct step *step = task->steps; step; step = step->next)
    if (is_meant(step, gone) && step->waiting > 0)
      say_missing(&words, step);
  pthread_mutex_unlock(&task->lock);
}
