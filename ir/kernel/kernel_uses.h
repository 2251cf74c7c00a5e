/* kernel_uses.h: what each expression of a kernel is made of: which locals it uses, which buffers it loads from, how large an index is,
 * how it moves with a loop.
 *
 * Expressions are a DAG whose walks may visit a node exponentially often; so these sets are worked out once, in the order
 * of the ids, and asked for everywhere else. They tell of the expressions that were there when kernel_uses_find was called.
 *
 * Owner: the arena given to kernel_uses_find. Reading is safe for many threads. */
#ifndef TFC_IR_KERNEL_KERNEL_USES_H
#define TFC_IR_KERNEL_KERNEL_USES_H

#include "ir/kernel/kernel.h"

struct kernel_uses {
  const struct kernel *k;
  uint64_t *sets; /* by expression: a set of `words` words */
  uint32_t words;
  int64_t *bounds; /* by expression: the largest value of an i64 that is never negative, INT64_MAX: not known; -1: it may be negative */
};

void kernel_uses_find(const struct kernel *k, struct arena *arena, struct kernel_uses *out);
bool uses_local(const struct kernel_uses *u, expr_id e, uint32_t local);
bool uses_buffer(const struct kernel_uses *u, expr_id e, uint32_t buffer); /* loads from it */
bool uses_loads(const struct kernel_uses *u, expr_id e);                   /* from any buffer */
bool uses_vars(const struct kernel_uses *u, expr_id e);                    /* locals that are no loop's variable */
bool uses_only_sizes(const struct kernel_uses *u, expr_id e);              /* constants and sizes alone */

/* The coefficient of a local in an index expression: false when it is not affine with a constant one. */
bool index_coefficient(const struct kernel_uses *u, expr_id e, uint32_t local, int64_t *out);
/* Elements between what neighbouring iterations of a loop reach at buffer[index]: false when it is no constant. */
bool index_stride(const struct kernel_uses *u, uint32_t buffer, const expr_id *index, uint32_t local, int64_t *out);

#endif
