/* test_registrar.c: one name and those who ask for it, in every order of what can happen to them. */
#include <stdlib.h>
#include <string.h>
#include "runtime/cluster/registrar.h"
#include "runtime/net/net_limits.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static enum registrar_answer ask(struct registrar_name *name, uint64_t incarnation, uint64_t now_ms, uint32_t *probe) {
  return registrar_ask(name, incarnation, 0, now_ms, now_ms, probe);
}

static void a_free_name_is_granted_and_granted_again_to_its_holder(void **state) {
  (void)state;
  struct registrar_name name = {0};
  uint32_t probe = 0;
  assert_int_equal(ask(&name, 5, 10, &probe), REGISTRAR_GRANTED);
  assert_int_equal(name.generation, 1);
  registrar_linked(&name, 5, 10);
  registrar_unlinked(&name, 5);
  assert_int_equal(registrar_ask(&name, 5, 1, 90000, 90000, &probe), REGISTRAR_GRANTED); /* however long it was away */
  assert_int_equal(name.generation, 1);
  assert_int_equal(probe, 0);
}

static void a_newcomer_is_held_until_the_holder_answers_and_then_refused(void **state) {
  (void)state;
  struct registrar_name name = {0};
  uint32_t none = 0, probe = 0;
  ask(&name, 5, 10, &none);
  registrar_linked(&name, 5, 10);
  assert_int_equal(ask(&name, 6, 20, &probe), REGISTRAR_HELD);
  assert_int_not_equal(probe, 0);
  registrar_heard(&name, 30); /* words that were under way before it died, perhaps */
  assert_int_equal(ask(&name, 6, 30, &probe), REGISTRAR_HELD);
  registrar_answered(&name, probe, 40);
  assert_int_equal(ask(&name, 6, 40, &probe), REGISTRAR_REFUSED);
  assert_int_equal(name.holder, 5);
}

static void a_newcomer_gets_the_name_when_the_holders_connection_ends(void **state) {
  (void)state;
  struct registrar_name name = {0};
  uint32_t none = 0, probe = 0;
  ask(&name, 5, 10, &none);
  registrar_linked(&name, 5, 10);
  assert_int_equal(ask(&name, 6, 20, &probe), REGISTRAR_HELD);
  registrar_unlinked(&name, 5);
  assert_int_equal(ask(&name, 6, 20, &probe), REGISTRAR_GRANTED);
  assert_int_equal(name.generation, 2);
  registrar_unlinked(&name, 5); /* late news of the old one */
  registrar_linked(&name, 6, 21);
  registrar_unlinked(&name, 5);
  assert_true(name.is_linked);
}

static void a_silent_holder_is_decided_on_when_its_silence_is_5_s_old(void **state) {
  (void)state;
  struct registrar_name name = {0};
  uint32_t none = 0, probe = 0;
  ask(&name, 5, 10, &none);
  registrar_linked(&name, 5, 1000);
  assert_int_equal(ask(&name, 6, 1000 + NET_SILENCE_MS - 1, &probe), REGISTRAR_HELD);
  assert_int_equal(ask(&name, 6, 1000 + NET_SILENCE_MS, &probe), REGISTRAR_GRANTED);
  assert_int_equal(registrar_ask(&name, 5, 1, 9000, 9000, &none), REGISTRAR_DISPLACED);   /* on waking */
  assert_int_equal(registrar_ask(&name, 5, 1, 99000, 99000, &none), REGISTRAR_DISPLACED); /* for good */
}

static void two_newcomers_are_both_answered(void **state) {
  (void)state;
  struct registrar_name name = {0};
  uint32_t none = 0, probes[2] = {0};
  ask(&name, 5, 10, &none);
  registrar_linked(&name, 5, 10);
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 2; k++)
      assert_int_equal(ask(&name, (uint64_t)(6 + k), 20, &probes[k]), REGISTRAR_HELD);
  assert_int_equal(name.probes, 2);
  registrar_answered(&name, probes[1], 30);
  for (int k = 0; k < 2; k++)
    assert_int_equal(ask(&name, (uint64_t)(6 + k), 30, &probes[k]), REGISTRAR_REFUSED);
}

static void an_answer_of_an_earlier_holder_does_not_count_for_a_later_one(void **state) {
  (void)state;
  struct registrar_name name = {0};
  uint32_t none = 0, second = 0, third = 0;
  ask(&name, 5, 10, &none);
  registrar_linked(&name, 5, 10);
  assert_int_equal(ask(&name, 6, 20, &second), REGISTRAR_HELD);
  registrar_unlinked(&name, 5);
  assert_int_equal(ask(&name, 6, 20, &second), REGISTRAR_GRANTED);
  registrar_linked(&name, 6, 20);
  assert_int_equal(ask(&name, 7, 20, &third), REGISTRAR_HELD);
  registrar_answered(&name, second, 21);
  assert_int_equal(ask(&name, 7, 21, &third), REGISTRAR_HELD);
  registrar_answered(&name, third + 5, 21); /* of a probe that never was */
  assert_int_equal(ask(&name, 7, 21, &third), REGISTRAR_HELD);
}

