/* The text form of kernels: print(parse(text)) is the text, and mistakes are told with their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ir/kernel/kernel.h"

#include <cmocka.h>

static const char *const texts[] = {
  "kernel nothing() {\n}\n",
  "kernel sigmoid(in a: f32[n0,784], out b: f32[n0,784]) sizes 1 {\n"
  "  par i0 < n0 {\n"
  "    par i1 < 784 {\n"
  "      b[i0,i1] = div(1:f32, add(1:f32, exp(neg(a[i0,i1]))))\n"
  "    }\n"
  "  }\n"
  "}\n",
  "kernel shared(in a: f64[], out b: f64[]) {\n"
  "  %0 = mul(a[], 0x1.8p+0:f64)\n"
  "  %1 = add(%0, inf:f64)\n"
  "  b[] = select(lt(%0, -inf:f64), %1, sub(%1, nan(0x7ff8000000000000):f64))\n"
  "}\n",
  "kernel rows(in a: c64[n0,n1], inout b: c64[n0], scratch c: i32[4]) sizes 3 {\n"
  "  par i0 < n0 {\n"
  "    var v0: f32 = 0:f32\n"
  "    red i1 < n1 {\n"
  "      v0 = add(v0, a.im[i0,i1])\n"
  "    }\n"
  "    if lt(v0, 0x1p-3:f32) {\n"
  "      b.re[i0] = v0\n"
  "    } else {\n"
  "      b.im[i0] = neg(v0)\n"
  "    }\n"
  "  }\n"
  "  seq i2 < add(n2, 3) {\n"
  "    c[i2] = cast.i32(popcount.u8(cast.u64(i2)))\n"
  "  }\n"
  "}\n",
  "kernel find(in a: i32[10], in b: str[n0], out c: bool[n0]) sizes 1 {\n"
  "  var v0: i64 = 0\n"
  "  while lt(a[v0], 7:i32) {\n"
  "    v0 = add(v0, 1)\n"
  "  }\n"
  "  check lt(v0, n0) else OUT_OF_RANGE \"index \\\"%d\\\" of %d\": v0, n0\n"
  "  par i0 < n0 {\n"
  "    c[i0] = and(eq(b[i0], b[v0]), xor(true, lt(bitcast.f32(a[i0]), 0x1.99999ap-4:f32)))\n"
  "  }\n"
  "}\n",
};

static void printing_what_was_parsed_gives_the_text(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct arena arena;
    arena_init(&arena);
    struct kernel *k = NULL;
    if (kernel_parse(texts[i], &arena, &k) != OK)
      fail_msg("%s: %s", texts[i], status_text());
    assert_string_equal(kernel_print(k, &arena), texts[i]);
    arena_deinit(&arena);
  }
}

/* a sum of 200 terms: deep on one side */
static void deep_expressions_are_cut_into_lines(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *k = kernel_create(&arena, "deep"), *again = NULL;
  uint32_t a = kernel_add_buffer(k, DTYPE_FLOAT, BUFFER_IN, 1, (kernel_dim[]){200});
  uint32_t b = kernel_add_buffer(k, DTYPE_FLOAT, BUFFER_OUT, 0, NULL);
  expr_id sum = expr_float(k, DTYPE_FLOAT, 0);
  for (int i = 0; i < 200; i++) {
    expr_id at = expr_int(k, DTYPE_INT64, i);
    sum = expr_binary(k, SCALAR_ADD, sum, expr_load(k, a, 0, &at, 1));
  }
  stmt_store(k, &k->body, b, 0, NULL, 0, sum);
  assert_int_equal(kernel_verify(k), OK);
  const char *text = kernel_print(k, &arena);
  assert_int_equal(kernel_parse(text, &arena, &again), OK);
  assert_string_equal(kernel_print(again, &arena), text);
  assert_true(kernel_hash(k) == kernel_hash(again));
  arena_deinit(&arena);
}

static void the_hash_does_not_see_the_name(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *one, *two, *three;
  assert_int_equal(kernel_parse("kernel x(out a: i64[3]) { par i0 < 3 { a[i0] = i0 } }", &arena, &one), OK);
  assert_int_equal(kernel_parse("kernel y(out a: i64[3]) { par i0 < 3 { a[i0] = i0 } }", &arena, &two), OK);
  assert_int_equal(kernel_parse("kernel x(out a: i64[3]) { seq i0 < 3 { a[i0] = i0 } }", &arena, &three), OK);
  assert_true(kernel_hash(one) == kernel_hash(two));
  assert_false(kernel_hash(one) == kernel_hash(three));
  arena_deinit(&arena);
}

static const struct mistake {
  const char *text, *place;
} mistakes[] = {
  {"", "line 1, column 1"},
  {"kernel x(", "line 1, column 10"},
  {"kernel x(in a: f33[])", "expected a dtype"},
  {"kernel x(in b: f32[])", "named by position"},
  {"kernel x(out a: f32[2]) {\n  a[0] = 1:f32 2 }", "line 2"},
  {"kernel x(out a: f32[2]) { a[0,0] = 1:f32 }", "rank"},
  {"kernel x(out a: f32[2]) { a[0] = 1 }", "another dtype"},
  {"kernel x(out a: f32[2]) { a[0] = add(1:f32, 1) }", "different dtypes"},
  {"kernel x(out a: f32[2]) { a[0] = add(1:f32) }", "wrong number of operands"},
  {"kernel x(in a: f32[2]) { a[0] = 1:f32 }", "a store to input"},
  {"kernel x(out a: i64[2]) { a[0] = i0 }", "not alive"},
  {"kernel x(out a: i64[2]) { { } }", "expected a name"},
  {"kernel x(out a: i64[2]) { if true { var v0: i64 = 1 } a[0] = v0 }", "not alive"},
  {"kernel x(out a: i64[n9999999999]) { }", "line 1"},
  {"kernel x(out a: i64[2]) { a[0] = 99999999999999999999 }", "too large"},
};
static void mistakes_are_told_with_their_place(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    struct arena arena;
    arena_init(&arena);
    struct kernel *k = NULL;
    assert_int_equal(kernel_parse(mistakes[i].text, &arena, &k), INVALID_ARGUMENT);
    if (!strstr(status_text(), mistakes[i].place))
      fail_msg("%s: %s", mistakes[i].text, status_text());
    arena_deinit(&arena);
  }
}

static void deep_nesting_is_refused(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  char text[20000] = "kernel x(out a: i64[2]) { a[0] = ";
  size_t n = strlen(text);
  for (int i = 0; i < 3000; i++, n += 4)
    memcpy(text + n, "neg(", 5);
  struct kernel *k = NULL;
  assert_int_equal(kernel_parse(text, &arena, &k), INVALID_ARGUMENT);
  assert_non_null(strstr(status_text(), "too deep"));
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(printing_what_was_parsed_gives_the_text),
    cmocka_unit_test(deep_expressions_are_cut_into_lines),
    cmocka_unit_test(the_hash_does_not_see_the_name),
    cmocka_unit_test(mistakes_are_told_with_their_place),
    cmocka_unit_test(deep_nesting_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
