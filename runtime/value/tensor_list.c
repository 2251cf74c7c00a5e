/* tensor_list.c: lists of tensors behind handles. */
#include "runtime/value/tensor_list.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/value/element_sum.h"

/* ---- the handle ---- */

static void family_free(struct tensor_list *list) {
  for (struct tensor_list *next; list; list = next) {
    next = list->next;
    for (int64_t i = 0; i < list->count; i++)
      tensor_release(list->items[i]);
    free(list->items);
    free(list->array);
    free(list->source);
    free(list);
  }
}
static void release_handle(struct tensor *handle) {
  struct tensor_list *first = ((struct tensor_list *)handle->owner)->first;
  free(handle->data);
  if (atomic_fetch_sub(&first->handles, 1) == 1)
    family_free(first);
}

status list_make_handle(struct host_call *call, uint32_t i, enum dtype dtype, struct tensor_list *list) {
  TRY(host_make_output(call, i, dtype, &(struct shape){0}));
  struct tensor *t = call->outputs[i];
  memset(t->data, 0, 8);
  t->owner = list;
  t->release_data = release_handle;
  atomic_fetch_add(&list->first->handles, 1);
  return OK;
}

static void list_destroy(struct object *object) { family_free((struct tensor_list *)object); }
static status list_zeros(const struct object *object, struct object **out);
static status list_add(const struct object *a, const struct object *b, struct object **out);
static const struct object_kind list_kind = {"list", list_destroy, list_zeros, list_add, NULL};

static status list_create(enum dtype dtype, struct tensor_list **out) {
  struct tensor_list *list = calloc(1, sizeof *list);
  if (!list)
    return fail(RESOURCE_EXHAUSTED, "no memory for a list");
  object_init(&list->object, &list_kind);
  list->dtype = dtype;
  list->shape.rank = -1;
  list->first = list;
  list->limit = -1;
  *out = list;
  return OK;
}

status list_make_output(struct host_call *call, uint32_t i, enum dtype handle, enum dtype dtype, int64_t count, struct tensor_list **out) {
  if (count < 0)
    return fail(INVALID_ARGUMENT, "a list of %lld elements", (long long)count);
  TRY(list_create(dtype, out));
  if (handle == DTYPE_VARIANT) {
    TRY(object_output(call, i, &(*out)->object));
  } else {
    status s = list_make_handle(call, i, handle, *out);
    if (s != OK) {
      free(*out);
      return s;
    }
  }
  return list_resize(*out, count);
}

struct tensor_list *list_find_relative(const struct tensor_list *array, struct string_view source) {
  struct tensor_list *list = array->first->next;
  while (list && !string_is(source, list->source))
    list = list->next;
  return list;
}

status list_make_relative(struct tensor_list *array, struct string_view source, struct tensor_list **out) {
  struct tensor_list *list = calloc(1, sizeof *list);
  char *name = strndup(source.data, source.size);
  if (!list || !name) {
    free(list);
    free(name);
    return fail(RESOURCE_EXHAUSTED, "no memory for gradients");
  }
  list->dtype = array->dtype;
  list->shape.rank = -1;
  list->limit = -1;
  list->source = name;
  list->first = array->first;
  list->next = array->first->next;
  array->first->next = list;
  *out = list;
  return OK;
}

status list_input(const struct host_call *call, uint32_t i, struct tensor_list **out) {
  const struct tensor *handle = call->held[i];
  struct object *object;
  if (tensor_has_objects(&call->inputs[i])) {
    TRY(object_input(call, i, &list_kind, &object));
    *out = (struct tensor_list *)object;
    return OK;
  }
  if (!handle || handle->release_data != release_handle)
    return fail(INVALID_ARGUMENT, "input %u is no list of tensors", i);
  *out = handle->owner;
  return OK;
}

status list_of_element(const struct tensor *tensor, int64_t k, struct tensor_list **out) {
  struct object *object = objects_of(tensor)[k];
  if (!object || object->kind != &list_kind)
    return fail(INVALID_ARGUMENT, "Input handle at index %lld is not a list.", (long long)k);
  *out = (struct tensor_list *)object;
  return OK;
}

/* ---- elements ---- */

