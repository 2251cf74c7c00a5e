/* check.h: what must be true when a run has ended. */
#ifndef TFC_TESTS_SIMULATOR_CHECK_H
#define TFC_TESTS_SIMULATOR_CHECK_H

struct run;

/* Of counting jobs: every task ended with 0, and each step of each worker came to each ps once, with what was fed. */
void check_counts(struct run *run);

#endif
