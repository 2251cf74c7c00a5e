/* vec.c: doubling growth. */
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
  uint32_t wanted = *capacity < 4 ? 8 : *capacity > UINT32_MAX / 2 ? UINT32_MAX : *capacity * 2;
  if (wanted < needed)
    wanted = needed;
  void *grown = reallocarray(items, wanted, item_size);
  if (!grown) {
    fprintf(stderr, "error: RESOURCE_EXHAUSTED: out of memory: %u items of %zu bytes asked for\n", wanted, item_size);
    exit(65);
  }
  *capacity = wanted;
  return grown;
}
