/* uniform.c: see uniform.h. */
#include "ir/ops/quantized/uniform.h"

#include <math.h>

static status check_positive(struct op_call *c, uint32_t input, const struct uniform_scale *u) {
  struct flow_value v = *op_value(c, u->scales);
  struct kb kb;
  guard_begin(&kb, c);
  kb.f.dtype = DTYPE_FLOAT;
  uint32_t s = kb_in(&kb, u->scales);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_SEQ, v.rank, v.dims, index);
  expr_id positive = e_lt(&kb, e_num(&kb, 0), kb_load(&kb, s, index));
  const char *text = arena_printf(op_arena(c), "scales elements must be all positive: input %u", input);
  kb_check(&kb, positive, INVALID_ARGUMENT, text, NO_EXPR, NO_EXPR);
  kb_close(&kb, v.rank);
  return guard_finish(&kb);
}

status uniform_scale_read(struct op_call *c, uint32_t first, int axis, int rank, const dim *dims, struct uniform_scale *out) {
  out->axis = axis;
  if (axis < -1 || axis >= rank)
    return fail(INVALID_ARGUMENT, "quantization_axis must be -1 or in range [0, %d), but given %d", rank, axis);
  for (uint32_t i = first; i < first + 2; i++) {
    value_id *v = i == first ? &out->scales : &out->zeros;
    TRY(op_input(c, i, v));
    struct flow_value x = *op_value(c, *v);
    if (x.rank != (axis >= 0))
      return fail(INVALID_ARGUMENT, "input %u must be of rank %d, not %d, as quantization_axis is %d", i, axis >= 0, x.rank, axis);
    if (axis >= 0)
      TRY(op_equal_dims(c, x.dims[0], dims[axis],
                        arena_printf(op_arena(c), "input %u must have an element for each index of quantization_axis %d", i, axis)));
  }
  return check_positive(c, first, out);
}

/* ---- ratios ---- */

static expr_id whole(struct kb *kb, enum scalar_op op, expr_id a, int64_t b) { return expr_binary(kb->k, op, a, kb_int(kb, b)); }

/* The mantissa rounded to 31 bits, which are shifted by the exponent. */
static void store_ratio(struct kb *kb, struct element ratio, uint32_t factor, uint32_t shift, const expr_id *at) {
  expr_id bits = kb_now(kb, expr_make(kb->k, SCALAR_BITCAST, DTYPE_INT64, &ratio.re, 1));
  expr_id exponent = whole(kb, SCALAR_SUB, whole(kb, SCALAR_SHR, bits, 52), 1022);
  expr_id mantissa = whole(kb, SCALAR_OR, whole(kb, SCALAR_AND, bits, (1LL << 52) - 1), 1LL << 52);
  expr_id rounded = kb_now(kb, whole(kb, SCALAR_SHR, whole(kb, SCALAR_ADD, mantissa, 1LL << 21), 22));
  expr_id carry = kb_eq(kb, rounded, kb_int(kb, 1LL << 31));
  rounded = kb_select(kb, carry, kb_int(kb, 1LL << 30), rounded);
  exponent = kb_now(kb, kb_select(kb, carry, whole(kb, SCALAR_ADD, exponent, 1), exponent));
  expr_id small = kb_lt(kb, exponent, kb_int(kb, -31)), large = kb_lt(kb, kb_int(kb, 30), exponent);
  rounded = kb_select(kb, small, kb_int(kb, 0), kb_select(kb, large, kb_int(kb, (1LL << 31) - 1), rounded));
  exponent = kb_select(kb, small, kb_int(kb, 0), kb_select(kb, large, kb_int(kb, 30), exponent));
  kb_store(kb, factor, at, real_element(rounded));
  kb_store(kb, shift, at, real_element(kb_sub(kb, kb_int(kb, 31), exponent)));
}

static struct element scale_at(struct kb *kb, const struct uniform_scale *s, const expr_id *at) {
  return load_as(kb, DTYPE_DOUBLE, kb_in(kb, s->scales), uniform_place(s, at));
}

status uniform_ratio_of(struct op_call *c, const struct uniform_scale *a, const struct uniform_scale *b, const struct uniform_scale *to,
                        struct uniform_ratio *out) {
  const struct uniform_scale *vector = a->axis >= 0 ? a : b && b->axis >= 0 ? b : to;
  struct flow_value shape = *op_value(c, vector->scales);
  out->is_vector = shape.rank == 1;
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  uint32_t factor = kb_out(&kb, DTYPE_INT64, shape.rank, shape.dims), shift = kb_out(&kb, DTYPE_INT64, shape.rank, shape.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, shape.rank, shape.dims, at);
  struct element ratio = scale_at(&kb, a, at);
  if (b)
    ratio = e_mul(&kb, ratio, scale_at(&kb, b, at));
  ratio = e_now(&kb, e_div(&kb, ratio, scale_at(&kb, to, at)));
  expr_id finite = kb_and(&kb, e_lt(&kb, e_num(&kb, 0), ratio), e_lt(&kb, ratio, e_num(&kb, INFINITY)));
  kb_check(&kb, finite, INVALID_ARGUMENT, "the quotient of the scales must be a positive finite number", NO_EXPR, NO_EXPR);
  store_ratio(&kb, ratio, factor, shift, at);
  kb_close(&kb, shape.rank);
  out->factor = kb_value(&kb, factor);
  out->shift = kb_value(&kb, shift);
  return kb_finish_guarded(&kb);
}

