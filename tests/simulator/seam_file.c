/* seam_file.c: files and folders of the machine's disk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simulator/disk.h"
#include "tests/simulator/fiber.h"
#include "tests/simulator/poll.h"
#include "tests/simulator/moment.h"
#include "tests/simulator/process.h"
#include "tests/simulator/seam.h"
#include "tests/simulator/world.h"

struct open_file {
  struct file file; /* first */
  struct content *content;
  uint64_t at;
  bool appends;
  char path[512];
};

/* What opendir gives; its file comes first, so that dirfd has a number. */
struct open_folder {
  struct open_file open;
  struct dirent entry;
  uint32_t next;
};

static struct disk *own_disk(void) { return process_self()->machine->disk; }

static int answer(int error) {
  if (error)
    errno = error;
  return error ? -1 : 0;
}
static ssize_t answer_size(int64_t size) {
  if (size < 0)
    errno = (int)-size;
  return size < 0 ? -1 : (ssize_t)size;
}

static void close_file(struct file *file, bool was_killed) {
  struct open_file *open = (struct open_file *)file;
  (void)was_killed;
  file->process->files[file->number] = NULL;
  if (open->content->locked_by == file)
    open->content->locked_by = NULL;
}
static const struct file_kind file_kind = {"file", close_file};

static struct open_file *find(int fd) { return (struct open_file *)process_file(fd, &file_kind); }

static int open_content(struct open_file *open, const char *path, struct content *content) {
  open->file.kind = &file_kind;
  open->content = content;
  snprintf(open->path, sizeof open->path, "%s", path);
  return process_add_file(process_self(), &open->file);
}

int simulated_open(const char *path, int flags, ...) {
  struct content *content;
  fiber_maybe_give_way();
  int error = disk_open(own_disk(), path, flags & O_CREAT, flags & O_EXCL, &content);
  if (error)
    return answer(error);
  bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (content->is_folder ? writes : (flags & O_DIRECTORY) != 0)
    return answer(content->is_folder ? EISDIR : ENOTDIR);
  if (writes && (flags & O_TRUNC))
    disk_cut(content, 0);
  struct open_file *open = calloc(1, sizeof *open);
  if (!open)
    abort();
  open->appends = (flags & O_APPEND) != 0;
  return open_content(open, path, content);
}

static const char *path_in(int folder, const char *path, char out[1024]) {
  struct open_file *open = folder == AT_FDCWD || path[0] == '/' ? NULL : find(folder);
  snprintf(out, 1024, "%s%s%s", open ? open->path : "", open ? "/" : "", path);
  return out;
}

int simulated_openat(int folder, const char *path, int flags, ...) {
  char whole[1024];
  return simulated_open(path_in(folder, path, whole), flags, 0600);
}

int simulated_close(int fd) {
  struct file *file = process_file(fd, NULL);
  if (!file)
    return -1;
  fiber_maybe_give_way();
  poll_forget(file);
  file->kind->close(file, false);
  return 0;
}

/* ---- bytes ---- */

static ssize_t read_at(const struct open_file *open, void *out, size_t size, uint64_t at) {
  if (open->content->is_folder)
    return answer(EISDIR);
  uint64_t left = open->content->bytes.count > at ? open->content->bytes.count - at : 0;
  size = size < left ? size : left;
  if (size)
    memcpy(out, open->content->bytes.items + at, size);
  return (ssize_t)size;
}

ssize_t simulated_read(int fd, void *out, size_t size) {
  struct counter *counter = (struct counter *)process_file(fd, &counter_kind);
  struct open_file *open = find(fd);
  fiber_maybe_give_way();
  if (counter) {
    if (counter->count == 0)
      return answer(EAGAIN);
    memcpy(out, &counter->count, sizeof counter->count);
    counter->count = 0;
    return sizeof counter->count;
  }
  if (!open)
    return simulated_recv(fd, out, size, 0);
  ssize_t got = read_at(open, out, size, open->at);
  open->at += got > 0 ? (uint64_t)got : 0;
  return got;
}

ssize_t simulated_pread(int fd, void *out, size_t size, off_t at) {
  struct open_file *open = find(fd);
  fiber_maybe_give_way();
  return open ? read_at(open, out, size, (uint64_t)at) : -1;
}

ssize_t simulated_write(int fd, const void *data, size_t size) {
  struct counter *counter = (struct counter *)process_file(fd, &counter_kind);
  struct open_file *open = find(fd);
  fiber_maybe_give_way();
  if (counter) {
    uint64_t count;
    memcpy(&count, data, sizeof count);
    counter_add(counter, count);
    return sizeof count;
  }
  if (!open)
    return simulated_send(fd, data, size, 0);
  uint64_t at = open->appends ? open->content->bytes.count : open->at;
  int64_t written = disk_write(own_disk(), open->content, at, data, size);
  open->at = at + (written > 0 ? (uint64_t)written : 0);
  return answer_size(written);
}

ssize_t simulated_pwrite(int fd, const void *data, size_t size, off_t at) {
  struct open_file *open = find(fd);
  fiber_maybe_give_way();
  return open ? answer_size(disk_write(own_disk(), open->content, (uint64_t)at, data, size)) : -1;
}

