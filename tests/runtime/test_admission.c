/* test_admission.c: who gets a place, who has to go for whom, and when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/cluster/admission.h"
#include "runtime/net/net_limits.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MANY (4 * NET_STRANGERS)

static struct admission admission;
static struct guest guests[MANY];

static int begin(void **state) {
  (void)state;
  memset(&admission, 0, sizeof admission);
  memset(guests, 0, sizeof guests);
  return 0;
}

/* NULL: nobody had to go. */
static struct guest *enter(int i, uint64_t now_ms) { return admission_enter(&admission, &guests[i], now_ms); }

static void the_oldest_stranger_makes_room(void **state) {
  (void)state;
  for (int i = 0; i < NET_STRANGERS; i++)
    assert_null(enter(i, 0));
  for (int i = NET_STRANGERS; i < MANY; i++)
    assert_ptr_equal(enter(i, 1), &guests[i - NET_STRANGERS]); /* none twice, also before they have gone */
  for (int i = 0; i < MANY; i++)
    admission_leave(&admission, &guests[i]);
  assert_null(admission.newest);
  assert_int_equal(admission.count, 0);
}

/* Requests make nobody worth more: a worker that comes among hundreds of them stays until it has said who it is. */
static void a_newcomer_is_not_driven_out_by_a_place_full_of_others(void **state) {
  (void)state;
  for (int i = 0; i < NET_STRANGERS; i++) {
    enter(i, 0);
    guests[i].is_greeting = i % 2;
  }
  enter(NET_STRANGERS, 1);
  guests[NET_STRANGERS].is_greeting = true;
  for (int i = NET_STRANGERS + 1; i < 2 * NET_STRANGERS; i++) {
    assert_ptr_not_equal(enter(i, 1), &guests[NET_STRANGERS]);
    guests[i].is_greeting = true;
  }
  admission_leave(&admission, &guests[NET_STRANGERS]); /* it is a peer */
  assert_int_equal(admission.count, NET_STRANGERS - 1);
}

static void a_client_goes_after_all_strangers_and_never_while_a_call_of_it_runs(void **state) {
  (void)state;
  for (int i = 0; i < NET_STRANGERS; i++) {
    enter(i, 0);
    atomic_store(&guests[i].grpc.has_session, i < 3);
    atomic_store(&guests[i].grpc.calls, i == 0);
    guests[i].is_greeting = i == 3;
  }
  for (int i = 4; i < NET_STRANGERS; i++)
    assert_ptr_equal(enter(NET_STRANGERS + i, 0), &guests[i]);
  for (int i = NET_STRANGERS; i < 2 * NET_STRANGERS; i++)
    guests[i].is_greeting = guests[i].is_in;
  assert_ptr_equal(enter(2 * NET_STRANGERS, 0), &guests[3]);
}

static void of_clients_whose_calls_all_run_the_newest_goes(void **state) {
  (void)state;
  for (int i = 0; i < NET_STRANGERS; i++) {
    enter(i, 0);
    atomic_store(&guests[i].grpc.has_session, true);
    atomic_store(&guests[i].grpc.calls, 1);
  }
  assert_ptr_equal(enter(NET_STRANGERS, 0), &guests[NET_STRANGERS - 1]);
}

static const char *check(int i, bool has_calls, bool is_waiting, uint64_t bytes, uint64_t now_ms) {
  return admission_check(&guests[i], &(struct guest_state){has_calls, is_waiting, bytes}, now_ms);
}

static void an_idle_stranger_goes_in_ten_seconds_and_a_client_stays(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++)
    enter(i, 1000);
  atomic_store(&guests[1].grpc.has_session, true);
  guests[2].is_greeting = true;
  for (uint64_t now_ms = 1000; now_ms <= 11000; now_ms += 500)
    for (int i = 0; i < 3; i++)
      assert_null(check(i, i == 2, false, 0, now_ms));
  assert_string_equal(check(0, false, false, 0, 11001), "it says nothing");
  assert_null(check(1, false, false, 0, 100000000));
  assert_string_equal(check(2, true, true, 5, 11001), "it has not said which task it is");
  assert_null(check(3, true, false, 0, 9000)); /* a call of it runs */
  assert_null(check(3, false, false, 0, 19000));
  assert_non_null(check(3, false, false, 0, 19001));
}

static void who_stops_in_the_middle_of_a_request_goes(void **state) {
  (void)state;
  uint64_t bytes = 0, now_ms = 1000;
  enter(0, now_ms);
  enter(1, now_ms);
  atomic_store(&guests[1].grpc.has_session, true);
  for (; now_ms < 100000; now_ms += 1000, bytes += NET_STALL_BYTES)
    assert_true(!check(0, true, true, bytes, now_ms) && !check(1, true, true, bytes, now_ms));
  bytes -= NET_STALL_BYTES;
  assert_null(check(0, true, true, bytes + 1, now_ms - 1000 + NET_STRANGER_MS));
  assert_non_null(check(0, true, true, bytes + 2, now_ms - 1000 + NET_STRANGER_MS + 1));
  assert_null(check(1, true, true, bytes + 1, now_ms - 1000 + NET_STALL_MS));
  assert_non_null(check(1, true, true, bytes + 2, now_ms - 1000 + NET_STALL_MS + 1));
}

static void an_attack_does_not_fill_the_log(void **state) {
  (void)state;
  uint32_t unsaid, said = 0;
  assert_true(admission_may_say(&admission, "the same", 50000, &unsaid));
  assert_false(admission_may_say(&admission, "the same", 51000, &unsaid));
  for (int i = 0; i < 100000; i++) {
    char text[16];
    snprintf(text, sizeof text, "%d", i);
    said += admission_may_say(&admission, text, 52000, &unsaid);
  }
  assert_true(said > 0 && said < 100);
  assert_true(admission_may_say(&admission, "the same", 61000, &unsaid));
  assert_int_equal(unsaid, 1 + 100000 - said);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(the_oldest_stranger_makes_room, begin),
    cmocka_unit_test_setup(a_newcomer_is_not_driven_out_by_a_place_full_of_others, begin),
    cmocka_unit_test_setup(a_client_goes_after_all_strangers_and_never_while_a_call_of_it_runs, begin),
    cmocka_unit_test_setup(of_clients_whose_calls_all_run_the_newest_goes, begin),
    cmocka_unit_test_setup(an_idle_stranger_goes_in_ten_seconds_and_a_client_stays, begin),
    cmocka_unit_test_setup(who_stops_in_the_middle_of_a_request_goes, begin),
    cmocka_unit_test_setup(an_attack_does_not_fill_the_log, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
