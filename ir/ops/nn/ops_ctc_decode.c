/* ops_ctc_decode.c: what a sequence says and how far it is from the truth: CTCGreedyDecoder, EditDistance. */
#include <math.h>
#include <string.h>

#include "ir/ops/sparse/sparse.h"

/* ---- CTCGreedyDecoder: the likeliest class of each time, blanks dropped, repeated ones merged ---- */

struct greedy {
  value_id inputs, lengths;
  enum dtype dtype;
  dim times, batch, classes;
  int64_t blank;
  bool merges;
};

/* The class of the largest input of a row, in locals: its number and its value. */
static void best_class(struct kb *kb, const struct greedy *g, expr_id time, expr_id b, uint32_t *class, uint32_t *value) {
  expr_id at[3] = {time, b, kb_int(kb, 0)};
  uint32_t in = kb_in(kb, g->inputs);
  *class = kb_local(kb, kb_int(kb, 0));
  *value = kb_local(kb, kb_load(kb, in, at).re);
  at[2] = kb_for_dim(kb, LOOP_SEQ, g->classes);
  expr_id x = kb_load(kb, in, at).re;
  kb_if(kb, kb_lt(kb, kb_get(kb, *value), x));
  kb_set(kb, *value, x);
  kb_set(kb, *class, at[2]);
  kb_close(kb, 2);
}

/* Opens loops over the times of row b and an if where a class is said (local `class`); the caller closes 1 block, then sets
 * `previous`, and closes the loop. */
static void each_said(struct kb *kb, const struct greedy *g, expr_id b, uint32_t score, uint32_t *class, uint32_t *previous) {
  uint32_t lengths = kb_in(kb, g->lengths), value;
  expr_id length = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, lengths, &b)))), blank = kb_int(kb, g->blank);
  if (g->blank < 0)
    blank = kb_add(kb, kb_dim(kb, g->classes), blank);
  kb_check(kb, kb_and(kb, kb_le(kb, kb_int(kb, 0), length), kb_le(kb, length, kb_dim(kb, g->times))), FAILED_PRECONDITION,
           "sequence_length(%d) = %d is not between 0 and the number of times", b, length);
  *previous = kb_local(kb, kb_int(kb, -1));
  expr_id time = kb_for(kb, LOOP_SEQ, length);
  best_class(kb, g, time, b, class, &value);
  kb_set(kb, score, kb_sub(kb, kb_get(kb, score), kb_get(kb, value)));
  expr_id said = kb_ne(kb, kb_get(kb, *class), blank);
  if (g->merges)
    said = kb_and(kb, said, kb_ne(kb, kb_get(kb, *class), kb_get(kb, *previous)));
  kb_if(kb, said);
}

static status count_said(struct op_call *c, const struct greedy *g, dim *total, dim *longest) {
  dim scores[2] = {g->batch, op_dim(c, 1)};
  struct kb kb;
  kb_begin(&kb, c, g->dtype);
  uint32_t all = kb_out(&kb, DTYPE_INT64, 0, NULL), most = kb_out(&kb, DTYPE_INT64, 0, NULL), out = kb_out(&kb, g->dtype, 2, scores);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1);
  uint32_t sum = kb_local(&kb, zero), top = kb_local(&kb, zero), class, previous;
  expr_id b = kb_for_dim(&kb, LOOP_SEQ, g->batch);
  uint32_t own = kb_local(&kb, zero), score = kb_local(&kb, expr_float(kb.k, g->dtype, 0));
  each_said(&kb, g, b, score, &class, &previous);
  kb_set(&kb, own, kb_add(&kb, kb_get(&kb, own), one));
  kb_close(&kb, 1);
  kb_set(&kb, previous, kb_get(&kb, class));
  kb_close(&kb, 1);
  kb_set(&kb, sum, kb_add(&kb, kb_get(&kb, sum), kb_get(&kb, own)));
  kb_set(&kb, top, expr_binary(kb.k, SCALAR_MAX, kb_get(&kb, top), kb_get(&kb, own)));
  kb_store(&kb, out, (expr_id[]){b, zero}, real_element(kb_get(&kb, score)));
  kb_close(&kb, 1);
  kb_store(&kb, all, NULL, real_element(kb_get(&kb, sum)));
  kb_store(&kb, most, NULL, real_element(kb_get(&kb, top)));
  op_set_output(c, 3, kb_value(&kb, out));
  value_id v = kb_value(&kb, all), w = kb_value(&kb, most);
  TRY(kb_finish_guarded(&kb));
  TRY(op_bound_dims(c, v, 1, total));
  return op_bound_dims(c, w, 1, longest);
}

