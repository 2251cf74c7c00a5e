/* collective.c: the contributions of one round under a lock; the last who comes ends it for all. */
#include "runtime/collective.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/element_sum.h"
#include "runtime/wait_list.h"

struct contribution {
  uint32_t driver;
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
  return x->driver < y->driver ? -1 : x->driver > y->driver;
}

static void drop_contributions(struct collective *c) {
  for (int64_t i = 0; i < c->count; i++)
    tensor_release(c->given[i].tensor);
  c->count = 0;
}

/* The sum, or mean, of the round. */
static status reduce(struct collective *c, struct tensor **out) {
  qsort(c->given, (size_t)c->count, sizeof *c->given, compare_contributions);
  struct tensor *sum;
  TRY(tensor_clone(c->given[0].tensor, &sum));
  for (int64_t i = 1; i < c->count; i++) {
    const struct tensor *next = c->given[i].tensor;
    if (next->count != sum->count || next->dtype != sum->dtype) {
      status result = fail(INVALID_ARGUMENT, "shapes differ: %s and %s", shape_text(&sum->shape), shape_text(&next->shape));
      tensor_release(sum);
      return result;
    }
    element_add(sum->dtype, sum->data, next->data, next->count);
  }
  if (c->spec.mean)
    element_divide(sum->dtype, sum->data, sum->count, c->count);
  *out = sum;
  return OK;
}

static status make_flag(bool value, struct tensor **out) {
  return tensor_copy_in(DTYPE_BOOL, &(struct shape){ 0 }, &value, out);
}

/* Ends the round for all who wait in it. */
static struct wait_entry *end_round(struct collective *c, const struct host_call *last) {
  struct wait_entry *over = NULL;
  struct tensor *result = NULL;
  status code = c->given[0].tensor ? reduce(c, &result) : OK;
  while (c->waiting.first) {
    struct host_call *call = c->waiting.first->call;
    if (code == OK && result && call->output_count)
      call->outputs[0] = tensor_retain(result);
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
  struct wait_entry *entry = call->wait;
  struct collective *c = (struct collective *)((char *)entry->list - offsetof(struct collective, waiting));
  if (!wait_list_withdraw(call))
    return false;
  pthread_mutex_lock(&c->lock);
  struct wait_entry *over = fail_round(c, ABORTED, "another step of the round was given up");
  pthread_mutex_unlock(&c->lock);
  return wait_list_finish(over, NULL) == OK;
}

static status join_locked(struct collective *c, struct host_call *call, struct tensor *tensor, struct wait_entry **over) {
  if (c->has_left && !has_given(c, c->left))
    return fail(FAILED_PRECONDITION, LEFT_TEXT);
  if (has_given(c, call->driver))
    return fail(FAILED_PRECONDITION, "two steps of one task in the same round");
  if (!wait_list_add(&c->waiting, call, call->driver))
    return fail(RESOURCE_EXHAUSTED, "no memory");
  call->withdraw = collective_withdraw;
  c->given[c->count++] = (struct contribution){ call->driver, tensor };
  if (c->count < c->spec.size)
    return OK;
  *over = end_round(c, call);
  call->pending = false;
  return OK;
}

status collective_join(struct collective *c, struct host_call *call) {
  struct tensor *tensor = NULL;
  struct wait_entry *over = NULL;
  if (call->input_count > 0) {
    if (!element_sum_has(call->inputs[0].dtype))
      return fail(UNIMPLEMENTED, "a sum of %s", dtype_name(call->inputs[0].dtype));
    TRY(host_keep_input(call, 0, &tensor));
  }
  pthread_mutex_lock(&c->lock);
  status result = join_locked(c, call, tensor, &over);
  pthread_mutex_unlock(&c->lock);
  if (result != OK) {
    tensor_release(tensor);
    return result;
  }
  return wait_list_finish(over, call);
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
