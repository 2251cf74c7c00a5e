/* element_number.h: elements of numeric tensors read and written one at a time, for host functions. */
#ifndef TFC_RUNTIME_ELEMENT_NUMBER_H
#define TFC_RUNTIME_ELEMENT_NUMBER_H

#include "base/tensor.h"

/* Element i of a tensor of integers (or bools); 0 for other dtypes. */
int64_t element_int(const struct tensor *tensor, int64_t i);
/* Stores an integer in a tensor of any integer or real dtype; wraps where it does not fit. */
void element_put_int(struct tensor *tensor, int64_t i, int64_t value);

#endif
