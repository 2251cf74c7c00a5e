/* How far the written-out functions are from the true values, over numbers of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include "tests/support/kernel_runner.h"

#include <cmocka.h>

static const struct function {
  enum scalar_op op;
  double (*exact)(double);
  double ulps;      /* allowed */
  double low, high; /* the arguments looked at; both 0: all */
} functions[] = {
  {SCALAR_EXP, exp, 1.5, 0, 0},   {SCALAR_EXPM1, expm1, 2.5, 0, 0}, {SCALAR_LOG, log, 1.5, 0, 0},   {SCALAR_LOG1P, log1p, 2, 0, 0},
  {SCALAR_TANH, tanh, 3, 0, 0},   {SCALAR_ERF, erf, 8, 0, 0},       {SCALAR_SIN, sin, 1.01, 0, 0},  {SCALAR_COS, cos, 1.01, 0, 0},
  {SCALAR_SINH, sinh, 3, 0, 0},   {SCALAR_COSH, cosh, 3, 0, 0},     {SCALAR_ASINH, asinh, 3, 0, 0}, {SCALAR_ACOSH, acosh, 4, 0, 0},
  {SCALAR_ATANH, atanh, 3, 0, 0}, {SCALAR_TAN, tan, 1.01, 0, 0},    {SCALAR_ASIN, asin, 3, 0, 0},   {SCALAR_ACOS, acos, 2, 0, 0},
  {SCALAR_ATAN, atan, 2.5, 0, 0},
};
static const struct function short_functions[] = {{SCALAR_EXP, exp, 1.5, -87.3, 88.3}, {SCALAR_TANH, tanh, 6, 1e-30, 1e30}};
#define FUNCTIONS (sizeof functions / sizeof *functions)
#define COUNT (1 << 19)

static double ulps_between(float ours, double exact) {
  float rounded = (float)exact;
  if (isnan(exact) || isnan(ours))
    return isnan(exact) && isnan(ours) ? 0 : 1e9;
  if (isinf(rounded) || isinf(ours))
    return rounded == ours || fabs(exact) > 3.402e38 ? 0 : 1e9;
  double unit = ldexp(1, (int)fmax(-126, ilogb(exact)) - 23);
  return fabs((double)ours - exact) / unit;
}

static void parse_functions(const struct function *list, size_t count, struct arena *arena, struct kernel **out) {
  for (size_t i = 0; i < count; i++) {
    char *text = arena_printf(arena, "kernel f%zu(in a: f32[%d], out b: f32[%d]) { par i0 < %d { b[i0] = %s(a[i0]) } }", i, COUNT, COUNT,
                              COUNT, scalar_text(list[i].op));
    assert_int_equal(kernel_parse(text, arena, &out[i]), OK);
  }
}
/* Floats of every size. */
static float *spread_floats(void) {
  float *in = aligned_block(4 * COUNT);
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t bits = i * ((UINT32_MAX / COUNT) + 1) + i % 8191;
    memcpy(&in[i], &bits, 4);
  }
  return in;
}

static void compare(const struct function *f, const float *in, const float *out) {
  double worst = 0;
  float where = 0;
  for (uint32_t n = 0; n < COUNT; n++) {
    bool outside = f->high > f->low && !((double)in[n] >= f->low && (double)in[n] <= f->high);
    if (outside || (fabsf(in[n]) < 0x1p-126f && in[n] != 0))
      continue; /* denormals count as zero */
    double exact = f->exact((double)in[n]), error = fabs(exact) < 0x1p-126 ? 0 : ulps_between(out[n], exact);
    if (error > worst) {
      worst = error;
      where = in[n];
    }
  }
  print_message("%-6s %.2f ulp at %g\n", scalar_text(f->op), worst, (double)where);
  if (worst > f->ulps)
    fail_msg("%s: %.2f ulp at %a, %.1f are allowed", scalar_text(f->op), worst, (double)where, f->ulps);
}

static void measure(const struct function *list, size_t count, const struct target_options *options) {
  struct arena arena;
  arena_init(&arena);
  struct kernel *kernels[FUNCTIONS];
  parse_functions(list, count, &arena, kernels);
  struct compiled c = compile_kernels_with(kernels, (uint32_t)count, options);
  float *in = spread_floats(), *out = aligned_block(4 * COUNT);
  for (size_t i = 0; i < count; i++) {
    run_compiled(&c.code[i], (void *[]){in, out}, NULL);
    compare(&list[i], in, out);
  }
  free(in);
  free(out);
  dlclose(c.handle);
  arena_deinit(&arena);
}

