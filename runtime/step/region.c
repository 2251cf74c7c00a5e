/* region.c: branches and loops.
 *
 * A block's parameters borrow what was passed in. What a block gives back is taken out of it as tensors (shared where
 * possible), so that nothing of its arena has to outlive it, and the loop's state may change shape from turn to turn.
 * Rows of arrays are read and written where they lie (loop_rows.c).
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/memory/buffer.h"
#include "runtime/memory/variable.h"
#include "runtime/program/size.h"
#include "runtime/step/loop_rows.h"
#include "runtime/step/rehearsal.h"
#include "runtime/step/task_state.h"

/* A value on its way between blocks: memory, and the tensor that keeps it, or NULL when it is borrowed from a slot. */
struct passed {
  void *data;
  struct tensor *tensor;
  struct shape shape;
};

static status pass_slot(struct frame *frame, uint32_t slot, struct passed *out) {
  uint32_t root = frame->slots[slot].root;
  struct tensor *held = frame->slots[root].storage == STORAGE_TENSOR ? frame->held[root] : NULL;
  out->data = frame->data[slot];
  TRY(frame_shape(frame, slot, &out->shape));
  if (held && root != slot && frame->slots[slot].dtype == DTYPE_VARIANT) { /* objects are known by their tensor */
    TRY(frame_take(frame, slot, &out->tensor));
    out->data = out->tensor->data;
    return OK;
  }
  out->tensor = held && root == slot ? tensor_retain(held) : NULL;
  return OK;
}

static void passed_drop(struct frame *frame, struct passed *value, uint32_t slot) {
  if (!value->tensor)
    return;
  frame_drop(frame, slot);
  frame->held[slot] = value->tensor; /* through a slot, so that strings stay as long as the step */
  frame_drop(frame, slot);
  value->tensor = NULL;
}

static status bind_params(struct frame *frame, const struct program_block *block, const struct passed *values) {
  const uint32_t *params = program_operands(frame->program, block->params.first);
  for (uint32_t i = 0; i < block->params.count; i++) {
    frame_drop(frame, params[i]);
    frame->data[params[i]] = values[i].data;
    frame->held[params[i]] = values[i].tensor ? tensor_retain(values[i].tensor) : NULL;
    status result = frame_bind(frame, params[i], &values[i].shape);
    if (result != OK)
      return status_prefix(result, "value %u passed in: ", i);
  }
  return OK;
}

static status enter_block(struct frame *frame, const struct program_block *block, const struct passed *values) {
  const uint32_t *symbols = program_operands(frame->program, block->symbols.first);
  for (uint32_t i = 0; i < block->symbols.count; i++)
    frame->symbols[symbols[i]] = SYMBOL_UNBOUND;
  return bind_params(frame, block, values);
}

static status run_block(struct frame *frame, const struct program_block *block, const struct passed *values) {
  TRY(enter_block(frame, block, values));
  return frame_run_block(frame, block);
}

/* What a finished block no longer needs: parameters and results. */
static void drop_block(struct frame *frame, const struct program_block *block) {
  const struct program_range *lists[] = {&block->params, &block->results};
  for (int list = 0; list < 2; list++) {
    const uint32_t *slots = program_operands(frame->program, lists[list]->first);
    for (uint32_t i = 0; i < lists[list]->count; i++)
      frame_drop(frame, frame->slots[slots[i]].root);
  }
}

/* The value of an output slot of the region: its shape binds what was not known. */
static status set_output(struct frame *frame, uint32_t slot, struct tensor *tensor) {
  frame_set(frame, slot, tensor);
  return frame_bind(frame, slot, &tensor->shape);
}

/* ---- if ---- */

static uint32_t choose_branch(const struct frame *frame, const struct program_instr *instr, uint32_t slot) {
  if (frame->slots[slot].dtype == DTYPE_BOOL)
    return *(const bool *)frame->data[slot] ? 0 : 1;
  int32_t index = *(const int32_t *)frame->data[slot];
  return index < 0 || (uint32_t)index >= instr->blocks.count ? instr->blocks.count - 1 : (uint32_t)index;
}

