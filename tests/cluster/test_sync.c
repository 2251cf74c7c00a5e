/* test_sync.c: real processes that train in rounds: workers that are killed and come back, that never come back, that end early; by
 * --strategy ps-sync over two ps, and by all-reduce; over Unix sockets in a folder of their own. What they end with is compared, bit for
 * bit, with an undisturbed run. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/npy.h"
#include "tests/support/temp_path.h"
#include "tests/support/test.h"

#define MODEL SOURCE_DIR "/tests/golden/strategies/adam_clip_ema_v1/graph.pb"
#define LONG 100000000 /* steps: as good as for ever */
#define VALUES 11      /* fetches of the entry `values` */

static char folder[TEMP_PATH_SIZE];
static const char *build_name; /* "ps" or "all" */

/* ---- processes ---- */

struct process {
  pid_t id;
  char log[128]; /* its stderr */
};
static struct process started[64];
static int started_count;

static struct process *start(const char *task, const char *arguments) {
  struct process *p = &started[started_count++ % 64];
  char words[2048], program[192], *argv[64] = {program};
  int count = 1;
  snprintf(program, sizeof program, "%s/%s/%s", folder, build_name, task);
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

static void show(const struct process *p) {
  static char text[65536];
  FILE *file = fopen(p->log, "r");
  size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
  text[size] = 0;
  if (file)
    fclose(file);
  print_message("%s says:\n%s", p->log, text);
}

static bool log_mentions(const struct process *p, const char *words) {
  static char text[65536];
  FILE *file = fopen(p->log, "r");
  size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
  text[size] = 0;
  if (file)
    fclose(file);
  return strstr(text, words) != NULL;
}

static bool log_has(const struct process *p, const char *words) {
  if (!log_mentions(p, words))
    show(p);
  return log_mentions(p, words);
}

static void must_end(struct process *p, int code, double seconds) {
  int ended = end_of(p, seconds);
  if (ended != code)
    show(p);
  assert_int_equal(ended, code);
}

static void kill_now(struct process *p) {
  kill(p->id, SIGKILL);
  waitpid(p->id, NULL, 0);
  p->id = 0;
}

static int stop_all(void **state) {
  (void)state;
  for (int i = 0; i < 64; i++)
    if (started[i].id > 0) {
      kill(started[i].id, SIGCONT);
      kill_now(&started[i]);
    }
  started_count = 0;
  memset(started, 0, sizeof started);
  return 0;
}

/* ---- jobs ---- */

#define WORKERS 3
struct job {
  struct process *ps[2], *worker[WORKERS];
  const char *options;
  int64_t steps;
};

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
    must_end(job->worker[i], 0, 60);
  for (int i = 0; i < 2; i++)
    if (job->ps[i])
      must_end(job->ps[i], 0, 30);
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
  stop_all(NULL);
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
  kill_now(job.worker[victim]);
  double began = now();
  for (int i = 0; i < WORKERS; i++)
    if (i != victim)
      must_end(job.worker[i], 69, 12);
  for (int i = 0; i < 2; i++)
    if (job.ps[i])
      must_end(job.ps[i], 69, 12);
  assert_true(now() - began < 12);
  bool is_named = false;
  snprintf(name, sizeof name, "/job:worker/task:%d", victim);
  for (int i = 0; i < WORKERS && !is_named; i++)
    is_named = i != victim && (log_has(job.worker[i], name) || log_has(job.worker[i], "worker_0 at"));
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

static void one_that_never_comes_ends_those_that_wait(void **state) {
  (void)state;
  for (int b = 0; b < 2; b++) {
    struct job job = start_servers(b ? "all" : "ps", "--timeout 2", LONG);
    start_worker(&job, 0);
    start_worker(&job, 1);
    must_end(job.worker[0], 69, 12);
    must_end(job.worker[1], 69, 12);
    assert_true(log_has(job.worker[0], "/job:worker/task:2"));
    stop_all(state);
  }
}

static void one_with_fewer_steps_ends_the_others_in_words(void **state) {
  (void)state;
  for (int b = 0; b < 2; b++) {
    struct job job = start_servers(b ? "all" : "ps", "--timeout 5", 200);
    start_worker(&job, 0);
    start_worker(&job, 1);
    job.worker[2] = start("worker_2", worker_words(&job, 2, 50));
    must_end(job.worker[0], 65, 20);
    must_end(job.worker[1], 65, 20);
    must_end(job.worker[2], 0, 20);
    assert_true(log_has(job.worker[0], "has finished its steps"));
    stop_all(state);
    forget_values();
  }
}

/* ---- those that come back ---- */

static void killed_and_back(const char *build, int victims, int times, int64_t steps) {
  struct values want = expected(build, steps);
  unsigned seed = 5;
  int amid = 0;
  for (int i = 0; i < times; i++) {
    struct job job = start_job(build, "--timeout 20", steps);
    usleep(150000 + (unsigned)rand_r(&seed) % 400000);
    int victim = rand_r(&seed) % victims + (victims < WORKERS);
    kill_now(job.worker[victim]);
    usleep((unsigned)rand_r(&seed) % 500000);
    start_worker(&job, victim);
    finish(&job);
    amid += log_mentions(job.worker[victim], "goes on with step");
    for (int worker = 0; worker < WORKERS; worker++)
      must_be_equal(&want, worker);
    stop_all(NULL);
    forget_values();
  }
  assert_true(amid > times / 3); /* else they were killed before the first step, or behind the last */
}

static void a_worker_that_comes_back_changes_nothing(void **state) {
  (void)state;
  killed_and_back("ps", WORKERS, 20, 1500);
}
static void a_replica_that_comes_back_is_as_the_others(void **state) {
  (void)state;
  killed_and_back("all", WORKERS - 1, 10, 3000);
}
static void a_chief_that_comes_back_is_as_the_other_replicas(void **state) {
  (void)state;
  killed_and_back("all", 1, 5, 3000);
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
  kill_now(job.worker[1]);
  usleep(300000);
  if (comes_back)
    start_worker(&job, 1);
  must_end(job.worker[0], 0, 60);
  must_end(job.worker[2], 0, 60);
  if (comes_back) {
    must_end(job.worker[1], 0, 60);
    assert_true(log_has(job.worker[1], "goes on with step"));
  }
  for (int i = 0; i < 2; i++)
    if (job.ps[i])
      must_end(job.ps[i], 0, 30);
  stop_all(NULL);
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
  kill_now(job.worker[0]);
  must_end(job.worker[1], 69, 12);
  must_end(job.worker[2], 69, 12);
}
static void elastic_rounds_go_on_when_one_has_fewer_steps(void **state) {
  (void)state;
  for (int b = 0; b < 2; b++) {
    struct job job = start_servers(b ? "all" : "ps", "--elastic --timeout 5", 300);
    start_worker(&job, 0);
    start_worker(&job, 1);
    job.worker[2] = start("worker_2", worker_words(&job, 2, 50));
    finish(&job);
    stop_all(state);
    forget_values();
  }
}

/* ---- the build ---- */

static void write_feed(const char *name, struct shape shape) {
  struct tensor *tensor;
  char path[160];
  unsigned seed = 1;
  assert_int_equal(tensor_create(DTYPE_FLOAT, &shape, &tensor), OK);
  for (int64_t i = 0; i < tensor->count; i++)
    ((float *)tensor->data)[i] = (float)(rand_r(&seed) % 1000) / 1000;
  snprintf(path, sizeof path, "%s/%s.npy", folder, name);
  assert_int_equal(npy_write(path, tensor), OK);
  tensor_release(tensor);
}

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
  write_feed("x", (struct shape){2, {64, 5}});
  write_feed("y", (struct shape){2, {64, 3}});
  return build_one("ps", "ps-sync", true) || build_one("all", "allreduce", false);
}

