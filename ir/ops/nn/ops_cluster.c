/* ops_cluster.c: what k-means needs: the nearest centres of points, and choosing first centres at random (k-means++, and one step of
 * its approximation by a Markov chain, KMC2). Distances are half squares in float: |x|^2 / 2 - x y + |y|^2 / 2. */
#include <math.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/random/random_stream.h"

static expr_id bin(struct kb *kb, enum scalar_op op, expr_id a, expr_id b) { return expr_binary(kb->k, op, a, b); }
static expr_id f32(struct kb *kb, double v) { return expr_float(kb->k, DTYPE_FLOAT, v); }
static expr_id now(struct kb *kb, expr_id e) { return kb_get(kb, kb_local(kb, e)); }
static expr_id load1(struct kb *kb, uint32_t buffer, expr_id i) { return kb_load(kb, buffer, &i).re; }

/* The product of row i of one matrix and row j of another. */
static expr_id row_product(struct kb *kb, uint32_t a, expr_id i, uint32_t b, expr_id j, dim width) {
  uint32_t sum = kb_local(kb, f32(kb, 0));
  expr_id k = kb_for_dim(kb, LOOP_SEQ, width), left[2] = {i, k}, right[2] = {j, k};
  kb_set(kb, sum, bin(kb, SCALAR_ADD, kb_get(kb, sum), bin(kb, SCALAR_MUL, kb_load(kb, a, left).re, kb_load(kb, b, right).re)));
  kb_close(kb, 1);
  return kb_get(kb, sum);
}
static expr_id half_square(struct kb *kb, uint32_t a, expr_id i, dim width) {
  return now(kb, bin(kb, SCALAR_MUL, f32(kb, 0.5), row_product(kb, a, i, a, i, width)));
}
static status need_matrix(struct op_call *c, value_id v, const char *name) {
  struct flow_value x = *op_value(c, v);
  return x.rank == 2 ? OK : fail(INVALID_ARGUMENT, "Input %s should be a matrix: %s", name, op_shape_text(c, x.rank, x.dims));
}
static status need_scalar(struct op_call *c, value_id v, const char *name) {
  struct flow_value x = *op_value(c, v);
  return x.rank == 0 ? OK : fail(INVALID_ARGUMENT, "Input %s should be a scalar: %s", name, op_shape_text(c, x.rank, x.dims));
}
static void check_some(struct kb *kb, dim count, const char *text) {
  kb_check(kb, kb_lt(kb, kb_int(kb, 0), kb_dim(kb, count)), INVALID_ARGUMENT, text, NO_EXPR, NO_EXPR);
}

/* ---- nearest centres ---- */

/* Is centre j, at this distance, the next one after the one before (in the order of distance, then number)? */
static expr_id comes_after(struct kb *kb, expr_id distance, expr_id j, expr_id last_distance, expr_id last) {
  expr_id equal = kb_and(kb, bin(kb, SCALAR_EQ, distance, last_distance), kb_lt(kb, last, j));
  return bin(kb, SCALAR_OR, bin(kb, SCALAR_LT, last_distance, distance), equal);
}

