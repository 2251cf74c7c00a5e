/* philox_kernel.h: the counter-based generator Philox4x32-10 (Salmon et al., SC 2011) in kernel IR, laid out as TensorFlow draws
 * from it: one block of four 32-bit words for each counter value, a group of outputs for each block. */
#ifndef TFC_IR_OPS_RANDOM_PHILOX_KERNEL_H
#define TFC_IR_OPS_RANDOM_PHILOX_KERNEL_H

#include "ir/lower/lower.h"

struct philox {
  expr_id key;       /* u64: two words, the lower first */
  expr_id low, high; /* u64: the counter's four words */
};

/* The block `skip` (u64) further on: four u32 words. */
void philox_block(struct kb *kb, const struct philox *p, expr_id skip, expr_id out[4]);
/* Word number `number` (i64) of the stream: the blocks' words in order. */
expr_id philox_word(struct kb *kb, const struct philox *p, expr_id number);
expr_id philox_join(struct kb *kb, expr_id low, expr_id high); /* two u32 words as a u64 */

/* [0,1) of half, bfloat16, float (one word) and double (two words). */
expr_id philox_uniform(struct kb *kb, enum dtype dtype, expr_id word, expr_id second);
/* Box and Muller's pair of normals, of one (float) or two (double) words each. */
void philox_normals(struct kb *kb, enum dtype dtype, const expr_id *words, expr_id out[2]);

#endif
