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
  struct parcel parcel;
  char data[];
};

static status parcel_send(struct link *link, const struct parcel *parcel) {
  struct message message;
  message.kind = parcel->kind;
  message.step = parcel->step;
  message.entry = message.transfer = parcel->number;
  message.command = parcel->command;
  message.serial = parcel->serial;
  message.code = parcel->code;
  if (parcel->kind == MESSAGE_TENSOR)
    return link_send_tensor(link, &message, parcel->tensor);
  if (parcel->kind == MESSAGE_CONTROL)
    return link_send_control(link, parcel->topic, parcel->data, parcel->size);
  if (parcel->kind == MESSAGE_DONE || parcel->kind == MESSAGE_RESET)
    snprintf(message.text, sizeof message.text, "%.*s", (int)parcel->size, (const char *)parcel->data);
  return link_send(link, &message);
}

static void run_outgoing(struct connection_post *post, struct http2 *http2) {
  struct outgoing *out = (struct outgoing *)post;
  bool has_link = http2 && out->channel->has_link;
  if (!has_link)
    tensor_release(out->parcel.tensor);
  else if (parcel_send(&out->channel->link, &out->parcel) != OK) /* the other side waits for what cannot be sent: end it now */
    connection_abort(out->channel->connection, status_text());
  free(out);
}

bool peer_send(struct peer *peer, const struct parcel *parcel) {
  struct outgoing *out = malloc(sizeof *out + parcel->size);
  struct connection *connection = NULL;
  pthread_mutex_lock(&peer->cluster->lock);
  if (out && peer->connection) {
    connection = connection_retain(peer->connection);
    *out = (struct outgoing){.post.run = run_outgoing, .channel = peer->channel, .parcel = *parcel};
    if (parcel->size > 0)
      memcpy(out->data, parcel->data, parcel->size);
    out->parcel.data = out->data;
    if (parcel->kind == MESSAGE_START)
      vec_push(&peer->started, parcel->step);
  }
  pthread_mutex_unlock(&peer->cluster->lock);
  if (!connection) {
    tensor_release(parcel->tensor);
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

static struct peer *peer_of(void *self, uint32_t task) { return &((struct cluster *)self)->peers[task]; }

static void exchange_start(void *self, uint32_t task, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial) {
  struct peer *peer = peer_of(self, task);
  if (peer_send(peer, &(struct parcel){.kind = MESSAGE_START, .step = step, .number = entry, .command = command, .serial = serial}))
    return;
  struct late_failure *late = malloc(sizeof *late);
  if (!late)
    return;
  *late = (struct late_failure){.call.run = run_late_failure, .peer = peer, .step = step};
  loop_post(peer->cluster->loop, &late->call);
}

static void exchange_send(void *self, uint32_t task, uint64_t step, uint32_t transfer, struct tensor *tensor) {
  peer_send(peer_of(self, task), &(struct parcel){.kind = MESSAGE_TENSOR, .step = step, .number = transfer, .tensor = tensor});
}

static void exchange_done(void *self, uint32_t task, uint64_t step, status code, const char *text) {
  size_t size = text ? strnlen(text, NET_TEXT_BYTES - 1) : 0;
  peer_send(peer_of(self, task), &(struct parcel){.kind = MESSAGE_DONE, .step = step, .code = code, .data = text, .size = size});
}

static void exchange_cancel(void *self, uint32_t task, uint64_t step) {
  peer_send(peer_of(self, task), &(struct parcel){.kind = MESSAGE_CANCEL, .step = step});
}

static void exchange_reset(void *self, uint32_t task, const char *containers) {
  size_t size = strnlen(containers, NET_TEXT_BYTES - 1);
  peer_send(peer_of(self, task), &(struct parcel){.kind = MESSAGE_RESET, .data = containers, .size = size});
}

bool cluster_send_control(struct cluster *cluster, uint32_t task, enum control_topic topic, const void *data, size_t size) {
  return size <= NET_CONTROL_BYTES && task < cluster->task_count && task != cluster->task &&
         peer_send(&cluster->peers[task], &(struct parcel){.kind = MESSAGE_CONTROL, .topic = (uint8_t)topic, .data = data, .size = size});
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
      sink->on_start(sink->self, peer->task, m->step, m->entry, m->command, m->serial);
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

void peer_control(struct peer *peer, const struct message *m, const void *data, size_t size) {
  struct cluster *cluster = peer->cluster;
  if (m->topic < CONTROL_TOPICS && cluster->controls[m->topic].run)
    cluster->controls[m->topic].run(cluster->controls[m->topic].self, peer->task, data, size);
}

/* ---- up and down ---- */

void peer_set_up(struct peer *peer, struct channel *channel, const struct message *hello) {
  struct cluster *cluster = peer->cluster;
  struct exchange_sink *sink = &cluster->sink;
  struct channel *old = peer->channel;
  bool is_new = !peer->was_up || peer->incarnation != hello->incarnation;
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
    peer_send(peer, &(struct parcel){.kind = MESSAGE_READY});
  if (tell_finished)
    peer_send(peer, &(struct parcel){.kind = MESSAGE_FINISHED});
  if (sink->on_joined)
    sink->on_joined(sink->self, peer->task, is_new);
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
