/* ops_candidate.c: candidate samplers, for losses over many classes: classes drawn at random, and how often each was to be
 * expected. The draws are TensorFlow's. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/op_rows.h"
#include "ir/ops/random/random_stream.h"

#define RESERVED 512 /* counter values that TensorFlow sets aside for each candidate */

struct sampler {
  enum sampler_kind kind;
  bool unique;
  int64_t count, range, true_count;
  uint32_t seen;          /* SAMPLER_LEARNED: the variable that counts true classes */
  value_id weights;       /* SAMPLER_LEARNED: i64 [range] */
  value_id probabilities; /* SAMPLER_LEARNED, SAMPLER_FIXED: float [range] */
  value_id kept, other;   /* SAMPLER_FIXED: Walker's alias table: float and i64 [range] */
};

static expr_id f64(struct kb *kb, double v) { return expr_float(kb->k, DTYPE_DOUBLE, v); }
static expr_id bin(struct kb *kb, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(kb->k, op, a, b); }

static status sampler_begin(struct op_call *c, struct sampler *s) {
  *s = (struct sampler){.kind = OP_ROW(c, sampler_row)->kind};
  s->unique = node_attr_int(c->node, "unique", 0);
  s->count = node_attr_int(c->node, "num_sampled", 1);
  s->range = s->kind == SAMPLER_ALL ? s->count : node_attr_int(c->node, "range_max", 1);
  s->true_count = node_attr_int(c->node, "num_true", 1);
  if (s->count < 1 || s->range < 1 || s->count > LIMIT_ELEMENTS || (s->unique && s->count > s->range))
    return fail(INVALID_ARGUMENT, "Sampler's range is too small: %lld of %lld classes", (long long)s->count, (long long)s->range);
  if (s->kind >= SAMPLER_LEARNED && s->range > LIMIT_ELEMENTS)
    return fail(UNIMPLEMENTED, "weights of %lld classes", (long long)s->range);
  return OK;
}

/* ---- weights that are learned ---- */

/* What was counted until now, as weights and as probabilities. */
static status learned_weights(struct op_call *c, struct sampler *s) {
  struct flow_var var = {.name = op_state_name(c),
                         .container = "tfc-sampler",
                         .dtype = DTYPE_INT64,
                         .has_shape = true,
                         .rank = 1,
                         .dims = {s->range},
                         .task = c->node->task,
                         .node = c->node->name,
                         .zero_initial = true};
  s->seen = op_find_var(c, &var);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  dim range = op_dim(c, s->range);
  uint32_t v = kb_var(&kb, s->seen, BUFFER_INOUT, 1, &range), w = kb_out(&kb, DTYPE_INT64, 1, &range),
           p = kb_out(&kb, DTYPE_FLOAT, 1, &range);
  uint32_t total = kb_local(&kb, kb_int(&kb, 0));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, range), weight = kb_get(&kb, kb_local(&kb, kb_add(&kb, kb_load(&kb, v, &i).re, kb_int(&kb, 1))));
  kb_store(&kb, w, &i, real_element(weight));
  kb_set(&kb, total, kb_add(&kb, kb_get(&kb, total), weight));
  kb_close(&kb, 1);
  i = kb_for_dim(&kb, LOOP_SEQ, range);
  expr_id top = expr_cast(kb.k, DTYPE_FLOAT, kb_load(&kb, w, &i).re), bottom = expr_cast(kb.k, DTYPE_FLOAT, kb_get(&kb, total));
  kb_store(&kb, p, &i, real_element(bin(&kb, SCALAR_DIV, top, bottom)));
  kb_close(&kb, 1);
  s->weights = kb_value(&kb, w);
  s->probabilities = kb_value(&kb, p);
  return kb_finish(&kb);
}

/* Counts the true classes, after everything else. */
static status learn(struct op_call *c, const struct sampler *s, value_id truth) {
  struct flow_value t = *op_value(c, truth);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  dim range = op_dim(c, s->range);
  uint32_t a = kb_in(&kb, truth), v = kb_var(&kb, s->seen, BUFFER_INOUT, 1, &range);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_SEQ, t.rank, t.dims, index);
  expr_id at = kb_get(&kb, kb_local(&kb, kb_clamp(&kb, kb_load(&kb, a, index).re, kb_int(&kb, s->range))));
  expr_id more = kb_get(&kb, kb_local(&kb, kb_add(&kb, kb_load(&kb, v, &at).re, kb_int(&kb, 1))));
  kb_store(&kb, v, &at, real_element(more));
  kb_close(&kb, t.rank);
  return kb_finish(&kb);
}

