/* example_values.c: the values of a feature (example.proto: BytesList, FloatList, Int64List), tensors that take them, and keys. */
#include "runtime/data/example_values.h"

#include <stdlib.h>
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

bool example_entry(struct wire entry, struct string_view *key, struct wire *value) {
  struct wire_field field;
  *key = (struct string_view){"", 0};
  *value = wire_over(NULL, 0);
  while (wire_next(&entry, &field)) {
    if (field.number == 1 && field.type == WIRE_BYTES)
      *key = (struct string_view){(const char *)field.data, field.size};
    if (field.number == 2)
      *value = wire_inside(&field);
  }
  return !entry.is_bad;
}

uint32_t example_list_number(enum dtype dtype) { return dtype == DTYPE_STRING ? 1 : dtype == DTYPE_FLOAT ? 2 : 3; }

status example_sink_begin(struct example_sink *s, enum dtype dtype, const struct shape *shape, struct tensor **place) {
  *s = (struct example_sink){.is_text = dtype == DTYPE_STRING};
  TRY(s->is_text ? string_output_begin(&s->text, shape, place) : tensor_create(dtype, shape, place));
  s->tensor = *place;
  return OK;
}

void example_sink_put(struct example_sink *s, const void *value) {
  static const struct string_view nothing = {"", 0};
  if (s->at >= s->tensor->count)
    return;
  size_t size = dtype_size(s->tensor->dtype);
  const struct string_view *text = value && s->is_text ? value : &nothing;
  if (s->is_text)
    string_output_put(&s->text, text->data, text->size);
  else if (value)
    memcpy((char *)s->tensor->data + (size_t)s->at * size, value, size);
  else
    memset((char *)s->tensor->data + (size_t)s->at * size, 0, size);
  s->at++;
}

static void put_packed_floats(struct example_sink *s, const struct wire_field *field) {
  int64_t room = s->tensor->count - s->at, count = (int64_t)(field->size / sizeof(float));
  count = count < room ? count : room;
  if (count)
    memcpy((float *)s->tensor->data + s->at, field->data, (size_t)count * sizeof(float));
  s->at += count;
}

static void put_packed_ints(struct example_sink *s, struct wire packed) {
  uint64_t value;
  while (s->at < s->tensor->count && packed.at < packed.end && wire_varint(&packed, &value))
    ((int64_t *)s->tensor->data)[s->at++] = (int64_t)value;
}

void example_sink_put_list(struct example_sink *s, struct wire list) {
  struct wire_field field;
  while (wire_next(&list, &field)) {
    bool is_packed = field.type == WIRE_BYTES;
    if (field.number != 1 || (s->is_text && !is_packed))
      continue;
    if (s->is_text)
      example_sink_put(s, &(struct string_view){(const char *)field.data, field.size});
    else if (!is_packed)
      example_sink_put(s, &field.value);
    else if (s->tensor->dtype == DTYPE_FLOAT)
      put_packed_floats(s, &field);
    else
      put_packed_ints(s, wire_inside(&field));
  }
}

void example_sink_put_elements(struct example_sink *s, const struct tensor *from, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    example_sink_put(s, (const char *)from->data + (size_t)(from->count == 1 ? 0 : i) * dtype_size(from->dtype));
}

status example_sink_end(struct example_sink *s) { return s->is_text ? string_output_end(&s->text) : OK; }

/* ---- keys ---- */

void example_keys_add(struct example_keys *keys, struct string_view key, uint32_t feature) {
  vec_push(&keys->list, (struct example_key){key, feature});
}

static int compare_text(struct string_view a, struct string_view b) {
  if (a.size != b.size)
    return a.size < b.size ? -1 : 1;
  return a.size ? memcmp(a.data, b.data, a.size) : 0;
}

static int compare_keys(const void *a, const void *b) {
  const struct example_key *x = a, *y = b;
  int order = compare_text(x->key, y->key);
  return order ? order : (x->feature > y->feature) - (x->feature < y->feature);
}

void example_keys_sort(struct example_keys *keys) {
  if (keys->list.count)
    qsort(keys->list.items, keys->list.count, sizeof *keys->list.items, compare_keys);
}

const struct example_key *example_keys_find(const struct example_keys *keys, struct string_view key, uint32_t *count) {
  uint32_t at = 0;
  for (uint32_t end = keys->list.count; at < end;) {
    uint32_t middle = at + (end - at) / 2;
    if (compare_text(keys->list.items[middle].key, key) < 0)
      at = middle + 1;
    else
      end = middle;
  }
  *count = 0;
  while (at + *count < keys->list.count && compare_text(keys->list.items[at + *count].key, key) == 0)
    ++*count;
  return keys->list.items + at;
}
