/* ops_xla_reduce.c: XLA's reductions, whose rule is a function of the graph: over whole axes of one or several tensors
 * together, over windows, and SelectAndScatter, which gives each window's number to the element that a comparison
 * selects. */
#include "ir/ops/xla/xla.h"

/* ---- over axes ---- */

struct reduction {
  uint32_t count; /* tensors, reduced together */
  value_id in[XLA_OPERANDS], start[XLA_OPERANDS];
  struct flow_value x[XLA_OPERANDS];
  struct axis_list reduced, kept;
  struct xla_function function;
};

static status reduction_axes(struct op_call *c, struct reduction *r) {
  const struct attr_value *list = node_attr(c->node, "dimensions_to_reduce");
  r->reduced.count = 0;
  for (uint32_t i = 0; list && i < list->list.count; i++) {
    int64_t axis = list->list.items[i].i;
    if (axis < 0 || axis >= r->x[0].rank || axis_in(&r->reduced, (int)axis))
      return fail(INVALID_ARGUMENT, "dimensions_to_reduce names %lld, twice or of %d dimensions", (long long)axis, r->x[0].rank);
    r->reduced.items[r->reduced.count++] = axis;
  }
  xla_other_axes(r->x[0].rank, &r->reduced, NULL, &r->kept);
  return OK;
}

static status reduction_read(struct op_call *c, struct reduction *r) {
  enum dtype dtypes[2 * XLA_OPERANDS];
  r->count = c->in_count / 2;
  if (r->count > XLA_OPERANDS)
    return fail(UNIMPLEMENTED, "more than %d operands", XLA_OPERANDS);
  for (uint32_t i = 0; i < r->count; i++) {
    TRY(op_input(c, i, &r->in[i]));
    TRY(op_input(c, r->count + i, &r->start[i]));
    r->x[i] = *op_value(c, r->in[i]);
    dtypes[i] = dtypes[r->count + i] = r->x[i].dtype;
    if (op_value(c, r->start[i])->rank != 0 || r->x[i].rank != r->x[0].rank)
      return fail(INVALID_ARGUMENT, "initial values must be scalars, and inputs of one shape");
    for (int d = 0; d < r->x[0].rank; d++)
      TRY(op_equal_dims(c, r->x[i].dims[d], r->x[0].dims[d], "inputs of one shape"));
  }
  TRY(reduction_axes(c, r));
  return xla_function_read(c, "reducer", 2 * r->count, dtypes, r->count, dtypes, &r->function);
}

/* The accumulators become what the function makes of them and these elements; all are computed before one is set. */
static void combine(struct kb *kb, const struct xla_function *f, const struct accumulator *acc, const struct element *elements,
                    uint32_t count) {
  struct element args[2 * XLA_OPERANDS] = {0}, next[XLA_OPERANDS];
  struct accumulator held[XLA_OPERANDS];
  for (uint32_t i = 0; i < count; i++) {
    args[i] = acc_get(kb, &acc[i]);
    args[count + i] = elements[i];
  }
  xla_function_apply(kb, f, args, next);
  for (uint32_t i = 0; count > 1 && i < count; i++)
    held[i] = acc_begin(kb, next[i]);
  for (uint32_t i = 0; i < count; i++)
    acc_set(kb, &acc[i], count > 1 ? acc_get(kb, &held[i]) : next[i]);
}

