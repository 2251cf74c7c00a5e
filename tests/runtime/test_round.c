/* test_round.c: rounds of several drivers over several holders, under every order of events that small seeds give: drivers that are killed
 * at any point and come back, messages that are late, members that leave. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/resource/round.h"
#include "tests/support/test.h"

#define DRIVERS 3
#define HOLDERS 3
#define QUEUE 256

enum stage { AWAY, ENTERS, GIVES, LEADS, ENDS, DONE };
struct guest {
  enum stage stage;
  uint64_t step, version;
  bool is_dry, is_dead; /* dead: the holder has not noticed yet */
};
struct driver {
  uint64_t step, serial; /* 0: it asks where to go on */
  bool is_done, is_gone; /* gone: killed, and not back */
};
struct queue {
  struct round_message items[QUEUE];
  uint32_t from, to;
};
struct world {
  uint32_t drivers, holders;
  uint64_t steps;
  int kills;
  bool is_elastic;
  uint64_t next_step;
  struct driver driver[DRIVERS];
  struct guest guest[HOLDERS][DRIVERS];
  struct round round[HOLDERS];
  bool is_out[HOLDERS][DRIVERS]; /* elastic: the holder does not reach the driver */
  uint64_t last[HOLDERS][DRIVERS];
  uint64_t serial_of[4096];              /* by step id */
  uint64_t taken[HOLDERS][256][DRIVERS]; /* per round */
  struct queue wire[HOLDERS][HOLDERS];   /* from, to */
  unsigned seed;
};

static struct world w;

static unsigned draw(unsigned below) { return (unsigned)rand_r(&w.seed) % below; }

static void begin(unsigned seed, uint32_t drivers, uint32_t holders, uint64_t steps, int kills, bool is_elastic) {
  memset(&w, 0, sizeof w);
  w.seed = seed;
  w.drivers = drivers;
  w.holders = holders;
  w.steps = steps;
  w.kills = kills;
  w.is_elastic = is_elastic;
  w.next_step = 1;
  for (uint32_t h = 0; h < holders; h++) {
    struct round_options options = {.seats = drivers,
                                    .holders = holders,
                                    .holder = h,
                                    .has_leader = true,
                                    .has_turns = seed % 2,
                                    .is_elastic = is_elastic,
                                    .timeout_ms = 1};
    assert_true(round_init(&w.round[h], &options));
    for (uint32_t d = 0; d < drivers; d++)
      round_up(&w.round[h], d);
  }
}

static void end(void) {
  for (uint32_t h = 0; h < w.holders; h++)
    round_deinit(&w.round[h]);
}

static void post(uint32_t h) {
  struct round *r = &w.round[h];
  for (uint32_t i = 0; i < r->out.count; i++) {
    struct queue *q = &w.wire[h][r->out.items[i].holder];
    assert_true(q->to - q->from < QUEUE);
    q->items[q->to++ % QUEUE] = r->out.items[i];
  }
  r->out.count = 0;
  assert_false(r->is_torn);
}

static void note_taken(uint32_t h) {
  struct round *r = &w.round[h];
  if (!r->number)
    return;
  for (uint32_t d = 0; d < w.drivers; d++)
    w.taken[h][r->number][d] = r->seats[d].taken;
}

/* Where steps bring more behind the decision: a step has come to the updates of each holder, of this round or of a later one. */
static void check_whole(uint32_t h) {
  for (uint32_t k = 0; k < w.holders && w.holders > 1 && w.round[h].options.has_turns; k++)
    assert_true(w.round[k].number > w.round[h].number || w.round[k].brought[k]);
}

/* ---- what drivers do ---- */

static bool start_step(struct driver *d, uint32_t number) {
  if (d->is_done)
    return false;
  uint64_t least = UINT64_MAX;
  for (uint32_t h = 0; h < w.holders; h++) {
    if (w.guest[h][number].stage != AWAY && (w.guest[h][number].stage != DONE || w.guest[h][number].is_dead))
      return false; /* the holder has not noticed the old one's end */
    least = w.last[h][number] < least ? w.last[h][number] : least;
  }
  if (least == w.steps) {
    d->is_done = true;
    return true;
  }
  d->is_gone = false;
  d->serial = least + 1;
  d->step = w.next_step++;
  assert_true(d->step < 4096);
  w.serial_of[d->step] = d->serial;
  for (uint32_t h = 0; h < w.holders; h++) {
    round_up(&w.round[h], number);
    w.guest[h][number] = (struct guest){.stage = ENTERS, .step = d->step, .is_dry = d->serial <= w.last[h][number]};
  }
  return true;
}

