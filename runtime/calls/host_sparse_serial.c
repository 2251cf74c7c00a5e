/* host_sparse_serial.c: sparse tensors as three strings (TensorProto) or three variants, and back. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/object.h"
#include "runtime/text/string_output.h"
#include "runtime/value/boxed_sparse.h"
#include "runtime/value/object_message.h"
#include "runtime/value/tensor_message.h"
#include "runtime/value/tensor_proto.h"

/* ---- a tensor as a variant ---- */

struct tensor_object {
  struct object object;
  struct tensor *tensor;
};
static void tensor_object_destroy(struct object *object) {
  tensor_release(((struct tensor_object *)object)->tensor);
  free(object);
}
static const struct object_kind tensor_kind = {"Tensor", tensor_object_destroy, .message = &tensor_object_message};

static status tensor_object_create(struct tensor *tensor, struct object **out) {
  struct tensor_object *box = calloc(1, sizeof *box);
  if (!box)
    return fail(RESOURCE_EXHAUSTED, "no memory for a variant");
  object_init(&box->object, &tensor_kind);
  box->tensor = tensor_retain(tensor);
  *out = &box->object;
  return OK;
}

static struct tensor *tensor_object_item(const struct object *object, uint32_t i) {
  return i == 0 ? ((const struct tensor_object *)object)->tensor : NULL;
}
static status tensor_object_make(struct tensor *const *items, uint32_t count, struct string_view metadata, struct object **out) {
  (void)metadata;
  return count == 1 ? tensor_object_create(items[0], out) : fail(INVALID_ARGUMENT, "a tensor as a variant of %u tensors", count);
}
const struct object_message tensor_object_message = {"tensorflow::Tensor", tensor_object_item, NULL, tensor_object_make};

static status put_variant(struct tensor *to, int64_t i, struct tensor *tensor) {
  struct object *box = NULL;
  TRY(tensor_object_create(tensor, &box));
  objects_put(to, i, box);
  return OK;
}

static status put_variants(struct tensor *to, int64_t i, const struct boxed_sparse *box) {
  TRY(put_variant(to, i, box->indices));
  TRY(put_variant(to, i + 1, box->values));
  return put_variant(to, i + 2, box->shape);
}

status boxed_sparse_variants(const struct boxed_sparse *box, struct tensor **out) {
  TRY(objects_create(&(struct shape){1, {3}}, out));
  status s = put_variants(*out, 0, box);
  if (s != OK) {
    tensor_release(*out);
    *out = NULL;
  }
  return s;
}

/* ---- serializing ---- */

static status put_strings(struct host_call *call, const struct boxed_sparse *boxes, int64_t count, const struct shape *shape) {
  struct string_output out;
  TRY(string_output_begin(&out, shape, &call->outputs[0]));
  for (int64_t i = 0; i < count; i++) {
    const struct tensor *parts[3] = {boxes[i].indices, boxes[i].values, boxes[i].shape};
    for (int k = 0; k < 3; k++) {
      struct wire_buffer bytes = {0};
      tensor_proto_put_content(&bytes, parts[k]);
      string_output_put(&out, bytes.data, bytes.size);
      out.failed |= bytes.is_bad;
      wire_buffer_free(&bytes);
    }
  }
  return string_output_end(&out);
}

static status put_boxes(struct host_call *call, const struct boxed_sparse *boxes, int64_t count, const struct shape *shape) {
  if (host_attr_int(call, "out_type", DTYPE_STRING) == DTYPE_STRING)
    return put_strings(call, boxes, count, shape);
  TRY(objects_create(shape, &call->outputs[0]));
  for (int64_t i = 0; i < count; i++)
    TRY(put_variants(call->outputs[0], 3 * i, &boxes[i]));
  return OK;
}

status host_serialize_sparse(struct host_call *call) {
  struct boxed_sparse box = {0};
  status s = boxed_sparse_input(call, 0, &box);
  s = s == OK ? put_boxes(call, &box, 1, &(struct shape){1, {3}}) : s;
  boxed_sparse_deinit(&box);
  return s;
}

status host_serialize_many_sparse(struct host_call *call) {
  struct boxed_sparse *boxes;
  int64_t count;
  TRY(boxed_sparse_rows(call, 0, &boxes, &count));
  status s = put_boxes(call, boxes, count, &(struct shape){2, {count, 3}});
  boxed_sparse_free(boxes, count);
  return s;
}

/* ---- deserializing ---- */

static status read_part(const struct tensor *serialized, int64_t i, struct tensor **out) {
  if (serialized->dtype == DTYPE_STRING) {
    struct string_view bytes = ((const struct string_view *)serialized->data)[i];
    status s = tensor_message_read(wire_over((const uint8_t *)bytes.data, bytes.size), out);
    return s == OK ? OK : status_prefix(fail(INVALID_ARGUMENT, "%s", status_text()), "Could not parse serialized proto: ");
  }
  const struct tensor_object *box = (const struct tensor_object *)objects_of(serialized)[i];
  if (!box || box->object.kind != &tensor_kind)
    return fail(INVALID_ARGUMENT, "Could not get a tensor from serialized_sparse[%lld, %lld]", (long long)(i / 3), (long long)(i % 3));
  *out = tensor_retain(box->tensor);
  return OK;
}

static status read_boxes(const struct tensor *serialized, struct boxed_sparse *boxes, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    TRY(read_part(serialized, 3 * i, &boxes[i].indices));
    TRY(read_part(serialized, 3 * i + 1, &boxes[i].values));
    TRY(read_part(serialized, 3 * i + 2, &boxes[i].shape));
  }
  return OK;
}

status host_deserialize_sparse(struct host_call *call) {
  const struct tensor *serialized = &call->inputs[0];
  struct shape outer = serialized->shape;
  if (serialized->dtype == DTYPE_VARIANT)
    TRY(objects_input(call, 0, &serialized));
  if (outer.rank < 1 || outer.dims[outer.rank - 1] != 3)
    return fail(INVALID_ARGUMENT, "Serialized sparse should have 3 as the last dimension %s", shape_text(&outer));
  outer.rank--;
  int64_t count = shape_count(&outer);
  if (count < 1)
    return fail(INVALID_ARGUMENT, "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension %s",
                shape_text(&serialized->shape));
  struct boxed_sparse *boxes = calloc((size_t)count, sizeof *boxes);
  if (!boxes)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld sparse tensors", (long long)count);
  status s = read_boxes(serialized, boxes, count);
  s = s == OK ? boxed_sparse_stack(call, boxes, &outer, (enum dtype)host_attr_int(call, "dtype", DTYPE_FLOAT)) : s;
  boxed_sparse_free(boxes, count);
  return s;
}
