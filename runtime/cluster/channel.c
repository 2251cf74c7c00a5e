/* channel.c: one connection of a task: its streams are a link to another task, or calls of clients.
 *
 * HELLO decides (greet.c). Who is turned away hears why as the gRPC status of the stream, and nothing that a stranger could use; both sides
 * tell their users. All handlers run on the loop's thread under the connection's lock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "runtime/cluster/cluster_state.h"

#define CLIENT_PREFIX "/tensorflow."

static const struct link_handler link_events;

static bool is_link(const struct channel *channel, const struct http2_stream *stream) {
  return channel->has_link && channel->link.stream == stream;
}

static void refusal_set(struct channel *channel, status code, const char *text) {
  if (channel->refusal[0])
    return;
  channel->refusal_code = code;
  snprintf(channel->refusal, sizeof channel->refusal, "%s", text);
}

/* ---- messages ---- */

/* Proves the HELLOs of a link that begins. */
static status link_greet(struct channel *channel) {
  uint8_t nonce[PROOF_NONCE_BYTES];
  if (getrandom(nonce, sizeof nonce, 0) != sizeof nonce)
    return fail(UNAVAILABLE, "no random numbers");
  return link_prove(&channel->link, channel->cluster->key, channel->is_dialled ? PROOF_DIALLER : PROOF_LISTENER, nonce);
}

static void on_message(void *self, const struct message *message) {
  struct channel *channel = self;
  switch (message->kind) {
  case MESSAGE_GRANT:
  case MESSAGE_REFUSED:
  case MESSAGE_PROBE:
  case MESSAGE_ALIVE: greet_on_message(channel, message); return;
  case MESSAGE_ACK: peer_acknowledged(channel->peer, channel, message->received); return;
  default:
    if (peer_take(channel->peer, channel, 0))
      peer_message(channel->peer, channel, message);
  }
}

static status on_head(void *self, const struct message *message) {
  struct channel *channel = self;
  const struct exchange_sink *sink = &channel->cluster->sink;
  return sink->admits && channel->peer
         ? sink->admits(sink->self, channel->peer->task, message->step, message->transfer, message->dtype, &message->shape)
         : OK;
}

static void on_tensor(void *self, const struct message *message, struct tensor *tensor) {
  struct channel *channel = self;
  if (peer_take(channel->peer, channel, message->bytes))
    peer_tensor(channel->peer, message, tensor);
  else
    tensor_release(tensor);
}

static void on_control(void *self, const struct message *message, const void *data, size_t size) {
  struct channel *channel = self;
  if (peer_take(channel->peer, channel, size))
    peer_control(channel->peer, message, data, size);
}

static const struct link_handler link_events = {greet_on_hello, on_message, on_tensor, on_control, greet_on_challenge, on_head};

/* ---- streams ---- */

static void link_accept(struct channel *channel, struct http2_stream *stream) {
  if (channel->has_link || !grpc_is_content_type(stream->content_type)) {
    http2_finish_grpc(stream, ALREADY_EXISTS, "one link a connection");
    return;
  }
  if (http2_respond(stream, 200, "application/grpc") != OK)
    return;
  channel->has_link = channel->guest.is_greeting = true;
  link_init(&channel->link, stream, &link_events, channel, loop_now_ms());
  if (link_greet(channel) != OK)
    connection_abort(channel->connection, status_text());
}

static void on_headers(void *self, struct http2_stream *stream) {
  struct connection *connection = self;
  struct channel *channel = connection_user(connection);
  if (channel->is_dialled) {
    if (stream->http_status != 200)
      refusal_set(channel, grpc_status_from_http(stream->http_status), "what answers there is not a task of this program");
    return;
  }
  if (strcmp(stream->path, LINK_PATH) == 0 && strcmp(stream->method, "POST") == 0)
    link_accept(channel, stream);
  else if (strncmp(stream->path, CLIENT_PREFIX, strlen(CLIENT_PREFIX)) == 0 && cluster_check_clients(channel->cluster) != OK)
    http2_finish_grpc(stream, PERMISSION_DENIED, status_text());
  else
    grpc_server_on_headers(channel->cluster->server, connection, &channel->guest.grpc, stream);
}

/* In the log, but not as often as strangers like. */
static void refusal_say(struct channel *channel, const char *text) {
  uint32_t unsaid = 0;
  if (channel->guest.is_in && !admission_may_say(&channel->cluster->admission, text, loop_now_ms(), &unsaid))
    return;
  if (unsaid > 0)
    cluster_log(channel->cluster, "refused %" PRIu32 " more connections like those before", unsaid);
  cluster_log(channel->cluster, "refused a connection: %s", text);
}

