/* test_device.c: the grammar of device names, and how two of them meet. */
#include "compiler/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const struct {
  const char *text, *canonical; /* NULL: malformed */
} names[] = {
  {"", ""},
  {"/", ""},
  {"/job:ps/replica:0/task:1/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0"},
  {"/device:CPU:0/task:1/job:ps", "/job:ps/task:1/device:CPU:0"},
  {"/job:worker", "/job:worker"},
  {"/job:*/task:*", ""},
  {"/job:a/job:b", "/job:b"},
  {"/cpu:0", "/device:CPU:0"},
  {"/CPU:0", "/device:CPU:0"},
  {"/gpu:1", "/device:GPU:1"},
  {"/gpu:*", "/device:GPU:*"},
  {"/device:GPU", "/device:GPU:*"},
  {"/device:GPU:*", "/device:GPU:*"},
  {"/device:*:0", "/device:*:0"},
  {"/job:w_1/task:2147483647", "/job:w_1/task:2147483647"},
  {"/cpu", NULL},
  {"/job:", NULL},
  {"/job:1a", NULL},
  {"/task:x", NULL},
  {"/task:-1", NULL},
  {"/task:2147483648", NULL},
  {"/task:99999999999999999999", NULL},
  {"job:ps", NULL},
  {"/job:ps ", NULL},
  {"/job:ps/", NULL},
  {"//", NULL},
  {"/device:", NULL},
  {"/device:CPU:", NULL},
  {"/machine:1", NULL},
};

static void full_partial_and_old_names_are_read(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct device_spec spec;
    bool good = device_parse(&arena, names[i].text, &spec);
    if (good != (names[i].canonical != NULL))
      fail_msg("'%s' is %s", names[i].text, good ? "taken" : "refused");
    if (good)
      assert_string_equal(device_text(&arena, &spec), names[i].canonical);
  }
  arena_deinit(&arena);
}

static const struct {
  const char *a, *b;
  bool soft;
  const char *merged, *error;
} merges[] = {
  {"/job:ps", "/task:1", false, "/job:ps/task:1", NULL},
  {"/job:ps/task:1", "/job:ps/cpu:0", false, "/job:ps/task:1/device:CPU:0", NULL},
  {"/job:ps", "/job:worker", false, NULL, "Cannot merge devices with incompatible jobs: '/job:ps' and '/job:worker'"},
  {"/job:ps", "/job:worker", true, NULL, "Cannot merge devices with incompatible jobs: '/job:ps' and '/job:worker'"},
  {"/task:0", "/task:1", false, NULL, "incompatible tasks"},
  {"/replica:0", "/replica:1", false, NULL, "incompatible replicas"},
  {"/cpu:0", "/gpu:0", false, NULL, "incompatible types"},
  {"/gpu:0", "/gpu:1", false, NULL, "incompatible ids"},
  {"/task:1/cpu:0", "/gpu:0", true, "/task:1", NULL},
  {"/gpu:0", "/gpu:1", true, "/device:GPU:*", NULL},
};

static void two_names_are_merged_or_conflict(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
    struct device_spec a, b;
    assert_true(device_parse(&arena, merges[i].a, &a) && device_parse(&arena, merges[i].b, &b));
    const char *before = device_text(&arena, &a);
    status result = device_merge(&arena, &b, merges[i].soft, &a);
    if (merges[i].error) {
      assert_int_equal(result, INVALID_ARGUMENT);
      assert_non_null(strstr(status_text(), merges[i].error));
      assert_string_equal(device_text(&arena, &a), before);
    } else {
      assert_int_equal(result, OK);
      assert_string_equal(device_text(&arena, &a), merges[i].merged);
    }
  }
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(full_partial_and_old_names_are_read),
    cmocka_unit_test(two_names_are_merged_or_conflict),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
