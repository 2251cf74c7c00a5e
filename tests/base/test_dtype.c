#include "base/dtype.h"

#include <math.h>
#include <string.h>

#include "tests/support/test.h"

static void names_lead_back_to_the_type(void **state) {
  (void)state;
  for (int i = 1; i < DTYPE_COUNT; i++) {
    enum dtype found = DTYPE_INVALID;
    assert_true(dtype_from_name(dtype_name((enum dtype)i), &found));
    assert_int_equal(found, i);
    assert_true(dtype_from_name(dtype_short((enum dtype)i), &found));
    assert_int_equal(found, i);
  }
  enum dtype found = DTYPE_INVALID;
  assert_true(dtype_from_name("DT_BFLOAT16", &found));
  assert_int_equal(found, DTYPE_BFLOAT16);
  assert_false(dtype_from_name("DT_float", &found));
  assert_false(dtype_from_name("", &found));
  assert_false(dtype_from_name("float31", &found));
}

static void numbers_that_are_no_type_are_harmless(void **state) {
  (void)state;
  static const int numbers[] = {-1, 0, 24, 99, 100, 255, 1 << 30};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    assert_false(dtype_is_valid(numbers[i]));
    assert_int_equal(dtype_size((enum dtype)numbers[i]), 0);
    assert_string_equal(dtype_name((enum dtype)numbers[i]), "invalid");
  }
  assert_int_equal(dtype_base(101), DTYPE_FLOAT);
  assert_int_equal(dtype_base(1), DTYPE_FLOAT);
}

static void each_type_is_of_one_kind(void **state) {
  (void)state;
  for (int i = 1; i < DTYPE_COUNT; i++) {
    enum dtype d = (enum dtype)i;
    int kinds = dtype_is_float(d) + dtype_is_complex(d) + dtype_is_signed(d) + dtype_is_unsigned(d);
    bool other = d == DTYPE_BOOL || d == DTYPE_STRING || d == DTYPE_RESOURCE || d == DTYPE_VARIANT;
    assert_int_equal(kinds, !other);
    assert_int_equal(dtype_is_integer(d), dtype_is_signed(d) || dtype_is_unsigned(d));
  }
}

static void every_half_survives_the_way_to_float_and_back(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits <= 0xffff; bits++) {
    float value = half_to_float((uint16_t)bits);
    if (isnan(value))
      assert_true(isnan(half_to_float(float_to_half(value))));
    else
      assert_int_equal(float_to_half(value), bits);
    float wide = bfloat16_to_float((uint16_t)bits);
    if (isnan(wide))
      assert_true(isnan(bfloat16_to_float(float_to_bfloat16(wide))));
    else
      assert_int_equal(float_to_bfloat16(wide), bits);
  }
}

/* The nearest of all halves, even mantissa on a tie, against which the fast way is checked at and around midpoints. */
static void floats_round_to_the_nearest_half_and_ties_to_even(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x7bff; bits++) {
    double low = (double)half_to_float((uint16_t)bits), high = (double)half_to_float((uint16_t)(bits + 1));
    float middle = (float)((low + high) / 2);
    assert_int_equal(float_to_half(middle), bits & 1 ? bits + 1 : bits);
    assert_int_equal(float_to_half(nextafterf(middle, 0)), bits);
    assert_int_equal(float_to_half(nextafterf(middle, INFINITY)), bits + 1);
    assert_int_equal(float_to_half(-middle), 0x8000 | (bits & 1 ? bits + 1 : bits));
  }
}

static void special_values_stay_special(void **state) {
  (void)state;
  assert_int_equal(float_to_half(INFINITY), 0x7c00);
  assert_int_equal(float_to_half(-INFINITY), 0xfc00);
  assert_int_equal(float_to_half(65519.996f), 0x7bff);
  assert_int_equal(float_to_half(65520.0f), 0x7c00);
  assert_int_equal(float_to_half(1e30f), 0x7c00);
  assert_int_equal(float_to_half(-0.0f), 0x8000);
  assert_int_equal(float_to_half(1e-30f), 0);
  assert_int_equal(float_to_bfloat16(INFINITY), 0x7f80);
  assert_int_equal(float_to_bfloat16(3.4e38f), 0x7f80);
  assert_true(isnan(bfloat16_to_float(float_to_bfloat16(NAN))));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_lead_back_to_the_type),
    cmocka_unit_test(numbers_that_are_no_type_are_harmless),
    cmocka_unit_test(each_type_is_of_one_kind),
    cmocka_unit_test(every_half_survives_the_way_to_float_and_back),
    cmocka_unit_test(floats_round_to_the_nearest_half_and_ties_to_even),
    cmocka_unit_test(special_values_stay_special),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
