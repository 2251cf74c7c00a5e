/* ops_map_function.c: MapDefun calls a function for each row of its arguments and stacks the results. The rows are written out: a body is
 * made with a call for each of them. */
#include <string.h>

#include "ir/graph/function.h"
#include "ir/lower/lower_walk.h"

#define ROWS_MAX 256 /* each is a call of its own */

struct mapping {
  struct op_call *c;
  struct graph *graph;
  const struct attr_func *f;
  const struct attr_value *result_types, *result_shapes;
  uint32_t arg_count; /* sliced; the other inputs are handed to each call as they are */
  int64_t rows;
};

static status add(struct mapping *m, const char *op, const struct edge *inputs, uint32_t input_count, const struct attr *attrs,
                  uint32_t attr_count, struct edge *out) {
  struct node node = {.op = op, .inputs = inputs, .input_count = input_count, .attrs = attrs, .attr_count = attr_count};
  uint32_t at;
  TRY(function_add_node(m->graph, m->c->node->name, node, &at));
  *out = (struct edge){at, 0};
  return OK;
}

/* A constant of zeros, but for one element that it may have. */
static status add_constant(struct mapping *m, enum dtype dtype, int rank, const int64_t *dims, int32_t element, struct edge *out) {
  struct constant *k = ARENA_NEW(m->graph->arena, struct constant);
  *k = (struct constant){.dtype = dtype, .rank = rank, .count = 1};
  for (int i = 0; i < rank; i++)
    k->count *= k->dims[i] = dims[i];
  int32_t *data = arena_alloc_aligned(m->graph->arena, 64, 64);
  *data = element;
  k->data = data;
  const struct attr attrs[] = {attr_of_type("dtype", dtype), {.name = "value", .value = {.kind = ATTR_TENSOR, .tensor = k}}};
  return add(m, "Const", NULL, 0, attrs, 2, out);
}

/* The call for one row; its results in results[0..]. */
static status add_row(struct mapping *m, int64_t row, struct edge *results) {
  struct arena *arena = m->graph->arena;
  const struct function *function = function_find(op_graph(m->c), m->f->name);
  uint32_t count = m->c->in_count;
  struct edge *inputs = ARENA_ARRAY(arena, struct edge, count + 1), call, slice[3];
  TRY(add_constant(m, DTYPE_INT32, 0, NULL, (int32_t)row, &slice[1]));
  TRY(add_constant(m, DTYPE_INT32, 0, NULL, 0, &slice[2]));
  for (uint32_t i = 0; i < count; i++) {
    inputs[i] = slice[0] = (struct edge){i, 0};
    const struct attr attrs[] = {attr_of_type("Tparams", m->graph->nodes.items[i].output_dtypes[0]), attr_of_type("Tindices", DTYPE_INT32),
                                 attr_of_type("Taxis", DTYPE_INT32)};
    if (i < m->arg_count)
      TRY(add(m, "GatherV2", slice, 3, attrs, 3, &inputs[i]));
  }
  const struct attr attrs[] = {attr_of_types(arena, "Tin", m->c->node->input_dtypes, count),
                               {.name = "Tout", .value = *m->result_types},
                               {.name = "f", .value = {.kind = ATTR_FUNC, .func = m->f}}};
  TRY(add(m, function && function->is_stateful ? "StatefulPartitionedCall" : "PartitionedCall", inputs, count, attrs, 3, &call));
  for (uint32_t k = 0; k < m->c->out_count; k++) {
    struct edge from = {call.node, k};
    const struct attr shape[] = {attr_of_type("T", m->result_types->list.items[k].i),
                                 {.name = "shape", .value = m->result_shapes->list.items[k]}};
    TRY(add(m, "EnsureShape", &from, 1, shape, 2, &results[k]));
  }
  return OK;
}

