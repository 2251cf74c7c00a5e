/* host_summary.c: summaries for TensorBoard (summary.proto) and tensors as bytes (tensor.proto), field by field in the order of
 * their numbers, so that the bytes are TensorFlow's. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "runtime/host/host.h"
#include "runtime/text/string_output.h"
#include "runtime/value/object_message.h"
#include "runtime/value/tensor_message.h"
#include "runtime/value/tensor_proto.h"

static void put_fixed32(struct wire_buffer *out, uint32_t number, const void *bytes) {
  uint8_t tag = (uint8_t)(number << 3 | WIRE_FIXED32);
  wire_put_raw(out, &tag, 1);
  wire_put_raw(out, bytes, 4);
}

/* Output 0: the bytes as one string. Frees them. */
static status give_bytes(struct host_call *call, struct wire_buffer *bytes) {
  struct string_output out;
  status result =
    bytes->is_bad ? fail(RESOURCE_EXHAUSTED, "no memory for a summary") : string_output_begin(&out, &(struct shape){0}, &call->outputs[0]);
  if (result == OK) {
    string_output_put(&out, bytes->data, bytes->size);
    result = string_output_end(&out);
  }
  wire_buffer_free(bytes);
  return result;
}

/* ---- numbers of any dtype ---- */

static double real_at(const struct tensor *t, int64_t i) {
  switch (t->dtype) {
  case DTYPE_FLOAT: return ((const float *)t->data)[i];
  case DTYPE_DOUBLE: return ((const double *)t->data)[i];
  case DTYPE_HALF: return half_to_float(((const uint16_t *)t->data)[i]);
  case DTYPE_BFLOAT16: return bfloat16_to_float(((const uint16_t *)t->data)[i]);
  case DTYPE_BOOL: return ((const bool *)t->data)[i];
  case DTYPE_INT8: return ((const int8_t *)t->data)[i];
  case DTYPE_UINT8: return ((const uint8_t *)t->data)[i];
  case DTYPE_INT16: return ((const int16_t *)t->data)[i];
  case DTYPE_UINT16: return ((const uint16_t *)t->data)[i];
  case DTYPE_INT32: return ((const int32_t *)t->data)[i];
  case DTYPE_UINT32: return ((const uint32_t *)t->data)[i];
  case DTYPE_INT64: return (double)((const int64_t *)t->data)[i];
  case DTYPE_UINT64: return (double)((const uint64_t *)t->data)[i];
  default: return 0;
  }
}

/* ---- scalars ---- */

status host_scalar_summary(struct host_call *call) {
  const struct tensor *tags = &call->inputs[0], *values = &call->inputs[1];
  struct wire_buffer summary = {0};
  if (tags->count != values->count)
    return fail(INVALID_ARGUMENT, "tags and values are not the same shape: %s != %s", shape_text(&tags->shape), shape_text(&values->shape));
  for (int64_t i = 0; i < tags->count; i++) {
    struct wire_buffer value = {0};
    struct string_view tag = ((const struct string_view *)tags->data)[i];
    float number = (float)real_at(values, i);
    if (tag.size)
      wire_put_bytes(&value, 1, tag.data, tag.size);
    put_fixed32(&value, 2, &number);
    wire_put_message(&summary, 1, &value);
  }
  return give_bytes(call, &summary);
}

/* ---- histograms: buckets that grow by a tenth ---- */

#define BUCKETS_MAX 2048
struct histogram {
  double limits[BUCKETS_MAX], counts[BUCKETS_MAX];
  int size;
  double min, max, count, sum, squares;
};

static void histogram_init(struct histogram *h) {
  double positive[BUCKETS_MAX / 2];
  int n = 0;
  for (double v = 1.0e-12; v < 1.0e20; v *= 1.1)
    positive[n++] = v;
  positive[n++] = DBL_MAX;
  memset(h, 0, sizeof *h);
  for (int i = n - 1; i >= 0; i--)
    h->limits[h->size++] = -positive[i];
  h->limits[h->size++] = 0;
  for (int i = 0; i < n; i++)
    h->limits[h->size++] = positive[i];
  h->min = DBL_MAX;
  h->max = -DBL_MAX;
}

static void histogram_add(struct histogram *h, double value) {
  int low = 0, high = h->size;
  while (low < high) { /* the first limit above the value */
    int middle = (low + high) / 2;
    if (h->limits[middle] > value)
      high = middle;
    else
      low = middle + 1;
  }
  h->counts[low < h->size ? low : h->size - 1] += 1;
  h->min = value < h->min ? value : h->min;
  h->max = value > h->max ? value : h->max;
  h->count += 1;
  h->sum += value;
  h->squares += value * value;
}

