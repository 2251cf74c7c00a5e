/* dataset_maker.h: which node makes a dataset, and what its elements are. Private to the files of datasets. */
#ifndef TFC_IR_OPS_HOST_DATASET_MAKER_H
#define TFC_IR_OPS_HOST_DATASET_MAKER_H

#include <string.h>

#include "ir/lower/lower_frame.h"

static inline bool is_op(const struct node *node, const char *op) { return strcmp(node->op, op) == 0; }

/* A function that is an attribute of the node; NULL: it has none of that name. */
const struct attr_func *dataset_function_at(const struct node *node, const char *attr);
/* The body of such a function under that name, to be given up with instance_deinit. False: there is none. */
bool dataset_body(const struct op_call *c, const char *name, const struct attr_func *func, struct instance *out);
/* The frame that the node belongs to: also of a function that was lowered before. NULL: none. */
struct frame *dataset_frame(const struct op_call *c, const struct node *node);
/* What makes the handle at an edge, or that is input i of a node of a frame: behind ops that hand it on, and behind the arguments and
 * results of calls that were lowered. */
const struct node *dataset_maker_at(const struct frame *fr, struct edge e);
const struct node *dataset_maker(const struct op_call *c, const struct node *node, uint32_t i);
/* What makes component i of the elements of a dataset, where that is a dataset or list; NULL: it is not known. */
const struct node *dataset_component_maker(struct op_call *c, const struct node *dataset, uint32_t i);
/* The types and shapes of a dataset's components; false when they are not known. */
bool dataset_spec(const struct node *dataset, const struct attr_value **types, const struct attr_value **shapes);

/* The function that makes an element of each, its results the components; NULL: none does. */
const struct attr_func *dataset_mapping(const struct node *dataset);
/* The argument that result i of a dataset's function hands through; -1: it is made there, and boxed with *rank, or the function is not
 * known. */
int dataset_handed_result(struct op_call *c, const struct node *dataset, const struct attr_func *func, uint32_t i, int *rank);
/* Datasets that only choose among elements, and those that put them together or take them apart. */
bool dataset_hands_on(const struct node *dataset);
/* The one whose elements these are, of several the first. */
const struct node *dataset_handed(struct op_call *c, const struct node *dataset);
/* The dataset of those that are zipped that gives component *i of the elements, and which of its own that is; NULL: not known. */
const struct node *dataset_zipped(struct op_call *c, const struct node *dataset, uint32_t *i);
bool dataset_gives_scalars(const struct node *dataset); /* whatever its attributes say */

/* ---- ranks that the graph does not say (dataset_rank.c) ---- */

/* The rank of what boxes a tensor; -1: it is not known. */
int dataset_boxed_rank(const struct node *maker);
#define DATASET_ANY_RANK (-2) /* one that only the step knows */

/* The rank of component i (is_boxed: a variant, which holds a sparse or ragged tensor) of the elements of a dataset (NULL: no dataset), or
 * of that, a variant, of the dataset that a one-shot iterator's factory gives; -1: it is not known; DATASET_ANY_RANK. */
int dataset_element_rank(struct op_call *c, const struct node *dataset, uint32_t i, bool is_boxed);
int dataset_factory_rank(struct op_call *c, const struct node *iterator, uint32_t i);

#endif
