/* job_message.c: fields of protobuf's wire format; those that are 0 are left out. */
#include "runtime/checkpoint/job_message.h"

#include <stdio.h>
#include <string.h>

enum {
  FIELD_KIND = 1,
  FIELD_ID,
  FIELD_HISTORY,
  FIELD_NEWEST,
  FIELD_NUMBER,
  FIELD_STEPS,
  FIELD_WAIT,
  FIELD_FLAGS,
  FIELD_FOLDER,
  FIELD_RESTORE,
  FIELD_SAVE_STEPS,
  FIELD_SAVE_MS,
  FIELD_KEEP,
  FIELD_FILE,
  FIELD_TEXT,
  FIELD_LEDGER,
  FIELD_LIFE,
  FIELD_FINISHED, /* a task's number + 1 */
};
enum { FLAG_UNEVEN = 1, FLAG_OPTIONS = 2, FLAG_FILES = 4, FLAG_FAILURE = 8, FLAG_PHASES = 16, FLAG_INITIALISED = 32, FLAG_GONE = 64 };

static void put(struct wire_buffer *out, uint32_t field, uint64_t value) {
  if (value)
    wire_put_varint(out, field, value);
}
static void put_text(struct wire_buffer *out, uint32_t field, const char *text) {
  if (*text)
    wire_put_text(out, field, text);
}

void job_message_write(const struct job_message *m, struct wire_buffer *out) {
  put(out, FIELD_KIND, m->kind);
  put(out, FIELD_ID, m->id);
  put(out, FIELD_HISTORY, m->history);
  put(out, FIELD_NEWEST, m->newest);
  put(out, FIELD_LIFE, m->life);
  put(out, FIELD_NUMBER, (uint64_t)m->number);
  put(out, FIELD_STEPS, (uint64_t)m->steps);
  put(out, FIELD_WAIT, m->wait_ms);
  put(out, FIELD_FLAGS,
      (m->is_uneven ? FLAG_UNEVEN : 0u) | (m->has_options ? FLAG_OPTIONS : 0u) | (m->has_files ? FLAG_FILES : 0u) |
        (m->is_failure ? FLAG_FAILURE : 0u) | (m->has_phases ? FLAG_PHASES : 0u) | (m->is_initialised ? FLAG_INITIALISED : 0u) |
        (m->is_gone ? FLAG_GONE : 0u));
  if (m->has_options) {
    put_text(out, FIELD_FOLDER, m->options.folder);
    put_text(out, FIELD_RESTORE, m->options.restore);
    put(out, FIELD_SAVE_STEPS, (uint64_t)m->options.save_steps);
    put(out, FIELD_SAVE_MS, (uint64_t)m->options.save_ms);
    put(out, FIELD_KEEP, (uint64_t)m->options.keep);
  }
  for (uint32_t i = 0; i < m->file_count; i++)
    wire_put_fixed64(out, FIELD_FILE, m->files[i]);
  for (uint32_t i = 0; i < LIMIT_TASKS; i++)
    if (m->finished[i / 64] >> i % 64 & 1)
      put(out, FIELD_FINISHED, i + 1);
  put_text(out, FIELD_TEXT, m->text);
  if (m->ledger_size)
    wire_put_bytes(out, FIELD_LEDGER, m->ledger, m->ledger_size);
}

static void take_text(const struct wire_field *field, char *out, size_t size) {
  size_t length = field->type == WIRE_BYTES && field->size < size ? field->size : 0;
  if (length)
    memcpy(out, field->data, length);
  out[length] = 0;
}

static void take_field(const struct wire_field *field, struct job_message *m) {
  switch (field->number) {
  case FIELD_KIND: m->kind = (enum job_kind)field->value; break;
  case FIELD_ID: m->id = field->value; break;
  case FIELD_HISTORY: m->history = field->value; break;
  case FIELD_NEWEST: m->newest = field->value; break;
  case FIELD_LIFE: m->life = field->value; break;
  case FIELD_NUMBER: m->number = (int64_t)field->value; break;
  case FIELD_STEPS: m->steps = (int64_t)field->value; break;
  case FIELD_WAIT: m->wait_ms = (uint32_t)field->value; break;
  case FIELD_FLAGS:
    m->is_uneven = field->value & FLAG_UNEVEN;
    m->has_options = field->value & FLAG_OPTIONS;
    m->has_files = field->value & FLAG_FILES;
    m->is_failure = field->value & FLAG_FAILURE;
    m->has_phases = field->value & FLAG_PHASES;
    m->is_initialised = field->value & FLAG_INITIALISED;
    m->is_gone = field->value & FLAG_GONE;
    break;
  case FIELD_FOLDER: take_text(field, m->options.folder, sizeof m->options.folder); break;
  case FIELD_RESTORE: take_text(field, m->options.restore, sizeof m->options.restore); break;
  case FIELD_SAVE_STEPS: m->options.save_steps = (int64_t)field->value; break;
  case FIELD_SAVE_MS: m->options.save_ms = (int64_t)field->value; break;
  case FIELD_KEEP: m->options.keep = (int64_t)field->value; break;
  case FIELD_FILE:
    if (m->file_count < HISTORY_FILES_MAX)
      m->files[m->file_count++] = field->value;
    break;
  case FIELD_FINISHED:
    if (field->value - 1 < LIMIT_TASKS)
      m->finished[(field->value - 1) / 64] |= UINT64_C(1) << (field->value - 1) % 64;
    break;
  case FIELD_TEXT: take_text(field, m->text, sizeof m->text); break;
  case FIELD_LEDGER:
    m->ledger = field->data;
    m->ledger_size = field->type == WIRE_BYTES ? field->size : 0;
    break;
  default: break;
  }
}

status job_message_read(const void *data, size_t size, struct job_message *out) {
  struct wire wire = wire_over(data, size);
  struct wire_field field;
  *out = (struct job_message){0};
  while (wire_next(&wire, &field))
    take_field(&field, out);
  return wire.is_bad || out->kind < JOB_JOIN || out->kind > JOB_NOTED ? fail(DATA_LOSS, "a message about checkpoints cannot be read") : OK;
}
