/* ops_queue.c: queues. They live in the runtime, in the containers of the task that their handle is placed on; here the
 * shapes of what comes out are found: from the queue's own attribute, or from what the graph puts in. */
#include <string.h>

#include "ir/lower/lower.h"
#include "ir/lower/host_call.h"
#include "ir/ops/op_rows.h"
#include "ir/ops/put_shape.h"
#include "ir/ops/token_attrs.h"

/* What the graph enqueues into the queue that `maker` makes, by value shapes known to this walk. */
static void note_components(struct op_call *c, const struct node *maker, bool many) {
  if (!maker)
    return;
  struct object_shapes *o = lower_object(c->lw, maker);
  if (o->count || c->in_count < 2)
    return;
  o->count = c->in_count - 1;
  o->values = ARENA_ARRAY(op_arena(c), struct flow_value, o->count);
  for (uint32_t i = 0; i < o->count; i++)
    o->values[i] = op_lasting_shape(c, op_value(c, c->in[i + 1].value), many);
}

status build_queue_enqueue(struct op_call *c) {
  struct flow_node *n;
  bool many = OP_ROW(c, count_row)->many;
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  for (uint32_t i = 1; many && i < c->in_count; i++)
    if (op_value(c, c->in[i].value)->rank < 1)
      return fail(INVALID_ARGUMENT, "component %u must have at least one dimension", i - 1);
  note_components(c, c->in[0].maker, many);
  return OK;
}

static bool enqueues(const struct graph *g, const struct node *put, const struct put_search *search, int64_t i, uint32_t *input,
                     bool *batched) {
  *input = (uint32_t)i + 1;
  *batched = strncmp(put->op, "QueueEnqueueMany", 16) == 0;
  return strncmp(put->op, "QueueEnqueue", 12) == 0 && i + 1 < put->input_count && op_same_resource(g, put, search->user);
}

/* Component i of an element: the ranks that it may have, and of a single one the sizes that are fixed. A priority queue has its priority
 * first. */
static status component_ranks(struct op_call *c, const struct node *maker, uint32_t i, rank_set *ranks, int64_t *sizes) {
  const struct attr_value *shapes = maker ? node_attr(maker, "shapes") : NULL;
  bool priority = maker && strncmp(maker->op, "PriorityQueue", 13) == 0;
  for (int d = 0; d < LIMIT_RANK; d++)
    sizes[d] = -1;
  *ranks = 1;
  if (priority && i == 0)
    return OK;
  uint32_t at = i - priority;
  const struct object_shapes *o = lower_object(c->lw, maker);
  if (shapes && at < shapes->list.count && !shapes->list.items[at].shape.unknown_rank) {
    const struct attr_shape *s = &shapes->list.items[at].shape;
    if (s->rank > LIMIT_RANK)
      return fail(UNIMPLEMENTED, "a component of rank %d", s->rank);
    *ranks = ranks_of(s->rank);
    memcpy(sizes, s->dims, sizeof *sizes * (size_t)s->rank);
  } else if (o && i < o->count) { /* put in by this entry, perhaps in a function */
    *ranks = ranks_of(o->values[i].rank);
  } else {
    int64_t put[LIMIT_RANK];
    *ranks = op_put_ranks(c, &(struct put_search){enqueues, maker}, i, put);
  }
  return OK;
}

/* Output i: component i, or as many of it as `batch` says. */
static status component_output(struct op_call *c, struct flow_node *n, uint32_t i, dim batch) {
  rank_set ranks;
  int64_t sizes[LIMIT_RANK];
  TRY(component_ranks(c, c->in[0].maker, i, &ranks, sizes));
  int rank = ranks_lowest(ranks);
  if (batch == NO_DIM)
    return op_host_output_ranked(c, n, i, ranks, sizes);
  if (ranks_are_many(ranks))
    return fail(UNIMPLEMENTED, "a batch of elements of several ranks");
  if (rank == LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a batch of rank %d", rank + 1);
  dim dims[LIMIT_RANK] = {batch};
  for (int d = 0; d < rank; d++)
    dims[d + 1] = sizes[d] < 0 ? op_new_symbol(c) : op_dim(c, sizes[d]);
  op_host_output(c, n, i, rank + 1, dims);
  return OK;
}

/* Batches are made of elements of one shape. */
static status check_has_shapes(const struct node *maker) {
  const struct attr_value *shapes = node_attr(maker, "shapes");
  bool whole = shapes && shapes->list.count;
  for (uint32_t i = 0; whole && i < shapes->list.count; i++)
    whole = !shapes->list.items[i].shape.unknown_rank;
  return whole || strncmp(maker->op, "PriorityQueue", 13) == 0
         ? OK
         : fail(INVALID_ARGUMENT, "%s's DequeueMany and DequeueUpTo require the components to have specified shapes.", maker->op);
}

/* DequeueMany and DequeueUpTo have the batch in front; the latter's is known only when it is there. */
status build_queue_dequeue(struct op_call *c) {
  bool many = OP_ROW(c, count_row)->many, up_to = OP_ROW(c, count_row)->up_to;
  struct flow_node *n;
  dim batch = NO_DIM;
  if ((many || up_to) && c->in[0].maker)
    TRY(check_has_shapes(c->in[0].maker));
  if (many) {
    dim *e;
    int count;
    TRY(op_input(c, 1, &c->in[1].value));
    TRY(op_elements(c, c->in[1].value, &e, &count));
    batch = e[0];
  }
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  op_host_pass_attr(c, n, ATTR_TOKENS_EACH);
  if (up_to)
    batch = op_new_symbol(c);
  for (uint32_t i = 0; i < c->out_count; i++)
    TRY(component_output(c, n, i, batch));
  return OK;
}

/* ---- readers: named like queues; a read may wait for a queue ---- */

status build_reader(struct op_call *c) {
  static const char *const sizes[] = {"skip_header_lines", "header_bytes", "record_bytes", "footer_bytes", "hop_bytes"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (node_attr_int(c->node, sizes[i], 0) < 0)
      return fail(INVALID_ARGUMENT, "%s must be >= 0 not %lld", sizes[i], (long long)node_attr_int(c->node, sizes[i], 0));
  return build_host(c);
}

/* A key and a value, or a list of each that is as long as it turns out. */
status build_reader_read(struct op_call *c) {
  struct flow_node *n;
  dim count = NO_DIM;
  int rank = OP_ROW(c, count_row)->up_to ? 1 : 0;
  TRY(op_host(c, HOST_WAITS, NULL, &n));
  if (rank)
    count = op_new_symbol(c);
  op_host_output(c, n, 0, rank, &count);
  op_host_output(c, n, 1, rank, &count);
  return OK;
}

/* Always batch_size records. */
status build_record_input(struct op_call *c) {
  struct flow_node *n;
  int64_t size = node_attr_int(c->node, "batch_size", 32), parallel = node_attr_int(c->node, "file_parallelism", 16);
  if (parallel < 0)
    return fail(INVALID_ARGUMENT, "file_parallelism should >= 0, got %lld", (long long)parallel);
  if (size < 0)
    return fail(INVALID_ARGUMENT, "batch_size must be non-negative but got %lld", (long long)size);
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  dim count = op_dim(c, size);
  op_host_output(c, n, 0, 1, &count);
  return OK;
}
