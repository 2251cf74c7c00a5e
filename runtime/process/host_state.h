/* host_state.h: what a task's process has in hand, for task_main.c (its phases and its end), join.c (how it comes to its cluster) and
 * initialise.c (what it does before the first step).
 *
 * Private to the folder. Threads: the main one, but for host_stop and what `report_lock` guards.
 */
#ifndef TFC_RUNTIME_PROCESS_HOST_STATE_H
#define TFC_RUNTIME_PROCESS_HOST_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/checkpoint/job.h"
#include "runtime/cluster/cluster.h"
#include "runtime/data/events.h"
#include "runtime/master/client_service.h"
#include "runtime/process/course.h"
#include "runtime/process/doctor.h"
#include "runtime/process/options.h"
#include "runtime/process/phase.h"
#include "runtime/process/progress.h"
#include "runtime/process/replicas.h"
#include "runtime/process/runner.h"
#include "runtime/step/task.h"
#include "runtime/step/trace.h"

struct host {
  struct task_options options;
  const struct program *program;
  struct task *task;
  struct cluster *cluster; /* NULL: alone, with phases */
  struct client_service *clients;
  struct course *course;
  struct replicas *replicas;   /* NULL: no replica of an all-reduce */
  struct saver *saver;         /* NULL: no --checkpoint-dir, no --restore, or several tasks: */
  struct job *job;             /* NULL: alone */
  uint64_t history;            /* of the job, that the steps are done in */
  struct phase *last_phase;    /* NULL: not come to its end, or closed; open while a restore may undo its steps */
  struct runners *runners;     /* NULL: not started */
  struct events *events;       /* NULL: no --log-dir */
  struct trace *trace;         /* NULL: no --trace */
  struct doctor *doctor;       /* NULL: not started yet */
  pthread_mutex_t report_lock; /* task, cluster and doctor are there while it is held, unless: */
  bool is_leaving;
  bool has_joined;        /* all above that host_stop stops is there; guarded by report_lock */
  atomic_bool is_stopped; /* what is made later has to be told */
  struct progress progress;
};

/* Ends whatever waits, from any thread: on a signal, or when a part of the task has failed. */
void host_stop(void *self);

/* What was given to this task of --checkpoint-dir and what goes with it; valid as long as the options. */
struct saver_config host_checkpoints(const struct host *host);
/* No other task is in the cluster. */
bool host_is_alone(const struct host *host);
/* Listens, and starts all that needs the other tasks. INVALID_ARGUMENT: addresses or certificates; else what its parts give. */
status host_join(struct host *host);
/* Until the tasks of an entry are there; cluster_wait_peers. */
status host_wait_peers(const struct host *host, uint32_t number);

bool host_is_chief(const struct host *host);
bool host_is_replica(const struct host *host);
/* Whether the chief says `ready` only after its first phase. */
bool host_is_ready_after_first_phase(const struct host *host);
/* Runs `init` where this task is to, again when somebody is lost meanwhile. The errors of its steps. */
/* is_again: somebody was lost since it was done. */
status host_initialise(struct host *host, bool is_again);
/* What can only be done once variables have their values: of each replica, else the chief's. */
status host_initialise_late(struct host *host);
/* Initialises and says so (the chief), or waits until the chief has. */
status host_become_ready(struct host *host);

#endif
