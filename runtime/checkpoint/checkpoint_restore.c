/* checkpoint_restore.c: see checkpoint_restore.h. Names of TensorFlow 2's objects are looked up in the graph of objects
 * that its checkpoints hold. */
#include "runtime/checkpoint/checkpoint_restore.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/object_names.h"
#include "runtime/checkpoint/variable_key.h"
#include "runtime/data/iterator_place.h"
#include "runtime/memory/variable.h"
#include "runtime/step/task_state.h"

/* ---- where ---- */

static bool is_folder(const char *path) {
  struct stat at;
  return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

static bool has_index(struct arena *arena, const char *prefix) { return access(arena_printf(arena, "%s.index", prefix), F_OK) == 0; }

static bool add_source(struct restore_source *out, char *prefix) {
  if (out->count == RESTORE_PREFIXES_MAX)
    return false;
  out->prefixes[out->count++] = prefix;
  return true;
}

/* The moment that a file is of; 0: it has no note, or cannot be read. */
static uint64_t moment_of(const char *prefix) {
  struct note_head head;
  return restore_peek(prefix, &head, NULL) == OK ? head.id : 0;
}

/* The folders of several tasks: "ps_0", "ps_1" ... Each has its newest; all must be of one moment. */
static status find_in_tasks(const char *path, struct arena *arena, struct restore_source *out) {
  DIR *dir = opendir(path);
  char prefix[CHECKPOINT_PATH_MAX];
  status result = OK;
  for (const struct dirent *entry; dir && result == OK && (entry = readdir(dir));) {
    const char *folder = arena_printf(arena, "%s/%s", path, entry->d_name), *digits = strrchr(entry->d_name, '_');
    if (!digits || !isdigit((unsigned char)digits[1]) || !is_folder(folder) || checkpoint_folder_peek(folder, prefix, sizeof prefix) != OK)
      continue;
    if (!add_source(out, arena_strdup(arena, prefix)))
      result = fail(RESOURCE_EXHAUSTED, "%s: more than %d tasks", path, RESTORE_PREFIXES_MAX);
    else if (moment_of(prefix) != moment_of(out->prefixes[0]))
      result = fail(FAILED_PRECONDITION, "%s and %s are not of the same moment", out->prefixes[0], prefix);
  }
  if (dir)
    closedir(dir);
  return result == OK && out->count == 0 ? fail(NOT_FOUND, "%s holds no checkpoint: no state file `checkpoint`, no SavedModel", path)
                                         : result;
}

status restore_source_find(const char *path, struct arena *arena, struct restore_source *out) {
  static const char *const inside[] = {"/variables/variables", "/variables"};
  char prefix[CHECKPOINT_PATH_MAX];
  *out = (struct restore_source){0};
  out->prefixes[0] = arena_strdup(arena, path);
  out->count = 1;
  if (has_index(arena, path) || !is_folder(path))
    return OK; /* opening it says what is wrong */
  if (checkpoint_folder_peek(path, prefix, sizeof prefix) == OK) {
    out->prefixes[0] = arena_strdup(arena, prefix);
    return OK;
  }
  for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
    out->prefixes[0] = arena_printf(arena, "%s%s", path, inside[i]);
    if (has_index(arena, out->prefixes[0]))
      return OK;
  }
  out->count = 0;
  return find_in_tasks(path, arena, out);
}

status restore_peek(const char *prefix, struct note_head *out, struct ledger *steps) {
  struct arena arena;
  struct checkpoint *checkpoint;
  size_t size = 0;
  arena_init(&arena);
  *out = (struct note_head){0};
  status result = checkpoint_open(prefix, &arena, &checkpoint);
  const void *note = result == OK ? checkpoint_note(checkpoint, &size) : NULL;
  if (result == OK && size > 0)
    result = task_note_read(note, size, out);
  if (result == OK && size > 0 && steps)
    result = task_note_steps(note, size, steps);
  arena_deinit(&arena);
  return result;
}

/* ---- one variable ---- */

struct opened {
  struct arena arena;
  struct checkpoint *checkpoints[RESTORE_PREFIXES_MAX];
  struct object_names names[RESTORE_PREFIXES_MAX];
  uint32_t count;
};

/* The file and the key that have it. NOT_FOUND. */
static status find_key(const struct opened *o, const char *name, const struct checkpoint **checkpoint, const char **key) {
  struct checkpoint_entry entry;
  for (uint32_t i = 0; i < o->count; i++) {
    *checkpoint = o->checkpoints[i];
    *key = name;
    status found = checkpoint_find(o->checkpoints[i], name, &entry);
    if (found != NOT_FOUND)
      return found;
    const char *other = object_names_key(&o->names[i], name);
    if (!other)
      continue;
    *key = other;
    return OK;
  }
  return fail(NOT_FOUND, "Key %s not found in checkpoint", name);
}

static status check_dtype(const struct variable *variable, const struct checkpoint_value *value) {
  if (value->dtype == variable->dtype)
    return OK;
  return fail(INVALID_ARGUMENT, "variable '%s' is %s, in the checkpoint it is %s", variable->name, dtype_name(variable->dtype),
              dtype_name(value->dtype));
}

