/* tensor_summary.h: tensors as TensorFlow shows them in messages: Print and Assert, and PrintV2 and StringFormat. */
#ifndef TFC_RUNTIME_VALUE_TENSOR_SUMMARY_H
#define TFC_RUNTIME_VALUE_TENSOR_SUMMARY_H

#include <stdio.h>
#include "base/tensor.h"

/* "1 2 3...", "[1 2][3 4]": at most `most` elements (below 0: all). */
void tensor_summary(FILE *out, const struct tensor *tensor, int64_t most);
/* "[[1 2 3]\n [4 5 6]]": `most` elements of each end of each dimension (below 0: all). */
void tensor_summary_nested(FILE *out, const struct tensor *tensor, int64_t most);

#endif
