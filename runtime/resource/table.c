/* table.c: entries in the order of insertion, found through an open-addressed index of their numbers; a dense table keeps its
 * entries itself (dense_table.h). */
#include "runtime/resource/table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "runtime/resource/bucket_order.h"
#include "runtime/resource/dense_table.h"
#include "runtime/text/string_hash.h"
#include "runtime/text/string_output.h"

#define VALUE_BYTES_MAX (INT64_C(1) << 30)

struct table_entry {
  uint64_t hash;
  char *key; /* its bytes */
  uint64_t key_size;
  char *value; /* elements; strings: views into the bytes behind them */
  bool is_removed;
};
struct table {
  struct resource resource;
  pthread_rwlock_t lock;
  struct table_spec spec;
  int64_t value_count;
  bool is_initialized;
  struct table_entry *entries;
  int64_t *index; /* entry + 1; 0: free */
  int64_t count, capacity, index_size, removed;
  struct bucket_order order; /* mutable tables: of the entries */
  struct dense_table *dense; /* or NULL; it has all entries then */
};

/* ---- making ---- */

static status table_init(struct resource *resource, void *argument) {
  struct table *table = (struct table *)resource;
  table->spec = *(const struct table_spec *)argument;
  table->value_count = shape_count(&table->spec.value_shape);
  table->is_initialized = table->spec.is_mutable;
  if (table->value_count < 0 || table->value_count * (int64_t)dtype_size(table->spec.value) > VALUE_BYTES_MAX)
    return fail(INVALID_ARGUMENT, "a table whose values have the shape %s", shape_text(&table->spec.value_shape));
  if (table->spec.dense)
    TRY(dense_table_create(table->spec.dense, &table->dense));
  table->spec.dense = NULL;
  pthread_rwlock_init(&table->lock, NULL);
  return OK;
}

static void entries_clear(struct table *table) {
  for (int64_t i = 0; i < table->count; i++) {
    free(table->entries[i].key);
    free(table->entries[i].value);
  }
  table->count = table->removed = 0;
  bucket_order_clear(&table->order);
  if (table->index)
    memset(table->index, 0, (size_t)table->index_size * sizeof *table->index);
}

static void table_destroy(struct resource *resource) {
  struct table *table = (struct table *)resource;
  entries_clear(table);
  bucket_order_deinit(&table->order);
  dense_table_free(table->dense);
  free(table->entries);
  free(table->index);
  pthread_rwlock_destroy(&table->lock);
}

const struct resource_maker table_maker = {"table", sizeof(struct table), table_init, table_destroy};

const struct table_spec *table_get_spec(const struct table *table) { return &table->spec; }

bool table_is_initialized(struct table *table) {
  pthread_rwlock_rdlock(&table->lock);
  bool result = table->is_initialized;
  pthread_rwlock_unlock(&table->lock);
  return result;
}

int64_t table_size(struct table *table) {
  pthread_rwlock_rdlock(&table->lock);
  int64_t size = table->dense ? dense_table_size(table->dense) : table->is_initialized ? table->count - table->removed : 0;
  pthread_rwlock_unlock(&table->lock);
  return size;
}

/* ---- keys ---- */

static struct string_view key_at(const struct tensor *keys, int64_t i) {
  if (keys->dtype == DTYPE_STRING)
    return ((const struct string_view *)keys->data)[i];
  size_t size = dtype_size(keys->dtype);
  return (struct string_view){(const char *)keys->data + (size_t)i * size, size};
}

static int64_t slot_of(const struct table *table, struct string_view key, uint64_t hash) {
  int64_t slot = (int64_t)(hash & (uint64_t)(table->index_size - 1));
  for (;; slot = (slot + 1) & (table->index_size - 1)) {
    if (!table->index[slot])
      return slot;
    const struct table_entry *e = &table->entries[table->index[slot] - 1];
    if (e->hash == hash && string_equal((struct string_view){e->key, e->key_size}, key))
      return slot;
  }
}

