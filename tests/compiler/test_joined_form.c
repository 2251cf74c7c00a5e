/* test_joined_form.c: kernels that put values beside each other: where each lies, and what is none. */
#include "compiler/edit/joined_form.h"
#include "ir/kernel/kernel_parse.h"
#include "tests/support/test.h"

#define FIRST 11 /* the values bound to the kernel's arguments, in order */

/* Whether the kernel, its result in argument `out`, is such a one. */
static bool find(const char *text, uint32_t out, struct joined *j) {
  struct arena arena;
  struct flow_node n = {.op = FLOW_KERNEL};
  arena_init(&arena);
  if (kernel_parse(text, &arena, &n.kernel) != OK)
    test_fail("%s: %s", text, status_text());
  n.args = ARENA_ARRAY(&arena, struct flow_arg, n.kernel->buffers.count);
  for (uint32_t i = 0; i < n.kernel->buffers.count; i++)
    n.args[i].value = FIRST + i;
  vec_push(&n.outputs, FIRST + out);
  bool is_one = joined_form(&n, j);
  vec_free(&n.outputs);
  arena_deinit(&arena);
  return is_one;
}

#define OF(first, second)                                                                                                                 \
  "kernel k(out a: f32[4,5], in b: f32[4,2], in c: f32[4,3]) { par i0 < 4 { par i1 < 2 { " first " } } par i2 < 4 { par i3 < 3 { " second \
  " } } }"

static void values_beside_each_other(void **state) {
  (void)state;
  struct joined j;
  assert_true(find(OF("a[i0,i1] = b[i0,i1]", "a[i2,add(2, i3)] = c[i2,i3]"), 0, &j));
  assert_int_equal(j.dim, 1);
  assert_int_equal(j.count, 2);
  assert_int_equal(j.parts[0].value, FIRST + 1);
  assert_int_equal(j.parts[0].count, 2);
  assert_int_equal(j.parts[1].value, FIRST + 2);
  assert_int_equal(j.parts[1].from, 2);
  assert_int_equal(j.parts[1].count, 3);
  assert_true(
    find("kernel k(in a: f32[2,3], out b: f32[4,3]) { par i0 < 2 { par i1 < 3 { b[i0,i1] = a[i0,i1] } } par i2 < 2 { par i3 < 3 { "
         "b[add(i2, 2),i3] = a[i2,i3] } } }",
         1, &j)); /* one of them twice, below each other */
  assert_int_equal(j.dim, 0);
  assert_int_equal(j.parts[1].value, FIRST);
}

static void nothing_else(void **state) {
  (void)state;
  static const struct {
    const char *name, *text;
  } none[] = {
    {"something is computed", OF("a[i0,i1] = b[i0,i1]", "a[i2,add(2, i3)] = neg(c[i2,i3])")},
    {"the second comes first", OF("a[i0,add(3, i1)] = b[i0,i1]", "a[i2,i3] = c[i2,i3]")},
    {"there is a gap",
     "kernel k(out a: f32[6], in b: f32[2], in c: f32[3]) { par i0 < 2 { a[i0] = b[i0] } par i1 < 3 { a[add(i1, 3)] = c[i1] } }"},
    {"a value goes along another dimension",
     "kernel k(out a: f32[4,4], in b: f32[4,2], in c: f32[2,4]) { par i0 < 4 { par i1 < 2 { a[i0,i1] = b[i0,i1] } } par i2 < 2 { par "
     "i3 < 4 { a[add(2, i2),i3] = c[i2,i3] } } }"},
    {"a value is transposed",
     "kernel k(out a: f32[2,4], in b: f32[2,2], in c: f32[2,2]) { par i0 < 2 { par i1 < 2 { a[i0,i1] = b[i1,i0] } } par i2 < 2 { par "
     "i3 < 2 { a[i2,add(2, i3)] = c[i2,i3] } } }"},
    {"a part of a value",
     "kernel k(out a: f32[5], in b: f32[3], in c: f32[3]) { par i0 < 2 { a[i0] = b[i0] } par i1 < 3 { a[add(i1, 2)] = c[i1] } }"},
    {"something stands beside a loop",
     "kernel k(out a: f32[4,5], in b: f32[4,2], in c: f32[4,3]) { par i0 < 4 { par i1 < 2 { a[i0,i1] = b[i0,i1] } a[i0,0] = 7:f32 } "
     "par i2 < 4 { par i3 < 3 { a[i2,add(2, i3)] = c[i2,i3] } } }"},
    {"one value", "kernel k(out a: f32[4], in b: f32[4]) { par i0 < 4 { a[i0] = b[i0] } }"},
  };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    struct joined j;
    if (find(none[i].text, 0, &j))
      test_fail("%s", none[i].name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(values_beside_each_other), cmocka_unit_test(nothing_else)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
