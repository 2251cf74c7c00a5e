/* iterator_place.c: a resource beside the iterator's, of the same name: it is there before the iterator is, and
 * outlives it. */
#include "runtime/data/iterator_place.h"

#include <stdatomic.h>

static status place_init(struct resource *resource, void *argument) {
  (void)argument;
  atomic_store(&((struct iterator_place *)resource)->given, -1);
  return OK;
}
static void place_destroy(struct resource *resource) { (void)resource; }

static const struct resource_maker place_maker = {"iterator_place", sizeof(struct iterator_place), place_init, place_destroy};

status iterator_place_get(struct container *container, const char *space, const char *name, struct iterator_place **out) {
  struct resource *resource;
  bool is_new;
  TRY(container_get(container, space, name, &place_maker, NULL, &is_new, &resource));
  *out = (struct iterator_place *)resource;
  return OK;
}

struct visit {
  void (*found)(void *self, const char *space, const char *name, int64_t given);
  void *self;
};

static void visit_place(void *self, struct resource *resource) {
  const struct visit *visit = self;
  const struct iterator_place *place = (struct iterator_place *)resource;
  int64_t given = atomic_load(&place->given), skip = atomic_load(&place->skip);
  if (given >= 0 || skip > 0)
    visit->found(visit->self, resource->container, resource->name, given > skip ? given : skip);
}

void iterator_place_each(struct container *container, void (*found)(void *self, const char *space, const char *name, int64_t given),
                         void *self) {
  container_each(container, "iterator_place", visit_place, &(struct visit){found, self});
}

struct choice {
  bool (*is_kept)(void *self, const char *space, const char *name);
  void *self;
};

static void reset_place(void *self, struct resource *resource) {
  const struct choice *choice = self;
  struct iterator_place *place = (struct iterator_place *)resource;
  if (choice->is_kept && choice->is_kept(choice->self, resource->container, resource->name))
    return;
  atomic_store(&place->given, -1);
  atomic_store(&place->skip, 0);
}

void iterator_places_keep(struct container *container, bool (*is_kept)(void *self, const char *space, const char *name), void *self) {
  container_each(container, "iterator_place", reset_place, &(struct choice){is_kept, self});
}

void iterator_places_reset(struct container *container) { iterator_places_keep(container, NULL, NULL); }

status iterator_place_restore(struct container *container, const char *space, const char *name, int64_t given) {
  struct iterator_place *place;
  if (given < 0)
    return fail(DATA_LOSS, "the place of iterator '%s' is %lld", name, (long long)given);
  TRY(iterator_place_get(container, space, name, &place));
  atomic_store(&place->given, -1);
  atomic_store(&place->skip, given);
  return OK;
}
