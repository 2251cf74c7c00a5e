/* test_resume.c: a job that is killed and started again gives what one gives that was not, bit for bit: random numbers and
 * iterators of its workers, too.
 *
 * One ps, two workers, each with a variable of its own on the ps: each step makes it half of what it was, and adds a random
 * number and the next element of a dataset, both of the worker. So every step and its place in the order count. */
#include "tests/support/process.h"

#include "base/npy.h"
#include <stdint.h>

/* ---- the graph ---- */

static FILE *graph;

#define TYPE(key, type) "attr { key: \"" key "\" value { type: " type " } } "
#define WORKER "device: \"/job:worker/task:%d\" "
#define PS "device: \"/job:ps/task:0\" "
#define ELEMENTS \
  "attr { key: \"output_types\" value { list { type: DT_INT64 } } } attr { key: \"output_shapes\" value { list { shape { } } } } "

static void write_constants(int w) {
  static const struct {
    const char *name, *type, *value;
  } constants[] = {
    {"begin", "DT_INT64", "tensor_shape { } int64_val: 3"},  {"end", "DT_INT64", "tensor_shape { } int64_val: 1000000"},
    {"stride", "DT_INT64", "tensor_shape { } int64_val: 7"}, {"shape", "DT_INT32", "tensor_shape { dim { size: 0 } }"},
    {"least", "DT_INT32", "tensor_shape { } int_val: 0"},    {"most", "DT_INT32", "tensor_shape { } int_val: 100000"},
  };
  for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
    fprintf(graph,
            "node { name: \"%s%d\" op: \"Const\" " WORKER
            "attr { key: \"dtype\" value { type: %s } } attr { key: \"value\" value { tensor { dtype: %s %s } } } }\n",
            constants[i].name, w, w, constants[i].type, constants[i].type, constants[i].value);
}

static void write_input(int w) {
  write_constants(w);
  fprintf(graph,
          "node { name: \"rows%d\" op: \"RangeDataset\" input: \"begin%d\" input: \"end%d\" input: \"stride%d\" " WORKER ELEMENTS "}\n"
          "node { name: \"it%d\" op: \"IteratorV2\" " WORKER ELEMENTS
          "attr { key: \"shared_name\" value { s: \"it%d\" } } attr { key: \"container\" value { s: \"\" } } }\n"
          "node { name: \"make%d\" op: \"MakeIterator\" input: \"rows%d\" input: \"it%d\" " WORKER "}\n"
          "node { name: \"row%d\" op: \"IteratorGetNext\" input: \"it%d\" " WORKER ELEMENTS "}\n"
          "node { name: \"dice%d\" op: \"RandomUniformInt\" input: \"shape%d\" input: \"least%d\" input: \"most%d\" " WORKER TYPE(
            "T", "DT_INT32") TYPE("Tout", "DT_INT32") "attr { key: \"seed\" value { i: %d } } }\n",
          w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w + 5);
  fprintf(
    graph,
    "node { name: \"real_row%d\" op: \"Cast\" input: \"row%d\" " WORKER TYPE("SrcT", "DT_INT64") TYPE(
      "DstT", "DT_DOUBLE") "}\n"
                           "node { name: \"real_dice%d\" op: \"Cast\" input: \"dice%d\" " WORKER TYPE("SrcT", "DT_INT32") TYPE(
                             "DstT",
                             "DT_DOUBLE") "}\n"
                                          "node { name: \"more%d\" op: \"AddV2\" input: \"real_row%d\" input: \"real_dice%d\" " WORKER TYPE(
                                            "T", "DT_DOUBLE") "}\n",
    w, w, w, w, w, w, w, w, w, w);
}

static void write_constant(const char *name, int w, double value) {
  fprintf(graph,
          "node { name: \"%s%d\" op: \"Const\" " PS TYPE("dtype", "DT_DOUBLE") "attr { key: \"value\" value { tensor { dtype: DT_DOUBLE "
                                                                               "tensor_shape { } double_val: %g } } } }\n",
          name, w, value);
}

static void write_history(int w) {
  write_constant("zero", w, 0);
  write_constant("half", w, 0.5);
  fprintf(
    graph,
    "node { name: \"h%d\" op: \"VariableV2\" " PS TYPE(
      "dtype",
      "DT_DOUBLE") "attr { key: \"shape\" value { shape { } } } }\n"
                   "node { name: \"h%d/init\" op: \"Assign\" input: \"h%d\" input: \"zero%d\" " PS TYPE(
                     "T",
                     "DT_DOUBLE") "}\n"
                                  "node { name: \"less%d\" op: \"Mul\" input: \"h%d\" input: \"half%d\" " PS TYPE(
                                    "T",
                                    "DT_DOUBLE") "}\n"
                                                 "node { name: \"next%d\" op: \"AddV2\" input: \"less%d\" input: \"more%d\" " PS TYPE(
                                                   "T",
                                                   "DT_DOUBLE") "}\n"
                                                                "node { name: \"set%d\" op: \"Assign\" input: \"h%d\" input: \"next%d\" " PS
                                                                  TYPE("T", "DT_DOUBLE") "}\n",
    w, w, w, w, w, w, w, w, w, w, w, w, w);
}

