/* master.c: the methods of MasterService, on threads of their own.
 *
 * A call becomes a job; idle threads take jobs, and a new thread is made when none is idle: a step may wait for ever in a
 * queue while the next one would fill it. A watcher looks a few times a second at the jobs in progress: one whose client has gone,
 * whose session was closed or whose time is over is told to stop, and answered without waiting until it has.
 */
#include "runtime/master.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include "runtime/master_graph.h"
#include "runtime/master_session.h"
#include "runtime/master_step.h"
#include "runtime/net/grpc_server.h"
#include "runtime/net/loop.h"

#define WATCH_MS 50
#define PREFIX "/tensorflow.MasterService/"

struct job {
  struct master *master;
  struct grpc_call *call;      /* held */
  bool is_answered;            /* under the lock */
  atomic_bool cancelled;
  struct session *session;     /* RunStep's, held */
  uint64_t deadline_ms;        /* UINT64_MAX: none */
  bool stores_errors;
  struct job *next;            /* queue, or the list of those in progress */
};

struct master {
  struct master_config config;
  struct cluster *cluster;
  uint64_t incarnation;
  pthread_mutex_t lock;
  pthread_cond_t has_work, has_ended, has_begun;
  struct session_list sessions;
  struct request_ids ids;
  struct job *queue, **queue_end;
  struct job *in_progress;
  uint32_t thread_count, idle_count, queued_count;
  bool is_stopping;
  pthread_t watcher;
};

/* What a method returns: OK and a message, or an error for the trailers. */
typedef status method(struct master *master, struct job *job, struct wire request, struct wire_buffer *out);

static status missing_session(const struct wire_field *handle, status code, const char *more) {
  return fail(code, "Session %.*s is not found.%s", (int)(handle->size < 64 ? handle->size : 64),
              handle->data ? (const char *)handle->data : "", more);
}

static const char restarted[] = " Possibly, this master has restarted.";

static struct session *session_hold(struct master *master, const struct wire_field *handle) {
  pthread_mutex_lock(&master->lock);
  struct session *session = session_find(&master->sessions, (const char *)handle->data, handle->size);
  pthread_mutex_unlock(&master->lock);
  return session;
}

static void session_let_go(struct master *master, struct session *session) {
  pthread_mutex_lock(&master->lock);
  session_release(session);
  pthread_mutex_unlock(&master->lock);
}

/* The last bytes field of each of the first few numbers: enough for these requests. */
#define FIELDS 8
static status fields_read(struct wire wire, struct wire_field out[FIELDS]) {
  struct wire_field field;
  memset(out, 0, FIELDS * sizeof *out);
  while (wire_next(&wire, &field))
    if (field.number < FIELDS)
      out[field.number] = field;
  return wire.is_bad ? fail(INVALID_ARGUMENT, "the request is no message") : OK;
}

/* ---- the methods ---- */

static bool config_wants_pools(struct wire config) {
  struct wire_field field;
  while (wire_next(&config, &field))
    if (field.number == 12)
      return true;
  return false;
}

static status create_session(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  struct wire_field fields[FIELDS];
  struct session *session = NULL;
  (void)job;
  TRY(fields_read(request, fields));
  if (config_wants_pools(wire_inside(&fields[2])))
    return fail(INVALID_ARGUMENT, "Distributed session does not support session thread pool options.");
  pthread_mutex_lock(&master->lock);
  status code = session_create(&master->sessions, master->config.node_count, &session);
  pthread_mutex_unlock(&master->lock);
  TRY(code);
  code = master_graph_add(&master->config, wire_inside(&fields[1]), session->known);
  if (code == OK)
    wire_put_text(out, 1, session->handle);
  pthread_mutex_lock(&master->lock);
  if (code != OK)
    session_close(&master->sessions, session);
  session_release(session);
  pthread_mutex_unlock(&master->lock);
  return code;
}

/* Extends exclude each other, and the runs that read what they add. */
static status session_extend(struct master *master, struct session *session, struct wire graph, int64_t expected) {
  if (session->is_closed)
    return fail(FAILED_PRECONDITION, "Session is closed.");
  if (session->version != expected)
    return fail(ABORTED, "Current version is %lld but caller expected %lld.", (long long)session->version, (long long)expected);
  TRY(master_graph_add(&master->config, graph, session->known));
  session->version++;
  return OK;
}

