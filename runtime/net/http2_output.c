/* http2_output.c: items into frames.
 *
 * Each stream has a queue of items: memory of others with a way to give it back, or chunks in which small pieces were copied one behind the
 * other. nghttp2 asks for data only when frame, window and stream allow it, and gets a length; the bytes themselves never pass through it
 * (NO_COPY). http2_output collects frame headers, control frames and pieces of items into a round for one sendmsg, and starts the next
 * round when that one has left. */
#include "runtime/net/http2_state.h"

#include <stdlib.h>
#include <string.h>

void http2_item_release(struct http2_item *item) {
  if (--item->references > 0)
    return;
  if (item->release)
    item->release(item->owner);
  free(item);
}

static size_t frame_bytes(const struct http2_stream *stream, size_t length) {
  size_t bytes = 0;
  int pieces = 0;
  for (const struct http2_item *item = stream->first; item && pieces < NET_FRAME_PIECES && bytes < length; item = item->next) {
    bytes += item->size - item->taken;
    pieces++;
  }
  return bytes < length ? bytes : length;
}

static int submit_trailers(struct http2_stream *stream) {
  nghttp2_nv fields[2] = {http2_field("grpc-status", stream->trailer_status)};
  size_t count = 1;
  if (stream->trailer_message)
    fields[count++] = http2_field("grpc-message", stream->trailer_message);
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
      http2_item_release(item);
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
      http2_item_release(h->owners[h->piece_first]);
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

bool http2_is_over(const struct http2 *h) {
  return h->piece_first == h->piece_count && !nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session);
}

void http2_stream_wake(struct http2_stream *stream) {
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
  http2_stream_wake(stream);
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
    http2_stream_wake(stream);
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

nghttp2_data_provider http2_body(struct http2_stream *stream) {
  return (nghttp2_data_provider){.source.ptr = stream, .read_callback = source_read};
}

void http2_output_callbacks(nghttp2_session_callbacks *callbacks) {
  nghttp2_session_callbacks_set_send_data_callback(callbacks, source_send);
  nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_length);
}
