/* test_pool.c: every tile of every phase runs exactly once, whoever runs it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "runtime/step/pool.h"
#include "runtime/step/shared_line.h"
#include "tests/support/cores.h"
#include "tests/support/test.h"

#define TILES_MAX 5000

static _Atomic int seen[3][TILES_MAX];
static _Atomic int64_t running_phase, out_of_phase;

/* sizes: tiles of each phase, phases */
static int64_t count_query(const int64_t *sizes, int64_t what) { return what >= 0 ? sizes[what] : what == KERNEL_PHASES ? sizes[3] : 0; }
static void count_run(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)call;
  if (phase < atomic_load(&running_phase))
    atomic_fetch_add(&out_of_phase, 1);
  atomic_store(&running_phase, phase);
  for (int64_t i = begin; i < end; i++)
    atomic_fetch_add(&seen[phase][i], 1);
}
static const struct kernel_code count_code = {count_run, count_query};

static void check_all(struct pool *pool, const int64_t *sizes) {
  struct kernel_fault fault = {0};
  struct kernel_call call = {NULL, sizes, NULL, &fault};
  memset(seen, 0, sizeof seen);
  atomic_store(&running_phase, 0);
  atomic_store(&out_of_phase, 0);
  pool_run(pool, &(struct pool_kernel){&count_code, call, sizes[3]}, 1, true);
  for (int phase = 0; phase < 3; phase++)
    for (int i = 0; i < TILES_MAX; i++)
      assert_int_equal(seen[phase][i], phase < sizes[3] && i < sizes[phase]);
  assert_int_equal(out_of_phase, 0);
}

static void every_tile_runs_once(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{1, 0, 0, 1}, {2, 0, 0, 1}, {5000, 0, 0, 1}, {0, 0, 0, 1}, {7, 3000, 1, 3}, {100, 1, 5000, 3}};
  for (int threads = 1; threads <= 5; threads++) {
    struct pool *pool;
    assert_int_equal(pool_create(threads, &pool), OK);
    assert_int_equal(pool_threads(pool), threads);
    for (int turn = 0; turn < 50; turn++)
      for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_all(pool, shapes[i]);
    pool_destroy(pool);
  }
}

static _Atomic int64_t sum;
static void sum_run(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)call, (void)phase;
  atomic_fetch_add(&sum, end - begin);
}
static const struct kernel_code sum_code = {sum_run, count_query};

static void *run_often(void *pool) {
  static const int64_t sizes[] = {64, 0, 0, 1};
  struct kernel_call call = {NULL, sizes, NULL, NULL};
  for (int i = 0; i < 2000; i++)
    pool_run(pool, &(struct pool_kernel){&sum_code, call, 1}, 1, i % 2);
  return NULL;
}

static void steps_share_the_pool_without_waiting_for_each_other(void **state) {
  (void)state;
  struct pool *pool;
  assert_int_equal(pool_create(3, &pool), OK);
  atomic_store(&sum, 0);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, run_often, pool);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(sum, 4 * 2000 * 64);
  pool_destroy(pool);
}

/* Each has its own counter, through its buffer. */
static void add_run(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  atomic_fetch_add((_Atomic int64_t *)call->buffers[phase], end - begin);
}
static const struct kernel_code add_code = {add_run, count_query};

static void kernels_of_a_group_run_all_their_tiles(void **state) {
  (void)state;
  static const int64_t sizes[3][4] = {{1, 0, 0, 1}, {300, 7, 1, 3}, {2, 900, 0, 2}};
  for (int threads = 1; threads <= 4; threads++) {
    struct pool *pool;
    assert_int_equal(pool_create(threads, &pool), OK);
    for (int turn = 0; turn < 200; turn++) {
      _Atomic int64_t done[3][3] = {0};
      void *buffers[3][3];
      struct pool_kernel kernels[3];
      for (int i = 0; i < 9; i++)
        buffers[i / 3][i % 3] = (void *)&done[i / 3][i % 3];
      for (int i = 0; i < 3; i++)
        kernels[i] = (struct pool_kernel){&add_code, {buffers[i], sizes[i], NULL, NULL}, sizes[i][3]};
      pool_run(pool, kernels, 3, turn % 2);
      for (int i = 0; i < 9; i++)
        assert_int_equal(done[i / 3][i % 3], i % 3 < sizes[i / 3][3] ? sizes[i / 3][i % 3] : 0);
    }
    pool_destroy(pool);
  }
}

