/* fourier.c: see fourier.h. A length that is no power of two is a convolution with a chirp, which powers of two compute
 * (Bluestein, 1970). */
#include "base/fourier.h"

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

/* For each step of `half` pairs, from half on, e^(-pi i k / half), 0 <= k < half: n - 1 of them. */
static void make_roots(double *re, double *im, int64_t n) {
  for (int64_t half = 1; half < n; half *= 2)
    for (int64_t k = 0; k < half; k++) {
      double angle = M_PI * (double)k / (double)half;
      re[half + k] = cos(angle), im[half + k] = -sin(angle);
    }
}
static void transform(double *restrict re, double *restrict im, const double *restrict roots_re, const double *restrict roots_im, int64_t n,
                      double sign) {
  reverse_bits(re, im, n);
  for (int64_t half = 1; half < n; half *= 2)
    for (int64_t i = 0; i < n; i += 2 * half)
      for (int64_t k = 0; k < half; k++) {
        double c = roots_re[half + k], s = sign * roots_im[half + k];
        double r = re[i + k + half] * c - im[i + k + half] * s, m = re[i + k + half] * s + im[i + k + half] * c;
        double low_re = re[i + k], low_im = im[i + k];
        re[i + k + half] = low_re - r, im[i + k + half] = low_im - m;
        re[i + k] = low_re + r, im[i + k] = low_im + m;
      }
}
static void power_of_two(const struct fourier *f, double *re, double *im, bool inverse) {
  transform(re, im, f->roots_re, f->roots_im, f->size, inverse ? -1 : 1);
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
  power_of_two(f, f->filter_re, f->filter_im, false);
}

status fourier_init(struct fourier *f, int64_t n, bool inverse) {
  *f = (struct fourier){.n = n, .size = 1, .inverse = inverse, .is_chirped = n > 1 && !is_power_of_two(n)};
  while (f->size < (f->is_chirped ? 2 * n - 1 : n))
    f->size *= 2;
  f->roots_re = calloc((size_t)(f->is_chirped ? 2 * n + 6 * f->size : 2 * f->size), sizeof(double));
  if (!f->roots_re)
    return fail(RESOURCE_EXHAUSTED, "no memory for a transform of %lld elements", (long long)n);
  f->roots_im = f->roots_re + f->size;
  make_roots(f->roots_re, f->roots_im, f->size);
  if (!f->is_chirped)
    return OK;
  f->chirp_re = f->roots_im + f->size;
  f->chirp_im = f->chirp_re + n;
  f->filter_re = f->chirp_im + n;
  f->filter_im = f->filter_re + f->size;
  f->re = f->filter_im + f->size;
  f->im = f->re + f->size;
  make_chirp(f);
  return OK;
}

void fourier_deinit(struct fourier *f) { free(f->roots_re); }

void fourier_run(struct fourier *f, double *re, double *im) {
  if (!f->is_chirped) {
    power_of_two(f, re, im, f->inverse);
    return;
  }
  memset(f->re, 0, sizeof(double) * (size_t)(2 * f->size));
  for (int64_t k = 0; k < f->n; k++) {
    f->re[k] = re[k] * f->chirp_re[k] - im[k] * f->chirp_im[k];
    f->im[k] = re[k] * f->chirp_im[k] + im[k] * f->chirp_re[k];
  }
  power_of_two(f, f->re, f->im, false);
  for (int64_t k = 0; k < f->size; k++) {
    double r = f->re[k] * f->filter_re[k] - f->im[k] * f->filter_im[k];
    f->im[k] = f->re[k] * f->filter_im[k] + f->im[k] * f->filter_re[k];
    f->re[k] = r;
  }
  power_of_two(f, f->re, f->im, true);
  for (int64_t k = 0; k < f->n; k++) {
    double r = f->re[k] / (double)f->size, m = f->im[k] / (double)f->size;
    re[k] = r * f->chirp_re[k] - m * f->chirp_im[k];
    im[k] = r * f->chirp_im[k] + m * f->chirp_re[k];
  }
}
