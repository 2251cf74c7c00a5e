/* lower_function.c: the shape of what is fed, and calls of library functions. */
#include <string.h>

#include "ir/lower_frame.h"

/* ---- feeds ---- */

static status shape_from_attr(struct lower *lw, const struct attr_shape *s, const char *name, int *rank, dim *dims) {
  if (s->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a feed of rank %d", s->rank);
  *rank = s->rank;
  for (int i = 0; i < s->rank; i++)
    dims[i] = s->dims[i] >= 0 ? dim_const(lw->dims, s->dims[i])
                              : dim_symbol(lw->dims, s->rank == 1 ? name : arena_printf(lw->arena, "%s.%d", name, i));
  return OK;
}

/* A tensor that some node computes: lowers what is before it into a flow that is thrown away, to see its shape. */
static status shape_from_node(struct lower *lw, const struct graph *graph, struct edge feed, int *rank, dim *dims) {
  struct lower trial = *lw;
  struct lower_request r = {.graph = graph, .fetches = &feed, .fetch_count = 1};
  bool *needed = ARENA_ARRAY(lw->arena, bool, graph->nodes.count + 1);
  uint32_t *order = ARENA_ARRAY(lw->arena, uint32_t, graph->nodes.count + 1);
  TRY(lower_mark_needed(&r, needed));
  TRY(graph_order(graph, order));
  trial.flow = flow_create(lw->arena, lw->dims);
  trial.frame = NULL;
  struct frame *fr = trial.frame = frame_create(&trial, graph);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    struct edge e = {order[i], 0};
    const struct node *n = &graph->nodes.items[order[i]];
    if (!needed[order[i]])
      continue;
    if (strcmp(n->op, "Placeholder") == 0) {
      dim d[LIMIT_RANK];
      int k;
      TRY(lower_feed_shape(&trial, graph, e, &k, d));
      frame_outputs(&trial, fr, e.node)[0] = (struct bound){.value = flow_add_value(trial.flow, dtype_base(n->output_dtypes[0]), k, d)};
    } else {
      TRY(frame_lower_node(&trial, fr, order[i]));
    }
  }
  struct bound b = fr->bound[feed.node][feed.port];
  struct op_call c = {.lw = &trial, .node = &graph->nodes.items[feed.node], .in = &b, .in_count = 1};
  value_id v;
  TRY(op_input(&c, 0, &v));
  *rank = op_value(&c, v)->rank;
  for (int i = 0; i < *rank; i++) {
    dims[i] = op_value(&c, v)->dims[i];
    if (!dim_is_const(lw->dims, dims[i], NULL))
      dims[i] = op_new_symbol(&c);
  }
  return OK;
}

status lower_feed_shape(struct lower *lw, const struct graph *graph, struct edge feed, int *rank, dim *dims) {
  const struct node *node = &graph->nodes.items[feed.node];
  const struct attr_value *a = node_attr(node, "shape");
  bool placeholder = strcmp(node->op, "Placeholder") == 0 || strcmp(node->op, "PlaceholderWithDefault") == 0;
  if (placeholder && a && a->kind == ATTR_SHAPE && !a->shape.unknown_rank)
    return shape_from_attr(lw, &a->shape, node->name, rank, dims);
  const struct attr_value *all = attr_find(node->attrs, node->attr_count, "_output_shapes");
  if (all && all->kind == ATTR_LIST && feed.port < all->list.count && !all->list.items[feed.port].shape.unknown_rank)
    return shape_from_attr(lw, &all->list.items[feed.port].shape, node->name, rank, dims);
  if (strcmp(node->op, "Placeholder") == 0)
    return fail(UNIMPLEMENTED, "%s (Placeholder): its rank is not known while compiling", node->name);
  return shape_from_node(lw, graph, feed, rank, dims);
}

/* ---- calls ---- */

status lower_call_function(struct op_call *c, const char *function, const struct attr *attrs, uint32_t attr_count) {
  (void)c, (void)attrs, (void)attr_count;
  return fail(UNIMPLEMENTED, "calling the function '%s'", function);
}
