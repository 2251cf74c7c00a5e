/* gif_read.c: a GIF file as frames of red, green and blue, each drawn over the one before. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/image/image.h"

#define CODES 4096
#define PIXELS_MAX (INT64_C(1) << 29)

struct frame {
  int left, top, width, height;
  int transparent;       /* index; -1: none */
  const uint8_t *colors; /* in the file; NULL: none */
  int color_count;
  uint8_t *indices;
};
struct gif {
  const uint8_t *at, *end;
  const uint8_t *colors; /* of all frames without colors of their own */
  int color_count;
  VEC(struct frame) frames;
};

static void gif_free(struct gif *gif) {
  for (uint32_t i = 0; i < gif->frames.count; i++)
    free(gif->frames.items[i].indices);
  vec_free(&gif->frames);
}

/* ---- the parts of the file ---- */

static const uint8_t *take(struct gif *gif, size_t size) {
  const uint8_t *at = gif->at;
  if ((size_t)(gif->end - at) < size)
    return NULL;
  gif->at += size;
  return at;
}

static bool take_colors(struct gif *gif, uint8_t flags, const uint8_t **colors, int *count) {
  if (!(flags & 0x80))
    return true;
  *count = 2 << (flags & 7);
  *colors = take(gif, (size_t)*count * 3);
  return *colors != NULL;
}

/* The next block of an extension or of an image: *size is 0 at their end. */
static const uint8_t *take_block(struct gif *gif, size_t *size) {
  const uint8_t *length = take(gif, 1);
  *size = length ? *length : 0;
  return length ? take(gif, *size) : NULL;
}

/* Only what is transparent in the next frame matters; the first such block counts. */
static bool take_extension(struct gif *gif, int *transparent, bool *is_set) {
  const uint8_t *kind = take(gif, 1), *block;
  size_t size = 0;
  if (!kind)
    return false;
  for (bool first = true; (block = take_block(gif, &size)) && size; first = false) {
    if (*kind != 0xf9 || !first || *is_set || size != 4)
      continue;
    *is_set = true;
    *transparent = block[0] & 1 ? block[3] : -1;
  }
  return block != NULL;
}

/* ---- the coded indices (LZW) ---- */

struct codes {
  struct gif *gif;
  const uint8_t *block;
  size_t left; /* of the block */
  uint32_t bits, bit_count;
  uint16_t before[CODES]; /* a code is the string of another, */
  uint8_t last[CODES];    /* and one index more */
};

static int next_code(struct codes *c, int width) {
  while (c->bit_count < (uint32_t)width) {
    while (c->left == 0) {
      c->block = take_block(c->gif, &c->left);
      if (!c->block || c->left == 0)
        return -1;
    }
    c->bits |= (uint32_t)*c->block++ << c->bit_count;
    c->left--;
    c->bit_count += 8;
  }
  int code = (int)(c->bits & ((1u << width) - 1));
  c->bits >>= width;
  c->bit_count -= (uint32_t)width;
  return code;
}

/* The string of a code, as far as there is room. Returns its first index; *at goes on. */
static uint8_t write_string(const struct codes *c, int code, int clear, uint8_t *to, int64_t *at, int64_t room) {
  uint8_t string[CODES];
  int size = 0;
  for (; code >= clear + 2; code = c->before[code])
    string[size++] = c->last[code];
  string[size++] = (uint8_t)code;
  for (int i = size; i-- > 0 && *at < room;)
    to[(*at)++] = string[i];
  return string[size - 1];
}

static bool decode_indices(struct codes *c, int smallest, uint8_t *to, int64_t room) {
  int clear = 1 << smallest, next = clear + 2, width = smallest + 1, previous = -1;
  uint8_t first = 0;
  for (int64_t at = 0; at < room;) {
    int code = next_code(c, width);
    if (code < 0 || code == clear + 1)
      return false; /* ends early */
    if (code == clear) {
      next = clear + 2;
      width = smallest + 1;
      previous = -1;
      continue;
    }
    if (code > next || (code == next && previous < 0) || (code >= next && next == CODES) || (previous < 0 && code > clear))
      return false;
    if (code == next) { /* not known yet: the string before, and its first index again */
      c->before[next] = (uint16_t)previous;
      c->last[next] = first;
    }
    first = write_string(c, code, clear, to, &at, room);
    if (previous >= 0 && next < CODES) {
      c->before[next] = (uint16_t)previous;
      c->last[next++] = first;
      width += next == 1 << width && width < 12;
    }
    previous = code;
  }
  return true;
}

