/* test_exactly_once.c: whoever is killed at whatever moment and started again: each step of each worker counts once, on
 * every ps.
 *
 * Two ps with counters, two workers that train, and a third one that looks at the end: while it has not come the ps
 * stay. The graph is written here: each step adds 1 to a counter of each ps (count), the sum of the rows it is fed to
 * another (add), then, when all ps have done that, 1 to a third (late), which makes a part depend on its own changes;
 * or assigns to one what it was and 1 more (assign); or takes a token from a queue; or adds what it draws to one
 * counter, reads it back, and adds the same to a second one (pair), so that a step of two tries would leave them
 * different. */
#include "tests/support/process.h"

#include "base/npy.h"
#include <stdint.h>

#define STEPS 6000
#define TOKENS 8000
#define ROWS 7

/* ---- the graph ---- */

static FILE *graph;

static const char *on_ps(int ps) { return ps ? "device: \"/job:ps/task:1\"" : "device: \"/job:ps/task:0\""; }
#define T_DOUBLE "attr { key: \"T\" value { type: DT_DOUBLE } }"
#define DTYPE_IS_DOUBLE "attr { key: \"dtype\" value { type: DT_DOUBLE } }"
#define INT_T "attr { key: \"T\" value { type: DT_INT32 } }"
#define SCALAR "attr { key: \"shape\" value { shape { } } }"

static void write_constant(const char *name, int ps, double value) {
  fprintf(graph,
          "node { name: \"%s\" op: \"Const\" %s " DTYPE_IS_DOUBLE
          " attr { key: \"value\" value { tensor { dtype: DT_DOUBLE tensor_shape { } double_val: %g } } } }\n",
          name, on_ps(ps), value);
}

static void write_variable(const char *name, int ps) {
  char zero[32];
  snprintf(zero, sizeof zero, "%s/zero", name);
  fprintf(graph, "node { name: \"%s\" op: \"VariableV2\" %s " DTYPE_IS_DOUBLE " " SCALAR " }\n", name, on_ps(ps));
  write_constant(zero, ps, 0);
  fprintf(graph, "node { name: \"%s/init\" op: \"Assign\" input: \"%s\" input: \"%s\" %s " T_DOUBLE " }\n", name, name, zero, on_ps(ps));
}

static void write_add(const char *name, const char *to, const char *what, const char *after, int ps) {
  fprintf(graph, "node { name: \"%s\" op: \"AssignAdd\" input: \"%s\" input: \"%s\" %s %s " T_DOUBLE " }\n", name, to, what, after,
          on_ps(ps));
}

static void write_group(const char *name, const char *inputs) {
  fprintf(graph, "node { name: \"%s\" op: \"NoOp\" device: \"/job:worker\" %s }\n", name, inputs);
}

static void write_counters(int ps) {
  char names[6][16];
  const char *of[] = {"c", "s", "l", "one", "count", "add"};
  for (int i = 0; i < 6; i++)
    snprintf(names[i], sizeof names[i], "%s%d", of[i], ps);
  for (int i = 0; i < 3; i++)
    write_variable(names[i], ps);
  write_constant(names[3], ps, 1);
  write_add(names[4], names[0], names[3], "", ps);
  write_add(names[5], names[1], "sum", "", ps);
  write_add(ps ? "late1" : "late0", names[2], names[3], "input: \"^applied\"", ps);
}

#define COMPONENTS "attr { key: \"component_types\" value { list { type: DT_DOUBLE } } }"
#define T_COMPONENTS "attr { key: \"Tcomponents\" value { list { type: DT_DOUBLE } } }"

static void write_queue(void) {
  fprintf(graph, "node { name: \"q\" op: \"FIFOQueueV2\" %s " COMPONENTS " attr { key: \"shapes\" value { list { shape { } } } } }\n",
          on_ps(0));
  fprintf(graph, "node { name: \"tokens\" op: \"Placeholder\" device: \"/job:worker\" " DTYPE_IS_DOUBLE
                 " attr { key: \"shape\" value { shape { dim { size: -1 } } } } }\n");
  fprintf(graph, "node { name: \"fill\" op: \"QueueEnqueueManyV2\" input: \"q\" input: \"tokens\" %s " T_COMPONENTS " }\n", on_ps(0));
  fprintf(graph, "node { name: \"token\" op: \"QueueDequeueV2\" input: \"q\" %s " COMPONENTS " }\n", on_ps(0));
  write_variable("t", 1);
  write_add("take_there", "t", "token", "", 1);
  write_group("take", "input: \"^take_there\" input: \"^count0\"");
}

