/* master_step.c: one run of a client. */
#include "runtime/master/master_step.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/master/master_match.h"
#include "runtime/value/tensor_message.h"

/* ---- names ---- */

status step_name_add(struct step_names *names, name_list *list, const struct wire_field *field) {
  if (field->type != WIRE_BYTES)
    return fail(INVALID_ARGUMENT, "a request with a name that is none");
  if (names->feeds.count + names->fetches.count + names->targets.count >= LIMIT_MASTER_NAMES)
    return fail(RESOURCE_EXHAUSTED, "a run may have %d feeds, fetches and targets", LIMIT_MASTER_NAMES);
  if (field->size > LIMIT_MASTER_NAME_BYTES)
    return fail(RESOURCE_EXHAUSTED, "a name of %zu bytes", field->size);
  char *name = strndup((const char *)field->data, field->size);
  if (!name)
    return fail(RESOURCE_EXHAUSTED, "no memory for a name");
  vec_push(list, name);
  return OK;
}

static void list_free(name_list *list) {
  for (uint32_t i = 0; i < list->count; i++)
    free(list->items[i]);
  vec_free(list);
}

void step_names_deinit(struct step_names *names) {
  list_free(&names->feeds);
  list_free(&names->fetches);
  list_free(&names->targets);
}

static size_t list_bytes(const name_list *list) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < list->count; i++)
    bytes += strlen(list->items[i]) + 1 + sizeof *list->items;
  return bytes;
}

size_t step_names_bytes(const struct step_names *names) {
  return list_bytes(&names->feeds) + list_bytes(&names->fetches) + list_bytes(&names->targets);
}

uint32_t name_list_find(const name_list *list, const char *name) {
  for (uint32_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i], name) == 0)
      return i;
  return UINT32_MAX;
}

/* ---- reading ---- */

static status feed_add(const struct wire_field *field, struct step_request *out) {
  struct wire_field name = {.type = WIRE_BYTES, .data = (const uint8_t *)""}, inner;
  struct wire value = wire_over(NULL, 0), wire = wire_inside(field);
  while (wire_next(&wire, &inner)) {
    if (inner.number == 1)
      name = inner;
    else if (inner.number == 2)
      value = wire_inside(&inner);
  }
  if (wire.is_bad)
    return fail(INVALID_ARGUMENT, "a RunStepRequest that is none");
  TRY(step_name_add(&out->names, &out->names.feeds, &name));
  vec_push(&out->feed_values, value);
  return OK;
}

static status field_take(const struct wire_field *field, struct step_request *out) {
  switch (field->number) {
  case 1: out->session = *field; return field->type == WIRE_BYTES ? OK : fail(INVALID_ARGUMENT, "a RunStepRequest that is none");
  case 2: return feed_add(field, out);
  case 3: return step_name_add(&out->names, &out->names.fetches, field);
  case 4: return step_name_add(&out->names, &out->names.targets, field);
  case 5: run_options_read(wire_inside(field), &out->options); return OK;
  case 6: out->partial = *field; return OK;
  case 7: out->stores_errors = field->value != 0; return OK;
  case 8: out->request_id = field->value; return OK;
  default: return OK;
  }
}

status step_request_read(struct wire wire, struct step_request *out) {
  struct wire_field field;
  *out = (struct step_request){.request_id = 0};
  while (wire_next(&wire, &field))
    TRY(field_take(&field, out));
  return wire.is_bad ? fail(INVALID_ARGUMENT, "a RunStepRequest that is none") : OK;
}

void step_request_deinit(struct step_request *request) {
  step_names_deinit(&request->names);
  vec_free(&request->feed_values);
}

/* ---- running ---- */

status step_match(const struct master_config *config, const struct session_view *view, const struct step_names *names, uint32_t *entry) {
  struct master_request request = {(const char *const *)names->feeds.items,
                                   (const char *const *)names->fetches.items,
                                   (const char *const *)names->targets.items,
                                   names->feeds.count,
                                   names->fetches.count,
                                   names->targets.count};
  TRY(master_request_check(config, view->known, &request));
  TRY(master_match(config, &request, entry));
  return session_sees_entry(config, view->visible, *entry);
}

uint32_t entry_port(const struct master_port *ports, uint32_t count, const char *tensor) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(ports[i].tensor, tensor) == 0)
      return i;
  return UINT32_MAX;
}

static status feeds_read(const struct master_entry *entry, const struct step_run *run, struct tensor **feeds) {
  for (uint32_t i = 0; i < entry->feed_count; i++) {
    uint32_t from = name_list_find(&run->names->feeds, entry->feeds[i].tensor);
    status code = tensor_message_read(run->feed_values[from], &feeds[i]);
    if (code != OK)
      return status_prefix(code, "the feed of %s: ", entry->feeds[i].tensor);
  }
  return OK;
}

/* The entry's fetches in the order of those asked for; the others are dropped. */
static status fetches_sort(const struct master_entry *entry, struct tensor **fetches, struct step_run *run) {
  const name_list *wanted = &run->names->fetches;
  run->fetches = calloc((size_t)wanted->count + 1, sizeof *run->fetches);
  for (uint32_t i = 0; run->fetches && i < wanted->count; i++)
    run->fetches[i] = tensor_retain(fetches[entry_port(entry->fetches, entry->fetch_count, wanted->items[i])]);
  for (uint32_t i = 0; i < entry->fetch_count; i++)
    tensor_release(fetches[i]);
  return run->fetches ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a step");
}

status step_run(const struct master_config *config, struct step_run *run) {
  const struct master_entry *entry = &config->entries[run->entry];
  struct tensor **feeds = calloc((size_t)entry->feed_count + 1, sizeof *feeds);
  struct tensor **fetches = calloc((size_t)entry->fetch_count + 1, sizeof *fetches);
  struct master_run call = {.entry = run->entry,
                            .feeds = feeds,
                            .fetches = fetches,
                            .cancelled = run->cancelled,
                            .seen = run->seen,
                            .traces = run->options->traces,
                            .wants_graphs = run->options->wants_graphs,
                            .reports_memory = run->options->reports_memory,
                            .metadata = &run->metadata};
  status code = feeds && fetches ? feeds_read(entry, run, feeds) : fail(RESOURCE_EXHAUSTED, "no memory for a step");
  if (code == OK)
    code = config->run(config->self, &call);
  if (code == OK)
    code = fetches_sort(entry, fetches, run);
  for (uint32_t i = 0; feeds && i < entry->feed_count; i++)
    tensor_release(feeds[i]);
  free(feeds);
  free(fetches);
  return code;
}

void step_run_deinit(struct step_run *run) {
  for (uint32_t i = 0; run->fetches && i < run->names->fetches.count; i++)
    tensor_release(run->fetches[i]);
  free(run->fetches);
  wire_buffer_free(&run->metadata);
}

status step_write(struct step_run *run, struct wire_buffer *out) {
  for (uint32_t i = 0; i < run->names->fetches.count; i++)
    tensor_message_write(out, 1, run->names->fetches.items[i], run->fetches[i]);
  if (run->metadata.size > 0)
    wire_put_message(out, 2, &run->metadata);
  return out->is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for the fetched tensors") : OK;
}

void step_write_error(status code, const char *text, struct wire_buffer *out) {
  wire_put_varint(out, 3, (uint64_t)code);
  wire_put_text(out, 4, text);
}
