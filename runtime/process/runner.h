/* runner.h: entries that are run again and again beside the phases, as threads of a TensorFlow session run the
 * operations of a QueueRunner.
 *
 * Each is a loop on a thread of its own. It ends when its step ends with one of the statuses that mean the end of its
 * input: the last loop of a runner then closes the queue. Any other failure ends the task, with the runner's error. A
 * peer that is lost and comes back in time is none.
 *
 * Threads: start, finish and destroy on the main thread, one after the other. Owner: the task's main.
 */
#ifndef TFC_RUNTIME_PROCESS_RUNNER_H
#define TFC_RUNTIME_PROCESS_RUNNER_H

#include "runtime/step/task.h"

struct course;
struct runners;
struct runner_config {
  struct task *task;
  const char *const *entries; /* more loops, by name: --runner */
  uint32_t entry_count;
  bool is_chief; /* runs what only the chief runs, too */
  bool is_replica;
  struct course *course; /* the phases': steps that change other tasks are counted beside theirs */
  void *self;
  status (*wait_peers)(void *self, uint32_t entry); /* waits for the entry's tasks; UNAVAILABLE: one is late */
  bool (*has_left)(void *self, uint32_t entry);     /* one of the entry's tasks has left in order */
  void (*on_ended)(void *self);                     /* after runners_expect_end: a loop that serves others has nobody to serve any more.
                                    From its thread */
  void (*on_failed)(void *self);                    /* a loop failed: whatever the task waits in has to end. From a loop's thread */
};

/* That the entries of the command line are there, and need no feeds. NOT_FOUND, INVALID_ARGUMENT. */
status runners_check(const struct task *task, const char *const *entries, uint32_t count);
/* Starts the loops. RESOURCE_EXHAUSTED: no thread. */
status runners_start(const struct runner_config *config, struct runners **out);
/* Whether some loop here serves other tasks too: it has to go on until they have finished. */
bool runners_serve_others(const struct runners *runners);
/* From now on it is no failure that a task of an entry has left: all may be done. */
void runners_expect_end(struct runners *runners);
/* Gives up what the loops are at, and waits for their threads; how the first that failed did, with its runner and
 * entry. */
status runners_finish(struct runners *runners);
/* After runners_finish. Accepts NULL. */
void runners_destroy(struct runners *runners);

#endif
