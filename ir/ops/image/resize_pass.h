/* resize_pass.h: one axis of an image takes another size: each position is a weighted sum of a few of the old ones. Which ones, and how
 * much of each, is worked out once for all rows or columns. An image whose both axes change takes two passes, so that what is summed
 * along a row serves all rows that are made of it. */
#ifndef TFC_IR_OPS_IMAGE_RESIZE_PASS_H
#define TFC_IR_OPS_IMAGE_RESIZE_PASS_H

#include "ir/lower/lower.h"

struct axis_taps {
  value_id at, weight; /* int32 and float32 [positions, count] */
  dim count;
  bool is_between; /* two taps a and b: a + (b - a) * weight */
  bool skips;      /* a tap without weight is not read: it may be NaN */
};

/* image [batch, height, width, channels] of any real dtype; axis 1 or 2. factor: a scalar for each sum, NO_VALUE: none. Sums are float32,
 * in the order of the taps; *out has the dtype. */
status resize_pass(struct op_call *c, value_id image, int axis, const struct axis_taps *taps, value_id factor, enum dtype dtype,
                   value_id *out);
/* Its gradient: each position of grads shares out what it has to the pixels that it was made of, `size` of them along the axis. Several add
 * to one, the first position first; *out has the dtype, and so does each of its sums. */
status resize_pass_back(struct op_call *c, value_id grads, int axis, const struct axis_taps *taps, dim size, enum dtype dtype,
                        value_id *out);

#endif
