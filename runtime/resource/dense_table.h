/* dense_table.h: MutableDenseHashTable: keys (scalars or vectors) and values in two arrays of buckets, probed quadratically. What
 * it exports is the buckets themselves, so their order is TensorFlow's. Private to table.c: threads under the table's lock.
 */
#ifndef TFC_RUNTIME_RESOURCE_DENSE_TABLE_H
#define TFC_RUNTIME_RESOURCE_DENSE_TABLE_H

#include "base/tensor.h"

struct dense_spec {
  enum dtype key, value;
  struct shape key_shape, value_shape; /* scalars or vectors */
  const struct tensor *empty_key;      /* borrowed while the table is made */
  const struct tensor *deleted_key;    /* NULL: of the first generation, which removes nothing */
  int64_t buckets;                     /* at first: a power of 2 */
  double max_load;
};
struct dense_table;

/* INVALID_ARGUMENT names what is wrong with the specification. */
status dense_table_create(const struct dense_spec *spec, struct dense_table **out);
void dense_table_free(struct dense_table *table); /* accepts NULL */
const struct shape *dense_table_key_shape(const struct dense_table *table);
int64_t dense_table_size(const struct dense_table *table);
/* Keys end in the key's shape, values in the value's: the caller has checked. INVALID_ARGUMENT: the empty or deleted key. */
status dense_table_insert(struct dense_table *table, const struct tensor *keys, const struct tensor *values);
status dense_table_remove(struct dense_table *table, const struct tensor *keys);
/* A tensor of the shape with the values of the keys, or `otherwise`. */
status dense_table_find(const struct dense_table *table, const struct tensor *keys, const struct tensor *otherwise,
                        const struct shape *shape, struct tensor **out);
/* All buckets as matrices, free ones included; and the same as the new contents. */
status dense_table_export(const struct dense_table *table, struct tensor **keys, struct tensor **values);
status dense_table_import(struct dense_table *table, const struct tensor *keys, const struct tensor *values);

#endif