status build_nearest_neighbors(struct op_call *c) {
  value_id in[3];
  for (uint32_t i = 0; i < 3; i++)
    TRY(op_input(c, i, &in[i]));
  TRY(need_matrix(c, in[0], "points"));
  TRY(need_matrix(c, in[1], "centers"));
  TRY(need_scalar(c, in[2], "k"));
  struct flow_value p = *op_value(c, in[0]), q = *op_value(c, in[1]);
  TRY(op_equal_dims(c, p.dims[1], q.dims[1], "Expected point_dimensions == center_dimensions"));
  dim *k;
  int count;
  TRY(op_elements(c, in[2], &k, &count));
  dim dims[2] = {p.dims[0], dim_min(op_dims(c), q.dims[0], k[0])}, all[2] = {p.dims[0], q.dims[0]}, width = p.dims[1];
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t points = kb_in(&kb, in[0]), centers = kb_in(&kb, in[1]), index = kb_out(&kb, DTYPE_INT64, 2, dims),
           near = kb_out(&kb, DTYPE_FLOAT, 2, dims);
  uint32_t work = kb_out(&kb, DTYPE_FLOAT, 2, all);
  kb_for(&kb, LOOP_PAR, kb_int(&kb, 1)); /* a phase of its own: without points none of the others runs */
  check_some(&kb, p.dims[0], "Expected points.rows() > 0.");
  kb_close(&kb, 1);
  expr_id at[2], i = kb_for_dim(&kb, LOOP_PAR, p.dims[0]), j = kb_for_dim(&kb, LOOP_SEQ, q.dims[0]);
  expr_id partial = bin(&kb, SCALAR_SUB, half_square(&kb, centers, j, width), row_product(&kb, points, i, centers, j, width));
  at[0] = i;
  at[1] = j;
  kb_store(&kb, work, at, real_element(partial));
  kb_close(&kb, 1);
  expr_id own = half_square(&kb, points, i, width);
  uint32_t last = kb_local(&kb, kb_int(&kb, -1)), last_distance = kb_local(&kb, f32(&kb, -INFINITY));
  expr_id place = kb_for_dim(&kb, LOOP_SEQ, dims[1]);
  uint32_t best = kb_local(&kb, kb_int(&kb, -1)), best_distance = kb_local(&kb, f32(&kb, INFINITY));
  j = at[1] = kb_for_dim(&kb, LOOP_SEQ, q.dims[0]);
  expr_id distance = now(&kb, kb_load(&kb, work, at).re), none = kb_lt(&kb, kb_get(&kb, best), kb_int(&kb, 0));
  expr_id closer = bin(&kb, SCALAR_OR, none, bin(&kb, SCALAR_LT, distance, kb_get(&kb, best_distance)));
  kb_if(&kb, kb_and(&kb, comes_after(&kb, distance, j, kb_get(&kb, last_distance), kb_get(&kb, last)), closer));
  kb_set(&kb, best, j);
  kb_set(&kb, best_distance, distance);
  kb_close(&kb, 2);
  at[1] = place;
  kb_store(&kb, index, at, real_element(kb_get(&kb, best)));
  kb_store(&kb, near, at, real_element(bin(&kb, SCALAR_MUL, f32(&kb, 2), bin(&kb, SCALAR_ADD, own, kb_get(&kb, best_distance)))));
  kb_set(&kb, last, kb_get(&kb, best));
  kb_set(&kb, last_distance, kb_get(&kb, best_distance));
  kb_close(&kb, 2);
  op_set_output(c, 0, kb_value(&kb, index));
  op_set_output(c, 1, kb_value(&kb, near));
  return kb_finish(&kb);
}

/* ---- first centres ---- */

static struct philox seeded(struct kb *kb, uint32_t seed) {
  expr_id zero = expr_int(kb->k, DTYPE_UINT64, 0);
  return (struct philox){expr_cast(kb->k, DTYPE_UINT64, kb_load(kb, seed, NULL).re), zero, zero};
}

/* A chain over the candidates: each takes the place of the one held with the probability of its distance over the held one's. */
status build_kmc2_chain(struct op_call *c) {
  value_id v, vs;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &vs));
  struct flow_value x = *op_value(c, v);
  if (x.rank != 1)
    return fail(INVALID_ARGUMENT, "Input distances should be a vector: %s", op_shape_text(c, x.rank, x.dims));
  TRY(need_scalar(c, vs, "seed"));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, v), seed = kb_in(&kb, vs), o = kb_out(&kb, DTYPE_INT64, 0, NULL);
  check_some(&kb, x.dims[0], "Expected distances_tensor.size() > 0.");
  struct word_stream words = words_begin(&kb, seeded(&kb, seed));
  expr_id one = kb_int(&kb, 1);
  uint32_t held = kb_local(&kb, kb_int(&kb, 0)), distance = kb_local(&kb, load1(&kb, a, kb_int(&kb, 0)));
  expr_id i = kb_add(&kb, one, kb_for(&kb, LOOP_SEQ, kb_sub(&kb, kb_dim(&kb, x.dims[0]), one)));
  expr_id candidate = now(&kb, load1(&kb, a, i)), limit = bin(&kb, SCALAR_MUL, words_float(&words), kb_get(&kb, distance));
  kb_if(&kb, bin(&kb, SCALAR_LT, limit, candidate));
  kb_set(&kb, held, i);
  kb_set(&kb, distance, candidate);
  kb_close(&kb, 2);
  kb_store(&kb, o, NULL, real_element(kb_get(&kb, held)));
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

struct seeding {
  struct kb *kb;
  uint32_t points, half, nearest, trial, best, sums,
    used; /* [n]: half squares; distances to the nearest centre, with a trial, with the best
                                                              trial; their running sums; which are taken */
  dim n, width;
  struct word_stream words;
};

