/* test_step.c: hand-made programs, run as a task runs them. The kernels are C functions. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/program/program_check.h"
#include "runtime/memory/variable.h"
#include "runtime/step/commit.h"
#include "runtime/step/pool.h"
#include "runtime/step/task_state.h"
#include "tests/support/cores.h"
#include "tests/support/program_builder.h"
#include "tests/support/test.h"

/* ---- kernels ---- */

static int64_t one_tile(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what >= 0 || what == KERNEL_PHASES ? 1 : 0;
}
/* out[i] = in[i] * 2 */
static void run_double(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)phase, (void)begin, (void)end;
  for (int64_t i = 0; i < call->sizes[0]; i++)
    ((float *)call->buffers[1])[i] = ((const float *)call->buffers[0])[i] * 2;
}
/* variable += 1, slowly enough for others to come between */
static void run_count(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)phase, (void)begin, (void)end;
  volatile float *count = call->buffers[0];
  float seen = *count;
  for (volatile int i = 0; i < 100; i++)
    ;
  *count = seen + 1;
}
/* out = in < 10 */
static void run_below_ten(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)phase, (void)begin, (void)end;
  *(bool *)call->buffers[1] = *(const float *)call->buffers[0] < 10;
}
static void run_fault(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)phase, (void)begin, (void)end;
  *call->fault = (struct kernel_fault){.code = INVALID_ARGUMENT, .text = "indices[%d] = %d is not in range", .shown = {1, 7}};
}
enum { DOUBLE, COUNT, BELOW_TEN, FAULT, KERNELS };
static const struct kernel_code kernels[] = {{run_double, one_tile},
                                             {run_count, one_tile},
                                             {run_below_ten, one_tile},
                                             {run_fault, one_tile}};

/* ---- running ---- */

static struct task *load_for(struct program_builder *b, int threads) {
  struct task *task = NULL;
  b->kernel_count = KERNELS;
  const struct program *program = pb_finish(b);
  status checked = program_check(program);
  if (checked != OK)
    test_fail("program_check: %s", status_text());
  assert_int_equal(task_create(program, kernels, threads, &task), OK);
  return task;
}
static struct task *load(struct program_builder *b) { return load_for(b, 1); }

static struct tensor *floats(int rank, int64_t count, const float *values) {
  struct tensor *tensor = NULL;
  assert_int_equal(tensor_copy_in(DTYPE_FLOAT, &(struct shape){rank, {count}}, values, &tensor), OK);
  return tensor;
}

static void unload(struct program_builder *b, struct task *task) {
  task_close(task);
  task_destroy(task);
  pb_end(b);
}

/* ---- tests ---- */

/* feed x: [n] -> double -> double -> fetch */
static struct task *load_doubling(struct program_builder *b, bool dataflow, int threads) {
  pb_begin(b);
  pb_port(b, "x", DTYPE_FLOAT, 1, -1);
  pb_port(b, "y", DTYPE_FLOAT, 1, -1);
  uint32_t x = pb_slot(b, DTYPE_FLOAT, 1, -1, STORAGE_TENSOR), middle = pb_slot(b, DTYPE_FLOAT, 1, -1, STORAGE_ARENA);
  uint32_t y = pb_slot(b, DTYPE_FLOAT, 1, -1, STORAGE_TENSOR);
  struct program_range outputs = PB_LIST(b, x);
  pb_instr(b, INSTR_FEED, 0)->outputs = outputs;
  pb_kernel(b, DOUBLE, PB_LIST(b, x, middle), -1);
  outputs = PB_LIST(b, y);
  struct program_instr *last = pb_kernel(b, DOUBLE, PB_LIST(b, middle, y), -1);
  last->outputs = outputs;
  last->flags = INSTR_MAKES;
  struct program_range args = PB_LIST(b, y);
  pb_instr(b, INSTR_FETCH, 0)->args = args;
  for (uint32_t i = 0; dataflow && i < 4; i++) {
    uint32_t next = i + 1;
    struct program_range successors = pb_list(b, i < 3, &next);
    b->instrs.items[i].successors = successors;
    b->instrs.items[i].need_count = i > 0;
  }
  pb_entry(b, "main", 1, 1, 1, 4, dataflow);
  return load_for(b, threads);
}