status build_ctc_greedy_decoder(struct op_call *c) {
  struct greedy g = {.blank = node_attr_int(c->node, "blank_index", -1), .merges = node_attr_int(c->node, "merge_repeated", 0) != 0};
  TRY(op_input(c, 0, &g.inputs));
  TRY(op_input(c, 1, &g.lengths));
  struct flow_value x = *op_value(c, g.inputs), s = *op_value(c, g.lengths);
  if (x.rank != 3 || s.rank != 1)
    return fail(INVALID_ARGUMENT, x.rank != 3 ? "inputs is not a 3-Tensor" : "sequence_length is not a vector");
  g.dtype = x.dtype, g.times = x.dims[0], g.batch = x.dims[1], g.classes = x.dims[2];
  TRY(op_require_le(c, op_dim(c, 1), g.classes, "inputs need at least %d class, not %d"));
  TRY(op_equal_dims(c, s.dims[0], g.batch, "len(sequence_length) and batch_size"));
  dim total, longest;
  TRY(count_said(c, &g, &total, &longest));
  dim dims[2] = {total, op_dim(c, 2)}, shape[2] = {g.batch, longest};
  struct kb kb;
  kb_begin(&kb, c, g.dtype);
  uint32_t indices = kb_out(&kb, DTYPE_INT64, 2, dims), values = kb_out(&kb, DTYPE_INT64, 1, dims), class, previous;
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1);
  uint32_t next = kb_local(&kb, zero);
  expr_id b = kb_for_dim(&kb, LOOP_SEQ, g.batch);
  uint32_t place = kb_local(&kb, zero), score = kb_local(&kb, expr_float(kb.k, g.dtype, 0));
  each_said(&kb, &g, b, score, &class, &previous);
  expr_id to = kb_get(&kb, next);
  kb_store(&kb, indices, (expr_id[]){to, zero}, real_element(b));
  kb_store(&kb, indices, (expr_id[]){to, one}, real_element(kb_get(&kb, place)));
  kb_store(&kb, values, &to, real_element(kb_get(&kb, class)));
  kb_set(&kb, next, kb_add(&kb, to, one));
  kb_set(&kb, place, kb_add(&kb, kb_get(&kb, place), one));
  kb_close(&kb, 1);
  kb_set(&kb, previous, kb_get(&kb, class));
  kb_close(&kb, 2);
  op_set_output(c, 0, kb_value(&kb, indices));
  op_set_output(c, 1, kb_value(&kb, values));
  TRY(kb_finish_guarded(&kb));
  op_set_output(c, 2, op_dims_value(c, DTYPE_INT64, 1, shape, 2));
  return OK;
}

/* ---- EditDistance: Levenshtein's, for each group of entries that agree in all but the last index ---- */

/* first[g], after[g]: the entries of group g (row-major number without the last dimension). */
static void find_groups(struct kb *kb, const struct sparse *s, int rank, const dim *dims, uint32_t first, uint32_t after) {
  expr_id n = kb_for_dim(kb, LOOP_SEQ, s->count), index[LIMIT_RANK], one = kb_int(kb, 1);
  kb_sparse_index(kb, s, n, index);
  for (int d = 0; d < rank; d++)
    kb_check(kb, kb_in_range(kb, index[d], kb_dim(kb, dims[d])), INVALID_ARGUMENT, "index %d of entry %d is out of bounds", index[d], n);
  kb_if(kb, kb_eq(kb, kb_load(kb, after, index).re, kb_int(kb, 0)));
  kb_store(kb, first, index, real_element(n));
  kb_close(kb, 1);
  kb_store(kb, after, index, real_element(kb_add(kb, n, one)));
  kb_close(kb, 1);
}

struct distance {
  struct sparse hypothesis, truth;
  uint32_t h_first, h_after, t_first, t_after, row; /* buffers */
};

