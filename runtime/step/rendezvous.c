/* rendezvous.c: a hash table of steps, each with a short list of values and waiters, under one lock. */
#include "runtime/step/rendezvous.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256
#define ENDED_COUNT 4096 /* steps whose late values are dropped: more than can be on their way at once */

struct item {
  struct item *next;
  uint32_t transfer;
  struct tensor *tensor;            /* a value that waits; or */
  struct rendezvous_waiter *waiter; /* somebody who does */
};
struct meeting {
  struct meeting *next;
  uint64_t step;
  struct item *items;
  status code;
  char *text;
  int threads; /* that wait on `changed` */
  bool is_begun;
  uint64_t early_bytes; /* of values that came before */
};
struct rendezvous {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct meeting *buckets[BUCKETS];
  uint64_t ended[ENDED_COUNT];
  uint64_t early_bytes; /* of all meetings */
};

status rendezvous_create(struct rendezvous **out) {
  struct rendezvous *r = calloc(1, sizeof *r);
  if (!r)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->changed, NULL);
  memset(r->ended, 0xff, sizeof r->ended);
  *out = r;
  return OK;
}

static uint64_t step_hash(uint64_t step) { return (step * UINT64_C(0x9e3779b97f4a7c15)) >> 32; }

static struct meeting **bucket_of(struct rendezvous *r, uint64_t step) { return &r->buckets[step_hash(step) % BUCKETS]; }

static void meeting_free(struct meeting *meeting) {
  while (meeting->items) {
    struct item *item = meeting->items;
    meeting->items = item->next;
    tensor_release(item->tensor);
    free(item);
  }
  free(meeting->text);
  free(meeting);
}

