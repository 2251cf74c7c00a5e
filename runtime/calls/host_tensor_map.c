/* host_tensor_map.c: maps from tensors to tensors (EmptyTensorMap and its like): objects in variants, so that a change makes a
 * new map over the same tensors, unless nobody else has the old one. Keys are equal when dtype, shape and elements are. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/object.h"
#include "runtime/value/tensor_list.h"

struct entry {
  uint64_t hash;
  struct tensor *key, *value; /* a reference each */
};
struct tensor_map {
  struct object object;  /* first */
  struct entry *entries; /* in the order they came */
  int64_t count, room;
};

/* ---- the object ---- */

static const struct object_kind map_kind;

static void map_destroy(struct object *object) {
  struct tensor_map *m = (struct tensor_map *)object;
  for (int64_t i = 0; i < m->count; i++) {
    tensor_release(m->entries[i].key);
    tensor_release(m->entries[i].value);
  }
  free(m->entries);
  free(m);
}

/* A copy with room for `more` further entries; from NULL: an empty map. */
static status map_copy(const struct tensor_map *from, int64_t more, struct tensor_map **out) {
  struct tensor_map *m = calloc(1, sizeof *m);
  if (!m)
    return fail(RESOURCE_EXHAUSTED, "no memory for a map");
  object_init(&m->object, &map_kind);
  m->room = (from ? from->count : 0) + more;
  m->entries = calloc((size_t)m->room + 1, sizeof *m->entries);
  if (!m->entries) {
    free(m);
    return fail(RESOURCE_EXHAUSTED, "no memory for a map");
  }
  for (int64_t i = 0; from && i < from->count; i++)
    m->entries[m->count++] =
      (struct entry){from->entries[i].hash, tensor_retain(from->entries[i].key), tensor_retain(from->entries[i].value)};
  *out = m;
  return OK;
}

static status map_reserve(struct tensor_map *m) {
  if (m->count < m->room)
    return OK;
  int64_t room = m->count * 2 + 8;
  struct entry *grown = realloc(m->entries, (size_t)room * sizeof *grown);
  if (!grown)
    return fail(RESOURCE_EXHAUSTED, "no memory for a map");
  m->entries = grown;
  m->room = room;
  return OK;
}

/* Output 0 for the map of input 0, to be changed: a copy, or the map itself when nobody else has it. */
static status map_change_input(struct host_call *call, struct tensor_map *from, struct tensor_map **out) {
  *out = from;
  if (object_reuse(call, &from->object))
    return OK;
  TRY(map_copy(from, 1, out));
  return object_output(call, 0, &(*out)->object);
}

/* -1: it is not there */
static int64_t find_key(const struct tensor_map *m, const struct tensor *key) {
  uint64_t hash = tensor_hash(key);
  for (int64_t i = 0; i < m->count; i++)
    if (m->entries[i].hash == hash && tensor_equal(m->entries[i].key, key))
      return i;
  return -1;
}

/* The zero of a sum of maps has no keys. */
static status map_zeros(const struct object *object, struct object **out) {
  struct tensor_map *m = NULL;
  (void)object;
  TRY(map_copy(NULL, 0, &m));
  *out = &m->object;
  return OK;
}

/* The keys of both; values of keys that both have are added. */
static status map_add(const struct object *a, const struct object *b, struct object **out) {
  const struct tensor_map *y = (const struct tensor_map *)b;
  struct tensor_map *m;
  TRY(map_copy((const struct tensor_map *)a, y->count, &m));
  for (int64_t i = 0; i < y->count; i++) {
    const struct entry *e = &y->entries[i];
    int64_t at = find_key(m, e->key);
    struct tensor *sum;
    if (at < 0) {
      m->entries[m->count++] = (struct entry){e->hash, tensor_retain(e->key), tensor_retain(e->value)};
      continue;
    }
    status result = tensor_sum(m->entries[at].value, e->value, &sum);
    if (result != OK) {
      object_release(&m->object);
      return result;
    }
    tensor_release(m->entries[at].value);
    m->entries[at].value = sum;
  }
  *out = &m->object;
  return OK;
}

