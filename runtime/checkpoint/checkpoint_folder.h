/* checkpoint_folder.h: a folder of checkpoints with TensorFlow's `checkpoint` state file: which are there, the newest,
 * and how many are kept.
 *
 * The state file names prefixes of any form, relative to the folder or absolute; those that are written here are called
 * `model.ckpt-N`. Only these are ever deleted. One process uses a folder at a time. One thread.
 */
#ifndef TFC_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H
#define TFC_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H

#include "base/status.h"
#include "base/vec.h"
#include <stdbool.h>
#include <stdint.h>

#define CHECKPOINT_PATH_MAX 4096
#define CHECKPOINT_NAME_MAX 512

struct checkpoint_folder {
  char path[CHECKPOINT_PATH_MAX];
  int64_t keep;      /* so many are kept */
  int lock;          /* the folder, opened and locked; -1: not */
  VEC(char *) names; /* as the state file has them, the oldest first */
  bool has_latest;   /* the last of them is the newest complete one */
};

/* Makes the folder where it is missing, and sees that it can be written: DATA_LOSS if not. FAILED_PRECONDITION: another
 * process uses it. Removes what a killed process was amid writing. Half-made after a failure: close it. */
status checkpoint_folder_open(struct checkpoint_folder *folder, const char *path, int64_t keep);
void checkpoint_folder_close(struct checkpoint_folder *folder);

/* The prefix of the newest; false: there is none. */
bool checkpoint_folder_latest(const struct checkpoint_folder *folder, char *out, size_t size);
/* The prefix behind a name of the state file. */
void checkpoint_folder_prefix(const struct checkpoint_folder *folder, const char *name, char *out, size_t size);
/* A name for the checkpoint of this number that no listed one has; files of it that nobody lists are removed. */
status checkpoint_folder_begin(struct checkpoint_folder *folder, int64_t number, char *name, size_t size);
/* Its files are complete: it is the newest now. Writes the state file, then deletes those that are too many. DATA_LOSS:
 * it could not be written, and says what it said before; the name stays taken, and is written with the next. */
status checkpoint_folder_add(struct checkpoint_folder *folder, const char *name);
/* Deletes it, and says in the state file that it is gone: it was never complete, or belongs to a history that is over.
 */
status checkpoint_folder_remove(struct checkpoint_folder *folder, const char *name);

/* The newest that the state file of a folder names, without using the folder; NOT_FOUND: there is none. */
status checkpoint_folder_peek(const char *path, char *out, size_t size);

#endif