static void run_doubling(bool dataflow) {
  struct program_builder b;
  struct task *task = load_doubling(&b, dataflow, 1);
  static const float values[] = {1, 2, 3, -4};
  for (int turn = 0; turn < 3; turn++)
    for (int64_t count = 0; count <= 4; count++) {
      struct tensor *x = floats(1, count, values), *y;
      assert_int_equal(task_run(task, 0, &x, &y, NULL), OK);
      assert_int_equal(y->shape.dims[0], count);
      for (int64_t i = 0; i < count; i++)
        assert_true(((float *)y->data)[i] == values[i] * 4);
      assert_int_equal(x->references, 1);
      tensor_release(x);
      tensor_release(y);
    }
  unload(&b, task);
}
static void a_step_serves_every_size(void **state) {
  (void)state;
  run_doubling(false);
}
static void a_dataflow_step_gives_the_same(void **state) {
  (void)state;
  run_doubling(true);
}

static void double_one(struct task *task) {
  static const float one = 1;
  struct tensor *x = floats(1, 1, &one), *y;
  assert_int_equal(task_run(task, 0, &x, &y, NULL), OK);
  assert_true(*(const float *)y->data == 4);
  tensor_release(x);
  tensor_release(y);
}
/* What lines that threads share cost is a guess while no second core is at work; plans made with it are made again. */
static void a_plan_that_was_a_guess_is_made_again(void **state) {
  (void)state;
  cpu_set_t all;
  use_one_core(&all);
  struct program_builder b;
  struct task *task = load_doubling(&b, false, 2);
  for (int step = 0; step < 40; step++)
    double_one(task);
  assert_true(task->parts[0].idle->plans->is_guess);
  use_cores(&all);
  int64_t ns;
  bool is_known = false;
  for (int i = 0; i < 1000 && !is_known; i++)
    is_known = pool_shared_line(task->pool, &ns);
  for (int step = 0; step < 40; step++) /* asked for in the 64th step */
    double_one(task);
  bool is_guess = task->parts[0].idle->plans->is_guess;
  assert_int_equal(task->parts[0].idle->plan_count, 1);
  unload(&b, task);
  if (!is_known)
    skip(); /* others have the cores */
  assert_false(is_guess);
}

static void a_fetch_outlives_later_steps(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load_doubling(&b, false, 1);
  static const float first[] = {1}, second[] = {5};
  struct tensor *x = floats(1, 1, first), *z = floats(1, 1, second), *y, *later;
  assert_int_equal(task_run(task, 0, &x, &y, NULL), OK);
  assert_int_equal(task_run(task, 0, &z, &later, NULL), OK);
  assert_true(*(float *)y->data == 4 && *(float *)later->data == 20);
  tensor_release(x);
  tensor_release(z);
  tensor_release(y);
  tensor_release(later);
  unload(&b, task);
}

static void feeds_that_do_not_fit_are_named(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load_doubling(&b, false, 1);
  struct tensor *y = NULL, *missing = NULL, *integers, *scalar = floats(0, 0, (float[]){1});
  assert_int_equal(tensor_copy_in(DTYPE_INT32, &(struct shape){1, {1}}, &(int32_t){1}, &integers), OK);
  const struct {
    struct tensor *feed;
    const char *text;
  } cases[] = {{missing, "feed 'x' is missing, float[?]"},
               {integers, "feed 'x' is int32, must be float"},
               {scalar, "feed 'x' has shape [], must be [?]"}};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(task_run(task, 0, &cases[i].feed, &y, NULL), INVALID_ARGUMENT);
    assert_string_equal(status_text(), cases[i].text);
    assert_null(y);
  }
  tensor_release(integers);
  tensor_release(scalar);
  unload(&b, task);
}

