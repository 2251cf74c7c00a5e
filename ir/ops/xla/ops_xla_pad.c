/* ops_xla_pad.c: XLA's Pad, which also spreads elements and cuts off; numbers with fewer bits (ReducePrecision); and
 * shapes made to broadcast (BroadcastHelper). */
#include "ir/ops/xla/xla.h"

/* Each element goes to its place, unless it is cut off. */
static void store_spread(struct kb *kb, const struct flow_value *x, uint32_t in, uint32_t out, const dim *dims, const int64_t *low,
                         const int64_t *high, const int64_t *interior) {
  expr_id at[LIMIT_RANK], to[LIMIT_RANK], inside = expr_int(kb->k, DTYPE_BOOL, 1);
  kb_loops(kb, LOOP_PAR, x->rank, x->dims, at);
  bool cuts = false;
  for (int d = 0; d < x->rank; d++) {
    to[d] = kb_add(kb, kb_mul(kb, at[d], kb_int(kb, interior[d] + 1)), kb_int(kb, low[d]));
    if (low[d] < 0 || high[d] < 0) {
      inside = kb_and(kb, inside, kb_in_range(kb, to[d], kb_dim(kb, dims[d])));
      cuts = true;
    }
  }
  if (cuts)
    kb_if(kb, inside);
  kb_store(kb, out, to, kb_load(kb, in, at));
  kb_close(kb, x->rank + cuts);
}

/* input, padding_value, padding_low, padding_high, padding_interior */
status build_xla_pad(struct op_call *c) {
  value_id v, value;
  int64_t low[LIMIT_RANK], high[LIMIT_RANK], interior[LIMIT_RANK];
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &value));
  struct flow_value x = *op_value(c, v);
  if (op_value(c, value)->rank != 0)
    return fail(INVALID_ARGUMENT, "padding_value must be a scalar");
  TRY(xla_numbers(c, 2, "padding_low", x.rank, low));
  TRY(xla_numbers(c, 3, "padding_high", x.rank, high));
  TRY(xla_numbers(c, 4, "padding_interior", x.rank, interior));
  dim dims[LIMIT_RANK];
  for (int d = 0; d < x.rank; d++) {
    if (interior[d] < 0)
      return fail(INVALID_ARGUMENT, "padding_interior must not be negative");
    const struct xla_window each = {1, 1, interior[d] + 1, 1, low[d], high[d], x.dims[d]};
    dims[d] = xla_window_count(c, &each);
  }
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), padding = kb_in(&kb, value), out = kb_out(&kb, x.dtype, x.rank, dims);
  kb_fill(&kb, out, x.rank, dims, kb_load(&kb, padding, NULL));
  store_spread(&kb, &x, in, out, dims, low, high, interior);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}

/* ---- ReducePrecision: rounded to nearest even in fewer mantissa bits; what fewer exponent bits cannot hold is
 * infinite or zero ---- */

struct float_form {
  enum dtype bits; /* unsigned, of the same size */
  int exponent, mantissa;
};
static struct float_form float_form(enum dtype dtype) {
  switch (dtype) {
  case DTYPE_DOUBLE: return (struct float_form){DTYPE_UINT64, 11, 52};
  case DTYPE_HALF: return (struct float_form){DTYPE_UINT16, 5, 10};
  case DTYPE_BFLOAT16: return (struct float_form){DTYPE_UINT16, 8, 7};
  default: return (struct float_form){DTYPE_UINT32, 8, 23};
  }
}

static expr_id fewer_mantissa_bits(struct kernel *k, const struct float_form *f, int64_t mantissa, expr_id bits) {
  int64_t last = (int64_t)1 << (f->mantissa - mantissa);
  expr_id shift = expr_int(k, f->bits, f->mantissa - mantissa);
  expr_id odd = expr_binary(k, SCALAR_SHR, expr_binary(k, SCALAR_AND, bits, expr_int(k, f->bits, last)), shift);
  expr_id bias = expr_binary(k, SCALAR_ADD, odd, expr_int(k, f->bits, (last >> 1) - 1));
  return expr_binary(k, SCALAR_AND, expr_binary(k, SCALAR_ADD, bits, bias), expr_unary(k, SCALAR_NOT, expr_int(k, f->bits, last - 1)));
}