/* Measured once, by the first who finds two threads at work; with nobody to share lines with it is the usual. */
static void lines_cost_what_was_measured_or_the_usual(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    struct pool *pool;
    assert_int_equal(pool_create(threads, &pool), OK);
    int64_t first, again;
    bool is_known = pool_shared_line(pool, &first);
    assert_in_range(first, 0, 100000);
    assert_true(pool_shared_line(pool, &again) || !is_known);
    if (is_known)
      assert_int_equal(again, first);
    if (threads == 1)
      assert_true(is_known && first == SHARED_LINE_USUAL_NS);
    pool_destroy(pool);
  }
}

/* Threads of one core cannot show it; they are asked again when they have several. */
static void lines_are_measured_when_there_are_cores(void **state) {
  (void)state;
  cpu_set_t all;
  use_one_core(&all);
  struct pool *pool;
  int64_t ns;
  assert_int_equal(pool_create(2, &pool), OK);
  assert_false(pool_shared_line(pool, &ns));
  assert_int_equal(ns, SHARED_LINE_USUAL_NS);
  use_cores(&all);
  bool is_known = false;
  for (int i = 0; i < 1000 && !is_known; i++)
    is_known = pool_shared_line(pool, &ns);
  pool_destroy(pool);
  if (!is_known)
    skip(); /* others have the cores */
  assert_in_range(ns, 0, 100000);
}

/* Two tiles of some milliseconds: who runs them. */
static pthread_t runners[2];
static int64_t two_tiles(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what == 0 ? 2 : what == KERNEL_PHASES ? 1 : 0;
}
static void note_runner(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)call;
  (void)phase;
  for (int64_t i = begin; i < end; i++) {
    runners[i] = pthread_self();
    usleep(5000);
  }
}
static const struct kernel_code slow_code = {note_runner, two_tiles};

/* Of so many runs, between which workers fall asleep, those in which one helped. */
static int helped_runs(struct pool *pool, int runs, bool wakes) {
  struct kernel_call call = {NULL, NULL, NULL, NULL};
  int helped = 0;
  for (int i = 0; i < runs; i++) {
    usleep(20000); /* a worker spins for much less */
    pool_run(pool, &(struct pool_kernel){&slow_code, call, 1}, 1, wakes);
    helped += !pthread_equal(runners[0], pthread_self()) || !pthread_equal(runners[1], pthread_self());
  }
  return helped;
}
/* A busy machine lets a worker come late to one job, or fall asleep late after another; not each time. */
static void only_what_wakes_has_those_who_sleep(void **state) {
  (void)state;
  struct pool *pool;
  assert_int_equal(pool_create(2, &pool), OK);
  assert_true(helped_runs(pool, 20, true) > 0);
  assert_true(helped_runs(pool, 20, false) < 20);
  pool_destroy(pool);
}

static void denormals_are_zero_after_float_mode_set(void **state) {
  (void)state;
  float_mode_set();
  volatile float tiny = 1e-38f, result = tiny * 0.01f;
  assert_true(result == 0.0f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_tile_runs_once),
    cmocka_unit_test(steps_share_the_pool_without_waiting_for_each_other),
    cmocka_unit_test(kernels_of_a_group_run_all_their_tiles),
    cmocka_unit_test(lines_cost_what_was_measured_or_the_usual),
    cmocka_unit_test(lines_are_measured_when_there_are_cores),
    cmocka_unit_test(only_what_wakes_has_those_who_sleep),
    cmocka_unit_test(denormals_are_zero_after_float_mode_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
