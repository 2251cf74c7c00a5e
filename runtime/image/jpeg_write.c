/* jpeg_write.c: EncodeJpeg, EncodeJpegVariableQuality. */
#include <setjmp.h>
#include <stdio.h> /* before jpeglib.h, which needs it */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/wire.h"
#include "runtime/host/host.h"
#include "runtime/text/string_output.h"

#define SAMPLES_MAX (INT64_C(1) << 29)
#define CHUNK 65536

struct writer {
  struct jpeg_compress_struct encoder; /* first */
  struct jpeg_error_mgr errors;
  struct jpeg_destination_mgr target;
  jmp_buf escape;
  struct wire_buffer out;
  JOCTET chunk[CHUNK];
};
struct settings {
  int quality;
  bool progressive, optimize, keeps_chroma;
  uint8_t density_unit; /* 1: per inch, 2: per cm */
  uint16_t x_density, y_density;
  struct string_view xmp;
};

static void start_target(j_compress_ptr e) {
  struct writer *w = (struct writer *)e;
  w->target.next_output_byte = w->chunk;
  w->target.free_in_buffer = CHUNK;
}

static boolean flush_target(j_compress_ptr e) {
  wire_put_raw(&((struct writer *)e)->out, ((struct writer *)e)->chunk, CHUNK);
  start_target(e);
  return TRUE;
}

static void end_target(j_compress_ptr e) {
  struct writer *w = (struct writer *)e;
  wire_put_raw(&w->out, w->chunk, CHUNK - w->target.free_in_buffer);
}

static void say_nothing(j_common_ptr common) { (void)common; }
static void on_error(j_common_ptr common) { longjmp(((struct writer *)common)->escape, 1); }

static void write_xmp(struct writer *w, struct string_view xmp) {
  static const char space[] = "http://ns.adobe.com/xap/1.0/"; /* with its zero byte */
  jpeg_write_m_header(&w->encoder, JPEG_APP0 + 1, (unsigned)(sizeof space + xmp.size));
  for (size_t i = 0; i < sizeof space; i++)
    jpeg_write_m_byte(&w->encoder, space[i]);
  for (size_t i = 0; i < xmp.size; i++)
    jpeg_write_m_byte(&w->encoder, (unsigned char)xmp.data[i]);
}

static void configure(struct writer *w, const struct settings *s) {
  struct jpeg_compress_struct *e = &w->encoder;
  jpeg_set_defaults(e);
  if (s->optimize)
    e->optimize_coding = TRUE;
  e->density_unit = s->density_unit;
  e->X_density = s->x_density;
  e->Y_density = s->y_density;
  jpeg_set_quality(e, s->quality, TRUE);
  if (s->progressive)
    jpeg_simple_progression(e);
  for (int i = 0; i < e->num_components && s->keeps_chroma; i++)
    e->comp_info[i].h_samp_factor = e->comp_info[i].v_samp_factor = 1;
}

static bool write_guarded(struct writer *w, const struct settings *s, const struct tensor *image) {
  struct jpeg_compress_struct *e = &w->encoder;
  if (setjmp(w->escape))
    return false;
  jpeg_create_compress(e);
  e->dest = &w->target;
  e->image_height = (JDIMENSION)image->shape.dims[0];
  e->image_width = (JDIMENSION)image->shape.dims[1];
  e->input_components = (int)image->shape.dims[2];
  e->in_color_space = e->input_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  configure(w, s);
  jpeg_start_compress(e, TRUE);
  if (s->xmp.size)
    write_xmp(w, s->xmp);
  size_t row = (size_t)(image->shape.dims[1] * image->shape.dims[2]);
  while (e->next_scanline < e->image_height) {
    JSAMPROW line = (JSAMPLE *)image->data + e->next_scanline * row;
    jpeg_write_scanlines(e, &line, 1);
  }
  jpeg_finish_compress(e);
  return !w->out.is_bad;
}

static status write_image(struct host_call *call, const struct settings *settings) {
  const struct tensor *image = &call->inputs[0];
  struct writer *w = calloc(1, sizeof *w);
  if (!w)
    return fail(RESOURCE_EXHAUSTED, "no memory for a JPEG encoder");
  w->encoder.err = jpeg_std_error(&w->errors);
  w->errors.error_exit = on_error;
  w->errors.output_message = say_nothing;
  w->target =
    (struct jpeg_destination_mgr){.init_destination = start_target, .empty_output_buffer = flush_target, .term_destination = end_target};
  bool fits = image->count > 0 && image->shape.dims[0] * image->shape.dims[1] < SAMPLES_MAX;
  status result = fits && write_guarded(w, settings, image) ? OK : fail(INTERNAL, "JPEG encoding failed");
  jpeg_destroy_compress(&w->encoder);
  if (result == OK)
    result =
      tensor_copy_in(DTYPE_STRING, &(struct shape){0}, &(struct string_view){(const char *)w->out.data, w->out.size}, &call->outputs[0]);
  wire_buffer_free(&w->out);
  free(w);
  return result;
}

static status check_image(const struct tensor *image, int64_t channels) {
  if (image->shape.rank != 3)
    return fail(INVALID_ARGUMENT, "image must be 3-dimensional%s", shape_text(&image->shape));
  if (image->count >= INT32_MAX)
    return fail(INVALID_ARGUMENT, "Cannot encode images with >= max int32 elements");
  if (channels && image->shape.dims[2] != channels)
    return fail(INVALID_ARGUMENT, "format expects %lld channels, got %s", (long long)channels, shape_text(&image->shape));
  return image->shape.dims[2] == 1 || image->shape.dims[2] == 3
         ? OK
         : fail(INVALID_ARGUMENT, "image must have 1 or 3 channels, got %s", shape_text(&image->shape));
}

status host_encode_jpeg(struct host_call *call) {
  struct string_view format = host_attr_string(call, "format", "");
  struct settings settings = {
    .quality = (int)host_attr_int(call, "quality", 95),
    .progressive = host_attr_int(call, "progressive", 0) != 0,
    .optimize = host_attr_int(call, "optimize_size", 0) != 0,
    .keeps_chroma = !host_attr_int(call, "chroma_downsampling", 1),
    .density_unit = string_is(host_attr_string(call, "density_unit", "in"), "cm") ? 2 : 1,
    .x_density = (uint16_t)host_attr_int(call, "x_density", 300),
    .y_density = (uint16_t)host_attr_int(call, "y_density", 300),
    .xmp = host_attr_string(call, "xmp_metadata", ""),
  };
  TRY(check_image(&call->inputs[0], string_is(format, "grayscale") ? 1 : string_is(format, "rgb") ? 3 : 0));
  return write_image(call, &settings);
}

status host_encode_jpeg_quality(struct host_call *call) {
  TRY(check_image(&call->inputs[0], 0));
  if (call->inputs[1].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "quality must be scalar: %s", shape_text(&call->inputs[1].shape));
  int64_t quality = host_scalar_int(&call->inputs[1]);
  if (quality < 0 || quality > 100)
    return fail(INVALID_ARGUMENT, "quality must be in [0,100], got %lld", (long long)quality);
  return write_image(call, &(struct settings){.quality = (int)quality, .density_unit = 1, .x_density = 300, .y_density = 300});
}
