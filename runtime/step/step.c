/* step.c: runs the instructions of a block, one after the other. This is the path of every kernel of every step: no memory
 * is asked for, no lock taken and no text made, unless the instruction itself needs it. */
#include <stdio.h>
#include <string.h>

#include "base/gradient_name.h"
#include "runtime/memory/buffer.h"
#include "runtime/memory/variable.h"
#include "runtime/program/size.h"
#include "runtime/step/memory_report.h"
#include "runtime/step/partial.h"
#include "runtime/step/pool.h"
#include "runtime/step/rehearsal.h"
#include "runtime/step/step_stats.h"
#include "runtime/step/task_state.h"
#include "runtime/step/trace.h"
#include "runtime/text/element_number.h"

status frame_blame(const struct frame *frame, const struct program_instr *instr, status code) {
  const char *place = program_text(frame->program, instr->place), *node = program_text(frame->program, instr->node);
  char subject[512];
  if (code == RESOURCE_EXHAUSTED && frame->step->reports_memory && !strstr(status_text(), MEMORY_REPORT)) /* the innermost says it */
    code = frame_report_memory(frame, code);
  code = status_prefix(code, "%s '%s': ", program_text(frame->program, instr->tf_op), node);
  if (gradient_name_subject(node, subject, sizeof subject) && !strstr(status_text(), "; in the gradient of "))
    status_suffix(code, "; in the gradient of '%s'", subject);
  return *place && !strstr(status_text(), "; made at ") ? status_suffix(code, "; made at %s", place) : code; /* the innermost says it */
}

/* ---- kernels ---- */

static status late_sizes(struct frame *frame, const struct program_instr *instr) {
  const uint32_t *codes = program_operands(frame->program, instr->sizes.first);
  int64_t *sizes = frame->sizes + instr->sizes_at;
  for (uint32_t i = 0; i < instr->sizes.count; i++)
    if (!size_eval(program_words(frame->program, codes[i]), frame->symbols, &sizes[i]))
      return fail(INTERNAL, "a size is not known yet");
  struct kernel_launch *launch = &frame->launches[instr->kernel_at];
  kernel_launch_query(&frame->part->task->kernels[instr->number], sizes, launch);
  return frame_reserve_scratch(frame, launch->scratch);
}

status frame_make_outputs(struct frame *frame, const struct program_instr *instr) {
  const uint32_t *outputs = program_operands(frame->program, instr->outputs.first);
  for (uint32_t i = 0; i < instr->outputs.count; i++)
    if (frame->slots[outputs[i]].storage == STORAGE_TENSOR)
      TRY(frame_make(frame, outputs[i]));
  return OK;
}

bool frame_has_pool(const struct frame *frame) {
  return !frame->step->is_background || atomic_load_explicit(&frame->part->task->at_work, memory_order_relaxed) == 0;
}

/* Of the first output that has none. */
__attribute__((cold)) static status fail_shape(const struct frame *frame, const struct program_instr *instr) {
  const uint32_t *outputs = program_operands(frame->program, instr->outputs.first);
  struct shape shape;
  for (uint32_t i = 0; i < instr->outputs.count; i++)
    TRY(frame_shape(frame, outputs[i], &shape));
  return fail(INTERNAL, "a shape is not possible");
}

/* Part of its two callers: a call of its own costs as much as a small kernel. */
__attribute__((always_inline)) static inline status kernel_launch(struct frame *frame, const struct program_instr *instr) {
  const struct kernel_code *code = &frame->part->task->kernels[instr->number];
  const struct kernel_launch *launch = &frame->launches[instr->kernel_at];
  struct kernel_call call = {frame->buffers, frame->sizes + instr->sizes_at, frame->scratch, &frame->fault};
  if (launch->cost >= KERNEL_WORTH_NS && frame_has_pool(frame)) {
    pool_run(frame->part->task->pool, &(struct pool_kernel){code, call, launch->phases}, 1, launch->cost >= KERNEL_WAKES_NS);
  } else {
    if (__builtin_expect(launch->cost == KERNEL_NO_SHAPE, 0))
      return fail_shape(frame, instr);
    code->run(&call, 0, 0, launch->tiles);
    for (int64_t phase = 1; phase < launch->phases; phase++)
      code->run(&call, phase, 0, code->query(call.sizes, phase));
  }
  if (__builtin_expect(frame->fault.code != 0, 0)) {
    status result = fail_shown((status)frame->fault.code, frame->fault.text, frame->fault.shown);
    frame->fault.code = 0;
    return result;
  }
  return OK;
}

