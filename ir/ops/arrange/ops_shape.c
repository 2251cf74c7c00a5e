/* ops_shape.c: shapes as values, and values under other shapes. Shapes are known symbolically, so most of this leaves no code. */
#include <string.h>

#include "ir/lower/lower.h"
#include "ir/lower/lower_walk.h"
#include "ir/ops/arrange.h"
#include "ir/kernel/formula_words.h"

status build_shape(struct op_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++) {
    value_id v;
    TRY(op_input(c, i, &v));
    struct flow_value x = *op_value(c, v);
    op_set_output(c, i, op_dims_value(c, op_output_dtype(c, i), 1, x.dims, x.rank));
  }
  return OK;
}
status build_size(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  dim n = op_count(c, op_value(c, v)->rank, op_value(c, v)->dims);
  op_set_output(c, 0, op_dims_value(c, op_output_dtype(c, 0), 0, &n, 1));
  return OK;
}
status build_rank(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  int64_t rank = op_value(c, v)->rank;
  op_set_output(c, 0, op_constant_i64s(c, DTYPE_INT32, 0, NULL, &rank, 1));
  return OK;
}

status build_expand_dims(struct op_call *c) {
  value_id x, at;
  TRY(op_input(c, 0, &x));
  TRY(op_input(c, 1, &at));
  struct flow_value v = *op_value(c, x);
  int64_t axis_value;
  int axis;
  TRY(op_const_axis(c, at, "the axis", v.rank + 1, &axis_value));
  if (axis_value < -v.rank - 1 || axis_value > v.rank)
    return fail(INVALID_ARGUMENT, "Tried to expand dim index %lld for tensor with %d dimensions.", (long long)axis_value, v.rank);
  TRY(op_axis(c, axis_value, v.rank + 1, &axis));
  if (v.rank == LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", v.rank + 1);
  dim dims[LIMIT_RANK];
  for (int i = 0; i <= v.rank; i++)
    dims[i] = i == axis ? op_dim(c, 1) : v.dims[i < axis ? i : i - 1];
  op_set_output(c, 0, op_alias(c, x, v.dtype, v.rank + 1, dims));
  return OK;
}

status build_squeeze(struct op_call *c) {
  value_id x;
  TRY(op_input(c, 0, &x));
  struct flow_value v = *op_value(c, x);
  const struct attr_value *list = node_attr(c->node, "squeeze_dims");
  bool drop[LIMIT_RANK] = {false};
  uint32_t count = list ? list->list.count : 0;
  for (uint32_t i = 0; i < count; i++) {
    int axis;
    int64_t d = list->list.items[i].i;
    if (d < -v.rank || d >= v.rank)
      return fail(INVALID_ARGUMENT, "Tried to squeeze dim index %lld for tensor with %d dimensions.", (long long)d, v.rank);
    TRY(op_axis(c, d, v.rank, &axis));
    drop[axis] = true;
    if (dim_equal(op_dims(c), v.dims[axis], op_dim(c, 1)) == 0)
      return fail(INVALID_ARGUMENT, "Can not squeeze dim[%d], expected a dimension of 1, got %s", axis,
                  dim_text(op_dims(c), dim_resolve(op_dims(c), v.dims[axis])));
    TRY(op_equal_dims(c, v.dims[axis], op_dim(c, 1), "a squeezed dimension"));
  }
  uint32_t late = 0; /* axes of which the step decides */
  for (int i = 0; i < v.rank && !count; i++) {
    int is_one = op_decide_one(c, v.dims[i]);
    drop[i] = is_one > 0;
    late |= is_one < 0 ? 1u << i : 0;
  }
  return lower_squeezed(c, x, late, drop, &c->out[0]);
}

/* ---- broadcasting ---- */

/* Of a result that reads what it is made of by places that stay inside: no size of it may be below 0. */
static status check_sizes(struct op_call *c, int rank, const dim *dims) {
  struct kb guard;
  guard_begin(&guard, c);
  for (int i = 0; i < rank; i++)
    if (dim_less(op_dims(c), dims[i], op_dim(c, 0)) < 0)
      kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), kb_dim(&guard, dims[i])), INVALID_ARGUMENT, "Dimension %d must be >= 0",
               kb_dim(&guard, dims[i]), NO_EXPR);
  return guard_finish(&guard);
}
status build_broadcast_to(struct op_call *c) {
  value_id x, shape;
  TRY(op_input(c, 0, &x));
  TRY(op_input(c, 1, &shape));
  struct flow_value v = *op_value(c, x);
  dim *dims;
  int rank;
  TRY(op_given_shape(c, shape, "shape", &dims, &rank));
  if (rank > LIMIT_RANK || rank < v.rank)
    return fail(INVALID_ARGUMENT, "Rank of input (%d) must be no greater than rank of output shape (%d).", v.rank, rank);
  for (int i = 0; i < v.rank; i++)
    if (op_broadcast_into(c, v.dims[i], dims[rank - v.rank + i]) != OK)
      return fail(INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s", op_shape_text(c, v.rank, v.dims), op_shape_text(c, rank, dims));
  TRY(check_sizes(c, rank, dims));
  struct kb kb;
  kb_begin(&kb, c, v.dtype);
  uint32_t a = kb_in(&kb, x), o = kb_out(&kb, v.dtype, rank, dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  kb_store(&kb, o, index, kb_load_broadcast(&kb, a, rank, index));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* Two shapes as dims, aligned to the right with ones in front. *known: all their elements are known while compiling. */
static status two_shapes(struct op_call *c, dim *a, dim *b, int *rank, bool *known) {
  value_id v[2];
  dim *x[2];
  int n[2];
  for (uint32_t i = 0; i < 2; i++) {
    TRY(op_input(c, i, &v[i]));
    if (op_value(c, v[i])->rank != 1)
      return fail(INVALID_ARGUMENT, "In[%u] must be a vector.%s", i, op_shape_text(c, op_value(c, v[i])->rank, op_value(c, v[i])->dims));
    TRY(op_known_elements(c, v[i], &x[i], &n[i]));
  }
  *rank = n[0] > n[1] ? n[0] : n[1];
  *known = true;
  if (*rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "shapes of rank %d", *rank);
  for (int i = 0; i < *rank; i++) {
    a[i] = i < *rank - n[0] ? op_dim(c, 1) : x[0][i - (*rank - n[0])];
    b[i] = i < *rank - n[1] ? op_dim(c, 1) : x[1][i - (*rank - n[1])];
    *known = *known && a[i] != NO_DIM && b[i] != NO_DIM;
  }
  return OK;
}

/* Element i of one of the two shapes aligned to `rank`, at run time. */
static struct element shape_element(struct kb *kb, uint32_t buffer, value_id v, int rank, expr_id i) {
  struct op_call *c = kb->c;
  int64_t n = op_dim_value(c, op_value(c, v)->dims[0]);
  expr_id at = kb_sub(kb, i, kb_int(kb, rank - n));
  struct element one = f_const(&kb->f, 1);
  if (n == 0)
    return one;
  expr_id inside = kb_clamp(kb, at, kb_int(kb, n));
  struct element e = kb_load(kb, buffer, &inside);
  return f_select(&kb->f, real_element(kb_lt(kb, at, kb_int(kb, 0))), one, e);
}

static void check_fits(struct kb *kb, struct element x, struct element y) {
  struct formula *f = &kb->f;
  kb_check(kb, OR(EQ(x, y), OR(EQ(x, K(1)), EQ(y, K(1)))).re, INVALID_ARGUMENT, "Incompatible shapes: %d and %d do not broadcast",
           kb_index(kb, x), kb_index(kb, y));
}

static status broadcast_args_at_runtime(struct op_call *c, int rank) {
  value_id a, b;
  TRY(op_input(c, 0, &a));
  TRY(op_input(c, 1, &b));
  struct kb kb;
  kb_begin(&kb, c, op_value(c, a)->dtype);
  struct formula *f = &kb.f;
  dim length = op_dim(c, rank);
  uint32_t ba = kb_in(&kb, a), bb = kb_in(&kb, b), o = kb_out(&kb, op_value(c, a)->dtype, 1, &length);
  expr_id i = kb_for_dim(&kb, LOOP_PAR, length);
  struct element x = shape_element(&kb, ba, a, rank, i), y = shape_element(&kb, bb, b, rank, i);
  check_fits(&kb, x, y);
  kb_store(&kb, o, &i, SELECT(EQ(x, K(1)), y, x));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

status build_broadcast_args(struct op_call *c) {
  dim a[LIMIT_RANK], b[LIMIT_RANK], out[LIMIT_RANK];
  int rank;
  bool known;
  TRY(two_shapes(c, a, b, &rank, &known));
  if (!known)
    return broadcast_args_at_runtime(c, rank);
  for (int i = 0; i < rank; i++) {
    if (op_broadcast_dim(c, a[i], b[i], &out[i]) != OK)
      return fail(INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s", op_shape_text(c, rank, a), op_shape_text(c, rank, b));
  }
  op_set_output(c, 0, op_dims_value(c, op_output_dtype(c, 0), 1, out, rank));
  return OK;
}

/* The axes of side `side`, packed, and their number: the number is bound, and sizes the output. */
static status gradient_axes_at_runtime(struct op_call *c, int rank, uint32_t side) {
  value_id v[2], count;
  TRY(op_input(c, 0, &v[0]));
  TRY(op_input(c, 1, &v[1]));
  enum dtype dtype = op_value(c, v[0])->dtype;
  dim length = op_dim(c, rank), *n;
  value_id all;
  for (int pass = 0; pass < 2; pass++) {
    struct kb kb;
    kb_begin(&kb, c, dtype);
    struct formula *f = &kb.f;
    uint32_t ba = kb_in(&kb, v[0]), bb = kb_in(&kb, v[1]);
    uint32_t o = pass ? kb_out(&kb, dtype, 1, n) : kb_out(&kb, DTYPE_INT64, 0, NULL);
    uint32_t at = kb_local(&kb, kb_int(&kb, 0));
    expr_id i = kb_for_dim(&kb, LOOP_SEQ, length);
    struct element x = shape_element(&kb, ba, v[0], rank, i), y = shape_element(&kb, bb, v[1], rank, i);
    check_fits(&kb, x, y);
    kb_if(&kb, EQ(side ? y : x, K(1)).re);
    expr_id place = kb_get(&kb, at);
    if (pass)
      kb_store(&kb, o, &place, f_cast(f, dtype, real_element(i)));
    kb_set(&kb, at, kb_add(&kb, place, kb_int(&kb, 1)));
    kb_close(&kb, 2);
    if (!pass)
      kb_store(&kb, o, NULL, real_element(kb_get(&kb, at)));
    all = kb_value(&kb, o);
    TRY(kb_finish(&kb));
    int one;
    if (!pass) {
      count = all;
      TRY(op_elements(c, count, &n, &one));
    }
  }
  op_set_output(c, side, all);
  return OK;
}

/* The axes over which each side's gradient must be summed: where it was 1 (also where both were). */
status build_broadcast_gradient_args(struct op_call *c) {
  dim a[LIMIT_RANK], b[LIMIT_RANK];
  int64_t axes[2][LIMIT_RANK], counts[2] = {0, 0};
  int rank;
  bool known;
  TRY(two_shapes(c, a, b, &rank, &known));
  for (int i = 0; i < rank && known; i++) /* which of two sizes is 1 may be known only when the step runs */
    known = op_dim_value(c, a[i]) == 1 || op_dim_value(c, b[i]) == 1 || dim_equal(op_dims(c), a[i], b[i]) >= 0 ||
            op_may_assume_equal(c, a[i], b[i]);
  for (uint32_t side = 0; side < 2 && !known; side++)
    TRY(gradient_axes_at_runtime(c, rank, side));
  if (!known)
    return OK;
  for (int i = 0; i < rank; i++) {
    bool one_a = op_dim_value(c, a[i]) == 1, one_b = op_dim_value(c, b[i]) == 1;
    if (!one_a && !one_b && dim_equal(op_dims(c), a[i], b[i]) < 0)
      op_note_assumed(c);
    if (!one_a && !one_b && op_equal_dims(c, a[i], b[i], "shapes") != OK)
      return fail(INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s", op_shape_text(c, rank, a), op_shape_text(c, rank, b));
    if (one_a)
      axes[0][counts[0]++] = i;
    if (one_b)
      axes[1][counts[1]++] = i;
  }
  for (uint32_t i = 0; i < 2; i++)
    op_set_output(c, i, op_constant_i64s(c, op_output_dtype(c, i), 1, &counts[i], axes[i], (uint32_t)counts[i]));
  return OK;
}

/* ---- made from nothing ---- */

/* A scalar. TensorFlow's older kernels also take a vector of one element, where the graph does not say its shape. */
static status scalar_input(struct op_call *c, uint32_t i, const char *what, value_id *out) {
  TRY(op_input(c, i, out));
  struct flow_value v = *op_value(c, *out);
  if (v.rank > 1 || (v.rank == 1 && dim_equal(op_dims(c), v.dims[0], op_dim(c, 1)) == 0))
    return fail(INVALID_ARGUMENT, "%s must be a scalar, not shape %s", what, op_shape_text(c, v.rank, v.dims));
  if (v.rank == 0)
    return OK;
  TRY(op_equal_dims(c, v.dims[0], op_dim(c, 1), arena_printf(op_arena(c), "the length of %s, which must be a scalar", what)));
  *out = op_alias(c, *out, v.dtype, 0, NULL);
  return OK;
}

/* As a shape a scalar is a vector of one element, for such kernels, too. */
status build_fill(struct op_call *c) {
  value_id shape, value;
  const dim one = op_dim(c, 1);
  TRY(op_input(c, 0, &shape));
  TRY(scalar_input(c, 1, "value", &value));
  struct flow_value v = *op_value(c, value), s = *op_value(c, shape);
  if (s.rank == 0)
    shape = op_alias(c, shape, s.dtype, 1, &one);
  dim *dims;
  int rank;
  int64_t size;
  TRY(op_given_shape(c, shape, "dims", &dims, &rank));
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", rank);
  for (int i = 0; i < rank; i++)
    if (dim_is_const(op_dims(c), dims[i], &size) && size < 0)
      return fail(INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)size);
  struct kb kb;
  kb_begin(&kb, c, v.dtype);
  uint32_t a = kb_in(&kb, value), o = kb_out(&kb, v.dtype, rank, dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  kb_store(&kb, o, index, kb_load(&kb, a, NULL));
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* The number of elements of a range as a dim: from what is known, or computed at run time and bound. */
static status range_count(struct op_call *c, const value_id *in, dim *out) {
  struct dim_table *t = op_dims(c);
  enum dtype dtype = op_value(c, in[0])->dtype;
  int64_t delta;
  if (dtype == DTYPE_INT32 || dtype == DTYPE_INT64) {
    dim *e[3];
    int n;
    for (int i = 0; i < 3; i++)
      TRY(op_known_elements(c, in[i], &e[i], &n));
    if (e[2][0] != NO_DIM && dim_is_const(t, e[2][0], &delta)) {
      if (delta == 0)
        return fail(INVALID_ARGUMENT, "Requires delta != 0: 0");
      if (e[0][0] != NO_DIM && e[1][0] != NO_DIM) {
        dim span = delta > 0 ? dim_sub(t, e[1][0], e[0][0]) : dim_sub(t, e[0][0], e[1][0]);
        int64_t step = delta > 0 ? delta : -delta;
        if (dim_less(t, span, op_dim(c, 0)) == 1)
          return fail(INVALID_ARGUMENT, "Requires start %s limit when delta %s 0: %s/%s", delta > 0 ? "<=" : ">=", delta > 0 ? ">" : "<",
                      dim_text(t, e[0][0]), dim_text(t, e[1][0]));
        *out = dim_floordiv(t, dim_add(t, span, op_dim(c, step - 1)), op_dim(c, step));
        return OK;
      }
    }
  }
  struct kb kb;
  kb_begin(&kb, c, dtype);
  struct formula *f = &kb.f;
  uint32_t o = kb_out(&kb, DTYPE_INT64, 0, NULL);
  struct element x[3];
  for (int i = 0; i < 3; i++)
    x[i] = kb_load(&kb, kb_in(&kb, in[i]), NULL);
  kb_check(&kb, NE(x[2], K(0)).re, INVALID_ARGUMENT, "Requires delta != 0: 0", NO_EXPR, NO_EXPR);
  struct element up = GT(x[2], K(0));
  kb_check(&kb, SELECT(up, LE(x[0], x[1]), GE(x[0], x[1])).re, INVALID_ARGUMENT,
           "Requires start <= limit when delta > 0 and start >= limit when delta < 0", NO_EXPR, NO_EXPR);
  struct element count;
  if (dtype_is_float(dtype)) {
    count = CEIL(ABS(DIV(f_cast(f, DTYPE_DOUBLE, SUB(x[1], x[0])), f_cast(f, DTYPE_DOUBLE, x[2]))));
  } else {
    struct element span = ABS(SUB(x[1], x[0])), step = ABS(x[2]);
    count = DIV(ADD(span, SUB(step, K(1))), step);
  }
  kb_store(&kb, o, NULL, f_cast(f, DTYPE_INT64, count));
  value_id v = kb_value(&kb, o);
  TRY(kb_finish(&kb));
  dim *d;
  int n;
  TRY(op_elements(c, v, &d, &n));
  *out = d[0];
  return OK;
}

status build_range(struct op_call *c) {
  static const char *const names[] = {"start", "limit", "delta"};
  value_id in[3];
  for (uint32_t i = 0; i < 3; i++)
    TRY(scalar_input(c, i, names[i], &in[i]));
  dim count;
  TRY(range_count(c, in, &count));
  enum dtype dtype = op_value(c, in[0])->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t a = kb_in(&kb, in[0]), d = kb_in(&kb, in[2]), o = kb_out(&kb, dtype, 1, &count);
  expr_id i = kb_for_dim(&kb, LOOP_PAR, count);
  struct formula *f = &kb.f;
  struct element step = MUL(f_cast(f, dtype, real_element(i)), kb_load(&kb, d, NULL));
  kb_store(&kb, o, &i, ADD(kb_load(&kb, a, NULL), step));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* start + i * step, and the last element exactly stop. */
status build_lin_space(struct op_call *c) {
  value_id start, stop, num;
  TRY(op_input(c, 0, &start));
  TRY(op_input(c, 1, &stop));
  TRY(op_input(c, 2, &num));
  dim *count;
  int n;
  int64_t value;
  TRY(op_elements(c, num, &count, &n));
  if (n != 1 || op_value(c, start)->rank || op_value(c, stop)->rank)
    return fail(INVALID_ARGUMENT, "start, stop and num must be scalars");
  if (dim_is_const(op_dims(c), count[0], &value) && value <= 0)
    return fail(INVALID_ARGUMENT, "Requires num > 0: %lld", (long long)value);
  enum dtype dtype = op_value(c, start)->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  struct formula *f = &kb.f;
  uint32_t a = kb_in(&kb, start), b = kb_in(&kb, stop), o = kb_out(&kb, dtype, 1, count);
  expr_id i = kb_for_dim(&kb, LOOP_PAR, count[0]);
  expr_id last = kb_sub(&kb, kb_dim(&kb, count[0]), kb_int(&kb, 1));
  expr_id steps = expr_binary(kb.k, SCALAR_MAX, last, kb_int(&kb, 1));
  struct element x = kb_load(&kb, a, NULL), y = kb_load(&kb, b, NULL);
  struct element step = DIV(SUB(y, x), f_cast(f, dtype, real_element(steps)));
  struct element inner = ADD(x, MUL(step, f_cast(f, dtype, real_element(i))));
  struct element at_end = real_element(kb_and(&kb, expr_binary(kb.k, SCALAR_EQ, i, last), kb_lt(&kb, kb_int(&kb, 0), i)));
  kb_store(&kb, o, &i, SELECT(at_end, y, inner));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
