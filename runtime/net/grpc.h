/* grpc.h: gRPC's framing over HTTP/2 streams (doc/PROTOCOL-HTTP2.md): length-prefixed messages, time-outs, texts.
 * No I/O and no state but the reader's. One thread at a time. */
#ifndef TFC_RUNTIME_NET_GRPC_H
#define TFC_RUNTIME_NET_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

#define GRPC_PREFIX_BYTES 5

/* Cuts a stream of bytes into messages; DATA frames and messages share no edges. Zeroed at the start. */
struct grpc_reader {
  uint8_t prefix[GRPC_PREFIX_BYTES];
  uint32_t prefix_used;
  bool in_message;
  uint32_t size, left; /* of the message that is being read */
};
enum grpc_event {
  GRPC_NEED_MORE,  /* the bytes are used up */
  GRPC_BEGIN,      /* a message of reader->size bytes begins */
  GRPC_BYTES,      /* piece, piece_size: bytes of it */
  GRPC_END,        /* the message is complete */
  GRPC_COMPRESSED, /* a message is compressed, which was not agreed on: give up */
};
/* Takes the next event from *data, *size, which are moved on. */
enum grpc_event grpc_read(struct grpc_reader *reader, const uint8_t **data, size_t *size, const uint8_t **piece, size_t *piece_size);
/* Nothing of a message is pending: the stream may end here. */
bool grpc_reader_is_between(const struct grpc_reader *reader);

void grpc_write_prefix(uint32_t message_size, uint8_t out[GRPC_PREFIX_BYTES]);

/* "100m" (up to 8 digits and one of H M S m u n) in milliseconds, rounded up; -1 when it is none. */
int64_t grpc_parse_timeout(const char *text);
/* %XX becomes a byte; in place; a % that is not followed by two hex digits stays. */
void grpc_percent_decode(char *text);
bool grpc_is_content_type(const char *content_type);
/* What a response without a grpc-status means. */
status grpc_status_from_http(int http_status);

#endif
