/* test_session.c: two ends of a session over connections that are cut at every place of every short conversation; and when silence is
 * what. */
#include <stdlib.h>
#include <string.h>
#include "runtime/cluster/session.h"
#include "runtime/net/net_limits.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MESSAGES 3
#define WIRE_MAX 32

struct note {
  struct session_item item; /* first */
  int value;
};

/* One end, and what is under way from it on the present connection: values of messages, or an acknowledgement below 0. */
struct end {
  struct session session;
  struct note notes[MESSAGES];
  int pushed;
  long wire[WIRE_MAX];
  int wire_count;
  int heard[MESSAGES + 1], heard_count;
  int freed;
};

static void free_items(struct end *end, struct session_item *items) {
  for (; items; items = items->next)
    end->freed++;
}

static void ends_begin(struct end *ends) {
  memset(ends, 0, 2 * sizeof *ends);
  for (uint64_t i = 0; i < 2; i++)
    session_begin(&ends[i].session, (struct session_key){20 - i, 0}, 1);
}

static void end_push(struct end *end) {
  if (end->pushed == MESSAGES)
    return;
  end->notes[end->pushed].value = end->pushed + 1;
  session_push(&end->session, &end->notes[end->pushed++].item);
}

static void end_flush(struct end *end) {
  for (struct session_item *item; (item = session_next(&end->session));)
    end->wire[end->wire_count++] = ((struct note *)item)->value;
}

static void end_acknowledge(struct end *end) {
  if (end->session.received > end->session.told)
    end->wire[end->wire_count++] = -(long)session_ack(&end->session);
}

/* The first thing under way arrives. */
static void wire_deliver(struct end *from, struct end *to) {
  struct session_item *freed;
  if (from->wire_count == 0)
    return;
  long what = from->wire[0];
  memmove(from->wire, from->wire + 1, (size_t)--from->wire_count * sizeof *from->wire);
  if (what > 0) {
    session_take(&to->session, 10);
    assert_true(to->heard_count < MESSAGES);
    to->heard[to->heard_count++] = (int)what;
  } else {
    assert_true(session_acknowledged(&to->session, (uint64_t)-what, &freed));
    free_items(to, freed);
  }
}

static void cut(struct end *ends) {
  struct session_item *freed;
  uint64_t received[2] = {ends[0].session.received, ends[1].session.received};
  for (int i = 0; i < 2; i++) {
    ends[i].wire_count = 0;
    assert_true(session_resume(&ends[i].session, received[1 - i], 5, &freed));
    free_items(&ends[i], freed);
  }
}

static void check(const struct end *ends) {
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < ends[i].heard_count; k++)
      assert_int_equal(ends[i].heard[k], k + 1); /* each once, in order */
}

static void finish(struct end *ends) {
  for (int round = 0; round < 8; round++)
    for (int i = 0; i < 2; i++) {
      end_flush(&ends[i]);
      end_acknowledge(&ends[i]);
      while (ends[i].wire_count > 0)
        wire_deliver(&ends[i], &ends[1 - i]);
    }
  check(ends);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(ends[1 - i].heard_count, ends[i].pushed);
    assert_int_equal(ends[i].freed, ends[i].pushed);
    assert_true(session_is_drained(&ends[i].session));
  }
}

enum action { PUSH_0, PUSH_1, FLUSH_0, FLUSH_1, DELIVER_0, DELIVER_1, ACK_0, ACK_1, CUT, ACTIONS };

static void act(struct end *ends, enum action action) {
  struct end *end = &ends[action % 2];
  if (action == CUT)
    cut(ends);
  else if (action < FLUSH_0)
    end_push(end);
  else if (action < DELIVER_0)
    end_flush(end);
  else if (action < ACK_0)
    wire_deliver(end, &ends[1 - action % 2]);
  else
    end_acknowledge(end);
}

static void every_short_schedule_with_cuts_delivers_each_message_once_and_in_order(void **state) {
  (void)state;
  enum { LENGTH = 6 };
  for (long number = 0, all = 531441; number < all; number++) { /* 9^6, after two messages that are under way */
    struct end ends[2];
    ends_begin(ends);
    end_push(&ends[0]);
    end_push(&ends[1]);
    end_flush(&ends[0]);
    long rest = number;
    for (int i = 0; i < LENGTH; i++, rest /= ACTIONS)
      act(ends, (enum action)(rest % ACTIONS));
    check(ends);
    finish(ends);
  }
}

static void long_schedules_by_seed_do_so_too(void **state) {
  (void)state;
  unsigned seed = 7;
  for (int round = 0; round < 100000; round++) {
    struct end ends[2];
    ends_begin(ends);
    for (int i = 0; i < 30; i++)
      act(ends, (enum action)(rand_r(&seed) % ACTIONS));
    finish(ends);
  }
}

static void acknowledgements_of_what_was_not_sent_are_noticed(void **state) {
  (void)state;
  struct end ends[2];
  struct session_item *freed;
  ends_begin(ends);
  end_push(&ends[0]);
  assert_false(session_acknowledged(&ends[0].session, 1, &freed)); /* not sent yet */
  end_flush(&ends[0]);
  assert_false(session_acknowledged(&ends[0].session, 2, &freed));
  assert_true(session_acknowledged(&ends[0].session, 1, &freed));
  assert_ptr_equal(freed, &ends[0].notes[0].item);
  assert_false(session_acknowledged(&ends[0].session, 0, &freed)); /* backwards */
  assert_false(session_resume(&ends[0].session, 0, 1, &freed));    /* it has forgotten what it had */
}