status build_xla_reduce(struct op_call *c) {
  struct reduction r;
  TRY(reduction_read(c, &r));
  dim dims[LIMIT_RANK];
  for (int i = 0; i < r.kept.count; i++)
    dims[i] = r.x[0].dims[r.kept.items[i]];
  struct kb kb;
  kb_begin(&kb, c, r.x[0].dtype);
  uint32_t in[XLA_OPERANDS], start[XLA_OPERANDS], out[XLA_OPERANDS];
  for (uint32_t i = 0; i < r.count; i++) {
    in[i] = kb_in(&kb, r.in[i]);
    start[i] = kb_in(&kb, r.start[i]);
    out[i] = kb_out(&kb, r.x[i].dtype, r.kept.count, dims);
  }
  expr_id at[LIMIT_RANK], index[LIMIT_RANK];
  struct accumulator acc[XLA_OPERANDS];
  struct element elements[XLA_OPERANDS];
  kb_loops(&kb, LOOP_PAR, r.kept.count, dims, at);
  for (uint32_t i = 0; i < r.count; i++)
    acc[i] = acc_begin(&kb, kb_load(&kb, start[i], NULL));
  for (int i = 0; i < r.kept.count; i++)
    index[r.kept.items[i]] = at[i];
  for (int d = 0; d < r.x[0].rank; d++)
    if (axis_in(&r.reduced, d))
      index[d] = kb_for_dim(&kb, LOOP_SEQ, r.x[0].dims[d]);
  for (uint32_t i = 0; i < r.count; i++)
    elements[i] = kb_load(&kb, in[i], index);
  combine(&kb, &r.function, acc, elements, r.count);
  kb_close(&kb, r.reduced.count);
  for (uint32_t i = 0; i < r.count; i++) {
    kb_store(&kb, out[i], at, acc_get(&kb, &acc[i]));
    op_set_output(c, i, kb_value(&kb, out[i]));
  }
  kb_close(&kb, r.kept.count);
  return kb_finish(&kb);
}

/* ---- over windows ---- */

static status windows_begin(struct op_call *c, const struct flow_value *x, uint32_t first, struct xla_window *out) {
  int64_t sizes[LIMIT_RANK], strides[LIMIT_RANK];
  TRY(xla_numbers(c, first, "window_dimensions", x->rank, sizes));
  TRY(xla_numbers(c, first + 1, "window_strides", x->rank, strides));
  for (int d = 0; d < x->rank; d++) {
    if (sizes[d] < 1 || strides[d] < 1)
      return fail(INVALID_ARGUMENT, "window dimensions and strides must be at least 1");
    out[d] = (struct xla_window){.size = sizes[d], .stride = strides[d], .base = 1, .dilation = 1, .in = x->dims[d]};
  }
  return OK;
}

static status windows_padding(struct op_call *c, int rank, uint32_t input, struct xla_window *out) {
  int64_t padding[2 * LIMIT_RANK];
  TRY(xla_numbers(c, input, "padding", 2 * rank, padding));
  for (int d = 0; d < rank; d++) {
    out[d].low = padding[2 * d];
    out[d].high = padding[2 * d + 1];
  }
  return OK;
}

/* Loops over the elements of the window at `at`; *inside: whether there is one. */
static void window_loops(struct kb *kb, const struct xla_window *w, int rank, const expr_id *at, expr_id *index, expr_id *inside) {
  expr_id exists;
  *inside = expr_int(kb->k, DTYPE_BOOL, 1);
  for (int d = 0; d < rank; d++) {
    index[d] = xla_window_place(kb, &w[d], at[d], kb_for(kb, LOOP_SEQ, kb_int(kb, w[d].size)), &exists);
    *inside = kb_and(kb, *inside, exists);
  }
}

/* input, init_value, window_dimensions, window_strides, base_dilations, window_dilations, padding */
status build_xla_reduce_window(struct op_call *c) {
  value_id v, start;
  struct xla_window w[LIMIT_RANK];
  struct xla_function f;
  int64_t base[LIMIT_RANK], dilation[LIMIT_RANK];
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &start));
  struct flow_value x = *op_value(c, v);
  TRY(windows_begin(c, &x, 2, w));
  TRY(xla_numbers(c, 4, "base_dilations", x.rank, base));
  TRY(xla_numbers(c, 5, "window_dilations", x.rank, dilation));
  TRY(windows_padding(c, x.rank, 6, w));
  TRY(xla_function_read(c, "computation", 2, (const enum dtype[]){x.dtype, x.dtype}, 1, &x.dtype, &f));
  dim dims[LIMIT_RANK];
  for (int d = 0; d < x.rank; d++) {
    if (base[d] < 1 || dilation[d] < 1)
      return fail(INVALID_ARGUMENT, "dilations must be at least 1");
    w[d].base = base[d];
    w[d].dilation = dilation[d];
    dims[d] = xla_window_count(c, &w[d]);
  }
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), first = kb_in(&kb, start), out = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK], index[LIMIT_RANK], inside;
  kb_loops(&kb, LOOP_PAR, x.rank, dims, at);
  struct accumulator acc = acc_begin(&kb, kb_load(&kb, first, NULL));
  window_loops(&kb, w, x.rank, at, index, &inside);
  kb_if(&kb, inside);
  struct element e = kb_load(&kb, in, index);
  combine(&kb, &f, &acc, &e, 1);
  kb_close(&kb, 1 + x.rank);
  kb_store(&kb, out, at, acc_get(&kb, &acc));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}

