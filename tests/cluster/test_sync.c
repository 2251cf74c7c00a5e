/* test_sync.c: real processes that train in rounds: workers that are killed and come back, that never come back, that end early; by
 * --strategy ps-sync over two ps, and by all-reduce; over Unix sockets in a folder of their own. What they end with is compared, bit for
 * bit, with an undisturbed run. */
#include "tests/support/feed_file.h"
#include "tests/support/process.h"

#define MODEL SOURCE_DIR "/tests/golden/strategies/adam_clip_ema_v1/graph.pb"
#define LONG 100000000 /* steps: as good as for ever */
#define VALUES 11      /* fetches of the entry `values` */

static const char *build_name; /* "ps" or "all" */

/* ---- jobs ---- */

#define WORKERS 3
struct job {
  struct process *ps[2], *worker[WORKERS];
  const char *options;
  int64_t steps;
};

static struct process *start(const char *task, const char *words) {
  char program[64];
  snprintf(program, sizeof program, "%s/%s", build_name, task);
  return process_start(program, words);
}

static const char *worker_words(const struct job *job, int worker, int64_t steps) {
  static char words[2048];
  int at =
    snprintf(words, sizeof words, "%s --entry train --feed x=x.npy --feed y=y.npy --batch 4 --steps %lld --log-every 0 --entry values",
             job->options, (long long)steps);
  for (int i = 0; i < VALUES; i++)
    at += snprintf(words + at, sizeof words - (size_t)at, " --fetch out_%d=%d_%d.npy", i, worker, i);
  return words;
}

static void start_worker(struct job *job, int worker) {
  char task[32];
  snprintf(task, sizeof task, "worker_%d", worker);
  job->worker[worker] = start(task, worker_words(job, worker, job->steps));
}

static struct job start_servers(const char *build, const char *options, int64_t steps) {
  struct job job = {.options = options, .steps = steps};
  build_name = build;
  for (int i = 0; strcmp(build, "ps") == 0 && i < 2; i++)
    job.ps[i] = start(i ? "ps_1" : "ps_0", options);
  return job;
}

static struct job start_job(const char *build, const char *options, int64_t steps) {
  struct job job = start_servers(build, options, steps);
  for (int i = 0; i < WORKERS; i++)
    start_worker(&job, i);
  return job;
}

static void finish(struct job *job) {
  for (int i = 0; i < WORKERS; i++)
    process_must_end(job->worker[i], 0, 60);
  for (int i = 0; i < 2; i++)
    if (job->ps[i])
      process_must_end(job->ps[i], 0, 30);
}

/* Long enough that all have met and made some steps. */
static void let_them_train(void) { usleep(500000); }

/* What worker `worker` has fetched of the variables, behind each other. */
static size_t read_values(int worker, char *out, size_t room) {
  size_t used = 0;
  for (int i = 0; i < VALUES; i++) {
    char path[160];
    struct tensor *value;
    snprintf(path, sizeof path, "%s/%d_%d.npy", folder, worker, i);
    if (npy_read(path, &value) != OK)
      test_fail("%s: %s", path, status_text());
    size_t bytes = (size_t)tensor_byte_size(value);
    assert_true(used + bytes <= room);
    memcpy(out + used, value->data, bytes);
    used += bytes;
    tensor_release(value);
  }
  return used;
}

static void forget_values(void) {
  for (int worker = 0; worker < WORKERS; worker++)
    for (int i = 0; i < VALUES; i++) {
      char path[160];
      snprintf(path, sizeof path, "%s/%d_%d.npy", folder, worker, i);
      unlink(path);
    }
}

struct values {
  char bytes[4096];
  size_t size;
};

/* Of an undisturbed run. */
static struct values expected(const char *build, int64_t steps) {
  struct values v;
  struct job job = start_job(build, "--timeout 20", steps);
  finish(&job);
  v.size = read_values(0, v.bytes, sizeof v.bytes);
  process_kill_all(NULL);
  forget_values();
  return v;
}

