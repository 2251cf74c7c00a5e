/* random_stream.c: see random_stream.h. */
#include "ir/ops/random/random_stream.h"

static expr_id f64(struct kb *kb, double v) { return expr_float(kb->k, DTYPE_DOUBLE, v); }
static expr_id bin(struct kb *kb, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(kb->k, op, a, b); }
static expr_id u64_of(struct kb *kb, expr_id e) { return expr_cast(kb->k, DTYPE_UINT64, e); }
static expr_id now(struct kb *kb, expr_id e) { return kb_get(kb, kb_local(kb, e)); }

/* ---- pairs ---- */

struct pair_stream pairs_begin(struct kb *kb, struct philox p, expr_id number, int reserved) {
  struct pair_stream s = {.kb = kb, .philox = p};
  s.base = u64_of(kb, kb_mul(kb, number, kb_int(kb, reserved)));
  s.block = kb_local(kb, kb_int(kb, 0));
  s.normals_left = kb_local(kb, kb_int(kb, 0));
  s.uniforms_left = kb_local(kb, kb_int(kb, 0));
  for (int i = 0; i < 2; i++) {
    s.normals[i] = kb_local(kb, f64(kb, 0));
    s.uniforms[i] = kb_local(kb, f64(kb, 0));
  }
  return s;
}

static expr_id pairs_next(struct pair_stream *s, uint32_t left, const uint32_t *pair, bool normal) {
  struct kb *kb = s->kb;
  kb_if(kb, bin(kb, SCALAR_EQ, kb_get(kb, left), kb_int(kb, 0)));
  expr_id words[4], out[2];
  philox_block(kb, &s->philox, bin(kb, SCALAR_ADD, s->base, u64_of(kb, kb_get(kb, s->block))), words);
  for (int i = 0; i < 4; i++)
    words[i] = now(kb, words[i]);
  if (normal)
    philox_normals(kb, DTYPE_DOUBLE, words, out);
  for (int i = 0; i < 2; i++)
    kb_set(kb, pair[i], normal ? out[i] : philox_uniform(kb, DTYPE_DOUBLE, words[2 * i], words[2 * i + 1]));
  kb_set(kb, left, kb_int(kb, 2));
  kb_set(kb, s->block, kb_add(kb, kb_get(kb, s->block), kb_int(kb, 1)));
  kb_close(kb, 1);
  kb_set(kb, left, kb_sub(kb, kb_get(kb, left), kb_int(kb, 1)));
  expr_id first = bin(kb, SCALAR_EQ, kb_get(kb, left), kb_int(kb, 0));
  return now(kb, expr_select(kb->k, first, kb_get(kb, pair[0]), kb_get(kb, pair[1])));
}
expr_id pairs_normal(struct pair_stream *s) { return pairs_next(s, s->normals_left, s->normals, true); }
expr_id pairs_uniform(struct pair_stream *s) { return pairs_next(s, s->uniforms_left, s->uniforms, false); }

/* ---- words ---- */

struct word_stream words_begin(struct kb *kb, struct philox p) {
  return (struct word_stream){kb, p, kb_local(kb, kb_int(kb, 0))};
}

/* u32 */
static expr_id words_next(struct word_stream *s) {
  struct kb *kb = s->kb;
  expr_id number = now(kb, kb_get(kb, s->next)), w = now(kb, philox_word(kb, &s->philox, number));
  kb_set(kb, s->next, kb_add(kb, number, kb_int(kb, 1)));
  return w;
}

expr_id words_float(struct word_stream *s) { return now(s->kb, philox_uniform(s->kb, DTYPE_FLOAT, words_next(s), NO_EXPR)); }

expr_id words_below(struct word_stream *s, expr_id n, bool wide) {
  struct kb *kb = s->kb;
  enum dtype d = wide ? DTYPE_UINT64 : DTYPE_UINT32;
  expr_id count = now(kb, expr_cast(kb->k, d, n)), all = expr_int(kb->k, d, -1), one = expr_int(kb->k, d, 1), none = expr_int(kb->k, d, 0);
  /* a power of two: none favours any */
  expr_id even = bin(kb, SCALAR_EQ, bin(kb, SCALAR_AND, count, bin(kb, SCALAR_SUB, count, one)), none);
  expr_id rejected = now(kb, expr_select(kb->k, even, none, bin(kb, SCALAR_ADD, bin(kb, SCALAR_REM, all, count), one)));
  uint32_t bits = kb_local(kb, none), again = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_get(kb, again));
  expr_id low = words_next(s);
  kb_set(kb, bits, wide ? philox_join(kb, low, words_next(s)) : low);
  kb_set(kb, again, bin(kb, SCALAR_LT, kb_get(kb, bits), rejected));
  kb_close(kb, 1);
  return now(kb, expr_cast(kb->k, DTYPE_INT64, bin(kb, SCALAR_REM, kb_get(kb, bits), count)));
}
