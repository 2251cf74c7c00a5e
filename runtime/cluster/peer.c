/* peer.c: another task as this one sees it: up or not, what it has said, and what is said to it.
 *
 * What a thread sends becomes a post to the peer's connection; posts of one thread keep their order, and what was handed over
 * before the peer's loss is given back by the connection. A driver's steps are remembered until they are reported, so that
 * a loss ends each of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/cluster/cluster_state.h"

/* ---- sending ---- */

struct outgoing {
  struct connection_post post; /* first */
  struct channel *channel;     /* alive as long as post.run gets an HTTP/2 end */
  enum message_kind kind;
  uint64_t step;
  uint32_t number;             /* entry or transfer */
  status code;
  struct tensor *tensor;
  char text[];
};

static void run_outgoing(struct connection_post *post, struct http2 *http2) {
  struct outgoing *out = (struct outgoing *)post;
  struct link *link = http2 && out->channel->has_link ? &out->channel->link : NULL;
  struct message message;
  message.kind = out->kind;
  message.step = out->step;
  message.entry = message.transfer = out->number;
  message.code = out->code;
  status sent = OK;
  if (out->kind == MESSAGE_DONE || out->kind == MESSAGE_RESET)
    snprintf(message.text, sizeof message.text, "%s", out->text);
  if (link && out->tensor)
    sent = link_send_tensor(link, &message, out->tensor);
  else if (link)
    sent = link_send(link, &message);
  else if (out->tensor)
    tensor_release(out->tensor);
  if (sent != OK && link) /* the other side waits for what cannot be sent: end it now */
    connection_abort(out->channel->connection, status_text());
  free(out);
}

bool peer_send(struct peer *peer, enum message_kind kind, uint64_t step, uint32_t number, status code, const char *text,
               struct tensor *tensor) {
  size_t text_size = text ? strnlen(text, NET_TEXT_BYTES - 1) : 0;
  struct outgoing *out = malloc(sizeof *out + text_size + 1);
  struct connection *connection = NULL;
  pthread_mutex_lock(&peer->cluster->lock);
  if (out && peer->connection) {
    connection = connection_retain(peer->connection);
    *out = (struct outgoing){.post.run = run_outgoing, .channel = peer->channel, .kind = kind, .step = step,
                             .number = number, .code = code, .tensor = tensor};
    memcpy(out->text, text ? text : "", text_size);
    out->text[text_size] = 0;
    if (kind == MESSAGE_START)
      vec_push(&peer->started, step);
  }
  pthread_mutex_unlock(&peer->cluster->lock);
  if (!connection) {
    tensor_release(tensor);
    free(out);
    return false;
  }
  connection_post(connection, &out->post);
  connection_release(connection);
  return true;
}

/* ---- the exchange ---- */

struct late_failure {
  struct loop_call call; /* first */
  struct peer *peer;
  uint64_t step;
};

/* The sink is told on the exchange's thread, never inside `start`. */
static void run_late_failure(struct loop_call *call) {
  struct late_failure *late = (struct late_failure *)call;
  struct peer *peer = late->peer;
  struct exchange_sink *sink = &peer->cluster->sink;
  char text[CLUSTER_REASON_BYTES + 512];
  pthread_mutex_lock(&peer->cluster->lock);
  snprintf(text, sizeof text, "%s at %s is not connected%s%s", peer->name, peer->address, peer->reason[0] ? ": " : "", peer->reason);
  pthread_mutex_unlock(&peer->cluster->lock);
  if (sink->on_done)
    sink->on_done(sink->self, peer->task, late->step, UNAVAILABLE, text);
  free(late);
}

static void exchange_start(void *self, uint32_t task, uint64_t step, uint32_t entry) {
  struct cluster *cluster = self;
  struct peer *peer = &cluster->peers[task];
  if (peer_send(peer, MESSAGE_START, step, entry, OK, NULL, NULL))
    return;
  struct late_failure *late = malloc(sizeof *late);
  if (!late)
    return;
  *late = (struct late_failure){.call.run = run_late_failure, .peer = peer, .step = step};
  loop_post(cluster->loop, &late->call);
}

static void exchange_send(void *self, uint32_t task, uint64_t step, uint32_t transfer, struct tensor *tensor) {
  peer_send(&((struct cluster *)self)->peers[task], MESSAGE_TENSOR, step, transfer, OK, NULL, tensor);
}

static void exchange_done(void *self, uint32_t task, uint64_t step, status code, const char *text) {
  peer_send(&((struct cluster *)self)->peers[task], MESSAGE_DONE, step, 0, code, text, NULL);
}

static void exchange_cancel(void *self, uint32_t task, uint64_t step) {
  peer_send(&((struct cluster *)self)->peers[task], MESSAGE_CANCEL, step, 0, OK, NULL, NULL);
}

static void exchange_reset(void *self, uint32_t task, const char *containers) {
  peer_send(&((struct cluster *)self)->peers[task], MESSAGE_RESET, 0, 0, OK, containers, NULL);
}

void peer_exchange_init(struct cluster *cluster) {
  cluster->exchange = (struct exchange){.self = cluster, .start = exchange_start, .send = exchange_send,
                                        .done = exchange_done, .cancel = exchange_cancel, .reset = exchange_reset};
}

/* ---- what it says ---- */

static void set_ready(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  cluster->is_ready = true;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
}

