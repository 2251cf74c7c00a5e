/* random_source.h: where a random op's key and counter come from.
 *
 * Stateless ops get them as values. A stateful op keeps its counter in a hidden variable of its task: one u64 that a kernel
 * reads, draws from and moves on in the same step; its key is the seed attribute, the upper half of its counter is seed2. An
 * op whose seeds are both 0 has no seed of its own: its key comes from its name. A generator is a variable of the user's that
 * holds counter and key. */
#ifndef TFC_IR_OPS_RANDOM_RANDOM_SOURCE_H
#define TFC_IR_OPS_RANDOM_RANDOM_SOURCE_H

#include "ir/ops/random/philox_kernel.h"

enum random_keeper { RANDOM_STATELESS, RANDOM_STATEFUL, RANDOM_GENERATOR };
struct random_source {
  enum random_keeper keeper;
  uint32_t var;         /* stateful: the counter; generator: the state */
  bool names_algorithm; /* generator: the state begins with the algorithm's number */
  int64_t seed, seed2;
  value_id key, counter; /* stateless: [1] and [2] of u64 */
};
struct random_source random_stateful(struct op_call *c);
/* Input 0 is a variable of three i64: the counter's halves and the key; of four where it names the algorithm first. */
status random_generator(struct op_call *c, bool names_algorithm, struct random_source *out);
/* Inputs `first`, first + 1, first + 2 are key, counter and algorithm. */
status random_given(struct op_call *c, uint32_t first, struct random_source *out);
/* The algorithm must be Philox (or left to choose). */
status random_check_algorithm(struct op_call *c, uint32_t input);
/* TensorFlow's scrambling of a user's two seeds. */
status random_scramble(struct op_call *c, value_id seed, value_id *key, value_id *counter);

/* Its buffers in a kernel. */
struct random_state {
  uint32_t var, key, counter;
};
struct random_state random_bind(struct kb *kb, const struct random_source *s);
struct philox random_load(struct kb *kb, const struct random_source *s, const struct random_state *state);
/* At its beginning: the algorithm that a state names must be there. */
void random_check_state(struct kb *kb, const struct random_source *s, const struct random_state *state);
/* At the end of the kernel: the counter in a variable moves on by `blocks` (i64). */
void random_advance(struct kb *kb, const struct random_source *s, const struct random_state *state, expr_id blocks);

#endif
