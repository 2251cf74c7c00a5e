/* map.h: from strings to 32-bit numbers; open addressing, insertion order kept for walks (so outputs have no hash order).
 * Keys are kept by reference. Not safe for two threads at once. */
#ifndef TFC_BASE_MAP_H
#define TFC_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
  const char *key;
  uint64_t hash;
  uint32_t value;
};
struct map {
  struct map_entry *entries; /* in insertion order */
  uint32_t count, capacity;
  uint32_t *slots; /* index into entries + 1, 0: free */
  uint32_t slot_count;
};

void map_deinit(struct map *map);
/* Sets key to value; returns false when the key was there already (the value is then unchanged). */
bool map_insert(struct map *map, const char *key, uint32_t value);
/* Sets key to value whether or not it was there. */
void map_set(struct map *map, const char *key, uint32_t value);
bool map_find(const struct map *map, const char *key, uint32_t *value);
/* The hash used here and wherever bytes are hashed: 64-bit FNV-1a, finished with a multiply and shifts. */
uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);

#endif
