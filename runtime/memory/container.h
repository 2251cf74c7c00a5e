/* container.h: what host functions share by name for as long as the task lives: queues, tables, files, random states.
 *
 * A resource is found by container, name and kind; the first who asks makes it. Handles are numbers, so that a value of
 * dtype resource says nothing about addresses. Threads: any.
 */
#ifndef TFC_RUNTIME_MEMORY_CONTAINER_H
#define TFC_RUNTIME_MEMORY_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

#define RESOURCE_WAIT_DRIVERS 16

/* Why somebody has to wait in a resource, for people. */
struct resource_wait {
  char text[128];                          /* "queue 'q' holds 0 elements" */
  bool is_round;                           /* the drivers have come, all others have to; else: they may end the wait */
  uint32_t drivers[RESOURCE_WAIT_DRIVERS]; /* tasks whose steps did, or have come */
  uint32_t driver_count;
};

struct resource {
  char *container, *name, *key;               /* the key: all that it is found by */
  const char *kind;                           /* "queue": a literal */
  int64_t handle;                             /* from 1 */
  _Atomic bool is_destroyed;                  /* nobody finds it any more */
  void (*destroy)(struct resource *resource); /* frees all but the fields above and the struct itself */
  /* Whether a call waits here, and why; NULL: nothing waits in such a resource. Takes its lock, no other. Set by `init`. */
  bool (*explain)(struct resource *resource, const void *call, struct resource_wait *out);
};
struct container;
/* So begins the name of one that its node alone uses. */
#define RESOURCE_PRIVATE "_0_"

status container_create(struct container **out);
/* Destroys all resources. Accepts NULL. */
void container_destroy(struct container *container);

/* How to make one: an object of `size` bytes that starts with a struct resource. */
struct resource_maker {
  const char *kind;
  size_t size;
  status (*init)(struct resource *resource, void *argument);
  void (*destroy)(struct resource *resource);
};
/* A resource of its own, which no container knows and no handle names (its handle is 0). */
status resource_create(const struct resource_maker *maker, void *argument, const char *name, struct resource **out);
void resource_release(struct resource *resource);
/* Finds (container, name, kind) or makes it; *is_new tells which. */
status container_get(struct container *container, const char *space, const char *name, const struct resource_maker *maker, void *argument,
                     bool *is_new, struct resource **out);
/* Calls back for each resource of a kind; no resource is made meanwhile. */
void container_each(struct container *container, const char *kind, void (*found)(void *self, struct resource *resource), void *self);
/* In which of them a call (host.h) waits, and why. False: in none. */
bool container_explain(struct container *container, const void *call, struct resource_wait *out);
/* Nobody finds the resources of this container any more. */
void container_forget(struct container *container, const char *space);
/* NOT_FOUND when there is no such handle, or it is destroyed; INVALID_ARGUMENT when it is of another kind (kind NULL: any). */
status container_find(struct container *container, int64_t handle, const char *kind, struct resource **out);

#endif
