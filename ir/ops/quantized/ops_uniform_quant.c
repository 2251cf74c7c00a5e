/* ops_uniform_quant.c: floats as integers of a scale and a zero point, which are the same for a whole tensor or for each index of an
 * axis. */
#include "ir/ops/quantized/quantized.h"

struct uniform {
  value_id data, scales, zeros;
  struct flow_value x;
  int axis; /* -1: one scale */
};

/* Input i: a scalar, or a vector with one element for each index of the axis. */
static status axis_input(struct op_call *c, uint32_t i, const struct uniform *u, value_id *out) {
  TRY(op_input(c, i, out));
  struct flow_value v = *op_value(c, *out);
  if (u->axis < 0)
    return v.rank == 0 ? OK : fail(INVALID_ARGUMENT, "If quantization_axis is -1, input %u must be a scalar, not of rank %d", i, v.rank);
  if (v.rank != 1)
    return fail(INVALID_ARGUMENT, "If quantization_axis is not -1, input %u must be of rank 1, not %d", i, v.rank);
  const char *why = arena_printf(op_arena(c), "input %u must have as many elements as input 0 on quantization_axis %d", i, u->axis);
  return op_equal_dims(c, v.dims[0], u->x.dims[u->axis], why);
}

static status uniform_begin(struct op_call *c, uint32_t first, struct uniform *u) {
  TRY(op_input(c, 0, &u->data));
  u->x = *op_value(c, u->data);
  int64_t axis = node_attr_int(c->node, "quantization_axis", -1);
  if (axis < -1 || axis >= u->x.rank)
    return fail(INVALID_ARGUMENT, "quantization_axis must be -1 or in range [0, input.rank), but given %lld", (long long)axis);
  u->axis = (int)axis;
  u->data = quantized_in(c, u->data);
  TRY(axis_input(c, first, u, &u->scales));
  return axis_input(c, first + 1, u, &u->zeros);
}

static const expr_id *axis_index(const struct uniform *u, const expr_id *index) { return u->axis < 0 ? NULL : &index[u->axis]; }
static struct element whole_num(struct kb *kb, int64_t v) { return f_const_as(&kb->f, DTYPE_INT32, (double)v); }

static status uniform_finish(struct kb *kb, const struct uniform *u, uint32_t o, const expr_id *index, struct element e) {
  kb_store(kb, o, index, e);
  kb_close(kb, u->x.rank);
  value_id out = kb_value(kb, o);
  TRY(kb_finish_guarded(kb));
  quantized_out(kb->c, 0, out);
  return OK;
}

status build_uniform_quantize(struct op_call *c) {
  struct uniform u;
  TRY(uniform_begin(c, 1, &u));
  enum dtype plain = quantized_plain(op_output_dtype(c, 0));
  int64_t low = node_attr_int(c->node, "quantization_min_val", 0), high = node_attr_int(c->node, "quantization_max_val", 0);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, u.data), s = kb_in(&kb, u.scales), z = kb_in(&kb, u.zeros), o = kb_out(&kb, plain, u.x.rank, u.x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, u.x.rank, u.x.dims, index);
  struct element inverse = e_div(&kb, e_num(&kb, 1), kb_load(&kb, s, axis_index(&u, index)));
  struct element at = e_floor(&kb, e_add(&kb, e_mul(&kb, kb_load(&kb, a, index), inverse), e_num(&kb, 0.5)));
  struct element q = e_add(&kb, e_cast(&kb, DTYPE_INT32, at), kb_load(&kb, z, axis_index(&u, index)));
  q = e_max(&kb, e_min(&kb, q, whole_num(&kb, (int32_t)high)), whole_num(&kb, (int32_t)low));
  return uniform_finish(&kb, &u, o, index, e_cast(&kb, plain, q));
}

static status check_scales(struct op_call *c, const struct uniform *u) {
  struct kb kb;
  guard_begin(&kb, c);
  kb.f.dtype = DTYPE_FLOAT;
  uint32_t s = kb_in(&kb, u->scales);
  expr_id index[LIMIT_RANK];
  int rank = u->axis >= 0;
  kb_loops(&kb, LOOP_SEQ, rank, rank ? &u->x.dims[u->axis] : NULL, index);
  expr_id positive = e_lt(&kb, e_num(&kb, 0), kb_load(&kb, s, rank ? index : NULL));
  kb_check(&kb, positive, INVALID_ARGUMENT, "rhs scales elements must be all positive.", NO_EXPR, NO_EXPR);
  kb_close(&kb, rank);
  return guard_finish(&kb);
}

status build_uniform_dequantize(struct op_call *c) {
  struct uniform u;
  TRY(uniform_begin(c, 1, &u));
  TRY(check_scales(c, &u));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, u.data), s = kb_in(&kb, u.scales), z = kb_in(&kb, u.zeros), o = kb_out(&kb, DTYPE_FLOAT, u.x.rank, u.x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, u.x.rank, u.x.dims, index);
  struct element rounded = e_cast(&kb, DTYPE_FLOAT, kb_load(&kb, a, index)); /* TensorFlow takes each number through a float */
  struct element q = e_sub(&kb, e_cast(&kb, DTYPE_INT32, rounded), kb_load(&kb, z, axis_index(&u, index)));
  struct element x = e_mul(&kb, e_cast(&kb, DTYPE_FLOAT, q), kb_load(&kb, s, axis_index(&u, index)));
  return uniform_finish(&kb, &u, o, index, x);
}

status build_uniform_quantized_clip(struct op_call *c) {
  struct uniform u;
  value_id low, high;
  TRY(uniform_begin(c, 3, &u));
  TRY(axis_input(c, 1, &u, &low));
  TRY(axis_input(c, 2, &u, &high));
  low = quantized_in(c, low);
  high = quantized_in(c, high);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t a = kb_in(&kb, u.data), l = kb_in(&kb, low), h = kb_in(&kb, high), o = kb_out(&kb, DTYPE_INT32, u.x.rank, u.x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, u.x.rank, u.x.dims, index);
  struct element least = e_max(&kb, kb_load(&kb, a, index), kb_load(&kb, l, axis_index(&u, index)));
  return uniform_finish(&kb, &u, o, index, e_min(&kb, least, kb_load(&kb, h, axis_index(&u, index))));
}
