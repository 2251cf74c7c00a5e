/* grpc_server.h: unary gRPC calls of clients, and what is said to everybody else, on the streams of a server connection.
 *
 * The owner of the connection hands its stream events here (all but those of links). A complete request becomes a grpc_call,
 * which the service answers from any thread. Requests and answers have what clients may hold together, those of strangers
 * NET_STRANGERS_BYTES; bytes count when they come, not when they are announced. What is not gRPC gets 200 and a short text (POST with
 * another content type: 415), unknown methods UNIMPLEMENTED.
 */
#ifndef TFC_RUNTIME_NET_GRPC_SERVER_H
#define TFC_RUNTIME_NET_GRPC_SERVER_H

#include <stdatomic.h>
#include "runtime/net/connection.h"
#include "runtime/net/grpc.h"

struct grpc_call {
  const char *path;    /* "/tensorflow.MasterService/RunStep" */
  const uint8_t *body; /* the request's message */
  size_t size;
  int64_t timeout_ms;    /* -1: none */
  atomic_bool cancelled; /* the client has gone: nobody reads the answer */
};

/* Who answers requests. */
struct grpc_service {
  void *self;
  /* A complete request; called on the network thread, must not wait; answered by grpc_call_reply from any thread. */
  void (*on_call)(void *self, struct grpc_call *call);
};

/* Answers, once, from any thread; the call is dead afterwards. OK: body (malloc'ed, taken; may be NULL when size is 0).
 * Else `text` is copied. */
void grpc_call_reply(struct grpc_call *call, status code, const char *text, uint8_t *body, size_t size);

/* Keeps path, body and `cancelled` alive, also after the answer. */
void grpc_call_retain(struct grpc_call *call);
void grpc_call_release(struct grpc_call *call);

/* A connection that may make calls, as this file sees it; from any thread. */
struct grpc_guest {
  atomic_bool has_session; /* a call of it was answered well by the service: it is a client; until then, a stranger */
  atomic_int calls;        /* that the service has not answered yet */
};

struct grpc_server;
/* name is in the text for browsers; clients_bytes: what requests and answers of clients may hold together. */
status grpc_server_create(const char *name, int64_t clients_bytes, struct grpc_server **out);
/* After all its connections. */
void grpc_server_destroy(struct grpc_server *server);
void grpc_server_set_service(struct grpc_server *server, const struct grpc_service *service);

/* What GET answers at `path` (kept by reference, as content_type): a copy of the text, in place of the one before; who is still being
 * sent that keeps it. At most GRPC_PAGES paths. Without memory the one before stays. Any thread. */
#define GRPC_PAGES 4
void grpc_server_set_page(struct grpc_server *server, const char *path, const char *content_type, const char *text);

/* Stream events; stream->user belongs to the server until on_close, the guest lives as long as the connection's HTTP/2 end. */
void grpc_server_on_headers(struct grpc_server *server, struct connection *connection, struct grpc_guest *guest,
                            struct http2_stream *stream);
void grpc_server_on_data(struct grpc_server *server, struct http2_stream *stream, const uint8_t *data, size_t size);
void grpc_server_on_end(struct grpc_server *server, struct http2_stream *stream);
void grpc_server_on_close(struct grpc_server *server, struct http2_stream *stream);

#endif
