/* test_ends.c: how tasks and tfc end: results that cannot be written, signals, a ps that is stopped, tfc run that is killed. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/shell.h"

#define TFC BINARY_DIR "/tfc"
#define MODELS SOURCE_DIR "/tests/golden/models/"
#define ONE "one/localhost_0 --entry main --feed 'Placeholder=zeros(2,4)' "
#define TRAIN "--entry train --feed 'x=zeros(64,64)' --feed 'label=zeros(64)' --batch 16 "

static void must_end(const char *command, int code) {
  int is = run(command);
  if (is != code)
    test_fail("%s: %d, not %d\n%s", command, is, code, said);
}
/* ---- results ---- */

static void what_cannot_be_written_ends_with_74(void **state) {
  (void)state;
  static const char *const commands[] = {
    ONE "--fetch probs=/dev/full",
    ONE "--fetch probs=/nowhere/y.npy",
    ONE "--fetch probs=.",
    ONE "--steps 3 --fetch probs=/dev/full",
    ONE "--checkpoint-dir /proc/nowhere",
    ONE ">/dev/full",
    "one/localhost_0 --help >/dev/full",
    TFC " ops >/dev/full",
    TFC " run one --entry main --feed 'Placeholder=zeros(2,4)' >/dev/full",
  };
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    must_end(commands[i], 74);
    must_say("error: DATA_LOSS: ");
  }
}

static void a_device_stays_a_device_and_a_dash_is_standard_output(void **state) {
  (void)state;
  struct stat is;
  must_end(ONE "--fetch probs=/dev/null", 0);
  assert_true(stat("/dev/null", &is) == 0 && S_ISCHR(is.st_mode));
  must_end(ONE "--fetch probs=- >piped && " ONE "--fetch probs=plain.npy && cmp piped plain.npy", 0);
  must_end("mkfifo pipe && { cat pipe >read & } && " ONE "--fetch probs=pipe && wait && cmp read plain.npy && test -p pipe", 0);
}

/* ---- signals ---- */

/* Starts the command in the background of the shell, waits until `word` is in its output (the file `log`), and goes on with `then`. */
#define BEGIN(command, word) command " >log 2>&1 & id=$!; for i in $(seq 200); do grep -q '" word "' log && break; sleep 0.05; done; "

static void a_question_does_not_end_a_task_which_says_what_it_is_at(void **state) {
  (void)state;
  must_end(
    BEGIN(
      "cluster/worker_0 " TRAIN "--timeout 20",
      "waiting for") "kill -USR1 $id; for i in $(seq 100); do grep -q 'no step runs' log && break; sleep 0.05; done; cat log; kill -TERM $id; wait $id",
    143);
  must_say("/job:worker/task:0: no step runs; ");
  must_say("/job:ps/task:0 at unix:");
  must_say(" is not connected");
  must_end(BEGIN(TFC " run cluster " TRAIN "--steps 100000000 --log-every 1",
                 "loss") "kill -USR1 $id; for i in $(seq 100); do grep -q '/job:ps/task:0: ' log && break; sleep 0.05; done; "
                         "grep ' is in \\|no step\\| waits for \\|has not ended' log | head -n 20; kill -TERM $id; wait $id",
           143);
  must_say("/job:worker/task:1: ");
}

static void workers_of_a_ps_that_is_stopped_end_with_69(void **state) {
  (void)state;
  for (int turn = 0; turn < 5; turn++) {
    must_end("cluster/ps_0 >ps 2>&1 & ps=$!; cluster/worker_1 --timeout 2 " TRAIN "--steps 100000000 >second 2>&1 & second=$!; " BEGIN(
               "cluster/worker_0 --timeout 2 --log-every 1 " TRAIN "--steps 100000000",
               "loss") "kill -TERM $ps; wait $ps; test $? = 143 || exit 1; wait $second; test $? = 69 || { tail -n 2 second; exit 2; }; "
                       "wait $id; code=$?; tail -n 1 log; exit $code",
             69);
    must_say("error: UNAVAILABLE: ");
    must_say("/job:ps/task:0");
  }
}

/* Its step waits for a ps that may come back for a minute. */
static void a_worker_that_is_told_to_stop_does_not_wait_for_a_ps_that_is_away(void **state) {
  (void)state;
  must_end(
    "cluster/ps_0 >ps 2>&1 & ps=$!; cluster/worker_1 --timeout 60 " TRAIN "--steps 100000000 >second 2>&1 & second=$!; " BEGIN(
      "cluster/worker_0 --timeout 60 --log-every 1 " TRAIN "--steps 100000000",
      "loss") "kill -KILL $ps; for i in $(seq 100); do grep -q 'was cut' log && grep -q 'was cut' second && break; sleep 0.05; done; "
              "kill -TERM $id $second; ( sleep 20; kill -KILL $id $second ) >late 2>&1 & late=$!; "
              "wait $second; test $? = 143 || { tail -n 2 second; exit 2; }; wait $id; code=$?; kill $late; tail -n 1 log; exit $code",
    143);
}

/* Whatever ends tfc run ends its tasks. */
static void nothing_is_left_of_a_run_that_is_ended(void **state) {
  (void)state;
  static const struct {
    const char *signal;
    int code;
  } cases[] = {{"KILL", 137}, {"HUP", 129}, {"TERM", 143}, {"INT", 130}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char command[2048];
    snprintf(
      command, sizeof command,
      BEGIN(
        "env RUN_MARK=%s-%d " TFC " run cluster --log-every 1 " TRAIN "--steps 100000000",
        "loss") "kill -%s $id; wait $id; code=$?; "
                "for i in $(seq 200); do left=$(grep -lzs RUN_MARK=%s-%d /proc/[0-9]*/environ | wc -l); [ $left = 0 ] && break; sleep 0.05; done; "
                "[ $left = 0 ] || { echo $left tasks are left; exit 1; }; exit $code",
      cases[i].signal, (int)getpid(), cases[i].signal, cases[i].signal, (int)getpid());
    must_end(command, cases[i].code);
  }
}

static int build(void **state) {
  char command[4096];
  (void)state;
  if (!temp_folder(folder))
    return 1;
  snprintf(
    command, sizeof command,
    "cd %s && echo '{\"ps\": [\"unix:%s/p\"], \"worker\": [\"unix:%s/v\", \"unix:%s/w\"]}' >cluster.json && " TFC " build " MODELS
    "async_2workers/graph.pb --cluster cluster.json --replicate worker --entry 'init: -> | init' --entry 'train: x, label -> loss | train_op' "
    "-o cluster --quiet && " TFC " build " MODELS "unnamed_train_step/graph.pb -o one --quiet",
    folder, folder, folder, folder);
  return system(command) != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_cannot_be_written_ends_with_74),
    cmocka_unit_test(a_device_stays_a_device_and_a_dash_is_standard_output),
    cmocka_unit_test(a_question_does_not_end_a_task_which_says_what_it_is_at),
    cmocka_unit_test(workers_of_a_ps_that_is_stopped_end_with_69),
    cmocka_unit_test(a_worker_that_is_told_to_stop_does_not_wait_for_a_ps_that_is_away),
    cmocka_unit_test(nothing_is_left_of_a_run_that_is_ended),
  };
  return cmocka_run_group_tests(tests, build, folder_clean);
}