static status give_results(struct frame *frame, const struct program_instr *instr, const struct program_block *block) {
  const uint32_t *results = program_operands(frame->program, block->results.first);
  const uint32_t *outputs = program_operands(frame->program, instr->outputs.first);
  for (uint32_t i = 0; i < instr->outputs.count; i++) {
    struct tensor *tensor;
    TRY(frame_take(frame, results[i], &tensor));
    TRY(set_output(frame, outputs[i], tensor));
  }
  return OK;
}

status frame_run_if(struct frame *frame, const struct program_instr *instr) {
  const uint32_t *args = program_operands(frame->program, instr->args.first);
  uint32_t count = instr->args.count - 1;
  const struct program_block *block = program_block(frame->program, instr->blocks.first + choose_branch(frame, instr, args[0]));
  struct passed *values = calloc((size_t)count + 1, sizeof *values);
  status result = values ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; result == OK && i < count; i++)
    result = pass_slot(frame, args[i + 1], &values[i]);
  if (result == OK)
    result = run_block(frame, block, values);
  if (result == OK)
    result = give_results(frame, instr, block);
  drop_block(frame, block);
  for (uint32_t i = 0; values && i < count; i++)
    tensor_release(values[i].tensor);
  free(values);
  return result;
}

/* ---- while ---- */

struct loop {
  struct frame *frame;
  const struct program_instr *instr;
  const struct program_block *condition, *body;
  struct passed *state, *next; /* the variables; behind them, in this turn, rows that the body takes */
  uint32_t count;
  struct loop_rows rows;
  bool *gives; /* of each value: the body has it alone: an object that it does not give back unchanged */
};

static status loop_continues(struct loop *loop, bool *out) {
  struct frame *frame = loop->frame;
  TRY(run_block(frame, loop->condition, loop->state));
  *out = *(const bool *)frame->data[*program_operands(frame->program, loop->condition->results.first)];
  drop_block(frame, loop->condition);
  return OK;
}

/* The parameter of the body that a result is, unchanged; else PROGRAM_NONE. */
static uint32_t passed_through(const struct loop *loop, uint32_t slot) {
  const uint32_t *params = program_operands(loop->frame->program, loop->body->params.first);
  for (uint32_t i = 0; i < loop->count; i++)
    if (params[i] == slot)
      return i;
  return PROGRAM_NONE;
}

static void find_gives(struct loop *loop) {
  const uint32_t *params = program_operands(loop->frame->program, loop->body->params.first);
  const uint32_t *results = program_operands(loop->frame->program, loop->body->results.first);
  for (uint32_t i = 0; i < loop->count; i++)
    loop->gives[i] = loop->frame->slots[params[i]].dtype == DTYPE_VARIANT;
  for (uint32_t i = 0; i < loop->count; i++) {
    uint32_t from = passed_through(loop, results[i]);
    if (from != PROGRAM_NONE)
      loop->gives[from] = false;
  }
}

/* A result that lies in a row stays there as long as the loop runs. */
static status next_value(struct frame *frame, uint32_t slot, struct passed *out) {
  if (frame->slots[frame->slots[slot].root].storage == STORAGE_ROW) {
    *out = (struct passed){.data = frame->data[slot]};
    return frame_shape(frame, slot, &out->shape);
  }
  struct tensor *tensor;
  TRY(frame_take(frame, slot, &tensor));
  *out = (struct passed){tensor->data, tensor, tensor->shape};
  return OK;
}

static status loop_next_state(struct loop *loop) {
  struct frame *frame = loop->frame;
  const uint32_t *results = program_operands(frame->program, loop->body->results.first);
  for (uint32_t i = 0; i < loop->count; i++) {
    uint32_t from = passed_through(loop, results[i]);
    if (from != PROGRAM_NONE) {
      loop->next[i] = loop->state[from];
      if (loop->next[i].tensor)
        tensor_retain(loop->next[i].tensor);
      continue;
    }
    TRY(next_value(frame, results[i], &loop->next[i]));
  }
  return OK;
}