static void an_end_gives_back_what_was_not_acknowledged(void **state) {
  (void)state;
  struct end ends[2];
  ends_begin(ends);
  end_push(&ends[0]);
  end_push(&ends[0]);
  end_flush(&ends[0]);
  free_items(&ends[0], session_end(&ends[0].session));
  assert_int_equal(ends[0].freed, 2);
  assert_false(ends[0].session.is_alive);
}

static void an_acknowledgement_is_owed_by_messages_or_bytes_and_earlier_along_with_another(void **state) {
  (void)state;
  struct session s;
  session_begin(&s, (struct session_key){1, 0}, 0);
  for (int i = 0; i < SESSION_ACK_ALONG; i++) {
    assert_false(session_owes_ack(&s, true));
    session_take(&s, 4);
  }
  assert_true(session_owes_ack(&s, true));
  assert_false(session_owes_ack(&s, false));
  for (int i = SESSION_ACK_ALONG; i < SESSION_ACK_MESSAGES; i++)
    session_take(&s, 4);
  assert_true(session_owes_ack(&s, false));
  assert_int_equal(session_ack(&s), SESSION_ACK_MESSAGES);
  assert_false(session_owes_ack(&s, true));
  session_take(&s, SESSION_ACK_BYTES);
  assert_true(session_owes_ack(&s, false));
}

static void a_session_goes_on_only_between_the_same_two_lives(void **state) {
  (void)state;
  struct session s = {0};
  struct session_key other = {8, 1}, own = {9, 2}, none = {0, 0};
  assert_false(session_continues(&s, other, own, own)); /* there is none */
  session_begin(&s, other, 0);
  assert_true(session_continues(&s, other, own, own));
  assert_true(session_continues(&s, other, own, none));                         /* it has not heard our HELLO */
  assert_false(session_continues(&s, (struct session_key){7, 1}, own, own));    /* another process */
  assert_false(session_continues(&s, (struct session_key){8, 2}, own, own));    /* it has given us up since */
  assert_false(session_continues(&s, other, own, (struct session_key){9, 1}));  /* it means an earlier session of ours */
  assert_false(session_continues(&s, other, own, (struct session_key){10, 2})); /* it means another process */
}

static void silence_is_suspicious_after_5_s_and_the_end_after_the_timeout(void **state) {
  (void)state;
  struct session s;
  session_begin(&s, (struct session_key){1, 0}, 1000);
  assert_int_equal(session_health(&s, true, 5999, 30000), SESSION_WELL);
  assert_int_equal(session_health(&s, true, 6000, 30000), SESSION_SUSPECTED);
  assert_int_equal(session_health(&s, true, 30999, 30000), SESSION_SUSPECTED);
  assert_int_equal(session_health(&s, true, 31000, 30000), SESSION_LOST);
  assert_int_equal(session_health(&s, false, 30999, 30000), SESSION_WELL); /* it is cut, and said so */
  assert_int_equal(session_health(&s, false, 31000, 30000), SESSION_LOST);
  assert_int_equal(session_health(&s, true, 5999, 1000), SESSION_WELL); /* a connection that stands is never given up so early */
  assert_int_equal(session_health(&s, true, 6000, 1000), SESSION_LOST);
  assert_int_equal(session_health(&s, false, 2000, 1000), SESSION_LOST);
  session_heard(&s, 7000);
  session_heard(&s, 6000); /* older news */
  assert_int_equal(session_health(&s, true, 11999, 30000), SESSION_WELL);
  assert_int_equal(session_health(&s, true, 900, 30000), SESSION_WELL); /* a clock that was read before */
}

static void a_good_bye_is_heard_when_it_is_acknowledged_and_stays_so_when_the_session_is_over(void **state) {
  struct session s;
  struct session_item items[2], *freed;
  (void)state;
  session_begin(&s, (struct session_key){7, 0}, 1);
  session_push(&s, &items[0]);
  session_push(&s, &items[1]);
  s.goodbye = items[1].number;
  session_next(&s);
  session_next(&s);
  assert_true(session_acknowledged(&s, 1, &freed));
  assert_false(session_has_heard_goodbye(&s));
  session_end(&s);
  assert_false(session_has_heard_goodbye(&s)); /* drained, but not heard */
  session_begin(&s, (struct session_key){7, 1}, 2);
  session_push(&s, &items[0]);
  s.goodbye = items[0].number;
  session_next(&s);
  assert_true(session_acknowledged(&s, 1, &freed));
  session_end(&s);
  assert_true(session_has_heard_goodbye(&s));
  session_begin(&s, (struct session_key){8, 0}, 3);
  assert_false(session_has_heard_goodbye(&s));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_short_schedule_with_cuts_delivers_each_message_once_and_in_order),
    cmocka_unit_test(long_schedules_by_seed_do_so_too),
    cmocka_unit_test(acknowledgements_of_what_was_not_sent_are_noticed),
    cmocka_unit_test(an_end_gives_back_what_was_not_acknowledged),
    cmocka_unit_test(an_acknowledgement_is_owed_by_messages_or_bytes_and_earlier_along_with_another),
    cmocka_unit_test(a_session_goes_on_only_between_the_same_two_lives),
    cmocka_unit_test(a_good_bye_is_heard_when_it_is_acknowledged_and_stays_so_when_the_session_is_over),
    cmocka_unit_test(silence_is_suspicious_after_5_s_and_the_end_after_the_timeout),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
