/* joined_form.h: kernels that put values beside each other along one dimension, as concat does. */
#ifndef TFC_COMPILER_JOINED_FORM_H
#define TFC_COMPILER_JOINED_FORM_H

#include "ir/flow/flow.h"

#define JOINED_PARTS 8

struct joined {
  int dim, count;
  struct joined_part {
    value_id value;
    int64_t from, count; /* along that dimension */
  } parts[JOINED_PARTS]; /* in order, at least two; together they are the whole result */
};

/* False: the node is no such kernel, a size is not known, or it has more parts. */
bool joined_form(const struct flow_node *node, struct joined *out);

#endif