static void must_be_equal(const struct values *want, int worker) {
  struct values have;
  have.size = read_values(worker, have.bytes, sizeof have.bytes);
  assert_int_equal(have.size, want->size);
  if (memcmp(have.bytes, want->bytes, want->size) != 0)
    test_fail("worker %d has other values than an undisturbed run", worker);
}

/* ---- those that do not come back ---- */

static void killed_and_gone(const char *build, int victim) {
  struct job job = start_job(build, "--timeout 2", LONG);
  char name[64];
  snprintf(name, sizeof name, "worker_%d", victim);
  let_them_train();
  process_kill(job.worker[victim]);
  double began = seconds_now();
  for (int i = 0; i < WORKERS; i++)
    if (i != victim)
      process_must_end(job.worker[i], 69, 12);
  for (int i = 0; i < 2; i++)
    if (job.ps[i])
      process_must_end(job.ps[i], 69, 12);
  assert_true(seconds_now() - began < 12);
  bool is_named = false;
  snprintf(name, sizeof name, "/job:worker/task:%d", victim);
  for (int i = 0; i < WORKERS && !is_named; i++)
    is_named = i != victim && (process_says(job.worker[i], name) || process_says(job.worker[i], "worker_0 at"));
  assert_true(is_named);
}

static void a_worker_that_is_gone_ends_all_ps_rounds(void **state) {
  (void)state;
  killed_and_gone("ps", 1);
}
static void a_chief_that_is_gone_ends_all_ps_rounds(void **state) {
  (void)state;
  killed_and_gone("ps", 0);
}
static void a_replica_that_is_gone_ends_the_others(void **state) {
  (void)state;
  killed_and_gone("all", 1);
}
static void a_chief_that_is_gone_ends_the_other_replicas(void **state) {
  (void)state;
  killed_and_gone("all", 0);
}

static bool has_saved(int run) {
  char path[160];
  snprintf(path, sizeof path, "%s/stopped%d/checkpoint", folder, run);
  return access(path, F_OK) == 0;
}

/* Who decides for the job saves what there is, and waits for none of those that go on; whatever its step was at, which others have made,
 * too. */
static void the_coordinator_that_is_stopped_saves_and_leaves_at_once(void **state) {
  for (int i = 0; i < 8; i++) {
    char options[64];
    snprintf(options, sizeof options, "--timeout 20 --checkpoint-dir stopped%d", i);
    struct job job = start_job("all", options, LONG);
    let_them_train();
    assert_false(has_saved(i));
    double began = seconds_now();
    kill(job.worker[0]->id, SIGTERM);
    process_must_end(job.worker[0], 128 + SIGTERM, 20);
    double took = seconds_now() - began;
    assert_true(has_saved(i));
    if (took > 2)
      test_fail("it has left after %.3g s", took);
    process_kill_all(state);
  }
}

static void one_that_never_comes_ends_those_that_wait(void **state) {
  (void)state;
  for (int b = 0; b < 2; b++) {
    struct job job = start_servers(b ? "all" : "ps", "--timeout 2", LONG);
    start_worker(&job, 0);
    start_worker(&job, 1);
    process_must_end(job.worker[0], 69, 12);
    process_must_end(job.worker[1], 69, 12);
    assert_true(process_says(job.worker[0], "/job:worker/task:2"));
    process_kill_all(state);
  }
}

static void one_with_fewer_steps_ends_the_others_in_words(void **state) {
  (void)state;
  for (int b = 0; b < 2; b++) {
    struct job job = start_servers(b ? "all" : "ps", "--timeout 5", 200);
    start_worker(&job, 0);
    start_worker(&job, 1);
    job.worker[2] = start("worker_2", worker_words(&job, 2, 50));
    process_must_end(job.worker[0], 65, 20);
    process_must_end(job.worker[1], 65, 20);
    process_must_end(job.worker[2], 0, 20);
    assert_true(process_says(job.worker[0], "has finished its steps"));
    process_kill_all(state);
    forget_values();
  }
}

