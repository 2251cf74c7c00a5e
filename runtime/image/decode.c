/* decode.c: DecodeImage and its kin: each takes whatever format the bytes are in, as far as its result's shape allows. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host.h"
#include "runtime/image/image.h"

static enum image_format image_format_of(const uint8_t *data, size_t size) {
  static const struct {
    enum image_format format;
    const char *magic;
  } known[] = {{IMAGE_JPEG, "\xff\xd8\xff"}, {IMAGE_PNG, "\x89PNG\r\n\x1a\n"}, {IMAGE_GIF, "GIF8"}, {IMAGE_BMP, "BM"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (size >= strlen(known[i].magic) && memcmp(data, known[i].magic, strlen(known[i].magic)) == 0)
      return known[i].format;
  return size > 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0 ? IMAGE_WEBP : IMAGE_UNKNOWN;
}

status image_room(struct image *out) {
  int64_t samples = out->frames * out->height * out->width * out->channels;
  if (samples > LIMIT_ELEMENTS)
    return fail(INVALID_ARGUMENT, "an image of %lld samples", (long long)samples);
  out->pixels = calloc((size_t)samples + 1, out->is_wide ? 2 : 1);
  return out->pixels ? OK : fail(RESOURCE_EXHAUSTED, "no memory for an image of %lld samples", (long long)samples);
}

/* How the ops differ. */
struct decoder {
  uint32_t formats;  /* bits of those it reads */
  int channels;      /* 0: as its attribute says */
  bool crops;        /* to the window of input 1 */
  bool keeps_frames; /* of any file */
  bool expands;      /* keeps those of a GIF, unless its attribute says no */
};

/* Which op may read which format. */
static status check_format(const struct host_call *call, const struct decoder *how, enum image_format format) {
  static const char *const names[] = {"", "PNG", "JPEG", "GIF", "BMP", "WebP"};
  if (format == IMAGE_UNKNOWN)
    return fail(INVALID_ARGUMENT, "Unknown image file format. One of JPEG, PNG, GIF, BMP, WebP required.");
  if (format == IMAGE_WEBP)
    return fail(UNIMPLEMENTED, "an image in WebP format");
  if (how->formats >> format & 1)
    return OK;
  const char *op = program_text(call->program, call->instr->tf_op);
  return how->crops ? fail(INVALID_ARGUMENT, "%s operation can run on JPEG only, but detected %s.", op, names[format])
                    : fail(INVALID_ARGUMENT, "Trying to decode %s format using a wrong op: %s", names[format], op);
}

static status read_wish(const struct host_call *call, const struct decoder *how, enum dtype dtype, struct image_wish *out) {
  struct string_view method = host_attr_string(call, "dct_method", "");
  *out = (struct image_wish){
    .channels = how->channels ? how->channels : (int)host_attr_int(call, "channels", 0),
    .is_wide = dtype != DTYPE_UINT8,
    .first_frame_only = how->expands && !host_attr_int(call, "expand_animations", 1),
    .ratio = (int)host_attr_int(call, "ratio", 1),
    .fancy_upscaling = host_attr_int(call, "fancy_upscaling", 1) != 0,
    .recover = host_attr_int(call, "try_recover_truncated", 0) != 0,
    .slow_dct = method.size == 16 && memcmp(method.data, "INTEGER_ACCURATE", 16) == 0,
    .acceptable_fraction = (float)host_attr_float(call, "acceptable_fraction", 1),
    .crops = how->crops,
  };
  if (!out->crops)
    return OK;
  const struct tensor *window = &call->inputs[1];
  if (window->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "crop_window must be 1-D, got shape %s", shape_text(&window->shape));
  if (window->count != 4)
    return fail(INVALID_ARGUMENT, "crop_size must have four elements %s", shape_text(&window->shape));
  memcpy(out->crop, window->data, sizeof out->crop);
  return OK;
}

