/* course_state.h: what the files of a course share; for course.c and course_talk.c only. */
#ifndef TFC_RUNTIME_PROCESS_COURSE_STATE_H
#define TFC_RUNTIME_PROCESS_COURSE_STATE_H

#include <pthread.h>

#include "runtime/process/course.h"
#include "runtime/process/own_state.h"
#include "runtime/step/commit.h"

#define TURN_LANE_SHIFT 24 /* whose question it is stands in the upper bits of its turn */

/* What a holder has told. */
struct answer {
  bool has_come, is_initialised, was_initialised;
  uint64_t history; /* of the holder's state */
  struct ledger_row row;
};

struct course {
  struct task *task;
  const struct program *program;
  struct cluster *cluster; /* NULL: alone */
  const struct task_options *options;
  uint32_t lane;               /* 0: the phases */
  bool (*is_over)(void *self); /* or NULL */
  void *is_over_self;
  struct task_options lane_options;
  struct phase_options lane_phase;
  struct course_phase *phases;
  uint32_t phase_count;
  uint64_t step_count;             /* that are numbered */
  uint32_t *holders, holder_count; /* of variables that the command's entries change, but for this task */
  bool holds;                      /* this task is one */
  uint32_t *also, also_count;      /* holders beyond an entry's own tasks, for the request made last */
  struct course_place place;
  uint32_t command;
  uint64_t next;     /* the number of the step at `place` */
  uint64_t missing;  /* the first that some holder lacks, when it was asked last */
  uint64_t repeated; /* the one that all have, and that is done once more for what it gives; 0: none */
  uint64_t ended;    /* the last step of the command before this one; 0: it is not known */
  bool has_joined;
  uint64_t lacking_since_ms; /* a holder says that it has to be initialised, also when it was asked before; 0: none does */
  uint64_t failing_since_ms, failing_serial;
  uint32_t failures;
  pthread_mutex_t lock; /* all below */
  pthread_cond_t changed;
  uint32_t turn;          /* of the question that is out */
  struct answer *answers; /* one for each task */
  struct own_state own;   /* what was offered */
  uint32_t *held;         /* for each task: the turn of its question that cannot be answered yet; 0: none */
  uint64_t changes, seen_changes;
  bool is_stopped;
  struct course *lanes; /* of the phases': the others */
  struct course *next_lane;
};

bool course_is_replica(const struct program *program, uint32_t task);

/* ---- course_talk.c ---- */

/* The first holder keeps what this task has of its own; a task that holds variables itself has its own checkpoint, and replicas have the
 * whole state of one another: a step that one of them did once more would change it. */
uint32_t course_keeper(const struct course *course);
/* Whether there is anything that it keeps: steps that count. */
static inline bool course_has_keeper(const struct course *course) {
  return course->step_count > 0 && course_keeper(course) != PROGRAM_NONE;
}
/* Before the step runs. Without memory its successor begins with it anew. */
void course_tell_state(struct course *course, uint64_t serial);
/* What the holder has of this course's steps; the answer is noted when it comes, and `changed` told. */
void course_ask(struct course *course, uint32_t holder, uint32_t turn);

#endif
