/* random_source.h: where a random op's key and counter come from.
 *
 * Stateless ops get them as values. A stateful op keeps its counter in a hidden variable of its task: one u64 that a kernel
 * reads, draws from and moves on in the same step; its key is the seed attribute, the upper half of its counter is seed2. An
 * op whose seeds are both 0 has no seed of its own: its key comes from its name. */
#ifndef TFC_IR_OPS_RANDOM_SOURCE_H
#define TFC_IR_OPS_RANDOM_SOURCE_H

#include "ir/ops/philox_kernel.h"

struct random_source {
  bool is_stateful;
  uint32_t var;               /* stateful: the counter */
  int64_t seed, seed2;
  value_id key, counter;      /* stateless: [1] and [2] of u64 */
};
struct random_source random_stateful(struct op_call *c);
/* TensorFlow's scrambling of a user's two seeds. */
status random_scramble(struct op_call *c, value_id seed, value_id *key, value_id *counter);

/* Its buffers in a kernel. */
struct random_state {
  uint32_t var, key, counter;
};
struct random_state random_bind(struct kb *kb, const struct random_source *s);
struct philox random_load(struct kb *kb, const struct random_source *s, const struct random_state *state);
/* At the end of the kernel: a stateful counter moves on by `blocks` (i64). */
void random_advance(struct kb *kb, const struct random_source *s, const struct random_state *state, expr_id blocks);

#endif
