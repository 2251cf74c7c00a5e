/* ops_fused_conv.c: convolutions of images that are resized and mirrored at their edges first: the three ops one after the other. */
#include "ir/lower.h"

status build_mirror_pad(struct op_call *c);
status build_resize_bilinear(struct op_call *c);
status build_conv2d(struct op_call *c);

/* Another op's builder with some of this call's inputs; it reads this node's attributes. */
static status part(struct op_call *c, op_builder build, uint32_t count, const struct bound *in, struct bound *out) {
  struct op_call p = *c;
  struct bound inputs[3];
  for (uint32_t i = 0; i < count; i++)
    inputs[i] = in[i];
  *out = (struct bound){0};
  p.in = inputs;
  p.in_count = count;
  p.out = out;
  p.out_count = 1;
  TRY(build(&p));
  struct bound *own_in = c->in, *own_out = c->out;
  uint32_t in_count = c->in_count, out_count = c->out_count;
  *c = p;
  c->in = own_in, c->out = own_out;
  c->in_count = in_count, c->out_count = out_count;
  return OK;
}

/* [input, (size,) paddings, filter] from input number `paddings` on, the image given. */
static status pad_and_convolve(struct op_call *c, struct bound image, uint32_t paddings) {
  struct bound padded, out, pad[2] = {image, c->in[paddings]};
  TRY(part(c, build_mirror_pad, 2, pad, &padded));
  struct bound conv[2] = {padded, c->in[paddings + 1]};
  TRY(part(c, build_conv2d, 2, conv, &out));
  c->out[0] = out;
  return OK;
}

status build_fused_pad_conv2d(struct op_call *c) { return pad_and_convolve(c, c->in[0], 1); }

status build_fused_resize_and_pad_conv2d(struct op_call *c) {
  struct bound resized;
  TRY(part(c, build_resize_bilinear, 2, c->in, &resized));
  return pad_and_convolve(c, resized, 2);
}
