/* test_meeting.c: steps of several drivers that meet in rounds: what they are given, and when they stop waiting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/resource/meeting_state.h"
#include "tests/support/test.h"

#define DRIVERS 3
#define CALLS 32

struct place {
  struct container *container;
  struct hall *hall;
  struct meeting *meeting;
  struct inbox inbox;
  struct host_call calls[CALLS];
  struct tensor inputs[CALLS], *held[CALLS], *outputs[CALLS][1];
  int count;
  uint64_t missing_ms[DRIVERS];
};

static uint64_t missing_ms(void *self, uint32_t task, bool *was_up) {
  *was_up = true;
  return ((struct place *)self)->missing_ms[task];
}
static void describe(void *self, uint32_t task, char *out, size_t size) {
  (void)self;
  snprintf(out, size, "worker_%u", task);
}
static bool send_nothing(void *self, uint32_t task, const void *data, size_t size) {
  (void)self, (void)task, (void)data, (void)size;
  return false;
}

static void open_place(struct place *p, bool is_elastic) {
  static const uint32_t seats[] = {0, 1, 2}, holders[] = {0};
  struct resource *resource;
  bool is_new;
  memset(p, 0, sizeof *p);
  inbox_init(&p->inbox);
  assert_int_equal(container_create(&p->container), OK);
  assert_int_equal(hall_create(&p->hall), OK);
  hall_set_peers(p->hall, &(struct hall_peers){p, missing_ms, describe, send_nothing, 1000, is_elastic, 0});
  struct meeting_spec spec = {p->hall, seats, holders, DRIVERS, 1, false, false};
  assert_int_equal(container_get(p->container, "", "train", &meeting_maker, &spec, &is_new, &resource), OK);
  p->meeting = (struct meeting *)resource;
}

static void close_place(struct place *p) {
  hall_reset(p->hall); /* nobody waits when a task ends */
  for (int i = 0; i < p->count; i++)
    tensor_release(p->outputs[i][0]);
  container_destroy(p->container);
  hall_destroy(p->hall);
  inbox_deinit(&p->inbox);
}

static struct host_call *call_of(struct place *p, uint32_t driver, const float *value) {
  int i = p->count++;
  assert_true(i < CALLS);
  p->inputs[i] = (struct tensor){.dtype = DTYPE_FLOAT, .data = (void *)value, .count = 1};
  p->calls[i] = (struct host_call){.inbox = &p->inbox,
                                   .driver = driver,
                                   .outputs = p->outputs[i],
                                   .output_count = 1,
                                   .inputs = &p->inputs[i],
                                   .held = &p->held[i],
                                   .input_count = value ? 1 : 0};
  return &p->calls[i];
}

/* A step enters and brings a value: returns the call that waits for the mean. */
static struct host_call *bring(struct place *p, uint32_t driver, uint64_t id, const float *value, status want) {
  struct host_call *mean = call_of(p, driver, value);
  assert_int_equal(meeting_enter(p->meeting, &(struct meeting_step){.call = call_of(p, driver, NULL), .id = id}), want);
  if (want != OK)
    return NULL;
  assert_int_equal(meeting_value(p->meeting, &(struct meeting_step){.call = mean, .id = id},
                                 &(struct meeting_value_spec){.kind = COLLECTIVE_REDUCE, .mean = true}),
                   OK);
  return mean;
}

/* And gives: the step is the driver's number `id`, too. */
static struct host_call *come(struct place *p, uint32_t driver, uint64_t id, const float *value, status want) {
  struct host_call *mean = bring(p, driver, id, value, want);
  struct meeting_step step = {.call = call_of(p, driver, NULL), .id = id, .command = 1, .serial = id};
  if (mean)
    assert_int_equal(meeting_give(p->meeting, &step), OK);
  return mean;
}

static float mean_of(const struct host_call *call) {
  assert_non_null(call->outputs[0]);
  return *(const float *)call->outputs[0]->data;
}

static const float one = 1, two = 2, six = 6, nine = 9;

