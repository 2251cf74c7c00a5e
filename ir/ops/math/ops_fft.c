/* ops_fft.c: discrete Fourier transforms over the last axes, complex and real. Real transforms of a length that is not known to be even are
 * complex ones of which half is kept, or made up from the symmetry. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/math/fourier.h"
#include "ir/ops/op_rows.h"

/* ---- complex ---- */

/* The number of axes is the row's (FFT, FFT2D, FFT3D), or (FFTND) the length of a list of axes, which must be the last ones. */
static status axes_of_op(struct op_call *c, int rank, int *count) {
  int axes = OP_ROW(c, fourier_row)->axes;
  *count = axes ? axes : 1;
  if (op_takes(c, "axes")) {
    value_id v;
    int64_t *axes;
    TRY(op_input(c, 2, &v));
    TRY(op_const_ints(c, v, "axes", &axes, count));
    for (int i = 0; i < *count; i++) {
      int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis != rank - *count + i)
        return fail(INVALID_ARGUMENT, "axes must be successive and ascending, the last one -1");
    }
    if (*count == 0)
      return fail(INVALID_ARGUMENT, "axes must not be empty");
  }
  if (rank < *count)
    return fail(INVALID_ARGUMENT, "Input must have rank of at least %d but got: %d", *count, rank);
  return OK;
}

static status read_lengths(struct op_call *c, int axes, dim **out) {
  value_id v;
  int count;
  TRY(op_input(c, 1, &v));
  TRY(op_elements(c, v, out, &count));
  if (count != axes)
    return fail(INVALID_ARGUMENT, "fft_length must have shape [%d], has %d elements", axes, count);
  for (int i = 0; i < count; i++)
    if (dim_less(op_dims(c), (*out)[i], op_dim(c, 0)) == 1)
      return fail(INVALID_ARGUMENT, "fft_length[%d] must >= 0, but got: %s", i, dim_text(op_dims(c), (*out)[i]));
  return OK;
}

/* Cut to the sizes, or filled up with zeros. */
static status resize(struct op_call *c, const dim *dims, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, *value), o = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK], inside = expr_int(kb.k, DTYPE_BOOL, 1), some = inside;
  for (int i = 0; i < x.rank; i++)
    some = kb_and(&kb, some, kb_lt(&kb, kb_int(&kb, 0), kb_dim(&kb, x.dims[i])));
  kb_loops(&kb, LOOP_PAR, x.rank, dims, index);
  for (int i = 0; i < x.rank; i++) {
    expr_id have = kb_dim(&kb, x.dims[i]);
    at[i] = kb_clamp(&kb, index[i], have);
    inside = kb_and(&kb, inside, kb_lt(&kb, index[i], have));
  }
  struct accumulator e = acc_zero(&kb, x.dtype);
  kb_if(&kb, kb_and(&kb, some, inside));
  acc_set(&kb, &e, kb_load(&kb, a, at));
  kb_close(&kb, 1);
  kb_store(&kb, o, index, acc_get(&kb, &e));
  kb_close(&kb, x.rank);
  *value = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

status build_fft(struct op_call *c) {
  value_id v;
  int axes;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(axes_of_op(c, x.rank, &axes));
  if (op_takes(c, "axes")) {
    dim *lengths;
    TRY(read_lengths(c, axes, &lengths));
    memcpy(&x.dims[x.rank - axes], lengths, sizeof *lengths * (size_t)axes);
    TRY(resize(c, x.dims, &v));
  }
  for (int i = 0; i < axes; i++)
    TRY(fourier_transform(c, x.rank - 1 - i, OP_ROW(c, fourier_row)->inverse, &v));
  op_set_output(c, 0, v);
  return OK;
}

/* ---- real ---- */

/* An input that is too short is an error, unless an axis has nothing at all. */
static status check_lengths(struct op_call *c, const struct flow_value *x, const dim *wanted) {
  struct kb guard;
  guard_begin(&guard, c);
  for (int i = 0; i < x->rank; i++) {
    expr_id have = kb_dim(&guard, x->dims[i]), want = kb_dim(&guard, wanted[i]);
    if (dim_equal(op_dims(c), x->dims[i], wanted[i]) != 1)
      kb_check(&guard, kb_or(&guard, kb_eq(&guard, have, kb_int(&guard, 0)), kb_le(&guard, want, have)), INVALID_ARGUMENT,
               "Input must have length of at least %d but got: %d", want, have);
  }
  return guard_finish(&guard);
}

