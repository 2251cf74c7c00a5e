/* ops_parse.c: shapes of what is parsed from bytes: from the attributes, and as long as the data where they leave it open. */
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/lower/host_call.h"

/* What SerializeTensor made has the shape that went in; else what the graph says. */
static bool parsed_shape(struct op_call *c, value_id in, int *rank, dim *dims) {
  const struct flow_node *from = op_flow(c)->nodes.items[op_value(c, in)->producer];
  if (from && from->op == FLOW_HOST && strcmp(from->host, "SerializeTensor") == 0) {
    const struct flow_value *x = op_value(c, from->inputs.items[0]);
    *rank = x->rank;
    memcpy(dims, x->dims, sizeof x->dims);
    return true;
  }
  const struct attr_shape *shape = node_output_shape(c->node, 0);
  if (!shape || shape->rank > LIMIT_RANK)
    return false;
  *rank = shape->rank;
  for (int d = 0; d < shape->rank; d++)
    dims[d] = shape->dims[d] < 0 ? op_new_symbol(c) : op_dim(c, shape->dims[d]);
  return true;
}

status build_parse_tensor(struct op_call *c) {
  struct flow_node *n;
  int rank = 0;
  dim dims[LIMIT_RANK];
  TRY(op_host(c, HOST_PURE, NULL, &n));
  bool known = parsed_shape(c, n->inputs.items[0], &rank, dims);
  op_host_output(c, n, 0, rank, dims);
  return known ? OK : op_any_rank(c, c->out[0].value, ANY_RANK, &c->out[0]);
}

/* What a client has kept in the session has whatever shape, unless the graph says it. */
status build_session_tensor(struct op_call *c) {
  struct flow_node *n;
  const struct attr_shape *shape = node_output_shape(c->node, 0);
  TRY(op_host(c, HOST_LOOKS, NULL, &n));
  if (shape)
    return op_host_output_shaped(c, n, 0, shape);
  op_host_output(c, n, 0, 0, NULL);
  return op_any_rank(c, c->out[0].value, ANY_RANK, &c->out[0]);
}

static uint32_t list_length(const struct op_call *c, const char *attr) {
  const struct attr_value *list = node_attr(c->node, attr);
  return list && list->kind == ATTR_LIST ? list->list.count : 0;
}