/* Of a kernel on variables, none of the lists longer than its arguments (program_check). */
struct kernel_variables {
  struct variable *locked[PROGRAM_KERNEL_VARIABLES]; /* distinct, by address: two kernels cannot wait for each other */
  struct variable *written[PROGRAM_KERNEL_VARIABLES];
  struct tensor *kept[PROGRAM_KERNEL_VARIABLES]; /* copies, as long as it runs */
  uint32_t locked_count, written_count, kept_count;
  bool on_copies; /* of what it would write */
};

static void variables_unlock(struct kernel_variables *v) {
  for (uint32_t i = 0; i < v->locked_count; i++)
    pthread_mutex_unlock(&v->locked[i]->lock);
  for (uint32_t i = 0; i < v->kept_count; i++)
    tensor_release(v->kept[i]);
}

static void variables_lock(struct frame *frame, const struct program_instr *instr, struct kernel_variables *v) {
  const uint32_t *args = program_operands(frame->program, instr->args.first);
  for (uint32_t i = 0; i < instr->args.count; i++) {
    if (!(args[i] & PROGRAM_ARG_VARIABLE) || args[i] == PROGRAM_ARG_SCRATCH)
      continue;
    struct variable *variable = rehearsal_variable(frame, args[i] & ~PROGRAM_ARG_VARIABLE);
    uint32_t at = 0;
    while (at < v->locked_count && v->locked[at] < variable)
      at++;
    if (at < v->locked_count && v->locked[at] == variable)
      continue;
    memmove(&v->locked[at + 1], &v->locked[at], (v->locked_count - at) * sizeof *v->locked);
    v->locked[at] = variable;
    v->locked_count++;
  }
  for (uint32_t i = 0; i < v->locked_count; i++)
    pthread_mutex_lock(&v->locked[i]->lock);
}

static status check_variable_shape(const struct frame *frame, const struct variable *variable, const uint32_t *dims, uint32_t rank) {
  struct shape wanted;
  TRY(shape_eval(frame->program, dims, rank, frame->symbols, &wanted));
  const struct shape *is = &variable->value->shape;
  if (!shape_equal(is, &wanted))
    return fail(INVALID_ARGUMENT, "variable '%s' has shape %s, expected is %s", variable->name, shape_text(is), shape_text(&wanted));
  return OK;
}

/* Where a step that was applied before writes instead: its other outputs are there again, and the variable stays. */
static status bind_copy(struct frame *frame, uint32_t i, const struct variable *variable, const struct shape *shape,
                        struct kernel_variables *v) {
  struct tensor *copy;
  TRY(shape ? buffer_tensor(frame->part->task->buffers, variable->dtype, shape, &copy) : tensor_clone(variable->value, &copy));
  v->kept[v->kept_count++] = copy;
  frame->buffers[i] = copy->data;
  return OK;
}

/* What was drawn in a rehearsal is drawn again, from the state that the generator had then. */
static status bind_generator(struct frame *frame, uint32_t i, const struct program_instr *instr, struct variable *variable,
                             struct kernel_variables *v) {
  struct tensor **then, *copy;
  frame->buffers[i] = variable->value->data;
  if (rehearsal_find(frame, instr, &then)) {
    frame->buffers[i] = then[0]->data;
    return OK;
  }
  if (!rehearsal_is_on(frame))
    return OK;
  TRY(tensor_clone(variable->value, &copy));
  v->kept[v->kept_count++] = copy;
  return rehearsal_keep(frame, instr, &copy, 1);
}

