/* map.c: linear probing over indices, so that growing moves 4 bytes a slot and the entries stay in insertion order. */
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed) {
  const unsigned char *p = data;
  uint64_t h = UINT64_C(0xcbf29ce484222325) ^ seed;
  for (size_t i = 0; i < size; i++)
    h = (h ^ p[i]) * UINT64_C(0x100000001b3);
  h ^= h >> 32;
  h *= UINT64_C(0xd6e8feb86659fd93);
  h ^= h >> 32;
  return h;
}

void map_deinit(struct map *map) {
  free(map->entries);
  free(map->slots);
  *map = (struct map){0};
}

static void *grown(void *old, size_t count, size_t size) {
  void *p = reallocarray(old, count, size);
  if (!p) {
    fprintf(stderr, "error: RESOURCE_EXHAUSTED: out of memory: a map of %zu entries\n", count);
    exit(65);
  }
  return p;
}

static uint32_t *slot_of(const struct map *map, const char *key, uint64_t hash) {
  uint32_t mask = map->slot_count - 1;
  for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
    uint32_t *slot = &map->slots[i];
    if (!*slot)
      return slot;
    const struct map_entry *entry = &map->entries[*slot - 1];
    if (entry->hash == hash && !strcmp(entry->key, key))
      return slot;
  }
}

static void slots_grow(struct map *map) {
  uint32_t count = map->slot_count ? map->slot_count * 2 : 16;
  map->slots = grown(map->slots, count, sizeof *map->slots);
  memset(map->slots, 0, count * sizeof *map->slots);
  map->slot_count = count;
  for (uint32_t i = 0; i < map->count; i++) {
    uint32_t at = (uint32_t)map->entries[i].hash & (count - 1);
    while (map->slots[at])
      at = (at + 1) & (count - 1);
    map->slots[at] = i + 1;
  }
}

/* The entry of the key, made when absent. */
static struct map_entry *entry_for(struct map *map, const char *key, bool *made) {
  if ((uint64_t)map->count * 4 + 4 > (uint64_t)map->slot_count * 3)
    slots_grow(map);
  uint64_t hash = hash_bytes(key, strlen(key), 0);
  uint32_t *slot = slot_of(map, key, hash);
  *made = !*slot;
  if (*slot)
    return &map->entries[*slot - 1];
  if (map->count == map->capacity) {
    map->capacity = map->capacity ? map->capacity * 2 : 16;
    map->entries = grown(map->entries, map->capacity, sizeof *map->entries);
  }
  map->entries[map->count] = (struct map_entry){.key = key, .hash = hash};
  *slot = ++map->count;
  return &map->entries[map->count - 1];
}

bool map_insert(struct map *map, const char *key, uint32_t value) {
  bool made;
  struct map_entry *entry = entry_for(map, key, &made);
  if (made)
    entry->value = value;
  return made;
}

void map_set(struct map *map, const char *key, uint32_t value) {
  bool made;
  entry_for(map, key, &made)->value = value;
}

bool map_find(const struct map *map, const char *key, uint32_t *value) {
  if (!map->slot_count)
    return false;
  uint32_t *slot = slot_of(map, key, hash_bytes(key, strlen(key), 0));
  if (!*slot)
    return false;
  *value = map->entries[*slot - 1].value;
  return true;
}
