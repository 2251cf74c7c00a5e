/* put_shape.h: the shapes of what comes out of a resource that does not say them: those of what the graph puts in, in this entry or
 * in another one (queues, staging areas, accumulators). */
#ifndef TFC_IR_OPS_PUT_SHAPE_H
#define TFC_IR_OPS_PUT_SHAPE_H

#include "ir/lower/lower.h"

struct put_search {
  /* Whether node `put` puts component i into the resource: *input is the number of the input that holds it, *batched whether its
   * first dimension counts elements. */
  bool (*puts)(const struct graph *graph, const struct node *put, const struct put_search *search, int64_t i, uint32_t *input,
               bool *batched);
  const struct node *user; /* for `puts`: the op that takes out, or the resource's maker */
};

/* What may come out: ranks, and of those that are of the lowest rank the sizes on which all puts agree; -1 where
 * they differ or one is not known. Where the graph does not say what is put, it may be anything. Only the top graph is searched, not
 * the bodies of functions. */
rank_set op_put_ranks(struct op_call *c, const struct put_search *search, int64_t i, int64_t *sizes);

/* Output i of the op: the next output of the call, which has one of these ranks; of a single one, with these sizes (-1 or NULL: open). */
status op_host_output_ranked(struct op_call *c, struct flow_node *n, uint32_t i, rank_set ranks, const int64_t *sizes);

/* Whether the handle that is input 0 of `user` is made by `maker`, or by a node of the same op, container and shared_name. */
bool op_same_resource(const struct graph *graph, const struct node *user, const struct node *maker);

#endif