static bool all_done(uint32_t number) {
  for (uint32_t h = 0; h < w.holders; h++)
    if (w.guest[h][number].stage != DONE || w.guest[h][number].is_dead)
      return false;
  return true;
}

static bool move_driver(uint32_t number) {
  struct driver *d = &w.driver[number];
  if (!d->step)
    return start_step(d, number);
  if (!all_done(number))
    return false;
  d->step = 0;
  for (uint32_t h = 0; h < w.holders; h++)
    w.guest[h][number].stage = AWAY;
  return true;
}

static void kill_driver(uint32_t number) {
  w.driver[number].step = 0;
  for (uint32_t h = 0; h < w.holders; h++)
    if (w.guest[h][number].stage != AWAY)
      w.guest[h][number].is_dead = true;
}

/* ---- what holders do ---- */

static void notice_death(uint32_t h, uint32_t d) {
  struct guest *g = &w.guest[h][d];
  if (g->stage != DONE && !g->is_dry)
    assert_true(round_withdraw(&w.round[h], d, g->step));
  if (!w.is_elastic || draw(2)) /* else it is back before anybody looks */
    round_down(&w.round[h], d, 0);
  post(h);
  note_taken(h);
  *g = (struct guest){0};
}

static void look(uint32_t h) {
  for (uint32_t d = 0; d < w.drivers && w.is_elastic; d++) {
    if (w.is_out[h][d] || w.driver[d].is_gone)
      round_down(&w.round[h], d, 0);
    else
      round_up(&w.round[h], d);
    post(h);
    note_taken(h);
  }
}

/* A gradient needs what was read everywhere. */
static bool has_read(uint32_t d) {
  for (uint32_t h = 0; h < w.holders; h++)
    if (w.guest[h][d].stage == ENTERS || w.guest[h][d].stage == AWAY)
      return false;
  return true;
}

static void check_versions(uint32_t d) {
  for (uint32_t h = 1; h < w.holders; h++)
    if (!w.guest[0][d].is_dry && !w.guest[h][d].is_dry && !round_repeats(&w.round[0], d, w.guest[0][d].step) &&
        !round_repeats(&w.round[h], d, w.guest[h][d].step) && w.round[0].seats[d].entered == w.guest[0][d].step &&
        w.round[h].seats[d].entered == w.guest[h][d].step)
      assert_int_equal(w.guest[0][d].version, w.guest[h][d].version);
}

/* A step that was left behind is given up by its driver everywhere, and done again. */
static void do_again(uint32_t d) {
  assert_true(w.is_elastic);
  kill_driver(d);
}

static enum round_answer end_guest(uint32_t h, uint32_t d) {
  struct round *r = &w.round[h];
  uint64_t step = w.guest[h][d].step;
  bool leads = r->phase == ROUND_LED && r->leader == step;
  enum round_answer answer = round_end(r, d, step);
  for (uint32_t i = 0; leads && i < w.drivers; i++)
    if (r->seats[i].taken) {
      uint64_t serial = w.serial_of[r->seats[i].taken];
      assert_int_equal(w.last[h][i] + 1, serial); /* each once, and in order */
      w.last[h][i] = serial;
    }
  return answer;
}

static bool move_guest(uint32_t h, uint32_t d) {
  struct guest *g = &w.guest[h][d];
  struct round *r = &w.round[h];
  enum round_answer answer = ROUND_GO;
  if (g->is_dead) {
    notice_death(h, d);
    return true;
  }
  if (g->is_dry && g->stage != AWAY && g->stage != DONE) {
    g->stage = g->stage == ENTERS ? GIVES : DONE;
    return true;
  }
  switch (g->stage) {
  case AWAY:
  case DONE: return false;
  case ENTERS:
    answer = round_enter(r, d, g->step, w.serial_of[g->step] <= w.last[h][d]);
    g->version = r->number;
    break;
  case GIVES:
    if (!has_read(d))
      return false;
    answer = r->seats[d].given == g->step ? round_given(r, d, g->step) : round_give(r, d, g->step);
    break;
  case LEADS: answer = round_lead(r, d, g->step); break;
  case ENDS: answer = end_guest(h, d); break;
  }
  post(h);
  note_taken(h);
  if (answer == ROUND_STALE) {
    do_again(d);
    return true;
  }
  if (answer == ROUND_HOLD)
    return false;
  if (g->stage == GIVES)
    check_versions(d);
  g->stage++;
  if (answer == ROUND_LEADS) { /* a leader goes to its end: it cannot be given up */
    check_whole(h);
    return move_guest(h, d);
  }
  return true;
}

