/* host_sets.c: sets along the last dimension of tensors, dense or sparse: difference, intersection, union, and sizes.
 *
 * A group is all that has the same place in the dimensions before the last. Its members are gathered and sorted, doubled ones
 * dropped; two groups are then merged. Members are integers or strings. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/host/host.h"
#include "runtime/text/element_number.h"
#include "runtime/text/string_output.h"
#include "runtime/value/sparse_tensor.h"

union member {
  int64_t number;
  struct string_view text;
};

/* One operand: a dense tensor, or the entries of a sparse one, taken group by group. */
struct operand {
  const struct tensor *values;
  struct sparse_tensor sparse; /* indices NULL: dense */
  int rank;
  int64_t dims[LIMIT_RANK];
  int64_t at;            /* the first entry of the next group */
  union member *members; /* of the group taken last */
  int64_t count;
};

struct found_sets {
  const struct operand *like; /* says dtype and rank */
  int64_t *groups;            /* of each member: its group's place, rank - 1 numbers */
  int64_t *places;            /* in its set */
  union member *members;
  int64_t count, longest;
};

enum operation { A_WITHOUT_B, B_WITHOUT_A, INTERSECTION, UNION };

/* ---- members ---- */

static int compare_text(const void *a, const void *b) {
  const struct string_view *x = &((const union member *)a)->text, *y = &((const union member *)b)->text;
  size_t shorter = x->size < y->size ? x->size : y->size;
  int order = shorter ? memcmp(x->data, y->data, shorter) : 0;
  return order ? order : (x->size > y->size) - (x->size < y->size);
}
static int compare_number(const void *a, const void *b) {
  int64_t x = ((const union member *)a)->number, y = ((const union member *)b)->number;
  return (x > y) - (x < y);
}
typedef int (*comparison)(const void *, const void *);
static comparison comparison_of(const struct tensor *values) { return values->dtype == DTYPE_STRING ? compare_text : compare_number; }

static union member member_at(const struct tensor *values, int64_t i) {
  if (values->dtype == DTYPE_STRING)
    return (union member){.text = ((const struct string_view *)values->data)[i]};
  return (union member){.number = element_int(values, i)};
}

/* Members [from, to) of the values as a set. */
static void take_members(struct operand *o, int64_t from, int64_t to) {
  comparison compare = comparison_of(o->values);
  int64_t count = to - from, kept = 0;
  for (int64_t i = 0; i < count; i++)
    o->members[i] = member_at(o->values, from + i);
  if (count)
    qsort(o->members, (size_t)count, sizeof *o->members, compare);
  for (int64_t i = 0; i < count; i++)
    if (kept == 0 || compare(&o->members[kept - 1], &o->members[i]) != 0)
      o->members[kept++] = o->members[i];
  o->count = kept;
}

/* ---- operands ---- */

static status operand_begin(struct operand *o) {
  if (o->rank < 2)
    return fail(INVALID_ARGUMENT, "Shape of rank %d: a set needs rank 2 at least", o->rank);
  o->members = malloc(sizeof *o->members * (size_t)(o->values->count + 1));
  return o->members ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a set");
}

static status dense_operand(const struct tensor *values, struct operand *o) {
  *o = (struct operand){.values = values, .rank = values->shape.rank};
  memcpy(o->dims, values->shape.dims, sizeof o->dims);
  return operand_begin(o);
}

static status sparse_operand(struct host_call *call, uint32_t first, struct operand *o) {
  *o = (struct operand){.values = &call->inputs[first + 1]};
  TRY(sparse_tensor_read(&call->inputs[first], o->values, &call->inputs[first + 2], &o->sparse));
  o->rank = o->sparse.rank;
  if (o->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a sparse tensor of rank %d", o->rank);
  struct shape shape = {.rank = o->rank};
  memcpy(shape.dims, o->sparse.dims, sizeof(int64_t) * (size_t)o->rank);
  if (shape_count(&shape) < 0)
    return fail(INVALID_ARGUMENT, "%s is no shape of a tensor", shape_text(&shape));
  memcpy(o->dims, shape.dims, sizeof o->dims);
  if (host_attr_int(call, "validate_indices", 1))
    TRY(sparse_tensor_check_order(&o->sparse));
  return operand_begin(o);
}

static status check_group(const struct operand *o, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++)
    for (int d = 0; d < o->rank; d++)
      if (o->dims[d] <= 0 || sparse_index(&o->sparse, i, d) >= o->dims[d])
        return fail(INTERNAL, "indices[%lld, %d] expected < %lld, got %lld", (long long)i, d, (long long)o->dims[d],
                    (long long)sparse_index(&o->sparse, i, d));
  return OK;
}