/* Killed when it had asked, and started again; what it asked comes when its successor is cut off. */
static void the_word_of_a_dead_one_does_not_take_the_name_of_its_successor(void **state) {
  (void)state;
  struct registrar_name name = {0};
  uint32_t none = 0, dead = 0;
  assert_int_equal(registrar_ask(&name, 6, 0, 150, 160, &none), REGISTRAR_GRANTED);
  registrar_linked(&name, 6, 160);
  registrar_unlinked(&name, 6);
  assert_int_equal(registrar_ask(&name, 5, 0, 100, 200, &dead), REGISTRAR_LATE);
  assert_int_equal(registrar_ask(&name, 6, 1, 210, 220, &none), REGISTRAR_GRANTED);
  assert_int_equal(name.generation, 1);
}

static void who_lives_comes_again_and_has_the_name_then(void **state) {
  (void)state;
  struct registrar_name name = {0};
  uint32_t none = 0, probe = 0, again = 0;
  assert_int_equal(registrar_ask(&name, 5, 0, 100, 200, &none), REGISTRAR_GRANTED);
  registrar_linked(&name, 5, 200);
  assert_int_equal(registrar_ask(&name, 6, 0, 150, 210, &probe), REGISTRAR_HELD);
  registrar_unlinked(&name, 5);
  assert_int_equal(registrar_ask(&name, 6, 0, 150, 220, &probe), REGISTRAR_LATE);
  assert_int_equal(registrar_ask(&name, 6, 0, 230, 240, &again), REGISTRAR_GRANTED);
}

/* ---- two processes under one name, every order of events ---- */

struct twin {
  bool is_open, is_linked, has_ended;
  uint64_t generation, opened_ms;
  uint32_t probe, owed; /* a probe it has not answered yet */
};

struct world {
  struct registrar_name name;
  struct twin twins[2];
  uint64_t now_ms;
};

enum event { ASK_0, ASK_1, CUT_0, CUT_1, ANSWER_0, ANSWER_1, WAIT, EVENTS };

static void twin_asks(struct world *w, int i) {
  struct twin *twin = &w->twins[i], *other = &w->twins[1 - i];
  if (twin->has_ended || twin->is_linked)
    return;
  uint32_t before = twin->probe;
  twin->opened_ms = twin->is_open ? twin->opened_ms : w->now_ms;
  twin->is_open = true;
  switch (registrar_ask(&w->name, (uint64_t)(1 + i), twin->generation, twin->opened_ms, w->now_ms, &twin->probe)) {
  case REGISTRAR_GRANTED:
    twin->generation = w->name.generation;
    twin->is_linked = true;
    other->is_open = other->is_open && !other->is_linked; /* its connection is closed */
    other->is_linked = false;
    registrar_linked(&w->name, (uint64_t)(1 + i), w->now_ms);
    break;
  case REGISTRAR_HELD:
    if (twin->probe != before)
      other->owed = twin->probe;
    break;
  case REGISTRAR_LATE:
    twin->is_open = false;
    twin->probe = 0;
    break;
  default: twin->has_ended = true; assert_false(other->has_ended); /* never both */
  }
}

static void happen(struct world *w, enum event event) {
  int i = event % 2;
  struct twin *twin = &w->twins[i];
  if (event <= ASK_1) {
    twin_asks(w, i);
  } else if (event <= CUT_1) {
    if (twin->is_linked)
      registrar_unlinked(&w->name, (uint64_t)(1 + i));
    twin->is_linked = twin->is_open = false;
    twin->probe = 0; /* it asks anew, on another connection */
    twin->owed = 0;
  } else if (event <= ANSWER_1) {
    if (twin->is_linked && twin->owed)
      registrar_answered(&w->name, twin->owed, w->now_ms);
    twin->owed = 0;
  } else {
    w->now_ms += NET_SILENCE_MS / 2;
  }
}

/* What happens in the end when nothing is cut any more. */
static void settle(struct world *w) {
  for (int round = 0; round < 6; round++)
    for (int i = 0; i < 2; i++) {
      w->now_ms += 10;
      twin_asks(w, i);
      happen(w, i == 0 ? ANSWER_1 : ANSWER_0);
    }
}

static void of_two_processes_one_goes_on_and_the_other_ends_in_every_order_of_events(void **state) {
  (void)state;
  enum { LENGTH = 7 };
  for (long number = 0, all = 823543; number < all; number++) { /* 7^7 */
    struct world w = {.now_ms = 1000};
    long rest = number;
    for (int i = 0; i < LENGTH; i++, rest /= EVENTS)
      happen(&w, (enum event)(rest % EVENTS));
    settle(&w);
    assert_int_equal(w.twins[0].has_ended + w.twins[1].has_ended, 1);
    assert_int_equal(w.twins[0].is_linked + w.twins[1].is_linked, 1);
    assert_true(w.twins[0].has_ended != w.twins[0].is_linked);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_free_name_is_granted_and_granted_again_to_its_holder),
    cmocka_unit_test(a_newcomer_is_held_until_the_holder_answers_and_then_refused),
    cmocka_unit_test(a_newcomer_gets_the_name_when_the_holders_connection_ends),
    cmocka_unit_test(a_silent_holder_is_decided_on_when_its_silence_is_5_s_old),
    cmocka_unit_test(two_newcomers_are_both_answered),
    cmocka_unit_test(an_answer_of_an_earlier_holder_does_not_count_for_a_later_one),
    cmocka_unit_test(the_word_of_a_dead_one_does_not_take_the_name_of_its_successor),
    cmocka_unit_test(who_lives_comes_again_and_has_the_name_then),
    cmocka_unit_test(of_two_processes_one_goes_on_and_the_other_ends_in_every_order_of_events),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
