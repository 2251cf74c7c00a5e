/* grpc_server.c: unary calls: gathers a request, hands it to the service, sends the answer.
 *
 * A call is held by two: its stream (until on_close) and the service (until it replies). Whoever is last frees it.
 */
#include "runtime/net/grpc_server.h"

#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE_PREFIX "/tensorflow."
#define HEALTH_PATH "/grpc.health.v1.Health/Check"

/* A text that is sent as it is, to as many as ask for it. */
struct page {
  atomic_int references;
  const char *path, *content_type;
  size_t size;
  char text[];
};
struct grpc_server {
  const char *name;
  pthread_mutex_t lock; /* of the service and the pages */
  struct page *pages[GRPC_PAGES];
  struct grpc_service service;
  int64_t clients_bytes;
  _Atomic int64_t held[2]; /* bytes of requests and answers: of strangers, of clients */
};

struct call {
  struct grpc_call public; /* first */
  struct connection_post reply;
  struct grpc_server *server;
  struct connection *connection;
  struct http2_stream *stream; /* NULL: gone; under the connection's lock */
  struct grpc_guest *guest;    /* as long as the connection has an HTTP/2 end */
  bool is_clients;             /* it counts as a client's */
  int64_t held;                /* of the server's bytes */
  atomic_int references;
  struct grpc_reader reader;
  uint32_t messages;
  uint8_t *body;
  size_t used;
  bool is_handed_over; /* to the service */
  /* the answer */
  status code;
  char *text;
  uint8_t *answer;
  size_t answer_size;
};

static void call_release(struct call *call) {
  if (atomic_fetch_sub(&call->references, 1) != 1)
    return;
  atomic_fetch_sub(&call->server->held[call->is_clients], call->held);
  connection_release(call->connection);
  free((char *)call->public.path);
  free(call->body);
  free(call->answer);
  free(call->text);
  free(call);
}

void grpc_call_retain(struct grpc_call *call) { atomic_fetch_add(&((struct call *)call)->references, 1); }
void grpc_call_release(struct grpc_call *call) { call_release((struct call *)call); }

/* ---- memory ---- */

static int64_t bytes_max(const struct call *call) { return call->is_clients ? call->server->clients_bytes : NET_STRANGERS_BYTES; }

/* False: it and the others would hold too much. */
static bool bytes_hold(struct call *call, int64_t more) {
  _Atomic int64_t *held = &call->server->held[call->is_clients];
  if (atomic_fetch_add(held, more) + more > bytes_max(call)) {
    atomic_fetch_sub(held, more);
    return false;
  }
  call->held += more;
  return true;
}

/* An answer may be as large as the program makes it, when nobody else holds anything. */
static bool answer_hold(struct call *call, int64_t more) {
  _Atomic int64_t *held = &call->server->held[call->is_clients];
  bool is_alone = atomic_load(held) == call->held;
  if (!is_alone && !bytes_hold(call, more))
    return false;
  if (is_alone) {
    atomic_fetch_add(held, more);
    call->held += more;
  }
  return true;
}

/* ---- answers ---- */

static void release_answer(void *call) { call_release(call); }

static void run_reply(struct connection_post *post, struct http2 *http2) {
  struct call *call = (struct call *)((char *)post - offsetof(struct call, reply));
  struct http2_stream *stream = http2 ? call->stream : NULL;
  uint8_t prefix[GRPC_PREFIX_BYTES];
  if (http2)
    atomic_fetch_sub(&call->guest->calls, 1);
  if (stream && call->code == OK) {
    grpc_write_prefix((uint32_t)call->answer_size, prefix);
    status sent = http2_respond(stream, 200, "application/grpc");
    if (sent == OK)
      sent = http2_send_copy(stream, prefix, sizeof prefix);
    if (sent == OK) {
      atomic_fetch_add(&call->references, 1);
      sent = http2_send(stream, call->answer, call->answer_size, release_answer, call);
    }
    if (call->is_handed_over && strcmp(call->public.path, HEALTH_PATH) != 0)
      atomic_store(&call->guest->has_session, true);
    http2_finish_grpc(stream, sent, sent == OK ? NULL : status_text());
  } else if (stream) {
    http2_finish_grpc(stream, call->code, call->text);
  }
  call_release(call);
}

void grpc_call_reply(struct grpc_call *public, status code, const char *text, uint8_t *body, size_t size) {
  struct call *call = (struct call *)public;
  if (code == OK && size > NET_MESSAGE_BYTES * UINT64_C(2)) {
    code = RESOURCE_EXHAUSTED;
    text = "the answer is larger than 2 GiB";
  }
  if (code == OK && !answer_hold(call, (int64_t)size)) {
    code = RESOURCE_EXHAUSTED;
    text = "the answers that clients have not taken yet hold what clients may hold together (--client-memory)";
  }
  call->code = code;
  call->text = code != OK && text ? strdup(text) : NULL;
  call->answer = body;
  call->answer_size = size;
  call->reply.run = run_reply;
  struct connection *connection = connection_retain(call->connection);
  connection_post(connection, &call->reply);
  connection_release(connection);
}

