/* ops_quantized_math.c: arithmetic on quantised numbers. Products are those of integers from which the zero of their range is taken away,
 * kept in 32 bits, whose range follows from the operands'; sums are made in a wider range that both operands are brought to. */
#include <math.h>
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/ops/part.h"
#include "ir/ops/quantized/quantized.h"
#include "ir/ops/window.h"

status build_max_pool(struct op_call *c);
status build_avg_pool(struct op_call *c);
status build_reshape(struct op_call *c);

/* A quantised tensor, its plain form, and the range of its numbers. */
struct operand {
  value_id data, min, max;
  struct flow_value x; /* plain */
};

static status operand_read(struct op_call *c, uint32_t data, uint32_t min, bool strict, struct operand *out) {
  TRY(op_input(c, data, &out->data));
  out->data = quantized_in(c, out->data);
  out->x = *op_value(c, out->data);
  TRY(quantized_scalar(c, min, strict, &out->min));
  return quantized_scalar(c, min + 1, strict, &out->max);
}

static status check_order(struct op_call *c, const struct operand *a, const char *what) {
  struct kb guard;
  guard_begin(&guard, c);
  struct quantized_range r = quantized_range(&guard, a->min, a->max);
  const char *text = arena_printf(op_arena(c), "max_%s must be larger than min_%s.", what, what);
  kb_check(&guard, e_lt(&guard, r.min, r.max), INVALID_ARGUMENT, text, NO_EXPR, NO_EXPR);
  return guard_finish(&guard);
}

static struct element f32(struct kb *kb, double v) { return f_const_as(&kb->f, DTYPE_FLOAT, v); }

/* ---- products ---- */