static struct table_entry *entry_find(const struct table *table, struct string_view key) {
  if (!table->index_size)
    return NULL;
  int64_t at = table->index[slot_of(table, key, hash_bytes(key.data, key.size, 0))];
  return at && !table->entries[at - 1].is_removed ? &table->entries[at - 1] : NULL;
}

static void fill_index(struct table *table) {
  for (int64_t i = 0; i < table->count; i++) {
    const struct table_entry *e = &table->entries[i];
    table->index[slot_of(table, (struct string_view){e->key, e->key_size}, e->hash)] = i + 1;
  }
}

/* Removed entries go, the others get new numbers. */
static status drop_removed(struct table *table) {
  int64_t *numbers = malloc((size_t)table->count * sizeof *numbers), live = 0;
  if (!numbers)
    return fail(RESOURCE_EXHAUSTED, "no memory for a table of %lld entries", (long long)table->count);
  for (int64_t i = 0; i < table->count; i++) {
    numbers[i] = live;
    if (table->entries[i].is_removed)
      free(table->entries[i].key);
    else
      table->entries[live++] = table->entries[i];
  }
  bucket_order_renumber(&table->order, numbers, table->count);
  free(numbers);
  table->count = live;
  table->removed = 0;
  memset(table->index, 0, (size_t)table->index_size * sizeof *table->index);
  fill_index(table);
  return OK;
}

/* Room for one more. A removed entry waits for its key to come again, until those like it are the most. */
static status table_reserve(struct table *table) {
  if (table->count < table->capacity)
    return OK;
  if (table->removed > table->count / 2)
    return drop_removed(table);
  int64_t capacity = table->count * 2 + 16, size = 64;
  while (size < capacity * 2)
    size *= 2;
  struct table_entry *entries = realloc(table->entries, (size_t)capacity * sizeof *entries);
  if (entries)
    table->entries = entries;
  int64_t *index = calloc((size_t)size, sizeof *index);
  if (!entries || !index) {
    free(index);
    return fail(RESOURCE_EXHAUSTED, "no memory for a table of %lld entries", (long long)capacity);
  }
  free(table->index);
  table->index = index;
  table->capacity = capacity;
  table->index_size = size;
  fill_index(table);
  return OK;
}

/* How TensorFlow's mutable tables hash a key: it decides the order that they export. */
static uint64_t order_hash(const struct table *table, struct string_view key) {
  int64_t wide;
  int32_t narrow;
  switch (table->spec.key) {
  case DTYPE_STRING: return hash_murmur(key.data, key.size);
  case DTYPE_INT64: memcpy(&wide, key.data, sizeof wide); return (uint64_t)wide;
  case DTYPE_INT32: memcpy(&narrow, key.data, sizeof narrow); return (uint64_t)(int64_t)narrow;
  default: return hash_bytes(key.data, key.size, 0);
  }
}

/* ---- values ---- */

/* A copy of value i, strings' bytes behind their views. */
static char *value_copy(const struct table *table, const struct tensor *values, int64_t i) {
  size_t size = dtype_size(table->spec.value) * (size_t)table->value_count, extra = 0;
  const char *from = (const char *)values->data + (size_t)i * size;
  const struct string_view *views = (const struct string_view *)(const void *)from;
  bool text = table->spec.value == DTYPE_STRING;
  for (int64_t k = 0; text && k < table->value_count; k++)
    extra += views[k].size;
  char *copy = malloc(size + extra + 1);
  if (!copy)
    return NULL;
  if (size)
    memcpy(copy, from, size);
  char *at = copy + size;
  for (int64_t k = 0; text && k < table->value_count; k++) {
    struct string_view *to = (struct string_view *)(void *)copy + k;
    if (to->size)
      memcpy(at, views[k].data, to->size);
    to->data = at;
    at += to->size;
  }
  return copy;
}

static bool value_equal(const struct table *table, const char *a, const char *b) {
  size_t size = dtype_size(table->spec.value) * (size_t)table->value_count;
  if (table->spec.value != DTYPE_STRING)
    return memcmp(a, b, size) == 0;
  const struct string_view *x = (const void *)a, *y = (const void *)b;
  for (int64_t k = 0; k < table->value_count; k++)
    if (!string_equal(x[k], y[k]))
      return false;
  return true;
}

