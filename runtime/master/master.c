/* master.c: requests of clients as jobs on threads, and their end.
 *
 * A call becomes a job; idle threads take jobs, and a new thread is made when none is idle: a step may wait for ever in a
 * queue while the next one would fill it. A watcher looks at the jobs in progress, a few times a second and when one's time is over: one
 * whose client has gone, whose session was closed or whose time is over is told to stop, and answered without waiting until it has.
 */
#include "runtime/master/master.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include "runtime/master/master_state.h"
#include "runtime/net/loop.h"

#define WATCH_MS 50

/* ---- jobs ---- */

static void job_destroy(struct job *job) {
  grpc_call_release(job->call);
  free(job);
}

/* True once: who answers. Under the lock. */
static bool job_claim(struct job *job) {
  bool is_mine = !job->is_answered;
  job->is_answered = true;
  return is_mine;
}

static void job_answer(struct job *job, status code, const char *text, struct wire_buffer *out) {
  pthread_mutex_lock(&job->master->lock);
  bool is_mine = job_claim(job);
  pthread_mutex_unlock(&job->master->lock);
  if (is_mine && code == OK)
    grpc_call_reply(job->call, OK, NULL, out->data, out->size);
  else
    wire_buffer_free(out);
  if (is_mine && code != OK)
    grpc_call_reply(job->call, code, text, NULL, 0);
}

static void job_run(struct job *job) {
  struct wire_buffer out = {0};
  master_method *run = master_method_find(job->call->path);
  status code = run ? run(job->master, job, wire_over(job->call->body, job->call->size), &out)
                    : fail(UNIMPLEMENTED, "the method %s is not implemented", job->call->path);
  if (code == OK && out.is_bad)
    code = fail(RESOURCE_EXHAUSTED, "no memory for the answer");
  job_answer(job, code, status_text(), &out);
}

static void job_begin(struct master *master, struct job *job) {
  job->next = master->in_progress;
  master->in_progress = job;
  pthread_cond_signal(&master->has_begun);
}

static void job_end(struct master *master, struct job *job) {
  struct job **at = &master->in_progress;
  while (*at != job)
    at = &(*at)->next;
  *at = job->next;
  session_release(job->session);
  callable_release(job->callable);
}

static void *thread_run(void *self) {
  struct master *master = self;
  pthread_mutex_lock(&master->lock);
  for (;;) {
    master->idle_count++;
    while (!master->queue && !master->is_stopping)
      pthread_cond_wait(&master->has_work, &master->lock);
    master->idle_count--;
    struct job *job = master->queue;
    if (!job)
      break;
    master->queue = job->next;
    master->queued_count--;
    if (!master->queue)
      master->queue_end = &master->queue;
    job_begin(master, job);
    pthread_mutex_unlock(&master->lock);
    job_run(job);
    pthread_mutex_lock(&master->lock);
    job_end(master, job);
    job_destroy(job);
  }
  master->thread_count--;
  pthread_cond_broadcast(&master->has_ended);
  pthread_mutex_unlock(&master->lock);
  return NULL;
}

/* Under the lock: a thread for the job, idle or new. */
static bool thread_provide(struct master *master) {
  pthread_t thread;
  if (master->idle_count > master->queued_count)
    return true;
  if (master->thread_count >= LIMIT_MASTER_STEPS || pthread_create(&thread, NULL, thread_run, master) != 0)
    return false;
  pthread_detach(thread);
  master->thread_count++;
  return true;
}

static void on_call(void *self, struct grpc_call *call) {
  struct master *master = self;
  struct job *job = calloc(1, sizeof *job);
  pthread_mutex_lock(&master->lock);
  bool is_taken = job && !master->is_stopping && thread_provide(master);
  if (is_taken) {
    grpc_call_retain(call);
    job->master = master;
    job->call = call;
    job->deadline_ms = UINT64_MAX;
    job_limit(job, call->timeout_ms);
    *master->queue_end = job;
    master->queue_end = &job->next;
    master->queued_count++;
    pthread_cond_signal(&master->has_work);
  }
  pthread_mutex_unlock(&master->lock);
  if (!is_taken) {
    free(job);
    grpc_call_reply(call, RESOURCE_EXHAUSTED, "too many steps at once", NULL, 0);
  }
}

/* ---- the watcher ---- */

/* A client that sets a time-out waits no longer itself: an answer that is to reach him, and to say what the step waited for, has to
 * leave a little earlier. */
static uint64_t answer_ms(int64_t timeout_ms) { return (uint64_t)(timeout_ms - (timeout_ms < 400 ? timeout_ms / 20 : 20)); }

void job_limit(struct job *job, int64_t timeout_ms) {
  if (timeout_ms < 0 || timeout_ms > INT32_MAX * INT64_C(1000))
    return;
  uint64_t deadline_ms = loop_now_ms() + answer_ms(timeout_ms);
  if (deadline_ms >= job->deadline_ms)
    return;
  job->deadline_ms = deadline_ms;
  job->timeout_ms = timeout_ms;
}

#define VERDICT_BYTES 1500