/* The class into whose share of the total a number below the total falls. */
static expr_id by_weight(struct kb *kb, const struct sampler *s, uint32_t weights, struct word_stream *words) {
  uint32_t total = kb_local(kb, kb_int(kb, 0)), found = kb_local(kb, kb_int(kb, 0));
  expr_id i = kb_for(kb, LOOP_RED, kb_int(kb, s->range));
  kb_set(kb, total, kb_add(kb, kb_get(kb, total), kb_load(kb, weights, &i).re));
  kb_close(kb, 1);
  expr_id wanted = words_below(words, kb_get(kb, total), false);
  kb_set(kb, total, kb_int(kb, 0));
  i = kb_for(kb, LOOP_SEQ, kb_int(kb, s->range));
  kb_set(kb, total, kb_add(kb, kb_get(kb, total), kb_load(kb, weights, &i).re));
  expr_id below = bin(kb, SCALAR_LE, kb_get(kb, total), wanted);
  kb_set(kb, found, kb_add(kb, kb_get(kb, found), expr_cast(kb->k, DTYPE_INT64, below)));
  kb_close(kb, 1);
  return kb_get(kb, found);
}

/* ---- weights of the graph ---- */

/* Walker's table: each place keeps its class with a probability, and gives another else. Places with less than their share are filled up
 * from those with more, the last of both first. */
static void alias_table(const float *weights, double sum, int32_t n, double *share, int32_t *low, int32_t *high, float *kept,
                        int64_t *other) {
  int32_t lows = 0, highs = 0;
  for (int32_t i = 0; i < n; i++) {
    share[i] = (double)(weights[i] * (float)n) / sum;
    if (share[i] < 1)
      low[lows++] = i;
    else
      high[highs++] = i;
    other[i] = i;
  }
  while (lows && highs) {
    int32_t l = low[--lows], h = high[--highs];
    other[l] = h;
    share[h] -= 1 - share[l];
    if (share[h] < 1)
      low[lows++] = h;
    else
      high[highs++] = h;
  }
  for (int32_t i = 0; i < n; i++)
    kept[i] = (float)share[i];
  while (lows)
    kept[low[--lows]] = 1;
  while (highs)
    kept[high[--highs]] = 1;
}

static status fixed_weights(struct op_call *c, struct sampler *s) {
  const char *file = node_attr_string(c->node, "vocab_file", "");
  const struct attr_value *list = node_attr(c->node, "unigrams");
  uint32_t given = list ? list->list.count : 0;
  double distortion = node_attr_float(c->node, "distortion", 1);
  int64_t reserved = node_attr_int(c->node, "num_reserved_ids", 0), shards = node_attr_int(c->node, "num_shards", 1),
          shard = node_attr_int(c->node, "shard", 0);
  if (!*file == !given)
    return fail(INVALID_ARGUMENT,
                given ? "Must only provide one of vocab_file and unigrams." : "Must provide either vocab_file or unigrams.");
  if (*file)
    return fail(UNIMPLEMENTED, "weights from a file (vocab_file)");
  if (shards < 1 || shard < 0 || reserved < 0)
    return fail(INVALID_ARGUMENT, "num_shards must be positive, shard and num_reserved_ids not negative");
  size_t n = (size_t)s->range;
  struct arena *arena = op_arena(c);
  float *weights = ARENA_ARRAY(arena, float, n), *kept = ARENA_ARRAY(arena, float, n), *probability = ARENA_ARRAY(arena, float, n);
  double *share = ARENA_ARRAY(arena, double, n);
  int64_t *other = ARENA_ARRAY(arena, int64_t, n), have = shard < reserved && shard < shards ? (reserved - 1 - shard) / shards + 1 : 0;
  int32_t *low = ARENA_ARRAY(arena, int32_t, n), *high = ARENA_ARRAY(arena, int32_t, n);
  float total = 0;
  double sum = 0;
  if (have > s->range)
    return fail(INVALID_ARGUMENT, "range is %lld must be equal to weights size, at least %lld", (long long)s->range, (long long)have);
  for (int64_t i = 0; i < have; i++) /* reserved ids of this shard: never drawn */
    weights[i] = 0;
  int64_t word = have;
  for (uint32_t i = 0; i < given; i++, word++) {
    if (word % shards != shard)
      continue;
    if (have == s->range)
      return fail(INVALID_ARGUMENT, "range is %lld must be equal to weights size", (long long)s->range);
    float w = powf((float)list->list.items[i].f, (float)distortion);
    total += w;
    weights[have++] = w;
  }
  if (have != s->range)
    return fail(INVALID_ARGUMENT, "range is %lld must be equal to weights size %lld", (long long)s->range, (long long)have);
  for (size_t i = 0; i < n; i++) {
    sum += weights[i];
    probability[i] = weights[i] / total;
  }
  alias_table(weights, sum, (int32_t)n, share, low, high, kept, other);
  dim range = op_dim(c, s->range);
  s->probabilities = op_constant(c, DTYPE_FLOAT, 1, &range, probability);
  s->kept = op_constant(c, DTYPE_FLOAT, 1, &range, kept);
  s->other = op_constant(c, DTYPE_INT64, 1, &range, other);
  return OK;
}

