/* greet.c: how two tasks become sure of each other: HELLO, the coordinator's grant, and who is turned away.
 *
 * The dialler says HELLO first. Who hears it decides: the coordinator by its registrar, the others by what was granted, which the HELLO
 * says; until they know they hold the channel, and look at it again when something has changed. The answer is the other HELLO. With the
 * coordinator both then wait for its GRANT, so that no message is on its way before the name is sure.
 *
 * | the other is | taken when | else |
 * | --- | --- | --- |
 * | any, the session goes on | always | |
 * | asking the coordinator, or the coordinator | the registrar grants it | held; or refused for good (ALREADY_EXISTS, the process ends) |
 * | of the coordinator that granted us | its generation is not lower than the one we know | refused for good |
 * | of another coordinator's life | never | it comes again: one of the two has still to hear of the new one |
 *
 * Everything here runs on the loop's thread under the channel's connection's lock, unless it says otherwise.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "runtime/cluster/cluster_state.h"
#include "runtime/program/fault.h"

static bool is_coordinator(const struct cluster *cluster, uint32_t task) { return cluster->identity.coordinator == task; }

/* ---- HELLO ---- */

static status hello_send(struct channel *channel) {
  struct cluster *cluster = channel->cluster;
  const struct peer *peer = channel->peer;
  pthread_mutex_lock(&cluster->lock);
  const struct session *session = &peer->session;
  struct message hello = {.kind = MESSAGE_HELLO,
                          .task = cluster->task,
                          .task_count = cluster->task_count,
                          .attempt = channel->is_dialled ? ++cluster->attempts : 0,
                          .incarnation = cluster->incarnation,
                          .meant_incarnation = session->is_alive ? session->other.incarnation : 0,
                          .meant_given_up = session->other.given_up,
                          .given_up = peer->given_up,
                          .received = session->is_alive ? session->received : 0,
                          .registrar = cluster->registrar,
                          .generation = cluster->identity.generation,
                          .flags = (cluster->has_phases ? HELLO_HAS_PHASES : 0u) | (cluster->is_ready ? HELLO_READY : 0u) |
                                   (cluster->is_initialised ? HELLO_INITIALISED : 0u) | (cluster->is_finished ? HELLO_FINISHED : 0u)};
  pthread_mutex_unlock(&cluster->lock);
  return link_send(&channel->link, &hello);
}

status greet_on_challenge(void *self) {
  struct channel *channel = self;
  channel->created_ms = loop_now_ms(); /* it answers: what is to come has its own time */
  return hello_send(channel);
}

static status hello_check(const struct channel *channel, const struct message *hello) {
  const struct cluster *cluster = channel->cluster;
  const char *own = cluster->peers[cluster->task].name;
  if (!hello->is_proved || hello->task_count != cluster->task_count)
    return fail(FAILED_PRECONDITION,
                "who says it is task %" PRIu32 " is of another build than %s, or none of its tasks: build and copy the"
                " executables of all tasks together",
                hello->task, own);
  if (hello->task >= cluster->task_count || hello->task == cluster->task)
    return fail(FAILED_PRECONDITION, "%s was called by one that says it is task %" PRIu32, own, hello->task);
  if (!connection_is_for(channel->connection, cluster->peers[hello->task].name))
    return fail(UNAUTHENTICATED, "who says it is %s shows a certificate that is not for it", cluster->peers[hello->task].name);
  if (channel->is_dialled && hello->task != channel->peer->task)
    return fail(FAILED_PRECONDITION, "at the address of %s answers %s", channel->peer->name, cluster->peers[hello->task].name);
  if (!channel->is_dialled && hello->task < cluster->task)
    return fail(FAILED_PRECONDITION, "%s should be called by %s, not call it", cluster->peers[hello->task].name, own);
  return OK;
}

/* ---- probes ---- */

struct probe_post {
  struct connection_post post; /* first */
  struct channel *channel;
  uint32_t number;
};

static void run_probe(struct connection_post *post, struct http2 *http2) {
  struct probe_post *probe = (struct probe_post *)post;
  if (http2 && probe->channel->has_link) {
    status sent = link_send(&probe->channel->link, &(struct message){.kind = MESSAGE_PROBE, .number = probe->number});
    (void)sent; /* closing: then the name is free */
  }
  free(probe);
}

static void probe_send(struct peer *holder, uint32_t number) {
  struct probe_post *probe = holder->channel ? malloc(sizeof *probe) : NULL;
  if (!probe)
    return; /* who asks waits until the holder is silent */
  *probe = (struct probe_post){.post.run = run_probe, .channel = holder->channel, .number = number};
  connection_post(holder->channel->connection, &probe->post);
}

static void run_probe_all(struct loop_call *call) {
  struct cluster *cluster = (struct cluster *)((char *)call - offsetof(struct cluster, probe_call));
  pthread_mutex_lock(&cluster->lock);
  cluster->probe_is_posted = false;
  pthread_mutex_unlock(&cluster->lock);
  for (uint32_t i = 0; i < cluster->task_count; i++)
    probe_send(&cluster->peers[i], 0);
}

