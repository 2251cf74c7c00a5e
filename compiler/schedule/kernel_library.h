/* kernel_library.h: kernels compiled for a CPU and loaded into this process.
 *
 * They are compiled to an object in a folder under TMPDIR (/tmp), linked as a library, loaded; no file is left. */
#ifndef TFC_COMPILER_SCHEDULE_KERNEL_LIBRARY_H
#define TFC_COMPILER_SCHEDULE_KERNEL_LIBRARY_H

#include "ir/kernel/kernel.h"
#include "runtime/program/program.h"

struct kernel_library {
  void *handle;                   /* of dlopen; NULL: nothing is loaded */
  const struct kernel_code *code; /* of each kernel, in their order; until kernel_library_close */
};

/* Kernels have distinct names; `cpu` as --cpu has it. RESOURCE_EXHAUSTED: no folder can be made; INTERNAL, FAILED_PRECONDITION,
 * UNIMPLEMENTED: as compiling and linking say. `out` is then empty. */
status kernel_library_open(struct kernel *const *kernels, uint32_t count, const char *cpu, struct kernel_library *out);
/* Accepts an empty one. */
void kernel_library_close(struct kernel_library *library);

#endif
