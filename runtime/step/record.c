/* record.c: see record.h. A list in the order of what was done; steps change few things, and look them up only when
 * they are repeated. */
#include "runtime/step/record.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/program/fault.h"

status record_create(uint32_t driver, uint32_t lane, struct record **out) {
  struct record *record = calloc(1, sizeof *record);
  if (!record)
    return fail(RESOURCE_EXHAUSTED, "no memory for what a step has changed");
  record->driver = driver;
  record->lane = lane;
  pthread_mutex_init(&record->lock, NULL);
  *out = record;
  return OK;
}

/* Under the lock. */
static void forget(struct record *record) {
  for (uint32_t i = 0; i < record->count; i++) {
    for (uint32_t j = 0; j < record->items[i].output_count; j++)
      tensor_release(record->items[i].outputs[j]);
    free(record->items[i].outputs);
  }
  record->count = record->unused = 0;
}

void record_clear(struct record *record) {
  pthread_mutex_lock(&record->lock);
  forget(record);
  pthread_mutex_unlock(&record->lock);
}

void record_destroy(struct record *record) {
  if (!record)
    return;
  forget(record);
  pthread_mutex_destroy(&record->lock);
  free(record->items);
  free(record);
}

void record_begin(struct record *record, uint32_t command, uint64_t serial) {
  pthread_mutex_lock(&record->lock);
  if (record->command != command || record->serial != serial)
    forget(record);
  record->command = command;
  record->serial = serial;
  for (uint32_t i = 0; i < record->count; i++)
    record->items[i].is_used = false;
  record->unused = record->count;
  pthread_mutex_unlock(&record->lock);
}

bool record_is_empty(struct record *record) {
  pthread_mutex_lock(&record->lock);
  bool is_empty = record->count == 0;
  pthread_mutex_unlock(&record->lock);
  return is_empty;
}

bool record_find(struct record *record, uint32_t instr, struct record_item *out) {
  bool found = false;
  pthread_mutex_lock(&record->lock);
  for (uint32_t i = 0; record->unused > 0 && i < record->count && !found && !FAULT(35) && !FAULT(6) && !FAULT(1) && !FAULT(8); i++)
    if (record->items[i].instr == instr && !record->items[i].is_used) {
      record->items[i].is_used = found = true;
      record->unused--;
      *out = record->items[i];
    }
  pthread_mutex_unlock(&record->lock);
  return found;
}

/* Under the lock. */
static bool make_room(struct record *record) {
  if (record->count < record->capacity)
    return true;
  uint32_t capacity = record->capacity * 2 + 8;
  struct record_item *grown = realloc(record->items, capacity * sizeof *grown);
  if (!grown)
    return false;
  record->items = grown;
  record->capacity = capacity;
  return true;
}

status record_add(struct record *record, uint32_t instr, struct tensor *const *outputs, uint32_t output_count) {
  struct tensor **kept = output_count ? calloc(output_count, sizeof(struct tensor *)) : NULL;
  pthread_mutex_lock(&record->lock);
  bool has_room = (kept || !output_count) && make_room(record);
  for (uint32_t i = 0; has_room && i < output_count; i++)
    kept[i] = outputs[i] ? tensor_retain(outputs[i]) : NULL;
  if (has_room)
    record->items[record->count++] = (struct record_item){instr, output_count, kept, true};
  pthread_mutex_unlock(&record->lock);
  if (has_room)
    return OK;
  free(kept);
  return fail(RESOURCE_EXHAUSTED, "no memory for what a step has changed");
}
