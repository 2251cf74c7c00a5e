/* test_arena_plan.c: values that live at the same time never share memory, and others do; a part has threads where its kernels gain by
 * them. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "runtime/memory/arena_plan.h"
#include "tests/support/part_text.h"
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

/* ---- threads ---- */

/* Kernels that take so long on one core, and have so many lines of results. */
#define LINE_NS 10
#define WORTH_COST (10 * KERNEL_WORTH_NS)
#define SHARED_COST (2 * KERNEL_WORTH_NS)
#define SHARED_LINES (SHARED_COST / LINE_NS)
#define SMALL_COST (KERNEL_WORTH_NS - 1)
static int64_t query_worth(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what == KERNEL_COST ? WORTH_COST : what == KERNEL_SHARING ? 0 : what >= 0 ? 4 : 1;
}
static int64_t query_shared(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what == KERNEL_COST ? SHARED_COST : what == KERNEL_SHARING ? SHARED_LINES : what >= 0 ? 4 : 1;
}
static int64_t query_small(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what == KERNEL_COST ? SMALL_COST : what == KERNEL_SHARING ? 0 : 1;
}
static int64_t query_read(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what == KERNEL_COST ? SMALL_COST : what == KERNEL_SHARING ? WORTH_COST / LINE_NS : 1;
}
static int64_t query_one(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what == KERNEL_COST ? WORTH_COST : what == KERNEL_SHARING ? 0 : 1;
}
enum { NONE, WORTH, SHARED, SMALL, READ, ONE };
static const struct kernel_code codes[] = {[WORTH] = {.query = query_worth},
                                           [SHARED] = {.query = query_shared},
                                           [SMALL] = {.query = query_small},
                                           [READ] = {.query = query_read},
                                           [ONE] = {.query = query_one}};
static const int64_t costs[] =
  {[WORTH] = WORTH_COST, [SHARED] = SHARED_COST, [SMALL] = SMALL_COST, [READ] = SMALL_COST, [ONE] = WORTH_COST};

/* Slot i is what kernel i makes. */
#define KERNELS 6
#define READS(...) \
  { __VA_ARGS__ }
static const struct {
  const char *name;
  int front[3], regions[3]; /* kernels in front of regions and in them: numbers 0 .. 2, and from 3 on */
  uint32_t reads[KERNELS];  /* bits: slots that each of them takes */
  bool has_threads;
} parts[] = {
  {"a kernel that takes long", {WORTH}, {0}, READS(0), true},
  {"a kernel whose lines cost more than it gains", {SHARED, SMALL}, {0}, READS(0, S(0)), false},
  {"but for others, not for itself", {SHARED}, {0}, READS(S(0)), true},
  {"lines that nobody reads", {SHARED, SMALL}, {0}, READS(0), true},
  {"a kernel of one tile, which no second thread can share", {ONE}, {0}, READS(0), false},
  {"kernels too small to wake a thread", {SMALL, SMALL, SMALL}, {0}, READS(0, S(0), S(1)), false},
  {"a small one whose many lines others read", {READ, WORTH}, {0}, READS(0, S(0)), false},
  {"or only small ones, on the same thread", {READ, SMALL, WORTH}, {0}, READS(0, S(0)), true},
  {"one that gains more than the others cost", {SHARED, WORTH, SMALL}, {0}, READS(0, 0, S(0)), true},
  {"many that cost more than the one gains", {SHARED, SHARED, SMALL}, {SHARED, SMALL}, READS(0, S(0), S(1), 0, S(3)), false},
  {"regions may run often: their gain counts by itself", {SHARED, SHARED, SHARED}, {WORTH}, READS(0, S(0), S(1), S(2)), true},
  {"and what they cost is not taken from the front's", {WORTH}, {SHARED, SHARED, SHARED}, READS(0, 0, 0, 0, S(3), S(4)), true},
  {"a part without kernels", {0}, {0}, READS(0), false},
};

static void a_part_has_threads_where_its_kernels_gain_by_them(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    struct part_text text;
    begin_text(&text);
    for (int k = 0; k < KERNELS; k++) {
      int kernel = k < 3 ? parts[i].front[k] : parts[i].regions[k - 3];
      if (!kernel)
        continue;
      add_kernel(&text, kernel, parts[i].reads[k], S(k));
      text.blocks[0].instrs.count += k < 3;
    }
    struct arena_plan *plan;
    assert_int_equal(arena_plan_create(&text.head, &text.part, codes, NULL, 0, LINE_NS, &plan), OK);
    for (uint32_t k = 0; k < text.part.instr_count; k++) {
      int64_t wanted = parts[i].has_threads ? costs[text.instrs[k].number] : 0;
      if (plan->launches[k].cost != wanted)
        test_fail("%s: kernel %u costs %lld", parts[i].name, k, (long long)plan->launches[k].cost);
    }
    arena_plan_destroy(plan);
  }
}

/* In front a kernel that takes long, and a loop over so many rows, whose body has one with lines that another one reads. */
static bool loop_has_threads(int64_t rows) {
  struct part_text text;
  struct arena_plan *plan;
  begin_text(&text);
  add_kernel(&text, WORTH, 0, S(0));
  uint32_t loop = text.part.instr_count++;
  add_kernel(&text, SHARED, 0, S(1));
  add_kernel(&text, SMALL, S(1), S(2));
  text.blocks[0].instrs.count = 2;
  text.blocks[2].instrs = (struct program_range){2, 2};
  text.blocks[2].params = operands_of(&text, S(5));
  text.instrs[loop] = (struct program_instr){.op = INSTR_WHILE, .number = 1, .args = operands_of(&text, S(4)), .blocks = {1, 2}};
  text.slots[4].rank = 1;
  text.slots[4].dims = text.operand_count;
  text.operands[text.operand_count++] = 0;
  memcpy(text.words, (int64_t[]){PROGRAM_DIM_CONST, rows, PROGRAM_DIM_END}, 3 * sizeof(int64_t));
  assert_int_equal(arena_plan_create(&text.head, &text.part, codes, NULL, 0, LINE_NS, &plan), OK);
  bool has_threads = plan->launches[0].cost > 0;
  arena_plan_destroy(plan);
  return has_threads;
}
static void a_loop_over_rows_counts_as_often_as_it_turns(void **state) {
  (void)state;
  assert_true(loop_has_threads(2));
  assert_false(loop_has_threads(100));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(places_are_as_small_as_can_be),
    cmocka_unit_test(random_lifetimes_never_overlap),
    cmocka_unit_test(a_part_has_threads_where_its_kernels_gain_by_them),
    cmocka_unit_test(a_loop_over_rows_counts_as_often_as_it_turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
