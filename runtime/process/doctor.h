/* doctor.h: looks once a second at what this task waits for, says who holds it up (step/stall.h), hears what the others wait for, and keeps
 * the page that `tfc status` shows.
 *
 * Threads: one of its own; all functions from any thread but create and destroy. Owner: the task's main.
 */
#ifndef TFC_RUNTIME_PROCESS_DOCTOR_H
#define TFC_RUNTIME_PROCESS_DOCTOR_H

#include "base/status.h"
#include "runtime/process/progress.h"

struct cluster;
struct doctor;
struct task;

/* What the task's own thread is at. */
enum doctor_stage {
  STAGE_STARTS,
  STAGE_MEETS,        /* waits until tasks are connected */
  STAGE_AWAITS_CHIEF, /* waits until the chief has initialised */
  STAGE_INITIALISES,
  STAGE_ASKS_HISTORY, /* waits until the coordinator says what the job goes on from */
  STAGE_ASKS_COURSE,  /* waits until those that keep variables say which of its steps they have */
  STAGE_COPIES,       /* of an all-reduce: waits until the replicas have one state */
  STAGE_RUNS,         /* its phases */
  STAGE_HAS_FINISHED, /* waits for others that are at work */
  STAGE_SERVES,
  STAGE_LEAVES,
};

/* cluster: NULL when the task is alone; not started yet. */
status doctor_create(struct task *task, struct cluster *cluster, const struct progress *progress, struct doctor **out);
/* Ends the thread: before the cluster is destroyed. Accepts NULL. */
void doctor_stop(struct doctor *doctor);
/* After the cluster is destroyed, from which it hears. Accepts NULL. */
void doctor_destroy(struct doctor *doctor);

/* From now on; MEETS, AWAITS_CHIEF: who is waited for (kept by reference), until the next stage. Accepts NULL. */
void doctor_enter(struct doctor *doctor, enum doctor_stage stage, const uint32_t *tasks, uint32_t count);
/* What is known of checkpoints, for people; copied. Accepts NULL. */
void doctor_note_checkpoint(struct doctor *doctor, const char *text);
/* Says on stderr what it waits for, whatever for how long. Accepts NULL. */
void doctor_report(struct doctor *doctor);

#endif
