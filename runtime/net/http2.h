/* http2.h: one end of an HTTP/2 connection, without its socket: bytes in, bytes out.
 *
 * A thin shell around libnghttp2 that adds what this program needs: streams that carry bytes of others without copying
 * them, small pieces gathered into one frame, the few header fields gRPC uses, and limits against hostile peers
 * (net_limits.h). Received bytes go to http2_receive, which calls the handler; what is to be sent comes from http2_output as
 * pieces of memory for sendmsg.
 *
 * Threads: one at a time. Owner: who created it. The handler may call any function here but receive, output and destroy.
 */
#ifndef TFC_RUNTIME_NET_HTTP2_H
#define TFC_RUNTIME_NET_HTTP2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "base/status.h"
#include "runtime/net/net_limits.h"

struct http2;
struct http2_item;

/* One stream. The fields are filled from the peer's headers and trailers; unknown ones are dropped. */
struct http2_stream {
  struct http2 *http2;
  int32_t id;
  void *user; /* the handler's */
  /* server: the request */
  char method[16], path[NET_PATH_BYTES], content_type[64], timeout[16];
  /* client: the response */
  int http_status;    /* 0: no headers yet */
  int grpc_status;    /* -1: none came */
  char *grpc_message; /* as on the wire (percent-encoded); NULL: none */
  /* sending */
  struct http2_item *first, *last;
  uint64_t queued; /* bytes handed over that have not become frames */
  bool responded, waiting, finished;
  bool ended; /* the peer has sent its last byte */
  char *trailer_status, *trailer_message;
  uint32_t header_count, header_bytes;
  struct http2_stream *next, *previous; /* all streams of the connection */
};

struct http2_handler {
  /* The peer's headers are complete: a request (server) or the response (client). */
  void (*on_headers)(void *self, struct http2_stream *stream);
  void (*on_data)(void *self, struct http2_stream *stream, const uint8_t *data, size_t size);
  /* The peer's last byte has come; trailers, if any, are in the stream. */
  void (*on_end)(void *self, struct http2_stream *stream);
  /* The stream is over, in order (error 0) or not; the pointer is dead afterwards. */
  void (*on_close)(void *self, struct http2_stream *stream, uint32_t error);
  /* The peer takes no new streams (GOAWAY). */
  void (*on_goaway)(void *self, uint32_t error);
};

/* RESOURCE_EXHAUSTED without memory. handler is kept by reference. */
status http2_create(bool is_server, const struct http2_handler *handler, void *self, struct http2 **out);
/* Gives back what was not sent and calls on_close for open streams. Accepts NULL. */
void http2_destroy(struct http2 *http2);

/* Bytes from the peer, at now_ms of any steady clock (rates are limited by it). DATA_LOSS when they are no HTTP/2 or break a limit: send
 * what http2_output still gives (a GOAWAY) and close. */
status http2_receive(struct http2 *http2, uint64_t now_ms, const uint8_t *data, size_t size);

/* Bytes that follow of the DATA frame that is being received; 0 between frames. */
size_t http2_frame_left(const struct http2 *http2);

/* What is to be sent now, at most NET_OUTPUT_PIECES pieces, valid until http2_written; the same again until then.
 * 0: nothing. */
int http2_output(struct http2 *http2, const struct iovec **out);
/* The first `size` bytes of it have left. */
void http2_written(struct http2 *http2, size_t size);
/* Streams hold bytes that have not become frames. */
bool http2_has_queued(const struct http2 *http2);
/* It waits for the peer: for the rest of a request, or for its taking what is sent. */
bool http2_is_waiting(const struct http2 *http2);
/* A stream is open. */
bool http2_has_streams(const struct http2 *http2);
/* Bytes in DATA frames so far, both ways. */
uint64_t http2_data_bytes(const struct http2 *http2);
/* Nothing more will come or go: close. */
bool http2_is_over(const struct http2 *http2);

/* Client: opens a stream with a POST for gRPC. NULL: the connection takes no new ones, or memory is out. */
struct http2_stream *http2_request(struct http2 *http2, const char *path, const char *authority, void *user);
/* Server: the response's headers; data and http2_finish follow. */
status http2_respond(struct http2_stream *stream, int http_status, const char *content_type);

/* Hands bytes over without copying; release(owner) is called once when they have left or never will. May be NULL. */
status http2_send(struct http2_stream *stream, const void *data, size_t size, void (*release)(void *), void *owner);
/* Copies the bytes, behind earlier small ones where there is room. */
status http2_send_copy(struct http2_stream *stream, const void *data, size_t size);
/* END_STREAM after the data. */
void http2_finish(struct http2_stream *stream);
/* Server: trailers grpc-status and grpc-message (percent-encoded here) after the data; without a response sent before, in
 * headers only. */
void http2_finish_grpc(struct http2_stream *stream, int grpc_status, const char *message);
/* GOAWAY: no new streams; open ones may end. */
void http2_goaway(struct http2 *http2);

#endif