static void functions_are_close_to_the_truth(void **state) {
  (void)state;
  measure(functions, FUNCTIONS, &(struct target_options){.cpu = "native"});
}
static void functions_are_close_without_fused_arithmetic(void **state) {
  (void)state;
  measure(functions, FUNCTIONS, &(struct target_options){.cpu = "x86-64"});
}
static void short_functions_are_close_where_they_are_meant(void **state) {
  (void)state;
  measure(short_functions, sizeof short_functions / sizeof *short_functions, &(struct target_options){.math = MATH_FAST});
}

/* Of float64: arguments of every size, and many near those of exp that are numbers. */
static void spread_doubles(double *in) {
  for (uint64_t i = 0; i < COUNT; i++) {
    uint64_t bits = i * (UINT64_MAX / COUNT + 1) + i % 8191 * 0x12345678901;
    memcpy(&in[i], &bits, sizeof bits);
    if (i % 2)
      in[i] = (double)(int64_t)(i - COUNT / 2) * (800.0 / (COUNT / 2)) + 1e-5 * (double)(i % 97);
  }
  const double special[] = {0,           -0.0,   1,      -1,     (double)INFINITY,       -(double)INFINITY,
                            (double)NAN, 709.78, 709.79, -745.2, 0x1.fffffffffffffp1023, 0x1p-1022};
  memcpy(in, special, sizeof special);
}
/* Those count as zero, and are equal to it where they are compared. */
static bool is_denormal(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits << 1 && !(bits << 1 >> 53);
}
static double double_ulps(double ours, long double exact) {
  if (isnan(exact) || isnan(ours))
    return isnan(exact) && isnan(ours) ? 0 : 1e9;
  if (isinf((double)exact) || isinf(ours))
    return (double)exact == ours ? 0 : 1e9;
  return (double)(fabsl((long double)ours - exact) / ldexpl(1, (int)fmaxl(-1022, ilogbl(exact)) - 52));
}
static void check_doubles(const char *name, long double (*exact)(long double), const double *in, const double *out) {
  double worst = 0, where = 0;
  for (int i = 0; i < COUNT; i++) {
    long double right = exact((long double)in[i]);
    double error = is_denormal(in[i]) || fabsl(right) < 0x1p-1021L ? 0 : double_ulps(out[i], right);
    if (error > worst)
      worst = error, where = in[i];
  }
  print_message("%-6s %.2f ulp at %g\n", name, worst, where);
  if (worst > 2)
    fail_msg("%s: %.2f ulp at %a", name, worst, where);
}
static void functions_of_doubles_are_close_to_the_truth(void **state) {
  (void)state;
  static const char *const cpus[] = {"native", "x86-64-v3", "x86-64"}, *const names[] = {"exp", "log", "tanh"};
  static long double (*const exact[])(long double) = {expl, logl, tanhl};
  struct arena arena;
  struct kernel *kernels[3];
  arena_init(&arena);
  for (int i = 0; i < 3; i++) {
    char *text =
      arena_printf(&arena, "kernel f(in a: f64[%d], out b: f64[%d]) { par i0 < %d { b[i0] = %s(a[i0]) } }", COUNT, COUNT, COUNT, names[i]);
    assert_int_equal(kernel_parse(text, &arena, &kernels[i]), OK);
  }
  double *in = aligned_block(8 * COUNT), *out = aligned_block(8 * COUNT);
  spread_doubles(in);
  for (int cpu = 0; cpu < 3; cpu++) {
    struct compiled code = compile_kernels(kernels, 3, cpus[cpu]);
    for (int i = 0; i < 3; i++) {
      run_compiled(&code.code[i], (void *[]){in, out}, NULL);
      check_doubles(names[i], exact[i], in, out);
    }
    dlclose(code.handle);
  }
  free(in);
  free(out);
  arena_deinit(&arena);
}