/* The numbers with their zero taken away, as i32. */
static status centred(struct op_call *c, const struct operand *a, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t in = kb_in(&kb, a->data);
  struct quantized_range r = quantized_range(&kb, a->min, a->max);
  uint32_t o = kb_out(&kb, DTYPE_INT32, a->x.rank, a->x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, a->x.rank, a->x.dims, index);
  struct element zero = e_of(&kb, DTYPE_INT32, quantized_of_float(&kb, a->x.dtype, f32(&kb, 0), r));
  kb_store(&kb, o, index, e_sub(&kb, load_as(&kb, DTYPE_INT32, in, index), zero));
  kb_close(&kb, a->x.rank);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

static struct element one_step(struct kb *kb, const struct operand *a) {
  struct quantized_range r = quantized_range(kb, a->min, a->max);
  double gaps = quantized_highest(a->x.dtype) - quantized_lowest(a->x.dtype);
  return e_div(kb, e_sub(kb, r.max, r.min), f32(kb, gaps));
}

/* Outputs 1 and 2 of a product: its step is the product of the operands' steps. */
static status product_range(struct op_call *c, const struct operand *a, const struct operand *b) {
  struct kb kb;
  value_id range[2];
  kb_begin(&kb, c, DTYPE_FLOAT);
  struct element step = e_mul(&kb, one_step(&kb, a), one_step(&kb, b));
  struct element low = e_mul(&kb, step, f32(&kb, quantized_lowest(DTYPE_INT32))),
                 high = e_mul(&kb, step, f32(&kb, quantized_highest(DTYPE_INT32)));
  return quantized_range_out(&kb, low, high, range);
}

/* input, filter, min_input, max_input, min_filter, max_filter */
status build_quantized_conv2d(struct op_call *c) {
  struct operand a, b;
  value_id x, w, y;
  TRY(operand_read(c, 0, 2, true, &a));
  TRY(operand_read(c, 1, 4, true, &b));
  int64_t strides[4], dilations[4];
  if (a.x.rank != 4 || b.x.rank != 4)
    return fail(INVALID_ARGUMENT, "input and filter must be rank 4 but are rank %d and %d", a.x.rank, b.x.rank);
  TRY(window_list(c, "strides", 4, strides));
  TRY(window_list(c, "dilations", 4, dilations));
  if (strides[1] != strides[2] || strides[0] != 1 || strides[3] != 1)
    return fail(INVALID_ARGUMENT, "only equal length strides in the row and column dimensions are supported");
  for (int i = 0; i < 4; i++) {
    if (dilations[i] != 1)
      return fail(INVALID_ARGUMENT, "only dilated rate as 1 is supported");
    TRY(op_require_le(c, op_dim(c, 1), a.x.dims[i], "Invalid input: Shapes dimension cannot be 0."));
  }
  TRY(op_equal_dims(c, a.x.dims[3], b.x.dims[2], "input and filter must have the same depth"));
  TRY(centred(c, &a, &x));
  TRY(centred(c, &b, &w));
  TRY(op_conv2d(c, x, w, &y));
  quantized_out(c, 0, y);
  return product_range(c, &a, &b);
}

/* a, b, min_a, max_a, min_b, max_b */
status build_quantized_matmul(struct op_call *c) {
  struct operand a, b;
  value_id x, y;
  TRY(operand_read(c, 0, 2, false, &a));
  TRY(operand_read(c, 1, 4, false, &b));
  TRY(check_order(c, &a, "a"));
  TRY(check_order(c, &b, "b"));
  if (a.x.rank != 2 || b.x.rank != 2)
    return fail(INVALID_ARGUMENT, "In[0] or In[1] is not a matrix: %s, %s", op_shape_text(c, a.x.rank, a.x.dims),
                op_shape_text(c, b.x.rank, b.x.dims));
  bool ta = node_attr_int(c->node, "transpose_a", 0), tb = node_attr_int(c->node, "transpose_b", 0);
  TRY(op_equal_dims(c, a.x.dims[!ta], b.x.dims[tb], "Matrix size-incompatible"));
  TRY(centred(c, &a, &x));
  TRY(centred(c, &b, &y));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  dim dims[2] = {a.x.dims[ta], b.x.dims[!tb]};
  uint32_t p = kb_in(&kb, x), q = kb_in(&kb, y), o = kb_out(&kb, DTYPE_INT32, 2, dims);
  expr_id index[2];
  kb_loops(&kb, LOOP_PAR, 2, dims, index);
  struct accumulator acc = acc_zero(&kb, DTYPE_INT32);
  expr_id k = kb_for_dim(&kb, LOOP_RED, a.x.dims[!ta]), left[2] = {index[0], k}, right[2] = {k, index[1]}, t[2];
  t[0] = left[1], t[1] = left[0];
  struct element e = kb_load(&kb, p, ta ? t : left);
  t[0] = right[1], t[1] = right[0];
  acc_add(&kb, &acc, e_mul(&kb, e, kb_load(&kb, q, tb ? t : right)));
  kb_close(&kb, 1);
  kb_store(&kb, o, index, acc_get(&kb, &acc));
  kb_close(&kb, 2);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return product_range(c, &a, &b);
}

static struct element formula_product(struct formula *f, struct element a, struct element b, struct element unused) {
  (void)unused;
  return f_binary(f, SCALAR_MUL, a, b);
}

/* x, y, min_x, max_x, min_y, max_y */
status build_quantized_mul(struct op_call *c) {
  struct operand a, b;
  value_id in[2], out;
  TRY(operand_read(c, 0, 2, true, &a));
  TRY(operand_read(c, 1, 4, true, &b));
  TRY(check_order(c, &a, "x"));
  TRY(check_order(c, &b, "y"));
  TRY(centred(c, &a, &in[0]));
  TRY(centred(c, &b, &in[1]));
  TRY(op_map(c, in, 2, DTYPE_INT32, formula_product, &out));
  quantized_out(c, 0, out);
  return product_range(c, &a, &b);
}

/* ---- sums ---- */

/* In the range of the sum: a number exactly, or by the places of the numbers 0 and 1, as TensorFlow does for whole tensors. */
static struct element in_sum_range(struct kb *kb, const struct operand *a, expr_id q, struct quantized_range to, expr_id exact) {
  struct quantized_range r = quantized_range(kb, a->min, a->max);
  expr_id place[2], low = kb_int(kb, (int64_t)quantized_lowest(DTYPE_INT32)), high = kb_int(kb, (int64_t)quantized_highest(DTYPE_INT32));
  expr_id whole = quantized_of_float_clamped(kb, DTYPE_INT32, quantized_to_float(kb, a->x.dtype, q, r), to);
  for (int i = 0; i < 2; i++)
    place[i] = quantized_of_float(kb, DTYPE_INT32, quantized_to_float(kb, a->x.dtype, kb_int(kb, i), r), to);
  expr_id at = kb_add(kb, place[0], kb_mul(kb, q, kb_sub(kb, place[1], place[0])));
  at = expr_binary(kb->k, SCALAR_MIN, expr_binary(kb->k, SCALAR_MAX, at, low), high);
  return e_of(kb, DTYPE_INT32, kb_select(kb, exact, whole, at));
}

static status symmetric_range(struct op_call *c, const struct operand *a, const struct operand *b, double room, value_id range[2]) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  struct quantized_range p = quantized_range(&kb, a->min, a->max), q = quantized_range(&kb, b->min, b->max);
  struct element low = f_unary(&kb.f, SCALAR_NEG, e_min(&kb, p.min, q.min)), high = e_max(&kb, p.max, q.max);
  struct element end = e_mul(&kb, e_max(&kb, low, high), f32(&kb, room));
  return quantized_range_out(&kb, f_unary(&kb.f, SCALAR_NEG, end), end, range);
}

