/* cluster.c: a task's membership: its life, and what others wait for.
 *
 * Everything that is waited for is a condition over the peers, looked at again whenever one of them changes; each wait has
 * a deadline of its own and a sentence that says what it waits for.
 */
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

#define LEAVE_MS 5000         /* for the last bytes, and the peers' closing */
#define SAY_WAITING_MS 1000   /* of a wait, before it is worth a line */
#define STALL_MS 2000         /* ticks that come so late say that we were held up ourselves */

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

struct exchange *cluster_exchange(struct cluster *cluster) { return &cluster->exchange; }

void cluster_set_service(struct cluster *cluster, const struct grpc_service *service) {
  grpc_server_set_service(cluster->server, service);
}

/* ---- waiting ---- */

/* Until something changes, or until_ms. Under the lock. */
static void wait_changed(struct cluster *cluster, uint64_t until_ms) {
  struct timespec until = {.tv_sec = (time_t)(until_ms / 1000), .tv_nsec = (long)(until_ms % 1000) * 1000000};
  pthread_cond_timedwait(&cluster->changed, &cluster->lock, &until);
}

static const char *job_path(const struct cluster *cluster, uint32_t task) {
  static _Thread_local char path[160];
  snprintf(path, sizeof path, "/job:%s/task:%u", cluster->jobs[task], cluster->indices[task]);
  return path;
}

/* Why waiting for it longer is of no use; OK: it may still come. Under the lock. */
static status peer_hope(struct peer *peer, uint64_t began_ms, uint64_t timeout_ms) {
  if (peer->is_refused)
    return fail(FAILED_PRECONDITION, "%s at %s refused the connection: %s", job_path(peer->cluster, peer->task), peer->address, peer->reason);
  if (peer->said_bye && peer->is_finished)
    return fail(UNAVAILABLE, "%s at %s has finished and left", job_path(peer->cluster, peer->task), peer->address);
  if (loop_now_ms() - began_ms >= timeout_ms)
    return fail(UNAVAILABLE, "%s at %s cannot be reached within %.3g s%s%s", job_path(peer->cluster, peer->task), peer->address,
                (double)timeout_ms / 1000, peer->reason[0] ? ": " : "", peer->reason);
  return OK;
}

struct wait {
  uint64_t began_ms;
  bool has_said;
};

/* Says once, after a while, whom we wait for, and waits for a change. Under the lock, which is given back meanwhile. */
static void wait_for_peer(struct cluster *cluster, struct wait *wait, const struct peer *peer) {
  uint64_t say_ms = wait->began_ms + SAY_WAITING_MS, end_ms = wait->began_ms + cluster->timeout_ms;
  if (!wait->has_said && loop_now_ms() >= say_ms) {
    wait->has_said = true;
    cluster_log(cluster, "waiting for %s at %s", job_path(cluster, peer->task), peer->address);
  }
  wait_changed(cluster, !wait->has_said && say_ms < end_ms ? say_ms : end_ms);
}

uint64_t cluster_missing_ms(struct cluster *cluster, uint32_t task, bool *was_up) {
  const struct peer *peer = &cluster->peers[task];
  pthread_mutex_lock(&cluster->lock);
  bool is_here = task == cluster->task || peer->channel;
  uint64_t ms = is_here ? 0 : loop_now_ms() - peer->changed_ms;
  *was_up = is_here || peer->was_up;
  pthread_mutex_unlock(&cluster->lock);
  return is_here ? 0 : ms ? ms : 1;
}

void cluster_describe(struct cluster *cluster, uint32_t task, char *out, size_t size) {
  const struct peer *peer = &cluster->peers[task];
  pthread_mutex_lock(&cluster->lock);
  snprintf(out, size, "%s at %s%s%s%s", job_path(cluster, task), peer->address, peer->reason[0] ? " (" : "", peer->reason,
           peer->reason[0] ? ")" : "");
  pthread_mutex_unlock(&cluster->lock);
}

static struct peer *peer_missing(struct cluster *cluster, const uint32_t *tasks, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (tasks[i] != cluster->task && !cluster->peers[tasks[i]].channel)
      return &cluster->peers[tasks[i]];
  return NULL;
}

static status stopped(void) { return fail(CANCELLED, "the task was stopped"); }

status cluster_wait_peers(struct cluster *cluster, const uint32_t *tasks, uint32_t count) {
  struct wait wait = {.began_ms = loop_now_ms()};
  struct peer *peer;
  status code = OK;
  pthread_mutex_lock(&cluster->lock);
  while (code == OK && (peer = peer_missing(cluster, tasks, count)) != NULL) {
    code = cluster->is_stopped ? stopped() : peer_hope(peer, wait.began_ms, cluster->timeout_ms);
    if (code == OK)
      wait_for_peer(cluster, &wait, peer);
  }
  pthread_mutex_unlock(&cluster->lock);
  return code;
}

