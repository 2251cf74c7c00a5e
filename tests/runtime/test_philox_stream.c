/* Numbers of the generator that are skipped are those that would have been drawn. */
#include "runtime/resource/philox_stream.h"
#include "tests/support/test.h"

static void skipping_is_drawing(void **state) {
  (void)state;
  for (uint64_t before = 0; before < 9; before++)
    for (uint64_t count = 0; count < 70; count++) {
      struct philox drawn, skipped;
      philox_seed(&drawn, 7, UINT64_C(0xffffffff00000003));
      drawn.counter[0] = UINT32_MAX - 3; /* carries */
      for (uint64_t i = 0; i < before; i++)
        (void)philox_next(&drawn);
      skipped = drawn;
      for (uint64_t i = 0; i < count; i++)
        (void)philox_next(&drawn);
      philox_skip(&skipped, count);
      for (int i = 0; i < 9; i++)
        assert_int_equal(philox_next(&skipped), philox_next(&drawn));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(skipping_is_drawing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
