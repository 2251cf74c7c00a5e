/* job.h: the checkpoints and histories of a job of several tasks (cluster/cut.h, cluster/history.h say what is decided).
 *
 * Each task has one, with a thread that does what the coordinator says, and, in the coordinator (ps 0, without ps the chief), decides.
 * Whichever task is given --checkpoint-dir and what goes with it, it concerns all. Threads: any, but for create and destroy. Owner: the
 * task's main.
 */
#ifndef TFC_RUNTIME_CHECKPOINT_JOB_H
#define TFC_RUNTIME_CHECKPOINT_JOB_H

#include "runtime/checkpoint/saver.h"

struct cluster;
struct job;

/* How the job concerns the rest of the task. */
struct job_config {
  struct saver_config given; /* this task's own command line (all NULL and 0: nothing was given to it) */
  bool has_phases;
  double timeout_s;
  void (*on_failed)(void *self);                     /* the job cannot go on: all that waits is to end; job_failure says why. Any thread */
  void (*on_complete)(void *self, const char *name); /* this task's file of the newest complete checkpoint; the job's thread; or NULL */
  void (*on_over)(void *self);                       /* a task that only holds variables may leave: job_is_over. Any thread */
  void *self;
};

/* Between cluster_create and cluster_start. */
status job_create(struct task *task, struct cluster *cluster, const struct job_config *config, struct job **out);
/* Begins to tell and to answer. */
status job_start(struct job *job);
/* Ends its thread, while the cluster is still there; it says nothing more. Accepts NULL. */
void job_close(struct job *job);
/* After the cluster, before the task. Accepts NULL. */
void job_destroy(struct job *job);

/* Waits until the job is in a history: all holders are there, and what was to be restored is. UNAVAILABLE: a holder cannot be reached, or
 * state was lost and there is no checkpoint folder; CANCELLED after job_stop; DATA_LOSS and others: a checkpoint cannot be restored. */
status job_wait(struct job *job);
/* There is a checkpoint folder. False for NULL. */
bool job_keeps(struct job *job);
/* And what it keeps is made by its own steps, each with the others: those would have one that is cut off here.
 * False for NULL. */
bool job_keeps_own(struct job *job);
/* Which history the job is in; 0: none yet, or it is no job of several tasks (NULL). */
uint64_t job_history(struct job *job);
/* For a task whose phases are done, in this history: waits until its last step is in a complete checkpoint, where there is a folder. OK
 * also when none could be made: the tasks that keep them say so. ABORTED: the job has gone back meanwhile, the steps are to be done
 * again. */
status job_leave(struct job *job, uint64_t history);
/* Behind job_leave, when the task has said that it had finished: it leaves for good, its command is done. Where there is a
 * folder: waits until that is on the coordinator's disk, or the coordinator is away longer than the time-out. Whoever comes later under its
 * name is its next command, also when the job has gone back to the checkpoint with its last step; who is lost before that goes on with the
 * same one. */
void job_say_gone(struct job *job, uint32_t command);
/* What was learnt since the last checkpoint is saved; the coordinator stays until the others have been let go. is_well: the task has done
 * all it had to; else it takes less time. DATA_LOSS: this, or a save before, failed here. Accepts NULL. */
status job_finish(struct job *job, bool is_well);
/* The coordinator has said that all work is done. Accepts NULL. */
bool job_is_over(struct job *job);
/* OK, or why the job cannot go on. Accepts NULL. */
status job_failure(struct job *job);
/* Wakes all waiters with CANCELLED. Accepts NULL. */
void job_stop(struct job *job);

#endif
