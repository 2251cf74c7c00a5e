/* ops_shuffle.c: random choices: RandomShuffle's permutation, RandomIndexShuffle's places in one, Multinomial's classes. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/random/random_source.h"

#define RESERVED 256 /* counter values that TensorFlow sets aside for each number of a stateful draw */

static expr_id u64_of(struct kb *kb, expr_id e) { return expr_cast(kb->k, DTYPE_UINT64, e); }

/* Fisher and Yates: place i gets one of the places i .. n-1. Fewer than two rows draw nothing. */
static status shuffle_order(struct op_call *c, const struct random_source *source, dim rows, dim elements, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  struct random_state state = random_bind(&kb, source);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &rows);
  expr_id n = kb_dim(&kb, rows), one = kb_int(&kb, 1), last = kb_sub(&kb, n, one);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, rows);
  kb_store(&kb, o, &i, real_element(i));
  kb_close(&kb, 1);
  kb_if(&kb, kb_and(&kb, kb_lt(&kb, one, n), kb_lt(&kb, one, kb_dim(&kb, elements))));
  struct philox p = random_load(&kb, source, &state);
  i = kb_for(&kb, LOOP_SEQ, last);
  expr_id left = expr_cast(kb.k, DTYPE_UINT32, kb_sub(&kb, n, i));
  expr_id step = expr_binary(kb.k, SCALAR_REM, philox_word(&kb, &p, i), left);
  expr_id other = kb_get(&kb, kb_local(&kb, kb_add(&kb, i, expr_cast(kb.k, DTYPE_INT64, step))));
  expr_id here = kb_get(&kb, kb_local(&kb, kb_load(&kb, o, &i).re)), there = kb_get(&kb, kb_local(&kb, kb_load(&kb, o, &other).re));
  kb_store(&kb, o, &i, real_element(there));
  kb_store(&kb, o, &other, real_element(here));
  kb_close(&kb, 1);
  random_advance(&kb, source, &state, kb_div(&kb, kb_add(&kb, last, kb_int(&kb, 3)), kb_int(&kb, 4)));
  kb_close(&kb, 1);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* value; the stateless form: key, counter and algorithm too */
status build_random_shuffle(struct op_call *c) {
  struct random_source source;
  value_id v, order;
  if (c->in_count > 1)
    TRY(random_given(c, 1, &source));
  else
    source = random_stateful(c);
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank == 0) {
    op_set_output(c, 0, v);
    return OK;
  }
  TRY(shuffle_order(c, &source, x.dims[0], op_count(c, x.rank, x.dims), &order));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), p = kb_in(&kb, order), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  memcpy(at, index, sizeof at);
  at[0] = kb_load(&kb, p, index).re;
  kb_store(&kb, o, index, kb_load(&kb, a, at));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- RandomIndexShuffle: one place of a permutation of [0, max_index], by the block cipher Simon (Beaulieu et al., 2013) ----
 *
 * The halves of a block have `width` bits, as few as hold max_index but at least 8; numbers above max_index are enciphered again. */

#define ROUNDS_MAX 64

struct cipher {
  struct kb *kb;
  expr_id width, mask; /* u64 */
};
static expr_id u64_const(struct kb *kb, uint64_t v) { return expr_int(kb->k, DTYPE_UINT64, (int64_t)v); }
static expr_id u64_bin(struct kb *kb, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(kb->k, op, a, b); }

