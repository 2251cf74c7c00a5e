/* vec.c: growing by half, at least to 8. */
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>

void *vec_grow(void *items, uint32_t *capacity, uint32_t needed, size_t item_size) {
  if (!capacity) {
    free(items);
    return NULL;
  }
  if (needed <= *capacity)
    return items;
  uint64_t next = (uint64_t)*capacity + *capacity / 2;
  next = next < 8 ? 8 : next;
  next = next < needed ? needed : next;
  void *p = next > UINT32_MAX ? NULL : realloc(items, next * item_size);
  if (!p) {
    fprintf(stderr, "error: RESOURCE_EXHAUSTED: out of memory (%llu items)\n", (unsigned long long)next);
    exit(70);
  }
  *capacity = (uint32_t)next;
  return p;
}
