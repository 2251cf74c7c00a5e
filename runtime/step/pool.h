/* pool.h: the threads that kernels run on.
 *
 * A kernel's phases are ranges of tiles; the caller and the workers take chunks of them until none is left. Which thread
 * computes a tile changes no result. Kernels of several steps share the workers; nobody waits for one. Workers spin for a
 * moment after each kernel, then sleep.
 */
#ifndef TFC_RUNTIME_STEP_POOL_H
#define TFC_RUNTIME_STEP_POOL_H

#include <stdbool.h>
#include "base/status.h"
#include "runtime/program/program.h"

struct pool;

/* threads counts the caller: 1 makes no worker; 0: one for each core this process may use. */
status pool_create(int threads, struct pool **out);
/* Accepts NULL. */
void pool_destroy(struct pool *pool);
int pool_threads(const struct pool *pool);
/* Nanoseconds that a thread waits to write a cache line which another one has read (shared_line.h). Measured by the first call; where
 * that finds no other thread at work, as on a busy machine, by a later one. False: not yet, and it is what is usual. */
bool pool_shared_line(struct pool *pool, int64_t *ns);

struct pool_kernel {
  const struct kernel_code *code;
  struct kernel_call call;
  int64_t phases;
};
/* Runs all phases of 1 to PROGRAM_GROUP_MAX kernels, side by side: none may write what another one touches. wakes: workers that sleep
 * are woken, which costs the caller a few microseconds; else those take part that are awake. Checks that fail are in call.fault. The calls
 * and their memory are read until this returns. Any thread. */
void pool_run(struct pool *pool, const struct pool_kernel *kernels, uint32_t count, bool wakes);

/* Denormals are zero, in operands and results, as in TensorFlow: for every thread that runs kernels. */
void float_mode_set(void);

#endif
