/* loop.h: one thread that waits for sockets, timers and calls from other threads (epoll).
 *
 * Threads: loop_post and loop_now_ms from any; the rest on the loop's own thread, or before loop_start.
 */
#ifndef TFC_RUNTIME_NET_LOOP_H
#define TFC_RUNTIME_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"

struct loop;

/* Something with a file descriptor; part of a larger object, which stays alive until a call posted after loop_remove runs. */
struct loop_source {
  int fd; /* -1: removed */
  uint32_t events;
  void (*on_ready)(struct loop_source *source, uint32_t events);
};
struct loop_timer {
  uint64_t due_ms; /* 0: not set */
  void (*on_due)(struct loop_timer *timer);
  struct loop_timer *next;
};
/* A call to be made on the loop's thread; part of a larger object. */
struct loop_call {
  void (*run)(struct loop_call *call);
  struct loop_call *next;
};

status loop_create(struct loop **out);
/* Starts the thread. */
status loop_start(struct loop *loop);
/* Ends the thread after the calls posted so far, and waits for it. */
void loop_stop(struct loop *loop);
void loop_destroy(struct loop *loop);

/* NET_READ_BYTES of memory to read into, for what runs on the loop's thread. */
uint8_t *loop_buffer(struct loop *loop);

/* Milliseconds of the steady clock. */
uint64_t loop_now_ms(void);
void loop_post(struct loop *loop, struct loop_call *call);

status loop_add(struct loop *loop, struct loop_source *source, uint32_t events);
/* Also from other threads, when the source's owner has a lock of its own around it. */
void loop_change(struct loop *loop, struct loop_source *source, uint32_t events);
void loop_remove(struct loop *loop, struct loop_source *source);

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ms);
void loop_timer_clear(struct loop *loop, struct loop_timer *timer);

#endif
