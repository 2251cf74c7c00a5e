/* checkpoint_restore.h: variables get the values of a checkpoint: of this task's own, or of any that TensorFlow or
 * another build wrote, whose partitioning and number of ps may be others.
 */
#ifndef TFC_RUNTIME_CHECKPOINT_CHECKPOINT_RESTORE_H
#define TFC_RUNTIME_CHECKPOINT_CHECKPOINT_RESTORE_H

#include "base/arena.h"
#include "base/checkpoint.h"
#include "runtime/checkpoint/task_note.h"

struct ledger;
struct task;

#define RESTORE_PREFIXES_MAX 256

/* Where values are: a prefix, or one for each task that held some. */
struct restore_source {
  char *prefixes[RESTORE_PREFIXES_MAX]; /* in the arena */
  uint32_t count;
};
/* path: the prefix of a checkpoint; a folder with a `checkpoint` state file, or with one in each of several folders; a
 * SavedModel's folder, or its variables'. NOT_FOUND: nothing of that is there. */
status restore_source_find(const char *path, struct arena *arena, struct restore_source *out);

struct restored {
  struct note_head head;    /* of the first prefix; id 0 without a note */
  int64_t number;           /* global_step, or the number at the end of the prefix; 0: neither */
  uint32_t values, missing; /* variables that got one; that are not in it */
  char names[512];          /* of the first that are missing */
};
enum restore_kind {
  RESTORE_VALUES, /* of another job: variables only */
  RESTORE_START,  /* of this job, in a new process: what the note says, too; `init` is still to be run here, for what no checkpoint holds */
  RESTORE_BACK,   /* of this job, in a process that has gone on: what came since is as if it had never been */
};
/* All variables that the source has get its values, and `init` leaves them alone then; while no step is amid its updates.
 * INVALID_ARGUMENT: dtype or shape is another; DATA_LOSS: damaged. Then some variables may have got their values. */
status restore_task(struct task *task, const struct restore_source *source, enum restore_kind kind, struct restored *out);
/* All is as it was when the task was started. */
status restore_nothing(struct task *task);

/* What the note of a prefix says; steps: which each driver had done, none where nothing is said of them; or NULL. NOT_FOUND, DATA_LOSS:
 * there is no checkpoint that can be opened. */
status restore_peek(const char *prefix, struct note_head *out, struct ledger *steps);

#endif