#define DRAWS_MAX 1000 /* of points that are taken, in a row */

static expr_id is_used(const struct seeding *s, uint32_t point) { return load1(s->kb, s->used, kb_get(s->kb, point)); }

/* Another point than a drawn one that is taken: the first that is not. */
static void avoid_used(const struct seeding *s, uint32_t point) {
  struct kb *kb = s->kb;
  kb_if(kb, is_used(s, point));
  kb_set(kb, point, kb_int(kb, 0));
  kb_while(kb, is_used(s, point));
  kb_set(kb, point, kb_clamp(kb, kb_add(kb, kb_get(kb, point), kb_int(kb, 1)), kb_dim(kb, s->n)));
  kb_close(kb, 2);
}

/* The first is any; the others with a probability like their distance from the nearest centre, none twice; any where all of them lie on
 * centres, or are no numbers. There are more points than are taken. */
static expr_id draw_point(struct seeding *s, expr_id first) {
  struct kb *kb = s->kb;
  expr_id n = kb_dim(kb, s->n), last = kb_sub(kb, n, kb_int(kb, 1));
  expr_id total = now(kb, load1(kb, s->sums, last));
  uint32_t point = kb_local(kb, kb_int(kb, 0)), again = kb_local(kb, bin(kb, SCALAR_LT, f32(kb, 0), total)),
           draws = kb_local(kb, kb_int(kb, 0));
  kb_if(kb, first);
  kb_set(kb, point, words_below(&s->words, n, true));
  kb_else(kb);
  kb_while(kb, kb_and(kb, kb_get(kb, again), kb_lt(kb, kb_get(kb, draws), kb_int(kb, DRAWS_MAX))));
  kb_set(kb, draws, kb_add(kb, kb_get(kb, draws), kb_int(kb, 1)));
  expr_id wanted = now(kb, bin(kb, SCALAR_MUL, words_float(&s->words), total));
  kb_set(kb, point, kb_int(kb, 0));
  expr_id i = kb_for(kb, LOOP_SEQ, n), below = bin(kb, SCALAR_LE, load1(kb, s->sums, i), wanted);
  kb_set(kb, point, kb_add(kb, kb_get(kb, point), expr_cast(kb->k, DTYPE_INT64, below)));
  kb_close(kb, 1);
  kb_set(kb, point, kb_clamp(kb, kb_get(kb, point), n));
  kb_set(kb, again, is_used(s, point));
  kb_close(kb, 1);
  avoid_used(s, point);
  kb_close(kb, 1);
  return now(kb, kb_get(kb, point));
}

/* The distances with a point as a centre too, in `trial`; gives their sum. */
static expr_id try_point(struct seeding *s, expr_id point) {
  struct kb *kb = s->kb;
  uint32_t sum = kb_local(kb, f32(kb, 0));
  expr_id i = kb_for_dim(kb, LOOP_SEQ, s->n);
  expr_id distance = bin(kb, SCALAR_SUB, load1(kb, s->half, i), row_product(kb, s->points, i, s->points, point, s->width));
  distance = bin(kb, SCALAR_ADD, distance, load1(kb, s->half, point));
  expr_id nearer = now(kb, bin(kb, SCALAR_MIN, load1(kb, s->nearest, i), distance));
  kb_store(kb, s->trial, &i, real_element(nearer));
  kb_set(kb, sum, bin(kb, SCALAR_ADD, kb_get(kb, sum), nearer));
  kb_close(kb, 1);
  return kb_get(kb, sum);
}

static void copy_vector(struct kb *kb, uint32_t to, uint32_t from, dim n) {
  expr_id i = kb_for_dim(kb, LOOP_SEQ, n);
  kb_store(kb, to, &i, kb_load(kb, from, &i));
  kb_close(kb, 1);
}

