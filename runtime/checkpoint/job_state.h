/* job_state.h: what the files of a job share; for job*.c only. But for what is under the lock, all
 * belongs to the job's thread. */
#ifndef TFC_RUNTIME_CHECKPOINT_JOB_STATE_H
#define TFC_RUNTIME_CHECKPOINT_JOB_STATE_H

#include <pthread.h>
#include "base/limits.h"
#include "runtime/checkpoint/job.h"
#include "runtime/checkpoint/job_message.h"
#include "runtime/checkpoint/keeper.h"
#include "runtime/cluster/cut.h"
#include "runtime/step/commit.h"

/* A message that waits for the job's thread. */
struct job_letter {
  struct job_letter *next;
  uint32_t from;
  size_t size;
  char data[];
};

struct job_file {
  uint64_t id;
  char name[CHECKPOINT_NAME_MAX];
};

/* Of this task's variables. */
struct job_seat {
  struct cut_seat cut;
  struct keeper *keeper;      /* NULL: no folder is known, or this is no holder */
  VEC(struct job_file) files; /* complete ones with an id, oldest first */
  struct job_file taken;      /* what is being written, or waits for COMMIT */
  bool is_told;               /* DONE of `taken`: it counts, whatever becomes of the coordinator */
  _Atomic uint64_t written;   /* the keeper's: id of what it has written and synced last */
  struct ledger goal;         /* SNAP: the steps that may still pass */
  uint64_t history;           /* that its state is of; 0: none yet */
  bool has_served;            /* this process was in a history: tables and iterators are there */
  bool is_touched;            /* the variables are not as they were at the start */
};

struct job {
  struct task *task;
  struct cluster *cluster;
  uint32_t self, task_count, coordinator_task, chief, holder_total;
  bool is_holder, is_replicated, has_phases;
  uint64_t timeout_ms;
  void (*on_failed)(void *self), (*on_over)(void *self);
  void (*on_complete)(void *self, const char *name); /* or NULL */
  void *self_of_user;                                /* of all three */
  struct job_options options;
  bool has_options;
  struct job_seat seat;
  struct job_coordinator *coordinator;  /* NULL: another task is the coordinator */
  uint64_t life;                        /* random, of this process */
  uint64_t asked_ms;                    /* when JOIN was last sent */
  uint64_t asked_leave, asked_leave_ms; /* LEAVE_ASK, of which history */
  uint64_t told_gone_ms;                /* GONE */
  pthread_t thread;
  bool has_thread;
  _Atomic int64_t steps;     /* that changed state here, since the first start */
  _Atomic int64_t due_steps; /* at which the thread wakes */
  pthread_mutex_t lock;      /* all below */
  pthread_cond_t changed;
  struct job_letter *first, *last;
  bool is_ending, is_stopped, is_due, is_over, keeps, may_leave, may_end, is_asking_leave, wants_last;
  bool is_gone;            /* this task has left for good, and that is noted */
  uint64_t history;        /* 0: none yet */
  uint64_t leaves_history; /* in which the steps were done of a task that asks to leave */
  uint64_t left_with;      /* the checkpoint that has the last step of a task that may leave; 0: none has */
  uint32_t gone_command;   /* of a task that leaves for good, until that is noted; 0: it does not */
  status failure;          /* the job cannot go on */
  char failure_text[1024];
  bool has_failed; /* a save did, here */
  char failed_text[1024];
};

uint64_t job_random(void); /* never 0 */
/* To the task itself, too. False: there is no link. */
bool job_send(struct job *job, uint32_t to, const struct job_message *message);
/* The job's thread looks at once at what is to be done. Any thread. */
void job_wake(struct job *job);
/* All waits end with this. */
void job_fail(struct job *job, status code, const char *text);
/* What was given to some task. */
void job_set_options(struct job *job, const struct job_options *options);
/* A line of this task's. */
void job_say(const struct job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* job_holder.c */
void holder_options(struct job *job);
void holder_join(struct job *job, struct job_message *out);
void holder_message(struct job *job, const struct job_message *message);
void holder_tick(struct job *job, uint64_t now_ms);
/* DONE, when it is due. */
void holder_tell_written(struct job *job);
/* Something could not be written to the folder: said once, the exit code has it. Any thread. */
void holder_note_failure(struct job *job, const char *text);

/* job_coordinator.c; what it keeps is in job_coordinator.h */
status coordinator_create(struct job *job);
void coordinator_destroy(struct job *job);
void coordinator_message(struct job *job, uint32_t from, const struct job_message *message);
void coordinator_tick(struct job *job, uint64_t now_ms);
/* Everybody who is still there and might wait for the coordinator has been let go. */
bool coordinator_is_empty(struct job *job);
/* When something is to be done by the clock; UINT64_MAX: never. */
uint64_t coordinator_due_ms(const struct job *job, uint64_t now_ms);

/* job_gone.c: of the coordinator, what the folder says that the keeper has. */
void gone_read(struct job *job);

#endif
