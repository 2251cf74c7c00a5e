/* rounds.c: what a hall needs of the cluster, and what it hears of the other halls. */
#include "runtime/process/rounds.h"

#include "runtime/cluster/control.h"
#include "runtime/resource/meeting.h"
#include "runtime/step/task_state.h"

static uint64_t missing_ms(void *cluster, uint32_t task, bool *was_up) { return cluster_missing_ms(cluster, task, was_up); }
static void describe(void *cluster, uint32_t task, char *out, size_t size) { cluster_describe(cluster, task, out, size); }
static bool send_round(void *cluster, uint32_t task, const void *data, size_t size) {
  return cluster_send_control(cluster, task, CONTROL_ROUND, data, size);
}

static void hear_round(void *hall, uint32_t from, const void *data, size_t size) { hall_hear(hall, from, data, size); }

void rounds_join(struct task *task, struct cluster *cluster, double timeout_s, bool is_elastic) {
  struct hall_peers peers = {cluster, missing_ms, describe, send_round, (uint64_t)(timeout_s * 1000), is_elastic, task->program->task};
  hall_set_peers(task->hall, &peers);
  cluster_on_control(cluster, CONTROL_ROUND, hear_round, task->hall);
}
