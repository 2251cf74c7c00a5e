/* task_file.h: the program inside of a built executable, for commands that look at a build. */
#ifndef TFC_COMPILER_TASK_FILE_H
#define TFC_COMPILER_TASK_FILE_H

#include <stddef.h>

#include "base/status.h"
#include "runtime/program/program.h"

struct task_file {
  void *data; /* the file, mapped */
  size_t size;
  const struct program *program; /* checked: its references may be followed */
};

/* NOT_FOUND: no such file; INVALID_ARGUMENT: no task of this version of tfc. */
status task_file_open(const char *path, struct task_file *out);
/* Accepts one that was not opened, all zero. */
void task_file_close(struct task_file *file);

#endif
