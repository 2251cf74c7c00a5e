/* http2.c: the shell around libnghttp2: streams, requests and responses. What is sent is in http2_output.c, what comes in http2_input.c. */
#include "runtime/net/http2_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- streams ---- */

struct http2_stream *http2_stream_create(struct http2 *h, int32_t id) {
  struct http2_stream *stream = calloc(1, sizeof *stream);
  if (!stream)
    return NULL;
  stream->http2 = h;
  stream->id = id;
  stream->grpc_status = -1;
  stream->next = h->streams;
  if (h->streams)
    h->streams->previous = stream;
  h->streams = stream;
  return stream;
}

static void stream_drop_items(struct http2_stream *stream) {
  while (stream->first) {
    struct http2_item *item = stream->first;
    stream->first = item->next;
    http2_item_release(item);
  }
  stream->last = NULL;
  stream->queued = 0;
}

void http2_stream_destroy(struct http2_stream *stream, uint32_t error) {
  struct http2 *h = stream->http2;
  stream->finished = true; /* a handler that still sends is refused */
  h->handler->on_close(h->self, stream, error);
  if (stream->previous)
    stream->previous->next = stream->next;
  else
    h->streams = stream->next;
  if (stream->next)
    stream->next->previous = stream->previous;
  stream_drop_items(stream);
  free(stream->grpc_message);
  free(stream->trailer_status);
  free(stream->trailer_message);
  free(stream);
}

/* ---- requests and responses ---- */

struct http2_stream *http2_request(struct http2 *h, const char *path, const char *authority, void *user) {
  struct http2_stream *stream = http2_stream_create(h, 0);
  if (!stream)
    return NULL;
  stream->user = user;
  stream->responded = true;
  nghttp2_nv fields[] = {http2_field(":method", "POST"),
                         http2_field(":scheme", "http"),
                         http2_field(":path", path),
                         http2_field(":authority", authority),
                         http2_field("te", "trailers"),
                         http2_field("content-type", "application/grpc"),
                         http2_field("user-agent", "tfc/" TFC_VERSION)};
  nghttp2_data_provider provider = http2_body(stream);
  stream->id = nghttp2_submit_request(h->session, NULL, fields, sizeof fields / sizeof *fields, &provider, stream);
  if (stream->id > 0)
    return stream;
  h->streams = stream->next; /* it was the newest */
  if (h->streams)
    h->streams->previous = NULL;
  free(stream);
  return NULL;
}

status http2_respond(struct http2_stream *stream, int http_status, const char *content_type) {
  if (stream->responded || stream->finished)
    return fail(CANCELLED, "the stream is closed");
  char code[12];
  snprintf(code, sizeof code, "%d", http_status);
  nghttp2_nv fields[] = {http2_field(":status", code), http2_field("content-type", content_type)};
  nghttp2_data_provider provider = http2_body(stream);
  stream->responded = true;
  if (nghttp2_submit_response(stream->http2->session, stream->id, fields, 2, &provider) != 0)
    return fail(RESOURCE_EXHAUSTED, "no memory for a response");
  return OK;
}

void http2_finish(struct http2_stream *stream) {
  stream->finished = true;
  http2_stream_wake(stream);
}

/* As gRPC has it: all but printable ASCII, and '%', as %XX. */
static char *percent_encode(const char *text) {
  size_t size = strnlen(text, NET_GRPC_TEXT_BYTES);
  char *encoded = malloc(3 * size + 1), *to = encoded;
  if (!encoded)
    return NULL;
  for (size_t i = 0; i < size; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c >= 0x20 && c <= 0x7e && c != '%')
      *to++ = (char)c;
    else
      to += sprintf(to, "%%%02X", c);
  }
  *to = 0;
  return encoded;
}

void http2_finish_grpc(struct http2_stream *stream, int grpc_status, const char *message) {
  if (stream->finished)
    return;
  char code[12];
  snprintf(code, sizeof code, "%d", grpc_status);
  stream->trailer_status = strdup(code);
  stream->trailer_message = message && *message ? percent_encode(message) : NULL;
  if (stream->responded) {
    http2_finish(stream);
    return;
  }
  stream->responded = stream->finished = true;
  nghttp2_nv fields[4] = {http2_field(":status", "200"), http2_field("content-type", "application/grpc"), http2_field("grpc-status", code)};
  size_t count = 3;
  if (stream->trailer_message)
    fields[count++] = http2_field("grpc-message", stream->trailer_message);
  nghttp2_submit_response(stream->http2->session, stream->id, fields, count, NULL);
}

void http2_goaway(struct http2 *h) {
  nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->session), NGHTTP2_NO_ERROR, NULL, 0);
}

bool http2_has_streams(const struct http2 *h) { return h->streams != NULL; }

uint64_t http2_data_bytes(const struct http2 *h) { return h->data_bytes; }

/* ---- life ---- */

static nghttp2_session_callbacks *callbacks_create(void) {
  nghttp2_session_callbacks *callbacks = NULL;
  if (nghttp2_session_callbacks_new(&callbacks) != 0)
    return NULL;
  http2_input_callbacks(callbacks);
  http2_output_callbacks(callbacks);
  return callbacks;
}

static bool settings_submit(struct http2 *h) {
  nghttp2_settings_entry settings[] = {
    {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, h->is_server ? NET_STREAMS : 0},
    {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, NET_WINDOW_BYTES},
    {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, NET_FRAME_BYTES},
    {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, NET_HEADER_BYTES},
    {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
  };
  size_t count = h->is_server ? 4 : 5;
  return nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, count) == 0 &&
         nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, NET_WINDOW_BYTES) == 0;
}

status http2_create(bool is_server, const struct http2_handler *handler, void *self, struct http2 **out) {
  struct http2 *h = calloc(1, sizeof *h);
  nghttp2_session_callbacks *callbacks = h ? callbacks_create() : NULL;
  bool made = callbacks != NULL;
  if (made) {
    h->handler = handler;
    h->self = self;
    h->is_server = is_server;
    h->last_id = -1;
    made = (is_server ? nghttp2_session_server_new(&h->session, callbacks, h) : nghttp2_session_client_new(&h->session, callbacks, h)) == 0;
    nghttp2_session_callbacks_del(callbacks);
    made = made && settings_submit(h);
  }
  if (!made) {
    http2_destroy(h);
    return fail(RESOURCE_EXHAUSTED, "no memory for a connection");
  }
  *out = h;
  return OK;
}

void http2_destroy(struct http2 *h) {
  if (!h)
    return;
  for (; h->piece_first < h->piece_count; h->piece_first++)
    if (h->owners[h->piece_first])
      http2_item_release(h->owners[h->piece_first]);
  while (h->streams)
    http2_stream_destroy(h->streams, NGHTTP2_CANCEL);
  nghttp2_session_del(h->session);
  free(h);
}