/* Rows come every 8th, every 8th from 4, every 4th from 2, every 2nd from 1. */
static bool reorder_rows(struct frame *f) {
  static const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
  uint8_t *ordered = malloc((size_t)f->width * (size_t)f->height);
  const uint8_t *from = f->indices;
  if (!ordered)
    return false;
  for (int pass = 0; pass < 4; pass++)
    for (int y = starts[pass]; y < f->height; y += steps[pass], from += f->width)
      memcpy(ordered + (size_t)y * (size_t)f->width, from, (size_t)f->width);
  free(f->indices);
  f->indices = ordered;
  return true;
}

/* False when the file is damaged: only whole frames count. */
static bool take_frame(struct gif *gif, int transparent) {
  const uint8_t *head = take(gif, 9), *smallest;
  if (!head)
    return false;
  struct frame f = {.left = head[0] | head[1] << 8,
                    .top = head[2] | head[3] << 8,
                    .width = head[4] | head[5] << 8,
                    .height = head[6] | head[7] << 8,
                    .transparent = transparent,
                    .colors = gif->colors,
                    .color_count = gif->color_count};
  bool good = take_colors(gif, head[8], &f.colors, &f.color_count) && (smallest = take(gif, 1)) && *smallest >= 1 && *smallest <= 8;
  int64_t room = (int64_t)f.width * f.height;
  f.indices = good && room > 0 && room < PIXELS_MAX ? calloc((size_t)room, 1) : NULL;
  struct codes *codes = f.indices ? calloc(1, sizeof *codes) : NULL;
  good = codes != NULL;
  if (good) {
    codes->gif = gif;
    good = decode_indices(codes, *smallest, f.indices, room);
    for (size_t size = 1; good && size;)
      good = take_block(gif, &size) != NULL;
    good = good && (!(head[8] & 0x40) || reorder_rows(&f));
  }
  free(codes);
  if (good)
    vec_push(&gif->frames, f);
  else
    free(f.indices);
  return good;
}

static void take_all(struct gif *gif) {
  const uint8_t *screen = take(gif, 13), *kind;
  int transparent = -1;
  bool is_set = false;
  if (!screen || !take_colors(gif, screen[10], &gif->colors, &gif->color_count))
    return;
  while ((kind = take(gif, 1)) && *kind != 0x3b) {
    if (*kind == 0x21 ? !take_extension(gif, &transparent, &is_set) : *kind != 0x2c || !take_frame(gif, transparent))
      return;
    if (*kind == 0x2c) {
      transparent = -1;
      is_set = false;
    }
  }
}

/* ---- drawing ---- */

static status draw(const struct frame *f, bool is_first, const struct image *out, uint8_t *to) {
  if (!f->colors)
    return fail(INVALID_ARGUMENT, "Invalid GIF data, missing color map for frame");
  for (int64_t y = f->top; y < f->top + f->height && y < out->height; y++)
    for (int64_t x = f->left; x < f->left + f->width && x < out->width; x++) {
      int index = f->indices[(y - f->top) * f->width + x - f->left];
      uint8_t *pixel = to + (y * out->width + x) * 3;
      if (index == f->transparent) {
        if (is_first)
          memset(pixel, 0, 3);
        continue;
      }
      if (index >= f->color_count)
        return fail(INVALID_ARGUMENT, "Invalid GIF data, found color index %d outside of color map range %d", index, f->color_count);
      memcpy(pixel, f->colors + index * 3, 3);
    }
  return OK;
}

static status draw_all(const struct gif *gif, const struct image_wish *wish, struct image *out) {
  out->channels = 3;
  out->frames = wish->first_frame_only ? 1 : gif->frames.count;
  for (uint32_t i = 0; i < gif->frames.count; i++) {
    const struct frame *f = &gif->frames.items[i];
    out->width = f->width > out->width ? f->width : out->width;
    out->height = f->height > out->height ? f->height : out->height;
  }
  TRY(image_room(out));
  size_t size = (size_t)(out->width * out->height * 3);
  for (int64_t i = 0; i < out->frames; i++) {
    uint8_t *to = out->pixels + (size_t)i * size;
    if (i > 0)
      memcpy(to, to - size, size);
    TRY(draw(&gif->frames.items[i], i == 0, out, to));
  }
  return OK;
}

status image_read_gif(const uint8_t *data, size_t size, const struct image_wish *wish, struct image *out) {
  if (wish->channels != 0 && wish->channels != 3)
    return fail(INVALID_ARGUMENT, "channels must be 0 or 3 for GIF, got %d", wish->channels);
  struct gif gif = {.at = data, .end = data + size};
  take_all(&gif); /* a file that ends early is good for the frames it has */
  status result = gif.frames.count ? draw_all(&gif, wish, out) : fail(INVALID_ARGUMENT, "Invalid GIF data (size %zu)", size);
  gif_free(&gif);
  return result;
}
