/* arena_plan.c: interval packing: the largest value first, each at the lowest place that is free for its lifetime.
 *
 * In dataflow parts the order is not known, so every value lives for the whole step.
 */
#include "runtime/memory/arena_plan.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/memory/thread_plan.h"
#include "runtime/program/size.h"

#define ARENA_ALIGN 64

static int compare_items(const void *a, const void *b) {
  const struct arena_item *x = *(struct arena_item *const *)a, *y = *(struct arena_item *const *)b;
  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? 1 : -1;
  return x < y ? -1 : x > y;
}

static int compare_offsets(const void *a, const void *b) {
  const struct arena_item *x = *(struct arena_item *const *)a, *y = *(struct arena_item *const *)b;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The lowest place beside the items of `near`, which are sorted by offset. */
static uint64_t lowest_gap(struct arena_item *const *near, uint32_t count, uint64_t bytes) {
  uint64_t place = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (near[i]->offset >= place + bytes)
      return place;
    uint64_t end = near[i]->offset + near[i]->bytes;
    place = end > place ? end : place;
  }
  return place;
}

uint64_t arena_place(struct arena_item *items, uint32_t count) {
  struct arena_item **order = calloc((size_t)count + 1, sizeof *order);
  struct arena_item **near = calloc((size_t)count + 1, sizeof *near);
  if (!order || !near) {
    free(order);
    free(near);
    return UINT64_MAX;
  }
  for (uint32_t i = 0; i < count; i++) {
    order[i] = &items[i];
    items[i].bytes = (items[i].bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
  }
  qsort(order, count, sizeof *order, compare_items);
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; i++) {
    struct arena_item *item = order[i];
    uint32_t near_count = 0;
    for (uint32_t j = 0; j < i; j++)
      if (order[j]->first <= item->last && item->first <= order[j]->last)
        near[near_count++] = order[j];
    qsort(near, near_count, sizeof *near, compare_offsets);
    item->offset = lowest_gap(near, near_count, item->bytes);
    if (item->offset + item->bytes > total)
      total = item->offset + item->bytes;
  }
  free(order);
  free(near);
  return total;
}

/* Visits all instructions of a part: its blocks, with those inside, are one range that starts at the outer block. */
static uint32_t part_sum(const struct program *program, const struct program_part *part, bool kernels) {
  const struct program_block *outer = program_block(program, part->block);
  uint32_t total = 0;
  for (uint32_t i = 0; i < part->instr_count; i++) {
    const struct program_instr *instr = program_instr(program, outer->instrs.first + i);
    if (instr->op == INSTR_KERNEL)
      total += kernels ? 1 : instr->sizes.count;
  }
  return total;
}

uint32_t part_size_count(const struct program *program, const struct program_part *part) { return part_sum(program, part, false); }
uint32_t part_kernel_count(const struct program *program, const struct program_part *part) { return part_sum(program, part, true); }

void kernel_launch_query(const struct kernel_code *code, const int64_t *sizes, struct kernel_launch *out) {
  out->scratch = code->query(sizes, KERNEL_SCRATCH);
  out->phases = code->query(sizes, KERNEL_PHASES);
  out->tiles = code->query(sizes, 0);
  out->cost = code->query(sizes, KERNEL_COST);
}

static status plan_sizes(const struct program *program, const struct program_instr *instr, struct arena_plan *plan) {
  const uint32_t *codes = program_operands(program, instr->sizes.first);
  for (uint32_t i = 0; i < instr->sizes.count; i++)
    if (!size_eval(program_words(program, codes[i]), plan->symbols, &plan->sizes[instr->sizes_at + i]))
      return fail(INTERNAL, "%s '%s': a size is not known when the step starts", program_text(program, instr->tf_op),
                  program_text(program, instr->node));
  return OK;
}
/* The first of a kernel's outputs whose shape is not possible; NULL: all are. */
static const struct program_slot *find_no_shape(const struct program *program, const struct program_part *part,
                                                const struct program_instr *instr, const struct arena_plan *plan) {
  const uint32_t *outputs = program_operands(program, instr->outputs.first);
  for (uint32_t i = 0; i < instr->outputs.count; i++)
    if (plan->offsets[outputs[i]] == ARENA_NO_SHAPE)
      return program_slot(program, part->slots.first + outputs[i]);
  return NULL;
}
static status fail_shape(const struct program *program, const struct program_instr *instr, const struct program_slot *slot,
                         const struct arena_plan *plan) {
  struct shape shape;
  return status_prefix(shape_eval(program, program_operands(program, slot->dims), slot->rank, plan->symbols, &shape),
                       "%s '%s': ", program_text(program, instr->tf_op), program_text(program, instr->node));
}
static status plan_kernels(const struct program *program, const struct program_part *part, const struct kernel_code *kernels,
                           int64_t shared_line_ns, struct arena_plan *plan) {
  const struct program_block *outer = program_block(program, part->block);
  for (uint32_t i = 0; i < part->instr_count; i++) {
    const struct program_instr *instr = program_instr(program, outer->instrs.first + i);
    if (instr->op != INSTR_KERNEL || (instr->flags & INSTR_LATE))
      continue;
    struct kernel_launch *launch = &plan->launches[instr->kernel_at];
    const struct program_slot *no_shape = find_no_shape(program, part, instr, plan);
    TRY(plan_sizes(program, instr, plan));
    if (no_shape && i < outer->instrs.count && instr->guards.count == 0)
      return fail_shape(program, instr, no_shape, plan);
    if (no_shape) {
      launch->cost = KERNEL_NO_SHAPE;
      continue;
    }
    kernel_launch_query(&kernels[instr->number], plan->sizes + instr->sizes_at, launch);
    if (launch->scratch > plan->scratch_max)
      plan->scratch_max = launch->scratch;
  }
  return thread_plan(program, part, kernels, shared_line_ns, plan);
}

