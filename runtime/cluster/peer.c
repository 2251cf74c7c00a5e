/* peer.c: another task as this one sees it: there or not, what it has said, and what the exchange says to it.
 *
 * A driver's steps are remembered until they are reported, so that a loss ends each of them. Between a cut and the next connection nothing
 * changes for anybody: a peer is lost when it says good-bye, when it is another incarnation that comes, or after --timeout.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/cluster/cluster_state.h"
#include "runtime/program/fault.h"

#define HURRIED_MS 3000 /* as long as a last checkpoint may take */

/* ---- the exchange ---- */

/* The next step of ours that could not be sent, and why; false: there is none. */
static bool take_unsent(struct peer *peer, uint64_t *step, char *text, size_t size) {
  pthread_mutex_lock(&peer->cluster->lock);
  bool has = peer->unsent.count > 0;
  if (has) {
    *step = vec_last(&peer->unsent);
    peer->unsent.count--;
    snprintf(text, size, "%s at %s is not connected%s%s", peer->name, peer->address, peer->reason[0] ? ": " : "", peer->reason);
  }
  peer->tell_is_posted = has;
  pthread_mutex_unlock(&peer->cluster->lock);
  return has;
}

/* The sink is told on the exchange's thread, never inside `start`. */
static void tell_unsent(struct loop_call *call) {
  struct peer *peer = (struct peer *)((char *)call - offsetof(struct peer, tell));
  struct exchange_sink *sink = &peer->cluster->sink;
  char text[CLUSTER_REASON_BYTES + 512];
  for (uint64_t step; take_unsent(peer, &step, text, sizeof text);)
    if (sink->on_done)
      sink->on_done(sink->self, peer->task, step, UNAVAILABLE, text);
}

/* vec_push ends the process where there is no memory left: a driver that is told nothing would wait for ever. */
static void note_unsent(struct peer *peer, uint64_t step) {
  pthread_mutex_lock(&peer->cluster->lock);
  vec_push(&peer->unsent, step);
  bool is_posted = peer->tell_is_posted;
  peer->tell_is_posted = true;
  pthread_mutex_unlock(&peer->cluster->lock);
  if (is_posted)
    return;
  peer->tell = (struct loop_call){.run = tell_unsent};
  loop_post(peer->cluster->loop, &peer->tell);
}

static struct peer *peer_of(void *self, uint32_t task) { return &((struct cluster *)self)->peers[task]; }

