/* test_over_turns.c: what a kernel makes in each turn, as one sum over all of them, for each, and in parts: its text, its values, and what
 * is none. */
#include <stdbool.h>
#include <string.h>

#include "ir/kernel/kernel_eval.h"
#include "ir/schedule/over_turns.h"
#include "tests/support/test.h"

#define TURNS 3

#define PRODUCT(value, end)                                                                                                              \
  "kernel k(in a: f32[2,4], in b: f32[2,5], in c: f32[], out d: f32[4,5]) { par i0 < 4 { par i1 < 5 { var v0: f32 = 0:f32 red i2 < 2 { " \
  "v0 = add(v0, " value ") } d[i0,i1] = " end " } } }"

static struct kernel *parsed(const char *text, struct arena *arena) {
  struct kernel *k;
  if (kernel_parse(text, arena, &k) != OK)
    test_fail("%s: %s", text, status_text());
  return k;
}

static void a_product_goes_over_all_turns(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  const bool both[] = {true, true, false, false}, second[] = {false, true, false, false};
  int64_t terms = 0;
  const struct kernel *k = parsed(PRODUCT("mul(a[i2,i0], b[i2,i1])", "v0"), &arena);
  struct kernel *made = kernel_over_turns(k, both, TURNS, &arena, &terms);
  assert_non_null(made);
  assert_int_equal(terms, 2);
  assert_int_equal(kernel_verify(made), OK);
  assert_string_equal(kernel_print(made, &arena), "kernel k(in a: f32[3,2,4], in b: f32[3,2,5], in c: f32[], out d: f32[4,5]) {\n"
                                                  "  par i0 < 4 {\n"
                                                  "    par i1 < 5 {\n"
                                                  "      var v0: f32 = 0:f32\n"
                                                  "      red i2 < 3 {\n"
                                                  "        red i3 < 2 {\n"
                                                  "          v0 = add(v0, mul(a[i2,i3,i0], b[i2,i3,i1]))\n"
                                                  "        }\n"
                                                  "      }\n"
                                                  "      d[i0,i1] = v0\n"
                                                  "    }\n"
                                                  "  }\n"
                                                  "}\n");
  made = kernel_over_turns(k, second, TURNS, &arena, &terms);
  assert_non_null(made);
  assert_int_equal(made->buffers.items[0].rank, 2);
  assert_int_equal(made->buffers.items[1].rank, 3);
  arena_deinit(&arena);
}

static void its_values_are_those_of_the_turns_together(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  const bool is_row[] = {true, true, false, false};
  float a[TURNS * 8], b[TURNS * 10], c = 0, one[20], all[20], sum[20] = {0};
  int64_t terms;
  const struct kernel *k = parsed(PRODUCT("mul(a[i2,i0], b[i2,i1])", "v0"), &arena);
  const struct kernel *made = kernel_over_turns(k, is_row, TURNS, &arena, &terms);
  for (int i = 0; i < TURNS * 8; i++)
    a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < TURNS * 10; i++)
    b[i] = (float)(i % 5 - 2);
  for (int t = 0; t < TURNS; t++) {
    assert_int_equal(kernel_eval(k, (void *[]){a + 8 * t, b + 10 * t, &c, one}, NULL), OK);
    for (int i = 0; i < 20; i++)
      sum[i] += one[i];
  }
  assert_int_equal(kernel_eval(made, (void *[]){a, b, &c, all}, NULL), OK);
  assert_memory_equal(all, sum, sizeof sum);
  arena_deinit(&arena);
}

