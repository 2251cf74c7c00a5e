/* test_feed_ranks.c: which ranks the ops of a graph leave for what is fed. */
#include "ir/graph/feed_ranks.h"
#include "tests/support/graph_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define X "x Placeholder - dtype=FLOAT\n"
#define Y "y Placeholder - dtype=FLOAT\n"

static const struct ranks_case {
  const char *about, *lines;
  rank_set x; /* of what is fed there */
} cases[] = {
  {"an op that takes every rank", X "a Relu - x T=FLOAT", RANKS_ALL},
  {"an op that takes one", X Y "a MatMul - x y T=FLOAT", UINT64_C(1) << 2},
  {"behind ops that keep it", X Y "a Relu - x T=FLOAT\nb Identity - a T=FLOAT\nc MatMul - y b T=FLOAT", UINT64_C(1) << 2},
  {"from a rank on", X Y "a BiasAdd - x y T=FLOAT", RANKS_ALL << 2},
  {"behind one that keeps the rank of its first input", X Y "a BiasAdd - x y T=FLOAT\nb L2Loss - a T=FLOAT\nc MatMul - a y T=FLOAT",
   UINT64_C(1) << 2},
  {"behind one that does not", X Y "a AddV2 - x y T=FLOAT\nb MatMul - a a T=FLOAT", RANKS_ALL},
  {"two that agree", X Y "a BiasAdd - x y T=FLOAT\nb Softmax - x T=FLOAT", RANKS_ALL << 2},
  {"two that do not: nothing is likely", X Y "a BiasAdd - y x T=FLOAT\nb MatMul - x x T=FLOAT", RANKS_ALL},
  {"what only the kernel refuses", X Y "a GRUBlockCell - y y y y x x T=FLOAT", UINT64_C(1) << 1},
};

static void what_takes_a_feed_says_its_ranks(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct ranks_case *at = &cases[i];
    struct build b;
    assert_int_equal(graph_builder_build(at->lines, NULL, &b), OK);
    const struct graph *g = b.model.graph;
    bool *needed = ARENA_ARRAY(&b.arena, bool, g->nodes.count);
    memset(needed, true, g->nodes.count);
    struct edge x = {graph_find(g, "x"), 0};
    rank_set ranks;
    assert_int_equal(feed_ranks(g, needed, &x, 1, &b.arena, &ranks), OK);
    if (ranks != at->x)
      fail_msg("%s: the ranks are %llx, not %llx", at->about, (unsigned long long)ranks, (unsigned long long)at->x);
    memset(needed, false, g->nodes.count); /* what nobody needs says nothing */
    assert_int_equal(feed_ranks(g, needed, &x, 1, &b.arena, &ranks), OK);
    assert_true(ranks == RANKS_ALL);
    graph_builder_free(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_takes_a_feed_says_its_ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
