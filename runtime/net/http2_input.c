/* http2_input.c: what comes. nghttp2 parses; what it leaves to the application is limited here: decoded header fields by count and bytes,
 * header frames by size (a big MAX_FRAME_SIZE would allow big header blocks as well), frames that do nothing by rate. */
#include "runtime/net/http2_state.h"

#include <string.h>

static struct http2_stream *stream_find(struct http2 *h, int32_t id) { return nghttp2_session_get_stream_user_data(h->session, id); }

static int begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *self) {
  struct http2 *h = self;
  struct http2_stream *stream = stream_find(h, frame->hd.stream_id);
  if (!stream && h->is_server && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
    stream = http2_stream_create(h, frame->hd.stream_id);
    if (!stream)
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
  }
  if (stream)
    stream->header_count = stream->header_bytes = 0;
  return 0;
}

static void text_store(char *to, size_t room, const uint8_t *value, size_t size) {
  size_t kept = size < room ? size : room - 1;
  memcpy(to, value, kept);
  to[kept] = 0;
}

static bool name_is(const uint8_t *name, size_t size, const char *text) { return size == strlen(text) && memcmp(name, text, size) == 0; }

static int number_parse(const uint8_t *value, size_t size) {
  int number = 0;
  if (size == 0 || size > 3)
    return 2; /* UNKNOWN */
  for (size_t i = 0; i < size; i++) {
    if (value[i] < '0' || value[i] > '9')
      return 2;
    number = number * 10 + value[i] - '0';
  }
  return number;
}

static void header_store(struct http2_stream *s, const uint8_t *name, size_t name_size, const uint8_t *value, size_t size) {
  if (name_is(name, name_size, ":method"))
    text_store(s->method, sizeof s->method, value, size);
  else if (name_is(name, name_size, ":path"))
    text_store(s->path, sizeof s->path, value, size);
  else if (name_is(name, name_size, "content-type"))
    text_store(s->content_type, sizeof s->content_type, value, size);
  else if (name_is(name, name_size, "grpc-timeout"))
    text_store(s->timeout, sizeof s->timeout, value, size);
  else if (name_is(name, name_size, ":status"))
    s->http_status = number_parse(value, size);
  else if (name_is(name, name_size, "grpc-status"))
    s->grpc_status = number_parse(value, size);
  else if (name_is(name, name_size, "grpc-message") && !s->grpc_message)
    s->grpc_message = strndup((const char *)value, size);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_size, const uint8_t *value,
                     size_t size, uint8_t flags, void *self) {
  (void)session, (void)flags;
  struct http2_stream *stream = stream_find(self, frame->hd.stream_id);
  if (!stream)
    return 0;
  stream->header_bytes += (uint32_t)(name_size + size + 32);
  if (++stream->header_count > NET_HEADER_COUNT || stream->header_bytes > NET_HEADER_BYTES)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  header_store(stream, name, name_size, value, size);
  return 0;
}

/* libnghttp2 lets a number pass that is smaller than one already used. */
static bool id_goes_back(struct http2 *h, int32_t id) {
  if (id > h->last_id) {
    if (id > h->last_id + 2) {
      h->gaps[h->gap_count % GAPS_KEPT].first = h->last_id + 2;
      h->gaps[h->gap_count++ % GAPS_KEPT].last = id - 2;
    }
    h->last_id = id;
    return false;
  }
  for (uint32_t i = 0; i < GAPS_KEPT && i < h->gap_count; i++)
    if (id >= h->gaps[i].first && id <= h->gaps[i].last)
      return true;
  return false;
}

static int begin_frame(nghttp2_session *session, const nghttp2_frame_hd *header, void *self) {
  struct http2 *h = self;
  bool carries_headers = header->type == NGHTTP2_HEADERS || header->type == NGHTTP2_CONTINUATION;
  bool is_useful = (header->type == NGHTTP2_DATA && header->length > 0) || header->type == NGHTTP2_HEADERS;
  if (carries_headers && header->length > NET_HEADER_FRAME_BYTES)
    nghttp2_session_terminate_session(session, NGHTTP2_FRAME_SIZE_ERROR); /* a limit of the frame's type (RFC 7540, 4.2) */
  else if (!is_useful && ++h->idle_frames > NET_IDLE_FRAMES)
    nghttp2_session_terminate_session(session, NGHTTP2_ENHANCE_YOUR_CALM);
  if (h->is_server && header->type == NGHTTP2_HEADERS && header->stream_id % 2 == 1 && id_goes_back(h, header->stream_id))
    nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR);
  h->frame_left = header->type == NGHTTP2_DATA && !(header->flags & NGHTTP2_FLAG_PADDED) ? header->length : 0;
  return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t size, void *self) {
  (void)session, (void)flags;
  struct http2 *h = self;
  struct http2_stream *stream = stream_find(h, id);
  h->frame_left -= size < h->frame_left ? size : h->frame_left;
  h->data_bytes += size;
  if (stream)
    h->handler->on_data(h->self, stream, data, size);
  return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *self) {
  (void)session;
  struct http2 *h = self;
  if (frame->hd.type == NGHTTP2_GOAWAY)
    h->handler->on_goaway(h->self, frame->goaway.error_code);
  if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
    return 0;
  struct http2_stream *stream = stream_find(h, frame->hd.stream_id);
  if (!stream)
    return 0;
  bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
  bool is_first = frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat != NGHTTP2_HCAT_HEADERS;
  if (is_end)
    stream->ended = true;
  if (is_first)
    h->handler->on_headers(h->self, stream);
  if (is_end && stream_find(h, frame->hd.stream_id) == stream)
    h->handler->on_end(h->self, stream);
  return 0;
}

/* A server that has answered before the request's end tells the client not to go on. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *self) {
  struct http2 *h = self;
  if (!h->is_server || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
      (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
    return 0;
  struct http2_stream *stream = stream_find(h, frame->hd.stream_id);
  if (stream && !stream->ended)
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
  return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t id, uint32_t error, void *self) {
  struct http2_stream *stream = stream_find(self, id);
  if (!stream)
    return 0;
  nghttp2_session_set_stream_user_data(session, id, NULL);
  http2_stream_destroy(stream, error);
  return 0;
}

status http2_receive(struct http2 *h, uint64_t now_ms, const uint8_t *data, size_t size) {
  if (now_ms - h->idle_since_ms >= 1000) {
    h->idle_since_ms = now_ms;
    h->idle_frames = 0;
  }
  ssize_t taken = nghttp2_session_mem_recv(h->session, data, size);
  if (taken < 0)
    return fail(DATA_LOSS, "the peer does not speak HTTP/2 as it should: %s", nghttp2_strerror((int)taken));
  return OK;
}

size_t http2_frame_left(const struct http2 *h) { return h->frame_left; }

void http2_input_callbacks(nghttp2_session_callbacks *callbacks) {
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, begin_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
}