/* Sizes count as 1 of what is few; turns that the step knows are a size behind those of the kernel. */
static void terms_and_turns_may_be_sizes(void **state) {
  (void)state;
  static const char product[] =
    "kernel k(in a: f32[n0,4], in b: f32[n0,5], out c: f32[4,5]) sizes 1 { par i0 < 4 { par i1 < 5 { var v0: f32 "
    "= 0:f32 red i2 < n0 { v0 = add(v0, mul(a[i2,i0], b[i2,i1])) } c[i0,i1] = v0 } } }";
  struct arena arena;
  arena_init(&arena);
  const bool both[] = {true, true, false};
  int64_t terms = 0, sizes[] = {2, TURNS};
  const struct kernel *k = parsed(product, &arena);
  struct kernel *made = kernel_over_turns(k, both, DIM_OF_SIZE(1), &arena, &terms);
  assert_non_null(made);
  assert_int_equal(terms, 1);
  assert_int_equal(k->size_count, 1);
  assert_int_equal(kernel_verify(made), OK);
  assert_string_equal(kernel_print(made, &arena), "kernel k(in a: f32[n1,n0,4], in b: f32[n1,n0,5], out c: f32[4,5]) sizes 2 {\n"
                                                  "  par i0 < 4 {\n"
                                                  "    par i1 < 5 {\n"
                                                  "      var v0: f32 = 0:f32\n"
                                                  "      red i2 < n1 {\n"
                                                  "        red i3 < n0 {\n"
                                                  "          v0 = add(v0, mul(a[i2,i3,i0], b[i2,i3,i1]))\n"
                                                  "        }\n"
                                                  "      }\n"
                                                  "      c[i0,i1] = v0\n"
                                                  "    }\n"
                                                  "  }\n"
                                                  "}\n");
  float a[TURNS * 8], b[TURNS * 10], all[20];
  for (int i = 0; i < TURNS * 8; i++)
    a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < TURNS * 10; i++)
    b[i] = (float)(i % 5 - 2);
  assert_int_equal(kernel_eval(made, (void *[]){a, b, all}, sizes), OK);
  for (int m = 0; m < 4; m++)
    for (int n = 0; n < 5; n++) {
      float sum = 0;
      for (int t = 0; t < TURNS * 2; t++)
        sum += a[4 * t + m] * b[5 * t + n];
      assert_float_equal(all[5 * m + n], sum, 0);
    }
  const bool one[] = {true, false, false};
  assert_null(kernel_of_terms(k, 0, 0, 0, 1, &arena)); /* of a size there are no parts */
  made = kernel_over_turns(k, one, TURNS, &arena, &terms);
  assert_non_null(made);
  assert_int_equal(made->size_count, 1);
  static const char rows[] =
    "kernel k(in a: f32[n0,4], in b: f32[4,5], out c: f32[n0,5]) sizes 1 { par i0 < n0 { par i1 < 5 { var v0: f32 = "
    "0:f32 red i2 < 4 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }";
  int64_t uses;
  uint32_t steady;
  made = kernel_each_turn(parsed(rows, &arena), one, DIM_OF_SIZE(1), &arena, &uses, &steady);
  assert_non_null(made);
  assert_int_equal(uses, 32); /* a usual batch */
  assert_int_equal(made->size_count, 2);
  assert_int_equal(made->buffers.items[2].rank, 3);
  assert_int_equal(kernel_verify(made), OK);
  arena_deinit(&arena);
}

static const struct {
  const char *name, *text;
  bool is_row[4];
} none[] = {
  {"no factor is a row", PRODUCT("mul(a[i2,i0], b[i2,i1])", "v0"), {false, false, true, false}},
  {"what is stored is not the sum alone", PRODUCT("mul(a[i2,i0], b[i2,i1])", "add(v0, c[])"), {true, true, false, false}},
  {"no product", PRODUCT("a[i2,i0]", "v0"), {true, true, false, false}},
  {"a result is no row", PRODUCT("mul(a[i2,i0], b[i2,i1])", "v0"), {true, true, false, true}},
  {"a result whose place a row tells",
   "kernel k(in a: i32[2,4], in b: i32[2,4], out c: i32[4]) { par i0 < 4 { var v0: i32 = 0:i32 red i1 < 2 { v0 = add(v0, mul(a[i1,i0], "
   "b[i1,i0])) } c[cast.i64(a[0,i0])] = v0 } }",
   {true, true, false}},
  {"a map", "kernel k(in a: f32[4], in b: f32[4], out c: f32[4]) { par i0 < 4 { c[i0] = mul(a[i0], b[i0]) } }", {true, true, false}},
};
static void nothing_else_does(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    struct arena arena;
    arena_init(&arena);
    int64_t terms;
    if (kernel_over_turns(parsed(none[i].text, &arena), none[i].is_row, TURNS, &arena, &terms))
      test_fail("%s: it goes over all turns", none[i].name);
    arena_deinit(&arena);
  }
}

/* ---- for each turn ---- */

#define BY_WEIGHTS PRODUCT("mul(a[i2,i0], b[i2,i1])", "v0")

