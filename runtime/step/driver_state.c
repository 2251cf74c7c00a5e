/* driver_state.c: see driver_state.h. */
#include "runtime/step/driver_state.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void driver_states_clear(struct driver_states *states) {
  for (uint32_t i = 0; i < states->items.count; i++)
    free(states->items.items[i].data);
  vec_free(&states->items);
}

static void remove_at(struct driver_states *states, uint32_t at) {
  free(states->items.items[at].data);
  states->items.count--;
  memmove(&states->items.items[at], &states->items.items[at + 1], (states->items.count - at) * sizeof *states->items.items);
}

static bool is_same(const struct driver_state *a, const struct driver_state *b) {
  return a->driver == b->driver && a->command == b->command && a->serial == b->serial;
}

/* One that comes again takes the place of the first, else the older of two goes. */
static void make_room(struct driver_states *states, const struct driver_state *state) {
  uint32_t count = 0, oldest = 0;
  for (uint32_t i = states->items.count; i-- > 0;) {
    if (is_same(&states->items.items[i], state)) {
      remove_at(states, i);
      return;
    }
    if (states->items.items[i].driver == state->driver) {
      oldest = i;
      count++;
    }
  }
  if (count > 1)
    remove_at(states, oldest);
}

status driver_states_put(struct driver_states *states, const struct driver_state *state) {
  struct driver_state kept = *state;
  kept.data = malloc(state->size + 1);
  if (!kept.data)
    return fail(RESOURCE_EXHAUSTED, "no memory for what a driver has of its own");
  memcpy(kept.data, state->data, state->size);
  make_room(states, state);
  vec_push(&states->items, kept);
  return OK;
}

const struct driver_state *driver_state_choose(const struct driver_states *states, uint32_t command, uint64_t serial, uint64_t ended) {
  const struct driver_state *found = NULL;
  for (uint32_t i = 0; i < states->items.count; i++) {
    const struct driver_state *state = &states->items.items[i];
    bool is_end = serial == 1 && state->command + 1 == command && state->serial == ended + 1;
    if (is_end || (state->command == command && state->serial == serial))
      return state;
    if (state->command == command && state->serial + 1 == serial)
      found = state;
  }
  return found;
}
