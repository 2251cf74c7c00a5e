/* course.h: how far a driver is in its command, and where it goes on after anybody was lost.
 *
 * The steps of a command that change state are numbered over all its phases. Before the first, and whenever a task of
 * its entries was lost or restored, the driver asks all that hold variables what they have applied of it, and goes on
 * with the first step that is missing anywhere; who has it already computes it again and changes nothing. The other
 * side of the question is answered here, too: in every task.
 *
 * Threads: any. It is there until the process ends: a signal may come at any time. */
#ifndef TFC_RUNTIME_PROCESS_COURSE_H
#define TFC_RUNTIME_PROCESS_COURSE_H

#include "runtime/process/options.h"
#include "runtime/step/task.h"

struct cluster;
struct course;

/* A step of a phase, both from 0. */
struct course_place {
  uint32_t phase;
  int64_t step;
};
struct course_phase {
  int64_t steps;
  bool counts; /* its entry changes state */
};
/* Where the step with this number stands; phases that change nothing are repeated only where none behind them has
 * begun. A place behind the last phase: all is done. */
struct course_place course_find(const struct course_phase *phases, uint32_t count, uint64_t serial);
/* The number of a step; 0: it has none. */
uint64_t course_serial(const struct course_phase *phases, struct course_place place);

/* Of a task with or without phases; options are kept by reference. */
status course_create(struct task *task, const struct task_options *options, struct course **out);
/* A stream beside the phases (lane of ledger.h, from 1), in which one entry is run again and again: a course whose only
 * phase is the entry, without end. On one thread, beside that of the phases; `course` owns it, and has been attached or
 * has no cluster. */
status course_create_lane(struct course *course, uint32_t entry, uint32_t lane, struct course **out);
/* Asked before a task that was lost is waited for: true: it is of no use, the failure stays. From the thread of the
 * course. */
void course_expect_end(struct course *course, bool (*is_over)(void *self), void *self);
/* Questions can come, and be asked; before cluster_start, and before anything is run. RESOURCE_EXHAUSTED. */
status course_attach(struct course *course, struct cluster *cluster);
/* The task has been initialised, and is about to ask: its first step begins here, also when the job begins again.
 * RESOURCE_EXHAUSTED. */
status course_begin(struct course *course);
/* An entry is to be run that initialises: with course_draw_again in front of each try all draw the same. RESOURCE_EXHAUSTED. */
status course_initialises(struct course *course);
/* The entry `init` draws the same later, too: the job may begin again. */
status course_draw_again(struct course *course, bool is_init);
/* Ends waits, now and later, with CANCELLED. */
void course_stop(struct course *course);

/* Waits for all that hold variables of the command's entries, asks them, and goes to the place that follows from it;
 * says so where it is not the expected one. UNAVAILABLE: somebody did not come within --timeout, named; CANCELLED. */
status course_join(struct course *course);
/* Waits until all of these have been initialised, without going anywhere. UNAVAILABLE, CANCELLED: as course_join; ABORTED: one of them is
 * to be initialised again, by this task. */
status course_await_init(struct course *course);
struct course_place course_place(const struct course *course);
/* This task's own part of the step at the place runs, whatever it has done, and that of those behind it.
 * RESOURCE_EXHAUSTED. */
status course_follow(struct course *course, struct course_place place);
/* The step at the place is done: goes to the one behind it. */
void course_next(struct course *course);
/* What makes the step count once. The step ends before the next call. */
struct run_request course_request(struct course *course, struct course_place place);
/* Before the first step after course_join: what this task has of its own (own_state.h) is put to where it was before the
 * step at the place. *is_early: where it was before the step in front of that one, which is to be run once more here, for
 * nothing else: *place and *request, which tasks that have it answer. */
status course_resume(struct course *course, bool *is_early, struct course_place *place, struct run_request *request);
/* The step at the place was done everywhere before somebody was lost, and is done once more for what it gives. */
bool course_is_repeated(const struct course *course, struct course_place place);
/* No step of the command is missing anywhere, as far as course_join has found. */
bool course_is_done(const struct course *course);
/* How many steps the command has that change state. */
uint64_t course_steps(const struct course *course);
/* The number of the command, from 1. */
uint32_t course_command(const struct course *course);
/* All steps are done: its successor goes on from here. */
void course_end(struct course *course);
/* After a step at this place has failed: OK when it may be tried again, after course_join: somebody was lost and is
 * back, or may come back. Waits for that. Else the failure, as it was (its text is this thread's). */
status course_recover(struct course *course, struct course_place place, status failure);

#endif
