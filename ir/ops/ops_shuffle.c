/* ops_shuffle.c: random choices: RandomShuffle's permutation, Multinomial's classes. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/random_source.h"

#define RESERVED 256 /* counter values that TensorFlow sets aside for each number of a stateful draw */

static expr_id u64_of(struct kb *kb, expr_id e) { return expr_cast(kb->k, DTYPE_UINT64, e); }

/* words[number % 4]: number counts the words of the stream */
static expr_id stream_word(struct kb *kb, const struct philox *p, expr_id number) {
  expr_id words[4], four = kb_int(kb, 4), which = kb_mod(kb, number, four);
  philox_block(kb, p, u64_of(kb, kb_div(kb, number, four)), words);
  expr_id w = words[3];
  for (int i = 2; i >= 0; i--)
    w = expr_select(kb->k, expr_binary(kb->k, SCALAR_EQ, which, kb_int(kb, i)), words[i], w);
  return w;
}

/* Fisher and Yates: place i gets one of the places i .. n-1. Fewer than two rows draw nothing. */
static status shuffle_order(struct op_call *c, dim rows, dim elements, value_id *out) {
  struct random_source source = random_stateful(c);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  struct random_state state = random_bind(&kb, &source);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &rows);
  expr_id n = kb_dim(&kb, rows), one = kb_int(&kb, 1), last = kb_sub(&kb, n, one);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, rows);
  kb_store(&kb, o, &i, real_element(i));
  kb_close(&kb, 1);
  kb_if(&kb, kb_and(&kb, kb_lt(&kb, one, n), kb_lt(&kb, one, kb_dim(&kb, elements))));
  struct philox p = random_load(&kb, &source, &state);
  i = kb_for(&kb, LOOP_SEQ, last);
  expr_id left = expr_cast(kb.k, DTYPE_UINT32, kb_sub(&kb, n, i));
  expr_id step = expr_binary(kb.k, SCALAR_REM, stream_word(&kb, &p, i), left);
  expr_id other = kb_get(&kb, kb_local(&kb, kb_add(&kb, i, expr_cast(kb.k, DTYPE_INT64, step))));
  expr_id here = kb_get(&kb, kb_local(&kb, kb_load(&kb, o, &i).re)), there = kb_get(&kb, kb_local(&kb, kb_load(&kb, o, &other).re));
  kb_store(&kb, o, &i, real_element(there));
  kb_store(&kb, o, &other, real_element(here));
  kb_close(&kb, 1);
  random_advance(&kb, &source, &state, kb_div(&kb, kb_add(&kb, last, kb_int(&kb, 3)), kb_int(&kb, 4)));
  kb_close(&kb, 1);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

status build_random_shuffle(struct op_call *c) {
  value_id v, order;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank == 0) {
    op_set_output(c, 0, v);
    return OK;
  }
  TRY(shuffle_order(c, x.dims[0], op_count(c, x.rank, x.dims), &order));
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
