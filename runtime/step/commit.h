/* commit.h: the gate that steps pass while they change state, and the ledger of those that have.
 *
 * A step is inside from its first change to its end, but not while it waits; its number is put into the ledger before
 * it leaves. So whoever has frozen the gate sees variables and ledger of one moment: no step is half done, but for
 * those whose row says `open`: they wait in the middle for something (a value that depends on what they changed, a
 * queue), or their driver was lost there.
 *
 * Entering costs two atomic additions while nobody freezes. Threads: any. Owner: the task. */
#ifndef TFC_RUNTIME_STEP_COMMIT_H
#define TFC_RUNTIME_STEP_COMMIT_H

#include "base/status.h"
#include "runtime/step/driver_state.h"
#include "runtime/step/ledger.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct record;
struct step;
struct task;

/* Which steps may go on while the gate is frozen. Called with the gate's lock held: looks at what it is given, and
 * calls nothing here. */
typedef bool commit_passes(void *self, uint32_t driver, uint32_t command, uint64_t serial);

/* Waits until no step is inside, at most wait_ms; from then on nobody enters. False: some step stayed too long, or
 * somebody else has frozen it: the gate is open, nothing was changed. */
bool commit_freeze(struct task *task, uint32_t wait_ms);
/* Between freeze and thaw: these steps may enter all the same (those that a cut of several tasks lacks). NULL: none any
 * more. When they are done is for the caller to find out, with commit_quiet. */
void commit_let_pass(struct task *task, commit_passes *passes, void *self);
/* Waits until nobody is inside, at most wait_ms. */
bool commit_quiet(struct task *task, uint32_t wait_ms);
void commit_thaw(struct task *task);

/* A copy of the ledger as it is now: of one moment with the variables only while frozen. RESOURCE_EXHAUSTED. */
status commit_ledger(struct task *task, struct ledger *out);
/* While frozen: variables have got other values, with these steps applied. Steps that are under way end with ABORTED
 * where they would change something next, and what is kept of calls of half-done steps is forgotten. `ledger` is
 * copied. RESOURCE_EXHAUSTED. */
status commit_restore(struct task *task, const struct ledger *ledger);
/* The driver has run all its phases; false: and was lost before it left. */
void commit_finish(struct task *task, uint32_t driver, bool finished);
/* A driver asks what of its steps is applied here, and in which history: the rows of its lanes, and whether the task is
 * initialised; from then on its steps of this lane count from there. False: the task is amid a restore; on_serve is told
 * when it no longer is. RESOURCE_EXHAUSTED. */
status commit_ask(struct task *task, uint32_t driver, uint32_t lane, struct ledger *out, uint64_t *history, bool *is_serving);
/* Whether it has, since this process began: its steps come here. */
bool commit_was_asked(struct task *task, uint32_t driver, uint32_t lane);
/* What is applied from now on is of this history (0: there are none). */
void commit_serve(struct task *task, uint64_t history);
/* Nobody is told what is applied here, until then. */
void commit_hush(struct task *task);
/* Told, on the thread of commit_serve, that it serves again. Before any step. */
void commit_on_serve(struct task *task, void (*on_serve)(void *self), void *self);
/* What a driver has of its own, for its successor and for checkpoints: copied; goes with a restore. RESOURCE_EXHAUSTED. */
status commit_keep_state(struct task *task, const struct driver_state *state);
/* Calls back for each that is kept, with the gate's lock held. */
void commit_each_state(struct task *task, void (*found)(void *self, const struct driver_state *state), void *self);
/* What this task has of its own is put back to before a step that is tried again: its draws and iterators go on from there,
 * rather than that the first try's are given again. Before any step. */
void commit_put_back(struct task *task, bool puts_back);
/* This task's own steps go on behind `last` of the command. RESOURCE_EXHAUSTED. */
status commit_follow(struct task *task, uint32_t command, uint64_t last);
/* The same, and its own parts of the steps behind that one run, though it seems to have done one: it has nothing of
 * what they made. */
status commit_prepare(struct task *task, uint32_t command, uint64_t last_serial);
/* What happens after each commit, on the step's thread, behind the gate; not after `init`. Before any step; NULL:
 * nothing. */
void commit_watch(struct task *task, void (*on_commit)(void *self), void *self);

/* The same step of another driver is applied with the one that calls, which is inside: one round of both.
 * RESOURCE_EXHAUSTED. */
status commit_other(struct task *task, uint32_t driver, uint32_t command, uint64_t serial);
/* A driver's steps go on behind `last`, whatever it did before, which it is told and need not ask: the state that has them was copied here.
 * RESOURCE_EXHAUSTED. */
status commit_place(struct task *task, uint32_t driver, uint32_t command, uint64_t last);
/* Whether the step is applied here. */
bool commit_has(struct task *task, uint32_t driver, uint32_t command, uint64_t serial);

/* The inside: for the files that run steps. */
struct commit {
  atomic_int inside;
  atomic_bool is_closed;
  atomic_uint era;      /* counts restores */
  pthread_mutex_t lock; /* all below */
  pthread_cond_t changed;
  bool is_frozen, is_stopped;
  commit_passes *passes;
  void *passes_self;
  struct ledger ledger;
  struct driver_states states;
  bool puts_back;
  struct record *records; /* one for each driver's lane that has changed something */
  bool has_run_init;      /* by this process: what its calls have made is there */
  struct asked {
    uint32_t driver, lane, era;
  } * asked; /* drivers, each for a lane, that have asked since the restore of that era */
  uint32_t asked_count;
  bool is_silent;   /* amid a restore */
  uint64_t history; /* when it is not */
  void (*on_serve)(void *self);
  void *on_serve_self;
  void (*on_commit)(void *self);
  void *on_commit_self;
};
void commit_init(struct commit *commit);
void commit_deinit(struct commit *commit);
/* A step begins: whether it counts here, and the record of its changes. Its lane's step before has ended. INTERNAL:
 * steps before it are missing; ABORTED: it is of a command that is over. */
status commit_judge(struct commit *commit, struct step *step);
/* It has changed something, and now waits. */
void commit_note_open(struct commit *commit, const struct step *step);
/* All it changes is changed; it is inside. RESOURCE_EXHAUSTED. */
status commit_step(struct commit *commit, const struct step *step);
/* Waits while it is frozen for this step. ABORTED: there was a restore since `era`, or the task is stopping; then it is
 * not inside. */
status commit_enter(struct commit *commit, uint32_t driver, uint32_t command, uint64_t serial, uint32_t era);
void commit_leave(struct commit *commit);
/* Ends waiting, now and later, with ABORTED: the task stops. */
void commit_stop(struct commit *commit);

#endif
