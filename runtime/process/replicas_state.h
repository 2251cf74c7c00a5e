/* replicas_state.h: a task's place among its replicas, as replicas.c, replicas_copy.c (how a state travels) and replicas_serve.c (who gives
 * one) see it. Private to these. */
#ifndef TFC_RUNTIME_REPLICAS_STATE_H
#define TFC_RUNTIME_REPLICAS_STATE_H

#include <pthread.h>

#include "runtime/cluster/control.h"
#include "runtime/cluster/view.h"
#include "runtime/memory/variable.h"
#include "runtime/process/replicas.h"
#include "runtime/program/fault.h"
#include "runtime/program/monotonic.h"
#include "runtime/resource/meeting.h"
#include "runtime/step/commit.h"
#include "runtime/step/crew.h"
#include "runtime/step/task_state.h"

#define EVEN_MS 5   /* between looks whether the last round is applied here */
#define LOOK_MS 200 /* between looks whether the other side is still the same */
#define FREEZE_MS 1000

enum talk_kind {
  TALK_TELL = 1, /* to the registrar: what I have; may I go on? */
  TALK_GO,       /* from the registrar: yes, with this state, which came before if `is_copied` */
  TALK_ASK,      /* from the registrar: give me your state */
  TALK_GIVEN,    /* to the registrar: it came before this */
  TALK_NONE,     /* from the first worker: it does not train */
  TALK_GONE,     /* from the registrar: it had fewer steps than the others, who have left with what they did without it */
  TALK_WHAT,     /* from the registrar, to who has finished and tells no more: what do you have? */
  TALK_HAS,      /* to the registrar: this */
  TALK_CANNOT,   /* to whoever asked for a state: there is no memory for a copy of it now */
};
struct talk {
  uint32_t kind, is_copied;
  uint64_t request, step; /* step: whose transfers the receiver waits for */
  uint64_t view, round;
  uint32_t command, has_state;
};
struct answer {
  bool has_come;
  struct talk talk;
};

struct replicas {
  struct task *task;
  struct cluster *cluster;
  const struct program *program;
  const struct task_options *options;
  uint32_t *seats, count, self; /* tasks; self: the seat */
  bool trains;
  uint64_t rounds; /* that this task's command takes part in */
  struct view_state own;
  pthread_mutex_t lock; /* all below */
  pthread_cond_t changed;
  struct view view; /* of the registrar: seat 0 */
  uint64_t requests;
  struct answer answer;
  uint64_t cannot_ms; /* since when whoever is asked has no memory for its state; 0: it has */
  bool is_stopped, is_serving;
};

/* Under the lock. */
static inline void replicas_wait(struct replicas *r, uint64_t ms) { monotonic_wait(&r->changed, &r->lock, monotonic_ms() + ms); }

static inline bool is_registrar(const struct replicas *r) { return r->self == 0; }
static inline status replicas_stopped(void) { return fail(CANCELLED, "the task was stopped"); }
/* False: it is not there. */
static inline bool replicas_say(struct replicas *r, uint32_t seat, const struct talk *talk) {
  return cluster_send_control(r->cluster, r->seats[seat], CONTROL_VIEW, talk, sizeof *talk);
}

/* What this task has of a driver's steps. */
struct ledger_row replicas_row(struct task *task, uint32_t driver);
/* A copy of each variable's value; NULL: it has none. RESOURCE_EXHAUSTED: some may be there. */
status replicas_take_values(struct task *task, struct tensor **out);
/* Gives up the references. */
status replicas_send_values(struct replicas *r, uint32_t seat, uint64_t step, struct tensor **values);
/* Asks, and has the state then that the answer names. *has_come is false when the other side is not the same any more, or has no memory
 * for its state now: it has to be asked again. UNAVAILABLE: it has none to give; CANCELLED: the task was stopped. */
status replicas_ask_for_state(struct replicas *r, uint32_t seat, struct talk *talk, bool *has_come);
/* On threads of the crew: the registrar answers those that wait (under the lock); who is asked gives its state. */
void replicas_start_serving(struct replicas *r);
void replicas_start_giving(struct replicas *r, const struct talk *talk);

#endif
