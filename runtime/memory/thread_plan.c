/* thread_plan.c: what a second thread takes off each kernel, and what it costs that lines which one thread writes are read by others. */
#include "runtime/memory/thread_plan.h"

#include <stdbool.h>
#include <stdlib.h>

#include "runtime/memory/slot_readers.h"
#include "runtime/program/size.h"

struct thread_planner {
  const struct program *program;
  const struct program_part *part;
  const struct kernel_code *kernels;
  struct arena_plan *plan;
  int64_t *turns; /* by instruction: how often it runs in a step; 0: not known */
  bool *is_dealt; /* whether threads share it */
  struct slot_reader *readers;
};
static const struct program_instr *instr_of(const struct thread_planner *s, uint32_t i) {
  return program_instr(s->program, program_block(s->program, s->part->block)->instrs.first + i);
}
static bool is_planned(const struct program_instr *instr) { return instr->op == INSTR_KERNEL && !(instr->flags & INSTR_LATE); }

/* Of a loop over rows of arrays. */
static int64_t rows_of_loop(const struct thread_planner *s, const struct program_instr *loop) {
  const uint32_t *args = program_operands(s->program, loop->args.first), *outputs = program_operands(s->program, loop->outputs.first);
  int64_t rows;
  if (loop->op != INSTR_WHILE || loop->number + loop->peer == 0)
    return 0;
  uint32_t array = loop->number ? args[loop->args.count - 1] : outputs[loop->outputs.count - 1];
  const struct program_slot *slot = program_slot(s->program, s->part->slots.first + array);
  return size_eval(program_words(s->program, *program_operands(s->program, slot->dims)), s->plan->symbols, &rows) ? rows : 0;
}
/* Regions come behind the instruction that runs them. */
static void see_turns(struct thread_planner *s) {
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
/* ---- kernels ---- */

/* Of the phase that has most, which as a rule is the one that takes longest. */
static int64_t most_tiles(const struct thread_planner *s, const struct program_instr *instr) {
  const struct kernel_code *code = &s->kernels[instr->number];
  const int64_t *sizes = s->plan->sizes + instr->sizes_at;
  int64_t most = 1;
  for (int64_t phase = 0; phase < s->plan->launches[instr->kernel_at].phases; phase++) {
    int64_t tiles = code->query(sizes, phase);
    most = tiles > most ? tiles : most;
  }
  return most;
}
/* Of a late kernel it shows when it runs. */
static bool is_dealt(const struct thread_planner *s, const struct program_instr *instr) {
  bool is_worth = is_planned(instr) && s->plan->launches[instr->kernel_at].cost >= KERNEL_WORTH_NS;
  return (instr->flags & INSTR_LATE) || (is_worth && most_tiles(s, instr) > 1);
}
/* Whether lines that a kernel writes are read by other threads than its own: what is updated in place, from turn to turn of a loop, stays
 * with the thread that updates it, and what small kernels hand to small ones with the one that runs them. */
static bool shares_lines(const struct thread_planner *s, uint32_t i) {
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
static int64_t thread_gain(const struct thread_planner *s, uint32_t i, int64_t shared_line_ns) {
  const struct program_instr *instr = instr_of(s, i);
  int64_t tiles = s->is_dealt[i] ? most_tiles(s, instr) : 1, gain = s->plan->launches[instr->kernel_at].cost / tiles * (tiles / 2);
  int64_t lines = shares_lines(s, i) ? s->kernels[instr->number].query(s->plan->sizes + instr->sizes_at, KERNEL_SHARING) : 0;
  return gain - lines * shared_line_ns;
}

static bool gains_by_threads(struct thread_planner *s, int64_t shared_line_ns) {
  double gain[2] = {0}; /* [1]: of what runs nobody knows how often */
  see_turns(s);
  for (uint32_t i = 0; i < s->part->instr_count; i++)
    s->is_dealt[i] = is_dealt(s, instr_of(s, i));
  slot_readers_find(s->program, s->part, s->is_dealt, s->readers);
  for (uint32_t i = 0; i < s->part->instr_count; i++)
    if (is_planned(instr_of(s, i)))
      gain[s->turns[i] == 0] += (s->turns[i] ? (double)s->turns[i] : 1) * (double)thread_gain(s, i, shared_line_ns);
  return gain[0] > 0 || gain[1] > 0;
}

status thread_plan(const struct program *program, const struct program_part *part, const struct kernel_code *kernels,
                   int64_t shared_line_ns, struct arena_plan *plan) {
  struct thread_planner s = {.program = program, .part = part, .kernels = kernels, .plan = plan};
  s.turns = calloc((size_t)part->instr_count + 1, sizeof *s.turns);
  s.is_dealt = calloc((size_t)part->instr_count + 1, sizeof *s.is_dealt);
  s.readers = calloc((size_t)part->slots.count + 1, sizeof *s.readers);
  bool has_memory = s.turns && s.is_dealt && s.readers;
  if (has_memory && !gains_by_threads(&s, shared_line_ns))
    for (uint32_t i = 0; i < part_kernel_count(program, part); i++)
      if (plan->launches[i].cost > 0)
        plan->launches[i].cost = 0;
  free(s.turns);
  free(s.is_dealt);
  free(s.readers);
  return has_memory ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
}
