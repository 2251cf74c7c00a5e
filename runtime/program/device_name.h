/* device_name.h: how TensorFlow calls a task's processor. */
#ifndef TFC_RUNTIME_PROGRAM_DEVICE_NAME_H
#define TFC_RUNTIME_PROGRAM_DEVICE_NAME_H

#include <stdio.h>
#include "runtime/program/program.h"

/* "/job:worker/replica:0/task:0/device:CPU:0" of task number `task` of the program. */
static inline void device_name(const struct program *program, uint32_t task, char *out, size_t size) {
  const struct program_task *at = program_task(program, task);
  snprintf(out, size, "/job:%s/replica:0/task:%u/device:CPU:0", program_text(program, at->job), at->index);
}

#endif
