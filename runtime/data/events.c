/* events.c: records of small messages. */
#include "runtime/data/events.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/wire.h"
#include "runtime/data/record_file.h"

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_GRAPH = 4, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };

struct events {
  FILE *file;
  char path[4096];
  int64_t step;
  struct wire_buffer summary; /* Summary messages put together: repeated fields concatenate */
};

static double wall_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static status write_record(struct events *events, const void *data, size_t size) {
  return record_file_put(events->file, data, size) ? OK : fail(DATA_LOSS, "%s: %s", events->path, strerror(errno));
}

static void put_time(struct wire_buffer *event) {
  double now = wall_time();
  uint64_t bits;
  memcpy(&bits, &now, sizeof bits);
  wire_put_fixed64(event, EVENT_WALL_TIME, bits);
}

static status write_version(struct events *events) {
  struct wire_buffer event = {0};
  put_time(&event);
  wire_put_text(&event, EVENT_FILE_VERSION, "brain.Event:2");
  status result = event.is_bad ? fail(RESOURCE_EXHAUSTED, "no memory") : write_record(events, event.data, event.size);
  wire_buffer_free(&event);
  return result;
}

status events_create(const char *folder, const char *task, struct events **out) {
  char host[128] = "host";
  gethostname(host, sizeof host - 1);
  struct events *events = calloc(1, sizeof *events);
  if (!events)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  folders_make_above(folder);
  mkdir(folder, 0777);
  snprintf(events->path, sizeof events->path, "%s/events.out.tfevents.%010lld.%s.%s", folder, (long long)wall_time(), host, task);
  events->file = fopen(events->path, "wb");
  status result = events->file ? write_version(events) : fail(DATA_LOSS, "%s: %s", events->path, strerror(errno));
  if (result != OK) {
    if (events->file)
      fclose(events->file);
    free(events);
    return result;
  }
  *out = events;
  return OK;
}

void events_begin(struct events *events, int64_t step) {
  events->step = step;
  events->summary.size = 0;
}

static bool scalar_value(const struct tensor *value, float *out) {
  if (value->count != 1)
    return false;
  switch ((int)value->dtype) {
  case DTYPE_FLOAT: *out = *(const float *)value->data; return true;
  case DTYPE_DOUBLE: *out = (float)*(const double *)value->data; return true;
  case DTYPE_HALF: *out = half_to_float(*(const uint16_t *)value->data); return true;
  case DTYPE_BFLOAT16: *out = bfloat16_to_float(*(const uint16_t *)value->data); return true;
  case DTYPE_INT32: *out = (float)*(const int32_t *)value->data; return true;
  case DTYPE_INT64: *out = (float)*(const int64_t *)value->data; return true;
  default: return false;
  }
}

/* Whether bytes are a Summary: fields number 1 that hold messages, and nothing else. */
static bool is_summary(const struct string_view *bytes) {
  struct wire wire = wire_over((const uint8_t *)bytes->data, bytes->size);
  struct wire_field field;
  while (wire_next(&wire, &field))
    if (field.number != SUMMARY_VALUE || field.type != WIRE_BYTES)
      return false;
  return !wire.is_bad && bytes->size > 0;
}

void events_add(struct events *events, const char *name, const struct tensor *value) {
  float number;
  if (value->dtype == DTYPE_STRING && value->count == 1 && is_summary(value->data)) {
    const struct string_view *bytes = value->data;
    wire_put_raw(&events->summary, bytes->data, bytes->size);
  } else if (scalar_value(value, &number)) {
    size_t begin = wire_begin(&events->summary, SUMMARY_VALUE);
    wire_put_text(&events->summary, VALUE_TAG, name);
    wire_put_number(&events->summary, VALUE_SIMPLE << 3 | WIRE_FIXED32);
    wire_put_raw(&events->summary, &number, sizeof number);
    wire_end(&events->summary, begin);
  }
}

bool events_add_summary(struct events *events, struct string_view bytes) {
  if (bytes.size && !is_summary(&bytes))
    return false;
  wire_put_raw(&events->summary, bytes.data, bytes.size);
  return true;
}

static status write_event(struct events *events, int64_t step, uint32_t what, const void *data, size_t size) {
  struct wire_buffer event = {0};
  put_time(&event);
  wire_put_varint(&event, EVENT_STEP, (uint64_t)step);
  wire_put_bytes(&event, what, data, size);
  status result = event.is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for an event") : write_record(events, event.data, event.size);
  wire_buffer_free(&event);
  return result;
}

status events_end(struct events *events) {
  if (events->summary.size == 0)
    return OK;
  return events->summary.is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for an event")
                                : write_event(events, events->step, EVENT_SUMMARY, events->summary.data, events->summary.size);
}

status events_graph(struct events *events, int64_t step, struct string_view graph) {
  return write_event(events, step, EVENT_GRAPH, graph.data, graph.size);
}

status events_copy(struct events *events, struct string_view event) {
  struct wire wire = wire_over((const uint8_t *)event.data, event.size);
  struct wire_field field;
  while (wire_next(&wire, &field)) {
  }
  return wire.is_bad ? fail(DATA_LOSS, "Bad tf.Event binary proto tensor string") : write_record(events, event.data, event.size);
}

status events_flush(struct events *events) {
  return fflush(events->file) == 0 ? OK : fail(DATA_LOSS, "%s: %s", events->path, strerror(errno));
}

status events_close(struct events *events) {
  if (!events)
    return OK;
  status result = fclose(events->file) == 0 ? OK : fail(DATA_LOSS, "%s: %s", events->path, strerror(errno));
  wire_buffer_free(&events->summary);
  free(events);
  return result;
}
