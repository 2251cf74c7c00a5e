/* trace.c: events in one growing array under a lock: tracing may cost what it costs. */
#include "runtime/step/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct trace_event {
  const char *node, *op;
  uint64_t begin, end;
  int thread;
};
struct trace {
  char *path;
  uint32_t task;
  char name[256];
  pthread_mutex_t lock;
  struct trace_event *events;
  uint64_t count, capacity, lost;
};

uint64_t trace_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

status trace_create(const char *path, uint32_t task, const char *name, struct trace **out) {
  struct trace *trace = calloc(1, sizeof *trace);
  if (trace)
    trace->path = strdup(path);
  if (!trace || !trace->path) {
    free(trace);
    return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  trace->task = task;
  snprintf(trace->name, sizeof trace->name, "%s", name);
  pthread_mutex_init(&trace->lock, NULL);
  *out = trace;
  return OK;
}

static bool trace_grow(struct trace *trace) {
  if (trace->count < trace->capacity)
    return true;
  uint64_t capacity = trace->capacity * 2 + 1024;
  struct trace_event *grown = realloc(trace->events, capacity * sizeof *grown);
  if (!grown)
    return false;
  trace->events = grown;
  trace->capacity = capacity;
  return true;
}

void trace_add(struct trace *trace, const char *node, const char *op, uint64_t begin, uint64_t end) {
  static _Thread_local int thread;
  if (!thread)
    thread = gettid();
  pthread_mutex_lock(&trace->lock);
  if (trace->count < TRACE_EVENTS_MAX && trace_grow(trace))
    trace->events[trace->count++] = (struct trace_event){node, op, begin, end, thread};
  else
    trace->lost++;
  pthread_mutex_unlock(&trace->lock);
}

static void print_string(FILE *out, const char *text) {
  fputc('"', out);
  for (const unsigned char *p = (const unsigned char *)text; *p; p++)
    if (*p == '"' || *p == '\\')
      fprintf(out, "\\%c", *p);
    else if (*p < 0x20)
      fprintf(out, "\\u%04x", *p);
    else
      fputc(*p, out);
  fputc('"', out);
}

static void print_events(FILE *out, const struct trace *trace) {
  fprintf(out, "{\"traceEvents\": [\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %u, \"args\": {\"name\": ", trace->task);
  print_string(out, trace->name);
  fprintf(out, "}}");
  for (uint64_t i = 0; i < trace->count; i++) {
    const struct trace_event *event = &trace->events[i];
    fprintf(out, ",\n{\"ph\": \"X\", \"pid\": %u, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, \"cat\": ", trace->task, event->thread,
            (double)event->begin / 1e3, (double)(event->end - event->begin) / 1e3);
    print_string(out, event->op);
    fprintf(out, ", \"name\": ");
    print_string(out, event->node);
    fputc('}', out);
  }
  fprintf(out, "\n], \"displayTimeUnit\": \"ns\", \"otherData\": {\"events not kept\": %llu}}\n", (unsigned long long)trace->lost);
}

status trace_close(struct trace *trace) {
  if (!trace)
    return OK;
  FILE *out = fopen(trace->path, "w");
  status result = OK;
  if (out)
    print_events(out, trace);
  bool good = out && !ferror(out);
  if (!out || fclose(out) != 0 || !good)
    result = fail(DATA_LOSS, "%s: %s", trace->path, strerror(errno));
  pthread_mutex_destroy(&trace->lock);
  free(trace->events);
  free(trace->path);
  free(trace);
  return result;
}