status cluster_wait_ready(struct cluster *cluster, uint32_t chief) {
  struct peer *peer = &cluster->peers[chief];
  struct wait wait = {.began_ms = loop_now_ms()};
  status code = OK;
  pthread_mutex_lock(&cluster->lock);
  while (code == OK && !cluster->is_ready) {
    if (cluster->is_stopped)
      code = stopped();
    else if (peer->channel) {
      wait_changed(cluster, loop_now_ms() + cluster->timeout_ms);
      wait.began_ms = loop_now_ms(); /* it is there: it may take its time */
    } else {
      code = peer_hope(peer, wait.began_ms, cluster->timeout_ms);
      if (code == OK)
        wait_for_peer(cluster, &wait, peer);
    }
  }
  pthread_mutex_unlock(&cluster->lock);
  return code;
}

static void tell_all(struct cluster *cluster, enum message_kind kind) {
  for (uint32_t i = 0; i < cluster->task_count; i++)
    if (i != cluster->task)
      peer_send(&cluster->peers[i], &(struct parcel){.kind = kind});
}

void cluster_announce_ready(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  cluster->is_ready = true;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
  tell_all(cluster, MESSAGE_READY);
}

void cluster_announce_finished(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  cluster->is_finished = true;
  pthread_mutex_unlock(&cluster->lock);
  tell_all(cluster, MESSAGE_FINISHED);
}

void cluster_explain(struct cluster *cluster, char *out, size_t size) {
  size_t used = 0;
  *out = 0;
  pthread_mutex_lock(&cluster->lock);
  if (!cluster->is_ready)
    used += (size_t)snprintf(out, size, "the chief has not initialised yet");
  for (uint32_t i = 0; i < cluster->task_count && used + 1 < size; i++) {
    const struct peer *peer = &cluster->peers[i];
    if (i != cluster->task && !peer->channel && !peer->said_bye)
      used += (size_t)snprintf(out + used, size - used, "%s%s at %s is not connected%s%s", used ? "; " : "", job_path(cluster, i),
                               peer->address, peer->reason[0] ? ": " : "", peer->reason);
  }
  pthread_mutex_unlock(&cluster->lock);
}

/* The work of a peer is over, or it never had any. */
static bool peer_is_done(const struct cluster *cluster, const struct peer *peer) {
  if (peer->task == cluster->task || peer->is_finished)
    return true;
  bool is_server = strcmp(cluster->jobs[peer->task], "ps") == 0;
  return peer->was_up ? !peer->has_phases : is_server;
}

static bool somebody_works(const struct cluster *cluster) {
  for (uint32_t i = 0; i < cluster->task_count; i++) {
    const struct peer *peer = &cluster->peers[i];
    if (peer->channel && peer->has_phases && !peer->is_finished)
      return true;
  }
  return false;
}

bool cluster_is_at_work(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  bool is_at_work = (cluster->has_phases && !cluster->is_finished) || somebody_works(cluster);
  pthread_mutex_unlock(&cluster->lock);
  return is_at_work;
}

/* Who has phases works until it has said that it finished, also while it is away: it may come back. */
static const struct peer *somebody_has_phases(const struct cluster *cluster) {
  for (uint32_t i = 0; i < cluster->task_count; i++) {
    const struct peer *peer = &cluster->peers[i];
    bool works = i == cluster->task ? cluster->has_phases && !cluster->is_finished : peer->was_up && peer->has_phases && !peer->is_finished;
    if (works)
      return peer;
  }
  return NULL;
}

status cluster_check_clients(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  const struct peer *works = cluster->allow_clients ? NULL : somebody_has_phases(cluster);
  pthread_mutex_unlock(&cluster->lock);
  return !works ? OK : fail(PERMISSION_DENIED, "%s runs phases: until they are done, clients may use %s only if it was started with --allow-clients",
                            works->name, cluster->peers[cluster->task].name);
}

status cluster_wait_dependents(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  while (somebody_works(cluster) && !cluster->is_stopped)
    wait_changed(cluster, loop_now_ms() + 60000);
  bool is_stopped = cluster->is_stopped;
  pthread_mutex_unlock(&cluster->lock);
  return is_stopped ? stopped() : OK;
}

struct work {
  bool had_phases;        /* some task with phases was here */
  bool is_going_on;       /* one that is not done is up */
  struct peer *missing;   /* one that is not done, and not up */
  uint64_t changed_ms;    /* the last change of any of them */
};

