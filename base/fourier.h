/* fourier.h: discrete Fourier transforms of any length in n log n steps, in double; several lines at once, as lanes of vectors. */
#ifndef TFC_BASE_FOURIER_H
#define TFC_BASE_FOURIER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define FOURIER_LINES 8  /* at once, at most */
#define FOURIER_STEPS 64 /* more prime factors no length has */
#define FOURIER_RADIX 13 /* the largest prime factor of a length that goes by steps */

/* What transforms of one length share, and what they work in: for one thread at a time. */
struct fourier {
  int64_t n, size; /* size: of what is transformed inside: n, or for a convolution a power of two */
  bool inverse, is_chirped;
  int steps[FOURIER_STEPS], step_count;                /* radices, whose product is `size` */
  double *roots_re, *roots_im;                         /* e^(-2 pi i k / size), and all one block with those below: */
  double *chirp_re, *chirp_im, *filter_re, *filter_im; /* n twice; size twice; of a length that is a convolution */
  double *re, *im, *other_re, *other_im;               /* `size` of all lines each */
};
/* lines: the most that are to be transformed at once, 1 .. FOURIER_LINES. */
status fourier_init(struct fourier *f, int64_t n, bool inverse, int lines);
void fourier_deinit(struct fourier *f);
/* Of so many lines of n elements in place, element i of line l at i * lines + l; not divided. */
void fourier_run(struct fourier *f, double *re, double *im, int lines);

#endif
