#include "ir/graph/registry.h"

#include <stdio.h>

#include "tests/support/test.h"
#include "tests/support/text_graph.h"

#define A "node { name: 'a' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } "
#define I "node { name: 'i' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } } "
#define T(type) "attr { key: 'T' value { type: " type " } } "
#define INT(name, i) "attr { key: '" name "' value { i: " i " } } "

static void signatures_are_those_of_tensorflow(void **state) {
  (void)state;
  const struct op_def *op = registry_find("MatMul");
  assert_non_null(op);
  assert_int_equal(op->input_count, 2);
  assert_string_equal(op->inputs[1].name, "b");
  assert_string_equal(op->inputs[1].type_attr, "T");
  assert_false(op->is_stateful);
  assert_true(registry_find("VariableV2")->is_stateful);
  assert_true(registry_find("Assign")->inputs[0].is_ref);
  assert_string_equal(registry_find("AddN")->inputs[0].number_attr, "N");
  assert_string_equal(registry_find("IdentityN")->inputs[0].list_attr, "T");
  assert_int_equal(registry_find("Shape")->attrs[1].value.i, DTYPE_INT32);
  assert_null(registry_find("NoSuchOp"));
  assert_true(registry_count() > 1000);
}

static void ranks_are_those_that_tensorflow_takes(void **state) {
  (void)state;
  assert_true(registry_find("MatMul")->inputs[0].ranks == ranks_of(2));
  assert_true(registry_find("Sum")->inputs[1].ranks == (ranks_of(0) | ranks_of(1)));
  assert_true(registry_find("Softmax")->inputs[0].ranks == ranks_from(1));
  assert_true(registry_find("AddV2")->inputs[0].ranks == RANKS_ALL);
  assert_int_equal(registry_find("Relu")->outputs[0].rank_of, 0);
  assert_int_equal(registry_find("AddV2")->outputs[0].rank_of, -1);
}

static void every_default_is_of_its_attributes_type(void **state) {
  (void)state;
  for (uint32_t i = 0; i < registry_count(); i++) {
    const struct op_def *op = registry_at(i);
    assert_ptr_equal(registry_find(op->name), op);
    for (uint32_t k = 0; k < op->attr_count; k++)
      if (op->attrs[k].has_default)
        assert_int_equal(op->attrs[k].value.kind == ATTR_LIST, !strncmp(op->attrs[k].type, "list(", 5));
  }
}

/* What is wrong, and what the error names. */
static const struct registry_case {
  const char *graph;
  status code;
  const char *named[3];
} cases[] = {
  {A "node { name: 'b' op: 'Neg' input: 'a' " T("DT_FLOAT") "}", OK, {0}},
  {A "node { name: 'b' op: 'Nope' input: 'a' }", NOT_FOUND, {"b", "Nope"}},
  {A "node { name: 'b' op: 'Neg' input: 'a' " T("DT_DOUBLE") "}", INVALID_ARGUMENT, {"b", "Neg", "double"}},
  {A "node { name: 'b' op: 'Neg' input: 'a' " T("DT_STRING") "}", INVALID_ARGUMENT, {"b", "'T'", "string"}},
  {A "node { name: 'b' op: 'Neg' input: 'a' " T("DT_INVALID") "}", INVALID_ARGUMENT, {"b", "'T'"}},
  {A "node { name: 'b' op: 'Neg' input: 'a' attr { key: 'T' value { type: 257 } } }", INVALID_ARGUMENT, {"b", "'T'"}},
  {A "node { name: 'b' op: 'Neg' input: 'a' attr { key: 'T' value { i: 1 } } }", INVALID_ARGUMENT, {"b", "'T'", "type"}},
  {A "node { name: 'b' op: 'Neg' input: 'a' }", INVALID_ARGUMENT, {"b", "'T'", "missing"}},
  {A "node { name: 'b' op: 'Neg' " T("DT_FLOAT") "}", INVALID_ARGUMENT, {"b", "0 inputs"}},
  {A "node { name: 'b' op: 'Neg' input: 'a' input: 'a' " T("DT_FLOAT") "}", INVALID_ARGUMENT, {"b", "2 inputs"}},
  {A "node { name: 'b' op: 'Neg' input: 'a:1' " T("DT_FLOAT") "}", INVALID_ARGUMENT, {"b", "a:1", "1 outputs"}},
  {A "node { name: 'b' op: 'AddN' input: 'a' input: 'a' " T("DT_FLOAT") INT("N", "2") "}", OK, {0}},
  {A "node { name: 'b' op: 'AddN' input: 'a' " T("DT_FLOAT") INT("N", "2") "}", INVALID_ARGUMENT, {"b", "needs 2"}},
  {A "node { name: 'b' op: 'AddN' " T("DT_FLOAT") INT("N", "0") "}", INVALID_ARGUMENT, {"b", "'N'", "at least 1"}},
  {A "node { name: 'b' op: 'AddN' input: 'a' " T("DT_FLOAT") INT("N", "9223372036854775807") "}", INVALID_ARGUMENT, {"b"}},
  {A "node { name: 'b' op: 'Assign' input: 'a' input: 'a' " T("DT_FLOAT") "}", INVALID_ARGUMENT, {"b", "reference"}},
  {A I "node { name: 'b' op: 'IdentityN' input: 'a' input: 'i' attr { key: 'T' value { list { type: [DT_FLOAT, DT_INT32] } } } }", OK, {0}},
  {A I "node { name: 'b' op: 'IdentityN' input: 'i' input: 'a' attr { key: 'T' value { list { type: [DT_FLOAT, DT_INT32] } } } }",
   INVALID_ARGUMENT,
   {"b", "input 0"}},
  {A "node { name: 'b' op: 'IdentityN' input: 'a' attr { key: 'T' value { list { i: 1 } } } }", INVALID_ARGUMENT, {"'T'", "list(type)"}},
  {A "node { name: 'b' op: 'Conv2D' input: 'a' input: 'a' " T(
     "DT_FLOAT") "attr { key: 'strides' value { list { i: [1, 1, 1, 1] } } } attr { key: 'padding' value { s: 'MAYBE' } } }",
   INVALID_ARGUMENT,
   {"b", "padding", "MAYBE"}},
};