static void exchange_start(void *self, uint32_t task, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial) {
  struct peer *peer = peer_of(self, task);
  if (!peer_send(peer, &(struct parcel){.kind = MESSAGE_START, .step = step, .number = entry, .command = command, .serial = serial}))
    note_unsent(peer, step);
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

static void exchange_hurry(void *self, uint32_t task) {
  struct peer *peer = peer_of(self, task);
  pthread_mutex_lock(&peer->cluster->lock);
  peer->is_hurried = true;
  pthread_mutex_unlock(&peer->cluster->lock);
}

bool cluster_send_control(struct cluster *cluster, uint32_t task, enum control_topic topic, const void *data, size_t size) {
  return size <= NET_CONTROL_BYTES && task < cluster->task_count && task != cluster->task &&
         peer_send(&cluster->peers[task], &(struct parcel){.kind = MESSAGE_CONTROL, .topic = (uint8_t)topic, .data = data, .size = size});
}

void peer_exchange_init(struct cluster *cluster) {
  cluster->exchange = (struct exchange){.self = cluster,
                                        .start = exchange_start,
                                        .send = exchange_send,
                                        .done = exchange_done,
                                        .cancel = exchange_cancel,
                                        .reset = exchange_reset,
                                        .hurry = exchange_hurry};
}

void peer_say_bye(struct peer *peer) {
  const char *why = peer->cluster->given_up;
  peer_send(peer, &(struct parcel){.kind = MESSAGE_BYE, .code = peer->cluster->given_up_code, .data = why, .size = strlen(why)});
}

/* ---- what it says ---- */

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

void peer_message(struct peer *peer, struct channel *channel, const struct message *m) {
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
  case MESSAGE_READY: cluster_hear_ready(peer->cluster, m->number); break;
  case MESSAGE_FINISHED:
    set_finished(peer);
    if (sink->on_finished)
      sink->on_finished(sink->self, peer->task);
    break;
  case MESSAGE_BYE:
    pthread_mutex_lock(&peer->cluster->lock);
    peer->said_bye = true;
    peer->gave_up = m->code == UNAVAILABLE;
    peer->is_finished = peer->is_finished && m->code != CANCELLED;
    pthread_mutex_unlock(&peer->cluster->lock);
    peer_acknowledge(peer, channel);           /* it waits for that */
    if (sink->on_left && m->code != CANCELLED) /* who was stopped before it could end well goes on with what it was told to do */
      sink->on_left(sink->self, peer->task, m->code == UNAVAILABLE);
    peer_lose(peer, m->text, true);
    if (peer->is_finished)
      cluster_pass_on_left(peer->cluster, peer->task);
    break;
  case MESSAGE_LEFT: cluster_hear_left(peer->cluster, m->number); break;
  default: break;
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

/* ---- sessions ---- */

/* Under the lock. Steps of ours that it still owes: the caller frees them. */
static uint64_t *started_take(struct peer *peer, uint32_t *count) {
  uint64_t *steps = peer->started.items;
  *count = peer->started.count;
  peer->started.items = NULL;
  peer->started.count = peer->started.capacity = 0;
  return steps;
}

/* The channel does not carry the session any more. is_at_once: it is of no use at all; else the peer closes it. */
static void channel_drop(struct peer *peer, const char *reason, bool is_at_once) {
  struct cluster *cluster = peer->cluster;
  pthread_mutex_lock(&cluster->lock);
  struct connection *connection = peer->connection;
  if (peer->channel)
    peer->channel->stage = CHANNEL_SILENT;
  peer->channel = NULL;
  peer->connection = NULL;
  peer->changed_ms = loop_now_ms();
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
  if (connection && FAULT(5))
    connection_shutdown(connection);
  else if (connection && is_at_once && !FAULT(4))
    connection_abort(connection, reason); /* no effect on one that is closed */
  connection_release(connection);
  if (connection) {
    registrar_unlinked(&cluster->names[peer->task], peer->incarnation);
    greet_reconsider_soon(cluster);
  }
}

static void dial_again(struct peer *peer) {
  if (peer->task < peer->cluster->task)
    peer_dial(peer);
}

void peer_cut(struct peer *peer, const char *reason) {
  struct cluster *cluster = peer->cluster;
  uint64_t now_ms = loop_now_ms();
  pthread_mutex_lock(&cluster->lock);
  bool is_over = peer->is_broken, say = !peer->is_away && !cluster->is_leaving;
  peer->is_away = true;
  peer->gone_ms = peer->session.is_suspected ? peer->session.heard_ms : now_ms;
  snprintf(peer->reason, sizeof peer->reason, "%s", reason);
  if (!peer->session.is_suspected)
    session_heard(&peer->session, now_ms); /* the end of a connection is news, too */
  pthread_mutex_unlock(&cluster->lock);
  channel_drop(peer, reason, true);
  if (is_over) {
    peer_lose(peer, reason, true);
    return;
  }
  if (say)
    cluster_log(cluster, "the connection to %s at %s was cut (%s); it is to go on with another", peer->name, peer->address, reason);
  dial_again(peer);
}

void peer_lose(struct peer *peer, const char *reason, bool is_ours) {
  struct cluster *cluster = peer->cluster;
  struct exchange_sink *sink = &cluster->sink;
  char text[CLUSTER_REASON_BYTES], shown[CLUSTER_REASON_BYTES + 512];
  uint32_t step_count = 0;
  pthread_mutex_lock(&cluster->lock);
  bool in_order = peer->said_bye, was_silent = peer->session.is_suspected;
  if (in_order && peer->gave_up)
    snprintf(text, sizeof text, "it has given up: %s", reason);
  else
    snprintf(text, sizeof text, "%s", in_order ? peer->is_finished ? "it has finished and left" : "it has left" : reason);
  struct session_item *items = session_end(&peer->session);
  uint64_t *steps = started_take(peer, &step_count);
  peer->given_up += is_ours;
  peer->is_broken = false;
  peer->is_away = is_ours && !in_order; /* who comes after it was given up is said to be back */
  if (!is_ours && !in_order)
    peer->is_finished = false; /* another one has its name, who finds out what is left to do */
  if (!peer->gone_ms)          /* of one that fell silent: since then */
    peer->gone_ms = was_silent ? peer->session.heard_ms : loop_now_ms();
  snprintf(peer->reason, sizeof peer->reason, "%s", text);
  bool is_quiet = cluster->is_leaving;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);

  parcels_let_go(cluster, items);
  if (is_ours && peer->dialling) /* its HELLO speaks of what is over */
    connection_abort(peer->dialling->connection, text);
  channel_drop(peer, text, !in_order);
  snprintf(shown, sizeof shown, "%s at %s was lost: %s", peer->name, peer->address, text);
  if (!in_order && !is_quiet)
    cluster_log(cluster, "%s", shown);
  if (sink->on_lost && !is_quiet)
    sink->on_lost(sink->self, peer->task, text);
  for (uint32_t i = 0; i < step_count && !(is_quiet && FAULT(54)); i++)
    if (sink->on_done) /* also when this task leaves: what runs beside its phases has steps until it has left */
      sink->on_done(sink->self, peer->task, steps[i], UNAVAILABLE, shown);
  free(steps);
  dial_again(peer);
}

void peer_break(struct peer *peer, struct channel *channel, const char *reason) {
  pthread_mutex_lock(&peer->cluster->lock);
  peer->is_broken = peer->is_broken || peer->channel == channel;
  pthread_mutex_unlock(&peer->cluster->lock);
  connection_abort(channel->connection, reason);
}

/* ---- up ---- */

bool peer_session_goes_on(const struct peer *peer, const struct greeting *g) {
  struct session_key own = {peer->cluster->incarnation, peer->given_up};
  return session_continues(&peer->session, g->key, own, g->meant);
}

static bool is_coordinator(const struct peer *peer) { return peer->task == peer->cluster->identity.coordinator; }

status peer_meet(struct peer *peer, struct channel *channel) {
  struct cluster *cluster = peer->cluster;
  const struct greeting *g = &channel->greeting;
  struct session_item *freed = NULL;
  uint64_t now_ms = loop_now_ms();
  bool goes_on = peer_session_goes_on(peer, g), fits = true;
  if (peer->channel) /* it came back before we noticed that it was away */
    peer_cut(peer, "it has connected anew");
  if (peer->session.is_alive && !goes_on)
    peer_lose(peer, peer->session.other.incarnation == g->key.incarnation ? "it had given this task up" : "it was started again", false);
  pthread_mutex_lock(&cluster->lock);
  if (!peer->session.is_alive) {
    session_begin(&peer->session, g->key, now_ms);
    peer->owes_bye = cluster->has_said_bye || (cluster->has_left_others && !is_coordinator(peer));
  } else {
    fits = session_resume(&peer->session, g->received, now_ms, &freed);
  }
  peer->attempt = g->attempt;
  pthread_mutex_unlock(&cluster->lock);
  parcels_let_go(cluster, freed);
  if (fits)
    return OK;
  peer_lose(peer, "it has not received what it had acknowledged", true);
  return fail(UNAVAILABLE, "%s", peer->reason);
}

/* Under the lock. */
static void note_greeting(struct peer *peer, const struct greeting *g) {
  peer->was_up = true;
  peer->said_bye = peer->gave_up = peer->is_refused = peer->is_hurried = false;
  peer->reason[0] = 0;
  peer->gone_ms = 0;
  peer->had_finished = peer->had_finished && peer->incarnation == g->key.incarnation; /* what another process does is not known */
  peer->incarnation = g->key.incarnation;
  peer->registrar = g->registrar;
  peer->generation = g->generation;
  peer->has_phases = g->flags & HELLO_HAS_PHASES;
  peer->is_finished = g->flags & HELLO_FINISHED;
  peer->changed_ms = loop_now_ms();
}

void peer_set_up(struct peer *peer, struct channel *channel) {
  struct cluster *cluster = peer->cluster;
  struct exchange_sink *sink = &cluster->sink;
  const struct greeting *g = &channel->greeting;
  if (peer->dialling == channel)
    peer->dialling = NULL;
  peer->backoff_ms = 0;
  channel->stage = CHANNEL_UP;
  pthread_mutex_lock(&cluster->lock);
  bool is_new = !peer->was_up || peer->incarnation != g->key.incarnation;
  peer->channel = channel;
  peer->connection = connection_retain(channel->connection);
  peer->flush_is_posted = false;
  note_greeting(peer, g);
  bool tell_ready = cluster->is_ready && !(g->flags & HELLO_READY), tell_finished = cluster->is_finished, tell_bye = peer->owes_bye;
  bool by_init = cluster->is_initialised;
  peer->owes_bye = false;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
  registrar_linked(&cluster->names[peer->task], peer->incarnation, loop_now_ms());
  if (g->flags & HELLO_READY)
    cluster_hear_ready(cluster, g->flags & HELLO_INITIALISED);
  /* said since our HELLO went out, perhaps */
  if (tell_ready)
    peer_send(peer, &(struct parcel){.kind = MESSAGE_READY, .number = by_init});
  if (tell_finished)
    peer_send(peer, &(struct parcel){.kind = MESSAGE_FINISHED});
  cluster_tell_left(peer);
  if (tell_bye)
    peer_say_bye(peer);
  if (sink->on_joined)
    sink->on_joined(sink->self, peer->task, is_new);
  peer_flush_soon(peer);
}

/* ---- liveness ---- */

bool peer_heard(struct peer *peer, const struct channel *channel, uint64_t received_ms) {
  pthread_mutex_lock(&peer->cluster->lock);
  bool is_up = peer->channel == channel;
  if (is_up)
    session_heard(&peer->session, received_ms);
  if (peer->cluster->parting_ms)
    pthread_cond_broadcast(&peer->cluster->changed);
  pthread_mutex_unlock(&peer->cluster->lock);
  return is_up;
}

static bool is_leaving(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  bool is_leaving = cluster->is_leaving;
  pthread_mutex_unlock(&cluster->lock);
  return is_leaving;
}

/* What changes for people: one line when it falls silent, one when it is back. */
static void say_health(struct peer *peer, enum session_health health, bool was_suspected, uint64_t silence_ms) {
  if (is_leaving(peer->cluster))
    return;
  if (health == SESSION_SUSPECTED && !was_suspected)
    cluster_log(peer->cluster, "%s at %s has been silent for %llu s", peer->name, peer->address, (unsigned long long)silence_ms / 1000);
  else if (health == SESSION_WELL && peer->channel && peer->is_away)
    cluster_log(peer->cluster, "%s at %s is back", peer->name, peer->address);
}

/* Under the lock. A task that is told to stop, or whose steps will come to nothing, waits for no answer of those who are cut off. */
static uint64_t patience_ms(const struct peer *peer) {
  const struct cluster *cluster = peer->cluster;
  bool is_hurried = (cluster->is_stopped && !cluster->is_leaving) || peer->is_hurried;
  return is_hurried && !peer->channel && HURRIED_MS < cluster->timeout_ms ? HURRIED_MS : cluster->timeout_ms;
}

void peer_watch(struct peer *peer, uint64_t now_ms, bool is_stalled) {
  struct cluster *cluster = peer->cluster;
  char text[80];
  if (!peer->session.is_alive)
    return;
  pthread_mutex_lock(&cluster->lock);
  struct session *session = &peer->session;
  if (is_stalled)
    session_heard(session, now_ms);
  bool is_up = peer->channel != NULL, was_suspected = session->is_suspected;
  enum session_health health = session_health(session, is_up, now_ms, patience_ms(peer));
  uint64_t heard_ms = session->heard_ms, silence_ms = now_ms > heard_ms ? now_ms - heard_ms : 0;
  if (is_up)
    session->is_suspected = health != SESSION_WELL;
  pthread_mutex_unlock(&cluster->lock);
  if (is_up)
    registrar_heard(&cluster->names[peer->task], heard_ms);
  say_health(peer, health, was_suspected, silence_ms);
  peer->is_away = peer->is_away ? !(is_up && health == SESSION_WELL) : health == SESSION_SUSPECTED;
  if (health == SESSION_LOST) {
    snprintf(text, sizeof text, "%s %.3g s", is_up ? "it has been silent for" : "it has not come back for", (double)silence_ms / 1000);
    peer_lose(peer, text, true);
  } else if (health == SESSION_SUSPECTED && !was_suspected && peer->task < cluster->task) {
    peer_cut(peer, "nothing came for 5 s"); /* the way may be dead while the peer lives: take another */
  }
}
