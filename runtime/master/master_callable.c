/* master_callable.c: callables in a list: a client makes a few. */
#include "runtime/master/master_callable.h"

#include <stdlib.h>
#include <string.h>

static size_t kept_bytes; /* of all callables of this process; under the master's lock */

static status option_take(const struct wire_field *field, struct step_names *names, struct run_options *options) {
  switch (field->number) {
  case 1: return step_name_add(names, &names->feeds, field);
  case 2: return step_name_add(names, &names->fetches, field);
  case 3: return step_name_add(names, &names->targets, field);
  case 4: run_options_read(wire_inside(field), options); return OK;
  case 5:
    return fail(UNIMPLEMENTED, "CallableOptions::tensor_connection is not supported: a tensor that takes another one's place makes "
                               "another graph; build that one");
  case 6:
  case 7:
    return fail(UNIMPLEMENTED, "CallableOptions::feed_devices and CallableOptions::fetch_devices to configure feeding/fetching tensors "
                               "to/from device memory is not yet supported when using a remote session.");
  default: return OK;
  }
}

status callable_options_read(struct wire wire, struct step_names *names, struct run_options *options) {
  struct wire_field field;
  while (wire_next(&wire, &field))
    TRY(option_take(&field, names, options));
  return wire.is_bad ? fail(INVALID_ARGUMENT, "CallableOptions that are none") : OK;
}

status callable_create(struct session *session, uint32_t entry, struct step_names *names, const struct run_options *options,
                       int64_t *handle) {
  size_t bytes = step_names_bytes(names) + sizeof(struct callable);
  if (session->callable_count >= LIMIT_MASTER_CALLABLES)
    return fail(RESOURCE_EXHAUSTED, "a session may have %d callables: release some", LIMIT_MASTER_CALLABLES);
  if (kept_bytes + bytes > (size_t)LIMIT_MASTER_KEPT_BYTES)
    return fail(RESOURCE_EXHAUSTED, "the callables of all clients need more than %lld bytes", (long long)LIMIT_MASTER_KEPT_BYTES);
  struct callable *callable = calloc(1, sizeof *callable);
  if (!callable)
    return fail(RESOURCE_EXHAUSTED, "no memory for a callable");
  *callable = (struct callable){.next = session->callables,
                                .handle = session->next_callable++,
                                .entry = entry,
                                .names = *names,
                                .options = *options,
                                .bytes = bytes,
                                .references = 1};
  *names = (struct step_names){.feeds = {0}};
  session->callables = callable;
  session->callable_count++;
  kept_bytes += bytes;
  *handle = callable->handle;
  return OK;
}

status callable_find(struct session *session, int64_t handle, struct callable **out) {
  for (struct callable *callable = session->callables; callable; callable = callable->next)
    if (callable->handle == handle) {
      callable->references++;
      *out = callable;
      return OK;
    }
  return fail(INVALID_ARGUMENT, "No such callable handle: %lld", (long long)handle);
}

void callable_release(struct callable *callable) {
  if (!callable || --callable->references > 0)
    return;
  kept_bytes -= callable->bytes;
  step_names_deinit(&callable->names);
  free(callable);
}

void callable_close(struct session *session, int64_t handle) {
  for (struct callable **at = &session->callables; *at; at = &(*at)->next)
    if ((*at)->handle == handle) {
      struct callable *callable = *at;
      *at = callable->next;
      session->callable_count--;
      callable_release(callable);
      return;
    }
}

void callables_destroy(struct session *session) {
  while (session->callables)
    callable_close(session, session->callables->handle);
}