/* ---- those that come back ---- */

/* The victims: `victims` workers from `first` on. The steps take so long that none has done its last one when it is killed: who comes back
 * then finds that the others have left. */
static void killed_and_back(const char *build, int first, int victims, int times, int64_t steps) {
  struct values want = expected(build, steps);
  unsigned seed = 5;
  int amid = 0;
  for (int i = 0; i < times; i++) {
    struct job job = start_job(build, "--timeout 20", steps);
    usleep(150000 + (unsigned)rand_r(&seed) % 400000);
    int victim = first + rand_r(&seed) % victims;
    process_kill(job.worker[victim]);
    usleep((unsigned)rand_r(&seed) % 500000);
    start_worker(&job, victim);
    finish(&job);
    amid += process_said(job.worker[victim], "goes on with step");
    for (int worker = 0; worker < WORKERS; worker++)
      must_be_equal(&want, worker);
    process_kill_all(NULL);
    forget_values();
  }
  assert_true(amid > times / 3); /* else they were killed before the first step, or behind the last */
}

static void a_worker_that_comes_back_changes_nothing(void **state) {
  (void)state;
  killed_and_back("ps", 0, WORKERS, 10, 2500);
}
static void a_replica_that_comes_back_is_as_the_others(void **state) {
  (void)state;
  killed_and_back("all", 1, WORKERS - 1, 5, 10000);
}
static void a_chief_that_comes_back_is_as_the_other_replicas(void **state) {
  (void)state;
  killed_and_back("all", 0, 1, 3, 10000);
}

/* ---- elastic ---- */

static void must_be_alike(int a, int b) {
  struct values want;
  want.size = read_values(a, want.bytes, sizeof want.bytes);
  must_be_equal(&want, b);
}

static void goes_on_without(const char *build, bool comes_back) {
  struct job job = start_job(build, "--elastic --timeout 5", strcmp(build, "ps") == 0 ? 4000 : 20000);
  let_them_train();
  process_kill(job.worker[1]);
  usleep(300000);
  if (comes_back)
    start_worker(&job, 1);
  process_must_end(job.worker[0], 0, 60);
  process_must_end(job.worker[2], 0, 60);
  if (comes_back) {
    process_must_end(job.worker[1], 0, 60);
    assert_true(process_says(job.worker[1], "goes on with step"));
  }
  for (int i = 0; i < 2; i++)
    if (job.ps[i])
      process_must_end(job.ps[i], 0, 30);
  process_kill_all(NULL);
}

static void elastic_ps_rounds_go_on_without_one_that_is_lost(void **state) {
  (void)state;
  goes_on_without("ps", false);
  forget_values();
}
static void elastic_ps_rounds_take_one_in_that_comes_back(void **state) {
  (void)state;
  goes_on_without("ps", true);
  forget_values();
}
static void elastic_replicas_go_on_without_one_that_is_lost(void **state) {
  (void)state;
  goes_on_without("all", false);
  must_be_alike(0, 2);
  forget_values();
}
static void an_elastic_replica_that_comes_back_has_the_state_of_the_others(void **state) {
  (void)state;
  goes_on_without("all", true);
  must_be_alike(0, 2);
  must_be_alike(0, 1);
  forget_values();
}
static void elastic_replicas_without_the_one_that_decides_stop(void **state) {
  (void)state;
  struct job job = start_job("all", "--elastic --timeout 2", LONG);
  let_them_train();
  process_kill(job.worker[0]);
  process_must_end(job.worker[1], 69, 12);
  process_must_end(job.worker[2], 69, 12);
}
static void elastic_rounds_go_on_when_one_has_fewer_steps(void **state) {
  (void)state;
  for (int b = 0; b < 2; b++) {
    struct job job = start_servers(b ? "all" : "ps", "--elastic --timeout 5", 300);
    start_worker(&job, 0);
    start_worker(&job, 1);
    job.worker[2] = start("worker_2", worker_words(&job, 2, 50));
    finish(&job);
    process_kill_all(state);
    forget_values();
  }
}

