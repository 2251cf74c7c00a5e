/* dataset_function.h: the functions of the datasets that an iterator may read from, and their regions. Private to ops_dataset.c,
 * dataset_function.c and dataset_rank.c. */
#ifndef TFC_IR_OPS_HOST_DATASET_FUNCTION_H
#define TFC_IR_OPS_HOST_DATASET_FUNCTION_H

#include "ir/lower/lower_walk.h"

struct dataset_function {
  const char *name; /* of the node */
  const struct node *node;
  const struct attr_func *func;
  VEC(struct bound) args;        /* a variable, or nothing */
  VEC(struct flow_value) shapes; /* of each argument that is a value */
  const char *state_of;          /* the function whose results come in front of `args`: those of a state; NULL: none do */
};
struct dataset_functions {
  VEC(struct dataset_function) list;
  VEC(const struct node *) walked;
};

struct flow_list {
  struct flow **items;
  uint32_t count, capacity;
};

void dataset_functions_free(struct dataset_functions *all);
/* Appends an argument that is a value of this shape; `maker`: of what it is, when it is a dataset or list. */
void dataset_function_add(struct op_call *c, struct dataset_function *f, struct flow_value shape, const struct node *maker);
/* Lowers each function to a flow, in the order of the list; those that are found meanwhile are appended to it. */
status dataset_functions_build(struct op_call *c, struct flow_list *flows);
/* The rank of result i of a function of the list, which is lowered once more to see it; -1: it is not known; DATASET_ANY_RANK. */
int dataset_function_rank(struct op_call *c, const struct dataset_function *f, uint32_t i);
/* Makes the flows the regions of the node, under the names of the functions' nodes. */
void dataset_functions_attach(struct op_call *c, struct flow_node *n, const struct dataset_functions *all, const struct flow_list *flows);

#endif
