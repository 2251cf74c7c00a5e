/* ops_ragged_variant.c: ragged tensors as variants. A variant says nothing of the values in it; their rank and fixed sizes are
 * remembered with the node that encoded them. */
#include <string.h>

#include "ir/ops/arrange.h"
#include "ir/lower/host_call.h"
#include "ir/lower/lower_frame.h"

/* Remembers the values of one variant (rows: of the whole without its first dimension). */
static void note_values(struct op_call *c, const struct flow_value *values, bool rows) {
  struct object_shapes *o = lower_object(c->lw, c->node);
  o->count = 1;
  o->values = ARENA_NEW(op_arena(c), struct flow_value);
  *o->values = op_lasting_shape(c, values, rows);
  if (!rows) /* rows of a ragged tensor differ */
    o->values->dims[0] = NO_DIM;
}

status build_ragged_to_variant(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  uint32_t splits = c->in_count - 1;
  struct flow_value values = *op_value(c, n->inputs.items[splits]);
  bool batched = node_attr_int(c->node, "batched_input", 0) != 0;
  if (splits > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "%u ragged dimensions", splits);
  if (batched && values.rank < 1)
    return fail(INVALID_ARGUMENT, "Can't unbatch rank-0 tensor.");
  dim rows = values.dims[0];
  if (splits > 0) {
    struct flow_value first = *op_value(c, n->inputs.items[0]);
    if (first.rank != 1)
      return fail(INVALID_ARGUMENT, "Invalid ragged splits: ragged splits must be rank 1 but is rank %d", first.rank);
    rows = dim_sub(op_dims(c), first.dims[0], op_dim(c, 1));
  }
  note_values(c, &values, batched && splits == 0);
  op_host_output(c, n, 0, batched ? 1 : 0, &rows);
  c->out[0].maker = c->node;
  return OK;
}

/* The ranks of values that a node of a graph encodes: as they are known, or will be in an entry where the node is needed. 0: none of this
 * dtype. */
static rank_set ranks_encoded(struct op_call *c, const struct frame *fr, uint32_t id, enum dtype dtype) {
  const struct node *n = &fr->graph->nodes.items[id];
  uint32_t values = n->input_count - 1;
  int64_t sizes[LIMIT_RANK];
  int rank;
  if (dtype_base(n->input_dtypes[values]) != dtype || (!fr->lowered[id] && fr->function))
    return 0;
  const struct object_shapes *o = fr->lowered[id] ? lower_object(c->lw, n) : NULL;
  if (o)
    return o->count ? ranks_of(o->values->rank) : ANY_RANK;
  if (!lower_said_shape(c->lw, n->inputs[values], &rank, sizes))
    return ANY_RANK;
  rank -= values == 0 && node_attr_int(n, "batched_input", 0);
  return rank < 0 ? 0 : ranks_of(rank);
}

static bool parses_ragged(const struct node *n) {
  const struct attr_value *keys = strncmp(n->op, "ParseExampleDataset", 19) == 0 ? node_attr(n, "ragged_keys") : NULL;
  return keys && keys->kind == ATTR_LIST && keys->list.count > 0;
}

/* Of values whose encoder is not known: the ranks that are encoded somewhere; any, where nobody is seen to encode, or a dataset parses. */
static rank_set ranks_somewhere(struct op_call *c, enum dtype dtype) {
  rank_set ranks = 0;
  for (const struct frame *fr = op_newest_frame(c); fr; fr = fr->older)
    for (uint32_t id = 0; id < fr->graph->nodes.count; id++) {
      const struct node *n = &fr->graph->nodes.items[id];
      if (parses_ragged(n))
        return ANY_RANK;
      if (strcmp(n->op, "RaggedTensorToVariant") == 0)
        ranks |= ranks_encoded(c, fr, id, dtype);
    }
  return ranks ? ranks : ANY_RANK;
}

/* The values: of the rank that is remembered, or, where nobody has said it, of what rank the step finds. */
static status output_values(struct op_call *c, struct flow_node *n, const struct object_shapes *o, bool stacked) {
  uint32_t output = c->out_count - 1;
  const struct flow_value *known = o && o->count && o->values->dtype == op_output_dtype(c, output) ? o->values : NULL;
  dim dims[LIMIT_RANK + 1];
  rank_set ranks = known ? ranks_of(known->rank) : ranks_somewhere(c, op_output_dtype(c, output));
  int rank = ranks_are_many(ranks) ? 0 : ranks_lowest(ranks) + stacked;
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "values of rank %d", rank);
  op_host_add_attr(c, n, "values_rank", (struct attr_value){.kind = ATTR_INT, .i = ranks_are_many(ranks) ? -1 : rank});
  for (int d = 0; d < rank; d++)
    dims[d] = d < stacked || !known || known->dims[d - stacked] == NO_DIM ? op_new_symbol(c) : known->dims[d - stacked];
  op_host_output(c, n, output, rank, dims);
  if (!ranks_are_many(ranks))
    return OK;
  if (output) /* what has splits has rows */
    ranks &= ranks_from(1);
  return op_any_rank(c, c->out[output].value, ranks << stacked, &c->out[output]);
}

/* Splits of sizes that the variants say, then the values. */
status build_ragged_from_variant(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  bool stacked = c->out_count == 1 && op_value(c, n->inputs.items[0])->rank > 0;
  for (uint32_t i = 0; i + 1 < c->out_count; i++) {
    dim length = op_new_symbol(c);
    op_host_output(c, n, i, 1, &length);
  }
  return output_values(c, n, lower_object(c->lw, c->in[0].maker), stacked);
}

/* What was encoded has the shape that input 2 says. */
status build_ragged_to_variant_gradient(struct op_call *c) {
  struct flow_node *n;
  value_id shape;
  dim *e, dims[LIMIT_RANK];
  int rank;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  TRY(op_input(c, 2, &shape));
  TRY(op_elements(c, shape, &e, &rank));
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "values of rank %d", rank);
  for (int d = 0; d < rank; d++)
    dims[d] = e[d];
  op_host_output(c, n, 0, rank, dims);
  return OK;
}
