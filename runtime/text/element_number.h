/* element_number.h: elements of numeric tensors read and written one at a time, for host functions; part of their callers' loops. */
#ifndef TFC_RUNTIME_TEXT_ELEMENT_NUMBER_H
#define TFC_RUNTIME_TEXT_ELEMENT_NUMBER_H

#include "base/tensor.h"

/* Element i of integers (or bools); 0 for other dtypes. */
static inline int64_t element_int_at(enum dtype dtype, const void *data, int64_t i) {
  switch (dtype) {
  case DTYPE_INT8: return ((const int8_t *)data)[i];
  case DTYPE_UINT8:
  case DTYPE_BOOL: return ((const uint8_t *)data)[i];
  case DTYPE_INT16: return ((const int16_t *)data)[i];
  case DTYPE_UINT16: return ((const uint16_t *)data)[i];
  case DTYPE_INT32: return ((const int32_t *)data)[i];
  case DTYPE_UINT32: return ((const uint32_t *)data)[i];
  case DTYPE_INT64:
  case DTYPE_UINT64: return ((const int64_t *)data)[i];
  default: return 0;
  }
}

static inline int64_t element_int(const struct tensor *tensor, int64_t i) { return element_int_at(tensor->dtype, tensor->data, i); }

/* Stores an integer in a tensor of any integer or real dtype; wraps where it does not fit. */
static inline void element_put_int(struct tensor *tensor, int64_t i, int64_t value) {
  switch (tensor->dtype) {
  case DTYPE_INT8:
  case DTYPE_UINT8: ((uint8_t *)tensor->data)[i] = (uint8_t)value; return;
  case DTYPE_INT16:
  case DTYPE_UINT16: ((uint16_t *)tensor->data)[i] = (uint16_t)value; return;
  case DTYPE_INT32:
  case DTYPE_UINT32: ((uint32_t *)tensor->data)[i] = (uint32_t)value; return;
  case DTYPE_INT64:
  case DTYPE_UINT64: ((int64_t *)tensor->data)[i] = value; return;
  case DTYPE_FLOAT: ((float *)tensor->data)[i] = (float)value; return;
  case DTYPE_DOUBLE: ((double *)tensor->data)[i] = (double)value; return;
  case DTYPE_HALF: ((uint16_t *)tensor->data)[i] = float_to_half((float)value); return;
  case DTYPE_BFLOAT16: ((uint16_t *)tensor->data)[i] = float_to_bfloat16((float)value); return;
  default: return;
  }
}

#endif