static bool deliver(uint32_t from, uint32_t to) {
  struct queue *q = &w.wire[from][to];
  if (q->from == q->to)
    return false;
  struct round_message m = q->items[q->from++ % QUEUE];
  m.holder = from;
  round_hear(&w.round[to], &m);
  post(to);
  note_taken(to);
  return true;
}

static bool event(unsigned choice) {
  uint32_t d = choice % w.drivers, h = choice / 8 % w.holders;
  if (choice / 256 % 16 == 0)
    look(h);
  switch (choice / 64 % 4) {
  case 0: return move_driver(d);
  case 1: return w.holders > 1 && deliver(h, (h + 1 + choice / 1024 % (w.holders - 1)) % w.holders);
  default: return move_guest(h, d);
  }
}

static bool any_event(void) {
  bool moved = false;
  for (uint32_t h = 0; h < w.holders; h++)
    look(h);
  for (uint32_t d = 0; d < w.drivers; d++) {
    moved = move_driver(d) || moved;
    for (uint32_t h = 0; h < w.holders; h++)
      moved = move_guest(h, d) || moved;
  }
  for (uint32_t a = 0; a < w.holders; a++)
    for (uint32_t b = 0; b < w.holders; b++)
      moved = deliver(a, b) || moved;
  return moved;
}

static bool everybody_is_done(void) {
  for (uint32_t d = 0; d < w.drivers; d++)
    if (!w.driver[d].is_done)
      return false;
  return true;
}

static void finish_those_done(void) {
  for (uint32_t d = 0; d < w.drivers; d++)
    for (uint32_t h = 0; w.driver[d].is_done && h < w.holders; h++)
      if (!w.round[h].seats[d].has_finished) {
        round_finish(&w.round[h], d);
        post(h);
        note_taken(h);
      }
}

static void check_rounds_are_equal(void) {
  for (uint32_t h = 1; h < w.holders; h++)
    for (uint64_t n = 1; n <= w.round[0].number; n++)
      for (uint32_t d = 0; d < w.drivers; d++)
        assert_int_equal(w.taken[0][n][d], w.taken[h][n][d]);
}

static void run(unsigned seed, uint32_t drivers, uint32_t holders, uint64_t steps, int kills, bool is_elastic) {
  begin(seed, drivers, holders, steps, kills, is_elastic);
  for (int i = 0; i < 4000 && !everybody_is_done(); i++) {
    event(draw(1 << 20));
    if (w.kills > 0 && draw(40) == 0) {
      w.kills--;
      uint32_t d = draw(drivers);
      kill_driver(d);
      w.driver[d].is_gone = true;
    }
    if (is_elastic && draw(20) == 0)
      w.is_out[draw(holders)][draw(drivers)] = draw(2);
    if (is_elastic)
      finish_those_done();
  }
  memset(w.is_out, 0, sizeof w.is_out);
  for (int quiet = 0; quiet < 3 && !everybody_is_done();) {
    quiet = any_event() ? 0 : quiet + 1;
    if (is_elastic)
      finish_those_done();
  }
  if (!everybody_is_done())
    test_fail("seed %u: %u drivers, %u holders: somebody waits for ever", seed, drivers, holders);
  while (any_event()) {
  }
  for (uint32_t h = 0; h < holders; h++)
    for (uint32_t d = 0; d < drivers; d++)
      assert_int_equal(w.last[h][d], steps);
  if (!is_elastic)
    assert_int_equal(w.round[0].number, steps);
  check_rounds_are_equal();
  end();
}

static void each_step_is_taken_once_whoever_is_killed(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 4000; seed++)
    run(seed, 1 + seed % 3, 1, 3, 4, false);
}

static void several_holders_take_the_same_steps(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 8000; seed++)
    run(seed, 1 + seed % 3, 2 + seed / 3 % 2, 3, 4, false);
}

static void elastic_rounds_go_on_with_those_that_are_there(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 8000; seed++)
    run(seed, 2 + seed % 2, 1 + seed / 2 % 3, 3, 4, true);
}

