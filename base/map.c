/* map.c: open addressing over an array of entries in insertion order. */
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed) {
  const unsigned char *p = data;
  uint64_t h = UINT64_C(0xcbf29ce484222325) ^ (seed * UINT64_C(0x9e3779b97f4a7c15));
  for (size_t i = 0; i < size; i++)
    h = (h ^ p[i]) * UINT64_C(0x100000001b3);
  h ^= h >> 32;
  h *= UINT64_C(0xd6e8feb86659fd93);
  return h ^ (h >> 32);
}

void map_deinit(struct map *map) {
  free(map->entries);
  free(map->slots);
  *map = (struct map){0};
}

/* The slot that holds the key, or the free one where it would go. */
static uint32_t *slot_of(const struct map *map, const char *key, uint64_t hash) {
  uint32_t at = (uint32_t)hash & (map->slot_count - 1);
  for (;; at = (at + 1) & (map->slot_count - 1)) {
    uint32_t entry = map->slots[at];
    if (!entry || (map->entries[entry - 1].hash == hash && strcmp(map->entries[entry - 1].key, key) == 0))
      return &map->slots[at];
  }
}

static void rehash(struct map *map) {
  free(map->slots);
  map->slot_count = map->slot_count ? map->slot_count * 2 : 16;
  map->slots = calloc(map->slot_count, sizeof *map->slots);
  if (!map->slots) {
    fprintf(stderr, "error: RESOURCE_EXHAUSTED: out of memory (map of %u)\n", map->slot_count);
    exit(70);
  }
  for (uint32_t i = 0; i < map->count; i++) {
    uint32_t at = (uint32_t)map->entries[i].hash & (map->slot_count - 1);
    while (map->slots[at])
      at = (at + 1) & (map->slot_count - 1);
    map->slots[at] = i + 1;
  }
}

static bool put(struct map *map, const char *key, uint32_t value, bool replace) {
  if ((map->count + 1) * 2 > map->slot_count)
    rehash(map);
  uint64_t hash = hash_bytes(key, strlen(key), 0);
  uint32_t *slot = slot_of(map, key, hash);
  if (*slot) {
    if (replace)
      map->entries[*slot - 1].value = value;
    return false;
  }
  map->entries = vec_grow(map->entries, &map->capacity, map->count + 1, sizeof *map->entries);
  map->entries[map->count++] = (struct map_entry){key, hash, value};
  *slot = map->count;
  return true;
}
bool map_insert(struct map *map, const char *key, uint32_t value) { return put(map, key, value, false); }
void map_set(struct map *map, const char *key, uint32_t value) { put(map, key, value, true); }

bool map_find(const struct map *map, const char *key, uint32_t *value) {
  if (!map->slot_count)
    return false;
  uint32_t *slot = slot_of(map, key, hash_bytes(key, strlen(key), 0));
  if (*slot)
    *value = map->entries[*slot - 1].value;
  return *slot != 0;
}
