/* ops_stochastic_cast.c: floats to integers, rounded up as often as their fraction says (StochasticCastToInt).
 *
 * The generator starts where the key stands in the upper half of its counter and the counter's first number is its key. TensorFlow takes
 * the numbers in two ways, which depend on the dtypes: one block for each number that is rounded, of which it uses the first; or, where
 * it casts whole vectors, one block for each vector, whose numbers are repeated in it, and the first way for what is left at the end. */
#include "ir/ops/element_words.h"
#include "ir/ops/random/random_source.h"

struct rounding {
  struct kb *kb;
  struct philox philox;
  enum dtype from, to;
  uint32_t in, out;
};

static struct element number(const struct rounding *r, double v) { return f_const_as(&r->kb->f, r->from, v); }

/* What is no fraction, or beyond the integers: as it is, or the nearest integer; NaN is 0. */
static struct element plain(const struct rounding *r, struct element x) {
  struct kb *kb = r->kb;
  struct element least = kb_limit(kb, r->to, false), most = kb_limit(kb, r->to, true);
  least = e_cast(kb, r->from, least);
  most = e_cast(kb, r->from, most);
  struct element kept = e_select(kb, e_le(kb, x, least), least, e_select(kb, e_le(kb, most, x), most, x));
  return e_select(kb, e_eq(kb, x, x), kept, number(r, 0));
}

static expr_id is_fraction(const struct rounding *r, struct element x) {
  struct element whole = plain(r, x);
  return kb_not(r->kb, e_eq(r->kb, e_floor(r->kb, whole), whole));
}

/* In [0,1): the numbers of block `block` from word `word` (i64) on. */
static struct element draw(const struct rounding *r, expr_id block, expr_id word) {
  struct kb *kb = r->kb;
  expr_id at = kb_add(kb, kb_mul(kb, block, kb_int(kb, 4)), word);
  expr_id first = philox_word(kb, &r->philox, at), second = NO_EXPR;
  if (r->from == DTYPE_DOUBLE)
    second = philox_word(kb, &r->philox, kb_add(kb, at, kb_int(kb, 1)));
  return real_element(philox_uniform(kb, r->from, first, second));
}

/* Whole vectors, `width` numbers each: `count` numbers from the first on. */
static void round_vectors(const struct rounding *r, dim count, int64_t width) {
  struct kb *kb = r->kb;
  int64_t words = r->from == DTYPE_DOUBLE ? 2 : 1;
  expr_id i = kb_for_dim(kb, LOOP_PAR, count), lane = kb_mod(kb, i, kb_int(kb, 4 / words));
  struct element x = e_now(kb, kb_load(kb, r->in, &i));
  struct element by = e_now(kb, draw(r, kb_div(kb, i, kb_int(kb, width)), kb_mul(kb, lane, kb_int(kb, words))));
  struct element up = e_select(kb, e_lt(kb, x, number(r, 0)), by, e_sub(kb, number(r, 1), by));
  store_as(kb, r->out, &i, e_select(kb, is_fraction(r, x), e_floor(kb, e_add(kb, x, up)), plain(r, x)));
  kb_close(kb, 1);
}

/* `count` numbers behind the first `start`, one after another; `blocks` have been used. */
static void round_singly(const struct rounding *r, dim start, dim count, expr_id blocks) {
  struct kb *kb = r->kb;
  uint32_t used = kb_local(kb, blocks);
  expr_id i = kb_add(kb, kb_for_dim(kb, LOOP_SEQ, count), kb_dim(kb, start));
  struct element x = e_now(kb, kb_load(kb, r->in, &i));
  kb_if(kb, is_fraction(r, x));
  struct element by = e_now(kb, draw(r, kb_get(kb, used), kb_int(kb, 0)));
  struct element up = e_sub(kb, e_add(kb, x, number(r, 1)), by);
  store_as(kb, r->out, &i, e_floor(kb, e_select(kb, e_lt(kb, x, number(r, 0)), e_add(kb, x, by), up)));
  kb_set(kb, used, kb_add(kb, kb_get(kb, used), kb_int(kb, 1)));
  kb_else(kb);
  store_as(kb, r->out, &i, plain(r, x));
  kb_close(kb, 2);
}

status build_stochastic_cast(struct op_call *c) {
  value_id in;
  struct random_source source;
  TRY(op_input(c, 0, &in));
  TRY(random_given(c, 1, &source));
  struct flow_value x = *op_value(c, in);
  dim count = op_count(c, x.rank, x.dims);
  in = op_alias(c, in, x.dtype, 1, &count);
  enum dtype to = op_output_dtype(c, 0);
  bool vectors = to == DTYPE_INT32 && (x.dtype == DTYPE_FLOAT || x.dtype == DTYPE_DOUBLE);
  int64_t width = x.dtype == DTYPE_FLOAT ? 8 : 4; /* of 256 bits; integers of 32 bits are stored eight at a time */
  dim eight = op_dim(c, 8), whole = op_mul(c, dim_floordiv(op_dims(c), count, eight), eight);
  dim start = vectors ? whole : op_dim(c, 0);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t key = kb_in(&kb, source.key), counter = kb_in(&kb, source.counter);
  struct rounding r = {.kb = &kb, .from = x.dtype, .to = to, .in = kb_in(&kb, in), .out = kb_out(&kb, to, 1, &count)};
  expr_id first = kb_int(&kb, 0);
  r.philox = (struct philox){kb_load(&kb, counter, &first).re, expr_int(kb.k, DTYPE_UINT64, 0), kb_load(&kb, key, &first).re};
  if (vectors)
    round_vectors(&r, start, width);
  round_singly(&r, start, dim_sub(op_dims(c), count, start), kb_div(&kb, kb_dim(&kb, start), kb_int(&kb, width)));
  value_id out = kb_value(&kb, r.out);
  TRY(kb_finish(&kb));
  op_set_output(c, 0, op_alias(c, out, to, x.rank, x.dims));
  return OK;
}
