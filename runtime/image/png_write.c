/* png_write.c: pixels as a PNG file. */
#include <png.h>
#include <stdlib.h>
#include <zlib.h>

#include "runtime/image/image.h"

static void write_bytes(png_structp png, png_bytep data, size_t size) { wire_put_raw(png_get_io_ptr(png), data, size); }
static void write_nothing(png_structp png) { (void)png; }
static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }
static void on_error(png_structp png, png_const_charp text) {
  (void)text;
  png_longjmp(png, 1);
}

static void write_rows(png_structp png, const uint8_t *pixels, int64_t height, size_t row) {
  for (int64_t y = 0; y < height; y++)
    png_write_row(png, pixels + (size_t)y * row);
  png_write_end(png, NULL);
}

bool image_write_png(struct wire_buffer *out, const void *pixels, int64_t width, int64_t height, int64_t channels, int bits, int level) {
  static const int colors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  if (width < 1 || height < 1 || channels < 1 || channels > 4 || width > INT32_MAX || height > INT32_MAX)
    return false;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  if (!info || setjmp(png_jmpbuf(png))) {
    png_destroy_write_struct(png ? &png : NULL, info ? &info : NULL);
    return false;
  }
  png_set_write_fn(png, out, write_bytes, write_nothing);
  png_set_compression_level(png, level < 0 ? Z_DEFAULT_COMPRESSION : level);
  png_set_compression_mem_level(png, MAX_MEM_LEVEL);
  png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, bits, colors[channels - 1], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (bits == 16)
    png_set_swap(png); /* the file has the high byte first */
  write_rows(png, pixels, height, (size_t)(width * channels * (bits / 8)));
  png_destroy_write_struct(&png, &info);
  return !out->is_bad;
}