static void a_failed_check_names_node_op_task_and_values(void **state) {
  (void)state;
  struct program_builder b;
  pb_begin(&b);
  struct program_range none = {0, 0};
  pb_kernel(&b, FAULT, none, 1);
  pb_entry(&b, "main", 0, 0, 0, 1, false);
  struct task *task = load(&b);
  for (int turn = 0; turn < 2; turn++) {
    assert_int_equal(task_run(task, 0, NULL, NULL, NULL), INVALID_ARGUMENT);
    assert_string_equal(status_text(), "Op 'node': indices[1] = 7 is not in range (on /job:worker/task:0)");
  }
  unload(&b, task);
}

static void an_uninitialised_variable_is_named(void **state) {
  (void)state;
  struct program_builder b;
  pb_begin(&b);
  uint32_t w = pb_variable(&b, "w", DTYPE_FLOAT, false), slot = pb_slot(&b, DTYPE_FLOAT, 0, 0, STORAGE_VARIABLE);
  struct program_range outputs = PB_LIST(&b, slot);
  pb_instr(&b, INSTR_READ, w)->outputs = outputs;
  pb_entry(&b, "main", 0, 0, 0, 1, false);
  struct task *task = load(&b);
  assert_int_equal(task_run(task, 0, NULL, NULL, NULL), FAILED_PRECONDITION);
  assert_non_null(strstr(status_text(), "Attempting to use uninitialized value w"));
  unload(&b, task);
}

/* variable += 1 */
static struct task *load_counter(struct program_builder *b) {
  pb_begin(b);
  uint32_t count = pb_variable(b, "count", DTYPE_FLOAT, true), slot = pb_slot(b, DTYPE_FLOAT, 0, 0, STORAGE_VARIABLE);
  pb_port(b, "count", DTYPE_FLOAT, 0, 0);
  struct program_range shapes = PB_LIST(b, PROGRAM_VARIABLE_INOUT, 0);
  struct program_instr *update = pb_kernel(b, COUNT, PB_LIST(b, count | PROGRAM_ARG_VARIABLE), 1);
  update->flags = INSTR_LOCKS;
  update->shapes = shapes.first;
  struct program_range outputs = PB_LIST(b, slot);
  pb_instr(b, INSTR_READ, count)->outputs = outputs;
  pb_instr(b, INSTR_FETCH, 0)->args = outputs;
  pb_entry(b, "main", 0, 1, 0, 3, false);
  return load(b);
}

static void *count_often(void *task) {
  for (int i = 0; i < 500; i++) {
    struct tensor *count;
    if (task_run(task, 0, NULL, &count, NULL) != OK)
      return task;
    tensor_release(count);
  }
  return NULL;
}

static void steps_at_the_same_time_lose_no_update(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load_counter(&b);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, count_often, task);
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  struct tensor *count;
  assert_int_equal(task_run(task, 0, NULL, &count, NULL), OK);
  assert_true(*(float *)count->data == 4 * 500 + 1);
  tensor_release(count);
  unload(&b, task);
}

