/* round.h: synchronous rounds as one task sees them: who takes part, who has given, what is dropped, when a round is decided and over.
 *
 * A round is met by the steps of several drivers, one seat each. A step *enters* (it may read what the round changes), *gives* (its
 * contribution is whole here), and, once the round is *decided*, one of them *leads* the updates until it *ends* them. A contribution is
 * a seat and a step's id, which tells incarnations and repetitions apart: what a step has given that was given up before the decision does
 * not count, what was decided is not taken again.
 *
 * Where several tasks hold what a round changes (several ps), one of them, holder 0, decides for all: it is told of every contribution, and
 * names those that are taken. A contribution that its coordinator knows of can be dropped by him alone (as in two-phase commit): nobody
 * applies what another has dropped. He alone decides who is a member, too: another holder that misses one says so, and waits for one
 * that is none until it hears that it is.
 *
 * Where steps train several times the round is decided with what they bring for the first means; what comes for later ones is made of
 * these. Whoever is lost in between makes it anew, from what the variables held before: so of several holders none leads before all have
 * all.
 *
 *   OPEN      contributions come and may be dropped
 *   DECIDED   the seats' `taken` are fixed; whoever has all that the updates need may lead
 *   LED       one step makes the updates; whoever comes waits
 *
 * Pure: no I/O, no clock, no threads; times are handed in, messages to other holders are left in `out`. Owner and lock: the caller's.
 */
#ifndef TFC_RUNTIME_RESOURCE_ROUND_H
#define TFC_RUNTIME_RESOURCE_ROUND_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"

enum round_phase { ROUND_OPEN, ROUND_DECIDED, ROUND_LED };

/* What holders say to each other; the coordinator is holder 0. */
enum round_word {
  ROUND_GIVEN = 1, /* to holder 0: the seat's contribution by this step is whole here */
  ROUND_DEAD,      /* to holder 0: that step was given up; may I drop it? */
  ROUND_DROP,      /* to a holder: forget what the seat has given by steps that were given up */
  ROUND_DROPPED,   /* to holder 0: done; what I said of the seat before does not count */
  ROUND_JOIN,      /* to a holder: the seat takes part from now on */
  ROUND_TAKE,      /* to a holder: the round will take this step of the seat */
  ROUND_APPLY,     /* to a holder: those named are all: the round is decided */
  ROUND_MISSES,    /* to holder 0, elastic: I do not reach the seat */
  ROUND_ASKS,      /* to holder 0, elastic: a step of the seat is here, which is no member */
  ROUND_BROUGHT,   /* to holder 0: all that my updates need is here */
  ROUND_WHOLE,     /* to a holder: it is everywhere: lead */
};
struct round_message {
  uint32_t word, holder, seat; /* holder: to whom, or from whom */
  uint64_t step;
  uint64_t number; /* rounds that the sender had decided */
};

struct round_seat {
  bool is_member; /* the round needs it */
  bool was_up, has_finished;
  bool is_missing;
  bool is_told; /* elastic: holder 0 has heard that it is missing here */
  bool is_dead; /* what it has given is of a step that was given up: the coordinator decides what becomes of it */
  uint64_t missing_since_ms;
  uint64_t entered; /* the step that reads in this round; 0: none */
  uint64_t given;   /* the step whose contribution is whole here, and not decided upon */
  uint64_t named;   /* TAKE, until APPLY */
  uint64_t taken;   /* in the round that was decided last */
  bool is_gone;     /* that step was given up since */
  uint64_t ready;   /* the step that has read all it reads here, and has all that the updates need */
  uint64_t held;    /* a repetition that waits until the round it was taken in is over */
  uint64_t asks;    /* elastic: the step, of which holder 0 has heard, that is here while the seat is no member */
  uint64_t echo;    /* a repetition of what is over: it changes nothing any more */
};

struct round_options {
  uint32_t seats, holders, holder; /* holder: which one this task is */
  bool has_leader;                 /* updates follow the decision; else the round is over with it */
  bool has_turns;                  /* steps bring more than what they have given when the round is decided */
  bool is_elastic;                 /* a lost member leaves */
  bool is_closed;                  /* who has left does not enter again by itself: round_join lets it in */
  uint64_t timeout_ms;
};
struct round {
  struct round_options options;
  enum round_phase phase;
  uint64_t number; /* rounds decided so far */
  uint64_t leader; /* LED: the step */
  struct round_seat *seats;
  uint64_t *have;  /* coordinator: [holder][seat] the contribution that it has told of */
  uint8_t *awaits; /* coordinator: [holder][seat] DROPs that were not answered */
  bool *brought;   /* [holder] of the round that was decided last; of others than itself only the coordinator knows */
  bool is_whole;   /* all have */
  bool is_torn;    /* holders disagree: a fault of ours */
  VEC(struct round_message) out;
};

/* False: no memory. */
bool round_init(struct round *round, const struct round_options *options);
void round_deinit(struct round *round);

enum round_answer {
  ROUND_GO,
  ROUND_HOLD,  /* ask again after the next change */
  ROUND_STALE, /* its round went on without it: the step has to be done again */
  ROUND_LEADS, /* of round_lead: go, and make the updates */
};

/* A step of the seat wants to read. is_committed: the task has all of it from an earlier coming, so it only repeats. STALE: the round is
 * closed to it. */
enum round_answer round_enter(struct round *round, uint32_t seat, uint64_t step, bool is_committed);
/* Its contribution is whole here. GO: it is in the round that was decided (asked again by round_given). */
enum round_answer round_give(struct round *round, uint32_t seat, uint64_t step);
enum round_answer round_given(const struct round *round, uint32_t seat, uint64_t step);
/* It has read all that it reads, and has all that the updates need: LEADS for one of a round when the steps of all have, or were given up;
 * GO for the others. The leader cannot after all, and has changed nothing: round_abdicate, another one will. */
enum round_answer round_lead(struct round *round, uint32_t seat, uint64_t step);
void round_abdicate(struct round *round, uint32_t seat, uint64_t step);
/* The leader has made its updates: the round is over; others hold until it is. */
enum round_answer round_end(struct round *round, uint32_t seat, uint64_t step);
/* The step is given up. False: it led, and what it had to update is half done. */
bool round_withdraw(struct round *round, uint32_t seat, uint64_t step);

/* Whether a value that the step gave here may still be needed. */
bool round_keeps(const struct round *round, uint32_t seat, uint64_t step);
/* Whether the step repeats one that was taken: it is given the round's result, what it brings is dropped. */
bool round_repeats(const struct round *round, uint32_t seat, uint64_t step);

/* What is known of the tasks in the seats: reached, missing, with steps to come again, without. */
void round_up(struct round *round, uint32_t seat);
void round_begin(struct round *round, uint32_t seat);
void round_down(struct round *round, uint32_t seat, uint64_t since_ms);
void round_finish(struct round *round, uint32_t seat);
/* No round is decided without it any more. */
void round_join(struct round *round, uint32_t seat);
/* Elastic: the others go on without it until it enters again, or round_join. */
void round_leave(struct round *round, uint32_t seat);
void round_hear(struct round *round, const struct round_message *message);

#define ROUND_NOBODY UINT32_MAX
/* A seat that is waited for: that has finished its steps, or was missing for longer than the time-out. */
uint32_t round_finished_without(const struct round *round);
uint32_t round_late(const struct round *round, uint64_t now_ms);

#endif
