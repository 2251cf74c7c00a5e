/* rounds.h: the meetings of a task (resource/meeting.h) among the other tasks. */
#ifndef TFC_RUNTIME_PROCESS_ROUNDS_H
#define TFC_RUNTIME_PROCESS_ROUNDS_H

#include "runtime/cluster/cluster.h"
#include "runtime/step/task.h"

/* Between cluster_create and cluster_start. is_elastic: a member that is lost leaves its rounds. */
void rounds_join(struct task *task, struct cluster *cluster, double timeout_s, bool is_elastic);

#endif