static void put_double(struct wire_buffer *out, uint32_t number, double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  if (bits)
    wire_put_fixed64(out, number, bits);
}

/* Runs of empty buckets are one. */
static void histogram_put(struct wire_buffer *out, const struct histogram *h) {
  struct wire_buffer limits = {0}, counts = {0};
  const double numbers[] = {h->min, h->max, h->count, h->sum, h->squares};
  for (uint32_t i = 0; i < 5; i++)
    put_double(out, i + 1, numbers[i]);
  for (int i = 0; i < h->size; i++) {
    double count = h->counts[i];
    while (count <= 0 && i + 1 < h->size && h->counts[i + 1] <= 0)
      i++;
    wire_put_raw(&limits, &h->limits[i], 8);
    wire_put_raw(&counts, &count, 8);
  }
  wire_put_message(out, 6, &limits);
  wire_put_message(out, 7, &counts);
}

status host_histogram_summary(struct host_call *call) {
  const struct tensor *values = &call->inputs[1];
  struct string_view tag = host_scalar_string(&call->inputs[0]);
  if (call->inputs[0].count != 1)
    return fail(INVALID_ARGUMENT, "tags must be scalar");
  struct histogram *h = malloc(sizeof *h);
  if (!h)
    return fail(RESOURCE_EXHAUSTED, "no memory for a histogram");
  histogram_init(h);
  for (int64_t i = 0; i < values->count; i++) {
    double value = real_at(values, i);
    if (!isfinite(value)) {
      free(h);
      return fail(INVALID_ARGUMENT, "%s in summary histogram for: %.*s", isnan(value) ? "Nan" : "Infinity", (int)tag.size, tag.data);
    }
    histogram_add(h, value);
  }
  struct wire_buffer summary = {0}, value = {0}, histogram = {0};
  histogram_put(&histogram, h);
  free(h);
  if (tag.size)
    wire_put_bytes(&value, 1, tag.data, tag.size);
  wire_put_message(&value, 5, &histogram);
  wire_put_message(&summary, 1, &value);
  return give_bytes(call, &summary);
}

/* ---- merging ---- */

/* Each tag once; values are taken over as they are. */
static status merge_one(struct string_view in, struct map *tags, char **names, uint32_t *count, struct wire_buffer *out) {
  struct wire wire = wire_over((const uint8_t *)in.data, in.size);
  struct wire_field value, field;
  while (wire_next(&wire, &value)) {
    if (value.number != 1 || value.type != WIRE_BYTES)
      continue;
    for (struct wire inner = wire_inside(&value); wire_next(&inner, &field);) {
      if (field.number != 1 || field.type != WIRE_BYTES || field.size == 0)
        continue;
      char *name = names[(*count)++] = strndup((const char *)field.data, field.size);
      if (!name)
        return fail(RESOURCE_EXHAUSTED, "no memory for a summary");
      if (!map_insert(tags, name, 0))
        return fail(INVALID_ARGUMENT, "Duplicate tag %s found in summary inputs", name);
      break;
    }
    wire_put_bytes(out, 1, value.data, value.size);
  }
  return wire.is_bad ? fail(INVALID_ARGUMENT, "Could not parse one of the summary inputs") : OK;
}

static uint32_t count_values(const struct host_call *call) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < call->input_count; i++)
    for (int64_t k = 0; k < call->inputs[i].count; k++) {
      struct string_view in = ((const struct string_view *)call->inputs[i].data)[k];
      struct wire wire = wire_over((const uint8_t *)in.data, in.size);
      struct wire_field field;
      while (wire_next(&wire, &field))
        total++;
    }
  return total;
}

status host_merge_summary(struct host_call *call) {
  struct wire_buffer summary = {0};
  struct map tags = {0};
  uint32_t count = 0;
  char **names = calloc((size_t)count_values(call) + 1, sizeof *names);
  status result = names ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a summary");
  for (uint32_t i = 0; i < call->input_count && result == OK; i++)
    for (int64_t k = 0; k < call->inputs[i].count && result == OK; k++)
      result = merge_one(((const struct string_view *)call->inputs[i].data)[k], &tags, names, &count, &summary);
  map_deinit(&tags);
  for (uint32_t i = 0; names && i < count; i++)
    free(names[i]);
  free(names);
  if (result == OK)
    return give_bytes(call, &summary);
  wire_buffer_free(&summary);
  return result;
}

