/* element_words.h: short names for arithmetic on elements while a kernel is built. Included by builders that write much of it. */
#ifndef TFC_IR_OPS_ELEMENT_WORDS_H
#define TFC_IR_OPS_ELEMENT_WORDS_H

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"

static inline struct element e_num(struct kb *kb, double v) { return f_const(&kb->f, v); } /* in the kernel's dtype */
static inline struct element e_bin(struct kb *kb, enum scalar_op op, struct element a, struct element b) {
  return f_binary(&kb->f, op, a, b);
}
static inline struct element e_add(struct kb *kb, struct element a, struct element b) { return e_bin(kb, SCALAR_ADD, a, b); }
static inline struct element e_sub(struct kb *kb, struct element a, struct element b) { return e_bin(kb, SCALAR_SUB, a, b); }
static inline struct element e_mul(struct kb *kb, struct element a, struct element b) { return e_bin(kb, SCALAR_MUL, a, b); }
static inline struct element e_div(struct kb *kb, struct element a, struct element b) { return e_bin(kb, SCALAR_DIV, a, b); }
static inline struct element e_min(struct kb *kb, struct element a, struct element b) { return e_bin(kb, SCALAR_MIN, a, b); }
static inline struct element e_max(struct kb *kb, struct element a, struct element b) { return e_bin(kb, SCALAR_MAX, a, b); }
static inline expr_id e_lt(struct kb *kb, struct element a, struct element b) { return e_bin(kb, SCALAR_LT, a, b).re; }
static inline expr_id e_le(struct kb *kb, struct element a, struct element b) { return e_bin(kb, SCALAR_LE, a, b).re; }
static inline expr_id e_eq(struct kb *kb, struct element a, struct element b) { return e_bin(kb, SCALAR_EQ, a, b).re; }
static inline struct element e_select(struct kb *kb, expr_id condition, struct element a, struct element b) {
  return f_select(&kb->f, real_element(condition), a, b);
}
static inline struct element e_floor(struct kb *kb, struct element a) { return f_unary(&kb->f, SCALAR_FLOOR, a); }
static inline struct element e_ceil(struct kb *kb, struct element a) { return f_unary(&kb->f, SCALAR_CEIL, a); }
static inline struct element e_cast(struct kb *kb, enum dtype dtype, struct element a) { return f_cast(&kb->f, dtype, a); }
static inline struct element e_of(struct kb *kb, enum dtype dtype, expr_id e) {
  return real_element(expr_cast(kb->k, dtype, e));
} /* an integer */
static inline expr_id e_int(struct kb *kb, struct element a) { return expr_cast(kb->k, DTYPE_INT64, a.re); } /* truncated */
static inline expr_id kb_not(struct kb *kb, expr_id a) { return expr_unary(kb->k, SCALAR_NOT, a); }
/* To the nearest integer, halves away from zero. */
static inline struct element e_round_away(struct kb *kb, struct element a) {
  struct element whole = f_unary(&kb->f, SCALAR_TRUNC, a), rest = e_sub(kb, a, whole), zero = f_const_like(&kb->f, a, 0);
  struct element step = f_const_like(&kb->f, a, 1), half = f_const_like(&kb->f, a, 0.5);
  struct element away = e_select(kb, e_lt(kb, rest, zero), f_unary(&kb->f, SCALAR_NEG, step), step);
  return e_select(kb, e_le(kb, half, f_unary(&kb->f, SCALAR_ABS, rest)), e_add(kb, whole, away), whole);
}
/* A real element or an expression as it is here: later stores do not change it, and it is computed once. */
static inline struct element e_now(struct kb *kb, struct element e) { return real_element(kb_get(kb, kb_local(kb, e.re))); }
static inline expr_id kb_now(struct kb *kb, expr_id e) { return kb_get(kb, kb_local(kb, e)); }

#endif