struct element uniform_rescaled(struct kb *kb, struct element x, uint32_t factor, uint32_t shift, const expr_id *at) {
  expr_id by = kb_load(kb, shift, at).re;
  expr_id half = expr_binary(kb->k, SCALAR_SHL, kb_int(kb, 1), kb_sub(kb, by, kb_int(kb, 1)));
  expr_id product = kb_mul(kb, expr_cast(kb->k, DTYPE_INT64, x.re), kb_load(kb, factor, at).re);
  expr_id scaled = expr_binary(kb->k, SCALAR_SHR, kb_add(kb, product, half), by);
  scaled = whole(kb, SCALAR_MAX, whole(kb, SCALAR_MIN, scaled, INT32_MAX), INT32_MIN);
  return e_of(kb, DTYPE_INT32, scaled);
}

struct element uniform_clamped(struct kb *kb, struct element x) {
  const struct node *node = kb->c->node;
  int64_t low = node_attr_int(node, "output_quantization_min_val", 0), high = node_attr_int(node, "output_quantization_max_val", 0);
  struct element least = f_const_as(&kb->f, DTYPE_INT32, (int32_t)low), most = f_const_as(&kb->f, DTYPE_INT32, (int32_t)high);
  return e_max(kb, e_min(kb, x, most), least);
}

/* ---- sums of products ---- */

struct element uniform_integer(struct kb *kb, struct element q) {
  return e_cast(kb, DTYPE_INT32, element_dtype(&kb->f, q) == DTYPE_INT32 ? e_cast(kb, DTYPE_FLOAT, q) : q);
}