static void set_finished(struct peer *peer) {
  pthread_mutex_lock(&peer->cluster->lock);
  peer->is_finished = true;
  peer->changed_ms = loop_now_ms();
  pthread_cond_broadcast(&peer->cluster->changed);
  pthread_mutex_unlock(&peer->cluster->lock);
}

static void step_reported(struct peer *peer, uint64_t step) {
  pthread_mutex_lock(&peer->cluster->lock);
  for (uint32_t i = 0; i < peer->started.count; i++)
    if (peer->started.items[i] == step) {
      peer->started.items[i] = vec_last(&peer->started);
      peer->started.count--;
      break;
    }
  pthread_mutex_unlock(&peer->cluster->lock);
}

void peer_message(struct peer *peer, const struct message *m) {
  struct exchange_sink *sink = &peer->cluster->sink;
  switch (m->kind) {
  case MESSAGE_START:
    if (sink->on_start)
      sink->on_start(sink->self, peer->task, m->step, m->entry);
    break;
  case MESSAGE_DONE:
    step_reported(peer, m->step);
    if (sink->on_done)
      sink->on_done(sink->self, peer->task, m->step, m->code, m->text);
    break;
  case MESSAGE_CANCEL:
    if (sink->on_cancel)
      sink->on_cancel(sink->self, m->step);
    break;
  case MESSAGE_RESET:
    if (sink->on_reset)
      sink->on_reset(sink->self, m->text);
    break;
  case MESSAGE_READY:
    set_ready(peer->cluster);
    break;
  case MESSAGE_FINISHED:
    set_finished(peer);
    if (sink->on_finished)
      sink->on_finished(sink->self, peer->task);
    break;
  case MESSAGE_BYE:
    pthread_mutex_lock(&peer->cluster->lock);
    peer->said_bye = true;
    pthread_mutex_unlock(&peer->cluster->lock);
    break;
  default:
    break;
  }
}

void peer_tensor(struct peer *peer, const struct message *m, struct tensor *tensor) {
  struct exchange_sink *sink = &peer->cluster->sink;
  if (sink->on_tensor)
    sink->on_tensor(sink->self, peer->task, m->step, m->transfer, tensor);
  else
    tensor_release(tensor);
}

/* ---- up and down ---- */

void peer_set_up(struct peer *peer, struct channel *channel, const struct message *hello) {
  struct cluster *cluster = peer->cluster;
  struct channel *old = peer->channel;
  if (old) /* it came back before its loss was noticed */
    peer_set_down(peer, old, "it has connected anew");
  if (peer->dialling == channel)
    peer->dialling = NULL;
  peer->backoff_ms = 0;
  pthread_mutex_lock(&cluster->lock);
  peer->channel = channel;
  peer->connection = connection_retain(channel->connection);
  peer->was_up = true;
  peer->said_bye = peer->is_refused = false;
  peer->reason[0] = 0;
  peer->incarnation = hello->incarnation;
  peer->has_phases = hello->flags & HELLO_HAS_PHASES;
  peer->is_finished = hello->flags & HELLO_FINISHED;
  peer->changed_ms = loop_now_ms();
  if (hello->flags & HELLO_READY)
    cluster->is_ready = true;
  bool tell_ready = cluster->is_ready && !(hello->flags & HELLO_READY);
  bool tell_finished = cluster->is_finished;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
  /* said since our HELLO went out, perhaps */
  if (tell_ready)
    peer_send(peer, MESSAGE_READY, 0, 0, OK, NULL, NULL);
  if (tell_finished)
    peer_send(peer, MESSAGE_FINISHED, 0, 0, OK, NULL, NULL);
}

/* What is known of the end, in words: an orderly one counts more than what the socket said. */
static void describe_end(const struct peer *peer, const char *reason, char out[CLUSTER_REASON_BYTES]) {
  if (peer->said_bye)
    reason = peer->is_finished ? "it has finished and left" : "it has left";
  snprintf(out, CLUSTER_REASON_BYTES, "%s", reason);
}

void peer_set_down(struct peer *peer, struct channel *channel, const char *reason) {
  struct cluster *cluster = peer->cluster;
  struct exchange_sink *sink = &cluster->sink;
  char text[CLUSTER_REASON_BYTES], shown[CLUSTER_REASON_BYTES + 512];
  channel->peer = NULL;
  pthread_mutex_lock(&cluster->lock);
  struct connection *connection = peer->connection;
  uint64_t *steps = peer->started.items;
  uint32_t step_count = peer->started.count;
  describe_end(peer, reason, text);
  peer->channel = NULL;
  peer->connection = NULL;
  peer->started.items = NULL;
  peer->started.count = peer->started.capacity = 0;
  peer->changed_ms = loop_now_ms();
  snprintf(peer->reason, sizeof peer->reason, "%s", text);
  bool in_order = peer->said_bye, closing = cluster->is_closing;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);

  connection_abort(connection, text); /* no effect on one that is closed */
  connection_release(connection);
  snprintf(shown, sizeof shown, "%s at %s was lost: %s", peer->name, peer->address, text);
  if (!closing && !in_order)
    cluster_log(cluster, "%s", shown);
  if (!closing && sink->on_lost)
    sink->on_lost(sink->self, peer->task, text);
  for (uint32_t i = 0; i < step_count && !closing; i++)
    if (sink->on_done)
      sink->on_done(sink->self, peer->task, steps[i], UNAVAILABLE, shown);
  free(steps);
  if (peer->task < cluster->task && !closing)
    peer_dial(peer);
}
