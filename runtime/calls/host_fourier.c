/* host_fourier.c: transforms along an axis whose length only the step knows, or that is above 2^15 and has a
 * prime factor above 13. */
#include <stdlib.h>

#include "base/fourier.h"
#include "runtime/host/host.h"

#define NEAR_BYTES 32768 /* of lines that are transformed at once: the first cache holds them */

/* Lines one after the other, each of elements `apart` from each other. */
struct lines {
  const struct tensor *in;
  struct tensor *out;
  int64_t n, apart;
};
static int64_t first_of(const struct lines *l, int64_t line) { return line / l->apart * l->n * l->apart + line % l->apart; }

#define DEFINE_MOVES(type)                                                                                       \
  static void load_##type(const struct lines *l, int64_t from, int count, double *re, double *im) {              \
    const type *in = l->in->data;                                                                                \
    for (int line = 0; line < count; line++)                                                                     \
      for (int64_t i = 0, at = 2 * first_of(l, from + line); i < l->n; i++, at += 2 * l->apart)                  \
        re[i * count + line] = (double)in[at], im[i * count + line] = (double)in[at + 1];                        \
  }                                                                                                              \
  static void store_##type(const struct lines *l, int64_t from, int count, const double *re, const double *im) { \
    type *out = l->out->data;                                                                                    \
    for (int line = 0; line < count; line++)                                                                     \
      for (int64_t i = 0, at = 2 * first_of(l, from + line); i < l->n; i++, at += 2 * l->apart)                  \
        out[at] = (type)re[i * count + line], out[at + 1] = (type)im[i * count + line];                          \
  }
DEFINE_MOVES(float)
DEFINE_MOVES(double)

static void run_lines(const struct lines *l, int64_t from, int count, struct fourier *f, double *re, double *im) {
  bool wide = l->in->dtype == DTYPE_COMPLEX128;
  (wide ? load_double : load_float)(l, from, count, re, im);
  fourier_run(f, re, im, count);
  (wide ? store_double : store_float)(l, from, count, re, im);
}

/* How many of `all` lines at once. */
static int lines_at_once(int64_t n, int64_t all) {
  int most = all < FOURIER_LINES ? (int)all : FOURIER_LINES;
  while (most > 1 && n * most * 4 * (int64_t)sizeof(double) > NEAR_BYTES)
    most /= 2;
  return most;
}
/* input 0, complex, along the attribute `axis` */
status host_fourier(struct host_call *call) {
  const struct tensor *in = &call->inputs[0];
  int64_t axis = host_attr_int(call, "axis", 0), n = in->shape.dims[axis], after = 1, before = 1;
  for (int64_t d = 0; d < in->shape.rank; d++) {
    before *= d < axis ? in->shape.dims[d] : 1;
    after *= d > axis ? in->shape.dims[d] : 1;
  }
  struct fourier f;
  int64_t all = before * after;
  int most = lines_at_once(n, all);
  TRY(host_make_output(call, 0, in->dtype, &in->shape));
  if (!n || !all)
    return OK;
  TRY(fourier_init(&f, n, host_attr_int(call, "inverse", 0) != 0, most));
  double *re = malloc(sizeof(double) * (size_t)(2 * n * most));
  struct lines lines = {in, call->outputs[0], n, after};
  for (int64_t from = 0; re && from < all; from += most)
    run_lines(&lines, from, all - from < most ? (int)(all - from) : most, &f, re, re + n * most);
  free(re);
  fourier_deinit(&f);
  return re ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a transform of %lld elements", (long long)n);
}