static struct work work_survey(struct cluster *cluster) {
  struct work work = {0};
  for (uint32_t i = 0; i < cluster->task_count; i++) {
    struct peer *peer = &cluster->peers[i];
    work.had_phases = work.had_phases || (peer->was_up && peer->has_phases);
    if (peer->changed_ms > work.changed_ms)
      work.changed_ms = peer->changed_ms;
    if (peer_is_done(cluster, peer))
      continue;
    if (peer->channel)
      work.is_going_on = true;
    else if (!work.missing || peer->was_up)
      work.missing = peer;
  }
  return work;
}

static status missing_is_late(struct cluster *cluster, const struct peer *missing) {
  if (missing->was_up)
    return fail(UNAVAILABLE, "%s at %s was lost before it had finished (%s), and did not come back within %.3g s",
                job_path(cluster, missing->task), missing->address, missing->reason, (double)cluster->timeout_ms / 1000);
  return fail(UNAVAILABLE, "all others have finished, and %s at %s never came", job_path(cluster, missing->task), missing->address);
}

status cluster_wait_all_finished(struct cluster *cluster) {
  status code = OK;
  pthread_mutex_lock(&cluster->lock);
  for (;;) {
    struct work work = work_survey(cluster);
    uint64_t end_ms = work.changed_ms + cluster->timeout_ms;
    bool is_waiting_for_missing = work.had_phases && !work.is_going_on && work.missing;
    if (cluster->is_stopped)
      code = stopped();
    else if (work.had_phases && !work.is_going_on && !work.missing)
      break;
    else if (is_waiting_for_missing && loop_now_ms() >= end_ms)
      code = missing_is_late(cluster, work.missing);
    if (code != OK)
      break;
    wait_changed(cluster, is_waiting_for_missing ? end_ms : loop_now_ms() + 60000);
  }
  pthread_mutex_unlock(&cluster->lock);
  return code;
}

void cluster_stop(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  cluster->is_stopped = true;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
}

/* ---- life ---- */

static void on_tick(struct loop_timer *timer) {
  struct cluster *cluster = (struct cluster *)((char *)timer - offsetof(struct cluster, ticker));
  uint64_t now_ms = loop_now_ms();
  bool is_stalled = now_ms - cluster->ticked_ms > STALL_MS;
  cluster->ticked_ms = now_ms;
  for (struct channel *channel = cluster->channels, *next; channel; channel = next) {
    next = channel->next;
    channel_tick(channel, now_ms, is_stalled);
  }
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

static void monotonic_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &attributes);
  pthread_condattr_destroy(&attributes);
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
    free(cluster->jobs[i]);
  }
  free(cluster->peers);
  free(cluster->jobs);
  free(cluster->indices);
  if (cluster->tls)
    tls_context_release(cluster->tls);
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
  }
  cluster->listener_count = 0;
}

static status begin(struct cluster *cluster) {
  if (getrandom(&cluster->incarnation, sizeof cluster->incarnation, 0) != sizeof cluster->incarnation)
    cluster->incarnation = loop_now_ms() ^ (uint64_t)getpid() << 32;
  if (cluster->tls_files.cert)
    TRY(tls_context_create(&cluster->tls_files, cluster->peers[cluster->task].name, &cluster->tls));
  TRY(loop_create(&cluster->loop));
  TRY(grpc_server_create(cluster->peers[cluster->task].name, cluster->clients_bytes, &cluster->server));
  TRY(cluster_listen(cluster));
  cluster->ticked_ms = loop_now_ms();
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

static void run_count(struct loop_call *call) {
  struct count_call *count = (struct count_call *)call;
  struct cluster *cluster = count->cluster;
  for (struct channel *channel = cluster->channels, *next; channel && count->at_once; channel = next) {
    next = channel->next;
    connection_abort(channel->connection, "");
  }
  pthread_mutex_lock(&cluster->lock);
  count->open = cluster->channel_count;
  count->is_done = true;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
}

static uint32_t channels_open(struct cluster *cluster, bool at_once) {
  struct count_call count = {.call.run = run_count, .cluster = cluster, .at_once = at_once};
  loop_post(cluster->loop, &count.call);
  pthread_mutex_lock(&cluster->lock);
  while (!count.is_done)
    wait_changed(cluster, loop_now_ms() + 1000);
  pthread_mutex_unlock(&cluster->lock);
  return count.open;
}

void cluster_destroy(struct cluster *cluster) {
  if (!cluster)
    return;
  uint64_t end_ms = loop_now_ms() + LEAVE_MS;
  if (!cluster->is_started) {
    listeners_close(cluster);
    cluster_free(cluster);
    return;
  }
  pthread_mutex_lock(&cluster->lock);
  cluster->is_stopped = cluster->is_closing = true;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
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
