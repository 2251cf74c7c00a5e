/* http2.c: the shell around libnghttp2.
 *
 * Sending. Each stream has a queue of items: memory of others with a way to give it back, or chunks in which small pieces
 * were copied one behind the other. nghttp2 asks for data only when frame, window and stream allow it, and gets a length;
 * the bytes themselves never pass through it (NO_COPY). http2_output collects frame headers, control frames and pieces of items
 * into a round for one sendmsg, and starts the next round when that one has left.
 *
 * Receiving. nghttp2 parses; what it leaves to the application is limited here: decoded header fields by count and bytes,
 * header frames by size (a big MAX_FRAME_SIZE would allow big header blocks as well), frames that do nothing by rate.
 */
#include "runtime/net/http2.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void item_release(struct http2_item *item) {
  if (--item->references > 0)
    return;
  if (item->release)
    item->release(item->owner);
  free(item);
}

/* ---- streams ---- */

static struct http2_stream *stream_create(struct http2 *h, int32_t id) {
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
    item_release(item);
  }
  stream->last = NULL;
  stream->queued = 0;
}

static void stream_destroy(struct http2_stream *stream, uint32_t error) {
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

static struct http2_stream *stream_find(struct http2 *h, int32_t id) { return nghttp2_session_get_stream_user_data(h->session, id); }

/* ---- sending: items into frames ---- */

static size_t frame_bytes(const struct http2_stream *stream, size_t length) {
  size_t bytes = 0;
  int pieces = 0;
  for (const struct http2_item *item = stream->first; item && pieces < NET_FRAME_PIECES && bytes < length; item = item->next) {
    bytes += item->size - item->taken;
    pieces++;
  }
  return bytes < length ? bytes : length;
}

static nghttp2_nv field(const char *name, const char *value) {
  return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static int submit_trailers(struct http2_stream *stream) {
  nghttp2_nv fields[2] = {field("grpc-status", stream->trailer_status)};
  size_t count = 1;
  if (stream->trailer_message)
    fields[count++] = field("grpc-message", stream->trailer_message);
  return nghttp2_submit_trailer(stream->http2->session, stream->id, fields, count);
}

static ssize_t source_read(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length, uint32_t *flags,
                           nghttp2_data_source *source, void *self) {
  (void)session, (void)id, (void)buffer, (void)self;
  struct http2_stream *stream = source->ptr;
  size_t bytes = frame_bytes(stream, length);
  if (bytes == 0 && !stream->finished) {
    stream->waiting = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (stream->finished && bytes == stream->queued) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->trailer_status) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      if (submit_trailers(stream) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
  }
  return (ssize_t)bytes;
}

static void round_add(struct http2 *h, const void *data, size_t size, struct http2_item *owner) {
  struct iovec *last = h->piece_count ? &h->pieces[h->piece_count - 1] : NULL;
  h->round_bytes += size;
  if (!owner && last && !h->owners[h->piece_count - 1] && (uint8_t *)last->iov_base + last->iov_len == data) {
    last->iov_len += size; /* control frames stand one behind the other */
    return;
  }
  if (owner)
    owner->references++;
  h->owners[h->piece_count] = owner;
  h->pieces[h->piece_count++] = (struct iovec){(void *)data, size};
}

static void round_add_small(struct http2 *h, const uint8_t *data, size_t size) {
  memcpy(h->small + h->small_used, data, size);
  round_add(h, h->small + h->small_used, size, NULL);
  h->small_used += size;
}

static bool round_is_full(const struct http2 *h) {
  return h->piece_count > NET_OUTPUT_PIECES - NET_FRAME_PIECES - 4 || h->round_bytes >= NET_OUTPUT_BYTES ||
         sizeof h->small - h->small_used < 1024;
}

static int source_send(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header, size_t length, nghttp2_data_source *source,
                       void *self) {
  (void)session, (void)frame;
  struct http2 *h = self;
  struct http2_stream *stream = source->ptr;
  if (round_is_full(h))
    return NGHTTP2_ERR_WOULDBLOCK; /* asked again in the next round */
  round_add_small(h, header, 9);
  h->data_bytes += length;
  while (length > 0) {
    struct http2_item *item = stream->first;
    size_t bytes = item->size - item->taken < length ? item->size - item->taken : length;
    round_add(h, item->data + item->taken, bytes, item);
    item->taken += bytes;
    length -= bytes;
    stream->queued -= bytes;
    if (item->taken == item->size) {
      stream->first = item->next;
      if (!stream->first)
        stream->last = NULL;
      item_release(item);
    }
  }
  return 0;
}

static ssize_t frame_length(nghttp2_session *session, uint8_t type, int32_t id, int32_t session_window, int32_t stream_window,
                            uint32_t max_frame, void *self) {
  (void)session, (void)type, (void)id, (void)self;
  ssize_t length = session_window < stream_window ? session_window : stream_window;
  if (length > (ssize_t)max_frame)
    length = (ssize_t)max_frame;
  return length > NET_FRAME_BYTES ? NET_FRAME_BYTES : length;
}

int http2_output(struct http2 *h, const struct iovec **out) {
  *out = h->pieces + h->piece_first;
  if (h->piece_first < h->piece_count)
    return h->piece_count - h->piece_first;
  h->piece_count = h->piece_first = 0;
  h->round_bytes = h->small_used = 0;
  *out = h->pieces;
  while (!round_is_full(h)) {
    const uint8_t *data = NULL;
    ssize_t size = nghttp2_session_mem_send(h->session, &data);
    if (size <= 0)
      break;
    if ((size_t)size > sizeof h->small - h->small_used) {
      round_add(h, data, (size_t)size, NULL); /* nghttp2's memory, valid until it is asked again */
      break;
    }
    round_add_small(h, data, (size_t)size);
  }
  return h->piece_count;
}

void http2_written(struct http2 *h, size_t size) {
  while (h->piece_first < h->piece_count) {
    struct iovec *piece = &h->pieces[h->piece_first];
    if (size < piece->iov_len) {
      piece->iov_base = (uint8_t *)piece->iov_base + size;
      piece->iov_len -= size;
      return;
    }
    size -= piece->iov_len;
    if (h->owners[h->piece_first])
      item_release(h->owners[h->piece_first]);
    h->piece_first++;
  }
}

bool http2_has_queued(const struct http2 *h) {
  for (const struct http2_stream *stream = h->streams; stream; stream = stream->next)
    if (stream->queued > 0)
      return true;
  return false;
}

bool http2_is_waiting(const struct http2 *h) {
  for (const struct http2_stream *stream = h->streams; stream; stream = stream->next)
    if (stream->queued > 0 || !stream->ended)
      return true;
  return h->piece_first < h->piece_count;
}

bool http2_has_streams(const struct http2 *h) { return h->streams != NULL; }

uint64_t http2_data_bytes(const struct http2 *h) { return h->data_bytes; }

bool http2_is_over(const struct http2 *h) {
  return h->piece_first == h->piece_count && !nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session);
}

static void stream_wake(struct http2_stream *stream) {
  if (stream->waiting) {
    stream->waiting = false;
    nghttp2_session_resume_data(stream->http2->session, stream->id);
  }
}

static status stream_append(struct http2_stream *stream, struct http2_item *item) {
  item->references = 1;
  if (stream->last)
    stream->last->next = item;
  else
    stream->first = item;
  stream->last = item;
  stream->queued += item->size;
  stream_wake(stream);
  return OK;
}

status http2_send(struct http2_stream *stream, const void *data, size_t size, void (*release)(void *), void *owner) {
  struct http2_item *item = stream->finished || size == 0 ? NULL : calloc(1, sizeof *item);
  if (!item) {
    if (release)
      release(owner);
    if (size == 0 && !stream->finished)
      return OK;
    return stream->finished ? fail(CANCELLED, "the stream is closed") : fail(RESOURCE_EXHAUSTED, "no memory to send");
  }
  item->data = data;
  item->size = size;
  item->release = release;
  item->owner = owner;
  return stream_append(stream, item);
}

status http2_send_copy(struct http2_stream *stream, const void *data, size_t size) {
  if (stream->finished)
    return fail(CANCELLED, "the stream is closed");
  if (size == 0)
    return OK;
  struct http2_item *last = stream->last;
  if (last && last->room - last->size >= size && last->room > 0) {
    memcpy(last->bytes + last->size, data, size);
    last->size += size;
    stream->queued += size;
    stream_wake(stream);
    return OK;
  }
  size_t room = size > NET_COPY_CHUNK / 2 ? size : NET_COPY_CHUNK;
  struct http2_item *item = malloc(sizeof *item + room);
  if (!item)
    return fail(RESOURCE_EXHAUSTED, "no memory to send");
  *item = (struct http2_item){.data = item->bytes, .size = size, .room = room};
  memcpy(item->bytes, data, size);
  return stream_append(stream, item);
}

/* ---- requests and responses ---- */

struct http2_stream *http2_request(struct http2 *h, const char *path, const char *authority, void *user) {
  struct http2_stream *stream = stream_create(h, 0);
  if (!stream)
    return NULL;
  stream->user = user;
  stream->responded = true;
  nghttp2_nv fields[] = {field(":method", "POST"),
                         field(":scheme", "http"),
                         field(":path", path),
                         field(":authority", authority),
                         field("te", "trailers"),
                         field("content-type", "application/grpc"),
                         field("user-agent", "tfc/" TFC_VERSION)};
  nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = source_read};
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
  nghttp2_nv fields[] = {field(":status", code), field("content-type", content_type)};
  nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = source_read};
  stream->responded = true;
  if (nghttp2_submit_response(stream->http2->session, stream->id, fields, 2, &provider) != 0)
    return fail(RESOURCE_EXHAUSTED, "no memory for a response");
  return OK;
}