/* The window's element that stays: the first, until `select` of it and another is false. Its place is left in `place`.
 */
static void select_element(struct kb *kb, const struct xla_function *select, uint32_t in, const struct xla_window *w, int rank,
                           const expr_id *at, uint32_t *place, uint32_t any) {
  expr_id index[LIMIT_RANK], inside;
  struct accumulator best = acc_zero(kb, kb->f.dtype);
  window_loops(kb, w, rank, at, index, &inside);
  kb_if(kb, inside);
  struct element e = kb_load(kb, in, index), args[2] = {acc_get(kb, &best), e}, stays;
  xla_function_apply(kb, select, args, &stays);
  kb_if(kb, expr_unary(kb->k, SCALAR_NOT, kb_and(kb, kb_get(kb, any), stays.re)));
  acc_set(kb, &best, e);
  kb_set(kb, any, expr_int(kb->k, DTYPE_BOOL, 1));
  for (int d = 0; d < rank; d++)
    kb_set(kb, place[d], index[d]);
  kb_close(kb, 2 + rank);
}

/* operand, window_dimensions, window_strides, padding, source, init_value */
status build_xla_select_and_scatter(struct op_call *c) {
  value_id v, source, start;
  struct xla_window w[LIMIT_RANK];
  struct xla_function select, scatter;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 4, &source));
  TRY(op_input(c, 5, &start));
  struct flow_value x = *op_value(c, v), s = *op_value(c, source);
  const enum dtype dtypes[] = {x.dtype, x.dtype};
  TRY(windows_begin(c, &x, 1, w));
  TRY(windows_padding(c, x.rank, 3, w));
  TRY(xla_function_read(c, "select", 2, dtypes, 1, &(const enum dtype){DTYPE_BOOL}, &select));
  TRY(xla_function_read(c, "scatter", 2, dtypes, 1, dtypes, &scatter));
  if (s.rank != x.rank)
    return fail(INVALID_ARGUMENT, "source must have the operand's rank: %s", op_shape_text(c, s.rank, s.dims));
  for (int d = 0; d < x.rank; d++)
    TRY(op_equal_dims(c, s.dims[d], xla_window_count(c, &w[d]), "source shape does not match the windows"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), from = kb_in(&kb, source), first = kb_in(&kb, start), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], to[LIMIT_RANK];
  kb_fill(&kb, out, x.rank, x.dims, kb_load(&kb, first, NULL));
  kb_loops(&kb, LOOP_SEQ, s.rank, s.dims, at);
  uint32_t place[LIMIT_RANK], any = kb_local(&kb, expr_int(kb.k, DTYPE_BOOL, 0));
  for (int d = 0; d < x.rank; d++)
    place[d] = kb_local(&kb, kb_int(&kb, 0));
  select_element(&kb, &select, in, w, x.rank, at, place, any);
  for (int d = 0; d < x.rank; d++)
    to[d] = kb_get(&kb, place[d]);
  kb_if(&kb, kb_get(&kb, any));
  struct element args[2] = {kb_load(&kb, out, to), kb_load(&kb, from, at)}, sum;
  xla_function_apply(&kb, &scatter, args, &sum);
  kb_store(&kb, out, to, sum);
  kb_close(&kb, 1 + x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}
