/* test_first_hour.c: what somebody sees who uses tfc for the first time: the summary of a build, the command that it proposes, a run on a
 * terminal and without one, checkpoints, traces and event files of all tasks, and mistakes. */
#include <pty.h>
#include <unistd.h>

#include "tests/support/shell.h"

#define TFC BINARY_DIR "/tfc"
#define MODELS SOURCE_DIR "/tests/golden/models/"
#define STRATEGIES SOURCE_DIR "/tests/golden/strategies/"

/* The same on a terminal of 60 columns. */
static int run_on_terminal(const char *command) {
  char line[4096];
  int screen, state;
  struct winsize window = {.ws_row = 24, .ws_col = 60};
  pid_t id = forkpty(&screen, NULL, NULL, &window);
  if (id == 0) {
    snprintf(line, sizeof line, "cd %s && %s", folder, command);
    execl("/bin/sh", "sh", "-c", line, NULL);
    _exit(127);
  }
  size_t size = 0;
  for (ssize_t n; (n = read(screen, said + size, sizeof said - 1 - size)) > 0;)
    size += (size_t)n;
  said[size] = 0;
  close(screen);
  waitpid(id, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

static void must_not_say(const char *words) {
  if (strstr(said, words))
    test_fail("'%s' is in\n%s", words, said);
}
static void must(const char *command) {
  int code = run(command);
  if (code != 0)
    test_fail("%s: %d\n%s", command, code, said);
}

/* ---- building ---- */

static void a_build_says_what_it_made_and_its_last_line_runs(void **state) {
  (void)state;
  must(TFC " build " MODELS "unnamed_train_step/graph.pb -o 'a build' 2>summary; cat summary");
  must_say("a build: 1 task in ");
  must_say("  localhost_0 ");
  must_say("keeps w float[4,3], w/Momentum float[4,3]: 96 bytes\n");
  must_say("  train: Placeholder float[?,4], Placeholder_1 int64[?] -> loss float[] | Momentum\n");
  must_say("  main: Placeholder float[?,4] -> probs float[?,3]\n");
  must("tail -n 1 summary >next && sh ./next");
  must_say("localhost_0: loss = 1.0986");
}

static void a_build_says_which_tasks_have_nothing_to_do(void **state) {
  (void)state;
  must("sed 's|{|{\"idle\": [\"unix:'$PWD'/i\"], |' cluster.json >idle.json && " TFC " build " MODELS
       "async_2workers/graph.pb --cluster idle.json -o idle --entry 'init: -> | init' --entry 'train: x, label -> loss | train_op'");
  must_say("note: idle_0, worker_1 have no part of any entry (is the graph one worker's? --replicate worker)\n");
  must(TFC " build " MODELS "async_2workers/graph.pb --cluster cluster.json --replicate worker -o idle --entry 'init: -> | init'");
  must_not_say("no part of any entry");
}

static void a_build_says_which_feeds_lack_a_shape(void **state) {
  (void)state;
  must(TFC " build " SOURCE_DIR "/tests/golden/shapes/unranked_mlp/graph.pb -o ranks --entry 'main: b, w, x, y -> z'");
  must_say("note: b, w, x, y have no shape in the graph ([...]): main is compiled in ");
}

static void why_a_kernel_runs_as_it_does_can_be_asked(void **state) {
  (void)state;
  must(TFC " build " SOURCE_DIR
           "/tests/golden_ir/product_of_few_rows/graph.pbtxt --cpu x86-64-v3,x86-64-v4 --emit candidates | sed 's/ [0-9]* / N /'");
  must_say("MatMul_BiasAdd_Relu, nest 0, on x86-64-v3\n");
  must_say("MatMul_BiasAdd_Relu, nest 0, on x86-64-v4\n");
  must_say("  plain loops\n");
  must_say("\n>");
  must("! " TFC " build " SOURCE_DIR "/tests/golden_ir/softmax/graph.pbtxt --emit candidates | grep .");
}

static void a_quiet_build_says_nothing(void **state) {
  (void)state;
  must(TFC " build " MODELS "unnamed_train_step/graph.pb -o quiet --quiet");
  assert_string_equal(said, "");
}

static void what_a_build_says_does_not_go_where_scripts_read(void **state) {
  (void)state;
  must(TFC " build " MODELS "unnamed_train_step/graph.pb -o out 2>/dev/null");
  assert_string_equal(said, "");
}

static void help_of_a_task_shows_types_and_shapes(void **state) {
  (void)state;
  must(TFC " build " MODELS "unnamed_train_step/graph.pb -o out --quiet && out/localhost_0 --help && " TFC " inspect out/localhost_0");
  must_say("    feed  Placeholder              float[?,4]\n");
  must_say("    feed  Placeholder_1            int64[?]\n");
  must_say("    fetch loss                     float[]\n");
}

static void show_lists_what_a_graph_holds_and_entries_that_can_be_pasted(void **state) {
  (void)state;
  must(TFC " show " MODELS "savedmodel_functions/saved_model >shown; cat shown");
  must_say("variables\n");
  must_say(" that none of the entries below uses\n"); /* copies for the model's loader */
  must_say("  train_step(batch_x, batch_y) -> loss, rows\n");
  must_say("  --entry 'train_step: batch_x=train_step/batch_x, batch_y=train_step/batch_y -> loss=train_step:0, rows=train_step:1'\n");
  must(TFC " build " MODELS "savedmodel_functions/saved_model -o pasted --quiet "
           "--entry \"$(sed -n \"s/.*--entry '\\(train_step.*\\)'/\\1/p\" shown)\"");
  must("pasted/localhost_0 --entry train_step --feed 'batch_x=zeros(2,3)' --feed 'batch_y=zeros(2,1)'");
  must_say("loss = ");
  assert_int_equal(run("pasted/localhost_0 --entry train_step --feed 'batch_x=zeros(2,4)' --feed 'batch_y=zeros(2,1)'"), 65);
  must_say("feed 'batch_x' has shape [2,4], must be [?,3]: dimension 1 must be 3"); /* of an entry with variants, too */
  must(TFC " show " MODELS "monitored_session_meta/graph.meta");
  must_say("  losses ");
  must_say("  train_op                 Adam\n");
  must_say("loss=add | Adam'\n");
}

static void a_check_says_where_a_strategy_cuts_a_step(void **state) {
  (void)state;
  must("echo '{\"worker\": [\"a:1\", \"b:1\"]}' >workers.json");
  must(TFC " check " STRATEGIES "recommender/model --cluster workers.json --strategy allreduce");
  must_say("entry train: rows of all workers, f32[train_x.0,4] '");
  must_say("/gradient_tape/mul/Mul', changes 'accumulator/u', 'u'\n");
  must_say("entry train: indices of rows of all workers, i32[train_x.0] '"); /* of two tables each */
  must_say("/strided_slice', changes 'accumulator/b', 'accumulator/u', 'b', 'u'\n");
  must("echo '{\"ps\": [\"p:1\"], \"worker\": [\"a:1\", \"b:1\"]}' >servers.json");
  must(TFC " check " STRATEGIES "clip_global_norm/model --cluster servers.json --strategy ps-sync");
  must_say("entry train: mean of all workers, f32[4,3] '");
  must_say("/MatMul_1', changes 'sequential_3/dense_7/kernel', 'adam_3/sequential_3_dense_7_kernel_velocity', ");
}

static void a_check_says_all_that_a_build_would_refuse(void **state) {
  (void)state;
  must(TFC " check " MODELS "unnamed_train_step/graph.pb");
  must_say("can be built\n");
  assert_int_equal(run(TFC " check " STRATEGIES "until_close/model --cluster cluster.json --strategy allreduce"), 65);
  must_say("error: UNIMPLEMENTED: entry train: ");
  must_say("--strategy allreduce: ");
}

/* ---- mistakes ---- */

static const struct {
  const char *command, *words;
  int code;
} mistakes[] = {
  {TFC " biuld graph.pb", "tfc has no command 'biuld', it has: build, ", 64},
  {TFC " build graph.pb --replicat worker --entri x", "there is no option '--entri'", 64},
  {TFC " build graph.pb --entri x", "did you mean '--entry'?", 64},
  {TFC " build graph.pb --out x", "the nearest are: -o, --cpu, ", 64},
  {TFC " build graph.pb --entry", "this option needs a value: --entry", 64},
  {TFC " build", "no graph is named", 64},
  {TFC " build --help", "--entry SPEC", 0},
  {TFC " inspect out/localhost_0", "task /job:localhost/task:0, build ", 0},
  {TFC " check " MODELS "unnamed_train_step/graph.pb", " nodes: /job:localhost/replica:0/task:0/device:CPU:0\n", 0},
  {TFC " check " MODELS "unnamed_train_step/graph.pb --entry 'a: -> probs'", "must feed a value for placeholder", 65},
  {"echo '{\"worker\": [\"a:1\", \"b:1\"]}' >two.json; " TFC " check " MODELS "unnamed_train_step/graph.pb "
   "--cluster two.json --strategy allreduce",
   "variables on each /job:worker: ", 0},
  {TFC " inspect", "one file or folder, please, after: tfc inspect", 64},
  {TFC " run nowhere", "error: NOT_FOUND: nowhere/build.json: No such file", 65},
  {TFC " run out --entry trian", "there is no such entry, there are: ", 65},
  {"out/localhost_0 --entry trian", "did you mean 'train'?", 65},
  {"out/localhost_0 --entry train --feed Placeholdr=x.npy",
   "the entry has no feed 'Placeholdr', it has: Placeholder, Placeholder_1; did you mean 'Placeholder'?", 65},
  {"out/localhost_0 --steps 3", "--steps comes before any --entry: it belongs to the phase", 64},
  {"out/localhost_0 --entry train --step 3", "did you mean '--steps'?", 64},
  {"out/localhost_0 --entry train --feed 'Placeholder=zeros(2,5)' --feed 'Placeholder_1=zeros(2)'",
   "feed 'Placeholder' has shape [2,5], must be [?,4]", 65},
  {"out/localhost_0 --entry train --feed 'Placeholder=zeros(2,4' --feed 'Placeholder_1=zeros(2)'", "error: NOT_FOUND: ", 65},
  {TFC " run out --checkpoint-dir d --entry main --feed 'Placeholder=zeros(2,4)'", "localhost_0: probs = ", 0},
  {TFC " build " MODELS "unnamed_train_step/graph.pb --entry 'a: -> prob'", "did you mean 'probs'?", 65},
  {TFC " build " MODELS "unnamed_train_step/graph.pb --emit irr", "did you mean 'ir'?", 65},
  {TFC " build " MODELS "unnamed_train_step/graph.pb --emit bogus", "candidates", 65},
  {TFC " build " MODELS "async_2workers/graph.pb", "; no --cluster was given, it has to have a job 'ps'", 65},
  {"sed s/worker/wroker/ cluster.json >misspelt.json; " TFC " build " MODELS
   "async_2workers/graph.pb --cluster misspelt.json --replicate worker",
   "misspelt.json has no job 'worker', it has: wroker, ps; is 'wroker' in it a misspelling of 'worker'?", 65},
  {"out/localhost_0 --entry train --batch 2 --feed 'Placeholder=zeros(6,4)' --feed 'Placeholder_1=zeros(3)'",
   "; --batch takes rows of the longest files only: feed 'Placeholder_1' has 3 rows, not 6, and is fed whole", 65},
  {TFC " build " MODELS "unnamed_train_step/graph.pb --cluster cluster.json --replicate wroker", "did you mean 'worker'?", 65},
};

#define TYPE(key, type) " attr { key: '" key "' value { type: " type " } }"
#define PLACEHOLDER(name, type, size) \
  "node { name: '" name "' op: 'Placeholder'" TYPE("dtype", type) " attr { key: 'shape' value { shape { dim { size: " size " } } } } }\n"

static void an_error_in_a_gradient_says_of_what(void **state) {
  (void)state;
  char path[96];
  snprintf(path, sizeof path, "%s/gradient.pbtxt", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(
    PLACEHOLDER("x", "DT_FLOAT", "-1") PLACEHOLDER("s", "DT_INT32", "1") PLACEHOLDER("three", "DT_FLOAT", "3")
      PLACEHOLDER("two", "DT_FLOAT", "2") "node { name: 'gradients/dense/MatMul_grad/Reshape' op: 'Reshape' input: 'x' input: 's'" TYPE(
        "T", "DT_FLOAT") " }\n"
                         "node { name: 'gradients/loss/add_grad/Add' op: 'Add' input: 'three' input: 'two'" TYPE("T", "DT_FLOAT") " }\n",
    file);
  fclose(file);
  must(TFC " build gradient.pbtxt -o gradient --quiet --entry 'main: x, s -> gradients/dense/MatMul_grad/Reshape'");
  assert_int_equal(run("gradient/localhost_0 --entry main --feed 'x=zeros(4)' --feed 's=zeros(1)'"), 65);
  must_say("; in the gradient of 'dense/MatMul'");
  assert_int_equal(run(TFC " build gradient.pbtxt --entry 'main: three, two -> gradients/loss/add_grad/Add'"), 65);
  must_say("; in the gradient of 'loss/add'");
}

static const struct {
  const char *bytes, *words;
} foreign[] = {
  {"PK\\003\\004rest", "a zip archive, such as a .keras file"},
  {"\\211HDF\\r\\n\\032\\n", "an HDF5 file"},
  {"\\034\\000\\000\\000TFL3rest", "a TensorFlow Lite model"},
  {"\\223NUMPYrest", "a numpy array"},
  {"\\177ELFrest", "tfc inspect"},
  {"rest\\127\\373\\200\\213\\044\\165\\107\\333", "the index of a checkpoint"},
};

static void models_in_other_forms_are_told_what_to_do(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    char command[256];
    snprintf(command, sizeof command, "printf '%s' >model; " TFC " build model", foreign[i].bytes);
    assert_int_equal(run(command), 65);
    must_say(foreign[i].words);
  }
  assert_int_equal(run("mkdir -p logs_of_a_session && touch logs_of_a_session/model.ckpt-3.meta && " TFC " build logs_of_a_session"), 65);
  must_say("'logs_of_a_session' holds no saved_model.pb, but 'model.ckpt-3.meta', which can be built");
}

static void the_file_of_a_saved_model_stands_for_its_folder(void **state) {
  (void)state;
  must(TFC " build " MODELS "savedmodel_functions/saved_model/saved_model.pb -o by/file --quiet && "
           "by/file/localhost_0 --entry call --feed 'x=zeros(1,3)'");
  must_say("output_0 = [[0.5]]");
}

static void what_cannot_be_written_is_74(void **state) {
  (void)state;
  assert_int_equal(run(TFC " ops >/dev/full"), 74);
  must_say("error: DATA_LOSS: standard output: ");
  assert_int_equal(run(TFC " build " MODELS "unnamed_train_step/graph.pb -o /proc/nowhere"), 74);
}

static void mistakes_are_answered_with_what_there_is(void **state) {
  (void)state;
  must(TFC " build " MODELS "unnamed_train_step/graph.pb -o out --quiet");
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    int code = run(mistakes[i].command);
    if (code != mistakes[i].code)
      test_fail("%s: %d\n%s", mistakes[i].command, code, said);
    must_say(mistakes[i].words);
    const char *last = strrchr(said, '\n');
    while (last && last > said && last[-1] != '\n')
      last--;
    if (code && (!last || strncmp(last, "error: ", 7) != 0))
      test_fail("%s: the last line is no error\n%s", mistakes[i].command, said);
  }
}

/* ---- running a cluster ---- */

#define TRAIN "--entry train --feed 'x=zeros(64,64)' --feed 'label=zeros(64)' --batch 16 "

static void without_a_terminal_each_step_is_a_line(void **state) {
  (void)state;
  must(TFC " run cluster " TRAIN "--steps 7 | cat");
  int lines = 0;
  for (const char *at = said; (at = strstr(at, "loss = ")); at++)
    lines++;
  assert_int_equal(lines, 14);
  must_not_say("\r");
  must_not_say("\033");
  must(TFC " run cluster --log-every 3 " TRAIN "--steps 7");
  lines = 0;
  for (const char *at = said; (at = strstr(at, "worker_0: step ")); at++)
    lines++;
  assert_int_equal(lines, 3);
  must_say("worker_0: step 3: loss = ");
  must_say("worker_0: step 6: loss = ");
  must_say("worker_0: step 7: loss = ");
}

static void on_a_terminal_one_line_tells_and_each_fetch_is_said_once(void **state) {
  (void)state;
  assert_int_equal(run_on_terminal(TFC " run cluster " TRAIN "--steps 400"), 0);
  must_say("train: step ");
  must_say(" of 400, ");
  int lines = 0;
  for (const char *at = said; (at = strstr(at, ": loss = ")); at++)
    lines++;
  assert_int_equal(lines, 2); /* one of each worker */
  const char *end = said + strlen(said);
  assert_true(end - said > 4 && (end[-1] == '\n' || strncmp(end - 3, "\033[K", 3) == 0)); /* the line is gone */
}

static void a_task_that_serves_says_on_a_terminal_where_it_listens(void **state) {
  (void)state;
  run_on_terminal("timeout 2 cluster/ps_0");
  must_say("/job:ps/task:0: listens at unix:");
  run("timeout 2 cluster/ps_0");
  must_not_say("listens");
}

static void a_trace_holds_all_tasks_and_each_has_its_folder_of_events(void **state) {
  (void)state;
  must(TFC " run cluster --trace t.json --log-dir logs " TRAIN "--steps 5 >/dev/null");
  must("cat t.json; ls");
  must_say("/job:ps/task:0");
  must_say("/job:worker/task:0");
  must_say("/job:worker/task:1");
  must_not_say("t.json.");
  must("ls logs logs/worker_0 logs/worker_1");
  must_say("worker_0\nworker_1\n");
  must_say(".worker_1\n");
}

static void a_checkpoint_is_kept_by_those_who_have_variables(void **state) {
  (void)state;
  must(TFC " run cluster --checkpoint-dir saved " TRAIN "--steps 5 >/dev/null");
  must("cat saved/checkpoint");
  must_say("model.ckpt-10");
  must(TFC " run cluster --checkpoint-dir saved " TRAIN "--steps 5 >/dev/null");
  must("cat saved/checkpoint");
  must_say("model.ckpt-20");
}

/* The last step may be one that is saved in any case: the command has ended all the same, and the next one counts anew. */
static void the_same_command_again_trains_on_whatever_is_saved_when(void **state) {
  (void)state;
  static const char *const saves[] = {"", "--save-steps 2", "--save-steps 3"};
  must(TFC " build " MODELS
           "strategy_ps_sync/graph.pb -o alone --entry 'init: -> | init' --entry 'train: x, label -> loss | train_op' --quiet");
  for (size_t i = 0; i < sizeof saves / sizeof *saves; i++)
    for (int turn = 1; turn <= 2; turn++) {
      char command[512];
      snprintf(command, sizeof command, "alone/localhost_0 --checkpoint-dir again.%zu %s " TRAIN "--steps 4 && cat again.%zu/checkpoint", i,
               saves[i], i);
      must(command);
      must_say(turn == 1 ? "model.ckpt-4" : "model.ckpt-8");
    }
}

/* It runs no replica's phases, and all wait for what it initialises. */
static void a_chief_beside_the_replicas_initialises(void **state) {
  (void)state;
  must("sed 's|{|{\"chief\": [\"unix:'$PWD'/c\"], |' cluster.json >chief.json && " TFC " build " MODELS
       "async_2workers/graph.pb --cluster chief.json --replicate worker --entry 'init: -> | init' "
       "--entry 'train: x, label -> loss | train_op' -o chief --quiet");
  for (int turn = 1; turn <= 2; turn++) {
    must(TFC " run chief --checkpoint-dir chief.saved " TRAIN "--steps 5");
    must_say("worker_0: loss = ");
    must_say("worker_1: loss = ");
    must("cat chief.saved/checkpoint");
    must_say(turn == 1 ? "model.ckpt-10" : "model.ckpt-20"); /* the second time from where the first has ended */
  }
  assert_int_equal(run(TFC " run chief --no-init " TRAIN "--steps 5"), 65);
  must_say("Attempting to use uninitialized value");
}

/* One that was let go with an earlier checkpoint may not have said so to the ps when the last one was made: that says it is unfinished. The
 * chief has left for good when it has initialised: if a checkpoint is there by then, the file says so. */
static void who_has_left_for_good_begins_its_next_command(void **state) {
  (void)state;
  must(TFC " run chief --checkpoint-dir left.saved " TRAIN "--steps 1000000 --save-steps 200 >left.log 2>&1 & job=$!; "
           "while [ ! -s left.saved/checkpoint ]; do sleep 0.05; done; kill -TERM $job; wait $job; ! grep -s worker left.saved/finished");
  must("echo 'worker_0 1 1' >left.saved/finished"); /* left with its first command, and the checkpoint with id 1 */
  must(TFC " run chief --checkpoint-dir left.saved " TRAIN "--steps 5");
  must_say("worker_0: loss = ");
  must_say("worker_1: all of its 5 steps were done before");
}

static void kernels_have_room_on_stacks_whatever_the_limit(void **state) {
  (void)state;
  must(TFC " build " MODELS "attention_of_long_rows/graph.pb -o rows --quiet --entry 'main: x -> y, d'");
  must("python3 -c 'import zipfile; zipfile.ZipFile(\"" MODELS "attention_of_long_rows/data.npz\").extract(\"x.npy\")'");
  must("(ulimit -Ss 256; rows/localhost_0 --threads 2 --entry main --feed x=x.npy --fetch y=y.npy)");
  must("(ulimit -Ss unlimited; rows/localhost_0 --threads 2 --entry main --feed x=x.npy --fetch y=y.npy)");
}

static void a_wrong_command_line_waits_for_nobody(void **state) {
  (void)state;
  assert_int_equal(run("timeout 5 cluster/worker_0 --entry train --feed 'x=zeros(64,64)'"), 65);
  must_say("entry 'train': feed 'label' is missing, int32[?]");
  assert_int_equal(run("timeout 5 cluster/worker_0 --entry train --feed x=no.npy --feed 'label=zeros(64)'"), 65);
  must_say("feed 'x': 'no.npy': ");
}

static int build(void **state) {
  char command[2048];
  (void)state;
  if (!temp_folder(folder))
    return 1;
  snprintf(command, sizeof command,
           "cd %s && echo '{\"ps\": [\"unix:%s/p\"], \"worker\": [\"unix:%s/v\", \"unix:%s/w\"]}' >cluster.json && " TFC " build " MODELS
           "async_2workers/graph.pb --cluster cluster.json --replicate worker "
           "--entry 'init: -> | init' --entry 'train: x, label -> loss | train_op' -o cluster --quiet",
           folder, folder, folder, folder);
  return system(command) != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_build_says_what_it_made_and_its_last_line_runs),
    cmocka_unit_test(a_build_says_which_tasks_have_nothing_to_do),
    cmocka_unit_test(a_build_says_which_feeds_lack_a_shape),
    cmocka_unit_test(why_a_kernel_runs_as_it_does_can_be_asked),
    cmocka_unit_test(a_quiet_build_says_nothing),
    cmocka_unit_test(what_a_build_says_does_not_go_where_scripts_read),
    cmocka_unit_test(help_of_a_task_shows_types_and_shapes),
    cmocka_unit_test(show_lists_what_a_graph_holds_and_entries_that_can_be_pasted),
    cmocka_unit_test(a_check_says_where_a_strategy_cuts_a_step),
    cmocka_unit_test(a_check_says_all_that_a_build_would_refuse),
    cmocka_unit_test(an_error_in_a_gradient_says_of_what),
    cmocka_unit_test(models_in_other_forms_are_told_what_to_do),
    cmocka_unit_test(the_file_of_a_saved_model_stands_for_its_folder),
    cmocka_unit_test(what_cannot_be_written_is_74),
    cmocka_unit_test(mistakes_are_answered_with_what_there_is),
    cmocka_unit_test(without_a_terminal_each_step_is_a_line),
    cmocka_unit_test(on_a_terminal_one_line_tells_and_each_fetch_is_said_once),
    cmocka_unit_test(a_task_that_serves_says_on_a_terminal_where_it_listens),
    cmocka_unit_test(a_trace_holds_all_tasks_and_each_has_its_folder_of_events),
    cmocka_unit_test(kernels_have_room_on_stacks_whatever_the_limit),
    cmocka_unit_test(a_wrong_command_line_waits_for_nobody),
    cmocka_unit_test(a_checkpoint_is_kept_by_those_who_have_variables),
    cmocka_unit_test(the_same_command_again_trains_on_whatever_is_saved_when),
    cmocka_unit_test(a_chief_beside_the_replicas_initialises),
    cmocka_unit_test(who_has_left_for_good_begins_its_next_command),
  };
  return cmocka_run_group_tests(tests, build, folder_clean);
}
