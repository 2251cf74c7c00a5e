/* test_rendezvous.c: values meet those who ask for them, in whatever order they come. */
#include <pthread.h>
#include <string.h>

#include "runtime/step/rendezvous.h"
#include "tests/support/test.h"

static struct tensor *value_of(float number) {
  struct tensor *tensor = NULL;
  assert_int_equal(tensor_copy_in(DTYPE_FLOAT, &(struct shape){0}, &number, &tensor), OK);
  return tensor;
}
static float number_of(struct tensor *tensor) {
  float number = *(float *)tensor->data;
  tensor_release(tensor);
  return number;
}

static void a_value_that_came_first_waits(void **state) {
  struct rendezvous *r = *state;
  struct tensor *tensor;
  rendezvous_put(r, 1, 7, value_of(3));
  rendezvous_put(r, 1, 8, value_of(4));
  rendezvous_put(r, 2, 7, value_of(5));
  assert_int_equal(rendezvous_take(r, 1, 8, &tensor), OK);
  assert_true(number_of(tensor) == 4);
  assert_int_equal(rendezvous_take(r, 2, 7, &tensor), OK);
  assert_true(number_of(tensor) == 5);
  assert_int_equal(rendezvous_take(r, 1, 7, &tensor), OK);
  assert_true(number_of(tensor) == 3);
}

static void *put_later(void *r) {
  rendezvous_put(r, 1, 1, value_of(9));
  return NULL;
}

static void whoever_asks_first_waits_for_the_value(void **state) {
  struct rendezvous *r = *state;
  pthread_t thread;
  struct tensor *tensor;
  pthread_create(&thread, NULL, put_later, r);
  assert_int_equal(rendezvous_take(r, 1, 1, &tensor), OK);
  assert_true(number_of(tensor) == 9);
  pthread_join(thread, NULL);
}

static int woken;
static void count_wake(struct rendezvous_waiter *waiter) {
  (void)waiter;
  woken++;
}

static void a_waiter_is_told_once(void **state) {
  struct rendezvous *r = *state;
  struct rendezvous_waiter waiter = {.wake = count_wake};
  woken = 0;
  assert_false(rendezvous_ask(r, 1, 3, &waiter));
  rendezvous_put(r, 1, 3, value_of(2));
  assert_int_equal(woken, 1);
  assert_true(number_of(waiter.tensor) == 2);
  rendezvous_abort(r, 1, CANCELLED, "enough");
  assert_int_equal(woken, 1);
}

static void an_abort_wakes_all_who_wait_or_will(void **state) {
  struct rendezvous *r = *state;
  struct rendezvous_waiter first = {.wake = count_wake}, second = {.wake = count_wake};
  struct tensor *tensor;
  woken = 0;
  assert_false(rendezvous_ask(r, 5, 1, &first));
  rendezvous_abort(r, 5, UNAVAILABLE, "worker_1 is gone");
  rendezvous_abort(r, 5, CANCELLED, "later");
  assert_int_equal(woken, 1);
  assert_int_equal(first.code, UNAVAILABLE);
  assert_true(rendezvous_ask(r, 5, 2, &second));
  assert_int_equal(second.code, UNAVAILABLE);
  assert_int_equal(rendezvous_take(r, 5, 3, &tensor), UNAVAILABLE);
  assert_string_equal(status_text(), "worker_1 is gone");
  assert_int_equal(rendezvous_reason(r, 5), UNAVAILABLE);
}

static void what_comes_after_the_end_is_dropped(void **state) {
  struct rendezvous *r = *state;
  struct tensor *tensor = tensor_retain(value_of(1));
  rendezvous_put(r, 4, 1, value_of(2));
  rendezvous_end(r, 4);
  rendezvous_put(r, 4, 2, tensor);
  assert_int_equal(tensor->references, 1);
  tensor_release(tensor);
  assert_int_equal(rendezvous_take(r, 4, 1, &tensor), CANCELLED);
}

static struct tensor *mebibytes(int64_t count) {
  struct tensor *tensor = NULL;
  assert_int_equal(tensor_create(DTYPE_UINT8, &(struct shape){1, {count << 20}}, &tensor), OK);
  return tensor;
}

static void values_for_steps_that_have_not_begun_are_bounded(void **state) {
  struct rendezvous *r = *state;
  const uint64_t limit = RENDEZVOUS_EARLY_BYTES, first = UINT64_C(3) << 48 | 1, second = first + 1, other = UINT64_C(2) << 48 | 1;
  assert_true(rendezvous_has_room(r, first, 100 * limit)); /* the first may be large */
  rendezvous_deliver(r, first, 1, mebibytes(40), EARLY_COUNTED);
  assert_true(rendezvous_has_room(r, second, limit - (40 << 20)));
  assert_false(rendezvous_has_room(r, second, limit - (40 << 20) + 1));
  rendezvous_deliver(r, other, 1, mebibytes(20), EARLY_COUNTED);
  assert_false(rendezvous_has_room(r, first, 5 << 20));
  rendezvous_begin(r, first); /* now they count no more */
  assert_true(rendezvous_has_room(r, first, 100 * limit));
  assert_true(rendezvous_has_room(r, second, 44 << 20));
  assert_false(rendezvous_has_room(r, second, 45 << 20));
  rendezvous_drop_early(r, 2);
  assert_true(rendezvous_has_room(r, second, 100 * limit));
  rendezvous_deliver(r, other, 1, mebibytes(1), EARLY_DROPPED); /* of its own driver: its step would have begun before */
  assert_null(rendezvous_poll(r, other, 1));
  struct tensor *tensor = rendezvous_poll(r, first, 1);
  assert_non_null(tensor);
  tensor_release(tensor);
}

static int make(void **state) { return rendezvous_create((struct rendezvous **)state) == OK ? 0 : -1; }
static int destroy(void **state) {
  rendezvous_destroy(*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_value_that_came_first_waits, make, destroy),
    cmocka_unit_test_setup_teardown(whoever_asks_first_waits_for_the_value, make, destroy),
    cmocka_unit_test_setup_teardown(a_waiter_is_told_once, make, destroy),
    cmocka_unit_test_setup_teardown(an_abort_wakes_all_who_wait_or_will, make, destroy),
    cmocka_unit_test_setup_teardown(what_comes_after_the_end_is_dropped, make, destroy),
    cmocka_unit_test_setup_teardown(values_for_steps_that_have_not_begun_are_bounded, make, destroy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
