/* Lists of CPUs to build for, and the level that each asks of a machine. */
#include <string.h>

#include "compiler/cpus.h"
#include "tests/support/test.h"

static void names_are_read_with_their_levels(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct cpu_list list;
  assert_int_equal(cpus_read("x86-64-v4,haswell,x86-64-v2,x86-64", false, &arena, &list), OK);
  static const char *const names[] = {"x86-64-v4", "haswell", "x86-64-v2", "x86-64"};
  assert_int_equal(list.count, 4);
  for (uint32_t i = 0; i < 4; i++) {
    assert_string_equal(list.items[i].name, names[i]);
    assert_int_equal(list.items[i].level, 4 - i);
  }
  arena_deinit(&arena);
}

static void what_is_no_list_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {{"", "a name is missing"},     {"x86-64,", "a name is missing"}, {",x86-64", "a name is missing"},
               {"x86-64,nosuch", "'nosuch'"}, {"haswell,haswell", "twice"},     {"x86-64,haswell,znver3,znver4,skylake", "more than 4"}};
  struct arena arena;
  arena_init(&arena);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cpu_list list = {.count = 7};
    assert_int_equal(cpus_read(cases[i].text, false, &arena, &list), INVALID_ARGUMENT);
    assert_non_null(strstr(status_text(), cases[i].says));
    assert_int_equal(list.count, 7);
  }
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_are_read_with_their_levels),
    cmocka_unit_test(what_is_no_list_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
