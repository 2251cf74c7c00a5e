/* quantized.c: see quantized.h. */
#include "ir/ops/quantized/quantized.h"

#include <math.h>

enum dtype quantized_plain(enum dtype dtype) {
  switch (dtype) {
  case DTYPE_QINT8: return DTYPE_INT8;
  case DTYPE_QUINT8: return DTYPE_UINT8;
  case DTYPE_QINT16: return DTYPE_INT16;
  case DTYPE_QUINT16: return DTYPE_UINT16;
  case DTYPE_QINT32: return DTYPE_INT32;
  default: return dtype;
  }
}

static double steps_of(enum dtype plain) { return ldexp(1, (int)dtype_size(plain) * 8); }
double quantized_lowest(enum dtype plain) { return dtype_is_signed(plain) ? -steps_of(plain) / 2 : 0; }
double quantized_highest(enum dtype plain) { return quantized_lowest(plain) + steps_of(plain) - 1; }

value_id quantized_in(struct op_call *c, value_id v) {
  struct flow_value x = *op_value(c, v);
  enum dtype plain = quantized_plain(x.dtype);
  return plain == x.dtype ? v : op_alias(c, v, plain, x.rank, x.dims);
}
void quantized_out(struct op_call *c, uint32_t output, value_id plain) {
  struct flow_value x = *op_value(c, plain);
  enum dtype dtype = op_output_dtype(c, output);
  op_set_output(c, output, dtype == x.dtype ? plain : op_alias(c, plain, dtype, x.rank, x.dims));
}

status quantized_scalar(struct op_call *c, uint32_t i, bool strict, value_id *out) {
  TRY(op_input(c, i, out));
  struct flow_value v = *op_value(c, *out);
  if (v.rank == 0)
    return OK;
  if (strict)
    return fail(INVALID_ARGUMENT, "input %u must be rank 0 but is rank %d", i, v.rank);
  TRY(op_equal_dims(c, op_count(c, v.rank, v.dims), op_dim(c, 1), arena_printf(op_arena(c), "input %u must have 1 element", i)));
  *out = op_alias(c, *out, v.dtype, 0, NULL);
  return OK;
}

struct quantized_range quantized_range(struct kb *kb, value_id min, value_id max) {
  struct element low = kb_load(kb, kb_in(kb, min), NULL), high = kb_load(kb, kb_in(kb, max), NULL);
  return (struct quantized_range){low, high};
}

status quantized_range_finish(struct kb *kb, struct element min, struct element max, value_id range[2]) {
  const struct element end[2] = {min, max};
  for (int i = 0; i < 2; i++) {
    uint32_t o = kb_out(kb, DTYPE_FLOAT, 0, NULL);
    kb_store(kb, o, NULL, end[i]);
    range[i] = kb_value(kb, o);
  }
  return kb_finish_guarded(kb);
}

status quantized_range_out(struct kb *kb, struct element min, struct element max, value_id range[2]) {
  TRY(quantized_range_finish(kb, min, max, range));
  for (uint32_t i = 0; i < 2; i++)
    op_set_output(kb->c, 1 + i, range[i]);
  return OK;
}

/* ---- by doubles ---- */

static struct element wide(struct kb *kb, struct element e) { return e_cast(kb, DTYPE_DOUBLE, e); }
static struct element wide_num(struct kb *kb, double v) { return f_const_as(&kb->f, DTYPE_DOUBLE, v); }

/* The range between one step below the first and the last, as a double. */
static struct element wide_span(struct kb *kb, enum dtype plain, struct quantized_range r) {
  double steps = steps_of(plain);
  return e_mul(kb, wide(kb, e_sub(kb, r.max, r.min)), wide_num(kb, steps / (steps - 1)));
}

expr_id quantized_of_float(struct kb *kb, enum dtype plain, struct element x, struct quantized_range r) {
  struct element scale = e_div(kb, wide_num(kb, steps_of(plain)), wide_span(kb, plain, r));
  struct element at = e_round_away(kb, e_mul(kb, wide(kb, x), scale)), first = e_round_away(kb, e_mul(kb, wide(kb, r.min), scale));
  expr_id lowest = kb_int(kb, (int64_t)quantized_lowest(plain));
  expr_id q = kb_add(kb, e_int(kb, e_sub(kb, at, first)), lowest);
  return kb_select(kb, e_eq(kb, r.min, r.max), lowest, q);
}

expr_id quantized_of_float_clamped(struct kb *kb, enum dtype plain, struct element x, struct quantized_range r) {
  expr_id low = kb_int(kb, (int64_t)quantized_lowest(plain)), high = kb_int(kb, (int64_t)quantized_highest(plain));
  return expr_binary(kb->k, SCALAR_MIN, expr_binary(kb->k, SCALAR_MAX, quantized_of_float(kb, plain, x, r), low), high);
}

struct element quantized_to_float(struct kb *kb, enum dtype plain, expr_id q, struct quantized_range r) {
  struct element scale = e_div(kb, wide_span(kb, plain, r), wide_num(kb, steps_of(plain)));
  struct element narrow = e_cast(kb, DTYPE_FLOAT, scale);
  struct element first = e_mul(kb, wide(kb, e_round_away(kb, e_div(kb, r.min, narrow))), wide(kb, narrow));
  struct element steps = e_sub(kb, e_of(kb, DTYPE_DOUBLE, q), wide_num(kb, quantized_lowest(plain)));
  struct element x = e_cast(kb, DTYPE_FLOAT, e_add(kb, first, e_mul(kb, steps, scale)));
  return e_select(kb, e_eq(kb, r.min, r.max), r.min, x);
}

/* ---- by floats ---- */

static struct element float_num(struct kb *kb, double v) { return f_const_as(&kb->f, DTYPE_FLOAT, v); }

struct element quantized_load(struct kb *kb, enum dtype plain, struct element q, struct quantized_range r) {
  struct element gaps = wide_num(kb, steps_of(plain) - 1);
  struct element scale = e_cast(kb, DTYPE_FLOAT, e_div(kb, wide(kb, e_sub(kb, r.max, r.min)), gaps));
  struct element first = e_mul(kb, e_round_away(kb, e_div(kb, r.min, scale)), scale);
  first = e_select(kb, e_eq(kb, r.max, r.min), r.min, first);
  struct element base = e_sub(kb, first, e_mul(kb, float_num(kb, quantized_lowest(plain)), scale));
  return e_add(kb, base, e_mul(kb, e_cast(kb, DTYPE_FLOAT, q), scale));
}

struct element quantized_round(struct kb *kb, enum dtype plain, struct element x, struct quantized_range r) {
  struct element gaps = wide_num(kb, steps_of(plain) - 1), zero = float_num(kb, 0);
  struct element scale = e_cast(kb, DTYPE_FLOAT, e_div(kb, gaps, wide(kb, e_sub(kb, r.max, r.min))));
  scale = e_select(kb, e_eq(kb, r.max, r.min), zero, scale);
  struct element first = e_round_away(kb, e_mul(kb, r.min, scale));
  struct element lowest = float_num(kb, quantized_lowest(plain));
  struct element at = e_sub(kb, e_round_away(kb, e_mul(kb, x, scale)), e_sub(kb, first, lowest));
  double top = plain == DTYPE_INT32 ? 2147483520.0 : quantized_highest(plain); /* that float is still an int32 */
  at = e_min(kb, e_max(kb, at, lowest), float_num(kb, top));
  return e_cast(kb, plain, e_cast(kb, DTYPE_INT32, at));
}
