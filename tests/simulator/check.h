/* check.h: what must be true when a run has ended. */
#ifndef TFC_TESTS_SIMULATOR_CHECK_H
#define TFC_TESTS_SIMULATOR_CHECK_H

#include <stdbool.h>

struct run;
struct run_task;

/* Of counting jobs, after every turn: on no ps a step has come twice, or before the one before it; who has ended well has left no step out.
 */
void watch_counts(struct run *run);
/* Every task ended as it should; nothing is said of values. */
void check_exit_codes(struct run *run);
/* Of counting jobs: every task ended with 0 (a twin, or its first, with 65; one that was killed when all was done may find nobody, 69),
 * each step of each worker came to each ps once, with what was fed, and what was fetched is right. */
void check_counts(struct run *run);
/* The same, but ps may end with 74: their disks were full. */
void check_counts_full(struct run *run);
/* A worker is gone for good: the others end well, its steps came at most once. */
void check_counts_lost(struct run *run);
/* A ps has lost its disk: all begin again and end well, or as where state is gone for good. */
void check_counts_wiped(struct run *run);
/* State is gone for good: everybody ends with 0 or 69 soon after the last time-out, no step came twice. */
void check_given_up(struct run *run);
/* Of models: every task ended with 0, and every variable is what it is when nothing goes wrong; replicas are equal bit by bit. */
void check_values(struct run *run);
/* Those that ended with 0 are equal bit by bit, but for one that had fewer steps, whatever members the rounds had. */
void check_replicas(struct run *run);
/* Of rounds: the one that has fewer steps ends with 0, the others with 65. */
void check_fewer(struct run *run);
/* For scenarios whose tasks are killed: `is_done` of who has finished, and the check that lets it alone end with 69. */
bool is_finished(struct run *run, const struct run_task *task);
void check_values_done(struct run *run);

#endif
