/* Functions that call themselves, by any kind of call: refused, and named. */
#include "tests/support/lowered_text.h"
#include "tests/support/test.h"

#define FLOATS(key) "attr { key: '" key "' value { list { type: DT_FLOAT } } } "
#define TWO_FLOATS(key) "attr { key: '" key "' value { list { type: DT_FLOAT type: DT_FLOAT } } } "
#define CALLEE(key, name) "attr { key: '" key "' value { func { name: '" name "' } } } "
#define T "attr { key: 'T' value { type: DT_FLOAT } } "
#define NODE(name, op, inputs, attrs) "node_def { name: '" name "' op: '" op "' " inputs attrs "} "
#define CONSTANT(name, dtype, value)                                                                                                   \
  NODE(name, "Const", "",                                                                                                              \
       "attr { key: 'dtype' value { type: " dtype " } } attr { key: 'value' value { tensor { dtype: " dtype " tensor_shape { } " value \
       " } } } ")
#define NUMBER(name, value) CONSTANT(name, "DT_INT32", "int_val: " value)
#define FUNCTION(name, body, result)                                                                                               \
  "function { signature { name: '" name "' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } } " body \
  " ret { key: 'y' value: '" result "' } } "
#define TEST(name, result)                                                                                                         \
  "function { signature { name: '" name "' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_BOOL } } " NODE( \
    "c", "Less", "input: 'x' input: 'x' ", T) " ret { key: 'y' value: 'c:z:0' } } "
/* x is a number that only the step knows. */
#define GRAPH(call, library)                                                                                                    \
  "node { name: 's' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: "    \
  "DT_INT32 "                                                                                                                   \
  "tensor_shape { dim { size: 0 } } } } } } node { name: 'x' op: 'RandomUniform' input: 's' attr { key: 'dtype' value { type: " \
  "DT_FLOAT } } "                                                                                                               \
  "attr { key: 'T' value { type: DT_INT32 } } } node { name: 'y' " call "} library { " library "} versions { producer: 1882 }"

static void refused(const char *text, const char *named) {
  struct build b;
  assert_int_equal(lowered_text_read(&b, text), UNIMPLEMENTED);
  if (!strstr(status_text(), named) || !strstr(status_text(), "recursion"))
    test_fail("%s: %s", named, status_text());
  lowered_text_deinit(&b);
}

static void a_function_that_calls_itself_is_named(void **state) {
  (void)state;
  refused(GRAPH("op: 'F' input: 'x' ", FUNCTION("F", NODE("c", "F", "input: 'x' ", ""), "c:y:0")), "'F'");
  refused(GRAPH("op: 'F' input: 'x' ",
                FUNCTION("F", NODE("c", "PartitionedCall", "input: 'x' ", FLOATS("Tin") FLOATS("Tout") CALLEE("f", "F")), "c:output:0")),
          "'F'");
  refused(
    GRAPH("op: 'StatefulPartitionedCall' input: 'x' " FLOATS("Tin") FLOATS("Tout") CALLEE("f", "F"),
          FUNCTION("F", NODE("c", "StatefulPartitionedCall", "input: 'x' ", FLOATS("Tin") FLOATS("Tout") CALLEE("f", "F")), "c:output:0")),
    "'F'");
}

static void functions_that_call_each_other_are_named(void **state) {
  (void)state;
  refused(GRAPH("op: 'F' input: 'x' ",
                FUNCTION("F", NODE("c", "G", "input: 'x' ", ""), "c:y:0") FUNCTION("G", NODE("c", "F", "input: 'x' ", ""), "c:y:0")),
          "' calls itself");
}

static void recursion_through_branches_and_loops_is_refused(void **state) {
  (void)state;
  refused(GRAPH("op: 'F' input: 'x' ", FUNCTION("F",
                                                NODE("t", "Less", "input: 'x' input: 'x' ", T)
                                                  NODE("c", "If", "input: 't:z:0' input: 'x' ",
                                                       FLOATS("Tin") FLOATS("Tout") CALLEE("then_branch", "F")
                                                         CALLEE("else_branch", "I") "attr { key: 'Tcond' value { type: DT_BOOL } } "),
                                                "c:output:0") FUNCTION("I", "", "x")),
          "'F'");
  refused(GRAPH("op: 'F' input: 'x' ", FUNCTION("F", NODE("c", "While", "input: 'x' ", FLOATS("T") CALLEE("cond", "C") CALLEE("body", "F")),
                                                "c:output:0") TEST("C", "c")),
          "'F'");
}

