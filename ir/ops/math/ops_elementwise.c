/* ops_elementwise.c: element-wise ops: the MAP rows, and those with attributes or any number of inputs. */
#include <math.h>
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/ops/arrange.h"
#include "ir/lower/host_call.h"
#include "ir/kernel/formula_words.h"

struct element f_nonzero_integer(struct formula *f, struct element x) {
  if (x.im || dtype_is_float(element_dtype(f, x)))
    return real_element(expr_int(f->kernel, DTYPE_BOOL, 1));
  return NE(x, f_const_like(f, x, 0));
}
struct element f_nonnegative_integer(struct formula *f, struct element x) {
  if (x.im || !dtype_is_signed(element_dtype(f, x)))
    return real_element(expr_int(f->kernel, DTYPE_BOOL, 1));
  return LE(f_const_like(f, x, 0), x);
}

struct element f_truncate(struct formula *f, struct element x) {
  return dtype_is_float(element_dtype(f, x)) ? f_unary(f, SCALAR_TRUNC, x) : x;
}

/* Whether nothing is computed: another input is empty. */
static expr_id is_empty(struct kb *kb, const struct flow_value *other, const struct flow_value *x) {
  expr_id empty = expr_int(kb->k, DTYPE_BOOL, 0);
  for (int d = 0; d < other->rank; d++) {
    int own = d + x->rank - other->rank;
    if (own < 0 || dim_equal(op_dims(kb->c), x->dims[own], other->dims[d]) != 1)
      empty = kb_or(kb, empty, kb_eq(kb, kb_dim(kb, other->dims[d]), kb_int(kb, 0)));
  }
  return empty;
}

/* A separate kernel with the check alone, so that the value's own kernel stays fusable: of the last input's elements, where they are
 * used. */
static status check_elements(struct op_call *c, const struct map_row *row, const value_id *in) {
  struct flow_value x = *op_value(c, in[row->inputs - 1]);
  if (!dtype_is_integer(x.dtype))
    return OK;
  struct kb kb;
  guard_begin(&kb, c);
  kb.f.dtype = x.dtype;
  uint32_t b = kb_in(&kb, in[row->inputs - 1]);
  expr_id index[LIMIT_RANK], unused = is_empty(&kb, op_value(c, in[0]), &x);
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct element e = kb_load(&kb, b, index);
  kb_check(&kb, kb_or(&kb, unused, row->holds(&kb.f, e, e, e).re), row->code, row->text, NO_EXPR, NO_EXPR);
  kb_close(&kb, x.rank);
  return guard_finish(&kb);
}

status build_map(struct op_call *c) {
  const struct map_row *row = c->row->data;
  value_id in[3], out;
  for (int i = 0; i < row->inputs; i++)
    TRY(op_input(c, (uint32_t)i, &in[i]));
  for (int i = 1; i < row->inputs && row->alike; i++)
    TRY(op_same_shape(c, in[0], in[i], "Inputs must have the same size and shape"));
  if (row->holds)
    TRY(check_elements(c, row, in));
  TRY(op_map(c, in, row->inputs, op_output_dtype(c, 0), row->formula, &out));
  op_set_output(c, 0, out);
  return OK;
}

/* ---- sums of any number of inputs ---- */

static struct element formula_add(struct formula *f, struct element a, struct element b, struct element c) {
  (void)c;
  return ADD(a, b);
}

static status concat_strings(struct op_call *c, value_id a, value_id b, value_id *out) {
  struct flow_value x = *op_value(c, a);
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_broadcast(c, a, b, &rank, dims));
  struct flow_node *n = op_emit(c, FLOW_HOST, false);
  n->host = "string_add";
  vec_push(&n->inputs, a);
  vec_push(&n->inputs, b);
  *out = op_add_output(c, n, x.dtype, rank, dims);
  return OK;
}

status build_add(struct op_call *c) {
  value_id in[2], out;
  TRY(op_input(c, 0, &in[0]));
  TRY(op_input(c, 1, &in[1]));
  if (op_value(c, in[0])->dtype == DTYPE_STRING)
    TRY(concat_strings(c, in[0], in[1], &out));
  else
    TRY(op_map(c, in, 2, op_value(c, in[0])->dtype, formula_add, &out));
  op_set_output(c, 0, out);
  return OK;
}

