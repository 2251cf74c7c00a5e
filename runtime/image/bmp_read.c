/* bmp_read.c: a BMP file as pixels: uncompressed, of 8, 24 or 32 bits. */
#include <stdlib.h>
#include <string.h>

#include "runtime/image/image.h"

#define HEADER_SIZE 32 /* up to the bits of a pixel */

static int32_t number_at(const uint8_t *data, size_t at) {
  int32_t number;
  memcpy(&number, data + at, 4);
  return number;
}

/* Blue comes first in the file; what is grey is given to all colors. */
static void convert_pixel(const uint8_t *from, int64_t in, uint8_t *to, int64_t out) {
  for (int64_t i = 0; i < out && i < 3; i++)
    to[i] = in == 1 ? from[0] : from[2 - i];
  if (out == 4)
    to[3] = in == 4 ? from[3] : UINT8_MAX;
}

static status check_header(size_t size, int64_t header, int64_t height, const struct image *out, int64_t in) {
  if (in != 1 && in != 3 && in != 4)
    return fail(INVALID_ARGUMENT, "Number of channels inherent in the image must be 1, 3 or 4, was %lld", (long long)in);
  if (out->width <= 0)
    return fail(INVALID_ARGUMENT, "Width must be positive");
  if (height == 0)
    return fail(INVALID_ARGUMENT, "Height must be nonzero");
  if (header < 0)
    return fail(INVALID_ARGUMENT, "header size must be nonnegative");
  if (out->width * out->height >= INT32_MAX / 8)
    return fail(INVALID_ARGUMENT, "Total possible pixel bytes must be less than 2^30");
  int64_t row = (in * out->width + 3) / 4 * 4, differ = (int64_t)size - header - row * out->height;
  return differ == 0 ? OK
                     : fail(INVALID_ARGUMENT, "Input size should match (header_size + row_size * abs_height) but they differ by %lld",
                            (long long)differ);
}

status image_read_bmp(const uint8_t *data, size_t size, const struct image_wish *wish, struct image *out) {
  if (wish->channels == 1)
    return fail(INVALID_ARGUMENT, "`channels` must be 0, 3 or 4 for BMP, but got 1");
  if (size < HEADER_SIZE)
    return fail(INVALID_ARGUMENT,
                "Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, and bpp, got %zu bytes", size);
  int64_t header = number_at(data, 10), height = number_at(data, 22), in = (int16_t)(data[28] | data[29] << 8) / 8;
  out->frames = 1;
  out->width = number_at(data, 18);
  out->height = llabs(height);
  out->channels = wish->channels ? wish->channels : in;
  TRY(check_header(size, header, height, out, in));
  TRY(image_room(out));
  int64_t row = (in * out->width + 3) / 4 * 4; /* rows end at multiples of 4 */
  for (int64_t y = 0; y < out->height; y++) {
    const uint8_t *from = data + header + (height < 0 ? y : out->height - 1 - y) * row; /* from the bottom, but for negative heights */
    for (int64_t x = 0; x < out->width; x++)
      convert_pixel(from + x * in, in, out->pixels + (y * out->width + x) * out->channels, out->channels);
  }
  return OK;
}
