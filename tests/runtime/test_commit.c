/* test_commit.c: the gate: who freezes it sees no step half done. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "runtime/step/commit.h"
#include "runtime/step/task_state.h"
#include "tests/support/test.h"

static struct task task; /* of which only the gate is used */
static volatile int left, right;
static atomic_bool is_over;

static int begin(void **state) {
  (void)state;
  commit_init(&task.commit);
  left = right = 0;
  atomic_store(&is_over, false);
  return 0;
}
static int end(void **state) {
  (void)state;
  commit_deinit(&task.commit);
  return 0;
}

static void *change_both(void *driver) {
  uint64_t k = 0;
  while (!atomic_load(&is_over)) {
    k++;
    if (commit_enter(&task.commit, *(uint32_t *)driver, 1, k, 0) != OK)
      return driver;
    pthread_mutex_lock(&task.commit.lock);
    left++;
    pthread_mutex_unlock(&task.commit.lock);
    pthread_mutex_lock(&task.commit.lock);
    right++;
    if (ledger_commit(&task.commit.ledger, *(uint32_t *)driver, 1, k) != OK)
      atomic_store(&is_over, true);
    pthread_mutex_unlock(&task.commit.lock);
    commit_leave(&task.commit);
  }
  return NULL;
}

static uint64_t applied(void) {
  struct ledger ledger = {0};
  uint64_t sum = 0;
  assert_int_equal(commit_ledger(&task, &ledger), OK);
  for (uint32_t i = 0; i < ledger.count; i++)
    sum += ledger.rows[i].last;
  ledger_deinit(&ledger);
  return sum;
}

static void frozen_it_shows_variables_and_ledger_of_one_moment(void **state) {
  (void)state;
  uint32_t drivers[3] = {0, 1, 2};
  pthread_t threads[3];
  for (int i = 0; i < 3; i++)
    pthread_create(&threads[i], NULL, change_both, &drivers[i]);
  for (int turn = 0; turn < 200; turn++) {
    assert_true(commit_freeze(&task, 10000));
    assert_false(commit_freeze(&task, 10)); /* it is somebody's */
    int seen = left;
    assert_int_equal(left, right);
    assert_int_equal((int)applied(), seen);
    nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    assert_int_equal(left, seen);
    commit_thaw(&task);
  }
  atomic_store(&is_over, true);
  for (int i = 0; i < 3; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
}

static void a_step_that_stays_inside_is_not_waited_for_for_ever(void **state) {
  (void)state;
  assert_int_equal(commit_enter(&task.commit, 0, 1, 1, 0), OK);
  assert_false(commit_freeze(&task, 20));
  assert_int_equal(commit_enter(&task.commit, 1, 1, 1, 0), OK); /* it is open again */
  commit_leave(&task.commit);
  commit_leave(&task.commit);
  assert_true(commit_freeze(&task, 20));
  commit_thaw(&task);
}

static bool up_to_five(void *self, uint32_t driver, uint32_t command, uint64_t serial) {
  (void)self, (void)driver, (void)command;
  return serial <= 5;
}

static void *enter_six(void *unused) {
  (void)unused;
  status result = commit_enter(&task.commit, 0, 1, 6, 0);
  left = 6;
  if (result == OK)
    commit_leave(&task.commit);
  return NULL;
}

static void steps_of_the_cut_pass_and_later_ones_wait(void **state) {
  (void)state;
  pthread_t thread;
  assert_true(commit_freeze(&task, 1000));
  pthread_create(&thread, NULL, enter_six, NULL);
  commit_let_pass(&task, up_to_five, NULL);
  assert_int_equal(commit_enter(&task.commit, 0, 1, 5, 0), OK);
  assert_false(commit_quiet(&task, 10));
  commit_leave(&task.commit);
  assert_true(commit_quiet(&task, 1000));
  assert_int_equal(left, 0);
  commit_thaw(&task);
  pthread_join(thread, NULL);
  assert_int_equal(left, 6);
}

static void a_step_of_before_a_restore_changes_nothing_any_more(void **state) {
  (void)state;
  struct ledger old = {0};
  assert_int_equal(ledger_commit(&old, 0, 1, 1), OK);
  assert_true(commit_freeze(&task, 1000));
  assert_int_equal(commit_restore(&task, &old), OK);
  commit_thaw(&task);
  assert_int_equal(commit_enter(&task.commit, 0, 1, 1, 0), ABORTED);
  assert_int_equal(commit_enter(&task.commit, 0, 1, 2, 1), OK);
  commit_leave(&task.commit);
  assert_int_equal(applied(), 1);
  ledger_deinit(&old);
}

static void who_waits_at_the_gate_goes_when_the_task_stops(void **state) {
  (void)state;
  pthread_t thread;
  assert_true(commit_freeze(&task, 1000));
  pthread_create(&thread, NULL, enter_six, NULL);
  commit_stop(&task.commit);
  pthread_join(thread, NULL);
  assert_true(commit_quiet(&task, 1000));
  commit_thaw(&task);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(frozen_it_shows_variables_and_ledger_of_one_moment, begin, end),
    cmocka_unit_test_setup_teardown(a_step_that_stays_inside_is_not_waited_for_for_ever, begin, end),
    cmocka_unit_test_setup_teardown(steps_of_the_cut_pass_and_later_ones_wait, begin, end),
    cmocka_unit_test_setup_teardown(a_step_of_before_a_restore_changes_nothing_any_more, begin, end),
    cmocka_unit_test_setup_teardown(who_waits_at_the_gate_goes_when_the_task_stops, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
