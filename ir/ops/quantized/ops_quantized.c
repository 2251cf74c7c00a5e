/* ops_quantized.c: floats to quantised integers and back, and from one range to another. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ir/lower/lower_walk.h"
#include "ir/ops/quantized/quantized.h"

enum mode { MODE_MIN_COMBINED, MODE_MIN_FIRST, MODE_SCALED };

static status read_mode(struct op_call *c, enum mode *out) {
  static const char *const names[] = {"MIN_COMBINED", "MIN_FIRST", "SCALED"};
  const char *mode = node_attr_string(c->node, "mode", "MIN_COMBINED");
  for (int i = 0; i < 3; i++)
    if (strcmp(mode, names[i]) == 0) {
      *out = (enum mode)i;
      return OK;
    }
  return fail(INVALID_ARGUMENT, "Mode string must be 'MIN_COMBINED', 'MIN_FIRST', or 'SCALED', is '%s'", mode);
}

/* A tensor whose slices along an axis have ranges of their own; axis -1: one range for all. */
struct sliced_range {
  value_id data, min, max; /* min, max: [slices] */
  struct flow_value x;
  enum dtype plain;
  enum mode mode;
  int axis;
  bool one, narrow;
  dim slices;
};

static status flat_range(struct op_call *c, uint32_t i, struct sliced_range *s, value_id *out) {
  TRY(op_input(c, i, out));
  struct flow_value v = *op_value(c, *out);
  dim count = op_count(c, v.rank, v.dims);
  TRY(op_equal_dims(c, count, s->slices, "a range must have as many elements as the input on its axis"));
  if (v.rank != 1)
    *out = op_alias(c, *out, v.dtype, 1, &count);
  return OK;
}

static status sliced_begin(struct op_call *c, struct sliced_range *s) {
  TRY(op_input(c, 0, &s->data));
  s->x = *op_value(c, s->data);
  TRY(read_mode(c, &s->mode));
  int64_t axis = node_attr_int(c->node, "axis", -1);
  if (axis < -1 || axis >= s->x.rank)
    return fail(INVALID_ARGUMENT, "Axis must be less than input dimension(%d), got %lld", s->x.rank, (long long)axis);
  s->axis = (int)axis;
  s->narrow = node_attr_int(c->node, "narrow_range", 0);
  s->slices = axis < 0 ? op_dim(c, 1) : s->x.dims[axis];
  s->one = op_dim_value(c, s->slices) == 1;
  TRY(flat_range(c, 1, s, &s->min));
  TRY(flat_range(c, 2, s, &s->max));
  if (s->mode == MODE_MIN_FIRST && !s->one)
    return fail(UNIMPLEMENTED, "MIN_FIRST mode is not implemented for %s with axis != -1.", c->node->op);
  return OK;
}

static struct quantized_range slice_range(struct kb *kb, const struct sliced_range *s, const expr_id *index) {
  expr_id at = s->one ? kb_int(kb, 0) : index[s->axis];
  return (struct quantized_range){kb_load(kb, kb_in(kb, s->min), &at), kb_load(kb, kb_in(kb, s->max), &at)};
}

/* What signed integers are moved by: half of their range. */
static double half_range(enum dtype plain) { return dtype_is_signed(plain) ? -quantized_lowest(plain) : 0; }
static double whole_range(enum dtype plain) { return (double)(float)(quantized_highest(plain) - quantized_lowest(plain)); }

/* ---- Dequantize ---- */

static struct element dequantized(struct kb *kb, const struct sliced_range *s, struct element q, struct quantized_range r) {
  enum dtype plain = s->plain;
  if (s->mode == MODE_MIN_FIRST)
    return quantized_load(kb, plain, q, r);
  struct element x = e_cast(kb, DTYPE_FLOAT, q);
  if (s->mode == MODE_MIN_COMBINED) {
    struct element scale = e_div(kb, e_sub(kb, r.max, r.min), e_num(kb, whole_range(plain)));
    return e_add(kb, e_mul(kb, e_add(kb, x, e_num(kb, half_range(plain))), scale), r.min);
  }
  struct element scale = e_div(kb, r.max, e_num(kb, quantized_highest(plain)));
  if (dtype_is_signed(plain)) {
    struct element below = e_div(kb, r.min, e_num(kb, quantized_lowest(plain) + s->narrow));
    scale = e_select(kb, e_lt(kb, below, scale), scale, below);
  }
  return e_mul(kb, x, scale);
}