/* Fills the buffers of one variable argument; `spec` is its mode, rank and size codes. */
static status bind_variable(struct frame *frame, uint32_t i, const struct program_instr *instr, struct variable *variable,
                            const uint32_t *spec, struct kernel_variables *v) {
  if (spec[0] != PROGRAM_VARIABLE_IN)
    variable_will_change(variable);
  if (spec[0] == PROGRAM_VARIABLE_OUT) {
    struct shape shape;
    TRY(shape_eval(frame->program, spec + 2, spec[1], frame->symbols, &shape));
    if (v->on_copies)
      return bind_copy(frame, i, variable, &shape, v);
    TRY(variable_prepare(variable, &shape));
    v->written[v->written_count++] = variable;
  } else {
    TRY(variable_check(variable));
    if (!variable->has_shape)
      TRY(check_variable_shape(frame, variable, spec + 2, spec[1]));
    if (v->on_copies && spec[0] == PROGRAM_VARIABLE_INOUT)
      return bind_copy(frame, i, variable, NULL, v);
    if (frame->rehearsal && variable_is_random(variable))
      return bind_generator(frame, i, instr, variable, v);
  }
  frame->buffers[i] = variable->value->data;
  return OK;
}

static status bind_variables(struct frame *frame, const struct program_instr *instr, struct kernel_variables *v) {
  const uint32_t *args = program_operands(frame->program, instr->args.first);
  const uint32_t *spec = program_operands(frame->program, instr->shapes);
  for (uint32_t i = 0; i < instr->args.count; i++) {
    if (!(args[i] & PROGRAM_ARG_VARIABLE) || args[i] == PROGRAM_ARG_SCRATCH)
      continue;
    TRY(bind_variable(frame, i, instr, rehearsal_variable(frame, args[i] & ~PROGRAM_ARG_VARIABLE), spec, v));
    spec += 2 + spec[1];
  }
  return OK;
}

/* Initialising leaves alone what was restored: it is there for what no checkpoint holds. */
static bool is_kept(const struct frame *frame, const struct variable *variable) {
  return __builtin_expect(variable->restored, 0) && (frame->step->is_once || frame->step->entry == frame->part->task->init_entry);
}

static bool updates_kept(const struct frame *frame, const struct kernel_variables *v) {
  for (uint32_t i = 0; i < v->locked_count; i++)
    if (is_kept(frame, v->locked[i]))
      return true;
  return false;
}

/* Locks the variables, checks them, and keeps them locked while the kernel runs. */
static status run_on_variables(struct frame *frame, const struct program_instr *instr, bool on_copies) {
  struct kernel_variables v;
  v.locked_count = v.written_count = v.kept_count = 0;
  v.on_copies = on_copies;
  variables_lock(frame, instr, &v);
  if (updates_kept(frame, &v)) {
    variables_unlock(&v);
    return OK;
  }
  status result = bind_variables(frame, instr, &v);
  if (result == OK)
    result = kernel_launch(frame, instr);
  for (uint32_t i = 0; result == OK && i < v.written_count; i++)
    atomic_store_explicit(&v.written[i]->initialized, true, memory_order_release);
  variables_unlock(&v);
  return result;
}

/* A rehearsal has copies of what the kernel changes. */
static status rehearse_changes(struct frame *frame, const struct program_instr *instr) {
  const uint32_t *args = program_operands(frame->program, instr->args.first);
  const uint32_t *spec = program_operands(frame->program, instr->shapes);
  for (uint32_t i = 0; i < instr->args.count; i++) {
    if (!(args[i] & PROGRAM_ARG_VARIABLE) || args[i] == PROGRAM_ARG_SCRATCH)
      continue;
    if (spec[0] != PROGRAM_VARIABLE_IN)
      TRY(rehearsal_change(frame, args[i] & ~PROGRAM_ARG_VARIABLE));
    spec += 2 + spec[1];
  }
  return OK;
}

static status run_update(struct frame *frame, const struct program_instr *instr) {
  struct change change;
  TRY(frame_change(frame, instr, &change));
  if (rehearsal_is_on(frame))
    TRY(rehearse_changes(frame, instr));
  if (!change.applies)
    return instr->outputs.count > 0 ? run_on_variables(frame, instr, true) : OK;
  TRY(run_on_variables(frame, instr, false));
  return frame_changed(frame, instr, NULL, 0);
}

static inline status run_kernel(struct frame *frame, const struct program_instr *instr) {
  if (instr->flags & (INSTR_LATE | INSTR_MAKES)) {
    if (instr->flags & INSTR_LATE)
      TRY(late_sizes(frame, instr));
    if (instr->flags & INSTR_MAKES)
      TRY(frame_make_outputs(frame, instr));
  }
  const uint32_t *args = program_operands(frame->program, instr->args.first);
  void **buffers = frame->buffers;
  for (uint32_t i = 0; i < instr->args.count; i++)
    buffers[i] = args[i] & PROGRAM_ARG_VARIABLE ? NULL : frame->data[args[i]];
  if (instr->flags & INSTR_CHANGES)
    return run_update(frame, instr);
  return instr->flags & INSTR_LOCKS ? run_on_variables(frame, instr, false) : kernel_launch(frame, instr);
}

