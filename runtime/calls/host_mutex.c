/* host_mutex.c: mutexes. A lock is a value: the mutex goes to the next in line when the lock is consumed, or when the last
 * reference to it ends (the step's, at the latest). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/host/object.h"
#include "runtime/host/wait_list.h"
#include "runtime/memory/container.h"

struct mutex {
  _Atomic int references; /* the resource's, and one for each hold: a queue may keep a hold for longer than the resource is there */
  pthread_mutex_t lock;
  bool locked;
  struct wait_list waiting;
};
struct mutex_resource {
  struct resource resource; /* first */
  struct mutex *mutex;
};
struct mutex_hold {
  struct object object;        /* first */
  struct mutex *_Atomic mutex; /* NULL: given up */
};

/* ---- holding ---- */

static void hold_destroy(struct object *object);
static const struct object_kind hold_kind = {"mutex lock", hold_destroy, NULL, NULL, NULL};

/* Under the lock: the first in line gets the mutex, if it is free. */
static struct wait_entry *serve(struct mutex *m) {
  struct wait_entry *over = NULL;
  while (m->waiting.first && !m->locked) {
    struct host_call *call = m->waiting.first->call;
    struct mutex_hold *hold = calloc(1, sizeof *hold);
    status result = hold ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
    if (hold) {
      object_init(&hold->object, &hold_kind);
      result = objects_create(&(struct shape){0}, &call->outputs[0]);
    }
    if (result == OK) {
      hold->mutex = m;
      atomic_fetch_add(&m->references, 1);
      objects_put(call->outputs[0], 0, &hold->object);
      m->locked = true;
    } else {
      free(hold);
    }
    wait_list_move_first(&m->waiting, result, result == OK ? "" : status_text(), &over);
  }
  return over;
}

static void mutex_release(struct mutex *m) {
  if (atomic_fetch_sub(&m->references, 1) != 1)
    return;
  pthread_mutex_destroy(&m->lock);
  free(m);
}

static void give_up(struct mutex_hold *hold) {
  struct mutex *m = atomic_exchange(&hold->mutex, NULL);
  if (!m)
    return;
  pthread_mutex_lock(&m->lock);
  m->locked = false;
  struct wait_entry *over = serve(m);
  pthread_mutex_unlock(&m->lock);
  (void)wait_list_finish(over, NULL); /* none of them is ours */
  mutex_release(m);
}

static void hold_destroy(struct object *object) {
  give_up((struct mutex_hold *)object);
  free(object);
}

/* ---- the resource ---- */

static bool mutex_explain(struct resource *resource, const void *call, struct resource_wait *out) {
  struct mutex *m = ((struct mutex_resource *)resource)->mutex;
  pthread_mutex_lock(&m->lock);
  bool waits = wait_list_has(&m->waiting, call);
  pthread_mutex_unlock(&m->lock);
  if (waits)
    snprintf(out->text, sizeof out->text, "mutex '%.60s' is held by another step", resource->name);
  return waits;
}

static status mutex_init(struct resource *resource, void *argument) {
  struct mutex *m = calloc(1, sizeof *m);
  (void)argument;
  if (!m)
    return fail(RESOURCE_EXHAUSTED, "no memory for a mutex");
  atomic_init(&m->references, 1);
  ((struct mutex_resource *)resource)->mutex = m;
  pthread_mutex_init(&m->lock, NULL);
  wait_list_init(&m->waiting, &m->lock);
  resource->explain = mutex_explain;
  return OK;
}

static void mutex_destroy(struct resource *resource) { mutex_release(((struct mutex_resource *)resource)->mutex); }

static const struct resource_maker mutex_maker = {"mutex", sizeof(struct mutex_resource), mutex_init, mutex_destroy};

/* ---- the ops ---- */

status host_mutex(struct host_call *call) { return host_give_resource(call, &mutex_maker, NULL); }

status host_mutex_lock(struct host_call *call) {
  struct resource *resource;
  TRY(host_find_resource(call, 0, "mutex", &resource));
  struct mutex *m = ((struct mutex_resource *)resource)->mutex;
  pthread_mutex_lock(&m->lock);
  struct wait_entry *entry = wait_list_add(&m->waiting, call, 0);
  struct wait_entry *over = entry ? serve(m) : NULL;
  wait_list_settle(over, call);
  pthread_mutex_unlock(&m->lock);
  if (!entry)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  return wait_list_finish(over, call);
}

/* Keeps the lock until here. */
status host_mutex_consume(struct host_call *call) {
  struct object *hold;
  if (call->inputs[0].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "Expected input to be a scalar, saw shape: %s", shape_text(&call->inputs[0].shape));
  TRY(object_input(call, 0, &hold_kind, &hold));
  give_up((struct mutex_hold *)hold);
  return OK;
}