/* Zeros of and sums of tensor lists, and of variants that hold objects: gradients of lists are lists. */
static status list_arithmetic(struct op_call *c, const char *host) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, host, &n));
  struct flow_value x = *op_value(c, n->inputs.items[0]);
  op_host_output(c, n, 0, x.rank, x.dims);
  c->out[0].maker = c->in[0].maker;
  op_value(c, c->out[0].value)->length = x.length;
  return OK;
}

status build_add_n(struct op_call *c) {
  value_id first, v;
  TRY(op_input(c, 0, &first));
  if (c->in_count == 1) {
    op_set_output(c, 0, first);
    return OK;
  }
  struct flow_value x = *op_value(c, first);
  if (x.dtype == DTYPE_VARIANT)
    return list_arithmetic(c, "TensorListAdd");
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t *buffers = ARENA_ARRAY(op_arena(c), uint32_t, c->in_count);
  for (uint32_t i = 0; i < c->in_count; i++) {
    TRY(op_input(c, i, &v));
    struct flow_value y = *op_value(c, v);
    if (y.rank != x.rank)
      return fail(INVALID_ARGUMENT, "Inputs to operation %s of type %s must have the same size and shape.  Input 0: %s != input %u: %s",
                  c->node->name, c->node->op, op_shape_text(c, x.rank, x.dims), i, op_shape_text(c, y.rank, y.dims));
    for (int d = 0; d < x.rank; d++)
      TRY(op_equal_dims(c, x.dims[d], y.dims[d], "shapes"));
    buffers[i] = kb_in(&kb, v);
  }
  uint32_t o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct formula *f = &kb.f;
  struct element sum = kb_load(&kb, buffers[0], index);
  for (uint32_t i = 1; i < c->in_count; i++)
    sum = ADD(sum, kb_load(&kb, buffers[i], index));
  kb_store(&kb, o, index, sum);
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- comparisons ---- */

static struct element formula_equal(struct formula *f, struct element a, struct element b, struct element c) {
  (void)c;
  return EQ(a, b);
}
static struct element formula_not_equal(struct formula *f, struct element a, struct element b, struct element c) {
  (void)c;
  return NE(a, b);
}

/* Whether it depends on sizes that are not known if two shapes broadcast. */
static bool may_misfit(struct op_call *c, value_id a, value_id b) {
  struct flow_value x = *op_value(c, a), y = *op_value(c, b);
  for (int i = 1; i <= x.rank && i <= y.rank; i++) {
    dim p = x.dims[x.rank - i], q = y.dims[y.rank - i];
    if (op_dim_value(c, p) != 1 && op_dim_value(c, q) != 1 && dim_equal(op_dims(c), p, q) < 0)
      return true;
  }
  return false;
}

/* Shapes that do not fit: false (true for NotEqual) where incompatible_shape_error is off. */
status build_equal(struct op_call *c) {
  value_id in[2], out;
  TRY(op_input(c, 0, &in[0]));
  TRY(op_input(c, 1, &in[1]));
  bool equal = !OP_ROW(c, equal_row)->negated;
  bool lenient = !node_attr_int(c->node, "incompatible_shape_error", 1);
  bool open = lenient && may_misfit(c, in[0], in[1]);
  status s = open && op_takes_misfits(c) ? INVALID_ARGUMENT : op_map(c, in, 2, DTYPE_BOOL, equal ? formula_equal : formula_not_equal, &out);
  if (s == INVALID_ARGUMENT && lenient) {
    int64_t value = !equal;
    out = op_constant_i64s(c, DTYPE_BOOL, 0, NULL, &value, 1);
    s = OK;
  }
  op_set_output(c, 0, out);
  return s;
}

status build_approximate_equal(struct op_call *c) {
  value_id a, b;
  TRY(op_input(c, 0, &a));
  TRY(op_input(c, 1, &b));
  struct flow_value x = *op_value(c, a);
  TRY(op_same_shape(c, a, b, "x and y must be of the same shape"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t ba = kb_in(&kb, a), bb = kb_in(&kb, b), o = kb_out(&kb, DTYPE_BOOL, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct formula *f = &kb.f;
  struct element d = ABS(SUB(kb_load(&kb, ba, index), kb_load(&kb, bb, index)));
  struct element tolerance = f_const_like(f, d, node_attr_float(c->node, "tolerance", 1e-5));
  kb_store(&kb, o, index, f_binary(f, SCALAR_LE, d, tolerance));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* Select: like SelectV2 without broadcasting, but a condition of rank 1 picks rows. */
status build_select(struct op_call *c) {
  value_id in[3], out;
  for (uint32_t i = 0; i < 3; i++)
    TRY(op_input(c, i, &in[i]));
  struct flow_value cond = *op_value(c, in[0]), x = *op_value(c, in[1]);
  TRY(op_same_shape(c, in[1], in[2], "'then' and 'else' must have the same size"));
  if (cond.rank == 1 && x.rank > 1) {
    dim dims[LIMIT_RANK];
    TRY(op_equal_dims(c, cond.dims[0], x.dims[0], "the condition and the rows"));
    for (int i = 0; i < x.rank; i++)
      dims[i] = i ? op_dim(c, 1) : cond.dims[0];
    in[0] = op_alias(c, in[0], DTYPE_BOOL, x.rank, dims);
  } else if (cond.rank != 0 && cond.rank != x.rank) {
    return fail(INVALID_ARGUMENT, "'cond' must be a scalar, a vector or of the shape of 'then', but is %s",
                op_shape_text(c, cond.rank, cond.dims));
  }
  TRY(op_map(c, in, 3, x.dtype, ((const struct map_row *)op_row_find("SelectV2")->data)->formula, &out));
  op_set_output(c, 0, out);
  return OK;
}

/* ---- with attributes ---- */

static status map_with_alpha(struct op_call *c, int inputs, double otherwise) {
  value_id in[2] = {0, 0};
  for (int i = 0; i < inputs; i++)
    TRY(op_input(c, (uint32_t)i, &in[i]));
  struct flow_value x = *op_value(c, in[0]);
  if (inputs == 2)
    TRY(op_same_shape(c, in[0], in[1], "gradients and features must have the same size"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, in[0]), b = inputs == 2 ? kb_in(&kb, in[1]) : a, o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct formula *f = &kb.f;
  struct element g = kb_load(&kb, a, index), features = kb_load(&kb, b, index);
  struct element alpha = K(node_attr_float(c->node, "alpha", otherwise));
  kb_store(&kb, o, index, SELECT(GT(features, K(0)), g, MUL(alpha, g)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}
status build_leaky_relu(struct op_call *c) { return map_with_alpha(c, 1, 0.2); }
status build_leaky_relu_grad(struct op_call *c) { return map_with_alpha(c, 2, 0.2); }

status build_zeros_like(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.dtype == DTYPE_VARIANT)
    return list_arithmetic(c, "TensorListZerosLike");
  if (x.dtype == DTYPE_RESOURCE)
    return fail(UNIMPLEMENTED, "zeros like a %s", dtype_name(x.dtype));
  return op_zeros(c, x.rank, x.dims);
}

/* The channel dimension of a data_format: the last, or 1 for NC... */
static int channel_axis(struct op_call *c, int rank) {
  const char *format = node_attr_string(c->node, "data_format", "NHWC");
  return strncmp(format, "NC", 2) == 0 ? 1 : rank - 1;
}

status build_bias_add(struct op_call *c) {
  value_id value, bias;
  TRY(op_input(c, 0, &value));
  TRY(op_input(c, 1, &bias));
  struct flow_value x = *op_value(c, value), y = *op_value(c, bias);
  if (x.rank < 2 || y.rank != 1)
    return fail(INVALID_ARGUMENT, "Input tensor must be at least 2D: %s, biases must be 1D: %s", op_shape_text(c, x.rank, x.dims),
                op_shape_text(c, y.rank, y.dims));
  int axis = channel_axis(c, x.rank);
  TRY(op_equal_dims(c, x.dims[axis], y.dims[0], "Must provide as many biases as the last dimension of the input tensor"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, value), b = kb_in(&kb, bias), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct formula *f = &kb.f;
  kb_store(&kb, o, index, ADD(kb_load(&kb, a, index), kb_load(&kb, b, &index[axis])));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

status build_bias_add_grad(struct op_call *c) {
  value_id v, out;
  TRY(op_input(c, 0, &v));
  int rank = op_value(c, v)->rank;
  if (rank < 2)
    return fail(INVALID_ARGUMENT, "Input tensor must be at least 2D: %s", op_shape_text(c, rank, op_value(c, v)->dims));
  bool reduced[LIMIT_RANK];
  for (int i = 0; i < rank; i++)
    reduced[i] = i != channel_axis(c, rank);
  TRY(op_reduce(c, v, reduced, false, op_row_find("Sum")->data, &out));
  op_set_output(c, 0, out);
  return OK;
}

/* ---- checks ---- */

status build_check_numerics(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  const char *message = node_attr_string(c->node, "message", "");
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct formula *f = &kb.f;
  struct element e = kb_load(&kb, a, index);
  kb_check(&kb, EQ(e, e).re, INVALID_ARGUMENT, arena_printf(op_arena(c), "%s : Tensor had NaN values", message), NO_EXPR, NO_EXPR);
  kb_check(&kb, LT(ABS(e), K(INFINITY)).re, INVALID_ARGUMENT, arena_printf(op_arena(c), "%s : Tensor had Inf values", message), NO_EXPR,
           NO_EXPR);
  kb_store(&kb, o, index, e);
  kb_close(&kb, x.rank);
  kb.effect = !x.data;
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* `Truncate`: bits at the end of a number that TensorFlow clears before it rounds to a narrower one. */
static int truncated_bits(enum dtype from, enum dtype to) {
  static const struct {
    enum dtype from, to;
    int bits;
  } table[] = {{DTYPE_DOUBLE, DTYPE_FLOAT, 29},      {DTYPE_DOUBLE, DTYPE_HALF, 42},          {DTYPE_DOUBLE, DTYPE_COMPLEX64, 53},
               {DTYPE_FLOAT, DTYPE_BFLOAT16, 16},    {DTYPE_FLOAT, DTYPE_HALF, 13},           {DTYPE_COMPLEX128, DTYPE_FLOAT, 29},
               {DTYPE_COMPLEX128, DTYPE_HALF, 42},   {DTYPE_COMPLEX128, DTYPE_COMPLEX64, 29}, {DTYPE_COMPLEX64, DTYPE_HALF, 13},
               {DTYPE_COMPLEX64, DTYPE_BFLOAT16, 16}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].from == from && table[i].to == to)
      return table[i].bits;
  return 0;
}
static expr_id without_bits(struct kb *kb, expr_id e, int bits) {
  enum dtype dtype = (enum dtype)expr_get(kb->k, e)->dtype, whole = dtype == DTYPE_DOUBLE ? DTYPE_INT64 : DTYPE_INT32;
  expr_id kept = expr_int(kb->k, whole, -(INT64_C(1) << bits));
  expr_id cleared = expr_bitcast(kb->k, dtype, expr_binary(kb->k, SCALAR_AND, expr_bitcast(kb->k, whole, e), kept));
  return expr_select(kb->k, expr_binary(kb->k, SCALAR_EQ, e, e), cleared, e);
}
static status cast_truncated(struct op_call *c, value_id v, enum dtype to, int bits, value_id *out) {
  struct flow_value x = *op_value(c, v);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, to, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct element e = kb_load(&kb, a, index);
  e.re = without_bits(&kb, e.re, bits);
  e.im = e.im == NO_EXPR ? NO_EXPR : without_bits(&kb, e.im, bits);
  kb_store(&kb, o, index, f_cast(&kb.f, to, e));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

status build_cast(struct op_call *c) {
  value_id v, out;
  TRY(op_input(c, 0, &v));
  enum dtype from = op_value(c, v)->dtype, to = op_output_dtype(c, 0);
  if (from != to && (from == DTYPE_STRING || to == DTYPE_STRING))
    return fail(UNIMPLEMENTED, "Cast %s to %s is not supported", dtype_name(from), dtype_name(to));
  int bits = node_attr_int(c->node, "Truncate", 0) ? truncated_bits(from, to) : 0;
  TRY(bits ? cast_truncated(c, v, to, bits, &out) : op_cast(c, v, to, &out));
  op_set_output(c, 0, out);
  return OK;
}
