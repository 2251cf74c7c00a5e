/* master_attr.c: the hash of an attribute's value from its message (attr_value.proto), as ir/graph/attr_hash.c makes it. */
#include "runtime/master/master_attr.h"

#include <string.h>
#include "base/map.h"
#include "runtime/program/program.h"

static uint64_t feed_i64(uint64_t hash, int64_t value) { return hash_bytes(&value, sizeof value, hash); }

static uint64_t feed_text(uint64_t hash, const void *data, uint64_t size) { return hash_bytes(data, size, feed_i64(hash, (int64_t)size)); }

/* TensorShapeProto: 2 dim {1 size}, 3 unknown_rank. */
static uint64_t feed_shape(uint64_t hash, struct wire wire) {
  struct wire_field field, inner;
  int64_t rank = 0;
  struct wire again = wire;
  while (wire_next(&wire, &field)) {
    rank += field.number == 2;
    if (field.number == 3 && field.value)
      return feed_i64(hash, -1);
  }
  hash = feed_i64(hash, rank);
  while (wire_next(&again, &field)) {
    int64_t size = 0;
    if (field.number != 2)
      continue;
    for (struct wire dim = wire_inside(&field); wire_next(&dim, &inner);)
      if (inner.number == 1)
        size = (int64_t)inner.value;
    hash = feed_i64(hash, size);
  }
  return hash;
}

static bool feed_tensor(uint64_t *hash, struct wire wire) {
  struct tensor *tensor = NULL;
  if (tensor_message_read(wire, &tensor) != OK)
    return false;
  *hash = feed_i64(feed_i64(*hash, tensor->dtype), tensor->shape.rank);
  for (int i = 0; i < tensor->shape.rank; i++)
    *hash = feed_i64(*hash, tensor->shape.dims[i]);
  if (tensor->dtype != DTYPE_STRING)
    *hash = hash_bytes(tensor->data, (size_t)tensor_byte_size(tensor), *hash);
  const struct string_view *strings = tensor->data;
  for (int64_t i = 0; tensor->dtype == DTYPE_STRING && i < tensor->count; i++)
    *hash = feed_text(*hash, strings[i].data, strings[i].size);
  tensor_release(tensor);
  return true;
}

/* NameAttrList: 1 name. */
static uint64_t feed_function(uint64_t hash, struct wire wire) {
  struct wire_field field, name = {.data = (const uint8_t *)""};
  while (wire_next(&wire, &field))
    if (field.number == 1 && field.type == WIRE_BYTES)
      name = field;
  return feed_text(hash, name.data, name.size);
}

/* Fields of AttrValue and, alike, of ListValue; 0: none of them. */
static const uint8_t kinds[] = {[2] = PROGRAM_ATTR_STRING, [3] = PROGRAM_ATTR_INT,   [4] = PROGRAM_ATTR_FLOAT,  [5] = PROGRAM_ATTR_BOOL,
                                [6] = PROGRAM_ATTR_TYPE,   [7] = PROGRAM_ATTR_SHAPE, [8] = PROGRAM_ATTR_TENSOR, [9] = PROGRAM_ATTR_FUNC};

static uint64_t feed_number(uint64_t hash, enum program_attr_kind kind, uint64_t value) {
  uint32_t bits = (uint32_t)value;
  hash = feed_i64(hash, kind);
  if (kind == PROGRAM_ATTR_FLOAT)
    return hash_bytes(&bits, sizeof bits, hash);
  return feed_i64(hash, kind == PROGRAM_ATTR_BOOL ? value != 0 : (int64_t)value);
}

static bool kind_is_number(enum program_attr_kind kind) {
  return kind == PROGRAM_ATTR_INT || kind == PROGRAM_ATTR_FLOAT || kind == PROGRAM_ATTR_BOOL || kind == PROGRAM_ATTR_TYPE;
}

static bool feed_value(uint64_t *hash, enum program_attr_kind kind, const struct wire_field *field) {
  if (kind_is_number(kind)) {
    *hash = feed_number(*hash, kind, field->value);
    return field->type != WIRE_BYTES;
  }
  *hash = feed_i64(*hash, kind);
  if (kind == PROGRAM_ATTR_TENSOR)
    return feed_tensor(hash, wire_inside(field));
  if (kind == PROGRAM_ATTR_STRING)
    *hash = feed_text(*hash, field->data, field->size);
  else if (kind == PROGRAM_ATTR_SHAPE)
    *hash = feed_shape(*hash, wire_inside(field));
  else
    *hash = feed_function(*hash, wire_inside(field));
  return field->type == WIRE_BYTES;
}

static bool feed_packed(uint64_t *hash, enum program_attr_kind kind, struct wire packed) {
  uint64_t value = 0;
  while (packed.at < packed.end) {
    if (!(kind == PROGRAM_ATTR_FLOAT ? wire_fixed(&packed, 4, &value) : wire_varint(&packed, &value)))
      return false;
    *hash = feed_number(*hash, kind, value);
  }
  return true;
}

static bool feed_list(uint64_t *hash, struct wire wire) {
  struct wire_field field;
  *hash = feed_i64(*hash, PROGRAM_ATTR_LIST);
  while (wire_next(&wire, &field)) {
    enum program_attr_kind kind = field.number < sizeof kinds ? (enum program_attr_kind)kinds[field.number] : PROGRAM_ATTR_NONE;
    bool is_packed = kind_is_number(kind) && field.type == WIRE_BYTES;
    if (kind == PROGRAM_ATTR_NONE || !(is_packed ? feed_packed(hash, kind, wire_inside(&field)) : feed_value(hash, kind, &field)))
      return false;
  }
  return !wire.is_bad;
}

/* 0: not compared. */
static uint32_t value_hash(struct wire wire) {
  struct wire_field field;
  uint64_t hash = 0;
  bool is_fed = false;
  while (wire_next(&wire, &field)) {
    enum program_attr_kind kind = field.number < sizeof kinds ? (enum program_attr_kind)kinds[field.number] : PROGRAM_ATTR_NONE;
    hash = 0; /* one of them: the last counts */
    if (field.number == 10)
      is_fed = feed_value(&hash, PROGRAM_ATTR_FUNC, &field);
    else
      is_fed = field.number == 1 ? feed_list(&hash, wire_inside(&field))
                                 : kind != PROGRAM_ATTR_NONE && field.number != 9 && feed_value(&hash, kind, &field);
  }
  if (!is_fed || wire.is_bad)
    return 0;
  return (uint32_t)hash ? (uint32_t)hash : 1;
}

bool master_attr_agrees(const struct master_node *node, struct wire entry) {
  struct wire_field field, name = {.size = 0}, value = {.size = 0};
  while (wire_next(&entry, &field)) {
    if (field.number == 1)
      name = field;
    else if (field.number == 2)
      value = field;
  }
  if (name.type != WIRE_BYTES || name.size == 0 || name.data[0] == '_')
    return true;
  uint32_t wanted = (uint32_t)hash_bytes(name.data, name.size, 0);
  for (uint32_t i = 0; i < node->attr_count; i++)
    if (node->attrs[2 * i] == wanted) {
      uint32_t hash = node->attrs[2 * i + 1] ? value_hash(wire_inside(&value)) : 0;
      return hash == 0 || hash == node->attrs[2 * i + 1];
    }
  return true;
}