/* ---- values ---- */

static status run_read(struct frame *frame, const struct program_instr *instr) {
  struct tensor *value;
  uint32_t slot = *program_operands(frame->program, instr->outputs.first);
  struct variable *variable = rehearsal_variable(frame, instr->number);
  if ((instr->flags & INSTR_OPTIONAL) && !atomic_load(&variable->initialized)) {
    frame_drop(frame, slot); /* the loop says so if it turns */
    frame->data[slot] = NULL;
    return OK;
  }
  TRY(variable_read(variable, &value));
  frame_set(frame, slot, value);
  if (instr->flags & INSTR_DEFINES)
    TRY(frame_bind(frame, slot, &value->shape));
  return OK;
}

static status run_assign(struct frame *frame, const struct program_instr *instr) {
  uint32_t slot = *program_operands(frame->program, instr->args.first);
  struct shape shape;
  struct change change;
  if (is_kept(frame, &frame->part->task->variables[instr->number]))
    return OK;
  TRY(frame_change(frame, instr, &change));
  if (!change.applies)
    return OK;
  TRY(frame_shape(frame, slot, &shape));
  TRY(rehearsal_change(frame, instr->number));
  TRY(variable_assign(rehearsal_variable(frame, instr->number), &shape, frame->data[slot]));
  return frame_changed(frame, instr, NULL, 0);
}

static status run_variable(struct frame *frame, const struct program_instr *instr) {
  uint32_t slot = *program_operands(frame->program, instr->outputs.first);
  if (instr->flags & INSTR_MAKES)
    TRY(frame_make(frame, slot));
  *(bool *)frame->data[slot] = atomic_load(&rehearsal_variable(frame, instr->number)->initialized);
  return OK;
}

static status run_feed(struct frame *frame, const struct program_instr *instr) {
  if (!frame->step->feeds)
    return fail(INTERNAL, "a feed in a part that is not the driver's");
  frame_set(frame, *program_operands(frame->program, instr->outputs.first), tensor_retain(frame->step->feeds[instr->number]));
  return OK;
}

static status run_fetch(struct frame *frame, const struct program_instr *instr) {
  uint32_t slot = *program_operands(frame->program, instr->args.first);
  struct tensor *tensor;
  if (!frame->step->partial)
    return frame_take(frame, slot, &frame->step->fetches[instr->number]);
  TRY(frame_take(frame, slot, &tensor));
  partial_give(frame->step->partial, instr->number, tensor);
  return OK;
}

/* One element: gives its symbol the value, or must be what was assumed. Symbols are sizes: the compiler takes none for less than 0. */
static status bind_element(struct frame *frame, uint32_t code, int64_t value) {
  const int64_t *words = program_words(frame->program, code);
  uint32_t symbol = size_symbol(words);
  if (value < 0)
    return fail(INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)value);
  if (symbol != PROGRAM_NONE && frame->symbols[symbol] == SYMBOL_UNBOUND) {
    frame->symbols[symbol] = value;
    return OK;
  }
  int64_t expected;
  if (!size_eval(words, frame->symbols, &expected))
    return fail(UNIMPLEMENTED, "a size that is a formula over sizes that are not known yet");
  if (expected != value)
    return fail(INVALID_ARGUMENT, "a size is %lld, expected is %lld", (long long)value, (long long)expected);
  return OK;
}

static status run_bind(struct frame *frame, const struct program_instr *instr) {
  const uint32_t *args = program_operands(frame->program, instr->args.first);
  const uint32_t *codes = program_operands(frame->program, instr->sizes.first);
  uint32_t at = 0;
  for (uint32_t i = 0; i < instr->args.count; i++) {
    struct shape shape;
    TRY(frame_shape(frame, args[i], &shape));
    int64_t count = shape_count(&shape);
    for (int64_t j = 0; j < count && at < instr->sizes.count; j++)
      TRY(bind_element(frame, codes[at++], element_int_at((enum dtype)frame->slots[args[i]].dtype, frame->data[args[i]], j)));
  }
  return at == instr->sizes.count ? OK : fail(INVALID_ARGUMENT, "%u sizes, expected are %u", at, instr->sizes.count);
}

