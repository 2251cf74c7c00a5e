/* fourier_real.c: transforms of an even number of real elements, as complex ones of half as many: elements of even and of odd places are
 * the parts, and their transforms are told apart by their symmetry (Sorensen et al., "Real-valued fast Fourier transform algorithms",
 * 1987). */
#include <string.h>

#include "ir/ops/math/fourier.h"
#include "ir/ops/math/fourier_roots.h"

/* A kernel that makes lines along the last axis from others; the loops over the other axes are open. */
struct line_kernel {
  struct kb kb;
  uint32_t in, out;
  struct fourier_roots roots;
  int last; /* axis */
  expr_id from[LIMIT_RANK], to[LIMIT_RANK];
};

static void lines_begin(struct op_call *c, value_id value, enum dtype dtype, int64_t length, struct line_kernel *l) {
  struct flow_value x = *op_value(c, value);
  struct kb *kb = &l->kb;
  l->last = x.rank - 1;
  x.dims[l->last] = op_dim(c, length);
  kb_begin(kb, c, dtype_real(dtype));
  l->in = kb_in(kb, value);
  l->out = kb_out(kb, dtype, x.rank, x.dims);
  kb_loops(kb, LOOP_PAR, l->last, x.dims, l->from);
  memcpy(l->to, l->from, sizeof l->to);
}
static struct element lines_load(struct line_kernel *l, expr_id at) {
  l->from[l->last] = at;
  return kb_load(&l->kb, l->in, l->from);
}
static void lines_store(struct line_kernel *l, expr_id at, struct element e) {
  l->to[l->last] = at;
  kb_store(&l->kb, l->out, l->to, e);
}
static status lines_end(struct line_kernel *l, value_id *value) {
  kb_close(&l->kb, l->last);
  *value = kb_value(&l->kb, l->out);
  return kb_finish(&l->kb);
}

/* (a + b) / 2 and (a - b) / 2 */
struct halves {
  struct element sum, difference;
};
static struct halves halves_of(struct kb *kb, struct element a, struct element b) {
  expr_id half = f_const(&kb->f, 0.5).re;
  struct element sum = f_binary(&kb->f, SCALAR_ADD, a, b), difference = f_binary(&kb->f, SCALAR_SUB, a, b);
  return (struct halves){{expr_binary(kb->k, SCALAR_MUL, half, sum.re), expr_binary(kb->k, SCALAR_MUL, half, sum.im)},
                         {expr_binary(kb->k, SCALAR_MUL, half, difference.re), expr_binary(kb->k, SCALAR_MUL, half, difference.im)}};
}
/* Elements k and half - k, the latter conjugated, for k from 1 on: neither wraps around, and vectors are loaded as they are. */
static struct halves load_halves(struct line_kernel *l, expr_id k, int64_t half) {
  struct kb *kb = &l->kb;
  struct element a = lines_load(l, k), b = lines_load(l, kb_sub(kb, kb_int(kb, half), k));
  return halves_of(kb, a, f_conj(&kb->f, b));
}
static expr_id loop_from_one(struct kb *kb, int64_t end) { return kb_add(kb, kb_for(kb, LOOP_PAR, kb_int(kb, end - 1)), kb_int(kb, 1)); }
static struct element times_root(struct line_kernel *l, expr_id k, struct element e) {
  return f_binary(&l->kb.f, SCALAR_MUL, fourier_root(&l->kb, &l->roots, k), e);
}

/* From the transform of pairs to the first half + 1 elements of that of the real elements: even places' sums of both, odd ones' differences
 * times -i, turned. */
static status tell_apart(struct op_call *c, int64_t half, value_id *value) {
  struct line_kernel l;
  struct kb *kb = &l.kb;
  enum dtype complex = op_value(c, *value)->dtype;
  lines_begin(c, *value, complex, half + 1, &l);
  l.roots = fourier_roots(c, complex, 2 * half, half, false);
  fourier_roots_in(kb, &l.roots);
  expr_id zero = f_const(&kb->f, 0).re, start = kb_int(kb, 0);
  struct element first = lines_load(&l, start);
  lines_store(&l, start, (struct element){expr_binary(kb->k, SCALAR_ADD, first.re, first.im), zero});
  lines_store(&l, kb_int(kb, half), (struct element){expr_binary(kb->k, SCALAR_SUB, first.re, first.im), zero});
  expr_id k = loop_from_one(kb, half);
  struct halves h = load_halves(&l, k, half);
  struct element odd = {h.difference.im, f_unary(&kb->f, SCALAR_NEG, real_element(h.difference.re)).re};
  lines_store(&l, k, f_binary(&kb->f, SCALAR_ADD, h.sum, times_root(&l, k, odd)));
  kb_close(kb, 1);
  return lines_end(&l, value);
}
/* The other way. The first and the last element are real: imaginary parts given for them are left out, as by TensorFlow. */
static status put_together(struct op_call *c, int64_t half, value_id *value) {
  struct line_kernel l;
  struct kb *kb = &l.kb;
  enum dtype complex = op_value(c, *value)->dtype;
  lines_begin(c, *value, complex, half, &l);
  l.roots = fourier_roots(c, complex, 2 * half, half, true);
  fourier_roots_in(kb, &l.roots);
  expr_id zero = f_const(&kb->f, 0).re, start = kb_int(kb, 0);
  struct element first = {lines_load(&l, start).re, zero}, last = {lines_load(&l, kb_int(kb, half)).re, zero};
  struct halves ends = halves_of(kb, first, last);
  lines_store(&l, start, (struct element){ends.sum.re, ends.difference.re});
  expr_id k = loop_from_one(kb, half);
  struct halves h = load_halves(&l, k, half);
  struct element odd = times_root(&l, k, h.difference);
  struct element turned = {f_unary(&kb->f, SCALAR_NEG, real_element(odd.im)).re, odd.re};
  lines_store(&l, k, f_binary(&kb->f, SCALAR_ADD, h.sum, turned));
  kb_close(kb, 1);
  return lines_end(&l, value);
}

/* The same memory: real elements of even places are real parts, those of odd ones imaginary parts. */
static value_id as_pairs(struct op_call *c, int64_t half, enum dtype complex, value_id value) {
  struct flow_value x = *op_value(c, value);
  x.dims[x.rank - 1] = op_dim(c, half);
  return op_alias(c, value, complex, x.rank, x.dims);
}
static value_id as_parts(struct op_call *c, int64_t half, value_id value) {
  struct flow_value x = *op_value(c, value);
  x.dims[x.rank - 1] = op_dim(c, 2 * half);
  return op_alias(c, value, dtype_real(x.dtype), x.rank, x.dims);
}

status fourier_transform_real(struct op_call *c, int64_t half, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  *value = as_pairs(c, half, x.dtype == DTYPE_DOUBLE ? DTYPE_COMPLEX128 : DTYPE_COMPLEX64, *value);
  TRY(fourier_transform(c, x.rank - 1, false, value));
  return tell_apart(c, half, value);
}
status fourier_transform_back_real(struct op_call *c, int64_t half, value_id *value) {
  int last = op_value(c, *value)->rank - 1;
  TRY(put_together(c, half, value));
  TRY(fourier_transform(c, last, true, value));
  *value = as_parts(c, half, *value);
  return OK;
}
