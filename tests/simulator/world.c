/* world.c: time, chance and the story of a run. */
#include "tests/simulator/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"

struct happening {
  uint64_t at_ns, order, number;
  void (*run)(void *self, uint64_t number);
  void *self;
};

static struct {
  uint64_t now_ns, order, turns;
  struct random random;
  struct world_manner manner;
  VEC(struct happening) heap;
  char *story;
  size_t story_size, story_room;
} world;

/* ---- chance ---- */

uint64_t random_next(struct random *random) { /* splitmix64 */
  uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

uint64_t random_below(struct random *random, uint64_t below) { return below ? random_next(random) % below : 0; }

void world_begin(uint64_t seed, char *story, size_t story_room) {
  world.random.state = seed * UINT64_C(0xd1342543de82ef95) + 1;
  world.now_ns = 1000 * WORLD_S + random_below(&world.random, WORLD_S);
  world.story = story;
  world.story_room = story_room;
  world.story[0] = 0;
}

struct world_manner *world_manner(void) {
  return &world.manner;
}
struct random *world_random(void) {
  return &world.random;
}
uint64_t world_now(void) { return world.now_ns; }
uint64_t world_turns(void) { return world.turns; }

/* Computing takes time, too: who asks the clock again and again sees it move. */
void world_count_turn(void) {
  world.turns++;
  world.now_ns += 500;
}

/* ---- what is to happen ---- */

static bool is_before(const struct happening *a, const struct happening *b) {
  return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(uint32_t a, uint32_t b) {
  struct happening kept = world.heap.items[a];
  world.heap.items[a] = world.heap.items[b];
  world.heap.items[b] = kept;
}

void world_after(uint64_t delay_ns, void (*run)(void *self, uint64_t number), void *self, uint64_t number) {
  vec_push(&world.heap, (struct happening){world.now_ns + delay_ns, world.order++, number, run, self});
  for (uint32_t at = world.heap.count - 1; at && is_before(&world.heap.items[at], &world.heap.items[(at - 1) / 2]); at = (at - 1) / 2)
    swap(at, (at - 1) / 2);
}

static struct happening take_first(void) {
  struct happening first = world.heap.items[0];
  world.heap.items[0] = world.heap.items[--world.heap.count];
  for (uint32_t at = 0;;) {
    uint32_t least = at;
    for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < world.heap.count; child++)
      if (is_before(&world.heap.items[child], &world.heap.items[least]))
        least = child;
    if (least == at)
      return first;
    swap(at, least);
    at = least;
  }
}

bool world_advance(uint64_t until_ns) {
  if (world.heap.count == 0 || world.heap.items[0].at_ns > until_ns)
    return false;
  struct happening next = take_first();
  if (next.at_ns > world.now_ns)
    world.now_ns = next.at_ns;
  next.run(next.self, next.number);
  return true;
}

/* ---- the story ---- */

void world_say(const char *who, const char *format, ...) {
  char line[1024];
  int size = snprintf(line, sizeof line, "%12.6f %-10s ", (double)(world.now_ns - 1000 * WORLD_S) / 1e9, who);
  va_list arguments;
  va_start(arguments, format);
  size += vsnprintf(line + size, sizeof line - (size_t)size, format, arguments);
  va_end(arguments);
  if (size > (int)sizeof line - 2)
    size = (int)sizeof line - 2;
  while (size > 0 && line[size - 1] == '\n')
    size--;
  line[size++] = '\n';
  if (!world.story || world.story_size + (size_t)size >= world.story_room)
    return; /* what comes after so much is seldom news */
  memcpy(world.story + world.story_size, line, (size_t)size);
  world.story_size += (size_t)size;
  world.story[world.story_size] = 0;
}
