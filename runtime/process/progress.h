/* progress.h: how far a phase is, for `tfc run`, which shows it on a terminal: lines on the pipe whose number is in the environment
 * variable TFC_PROGRESS. Without it nothing is written. A line is
 *
 *   PHASE PHASES STEP STEPS SECONDS ENTRY NAME VALUE
 *
 * numbers from 1, the seconds since the phase began, and the value of a fetch worth watching, or "- 0". One thread; phase, entry and
 * step may be looked at by others.
 */
#ifndef TFC_RUNTIME_PROCESS_PROGRESS_H
#define TFC_RUNTIME_PROCESS_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_VARIABLE "TFC_PROGRESS"

struct progress {
  int fd;                         /* -1: nobody listens */
  _Atomic uint32_t phase, phases; /* phase: 0 before the first */
  _Atomic(const char *) entry;
  _Atomic int64_t step, steps;
  double began, said; /* seconds */
};

void progress_open(struct progress *progress);
void progress_begin(struct progress *progress, uint32_t phase, uint32_t phases, const char *entry, int64_t steps);
/* Says it at the first and the last step, and in between ten times a second; name: NULL where there is no value. */
void progress_step(struct progress *progress, int64_t step, int64_t steps, const char *name, double value);

#endif
