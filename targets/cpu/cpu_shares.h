/* cpu_shares.h: which module each kernel is compiled in. */
#ifndef TFC_TARGETS_CPU_SHARES_H
#define TFC_TARGETS_CPU_SHARES_H

#include "ir/kernel/kernel.h"

/* out[i]: the module, below `modules`, of kernel i. Longest code first, to the module that has least: by the kernels alone, so that every
 * machine makes the same bytes. */
void kernel_shares(struct kernel *const *kernels, uint32_t count, uint32_t modules, uint32_t *out);

#endif
