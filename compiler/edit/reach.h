/* reach.h: what in a step differs from worker to worker, and the ways on which it comes to the variables.
 *
 * Data are the feeds but scalars, what the task's host calls give by themselves (iterators, queues, files), random numbers, and sizes
 * of feeds. `reach_run` follows them through the flow; a value that is in the cut counts as alike on all workers, but for what such a value
 * is made of itself: that stays with the worker, and sees its own. For each value it finds
 * the one before it that all ways from data lead through (its immediate dominator: Cooper, Harvey and Kennedy, "A simple, fast dominance
 * algorithm", in one turn, as a flow has no cycles). An update is what changes a variable; a read that is ordered after one depends on it,
 * unless variables are `settled`.
 */
#ifndef TFC_COMPILER_REACH_H
#define TFC_COMPILER_REACH_H

#include "compiler/build.h"

struct reach_before {
  flow_id node;
  uint32_t var;
  flow_id update;
};
struct reach {
  struct build *build;
  const struct flow *flow;
  flow_id *before;                  /* per node that touches variables: the last update of any of them that is ordered before; 0: none */
  VEC(struct reach_before) befores; /* the same for each of its variables, by node */
  bool *cut;                        /* per value: it is made alike on all workers */
  bool *own;                        /* per node, of the last run: a value of the cut is made of it */
  bool *of_variables;               /* per value: it depends on what a variable held before the step */
  bool *behind;                     /* per value: it is alike because it is made of what was cut */
  bool *node_depends;               /* the same, per node */
  bool scalars;                     /* of the last run: ways may lead through scalars */
  bool settled;                     /* of the next runs: what is read of a variable after an update counts as alike */
  bool explicit;    /* of the next runs: the flow has the means, and whoever takes a value of the cut sees what all workers make */
  value_id blocked; /* of the next runs: a value that leads nowhere, and neither do sizes; 0: none */
  /* of the last run: */
  bool *differs, *node_differs;
  bool *carried;            /* per value: it differs as a variable does that has been changed before */
  value_id *dominator;      /* per value that differs: the next one that all ways lead through; 0: the data */
  value_id *node_dominator; /* per node */
  uint32_t *depth;          /* per value: of its dominators */
  VEC(flow_id) updates;     /* those that data reach */
  uint64_t *reaches;        /* per value: a bit for each of them */
  uint32_t *dominates;      /* per value: of how many of them it is a dominator */
  uint32_t words;           /* of a value in `reaches` */
  bool *own_size;           /* per symbol: it is a size of data */
  uint32_t symbols;
  bool *seen; /* per symbol, for the time of a call */
};

void reach_init(struct reach *r, struct build *build, const struct flow *flow);
/* Without `scalars` a scalar leads nowhere: a norm of all gradients, a count of steps does not tie variables together. */
void reach_run(struct reach *r, bool scalars);
void reach_deinit(struct reach *r);

/* The last update of the variable that is ordered before a node that touches it; 0: none. */
flow_id reach_update_before(const struct reach *r, flow_id node, uint32_t var);
bool reach_is_scalar(const struct reach *r, value_id v);
/* Whether what the node makes differs with a value that it takes. */
bool reach_leads_to(const struct reach *r, value_id v, flow_id node);
/* Whether all updates that the value reaches are reached through it only; true where it reaches none. */
bool reach_is_passed(const struct reach *r, value_id v);
/* The same, and there are such updates. */
bool reach_is_own(const struct reach *r, value_id v);
/* Whether all ways to the update lead through the value. */
bool reach_comes_by(const struct reach *r, flow_id update, value_id v);
/* Marks also what marked nodes are made of. nodes[nodes.count] */
void reach_mark_sources(const struct flow *flow, bool *nodes);
/* "a <- b <- c": how data come to the node. */
const char *reach_path(const struct reach *r, flow_id node, struct arena *arena);

#endif
