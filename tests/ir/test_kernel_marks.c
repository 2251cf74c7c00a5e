/* Scheduled kernels: the text of marks, what the verifier refuses, and that the evaluator runs them as plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ir/kernel/kernel.h"

#include <cmocka.h>

/* relu(a * b + c) of few rows: tiles of 4 x 8 in registers. */
static const char product[] = "kernel few(in a: f32[8,n0], in b: f32[n0,20], in c: f32[20], out d: f32[8,20]) sizes 1 {\n"
                              "  par no < 3 tasks {\n"
                              "    par mo < 2 {\n"
                              "      buffer e: f32[4,8] in register\n"
                              "      par mi < 4 unroll {\n"
                              "        par ni < min(8, sub(20, mul(no, 8))) lanes 8 {\n"
                              "          e[mi,ni] = 0:f32\n"
                              "        }\n"
                              "      }\n"
                              "      red k < n0 {\n"
                              "        fetch b[add(k, 16),mul(no, 8)]\n"
                              "        par mi < 4 unroll {\n"
                              "          par ni < min(8, sub(20, mul(no, 8))) lanes 8 {\n"
                              "            e[mi,ni] = fma(a[add(mul(mo, 4), mi),k], b[k,add(mul(no, 8), ni)], e[mi,ni])\n"
                              "          }\n"
                              "        }\n"
                              "      }\n"
                              "      par mi < 4 unroll {\n"
                              "        par ni < min(8, sub(20, mul(no, 8))) lanes 8 {\n"
                              "          %0 = add(mul(no, 8), ni)\n"
                              "          d[add(mul(mo, 4), mi),%0] = max(add(e[mi,ni], c[%0]), 0:f32)\n"
                              "        }\n"
                              "      }\n"
                              "    }\n"
                              "  }\n"
                              "}\n";

static const char *const texts[] = {
  product,
  /* two variants, names that are also names of buffers, loops without one between them, buffers numbered as they appear */
  "kernel variants(in a: f32[n0], out b: f32[n0]) sizes 1 {\n"
  "  if lt(n0, 64) {\n"
  "    par a < n0 {\n"
  "      buffer c: f32[] in stack\n"
  "      c[] = a[a]\n"
  "      b[a] = c[]\n"
  "    }\n"
  "  } else {\n"
  "    par a < floordiv(n0, 2) tasks {\n"
  "      par i0 < 2 unroll {\n"
  "        buffer d: f32[1,4] in stack\n"
  "        d[0,2] = a[add(mul(a, 2), i0)]\n"
  "        b[add(mul(a, 2), i0)] = d[0,2]\n"
  "      }\n"
  "    }\n"
  "    par i1 < floormod(n0, 2) {\n"
  "      %0 = add(sub(n0, 1), i1)\n"
  "      b[%0] = a[%0]\n"
  "    }\n"
  "  }\n"
  "}\n",
  "kernel vectors(in a: f32[n0,n1], out b: f32[n0]) sizes 2 {\n"
  "  par i0 < n0 together 6 {\n"
  "    var v0: f32 = 0:f32\n"
  "    red i1 < n1 vectors 16 {\n"
  "      v0 = add(v0, a[i0,i1])\n"
  "    }\n"
  "    b[i0] = v0\n"
  "  }\n"
  "}\n",
};

static struct kernel *parsed(const char *text, struct arena *arena) {
  struct kernel *k = NULL;
  if (kernel_parse(text, arena, &k) != OK)
    fail_msg("%s: %s", text, status_text());
  return k;
}

static void printing_what_was_parsed_gives_the_text(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct arena arena;
    arena_init(&arena);
    assert_string_equal(kernel_print(parsed(texts[i], &arena), &arena), texts[i]);
    arena_deinit(&arena);
  }
}

static void marks_change_the_hash(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  const struct kernel *plain = parsed("kernel x(out a: i64[8]) { par m < 8 { a[m] = m } }", &arena);
  const struct kernel *other = parsed("kernel x(out a: i64[8]) { par n < 8 { a[n] = n } }", &arena);
  const struct kernel *lanes = parsed("kernel x(out a: i64[8]) { par m < 8 lanes 8 { a[m] = m } }", &arena);
  const struct kernel *wide = parsed("kernel x(out a: i64[8]) { par m < 8 lanes 16 { a[m] = m } }", &arena);
  assert_true(kernel_hash(plain) != kernel_hash(other));
  assert_true(kernel_hash(plain) != kernel_hash(lanes));
  assert_true(kernel_hash(lanes) != kernel_hash(wide));
  arena_deinit(&arena);
}

