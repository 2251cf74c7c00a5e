#include "ir/gradient.h"

#include "ir/registry.h"
#include "tests/support/test.h"
#include "tests/support/text_graph.h"

/* A library with one function F(x, y) -> z and what else is given. */
#define LIBRARY(body, more)                                                                                           \
  "library { function { signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } input_arg { name: 'y' type: DT_FLOAT } " \
  "output_arg { name: 'z' type: DT_FLOAT } } " body " } " more " }"
#define T "attr { key: 'T' value { type: DT_FLOAT } } "
#define NODE(name, op, inputs) "node_def { name: '" name "' op: '" op "' " inputs T "} "
#define RET(source) "ret { key: 'z' value: '" source "' } "

static status derive(struct text_graph *g, const char *text, struct instance *out) {
  const struct attr_func f = {.name = "F"};
  TRY(text_graph_read(g, text));
  return gradient_instantiate(g->model.graph, &f, "call", &g->arena, out);
}

static void done(struct text_graph *g, struct instance *x) {
  instance_deinit(x);
  text_graph_deinit(g);
}

static uint32_t count_op(const struct instance *x, const char *op) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < x->graph->nodes.count; i++)
    count += strcmp(x->graph->nodes.items[i].op, op) == 0;
  return count;
}

static const struct node *ret_node(const struct instance *x, uint32_t i) { return &x->graph->nodes.items[x->rets[i].node]; }

static void arguments_are_those_of_the_function_and_the_gradients_of_its_results(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(derive(&g, LIBRARY(NODE("m", "Mul", "input: 'x' input: 'y' ") RET("m:z:0"), ""), &x), OK);
  assert_int_equal(x.arg_count, 3);
  assert_int_equal(x.ret_count, 2);
  for (uint32_t i = 0; i < 3; i++)
    assert_string_equal(x.graph->nodes.items[i].op, "_Arg");
  const struct node *gradient = ret_node(&x, 0);
  assert_string_equal(gradient->op, "SymbolicGradient");
  assert_string_equal(gradient->name, "call/m_grad");
  assert_string_equal(node_attr(gradient, "f")->func->name, "Mul");
  assert_int_equal(gradient->input_count, 3);
  assert_int_equal(gradient->inputs[2].node, 2);
  assert_ptr_equal(ret_node(&x, 1), gradient);
  assert_int_equal(x.rets[1].port, 1);
  done(&g, &x);
}

static void gradients_that_meet_are_added(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(derive(&g, LIBRARY(NODE("a", "Mul", "input: 'x' input: 'x' ") NODE("b", "Add", "input: 'a:z:0' input: 'x' ") RET("b:z:0"), ""), &x), OK);
  const struct node *sum = ret_node(&x, 0);
  assert_string_equal(sum->op, "AddN");
  assert_int_equal(sum->input_count, 3);
  assert_string_equal(ret_node(&x, 1)->op, "ZerosLike"); /* y is not used */
  done(&g, &x);
}

static void a_returned_argument_has_the_gradient_of_the_result(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(derive(&g, LIBRARY(RET("y"), ""), &x), OK);
  assert_int_equal(x.rets[1].node, 2);
  assert_string_equal(ret_node(&x, 0)->op, "ZerosLike");
  done(&g, &x);
}

static void outputs_that_nobody_uses_have_zeros(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(derive(&g, LIBRARY("node_def { name: 'u' op: 'Unpack' input: 'x' " T "attr { key: 'num' value { i: 3 } } } " RET("u:output:1"), ""), &x), OK);
  const struct node *gradient = ret_node(&x, 0);
  assert_int_equal(gradient->input_count, 4);
  assert_string_equal(x.graph->nodes.items[gradient->inputs[1].node].op, "ZerosLike");
  assert_int_equal(gradient->inputs[2].node, 2);
  done(&g, &x);
}

static void nothing_comes_back_through_ops_without_a_gradient(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(derive(&g, LIBRARY(NODE("s", "StopGradient", "input: 'x' ") NODE("m", "Mul", "input: 's:output:0' input: 'x' ") RET("m:z:0"), ""), &x), OK);
  assert_int_equal(count_op(&x, "SymbolicGradient"), 1);
  assert_int_equal(count_op(&x, "AddN"), 0);
  done(&g, &x);
}

static void calls_are_differentiated_when_they_are_lowered(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(derive(&g, LIBRARY(NODE("c", "G", "input: 'x' ") RET("c:z:0"),
                                      "function { signature { name: 'G' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'z' type: DT_FLOAT } } "
                                      "ret { key: 'z' value: 'x' } } gradient { function_name: 'G' gradient_func: 'H' }"), &x), OK);
  assert_string_equal(node_attr(ret_node(&x, 0), "f")->func->name, "G");
  assert_string_equal(function_gradient(x.graph, "G"), "H");
  assert_null(function_gradient(x.graph, "F"));
  done(&g, &x);
}

