/* arena_plan.c: interval packing: the largest value first, each at the lowest place that is free for its lifetime.
 *
 * In dataflow parts the order is not known, so every value lives for the whole step.
 */
#include "runtime/memory/arena_plan.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/memory/slot_readers.h"
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

/* Of the phase that has most, which as a rule is the one that takes longest. */
static int64_t most_tiles(const struct kernel_code *code, const int64_t *sizes, int64_t phases) {
  int64_t most = 1;
  for (int64_t phase = 0; phase < phases; phase++) {
    int64_t tiles = code->query(sizes, phase);
    most = tiles > most ? tiles : most;
  }
  return most;
}
/* One thread runs a part that gains nothing by others, neither in what runs a known number of times nor in regions that may run often.
 * (Kernels are not looked at one by one: values that one thread alone makes cost the most where several use them.) */
static void plan_threads(struct arena_plan *plan, uint32_t count, const double gain[2]) {
  for (uint32_t i = 0; gain[0] <= 0 && gain[1] <= 0 && i < count; i++)
    plan->launches[i].cost = 0;
}

static status plan_sizes(const struct program *program, const struct program_instr *instr, struct arena_plan *plan) {
  const uint32_t *codes = program_operands(program, instr->sizes.first);
  for (uint32_t i = 0; i < instr->sizes.count; i++)
    if (!size_eval(program_words(program, codes[i]), plan->symbols, &plan->sizes[instr->sizes_at + i]))
      return fail(INTERNAL, "%s '%s': a size is not known when the step starts", program_text(program, instr->tf_op),
                  program_text(program, instr->node));
  return OK;
}

/* Kernels of a part and who reads what they make. */
struct kernels_seen {
  const struct program *program;
  const struct program_part *part;
  const struct kernel_code *kernels;
  struct arena_plan *plan;
  int64_t *tiles; /* by instruction: of what is dealt to threads; else 0, */
  int64_t *turns; /* and how often it runs in a step; 0: not known */
  bool *is_dealt;
  struct slot_reader *readers;
};
static const struct program_instr *instr_of(const struct kernels_seen *s, uint32_t i) {
  return program_instr(s->program, program_block(s->program, s->part->block)->instrs.first + i);
}
static bool is_planned(const struct program_instr *instr) { return instr->op == INSTR_KERNEL && !(instr->flags & INSTR_LATE); }

/* Of a loop over rows of arrays. */
static int64_t rows_of_loop(const struct kernels_seen *s, const struct program_instr *loop) {
  const uint32_t *args = program_operands(s->program, loop->args.first), *outputs = program_operands(s->program, loop->outputs.first);
  int64_t rows;
  if (loop->op != INSTR_WHILE || loop->number + loop->peer == 0)
    return 0;
  uint32_t array = loop->number ? args[loop->args.count - 1] : outputs[loop->outputs.count - 1];
  const struct program_slot *slot = program_slot(s->program, s->part->slots.first + array);
  return size_eval(program_words(s->program, *program_operands(s->program, slot->dims)), s->plan->symbols, &rows) ? rows : 0;
}
/* Regions come behind the instruction that runs them. */
static void see_turns(struct kernels_seen *s) {
  const struct program_block *outer = program_block(s->program, s->part->block);
  for (uint32_t i = 0; i < s->part->instr_count; i++) {
    const struct program_instr *instr = instr_of(s, i);
    s->turns[i] = i < outer->instrs.count ? 1 : s->turns[i];
    for (uint32_t b = 0; b < instr->blocks.count; b++) {
      const struct program_range inside = program_block(s->program, instr->blocks.first + b)->instrs;
      for (uint32_t j = 0; j < inside.count; j++)
        s->turns[inside.first + j - outer->instrs.first] = s->turns[i] * rows_of_loop(s, instr);
    }
  }
}
static void see_launch(struct kernels_seen *s, uint32_t i) {
  const struct program_instr *instr = instr_of(s, i);
  struct kernel_launch *launch = &s->plan->launches[instr->kernel_at];
  const struct kernel_code *code = &s->kernels[instr->number];
  const int64_t *sizes = s->plan->sizes + instr->sizes_at;
  kernel_launch_query(code, sizes, launch);
  if (launch->scratch > s->plan->scratch_max)
    s->plan->scratch_max = launch->scratch;
  int64_t tiles = launch->cost < KERNEL_WORTH_NS ? 0 : most_tiles(code, sizes, launch->phases);
  s->tiles[i] = tiles > 1 ? tiles : 0;
}
/* Whether lines that a kernel writes are read by other threads than its own: what is updated in place, from turn to turn of a loop, stays
 * with the thread that updates it, and what small kernels hand to small ones with the one that runs them. */