/* while (x < 10) x = x * 2 */
static struct task *load_loop(struct program_builder *b) {
  pb_begin(b);
  pb_port(b, "x", DTYPE_FLOAT, 0, 0);
  pb_port(b, "y", DTYPE_FLOAT, 0, 0);
  uint32_t x = pb_slot(b, DTYPE_FLOAT, 0, 0, STORAGE_TENSOR), y = pb_slot(b, DTYPE_FLOAT, 0, 0, STORAGE_TENSOR);
  uint32_t tested = pb_slot(b, DTYPE_FLOAT, 0, 0, STORAGE_TENSOR), more = pb_slot(b, DTYPE_BOOL, 0, 0, STORAGE_ARENA);
  uint32_t old = pb_slot(b, DTYPE_FLOAT, 0, 0, STORAGE_TENSOR), new = pb_slot(b, DTYPE_FLOAT, 0, 0, STORAGE_TENSOR);
  struct program_range list_x = PB_LIST(b, x), list_y = PB_LIST(b, y), list_new = PB_LIST(b, new);
  pb_instr(b, INSTR_FEED, 0)->outputs = list_x;
  struct program_instr *loop = pb_instr(b, INSTR_WHILE, 0);
  loop->args = list_x;
  loop->outputs = list_y;
  loop->blocks = (struct program_range){0, 2};
  pb_instr(b, INSTR_FETCH, 0)->args = list_y;
  pb_kernel(b, BELOW_TEN, PB_LIST(b, tested, more), 1);
  struct program_instr *body = pb_kernel(b, DOUBLE, PB_LIST(b, old, new), 1);
  body->outputs = list_new;
  body->flags = INSTR_MAKES;
  vec_push(&b->blocks, (struct program_block){{3, 1}, PB_LIST(b, tested), PB_LIST(b, more), {0, 0}});
  vec_push(&b->blocks, (struct program_block){{4, 1}, PB_LIST(b, old), list_new, {0, 0}});
  pb_entry(b, "main", 1, 1, 0, 3, false);
  return load(b);
}

static void a_loop_runs_until_its_condition_fails(void **state) {
  (void)state;
  static const struct { float x, y; } cases[] = {{1, 16}, {10, 10}, {100, 100}, {3, 12}, {0.001f, 16.384f}};
  struct program_builder b;
  struct task *task = load_loop(&b);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tensor *x = floats(0, 0, &cases[i].x), *y;
    assert_int_equal(task_run(task, 0, &x, &y, NULL), OK);
    assert_true(fabsf(*(float *)y->data - cases[i].y) < 1e-4f);
    tensor_release(x);
    tensor_release(y);
  }
  unload(&b, task);
}

/* ---- steps of another driver, who is this test: what it hears is counted ---- */

#define DRIVER 1
#define ID(number) ((uint64_t)DRIVER << 48 | (number))