/* Pairs of floats of many sizes, and all of special ones. */
static void spread_pairs(float *y, float *x) {
  static const float special[] = {0, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 2e-38f, 1.5f, -0.3f};
  enum { SPECIALS = sizeof special / sizeof *special };
  for (int i = 0; i < COUNT; i++)
    x[i] = i % 3 ? y[(i * 7919ll + 13) % COUNT] : y[i] * (float)(i % 17 - 8) / 4;
  for (int i = 0; i < SPECIALS * SPECIALS; i++)
    y[i] = special[i / SPECIALS], x[i] = special[i % SPECIALS];
}
static void compare_angles(const float *y, const float *x, const float *out) {
  for (int i = 0; i < COUNT; i++) {
    if ((fabsf(x[i]) < 0x1p-100f && x[i] != 0) || (fabsf(y[i]) < 0x1p-100f && y[i] != 0))
      continue;
    double exact = atan2((double)y[i], (double)x[i]), error = fabs(exact) < 0x1p-120 ? 0 : ulps_between(out[i], exact);
    if (error > 3 || (exact == 0 && !signbit(exact) != !signbit(out[i])))
      fail_msg("atan2(%a, %a): %a, must be %a", (double)y[i], (double)x[i], (double)out[i], exact);
  }
}
static void angles_of_two_are_close_to_the_truth_and_strict_ones_alike_on_every_cpu(void **state) {
  (void)state;
  static const struct target_options options[] = {{.cpu = "native"},
                                                  {.cpu = "x86-64"},
                                                  {.cpu = "native", .math = MATH_STRICT},
                                                  {.cpu = "x86-64-v3", .math = MATH_STRICT},
                                                  {.cpu = "x86-64", .math = MATH_STRICT}};
  enum { STRICT = 2, OPTIONS = sizeof options / sizeof *options };
  struct arena arena;
  struct kernel *k;
  arena_init(&arena);
  char *text =
    arena_printf(&arena, "kernel f(in a: f32[%d], in b: f32[%d], out c: f32[%d]) { par i0 < %d { c[i0] = atan2(a[i0], b[i0]) } }", COUNT,
                 COUNT, COUNT, COUNT);
  assert_int_equal(kernel_parse(text, &arena, &k), OK);
  float *y = spread_floats(), *x = aligned_block(4 * COUNT), *out[OPTIONS];
  spread_pairs(y, x);
  for (int i = 0; i < OPTIONS; i++) {
    struct compiled code = compile_kernels_with(&k, 1, &options[i]);
    out[i] = aligned_block(4 * COUNT);
    run_compiled(&code.code[0], (void *[]){y, x, out[i]}, NULL);
    compare_angles(y, x, out[i]);
    if (i > STRICT && memcmp(out[STRICT], out[i], 4 * COUNT) != 0)
      fail_msg("atan2: other bits on %s than on %s", options[i].cpu, options[STRICT].cpu);
    dlclose(code.handle);
  }
  for (int i = 0; i < OPTIONS; i++)
    free(out[i]);
  free(y);
  free(x);
  arena_deinit(&arena);
}

static void strict_functions_have_the_same_bits_on_every_cpu(void **state) {
  (void)state;
  static const char *const cpus[] = {"native", "x86-64-v3", "x86-64"};
  struct arena arena;
  arena_init(&arena);
  struct kernel *kernels[FUNCTIONS];
  parse_functions(functions, FUNCTIONS, &arena, kernels);
  float *in = spread_floats(), *out[3] = {aligned_block(4 * COUNT), aligned_block(4 * COUNT), aligned_block(4 * COUNT)};
  struct compiled c[3];
  for (int i = 0; i < 3; i++)
    c[i] = compile_kernels_with(kernels, FUNCTIONS, &(struct target_options){.cpu = cpus[i], .math = MATH_STRICT});
  for (size_t f = 0; f < FUNCTIONS; f++)
    for (int i = 0; i < 3; i++) {
      run_compiled(&c[i].code[f], (void *[]){in, out[i]}, NULL);
      if (memcmp(out[0], out[i], 4 * COUNT) != 0)
        fail_msg("%s: other bits on %s than on %s", scalar_text(functions[f].op), cpus[i], cpus[0]);
    }
  for (int i = 0; i < 3; i++) {
    dlclose(c[i].handle);
    free(out[i]);
  }
  free(in);
  arena_deinit(&arena);
}

int main(void) {
  _mm_setcsr(_mm_getcsr() | 0x8040);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(functions_are_close_to_the_truth),
    cmocka_unit_test(functions_are_close_without_fused_arithmetic),
    cmocka_unit_test(functions_of_doubles_are_close_to_the_truth),
    cmocka_unit_test(short_functions_are_close_where_they_are_meant),
    cmocka_unit_test(angles_of_two_are_close_to_the_truth_and_strict_ones_alike_on_every_cpu),
    cmocka_unit_test(strict_functions_have_the_same_bits_on_every_cpu),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
