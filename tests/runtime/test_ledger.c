/* test_ledger.c: which steps are the next, which were there before, and where a driver goes on. */
#include <stdlib.h>
#include <string.h>

#include "runtime/step/ledger.h"
#include "tests/support/test.h"

static void apply(struct ledger *ledger, uint32_t driver, uint32_t command, uint64_t last) {
  for (uint64_t k = 1; k <= last; k++)
    assert_int_equal(ledger_commit(ledger, driver, command, k), OK);
}

static void a_step_is_the_next_or_was_there_or_comes_too_early(void **state) {
  (void)state;
  static const struct {
    uint32_t applied_command;
    uint64_t applied;
    uint32_t command;
    uint64_t serial;
    enum ledger_verdict verdict;
  } cases[] = {
    {1, 0, 1, 1, LEDGER_RUN}, {1, 0, 1, 2, LEDGER_GAP},   {1, 5, 1, 6, LEDGER_RUN}, {1, 5, 1, 5, LEDGER_DRY}, {1, 5, 1, 1, LEDGER_DRY},
    {1, 5, 1, 7, LEDGER_GAP}, {2, 5, 1, 6, LEDGER_STALE}, {2, 5, 3, 1, LEDGER_RUN}, {2, 5, 3, 2, LEDGER_GAP}, {2, 5, 9, 1, LEDGER_RUN},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct ledger ledger = {0};
    apply(&ledger, 4, cases[i].applied_command, cases[i].applied);
    assert_int_equal(ledger_judge(&ledger, 4, cases[i].command, cases[i].serial), cases[i].verdict);
    ledger_deinit(&ledger);
  }
}

static void drivers_and_lanes_count_for_themselves(void **state) {
  (void)state;
  struct ledger ledger = {0};
  for (uint32_t driver = 9; driver > 0; driver--)
    for (uint32_t lane = 0; lane < 3; lane++)
      for (uint64_t k = 1; k <= driver + lane; k++)
        assert_int_equal(ledger_commit(&ledger, driver, 1, serial_of(lane, k)), OK);
  for (uint32_t driver = 1; driver < 10; driver++)
    for (uint32_t lane = 0; lane < 3; lane++)
      assert_int_equal(ledger_find(&ledger, driver, lane)->last, driver + lane);
  assert_null(ledger_find(&ledger, 10, 0));
  assert_null(ledger_find(&ledger, 5, 3));
  ledger_deinit(&ledger);
}

static void a_half_done_step_is_open_until_it_is_committed(void **state) {
  (void)state;
  struct ledger ledger = {0};
  apply(&ledger, 1, 1, 3);
  assert_int_equal(ledger_open(&ledger, 1, 1, 4), OK);
  assert_int_equal(ledger_find(&ledger, 1, 0)->open, 4);
  assert_int_equal(ledger_find(&ledger, 1, 0)->last, 3);
  assert_int_equal(ledger_judge(&ledger, 1, 1, 4), LEDGER_RUN);
  assert_int_equal(ledger_commit(&ledger, 1, 1, 4), OK);
  assert_int_equal(ledger_find(&ledger, 1, 0)->open, 0);
  assert_int_equal(ledger_find(&ledger, 1, 0)->last, 4);
  ledger_deinit(&ledger);
}

static void the_next_command_begins_anew(void **state) {
  (void)state;
  struct ledger ledger = {0};
  apply(&ledger, 1, 1, 3);
  ledger_finish(&ledger, 1, true);
  assert_true(ledger_find(&ledger, 1, 0)->finished);
  assert_int_equal(ledger_open(&ledger, 1, 2, 1), OK);
  assert_int_equal(ledger_find(&ledger, 1, 0)->last, 0);
  assert_false(ledger_find(&ledger, 1, 0)->finished);
  assert_int_equal(ledger_judge(&ledger, 1, 1, 4), LEDGER_STALE);
  ledger_deinit(&ledger);
}

static void a_driver_goes_on_with_the_first_step_that_is_missing_anywhere(void **state) {
  (void)state;
  static const struct {
    struct ledger_row rows[3];
    uint32_t count, command;
    uint64_t next;
  } cases[] = {
    {{{0}}, 0, 1, 1},
    {{{0}, {0}}, 2, 1, 1},
    {{{.command = 1, .last = 16}}, 1, 1, 17},
    {{{.command = 1, .last = 16}, {.command = 1, .last = 17}}, 2, 1, 17},
    {{{.command = 1, .last = 17}, {.command = 1, .last = 16}, {.command = 1, .last = 17}}, 3, 1, 17},
    {{{.command = 1, .last = 1}, {0}}, 2, 1, 1},
    {{{.command = 2, .last = 1}, {.command = 1, .last = 90, .finished = true}}, 2, 2, 1},
    {{{.command = 1, .last = 90, .finished = true}, {.command = 1, .last = 90, .finished = true}}, 2, 2, 1},
    {{{.command = 1, .last = 90, .finished = true}, {.command = 1, .last = 90}}, 2, 1, 91}, /* killed while it said so */
    {{{.command = 3, .last = 90, .finished = true}}, 1, 4, 1},
    {{{.command = 3, .last = 90, .finished = true}, {.command = 2, .last = 7, .finished = true}, {0}}, 3, 4, 1}, /* not its holders */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct ledger_next next = ledger_next(cases[i].rows, cases[i].count);
    assert_int_equal(next.command, cases[i].command);
    assert_int_equal(next.count, cases[i].next);
  }
}