/* ---- the build ---- */

static int build_one(const char *name, const char *strategy, bool has_ps) {
  char command[1024], path[160];
  snprintf(path, sizeof path, "%s/%s.json", folder, name);
  FILE *file = fopen(path, "w");
  if (!file)
    return 1;
  fprintf(file, "{");
  if (has_ps)
    fprintf(file, "\"ps\": [\"unix:%s/%sp\", \"unix:%s/%sq\"], ", folder, name, folder, name);
  fprintf(file, "\"worker\": [\"unix:%s/%sa\", \"unix:%s/%sb\", \"unix:%s/%sc\"]}", folder, name, folder, name, folder, name);
  fclose(file);
  snprintf(
    command, sizeof command,
    "cd %s && %s/tfc build %s --cluster %s.json -o %s --strategy %s --entry 'init: -> | init' --entry 'train: x, y -> loss | train_op' "
    "--entry 'values: -> out_0, out_1, out_2, out_3, out_4, out_5, out_6, out_7, out_8, out_9, out_10' >/dev/null 2>&1",
    folder, BINARY_DIR, MODEL, name, name, strategy);
  return system(command);
}

static int build(void **state) {
  (void)state;
  if (!temp_folder(folder))
    return 1;
  feed_write(folder, "x", DTYPE_FLOAT, (struct shape){2, {64, 5}});
  feed_write(folder, "y", DTYPE_FLOAT, (struct shape){2, {64, 3}});
  return build_one("ps", "ps-sync", true) || build_one("all", "allreduce", false);
}

static int clean(void **state) {
  process_kill_all(state);
  return temp_folder_remove(folder);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(a_worker_that_is_gone_ends_all_ps_rounds, process_kill_all),
    cmocka_unit_test_teardown(a_chief_that_is_gone_ends_all_ps_rounds, process_kill_all),
    cmocka_unit_test_teardown(a_replica_that_is_gone_ends_the_others, process_kill_all),
    cmocka_unit_test_teardown(a_chief_that_is_gone_ends_the_other_replicas, process_kill_all),
    cmocka_unit_test_teardown(the_coordinator_that_is_stopped_saves_and_leaves_at_once, process_kill_all),
    cmocka_unit_test_teardown(one_that_never_comes_ends_those_that_wait, process_kill_all),
    cmocka_unit_test_teardown(one_with_fewer_steps_ends_the_others_in_words, process_kill_all),
    cmocka_unit_test_teardown(elastic_ps_rounds_go_on_without_one_that_is_lost, process_kill_all),
    cmocka_unit_test_teardown(elastic_ps_rounds_take_one_in_that_comes_back, process_kill_all),
    cmocka_unit_test_teardown(elastic_replicas_go_on_without_one_that_is_lost, process_kill_all),
    cmocka_unit_test_teardown(an_elastic_replica_that_comes_back_has_the_state_of_the_others, process_kill_all),
    cmocka_unit_test_teardown(elastic_replicas_without_the_one_that_decides_stop, process_kill_all),
    cmocka_unit_test_teardown(elastic_rounds_go_on_when_one_has_fewer_steps, process_kill_all),
    cmocka_unit_test_teardown(a_worker_that_comes_back_changes_nothing, process_kill_all),
    cmocka_unit_test_teardown(a_replica_that_comes_back_is_as_the_others, process_kill_all),
    cmocka_unit_test_teardown(a_chief_that_comes_back_is_as_the_other_replicas, process_kill_all),
  };
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, build, clean);
}
