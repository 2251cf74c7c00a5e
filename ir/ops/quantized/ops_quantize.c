/* ops_quantize.c: rounding to the steps that a quantised number would have, for training with quantisation in mind. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"

static struct element num(struct kb *kb, double v) { return f_const(&kb->f, v); }
static struct element bin(struct kb *kb, enum scalar_op op, struct element a, struct element b) { return f_binary(&kb->f, op, a, b); }
static struct element add(struct kb *kb, struct element a, struct element b) { return bin(kb, SCALAR_ADD, a, b); }
static struct element sub(struct kb *kb, struct element a, struct element b) { return bin(kb, SCALAR_SUB, a, b); }
static struct element mul(struct kb *kb, struct element a, struct element b) { return bin(kb, SCALAR_MUL, a, b); }
static struct element divide(struct kb *kb, struct element a, struct element b) { return bin(kb, SCALAR_DIV, a, b); }
static struct element clamp(struct kb *kb, struct element x, struct element low, struct element high) {
  return bin(kb, SCALAR_MAX, bin(kb, SCALAR_MIN, x, high), low); /* low counts where it is above high */
}
static struct element floor_of(struct kb *kb, struct element a) { return f_unary(&kb->f, SCALAR_FLOOR, a); }
static struct element now(struct kb *kb, struct element e) { return real_element(kb_get(kb, kb_local(kb, e.re))); }

/* ---- FakeQuant: the range is moved so that 0 is one of the steps ---- */

struct range {
  value_id min, max; /* NO_VALUE: attributes */
  bool per_channel;
  double first, last; /* steps */
};
struct nudged {
  struct element min, max, scale;
  expr_id empty; /* both ends are 0: nothing to quantise */
};

static status range_begin(struct op_call *c, uint32_t first_input, const struct flow_value *x, struct range *r) {
  int64_t bits = node_attr_int(c->node, "num_bits", 8);
  if (bits < 2 || bits > 16)
    return fail(INVALID_ARGUMENT, "num_bits must be between 2 and 16, inclusive, not %lld", (long long)bits);
  *r = (struct range){.first = node_attr_int(c->node, "narrow_range", 0) ? 1 : 0, .last = (double)((1 << bits) - 1)};
  if (first_input == UINT32_MAX)
    return node_attr_float(c->node, "min", -6) < node_attr_float(c->node, "max", 6)
           ? OK
           : fail(INVALID_ARGUMENT, "min has to be smaller than max");
  TRY(op_input(c, first_input, &r->min));
  TRY(op_input(c, first_input + 1, &r->max));
  struct flow_value low = *op_value(c, r->min), high = *op_value(c, r->max);
  r->per_channel = OP_ROW(c, fake_quant_row)->per_channel;
  if (low.rank != r->per_channel || high.rank != r->per_channel || (r->per_channel && x->rank < 1))
    return fail(INVALID_ARGUMENT, "min and max must be %s", r->per_channel ? "vectors with one element for each channel" : "scalars");
  if (!r->per_channel)
    return OK;
  TRY(op_equal_dims(c, low.dims[0], x->dims[x->rank - 1], "min must have one element for each channel"));
  return op_equal_dims(c, high.dims[0], x->dims[x->rank - 1], "max must have one element for each channel");
}

static struct nudged nudge(struct kb *kb, const struct range *r, const expr_id *channel) {
  struct element low = num(kb, node_attr_float(kb->c->node, "min", -6)), high = num(kb, node_attr_float(kb->c->node, "max", 6));
  expr_id empty = expr_int(kb->k, DTYPE_BOOL, 0);
  if (r->min) {
    low = kb_load(kb, kb_in(kb, r->min), channel);
    high = kb_load(kb, kb_in(kb, r->max), channel);
    empty = kb_and(kb, bin(kb, SCALAR_EQ, low, num(kb, 0)).re, bin(kb, SCALAR_EQ, high, num(kb, 0)).re);
  }
  struct element first = num(kb, r->first), last = num(kb, r->last);
  struct element scale = divide(kb, sub(kb, high, low), num(kb, r->last - r->first));
  struct element zero = sub(kb, first, divide(kb, low, scale)), rounded = floor_of(kb, add(kb, zero, num(kb, 0.5)));
  zero = f_select(&kb->f, bin(kb, SCALAR_LT, zero, first), first, f_select(&kb->f, bin(kb, SCALAR_LT, last, zero), last, rounded));
  return (struct nudged){mul(kb, sub(kb, first, zero), scale), mul(kb, sub(kb, last, zero), scale), scale, empty};
}