/* ---- single events ---- */

static struct round alone(uint32_t seats, bool has_leader, bool is_elastic) {
  struct round r;
  struct round_options options = {.seats = seats, .holders = 1, .has_leader = has_leader, .is_elastic = is_elastic, .timeout_ms = 100};
  assert_true(round_init(&r, &options));
  for (uint32_t i = 0; i < seats; i++)
    round_up(&r, i);
  return r;
}

static void what_a_step_gave_that_was_given_up_does_not_count(void **state) {
  (void)state;
  struct round r = alone(2, true, false);
  assert_int_equal(round_enter(&r, 0, 10, false), ROUND_GO);
  assert_int_equal(round_give(&r, 0, 10), ROUND_HOLD);
  assert_true(round_withdraw(&r, 0, 10));
  assert_int_equal(round_enter(&r, 1, 20, false), ROUND_GO);
  assert_int_equal(round_give(&r, 1, 20), ROUND_HOLD);
  assert_int_equal(round_enter(&r, 0, 11, false), ROUND_GO);
  assert_int_equal(round_give(&r, 0, 11), ROUND_GO);
  assert_int_equal(round_given(&r, 1, 20), ROUND_GO);
  assert_int_equal(r.seats[0].taken, 11);
  round_deinit(&r);
}

static void a_step_that_was_taken_is_not_taken_again(void **state) {
  (void)state;
  struct round r = alone(2, true, false);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(round_enter(&r, i, 10 + i, false), ROUND_GO);
    (void)round_give(&r, i, 10 + i);
  }
  assert_int_equal(round_lead(&r, 1, 11), ROUND_HOLD); /* the other may still read */
  assert_true(round_withdraw(&r, 0, 10));
  assert_int_equal(round_lead(&r, 1, 11), ROUND_LEADS);
  assert_int_equal(round_enter(&r, 0, 30, false), ROUND_HOLD); /* the updates are under way */
  assert_int_equal(round_end(&r, 1, 11), ROUND_GO);
  assert_int_equal(round_enter(&r, 0, 30, false), ROUND_GO);
  assert_true(round_repeats(&r, 0, 30));
  assert_int_equal(round_give(&r, 0, 30), ROUND_GO);
  assert_int_equal(round_lead(&r, 0, 30), ROUND_GO);
  assert_int_equal(round_end(&r, 0, 30), ROUND_GO);
  assert_int_equal(r.number, 1);
  round_deinit(&r);
}

static void a_decided_round_whose_steps_are_all_lost_is_led_by_one_that_comes_back(void **state) {
  (void)state;
  struct round r = alone(2, true, false);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(round_enter(&r, i, 10 + i, false), ROUND_GO);
    (void)round_give(&r, i, 10 + i);
  }
  assert_true(round_withdraw(&r, 0, 10) && round_withdraw(&r, 1, 11));
  assert_int_equal(round_enter(&r, 1, 31, false), ROUND_GO);
  assert_int_equal(round_give(&r, 1, 31), ROUND_GO);
  assert_int_equal(round_lead(&r, 1, 31), ROUND_LEADS);
  assert_int_equal(round_end(&r, 1, 31), ROUND_GO);
  assert_int_equal(r.number, 1);
  round_deinit(&r);
}

static void a_member_that_is_missing_too_long_is_named(void **state) {
  (void)state;
  struct round r = alone(2, true, false);
  round_down(&r, 1, 1000);
  round_down(&r, 1, 1050); /* it was missing before */
  assert_int_equal(round_late(&r, 1099), ROUND_NOBODY);
  assert_int_equal(round_late(&r, 1100), 1);
  round_up(&r, 1);
  assert_int_equal(round_late(&r, 5000), ROUND_NOBODY);
  round_deinit(&r);
}

static void a_member_that_has_finished_is_named_unless_it_has_given(void **state) {
  (void)state;
  struct round r = alone(2, true, false);
  assert_int_equal(round_enter(&r, 0, 10, false), ROUND_GO);
  assert_int_equal(round_give(&r, 0, 10), ROUND_HOLD);
  round_finish(&r, 0);
  assert_int_equal(round_finished_without(&r), ROUND_NOBODY);
  round_finish(&r, 1);
  assert_int_equal(round_finished_without(&r), 1);
  round_deinit(&r);
}

