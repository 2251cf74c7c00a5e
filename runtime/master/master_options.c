/* master_options.c: RunOptions and ConfigProto (config.proto; ClusterDef in cluster.proto). The cluster is that of the build: a client's
 * ClusterDef or filters can only leave tasks out. */
#include "runtime/master/master_options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void run_options_read(struct wire wire, struct run_options *out) {
  struct wire_field field;
  while (wire_next(&wire, &field)) {
    if (field.type != WIRE_VARINT)
      continue;
    switch (field.number) {
    case 1: out->traces = field.value != 0; break;
    case 2: out->timeout_ms = (int64_t)field.value > 0 ? (int64_t)field.value : 0; break;
    case 5: out->wants_graphs = field.value != 0; break;
    case 7: out->reports_memory = field.value != 0; break;
    default: break;
    }
  }
}

/* ---- device names ---- */

/* "/job:ps/replica:0/task:1/device:CPU:0", each piece optional. */
struct device_pattern {
  char job[256], type[32];
  long replica, task, number; /* -1: any */
};

static bool piece_is(const char *piece, size_t size, const char *key, const char **value) {
  *value = piece + strlen(key);
  return size >= strlen(key) && strncmp(piece, key, strlen(key)) == 0;
}

static bool piece_number(const char *value, const char *end, long *out) {
  char *stop;
  *out = value < end && *value == '*' ? -1 : strtol(value, &stop, 10);
  return value < end && (*value == '*' ? value + 1 == end : isdigit((unsigned char)*value) && stop == end);
}

static bool piece_device(const char *value, const char *end, struct device_pattern *out) {
  const char *colon = memchr(value, ':', (size_t)(end - value));
  size_t size = (size_t)((colon ? colon : end) - value);
  if (size == 0 || size >= sizeof out->type)
    return false;
  for (size_t i = 0; i <= size; i++)
    out->type[i] = i < size ? (char)toupper((unsigned char)value[i]) : 0;
  if (strcmp(out->type, "*") == 0)
    out->type[0] = 0;
  return !colon || piece_number(colon + 1, end, &out->number);
}

static bool piece_take(const char *piece, const char *end, struct device_pattern *out) {
  size_t size = (size_t)(end - piece);
  const char *value;
  if (piece_is(piece, size, "job:", &value))
    return end > value && snprintf(out->job, sizeof out->job, "%.*s", (int)(end - value), value) < (int)sizeof out->job;
  if (piece_is(piece, size, "replica:", &value))
    return piece_number(value, end, &out->replica);
  if (piece_is(piece, size, "task:", &value))
    return piece_number(value, end, &out->task);
  if (piece_is(piece, size, "device:", &value))
    return piece_device(value, end, out);
  return (piece_is(piece, size, "cpu:", &value) || piece_is(piece, size, "gpu:", &value)) && piece_device(piece, end, out);
}

static bool pattern_read(const char *name, struct device_pattern *out) {
  *out = (struct device_pattern){.replica = -1, .task = -1, .number = -1};
  for (const char *at = name; *at;) {
    if (*at++ != '/')
      return false;
    const char *end = at + strcspn(at, "/");
    if (!piece_take(at, end, out))
      return false;
    at = end;
  }
  return true;
}

static bool pattern_fits(const struct device_pattern *pattern, const struct device_pattern *device) {
  return (!*pattern->job || strcmp(pattern->job, device->job) == 0) && (!*pattern->type || strcmp(pattern->type, device->type) == 0) &&
         (pattern->replica < 0 || pattern->replica == device->replica) && (pattern->task < 0 || pattern->task == device->task) &&
         (pattern->number < 0 || pattern->number == device->number);
}

/* ---- what a session sees ---- */

static status field_text(const struct wire_field *field, char out[512]) {
  if (field->type != WIRE_BYTES || field->size >= 512 || memchr(field->data, 0, field->size))
    return fail(INVALID_ARGUMENT, "a ConfigProto with a name that is none");
  memcpy(out, field->data, field->size);
  out[field->size] = 0;
  return OK;
}

static status filter_add(const struct master_config *config, const struct wire_field *field, uint8_t *seen) {
  struct device_pattern pattern, device;
  char name[512];
  TRY(field_text(field, name));
  if (!pattern_read(name, &pattern))
    return fail(INVALID_ARGUMENT, "the device filter '%s' is no device name", name);
  for (uint32_t i = 0; i < config->device_count; i++)
    if (pattern_read(config->devices[i], &device) && pattern_fits(&pattern, &device))
      seen[i] = 1;
  return OK;
}