/* What the pass `assign` makes one kernel of, which takes the old value in place: else two workers would lose each other's. */
static void write_assignment(void) {
  write_variable("a", 1);
  fprintf(graph, "node { name: \"more\" op: \"AddV2\" input: \"a\" input: \"one1\" %s " T_DOUBLE " }\n", on_ps(1));
  fprintf(graph, "node { name: \"assign_more\" op: \"Assign\" input: \"a\" input: \"more\" %s " T_DOUBLE " }\n", on_ps(1));
  write_group("assign", "input: \"^assign_more\" input: \"^count0\"");
}

/* The draw goes to `first`; what `second` gets has come past the worker again. */
static void write_pair(void) {
  fprintf(graph,
          "node { name: \"shape\" op: \"Const\" device: \"/job:worker\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: "
          "\"value\" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 } } } } } }\n");
  for (int i = 0; i < 2; i++)
    fprintf(graph,
            "node { name: \"%s\" op: \"Const\" device: \"/job:worker\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: "
            "\"value\" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: %d } } } }\n",
            i ? "most" : "least", i ? 1000 : 1);
  fprintf(graph,
          "node { name: \"dice\" op: \"RandomUniformInt\" input: \"shape\" input: \"least\" input: \"most\" device: \"/job:worker\" "
          "attr { key: \"Tout\" value { type: DT_INT32 } } " INT_T " attr { key: \"seed\" value { i: 7 } } }\n"
          "node { name: \"draw\" op: \"Cast\" input: \"dice\" device: \"/job:worker\" attr { key: \"SrcT\" value { type: DT_INT32 } } "
          "attr { key: \"DstT\" value { type: DT_DOUBLE } } }\n");
  write_variable("first", 0);
  write_variable("second", 0);
  write_add("add_first", "first", "draw", "", 0);
  fprintf(graph, "node { name: \"none\" op: \"Sub\" input: \"add_first\" input: \"add_first\" device: \"/job:worker\" " T_DOUBLE " }\n"
                 "node { name: \"again\" op: \"AddV2\" input: \"none\" input: \"draw\" device: \"/job:worker\" " T_DOUBLE " }\n");
  write_add("add_second", "second", "again", "", 0);
  write_group("pair", "input: \"^add_second\"");
}

static void write_graph(const char *path) {
  graph = fopen(path, "w");
  assert_non_null(graph);
  fprintf(graph, "node { name: \"x\" op: \"Placeholder\" device: \"/job:worker\" " DTYPE_IS_DOUBLE
                 " attr { key: \"shape\" value { shape { dim { size: -1 } } } } }\n"
                 "node { name: \"axis\" op: \"Const\" device: \"/job:worker\" attr { key: \"dtype\" value { type: "
                 "DT_INT32 } } attr { key: "
                 "\"value\" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } } }\n"
                 "node { name: \"sum\" op: \"Sum\" input: \"x\" input: \"axis\" device: \"/job:worker\" " T_DOUBLE
                 " attr { key: \"Tidx\" value { type: DT_INT32 } } }\n");
  write_counters(0);
  write_counters(1);
  write_queue();
  write_pair();
  write_assignment();
  write_group("applied", "input: \"^count0\" input: \"^count1\" input: \"^add0\" input: \"^add1\"");
  write_group("train", "input: \"^applied\"");
  write_group("late", "input: \"^late0\" input: \"^late1\"");
  write_group("init", "input: \"^c0/init\" input: \"^c1/init\" input: \"^s0/init\" input: \"^s1/init\" input: \"^l0/init\" "
                      "input: \"^l1/init\" input: \"^t/init\" input: \"^first/init\" input: \"^second/init\" input: \"^a/init\"");
  fclose(graph);
}

/* ---- the cluster ---- */

static struct process *ps[2], *workers[2];
static unsigned seed;

static void start_ps(void) {
  char name[16];
  for (int i = 0; i < 2; i++) {
    snprintf(name, sizeof name, "out/ps_%d", i);
    ps[i] = process_start(name, "--timeout 60");
  }
}

static void start_worker(int worker, const char *phases) {
  char words[1024], name[32];
  snprintf(name, sizeof name, "out/worker_%d", worker);
  snprintf(words, sizeof words, "--timeout 60 %s", phases);
  workers[worker] = process_start(name, words);
}

static void start_workers(const char *phases) {
  start_worker(0, phases);
  start_worker(1, phases);
}