static void all_get_the_mean_of_what_was_taken(void **state) {
  (void)state;
  struct place p;
  open_place(&p, false);
  struct host_call *a = come(&p, 0, 10, &one, OK), *b = come(&p, 1, 11, &two, OK);
  assert_null(a->outputs[0]);
  struct host_call *c = come(&p, 2, 12, &six, OK);
  assert_true(mean_of(a) == 3 && mean_of(b) == 3 && mean_of(c) == 3);
  assert_int_equal(p.meeting->round.number, 1);
  close_place(&p);
}

static void what_a_lost_step_brought_is_not_in_the_mean(void **state) {
  (void)state;
  struct place p;
  open_place(&p, false);
  struct host_call *lost = come(&p, 0, 10, &nine, OK), *b = come(&p, 1, 11, &two, OK);
  assert_true(lost->withdraw(lost));
  assert_true(p.calls[2].withdraw(&p.calls[2])); /* where it gave */
  assert_true(hall_step_over(p.hall, 0, 10, false));
  come(&p, 2, 12, &six, OK);
  assert_null(b->outputs[0]);
  struct host_call *again = come(&p, 0, 20, &one, OK);
  assert_true(mean_of(again) == 3 && mean_of(b) == 3);
  close_place(&p);
}

static void who_is_missing_too_long_ends_the_round(void **state) {
  (void)state;
  struct place p;
  open_place(&p, false);
  struct host_call *a = come(&p, 0, 10, &one, OK);
  p.missing_ms[2] = 500;
  hall_tick(p.hall);
  assert_int_equal(a->code, OK);
  p.missing_ms[2] = 1000; /* it was missing before: the tick that saw it first counts from then */
  hall_reset(p.hall);
  assert_int_equal(a->code, ABORTED);
  struct host_call *b = come(&p, 0, 11, &one, OK);
  hall_tick(p.hall);
  assert_int_equal(b->code, DEADLINE_EXCEEDED);
  assert_non_null(strstr(b->text, "worker_2"));
  close_place(&p);
}

static void who_has_finished_ends_the_round_in_words(void **state) {
  (void)state;
  struct place p;
  open_place(&p, false);
  struct host_call *a = come(&p, 0, 10, &one, OK);
  hall_finish(p.hall, 1);
  assert_int_equal(a->code, FAILED_PRECONDITION);
  assert_true(hall_somebody_finished(p.hall));
  close_place(&p);
}

static void an_elastic_round_is_the_mean_of_those_that_are_there(void **state) {
  (void)state;
  struct place p;
  open_place(&p, true);
  struct host_call *a = come(&p, 0, 10, &one, OK), *b = come(&p, 1, 11, &two, OK);
  hall_tick(p.hall);
  assert_null(a->outputs[0]);
  p.missing_ms[2] = 1;
  hall_tick(p.hall);
  assert_true(mean_of(a) == 1.5f && mean_of(b) == 1.5f);
  p.missing_ms[2] = 0;
  struct host_call *c = come(&p, 2, 12, &six, OK), *d = come(&p, 0, 20, &one, OK);
  assert_null(d->outputs[0]); /* it is waited for again */
  come(&p, 1, 21, &two, OK);
  assert_true(mean_of(c) == 3 && mean_of(d) == 3);
  close_place(&p);
}

static void who_had_finished_before_the_first_step_is_no_member(void **state) {
  (void)state;
  struct place p;
  static const uint32_t seats[] = {0, 1, 2}, holders[] = {0};
  struct resource *resource;
  bool is_new;
  open_place(&p, true);
  hall_finish(p.hall, 2);
  struct meeting_spec spec = {p.hall, seats, holders, DRIVERS, 1, false, false};
  assert_int_equal(container_get(p.container, "", "later", &meeting_maker, &spec, &is_new, &resource), OK);
  p.meeting = (struct meeting *)resource;
  struct host_call *a = come(&p, 0, 10, &one, OK), *b = come(&p, 1, 11, &two, OK);
  assert_true(mean_of(a) == 1.5f && mean_of(b) == 1.5f);
  close_place(&p);
}

