/* test_implementation.c: which function of an interface a call runs (ir/graph/implementation.h). */
#include <stdio.h>

#include "ir/graph/function.h"
#include "ir/graph/implementation.h"
#include "tests/support/test.h"
#include "tests/support/text_graph.h"

#define TEXT(key, value) "attr { key: '" key "' value { s: '" value "' } } "
#define ARG(kind, type) kind " { name: '" kind "' type: " type " } "
#define FUNCTION(name, attrs, signature) \
  "function { signature { name: '" name "' " signature "} ret { key: 'output_arg' value: 'input_arg' } " attrs "} "
#define FLOATS ARG("input_arg", "DT_FLOAT") ARG("output_arg", "DT_FLOAT")
#define OF(interface) TEXT("api_implements", interface)
#define FOR(device) TEXT("api_preferred_device", device)
#define CPU "/job:worker/replica:0/task:1/device:CPU:0"

static void check(const char *text, const char *name, const char *device, const char *want) {
  struct text_graph g;
  char library[4096];
  snprintf(library, sizeof library, "library { %s}", text);
  assert_int_equal(text_graph_read(&g, library), OK);
  const struct function *f = implementation_find(g.model.graph, name, device);
  assert_string_equal(f ? f->name : "", want);
  text_graph_deinit(&g);
}

#define PAIR FUNCTION("any", OF("i"), FLOATS) FUNCTION("cpu", OF("i") FOR("CPU"), FLOATS) FUNCTION("gpu", OF("i") FOR("GPU"), FLOATS)

static void a_call_runs_the_function_for_its_kind_of_device(void **state) {
  (void)state;
  check(PAIR, "any", CPU, "cpu");
  check(PAIR, "any", "/device:GPU:1", "gpu");
  check(PAIR, "gpu", CPU, "cpu");
}

static void the_function_that_fits_stays(void **state) {
  (void)state;
  check(PAIR, "cpu", CPU, "");
  check(PAIR, "none", CPU, "");
  check(PAIR, "any", NULL, "");
}

static void a_prefix_of_a_kind_of_device_is_another_kind(void **state) {
  (void)state;
  check(FUNCTION("any", OF("i"), FLOATS) FUNCTION("cpu", OF("i") FOR("CP"), FLOATS), "any", CPU, "");
}

static void other_interfaces_do_not_count(void **state) {
  (void)state;
  check(FUNCTION("any", OF("i"), FLOATS) FUNCTION("cpu", OF("k") FOR("CPU"), FLOATS), "any", CPU, "");
}

static void gradients_are_exchanged_for_gradients(void **state) {
  (void)state;
  check(FUNCTION("gradient", OF("i") TEXT("forward_function_name", "f"), FLOATS) PAIR, "gradient", CPU, "");
}

static void functions_that_disagree_leave_every_call_as_it_is(void **state) {
  (void)state;
  check(PAIR FUNCTION("a", OF("k"), FLOATS) FUNCTION("b", OF("k"), ARG("input_arg", "DT_INT32") ARG("output_arg", "DT_INT32")), "any", CPU,
        "");
  check(PAIR FUNCTION("a", FOR("CPU"), FLOATS), "any", CPU, "");
}

static void gradients_may_take_other_arguments(void **state) {
  (void)state;
  check(FUNCTION("any", OF("i") TEXT("forward_function_name", "f"), FLOATS)
          FUNCTION("cpu", OF("i") FOR("CPU") TEXT("forward_function_name", "g"), "input_arg { name: 'x' type: DT_BOOL } " FLOATS),
        "any", CPU, "cpu");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_call_runs_the_function_for_its_kind_of_device),
    cmocka_unit_test(the_function_that_fits_stays),
    cmocka_unit_test(a_prefix_of_a_kind_of_device_is_another_kind),
    cmocka_unit_test(other_interfaces_do_not_count),
    cmocka_unit_test(gradients_are_exchanged_for_gradients),
    cmocka_unit_test(functions_that_disagree_leave_every_call_as_it_is),
    cmocka_unit_test(gradients_may_take_other_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
