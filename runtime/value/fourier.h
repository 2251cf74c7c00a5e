/* fourier.h: discrete Fourier transforms of any length in n log n steps, in double. */
#ifndef TFC_RUNTIME_VALUE_FOURIER_H
#define TFC_RUNTIME_VALUE_FOURIER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* In place; n is a power of two. Inverse: not divided by n. */
void fourier_power_of_two(double *re, double *im, int64_t n, bool inverse);

/* What transforms of one length share. */
struct fourier {
  int64_t n, size; /* size: a power of two, of what is transformed inside */
  bool inverse;
  double *chirp_re, *chirp_im, *filter_re, *filter_im, *re, *im; /* n twice; size each; all one block */
};
status fourier_init(struct fourier *f, int64_t n, bool inverse);
void fourier_deinit(struct fourier *f);
/* Of n elements in place; not divided. */
void fourier_run(struct fourier *f, double *re, double *im);

#endif
