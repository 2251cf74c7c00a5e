/* http2_state.h: what the files of an HTTP/2 connection share; for http2*.c only. On the thread that calls http2.h's functions. */
#ifndef TFC_RUNTIME_NET_HTTP2_STATE_H
#define TFC_RUNTIME_NET_HTTP2_STATE_H

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "runtime/net/http2.h"

#define GAPS_KEPT 8 /* clients number without gaps; of one that does not the latest are remembered */

struct http2_item {
  struct http2_item *next;
  const uint8_t *data;
  size_t size, taken; /* taken: bytes that have become frames */
  size_t room;        /* of a chunk: how large it may grow; else 0 */
  void (*release)(void *);
  void *owner;
  uint32_t references; /* the queue's, and one for each piece of the round */
  uint8_t bytes[];
};

struct http2 {
  nghttp2_session *session;
  const struct http2_handler *handler;
  void *self;
  struct http2_stream *streams;
  bool is_server, destroying;
  /* the round that http2_output gave out */
  struct iovec pieces[NET_OUTPUT_PIECES];
  struct http2_item *owners[NET_OUTPUT_PIECES];
  int piece_count, piece_first;
  size_t round_bytes;
  uint8_t small[16 << 10]; /* frame headers and control frames of the round */
  size_t small_used;
  uint64_t data_bytes; /* in DATA frames, both ways */
  size_t frame_left;   /* of the DATA frame that is being received */
  /* rate of useless frames */
  uint64_t idle_since_ms;
  uint32_t idle_frames;
  /* stream numbers that the client has passed over: it may not come back to them (RFC 7540, 5.1.1) */
  int32_t last_id;
  struct {
    int32_t first, last;
  } gaps[GAPS_KEPT];
  uint32_t gap_count;
};

static inline nghttp2_nv http2_field(const char *name, const char *value) {
  return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* ---- http2.c ---- */

/* id 0: it is not known yet. NULL without memory. */
struct http2_stream *http2_stream_create(struct http2 *http2, int32_t id);
/* Tells the handler. */
void http2_stream_destroy(struct http2_stream *stream, uint32_t error);

/* ---- http2_output.c ---- */

void http2_item_release(struct http2_item *item);
/* There is something to be sent again, or the end of it. */
void http2_stream_wake(struct http2_stream *stream);
/* The stream's items, and its trailers. */
nghttp2_data_provider http2_body(struct http2_stream *stream);
void http2_output_callbacks(nghttp2_session_callbacks *callbacks);

/* ---- http2_input.c ---- */

void http2_input_callbacks(nghttp2_session_callbacks *callbacks);

#endif