/* The key gets an entry of the number, a new one or one that was removed, which has the key still. */
static status entry_begin(struct table *table, int64_t number, struct string_view key, uint64_t hash, char *value) {
  bool is_new = number == table->count;
  struct table_entry *e = &table->entries[number];
  char *copy = is_new ? malloc(key.size + 1) : e->key;
  status result =
    copy ? bucket_order_add(&table->order, number, order_hash(table, key)) : fail(RESOURCE_EXHAUSTED, "no memory for a table's key");
  if (result != OK) {
    if (is_new)
      free(copy);
    return result;
  }
  if (is_new && key.size)
    memcpy(copy, key.data, key.size);
  *e = (struct table_entry){hash, copy, key.size, value, false};
  table->count += is_new;
  table->removed -= !is_new;
  return OK;
}

/* `unique`: another value for a key that is there is an error. */
static status put_one(struct table *table, const struct tensor *keys, const struct tensor *values, int64_t i, bool unique) {
  struct string_view key = key_at(keys, i);
  TRY(table_reserve(table));
  uint64_t hash = hash_bytes(key.data, key.size, 0);
  int64_t *slot = &table->index[slot_of(table, key, hash)];
  struct table_entry *there = *slot && !table->entries[*slot - 1].is_removed ? &table->entries[*slot - 1] : NULL;
  char *value = value_copy(table, values, i);
  if (!value)
    return fail(RESOURCE_EXHAUSTED, "no memory for a table's value");
  if (there) {
    bool same = !unique || value_equal(table, there->value, value);
    free(same ? there->value : value);
    if (same)
      there->value = value;
    return same ? OK : fail(FAILED_PRECONDITION, "HashTable has different value for same key.");
  }
  int64_t number = *slot ? *slot - 1 : table->count;
  status result = entry_begin(table, number, key, hash, value);
  if (result == OK)
    *slot = number + 1;
  else
    free(value);
  return result;
}

/* ---- what ops do ---- */

static const struct shape *key_shape(const struct table *table) {
  static const struct shape scalar = {0};
  return table->dense ? dense_table_key_shape(table->dense) : &scalar;
}

