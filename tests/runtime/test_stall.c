/* test_stall.c: what is said of waits that are handed in, by whom, when; rings over tasks and queues. */
#include <stdio.h>
#include <string.h>

#include "runtime/step/stall.h"
#include "tests/support/test.h"

static const char *const names[] = {"ps_0", "worker_0", "worker_1", "worker_2"};
enum { PS, W0, W1, W2, TASKS };
#define CLOCK (14 * 3600 + 3 * 60 + 34) /* 14:03:34 */

static struct stall *make(uint32_t self) {
  struct stall *stall;
  assert_int_equal(stall_create(self, TASKS, names, &stall), OK);
  return stall;
}

static struct stall_wait wait_for(enum stall_kind kind, uint64_t step, uint32_t driver, const char *what, uint32_t holder) {
  struct stall_wait wait = {.step = step, .driver = driver, .kind = kind, .holders = {holder}, .holder_count = 1};
  snprintf(wait.what, sizeof wait.what, "%s", what);
  return wait;
}

/* What `from` waits for, since `age_ms`, as it reaches `to`. */
static void tell(struct stall *to, uint32_t from, struct stall_wait wait, uint64_t now_ms) {
  unsigned char data[STALL_MESSAGE_BYTES];
  struct stall *other = make(from);
  stall_see(other, now_ms - 9000, &wait, 1);
  size_t size = stall_tell(other, now_ms, data);
  assert_int_not_equal(size, 0);
  assert_int_equal(stall_hear(to, now_ms, from, data, size), OK);
  stall_destroy(other);
}

static bool has(const char *line, const char *words) {
  if (!strstr(line, words))
    print_message("'%s' is not in: %s\n", words, line);
  return strstr(line, words) != NULL;
}

/* Who waits for each other, by the report; "" when nobody does. */
static void ring_of(const struct stall *stall, uint64_t now_ms, char *out, size_t size) {
  char line[1024];
  stall_report(stall, now_ms, CLOCK, 0, line, sizeof line);
  const char *ring = strstr(line, "these wait for each other: ");
  snprintf(out, size, "%s", ring ? strchr(ring, ':') + 2 : "");
}

static void who_waits_ten_seconds_says_so_once_and_again_after_a_minute(void **state) {
  (void)state;
  char line[1024];
  struct stall *stall = make(W0);
  struct stall_wait wait = wait_for(STALL_VALUE, 7, W0, "waits for 'w/read' of ps_0", PS);
  int said = 0;
  for (uint64_t ms = 0; ms <= 75000; ms += 1000) {
    stall_see(stall, ms, &wait, 1);
    if (stall_say(stall, ms, CLOCK, line, sizeof line)) {
      assert_true(ms == 10000 || ms == 70000);
      said++;
    }
  }
  assert_int_equal(said, 2);
  stall_see(stall, 76000, &wait, 1);
  stall_report(stall, 76000, CLOCK, 0, line, sizeof line);
  assert_string_equal(line, "waits for 'w/read' of ps_0, since 14:02:18 (76 s); held up by ps_0");
  stall_destroy(stall);
}

static void steps_that_end_in_time_are_not_spoken_of(void **state) {
  (void)state;
  char line[1024];
  struct stall *stall = make(W0);
  for (uint64_t ms = 0; ms < 100000; ms += 1000) {
    struct stall_wait wait = wait_for(STALL_VALUE, ms / 5000, W0, "waits for 'w/read' of ps_0", PS);
    stall_see(stall, ms, &wait, 1);
    assert_false(stall_say(stall, ms, CLOCK, line, sizeof line));
  }
  stall_destroy(stall);
}

static void another_answer_is_said_at_once(void **state) {
  (void)state;
  char line[1024];
  struct stall *stall = make(W0);
  struct stall_wait wait = wait_for(STALL_VALUE, 7, W0, "waits for 'w/read' of ps_0", PS);
  stall_see(stall, 1000, &wait, 1);
  stall_see(stall, 12000, &wait, 1);
  assert_true(stall_say(stall, 12000, CLOCK, line, sizeof line));
  stall_note(stall, PS, "is not connected");
  stall_see(stall, 15000, &wait, 1);
  assert_true(stall_say(stall, 15000, CLOCK, line, sizeof line));
  assert_true(has(line, "held up by ps_0, which is not connected"));
  stall_see(stall, 18000, &wait, 1);
  assert_false(stall_say(stall, 18000, CLOCK, line, sizeof line));
  stall_destroy(stall);
}

static void the_chain_leads_to_who_holds_it_up(void **state) {
  (void)state;
  char line[1024];
  struct stall *stall = make(W0);
  struct stall_wait wait = wait_for(STALL_VALUE, 7, W0, "waits for 'take' of ps_0", PS);
  stall_see(stall, 1000, &wait, 1);
  tell(stall, PS, wait_for(STALL_RESOURCE, 7, W0, "waits in queue 'q'", W1), 10000);
  stall_note(stall, W1, "is silent");
  stall_see(stall, 12000, &wait, 1);
  assert_true(stall_say(stall, 12000, CLOCK, line, sizeof line));
  assert_true(has(
    line,
    "waits for 'take' of ps_0, since 14:03:23 (11 s); held up by ps_0, which waits in queue 'q', held up by worker_1, which is silent"));
  stall_destroy(stall);
}