static void a_scheduled_product_is_the_product(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  const struct kernel *plain = parsed("kernel all(in a: f32[8,n0], in b: f32[n0,20], in c: f32[20], out d: f32[8,20]) sizes 1 {"
                                      "  par i0 < 8 { par i1 < 20 { var v0: f32 = 0:f32"
                                      "    red i2 < n0 { v0 = fma(a[i0,i2], b[i2,i1], v0) }"
                                      "    d[i0,i1] = max(add(v0, c[i1]), 0:f32) } } }",
                                      &arena);
  const struct kernel *few = parsed(product, &arena);
  float a[8 * 7], b[7 * 20], c[20], expected[8 * 20], got[8 * 20];
  for (int i = 0; i < 8 * 7; i++)
    a[i] = (float)(i % 11) * 0.37f - 1.5f;
  for (int i = 0; i < 7 * 20; i++)
    b[i] = (float)(i % 13) * 0.21f - 1.1f;
  for (int i = 0; i < 20; i++)
    c[i] = (float)i * 0.1f - 1;
  int64_t sizes[] = {7};
  assert_int_equal(kernel_eval(plain, (void *[]){a, b, c, expected}, sizes), OK);
  assert_int_equal(kernel_eval(few, (void *[]){a, b, c, got, NULL}, sizes), OK);
  assert_memory_equal(got, expected, sizeof got);
  arena_deinit(&arena);
}

static void what_was_not_stored_is_an_error(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  const struct kernel *k = parsed("kernel x(out a: f32[3]) { par m < 3 { buffer b: f32[2] in register"
                                  "  if lt(m, 1) { b[0] = 1:f32 }"
                                  "  a[m] = b[0] } }",
                                  &arena);
  float out[3];
  assert_int_equal(kernel_eval(k, (void *[]){out, NULL}, NULL), INTERNAL);
  assert_non_null(strstr(status_text(), "not stored"));
  assert_true(out[0] == 1);
  arena_deinit(&arena);
}

static void fetching_out_of_bounds_does_nothing(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  const struct kernel *k = parsed("kernel x(in a: f32[3], out b: f32[3]) { par m < 3 { fetch a[add(m, 16)] b[m] = a[m] } }", &arena);
  float in[3] = {1, 2, 3}, out[3];
  assert_int_equal(kernel_eval(k, (void *[]){in, out}, NULL), OK);
  assert_memory_equal(in, out, sizeof in);
  arena_deinit(&arena);
}

/* 1e8 drowns what is smaller, unless that is added up in a lane of its own; -0 has it that a sum begins with nothing. */
static void sums_are_split_over_the_lanes_of_their_vectors(void **state) {
  (void)state;
  static const char *const loops[] = {"red i0 < 6 {", "red i0 < 6 vectors 2 {", "red i0 < 3 { red i1 < 2 vectors 2 {"};
  static const float expected[] = {0, 2, 2};
  float in[6] = {1e8f, 1, 0, 1, -1e8f, 0}, out;
  for (int i = 0; i < 3; i++) {
    struct arena arena;
    arena_init(&arena);
    const char *index = i < 2 ? "i0" : "add(mul(i0, 2), i1)", *end = i < 2 ? "" : "}";
    const struct kernel *k = parsed(arena_printf(&arena,
                                                 "kernel x(in a: f32[6], out b: f32[]) { var v0: f32 = -0x0p+0:f32 %s "
                                                 "v0 = add(v0, a[%s]) } %s b[] = v0 }",
                                                 loops[i], index, end),
                                    &arena);
    assert_int_equal(kernel_verify(k), OK);
    assert_int_equal(kernel_eval(k, (void *[]){in, &out}, NULL), OK);
    assert_true(out == expected[i]);
    arena_deinit(&arena);
  }
}