/* The place of the next group of a sparse operand; NULL behind the last. */
static const int64_t *next_group(const struct operand *o) { return o->at < o->sparse.count ? o->sparse.indices + o->at * o->rank : NULL; }

static status take_group(struct operand *o) {
  int64_t from = o->at;
  const int64_t *group = next_group(o);
  while (o->at < o->sparse.count && memcmp(group, next_group(o), sizeof *group * (size_t)(o->rank - 1)) == 0)
    o->at++;
  TRY(check_group(o, from, o->at));
  take_members(o, from, o->at);
  return OK;
}

/* ---- results ---- */

static void found_put(struct found_sets *f, const int64_t *group, int64_t *place, union member member) {
  size_t width = (size_t)f->like->rank - 1;
  memcpy(f->groups + (size_t)f->count * width, group, width * sizeof *group);
  f->places[f->count] = (*place)++;
  f->members[f->count++] = member;
}

/* One walk over both sets, which are sorted. */
static void merge(struct found_sets *f, enum operation what, const int64_t *group, const struct operand *a, const struct operand *b) {
  comparison compare = comparison_of(a->values);
  int64_t i = 0, j = 0, place = 0;
  while (i < a->count || j < b->count) {
    int order = i == a->count ? 1 : j == b->count ? -1 : compare(&a->members[i], &b->members[j]);
    bool wanted = order < 0 ? what == A_WITHOUT_B || what == UNION
                : order > 0 ? what == B_WITHOUT_A || what == UNION
                            : what == INTERSECTION || what == UNION;
    if (wanted)
      found_put(f, group, &place, order <= 0 ? a->members[i] : b->members[j]);
    i += order <= 0;
    j += order >= 0;
  }
  f->longest = place > f->longest ? place : f->longest;
}

static status found_begin(struct found_sets *f, const struct operand *a, const struct operand *b) {
  size_t most = (size_t)(a->values->count + b->values->count) + 1;
  *f = (struct found_sets){.like = a};
  f->groups = malloc(most * (size_t)a->rank * sizeof *f->groups);
  f->places = malloc(most * sizeof *f->places);
  f->members = malloc(most * sizeof *f->members);
  return f->groups && f->places && f->members ? OK : fail(RESOURCE_EXHAUSTED, "no memory for sets");
}

static status put_members(struct host_call *call, const struct found_sets *f) {
  struct shape shape = {1, {f->count}};
  if (f->like->values->dtype == DTYPE_STRING) {
    struct string_output out;
    TRY(string_output_begin(&out, &shape, &call->outputs[1]));
    for (int64_t i = 0; i < f->count; i++)
      string_output_put(&out, f->members[i].text.data, f->members[i].text.size);
    return string_output_end(&out);
  }
  TRY(host_make_output(call, 1, f->like->values->dtype, &shape));
  for (int64_t i = 0; i < f->count; i++)
    element_put_int(call->outputs[1], i, f->members[i].number);
  return OK;
}

static status found_put_outputs(struct host_call *call, const struct found_sets *f) {
  int rank = f->like->rank;
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){2, {f->count, rank}}));
  int64_t *to = call->outputs[0]->data;
  for (int64_t i = 0; i < f->count; i++, to += rank) {
    memcpy(to, f->groups + i * (rank - 1), sizeof *to * (size_t)(rank - 1));
    to[rank - 1] = f->places[i];
  }
  TRY(put_members(call, f));
  TRY(host_make_output(call, 2, DTYPE_INT64, &(struct shape){1, {rank}}));
  memcpy(call->outputs[2]->data, f->like->dims, sizeof(int64_t) * (size_t)(rank - 1));
  ((int64_t *)call->outputs[2]->data)[rank - 1] = f->longest;
  return OK;
}

/* ---- the walks ---- */

static status walk_sparse(struct found_sets *f, enum operation what, struct operand *a, struct operand *b) {
  const int64_t *x, *y;
  while (x = next_group(a), y = next_group(b), x || y) {
    int order = !x ? 1 : !y ? -1 : 0;
    for (int d = 0; d < a->rank - 1 && order == 0; d++)
      order = (x[d] > y[d]) - (x[d] < y[d]);
    a->count = b->count = 0;
    if (order <= 0)
      TRY(take_group(a));
    if (order >= 0)
      TRY(take_group(b));
    merge(f, what, order <= 0 ? x : y, a, b);
  }
  return OK;
}

