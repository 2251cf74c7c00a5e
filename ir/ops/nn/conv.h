/* conv.h: what the files of convolutions share: their geometry, and operands with the zeros of padding around them, so that sums test for
 * no border. Private to ir/ops. */
#ifndef TFC_IR_OPS_NN_CONV_H
#define TFC_IR_OPS_NN_CONV_H

#include "ir/ops/window.h"

#define CONV_NARROW 16 /* channels, of which more fill vectors by themselves */

struct conv {
  struct layout layout;
  struct window_axis axes[WINDOW_SPATIAL];
  dim batch, in_channels, out_channels; /* of a depthwise one: out = in * multiplier */
  dim group_in, group_out;              /* channels of one group: filter's input channels, output channels for them */
  dim multiplier;                       /* depthwise only */
  bool depthwise, grouped;
  bool is_whole; /* the input holds whatever windows reach: conv_pad_input */
  /* of axes, instead: a sum has the taps inside alone */
  bool cut[WINDOW_SPATIAL];
  bool is_tested; /* the terms stand under a test for what is inside: of the last axis, of a filter's gradient of all */
  /* the filter is that of another convolution: its taps last first, its channels, but of a depthwise one, the other way round */
  bool is_turned;
  bool is_spread; /* conv_spread.c */
  enum dtype dtype, sum;
};

/* ops_conv.c */
void conv_data_dims(const struct conv *v, bool output, dim *dims);
void conv_data_index(const struct conv *v, expr_id batch, const expr_id *spatial, expr_id channel, expr_id *index);

/* Sets the node's output. */
status conv_forward(struct op_call *c, struct conv *v, value_id input, value_id filter);

/* conv_pad.c */
/* A value with zeros around it: element i of an axis becomes element i + before of `to`. */
status conv_pad(struct op_call *c, value_id v, const dim *before, const dim *to, value_id *out);
/* The input with its padding written out, as far as windows reach, where that pays: the axes are those of the new value then. Axes that
 * are cut stay as they are. */
status conv_pad_input(struct op_call *c, struct conv *v, value_id *input);
/* Whether neighbouring columns of a window are one run of columns x channels in memory. */
bool conv_columns_merge(struct op_call *c, const struct conv *v);
/* The last spatial axis of a shape with its channels, which follow it, as one: axis i of `rank` and the next. */
value_id conv_merge_axes(struct op_call *c, value_id v, int axis);

/* conv_inside.c */
/* Chooses the axes along which sums run over the taps inside: those on which enough of a convolution's taps are outside. */
void conv_cut_axes(struct op_call *c, struct conv *v);
/* Whether a convolution reads its input where it lies: rows are cut then, columns are tested. Schedules decide the tests, so that it is for
 * sizes that are known. */
bool conv_is_direct(struct op_call *c, struct conv *v);
/* The loop over the taps of axis i that output o has, and its variable: the tap. */
expr_id conv_cut_loop(struct kb *kb, const struct conv *v, int i, expr_id o);
/* Whether a filter's gradient reads its input where it lies; the axes on which some tap leaves it are cut then: the sum of a tap has the
 * outputs alone for which it is inside. */
bool conv_cut_outputs(struct op_call *c, struct conv *v);
/* Whether a depthwise filter's gradient reads its input where it lies, its terms under a test of rows and columns: schedules keep the
 * sums of all taps, which meet different outputs, while one input passes. */
bool conv_test_taps(struct op_call *c, struct conv *v);
/* The loop over the outputs of axis i for a tap, and its variable: the output. */
expr_id conv_output_loop(struct kb *kb, const struct conv *v, int i, expr_id tap);

/* ops_conv_input.c */
status conv_backprop_input(struct op_call *c, const struct conv *v, value_id filter, value_id gradient);

/* conv_columns.c: the input's gradient by a product, of which each element takes its share. For taps and strides that are known. */
bool conv_is_open(struct op_call *c, const struct conv *v); /* sizes of the input are not known */
bool conv_has_columns(struct op_call *c, const struct conv *v);
status conv_input_by_columns(struct op_call *c, const struct conv *v, value_id filter, value_id gradient);

/* conv_spread.c: depthwise convolutions of several results for each channel, as those of one over more channels. */
bool conv_spreads(struct op_call *c, const struct conv *v);
/* *v and its filter's dims become those of more channels, of which each has one result. */
void conv_spread(struct op_call *c, struct conv *v, dim *filter);
/* Each channel as often as it has results. `v` is the convolution as it was. */
status conv_spread_input(struct op_call *c, const struct conv *v, value_id *input);
/* The sums over the results of each channel: the gradient of what was spread. */
status conv_gather_input(struct op_call *c, const struct conv *v, value_id *gradient);

/* conv_depthwise.c: depthwise convolutions of few channels, with lanes along columns x channels. */
bool conv_is_narrow(struct op_call *c, const struct conv *v);
/* `input` with its padding; turned: the first tap meets the last place of its window. */
status conv_narrow_forward(struct op_call *c, const struct conv *v, value_id input, value_id filter, bool turned, value_id *out);
status conv_narrow_filter(struct op_call *c, const struct conv *v, value_id input, value_id gradient, value_id *out);

#endif
