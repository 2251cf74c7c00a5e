/* kernel_form.h: what a kernel is but for its sizes. */
#ifndef TFC_COMPILER_KERNEL_FORM_H
#define TFC_COMPILER_KERNEL_FORM_H

#include "ir/kernel/kernel.h"

struct kernel_form {
  struct kernel *general; /* the kernel, told its sizes behind its own; NULL: there is nothing to tell */
  int64_t *told;          /* what to tell it */
  uint32_t told_count;
};

/* Extents of loops and dims of buffers become sizes; a number that indices are multiplied or divided by stays what it is, as it
 * decides how memory is read. The results are the arena's. */
void kernel_form(struct arena *arena, const struct kernel *kernel, struct kernel_form *out);
/* kernel_hash of the form: equal for kernels that differ in sizes alone. */
uint64_t kernel_form_hash(const struct kernel *kernel);

#endif