static void an_elastic_round_does_not_wait_for_one_that_is_lost(void **state) {
  (void)state;
  struct round r = alone(3, true, true);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(round_enter(&r, i, 10 + i, false), ROUND_GO);
    assert_int_equal(round_give(&r, i, 10 + i), ROUND_HOLD);
  }
  assert_int_equal(round_enter(&r, 2, 12, false), ROUND_GO);
  round_down(&r, 2, 0);
  assert_int_equal(round_given(&r, 0, 10), ROUND_GO);
  assert_int_equal(round_give(&r, 2, 12), ROUND_STALE); /* it was only cut off */
  assert_int_equal(round_lead(&r, 1, 11), ROUND_HOLD);
  assert_int_equal(round_lead(&r, 0, 10), ROUND_LEADS);
  assert_int_equal(round_enter(&r, 2, 13, false), ROUND_HOLD);
  assert_int_equal(round_end(&r, 0, 10), ROUND_GO);
  assert_int_equal(round_enter(&r, 2, 13, false), ROUND_GO);
  assert_true(r.seats[2].is_member);
  round_deinit(&r);
}

static void only_the_coordinator_lets_a_member_leave(void **state) {
  (void)state;
  struct round r;
  struct round_options options = {.seats = 2, .holders = 2, .holder = 1, .has_leader = true, .is_elastic = true, .timeout_ms = 100};
  assert_true(round_init(&r, &options));
  for (int i = 0; i < 2; i++) {
    round_up(&r, 1);
    round_down(&r, 1, 50);
    round_down(&r, 1, 60);
    assert_true(r.seats[1].is_member);
    assert_int_equal(r.out.count, 1); /* said once each time */
    assert_int_equal(r.out.items[0].word, ROUND_MISSES);
    assert_int_equal(round_late(&r, 1000), ROUND_NOBODY);
    r.out.count = 0;
  }
  round_hear(&r, &(struct round_message){.word = ROUND_JOIN, .seat = 1});
  round_down(&r, 1, 70);
  assert_int_equal(r.out.count, 1); /* it was let in meanwhile */
  round_deinit(&r);
}

static void who_has_left_a_closed_round_does_not_enter_by_itself(void **state) {
  (void)state;
  struct round r;
  struct round_options options = {.seats = 2, .holders = 1, .is_elastic = true, .is_closed = true, .timeout_ms = 100};
  assert_true(round_init(&r, &options));
  round_up(&r, 0);
  round_up(&r, 1);
  assert_int_equal(round_enter(&r, 1, 10, false), ROUND_GO);
  round_down(&r, 1, 0);
  round_up(&r, 1);
  assert_int_equal(round_give(&r, 1, 10), ROUND_STALE);
  assert_int_equal(round_enter(&r, 1, 11, false), ROUND_STALE);
  round_join(&r, 1);
  assert_int_equal(round_enter(&r, 1, 12, false), ROUND_GO);
  round_deinit(&r);
}

static void an_elastic_round_waits_for_one_that_never_came_as_long_as_others_may(void **state) {
  (void)state;
  struct round r;
  struct round_options options = {.seats = 2, .holders = 1, .is_elastic = true, .timeout_ms = 100};
  assert_true(round_init(&r, &options));
  round_up(&r, 0);
  round_down(&r, 1, 50);
  assert_true(r.seats[1].is_member);
  assert_int_equal(round_late(&r, 150), 1);
  round_deinit(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_a_step_gave_that_was_given_up_does_not_count),
    cmocka_unit_test(a_step_that_was_taken_is_not_taken_again),
    cmocka_unit_test(a_decided_round_whose_steps_are_all_lost_is_led_by_one_that_comes_back),
    cmocka_unit_test(a_member_that_is_missing_too_long_is_named),
    cmocka_unit_test(a_member_that_has_finished_is_named_unless_it_has_given),
    cmocka_unit_test(an_elastic_round_does_not_wait_for_one_that_is_lost),
    cmocka_unit_test(an_elastic_round_waits_for_one_that_never_came_as_long_as_others_may),
    cmocka_unit_test(only_the_coordinator_lets_a_member_leave),
    cmocka_unit_test(who_has_left_a_closed_round_does_not_enter_by_itself),
    cmocka_unit_test(each_step_is_taken_once_whoever_is_killed),
    cmocka_unit_test(several_holders_take_the_same_steps),
    cmocka_unit_test(elastic_rounds_go_on_with_those_that_are_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