/* Loopback has many names. */
static bool addresses_agree(const char *a, const char *b) {
  static const char *const loopback[] = {"localhost", "127.0.0.1", "0.0.0.0", "[::1]", "[::]", ""};
  const char *port_a = strrchr(a, ':'), *port_b = strrchr(b, ':');
  bool is_local[2] = {false, false};
  if (strcmp(a, b) == 0)
    return true;
  if (!port_a || !port_b || strcmp(port_a, port_b) != 0)
    return false;
  for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++) {
    is_local[0] |= strlen(loopback[i]) == (size_t)(port_a - a) && strncmp(loopback[i], a, (size_t)(port_a - a)) == 0;
    is_local[1] |= strlen(loopback[i]) == (size_t)(port_b - b) && strncmp(loopback[i], b, (size_t)(port_b - b)) == 0;
  }
  return is_local[0] && is_local[1];
}

/* JobDef.tasks: one entry of the map {1 index, 2 address}. */
static status task_add(const struct master_config *config, const char *job, struct wire wire, uint8_t *seen) {
  struct wire_field field;
  struct device_pattern device;
  char address[512] = "";
  long index = 0;
  while (wire_next(&wire, &field)) {
    if (field.number == 1)
      index = (long)field.value;
    else if (field.number == 2)
      TRY(field_text(&field, address));
  }
  for (uint32_t i = 0; i < config->device_count; i++) {
    if (!pattern_read(config->devices[i], &device) || strcmp(device.job, job) != 0 || device.task != index)
      continue;
    if (config->addresses && *address && !addresses_agree(config->addresses[i], address))
      return fail(FAILED_PRECONDITION,
                  "the client's ClusterDef has /job:%s/task:%ld at %s, here it is at %s; leave the ClusterDef out, or "
                  "build for that cluster",
                  job, index, address, config->addresses[i]);
    seen[i] = 1;
    return OK;
  }
  return fail(INVALID_ARGUMENT, "the client's ClusterDef names /job:%s/task:%ld, which the cluster of this program has not", job, index);
}

static status job_add(const struct master_config *config, struct wire wire, uint8_t *seen) {
  struct wire names = wire;
  struct wire_field field;
  char job[512] = "";
  while (wire_next(&names, &field))
    if (field.number == 1)
      TRY(field_text(&field, job));
  while (wire_next(&wire, &field))
    if (field.number == 2)
      TRY(task_add(config, job, wire_inside(&field), seen));
  return OK;
}

static status cluster_add(const struct master_config *config, struct wire wire, uint8_t *seen, bool *is_given) {
  struct wire_field field;
  while (wire_next(&wire, &field))
    if (field.number == 1) {
      *is_given = true;
      TRY(job_add(config, wire_inside(&field), seen));
    }
  return OK;
}

struct sight {
  uint8_t *filtered, *in_cluster;
  bool has_filters, has_cluster;
};

static status fields_take(const struct master_config *config, struct wire wire, struct sight *sight, struct session_options *out) {
  struct wire_field field;
  while (wire_next(&wire, &field)) {
    switch (field.number) {
    case 4:
      sight->has_filters = true;
      TRY(filter_add(config, &field, sight->filtered));
      break;
    case 11: out->timeout_ms = (int64_t)field.value > 0 ? (int64_t)field.value : 0; break;
    case 12: return fail(INVALID_ARGUMENT, "Distributed session does not support session thread pool options.");
    case 14: TRY(cluster_add(config, wire_inside(&field), sight->in_cluster, &sight->has_cluster)); break;
    default: break;
    }
  }
  return wire.is_bad ? fail(INVALID_ARGUMENT, "a ConfigProto that is none") : OK;
}

status session_options_read(const struct master_config *config, struct wire wire, struct session_options *out) {
  struct sight sight = {calloc((size_t)config->device_count + 1, 1), calloc((size_t)config->device_count + 1, 1), false, false};
  *out = (struct session_options){.timeout_ms = 0};
  status code = sight.filtered && sight.in_cluster ? fields_take(config, wire, &sight, out) : fail(RESOURCE_EXHAUSTED, "no memory");
  if (code == OK && (sight.has_filters || sight.has_cluster)) {
    for (uint32_t i = 0; i < config->device_count; i++)
      sight.filtered[i] =
        i == config->own_device || ((!sight.has_filters || sight.filtered[i]) && (!sight.has_cluster || sight.in_cluster[i]));
    out->visible = sight.filtered;
    sight.filtered = NULL;
  }
  free(sight.filtered);
  free(sight.in_cluster);
  return code;
}

status session_sees_entry(const struct master_config *config, const uint8_t *visible, uint32_t number) {
  const struct master_entry *entry = &config->entries[number];
  for (uint32_t i = 0; visible && i < entry->task_count; i++)
    if (entry->tasks[i] < config->device_count && !visible[entry->tasks[i]])
      return fail(INVALID_ARGUMENT, "the run needs %s, which the session's device filters or ClusterDef leave out",
                  config->devices[entry->tasks[i]]);
  return OK;
}
