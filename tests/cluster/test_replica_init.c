/* test_replica_init.c: what each replica has of its own is initialised by each, what they share by the chief alone. */
#include "base/npy.h"
#include "tests/support/shell.h"

#define TFC BINARY_DIR "/tfc"
#define STEPS "--timeout 20 --entry step --feed x=x.npy --steps 50 "

/* The ps has 10 and four for each step of both: the first value was not given once more. */
static void a_replica_that_begins_late_leaves_what_is_shared(void **state) {
  (void)state;
  int code = run("out/ps_0 & ps=$!; out/worker_0 " STEPS "--fetch shared=- >/dev/null || exit; "
                 "out/worker_1 " STEPS "| tail -n 2 && wait $ps");
  if (code != 0)
    test_fail("%d\n%s", code, said);
  must_say("shared = 410");
  must_say("own = [201 205 207]");
}

/* On one core the first replica waits in its step when the second one takes its state: nothing of that step may be in it, such as the count
 * of the optimizer's steps, which needs no mean. */
static void a_state_that_is_taken_from_a_replica_is_of_no_step_that_waits(void **state) {
  (void)state;
  int code = run("echo '{\"worker\": [\"unix:'$PWD'/a\", \"unix:'$PWD'/b\"]}' >workers.json; " TFC " build " SOURCE_DIR
                 "/tests/golden/strategies/own_iterator/model --cluster workers.json --strategy allreduce -o two --quiet || exit; "
                 "cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//'); phases='--entry train --feed x=zeros(4,5) --feed y=zeros(4,3) "
                 "--steps 3 --entry values'; taskset -c $cpu two/worker_0 $phases >a.txt 2>a.err & first=$!; "
                 "taskset -c $cpu two/worker_1 $phases >b.txt 2>b.err; wait $first && grep -h ^v2 a.txt b.txt");
  if (code != 0 || strcmp(said, "v2_adam_iteration = 6\nv2_adam_iteration = 6\n") != 0)
    test_fail("%d\n%s", code, said);
}

/* Two replicas train, one of them is killed three times and started again; both must end with what they have when nobody is. */
static void train_and_kill(const char *model, const char *killed, const char *other) {
  char command[3000];
  snprintf(command, sizeof command,
           "echo '{\"worker\": [\"unix:'$PWD'/c\", \"unix:'$PWD'/d\"]}' >turns.json; " TFC " build " SOURCE_DIR
           "/tests/golden/strategies/%s/model --cluster turns.json --strategy allreduce -o turns --quiet || exit; "
           "start() { turns/$1 --timeout 20 --entry train --feed x=x2.npy --feed y=y.npy --steps 6000 --log-every 0 --fetch loss=$1.npy "
           "--entry values >$1.txt 2>>$1.err & }; both() { start %s; killed=$!; start %s; other=$!; }; "
           "both; wait $killed && wait $other && cmp worker_0.txt worker_1.txt || exit; mv worker_0.txt once.txt; "
           "both; for i in 1 2 3; do sleep 0.1; kill -9 $killed; wait $killed; start %s; killed=$!; done 2>kills.txt; "
           "wait $killed && wait $other || cat worker_0.err worker_1.err; cmp worker_0.txt once.txt && cmp worker_1.txt once.txt",
           model, killed, other, killed);
  int code = run(command);
  if (code != 0)
    test_fail("%d\n%s", code, said);
}

/* A step of three turns: whoever is killed is between two of their means as a rule. The other one then has the state of the step before,
 * and both do the step again. */
static void a_replica_that_is_killed_between_two_means_changes_nothing_twice(void **state) {
  (void)state;
  train_and_kill("epochs", "worker_1", "worker_0");
}

/* It is made anew, and begins, when the step is tried again. */
static void a_step_that_is_tried_again_has_an_iterator_of_its_own(void **state) {
  (void)state;
  train_and_kill("own_iterator", "worker_0", "worker_1");
}

static status rows_write(const char *name, const struct shape *shape) {
  char path[TEMP_PATH_SIZE + 16];
  float rows[20];
  struct tensor *tensor;
  for (int i = 0; i < 20; i++)
    rows[i] = shape->rank == 1 ? 1 : (float)(i * i % 7) - 3;
  TRY(tensor_copy_in(DTYPE_FLOAT, shape, rows, &tensor));
  snprintf(path, sizeof path, "%s/%s", folder, name);
  status result = npy_write(path, tensor);
  tensor_release(tensor);
  return result;
}
static status feeds_write(void) {
  TRY(rows_write("x.npy", &(struct shape){1, {4}}));
  TRY(rows_write("x2.npy", &(struct shape){2, {4, 5}}));
  return rows_write("y.npy", &(struct shape){2, {4, 3}});
}

static int build(void **state) {
  char command[4096];
  (void)state;
  if (!temp_folder(folder) || feeds_write() != OK)
    return 1;
  snprintf(command, sizeof command,
           "cd %s && echo '{\"ps\": [\"unix:%s/p\"], \"worker\": [\"unix:%s/v\", \"unix:%s/w\"]}' >cluster.json && " TFC
           " build " SOURCE_DIR
           "/tests/golden/models/replica_bare_init/graph.pb --cluster cluster.json --replicate worker --entry 'init: -> | init' "
           "--entry 'step: x -> own, shared' -o out --quiet",
           folder, folder, folder, folder);
  return system(command) != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_replica_that_begins_late_leaves_what_is_shared),
    cmocka_unit_test(a_state_that_is_taken_from_a_replica_is_of_no_step_that_waits),
    cmocka_unit_test(a_replica_that_is_killed_between_two_means_changes_nothing_twice),
    cmocka_unit_test(a_step_that_is_tried_again_has_an_iterator_of_its_own),
  };
  return cmocka_run_group_tests(tests, build, folder_clean);
}
