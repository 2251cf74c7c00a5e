/* dense_table.c: two arrays of cells. A cell is an element; strings own their bytes. */
#include "runtime/resource/dense_table.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/text/string_hash.h"

#define BUCKETS_MAX (INT64_C(1) << 40)

struct cells {
  enum dtype dtype;
  int64_t width; /* elements of a key, or of a value */
  size_t size;   /* bytes of an element */
  char *data;    /* rows */
};
struct dense_table {
  struct cells keys, values, empty, deleted; /* empty, deleted: one row; deleted.data NULL: none */
  struct shape key_shape;
  int64_t buckets, entries;
  double max_load;
};

/* ---- cells ---- */

static struct cells cells_like(enum dtype dtype, const struct shape *shape) {
  return (struct cells){dtype, shape_count(shape), dtype_size(dtype), NULL};
}

static status cells_create(struct cells *c, int64_t rows) {
  int64_t count;
  c->data = __builtin_mul_overflow(rows, c->width, &count) ? NULL : calloc((size_t)count + 1, c->size);
  return c->data ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a table of %lld buckets", (long long)rows);
}

static const char *row_of(const struct cells *c, const void *data, int64_t row) {
  return (const char *)data + (size_t)(row * c->width) * c->size;
}

static void cells_free(struct cells *c, int64_t rows) {
  struct string_view *views = (struct string_view *)(void *)c->data;
  for (int64_t i = 0; c->dtype == DTYPE_STRING && c->data && i < rows * c->width; i++)
    free((char *)(uintptr_t)views[i].data);
  free(c->data);
  c->data = NULL;
}

/* Row `to` becomes a copy of the elements at `from`. */
static status cells_put(struct cells *c, int64_t to, const void *from) {
  char *at = c->data + (size_t)(to * c->width) * c->size;
  if (c->dtype != DTYPE_STRING) {
    memcpy(at, from, (size_t)c->width * c->size);
    return OK;
  }
  struct string_view *views = (struct string_view *)(void *)at;
  for (int64_t i = 0; i < c->width; i++) {
    const struct string_view *text = (const struct string_view *)from + i;
    char *bytes = malloc(text->size + 1);
    if (!bytes)
      return fail(RESOURCE_EXHAUSTED, "no memory for a table's string");
    if (text->size)
      memcpy(bytes, text->data, text->size);
    free((char *)(uintptr_t)views[i].data);
    views[i] = (struct string_view){bytes, text->size};
  }
  return OK;
}

static bool rows_equal(const struct cells *c, const void *a, const void *b) {
  if (c->dtype == DTYPE_FLOAT || c->dtype == DTYPE_DOUBLE) {
    for (int64_t i = 0; i < c->width; i++)
      if (c->dtype == DTYPE_FLOAT ? ((const float *)a)[i] != ((const float *)b)[i] : ((const double *)a)[i] != ((const double *)b)[i])
        return false;
    return true;
  }
  if (c->dtype != DTYPE_STRING)
    return memcmp(a, b, (size_t)c->width * c->size) == 0;
  const struct string_view *x = a, *y = b;
  for (int64_t i = 0; i < c->width; i++)
    if (!string_equal(x[i], y[i]))
      return false;
  return true;
}

static uint64_t hash_element(enum dtype dtype, const void *data, int64_t i) {
  switch (dtype) {
  case DTYPE_STRING: return hash_murmur(((const struct string_view *)data)[i].data, ((const struct string_view *)data)[i].size);
  case DTYPE_INT64: return (uint64_t)((const int64_t *)data)[i];
  case DTYPE_INT32: return (uint64_t)(int64_t)((const int32_t *)data)[i];
  case DTYPE_FLOAT: return (uint64_t)((const float *)data)[i];
  case DTYPE_DOUBLE: return (uint64_t)((const double *)data)[i];
  default: return *((const uint8_t *)data + i);
  }
}

static uint64_t hash_row(const struct cells *c, const void *row) {
  uint64_t result = 0;
  if (c->width == 1)
    return hash_element(c->dtype, row, 0);
  for (int64_t i = 0; i < c->width; i++)
    result ^= hash_element(c->dtype, row, i) + UINT64_C(0x9e3779b97f4a7800) + (result << 10) + (result >> 4);
  return result;
}

/* ---- making ---- */

static void buckets_free(struct dense_table *t) {
  cells_free(&t->keys, t->buckets);
  cells_free(&t->values, t->buckets);
}

/* New buckets, all empty; those the table had are the caller's. */
static status allocate(struct dense_table *t, int64_t buckets) {
  t->keys.data = t->values.data = NULL;
  t->buckets = buckets;
  t->entries = 0;
  TRY(cells_create(&t->keys, buckets));
  TRY(cells_create(&t->values, buckets));
  for (int64_t i = 0; i < buckets; i++)
    TRY(cells_put(&t->keys, i, t->empty.data));
  return OK;
}

