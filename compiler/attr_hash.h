/* attr_hash.h: what an executable keeps of a node's attributes: enough to notice that a client's node has other ones. */
#ifndef TFC_COMPILER_ATTR_HASH_H
#define TFC_COMPILER_ATTR_HASH_H

#include "ir/graph.h"

/* The hash of a value as runtime/program.h (struct program_node) defines it; 0: not compared. */
uint32_t attr_hash_value(const struct attr_value *value);
uint32_t attr_hash_name(const char *name);

#endif
