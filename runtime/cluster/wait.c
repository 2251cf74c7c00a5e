/* wait.c: what others wait for: peers that come, the chief's word, the end of the work.
 *
 * Everything that is waited for is a condition over the peers, looked at again whenever one of them changes; each wait has
 * a deadline of its own and a sentence that says what it waits for. A peer that was here is waited for since it went, one that never came
 * since it was first needed, so that nobody waits twice --timeout for the same one.
 */
#include <stdio.h>
#include <string.h>
#include "runtime/cluster/cluster_state.h"
#include "runtime/program/monotonic.h"

#define SAY_WAITING_MS 1000 /* of a wait, before it is worth a line */

void cluster_wait_changed(struct cluster *cluster, uint64_t until_ms) { monotonic_wait(&cluster->changed, &cluster->lock, until_ms); }

/* "/job:worker/task:1"; in a buffer of the calling thread. */
static const char *job_path(const struct cluster *cluster, uint32_t task) {
  static _Thread_local char path[160];
  snprintf(path, sizeof path, "/job:%s/task:%u", cluster->jobs[task], cluster->indices[task]);
  return path;
}

/* Who was here has been missing since it went, who never was since somebody first waited for it. Under the lock. */
static uint64_t waiting_since(const struct peer *peer, uint64_t began_ms) {
  uint64_t missing_ms = peer->was_up ? peer->gone_ms : peer->awaited_ms;
  return missing_ms && missing_ms < began_ms ? missing_ms : began_ms;
}

/* Why waiting for it longer is of no use; OK: it may still come. Under the lock. */
static status peer_hope(struct peer *peer, uint64_t began_ms, uint64_t timeout_ms) {
  peer->awaited_ms = peer->awaited_ms ? peer->awaited_ms : began_ms;
  uint64_t since_ms = waiting_since(peer, began_ms), now_ms = loop_now_ms();
  if (peer->is_refused)
    return fail(FAILED_PRECONDITION, "%s at %s refused the connection: %s", job_path(peer->cluster, peer->task), peer->address,
                peer->reason);
  if (peer->gave_up)
    return fail(UNAVAILABLE, "%s at %s is lost: %s", job_path(peer->cluster, peer->task), peer->address, peer->reason);
  if (peer->said_bye && peer->is_finished)
    return fail(UNAVAILABLE, "%s at %s has finished and left", job_path(peer->cluster, peer->task), peer->address);
  if (now_ms > since_ms && now_ms - since_ms >= timeout_ms)
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
  uint64_t say_ms = wait->began_ms + SAY_WAITING_MS, end_ms = waiting_since(peer, wait->began_ms) + cluster->timeout_ms;
  if (!wait->has_said && loop_now_ms() >= say_ms) {
    wait->has_said = true;
    cluster_log(cluster, "waiting for %s at %s", job_path(cluster, peer->task), peer->address);
  }
  cluster_wait_changed(cluster, !wait->has_said && say_ms < end_ms ? say_ms : end_ms);
}

uint64_t cluster_missing_ms(struct cluster *cluster, uint32_t task, bool *was_up) {
  uint64_t now_ms = loop_now_ms();
  const struct peer *peer = &cluster->peers[task];
  pthread_mutex_lock(&cluster->lock);
  bool is_silent = peer->session.is_alive && peer->session.is_suspected;
  bool is_here = task == cluster->task || (peer->channel && !is_silent);
  uint64_t since_ms = is_silent ? peer->session.heard_ms : peer->gone_ms ? peer->gone_ms : cluster->created_ms;
  *was_up = task == cluster->task || peer->was_up;
  pthread_mutex_unlock(&cluster->lock);
  return is_here ? 0 : now_ms > since_ms ? now_ms - since_ms : 1;
}

uint64_t cluster_session(struct cluster *cluster, uint32_t task) {
  const struct peer *peer = &cluster->peers[task];
  pthread_mutex_lock(&cluster->lock);
  uint64_t lives = (uint64_t)peer->session.other.given_up << 32 | (uint32_t)peer->given_up;
  uint64_t session = peer->session.is_alive ? (peer->session.other.incarnation ^ lives * UINT64_C(0x9e3779b97f4a7c15)) | 1 : 0;
  pthread_mutex_unlock(&cluster->lock);
  return session;
}