static status check_spec(const struct dense_spec *spec) {
  const struct tensor *empty = spec->empty_key, *deleted = spec->deleted_key;
  if (!(spec->max_load > 0 && spec->max_load < 1))
    return fail(INVALID_ARGUMENT, "max_load_factor must be between 0 and 1, got: %g", spec->max_load);
  if (spec->value_shape.rank > 1)
    return fail(INVALID_ARGUMENT, "Empty value must be a scalar or a vector, got shape %s", shape_text(&spec->value_shape));
  if (spec->key_shape.rank > 1)
    return fail(INVALID_ARGUMENT, "Empty key must be a scalar or a vector, got shape %s", shape_text(&spec->key_shape));
  if (deleted && (deleted->shape.rank != empty->shape.rank || deleted->count != empty->count))
    return fail(INVALID_ARGUMENT, "Empty and deleted keys must have same shape, got shapes: %s and %s", shape_text(&empty->shape),
                shape_text(&deleted->shape));
  struct cells one = cells_like(spec->key, &spec->key_shape);
  if (deleted && rows_equal(&one, empty->data, deleted->data))
    return fail(INVALID_ARGUMENT, "Empty and deleted keys cannot be equal");
  if (spec->buckets < 4 || (spec->buckets & (spec->buckets - 1)) != 0 || spec->buckets > BUCKETS_MAX)
    return fail(INVALID_ARGUMENT, "Number of buckets must be at least 4 and a power of 2, got: %lld", (long long)spec->buckets);
  return OK;
}

static status fill(struct dense_table *t, const struct dense_spec *spec) {
  TRY(cells_create(&t->empty, 1));
  TRY(cells_put(&t->empty, 0, spec->empty_key->data));
  if (spec->deleted_key) {
    TRY(cells_create(&t->deleted, 1));
    TRY(cells_put(&t->deleted, 0, spec->deleted_key->data));
  }
  return allocate(t, spec->buckets);
}

status dense_table_create(const struct dense_spec *spec, struct dense_table **out) {
  TRY(check_spec(spec));
  struct dense_table *t = calloc(1, sizeof *t);
  if (!t)
    return fail(RESOURCE_EXHAUSTED, "no memory for a table");
  t->key_shape = spec->key_shape;
  t->keys = t->empty = t->deleted = cells_like(spec->key, &spec->key_shape);
  t->values = cells_like(spec->value, &spec->value_shape);
  t->max_load = (float)spec->max_load;
  status result = fill(t, spec);
  if (result == OK)
    *out = t;
  else
    dense_table_free(t);
  return result;
}

void dense_table_free(struct dense_table *t) {
  if (!t)
    return;
  buckets_free(t);
  cells_free(&t->empty, 1);
  cells_free(&t->deleted, 1);
  free(t);
}

const struct shape *dense_table_key_shape(const struct dense_table *t) { return &t->key_shape; }
int64_t dense_table_size(const struct dense_table *t) { return t->entries; }

/* ---- probing ---- */

static bool is_empty(const struct dense_table *t, const void *key) { return rows_equal(&t->keys, key, t->empty.data); }
static bool is_deleted(const struct dense_table *t, const void *key) {
  return t->deleted.data && rows_equal(&t->keys, key, t->deleted.data);
}

static status check_key(const struct dense_table *t, const void *key) {
  if (is_empty(t, key))
    return fail(INVALID_ARGUMENT, "Using the empty_key as a table key is not allowed");
  if (is_deleted(t, key))
    return fail(INVALID_ARGUMENT, "Using the deleted_key as a table key is not allowed");
  return OK;
}

/* The bucket of the key, or (-1) none. *place: where a new key would go. */
static int64_t probe(const struct dense_table *t, const void *key, int64_t *place) {
  int64_t at = (int64_t)(hash_row(&t->keys, key) & (uint64_t)(t->buckets - 1));
  *place = -1;
  for (int64_t probes = 0; probes < t->buckets; at = (at + ++probes) & (t->buckets - 1)) {
    const void *there = row_of(&t->keys, t->keys.data, at);
    if (rows_equal(&t->keys, there, key))
      return at;
    if (is_empty(t, there)) {
      *place = *place < 0 ? at : *place;
      return -1;
    }
    if (is_deleted(t, there) && *place < 0)
      *place = at;
  }
  return -1;
}

/* A key that may be there behind a deleted one is put again in front of it, as TensorFlow's table does. */
static status put(struct dense_table *t, const void *key, const void *value) {
  int64_t place, at = probe(t, key, &place);
  bool fresh = at < 0 || place >= 0;
  at = fresh ? place : at;
  if (at < 0)
    return fail(INTERNAL, "Internal error in MutableDenseHashTable insert");
  if (fresh) {
    t->entries++;
    TRY(cells_put(&t->keys, at, key));
  }
  return cells_put(&t->values, at, value);
}

