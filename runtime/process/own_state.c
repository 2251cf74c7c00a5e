/* own_state.c: see own_state.h. */
#include "runtime/process/own_state.h"

#include <stdio.h>

#include "runtime/checkpoint/task_note.h"

void own_state_deinit(struct own_state *own) {
  driver_states_clear(&own->noted);
  driver_states_clear(&own->offered);
  wire_buffer_free(&own->born);
  wire_buffer_free(&own->marked);
  wire_buffer_free(&own->first);
}

static status keep(struct own_state *own, struct wire_buffer *out) {
  wire_buffer_free(out);
  task_own_write(own->task, out);
  return out->is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for what the task has of its own") : OK;
}

status own_state_born(struct own_state *own) { return keep(own, &own->born); }
status own_state_rebirth(struct own_state *own) { return task_own_draw_again(own->task, own->born.data, own->born.size); }
status own_state_mark(struct own_state *own) { return keep(own, &own->marked); }
status own_state_back(struct own_state *own) { return task_own_draw_again(own->task, own->marked.data, own->marked.size); }
status own_state_first(struct own_state *own) { return keep(own, &own->first); }

status own_state_note(struct own_state *own, uint32_t command, uint64_t serial, const struct driver_state **out) {
  struct wire_buffer bytes = {0};
  *out = NULL;
  task_own_write(own->task, &bytes);
  if (bytes.is_bad || bytes.size == 0) {
    wire_buffer_free(&bytes);
    return bytes.is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for what the task has of its own") : OK;
  }
  driver_states_clear(&own->noted);
  status result = driver_states_put(
    &own->noted, &(struct driver_state){.command = command, .serial = serial, .size = bytes.size, .data = (char *)bytes.data});
  bool is_too_large = bytes.size > DRIVER_STATE_MAX;
  wire_buffer_free(&bytes);
  TRY(result);
  if (is_too_large && !own->is_too_large)
    fprintf(stderr, "%s: its random generators and iterators are too many to be kept by others: killed, it begins with them anew\n",
            task_name(own->task));
  own->is_too_large = is_too_large;
  *out = is_too_large ? NULL : &own->noted.items.items[0];
  return OK;
}

status own_state_offer(struct own_state *own, const struct driver_state *state) { return driver_states_put(&own->offered, state); }

status own_state_resume(struct own_state *own, uint32_t command, uint64_t serial, uint64_t ended, bool *is_early) {
  const struct driver_state *state = driver_state_choose(&own->noted, command, serial, ended);
  if (!state || state->serial != serial)
    state = driver_state_choose(&own->offered, command, serial, ended);
  *is_early = state && state->command == command && state->serial != serial;
  if (state)
    return task_own_apply(own->task, state->data, state->size);
  if (serial == 1)
    return task_own_apply(own->task, own->first.data, own->first.size);
  if (own->first.size == 0 || own->first.size > DRIVER_STATE_MAX || own->is_too_large)
    return OK; /* none, or said */
  return fail(ABORTED, "nobody has kept where its random generators and iterators were before step %llu", (unsigned long long)serial);
}
