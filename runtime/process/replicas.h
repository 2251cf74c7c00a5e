/* replicas.h: a replica of an all-reduce comes to the state of the others before it takes part (cluster/view.h).
 *
 * Threads: replicas_join on the main thread. Owner: the task's main. */
#ifndef TFC_RUNTIME_PROCESS_REPLICAS_H
#define TFC_RUNTIME_PROCESS_REPLICAS_H

#include "runtime/cluster/cluster.h"
#include "runtime/process/options.h"
#include "runtime/step/task.h"

struct replicas;

/* *out is NULL where the task is none. Between cluster_create and cluster_start; options are kept by reference. */
status replicas_create(struct task *task, struct cluster *cluster, const struct task_options *options, struct replicas **out);
/* After task_close. Accepts NULL. */
void replicas_destroy(struct replicas *replicas);
/* Before the first step of the phases, and again after a step has failed: waits until this replica has the job's state, which may be copied
 * from another one: its variables, and the number of its last step. rounds: so many steps has its command. NULL, or no phase that trains:
 * OK. UNAVAILABLE: a replica that is needed for it did not come within --timeout, or has left with it; FAILED_PRECONDITION: the first
 * worker does not train; CANCELLED. */
status replicas_join(struct replicas *replicas, uint64_t rounds);
/* Whether it is the one that decides the others' rounds. NULL: false. */
bool replicas_decide_rounds(const struct replicas *replicas);
/* Whether the others need this one until their end: the first decides the rounds, and any has the state that one of them may lack when it
 * is started again. NULL: false. */
bool replicas_serve_others(const struct replicas *replicas);
/* Ends waits, now and later, with CANCELLED. Accepts NULL. */
void replicas_stop(struct replicas *replicas);

#endif