/* A stream that is no call: answered when it ends, since its body may still turn out to be wrong. */
static struct call plain;

static void page_release(void *page) {
  if (page && atomic_fetch_sub(&((struct page *)page)->references, 1) == 1)
    free(page);
}

static struct page *page_find(struct grpc_server *server, const char *path) {
  struct page *found = NULL;
  pthread_mutex_lock(&server->lock);
  for (int i = 0; i < GRPC_PAGES && !found; i++)
    if (server->pages[i] && strcmp(server->pages[i]->path, path) == 0)
      found = server->pages[i];
  if (found)
    atomic_fetch_add(&found->references, 1);
  pthread_mutex_unlock(&server->lock);
  return found;
}

void grpc_server_set_page(struct grpc_server *server, const char *path, const char *content_type, const char *text) {
  size_t size = strlen(text);
  struct page *page = malloc(sizeof *page + size + 1), *before = NULL;
  if (!page)
    return;
  *page = (struct page){.path = path, .content_type = content_type, .size = size};
  atomic_init(&page->references, 1);
  memcpy(page->text, text, size + 1);
  pthread_mutex_lock(&server->lock);
  int place = 0;
  while (place < GRPC_PAGES - 1 && server->pages[place] && strcmp(server->pages[place]->path, path) != 0)
    place++;
  before = server->pages[place];
  server->pages[place] = page;
  pthread_mutex_unlock(&server->lock);
  page_release(before);
}

static bool answer_page(struct grpc_server *server, struct http2_stream *stream) {
  struct page *page = strcmp(stream->method, "GET") == 0 ? page_find(server, stream->path) : NULL;
  if (!page)
    return false;
  if (http2_respond(stream, 200, page->content_type) != OK) {
    page_release(page);
    return true;
  }
  if (http2_send(stream, page->text, page->size, page_release, page) == OK)
    http2_finish(stream);
  return true;
}

static void answer_plainly(struct grpc_server *server, struct http2_stream *stream) {
  if (answer_page(server, stream))
    return;
  bool is_other_call = strcmp(stream->method, "POST") == 0 && strncmp(stream->content_type, "application/", 12) == 0;
  int code = is_other_call ? 415 : 200;
  char text[160];
  int size = snprintf(text, sizeof text, code == 200 ? "tfc %s: a task that speaks gRPC\n" : "this is a gRPC server (%s)\n", server->name);
  if (http2_respond(stream, code, "text/plain") == OK && http2_send_copy(stream, text, (size_t)size) == OK)
    http2_finish(stream);
}

/* ---- requests ---- */

static void call_refuse(struct call *call, status code, const char *text) {
  if (call->stream && !call->is_handed_over) {
    call->is_handed_over = true;
    http2_finish_grpc(call->stream, code, text);
  }
}

static void refuse_bytes(struct call *call) {
  char text[160];
  if (call->is_clients)
    snprintf(text, sizeof text, "the requests and answers of clients may hold %lld MiB together (--client-memory)",
             (long long)call->server->clients_bytes >> 20);
  else
    snprintf(text, sizeof text, "the first requests of connections may hold %d MiB together: ask for a session first",
             NET_STRANGERS_BYTES >> 20);
  call_refuse(call, RESOURCE_EXHAUSTED, text);
}

/* The message's size is known: its memory is touched as its bytes come. */
static bool body_add(struct call *call, const uint8_t *piece, size_t bytes) {
  if (!call->body)
    call->body = malloc(call->reader.size);
  if (!call->body || !bytes_hold(call, (int64_t)bytes))
    return false;
  memcpy(call->body + call->used, piece, bytes);
  call->used += bytes;
  return true;
}

