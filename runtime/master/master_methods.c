/* master_methods.c: the methods of MasterService (master_service.proto), each on the thread of its job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/vec.h"
#include "runtime/master/master_graph.h"
#include "runtime/master/master_state.h"
#include "runtime/value/tensor_message.h"

#define PREFIX "/tensorflow.MasterService/"

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

static status create_session(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  struct wire_field fields[FIELDS];
  struct session_options options;
  struct session *session = NULL;
  (void)job;
  TRY(fields_read(request, fields));
  TRY(session_options_read(&master->config, wire_inside(&fields[2]), &options));
  pthread_mutex_lock(&master->lock);
  status code = session_create(&master->sessions, master->config.node_count, master->config.device_count, &session);
  pthread_mutex_unlock(&master->lock);
  if (code != OK) {
    free(options.visible);
    return code;
  }
  session->options = options;
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

/* The session of a run, and how long the run may take. Sets job->session. */
static status run_admit(struct master *master, struct job *job, const struct wire_field *handle, uint64_t request_id, const char *what) {
  pthread_mutex_lock(&master->lock);
  struct session *session = session_find(&master->sessions, (const char *)handle->data, handle->size);
  bool is_repeated = session && request_ids_add(&master->ids, request_id);
  job->session = session;
  pthread_mutex_unlock(&master->lock);
  if (!session)
    return missing_session(handle, ABORTED, "");
  if (!is_repeated)
    return OK;
  return fail(ABORTED, "The same %s (Master) request was received twice. It has id %llu.", what, (unsigned long long)request_id);
}

/* From here on the watcher answers when the time of the run is over. */
static void run_limit(struct master *master, struct job *job, const struct run_options *options) {
  int64_t timeout_ms = options->timeout_ms ? options->timeout_ms : job->session->options.timeout_ms;
  if (timeout_ms <= 0)
    return;
  pthread_mutex_lock(&master->lock);
  job_limit(job, timeout_ms);
  pthread_cond_signal(&master->has_limit);
  pthread_mutex_unlock(&master->lock);
}

static status names_match(struct master *master, const struct session *session, const struct step_names *names, uint32_t *entry) {
  pthread_mutex_lock(&master->lock);
  struct session_view view = {known_copy(master, session), session->options.visible};
  pthread_mutex_unlock(&master->lock);
  status code = view.known ? step_match(&master->config, &view, names, entry) : fail(RESOURCE_EXHAUSTED, "no memory for a step");
  free(view.known);
  return code;
}

static status request_run(struct master *master, struct job *job, const struct step_request *request, struct wire_buffer *out) {
  struct step_run run = {.names = &request->names,
                         .feed_values = request->feed_values.items,
                         .options = &request->options,
                         .cancelled = &job->cancelled,
                         .seen = job->session->seen};
  if (request->partial.size > 0)
    return partial_run_continue(master->partials, job->session, request, &job->cancelled, out);
  TRY(names_match(master, job->session, &request->names, &run.entry));
  status code = step_run(&master->config, &run);
  if (code == OK)
    code = step_write(&run, out);
  step_run_deinit(&run);
  return code;
}

static status run_step(struct master *master, struct job *job, struct wire bytes, struct wire_buffer *out) {
  struct step_request request;
  status code = step_request_read(bytes, &request);
  pthread_mutex_lock(&master->lock); /* the watcher may give the job up at any time */
  job->stores_errors = request.stores_errors;
  pthread_mutex_unlock(&master->lock);
  if (code == OK)
    code = run_admit(master, job, &request.session, request.request_id, "RunStep");
  if (code == OK) {
    run_limit(master, job, &request.options);
    code = request_run(master, job, &request, out);
  }
  if (code != OK && job->session && request.stores_errors) {
    wire_buffer_free(out);
    step_write_error(code, status_text(), out);
    code = OK;
  }
  step_request_deinit(&request);
  return code;
}

/* ---- partial runs ---- */

static status names_read(struct wire wire, struct step_names *out) { /* PartialRunSetupRequest */
  struct wire_field field;
  while (wire_next(&wire, &field)) {
    name_list *list = field.number == 2 ? &out->feeds : field.number == 3 ? &out->fetches : field.number == 4 ? &out->targets : NULL;
    if (list)
      TRY(step_name_add(out, list, &field));
  }
  return OK;
}

static status setup_partial_run(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  struct wire_field fields[FIELDS];
  struct step_names names = {.feeds = {0}};
  char handle[PARTIAL_HANDLE_BYTES];
  uint32_t entry = 0;
  TRY(fields_read(request, fields));
  TRY(run_admit(master, job, &fields[1], fields[5].value, "PartialRunSetup"));
  status code = names_read(request, &names);
  if (code == OK)
    code = names_match(master, job->session, &names, &entry);
  if (code == OK)
    code = partial_run_begin(master->partials, job->session, entry, &names, handle);
  pthread_mutex_lock(&master->lock);
  if (code == OK && job->session->is_closed) { /* meanwhile: who closed it has not seen the run */
    partial_runs_end(master->partials, job->session);
    code = fail(FAILED_PRECONDITION, "Session is closed.");
  }
  pthread_mutex_unlock(&master->lock);
  if (code == OK)
    wire_put_text(out, 1, handle);
  step_names_deinit(&names);
  return code;
}

