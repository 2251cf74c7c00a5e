/* test_arena_plan.c: values that live at the same time never share memory, and others do. */
#include <stdbool.h>

#include "runtime/memory/arena_plan.h"
#include "tests/support/test.h"

static const struct {
  const char *name;
  struct arena_item items[4];
  uint32_t count;
  uint64_t bytes;
} cases[] = {
  {"nothing needs nothing", {{0}}, 0, 0},
  {"a value is rounded up to a cache line", {{1, 1, 2, 0}}, 1, 64},
  {"values one after the other share", {{128, 1, 2, 0}, {128, 3, 4, 0}}, 2, 128},
  {"a value that is read while the next is written keeps its place", {{128, 1, 2, 0}, {128, 2, 3, 0}}, 2, 256},
  {"a small value fills the gap beside a large one", {{256, 1, 2, 0}, {64, 3, 4, 0}, {128, 3, 4, 0}}, 3, 256},
  {"empty values take no room", {{0, 1, 9, 0}, {64, 1, 9, 0}}, 2, 64},
};

static void check_disjoint(const struct arena_item *items, uint32_t count, uint64_t bytes) {
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(items[i].offset % 64, 0);
    assert_true(items[i].offset + items[i].bytes <= bytes);
    for (uint32_t j = 0; j < i; j++) {
      bool together = items[i].first <= items[j].last && items[j].first <= items[i].last;
      bool overlap = items[i].offset < items[j].offset + items[j].bytes && items[j].offset < items[i].offset + items[i].bytes;
      if (together && overlap)
        test_fail("items %u and %u share memory while both live", i, j);
    }
  }
}

static void places_are_as_small_as_can_be(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct arena_item items[4];
    for (int j = 0; j < 4; j++)
      items[j] = cases[i].items[j];
    uint64_t bytes = arena_place(items, cases[i].count);
    if (bytes != cases[i].bytes)
      test_fail("%s: %llu bytes", cases[i].name, (unsigned long long)bytes);
    check_disjoint(items, cases[i].count, bytes);
  }
}

static void random_lifetimes_never_overlap(void **state) {
  (void)state;
  uint32_t seed = 1;
  for (int turn = 0; turn < 200; turn++) {
    struct arena_item items[40];
    for (int i = 0; i < 40; i++) {
      seed = seed * 1664525u + 1013904223u;
      items[i].bytes = (seed >> 20) % 1000;
      items[i].first = (seed >> 8) % 50;
      items[i].last = items[i].first + (seed >> 16) % 10;
    }
    uint64_t bytes = arena_place(items, 40);
    check_disjoint(items, 40, bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(places_are_as_small_as_can_be),
    cmocka_unit_test(random_lifetimes_never_overlap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
