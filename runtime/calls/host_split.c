/* host_split.c: StringSplit and StringSplitV2: a vector of strings becomes a sparse matrix of their parts. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/text/string_output.h"

struct part {
  struct string_view text;
  int64_t row, column;
};
struct parts {
  struct part *items;
  int64_t count, capacity;
};

static status part_add(struct parts *parts, struct string_view text, int64_t row, int64_t column) {
  if (parts->count == parts->capacity) {
    int64_t capacity = parts->capacity * 2 + 64;
    struct part *grown = realloc(parts->items, (size_t)capacity * sizeof *grown);
    if (!grown)
      return fail(RESOURCE_EXHAUSTED, "no memory for %lld parts of strings", (long long)capacity);
    parts->items = grown;
    parts->capacity = capacity;
  }
  parts->items[parts->count++] = (struct part){text, row, column};
  return OK;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* At any byte of `set`; an empty set cuts between all bytes. */
static status split_by_set(struct parts *parts, struct string_view text, int64_t row, struct string_view set, bool skip_empty) {
  int64_t column = 0;
  if (set.size == 0) {
    for (size_t i = 0; i < text.size; i++)
      TRY(part_add(parts, (struct string_view){text.data + i, 1}, row, column++));
    return OK;
  }
  size_t from = 0;
  for (size_t i = 0; text.size && i <= text.size; i++) {
    if (i < text.size && !memchr(set.data, text.data[i], set.size))
      continue;
    if (!skip_empty || i > from)
      TRY(part_add(parts, (struct string_view){text.data + from, i - from}, row, column++));
    from = i + 1;
  }
  return OK;
}

/* At runs of white space, as Python does without a separator. */
static status split_by_space(struct parts *parts, struct string_view text, int64_t row, int64_t limit) {
  size_t at = 0;
  if (limit == 0)
    return part_add(parts, text, row, 0);
  for (int64_t column = 0;; column++) {
    while (at < text.size && is_space(text.data[at]))
      at++;
    if (limit > 0 && column == limit) /* the rest, also when it is empty */
      return part_add(parts, (struct string_view){text.data + at, text.size - at}, row, column);
    if (at == text.size)
      return OK;
    size_t from = at;
    while (at < text.size && !is_space(text.data[at]))
      at++;
    TRY(part_add(parts, (struct string_view){text.data + from, at - from}, row, column));
  }
}

static status split_by_text(struct parts *parts, struct string_view text, int64_t row, struct string_view separator, int64_t limit) {
  if (text.size == 0) /* one empty part */
    return part_add(parts, text, row, 0);
  int64_t column = 0;
  for (;; column++) {
    const char *found = limit >= 0 && column == limit ? NULL : memmem(text.data, text.size, separator.data, separator.size);
    if (!found)
      return part_add(parts, text, row, column);
    size_t size = (size_t)(found - text.data);
    TRY(part_add(parts, (struct string_view){text.data, size}, row, column));
    text.data += size + separator.size;
    text.size -= size + separator.size;
  }
}

static status put_parts(struct host_call *call, const struct parts *parts, int64_t rows) {
  struct string_output out;
  int64_t columns = 0;
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){2, {parts->count, 2}}));
  TRY(string_output_begin(&out, &(struct shape){1, {parts->count}}, &call->outputs[1]));
  TRY(host_make_output(call, 2, DTYPE_INT64, &(struct shape){1, {2}}));
  int64_t *indices = call->outputs[0]->data, *shape = call->outputs[2]->data;
  for (int64_t i = 0; i < parts->count; i++) {
    const struct part *part = &parts->items[i];
    indices[2 * i] = part->row;
    indices[2 * i + 1] = part->column;
    columns = part->column >= columns ? part->column + 1 : columns;
    string_output_put(&out, part->text.data, part->text.size);
  }
  shape[0] = rows;
  shape[1] = columns;
  return string_output_end(&out);
}

static status check_inputs(const struct host_call *call, const char *separator) {
  if (call->inputs[0].shape.rank != 1)
    return fail(INVALID_ARGUMENT, "input must be a vector, got shape: %s", shape_text(&call->inputs[0].shape));
  if (call->inputs[1].count != 1 || call->inputs[1].shape.rank > 1)
    return fail(INVALID_ARGUMENT, "%s must be a scalar, got shape: %s", separator, shape_text(&call->inputs[1].shape));
  return OK;
}

status host_string_split(struct host_call *call) {
  TRY(check_inputs(call, "delimiter"));
  const struct tensor *in = &call->inputs[0];
  struct parts parts = {0};
  status result = OK;
  for (int64_t i = 0; i < in->count && result == OK; i++)
    result = split_by_set(&parts, ((const struct string_view *)in->data)[i], i, host_scalar_string(&call->inputs[1]),
                          host_attr_int(call, "skip_empty", 1) != 0);
  if (result == OK)
    result = put_parts(call, &parts, in->count);
  free(parts.items);
  return result;
}

status host_string_split_v2(struct host_call *call) {
  TRY(check_inputs(call, "sep"));
  const struct tensor *in = &call->inputs[0];
  struct string_view separator = host_scalar_string(&call->inputs[1]);
  int64_t limit = host_attr_int(call, "maxsplit", -1);
  struct parts parts = {0};
  status result = OK;
  for (int64_t i = 0; i < in->count && result == OK; i++) {
    struct string_view text = ((const struct string_view *)in->data)[i];
    result = separator.size ? split_by_text(&parts, text, i, separator, limit) : split_by_space(&parts, text, i, limit);
  }
  if (result == OK)
    result = put_parts(call, &parts, in->count);
  free(parts.items);
  return result;
}
