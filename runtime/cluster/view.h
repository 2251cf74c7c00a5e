/* view.h: whose state the replicas of an all-reduce go on with: a replica that is new, or was cut off, copies it before it takes part.
 *
 * The first worker is the registrar: rounds are decided there. Every other replica tells it, before its first step and after a step that
 * failed, which state it has: view and rounds applied. The registrar lets it go on, or has the state copied to it. A registrar that was
 * started again has none itself: it waits until all have told, whoever that is, and takes the state of the highest (view, round) before it
 * serves the others; where nobody has any, its own, as `init` or a checkpoint made it, is the job's.
 *
 * Pure: no I/O, no clock, no threads. Owner and lock: the caller's. */
#ifndef TFC_RUNTIME_CLUSTER_VIEW_H
#define TFC_RUNTIME_CLUSTER_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* What a replica has. */
struct view_state {
  bool has_state;       /* else it is as `init` made it */
  uint32_t command;     /* of its own steps, as in a ledger */
  uint64_t view, round; /* round: its own steps applied */
};
struct view_seat {
  bool has_told;          /* and waits for an answer */
  bool is_asked;          /* as it has finished, what it has */
  bool has_finished;      /* and has said what it has */
  bool has_left;          /* it had finished, and tells nothing any more */
  uint64_t session;       /* in which it has, or is asked */
  uint64_t request, step; /* its own number for it; whose transfers it waits for */
  struct view_state state;
};
/* Of the registrar. */
enum view_phase {
  VIEW_GATHERS, /* it has no state: waits until all have told */
  VIEW_FETCHES, /* it copies that of `source` */
  VIEW_SERVES,  /* it has the state, and gives it */
};
struct view {
  uint32_t seats, self, source;
  bool is_elastic; /* rounds go on without who has finished: others may have done more */
  enum view_phase phase;
  uint64_t number; /* of the view */
  struct view_seat *seat;
};

/* False: no memory. */
bool view_init(struct view *view, uint32_t seats, uint32_t self, bool is_elastic);
void view_deinit(struct view *view);

/* A replica has told; its earlier request, if any, is void. */
void view_tell(struct view *view, uint32_t seat, uint64_t session, uint64_t request, uint64_t step, const struct view_state *state);
/* A replica has done all its steps, and tells by itself no more. True: it is to be asked what it has, which it was not in this session. */
bool view_ask(struct view *view, uint32_t seat, uint64_t session);
/* It has answered in that session, and still gives its state; behind which there is none, but where rounds are elastic. */
void view_finish(struct view *view, uint32_t seat, uint64_t session, const struct view_state *state);
/* It had finished, and is not there any more: what it had is of no use. */
void view_leave(struct view *view, uint32_t seat);
/* What it told does not hold any more: it is gone. */
void view_forget(struct view *view, uint32_t seat);

#define VIEW_NOBODY UINT32_MAX
/* GATHERS: whom it waits for; VIEW_NOBODY: all have told, have finished or left; or somebody has who has all there is. */
uint32_t view_waits_for(const struct view *view);
/* Nobody is waited for: goes to FETCHES, with `source`, or to SERVES where nobody has a state. */
void view_settle(struct view *view);
/* Somebody has left who had a state, as all had finished then, and of those who are there nobody has `rounds` of them: it is lost. */
bool view_is_lost(const struct view *view, uint64_t rounds);
/* FETCHES: the source's state is here, of view `number`; or it could not be had: what the others have told holds, and they wait for an
 * answer. */
void view_fetched(struct view *view, bool is_here, uint64_t number);
/* SERVES: what the registrar has is older than what has been, and is nowhere any more: a new view begins with it. Its number. */
uint64_t view_begin(struct view *view);
/* SERVES: a replica that waits for an answer; VIEW_NOBODY: none. */
uint32_t view_next(const struct view *view);
/* Whether it needs the state, which is that of `round` of its steps; and it is answered. */
bool view_serve(struct view *view, uint32_t seat, uint64_t round);

#endif
