/* fourier.h: discrete Fourier transforms of any length in n log n steps, in double. */
#ifndef TFC_BASE_FOURIER_H
#define TFC_BASE_FOURIER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* What transforms of one length share. */
struct fourier {
  int64_t n, size; /* size: a power of two, of what is transformed inside */
  bool inverse, is_chirped;
  double *roots_re, *roots_im;                                   /* size each, and all one block with those below: */
  double *chirp_re, *chirp_im, *filter_re, *filter_im, *re, *im; /* n twice; size each; of a length that is no power of two */
};
status fourier_init(struct fourier *f, int64_t n, bool inverse);
void fourier_deinit(struct fourier *f);
/* Of n elements in place; not divided. */
void fourier_run(struct fourier *f, double *re, double *im);

#endif
