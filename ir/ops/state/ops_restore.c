/* ops_restore.c: RestoreV2. What a file holds is not known while compiling, but what is done with it is: a restored value goes to a
 * variable, whose shape is known, through identities at most. */
#include <string.h>

#include "ir/lower/lower_frame.h"
#include "ir/ops/op_rows.h"
#include "ir/lower/host_call.h"

/* The shape of the variable that input `e` of an assignment is. */
static bool variable_shape(const struct op_call *c, struct edge e, struct attr_shape *out) {
  const struct frame *fr = op_frame(c);
  const struct bound *bound = fr->bound[e.node] ? &fr->bound[e.node][e.port] : NULL;
  if (bound && bound->var) {
    const struct flow_var *var = op_var(c, bound->var - 1);
    if (!var->has_shape && var->rank < 0)
      return false;
    *out = (struct attr_shape){.rank = var->rank, .dims = var->dims};
    return true;
  }
  const struct node *node = &fr->graph->nodes.items[e.node];
  if (strcmp(node->op, "Identity") == 0 && node->input_count)
    return variable_shape(c, node->inputs[0], out);
  const struct attr_shape *shape = node->def ? node_attr_shape(node, "shape") : NULL;
  if (shape)
    *out = *shape;
  return shape != NULL;
}

static bool passes_shape(const char *op) {
  return strcmp(op, "Identity") == 0 || strcmp(op, "Cast") == 0 || strcmp(op, "StopGradient") == 0 || strcmp(op, "Snapshot") == 0;
}

/* What a table imports: a vector of keys, and for each the value's shape. Keys of a dense table may have any rank. */
static bool table_shape(const struct op_call *c, const struct node *import, uint32_t input, struct attr_shape *out) {
  const struct node *table = &op_frame(c)->graph->nodes.items[import->inputs[0].node];
  const struct attr_value *value = table->def ? node_attr(table, "value_shape") : NULL;
  bool dense = strncmp(table->op, "MutableDense", 12) == 0;
  int rank = 1 + (input == 2 && value && value->kind == ATTR_SHAPE ? value->shape.rank : 0);
  if (strncmp(import->op, "LookupTableImport", 17) != 0 || input < 1 || input > 2 || dense || rank > LIMIT_RANK)
    return false;
  int64_t *dims = ARENA_ARRAY(op_arena(c), int64_t, LIMIT_RANK);
  dims[0] = -1;
  for (int i = 1; i < rank; i++)
    dims[i] = value->shape.dims[i - 1];
  *out = (struct attr_shape){.rank = rank, .dims = dims};
  return true;
}

/* Whether some reader of the output says its shape. */
static bool wanted_shape(const struct op_call *c, struct edge from, int depth, struct attr_shape *out) {
  const struct graph *g = op_frame(c)->graph;
  for (uint32_t i = 0; depth < 8 && i < g->nodes.count; i++) {
    const struct node *node = &g->nodes.items[i];
    for (uint32_t k = 0; k < node->input_count; k++) {
      if (node->inputs[k].node != from.node || node->inputs[k].port != from.port)
        continue;
      bool assigns = strcmp(node->op, "Assign") == 0 || strcmp(node->op, "AssignVariableOp") == 0;
      if (assigns && k == 1 && variable_shape(c, node->inputs[0], out))
        return true;
      if (table_shape(c, node, k, out))
        return true;
      if (passes_shape(node->op) && wanted_shape(c, (struct edge){i, 0}, depth + 1, out))
        return true;
    }
  }
  return false;
}

status build_restore(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_LOOKS, NULL, &n));
  uint32_t node = (uint32_t)(c->node - op_frame(c)->graph->nodes.items);
  value_id *whole = ARENA_ARRAY(op_arena(c), value_id, c->out_count + 1);
  for (uint32_t i = 0; i < c->out_count; i++) {
    struct attr_shape wanted = {.rank = 0};
    const struct attr_shape *shape = wanted_shape(c, (struct edge){node, i}, 0, &wanted) ? &wanted : node_output_shape(c->node, i);
    if (shape) {
      TRY(op_host_output_shaped(c, n, i, shape));
      continue;
    }
    whole[i] = op_add_output(c, n, op_output_dtype(c, i), 0, NULL);
  }
  for (uint32_t i = 0; i < c->out_count; i++)
    if (whole[i])
      TRY(op_any_rank(c, whole[i], ANY_RANK, &c->out[i]));
  return OK;
}

/* ---- warm starts: sizes are attributes ---- */

/* Where the new words were, and how many there were. */
status build_vocabulary_remapping(struct op_call *c) {
  struct flow_node *n;
  dim count = op_dim(c, node_attr_int(c->node, "num_new_vocab", 0));
  TRY(op_host(c, HOST_LOOKS, NULL, &n));
  op_host_output(c, n, 0, 1, &count);
  op_host_output(c, n, 1, 0, NULL);
  return OK;
}

status build_load_and_remap(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_LOOKS, NULL, &n));
  dim dims[2] = {op_dim(c, node_attr_int(c->node, "num_rows", 0)), op_dim(c, node_attr_int(c->node, "num_cols", 1))};
  op_host_output(c, n, 0, 2, dims);
  return OK;
}
