/* test_doctor.c: real tasks that wait for each other say so, name the ring, and answer tfc status. Two workers: each takes from a queue
 * that only the other fills, behind its own take. */
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "tests/support/shell.h"

#define TFC BINARY_DIR "/tfc"
#define PATIENCE 60 /* seconds until something has been said: the machine may be busy */

static pid_t tasks[3];

#define PS "device: \"/job:ps/task:0\" "
#define QUEUE(name)                                                                                                \
  "node { name: \"" name "\" op: \"FIFOQueueV2\" " PS                                                              \
  "attr { key: \"component_types\" value { list { type: DT_FLOAT } } } attr { key: \"capacity\" value { i: 4 } } " \
  "attr { key: \"shapes\" value { list { shape { } } } } attr { key: \"shared_name\" value { s: \"" name "\" } } }\n"
#define MOVE(from, to)                                                                                \
  "node { name: \"take_" from "\" op: \"QueueDequeueV2\" input: \"" from "\" " PS                     \
  "attr { key: \"component_types\" value { list { type: DT_FLOAT } } } }\n"                           \
  "node { name: \"put_" to "\" op: \"QueueEnqueueV2\" input: \"" to "\" input: \"take_" from "\" " PS \
  "attr { key: \"Tcomponents\" value { list { type: DT_FLOAT } } } }\n"
static const char graph[] = QUEUE("a") QUEUE("b") MOVE("a", "b") MOVE("b", "a");

/* Runs it again and again until it says so. */
static void comes_to_say(const char *command, const char *words) {
  for (time_t until = time(NULL) + PATIENCE; time(NULL) < until; usleep(100000)) {
    run(command);
    if (strstr(said, words))
      return;
  }
  must_say(words);
}

static pid_t start(const char *name, const char *phases) {
  char line[512];
  snprintf(line, sizeof line, "cd %s && exec out/%s %s >%s.log 2>&1", folder, name, phases, name);
  pid_t id = fork();
  if (id == 0) {
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
  }
  return id;
}

static int start_all(void **state) {
  (void)state;
  tasks[0] = start("ps_0", "");
  tasks[1] = start("worker_0", "--entry ab --steps 3");
  tasks[2] = start("worker_1", "--entry ba --steps 3");
  return 0;
}

static int stop_all(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++)
    if (tasks[i] > 0) {
      kill(tasks[i], SIGCONT);
      kill(tasks[i], SIGKILL);
      waitpid(tasks[i], NULL, 0);
      tasks[i] = 0;
    }
  return 0;
}

static void tasks_that_wait_for_each_other_say_in_which_queues(void **state) {
  (void)state;
  comes_to_say("cat worker_0.log", "these wait for each other: ");
  must_say("worker_0: waits for QueueDequeueV2 'take_a' of /job:ps/task:0 (entry 'ab' of /job:worker/task:0), since ");
  must_say("; held up by ps_0");
  must_say("queue 'a' has 0 elements");
  must_say("queue 'b' has 0 elements");
  must_say("-> worker_0");
  comes_to_say("cat ps_0.log", "these wait for each other: ");
  comes_to_say("cat worker_1.log", "-> worker_1");
}

static void a_running_task_says_what_it_is_at(void **state) {
  (void)state;
  comes_to_say(TFC " status unix:w", "waits for QueueDequeueV2 'take_a'");
  must_say("worker_0 runs its phases\nphase 1 of 1: ab, step 0 of 3\nwaits for ");
  must_say("ps_0 at unix:");
  must_say(" is connected (");
  assert_int_equal(run(TFC " status --json unix:p"), 0);
  must_say("{\"task\": \"ps_0\", \"stage\": \"serves\"");
  must_say("\"peers\": [{\"task\": \"worker_0\"");
  assert_int_equal(run(TFC " status --json unix:p | python3 -m json.tool >json.txt"), 0);
}

static void a_lost_task_is_named_by_those_who_ask_and_those_who_wait(void **state) {
  (void)state;
  comes_to_say(TFC " status unix:p", "worker_1 at unix:");
  kill(tasks[2], SIGKILL);
  waitpid(tasks[2], NULL, 0);
  tasks[2] = 0;
  comes_to_say(TFC " status unix:p", "was cut off");
  comes_to_say("cat ps_0.log", "held up by worker_1, which was cut off");
}

static void questions_end_nothing(void **state) {
  (void)state;
  comes_to_say(TFC " status unix:w", "is connected");
  for (int i = 0; i < 20; i++) {
    kill(tasks[1], SIGUSR1);
    assert_int_equal(run(TFC " status unix:w"), 0);
  }
  comes_to_say("cat worker_0.log", "phase 1 of 1: ab, step 0 of 3");
  assert_int_equal(waitpid(tasks[1], NULL, WNOHANG), 0);
}

static void nobody_at_an_address_is_code_69_and_no_address_64(void **state) {
  (void)state;
  assert_int_equal(run(TFC " status unix:nowhere"), 69);
  must_say("error: UNAVAILABLE: unix:nowhere: ");
  assert_int_equal(run(TFC " status 127.0.0.1:1"), 69);
  assert_int_equal(run(TFC " status"), 64);
  assert_int_equal(run(TFC " status unix:w --tls-ca x"), 64);
  assert_int_equal(run(TFC " status a b"), 64);
}

static int build(void **state) {
  char path[128];
  (void)state;
  if (!temp_folder(folder))
    return 1;
  snprintf(path, sizeof path, "%s/graph.pbtxt", folder);
  FILE *file = fopen(path, "w");
  fputs(graph, file);
  fclose(file);
  return run(
    "echo '{\"ps\": [\"unix:p\"], \"worker\": [\"unix:w\", \"unix:v\"]}' >c.json && " TFC
    " build graph.pbtxt --cluster c.json --replicate worker --entry 'ab: -> take_a | put_b' --entry 'ba: -> take_b | put_a' -o out");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(tasks_that_wait_for_each_other_say_in_which_queues, start_all, stop_all),
    cmocka_unit_test_setup_teardown(a_running_task_says_what_it_is_at, start_all, stop_all),
    cmocka_unit_test_setup_teardown(a_lost_task_is_named_by_those_who_ask_and_those_who_wait, start_all, stop_all),
    cmocka_unit_test_setup_teardown(questions_end_nothing, start_all, stop_all),
    cmocka_unit_test(nobody_at_an_address_is_code_69_and_no_address_64),
  };
  return cmocka_run_group_tests(tests, build, folder_clean);
}
