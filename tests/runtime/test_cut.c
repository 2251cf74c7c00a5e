/* test_cut.c: two tasks whose connection is cut after any number of bytes, in either direction: what they say to each other arrives once,
 * whole and in order, and nobody is told. Between them stands a middle box (cut_proxy.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "runtime/cluster/cluster.h"
#include "runtime/net/loop.h"
#include "tests/support/cut_proxy.h"
#include "tests/support/temp_path.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define EVENTS_MAX 64

/* What a task was told since the last look, as text. */
struct hearer {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  char events[EVENTS_MAX][48];
  int count, losses, joins, new_joins;
  char log[8192];
};

static struct hearer hearers[2];
static struct cluster *clusters[2];
static struct cut_proxy proxy;
static char folder[TEMP_PATH_SIZE];

static void note(struct hearer *h, const char *format, ...) {
  va_list args;
  pthread_mutex_lock(&h->lock);
  if (h->count < EVENTS_MAX) {
    va_start(args, format);
    vsnprintf(h->events[h->count++], sizeof h->events[0], format, args);
    va_end(args);
  }
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->lock);
}

static unsigned sum_of(const struct tensor *tensor) {
  unsigned sum = 0;
  for (int64_t i = 0; i < tensor->count; i++)
    sum = sum * 31 + ((const unsigned *)tensor->data)[i];
  return sum;
}

static void on_start(void *self, uint32_t driver, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial) {
  (void)driver, (void)command;
  note(self, "start %d %d %d", (int)step, (int)entry, (int)serial);
}
static void on_tensor(void *self, uint32_t from, uint64_t step, uint32_t transfer, struct tensor *tensor) {
  (void)from, (void)step;
  note(self, "tensor %d %d %u", (int)transfer, (int)tensor->count, sum_of(tensor));
  tensor_release(tensor);
}
static void on_done(void *self, uint32_t from, uint64_t step, status code, const char *text) {
  (void)from;
  note(self, "done %d %d %s", (int)step, (int)code, text);
}
static void on_cancel(void *self, uint64_t step) { note(self, "cancel %d", (int)step); }
static void on_control(void *self, uint32_t from, const void *data, size_t size) {
  (void)from;
  note(self, "control %.*s", (int)size, (const char *)data);
}
static void on_lost(void *self, uint32_t task, const char *reason) {
  struct hearer *h = self;
  (void)task, (void)reason;
  pthread_mutex_lock(&h->lock);
  h->losses++;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->lock);
}
static void on_joined(void *self, uint32_t task, bool is_new) {
  struct hearer *h = self;
  (void)task;
  pthread_mutex_lock(&h->lock);
  h->joins++;
  h->new_joins += is_new;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->lock);
}
static void on_log(void *self, const char *line) {
  struct hearer *h = self;
  pthread_mutex_lock(&h->lock);
  size_t used = strlen(h->log);
  snprintf(h->log + used, sizeof h->log - used, "%s\n", line);
  pthread_mutex_unlock(&h->lock);
}

static void task_start(uint32_t task, double timeout_s) {
  static char at[2][TEMP_PATH_SIZE + 16], between[TEMP_PATH_SIZE + 16];
  snprintf(at[0], sizeof at[0], "unix:%s/ps", folder);
  snprintf(at[1], sizeof at[1], "unix:%s/worker", folder);
  snprintf(between, sizeof between, "unix:%s/between", folder);
  struct cluster_task tasks[2] = {{"ps", 0, task == 0 ? at[0] : between}, {"worker", 0, at[1]}};
  struct cluster_config config = {.task = task,
                                  .task_count = 2,
                                  .tasks = tasks,
                                  .build_id = 5,
                                  .timeout_s = timeout_s,
                                  .has_phases = task == 1,
                                  .log = on_log,
                                  .log_self = &hearers[task],
                                  .sink = {.self = &hearers[task],
                                           .on_start = on_start,
                                           .on_tensor = on_tensor,
                                           .on_done = on_done,
                                           .on_cancel = on_cancel,
                                           .on_lost = on_lost,
                                           .on_joined = on_joined}};
  hearers[task] = (struct hearer){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  assert_int_equal(cluster_create(&config, &clusters[task]), OK);
  cluster_on_control(clusters[task], CONTROL_VIEW, on_control, &hearers[task]);
  assert_int_equal(cluster_start(clusters[task]), OK);
}

static void both_start(double timeout_s) {
  char from[TEMP_PATH_SIZE + 16], to[TEMP_PATH_SIZE + 16];
  snprintf(from, sizeof from, "%s/between", folder);
  snprintf(to, sizeof to, "%s/ps", folder);
  assert_true(cut_proxy_start(&proxy, from, to));
  task_start(0, timeout_s);
  task_start(1, timeout_s);
  assert_int_equal(cluster_wait_peers(clusters[1], &(uint32_t){0}, 1), OK);
  assert_int_equal(cluster_wait_peers(clusters[0], &(uint32_t){1}, 1), OK);
}

static void both_stop(void) {
  cluster_destroy(clusters[1]);
  cluster_destroy(clusters[0]);
  cut_proxy_stop(&proxy);
}

static bool wait_for(struct hearer *h, const int *counter, int count) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 30;
  pthread_mutex_lock(&h->lock);
  while (*counter < count && pthread_cond_timedwait(&h->changed, &h->lock, &until) == 0)
    ;
  bool reached = *counter >= count;
  pthread_mutex_unlock(&h->lock);
  return reached;
}

