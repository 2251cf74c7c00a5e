/* connection.h: a socket and its HTTP/2 end (http2.h), driven by the loop and by the threads that send.
 *
 * Reading happens on the loop's thread. Whoever sends hands a post to the connection: a call that is made under the
 * connection's lock, as soon as possible on whatever thread can have it. A sender that gets the lock at once writes itself, which
 * saves a change of threads per message; when the lock is taken its holder makes the call; when the socket is full the
 * loop goes on. Nobody ever waits for the lock but the loop.
 *
 * Owner: counted. The loop holds one reference until the connection is closed.
 */
#ifndef TFC_RUNTIME_NET_CONNECTION_H
#define TFC_RUNTIME_NET_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include "runtime/net/http2.h"
#include "runtime/net/loop.h"
#include "runtime/net/tls.h"

struct connection;
struct connection_post {
  /* Under the lock; http2 is NULL when the connection is closed: give back what the post holds. */
  void (*run)(struct connection_post *post, struct http2 *http2);
  struct connection_post *next;
};

/* self of http2's handlers is the connection. Handlers run under the lock and may post, but not wait. */
struct connection_handler {
  struct http2_handler http2;
  /* Where the coming bytes belong; 0: anywhere. May be NULL. */
  size_t (*target)(struct connection *connection, uint8_t **out);
  /* A dialled connection stands. May be NULL. */
  void (*on_connected)(struct connection *connection);
  /* Closed, after all streams: on the loop's thread, without the lock. reason is "" when it was in order. */
  void (*on_closed)(struct connection *connection, const char *reason);
};

/* Takes the socket and the TLS end (NULL: none), also when it fails. is_connecting: it becomes writable when it stands. On the loop's
 * thread. */
status connection_create(struct loop *loop, int fd, struct tls *tls, bool is_server, bool is_connecting,
                         const struct connection_handler *handler, void *user, struct connection **out);
struct connection *connection_retain(struct connection *connection);
void connection_release(struct connection *connection); /* accepts NULL */

void *connection_user(const struct connection *connection);
/* How many bytes are read from it before the others have their turn; NET_ROUND_BYTES unless told. On the loop's thread. */
void connection_set_round(struct connection *connection, size_t bytes);
/* The HTTP/2 end: on the loop's thread right after create, and in handlers and posts. NULL once it is closed. */
struct http2 *connection_http2(const struct connection *connection);

/* Without TLS, or with a certificate that has the name. On the loop's thread, while it has an HTTP/2 end. */
bool connection_is_for(const struct connection *connection, const char *name);
/* TLS has refused the peer, or the peer us: the reason given to on_closed says why. */
bool connection_is_refused(const struct connection *connection);

/* On the loop's thread, in no handler: makes the call under the lock, unless the connection is closed, and sends what it has said.
 * on_closed may follow before it returns. */
void connection_visit(struct connection *connection, void (*visit)(struct connection *connection));

/* On any thread. The post runs before this returns if the connection's lock is free, else on the thread that holds it: it may take the
 * cluster's lock, so that one is not held here. Owner of the post: the caller, until it has run. */
void connection_post(struct connection *connection, struct connection_post *post);

/* Both on the loop's thread, handlers included; on_closed follows later. In order: GOAWAY, everything handed over before, then the end of
 * the stream, and the peer's. At once: nothing more is sent. reason is for on_closed. */
void connection_shutdown(struct connection *connection);
void connection_abort(struct connection *connection, const char *reason);

#endif
