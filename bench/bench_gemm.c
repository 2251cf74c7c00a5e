/* bench_gemm: float32 products as they are scheduled and compiled, on one core, beside that core's measured peak.
 *
 *   ninja bench_gemm && ./bench_gemm         # `./bench_gemm peak`: the peak alone
 *
 * Convolutions are in bench_convs.py. The peak is what independent fused multiply-adds in registers reach, measured in the same run; a
 * row's figure is the best of many runs, packing included. */
#include <stdio.h>
#include <string.h>

#include "bench/kernel_timer.h"
#include "compiler/schedule/choose.h"
#include "ir/schedule/collapse.h"

/* ---- kernels ---- */

struct bench_case {
  const char *form; /* which factors are transposed */
  int64_t m, k, n;
};
static const struct bench_case cases[] = {
  {"nn", 128, 128, 128},  {"nn", 256, 256, 256},   {"nn", 512, 512, 512},   {"nn", 1024, 1024, 1024}, {"nn", 500, 500, 500},
  {"nt", 512, 512, 512},  {"tn", 512, 512, 512},   {"tt", 512, 512, 512},   {"nt", 1024, 1024, 1024}, {"tn", 1024, 1024, 1024},
  {"nn", 32, 784, 128},   {"tn", 784, 32, 128},    {"nt", 32, 128, 784},    {"nn", 100, 784, 10},     {"nn", 16, 1024, 1024},
  {"nn", 1, 1024, 1024},  {"nt", 1, 1024, 1024},   {"nn", 1024, 1024, 1},   {"nn", 64, 3136, 1024},   {"nt", 64, 1024, 3136},
  {"tn", 3136, 64, 1024}, {"nn", 256, 2048, 2048}, {"nt", 256, 2048, 2048}, {"tn", 2048, 256, 2048},  {"nn", 64, 512, 512},
  {"nn", 33, 512, 512},   {"nn", 64, 1024, 1024},
};
#define CASES (sizeof cases / sizeof *cases)

static char *product_text(struct arena *arena, const struct bench_case *c, size_t number) {
  bool ta = c->form[0] == 't', tb = c->form[1] == 't';
  return arena_printf(arena,
                      "kernel k%zu(in a: f32[%lld,%lld], in b: f32[%lld,%lld], out c: f32[%lld,%lld]) { par i0 < %lld { par i1 < %lld {"
                      " var v0: f32 = 0:f32 red i2 < %lld { v0 = add(v0, mul(a[%s], b[%s])) } c[i0,i1] = v0 } } }",
                      number, (long long)(ta ? c->k : c->m), (long long)(ta ? c->m : c->k), (long long)(tb ? c->n : c->k),
                      (long long)(tb ? c->k : c->n), (long long)c->m, (long long)c->n, (long long)c->m, (long long)c->n, (long long)c->k,
                      ta ? "i2,i0" : "i0,i2", tb ? "i1,i2" : "i2,i1");
}
/* As the passes `collapse` and `schedule` make it; NULL: it cannot be. */
static struct kernel *scheduled(const char *text, struct arena *arena) {
  struct kernel *k, *stepped;
  const char *steps;
  if (kernel_parse(text, arena, &k) != OK)
    return NULL;
  k = kernel_collapse(k, NULL, arena);
  return schedule_make(k, machine_find("native"), NULL, arena, &steps, &stepped) != OK ? NULL : stepped ? stepped : k;
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
    char *text = product_text(&arena, &cases[i], i);
    kernels[i] = scheduled(text, &arena);
    if (!kernels[i]) {
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
    double rate = 2.0 * (double)(cases[i].m * cases[i].k * cases[i].n) / seconds * 1e-9;
    printf("%-8s %6lld %6lld %6lld %12.1f %10.1f %6.0f%%\n", cases[i].form, (long long)cases[i].m, (long long)cases[i].k,
           (long long)cases[i].n, seconds * 1e6, rate, 100 * rate / peak);
  }
  arena_deinit(&arena);
  return 0;
}
