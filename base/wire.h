/* wire.h: reading and writing protobuf's wire format, field by field, without descriptions of messages.
 *
 * A reader walks over bytes that stay where they are; it never allocates and never leaves its bounds, whatever they are. */
#ifndef TFC_BASE_WIRE_H
#define TFC_BASE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
  const uint8_t *at, *end;
  bool is_bad; /* not the wire format: nothing more is read */
};
struct wire_field {
  uint32_t number;
  enum wire_type type;
  uint64_t value;      /* VARINT, FIXED64, FIXED32 */
  const uint8_t *data; /* BYTES */
  size_t size;
};

static inline struct wire wire_over(const uint8_t *data, size_t size) { return (struct wire){data, data + size, false}; }
/* The bytes of a field as a message of their own; empty for another type. */
static inline struct wire wire_inside(const struct wire_field *field) {
  return field->type == WIRE_BYTES ? wire_over(field->data, field->size) : wire_over(NULL, 0);
}
/* False at the end, and when the bytes are bad. Groups are bad: no message here has one. */
bool wire_next(struct wire *wire, struct wire_field *out);
/* One number of a packed list. */
bool wire_varint(struct wire *wire, uint64_t *out);
bool wire_fixed(struct wire *wire, size_t bytes, uint64_t *out); /* 4 or 8 */

/* Growing bytes. After is_bad (no memory) writing does nothing. */
struct wire_buffer {
  uint8_t *data;
  size_t size, room;
  bool is_bad;
};
void wire_buffer_free(struct wire_buffer *buffer);
void wire_put_raw(struct wire_buffer *buffer, const void *data, size_t size);
void wire_put_number(struct wire_buffer *buffer, uint64_t value); /* a bare varint */
void wire_put_varint(struct wire_buffer *buffer, uint32_t number, uint64_t value);
void wire_put_fixed64(struct wire_buffer *buffer, uint32_t number, uint64_t value);
void wire_put_bytes(struct wire_buffer *buffer, uint32_t number, const void *data, size_t size);
void wire_put_text(struct wire_buffer *buffer, uint32_t number, const char *text);
/* The beginning of a bytes field whose `size` bytes follow by wire_put_raw. */
void wire_put_bytes_head(struct wire_buffer *buffer, uint32_t number, uint64_t size);
/* A message field with the content that was written, which is freed. */
void wire_put_message(struct wire_buffer *buffer, uint32_t number, struct wire_buffer *content);
/* A message field: what is written between becomes its content. At most 128 MiB between; begin returns the place. */
size_t wire_begin(struct wire_buffer *buffer, uint32_t number);
void wire_end(struct wire_buffer *buffer, size_t begin);
size_t wire_number_size(uint64_t value);

#endif