void greet_probe_all(struct cluster *cluster) {
  if (cluster->probe_is_posted)
    return;
  cluster->probe_is_posted = true;
  cluster->probe_call.run = run_probe_all;
  loop_post(cluster->loop, &cluster->probe_call);
}

/* ---- the coordinator ---- */

static status twin_refuse(const struct channel *channel, enum registrar_answer answer) {
  const struct cluster *cluster = channel->cluster;
  const struct peer *peer = channel->peer;
  char since[100] = "";
  struct tm at;
  if (localtime_r(&cluster->granted[peer->task].tv_sec, &at))
    snprintf(since, sizeof since, ", since %04d-%02d-%02d %02d:%02d:%02d", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday, at.tm_hour,
             at.tm_min, at.tm_sec);
  if (answer == REGISTRAR_DISPLACED)
    return fail(ALREADY_EXISTS, "another process has become %s%s, while this one could not be reached", peer->name, since);
  return fail(ALREADY_EXISTS, "%s is already running at %s%s", peer->name, peer->address, since);
}

/* OK: granted, or held (then the stage says so). */
static status name_ask(struct channel *channel, uint64_t now_ms) {
  struct cluster *cluster = channel->cluster;
  struct peer *peer = channel->peer;
  struct registrar_name *name = &cluster->names[peer->task];
  const struct greeting *g = &channel->greeting;
  uint32_t asked = channel->probe;
  uint64_t generation = g->registrar == cluster->incarnation ? g->generation : 0, before = name->generation;
  enum registrar_answer answer = registrar_ask(name, g->key.incarnation, generation, channel->opened_ms, now_ms, &channel->probe);
  if (channel->probe != asked)
    probe_send(peer, channel->probe);
  if (answer == REGISTRAR_HELD)
    channel->stage = CHANNEL_HELD;
  else if (answer == REGISTRAR_LATE)
    return fail(UNAVAILABLE, "an older connection than the one that %s has its name by", peer->name);
  else if (answer != REGISTRAR_GRANTED)
    return twin_refuse(channel, answer);
  if (name->generation != before)
    clock_gettime(CLOCK_REALTIME, &cluster->granted[peer->task]);
  return OK;
}

static status grant_send(struct channel *channel) {
  struct cluster *cluster = channel->cluster;
  struct message grant = {
    .kind = MESSAGE_GRANT, .generation = cluster->names[channel->peer->task].generation, .history = cluster_identity(cluster).history};
  return link_send(&channel->link, &grant);
}

/* ---- the others ---- */

static status generation_check(const struct channel *channel) {
  const struct cluster *cluster = channel->cluster;
  const struct peer *peer = channel->peer;
  const struct greeting *g = &channel->greeting;
  if (FAULT(19) && peer->channel && peer->incarnation != g->key.incarnation)
    return fail(ALREADY_EXISTS, "%s is already connected", peer->name);
  if (g->registrar != cluster->registrar)
    return fail(UNAVAILABLE, "%s and %s have not heard of the same coordinator yet", peer->name, cluster->peers[cluster->task].name);
  if (peer->registrar == g->registrar && g->generation < peer->generation)
    return fail(ALREADY_EXISTS, "another process has become %s, while this one could not be reached", peer->name);
  return OK;
}

/* ---- deciding ---- */

static bool knows_registrar(struct cluster *cluster) { return is_coordinator(cluster, cluster->task) || cluster->registrar != 0; }

/* Whether the HELLO may be taken now; the stage stays HELD when that is not known yet. */
static status greeting_judge(struct channel *channel) {
  struct cluster *cluster = channel->cluster;
  const struct peer *peer = channel->peer;
  const struct greeting *g = &channel->greeting;
  channel->stage = CHANNEL_GREETED;
  if (!channel->is_dialled && peer->session.other.incarnation == g->key.incarnation && g->attempt < peer->attempt)
    return fail(UNAVAILABLE, "an older connection than the one that stands");
  if (is_coordinator(cluster, cluster->task) || is_coordinator(cluster, peer->task))
    return name_ask(channel, loop_now_ms()); /* the coordinator's own name is granted by each of the others for itself */
  if (peer_session_goes_on(channel->peer, &channel->greeting))
    return OK;
  if (!knows_registrar(cluster)) {
    channel->stage = CHANNEL_HELD;
    return OK;
  }
  return generation_check(channel);
}

/* This task begins nothing more with that process: it is closing, or stays only until others have heard the good-bye that this one has
 * heard. Without that the two would meet and part, as fast as they can. */
static bool is_through(struct channel *channel) {
  struct cluster *cluster = channel->cluster;
  const struct session *session = &channel->peer->session;
  pthread_mutex_lock(&cluster->lock);
  bool has_heard = session_has_heard_goodbye(session) && session->other.incarnation == channel->greeting.key.incarnation;
  bool is_through = cluster->is_closing || has_heard;
  pthread_mutex_unlock(&cluster->lock);
  return is_through && !peer_session_goes_on(channel->peer, &channel->greeting);
}