static void a_drivers_own_row_follows_the_others(void **state) {
  (void)state;
  struct ledger ledger = {0};
  apply(&ledger, 1, 1, 50);
  assert_int_equal(ledger_rewind(&ledger, 1, 1, 39), OK);
  assert_int_equal(ledger_judge(&ledger, 1, 1, 40), LEDGER_RUN);
  assert_int_equal(ledger_rewind(&ledger, 2, 7, 10), OK);
  assert_int_equal(ledger_judge(&ledger, 2, 7, 11), LEDGER_RUN);
  ledger_deinit(&ledger);
}

static void a_row_is_raised_and_never_lowered(void **state) {
  (void)state;
  struct ledger ledger = {0};
  apply(&ledger, 1, 2, 50);
  assert_int_equal(ledger_raise(&ledger, 1, 2, 49), OK);
  assert_int_equal(ledger_raise(&ledger, 1, 1, 90), OK); /* of a command before */
  assert_int_equal(ledger_judge(&ledger, 1, 2, 51), LEDGER_RUN);
  assert_int_equal(ledger_raise(&ledger, 1, 2, 51), OK);
  assert_int_equal(ledger_judge(&ledger, 1, 2, 52), LEDGER_RUN);
  assert_int_equal(ledger_raise(&ledger, 1, 3, 0), OK);
  assert_int_equal(ledger_judge(&ledger, 1, 3, 1), LEDGER_RUN);
  assert_int_equal(ledger_raise(&ledger, 4, 1, 7), OK); /* nothing was there */
  assert_int_equal(ledger_judge(&ledger, 4, 1, 8), LEDGER_RUN);
  ledger_deinit(&ledger);
}

static void bytes_give_the_same_ledger(void **state) {
  (void)state;
  struct ledger ledger = {.initialised = true}, again = {0};
  apply(&ledger, 3, 1, 5);
  apply(&ledger, 1, 2, 7);
  assert_int_equal(ledger_open(&ledger, 1, 2, 8), OK);
  ledger_finish(&ledger, 3, true);
  size_t size = ledger_byte_size(&ledger);
  char *bytes = malloc(size);
  ledger_write(&ledger, bytes);
  assert_int_equal(ledger_read(bytes, size, &again), OK);
  assert_true(again.initialised);
  assert_int_equal(again.count, 2);
  assert_memory_equal(again.rows, ledger.rows, 2 * sizeof *again.rows);
  unsigned seed = 5;
  for (int turn = 0; turn < 2000; turn++) { /* whatever they are, nothing outside is read */
    char *damaged = malloc(size);
    size_t length = (size_t)rand_r(&seed) % (size + 1);
    memcpy(damaged, bytes, size);
    damaged[(size_t)rand_r(&seed) % size] = (char)rand_r(&seed);
    status result = ledger_read(damaged, turn % 2 ? size : length, &again);
    assert_true(result == OK || result == DATA_LOSS);
    free(damaged);
  }
  free(bytes);
  ledger_deinit(&ledger);
  ledger_deinit(&again);
}

/* Two holders and a driver that is killed at any moment: it begins a step, any of the holders takes it or not. Each
 * step counts once. */
static void any_order_of_kills_applies_each_step_once(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 300; seed++) {
    unsigned random = seed;
    struct ledger holders[2] = {{0}, {0}};
    uint64_t applied[2] = {0, 0}, steps = 6;
    struct ledger_next next = {1, 1};
    for (int turn = 0; turn < 1000 && (applied[0] < steps || applied[1] < steps); turn++) {
      bool is_killed = rand_r(&random) % 3 == 0;
      int reaches = is_killed ? rand_r(&random) % 3 : 2; /* holders, in any order */
      int first = rand_r(&random) % 2;
      for (int i = 0; i < reaches; i++) {
        struct ledger *holder = &holders[(first + i) % 2];
        enum ledger_verdict verdict = ledger_judge(holder, 5, next.command, next.count);
        assert_true(verdict == LEDGER_RUN || verdict == LEDGER_DRY);
        applied[(first + i) % 2] += verdict == LEDGER_RUN;
        assert_int_equal(ledger_commit(holder, 5, next.command, next.count), OK);
      }
      next.count++;
      if (is_killed) {
        struct ledger_row rows[2] = {{0}, {0}};
        for (int i = 0; i < 2; i++)
          if (ledger_find(&holders[i], 5, 0))
            rows[i] = *ledger_find(&holders[i], 5, 0);
        next = ledger_next(rows, 2);
      }
    }
    assert_int_equal(applied[0], steps);
    assert_int_equal(applied[1], steps);
    ledger_deinit(&holders[0]);
    ledger_deinit(&holders[1]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_step_is_the_next_or_was_there_or_comes_too_early),
    cmocka_unit_test(drivers_and_lanes_count_for_themselves),
    cmocka_unit_test(a_half_done_step_is_open_until_it_is_committed),
    cmocka_unit_test(the_next_command_begins_anew),
    cmocka_unit_test(a_driver_goes_on_with_the_first_step_that_is_missing_anywhere),
    cmocka_unit_test(a_drivers_own_row_follows_the_others),
    cmocka_unit_test(a_row_is_raised_and_never_lowered),
    cmocka_unit_test(bytes_give_the_same_ledger),
    cmocka_unit_test(any_order_of_kills_applies_each_step_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
