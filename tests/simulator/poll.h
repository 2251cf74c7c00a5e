/* poll.h: waiting for several files at once (epoll), and the files that are made for it: events and timers. */
#ifndef TFC_TESTS_SIMULATOR_POLL_H
#define TFC_TESTS_SIMULATOR_POLL_H

#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

#include "tests/simulator/process.h"

struct watch {
  struct file *file;
  int number;
  struct epoll_event event;
};
struct poller {
  struct file file; /* first */
  VEC(struct watch) watches;
};
/* An eventfd, or a timerfd. */
struct counter {
  struct file file; /* first */
  uint64_t count;
  uint64_t due_ns, period_ns, turn; /* of a timer */
  bool is_timer;
};
extern const struct file_kind poller_kind, counter_kind;

struct poller *poller_create(void);
struct counter *counter_create(uint64_t count, bool is_timer);
/* Runs out at a time (0: never), then every period. */
void counter_set_due(struct counter *counter, uint64_t due_ns, uint64_t period_ns);
/* Adds; wakes who waits. */
void counter_add(struct counter *counter, uint64_t count);
/* Who waits in the process looks again. */
void poll_wake(struct process *process);
/* Files that are ready, up to `most`; waits until then (UINT64_MAX: for ever). */
int poller_wait(struct poller *poller, struct epoll_event *events, int most, uint64_t until_ns);
/* What poll would say of a file. */
uint32_t poll_events(const struct file *file);
/* No poller watches it any more. */
void poll_forget(const struct file *file);

#endif