static void a_product_is_made_for_each_turn(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  const bool first[] = {true, false, false, false}, second[] = {false, true, false, false};
  int64_t uses = 0;
  uint32_t steady = 9;
  const struct kernel *k = parsed(BY_WEIGHTS, &arena);
  struct kernel *made = kernel_each_turn(k, first, TURNS, &arena, &uses, &steady);
  assert_non_null(made);
  assert_int_equal(uses, 4); /* a row of d for each column of a */
  assert_int_equal(steady, 1);
  assert_int_equal(kernel_verify(made), OK);
  assert_string_equal(kernel_print(made, &arena), "kernel k(in a: f32[3,2,4], in b: f32[2,5], in c: f32[], out d: f32[3,4,5]) {\n"
                                                  "  par i0 < 3 {\n"
                                                  "    par i1 < 4 {\n"
                                                  "      par i2 < 5 {\n"
                                                  "        var v0: f32 = 0:f32\n"
                                                  "        red i3 < 2 {\n"
                                                  "          v0 = add(v0, mul(a[i0,i3,i1], b[i3,i2]))\n"
                                                  "        }\n"
                                                  "        d[i0,i1,i2] = v0\n"
                                                  "      }\n"
                                                  "    }\n"
                                                  "  }\n"
                                                  "}\n");
  made = kernel_each_turn(k, second, TURNS, &arena, &uses, &steady);
  assert_non_null(made);
  assert_int_equal(uses, 5);
  assert_int_equal(steady, 0);
  assert_int_equal(made->buffers.items[0].rank, 2);
  assert_int_equal(made->buffers.items[1].rank, 3);
  arena_deinit(&arena);
}

static void each_value_has_the_bits_of_its_turn(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  const bool is_row[] = {true, false, false, false};
  float a[TURNS * 8], b[10], c = 0, all[TURNS * 20], one[20];
  int64_t uses;
  uint32_t steady;
  const struct kernel *k = parsed(BY_WEIGHTS, &arena);
  const struct kernel *made = kernel_each_turn(k, is_row, TURNS, &arena, &uses, &steady);
  for (int i = 0; i < TURNS * 8; i++)
    a[i] = 1 / (float)(i + 3);
  for (int i = 0; i < 10; i++)
    b[i] = 1 / (float)(7 - 3 * i);
  assert_int_equal(kernel_eval(made, (void *[]){a, b, &c, all}, NULL), OK);
  for (int t = 0; t < TURNS; t++) {
    assert_int_equal(kernel_eval(k, (void *[]){a + 8 * t, b, &c, one}, NULL), OK);
    assert_memory_equal(all + 20 * t, one, sizeof one);
  }
  arena_deinit(&arena);
}

static void no_other_is_made_for_each(void **state) {
  (void)state;
  static const struct {
    const char *name, *text;
    bool is_row[4];
  } others[] = {
    {"both factors are rows", BY_WEIGHTS, {true, true, false, false}},
    {"no factor is a row", BY_WEIGHTS, {false, false, true, false}},
    {"what is stored is not the sum alone", PRODUCT("mul(a[i2,i0], b[i2,i1])", "add(v0, c[])"), {true, false, false, false}},
    {"no product", PRODUCT("a[i2,i0]", "v0"), {true, false, false, false}},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct arena arena;
    arena_init(&arena);
    int64_t uses;
    uint32_t steady;
    if (kernel_each_turn(parsed(others[i].text, &arena), others[i].is_row, TURNS, &arena, &uses, &steady))
      test_fail("%s: it is made for each turn", others[i].name);
    arena_deinit(&arena);
  }
}

/* ---- some of the terms ---- */

/* c[m,n] = a[m,k] * b[k,n], over 5 terms */
#define JOINED(row, value)                                                                                                       \
  "kernel k(in a: f32[3,5], in b: f32[5,4], out c: f32[3,4]) { par i0 < 3 { par i1 < 4 { var v0: f32 = 0:f32 red i2 < 5 { v0 = " \
  "add(v0, mul(a[i0," row "], " value ")) } c[i0,i1] = v0 } } }"

