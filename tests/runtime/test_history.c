/* test_history.c: what a job goes back to, and cuts in every order of two holders' answers. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cluster/cut.h"
#include "runtime/cluster/history.h"
#include "tests/support/test.h"

#define HOLDER(h, count, ...)                                                                       \
  {                                                                                                 \
    .is_here = true, .has_files = true, .history = h, .file_count = count, .files = { __VA_ARGS__ } \
  }

static void all_go_back_to_the_newest_file_that_all_have(void **state) {
  (void)state;
  static const struct {
    struct history_holder holders[2];
    bool has_folder;
    uint64_t others;
    bool has_left;
    enum history_verdict verdict;
    uint64_t id;
  } cases[] = {
    {{HOLDER(0, 0), HOLDER(0, 0)}, true, 0, false, HISTORY_BEGIN, 0},
    {{HOLDER(0, 2, 10, 20), HOLDER(0, 3, 10, 20, 30)}, true, 0, false, HISTORY_RESTORE, 20}, /* 30 was never complete */
    {{HOLDER(7, 2, 10, 20), HOLDER(0, 1, 10)}, true, 0, false, HISTORY_RESTORE, 10},
    {{HOLDER(7, 0), HOLDER(7, 0)}, false, 0, false, HISTORY_KEEP, 0},
    {{HOLDER(7, 1, 10), HOLDER(0, 1, 20)}, true, 0, false, HISTORY_AGAIN, 0},
    {{HOLDER(7, 0), HOLDER(0, 0)}, false, 0, false, HISTORY_LOST, 0},
    {{HOLDER(0, 0), HOLDER(0, 0)}, false, 7, false, HISTORY_LOST, 0},   /* a worker remembers what was there */
    {{HOLDER(7, 1, 10), HOLDER(0, 0)}, true, 0, true, HISTORY_LOST, 0}, /* nobody does again what has gone with the disk */
    {{HOLDER(7, 1, 10), HOLDER(0, 1, 10)}, true, 0, true, HISTORY_RESTORE, 10},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct history_view view = {.holders = cases[i].holders,
                                .holder_count = 2,
                                .others = cases[i].others,
                                .has_left = cases[i].has_left,
                                .has_folder = cases[i].has_folder,
                                .has_phases = true,
                                .is_settled = true};
    struct history_decision decision = history_decide(&view);
    assert_int_equal(decision.verdict, cases[i].verdict);
    assert_int_equal(decision.id, cases[i].id);
  }
}

static void ids_grow_and_never_come_again(void **state) {
  (void)state;
  uint64_t id = 0;
  for (uint32_t i = 0; i < 1000; i++) {
    uint64_t next = history_next_id(id, i * 2654435761u);
    assert_true(next > id);
    id = next;
  }
}

/* Every order of the answers of two holders, with a refusal by any of them or none: the attempt ends once, and commits only without one. */
static void a_cut_ends_once_in_every_order_of_answers(void **state) {
  (void)state;
  for (int order = 0; order < 64; order++)
    for (int refuser = -1; refuser < 2; refuser++) {
      struct cut cut = {.holder_count = 2};
      int commits = 0, aborts = 0, at[2] = {0, 0};
      assert_int_equal(cut_begin(&cut, 9, 100), CUT_FREEZE);
      assert_int_equal(cut_begin(&cut, 10, 100), CUT_NONE);
      for (int step = 0; step < 12; step++) {
        uint32_t h = (uint32_t)(order >> step % 6 & 1);
        enum cut_message said = CUT_NONE;
        if (at[h] == 0)
          said = cut_frozen(&cut, h, 9);
        else if (at[h] == 1 && cut.is_snapped)
          said = (int)h == refuser ? cut_refused(&cut, h, 9) : cut_done(&cut, h, 9);
        at[h] += at[h] == 0 || (at[h] == 1 && cut.is_snapped);
        commits += said == CUT_COMMIT;
        aborts += said == CUT_ABORT;
        assert_int_equal(cut_frozen(&cut, h, 8), CUT_NONE); /* of an attempt before */
      }
      assert_true(commits + aborts <= 1);
      assert_true(commits == 0 || refuser < 0);
    }
}

static void a_cut_that_is_late_is_given_up_and_the_next_may_take_longer(void **state) {
  (void)state;
  struct cut cut = {.holder_count = 2};
  assert_int_equal(cut_begin(&cut, 9, 100), CUT_FREEZE);
  assert_int_equal(cut_tick(&cut, 101), CUT_NONE);
  assert_int_equal(cut_tick(&cut, cut_due_ms(&cut)), CUT_ABORT);
  assert_int_equal(cut_frozen(&cut, 0, 9), CUT_NONE);
  assert_int_equal(cut_begin(&cut, 10, 500), CUT_FREEZE);
  assert_int_equal(cut.still_ms, 2 * CUT_STILL_MS);
}

static void a_seat_goes_on_after_an_abort_and_keeps_what_is_complete(void **state) {
  (void)state;
  struct cut_seat seat = {0};
  assert_true(cut_seat_freeze(&seat, 0).freeze);
  cut_seat_froze(&seat, 9, 100);
  assert_true(cut_seat_snap(&seat, 8).refuse);
  assert_true(cut_seat_snap(&seat, 9).take);
  cut_seat_took(&seat, true);
  assert_int_equal(cut_seat_abort(&seat, 9).discard, 9);
  assert_true(cut_seat_freeze(&seat, 0).freeze);
  cut_seat_froze(&seat, 10, 100);
  assert_true(cut_seat_abort(&seat, 10).thaw);
  cut_seat_froze(&seat, 11, 100);
  cut_seat_took(&seat, true);
  struct cut_duty duty = cut_seat_freeze(&seat, 11); /* whoever would have committed it is gone */
  assert_true(duty.complete && duty.discard == 0 && duty.freeze);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_go_back_to_the_newest_file_that_all_have),
    cmocka_unit_test(ids_grow_and_never_come_again),
    cmocka_unit_test(a_cut_ends_once_in_every_order_of_answers),
    cmocka_unit_test(a_cut_that_is_late_is_given_up_and_the_next_may_take_longer),
    cmocka_unit_test(a_seat_goes_on_after_an_abort_and_keeps_what_is_complete),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