#define LIST_MAX (INT64_C(1) << 28)

status list_resize(struct tensor_list *list, int64_t count) {
  if (count > LIST_MAX)
    return fail(RESOURCE_EXHAUSTED, "a list of %lld elements", (long long)count);
  if (count > list->capacity) {
    int64_t capacity = list->capacity + list->capacity / 2;
    capacity = capacity < count ? count : capacity;
    struct tensor **items = realloc(list->items, (size_t)capacity * sizeof *items);
    if (!items)
      return fail(RESOURCE_EXHAUSTED, "no memory for a list of %lld elements", (long long)count);
    list->items = items;
    list->capacity = capacity;
  }
  for (int64_t i = list->count; i < count; i++)
    list->items[i] = NULL;
  for (int64_t i = count; i < list->count; i++)
    tensor_release(list->items[i]);
  list->count = count;
  return OK;
}

status tensor_sum(const struct tensor *a, const struct tensor *b, struct tensor **out) {
  if (tensor_has_objects(a) && tensor_has_objects(b))
    return objects_add(a, b, out);
  if (a->dtype != b->dtype)
    return fail(INVALID_ARGUMENT, "gradients of %s and %s", dtype_name(a->dtype), dtype_name(b->dtype));
  if (!shape_equal(&a->shape, &b->shape))
    return fail(INVALID_ARGUMENT, "gradients of shapes %s and %s", shape_text(&a->shape), shape_text(&b->shape));
  if (!element_sum_has(a->dtype))
    return fail(UNIMPLEMENTED, "adding gradients of %s", dtype_name(a->dtype));
  TRY(tensor_clone(a, out));
  element_add(a->dtype, (*out)->data, b->data, b->count);
  return OK;
}

static status set_checked(struct tensor_list *list, int64_t index, struct tensor *tensor) {
  if (index < 0 || (index >= list->count && !list->grows))
    return fail(INVALID_ARGUMENT, "Tried to write to index %lld but array is not resizeable and size is: %lld", (long long)index,
                (long long)list->count);
  if (tensor->dtype != list->dtype)
    return fail(INVALID_ARGUMENT, "a %s is written to a list of %s", dtype_name(tensor->dtype), dtype_name(list->dtype));
  if (index >= list->count)
    TRY(list_resize(list, index + 1));
  if (list->items[index] && list->adds) {
    struct tensor *sum;
    TRY(tensor_sum(list->items[index], tensor, &sum));
    tensor_release(list->items[index]);
    list->items[index] = sum;
    return OK;
  }
  tensor_release(list->items[index]);
  list->items[index] = tensor_retain(tensor);
  return OK;
}

status list_set(struct tensor_list *list, int64_t index, struct tensor *tensor) {
  status result = set_checked(list, index, tensor);
  tensor_release(tensor);
  return result;
}

status tensor_zeros(enum dtype dtype, const struct shape *shape, struct tensor **out) {
  if (dtype == DTYPE_VARIANT)
    return objects_create(shape, out);
  TRY(tensor_create(dtype, shape, out));
  if ((*out)->data)
    memset((*out)->data, 0, (size_t)tensor_byte_size(*out));
  return OK;
}

status list_clone(const struct tensor_list *from, struct tensor_list **out) {
  TRY(list_create(from->dtype, out));
  status result = list_resize(*out, from->count);
  if (result != OK) {
    object_release(&(*out)->object);
    return result;
  }
  (*out)->shape = from->shape;
  (*out)->limit = from->limit;
  for (int64_t k = 0; k < from->count; k++)
    (*out)->items[k] = from->items[k] ? tensor_retain(from->items[k]) : NULL;
  return OK;
}

status list_change_input(struct host_call *call, struct tensor_list *from, struct tensor_list **out) {
  *out = from;
  if (object_reuse(call, &from->object))
    return OK;
  TRY(list_clone(from, out));
  return object_output(call, 0, &(*out)->object);
}

/* ---- zeros and sums ---- */

/* As many elements of the same shapes, all zero; missing elements stay missing. */
static status zero_items(struct tensor_list *list) {
  for (int64_t i = 0; i < list->count; i++) {
    struct tensor *zero, *old = list->items[i];
    if (!old)
      continue;
    TRY(tensor_has_objects(old) ? objects_zeros(old, &zero) : tensor_zeros(list->dtype, &old->shape, &zero));
    list->items[i] = zero;
    tensor_release(old);
  }
  return OK;
}