static void a_product_is_made_of_some_of_its_terms(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  const struct kernel *k = parsed(JOINED("i2", "b[i2,i1]"), &arena);
  struct kernel *made = kernel_of_terms(k, 0, 1, 2, 3, &arena);
  assert_non_null(made);
  assert_int_equal(kernel_verify(made), OK);
  assert_string_equal(kernel_print(made, &arena), "kernel k(in a: f32[3,3], in b: f32[5,4], out c: f32[3,4]) {\n"
                                                  "  par i0 < 3 {\n"
                                                  "    par i1 < 4 {\n"
                                                  "      var v0: f32 = 0:f32\n"
                                                  "      red i2 < 3 {\n"
                                                  "        v0 = add(v0, mul(a[i0,i2], b[add(i2, 2),i1]))\n"
                                                  "      }\n"
                                                  "      c[i0,i1] = v0\n"
                                                  "    }\n"
                                                  "  }\n"
                                                  "}\n");
  made = kernel_of_terms(k, 1, 0, 1, 2, &arena); /* the other factor's */
  assert_non_null(made);
  assert_int_equal(kernel_verify(made), OK);
  assert_int_equal(made->buffers.items[0].dims[1], 5);
  assert_int_equal(made->buffers.items[1].dims[0], 2);
  arena_deinit(&arena);
}

static void its_parts_add_up_to_the_whole(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  float a[15], left[6], right[9], b[20], whole[12], first[12], second[12];
  const struct kernel *k = parsed(JOINED("i2", "b[i2,i1]"), &arena);
  for (int i = 0; i < 20; i++)
    b[i] = (float)(i % 7 - 3);
  for (int i = 0; i < 15; i++) {
    a[i] = (float)(i % 4 - 1);
    *(i % 5 < 2 ? &left[i / 5 * 2 + i % 5] : &right[i / 5 * 3 + i % 5 - 2]) = a[i];
  }
  assert_int_equal(kernel_eval(k, (void *[]){a, b, whole}, NULL), OK);
  assert_int_equal(kernel_eval(kernel_of_terms(k, 0, 1, 0, 2, &arena), (void *[]){left, b, first}, NULL), OK);
  assert_int_equal(kernel_eval(kernel_of_terms(k, 0, 1, 2, 3, &arena), (void *[]){right, b, second}, NULL), OK);
  for (int i = 0; i < 12; i++)
    assert_true(whole[i] == first[i] + second[i]);
  arena_deinit(&arena);
}

static void no_other_is_made_of_some(void **state) {
  (void)state;
  static const struct {
    const char *name, *text;
    uint32_t part;
    int dim;
  } others[] = {
    {"along the rows", JOINED("i2", "b[i2,i1]"), 0, 0},
    {"along the columns", JOINED("i2", "b[i2,i1]"), 1, 1},
    {"not one term after the other", JOINED("sub(4, i2)", "b[i2,i1]"), 0, 1},
    {"the sum is not over all that the factor has",
     "kernel k(in a: f32[3,5], in b: f32[4,4], out c: f32[3,4]) { par i0 < 3 { par i1 < 4 { var v0: f32 = 0:f32 red i2 < 4 { v0 = add(v0, "
     "mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
     0, 1},
    {"both factors are the part", JOINED("i2", "a[i0,i2]"), 0, 1},
    {"the factor is computed", JOINED("i2", "max(b[i2,i1], 0:f32)"), 1, 0},
    {"of whole numbers",
     "kernel k(in a: i32[3,5], in b: i32[5,4], out c: i32[3,4]) { par i0 < 3 { par i1 < 4 { var v0: i32 = 0:i32 red i2 < 5 { v0 = add(v0, "
     "mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
     0, 1},
    {"one more than the sum is stored",
     "kernel k(in a: f32[3,5], in b: f32[5,4], out c: f32[3,4]) { par i0 < 3 { par i1 < 4 { var v0: f32 = 0:f32 red i2 < 5 { v0 = add(v0, "
     "mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = add(v0, 1:f32) } } }",
     0, 1},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct arena arena;
    arena_init(&arena);
    if (kernel_of_terms(parsed(others[i].text, &arena), others[i].part, others[i].dim, 1, 2, &arena))
      test_fail("%s: it is made of some of its terms", others[i].name);
    arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_product_goes_over_all_turns),   cmocka_unit_test(its_values_are_those_of_the_turns_together),
    cmocka_unit_test(terms_and_turns_may_be_sizes),    cmocka_unit_test(nothing_else_does),
    cmocka_unit_test(a_product_is_made_for_each_turn), cmocka_unit_test(each_value_has_the_bits_of_its_turn),
    cmocka_unit_test(no_other_is_made_for_each),       cmocka_unit_test(a_product_is_made_of_some_of_its_terms),
    cmocka_unit_test(its_parts_add_up_to_the_whole),   cmocka_unit_test(no_other_is_made_of_some),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