/* The side of a cond that was taken. */
static status run_merge(struct frame *frame, const struct program_instr *instr) {
  const uint32_t *args = program_operands(frame->program, instr->args.first);
  uint32_t slot = *program_operands(frame->program, instr->outputs.first);
  struct tensor *tensor;
  TRY(frame_take(frame, args[1 + *(const bool *)frame->data[args[0]]], &tensor));
  frame_set(frame, slot, tensor);
  return frame_bind(frame, slot, &tensor->shape);
}

bool frame_guards_hold(const struct frame *frame, const struct program_instr *instr) {
  const uint32_t *guards = program_operands(frame->program, instr->guards.first);
  for (uint32_t i = 0; i < instr->guards.count; i++)
    if (*(const bool *)frame->data[guards[i] / 2] != (guards[i] & 1)) /* the outermost first: an inner one may not be there */
      return false;
  return true;
}

/* ---- other tasks ---- */

static uint32_t peer_task(const struct frame *frame, const struct program_instr *instr) {
  return instr->peer >= PROGRAM_TASK_SELF ? frame->step->driver : instr->peer;
}

static status run_send(struct frame *frame, const struct program_instr *instr) {
  struct task *task = frame->part->task;
  struct tensor *tensor;
  if (rehearsal_skips(frame, instr))
    return OK;
  TRY(frame_take(frame, *program_operands(frame->program, instr->args.first), &tensor));
  uint32_t peer = peer_task(frame, instr);
  if (peer == task->program->task)
    rendezvous_put(task->rendezvous, frame->step->id, instr->number, tensor);
  else
    task->exchange->send(task->exchange->self, peer, frame->step->id, instr->number, tensor);
  return OK;
}

status frame_receive(struct frame *frame, const struct program_instr *instr, struct tensor *tensor) {
  uint32_t slot = *program_operands(frame->program, instr->outputs.first);
  const struct program_slot *code = &frame->slots[slot];
  if (tensor->dtype != code->dtype) {
    status result = fail(INVALID_ARGUMENT, "received %s, expected is %s", dtype_name(tensor->dtype), dtype_name((enum dtype)code->dtype));
    tensor_release(tensor);
    return result;
  }
  frame_set(frame, slot, tensor);
  TRY(rehearsal_keep(frame, instr, &tensor, 1));
  return frame_bind(frame, slot, &tensor->shape);
}

static status run_recv(struct frame *frame, const struct program_instr *instr) {
  struct rendezvous *rendezvous = frame->part->task->rendezvous;
  struct tensor **came;
  if (rehearsal_find(frame, instr, &came))
    return frame_receive(frame, instr, tensor_retain(came[0]));
  struct tensor *tensor = frame->is_inside ? rendezvous_poll(rendezvous, frame->step->id, instr->number) : NULL;
  if (!tensor) {
    frame_pause(frame);
    TRY(rendezvous_take(rendezvous, frame->step->id, instr->number, &tensor));
  }
  return frame_receive(frame, instr, tensor);
}

/* ---- host calls ---- */

/* Waits for this call; in a dataflow part others may end meanwhile: they are put back. */
static struct inbox_item *await_item(struct inbox *inbox, struct inbox_item *wanted, bool heed_poke) {
  struct inbox_item *others = NULL, *item;
  while ((item = inbox_take(inbox, true, heed_poke)) && item != wanted) {
    item->next = others;
    others = item;
  }
  while (others) {
    struct inbox_item *other = others;
    others = other->next;
    inbox_put(inbox, other);
  }
  return item;
}

static status wait_host_call(struct frame *frame, struct host_call *call) {
  bool own_inbox = !frame->part->code->dataflow;
  frame_pause(frame);
  if (own_inbox)
    step_add_inbox(frame->step, &frame->inbox);
  struct inbox_item *item = await_item(&frame->inbox, &call->item, true);
  if (!item && !call->withdraw(call))
    item = await_item(&frame->inbox, &call->item, false); /* it is being finished this moment */
  if (own_inbox) {
    step_remove_inbox(frame->step, &frame->inbox);
    inbox_clear(&frame->inbox);
  }
  if (!item)
    return fail(CANCELLED, "the step was cancelled");
  return call->code == OK ? OK : fail(call->code, "%s", call->text);
}

