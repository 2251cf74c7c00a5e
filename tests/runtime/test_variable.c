/* test_variable.c: variables that are read while another step gives them a value and takes it away. */
#include "runtime/memory/variable.h"
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_variable_may_be_forgotten_while_it_is_read)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
