/* task_file.c: the program is found in the file by its magic number at 64-byte boundaries, where the linker puts it. */
#include "compiler/task_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/program/program_check.h"

static const struct program *find_program(const char *data, size_t size) {
  for (size_t at = 0; at + sizeof(struct program) <= size; at += 64) {
    const struct program *p = (const void *)(data + at);
    if (p->magic == PROGRAM_MAGIC && p->size >= sizeof *p && p->size <= size - at && program_check(p) == OK)
      return p;
  }
  return NULL;
}

status task_file_open(const char *path, struct task_file *out) {
  *out = (struct task_file){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat st;
  if (fd < 0)
    return fail(NOT_FOUND, "%s: %s", path, strerror(errno));
  bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
  void *data = is_file ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (data != MAP_FAILED) {
    out->data = data;
    out->size = (size_t)st.st_size;
    out->program = find_program(data, out->size);
  }
  if (out->program)
    return OK;
  task_file_close(out);
  return fail(INVALID_ARGUMENT, "%s: is no task built by this version of tfc", path);
}

void task_file_close(struct task_file *file) {
  if (file->data)
    munmap(file->data, file->size);
  *file = (struct task_file){0};
}
