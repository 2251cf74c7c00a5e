/* bench_gemm: float32 contractions as the CPU target compiles them, on one core, beside that core's measured peak.
 *
 *   ninja bench_gemm && ./bench_gemm         # `./bench_gemm peak`: the peak alone
 *
 * The peak is what independent fused multiply-adds in registers reach, measured in the same run; a row's figure is the best
 * of many runs, packing included. */
#include <stdio.h>
#include <string.h>

#include "bench/kernel_timer.h"

/* ---- kernels ---- */

struct bench_case {
  const char *form; /* which factors are transposed; "conv..." */
  int64_t m, k, n;  /* of a convolution: pixels of a side, channels in, channels out */
};
static const struct bench_case cases[] = {
  {"nn", 128, 128, 128},     {"nn", 256, 256, 256},     {"nn", 512, 512, 512},   {"nn", 1024, 1024, 1024}, {"nn", 500, 500, 500},
  {"nt", 512, 512, 512},     {"tn", 512, 512, 512},     {"tt", 512, 512, 512},   {"nt", 1024, 1024, 1024}, {"tn", 1024, 1024, 1024},
  {"nn", 32, 784, 128},      {"tn", 784, 32, 128},      {"nt", 32, 128, 784},    {"nn", 100, 784, 10},     {"nn", 16, 1024, 1024},
  {"nn", 1, 1024, 1024},     {"nt", 1, 1024, 1024},     {"nn", 1024, 1024, 1},   {"conv", 56, 64, 64},     {"conv", 14, 256, 256},
  {"conv dx", 28, 128, 128}, {"conv dw", 28, 128, 128}, {"nn", 64, 3136, 1024},  {"nt", 64, 1024, 3136},   {"tn", 3136, 64, 1024},
  {"nn", 256, 2048, 2048},   {"nt", 256, 2048, 2048},   {"tn", 2048, 256, 2048}, {"nn", 64, 512, 512},     {"nn", 33, 512, 512},
  {"nn", 64, 1024, 1024},    {"conv", 32, 16, 16},      {"conv dx", 32, 16, 16}, {"conv dw", 32, 16, 16},  {"conv", 16, 32, 32},
  {"conv dw", 16, 32, 32},   {"conv", 14, 32, 64},      {"conv dx", 14, 32, 64}, {"conv dw", 14, 32, 64},
};
#define CASES (sizeof cases / sizeof *cases)
#define BATCH 4 /* images */

static char *product_text(struct arena *arena, const struct bench_case *c, size_t number) {
  bool ta = c->form[0] == 't', tb = c->form[1] == 't';
  return arena_printf(arena,
                      "kernel k%zu(in a: f32[%lld,%lld], in b: f32[%lld,%lld], out c: f32[%lld,%lld]) { par i0 < %lld { par i1 < %lld {"
                      " var v0: f32 = 0:f32 red i2 < %lld { v0 = add(v0, mul(a[%s], b[%s])) } c[i0,i1] = v0 } } }",
                      number, (long long)(ta ? c->k : c->m), (long long)(ta ? c->m : c->k), (long long)(tb ? c->n : c->k),
                      (long long)(tb ? c->k : c->n), (long long)c->m, (long long)c->n, (long long)c->m, (long long)c->n, (long long)c->k,
                      ta ? "i2,i0" : "i0,i2", tb ? "i1,i2" : "i2,i1");
}
/* 3 x 3, padding to the same size; the image's element of a window position, or 0 */
static char *conv_text(struct arena *arena, const struct bench_case *c, size_t number) {
  long long s = c->m, ci = c->k, co = c->n;
  const char *guard =
    "select(and(and(le(0, %%0), lt(%%0, %lld)), and(le(0, %%1), lt(%%1, %lld))), a[%s,min(max(%%0, 0), %lld),min(max(%%1, 0), "
    "%lld),%s], 0:f32)";
  bool dx = strcmp(c->form, "conv dx") == 0, dw = strcmp(c->form, "conv dw") == 0;
  char load[400];
  snprintf(load, sizeof load, guard, s, s, dw ? "i4" : "i0", s - 1, s - 1, dw ? "i2" : "i6");
  if (dw)
    return arena_printf(
      arena,
      "kernel k%zu(in a: f32[%d,%lld,%lld,%lld], in b: f32[%d,%lld,%lld,%lld], out c: f32[3,3,%lld,%lld]) { par i0 < 3 { par i1 < 3 {"
      " par i2 < %lld { par i3 < %lld { var v0: f32 = 0:f32 red i4 < %d { red i5 < %lld { red i6 < %lld {"
      " %%0 = add(i5, sub(i0, 1)) %%1 = add(i6, sub(i1, 1)) v0 = add(v0, mul(%s, b[i4,i5,i6,i3])) } } } c[i0,i1,i2,i3] = v0 } } } } }",
      number, BATCH, s, s, ci, BATCH, s, s, co, ci, co, ci, co, BATCH, s, s, load);
  return arena_printf(
    arena,
    "kernel k%zu(in a: f32[%d,%lld,%lld,%lld], in b: f32[3,3,%lld,%lld], out c: f32[%d,%lld,%lld,%lld]) { par i0 < %d { par i1 < %lld {"
    " par i2 < %lld { par i3 < %lld { var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { red i6 < %lld {"
    " %%0 = %s(i1, sub(i4, 1)) %%1 = %s(i2, sub(i5, 1)) v0 = add(v0, mul(%s, b[i4,i5,%s])) } } } c[i0,i1,i2,i3] = v0 } } } } }",
    number, BATCH, s, s, ci, dx ? co : ci, dx ? ci : co, BATCH, s, s, co, BATCH, s, s, co, ci, dx ? "sub" : "add", dx ? "sub" : "add", load,
    dx ? "i3,i6" : "i6,i3");
}
static double case_flops(const struct bench_case *c) {
  double product = 2.0 * (double)c->m * (double)c->k * (double)c->n;
  return c->form[0] == 'c' ? product * (double)c->m * 9 * BATCH : product;
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "peak") == 0) {
    printf("peak of one core: %.0f GFLOP/s\n", measure_peak());
    return 0;
  }
  struct arena arena;
  arena_init(&arena);
  struct kernel *kernels[CASES];
  for (size_t i = 0; i < CASES; i++) {
    char *text = cases[i].form[0] == 'c' ? conv_text(&arena, &cases[i], i) : product_text(&arena, &cases[i], i);
    if (kernel_parse(text, &arena, &kernels[i]) != OK) {
      fprintf(stderr, "%s\n%s\n", text, status_text());
      return 1;
    }
  }
  double start = seconds_now();
  const struct kernel_code *code = compile_kernels(kernels, CASES);
  if (!code)
    return 1;
  printf("%u kernels compiled in %.2f s\n", (unsigned)CASES, seconds_now() - start);
  double peak = measure_peak();
  printf("peak of one core: %.0f GFLOP/s\n\n%-8s %6s %6s %6s %12s %10s %7s\n", peak, "form", "m", "k", "n", "us", "GFLOP/s", "of peak");
  for (size_t i = 0; i < CASES; i++) {
    double seconds;
    best_seconds(kernels[i], &code[i], 1, NULL, 1, 0.3, &seconds);
    double rate = case_flops(&cases[i]) / seconds * 1e-9;
    printf("%-8s %6lld %6lld %6lld %12.1f %10.1f %6.0f%%\n", cases[i].form, (long long)cases[i].m, (long long)cases[i].k,
           (long long)cases[i].n, seconds * 1e6, rate, 100 * rate / peak);
  }
  arena_deinit(&arena);
  return 0;
}
