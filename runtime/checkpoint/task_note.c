/* task_note.c: fields of protobuf's wire format, so that later versions may add some. */
#include "runtime/checkpoint/task_note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/iterator_place.h"
#include "runtime/memory/variable.h"
#include "runtime/program/fault.h"
#include "runtime/step/task_state.h"

enum { NOTE_ID = 1, NOTE_HOLDERS = 2, NOTE_STEPS = 3, NOTE_RANDOM = 4, NOTE_ITERATOR = 5, NOTE_LEDGER = 6, NOTE_DRIVER = 7 };
enum { ITEM_NAME = 1, ITEM_SPACE = 2, ITEM_VALUE = 3, ITEM_COMMAND = 4, ITEM_SERIAL = 5 };
#define NAME_MAX_BYTES 1024

/* ---- writing ---- */

static void put_random(struct wire_buffer *out, struct variable *variable) {
  struct wire_buffer item = {0};
  pthread_mutex_lock(&variable->lock);
  bool has_value = atomic_load(&variable->initialized);
  wire_put_text(&item, ITEM_NAME, variable->name);
  if (has_value)
    wire_put_bytes(&item, ITEM_VALUE, variable->value->data, (size_t)tensor_byte_size(variable->value));
  pthread_mutex_unlock(&variable->lock);
  if (has_value)
    wire_put_message(out, NOTE_RANDOM, &item);
  else
    wire_buffer_free(&item);
}

static void put_iterator(void *self, const char *space, const char *name, int64_t given) {
  struct wire_buffer item = {0};
  wire_put_text(&item, ITEM_NAME, name);
  wire_put_text(&item, ITEM_SPACE, space);
  wire_put_varint(&item, ITEM_VALUE, (uint64_t)given);
  wire_put_message(self, NOTE_ITERATOR, &item);
}

struct named_drivers {
  const struct program *program;
  struct wire_buffer *out;
};

static void put_ledger(struct task *task, struct wire_buffer *out) {
  struct ledger ledger = {0};
  out->is_bad = out->is_bad || commit_ledger(task, &ledger) != OK;
  size_t size = ledger_byte_size(&ledger);
  char *bytes = malloc(size + 1);
  out->is_bad = out->is_bad || !bytes;
  if (bytes && !FAULT(17)) {
    ledger_write(&ledger, bytes);
    wire_put_bytes(out, NOTE_LEDGER, bytes, size);
  }
  free(bytes);
  ledger_deinit(&ledger);
}

/* By the task's name: its number is another where tasks have been added. */
static void put_driver(void *self, const struct driver_state *state) {
  const struct named_drivers *drivers = self;
  const struct program_task *driver = program_task(drivers->program, state->driver);
  char name[NAME_MAX_BYTES];
  struct wire_buffer item = {0};
  snprintf(name, sizeof name, "%s_%u", program_text(drivers->program, driver->job), driver->index);
  wire_put_text(&item, ITEM_NAME, name);
  wire_put_varint(&item, ITEM_COMMAND, state->command);
  wire_put_varint(&item, ITEM_SERIAL, state->serial);
  wire_put_bytes(&item, ITEM_VALUE, state->data, state->size);
  wire_put_message(drivers->out, NOTE_DRIVER, &item);
}

void task_own_write(struct task *task, struct wire_buffer *out) {
  for (uint32_t i = 0; i < task->variable_count; i++)
    if (variable_is_random(&task->variables[i]))
      put_random(out, &task->variables[i]);
  iterator_place_each(task->container, put_iterator, out);
}

void task_note_write(struct task *task, const struct note_head *head, struct wire_buffer *out) {
  wire_put_fixed64(out, NOTE_ID, head->id);
  wire_put_varint(out, NOTE_HOLDERS, head->holders);
  wire_put_varint(out, NOTE_STEPS, (uint64_t)head->steps);
  task_own_write(task, out);
  put_ledger(task, out);
  commit_each_state(task, put_driver, &(struct named_drivers){task->program, out});
}

/* ---- reading ---- */

status task_note_read(const void *data, size_t size, struct note_head *out) {
  struct wire wire = wire_over(data, size);
  struct wire_field field;
  *out = (struct note_head){0};
  while (wire_next(&wire, &field)) {
    if (field.number == NOTE_ID)
      out->id = field.value;
    if (field.number == NOTE_HOLDERS)
      out->holders = (uint32_t)field.value;
    if (field.number == NOTE_STEPS)
      out->steps = (int64_t)field.value;
  }
  return wire.is_bad || out->steps < 0 ? fail(DATA_LOSS, "its note cannot be read") : OK;
}

status task_note_steps(const void *data, size_t size, struct ledger *out) {
  struct wire wire = wire_over(data, size);
  struct wire_field field;
  while (wire_next(&wire, &field))
    if (field.number == NOTE_LEDGER && field.type == WIRE_BYTES)
      return ledger_read(field.data, field.size, out);
  return OK;
}

status task_note_set_steps(void *data, size_t size, const struct ledger *steps) {
  struct wire wire = wire_over(data, size);
  struct wire_field field;
  while (wire_next(&wire, &field))
    if (field.number == NOTE_LEDGER && field.type == WIRE_BYTES && field.size == ledger_byte_size(steps)) {
      ledger_write(steps, (char *)data + ((const char *)field.data - (const char *)data));
      return OK;
    }
  return fail(NOT_FOUND, "the checkpoint says nothing of these steps");
}

struct note_item {
  char name[NAME_MAX_BYTES], space[NAME_MAX_BYTES];
  uint64_t value, command, serial;
  const uint8_t *bytes;
  size_t size;
};