static struct tensor *numbers(int64_t count, unsigned seed) {
  struct tensor *tensor;
  assert_int_equal(tensor_create(DTYPE_UINT32, &(struct shape){1, {count}}, &tensor), OK);
  for (int64_t i = 0; i < count; i++)
    ((unsigned *)tensor->data)[i] = seed + (unsigned)i * 7;
  return tensor;
}

static void send_numbers(uint32_t from, uint32_t transfer, int64_t count, char *expected) {
  struct exchange *exchange = cluster_exchange(clusters[from]);
  struct tensor *tensor = numbers(count, transfer);
  snprintf(expected, sizeof hearers[0].events[0], "tensor %d %d %u", (int)transfer, (int)count, sum_of(tensor));
  exchange->send(exchange->self, 1 - from, 1, transfer, tensor);
}

/* All that a step says, both ways. */
static void converse(int turn) {
  char expected[2][EVENTS_MAX][48] = {{{0}}};
  int counts[2] = {0};
  static const int64_t sizes[] = {1, 0, 600, 3};
  struct exchange *worker = cluster_exchange(clusters[1]), *ps = cluster_exchange(clusters[0]);
  hearers[0].count = hearers[1].count = 0;
  worker->start(worker->self, 0, (uint64_t)turn, 4, 1, (uint64_t)turn);
  snprintf(expected[0][counts[0]++], 48, "start %d 4 %d", turn, turn);
  for (int i = 0; i < 4; i++) {
    send_numbers(1, (uint32_t)(turn * 10 + i), sizes[i], expected[0][counts[0]++]);
    send_numbers(0, (uint32_t)(turn * 10 + i), sizes[3 - i], expected[1][counts[1]++]);
  }
  assert_true(cluster_send_control(clusters[1], 0, CONTROL_VIEW, "hear", 4));
  snprintf(expected[0][counts[0]++], 48, "control hear");
  ps->done(ps->self, 1, (uint64_t)turn, turn % 2 ? OK : ABORTED, "so it is");
  snprintf(expected[1][counts[1]++], 48, "done %d %d so it is", turn, (int)(turn % 2 ? OK : ABORTED));
  worker->cancel(worker->self, 0, (uint64_t)turn);
  snprintf(expected[0][counts[0]++], 48, "cancel %d", turn);
  for (int i = 0; i < 2; i++) {
    if (!wait_for(&hearers[i], &hearers[i].count, counts[i]))
      fail_msg("turn %d: task %d has heard %d of %d:\n%s", turn, i, hearers[i].count, counts[i], hearers[i].log);
    for (int k = 0; k < counts[i]; k++)
      assert_string_equal(hearers[i].events[k], expected[i][k]);
  }
}

static void cut_at_every_byte(int from, long bytes_max) {
  both_start(30);
  int turn = 0;
  /* the first bytes make the link, one by one; of what follows, every seventh serves */
  for (long bytes = 1; bytes < bytes_max; bytes += bytes < 700 ? 1 : 7) {
    cut_proxy_cut(&proxy, from, bytes);
    converse(++turn);
  }
  converse(++turn);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hearers[i].losses, 0);
    assert_int_equal(hearers[i].new_joins, 1);
    assert_true(hearers[i].joins > turn / 2);
  }
  both_stop();
}

static void nothing_is_lost_or_said_twice_when_what_the_dialler_says_is_cut_at_any_byte(void **state) {
  (void)state;
  cut_at_every_byte(0, 3600);
}

