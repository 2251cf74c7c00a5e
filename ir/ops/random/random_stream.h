/* random_stream.h: numbers taken one after another from a generator, inside loops: what a draw that may be rejected needs. Each stream
 * keeps its place in locals of the kernel. */
#ifndef TFC_IR_OPS_RANDOM_RANDOM_STREAM_H
#define TFC_IR_OPS_RANDOM_RANDOM_STREAM_H

#include "ir/ops/random/random_source.h"

/* Doubles in pairs, each pair from a block of its own, used from the second to the first. */
struct pair_stream {
  struct kb *kb;
  struct philox philox;
  expr_id base;
  uint32_t block; /* locals: the next block; what is left of each pair; the pairs */
  uint32_t normals_left, normals[2];
  uint32_t uniforms_left, uniforms[2];
};
/* The blocks of number `number` (i64), of which `reserved` are set aside for each. */
struct pair_stream pairs_begin(struct kb *kb, struct philox p, expr_id number, int reserved);
expr_id pairs_normal(struct pair_stream *s);
expr_id pairs_uniform(struct pair_stream *s); /* [0,1) */

/* Words of 32 bits, four from each block. */
struct word_stream {
  struct kb *kb;
  struct philox philox;
  uint32_t next; /* a local: the number of the next word */
};
struct word_stream words_begin(struct kb *kb, struct philox p);
expr_id words_float(struct word_stream *s); /* [0,1) */
/* [0, n), all alike: numbers that would favour some are drawn again. n: i64, from one word (n < 2^32) or two. */
expr_id words_below(struct word_stream *s, expr_id n, bool wide);

#endif
