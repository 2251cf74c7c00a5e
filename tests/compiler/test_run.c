/* test_run.c: what `tfc run` decides without any process: who gets which options, the line of progress, traces put together. */
#include "compiler/run_options.h"
#include "compiler/run_progress.h"
#include "compiler/run_trace.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/temp_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct {
  const char *words;
  bool on_terminal, has_phases, has_variables;
  const char *args;
} options[] = {
  {"--entry train --steps 3", false, true, false, "w --entry train --steps 3"},
  {"--entry train --steps 3", false, false, true, "w"},
  {"--entry train", true, true, false, "w --log-every 0 --entry train"},
  {"--entry train", true, false, true, "w"},
  {"--log-every 5 --entry train", true, true, false, "w --log-every 5 --entry train"},
  {"--log-every=5 --entry train", true, true, false, "w --log-every=5 --entry train"},
  {"--trace t.json --entry train", false, true, false, "w --trace t.json.w --entry train"},
  {"--trace=t.json --entry train", false, false, false, "w --trace t.json.w"},
  {"--checkpoint-dir d --save-steps 9 --entry train", false, true, false, "w --entry train"},
  {"--checkpoint-dir d --save-steps 9 --entry train", false, false, true, "w --checkpoint-dir d --save-steps 9"},
  {"--keep=2 --checkpoint-dir d --entry train --save-seconds 1.5", false, false, true, "w --checkpoint-dir d --save-seconds 1.5 --keep 2"},
  {"--restore r --entry train", false, false, true, "w --restore r"},
  {"--restore r --entry train", false, true, false, "w --entry train"},
  {"--checkpoint-dir d --entry train", false, true, true, "w --checkpoint-dir d --entry train"},
  {"--save-steps 9 --entry train", false, true, false, "w --save-steps 9 --entry train"},
  {"--entry train --trace", false, true, false, "w --entry train --trace"},
};

static void options_go_to_the_tasks_that_they_concern(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    char words[256], *list[32], got[512] = "", *rest = words;
    int count = 0;
    struct arena arena;
    struct run_options read;
    struct run_task task = {"w", "w", options[i].has_phases, options[i].has_variables, false};
    snprintf(words, sizeof words, "%s", options[i].words);
    for (char *word; (word = strsep(&rest, " "));)
      list[count++] = word;
    arena_init(&arena);
    run_options_read(count, list, options[i].on_terminal, &read);
    for (char **args = run_options_for(&read, &task, &arena); *args; args++)
      snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", *got ? " " : "", *args);
    assert_string_equal(got, options[i].args);
    arena_deinit(&arena);
  }
}

static const struct {
  const char *lines[3], *text;
  size_t width;
} lines[] = {
  {{"1 1 20 100 2 train loss 0.25"}, "train: step 20 of 100, 10 steps/s, loss 0.25, 8 s left", 80},
  {{"1 1 20 100 2 train loss 0.25"}, "train: step 20", 14},
  {{"2 3 1 1 0.5 test - 0"}, "phase 2 of 3, test: step 1 of 1, 2.0 steps/s, 0 s left", 80},
  {{"1 1 30 100 3 train loss 1", "1 1 10 100 5 train loss 2", "2 2 1 9 1 test - 0"},
   "train: step 10 of 100, 2.0 steps/s, loss 2, 45 s left",
   80},
  {{"1 1 1 1000 1 train - 0"}, "train: step 1 of 1000, 1.0 steps/s, 17 min left", 80},
  {{"1 1 1 10001 1 train - 0"}, "train: step 1 of 10001, 1.0 steps/s, 2.8 h left", 80},
  {{"1 1 1 10 0 train - 0"}, "train: step 1 of 10, 0.0 steps/s, ? left", 80},
  {{"nonsense", "1 1 5 4 1 train - 0", "0 1 1 4 1 train - 0"}, "", 80},
};

static void one_line_says_how_far_the_slowest_is(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    struct run_progress tasks[3] = {{0}};
    char text[256];
    for (int k = 0; k < 3 && lines[i].lines[k]; k++)
      run_progress_read(lines[i].lines[k], &tasks[k]);
    assert_string_equal(run_progress_text(tasks, 3, lines[i].width, text, sizeof text), lines[i].text);
  }
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void traces_are_one_list_of_events(void **state) {
  (void)state;
  char folder[TEMP_PATH_SIZE], a[96], b[96], none[96], whole[96], text[512];
  assert_true(temp_folder(folder));
  snprintf(a, sizeof a, "%s/a", folder);
  snprintf(b, sizeof b, "%s/b", folder);
  snprintf(none, sizeof none, "%s/none", folder);
  snprintf(whole, sizeof whole, "%s/whole", folder);
  write_file(a, "{\"traceEvents\": [\n{\"pid\": 0},\n{\"pid\": 0, \"x\": 1}\n], \"displayTimeUnit\": \"ns\", "
                "\"otherData\": {\"events not kept\": 2}}\n");
  write_file(b, "{\"traceEvents\": [\n{\"pid\": 1}\n], \"displayTimeUnit\": \"ns\", \"otherData\": {\"events not kept\": 3}}\n");
  assert_int_equal(run_trace_join(whole, (const char *const[]){a, none, b}, 3), OK);
  FILE *file = fopen(whole, "r");
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  assert_string_equal(text, "{\"traceEvents\": [\n{\"pid\": 0},\n{\"pid\": 0, \"x\": 1},\n{\"pid\": 1}\n], \"displayTimeUnit\": \"ns\", "
                            "\"otherData\": {\"events not kept\": 5}}\n");
  assert_int_equal(access(a, F_OK) | access(b, F_OK), -1);
  assert_int_equal(run_trace_join("/nowhere/t", (const char *const[]){a}, 1), DATA_LOSS);
  unlink(whole);
  rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(options_go_to_the_tasks_that_they_concern),
    cmocka_unit_test(one_line_says_how_far_the_slowest_is),
    cmocka_unit_test(traces_are_one_list_of_events),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
