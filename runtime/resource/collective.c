/* collective.c: the contributions of one round under a lock; the last who comes ends it for all. */
#include "runtime/resource/collective.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/host/wait_list.h"
#include "runtime/value/element_sum.h"

struct contribution {
  uint32_t driver;
  int64_t member;
  const struct host_call *call;
  struct tensor *tensor;   /* NULL: only waits */
};
struct collective {
  struct resource resource; /* first */
  struct collective_spec spec;
  pthread_mutex_t lock;
  struct contribution *given;
  int64_t count;
  struct wait_list waiting;
  bool has_left;           /* some driver begins no more steps: no round can be complete without it */
  uint32_t left;
};

static int compare_contributions(const void *a, const void *b) {
  const struct contribution *x = a, *y = b;
  if (x->driver != y->driver)
    return x->driver < y->driver ? -1 : 1;
  return x->member < y->member ? -1 : x->member > y->member;
}

static void drop_contributions(struct collective *c) {
  for (int64_t i = 0; i < c->count; i++)
    tensor_release(c->given[i].tensor);
  c->count = 0;
}

/* The merged values of the round. */
static status reduce(struct collective *c, struct tensor **out) {
  struct tensor *sum;
  TRY(tensor_clone(c->given[0].tensor, &sum));
  for (int64_t i = 1; i < c->count; i++) {
    const struct tensor *next = c->given[i].tensor;
    if (next->count != sum->count || next->dtype != sum->dtype) {
      status result = fail(INVALID_ARGUMENT, "shapes differ: %s and %s", shape_text(&sum->shape), shape_text(&next->shape));
      tensor_release(sum);
      return result;
    }
    element_merge(sum->dtype, c->spec.merge, sum->data, next->data, next->count);
  }
  if (c->spec.mean)
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
static status collect_rows(struct collective *c, int64_t from, int64_t rows, struct tensor **out) {
  const struct tensor *first = c->given[0].tensor;
  struct shape shape = first->shape;
  int64_t total = 0;
  for (int64_t i = 0; i < c->count; i++) {
    TRY(check_rows(c->given[i].tensor, first));
    total += rows < 0 ? c->given[i].tensor->shape.dims[0] : rows;
  }
  shape.dims[0] = total;
  TRY(tensor_create(first->dtype, &shape, out));
  char *to = (*out)->data;
  size_t row = first->shape.dims[0] ? (size_t)tensor_byte_size(first) / (size_t)first->shape.dims[0] : 0;
  for (int64_t i = 0; i < c->count; i++) {
    const struct tensor *t = c->given[i].tensor;
    size_t bytes = row * (size_t)(rows < 0 ? t->shape.dims[0] : rows);
    if (bytes)
      memcpy(to, (const char *)t->data + row * (size_t)from, bytes);
    to += bytes;
  }
  return OK;
}

/* Part `member` of a tensor cut along its first dimension. */
static status cut(const struct collective *c, const struct tensor *whole, int64_t member, struct tensor **out) {
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

static status only_value(const struct collective *c, struct tensor **out) {
  *out = NULL;
  for (int64_t i = 0; i < c->count; i++)
    if (c->given[i].tensor) {
      if (*out)
        return fail(INTERNAL, "two members of the group send");
      *out = c->given[i].tensor;
    }
  if (!*out)
    return fail(INTERNAL, "the group found no source for broadcast");
  tensor_retain(*out);
  return OK;
}

/* What all members get, or what their own results are taken from (of all to all: each one's value, so that any will do). */
static status common_result(struct collective *c, struct tensor **out) {
  switch (c->spec.kind) {
  case COLLECTIVE_REDUCE: case COLLECTIVE_SCATTER: return reduce(c, out);
  case COLLECTIVE_GATHER:
    TRY(collect_rows(c, 0, -1, out));
    if (c->spec.mean)
      element_divide((*out)->dtype, (*out)->data, (*out)->count, c->count);
    return OK;
  case COLLECTIVE_BROADCAST: return only_value(c, out);
  case COLLECTIVE_ALL_TO_ALL: break;
  }
  for (int64_t i = 0; i < c->count; i++)
    if (c->given[i].tensor->shape.rank < 1 || c->given[i].tensor->shape.dims[0] != c->count)
      return fail(INVALID_ARGUMENT, "a value of shape %s for %lld members", shape_text(&c->given[i].tensor->shape), (long long)c->count);
  *out = tensor_retain(c->given[0].tensor);
  return OK;
}

static status own_result(struct collective *c, struct tensor *common, const struct host_call *call, struct tensor **out) {
  int64_t member = 0;
  while (member < c->count && c->given[member].call != call)
    member++;
  if (c->spec.kind == COLLECTIVE_SCATTER)
    return cut(c, common, member, out);
  if (c->spec.kind == COLLECTIVE_ALL_TO_ALL)
    return collect_rows(c, member, 1, out);
  *out = tensor_retain(common);
  return OK;
}

static status make_flag(bool value, struct tensor **out) {
  return tensor_copy_in(DTYPE_BOOL, &(struct shape){ 0 }, &value, out);
}

/* Ends the round for all who wait in it. */
static struct wait_entry *end_round(struct collective *c, const struct host_call *last) {
  struct wait_entry *over = NULL;
  struct tensor *result = NULL;
  bool only_waits = !c->given[0].tensor && c->spec.kind == COLLECTIVE_REDUCE;
  qsort(c->given, (size_t)c->count, sizeof *c->given, compare_contributions);
  status code = only_waits ? OK : common_result(c, &result);
  while (c->waiting.first) {
    struct host_call *call = c->waiting.first->call;
    if (code == OK && result && call->output_count)
      code = own_result(c, result, call, &call->outputs[0]);
    else if (code == OK && call->output_count)
      code = make_flag(call == last, &call->outputs[0]);
    wait_list_move_first(&c->waiting, code, code == OK ? "" : status_text(), &over);
  }
  tensor_release(result);
  drop_contributions(c);
  return over;
}

static bool has_given(const struct collective *c, uint32_t driver) {
  for (int64_t i = 0; i < c->count; i++)
    if (c->given[i].driver == driver)
      return true;
  return false;
}

static bool member_has_given(const struct collective *c, uint32_t driver, int64_t member) {
  for (int64_t i = 0; i < c->count; i++)
    if (c->given[i].driver == driver && c->given[i].member == member)
      return true;
  return false;
}

/* Fails all who wait in the round. */
static struct wait_entry *fail_round(struct collective *c, status code, const char *text) {
  struct wait_entry *over = NULL;
  while (c->waiting.first)
    wait_list_move_first(&c->waiting, code, text, &over);
  drop_contributions(c);
  return over;
}

#define LEFT_TEXT "another task of the group has finished its steps"

void collective_leave(struct collective *c, uint32_t driver) {
  pthread_mutex_lock(&c->lock);
  c->has_left = true;
  c->left = driver;
  struct wait_entry *over = c->count && !has_given(c, driver) ? fail_round(c, FAILED_PRECONDITION, LEFT_TEXT) : NULL;
  pthread_mutex_unlock(&c->lock);
  if (wait_list_finish(over, NULL) != OK)
    return; /* none of them is the caller's */
}

/* One that waited has been given up: nobody of its round can go on. */
static bool collective_withdraw(struct host_call *call) {
  struct collective *c = (struct collective *)((char *)call->wait - offsetof(struct collective, waiting));
  pthread_mutex_lock(&c->lock);
  bool waited = wait_list_drop(&c->waiting, call);
  struct wait_entry *over = waited ? fail_round(c, ABORTED, "another step of the round was given up") : NULL;
  pthread_mutex_unlock(&c->lock);
  (void)wait_list_finish(over, NULL); /* none of them is ours */
  return waited;
}

static status join_locked(struct collective *c, struct host_call *call, int64_t member, struct tensor *tensor, struct wait_entry **over) {
  if (c->has_left && !has_given(c, c->left))
    return fail(FAILED_PRECONDITION, LEFT_TEXT);
  if (member_has_given(c, call->driver, member))
    return fail(FAILED_PRECONDITION, "two steps of one task in the same round");
  if (!wait_list_add(&c->waiting, call, call->driver))
    return fail(RESOURCE_EXHAUSTED, "no memory");
  call->withdraw = collective_withdraw;
  c->given[c->count++] = (struct contribution){ call->driver, member, call, tensor };
  if (c->count < c->spec.size)
    return OK;
  *over = end_round(c, call);
  call->pending = false;
  return OK;
}

status collective_meet(struct collective *c, struct host_call *call, int64_t member, bool gives) {
  struct tensor *tensor = NULL;
  struct wait_entry *over = NULL;
  bool merges = c->spec.kind == COLLECTIVE_REDUCE || c->spec.kind == COLLECTIVE_SCATTER;
  if (gives) {
    if (merges && !element_merge_has(call->inputs[0].dtype, c->spec.merge))
      return fail(UNIMPLEMENTED, "values of %s cannot be merged", dtype_name(call->inputs[0].dtype));
    TRY(host_keep_input(call, 0, &tensor));
  }
  pthread_mutex_lock(&c->lock);
  status result = join_locked(c, call, member, tensor, &over);
  pthread_mutex_unlock(&c->lock);
  if (result != OK) {
    tensor_release(tensor);
    return result;
  }
  return wait_list_finish(over, call);
}

status collective_join(struct collective *c, struct host_call *call) { return collective_meet(c, call, 0, call->input_count > 0); }

status collective_check(const struct collective *c, const struct collective_spec *spec) {
  if (c->spec.size != spec->size)
    return fail(INTERNAL, "the group has size %lld, not %lld", (long long)c->spec.size, (long long)spec->size);
  bool same = c->spec.kind == spec->kind && c->spec.merge == spec->merge && c->spec.mean == spec->mean;
  return same ? OK : fail(INTERNAL, "members of one group and instance want different things");
}

static status collective_init(struct resource *resource, void *argument) {
  struct collective *c = (struct collective *)resource;
  c->spec = *(const struct collective_spec *)argument;
  if (c->spec.size < 1 || c->spec.size > COLLECTIVE_SIZE_MAX)
    return fail(INVALID_ARGUMENT, "a group of %lld", (long long)c->spec.size);
  c->given = calloc((size_t)c->spec.size, sizeof *c->given);
  if (!c->given)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  pthread_mutex_init(&c->lock, NULL);
  wait_list_init(&c->waiting, &c->lock);
  return OK;
}

static void collective_destroy(struct resource *resource) {
  struct collective *c = (struct collective *)resource;
  drop_contributions(c);
  free(c->given);
  pthread_mutex_destroy(&c->lock);
}

const struct resource_maker collective_maker = { "collective", sizeof(struct collective), collective_init,
                                                 collective_destroy };