static status slot_bytes(const struct program *program, const struct program_slot *slot, const int64_t *symbols, uint64_t *out) {
  struct shape shape;
  TRY(shape_eval(program, program_operands(program, slot->dims), slot->rank, symbols, &shape));
  *out = (uint64_t)shape_count(&shape) * dtype_size((enum dtype)slot->dtype);
  return OK;
}
/* How long the value of a slot in the arena lives, and how large it is: nothing, where there is no such shape. */
static status plan_item(const struct program *program, const struct program_part *part, const struct program_slot *slot,
                        const struct arena_plan *plan, struct arena_item *item) {
  status result = slot_bytes(program, slot, plan->symbols, &item->bytes);
  item->first = part->dataflow ? 0 : slot->first;
  item->last = part->dataflow ? UINT32_MAX : slot->last;
  if (result == INVALID_ARGUMENT)
    item->bytes = ARENA_NO_SHAPE;
  return result == INVALID_ARGUMENT ? OK : result;
}

static status plan_slots(const struct program *program, const struct program_part *part, struct arena_item *items,
                         struct arena_plan *plan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < part->slots.count; i++) {
    const struct program_slot *slot = program_slot(program, part->slots.first + i);
    plan->offsets[i] = ARENA_NO_PLACE;
    if (slot->storage != STORAGE_ARENA)
      continue;
    TRY(plan_item(program, part, slot, plan, &items[count]));
    if (items[count].bytes == ARENA_NO_SHAPE)
      plan->offsets[i] = ARENA_NO_SHAPE;
    else
      count++;
  }
  plan->bytes = arena_place(items, count);
  if (plan->bytes > (uint64_t)LIMIT_ELEMENTS)
    return fail(RESOURCE_EXHAUSTED, "a step would need %llu bytes", (unsigned long long)plan->bytes);
  count = 0;
  for (uint32_t i = 0; i < part->slots.count; i++)
    if (program_slot(program, part->slots.first + i)->storage == STORAGE_ARENA && plan->offsets[i] != ARENA_NO_SHAPE)
      plan->offsets[i] = items[count++].offset;
  return OK;
}

status arena_plan_create(const struct program *program, const struct program_part *part, const struct kernel_code *kernels,
                         const int64_t *symbols, uint32_t symbol_count, int64_t shared_line_ns, struct arena_plan **out) {
  struct arena_plan *plan = calloc(1, sizeof *plan);
  struct arena_item *items = calloc((size_t)part->slots.count + 1, sizeof *items);
  if (plan) {
    plan->symbols = calloc((size_t)symbol_count + 1, sizeof *plan->symbols);
    plan->offsets = calloc((size_t)part->slots.count + 1, sizeof *plan->offsets);
    plan->sizes = calloc((size_t)part_size_count(program, part) + 1, sizeof *plan->sizes);
    plan->launches = calloc((size_t)part_kernel_count(program, part) + 1, sizeof *plan->launches);
  }
  status result = OK;
  if (!plan || !items || !plan->symbols || !plan->offsets || !plan->sizes || !plan->launches)
    result = fail(RESOURCE_EXHAUSTED, "no memory");
  else if (symbol_count > 0)
    memcpy(plan->symbols, symbols, symbol_count * sizeof *symbols);
  if (result == OK)
    result = plan_slots(program, part, items, plan);
  if (result == OK)
    result = plan_kernels(program, part, kernels, shared_line_ns, plan);
  free(items);
  if (result == OK)
    *out = plan;
  else
    arena_plan_destroy(plan);
  return result;
}

void arena_plan_destroy(struct arena_plan *plan) {
  if (!plan)
    return;
  free(plan->symbols);
  free(plan->offsets);
  free(plan->sizes);
  free(plan->launches);
  free(plan);
}