static bool has_finished(int worker) {
  int code;
  if (process_has_ended(workers[worker], &code)) {
    if (code != 0)
      process_show(workers[worker]);
    assert_int_equal(code, 0);
  }
  return workers[worker]->id == 0;
}
/* Whether a task that was asked what it is at (SIGUSR1) has said that it misses the worker: who has said good-bye is not missed. */
static bool says_it_misses(const char *text, int worker) {
  char name[40];
  snprintf(name, sizeof name, "/job:worker/task:%d at ", worker);
  for (const char *at = text; (at = strstr(at, name)); at++) {
    const char *behind = strchr(at + strlen(name), ' ');
    if (behind && strncmp(behind, " is not connected", 17) == 0)
      return true;
  }
  return false;
}
/* Whether a ps waits for a worker that was killed: it has not met it yet, or has not heard its good-bye. One that it has heard of from both
 * has ended its command, though its process may have been there still. */
static bool is_awaited(int worker) {
  size_t seen[2];
  for (int i = 0; i < 2; i++)
    seen[i] = strlen(process_text(ps[i]));
  unsigned wait_us = 1000; /* it is to be started again at once, most often */
  for (double until = seconds_now() + 5; seconds_now() < until; usleep(wait_us), wait_us += wait_us / 2)
    for (int i = 0; i < 2; i++) {
      if (says_it_misses(process_text(ps[i]) + seen[i], worker))
        return true;
      if (ps[i]->id > 0)
        kill(ps[i]->id, SIGUSR1);
    }
  return false;
}
/* Kills a worker every now and then, and starts it again with the same words; `kills` times while both work: who has done all steps and
 * left, and is started again, is another command, and does them once more. */
static void kill_at_random(const char *phases, int kills, int first, int count) {
  int killed = 0;
  for (int i = 0; i < kills; i++) {
    int victim = first + rand_r(&seed) % count;
    usleep((unsigned)rand_r(&seed) % 150000);
    if (has_finished(victim) || has_finished(1 - victim) || strstr(process_text(workers[victim]), "steps were done before"))
      continue;
    bool was_there = process_kill(workers[victim]);
    killed += was_there;
    if (rand_r(&seed) % 2)
      usleep((unsigned)rand_r(&seed) % 50000);
    if (!was_there || !is_awaited(victim))
      break;
    start_worker(victim, phases);
  }
  assert_true(killed > 0);
}

static void workers_must_finish(void) {
  for (int i = 0; i < 2; i++)
    if (workers[i]->id > 0)
      process_must_end(workers[i], 0, 100);
}

struct values {
  double c0, c1, s0, s1, l0, l1, t, first, second, a;
};
#define VALUES 10

static struct values look(void) {
  static const char *const names[] = {"c0", "c1", "s0", "s1", "l0", "l1", "t", "first", "second", "a"};
  struct values values;
  char words[512] = "--timeout 60 --entry look", path[160];
  for (int i = 0; i < VALUES; i++)
    snprintf(words + strlen(words), sizeof words - strlen(words), " --fetch %s=%s.npy", names[i], names[i]);
  process_must_end(process_start("out/worker_2", words), 0, 60);
  for (int i = 0; i < VALUES; i++) {
    struct tensor *value;
    snprintf(path, sizeof path, "%s/%s.npy", folder, names[i]);
    assert_int_equal(npy_read(path, &value), OK);
    ((double *)&values)[i] = *(double *)value->data;
    tensor_release(value);
  }
  for (int i = 0; i < 2; i++)
    process_must_end(ps[i], 0, 30);
  return values;
}

/* What both workers add in their steps: of three replicas, two; a row a step. */
static double rows_of(int worker, int64_t steps) {
  double sum = 0;
  for (int64_t step = 0; step < steps; step++)
    sum += (double)((step * 3 + worker) % ROWS + 1);
  return sum;
}

static const char *train(const char *entry, int steps) {
  static char words[4][256];
  static int turn;
  snprintf(words[++turn % 4], sizeof words[0], "--entry %s --feed x=x.npy --batch 1 --steps %d", entry, steps);
  return words[turn % 4];
}

static void must_be(double is, double wanted, const char *what) {
  for (int i = 0; is != wanted && i < process_count; i++)
    process_show(&processes[i]);
  if (is != wanted)
    test_fail("%s is %.0f, must be %.0f", what, is, wanted);
}

static void must_have_trained(struct values is, int64_t steps) {
  must_be(is.c0, 2 * (double)steps, "c0");
  must_be(is.c1, 2 * (double)steps, "c1");
  must_be(is.s0, rows_of(0, steps) + rows_of(1, steps), "s0");
  must_be(is.s1, rows_of(0, steps) + rows_of(1, steps), "s1");
}

