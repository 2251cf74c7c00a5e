/* unsupported.h: the ops of a graph that have no row in ops.def, all at once: for `tfc check` and for errors. */
#ifndef TFC_IR_LOWER_UNSUPPORTED_H
#define TFC_IR_LOWER_UNSUPPORTED_H

#include "ir/graph/graph.h"

struct unsupported_op {
  const char *op;
  const char *reason;      /* why, where it is not just missing; else NULL */
  VEC(const char *) nodes; /* names; in a function: "function/node" */
};
struct unsupported {
  VEC(struct unsupported_op) ops; /* in the order in which they were found */
};

/* Ops of the needed nodes (needed[nodes.count]) and of the functions that they call, by name or by attribute: there of what
 * results and effects need. Texts in the arena; unsupported_deinit frees the rest. */
void unsupported_find(const struct graph *graph, const bool *needed, struct arena *arena, struct unsupported *out);
void unsupported_deinit(struct unsupported *list);
/* A family of ops that have no row, and why (left_out.def). */
struct left_out {
  const char *reason, *patterns;
};
const struct left_out *left_out_list(uint32_t *count);
/* The first family that an op without a row is of; NULL: it is in none. */
const struct left_out *left_out_find(const char *op);
/* Why an op is not compiled; NULL when nothing says it. */
const char *unsupported_reason(const char *op);

#endif
