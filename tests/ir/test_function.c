#include "ir/graph/function.h"

#include "ir/graph/registry.h"
#include "tests/support/test.h"
#include "tests/support/text_graph.h"

/* A library with one function F(x: T) -> y, whose body and results are given. */
#define LIBRARY(body)                                                                                                    \
  "library { function { signature { name: 'F' input_arg { name: 'x' type_attr: 'T' } output_arg { name: 'y' type_attr: " \
  "'T' } attr { name: 'T' type: 'type' default_value { type: DT_DOUBLE } } } " body " } }"
#define T "attr { key: 'T' value { placeholder: 'T' } } "
#define NODE(name, op, inputs) "node_def { name: '" name "' op: '" op "' " inputs T "} "
#define RET(source) "ret { key: 'y' value: '" source "' } "
#define AXIS                                                                                                        \
  "node_def { name: 'axis' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { " \
  "tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } } "

static void done(struct text_graph *g, struct instance *x) {
  instance_deinit(x);
  text_graph_deinit(g);
}

static const struct attr float_attr = {.name = "T", .value = {.kind = ATTR_TYPE, .i = DTYPE_FLOAT}};

static status instantiate(struct text_graph *g, const char *text, struct instance *out) {
  TRY(text_graph_read(g, text));
  const struct function *f = function_find(g->model.graph, "F");
  assert_non_null(f);
  return function_instantiate(g->model.graph, f, &float_attr, 1, "call", &g->arena, out);
}

static void arguments_come_first_and_names_get_a_prefix(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(instantiate(&g, LIBRARY(NODE("n", "Neg", "input: 'x' ") RET("n:y:0")), &x), OK);
  assert_int_equal(x.arg_count, 1);
  assert_int_equal(x.graph->nodes.count, 2);
  const struct node *arg = &x.graph->nodes.items[0], *neg = &x.graph->nodes.items[1];
  assert_string_equal(arg->op, "_Arg");
  assert_string_equal(arg->name, "call/x");
  assert_string_equal(neg->name, "call/n");
  assert_int_equal(neg->output_dtypes[0], DTYPE_FLOAT);
  assert_int_equal(neg->inputs[0].node, 0);
  assert_int_equal(x.ret_count, 1);
  assert_int_equal(x.rets[0].node, 1);
  assert_int_equal(graph_find(x.graph, "call/n"), 1);
  done(&g, &x);
}

static void outputs_are_counted_through_the_arguments_before(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(instantiate(&g,
                               LIBRARY("node_def { name: 's' op: 'Split' input: 'axis:output:0' input: 'x' " T
                                       "attr { key: 'num_split' value { i: 3 } } } " AXIS
                                       "node_def { name: 'u' op: 'UniqueWithCounts' input: 's:output:2' " T
                                       "} " RET("u:y:0") "control_ret { key: 'k' value: 's' } "),
                               &x),
                   OK);
  uint32_t u = graph_find(x.graph, "call/u");
  assert_int_equal(x.graph->nodes.items[u].inputs[0].port, 2);
  assert_int_equal(x.control_count, 1);
  assert_int_equal(x.controls[0], graph_find(x.graph, "call/s"));
  done(&g, &x);
  assert_int_equal(
    instantiate(
      &g,
      LIBRARY(NODE("u", "UniqueWithCounts",
                   "input: 'x' ") "node_def { name: 'c' op: 'Cast' input: 'u:count:0' attr { key: 'SrcT' value { type: DT_INT32 } } "
                                  "attr { key: 'DstT' value { placeholder: 'T' } } } " RET("c:y:0")),
      &x),
    OK);
  assert_int_equal(x.graph->nodes.items[graph_find(x.graph, "call/c")].inputs[0].port, 2);
  done(&g, &x);
}

static void an_attribute_not_given_has_the_signatures_default(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(text_graph_read(&g, LIBRARY(NODE("n", "Neg", "input: 'x' ") RET("n:y"))), OK);
  assert_int_equal(function_instantiate(g.model.graph, function_find(g.model.graph, "F"), NULL, 0, "call", &g.arena, &x), OK);
  assert_int_equal(x.graph->nodes.items[1].output_dtypes[0], DTYPE_DOUBLE);
  done(&g, &x);
}

static void an_argument_may_be_returned_at_once(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(instantiate(&g, LIBRARY(RET("x")), &x), OK);
  assert_int_equal(x.rets[0].node, 0);
  done(&g, &x);
}

static void a_function_calls_another(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(instantiate(&g, LIBRARY(NODE("n", "F", "input: 'x' input: '^x' ") RET("n:y:0")), &x), OK);
  const struct node *call = &x.graph->nodes.items[1];
  assert_null(call->def);
  assert_int_equal(call->output_dtypes[0], DTYPE_FLOAT);
  assert_int_equal(call->control_count, 1);
  done(&g, &x);
}