static status list_zeros(const struct object *object, struct object **out) {
  struct tensor_list *list;
  TRY(list_clone((const struct tensor_list *)object, &list));
  status result = zero_items(list);
  if (result == OK)
    *out = &list->object;
  else
    object_release(&list->object);
  return result;
}

/* Element by element; where only one list has an element it is taken as it is. */
static status add_items(struct tensor_list *list, const struct tensor_list *other) {
  if (other->dtype != list->dtype)
    return fail(INVALID_ARGUMENT, "Trying to add two lists of tensors of different dtypes. One is %s and the other is %s",
                dtype_name(list->dtype), dtype_name(other->dtype));
  TRY(partial_shape_merge(&list->shape, &other->shape));
  if (other->count != list->count)
    return fail(INVALID_ARGUMENT, "Trying to add two lists of tensors with different lengths: %lld and %lld", (long long)list->count,
                (long long)other->count);
  list->adds = true;
  for (int64_t k = 0; k < other->count; k++)
    if (other->items[k])
      TRY(list_set(list, k, tensor_retain(other->items[k])));
  list->adds = false;
  return OK;
}

static status list_add(const struct object *a, const struct object *b, struct object **out) {
  struct tensor_list *list;
  TRY(list_clone((const struct tensor_list *)a, &list));
  status result = add_items(list, (const struct tensor_list *)b);
  if (result == OK)
    *out = &list->object;
  else
    object_release(&list->object);
  return result;
}

/* ---- rows ---- */

status tensor_rows(const struct tensor *t, int64_t first, int64_t count, struct tensor **out) {
  if (t->shape.rank < 1 || first < 0 || count < 0 || count > t->shape.dims[0] - first)
    return fail(INVALID_ARGUMENT, "rows %lld to %lld of a tensor of shape %s", (long long)first, (long long)(first + count),
                shape_text(&t->shape));
  struct shape shape = t->shape;
  shape.dims[0] = count;
  int64_t row = t->shape.dims[0] ? t->count / t->shape.dims[0] : 0;
  if (t->dtype == DTYPE_VARIANT)
    return objects_share(t, first * row, &shape, out);
  return tensor_copy_in(t->dtype, &shape, (const char *)t->data + first * row * (int64_t)dtype_size(t->dtype), out);
}

status tensor_row(const struct tensor *t, int64_t index, struct tensor **out) {
  TRY(tensor_rows(t, index, 1, out));
  struct shape *shape = &(*out)->shape;
  memmove(shape->dims, shape->dims + 1, sizeof shape->dims[0] * (LIMIT_RANK - 1));
  shape->rank--;
  return OK;
}

static status join_objects(const struct shape *shape, struct tensor *const *parts, int64_t count, struct tensor **out) {
  TRY(objects_create(shape, out));
  for (int64_t i = 0, at = 0; i < count; i++) {
    if (!tensor_has_objects(parts[i]))
      return fail(UNIMPLEMENTED, "a tensor of variants that are no objects");
    for (int64_t k = 0; k < parts[i]->count; k++)
      objects_put(*out, at++, object_retain(objects_of(parts[i])[k]));
  }
  return OK;
}

status tensor_join(enum dtype dtype, const struct shape *shape, struct tensor *const *parts, int64_t count, struct tensor **out) {
  if (dtype == DTYPE_VARIANT)
    return join_objects(shape, parts, count, out);
  struct tensor *t;
  TRY(tensor_create(dtype, shape, &t));
  char *at = t->data;
  for (int64_t i = 0; i < count; i++) {
    size_t size = (size_t)tensor_byte_size(parts[i]);
    if (size)
      memcpy(at, parts[i]->data, size);
    at += size;
  }
  return tensor_own_strings(t, out);
}

void tensors_release(struct tensor **tensors, int64_t count) {
  for (int64_t i = 0; tensors && i < count; i++)
    tensor_release(tensors[i]);
  free(tensors);
}

