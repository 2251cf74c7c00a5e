/* host_table.c: the ops on lookup tables. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/host/host_path.h"
#include "runtime/resource/dense_table.h"
#include "runtime/resource/table.h"
#include "runtime/text/number_parse.h"

/* ---- making ---- */

static status read_spec(const struct host_call *call, bool is_mutable, struct table_spec *spec) {
  spec->is_mutable = is_mutable;
  spec->key = (enum dtype)host_attr_int(call, "key_dtype", DTYPE_STRING);
  spec->value = (enum dtype)host_attr_int(call, "value_dtype", DTYPE_INT64);
  TRY(host_read_shape(call, host_attr(call, "value_shape"), &spec->value_shape));
  spec->value_shape.rank = spec->value_shape.rank < 0 ? 0 : spec->value_shape.rank;
  return OK;
}

/* A table without a name to share is its handle's, a new one each time. */
static status make_table(struct host_call *call, struct table_spec *spec) {
  struct resource *table;
  bool is_new;
  if (!host_attr(call, "shared_name"))
    return host_make_anonymous(call, &table_maker, spec, &table);
  TRY(host_get_resource(call, &table_maker, spec, &is_new, &table));
  const struct table_spec *there = table_get_spec((struct table *)table);
  if (there->key != spec->key || there->value != spec->value)
    return fail(INVALID_ARGUMENT, "Conflicting key/value dtypes %s->%s with %s-%s for table %s", dtype_name(spec->key),
                dtype_name(spec->value), dtype_name(there->key), dtype_name(there->value), table->name);
  return host_make_handle(call, table);
}

status host_hash_table(struct host_call *call) {
  struct table_spec spec = {0};
  TRY(read_spec(call, false, &spec));
  return make_table(call, &spec);
}

