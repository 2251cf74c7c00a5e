/* fourier.c: see fourier.h. Stockham's autosorting steps, one for each factor of the length (Cochran et al., "What is the fast Fourier
 * transform?", 1967); a length with a prime factor above FOURIER_RADIX is a convolution with a chirp, which a power of two computes
 * (Bluestein, 1970). */
#include "base/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROOTS_BLOCK 64

/* Chosen when the process starts; the same bits, as products are not contracted. Four lines fill a vector. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define VECTORS
#endif

/* ---- steps ---- */

/* What a step reads and writes: `stride` elements side by side, of all lines and of what earlier steps have made. */
struct step {
  const double *from_re, *from_im;
  double *to_re, *to_im;
  int64_t turns, stride, spread; /* turns: what is left of the length; spread: between roots of neighbouring turns */
  double sign;                   /* -1: of the inverse */
};
static void step_root(const struct fourier *f, const struct step *s, int64_t turn, int u, double *re, double *im) {
  *re = f->roots_re[turn * u * s->spread];
  *im = s->sign * f->roots_im[turn * u * s->spread];
}

VECTORS static void step_of_two(const struct fourier *f, const struct step *s) {
  int64_t stride = s->stride;
  for (int64_t p = 0; p < s->turns; p++) {
    double wr, wi;
    const double *ar = s->from_re + p * stride, *ai = s->from_im + p * stride;
    const double *br = ar + s->turns * stride, *bi = ai + s->turns * stride;
    double *restrict yr = s->to_re + 2 * p * stride, *restrict yi = s->to_im + 2 * p * stride;
    step_root(f, s, p, 1, &wr, &wi);
#pragma GCC ivdep
    for (int64_t q = 0; q < stride; q++) {
      double dr = ar[q] - br[q], di = ai[q] - bi[q];
      yr[q] = ar[q] + br[q], yi[q] = ai[q] + bi[q];
      yr[q + stride] = dr * wr - di * wi, yi[q + stride] = dr * wi + di * wr;
    }
  }
}
VECTORS static void step_of_four(const struct fourier *f, const struct step *s) {
  int64_t part = s->turns * s->stride, stride = s->stride;
  double sign = s->sign;
  for (int64_t p = 0; p < s->turns; p++) {
    double wr[4], wi[4];
    const double *ar = s->from_re + p * stride, *ai = s->from_im + p * stride;
    double *restrict yr = s->to_re + 4 * p * stride, *restrict yi = s->to_im + 4 * p * stride;
    for (int u = 1; u < 4; u++)
      step_root(f, s, p, u, &wr[u], &wi[u]);
#pragma GCC ivdep
    for (int64_t q = 0; q < stride; q++) {
      double er = ar[q] + ar[q + 2 * part], ei = ai[q] + ai[q + 2 * part];
      double fr = ar[q] - ar[q + 2 * part], fi = ai[q] - ai[q + 2 * part];
      double gr = ar[q + part] + ar[q + 3 * part], gi = ai[q + part] + ai[q + 3 * part];
      double hr = sign * (ai[q + part] - ai[q + 3 * part]), hi = sign * (ar[q + 3 * part] - ar[q + part]);
      double r1 = fr + hr, i1 = fi + hi, r2 = er - gr, i2 = ei - gi, r3 = fr - hr, i3 = fi - hi;
      yr[q] = er + gr, yi[q] = ei + gi;
      yr[q + stride] = r1 * wr[1] - i1 * wi[1], yi[q + stride] = r1 * wi[1] + i1 * wr[1];
      yr[q + 2 * stride] = r2 * wr[2] - i2 * wi[2], yi[q + 2 * stride] = r2 * wi[2] + i2 * wr[2];
      yr[q + 3 * stride] = r3 * wr[3] - i3 * wi[3], yi[q + 3 * stride] = r3 * wi[3] + i3 * wr[3];
    }
  }
}
/* Of an odd radix: terms t and radix - t have the same cosines, and the other's sines. */
__attribute__((always_inline)) static inline void step_of_odd(const struct fourier *f, const struct step *s, int radix) {
  int64_t part = s->turns * s->stride, stride = s->stride, around = f->size / radix;
  double cosines[FOURIER_RADIX], sines[FOURIER_RADIX];
  for (int t = 0; t < radix; t++)
    cosines[t] = f->roots_re[t * around], sines[t] = -s->sign * f->roots_im[t * around];
  for (int64_t p = 0; p < s->turns; p++)
    for (int u = 0; u < radix; u++) {
      double wr, wi;
      const double *ar = s->from_re + p * stride, *ai = s->from_im + p * stride;
      double *restrict yr = s->to_re + (radix * p + u) * stride, *restrict yi = s->to_im + (radix * p + u) * stride;
      step_root(f, s, p, u, &wr, &wi);
      double c[FOURIER_RADIX], sine[FOURIER_RADIX];
      for (int t = 0; t < radix; t++)
        c[t] = cosines[t * u % radix], sine[t] = sines[t * u % radix];
#pragma GCC ivdep
      for (int64_t q = 0; q < stride; q++) {
        double r = ar[q], i = ai[q];
#pragma GCC unroll 8
        for (int t = 1; t <= FOURIER_RADIX / 2; t++)
          if (2 * t < radix) {
            int64_t at = q + t * part, other = q + (radix - t) * part;
            r += (ar[at] + ar[other]) * c[t] + (ai[at] - ai[other]) * sine[t];
            i += (ai[at] + ai[other]) * c[t] - (ar[at] - ar[other]) * sine[t];
          }
        yr[q] = r * wr - i * wi, yi[q] = r * wi + i * wr;
      }
    }
}

