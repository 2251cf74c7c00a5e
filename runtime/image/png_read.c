/* png_read.c: a PNG file as pixels of as many channels as are wanted. */
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/image/image.h"

#define SIDE_MAX (1 << 27)
#define PIXELS_MAX (INT64_C(1) << 29)

struct bytes {
  const uint8_t *at;
  size_t left;
};

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }
static void on_error(png_structp png, png_const_charp text) {
  (void)text;
  png_longjmp(png, 1);
}

static void read_bytes(png_structp png, png_bytep to, size_t size) {
  struct bytes *bytes = png_get_io_ptr(png);
  if (bytes->left < size)
    png_error(png, "the file ends early");
  memcpy(to, bytes->at, size);
  bytes->at += size;
  bytes->left -= size;
}

/* From what the file has to what is wanted. */
static void convert(png_structp png, png_infop info, int channels, bool is_wide) {
  int color = png_get_color_type(png, info), bits = png_get_bit_depth(png, info);
  bool has_alpha = color & PNG_COLOR_MASK_ALPHA, has_transparent = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  bool is_grey = !(color & PNG_COLOR_MASK_COLOR);
  if (channels % 2 == 1 && (has_alpha || has_transparent))
    png_set_strip_alpha(png);
  if (channels % 2 == 0 && !has_alpha && has_transparent)
    png_set_tRNS_to_alpha(png);
  if (channels % 2 == 0 && !has_alpha && !has_transparent)
    png_set_add_alpha(png, (1u << bits) - 1, PNG_FILLER_AFTER);
  if (bits > 8 && !is_wide)
    png_set_strip_16(png);
  png_set_packing(png);
  if (is_wide)
    png_set_swap(png);
  if (color == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(png);
  if (is_grey && bits < 8)
    png_set_expand_gray_1_2_4_to_8(png);
  if (channels < 3 && !is_grey)
    png_set_rgb_to_gray(png, 1, 0.299, 0.587);
  if (channels >= 3 && is_grey)
    png_set_gray_to_rgb(png);
}

static int channels_of(png_structp png, png_infop info) {
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE)
    return png_get_valid(png, info, PNG_INFO_tRNS) ? 4 : 3;
  return png_get_channels(png, info);
}

/* Bytes become two: 0xab is 0xabab. Backwards, in place. */
static void widen(uint8_t *row, int64_t samples) {
  for (int64_t i = samples; i-- > 0;)
    row[2 * i] = row[2 * i + 1] = row[i];
}

static status read_header(png_structp png, png_infop info, const struct image_wish *wish, struct image *out) {
  png_read_info(png, info);
  out->width = png_get_image_width(png, info);
  out->height = png_get_image_height(png, info);
  out->frames = 1;
  out->is_wide = wish->is_wide;
  out->channels = wish->channels ? wish->channels : channels_of(png, info);
  if (out->width < 1 || out->height < 1 || out->width >= SIDE_MAX || out->height >= SIDE_MAX || out->width * out->height >= PIXELS_MAX)
    return fail(INVALID_ARGUMENT, "PNG size too large for int: %lld by %lld", (long long)out->width, (long long)out->height);
  return OK;
}

static void read_pixels(png_structp png, png_infop info, bool is_narrow, struct image *out) {
  size_t row = (size_t)(out->width * out->channels * (out->is_wide ? 2 : 1));
  int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) > row)
    png_error(png, "rows of another size");
  for (int pass = 0; pass < passes; pass++)
    for (int64_t y = 0; y < out->height; y++)
      png_read_row(png, out->pixels + (size_t)y * row, NULL);
  png_read_end(png, info);
  for (int64_t y = 0; y < out->height && is_narrow; y++)
    widen(out->pixels + (size_t)y * row, out->width * out->channels);
}

/* The jumps of a damaged file end here; *in_pixels: how far it came. */
static status read_guarded(png_structp png, png_infop info, const struct image_wish *wish, volatile bool *in_pixels, struct image *out) {
  if (setjmp(png_jmpbuf(png)))
    return fail(INVALID_ARGUMENT, *in_pixels ? "Invalid PNG data" : "Invalid PNG. Failed to initialize decoder.");
  TRY(read_header(png, info, wish, out));
  TRY(image_room(out));
  bool is_narrow = wish->is_wide && png_get_bit_depth(png, info) <= 8;
  convert(png, info, (int)out->channels, wish->is_wide);
  *in_pixels = true;
  read_pixels(png, info, is_narrow, out);
  return OK;
}

status image_read_png(const uint8_t *data, size_t size, const struct image_wish *wish, struct image *out) {
  struct bytes bytes = {data, size};
  volatile bool in_pixels = false;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  status result = info ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a PNG decoder");
  if (result == OK) {
    png_set_read_fn(png, &bytes, read_bytes);
    result = read_guarded(png, info, wish, &in_pixels, out);
  }
  png_destroy_read_struct(png ? &png : NULL, info ? &info : NULL, NULL);
  return result;
}