bool cluster_has_finished(struct cluster *cluster, uint32_t task) {
  const struct peer *peer = &cluster->peers[task];
  pthread_mutex_lock(&cluster->lock);
  bool has_finished = peer->session.is_alive && peer->is_finished;
  pthread_mutex_unlock(&cluster->lock);
  return has_finished;
}

bool cluster_is_linked(struct cluster *cluster, uint32_t task) {
  pthread_mutex_lock(&cluster->lock);
  bool is_linked = task < cluster->task_count && cluster->peers[task].channel;
  pthread_mutex_unlock(&cluster->lock);
  return is_linked;
}

void cluster_describe(struct cluster *cluster, uint32_t task, char *out, size_t size) {
  const struct peer *peer = &cluster->peers[task];
  pthread_mutex_lock(&cluster->lock);
  snprintf(out, size, "%s at %s%s%s%s", job_path(cluster, task), peer->address, peer->reason[0] ? " (" : "", peer->reason,
           peer->reason[0] ? ")" : "");
  pthread_mutex_unlock(&cluster->lock);
}

/* Rather one that will not come: then nobody has to be waited for. NULL: all are there. */
static struct peer *peer_missing(struct cluster *cluster, const uint32_t *tasks, uint32_t count) {
  struct peer *missing = NULL;
  for (uint32_t i = 0; i < count; i++) {
    struct peer *peer = &cluster->peers[tasks[i]];
    if (tasks[i] == cluster->task || peer->session.is_alive)
      continue;
    if (peer->gave_up || peer->is_refused)
      return peer;
    missing = missing ? missing : peer;
  }
  return missing;
}

/* Why nothing is worth waiting for any more; OK: it is. Under the lock. */
static status stopped(const struct cluster *cluster) {
  if (cluster->refusal[0])
    return fail(FAILED_PRECONDITION, "%s", cluster->refusal);
  return cluster->is_stopped ? fail(CANCELLED, "the task was stopped") : OK;
}

status cluster_refusal(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  status code = cluster->refusal[0] ? stopped(cluster) : OK;
  pthread_mutex_unlock(&cluster->lock);
  return code;
}

status cluster_wait_stopped(struct cluster *cluster) {
  status code;
  pthread_mutex_lock(&cluster->lock);
  while ((code = stopped(cluster)) == OK)
    cluster_wait_changed(cluster, loop_now_ms() + 60000);
  pthread_mutex_unlock(&cluster->lock);
  return code;
}

status cluster_wait_peers(struct cluster *cluster, const uint32_t *tasks, uint32_t count) {
  struct wait wait = {.began_ms = loop_now_ms()};
  struct peer *peer;
  status code = OK;
  pthread_mutex_lock(&cluster->lock);
  while (code == OK && (peer = peer_missing(cluster, tasks, count)) != NULL) {
    code = stopped(cluster);
    if (code == OK)
      code = peer_hope(peer, wait.began_ms, cluster->timeout_ms);
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
    code = stopped(cluster);
    if (code == OK && peer->session.is_alive) {
      cluster_wait_changed(cluster, loop_now_ms() + cluster->timeout_ms);
      wait.began_ms = loop_now_ms(); /* it is there: it may take its time */
    } else if (code == OK) {
      code = peer_hope(peer, wait.began_ms, cluster->timeout_ms);
      if (code == OK)
        wait_for_peer(cluster, &wait, peer);
    }
  }
  pthread_mutex_unlock(&cluster->lock);
  return code;
}

static void tell_all(struct cluster *cluster, const struct parcel *parcel) {
  for (uint32_t i = 0; i < cluster->task_count; i++)
    if (i != cluster->task)
      peer_send(&cluster->peers[i], parcel);
}