void grpc_server_on_headers(struct grpc_server *server, struct connection *connection, struct grpc_guest *guest,
                            struct http2_stream *stream) {
  stream->user = NULL;
  if (!grpc_is_content_type(stream->content_type)) {
    stream->user = &plain;
    return;
  }
  pthread_mutex_lock(&server->lock);
  bool is_served = (server->service.on_call && strncmp(stream->path, SERVICE_PREFIX, strlen(SERVICE_PREFIX)) == 0) ||
                   strcmp(stream->path, HEALTH_PATH) == 0;
  pthread_mutex_unlock(&server->lock);
  if (!is_served) {
    char text[NET_PATH_BYTES + 64];
    snprintf(text, sizeof text, "the method %s is not served here", stream->path);
    http2_finish_grpc(stream, UNIMPLEMENTED, text);
    return;
  }
  struct call *call = calloc(1, sizeof *call);
  char *path = strdup(stream->path);
  if (!call || !path) {
    free(call);
    free(path);
    http2_finish_grpc(stream, RESOURCE_EXHAUSTED, "no memory for a call");
    return;
  }
  call->public.path = path;
  call->public.timeout_ms = stream->timeout[0] ? grpc_parse_timeout(stream->timeout) : -1;
  call->server = server;
  call->connection = connection_retain(connection);
  call->stream = stream;
  call->guest = guest;
  call->is_clients = atomic_load(&guest->has_session);
  call->references = 1;
  stream->user = call;
}

void grpc_server_on_data(struct grpc_server *server, struct http2_stream *stream, const uint8_t *data, size_t size) {
  (void)server;
  struct call *call = stream->user;
  const uint8_t *piece = NULL;
  size_t bytes = 0;
  while (call && call != &plain && !call->is_handed_over) {
    switch (grpc_read(&call->reader, &data, &size, &piece, &bytes)) {
    case GRPC_NEED_MORE: return;
    case GRPC_COMPRESSED: call_refuse(call, UNIMPLEMENTED, "compressed messages are not supported"); return;
    case GRPC_BEGIN:
      if (++call->messages > 1)
        call_refuse(call, INVALID_ARGUMENT, "a unary call has one message");
      else if (call->reader.size > bytes_max(call))
        refuse_bytes(call);
      break;
    case GRPC_BYTES:
      if (!body_add(call, piece, bytes)) {
        refuse_bytes(call);
        return;
      }
      break;
    case GRPC_END: break;
    }
  }
}

/* HealthCheckResponse {1: SERVING}: who can ask is served. */
static void answer_health(struct call *call) {
  static const uint8_t serving[] = {0x08, 0x01};
  uint8_t *body = malloc(sizeof serving);
  if (body)
    memcpy(body, serving, sizeof serving);
  grpc_call_reply(&call->public, body ? OK : RESOURCE_EXHAUSTED, "no memory", body, sizeof serving);
}

void grpc_server_on_end(struct grpc_server *server, struct http2_stream *stream) {
  struct call *call = stream->user;
  const uint8_t *data = NULL, *piece = NULL;
  size_t size = 0, bytes = 0;
  if (call == &plain)
    answer_plainly(server, stream);
  if (!call || call == &plain || call->is_handed_over)
    return;
  grpc_read(&call->reader, &data, &size, &piece, &bytes); /* the end of an empty message needs no byte */
  if (call->messages != 1 || !grpc_reader_is_between(&call->reader)) {
    call_refuse(call, INVALID_ARGUMENT, "the request ended before its message");
    return;
  }
  call->is_handed_over = true;
  call->public.body = call->body;
  call->public.size = call->used;
  atomic_fetch_add(&call->references, 1);
  atomic_fetch_add(&call->guest->calls, 1);
  if (strcmp(call->public.path, HEALTH_PATH) == 0) {
    answer_health(call);
    return;
  }
  pthread_mutex_lock(&server->lock); /* held: who takes the service away knows that it is in no call */
  if (server->service.on_call)
    server->service.on_call(server->service.self, &call->public);
  else
    grpc_call_reply(&call->public, UNAVAILABLE, "the task is leaving", NULL, 0);
  pthread_mutex_unlock(&server->lock);
}

void grpc_server_on_close(struct grpc_server *server, struct http2_stream *stream) {
  (void)server;
  struct call *call = stream->user;
  if (!call || call == &plain)
    return;
  stream->user = NULL;
  call->stream = NULL;
  atomic_store(&call->public.cancelled, true);
  call_release(call);
}

/* ---- life ---- */

status grpc_server_create(const char *name, int64_t clients_bytes, struct grpc_server **out) {
  struct grpc_server *server = calloc(1, sizeof *server);
  if (!server)
    return fail(RESOURCE_EXHAUSTED, "no memory for the server");
  server->name = name;
  server->clients_bytes = clients_bytes;
  pthread_mutex_init(&server->lock, NULL);
  *out = server;
  return OK;
}

void grpc_server_destroy(struct grpc_server *server) {
  if (!server)
    return;
  for (int i = 0; i < GRPC_PAGES; i++)
    page_release(server->pages[i]);
  pthread_mutex_destroy(&server->lock);
  free(server);
}

void grpc_server_set_service(struct grpc_server *server, const struct grpc_service *service) {
  pthread_mutex_lock(&server->lock);
  server->service = service ? *service : (struct grpc_service){0};
  pthread_mutex_unlock(&server->lock);
}