static struct heard {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int reports;
  status code;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void hear_start(void *self, uint32_t task, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial) {
  (void)self, (void)task, (void)step, (void)entry, (void)command, (void)serial;
}
static void hear_tensor(void *self, uint32_t task, uint64_t step, uint32_t transfer, struct tensor *tensor) {
  (void)self, (void)task, (void)step, (void)transfer;
  tensor_release(tensor);
}
static void hear_done(void *self, uint32_t task, uint64_t step, status code, const char *text) {
  (void)self, (void)task, (void)step, (void)text;
  pthread_mutex_lock(&heard.lock);
  heard.reports++;
  heard.code = code;
  pthread_cond_broadcast(&heard.changed);
  pthread_mutex_unlock(&heard.lock);
}
static void hear_cancel(void *self, uint32_t task, uint64_t step) { (void)self, (void)task, (void)step; }
static const struct exchange listening = {.start = hear_start, .send = hear_tensor, .done = hear_done, .cancel = hear_cancel};

/* The code of the n-th report. */
static status await_report(int n) {
  pthread_mutex_lock(&heard.lock);
  while (heard.reports < n)
    pthread_cond_wait(&heard.changed, &heard.lock);
  status code = heard.code;
  pthread_mutex_unlock(&heard.lock);
  return code;
}

static void add_count(struct program_builder *b, uint32_t variable) {
  struct program_range shapes = PB_LIST(b, PROGRAM_VARIABLE_INOUT, 0);
  struct program_instr *update = pb_kernel(b, COUNT, PB_LIST(b, variable | PROGRAM_ARG_VARIABLE), 1);
  update->flags = INSTR_LOCKS | INSTR_CHANGES;
  update->shapes = shapes.first;
}

/* early += 1, if it is there; receives a value; late += 1 */
static struct task *load_guest(struct program_builder *b, bool has_early) {
  pb_begin(b);
  vec_push(&b->tasks, (struct program_task){.job = pb_text(b, "driver")});
  b->tasks.items[0].flags = PROGRAM_TASK_HOLDS;
  uint32_t late = pb_variable(b, "late", DTYPE_FLOAT, true), early = pb_variable(b, "early", DTYPE_FLOAT, true);
  uint32_t slot = pb_slot(b, DTYPE_FLOAT, 0, 0, STORAGE_TENSOR);
  if (has_early)
    add_count(b, early);
  struct program_range outputs = PB_LIST(b, slot);
  struct program_instr *receive = pb_instr(b, INSTR_RECV, 5);
  receive->outputs = outputs;
  receive->peer = PROGRAM_TASK_DRIVER;
  add_count(b, late);
  pb_entry(b, "main", 0, 0, 0, has_early ? 3 : 2, false);
  b->entries.items[0].changes_state = 1;
  struct task *task = load(b);
  task_set_exchange(task, &listening);
  heard.reports = 0;
  return task;
}

static float value_of(struct task *task, uint32_t variable) { return *(float *)task->variables[variable].value->data; }

static void give(const struct exchange_sink *sink, uint64_t id) { sink->on_tensor(sink->self, DRIVER, id, 5, floats(0, 0, (float[]){1})); }

static void a_step_whose_driver_is_lost_before_all_has_come_changes_nothing(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load_guest(&b, false);
  const struct exchange_sink sink = task_sink(task);
  sink.on_start(sink.self, DRIVER, ID(1), 0, 1, 1);
  sink.on_lost(sink.self, DRIVER, "it was killed");
  assert_int_equal(await_report(1), UNAVAILABLE);
  assert_true(value_of(task, 0) == 0);
  static const struct {
    uint64_t serial;
    status code;
    float count;
  } cases[] = {{1, OK, 1}, {1, OK, 1}, {2, OK, 2}, {4, INTERNAL, 2}, {1, OK, 2}, {3, OK, 3}};
  for (int i = 0; i < 6; i++) {
    uint64_t id = ID(10 + (uint64_t)i);
    sink.on_start(sink.self, DRIVER, id, 0, 1, cases[i].serial);
    give(&sink, id);
    assert_int_equal(await_report(i + 2), cases[i].code);
    assert_true(value_of(task, 0) == cases[i].count);
  }
  unload(&b, task);
}

static void what_comes_behind_a_change_is_waited_for_before_it_is_made(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load_guest(&b, true);
  const struct exchange_sink sink = task_sink(task);
  for (uint64_t turn = 1; turn <= 20; turn++) {
    sink.on_start(sink.self, DRIVER, ID(turn), 0, 1, 1);
    for (uint64_t i = 0; i < turn % 5; i++)
      sched_yield();
    sink.on_lost(sink.self, DRIVER, "it was killed");
    assert_int_equal(await_report((int)turn), UNAVAILABLE);
    assert_true(value_of(task, 1) == 0 && value_of(task, 0) == 0);
  }
  sink.on_start(sink.self, DRIVER, ID(21), 0, 1, 1);
  give(&sink, ID(21));
  assert_int_equal(await_report(21), OK);
  assert_true(value_of(task, 1) == 1 && value_of(task, 0) == 1);
  unload(&b, task);
}

/* A driver that is lost, and comes again, at any moment of any step. */
static void whenever_a_driver_is_lost_each_of_its_steps_counts_once(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 60; seed++) {
    struct program_builder b;
    unsigned random = seed;
    struct task *task = load_guest(&b, seed % 2);
    const struct exchange_sink sink = task_sink(task);
    int reports = 0;
    uint64_t id = 0;
    for (uint64_t next = 1; next <= 8;) {
      struct ledger ledger = {0};
      bool is_lost = rand_r(&random) % 2, gives = rand_r(&random) % 2, is_serving;
      uint64_t history;
      sink.on_start(sink.self, DRIVER, ID(++id), 0, 1, next);
      if (gives || !is_lost)
        give(&sink, ID(id));
      for (unsigned turn = rand_r(&random) % 4; turn > 0; turn--)
        sched_yield();
      if (is_lost)
        sink.on_lost(sink.self, DRIVER, "it was killed");
      if (!is_lost || rand_r(&random) % 2)
        await_report(++reports);
      else
        reports++; /* its successor does not wait for that */
      assert_int_equal(commit_ask(task, DRIVER, 0, &ledger, &history, &is_serving), OK);
      struct ledger_row row = ledger_find(&ledger, DRIVER, 0) ? *ledger_find(&ledger, DRIVER, 0) : (struct ledger_row){0};
      next = ledger_next(&row, 1).count;
      ledger_deinit(&ledger);
    }
    await_report(reports);
    assert_true(value_of(task, 0) == 8);
    assert_true(value_of(task, 1) == (seed % 2 ? 8 : 0));
    unload(&b, task);
  }
}

