/* cpu_parts.h: one object file out of several that were compiled at the same time. */
#ifndef TFC_TARGETS_CPU_CPU_PARTS_H
#define TFC_TARGETS_CPU_CPU_PARTS_H

#include <llvm-c/Core.h>
#include "base/status.h"

/* Writes the object itself when there is one, else an archive of them: to be linked whole (--whole-archive). */
status parts_write(const char *path, const LLVMMemoryBufferRef *objects, uint32_t count);

#endif