static bool shares_lines(const struct kernels_seen *s, uint32_t i) {
  const struct program_instr *instr = instr_of(s, i);
  const uint32_t *outputs = program_operands(s->program, instr->outputs.first);
  for (uint32_t k = 0; k < instr->outputs.count; k++) {
    const struct slot_reader *reader = &s->readers[program_slot(s->program, s->part->slots.first + outputs[k])->root];
    if (s->is_dealt[i] ? reader->only && reader->only != i + 1 : reader->by_several_threads)
      return true;
  }
  return instr->flags & INSTR_CHANGES; /* variables: other steps read them */
}
/* What a second thread would take off a kernel, its part of the tiles, less what it costs that one thread then writes lines which another
 * one has read. */
static int64_t thread_gain(const struct kernels_seen *s, uint32_t i, int64_t shared_line_ns) {
  const struct program_instr *instr = instr_of(s, i);
  const int64_t *sizes = s->plan->sizes + instr->sizes_at;
  int64_t gain = s->tiles[i] ? s->plan->launches[instr->kernel_at].cost / s->tiles[i] * (s->tiles[i] / 2) : 0;
  return gain - (shares_lines(s, i) ? s->kernels[instr->number].query(sizes, KERNEL_SHARING) * shared_line_ns : 0);
}
static void see_kernels(struct kernels_seen *s, int64_t shared_line_ns) {
  double gain[2] = {0}; /* [1]: of what runs nobody knows how often */
  for (uint32_t i = 0; i < s->part->instr_count; i++) {
    const struct program_instr *instr = instr_of(s, i);
    if (is_planned(instr))
      see_launch(s, i);
    s->is_dealt[i] = s->tiles[i] || (instr->flags & INSTR_LATE); /* of those it shows when they run */
  }
  see_turns(s);
  slot_readers_find(s->program, s->part, s->is_dealt, s->readers);
  for (uint32_t i = 0; i < s->part->instr_count; i++)
    if (is_planned(instr_of(s, i)))
      gain[s->turns[i] == 0] += (s->turns[i] ? (double)s->turns[i] : 1) * (double)thread_gain(s, i, shared_line_ns);
  plan_threads(s->plan, part_kernel_count(s->program, s->part), gain);
}

static status plan_kernels(const struct program *program, const struct program_part *part, const struct kernel_code *kernels,
                           int64_t shared_line_ns, struct arena_plan *plan) {
  struct kernels_seen s = {.program = program, .part = part, .kernels = kernels, .plan = plan};
  for (uint32_t i = 0; i < part->instr_count; i++)
    if (is_planned(instr_of(&s, i)))
      TRY(plan_sizes(program, instr_of(&s, i), plan));
  s.tiles = calloc((size_t)part->instr_count + 1, sizeof *s.tiles);
  s.turns = calloc((size_t)part->instr_count + 1, sizeof *s.turns);
  s.is_dealt = calloc((size_t)part->instr_count + 1, sizeof *s.is_dealt);
  s.readers = calloc((size_t)part->slots.count + 1, sizeof *s.readers);
  bool has_memory = s.tiles && s.turns && s.is_dealt && s.readers;
  if (has_memory)
    see_kernels(&s, shared_line_ns);
  free(s.tiles);
  free(s.turns);
  free(s.is_dealt);
  free(s.readers);
  return has_memory ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
}

static status slot_bytes(const struct program *program, const struct program_slot *slot, const int64_t *symbols, uint64_t *out) {
  struct shape shape;
  TRY(shape_eval(program, program_operands(program, slot->dims), slot->rank, symbols, &shape));
  *out = (uint64_t)shape_count(&shape) * dtype_size((enum dtype)slot->dtype);
  return OK;
}

static status plan_slots(const struct program *program, const struct program_part *part, struct arena_item *items,
                         struct arena_plan *plan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < part->slots.count; i++) {
    const struct program_slot *slot = program_slot(program, part->slots.first + i);
    plan->offsets[i] = ARENA_NO_PLACE;
    if (slot->storage != STORAGE_ARENA)
      continue;
    TRY(slot_bytes(program, slot, plan->symbols, &items[count].bytes));
    items[count].first = part->dataflow ? 0 : slot->first;
    items[count].last = part->dataflow ? UINT32_MAX : slot->last;
    count++;
  }
  plan->bytes = arena_place(items, count);
  if (plan->bytes > (uint64_t)LIMIT_ELEMENTS)
    return fail(RESOURCE_EXHAUSTED, "a step would need %llu bytes", (unsigned long long)plan->bytes);
  count = 0;
  for (uint32_t i = 0; i < part->slots.count; i++)
    if (program_slot(program, part->slots.first + i)->storage == STORAGE_ARENA)
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
