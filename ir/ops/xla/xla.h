/* xla.h: what the builders of XLA's ops share. Their axes are named by a message in the attribute `dimension_numbers`,
 * and what they do to single elements by functions of scalars. Private to ir/ops. */
#ifndef TFC_IR_OPS_XLA_XLA_H
#define TFC_IR_OPS_XLA_XLA_H

#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"

/* ---- axes (xla_numbers.c) ---- */

#define XLA_AXES (2 * LIMIT_RANK)
struct axis_list {
  int count;
  int64_t items[XLA_AXES];
};
/* The integers of a field of the message, all below `rank` and from 0 on; INVALID_ARGUMENT for others and for bytes
 * that are no message. */
status xla_axes(struct op_call *c, uint32_t field, int rank, struct axis_list *out);
/* A field with one integer, 0 where it is absent; up to `most`. */
status xla_axis(struct op_call *c, uint32_t field, int64_t most, int *out);
static inline bool axis_in(const struct axis_list *list, int axis) {
  for (int i = 0; i < list->count; i++)
    if (list->items[i] == axis)
      return true;
  return false;
}
/* The axes of `rank` that are in neither list, in order. `b` may be NULL. */
void xla_other_axes(int rank, const struct axis_list *a, const struct axis_list *b, struct axis_list *out);
/* The elements of integer input `input`, which must be `count`, known while compiling, and no larger than tensors are. */
status xla_numbers(struct op_call *c, uint32_t input, const char *what, int count, int64_t *out);

/* ---- functions of scalars (xla_function.c) ---- */

#define XLA_OPERANDS 16
struct xla_function {
  struct flow *flow; /* its body, lowered for scalars */
  uint32_t arg_count, ret_count;
  value_id args[2 * XLA_OPERANDS], rets[XLA_OPERANDS];
};
/* The function that an attribute names, from scalars of `args` to scalars of `rets`. UNIMPLEMENTED where its body is more than scalar
 * arithmetic. */
status xla_function_read(struct op_call *c, const char *attr, uint32_t arg_count, const enum dtype *args, uint32_t ret_count,
                         const enum dtype *rets, struct xla_function *out);
/* Its results for these arguments, as expressions of the kernel. */
void xla_function_apply(struct kb *kb, const struct xla_function *function, const struct element *args, struct element *rets);

/* ---- windows (xla_window.c) ---- */

/* A window over one axis: the axis is spread by `base` and padded, the window by `dilation`. */
struct xla_window {
  int64_t size, stride, base, dilation, low, high;
  dim in;
};
/* How many windows there are. */
dim xla_window_count(struct op_call *c, const struct xla_window *w);
/* The place of element k of window o, clamped into the axis; *inside: whether there is one. */
expr_id xla_window_place(struct kb *kb, const struct xla_window *w, expr_id o, expr_id k, expr_id *inside);

/* ---- convolutions whose axes stand in any order (ops_xla_contract.c) ---- */

/* Where batch (of a filter: input features), features (of a filter: output features) and the spatial axes of a tensor
 * are. */
struct xla_conv_axes {
  int batch, feature;
  struct axis_list spatial;
};
struct xla_conv {
  struct xla_conv_axes in, filter, out;
  int spatial;
  int64_t groups, batch_groups;
  struct xla_window windows[LIMIT_RANK];
  struct flow_value x, w;
};
/* By these fields of dimension_numbers. */
status xla_conv_axes_read(struct op_call *c, uint32_t batch, uint32_t feature, uint32_t spatial, int rank, struct xla_conv_axes *out);
/* The groups divide features and batches. */
status xla_conv_groups_fit(struct op_call *c, const struct xla_conv *v);
/* The sizes of the result; the result as a new value. */
void xla_conv_dims(struct op_call *c, const struct xla_conv *v, dim *dims);
status xla_conv_values(struct op_call *c, const struct xla_conv *v, value_id x, value_id w, enum dtype dtype, value_id *result);

#endif
