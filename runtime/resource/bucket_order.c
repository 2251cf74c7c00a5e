/* bucket_order.c: a list with a link into it for each bucket. */
#include "runtime/resource/bucket_order.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FRONT = -1, EMPTY = -2, END = -1 };

void bucket_order_deinit(struct bucket_order *o) {
  free(o->nodes);
  free(o->before);
  memset(o, 0, sizeof *o);
}

/* The sizes a map grows through: the first prime of a fixed table at or above twice the old size. Beyond the table twice
 * the size and one: the order is then one of many. */
static uint64_t next_size(uint64_t least) {
  static const uint64_t sizes[] = {13,    29,    59,    127,    257,    541,    1109,    2357,    5087,    10273,
                                   20753, 42043, 85229, 172933, 351061, 712697, 1447153, 2938679, 5967347, 12117689};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (sizes[i] >= least)
      return sizes[i];
  return least | 1;
}

static int64_t *link_at(struct bucket_order *o, int64_t before) { return before == FRONT ? &o->first : &o->nodes[before].next; }
static uint64_t bucket_of(const struct bucket_order *o, int64_t entry) { return o->nodes[entry].hash % o->bucket_count; }

static void put(struct bucket_order *o, int64_t entry) {
  uint64_t bucket = bucket_of(o, entry);
  if (o->before[bucket] != EMPTY) {
    int64_t *link = link_at(o, o->before[bucket]);
    o->nodes[entry].next = *link;
    *link = entry;
    return;
  }
  o->nodes[entry].next = o->first;
  if (o->first != END)
    o->before[bucket_of(o, o->first)] = entry;
  o->first = entry;
  o->before[bucket] = FRONT;
}

static status resize(struct bucket_order *o, uint64_t size) {
  int64_t *before = malloc(size * sizeof *before);
  if (!before)
    return fail(RESOURCE_EXHAUSTED, "no memory for a table of %llu buckets", (unsigned long long)size);
  for (uint64_t i = 0; i < size; i++)
    before[i] = EMPTY;
  free(o->before);
  o->before = before;
  o->bucket_count = size;
  int64_t entry = o->first;
  o->first = END;
  while (entry != END) {
    int64_t next = o->nodes[entry].next;
    put(o, entry);
    entry = next;
  }
  return OK;
}

static status reserve(struct bucket_order *o, int64_t entry) {
  if (entry < o->room)
    return OK;
  int64_t room = entry * 2 + 16;
  struct bucket_node *nodes = realloc(o->nodes, (size_t)room * sizeof *nodes);
  if (!nodes)
    return fail(RESOURCE_EXHAUSTED, "no memory for a table of %lld entries", (long long)room);
  o->nodes = nodes;
  o->room = room;
  return OK;
}

status bucket_order_add(struct bucket_order *o, int64_t entry, uint64_t hash) {
  TRY(reserve(o, entry));
  if (o->count == 0)
    o->first = END;
  if (!o->before || (uint64_t)o->count + 1 > o->bucket_count)
    TRY(resize(o, next_size(o->before ? o->bucket_count * 2 : 12)));
  o->nodes[entry].hash = hash;
  put(o, entry);
  o->count++;
  return OK;
}

void bucket_order_remove(struct bucket_order *o, int64_t entry) {
  uint64_t bucket = bucket_of(o, entry);
  int64_t before = o->before[bucket];
  while (*link_at(o, before) != entry)
    before = *link_at(o, before);
  int64_t next = o->nodes[entry].next;
  bool was_first = before == o->before[bucket], last_of_bucket = next == END || bucket_of(o, next) != bucket;
  if (next != END && bucket_of(o, next) != bucket)
    o->before[bucket_of(o, next)] = before;
  if (was_first && last_of_bucket)
    o->before[bucket] = EMPTY;
  *link_at(o, before) = next;
  o->count--;
}

void bucket_order_renumber(struct bucket_order *o, const int64_t *numbers, int64_t count) {
  for (int64_t entry = bucket_order_first(o), next; entry >= 0; entry = next) {
    next = o->nodes[entry].next;
    o->nodes[entry].next = next >= 0 ? numbers[next] : END;
  }
  for (uint64_t i = 0; i < o->bucket_count; i++)
    o->before[i] = o->before[i] >= 0 ? numbers[o->before[i]] : o->before[i];
  o->first = o->count ? numbers[o->first] : END;
  for (int64_t i = 0; i < count; i++)
    o->nodes[numbers[i]] = o->nodes[i];
}

void bucket_order_clear(struct bucket_order *o) {
  for (uint64_t i = 0; o->before && i < o->bucket_count; i++)
    o->before[i] = EMPTY;
  o->first = END;
  o->count = 0;
}
