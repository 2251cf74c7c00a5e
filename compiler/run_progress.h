/* run_progress.h: the line that `tfc run` shows on a terminal: phase, step, steps in a second, loss, time left. */
#ifndef TFC_COMPILER_RUN_PROGRESS_H
#define TFC_COMPILER_RUN_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a task is; all zero: it has not said anything. */
struct run_progress {
  unsigned phase, phases;
  int64_t step, steps;
  double seconds, value;
  char entry[128], name[128];
};

/* A line of runtime/process/progress.h; false: it is none, and nothing is changed. */
bool run_progress_read(const char *line, struct run_progress *out);
/* The text for the task that is farthest behind, at most `width` characters; "" when nobody has said anything. */
const char *run_progress_text(const struct run_progress *tasks, size_t count, size_t width, char *text, size_t size);

#endif
