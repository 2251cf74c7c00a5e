/* ops_xla_sort.c: XLA's sorts, of one tensor or of several by a comparison that is a function of the graph: the places along the axis are
 * sorted, and the tensors read once more in that order. */
#include "ir/ops/place_sort.h"
#include "ir/ops/xla/xla.h"

struct sorted_tensors {
  uint32_t count;
  uint32_t in[XLA_OPERANDS];
  const struct xla_function *less; /* NULL: the first tensor's elements, ascending */
};

/* Floats in the order of their bits: -NaN, -inf ... -0, 0 ... inf, NaN. */
static struct element ordered(struct kb *kb, struct element e) {
  enum dtype dtype = element_dtype(&kb->f, e);
  if (!dtype_is_float(dtype))
    return e;
  enum dtype bits = dtype_size(dtype) == 8 ? DTYPE_INT64 : dtype_size(dtype) == 4 ? DTYPE_INT32 : DTYPE_INT16;
  expr_id i = expr_bitcast(kb->k, bits, e.re), sign = expr_int(kb->k, bits, (int64_t)dtype_size(dtype) * 8 - 1);
  expr_id low = expr_int(kb->k, bits, bits == DTYPE_INT64 ? INT64_MAX : bits == DTYPE_INT32 ? INT32_MAX : INT16_MAX);
  expr_id flip = expr_binary(kb->k, SCALAR_AND, expr_binary(kb->k, SCALAR_SHR, i, sign), low);
  return real_element(expr_binary(kb->k, SCALAR_XOR, i, flip));
}

/* Whether the elements at place a come before those at b. */
static expr_id comes_before(struct place_sort *s, expr_id a, expr_id b) {
  const struct sorted_tensors *t = s->data;
  struct element args[2 * XLA_OPERANDS], less;
  for (uint32_t i = 0; i < t->count; i++) {
    s->at[s->axis] = a;
    args[2 * i] = kb_load(s->kb, t->in[i], s->at);
    s->at[s->axis] = b;
    args[2 * i + 1] = kb_load(s->kb, t->in[i], s->at);
  }
  if (!t->less)
    return f_binary(&s->kb->f, SCALAR_LT, ordered(s->kb, args[0]), ordered(s->kb, args[1])).re;
  xla_function_apply(s->kb, t->less, args, &less);
  return less.re;
}

static status sort_kernel(struct op_call *c, const value_id *in, uint32_t count, int axis, const struct xla_function *less) {
  struct flow_value x = *op_value(c, in[0]);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  struct sorted_tensors t = {.count = count, .less = less};
  struct place_sort s = {.kb = &kb, .axis = axis, .comes_before = comes_before, .data = &t};
  uint32_t out[XLA_OPERANDS];
  for (uint32_t i = 0; i < count; i++) {
    t.in[i] = kb_in(&kb, in[i]);
    out[i] = kb_out(&kb, op_value(c, in[i])->dtype, x.rank, x.dims);
  }
  s.order = kb_out(&kb, DTYPE_INT64, x.rank, x.dims);
  s.merged = kb_out(&kb, DTYPE_INT64, x.rank, x.dims);
  for (int d = 0; d < x.rank; d++)
    if (d != axis)
      s.at[d] = kb_for_dim(&kb, LOOP_PAR, x.dims[d]);
  place_sort(&s, x.dims[axis]);
  expr_id k = kb_for_dim(&kb, LOOP_SEQ, x.dims[axis]), to[LIMIT_RANK];
  expr_id place = kb_get(&kb, kb_local(&kb, place_sort_get(&s, k)));
  memcpy(to, s.at, sizeof to);
  s.at[axis] = place;
  for (uint32_t i = 0; i < count; i++) {
    kb_store(&kb, out[i], to, kb_load(&kb, t.in[i], s.at));
    op_set_output(c, i, kb_value(&kb, out[i]));
  }
  kb_close(&kb, x.rank);
  return kb_finish(&kb);
}

static status check_sorted(struct op_call *c, const value_id *in, uint32_t count, int64_t given, int *axis) {
  struct flow_value x = *op_value(c, in[0]);
  if (count > XLA_OPERANDS)
    return fail(UNIMPLEMENTED, "more than %d operands", XLA_OPERANDS);
  if (x.rank == 0)
    return fail(INVALID_ARGUMENT, "a scalar cannot be sorted");
  TRY(op_axis(c, given, x.rank, axis));
  for (uint32_t i = 1; i < count; i++) {
    struct flow_value y = *op_value(c, in[i]);
    if (y.rank != x.rank)
      return fail(INVALID_ARGUMENT, "what is sorted together must have one shape: %s, %s", op_shape_text(c, x.rank, x.dims),
                  op_shape_text(c, y.rank, y.dims));
    for (int d = 0; d < x.rank; d++)
      TRY(op_equal_dims(c, x.dims[d], y.dims[d], "what is sorted together must have one shape"));
  }
  return OK;
}

/* input; keys, values: along the last axis */
status build_xla_sort(struct op_call *c) {
  value_id in[2];
  int axis;
  for (uint32_t i = 0; i < c->in_count; i++)
    TRY(op_input(c, i, &in[i]));
  if (dtype_is_complex(op_value(c, in[0])->dtype))
    return fail(INVALID_ARGUMENT, "complex numbers have no order");
  TRY(check_sorted(c, in, c->in_count, -1, &axis));
  return sort_kernel(c, in, c->in_count, axis, NULL);
}

/* inputs ..., dimension; the comparator takes two elements of each */
status build_xla_variadic_sort(struct op_call *c) {
  uint32_t count = c->in_count - 1;
  value_id in[XLA_OPERANDS];
  enum dtype dtypes[2 * XLA_OPERANDS];
  int64_t given;
  int axis;
  struct xla_function less;
  for (uint32_t i = 0; i < count && i < XLA_OPERANDS; i++) {
    TRY(op_input(c, i, &in[i]));
    dtypes[2 * i] = dtypes[2 * i + 1] = op_value(c, in[i])->dtype;
  }
  TRY(xla_numbers(c, count, "dimension", 1, &given));
  TRY(check_sorted(c, in, count, given, &axis));
  TRY(xla_function_read(c, "comparator", 2 * count, dtypes, 1, &(const enum dtype){DTYPE_BOOL}, &less));
  return sort_kernel(c, in, count, axis, &less);
}
