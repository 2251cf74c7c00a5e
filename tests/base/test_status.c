#include "base/status.h"

#include <string.h>

#include "tests/support/test.h"

static status fails(void) { return fail(NOT_FOUND, "no '%s'", "x"); }

static status tries(void) {
  TRY(fails());
  return OK;
}

static void a_failure_keeps_its_text(void **state) {
  (void)state;
  assert_int_equal(tries(), NOT_FOUND);
  assert_string_equal(status_text(), "no 'x'");
}

static void texts_can_be_put_around_it(void **state) {
  (void)state;
  assert_int_equal(status_prefix(fails(), "%s: ", "here"), NOT_FOUND);
  assert_int_equal(status_suffix(NOT_FOUND, " (%d)", 7), NOT_FOUND);
  assert_string_equal(status_text(), "here: no 'x' (7)");
}

static void a_failure_may_quote_the_one_before(void **state) {
  (void)state;
  assert_int_equal(fails(), NOT_FOUND);
  assert_int_equal(fail(INTERNAL, "again: %s", status_text()), INTERNAL);
  assert_string_equal(status_text(), "again: no 'x'");
}

static void a_text_is_one_line_whatever_is_in_a_name(void **state) {
  (void)state;
  assert_int_equal(fail(NOT_FOUND, "no '%s'", "x\ny\r\033[2J"), NOT_FOUND);
  status_prefix(NOT_FOUND, "%s: ", "a\nb");
  status_suffix(NOT_FOUND, " (%s)", "c\nd");
  assert_string_equal(status_text(), "a b: no 'x y  [2J' (c d)");
}

static void the_text_of_a_check_shows_its_values(void **state) {
  (void)state;
  const int64_t shown[STATUS_SHOWN] = {-7, INT64_MIN, 5};
  assert_int_equal(fail_shown(OUT_OF_RANGE, "%d of %d, %d: 50%%, %%d, %d, %", shown), OUT_OF_RANGE);
  assert_string_equal(status_text(), "-7 of -9223372036854775808, 5: 50%, %d, %d, %");
}

static void long_texts_are_cut(void **state) {
  (void)state;
  char text[5000];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = 0;
  assert_int_equal(fail(ABORTED, "%s", text), ABORTED);
  assert_int_equal(strlen(status_text()), 2047);
  status_prefix(ABORTED, "%s", text);
  status_suffix(ABORTED, "%s", text);
  assert_int_equal(strlen(status_text()), 2047);
}

static void a_failure_can_be_told_later(void **state) {
  (void)state;
  struct kept_status kept = status_keep(fails()), none = status_keep(OK);
  assert_int_equal(fail(INTERNAL, "another"), INTERNAL);
  assert_int_equal(status_tell(&none), OK);
  assert_string_equal(status_text(), "another");
  assert_int_equal(status_repeat(&kept), NOT_FOUND);
  assert_int_equal(fail(INTERNAL, "another"), INTERNAL);
  assert_int_equal(status_tell(&kept), NOT_FOUND);
  assert_string_equal(status_text(), "no 'x'");
  assert_int_equal(status_tell(&kept), OK);
  kept = status_keep(fails());
  status_drop(&kept);
  assert_int_equal(kept.code, OK);
}

static void codes_have_names_and_exit_codes(void **state) {
  (void)state;
  static const struct {
    status code;
    const char *name;
    int exit_code;
  } cases[] = {
    {OK, "OK", 0},
    {INVALID_ARGUMENT, "INVALID_ARGUMENT", 65},
    {NOT_FOUND, "NOT_FOUND", 65},
    {UNIMPLEMENTED, "UNIMPLEMENTED", 65},
    {UNAVAILABLE, "UNAVAILABLE", 69},
    {DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", 69},
    {INTERNAL, "INTERNAL", 70},
    {DATA_LOSS, "DATA_LOSS", 74},
    {UNAUTHENTICATED, "UNAUTHENTICATED", 69},
    {(status)99, "UNKNOWN", 70},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_string_equal(status_name(cases[i].code), cases[i].name);
    assert_int_equal(status_exit_code(cases[i].code), cases[i].exit_code);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_failure_keeps_its_text),
    cmocka_unit_test(texts_can_be_put_around_it),
    cmocka_unit_test(a_failure_may_quote_the_one_before),
    cmocka_unit_test(a_text_is_one_line_whatever_is_in_a_name),
    cmocka_unit_test(the_text_of_a_check_shows_its_values),
    cmocka_unit_test(long_texts_are_cut),
    cmocka_unit_test(a_failure_can_be_told_later),
    cmocka_unit_test(codes_have_names_and_exit_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