static status extend_session(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  struct wire_field fields[FIELDS];
  (void)job;
  TRY(fields_read(request, fields));
  struct session *session = session_hold(master, &fields[1]);
  if (!session)
    return missing_session(&fields[1], ABORTED, "");
  pthread_mutex_lock(&master->lock);
  status code = session_extend(master, session, wire_inside(&fields[2]), (int64_t)fields[3].value);
  if (code == OK)
    wire_put_varint(out, 4, (uint64_t)session->version);
  session_release(session);
  pthread_mutex_unlock(&master->lock);
  return code;
}

/* Known nodes as they are now: an Extend may come while the step runs. */
static uint8_t *known_copy(struct master *master, const struct session *session) {
  uint8_t *known = malloc((size_t)master->config.node_count + 1);
  if (known)
    memcpy(known, session->known, master->config.node_count);
  return known;
}

static status step_admit(struct master *master, struct job *job, const struct step_request *request, uint8_t **known) {
  pthread_mutex_lock(&master->lock);
  struct session *session = session_find(&master->sessions, (const char *)request->session.data, request->session.size);
  bool is_repeated = session && request_ids_add(&master->ids, request->request_id);
  job->session = session;
  job->stores_errors = request->stores_errors;
  if (request->timeout_ms > 0 && loop_now_ms() + (uint64_t)request->timeout_ms < job->deadline_ms)
    job->deadline_ms = loop_now_ms() + (uint64_t)request->timeout_ms;
  *known = session ? known_copy(master, session) : NULL;
  pthread_mutex_unlock(&master->lock);
  if (!session)
    return missing_session(&request->session, ABORTED, "");
  if (is_repeated)
    return fail(ABORTED, "The same RunStep (Master) request was received twice. It has id %llu.", (unsigned long long)request->request_id);
  if (request->is_partial)
    return fail(UNIMPLEMENTED, "partial runs are not supported");
  return *known ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a step");
}

static status run_step(struct master *master, struct job *job, struct wire bytes, struct wire_buffer *out) {
  struct step_request request;
  uint8_t *known = NULL;
  status code = step_request_read(bytes, &request);
  if (code == OK)
    code = step_admit(master, job, &request, &known);
  if (code == OK)
    code = step_run(&master->config, known, &request, &job->cancelled, out);
  if (code != OK && job->session && request.stores_errors) {
    wire_buffer_free(out);
    step_write_error(code, status_text(), out);
    code = OK;
  }
  free(known);
  step_request_deinit(&request);
  return code;
}

/* Steps of the session that are in progress are told to stop. Under the lock. */
static void steps_cancel(struct master *master, const struct session *session) {
  for (struct job *job = master->in_progress; job; job = job->next)
    if (job->session && (!session || job->session == session))
      atomic_store(&job->cancelled, true);
}

static status close_session(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  struct wire_field fields[FIELDS];
  (void)job, (void)out;
  TRY(fields_read(request, fields));
  pthread_mutex_lock(&master->lock);
  struct session *session = session_find(&master->sessions, (const char *)fields[1].data, fields[1].size);
  if (session) {
    session_close(&master->sessions, session);
    steps_cancel(master, session);
    session_release(session);
  }
  pthread_mutex_unlock(&master->lock);
  return session ? OK : missing_session(&fields[1], ABORTED, restarted);
}

static void device_write(struct wire_buffer *out, const struct master *master, uint32_t number) {
  const char *name = master->config.devices[number], *type = strstr(name, "/device:");
  char kind[32] = "CPU";
  if (type)
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(type + 8, ":"), type + 8);
  size_t device = wire_begin(out, 1);
  wire_put_text(out, 1, name);
  wire_put_text(out, 2, kind);
  wire_put_varint(out, 4, UINT64_C(268435456)); /* what TensorFlow says of every CPU */
  wire_put_bytes(out, 5, NULL, 0);
  wire_put_fixed64(out, 6, (master->incarnation + number) | 1);
  wire_end(out, device);
}