void rendezvous_destroy(struct rendezvous *r) {
  if (!r)
    return;
  for (int i = 0; i < BUCKETS; i++)
    while (r->buckets[i]) {
      struct meeting *meeting = r->buckets[i];
      r->buckets[i] = meeting->next;
      meeting_free(meeting);
    }
  pthread_cond_destroy(&r->changed);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

static struct meeting *meeting_find(struct rendezvous *r, uint64_t step) {
  for (struct meeting *m = *bucket_of(r, step); m; m = m->next)
    if (m->step == step)
      return m;
  return NULL;
}

/* NULL when the step has ended, or without memory. */
static struct meeting *meeting_get(struct rendezvous *r, uint64_t step) {
  struct meeting *meeting = meeting_find(r, step);
  if (meeting || r->ended[step_hash(step) % ENDED_COUNT] == step)
    return meeting;
  meeting = calloc(1, sizeof *meeting);
  if (!meeting)
    return NULL;
  meeting->step = step;
  meeting->next = *bucket_of(r, step);
  *bucket_of(r, step) = meeting;
  return meeting;
}

/* Takes the item of a transfer out of the list: the one that waits, or the value. */
static struct item *item_remove(struct meeting *meeting, uint32_t transfer, bool is_waiter) {
  for (struct item **at = &meeting->items; *at; at = &(*at)->next)
    if ((*at)->transfer == transfer && ((*at)->waiter != NULL) == is_waiter) {
      struct item *item = *at;
      *at = item->next;
      return item;
    }
  return NULL;
}

static bool item_add(struct meeting *meeting, uint32_t transfer, struct tensor *tensor, struct rendezvous_waiter *waiter) {
  struct item *item = calloc(1, sizeof *item);
  if (!item)
    return false;
  *item = (struct item){.next = meeting->items, .transfer = transfer, .tensor = tensor, .waiter = waiter};
  meeting->items = item;
  return true;
}

void rendezvous_begin(struct rendezvous *r, uint64_t step) {
  pthread_mutex_lock(&r->lock);
  struct meeting *meeting = meeting_get(r, step);
  if (meeting) {
    meeting->is_begun = true;
    r->early_bytes -= meeting->early_bytes;
    meeting->early_bytes = 0;
  }
  pthread_mutex_unlock(&r->lock);
}

bool rendezvous_has_room(struct rendezvous *r, uint64_t step, uint64_t bytes) {
  pthread_mutex_lock(&r->lock);
  const struct meeting *meeting = meeting_find(r, step);
  bool has_room = (meeting && meeting->is_begun) || r->early_bytes == 0 || r->early_bytes + bytes <= RENDEZVOUS_EARLY_BYTES;
  pthread_mutex_unlock(&r->lock);
  return has_room;
}

void rendezvous_drop_early(struct rendezvous *r, uint32_t driver) {
  pthread_mutex_lock(&r->lock);
  for (int i = 0; i < BUCKETS; i++)
    for (struct meeting **at = &r->buckets[i]; *at;) {
      struct meeting *meeting = *at;
      if (meeting->is_begun || meeting->step >> 48 != driver || meeting->threads > 0) {
        at = &meeting->next;
        continue;
      }
      *at = meeting->next;
      r->early_bytes -= meeting->early_bytes;
      meeting_free(meeting);
    }
  pthread_mutex_unlock(&r->lock);
}

static uint64_t bytes_of(const struct tensor *tensor) { return (uint64_t)tensor->count * dtype_size(tensor->dtype); }

/* The meeting that a value is for; NULL: it is to be dropped. Under the lock. */
static struct meeting *meeting_of_value(struct rendezvous *r, uint64_t step, const struct tensor *tensor, enum rendezvous_early early) {
  struct meeting *meeting = early == EARLY_DROPPED ? meeting_find(r, step) : meeting_get(r, step);
  if (!meeting || (!meeting->is_begun && early == EARLY_DROPPED))
    return NULL;
  if (!meeting->is_begun && early == EARLY_COUNTED) {
    meeting->early_bytes += bytes_of(tensor);
    r->early_bytes += bytes_of(tensor);
  }
  return meeting;
}

void rendezvous_put(struct rendezvous *r, uint64_t step, uint32_t transfer, struct tensor *tensor) {
  rendezvous_deliver(r, step, transfer, tensor, EARLY_KEPT);
}

void rendezvous_deliver(struct rendezvous *r, uint64_t step, uint32_t transfer, struct tensor *tensor, enum rendezvous_early early) {
  struct rendezvous_waiter *waiter = NULL;
  bool wake = false;
  pthread_mutex_lock(&r->lock);
  struct meeting *meeting = meeting_of_value(r, step, tensor, early);
  struct item *item = meeting ? item_remove(meeting, transfer, true) : NULL;
  if (item) {
    waiter = item->waiter;
    free(item);
  } else if (!meeting || !item_add(meeting, transfer, tensor, NULL)) {
    tensor_release(tensor);
  } else {
    wake = meeting->threads > 0;
  }
  pthread_mutex_unlock(&r->lock);
  if (wake) /* after the lock, or who wakes would at once wait again, for it */
    pthread_cond_broadcast(&r->changed);
  if (waiter) {
    waiter->tensor = tensor;
    waiter->wake(waiter);
  }
}

status rendezvous_take(struct rendezvous *r, uint64_t step, uint32_t transfer, struct tensor **out) {
  pthread_mutex_lock(&r->lock);
  struct meeting *meeting = meeting_get(r, step);
  struct item *item = NULL;
  while (meeting && !(item = item_remove(meeting, transfer, false)) && meeting->code == OK) {
    meeting->threads++;
    pthread_cond_wait(&r->changed, &r->lock);
    meeting->threads--;
  }
  status result = OK;
  if (item)
    *out = item->tensor;
  else
    result = meeting ? fail(meeting->code, "%s", meeting->text ? meeting->text : "") : fail(CANCELLED, "the step has ended");
  free(item);
  pthread_mutex_unlock(&r->lock);
  return result;
}

struct tensor *rendezvous_poll(struct rendezvous *r, uint64_t step, uint32_t transfer) {
  pthread_mutex_lock(&r->lock);
  struct meeting *meeting = meeting_get(r, step);
  struct item *item = meeting ? item_remove(meeting, transfer, false) : NULL;
  struct tensor *tensor = item ? item->tensor : NULL;
  free(item);
  pthread_mutex_unlock(&r->lock);
  return tensor;
}

bool rendezvous_ask(struct rendezvous *r, uint64_t step, uint32_t transfer, struct rendezvous_waiter *waiter) {
  waiter->tensor = NULL;
  waiter->code = OK;
  pthread_mutex_lock(&r->lock);
  struct meeting *meeting = meeting_get(r, step);
  struct item *item = meeting ? item_remove(meeting, transfer, false) : NULL;
  bool done = true;
  if (item)
    waiter->tensor = item->tensor;
  else if (!meeting)
    waiter->code = CANCELLED;
  else if (meeting->code != OK)
    waiter->code = meeting->code;
  else if (item_add(meeting, transfer, NULL, waiter))
    done = false;
  else
    waiter->code = RESOURCE_EXHAUSTED;
  free(item);
  pthread_mutex_unlock(&r->lock);
  return done;
}

/* The waiters of a meeting, taken out of it. */
static struct item *waiters_remove(struct meeting *meeting) {
  struct item *waiting = NULL;
  for (struct item **at = &meeting->items; *at;) {
    struct item *item = *at;
    if (item->waiter) {
      *at = item->next;
      item->next = waiting;
      waiting = item;
    } else {
      at = &item->next;
    }
  }
  return waiting;
}

void rendezvous_abort(struct rendezvous *r, uint64_t step, status code, const char *text) {
  struct item *waiting = NULL;
  pthread_mutex_lock(&r->lock);
  struct meeting *meeting = meeting_get(r, step);
  if (meeting && meeting->code == OK) {
    meeting->code = code;
    meeting->text = strdup(text);
    waiting = waiters_remove(meeting);
    pthread_cond_broadcast(&r->changed);
  }
  pthread_mutex_unlock(&r->lock);
  while (waiting) {
    struct item *item = waiting;
    waiting = item->next;
    item->waiter->code = code;
    item->waiter->wake(item->waiter);
    free(item);
  }
}

status rendezvous_reason(struct rendezvous *r, uint64_t step) {
  pthread_mutex_lock(&r->lock);
  struct meeting *meeting = meeting_find(r, step);
  status result = OK;
  if (meeting && meeting->code != OK)
    result = fail(meeting->code, "%s", meeting->text ? meeting->text : "");
  pthread_mutex_unlock(&r->lock);
  return result;
}

void rendezvous_end(struct rendezvous *r, uint64_t step) {
  pthread_mutex_lock(&r->lock);
  r->ended[step_hash(step) % ENDED_COUNT] = step;
  struct meeting *gone = NULL;
  for (struct meeting **at = bucket_of(r, step); *at; at = &(*at)->next)
    if ((*at)->step == step) {
      gone = *at;
      *at = gone->next;
      r->early_bytes -= gone->early_bytes;
      break;
    }
  pthread_mutex_unlock(&r->lock);
  if (gone)
    meeting_free(gone);
}
