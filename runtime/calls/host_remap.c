/* host_remap.c: warm starts with another vocabulary: where the new words were in the old one (GenerateVocabRemapping), and a matrix of a
 * checkpoint with its rows and columns put in the new order (LoadAndRemapMatrix). */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/checkpoint.h"
#include "base/map.h"
#include "base/vec.h"
#include "runtime/data/record_file.h"
#include "runtime/host/host.h"

#define MISSING (-1)

/* ---- vocabularies: a word in each line ---- */

struct vocabulary {
  struct arena arena;
  struct map lines; /* word -> number of its line */
  VEC(const char *) words;
};

static void vocabulary_free(struct vocabulary *v) {
  map_deinit(&v->lines);
  vec_free(&v->words);
  arena_deinit(&v->arena);
}

/* At most `most` lines; -1: all. */
static status vocabulary_read(struct vocabulary *v, struct string_view path, int64_t most, bool must_differ) {
  struct record_file file = {0};
  struct string_view line, none = {"", 0};
  bool end = false;
  *v = (struct vocabulary){0};
  arena_init(&v->arena);
  status result = path.size ? record_file_open(&file, path, none) : fail(INVALID_ARGUMENT, "vocab filename cannot be empty.");
  while (result == OK && (most < 0 || v->words.count < most)) {
    result = record_file_line(&file, &line, &end);
    if (result != OK || end)
      break;
    const char *word = arena_printf(&v->arena, "%.*s", (int)line.size, line.data);
    bool is_new = map_insert(&v->lines, word, v->words.count);
    vec_push(&v->words, word);
    if (!is_new && must_differ)
      result = fail(FAILED_PRECONDITION, "HashTable has different value for same key. Key %s has several lines", word);
  }
  record_file_free(&file);
  if (result == OK && most >= 0 && v->words.count < most)
    result = fail(INVALID_ARGUMENT, "Invalid vocab_size in %.*s: expected %lld but got %u", (int)path.size, path.data, (long long)most,
                  v->words.count);
  if (result != OK)
    vocabulary_free(v);
  return result;
}

static status put_remapping(struct host_call *call, const struct vocabulary *new, const struct vocabulary *old) {
  int64_t offset = host_attr_int(call, "new_vocab_offset", 0), count = host_attr_int(call, "num_new_vocab", 0);
  if (offset + count > new->words.count)
    return fail(INVALID_ARGUMENT, "lookup table size must be larger than last new vocab entry's line");
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){1, {count}}));
  TRY(host_make_output(call, 1, DTYPE_INT32, &(struct shape){0}));
  int32_t *present = call->outputs[1]->data;
  *present = 0;
  for (int64_t i = 0; i < count; i++) {
    uint32_t line;
    bool is_there = map_find(&old->lines, new->words.items[offset + i], &line);
    ((int64_t *)call->outputs[0]->data)[i] = is_there ? (int64_t)line : MISSING;
    *present += is_there;
  }
  return OK;
}

status host_vocabulary_remapping(struct host_call *call) {
  struct vocabulary new, old;
  for (uint32_t i = 0; i < 2; i++)
    if (call->inputs[i].shape.rank != 0)
      return fail(INVALID_ARGUMENT, "%s_vocab_file should be a single string, but got %s", i ? "old" : "new",
                  shape_text(&call->inputs[i].shape));
  TRY(vocabulary_read(&new, host_scalar_string(&call->inputs[0]), -1, false));
  status result = vocabulary_read(&old, host_scalar_string(&call->inputs[1]), host_attr_int(call, "old_vocab_size", -1), true);
  if (result == OK) {
    result = put_remapping(call, &new, &old);
    vocabulary_free(&old);
  }
  vocabulary_free(&new);
  return result;
}

/* ---- matrices ---- */

enum remap_input { REMAP_PATH, REMAP_NAME, REMAP_ROWS, REMAP_COLUMNS, REMAP_INITIAL };

static int by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Each old number may be asked for once, and must be there. */
static status check_remapping(const struct tensor *remapping, int64_t size) {
  size_t count = (size_t)remapping->count;
  int64_t *sorted = malloc(count * sizeof *sorted + 1);
  if (!sorted)
    return fail(RESOURCE_EXHAUSTED, "no memory for a remapping");
  if (count)
    memcpy(sorted, remapping->data, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, by_number);
  status result = OK;
  for (size_t i = 0; i < count && result == OK; i++)
    if (i && sorted[i] >= 0 && sorted[i] == sorted[i - 1])
      result = fail(UNIMPLEMENTED, "Old ID %lld is mapped to more than one new ID", (long long)sorted[i]);
    else if (sorted[i] >= size)
      result = fail(INVALID_ARGUMENT, "old ID %lld is outside of the %lld that there are", (long long)sorted[i], (long long)size);
  free(sorted);
  return result;
}

