/* host_optional.c: several tensors as one object: optionals, which may have none, the components of composite tensors, and elements that
 * TensorFlow compresses, which here stay as they are: they do not leave the process. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/object.h"
#include "runtime/value/object_message.h"
#include "runtime/value/optional.h"
#include "runtime/value/tensor_list.h"

struct optional {
  struct object object;
  uint32_t count; /* 0: no value */
  char *metadata; /* of a composite tensor: bytes of its own, or NULL */
  size_t metadata_size;
  struct tensor *items[];
};

static void optional_destroy(struct object *object) {
  struct optional *x = (struct optional *)object;
  for (uint32_t i = 0; i < x->count; i++)
    tensor_release(x->items[i]);
  free(x->metadata);
  free(x);
}

static status optional_zeros(const struct object *object, struct object **out);
static status optional_add(const struct object *a, const struct object *b, struct object **out);
/* Alike, but none is taken for another. */
static const struct object_kind optional_kind = {"Optional", optional_destroy, optional_zeros, optional_add, NULL},
                                composite_kind = {"CompositeTensorVariant", optional_destroy, optional_zeros, optional_add,
                                                  &composite_message},
                                element_kind = {"CompressedElement", optional_destroy, optional_zeros, optional_add, NULL};

static const struct object_kind *kind_of_call(const struct host_call *call) {
  const char *op = program_text(call->program, call->instr->tf_op);
  return strstr(op, "Optional") ? &optional_kind : strstr(op, "Composite") ? &composite_kind : &element_kind;
}

static status optional_create(uint32_t count, const struct object_kind *kind, struct optional **out) {
  *out = calloc(1, sizeof **out + count * sizeof(struct tensor *));
  if (!*out)
    return fail(RESOURCE_EXHAUSTED, "no memory for %u components", count);
  object_init(&(*out)->object, kind);
  (*out)->count = count;
  return OK;
}

static status item_zeros(const struct tensor *item, struct tensor **out) {
  return tensor_has_objects(item) ? objects_zeros(item, out) : tensor_zeros(item->dtype, &item->shape, out);
}

static status optional_zeros(const struct object *object, struct object **out) {
  const struct optional *from = (const struct optional *)object;
  struct optional *made;
  TRY(optional_create(from->count, object->kind, &made));
  status s = OK;
  for (uint32_t i = 0; i < from->count && s == OK; i++)
    s = item_zeros(from->items[i], &made->items[i]);
  *out = &made->object;
  if (s != OK)
    object_release(&made->object), *out = NULL;
  return s;
}

static status optional_add(const struct object *a, const struct object *b, struct object **out) {
  const struct optional *x = (const struct optional *)a, *y = (const struct optional *)b;
  struct optional *made;
  if (x->count != y->count)
    return fail(INVALID_ARGUMENT, "Cannot add optionals because one has a value and the other doesn't.");
  TRY(optional_create(x->count, a->kind, &made));
  status s = OK;
  for (uint32_t i = 0; i < x->count && s == OK; i++)
    s = tensor_sum(x->items[i], y->items[i], &made->items[i]);
  *out = &made->object;
  if (s != OK)
    object_release(&made->object), *out = NULL;
  return s;
}

status optional_output(struct host_call *call, uint32_t i, struct tensor *const *components, uint32_t count) {
  struct optional *made;
  TRY(optional_create(count, &optional_kind, &made));
  for (uint32_t k = 0; k < count; k++)
    made->items[k] = tensor_retain(components[k]);
  return object_output(call, i, &made->object);
}

/* ---- as bytes ---- */

static status take_metadata(struct optional *x, struct string_view metadata) {
  x->metadata = malloc(metadata.size + 1);
  if (!x->metadata)
    return fail(RESOURCE_EXHAUSTED, "no memory for a composite tensor");
  memcpy(x->metadata, metadata.data, metadata.size);
  x->metadata_size = metadata.size;
  return OK;
}

static struct tensor *composite_item(const struct object *object, uint32_t i) {
  const struct optional *x = (const struct optional *)object;
  return i < x->count ? x->items[i] : NULL;
}
static struct string_view composite_metadata(const struct object *object) {
  const struct optional *x = (const struct optional *)object;
  return (struct string_view){x->metadata, x->metadata_size};
}
static status composite_make(struct tensor *const *items, uint32_t count, struct string_view metadata, struct object **out) {
  struct optional *made;
  TRY(optional_create(count, &composite_kind, &made));
  for (uint32_t i = 0; i < count; i++)
    made->items[i] = tensor_retain(items[i]);
  status s = metadata.size ? take_metadata(made, metadata) : OK;
  if (s == OK)
    *out = &made->object;
  else
    object_release(&made->object);
  return s;
}
const struct object_message composite_message = {"CompositeTensorVariant", composite_item, composite_metadata, composite_make};

/* ---- calls ---- */

/* OptionalFromValue, OptionalNone, CompositeTensorVariantFromComponents, CompressElement */
status host_bundle_make(struct host_call *call) {
  struct optional *made;
  TRY(optional_create(call->input_count, kind_of_call(call), &made));
  status s = OK;
  for (uint32_t i = 0; i < call->input_count && s == OK; i++)
    s = host_keep_input(call, i, &made->items[i]);
  struct string_view metadata = host_attr_string(call, "metadata", "");
  if (s == OK && metadata.size)
    s = take_metadata(made, metadata);
  if (s == OK)
    return object_output(call, 0, &made->object);
  object_release(&made->object);
  return s;
}

static status take_input(const struct host_call *call, const struct optional **out) {
  struct object *object;
  TRY(object_input(call, 0, kind_of_call(call), &object));
  *out = (const struct optional *)object;
  return OK;
}

status host_optional_has_value(struct host_call *call) {
  const struct optional *x;
  TRY(take_input(call, &x));
  return host_give_number(call, 0, DTYPE_BOOL, x->count > 0);
}

static status give_components(struct host_call *call, const struct optional *x) {
  if (x->count != call->output_count)
    return fail(INVALID_ARGUMENT, "the value has %u components, not %u", x->count, call->output_count);
  const struct program_attr *said = host_attr(call, "output_types"), *types = said ? said : host_attr(call, "Tcomponents");
  for (uint32_t i = 0; types && i < types->list.count && i < x->count; i++) {
    enum dtype wanted = (enum dtype)program_attr(call->program, types->list.first + i)->i;
    if (x->items[i]->dtype != wanted)
      return fail(INVALID_ARGUMENT, "The given %s does not match the expected type for component %u. Expected: %s. Actual: %s.",
                  said ? "optional" : "composite tensor", i, dtype_name(wanted), dtype_name(x->items[i]->dtype));
  }
  for (uint32_t i = 0; i < call->output_count; i++)
    call->outputs[i] = tensor_retain(x->items[i]);
  return OK;
}

status host_optional_get_value(struct host_call *call) {
  const struct optional *x;
  TRY(take_input(call, &x));
  return x->count ? give_components(call, x) : fail(INVALID_ARGUMENT, "The given optional does not have a value.");
}

/* CompositeTensorVariantToComponents, UncompressElement */
status host_composite_components(struct host_call *call) {
  const struct optional *x;
  TRY(take_input(call, &x));
  return give_components(call, x);
}
