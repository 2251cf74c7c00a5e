/* table.h: lookup tables: from scalars to values of one dtype and shape, shared by name.
 *
 * A table is either filled once (HashTable: initialised from a list or a file, then read) or changed at any time (the mutable ones,
 * which are born initialised). Errors have TensorFlow's texts. Threads: any. Owner: the container.
 */
#ifndef TFC_RUNTIME_TABLE_H
#define TFC_RUNTIME_TABLE_H

#include <stdbool.h>
#include "base/tensor.h"
#include "runtime/container.h"

struct table_spec {
  enum dtype key, value;
  struct shape value_shape; /* of each value; scalar for most tables */
  bool is_mutable;
};
struct table;

extern const struct resource_maker table_maker; /* argument: const struct table_spec * */

const struct table_spec *table_get_spec(const struct table *table);
bool table_is_initialized(struct table *table);
int64_t table_size(struct table *table);
/* Fills a table that is filled once. FAILED_PRECONDITION when it was already, with other data; INVALID_ARGUMENT: one key, two values. */
status table_initialize(struct table *table, const struct tensor *keys, const struct tensor *values);
/* Adds or replaces; `all`: what was there before goes, and a table that is filled once is filled. */
status table_insert(struct table *table, const struct tensor *keys, const struct tensor *values, bool all);
status table_remove(struct table *table, const struct tensor *keys);
/* The values of keys, `otherwise` (one value) for those that are not there. */
status table_find(struct table *table, const struct tensor *keys, const struct tensor *otherwise, struct tensor **out);
status table_export(struct table *table, struct tensor **keys, struct tensor **values);

#endif