static status run_host(struct frame *frame, const struct program_instr *instr) {
  struct host_call call;
  struct change change = {.applies = true};
  bool changes = instr->flags & INSTR_CHANGES;
  if (rehearsal_find(frame, instr, &change.outputs))
    return frame_give_again(frame, instr, change.outputs);
  if (changes)
    TRY(frame_change(frame, instr, &change));
  if (!change.applies)
    return frame_repeat_call(frame, instr, &change);
  host_call_init(frame, instr, &call);
  status result = host_call_start(frame, &call);
  if (result == OK && call.pending)
    result = wait_host_call(frame, &call);
  if (result == OK && changes)
    result = frame_changed(frame, instr, call.outputs, call.output_count);
  if (result == OK)
    result = rehearsal_keep(frame, instr, call.outputs, call.output_count);
  return result == OK ? host_call_end(frame, &call) : result;
}

/* ---- blocks ---- */

static inline status run_one(struct frame *frame, const struct program_instr *instr) {
  switch ((enum program_op)instr->op) {
  case INSTR_KERNEL: return run_kernel(frame, instr);
  case INSTR_ALIAS:
    frame->data[*program_operands(frame->program, instr->outputs.first)] =
      frame->data[*program_operands(frame->program, instr->args.first)];
    return OK;
  case INSTR_READ: return run_read(frame, instr);
  case INSTR_ASSIGN: return run_assign(frame, instr);
  case INSTR_VARIABLE: return run_variable(frame, instr);
  case INSTR_FEED: return run_feed(frame, instr);
  case INSTR_FETCH: return run_fetch(frame, instr);
  case INSTR_HOST: return run_host(frame, instr);
  case INSTR_BIND: return run_bind(frame, instr);
  case INSTR_IF: return frame_run_if(frame, instr);
  case INSTR_WHILE: return frame_run_while(frame, instr);
  case INSTR_SEND: return run_send(frame, instr);
  case INSTR_RECV: return run_recv(frame, instr);
  case INSTR_NOOP: return OK;
  case INSTR_MERGE: return run_merge(frame, instr);
  }
  return fail(INTERNAL, "instruction %d", instr->op);
}

void frame_record(struct frame *frame, const struct program_instr *instr, uint64_t begin) {
  uint64_t end = trace_now();
  if (frame->part->task->trace)
    trace_add(frame->part->task->trace, program_text(frame->program, instr->node), program_text(frame->program, instr->tf_op), begin, end);
  if (frame->step->stats)
    step_stats_add(frame->step->stats, frame, instr, begin, end);
}

static status run_recorded(struct frame *frame, const struct program_instr *instr) {
  uint64_t begin = trace_now();
  TRY(run_one(frame, instr));
  frame_record(frame, instr, begin);
  return OK;
}

status frame_run_instr(struct frame *frame, const struct program_instr *instr) {
  status result = OK;
  atomic_store_explicit(&frame->at, instr, memory_order_relaxed);
  if (__builtin_expect(instr->guards.count == 0, 1) || frame_guards_hold(frame, instr))
    result = __builtin_expect(frame->is_recorded, 0) ? run_recorded(frame, instr) : run_one(frame, instr);
  else if (instr->op == INSTR_FETCH)
    result = fail(INVALID_ARGUMENT, "has no value: it lies on the side of a cond that was not taken");
  if (result != OK)
    return frame_blame(frame, instr, result);
  frame_release_slots(frame, instr);
  return OK;
}

status frame_run_block(struct frame *frame, const struct program_block *block) {
  const struct program_instr *instr = program_instr(frame->program, block->instrs.first);
  for (uint32_t i = 0; i < block->instrs.count; i++)
    if (__builtin_expect(instr[i].flags & INSTR_BESIDE, 0))
      TRY(frame_run_group(frame, &instr[i], &i));
    else
      TRY(frame_run_instr(frame, &instr[i]));
  return OK;
}

status frame_run(struct frame *frame) {
  if (frame->part->code->dataflow)
    return frame_run_dataflow(frame);
  struct program_block block = *program_block(frame->program, frame->part->code->block);
  block.instrs = rehearsal_instrs(frame, block.instrs);
  return frame_run_block(frame, &block);
}