static void placeholders_inside_of_functions_and_lists_are_filled_in(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(
    instantiate(&g,
                LIBRARY("node_def { name: 'n' op: 'PartitionedCall' input: 'x' "
                        "attr { key: 'Tin' value { list { type: DT_FLOAT } } } "
                        "attr { key: 'Tout' value { list { type: DT_FLOAT } } } "
                        "attr { key: 'f' value { func { name: 'F' attr { key: 'T' value { placeholder: 'T' } } } } } } " RET("n:output:0")),
                &x),
    OK);
  const struct attr_value *f = node_attr(&x.graph->nodes.items[1], "f");
  assert_int_equal(f->func->attrs[0].value.kind, ATTR_TYPE);
  assert_int_equal(f->func->attrs[0].value.i, DTYPE_FLOAT);
  done(&g, &x);
}

/* A function L(l: N * T, m: Tm) -> (r: N * T, s: Tm). */
#define LISTS(body)                                                                                                                       \
  "library { function { signature { name: 'L' input_arg { name: 'l' type_attr: 'T' number_attr: 'N' } input_arg { name: 'm' "             \
  "type_list_attr: 'Tm' } output_arg { name: 'r' type_attr: 'T' number_attr: 'N' } output_arg { name: 's' type_list_attr: 'Tm' } } " body \
  " ret { key: 's' value: 'm' } } }"

static status instantiate_lists(struct text_graph *g, const char *text, int64_t n, struct instance *out) {
  static const struct attr_value types[] = {{.kind = ATTR_TYPE, .i = DTYPE_INT32}, {.kind = ATTR_TYPE, .i = DTYPE_BOOL}};
  const struct attr attrs[] = {
    {.name = "N", .value = {.kind = ATTR_INT, .i = n}}, float_attr, {.name = "Tm", .value = {.kind = ATTR_LIST, .list = {types, 2}}}};
  TRY(text_graph_read(g, text));
  return function_instantiate(g->model.graph, function_find(g->model.graph, "L"), attrs, 3, "call", &g->arena, out);
}

static void lists_are_as_long_as_the_caller_says(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(
    instantiate_lists(&g,
                      LISTS("node_def { name: 'p' op: 'Pack' input: 'l' attr { key: 'N' value { placeholder: 'N' } } " T "} "
                            "node_def { name: 'u' op: 'Unpack' input: 'p:output:0' attr { key: 'num' value { placeholder: 'N' } } " T "} "
                            "ret { key: 'r' value: 'u:output' }"),
                      3, &x),
    OK);
  assert_int_equal(x.arg_count, 5);
  assert_string_equal(x.graph->nodes.items[2].name, "call/l_2");
  assert_int_equal(x.graph->nodes.items[3].output_dtypes[0], DTYPE_INT32);
  assert_int_equal(x.graph->nodes.items[5].input_count, 3);
  assert_int_equal(x.graph->nodes.items[5].inputs[2].node, 2);
  assert_int_equal(x.ret_count, 5);
  assert_int_equal(x.rets[2].node, 6);
  assert_int_equal(x.rets[2].port, 2);
  assert_int_equal(x.rets[4].node, 4);
  done(&g, &x);
}

static void an_element_of_a_list_is_named_by_its_number(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  const char *text = LISTS("node_def { name: 'a' op: 'Sub' input: 'l:1' input: 'l:0' " T "} node_def { name: 'b' op: 'IdentityN' "
                           "input: 'a:z:0' input: 'l:1' input: '^m' attr { key: 'T' value { list { type: DT_FLOAT type: DT_FLOAT } } } } "
                           "ret { key: 'r' value: 'b:output' }");
  assert_int_equal(instantiate_lists(&g, text, 2, &x), OK);
  assert_int_equal(x.graph->nodes.items[4].inputs[0].node, 1);
  assert_int_equal(x.graph->nodes.items[5].controls[0], 2);
  done(&g, &x);
  assert_int_equal(instantiate_lists(&g, text, 3, &x), INVALID_ARGUMENT); /* the result has two */
  text_graph_deinit(&g);
  assert_int_equal(instantiate_lists(&g, text, 1, &x), INVALID_ARGUMENT);
  assert_non_null(strstr(status_text(), "'l:1'"));
  text_graph_deinit(&g);
}

/* A few bytes of a signature may ask for any number of arguments: as many as a node may have inputs are made. So of results. */
#define LIST(arg, name) arg " { name: '" name "' type_attr: 'T' number_attr: 'N' } "
static const char *const list_texts[] = {"library { function { signature { name: 'L' " LIST("input_arg", "a")
                                           LIST("input_arg", "b") "} } }",
                                         "library { function { signature { name: 'L' " LIST("input_arg", "a") LIST("output_arg", "r")
                                           LIST("output_arg", "s") "} "
                                                                   "ret { key: 'r' value: 'a' } ret { key: 's' value: 'a' } } }"};
