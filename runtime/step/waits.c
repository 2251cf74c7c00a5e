/* waits.c: frames, and steps that others have a part in, looked at under their locks. */
#include "runtime/step/waits.h"

#include <stdio.h>
#include <string.h>

#include "runtime/memory/container.h"
#include "runtime/step/task_state.h"

struct found {
  struct stall_wait *waits;
  uint32_t count, max;
};

static struct stall_wait *add(struct found *found, const struct step *step, enum stall_kind kind, uint64_t place) {
  if (found->count == found->max)
    return NULL;
  struct stall_wait *wait = &found->waits[found->count++];
  *wait = (struct stall_wait){.step = step->id, .place = place, .driver = step->driver, .kind = kind};
  return wait;
}

static void add_holder(struct stall_wait *wait, uint32_t task) {
  if (wait->holder_count < STALL_HOLDERS)
    wait->holders[wait->holder_count++] = task;
}

static const char *entry_name(const struct program *program, const struct step *step) {
  return program_text(program, program_entry(program, step->entry)->name);
}

/* "/job:worker/task:1" */
static void say_task(const struct program *program, uint32_t number, char *out, size_t size) {
  if (number >= program->tables[PROGRAM_TASKS].count) {
    snprintf(out, size, "task %u", number);
    return;
  }
  const struct program_task *task = program_task(program, number);
  snprintf(out, size, "/job:%.100s/task:%u", program_text(program, task->job), task->index);
}

static bool has(const uint32_t *list, uint32_t count, uint32_t number) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == number)
      return true;
  return false;
}

/* Of a round: the replicas that have not come. */
static void add_missing(struct stall_wait *wait, const struct program *program, const struct resource_wait *reason) {
  const char *job = program_text(program, program->replicated_job);
  for (uint32_t i = 0; i < program->tables[PROGRAM_TASKS].count; i++)
    if (strcmp(program_text(program, program_task(program, i)->job), job) == 0 && !has(reason->drivers, reason->driver_count, i))
      add_holder(wait, i);
}

static void add_call(struct found *found, const struct frame *frame, const struct dataflow_wait *wait, const struct program_instr *instr,
                     uint64_t place) {
  const struct program *program = frame->program;
  struct resource_wait reason = {0};
  char driver[128];
  bool is_known = container_explain(frame->part->task->container, &wait->call, &reason);
  struct stall_wait *to = add(found, frame->step, !is_known ? STALL_CALL : reason.is_round ? STALL_ROUND : STALL_RESOURCE, place);
  if (!to)
    return;
  say_task(program, frame->step->driver, driver, sizeof driver);
  snprintf(to->what, sizeof to->what, "waits in %.40s '%.80s'%s%.127s (entry '%.60s' of %.60s)", program_text(program, instr->tf_op),
           program_text(program, instr->node), is_known ? ": " : "", reason.text, entry_name(program, frame->step), driver);
  if (reason.is_round)
    add_missing(to, program, &reason);
  for (uint32_t i = 0; !reason.is_round && i < reason.driver_count; i++)
    add_holder(to, reason.drivers[i]);
}

static void add_value(struct found *found, const struct frame *frame, const struct program_instr *instr, uint64_t place) {
  const struct program *program = frame->program;
  char from[128] = "a client", driver[128];
  if (instr->op == INSTR_RECV && instr->peer == program->task)
    return; /* of another part here, which says itself what it waits for */
  uint32_t peer = instr->peer >= PROGRAM_TASK_SELF ? frame->step->driver : instr->peer;
  struct stall_wait *to = add(found, frame->step, STALL_VALUE, place);
  if (!to)
    return;
  if (instr->op == INSTR_RECV) {
    say_task(program, peer, from, sizeof from);
    add_holder(to, peer);
  }
  say_task(program, frame->step->driver, driver, sizeof driver);
  snprintf(to->what, sizeof to->what, "waits for %.40s '%.160s' of %.60s (entry '%.60s' of %.60s)", program_text(program, instr->tf_op),
           program_text(program, instr->node), from, entry_name(program, frame->step), driver);
}

static uint64_t place_of(const struct frame *frame, const struct program_instr *instr) {
  return (uint64_t)(instr - program_instr(frame->program, 0)) + 1;
}

/* What has run in order for so long that somebody asks: a value, or a host call that takes its time. */
static void add_at(struct found *found, const struct frame *frame, const struct program_instr *instr) {
  if (instr->op == INSTR_RECV || instr->op == INSTR_FEED)
    add_value(found, frame, instr, place_of(frame, instr));
  if (instr->op != INSTR_HOST)
    return;
  struct stall_wait *to = add(found, frame->step, STALL_CALL, place_of(frame, instr));
  if (to)
    snprintf(to->what, sizeof to->what, "is in %.40s '%.80s' (entry '%.40s')", program_text(frame->program, instr->tf_op),
             program_text(frame->program, instr->node), entry_name(frame->program, frame->step));
}

/* Under the part's lock. */
static void add_frame(struct found *found, const struct frame *frame) {
  const struct part *part = frame->part;
  const struct program_block *block = program_block(part->program, part->code->block);
  bool waits = false;
  for (uint32_t i = 0; part->code->dataflow && i < block->instrs.count; i++) {
    const struct program_instr *instr = program_instr(part->program, block->instrs.first + i);
    if (!atomic_load(&frame->waits[i].pending))
      continue;
    waits = true;
    if (instr->op == INSTR_HOST)
      add_call(found, frame, &frame->waits[i], instr, place_of(frame, instr));
    else
      add_value(found, frame, instr, place_of(frame, instr));
  }
  const struct program_instr *at = atomic_load(&frame->at);
  if (!waits && at)
    add_at(found, frame, at);
}

/* A driver whose own parts have ended. Under the task's lock. */
static void add_parts(struct found *found, const struct step *step) {
  const struct program *program = step->task->program;
  const struct program_range tasks = program_entry(program, step->entry)->tasks;
  for (uint32_t i = 0; i < found->count; i++)
    if (found->waits[i].step == step->id)
      return;
  struct stall_wait *to = NULL;
  char name[128];
  for (uint32_t i = 0; i < tasks.count && i < STEP_REPORTS; i++) {
    uint32_t number = program_operands(program, tasks.first)[i];
    if (number == program->task || step->reported[i] || (!to && !(to = add(found, step, STALL_PART, 0))))
      continue;
    add_holder(to, number);
    say_task(program, number, name, sizeof name);
    size_t used = strlen(to->what);
    if (used)
      snprintf(to->what + used, sizeof to->what - used, ", %s", name);
    else
      snprintf(to->what, sizeof to->what, "waits for the end of the entry '%.60s' at %s", entry_name(program, step), name);
  }
}

uint32_t task_waits(struct task *task, struct stall_wait *out, uint32_t max) {
  struct found found = {out, 0, max};
  for (uint32_t i = 0; i < task->part_count; i++) {
    struct part *part = &task->parts[i];
    pthread_mutex_lock(&part->lock);
    for (const struct frame *frame = part->busy; frame; frame = frame->next)
      if (!frame->step->is_background)
        add_frame(&found, frame);
    pthread_mutex_unlock(&part->lock);
  }
  pthread_mutex_lock(&task->lock);
  for (const struct step *step = task->steps; step; step = step->next)
    if (!step->is_background && step->driver == task->program->task && step->waiting > 0)
      add_parts(&found, step);
  pthread_mutex_unlock(&task->lock);
  return found.count;
}
