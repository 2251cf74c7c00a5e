/* test_barrier.c: tuples that come together under many keys. */
#include <stdio.h>
#include <string.h>

#include "runtime/resource/barrier.h"
#include "tests/support/test.h"

#define KEYS 1000

static void tuples_of_many_keys_come_together(void **state) {
  (void)state;
  static char text[KEYS][8];
  static struct string_view keys[KEYS];
  static float values[KEYS];
  struct container *container;
  struct resource *resource;
  struct inbox inbox;
  struct tensor *outputs[4] = {0};
  struct barrier_spec spec = {.component_count = 2,
                              .components = {{.dtype = DTYPE_FLOAT, .has_shape = true}, {.dtype = DTYPE_FLOAT, .has_shape = true}}};
  struct host_call call = {.inbox = &inbox, .outputs = outputs, .output_count = 4};
  bool is_new;
  inbox_init(&inbox);
  assert_int_equal(container_create(&container), OK);
  assert_int_equal(container_get(container, "", "b", &barrier_maker, &spec, &is_new, &resource), OK);
  struct barrier *barrier = (struct barrier *)resource;
  for (int i = 0; i < KEYS; i++) {
    keys[i] = (struct string_view){text[i], (uint64_t)snprintf(text[i], sizeof text[i], "k%d", i)};
    values[i] = (float)i;
  }
  struct tensor all = {.dtype = DTYPE_STRING, .shape = {1, {KEYS}}, .data = keys, .count = KEYS};
  struct tensor numbers = {.dtype = DTYPE_FLOAT, .shape = {1, {KEYS}}, .data = values, .count = KEYS};
  assert_int_equal(barrier_insert(barrier, &call, 0, &all, &numbers), OK);
  assert_int_equal(barrier_size(barrier, true), KEYS);
  assert_int_equal(barrier_size(barrier, false), 0);
  assert_int_equal(barrier_insert(barrier, &call, 0, &all, &numbers), INVALID_ARGUMENT);
  assert_int_equal(barrier_insert(barrier, &call, 1, &all, &numbers), OK);
  assert_int_equal(barrier_size(barrier, true), 0);
  assert_int_equal(barrier_take(barrier, &call, KEYS, false), OK);
  assert_false(call.pending);
  bool seen[KEYS] = {false};
  for (int i = 0; i < KEYS; i++) {
    struct string_view key = ((struct string_view *)outputs[1]->data)[i];
    int number = (int)((float *)outputs[2]->data)[i];
    assert_true(string_equal(key, keys[number]) && ((float *)outputs[3]->data)[i] == number && !seen[number]);
    seen[number] = true;
  }
  assert_int_equal(barrier_insert(barrier, &call, 0, &all, &numbers), OK);
  assert_int_equal(barrier_close(barrier, &call, true), OK);
  assert_int_equal(barrier_size(barrier, true), 0);
  assert_int_equal(barrier_insert(barrier, &call, 1, &all, &numbers), CANCELLED);
  for (int i = 0; i < 4; i++)
    tensor_release(outputs[i]);
  container_destroy(container);
  inbox_deinit(&inbox);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tuples_of_many_keys_come_together)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