/* The dialler tells a process that has no place here: it would hear it nowhere else. */
static void twin_tell(struct channel *channel, status code, const char *text) {
  struct message refused;
  refused.kind = MESSAGE_REFUSED;
  refused.code = code;
  refused.step = 0;
  snprintf(refused.text, sizeof refused.text, "%s", text);
  status sent = link_send(&channel->link, &refused);
  (void)sent;
  connection_shutdown(channel->connection);
}

void channel_refuse(struct channel *channel, status code, const char *text) {
  refusal_set(channel, code, text);
  channel->stage = CHANNEL_SILENT;
  if (channel->peer && channel->peer->channel == channel) {
    peer_break(channel->peer, channel, channel->refusal);
  } else if (channel->is_dialled && code == ALREADY_EXISTS) {
    twin_tell(channel, code, channel->refusal);
  } else if (channel->is_dialled) {
    connection_abort(channel->connection, channel->refusal);
  } else {
    if (code != UNAVAILABLE)
      refusal_say(channel, channel->refusal);
    http2_finish_grpc(channel->link.stream, code, channel->refusal);
  }
}

static void on_data(void *self, struct http2_stream *stream, const uint8_t *data, size_t size) {
  struct channel *channel = connection_user(self);
  if (!is_link(channel, stream)) {
    if (!channel->is_dialled)
      grpc_server_on_data(channel->cluster->server, stream, data, size);
    return;
  }
  if (channel->refusal[0])
    return;
  status code = link_receive(&channel->link, data, size);
  if (code != OK)
    channel_refuse(channel, code, status_text());
}

static void on_end(void *self, struct http2_stream *stream) {
  struct channel *channel = connection_user(self);
  if (!is_link(channel, stream)) {
    if (!channel->is_dialled)
      grpc_server_on_end(channel->cluster->server, stream);
    return;
  }
  if (!channel->is_dialled) {
    http2_finish_grpc(stream, OK, NULL);
    return;
  }
  if (stream->grpc_status > 0) {
    if (stream->grpc_message)
      grpc_percent_decode(stream->grpc_message);
    refusal_set(channel, (status)stream->grpc_status, stream->grpc_message ? stream->grpc_message : "it refused the link");
  }
  http2_finish(stream);
}

static void on_close(void *self, struct http2_stream *stream, uint32_t error) {
  struct channel *channel = connection_user(self);
  (void)error;
  if (!is_link(channel, stream)) {
    if (!channel->is_dialled)
      grpc_server_on_close(channel->cluster->server, stream);
    return;
  }
  link_deinit(&channel->link);
  channel->has_link = false;
  connection_shutdown(channel->connection); /* a connection between tasks is there for its link */
}

static void on_goaway(void *self, uint32_t error) { (void)self, (void)error; }

static size_t target(struct connection *connection, uint8_t **out) {
  struct channel *channel = connection_user(connection);
  return channel->has_link ? link_target(&channel->link, out) : 0;
}

/* ---- ticks ---- */

static void guest_check(struct channel *channel, struct http2 *http2, uint64_t now_ms) {
  struct guest_state state = {
    .has_calls = http2_has_streams(http2), .is_waiting = http2_is_waiting(http2), .bytes = http2_data_bytes(http2)};
  const char *why = admission_check(&channel->guest, &state, now_ms);
  if (why)
    connection_abort(channel->connection, why);
}

static void run_tick(struct connection_post *post, struct http2 *http2) {
  struct channel *channel = (struct channel *)((char *)post - offsetof(struct channel, tick));
  uint64_t now_ms = loop_now_ms();
  atomic_store(&channel->tick_is_posted, false);
  if (http2)
    guest_check(channel, http2, now_ms);
  if (!http2 || !channel->has_link)
    return;
  if (link_tick(&channel->link, now_ms) != OK)
    connection_abort(channel->connection, status_text());
  if (channel->peer && peer_heard(channel->peer, channel, channel->link.received_ms)) {
    peer_acknowledge(channel->peer, channel);
    peer_flush(channel->peer, channel);
  } else if (now_ms - channel->link.received_ms >= NET_SILENCE_MS) {
    connection_abort(channel->connection, "no answer");
  }
}

void channel_tick(struct channel *channel, uint64_t now_ms, bool is_stalled) {
  if (is_stalled)
    channel->created_ms = now_ms;
  if (channel->is_dialled && !channel->link.is_open && now_ms - channel->created_ms > NET_SILENCE_MS)
    connection_abort(channel->connection, "no answer");
  else if (!atomic_exchange(&channel->tick_is_posted, true))
    connection_post(channel->connection, &channel->tick);
}

