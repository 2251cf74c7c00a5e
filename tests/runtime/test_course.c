/* test_course.c: where the step with a number stands among the phases of a command. */
#include "runtime/process/course.h"
#include "tests/support/test.h"

static void a_number_leads_to_its_step_and_back(void **state) {
  (void)state;
  static const struct course_phase phases[] = {{3, true}, {1, false}, {2, true}};
  static const struct {
    uint64_t serial;
    uint32_t phase;
    int64_t step;
  } cases[] = {{1, 0, 0}, {2, 0, 1}, {3, 0, 2}, {4, 1, 0}, {5, 2, 1}, {6, 3, 0}, {100, 3, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct course_place place = course_find(phases, 3, cases[i].serial);
    assert_int_equal(place.phase, cases[i].phase);
    assert_int_equal(place.step, cases[i].step);
  }
  assert_int_equal(course_serial(phases, (struct course_place){0, 0}), 1);
  assert_int_equal(course_serial(phases, (struct course_place){1, 0}), 0); /* it changes nothing */
  assert_int_equal(course_serial(phases, (struct course_place){2, 0}), 4);
  assert_int_equal(course_serial(phases, (struct course_place){2, 1}), 5);
}

static void phases_before_the_first_step_are_not_left_out(void **state) {
  (void)state;
  static const struct course_phase phases[] = {{5, false}, {2, true}};
  assert_int_equal(course_find(phases, 2, 1).phase, 0);
  assert_int_equal(course_find(phases, 2, 2).phase, 1);
  assert_int_equal(course_find(phases, 2, 2).step, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_number_leads_to_its_step_and_back),
    cmocka_unit_test(phases_before_the_first_step_are_not_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
