/* run.h: one run of a scenario by a seed, in a process of its own: it may crash, leak and hang, and is told apart by it. */
#ifndef TFC_TESTS_SIMULATOR_RUN_H
#define TFC_TESTS_SIMULATOR_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/simulator/job.h"
#include "tests/simulator/mishap.h"

#define RUN_TWIN_MACHINE 8 /* where the second one of task 0 runs, and so on */
#define RUN_CALM_SEED UINT64_MAX

struct process;
struct run;
struct run_task;

/* Values at the end of a run in which nothing went wrong. */
struct run_reference {
  uint32_t count;
  struct {
    char task[32], variable[64];
    int64_t count;
    float values[2048];
  } items[32];
};

struct scenario {
  const char *name, *title; /* a word for the command line, and what is true */
  const struct job *job;
  uint32_t steps;                  /* of each worker */
  uint32_t fewer;                  /* that one worker, drawn, does not have (run_has_fewer) */
  uint32_t mishaps;                /* MISHAP()s that may happen */
  uint32_t moments;                /* MOMENT()s at which most of them do; 0: at any turn */
  uint64_t typical_turns;          /* of a run without mishaps; measured before the first run */
  struct run_reference *reference; /* measured, too */
  bool redraws;                    /* a worker that was started again feeds something else for the same step (job.h) */
  bool with_checkpoints;           /* --checkpoint-dir, saved every few steps */
  const char *saves, *more;        /* instead of --save-steps 2; further options of every task; or NULL */
  uint32_t timeout_s;
  uint64_t spread_ns;                                            /* tasks start within */
  uint32_t distance_ms;                                          /* between any two, one way; 0: some, drawn */
  uint32_t stall_in;                                             /* world.h */
  bool is_open;                                                  /* not yet true: run by hand alone */
  bool (*is_done)(struct run *run, const struct run_task *task); /* whether nothing of a worker's work is missing; or NULL */
  void (*watch)(struct run *run);                                /* says what is wrong after a turn, by run_fault; or NULL */
  /* Says what is wrong when all have ended; by run_fault. */
  void (*check)(struct run *run);
};

struct run_options {
  uint64_t seed;
  uint32_t without; /* mishaps that are left out: a bit each */
  int fault;        /* planted (runtime/program/fault.h); 0: none */
};

/* What a run came to; in memory that parent and child share. */
struct run_report {
  bool has_failed;
  char what[1024]; /* went wrong, first */
  uint64_t turns, virtual_ns;
  uint32_t mishap_count; /* that were drawn */
  char story[512 * 1024];
};

/* Once; the report is valid until the next run. */
const struct run_report *run_once(struct scenario *scenario, const struct run_options *options);
/* The first of `count` seeds from `first` on that fails, or UINT64_MAX. */
uint64_t run_many(struct scenario *scenario, uint64_t first, uint64_t count);
/* The first that fails with the fault, and not without it. */
uint64_t run_until_noticed(struct scenario *scenario, uint64_t first, uint64_t count, int fault);
/* Leaves out mishaps while the run still fails; the report is that of the smallest. */
uint32_t run_shrink(struct scenario *scenario, struct run_options *options);
/* What a user is told: the schedule, what went wrong, how to see it again. The whole story when asked for. */
void run_tell(struct scenario *scenario, const struct run_options *options, bool whole_story);

/* Whether it is the worker with fewer steps than the others. */
bool run_has_fewer(const struct scenario *scenario, const struct job_task *task, uint64_t seed);

/* ---- for checks ---- */

struct run_task {
  const struct job_task *built;
  uint32_t number, machine;
  struct process *process; /* the last one started; NULL: not yet */
  uint32_t starts;
  bool will_start;  /* it is to be started (again) */
  bool is_lost;     /* for good */
  bool was_killed;  /* once at least */
  bool was_wiped;   /* its disk was */
  bool was_done;    /* when it was killed last, nothing of its work was missing (the scenario's is_done) */
  bool was_leaving; /* when it was killed, once: what is started again under its name is another command */
  bool is_leaving;  /* when it was killed last */
  uint32_t anew;    /* how often it was started as another command: it had been leaving */
  bool has_left;    /* by itself */
  int exit_code;
  char **argv;
};

struct run {
  struct scenario *scenario;
  struct run_options options;
  struct run_report *report;
  struct run_task tasks[JOB_TASKS_MAX], twins[JOB_TASKS_MAX]; /* twins: seldom started */
  struct mishap mishaps[MISHAPS_MAX];
  uint32_t mishap_count;
  uint64_t first_turn, last_mishap_ns;
  bool begins_anew; /* all were killed when their command was at its end: the steps of another one come on top */
};

/* The first one counts. */
void run_fault(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether such a mishap has happened. */
bool run_had(const struct run *run, enum mishap_kind kind);
/* The elements of a task's float variable when it ended by itself, or NULL; *count of them. */
const float *run_value(const struct run_task *task, const char *variable, int64_t *count);
/* What a task that is started again is fed. */
void run_redraw(const struct scenario *scenario, const struct run_task *task);
/* play.c: starts the tasks and lets them run until all have ended, with what goes wrong in between. False: somebody waits for ever. */
bool run_play(struct run *run);

#endif
