/* host_iterator.c: iterators: positions in datasets that steps share by name, or that one has who has the handle. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/dataset.h"
#include "runtime/data/iterator_place.h"
#include "runtime/memory/container.h"
#include "runtime/step/task_state.h"
#include "runtime/text/string_output.h"
#include "runtime/value/optional.h"

struct iterator {
  struct resource resource;
  pthread_mutex_t lock;
  struct cursor *cursor;                     /* NULL: not initialised */
  char *factory;                             /* of a one-shot iterator: the name of what makes its dataset */
  struct iterator_place *place;              /* how far it is, for checkpoints; NULL: it has no name */
  _Atomic bool is_deleted;                   /* its node goes on to give the handle, but nothing finds it */
  const struct program_attr *types, *shapes; /* as whoever came first declared it; NULL: he did not */
};

struct iterator_spec {
  const char *factory;
  const struct program_attr *types, *shapes;
};

static status iterator_init(struct resource *resource, void *argument) {
  struct iterator *iterator = (struct iterator *)resource;
  const struct iterator_spec *spec = argument;
  iterator->factory = spec->factory ? strdup(spec->factory) : NULL;
  if (spec->factory && !iterator->factory)
    return fail(RESOURCE_EXHAUSTED, "no memory for an iterator");
  iterator->types = spec->types;
  iterator->shapes = spec->shapes;
  pthread_mutex_init(&iterator->lock, NULL);
  return OK;
}

static void iterator_destroy(struct resource *resource) {
  struct iterator *iterator = (struct iterator *)resource;
  cursor_destroy(iterator->cursor);
  free(iterator->factory);
  pthread_mutex_destroy(&iterator->lock);
}

static const struct resource_maker iterator_maker = {"iterator", sizeof(struct iterator), iterator_init, iterator_destroy};

static bool same_shape(const struct host_call *call, uint32_t a, uint32_t b) {
  struct shape x, y;
  if (host_read_shape(call, program_attr(call->program, a), &x) != OK || host_read_shape(call, program_attr(call->program, b), &y) != OK)
    return true; /* too large to tell */
  bool same = x.rank < 0 || y.rank < 0 || x.rank == y.rank;
  for (int d = 0; same && d < x.rank && y.rank >= 0; d++)
    same = x.dims[d] < 0 || y.dims[d] < 0 || x.dims[d] == y.dims[d];
  return same;
}

/* A shared iterator is declared alike wherever it is. */
static status check_declared(const struct host_call *call, const struct iterator *i, const struct iterator_spec *spec) {
  const struct program_attr *types = spec->types, *shapes = spec->shapes;
  if (!types || !shapes || !i->types || !i->shapes)
    return OK;
  uint32_t count = types->list.count;
  bool same = i->types->list.count == count && i->shapes->list.count == shapes->list.count;
  for (uint32_t k = 0; same && k < count; k++)
    if (program_attr(call->program, types->list.first + k)->i != program_attr(call->program, i->types->list.first + k)->i)
      return fail(INVALID_ARGUMENT, "Data type mismatch at component %u of the shared iterator '%s'", k, i->resource.name);
  for (uint32_t k = 0; same && k < shapes->list.count; k++)
    if (!same_shape(call, shapes->list.first + k, i->shapes->list.first + k))
      return fail(INVALID_ARGUMENT, "Incompatible shapes at component %u of the shared iterator '%s'", k, i->resource.name);
  return same ? OK
              : fail(INVALID_ARGUMENT, "the shared iterator '%s' has %u components, not %u", i->resource.name, i->types->list.count, count);
}

status host_iterator(struct host_call *call) {
  struct resource *resource;
  bool is_new;
  struct iterator_spec spec = {NULL, host_attr(call, "output_types"), host_attr(call, "output_shapes")};
  TRY(host_get_resource(call, &iterator_maker, &spec, &is_new, &resource));
  if (!is_new)
    TRY(check_declared(call, (struct iterator *)resource, &spec));
  return host_make_handle(call, resource);
}

status host_one_shot_iterator(struct host_call *call) {
  return host_give_resource(call, &iterator_maker, &(struct iterator_spec){.factory = host_node_name(call)});
}

static bool has_deleter(const struct host_call *call) { return call->output_count > 1; }

