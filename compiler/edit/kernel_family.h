/* kernel_family.h: kernels that differ in numbers alone, as one kernel that is told them.
 *
 * Only of kernels for which no number decides how their code is written: nests of par loops with no loop inside; of sums that are no
 * products places alone may differ. Numbers that may differ are sizes from KERNEL_SIZE_MIN on, places in an index, and constants of a
 * value; what indices are multiplied or divided by, shifts, exponents and divisors stay what they are, as code for a known one is
 * better. */
#ifndef TFC_COMPILER_KERNEL_FAMILY_H
#define TFC_COMPILER_KERNEL_FAMILY_H

#include "ir/kernel/kernel.h"

#define KERNEL_SIZE_MIN 64 /* of a row that is some vectors long the code is as good when its length is told */

/* A kernel's text, with `#` in the place of each number that may differ, and these numbers. */
struct kernel_numbers {
  const char *name;
  const char *text; /* behind the name; equal for kernels of one family */
  uint32_t count;
  int64_t *values;        /* a float's bits */
  const char **spellings; /* as the text had them */
};

struct kernel_family {
  struct kernel *general; /* the kernel, told numbers behind its own sizes; NULL: they would be too many */
  uint32_t *told;         /* which of the numbers */
  uint32_t told_count;
};

/* false: the kernel's code hangs on its numbers. The results are the arena's. */
bool kernel_numbers_read(struct arena *arena, const struct kernel *kernel, struct kernel_numbers *out);
/* One for all members, which have the same text: it is told what differs, once where two numbers are equal in all of them. `sizes`: how
 * many the kernels have already. INTERNAL when its text does not parse. */
status kernel_family_make(struct arena *arena, const struct kernel_numbers *members, uint32_t count, uint32_t sizes,
                          struct kernel_family *out);

#endif