/* ---- a step of this driver, whose others are this test: each of two hears to begin, and that it is given up ---- */

#define FIRST 1
#define SECOND 2
#define PATIENCE_S 10

static struct others {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct exchange_sink sink;
  uint64_t step;
  bool has_begun, is_given_up, was_given_up_early;
} others = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *report_first(void *self) {
  others.sink.on_done(others.sink.self, FIRST, others.step, ABORTED, "it goes back");
  return self;
}

static void others_start(void *self, uint32_t task, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial) {
  (void)self, (void)entry, (void)command, (void)serial;
  pthread_t thread;
  if (task == FIRST) {
    others.step = step;
    pthread_create(&thread, NULL, report_first, NULL);
    pthread_join(thread, NULL);
    return;
  }
  pthread_mutex_lock(&others.lock);
  others.has_begun = true;
  pthread_cond_broadcast(&others.changed);
  pthread_mutex_unlock(&others.lock);
}

static void others_cancel(void *self, uint32_t task, uint64_t step) {
  (void)self, (void)step;
  pthread_mutex_lock(&others.lock);
  others.is_given_up = others.is_given_up || (task == SECOND && others.has_begun);
  others.was_given_up_early = others.was_given_up_early || (task == SECOND && !others.has_begun);
  pthread_cond_broadcast(&others.changed);
  pthread_mutex_unlock(&others.lock);
}

/* SECOND waits for a value that a driver which has given the step up does not send. */
static void *second_main(void *self) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += PATIENCE_S;
  pthread_mutex_lock(&others.lock);
  while (!others.is_given_up && pthread_cond_timedwait(&others.changed, &others.lock, &until) == 0)
    ;
  pthread_mutex_unlock(&others.lock);
  others.sink.on_done(others.sink.self, SECOND, others.step, CANCELLED, "the driver gave the step up");
  return self;
}

static const struct exchange telling = {.start = others_start, .send = hear_tensor, .done = hear_done, .cancel = others_cancel};

/* receives a value of SECOND */
static struct task *load_driver(struct program_builder *b) {
  pb_begin(b);
  vec_push(&b->tasks, (struct program_task){.job = pb_text(b, "first")});
  vec_push(&b->tasks, (struct program_task){.job = pb_text(b, "second")});
  struct program_range outputs = PB_LIST(b, pb_slot(b, DTYPE_FLOAT, 0, 0, STORAGE_TENSOR)), tasks = PB_LIST(b, 0, FIRST, SECOND);
  struct program_instr *receive = pb_instr(b, INSTR_RECV, 5);
  receive->outputs = outputs;
  receive->peer = SECOND;
  pb_entry(b, "main", 0, 0, 0, 1, false);
  b->entries.items[0].tasks = tasks;
  struct task *task = load(b);
  task_set_exchange(task, &telling);
  return task;
}