static const struct object_kind map_kind = {"map", map_destroy, map_zeros, map_add, NULL};

/* ---- the ops ---- */

static status map_input(const struct host_call *call, struct tensor_map **out) {
  struct object *object;
  TRY(object_input(call, 0, &map_kind, &object));
  *out = (struct tensor_map *)object;
  return OK;
}

status host_tensor_map_empty(struct host_call *call) {
  struct tensor_map *m = NULL;
  TRY(map_copy(NULL, 0, &m));
  return object_output(call, 0, &m->object);
}

status host_tensor_map_size(struct host_call *call) {
  struct tensor_map *m;
  TRY(map_input(call, &m));
  return host_give_number(call, 0, DTYPE_INT32, m->count);
}

status host_tensor_map_has_key(struct host_call *call) {
  struct tensor_map *m;
  TRY(map_input(call, &m));
  return host_give_number(call, 0, DTYPE_BOOL, find_key(m, &call->inputs[1]) >= 0);
}

status host_tensor_map_lookup(struct host_call *call) {
  struct tensor_map *m;
  TRY(map_input(call, &m));
  int64_t at = find_key(m, &call->inputs[1]);
  if (at < 0)
    return fail(INVALID_ARGUMENT, "Trying to lookup non-existent key.");
  if ((int64_t)m->entries[at].value->dtype != host_attr_int(call, "value_dtype", m->entries[at].value->dtype))
    return fail(INVALID_ARGUMENT, "the value is %s", dtype_name(m->entries[at].value->dtype));
  call->outputs[0] = tensor_retain(m->entries[at].value);
  return OK;
}

status host_tensor_map_insert(struct host_call *call) {
  struct tensor_map *from, *m;
  struct tensor *key, *value;
  TRY(map_input(call, &from));
  TRY(map_change_input(call, from, &m));
  TRY(map_reserve(m));
  TRY(host_keep_input(call, 2, &value));
  int64_t at = find_key(m, &call->inputs[1]);
  if (at >= 0) {
    tensor_release(m->entries[at].value);
    m->entries[at].value = value;
    return OK;
  }
  status result = host_keep_input(call, 1, &key);
  if (result != OK) {
    tensor_release(value);
    return result;
  }
  m->entries[m->count++] = (struct entry){tensor_hash(key), key, value};
  return OK;
}

status host_tensor_map_erase(struct host_call *call) {
  struct tensor_map *from, *m;
  TRY(map_input(call, &from));
  int64_t at = find_key(from, &call->inputs[1]);
  if (at < 0)
    return fail(INVALID_ARGUMENT, "Trying to erase non-existent item.");
  TRY(map_change_input(call, from, &m));
  tensor_release(m->entries[at].key);
  tensor_release(m->entries[at].value);
  m->count--;
  memmove(&m->entries[at], &m->entries[at + 1], sizeof *m->entries * (size_t)(m->count - at));
  return OK;
}

status host_tensor_map_stack_keys(struct host_call *call) {
  struct tensor_map *m;
  TRY(map_input(call, &m));
  if (m->count == 0)
    return fail(INVALID_ARGUMENT, "TensorMapStackKeys cannot be called on empty map.");
  enum dtype dtype = (enum dtype)host_attr_int(call, "key_dtype", DTYPE_FLOAT);
  struct tensor **keys = calloc((size_t)m->count, sizeof *keys);
  status result = keys ? OK : fail(RESOURCE_EXHAUSTED, "no memory for %lld keys", (long long)m->count);
  for (int64_t i = 0; i < m->count && result == OK; i++) {
    keys[i] = m->entries[i].key;
    if (keys[i]->dtype != dtype)
      result = fail(INVALID_ARGUMENT, "Key does not match requested dtype.");
    else if (!shape_equal(&keys[i]->shape, &keys[0]->shape))
      result = fail(INVALID_ARGUMENT, "Keys must all have the same shape.");
  }
  if (result == OK)
    result = tensors_stack(dtype, keys, m->count, &keys[0]->shape, &call->outputs[0]);
  free(keys);
  return result;
}
