/* thread_plan.h: whether the kernels of a part are shared by threads: where that gains more than it costs that they share cache lines.
 *
 * What runs a known number of times, and regions that may run often, are judged each by themselves. Kernels are not looked at one by one:
 * values that one thread alone makes cost the most where several use them. */
#ifndef TFC_RUNTIME_MEMORY_THREAD_PLAN_H
#define TFC_RUNTIME_MEMORY_THREAD_PLAN_H

#include "runtime/memory/arena_plan.h"

/* The plan has its sizes and launches; whose cost is 0 afterwards runs on its caller alone. RESOURCE_EXHAUSTED. */
status thread_plan(const struct program *program, const struct program_part *part, const struct kernel_code *kernels,
                   int64_t shared_line_ns, struct arena_plan *plan);

#endif
