/* token_round.h: the rounds of TensorFlow's SyncReplicasOptimizer, found in a graph by what its nodes do.
 *
 * Workers apply gradients to accumulators and wait for a token. One thread of the chief, which is in no graph, takes
 * the gradients when there are enough, updates, and hands out tokens: the new global step, once for each worker. A
 * worker keeps its token as its local step, with which the next gradients are marked. Owner of all lists: the arena of
 * the compilation. One thread.
 */
#ifndef TFC_COMPILER_TOKEN_ROUND_H
#define TFC_COMPILER_TOKEN_ROUND_H

#include "ir/graph/graph.h"

struct token_round {
  uint32_t queue;        /* the node of the queue of tokens */
  uint32_t enqueue;      /* hands the tokens out, after the update */
  uint32_t end;          /* what the chief's thread runs: `enqueue`, or what the graph does after it */
  uint32_t step;         /* a worker's step ends with it: the token becomes the local step */
  uint32_t local_init;   /* the global step becomes the local one, or NO_NODE */
  uint32_t first_tokens; /* tokens before the first round, or NO_NODE */
  int64_t required;      /* gradients that a round needs; 0: not known */
  const bool *taken;     /* per node: needs gradients that were taken: the chief's thread runs it, no worker */
};

/* False: the graph has none. The nodes have been checked against their ops. */
bool token_round_find(const struct graph *graph, struct arena *arena, struct token_round *out);
/* The nodes that tell accumulators the global step. */
bool token_round_sets_step(const struct node *node);
/* How many gradients of a round each of so many replicas gives. More than one each only where first tokens let it:
 * without them one, and rounds have no more than one of each. */
int64_t token_round_share(const struct token_round *round, int64_t replicas);
/* Marks what dequeues tokens and takes gradients for a cluster of that many replicas: how many tokens of one round each
 * gets (attributes of ir/ops/token_attrs.h). */
void token_round_mark(struct graph *graph, const struct token_round *round, int64_t replicas);

#endif