static void what_one_brought_that_left_before_it_gave_is_not_in_the_mean(void **state) {
  (void)state;
  struct place p;
  open_place(&p, true);
  struct host_call *c = bring(&p, 2, 12, &nine, OK); /* the sum is made ahead, with it */
  struct host_call *a = come(&p, 0, 10, &one, OK), *b = come(&p, 1, 11, &two, OK);
  p.missing_ms[2] = 1;
  hall_tick(p.hall);
  assert_true(mean_of(a) == 1.5f && mean_of(b) == 1.5f);
  assert_int_equal(c->code, ABORTED);
  close_place(&p);
}

static void who_was_left_out_is_admitted_again_first(void **state) {
  (void)state;
  struct place p;
  open_place(&p, true);
  hall_require_admission(p.hall, DRIVERS);
  struct meeting_spec spec = {p.hall, (const uint32_t[]){0, 1, 2}, (const uint32_t[]){0}, DRIVERS, 1, false, false};
  struct resource *resource;
  bool is_new;
  assert_int_equal(container_get(p.container, "", "admitted", &meeting_maker, &spec, &is_new, &resource), OK);
  p.meeting = (struct meeting *)resource;
  for (uint32_t i = 0; i < DRIVERS; i++)
    hall_admit(p.hall, i);
  struct host_call *a = come(&p, 0, 10, &one, OK), *b = come(&p, 1, 11, &two, OK);
  hall_tick(p.hall);
  p.missing_ms[2] = 1;
  hall_tick(p.hall);
  assert_true(mean_of(a) == 1.5f && mean_of(b) == 1.5f);
  assert_true(hall_is_behind(p.hall, 2) && !hall_is_behind(p.hall, 1));
  p.missing_ms[2] = 0;
  come(&p, 2, 12, &six, ABORTED); /* it lacks that round, though its task was never lost */
  hall_join(p.hall, 2);
  assert_non_null(come(&p, 2, 13, &six, OK));
  close_place(&p);
}

static void what_is_undone_was_not_taken(void **state) {
  (void)state;
  struct place p;
  open_place(&p, true);
  come(&p, 0, 10, &one, OK);
  come(&p, 1, 11, &two, OK);
  come(&p, 2, 12, &six, OK);
  assert_true(hall_last_serial(p.hall, 1) == 11 && hall_last_serial(p.hall, 2) == 12);
  hall_undo(p.hall);
  assert_true(hall_last_serial(p.hall, 1) == 0 && hall_last_serial(p.hall, 2) == 0);
  come(&p, 0, 20, &one, OK);
  come(&p, 1, 21, &two, OK);
  come(&p, 2, 22, &six, OK);
  assert_true(hall_last_serial(p.hall, 2) == 22);
  close_place(&p);
}

static void only_those_that_were_admitted_enter(void **state) {
  (void)state;
  struct place p;
  open_place(&p, false);
  hall_require_admission(p.hall, DRIVERS);
  come(&p, 1, 10, &one, ABORTED);
  hall_admit(p.hall, 1);
  assert_non_null(come(&p, 1, 11, &one, OK));
  hall_lose(p.hall, 1);
  come(&p, 1, 12, &one, ABORTED);
  close_place(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_get_the_mean_of_what_was_taken),
    cmocka_unit_test(what_a_lost_step_brought_is_not_in_the_mean),
    cmocka_unit_test(who_is_missing_too_long_ends_the_round),
    cmocka_unit_test(who_has_finished_ends_the_round_in_words),
    cmocka_unit_test(an_elastic_round_is_the_mean_of_those_that_are_there),
    cmocka_unit_test(who_had_finished_before_the_first_step_is_no_member),
    cmocka_unit_test(what_one_brought_that_left_before_it_gave_is_not_in_the_mean),
    cmocka_unit_test(who_was_left_out_is_admitted_again_first),
    cmocka_unit_test(what_is_undone_was_not_taken),
    cmocka_unit_test(only_those_that_were_admitted_enter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