static void what_waits_in_something_shared_speaks_for_its_step(void **state) {
  (void)state;
  char line[1024];
  struct stall *stall = make(PS);
  struct stall_wait waits[] = {wait_for(STALL_VALUE, 7, W0, "waits for 'x'", W0), wait_for(STALL_ROUND, 7, W0, "waits in round 3", W1)};
  waits[0].place = 1;
  waits[1].place = 2;
  stall_see(stall, 1000, waits, 2);
  stall_see(stall, 12000, waits, 2);
  stall_report(stall, 12000, CLOCK, 0, line, sizeof line);
  assert_true(has(line, "waits in round 3, since 14:03:23 (11 s); held up by worker_1"));
  assert_null(strstr(line, "'x'"));
  stall_destroy(stall);
}

static void a_ring_over_two_queues_is_named(void **state) {
  (void)state;
  char ring[512];
  struct stall *stall = make(PS);
  struct stall_wait waits[] = {wait_for(STALL_RESOURCE, 1, W0, "waits in queue 'a'", W1),
                               wait_for(STALL_RESOURCE, 2, W1, "waits in queue 'b'", W0)};
  stall_see(stall, 1000, waits, 2);
  ring_of(stall, 1000, ring, sizeof ring);
  assert_string_equal(ring, "worker_0, which on ps_0 waits in queue 'a' -> worker_1, which on ps_0 waits in queue 'b' -> worker_0");
  stall_destroy(stall);
}

static void a_ring_over_three_tasks_is_found_of_what_they_tell(void **state) {
  (void)state;
  char ring[512];
  struct stall *stall = make(W0);
  struct stall_wait own = wait_for(STALL_RESOURCE, 1, W0, "waits in queue 'a'", W1);
  stall_see(stall, 10000, &own, 1);
  ring_of(stall, 10000, ring, sizeof ring);
  assert_string_equal(ring, "");
  tell(stall, W1, wait_for(STALL_RESOURCE, 2, W1, "waits in queue 'b'", W2), 10000);
  tell(stall, W2, wait_for(STALL_RESOURCE, 3, W2, "waits in queue 'c'", W0), 10000);
  ring_of(stall, 10000, ring, sizeof ring);
  assert_true(has(
    ring, "worker_0, which waits in queue 'a' -> worker_1, which waits in queue 'b' -> worker_2, which waits in queue 'c' -> worker_0"));
  stall_destroy(stall);
}

static void a_queue_that_somebody_outside_may_fill_is_no_ring(void **state) {
  (void)state;
  char ring[512];
  struct stall *stall = make(PS);
  struct stall_wait waits[] = {wait_for(STALL_RESOURCE, 1, W0, "waits in queue 'a'", W1),
                               wait_for(STALL_RESOURCE, 2, W1, "waits in queue 'b'", W0)};
  waits[1].holders[waits[1].holder_count++] = W2;
  stall_see(stall, 1000, waits, 2);
  ring_of(stall, 1000, ring, sizeof ring);
  assert_string_equal(ring, "");
  waits[1].kind = STALL_ROUND; /* of a round every one has to come */
  stall_see(stall, 1000, waits, 2);
  ring_of(stall, 1000, ring, sizeof ring);
  assert_true(has(ring, "-> worker_0"));
  stall_destroy(stall);
}

static void others_are_told_before_a_line_is_said_and_when_it_is_over(void **state) {
  (void)state;
  unsigned char data[STALL_MESSAGE_BYTES];
  struct stall *stall = make(W0);
  struct stall_wait wait = wait_for(STALL_VALUE, 7, W0, "waits for 'x'", PS);
  stall_see(stall, 1000, &wait, 1);
  assert_int_equal(stall_tell(stall, 5000, data), 0);
  assert_int_not_equal(stall_tell(stall, 9500, data), 0);
  assert_int_equal(stall_tell(stall, 10000, data), 0);
  stall_see(stall, 11000, NULL, 0);
  assert_int_equal(stall_tell(stall, 11000, data), 1);
  assert_int_equal(stall_tell(stall, 12000, data), 0);
  stall_destroy(stall);
}

static void damaged_messages_change_nothing(void **state) {
  (void)state;
  unsigned char data[STALL_MESSAGE_BYTES];
  struct stall *stall = make(W0), *other = make(PS);
  struct stall_wait wait = wait_for(STALL_RESOURCE, 7, W0, "waits in queue 'q'", W1);
  stall_see(other, 1000, &wait, 1);
  size_t size = stall_tell(other, 9500, data);
  for (size_t cut = 0; cut < size; cut++)
    assert_int_not_equal(stall_hear(stall, 9500, PS, data, cut), OK);
  assert_int_not_equal(stall_hear(stall, 9500, TASKS, data, size), OK);
  data[0] = 200;
  assert_int_not_equal(stall_hear(stall, 9500, PS, data, size), OK);
  stall_destroy(stall);
  stall_destroy(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_waits_ten_seconds_says_so_once_and_again_after_a_minute),
    cmocka_unit_test(steps_that_end_in_time_are_not_spoken_of),
    cmocka_unit_test(another_answer_is_said_at_once),
    cmocka_unit_test(the_chain_leads_to_who_holds_it_up),
    cmocka_unit_test(what_waits_in_something_shared_speaks_for_its_step),
    cmocka_unit_test(a_ring_over_two_queues_is_named),
    cmocka_unit_test(a_ring_over_three_tasks_is_found_of_what_they_tell),
    cmocka_unit_test(a_queue_that_somebody_outside_may_fill_is_no_ring),
    cmocka_unit_test(others_are_told_before_a_line_is_said_and_when_it_is_over),
    cmocka_unit_test(damaged_messages_change_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
