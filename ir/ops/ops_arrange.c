/* ops_arrange.c: what the builders of rearrangements, gathers and scatters share: arguments as expressions, guards. */
#include "ir/ops/arrange.h"

#include <assert.h>
#include <float.h>
#include <string.h>

/* ---- arguments ---- */

static dim known_element(struct op_call *c, value_id v, int i) {
  dim *elements;
  int count;
  if (op_known_elements(c, v, &elements, &count) != OK || i >= count)
    return NO_DIM;
  return elements[i];
}

expr_id kb_element(struct kb *kb, value_id v, int i) {
  dim known = known_element(kb->c, v, i);
  if (known != NO_DIM)
    return kb_dim(kb, known);
  struct flow_value x = *op_value(kb->c, v);
  expr_id index[LIMIT_RANK];
  for (int d = x.rank - 1; d >= 0; d--) {
    int64_t n = op_dim_value(kb->c, x.dims[d]);
    index[d] = kb_int(kb, n > 0 ? i % n : i);
    i = n > 0 ? (int)(i / n) : 0;
  }
  return kb_index(kb, kb_load(kb, kb_in(kb, v), index));
}

bool op_known_int(struct op_call *c, value_id v, int i, int64_t *out) {
  dim d = known_element(c, v, i);
  return d != NO_DIM && dim_is_const(op_dims(c), d, out);
}

status op_vector_length(struct op_call *c, value_id v, const char *what, int *out) {
  struct flow_value x = *op_value(c, v);
  int64_t n;
  if (x.rank != 1)
    return fail(INVALID_ARGUMENT, "%s must be 1-D, not shape %s", what, op_shape_text(c, x.rank, x.dims));
  TRY(op_const_size(c, x.dims[0], arena_printf(op_arena(c), "the length of %s", what), &n));
  *out = n > LIMIT_RANK ? LIMIT_RANK + 1 : (int)n;
  return OK;
}

status op_vector_of(struct op_call *c, value_id *v, int count, const char *what) {
  struct flow_value x = *op_value(c, *v);
  dim length = op_dim(c, count);
  if (x.rank != 1 || dim_equal(op_dims(c), x.dims[0], length) == 0)
    return fail(INVALID_ARGUMENT, "%s must be a vector of %d elements, not of shape %s", what, count, op_shape_text(c, x.rank, x.dims));
  TRY(op_equal_dims(c, x.dims[0], length, arena_printf(op_arena(c), "%s must have %d elements", what, count)));
  *v = op_alias(c, *v, x.dtype, 1, &length);
  return OK;
}

status op_bound_dims(struct op_call *c, value_id v, int count, dim *out) {
  dim *elements;
  int n;
  TRY(op_elements(c, v, &elements, &n));
  struct flow_node *bind = vec_last(&op_flow(c)->nodes);
  if (bind && bind->op == FLOW_BIND && c->effect)
    vec_push(&bind->controls, c->effect); /* only what the guards let pass becomes a size */
  if (n != count)
    return fail(INVALID_ARGUMENT, "%d sizes are needed, not %d", count, n);
  memcpy(out, elements, sizeof *out * (size_t)count);
  return OK;
}

status op_shape_dims(struct op_call *c, value_id v, const char *what, int *rank, dim *dims) {
  TRY(op_vector_length(c, v, what, rank));
  if (*rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "%s of rank above %d", what, LIMIT_RANK);
  struct kb guard;
  guard_begin(&guard, c);
  for (int d = 0; d < *rank; d++) {
    expr_id n = kb_element(&guard, v, d);
    kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), n), INVALID_ARGUMENT,
             arena_printf(op_arena(c), "Dimension %d of %s must be >= 0, got %%d", d, what), n, NO_EXPR);
  }
  TRY(guard_finish(&guard));
  return op_bound_dims(c, v, *rank, dims);
}

status op_sizes(struct op_call *c, value_id v, const char *what, int count, dim *dims) {
  int rank;
  TRY(op_vector_of(c, &v, count, what));
  return op_shape_dims(c, v, what, &rank, dims);
}

