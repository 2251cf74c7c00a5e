/* loop.c: epoll, an eventfd that ends the wait when a call is posted, and a short list of timers. */
#include "runtime/net/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "runtime/net/net_limits.h"
#include "runtime/program/monotonic.h"

#define EVENTS_AT_ONCE 64

struct loop {
  int epoll, wake;
  pthread_t thread;
  bool running, stopping;
  struct loop_timer *timers; /* a handful: dials, ticks */
  pthread_mutex_t lock;      /* of the calls */
  struct loop_call *first, *last;
  uint8_t buffer[NET_READ_BYTES];
};

uint64_t loop_now_ms(void) { return monotonic_ms(); }

uint8_t *loop_buffer(struct loop *loop) { return loop->buffer; }

status loop_create(struct loop **out) {
  struct loop *loop = calloc(1, sizeof *loop);
  if (!loop)
    return fail(RESOURCE_EXHAUSTED, "no memory for the network");
  pthread_mutex_init(&loop->lock, NULL);
  loop->epoll = epoll_create1(EPOLL_CLOEXEC);
  loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  if (loop->epoll < 0 || loop->wake < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) != 0) {
    status code = fail(RESOURCE_EXHAUSTED, "the network cannot be started: %s", strerror(errno));
    loop_destroy(loop);
    return code;
  }
  *out = loop;
  return OK;
}

void loop_destroy(struct loop *loop) {
  if (!loop)
    return;
  if (loop->epoll >= 0)
    close(loop->epoll);
  if (loop->wake >= 0)
    close(loop->wake);
  pthread_mutex_destroy(&loop->lock);
  free(loop);
}

/* ---- calls ---- */

void loop_post(struct loop *loop, struct loop_call *call) {
  call->next = NULL;
  pthread_mutex_lock(&loop->lock);
  if (loop->last)
    loop->last->next = call;
  else
    loop->first = call;
  loop->last = call;
  pthread_mutex_unlock(&loop->lock);
  uint64_t one = 1;
  ssize_t written = write(loop->wake, &one, sizeof one); /* EAGAIN: it is awake anyway */
  (void)written;
}

static void calls_run(struct loop *loop) {
  uint64_t count;
  ssize_t got = read(loop->wake, &count, sizeof count);
  (void)got;
  pthread_mutex_lock(&loop->lock);
  struct loop_call *call = loop->first;
  loop->first = loop->last = NULL;
  pthread_mutex_unlock(&loop->lock);
  while (call) {
    struct loop_call *next = call->next;
    call->run(call);
    call = next;
  }
}

static bool calls_are_pending(struct loop *loop) {
  pthread_mutex_lock(&loop->lock);
  bool pending = loop->first != NULL;
  pthread_mutex_unlock(&loop->lock);
  return pending;
}

/* ---- sources ---- */

status loop_add(struct loop *loop, struct loop_source *source, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = source};
  source->events = events;
  if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event) != 0)
    return fail(RESOURCE_EXHAUSTED, "a socket cannot be watched: %s", strerror(errno));
  return OK;
}

void loop_change(struct loop *loop, struct loop_source *source, uint32_t events) {
  if (source->fd < 0 || source->events == events)
    return;
  struct epoll_event event = {.events = events, .data.ptr = source};
  source->events = events;
  epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

void loop_remove(struct loop *loop, struct loop_source *source) {
  if (source->fd >= 0)
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
  source->fd = -1;
}

/* ---- timers ---- */

void loop_timer_clear(struct loop *loop, struct loop_timer *timer) {
  for (struct loop_timer **at = &loop->timers; *at; at = &(*at)->next)
    if (*at == timer) {
      *at = timer->next;
      break;
    }
  timer->due_ms = 0;
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ms) {
  loop_timer_clear(loop, timer);
  struct loop_timer **at = &loop->timers;
  while (*at && (*at)->due_ms <= due_ms)
    at = &(*at)->next;
  timer->due_ms = due_ms;
  timer->next = *at;
  *at = timer;
}

static int timers_run(struct loop *loop) {
  uint64_t now_ms = loop_now_ms();
  while (loop->timers && loop->timers->due_ms <= now_ms) {
    struct loop_timer *timer = loop->timers;
    loop->timers = timer->next;
    timer->due_ms = 0;
    timer->on_due(timer);
  }
  if (!loop->timers)
    return -1;
  uint64_t wait_ms = loop->timers->due_ms - now_ms;
  return wait_ms > 60000 ? 60000 : (int)wait_ms;
}

/* ---- the thread ---- */

static void *loop_run(void *self) {
  struct loop *loop = self;
  struct epoll_event events[EVENTS_AT_ONCE];
  while (!loop->stopping || calls_are_pending(loop)) {
    int count = epoll_wait(loop->epoll, events, EVENTS_AT_ONCE, loop->stopping ? 0 : timers_run(loop));
    bool is_woken = false;
    for (int i = 0; i < count; i++) {
      struct loop_source *source = events[i].data.ptr;
      if (!source)
        is_woken = true;
      else if (source->fd >= 0)
        source->on_ready(source, events[i].events);
    }
    /* after the sockets: what a call frees may have been in the list */
    if (is_woken || loop->stopping)
      calls_run(loop);
  }
  return NULL;
}

status loop_start(struct loop *loop) {
  if (pthread_create(&loop->thread, NULL, loop_run, loop) != 0)
    return fail(RESOURCE_EXHAUSTED, "no thread for the network");
  loop->running = true;
  return OK;
}

struct stop_call {
  struct loop_call call;
  struct loop *loop;
};

static void run_stop(struct loop_call *call) { ((struct stop_call *)call)->loop->stopping = true; }

void loop_stop(struct loop *loop) {
  struct stop_call stop = {.call.run = run_stop, .loop = loop};
  if (!loop->running)
    return;
  loop_post(loop, &stop.call);
  pthread_join(loop->thread, NULL);
  loop->running = false;
}