static status read_file(const struct host_call *call, const struct decoder *how, const struct image_wish *wish, struct image *out) {
  struct string_view file = host_scalar_string(&call->inputs[0]);
  const uint8_t *data = (const uint8_t *)file.data;
  if (file.size == 0)
    return fail(INVALID_ARGUMENT, "Input is empty.");
  if (file.size > INT32_MAX)
    return fail(INVALID_ARGUMENT, "Input contents are too large for int: %zu", (size_t)file.size);
  enum image_format format = image_format_of(data, file.size);
  TRY(check_format(call, how, format));
  if (format == IMAGE_JPEG && wish->channels == 4)
    return fail(INVALID_ARGUMENT, "JPEG does not support 4 channels");
  switch (format) {
  case IMAGE_PNG: return image_read_png(data, file.size, wish, out);
  case IMAGE_JPEG: return image_read_jpeg(data, file.size, wish, out);
  case IMAGE_GIF: return image_read_gif(data, file.size, wish, out);
  default: return image_read_bmp(data, file.size, wish, out);
  }
}

/* The frames are a dimension of their own where they are kept. */
static status image_shape(const struct host_call *call, const struct decoder *how, const struct image *image, bool is_gif,
                          struct shape *out) {
  bool keeps = how->keeps_frames || (is_gif && how->expands && host_attr_int(call, "expand_animations", 1));
  int64_t built = host_attr_int(call, "rank", 3);
  if (!keeps && image->frames > 1)
    return fail(INVALID_ARGUMENT, "Got %lld frames, but animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image",
                (long long)image->frames);
  *out = (struct shape){.rank = 0};
  if (keeps)
    out->dims[out->rank++] = image->frames;
  out->dims[out->rank++] = image->height;
  out->dims[out->rank++] = image->width;
  out->dims[out->rank++] = image->channels;
  return out->rank == built
         ? OK
         : fail(UNIMPLEMENTED, "an image of rank %d: which format it would have was not known while compiling, rank %lld was taken",
                out->rank, (long long)built);
}

/* Samples of 8 or 16 bits as those of the output's dtype: floats are parts of the largest. */
static void put_samples(const struct image *image, struct tensor *to) {
  const uint16_t *wide = (const void *)image->pixels;
  float scale = image->is_wide ? (float)(1. / UINT16_MAX) : (float)(1. / UINT8_MAX);
  size_t sample = dtype_size(to->dtype);
  if (sample == (image->is_wide ? 2u : 1u)) {
    memcpy(to->data, image->pixels, (size_t)to->count * sample);
    return;
  }
  for (int64_t i = 0; i < to->count; i++)
    if (to->dtype == DTYPE_FLOAT)
      ((float *)to->data)[i] = (float)(image->is_wide ? wide[i] : image->pixels[i]) * scale;
    else
      ((uint16_t *)to->data)[i] = (uint16_t)(image->pixels[i] << 8);
}

static status decode(struct host_call *call, const struct decoder *how) {
  enum dtype dtype = (enum dtype)host_attr_int(call, "dtype", DTYPE_UINT8);
  struct image_wish wish;
  struct image image = {0};
  struct shape shape;
  struct string_view file = host_scalar_string(&call->inputs[0]);
  TRY(read_wish(call, how, dtype, &wish));
  status result = read_file(call, how, &wish, &image);
  if (result == OK)
    result = image_shape(call, how, &image, image_format_of((const uint8_t *)file.data, file.size) == IMAGE_GIF, &shape);
  if (result == OK)
    result = host_make_output(call, 0, dtype, &shape);
  if (result == OK)
    put_samples(&image, call->outputs[0]);
  free(image.pixels);
  return result;
}

enum { PNG = 1 << IMAGE_PNG, JPEG = 1 << IMAGE_JPEG, GIF = 1 << IMAGE_GIF, BMP = 1 << IMAGE_BMP };

status host_decode_image(struct host_call *call) {
  return decode(call, &(struct decoder){.formats = PNG | JPEG | GIF | BMP, .expands = true});
}

status host_decode_picture(struct host_call *call) { return decode(call, &(struct decoder){.formats = PNG | JPEG | GIF}); }

status host_decode_gif(struct host_call *call) {
  return decode(call, &(struct decoder){.formats = PNG | JPEG | GIF, .keeps_frames = true, .channels = 3});
}

status host_decode_bmp(struct host_call *call) { return decode(call, &(struct decoder){.formats = BMP}); }

status host_decode_cropped(struct host_call *call) { return decode(call, &(struct decoder){.formats = JPEG, .crops = true}); }
