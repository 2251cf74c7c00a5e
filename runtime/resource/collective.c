/* collective.c: the contributions of one round under a lock; the last who comes ends it for all. */
#include "runtime/resource/collective.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/host/wait_list.h"
#include "runtime/value/element_sum.h"

struct contribution {
  uint32_t driver;
  int64_t member;
  const struct host_call *call;
  bool comes_again;      /* when it is given up, its driver will repeat the step */
  struct tensor *tensor; /* NULL: only waits */
};
struct collective {
  struct resource resource; /* first */
  struct collective_spec spec;
  pthread_mutex_t lock;
  struct contribution *given;
  int64_t count;
  struct wait_list waiting;
  bool has_left; /* some driver begins no more steps: no round can be complete without it */
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

/* The values of the round, in order. */
static struct collective_values values_of(const struct collective *c, struct tensor **given) {
  for (int64_t i = 0; i < c->count; i++)
    given[i] = c->given[i].tensor;
  return (struct collective_values){c->spec.kind, c->spec.merge, c->spec.mean, c->count, given};
}

static int64_t member_of(const struct collective *c, const struct host_call *call) {
  int64_t member = 0;
  while (member < c->count && c->given[member].call != call)
    member++;
  return member;
}

static status make_flag(bool value, struct tensor **out) { return tensor_copy_in(DTYPE_BOOL, &(struct shape){0}, &value, out); }

/* Ends the round for all who wait in it. */
static struct wait_entry *end_round(struct collective *c, const struct host_call *last) {
  struct wait_entry *over = NULL;
  struct tensor *result = NULL;
  bool only_waits = !c->given[0].tensor && c->spec.kind == COLLECTIVE_REDUCE;
  qsort(c->given, (size_t)c->count, sizeof *c->given, compare_contributions);
  struct tensor **given = calloc((size_t)c->count, sizeof *given);
  struct collective_values values = {0};
  status code = given ? OK : fail(RESOURCE_EXHAUSTED, "no memory");
  if (given)
    values = values_of(c, given);
  if (code == OK && !only_waits)
    code = collective_common(&values, &result);
  while (c->waiting.first) {
    struct host_call *call = c->waiting.first->call;
    if (code == OK && result && call->output_count)
      code = collective_own(&values, result, member_of(c, call), &call->outputs[0]);
    else if (code == OK && call->output_count)
      code = make_flag(call == last, &call->outputs[0]);
    wait_list_move_first(&c->waiting, code, code == OK ? "" : status_text(), &over);
  }
  tensor_release(result);
  free(given);
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

/* What the call gave does not count. True: its step will come again. */
static bool drop_contribution(struct collective *c, const struct host_call *call) {
  bool comes_again = false;
  for (int64_t i = c->count; i-- > 0;) {
    if (c->given[i].call != call)
      continue;
    comes_again = c->given[i].comes_again;
    tensor_release(c->given[i].tensor);
    memmove(&c->given[i], &c->given[i + 1], (size_t)(c->count - i - 1) * sizeof *c->given);
    c->count--;
  }
  return comes_again;
}

/* One that waited has been given up: the round waits until it comes again, else nobody of it can go on. */
static bool collective_withdraw(struct host_call *call) {
  struct collective *c = (struct collective *)((char *)call->wait - offsetof(struct collective, waiting));
  pthread_mutex_lock(&c->lock);
  bool waited = wait_list_drop(&c->waiting, call);
  bool goes_on = waited && drop_contribution(c, call);
  struct wait_entry *over = waited && !goes_on ? fail_round(c, ABORTED, "another step of the round was given up") : NULL;
  pthread_mutex_unlock(&c->lock);
  (void)wait_list_finish(over, NULL); /* none of them is ours */
  return waited;
}

void collective_lose(struct collective *c, uint32_t driver, const char *text) {
  pthread_mutex_lock(&c->lock);
  struct wait_entry *over = c->count && !has_given(c, driver) ? fail_round(c, UNAVAILABLE, text) : NULL;
  pthread_mutex_unlock(&c->lock);
  (void)wait_list_finish(over, NULL); /* none of them is the caller's */
}

static status join_locked(struct collective *c, struct host_call *call, struct contribution given, struct wait_entry **over) {
  if (c->has_left && !has_given(c, c->left))
    return fail(FAILED_PRECONDITION, LEFT_TEXT);
  if (member_has_given(c, call->driver, given.member))
    return fail(FAILED_PRECONDITION, "two steps of one task in the same round");
  if (!wait_list_add(&c->waiting, call, call->driver))
    return fail(RESOURCE_EXHAUSTED, "no memory");
  call->withdraw = collective_withdraw;
  c->given[c->count++] = given;
  if (c->count < c->spec.size)
    return OK;
  *over = end_round(c, call);
  call->pending = false;
  return OK;
}

status collective_meet(struct collective *c, struct host_call *call, int64_t member, bool gives, bool comes_again) {
  struct tensor *tensor = NULL;
  struct wait_entry *over = NULL;
  bool merges = c->spec.kind == COLLECTIVE_REDUCE || c->spec.kind == COLLECTIVE_SCATTER;
  if (gives) {
    if (merges && !element_merge_has(call->inputs[0].dtype, c->spec.merge))
      return fail(UNIMPLEMENTED, "values of %s cannot be merged", dtype_name(call->inputs[0].dtype));
    TRY(host_keep_input(call, 0, &tensor));
  }
  pthread_mutex_lock(&c->lock);
  status result = join_locked(c, call, (struct contribution){call->driver, member, call, comes_again, tensor}, &over);
  pthread_mutex_unlock(&c->lock);
  if (result != OK) {
    tensor_release(tensor);
    return result;
  }
  return wait_list_finish(over, call);
}

status collective_check(const struct collective *c, const struct collective_spec *spec) {
  if (c->spec.size != spec->size)
    return fail(INTERNAL, "the group has size %lld, not %lld", (long long)c->spec.size, (long long)spec->size);
  bool same = c->spec.kind == spec->kind && c->spec.merge == spec->merge && c->spec.mean == spec->mean;
  return same ? OK : fail(INTERNAL, "members of one group and instance want different things");
}

static bool collective_explain(struct resource *resource, const void *call, struct resource_wait *out) {
  struct collective *c = (struct collective *)resource;
  pthread_mutex_lock(&c->lock);
  bool waits = wait_list_has(&c->waiting, call);
  snprintf(out->text, sizeof out->text, "group '%.40s': %lld of %lld have come", resource->name, (long long)c->count,
           (long long)c->spec.size);
  for (int64_t i = 0; i < c->count && out->driver_count < RESOURCE_WAIT_DRIVERS; i++)
    out->drivers[out->driver_count++] = c->given[i].driver;
  out->is_round = true;
  pthread_mutex_unlock(&c->lock);
  return waits;
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
  resource->explain = collective_explain;
  return OK;
}

static void collective_destroy(struct resource *resource) {
  struct collective *c = (struct collective *)resource;
  drop_contributions(c);
  free(c->given);
  pthread_mutex_destroy(&c->lock);
}

const struct resource_maker collective_maker = {"collective", sizeof(struct collective), collective_init, collective_destroy};
