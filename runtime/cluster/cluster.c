/* cluster.c: a task's membership: who it is, how it begins, and how it leaves. */
#include "runtime/cluster/cluster.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "runtime/cluster/cluster_state.h"
#include "runtime/net/receive_pool.h"
#include "runtime/program/monotonic.h"

#define LEAVE_MS 5000       /* for the peers' closing */
#define LEAVE_CUT_MS 1000   /* for one that is cut off at that moment */
#define LEAVE_AGAIN_MS 2000 /* for one that is cut off before it has heard our good-bye; it may know so by silence alone */
#define STALL_MS 2000       /* ticks that come so late say that we were held up ourselves */

void cluster_log(struct cluster *cluster, const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (cluster->log)
    cluster->log(cluster->log_self, line);
  else
    fprintf(stderr, "%s: %s\n", cluster->peers[cluster->task].name, line);
}

const char *cluster_task_name(const struct cluster *cluster, uint32_t task) {
  static _Thread_local char name[24];
  if (task < cluster->task_count)
    return cluster->peers[task].name;
  snprintf(name, sizeof name, "task %u", task);
  return name;
}

const char *cluster_task_address(const struct cluster *cluster, uint32_t task) {
  return task < cluster->task_count ? cluster->peers[task].address : "";
}

struct cluster_identity cluster_identity(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  struct cluster_identity identity = cluster->identity;
  pthread_mutex_unlock(&cluster->lock);
  return identity;
}

uint64_t cluster_task_incarnation(struct cluster *cluster, uint32_t task) {
  pthread_mutex_lock(&cluster->lock);
  uint64_t incarnation = cluster->peers[task].incarnation;
  pthread_mutex_unlock(&cluster->lock);
  return incarnation;
}

void cluster_set_history(struct cluster *cluster, uint64_t history) {
  pthread_mutex_lock(&cluster->lock);
  cluster->identity.history = history;
  pthread_mutex_unlock(&cluster->lock);
}

void cluster_on_control(struct cluster *cluster, enum control_topic topic, control_handler *handler, void *self) {
  cluster->controls[topic].run = handler;
  cluster->controls[topic].self = self;
}

struct exchange *cluster_exchange(struct cluster *cluster) {
  return &cluster->exchange;
}

void cluster_set_service(struct cluster *cluster, const struct grpc_service *service) { grpc_server_set_service(cluster->server, service); }

/* ---- life ---- */

static void on_tick(struct loop_timer *timer) {
  struct cluster *cluster = (struct cluster *)((char *)timer - offsetof(struct cluster, ticker));
  uint64_t now_ms = loop_now_ms();
  bool is_stalled = now_ms - cluster->ticked_ms > STALL_MS;
  cluster->ticked_ms = now_ms;
  bool has_visitors = false;
  for (struct channel *channel = cluster->channels, *next; channel; channel = next) {
    next = channel->next;
    has_visitors = has_visitors || !channel->peer;
    channel_tick(channel, now_ms, is_stalled);
  }
  pthread_mutex_lock(&cluster->lock);
  cluster->visited_ms = has_visitors ? now_ms : cluster->visited_ms;
  pthread_mutex_unlock(&cluster->lock);
  for (uint32_t i = 0; i < cluster->task_count; i++)
    peer_watch(&cluster->peers[i], now_ms, is_stalled);
  greet_reconsider_soon(cluster);
  if (cluster->sink.on_tick)
    cluster->sink.on_tick(cluster->sink.self);
  loop_timer_set(cluster->loop, timer, now_ms + CLUSTER_TICK_MS);
}

static status config_check(const struct cluster_config *config) {
  if (config->task_count == 0 || config->task_count > LIMIT_TASKS || config->task >= config->task_count)
    return fail(INVALID_ARGUMENT, "task %u of a cluster of %u", config->task, config->task_count);
  for (uint32_t i = 0; i < config->task_count; i++)
    if (address_check(config->tasks[i].address) != OK)
      return status_prefix(INVALID_ARGUMENT, "%s_%u: ", config->tasks[i].job, config->tasks[i].index);
  return OK;
}