/* Output 1: what goes with an anonymous handle has nothing left to delete. */
static status give_deleter(struct host_call *call) {
  TRY(host_make_output(call, 1, DTYPE_VARIANT, &(struct shape){0}));
  memset(call->outputs[1]->data, 0, dtype_size(DTYPE_VARIANT));
  return OK;
}

/* A new one each time, which goes with its handle. */
status host_anonymous_iterator(struct host_call *call) {
  struct resource *iterator;
  TRY(host_make_anonymous(call, &iterator_maker, &(struct iterator_spec){0}, &iterator));
  return has_deleter(call) ? give_deleter(call) : OK;
}

static status find_iterator(const struct host_call *call, uint32_t i, struct iterator **out) {
  struct resource *resource;
  TRY(host_find_resource(call, i, "iterator", &resource));
  *out = (struct iterator *)resource;
  return (*out)->is_deleted ? fail(NOT_FOUND, "Resource %s/%s does not exist.", resource->container, resource->name) : OK;
}

/* The caller holds the lock. */
static status find_place(const struct host_call *call, struct iterator *iterator) {
  if (iterator->place || !iterator->resource.handle)
    return OK;
  return iterator_place_get(call->task->container, iterator->resource.container, iterator->resource.name, &iterator->place);
}

/* It begins: at its first element, or behind those that it had given in a checkpoint that was restored. */
static void begin_place(struct iterator_place *place) {
  if (place && atomic_exchange(&place->given, 0) >= 0)
    atomic_store(&place->skip, 0); /* made again */
}

/* inputs: dataset, iterator */
status host_make_iterator(struct host_call *call) {
  struct iterator *iterator;
  struct cursor *cursor, *before;
  struct dataset *dataset = dataset_of(call->held[0]);
  if (!dataset)
    return fail(INVALID_ARGUMENT, "input 0 is no dataset");
  TRY(find_iterator(call, 1, &iterator));
  TRY(cursor_create(dataset, &cursor));
  pthread_mutex_lock(&iterator->lock);
  before = iterator->cursor;
  iterator->cursor = cursor;
  status result = find_place(call, iterator);
  begin_place(iterator->place);
  pthread_mutex_unlock(&iterator->lock);
  cursor_destroy(before);
  return result;
}

/* inputs: iterator, deleter. It is not found any more; what it held is freed now. An anonymous one goes with its handle, not before. */
status host_delete_iterator(struct host_call *call) {
  struct iterator *iterator;
  TRY(find_iterator(call, 0, &iterator));
  if (!iterator->resource.handle)
    return OK;
  pthread_mutex_lock(&iterator->lock);
  struct cursor *before = iterator->cursor;
  iterator->cursor = NULL;
  iterator->is_deleted = true;
  pthread_mutex_unlock(&iterator->lock);
  cursor_destroy(before);
  return OK;
}

