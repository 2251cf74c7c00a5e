/* ops_random.c: random numbers, bit for bit as TensorFlow's CPU kernels draw them (normals up to the last places of log,
 * sin and cos). Where key and counter come from: random_source.h. */

#include "ir/ops/arrange.h"
#include "ir/lower/host_call.h"
#include "ir/ops/random/random_source.h"

#define RESERVED 256 /* counter values that TensorFlow sets aside for each element of a stateful draw */

struct request {
  enum draw draw;
  enum dtype dtype;
  value_id minimum, maximum; /* DRAW_INT */
  struct random_source source;
  dim count;
};

static expr_id u64_of(struct kb *kb, expr_id e) { return expr_cast(kb->k, DTYPE_UINT64, e); }

/* How many outputs one block of four words gives. */
static int group_size(const struct request *r) {
  bool wide = r->dtype == DTYPE_DOUBLE || r->dtype == DTYPE_INT64 || r->dtype == DTYPE_UINT64;
  return wide ? 2 : 4;
}

/* ---- from words to elements ---- */

static expr_id scalar_input(struct kb *kb, value_id v) {
  uint32_t buffer = kb_in(kb, v);
  return kb_load(kb, buffer, NULL).re;
}

/* minimum + bits % (maximum - minimum), in unsigned arithmetic */
static expr_id ranged(struct kb *kb, const struct request *r, enum dtype bits_dtype, expr_id bits) {
  expr_id low = expr_cast(kb->k, bits_dtype, scalar_input(kb, r->minimum));
  expr_id high = expr_cast(kb->k, bits_dtype, scalar_input(kb, r->maximum));
  expr_id rest = expr_binary(kb->k, SCALAR_REM, bits, expr_binary(kb->k, SCALAR_SUB, high, low));
  return expr_binary(kb->k, SCALAR_ADD, low, rest);
}

/* The elements of one group from its four words. */
static void group_elements(struct kb *kb, const struct request *r, const expr_id *words, expr_id *out) {
  int size = group_size(r);
  for (int i = 0; i < size; i++) {
    expr_id first = words[size == 2 ? 2 * i : i], second = size == 2 ? words[2 * i + 1] : NO_EXPR;
    expr_id pair[2];
    switch (r->draw) {
    case DRAW_UNIFORM: out[i] = philox_uniform(kb, r->dtype, first, second); break;
    case DRAW_NORMAL:
    case DRAW_TRUNCATED:
      philox_normals(kb, r->dtype, size == 2 ? words : &words[i & 2], pair);
      out[i] = expr_cast(kb->k, r->dtype, pair[i & 1]);
      break;
    case DRAW_INT:
    case DRAW_FULL_INT: {
      expr_id bits = size == 2 ? philox_join(kb, first, second) : first;
      if (r->draw == DRAW_INT)
        bits = ranged(kb, r, size == 2 ? DTYPE_UINT64 : DTYPE_UINT32, bits);
      out[i] = expr_cast(kb->k, r->dtype, bits);
      break;
    }
    }
  }
}

static void store_in_range(struct kb *kb, uint32_t out, expr_id at, expr_id count, bool always, expr_id value) {
  if (!always)
    kb_if(kb, kb_lt(kb, at, count));
  kb_store(kb, out, &at, real_element(value));
  if (!always)
    kb_close(kb, 1);
}

static void draw_group(struct kb *kb, const struct request *r, const struct philox *p, expr_id group, uint32_t out, bool full) {
  expr_id words[4], elements[4], count = kb_dim(kb, r->count);
  int size = group_size(r);
  philox_block(kb, p, u64_of(kb, group), words);
  if (!full)
    for (int i = 0; i < 4; i++) /* computed once, not in each branch */
      words[i] = kb_get(kb, kb_local(kb, words[i]));
  group_elements(kb, r, words, elements);
  for (int i = 0; i < size; i++)
    store_in_range(kb, out, kb_add(kb, kb_mul(kb, group, kb_int(kb, size)), kb_int(kb, i)), count, full, elements[i]);
}