static expr_id fewer_exponent_bits(struct kernel *k, const struct float_form *f, int64_t exponent, expr_id bits) {
  int64_t bias = ((int64_t)1 << (f->exponent - 1)) - 1, reduced = ((int64_t)1 << (exponent - 1)) - 1;
  int64_t mask = (((int64_t)1 << f->exponent) - 1) << f->mantissa;
  expr_id field = expr_binary(k, SCALAR_AND, bits, expr_int(k, f->bits, mask));
  expr_id sign =
    expr_binary(k, SCALAR_AND, bits, expr_binary(k, SCALAR_SHL, expr_int(k, f->bits, 1), expr_int(k, f->bits, f->exponent + f->mantissa)));
  expr_id infinite = expr_binary(k, SCALAR_OR, sign, expr_int(k, f->bits, mask));
  expr_id over = expr_binary(k, SCALAR_LT, expr_int(k, f->bits, (bias + reduced) << f->mantissa), field);
  expr_id under = expr_binary(k, SCALAR_LE, field, expr_int(k, f->bits, (bias - reduced) << f->mantissa));
  return expr_select(k, under, sign, expr_select(k, over, infinite, bits));
}

status build_xla_reduce_precision(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  struct float_form f = float_form(x.dtype);
  int64_t exponent = node_attr_int(c->node, "exponent_bits", 1), mantissa = node_attr_int(c->node, "mantissa_bits", 0);
  if (exponent < 1 || mantissa < 0)
    return fail(INVALID_ARGUMENT, "exponent_bits %lld, mantissa_bits %lld", (long long)exponent, (long long)mantissa);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  struct element e = kb_load(&kb, in, at);
  expr_id bits = expr_bitcast(kb.k, f.bits, e.re);
  if (mantissa < f.mantissa)
    bits = fewer_mantissa_bits(kb.k, &f, mantissa, bits);
  if (exponent < f.exponent)
    bits = fewer_exponent_bits(kb.k, &f, exponent, bits);
  expr_id reduced = expr_bitcast(kb.k, x.dtype, bits), is_number = expr_binary(kb.k, SCALAR_EQ, e.re, e.re);
  kb_store(&kb, out, at, real_element(expr_select(kb.k, is_number, reduced, e.re)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}

/* ---- BroadcastHelper: lhs, rhs, and the axes of the larger that those of the smaller are ---- */

status build_xla_broadcast_helper(struct op_call *c) {
  value_id in[2], axes;
  int64_t *to;
  int count;
  TRY(op_input(c, 0, &in[0]));
  TRY(op_input(c, 1, &in[1]));
  TRY(op_input(c, 2, &axes));
  TRY(op_const_ints(c, axes, "broadcast_dims", &to, &count));
  struct flow_value x[2] = {*op_value(c, in[0]), *op_value(c, in[1])};
  int small = x[0].rank < x[1].rank ? 0 : 1, rank = x[!small].rank;
  op_set_output(c, 0, in[0]);
  op_set_output(c, 1, in[1]);
  if (count == 0 && (x[0].rank == x[1].rank || x[small].rank == 0))
    return OK;
  if (count != x[small].rank)
    return fail(INVALID_ARGUMENT,
                "If broadcast_dims is empty, both arguments must have equal rank; it has %d elements for the shapes %s and %s", count,
                op_shape_text(c, x[0].rank, x[0].dims), op_shape_text(c, x[1].rank, x[1].dims));
  dim dims[LIMIT_RANK];
  for (int d = 0; d < rank; d++)
    dims[d] = op_dim(c, 1);
  for (int i = 0; i < count; i++) {
    if (to[i] < 0 || to[i] >= rank || (i && to[i] <= to[i - 1]))
      return fail(INVALID_ARGUMENT, "broadcast_dims must be ascending axes of %d dimensions", rank);
    dims[to[i]] = x[small].dims[i];
  }
  op_set_output(c, (uint32_t)small, op_alias(c, in[small], x[small].dtype, rank, dims));
  return OK;
}