status op_bad_index(struct op_call *c, enum bad_index *out) {
  const char *policy = node_attr_string(c->node, "bad_indices_policy", "");
  *out = strcmp(policy, "IGNORE") == 0 ? BAD_INDEX_IS_DROPPED : BAD_INDEX_FAILS;
  if (*policy && strcmp(policy, "DEFAULT") != 0 && strcmp(policy, "ERROR") != 0 && *out == BAD_INDEX_FAILS)
    return fail(INVALID_ARGUMENT, "bad_indices_policy '%s'", policy);
  return OK;
}

status op_known_axis(struct op_call *c, value_id v, const char *what, int rank, int *out) {
  int64_t axis;
  TRY(op_const_axis(c, v, what, rank, &axis));
  if (axis < -rank || axis >= rank)
    return fail(INVALID_ARGUMENT, "%s must be in the range [%d, %d), but got %lld", what, -rank, rank, (long long)axis);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return OK;
}

dim op_add(struct op_call *c, dim a, dim b) { return dim_add(op_dims(c), a, b); }
dim op_mul(struct op_call *c, dim a, dim b) { return dim_mul(op_dims(c), a, b); }

/* ---- guards ---- */

void guard_begin(struct kb *guard, struct op_call *c) { kb_begin(guard, c, DTYPE_INT64); }

/* Checks that cannot be decided while compiling become a node that must run, in order with the call's other effects. */
status guard_finish(struct kb *guard) {
  struct op_call *c = guard->c;
  struct flow *flow = op_flow(c);
  uint32_t before = flow->nodes.count;
  bool empty = guard->k->body == NULL;
  if (empty) {
    vec_free(&guard->args);
    vec_free(&guard->sizes);
    return OK;
  }
  TRY(kb_finish(guard));
  if (flow->nodes.count == before)
    return OK;
  struct flow_node *n = flow->nodes.items[flow->nodes.count - 1];
  n->stateful = true;
  for (uint32_t i = 0; i < c->controls.count; i++)
    vec_push(&n->controls, c->controls.items[i]);
  if (c->effect)
    vec_push(&n->controls, c->effect);
  c->effect = flow->nodes.count - 1;
  return OK;
}

/* The node added last runs after all guards of this call. */
static void op_after_guard(struct op_call *c) {
  struct flow *flow = op_flow(c);
  struct flow_node *n = vec_last(&flow->nodes);
  if (c->effect && c->effect != flow->nodes.count - 1 && n && n->op == FLOW_KERNEL && !n->stateful)
    vec_push(&n->controls, c->effect);
}

status kb_finish_guarded(struct kb *kb) {
  TRY(kb_finish(kb));
  op_after_guard(kb->c);
  return OK;
}

status op_require_le(struct op_call *c, dim a, dim b, const char *text) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id x = kb_dim(&guard, a), y = kb_dim(&guard, b);
  kb_check(&guard, kb_le(&guard, x, y), INVALID_ARGUMENT, text, x, y);
  return guard_finish(&guard);
}

/* ---- expressions ---- */

expr_id kb_eq(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_EQ, a, b); }
expr_id kb_ne(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_NE, a, b); }
expr_id kb_le(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_LE, a, b); }
expr_id kb_or(struct kb *kb, expr_id a, expr_id b) { return expr_binary(kb->k, SCALAR_OR, a, b); }
expr_id kb_or_empty(struct kb *kb, expr_id holds, int rank, const dim *dims) {
  for (int d = 0; d < rank; d++)
    if (dim_less(op_dims(kb->c), op_dim(kb->c, 0), dims[d]) != 1)
      holds = kb_or(kb, holds, kb_eq(kb, kb_dim(kb, dims[d]), kb_int(kb, 0)));
  return holds;
}
expr_id kb_select(struct kb *kb, expr_id condition, expr_id a, expr_id b) { return expr_select(kb->k, condition, a, b); }
expr_id kb_in_range(struct kb *kb, expr_id a, expr_id count) { return kb_and(kb, kb_le(kb, kb_int(kb, 0), a), kb_lt(kb, a, count)); }