static void read_item(const struct wire_field *field, struct note_item *out) {
  struct wire inside = wire_inside(field);
  struct wire_field part;
  memset(out, 0, sizeof *out);
  while (wire_next(&inside, &part)) {
    if (part.number == ITEM_NAME)
      snprintf(out->name, sizeof out->name, "%.*s", (int)(part.size < NAME_MAX_BYTES ? part.size : NAME_MAX_BYTES - 1),
               (const char *)part.data);
    if (part.number == ITEM_SPACE)
      snprintf(out->space, sizeof out->space, "%.*s", (int)(part.size < NAME_MAX_BYTES ? part.size : NAME_MAX_BYTES - 1),
               (const char *)part.data);
    if (part.number == ITEM_COMMAND)
      out->command = part.value;
    if (part.number == ITEM_SERIAL)
      out->serial = part.value;
    if (part.number != ITEM_VALUE)
      continue;
    out->value = part.value;
    out->bytes = part.type == WIRE_BYTES ? part.data : NULL;
    out->size = part.type == WIRE_BYTES ? part.size : 0;
  }
}

static void apply_random(struct task *task, const struct note_item *item) {
  for (uint32_t i = 0; i < task->variable_count; i++) {
    struct variable *variable = &task->variables[i];
    if (!variable_is_random(variable) || strcmp(variable->name, item->name) != 0)
      continue;
    pthread_mutex_lock(&variable->lock);
    if (variable->value && (size_t)tensor_byte_size(variable->value) == item->size) {
      variable_will_change(variable);
      memcpy(variable->value->data, item->bytes, item->size);
    }
    pthread_mutex_unlock(&variable->lock);
  }
}

static status apply_ledger(struct task *task, const struct wire_field *field, bool lacks_values) {
  struct ledger ledger = {0};
  TRY(ledger_read(field->data, field->size, &ledger));
  ledger.initialised = ledger.initialised && !lacks_values;
  status result = commit_restore(task, &ledger);
  task_reset_rounds(task);
  ledger_deinit(&ledger);
  return result;
}

/* Of a task that is not there any more: passed over. */
static status apply_driver(struct task *task, const struct note_item *item) {
  for (uint32_t i = 0; i < task->program->tables[PROGRAM_TASKS].count; i++) {
    const struct program_task *driver = program_task(task->program, i);
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s_%u", program_text(task->program, driver->job), driver->index);
    struct driver_state state = {i, (uint32_t)item->command, item->serial, item->size, (char *)item->bytes};
    if (strcmp(name, item->name) == 0 && item->bytes && item->size <= DRIVER_STATE_MAX)
      return commit_keep_state(task, &state);
  }
  return OK;
}

/* One that stands there already goes on: it need not begin again. */
static status apply_iterator(struct task *task, const struct note_item *item) {
  struct iterator_place *place;
  TRY(iterator_place_get(task->container, item->space, item->name, &place));
  if (atomic_load(&place->given) == (int64_t)item->value && atomic_load(&place->skip) == 0)
    return OK;
  return iterator_place_restore(task->container, item->space, item->name, (int64_t)item->value);
}

status task_own_draw_again(struct task *task, const void *data, size_t size) {
  struct wire wire = wire_over(data, size);
  struct wire_field field;
  struct note_item item;
  while (wire_next(&wire, &field)) {
    if (field.number != NOTE_RANDOM)
      continue;
    read_item(&field, &item);
    if (item.bytes)
      apply_random(task, &item);
  }
  return wire.is_bad ? fail(DATA_LOSS, "what a task has of its own cannot be read") : OK;
}

struct bytes {
  const void *data;
  size_t size;
};

static bool is_named(void *self, const char *space, const char *name) {
  const struct bytes *bytes = self;
  struct wire wire = wire_over(bytes->data, bytes->size);
  struct wire_field field;
  struct note_item item;
  while (wire_next(&wire, &field)) {
    if (field.number != NOTE_ITERATOR)
      continue;
    read_item(&field, &item);
    if (strcmp(item.space, space) == 0 && strcmp(item.name, name) == 0)
      return true;
  }
  return false;
}

status task_own_apply(struct task *task, const void *data, size_t size) {
  struct wire wire = wire_over(data, size);
  struct wire_field field;
  struct note_item item;
  TRY(task_own_draw_again(task, data, size));
  iterator_places_keep(task->container, is_named, &(struct bytes){data, size});
  while (wire_next(&wire, &field)) {
    if (field.number != NOTE_ITERATOR)
      continue;
    read_item(&field, &item);
    TRY(apply_iterator(task, &item));
  }
  return OK;
}

status task_note_apply(struct task *task, const void *data, size_t size, bool is_start, bool lacks_values) {
  struct wire wire = wire_over(data, size);
  struct wire_field field;
  struct note_item item;
  if (!is_start)
    iterator_places_reset(task->container);
  while (wire_next(&wire, &field)) {
    if (field.number == NOTE_LEDGER && field.type == WIRE_BYTES)
      TRY(apply_ledger(task, &field, lacks_values));
    if (field.number != NOTE_RANDOM && field.number != NOTE_ITERATOR && field.number != NOTE_DRIVER)
      continue;
    read_item(&field, &item);
    if (field.number == NOTE_DRIVER)
      TRY(apply_driver(task, &item));
    if (field.number == NOTE_RANDOM && item.bytes)
      apply_random(task, &item);
    if (field.number == NOTE_ITERATOR)
      TRY(iterator_place_restore(task->container, item.space, item.name, (int64_t)item.value));
  }
  return OK;
}
