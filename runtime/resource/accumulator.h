/* accumulator.h: gradients that several workers apply and one takes: ConditionalAccumulator and its sparse twin.
 *
 * A gradient of a step before the accumulator's is dropped. Whoever takes waits until enough have been applied, gets their
 * mean (or sum), and begins the next step. A sparse accumulator keeps rows by index; its mean divides each row by the
 * number of gradients that had it. One that is shared is as whoever came first has made it. Threads: any.
 */
#ifndef TFC_RUNTIME_RESOURCE_ACCUMULATOR_H
#define TFC_RUNTIME_RESOURCE_ACCUMULATOR_H

#include "runtime/host/host.h"
#include "runtime/memory/container.h"

struct accumulator;
struct accumulator_spec {
  enum dtype dtype;
  bool sparse, mean;
  bool has_shape;     /* else any shape, that of the first gradient */
  struct shape shape; /* -1: any size */
};
extern const struct resource_maker accumulator_maker; /* argument: const struct accumulator_spec * */

/* driver: the task whose step applies it. */
status accumulator_apply(struct accumulator *a, uint32_t driver, int64_t step, const struct tensor *gradient);
/* indices: int64 [n], growing; values: [n, ...]; whole: int64, the shape that the gradient says it has, or NULL. */
status accumulator_apply_sparse(struct accumulator *a, uint32_t driver, int64_t step, const struct tensor *indices,
                                const struct tensor *values, const struct tensor *whole);
/* Whose gradients a round has: no more than `each` of so many replicas. */
struct accumulator_round {
  int64_t replicas, each; /* 0: of anybody, any number */
};
/* Ends at once or later (host.h): outputs: the gradient; sparse: indices, values, shape. Of a round no more are waited for than those
 * that have
 * not left can give. */
status accumulator_take(struct accumulator *a, struct host_call *call, int64_t required, struct accumulator_round round);
/* A replica is not there. Rounds go on without it, until it applies something again, where enough others are left for what they ask, or
 * `may_leave`; never without one that is needed. Else false: whoever takes ends with DEADLINE_EXCEEDED and the text; NULL: waits on. */
bool accumulator_miss(struct accumulator *a, uint32_t driver, bool may_leave, bool is_needed, const char *text);
/* Nothing counts that was applied, and the step is 0: all has been put back to an earlier moment. Only of accumulators of rounds. */
void accumulator_reset(struct accumulator *a);
/* A replica applies nothing any more; until it applies something again. */
void accumulator_leave(struct accumulator *a, uint32_t driver);
/* Of an accumulator of rounds it only grows. */
void accumulator_set_step(struct accumulator *a, int64_t step);
int64_t accumulator_count(struct accumulator *a);

#endif