static void who_hears_of_a_step_when_another_has_failed_it_hears_then_that_it_is_given_up(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load_driver(&b);
  pthread_t second;
  others.sink = task_sink(task);
  pthread_create(&second, NULL, second_main, NULL);
  assert_int_equal(task_run(task, 0, NULL, NULL, NULL), ABORTED);
  pthread_join(second, NULL);
  assert_true(others.has_begun && others.is_given_up && !others.was_given_up_early);
  unload(&b, task);
}

static void *stop_soon(void *task) {
  struct timespec pause = {.tv_nsec = 20000000};
  nanosleep(&pause, NULL);
  task_stop(task);
  return NULL;
}

static void stopping_ends_an_endless_loop(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load_loop(&b);
  pthread_t thread;
  struct tensor *x = floats(0, 0, (float[]){0}), *y; /* 0 * 2 stays below 10 */
  pthread_create(&thread, NULL, stop_soon, task);
  assert_int_equal(task_run(task, 0, &x, &y, NULL), CANCELLED);
  pthread_join(thread, NULL);
  tensor_release(x);
  unload(&b, task);
}

static void damaged_programs_are_refused(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load_loop(&b);
  uint64_t size = b.program->size;
  char *copy = aligned_alloc(64, size);
  uint32_t seed = 7;
  for (int turn = 0; turn < 20000; turn++) {
    memcpy(copy, b.program, size);
    seed = seed * 1664525u + 1013904223u;
    uint64_t at = seed % size;
    seed = seed * 1664525u + 1013904223u;
    copy[at] = (char)(seed >> 24);
    status result = program_check((const struct program *)copy); /* whatever it says, it reads nothing outside */
    assert_true(result == OK || result == DATA_LOSS);
  }
  free(copy);
  unload(&b, task);
}

/* The lists of a kernel's variables have so many places. */
static void a_kernel_on_too_many_variables_is_refused(void **state) {
  (void)state;
  for (int count = PROGRAM_KERNEL_VARIABLES; count <= PROGRAM_KERNEL_VARIABLES + 1; count++) {
    struct program_builder b;
    uint32_t args[PROGRAM_KERNEL_VARIABLES + 1];
    pb_begin(&b);
    uint32_t variable = pb_variable(&b, "count", DTYPE_FLOAT, true);
    for (int i = 0; i < count; i++)
      args[i] = variable | PROGRAM_ARG_VARIABLE;
    pb_kernel(&b, COUNT, pb_list(&b, count, args), 1);
    pb_entry(&b, "main", 0, 0, 0, 1, false);
    b.kernel_count = KERNELS;
    assert_int_equal(program_check(pb_finish(&b)), count > PROGRAM_KERNEL_VARIABLES ? DATA_LOSS : OK);
    pb_end(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_step_serves_every_size),
    cmocka_unit_test(a_dataflow_step_gives_the_same),
    cmocka_unit_test(a_plan_that_was_a_guess_is_made_again),
    cmocka_unit_test(a_fetch_outlives_later_steps),
    cmocka_unit_test(feeds_that_do_not_fit_are_named),
    cmocka_unit_test(a_failed_check_names_node_op_task_and_values),
    cmocka_unit_test(an_uninitialised_variable_is_named),
    cmocka_unit_test(steps_at_the_same_time_lose_no_update),
    cmocka_unit_test(a_loop_runs_until_its_condition_fails),
    cmocka_unit_test(a_step_whose_driver_is_lost_before_all_has_come_changes_nothing),
    cmocka_unit_test(what_comes_behind_a_change_is_waited_for_before_it_is_made),
    cmocka_unit_test(whenever_a_driver_is_lost_each_of_its_steps_counts_once),
    cmocka_unit_test(who_hears_of_a_step_when_another_has_failed_it_hears_then_that_it_is_given_up),
    cmocka_unit_test(stopping_ends_an_endless_loop),
    cmocka_unit_test(damaged_programs_are_refused),
    cmocka_unit_test(a_kernel_on_too_many_variables_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