static bool tasks_copy(struct cluster *cluster, const struct cluster_config *config) {
  uint32_t count = config->task_count;
  cluster->peers = calloc(count, sizeof *cluster->peers);
  cluster->jobs = calloc(count, sizeof *cluster->jobs);
  cluster->indices = calloc(count, sizeof *cluster->indices);
  if (!cluster->peers || !cluster->jobs || !cluster->indices)
    return false;
  cluster->task_count = count;
  for (uint32_t i = 0; i < count; i++) {
    struct peer *peer = &cluster->peers[i];
    peer->cluster = cluster;
    peer->task = i;
    peer->address = strdup(config->tasks[i].address);
    cluster->jobs[i] = strdup(config->tasks[i].job);
    cluster->indices[i] = config->tasks[i].index;
    if (!peer->address || !cluster->jobs[i])
      return false;
    snprintf(peer->name, sizeof peer->name, "%s_%u", cluster->jobs[i], cluster->indices[i]);
  }
  return true;
}

static void cluster_free(struct cluster *cluster) {
  for (uint32_t i = 0; i < cluster->task_count; i++) {
    free(cluster->peers[i].address);
    vec_free(&cluster->peers[i].started);
    vec_free(&cluster->peers[i].unsent);
    parcels_let_go(cluster, session_end(&cluster->peers[i].session));
    free(cluster->jobs[i]);
  }
  free(cluster->peers);
  free(cluster->jobs);
  free(cluster->indices);
  if (cluster->tls)
    tls_context_release(cluster->tls);
  free(cluster->names);
  free(cluster->granted);
  grpc_server_destroy(cluster->server);
  loop_destroy(cluster->loop);
  pthread_cond_destroy(&cluster->changed);
  pthread_mutex_destroy(&cluster->lock);
  free(cluster);
}

static void listeners_close(struct cluster *cluster) {
  for (uint32_t i = 0; i < cluster->listener_count; i++) {
    struct listener *listener = &cluster->listeners[i];
    int fd = listener->source.fd;
    loop_timer_clear(cluster->loop, &listener->pause);
    loop_remove(cluster->loop, &listener->source);
    if (fd >= 0)
      close(fd);
    address_unlink(&listener->address);
    if (listener->claim >= 0)
      close(listener->claim);
  }
  cluster->listener_count = 0;
}

/* Not 0: that stands for none. */
static uint64_t random_number(void) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    number = loop_now_ms() ^ (uint64_t)getpid() << 32;
  return number ? number : 1;
}

static status identity_begin(struct cluster *cluster) {
  cluster->incarnation = random_number();
  if (cluster->identity.coordinator == cluster->task) {
    cluster->registrar = cluster->incarnation;
    cluster->identity.generation = 1;
    cluster->identity.history = random_number();
  }
  cluster->names = calloc(cluster->task_count, sizeof *cluster->names);
  cluster->granted = calloc(cluster->task_count, sizeof *cluster->granted);
  return cluster->names && cluster->granted ? OK : fail(RESOURCE_EXHAUSTED, "no memory for the cluster");
}

static status begin(struct cluster *cluster) {
  TRY(identity_begin(cluster));
  if (cluster->tls_files.cert)
    TRY(tls_context_create(&cluster->tls_files, cluster->peers[cluster->task].name, &cluster->tls));
  TRY(loop_create(&cluster->loop));
  TRY(grpc_server_create(cluster->peers[cluster->task].name, cluster->clients_bytes, &cluster->server));
  TRY(cluster_listen(cluster));
  cluster->created_ms = cluster->ticked_ms = loop_now_ms();
  cluster->ticker.on_due = on_tick;
  loop_timer_set(cluster->loop, &cluster->ticker, cluster->ticked_ms + CLUSTER_TICK_MS);
  for (uint32_t i = 0; i < cluster->task; i++)
    peer_dial(&cluster->peers[i]);
  return OK;
}

status cluster_reload_tls(struct cluster *cluster) {
  struct tls_context *fresh = NULL;
  if (!cluster->tls_files.cert)
    return OK;
  TRY(tls_context_create(&cluster->tls_files, cluster->peers[cluster->task].name, &fresh));
  pthread_mutex_lock(&cluster->lock);
  struct tls_context *old = cluster->tls;
  cluster->tls = fresh;
  pthread_mutex_unlock(&cluster->lock);
  tls_context_release(old);
  return OK;
}

status cluster_start(struct cluster *cluster) {
  TRY(loop_start(cluster->loop));
  cluster->is_started = true;
  return OK;
}

