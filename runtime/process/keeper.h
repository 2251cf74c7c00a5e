/* keeper.h: keeps the variables of a task in a folder: restores the latest checkpoint at start, saves every so many steps
 * and at the end. Files are TensorBundles with TensorFlow's `checkpoint` state file beside them.
 *
 * Each task keeps the variables that live on it: a task that is alone, and the only task of a job, in the folder itself; one of
 * several in a folder of its own in it (`worker_1`). A variable's key is its name. What was restored is not initialised
 * again: the chief skips the entry `init`, and on other tasks `init` leaves restored variables as they are.
 */
#ifndef TFC_RUNTIME_PROCESS_KEEPER_H
#define TFC_RUNTIME_PROCESS_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"

struct task;
struct keeper;

#define KEEPER_CHECKPOINTS_MAX 5 /* older ones are deleted, as TensorFlow's Saver does */

/* Restores what is there; nothing there is no error. DATA_LOSS: the folder cannot be written.
 * save_steps: 0 saves at the end only. The task is kept by reference.
 * UNIMPLEMENTED for a task that has no variables: its checkpoint would be empty, the caller means another task. */
status keeper_create(struct task *task, const char *folder, int64_t save_steps, struct keeper **out);
/* Accepts NULL. Does not save. */
void keeper_destroy(struct keeper *keeper);
bool keeper_has_restored(const struct keeper *keeper);
/* Saves when steps have been run since the last checkpoint. DATA_LOSS: that failed, or one before did. */
status keeper_save(struct keeper *keeper);
/* One step that changes state has ended: saves when it is time. Any thread. A failure is said on stderr at once, and by keeper_save. */
void keeper_count_step(void *keeper);

#endif
