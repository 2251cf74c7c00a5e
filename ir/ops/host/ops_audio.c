/* ops_audio.c: sounds as spectra: the shapes of what the runtime computes (host_spectrogram.c). */
#include "ir/ops/arrange.h"
#include "ir/lower/host_call.h"

/* [samples, channels] becomes [channels, windows, half of the next power of two and one] */
status build_audio_spectrogram(struct op_call *c) {
  value_id v;
  struct flow_node *n;
  int64_t window = node_attr_int(c->node, "window_size", 0), stride = node_attr_int(c->node, "stride", 0), bins = 1;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank != 2)
    return fail(INVALID_ARGUMENT, "input must be 2-dimensional: %s", op_shape_text(c, x.rank, x.dims));
  if (window < 2 || window > 1 << 24)
    return fail(INVALID_ARGUMENT, "window size of %lld", (long long)window);
  if (stride < 1)
    return fail(INVALID_ARGUMENT, "stride of %lld", (long long)stride);
  while (bins < window)
    bins *= 2;
  struct dim_table *t = op_dims(c);
  dim windows = dim_floordiv(t, dim_add(t, x.dims[0], op_dim(c, stride - window)), op_dim(c, stride));
  dim dims[3] = {x.dims[1], dim_max(t, windows, op_dim(c, 0)), op_dim(c, bins / 2 + 1)};
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 3, dims);
  return OK;
}

/* [channels, windows, bins] becomes [channels, windows, coefficients] */
status build_mfcc(struct op_call *c) {
  value_id v, rate;
  struct flow_node *n;
  int64_t coefficients = node_attr_int(c->node, "dct_coefficient_count", 13),
          bands = node_attr_int(c->node, "filterbank_channel_count", 40);
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &rate));
  struct flow_value x = *op_value(c, v);
  if (x.rank != 3)
    return fail(INVALID_ARGUMENT, "spectrogram must be 3-dimensional: %s", op_shape_text(c, x.rank, x.dims));
  if (op_value(c, rate)->rank != 0)
    return fail(INVALID_ARGUMENT, "Input sample_rate should be a scalar tensor, got %s instead.",
                op_shape_text(c, op_value(c, rate)->rank, op_value(c, rate)->dims));
  if (bands < 1 || coefficients < 1 || coefficients > bands || bands > 1 << 20)
    return fail(INVALID_ARGUMENT, "%lld coefficients of %lld bands", (long long)coefficients, (long long)bands);
  dim dims[3] = {x.dims[0], x.dims[1], op_dim(c, coefficients)};
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 3, dims);
  return OK;
}