/* ---- tests ---- */

static void workers_that_are_killed_at_random_apply_each_step_once_with_the_same_rows(void **state) {
  (void)state;
  for (seed = 1; seed <= 3; seed++) {
    start_ps();
    start_workers(train("train", STEPS));
    kill_at_random(train("train", STEPS), 12, 0, 2);
    workers_must_finish();
    must_have_trained(look(), STEPS);
    process_kill_all(state);
  }
}

static void what_depends_on_changes_of_its_own_task_is_applied_once_too(void **state) {
  (void)state;
  for (seed = 11; seed <= 13; seed++) {
    start_ps();
    start_workers(train("late", STEPS));
    kill_at_random(train("late", STEPS), 12, 0, 2);
    workers_must_finish();
    struct values is = look();
    must_have_trained(is, STEPS);
    must_be(is.l0, 2 * STEPS, "l0");
    must_be(is.l1, 2 * STEPS, "l1");
    process_kill_all(state);
  }
}

static void what_is_assigned_in_place_of_its_old_value_is_assigned_once(void **state) {
  (void)state;
  for (seed = 61; seed <= 63; seed++) {
    start_ps();
    start_workers("--entry assign --steps 6000");
    kill_at_random("--entry assign --steps 6000", 12, 0, 2);
    workers_must_finish();
    struct values is = look();
    must_be(is.c0, 12000, "c0");
    must_be(is.a, 12000, "a");
    process_kill_all(state);
  }
}

static void a_step_that_reads_back_what_it_changed_is_of_one_try(void **state) {
  (void)state;
  for (seed = 51; seed <= 53; seed++) {
    start_ps();
    start_workers("--entry pair --steps 6000");
    kill_at_random("--entry pair --steps 6000", 12, 0, 2);
    workers_must_finish();
    struct values is = look();
    must_be(is.second, is.first, "second");
    process_kill_all(state);
  }
}

static void a_token_that_a_killed_worker_took_is_its_successors(void **state) {
  (void)state;
  char take[256];
  snprintf(take, sizeof take, "--entry take --steps %d", TOKENS / 2);
  for (seed = 21; seed <= 23; seed++) {
    start_ps();
    start_worker(0, "--entry fill --feed tokens=tokens.npy");
    process_must_end(workers[0], 0, 60);
    start_workers(take);
    kill_at_random(take, 10, 0, 2);
    workers_must_finish();
    struct values is = look();
    must_be(is.c0, TOKENS, "c0");
    must_be(is.t, (double)TOKENS * (TOKENS + 1) / 2, "t");
    process_kill_all(state);
  }
}

static void a_chief_that_is_started_again_leaves_what_lives_alone(void **state) {
  (void)state;
  start_ps();
  start_workers(train("train", STEPS));
  seed = 31;
  kill_at_random(train("train", STEPS), 8, 0, 1);
  workers_must_finish();
  must_have_trained(look(), STEPS);
}

static void a_worker_that_had_finished_adds_its_steps_again(void **state) {
  (void)state;
  start_ps();
  for (int turn = 0; turn < 2; turn++) {
    start_workers(train("train", 500));
    workers_must_finish();
  }
  struct values is = look();
  must_be(is.c0, 2000, "c0");
  must_be(is.c1, 2000, "c1");
}

/* Asks the worker what it is at until it says so; false: it has ended, or a minute is over. */
static bool worker_comes_to_say(int w, const char *words) {
  for (double until = seconds_now() + 60; seconds_now() < until && !process_said(workers[w], words) && process_is_alive(workers[w]);) {
    usleep(100000);
    kill(workers[w]->id, SIGUSR1);
  }
  return process_said(workers[w], words);
}
/* One has done its steps and stops; whether the other one then is seen as it leaves. It does not wait for who has been silent for a few
 * seconds: its steps must not take longer. */
static bool one_leaves_while_the_other_stops(int steps) {
  start_ps();
  start_worker(0, train("train", 100));
  start_worker(1, train("train", steps));
  if (!worker_comes_to_say(0, "has finished and waits for the others"))
    return false;
  kill(workers[0]->id, SIGSTOP);
  return worker_comes_to_say(1, "worker/task:1: leaves") && process_is_alive(workers[1]);
}

/* While it waits for one that is silent to hear its good-bye, its command is not over. */
static void a_worker_that_is_killed_as_it_leaves_has_nothing_left_to_do(void **state) {
  int steps = 4000;
  for (; steps > 100 && !(one_leaves_while_the_other_stops(steps) && process_kill(workers[1])); steps /= 2) /* it may end by itself */
    process_kill_all(state);
  assert_true(steps > 100); /* or this has shown nothing */
  start_worker(1, train("train", steps));
  usleep(500000);
  kill(workers[0]->id, SIGCONT);
  workers_must_finish();
  must_be(look().c0, 100 + steps, "c0");
}

