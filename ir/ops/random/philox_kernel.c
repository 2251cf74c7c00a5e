/* philox_kernel.c: see philox_kernel.h. The constants are those of the paper; the floats are made by putting bits behind the exponent of
 * 1.0, as TensorFlow does, so that the same words give the same numbers. */
#include "ir/ops/random/philox_kernel.h"

#include <math.h>

#define ROUNDS 10
static const uint32_t multiplier[2] = {0xD2511F53, 0xCD9E8D57}, weyl[2] = {0x9E3779B9, 0xBB67AE85};

static expr_id u32(struct kb *kb, uint32_t v) { return expr_int(kb->k, DTYPE_UINT32, v); }
static expr_id u64(struct kb *kb, int64_t v) { return expr_int(kb->k, DTYPE_UINT64, v); }
static expr_id bin(struct kb *kb, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(kb->k, op, a, b); }
static expr_id low_word(struct kb *kb, expr_id e) { return expr_cast(kb->k, DTYPE_UINT32, e); }
static expr_id high_word(struct kb *kb, expr_id e) { return low_word(kb, bin(kb, SCALAR_SHR, e, u64(kb, 32))); }

expr_id philox_join(struct kb *kb, expr_id low, expr_id high) {
  expr_id h = bin(kb, SCALAR_SHL, expr_cast(kb->k, DTYPE_UINT64, high), u64(kb, 32));
  return bin(kb, SCALAR_OR, expr_cast(kb->k, DTYPE_UINT64, low), h);
}

static expr_id xor3(struct kb *kb, expr_id a, expr_id b, expr_id c) { return bin(kb, SCALAR_XOR, bin(kb, SCALAR_XOR, a, b), c); }

void philox_block(struct kb *kb, const struct philox *p, expr_id skip, expr_id out[4]) {
  expr_id low = bin(kb, SCALAR_ADD, p->low, skip);
  expr_id carry = expr_cast(kb->k, DTYPE_UINT64, bin(kb, SCALAR_LT, low, p->low));
  expr_id high = bin(kb, SCALAR_ADD, p->high, carry);
  expr_id x[4] = {low_word(kb, low), high_word(kb, low), low_word(kb, high), high_word(kb, high)};
  expr_id key[2] = {low_word(kb, p->key), high_word(kb, p->key)};
  for (int round = 0; round < ROUNDS; round++) {
    expr_id m0 = u32(kb, multiplier[0]), m1 = u32(kb, multiplier[1]);
    expr_id hi0 = bin(kb, SCALAR_MULHI, x[0], m0), lo0 = bin(kb, SCALAR_MUL, x[0], m0);
    expr_id hi1 = bin(kb, SCALAR_MULHI, x[2], m1), lo1 = bin(kb, SCALAR_MUL, x[2], m1);
    expr_id next[4] = {xor3(kb, hi1, x[1], key[0]), lo1, xor3(kb, hi0, x[3], key[1]), lo0};
    for (int i = 0; i < 4; i++)
      x[i] = next[i];
    for (int i = 0; i < 2; i++)
      key[i] = bin(kb, SCALAR_ADD, key[i], u32(kb, weyl[i]));
  }
  for (int i = 0; i < 4; i++)
    out[i] = x[i];
}

expr_id philox_word(struct kb *kb, const struct philox *p, expr_id number) {
  expr_id words[4], four = kb_int(kb, 4), which = kb_mod(kb, number, four);
  philox_block(kb, p, expr_cast(kb->k, DTYPE_UINT64, kb_div(kb, number, four)), words);
  expr_id w = words[3];
  for (int i = 2; i >= 0; i--)
    w = expr_select(kb->k, bin(kb, SCALAR_EQ, which, kb_int(kb, i)), words[i], w);
  return w;
}

/* mantissa bits below the exponent of 1.0, minus 1 */
static expr_id fraction(struct kb *kb, enum dtype dtype, enum dtype bits_dtype, expr_id word, int64_t mask, int64_t one) {
  expr_id bits = bin(kb, SCALAR_OR, bin(kb, SCALAR_AND, word, expr_int(kb->k, bits_dtype, mask)), expr_int(kb->k, bits_dtype, one));
  return bin(kb, SCALAR_SUB, expr_bitcast(kb->k, dtype, bits), expr_float(kb->k, dtype, 1));
}

expr_id philox_uniform(struct kb *kb, enum dtype dtype, expr_id word, expr_id second) {
  switch (dtype) {
  case DTYPE_HALF: return fraction(kb, dtype, DTYPE_UINT16, expr_cast(kb->k, DTYPE_UINT16, word), 0x3ff, 0x3c00);
  case DTYPE_BFLOAT16: return fraction(kb, dtype, DTYPE_UINT16, expr_cast(kb->k, DTYPE_UINT16, word), 0x7f, 0x3f80);
  case DTYPE_DOUBLE:
    return fraction(kb, dtype, DTYPE_UINT64, philox_join(kb, second, word), INT64_C(0xfffffffffffff), INT64_C(0x3ff0000000000000));
  default: return fraction(kb, DTYPE_FLOAT, DTYPE_UINT32, word, 0x7fffff, 0x3f800000);
  }
}

void philox_normals(struct kb *kb, enum dtype dtype, const expr_id *words, expr_id out[2]) {
  struct kernel *k = kb->k;
  bool wide = dtype == DTYPE_DOUBLE;
  enum dtype d = wide ? DTYPE_DOUBLE : DTYPE_FLOAT;
  expr_id u1 = philox_uniform(kb, d, words[0], words[1]);
  expr_id u2 = wide ? philox_uniform(kb, d, words[2], words[3]) : philox_uniform(kb, d, words[1], NO_EXPR);
  expr_id epsilon = expr_float(k, d, 1.0e-7);
  u1 = expr_select(k, bin(kb, SCALAR_LT, u1, epsilon), epsilon, u1);
  /* the product is rounded once, from double */
  expr_id turn = bin(kb, SCALAR_MUL, expr_float(k, DTYPE_DOUBLE, 2 * M_PI), expr_cast(k, DTYPE_DOUBLE, u2));
  expr_id angle = expr_cast(k, d, turn);
  expr_id radius = expr_unary(k, SCALAR_SQRT, bin(kb, SCALAR_MUL, expr_float(k, d, -2), expr_unary(k, SCALAR_LOG, u1)));
  out[0] = bin(kb, SCALAR_MUL, expr_unary(k, SCALAR_SIN, angle), radius);
  out[1] = bin(kb, SCALAR_MUL, expr_unary(k, SCALAR_COS, angle), radius);
}
