/* history.h: what a job goes back to when the state of some of its tasks is lost: decided by the coordinator.
 *
 * A *history* is what follows one restore, or one start from nothing: a random number that all tasks know. A *holder* is a task with
 * variables of the job. A holder that comes without a history has lost its state (or never had any): then all holders, those that live too,
 * go back to the newest checkpoint that all of them have, and a new history begins; else a round, or a step that reads one ps and writes
 * another, would be computed from states that never were together.
 *
 * No I/O, no clock, no threads. Owner: who asks.
 */
#ifndef TFC_RUNTIME_CLUSTER_HISTORY_H
#define TFC_RUNTIME_CLUSTER_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#define HISTORY_FILES_MAX 32

/* What the coordinator knows of a holder. */
struct history_holder {
  bool is_here;     /* it has told the rest, in its present incarnation */
  bool has_files;   /* the folder is known to it, and `files` are those in it */
  uint64_t history; /* which it is in; 0: none, its state is empty */
  uint32_t file_count;
  uint64_t files[HISTORY_FILES_MAX]; /* ids of its complete, synced files */
};

struct history_view {
  const struct history_holder *holders;
  uint32_t holder_count;
  bool has_left;      /* some task has done its steps, and does not do them again */
  uint64_t others;    /* a history that some task without variables is in; 0: none has told of one */
  bool has_folder;    /* --checkpoint-dir is known */
  bool has_phases;    /* some task has: else, as the chief shows, clients of TensorFlow drive the job, who restore by themselves */
  bool has_chief;     /* it has told */
  bool is_settled;    /* no task can still come and say that there is a folder (the chief has told) */
  bool is_replicated; /* every task of the job has all variables: the state is lost only with the last of them */
  bool all_have_told; /* all tasks of a replicated job */
};

enum history_verdict {
  HISTORY_WAIT,    /* somebody has to tell first */
  HISTORY_KEEP,    /* nobody has lost anything: all go on in `history` */
  HISTORY_RESTORE, /* all holders: file `id`, in a new history */
  HISTORY_BEGIN,   /* the first start: from nothing, or from what --restore names */
  HISTORY_AGAIN,   /* state was lost, and there is no complete checkpoint yet: from the start, which is to be said */
  HISTORY_LOST,    /* state was lost, and there is no folder, or what is lost of a task that has left: the job cannot go on */
};
struct history_decision {
  enum history_verdict verdict;
  uint64_t id, history;
};
struct history_decision history_decide(const struct history_view *view);

/* The newest id that every holder has a file of; 0: there is none. Later ids are larger. */
uint64_t history_newest_common(const struct history_holder *holders, uint32_t count);

/* Ids of checkpoints: larger than all before, never the same twice, also after one was given up or a restart. */
uint64_t history_next_id(uint64_t newest, uint32_t random);

#endif