status build_dequantize(struct op_call *c) {
  struct sliced_range s;
  TRY(sliced_begin(c, &s));
  enum dtype dtype = op_output_dtype(c, 0);
  if (dtype == DTYPE_BFLOAT16 && s.mode != MODE_MIN_COMBINED)
    return fail(INVALID_ARGUMENT, "When output type is bfloat16, Mode string must be 'MIN_COMBINED'");
  s.plain = quantized_plain(s.x.dtype);
  s.data = quantized_in(c, s.data);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, s.data);
  kb_in(&kb, s.min);
  kb_in(&kb, s.max);
  uint32_t o = kb_out(&kb, dtype, s.x.rank, s.x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, s.x.rank, s.x.dims, index);
  store_as(&kb, o, index, dequantized(&kb, &s, kb_load(&kb, a, index), slice_range(&kb, &s, index)));
  kb_close(&kb, s.x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* ---- QuantizeV2 ---- */

/* The range that is used: around 0, and not too small for its numbers. */
static struct quantized_range nudged_range(struct kb *kb, struct quantized_range r) {
  struct element zero = e_num(kb, 0), one = e_num(kb, 1);
  struct element largest = e_max(kb, f_unary(&kb->f, SCALAR_ABS, r.min), f_unary(&kb->f, SCALAR_ABS, r.max));
  struct element epsilon = e_mul(kb, e_max(kb, one, largest), e_num(kb, node_attr_float(kb->c->node, "ensure_minimum_range", 0.01)));
  struct quantized_range out = {.min = e_min(kb, zero, r.min)};
  out.max = e_max(kb, zero, e_max(kb, r.max, e_add(kb, out.min, epsilon)));
  return out;
}

/* SCALED: steps for one unit, by the end of the range that needs the fewest; the range follows from it. */
static struct element scaled_range(struct kb *kb, const struct sliced_range *s, struct quantized_range *r) {
  struct element none = e_num(kb, (double)FLT_MAX), zero = e_num(kb, 0), ends[2] = {r->min, r->max}, factor[2], limit[2];
  for (int i = 0; i < 2; i++) {
    limit[i] = e_num(kb, i ? quantized_highest(s->plain) : quantized_lowest(s->plain) + s->narrow);
    expr_id counts = e_lt(kb, zero, e_mul(kb, limit[i], ends[i]));
    factor[i] = e_select(kb, counts, e_div(kb, limit[i], ends[i]), none);
  }
  struct element scale = e_min(kb, factor[0], factor[1]);
  r->min = e_div(kb, limit[0], scale);
  r->max = e_div(kb, limit[1], scale);
  return scale;
}

static struct element quantized_element(struct kb *kb, const struct sliced_range *s, struct element x, struct quantized_range r) {
  bool even = strcmp(node_attr_string(kb->c->node, "round_mode", ""), "HALF_TO_EVEN") == 0;
  if (s->mode == MODE_MIN_FIRST)
    return quantized_round(kb, s->plain, x, r);
  if (s->mode == MODE_SCALED) {
    struct element scale = scaled_range(kb, s, &r);
    struct element at = e_mul(kb, e_max(kb, e_min(kb, x, r.max), r.min), scale);
    return e_cast(kb, s->plain, even ? f_unary(&kb->f, SCALAR_RINT, at) : e_round_away(kb, at));
  }
  double whole = quantized_highest(s->plain) - quantized_lowest(s->plain);
  struct element span = e_cast(kb, DTYPE_DOUBLE, e_sub(kb, r.max, r.min));
  struct element scale = e_cast(kb, DTYPE_FLOAT, e_div(kb, f_const_as(&kb->f, DTYPE_DOUBLE, whole), span));
  struct element at = e_mul(kb, e_sub(kb, e_max(kb, e_min(kb, x, r.max), r.min), r.min), scale);
  if (dtype_is_signed(s->plain))
    return e_cast(kb, s->plain, e_round_away(kb, e_sub(kb, at, e_num(kb, half_range(s->plain)))));
  return e_cast(kb, s->plain, e_add(kb, at, e_num(kb, 0.5)));
}

/* The range of each slice as it is used: of one slice scalars. */
static status used_ranges(struct op_call *c, const struct sliced_range *s) {
  struct kb kb;
  int is_one = s->one ? 1 : op_decide_one(c, s->slices);
  bool drop = !s->one && is_one > 0;
  kb_begin(&kb, c, DTYPE_FLOAT);
  kb_in(&kb, s->min);
  kb_in(&kb, s->max);
  int rank = s->one ? 0 : 1;
  uint32_t low = kb_out(&kb, DTYPE_FLOAT, rank, &s->slices), high = kb_out(&kb, DTYPE_FLOAT, rank, &s->slices);
  expr_id index[LIMIT_RANK] = {0}, *at = &index[s->axis < 0 ? 0 : s->axis];
  kb_loops(&kb, LOOP_PAR, rank, &s->slices, at);
  struct quantized_range r = nudged_range(&kb, slice_range(&kb, s, index));
  if (s->mode == MODE_SCALED)
    scaled_range(&kb, s, &r);
  kb_store(&kb, low, at, r.min);
  kb_store(&kb, high, at, r.max);
  kb_close(&kb, rank);
  value_id ends[] = {kb_value(&kb, low), kb_value(&kb, high)};
  TRY(kb_finish_guarded(&kb));
  for (uint32_t i = 0; i < 2; i++)
    TRY(lower_squeezed(c, ends[i], is_one < 0, &drop, &c->out[1 + i]));
  return OK;
}

static status check_ranges(struct op_call *c, const struct sliced_range *s) {
  struct kb kb;
  guard_begin(&kb, c);
  kb.f.dtype = DTYPE_FLOAT;
  kb_in(&kb, s->min);
  kb_in(&kb, s->max);
  expr_id index[LIMIT_RANK] = {0};
  int open = s->one ? 0 : 1;
  kb_loops(&kb, LOOP_SEQ, open, &s->slices, &index[s->axis < 0 ? 0 : s->axis]);
  struct quantized_range r = slice_range(&kb, s, index);
  kb_check(&kb, kb_not(&kb, e_lt(&kb, r.max, r.min)), INVALID_ARGUMENT, "input_max_range must be larger than input_min_range.", NO_EXPR,
           NO_EXPR);
  kb_close(&kb, open);
  return guard_finish(&kb);
}

status build_quantize_v2(struct op_call *c) {
  struct sliced_range s;
  TRY(sliced_begin(c, &s));
  const char *round = node_attr_string(c->node, "round_mode", "HALF_AWAY_FROM_ZERO");
  if (strcmp(round, "HALF_TO_EVEN") == 0 && s.mode != MODE_SCALED)
    return fail(INVALID_ARGUMENT, "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED'");
  s.plain = quantized_plain(op_output_dtype(c, 0));
  TRY(check_ranges(c, &s));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, s.data);
  kb_in(&kb, s.min);
  kb_in(&kb, s.max);
  uint32_t o = kb_out(&kb, s.plain, s.x.rank, s.x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, s.x.rank, s.x.dims, index);
  struct quantized_range r = nudged_range(&kb, slice_range(&kb, &s, index));
  kb_store(&kb, o, index, quantized_element(&kb, &s, kb_load(&kb, a, index), r));
  kb_close(&kb, s.x.rank);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  return used_ranges(c, &s);
}

