/* snapshot.c: marks, copies, files. */
#include "runtime/checkpoint/snapshot.h"

#include <string.h>

#include "base/checkpoint_write.h"
#include "base/folders.h"
#include "runtime/checkpoint/variable_key.h"
#include "runtime/memory/variable.h"
#include "runtime/step/commit.h"
#include "runtime/step/task_state.h"

uint32_t snapshot_size(const struct task *task) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < task->variable_count; i++)
    count += !variable_is_random(&task->variables[i]);
  return count;
}

int64_t snapshot_bytes(struct task *task) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < task->variable_count; i++) {
    struct variable *variable = &task->variables[i];
    pthread_mutex_lock(&variable->lock);
    bytes += variable->value ? tensor_byte_size(variable->value) : 0;
    pthread_mutex_unlock(&variable->lock);
  }
  return bytes;
}

void snapshot_prepare(struct task *task) {
  for (uint32_t i = 0; i < task->variable_count; i++)
    if (!variable_is_random(&task->variables[i]))
      variable_prepare_aside(&task->variables[i]);
}

void snapshot_take(struct task *task, const struct note_head *head, struct wire_buffer *note) {
  for (uint32_t i = 0; i < task->variable_count; i++)
    if (!variable_is_random(&task->variables[i]))
      variable_mark(&task->variables[i]);
  task_note_write(task, head, note);
}

static status write_variable(struct checkpoint_writer *writer, struct variable *variable) {
  struct tensor *value;
  char key[VARIABLE_KEY_MAX];
  struct shape whole;
  struct checkpoint_slice slice;
  TRY(variable_take_aside(variable, &value));
  if (!value)
    return OK;
  bool is_slice = variable_key_slice(variable, key, &whole, &slice);
  status result =
    is_slice ? checkpoint_writer_add_slice(writer, key, &whole, &slice, value) : checkpoint_writer_add(writer, variable->name, value);
  tensor_release(value);
  return result;
}

/* All copies first: a step that needs one has to wait for it. */
static void collect(struct task *task) {
  for (uint32_t i = 0; i < task->variable_count; i++) {
    struct variable *variable = &task->variables[i];
    pthread_mutex_lock(&variable->lock);
    variable_will_change(variable);
    pthread_mutex_unlock(&variable->lock);
  }
}

static status write_all(struct task *task, struct checkpoint_writer *writer, const struct wire_buffer *note) {
  TRY(note->is_bad ? fail(RESOURCE_EXHAUSTED, "no memory") : checkpoint_writer_set_note(writer, note->data, note->size));
  for (uint32_t i = 0; i < task->variable_count; i++)
    if (!variable_is_random(&task->variables[i]))
      TRY(write_variable(writer, &task->variables[i]));
  return OK;
}

/* It will not be written. */
static void snapshot_drop(struct task *task) {
  for (uint32_t i = 0; i < task->variable_count; i++) {
    struct variable *variable = &task->variables[i];
    pthread_mutex_lock(&variable->lock);
    variable->aside_state = ASIDE_NONE;
    pthread_mutex_unlock(&variable->lock);
  }
}

status snapshot_write(struct task *task, const char *prefix, const struct wire_buffer *note) {
  struct checkpoint_writer *writer;
  collect(task);
  folders_make_above(prefix);
  status result = checkpoint_writer_create(prefix, &writer);
  if (result == OK) {
    result = write_all(task, writer, note);
    if (result == OK)
      return checkpoint_writer_close(writer);
    checkpoint_writer_destroy(writer);
  }
  snapshot_drop(task);
  return result;
}

static status replace_steps(const char *prefix, const struct ledger *steps, struct arena *arena) {
  struct checkpoint *checkpoint;
  size_t size;
  TRY(checkpoint_open(prefix, arena, &checkpoint));
  const void *note = checkpoint_note(checkpoint, &size);
  char *changed = arena_strndup(arena, note, size);
  TRY(task_note_set_steps(changed, size, steps));
  return checkpoint_replace_note(prefix, changed, size);
}

status snapshot_note_end(struct task *task, const char *prefix) {
  struct ledger steps = {0};
  struct arena arena;
  TRY(commit_ledger(task, &steps));
  arena_init(&arena);
  status result = replace_steps(prefix, &steps, &arena);
  arena_deinit(&arena);
  ledger_deinit(&steps);
  return result;
}
