/* arena_plan.h: where a step's values lie in its arena, and how its kernels are launched, for one binding of the symbols
 * that are known when the step starts. Made once for each binding and kept. */
#ifndef TFC_RUNTIME_MEMORY_ARENA_PLAN_H
#define TFC_RUNTIME_MEMORY_ARENA_PLAN_H

#include <stdbool.h>

#include "base/status.h"
#include "runtime/program/program.h"

#define ARENA_NO_PLACE UINT64_MAX
#define ARENA_NO_SHAPE (UINT64_MAX - 1)
#define KERNEL_NO_SHAPE (-1)
#define KERNEL_WORTH_NS 3000  /* what takes less runs on one thread, */
#define KERNEL_WAKES_NS 20000 /* and what takes less than this does not wake others */

/* How a kernel is run for given sizes. */
struct kernel_launch {
  int64_t scratch; /* bytes */
  int64_t phases;
  int64_t tiles; /* of phase 0 */
  int64_t cost;  /* nanoseconds on one core; 0: no other thread is to help; KERNEL_NO_SHAPE: an output's shape is not possible, it fails */
};

struct arena_plan {
  struct arena_plan *next;
  uint64_t bytes;                 /* of the arena */
  int64_t scratch_max;            /* of the kernels whose sizes are known */
  int64_t *symbols;               /* the binding */
  uint64_t *offsets;              /* for each slot; ARENA_NO_PLACE when it is elsewhere, ARENA_NO_SHAPE when there is no such shape */
  int64_t *sizes;                 /* of all kernels, by program_instr.sizes_at */
  struct kernel_launch *launches; /* by program_instr.kernel_at */
  bool is_guess;                  /* what lines that threads share cost was not known yet */
  uint32_t steps;                 /* that a guess has served */
};

/* One interval of memory: live from first to last, both included. */
struct arena_item {
  uint64_t bytes;
  uint32_t first, last;
  uint64_t offset; /* out */
};
/* First fit, the largest first; offsets are multiples of 64. Returns the bytes needed. */
uint64_t arena_place(struct arena_item *items, uint32_t count);

/* symbol_count values at symbols. A shape that is not possible is an error where the step is sure to need it; else what makes it fails,
 * when it runs: the branch that a condition does not take has any sizes. shared_line_ns: what it costs a thread to write a cache line that
 * another one has read. */
status arena_plan_create(const struct program *program, const struct program_part *part, const struct kernel_code *kernels,
                         const int64_t *symbols, uint32_t symbol_count, int64_t shared_line_ns, struct arena_plan **out);
void arena_plan_destroy(struct arena_plan *plan);

/* The size of the arrays of a part. */
uint32_t part_size_count(const struct program *program, const struct program_part *part);
uint32_t part_kernel_count(const struct program *program, const struct program_part *part);
void kernel_launch_query(const struct kernel_code *code, const int64_t *sizes, struct kernel_launch *out);

#endif
