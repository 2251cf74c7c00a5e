/* window.h: the geometry of windows that slide over axes: convolutions, pools, patches, morphology. One struct for 2-D and
 * 3-D, channels last or first; sizes may be symbolic. */
#ifndef TFC_IR_OPS_WINDOW_H
#define TFC_IR_OPS_WINDOW_H

#include "ir/lower/lower.h"

enum padding { PADDING_VALID, PADDING_SAME, PADDING_EXPLICIT };

/* One axis: output o covers the inputs o * stride - pad + k * dilation for k in [0, size). */
struct window_axis {
  dim in, out, size, stride, pad;
  int64_t dilation;
  int64_t explicit_before, explicit_after;
};

#define WINDOW_SPATIAL 3
struct layout {
  int rank, spatial; /* rank = spatial + 2 */
  bool channels_first;
};

/* From data_format and the rank; UNIMPLEMENTED for formats of other shapes. */
status layout_read(struct op_call *c, int rank, struct layout *out);
static inline int layout_channel(const struct layout *l) { return l->channels_first ? 1 : l->rank - 1; }
static inline int layout_axis(const struct layout *l, int spatial) { return (l->channels_first ? 2 : 1) + spatial; }

/* Sizes, strides, dilations and paddings above this are refused: sums and products of them fit 64 bits. */
#define WINDOW_MAX (INT64_C(1) << 30)
status window_explicit(const struct window_axis *axis); /* INVALID_ARGUMENT for paddings out of bounds */

status window_padding(struct op_call *c, enum padding *out);
/* An attribute with one number for each axis of the data; NULL where the op has none (all 1 then). */
status window_list(struct op_call *c, const char *attr, int rank, int64_t *out);
/* Computes out and pad of an axis from in, size, stride, dilation. */
status window_solve(struct op_call *c, enum padding padding, struct window_axis *axis);

/* The input position of output o, window element k; it may be outside. */
expr_id window_position(struct kb *kb, const struct window_axis *axis, expr_id o, expr_id k);
/* Whether a position is inside [0, count); constant true when the window can never leave it. */
expr_id window_within(struct kb *kb, expr_id at, dim count);
bool window_stays_inside(struct op_call *c, const struct window_axis *axis);
/* The inverse: the output whose element k lies on input i, and whether there is one. */
expr_id window_source(struct kb *kb, const struct window_axis *axis, expr_id i, expr_id k, expr_id *exists);

/* A convolution by the node's strides and padding, of values that are no inputs, in their dtype (ops_conv.c). */
status op_conv2d(struct op_call *c, value_id input, value_id filter, value_id *out);

#endif
