/* test_background.c: elements made beside their reader, from a dataset whose elements fail, wait and take their time. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/data/background.h"
#include "runtime/data/parallel_calls.h"
#include "runtime/data/read_ahead.h"
#include "runtime/step/task_state.h"
#include "tests/support/program_builder.h"
#include "tests/support/test.h"

/* ---- a dataset of numbers ---- */

struct numbers {
  int64_t count;       /* elements */
  int64_t fails_every; /* 0: none fails */
  atomic_bool waits;   /* elements come only when this is false; who asks is given up before */
  atomic_int asked;
};
static struct numbers numbers;
struct numbers_state {
  int64_t at;
};

static void pause_ms(int ms) { nanosleep(&(struct timespec){0, ms * 1000000L}, NULL); }

static status number(int64_t value, struct tensor **out) {
  TRY(tensor_create(DTYPE_INT64, &(struct shape){0}, out));
  *(int64_t *)(*out)->data = value;
  return OK;
}

static status wait_while(const atomic_bool *waits, const struct dataset_run *run) {
  while (atomic_load(waits)) {
    if (atomic_load(&run->call->step->cancelled))
      return fail(CANCELLED, "given up");
    pause_ms(1);
  }
  return OK;
}

static status numbers_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct numbers_state *s = c->state;
  atomic_fetch_add(&numbers.asked, 1);
  *end = s->at == numbers.count;
  if (*end)
    return OK;
  TRY(wait_while(&numbers.waits, run));
  int64_t at = s->at++;
  if (numbers.fails_every && at % numbers.fails_every == 2)
    return fail(DATA_LOSS, "number %lld", (long long)at);
  return number(at, out);
}

static const struct dataset_kind numbers_kind = {.op = "Numbers", .state_size = sizeof(struct numbers_state), .next = numbers_next};

/* ---- a task with one instruction, on whose behalf elements are asked for ---- */

struct place {
  struct program_builder builder;
  struct task *task;
  struct step step;
  struct host_call call;
  struct dataset_run run;
  struct dataset dataset;
  struct cursor *cursor;
};

static void place_begin(struct place *p, int64_t count, int64_t fails_every) {
  static const struct kernel_code none[1];
  pb_begin(&p->builder);
  pb_instr(&p->builder, INSTR_NOOP, 0);
  pb_entry(&p->builder, "main", 0, 0, 0, 1, false);
  assert_int_equal(task_create(pb_finish(&p->builder), none, 3, &p->task), OK);
  p->step = (struct step){.task = p->task, .is_background = true};
  p->call = (struct host_call){
    .task = p->task, .program = task_program(p->task), .instr = program_instr(task_program(p->task), 0), .step = &p->step};
  p->run = (struct dataset_run){&p->call};
  p->dataset = (struct dataset){.kind = &numbers_kind, .words = p->call, .component_count = 1};
  dataset_init(&p->dataset);
  numbers.count = count;
  numbers.fails_every = fails_every;
  atomic_store(&numbers.waits, false);
  atomic_store(&numbers.asked, 0);
  assert_int_equal(cursor_create(&p->dataset, &p->cursor), OK);
}

static void place_end(struct place *p) {
  cursor_destroy(p->cursor);
  task_close(p->task);
  task_destroy(p->task);
  pb_end(&p->builder);
}

/* What a reader got: the number, or its place with `failed`. */
static void expect_number(status result, const struct tensor *element, int64_t at, int64_t factor) {
  if (numbers.fails_every && at % numbers.fails_every == 2) {
    char text[32];
    snprintf(text, sizeof text, "number %lld", (long long)at);
    assert_int_equal(result, DATA_LOSS);
    assert_string_equal(status_text(), text);
    return;
  }
  assert_int_equal(result, OK);
  assert_int_equal(*(const int64_t *)element->data, at * factor);
}

/* ---- reading ahead ---- */

static void read_all(int64_t size, int64_t fails_every) {
  struct place p;
  struct read_ahead *ahead;
  place_begin(&p, 100, fails_every);
  assert_int_equal(read_ahead_create(p.cursor, size, &p.run, &ahead), OK);
  bool end = false;
  for (int64_t at = 0; at < 100; at++) {
    struct tensor *element = NULL;
    status result = read_ahead_next(ahead, &p.run, &element, &end);
    assert_false(end);
    expect_number(result, element, at, 1);
    tensor_release(element);
  }
  for (int turn = 0; turn < 2; turn++) {
    struct tensor *element;
    assert_int_equal(read_ahead_next(ahead, &p.run, &element, &end), OK);
    assert_true(end);
  }
  read_ahead_destroy(ahead);
  place_end(&p);
}