static expr_id rotate_word(const struct cipher *c, expr_id x, int by, bool right) {
  struct kb *kb = c->kb;
  expr_id there = u64_const(kb, (uint64_t)by), back = u64_bin(kb, SCALAR_SUB, c->width, there);
  expr_id left = u64_bin(kb, SCALAR_SHL, x, right ? back : there), low = u64_bin(kb, SCALAR_SHR, x, right ? there : back);
  return u64_bin(kb, SCALAR_AND, u64_bin(kb, SCALAR_OR, left, low), c->mask);
}
static expr_id mix(const struct cipher *c, expr_id y, expr_id x, expr_id key) {
  struct kb *kb = c->kb;
  expr_id f = u64_bin(kb, SCALAR_AND, rotate_word(c, x, 1, false), rotate_word(c, x, 8, false));
  f = u64_bin(kb, SCALAR_XOR, f, rotate_word(c, x, 2, false));
  return kb_get(kb, kb_local(kb, u64_bin(kb, SCALAR_XOR, u64_bin(kb, SCALAR_XOR, y, f), key)));
}
static void key_schedule(const struct cipher *c, int rounds, expr_id *keys) {
  struct kb *kb = c->kb;
  uint64_t sequence = UINT64_C(0x7369f885192c0ef5);
  for (int i = 3; i < rounds; i++, sequence >>= 1) {
    /* the sequence is cut to the width first: bits beyond it are 0 */
    expr_id inside = u64_bin(kb, SCALAR_LT, u64_const(kb, (uint64_t)(i - 3)), c->width);
    expr_id z = expr_select(kb->k, inside, u64_const(kb, sequence & 1), u64_const(kb, 0));
    expr_id k = u64_bin(kb, SCALAR_XOR, u64_bin(kb, SCALAR_AND, u64_const(kb, 0xfffffffc), c->mask), z);
    k = u64_bin(kb, SCALAR_XOR, k, keys[i - 3]);
    k = u64_bin(kb, SCALAR_XOR, k, u64_bin(kb, SCALAR_XOR, rotate_word(c, keys[i - 1], 3, true), rotate_word(c, keys[i - 1], 4, true)));
    keys[i] = kb_get(kb, kb_local(kb, k));
  }
}

static expr_id shuffle_index(struct kb *kb, expr_id index, expr_id max, const expr_id seed[3], int rounds) {
  expr_id one = u64_const(kb, 1), two = u64_const(kb, 2), keys[ROUNDS_MAX];
  uint32_t bits = kb_local(kb, u64_const(kb, 8));
  expr_id size = u64_bin(kb, SCALAR_MUL, kb_get(kb, bits), two), above = u64_bin(kb, SCALAR_SHR, u64_bin(kb, SCALAR_SUB, max, one), size);
  kb_while(kb, kb_and(kb, u64_bin(kb, SCALAR_LT, kb_get(kb, bits), u64_const(kb, 32)), u64_bin(kb, SCALAR_LT, u64_const(kb, 0), above)));
  kb_set(kb, bits, u64_bin(kb, SCALAR_ADD, kb_get(kb, bits), one));
  kb_close(kb, 1);
  struct cipher c = {.kb = kb, .width = kb_get(kb, kb_local(kb, kb_get(kb, bits)))};
  c.mask = kb_get(kb, kb_local(kb, u64_bin(kb, SCALAR_SUB, u64_bin(kb, SCALAR_SHL, one, c.width), one)));
  for (int i = 0; i < 3; i++)
    keys[i] = kb_get(kb, kb_local(kb, u64_bin(kb, SCALAR_AND, seed[i], c.mask)));
  key_schedule(&c, rounds, keys);
  uint32_t at = kb_local(kb, index), again = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_get(kb, again));
  expr_id left = u64_bin(kb, SCALAR_AND, u64_bin(kb, SCALAR_SHR, kb_get(kb, at), c.width), c.mask);
  expr_id right = u64_bin(kb, SCALAR_AND, kb_get(kb, at), c.mask);
  left = kb_get(kb, kb_local(kb, left));
  right = kb_get(kb, kb_local(kb, right));
  for (int i = 0; i < rounds; i += 2) {
    left = mix(&c, left, right, keys[i]);
    right = mix(&c, right, left, keys[i + 1]);
  }
  kb_set(kb, at, u64_bin(kb, SCALAR_OR, u64_bin(kb, SCALAR_SHL, left, c.width), right));
  kb_set(kb, again, u64_bin(kb, SCALAR_LT, max, kb_get(kb, at)));
  kb_close(kb, 1);
  return kb_get(kb, at);
}

/* index and max_index are scalars or [n], the seed [3] or [n, 3] */
static status index_shuffle_count(struct op_call *c, const value_id in[3], int *rank, dim *count) {
  *rank = 0;
  for (int i = 0; i < 3; i++) {
    struct flow_value x = *op_value(c, in[i]);
    int own = i == 1 ? 1 : 0;
    if (x.rank < own || x.rank > own + 1)
      return fail(INVALID_ARGUMENT, "index and max_index must be scalars or vectors, the seed [3] or [n, 3]: %s",
                  op_shape_text(c, x.rank, x.dims));
    if (i == 1)
      TRY(op_equal_dims(c, x.dims[x.rank - 1], op_dim(c, 3), "Seed must be a vector of size [3] or a matrix of size [n, 3]"));
    if (x.rank == own)
      continue;
    if (*rank)
      TRY(op_equal_dims(c, *count, x.dims[0], "index, seed and max_index must have the same size"));
    *rank = 1;
    *count = x.dims[0];
  }
  return OK;
}

