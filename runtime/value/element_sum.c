/* element_sum.c: one loop for each C type; 16-bit floats go through float. */
#include "runtime/value/element_sum.h"

#define NUMERIC(X)    \
  X(FLOAT, float)     \
  X(DOUBLE, double)   \
  X(INT32, int32_t)   \
  X(INT64, int64_t)   \
  X(UINT8, uint8_t)   \
  X(INT8, int8_t)     \
  X(INT16, int16_t)   \
  X(UINT16, uint16_t) \
  X(UINT32, uint32_t) \
  X(UINT64, uint64_t)

bool element_sum_has(enum dtype dtype) {
  switch ((int)dtype) {
#define X(name, type) case DTYPE_##name:
    NUMERIC(X)
#undef X
  case DTYPE_HALF:
  case DTYPE_BFLOAT16:
  case DTYPE_COMPLEX64:
  case DTYPE_COMPLEX128: return true;
  default: return false;
  }
}

static float read_float(enum dtype dtype, uint16_t bits) { return dtype == DTYPE_HALF ? half_to_float(bits) : bfloat16_to_float(bits); }
static uint16_t write_float(enum dtype dtype, float value) { return dtype == DTYPE_HALF ? float_to_half(value) : float_to_bfloat16(value); }

void element_add(enum dtype dtype, void *to, const void *from, int64_t count) {
  switch ((int)dtype) {
#define X(name, type)                                                      \
  case DTYPE_##name:                                                       \
    for (int64_t i = 0; i < count; i++)                                    \
      ((type *)to)[i] = (type)(((type *)to)[i] + ((const type *)from)[i]); \
    return;
    NUMERIC(X)
#undef X
  case DTYPE_COMPLEX64: element_add(DTYPE_FLOAT, to, from, count * 2); return;
  case DTYPE_COMPLEX128: element_add(DTYPE_DOUBLE, to, from, count * 2); return;
  case DTYPE_HALF:
  case DTYPE_BFLOAT16:
    for (int64_t i = 0; i < count; i++)
      ((uint16_t *)to)[i] = write_float(dtype, read_float(dtype, ((uint16_t *)to)[i]) + read_float(dtype, ((const uint16_t *)from)[i]));
    return;
  default: return;
  }
}

void element_divide(enum dtype dtype, void *to, int64_t count, int64_t divisor) {
  switch ((int)dtype) {
#define X(name, type)                                                                     \
  case DTYPE_##name:                                                                      \
    for (int64_t i = 0; i < count; i++)                                                   \
      ((type *)to)[i] = (type)(((type *)to)[i] / (__typeof__((type)0 + divisor))divisor); \
    return;
    NUMERIC(X)
#undef X
  case DTYPE_COMPLEX64: element_divide(DTYPE_FLOAT, to, count * 2, divisor); return;
  case DTYPE_COMPLEX128: element_divide(DTYPE_DOUBLE, to, count * 2, divisor); return;
  case DTYPE_HALF:
  case DTYPE_BFLOAT16:
    for (int64_t i = 0; i < count; i++)
      ((uint16_t *)to)[i] = write_float(dtype, read_float(dtype, ((uint16_t *)to)[i]) / (float)divisor);
    return;
  default: return;
  }
}

bool element_merge_has(enum dtype dtype, enum element_merge merge) {
  return element_sum_has(dtype) && (merge == MERGE_ADD || !dtype_is_complex(dtype));
}

#define MERGED(x, y) (merge == MERGE_MUL ? (x) * (y) : merge == MERGE_MIN ? ((y) < (x) ? (y) : (x)) : ((x) < (y) ? (y) : (x)))

void element_merge(enum dtype dtype, enum element_merge merge, void *to, const void *from, int64_t count) {
  if (merge == MERGE_ADD) {
    element_add(dtype, to, from, count);
    return;
  }
  switch ((int)dtype) {
#define X(name, type)                                        \
  case DTYPE_##name:                                         \
    for (int64_t i = 0; i < count; i++) {                    \
      type x = ((type *)to)[i], y = ((const type *)from)[i]; \
      ((type *)to)[i] = (type)MERGED(x, y);                  \
    }                                                        \
    return;
    NUMERIC(X)
#undef X
  case DTYPE_HALF:
  case DTYPE_BFLOAT16:
    for (int64_t i = 0; i < count; i++) {
      float x = read_float(dtype, ((uint16_t *)to)[i]), y = read_float(dtype, ((const uint16_t *)from)[i]);
      ((uint16_t *)to)[i] = write_float(dtype, MERGED(x, y));
    }
    return;
  default: return;
  }
}