/* The shape of the values for keys of this shape, which must end with that of a key. */
static status values_shape(const struct table *table, const struct shape *keys, struct shape *out) {
  const struct shape *key = key_shape(table), *value = &table->spec.value_shape;
  *out = *keys;
  out->rank -= key->rank;
  if (out->rank < 0 || memcmp(keys->dims + out->rank, key->dims, sizeof *key->dims * (size_t)key->rank) != 0)
    return fail(INVALID_ARGUMENT, "Input key shape %s must end with the table's key shape %s", shape_text(keys), shape_text(key));
  if (out->rank + value->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", out->rank + value->rank);
  for (int d = 0; d < value->rank; d++)
    out->dims[out->rank++] = value->dims[d];
  return OK;
}

static status check_keys(const struct table *table, const struct tensor *keys) {
  struct shape unused;
  if (keys->dtype != table->spec.key)
    return fail(INVALID_ARGUMENT, "Key must be type %s but got %s", dtype_name(table->spec.key), dtype_name(keys->dtype));
  return values_shape(table, &keys->shape, &unused);
}

static status check_values(const struct table *table, const struct tensor *keys, const struct tensor *values) {
  struct shape wanted;
  TRY(check_keys(table, keys));
  TRY(values_shape(table, &keys->shape, &wanted));
  if (values->dtype != table->spec.value)
    return fail(INVALID_ARGUMENT, "Value must be type %s but got %s", dtype_name(table->spec.value), dtype_name(values->dtype));
  if (!shape_equal(&wanted, &values->shape))
    return fail(INVALID_ARGUMENT, "Expected shape %s for value, got %s", shape_text(&wanted), shape_text(&values->shape));
  return OK;
}

/* What is imported into a dense table is its buckets: matrices. */
static status check_buckets(const struct table *table, const struct tensor *keys, const struct tensor *values) {
  int64_t width = shape_count(key_shape(table));
  if (keys->dtype != table->spec.key || values->dtype != table->spec.value)
    return fail(INVALID_ARGUMENT, "Key must be type %s and value %s but got %s and %s", dtype_name(table->spec.key),
                dtype_name(table->spec.value), dtype_name(keys->dtype), dtype_name(values->dtype));
  if (keys->shape.rank < 1 || values->shape.rank < 1 || keys->count != keys->shape.dims[0] * width ||
      values->count != keys->shape.dims[0] * table->value_count)
    return fail(INVALID_ARGUMENT, "Expected buckets of keys and values, got shapes %s and %s", shape_text(&keys->shape),
                shape_text(&values->shape));
  return OK;
}

static status put_all(struct table *table, const struct tensor *keys, const struct tensor *values, bool unique) {
  for (int64_t i = 0; i < keys->count; i++)
    TRY(put_one(table, keys, values, i, unique));
  return OK;
}

status table_initialize(struct table *table, const struct tensor *keys, const struct tensor *values) {
  if (table->spec.is_mutable)
    return fail(INVALID_ARGUMENT, "Table %s is not initializable", table->resource.name ? table->resource.name : "?");
  TRY(check_values(table, keys, values));
  if (keys->count == 0)
    return fail(INVALID_ARGUMENT, "keys and values cannot be empty tensors.");
  pthread_rwlock_wrlock(&table->lock);
  status result = OK;
  if (table->is_initialized) {
    if (keys->count != table->count) /* TensorFlow compares no more */
      result = fail(FAILED_PRECONDITION, "Table was already initialized with different data.");
  } else {
    result = put_all(table, keys, values, true);
    table->is_initialized = result == OK;
    if (result != OK)
      entries_clear(table);
  }
  pthread_rwlock_unlock(&table->lock);
  return result;
}

status table_insert(struct table *table, const struct tensor *keys, const struct tensor *values, bool all) {
  if (all && !table->spec.is_mutable)
    return table_initialize(table, keys, values);
  TRY(table->dense && all ? check_buckets(table, keys, values) : check_values(table, keys, values));
  if (!table->spec.is_mutable)
    return fail(UNIMPLEMENTED, "Insert not supported by HashTable implementations");
  pthread_rwlock_wrlock(&table->lock);
  if (all)
    entries_clear(table);
  status result = !table->dense ? put_all(table, keys, values, false)
                : all           ? dense_table_import(table->dense, keys, values)
                                : dense_table_insert(table->dense, keys, values);
  pthread_rwlock_unlock(&table->lock);
  return result;
}

status table_remove(struct table *table, const struct tensor *keys) {
  TRY(check_keys(table, keys));
  if (!table->spec.is_mutable)
    return fail(UNIMPLEMENTED, "Remove not supported by HashTable implementations");
  pthread_rwlock_wrlock(&table->lock);
  status result = table->dense ? dense_table_remove(table->dense, keys) : OK;
  for (int64_t i = 0; i < keys->count && !table->dense; i++) {
    struct table_entry *e = entry_find(table, key_at(keys, i));
    if (e) {
      free(e->value);
      e->value = NULL;
      e->is_removed = true;
      table->removed++;
      bucket_order_remove(&table->order, e - table->entries);
    }
  }
  pthread_rwlock_unlock(&table->lock);
  return result;
}

static status put_found(const struct table *table, const struct tensor *keys, const struct tensor *otherwise, struct tensor *out,
                        struct string_output *text) {
  size_t size = dtype_size(table->spec.value) * (size_t)table->value_count;
  bool each = table->spec.is_mutable && otherwise->count == keys->count * table->value_count;
  for (int64_t i = 0; i < keys->count; i++) {
    const struct table_entry *e = entry_find(table, key_at(keys, i));
    const char *value = e ? e->value : (const char *)otherwise->data + (each ? (size_t)i * size : 0);
    if (!text && size)
      memcpy((char *)out->data + (size_t)i * size, value, size);
    for (int64_t k = 0; text && k < table->value_count; k++)
      string_output_put(text, ((const struct string_view *)(const void *)value)[k].data,
                        ((const struct string_view *)(const void *)value)[k].size);
  }
  return text ? string_output_end(text) : OK;
}

static status find_values(struct table *table, const struct tensor *keys, const struct tensor *otherwise, const struct shape *shape,
                          struct tensor **out) {
  struct string_output text;
  bool is_text = table->spec.value == DTYPE_STRING;
  if (table->dense)
    return dense_table_find(table->dense, keys, otherwise, shape, out);
  TRY(is_text ? string_output_begin(&text, shape, out) : tensor_create(table->spec.value, shape, out));
  return put_found(table, keys, otherwise, *out, is_text ? &text : NULL);
}

status table_find(struct table *table, const struct tensor *keys, const struct tensor *otherwise, struct tensor **out) {
  struct shape shape;
  TRY(check_keys(table, keys));
  TRY(values_shape(table, &keys->shape, &shape));
  if (otherwise->dtype != table->spec.value)
    return fail(INVALID_ARGUMENT, "Value must be type %s but got %s", dtype_name(table->spec.value), dtype_name(otherwise->dtype));
  if (!shape_equal(&otherwise->shape, &table->spec.value_shape) && !shape_equal(&otherwise->shape, &shape))
    return fail(INVALID_ARGUMENT, "Expected shape %s or %s for default value, got %s", shape_text(&table->spec.value_shape),
                shape_text(&shape), shape_text(&otherwise->shape));
  pthread_rwlock_rdlock(&table->lock);
  status result =
    table->is_initialized ? find_values(table, keys, otherwise, &shape, out) : fail(FAILED_PRECONDITION, "Table not initialized.");
  pthread_rwlock_unlock(&table->lock);
  return result;
}

static status export_locked(struct table *table, struct tensor **keys, struct tensor **values) {
  int64_t count = table->count - table->removed, at = 0;
  struct shape shape = {1, {count}};
  struct string_output key_text, value_text;
  bool keys_are_text = table->spec.key == DTYPE_STRING, values_are_text = table->spec.value == DTYPE_STRING;
  size_t key_size = dtype_size(table->spec.key), size = dtype_size(table->spec.value) * (size_t)table->value_count;
  TRY(keys_are_text ? string_output_begin(&key_text, &shape, keys) : tensor_create(table->spec.key, &shape, keys));
  for (int d = 0; d < table->spec.value_shape.rank && shape.rank < LIMIT_RANK; d++)
    shape.dims[shape.rank++] = table->spec.value_shape.dims[d];
  TRY(values_are_text ? string_output_begin(&value_text, &shape, values) : tensor_create(table->spec.value, &shape, values));
  for (int64_t i = bucket_order_first(&table->order); i >= 0; i = bucket_order_next(&table->order, i)) {
    const struct table_entry *e = &table->entries[i];
    if (keys_are_text)
      string_output_put(&key_text, e->key, e->key_size);
    else
      memcpy((char *)(*keys)->data + (size_t)at * key_size, e->key, key_size);
    for (int64_t k = 0; values_are_text && k < table->value_count; k++)
      string_output_put(&value_text, ((const struct string_view *)(const void *)e->value)[k].data,
                        ((const struct string_view *)(const void *)e->value)[k].size);
    if (!values_are_text && size)
      memcpy((char *)(*values)->data + (size_t)at * size, e->value, size);
    at++;
  }
  if (keys_are_text)
    TRY(string_output_end(&key_text));
  return values_are_text ? string_output_end(&value_text) : OK;
}

status table_export(struct table *table, struct tensor **keys, struct tensor **values) {
  pthread_rwlock_rdlock(&table->lock);
  status result = table->dense          ? dense_table_export(table->dense, keys, values)
                : table->is_initialized ? export_locked(table, keys, values)
                                        : fail(ABORTED, "HashTable is not initialized.");
  pthread_rwlock_unlock(&table->lock);
  return result;
}
