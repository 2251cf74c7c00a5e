/* Blocks of all sizes are aligned for vectors, and theirs to the last byte. */
#include "base/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

static void blocks_are_aligned_and_whole(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 63, 64, 4097, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (9 << 20) + 5000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char *data = pages_create(sizes[i]);
    if (!data || (uintptr_t)data % 64)
      test_fail("a block of %zu bytes lies at %p", sizes[i], (void *)data);
    memset(data, 7, sizes[i]);
    free(data);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_aligned_and_whole)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