status cluster_create(const struct cluster_config *config, struct cluster **out) {
  TRY(config_check(config));
  struct cluster *cluster = calloc(1, sizeof *cluster);
  if (!cluster)
    return fail(RESOURCE_EXHAUSTED, "no memory for the cluster");
  pthread_mutex_init(&cluster->lock, NULL);
  monotonic_cond_init(&cluster->changed);
  cluster->sink = config->sink;
  cluster->task = config->task;
  cluster->build_id = config->build_id;
  proof_key(config->build_id, config->build_key, cluster->key);
  cluster->timeout_ms = (uint64_t)(config->timeout_s * 1000);
  cluster->has_phases = config->has_phases;
  cluster->identity.coordinator = config->coordinator;
  cluster->only_addresses = config->only_addresses;
  cluster->tls_files = config->tls;
  cluster->allow_clients = config->allow_clients;
  cluster->clients_bytes = config->clients_bytes ? config->clients_bytes : NET_CLIENTS_BYTES;
  cluster->log = config->log;
  cluster->log_self = config->log_self;
  peer_exchange_init(cluster);
  status code = tasks_copy(cluster, config) ? begin(cluster) : fail(RESOURCE_EXHAUSTED, "no memory for the cluster");
  if (code != OK) {
    if (cluster->loop)
      listeners_close(cluster);
    cluster_free(cluster);
    return code;
  }
  *out = cluster;
  return OK;
}

/* ---- leaving ---- */

static void run_closing(struct loop_call *call) {
  struct cluster *cluster = (struct cluster *)((char *)call - offsetof(struct cluster, closing_call));
  listeners_close(cluster);
  for (uint32_t i = 0; i < cluster->task_count; i++)
    loop_timer_clear(cluster->loop, &cluster->peers[i].timer);
  for (struct channel *channel = cluster->channels, *next; channel; channel = next) {
    next = channel->next;
    channel_leave(channel);
  }
}

struct count_call {
  struct loop_call call; /* first */
  struct cluster *cluster;
  bool at_once;
  uint32_t open;
  bool is_done;
};

/* Under the lock. It has said nothing since it was asked whether it lives. */
static bool owes_answer(const struct cluster *cluster, const struct peer *peer) {
  return peer->channel && peer->session.heard_ms < cluster->parting_ms;
}
/* Under the lock. Answers were waited for as long as they are. */
static bool has_waited(const struct cluster *cluster) { return cluster->parting_end_ms && loop_now_ms() >= cluster->parting_end_ms; }
static bool is_silent(const struct cluster *cluster, const struct peer *peer) { return has_waited(cluster) && owes_answer(cluster, peer); }

/* Under the lock. Beside those of peers that are silent: what was said to them waits at their machines. */
static uint32_t channels_answering(const struct cluster *cluster) {
  uint32_t count = 0;
  for (const struct channel *channel = cluster->channels; channel; channel = channel->next)
    count += !(channel->peer && channel->peer->channel == channel && is_silent(cluster, channel->peer));
  return count;
}

static void run_count(struct loop_call *call) {
  struct count_call *count = (struct count_call *)call;
  struct cluster *cluster = count->cluster;
  for (struct channel *channel = cluster->channels, *next; channel && count->at_once; channel = next) {
    next = channel->next;
    connection_abort(channel->connection, "");
  }
  pthread_mutex_lock(&cluster->lock);
  count->open = count->at_once ? cluster->channel_count : channels_answering(cluster);
  count->is_done = true;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
}

static uint32_t channels_open(struct cluster *cluster, bool at_once) {
  struct count_call count = {.call.run = run_count, .cluster = cluster, .at_once = at_once};
  loop_post(cluster->loop, &count.call);
  pthread_mutex_lock(&cluster->lock);
  while (!count.is_done)
    cluster_wait_changed(cluster, loop_now_ms() + 1000);
  pthread_mutex_unlock(&cluster->lock);
  return count.open;
}

/* Under the lock. Until when somebody, but for one, is waited for whom we still have something to say to; 0: there is none. */
static uint64_t drain_until(const struct cluster *cluster, uint32_t but, uint64_t end_ms) {
  uint64_t until_ms = 0;
  for (uint32_t i = 0; i < cluster->task_count; i++) {
    const struct peer *peer = &cluster->peers[i];
    if (i == but)
      continue;
    uint64_t own_ms = peer->channel || peer->changed_ms + LEAVE_AGAIN_MS > end_ms ? end_ms : peer->changed_ms + LEAVE_AGAIN_MS;
    if (peer->session.is_alive && !session_is_drained(&peer->session) && !is_silent(cluster, peer) && own_ms > until_ms)
      until_ms = own_ms;
  }
  return until_ms;
}