/* ---- life ---- */

static void dialled_has_closed(struct channel *channel, const char *reason) {
  struct cluster *cluster = channel->cluster;
  struct peer *peer = channel->peer;
  peer->dialling = NULL;
  if (channel->refusal_code == ALREADY_EXISTS)
    cluster_refuse(cluster, reason);
  if (channel->refusal_code == FAILED_PRECONDITION) {
    pthread_mutex_lock(&cluster->lock);
    peer->is_refused = true;
    pthread_mutex_unlock(&cluster->lock);
  }
  peer_dial_failed(peer, reason);
}

static void on_closed(struct connection *connection, const char *reason) {
  struct channel *channel = connection_user(connection);
  struct cluster *cluster = channel->cluster;
  struct peer *peer = channel->peer;
  if (channel->previous)
    channel->previous->next = channel->next;
  else
    cluster->channels = channel->next;
  if (channel->next)
    channel->next->previous = channel->previous;
  cluster->channel_count--;
  if (!channel->is_dialled && connection_is_refused(connection))
    refusal_say(channel, reason);
  admission_leave(&cluster->admission, &channel->guest);
  if (channel->refusal[0])
    reason = channel->refusal;
  if (peer && peer->dialling == channel)
    dialled_has_closed(channel, reason);
  else if (peer && peer->channel == channel)
    peer_cut(peer, reason[0] ? reason : "it has closed the connection");
  free(channel);
}

static const struct connection_handler connection_events = {.http2 = {on_headers, on_data, on_end, on_close, on_goaway},
                                                            .target = target,
                                                            .on_closed = on_closed};

/* The dialled side opens the stream. */
static status link_open(struct channel *channel) {
  struct http2_stream *stream = http2_request(connection_http2(channel->connection), LINK_PATH, "tfc", NULL);
  if (!stream)
    return fail(RESOURCE_EXHAUSTED, "no memory for a link");
  channel->has_link = true;
  link_init(&channel->link, stream, &link_events, channel, channel->created_ms);
  return link_greet(channel);
}

/* A place for who was accepted, if need be another's. */
static void guest_enter(struct channel *channel) {
  struct guest *leaves = admission_enter(&channel->cluster->admission, &channel->guest, channel->created_ms);
  if (leaves)
    connection_abort(((struct channel *)((char *)leaves - offsetof(struct channel, guest)))->connection, "it makes room for another");
}

/* The TLS end of a new connection; NULL where there is none. */
static status tls_begin(struct cluster *cluster, const struct peer *peer, struct tls **out) {
  pthread_mutex_lock(&cluster->lock);
  struct tls_context *context = cluster->tls ? tls_context_retain(cluster->tls) : NULL;
  pthread_mutex_unlock(&cluster->lock);
  if (!context)
    return OK;
  status code = tls_create(context, peer ? peer->name : NULL, out);
  tls_context_release(context);
  return code;
}

status channel_create(struct cluster *cluster, int fd, struct peer *peer, struct channel **out) {
  struct channel *channel = calloc(1, sizeof *channel);
  if (!channel) {
    close(fd);
    return fail(RESOURCE_EXHAUSTED, "no memory for a connection");
  }
  channel->cluster = cluster;
  channel->peer = peer;
  channel->is_dialled = peer != NULL;
  channel->created_ms = channel->opened_ms = loop_now_ms();
  channel->tick.run = run_tick;
  struct tls *tls = NULL;
  status code = tls_begin(cluster, peer, &tls);
  if (code == OK)
    code = connection_create(cluster->loop, fd, tls, !peer, peer != NULL, &connection_events, channel, &channel->connection);
  else
    close(fd);
  if (code != OK) {
    free(channel);
    return code;
  }
  channel->next = cluster->channels;
  if (cluster->channels)
    cluster->channels->previous = channel;
  cluster->channels = channel;
  cluster->channel_count++;
  if (!peer) {
    guest_enter(channel);
    connection_set_round(channel->connection, NET_STRANGER_ROUND_BYTES);
  }
  if (peer && link_open(channel) != OK)
    connection_abort(channel->connection, status_text());
  *out = channel;
  return OK;
}

void channel_leave(struct channel *channel) {
  if (channel->is_dialled && !channel->link.is_open)
    connection_abort(channel->connection, "");
  else
    connection_shutdown(channel->connection);
}
