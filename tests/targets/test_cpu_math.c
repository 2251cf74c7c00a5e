/* How far the written-out float32 functions are from the true values, over floats of every size. */
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
  double ulps; /* allowed */
} functions[] = {
  {SCALAR_EXP, exp, 1.5}, {SCALAR_EXPM1, expm1, 2.5}, {SCALAR_LOG, log, 1.5},  {SCALAR_LOG1P, log1p, 2}, {SCALAR_TANH, tanh, 3},
  {SCALAR_ERF, erf, 8},   {SCALAR_SIN, sin, 1.01},    {SCALAR_COS, cos, 1.01}, {SCALAR_TAN, tan, 1.01},
};
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

static void measure(const char *cpu) {
  struct arena arena;
  arena_init(&arena);
  struct kernel *kernels[FUNCTIONS];
  for (size_t i = 0; i < FUNCTIONS; i++) {
    char *text = arena_printf(&arena, "kernel f%zu(in a: f32[%d], out b: f32[%d]) { par i0 < %d { b[i0] = %s(a[i0]) } }", i, COUNT, COUNT,
                              COUNT, scalar_text(functions[i].op));
    assert_int_equal(kernel_parse(text, &arena, &kernels[i]), OK);
  }
  struct compiled c = compile_kernels(kernels, FUNCTIONS, cpu);
  float *in = aligned_block(4 * COUNT), *out = aligned_block(4 * COUNT);
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t bits = i * ((UINT32_MAX / COUNT) + 1) + i % 8191;
    memcpy(&in[i], &bits, 4);
  }
  for (size_t i = 0; i < FUNCTIONS; i++) {
    void *buffers[2] = {in, out};
    run_compiled(&c.code[i], buffers, NULL);
    double worst = 0;
    float where = 0;
    for (uint32_t n = 0; n < COUNT; n++) {
      if (fabsf(in[n]) < 0x1p-126f && in[n] != 0)
        continue; /* denormals count as zero */
      double exact = functions[i].exact((double)in[n]), error = fabs(exact) < 0x1p-126 ? 0 : ulps_between(out[n], exact);
      if (error > worst) {
        worst = error;
        where = in[n];
      }
    }
    print_message("%-6s %.2f ulp at %g\n", scalar_text(functions[i].op), worst, (double)where);
    if (worst > functions[i].ulps)
      fail_msg("%s: %.2f ulp at %a, %.1f are allowed", scalar_text(functions[i].op), worst, (double)where, functions[i].ulps);
  }
  free(in);
  free(out);
  dlclose(c.handle);
  arena_deinit(&arena);
}

static void functions_are_close_to_the_truth(void **state) {
  (void)state;
  measure("native");
}
static void functions_are_close_without_fused_arithmetic(void **state) {
  (void)state;
  measure("x86-64");
}

int main(void) {
  _mm_setcsr(_mm_getcsr() | 0x8040);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(functions_are_close_to_the_truth),
    cmocka_unit_test(functions_are_close_without_fused_arithmetic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
