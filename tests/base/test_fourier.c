/* test_fourier.c: transforms of all kinds of lengths beside the sum that they are, of one line and of several at once. */
#include "base/fourier.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support/test.h"

static double noise(int64_t i) { return sin((double)(i * i % 977) * 1.7 + (double)i); }

/* The sum itself. */
static void expect(int64_t n, bool inverse, int lines, const double *in, int line, int64_t k, double *re, double *im) {
  *re = *im = 0;
  for (int64_t i = 0; i < n; i++) {
    double angle = (inverse ? 2 : -2) * M_PI * (double)(i * k % n) / (double)n, c = cos(angle), s = sin(angle);
    double r = in[2 * (i * lines + line)], m = in[2 * (i * lines + line) + 1];
    *re += r * c - m * s;
    *im += r * s + m * c;
  }
}
static void check(int64_t n, bool inverse, int lines) {
  struct fourier f;
  int64_t all = n * lines;
  double *in = calloc((size_t)(4 * all), sizeof *in), *re = in + 2 * all, *im = re + all;
  for (int64_t i = 0; i < all; i++) {
    re[i] = in[2 * i] = noise(2 * i);
    im[i] = in[2 * i + 1] = noise(2 * i + 1);
  }
  assert_int_equal(fourier_init(&f, n, inverse, FOURIER_LINES), OK);
  fourier_run(&f, re, im, lines);
  for (int line = 0; line < lines; line++)
    for (int64_t k = 0; k<n; k += n> 100 ? 7 : 1) {
      double r, m;
      expect(n, inverse, lines, in, line, k, &r, &m);
      if (fabs(r - re[k * lines + line]) > 1e-12 * (double)n || fabs(m - im[k * lines + line]) > 1e-12 * (double)n)
        test_fail("length %d, line %d of %d, %d: %g %g, not %g %g", (int)n, line, lines, (int)k, re[k * lines + line], im[k * lines + line],
                  r, m);
    }
  fourier_deinit(&f);
  free(in);
}

static void each_length_gives_its_sum(void **state) {
  (void)state;
  static const int64_t lengths[] = {97, 128, 143, 210, 211, 224, 1000, 1001, 1024};
  for (int64_t n = 1; n <= 64; n++)
    for (int lines = 1; lines <= FOURIER_LINES; lines += 3)
      check(n, n % 2, lines);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (int inverse = 0; inverse < 2; inverse++)
      check(lengths[i], inverse, inverse ? 1 : FOURIER_LINES);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_length_gives_its_sum)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
