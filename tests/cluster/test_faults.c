/* test_faults.c: real processes, killed and stopped: a ps and two workers that train asynchronously (golden/models/async_2workers),
 * built once by tfc and started anew in each test, over Unix sockets in a folder of their own. */
#include "tests/cluster/async_job.h"
#include "tests/support/cut_proxy.h"

/* Long enough that all have met and made some steps. */
static void let_them_train(void) { usleep(500000); }

static void a_ps_leaves_when_the_workers_have_finished(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w1 = task("worker_1", train("50"));
  usleep(200000); /* any order, any delay */
  struct process *w0 = task("worker_0", train("50"));
  assert_int_equal(process_end(w0, 20), 0);
  assert_int_equal(process_end(w1, 20), 0);
  assert_int_equal(process_end(ps, 20), 0);
}

static void a_dead_worker_does_not_stop_the_other_and_may_come_back(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", train(LONG)), *w1 = task("worker_1", train(LONG));
  let_them_train();
  process_kill(w1);
  let_them_train();
  assert_true(process_is_alive(w0) && process_is_alive(ps));
  struct process *again = task("worker_1", train("20"));
  assert_int_equal(process_end(again, 20), 0);
  assert_true(process_is_alive(w0) && process_is_alive(ps));
  assert_true(process_says(ps, "worker_1"));
}

static void a_worker_that_comes_after_it_was_given_up_is_said_to_be_back(void **state) {
  (void)state;
  struct process *ps = task("ps_0", "--timeout 1"), *w0 = task("worker_0", with("--timeout 30", train(LONG)));
  struct process *w1 = task("worker_1", train(LONG));
  let_them_train();
  process_kill(w1);
  assert_true(process_comes_to_say(ps, "was lost: it has not come back for"));
  task("worker_1", train(LONG));
  assert_true(process_comes_to_say(ps, "is back"));
  assert_true(process_is_alive(ps) && process_is_alive(w0));
}

static void a_dead_ps_ends_the_workers_and_is_named(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", with("--timeout 3", train(LONG))),
                 *w1 = task("worker_1", with("--timeout 3", train(LONG)));
  let_them_train();
  process_kill(ps);
  assert_int_equal(process_end(w0, 8), 69);
  assert_int_equal(process_end(w1, 8), 69);
  assert_true(process_says(w0, "error: UNAVAILABLE: ") && process_says(w0, "ps_0 at unix:"));
}

static void a_silent_ps_is_noticed_and_given_up_after_the_timeout(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", with("--timeout 7", train(LONG))),
                 *w1 = task("worker_1", with("--timeout 7", train(LONG)));
  let_them_train();
  double began = seconds_now();
  kill(ps->id, SIGSTOP);
  assert_int_equal(process_end(w0, 20), 69);
  assert_true(seconds_now() - began > 5.5 && seconds_now() - began < 13);
  assert_int_equal(process_end(w1, 20), 69);
  assert_true(process_says(w1, "ps_0 at unix:") && process_says(w1, "has been silent for 5 s"));
}

static void a_worker_that_paused_for_a_moment_goes_on(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", train(LONG)), *w1 = task("worker_1", train("3000"));
  let_them_train();
  kill(w0->id, SIGSTOP);
  usleep(2500000);
  kill(w0->id, SIGCONT);
  assert_int_equal(process_end(w1, 30), 0);
  assert_true(process_is_alive(w0) && process_is_alive(ps));
}

static void a_worker_alone_gives_up_and_says_for_whom_it_waited(void **state) {
  (void)state;
  struct process *w0 = task("worker_0", with("--timeout 2", train("5")));
  assert_int_equal(process_end(w0, 10), 69);
  assert_true(process_says(w0, "worker_0: waiting for /job:ps/task:0 at unix:"));
  assert_true(process_says(w0, "error: UNAVAILABLE: "));
}

static void a_ps_gives_up_a_worker_that_does_not_come_back(void **state) {
  (void)state;
  struct process *ps = task("ps_0", "--timeout 2"), *w0 = task("worker_0", train(LONG)), *w1 = task("worker_1", train("5"));
  assert_int_equal(process_end(w1, 20), 0);
  process_kill(w0);
  assert_int_equal(process_end(ps, 10), 69);
  assert_true(process_says(ps, "/job:worker/task:0"));
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
    code = process_end(w0, 0.02);
  }
  if (code < 0)
    code = process_end(w0, 30);
  cut_proxy_stop(&proxy);
  assert_int_equal(code, 0);
  assert_true(proxy.accepted > 5);
  assert_int_equal(counted(), 2000);
  assert_true(process_says(w0, "the connection to ps_0 at unix:"));
  assert_true(process_is_alive(ps));
}

