/* host_png.c: EncodePng, ImageSummary. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/image/image.h"
#include "runtime/text/string_output.h"

status host_encode_png(struct host_call *call) {
  const struct tensor *image = &call->inputs[0];
  int batch = image->shape.rank - 3, bits = image->dtype == DTYPE_UINT16 ? 16 : 8;
  if (batch < 0)
    return fail(INVALID_ARGUMENT, "images must be at least rank 3%s", shape_text(&image->shape));
  const int64_t *dims = image->shape.dims + batch;
  if (image->count >= INT32_MAX)
    return fail(INVALID_ARGUMENT, "image cannot have >= int32 max elements");
  if (dims[1] * dims[2] >= INT32_MAX / 2)
    return fail(INVALID_ARGUMENT, "image too wide to encode");
  if (dims[2] < 1 || dims[2] > 4)
    return fail(INVALID_ARGUMENT, "image must have 1, 2, 3, or 4 channels, got %lld", (long long)dims[2]);
  struct shape shape = {.rank = batch};
  memcpy(shape.dims, image->shape.dims, sizeof *dims * (size_t)batch);
  struct string_output out;
  TRY(string_output_begin(&out, &shape, &call->outputs[0]));
  size_t size = (size_t)(dims[0] * dims[1] * dims[2] * (bits / 8));
  for (int64_t i = 0; i < out.tensor->count; i++) {
    struct wire_buffer file = {0};
    bool good = image_write_png(&file, (const char *)image->data + (size_t)i * size, dims[1], dims[0], dims[2], bits,
                                (int)host_attr_int(call, "compression", -1));
    if (good)
      string_output_put(&out, file.data, file.size);
    wire_buffer_free(&file);
    if (!good)
      return fail(INTERNAL, "PNG encoding failed at the following flattened batch indices: %lld", (long long)i);
  }
  return string_output_end(&out);
}

/* ---- summaries: what is not uint8 is scaled to it, each image by itself ---- */

#define SMALL 1e-6f /* below: all black */

static float sample_at(const struct tensor *t, int64_t i) {
  return t->dtype == DTYPE_FLOAT ? ((const float *)t->data)[i]
       : t->dtype == DTYPE_HALF  ? half_to_float(((const uint16_t *)t->data)[i])
                                 : (float)((const double *)t->data)[i];
}

static bool is_finite_at(const struct tensor *t, int64_t first, int64_t depth) {
  for (int64_t i = first; i < first + depth; i++)
    if (!isfinite(t->dtype == DTYPE_DOUBLE ? ((const double *)t->data)[i] : (double)sample_at(t, i)))
      return false;
  return true;
}

/* value * scale + offset, rounded as the dtype does after each step. */
static uint8_t scale_sample(const struct tensor *t, int64_t i, float scale, float offset) {
  if (t->dtype == DTYPE_DOUBLE)
    return (uint8_t)(((const double *)t->data)[i] * (double)scale + (double)offset);
  if (t->dtype == DTYPE_FLOAT)
    return (uint8_t)(((const float *)t->data)[i] * scale + offset);
  float scaled = half_to_float(float_to_half(sample_at(t, i) * half_to_float(float_to_half(scale))));
  return (uint8_t)half_to_float(float_to_half(scaled + offset));
}

/* Negative values: centred at 128; else from 0. Pixels that are not finite get the bad color. */
static void scale_image(const struct tensor *t, int64_t first, int64_t pixels, int64_t depth, const uint8_t *bad, uint8_t *to) {
  float low = INFINITY, high = -INFINITY;
  for (int64_t p = 0; p < pixels; p++)
    for (int64_t i = 0, end = is_finite_at(t, first + p * depth, depth) ? depth : 0; i < end; i++) {
      float value = sample_at(t, first + p * depth + i);
      low = value < low ? value : low;
      high = value > high ? value : high;
    }
  float most = low < 0 ? fmaxf(fabsf(low), fabsf(high)) : high;
  float scale = most < SMALL ? 0 : (low < 0 ? 127.0f : 255.0f) / most, offset = low < 0 ? 128 : 0;
  for (int64_t p = 0; p < pixels; p++) {
    bool is_good = is_finite_at(t, first + p * depth, depth);
    for (int64_t i = 0; i < depth; i++)
      to[p * depth + i] = is_good ? scale_sample(t, first + p * depth + i, scale, offset) : bad[i];
  }
}