/* ---- from one range to another ---- */

struct requantized {
  value_id data, min, max, new_min, new_max;
  struct flow_value x;
  enum dtype from, to;
};

static status requantized_begin(struct op_call *c, bool strict, struct requantized *q) {
  TRY(op_input(c, 0, &q->data));
  TRY(quantized_scalar(c, 1, strict, &q->min));
  TRY(quantized_scalar(c, 2, strict, &q->max));
  q->x = *op_value(c, q->data);
  q->data = quantized_in(c, q->data);
  q->from = quantized_plain(q->x.dtype);
  return OK;
}

/* 32 bits to 8 unsigned in fixed point with 16 bits of fraction, as TensorFlow has it. */
static struct element fixed_point(struct kb *kb, struct element q, struct quantized_range r, struct quantized_range to) {
  struct formula *f = &kb->f;
  struct element zero = e_num(kb, 0), in_span = e_sub(kb, r.max, r.min), out_span = e_sub(kb, to.max, to.min);
  struct element wide_out = e_cast(kb, DTYPE_DOUBLE, out_span), all = f_const_as(f, DTYPE_DOUBLE, 255),
                 one = f_const_as(f, DTYPE_DOUBLE, 65536);
  expr_id flat = e_eq(kb, out_span, zero), none = kb_int(kb, 0);
  struct element inverse = e_select(kb, flat, zero, e_cast(kb, DTYPE_FLOAT, e_div(kb, all, wide_out)));
  struct element centre = e_div(kb, e_cast(kb, DTYPE_DOUBLE, e_add(kb, r.min, r.max)), f_const_as(f, DTYPE_DOUBLE, 2));
  struct element factor = e_div(kb, e_mul(kb, e_mul(kb, all, one), e_cast(kb, DTYPE_DOUBLE, in_span)), wide_out);
  expr_id scale = kb_select(kb, flat, none, e_int(kb, factor));
  expr_id in_offset = e_int(kb, e_mul(kb, e_mul(kb, e_cast(kb, DTYPE_FLOAT, centre), inverse), e_num(kb, 65536)));
  struct element start = e_div(kb, e_mul(kb, one, e_mul(kb, e_cast(kb, DTYPE_DOUBLE, to.min), all)), wide_out);
  expr_id out_offset = kb_select(kb, flat, none, e_int(kb, e_round_away(kb, start)));
  expr_id high = expr_binary(kb->k, SCALAR_SHR, kb_mul(kb, kb_index(kb, q), scale), kb_int(kb, 32));
  expr_id at = kb_add(kb, high, kb_add(kb, kb_sub(kb, in_offset, out_offset), kb_int(kb, 32768)));
  at = expr_binary(kb->k, SCALAR_SHR, at, kb_int(kb, 16));
  at = expr_binary(kb->k, SCALAR_MIN, expr_binary(kb->k, SCALAR_MAX, at, none), kb_int(kb, 255));
  return e_of(kb, DTYPE_UINT8, at);
}

