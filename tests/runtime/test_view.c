/* test_view.c: whose state replicas go on with, under every order in which three of them can tell, be lost and come back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cluster/view.h"
#include "tests/support/test.h"

static struct view fresh(uint32_t seats) {
  struct view v;
  assert_true(view_init(&v, seats, 0, false));
  return v;
}

static void tell(struct view *v, uint32_t seat, bool has_state, uint64_t view, uint64_t round) {
  view_tell(v, seat, 1, 1, 7, &(struct view_state){has_state, 1, view, round});
}

static void finish(struct view *v, uint32_t seat, uint64_t view, uint64_t round) {
  view_finish(v, seat, 5, &(struct view_state){true, 1, view, round});
}

static void all_fresh_take_what_the_registrar_has(void **state) {
  (void)state;
  struct view v = fresh(3);
  assert_int_equal(view_waits_for(&v), 1);
  tell(&v, 2, false, 0, 0);
  assert_int_equal(view_waits_for(&v), 1);
  tell(&v, 1, false, 0, 0);
  assert_int_equal(view_waits_for(&v), VIEW_NOBODY);
  view_settle(&v);
  assert_int_equal(v.phase, VIEW_SERVES);
  assert_int_equal(view_next(&v), 1);
  assert_true(view_serve(&v, 1, 0));
  assert_int_equal(view_next(&v), 2);
  assert_true(view_serve(&v, 2, 0));
  assert_int_equal(view_next(&v), VIEW_NOBODY);
  view_deinit(&v);
}

static void a_registrar_that_was_started_again_takes_the_highest_state(void **state) {
  (void)state;
  struct view v = fresh(3);
  tell(&v, 1, true, 4, 9);
  tell(&v, 2, true, 5, 3); /* of a newer view: what the other did beside it does not count */
  view_settle(&v);
  assert_int_equal(v.phase, VIEW_FETCHES);
  assert_int_equal(v.source, 2);
  assert_int_equal(view_next(&v), VIEW_NOBODY);
  view_fetched(&v, true, 5);
  assert_int_equal(v.number, 6);
  assert_true(view_serve(&v, 1, 3));
  assert_true(view_serve(&v, 2, 3)); /* survivors are made even, too */
  view_deinit(&v);
}

static void a_source_that_is_lost_is_looked_for_again(void **state) {
  (void)state;
  struct view v = fresh(3);
  tell(&v, 1, true, 1, 5);
  tell(&v, 2, true, 1, 4); /* it waits for an answer, and does not tell again */
  view_settle(&v);
  view_forget(&v, 1);
  view_fetched(&v, false, 0);
  assert_int_equal(v.phase, VIEW_GATHERS);
  assert_int_equal(view_waits_for(&v), 1);
  view_deinit(&v);
}

static void one_that_has_finished_has_all_there_is(void **state) {
  (void)state;
  struct view v = fresh(4);
  tell(&v, 1, true, 3, 9); /* nobody waits for 3: it may have left */
  assert_true(view_ask(&v, 2, 5) && !view_ask(&v, 2, 5));
  assert_int_equal(view_waits_for(&v), 2);
  finish(&v, 2, 3, 10);
  assert_int_equal(view_waits_for(&v), VIEW_NOBODY);
  view_settle(&v);
  assert_int_equal(v.source, 2);
  view_fetched(&v, true, 7);
  assert_int_equal(v.number, 8);
  assert_int_equal(view_next(&v), 1);
  assert_true(view_serve(&v, 1, 10));
  assert_int_equal(view_next(&v), VIEW_NOBODY);
  view_forget(&v, 2);
  v.phase = VIEW_GATHERS;
  assert_int_equal(view_waits_for(&v), 1);
  view_deinit(&v);
}

static void where_rounds_are_elastic_others_may_have_done_more_than_one_that_has_finished(void **state) {
  (void)state;
  struct view v;
  assert_true(view_init(&v, 4, 0, true));
  assert_true(view_ask(&v, 1, 5));
  finish(&v, 1, 3, 4);
  assert_false(view_ask(&v, 1, 5));
  assert_int_equal(view_waits_for(&v), 2);
  tell(&v, 2, true, 3, 6);
  tell(&v, 3, false, 0, 0);
  assert_int_equal(view_waits_for(&v), VIEW_NOBODY);
  view_settle(&v);
  assert_int_equal(v.source, 2);
  view_fetched(&v, true, 3);
  assert_int_equal(view_next(&v), 2); /* who has finished waits for nothing */
  assert_true(view_ask(&v, 1, 6));    /* another session */
  view_deinit(&v);
}

static void who_has_left_tells_nothing_and_the_others_have_enough_or_it_is_lost(void **state) {
  (void)state;
  struct view v = fresh(3);
  v.is_elastic = true;
  assert_true(view_ask(&v, 1, 5));
  finish(&v, 1, 3, 6);
  assert_int_equal(view_waits_for(&v), 2);
  view_leave(&v, 2);
  assert_int_equal(view_waits_for(&v), VIEW_NOBODY);
  view_settle(&v);
  assert_int_equal(v.source, 1);
  assert_false(view_is_lost(&v, 6)); /* all steps of this task are in it */
  assert_true(view_is_lost(&v, 7));
  view_fetched(&v, false, 0);
  view_forget(&v, 2); /* started again: it had nothing to do with those that left */
  tell(&v, 2, false, 0, 0);
  view_settle(&v);
  assert_false(view_is_lost(&v, 7));
  view_fetched(&v, false, 0);
  view_leave(&v, 1);
  assert_int_equal(view_waits_for(&v), VIEW_NOBODY);
  view_settle(&v);
  assert_int_equal(v.phase, VIEW_SERVES);
  assert_true(view_is_lost(&v, 0)); /* what nobody has is not begun again */
  view_deinit(&v);
}