static void elements_come_in_order_and_each_error_once(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 7, 100, 5000, READ_AHEAD_AUTO};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    read_all(sizes[i], 0);
    read_all(sizes[i], 5);
  }
}

static void no_more_is_read_than_fits(void **state) {
  (void)state;
  struct place p;
  struct read_ahead *ahead;
  place_begin(&p, 1000, 0);
  assert_int_equal(read_ahead_create(p.cursor, 3, &p.run, &ahead), OK);
  for (int64_t at = 0; at < 10; at++) {
    struct tensor *element;
    bool end;
    assert_int_equal(read_ahead_next(ahead, &p.run, &element, &end), OK);
    tensor_release(element);
    pause_ms(2);
    assert_true(atomic_load(&numbers.asked) <= at + 1 + 3);
  }
  read_ahead_destroy(ahead);
  place_end(&p);
}

/* Reading ahead of a source that waits. */
static void wait_begin(struct place *p, struct read_ahead **ahead) {
  place_begin(p, 10, 0);
  atomic_store(&numbers.waits, true);
  assert_int_equal(read_ahead_create(p->cursor, 2, &p->run, ahead), OK);
}

static void a_source_that_waits_ends_with_its_iterator(void **state) {
  (void)state;
  struct place p;
  struct read_ahead *ahead;
  wait_begin(&p, &ahead);
  while (atomic_load(&numbers.asked) == 0)
    pause_ms(1);
  read_ahead_destroy(ahead);
  place_end(&p);
}

static void *give_up(void *self) {
  struct place *p = self;
  pause_ms(20);
  step_fail(&p->step, CANCELLED, "the client has gone");
  return NULL;
}

static void *stop(void *self) {
  struct place *p = self;
  pause_ms(20);
  task_stop(p->task);
  return NULL;
}

/* A reader waits until `ends` is done elsewhere. */
static void wait_ends_by(void *(*ends)(void *), struct place *p, struct read_ahead *ahead) {
  struct tensor *element;
  pthread_t other;
  bool end;
  pthread_create(&other, NULL, ends, p);
  assert_int_equal(read_ahead_next(ahead, &p->run, &element, &end), CANCELLED);
  pthread_join(other, NULL);
}

static void a_reader_that_is_given_up_loses_nothing(void **state) {
  (void)state;
  struct place p;
  struct read_ahead *ahead;
  wait_begin(&p, &ahead);
  wait_ends_by(give_up, &p, ahead);
  atomic_store(&numbers.waits, false);
  p.step = (struct step){.task = p.task, .is_background = true};
  for (int64_t at = 0; at < 10; at++) {
    struct tensor *element;
    bool end;
    status result = read_ahead_next(ahead, &p.run, &element, &end);
    expect_number(result, element, at, 1);
    tensor_release(element);
  }
  read_ahead_destroy(ahead);
  place_end(&p);
}

static void a_task_that_stops_ends_who_waits(void **state) {
  (void)state;
  struct place p;
  struct read_ahead *ahead;
  struct tensor *element;
  bool end;
  wait_begin(&p, &ahead);
  wait_ends_by(stop, &p, ahead);
  task_close(p.task);
  assert_int_equal(read_ahead_next(ahead, &p.run, &element, &end), CANCELLED);
  read_ahead_destroy(ahead);
  place_end(&p);
}

static void iterators_end_at_any_moment(void **state) {
  (void)state;
  struct place p;
  place_begin(&p, INT64_MAX, 7);
  for (int i = 0; i < 3000; i++) {
    struct read_ahead *ahead;
    assert_int_equal(read_ahead_create(p.cursor, 1 + i % 9, &p.run, &ahead), OK);
    for (int k = 0; k < i % 5; k++) {
      struct tensor *element = NULL;
      bool end;
      if (read_ahead_next(ahead, &p.run, &element, &end) == OK)
        tensor_release(element);
    }
    read_ahead_destroy(ahead);
  }
  place_end(&p);
}

/* ---- calls ---- */

static atomic_int calling, most_calling;
static atomic_bool calls_wait;
static atomic_int calls_to_meet; /* calls go on when so many are under way; 0: at once */

static void note_call(void) {
  int now = atomic_fetch_add(&calling, 1) + 1, most = atomic_load(&most_calling);
  while (now > most && !atomic_compare_exchange_weak(&most_calling, &most, now))
    ;
}

