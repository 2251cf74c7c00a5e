/* host_iterator.c: iterators: positions in datasets that steps share by name. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/container.h"
#include "runtime/dataset.h"
#include "runtime/string_output.h"

struct iterator {
  struct resource resource;
  pthread_mutex_t lock;
  struct cursor *cursor; /* NULL: not initialised */
};

static status iterator_init(struct resource *resource, void *argument) {
  (void)argument;
  pthread_mutex_init(&((struct iterator *)resource)->lock, NULL);
  return OK;
}

static void iterator_destroy(struct resource *resource) {
  struct iterator *iterator = (struct iterator *)resource;
  cursor_destroy(iterator->cursor);
  pthread_mutex_destroy(&iterator->lock);
}

static const struct resource_maker iterator_maker = { "iterator", sizeof(struct iterator), iterator_init, iterator_destroy };

/* Output 0: the handle; an anonymous one gives a deleter too, which has nothing to do. */
status host_iterator(struct host_call *call) {
  struct resource *iterator;
  bool is_new;
  TRY(host_get_resource(call, &iterator_maker, NULL, &is_new, &iterator));
  TRY(host_make_handle(call, iterator));
  if (call->output_count < 2)
    return OK;
  TRY(host_make_output(call, 1, DTYPE_VARIANT, &(struct shape){ 0 }));
  memset(call->outputs[1]->data, 0, dtype_size(DTYPE_VARIANT));
  return OK;
}

static status find_iterator(const struct host_call *call, uint32_t i, struct iterator **out) {
  struct resource *resource;
  TRY(host_find_resource(call, i, "iterator", &resource));
  *out = (struct iterator *)resource;
  return OK;
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
  pthread_mutex_unlock(&iterator->lock);
  cursor_destroy(before);
  return OK;
}

/* A one-shot iterator makes its dataset by itself, at its first element. */
static status start_one_shot(const struct host_call *call, const struct dataset_run *run, struct iterator *iterator) {
  struct string_view factory = host_attr_string(call, "factory", "");
  struct tensor *handle;
  char name[512];
  if (factory.size == 0)
    return fail(FAILED_PRECONDITION, "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                                     "initializer operation for this iterator before getting the next element.");
  snprintf(name, sizeof name, "%.*s", (int)(factory.size < sizeof name ? factory.size : sizeof name - 1), factory.data);
  TRY(dataset_call_named(name, run, NULL, 0, &handle, 1));
  struct dataset *dataset = dataset_of(handle);
  status result = dataset ? cursor_create(dataset, &iterator->cursor) : fail(INVALID_ARGUMENT, "'%s' makes no dataset", name);
  tensor_release(handle);
  return result;
}

static status next_locked(struct host_call *call, struct iterator *iterator, struct tensor **element) {
  struct dataset_run run = { call };
  bool end;
  if (!iterator->cursor)
    TRY(start_one_shot(call, &run, iterator));
  uint32_t count = iterator->cursor->dataset->component_count;
  if (count != call->output_count)
    return fail(INVALID_ARGUMENT, "the iterator gives %u components, expected are %u", count, call->output_count);
  TRY(cursor_next(iterator->cursor, &run, element, &end));
  return end ? fail(OUT_OF_RANGE, "End of sequence") : OK;
}

/* The functions that are called on the way use the same places for their outputs: those are set last. */
status host_iterator_next(struct host_call *call) {
  struct iterator *iterator;
  struct tensor *element[DATASET_COMPONENTS_MAX] = { 0 };
  TRY(find_iterator(call, 0, &iterator));
  if (call->output_count > DATASET_COMPONENTS_MAX)
    return fail(UNIMPLEMENTED, "an iterator of %u components", call->output_count);
  pthread_mutex_lock(&iterator->lock);
  status result = next_locked(call, iterator, element);
  pthread_mutex_unlock(&iterator->lock);
  for (uint32_t i = 0; i < call->output_count; i++)
    call->outputs[i] = result == OK ? element[i] : NULL;
  return result;
}

status host_iterator_text(struct host_call *call) {
  struct iterator *iterator;
  struct string_output out;
  char text[32];
  TRY(find_iterator(call, 0, &iterator));
  int size = snprintf(text, sizeof text, "iterator_%lld", (long long)iterator->resource.handle);
  TRY(string_output_begin(&out, &(struct shape){ 0 }, &call->outputs[0]));
  string_output_put(&out, text, (size_t)size);
  return string_output_end(&out);
}
