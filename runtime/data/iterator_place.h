/* iterator_place.h: how far an iterator with a name has come: what a checkpoint holds of it. Restored, it gives from
 * the first element on what comes behind those. Threads: any; `place` belongs to who holds the iterator. */
#ifndef TFC_RUNTIME_DATA_ITERATOR_PLACE_H
#define TFC_RUNTIME_DATA_ITERATOR_PLACE_H

#include "runtime/memory/container.h"

struct iterator_place {
  struct resource resource;
  _Atomic int64_t given; /* elements since it was made; -1: it is not made yet */
  _Atomic int64_t skip;  /* elements that are still to be passed over */
};

/* That of the iterator of this name, made when it is missing. */
status iterator_place_get(struct container *container, const char *space, const char *name, struct iterator_place **out);
void iterator_place_each(struct container *container, void (*found)(void *self, const char *space, const char *name, int64_t given),
                         void *self);
/* All begin again. */
void iterator_places_reset(struct container *container);
/* Those that `is_kept` does not want do; it calls nothing here. */
void iterator_places_keep(struct container *container, bool (*is_kept)(void *self, const char *space, const char *name), void *self);
status iterator_place_restore(struct container *container, const char *space, const char *name, int64_t given);

#endif
