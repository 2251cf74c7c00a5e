/* cluster.h: the cluster file: tasks with their addresses. Three JSON forms (contract, section 1). */
#ifndef TFC_COMPILER_CLUSTER_H
#define TFC_COMPILER_CLUSTER_H

#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

struct cluster_task {
  const char *job;
  uint32_t index;
  const char *address; /* "host:port" or "unix:PATH"; "" for the one task of a build without a cluster */
};
struct cluster {
  VEC(struct cluster_task) tasks; /* jobs by name, tasks by index */
};

/* INVALID_ARGUMENT: not JSON, no such form, an address that is none, a task named twice, more than LIMIT_TASKS. */
status cluster_read(const char *path, struct arena *arena, struct cluster *out);
status cluster_parse(const char *text, size_t size, struct arena *arena, struct cluster *out);
/* One task, /job:localhost/task:0. */
void cluster_local(struct arena *arena, struct cluster *out);
/* UINT32_MAX when there is none. */
uint32_t cluster_find(const struct cluster *cluster, const char *job, uint32_t index);
/* chief_0, else worker_0, else the first task: where nodes without a device go, and who initialises. */
uint32_t cluster_default_task(const struct cluster *cluster);

#endif