static void refuse(const char *name, status code, const char *text) {
  struct text_graph g;
  struct instance x;
  const struct attr complex = {.name = "T", .value = {.kind = ATTR_TYPE, .i = DTYPE_COMPLEX64}};
  const struct attr_func f = {.name = name, .attrs = &complex, .attr_count = 1};
  assert_int_equal(text_graph_read(&g, LIBRARY(RET("x"), "")), OK);
  assert_int_equal(gradient_instantiate(g.model.graph, &f, "call", &g.arena, &x), code);
  assert_non_null(strstr(status_text(), text));
  text_graph_deinit(&g);
}

static void what_has_no_gradient_is_refused(void **state) {
  (void)state;
  refuse("AddN", NOT_FOUND, "No gradient defined for op: AddN");
  refuse("Nothing", NOT_FOUND, "No gradient defined for op: Nothing");
  refuse("Less", INVALID_ARGUMENT, "No gradient is defined for Less");
  refuse("SymbolicGradient", INVALID_ARGUMENT, "Can't take gradient of SymbolicGradient");
  refuse("MatMul", UNIMPLEMENTED, "complex");
}

/* Attributes for any op with a rule: what the registry has no default for. */
static uint32_t sample_attrs(const struct op_def *def, struct arena *arena, const struct attr **out) {
  struct attr *attrs = ARENA_ARRAY(arena, struct attr, def->attr_count + 1);
  struct attr_value one = {.kind = ATTR_INT, .i = 1}, *list = ARENA_ARRAY(arena, struct attr_value, 4);
  uint32_t count = 0;
  for (uint32_t i = 0; i < 4; i++)
    list[i] = one;
  for (uint32_t i = 0; i < def->attr_count; i++) {
    const struct op_attr *a = &def->attrs[i];
    struct attr_value v = a->value;
    if (!a->has_default && strcmp(a->type, "type") == 0)
      v = (struct attr_value){.kind = ATTR_TYPE, .i = a->allowed && !strchr((const char *)a->allowed, DTYPE_FLOAT) ? a->allowed[0] : DTYPE_FLOAT};
    else if (!a->has_default && strcmp(a->type, "int") == 0)
      v = (struct attr_value){.kind = ATTR_INT, .i = 2};
    else if (!a->has_default && strcmp(a->type, "list(int)") == 0)
      v = (struct attr_value){.kind = ATTR_LIST, .list = {list, 4}};
    else if (!a->has_default && strcmp(a->type, "string") == 0)
      v = (struct attr_value){.kind = ATTR_STRING, .s = {"SAME", 4}};
    else if (!a->has_default && strcmp(a->type, "list(type)") == 0) {
      struct attr_value *types = ARENA_ARRAY(arena, struct attr_value, 2);
      types[0] = types[1] = (struct attr_value){.kind = ATTR_TYPE, .i = DTYPE_FLOAT};
      v = (struct attr_value){.kind = ATTR_LIST, .list = {types, 2}};
    }
    attrs[count++] = (struct attr){.name = a->name, .value = v};
  }
  for (uint32_t i = 0; i < count; i++) /* sorted by name */
    for (uint32_t k = i + 1; k < count; k++)
      if (strcmp(attrs[k].name, attrs[i].name) < 0) {
        struct attr swap = attrs[i];
        attrs[i] = attrs[k], attrs[k] = swap;
      }
  *out = attrs;
  return count;
}

/* Each row of gradients.def is one that can be read, of an op that TensorFlow has, and gives a gradient to each input. */
static void every_rule_is_a_graph(void **state) {
  (void)state;
  struct text_graph g;
  assert_int_equal(text_graph_read(&g, LIBRARY(RET("x"), "")), OK);
  uint32_t good = 0;
  for (uint32_t i = 0; gradient_rule_op(i); i++) {
    const struct op_def *def = registry_find(gradient_rule_op(i));
    struct instance x;
    assert_non_null(def);
    struct attr_func f = {.name = def->name};
    f.attr_count = sample_attrs(def, &g.arena, &f.attrs);
    status s = gradient_of_op(g.model.graph, &f, "call", &g.arena, &x);
    assert_int_not_equal(s, INTERNAL);
    if (s != OK)
      continue;
    for (uint32_t k = 0; k < x.ret_count; k++) {
      int of = x.graph->nodes.items[k].output_dtypes[0];
      assert_int_equal(ret_node(&x, k)->output_dtypes[x.rets[k].port], of == DTYPE_RESOURCE ? DTYPE_FLOAT : of);
    }
    good++;
    instance_deinit(&x);
  }
  assert_true(good > 90);
  text_graph_deinit(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arguments_are_those_of_the_function_and_the_gradients_of_its_results),
      cmocka_unit_test(gradients_that_meet_are_added),
      cmocka_unit_test(a_returned_argument_has_the_gradient_of_the_result),
      cmocka_unit_test(outputs_that_nobody_uses_have_zeros),
      cmocka_unit_test(nothing_comes_back_through_ops_without_a_gradient),
      cmocka_unit_test(calls_are_differentiated_when_they_are_lowered),
      cmocka_unit_test(what_has_no_gradient_is_refused),
      cmocka_unit_test(every_rule_is_a_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