static void phases_that_concern_different_ps_count_alike(void **state) {
  (void)state;
  char phases[512];
  snprintf(phases, sizeof phases, "--entry one --steps 1000 %s --entry one --steps 1000", train("train", 1000));
  start_ps();
  start_workers(phases);
  seed = 41;
  kill_at_random(phases, 10, 0, 2);
  workers_must_finish();
  struct values is = look();
  must_be(is.c0, 6000, "c0");
  must_be(is.c1, 2000, "c1");
}

static void where_a_killed_worker_goes_on_is_said(void **state) {
  (void)state;
  bool is_said = false;
  start_ps();
  start_workers(train("train", 100000000));
  for (int turn = 0; turn < 20 && !is_said; turn++) { /* it may be killed before its first step */
    usleep(500000);
    is_said = process_said(workers[1], "worker_1: goes on with step ") && process_said(workers[1], " of 100000000");
    process_kill(workers[1]);
    start_worker(1, train("train", 100000000));
  }
  assert_true(is_said);
}

/* ---- the build ---- */

static void write_doubles(const char *name, int64_t count) {
  char path[160];
  struct tensor *tensor;
  assert_int_equal(tensor_create(DTYPE_DOUBLE, &(struct shape){1, {count}}, &tensor), OK);
  for (int64_t i = 0; i < count; i++)
    ((double *)tensor->data)[i] = (double)(i + 1);
  snprintf(path, sizeof path, "%s/%s.npy", folder, name);
  assert_int_equal(npy_write(path, tensor), OK);
  tensor_release(tensor);
}

static int build(void **state) {
  char path[160], command[2048];
  (void)state;
  if (!temp_folder(folder))
    return 1;
  snprintf(path, sizeof path, "%s/graph.pbtxt", folder);
  write_graph(path);
  write_doubles("x", ROWS);
  write_doubles("tokens", TOKENS);
  snprintf(path, sizeof path, "%s/cluster.json", folder);
  FILE *file = fopen(path, "w");
  fprintf(file, "{\"ps\": [\"unix:%s/p0\", \"unix:%s/p1\"], \"worker\": [\"unix:%s/w0\", \"unix:%s/w1\", \"unix:%s/w2\"]}", folder, folder,
          folder, folder, folder);
  fclose(file);
  snprintf(command, sizeof command,
           "cd %s && " BINARY_DIR "/tfc build graph.pbtxt --cluster cluster.json -o out --replicate worker --entry 'init: -> | init'"
           " --entry 'train: x -> | train' --entry 'late: x -> | late' --entry 'take: -> | take' --entry 'fill: tokens "
           "-> | fill' --entry 'pair: -> | pair' --entry 'assign: -> | assign'"
           " --entry 'one: -> | count0' --entry 'look: -> c0, c1, s0, s1, l0, l1, t, first, second, a' >build.log 2>&1 || { cat "
           "build.log; false; }",
           folder);
  return system(command) != 0;
}

static int clean(void **state) {
  process_kill_all(state);
  return temp_folder_remove(folder);
}

/* A word: only the tests whose names match it. */
int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(workers_that_are_killed_at_random_apply_each_step_once_with_the_same_rows, process_kill_all),
    cmocka_unit_test_teardown(what_depends_on_changes_of_its_own_task_is_applied_once_too, process_kill_all),
    cmocka_unit_test_teardown(what_is_assigned_in_place_of_its_old_value_is_assigned_once, process_kill_all),
    cmocka_unit_test_teardown(a_step_that_reads_back_what_it_changed_is_of_one_try, process_kill_all),
    cmocka_unit_test_teardown(a_token_that_a_killed_worker_took_is_its_successors, process_kill_all),
    cmocka_unit_test_teardown(a_chief_that_is_started_again_leaves_what_lives_alone, process_kill_all),
    cmocka_unit_test_teardown(a_worker_that_had_finished_adds_its_steps_again, process_kill_all),
    cmocka_unit_test_teardown(a_worker_that_is_killed_as_it_leaves_has_nothing_left_to_do, process_kill_all),
    cmocka_unit_test_teardown(phases_that_concern_different_ps_count_alike, process_kill_all),
    cmocka_unit_test_teardown(where_a_killed_worker_goes_on_is_said, process_kill_all),
  };
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, build, clean);
}
