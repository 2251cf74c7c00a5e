/* collective_value.c: sums, rows and parts of tensors. */
#include "runtime/resource/collective_value.h"

#include <string.h>

/* The merged values of the round. */
static status reduce(const struct collective_values *c, struct tensor **out) {
  struct tensor *sum;
  TRY(tensor_clone(c->given[0], &sum));
  for (int64_t i = 1; i < c->count; i++) {
    const struct tensor *next = c->given[i];
    if (next->count != sum->count || next->dtype != sum->dtype) {
      status result = fail(INVALID_ARGUMENT, "shapes differ: %s and %s", shape_text(&sum->shape), shape_text(&next->shape));
      tensor_release(sum);
      return result;
    }
    element_merge(sum->dtype, c->merge, sum->data, next->data, next->count);
  }
  if (c->mean)
    element_divide(sum->dtype, sum->data, sum->count, c->count);
  *out = sum;
  return OK;
}

static status check_rows(const struct tensor *t, const struct tensor *first) {
  bool same = t->dtype == first->dtype && t->shape.rank == first->shape.rank && t->shape.rank > 0;
  for (int d = 1; d < first->shape.rank && same; d++)
    same = t->shape.dims[d] == first->shape.dims[d];
  return same ? OK : fail(INVALID_ARGUMENT, "shapes differ: %s and %s", shape_text(&first->shape), shape_text(&t->shape));
}

/* Rows `from` to `from + rows` (or all: -1) of each contribution, behind each other. */
static status collect_rows(const struct collective_values *c, int64_t from, int64_t rows, struct tensor **out) {
  const struct tensor *first = c->given[0];
  struct shape shape = first->shape;
  int64_t total = 0;
  for (int64_t i = 0; i < c->count; i++) {
    TRY(check_rows(c->given[i], first));
    total += rows < 0 ? c->given[i]->shape.dims[0] : rows;
  }
  shape.dims[0] = total;
  TRY(tensor_create(first->dtype, &shape, out));
  char *to = (*out)->data;
  size_t row = first->shape.dims[0] ? (size_t)tensor_byte_size(first) / (size_t)first->shape.dims[0] : 0;
  for (int64_t i = 0; i < c->count; i++) {
    const struct tensor *t = c->given[i];
    size_t bytes = row * (size_t)(rows < 0 ? t->shape.dims[0] : rows);
    if (bytes)
      memcpy(to, (const char *)t->data + row * (size_t)from, bytes);
    to += bytes;
  }
  return OK;
}

/* Part `member` of a tensor cut along its first dimension. */
static status cut(const struct collective_values *c, const struct tensor *whole, int64_t member, struct tensor **out) {
  struct shape shape = whole->shape;
  if (shape.rank < 1 || shape.dims[0] % c->count != 0)
    return fail(INVALID_ARGUMENT, "a value of shape %s for %lld members", shape_text(&shape), (long long)c->count);
  shape.dims[0] /= c->count;
  TRY(tensor_create(whole->dtype, &shape, out));
  size_t bytes = (size_t)tensor_byte_size(*out);
  if (bytes)
    memcpy((*out)->data, (const char *)whole->data + bytes * (size_t)member, bytes);
  return OK;
}

static status only_value(const struct collective_values *c, struct tensor **out) {
  *out = NULL;
  for (int64_t i = 0; i < c->count; i++)
    if (c->given[i]) {
      if (*out)
        return fail(INTERNAL, "two members of the group send");
      *out = c->given[i];
    }
  if (!*out)
    return fail(INTERNAL, "the group found no source for broadcast");
  tensor_retain(*out);
  return OK;
}

status collective_common(const struct collective_values *c, struct tensor **out) {
  switch (c->kind) {
  case COLLECTIVE_REDUCE:
  case COLLECTIVE_SCATTER: return reduce(c, out);
  case COLLECTIVE_GATHER:
    TRY(collect_rows(c, 0, -1, out));
    if (c->mean)
      element_divide((*out)->dtype, (*out)->data, (*out)->count, c->count);
    return OK;
  case COLLECTIVE_BROADCAST: return only_value(c, out);
  case COLLECTIVE_ALL_TO_ALL: break;
  }
  for (int64_t i = 0; i < c->count; i++)
    if (c->given[i]->shape.rank < 1 || c->given[i]->shape.dims[0] != c->count)
      return fail(INVALID_ARGUMENT, "a value of shape %s for %lld members", shape_text(&c->given[i]->shape), (long long)c->count);
  *out = tensor_retain(c->given[0]);
  return OK;
}

status collective_own(const struct collective_values *c, struct tensor *common, int64_t member, struct tensor **out) {
  if (c->kind == COLLECTIVE_SCATTER)
    return cut(c, common, member, out);
  if (c->kind == COLLECTIVE_ALL_TO_ALL)
    return collect_rows(c, member, 1, out);
  *out = tensor_retain(common);
  return OK;
}
