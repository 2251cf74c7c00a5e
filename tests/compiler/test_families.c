/* test_families.c: kernels that differ in numbers alone: which are one, what it is told, and that it then gives their bits. */
#include "compiler/edit/kernel_family.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define MEMBERS_MAX 3
struct family_case {
  const char *name;
  const char *kernels[MEMBERS_MAX];
  const char *general; /* behind its name; "": they are of several families; NULL: their code hangs on their numbers */
};

#define MAP(size, factor)                                                                          \
  "kernel k(in a: f32[" size "], out b: f32[" size "]) {\n  par i0 < " size " {\n    b[i0] = mul(" \
  "a[i0], " factor ":f32)\n  }\n}\n"
#define OPEN(rows, width, number)                                                                                                 \
  "kernel k(in a: u32[" rows "," width "], out b: u32[" rows "," width "]) sizes 1 {\n  par i0 < " rows " {\n    par i1 < " width \
  " {\n      b[i0,i1] = xor(a[i0,i1], " number ":u32)\n    }\n  }\n}\n"
#define STRIDED(step) "kernel k(in a: f32[900], out b: f32[100]) { par i0 < 100 { b[i0] = a[mul(i0, " step ")] } }"
#define POWER(by) "kernel k(in a: f32[100], out b: f32[100]) { par i0 < 100 { b[i0] = pow(a[i0], " by ":f32) } }"
#define CHECKED(size)                                                                                                                  \
  "kernel k(in a: i32[" size "], out b: i32[" size "]) {\n  par i0 < " size " {\n    check lt(a[i0], 5:i32) else INVALID_ARGUMENT \"(" \
  "100\": cast.i64(a[i0])\n    b[i0] = a[i0]\n  }\n}\n"

#define PLACED(from, to) \
  "kernel k(in a: f32[64,n0], out b: f32[90]) sizes 1 {\n  par i0 < 64 {\n    b[add(i0, " to ")] = mul(a[i0," from "], 3:f32)\n  }\n}\n"
#define SUM(length, row)                                                                                                               \
  "kernel k(in a: f32[8," length "], out b: f32[]) sizes 1 {\n  var v0: f32 = 0:f32\n  red i0 < " length " {\n    v0 = add(v0, a[" row \
  ",i0])\n  }\n  b[] = v0\n}\n"

static const struct family_case cases[] = {
  {"sizes and a factor",
   {MAP("100", "0x1.8p+0"), MAP("200", "3"), MAP("96", "3")},
   "(in a: f32[n0], out b: f32[n0]) sizes 2 {\n  par i0 < n0 {\n    b[i0] = mul(a[i0], bitcast.f32(cast.u32(n1)))\n  }\n}\n"},
  {"what is equal in all stays",
   {MAP("100", "3"), MAP("200", "3"), MAP("96", "3")},
   "(in a: f32[n0], out b: f32[n0]) sizes 1 {\n  par i0 < n0 {\n    b[i0] = mul(a[i0], 3:f32)\n  }\n}\n"},
  {"behind sizes that they have",
   {OPEN("n0", "64", "7"), OPEN("n0", "640", "7"), OPEN("n0", "70", "4000000000")},
   "(in a: u32[n0,n1], out b: u32[n0,n1]) sizes 3 {\n  par i0 < n0 {\n    par i1 < n1 {\n      b[i0,i1] = xor(a[i0,i1], "
   "cast.u32(n2))\n    }\n  }\n}\n"},
  {"short rows stay", {MAP("63", "3"), MAP("10", "3"), MAP("100", "3")}, ""},
  {"steps through memory stay", {STRIDED("2"), STRIDED("3"), STRIDED("4")}, ""},
  {"exponents stay", {POWER("2"), POWER("3"), POWER("5")}, ""},
  {"places in an index, and what is added to one",
   {PLACED("0", "5"), PLACED("3", "9"), PLACED("63", "2")},
   "(in a: f32[64,n0], out b: f32[90]) sizes 3 {\n  par i0 < 64 {\n    b[add(i0, n1)] = mul(a[i0,n2], 3:f32)\n  }\n}\n"},
  {"of sums their places",
   {SUM("n0", "1"), SUM("n0", "0"), SUM("n0", "7")},
   "(in a: f32[8,n0], out b: f32[]) sizes 2 {\n  var v0: f32 = 0:f32\n  red i0 < n0 {\n    v0 = add(v0, a[n1,i0])\n  }\n  b[] = v0\n}\n"},
  {"but no lengths", {SUM("100", "1"), SUM("200", "1"), SUM("300", "1")}, ""},
  {"products",
   {"kernel k(in a: f32[9,100], in b: f32[100,8], out c: f32[8]) { par i0 < 8 { var v0: f32 = 0:f32 red i1 < 100 { v0 = add(v0, "
    "mul(a[3,i1], b[i1,i0])) } c[i0] = v0 } }"},
   NULL},
};

