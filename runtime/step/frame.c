/* frame.c: making frames, placing their slots, and keeping what slots hold. */
#include "runtime/step/frame.h"

#include <stdlib.h>
#include <string.h>
#include "base/pages.h"
#include "runtime/host/object.h"
#include "runtime/memory/buffer.h"
#include "runtime/memory/variable.h"
#include "runtime/program/size.h"
#include "runtime/step/pool.h"
#include "runtime/step/rehearsal.h"
#include "runtime/step/task_state.h"

#define GUESS_STEPS 16 /* after which it is tried to know better */
#define PLANS_MAX 32   /* bindings kept for each frame: an epoch has two, the full batch and the last one */

/* ---- parts ---- */

/* String constants are offsets in the program: here they become views. */
static void *constant_strings(const struct program *program, const struct program_string *from, int64_t count) {
  const char *base = program_table(program, PROGRAM_DATA);
  struct string_view *views = calloc((size_t)count + 1, sizeof *views);
  for (int64_t i = 0; views && i < count; i++)
    views[i] = (struct string_view){base + from[i].offset, from[i].size};
  return views;
}

static status part_constants(struct part *part, const struct program_slot *slots) {
  const char *base = program_table(part->program, PROGRAM_DATA);
  for (uint32_t i = 0; i < part->code->slots.count; i++) {
    if (slots[i].storage != STORAGE_CONST)
      continue;
    part->constants[i] = (void *)(base + slots[i].data);
    if (slots[i].dtype != DTYPE_STRING)
      continue;
    struct shape shape;
    TRY(shape_eval(part->program, program_operands(part->program, slots[i].dims), slots[i].rank, NULL, &shape));
    part->constants[i] = constant_strings(part->program, part->constants[i], shape_count(&shape));
    if (!part->constants[i])
      return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  return OK;
}

static uint32_t part_arg_max(const struct part *part) {
  uint32_t most = 1;
  uint32_t first = program_block(part->program, part->code->block)->instrs.first;
  for (uint32_t i = 0; i < part->code->instr_count; i++) {
    const struct program_instr *instr = program_instr(part->program, first + i);
    most = instr->args.count > most ? instr->args.count : most;
    most = instr->outputs.count > most ? instr->outputs.count : most;
  }
  return most;
}

status part_init(struct part *part, struct task *task, const struct program_part *code, uint32_t symbol_count) {
  const struct program *program = task->program;
  *part = (struct part){.task = task, .program = program, .code = code, .symbol_count = symbol_count};
  pthread_mutex_init(&part->lock, NULL);
  part->size_count = part_size_count(program, code);
  part->kernel_count = part_kernel_count(program, code);
  part->arg_max = part_arg_max(part);
  part->rehearsed = rehearsal_length(program, code);
  part->constants = calloc((size_t)code->slots.count + 1, sizeof *part->constants);
  part->holders = calloc((size_t)code->slots.count + 1, sizeof *part->holders);
  part->unbound = calloc((size_t)symbol_count + 1, sizeof *part->unbound);
  if (!part->constants || !part->holders || !part->unbound)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  for (uint32_t i = 0; i < symbol_count; i++)
    part->unbound[i] = SYMBOL_UNBOUND;
  const struct program_slot *slots = program_slot(program, code->slots.first);
  for (uint32_t i = 0; i < code->slots.count; i++)
    if (slots[i].storage == STORAGE_TENSOR || slots[i].storage == STORAGE_VARIABLE)
      part->holders[part->holder_count++] = i;
  return part_constants(part, slots);
}

static void frame_destroy(struct frame *frame) {
  if (!frame)
    return;
  while (frame->plans) {
    struct arena_plan *plan = frame->plans;
    frame->plans = plan->next;
    arena_plan_destroy(plan);
  }
  inbox_deinit(&frame->inbox);
  void *arrays[] = {frame->data,    frame->held,    frame->symbols,    frame->sizes,   frame->launches,
                    frame->buffers, frame->views,   frame->views_held, frame->outputs, frame->arena,
                    frame->scratch, frame->strings, frame->needs,      frame->ready,   frame->waits};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    free(arrays[i]);
  free(frame);
}

void part_deinit(struct part *part) {
  while (part->idle) {
    struct frame *frame = part->idle;
    part->idle = frame->next;
    frame_destroy(frame);
  }
  const struct program_slot *slots = part->program ? program_slot(part->program, part->code->slots.first) : NULL;
  for (uint32_t i = 0; slots && part->constants && i < part->code->slots.count; i++)
    if (slots[i].storage == STORAGE_CONST && slots[i].dtype == DTYPE_STRING)
      free(part->constants[i]);
  free(part->constants);
  free(part->holders);
  free(part->unbound);
  pthread_mutex_destroy(&part->lock);
}

/* ---- frames ---- */

static status frame_create(struct part *part, struct frame **out) {
  struct frame *frame = calloc(1, sizeof *frame);
  if (!frame)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  inbox_init(&frame->inbox);
  frame->part = part;
  frame->program = part->program;
  frame->slots = program_slot(part->program, part->code->slots.first);
  uint32_t slots = part->code->slots.count + 1, instrs = part->code->dataflow ? part->code->instr_count + 1 : 1;
  frame->data = calloc(slots, sizeof *frame->data);
  frame->held = calloc(slots, sizeof *frame->held);
  frame->symbols = calloc((size_t)part->symbol_count + 1, sizeof *frame->symbols);
  frame->sizes = calloc((size_t)part->size_count + 1, sizeof *frame->sizes);
  frame->launches = calloc((size_t)part->kernel_count + 1, sizeof *frame->launches);
  frame->buffers = calloc((size_t)part->arg_max + 1, sizeof *frame->buffers);
  frame->views = calloc((size_t)part->arg_max + 1, sizeof *frame->views);
  frame->views_held = calloc((size_t)part->arg_max + 1, sizeof *frame->views_held);
  frame->outputs = calloc((size_t)part->arg_max + 1, sizeof *frame->outputs);
  frame->needs = calloc(instrs, sizeof *frame->needs);
  frame->ready = calloc(instrs, sizeof *frame->ready);
  frame->waits = calloc(instrs, sizeof *frame->waits);
  if (!frame->data || !frame->held || !frame->symbols || !frame->sizes || !frame->launches || !frame->buffers || !frame->views ||
      !frame->views_held || !frame->outputs || !frame->needs || !frame->ready || !frame->waits) {
    frame_destroy(frame);
    return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  *out = frame;
  return OK;
}

status frame_reserve_scratch(struct frame *frame, int64_t bytes) {
  if (bytes <= frame->scratch_bytes)
    return OK;
  free(frame->scratch);
  frame->scratch_bytes = 0;
  int64_t rounded = (bytes + 4095) / 4096 * 4096;
  frame->scratch = pages_create((size_t)rounded);
  if (!frame->scratch)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld bytes that a kernel works in", (long long)bytes);
  frame->scratch_bytes = rounded;
  return OK;
}

static status frame_reserve_arena(struct frame *frame, uint64_t bytes) {
  if (frame->arena && bytes <= frame->arena_bytes)
    return OK;
  free(frame->arena);
  frame->arena_bytes = (bytes + 4096) / 4096 * 4096;
  frame->arena = pages_create(frame->arena_bytes);
  if (!frame->arena) {
    uint64_t wanted = frame->arena_bytes;
    frame->arena_bytes = 0;
    return fail(RESOURCE_EXHAUSTED, "no memory for the %llu bytes of a step", (unsigned long long)wanted);
  }
  return OK;
}

/* Where the slots are that the plan decides; aliases follow what they stand for. */
static void place_slots(struct frame *frame, const struct arena_plan *plan) {
  for (uint32_t i = 0; i < frame->part->code->slots.count; i++) {
    const struct program_slot *slot = &frame->slots[i], *root = &frame->slots[slot->root];
    if (root->storage == STORAGE_ARENA)
      frame->data[i] = plan->offsets[slot->root] == ARENA_NO_SHAPE ? NULL : (char *)frame->arena + plan->offsets[slot->root];
    else if (root->storage == STORAGE_CONST)
      frame->data[i] = frame->part->constants[slot->root];
  }
}

/* Moves the plan for these symbols to the front of the list; NULL when there is none. */
static struct arena_plan *plan_find(struct frame *frame, const int64_t *symbols) {
  size_t bytes = frame->part->symbol_count * sizeof *symbols;
  for (struct arena_plan **at = &frame->plans; *at; at = &(*at)->next)
    if (memcmp((*at)->symbols, symbols, bytes) == 0) {
      struct arena_plan *plan = *at;
      *at = plan->next;
      plan->next = frame->plans;
      frame->plans = plan;
      return plan;
    }
  return NULL;
}

static void plan_drop_last(struct frame *frame) {
  struct arena_plan **at = &frame->plans;
  while ((*at)->next)
    at = &(*at)->next;
  arena_plan_destroy(*at);
  *at = NULL;
  frame->plan_count--;
}

/* The first plan, when it was a guess and no longer needs to be. Each try to measure takes milliseconds: the steps between them double. */
static bool plan_is_outdated(struct frame *frame) {
  struct arena_plan *plan = frame->plans;
  int64_t ns;
  if (!plan->is_guess || ++plan->steps < GUESS_STEPS || (plan->steps & (plan->steps - 1)))
    return false;
  return pool_shared_line(frame->part->task->pool, &ns);
}
static void plan_drop_first(struct frame *frame) {
  struct arena_plan *plan = frame->plans;
  frame->plans = plan->next;
  arena_plan_destroy(plan);
  frame->plan_count--;
}
static status plan_add(struct frame *frame, const int64_t *symbols) {
  const struct part *part = frame->part;
  struct arena_plan *plan;
  int64_t shared_line_ns;
  bool is_known = pool_shared_line(part->task->pool, &shared_line_ns);
  TRY(arena_plan_create(frame->program, part->code, part->task->kernels, symbols, part->symbol_count, shared_line_ns, &plan));
  if (frame->plan_count == PLANS_MAX)
    plan_drop_last(frame);
  plan->is_guess = !is_known;
  plan->next = frame->plans;
  frame->plans = plan;
  frame->plan_count++;
  return OK;
}

/* As the first plan says. */
static status frame_place(struct frame *frame) {
  const struct part *part = frame->part;
  const struct arena_plan *plan = frame->plans;
  TRY(frame_reserve_arena(frame, plan->bytes));
  TRY(frame_reserve_scratch(frame, plan->scratch_max));
  memcpy(frame->sizes, plan->sizes, part->size_count * sizeof *frame->sizes);
  memcpy(frame->launches, plan->launches, part->kernel_count * sizeof *frame->launches);
  place_slots(frame, plan);
  return OK;
}
static status frame_plan(struct frame *frame, const int64_t *symbols) {
  size_t bytes = frame->part->symbol_count * sizeof *symbols;
  bool is_placed = frame->plans && memcmp(frame->plans->symbols, symbols, bytes) == 0, is_found = is_placed || plan_find(frame, symbols);
  if (is_found && plan_is_outdated(frame)) {
    plan_drop_first(frame);
    is_found = is_placed = false;
  }
  if (!is_found)
    TRY(plan_add(frame, symbols));
  memcpy(frame->symbols, symbols, bytes);
  return is_placed ? OK : frame_place(frame);
}

/* Both under the part's lock. */
static void enter_busy(struct frame *frame, struct step *step) {
  struct part *part = frame->part;
  frame->step = step;
  frame->rehearsal = NULL;
  frame->is_recorded = part->task->trace || step->stats;
  frame->is_part = frame->is_inside = false;
  atomic_store_explicit(&frame->at, NULL, memory_order_relaxed);
  frame->previous = NULL;
  frame->next = part->busy;
  if (part->busy)
    part->busy->previous = frame;
  part->busy = frame;
}

static void leave_busy(struct frame *frame) {
  if (frame->next)
    frame->next->previous = frame->previous;
  if (frame->previous)
    frame->previous->next = frame->next;
  else
    frame->part->busy = frame->next;
  frame->step = NULL;
}

status frame_acquire(struct part *part, struct step *step, const int64_t *symbols, struct frame **out) {
  pthread_mutex_lock(&part->lock);
  struct frame *frame = part->idle;
  if (frame) {
    part->idle = frame->next;
    enter_busy(frame, step);
  }
  pthread_mutex_unlock(&part->lock);
  if (!frame) {
    TRY(frame_create(part, &frame));
    pthread_mutex_lock(&part->lock);
    enter_busy(frame, step);
    pthread_mutex_unlock(&part->lock);
  }
  frame->fault.code = 0;
  status result = frame_plan(frame, symbols);
  if (result != OK) {
    pthread_mutex_lock(&part->lock);
    leave_busy(frame);
    pthread_mutex_unlock(&part->lock);
    frame_destroy(frame); /* half placed: not to be used again */
    return result;
  }
  *out = frame;
  return OK;
}

void frame_release(struct frame *frame) {
  struct part *part = frame->part;
  for (uint32_t i = 0; i < part->holder_count; i++) {
    tensor_release(frame->held[part->holders[i]]);
    frame->held[part->holders[i]] = NULL;
  }
  for (uint32_t i = 0; i < frame->string_count; i++)
    tensor_release(frame->strings[i]);
  frame->string_count = 0;
  pthread_mutex_lock(&part->lock);
  leave_busy(frame);
  frame->next = part->idle;
  part->idle = frame;
  pthread_mutex_unlock(&part->lock);
}

/* ---- slots ---- */

/* Elements of strings may have been copied as views: their bytes must stay. */
static void keep_strings(struct frame *frame, struct tensor *tensor) {
  if (frame->string_count == frame->string_capacity) {
    uint32_t capacity = frame->string_capacity * 2 + 16;
    struct tensor **grown = realloc(frame->strings, capacity * sizeof *grown);
    if (!grown)
      return; /* leaked rather than freed under somebody's view */
    frame->strings = grown;
    frame->string_capacity = capacity;
  }
  frame->strings[frame->string_count++] = tensor;
}

void frame_drop(struct frame *frame, uint32_t slot) {
  struct tensor *tensor = frame->held[slot];
  if (!tensor)
    return;
  frame->held[slot] = NULL;
  if (tensor->dtype == DTYPE_STRING)
    keep_strings(frame, tensor);
  else
    tensor_release(tensor);
}

void frame_set(struct frame *frame, uint32_t slot, struct tensor *tensor) {
  frame_drop(frame, slot);
  frame->held[slot] = tensor;
  frame->data[slot] = tensor->data;
}

status frame_shape(const struct frame *frame, uint32_t slot, struct shape *out) {
  if (frame->slots[slot].any_rank && frame->held[slot]) {
    *out = frame->held[slot]->shape;
    return OK;
  }
  const struct program_slot *code = &frame->slots[slot];
  return shape_eval(frame->program, program_operands(frame->program, code->dims), code->rank, frame->symbols, out);
}

status frame_bind(struct frame *frame, uint32_t slot, const struct shape *shape) {
  const struct program_slot *code = &frame->slots[slot];
  return code->any_rank ? OK : shape_bind(frame->program, program_operands(frame->program, code->dims), code->rank, shape, frame->symbols);
}

status frame_make(struct frame *frame, uint32_t slot) {
  struct shape shape;
  struct tensor *tensor;
  TRY(frame_shape(frame, slot, &shape));
  TRY(buffer_tensor(frame->part->task->buffers, (enum dtype)frame->slots[slot].dtype, &shape, &tensor));
  frame_set(frame, slot, tensor);
  return OK;
}

static void view_release(struct tensor *view) { tensor_release(view->owner); }

/* Another shape over the same memory. */
static status tensor_view(struct tensor *base, enum dtype dtype, const struct shape *shape, struct tensor **out) {
  struct tensor *view = calloc(1, sizeof *view);
  if (!view)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  view->dtype = dtype;
  view->shape = *shape;
  view->data = base->data;
  view->count = shape_count(shape);
  view->references = 1;
  view->release_data = view_release;
  view->owner = tensor_retain(base);
  *out = view;
  return OK;
}

/* A variable is copied under its lock: what leaves the step is a value that it had, not half an update. */
static void copy_elements(struct frame *frame, uint32_t slot, struct tensor *to) {
  const struct program_slot *root = &frame->slots[frame->slots[slot].root];
  struct variable *variable = root->storage == STORAGE_VARIABLE ? &frame->part->task->variables[root->data] : NULL;
  if (variable)
    pthread_mutex_lock(&variable->lock);
  memcpy(to->data, frame->data[slot], (size_t)tensor_byte_size(to));
  if (variable)
    pthread_mutex_unlock(&variable->lock);
}

static status copy_out(struct frame *frame, uint32_t slot, const struct shape *shape, struct tensor **out) {
  enum dtype dtype = (enum dtype)frame->slots[slot].dtype;
  if (dtype == DTYPE_STRING)
    return tensor_copy_in(dtype, shape, frame->data[slot], out);
  TRY(buffer_tensor(frame->part->task->buffers, dtype, shape, out));
  if ((*out)->count > 0)
    copy_elements(frame, slot, *out);
  return OK;
}

status frame_take(struct frame *frame, uint32_t slot, struct tensor **out) {
  uint32_t root = frame->slots[slot].root;
  struct tensor *held = frame->held[root];
  bool shareable = held && frame->slots[root].storage == STORAGE_TENSOR && frame->slots[slot].dtype != DTYPE_STRING;
  if (shareable && slot == root) {
    *out = tensor_retain(held);
    return OK;
  }
  struct shape shape;
  TRY(frame_shape(frame, slot, &shape));
  if (shareable && tensor_has_objects(held))
    return objects_share(held, (struct object **)frame->data[slot] - objects_of(held), &shape, out);
  return shareable ? tensor_view(held, (enum dtype)frame->slots[slot].dtype, &shape, out) : copy_out(frame, slot, &shape, out);
}
