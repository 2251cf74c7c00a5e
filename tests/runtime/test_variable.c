/* test_variable.c: variables that are read while another step gives them a value and takes it away; copies aside. */
#include "runtime/memory/variable.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/support/test.h"

#define ROUNDS 1000000

static void *assign_and_forget(void *argument) {
  struct variable *variable = argument;
  float value = 3;
  for (int i = 0; i < ROUNDS; i++) {
    (void)!variable_assign(variable, &(struct shape){0}, &value);
    (void)variable_forget(variable);
  }
  return NULL;
}

static void a_variable_may_be_forgotten_while_it_is_read(void **state) {
  (void)state;
  struct variable variable = {.name = "v", .container = "localhost", .dtype = DTYPE_FLOAT, .has_shape = true};
  pthread_t thread;
  int others = 0;
  pthread_mutex_init(&variable.lock, NULL);
  assert_int_equal(pthread_create(&thread, NULL, assign_and_forget, &variable), 0);
  for (int i = 0; i < ROUNDS; i++) {
    struct tensor *value;
    status result = variable_read(&variable, &value);
    if (result == OK) {
      others += *(float *)value->data != 3;
      tensor_release(value);
    } else {
      others += result != FAILED_PRECONDITION;
    }
  }
  pthread_join(thread, NULL);
  assert_int_equal(others, 0);
  assert_false(variable_forget(&variable));
  variable_deinit(&variable);
}

/* ---- copies aside ---- */

static void variable_of_floats(struct variable *out, int64_t count) {
  *out = (struct variable){.name = "v", .container = "localhost", .dtype = DTYPE_FLOAT, .has_shape = true, .shape = {1, {count}}};
  pthread_mutex_init(&out->lock, NULL);
}

/* A first checkpoint would else have to get it while a step waits. */
static void memory_for_the_copy_is_there_before_the_first_value(void **state) {
  (void)state;
  struct variable variable;
  const struct tensor *copy;
  const float value[2] = {3, 4};
  variable_of_floats(&variable, 2);
  variable_prepare_aside(&variable);
  const struct tensor *memory = variable.aside;
  assert_non_null(memory);
  assert_int_equal(variable_assign(&variable, &variable.shape, value), OK);
  variable_mark(&variable);
  assert_int_equal(variable_take_aside(&variable, &copy), OK);
  assert_ptr_equal(copy, memory);
  assert_memory_equal(copy->data, value, sizeof value);
  variable_deinit(&variable);
}

static void *prepare(void *argument) {
  variable_prepare_aside(argument);
  return NULL;
}

static void memory_that_comes_late_does_not_replace_a_copy(void **state) {
  (void)state;
  struct variable variable;
  const struct tensor *copy;
  pthread_t thread;
  const int64_t count = 4 << 20;
  float *ones = calloc((size_t)count, sizeof *ones);
  for (int64_t i = 0; i < count; i++)
    ones[i] = 1;
  for (unsigned round = 0; round < 40; round++) {
    variable_of_floats(&variable, count);
    assert_int_equal(variable_assign(&variable, &variable.shape, ones), OK);
    assert_int_equal(pthread_create(&thread, NULL, prepare, &variable), 0);
    usleep(round * 50);
    variable_mark(&variable);
    assert_int_equal(variable_assign(&variable, &variable.shape, ones), OK);
    pthread_join(thread, NULL);
    assert_int_equal(variable_take_aside(&variable, &copy), OK);
    assert_true(((const float *)copy->data)[0] == 1 && ((const float *)copy->data)[count - 1] == 1);
    variable_deinit(&variable);
  }
  free(ones);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_variable_may_be_forgotten_while_it_is_read),
    cmocka_unit_test(memory_for_the_copy_is_there_before_the_first_value),
    cmocka_unit_test(memory_that_comes_late_does_not_replace_a_copy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