VECTORS static void step_of_three(const struct fourier *f, const struct step *s) { step_of_odd(f, s, 3); }
VECTORS static void step_of_five(const struct fourier *f, const struct step *s) { step_of_odd(f, s, 5); }
VECTORS static void step_of_seven(const struct fourier *f, const struct step *s) { step_of_odd(f, s, 7); }
VECTORS static void step_of_eleven(const struct fourier *f, const struct step *s) { step_of_odd(f, s, 11); }
VECTORS static void step_of_thirteen(const struct fourier *f, const struct step *s) { step_of_odd(f, s, 13); }
typedef void step_function(const struct fourier *f, const struct step *s);
static step_function *const steps[FOURIER_RADIX + 1] = {
  [2] = step_of_two,   [3] = step_of_three,   [4] = step_of_four,      [5] = step_of_five,
  [7] = step_of_seven, [11] = step_of_eleven, [13] = step_of_thirteen,
};

/* In place, through `other`. */
static void transform(const struct fourier *f, double *re, double *im, int lines, bool inverse) {
  struct step s = {.stride = lines, .spread = 1, .sign = inverse ? -1 : 1};
  int64_t left = f->size;
  double *to_re = f->other_re, *to_im = f->other_im, *from_re = re, *from_im = im;
  for (int i = 0; i < f->step_count; i++) {
    int radix = f->steps[i];
    left /= radix;
    s.from_re = from_re, s.from_im = from_im, s.to_re = to_re, s.to_im = to_im;
    s.turns = left;
    steps[radix](f, &s);
    s.stride *= radix;
    s.spread *= radix;
    double *swap_re = from_re, *swap_im = from_im;
    from_re = to_re, from_im = to_im;
    to_re = swap_re, to_im = swap_im;
  }
  if (from_re != re) {
    memcpy(re, from_re, sizeof *re * (size_t)(f->size * lines));
    memcpy(im, from_im, sizeof *im * (size_t)(f->size * lines));
  }
}

/* ---- what a length needs ---- */

