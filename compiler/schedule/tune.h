/* tune.h: candidates measured instead of guessed: `tfc build --tune SECONDS`, and what was found, kept in `--cache DIR`.
 *
 * A finding is one small text file for a nest of a kernel on a machine, named by the kernel's hash, the nest's number and what machine.h
 * knows of the machine; it holds the steps that were fastest, and for readers what each candidate took. It is written beside and
 * renamed. Only steps that are still among the candidates are taken from it: whatever else is there is measured again, or left to the
 * cost model. One thread. */
#ifndef TFC_COMPILER_SCHEDULE_TUNE_H
#define TFC_COMPILER_SCHEDULE_TUNE_H

#include "compiler/schedule/choose.h"

struct tuner {
  double seconds;                    /* left for measuring and compiling what is measured; 0: nothing is measured */
  const char *folder;                /* NULL: nothing is kept */
  uint32_t measured, known, guessed; /* nests with more than one candidate: measured now, found in the folder, left to the cost model */
};

/* Makes the folder where there is none. DATA_LOSS: it cannot be written. */
status tuner_open(struct tuner *t);
/* The fastest of the candidates for the nest, an index into all->items, where it is known or can be measured; false: the cost model is to
 * say. Candidates that the kernel's form refuses are left out. DATA_LOSS: the finding cannot be written. */
status tuner_pick(struct tuner *t, const struct nest *n, const struct candidates *all, bool *found, uint32_t *out);

#endif
