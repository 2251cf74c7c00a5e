#include "base/arena.h"

#include <string.h>

#include "tests/support/test.h"

static void memory_is_zeroed_and_aligned(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  for (size_t size = 0; size < 3000; size = size * 3 / 2 + 1)
    for (size_t align = 16; align <= 4096; align *= 4) {
      unsigned char *p = arena_alloc_aligned(&arena, size, align);
      assert_int_equal((uintptr_t)p % align, 0);
      for (size_t i = 0; i < size; i++)
        assert_int_equal(p[i], 0);
      memset(p, 0xff, size);
    }
  arena_deinit(&arena);
}

static void a_large_request_leaves_the_block_in_use(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  char *small = arena_alloc(&arena, 16);
  arena_alloc(&arena, (size_t)64 << 20);
  assert_ptr_equal(arena_alloc(&arena, 16), small + 16);
  arena_deinit(&arena);
}

static void texts_are_copied(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  assert_string_equal(arena_strdup(&arena, "abc"), "abc");
  assert_string_equal(arena_strndup(&arena, "abcdef", 2), "ab");
  assert_string_equal(arena_printf(&arena, "%s-%d", "x", 42), "x-42");
  assert_memory_equal(arena_copy(&arena, "a\0b", 3), "a\0b", 3);
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_is_zeroed_and_aligned),
    cmocka_unit_test(a_large_request_leaves_the_block_in_use),
    cmocka_unit_test(texts_are_copied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