static void a_task_that_is_stopped_for_a_while_goes_on_when_it_wakes(void **state) {
  (void)state;
  for (int stop_ps = 0; stop_ps < 2; stop_ps++) {
    struct process *ps = task("ps_0", ""), *w0 = task("worker_0", then_count(train("20000")));
    struct process *stopped = stop_ps ? ps : w0, *other = stop_ps ? w0 : ps;
    let_them_train();
    kill(stopped->id, SIGSTOP);
    usleep(9000000);
    assert_true(process_is_alive(other));
    kill(stopped->id, SIGCONT);
    assert_int_equal(process_end(w0, 60), 0);
    assert_int_equal(counted(), 20000);
    assert_true(process_says(other, "has been silent for 5 s"));
    process_kill_all(state);
  }
}

/* Of two: waits until one has ended, with 65, and returns it; the other lives. */
static struct process *refused_one(struct process *a, struct process *b) {
  int codes[2] = {-1, -1};
  for (double until = seconds_now() + 20; seconds_now() < until && codes[0] < 0 && codes[1] < 0;) {
    codes[0] = process_end(a, 0.01);
    codes[1] = codes[0] < 0 ? process_end(b, 0.01) : -1;
  }
  struct process *ended = codes[0] >= 0 ? a : b, *other = ended == a ? b : a;
  assert_int_equal(codes[0] >= 0 ? codes[0] : codes[1], 65);
  usleep(300000);
  assert_true(process_is_alive(other));
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
    assert_true(process_says(ended, "error: FAILED_PRECONDITION: worker_0 is already running at unix:"));
    assert_true(process_is_alive(ps));
    process_kill_all(state);
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
  assert_true(process_is_alive(again));
  kill(w0->id, SIGCONT);
  assert_int_equal(process_end(w0, 10), 65);
  assert_true(process_says(w0, "another process has become worker_0"));
  usleep(500000);
  assert_true(process_is_alive(again) && process_is_alive(ps));
}

static void signals_stop_in_order(void **state) {
  (void)state;
  struct process *ps = task("ps_0", ""), *w0 = task("worker_0", train(LONG)), *w1 = task("worker_1", train(LONG));
  let_them_train();
  kill(w0->id, SIGINT);
  assert_int_equal(process_end(w0, 5), 130);
  kill(w1->id, SIGTERM);
  assert_int_equal(process_end(w1, 5), 143);
  kill(ps->id, SIGTERM);
  assert_int_equal(process_end(ps, 5), 143);
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
    process_kill(victim);
    for (int i = 0; i < 3; i++)
      if (all[i] != victim)
        assert_int_not_equal(process_end(all[i], 15), -1);
    process_kill_all(state);
  }
}

/* ---- the build ---- */

static int build(void **state) {
  char tfc[] = BINARY_DIR "/tfc", model[] = MODEL;
  (void)state;
  if (!job_folder())
    return 1;
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

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(a_ps_leaves_when_the_workers_have_finished, process_kill_all),
    cmocka_unit_test_teardown(a_dead_worker_does_not_stop_the_other_and_may_come_back, process_kill_all),
    cmocka_unit_test_teardown(a_worker_that_comes_after_it_was_given_up_is_said_to_be_back, process_kill_all),
    cmocka_unit_test_teardown(a_dead_ps_ends_the_workers_and_is_named, process_kill_all),
    cmocka_unit_test_teardown(a_silent_ps_is_noticed_and_given_up_after_the_timeout, process_kill_all),
    cmocka_unit_test_teardown(a_worker_that_paused_for_a_moment_goes_on, process_kill_all),
    cmocka_unit_test_teardown(a_worker_alone_gives_up_and_says_for_whom_it_waited, process_kill_all),
    cmocka_unit_test_teardown(a_ps_gives_up_a_worker_that_does_not_come_back, process_kill_all),
    cmocka_unit_test_teardown(connections_that_are_cut_in_the_middle_of_steps_change_nothing, process_kill_all),
    cmocka_unit_test_teardown(a_task_that_is_stopped_for_a_while_goes_on_when_it_wakes, process_kill_all),
    cmocka_unit_test_teardown(of_a_worker_that_is_started_twice_one_goes_on_and_the_other_is_told, process_kill_all),
    cmocka_unit_test_teardown(who_wakes_when_another_has_its_name_is_told, process_kill_all),
    cmocka_unit_test_teardown(signals_stop_in_order, process_kill_all),
    cmocka_unit_test_teardown(kills_at_any_moment_leave_nobody_waiting, process_kill_all),
  };
  return cmocka_run_group_tests(tests, build, job_clean);
}
