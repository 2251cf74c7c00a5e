/* keeper.h: writes snapshots of a task into its folder, on a thread of its own, one at a time.
 *
 * Who says when, and what the files are called, is saver.h for a task alone, job.h for several. Threads:
 * any. Owner: the task's main.
 */
#ifndef TFC_RUNTIME_CHECKPOINT_KEEPER_H
#define TFC_RUNTIME_CHECKPOINT_KEEPER_H

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_restore.h"

struct keeper;

/* A snapshot is complete on the disk (code OK), or could not be written; on the keeper's thread. */
typedef void keeper_done(void *self, const char *name, const struct note_head *head, status code, const char *text);

/* folder: of this task alone. DATA_LOSS: it cannot be written; others as checkpoint_folder_open. `done` is called
 * without a lock held. */
status keeper_create(struct task *task, const char *folder, int64_t keep, keeper_done *done, void *self, struct keeper **out);
/* Waits for what is being written. Accepts NULL. */
void keeper_destroy(struct keeper *keeper);

/* Prepares memory for the next snapshot, soon. */
void keeper_warm(struct keeper *keeper);
bool keeper_is_busy(struct keeper *keeper);
/* Waits until it is not, at most wait_ms; whether it is idle. */
bool keeper_wait_idle(struct keeper *keeper, uint32_t wait_ms);
/* The variables as they are now are to be written as checkpoint `number`; no step may be amid its updates, and the keeper must be idle.
 * Returns at once with the name of the files; `done` says the rest. */
status keeper_take(struct keeper *keeper, const struct note_head *head, int64_t number, char name[CHECKPOINT_NAME_MAX]);
/* The files of this name are complete, everywhere: the state file names them as the newest, the oldest go
 * when they are too many. */
status keeper_complete(struct keeper *keeper, const char *name);
/* They will never be, or belong to a history that is over. */
status keeper_discard(struct keeper *keeper, const char *name);

/* The prefix of the newest; false: there is none. */
bool keeper_latest(struct keeper *keeper, char *prefix, size_t size);
const char *keeper_folder(const struct keeper *keeper);

/* What a checkpoint of the task is called now: the variable global_step says it; -1: there is none. */
int64_t keeper_number(struct task *task);

#endif