/* The table gets the buckets of `fresh`, a copy of it with others, if all went well; the rest is freed. */
static status replace_buckets(struct dense_table *t, struct dense_table *fresh, status result) {
  struct dense_table old = *t;
  if (result == OK)
    *t = *fresh;
  buckets_free(result == OK ? &old : fresh);
  return result;
}

static status rebucket(struct dense_table *t, int64_t buckets) {
  struct dense_table fresh = *t;
  status result = allocate(&fresh, buckets);
  for (int64_t i = 0; i < t->buckets && result == OK; i++) {
    const void *key = row_of(&t->keys, t->keys.data, i);
    if (!is_empty(t, key) && !is_deleted(t, key))
      result = put(&fresh, key, row_of(&t->values, t->values.data, i));
  }
  return replace_buckets(t, &fresh, result);
}

/* ---- what the table does ---- */

/* The dimensions in front of a key's own. */
static int64_t key_count(const struct dense_table *t, const struct tensor *keys) {
  struct shape outer = keys->shape;
  outer.rank -= t->key_shape.rank;
  return shape_count(&outer);
}

status dense_table_insert(struct dense_table *t, const struct tensor *keys, const struct tensor *values) {
  int64_t count = key_count(t, keys), buckets = t->buckets ? t->buckets : 4;
  while ((double)(t->entries + count) > (double)buckets * t->max_load) {
    if (buckets > BUCKETS_MAX / 2)
      return fail(RESOURCE_EXHAUSTED, "a table of more than %lld buckets", (long long)BUCKETS_MAX);
    buckets *= 2;
  }
  if (buckets != t->buckets)
    TRY(rebucket(t, buckets));
  for (int64_t i = 0; i < count; i++) {
    const void *key = row_of(&t->keys, keys->data, i);
    TRY(check_key(t, key));
    TRY(put(t, key, row_of(&t->values, values->data, i)));
  }
  return OK;
}

status dense_table_remove(struct dense_table *t, const struct tensor *keys) {
  if (!t->deleted.data)
    return fail(UNIMPLEMENTED, "Remove of a table without a deleted_key");
  for (int64_t i = 0; i < key_count(t, keys); i++) {
    const void *key = row_of(&t->keys, keys->data, i);
    TRY(check_key(t, key));
    int64_t place, at = probe(t, key, &place);
    if (at < 0)
      continue;
    t->entries--;
    TRY(cells_put(&t->keys, at, t->deleted.data));
  }
  return OK;
}

/* The rows behind each other: strings are the table's own, or those of `otherwise`. */
static status find_rows(const struct dense_table *t, const struct tensor *keys, const struct tensor *otherwise, char *to) {
  size_t row = (size_t)t->values.width * t->values.size;
  for (int64_t i = 0; i < key_count(t, keys); i++) {
    const void *key = row_of(&t->keys, keys->data, i);
    TRY(check_key(t, key));
    int64_t place, at = probe(t, key, &place);
    if (row)
      memcpy(to + (size_t)i * row, at < 0 ? otherwise->data : row_of(&t->values, t->values.data, at), row);
  }
  return OK;
}

status dense_table_find(const struct dense_table *t, const struct tensor *keys, const struct tensor *otherwise, const struct shape *shape,
                        struct tensor **out) {
  if (t->values.dtype != DTYPE_STRING) {
    TRY(tensor_create(t->values.dtype, shape, out));
    return find_rows(t, keys, otherwise, (*out)->data);
  }
  struct tensor *views;
  TRY(tensor_create(DTYPE_STRING, shape, &views));
  status result = find_rows(t, keys, otherwise, views->data);
  if (result == OK)
    result = tensor_clone(views, out); /* with bytes of its own */
  tensor_release(views);
  return result;
}

status dense_table_export(const struct dense_table *t, struct tensor **keys, struct tensor **values) {
  TRY(tensor_copy_in(t->keys.dtype, &(struct shape){2, {t->buckets, t->keys.width}}, t->keys.data, keys));
  return tensor_copy_in(t->values.dtype, &(struct shape){2, {t->buckets, t->values.width}}, t->values.data, values);
}

status dense_table_import(struct dense_table *t, const struct tensor *keys, const struct tensor *values) {
  struct dense_table fresh = *t;
  int64_t rows = keys->shape.dims[0];
  status result = allocate(&fresh, rows);
  for (int64_t i = 0; i < rows && result == OK; i++) {
    const void *key = row_of(&t->keys, keys->data, i);
    result = cells_put(&fresh.keys, i, key);
    if (result == OK)
      result = cells_put(&fresh.values, i, row_of(&t->values, values->data, i));
    fresh.entries += !is_empty(t, key) && !is_deleted(t, key);
  }
  return replace_buckets(t, &fresh, result);
}
