/* job_coordinator.h: what the coordinator keeps of a job; for job_coordinator.c, job_history.c and job_attempt.c only. All belongs to the
 * job's thread. */
#ifndef TFC_RUNTIME_CHECKPOINT_JOB_COORDINATOR_H
#define TFC_RUNTIME_CHECKPOINT_JOB_COORDINATOR_H

#include "runtime/checkpoint/job_state.h"

/* What the coordinator knows of the others. */
struct job_seen {
  bool is_holder, has_joined, has_restored, has_phases, is_initialised;
  uint32_t holder; /* its place among the holders */
  uint64_t history, life;
  bool wants_to_leave, has_left;
  bool is_let_go;             /* it says so itself: to this coordinator's predecessor */
  bool had_finished;          /* others say so: it may have left before this coordinator began */
  bool is_covered;            /* by the attempt under way */
  bool is_gone;               /* it has said so */
  int64_t steps, steps_saved; /* a holder's, in the attempt; in the last complete one, -1: unknown */
};

/* A task that has left for good: what is started again under its name is its next command. */
struct job_gone {
  uint32_t task, command;
  uint64_t id; /* a complete checkpoint that has its last step */
};

struct job_coordinator {
  struct history_holder *holders;
  uint32_t *holder_tasks, holder_count;
  struct job_seen *seen; /* of each task */
  bool is_restoring, has_history, had_lost, has_said_ready;
  uint64_t history;               /* the one that is being restored, or runs */
  char said[CHECKPOINT_PATH_MAX]; /* what tasks are to say when it runs */
  struct cut cut;
  struct ledger *ledgers; /* of each holder, in the attempt */
  int64_t number, steps;
  uint64_t newest; /* id of the last complete one */
  uint64_t last_id;
  uint64_t left_open; /* an attempt that was under way when a holder was lost: complete if all have written theirs; 0: none */
  uint64_t begun_ms, retry_ms, failing_since_ms, asked_ms;
  uint64_t awaited_ms;   /* since when somebody with phases waits for a history; 0: nobody does */
  int64_t steps_covered; /* of this task, in the attempt, and in the last complete one: */
  int64_t steps_saved;
  VEC(struct job_gone) gone;  /* as on the disk */
  bool is_giving_up, is_last; /* is_last: the attempt was begun after this task was told to end */
};

/* ---- job_coordinator.c ---- */

/* This task is told last, when it is a holder: the others have heard while it works. */
void coordinator_tell_holders(struct job *job, const struct job_message *message);
/* Who has asked to leave may: all of them, or those whom the attempt that has ended covered. */
void coordinator_let_leave(struct job *job, bool only_covered);

/* ---- job_history.c ---- */

/* Which history runs, and what was lost before it. */
void coordinator_tell_run(struct job *job, uint32_t to);
/* The job cannot go on: all are told why, and this task fails. */
void coordinator_give_up(struct job *job, const char *text);
void coordinator_take_join(struct job *job, uint32_t from, const struct job_message *message);
void coordinator_take_restored(struct job *job, uint32_t from, const struct job_message *message);
/* Each tick while there is no history: asks who has not told; gives up when who is needed stays away longer than the time-out. */
void coordinator_ask_all(struct job *job, uint64_t now_ms);
void coordinator_give_up_late(struct job *job, uint64_t now_ms);

/* ---- job_gone.c ---- */

/* It leaves for good: that is on the disk before it hears so. */
void gone_take(struct job *job, uint32_t from, const struct job_message *message);
/* The job goes back to a checkpoint: who left with a later one has not. */
void gone_go_back(struct job *job, uint64_t id);
/* For the holders: the command of each that has left. RESOURCE_EXHAUSTED. */
status gone_list(const struct job *job, struct ledger *out);

/* ---- job_attempt.c ---- */

/* By steps or by the clock, as the options say. */
bool attempt_is_due(const struct job *job, uint64_t now_ms);
/* is_last: after this task was told to end. Nothing while one is under way. */
void attempt_begin(struct job *job, uint64_t now_ms, bool is_last);
/* Does what the cut says is to be done now. */
void attempt_apply(struct job *job, enum cut_message message);
/* holder: its place among the holders, not its task. */
void attempt_take_frozen(struct job *job, uint32_t holder, const struct job_message *message);
void attempt_take_refused(struct job *job, uint32_t holder, const struct job_message *message);

#endif
