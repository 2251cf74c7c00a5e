/* example_values.c: the values of a feature (example.proto: BytesList, FloatList, Int64List), and tensors that take them. */
#include "runtime/example_values.h"

#include <string.h>

/* Values in a list, packed or not; -1: it is damaged. */
int64_t example_list_count(struct wire list, enum dtype dtype) {
  struct wire_field field;
  int64_t count = 0;
  uint64_t value;
  while (wire_next(&list, &field)) {
    if (field.number != 1)
      continue;
    if (dtype == DTYPE_STRING) {
      count += field.type == WIRE_BYTES;
    } else if (field.type != WIRE_BYTES) {
      count++;
    } else if (dtype == DTYPE_FLOAT) {
      if (field.size % 4)
        return -1;
      count += (int64_t)(field.size / 4);
    } else {
      struct wire packed = wire_inside(&field);
      while (packed.at < packed.end && wire_varint(&packed, &value))
        count++;
      if (packed.is_bad)
        return -1;
    }
  }
  return list.is_bad ? -1 : count;
}

/* Calls the sink with each value: a struct string_view, a float or an int64_t. */
void example_list_walk(struct wire list, enum dtype dtype, example_value_sink sink, void *self) {
  struct wire_field field;
  while (wire_next(&list, &field)) {
    if (field.number != 1)
      continue;
    if (dtype == DTYPE_STRING) {
      struct string_view view = { (const char *)field.data, field.size };
      if (field.type == WIRE_BYTES)
        sink(self, &view);
      continue;
    }
    if (field.type != WIRE_BYTES) {
      sink(self, &field.value);
      continue;
    }
    struct wire packed = wire_inside(&field);
    uint64_t value = 0;
    while (packed.at < packed.end && (dtype == DTYPE_FLOAT ? wire_fixed(&packed, 4, &value) : wire_varint(&packed, &value)))
      sink(self, &value);
  }
}

uint32_t example_list_number(enum dtype dtype) { return dtype == DTYPE_STRING ? 1 : dtype == DTYPE_FLOAT ? 2 : 3; }

status example_sink_begin(struct example_sink *s, enum dtype dtype, const struct shape *shape, struct tensor **place) {
  *s = (struct example_sink){ .is_text = dtype == DTYPE_STRING };
  TRY(s->is_text ? string_output_begin(&s->text, shape, place) : tensor_create(dtype, shape, place));
  s->tensor = *place;
  return OK;
}

void example_sink_put(void *self, const void *value) {
  struct example_sink *s = self;
  if (s->at >= s->tensor->count)
    return;
  size_t size = dtype_size(s->tensor->dtype);
  if (s->is_text)
    string_output_put(&s->text, ((const struct string_view *)value)->data, ((const struct string_view *)value)->size);
  else
    memcpy((char *)s->tensor->data + (size_t)s->at * size, value, size);
  s->at++;
}

void example_sink_put_elements(struct example_sink *s, const struct tensor *from, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    example_sink_put(s, (const char *)from->data + (size_t)(from->count == 1 ? 0 : i) * dtype_size(from->dtype));
}

status example_sink_end(struct example_sink *s) { return s->is_text ? string_output_end(&s->text) : OK; }