static status list_devices(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  struct wire_field fields[FIELDS];
  (void)job;
  TRY(fields_read(request, fields));
  if (fields[1].size > 0) {
    struct session *session = session_hold(master, &fields[1]);
    if (!session)
      return missing_session(&fields[1], INVALID_ARGUMENT, restarted);
    session_let_go(master, session);
  }
  for (uint32_t i = 0; i < master->config.device_count; i++)
    device_write(out, master, i);
  return OK;
}

static status reset(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  VEC(const char *) containers = {0};
  struct wire wire = request;
  struct wire_field field;
  (void)job, (void)out;
  while (wire_next(&wire, &field) && containers.count < LIMIT_MASTER_NAMES) {
    char *name = field.number == 1 && field.type == WIRE_BYTES ? strndup((const char *)field.data, field.size) : NULL;
    if (name)
      vec_push(&containers, name);
  }
  pthread_mutex_lock(&master->lock);
  steps_cancel(master, NULL);
  session_close_all(&master->sessions);
  pthread_mutex_unlock(&master->lock);
  status code = master->config.reset ? master->config.reset(master->config.self, containers.items, containers.count) : OK;
  for (uint32_t i = 0; i < containers.count; i++)
    free((char *)containers.items[i]);
  vec_free(&containers);
  return code;
}

static const struct {
  const char *name;
  method *run;
} methods[] = {
  {"CreateSession", create_session}, {"ExtendSession", extend_session}, {"RunStep", run_step},
  {"CloseSession", close_session},   {"ListDevices", list_devices},     {"Reset", reset},
};

static method *method_find(const char *path) {
  if (strncmp(path, PREFIX, strlen(PREFIX)) != 0)
    return NULL;
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (strcmp(path + strlen(PREFIX), methods[i].name) == 0)
      return methods[i].run;
  return NULL;
}

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
  method *run = method_find(job->call->path);
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
    job->deadline_ms = call->timeout_ms >= 0 ? loop_now_ms() + (uint64_t)call->timeout_ms : UINT64_MAX;
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

/* Why the job should not be waited for; OK: it should. */
static status job_verdict(const struct job *job, uint64_t now_ms, const char **text) {
  *text = "";
  if (atomic_load(&job->call->cancelled))
    return CANCELLED;
  if (now_ms >= job->deadline_ms) {
    *text = "the step took longer than the time-out of its caller";
    return DEADLINE_EXCEEDED;
  }
  if (job->session && job->session->is_closed) {
    *text = "Step was cancelled by an explicit call to `Session::Close()`.";
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

static void *watch(void *self) {
  struct master *master = self;
  pthread_mutex_lock(&master->lock);
  while (!master->is_stopping) {
    struct timespec until;
    const char *text;
    uint64_t now_ms = loop_now_ms();
    for (struct job *job = master->in_progress; job; job = job->next) {
      status code = job_verdict(job, now_ms, &text);
      if (code != OK)
        job_give_up(job, code, text);
    }
    if (!master->in_progress) {
      pthread_cond_wait(&master->has_begun, &master->lock);
      continue;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WATCH_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&master->has_ended, &master->lock, &until);
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
  if (pthread_create(&master->watcher, NULL, watch, master) != 0) {
    free(master);
    return fail(RESOURCE_EXHAUSTED, "no thread for the master");
  }
  cluster_set_service(cluster, &(struct cluster_service){master, on_call});
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
  pthread_cond_broadcast(&master->has_work);
  pthread_cond_broadcast(&master->has_begun);
  pthread_cond_broadcast(&master->has_ended);
  while (master->thread_count > 0)
    pthread_cond_wait(&master->has_ended, &master->lock);
  session_close_all(&master->sessions);
  pthread_mutex_unlock(&master->lock);
  pthread_join(master->watcher, NULL);
  pthread_mutex_destroy(&master->lock);
  pthread_cond_destroy(&master->has_work);
  pthread_cond_destroy(&master->has_ended);
  pthread_cond_destroy(&master->has_begun);
  free(master);
}
