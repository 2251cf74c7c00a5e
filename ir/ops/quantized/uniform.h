/* uniform.h: what the ops of uniformly quantised numbers share: an integer q stands for (q - zero point) * scale, with one scale and zero
 * point for a whole tensor or one for each index of an axis. Private to ir/ops. */
#ifndef TFC_IR_OPS_QUANTIZED_UNIFORM_H
#define TFC_IR_OPS_QUANTIZED_UNIFORM_H

#include "ir/ops/quantized/quantized.h"

struct uniform_scale {
  value_id scales, zeros; /* scalars, or vectors */
  int axis;               /* that they belong to; -1: they are scalars */
};
/* Inputs `first` (scales) and first + 1 (zero points) of a tensor with these dims. The step checks that all scales are positive. */
status uniform_scale_read(struct op_call *c, uint32_t first, int axis, int rank, const dim *dims, struct uniform_scale *out);
/* Where its scales and zero points are for this index of the axis: nowhere for scalars. */
static inline const expr_id *uniform_place(const struct uniform_scale *s, const expr_id *axis) { return s->axis < 0 ? NULL : axis; }

/* A quotient of scales in whole numbers: x times it is (x * factor) >> shift, rounded. Scalars; vectors where any of the scales is one. */
struct uniform_ratio {
  value_id factor, shift; /* i64 */
  bool is_vector;
};
/* a * b / to; `b` may be NULL. Those that are vectors are of one size. The step checks that it is positive and finite. */
status uniform_ratio_of(struct op_call *c, const struct uniform_scale *a, const struct uniform_scale *b, const struct uniform_scale *to,
                        struct uniform_ratio *out);
/* x (an i32) times the ratio, as an i32; at: the place in its vectors. factor, shift: its buffers. */
struct element uniform_rescaled(struct kb *kb, struct element x, uint32_t factor, uint32_t shift, const expr_id *at);
/* An i32 kept in the output's quantization_min_val .. quantization_max_val. */
struct element uniform_clamped(struct kb *kb, struct element x);

/* An integer of 8 or 32 bits as an i32. Those of 32 bits come through a float: in TensorFlow they turn into nothing else by themselves. */
struct element uniform_integer(struct kb *kb, struct element q);
/* q - zero point as i32 values of the same dims. */
status uniform_centred(struct op_call *c, value_id q, const struct uniform_scale *s, value_id *out);
/* Sums of products of centred numbers, of which axis `axis` is the channels: rescaled, with the output's zero point, as output 0. */
status uniform_sums_out(struct op_call *c, value_id sums, int axis, const struct uniform_scale *a, const struct uniform_scale *b,
                        const struct uniform_scale *to);

/* Floats quantised to 8 bits by the range that each index of `axis` (a batch) has; `scale` are those that were found. */
status uniform_of_floats(struct op_call *c, value_id x, int axis, value_id *centred, struct uniform_scale *scale);
/* Their sums of products as floats: output 0. batch, channel: the axes of the sums that the two scales belong to. */
status uniform_float_sums_out(struct op_call *c, value_id sums, const struct uniform_scale *a, int batch, const struct uniform_scale *b,
                              int channel);

#endif
