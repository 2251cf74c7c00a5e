/* checkpoint_v1_write.c: writing checkpoints of the first form, as TensorFlow's Save and SaveSlices do. */
#include <stdlib.h>
#include <string.h>

#include "base/bundle_table_write.h"
#include "base/checkpoint_v1.h"

/* ---- messages ---- */

static int64_t integer_at(const struct tensor *t, int64_t i) {
  switch (t->dtype) {
  case DTYPE_INT64:
  case DTYPE_UINT64: return ((const int64_t *)t->data)[i];
  case DTYPE_UINT32: return ((const uint32_t *)t->data)[i];
  case DTYPE_INT32:
  case DTYPE_QINT32: return ((const int32_t *)t->data)[i];
  case DTYPE_INT16:
  case DTYPE_QINT16: return ((const int16_t *)t->data)[i];
  case DTYPE_INT8:
  case DTYPE_QINT8: return ((const int8_t *)t->data)[i];
  case DTYPE_UINT16:
  case DTYPE_QUINT16:
  case DTYPE_HALF:
  case DTYPE_BFLOAT16: return ((const uint16_t *)t->data)[i];
  default: return ((const uint8_t *)t->data)[i];
  }
}

static uint32_t integer_field(enum dtype dtype) {
  switch (dtype) {
  case DTYPE_INT64: return 10;
  case DTYPE_BOOL: return 11;
  case DTYPE_HALF:
  case DTYPE_BFLOAT16: return 13;
  case DTYPE_UINT32: return 16;
  case DTYPE_UINT64: return 17;
  default: return 7;
  }
}

/* TensorProto: its values in the field of their dtype. */
static void put_values(struct wire_buffer *out, const struct tensor *t) {
  bool wide = t->dtype == DTYPE_DOUBLE || t->dtype == DTYPE_COMPLEX128, floats = t->dtype == DTYPE_FLOAT || t->dtype == DTYPE_COMPLEX64;
  if (t->dtype == DTYPE_STRING) {
    const struct string_view *views = t->data;
    for (int64_t i = 0; i < t->count; i++)
      wire_put_bytes(out, 8, views[i].data, views[i].size);
  } else if (wide || floats) {
    uint32_t number = t->dtype == DTYPE_FLOAT ? 5 : t->dtype == DTYPE_DOUBLE ? 6 : t->dtype == DTYPE_COMPLEX64 ? 9 : 12;
    wire_put_bytes(out, number, t->data, (size_t)t->count * dtype_size(t->dtype));
  } else {
    struct wire_buffer packed = {0};
    for (int64_t i = 0; i < t->count; i++)
      wire_put_number(&packed, (uint64_t)integer_at(t, i));
    wire_put_message(out, integer_field(t->dtype), &packed);
  }
}

/* ---- the file ---- */

struct item {
  const char *key;
  size_t key_size;
  const struct checkpoint_v1_tensor *tensor;
};

static int item_order(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  return bundle_key_order(x->key, x->key_size, y->key, y->key_size);
}

/* SavedTensorSlices.meta: each tensor with its slices. A name that comes again has another slice of the same tensor. */
static void put_meta(struct wire_buffer *out, const struct checkpoint_v1_tensor *tensors, uint32_t count) {
  struct wire_buffer meta = {0}, versions = {0};
  for (uint32_t i = 0; i < count; i++) {
    struct wire_buffer one = {0};
    bool again = false;
    for (uint32_t k = 0; k < i && !again; k++)
      again = strcmp(tensors[k].name, tensors[i].name) == 0;
    if (again)
      continue;
    wire_put_text(&one, 1, tensors[i].name);
    checkpoint_put_shape(&one, &tensors[i].whole);
    wire_put_varint(&one, 3, tensors[i].tensor->dtype);
    for (uint32_t k = i; k < count; k++)
      if (strcmp(tensors[k].name, tensors[i].name) == 0)
        checkpoint_put_slice(&one, 4, &tensors[k].slice);
    wire_put_message(&meta, 1, &one);
  }
  wire_put_varint(&versions, 1, 1);
  wire_put_message(&meta, 2, &versions);
  wire_put_message(out, 1, &meta);
}

static void put_data(struct wire_buffer *out, const struct checkpoint_v1_tensor *t) {
  struct wire_buffer saved = {0}, values = {0};
  wire_put_text(&saved, 1, t->name);
  checkpoint_put_slice(&saved, 2, &t->slice);
  put_values(&values, t->tensor);
  wire_put_message(&saved, 3, &values);
  wire_put_message(out, 2, &saved);
}

static void put_items(struct wire_buffer *file, const struct checkpoint_v1_tensor *tensors, struct item *items, uint32_t count) {
  struct table_writer table;
  struct wire_buffer value = {0};
  table_begin(&table, file);
  put_meta(&value, tensors, count);
  table_put(&table, "", 0, value.data, value.size);
  wire_buffer_free(&value);
  qsort(items, count, sizeof *items, item_order);
  for (uint32_t i = 0; i < count; i++) {
    put_data(&value, items[i].tensor);
    table_put(&table, items[i].key, items[i].key_size, value.data, value.size);
    file->is_bad = file->is_bad || value.is_bad;
    wire_buffer_free(&value);
  }
  table_end(&table);
}

status checkpoint_v1_write(const char *path, const struct checkpoint_v1_tensor *tensors, uint32_t count) {
  struct arena arena;
  struct wire_buffer file = {0};
  arena_init(&arena);
  struct item *items = ARENA_ARRAY(&arena, struct item, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    items[i].tensor = &tensors[i];
    items[i].key = checkpoint_slice_key(tensors[i].name, &tensors[i].slice, &arena, &items[i].key_size);
  }
  put_items(&file, tensors, items, count);
  status s = table_write(&file, path, &arena);
  wire_buffer_free(&file);
  arena_deinit(&arena);
  return s;
}
