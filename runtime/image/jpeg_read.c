/* jpeg_read.c: a JPEG file as pixels: scaled, cropped, and as much of it as there is. */
#include <setjmp.h>
#include <stdio.h> /* before jpeglib.h, which needs it */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "runtime/host/host.h"
#include "runtime/image/image.h"
#include "runtime/text/element_number.h"

#define SAMPLES_MAX (INT64_C(1) << 29)
#define UNIT_BYTES_MAX (1 << 16) /* far more than an entropy coded unit may have */

/* A file in memory. Without `recover` a file that ends early suspends the decoder: it gives no more rows. */
struct source {
  struct jpeg_source_mgr manager; /* first */
  const uint8_t *data;
  size_t size;
  bool recover;
  const JOCTET *unit; /* where bytes are read once more, */
  size_t again;       /* how many so far */
};
struct reader {
  struct jpeg_decompress_struct decoder; /* first */
  struct jpeg_error_mgr errors;
  struct source source;
  jmp_buf escape;
  JSAMPLE *line; /* a row as the decoder gives it, where that is not a row of the result; the decoder's memory */
};

static void start_source(j_decompress_ptr d) {
  struct source *s = (struct source *)d->src;
  s->manager.next_input_byte = s->data;
  s->manager.bytes_in_buffer = s->size;
}

static const JOCTET end_marker[] = {0xff, JPEG_EOI};

/* The file ends within an entropy coded unit: what is missing are its first bytes once more. A decoder that does not get on by them
 * ends. */
static boolean repeat_unit(j_decompress_ptr d, struct source *s) {
  s->again = s->manager.next_input_byte == s->unit ? s->again + s->manager.bytes_in_buffer : 0;
  s->unit = s->manager.next_input_byte;
  if (s->again > UNIT_BYTES_MAX)
    ERREXIT(d, JERR_FILE_READ);
  return TRUE;
}

static boolean fill_source(j_decompress_ptr d) {
  struct source *s = (struct source *)d->src;
  if (s->manager.bytes_in_buffer) /* those from the unit's beginning */
    return s->recover ? repeat_unit(d, s) : FALSE;
  if (s->manager.next_input_byte == s->data)
    ERREXIT(d, JERR_INPUT_EMPTY);
  if (!s->recover || s->manager.next_input_byte == end_marker)
    ERREXIT(d, JERR_FILE_READ);
  WARNMS(d, JWRN_JPEG_EOF);
  s->manager.next_input_byte = end_marker;
  s->manager.bytes_in_buffer = sizeof end_marker;
  return TRUE;
}

static void skip_source(j_decompress_ptr d, long count) {
  struct jpeg_source_mgr *m = d->src;
  if (count <= 0)
    return;
  if ((size_t)count > m->bytes_in_buffer) {
    m->bytes_in_buffer = 0;
    fill_source(d);
    return;
  }
  m->bytes_in_buffer -= (size_t)count;
  m->next_input_byte += count;
}

static void end_source(j_decompress_ptr d) { (void)d; }
static void say_nothing(j_common_ptr common) { (void)common; }
static void on_error(j_common_ptr common) { longjmp(((struct reader *)common)->escape, 1); }

static void reader_start(struct reader *r, const uint8_t *data, size_t size, bool recover) {
  r->decoder.err = jpeg_std_error(&r->errors);
  r->errors.error_exit = on_error;
  r->errors.output_message = say_nothing;
  r->source = (struct source){
    .manager = {.init_source = start_source,
                .fill_input_buffer = fill_source,
                .skip_input_data = skip_source,
                .resync_to_restart = jpeg_resync_to_restart,
                .term_source = end_source},
    .data = data,
    .size = size,
    .recover = recover,
  };
}

/* ---- what comes out ---- */

static bool set_output(struct reader *r, const struct image_wish *wish, struct image *out) {
  struct jpeg_decompress_struct *d = &r->decoder;
  out->channels = wish->channels ? wish->channels : d->num_components < 3 ? d->num_components : 3;
  if (out->channels != 1 && out->channels != 3)
    return false;
  bool has_black = d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
  d->out_color_space = out->channels == 1 ? JCS_GRAYSCALE : has_black ? JCS_CMYK : JCS_RGB;
  d->do_fancy_upsampling = wish->fancy_upscaling;
  d->scale_num = 1;
  d->scale_denom = (unsigned)wish->ratio;
  d->dct_method = wish->slow_dct ? JDCT_ISLOW : JDCT_IFAST;
  jpeg_calc_output_dimensions(d);
  out->frames = 1;
  out->width = d->output_width;
  out->height = d->output_height;
  return out->width > 0 && out->height > 0 && out->width * out->height * d->num_components < SAMPLES_MAX;
}

/* Columns can only be left out in whole blocks: the decoder's row begins further to the left. */
static bool set_crop(struct reader *r, const struct image_wish *wish, struct image *out) {
  int64_t top = wish->crop[0], left = wish->crop[1], height = wish->crop[2], width = wish->crop[3];
  if (width <= 0 || height <= 0 || left < 0 || top < 0 || top + height > out->height || left + width > out->width)
    return false;
  JDIMENSION x = (JDIMENSION)left, w = (JDIMENSION)width;
  jpeg_crop_scanline(&r->decoder, &x, &w);
  jpeg_skip_scanlines(&r->decoder, (JDIMENSION)top);
  out->width = width;
  out->height = height;
  return true;
}

