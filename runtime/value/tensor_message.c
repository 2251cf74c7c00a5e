/* tensor_message.c: TensorProto on the wire (tensor.proto: 1 dtype, 2 shape, 4 content, 5.. values by type). */
#include "runtime/value/tensor_message.h"

#include <stdlib.h>
#include <string.h>

#define SPLAT_BYTES (INT64_C(64) << 20) /* what a few values may be spread over: real constants of this form are small */

struct proto {
  int dtype;
  struct shape shape;
  bool rank_is_unknown, rank_is_too_large;
  const uint8_t *content;
  size_t content_size;
  struct wire fields; /* again, for the values */
};

static void shape_read(struct wire wire, struct proto *proto) {
  struct wire_field field, inner;
  while (wire_next(&wire, &field)) {
    if (field.number == 3 && field.value)
      proto->rank_is_unknown = true;
    if (field.number != 2)
      continue;
    if (proto->shape.rank == LIMIT_RANK) {
      proto->rank_is_too_large = true;
      return;
    }
    int64_t size = 0;
    for (struct wire dim = wire_inside(&field); wire_next(&dim, &inner);)
      if (inner.number == 1)
        size = (int64_t)inner.value;
    proto->shape.dims[proto->shape.rank++] = size;
  }
}

static status fields_read(struct wire wire, struct proto *out) {
  struct wire_field field;
  *out = (struct proto){.fields = wire};
  while (wire_next(&wire, &field)) {
    if (field.number == 1)
      out->dtype = (int)field.value;
    else if (field.number == 2)
      shape_read(wire_inside(&field), out);
    else if (field.number == 4 && field.type == WIRE_BYTES) {
      out->content = field.data;
      out->content_size = field.size;
    }
  }
  if (wire.is_bad || out->rank_is_unknown || shape_count(&out->shape) < 0)
    return fail(INVALID_ARGUMENT, "a TensorProto that is none");
  if (out->rank_is_too_large)
    return fail(UNIMPLEMENTED, "a tensor of more than %d dimensions", LIMIT_RANK);
  return OK;
}

static status proto_read(struct wire wire, struct proto *out) {
  TRY(fields_read(wire, out));
  if (!dtype_is_valid(out->dtype) || out->dtype == DTYPE_RESOURCE || out->dtype == DTYPE_VARIANT)
    return fail(INVALID_ARGUMENT, "a tensor of type %s cannot be fed",
                dtype_is_valid(out->dtype) ? dtype_name((enum dtype)out->dtype) : "(invalid)");
  return OK;
}

/* ---- strings ---- */

/* Views into the message: tensor_copy_in gives them bytes of their own. */
static status strings_from_content(const struct proto *proto, int64_t count, struct string_view *out) {
  struct wire wire = wire_over(proto->content, proto->content_size);
  uint64_t total = 0;
  for (int64_t i = 0; i < count; i++) {
    if (!wire_varint(&wire, &out[i].size) || out[i].size > proto->content_size)
      return fail(INVALID_ARGUMENT, "strings whose lengths do not fit their bytes");
    total += out[i].size;
    if (total > proto->content_size)
      return fail(INVALID_ARGUMENT, "strings whose lengths do not fit their bytes");
  }
  if (total != (uint64_t)(wire.end - wire.at))
    return fail(INVALID_ARGUMENT, "strings whose lengths do not fit their bytes");
  for (int64_t i = 0; i < count; i++) {
    out[i].data = (const char *)wire.at;
    wire.at += out[i].size;
  }
  return OK;
}

static void strings_from_values(const struct proto *proto, int64_t count, struct string_view *out) {
  struct wire wire = proto->fields;
  struct wire_field field;
  int64_t taken = 0;
  while (taken < count && wire_next(&wire, &field))
    if (field.number == 8 && field.type == WIRE_BYTES)
      out[taken++] = (struct string_view){(const char *)field.data, field.size};
  struct string_view last = taken > 0 ? out[taken - 1] : (struct string_view){"", 0};
  while (taken < count)
    out[taken++] = last;
}

