/* ops_image.c: images and sounds out of files and into them. What is decoded has sizes that only the file knows; its rank must be known
 * before. */
#include <string.h>

#include "ir/ops/op_rows.h"
#include "ir/lower/host_call.h"

static status check_scalar(struct op_call *c, uint32_t i, const char *text) {
  value_id v;
  TRY(op_input(c, i, &v));
  const struct flow_value *x = op_value(c, v);
  return x->rank == 0 ? OK : fail(INVALID_ARGUMENT, "%s%s", text, op_shape_text(c, x->rank, x->dims));
}

static status check_decoder(struct op_call *c, int64_t channels) {
  int64_t ratio = node_attr_int(c->node, "ratio", 1);
  const struct attr_value *method = node_attr(c->node, "dct_method");
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
    return fail(INVALID_ARGUMENT, "ratio must be 1, 2, 4, or 8, got %lld", (long long)ratio);
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
    return fail(INVALID_ARGUMENT, "`channels` must be 0, 1, 3 or 4 but got %lld", (long long)channels);
  if (method && method->s.size && strcmp(method->s.data, "INTEGER_FAST") != 0 && strcmp(method->s.data, "INTEGER_ACCURATE") != 0)
    return fail(INVALID_ARGUMENT, "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
  return check_scalar(c, 0, "`contents` must be scalar but got shape");
}

/* DecodeImage gives animations (GIF) one dimension more: known when the bytes are, or when the graph says so; else images are taken
 * not to be animated, which is checked when the step runs. */
static int image_rank(struct op_call *c) {
  value_id v;
  const struct attr_shape *said = node_output_shape(c->node, 0);
  if (OP_ROW(c, image_row)->frames)
    return 4;
  if (!OP_ROW(c, image_row)->maybe_frames || !node_attr_int(c->node, "expand_animations", 1))
    return 3;
  const struct string_view *file = op_input(c, 0, &v) == OK ? op_value(c, v)->data : NULL;
  if (file)
    return file->size >= 4 && memcmp(file->data, "GIF8", 4) == 0 ? 4 : 3;
  return said && said->rank == 4 ? 4 : 3;
}

status build_decode_image(struct op_call *c) {
  int64_t channels = OP_ROW(c, image_row)->frames ? 3 : node_attr_int(c->node, "channels", 0);
  struct flow_node *n;
  dim dims[LIMIT_RANK];
  TRY(check_decoder(c, channels));
  int rank = image_rank(c);
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_add_attr(c, n, "rank", (struct attr_value){.kind = ATTR_INT, .i = rank});
  for (int d = 0; d < rank; d++)
    dims[d] = d == rank - 1 && channels ? op_dim(c, channels) : op_new_symbol(c);
  op_host_output(c, n, 0, rank, dims);
  return OK;
}

/* The leading dimensions stay: one file for each image. */
status build_encode_png(struct op_call *c) {
  value_id v;
  struct flow_node *n;
  int64_t level = node_attr_int(c->node, "compression", -1);
  if (level < -1 || level > 9)
    return fail(INVALID_ARGUMENT, "compression should be in [-1,9], got %lld", (long long)level);
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 3)
    return fail(INVALID_ARGUMENT, "images must be at least rank 3%s", op_shape_text(c, x.rank, x.dims));
  int64_t channels = op_dim_value(c, x.dims[x.rank - 1]);
  if (channels == 0 || channels > 4)
    return fail(INVALID_ARGUMENT, "image must have 1, 2, 3, or 4 channels, got %lld", (long long)channels);
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, x.rank - 3, x.dims);
  return OK;
}

status build_encode_jpeg(struct op_call *c) {
  value_id v;
  struct flow_node *n;
  int64_t quality = node_attr_int(c->node, "quality", 95);
  const struct attr_value *format = node_attr(c->node, "format"), *unit = node_attr(c->node, "density_unit");
  if (format && format->s.size && strcmp(format->s.data, "grayscale") != 0 && strcmp(format->s.data, "rgb") != 0)
    return fail(INVALID_ARGUMENT, "format must be '', grayscale or rgb, got %s", format->s.data);
  if (unit && strcmp(unit->s.data, "in") != 0 && strcmp(unit->s.data, "cm") != 0)
    return fail(INVALID_ARGUMENT, "density_unit must be 'in' or 'cm'%s", unit->s.data);
  if (quality < 0 || quality > 100)
    return fail(INVALID_ARGUMENT, "quality must be in [0,100], got %lld", (long long)quality);
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank != 3)
    return fail(INVALID_ARGUMENT, "image must be 3-dimensional%s", op_shape_text(c, x.rank, x.dims));
  if (c->in_count > 1)
    TRY(check_scalar(c, 1, "quality must be scalar: "));
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  return OK;
}

status build_jpeg_shape(struct op_call *c) {
  struct flow_node *n;
  dim three = op_dim(c, 3);
  TRY(check_scalar(c, 0, "contents must be scalar, got shape "));
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 1, &three);
  return OK;
}

status build_image_summary(struct op_call *c) {
  value_id v;
  struct flow_node *n;
  const struct attr_value *bad = attr_find(c->node->attrs, c->node->attr_count, "bad_color");
  TRY(check_scalar(c, 0, "Tags must be a scalar"));
  TRY(op_input(c, 1, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank != 4)
    return fail(INVALID_ARGUMENT, "Tensor must be 4-D with last dim 1, 3, or 4, not %s", op_shape_text(c, x.rank, x.dims));
  if (bad && bad->kind == ATTR_TENSOR && bad->tensor->dtype != DTYPE_UINT8)
    return fail(INVALID_ARGUMENT, "bad_color must be uint8, got %s", dtype_name(bad->tensor->dtype));
  if (bad && bad->kind == ATTR_TENSOR && bad->tensor->rank != 1)
    return fail(INVALID_ARGUMENT, "bad_color must be a vector");
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  return OK;
}

status build_decode_compressed(struct op_call *c) {
  const struct attr_value *type = node_attr(c->node, "compression_type");
  const char *text = type ? type->s.data : "";
  struct flow_node *n;
  if (strcmp(text, "ZSTD") == 0)
    return fail(UNIMPLEMENTED, "compression_type ZSTD");
  if (*text && strcmp(text, "ZLIB") != 0 && strcmp(text, "GZIP") != 0)
    return fail(INVALID_ARGUMENT, "Only ZLIB, ZSTD, GZIP or NONE are supported compressions");
  TRY(op_host(c, HOST_PURE, NULL, &n));
  struct flow_value x = *op_value(c, n->inputs.items[0]);
  op_host_output(c, n, 0, x.rank, x.dims);
  return OK;
}

/* [samples, channels] and the rate */
status build_decode_wav(struct op_call *c) {
  struct flow_node *n;
  int64_t samples = node_attr_int(c->node, "desired_samples", -1), channels = node_attr_int(c->node, "desired_channels", -1);
  TRY(check_scalar(c, 0, "contents must be scalar, got shape "));
  if (samples < -1 || channels < -1)
    return fail(INVALID_ARGUMENT, "desired_samples and desired_channels must be at least -1");
  TRY(op_host(c, HOST_PURE, NULL, &n));
  dim dims[2] = {samples < 0 ? op_new_symbol(c) : op_dim(c, samples), channels < 0 ? op_new_symbol(c) : op_dim(c, channels)};
  op_host_output(c, n, 0, 2, dims);
  op_host_output(c, n, 1, 0, NULL);
  return OK;
}