/* The sizes of the parts leave the axis open where all are equal: then the whole in the file says it. */
static status fit_axis(const struct variable *variable, const struct shape *is, struct shape *whole, struct checkpoint_slice *slice) {
  int from = -1, to = -1;
  if (shape_equal(is, whole))
    return OK;
  for (int d = 0; d < whole->rank && is->rank == whole->rank; d++) {
    from = whole->dims[d] != slice->length[d] ? d : from;
    to = is->dims[d] != slice->length[d] ? d : to;
  }
  if (from < 0 || to < 0 || is->rank != whole->rank || slice->start[from] % slice->length[from] ||
      whole->dims[from] % slice->length[from] || is->dims[to] != whole->dims[from] / slice->length[from] * slice->length[to])
    return fail(INVALID_ARGUMENT, "variable '%s' is a part of shape %s, in the checkpoint the whole has shape %s", variable->name,
                shape_text(whole), shape_text(is));
  int64_t turn = slice->start[from] / slice->length[from];
  slice->start[from] = 0;
  slice->start[to] = turn * slice->length[to];
  *whole = *is;
  return OK;
}

static status restore_slice(struct variable *variable, const struct checkpoint_value *value, struct shape *whole,
                            struct checkpoint_slice *slice) {
  struct tensor *part;
  struct shape shape;
  TRY(fit_axis(variable, &value->shape, whole, slice));
  shape = checkpoint_slice_shape(whole, slice);
  TRY(tensor_create(value->dtype, &shape, &part));
  status result = checkpoint_slice_copy(slice, whole, dtype_size(value->dtype), value->data, part->data, true);
  if (result == OK)
    result = variable_restore(variable, &shape, part->data);
  tensor_release(part);
  return result;
}

/* NOT_FOUND: it is not there. */
static status restore_variable(struct opened *o, struct variable *variable) {
  const struct checkpoint *checkpoint = NULL;
  struct checkpoint_value value;
  struct checkpoint_slice slice;
  struct shape whole;
  char whole_key[VARIABLE_KEY_MAX];
  const char *key = NULL;
  status found = find_key(o, variable->name, &checkpoint, &key);
  bool is_part = found == NOT_FOUND && variable_key_slice(variable, whole_key, &whole, &slice);
  if (is_part)
    found = find_key(o, whole_key, &checkpoint, &key);
  TRY(found);
  TRY(checkpoint_read(checkpoint, key, &value));
  TRY(check_dtype(variable, &value));
  return is_part ? restore_slice(variable, &value, &whole, &slice) : variable_restore(variable, &value.shape, value.data);
}

/* ---- the task ---- */

static void note_missing(struct restored *out, const char *name) {
  size_t used = strlen(out->names);
  if (out->missing < 8)
    snprintf(out->names + used, sizeof out->names - used, "%s'%s'", used ? ", " : "", name);
  out->missing++;
}

/* The variable global_step says it, else the end of the name: "my-model-1200". */
static int64_t number_of(const struct opened *o, const char *prefix) {
  struct checkpoint_value value;
  const char *dash = strrchr(prefix, '-');
  char *end;
  for (uint32_t i = 0; i < o->count; i++)
    if (checkpoint_read(o->checkpoints[i], "global_step", &value) == OK && value.count == 1) {
      if (value.dtype == DTYPE_INT64 || value.dtype == DTYPE_INT32)
        return value.dtype == DTYPE_INT64 ? *(const int64_t *)value.data : *(const int32_t *)value.data;
    }
  long long number = dash ? strtoll(dash + 1, &end, 10) : 0;
  return dash && *end == 0 && number > 0 ? number : 0;
}

static status open_all(const struct restore_source *source, struct opened *o) {
  for (uint32_t i = 0; i < source->count; i++, o->count++) {
    TRY(checkpoint_open(source->prefixes[i], &o->arena, &o->checkpoints[i]));
    TRY(object_names_read(o->checkpoints[i], &o->arena, &o->names[i]));
  }
  return OK;
}

static status restore_all(struct task *task, struct opened *o, const char *prefix, enum restore_kind kind, struct restored *out) {
  bool is_own = kind != RESTORE_VALUES;
  for (uint32_t i = 0; i < task->variable_count; i++) {
    struct variable *variable = &task->variables[i];
    if (variable_is_random(variable)) {
      if (is_own)
        variable_reload(variable, task->program, i);
      continue;
    }
    status found = restore_variable(o, variable);
    if (found == NOT_FOUND && is_own)
      variable_reload(variable, task->program, i); /* as it was at the start: it may have a value of a history that is over */
    variable->restored = found == OK;
    out->values += found == OK;
    if (found == NOT_FOUND)
      note_missing(out, variable->name);
    else
      TRY(found);
  }
  size_t size;
  const void *note = checkpoint_note(o->checkpoints[0], &size);
  if (size > 0)
    TRY(task_note_read(note, size, &out->head));
  out->number = number_of(o, prefix);
  return is_own && size > 0 ? task_note_apply(task, note, size, kind == RESTORE_START, out->missing > 0) : OK;
}

status restore_nothing(struct task *task) {
  struct ledger empty = {0};
  for (uint32_t i = 0; i < task->variable_count; i++) {
    variable_reload(&task->variables[i], task->program, i);
    task->variables[i].restored = false;
  }
  iterator_places_reset(task->container);
  task_reset_rounds(task);
  return commit_restore(task, &empty);
}

status restore_task(struct task *task, const struct restore_source *source, enum restore_kind kind, struct restored *out) {
  struct opened *o = calloc(1, sizeof *o);
  if (!o)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  *out = (struct restored){0};
  arena_init(&o->arena);
  status result = open_all(source, o);
  if (result == OK)
    result = restore_all(task, o, source->prefixes[0], kind, out);
  arena_deinit(&o->arena);
  free(o);
  return result == OK ? OK : status_prefix(result, "restoring %s: ", source->prefixes[0]);
}
