/* change.c: where a step changes something: whether it may, and whether it has done so before.
 *
 * The first change of a step that another task drives *seals* it: from then on it does not heed the loss of its driver
 * but where it would have to wait. Before, the loss drops the step, and nothing of it was applied. The compiler puts
 * what changes something behind all that the part receives (compiler/pass/hold.c), so most steps never wait after they
 * are sealed. */
#include <string.h>

#include "runtime/program/fault.h"
#include "runtime/step/record.h"
#include "runtime/step/rehearsal.h"
#include "runtime/step/task_state.h"

static status seal(struct step *step) {
  struct task *task = step->task;
  if (step->driver == task->program->task || atomic_load_explicit(&step->sealed, memory_order_relaxed))
    return OK;
  status result = OK;
  pthread_mutex_lock(&task->lock);
  if (atomic_load(&step->cancelled))
    result = fail(step->code == OK ? CANCELLED : step->code, "%s", step->text);
  else
    atomic_store(&step->sealed, true);
  pthread_mutex_unlock(&task->lock);
  return result;
}

static status enter(struct frame *frame) {
  const struct step *step = frame->step;
  if (frame->is_inside)
    return OK;
  TRY(commit_enter(&frame->part->task->commit, step->driver, step->command, step->serial, step->era));
  frame->is_inside = true;
  return OK;
}

static void leave(struct frame *frame) {
  if (frame->is_inside)
    commit_leave(&frame->part->task->commit);
  frame->is_inside = false;
}

static uint32_t number_of(const struct frame *frame, const struct program_instr *instr) {
  return (uint32_t)(instr - program_instr(frame->program, 0));
}

/* Variables that are there do not say that the queues and tables are, which `init` has made beside them. */
static bool makes_again(const struct frame *frame, const struct program_instr *instr) {
  const struct step *step = frame->step;
  return step->is_once && instr->op == INSTR_HOST && (!frame->part->task->commit.has_run_init || instr->outputs.count > 0);
}

/* Draws, and the next elements of iterators: where a driver's own state was put back to before the step, they are made
 * anew, and are the same. */
static bool is_put_back(const struct frame *frame, const struct program_instr *instr) {
  const struct task *task = frame->part->task;
  const struct step *step = frame->step;
  if (!task->commit.puts_back || step->driver != task->program->task || serial_lane(step->serial) > 0)
    return false;
  return instr->op == INSTR_KERNEL ? !instr_changes_variable(frame->program, instr)
                                   : strncmp(program_text(frame->program, instr->tf_op), "IteratorGetNext", 15) == 0;
}

status frame_change(struct frame *frame, const struct program_instr *instr, struct change *out) {
  struct step *step = frame->step;
  struct record_item item;
  *out = (struct change){.applies = true};
  if (!frame->is_part)
    return OK;
  if (rehearsal_covers(frame, instr))
    return enter(frame);
  if (step->record && record_find(step->record, number_of(frame, instr), &item))
    *out = (struct change){.was_noted = true, .outputs = item.outputs};
  else if (step->is_dry && !makes_again(frame, instr))
    out->applies = false;
  if (!out->applies && is_put_back(frame, instr))
    *out = (struct change){.applies = true};
  if (!out->applies)
    return OK;
  TRY(seal(step));
  return enter(frame);
}

status frame_changed(struct frame *frame, const struct program_instr *instr, struct tensor *const *outputs, uint32_t output_count) {
  if (!frame->is_part || !frame->step->record || rehearsal_covers(frame, instr) || (FAULT(36) && output_count > 0))
    return OK;
  return record_add(frame->step->record, number_of(frame, instr), outputs, output_count);
}

status frame_give_again(struct frame *frame, const struct program_instr *instr, struct tensor *const *outputs) {
  struct host_call call;
  host_call_init(frame, instr, &call);
  for (uint32_t i = 0; i < call.output_count; i++)
    call.outputs[i] = outputs[i] ? tensor_retain(outputs[i]) : NULL;
  return host_call_end(frame, &call);
}

status frame_repeat_call(struct frame *frame, const struct program_instr *instr, const struct change *change) {
  if (!change->was_noted && instr->outputs.count > 0)
    return fail(INTERNAL, "step %llu of command %u was done before, and what this call gave then is not kept",
                (unsigned long long)serial_count(frame->step->serial), frame->step->command);
  if (!change->was_noted)
    return OK;
  TRY(rehearsal_keep(frame, instr, change->outputs, instr->outputs.count)); /* the run for good finds it there, as it finds new ones */
  return frame_give_again(frame, instr, change->outputs);
}

status frame_take_over(struct frame *frame) {
  TRY(enter(frame));
  rehearsal_end(frame->rehearsal);
  return OK;
}

void frame_pause(struct frame *frame) {
  if (!frame->is_inside)
    return;
  if (!frame->step->record || !record_is_empty(frame->step->record)) /* who waits to take something first has changed nothing */
    commit_note_open(&frame->part->task->commit, frame->step);
  leave(frame);
}

/* The last part of a step that counts. */
static status commit(struct frame *frame) {
  struct step *step = frame->step;
  TRY(seal(step));
  TRY(enter(frame));
  return commit_step(&frame->part->task->commit, step);
}

status frame_commit(struct frame *frame) {
  struct step *step = frame->step;
  struct task *task = frame->part->task;
  bool is_last = atomic_fetch_sub(&step->parts_left, 1) == 1;
  bool counts = is_last && (step->is_once || (step->serial > 0 && !step->is_dry));
  bool is_progress = is_last && !step->is_once && !step->is_dry && program_entry(task->program, step->entry)->changes_state;
  status result = counts ? commit(frame) : OK;
  leave(frame);
  if (result == OK && is_progress && task->commit.on_commit)
    task->commit.on_commit(task->commit.on_commit_self);
  return result;
}

status step_commit(struct step *step) {
  struct commit *commit = &step->task->commit;
  TRY(seal(step));
  TRY(commit_enter(commit, step->driver, step->command, step->serial, step->era));
  status result = commit_step(commit, step);
  commit_leave(commit);
  return result;
}