/* x, y, min_x, max_x, min_y, max_y */
status build_quantized_add(struct op_call *c) {
  struct operand a, b;
  value_id range[2];
  int rank;
  dim dims[LIMIT_RANK];
  TRY(operand_read(c, 0, 2, true, &a));
  TRY(operand_read(c, 1, 4, true, &b));
  TRY(check_order(c, &a, "x"));
  TRY(check_order(c, &b, "y"));
  TRY(op_broadcast(c, a.data, b.data, &rank, dims));
  TRY(symmetric_range(c, &a, &b, 1 << 14, range));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t p = kb_in(&kb, a.data), q = kb_in(&kb, b.data);
  struct quantized_range to = quantized_range(&kb, range[0], range[1]);
  uint32_t o = kb_out(&kb, DTYPE_INT32, rank, dims);
  expr_id index[LIMIT_RANK], one = kb_int(&kb, 1), a_single = kb_eq(&kb, kb_dim(&kb, op_count(c, a.x.rank, a.x.dims)), one),
                             b_single = kb_eq(&kb, kb_dim(&kb, op_count(c, b.x.rank, b.x.dims)), one);
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  struct element x = in_sum_range(&kb, &a, kb_index(&kb, kb_load_broadcast(&kb, p, rank, index)), to, a_single);
  struct element y =
    in_sum_range(&kb, &b, kb_index(&kb, kb_load_broadcast(&kb, q, rank, index)), to, kb_and(&kb, b_single, kb_not(&kb, a_single)));
  kb_store(&kb, o, index, e_add(&kb, x, y));
  kb_close(&kb, rank);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return OK;
}

