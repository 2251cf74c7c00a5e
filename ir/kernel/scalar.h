/* scalar.h: the meaning of each scalar operation (scalars.def) on values, for constant folding and the evaluator. */
#ifndef TFC_IR_KERNEL_SCALAR_H
#define TFC_IR_KERNEL_SCALAR_H

#include "ir/kernel/kernel.h"

/* Cuts a value to the width of an integer dtype and extends it again; bool: != 0. */
int64_t scalar_wrap(enum dtype dtype, int64_t value);
/* An operation over integers and bools, giving an integer or bool of `dtype`; `in` is the operands' dtype (of select the
 * branches'). */
int64_t scalar_eval_integer(enum scalar_op op, enum dtype dtype, enum dtype in, const int64_t *v);
/* Any operation on bits as in struct expr; operands have the dtypes `in`. Not for strings. */
int64_t scalar_eval(enum scalar_op op, enum dtype dtype, const uint8_t *in, const int64_t *v);

#endif
