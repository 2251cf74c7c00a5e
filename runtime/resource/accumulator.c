/* accumulator.c: a sum and a count under a lock; a sparse sum is three parallel arrays, sorted by index. */
#include "runtime/resource/accumulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/host/wait_list.h"
#include "runtime/program/fault.h"
#include "runtime/value/element_sum.h"

struct accumulator {
  struct resource resource; /* first */
  struct accumulator_spec spec;
  pthread_mutex_t lock;
  int64_t step, count;
  struct tensor *sum;        /* dense; sparse: rows; NULL when nothing was applied */
  int64_t *indices, *counts; /* sparse: of the rows */
  int64_t rows;
  struct wait_list takers;
  struct accumulator_round round; /* of whoever took last, */
  int64_t asked;                  /* and how many it asked for */
  uint32_t *left;                 /* replicas that apply nothing any more */
  uint32_t left_count, left_capacity;
};

static bool fits(const struct accumulator_spec *spec, const struct shape *shape) {
  if (!spec->has_shape)
    return true;
  if (spec->sparse ? spec->shape.rank > shape->rank : spec->shape.rank != shape->rank)
    return false; /* of rows the first dimensions are enough */
  for (int i = spec->sparse; i < spec->shape.rank; i++)
    if (spec->shape.dims[i] >= 0 && spec->shape.dims[i] != shape->dims[i])
      return false;
  return true;
}

/* ---- giving ---- */

/* Outputs of a call that takes; the accumulator begins anew. */
static status give_dense(struct accumulator *a, struct host_call *call) {
  if (a->spec.mean)
    element_divide(a->spec.dtype, a->sum->data, a->sum->count, a->count);
  call->outputs[0] = a->sum;
  a->sum = NULL;
  return OK;
}

static status give_sparse(struct accumulator *a, struct host_call *call) {
  int64_t row = a->rows ? a->sum->count / a->rows : 0;
  for (int64_t i = 0; a->spec.mean && i < a->rows; i++)
    element_divide(a->spec.dtype, (char *)a->sum->data + i * row * (int64_t)dtype_size(a->spec.dtype), row, a->counts[i]);
  TRY(tensor_copy_in(DTYPE_INT64, &(struct shape){1, {a->rows}}, a->indices, &call->outputs[0]));
  int64_t dims[LIMIT_RANK];
  memcpy(dims, a->sum->shape.dims, sizeof dims);
  dims[0] = a->spec.has_shape && a->spec.shape.rank > 0 ? a->spec.shape.dims[0] : -1;
  TRY(tensor_copy_in(DTYPE_INT64, &(struct shape){1, {a->sum->shape.rank}}, dims, &call->outputs[2]));
  call->outputs[1] = a->sum;
  a->sum = NULL;
  free(a->indices);
  free(a->counts);
  a->indices = a->counts = NULL;
  a->rows = 0;
  return OK;
}

/* How many are enough for the first in the line. */
static int64_t needed(const struct accumulator *a) {
  int64_t asked = a->takers.first->number, possible = (a->round.replicas - a->left_count) * a->round.each;
  if (!a->round.each || possible >= asked)
    return asked;
  return possible > 1 ? possible : 1;
}

/* Serves those at the front of the line for whom there is enough. */
static struct wait_entry *serve(struct accumulator *a) {
  struct wait_entry *over = NULL;
  while (a->takers.first && a->count >= needed(a)) {
    struct host_call *call = a->takers.first->call;
    status result = a->spec.sparse ? give_sparse(a, call) : give_dense(a, call);
    wait_list_move_first(&a->takers, result, result == OK ? "" : status_text(), &over);
    a->count = 0;
    a->step++;
  }
  return over;
}

/* ---- applying ---- */