static expr_id by_table(struct kb *kb, const struct sampler *s, uint32_t kept, uint32_t other, struct word_stream *words) {
  expr_id r = words_float(words), place = words_below(words, kb_int(kb, s->range), false);
  expr_id stays = bin(kb, SCALAR_LT, r, kb_load(kb, kept, &place).re);
  return kb_get(kb, kb_local(kb, expr_select(kb->k, stays, place, kb_load(kb, other, &place).re)));
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

/* What one draw needs in a kernel. */
struct draws {
  struct philox p;
  struct word_stream words;
  uint32_t pairs, tables[2];
};
static struct draws draws_bind(struct kb *kb, const struct sampler *s) {
  struct draws d = {0};
  if (s->kind == SAMPLER_LEARNED)
    d.tables[0] = kb_in(kb, s->weights);
  if (s->kind == SAMPLER_FIXED) {
    d.tables[0] = kb_in(kb, s->kept);
    d.tables[1] = kb_in(kb, s->other);
  }
  return d;
}
static expr_id draw_class(struct kb *kb, const struct sampler *s, struct draws *d, expr_id number) {
  switch (s->kind) {
  case SAMPLER_LOG: return log_uniform(kb, s, &d->p, d->pairs);
  case SAMPLER_UNIFORM: return words_below(&d->words, kb_int(kb, s->range), true);
  case SAMPLER_LEARNED: return by_weight(kb, s, d->tables[0], &d->words);
  case SAMPLER_FIXED: return by_table(kb, s, d->tables[0], d->tables[1], &d->words);
  default: return number;
  }
}

/* ---- all draws; `tries` is how many they were ---- */

static status draw_candidates(struct op_call *c, const struct sampler *s, value_id *out, value_id *tries) {
  struct random_source source = random_stateful(c);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  struct random_state state = random_bind(&kb, &source);
  dim count = op_dim(c, s->count);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &count), n = kb_out(&kb, DTYPE_INT64, 0, NULL);
  struct draws d = draws_bind(&kb, s);
  d.p = random_load(&kb, &source, &state);
  d.words = words_begin(&kb, d.p);
  d.pairs = kb_local(&kb, kb_int(&kb, 0));
  uint32_t picked = kb_local(&kb, kb_int(&kb, 0)), tried = kb_local(&kb, kb_int(&kb, 0));
  expr_id place = kb_get(&kb, picked), one = kb_int(&kb, 1);
  kb_while(&kb, kb_lt(&kb, place, kb_int(&kb, s->count)));
  expr_id value = draw_class(&kb, s, &d, place);
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
  if (s->kind != SAMPLER_LOG)
    return expr_float(kb->k, DTYPE_FLOAT, 1.0 / (double)s->range);
  expr_id v = expr_cast(kb->k, DTYPE_DOUBLE, value),
          ratio = bin(kb, SCALAR_DIV, bin(kb, SCALAR_ADD, v, f64(kb, 2)), bin(kb, SCALAR_ADD, v, f64(kb, 1)));
  return expr_cast(kb->k, DTYPE_FLOAT, bin(kb, SCALAR_DIV, expr_unary(kb->k, SCALAR_LOG, ratio), f64(kb, log1p((double)s->range))));
}

/* p * count; of tries that went on until all were different: 1 - (1 - p)^tries. True classes (`given`) must be in range. */
static status expected_counts(struct op_call *c, const struct sampler *s, value_id classes, value_id tries, bool given, value_id *out) {
  struct flow_value x = *op_value(c, classes);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, classes), n = kb_in(&kb, tries), o = kb_out(&kb, DTYPE_FLOAT, x.rank, x.dims);
  uint32_t table = s->probabilities ? kb_in(&kb, s->probabilities) : 0;
  expr_id index[LIMIT_RANK], range = kb_int(&kb, s->range);
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  expr_id class = kb_get(&kb, kb_local(&kb, kb_load(&kb, a, index).re)), tried = kb_load(&kb, n, NULL).re;
  if (given)
    kb_check(&kb, kb_and(&kb, kb_lt(&kb, kb_int(&kb, -1), class), kb_lt(&kb, class, range)), INVALID_ARGUMENT,
             "`true_candidate` out of range [0, %d), received %d", range, class);
  expr_id at = kb_clamp(&kb, class, range);
  expr_id p = s->kind == SAMPLER_ALL ? expr_float(kb.k, DTYPE_FLOAT, 1)
            : s->probabilities       ? kb_load(&kb, table, &at).re
                                     : probability(&kb, s, class);
  expr_id simple = s->kind == SAMPLER_ALL ? p : bin(&kb, SCALAR_MUL, p, expr_float(kb.k, DTYPE_FLOAT, (double)s->count));
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
  if (s.kind == SAMPLER_LEARNED)
    TRY(learned_weights(c, &s));
  if (s.kind == SAMPLER_FIXED)
    TRY(fixed_weights(c, &s));
  TRY(draw_candidates(c, &s, &candidates, &tries));
  op_set_output(c, 0, candidates);
  TRY(expected_counts(c, &s, truth, tries, true, &counts));
  op_set_output(c, 1, counts);
  TRY(expected_counts(c, &s, candidates, tries, false, &counts));
  op_set_output(c, 2, counts);
  return s.kind == SAMPLER_LEARNED ? learn(c, &s, truth) : OK;
}