static int clean(void **state) {
  char command[128];
  stop_all(state);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(a_worker_that_is_gone_ends_all_ps_rounds, stop_all),
    cmocka_unit_test_teardown(a_chief_that_is_gone_ends_all_ps_rounds, stop_all),
    cmocka_unit_test_teardown(a_replica_that_is_gone_ends_the_others, stop_all),
    cmocka_unit_test_teardown(a_chief_that_is_gone_ends_the_other_replicas, stop_all),
    cmocka_unit_test_teardown(one_that_never_comes_ends_those_that_wait, stop_all),
    cmocka_unit_test_teardown(one_with_fewer_steps_ends_the_others_in_words, stop_all),
    cmocka_unit_test_teardown(elastic_ps_rounds_go_on_without_one_that_is_lost, stop_all),
    cmocka_unit_test_teardown(elastic_ps_rounds_take_one_in_that_comes_back, stop_all),
    cmocka_unit_test_teardown(elastic_replicas_go_on_without_one_that_is_lost, stop_all),
    cmocka_unit_test_teardown(an_elastic_replica_that_comes_back_has_the_state_of_the_others, stop_all),
    cmocka_unit_test_teardown(elastic_replicas_without_the_one_that_decides_stop, stop_all),
    cmocka_unit_test_teardown(elastic_rounds_go_on_when_one_has_fewer_steps, stop_all),
    cmocka_unit_test_teardown(a_worker_that_comes_back_changes_nothing, stop_all),
    cmocka_unit_test_teardown(a_replica_that_comes_back_is_as_the_others, stop_all),
    cmocka_unit_test_teardown(a_chief_that_comes_back_is_as_the_other_replicas, stop_all),
  };
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, build, clean);
}