/* Without a row there is nothing to ask: the attribute must say the shape. */
static status add_nothing(struct mapping *m, uint32_t k, struct edge *out) {
  const struct attr_shape *s = &m->result_shapes->list.items[k].shape;
  int64_t dims[LIMIT_RANK] = {0};
  bool known = !s->unknown_rank && s->rank < LIMIT_RANK;
  for (int i = 0; known && i < s->rank; i++)
    known = (dims[i + 1] = s->dims[i]) >= 0;
  if (!known)
    return fail(UNIMPLEMENTED, "no rows, and a result of unknown shape");
  return add_constant(m, (enum dtype)m->result_types->list.items[k].i, s->rank + 1, dims, 0, out);
}

static status make_body(struct mapping *m, struct edge *rets) {
  struct arena *arena = m->graph->arena;
  uint32_t out_count = m->c->out_count, at;
  for (uint32_t i = 0; i < m->c->in_count; i++)
    TRY(function_add_node(m->graph, m->c->node->name,
                          function_arg_node(arena_printf(arena, "%s/arg_%u", m->c->node->name, i), m->c->node->input_dtypes[i], i, arena),
                          &at));
  struct edge *rows = ARENA_ARRAY(arena, struct edge, (size_t)m->rows * out_count + 1);
  struct edge *column = ARENA_ARRAY(arena, struct edge, (size_t)m->rows + 1);
  for (int64_t r = 0; r < m->rows; r++)
    TRY(add_row(m, r, rows + r * out_count));
  for (uint32_t k = 0; k < out_count; k++) {
    for (int64_t r = 0; r < m->rows; r++)
      column[r] = rows[r * out_count + k];
    const struct attr attrs[] = {attr_of_type("T", m->result_types->list.items[k].i), attr_of_int("N", m->rows), attr_of_int("axis", 0)};
    TRY(m->rows ? add(m, "Pack", column, (uint32_t)m->rows, attrs, 3, &rets[k]) : add_nothing(m, k, &rets[k]));
  }
  return OK;
}

/* The number of rows, which all arguments have. */
static status count_rows(struct mapping *m) {
  struct op_call *c = m->c;
  dim rows = NO_DIM;
  for (uint32_t i = 0; i < m->arg_count; i++) {
    value_id v;
    TRY(op_input(c, i, &v));
    const struct flow_value *x = op_value(c, v);
    if (x->rank == 0)
      return fail(INVALID_ARGUMENT, "All inputs must have rank at least 1. Input %u has a rank of 0.", i);
    if (i > 0)
      TRY(op_equal_dims(c, x->dims[0], rows, "All inputs must have the same dimension 0"));
    rows = op_value(c, v)->dims[0];
  }
  m->rows = op_dim_value(c, rows);
  if (m->rows < 0)
    return fail(UNIMPLEMENTED, "a number of rows that is not known while compiling");
  return m->rows <= ROWS_MAX
         ? OK
         : fail(UNIMPLEMENTED, "%lld rows: each is a call, and at most %d are written out", (long long)m->rows, ROWS_MAX);
}

status build_map_function(struct op_call *c) {
  const struct attr_value *f = node_attr(c->node, "f"), *types = node_attr(c->node, "Targuments");
  struct mapping m = {.c = c, .result_types = node_attr(c->node, "output_types"), .result_shapes = node_attr(c->node, "output_shapes")};
  if (!f || !types || !m.result_types || !m.result_shapes)
    return fail(INVALID_ARGUMENT, "an attribute is missing");
  if (m.result_shapes->list.count != c->out_count)
    return fail(INVALID_ARGUMENT, "Length of output_shapes and output_types must match.");
  m.f = f->func;
  m.arg_count = types->list.count;
  TRY(count_rows(&m));
  m.graph = function_graph(op_graph(c), op_arena(c));
  struct edge *rets = ARENA_ARRAY(op_arena(c), struct edge, c->out_count + 1);
  struct instance body = {.graph = m.graph, .arg_count = c->in_count, .rets = rets, .ret_count = c->out_count};
  TRY(make_body(&m, rets));
  return lower_call_body(c, &body);
}