/* Ink to light; files by Adobe have it inverted. */
static void ink_to_light(const JSAMPLE *ink, bool is_inverted, int64_t width, uint8_t *to) {
  for (int64_t x = 0; x < width; x++, ink += 4, to += 3)
    for (int i = 0; i < 3; i++)
      to[i] = (uint8_t)(is_inverted ? ink[3] * ink[i] / 255 : (255 - ink[3]) * (255 - ink[i]) / 255);
}

static bool read_row(struct reader *r, const struct image *out, uint8_t *to) {
  struct jpeg_decompress_struct *d = &r->decoder;
  JSAMPROW row = r->line ? r->line : to;
  if (jpeg_read_scanlines(d, &row, 1) == 0)
    return false;
  const JSAMPLE *from = row + ((int64_t)d->output_width - out->width) * d->output_components;
  if (d->out_color_space == JCS_CMYK)
    ink_to_light(from, d->saw_Adobe_marker, out->width, to);
  else if (r->line)
    memcpy(to, from, (size_t)(out->width * out->channels));
  return true;
}

/* Returns the rows that are there; with `recover` the last one is repeated for those that are not. */
static int64_t read_rows(struct reader *r, const struct image_wish *wish, struct image *out) {
  size_t stride = (size_t)(out->width * out->channels);
  for (int64_t y = 0; y < out->height; y++) {
    uint8_t *to = out->pixels + (size_t)y * stride;
    if (read_row(r, out, to))
      continue;
    if (!wish->recover)
      return y;
    for (; y < out->height; y++, to += stride)
      if (y > 0)
        memcpy(to, to - stride, stride);
  }
  return out->height;
}

/* What is behind the rows must be good, too. */
static void finish(struct reader *r, const struct image_wish *wish) {
  struct jpeg_decompress_struct *d = &r->decoder;
  if (wish->crops && d->output_scanline < d->output_height)
    jpeg_skip_scanlines(d, d->output_height - d->output_scanline);
  d->output_scanline = d->output_height; /* also after rows that were repeated */
  jpeg_finish_decompress(d);
}

static status read_guarded(struct reader *r, const struct image_wish *wish, struct image *out) {
  struct jpeg_decompress_struct *d = &r->decoder;
  const char *const wrong = "jpeg::Uncompress failed. Invalid JPEG data or crop window.";
  if (setjmp(r->escape))
    return fail(INVALID_ARGUMENT, "%s", wrong);
  jpeg_create_decompress(d);
  d->src = &r->source.manager;
  if (jpeg_read_header(d, TRUE) != JPEG_HEADER_OK || !set_output(r, wish, out) || !jpeg_start_decompress(d) ||
      (wish->crops && !set_crop(r, wish, out)))
    return fail(INVALID_ARGUMENT, "%s", wrong);
  TRY(image_room(out));
  if (d->out_color_space == JCS_CMYK || d->output_width != out->width)
    r->line = d->mem->alloc_large((j_common_ptr)d, JPOOL_IMAGE, (size_t)d->output_width * (size_t)d->output_components);
  int64_t rows = read_rows(r, wish, out);
  if (rows == out->height)
    finish(r, wish);
  if ((float)rows / (float)out->height < (wish->acceptable_fraction < 1 ? wish->acceptable_fraction : 1))
    return fail(INVALID_ARGUMENT, "%s", wrong);
  return OK;
}

status image_read_jpeg(const uint8_t *data, size_t size, const struct image_wish *wish, struct image *out) {
  struct reader *reader = calloc(1, sizeof *reader);
  if (!reader)
    return fail(RESOURCE_EXHAUSTED, "no memory for a JPEG decoder");
  reader_start(reader, data, size, wish->recover);
  status result = read_guarded(reader, wish, out);
  jpeg_destroy_decompress(&reader->decoder);
  free(reader);
  return result;
}

/* ---- only its sides ---- */

static bool read_shape(struct reader *r, int64_t *shape) {
  if (setjmp(r->escape))
    return false;
  jpeg_create_decompress(&r->decoder);
  r->decoder.src = &r->source.manager;
  jpeg_read_header(&r->decoder, TRUE);
  jpeg_calc_output_dimensions(&r->decoder);
  shape[0] = r->decoder.output_height;
  shape[1] = r->decoder.output_width;
  shape[2] = r->decoder.output_components;
  return true;
}

status host_jpeg_shape(struct host_call *call) {
  struct string_view file = host_scalar_string(&call->inputs[0]);
  enum dtype dtype = (enum dtype)host_attr_int(call, "output_type", DTYPE_INT32);
  int64_t shape[3];
  struct reader *reader = calloc(1, sizeof *reader);
  if (!reader)
    return fail(RESOURCE_EXHAUSTED, "no memory for a JPEG decoder");
  reader_start(reader, (const uint8_t *)file.data, file.size, false);
  bool is_good = file.size && read_shape(reader, shape);
  jpeg_destroy_decompress(&reader->decoder);
  free(reader);
  if (!is_good)
    return fail(INVALID_ARGUMENT, "Invalid JPEG data, size %zu", (size_t)file.size);
  TRY(host_make_output(call, 0, dtype, &(struct shape){.rank = 1, .dims = {3}}));
  for (int i = 0; i < 3; i++)
    element_put_int(call->outputs[0], i, shape[i]);
  return OK;
}
