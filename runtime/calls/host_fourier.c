/* host_fourier.c: transforms along an axis whose length only the step knows, or that is above 2^15 and has a
 * prime factor above 13. */
#include <stdlib.h>

#include "base/fourier.h"
#include "runtime/host/host.h"

/* The line of elements `apart` from each other. */
struct line {
  const struct tensor *in;
  struct tensor *out;
  int64_t first, apart, count;
};

static void line_run(const struct line *l, struct fourier *f, double *re, double *im) {
  for (int64_t i = 0; i < l->count; i++) {
    int64_t at = 2 * (l->first + i * l->apart);
    bool wide = l->in->dtype == DTYPE_COMPLEX128;
    re[i] = wide ? ((const double *)l->in->data)[at] : (double)((const float *)l->in->data)[at];
    im[i] = wide ? ((const double *)l->in->data)[at + 1] : (double)((const float *)l->in->data)[at + 1];
  }
  fourier_run(f, re, im);
  for (int64_t i = 0; i < l->count; i++) {
    int64_t at = 2 * (l->first + i * l->apart);
    if (l->out->dtype == DTYPE_COMPLEX128) {
      ((double *)l->out->data)[at] = re[i];
      ((double *)l->out->data)[at + 1] = im[i];
    } else {
      ((float *)l->out->data)[at] = (float)re[i];
      ((float *)l->out->data)[at + 1] = (float)im[i];
    }
  }
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
  TRY(host_make_output(call, 0, in->dtype, &in->shape));
  TRY(fourier_init(&f, n, host_attr_int(call, "inverse", 0) != 0));
  double *re = malloc(sizeof(double) * (size_t)(2 * n + 1));
  for (int64_t b = 0; re && n && b < before; b++)
    for (int64_t a = 0; a < after; a++)
      line_run(&(struct line){in, call->outputs[0], b * n * after + a, after, n}, &f, re, re + n);
  free(re);
  fourier_deinit(&f);
  return re ? OK : fail(RESOURCE_EXHAUSTED, "no memory for a transform of %lld elements", (long long)n);
}
