/* feed_file.h: arrays for --feed: floats below 1 that are always the same, or labels 0 to 2. */
#ifndef TFC_TESTS_SUPPORT_FEED_FILE_H
#define TFC_TESTS_SUPPORT_FEED_FILE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/npy.h"
#include "tests/support/test.h"

/* FOLDER/NAME.npy; DTYPE_FLOAT or DTYPE_INT32. */
static inline void feed_write(const char *in, const char *name, enum dtype dtype, struct shape shape) {
  struct tensor *tensor;
  char path[160];
  unsigned seed = 1;
  assert_int_equal(tensor_create(dtype, &shape, &tensor), OK);
  for (int64_t i = 0; i < tensor->count; i++)
    if (dtype == DTYPE_FLOAT)
      ((float *)tensor->data)[i] = (float)(rand_r(&seed) % 1000) / 1000;
    else
      ((int32_t *)tensor->data)[i] = (int32_t)(i % 3);
  snprintf(path, sizeof path, "%s/%s.npy", in, name);
  assert_int_equal(npy_write(path, tensor), OK);
  tensor_release(tensor);
}

#endif
