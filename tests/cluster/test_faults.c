/* test_faults.c: real processes, killed and stopped: a ps and two workers that train asynchronously (golden/models/async_2workers),
 * built once by tfc and started anew in each test, over Unix sockets in a folder of their own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/npy.h"
#include "tests/support/cut_proxy.h"
#include "tests/support/temp_path.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MODEL SOURCE_DIR "/tests/golden/models/async_2workers/graph.pb"
#define LONG "100000000" /* steps: as good as for ever */

static char folder[TEMP_PATH_SIZE];

/* ---- processes ---- */

struct process {
  pid_t id;
  char log[96]; /* its stderr */
};

static struct process started[48];
static int started_count;

/* arguments: words separated by blanks */
static struct process *start(const char *program, const char *arguments) {
  struct process *p = &started[started_count++];
  char words[2048], *argv[64] = {(char *)program};
  int count = 1;
  snprintf(p->log, sizeof p->log, "%s/%d.log", folder, started_count);
  snprintf(words, sizeof words, "%s", arguments);
  for (char *save = NULL, *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
    argv[count++] = word;
  p->id = fork();
  if (p->id == 0) {
    int log = open(p->log, O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_WRONLY);
    dup2(log, 2);
    dup2(null, 1);
    if (chdir(folder) == 0)
      execv(program, argv);
    _exit(127);
  }
  return p;
}

static struct process *task(const char *name, const char *arguments) {
  char program[128];
  snprintf(program, sizeof program, "%s/out/%s", folder, name);
  return start(program, arguments);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The exit code, or 128 + signal; -1 when it has not ended in time. */
static int end_of(struct process *p, double seconds) {
  int state = 0;
  for (double until = now() + seconds; now() < until; usleep(2000))
    if (waitpid(p->id, &state, WNOHANG) == p->id) {
      p->id = 0;
      return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    }
  return -1;
}

static void kill_now(struct process *p) {
  kill(p->id, SIGKILL);
  waitpid(p->id, NULL, 0);
  p->id = 0;
}

static bool is_alive(const struct process *p) { return waitpid(p->id, NULL, WNOHANG) == 0; }

static const char *log_of(const struct process *p) {
  static char text[65536];
  FILE *file = fopen(p->log, "r");
  size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
  text[size] = 0;
  if (file)
    fclose(file);
  return text;
}

static bool log_has(const struct process *p, const char *words) {
  const char *text = log_of(p);
  if (!strstr(text, words))
    print_message("%s says:\n%s", p->log, text);
  return strstr(text, words) != NULL;
}

/* Within 20 s. */
static bool log_soon_has(const struct process *p, const char *words) {
  for (double until = now() + 20; now() < until && !strstr(log_of(p), words); usleep(10000))
    ;
  return log_has(p, words);
}

static int stop_all(void **state) {
  (void)state;
  for (int i = 0; i < started_count; i++)
    if (started[i].id > 0) {
      kill(started[i].id, SIGCONT);
      kill_now(&started[i]);
    }
  started_count = 0;
  return 0;
}

/* ---- the cluster ---- */

static const char *train(const char *steps) {
  static char turns[4][256];
  static int turn;
  char *words = turns[turn++ % 4];
  snprintf(words, sizeof turns[0], "--entry train --feed x=x.npy --feed label=label.npy --batch 16 --steps %s", steps);
  return words;
}

static const char *with(const char *options, const char *phases) {
  static char turns[4][1024];
  static int turn;
  char *words = turns[turn++ % 4];
  snprintf(words, sizeof turns[0], "%s %s", options, phases);
  return words;
}

/* Long enough that all have met and made some steps. */
static void let_them_train(void) { usleep(500000); }

static void a_ps_leaves_when_the_workers_have_finished(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w1 = task("worker_1", train("50"));
  usleep(200000); /* any order, any delay */
  struct process *w0 = task("worker_0", train("50"));
  assert_int_equal(end_of(w0, 20), 0);
  assert_int_equal(end_of(w1, 20), 0);
  assert_int_equal(end_of(ps, 20), 0);
}

static void a_dead_worker_does_not_stop_the_other_and_may_come_back(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", train(LONG)), *w1 = task("worker_1", train(LONG));
  let_them_train();
  kill_now(w1);
  let_them_train();
  assert_true(is_alive(w0) && is_alive(ps));
  struct process *again = task("worker_1", train("20"));
  assert_int_equal(end_of(again, 20), 0);
  assert_true(is_alive(w0) && is_alive(ps));
  assert_true(log_has(ps, "worker_1"));
}

static void a_worker_that_comes_after_it_was_given_up_is_said_to_be_back(void **state) {
  (void)state;
  struct process *ps = task("ps_0", "--timeout 1"), *w0 = task("worker_0", with("--timeout 30", train(LONG)));
  struct process *w1 = task("worker_1", train(LONG));
  let_them_train();
  kill_now(w1);
  assert_true(log_soon_has(ps, "was lost: it has not come back for"));
  task("worker_1", train(LONG));
  assert_true(log_soon_has(ps, "is back"));
  assert_true(is_alive(ps) && is_alive(w0));
}

static void a_dead_ps_ends_the_workers_and_is_named(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", with("--timeout 3", train(LONG))),
                 *w1 = task("worker_1", with("--timeout 3", train(LONG)));
  let_them_train();
  kill_now(ps);
  assert_int_equal(end_of(w0, 8), 69);
  assert_int_equal(end_of(w1, 8), 69);
  assert_true(log_has(w0, "error: UNAVAILABLE: ") && log_has(w0, "ps_0 at unix:"));
}

static void a_silent_ps_is_noticed_and_given_up_after_the_timeout(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", with("--timeout 7", train(LONG))),
                 *w1 = task("worker_1", with("--timeout 7", train(LONG)));
  let_them_train();
  double began = now();
  kill(ps->id, SIGSTOP);
  assert_int_equal(end_of(w0, 20), 69);
  assert_true(now() - began > 5.5 && now() - began < 13);
  assert_int_equal(end_of(w1, 20), 69);
  assert_true(log_has(w1, "ps_0 at unix:") && log_has(w1, "has been silent for 5 s"));
}

static void a_worker_that_paused_for_a_moment_goes_on(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", train(LONG)), *w1 = task("worker_1", train("3000"));
  let_them_train();
  kill(w0->id, SIGSTOP);
  usleep(2500000);
  kill(w0->id, SIGCONT);
  assert_int_equal(end_of(w1, 30), 0);
  assert_true(is_alive(w0) && is_alive(ps));
}

static void a_worker_alone_gives_up_and_says_for_whom_it_waited(void **state) {
  (void)state;
  struct process *w0 = task("worker_0", with("--timeout 2", train("5")));
  assert_int_equal(end_of(w0, 10), 69);
  assert_true(log_has(w0, "worker_0: waiting for /job:ps/task:0 at unix:"));
  assert_true(log_has(w0, "error: UNAVAILABLE: "));
}

static void a_ps_gives_up_a_worker_that_does_not_come_back(void **state) {
  (void)state;
  struct process *ps = task("ps_0", "--timeout 2"), *w0 = task("worker_0", train(LONG)), *w1 = task("worker_1", train("5"));
  assert_int_equal(end_of(w1, 20), 0);
  kill_now(w0);
  assert_int_equal(end_of(ps, 10), 69);
  assert_true(log_has(ps, "/job:worker/task:0"));
}

/* ---- cut, stopped, twice ---- */

/* How many steps the ps has applied, asked by a worker after its own phases: global_step. */
static const char *then_count(const char *phases) {
  static char words[400];
  snprintf(words, sizeof words, "%s --entry count --fetch global_step=count.npy", phases);
  return words;
}

static int64_t counted(void) {
  char path[128];
  struct tensor *count = NULL;
  snprintf(path, sizeof path, "%s/count.npy", folder);
  assert_int_equal(npy_read(path, &count), OK);
  int64_t steps = *(const int64_t *)count->data;
  tensor_release(count);
  unlink(path);
  return steps;
}

static void connections_that_are_cut_in_the_middle_of_steps_change_nothing(void **state) {
  (void)state;
  struct cut_proxy proxy;
  char from[80], to[80], options[128];
  unsigned seed = 3;
  snprintf(from, sizeof from, "%s/between", folder);
  snprintf(to, sizeof to, "%s/p", folder);
  struct process *ps = task("ps_0", "");
  assert_true(cut_proxy_start(&proxy, from, to));
  snprintf(options, sizeof options, "--peer ps:0=unix:%s", from);
  struct process *w0 = task("worker_0", with(options, then_count(train("2000"))));
  int code = -1;
  for (int i = 0; i < 400 && code < 0; i++) {
    cut_proxy_cut(&proxy, rand_r(&seed) % 2, 200 + rand_r(&seed) % 20000);
    code = end_of(w0, 0.02);
  }
  if (code < 0)
    code = end_of(w0, 30);
  cut_proxy_stop(&proxy);
  assert_int_equal(code, 0);
  assert_true(proxy.accepted > 5);
  assert_int_equal(counted(), 2000);
  assert_true(log_has(w0, "the connection to ps_0 at unix:"));
  assert_true(is_alive(ps));
}

static void a_task_that_is_stopped_for_a_while_goes_on_when_it_wakes(void **state) {
  (void)state;
  for (int stop_ps = 0; stop_ps < 2; stop_ps++) {
    struct process *ps = task("ps_0", ""), *w0 = task("worker_0", then_count(train("20000")));
    struct process *stopped = stop_ps ? ps : w0, *other = stop_ps ? w0 : ps;
    let_them_train();
    kill(stopped->id, SIGSTOP);
    usleep(9000000);
    assert_true(is_alive(other));
    kill(stopped->id, SIGCONT);
    assert_int_equal(end_of(w0, 60), 0);
    assert_int_equal(counted(), 20000);
    assert_true(log_has(other, "has been silent for 5 s"));
    stop_all(state);
  }
}

/* Of two: waits until one has ended, with 65, and returns it; the other lives. */
static struct process *refused_one(struct process *a, struct process *b) {
  int codes[2] = {-1, -1};
  for (double until = now() + 20; now() < until && codes[0] < 0 && codes[1] < 0;) {
    codes[0] = end_of(a, 0.01);
    codes[1] = codes[0] < 0 ? end_of(b, 0.01) : -1;
  }
  struct process *ended = codes[0] >= 0 ? a : b, *other = ended == a ? b : a;
  assert_int_equal(codes[0] >= 0 ? codes[0] : codes[1], 65);
  usleep(300000);
  assert_true(is_alive(other));
  return ended;
}

static void of_a_worker_that_is_started_twice_one_goes_on_and_the_other_is_told(void **state) {
  (void)state;
  char own[128];
  for (int round = 0; round < 6; round++) {
    bool is_elsewhere = round % 2;
    snprintf(own, sizeof own, "--address unix:%s/elsewhere", folder);
    struct process *ps = task("ps_0", ""), *a = task("worker_0", train(LONG));
    if (round >= 2)
      usleep(round < 4 ? 3000 : 400000);
    struct process *b = task("worker_0", is_elsewhere ? with(own, train(LONG)) : train(LONG));
    struct process *ended = refused_one(a, b);
    assert_true(log_has(ended, is_elsewhere ? "worker_0 is already running at unix:" : "somebody listens there already"));
    assert_true(is_alive(ps));
    stop_all(state);
  }
}

static void who_wakes_when_another_has_its_name_is_told(void **state) {
  (void)state;
  char own[128];
  snprintf(own, sizeof own, "--address unix:%s/elsewhere", folder);
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", train(LONG));
  let_them_train();
  kill(w0->id, SIGSTOP);
  struct process *again = task("worker_0", with(own, train(LONG)));
  usleep(8000000);
  assert_true(is_alive(again));
  kill(w0->id, SIGCONT);
  assert_int_equal(end_of(w0, 10), 65);
  assert_true(log_has(w0, "another process has become worker_0"));
  usleep(500000);
  assert_true(is_alive(again) && is_alive(ps));
}

static void signals_stop_in_order(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", train(LONG)), *w1 = task("worker_1", train(LONG));
  let_them_train();
  kill(w0->id, SIGINT);
  assert_int_equal(end_of(w0, 5), 130);
  kill(w1->id, SIGTERM);
  assert_int_equal(end_of(w1, 5), 143);
  kill(ps->id, SIGTERM);
  assert_int_equal(end_of(ps, 5), 143);
}

static void kills_at_any_moment_leave_nobody_waiting(void **state) {
  (void)state;
  unsigned seed = 12;
  for (int round = 0; round < 12; round++) {
    struct process *ps = task("ps_0", "--timeout 1"), *w0 = task("worker_0", with("--timeout 2", train("300"))),
                   *w1 = task("worker_1", with("--timeout 2", train("300")));
    struct process *all[] = {ps, w0, w1};
    struct process *victim = all[rand_r(&seed) % 3];
    usleep((unsigned)rand_r(&seed) % 150000);
    kill_now(victim);
    for (int i = 0; i < 3; i++)
      if (all[i] != victim)
        assert_int_not_equal(end_of(all[i], 15), -1);
    stop_all(state);
  }
}

/* ---- the build ---- */

static void write_feed(const char *name, enum dtype dtype, struct shape shape) {
  struct tensor *tensor;
  char path[128];
  unsigned seed = 1;
  assert_int_equal(tensor_create(dtype, &shape, &tensor), OK);
  for (int64_t i = 0; i < tensor->count; i++)
    if (dtype == DTYPE_FLOAT)
      ((float *)tensor->data)[i] = (float)(rand_r(&seed) % 1000) / 1000;
    else
      ((int32_t *)tensor->data)[i] = (int32_t)(i % 3);
  snprintf(path, sizeof path, "%s/%s.npy", folder, name);
  assert_int_equal(npy_write(path, tensor), OK);
  tensor_release(tensor);
}

static int build(void **state) {
  char path[128];
  char tfc[] = BINARY_DIR "/tfc", model[] = MODEL;
  (void)state;
  if (!temp_folder(folder))
    return 1;
  write_feed("x", DTYPE_FLOAT, (struct shape){2, {64, 64}});
  write_feed("label", DTYPE_INT32, (struct shape){1, {64}});
  snprintf(path, sizeof path, "%s/cluster.json", folder);
  FILE *file = fopen(path, "w");
  fprintf(file, "{\"ps\": [\"unix:%s/p\"], \"worker\": [\"unix:%s/a\", \"unix:%s/b\"]}", folder, folder, folder);
  fclose(file);
  pid_t id = fork();
  if (id == 0) {
    if (chdir(folder) == 0)
      execl(tfc, tfc, "build", model, "--cluster", "cluster.json", "-o", "out", "--replicate", "worker", "--entry", "init: -> | init",
            "--entry", "train: x, label -> loss | train_op", "--entry", "count: -> global_step", (char *)NULL);
    _exit(127);
  }
  int result = 0;
  return waitpid(id, &result, 0) != id || !WIFEXITED(result) || WEXITSTATUS(result) != 0;
}

static int clean(void **state) {
  char command[128];
  stop_all(state);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(a_ps_leaves_when_the_workers_have_finished, stop_all),
    cmocka_unit_test_teardown(a_dead_worker_does_not_stop_the_other_and_may_come_back, stop_all),
    cmocka_unit_test_teardown(a_worker_that_comes_after_it_was_given_up_is_said_to_be_back, stop_all),
    cmocka_unit_test_teardown(a_dead_ps_ends_the_workers_and_is_named, stop_all),
    cmocka_unit_test_teardown(a_silent_ps_is_noticed_and_given_up_after_the_timeout, stop_all),
    cmocka_unit_test_teardown(a_worker_that_paused_for_a_moment_goes_on, stop_all),
    cmocka_unit_test_teardown(a_worker_alone_gives_up_and_says_for_whom_it_waited, stop_all),
    cmocka_unit_test_teardown(a_ps_gives_up_a_worker_that_does_not_come_back, stop_all),
    cmocka_unit_test_teardown(connections_that_are_cut_in_the_middle_of_steps_change_nothing, stop_all),
    cmocka_unit_test_teardown(a_task_that_is_stopped_for_a_while_goes_on_when_it_wakes, stop_all),
    cmocka_unit_test_teardown(of_a_worker_that_is_started_twice_one_goes_on_and_the_other_is_told, stop_all),
    cmocka_unit_test_teardown(who_wakes_when_another_has_its_name_is_told, stop_all),
    cmocka_unit_test_teardown(signals_stop_in_order, stop_all),
    cmocka_unit_test_teardown(kills_at_any_moment_leave_nobody_waiting, stop_all),
  };
  return cmocka_run_group_tests(tests, build, clean);
}
