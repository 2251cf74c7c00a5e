/* example_values.h: the values of a feature (example.proto: BytesList, FloatList, Int64List), and tensors that take them.
 *
 * A list is the inside of its message, packed or not. Threads: no shared state.
 */
#ifndef TFC_RUNTIME_EXAMPLE_VALUES_H
#define TFC_RUNTIME_EXAMPLE_VALUES_H

#include "base/tensor.h"
#include "base/wire.h"
#include "runtime/string_output.h"

/* The field of Feature that holds values of this dtype. */
uint32_t example_list_number(enum dtype dtype);
/* Values in a list; -1: it is damaged. */
int64_t example_list_count(struct wire list, enum dtype dtype);
typedef void (*example_value_sink)(void *self, const void *value);
/* Calls the sink with each value: a struct string_view, a float or an int64_t. */
void example_list_walk(struct wire list, enum dtype dtype, example_value_sink sink, void *self);

/* Puts values one after the other into a tensor; those that have no place in it are left out. */
struct example_sink {
  struct tensor *tensor;
  struct string_output text;
  bool is_text;
  int64_t at;
};
/* The tensor belongs to *place. */
status example_sink_begin(struct example_sink *s, enum dtype dtype, const struct shape *shape, struct tensor **place);
void example_sink_put(void *self, const void *value);
/* `count` elements; of a tensor with one element that one again and again. */
void example_sink_put_elements(struct example_sink *s, const struct tensor *from, int64_t count);
status example_sink_end(struct example_sink *s);

#endif