/* Each group of the dense operand with the equal one of the other. */
static status walk_dense(struct found_sets *f, enum operation what, struct operand *a, struct operand *b) {
  int64_t groups = 1, place[LIMIT_RANK] = {0};
  for (int d = 0; d < a->rank - 1; d++)
    groups *= a->dims[d];
  for (int64_t g = 0; g < groups; g++) {
    int64_t left = g, width = b->dims[b->rank - 1];
    for (int d = a->rank - 2; d >= 0; d--) {
      place[d] = left % a->dims[d];
      left /= a->dims[d];
    }
    take_members(a, g * a->dims[a->rank - 1], (g + 1) * a->dims[a->rank - 1]);
    b->count = 0;
    const int64_t *other = b->sparse.indices ? next_group(b) : NULL;
    if (!b->sparse.indices)
      take_members(b, g * width, (g + 1) * width);
    else if (other && memcmp(other, place, sizeof *place * (size_t)(a->rank - 1)) == 0)
      TRY(take_group(b));
    merge(f, what, place, a, b);
  }
  return OK;
}

static status operation_of(const struct host_call *call, enum operation *out) {
  static const char *const names[] = {"a-b", "b-a", "intersection", "union"};
  struct string_view name = host_attr_string(call, "set_operation", "");
  for (int i = 0; i < 4; i++)
    if (strlen(names[i]) == name.size && strncasecmp(names[i], name.data, name.size) == 0) {
      *out = (enum operation)i;
      return OK;
    }
  return fail(INVALID_ARGUMENT, "Invalid set_operation %.*s.", (int)name.size, name.data);
}

static status operate(struct host_call *call, struct operand *a, struct operand *b, struct found_sets *f) {
  enum operation what = A_WITHOUT_B;
  TRY(operation_of(call, &what));
  if (a->rank != b->rank || memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)(a->rank - 1)) != 0) {
    struct shape x = {.rank = a->rank - 1}, y = {.rank = b->rank - 1};
    memcpy(x.dims, a->dims, sizeof x.dims);
    memcpy(y.dims, b->dims, sizeof y.dims);
    return fail(INVALID_ARGUMENT, "Mismatched shapes %s vs %s", shape_text(&x), shape_text(&y));
  }
  TRY(found_begin(f, a, b));
  TRY(a->sparse.indices ? walk_sparse(f, what, a, b) : walk_dense(f, what, a, b));
  return found_put_outputs(call, f);
}

static status end(struct operand *a, struct operand *b, struct found_sets *f, status result) {
  free(a->members);
  free(b->members);
  free(f->groups);
  free(f->places);
  free(f->members);
  return result;
}

status host_dense_sets(struct host_call *call) {
  struct operand a = {0}, b = {0};
  struct found_sets f = {0};
  status s = dense_operand(&call->inputs[0], &a);
  s = s == OK ? dense_operand(&call->inputs[1], &b) : s;
  return end(&a, &b, &f, s == OK ? operate(call, &a, &b, &f) : s);
}

status host_dense_sparse_sets(struct host_call *call) {
  struct operand a = {0}, b = {0};
  struct found_sets f = {0};
  status s = dense_operand(&call->inputs[0], &a);
  s = s == OK ? sparse_operand(call, 1, &b) : s;
  return end(&a, &b, &f, s == OK ? operate(call, &a, &b, &f) : s);
}

status host_sparse_sets(struct host_call *call) {
  struct operand a = {0}, b = {0};
  struct found_sets f = {0};
  status s = sparse_operand(call, 0, &a);
  s = s == OK ? sparse_operand(call, 3, &b) : s;
  return end(&a, &b, &f, s == OK ? operate(call, &a, &b, &f) : s);
}

static status put_sizes(struct host_call *call, struct operand *o) {
  struct shape shape = {.rank = o->rank - 1};
  memcpy(shape.dims, o->dims, sizeof shape.dims);
  TRY(host_make_output(call, 0, DTYPE_INT32, &shape));
  int32_t *sizes = call->outputs[0]->data;
  int64_t count = call->outputs[0]->count;
  if (count)
    memset(sizes, 0, sizeof *sizes * (size_t)count);
  for (const int64_t *group; (group = next_group(o));) {
    uint64_t to = 0; /* indices below 0 give places behind the last */
    TRY(take_group(o));
    for (int d = 0; d < o->rank - 1; d++)
      to = to * (uint64_t)o->dims[d] + (uint64_t)group[d];
    if (to >= (uint64_t)count)
      return fail(INVALID_ARGUMENT, "Index out of range, %lld vs %s", (long long)to, shape_text(&shape));
    sizes[to] = (int32_t)o->count;
  }
  return OK;
}

status host_set_size(struct host_call *call) {
  struct operand o = {0}, none = {0};
  struct found_sets f = {0};
  status s = sparse_operand(call, 0, &o);
  return end(&o, &none, &f, s == OK ? put_sizes(call, &o) : s);
}
