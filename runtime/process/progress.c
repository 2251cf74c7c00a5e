/* progress.c: a pipe that is full loses a line: the next says more. */
#include "runtime/process/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SAY_S 0.1

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_open(struct progress *progress) {
  const char *text = getenv(PROGRESS_VARIABLE);
  progress->fd = text && *text ? atoi(text) : -1;
}

void progress_begin(struct progress *progress, uint32_t phase, uint32_t phases, const char *entry, int64_t steps) {
  progress->phase = phase;
  progress->phases = phases;
  progress->step = 0;
  progress->steps = steps;
  progress->entry = entry;
  progress->began = progress->fd < 0 ? 0 : now_s();
  progress->said = 0;
}

void progress_step(struct progress *progress, int64_t step, int64_t steps, const char *name, double value) {
  atomic_store_explicit(&progress->step, step, memory_order_relaxed);
  if (progress->fd < 0)
    return;
  double now = now_s();
  if (step != steps && now - progress->said < SAY_S)
    return;
  progress->said = now;
  char line[512];
  int size = snprintf(line, sizeof line, "%u %u %" PRId64 " %" PRId64 " %.3f %s %s %.6g\n", progress->phase, progress->phases, step, steps,
                      now - progress->began, progress->entry, name ? name : "-", name ? value : 0.0);
  if (size > 0 && (size_t)size < sizeof line && write(progress->fd, line, (size_t)size) < 0)
    return; /* full, or nobody listens any more */
}