/* From few angles: each is the product of one of a coarse table and one of a fine one. */
static void make_roots(double *re, double *im, int64_t n) {
  double fine_re[ROOTS_BLOCK], fine_im[ROOTS_BLOCK];
  for (int64_t k = 0; k < ROOTS_BLOCK; k++) {
    double angle = 2 * M_PI * (double)k / (double)n;
    fine_re[k] = cos(angle), fine_im[k] = -sin(angle);
  }
  for (int64_t from = 0; from < n; from += ROOTS_BLOCK) {
    double angle = 2 * M_PI * (double)from / (double)n, c = cos(angle), s = -sin(angle);
    for (int64_t k = 0; k < ROOTS_BLOCK && from + k < n; k++) {
      re[from + k] = c * fine_re[k] - s * fine_im[k];
      im[from + k] = c * fine_im[k] + s * fine_re[k];
    }
  }
}
/* Radices of the length; what is left of it has other factors. */
static int64_t find_steps(struct fourier *f, int64_t n) {
  f->step_count = 0;
  for (int radix = 4; n > 1 && radix <= FOURIER_RADIX; radix = radix == 4 ? 2 : radix == 2 ? 3 : radix + 2)
    for (; n % radix == 0; n /= radix)
      f->steps[f->step_count++] = radix;
  return n;
}

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
  transform(f, f->filter_re, f->filter_im, 1, false);
}

status fourier_init(struct fourier *f, int64_t n, bool inverse, int lines) {
  *f = (struct fourier){.n = n, .size = n, .inverse = inverse};
  f->is_chirped = n > 1 && find_steps(f, n) > 1;
  if (f->is_chirped) {
    for (f->size = 1; f->size < 2 * n - 1;)
      f->size *= 2;
    find_steps(f, f->size);
  }
  int64_t all = f->size * lines, elements = 2 * f->size + 2 * all + (f->is_chirped ? 2 * n + 2 * f->size + 2 * all : 0);
  f->roots_re = calloc((size_t)elements + 1, sizeof(double));
  if (!f->roots_re)
    return fail(RESOURCE_EXHAUSTED, "no memory for a transform of %lld elements", (long long)n);
  f->roots_im = f->roots_re + f->size;
  f->other_re = f->roots_im + f->size;
  f->other_im = f->other_re + all;
  make_roots(f->roots_re, f->roots_im, f->size);
  if (!f->is_chirped)
    return OK;
  f->re = f->other_im + all;
  f->im = f->re + all;
  f->chirp_re = f->im + all;
  f->chirp_im = f->chirp_re + n;
  f->filter_re = f->chirp_im + n;
  f->filter_im = f->filter_re + f->size;
  make_chirp(f);
  return OK;
}

void fourier_deinit(struct fourier *f) { free(f->roots_re); }

/* ---- a transform ---- */

/* Each element of all lines times one number, of so many elements. */
static void scale(double *to_re, double *to_im, const double *re, const double *im, const double *by_re, const double *by_im, int64_t count,
                  int lines) {
  for (int64_t k = 0; k < count; k++)
    for (int64_t at = k * lines; at < (k + 1) * lines; at++) {
      double r = re[at] * by_re[k] - im[at] * by_im[k], i = re[at] * by_im[k] + im[at] * by_re[k];
      to_re[at] = r, to_im[at] = i;
    }
}
void fourier_run(struct fourier *f, double *re, double *im, int lines) {
  if (!f->is_chirped) {
    transform(f, re, im, lines, f->inverse);
    return;
  }
  int64_t count = f->n * lines, all = f->size * lines;
  scale(f->re, f->im, re, im, f->chirp_re, f->chirp_im, f->n, lines);
  memset(f->re + count, 0, sizeof(double) * (size_t)(all - count));
  memset(f->im + count, 0, sizeof(double) * (size_t)(all - count));
  transform(f, f->re, f->im, lines, false);
  scale(f->re, f->im, f->re, f->im, f->filter_re, f->filter_im, f->size, lines);
  transform(f, f->re, f->im, lines, true);
  scale(re, im, f->re, f->im, f->chirp_re, f->chirp_im, f->n, lines);
  for (int64_t at = 0; at < count; at++)
    re[at] /= (double)f->size, im[at] /= (double)f->size;
}
