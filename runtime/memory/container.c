/* container.c: a list, by handle, and an index by container, name and kind. Who is destroyed stays in the list: steps may still use it. */
#include "runtime/memory/container.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

struct container {
  pthread_mutex_t lock;
  struct resource **items; /* handle - 1 */
  int64_t count, capacity;
  struct map found; /* by key: handle - 1 of the last one */
};

status container_create(struct container **out) {
  struct container *container = calloc(1, sizeof *container);
  if (!container)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  pthread_mutex_init(&container->lock, NULL);
  *out = container;
  return OK;
}

static void resource_free(struct resource *resource) {
  free(resource->container);
  free(resource->name);
  free(resource->key);
  free(resource);
}

void container_destroy(struct container *container) {
  if (!container)
    return;
  for (int64_t i = 0; i < container->count; i++) {
    container->items[i]->destroy(container->items[i]);
    resource_free(container->items[i]);
  }
  free(container->items);
  map_deinit(&container->found);
  pthread_mutex_destroy(&container->lock);
  free(container);
}

static status resource_make(const struct resource_maker *maker, void *argument, const char *space, const char *name,
                            struct resource **out) {
  struct resource *resource = calloc(1, maker->size);
  if (!resource)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  resource->container = strdup(space);
  resource->name = strdup(name);
  resource->kind = maker->kind;
  resource->destroy = maker->destroy;
  status result = resource->container && resource->name ? maker->init(resource, argument) : fail(RESOURCE_EXHAUSTED, "no memory");
  if (result == OK)
    *out = resource;
  else
    resource_free(resource);
  return result;
}

status resource_create(const struct resource_maker *maker, void *argument, const char *name, struct resource **out) {
  return resource_make(maker, argument, "", name, out);
}

void resource_release(struct resource *resource) {
  resource->destroy(resource);
  resource_free(resource);
}

static status container_add(struct container *container, const char *space, const char *name, const struct resource_maker *maker,
                            void *argument, struct resource **out) {
  if (container->count == container->capacity) {
    int64_t capacity = container->capacity * 2 + 16;
    struct resource **grown = realloc(container->items, (size_t)capacity * sizeof *grown);
    if (!grown)
      return fail(RESOURCE_EXHAUSTED, "no memory");
    container->items = grown;
    container->capacity = capacity;
  }
  struct resource *resource;
  TRY(resource_make(maker, argument, space, name, &resource));
  resource->handle = container->count + 1;
  container->items[container->count++] = resource;
  *out = resource;
  return OK;
}

#define KEY "%s %zu %s %s" /* kind, length of the container's name, container, name */

static status get_locked(struct container *container, const char *space, const char *name, const char *key,
                         const struct resource_maker *maker, void *argument, bool *is_new, struct resource **out) {
  uint32_t at;
  *is_new = !map_find(&container->found, key, &at) || container->items[at]->is_destroyed;
  if (!*is_new) {
    *out = container->items[at];
    return OK;
  }
  char *own = strdup(key);
  status result = own ? container_add(container, space, name, maker, argument, out) : fail(RESOURCE_EXHAUSTED, "no memory");
  if (result != OK) {
    free(own);
    return result;
  }
  (*out)->key = own;
  map_set(&container->found, own, (uint32_t)((*out)->handle - 1));
  return OK;
}

status container_get(struct container *container, const char *space, const char *name, const struct resource_maker *maker, void *argument,
                     bool *is_new, struct resource **out) {
  char room[256], *key = room; /* enough for most: steps come here */
  int length = snprintf(room, sizeof room, KEY, maker->kind, strlen(space), space, name);
  if (length >= (int)sizeof room && asprintf(&key, KEY, maker->kind, strlen(space), space, name) < 0)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  pthread_mutex_lock(&container->lock);
  status result = get_locked(container, space, name, key, maker, argument, is_new, out);
  pthread_mutex_unlock(&container->lock);
  if (key != room)
    free(key);
  return result;
}

void container_each(struct container *container, const char *kind, void (*found)(void *self, struct resource *resource), void *self) {
  pthread_mutex_lock(&container->lock);
  for (int64_t i = 0; i < container->count; i++)
    if (strcmp(container->items[i]->kind, kind) == 0)
      found(self, container->items[i]);
  pthread_mutex_unlock(&container->lock);
}

bool container_explain(struct container *container, const void *call, struct resource_wait *out) {
  bool found = false;
  pthread_mutex_lock(&container->lock);
  for (int64_t i = 0; i < container->count && !found; i++)
    found = container->items[i]->explain && container->items[i]->explain(container->items[i], call, out);
  pthread_mutex_unlock(&container->lock);
  return found;
}

void container_forget(struct container *container, const char *space) {
  pthread_mutex_lock(&container->lock);
  for (int64_t i = 0; i < container->count; i++)
    if (strcmp(container->items[i]->container, space) == 0)
      container->items[i]->is_destroyed = true;
  pthread_mutex_unlock(&container->lock);
}

status container_find(struct container *container, int64_t handle, const char *kind, struct resource **out) {
  status result = OK;
  pthread_mutex_lock(&container->lock);
  if (handle < 1 || handle > container->count)
    result = fail(NOT_FOUND, "no %s has the handle %lld", kind ? kind : "resource", (long long)handle);
  else if (container->items[handle - 1]->is_destroyed)
    result = fail(NOT_FOUND, "Resource %s/%s does not exist.", container->items[handle - 1]->container, container->items[handle - 1]->name);
  else if (kind && strcmp(container->items[handle - 1]->kind, kind) != 0)
    result = fail(INVALID_ARGUMENT, "'%s' is a %s, not a %s", container->items[handle - 1]->name, container->items[handle - 1]->kind, kind);
  else
    *out = container->items[handle - 1];
  pthread_mutex_unlock(&container->lock);
  return result;
}
