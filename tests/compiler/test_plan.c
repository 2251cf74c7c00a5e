/* test_plan.c: what the passes order, lanes and plan decide is verified: each kind of wrong decision is found. */
#include "compiler/pass/lanes.h"
#include "compiler/pass/order.h"
#include "compiler/pass/plan.h"
#include "compiler/pipeline.h"
#include "tests/support/test.h"

#define GRAPH SOURCE_DIR "/tests/golden_ir/cross_entropy_gradient/graph.pbtxt"

struct fixture {
  struct build build;
  struct flow *flow;
};

static void fixture_init(struct fixture *f) {
  memset(f, 0, sizeof *f);
  arena_init(&f->build.arena);
  f->build.options.graph_path = GRAPH;
  f->build.options.cpu = "x86-64-v3";
  vec_push(&f->build.options.entries, "main: labels, logits -> loss, gradient");
  assert_int_equal(pipeline_run(&f->build), OK);
  f->flow = f->build.entries.items[0].parts.items[0].flow;
}

static void fixture_deinit(struct fixture *f) {
  model_deinit(&f->build.model);
  vec_free(&f->build.options.entries);
  arena_deinit(&f->build.arena);
}

/* A kernel that reads what another kernel of the flow has made, and that value. */
static flow_id find_user(const struct flow *f, value_id *read) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && n->op == FLOW_KERNEL && i < flow_input_count(n); i++) {
      flow_id maker = f->values.items[flow_input(n, i)].producer;
      if (!maker || f->nodes.items[maker]->op != FLOW_KERNEL)
        continue;
      *read = flow_input(n, i);
      return id;
    }
  }
  test_fail("no kernel uses what another one makes");
  return 0;
}

static uint32_t place_in_order(const struct flow *f, flow_id id) {
  uint32_t i = 0;
  while (f->order->nodes.items[i] != id)
    i++;
  return i;
}

static void what_the_passes_decide_is_right(void **state) {
  (void)state;
  struct fixture f;
  fixture_init(&f);
  assert_int_equal(order_verify(f.flow), OK);
  assert_int_equal(lanes_verify(f.flow), OK);
  assert_int_equal(plan_verify(f.flow), OK);
  fixture_deinit(&f);
}

static void an_order_that_runs_a_user_first_is_found(void **state) {
  (void)state;
  struct fixture f;
  value_id read;
  fixture_init(&f);
  flow_id user = find_user(f.flow, &read), maker = f.flow->values.items[read].producer, *nodes = f.flow->order->nodes.items;
  uint32_t a = place_in_order(f.flow, maker), b = place_in_order(f.flow, user);
  nodes[a] = user;
  nodes[b] = maker;
  assert_int_equal(order_verify(f.flow), INTERNAL);
  assert_int_equal(lanes_verify(f.flow), INTERNAL);
  nodes[a] = nodes[b] = maker;
  assert_int_equal(order_verify(f.flow), INTERNAL);
  fixture_deinit(&f);
}

static void a_release_before_the_last_use_is_found(void **state) {
  (void)state;
  struct fixture f;
  value_id read;
  fixture_init(&f);
  flow_id user = find_user(f.flow, &read);
  (void)user;
  struct order *order = f.flow->order;
  for (uint32_t i = 0; i < order->release.count; i++)
    if (order->release.items[i].value == flow_root(f.flow, read))
      order->release.items[i].after = f.flow->values.items[read].producer;
  assert_int_equal(order_verify(f.flow), INTERNAL);
  fixture_deinit(&f);
}

static void a_group_whose_members_need_each_other_is_found(void **state) {
  (void)state;
  struct fixture f;
  value_id read;
  fixture_init(&f);
  flow_id user = find_user(f.flow, &read);
  f.flow->lanes->group[user] = f.flow->lanes->group[f.flow->values.items[read].producer] = 1000;
  assert_int_equal(lanes_verify(f.flow), INTERNAL);
  fixture_deinit(&f);
}

static void a_life_that_ends_too_early_is_found(void **state) {
  (void)state;
  struct fixture f;
  value_id read;
  fixture_init(&f);
  flow_id user = find_user(f.flow, &read);
  struct plan *plan = f.flow->plan;
  plan->places[plan->places[read].root].last = plan->at[user] - 1;
  assert_int_equal(plan_verify(f.flow), INTERNAL);
  fixture_deinit(&f);
}

static void a_fetch_in_the_arena_is_found(void **state) {
  (void)state;
  struct fixture f;
  fixture_init(&f);
  struct plan *plan = f.flow->plan;
  for (flow_id id = 1; id < f.flow->nodes.count; id++)
    if (f.flow->nodes.items[id] && f.flow->nodes.items[id]->op == FLOW_FETCH)
      plan->places[plan->places[f.flow->nodes.items[id]->inputs.items[0]].root].storage = STORAGE_ARENA;
  assert_int_equal(plan_verify(f.flow), INTERNAL);
  fixture_deinit(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_the_passes_decide_is_right),        cmocka_unit_test(an_order_that_runs_a_user_first_is_found),
    cmocka_unit_test(a_release_before_the_last_use_is_found), cmocka_unit_test(a_group_whose_members_need_each_other_is_found),
    cmocka_unit_test(a_life_that_ends_too_early_is_found),    cmocka_unit_test(a_fetch_in_the_arena_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
