/* dataflow.c: runs a block whose instructions may wait for other steps: an instruction runs when all it needs has run, and
 * one that has to wait leaves the thread to the others. Among those that are ready the first in the block goes first. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/step/partial.h"
#include "runtime/step/rehearsal.h"
#include "runtime/step/task_state.h"
#include "runtime/step/trace.h"

struct dataflow {
  struct frame *frame;
  const struct program_instr *instrs;
  uint32_t count, done, ready_count, pending_count;
};

/* ready[] is a binary heap of instruction numbers, the smallest on top. */
static void ready_push(struct dataflow *d, uint32_t instr) {
  uint32_t *heap = d->frame->ready;
  uint32_t at = d->ready_count++;
  for (; at > 0 && heap[(at - 1) / 2] > instr; at = (at - 1) / 2)
    heap[at] = heap[(at - 1) / 2];
  heap[at] = instr;
}

static uint32_t ready_pop(struct dataflow *d) {
  uint32_t *heap = d->frame->ready;
  uint32_t top = heap[0], last = heap[--d->ready_count], at = 0;
  for (uint32_t child; (child = at * 2 + 1) < d->ready_count; at = child) {
    if (child + 1 < d->ready_count && heap[child + 1] < heap[child])
      child++;
    if (heap[child] >= last)
      break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  return top;
}

/* One that may have had to wait. */
static void record(struct dataflow *d, const struct dataflow_wait *wait) {
  if (d->frame->is_recorded)
    frame_record(d->frame, &d->instrs[wait->instr], wait->begin);
}

static void finish(struct dataflow *d, uint32_t instr) {
  const struct program_range successors = d->instrs[instr].successors;
  const uint32_t *list = program_operands(d->frame->program, successors.first);
  d->done++;
  for (uint32_t i = 0; i < successors.count; i++)
    if (--d->frame->needs[list[i]] == 0)
      ready_push(d, list[i]);
}

static void recv_woken(struct rendezvous_waiter *waiter) {
  struct dataflow_wait *wait = (struct dataflow_wait *)((char *)waiter - offsetof(struct dataflow_wait, waiter));
  inbox_put(wait->call.inbox, &wait->call.item);
}

static status start_recv(struct dataflow *d, uint32_t instr, struct dataflow_wait *wait) {
  struct frame *frame = d->frame;
  wait->call.inbox = &frame->inbox;
  wait->waiter.wake = recv_woken;
  wait->pending = !rendezvous_ask(frame->part->task->rendezvous, frame->step->id, d->instrs[instr].number, &wait->waiter);
  return OK;
}

static status end_recv(struct dataflow *d, uint32_t instr, struct dataflow_wait *wait) {
  if (wait->waiter.tensor)
    return frame_receive(d->frame, &d->instrs[instr], wait->waiter.tensor);
  TRY(rendezvous_reason(d->frame->part->task->rendezvous, d->frame->step->id));
  return fail(wait->waiter.code, "the step was given up");
}

/* A feed of a partial run: true when it is here. */
static void start_feed(struct dataflow *d, uint32_t instr, struct dataflow_wait *wait, struct tensor **out) {
  wait->call.inbox = &d->frame->inbox;
  wait->pending = true; /* before it may be told */
  *out = partial_ask(d->frame->step->partial, d->instrs[instr].number, &d->frame->inbox, &wait->call.item);
  wait->pending = *out == NULL;
}

static status end_feed(struct dataflow *d, uint32_t instr, struct dataflow_wait *wait, struct tensor *tensor) {
  if (!tensor)
    tensor = partial_ask(d->frame->step->partial, d->instrs[instr].number, &d->frame->inbox, &wait->call.item);
  return frame_receive(d->frame, &d->instrs[instr], tensor);
}

/* It has ended well. */
static status finish_host(struct dataflow *d, struct dataflow_wait *wait) {
  if (wait->call.instr->flags & INSTR_CHANGES)
    TRY(frame_changed(d->frame, wait->call.instr, wait->call.outputs, wait->call.output_count));
  TRY(rehearsal_keep(d->frame, wait->call.instr, wait->call.outputs, wait->call.output_count));
  return host_call_end(d->frame, &wait->call);
}

static status end_host(struct dataflow *d, struct dataflow_wait *wait) {
  if (wait->call.code != OK)
    return fail(wait->call.code, "%s", wait->call.text);
  return finish_host(d, wait);
}

/* A pending call outlives the next one, so its outputs need a place of their own. */
static status keep_outputs(struct dataflow_wait *wait) {
  wait->call.outputs = calloc((size_t)wait->call.output_count + 1, sizeof *wait->call.outputs);
  return wait->call.outputs ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
}

static status start_host(struct dataflow *d, uint32_t instr, struct dataflow_wait *wait) {
  host_call_init(d->frame, &d->instrs[instr], &wait->call);
  TRY(keep_outputs(wait));
  status result = host_call_start(d->frame, &wait->call);
  wait->pending = result == OK && wait->call.pending;
  return result;
}

static void free_outputs(struct dataflow_wait *wait) {
  free(wait->call.outputs);
  wait->call.outputs = NULL;
}

static bool is_fed_later(const struct dataflow *d, const struct program_instr *instr) {
  return instr->op == INSTR_FEED && d->frame->step->partial;
}

static status begin_host(struct dataflow *d, uint32_t index, struct dataflow_wait *wait) {
  const struct program_instr *instr = &d->instrs[index];
  struct change change = {.applies = true};
  if (rehearsal_find(d->frame, instr, &change.outputs))
    return frame_give_again(d->frame, instr, change.outputs);
  if (instr->flags & INSTR_CHANGES)
    TRY(frame_change(d->frame, instr, &change));
  if (!change.applies)
    return frame_repeat_call(d->frame, instr, &change);
  status result = start_host(d, index, wait);
  if (result == OK && wait->pending)
    return OK;
  if (result == OK)
    result = finish_host(d, wait);
  free_outputs(wait);
  return result;
}

/* Begins what may have to wait; unless it does (wait->pending), it has also ended. */
static status begin(struct dataflow *d, uint32_t index, struct dataflow_wait *wait) {
  const struct program_instr *instr = &d->instrs[index];
  struct tensor *fed = NULL, **came;
  wait->instr = index;
  wait->begin = d->frame->is_recorded ? trace_now() : 0;
  if (is_fed_later(d, instr)) {
    start_feed(d, index, wait, &fed);
    return wait->pending ? OK : end_feed(d, index, wait, fed);
  }
  if (instr->op == INSTR_RECV && rehearsal_find(d->frame, instr, &came))
    return frame_receive(d->frame, instr, tensor_retain(came[0]));
  if (instr->op == INSTR_RECV) {
    TRY(start_recv(d, index, wait));
    return wait->pending ? OK : end_recv(d, index, wait);
  }
  return begin_host(d, index, wait);
}

/* Runs or starts one instruction. */
static status start(struct dataflow *d, uint32_t index) {
  const struct program_instr *instr = &d->instrs[index];
  struct dataflow_wait *wait = &d->frame->waits[index];
  bool is_left_out = instr->guards.count && instr->op != INSTR_FETCH && !frame_guards_hold(d->frame, instr);
  if (is_left_out || rehearsal_skips(d->frame, instr)) {
    finish(d, index);
    return OK;
  }
  bool may_wait = instr->op == INSTR_RECV || is_fed_later(d, instr) || (instr->op == INSTR_HOST && (instr->flags & INSTR_BLOCKS));
  status result = may_wait ? begin(d, index, wait) : frame_run_instr(d->frame, instr);
  if (result != OK)
    return may_wait ? frame_blame(d->frame, instr, result) : result;
  if (may_wait && wait->pending) {
    d->pending_count++;
    return OK;
  }
  if (may_wait)
    record(d, wait);
  finish(d, index);
  return OK;
}

/* One wait is over. */
static status resume(struct dataflow *d, struct inbox_item *item) {
  struct dataflow_wait *wait = (struct dataflow_wait *)item;
  const struct program_instr *instr = &d->instrs[wait->instr];
  wait->pending = false;
  d->pending_count--;
  status result = instr->op == INSTR_RECV ? end_recv(d, wait->instr, wait)
                : is_fed_later(d, instr)  ? end_feed(d, wait->instr, wait, NULL)
                                          : end_host(d, wait);
  if (instr->op == INSTR_HOST)
    free_outputs(wait);
  if (result != OK)
    return frame_blame(d->frame, instr, result);
  record(d, wait);
  finish(d, wait->instr);
  return OK;
}

/* False: it is being told this moment. */
static bool withdraw(struct dataflow *d, struct dataflow_wait *wait, const struct program_instr *instr) {
  if (instr->op == INSTR_FEED)
    return partial_withdraw(d->frame->step->partial, instr->number);
  return instr->op == INSTR_HOST && wait->call.withdraw(&wait->call);
}

/* What came for somebody who does not want it any more: his successor may. */
static void drop_wait(struct dataflow *d, struct dataflow_wait *wait) {
  uint8_t op = d->instrs[wait->instr].op;
  wait->pending = false;
  d->pending_count--;
  bool took = op == INSTR_HOST && wait->call.code == OK && (wait->call.instr->flags & INSTR_CHANGES);
  if (took && frame_changed(d->frame, wait->call.instr, wait->call.outputs, wait->call.output_count) != OK)
    took = false; /* without memory it is lost */
  tensor_release(op == INSTR_RECV ? wait->waiter.tensor : NULL);
  for (uint32_t i = 0; op == INSTR_HOST && i < wait->call.output_count; i++)
    tensor_release(wait->call.outputs[i]);
  if (op == INSTR_HOST)
    free_outputs(wait);
}

/* Gives up what still waits: host calls and feeds are withdrawn; receivers are told by the rendezvous when the step is given up. */
static void withdraw_all(struct dataflow *d) {
  for (uint32_t i = 0; i < d->count && d->pending_count > 0; i++) {
    struct dataflow_wait *wait = &d->frame->waits[i];
    if (!wait->pending || !withdraw(d, wait, &d->instrs[i]))
      continue;
    wait->pending = false;
    d->pending_count--;
    if (d->instrs[i].op == INSTR_HOST)
      free_outputs(wait);
  }
  while (d->pending_count > 0)
    drop_wait(d, (struct dataflow_wait *)inbox_take(&d->frame->inbox, true, false));
}

/* What was waited for; waits unless something else can run. NULL: nothing, or the step was given up. */
static struct inbox_item *next_item(struct dataflow *d) {
  bool has_work = d->ready_count > 0;
  struct inbox_item *item = inbox_take(&d->frame->inbox, !has_work && !d->frame->is_inside, true);
  if (item || has_work || !d->frame->is_inside)
    return item;
  frame_pause(d->frame);
  return inbox_take(&d->frame->inbox, true, true);
}

static status run_all(struct dataflow *d) {
  struct step *step = d->frame->step;
  while (d->done < d->count) {
    bool is_given_up = atomic_load_explicit(&step->cancelled, memory_order_relaxed);
    if (is_given_up && !atomic_load_explicit(&step->sealed, memory_order_relaxed))
      return fail(CANCELLED, "the step was cancelled");
    struct inbox_item *item = d->pending_count ? next_item(d) : NULL;
    if (item)
      TRY(resume(d, item));
    else if (d->ready_count > 0)
      TRY(start(d, ready_pop(d)));
    else if (is_given_up) /* it would wait */
      return fail(CANCELLED, "the step was cancelled");
    else if (d->pending_count == 0)
      return fail(INTERNAL, "%u instructions can never run", d->count - d->done);
  }
  return OK;
}

status frame_run_dataflow(struct frame *frame) {
  const struct program_block *block = program_block(frame->program, frame->part->code->block);
  struct dataflow d = {.frame = frame, .instrs = program_instr(frame->program, block->instrs.first)};
  d.count = block->instrs.count;
  inbox_clear(&frame->inbox);
  step_add_inbox(frame->step, &frame->inbox);
  for (uint32_t i = 0; i < d.count; i++) {
    frame->needs[i] = d.instrs[i].need_count;
    frame->waits[i].pending = false;
    if (frame->needs[i] == 0)
      ready_push(&d, i);
  }
  status result = run_all(&d);
  if (result != OK) {
    char text[2048];
    snprintf(text, sizeof text, "%s (on %s)", status_text(), frame->part->task->name);
    step_fail(frame->step, result, text);
    withdraw_all(&d);
    result = fail(result, "%s", text);
  }
  step_remove_inbox(frame->step, &frame->inbox);
  return result;
}
