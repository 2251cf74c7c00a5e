/* fourier.c: see fourier.h. A length that is no power of two is a convolution with a chirp, which powers of two compute
 * (Bluestein, 1970). */
#include "runtime/value/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each element goes to the place whose bits are the same backwards. */
static void reverse_bits(double *re, double *im, int64_t n) {
  for (int64_t i = 1, j = 0; i < n; i++) {
    int64_t bit = n >> 1;
    for (; j & bit; bit >>= 1)
      j ^= bit;
    j ^= bit;
    if (i < j) {
      double r = re[i], m = im[i];
      re[i] = re[j], im[i] = im[j];
      re[j] = r, im[j] = m;
    }
  }
}

void fourier_power_of_two(double *re, double *im, int64_t n, bool inverse) {
  reverse_bits(re, im, n);
  for (int64_t half = 1; half < n; half *= 2)
    for (int64_t k = 0; k < half; k++) {
      double angle = M_PI * (double)k / (double)half, c = cos(angle), s = inverse ? sin(angle) : -sin(angle);
      for (int64_t i = k; i < n; i += 2 * half) {
        double r = re[i + half] * c - im[i + half] * s, m = re[i + half] * s + im[i + half] * c;
        re[i + half] = re[i] - r, im[i + half] = im[i] - m;
        re[i] += r, im[i] += m;
      }
    }
}

static bool is_power_of_two(int64_t n) { return (n & (n - 1)) == 0; }

/* e^(-+ pi i k^2 / n), and the transform of its conjugate on both sides of 0. */
static void make_chirp(struct fourier *f) {
  for (int64_t k = 0; k < f->n; k++) {
    double angle = M_PI * (double)(int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * f->n)) / (double)f->n;
    f->chirp_re[k] = cos(angle);
    f->chirp_im[k] = f->inverse ? sin(angle) : -sin(angle);
  }
  for (int64_t k = 0; k < f->n; k++) {
    int64_t other = k ? f->size - k : 0;
    f->filter_re[k] = f->filter_re[other] = f->chirp_re[k];
    f->filter_im[k] = f->filter_im[other] = -f->chirp_im[k];
  }
  fourier_power_of_two(f->filter_re, f->filter_im, f->size, false);
}

status fourier_init(struct fourier *f, int64_t n, bool inverse) {
  *f = (struct fourier){.n = n, .size = 1, .inverse = inverse};
  if (n < 1 || is_power_of_two(n))
    return OK;
  while (f->size < 2 * n - 1)
    f->size *= 2;
  f->chirp_re = calloc((size_t)(2 * n + 4 * f->size), sizeof(double));
  if (!f->chirp_re)
    return fail(RESOURCE_EXHAUSTED, "no memory for a transform of %lld elements", (long long)n);
  f->chirp_im = f->chirp_re + n;
  f->filter_re = f->chirp_im + n;
  f->filter_im = f->filter_re + f->size;
  f->re = f->filter_im + f->size;
  f->im = f->re + f->size;
  make_chirp(f);
  return OK;
}

void fourier_deinit(struct fourier *f) { free(f->chirp_re); }

void fourier_run(struct fourier *f, double *re, double *im) {
  if (!f->chirp_re) {
    fourier_power_of_two(re, im, f->n, f->inverse);
    return;
  }
  memset(f->re, 0, sizeof(double) * (size_t)(2 * f->size));
  for (int64_t k = 0; k < f->n; k++) {
    f->re[k] = re[k] * f->chirp_re[k] - im[k] * f->chirp_im[k];
    f->im[k] = re[k] * f->chirp_im[k] + im[k] * f->chirp_re[k];
  }
  fourier_power_of_two(f->re, f->im, f->size, false);
  for (int64_t k = 0; k < f->size; k++) {
    double r = f->re[k] * f->filter_re[k] - f->im[k] * f->filter_im[k];
    f->im[k] = f->re[k] * f->filter_im[k] + f->im[k] * f->filter_re[k];
    f->re[k] = r;
  }
  fourier_power_of_two(f->re, f->im, f->size, true);
  for (int64_t k = 0; k < f->n; k++) {
    double r = f->re[k] / (double)f->size, m = f->im[k] / (double)f->size;
    re[k] = r * f->chirp_re[k] - m * f->chirp_im[k];
    im[k] = r * f->chirp_im[k] + m * f->chirp_re[k];
  }
}
