/* synced_file.c: pieces of 1 MiB, aligned as disks want it; the last one, which is not, goes through the cache. */
#include "base/synced_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)1 << 20)
#define PIECE_ALIGN 4096

struct synced_file {
  int fd;
  bool is_direct, was_tried; /* past the cache */
  char *path;
  char *piece;
  size_t used;
};

status synced_file_create(const char *path, struct synced_file **out) {
  struct synced_file *file = calloc(1, sizeof *file);
  if (!file)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  file->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file->fd < 0) {
    status code = errno == EACCES ? PERMISSION_DENIED : errno == ENOSPC ? DATA_LOSS : errno == ENOTDIR ? FAILED_PRECONDITION : NOT_FOUND;
    status result = fail(code, "'%s': %s", path, strerror(errno));
    synced_file_destroy(file);
    return result;
  }
  file->path = strdup(path);
  file->piece = aligned_alloc(PIECE_ALIGN, PIECE_BYTES);
  if (!file->path || !file->piece) {
    unlink(path);
    synced_file_destroy(file);
    return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  *out = file;
  return OK;
}

void synced_file_destroy(struct synced_file *file) {
  if (!file)
    return;
  if (file->fd >= 0) {
    close(file->fd);
    if (file->path)
      unlink(file->path);
  }
  free(file->path);
  free(file->piece);
  free(file);
}

static void set_direct(struct synced_file *file, bool is_direct) {
  int flags = fcntl(file->fd, F_GETFL);
  if (flags >= 0 && fcntl(file->fd, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0)
    file->is_direct = is_direct;
}

/* All of a piece; a file system that does not take it past the cache gets it through the cache. */
static status write_out(struct synced_file *file, const char *data, size_t size) {
  while (size > 0) {
    ssize_t done = write(file->fd, data, size);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0 && errno == EINVAL && file->is_direct) {
      set_direct(file, false);
      if (!file->is_direct)
        continue;
    }
    if (done <= 0)
      return fail(DATA_LOSS, "'%s' cannot be written: %s", file->path, strerror(done ? errno : ENOSPC));
    if (file->is_direct && done % PIECE_ALIGN)
      set_direct(file, false); /* what follows is not aligned any more */
    data += done;
    size -= (size_t)done;
  }
  return OK;
}

static status flush_piece(struct synced_file *file) {
  if (!file->was_tried && file->used == PIECE_BYTES)
    set_direct(file, true);
  file->was_tried = true;
  if (file->is_direct && file->used < PIECE_BYTES)
    set_direct(file, false);
  size_t used = file->used;
  file->used = 0;
  return write_out(file, file->piece, used);
}

status synced_file_put(struct synced_file *file, const void *data, size_t size) {
  const char *from = data;
  while (size > 0) {
    size_t room = PIECE_BYTES - file->used, part = size < room ? size : room;
    memcpy(file->piece + file->used, from, part);
    file->used += part;
    from += part;
    size -= part;
    if (file->used == PIECE_BYTES)
      TRY(flush_piece(file));
  }
  return OK;
}

status synced_file_close(struct synced_file *file) {
  status result = file->used ? flush_piece(file) : OK;
  if (result == OK && fsync(file->fd) != 0)
    result = fail(DATA_LOSS, "'%s' cannot be written: %s", file->path, strerror(errno));
  if (result == OK) {
    int closed = close(file->fd);
    file->fd = -1;
    if (closed != 0) {
      result = fail(DATA_LOSS, "'%s' cannot be written: %s", file->path, strerror(errno));
      unlink(file->path);
    }
  }
  synced_file_destroy(file);
  return result;
}

status synced_folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash == path ? strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
  int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); /* EINVAL: a file system without it */
  status result = good ? OK : fail(DATA_LOSS, "the folder of '%s' cannot be synced: %s", path, strerror(errno));
  if (fd >= 0)
    close(fd);
  free(folder);
  return result;
}