static const struct mistake {
  const char *text, *what;
} mistakes[] = {
  {"kernel x(out a: f32[8]) { seq m < 8 vectors 8 { a[m] = 1:f32 } }", "vectors"},
  {"kernel x(out a: f32[8]) { par m < 8 vectors 6 { a[m] = 1:f32 } }", "width"},
  {"kernel x(out a: f32[8]) { par m < 8 vectors { a[m] = 1:f32 } }", "expected a number"},
  {"kernel x(out a: f32[8]) { par m < 8 vectors 1 { a[m] = 1:f32 } }", "width"},
  {"kernel x(in a: f32[8], out b: f32[8]) { par m < 8 vectors 8 { fetch a[m] b[m] = a[m] } }", "alike"},
  {"kernel x(in a: f32[8], out b: f32[8]) { par m < 8 vectors 8 { buffer c: f32[8] in stack c[m] = a[m] b[m] = c[m] } }", "alike"},
  {"kernel x(out a: f32[8]) { par m < 8 vectors 0 { a[m] = 1:f32 } }", "width"},
  {"kernel x(out a: f32[8]) { par m < 8 vectors 8 { a[0] = 1:f32 } }", "do not run alike"},
  {"kernel x(out a: f32[8,8]) { par m < 8 vectors 8 { par n < 8 vectors 8 { a[m,n] = 1:f32 } } }", "in lanes"},
  {"kernel x(out a: f32[8,8]) { par m < 8 vectors 8 { par n < m { a[m,n] = 1:f32 } } }", "do not run alike"},
  {"kernel x(in a: f32[8], out b: f32[]) { var v0: f32 = 0:f32 red m < 8 vectors 8 { v0 = sub(a[m], v0) } b[] = v0 }", "alike"},
  {"kernel x(in a: str[8], out b: bool[8]) { par m < 8 vectors 8 { b[m] = eq(a[m], a[0]) } }", "alike"},
  {"kernel x(out a: f32[8]) { par m < 8 together 17 { a[m] = 1:f32 } }", "width"},
  {"kernel x(out a: f32[8]) { par m < 8 together 1 { a[m] = 1:f32 } }", "width"},
  {"kernel x(out a: f32[8,8]) { par m < 8 together 4 { par n < m { a[m,n] = 1:f32 } } }", "part their ways"},
  {"kernel x(out a: f32[8]) { seq m < 8 together 4 { a[m] = 1:f32 } }", "part their ways"},
  {"kernel x(out a: f32[8]) { red m < 8 lanes 8 { a[m] = 1:f32 } }", "not par"},
  {"kernel x(out a: f32[8]) { par m < 8 lanes 4 { a[m] = 1:f32 } }", "more than its 4 lanes"},
  {"kernel x(out a: f32[n0]) sizes 1 { par m < n0 lanes 4 { a[m] = 1:f32 } }", "more than its 4 lanes"},
  {"kernel x(out a: f32[8]) { par m < 8 lanes { a[m] = 1:f32 } }", "expected a number"},
  {"kernel x(out a: f32[8]) { par m < 8 lanes 0 { a[m] = 1:f32 } }", "width"},
  {"kernel x(out a: f32[8,8]) { par m < 8 lanes 8 { par n < 8 lanes 8 { a[m,n] = 1:f32 } } }", "in lanes"},
  {"kernel x(out a: f32[99]) { par m < 99 unroll { a[m] = 1:f32 } }", "unrolled"},
  {"kernel x(out a: f32[n0]) sizes 1 { par m < n0 unroll { a[m] = 1:f32 } }", "unrolled"},
  {"kernel x(out a: f32[8]) { par m < 8 lanes 8 { check lt(m, 8) else ABORTED \"no\" a[m] = 1:f32 } }", "in lanes"},
  {"kernel x(in a: str[8], out b: bool[8]) { par m < 8 lanes 8 { b[m] = eq(a[m], a[0]) } }", "a string in lanes"},
  {"kernel x(out a: f32[8]) { seq m < 8 tasks { a[m] = 1:f32 } }", "outermost"},
  {"kernel x(out a: f32[8,8]) { par m < 8 { par n < 8 tasks { a[m,n] = 1:f32 } } }", "outermost"},
  {"kernel x(out a: f32[8,9]) { par m < 8 tasks { a[m,8] = 1:f32 par n < 8 tasks { a[m,n] = 1:f32 } } }", "outermost"},
  {"kernel x(out a: f32[8,8]) { par m < 8 { par m < 8 { a[m,m] = 1:f32 } } }", "taken"},
  {"kernel x(out a: f32[8]) { par n3 < 8 { a[0] = 1:f32 } }", "no name"},
  {"kernel x(out a: f32[8]) { par m < 8 { a[m] = 1:f32 } a[m] = 1:f32 }", "neither an operation nor"},
  {"kernel x(out a: f32[8]) { buffer b: f32[n0] in stack }", "constant size"},
  {"kernel x(out a: f32[8]) { buffer a: f32[2] in stack }", "named by position"},
  {"kernel x(out a: f32[8]) { buffer b: f32[2] in attic }", "expected 'stack'"},
  {"kernel x(out a: f32[8]) { if true { buffer b: f32[2] in stack b[0] = 1:f32 } a[0] = b[0] }", "outside of its block"},
  {"kernel x(out a: f32[8]) { if true { buffer b: f32[2] in stack } b[0] = 1:f32 }", "outside of its block"},
  {"kernel x(out a: f32[8]) { par m < 8 { buffer b: f32[8] in register b[m] = 1:f32 a[m] = b[m] } }", "registers"},
  {"kernel x(out a: f32[8]) { par m < 8 lanes 8 { buffer b: f32[8,2] in register b[m,0] = 1:f32 a[m] = 2:f32 } }", "registers"},
  {"kernel x(out a: f32[8]) { buffer b: f32[2] in register fetch b[0] }", "fetch from registers"},
};
static void mistakes_are_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    struct arena arena;
    arena_init(&arena);
    struct kernel *k = NULL;
    if (kernel_parse(mistakes[i].text, &arena, &k) != INVALID_ARGUMENT || !strstr(status_text(), mistakes[i].what))
      fail_msg("%s: %s", mistakes[i].text, status_text());
    arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(printing_what_was_parsed_gives_the_text),
    cmocka_unit_test(marks_change_the_hash),
    cmocka_unit_test(a_scheduled_product_is_the_product),
    cmocka_unit_test(what_was_not_stored_is_an_error),
    cmocka_unit_test(fetching_out_of_bounds_does_nothing),
    cmocka_unit_test(mistakes_are_refused),
    cmocka_unit_test(sums_are_split_over_the_lanes_of_their_vectors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