static void recursion_through_rows_is_refused(void **state) {
  (void)state;
  refused(GRAPH("op: 'F' input: 'x' ",
                FUNCTION("F",
                         NODE("one", "ExpandDims", "input: 'x' input: 'axis:output:0' ", T "attr { key: 'Tdim' value { type: DT_INT32 } } ")
                           NUMBER("axis", "0") NODE("c", "MapDefun", "input: 'one:output:0' ",
                                                    FLOATS("Targuments") FLOATS("output_types")
                                                      CALLEE("f", "F") "attr { key: 'output_shapes' value { list { shape { } } } } "),
                         "c:output:0")),
          "'F'");
}

static void recursion_through_gradients_is_refused(void **state) {
  (void)state;
  refused(GRAPH("op: 'SymbolicGradient' input: 'x' input: 'x' " TWO_FLOATS("Tin") FLOATS("Tout") CALLEE("f", "F"),
                FUNCTION("F", NODE("m", "Mul", "input: 'x' input: 'x' ", T) NODE("c", "F", "input: 'm:z:0' ", ""), "c:y:0")),
          "'F'");
  refused(GRAPH("op: 'F' input: 'x' ",
                FUNCTION("F", NODE("c", "SymbolicGradient", "input: 'x' input: 'x' ", TWO_FLOATS("Tin") FLOATS("Tout") CALLEE("f", "G")),
                         "c:output:0") FUNCTION("G",
                                                NODE("c", "F", "input: 'x' ", "") NODE("s", "StopGradient", "input: 'c:y:0' ", T)
                                                  NODE("m", "Mul", "input: 's:output:0' input: 'x' ", T),
                                                "m:z:0")),
          "' calls itself");
}

/* fall(x, n) = n < 1 ? x : fall(x + x, n - 1) of 3, a number that is known: nothing is left of the calls. */
#define INTS "attr { key: 'T' value { type: DT_INT32 } } "
#define BOTH(key) "attr { key: '" key "' value { list { type: DT_FLOAT type: DT_INT32 } } } "
#define OF_TWO(name, body, result)                                                                                                      \
  "function { signature { name: '" name "' input_arg { name: 'x' type: DT_FLOAT } input_arg { name: 'n' type: DT_INT32 } output_arg { " \
  "name: 'y' type: DT_FLOAT } } " body " ret { key: 'y' value: '" result "' } } "
#define FALL(x)                                                                                                            \
  GRAPH("op: 'Start' input: 'x' ",                                                                                         \
        FUNCTION("Start",                                                                                                  \
                 NUMBER("three", "3") CONSTANT("k", "DT_FLOAT", "float_val: 1.5")                                          \
                   NODE("c", "Fall", "input: '" x "' input: 'three:output:0' ", ""),                                       \
                 "c:y:0") OF_TWO("Fall",                                                                                   \
                                 NUMBER("one", "1") NODE("t", "Less", "input: 'n' input: 'one:output:0' ", INTS)           \
                                   NODE("c", "If", "input: 't:z:0' input: 'x' input: 'n' ",                                \
                                        BOTH("Tin") FLOATS("Tout") CALLEE("then_branch", "Done")                           \
                                          CALLEE("else_branch", "Next") "attr { key: 'Tcond' value { type: DT_BOOL } } "), \
                                 "c:output:0") OF_TWO("Done", "", "x")                                                     \
          OF_TWO("Next",                                                                                                   \
                 NUMBER("one", "1") NODE("m", "Sub", "input: 'n' input: 'one:output:0' ", INTS)                            \
                   NODE("a", "Add", "input: 'x' input: 'x' ", T) NODE("c", "Fall", "input: 'a:z:0' input: 'm:z:0' ", ""),  \
                 "c:y:0"))

static void recursion_that_ends_while_compiling_is_not(void **state) {
  (void)state;
  struct build b;
  assert_int_equal(lowered_text_read(&b, FALL("x")), OK);
  lowered_text_deinit(&b);
  assert_int_equal(lowered_text_read(&b, FALL("k:output:0")), OK);
  const struct flow_value *y = lowered_text_value(&b);
  assert_non_null(y->data);
  assert_true(*(const float *)y->data == 12);
  lowered_text_deinit(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_function_that_calls_itself_is_named),           cmocka_unit_test(functions_that_call_each_other_are_named),
    cmocka_unit_test(recursion_through_branches_and_loops_is_refused), cmocka_unit_test(recursion_through_rows_is_refused),
    cmocka_unit_test(recursion_through_gradients_is_refused),          cmocka_unit_test(recursion_that_ends_while_compiling_is_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