struct element kb_zero(struct kb *kb, enum dtype dtype) {
  if (dtype == DTYPE_VARIANT) /* none */
    return real_element(kb_int(kb, -1));
  return dtype == DTYPE_STRING ? real_element(expr_bits(kb->k, DTYPE_STRING, 0)) : f_const_as(&kb->f, dtype, 0);
}

struct element kb_limit(struct kb *kb, enum dtype dtype, bool highest) {
  double top = dtype == DTYPE_DOUBLE ? DBL_MAX : dtype == DTYPE_HALF ? 65504.0 : dtype == DTYPE_BFLOAT16 ? 0x1.fep127 : (double)FLT_MAX;
  if (dtype_is_float(dtype))
    return real_element(expr_float(kb->k, dtype, highest ? top : -top));
  struct formula f = {.kernel = kb->k, .dtype = dtype};
  return highest ? f_highest(&f) : f_lowest(&f);
}

void kb_fill(struct kb *kb, uint32_t buffer, int rank, const dim *dims, struct element value) {
  expr_id index[LIMIT_RANK];
  kb_loops(kb, LOOP_PAR, rank, dims, index);
  kb_store(kb, buffer, index, value);
  kb_close(kb, rank);
}

status op_zeros(struct op_call *c, int rank, const dim *dims) {
  enum dtype dtype = op_output_dtype(c, 0);
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t out = kb_out(&kb, dtype, rank, dims);
  kb_fill(&kb, out, rank, dims, kb_zero(&kb, dtype));
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* Sums of bools are theirs in C: true when one is. A complex accumulator is loaded before either part is stored. */
struct element kb_combine(struct kb *kb, enum combine how, struct element acc, struct element x) {
  static const enum scalar_op ops[] = {[COMBINE_ADD] = SCALAR_ADD, [COMBINE_SUB] = SCALAR_SUB, [COMBINE_MUL] = SCALAR_MUL,
                                       [COMBINE_DIV] = SCALAR_DIV, [COMBINE_MIN] = SCALAR_MIN, [COMBINE_MAX] = SCALAR_MAX};
  if (how == COMBINE_SET)
    return x;
  assert(how < sizeof ops / sizeof ops[0]);
  bool is_bool = expr_get(kb->k, x.re)->dtype == DTYPE_BOOL;
  if (acc.im)
    acc = (struct element){kb_get(kb, kb_local(kb, acc.re)), kb_get(kb, kb_local(kb, acc.im))};
  return f_binary(&kb->f, is_bool ? ops[how] == SCALAR_MUL ? SCALAR_AND : SCALAR_OR : ops[how], acc, x);
}

struct element kb_combine_last(struct kb *kb, enum combine how, struct element acc, struct element x) {
  if (how == COMBINE_MAX)
    return f_select(&kb->f, real_element(kb_lt(kb, x.re, acc.re)), acc, x);
  if (how == COMBINE_MIN)
    return f_select(&kb->f, real_element(kb_lt(kb, acc.re, x.re)), acc, x);
  return kb_combine(kb, how, acc, x);
}

/* ---- variables ---- */

status op_updated_dims(struct op_call *c, uint32_t input, uint32_t number, int *rank, dim *dims) {
  const struct flow_var *var = op_var(c, number);
  bool fixed = var->has_shape && var->rank >= 0;
  for (int i = 0; i < var->rank && fixed; i++)
    fixed = var->dims[i] >= 0;
  if (fixed) {
    *rank = var->rank;
    for (int i = 0; i < var->rank; i++)
      dims[i] = op_dim(c, var->dims[i]);
    return OK;
  }
  value_id v;
  op_after_inputs(c);
  TRY(op_input(c, input, &v));
  struct flow_value x = *op_value(c, v);
  *rank = x.rank;
  memcpy(dims, x.dims, sizeof x.dims);
  return OK;
}

void op_set_ref_output(struct op_call *c, uint32_t var) {
  if (c->out_count)
    c->out[0] = (struct bound){.var = var + 1, .after = c->effect};
}
