/* restore.c: the variables of a SavedModel start with the values in its folder. Its restore operation says under which key each
 * is, else the objects that its functions have captured; any other variable is looked up under its own name, and stays
 * uninitialised when that is not there either (local variables). */
#include <string.h>

#include "base/checkpoint.h"
#include "base/map.h"
#include "compiler/pass/pass.h"
#include "compiler/pass/restore_keys.h"
#include "compiler/read/read.h"

/* Variables may be many: the keys are found by what they are of. */
static const char *variable_text(struct arena *arena, const char *container, const char *name) {
  return arena_printf(arena, "%zu %s %s", strlen(container), container, name);
}
static void note_sums(struct build *b, const struct restore_keys *keys) {
  struct map sums = {0};
  uint32_t found;
  for (uint32_t i = 0; i < keys->count; i++)
    if (keys->items[i].is_sum)
      map_insert(&sums, variable_text(&b->arena, keys->items[i].container, keys->items[i].name), i);
  for (uint32_t i = 0; i < b->vars.count; i++)
    b->vars.items[i].is_sum = map_find(&sums, variable_text(&b->arena, b->vars.items[i].container, b->vars.items[i].name), &found);
  map_deinit(&sums);
}
static void number_keys(const struct restore_keys *keys, struct arena *arena, struct map *out) {
  for (uint32_t i = 0; i < keys->count; i++)
    map_insert(out, variable_text(arena, keys->items[i].container, keys->items[i].name), i);
}

/* The part of the value that a partitioned variable is. */
static status take_slice(struct arena *arena, const char *text, struct constant *value) {
  struct shape whole, part;
  struct checkpoint_slice slice;
  TRY(checkpoint_slice_parse(text, &whole, &slice));
  part = checkpoint_slice_shape(&whole, &slice);
  if (whole.rank != value->rank || memcmp(whole.dims, value->dims, sizeof whole.dims[0] * (size_t)whole.rank) != 0)
    return fail(INVALID_ARGUMENT, "the slice '%s' is of another shape", text);
  size_t size = dtype_size(value->dtype);
  void *data = arena_alloc_aligned(arena, (size_t)shape_count(&part) * size + 16, 64);
  TRY(checkpoint_slice_copy(&slice, &whole, size, (void *)(uintptr_t)value->data, data, true));
  value->data = data;
  value->count = shape_count(&part);
  memcpy(value->dims, part.dims, sizeof value->dims);
  return OK;
}

static status restore_one(struct build *b, struct bundle *bundle, const struct restore_keys *keys, const struct map *numbers,
                          uint32_t var) {
  struct flow_var *v = &b->vars.items[var];
  struct var_initial initial = {.var = var};
  uint32_t number;
  bool has_key = map_find(numbers, variable_text(&b->arena, v->container, v->name), &number);
  const struct restore_key *key = has_key ? &keys->items[number] : NULL;
  status s = bundle_read(bundle, key ? key->key : v->name, &initial.value);
  if (s == NOT_FOUND && !key)
    return OK;
  if (s == OK && key && *key->slice)
    s = take_slice(&b->arena, key->slice, &initial.value);
  if (s != OK)
    return status_prefix(s, "variable '%s': ", v->name);
  if (initial.value.dtype != v->dtype)
    return fail(INVALID_ARGUMENT, "%s: tensor_name = %s; expected dtype %s does not equal original dtype %s", v->node,
                key ? key->key : v->name, dtype_name(v->dtype), dtype_name(initial.value.dtype));
  bool fits = v->rank < 0 || v->rank == initial.value.rank;
  for (int i = 0; i < v->rank && fits; i++)
    fits = v->dims[i] < 0 || v->dims[i] == initial.value.dims[i];
  if (!fits)
    return fail(INVALID_ARGUMENT, "%s: the SavedModel holds another shape of '%s' than the graph", v->node, v->name);
  vec_push(&b->initials, initial);
  return OK;
}

status pass_restore(struct build *b) {
  if (!b->model.variables_prefix || !b->vars.count)
    return OK;
  struct bundle *bundle;
  struct restore_keys keys = {0};
  TRY(bundle_open(b->model.variables_prefix, &b->arena, &bundle));
  const char **object_keys;
  status s = restore_keys_find(&b->model, &b->arena, &keys);
  if (s == OK)
    s = object_keys_read(bundle, &b->model, &b->arena, &object_keys);
  if (s == OK)
    restore_keys_of_objects(&b->model, object_keys, &b->arena, &keys);
  struct map numbers = {0};
  number_keys(&keys, &b->arena, &numbers);
  note_sums(b, &keys);
  for (uint32_t i = 0; i < b->vars.count && s == OK; i++)
    s = restore_one(b, bundle, &keys, &numbers, i);
  map_deinit(&numbers);
  vec_free(&keys);
  return s;
}
