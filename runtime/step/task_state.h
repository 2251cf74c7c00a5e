/* task_state.h: the inside of a task, for the files that run steps. */
#ifndef TFC_RUNTIME_STEP_TASK_STATE_H
#define TFC_RUNTIME_STEP_TASK_STATE_H

#include "runtime/step/commit.h"
#include "runtime/step/frame.h"
#include "runtime/step/task.h"

struct pool;
struct crew;
struct buffer_cache;
struct container;
struct hall;
struct trace;

#define TASK_REASON_BYTES 1024
struct task {
  const struct program *program;
  const struct kernel_code *kernels;
  char name[256];
  struct variable *variables;
  uint32_t variable_count;
  host_function *hosts; /* per instruction of the program; NULL where it is no HOST */
  struct part *parts;   /* per part of the program */
  uint32_t part_count;
  struct pool *pool;
  struct crew *crew;
  struct buffer_cache *buffers;
  struct rendezvous *rendezvous;
  struct transfer_table *transfers; /* what others may send */
  struct container *container;      /* queues, tables, files: what host functions share by name */
  struct hall *hall;                /* where steps of several drivers meet in rounds (meeting.h) */
  const struct exchange *exchange;
  struct commit commit;
  status (*wait_peers)(void *self, const uint32_t *tasks, uint32_t count); /* or NULL */
  void *wait_peers_self;
  pthread_mutex_t lock;   /* steps, and what a step says is under it */
  pthread_cond_t changed; /* a step's `waiting` fell */
  struct step *steps;
  uint32_t turns_awaited; /* steps that wait for an earlier one of their driver */
  uint64_t next_step;
  uint32_t init_entry;         /* PROGRAM_NONE: there is none */
  void (*on_step)(void *self); /* or NULL */
  void *on_step_self;
  bool *finishing;              /* of the exchange's thread, for each task: it has said that it is at its end, and has not left yet */
  void (*on_peers)(void *self); /* or NULL */
  void *on_peers_self;
  atomic_bool stopping, winds_up;
  atomic_bool has_given_up;
  char given_up[TASK_REASON_BYTES]; /* why it stops by itself; written before has_given_up is set, once */
  atomic_int at_work;               /* parts that run and do not wait for elements: work beside them leaves them the pool */
  struct trace *trace;              /* or NULL */
};

/* drive.c, for guest.c. The list: step_find under the lock. */
struct step *step_find(struct task *task, uint64_t id);
void step_enter(struct task *task, struct step *step);
void step_leave(struct task *task, struct step *step);
/* False when it is not here (any more). */
bool step_fail_by_id(struct task *task, uint64_t id, status code, const char *text);
/* "X is stopping", and why where it gives up. Any thread. */
void task_stopping_text(struct task *task, char *out, size_t size);
/* A step that changed the state of this task has ended well; initialising is no progress. */
void step_notify(const struct step *step);
/* Runs a part and tells the step when it fails. */
void part_run_reporting(struct part *part, struct step *step, const int64_t *symbols);

/* Gives a step up with the reason; the first one stays. */
void step_fail(struct step *step, status code, const char *text);
/* A step for what goes on beside others, on behalf of an entry's step; in the list until it is ended. */
void step_begin_background(struct step *step, struct task *task, uint32_t entry);
void step_end_background(struct step *step);
/* A frame of the step may wait here. */
void step_add_inbox(struct step *step, struct inbox *inbox);
void step_remove_inbox(struct step *step, struct inbox *inbox);

#endif
