/* cluster.c: the cluster file. A ClusterSpec maps jobs to a list of addresses, or sparsely to {index: address}; a TF_CONFIG
 * holds one under "cluster". A TF_CONFIG is told from a spec with a job named "cluster" by the values inside: addresses
 * there, lists or objects here. jansson bounds the nesting; the file's size is bounded before it is read. */
#include "compiler/cluster.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/limits.h"
#include "base/map.h"

#define FILE_BYTES_MAX (4 << 20) /* LIMIT_TASKS addresses of 1 KiB */
#define JOB_LENGTH_MAX 255       /* a job is part of file names */

struct cluster_reader {
  struct arena *arena;
  struct cluster *out;
  struct map addresses; /* address -> task number: two tasks at one address could never both start */
};

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool job_is_valid(const char *job) {
  if (!is_letter(*job) || strlen(job) > JOB_LENGTH_MAX)
    return false;
  for (const char *p = job; *p; p++)
    if (!is_letter(*p) && !is_digit(*p) && *p != '_')
      return false;
  return true;
}

/* A decimal number without sign or blanks; false when it is none or above max. */
static bool number_parse(const char *text, uint32_t max, uint32_t *out) {
  uint64_t value = 0;
  if (!*text)
    return false;
  for (; *text; text++) {
    if (!is_digit(*text))
      return false;
    value = value * 10 + (uint64_t)(*text - '0');
    if (value > max)
      return false;
  }
  *out = (uint32_t)value;
  return true;
}

static bool text_is_plain(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text <= ' ' || *text == 0x7f)
      return false;
  return true;
}

static status address_check(const char *address) {
  uint32_t port;
  if (!strncmp(address, "unix:", 5)) {
    if (!address[5])
      return fail(INVALID_ARGUMENT, "the address '%s' has no path", address);
    if (strlen(address + 5) >= sizeof(((struct sockaddr_un *)0)->sun_path))
      return fail(INVALID_ARGUMENT, "the path of the address '%.200s' is longer than a Unix socket's may be", address);
    return OK;
  }
  const char *colon = strrchr(address, ':');
  if (!colon || colon == address || !number_parse(colon + 1, 65535, &port) || strchr(address, '/') || !text_is_plain(address))
    return fail(INVALID_ARGUMENT, "Could not interpret \"%.200s\" as a host-port pair.", address);
  return OK;
}

/* A port of 0 is drawn when the task starts, so it may stand more than once. */
static bool address_is_fixed(const char *address) {
  const char *colon = strrchr(address, ':');
  return !strncmp(address, "unix:", 5) || strtoul(colon + 1, NULL, 10) != 0;
}

static status task_add(struct cluster_reader *r, const char *job, uint32_t index, const json_t *value) {
  const char *address = json_string_value(value);
  if (!address)
    return fail(INVALID_ARGUMENT, "the address of /job:%s/task:%u is not a string", job, index);
  status result = address_check(address);
  if (result != OK)
    return status_prefix(result, "/job:%s/task:%u: ", job, index);
  if (cluster_find(r->out, job, index) != UINT32_MAX)
    return fail(INVALID_ARGUMENT, "/job:%s/task:%u is named twice", job, index);
  if (r->out->tasks.count == LIMIT_TASKS)
    return fail(INVALID_ARGUMENT, "more than %d tasks", LIMIT_TASKS);
  address = arena_strdup(r->arena, address);
  uint32_t other;
  if (address_is_fixed(address) && map_find(&r->addresses, address, &other))
    return fail(INVALID_ARGUMENT, "/job:%s/task:%u has the address %.200s of /job:%s/task:%u", job, index, address,
                r->out->tasks.items[other].job, r->out->tasks.items[other].index);
  map_set(&r->addresses, address, r->out->tasks.count);
  vec_push(&r->out->tasks, (struct cluster_task){job, index, address});
  return OK;
}

