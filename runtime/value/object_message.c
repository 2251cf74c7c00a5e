/* object_message.c: see object_message.h. An element is VariantTensorDataProto (tensor.proto: 1 type name, 2 metadata, 3 tensors); content
 * holds the sizes of all, as varints, and then themselves. */
#include "runtime/value/object_message.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/value/tensor_message.h"

#define ITEMS_MAX 256                   /* tensors of one element: ragged ones have a dimension each, structures their leaves */
#define SPLAT_BYTES (INT64_C(64) << 20) /* what a few values may be spread over, in all elements together */
#define VALUE_BYTES 16                  /* at most, of what takes a byte in a message */

static const struct object_message *const messages[] = {&ragged_message, &composite_message, &tensor_object_message};

/* ---- writing ---- */

static status element_write(struct wire_buffer *b, const struct object *object) {
  const struct object_message *message = object ? object->kind->message : NULL;
  if (!message)
    return fail(UNIMPLEMENTED, "a variant (%s) as bytes", object ? object->kind->name : "empty");
  wire_put_text(b, 1, message->type_name);
  struct string_view metadata = message->metadata ? message->metadata(object) : (struct string_view){0};
  if (metadata.size)
    wire_put_bytes(b, 2, metadata.data, metadata.size);
  for (uint32_t i = 0; message->item(object, i); i++) {
    const struct tensor *item = message->item(object, i);
    struct wire_buffer inner = {0};
    if (item->dtype == DTYPE_VARIANT || item->dtype == DTYPE_RESOURCE)
      return fail(UNIMPLEMENTED, "a variant (%s) that holds a %s as bytes", object->kind->name, dtype_name(item->dtype));
    tensor_message_put_values(&inner, item);
    wire_put_message(b, 3, &inner);
  }
  return OK;
}

status objects_message_write(struct wire_buffer *b, const struct tensor *tensor) {
  struct wire_buffer sizes = {0}, elements = {0};
  status s = OK;
  for (int64_t i = 0; i < tensor->count && s == OK; i++) {
    struct wire_buffer element = {0};
    s = element_write(&element, objects_of(tensor)[i]);
    wire_put_number(&sizes, element.size);
    wire_put_raw(&elements, element.data, element.size);
    elements.is_bad |= element.is_bad;
    wire_buffer_free(&element);
  }
  tensor_message_put_head(b, tensor);
  wire_put_raw(&sizes, elements.data, elements.size);
  if (sizes.size)
    wire_put_bytes(b, 4, sizes.data, sizes.size);
  b->is_bad |= sizes.is_bad || elements.is_bad;
  wire_buffer_free(&sizes);
  wire_buffer_free(&elements);
  return s;
}

/* ---- reading ---- */

static status find_message(const struct wire_field *name, const struct object_message **out) {
  char shown[64] = "";
  for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
    if (name->size == strlen(messages[i]->type_name) && memcmp(name->data, messages[i]->type_name, name->size) == 0) {
      *out = messages[i];
      return OK;
    }
  for (size_t i = 0; i < name->size && i + 1 < sizeof shown; i++)
    shown[i] = name->data[i] < ' ' || name->data[i] > '~' ? '?' : (char)name->data[i];
  return fail(UNIMPLEMENTED, "a variant of the type '%s'", shown);
}

struct parts {
  const struct object_message *message;
  struct string_view metadata;
  struct tensor *items[ITEMS_MAX];
  uint32_t count;
};

static status item_read(struct wire wire, struct parts *p, int64_t *room) {
  if (p->count == ITEMS_MAX)
    return fail(UNIMPLEMENTED, "a variant of more than %d tensors", ITEMS_MAX);
  TRY(tensor_message_read(wire, &p->items[p->count]));
  *room -= p->items[p->count++]->count * VALUE_BYTES;
  return *room >= 0 ? OK : fail(INVALID_ARGUMENT, "large variants from a few values");
}

/* What it holds is the caller's to release, also where this fails. */
static status parts_read(struct wire wire, struct parts *p, int64_t *room) {
  struct wire_field field;
  while (wire_next(&wire, &field)) {
    if (field.type != WIRE_BYTES)
      continue;
    if (field.number == 1)
      TRY(find_message(&field, &p->message));
    if (field.number == 2)
      p->metadata = (struct string_view){(const char *)field.data, field.size};
    if (field.number == 3)
      TRY(item_read(wire_inside(&field), p, room));
  }
  return wire.is_bad || !p->message ? fail(INVALID_ARGUMENT, "a variant that is none") : OK;
}

static status element_read(struct wire wire, int64_t *room, struct object **out) {
  struct parts p = {0};
  status s = parts_read(wire, &p, room);
  if (s == OK)
    s = p.message->make(p.items, p.count, p.metadata, out);
  for (uint32_t i = 0; i < p.count; i++)
    tensor_release(p.items[i]);
  return s;
}

static status elements_read(struct wire content, struct tensor *tensor) {
  struct wire sizes = content;
  int64_t room = SPLAT_BYTES + (content.end - content.at) * VALUE_BYTES;
  uint64_t size;
  for (int64_t i = 0; i < tensor->count; i++)
    if (!wire_varint(&content, &size))
      return fail(INVALID_ARGUMENT, "%lld variants in fewer bytes", (long long)tensor->count);
  for (int64_t i = 0; i < tensor->count; i++) {
    struct object *object;
    if (!wire_varint(&sizes, &size) || size > (uint64_t)(content.end - content.at))
      return fail(INVALID_ARGUMENT, "variants whose lengths do not fit their bytes");
    TRY(element_read(wire_over(content.at, (size_t)size), &room, &object));
    objects_put(tensor, i, object);
    content.at += size;
  }
  return OK;
}

bool is_objects_message(struct wire wire) {
  struct wire_field field;
  uint64_t dtype = 0;
  while (wire_next(&wire, &field))
    if (field.number == 1 && field.type == WIRE_VARINT)
      dtype = field.value;
  return dtype == DTYPE_VARIANT;
}

status objects_message_read(struct wire wire, struct tensor **out) {
  struct shape shape;
  struct wire content;
  struct tensor *made;
  TRY(tensor_message_head(wire, &shape, &content));
  if (shape_count(&shape) > content.end - content.at)
    return fail(INVALID_ARGUMENT, "%lld variants in fewer bytes", (long long)shape_count(&shape));
  TRY(objects_create(&shape, &made));
  status s = elements_read(content, made);
  if (s == OK)
    *out = made;
  else
    tensor_release(made);
  return s;
}