status uniform_centred(struct op_call *c, value_id q, const struct uniform_scale *s, value_id *out) {
  q = quantized_in(c, q);
  struct flow_value x = *op_value(c, q);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t a = kb_in(&kb, q), z = kb_in(&kb, s->zeros), o = kb_out(&kb, DTYPE_INT32, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct element zero = kb_load(&kb, z, uniform_place(s, index + (s->axis < 0 ? 0 : s->axis)));
  kb_store(&kb, o, index, e_sub(&kb, uniform_integer(&kb, kb_load(&kb, a, index)), zero));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

status uniform_sums_out(struct op_call *c, value_id sums, int axis, const struct uniform_scale *a, const struct uniform_scale *b,
                        const struct uniform_scale *to) {
  struct uniform_ratio ratio;
  TRY(uniform_ratio_of(c, a, b, to, &ratio));
  struct flow_value x = *op_value(c, sums);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t s = kb_in(&kb, sums), f = kb_in(&kb, ratio.factor), h = kb_in(&kb, ratio.shift), z = kb_in(&kb, to->zeros);
  uint32_t o = kb_out(&kb, DTYPE_INT32, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct element q = uniform_rescaled(&kb, kb_load(&kb, s, index), f, h, ratio.is_vector ? &index[axis] : NULL);
  q = uniform_clamped(&kb, e_add(&kb, q, kb_load(&kb, z, uniform_place(to, &index[axis]))));
  kb_store(&kb, o, index, q);
  kb_close(&kb, x.rank);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return OK;
}

/* ---- floats that are quantised on the way ---- */

#define LOWEST (-128)
#define HIGHEST 127

/* Of a range from low (0 or less) to high (0 or more), in doubles. */
struct found {
  struct element scale, inverse, zero;
};
static struct found find_scale(struct kb *kb, struct element low, struct element high) {
  struct element width = e_now(kb, e_sub(kb, high, low)), steps = e_num(kb, HIGHEST - LOWEST), none = e_num(kb, 0);
  struct element scale = e_now(kb, e_cast(kb, DTYPE_FLOAT, e_div(kb, width, steps)));
  struct element inverse = e_now(kb, e_cast(kb, DTYPE_FLOAT, e_div(kb, steps, width)));
  struct element by = e_cast(kb, DTYPE_DOUBLE, scale), below = e_div(kb, low, by), above = e_div(kb, high, by);
  struct element from_low = e_sub(kb, e_num(kb, LOWEST), below), from_high = e_sub(kb, e_num(kb, HIGHEST), above);
  struct element error_low = e_sub(kb, e_num(kb, -LOWEST), below), error_high = e_add(kb, e_num(kb, HIGHEST), above);
  struct element at = e_now(kb, e_select(kb, e_lt(kb, error_low, error_high), from_low, from_high));
  struct element zero = e_round_away(kb, e_max(kb, e_min(kb, at, e_num(kb, HIGHEST)), e_num(kb, LOWEST)));
  struct element infinite = f_const_as(&kb->f, DTYPE_FLOAT, INFINITY), nothing = f_const_as(&kb->f, DTYPE_FLOAT, 0);
  /* A width of 0, or one so small that its inverse is no float: all elements are 0. */
  expr_id usable = kb_now(kb, kb_and(kb, e_lt(kb, nothing, scale), e_lt(kb, inverse, infinite)));
  return (struct found){e_select(kb, usable, scale, f_const_as(&kb->f, DTYPE_FLOAT, 1)), e_select(kb, usable, inverse, nothing),
                        e_cast(kb, DTYPE_INT32, e_select(kb, usable, zero, none))};
}

/* Scales, their inverses and zero points, of each index of the axis. */
static status find_scales(struct op_call *c, value_id x, int axis, value_id out[3]) {
  struct flow_value v = *op_value(c, x);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  uint32_t a = kb_in(&kb, x), o[3];
  for (int i = 0; i < 3; i++)
    o[i] = kb_out(&kb, i < 2 ? DTYPE_FLOAT : DTYPE_INT32, 1, &v.dims[axis]);
  expr_id index[LIMIT_RANK];
  index[axis] = kb_for_dim(&kb, LOOP_PAR, v.dims[axis]);
  struct accumulator low = acc_zero(&kb, DTYPE_FLOAT), high = acc_zero(&kb, DTYPE_FLOAT);
  for (int d = 0; d < v.rank; d++)
    if (d != axis)
      index[d] = kb_for_dim(&kb, LOOP_RED, v.dims[d]);
  struct element e = kb_load(&kb, a, index);
  acc_set(&kb, &low, e_min(&kb, acc_get(&kb, &low), e));
  acc_set(&kb, &high, e_max(&kb, acc_get(&kb, &high), e));
  kb_close(&kb, v.rank - 1);
  struct found f = find_scale(&kb, e_cast(&kb, DTYPE_DOUBLE, acc_get(&kb, &low)), e_cast(&kb, DTYPE_DOUBLE, acc_get(&kb, &high)));
  kb_store(&kb, o[0], &index[axis], f.scale);
  kb_store(&kb, o[1], &index[axis], f.inverse);
  kb_store(&kb, o[2], &index[axis], f.zero);
  kb_close(&kb, 1);
  for (int i = 0; i < 3; i++)
    out[i] = kb_value(&kb, o[i]);
  return kb_finish(&kb);
}

status uniform_of_floats(struct op_call *c, value_id x, int axis, value_id *centred, struct uniform_scale *scale) {
  value_id found[3];
  TRY(find_scales(c, x, axis, found));
  *scale = (struct uniform_scale){found[0], found[2], axis};
  struct flow_value v = *op_value(c, x);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, x), inverse = kb_in(&kb, found[1]), zero = kb_in(&kb, found[2]), o = kb_out(&kb, DTYPE_INT32, v.rank, v.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, v.rank, v.dims, index);
  struct element scaled = e_mul(&kb, kb_load(&kb, a, index), kb_load(&kb, inverse, &index[axis])), z = kb_load(&kb, zero, &index[axis]);
  struct element q = e_add(&kb, e_cast(&kb, DTYPE_INT32, e_floor(&kb, e_add(&kb, scaled, e_num(&kb, 0.5)))), z);
  struct element least = f_const_as(&kb.f, DTYPE_INT32, LOWEST), most = f_const_as(&kb.f, DTYPE_INT32, HIGHEST);
  kb_store(&kb, o, index, e_sub(&kb, e_max(&kb, e_min(&kb, q, most), least), z));
  kb_close(&kb, v.rank);
  *centred = kb_value(&kb, o);
  return kb_finish(&kb);
}

status uniform_float_sums_out(struct op_call *c, value_id sums, const struct uniform_scale *a, int batch, const struct uniform_scale *b,
                              int channel) {
  struct flow_value x = *op_value(c, sums);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t s = kb_in(&kb, sums), u = kb_in(&kb, a->scales), w = kb_in(&kb, b->scales), o = kb_out(&kb, DTYPE_FLOAT, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct element e = e_mul(&kb, load_as(&kb, DTYPE_FLOAT, s, index), kb_load(&kb, u, &index[batch]));
  kb_store(&kb, o, index, e_mul(&kb, e, kb_load(&kb, w, uniform_place(b, &index[channel]))));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