/* How many features there are of a kind is said twice: by a number and by the list of their dtypes. */
static status numbers_agree(const struct op_call *c) {
  static const struct {
    const char *number, *list;
  } pairs[] = {
    {"Nsparse", "sparse_types"},
    {"num_sparse", "sparse_types"},
    {"Ndense", "Tdense"},
    {"Ncontext_sparse", "context_sparse_types"},
    {"Ncontext_dense", "Tcontext_dense"},
    {"Nfeature_list_sparse", "feature_list_sparse_types"},
    {"Nfeature_list_dense", "feature_list_dense_types"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    int64_t number = node_attr_int(c->node, pairs[i].number, -1);
    if (number >= 0 && node_attr(c->node, pairs[i].list) && number != list_length(c, pairs[i].list))
      return fail(INVALID_ARGUMENT, "%s (%lld) must match the size of %s (%u)", pairs[i].number, (long long)number, pairs[i].list,
                  list_length(c, pairs[i].list));
  }
  return OK;
}

/* `is_list`: of each row, of which there are as many as the longest example has. */
static status dense_outputs(struct op_call *c, struct flow_node *n, uint32_t first, uint32_t count, const struct flow_value *in,
                            const char *attr, bool is_list) {
  const struct attr_value *shapes = node_attr(c->node, attr);
  for (uint32_t i = 0; i < count; i++) {
    dim dims[LIMIT_RANK];
    int rank = 0;
    if (!shapes || i >= shapes->list.count || shapes->list.items[i].shape.unknown_rank ||
        shapes->list.items[i].shape.rank + in->rank + is_list > LIMIT_RANK)
      return fail(UNIMPLEMENTED, "dense feature %u has no shape of known rank", i);
    if (in->rank)
      dims[rank++] = in->dims[0];
    if (is_list)
      dims[rank++] = op_new_symbol(c);
    const struct attr_shape *shape = &shapes->list.items[i].shape;
    for (int d = 0; d < shape->rank; d++)
      dims[rank++] = shape->dims[d] < 0 ? op_new_symbol(c) : op_dim(c, shape->dims[d]);
    op_host_output(c, n, first + i, rank, dims);
  }
  return OK;
}

/* Indices, values, shapes: of `inner` dimensions in each example. */
static void sparse_outputs(struct op_call *c, struct flow_node *n, uint32_t first, uint32_t count, int64_t inner,
                           const struct flow_value *in) {
  dim rank = op_dim(c, in->rank + inner);
  dim *total = ARENA_ARRAY(op_arena(c), dim, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    total[i] = op_new_symbol(c);
    op_host_output(c, n, first + i, 2, (dim[]){total[i], rank});
  }
  for (uint32_t i = 0; i < count; i++)
    op_host_output(c, n, first + count + i, 1, &total[i]);
  for (uint32_t i = 0; i < count; i++)
    op_host_output(c, n, first + 2 * count + i, 1, &rank);
}

/* Sparse triples, dense values, then ragged values and splits. */
status build_parse_example(struct op_call *c) {
  struct flow_node *n;
  TRY(numbers_agree(c));
  TRY(op_host(c, HOST_PURE, NULL, &n));
  struct flow_value in = *op_value(c, n->inputs.items[0]);
  uint32_t sparse = list_length(c, "sparse_types"), dense = list_length(c, "Tdense"), ragged = list_length(c, "ragged_value_types");
  if (in.rank > 1)
    return fail(INVALID_ARGUMENT, "Expected serialized to be a scalar or vector, got %s", op_shape_text(c, in.rank, in.dims));
  sparse_outputs(c, n, 0, sparse, 1, &in);
  TRY(dense_outputs(c, n, 3 * sparse, dense, &in, "dense_shapes", false));
  for (uint32_t i = 0; i < ragged; i++) {
    dim total = op_new_symbol(c);
    op_host_output(c, n, 3 * sparse + dense + i, 1, &total);
  }
  dim splits = dim_add(op_dims(c), in.rank ? in.dims[0] : op_dim(c, 1), op_dim(c, 1));
  for (uint32_t i = 0; i < ragged; i++)
    op_host_output(c, n, 3 * sparse + dense + ragged + i, 1, &splits);
  return OK;
}

/* What compiler/pass/parse_datasets.c has not made a map of. */
status build_parse_dataset(struct op_call *c) {
  return fail(INVALID_ARGUMENT, "%s: the attributes of the features that it parses disagree", c->node->name);
}

/* ---- sequences: features of the context, then lists of features ---- */

/* Values, where examples begin, and for lists where rows begin. */
static void ragged_outputs(struct op_call *c, struct flow_node *n, uint32_t first, uint32_t count, bool is_list,
                           const struct flow_value *in) {
  for (uint32_t i = 0; i < count; i++) {
    dim total = op_new_symbol(c);
    op_host_output(c, n, first + i, 1, &total);
  }
  dim splits = dim_add(op_dims(c), in->rank ? in->dims[0] : op_dim(c, 1), op_dim(c, 1));
  for (uint32_t i = 0; i < count; i++)
    op_host_output(c, n, first + count + i, in->rank, &splits);
  for (uint32_t i = 0; i < count && is_list; i++) {
    dim rows = op_new_symbol(c);
    op_host_output(c, n, first + 2 * count + i, 1, &rows);
  }
}

/* Outputs come in the order of the registry: sparse, dense, ragged of the context; sparse, dense, lengths, ragged of the lists. */
status build_parse_sequence(struct op_call *c) {
  struct flow_node *n;
  bool single = OP_ROW(c, parse_row)->single;
  TRY(numbers_agree(c));
  TRY(op_host(c, HOST_PURE, NULL, &n));
  struct flow_value in = *op_value(c, n->inputs.items[0]);
  uint32_t sparse = list_length(c, "context_sparse_types"), dense = list_length(c, "Tcontext_dense"),
           ragged = list_length(c, "context_ragged_value_types");
  uint32_t at = 3 * sparse + dense + 2 * ragged;
  if (in.rank > (single ? 0 : 1))
    return fail(INVALID_ARGUMENT, "Expected serialized to be a scalar%s, got shape: %s", single ? "" : " or vector",
                op_shape_text(c, in.rank, in.dims));
  sparse_outputs(c, n, 0, sparse, 1, &in);
  TRY(dense_outputs(c, n, 3 * sparse, dense, &in, "context_dense_shapes", false));
  ragged_outputs(c, n, 3 * sparse + dense, ragged, false, &in);
  sparse = list_length(c, "feature_list_sparse_types");
  dense = list_length(c, "feature_list_dense_types");
  sparse_outputs(c, n, at, sparse, 2, &in);
  TRY(dense_outputs(c, n, at + 3 * sparse, dense, &in, "feature_list_dense_shapes", true));
  at += 3 * sparse + dense;
  for (uint32_t i = 0; i < dense && !single; i++)
    op_host_output(c, n, at++, in.rank, in.dims);
  ragged_outputs(c, n, at, list_length(c, "feature_list_ragged_value_types"), true, &in);
  return OK;
}