/* input, bias, min_input, max_input, min_bias, max_bias */
status build_quantized_bias_add(struct op_call *c) {
  struct operand a, b;
  value_id range[2];
  TRY(operand_read(c, 0, 2, true, &a));
  TRY(operand_read(c, 1, 4, true, &b));
  int rank = a.x.rank;
  if (rank < 2 || b.x.rank != 1)
    return fail(INVALID_ARGUMENT, "Input tensor must be at least 2D and biases 1D: %s, %s", op_shape_text(c, rank, a.x.dims),
                op_shape_text(c, b.x.rank, b.x.dims));
  TRY(op_equal_dims(c, b.x.dims[0], a.x.dims[rank - 1], "Must provide as many biases as the last dimension of the input tensor"));
  TRY(op_require_le(c, op_dim(c, 1), b.x.dims[0], "Must provide at least 1 bias"));
  TRY(symmetric_range(c, &a, &b, 1 << 17, range));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t p = kb_in(&kb, a.data), q = kb_in(&kb, b.data);
  struct quantized_range to = quantized_range(&kb, range[0], range[1]);
  struct quantized_range from = quantized_range(&kb, a.min, a.max), of_bias = quantized_range(&kb, b.min, b.max);
  uint32_t o = kb_out(&kb, DTYPE_INT32, rank, a.x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank, a.x.dims, index);
  struct element x = quantized_round(&kb, DTYPE_INT32, quantized_load(&kb, a.x.dtype, kb_load(&kb, p, index), from), to);
  struct element y = quantized_round(&kb, DTYPE_INT32, quantized_load(&kb, b.x.dtype, kb_load(&kb, q, &index[rank - 1]), of_bias), to);
  struct element zero = e_of(&kb, DTYPE_INT32, quantized_of_float_clamped(&kb, DTYPE_INT32, f32(&kb, 0), to));
  kb_store(&kb, o, index, e_add(&kb, x, e_add(&kb, y, zero)));
  kb_close(&kb, rank);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return OK;
}

/* ---- what keeps the range ---- */

static void keep_range(struct op_call *c, const struct operand *a) {
  op_set_output(c, 1, a->min);
  op_set_output(c, 2, a->max);
}

/* At least 0, and for Relu6 at most 6. */
status build_quantized_relu(struct op_call *c) {
  struct operand a;
  TRY(operand_read(c, 0, 1, true, &a));
  if (quantized_plain(op_output_dtype(c, 0)) != a.x.dtype)
    return fail(UNIMPLEMENTED, "%s to another dtype", c->node->op);
  bool six = OP_ROW(c, relu_row)->to_six;
  struct kb kb;
  kb_begin(&kb, c, a.x.dtype);
  uint32_t in = kb_in(&kb, a.data);
  struct quantized_range r = quantized_range(&kb, a.min, a.max);
  uint32_t o = kb_out(&kb, a.x.dtype, a.x.rank, a.x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, a.x.rank, a.x.dims, index);
  struct element e = e_max(&kb, kb_load(&kb, in, index), e_of(&kb, a.x.dtype, quantized_of_float_clamped(&kb, a.x.dtype, f32(&kb, 0), r)));
  if (six)
    e = e_min(&kb, e, e_of(&kb, a.x.dtype, quantized_of_float_clamped(&kb, a.x.dtype, f32(&kb, 6), r)));
  kb_store(&kb, o, index, e);
  kb_close(&kb, a.x.rank);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  keep_range(c, &a);
  return OK;
}

status build_quantized_max_pool(struct op_call *c) {
  struct operand a;
  struct bound in, out;
  TRY(operand_read(c, 0, 1, true, &a));
  in = op_bound(a.data);
  TRY(op_part(c, build_max_pool, 1, &in, &out));
  quantized_out(c, 0, out.value);
  keep_range(c, &a);
  return OK;
}

/* The mean of the integers, truncated. */
status build_quantized_avg_pool(struct op_call *c) {
  struct operand a;
  struct bound in, out;
  value_id whole, narrow;
  TRY(operand_read(c, 0, 1, true, &a));
  TRY(op_cast(c, a.data, DTYPE_INT32, &whole));
  in = op_bound(whole);
  TRY(op_part(c, build_avg_pool, 1, &in, &out));
  TRY(op_cast(c, out.value, a.x.dtype, &narrow));
  quantized_out(c, 0, narrow);
  keep_range(c, &a);
  return OK;
}

/* tensor, shape, input_min, input_max */
status build_quantized_reshape(struct op_call *c) {
  struct operand a;
  struct bound out;
  TRY(operand_read(c, 0, 2, false, &a));
  TRY(op_part(c, build_reshape, 2, c->in, &out));
  c->out[0] = out;
  keep_range(c, &a);
  return OK;
}