/* "the run took longer than its 500 ms: /job:worker/task:0 is in QueueDequeueV2 'q'" */
static void say_late(const struct master *master, const struct job *job, char text[VERDICT_BYTES]) {
  int used = snprintf(text, VERDICT_BYTES, "the run took longer than its %lld ms", (long long)job->timeout_ms);
  char where[VERDICT_BYTES - 100] = "";
  if (master->config.explain)
    master->config.explain(master->config.self, &job->cancelled, where, sizeof where);
  snprintf(text + used, (size_t)(VERDICT_BYTES - used), "%s%s", *where ? ": " : "", where);
}

/* Why the job should not be waited for; OK: it should. */
static status job_verdict(const struct master *master, const struct job *job, uint64_t now_ms, char text[VERDICT_BYTES]) {
  *text = 0;
  if (atomic_load(&job->call->cancelled))
    return CANCELLED;
  if (now_ms >= job->deadline_ms) {
    say_late(master, job, text);
    return DEADLINE_EXCEEDED;
  }
  if (job->session && job->session->is_closed) {
    snprintf(text, VERDICT_BYTES, "Step was cancelled by an explicit call to `Session::Close()`.");
    return CANCELLED;
  }
  return OK;
}

static void job_give_up(struct job *job, status code, const char *text) {
  struct wire_buffer out = {0};
  atomic_store(&job->cancelled, true);
  if (!job_claim(job))
    return;
  if (job->stores_errors && job->session) {
    step_write_error(code, text, &out);
    grpc_call_reply(job->call, OK, NULL, out.data, out.size);
  } else {
    grpc_call_reply(job->call, code, text, NULL, 0);
  }
}

/* Looks at all jobs; when to look again, at the latest. Under the lock. */
static uint64_t watch_round(struct master *master) {
  uint64_t now_ms = loop_now_ms(), next_ms = now_ms + WATCH_MS;
  char text[VERDICT_BYTES];
  for (struct job *job = master->in_progress; job; job = job->next) {
    if (job->is_answered)
      continue;
    status code = job_verdict(master, job, now_ms, text);
    if (code != OK)
      job_give_up(job, code, text);
    else if (job->deadline_ms < next_ms)
      next_ms = job->deadline_ms;
  }
  return next_ms - now_ms;
}

static void *watch(void *self) {
  struct master *master = self;
  pthread_mutex_lock(&master->lock);
  while (!master->is_stopping) {
    struct timespec until;
    uint64_t pause_ms = watch_round(master);
    if (!master->in_progress) {
      pthread_cond_wait(&master->has_begun, &master->lock);
      continue;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)pause_ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&master->has_limit, &master->lock, &until);
  }
  pthread_mutex_unlock(&master->lock);
  return NULL;
}

/* ---- life ---- */

status master_create(const struct master_config *config, struct cluster *cluster, struct master **out) {
  struct master *master = calloc(1, sizeof *master);
  if (!master)
    return fail(RESOURCE_EXHAUSTED, "no memory for the master");
  master->config = *config;
  master->cluster = cluster;
  master->queue_end = &master->queue;
  if (getrandom(&master->incarnation, sizeof master->incarnation, 0) != sizeof master->incarnation)
    master->incarnation = loop_now_ms();
  pthread_mutex_init(&master->lock, NULL);
  pthread_cond_init(&master->has_work, NULL);
  pthread_cond_init(&master->has_ended, NULL);
  pthread_cond_init(&master->has_begun, NULL);
  pthread_cond_init(&master->has_limit, NULL);
  status code = partial_list_create(&master->config, &master->partials);
  if (code == OK && pthread_create(&master->watcher, NULL, watch, master) != 0)
    code = fail(RESOURCE_EXHAUSTED, "no thread for the master");
  if (code != OK) {
    partial_list_destroy(master->partials);
    free(master);
    return code;
  }
  cluster_set_service(cluster, &(struct grpc_service){master, on_call});
  *out = master;
  return OK;
}

void master_destroy(struct master *master) {
  if (!master)
    return;
  cluster_set_service(master->cluster, NULL); /* no call is in on_call afterwards */
  pthread_mutex_lock(&master->lock);
  master->is_stopping = true;
  for (struct job *job = master->in_progress; job; job = job->next)
    job_give_up(job, UNAVAILABLE, "the task is leaving");
  partial_runs_end(master->partials, NULL);
  pthread_cond_broadcast(&master->has_work);
  pthread_cond_broadcast(&master->has_begun);
  pthread_cond_broadcast(&master->has_limit);
  pthread_cond_broadcast(&master->has_ended);
  while (master->thread_count > 0)
    pthread_cond_wait(&master->has_ended, &master->lock);
  session_close_all(&master->sessions);
  pthread_mutex_unlock(&master->lock);
  pthread_join(master->watcher, NULL);
  partial_list_destroy(master->partials);
  pthread_mutex_destroy(&master->lock);
  pthread_cond_destroy(&master->has_work);
  pthread_cond_destroy(&master->has_ended);
  pthread_cond_destroy(&master->has_begun);
  pthread_cond_destroy(&master->has_limit);
  free(master);
}