static status strings_read(const struct proto *proto, int64_t count, struct tensor **out) {
  bool has_content = proto->content_size > 0;
  if (has_content ? (uint64_t)count > proto->content_size : count * 16 > SPLAT_BYTES + (proto->fields.end - proto->fields.at) * 16)
    return fail(INVALID_ARGUMENT, "%lld strings in %zu bytes", (long long)count, proto->content_size);
  struct string_view *views = calloc((size_t)count + 1, sizeof *views);
  if (!views)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld strings", (long long)count);
  status code = OK;
  if (has_content)
    code = strings_from_content(proto, count, views);
  else
    strings_from_values(proto, count, views);
  int64_t bytes = 0;
  for (int64_t i = 0; i < count; i++)
    bytes += (int64_t)views[i].size < SPLAT_BYTES ? (int64_t)views[i].size : SPLAT_BYTES;
  if (code == OK && bytes > SPLAT_BYTES + (proto->fields.end - proto->fields.at))
    code = fail(INVALID_ARGUMENT, "strings of %lld bytes from one that is repeated", (long long)bytes);
  if (code == OK)
    code = tensor_copy_in(DTYPE_STRING, &proto->shape, views, out);
  free(views);
  return code;
}

/* ---- numbers ---- */

/* The field that holds values of a type, and the bytes of one on the wire: 0 is a varint. parts: values for an element. */
struct value_field {
  uint32_t number;
  size_t fixed;
  int parts;
};
static struct value_field value_field_of(enum dtype dtype) {
  switch (dtype) {
  case DTYPE_FLOAT: return (struct value_field){5, 4, 1};
  case DTYPE_DOUBLE: return (struct value_field){6, 8, 1};
  case DTYPE_COMPLEX64: return (struct value_field){9, 4, 2};
  case DTYPE_COMPLEX128: return (struct value_field){12, 8, 2};
  case DTYPE_INT64: return (struct value_field){10, 0, 1};
  case DTYPE_BOOL: return (struct value_field){11, 0, 1};
  case DTYPE_HALF:
  case DTYPE_BFLOAT16: return (struct value_field){13, 0, 1};
  case DTYPE_UINT32: return (struct value_field){16, 0, 1};
  case DTYPE_UINT64: return (struct value_field){17, 0, 1};
  default: return (struct value_field){7, 0, 1};
  }
}

struct value_sink {
  uint8_t *at, *end;
  size_t size; /* of one value in memory */
};

static void value_put(struct value_sink *sink, uint64_t value) {
  if (sink->at < sink->end) {
    memcpy(sink->at, &value, sink->size);
    sink->at += sink->size;
  }
}

static void values_take(const struct wire_field *field, size_t fixed, struct value_sink *sink) {
  uint64_t value = 0;
  if (field->type != WIRE_BYTES) {
    value_put(sink, field->value);
    return;
  }
  for (struct wire packed = wire_inside(field); packed.at < packed.end && sink->at < sink->end;)
    if (fixed ? wire_fixed(&packed, fixed, &value) : wire_varint(&packed, &value))
      value_put(sink, value);
    else
      return;
}

static void numbers_from_values(const struct proto *proto, struct tensor *tensor) {
  struct value_field kind = value_field_of(tensor->dtype);
  size_t element = dtype_size(tensor->dtype);
  uint8_t *begin = tensor->data;
  struct value_sink sink = {begin, begin + tensor_byte_size(tensor), element / (size_t)kind.parts};
  struct wire wire = proto->fields;
  struct wire_field field;
  while (wire_next(&wire, &field))
    if (field.number == kind.number)
      values_take(&field, kind.fixed, &sink);
  size_t taken = (size_t)(sink.at - begin) / element * element;
  if (taken == 0) {
    memset(begin, 0, (size_t)tensor_byte_size(tensor));
    return;
  }
  for (uint8_t *at = begin + taken; at < sink.end; at += element)
    memcpy(at, begin + taken - element, element);
}

static status numbers_read(const struct proto *proto, int64_t count, struct tensor **out) {
  int64_t bytes = count * (int64_t)dtype_size((enum dtype)proto->dtype);
  if (proto->content_size > 0 && bytes != (int64_t)proto->content_size)
    return fail(INVALID_ARGUMENT, "a tensor %s%s has %lld bytes, not %zu", dtype_name((enum dtype)proto->dtype), shape_text(&proto->shape),
                (long long)bytes, proto->content_size);
  if (proto->content_size > 0)
    return tensor_copy_in((enum dtype)proto->dtype, &proto->shape, proto->content, out);
  if (bytes > SPLAT_BYTES + (proto->fields.end - proto->fields.at) * 8)
    return fail(INVALID_ARGUMENT, "a tensor %s%s from a few values", dtype_name((enum dtype)proto->dtype), shape_text(&proto->shape));
  TRY(tensor_create((enum dtype)proto->dtype, &proto->shape, out));
  if (count > 0)
    numbers_from_values(proto, *out);
  return OK;
}

status tensor_message_read(struct wire wire, struct tensor **out) {
  struct proto proto;
  TRY(proto_read(wire, &proto));
  int64_t count = shape_count(&proto.shape);
  return proto.dtype == DTYPE_STRING ? strings_read(&proto, count, out) : numbers_read(&proto, count, out);
}