static status requantize(struct op_call *c, const struct requantized *q) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, q->data);
  struct quantized_range r = quantized_range(&kb, q->min, q->max), to = quantized_range(&kb, q->new_min, q->new_max);
  uint32_t o = kb_out(&kb, q->to, q->x.rank, q->x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, q->x.rank, q->x.dims, index);
  struct element e = kb_load(&kb, a, index);
  bool fixed = q->from == DTYPE_INT32 && q->to == DTYPE_UINT8;
  kb_store(&kb, o, index, fixed ? fixed_point(&kb, e, r, to) : quantized_round(&kb, q->to, quantized_load(&kb, q->from, e, r), to));
  kb_close(&kb, q->x.rank);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  op_set_output(c, 1, q->new_min);
  op_set_output(c, 2, q->new_max);
  return OK;
}

status build_requantize(struct op_call *c) {
  struct requantized q;
  TRY(requantized_begin(c, true, &q));
  TRY(quantized_scalar(c, 3, true, &q.new_min));
  TRY(quantized_scalar(c, 4, true, &q.new_max));
  q.to = quantized_plain(op_output_dtype(c, 0));
  struct kb guard;
  guard_begin(&guard, c);
  guard.f.dtype = DTYPE_FLOAT;
  struct quantized_range to = quantized_range(&guard, q.new_min, q.new_max);
  kb_check(&guard, e_le(&guard, to.min, e_num(&guard, 0)), INVALID_ARGUMENT, "requested_output_min must be <= 0", NO_EXPR, NO_EXPR);
  kb_check(&guard, e_le(&guard, to.min, to.max), INVALID_ARGUMENT, "requested_output_max must be >= requested_output_min", NO_EXPR,
           NO_EXPR);
  TRY(guard_finish(&guard));
  return requantize(c, &q);
}

/* The range that the numbers take up, with 0 in it. */
static status taken_range(struct op_call *c, struct requantized *q) {
  struct kb kb;
  kb_begin(&kb, c, q->from);
  uint32_t a = kb_in(&kb, q->data);
  struct quantized_range r = quantized_range(&kb, q->min, q->max);
  struct accumulator least = acc_begin(&kb, f_highest(&kb.f)), most = acc_begin(&kb, f_lowest(&kb.f));
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_RED, q->x.rank, q->x.dims, index);
  struct element e = kb_load(&kb, a, index);
  acc_set(&kb, &least, e_min(&kb, acc_get(&kb, &least), e));
  acc_set(&kb, &most, e_max(&kb, acc_get(&kb, &most), e));
  kb_close(&kb, q->x.rank);
  struct element first = quantized_to_float(&kb, q->from, kb_index(&kb, acc_get(&kb, &least)), r);
  struct element last = quantized_to_float(&kb, q->from, kb_index(&kb, acc_get(&kb, &most)), r);
  value_id range[2];
  TRY(quantized_range_finish(&kb, e_min(&kb, f_const_as(&kb.f, DTYPE_FLOAT, 0), first), last, range));
  q->new_min = range[0];
  q->new_max = range[1];
  return OK;
}

status build_requantization_range(struct op_call *c) {
  struct requantized q;
  TRY(requantized_begin(c, false, &q));
  TRY(taken_range(c, &q));
  op_set_output(c, 0, q.new_min);
  op_set_output(c, 1, q.new_max);
  return OK;
}

status build_quantize_down_and_shrink_range(struct op_call *c) {
  struct requantized q;
  TRY(requantized_begin(c, true, &q));
  TRY(taken_range(c, &q));
  q.to = quantized_plain(op_output_dtype(c, 0));
  return requantize(c, &q);
}
