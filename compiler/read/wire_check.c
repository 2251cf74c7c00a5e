/* wire_check.c: a look over protobuf bytes before they are unpacked: unpacking recurses and allocates as the input says.
 * Following the descriptor, this checks that lengths lie inside of their parents, that nesting is bounded, that strings
 * are what they seem (no NUL inside), and adds up what unpacking will take: an empty message of two bytes becomes a struct
 * of hundreds. */
#include <stdbool.h>
#include <string.h>

#include "compiler/read/import.h"

#define DEPTH_MAX 100    /* protobuf's own limit: TensorFlow reads nothing deeper */
#define MEMORY_FACTOR 64 /* unpacked bytes for each byte of the file; real graphs need 5 */
#define MEMORY_FREE (UINT64_C(4) << 20)
#define SCANNED_FIELD 64 /* what protobuf-c keeps for a field while it reads the message */

struct cursor {
  const uint8_t *at, *end;
};
struct wire_reader {
  uint64_t memory, memory_max;
};

static bool take_varint(struct cursor *c, uint64_t *out) {
  uint64_t v = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (c->at == c->end)
      return false;
    uint8_t b = *c->at++;
    if (shift < 64)
      v |= (uint64_t)(b & 127) << shift;
    if (!(b & 128)) {
      *out = v;
      return true;
    }
  }
  return false;
}

/* Moves over one field; `payload` is what it holds when it is length-delimited. */
static bool take_field(struct cursor *c, uint32_t *id, unsigned *wire_type, struct cursor *payload) {
  uint64_t tag, value;
  *payload = (struct cursor){0};
  if (!take_varint(c, &tag) || tag >> 3 == 0 || tag >> 3 > 536870911)
    return false;
  *id = (uint32_t)(tag >> 3);
  *wire_type = (unsigned)tag & 7;
  size_t left = (size_t)(c->end - c->at), skip;
  switch (*wire_type) {
  case 0: return take_varint(c, &value);
  case 1: skip = 8; break;
  case 5: skip = 4; break;
  case 2:
    if (!take_varint(c, &value) || value > (uint64_t)(c->end - c->at))
      return false;
    *payload = (struct cursor){c->at, c->at + value};
    c->at += value;
    return true;
  default: return false; /* groups: no message of ours has any */
  }
  if (skip > left)
    return false;
  c->at += skip;
  return true;
}

static bool is_length_delimited(const ProtobufCFieldDescriptor *field) {
  return field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES || field->type == PROTOBUF_C_TYPE_MESSAGE;
}

static status check_message(struct wire_reader *r, const ProtobufCMessageDescriptor *message, struct cursor c, int depth);

static status check_field(struct wire_reader *r, const ProtobufCFieldDescriptor *field, unsigned wire_type, struct cursor payload,
                          int depth) {
  size_t size = (size_t)(payload.end - payload.at);
  bool delimited = wire_type == 2;
  r->memory += SCANNED_FIELD;
  if (!field || !delimited) {
    r->memory += delimited ? size : 16;
    return OK;
  }
  if (!is_length_delimited(field)) { /* packed: elements of one byte become up to eight */
    r->memory += size * 8 + 16;
    return OK;
  }
  r->memory += 16; /* pointer, or bytes with their length */
  if (field->type == PROTOBUF_C_TYPE_MESSAGE)
    return check_message(r, field->descriptor, payload, depth + 1);
  r->memory += size + 16;
  if (field->type == PROTOBUF_C_TYPE_STRING && memchr(payload.at, 0, size))
    return fail(INVALID_ARGUMENT, "a '%s' has a NUL inside", field->name);
  return OK;
}

static status check_message(struct wire_reader *r, const ProtobufCMessageDescriptor *message, struct cursor c, int depth) {
  if (depth > DEPTH_MAX)
    return fail(INVALID_ARGUMENT, "is nested more than %d deep", DEPTH_MAX);
  r->memory += message->sizeof_message + 16;
  while (c.at < c.end) {
    uint32_t id;
    unsigned wire_type;
    struct cursor payload;
    if (!take_field(&c, &id, &wire_type, &payload))
      return fail(INVALID_ARGUMENT, "a %s is damaged or cut off", message->short_name);
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(message, id);
    TRY(check_field(r, field, wire_type, payload, depth));
    if (r->memory > r->memory_max)
      return fail(RESOURCE_EXHAUSTED, "would take more than %d times its size in memory", MEMORY_FACTOR);
  }
  return OK;
}

status wire_check(const ProtobufCMessageDescriptor *message, const void *data, size_t size) {
  struct wire_reader r = {.memory_max = size * MEMORY_FACTOR + MEMORY_FREE};
  return check_message(&r, message, (struct cursor){data, (const uint8_t *)data + size}, 0);
}
