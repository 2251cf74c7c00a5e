#include "ir/graph/gradient.h"

#include "ir/graph/registry.h"
#include "tests/support/test.h"
#include "tests/support/text_graph.h"

/* A library with one function F(x, y) -> z and what else is given. */
#define LIBRARY(body, more)                                                                                                   \
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
  assert_int_equal(
    derive(&g, LIBRARY(NODE("a", "Mul", "input: 'x' input: 'x' ") NODE("b", "Add", "input: 'a:z:0' input: 'x' ") RET("b:z:0"), ""), &x),
    OK);
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
  assert_int_equal(
    derive(&g, LIBRARY("node_def { name: 'u' op: 'Unpack' input: 'x' " T "attr { key: 'num' value { i: 3 } } } " RET("u:output:1"), ""),
           &x),
    OK);
  const struct node *gradient = ret_node(&x, 0);
  assert_int_equal(gradient->input_count, 4);
  assert_string_equal(x.graph->nodes.items[gradient->inputs[1].node].op, "ZerosLike");
  assert_int_equal(gradient->inputs[2].node, 2);
  done(&g, &x);
}

static void a_variable_that_is_not_used_has_zeros_like_its_value(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(
    derive(&g,
           "library { function { signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } input_arg { name: 'v' type: DT_RESOURCE } "
           "output_arg { name: 'z' type: DT_FLOAT } } " RET("x") " } }",
           &x),
    OK);
  const struct node *zeros = ret_node(&x, 1);
  assert_string_equal(zeros->op, "ZerosLike");
  const struct node *read = &x.graph->nodes.items[zeros->inputs[0].node];
  assert_string_equal(read->op, "ReadVariableOp");
  assert_int_equal(read->output_dtypes[0], DTYPE_FLOAT);
  assert_int_equal(read->inputs[0].node, 1);
  done(&g, &x);
}

static void nothing_comes_back_through_ops_without_a_gradient(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(
    derive(&g, LIBRARY(NODE("s", "StopGradient", "input: 'x' ") NODE("m", "Mul", "input: 's:output:0' input: 'x' ") RET("m:z:0"), ""), &x),
    OK);
  assert_int_equal(count_op(&x, "SymbolicGradient"), 1);
  assert_int_equal(count_op(&x, "AddN"), 0);
  done(&g, &x);
}