status tensor_message_head(struct wire wire, struct shape *shape, struct wire *content) {
  struct proto proto;
  TRY(fields_read(wire, &proto));
  *shape = proto.shape;
  *content = wire_over(proto.content, proto.content_size);
  return OK;
}

/* ---- writing ---- */

static void head_write(struct wire_buffer *b, const struct tensor *tensor) {
  wire_put_varint(b, 1, (uint64_t)tensor->dtype);
  size_t shape = wire_begin(b, 2);
  for (int i = 0; i < tensor->shape.rank; i++) {
    size_t dim = wire_begin(b, 2);
    wire_put_varint(b, 1, (uint64_t)tensor->shape.dims[i]);
    wire_end(b, dim);
  }
  wire_end(b, shape);
}

static uint64_t values_size(const struct tensor *tensor) {
  if (tensor->count == 0)
    return 0;
  if (tensor->dtype != DTYPE_STRING) {
    uint64_t bytes = (uint64_t)tensor_byte_size(tensor);
    return 1 + wire_number_size(bytes) + bytes;
  }
  const struct string_view *strings = tensor->data;
  uint64_t size = 0;
  for (int64_t i = 0; i < tensor->count; i++)
    size += 1 + wire_number_size(strings[i].size) + strings[i].size;
  return size;
}

void tensor_message_put_head(struct wire_buffer *out, const struct tensor *tensor) {
  struct wire_buffer shape = {0};
  wire_put_varint(out, 1, tensor->dtype);
  for (int d = 0; d < tensor->shape.rank; d++) {
    struct wire_buffer dim = {0};
    if (tensor->shape.dims[d])
      wire_put_varint(&dim, 1, (uint64_t)tensor->shape.dims[d]);
    wire_put_message(&shape, 2, &dim);
  }
  wire_put_message(out, 2, &shape);
}

/* Element i, as a varint has it. */
static uint64_t value_bits(const struct tensor *tensor, int64_t i) {
  size_t size = dtype_size(tensor->dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const uint8_t *)tensor->data + (size_t)i * size, size);
  int unused = 64 - 8 * (int)size;
  bool is_signed = dtype_is_signed(tensor->dtype) || (tensor->dtype >= DTYPE_QINT8 && tensor->dtype <= DTYPE_QINT32);
  return is_signed ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits;
}

void tensor_message_put_values(struct wire_buffer *b, const struct tensor *tensor) {
  struct value_field kind = value_field_of(tensor->dtype);
  const struct string_view *strings = tensor->data;
  tensor_message_put_head(b, tensor);
  for (int64_t i = 0; tensor->dtype == DTYPE_STRING && i < tensor->count; i++)
    wire_put_bytes(b, 8, strings[i].data, (size_t)strings[i].size);
  if (tensor->dtype == DTYPE_STRING || tensor->count == 0)
    return;
  if (kind.fixed) {
    wire_put_bytes(b, kind.number, tensor->data, (size_t)tensor_byte_size(tensor));
    return;
  }
  struct wire_buffer packed = {0};
  for (int64_t i = 0; i < tensor->count; i++)
    wire_put_number(&packed, value_bits(tensor, i));
  wire_put_message(b, kind.number, &packed);
}

static void values_write(struct wire_buffer *b, const struct tensor *tensor) {
  if (tensor->dtype != DTYPE_STRING) {
    if (tensor->count > 0)
      wire_put_bytes(b, 4, tensor->data, (size_t)tensor_byte_size(tensor));
    return;
  }
  const struct string_view *strings = tensor->data;
  for (int64_t i = 0; i < tensor->count; i++)
    wire_put_bytes(b, 8, strings[i].data, (size_t)strings[i].size);
}

/* Sizes first: the values may be gigabytes and are written once. */
void tensor_message_write(struct wire_buffer *b, uint32_t number, const char *name, const struct tensor *tensor) {
  struct wire_buffer head = {0};
  head_write(&head, tensor);
  uint64_t proto_size = head.size + values_size(tensor);
  if (name) {
    size_t name_size = strlen(name);
    uint64_t size = 1 + wire_number_size(name_size) + name_size + 1 + wire_number_size(proto_size) + proto_size;
    wire_put_bytes_head(b, number, size);
    wire_put_bytes(b, 1, name, name_size);
  }
  wire_put_bytes_head(b, name ? 2 : number, proto_size);
  wire_put_raw(b, head.data, head.size);
  values_write(b, tensor);
  b->is_bad = b->is_bad || head.is_bad;
  wire_buffer_free(&head);
}
