/* wire.c: protobuf's wire format. */
#include "base/wire.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 4 /* of a message written by begin and end: a padded varint, which every reader takes */

static bool bad(struct wire *wire) {
  wire->is_bad = true;
  return false;
}

bool wire_varint(struct wire *wire, uint64_t *out) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && wire->at < wire->end && !wire->is_bad; shift += 7) {
    uint8_t byte = *wire->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = value;
      return true;
    }
  }
  return bad(wire);
}

bool wire_fixed(struct wire *wire, size_t bytes, uint64_t *out) {
  if (wire->is_bad || (size_t)(wire->end - wire->at) < bytes)
    return bad(wire);
  *out = 0;
  memcpy(out, wire->at, bytes);
  wire->at += bytes;
  return true;
}

bool wire_next(struct wire *wire, struct wire_field *out) {
  uint64_t tag = 0;
  if (wire->is_bad || wire->at == wire->end || !wire_varint(wire, &tag))
    return false;
  *out = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = (enum wire_type)(tag & 7)};
  if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
    return bad(wire);
  switch (out->type) {
  case WIRE_VARINT: return wire_varint(wire, &out->value);
  case WIRE_FIXED64: return wire_fixed(wire, 8, &out->value);
  case WIRE_FIXED32: return wire_fixed(wire, 4, &out->value);
  case WIRE_BYTES:
    if (!wire_varint(wire, &out->value) || out->value > (uint64_t)(wire->end - wire->at))
      return bad(wire);
    out->data = wire->at;
    out->size = (size_t)out->value;
    wire->at += out->size;
    return true;
  }
  return bad(wire);
}

/* ---- writing ---- */

void wire_buffer_free(struct wire_buffer *b) {
  free(b->data);
  *b = (struct wire_buffer){0};
}

static bool reserve(struct wire_buffer *b, size_t more) {
  if (b->is_bad || more <= b->room - b->size)
    return !b->is_bad;
  size_t room = b->room * 2 > b->size + more ? b->room * 2 : b->size + more + 64;
  uint8_t *data = realloc(b->data, room);
  if (!data) {
    b->is_bad = true;
    return false;
  }
  b->data = data;
  b->room = room;
  return true;
}

void wire_put_raw(struct wire_buffer *b, const void *data, size_t size) {
  if (size == 0 || !reserve(b, size))
    return;
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

void wire_put_number(struct wire_buffer *b, uint64_t value) {
  uint8_t bytes[10];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7)
    bytes[count++] = (uint8_t)(value | 0x80);
  bytes[count++] = (uint8_t)value;
  wire_put_raw(b, bytes, count);
}

size_t wire_number_size(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7)
    size++;
  return size;
}

static void put_tag(struct wire_buffer *b, uint32_t number, enum wire_type type) { wire_put_number(b, (uint64_t)number << 3 | type); }

void wire_put_varint(struct wire_buffer *b, uint32_t number, uint64_t value) {
  put_tag(b, number, WIRE_VARINT);
  wire_put_number(b, value);
}

void wire_put_fixed64(struct wire_buffer *b, uint32_t number, uint64_t value) {
  put_tag(b, number, WIRE_FIXED64);
  wire_put_raw(b, &value, 8);
}

void wire_put_bytes_head(struct wire_buffer *b, uint32_t number, uint64_t size) {
  put_tag(b, number, WIRE_BYTES);
  wire_put_number(b, size);
}

void wire_put_bytes(struct wire_buffer *b, uint32_t number, const void *data, size_t size) {
  wire_put_bytes_head(b, number, size);
  wire_put_raw(b, data, size);
}

void wire_put_message(struct wire_buffer *buffer, uint32_t number, struct wire_buffer *content) {
  wire_put_bytes(buffer, number, content->data, content->size);
  buffer->is_bad = buffer->is_bad || content->is_bad;
  wire_buffer_free(content);
}

void wire_put_text(struct wire_buffer *b, uint32_t number, const char *text) { wire_put_bytes(b, number, text, strlen(text)); }

size_t wire_begin(struct wire_buffer *b, uint32_t number) {
  static const uint8_t room[LENGTH_BYTES];
  put_tag(b, number, WIRE_BYTES);
  wire_put_raw(b, room, sizeof room);
  return b->size;
}

void wire_end(struct wire_buffer *b, size_t begin) {
  size_t size = b->size - begin;
  if (b->is_bad || size >= UINT64_C(1) << 7 * LENGTH_BYTES) {
    b->is_bad = true;
    return;
  }
  for (int i = 0; i < LENGTH_BYTES; i++)
    b->data[begin - LENGTH_BYTES + (size_t)i] = (uint8_t)((size >> 7 * i & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
}
