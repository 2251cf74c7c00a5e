/* synced_file.h: a new file whose bytes are on the disk when it is closed.
 *
 * Large ones go past the page cache where the file system allows it: a copy of 128 MiB into the cache costs the cores
 * ten times as much as telling the disk where the bytes are. One thread. */
#ifndef TFC_BASE_SYNCED_FILE_H
#define TFC_BASE_SYNCED_FILE_H

#include "base/status.h"
#include <stddef.h>

struct synced_file;

/* NOT_FOUND, PERMISSION_DENIED: it cannot be made there; RESOURCE_EXHAUSTED. */
status synced_file_create(const char *path, struct synced_file **out);
/* DATA_LOSS names the file and why it cannot be written. */
status synced_file_put(struct synced_file *file, const void *data, size_t size);
/* Writes what is left, syncs. Destroys it in any case; on failure the file is removed. */
status synced_file_close(struct synced_file *file);
/* Gives up and removes the file. Accepts NULL. */
void synced_file_destroy(struct synced_file *file);

/* The names in the folder of `path` are on the disk, too: for after a rename. */
status synced_folder_of(const char *path);

#endif