/* Normals beyond two deviations are drawn again, from the words that are set aside for the group. */
static void draw_truncated_group(struct kb *kb, const struct request *r, const struct philox *p, expr_id group, uint32_t out) {
  int size = group_size(r), pairs = size == 2 ? 1 : 2;
  enum dtype d = r->dtype == DTYPE_DOUBLE ? DTYPE_DOUBLE : DTYPE_FLOAT;
  expr_id base = u64_of(kb, kb_mul(kb, group, kb_int(kb, size * RESERVED / 4)));
  uint32_t tries = kb_local(kb, kb_int(kb, 0)), have = kb_local(kb, kb_int(kb, 0));
  expr_id first = kb_mul(kb, group, kb_int(kb, size)), count = kb_dim(kb, r->count);
  kb_while(kb, kb_lt(kb, kb_get(kb, have), kb_int(kb, size)));
  expr_id words[4];
  philox_block(kb, p, expr_binary(kb->k, SCALAR_ADD, base, u64_of(kb, kb_get(kb, tries))), words);
  expr_id found[4];
  for (int pair = 0; pair < pairs; pair++) {
    philox_normals(kb, d, &words[2 * pair], &found[2 * pair]);
    for (int i = 0; i < 2; i++)
      found[2 * pair + i] = kb_get(kb, kb_local(kb, found[2 * pair + i]));
  }
  for (int i = 0; i < 2 * pairs; i++) {
    expr_id near = expr_binary(kb->k, SCALAR_LT, expr_unary(kb->k, SCALAR_ABS, found[i]), expr_float(kb->k, d, 2));
    kb_if(kb, kb_and(kb, near, kb_lt(kb, kb_get(kb, have), kb_int(kb, size))));
    store_in_range(kb, out, kb_add(kb, first, kb_get(kb, have)), count, false, expr_cast(kb->k, r->dtype, found[i]));
    kb_set(kb, have, kb_add(kb, kb_get(kb, have), kb_int(kb, 1)));
    kb_close(kb, 1);
  }
  kb_set(kb, tries, kb_add(kb, kb_get(kb, tries), kb_int(kb, 1)));
  kb_close(kb, 1);
}

/* ---- the kernel ---- */

/* Where numbers are drawn: a kernel of its own, so that the draws stay a parallel one. */
static status check_range(struct op_call *c, const struct request *r) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id low = scalar_input(&guard, r->minimum), high = scalar_input(&guard, r->maximum);
  expr_id none = kb_eq(&guard, kb_dim(&guard, r->count), kb_int(&guard, 0));
  kb_check(&guard, kb_or(&guard, none, expr_binary(guard.k, SCALAR_LT, low, high)), INVALID_ARGUMENT, "Need minval < maxval, got %d >= %d",
           expr_cast(guard.k, DTYPE_INT64, low), expr_cast(guard.k, DTYPE_INT64, high));
  return guard_finish(&guard);
}

static status draw(struct op_call *c, const struct request *r, int rank, const dim *dims) {
  if (r->draw == DRAW_INT)
    TRY(check_range(c, r));
  struct kb kb;
  kb_begin(&kb, c, r->dtype);
  struct random_state state = random_bind(&kb, &r->source);
  uint32_t out = kb_out(&kb, r->dtype, 1, &r->count);
  int size = group_size(r);
  int64_t known = op_dim_value(c, r->count);
  random_check_state(&kb, &r->source, &state);
  dim groups = dim_floordiv(op_dims(c), dim_add(op_dims(c), r->count, op_dim(c, size - 1)), op_dim(c, size));
  expr_id group = kb_for_dim(&kb, LOOP_PAR, groups);
  struct philox p = random_load(&kb, &r->source, &state);
  if (r->draw == DRAW_TRUNCATED)
    draw_truncated_group(&kb, r, &p, group, out);
  else
    draw_group(&kb, r, &p, group, out, known >= 0 && known % size == 0);
  kb_close(&kb, 1);
  random_advance(&kb, &r->source, &state, kb_mul(&kb, kb_dim(&kb, r->count), kb_int(&kb, RESERVED)));
  value_id flat = kb_value(&kb, out);
  TRY(kb_finish_guarded(&kb));
  op_set_output(c, 0, op_alias(c, flat, r->dtype, rank, dims));
  return OK;
}

/* Input number `input` is the shape. */
static status draw_shaped(struct op_call *c, struct request *r, uint32_t input) {
  value_id shape;
  dim *dims;
  int rank;
  TRY(op_input(c, input, &shape));
  TRY(op_given_shape(c, shape, "shape", &dims, &rank));
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a tensor of rank %d", rank);
  for (int i = 0; i < rank; i++)
    if (dim_less(op_dims(c), dims[i], op_dim(c, 0)) == 1)
      return fail(INVALID_ARGUMENT, "shape must not be negative: %s", op_shape_text(c, rank, dims));
  r->dtype = op_output_dtype(c, 0);
  bool is_whole = r->draw == DRAW_INT || r->draw == DRAW_FULL_INT;
  if (!(is_whole ? dtype_is_integer : dtype_is_float)(r->dtype))
    return fail(INVALID_ARGUMENT, "random numbers of such a distribution as %s", dtype_name(r->dtype));
  r->count = op_count(c, rank, dims);
  return draw(c, r, rank, dims);
}