/* ---- concatenation, in the range that holds all ranges ---- */

static status common_range(struct op_call *c, const struct operand *in, int count, value_id range[2]) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  struct element low = f32(&kb, 0), high = f32(&kb, -INFINITY);
  for (int i = 0; i < count; i++) {
    struct quantized_range r = quantized_range(&kb, in[i].min, in[i].max);
    low = e_min(&kb, low, r.min);
    high = e_max(&kb, high, r.max);
  }
  if (dtype_is_signed(in[0].x.dtype)) {
    high = e_max(&kb, f_unary(&kb.f, SCALAR_ABS, low), f_unary(&kb.f, SCALAR_ABS, high));
    low = f_unary(&kb.f, SCALAR_NEG, high);
  }
  return quantized_range_out(&kb, low, high, range);
}

/* concat_dim, values, input_mins, input_maxes */
status build_quantized_concat(struct op_call *c) {
  int count = (int)(c->in_count - 1) / 3, axis;
  struct operand *in = ARENA_ARRAY(op_arena(c), struct operand, count);
  value_id wanted, range[2];
  TRY(op_input(c, 0, &wanted));
  for (int i = 0; i < count; i++) {
    uint32_t k = (uint32_t)i, n = (uint32_t)count;
    TRY(op_input(c, 1 + k, &in[i].data));
    in[i].data = quantized_in(c, in[i].data);
    in[i].x = *op_value(c, in[i].data);
    TRY(quantized_scalar(c, 1 + n + k, false, &in[i].min));
    TRY(quantized_scalar(c, 1 + 2 * n + k, false, &in[i].max));
  }
  int rank = in[0].x.rank;
  int64_t at_axis;
  TRY(op_const_axis(c, wanted, "the axis of a concatenation", rank, &at_axis));
  if (at_axis < 0 || at_axis >= rank)
    return fail(INVALID_ARGUMENT, "ConcatOp : Expected concatenating dimensions in the range [0, %d), but got %lld", rank,
                (long long)at_axis);
  axis = (int)at_axis;
  TRY(common_range(c, in, count, range));
  dim dims[LIMIT_RANK], offset = op_dim(c, 0);
  memcpy(dims, in[0].x.dims, sizeof dims);
  for (int i = 1; i < count; i++) {
    if (in[i].x.rank != rank)
      return fail(INVALID_ARGUMENT, "ConcatOp : Ranks of all input tensors should match");
    for (int d = 0; d < rank; d++)
      if (d != axis)
        TRY(op_equal_dims(c, in[i].x.dims[d], dims[d], "ConcatOp : Dimensions of inputs should match"));
    dims[axis] = op_add(c, dims[axis], in[i].x.dims[axis]);
  }
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  struct quantized_range to = quantized_range(&kb, range[0], range[1]);
  uint32_t o = kb_out(&kb, in[0].x.dtype, rank, dims);
  for (int i = 0; i < count; i++) {
    uint32_t a = kb_in(&kb, in[i].data);
    struct quantized_range r = quantized_range(&kb, in[i].min, in[i].max);
    expr_id index[LIMIT_RANK], place[LIMIT_RANK];
    kb_loops(&kb, LOOP_PAR, rank, in[i].x.dims, index);
    memcpy(place, index, sizeof place);
    place[axis] = kb_add(&kb, index[axis], kb_dim(&kb, offset));
    struct element e = kb_load(&kb, a, index), moved = quantized_round(&kb, in[i].x.dtype, quantized_load(&kb, in[i].x.dtype, e, r), to);
    expr_id same = kb_and(&kb, e_eq(&kb, r.min, to.min), e_eq(&kb, r.max, to.max));
    kb_store(&kb, o, place, e_select(&kb, same, e, moved));
    kb_close(&kb, rank);
    offset = op_add(c, offset, in[i].x.dims[axis]);
  }
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return OK;
}
