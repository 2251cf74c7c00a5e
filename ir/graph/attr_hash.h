/* attr_hash.h: values of attributes in few bytes: what an executable keeps of a node's, to notice that a client's node has other ones, and
 * what tells instances of a function apart. */
#ifndef TFC_IR_GRAPH_ATTR_HASH_H
#define TFC_IR_GRAPH_ATTR_HASH_H

#include "ir/graph/graph.h"

/* The hash of a value as runtime/program/program.h (struct program_node) defines it; 0: not compared. */
uint32_t attr_hash_value(const struct attr_value *value);
uint32_t attr_hash_name(const char *name);

#endif