/* One more centre: the best of 1 + retries draws. */
static expr_id next_center(struct seeding *s, expr_id number, expr_id retries) {
  struct kb *kb = s->kb;
  uint32_t sum = kb_local(kb, f32(kb, 0)), lowest = kb_local(kb, f32(kb, INFINITY)), chosen = kb_local(kb, kb_int(kb, 0));
  expr_id i = kb_for_dim(kb, LOOP_SEQ, s->n);
  kb_set(kb, sum, bin(kb, SCALAR_ADD, kb_get(kb, sum), load1(kb, s->nearest, i)));
  kb_store(kb, s->sums, &i, real_element(kb_get(kb, sum)));
  kb_close(kb, 1);
  kb_for(kb, LOOP_SEQ, kb_add(kb, retries, kb_int(kb, 1)));
  expr_id point = draw_point(s, bin(kb, SCALAR_EQ, number, kb_int(kb, 0))), potential = now(kb, try_point(s, point));
  kb_if(kb, bin(kb, SCALAR_LT, potential, kb_get(kb, lowest)));
  kb_set(kb, lowest, potential);
  kb_set(kb, chosen, point);
  copy_vector(kb, s->best, s->trial, s->n);
  kb_close(kb, 2);
  copy_vector(kb, s->nearest, s->best, s->n);
  expr_id at = now(kb, kb_get(kb, chosen));
  kb_store(kb, s->used, &at, real_element(expr_int(kb->k, DTYPE_BOOL, 1)));
  return at;
}

/* points, num_to_sample, seed, num_retries_per_sample (below 0: 2 + log(num_to_sample)) */
status build_kmeans_initialization(struct op_call *c) {
  static const char *const names[] = {"points", "num_to_sample", "seed", "num_retries_per_sample"};
  value_id in[4];
  dim *wanted;
  int count;
  for (uint32_t i = 0; i < 4; i++) {
    TRY(op_input(c, i, &in[i]));
    TRY(i ? need_scalar(c, in[i], names[i]) : need_matrix(c, in[i], names[i]));
  }
  TRY(op_elements(c, in[1], &wanted, &count));
  struct flow_value p = *op_value(c, in[0]);
  dim dims[2] = {wanted[0], p.dims[1]};
  if (dim_less(op_dims(c), op_dim(c, 0), dims[0]) == 0)
    return fail(INVALID_ARGUMENT, "Expected num_to_sample > 0.");
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  struct seeding s = {.kb = &kb, .n = p.dims[0], .width = p.dims[1], .points = kb_in(&kb, in[0])};
  uint32_t seed = kb_in(&kb, in[2]), retry = kb_in(&kb, in[3]), o = kb_out(&kb, DTYPE_FLOAT, 2, dims);
  uint32_t *vectors[] = {&s.half, &s.nearest, &s.trial, &s.best, &s.sums};
  for (int i = 0; i < 5; i++)
    *vectors[i] = kb_scratch(&kb, DTYPE_FLOAT, 1, &s.n);
  s.used = kb_scratch(&kb, DTYPE_BOOL, 1, &s.n);
  expr_id samples = kb_dim(&kb, dims[0]), n = kb_dim(&kb, s.n);
  check_some(&kb, s.n, "Expected points.rows() > 0.");
  check_some(&kb, dims[0], "Expected num_to_sample > 0.");
  kb_check(&kb, bin(&kb, SCALAR_LE, samples, n), INVALID_ARGUMENT, "Expected num_to_sample <= points.rows(). %d vs %d.", samples, n);
  s.words = words_begin(&kb, seeded(&kb, seed));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, s.n);
  kb_store(&kb, s.half, &i, real_element(half_square(&kb, s.points, i, s.width)));
  kb_store(&kb, s.nearest, &i, real_element(f32(&kb, INFINITY)));
  kb_store(&kb, s.best, &i, real_element(f32(&kb, INFINITY)));
  kb_store(&kb, s.used, &i, real_element(expr_int(kb.k, DTYPE_BOOL, 0)));
  kb_close(&kb, 1);
  expr_id given = kb_load(&kb, retry, NULL).re, log = expr_unary(kb.k, SCALAR_LOG, expr_cast(kb.k, DTYPE_DOUBLE, samples));
  expr_id usual = kb_add(&kb, kb_int(&kb, 2), expr_cast(kb.k, DTYPE_INT64, log));
  expr_id retries = now(&kb, expr_select(kb.k, kb_lt(&kb, given, kb_int(&kb, 0)), usual, given));
  i = kb_for(&kb, LOOP_SEQ, samples);
  expr_id from[2] = {next_center(&s, i, retries), NO_EXPR}, to[2] = {i, NO_EXPR};
  from[1] = to[1] = kb_for_dim(&kb, LOOP_SEQ, s.width);
  kb_store(&kb, o, to, kb_load(&kb, s.points, from));
  kb_close(&kb, 2);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