static void nodes_are_checked_against_their_signatures(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct text_graph g;
    assert_int_equal(text_graph_read(&g, cases[i].graph), OK);
    status result = registry_check(g.model.graph);
    if (result != cases[i].code)
      print_error("case %zu: %s %s\n", i, status_name(result), status_text());
    assert_int_equal(result, cases[i].code);
    for (size_t k = 0; k < 3 && cases[i].named[k]; k++)
      assert_non_null(strstr(status_text(), cases[i].named[k]));
    text_graph_deinit(&g);
  }
}

static void attributes_left_out_have_their_defaults(void **state) {
  (void)state;
  struct text_graph g;
  assert_int_equal(text_graph_read(&g, A "node { name: 'm' op: 'MatMul' input: 'a' input: 'a' " T(
                                         "DT_FLOAT") "attr { key: 'transpose_b' value { b: true } } }"),
                   OK);
  assert_int_equal(registry_check(g.model.graph), OK);
  const struct node *n = &g.model.graph->nodes.items[1];
  assert_int_equal(node_attr_int(n, "transpose_a", 7), 0);
  assert_int_equal(node_attr_int(n, "transpose_b", 7), 1);
  assert_int_equal(node_attr_int(n, "no_such", 7), 7);
  assert_int_equal(n->output_count, 1);
  assert_int_equal(n->output_dtypes[0], DTYPE_FLOAT);
  text_graph_deinit(&g);
}

static void a_shape_is_one_of_known_rank(void **state) {
  (void)state;
  static const struct {
    const char *shape, *listed;
    int attr, output; /* ranks; -1: none */
  } shapes[] = {{"", "", -1, -1},
                {"attr { key: 'shape' value { shape { dim { size: 2 } } } } ", "list { shape { } }", 1, 0},
                {"attr { key: 'shape' value { shape { unknown_rank: true } } } ", "list { shape { unknown_rank: true } }", -1, -1},
                {"attr { key: 'shape' value { i: 2 } } ", "list { i: 2 }", -1, -1},
                {"", "shape { }", -1, -1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct text_graph g;
    char text[400];
    snprintf(text, sizeof text, "node { name: 'a' op: 'Placeholder' %s attr { key: '_output_shapes' value { %s } } }", shapes[i].shape,
             shapes[i].listed);
    assert_int_equal(text_graph_read(&g, text), OK);
    const struct node *n = &g.model.graph->nodes.items[0];
    const struct attr_shape *of_attr = node_attr_shape(n, "shape"), *of_output = node_output_shape(n, 0);
    assert_int_equal(of_attr ? of_attr->rank : -1, shapes[i].attr);
    assert_int_equal(of_output ? of_output->rank : -1, shapes[i].output);
    assert_null(node_output_shape(n, 1));
    text_graph_deinit(&g);
  }
}

static void references_are_told_from_values(void **state) {
  (void)state;
  struct text_graph g;
  assert_int_equal(text_graph_read(&g, "node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } } "
                                       "attr { key: 'shape' value { shape { } } } } "
                                       "node { name: 'r' op: 'Identity' input: 'v' " T("DT_FLOAT") "}"),
                   OK);
  assert_int_equal(registry_check(g.model.graph), OK);
  assert_int_equal(g.model.graph->nodes.items[0].output_dtypes[0], DTYPE_FLOAT + DTYPE_REF);
  assert_int_equal(g.model.graph->nodes.items[1].output_dtypes[0], DTYPE_FLOAT);
  text_graph_deinit(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(signatures_are_those_of_tensorflow),      cmocka_unit_test(ranks_are_those_that_tensorflow_takes),
    cmocka_unit_test(every_default_is_of_its_attributes_type), cmocka_unit_test(nodes_are_checked_against_their_signatures),
    cmocka_unit_test(attributes_left_out_have_their_defaults), cmocka_unit_test(a_shape_is_one_of_known_rank),
    cmocka_unit_test(references_are_told_from_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
