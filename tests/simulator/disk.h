/* disk.h: a machine's disk: what programs see of it at once, and what would be there after the power has gone.
 *
 * Bytes are safe when their file was synced, names when their folder was. What was not is there, or not, or in part, as chance has it.
 */
#ifndef TFC_TESTS_SIMULATOR_DISK_H
#define TFC_TESTS_SIMULATOR_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct content {
  bool is_folder;
  VEC(char) bytes; /* as programs see them */
  VEC(char) synced;
  uint32_t users;        /* open files */
  const void *locked_by; /* flock */
  uint64_t made_ns;
};

struct disk;
struct disk *disk_create(void);
/* As it was bought. */
void disk_wipe(struct disk *disk);
void disk_lose_power(struct disk *disk);
/* No more room than this; UINT64_MAX: enough. */
void disk_limit(struct disk *disk, uint64_t bytes);
/* From now on nothing can be written (EROFS), or writing and syncing fails (EIO); 0: it can. */
void disk_break(struct disk *disk, int error);

/* Paths are absolute, or as from the root; `.` and double slashes do not matter. 0 or an errno. */
int disk_open(struct disk *disk, const char *path, bool create, bool exclusive, struct content **out);
int disk_make_folder(struct disk *disk, const char *path);
int disk_remove(struct disk *disk, const char *path, bool is_folder);
int disk_rename(struct disk *disk, const char *from, const char *to);
/* NULL: there is none. */
struct content *disk_find(const struct disk *disk, const char *path);
/* The number'th name in the folder; NULL: no more. */
const char *disk_name(const struct disk *disk, const char *folder, uint32_t number);

int64_t disk_write(struct disk *disk, struct content *content, uint64_t at, const void *data, uint64_t size);
int disk_cut(struct content *content, uint64_t size);
int disk_sync(struct disk *disk, struct content *content);
/* What the run put there before it began. */
void disk_put(struct disk *disk, const char *path, const void *data, uint64_t size);
/* Whether a loss of power would leave it as programs see it. */
bool disk_is_safe(const struct disk *disk, const char *path);
/* All names, for the story. */
void disk_say(const struct disk *disk, const char *who);

#endif