/* ---- tensors ---- */

void tensor_proto_put(struct wire_buffer *out, const struct tensor *tensor) {
  tensor_message_put_head(out, tensor);
  for (int64_t i = 0; tensor->dtype == DTYPE_STRING && i < tensor->count; i++) {
    struct string_view view = ((const struct string_view *)tensor->data)[i];
    wire_put_bytes(out, 8, view.data, view.size);
  }
  if (tensor->dtype != DTYPE_STRING && tensor->count)
    wire_put_bytes(out, 4, tensor->data, (size_t)tensor_byte_size(tensor));
}

void tensor_proto_put_content(struct wire_buffer *out, const struct tensor *tensor) {
  struct wire_buffer content = {0};
  const struct string_view *views = tensor->data;
  if (tensor->dtype != DTYPE_STRING || tensor->count == 0) {
    tensor_proto_put(out, tensor);
    return;
  }
  tensor_message_put_head(out, tensor);
  for (int64_t i = 0; i < tensor->count; i++)
    wire_put_number(&content, views[i].size);
  for (int64_t i = 0; i < tensor->count; i++)
    wire_put_raw(&content, views[i].data, views[i].size);
  wire_put_bytes(out, 4, content.data, content.size);
  out->is_bad |= content.is_bad;
  wire_buffer_free(&content);
}

status host_serialize_tensor(struct host_call *call) {
  struct wire_buffer bytes = {0};
  const struct tensor *objects;
  if (call->inputs[0].dtype == DTYPE_RESOURCE)
    return fail(UNIMPLEMENTED, "a %s as bytes", dtype_name(call->inputs[0].dtype));
  if (call->inputs[0].dtype != DTYPE_VARIANT) {
    tensor_proto_put(&bytes, &call->inputs[0]);
    return give_bytes(call, &bytes);
  }
  TRY(objects_input(call, 0, &objects));
  status s = objects_message_write(&bytes, objects);
  if (s == OK)
    return give_bytes(call, &bytes);
  wire_buffer_free(&bytes);
  return s;
}

status host_parse_tensor(struct host_call *call) {
  struct string_view in = host_scalar_string(&call->inputs[0]);
  enum dtype wanted = (enum dtype)host_attr_int(call, "out_type", DTYPE_FLOAT);
  if (call->inputs[0].count != 1)
    return fail(INVALID_ARGUMENT, "Expected `serialized` to be a scalar, got shape: %s", shape_text(&call->inputs[0].shape));
  struct wire wire = wire_over((const uint8_t *)in.data, in.size);
  status result = is_objects_message(wire) ? objects_message_read(wire, &call->outputs[0]) : tensor_message_read(wire, &call->outputs[0]);
  if (result != OK)
    return status_prefix(result, "Could not parse `serialized` as TensorProto: ");
  if (call->outputs[0]->dtype != wanted)
    return fail(INVALID_ARGUMENT, "Type mismatch between parsed tensor (%s) and dtype (%s)", dtype_name(call->outputs[0]->dtype),
                dtype_name(wanted));
  return OK;
}

static status tensor_summary(struct host_call *call, bool with_empty_metadata) {
  bool second = call->input_count == 3; /* tag, tensor, metadata; else the tensor alone */
  struct wire_buffer summary = {0}, value = {0}, tensor = {0};
  tensor_proto_put(&tensor, &call->inputs[second ? 1 : 0]);
  if (second) {
    struct string_view tag = host_scalar_string(&call->inputs[0]), metadata = host_scalar_string(&call->inputs[2]);
    if (tag.size)
      wire_put_bytes(&value, 1, tag.data, tag.size);
    wire_put_message(&value, 8, &tensor);
    if (metadata.size || with_empty_metadata)
      wire_put_bytes(&value, 9, metadata.data, metadata.size);
  } else {
    wire_put_text(&value, 7, host_node_name(call));
    wire_put_message(&value, 8, &tensor);
  }
  wire_put_message(&summary, 1, &value);
  return give_bytes(call, &summary);
}

status host_tensor_summary(struct host_call *call) { return tensor_summary(call, true); }
/* What WriteSummary writes, which leaves empty metadata out. */
status host_written_summary(struct host_call *call) { return tensor_summary(call, false); }
