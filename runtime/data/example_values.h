/* example_values.h: the values of a feature (example.proto: BytesList, FloatList, Int64List), tensors that take them, and keys.
 *
 * A list is the inside of its message, packed or not. Threads: no shared state.
 */
#ifndef TFC_RUNTIME_DATA_EXAMPLE_VALUES_H
#define TFC_RUNTIME_DATA_EXAMPLE_VALUES_H

#include "base/tensor.h"
#include "base/vec.h"
#include "base/wire.h"
#include "runtime/text/string_output.h"

/* The field of Feature that holds values of this dtype. */
uint32_t example_list_number(enum dtype dtype);
/* Values in a list; -1: it is damaged. */
int64_t example_list_count(struct wire list, enum dtype dtype);
/* The entry of a map: its key, and the inside of its value. False: it is damaged. */
bool example_entry(struct wire entry, struct string_view *key, struct wire *value);

/* Which features are wanted of a key. */
struct example_key {
  struct string_view key;
  uint32_t feature;
};
struct example_keys {
  VEC(struct example_key) list; /* to be freed */
};
void example_keys_add(struct example_keys *keys, struct string_view key, uint32_t feature);
void example_keys_sort(struct example_keys *keys); /* before anything is found */
/* The first of *count features with the key, in the order in which they were added. */
const struct example_key *example_keys_find(const struct example_keys *keys, struct string_view key, uint32_t *count);

/* Puts values one after the other into a tensor; those that have no place in it are left out. */
struct example_sink {
  struct tensor *tensor;
  struct string_output text;
  bool is_text;
  int64_t at;
};
/* The tensor belongs to *place. */
status example_sink_begin(struct example_sink *s, enum dtype dtype, const struct shape *shape, struct tensor **place);
/* One value: a struct string_view, a float or an int64_t; NULL: nothing, or zero. */
void example_sink_put(struct example_sink *s, const void *value);
/* All values of a list, which is whole. */
void example_sink_put_list(struct example_sink *s, struct wire list);
/* `count` elements; of a tensor with one element that one again and again. */
void example_sink_put_elements(struct example_sink *s, const struct tensor *from, int64_t count);
status example_sink_end(struct example_sink *s);

#endif