static struct kernel *parse(const char *text, struct arena *arena) {
  struct kernel *k;
  if (kernel_parse(text, arena, &k) != OK)
    test_fail("%s: %s", text, status_text());
  return k;
}

static void run_case(const struct family_case *t) {
  struct arena arena;
  struct kernel_numbers members[MEMBERS_MAX];
  struct kernel_family family;
  uint32_t count = 0, sizes = 0;
  bool reads = true, one = true;
  arena_init(&arena);
  for (; count < MEMBERS_MAX && t->kernels[count] && reads; count++) {
    const struct kernel *k = parse(t->kernels[count], &arena);
    sizes = k->size_count;
    reads = kernel_numbers_read(&arena, k, &members[count]);
    one = one && reads && strcmp(members[count].text, members[0].text) == 0;
  }
  if (reads != (t->general != NULL) || (reads && one != (t->general[0] != 0)))
    test_fail("%s: %s", t->name, !reads ? "has no family" : one ? "one family" : "several families");
  if (one) {
    if (kernel_family_make(&arena, members, count, sizes, &family) != OK)
      test_fail("%s: %s", t->name, status_text());
    assert_non_null(family.general);
    assert_string_equal(strchr(kernel_print(family.general, &arena), '('), t->general);
  }
  arena_deinit(&arena);
}

static void kernels_are_told_what_differs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    run_case(&cases[i]);
}

/* What a kernel makes of 1, 2, 3 ...; `sizes` may be NULL. */
static void evaluate(const struct kernel *k, const int64_t *sizes, float *out, int count) {
  float *in = calloc((size_t)count, sizeof *in);
  for (int i = 0; i < count; i++)
    in[i] = (float)(i + 1);
  void *buffers[] = {in, out};
  assert_int_equal(kernel_eval(k, buffers, sizes), OK);
  free(in);
}

static void a_told_kernel_gives_the_bits_of_each(void **state) {
  (void)state;
  static const char *const texts[] = {MAP("100", "0x1.99999ap-4"), MAP("64", "-0x1.0p-140"), MAP("77", "-0")};
  static const int sizes[] = {100, 64, 77};
  struct arena arena;
  struct kernel_numbers members[3];
  struct kernel_family family;
  struct kernel *kernels[3];
  arena_init(&arena);
  for (int i = 0; i < 3; i++) {
    kernels[i] = parse(texts[i], &arena);
    assert_true(kernel_numbers_read(&arena, kernels[i], &members[i]));
  }
  assert_int_equal(kernel_family_make(&arena, members, 3, 0, &family), OK);
  for (int i = 0; i < 3; i++) {
    float own[100], told[100];
    int64_t numbers[8];
    assert_in_range(family.told_count, 2, 8);
    for (uint32_t n = 0; n < family.told_count; n++)
      numbers[n] = members[i].values[family.told[n]];
    evaluate(kernels[i], NULL, own, sizes[i]);
    evaluate(family.general, numbers, told, sizes[i]);
    assert_memory_equal(own, told, sizeof(float) * (size_t)sizes[i]);
  }
  arena_deinit(&arena);
}

static void what_checks_say_is_no_number(void **state) {
  (void)state;
  struct arena arena;
  struct kernel_numbers members[2];
  struct kernel_family family;
  arena_init(&arena);
  assert_true(kernel_numbers_read(&arena, parse(CHECKED("100"), &arena), &members[0]));
  assert_true(kernel_numbers_read(&arena, parse(CHECKED("300"), &arena), &members[1]));
  assert_string_equal(members[0].text, members[1].text);
  assert_int_equal(kernel_family_make(&arena, members, 2, 0, &family), OK);
  assert_non_null(strstr(kernel_print(family.general, &arena), "(100"));
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(kernels_are_told_what_differs),
    cmocka_unit_test(a_told_kernel_gives_the_bits_of_each),
    cmocka_unit_test(what_checks_say_is_no_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
