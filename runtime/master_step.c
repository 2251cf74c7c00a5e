/* master_step.c: one Session.run of a client. */
#include "runtime/master_step.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/master_match.h"
#include "runtime/master_tensor.h"

/* ---- reading ---- */

static bool name_add(const struct wire_field *field, char ***items, uint32_t *count, uint32_t *capacity) {
  char *name = field->type == WIRE_BYTES ? strndup((const char *)field->data, field->size) : NULL;
  if (!name)
    return false;
  *items = vec_grow(*items, capacity, *count + 1, sizeof **items);
  (*items)[(*count)++] = name;
  return true;
}
#define NAME_ADD(field, list) name_add((field), &(list).items, &(list).count, &(list).capacity)

static bool feed_add(const struct wire_field *field, struct step_request *out) {
  struct wire_field name = {.type = WIRE_BYTES, .data = (const uint8_t *)""}, inner;
  struct wire value = wire_over(NULL, 0), wire = wire_inside(field);
  while (wire_next(&wire, &inner)) {
    if (inner.number == 1 && inner.type == WIRE_BYTES)
      name = inner;
    else if (inner.number == 2)
      value = wire_inside(&inner);
  }
  if (wire.is_bad || !NAME_ADD(&name, out->feeds))
    return false;
  vec_push(&out->feed_values, value);
  return true;
}

static void options_read(struct wire wire, struct step_request *out) {
  struct wire_field field;
  while (wire_next(&wire, &field))
    if (field.number == 2)
      out->timeout_ms = (int64_t)field.value;
}

static bool field_take(const struct wire_field *field, struct step_request *out) {
  switch (field->number) {
  case 1:
    out->session = *field;
    return field->type == WIRE_BYTES;
  case 2:
    return feed_add(field, out);
  case 3:
    return NAME_ADD(field, out->fetches);
  case 4:
    return NAME_ADD(field, out->targets);
  case 5:
    options_read(wire_inside(field), out);
    return true;
  case 6:
    out->is_partial = field->size > 0;
    return true;
  case 7:
    out->stores_errors = field->value != 0;
    return true;
  case 8:
    out->request_id = field->value;
    return true;
  default:
    return true;
  }
}

status step_request_read(struct wire wire, struct step_request *out) {
  struct wire_field field;
  *out = (struct step_request){.timeout_ms = 0};
  while (wire_next(&wire, &field)) {
    if (!field_take(&field, out))
      return fail(INVALID_ARGUMENT, "a RunStepRequest that is none");
    if (out->feeds.count + out->fetches.count + out->targets.count > LIMIT_MASTER_NAMES)
      return fail(RESOURCE_EXHAUSTED, "a run may have %d feeds, fetches and targets", LIMIT_MASTER_NAMES);
  }
  return wire.is_bad ? fail(INVALID_ARGUMENT, "a RunStepRequest that is none") : OK;
}

static void names_free(char **names, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    free(names[i]);
}

void step_request_deinit(struct step_request *request) {
  names_free(request->feeds.items, request->feeds.count);
  names_free(request->fetches.items, request->fetches.count);
  names_free(request->targets.items, request->targets.count);
  vec_free(&request->feeds);
  vec_free(&request->fetches);
  vec_free(&request->targets);
  vec_free(&request->feed_values);
}

/* ---- running ---- */

static uint32_t name_index(char *const *names, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0)
      return i;
  return UINT32_MAX;
}

static uint32_t port_index(const struct master_port *ports, uint32_t count, const char *tensor) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(ports[i].tensor, tensor) == 0)
      return i;
  return UINT32_MAX;
}

static status feeds_read(const struct master_entry *entry, const struct step_request *request, struct tensor **feeds) {
  for (uint32_t i = 0; i < entry->feed_count; i++) {
    uint32_t from = name_index(request->feeds.items, request->feeds.count, entry->feeds[i].tensor);
    status code = master_tensor_read(request->feed_values.items[from], &feeds[i]);
    if (code != OK)
      return status_prefix(code, "the feed of %s: ", entry->feeds[i].tensor);
  }
  return OK;
}

static status response_write(const struct master_entry *entry, const struct step_request *request, struct tensor *const *fetches,
                             struct wire_buffer *out) {
  for (uint32_t i = 0; i < request->fetches.count; i++) {
    uint32_t from = port_index(entry->fetches, entry->fetch_count, request->fetches.items[i]);
    master_tensor_write(out, 1, request->fetches.items[i], fetches[from]);
  }
  return out->is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for the fetched tensors") : OK;
}

static void tensors_release(struct tensor **tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    tensor_release(tensors[i]);
}

static status entry_run(const struct master_config *config, uint32_t number, const struct step_request *request,
                        const atomic_bool *cancelled, struct wire_buffer *out) {
  const struct master_entry *entry = &config->entries[number];
  struct tensor **feeds = calloc((size_t)entry->feed_count + 1, sizeof *feeds);
  struct tensor **fetches = calloc((size_t)entry->fetch_count + 1, sizeof *fetches);
  status code = feeds && fetches ? feeds_read(entry, request, feeds) : fail(RESOURCE_EXHAUSTED, "no memory for a step");
  if (code == OK)
    code = config->run(config->self, number, feeds, fetches, cancelled);
  if (code == OK) {
    code = response_write(entry, request, fetches, out);
    tensors_release(fetches, entry->fetch_count);
  }
  if (feeds)
    tensors_release(feeds, entry->feed_count);
  free(feeds);
  free(fetches);
  return code;
}

status step_run(const struct master_config *config, const uint8_t *known, const struct step_request *request,
                const atomic_bool *cancelled, struct wire_buffer *out) {
  struct master_request names = {(const char *const *)request->feeds.items, (const char *const *)request->fetches.items,
                                 (const char *const *)request->targets.items, request->feeds.count, request->fetches.count,
                                 request->targets.count};
  uint32_t entry = 0;
  TRY(master_request_check(config, known, &names));
  TRY(master_match(config, &names, &entry));
  return entry_run(config, entry, request, cancelled, out);
}

void step_write_error(status code, const char *text, struct wire_buffer *out) {
  wire_put_varint(out, 3, (uint64_t)code);
  wire_put_text(out, 4, text);
}