static void calls_are_differentiated_when_they_are_lowered(void **state) {
  (void)state;
  struct text_graph g;
  struct instance x;
  assert_int_equal(
    derive(&g,
           LIBRARY(NODE("c", "G", "input: 'x' ") RET("c:z:0"),
                   "function { signature { name: 'G' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'z' type: DT_FLOAT } } "
                   "ret { key: 'z' value: 'x' } } gradient { function_name: 'G' gradient_func: 'H' }"),
           &x),
    OK);
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

/* ---- the rows of gradients.def ---- */

struct row {
  const char *op, *when;
  status code;
  const char *text;
};
static const struct row rows[] = {
#define GRADIENT(op, when, inputs, outputs, statements) {op, when, OK, ""},
#define NO_GRADIENT(op) {op, "", INVALID_ARGUMENT, "No gradient is defined for " op},
#define REFUSES(op, when, code, text) {op, when, code, text},
#include "ir/gradients.def"
};

/* What a row's `when` says of an attribute: the word, behind its "="; "" where it has none; NULL: nothing. */
static const char *said_of(const struct row *row, const char *attr) {
  size_t length = strlen(attr);
  for (const char *p = row->when; *p; p += strcspn(p, " "), p += strspn(p, " "))
    if (strncmp(p, attr, length) == 0 && strchr("= ", p[length]))
      return p[length] == '=' ? p + length + 1 : "";
  return NULL;
}

static struct attr_value sample_type(const struct row *row, const struct op_attr *a) {
  const char *said = said_of(row, a->name);
  int64_t dtype = a->allowed && !strchr((const char *)a->allowed, DTYPE_FLOAT) ? DTYPE_INT32 : DTYPE_FLOAT;
  if (said)
    dtype = strncmp(said, "complex", 7) == 0 ? DTYPE_COMPLEX64 : DTYPE_INT64;
  else if (a->has_default)
    return a->value;
  return (struct attr_value){.kind = ATTR_TYPE, .i = dtype};
}

/* Attributes for which the row is the first that holds: a bool of which it says nothing was asked to be false by those before. */
static struct attr_value sample_attr(const struct row *row, const struct op_attr *a, struct arena *arena) {
  struct attr_value *items = ARENA_ARRAY(arena, struct attr_value, 4), v = a->value;
  for (uint32_t i = 0; i < 4; i++)
    items[i] = (struct attr_value){.kind = ATTR_INT, .i = 1};
  if (strcmp(a->type, "type") == 0)
    return sample_type(row, a);
  if (strcmp(a->type, "bool") == 0)
    return (struct attr_value){.kind = ATTR_BOOL, .i = !said_of(row, arena_printf(arena, "!%s", a->name))};
  if (a->has_default)
    return v;
  if (strcmp(a->type, "int") == 0)
    return (struct attr_value){.kind = ATTR_INT, .i = 2};
  if (strcmp(a->type, "list(int)") == 0)
    return (struct attr_value){.kind = ATTR_LIST, .list = {items, 4}};
  if (strcmp(a->type, "string") == 0)
    return (struct attr_value){.kind = ATTR_STRING, .s = {"SAME", 4}};
  if (strcmp(a->type, "list(type)") == 0) {
    items[0] = items[1] = (struct attr_value){.kind = ATTR_TYPE, .i = DTYPE_FLOAT};
    return (struct attr_value){.kind = ATTR_LIST, .list = {items, 2}};
  }
  return v;
}

static uint32_t sample_attrs(const struct row *row, const struct op_def *def, struct arena *arena, const struct attr **out) {
  struct attr *attrs = ARENA_ARRAY(arena, struct attr, def->attr_count + 1);
  for (uint32_t i = 0; i < def->attr_count; i++) { /* sorted by name */
    const struct attr a = {.name = def->attrs[i].name, .value = sample_attr(row, &def->attrs[i], arena)};
    uint32_t at = i;
    for (; at > 0 && strcmp(attrs[at - 1].name, a.name) > 0; at--)
      attrs[at] = attrs[at - 1];
    attrs[at] = a;
  }
  *out = attrs;
  return def->attr_count;
}

/* Each row can be read, is of an op that TensorFlow has, and gives a gradient to each input, or the error that it says. */
static void every_row_is_a_graph_or_an_error(void **state) {
  (void)state;
  struct text_graph g;
  assert_int_equal(text_graph_read(&g, LIBRARY(RET("x"), "")), OK);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct op_def *def = registry_find(rows[i].op);
    struct instance x;
    assert_non_null(def);
    struct attr_func f = {.name = def->name};
    f.attr_count = sample_attrs(&rows[i], def, &g.arena, &f.attrs);
    status s = gradient_of_op(g.model.graph, &f, "call", &g.arena, &x);
    if (s != rows[i].code || (s != OK && !strstr(status_text(), rows[i].text)))
      test_fail("%s, row '%s': %s: %s", rows[i].op, rows[i].when, status_name(s), status_text());
    if (s != OK)
      continue;
    assert_true(x.ret_count > 0 && x.ret_count < x.arg_count);
    for (uint32_t k = 0; k < x.ret_count; k++) {
      int of = x.graph->nodes.items[k].output_dtypes[0];
      assert_int_equal(ret_node(&x, k)->output_dtypes[x.rets[k].port], of == DTYPE_RESOURCE ? DTYPE_FLOAT : of);
    }
    instance_deinit(&x);
  }
  text_graph_deinit(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(arguments_are_those_of_the_function_and_the_gradients_of_its_results),
    cmocka_unit_test(gradients_that_meet_are_added),
    cmocka_unit_test(a_returned_argument_has_the_gradient_of_the_result),
    cmocka_unit_test(outputs_that_nobody_uses_have_zeros),
    cmocka_unit_test(a_variable_that_is_not_used_has_zeros_like_its_value),
    cmocka_unit_test(nothing_comes_back_through_ops_without_a_gradient),
    cmocka_unit_test(calls_are_differentiated_when_they_are_lowered),
    cmocka_unit_test(what_has_no_gradient_is_refused),
    cmocka_unit_test(every_row_is_a_graph_or_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