/* False: it was so before. */
static bool set_ready(struct cluster *cluster, bool by_init) {
  pthread_mutex_lock(&cluster->lock);
  bool is_news = !cluster->is_ready;
  cluster->is_ready = true;
  cluster->is_initialised = cluster->is_initialised || by_init;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
  return is_news;
}

void cluster_announce_ready(struct cluster *cluster, bool by_init) {
  set_ready(cluster, by_init);
  tell_all(cluster, &(struct parcel){.kind = MESSAGE_READY, .number = by_init});
}

bool cluster_is_initialised(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  bool is_initialised = cluster->is_initialised;
  pthread_mutex_unlock(&cluster->lock);
  return is_initialised;
}

/* The chief may have left before all could hear it: the coordinator passes it on. */
void cluster_hear_ready(struct cluster *cluster, bool by_init) {
  if (set_ready(cluster, by_init) && cluster->identity.coordinator == cluster->task)
    tell_all(cluster, &(struct parcel){.kind = MESSAGE_READY, .number = by_init});
}

/* ---- who has left ----
 *
 * Whoever is started again late may find that others have finished and left, and never meets them. Those that heard their good-bye say so,
 * through the coordinator, as not all meet all. */

void cluster_pass_on_left(struct cluster *cluster, uint32_t task) {
  struct parcel parcel = {.kind = MESSAGE_LEFT, .number = task};
  if (cluster->identity.coordinator == cluster->task)
    tell_all(cluster, &parcel);
  else
    peer_send(&cluster->peers[cluster->identity.coordinator], &parcel);
}

/* Another process of that name speaks for itself. False: it is no news. */
static bool set_left(struct cluster *cluster, uint32_t task) {
  struct peer *peer = &cluster->peers[task];
  pthread_mutex_lock(&cluster->lock);
  bool is_news = !peer->session.is_alive && !(peer->is_finished && peer->said_bye);
  if (is_news) {
    peer->has_phases = peer->is_finished = peer->said_bye = true;
    peer->changed_ms = loop_now_ms();
    pthread_cond_broadcast(&cluster->changed);
  }
  pthread_mutex_unlock(&cluster->lock);
  return is_news;
}

void cluster_hear_left(struct cluster *cluster, uint32_t task) {
  if (task < cluster->task_count && task != cluster->task && set_left(cluster, task) && cluster->identity.coordinator == cluster->task)
    cluster_pass_on_left(cluster, task);
}

void cluster_tell_left(struct peer *peer) {
  struct cluster *cluster = peer->cluster;
  uint32_t coordinator = cluster->identity.coordinator;
  for (uint32_t i = 0; i < cluster->task_count && (coordinator == cluster->task || coordinator == peer->task); i++) {
    const struct peer *other = &cluster->peers[i];
    pthread_mutex_lock(&cluster->lock);
    bool has_left = !other->session.is_alive && other->is_finished && other->said_bye;
    pthread_mutex_unlock(&cluster->lock);
    if (has_left)
      peer_send(peer, &(struct parcel){.kind = MESSAGE_LEFT, .number = i});
  }
}

