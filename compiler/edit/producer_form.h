/* producer_form.h: kernels that make one value element by element, as passes see them that join kernels or say where one stores. */
#ifndef TFC_COMPILER_PRODUCER_FORM_H
#define TFC_COMPILER_PRODUCER_FORM_H

#include "ir/flow/flow.h"

/* A pure kernel with one result: par loops around the store of an element (`map`), or around sums and the store of what is made of them. */
struct producer {
  const struct flow_node *node;
  uint32_t buffer; /* its output; of an update: the variable */
  int depth;       /* par loops */
  uint32_t locals[LIMIT_RANK];
  const expr_id *index; /* of its store */
  int index_count;
  expr_id value[2]; /* what it stores (parts) */
  bool is_map, is_reduction;
  bool is_uniform; /* a map whose elements are all alike: nothing in it moves */
};

/* False: the node is no such kernel. */
bool producer_form(const struct flow_node *node, struct producer *out);
/* The same for a kernel of sums with one result or several, all stored at the same element, one behind the other: `v` is one of them. */
bool producer_form_of(const struct flow_node *node, value_id v, struct producer *out);
/* The same for a kernel that makes no value, but updates one variable. */
bool update_form(const struct flow_node *node, struct producer *out);
/* Whether all loads from the buffer are of the element that is stored; where it has one of a dimension, of that. */
bool producer_loads_own(const struct producer *producer, uint32_t buffer);

/* Whether a map of one part can be made in another shape of as many elements, of which `common` last dimensions are alike: each load is of
 * the element that is stored, from a buffer of the result's shape, or moves with those dimensions alone, and so does all else. */
bool producer_reshapes(const struct producer *map, int common);
/* Whether that load is of the first kind. */
bool producer_load_is_own(const struct producer *map, expr_id load);

#endif