static int build(void **state) {
  char path[160], command[2048];
  (void)state;
  if (!temp_folder(folder))
    return 1;
  snprintf(path, sizeof path, "%s/graph.pbtxt", folder);
  graph = fopen(path, "w");
  for (int w = 0; w < 2; w++) {
    write_input(w);
    write_history(w);
  }
  fclose(graph);
  snprintf(path, sizeof path, "%s/cluster.json", folder);
  FILE *file = fopen(path, "w");
  fprintf(file, "{\"ps\": [\"unix:%s/p0\"], \"worker\": [\"unix:%s/w0\", \"unix:%s/w1\"]}", folder, folder, folder);
  fclose(file);
  snprintf(command, sizeof command,
           "cd %s && " BINARY_DIR
           "/tfc build graph.pbtxt --cluster cluster.json -o out --entry 'init: -> | h0/init, h1/init' --entry 'make0: -> | make0'"
           " --entry 'make1: -> | make1' --entry 'train0: -> set0' --entry 'train1: -> set1' >build.log 2>&1 || { cat build.log; false; }",
           folder);
  return system(command) != 0;
}

/* ---- the job ---- */

static struct process *ps, *workers[2];
static unsigned seed;
static const char *options;
static int steps = 12000; /* more than are done before the last kill: who is killed when it leaves comes back to nobody */

static void start_ps(void) { ps = process_start("out/ps_0", "--timeout 60"); }

static void start_worker(int w) {
  char name[32], words[512];
  snprintf(name, sizeof name, "out/worker_%d", w);
  snprintf(words, sizeof words, "--timeout 60 %s --log-every 0 --entry make%d --entry train%d --steps %d --fetch set%d=h%d.npy", options, w,
           w, steps, w, w);
  workers[w] = process_start(name, words);
}

static void start_all(void) {
  start_ps();
  start_worker(0);
  start_worker(1);
}

static void end_all(double out[2]) {
  for (int w = 0; w < 2; w++)
    if (workers[w]->id > 0)
      process_must_end(workers[w], 0, 100);
  process_must_end(ps, 0, 60);
  for (int w = 0; w < 2; w++) {
    char path[160];
    struct tensor *value;
    snprintf(path, sizeof path, "%s/h%d.npy", folder, w);
    assert_int_equal(npy_read(path, &value), OK);
    out[w] = ((double *)value->data)[value->count - 1];
    tensor_release(value);
  }
}

static bool has_ended(int w) {
  int code;
  return workers[w]->id == 0 || process_has_ended(workers[w], &code);
}

static void kill_workers(int kills) {
  for (int i = 0; i < kills; i++) {
    int w = rand_r(&seed) % 2;
    usleep(20000 + (unsigned)rand_r(&seed) % 100000);
    if (has_ended(w))
      continue;
    process_kill(workers[w]);
    start_worker(w);
  }
}

static void remove_checkpoints(void) {
  char command[160];
  snprintf(command, sizeof command, "rm -rf %s/saved", folder);
  assert_int_equal(system(command), 0);
}

static void must_equal(const double is[2], const double wanted[2]) {
  for (int w = 0; w < 2; w++) {
    for (int i = 0; is[w] != wanted[w] && i < process_count; i++)
      process_show(&processes[i]);
    if (is[w] != wanted[w])
      test_fail("seed %u: worker %d has %.17g, must have %.17g", seed, w, is[w], wanted[w]);
  }
}

static void undisturbed(double out[2]) {
  options = "";
  start_all();
  end_all(out);
}

/* ---- tests ---- */

static void a_killed_worker_draws_and_reads_what_it_would_have(void **state) {
  double wanted[2], is[2];
  undisturbed(wanted);
  for (unsigned turn = 1; turn <= 3; turn++) {
    seed = turn;
    start_all();
    kill_workers(10);
    end_all(is);
    must_equal(is, wanted);
    process_kill_all(state);
  }
}

static void what_goes_back_to_a_checkpoint_draws_and_reads_the_same_again(void **state) {
  double wanted[2], is[2];
  undisturbed(wanted);
  for (unsigned turn = 11; turn <= 13; turn++) {
    seed = turn;
    remove_checkpoints();
    options = "--checkpoint-dir saved --save-steps 20";
    start_all();
    for (int i = 0; i < 4; i++) {
      kill_workers(2);
      if (has_ended(0) || has_ended(1))
        break;
      process_kill(ps);
      start_ps();
    }
    end_all(is);
    must_equal(is, wanted);
    process_kill_all(state);
  }
}

/* Nothing is saved yet: all begin again, those that have lived on, too. */
static void what_goes_back_to_the_start_draws_and_reads_from_the_start(void **state) {
  double wanted[2], is[2];
  (void)state;
  undisturbed(wanted);
  seed = 0;
  remove_checkpoints();
  options = "--checkpoint-dir saved --save-steps 1000000";
  start_all();
  usleep(250000);
  assert_false(has_ended(0) || has_ended(1));
  process_kill(ps);
  start_ps();
  end_all(is);
  must_equal(is, wanted);
}

static void a_whole_job_that_is_started_again_goes_on_with_what_its_workers_had(void **state) {
  double wanted[2], is[2];
  steps = 20000; /* more than are done before the first end */
  undisturbed(wanted);
  seed = 21;
  remove_checkpoints();
  options = "--checkpoint-dir saved --save-steps 20";
  for (int i = 0; i < 4; i++) {
    start_all();
    usleep(150000 + (unsigned)rand_r(&seed) % 100000);
    assert_false(has_ended(0) || has_ended(1));
    process_kill_all(state);
  }
  start_all();
  end_all(is);
  must_equal(is, wanted);
}

static int clean(void **state) {
  process_kill_all(state);
  return temp_folder_remove(folder);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(a_killed_worker_draws_and_reads_what_it_would_have, process_kill_all),
    cmocka_unit_test_teardown(what_goes_back_to_a_checkpoint_draws_and_reads_the_same_again, process_kill_all),
    cmocka_unit_test_teardown(what_goes_back_to_the_start_draws_and_reads_from_the_start, process_kill_all),
    cmocka_unit_test_teardown(a_whole_job_that_is_started_again_goes_on_with_what_its_workers_had, process_kill_all),
  };
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, build, clean);
}