void cluster_announce_finished(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  cluster->is_finished = true;
  pthread_mutex_unlock(&cluster->lock);
  tell_all(cluster, &(struct parcel){.kind = MESSAGE_FINISHED});
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

/* Under the lock. It has not met this task yet, or not again, and may still come. */
static bool may_come(const struct cluster *cluster, const struct peer *peer) {
  uint64_t since_ms = peer->gone_ms ? peer->gone_ms : cluster->created_ms;
  return !peer->said_bye && loop_now_ms() < since_ms + cluster->timeout_ms;
}

/* Under the lock. */
static const struct peer *first_deaf(const struct cluster *cluster, uint32_t other) {
  for (uint32_t i = 0; i < cluster->task_count; i++) {
    const struct peer *peer = &cluster->peers[i];
    bool is_server = i == cluster->identity.coordinator || strcmp(cluster->jobs[i], "ps") == 0;
    bool is_deaf = peer->session.is_alive ? !session_is_drained(&peer->session) : i == other && may_come(cluster, peer);
    if (i != cluster->task && (is_server || i == other) && is_deaf)
      return peer;
  }
  return NULL;
}

status cluster_wait_heard(struct cluster *cluster, uint32_t other) {
  uint64_t say_ms = loop_now_ms() + SAY_WAITING_MS;
  const struct peer *deaf;
  status code = OK;
  pthread_mutex_lock(&cluster->lock);
  while ((deaf = first_deaf(cluster, other)) && (code = stopped(cluster)) == OK) {
    if (loop_now_ms() >= say_ms) {
      cluster_log(cluster, "has finished, and waits for %s at %s to hear of it", deaf->name, deaf->address);
      say_ms = UINT64_MAX;
    }
    cluster_wait_changed(cluster, loop_now_ms() + SAY_WAITING_MS);
  }
  pthread_mutex_unlock(&cluster->lock);
  return code;
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
    if (peer->session.is_alive && peer->has_phases && !peer->is_finished)
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
  return !works
         ? OK
         : fail(PERMISSION_DENIED, "%s runs phases: until they are done, clients may use %s only if it was started with --allow-clients",
                works->name, cluster->peers[cluster->task].name);
}

status cluster_wait_dependents(struct cluster *cluster) {
  status code = OK;
  pthread_mutex_lock(&cluster->lock);
  while (somebody_works(cluster) && (code = stopped(cluster)) == OK)
    cluster_wait_changed(cluster, loop_now_ms() + 60000);
  pthread_mutex_unlock(&cluster->lock);
  return code;
}

/* It has finished, and has not said good-bye: who is killed in between is started again, and finds nothing left to do if those are there
 * who say so. Two that serve after their phases do not wait for each other's leaving. */
static bool is_leaving(const struct cluster *cluster, const struct peer *peer) {
  return !cluster->has_phases && peer->has_phases && peer->is_finished && peer->session.is_alive;
}

struct work {
  bool had_phases;       /* some task with phases was here, or this is one */
  bool is_going_on;      /* one that is not done is up, or clients are served */
  struct peer *missing;  /* one that is not done, and not up; or that has given up */
  bool all_had_finished; /* whoever is missing, a checkpoint says */
  uint64_t since_ms;     /* since when it is waited for */
};

/* Of two that are missing, the one whose loss explains the other's: who has given up, then those that were here before those that never
 * came, who was lost before who left, and the first one. */
static bool is_cause(const struct peer *a, const struct peer *b) {
  if (a->gave_up != b->gave_up)
    return a->gave_up;
  if (a->was_up != b->was_up)
    return a->was_up;
  if (a->said_bye != b->said_bye)
    return !a->said_bye;
  return a->changed_ms < b->changed_ms;
}

/* Only serves, but is no ps: clients drive it. */
static bool serves_clients(const struct cluster *cluster, const struct peer *peer) {
  return peer->session.is_alive && !peer->has_phases && strcmp(cluster->jobs[peer->task], "ps") != 0;
}

/* Under the lock. */
static struct work work_survey(struct cluster *cluster) {
  struct work work = {.had_phases = cluster->has_phases, .all_had_finished = true, .since_ms = cluster->created_ms};
  bool serves = false;
  if (cluster->visited_ms > work.since_ms)
    work.since_ms = cluster->visited_ms;
  for (uint32_t i = 0; i < cluster->task_count; i++) {
    struct peer *peer = &cluster->peers[i];
    serves = serves || serves_clients(cluster, peer);
    work.had_phases = work.had_phases || peer->is_finished || (peer->was_up && peer->has_phases);
    if (peer->changed_ms > work.since_ms)
      work.since_ms = peer->changed_ms;
    if (peer_is_done(cluster, peer) && !is_leaving(cluster, peer) && !peer->gave_up)
      continue;
    if (peer->session.is_alive) {
      work.is_going_on = true;
      continue;
    }
    work.all_had_finished = work.all_had_finished && peer->had_finished;
    if (!work.missing || is_cause(peer, work.missing))
      work.missing = peer;
  }
  work.is_going_on = work.is_going_on || (serves && !work.had_phases);
  if (work.missing && work.missing->was_up)
    work.since_ms = waiting_since(work.missing, work.since_ms);
  return work;
}

/* Whoever is missing has had the time-out. */
static status missing_is_late(struct cluster *cluster, const struct work *work) {
  const struct peer *missing = work->missing;
  const char *path = job_path(cluster, missing->task);
  double timeout_s = (double)cluster->timeout_ms / 1000;
  if (missing->gave_up)
    return fail(UNAVAILABLE, "%s at %s was lost before the work was done: %s", path, missing->address, missing->reason);
  if (missing->was_up && !work->all_had_finished)
    return fail(UNAVAILABLE, "%s at %s was lost before the work was done (%s), and did not come back within %.3g s", path, missing->address,
                missing->reason, timeout_s);
  if (!work->all_had_finished)
    return fail(UNAVAILABLE, "%s at %s never came, and nobody has for %.3g s", path, missing->address, timeout_s);
  cluster_log(cluster, "all who are missing had finished, as the newest checkpoint says, and nobody has come for %.3g s", timeout_s);
  return OK;
}

bool cluster_has_left(struct cluster *cluster, const uint32_t *tasks, uint32_t count) {
  bool has_left = false;
  pthread_mutex_lock(&cluster->lock);
  for (uint32_t i = 0; i < count; i++)
    has_left = has_left || (tasks[i] != cluster->task && cluster->peers[tasks[i]].said_bye);
  pthread_mutex_unlock(&cluster->lock);
  return has_left;
}

void cluster_need_not_wait(struct cluster *cluster) {
  pthread_mutex_lock(&cluster->lock);
  cluster->need_not_wait = true;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
}

void cluster_note_finished(struct cluster *cluster, uint32_t task, bool had_finished) {
  pthread_mutex_lock(&cluster->lock);
  cluster->peers[task].had_finished = had_finished;
  pthread_mutex_unlock(&cluster->lock);
}

bool cluster_had_finished(struct cluster *cluster, uint32_t task) {
  const struct peer *peer = &cluster->peers[task];
  pthread_mutex_lock(&cluster->lock);
  bool had_finished = peer->had_finished || (peer->has_phases && peer->is_finished && peer->said_bye);
  pthread_mutex_unlock(&cluster->lock);
  return had_finished;
}

bool cluster_has_left_well(struct cluster *cluster, uint32_t task) {
  const struct peer *peer = &cluster->peers[task];
  pthread_mutex_lock(&cluster->lock);
  bool has_left = !peer->session.is_alive && peer->has_phases && peer->is_finished && peer->said_bye;
  pthread_mutex_unlock(&cluster->lock);
  return has_left;
}

/* Under the lock. A coordinator that has phases waits for all itself, whom others may never have met; and where it has left in words, its
 * work undone, nobody can go on without it. */
static bool coordinator_has_left(const struct cluster *cluster) {
  const struct peer *peer = &cluster->peers[cluster->identity.coordinator];
  return !peer->session.is_alive && peer->has_phases && peer->said_bye && !peer->gave_up;
}

status cluster_wait_all_finished(struct cluster *cluster) {
  status code = OK;
  pthread_mutex_lock(&cluster->lock);
  for (;;) {
    struct work work = work_survey(cluster);
    bool is_done = work.had_phases && !work.is_going_on && !work.missing;
    if (cluster->need_not_wait || is_done || coordinator_has_left(cluster))
      break;
    code = stopped(cluster);
    if (code != OK)
      break;
    bool is_waiting = !work.is_going_on && work.missing;
    uint64_t now_ms = loop_now_ms(), end_ms = work.since_ms + (work.missing && work.missing->gave_up ? 0 : cluster->timeout_ms);
    if (is_waiting && now_ms >= end_ms) {
      code = missing_is_late(cluster, &work);
      break;
    }
    cluster_wait_changed(cluster, is_waiting ? end_ms : now_ms + cluster->timeout_ms);
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
