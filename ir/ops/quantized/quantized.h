/* quantized.h: numbers quantised to the steps of a range: an integer q of `bits` bits stands for a float between a minimum (the lowest
 * integer) and a maximum (the highest). In kernels the quantised dtypes are the plain integers of their size; values are aliased on the
 * way in and out. TensorFlow converts in two ways, by doubles (exact) and by floats (of whole tensors): both are here. */
#ifndef TFC_IR_OPS_QUANTIZED_QUANTIZED_H
#define TFC_IR_OPS_QUANTIZED_QUANTIZED_H

#include "ir/ops/element_words.h"

enum dtype quantized_plain(enum dtype dtype); /* qint8 -> int8 ...; other dtypes are themselves */
double quantized_lowest(enum dtype dtype);    /* of a plain integer dtype */
double quantized_highest(enum dtype dtype);
/* The value as plain integers; as dtype. */
value_id quantized_in(struct op_call *c, value_id v);
void quantized_out(struct op_call *c, uint32_t output, value_id plain);

/* Input i, a single float of any rank that the kernel demands (strict: rank 0), as a scalar. */
status quantized_scalar(struct op_call *c, uint32_t i, bool strict, value_id *out);

struct quantized_range {
  struct element min, max; /* floats */
};
struct quantized_range quantized_range(struct kb *kb, value_id min, value_id max);
/* Ends a kernel that makes a range: two scalars. (Beside the loops over a tensor it would keep them from being parallel.) */
status quantized_range_finish(struct kb *kb, struct element min, struct element max, value_id range[2]);
/* The same; they are the call's outputs 1 and 2. */
status quantized_range_out(struct kb *kb, struct element min, struct element max, value_id range[2]);

/* By doubles. The first is not clamped: an i64 beyond the dtype for floats beyond the range. */
expr_id quantized_of_float(struct kb *kb, enum dtype plain, struct element x, struct quantized_range r);
expr_id quantized_of_float_clamped(struct kb *kb, enum dtype plain, struct element x, struct quantized_range r);
struct element quantized_to_float(struct kb *kb, enum dtype plain, expr_id q, struct quantized_range r);

/* By floats: an element of a buffer of `plain` to float; a float to an element of `plain`. */
struct element quantized_load(struct kb *kb, enum dtype plain, struct element q, struct quantized_range r);
struct element quantized_round(struct kb *kb, enum dtype plain, struct element x, struct quantized_range r);

#endif
