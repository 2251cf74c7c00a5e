/* element_sum.h: sums of elements of any numeric dtype, for what adds tensors outside of kernels. */
#ifndef TFC_RUNTIME_VALUE_ELEMENT_SUM_H
#define TFC_RUNTIME_VALUE_ELEMENT_SUM_H

#include <stdbool.h>
#include "base/dtype.h"

bool element_sum_has(enum dtype dtype);
/* to[i] += from[i]; half and bfloat16 are added as floats and rounded. */
void element_add(enum dtype dtype, void *to, const void *from, int64_t count);
enum element_merge { MERGE_ADD, MERGE_MUL, MERGE_MIN, MERGE_MAX };
/* to[i] = to[i] merged with from[i]; complex numbers can only be added. */
bool element_merge_has(enum dtype dtype, enum element_merge merge);
void element_merge(enum dtype dtype, enum element_merge merge, void *to, const void *from, int64_t count);
/* to[i] /= divisor; integers truncate. */
void element_divide(enum dtype dtype, void *to, int64_t count, int64_t divisor);

#endif
