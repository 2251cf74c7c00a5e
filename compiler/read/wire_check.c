/* wire_check.c: a look over protobuf bytes before they are unpacked: unpacking recurses and allocates as the input says, so
 * lengths must lie inside of their parents and nesting must be bounded first. Bytes that could be a message are followed as
 * one; text that only looks like one costs a little time and nothing else. */
#include "compiler/read/read.h"

struct cursor {
  const uint8_t *at, *end;
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

/* Moves over one field; *inner is its payload when it is length-delimited. False: this is no message. */
static bool take_field(struct cursor *c, struct cursor *inner) {
  uint64_t tag, value;
  inner->at = inner->end = NULL;
  if (!take_varint(c, &tag) || (tag >> 3) == 0 || (tag >> 3) > 536870911)
    return false;
  size_t left = (size_t)(c->end - c->at), skip = 0;
  switch (tag & 7) {
  case 0: return take_varint(c, &value);
  case 1: skip = 8; break;
  case 5: skip = 4; break;
  case 2:
    if (!take_varint(c, &value) || value > (size_t)(c->end - c->at))
      return false;
    inner->at = c->at;
    inner->end = c->at + value;
    c->at += value;
    return true;
  default: return false;
  }
  if (skip > left)
    return false;
  c->at += skip;
  return true;
}

/* TensorFlow's own messages nest about 12 deep in a real graph: node, attribute, list, function, attribute ... */
#define WIRE_DEPTH (LIMIT_NESTING * 2)

static bool is_message(struct cursor c) {
  struct cursor inner;
  while (c.at < c.end)
    if (!take_field(&c, &inner))
      return false;
  return true;
}

/* The deepest chain of payloads that parse as messages; stops at the limit. */
static bool too_deep(struct cursor c, int depth) {
  if (depth > WIRE_DEPTH)
    return true;
  struct cursor inner;
  while (c.at < c.end && take_field(&c, &inner))
    if (inner.end - inner.at > 2 && is_message(inner) && too_deep(inner, depth + 1))
      return true;
  return false;
}

status wire_check(const void *data, size_t size) {
  struct cursor all = {data, (const uint8_t *)data + size};
  if (!is_message(all))
    return fail(INVALID_ARGUMENT, "is no protobuf message");
  if (too_deep(all, 0))
    return fail(INVALID_ARGUMENT, "is nested more than %d deep", WIRE_DEPTH);
  return OK;
}