/* Under the lock. Until when somebody is waited for who is cut off, or has not answered since; 0: there is none. */
static uint64_t answers_until(const struct cluster *cluster, uint64_t end_ms) {
  uint64_t until_ms = 0, cut_ms = cluster->parting_ms + LEAVE_CUT_MS;
  for (uint32_t i = 0; i < cluster->task_count; i++) {
    const struct peer *peer = &cluster->peers[i];
    uint64_t own_ms = !peer->channel ? cut_ms : owes_answer(cluster, peer) ? end_ms : 0;
    if (peer->session.is_alive && own_ms > until_ms)
      until_ms = own_ms;
  }
  return until_ms;
}

/* Who has given up waits for nobody who is silent. */
void cluster_wait_answers(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  uint64_t until_ms, now_ms = loop_now_ms();
  bool is_well = cluster->given_up_code == OK;
  if (!cluster->parting_end_ms && is_well)
    cluster->parting_end_ms = now_ms + NET_SILENCE_MS + LEAVE_AGAIN_MS;
  if (!has_waited(cluster)) {
    cluster->parting_ms = now_ms;
    greet_probe_all(cluster);
  }
  while ((until_ms = answers_until(cluster, is_well ? cluster->parting_end_ms : 0)) > loop_now_ms())
    cluster_wait_changed(cluster, until_ms);
  pthread_mutex_unlock(&cluster->lock);
}

void cluster_give_up(struct cluster *cluster, status code, const char *why) {
  pthread_mutex_lock(&cluster->lock);
  cluster->given_up_code = code;
  snprintf(cluster->given_up, sizeof cluster->given_up, "%s", why);
  pthread_mutex_unlock(&cluster->lock);
}

/* Good-bye to all who have not heard it, but for one (a number that is none: to all), and until they have heard it the links go on as ever.
 * Who says it has nothing left to do: it is killed after that as seldom as can be, since others take it for finished. */
static void part_with(struct cluster *cluster, uint32_t but) {
  uint64_t end_ms = loop_now_ms() + NET_SILENCE_MS + LEAVE_AGAIN_MS, until_ms;
  for (uint32_t i = 0; i < cluster->task_count; i++) {
    pthread_mutex_lock(&cluster->lock);
    bool is_told = i == but || cluster->peers[i].session.goodbye;
    pthread_mutex_unlock(&cluster->lock);
    if (!is_told)
      peer_say_bye(&cluster->peers[i]);
  }
  pthread_mutex_lock(&cluster->lock);
  while ((until_ms = drain_until(cluster, but, end_ms)) > loop_now_ms())
    cluster_wait_changed(cluster, until_ms);
  pthread_mutex_unlock(&cluster->lock);
}

void cluster_leave_others(struct cluster *cluster) {
  uint32_t coordinator = cluster->identity.coordinator;
  if (coordinator == cluster->task)
    return;
  pthread_mutex_lock(&cluster->lock);
  cluster->is_leaving = cluster->has_left_others = true;
  pthread_mutex_unlock(&cluster->lock);
  part_with(cluster, coordinator);
}

static void say_goodbye(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  cluster->is_stopped = cluster->is_leaving = true;
  pthread_cond_broadcast(&cluster->changed);
  bool asks = !cluster->has_left_others; /* else it has before */
  pthread_mutex_unlock(&cluster->lock);
  if (asks)
    cluster_wait_answers(cluster);
  pthread_mutex_lock(&cluster->lock);
  cluster->has_said_bye = true;
  pthread_mutex_unlock(&cluster->lock);
  part_with(cluster, UINT32_MAX);
  pthread_mutex_lock(&cluster->lock);
  cluster->is_closing = true;
  pthread_mutex_unlock(&cluster->lock);
}

void cluster_destroy(struct cluster *cluster) {
  if (!cluster)
    return;
  if (!cluster->is_started) {
    listeners_close(cluster);
    cluster_free(cluster);
    return;
  }
  say_goodbye(cluster);
  uint64_t end_ms = loop_now_ms() + LEAVE_MS;
  cluster->closing_call.run = run_closing;
  loop_post(cluster->loop, &cluster->closing_call);
  while (channels_open(cluster, false) > 0 && loop_now_ms() < end_ms)
    usleep(500);
  while (channels_open(cluster, true) > 0)
    usleep(500);
  loop_stop(cluster->loop);
  receive_pool_trim();
  pthread_mutex_lock(&cluster->lock);
  bool is_held = cluster->resolving > 0; /* by a thread that waits for a name server: leave it what it will touch */
  pthread_mutex_unlock(&cluster->lock);
  if (!is_held)
    cluster_free(cluster);
}
