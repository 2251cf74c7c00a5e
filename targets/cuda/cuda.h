/* cuda.h: kernels as CUDA C, and CUDA C as PTX.
 *
 * The text is CUDA C++ as well as C: tests compile it for the CPU with the few names of tests/support/cuda_shim.h. Each phase
 * of a kernel (a par loop at the top, else everything at once) is one __global__ function, NAME_0, NAME_1 ...: its parameters
 * are the buffers in order, the sizes as long long, and a struct tfc_fault *. Scratch buffers are memory of the caller's. */
#ifndef TFC_TARGETS_CUDA_CUDA_H
#define TFC_TARGETS_CUDA_CUDA_H

#include <stdio.h>
#include "base/arena.h"
#include "ir/kernel/kernel.h"
#include "targets/target.h"

/* The device functions that kernels use: one for each operation and dtype (scalars.def gives their meaning). */
void cuda_print_prelude(FILE *out);
/* UNIMPLEMENTED for kernels over strings. */
status cuda_print_kernel(const struct kernel *k, FILE *out);
/* PTX of CUDA C for "sm_90" (NULL: the oldest that the library knows). FAILED_PRECONDITION without libnvrtc. */
status nvrtc_compile(const char *source, const char *gpu, struct arena *arena, char **out);

#endif