static void put_image(struct wire_buffer *summary, const char *tag, const int64_t *dims, const struct wire_buffer *png) {
  struct wire_buffer value = {0}, image = {0};
  wire_put_varint(&image, 1, (uint64_t)dims[1]);
  wire_put_varint(&image, 2, (uint64_t)dims[2]);
  wire_put_varint(&image, 3, (uint64_t)dims[3]);
  wire_put_bytes(&image, 4, png->data, png->size);
  wire_put_bytes(&value, 1, tag, strlen(tag));
  wire_put_message(&value, 4, &image);
  wire_put_message(summary, 1, &value);
}

static status summarize(struct host_call *call, const uint8_t *bad, uint8_t *pixels, struct wire_buffer *summary) {
  const struct tensor *t = &call->inputs[1];
  struct string_view base = host_scalar_string(&call->inputs[0]);
  const int64_t *dims = t->shape.dims;
  int64_t most = host_attr_int(call, "max_images", 3), size = dims[1] * dims[2] * dims[3];
  char *tag = malloc(base.size + 40);
  status result = tag ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a summary");
  for (int64_t i = 0; i < most && i < dims[0] && result == OK; i++) {
    struct wire_buffer png = {0};
    if (t->dtype == DTYPE_UINT8)
      memcpy(pixels, (const char *)t->data + i * size, (size_t)size);
    else
      scale_image(t, i * size, dims[1] * dims[2], dims[3], bad, pixels);
    memcpy(tag, base.data, base.size);
    snprintf(tag + base.size, 40, most > 1 ? "/image/%lld" : "/image", (long long)i);
    if (image_write_png(&png, pixels, dims[2], dims[1], dims[3], 8, -1))
      put_image(summary, tag, dims, &png);
    else
      result = fail(INTERNAL, "PNG encoding failed");
    wire_buffer_free(&png);
  }
  free(tag);
  return result;
}

status host_image_summary(struct host_call *call) {
  const struct tensor *t = &call->inputs[1];
  static const uint8_t red[] = {255, 0, 0, 255};
  const struct program_attr *attr = host_attr(call, "bad_color");
  const uint8_t *bad = attr ? (const uint8_t *)program_table(call->program, PROGRAM_DATA) + attr->offset : red;
  int64_t bad_size = attr ? (int64_t)attr->size : (int64_t)sizeof red;
  if (call->input_count > 2) { /* of a summary that is written at once */
    bad = call->inputs[2].data;
    bad_size = call->inputs[2].count;
  }
  const int64_t *dims = t->shape.dims;
  if (call->inputs[0].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "Tags must be a scalar");
  if (t->shape.rank != 4 || (dims[3] != 1 && dims[3] != 3 && dims[3] != 4))
    return fail(INVALID_ARGUMENT, "Tensor must be 4-D with last dim 1, 3, or 4, not %s", shape_text(&t->shape));
  if (dims[1] * dims[2] >= 1 << 29)
    return fail(INVALID_ARGUMENT, "Tensor too large for summary %s", shape_text(&t->shape));
  if (dims[1] * dims[2] == 0)
    return fail(INVALID_ARGUMENT, "input tensor must have non-zero dims. Found: %s.", shape_text(&t->shape));
  if (t->dtype != DTYPE_UINT8 && bad_size < dims[3])
    return fail(INVALID_ARGUMENT, "expected depth <= bad_color.size, got depth = %lld, bad_color.size = %lld", (long long)dims[3],
                (long long)bad_size);
  struct wire_buffer summary = {0};
  uint8_t *pixels = malloc((size_t)(dims[1] * dims[2] * dims[3]));
  status result = pixels ? summarize(call, bad, pixels, &summary) : fail(RESOURCE_EXHAUSTED, "no memory for a summary");
  if (result == OK && summary.is_bad)
    result = fail(RESOURCE_EXHAUSTED, "no memory for a summary");
  if (result == OK)
    result =
      tensor_copy_in(DTYPE_STRING, &(struct shape){0}, &(struct string_view){(const char *)summary.data, summary.size}, &call->outputs[0]);
  wire_buffer_free(&summary);
  free(pixels);
  return result;
}