static status check_sizes(const struct host_call *call, int64_t rows, int64_t columns) {
  const struct tensor *row = &call->inputs[REMAP_ROWS], *column = &call->inputs[REMAP_COLUMNS];
  if (row->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "The `row_remapping` tensor must be 1-D, got a tensor of shape %s", shape_text(&row->shape));
  if (row->count != rows)
    return fail(INVALID_ARGUMENT, "Size of row_remapping is %lld instead of being equal to num_rows=%lld", (long long)row->count,
                (long long)rows);
  if (column->count && column->count != columns)
    return fail(INVALID_ARGUMENT, "Provided col_remapping, but its size is %lld instead of being equal to num_cols=%lld",
                (long long)column->count, (long long)columns);
  return OK;
}

static status check_matrix(const struct host_call *call, const char *name, const struct checkpoint_entry *entry, int64_t columns) {
  if (entry->dtype != DTYPE_FLOAT)
    return fail(INVALID_ARGUMENT, "Tensor %s has invalid type %s instead of expected type float", name, dtype_name(entry->dtype));
  if (entry->shape.rank != 2)
    return fail(INVALID_ARGUMENT, "Tensor %s has shape %s of invalid rank %d instead of expected shape of rank 2.", name,
                shape_text(&entry->shape), entry->shape.rank);
  if (call->inputs[REMAP_COLUMNS].count == 0 && entry->shape.dims[1] != columns)
    return fail(INVALID_ARGUMENT,
                "Tensor %s has shape %s, where the size of its 2nd dimension is %lld instead of being equal to num_cols=%lld", name,
                shape_text(&entry->shape), (long long)entry->shape.dims[1], (long long)columns);
  TRY(check_remapping(&call->inputs[REMAP_ROWS], entry->shape.dims[0]));
  return check_remapping(&call->inputs[REMAP_COLUMNS], entry->shape.dims[1]);
}

/* Cells that were not there get the initial values, one after the other. */
static status put_matrix(struct host_call *call, const float *old, int64_t old_columns, int64_t rows, int64_t columns) {
  const int64_t *row_map = call->inputs[REMAP_ROWS].data, *column_map = call->inputs[REMAP_COLUMNS].data;
  const struct tensor *initial = &call->inputs[REMAP_INITIAL];
  int64_t used = 0;
  TRY(host_make_output(call, 0, DTYPE_FLOAT, &(struct shape){2, {rows, columns}}));
  float *to = call->outputs[0]->data;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = 0; k < columns; k++, to++) {
      int64_t column = call->inputs[REMAP_COLUMNS].count ? column_map[k] : k;
      if (row_map[r] >= 0 && column >= 0)
        *to = old[row_map[r] * old_columns + column];
      else if (used++ < initial->count)
        *to = ((const float *)initial->data)[used - 1];
    }
  return used == initial->count ? OK
                                : fail(INVALID_ARGUMENT, "%lld cells are missing, but there are %lld initializing_values", (long long)used,
                                       (long long)initial->count);
}

static status load_matrix(struct host_call *call, struct arena *arena, int64_t rows, int64_t columns) {
  char prefix[HOST_PATH_MAX];
  struct checkpoint *checkpoint;
  struct checkpoint_entry entry;
  struct checkpoint_value value;
  struct string_view view = host_scalar_string(&call->inputs[REMAP_NAME]);
  const char *name = arena_printf(arena, "%.*s", (int)view.size, view.data);
  TRY(host_scalar_path(call, REMAP_PATH, "ckpt_path", prefix, sizeof prefix));
  TRY(checkpoint_open(prefix, arena, &checkpoint));
  TRY(checkpoint_find(checkpoint, name, &entry));
  TRY(check_matrix(call, name, &entry, columns));
  TRY(checkpoint_read(checkpoint, name, &value));
  return put_matrix(call, value.data, value.shape.dims[1], rows, columns);
}

status host_load_and_remap(struct host_call *call) {
  int64_t rows = host_attr_int(call, "num_rows", 0), columns = host_attr_int(call, "num_cols", 1);
  struct arena arena;
  TRY(check_sizes(call, rows, columns));
  arena_init(&arena);
  status result = load_matrix(call, &arena, rows, columns);
  arena_deinit(&arena);
  return result;
}
