/* meeting_state.h: what a meeting and its hall are made of, for meeting.c (who holds, and what follows), meeting_value.c (what comes of the
 * contributions) and hall.c (the meetings of a task).
 *
 * Private to the folder. All of it is under the hall's lock, and every function here is called with it.
 */
#ifndef TFC_RUNTIME_RESOURCE_MEETING_STATE_H
#define TFC_RUNTIME_RESOURCE_MEETING_STATE_H

#include "runtime/resource/meeting.h"

#include <pthread.h>
#include "runtime/host/wait_list.h"
#include "runtime/resource/round.h"

/* A value of the round: what the seats have given, and what came of it. */
struct value_entry {
  uint32_t seat;
  uint64_t step;
  struct tensor *tensor;
};
struct value {
  struct value *next;
  struct meeting_value_spec spec;
  VEC(struct value_entry) entries;
  bool is_busy;    /* somebody computes */
  uint64_t *steps; /* per seat: whose contributions `result` is of; 0: none */
  bool is_known;
  struct tensor *result;
  status code; /* why there is none */
  char text[256];
};

enum hold_kind { HOLD_ENTER, HOLD_GIVE, HOLD_LEAD, HOLD_END, HOLD_VALUE };
struct hold {
  enum hold_kind kind;
  uint32_t seat;
  uint64_t step;
  bool is_committed;
  struct value *value;
  struct tensor *own; /* of a repetition: what it brings itself */
};

struct seat_numbers {
  uint64_t serial;
  uint32_t command;
};

struct meeting {
  struct resource resource; /* first */
  struct hall *hall;
  struct meeting *next;
  uint64_t key; /* of its name, in messages */
  uint32_t *seats, *holders;
  struct round round;
  struct seat_numbers *given, *taken; /* per seat */
  uint64_t numbered;                  /* the round that `taken` is of */
  struct wait_list waiting;
  struct value *values;
};

struct wire_message {
  uint64_t key, step, number;
  uint32_t word, holder, seat, reserved;
};
struct early {
  struct early *next;
  struct wire_message message;
};

struct hall {
  pthread_mutex_t lock;
  struct hall_peers peers;
  bool has_peers;
  struct meeting *meetings;
  struct early *early, **early_end;
  uint32_t early_count;
  bool has_finished;      /* some task, ever */
  VEC(uint32_t) finished; /* tasks that begin no more steps, also in meetings that come to be later */
  bool *admitted;         /* per task; NULL: all are */
  uint32_t task_count;
};

/* The value of this key, made where there is none yet; NULL: no memory. Owner: the meeting. */
struct value *meeting_value_find(struct meeting *m, const struct meeting_value_spec *spec);
/* What the seat has given in that step; NULL: nothing, or it was swept. Valid until the value changes. */
struct value_entry *meeting_value_entry(const struct value *v, uint32_t seat, uint64_t step);
/* Gives up what no round can take any more, and what the result is of already, when that is decided. */
void meeting_value_sweep(const struct meeting *m, struct value *v);
/* Whether the result is that of the round decided last, or of the open one as it stands. */
bool meeting_value_is_of(const struct meeting *m, const struct value *v, bool is_decided);
/* Whether all contributions are here that this result needs. */
bool meeting_value_is_complete(const struct meeting *m, const struct value *v, bool is_decided);
/* Gives the lock back while it computes. An error is the value's: those that wait for it get it. */
void meeting_value_compute(struct meeting *m, struct value *v, bool is_decided);
/* A value that can be computed now; NULL: none. */
struct value *meeting_value_ready(struct meeting *m, bool *is_decided);

/* Of a round without updates: a step that it has taken was given up before it has brought its share of the value. */
bool meeting_value_is_lost(const struct meeting *m, const struct value *v);
/* Notes what was given with the contributions that the last round has taken. */
void meeting_note_numbers(struct meeting *m);
/* The last round is of no use to anybody. */
void meeting_undo(struct meeting *m);
/* Everything that follows from a change; appends the waits that are over. May give the lock back for a time, to compute. */
void meeting_follow_up(struct meeting *m, struct wait_entry **over);
/* Ends all waits with an error; the caller finishes them. */
struct wait_entry *meeting_fail_all(struct meeting *m, status code, const char *text);
/* To the end of the list. */
void meeting_append_over(struct wait_entry **over, struct wait_entry *more);
/* Looks who is missing; appends the waits that are over. */
void meeting_look(struct meeting *m, struct wait_entry **over);
/* What another task has said of the round. */
void meeting_hear(struct meeting *m, const struct wire_message *w);

#endif