static const expr_id *channel_index(const struct range *r, const expr_id *index, int rank) {
  return r->per_channel ? &index[rank - 1] : NULL;
}

static status fake_quant(struct op_call *c, uint32_t first_input) {
  value_id v;
  struct range r;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(range_begin(c, first_input, &x, &r));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct nudged n = nudge(&kb, &r, channel_index(&r, index, x.rank));
  struct element shifted = sub(&kb, clamp(&kb, kb_load(&kb, a, index), n.min, n.max), n.min);
  struct element inverse = divide(&kb, num(&kb, 1), n.scale);
  struct element step = floor_of(&kb, add(&kb, mul(&kb, shifted, inverse), num(&kb, 0.5)));
  struct element e = add(&kb, mul(&kb, step, n.scale), n.min);
  kb_store(&kb, o, index, f_select(&kb.f, real_element(n.empty), num(&kb, 0), e));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
status build_fake_quant_args(struct op_call *c) { return fake_quant(c, UINT32_MAX); }
status build_fake_quant_vars(struct op_call *c) { return fake_quant(c, 1); }

/* ---- its gradients: through where the input was in range; what was below or above goes to min and max ---- */

static status input_gradient(struct op_call *c, value_id g, value_id v, const struct range *r) {
  struct flow_value x = *op_value(c, v);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t dy = kb_in(&kb, g), a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct nudged n = nudge(&kb, r, channel_index(r, index, x.rank));
  struct element e = kb_load(&kb, a, index);
  expr_id inside = kb_and(&kb, bin(&kb, SCALAR_LE, n.min, e).re, bin(&kb, SCALAR_LE, e, n.max).re);
  inside = expr_binary(kb.k, SCALAR_OR, inside, n.empty);
  kb_store(&kb, o, index, f_select(&kb.f, real_element(inside), kb_load(&kb, dy, index), num(&kb, 0)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

static status range_gradient(struct op_call *c, value_id g, value_id v, const struct range *r) {
  struct flow_value x = *op_value(c, v);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  int rest = x.rank - r->per_channel;
  dim channels = x.rank ? x.dims[x.rank - 1] : NO_DIM;
  uint32_t dy = kb_in(&kb, g), a = kb_in(&kb, v), low = kb_out(&kb, x.dtype, r->per_channel, &channels),
           high = kb_out(&kb, x.dtype, r->per_channel, &channels);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, r->per_channel, &channels, &index[rest]);
  struct nudged n = nudge(&kb, r, &index[rest]);
  n.min = now(&kb, n.min);
  n.max = now(&kb, n.max);
  struct accumulator below = acc_zero(&kb, x.dtype), above = acc_zero(&kb, x.dtype);
  kb_loops(&kb, LOOP_RED, rest, x.dims, index);
  struct element e = kb_load(&kb, a, index), d = kb_load(&kb, dy, index), zero = num(&kb, 0);
  acc_add(&kb, &below, f_select(&kb.f, bin(&kb, SCALAR_LT, e, n.min), d, zero));
  acc_add(&kb, &above, f_select(&kb.f, bin(&kb, SCALAR_LT, n.max, e), d, zero));
  kb_close(&kb, rest);
  struct element none = real_element(n.empty);
  kb_store(&kb, low, &index[rest], f_select(&kb.f, none, zero, acc_get(&kb, &below)));
  kb_store(&kb, high, &index[rest], f_select(&kb.f, none, zero, acc_get(&kb, &above)));
  kb_close(&kb, r->per_channel);
  op_set_output(c, 1, kb_value(&kb, low));
  op_set_output(c, 2, kb_value(&kb, high));
  return kb_finish(&kb);
}

/* gradients, inputs, and for the second min, max */
static status fake_quant_gradient(struct op_call *c, uint32_t first_input) {
  value_id g, v;
  struct range r;
  TRY(op_input(c, 0, &g));
  TRY(op_input(c, 1, &v));
  struct flow_value x = *op_value(c, v);
  TRY(op_same_shape(c, v, g, "gradient and input must be the same size"));
  TRY(range_begin(c, first_input, &x, &r));
  TRY(input_gradient(c, g, v, &r));
  return c->out_count > 1 ? range_gradient(c, g, v, &r) : OK;
}
status build_fake_quant_args_gradient(struct op_call *c) { return fake_quant_gradient(c, UINT32_MAX); }
status build_fake_quant_vars_gradient(struct op_call *c) { return fake_quant_gradient(c, 2); }

/* ---- QuantizeAndDequantize ---- */

struct steps {
  double low, high; /* of the integers, when bits is NO_VALUE */
  value_id bits;    /* their number of bits, where the step knows it only */
  bool given, half_up, is_signed, narrow;
  int axis; /* -1: one range for all */
};

/* The smallest and largest element, of each slice along the axis or of all. */
static status data_range(struct op_call *c, value_id v, int axis, value_id out[2]) {
  struct flow_value x = *op_value(c, v);
  int rank = axis >= 0;
  dim channels = rank ? x.dims[axis] : NO_DIM;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), low = kb_out(&kb, x.dtype, rank, &channels), high = kb_out(&kb, x.dtype, rank, &channels);
  expr_id index[LIMIT_RANK], channel = NO_EXPR;
  kb_loops(&kb, LOOP_PAR, rank, &channels, &channel);
  struct accumulator least = acc_begin(&kb, num(&kb, INFINITY)), most = acc_begin(&kb, num(&kb, -INFINITY));
  for (int i = 0; i < x.rank; i++)
    index[i] = i == axis ? channel : kb_for_dim(&kb, LOOP_RED, x.dims[i]);
  struct element e = kb_load(&kb, a, index);
  acc_set(&kb, &least, bin(&kb, SCALAR_MIN, acc_get(&kb, &least), e));
  acc_set(&kb, &most, bin(&kb, SCALAR_MAX, acc_get(&kb, &most), e));
  kb_close(&kb, x.rank - rank);
  kb_store(&kb, low, &channel, acc_get(&kb, &least));
  kb_store(&kb, high, &channel, acc_get(&kb, &most));
  kb_close(&kb, rank);
  out[0] = kb_value(&kb, low);
  out[1] = kb_value(&kb, high);
  return kb_finish(&kb);
}

/* The first and last integer of a number of bits that the step computes. */
static void computed_ends(struct kb *kb, const struct steps *s, struct element *first, struct element *last) {
  expr_id one = kb_int(kb, 1), bits = kb_index(kb, kb_load(kb, kb_in(kb, s->bits), NULL)), more = kb_sub(kb, bits, one);
  expr_id low = kb_sub(kb, kb_int(kb, s->narrow), expr_binary(kb->k, SCALAR_SHL, one, more));
  expr_id high = kb_sub(kb, expr_binary(kb->k, SCALAR_SHL, one, s->is_signed ? more : bits), one);
  *first = s->is_signed ? real_element(expr_cast(kb->k, kb->f.dtype, low)) : num(kb, 0);
  *last = real_element(expr_cast(kb->k, kb->f.dtype, high));
}

/* The side of the range that needs the coarser steps decides; the other end moves to a step. */
static struct element quantized(struct kb *kb, const struct steps *s, struct element x, struct element low, struct element high) {
  struct formula *f = &kb->f;
  struct element zero = num(kb, 0), first = num(kb, s->low), last = num(kb, s->high), large = num(kb, 0x1.fffffep127);
  if (s->bits)
    computed_ends(kb, s, &first, &last);
  struct element has_low = bin(kb, SCALAR_LT, zero, mul(kb, first, low)), has_high = bin(kb, SCALAR_LT, zero, mul(kb, last, high));
  struct element by_low = f_select(f, has_low, divide(kb, first, low), large);
  struct element by_high = f_select(f, has_high, divide(kb, last, high), large);
  struct element from_low = bin(kb, SCALAR_LT, by_low, by_high);
  struct element scale = f_select(f, from_low, by_low, by_high);
  struct element inverse = f_select(f, from_low, divide(kb, low, first), divide(kb, high, last));
  if (s->given)
    x = clamp(kb, x, f_select(f, from_low, low, mul(kb, first, inverse)), f_select(f, from_low, mul(kb, last, inverse), high));
  struct element step = mul(kb, x, scale);
  step = s->half_up ? floor_of(kb, add(kb, step, num(kb, 0.5))) : f_unary(f, SCALAR_RINT, step);
  return mul(kb, step, inverse);
}

/* num_bits is an input of the third version. */
static status bits_input(struct op_call *c, struct steps *s, int64_t *bits) {
  value_id v;
  struct kb guard;
  TRY(op_input(c, 3, &v));
  if (op_value(c, v)->rank != 0)
    return fail(INVALID_ARGUMENT, "num_bits must be a scalar");
  guard_begin(&guard, c);
  expr_id n = kb_index(&guard, kb_load(&guard, kb_in(&guard, v), NULL));
  kb_check(&guard, kb_in_range(&guard, kb_sub(&guard, n, kb_int(&guard, 1)), kb_int(&guard, s->is_signed ? 61 : 62)), INVALID_ARGUMENT,
           "num_bits is out of range: %d", n, NO_EXPR);
  TRY(guard_finish(&guard));
  if (!op_known_int(c, v, 0, bits))
    s->bits = v;
  return OK;
}

static status steps_begin(struct op_call *c, int rank, struct steps *s) {
  int64_t bits = node_attr_int(c->node, "num_bits", 8);
  *s = (struct steps){.is_signed = node_attr_int(c->node, "signed_input", 1), .narrow = node_attr_int(c->node, "narrow_range", 0)};
  if (op_takes(c, "num_bits"))
    TRY(bits_input(c, s, &bits));
  if (bits < 1 || bits > 61 + !s->is_signed)
    return fail(INVALID_ARGUMENT, "num_bits is out of range: %lld with signed_input %d", (long long)bits, s->is_signed);
  s->low = s->is_signed ? -(double)(INT64_C(1) << (bits - 1)) + s->narrow : 0;
  s->high = (double)((INT64_C(1) << (bits - s->is_signed)) - 1);
  s->given = node_attr_int(c->node, "range_given", 0);
  s->half_up = strcmp(node_attr_string(c->node, "round_mode", "HALF_TO_EVEN"), "HALF_UP") == 0;
  s->axis = (int)node_attr_int(c->node, "axis", -1);
  if (s->axis < -1 || s->axis >= rank)
    return fail(INVALID_ARGUMENT, "axis %d is not in [-1,%d)", s->axis, rank);
  return OK;
}

/* The first version has its range as attributes. */
static status attribute_range(struct op_call *c, enum dtype dtype, value_id range[2]) {
  for (int i = 0; i < 2; i++) {
    struct kb kb;
    kb_begin(&kb, c, dtype);
    uint32_t o = kb_out(&kb, dtype, 0, NULL);
    kb_store(&kb, o, NULL, num(&kb, node_attr_float(c->node, i ? "input_max" : "input_min", 0)));
    range[i] = kb_value(&kb, o);
    TRY(kb_finish(&kb));
  }
  return OK;
}

static status check_range(struct op_call *c, const struct steps *s, const value_id range[2]) {
  if (!s->given)
    return OK;
  int rank = op_value(c, range[0])->rank;
  struct kb guard;
  guard_begin(&guard, c);
  uint32_t low = kb_in(&guard, range[0]), high = kb_in(&guard, range[1]);
  expr_id at = NO_EXPR;
  kb_loops(&guard, LOOP_SEQ, rank, op_value(c, range[0])->dims, &at);
  kb_check(&guard, bin(&guard, SCALAR_LE, kb_load(&guard, low, &at), kb_load(&guard, high, &at)).re, INVALID_ARGUMENT,
           "Invalid range: input_min > input_max", NO_EXPR, NO_EXPR);
  kb_close(&guard, rank);
  return guard_finish(&guard);
}

status build_quantize_and_dequantize(struct op_call *c) {
  value_id v, range[2];
  struct steps s;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (c->in_count == 1)
    TRY(attribute_range(c, x.dtype, range));
  for (uint32_t i = 0; i < 2 && c->in_count > 1; i++)
    TRY(op_input(c, 1 + i, &range[i]));
  TRY(steps_begin(c, x.rank, &s));
  if (!s.given)
    TRY(data_range(c, v, s.axis, range));
  for (int i = 0; i < 2; i++) {
    struct flow_value r = *op_value(c, range[i]);
    if (r.rank != (s.axis >= 0))
      return fail(INVALID_ARGUMENT, "input_min and input_max must be %s", s.axis >= 0 ? "vectors" : "scalars");
    if (r.rank)
      TRY(op_equal_dims(c, r.dims[0], x.dims[s.axis], "input_min and input_max must fit the axis"));
  }
  TRY(check_range(c, &s, range));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), l = kb_in(&kb, range[0]), h = kb_in(&kb, range[1]), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  const expr_id *channel = s.axis >= 0 ? &index[s.axis] : NULL;
  kb_store(&kb, o, index, quantized(&kb, &s, kb_load(&kb, a, index), kb_load(&kb, l, channel), kb_load(&kb, h, channel)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* gradients, input, input_min, input_max: passes where the input was in range; nothing goes to the range itself. */
status build_quantize_and_dequantize_grad(struct op_call *c) {
  value_id in[4];
  for (uint32_t i = 0; i < 4; i++)
    TRY(op_input(c, i, &in[i]));
  struct flow_value x = *op_value(c, in[1]);
  int64_t axis = node_attr_int(c->node, "axis", -1);
  if (axis < -1 || axis >= x.rank)
    return fail(INVALID_ARGUMENT, "Axis should be -1 or 0 or a positive value less than %d but given axis value was %lld", x.rank,
                (long long)axis);
  TRY(op_same_shape(c, in[0], in[1], "gradient and input must be the same size"));
  for (int i = 2; i < 4; i++) {
    struct flow_value r = *op_value(c, in[i]);
    if (r.rank != (axis >= 0))
      return fail(INVALID_ARGUMENT, "input_min and input_max must be %s", axis >= 0 ? "vectors" : "scalars");
    if (r.rank)
      TRY(op_equal_dims(c, r.dims[0], x.dims[axis], "input_min and input_max must fit the axis"));
  }
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t dy = kb_in(&kb, in[0]), a = kb_in(&kb, in[1]), low = kb_in(&kb, in[2]), high = kb_in(&kb, in[3]),
           o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  const expr_id *channel = axis >= 0 ? &index[axis] : NULL;
  struct element e = kb_load(&kb, a, index);
  expr_id inside =
    kb_and(&kb, bin(&kb, SCALAR_LE, kb_load(&kb, low, channel), e).re, bin(&kb, SCALAR_LE, e, kb_load(&kb, high, channel)).re);
  kb_store(&kb, o, index, mul(&kb, kb_load(&kb, dy, index), f_select(&kb.f, real_element(inside), num(&kb, 1), num(&kb, 0))));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  TRY(kb_finish_guarded(&kb));
  for (uint32_t i = 1; i < 3; i++) {
    struct flow_value r = *op_value(c, in[1 + i]);
    kb_begin(&kb, c, x.dtype);
    uint32_t none = kb_out(&kb, x.dtype, r.rank, r.dims);
    kb_fill(&kb, none, r.rank, r.dims, num(&kb, 0));
    op_set_output(c, i, kb_value(&kb, none));
    TRY(kb_finish(&kb));
  }
  return OK;
}
