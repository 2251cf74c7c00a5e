/* ops_candidate.c: candidate samplers, for losses over many classes: classes drawn at random, and how often each was to be
 * expected. The draws are TensorFlow's. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/random_source.h"

#define RESERVED 512 /* counter values that TensorFlow sets aside for each candidate */

struct sampler {
  bool is_log;          /* the class k with a probability like log((k + 2) / (k + 1)), else all alike */
  bool unique;
  int64_t count, range, true_count;
};

static expr_id f64(struct kb *kb, double v) { return expr_float(kb->k, DTYPE_DOUBLE, v); }
static expr_id u64(struct kb *kb, uint64_t v) { return expr_int(kb->k, DTYPE_UINT64, (int64_t)v); }
static expr_id bin(struct kb *kb, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(kb->k, op, a, b); }

static status sampler_begin(struct op_call *c, struct sampler *s) {
  s->is_log = strcmp(c->node->op, "LogUniformCandidateSampler") == 0;
  s->unique = node_attr_int(c->node, "unique", 0);
  s->count = node_attr_int(c->node, "num_sampled", 1);
  s->range = node_attr_int(c->node, "range_max", 1);
  s->true_count = node_attr_int(c->node, "num_true", 1);
  if (s->count < 1 || s->range < 1 || s->count > LIMIT_ELEMENTS || (s->unique && s->count > s->range))
    return fail(INVALID_ARGUMENT, "Sampler's range is too small: %lld of %lld classes", (long long)s->count, (long long)s->range);
  return OK;
}

/* ---- one draw: two words of the stream ---- */

static void next_words(struct kb *kb, const struct philox *p, uint32_t pairs, expr_id out[2]) {
  expr_id words[4], pair = kb_get(kb, pairs), two = kb_int(kb, 2);
  philox_block(kb, p, expr_cast(kb->k, DTYPE_UINT64, kb_div(kb, pair, two)), words);
  expr_id odd = bin(kb, SCALAR_EQ, kb_mod(kb, pair, two), kb_int(kb, 1));
  expr_id low = kb_get(kb, kb_local(kb, expr_select(kb->k, odd, words[2], words[0])));
  expr_id high = kb_get(kb, kb_local(kb, expr_select(kb->k, odd, words[3], words[1])));
  kb_set(kb, pairs, kb_add(kb, pair, kb_int(kb, 1)));
  out[0] = low;
  out[1] = high;
}

static expr_id log_uniform(struct kb *kb, const struct sampler *s, const struct philox *p, uint32_t pairs) {
  expr_id words[2];
  next_words(kb, p, pairs, words);
  expr_id u = philox_uniform(kb, DTYPE_DOUBLE, words[0], words[1]);
  expr_id power = expr_unary(kb->k, SCALAR_EXP, bin(kb, SCALAR_MUL, u, f64(kb, log1p((double)s->range))));
  expr_id value = kb_sub(kb, expr_cast(kb->k, DTYPE_INT64, power), kb_int(kb, 1));
  return kb_get(kb, kb_local(kb, bin(kb, SCALAR_REM, value, kb_int(kb, s->range))));
}

/* 64 bits modulo the range; the lowest numbers are drawn again, so that all classes are exactly alike. */
static expr_id uniform(struct kb *kb, const struct sampler *s, const struct philox *p, uint32_t pairs) {
  uint64_t n = (uint64_t)s->range, rejected = (n & (n - 1)) ? UINT64_MAX % n + 1 : 0;
  expr_id words[2];
  uint32_t bits = kb_local(kb, u64(kb, 0)), again = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_get(kb, again));
  next_words(kb, p, pairs, words);
  kb_set(kb, bits, philox_join(kb, words[0], words[1]));
  kb_set(kb, again, bin(kb, SCALAR_LT, kb_get(kb, bits), u64(kb, rejected)));
  kb_close(kb, 1);
  return kb_get(kb, kb_local(kb, expr_cast(kb->k, DTYPE_INT64, bin(kb, SCALAR_REM, kb_get(kb, bits), u64(kb, n)))));
}

/* ---- all draws; `tries` is how many they were ---- */

