/* fourier.h: the discrete Fourier transform of one axis of a complex value, as nodes.
 *
 * A length without prime factors above 13 goes through Stockham's autosorting steps (Cochran et al., "What is the fast Fourier
 * transform?", 1967), each one kernel; a long one as the two axes of a table (Bailey, "FFTs in external or hierarchical memory", 1990),
 * so that each step has long runs of elements side by side. Another that is short is summed directly; a long one is a convolution with a
 * chirp (Bluestein, 1970) of a length that goes by steps; one that only the step knows is a call into the runtime. */
#ifndef TFC_IR_OPS_MATH_FOURIER_H
#define TFC_IR_OPS_MATH_FOURIER_H

#include "ir/lower/lower.h"

/* Replaces the value by its transform along `axis`: sum over j of x[j] e^(-2 pi i j k / n); `inverse`: e^(2 pi i j k / n), divided by n. */
status fourier_transform(struct op_call *c, int axis, bool inverse, value_id *value);

/* fourier_real.c. Real lines of 2 * half elements along the last axis become the first half + 1 elements of their transforms, which
 * imply the others; and such elements the real lines. half: known, above 0 */
status fourier_transform_real(struct op_call *c, int64_t half, value_id *value);
status fourier_transform_back_real(struct op_call *c, int64_t half, value_id *value);

#endif