/* Ten times the number, now and then after a while. */
static status ten_times(const struct dataset *owner, const struct dataset_run *run, struct tensor *const *element, struct tensor **out,
                        bool *skip) {
  (void)owner;
  int64_t value = *(const int64_t *)element[0]->data;
  note_call();
  while (atomic_load(&calls_to_meet) > atomic_load(&most_calling) && !atomic_load(&run->call->step->cancelled))
    pause_ms(1);
  status result = wait_while(&calls_wait, run);
  if (value % 3 == 0)
    nanosleep(&(struct timespec){0, 200000}, NULL);
  *skip = false;
  if (result == OK)
    result = number(value * 10, out);
  atomic_fetch_sub(&calling, 1);
  return result;
}

static void calls_begin(struct place *p, int64_t count, int64_t fails_every) {
  place_begin(p, count, fails_every);
  atomic_store(&calling, 0);
  atomic_store(&most_calling, 0);
  atomic_store(&calls_wait, false);
  atomic_store(&calls_to_meet, 0);
}

static void results_come_in_order(void **state) {
  (void)state;
  static const int64_t at_once[] = {1, 2, 5, 64, 1000, -1};
  for (size_t i = 0; i < 2 * sizeof at_once / sizeof *at_once; i++) {
    struct place p;
    struct parallel_calls *calls;
    bool end = false;
    calls_begin(&p, 200, i % 2 ? 5 : 0);
    assert_int_equal(parallel_calls_create(p.cursor, &p.dataset, at_once[i / 2], ten_times, &p.run, &calls), OK);
    for (int64_t at = 0; at < 200; at++) {
      struct tensor *element = NULL;
      status result = parallel_calls_next(calls, &p.run, &element, &end);
      assert_false(end);
      expect_number(result, element, at, 10);
      tensor_release(element);
    }
    struct tensor *element;
    assert_int_equal(parallel_calls_next(calls, &p.run, &element, &end), OK);
    assert_true(end);
    int most = at_once[i / 2] < 0 ? 3 : at_once[i / 2] < PARALLEL_CALLS_MAX ? (int)at_once[i / 2] : PARALLEL_CALLS_MAX;
    assert_true(atomic_load(&most_calling) <= most);
    parallel_calls_destroy(calls);
    place_end(&p);
  }
}

static void as_many_calls_run_as_are_asked_for(void **state) {
  (void)state;
  struct place p;
  struct parallel_calls *calls;
  struct tensor *element;
  bool end;
  calls_begin(&p, 10, 0);
  atomic_store(&calls_to_meet, 6);
  assert_int_equal(parallel_calls_create(p.cursor, &p.dataset, 6, ten_times, &p.run, &calls), OK);
  assert_int_equal(parallel_calls_next(calls, &p.run, &element, &end), OK);
  assert_int_equal(atomic_load(&most_calling), 6);
  tensor_release(element);
  parallel_calls_destroy(calls);
  place_end(&p);
}

static void calls_that_wait_end_with_their_iterator(void **state) {
  (void)state;
  struct place p;
  struct parallel_calls *calls;
  struct tensor *element;
  pthread_t other;
  bool end;
  calls_begin(&p, 10, 0);
  atomic_store(&calls_wait, true);
  assert_int_equal(parallel_calls_create(p.cursor, &p.dataset, 3, ten_times, &p.run, &calls), OK);
  pthread_create(&other, NULL, give_up, &p);
  assert_int_equal(parallel_calls_next(calls, &p.run, &element, &end), CANCELLED);
  pthread_join(other, NULL);
  assert_true(atomic_load(&calling) > 0);
  parallel_calls_destroy(calls);
  assert_int_equal(atomic_load(&calling), 0);
  place_end(&p);
}

static void calls_end_at_any_moment(void **state) {
  (void)state;
  struct place p;
  calls_begin(&p, INT64_MAX, 7);
  for (int i = 0; i < 2000; i++) {
    struct parallel_calls *calls;
    assert_int_equal(parallel_calls_create(p.cursor, &p.dataset, 1 + i % 9, ten_times, &p.run, &calls), OK);
    for (int k = 0; k < i % 5; k++) {
      struct tensor *element = NULL;
      bool end;
      if (parallel_calls_next(calls, &p.run, &element, &end) == OK)
        tensor_release(element);
    }
    parallel_calls_destroy(calls);
  }
  place_end(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(elements_come_in_order_and_each_error_once),
    cmocka_unit_test(no_more_is_read_than_fits),
    cmocka_unit_test(a_source_that_waits_ends_with_its_iterator),
    cmocka_unit_test(a_reader_that_is_given_up_loses_nothing),
    cmocka_unit_test(a_task_that_stops_ends_who_waits),
    cmocka_unit_test(iterators_end_at_any_moment),
    cmocka_unit_test(results_come_in_order),
    cmocka_unit_test(as_many_calls_run_as_are_asked_for),
    cmocka_unit_test(calls_that_wait_end_with_their_iterator),
    cmocka_unit_test(calls_end_at_any_moment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
