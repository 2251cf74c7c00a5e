/* image.h: pictures as files hold them, and as pixels. Linked only into executables that decode or encode (runtime/host/host.def).
 *
 * Pixels are rows from the top, channels side by side: grey, grey and alpha, red green blue, and alpha last.
 * Threads: every function is free of shared state.
 */
#ifndef TFC_RUNTIME_IMAGE_IMAGE_H
#define TFC_RUNTIME_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "base/wire.h"

/* A decoded file. The holder frees `pixels`. */
struct image {
  uint8_t *pixels; /* frames * height * width * channels samples, of one byte, or of two in the machine's order when is_wide */
  int64_t frames, height, width, channels;
  bool is_wide;
};
enum image_format { IMAGE_UNKNOWN, IMAGE_PNG, IMAGE_JPEG, IMAGE_GIF, IMAGE_BMP, IMAGE_WEBP };

/* What is wanted of a file. */
struct image_wish {
  int channels;          /* 0: as many as the file has */
  bool is_wide;          /* PNG: two bytes a sample */
  bool first_frame_only; /* GIF */
  /* JPEG */
  int ratio; /* 1, 2, 4, 8: of both sides */
  bool fancy_upscaling, recover, slow_dct;
  float acceptable_fraction; /* of the rows, at least, when the file ends early */
  bool crops;
  int32_t crop[4]; /* top, left, height, width */
};

/* INVALID_ARGUMENT for bytes that are no such image. */
status image_read_png(const uint8_t *data, size_t size, const struct image_wish *wish, struct image *out);
status image_read_jpeg(const uint8_t *data, size_t size, const struct image_wish *wish, struct image *out);
status image_read_gif(const uint8_t *data, size_t size, const struct image_wish *wish, struct image *out);
status image_read_bmp(const uint8_t *data, size_t size, const struct image_wish *wish, struct image *out);
/* INVALID_ARGUMENT when there is no room for so many pixels; else out->pixels are zeros. */
status image_room(struct image *out);

/* Appends a PNG of `bits` (8, 16) a sample and zlib's `level` (-1: its own choice); false when it cannot be. */
bool image_write_png(struct wire_buffer *out, const void *pixels, int64_t width, int64_t height, int64_t channels, int bits, int level);

#endif