/* The distance of entries h[h0, h1) and t[t0, t1), in the local *out; `row` holds one row of the table. */
static void edit_distance(struct kb *kb, const struct distance *e, expr_id h0, expr_id h_count, expr_id t0, expr_id t_count,
                          uint32_t *out) {
  uint32_t h = kb_in(kb, e->hypothesis.values), t = kb_in(kb, e->truth.values);
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0);
  expr_id fill = kb_for(kb, LOOP_SEQ, kb_add(kb, t_count, one));
  kb_store(kb, e->row, &fill, real_element(fill));
  kb_close(kb, 1);
  expr_id i = kb_for(kb, LOOP_SEQ, h_count), a = kb_add(kb, h0, i);
  uint32_t corner = kb_local(kb, i);
  kb_store(kb, e->row, &zero, real_element(kb_add(kb, i, one)));
  expr_id j = kb_for(kb, LOOP_SEQ, t_count), next = kb_add(kb, j, one), b = kb_add(kb, t0, j);
  expr_id above = kb_get(kb, kb_local(kb, kb_load(kb, e->row, &next).re)), left = kb_load(kb, e->row, &j).re;
  expr_id same = f_binary(&kb->f, SCALAR_EQ, kb_load(kb, h, &a), kb_load(kb, t, &b)).re;
  expr_id changed = kb_add(kb, kb_get(kb, corner), kb_select(kb, same, zero, one));
  expr_id least = expr_binary(kb->k, SCALAR_MIN, kb_add(kb, expr_binary(kb->k, SCALAR_MIN, above, left), one), changed);
  kb_store(kb, e->row, &next, real_element(least));
  kb_set(kb, corner, above);
  kb_close(kb, 2);
  *out = kb_local(kb, kb_load(kb, e->row, &t_count).re);
}

/* Divided by the length of the truth: of an empty one infinite, unless both are empty. */
static expr_id normalized(struct kb *kb, expr_id distance, expr_id t_count) {
  expr_id zero = kb_int(kb, 0), one = kb_int(kb, 1),
          count = expr_cast(kb->k, DTYPE_FLOAT, kb_select(kb, kb_eq(kb, t_count, zero), one, t_count));
  expr_id share = expr_binary(kb->k, SCALAR_DIV, expr_cast(kb->k, DTYPE_FLOAT, distance), count);
  expr_id empty = kb_and(kb, kb_eq(kb, t_count, zero), kb_lt(kb, zero, distance));
  return kb_select(kb, empty, expr_float(kb->k, DTYPE_FLOAT, INFINITY), share);
}

status build_edit_distance(struct op_call *c) {
  struct distance e;
  bool normalizes = node_attr_int(c->node, "normalize", 1) != 0;
  TRY(sparse_input(c, 0, 1, 2, &e.hypothesis));
  TRY(sparse_input(c, 3, 4, 5, &e.truth));
  if (e.truth.rank < 2)
    return fail(INVALID_ARGUMENT, "Input SparseTensors must have rank at least 2, but truth_shape rank is %d", e.truth.rank);
  if (e.hypothesis.rank != e.truth.rank)
    return fail(INVALID_ARGUMENT, "Expected hypothesis_shape and truth_shape to be the same length, but have: %d and %d", e.hypothesis.rank,
                e.truth.rank);
  TRY(sparse_dims(c, &e.hypothesis, "hypothesis_shape"));
  TRY(sparse_dims(c, &e.truth, "truth_shape"));
  int rank = e.truth.rank - 1;
  dim dims[LIMIT_RANK], length = op_add(c, e.truth.count, op_dim(c, 1));
  for (int d = 0; d < rank; d++)
    dims[d] = dim_max(op_dims(c), e.hypothesis.dims[d], e.truth.dims[d]);
  TRY(op_require_le(c, op_dim(c, 1), op_count(c, rank, dims), "the output must have at least %d element, has %d"));
  struct kb kb;
  kb_begin(&kb, c, op_value(c, e.truth.values)->dtype);
  uint32_t out = kb_out(&kb, DTYPE_FLOAT, rank, dims), *marks[4] = {&e.h_first, &e.h_after, &e.t_first, &e.t_after};
  for (int i = 0; i < 4; i++)
    *marks[i] = kb_scratch(&kb, DTYPE_INT64, rank, dims);
  e.row = kb_scratch(&kb, DTYPE_INT64, 1, &length);
  for (int i = 0; i < 4; i++)
    kb_fill(&kb, *marks[i], rank, dims, real_element(kb_int(&kb, 0)));
  find_groups(&kb, &e.hypothesis, rank, dims, e.h_first, e.h_after);
  find_groups(&kb, &e.truth, rank, dims, e.t_first, e.t_after);
  expr_id at[LIMIT_RANK], part[4];
  kb_loops(&kb, LOOP_SEQ, rank, dims, at);
  for (int i = 0; i < 4; i++)
    part[i] = kb_get(&kb, kb_local(&kb, kb_load(&kb, *marks[i], at).re));
  expr_id h_count = kb_sub(&kb, part[1], part[0]), t_count = kb_get(&kb, kb_local(&kb, kb_sub(&kb, part[3], part[2])));
  uint32_t distance;
  edit_distance(&kb, &e, part[0], h_count, part[2], t_count, &distance);
  expr_id result = kb_get(&kb, distance);
  kb_store(&kb, out, at, real_element(normalizes ? normalized(&kb, result, t_count) : expr_cast(kb.k, DTYPE_FLOAT, result)));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