static status job_read(struct cluster_reader *r, const char *name, const json_t *tasks) {
  if (!job_is_valid(name))
    return fail(INVALID_ARGUMENT, "'%.200s' is no job name: a letter, then letters, digits and '_'", name);
  const char *job = arena_strdup(r->arena, name);
  if (json_is_array(tasks)) {
    for (size_t i = 0; i < json_array_size(tasks); i++)
      TRY(task_add(r, job, (uint32_t)i, json_array_get(tasks, i)));
    return OK;
  }
  if (!json_is_object(tasks))
    return fail(INVALID_ARGUMENT, "job '%s' is neither a list of addresses nor an object of them", job);
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)tasks, key, value) {
    uint32_t index;
    if (!number_parse(key, INT32_MAX, &index))
      return fail(INVALID_ARGUMENT, "job '%s': '%.200s' is no task number", job, key);
    TRY(task_add(r, job, index, value));
  }
  return OK;
}

/* The ClusterSpec inside a TF_CONFIG; a plain one is its own. */
static const json_t *spec_of(const json_t *root) {
  const json_t *inner = json_object_get(root, "cluster");
  if (!json_is_object(inner))
    return root;
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)inner, key, value) {
    if (json_is_string(value) && !json_is_object(json_object_get(root, "task")))
      return root;
  }
  return inner;
}

static int task_compare(const void *a, const void *b) {
  const struct cluster_task *x = a, *y = b;
  int order = strcmp(x->job, y->job);
  return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

static status spec_read(struct cluster_reader *r, const json_t *root) {
  if (!json_is_object(root))
    return fail(INVALID_ARGUMENT, "not a JSON object of jobs");
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)spec_of(root), key, value) { TRY(job_read(r, key, value)); }
  if (!r->out->tasks.count)
    return fail(INVALID_ARGUMENT, "no task in it");
  qsort(r->out->tasks.items, r->out->tasks.count, sizeof *r->out->tasks.items, task_compare);
  return OK;
}

status cluster_parse(const char *text, size_t size, struct arena *arena, struct cluster *out) {
  json_error_t error;
  *out = (struct cluster){0};
  if (size > FILE_BYTES_MAX)
    return fail(INVALID_ARGUMENT, "a cluster file of %zu bytes: at most %d", size, FILE_BYTES_MAX);
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  if (!root)
    return fail(INVALID_ARGUMENT, "line %d, column %d: %s", error.line, error.column, error.text);
  struct cluster_reader reader = {.arena = arena, .out = out};
  status result = spec_read(&reader, root);
  map_deinit(&reader.addresses);
  json_decref(root);
  if (result != OK)
    vec_free(&out->tasks);
  return result;
}

static status file_load(const char *path, char **out, size_t *size) {
  FILE *file = fopen(path, "re");
  struct stat st;
  if (!file)
    return fail(NOT_FOUND, "%s", strerror(errno));
  if (fstat(fileno(file), &st) || !S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX) {
    fclose(file);
    return fail(INVALID_ARGUMENT, "not a file of at most %d bytes", FILE_BYTES_MAX);
  }
  *out = malloc((size_t)st.st_size + 1);
  *size = *out ? fread(*out, 1, (size_t)st.st_size, file) : 0;
  fclose(file);
  return *out ? OK : fail(RESOURCE_EXHAUSTED, "no memory for %lld bytes", (long long)st.st_size);
}

status cluster_read(const char *path, struct arena *arena, struct cluster *out) {
  char *text = NULL;
  size_t size = 0;
  *out = (struct cluster){0};
  status result = file_load(path, &text, &size);
  if (result == OK)
    result = cluster_parse(text, size, arena, out);
  free(text);
  return result == OK ? OK : status_prefix(result, "cluster file '%s': ", path);
}

void cluster_local(struct arena *arena, struct cluster *out) {
  *out = (struct cluster){0};
  vec_push(&out->tasks, (struct cluster_task){arena_strdup(arena, "localhost"), 0, ""});
}

uint32_t cluster_find(const struct cluster *cluster, const char *job, uint32_t index) {
  for (uint32_t i = 0; i < cluster->tasks.count; i++)
    if (cluster->tasks.items[i].index == index && !strcmp(cluster->tasks.items[i].job, job))
      return i;
  return UINT32_MAX;
}

uint32_t cluster_default_task(const struct cluster *cluster) {
  uint32_t chief = cluster_find(cluster, "chief", 0);
  if (chief == UINT32_MAX)
    chief = cluster_find(cluster, "worker", 0);
  return chief == UINT32_MAX ? 0 : chief;
}