/* OK: the channel is up, or waits for a decision or a grant. */
static status greeting_decide(struct channel *channel) {
  struct cluster *cluster = channel->cluster;
  struct peer *peer = channel->peer;
  if (is_through(channel))
    return fail(UNAVAILABLE, "%s is leaving", cluster->peers[cluster->task].name);
  TRY(greeting_judge(channel));
  if (channel->stage == CHANNEL_HELD)
    return OK;
  TRY(peer_meet(peer, channel));
  if (!channel->is_dialled)
    TRY(hello_send(channel));
  if (is_coordinator(cluster, peer->task))
    return OK; /* its grant follows */
  if (is_coordinator(cluster, cluster->task))
    TRY(grant_send(channel));
  peer_set_up(peer, channel);
  return OK;
}

status greet_on_hello(void *self, const struct message *hello) {
  struct channel *channel = self;
  struct cluster *cluster = channel->cluster;
  TRY(hello_check(channel, hello));
  if (!channel->is_dialled) {
    channel->peer = &cluster->peers[hello->task];
    admission_leave(&cluster->admission, &channel->guest);
    connection_set_round(channel->connection, NET_ROUND_BYTES);
  }
  channel->greeting = (struct greeting){.flags = hello->flags,
                                        .attempt = hello->attempt,
                                        .key = {hello->incarnation, hello->given_up},
                                        .meant = {hello->meant_incarnation, hello->meant_given_up},
                                        .received = hello->received,
                                        .registrar = hello->registrar,
                                        .generation = hello->generation};
  return greeting_decide(channel);
}

/* ---- held channels ---- */

static void visit_held(struct connection *connection) {
  struct channel *channel = connection_user(connection);
  status code = channel->stage == CHANNEL_HELD && channel->has_link ? greeting_decide(channel) : OK;
  if (code != OK)
    channel_refuse(channel, code, status_text());
}

static void run_reconsider(struct loop_call *call) {
  struct cluster *cluster = (struct cluster *)((char *)call - offsetof(struct cluster, reconsider_call));
  cluster->reconsider_is_posted = false;
  for (struct channel *channel = cluster->channels, *next; channel; channel = next) {
    next = channel->next; /* a visit closes no other channel: those are told, and close later */
    if (channel->stage == CHANNEL_HELD)
      connection_visit(channel->connection, visit_held);
  }
}

void greet_reconsider_soon(struct cluster *cluster) {
  if (cluster->reconsider_is_posted)
    return;
  cluster->reconsider_is_posted = true;
  cluster->reconsider_call.run = run_reconsider;
  loop_post(cluster->loop, &cluster->reconsider_call);
}

/* ---- what the coordinator says ---- */

void cluster_refuse(struct cluster *cluster, const char *text) {
  struct exchange_sink *sink = &cluster->sink;
  pthread_mutex_lock(&cluster->lock);
  bool is_first = !cluster->refusal[0];
  if (is_first)
    snprintf(cluster->refusal, sizeof cluster->refusal, "%s", text);
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
  if (!is_first)
    return;
  if (sink->on_refused)
    sink->on_refused(sink->self);
  for (uint32_t i = 0; i < cluster->task_count; i++)
    if (cluster->peers[i].session.is_alive)
      peer_lose(&cluster->peers[i], text, true); /* nobody waits for what they owe */
}

static void grant_take(struct channel *channel, const struct message *grant) {
  struct cluster *cluster = channel->cluster;
  if (channel->stage != CHANNEL_GREETED || !is_coordinator(cluster, channel->peer->task))
    return;
  pthread_mutex_lock(&cluster->lock);
  cluster->registrar = channel->greeting.key.incarnation;
  cluster->identity.generation = grant->generation;
  cluster->identity.history = grant->history;
  pthread_mutex_unlock(&cluster->lock);
  peer_set_up(channel->peer, channel);
  for (uint32_t i = 0; i < cluster->task; i++)
    if (!cluster->peers[i].channel && !is_coordinator(cluster, i))
      peer_dial(&cluster->peers[i]);
  greet_reconsider_soon(cluster);
}

void greet_on_message(struct channel *channel, const struct message *m) {
  struct cluster *cluster = channel->cluster;
  if (m->kind == MESSAGE_GRANT) {
    grant_take(channel, m);
  } else if (m->kind == MESSAGE_REFUSED) {
    if (m->code == ALREADY_EXISTS && is_coordinator(cluster, channel->peer->task))
      cluster_refuse(cluster, m->text);
  } else if (m->kind == MESSAGE_PROBE) {
    status sent = link_send(&channel->link, &(struct message){.kind = MESSAGE_ALIVE, .number = m->number});
    (void)sent;
  } else if (m->kind == MESSAGE_ALIVE && channel->peer->channel == channel) {
    peer_heard(channel->peer, channel, loop_now_ms());
    registrar_answered(&cluster->names[channel->peer->task], m->number, loop_now_ms());
    greet_reconsider_soon(cluster);
  }
}