/* ---- callables ---- */

static status make_callable(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  struct wire_field fields[FIELDS];
  struct step_names names = {.feeds = {0}};
  struct run_options options = {.timeout_ms = 0};
  uint32_t entry = 0;
  int64_t handle = 0;
  TRY(fields_read(request, fields));
  TRY(run_admit(master, job, &fields[1], fields[3].value, "MakeCallable"));
  status code = callable_options_read(wire_inside(&fields[2]), &names, &options);
  if (code == OK)
    code = names_match(master, job->session, &names, &entry);
  if (code == OK) {
    pthread_mutex_lock(&master->lock);
    code = job->session->is_closed ? fail(FAILED_PRECONDITION, "Session is closed.")
                                   : callable_create(job->session, entry, &names, &options, &handle);
    pthread_mutex_unlock(&master->lock);
  }
  if (code == OK)
    wire_put_varint(out, 1, (uint64_t)handle);
  step_names_deinit(&names);
  return code;
}

static status callable_hold(struct master *master, struct job *job, int64_t handle) {
  pthread_mutex_lock(&master->lock);
  status code = callable_find(job->session, handle, &job->callable);
  pthread_mutex_unlock(&master->lock);
  return code;
}

/* The feeds come in the callable's order. */
static status callable_feeds(struct wire wire, const struct callable *callable, struct wire *values) {
  struct wire_field field;
  uint32_t count = 0;
  while (wire_next(&wire, &field))
    if (field.number == 3 && count++ < callable->names.feeds.count)
      values[count - 1] = wire_inside(&field);
  return count == callable->names.feeds.count ? OK
                                              : fail(INVALID_ARGUMENT, "Expected %u feeds, but got %u", callable->names.feeds.count, count);
}

static status callable_run(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  const struct callable *callable = job->callable;
  struct wire *values = calloc((size_t)callable->names.feeds.count + 1, sizeof *values);
  struct step_run run = {.entry = callable->entry,
                         .names = &callable->names,
                         .feed_values = values,
                         .options = &callable->options,
                         .cancelled = &job->cancelled,
                         .seen = job->session ? job->session->seen : NULL};
  status code = values ? callable_feeds(request, callable, values) : fail(RESOURCE_EXHAUSTED, "no memory for a step");
  if (code == OK) {
    run_limit(master, job, &callable->options);
    code = step_run(&master->config, &run);
  }
  for (uint32_t i = 0; code == OK && i < callable->names.fetches.count; i++)
    tensor_message_write(out, 1, NULL, run.fetches[i]);
  if (code == OK && run.metadata.size > 0)
    wire_put_message(out, 2, &run.metadata);
  step_run_deinit(&run);
  free(values);
  return code;
}

static status run_callable(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  struct wire_field fields[FIELDS];
  TRY(fields_read(request, fields));
  TRY(run_admit(master, job, &fields[1], fields[4].value, "RunCallable"));
  TRY(callable_hold(master, job, (int64_t)fields[2].value));
  return callable_run(master, job, request, out);
}

static status release_callable(struct master *master, struct job *job, struct wire request, struct wire_buffer *out) {
  struct wire_field fields[FIELDS];
  (void)out;
  TRY(fields_read(request, fields));
  TRY(run_admit(master, job, &fields[1], 0, "ReleaseCallable"));
  pthread_mutex_lock(&master->lock);
  callable_close(job->session, (int64_t)fields[2].value);
  pthread_mutex_unlock(&master->lock);
  return OK;
}

/* ---- the end of sessions, devices ---- */

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
    partial_runs_end(master->partials, session);
    session_close(&master->sessions, session);
    steps_cancel(master, session);
    session_release(session);
  }
  bool is_last = session && !master->sessions.first;
  pthread_mutex_unlock(&master->lock);
  if (is_last && master->config.ended)
    master->config.ended(master->config.self);
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
  struct session *session = NULL;
  (void)job;
  TRY(fields_read(request, fields));
  if (fields[1].size > 0 && !(session = session_hold(master, &fields[1])))
    return missing_session(&fields[1], INVALID_ARGUMENT, restarted);
  for (uint32_t i = 0; i < master->config.device_count; i++)
    if (!session || !session->options.visible || session->options.visible[i])
      device_write(out, master, i);
  if (session)
    session_let_go(master, session);
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
  partial_runs_end(master->partials, NULL);
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
  master_method *run;
} methods[] = {
  {"CreateSession", create_session},
  {"ExtendSession", extend_session},
  {"RunStep", run_step},
  {"PartialRunSetup", setup_partial_run},
  {"MakeCallable", make_callable},
  {"RunCallable", run_callable},
  {"ReleaseCallable", release_callable},
  {"CloseSession", close_session},
  {"ListDevices", list_devices},
  {"Reset", reset},
};

master_method *master_method_find(const char *path) {
  if (strncmp(path, PREFIX, strlen(PREFIX)) != 0)
    return NULL;
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (strcmp(path + strlen(PREFIX), methods[i].name) == 0)
      return methods[i].run;
  return NULL;
}
