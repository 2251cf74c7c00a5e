/* phase.h: one phase of a task's command line: an entry, run for a number of steps, fed from files and fetched to files. */
#ifndef TFC_RUNTIME_PROCESS_PHASE_H
#define TFC_RUNTIME_PROCESS_PHASE_H

#include "runtime/process/options.h"
#include "runtime/step/task.h"

struct events;
struct phase;
struct progress;

/* What hears of each step. */
struct phase_watch {
  struct events *events;     /* gets the scalars, or NULL */
  struct progress *progress; /* or NULL */
  int64_t log_every;         /* fetches without a file are printed every so many steps and at the last; 0: only then */
};

/* What can be said of a command line before anybody is waited for: the entry, its feeds and fetches, and, of the first phase, that the
 * files can be read: those of others may be fetches of phases before. Errors as those of phase_create. */
status phase_check(const struct task *task, const struct phase_options *options, bool is_first);

/* Reads the feeds and checks them against the entry. NOT_FOUND: no such entry, feed or fetch, or file; INVALID_ARGUMENT:
 * a feed that is missing or does not fit. `options` is kept by reference. */
status phase_create(struct task *task, const struct phase_options *options, const struct phase_watch *watch, struct phase **out);
/* The first step that is done here, from 0: before any. */
void phase_begin(struct phase *phase, int64_t step);
/* Runs one step; the request says how often it counts. Errors are those of task_run, and DATA_LOSS of files; after an error of the step
 * itself it may be run again. */
status phase_step(struct phase *phase, int64_t step, const struct run_request *request);
/* The same for what the task has of its own alone: nothing is said, printed, or stored. */
status phase_repeat(struct phase *phase, int64_t step, const struct run_request *request);
/* Steps from this one on are done again: what the files hold of them goes. */
status phase_go_to(struct phase *phase, int64_t step);
/* Completes the files, after the last step. Without it no file is left. */
status phase_end(struct phase *phase);
/* Accepts NULL. */
void phase_destroy(struct phase *phase);
uint32_t phase_entry(const struct phase *phase);

#endif
