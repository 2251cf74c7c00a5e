/* vec.h: growing arrays. VEC(int) v = {0}; vec_push(&v, 3); v.items[0]; v.count; vec_free(&v);
 * Running out of memory ends the program, as with arenas. */
#ifndef TFC_BASE_VEC_H
#define TFC_BASE_VEC_H

#include <stddef.h>
#include <stdint.h>

#define VEC(type)      \
  struct {             \
    type *items;       \
    uint32_t count;    \
    uint32_t capacity; \
  }

void *vec_grow(void *items, uint32_t *capacity, uint32_t needed, size_t item_size);

#define vec_reserve(v, n) ((v)->items = vec_grow((v)->items, &(v)->capacity, (uint32_t)(n), sizeof *(v)->items))
#define vec_push(v, ...)                      \
  do {                                        \
    vec_reserve((v), (v)->count + 1);         \
    (v)->items[(v)->count++] = (__VA_ARGS__); \
  } while (0)
#define vec_last(v) ((v)->items[(v)->count - 1])
#define vec_free(v) (vec_grow((v)->items, NULL, 0, 0), (v)->items = NULL, (v)->count = (v)->capacity = 0)

#endif