static enum draw draw_of_op(const struct op_call *c) {
  enum draw said = OP_ROW(c, random_row)->draw;
  return said == DRAW_UNIFORM && op_takes(c, "minval") ? DRAW_INT : said;
}

/* ---- stateful ---- */

status build_random(struct op_call *c) {
  struct request r = {.draw = draw_of_op(c), .source = random_stateful(c)};
  if (r.draw == DRAW_INT) {
    TRY(op_input(c, 1, &r.minimum));
    TRY(op_input(c, 2, &r.maximum));
  }
  return draw_shaped(c, &r, 0);
}

/* ---- stateless ---- */

status build_stateless_key_counter(struct op_call *c) {
  value_id seed, key, counter;
  TRY(op_input(c, 0, &seed));
  TRY(random_scramble(c, seed, &key, &counter));
  op_set_output(c, 0, key);
  op_set_output(c, 1, counter);
  if (c->out_count > 2) {
    int64_t philox_algorithm = 1;
    op_set_output(c, 2, op_constant_i64s(c, DTYPE_INT32, 0, NULL, &philox_algorithm, 1));
  }
  return OK;
}

status build_stateless_algorithm(struct op_call *c) {
  int64_t philox_algorithm = 1;
  op_set_output(c, 0, op_constant_i64s(c, DTYPE_INT32, 0, NULL, &philox_algorithm, 1));
  return OK;
}

status build_stateless_random(struct op_call *c) {
  struct request r = {.draw = draw_of_op(c)};
  value_id seed;
  TRY(op_input(c, 1, &seed));
  TRY(random_scramble(c, seed, &r.source.key, &r.source.counter));
  if (r.draw == DRAW_INT) {
    TRY(op_input(c, 2, &r.minimum));
    TRY(op_input(c, 3, &r.maximum));
  }
  return draw_shaped(c, &r, 0);
}

/* shape, key, counter, algorithm, and the range */
status build_stateless_random_v2(struct op_call *c) {
  struct request r = {.draw = draw_of_op(c)};
  TRY(random_given(c, 1, &r.source));
  if (r.draw == DRAW_INT) {
    TRY(op_input(c, 4, &r.minimum));
    TRY(op_input(c, 5, &r.maximum));
  }
  return draw_shaped(c, &r, 0);
}

/* ---- generators ---- */

/* resource, algorithm, shape, and the range; of the first version of normals the state names the algorithm */
status build_generator_draw(struct op_call *c) {
  struct request r = {.draw = draw_of_op(c)};
  bool has_algorithm = op_takes(c, "algorithm");
  TRY(random_generator(c, !has_algorithm, &r.source));
  if (has_algorithm)
    TRY(random_check_algorithm(c, 1));
  if (r.draw == DRAW_INT) {
    TRY(op_input(c, 3, &r.minimum));
    TRY(op_input(c, 4, &r.maximum));
  }
  return draw_shaped(c, &r, has_algorithm ? 2 : 1);
}

/* resource, algorithm, delta: moves on as if delta numbers had been drawn; RngReadAndSkip gives the state before. */
status build_generator_skip(struct op_call *c) {
  struct random_source source;
  value_id delta;
  TRY(random_generator(c, false, &source));
  TRY(random_check_algorithm(c, 1));
  TRY(op_input(c, 2, &delta));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  struct random_state state = random_bind(&kb, &source);
  uint32_t d = kb_in(&kb, delta);
  dim three = op_dim(c, 3);
  if (c->out_count) {
    uint32_t out = kb_out(&kb, DTYPE_INT64, 1, &three);
    expr_id i = kb_for_dim(&kb, LOOP_PAR, three);
    kb_store(&kb, out, &i, kb_load(&kb, state.var, &i));
    kb_close(&kb, 1);
    op_set_output(c, 0, kb_value(&kb, out));
  }
  random_advance(&kb, &source, &state, kb_mul(&kb, kb_index(&kb, kb_load(&kb, d, NULL)), kb_int(&kb, RESERVED)));
  return kb_finish(&kb);
}

/* Integers that no seed decides: a call into the runtime. */
status build_entropy(struct op_call *c) {
  value_id shape;
  int rank;
  dim dims[LIMIT_RANK];
  struct flow_node *n;
  TRY(op_input(c, 0, &shape));
  TRY(op_shape_dims(c, shape, "shape", &rank, dims));
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  op_host_output(c, n, 0, rank, dims);
  return OK;
}