static status add_dense(struct accumulator *a, const struct tensor *gradient) {
  if (!a->sum)
    return tensor_clone(gradient, &a->sum);
  if (!shape_equal(&a->sum->shape, &gradient->shape))
    return fail(INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s", shape_text(&a->sum->shape), shape_text(&gradient->shape));
  element_add(a->spec.dtype, a->sum->data, gradient->data, gradient->count);
  return OK;
}

/* Two sorted lists of rows become one; equal indices are added. `into` has room for all rows. */
struct merge {
  const struct accumulator *a;
  const int64_t *indices;
  const struct tensor *values;
  int64_t added, row_bytes, row;
  int64_t *out_indices, *out_counts, rows;
  char *out;
};

static void merge_rows(struct merge *m) {
  int64_t i = 0, j = 0;
  const char *old = m->a->sum ? m->a->sum->data : NULL, *new = m->values->data;
  while (i < m->a->rows || j < m->added) {
    bool from_old = i < m->a->rows && (j >= m->added || m->a->indices[i] <= m->indices[j]);
    bool both = from_old && j < m->added && m->a->indices[i] == m->indices[j];
    m->out_indices[m->rows] = from_old ? m->a->indices[i] : m->indices[j];
    m->out_counts[m->rows] = (from_old ? m->a->counts[i] : 0) + (both || !from_old);
    char *to = m->out + m->rows * m->row_bytes;
    memcpy(to, from_old ? old + i * m->row_bytes : new + j * m->row_bytes, (size_t)m->row_bytes);
    if (both)
      element_add(m->a->spec.dtype, to, new + j * m->row_bytes, m->row);
    i += from_old;
    j += both || !from_old;
    m->rows++;
  }
}

static status add_sparse(struct accumulator *a, const struct tensor *indices, const struct tensor *values) {
  struct shape shape = values->shape, before = a->sum ? a->sum->shape : shape;
  int64_t added = indices->count;
  before.dims[0] = shape.dims[0];
  if (!shape_equal(&before, &shape))
    return fail(INVALID_ARGUMENT, "Shape mismatch: expected rows like %s, got %s", shape_text(&a->sum->shape), shape_text(&shape));
  shape.dims[0] = a->rows + added;
  struct merge m = {.a = a, .indices = indices->data, .values = values, .added = added};
  m.row = added ? values->count / added : a->rows ? a->sum->count / a->rows : 0;
  m.row_bytes = m.row * (int64_t)dtype_size(a->spec.dtype);
  struct tensor *rows;
  TRY(tensor_create(a->spec.dtype, &shape, &rows));
  m.out = rows->data;
  m.out_indices = calloc((size_t)shape.dims[0] + 1, sizeof *m.out_indices);
  m.out_counts = calloc((size_t)shape.dims[0] + 1, sizeof *m.out_counts);
  if (!m.out_indices || !m.out_counts) {
    free(m.out_indices);
    free(m.out_counts);
    tensor_release(rows);
    return fail(RESOURCE_EXHAUSTED, "no memory");
  }
  merge_rows(&m);
  rows->shape.dims[0] = m.rows;
  rows->count = m.rows * m.row;
  tensor_release(a->sum);
  free(a->indices);
  free(a->counts);
  a->sum = rows;
  a->indices = m.out_indices;
  a->counts = m.out_counts;
  a->rows = m.rows;
  return OK;
}

static void come_back(struct accumulator *a, uint32_t driver) {
  for (uint32_t i = 0; i < a->left_count; i++)
    if (a->left[i] == driver) {
      a->left[i] = a->left[--a->left_count];
      return;
    }
}

static status apply(struct accumulator *a, uint32_t driver, int64_t step, const struct tensor *indices, const struct tensor *values) {
  pthread_mutex_lock(&a->lock);
  status result = OK;
  struct wait_entry *over = NULL;
  come_back(a, driver);
  if (step >= a->step || FAULT(37)) { /* an older one is stale, and dropped */
    result = a->spec.sparse ? add_sparse(a, indices, values) : add_dense(a, values);
    a->count += result == OK;
    over = serve(a);
  }
  pthread_mutex_unlock(&a->lock);
  TRY(wait_list_finish(over, NULL));
  return result;
}

static status check_gradient(const struct accumulator *a, const struct tensor *values) {
  if (values->dtype != a->spec.dtype)
    return fail(INVALID_ARGUMENT, "Expected data type %s, got %s", dtype_name(a->spec.dtype), dtype_name(values->dtype));
  if (!fits(&a->spec, &values->shape))
    return fail(INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s", shape_text(&a->spec.shape), shape_text(&values->shape));
  return OK;
}

status accumulator_apply(struct accumulator *a, uint32_t driver, int64_t step, const struct tensor *gradient) {
  TRY(check_gradient(a, gradient));
  return apply(a, driver, step, NULL, gradient);
}

static status check_rows(const struct accumulator *a, const struct tensor *indices, const struct tensor *whole) {
  const struct shape *shape = &a->spec.shape;
  const int64_t *dims = whole ? whole->data : NULL, *index = indices->data;
  if (whole && shape->rank > whole->count)
    return fail(INVALID_ARGUMENT, "Shape mismatch: expected shape rank at least %d, got %lld", shape->rank, (long long)whole->count);
  for (int i = 0; whole && i < shape->rank; i++)
    if (shape->dims[i] >= 0 && shape->dims[i] != dims[i])
      return fail(INVALID_ARGUMENT, "Shape mismatch: expected shape dim %d to be %lld, got %lld", i, (long long)shape->dims[i],
                  (long long)dims[i]);
  for (int64_t i = 0; shape->rank && shape->dims[0] >= 0 && i < indices->count; i++)
    if (index[i] >= shape->dims[0])
      return fail(INVALID_ARGUMENT, "Shape mismatch: index of slice %lld exceeded limits of shape; index is %lld exceeded %lld",
                  (long long)i, (long long)index[i], (long long)shape->dims[0]);
  return OK;
}

status accumulator_apply_sparse(struct accumulator *a, uint32_t driver, int64_t step, const struct tensor *indices,
                                const struct tensor *values, const struct tensor *whole) {
  TRY(check_gradient(a, values));
  if (indices->dtype != DTYPE_INT64 || indices->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Input indices should be vector but received shape: %s", shape_text(&indices->shape));
  if (values->shape.rank < 1 || values->shape.dims[0] != indices->count)
    return fail(INVALID_ARGUMENT, "Number of indices %lld does not match number of rows in values %s", (long long)indices->count,
                shape_text(&values->shape));
  TRY(check_rows(a, indices, whole));
  return apply(a, driver, step, indices, values);
}

/* ---- the rest ---- */

status accumulator_take(struct accumulator *a, struct host_call *call, int64_t required, struct accumulator_round round) {
  if (required < 1)
    return fail(INVALID_ARGUMENT, "Argument num_required must be > 0, but is %lld", (long long)required);
  pthread_mutex_lock(&a->lock);
  a->round = round;
  a->asked = required;
  struct wait_entry *entry = wait_list_add(&a->takers, call, required);
  struct wait_entry *over = entry ? serve(a) : NULL;
  wait_list_settle(over, call);
  pthread_mutex_unlock(&a->lock);
  if (!entry)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  return wait_list_finish(over, call);
}

/* Under the lock. */
static void note_left(struct accumulator *a, uint32_t driver) {
  come_back(a, driver);
  if (a->left_count == a->left_capacity) {
    uint32_t capacity = a->left_capacity * 2 + 4, *grown = realloc(a->left, capacity * sizeof *grown);
    a->left_capacity = grown ? capacity : a->left_capacity;
    a->left = grown ? grown : a->left;
  }
  if (a->left_count < a->left_capacity)
    a->left[a->left_count++] = driver;
}

void accumulator_leave(struct accumulator *a, uint32_t driver) {
  pthread_mutex_lock(&a->lock);
  note_left(a, driver);
  struct wait_entry *over = serve(a);
  pthread_mutex_unlock(&a->lock);
  (void)wait_list_finish(over, NULL); /* none of them is the caller's */
}

static bool has_left(const struct accumulator *a, uint32_t driver) {
  for (uint32_t i = 0; i < a->left_count; i++)
    if (a->left[i] == driver)
      return true;
  return false;
}

bool accumulator_miss(struct accumulator *a, uint32_t driver, bool may_leave, bool is_needed, const char *text) {
  struct wait_entry *over = NULL;
  pthread_mutex_lock(&a->lock);
  bool matters = a->round.each && !has_left(a, driver);
  bool enough = !is_needed && (a->round.replicas - a->left_count - 1) * a->round.each >= a->asked;
  if (matters && (may_leave || enough)) {
    note_left(a, driver);
    over = serve(a);
  }
  bool stops = matters && !may_leave && !enough;
  while (stops && text && a->takers.first)
    wait_list_move_first(&a->takers, DEADLINE_EXCEEDED, text, &over);
  pthread_mutex_unlock(&a->lock);
  (void)wait_list_finish(over, NULL); /* none of them is the caller's */
  return !stops;
}

void accumulator_reset(struct accumulator *a) {
  struct wait_entry *over = NULL;
  pthread_mutex_lock(&a->lock);
  if (a->round.each) {
    tensor_release(a->sum);
    free(a->indices);
    free(a->counts);
    a->sum = NULL;
    a->indices = a->counts = NULL;
    a->rows = a->count = a->step = 0;
    while (a->takers.first)
      wait_list_move_first(&a->takers, ABORTED, "variables were restored", &over);
  }
  pthread_mutex_unlock(&a->lock);
  (void)wait_list_finish(over, NULL); /* none of them is the caller's */
}

void accumulator_set_step(struct accumulator *a, int64_t step) {
  pthread_mutex_lock(&a->lock);
  if (!a->round.each || step > a->step) /* of a round: a chief that has come back tells it amid a round that was taken already */
    a->step = step;
  pthread_mutex_unlock(&a->lock);
}

int64_t accumulator_count(struct accumulator *a) {
  pthread_mutex_lock(&a->lock);
  int64_t count = a->count;
  pthread_mutex_unlock(&a->lock);
  return count;
}

static bool accumulator_explain(struct resource *resource, const void *call, struct resource_wait *out) {
  struct accumulator *a = (struct accumulator *)resource;
  pthread_mutex_lock(&a->lock);
  bool waits = wait_list_has(&a->takers, call);
  if (waits)
    snprintf(out->text, sizeof out->text, "accumulator '%.60s' has %lld gradients of step %lld", resource->name, (long long)a->count,
             (long long)a->step);
  pthread_mutex_unlock(&a->lock);
  return waits;
}

static status accumulator_init(struct resource *resource, void *argument) {
  struct accumulator *a = (struct accumulator *)resource;
  a->spec = *(const struct accumulator_spec *)argument;
  if (!element_sum_has(a->spec.dtype))
    return fail(UNIMPLEMENTED, "an accumulator of %s", dtype_name(a->spec.dtype));
  pthread_mutex_init(&a->lock, NULL);
  wait_list_init(&a->takers, &a->lock);
  resource->explain = accumulator_explain;
  return OK;
}

static void accumulator_destroy(struct resource *resource) {
  struct accumulator *a = (struct accumulator *)resource;
  tensor_release(a->sum);
  free(a->indices);
  free(a->counts);
  free(a->left);
  pthread_mutex_destroy(&a->lock);
}

const struct resource_maker accumulator_maker = {"accumulator", sizeof(struct accumulator), accumulator_init, accumulator_destroy};
