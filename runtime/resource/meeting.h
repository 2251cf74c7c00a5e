/* meeting.h: where the steps of several drivers meet in rounds (round.h): they hold here until their round is decided, get the values that
 * come of all contributions, and one of them makes the updates.
 *
 * A task's meetings are in its hall, under one lock. Nothing here waits for ever: who holds is told when a member is missing for longer
 * than the time-out, or has finished its steps. Values are summed in the order of the seats, ahead of the decision where all are there
 * already.
 *
 * Threads: any, but for what says otherwise. Owner: the hall's is the task, the meetings' its container.
 */
#ifndef TFC_RUNTIME_RESOURCE_MEETING_H
#define TFC_RUNTIME_RESOURCE_MEETING_H

#include "runtime/host/host.h"
#include "runtime/memory/container.h"
#include "runtime/resource/collective_value.h"

struct hall;
struct meeting;

/* What a hall needs of the other tasks. */
struct hall_peers {
  void *self;
  /* For how long the task has not been reached; 0: it is, or it is this one. *was_up: it has been before. */
  uint64_t (*missing_ms)(void *self, uint32_t task, bool *was_up);
  /* "/job:worker/task:1 at host:port (connection refused)" */
  void (*describe)(void *self, uint32_t task, char *out, size_t size);
  /* In order, each once; under the hall's lock. False: it cannot be. */
  bool (*send)(void *self, uint32_t task, const void *data, size_t size);
  uint64_t timeout_ms;
  bool is_elastic;
  uint32_t task; /* this one */
};

status hall_create(struct hall **out);
void hall_destroy(struct hall *hall); /* accepts NULL; after the container */
/* Before any step; copied. Without them nobody is ever missing, and there is one holder. */
void hall_set_peers(struct hall *hall, const struct hall_peers *peers);
/* NULL: nobody has set them. Valid as long as the hall. */
const struct hall_peers *hall_get_peers(const struct hall *hall);
/* Now and then (a few times a second): looks who is missing. */
void hall_tick(struct hall *hall);
/* Whether a task was missing for longer than the time-out; the text says so. */
bool hall_misses(struct hall *hall, uint32_t task, char *text, size_t size);
/* What `send` has sent to this task. */
void hall_hear(struct hall *hall, uint32_t from, const void *data, size_t size);
/* The task begins no more steps; begins again, in a new incarnation. */
void hall_finish(struct hall *hall, uint32_t task);
void hall_begin(struct hall *hall, uint32_t task);
/* Some task has come to its end, at some time. */
bool hall_somebody_finished(struct hall *hall);
/* A step has failed and is over here. has_changed: variables. False: it had made the updates of a round half. */
bool hall_step_over(struct hall *hall, uint32_t driver, uint64_t step, bool has_changed);
/* State was put back to an earlier moment, on all tasks: nothing that was given counts, who waits ends with ABORTED. */
void hall_reset(struct hall *hall);
/* From now on only steps of tasks that were admitted enter rounds, and have been members since; those of others end with ABORTED. Before
 * any step. */
void hall_require_admission(struct hall *hall, uint32_t tasks);
/* Until the task is lost. */
void hall_admit(struct hall *hall, uint32_t task);
bool hall_is_admitted(struct hall *hall, uint32_t task);
/* The task is given up, or there in a new incarnation: it has to be admitted again, and rounds that it holds a part of cannot go on. */
void hall_lose(struct hall *hall, uint32_t task);
/* The task takes part from the open round on, before its next step comes: no round is decided without it any more. */
void hall_join(struct hall *hall, uint32_t task);
/* Whether the task's step of the last round decided in each meeting is applied: `has` says so of a step. */
bool hall_is_applied(struct hall *hall, uint32_t task, bool (*has)(void *self, uint32_t command, uint64_t serial), void *self);
/* The highest number of a step of the task's that was taken in the last round of a meeting; 0: none was. */
uint64_t hall_last_serial(struct hall *hall, uint32_t task);
/* Nobody has any more what came of the last rounds: no step counts as taken in them. */
void hall_undo(struct hall *hall);
/* Calls back for each step that the last round decided in a meeting has taken, under the hall's lock: all of one round, or none of it. */
void hall_each_taken(struct hall *hall, void (*found)(void *self, uint32_t task, uint32_t command, uint64_t serial), void *self);
/* Whether some meeting has decided a round without the task: it has finished its steps, and lacks what came of it. */
bool hall_is_behind(struct hall *hall, uint32_t task);

struct meeting_spec {
  struct hall *hall;
  const uint32_t *seats, *holders; /* tasks; copied. holders[0] decides */
  uint32_t seat_count, holder_count;
  bool has_leader, has_turns;
};
extern const struct resource_maker meeting_maker; /* argument: const struct meeting_spec *; named by its entry */

/* A step that comes. */
struct meeting_step {
  struct host_call *call;
  uint64_t id, serial; /* serial: for meeting_taken */
  uint32_t command;
  /* Whether all of it is applied here already, so that it only repeats; under the hall's lock. NULL: no. */
  bool (*is_committed)(const struct meeting_step *step);
};
/* Each ends at once or later (host.h). FAILED_PRECONDITION: the driver is no member, or a member has finished its steps;
 * DEADLINE_EXCEEDED: a member was missing too long; ABORTED: the round went on without this step, which may be done again. */
status meeting_enter(struct meeting *meeting, const struct meeting_step *step);
status meeting_give(struct meeting *meeting, const struct meeting_step *step);
/* Output 0 becomes whether it makes the updates. */
status meeting_lead(struct meeting *meeting, const struct meeting_step *step);
status meeting_end(struct meeting *meeting, const struct meeting_step *step);

struct meeting_value_spec {
  int64_t key;               /* which value of the round */
  enum collective_kind kind; /* REDUCE (a sum) or GATHER */
  bool mean;
};
/* Input 0 is the step's value; output 0 becomes what comes of all. */
status meeting_value(struct meeting *meeting, const struct meeting_step *step, const struct meeting_value_spec *spec);

/* The steps that the round in hand has taken, for the step that leads it; for another one 0. */
struct meeting_taken {
  uint32_t driver, command;
  uint64_t serial;
};
uint32_t meeting_taken(struct meeting *meeting, uint64_t leader, struct meeting_taken *out, uint32_t room);

#endif