/* A variable that was missing when it was read in front of the loop: the first turn needs it. */
static status read_missing(struct loop *loop) {
  const struct frame *frame = loop->frame;
  const uint32_t *args = program_operands(frame->program, loop->instr->args.first);
  for (uint32_t i = 0; i < loop->count; i++) {
    const struct program_slot *root = &frame->slots[frame->slots[args[i]].root];
    if (root->storage != STORAGE_VARIABLE || frame->data[args[i]])
      continue;
    TRY(variable_read(rehearsal_variable(frame, (uint32_t)root->data), &loop->state[i].tensor));
    loop->state[i].data = loop->state[i].tensor->data;
  }
  return OK;
}

static status take_rows(struct loop *loop) {
  for (uint32_t i = 0; i < loop->rows.in_count; i++) {
    struct passed *row = &loop->state[loop->count + i];
    TRY(loop_rows_take(&loop->rows, i, &row->data, &row->shape));
  }
  return loop_rows_place(&loop->rows);
}

static status loop_turn(struct loop *loop) {
  const uint32_t *outputs = program_operands(loop->frame->program, loop->instr->outputs.first);
  memset(loop->next, 0, loop->count * sizeof *loop->next);
  TRY(take_rows(loop));
  TRY(enter_block(loop->frame, loop->body, loop->state));
  for (uint32_t i = 0; i < loop->count; i++)
    if (loop->gives[i]) {
      tensor_release(loop->state[i].tensor);
      loop->state[i].tensor = NULL;
    }
  TRY(frame_run_block(loop->frame, loop->body));
  status result = loop_rows_fill(&loop->rows);
  if (result == OK)
    result = loop_next_state(loop);
  drop_block(loop->frame, loop->body);
  for (uint32_t i = 0; i < loop->count; i++)
    passed_drop(loop->frame, &loop->state[i], outputs[i]);
  struct passed *swap = loop->state;
  loop->state = loop->next;
  loop->next = swap;
  return result;
}

static status loop_run(struct loop *loop) {
  const struct step *step = loop->frame->step;
  for (bool first = true;; first = false) {
    bool more;
    TRY(loop_continues(loop, &more));
    if (!more)
      return OK;
    if (first)
      TRY(read_missing(loop));
    TRY(loop_turn(loop));
    bool is_given_up =
      atomic_load_explicit(&step->cancelled, memory_order_relaxed) || atomic_load_explicit(&step->task->stopping, memory_order_relaxed);
    if (is_given_up && !atomic_load_explicit(&step->sealed, memory_order_relaxed))
      return fail(CANCELLED, "the step was cancelled");
  }
}

/* Whether nobody takes an output: the loop is its last user. */
static bool is_unused(const struct loop *loop, uint32_t slot) {
  const uint32_t *release = program_operands(loop->frame->program, loop->instr->release.first);
  for (uint32_t i = 0; i < loop->instr->release.count; i++)
    if (release[i] == slot)
      return true;
  return false;
}

static status loop_end(struct loop *loop) {
  struct frame *frame = loop->frame;
  const uint32_t *args = program_operands(frame->program, loop->instr->args.first);
  const uint32_t *outputs = program_operands(frame->program, loop->instr->outputs.first);
  for (uint32_t i = 0; i < loop->rows.out_count; i++) {
    struct tensor *array;
    TRY(loop_rows_end(&loop->rows, i, &array));
    TRY(set_output(frame, outputs[loop->count + i], array));
  }
  for (uint32_t i = 0; i < loop->count; i++) {
    struct tensor *tensor = loop->state[i].tensor;
    loop->state[i].tensor = NULL;
    if (!tensor && is_unused(loop, outputs[i])) { /* not copied for nobody; its sizes may be asked for */
      TRY(frame_bind(frame, outputs[i], &loop->state[i].shape));
      continue;
    }
    if (!tensor && loop->state[i].data != frame->data[args[i]])
      TRY(tensor_copy_in((enum dtype)frame->slots[outputs[i]].dtype, &loop->state[i].shape, loop->state[i].data, &tensor));
    else if (!tensor)
      TRY(frame_take(frame, args[i], &tensor));
    TRY(set_output(frame, outputs[i], tensor));
  }
  return OK;
}

