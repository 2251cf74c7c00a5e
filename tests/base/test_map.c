#include "base/map.h"

#include <stdio.h>

#include "tests/support/test.h"

#define COUNT 5000

static void what_was_inserted_is_found(void **state) {
  (void)state;
  static char keys[COUNT][16];
  struct map map = {0};
  uint32_t value;
  assert_false(map_find(&map, "anything", &value));
  for (uint32_t i = 0; i < COUNT; i++) {
    snprintf(keys[i], sizeof keys[i], "key%u", i);
    assert_true(map_insert(&map, keys[i], i));
  }
  for (uint32_t i = 0; i < COUNT; i++) {
    assert_true(map_find(&map, keys[i], &value));
    assert_int_equal(value, i);
    assert_string_equal(map.entries[i].key, keys[i]); /* a walk sees the order of insertion */
  }
  assert_false(map_find(&map, "key5000", &value));
  assert_false(map_find(&map, "", &value));
  map_deinit(&map);
}

static void insert_keeps_and_set_replaces(void **state) {
  (void)state;
  struct map map = {0};
  uint32_t value;
  assert_true(map_insert(&map, "a", 1));
  assert_false(map_insert(&map, "a", 2));
  assert_true(map_find(&map, "a", &value));
  assert_int_equal(value, 1);
  map_set(&map, "a", 3);
  map_set(&map, "b", 4);
  assert_true(map_find(&map, "a", &value));
  assert_int_equal(value, 3);
  assert_int_equal(map.count, 2);
  map_deinit(&map);
}

static void hashes_depend_on_every_byte_and_the_seed(void **state) {
  (void)state;
  assert_true(hash_bytes("abc", 3, 0) == hash_bytes("abcd", 3, 0));
  assert_true(hash_bytes("abc", 3, 0) != hash_bytes("abd", 3, 0));
  assert_true(hash_bytes("abc", 3, 0) != hash_bytes("abc", 3, 1));
  assert_true(hash_bytes("\0", 1, 0) != hash_bytes("\0\0", 2, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_inserted_is_found),
    cmocka_unit_test(insert_keeps_and_set_replaces),
    cmocka_unit_test(hashes_depend_on_every_byte_and_the_seed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
