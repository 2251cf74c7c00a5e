/* kernel_loads.h: how a kernel loads a buffer: what fusing asks before it computes elements where they are loaded. */
#ifndef TFC_COMPILER_PASS_KERNEL_LOADS_H
#define TFC_COMPILER_PASS_KERNEL_LOADS_H

#include "ir/kernel/kernel.h"

struct kernel_loads {
  uint32_t count;
  /* Some element is loaded in more than one iteration of the loops around it: a broadcast, a sum's operand, a window, taps of a table. */
  bool repeated;
};
struct kernel_loads kernel_loads(const struct kernel *k, uint32_t buffer);

#endif
