/* ops_fused_conv.c: convolutions of images that are resized and mirrored at their edges first: the three ops one after the other. */
#include "ir/ops/part.h"

status build_mirror_pad(struct op_call *c);
status build_resize_bilinear(struct op_call *c);
status build_conv2d(struct op_call *c);

/* [input, (size,) paddings, filter] from input number `paddings` on, the image given. */
static status pad_and_convolve(struct op_call *c, struct bound image, uint32_t paddings) {
  struct bound padded, out, pad[2] = {image, c->in[paddings]};
  TRY(op_part(c, build_mirror_pad, 2, pad, &padded));
  struct bound conv[2] = {padded, c->in[paddings + 1]};
  TRY(op_part(c, build_conv2d, 2, conv, &out));
  c->out[0] = out;
  return OK;
}

status build_fused_pad_conv2d(struct op_call *c) { return pad_and_convolve(c, c->in[0], 1); }

status build_fused_resize_and_pad_conv2d(struct op_call *c) {
  struct bound resized;
  TRY(op_part(c, build_resize_bilinear, 2, c->in, &resized));
  return pad_and_convolve(c, resized, 2);
}
