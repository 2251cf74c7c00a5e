/* kernel_verify.h: the part of kernel_verify that looks at marks. */
#ifndef TFC_IR_KERNEL_KERNEL_VERIFY_H
#define TFC_IR_KERNEL_KERNEL_VERIFY_H

#include "ir/kernel/kernel.h"

/* INTERNAL where a mark does not hold. The kernel keeps all other rules. */
status kernel_verify_marks(const struct kernel *k);

#endif