off_t simulated_lseek(int fd, off_t at, int from) {
  struct open_file *open = find(fd);
  if (!open)
    return -1;
  uint64_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? open->at : open->content->bytes.count;
  open->at = base + (uint64_t)at;
  return (off_t)open->at;
}

/* A disk takes its time to sync, and longer for more. */
int simulated_fsync(int fd) {
  struct open_file *open = find(fd);
  if (!open)
    return -1;
  simulated_usleep(100 + (useconds_t)random_below(world_random(), 10000));
  return answer(disk_sync(own_disk(), open->content));
}
int simulated_fdatasync(int fd) { return simulated_fsync(fd); }

int simulated_ftruncate(int fd, off_t size) {
  struct open_file *open = find(fd);
  return open ? answer(disk_cut(open->content, (uint64_t)size)) : -1;
}

int simulated_fcntl(int fd, int what, ...) {
  (void)what;
  return process_file(fd, NULL) ? 0 : -1;
}

/* ---- names ---- */

static int give_stat(const struct content *content, struct stat *out) {
  *out = (struct stat){.st_mode = content->is_folder ? S_IFDIR | 0755 : S_IFREG | 0644, .st_size = content->bytes.count, .st_nlink = 1};
  out->st_ino = (ino_t)(uintptr_t)content;
  out->st_mtim.tv_sec = (time_t)(content->made_ns / WORLD_S);
  return 0;
}
int simulated_fstat(int fd, struct stat *out) {
  struct open_file *open = find(fd);
  if (open)
    return give_stat(open->content, out);
  *out = (struct stat){.st_mode = S_IFSOCK};
  return process_file(fd, NULL) ? 0 : -1;
}
int simulated_stat(const char *path, struct stat *out) {
  const struct content *content = disk_find(own_disk(), path);
  return content ? give_stat(content, out) : answer(ENOENT);
}
int simulated_lstat(const char *path, struct stat *out) { return simulated_stat(path, out); }
int simulated_access(const char *path, int mode) {
  (void)mode;
  return answer(disk_find(own_disk(), path) ? 0 : ENOENT);
}

int simulated_flock(int fd, int how) {
  struct open_file *open = find(fd);
  if (!open)
    return -1;
  if (how & LOCK_UN) {
    open->content->locked_by = open->content->locked_by == &open->file ? NULL : open->content->locked_by;
    return 0;
  }
  while (open->content->locked_by && open->content->locked_by != &open->file) {
    if (how & LOCK_NB)
      return answer(EWOULDBLOCK);
    simulated_usleep(1000);
  }
  open->content->locked_by = &open->file;
  return 0;
}

int simulated_unlink(const char *path) {
  fiber_maybe_give_way();
  return answer(disk_remove(own_disk(), path, false));
}
int simulated_unlinkat(int folder, const char *path, int flags) {
  char whole[1024];
  return answer(disk_remove(own_disk(), path_in(folder, path, whole), (flags & AT_REMOVEDIR) != 0));
}
int simulated_rename(const char *from, const char *to) {
  fiber_maybe_give_way();
  int result = answer(disk_rename(own_disk(), from, to));
  moment_came(MOMENT_RENAME, process_number(process_self()));
  return result;
}
int simulated_mkdir(const char *path, mode_t mode) {
  (void)mode;
  return answer(disk_make_folder(own_disk(), path));
}
int simulated_rmdir(const char *path) { return answer(disk_remove(own_disk(), path, true)); }

char *simulated_realpath(const char *path, char *out) {
  if (!disk_find(own_disk(), path)) {
    errno = ENOENT;
    return NULL;
  }
  return out ? strcpy(out, path) : simulated_strdup(path);
}

/* ---- folders ---- */

DIR *simulated_opendir(const char *path) {
  struct content *content = disk_find(own_disk(), path);
  if (!content || !content->is_folder) {
    errno = content ? ENOTDIR : ENOENT;
    return NULL;
  }
  struct open_folder *folder = calloc(1, sizeof *folder);
  if (!folder)
    abort();
  return open_content(&folder->open, path, content) < 0 ? NULL : (DIR *)folder;
}

struct dirent *simulated_readdir(DIR *self) {
  struct open_folder *folder = (struct open_folder *)self;
  const char *name = disk_name(own_disk(), folder->open.path, folder->next++);
  if (!name)
    return NULL;
  snprintf(folder->entry.d_name, sizeof folder->entry.d_name, "%s", name);
  return &folder->entry;
}

int simulated_dirfd(DIR *self) { return ((struct open_folder *)self)->open.file.number; }
int simulated_closedir(DIR *self) { return simulated_close(simulated_dirfd(self)); }

/* ---- files as memory: a copy ---- */

void *simulated_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  struct open_file *open = fd >= 0 ? find(fd) : NULL;
  (void)at, (void)protection, (void)flags;
  char *copy = simulated_calloc(1, size ? size : 1);
  if (!copy)
    return MAP_FAILED;
  if (open)
    read_at(open, copy, size, (uint64_t)offset);
  return copy;
}
int simulated_munmap(void *at, size_t size) {
  (void)size;
  simulated_free(at);
  return 0;
}
int simulated_madvise(void *at, size_t size, int advice) {
  (void)at, (void)size, (void)advice;
  return 0;
}