static status draw_candidates(struct op_call *c, const struct sampler *s, value_id *out, value_id *tries) {
  struct random_source source = random_stateful(c);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  struct random_state state = random_bind(&kb, &source);
  dim count = op_dim(c, s->count);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &count), n = kb_out(&kb, DTYPE_INT64, 0, NULL);
  struct philox p = random_load(&kb, &source, &state);
  uint32_t pairs = kb_local(&kb, kb_int(&kb, 0)), picked = kb_local(&kb, kb_int(&kb, 0)), tried = kb_local(&kb, kb_int(&kb, 0));
  expr_id place = kb_get(&kb, picked), one = kb_int(&kb, 1);
  kb_while(&kb, kb_lt(&kb, place, kb_int(&kb, s->count)));
  expr_id value = s->is_log ? log_uniform(&kb, s, &p, pairs) : uniform(&kb, s, &p, pairs);
  uint32_t known = kb_local(&kb, expr_int(kb.k, DTYPE_BOOL, 0));
  if (s->unique) {
    expr_id i = kb_for(&kb, LOOP_RED, place);
    kb_set(&kb, known, bin(&kb, SCALAR_OR, kb_get(&kb, known), bin(&kb, SCALAR_EQ, kb_load(&kb, o, &i).re, value)));
    kb_close(&kb, 1);
  }
  kb_set(&kb, tried, kb_add(&kb, kb_get(&kb, tried), one));
  kb_if(&kb, expr_unary(kb.k, SCALAR_NOT, kb_get(&kb, known)));
  kb_store(&kb, o, &place, real_element(value));
  kb_set(&kb, picked, kb_add(&kb, place, one));
  kb_close(&kb, 2);
  kb_store(&kb, n, NULL, real_element(kb_get(&kb, tried)));
  random_advance(&kb, &source, &state, kb_int(&kb, s->count * RESERVED));
  *out = kb_value(&kb, o);
  *tries = kb_value(&kb, n);
  return kb_finish(&kb);
}

/* ---- how often a class was to be expected ---- */

static expr_id probability(struct kb *kb, const struct sampler *s, expr_id value) {
  if (!s->is_log)
    return expr_float(kb->k, DTYPE_FLOAT, 1.0 / (double)s->range);
  expr_id v = expr_cast(kb->k, DTYPE_DOUBLE, value), ratio = bin(kb, SCALAR_DIV, bin(kb, SCALAR_ADD, v, f64(kb, 2)), bin(kb, SCALAR_ADD, v, f64(kb, 1)));
  return expr_cast(kb->k, DTYPE_FLOAT, bin(kb, SCALAR_DIV, expr_unary(kb->k, SCALAR_LOG, ratio), f64(kb, log1p((double)s->range))));
}

/* p * count; of tries that went on until all were different: 1 - (1 - p)^tries */
static status expected_counts(struct op_call *c, const struct sampler *s, value_id classes, value_id tries, value_id *out) {
  struct flow_value x = *op_value(c, classes);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, classes), n = kb_in(&kb, tries), o = kb_out(&kb, DTYPE_FLOAT, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  expr_id p = probability(&kb, s, kb_load(&kb, a, index).re), tried = kb_load(&kb, n, NULL).re;
  expr_id simple = bin(&kb, SCALAR_MUL, p, expr_float(kb.k, DTYPE_FLOAT, (double)s->count));
  expr_id none = expr_unary(kb.k, SCALAR_LOG1P, expr_unary(kb.k, SCALAR_NEG, p));
  expr_id some = expr_unary(kb.k, SCALAR_EXPM1, bin(&kb, SCALAR_MUL, expr_cast(kb.k, DTYPE_FLOAT, tried), none));
  expr_id equal = bin(&kb, SCALAR_EQ, tried, kb_int(&kb, s->count));
  kb_store(&kb, o, index, real_element(expr_select(kb.k, equal, simple, expr_unary(kb.k, SCALAR_NEG, some))));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

status build_candidate_sampler(struct op_call *c) {
  struct sampler s;
  value_id truth, candidates, tries, counts;
  TRY(sampler_begin(c, &s));
  TRY(op_input(c, 0, &truth));
  struct flow_value t = *op_value(c, truth);
  if (t.rank != 2)
    return fail(INVALID_ARGUMENT, "true_classes must be a matrix: %s", op_shape_text(c, t.rank, t.dims));
  TRY(op_equal_dims(c, t.dims[1], op_dim(c, s.true_count), "true_classes must have num_true columns"));
  TRY(draw_candidates(c, &s, &candidates, &tries));
  op_set_output(c, 0, candidates);
  TRY(expected_counts(c, &s, truth, tries, &counts));
  op_set_output(c, 1, counts);
  TRY(expected_counts(c, &s, candidates, tries, &counts));
  op_set_output(c, 2, counts);
  return OK;
}
