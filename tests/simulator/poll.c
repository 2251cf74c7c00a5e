/* poll.c: epoll, eventfd and timerfd. */
#include "tests/simulator/poll.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulator/fiber.h"
#include "tests/simulator/net.h"
#include "tests/simulator/world.h"

static void close_file(struct file *file, bool was_killed) {
  (void)was_killed;
  file->process->files[file->number] = NULL;
}
const struct file_kind poller_kind = {"epoll", close_file}, counter_kind = {"event", close_file};

struct poller *poller_create(void) {
  struct poller *poller = calloc(1, sizeof *poller);
  if (!poller)
    abort();
  poller->file.kind = &poller_kind;
  return poller;
}

struct counter *counter_create(uint64_t count, bool is_timer) {
  struct counter *counter = calloc(1, sizeof *counter);
  if (!counter)
    abort();
  *counter = (struct counter){.file.kind = &counter_kind, .count = count, .is_timer = is_timer};
  return counter;
}

void poll_wake(struct process *process) {
  if (!process->has_ended)
    fiber_wake(process, process->files, true);
}

void counter_add(struct counter *counter, uint64_t count) {
  counter->count += count;
  poll_wake(counter->file.process);
}

static void on_timer(void *self, uint64_t turn) {
  struct counter *counter = self;
  struct process *process = counter->file.process;
  if (turn != counter->turn || process->has_ended || process->files[counter->file.number] != &counter->file)
    return;
  counter_add(counter, 1);
  if (counter->period_ns)
    world_after(counter->period_ns, on_timer, counter, turn);
}

void counter_set_due(struct counter *counter, uint64_t due_ns, uint64_t period_ns) {
  counter->turn++;
  counter->count = 0;
  counter->due_ns = due_ns;
  counter->period_ns = period_ns;
  if (due_ns)
    world_after(due_ns > world_now() ? due_ns - world_now() : 0, on_timer, counter, counter->turn);
}

uint32_t poll_events(const struct file *file) {
  if (file->kind == &endpoint_kind)
    return endpoint_events((const struct endpoint *)file);
  if (file->kind == &counter_kind)
    return (((const struct counter *)file)->count ? EPOLLIN : 0) | EPOLLOUT;
  return EPOLLIN | EPOLLOUT;
}

void poll_forget(const struct file *file) {
  for (int i = 0; i < PROCESS_FILES; i++) {
    struct file *other = file->process->files[i];
    if (!other || other->kind != &poller_kind)
      continue;
    struct poller *poller = (struct poller *)other;
    for (uint32_t j = poller->watches.count; j-- > 0;)
      if (poller->watches.items[j].file == file)
        poller->watches.items[j] = poller->watches.items[--poller->watches.count];
  }
}

/* Those that are ready, from a drawn one on. */
static int ready(struct poller *poller, struct epoll_event *events, int most) {
  int count = 0;
  uint32_t from = (uint32_t)random_below(world_random(), poller->watches.count);
  for (uint32_t i = 0; i < poller->watches.count && count < most; i++) {
    const struct watch *watch = &poller->watches.items[(from + i) % poller->watches.count];
    uint32_t is = poll_events(watch->file) & (watch->event.events | EPOLLERR | EPOLLHUP);
    if (is)
      events[count++] = (struct epoll_event){.events = is, .data = watch->event.data};
  }
  return count;
}

int poller_wait(struct poller *poller, struct epoll_event *events, int most, uint64_t until_ns) {
  for (;;) {
    int count = ready(poller, events, most);
    if (count || until_ns <= world_now())
      return count;
    fiber_wait(poller->file.process->files, until_ns, "epoll_wait");
  }
}