status host_mutable_hash_table(struct host_call *call) {
  struct table_spec spec = {0};
  TRY(read_spec(call, true, &spec));
  if (host_attr(call, "value_shape") && spec.value_shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Default value must be a vector, got shape %s", shape_text(&spec.value_shape));
  return make_table(call, &spec);
}

/* The first generation has no deleted key. */
status host_dense_hash_table(struct host_call *call) {
  struct table_spec spec = {0};
  TRY(read_spec(call, true, &spec));
  struct dense_spec dense = {
    .key = spec.key,
    .value = spec.value,
    .key_shape = call->inputs[0].shape,
    .value_shape = spec.value_shape,
    .empty_key = &call->inputs[0],
    .deleted_key = call->input_count > 1 ? &call->inputs[1] : NULL,
    .buckets = host_attr_int(call, "initial_num_buckets", 131072),
    .max_load = host_attr_float(call, "max_load_factor", 0.8),
  };
  spec.dense = &dense;
  return make_table(call, &spec);
}

static status find_table(const struct host_call *call, struct table **out) {
  struct resource *resource;
  TRY(host_find_resource(call, 0, "table", &resource));
  *out = (struct table *)resource;
  return OK;
}

/* ---- filling ---- */

status host_table_initialize(struct host_call *call) {
  struct table *table;
  TRY(find_table(call, &table));
  for (int i = 1; i < 3; i++)
    if (call->inputs[i].shape.rank != 1)
      return fail(INVALID_ARGUMENT, "%s must be a vector, but received shape%s", i == 1 ? "Keys" : "Values",
                  shape_text(&call->inputs[i].shape));
  if (call->inputs[1].count != call->inputs[2].count)
    return fail(INVALID_ARGUMENT, "Keys and values must have the same size %lld vs %lld", (long long)call->inputs[1].count,
                (long long)call->inputs[2].count);
  return table_initialize(table, &call->inputs[1], &call->inputs[2]);
}

enum { COLUMN_LINE = -2, COLUMN_NUMBER = -1 };

struct text_file {
  const struct host_call *call;
  const char *path, *at, *end;
  int64_t key_column, value_column, offset, number;
  char delimiter;
};

static struct string_view column_of(const struct text_file *f, struct string_view line, int64_t column, bool *missing) {
  *missing = false;
  if (column == COLUMN_LINE)
    return line;
  for (;; column--) {
    const char *end = line.size ? memchr(line.data, f->delimiter, line.size) : NULL;
    size_t size = end ? (size_t)(end - line.data) : line.size;
    if (column == 0)
      return (struct string_view){line.data, size};
    if (!end) {
      *missing = true;
      return line;
    }
    line.data += size + 1;
    line.size -= size + 1;
  }
}

static status put_column(const struct text_file *f, struct string_view line, int64_t column, struct tensor *to, int64_t i) {
  bool missing;
  if (column == COLUMN_NUMBER) {
    if (to->dtype != DTYPE_INT64)
      return fail(INVALID_ARGUMENT, "Key index for line number requires table dtype of int64, got %s", dtype_name(to->dtype));
    ((int64_t *)to->data)[i] = f->number;
    return OK;
  }
  struct string_view text = column_of(f, line, column, &missing);
  if (missing)
    return fail(INVALID_ARGUMENT, "Invalid number of columns in %s line %lld", f->path, (long long)f->number);
  if (to->dtype == DTYPE_STRING) {
    ((struct string_view *)to->data)[i] = text;
    return OK;
  }
  if (!number_parse(text, to->dtype, to->data, i))
    return fail(INVALID_ARGUMENT, "Field %.*s in line %lld is not a valid %s.", (int)(text.size < 200 ? text.size : 200), text.data,
                (long long)f->number, dtype_name(to->dtype));
  return OK;
}

static bool next_line(struct text_file *f, struct string_view *line) {
  if (f->at == f->end)
    return false;
  const char *end = memchr(f->at, '\n', (size_t)(f->end - f->at));
  *line = (struct string_view){f->at, (size_t)((end ? end : f->end) - f->at)};
  f->at = end ? end + 1 : f->end;
  if (line->size && line->data[line->size - 1] == '\r')
    line->size--;
  return true;
}

static int64_t count_lines(const struct text_file *f) {
  struct text_file walk = *f;
  struct string_view line;
  int64_t count = 0;
  while (next_line(&walk, &line))
    count++;
  return count;
}

static status fill_from(struct text_file *f, struct table *table) {
  int64_t wanted = host_attr_int(f->call, "vocab_size", -1), count = count_lines(f);
  if (wanted > count)
    return fail(INVALID_ARGUMENT, "Invalid vocab_size in %s: expected %lld but got %lld", f->path, (long long)wanted, (long long)count);
  count = wanted >= 0 ? wanted : count;
  struct tensor *keys = NULL, *values = NULL;
  struct string_view line;
  status result = tensor_create(table_get_spec(table)->key, &(struct shape){1, {count}}, &keys);
  if (result == OK)
    result = tensor_create(table_get_spec(table)->value, &(struct shape){1, {count}}, &values);
  for (f->number = 0; result == OK && f->number < count && next_line(f, &line); f->number++) {
    result = put_column(f, line, f->key_column, keys, f->number);
    if (result == OK)
      result = put_column(f, line, f->value_column, values, f->number);
  }
  if (result == OK)
    result = table_initialize(table, keys, values);
  tensor_release(keys);
  tensor_release(values);
  return result;
}

status host_table_initialize_from_file(struct host_call *call) {
  char path[HOST_PATH_MAX], *data;
  size_t size;
  struct table *table;
  struct string_view delimiter = host_attr_string(call, "delimiter", "\t");
  TRY(find_table(call, &table));
  TRY(host_scalar_path(call, 1, "filename", path, sizeof path));
  if (delimiter.size != 1)
    return fail(INVALID_ARGUMENT, "delimiter should be only 1 char");
  TRY(host_read_file(path, &data, &size));
  struct text_file file = {.call = call, .path = path, .at = data, .end = data + size, .delimiter = delimiter.data[0]};
  file.key_column = host_attr_int(call, "key_index", COLUMN_LINE);
  file.value_column = host_attr_int(call, "value_index", COLUMN_NUMBER);
  for (int64_t i = host_attr_int(call, "offset", 0); i > 0; i--) {
    struct string_view line;
    if (!next_line(&file, &line))
      break;
  }
  status result = fill_from(&file, table);
  free(data);
  return result;
}

/* ---- using ---- */

status host_table_find(struct host_call *call) {
  struct table *table;
  TRY(find_table(call, &table));
  return table_find(table, &call->inputs[1], &call->inputs[2], &call->outputs[0]);
}

status host_table_size(struct host_call *call) {
  struct table *table;
  TRY(find_table(call, &table));
  return host_give_number(call, 0, DTYPE_INT64, table_size(table));
}

status host_table_insert(struct host_call *call) {
  struct table *table;
  TRY(find_table(call, &table));
  return table_insert(table, &call->inputs[1], &call->inputs[2], false);
}
status host_table_import(struct host_call *call) {
  struct table *table;
  TRY(find_table(call, &table));
  return table_insert(table, &call->inputs[1], &call->inputs[2], true);
}
status host_table_remove(struct host_call *call) {
  struct table *table;
  TRY(find_table(call, &table));
  return table_remove(table, &call->inputs[1]);
}
status host_table_export(struct host_call *call) {
  struct table *table;
  TRY(find_table(call, &table));
  return table_export(table, &call->outputs[0], &call->outputs[1]);
}
