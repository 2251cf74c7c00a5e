#include "ir/graph/graph.h"

#include <stdlib.h>

#include "tests/support/test.h"
#include "tests/support/text_graph.h"

#define NODE(name, op, inputs) "node { name: '" name "' op: '" op "' " inputs " } "
#define IN(name) "input: '" name "' "

static void order_puts_inputs_and_controls_first(void **state) {
  (void)state;
  struct text_graph g;
  assert_int_equal(
    text_graph_read(&g, NODE("c", "Neg", IN("b") IN("^d")) NODE("b", "Neg", IN("a:0")) NODE("a", "Const", "") NODE("d", "NoOp", IN("^b"))),
    OK);
  uint32_t order[4];
  assert_int_equal(graph_order(g.model.graph, order), OK);
  static const char *const expected[] = {"a", "b", "d", "c"};
  for (int i = 0; i < 4; i++)
    assert_string_equal(g.model.graph->nodes.items[order[i]].name, expected[i]);
  text_graph_deinit(&g);
}

static void cycles_are_named(void **state) {
  (void)state;
  static const char *const graphs[] = {
    NODE("a", "Neg", IN("a")),
    NODE("a", "Neg", IN("b")) NODE("b", "Neg", IN("^a")),
    NODE("a", "Merge", IN("b")) NODE("b", "Neg", IN("a")),
    NODE("a", "NextIteration", IN("b")) NODE("b", "Neg", IN("a")),
  };
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    struct text_graph g;
    uint32_t order[2];
    assert_int_equal(text_graph_read(&g, graphs[i]), OK);
    assert_int_equal(graph_order(g.model.graph, order), INVALID_ARGUMENT);
    assert_non_null(strstr(status_text(), "'a'"));
    text_graph_deinit(&g);
  }
}

static void loops_through_merge_and_next_iteration_are_none(void **state) {
  (void)state;
  struct text_graph g;
  uint32_t order[3];
  assert_int_equal(text_graph_read(&g, NODE("e", "Enter", "") NODE("m", "Merge", IN("e") IN("n")) NODE("n", "NextIteration", IN("m"))), OK);
  assert_int_equal(graph_order(g.model.graph, order), OK);
  text_graph_deinit(&g);
}

static void a_chain_of_a_million_nodes_needs_no_deep_stack(void **state) {
  (void)state;
  enum { COUNT = 1000000 };
  struct node *nodes = calloc(COUNT, sizeof *nodes);
  struct edge *edges = calloc(COUNT, sizeof *edges);
  uint32_t *order = calloc(COUNT, sizeof *order);
  struct graph g = {.nodes = {.items = nodes, .count = COUNT}};
  for (uint32_t i = 0; i < COUNT; i++) {
    edges[i].node = i + 1;
    nodes[i] = (struct node){.name = "x", .op = "Neg", .inputs = &edges[i], .input_count = i + 1 < COUNT};
  }
  assert_int_equal(graph_order(&g, order), OK);
  assert_int_equal(order[0], COUNT - 1);
  free(order);
  free(edges);
  free(nodes);
}

static void outputs_are_found_by_name(void **state) {
  (void)state;
  static const struct {
    const char *tensor;
    status code;
    uint32_t port;
  } cases[] = {
    {"a", OK, 0},         {"a:0", OK, 0},        {"a:3", OK, 3},         {"x/y:1", OK, 1},       {"b", NOT_FOUND, 0},
    {"a:", NOT_FOUND, 0}, {"a:x", NOT_FOUND, 0}, {"a:-1", NOT_FOUND, 0}, {"a: 1", NOT_FOUND, 0}, {"a:4294967296", NOT_FOUND, 0},
    {"", NOT_FOUND, 0},   {":0", NOT_FOUND, 0},  {"^a", NOT_FOUND, 0},
  };
  struct text_graph g;
  assert_int_equal(text_graph_read(&g, NODE("a", "Split", "") NODE("x/y", "Split", "")), OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct edge e = {0};
    assert_int_equal(graph_find_output(g.model.graph, cases[i].tensor, &e), cases[i].code);
    assert_int_equal(e.port, cases[i].port);
  }
  text_graph_deinit(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(order_puts_inputs_and_controls_first),
    cmocka_unit_test(cycles_are_named),
    cmocka_unit_test(loops_through_merge_and_next_iteration_are_none),
    cmocka_unit_test(a_chain_of_a_million_nodes_needs_no_deep_stack),
    cmocka_unit_test(outputs_are_found_by_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
