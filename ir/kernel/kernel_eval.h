/* kernel_eval.h: one interpreter of kernels, over numbers and over symbolic sizes alike.
 *
 * With memory behind every buffer it is the reference evaluator (kernel_eval in kernel.h). With cells behind buffers it
 * follows integers that are dims: so all shape arithmetic of a graph, whatever ops it is made of, is done while compiling
 * by the same kernels that would do it at run time. */
#ifndef TFC_IR_KERNEL_KERNEL_EVAL_H
#define TFC_IR_KERNEL_KERNEL_EVAL_H

#include "ir/size/dim.h"
#include "ir/kernel/kernel.h"

enum cell_kind { CELL_UNKNOWN, CELL_BITS, CELL_DIM, CELL_STRING };
struct cell {
  enum cell_kind kind;
  dim d;
  int64_t bits;
  struct string_view text;
};

struct eval_buffer {
  void *memory;       /* elements, or */
  struct cell *cells; /* one for each element (complex: two) */
};

struct eval_input {
  struct dim_table *dims; /* NULL: numbers only */
  const struct eval_buffer *buffers;
  const struct cell *sizes; /* size_count cells */
  int64_t step_limit;       /* statements; 0: none */
};

/* OK, or what a check reported, or ABORTED when a condition, an extent or an index is not known (or the limit was reached). */
status kernel_eval_cells(const struct kernel *k, const struct eval_input *input);

#endif
