/* pass.h: the passes, one function and one file each; compiler/pipeline.c lists them in order. */
#ifndef TFC_COMPILER_PASS_H
#define TFC_COMPILER_PASS_H

#include "compiler/build.h"

status pass_read(struct build *build);    /* pipeline.c: graph and cluster file into memory */
status pass_methods(struct build *build); /* methods.c: a SavedModel's functions without a signature become calls */
status pass_resolve(struct build *build); /* entries.c: entries_resolve */
status pass_datasets(struct build *b);
status pass_tables(struct build *build);    /* restore_tables.c: a SavedModel's tables are filled by `init` */
status pass_strategy(struct build *build);  /* strategy.c: --strategy: the graph is one replica's */
status pass_place(struct build *build);     /* place.c: a task and device for every node */
status pass_replicas(struct build *build);  /* replicas.c: `local_init` makes all that each replica has of its own */
status pass_lower(struct build *build);     /* lower_entries.c: each entry as a flow of core ops */
status pass_restore(struct build *build);   /* restore.c: a SavedModel's variables get their initial values */
status pass_dead(struct build *build);      /* dead.c: what nobody needs is gone */
status pass_fed(struct build *build);       /* fed.c: what every step uses is fed */
status pass_means(struct build *build);     /* means.c: --strategy: what of a step is the mean of all workers' */
status pass_spread(struct build *build);    /* spread.c: --strategy: steps of one machine become those of the cluster */
status pass_loops(struct build *build);     /* loops.c: what turns do not change leaves a loop; what they save are rows */
status pass_fuse(struct build *build);      /* fuse.c: kernels that need not store in between are one */
status pass_partition(struct build *build); /* partition.c: one flow for each task, joined by send and receive */
status pass_hold(struct build *build);      /* hold.c: what a part changes comes after what it receives */
status pass_assign(struct build *build);    /* assign.c: what is made only to be assigned is made in the variable */
status pass_collapse(struct build *b);      /* collapse.c: loops through the same memory become one */
status pass_layout(struct build *b);        /* layout.c: constants and invariants in panels */
status pass_join(struct build *b);          /* join.c: kernels whose rows need only each other's same row are one */
status pass_line_up(struct build *b);       /* line_up.c: factors that lie apart for a product are copied */
status pass_order(struct build *build);     /* order.c: the order of nodes, snapshots, releases */
status pass_schedule(struct build *build);  /* schedule.c: how kernels run on the CPU */
status pass_families(struct build *b);      /* families.c: a few kernels that differ in numbers become one that is told them */
status pass_share(struct build *build);     /* share.c: kernels in many sizes become one */
status pass_lanes(struct build *build);     /* lanes.c: what must come before what */
status pass_plan(struct build *build);      /* plan.c: where each value is, and how long */

/* Marks the nodes that must run: what reaches a fetch, a region's result or an effect. keep[nodes.count]. */
void flow_mark_live(const struct flow *flow, bool *keep);
/* Drops the others, in regions too. */
void flow_drop_dead(struct flow *flow);
/* The symbols that a node's dims and sizes mention; seen[symbols]. */
void flow_node_symbols(const struct flow *flow, const struct flow_node *node, bool *seen);
/* The symbols that a node gives values to; calls back for each. */
void flow_node_binds(const struct flow *flow, const struct flow_node *node, void (*found)(void *self, uint32_t symbol), void *self);

#endif
