/* accumulate.h: what contractions, windows and scans share: a mutable element (two locals when it is complex), in a dtype
 * wide enough to sum in. Sums over half and bfloat16 are kept in float and rounded once, when they are stored. */
#ifndef TFC_IR_OPS_ACCUMULATE_H
#define TFC_IR_OPS_ACCUMULATE_H

#include "ir/lower/lower.h"

struct accumulator {
  uint32_t re, im;
  bool is_complex;
};

static inline enum dtype sum_dtype(enum dtype dtype) { return dtype == DTYPE_HALF || dtype == DTYPE_BFLOAT16 ? DTYPE_FLOAT : dtype; }

static inline struct accumulator acc_begin(struct kb *kb, struct element start) {
  struct accumulator a = {.re = kb_local(kb, start.re), .is_complex = start.im != NO_EXPR};
  if (a.is_complex)
    a.im = kb_local(kb, start.im);
  return a;
}
static inline struct accumulator acc_zero(struct kb *kb, enum dtype dtype) { return acc_begin(kb, f_const_as(&kb->f, dtype, 0)); }
static inline struct element acc_get(struct kb *kb, const struct accumulator *a) {
  return (struct element){kb_get(kb, a->re), a->is_complex ? kb_get(kb, a->im) : NO_EXPR};
}
/* The new imaginary part may depend on the old real one: it is computed first. */
static inline void acc_set(struct kb *kb, const struct accumulator *a, struct element value) {
  if (!a->is_complex) {
    kb_set(kb, a->re, value.re);
    return;
  }
  expr_id im = kb_get(kb, kb_local(kb, f_imag(&kb->f, value).re));
  kb_set(kb, a->re, value.re);
  kb_set(kb, a->im, im);
}
static inline void acc_add(struct kb *kb, const struct accumulator *a, struct element value) {
  struct element sum = f_binary(&kb->f, SCALAR_ADD, acc_get(kb, a), value);
  kb_set(kb, a->re, sum.re);
  if (a->is_complex)
    kb_set(kb, a->im, sum.im);
}

/* An element of a buffer, in the dtype to compute in. */
static inline struct element load_as(struct kb *kb, enum dtype dtype, uint32_t buffer, const expr_id *index) {
  return f_cast(&kb->f, dtype, kb_load(kb, buffer, index));
}
/* Stores, rounded to the buffer's dtype. */
static inline void store_as(struct kb *kb, uint32_t buffer, const expr_id *index, struct element value) {
  kb_store(kb, buffer, index, f_cast(&kb->f, kb->k->buffers.items[buffer].dtype, value));
}

#endif