status build_random_index_shuffle(struct op_call *c) {
  value_id in[3];
  for (uint32_t i = 0; i < 3; i++)
    TRY(op_input(c, i, &in[i]));
  int rank, rounds = (int)node_attr_int(c->node, "rounds", 4);
  dim count;
  TRY(index_shuffle_count(c, in, &rank, &count));
  if (rounds < 4 || rounds % 2 || rounds > ROUNDS_MAX)
    return fail(rounds > ROUNDS_MAX ? UNIMPLEMENTED : INVALID_ARGUMENT, "%d rounds: it must be an even number, at least 4", rounds);
  struct flow_value seeds = *op_value(c, in[1]);
  enum dtype dtype = op_output_dtype(c, 0);
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t a = kb_in(&kb, in[0]), s = kb_in(&kb, in[1]), m = kb_in(&kb, in[2]), o = kb_out(&kb, dtype, rank, &count);
  expr_id at[2] = {kb_int(&kb, 0), NO_EXPR}, seed[3], here[2];
  kb_loops(&kb, LOOP_PAR, rank, &count, at);
  expr_id index = kb_get(&kb, kb_local(&kb, kb_load_broadcast(&kb, a, rank, at).re)),
          max = kb_get(&kb, kb_local(&kb, kb_load_broadcast(&kb, m, rank, at).re));
  if (dtype == DTYPE_INT32 || dtype == DTYPE_INT64) {
    expr_id wide = expr_cast(kb.k, DTYPE_INT64, index), wide_max = expr_cast(kb.k, DTYPE_INT64, max);
    kb_check(&kb, kb_lt(&kb, kb_int(&kb, -1), wide), INVALID_ARGUMENT, "index must be >= 0 but was %d", wide, NO_EXPR);
    kb_check(&kb, kb_lt(&kb, kb_int(&kb, -1), wide_max), INVALID_ARGUMENT, "max_index must be >= 0 but was %d", wide_max, NO_EXPR);
  }
  kb_check(&kb, expr_binary(kb.k, SCALAR_LE, index, max), INVALID_ARGUMENT, "max_index must be >= index, but %d < %d",
           expr_cast(kb.k, DTYPE_INT64, max), expr_cast(kb.k, DTYPE_INT64, index));
  for (int i = 0; i < 3; i++) {
    here[0] = at[0];
    here[seeds.rank - 1] = kb_int(&kb, i);
    seed[i] = u64_of(&kb, expr_cast(kb.k, DTYPE_UINT32, kb_load(&kb, s, here).re));
  }
  uint32_t result = kb_local(&kb, u64_const(&kb, 0));
  expr_id top = u64_of(&kb, max);
  kb_if(&kb, u64_bin(&kb, SCALAR_LT, u64_const(&kb, 0), top));
  kb_set(&kb, result, shuffle_index(&kb, u64_of(&kb, index), top, seed, rounds));
  kb_close(&kb, 1);
  kb_store(&kb, o, at, real_element(expr_cast(kb.k, dtype, kb_get(&kb, result))));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- Multinomial ---- */

/* The running sums of e^(logit - max) of each row, in double; what is not finite adds nothing. */
static status running_weights(struct op_call *c, value_id v, value_id *out) {
  struct flow_value x = *op_value(c, v);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  struct formula *f = &kb.f;
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, DTYPE_DOUBLE, 2, x.dims);
  expr_id index[2];
  index[0] = kb_for_dim(&kb, LOOP_PAR, x.dims[0]);
  struct accumulator max = acc_begin(&kb, f_lowest(f)), sum = acc_zero(&kb, DTYPE_DOUBLE);
  index[1] = kb_for_dim(&kb, LOOP_SEQ, x.dims[1]);
  struct element e = load_as(&kb, DTYPE_DOUBLE, a, index);
  struct element finite = f_binary(f, SCALAR_LT, f_unary(f, SCALAR_ABS, e), f_const(f, INFINITY));
  struct element candidate = f_select(f, finite, e, f_lowest(f));
  acc_set(&kb, &max, f_binary(f, SCALAR_MAX, acc_get(&kb, &max), candidate));
  kb_close(&kb, 1);
  index[1] = kb_for_dim(&kb, LOOP_SEQ, x.dims[1]);
  e = load_as(&kb, DTYPE_DOUBLE, a, index);
  finite = f_binary(f, SCALAR_LT, f_unary(f, SCALAR_ABS, e), f_const(f, INFINITY));
  struct element weight = f_unary(f, SCALAR_EXP, f_binary(f, SCALAR_SUB, e, acc_get(&kb, &max)));
  acc_add(&kb, &sum, f_select(f, finite, weight, f_const(f, 0)));
  kb_store(&kb, o, index, acc_get(&kb, &sum));
  kb_close(&kb, 2);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* Sample number s of all takes words 2s and 2s+1; its class is the number of running sums not above it. */
static void draw_class(struct kb *kb, const struct philox *p, uint32_t weights, const dim dims[2], dim classes, uint32_t out) {
  expr_id index[2], at[2], words[4];
  kb_loops(kb, LOOP_PAR, 2, dims, index);
  expr_id number = kb_add(kb, kb_mul(kb, index[0], kb_dim(kb, dims[1])), index[1]), two = kb_int(kb, 2);
  philox_block(kb, p, u64_of(kb, kb_div(kb, number, two)), words);
  expr_id odd = expr_binary(kb->k, SCALAR_EQ, kb_mod(kb, number, two), kb_int(kb, 1));
  expr_id first = expr_select(kb->k, odd, words[2], words[0]), second = expr_select(kb->k, odd, words[3], words[1]);
  at[0] = index[0];
  at[1] = kb_sub(kb, kb_dim(kb, classes), kb_int(kb, 1));
  expr_id wanted = expr_binary(kb->k, SCALAR_MUL, philox_uniform(kb, DTYPE_DOUBLE, first, second), kb_load(kb, weights, at).re);
  expr_id find = kb_get(kb, kb_local(kb, wanted));
  uint32_t found = kb_local(kb, kb_int(kb, 0));
  at[1] = kb_for_dim(kb, LOOP_RED, classes);
  expr_id below = expr_binary(kb->k, SCALAR_LE, kb_load(kb, weights, at).re, find);
  kb_set(kb, found, kb_add(kb, kb_get(kb, found), expr_cast(kb->k, DTYPE_INT64, below)));
  kb_close(kb, 1);
  kb_store(kb, out, index, real_element(expr_cast(kb->k, kb->k->buffers.items[out].dtype, kb_get(kb, found))));
  kb_close(kb, 2);
}

static status multinomial(struct op_call *c, const struct random_source *source) {
  value_id v, vn, weights;
  dim *samples;
  int count;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &vn));
  TRY(op_elements(c, vn, &samples, &count));
  struct flow_value x = *op_value(c, v);
  if (x.rank != 2 || count != 1)
    return fail(INVALID_ARGUMENT, "logits should be a matrix and num_samples a scalar, got shape %s", op_shape_text(c, x.rank, x.dims));
  TRY(op_require_le(c, op_dim(c, 1), x.dims[1], "num_classes should be at least %d, got %d"));
  TRY(running_weights(c, v, &weights));
  dim dims[2] = {x.dims[0], samples[0]};
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  struct random_state state = random_bind(&kb, source);
  uint32_t w = kb_in(&kb, weights), o = kb_out(&kb, op_output_dtype(c, 0), 2, dims);
  struct philox p = random_load(&kb, source, &state);
  draw_class(&kb, &p, w, dims, x.dims[1], o);
  expr_id four = kb_int(&kb, 4), padded = kb_mul(&kb, kb_div(&kb, kb_add(&kb, kb_dim(&kb, dims[1]), kb_int(&kb, 3)), four), four);
  random_advance(&kb, source, &state, kb_mul(&kb, kb_mul(&kb, kb_dim(&kb, dims[0]), padded), kb_int(&kb, 2 * RESERVED)));
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

status build_multinomial(struct op_call *c) {
  struct random_source source = random_stateful(c);
  return multinomial(c, &source);
}
status build_stateless_multinomial(struct op_call *c) {
  struct random_source source = {0};
  value_id seed;
  TRY(op_input(c, 2, &seed));
  TRY(random_scramble(c, seed, &source.key, &source.counter));
  return multinomial(c, &source);
}
