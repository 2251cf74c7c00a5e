/* host_summary_writer.c: summary writers: event files that a graph opens and writes itself. A handle is there before its file:
 * CreateSummaryFileWriter opens one, CloseSummaryWriter closes it. What a step writes is in the file when the queue is full,
 * its time is over, somebody flushes, or the task leaves. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/data/events.h"
#include "runtime/host/host.h"
#include "runtime/memory/container.h"

struct summary_writer {
  struct resource resource;
  pthread_mutex_t mutex;
  struct events *events; /* NULL: not created, or closed */
  int64_t queued, max_queue, flush_millis, flushed_at;
};

static int64_t now_millis(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static status writer_init(struct resource *resource, void *argument) {
  (void)argument;
  pthread_mutex_init(&((struct summary_writer *)resource)->mutex, NULL);
  return OK;
}

static void writer_destroy(struct resource *resource) {
  struct summary_writer *w = (struct summary_writer *)resource;
  events_close(w->events);
  pthread_mutex_destroy(&w->mutex);
}

static const struct resource_maker writer_maker = {"summary writer", sizeof(struct summary_writer), writer_init, writer_destroy};

status host_summary_writer(struct host_call *call) { return host_give_resource(call, &writer_maker, NULL); }

/* The writer of input 0, locked. */
static status lock_writer(const struct host_call *call, struct summary_writer **out) {
  struct resource *resource;
  TRY(host_find_resource(call, 0, writer_maker.kind, &resource));
  *out = (struct summary_writer *)resource;
  pthread_mutex_lock(&(*out)->mutex);
  return OK;
}

static status unlock_writer(struct summary_writer *w, status result) {
  pthread_mutex_unlock(&w->mutex);
  return result;
}

static status check_open(const struct summary_writer *w) {
  return w->events ? OK : fail(NOT_FOUND, "summary writer '%s' has no file: run its initializer first", w->resource.name);
}

static status flush(struct summary_writer *w) {
  w->queued = 0;
  w->flushed_at = now_millis();
  return events_flush(w->events);
}

static status check_scalars(const struct host_call *call, uint32_t first, uint32_t count, const char *const *names) {
  for (uint32_t i = 0; i < count; i++)
    if (call->inputs[first + i].shape.rank)
      return fail(INVALID_ARGUMENT, "%s must be a scalar", names[i]);
  return OK;
}

static status open_file(struct host_call *call, struct summary_writer *w) {
  static atomic_int files;
  struct string_view folder = host_scalar_string(&call->inputs[1]), suffix = host_scalar_string(&call->inputs[4]);
  char path[4096], name[512];
  snprintf(path, sizeof path, "%.*s", (int)folder.size, folder.data);
  snprintf(name, sizeof name, "%lld.%d%s%.*s", (long long)getpid(), atomic_fetch_add(&files, 1),
           suffix.size && suffix.data[0] == '.' ? "" : ".", (int)suffix.size, suffix.data);
  TRY(events_create(path, name, &w->events));
  w->max_queue = host_scalar_int(&call->inputs[2]);
  w->flush_millis = host_scalar_int(&call->inputs[3]);
  return flush(w);
}

status host_create_summary_writer(struct host_call *call) {
  static const char *const names[] = {"logdir", "max_queue", "flush_millis", "filename_suffix"};
  struct summary_writer *w;
  TRY(check_scalars(call, 1, 4, names));
  TRY(lock_writer(call, &w));
  return unlock_writer(w, w->events ? OK : open_file(call, w)); /* one that is open stays */
}

status host_flush_summary_writer(struct host_call *call) {
  struct summary_writer *w;
  TRY(lock_writer(call, &w));
  status result = check_open(w);
  return unlock_writer(w, result == OK ? flush(w) : result);
}

status host_close_summary_writer(struct host_call *call) {
  struct summary_writer *w;
  TRY(lock_writer(call, &w));
  status result = check_open(w);
  if (result == OK) {
    result = events_close(w->events);
    w->events = NULL;
  }
  return unlock_writer(w, result);
}

static status after_write(struct summary_writer *w) {
  bool due = ++w->queued > w->max_queue || now_millis() - w->flushed_at > w->flush_millis;
  return due ? flush(w) : OK;
}

/* Summary messages, put together into one event. */
static status write_summaries(const struct host_call *call, struct summary_writer *w) {
  const struct string_view *messages = call->inputs[2].data;
  events_begin(w->events, host_scalar_int(&call->inputs[1]));
  for (int64_t i = 0; i < call->inputs[2].count; i++)
    if (!events_add_summary(w->events, messages[i]))
      return fail(DATA_LOSS, "Bad tf.compat.v1.Summary binary proto tensor string at index %lld", (long long)i);
  TRY(events_end(w->events));
  return after_write(w);
}

status host_write_raw_summary(struct host_call *call) {
  struct summary_writer *w;
  if (call->inputs[1].shape.rank)
    return fail(INVALID_ARGUMENT, "step must be scalar, got shape %s", shape_text(&call->inputs[1].shape));
  TRY(lock_writer(call, &w));
  status result = check_open(w);
  return unlock_writer(w, result == OK ? write_summaries(call, w) : result);
}

status host_write_graph_summary(struct host_call *call) {
  struct summary_writer *w;
  TRY(lock_writer(call, &w));
  status result = check_open(w);
  if (result == OK)
    result = events_graph(w->events, host_scalar_int(&call->inputs[1]), host_scalar_string(&call->inputs[2]));
  return unlock_writer(w, result == OK ? after_write(w) : result);
}

status host_import_event(struct host_call *call) {
  struct summary_writer *w;
  TRY(lock_writer(call, &w));
  status result = check_open(w);
  if (result == OK)
    result = events_copy(w->events, host_scalar_string(&call->inputs[1]));
  return unlock_writer(w, result == OK ? after_write(w) : result);
}