void http2_finish(struct http2_stream *stream) {
  stream->finished = true;
  stream_wake(stream);
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
  nghttp2_nv fields[4] = {field(":status", "200"), field("content-type", "application/grpc"), field("grpc-status", code)};
  size_t count = 3;
  if (stream->trailer_message)
    fields[count++] = field("grpc-message", stream->trailer_message);
  nghttp2_submit_response(stream->http2->session, stream->id, fields, count, NULL);
}

void http2_goaway(struct http2 *h) {
  nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->session), NGHTTP2_NO_ERROR, NULL, 0);
}

/* ---- receiving: nghttp2's callbacks ---- */

static int begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *self) {
  struct http2 *h = self;
  struct http2_stream *stream = stream_find(h, frame->hd.stream_id);
  if (!stream && h->is_server && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
    stream = stream_create(h, frame->hd.stream_id);
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
  stream_destroy(stream, error);
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

/* ---- life ---- */

static nghttp2_session_callbacks *callbacks_create(void) {
  nghttp2_session_callbacks *callbacks = NULL;
  if (nghttp2_session_callbacks_new(&callbacks) != 0)
    return NULL;
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, begin_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, source_send);
  nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_length);
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
      item_release(h->owners[h->piece_first]);
  while (h->streams)
    stream_destroy(h->streams, NGHTTP2_CANCEL);
  nghttp2_session_del(h->session);
  free(h);
}