#define LIST_TEXT_COUNT (sizeof list_texts / sizeof *list_texts)

static void too_many_tensors_are_refused(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  for (size_t i = 0; i < LIST_TEXT_COUNT; i++) {
    assert_int_equal(instantiate_lists(&g, list_texts[i], LIMIT_NODE_INPUTS / 2, &x), OK);
    done(&g, &x);
    assert_int_equal(instantiate_lists(&g, list_texts[i], LIMIT_NODE_INPUTS / 2 + 1, &x), RESOURCE_EXHAUSTED);
    text_graph_deinit(&g);
  }
}

static void a_call_of_too_many_tensors_is_refused(void **state) {
  (void)state;
  const struct attr attrs[] = {{.name = "N", .value = {.kind = ATTR_INT, .i = LIMIT_NODE_INPUTS / 2 + 1}}, float_attr};
  for (size_t i = 0; i < LIST_TEXT_COUNT; i++) {
    struct text_graph g;
    struct node call = {.name = "n", .op = "L", .attrs = attrs, .attr_count = 2};
    uint32_t count;
    assert_int_equal(text_graph_read(&g, list_texts[i]), OK);
    assert_int_equal(registry_check_node(g.model.graph, &call), RESOURCE_EXHAUSTED);
    assert_non_null(strstr(status_text(), "n (L)"));
    assert_int_equal(function_ret_count(function_find(g.model.graph, "L"), attrs, 2, &g.arena, &count), i == 0 ? OK : RESOURCE_EXHAUSTED);
    text_graph_deinit(&g);
  }
}

static void what_is_wrong_names_function_and_node(void **state) {
  (void)state;
  static const struct {
    const char *text, *named;
  } cases[] = {
    {LIBRARY(NODE("n", "Neg", "input: 'z' ") RET("n:y:0")), "call/n"},
    {LIBRARY(NODE("n", "Neg", "input: 'x' ") RET("n:z:0")), "no output 'z'"},
    {LIBRARY(NODE("n", "Neg", "input: 'x' ") RET("n:y:1")), "'n:y:1'"},
    {LIBRARY(NODE("n", "Neg", "input: 'x' ") RET("n:1")), "'y' is output 1"},
    {LIBRARY(NODE("n", "Neg", "input: 'x' ") RET("n:y:x")), "n:y:x"},
    /* not the counts */
    {LIBRARY(NODE("u", "UniqueWithCounts", "input: 'x' ") NODE("n", "Neg", "input: 'u:idx:1' ") RET("x")), "'u:idx:1'"},
    {LIBRARY(NODE("x", "Neg", "input: 'x' ") RET("x")), "'x'"},
    {LIBRARY(NODE("n", "Neg", "input: 'x' ") NODE("n", "Neg", "input: 'x' ") RET("x")), "'n'"},
    {LIBRARY("node_def { name: 'n' op: 'Neg' input: 'x' attr { key: 'T' value { placeholder: 'U' } } } " RET("n:y:0")), "'U'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct text_graph g;
    struct instance x;
    assert_int_equal(instantiate(&g, cases[i].text, &x), INVALID_ARGUMENT);
    assert_non_null(strstr(status_text(), "function 'F'"));
    assert_non_null(strstr(status_text(), cases[i].named));
    text_graph_deinit(&g);
  }
}

static void an_op_that_nobody_has_is_named(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(instantiate(&g, LIBRARY(NODE("n", "Addons>Tree", "input: 'x' ") RET("n:y:0")), &x), NOT_FOUND);
  assert_non_null(strstr(status_text(), "TensorFlow has no op 'Addons>Tree'"));
  text_graph_deinit(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(arguments_come_first_and_names_get_a_prefix),
    cmocka_unit_test(outputs_are_counted_through_the_arguments_before),
    cmocka_unit_test(an_attribute_not_given_has_the_signatures_default),
    cmocka_unit_test(an_argument_may_be_returned_at_once),
    cmocka_unit_test(a_function_calls_another),
    cmocka_unit_test(placeholders_inside_of_functions_and_lists_are_filled_in),
    cmocka_unit_test(lists_are_as_long_as_the_caller_says),
    cmocka_unit_test(an_element_of_a_list_is_named_by_its_number),
    cmocka_unit_test(too_many_tensors_are_refused),
    cmocka_unit_test(a_call_of_too_many_tensors_is_refused),
    cmocka_unit_test(what_is_wrong_names_function_and_node),
    cmocka_unit_test(an_op_that_nobody_has_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