status tensors_stack(enum dtype dtype, struct tensor **parts, int64_t count, const struct shape *empty, struct tensor **out) {
  const struct shape element = count ? parts[0]->shape : *empty;
  if (element.rank == LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a stack of rank %d", element.rank + 1);
  for (int64_t i = 1; i < count; i++)
    if (!shape_equal(&parts[i]->shape, &element))
      return fail(INVALID_ARGUMENT, "Inconsistent shapes: element 0 has shape %s but element %lld has shape %s", shape_text(&element),
                  (long long)i, shape_text(&parts[i]->shape));
  struct shape shape = {.rank = element.rank + 1};
  shape.dims[0] = count;
  memcpy(shape.dims + 1, element.dims, sizeof(int64_t) * (size_t)element.rank);
  return tensor_join(dtype, &shape, parts, count, out);
}

status tensors_concat(enum dtype dtype, struct tensor **parts, int64_t count, const struct shape *empty, struct tensor **out,
                      struct tensor **lengths) {
  struct shape shape = count ? parts[0]->shape : *empty, one = {.rank = 1, .dims = {count}};
  if (shape.rank < 1)
    return fail(INVALID_ARGUMENT, "Concat saw a scalar shape at index 0 but requires at least vectors");
  TRY(tensor_create(DTYPE_INT64, &one, lengths));
  shape.dims[0] = 0;
  for (int64_t i = 0; i < count; i++) {
    const struct shape *s = &parts[i]->shape;
    if (s->rank != shape.rank || memcmp(s->dims + 1, shape.dims + 1, sizeof(int64_t) * (size_t)(shape.rank - 1)) != 0)
      return fail(INVALID_ARGUMENT, "Concat saw inconsistent shapes: element %lld has shape %s", (long long)i, shape_text(s));
    ((int64_t *)(*lengths)->data)[i] = s->dims[0];
    shape.dims[0] += s->dims[0];
  }
  return tensor_join(dtype, &shape, parts, count, out);
}

/* ---- partial shapes ---- */

status partial_shape_merge(struct partial_shape *into, const struct partial_shape *other) {
  if (other->rank < 0)
    return OK;
  if (into->rank < 0) {
    *into = *other;
    return OK;
  }
  bool same = into->rank == other->rank;
  for (int d = 0; d < into->rank && same; d++)
    same = into->dims[d] < 0 || other->dims[d] < 0 || into->dims[d] == other->dims[d];
  if (!same)
    return fail(INVALID_ARGUMENT, "Incompatible shapes during merge: %s vs. %s", partial_shape_text(into), partial_shape_text(other));
  for (int d = 0; d < into->rank; d++)
    into->dims[d] = into->dims[d] < 0 ? other->dims[d] : into->dims[d];
  return OK;
}

void partial_shape_of(const struct shape *shape, struct partial_shape *out) {
  out->rank = shape->rank;
  memcpy(out->dims, shape->dims, sizeof out->dims);
}

bool partial_shape_fits(const struct partial_shape *partial, const struct shape *shape) {
  if (partial->rank >= 0 && partial->rank != shape->rank)
    return false;
  for (int d = 0; d < partial->rank; d++)
    if (partial->dims[d] >= 0 && partial->dims[d] != shape->dims[d])
      return false;
  return true;
}

bool partial_shape_full(const struct partial_shape *partial, struct shape *out) {
  out->rank = partial->rank;
  for (int d = 0; d < partial->rank; d++) {
    if (partial->dims[d] < 0)
      return false;
    out->dims[d] = partial->dims[d];
  }
  return partial->rank >= 0;
}

const char *partial_shape_text(const struct partial_shape *partial) {
  static _Thread_local char text[2][LIMIT_RANK * 22 + 4];
  static _Thread_local int turn;
  char *out = text[turn++ & 1];
  size_t at = 1;
  if (partial->rank < 0)
    return "<unknown>";
  out[0] = '[';
  for (int d = 0; d < partial->rank; d++)
    at += (size_t)snprintf(out + at, sizeof *text - at, partial->dims[d] < 0 ? "%s?" : "%s%lld", d ? "," : "", (long long)partial->dims[d]);
  snprintf(out + at, sizeof *text - at, "]");
  return out;
}
