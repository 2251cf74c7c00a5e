/* object.c: counted objects as elements of variant tensors. */
#include "runtime/host/object.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void object_init(struct object *object, const struct object_kind *kind) {
  object->kind = kind;
  atomic_init(&object->references, 1);
}

struct object *object_retain(struct object *object) {
  if (object)
    atomic_fetch_add(&object->references, 1);
  return object;
}

void object_release(struct object *object) {
  if (object && atomic_fetch_sub(&object->references, 1) == 1)
    object->kind->destroy(object);
}

static void release_elements(struct tensor *tensor) {
  for (int64_t i = 0; i < tensor->count; i++)
    object_release(objects_of(tensor)[i]);
  free(tensor->data);
}

status objects_create(const struct shape *shape, struct tensor **out) {
  TRY(tensor_create(DTYPE_VARIANT, shape, out));
  if ((*out)->data)
    memset((*out)->data, 0, (size_t)tensor_byte_size(*out));
  (*out)->release_data = release_elements;
  return OK;
}

bool tensor_has_objects(const struct tensor *tensor) { return tensor->dtype == DTYPE_VARIANT && tensor->release_data == release_elements; }

status objects_share(const struct tensor *from, int64_t first, const struct shape *shape, struct tensor **out) {
  if (!tensor_has_objects(from))
    return fail(UNIMPLEMENTED, "rows of a tensor of variants that are no objects");
  TRY(objects_create(shape, out));
  for (int64_t i = 0; i < (*out)->count; i++)
    objects_put(*out, i, object_retain(objects_of(from)[first + i]));
  return OK;
}

status objects_zeros(const struct tensor *from, struct tensor **out) {
  TRY(objects_create(&from->shape, out));
  for (int64_t i = 0; i < from->count; i++) {
    const struct object *x = objects_of(from)[i];
    if (x && !x->kind->zeros)
      return fail(UNIMPLEMENTED, "zeros like a %s", x->kind->name);
    if (x)
      TRY(x->kind->zeros(x, &objects_of(*out)[i]));
  }
  return OK;
}

status objects_add(const struct tensor *a, const struct tensor *b, struct tensor **out) {
  if (!shape_equal(&a->shape, &b->shape))
    return fail(INVALID_ARGUMENT, "variants of shapes %s and %s", shape_text(&a->shape), shape_text(&b->shape));
  TRY(objects_create(&a->shape, out));
  for (int64_t i = 0; i < a->count; i++) {
    struct object *x = objects_of(a)[i], *y = objects_of(b)[i];
    if (!x || !y) {
      objects_put(*out, i, object_retain(x ? x : y));
      continue;
    }
    if (x->kind != y->kind || !x->kind->add)
      return fail(x->kind != y->kind ? INVALID_ARGUMENT : UNIMPLEMENTED, "the sum of a %s and a %s", x->kind->name, y->kind->name);
    TRY(x->kind->add(x, y, &objects_of(*out)[i]));
  }
  return OK;
}

status object_output(struct host_call *call, uint32_t i, struct object *object) {
  status s = objects_create(&(struct shape){0}, &call->outputs[i]);
  if (s == OK)
    objects_put(call->outputs[i], 0, object);
  else
    object_release(object);
  return s;
}

bool object_reuse(struct host_call *call, struct object *object) {
  if (!host_owns_input(call, 0) || atomic_load(&object->references) != 1)
    return false;
  call->outputs[0] = tensor_retain(call->held[0]);
  return true;
}

status objects_input(const struct host_call *call, uint32_t i, const struct tensor **out) {
  *out = &call->inputs[i];
  return tensor_has_objects(*out) ? OK : fail(INVALID_ARGUMENT, "Could not retrieve the variants of input %u", i);
}

status object_input(const struct host_call *call, uint32_t i, const struct object_kind *kind, struct object **out) {
  const struct tensor *tensor;
  TRY(objects_input(call, i, &tensor));
  if (tensor->count != 1 || tensor->shape.rank != 0)
    return fail(INVALID_ARGUMENT, "Variant tensor must be a scalar, but has shape %s", shape_text(&tensor->shape));
  *out = objects_of(tensor)[0];
  return *out && (*out)->kind == kind ? OK : fail(INVALID_ARGUMENT, "Could not retrieve Variant input %u as a %s", i, kind->name);
}
