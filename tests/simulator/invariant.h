/* invariant.h: what the protocol promises at every moment (notes of the protocol, I1 .. I12, and I14), asserted while a run goes on. I13,
 * that all come to an end, is the run's own.
 *
 * Two ways to see it. After every event the tasks are looked at: their ledgers, variables, rounds, disks. And some functions of the
 * simulated library are led here by the linker (simulated.cmake), where a thing passes that leaves no trace in any state: a message that is
 * taken, a commit, a step that is reported as done. The failure's text begins with the invariant's name.
 */
#ifndef TFC_TESTS_SIMULATOR_INVARIANT_H
#define TFC_TESTS_SIMULATOR_INVARIANT_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/simulator/run.h"

struct task;
struct ledger;
struct ledger_row;
struct step;

/* Before the first task starts. */
void invariants_begin(struct run *run);
/* After every event. */
void invariants_look(void);

/* Replicas: a checkpoint is there with which their command is at its end. */
bool invariants_have_ended(void);

/* ---- for the files of invariants ---- */

/* The run that is played. */
struct run *invariants_run(void);
/* The running task of this number, or NULL: it is not there, or has not made its state yet, or has given it back. */
struct task *invariants_task(uint32_t number);
const char *invariants_name(uint32_t number);
/* Whether others keep count of steps there, because it has variables. */
bool invariants_holds(uint32_t number);
/* NULL: there is none. */
const struct ledger_row *invariants_row(const struct ledger *ledger, uint32_t driver, uint32_t lane);

/* invariant_step.c: I1 .. I4, I7; invariant_saved.c: I5, I6, I11; invariant_round.c: I8, I10; invariant_replica.c: I9,
 * I12; invariant_token.c: I14. */
void invariants_look_at_steps(void);
void invariants_look_at_saved(void);
void invariants_look_at_rounds(void);
void invariants_look_at_replicas(void);
/* A replica's own step is about to be committed; was. */
void invariants_replica_commits(const struct task *task, const struct step *step);
void invariants_replica_committed(const struct task *task, const struct step *step);
/* Its values are about to be saved. */
void invariants_replica_saves(const struct task *task);

#endif
