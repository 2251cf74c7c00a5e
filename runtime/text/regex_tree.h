/* regex_tree.h: a pattern as a tree: shared by its parser and what makes code of it. */
#ifndef TFC_RUNTIME_TEXT_REGEX_TREE_H
#define TFC_RUNTIME_TEXT_REGEX_TREE_H

#include "runtime/text/regex_code.h"

enum node_kind { NODE_EMPTY, NODE_SET, NODE_CAT, NODE_ALT, NODE_REPEAT, NODE_GROUP, NODE_ASSERT };
struct regex_node {
  enum node_kind kind;
  uint32_t left, right; /* nodes; SET: the set; GROUP: right is its number; ASSERT: left is the place */
  int min, max;         /* REPEAT; max -1: any */
  bool lazy;
};

/* Appends the code of the tree below root. INVALID_ARGUMENT: it would be too long. */
status regex_emit(const struct regex_node *nodes, uint32_t root, struct regex *regex);

#endif
