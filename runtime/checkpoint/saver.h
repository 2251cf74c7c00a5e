/* saver.h: checkpoints of a task that is alone: restores the newest at its start, saves every so many steps or seconds,
 * and at the end.
 *
 * A save costs the step that it comes behind only marks on the variables; it is written while steps go on. Threads:
 * any, but for create, finish and destroy. Owner: the task's main.
 */
#ifndef TFC_RUNTIME_CHECKPOINT_SAVER_H
#define TFC_RUNTIME_CHECKPOINT_SAVER_H

#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program;
struct task;
struct saver;

struct saver_config {
  const char *folder;  /* --checkpoint-dir; NULL: nothing is saved */
  int64_t save_steps;  /* 0: not by steps */
  double save_seconds; /* 0: not by time */
  int64_t keep;        /* at least 1 */
  const char *restore; /* --restore: where to start from when the folder has nothing yet; NULL */
};
#define SAVER_KEEP 5 /* checkpoints, where nobody says --keep: as TensorFlow's Saver */

/* Where this task's files are: in the folder itself, or, where several tasks of the job hold variables, in a folder of
 * its own in it (`ps_1`). */
#define CHECKPOINT_FOLDER_MAX 3072
status saver_folder(const struct program *program, const char *folder, char *out, size_t size);

/* The task is kept by reference; nothing of the config is. DATA_LOSS: the folder cannot be written, a checkpoint is
 * damaged; UNIMPLEMENTED for a task without variables: its checkpoint would be empty; NOT_FOUND: --restore names none.
 */
status saver_create(struct task *task, const struct saver_config *config, struct saver **out);
/* Before the task, when it is closed: waits for what is being written. Accepts NULL. Does not save. */
void saver_destroy(struct saver *saver);
/* Saves when steps have been run since the last checkpoint, and waits for it. DATA_LOSS: that failed, or one before
 * did. Accepts NULL. */
status saver_finish(struct saver *saver);

#endif
