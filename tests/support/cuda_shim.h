/* cuda_shim.h: what CUDA C needs to be compiled as C for the CPU: one block of one thread. */
#ifndef TFC_TESTS_CUDA_SHIM_H
#define TFC_TESTS_CUDA_SHIM_H

#include <math.h>
#include <stdbool.h>

#define __global__
#define __device__ inline
#define __restrict__ restrict

static const struct { unsigned x; } blockIdx = {0}, threadIdx = {0}, blockDim = {1}, gridDim = {1};

static inline int atomicCAS(int *at, int expected, int value) {
  int old = *at;
  if (old == expected)
    *at = value;
  return old;
}

#endif