static void what_nobody_has_any_more_is_done_again_in_another_view(void **state) {
  (void)state;
  struct view v = fresh(2);
  tell(&v, 1, false, 0, 0);
  view_settle(&v);
  tell(&v, 1, true, v.number, 4);
  uint64_t before = v.number, now = view_begin(&v);
  assert_true(now == v.number && now > before);
  assert_true(view_serve(&v, 1, 4)); /* its four rounds may be others */
  view_deinit(&v);
}

static void one_that_is_lost_has_to_tell_again(void **state) {
  (void)state;
  struct view v = fresh(3);
  tell(&v, 1, true, 1, 5);
  tell(&v, 2, true, 1, 4);
  view_forget(&v, 1);
  assert_int_equal(view_waits_for(&v), 1);
  view_deinit(&v);
}

static void who_is_at_the_same_round_copies_nothing(void **state) {
  (void)state;
  struct view v = fresh(2);
  tell(&v, 1, false, 0, 0);
  view_settle(&v);
  assert_true(view_serve(&v, 1, 0));
  tell(&v, 1, true, v.number, 8);
  assert_false(view_serve(&v, 1, 8));
  tell(&v, 1, true, v.number, 8);
  assert_true(view_serve(&v, 1, 9)); /* it lacks a round */
  tell(&v, 1, false, v.number, 9);
  assert_true(view_serve(&v, 1, 9)); /* it is another process */
  view_deinit(&v);
}

/* Three replicas that make rounds together; any of them is killed, comes back, tells: whenever the registrar serves, whoever it has served
 * holds what it holds itself, and no round that somebody alive had applied is undone by it. */
struct replica {
  bool has_state, is_admitted;
  uint64_t view, round;
};

static void serve_all(struct view *v, struct replica *r) {
  for (uint32_t i; (i = view_next(v)) != VIEW_NOBODY;) {
    if (view_serve(v, i, r[0].round)) {
      r[i].round = r[0].round;
      r[i].has_state = true;
    }
    r[i].view = v->number;
    r[i].is_admitted = true;
    assert_int_equal(r[i].round, r[0].round);
  }
}

static void settle(struct view *v, struct replica *r) {
  uint64_t highest = 0, view = 0;
  for (int i = 1; i < 3; i++)
    if (r[i].has_state && (r[i].view > view || (r[i].view == view && r[i].round > highest))) {
      view = r[i].view;
      highest = r[i].round;
    }
  view_settle(v);
  if (v->phase == VIEW_FETCHES) {
    assert_true(r[v->source].has_state);
    assert_int_equal(r[v->source].round, highest);
    r[0].round = r[v->source].round;
    view_fetched(v, true, view);
  } else {
    assert_int_equal(highest, 0);
  }
  r[0] = (struct replica){true, true, v->number, r[0].round};
}

static void kill_one(struct view *v, struct replica *r, uint32_t i) {
  r[i] = (struct replica){0};
  if (i > 0) {
    view_forget(v, i);
    return;
  }
  view_deinit(v);
  *v = fresh(3);
  r[1].is_admitted = r[2].is_admitted = false;
}

static void whatever_happens_replicas_that_take_part_are_alike(void **state) {
  (void)state;
  for (unsigned seed = 1; seed < 3000; seed++) {
    unsigned s = seed;
    struct view v = fresh(3);
    struct replica r[3] = {{0}};
    for (int event = 0; event < 60; event++) {
      uint32_t i = (uint32_t)rand_r(&s) % 3;
      switch (rand_r(&s) % 6) {
      case 0: kill_one(&v, r, i); break;
      case 1:
      case 2:
        if (i > 0 && !r[i].is_admitted)
          tell(&v, i, r[i].has_state, r[i].view, r[i].round);
        break;
      default:
        if (!r[0].is_admitted || !r[1].is_admitted || !r[2].is_admitted)
          break;
        for (int k = 0; k < 3; k++)
          r[k].round++;
        if (rand_r(&s) % 4 == 0) { /* one of them loses the mean: its step fails, and it tells again */
          r[1 + i % 2].round--;
          r[1 + i % 2].is_admitted = false;
        }
      }
      if (!r[0].is_admitted && view_waits_for(&v) == VIEW_NOBODY)
        settle(&v, r);
      if (r[0].is_admitted)
        serve_all(&v, r);
    }
    view_deinit(&v);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_fresh_take_what_the_registrar_has),
    cmocka_unit_test(a_registrar_that_was_started_again_takes_the_highest_state),
    cmocka_unit_test(a_source_that_is_lost_is_looked_for_again),
    cmocka_unit_test(one_that_has_finished_has_all_there_is),
    cmocka_unit_test(where_rounds_are_elastic_others_may_have_done_more_than_one_that_has_finished),
    cmocka_unit_test(who_has_left_tells_nothing_and_the_others_have_enough_or_it_is_lost),
    cmocka_unit_test(what_nobody_has_any_more_is_done_again_in_another_view),
    cmocka_unit_test(one_that_is_lost_has_to_tell_again),
    cmocka_unit_test(who_is_at_the_same_round_copies_nothing),
    cmocka_unit_test(whatever_happens_replicas_that_take_part_are_alike),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