/* Whether axes of which elements are taken may have none. */
static bool may_lack(struct op_call *c, const struct flow_value *x, const dim *wanted) {
  bool may = false;
  for (int i = 0; i < x->rank; i++)
    may = may || (dim_equal(op_dims(c), x->dims[i], wanted[i]) != 1 && dim_less(op_dims(c), op_dim(c, 0), x->dims[i]) != 1);
  return may;
}

/* The first elements of each axis, as another dtype; of an axis without elements zeros. */
static status crop(struct op_call *c, value_id v, const dim *dims, enum dtype dtype, value_id *out) {
  struct flow_value x = *op_value(c, v);
  TRY(check_lengths(c, &x, dims));
  if (may_lack(c, &x, dims)) {
    TRY(resize(c, dims, &v));
    return op_cast(c, v, dtype, out);
  }
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, dtype, x.rank, dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, index);
  kb_store(&kb, o, index, f_cast(&kb.f, dtype, kb_load(&kb, a, index)));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* n / 2 + 1: what of a real transform is not implied by its symmetry; nothing of a transform of nothing */
static dim half_length(struct op_call *c, dim n) {
  if (op_dim_value(c, n) == 0)
    return n;
  return dim_add(op_dims(c), dim_floordiv(op_dims(c), n, op_dim(c, 2)), op_dim(c, 1));
}

/* Half of a length that is known to be even; 0: it is not. */
static int64_t known_half(struct op_call *c, dim n) {
  int64_t length = op_dim_value(c, n);
  return length > 0 && length % 2 == 0 ? length / 2 : 0;
}

status build_rfft(struct op_call *c) {
  value_id v;
  dim *lengths, dims[LIMIT_RANK];
  int axes;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(axes_of_op(c, x.rank, &axes));
  TRY(read_lengths(c, axes, &lengths));
  memcpy(dims, x.dims, sizeof dims);
  memcpy(&dims[x.rank - axes], lengths, sizeof *dims * (size_t)axes);
  enum dtype complex = op_output_dtype(c, 0);
  int64_t half = known_half(c, dims[x.rank - 1]);
  TRY(crop(c, v, dims, half ? x.dtype : complex, &v));
  if (half) {
    TRY(fourier_transform_real(c, half, &v));
  } else {
    TRY(fourier_transform(c, x.rank - 1, false, &v));
    dims[x.rank - 1] = half_length(c, dims[x.rank - 1]);
    TRY(crop(c, v, dims, complex, &v));
  }
  for (int i = 1; i < axes; i++)
    TRY(fourier_transform(c, x.rank - 1 - i, false, &v));
  op_set_output(c, 0, v);
  return OK;
}

/* The whole last axis from its first half: element n - k is the conjugate of element k. */
static status unfold_half(struct op_call *c, dim n, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[x.rank - 1] = n;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, *value), o = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, index);
  memcpy(at, index, sizeof at);
  expr_id k = index[x.rank - 1], half = kb_dim(&kb, x.dims[x.rank - 1]), first = kb_lt(&kb, k, half);
  at[x.rank - 1] = expr_select(kb.k, first, k, kb_sub(&kb, kb_dim(&kb, n), k));
  struct element e = kb_load(&kb, a, at);
  kb_store(&kb, o, index, f_select(&kb.f, real_element(first), e, f_conj(&kb.f, e)));
  kb_close(&kb, x.rank);
  *value = kb_value(&kb, o);
  return kb_finish(&kb);
}

static struct element formula_real(struct formula *f, struct element a, struct element b, struct element c) {
  (void)f, (void)b, (void)c;
  return f_real(a);
}

status build_irfft(struct op_call *c) {
  value_id v, out;
  dim *lengths, dims[LIMIT_RANK];
  int axes;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(axes_of_op(c, x.rank, &axes));
  TRY(read_lengths(c, axes, &lengths));
  memcpy(dims, x.dims, sizeof dims);
  memcpy(&dims[x.rank - axes], lengths, sizeof *dims * (size_t)axes);
  dim last = dims[x.rank - 1];
  dims[x.rank - 1] = half_length(c, last);
  TRY(crop(c, v, dims, x.dtype, &v));
  for (int i = axes - 1; i >= 1; i--)
    TRY(fourier_transform(c, x.rank - 1 - i, true, &v));
  int64_t half = known_half(c, last);
  if (half) {
    TRY(fourier_transform_back_real(c, half, &v));
    op_set_output(c, 0, v);
    return OK;
  }
  TRY(unfold_half(c, last, &v));
  TRY(fourier_transform(c, x.rank - 1, true, &v));
  TRY(op_map(c, &v, 1, op_output_dtype(c, 0), formula_real, &out));
  op_set_output(c, 0, out);
  return OK;
}