/* A one-shot iterator makes its dataset by itself, at its first element. */
static status start_one_shot(const struct dataset_run *run, struct iterator *iterator) {
  struct tensor *handle;
  if (!iterator->factory)
    return fail(FAILED_PRECONDITION, "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                                     "initializer operation for this iterator before getting the next element.");
  TRY(dataset_call_named(iterator->factory, run, NULL, 0, &handle, 1));
  struct dataset *dataset = dataset_of(handle);
  status result = dataset ? cursor_create(dataset, &iterator->cursor) : fail(INVALID_ARGUMENT, "'%s' makes no dataset", iterator->factory);
  tensor_release(handle);
  return result;
}

/* A checkpoint was restored while it was in use: it begins again. */
static status rewind_iterator(struct iterator *iterator) {
  struct cursor *cursor;
  TRY(cursor_create(iterator->cursor->dataset, &cursor));
  cursor_destroy(iterator->cursor);
  iterator->cursor = cursor;
  begin_place(iterator->place);
  return OK;
}

/* The next element of the cursor, behind those that were given before a checkpoint. */
static status cursor_next_placed(struct iterator *iterator, const struct dataset_run *run, struct tensor **element, bool *end) {
  struct iterator_place *place = iterator->place;
  while (place && atomic_load(&place->skip) > 0) {
    TRY(cursor_next(iterator->cursor, run, element, end));
    if (*end)
      break;
    element_release(element, iterator->cursor->dataset->component_count);
    atomic_fetch_add(&place->given, 1);
    atomic_fetch_sub(&place->skip, 1);
  }
  TRY(cursor_next(iterator->cursor, run, element, end));
  if (place && !*end)
    atomic_fetch_add(&place->given, 1);
  return OK;
}

/* The next element, of which there are *count components. */
static status next_element(struct host_call *call, struct tensor **element, uint32_t *count, bool *end) {
  struct dataset_run run = {call};
  struct iterator *iterator;
  TRY(find_iterator(call, 0, &iterator));
  pthread_mutex_lock(&iterator->lock);
  status result = find_place(call, iterator);
  if (result == OK && !iterator->cursor && (result = start_one_shot(&run, iterator)) == OK)
    begin_place(iterator->place);
  if (result == OK && iterator->place && atomic_load(&iterator->place->given) < 0)
    result = rewind_iterator(iterator);
  if (result == OK) {
    *count = iterator->cursor->dataset->component_count;
    result = cursor_next_placed(iterator, &run, element, end);
  }
  pthread_mutex_unlock(&iterator->lock);
  return result;
}

status host_iterator_next(struct host_call *call) {
  struct tensor *element[DATASET_COMPONENTS_MAX] = {0};
  uint32_t count = 0;
  bool end = false;
  status result = next_element(call, element, &count, &end);
  if (result == OK && end)
    result = fail(OUT_OF_RANGE, "End of sequence");
  if (result == OK && count != call->output_count) {
    element_release(element, count);
    result = fail(INVALID_ARGUMENT, "the iterator gives %u components, expected are %u", count, call->output_count);
  }
  for (uint32_t i = 0; i < call->output_count; i++)
    call->outputs[i] = result == OK ? element[i] : NULL;
  return result;
}

/* The end is a value that is missing. */
status host_iterator_next_optional(struct host_call *call) {
  struct tensor *element[DATASET_COMPONENTS_MAX] = {0};
  uint32_t count = 0;
  bool end = false;
  TRY(next_element(call, element, &count, &end));
  status result = optional_output(call, 0, element, end ? 0 : count);
  if (!end)
    element_release(element, count);
  return result;
}

/* "iterator_7": what a feedable iterator is fed with. */
status host_iterator_from_text(struct host_call *call) {
  struct string_view text = host_scalar_string(&call->inputs[0]);
  long long number = 0;
  char copy[32], rest;
  struct resource *iterator;
  snprintf(copy, sizeof copy, "%.*s", (int)(text.size < 31 ? text.size : 31), text.data);
  if (sscanf(copy, "iterator_%lld%c", &number, &rest) != 1)
    return fail(INVALID_ARGUMENT, "Could not parse string_handle into a valid ResourceHandle");
  TRY(container_find(call->task->container, number, "iterator", &iterator));
  return host_make_handle(call, iterator);
}

status host_iterator_text(struct host_call *call) {
  struct iterator *iterator;
  struct string_output out;
  char text[32];
  TRY(find_iterator(call, 0, &iterator));
  int size = snprintf(text, sizeof text, "iterator_%lld", (long long)iterator->resource.handle);
  TRY(string_output_begin(&out, &(struct shape){0}, &call->outputs[0]));
  string_output_put(&out, text, (size_t)size);
  return string_output_end(&out);
}

/* Handles of nothing: generators of seeds and caches belong to the datasets that use them. */
enum { DUMMY = 0, ANONYMOUS = -1 };

/* Output 0: the handle; an anonymous one gives a deleter, too. */
status host_no_handle(struct host_call *call) {
  TRY(host_make_output(call, 0, DTYPE_RESOURCE, &(struct shape){0}));
  *(int64_t *)call->outputs[0]->data = has_deleter(call) ? ANONYMOUS : DUMMY;
  return has_deleter(call) ? give_deleter(call) : OK;
}

/* inputs: handle, deleter. What an anonymous handle stands for goes with it. */
static status check_deletion(const struct host_call *call) {
  if (call->input_count < 1 || call->inputs[0].dtype != DTYPE_RESOURCE || call->inputs[0].count != 1)
    return fail(INVALID_ARGUMENT, "input 0 is no handle");
  return *(const int64_t *)call->inputs[0].data != ANONYMOUS
         ? OK
         : fail(INTERNAL, "Cannot delete an unowned Resource: it belongs to its handle");
}

/* For want of it a cache is as good as deleted. */
status host_delete_cache(struct host_call *call) { return check_deletion(call); }

status host_delete_seeds(struct host_call *call) {
  TRY(check_deletion(call));
  return fail(NOT_FOUND, "the handle names no generator of seeds");
}