status frame_run_while(struct frame *frame, const struct program_instr *instr) {
  const uint32_t *args = program_operands(frame->program, instr->args.first);
  struct loop loop = {.frame = frame, .instr = instr, .count = instr->args.count - instr->number};
  loop.condition = program_block(frame->program, instr->blocks.first);
  loop.body = program_block(frame->program, instr->blocks.first + 1);
  loop.state = calloc((size_t)instr->args.count + 1, sizeof *loop.state);
  loop.next = calloc((size_t)instr->args.count + 1, sizeof *loop.next);
  loop.gives = calloc((size_t)loop.count + 1, sizeof *loop.gives);
  status result = loop.state && loop.next && loop.gives ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
  if (result == OK)
    find_gives(&loop);
  for (uint32_t i = 0; result == OK && i < loop.count; i++)
    result = pass_slot(frame, args[i], &loop.state[i]);
  if (result == OK)
    result = loop_rows_begin(&loop.rows, frame, instr);
  if (result == OK)
    result = loop_run(&loop);
  if (result == OK)
    result = loop_end(&loop);
  for (uint32_t i = 0; loop.state && i < loop.count; i++)
    tensor_release(loop.state[i].tensor);
  loop_rows_deinit(&loop.rows);
  free(loop.state);
  free(loop.next);
  free(loop.gives);
  return result;
}

/* ---- parts that are functions ---- */

static status take_results(struct frame *frame, const struct program_block *block, struct tensor **out) {
  const uint32_t *results = program_operands(frame->program, block->results.first);
  for (uint32_t i = 0; i < block->results.count; i++) {
    status result = frame_take(frame, results[i], &out[i]);
    if (result == OK)
      continue;
    while (i-- > 0)
      tensor_release(out[i]);
    return result;
  }
  return OK;
}

static status check_passed(const struct frame *frame, const struct program_block *block, struct tensor *const *in, uint32_t in_count,
                           uint32_t out_count) {
  const uint32_t *params = program_operands(frame->program, block->params.first);
  if (block->params.count != in_count || block->results.count != out_count)
    return fail(INVALID_ARGUMENT, "a function of %u values that gives %u, not of %u that gives %u", block->params.count,
                block->results.count, in_count, out_count);
  for (uint32_t i = 0; i < in_count; i++)
    if (frame->slots[params[i]].dtype != in[i]->dtype)
      return fail(INVALID_ARGUMENT, "value %u passed in is %s, expected is %s", i, dtype_name(in[i]->dtype),
                  dtype_name((enum dtype)frame->slots[params[i]].dtype));
  return OK;
}

static status call_block(struct frame *frame, const struct program_block *block, struct tensor *const *in, uint32_t in_count,
                         struct tensor **out, uint32_t out_count) {
  TRY(check_passed(frame, block, in, in_count, out_count));
  struct passed *values = calloc((size_t)in_count + 1, sizeof *values);
  if (!values)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < in_count; i++)
    values[i] = (struct passed){in[i]->data, in[i], in[i]->shape};
  status result = run_block(frame, block, values);
  if (result == OK)
    result = take_results(frame, block, out);
  drop_block(frame, block);
  free(values);
  return result;
}

status part_call(struct part *part, struct step *step, struct tensor *const *in, uint32_t in_count, struct tensor **out,
                 uint32_t out_count) {
  struct frame *frame;
  TRY(frame_acquire(part, step, part->unbound, &frame));
  status result = call_block(frame, program_block(part->program, part->code->block), in, in_count, out, out_count);
  frame_release(frame);
  return result;
}