static void nothing_is_lost_or_said_twice_when_what_the_listener_says_is_cut_at_any_byte(void **state) {
  (void)state;
  cut_at_every_byte(1, 3400);
}

static void a_large_tensor_that_was_cut_is_sent_again(void **state) {
  (void)state;
  char expected[48];
  both_start(30);
  for (int turn = 1; turn < 8; turn++) {
    hearers[0].count = 0;
    cut_proxy_cut_after(&proxy, 0, turn * 1500000);
    send_numbers(1, (uint32_t)turn, 3000000, expected);
    assert_true(wait_for(&hearers[0], &hearers[0].count, 1));
    assert_string_equal(hearers[0].events[0], expected);
  }
  assert_int_equal(hearers[0].losses + hearers[1].losses, 0);
  both_stop();
}

static void a_step_that_runs_when_the_task_leaves_is_finished_over_the_next_connection(void **state) {
  (void)state;
  both_start(30);
  for (int i = 0; i < 100; i++) {
    char expected[48];
    send_numbers(0, (uint32_t)i % 50, 700, expected);
    if (i == 49 && !wait_for(&hearers[1], &hearers[1].count, 50))
      fail_msg("not there");
    if (i == 49)
      hearers[1].count = 0;
  }
  cut_proxy_cut(&proxy, 1, 900);
  cluster_destroy(clusters[0]);
  assert_int_equal(hearers[1].count, 50);
  assert_true(wait_for(&hearers[1], &hearers[1].losses, 1)); /* by its good-bye, not by --timeout */
  cluster_destroy(clusters[1]);
  cut_proxy_stop(&proxy);
}

static void a_way_that_is_dead_is_left_for_another(void **state) {
  (void)state;
  both_start(30);
  cut_proxy_freeze(&proxy);
  converse(1);
  for (int i = 0; i < 2; i++)
    assert_int_equal(hearers[i].losses, 0);
  assert_non_null(strstr(hearers[1].log, "ps_0 at unix:"));
  assert_non_null(strstr(hearers[1].log, "has been silent for 5 s"));
  both_stop();
}

static void a_peer_that_does_not_come_back_is_lost_after_the_timeout_and_may_come_again(void **state) {
  (void)state;
  both_start(2);
  cut_proxy_stop(&proxy);
  uint64_t began_ms = loop_now_ms();
  struct exchange *worker = cluster_exchange(clusters[1]);
  worker->start(worker->self, 0, 9, 4, 1, 1); /* waits for the next connection, and then for nothing */
  for (int i = 0; i < 2; i++)
    assert_true(wait_for(&hearers[i], &hearers[i].losses, 1));
  assert_in_range(loop_now_ms() - began_ms, 1900, 7000);
  assert_true(wait_for(&hearers[1], &hearers[1].count, 1));
  assert_non_null(strstr(hearers[1].events[0], "done 9"));
  assert_int_equal(cluster_wait_peers(clusters[1], &(uint32_t){0}, 1), UNAVAILABLE); /* at once: it has waited already */
  assert_in_range(loop_now_ms() - began_ms, 1900, 8000);
  bool was_up = false;
  assert_true(cluster_missing_ms(clusters[1], 0, &was_up) >= 1900 && was_up);
  char from[TEMP_PATH_SIZE + 16], to[TEMP_PATH_SIZE + 16];
  snprintf(from, sizeof from, "%s/between", folder);
  snprintf(to, sizeof to, "%s/ps", folder);
  assert_true(cut_proxy_start(&proxy, from, to));
  for (int i = 0; i < 2; i++)
    assert_true(wait_for(&hearers[i], &hearers[i].joins, 2));
  assert_int_equal(hearers[0].new_joins, 1); /* the same incarnation */
  converse(1);
  both_stop();
}

static int folder_make(void **state) {
  (void)state;
  return !temp_folder(folder);
}

static int folder_remove(void **state) {
  (void)state;
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_large_tensor_that_was_cut_is_sent_again),
    cmocka_unit_test(nothing_is_lost_or_said_twice_when_what_the_dialler_says_is_cut_at_any_byte),
    cmocka_unit_test(nothing_is_lost_or_said_twice_when_what_the_listener_says_is_cut_at_any_byte),
    cmocka_unit_test(a_step_that_runs_when_the_task_leaves_is_finished_over_the_next_connection),
    cmocka_unit_test(a_way_that_is_dead_is_left_for_another),
    cmocka_unit_test(a_peer_that_does_not_come_back_is_lost_after_the_timeout_and_may_come_again),
  };
  return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
