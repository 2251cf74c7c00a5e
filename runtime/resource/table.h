/* table.h: lookup tables: from keys to values of one dtype and shape, shared by name or held by their handle alone.
 *
 * A table is either filled once (HashTable: initialised from a list or a file, then read) or changed at any time (the mutable ones,
 * which are born initialised). Errors have TensorFlow's texts. Threads: any. Owner: the container.
 */
#ifndef TFC_RUNTIME_RESOURCE_TABLE_H
#define TFC_RUNTIME_RESOURCE_TABLE_H

#include <stdbool.h>
#include "base/tensor.h"
#include "runtime/memory/container.h"

struct dense_spec;
struct table_spec {
  enum dtype key, value;
  struct shape value_shape; /* of each value; scalar for most tables */
  bool is_mutable;
  const struct dense_spec *dense; /* MutableDenseHashTable: what else it is made of, borrowed while it is made; else NULL */
};
struct table;

extern const struct resource_maker table_maker; /* argument: const struct table_spec * */

const struct table_spec *table_get_spec(const struct table *table);
bool table_is_initialized(struct table *table);
int64_t table_size(struct table *table);
/* Fills a table that is filled once. FAILED_PRECONDITION when it was already, with another number of entries, or when one key
 * has two values; INVALID_ARGUMENT when there is nothing to fill it with. */
status table_initialize(struct table *table, const struct tensor *keys, const struct tensor *values);
/* Adds or replaces; `all`: what was there before goes, and a table that is filled once is filled. */
status table_insert(struct table *table, const struct tensor *keys, const struct tensor *values, bool all);
status table_remove(struct table *table, const struct tensor *keys);
/* The values of keys; for those that are not there `otherwise`: one value, or (mutable tables) one for each key. */
status table_find(struct table *table, const struct tensor *keys, const struct tensor *otherwise, struct tensor **out);
/* ABORTED before a table that is filled once is filled. Mutable tables give their entries in TensorFlow's order. */
status table_export(struct table *table, struct tensor **keys, struct tensor **values);

#endif
