/* ops_uniform_math.c: arithmetic on uniformly quantised numbers: other steps for the same numbers, sums, products of matrices. */
#include "ir/ops/quantized/uniform.h"

static int axis_attr(struct op_call *c, const char *name) {
  int64_t axis = node_attr_int(c->node, name, -1);
  return axis < -1 || axis > LIMIT_RANK ? LIMIT_RANK + 1 : (int)axis; /* beyond all ranks: refused where a scale is read */
}

/* ---- to other steps ---- */

status build_uniform_requantize(struct op_call *c) {
  value_id q;
  struct uniform_scale from, to;
  struct uniform_ratio ratio;
  TRY(op_input(c, 0, &q));
  q = quantized_in(c, q);
  struct flow_value x = *op_value(c, q);
  TRY(uniform_scale_read(c, 1, axis_attr(c, "input_quantization_axis"), x.rank, x.dims, &from));
  TRY(uniform_scale_read(c, 3, axis_attr(c, "output_quantization_axis"), x.rank, x.dims, &to));
  if (from.axis >= 0 && to.axis >= 0 && from.axis != to.axis)
    return fail(INVALID_ARGUMENT, "If input and output is both per-axis quantized, the quantization axis must be same.");
  TRY(uniform_ratio_of(c, &from, NULL, &to, &ratio));
  int axis = from.axis >= 0 ? from.axis : to.axis;
  enum dtype plain = quantized_plain(op_output_dtype(c, 0));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t a = kb_in(&kb, q), z = kb_in(&kb, from.zeros), f = kb_in(&kb, ratio.factor), s = kb_in(&kb, ratio.shift);
  uint32_t n = kb_in(&kb, to.zeros), o = kb_out(&kb, plain, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  const expr_id *at = axis < 0 ? NULL : &index[axis];
  struct element e = e_sub(&kb, uniform_integer(&kb, kb_load(&kb, a, index)), kb_load(&kb, z, uniform_place(&from, at)));
  e = e_add(&kb, uniform_rescaled(&kb, e, f, s, at), kb_load(&kb, n, uniform_place(&to, at)));
  kb_store(&kb, o, index, e_cast(&kb, plain, uniform_clamped(&kb, e)));
  kb_close(&kb, x.rank);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return OK;
}

/* ---- a + b ---- */

struct addend {
  value_id data;
  struct flow_value x;
  struct uniform_scale scale;
  struct uniform_ratio ratio;
  int axis; /* of x: which index the ratio is of */
};

static status addend_begin(struct op_call *c, uint32_t i, const char *attr, struct addend *a) {
  TRY(op_input(c, i, &a->data));
  a->data = quantized_in(c, a->data);
  a->x = *op_value(c, a->data);
  return uniform_scale_read(c, 2 + 2 * i, axis_attr(c, attr), a->x.rank, a->x.dims, &a->scale);
}

/* The ratio to the output's scale. Where both have an axis it is one and the same, as long in the addend as in the sum. */
static status addend_ratio(struct op_call *c, const struct uniform_scale *to, int rank, const dim *dims, struct addend *a) {
  int own = to->axis < 0 ? -1 : to->axis - (rank - a->x.rank);
  if (a->scale.axis >= 0 && to->axis >= 0 && own != a->scale.axis)
    return fail(INVALID_ARGUMENT, "If an addend and output is both per-axis quantized, the quantization axis must match.");
  a->axis = a->scale.axis >= 0 ? a->scale.axis : own;
  if (to->axis >= 0) {
    if (own < 0 || op_dim_value(c, a->x.dims[own]) == 1)
      if (own < 0 || op_dim_value(c, dims[to->axis]) != 1)
        return fail(UNIMPLEMENTED, "an addend that is repeated along output_quantization_axis %d", to->axis);
    TRY(op_equal_dims(c, a->x.dims[own], dims[to->axis], "an addend must have all indices of output_quantization_axis"));
  }
  return uniform_ratio_of(c, &a->scale, NULL, to, &a->ratio);
}

/* Its element in steps of the output, without a zero point. */
static struct element addend_load(struct kb *kb, const struct addend *a, int rank, const expr_id *index) {
  uint32_t data = kb_in(kb, a->data), zeros = kb_in(kb, a->scale.zeros), f = kb_in(kb, a->ratio.factor), s = kb_in(kb, a->ratio.shift);
  expr_id at = a->axis < 0 ? NO_EXPR : kb_broadcast_index(kb, data, a->axis, rank, index);
  struct element e = uniform_integer(kb, kb_load_broadcast(kb, data, rank, index));
  e = e_sub(kb, e, kb_load(kb, zeros, uniform_place(&a->scale, &at)));
  return uniform_integer(kb, uniform_rescaled(kb, e, f, s, a->ratio.is_vector ? &at : NULL));
}

status build_uniform_quantized_add(struct op_call *c) {
  struct addend a, b;
  struct uniform_scale to;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(addend_begin(c, 0, "lhs_quantization_axis", &a));
  TRY(addend_begin(c, 1, "rhs_quantization_axis", &b));
  TRY(op_broadcast(c, a.data, b.data, &rank, dims));
  TRY(uniform_scale_read(c, 6, axis_attr(c, "output_quantization_axis"), rank, dims, &to));
  if (to.axis >= 0 && a.scale.axis < 0)
    return fail(INVALID_ARGUMENT, "lhs must have a scale for each index of output_quantization_axis, as the output has");
  TRY(addend_ratio(c, &to, rank, dims, &a));
  TRY(addend_ratio(c, &to, rank, dims, &b));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t z = kb_in(&kb, to.zeros), o = kb_out(&kb, DTYPE_INT32, rank, dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  struct element sum = e_add(&kb, addend_load(&kb, &a, rank, index), addend_load(&kb, &b, rank, index));
  sum = e_add(&kb, sum, kb_load(&kb, z, uniform_place(&to, &index[to.axis < 0 ? 0 : to.axis])));
  kb_store(&kb, o, index, uniform_clamped(&kb, sum));
  kb_close(&kb, rank);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return OK;
}

/* ---- products of matrices ---- */

/* Two matrices of centred numbers. rounded: TensorFlow adds the products of two matrices with one scale each as floats, one by one. */
static status product(struct op_call *c, value_id a, value_id b, bool rounded, value_id *out) {
  struct flow_value x = *op_value(c, a), y = *op_value(c, b);
  const dim dims[2] = {x.dims[0], y.dims[1]};
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t l = kb_in(&kb, a), r = kb_in(&kb, b), o = kb_out(&kb, DTYPE_INT32, 2, dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, 2, dims, at);
  struct accumulator acc = acc_zero(&kb, DTYPE_INT32);
  expr_id k = kb_for_dim(&kb, rounded ? LOOP_SEQ : LOOP_RED, x.dims[1]);
  struct element e = e_mul(&kb, kb_load(&kb, l, (expr_id[]){at[0], k}), kb_load(&kb, r, (expr_id[]){k, at[1]}));
  if (rounded)
    acc_set(&kb, &acc, e_cast(&kb, DTYPE_INT32, e_add(&kb, e_cast(&kb, DTYPE_FLOAT, acc_get(&kb, &acc)), e_cast(&kb, DTYPE_FLOAT, e))));
  else
    acc_add(&kb, &acc, e);
  kb_close(&kb, 1);
  kb_store(&kb, o, at, acc_get(&kb, &acc));
  kb_close(&kb, 2);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* The axis of the columns where input i, their scales, is a vector: what the attribute says of it is not asked. */
static status columns(struct op_call *c, uint32_t i, const char *attr, int *out) {
  value_id v;
  int axis = axis_attr(c, attr);
  if (axis != -1 && axis != 1)
    return fail(INVALID_ARGUMENT, "%s Attr must be 1 (per-channel) or -1 (per-tensor).", attr);
  TRY(op_input(c, i, &v));
  *out = op_value(c, v)->rank == 0 ? -1 : 1;
  return OK;
}

/* The two matrices, and the right one's scale, from input `first` on: for all of it, or for each column. */
static status matrices(struct op_call *c, uint32_t first, value_id in[2], struct flow_value x[2], struct uniform_scale *right) {
  for (uint32_t i = 0; i < 2; i++) {
    TRY(op_input(c, i, &in[i]));
    x[i] = *op_value(c, in[i]);
    if (x[i].rank != 2)
      return fail(INVALID_ARGUMENT, "input %u must be of rank 2, not %d", i, x[i].rank);
  }
  TRY(op_equal_dims(c, x[0].dims[1], x[1].dims[0], "lhs.dim_size(1) and rhs.dim_size(0) must be equal"));
  int axis;
  TRY(columns(c, first, "rhs_quantization_axis", &axis));
  return uniform_scale_read(c, first, axis, 2, x[1].dims, right);
}

status build_uniform_quantized_dot(struct op_call *c) {
  value_id in[2], a, b, sums;
  struct flow_value x[2];
  struct uniform_scale left, right, to;
  TRY(matrices(c, 4, in, x, &right));
  if (axis_attr(c, "lhs_quantization_axis") != -1)
    return fail(INVALID_ARGUMENT, "lhs_quantization_axis Attr must be -1 (per-tensor).");
  TRY(uniform_scale_read(c, 2, -1, 2, x[0].dims, &left));
  int axis;
  TRY(columns(c, 6, "output_quantization_axis", &axis));
  if (axis >= 0 && right.axis < 0)
    return fail(INVALID_ARGUMENT, "If rhs is per-tensor quantized, output must be also per-tensor quantized.");
  const dim dims[2] = {x[0].dims[0], x[1].dims[1]};
  TRY(uniform_scale_read(c, 6, axis, 2, dims, &to));
  TRY(uniform_centred(c, in[0], &left, &a));
  TRY(uniform_centred(c, in[1], &right, &b));
  TRY(product(c, a, b, right.axis < 0, &sums));
  return uniform_sums_out(c, sums, 1, &left, &right, &to);
}

status build_uniform_quantized_dot_hybrid(struct op_call *c) {
  value_id in[2], a, b, sums;
  struct flow_value x[2];
  struct uniform_scale left, right;
  TRY(matrices(c, 2, in, x, &right));
  TRY(uniform_of_floats(c, in[0], 0, &a, &left));
  TRY(uniform_centred(c, in[1], &right, &b));
  TRY(product(c, a, b, false, &sums));
  return uniform_float_sums_out(c, sums, &left, 0, &right, 1);
}
