/* partial.c: two arrays under a lock. */
#include "runtime/step/partial.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LOOK_NS 20000000

struct waiting {
  struct inbox *inbox;
  struct inbox_item *item;
};
struct partial {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint32_t feed_count, fetch_count;
  struct tensor **feeds, **fetches;
  struct waiting *waiting; /* per feed: who has asked for it */
  bool is_over;
  status code;
  char text[2048];
};

status partial_create(uint32_t feed_count, uint32_t fetch_count, struct partial **out) {
  struct partial *partial = calloc(1, sizeof *partial);
  if (!partial)
    return fail(RESOURCE_EXHAUSTED, "no memory for a partial run");
  pthread_mutex_init(&partial->lock, NULL);
  pthread_cond_init(&partial->changed, NULL);
  partial->feed_count = feed_count;
  partial->fetch_count = fetch_count;
  partial->feeds = calloc((size_t)feed_count + 1, sizeof *partial->feeds);
  partial->fetches = calloc((size_t)fetch_count + 1, sizeof *partial->fetches);
  partial->waiting = calloc((size_t)feed_count + 1, sizeof *partial->waiting);
  if (!partial->feeds || !partial->fetches || !partial->waiting) {
    partial_destroy(partial);
    return fail(RESOURCE_EXHAUSTED, "no memory for a partial run");
  }
  *out = partial;
  return OK;
}

void partial_destroy(struct partial *partial) {
  if (!partial)
    return;
  for (uint32_t i = 0; partial->feeds && i < partial->feed_count; i++)
    tensor_release(partial->feeds[i]);
  for (uint32_t i = 0; partial->fetches && i < partial->fetch_count; i++)
    tensor_release(partial->fetches[i]);
  free(partial->feeds);
  free(partial->fetches);
  free(partial->waiting);
  pthread_mutex_destroy(&partial->lock);
  pthread_cond_destroy(&partial->changed);
  free(partial);
}

struct tensor *partial_ask(struct partial *partial, uint32_t feed, struct inbox *inbox, struct inbox_item *item) {
  pthread_mutex_lock(&partial->lock);
  struct tensor *tensor = partial->feeds[feed] ? tensor_retain(partial->feeds[feed]) : NULL;
  if (!tensor)
    partial->waiting[feed] = (struct waiting){inbox, item};
  pthread_mutex_unlock(&partial->lock);
  return tensor;
}

bool partial_withdraw(struct partial *partial, uint32_t feed) {
  pthread_mutex_lock(&partial->lock);
  bool was_waiting = partial->waiting[feed].inbox != NULL;
  partial->waiting[feed].inbox = NULL;
  pthread_mutex_unlock(&partial->lock);
  return was_waiting;
}

void partial_feed(struct partial *partial, uint32_t feed, struct tensor *tensor) {
  pthread_mutex_lock(&partial->lock);
  tensor_release(partial->feeds[feed]);
  partial->feeds[feed] = tensor;
  struct waiting waiting = partial->waiting[feed];
  partial->waiting[feed].inbox = NULL;
  if (waiting.inbox) /* under the lock: the step's end waits for it, and the inbox lives until then */
    inbox_put(waiting.inbox, waiting.item);
  pthread_cond_broadcast(&partial->changed);
  pthread_mutex_unlock(&partial->lock);
}

void partial_give(struct partial *partial, uint32_t fetch, struct tensor *tensor) {
  pthread_mutex_lock(&partial->lock);
  tensor_release(partial->fetches[fetch]);
  partial->fetches[fetch] = tensor;
  pthread_cond_broadcast(&partial->changed);
  pthread_mutex_unlock(&partial->lock);
}

void partial_end(struct partial *partial, status code, const char *text) {
  pthread_mutex_lock(&partial->lock);
  if (!partial->is_over) {
    partial->is_over = true;
    partial->code = code;
    snprintf(partial->text, sizeof partial->text, "%s", text);
  }
  pthread_cond_broadcast(&partial->changed);
  pthread_mutex_unlock(&partial->lock);
}

/* Under the lock. False: the caller is not waited for any more. */
static bool wait_a_little(struct partial *partial, const atomic_bool *cancelled) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += LOOK_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&partial->changed, &partial->lock, &until);
  return !atomic_load(cancelled);
}

status partial_await(struct partial *partial, uint32_t fetch, const atomic_bool *cancelled, struct tensor **out) {
  bool is_wanted = true;
  pthread_mutex_lock(&partial->lock);
  while (!partial->fetches[fetch] && !partial->is_over && is_wanted)
    is_wanted = wait_a_little(partial, cancelled);
  *out = partial->fetches[fetch];
  partial->fetches[fetch] = NULL;
  status code = *out                ? OK
              : !partial->is_over   ? fail(CANCELLED, "the client has gone")
              : partial->code == OK ? fail(INTERNAL, "the step has not given a fetch")
                                    : fail(partial->code, "%s", partial->text);
  pthread_mutex_unlock(&partial->lock);
  return code;
}

status partial_await_end(struct partial *partial, const atomic_bool *cancelled) {
  bool is_wanted = true;
  pthread_mutex_lock(&partial->lock);
  while (!partial->is_over && is_wanted)
    is_wanted = wait_a_little(partial, cancelled);
  status code = !partial->is_over   ? fail(CANCELLED, "the client has gone")
              : partial->code == OK ? OK
                                    : fail(partial->code, "%s", partial->text);
  pthread_mutex_unlock(&partial->lock);
  return code;
}

static bool has_all_feeds(const struct partial *partial) {
  for (uint32_t i = 0; i < partial->feed_count; i++)
    if (!partial->feeds[i])
      return false;
  return true;
}

status partial_await_feeds(struct partial *partial, const atomic_bool *cancelled, struct tensor **out) {
  bool is_wanted = true;
  pthread_mutex_lock(&partial->lock);
  while (!has_all_feeds(partial) && is_wanted)
    is_wanted = wait_a_little(partial, cancelled);
  bool is_complete = has_all_feeds(partial);
  for (uint32_t i = 0; is_complete && i < partial->feed_count; i++)
    out[i] = tensor_retain(partial->feeds[i]);
  pthread_mutex_unlock(&partial->lock);
  return is_complete ? OK : fail(CANCELLED, "the client has gone");
}
