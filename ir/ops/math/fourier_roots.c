/* fourier_roots.c: see fourier_roots.h. */
#include "ir/ops/math/fourier_roots.h"

#include <math.h>

#define TABLE_BYTES (256 << 10) /* of roots: more are products of two tables */

struct numbers numbers_begin(struct op_call *c, enum dtype complex, int64_t count) {
  return (struct numbers){c, complex, ARENA_ARRAY(op_arena(c), double, (size_t)count + 1), count};
}
value_id numbers_end(const struct numbers *n, bool in_parts) {
  dim dims = op_dim(n->c, in_parts ? n->count : n->count / 2);
  enum dtype dtype = in_parts ? dtype_real(n->complex) : n->complex;
  if (n->complex == DTYPE_COMPLEX128)
    return op_constant(n->c, dtype, 1, &dims, n->of);
  float *narrow = ARENA_ARRAY(op_arena(n->c), float, (size_t)n->count + 1);
  for (int64_t i = 0; i < n->count; i++)
    narrow[i] = (float)n->of[i];
  return op_constant(n->c, dtype, 1, &dims, narrow);
}
bool fourier_is_large(enum dtype complex, int64_t count) { return count * (int64_t)dtype_size(complex) > TABLE_BYTES; }

void fourier_root_of(double *re, double *im, int64_t k, int64_t n, bool inverse) {
  double angle = 2 * M_PI * (double)(k % n) / (double)n;
  *re = cos(angle), *im = inverse ? sin(angle) : -sin(angle);
}
/* For k = 0, step, 2 step ... */
static value_id roots_every(struct op_call *c, enum dtype complex, int64_t n, int64_t step, int64_t count, bool inverse) {
  struct numbers all = numbers_begin(c, complex, 2 * count);
  for (int64_t k = 0; k < count; k++)
    fourier_root_of(&all.of[2 * k], &all.of[2 * k + 1], k * step, n, inverse);
  return numbers_end(&all, false);
}
struct fourier_roots fourier_roots(struct op_call *c, enum dtype complex, int64_t n, int64_t count, bool inverse) {
  struct fourier_roots r = {.low = NO_VALUE, .high = NO_VALUE, .step = count};
  if (fourier_is_large(complex, count)) {
    for (r.step = 1; r.step * r.step < count;)
      r.step *= 2;
    r.high = roots_every(c, complex, n, r.step, (count + r.step - 1) / r.step, inverse);
  }
  r.low = roots_every(c, complex, n, 1, r.step, inverse);
  return r;
}
void fourier_roots_in(struct kb *kb, struct fourier_roots *r) {
  r->low_buffer = kb_in(kb, r->low);
  if (r->high != NO_VALUE)
    r->high_buffer = kb_in(kb, r->high);
}
struct element fourier_root(struct kb *kb, const struct fourier_roots *r, expr_id k) {
  if (r->high == NO_VALUE)
    return kb_load(kb, r->low_buffer, &k);
  expr_id step = kb_int(kb, r->step), low = kb_mod(kb, k, step), high = kb_div(kb, k, step);
  return f_binary(&kb->f, SCALAR_MUL, kb_load(kb, r->low_buffer, &low), kb_load(kb, r->high_buffer, &high));
}
