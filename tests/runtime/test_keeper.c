/* test_keeper.c: a task's variables survive its end; records that are written meanwhile can be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checkpoint_write.h"
#include "runtime/checkpoint/checkpoint_restore.h"
#include "runtime/checkpoint/saver.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/data/events.h"
#include "runtime/memory/variable.h"
#include "runtime/step/task_state.h"
#include "runtime/step/trace.h"
#include "tests/support/program_builder.h"
#include "tests/support/temp_path.h"
#include "tests/support/test.h"

static int64_t one_tile(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what >= 0 || what == KERNEL_PHASES ? 1 : 0;
}
static void run_count(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)phase, (void)begin, (void)end;
  *(float *)call->buffers[0] += 1;
}
static const struct kernel_code kernels[] = {{run_count, one_tile}};

/* An entry that adds 1 to a variable and fetches it. */
static const struct program *counter(struct program_builder *b) {
  pb_begin(b);
  uint32_t count = pb_variable(b, "count", DTYPE_FLOAT, true), slot = pb_slot(b, DTYPE_FLOAT, 0, 0, STORAGE_VARIABLE);
  vec_last(&b->slots).data = count;
  pb_port(b, "count", DTYPE_FLOAT, 0, 0);
  struct program_range shapes = PB_LIST(b, PROGRAM_VARIABLE_INOUT, 0);
  struct program_instr *update = pb_kernel(b, 0, PB_LIST(b, count | PROGRAM_ARG_VARIABLE), 1);
  update->flags = INSTR_LOCKS;
  update->shapes = shapes.first;
  struct program_range outputs = PB_LIST(b, slot);
  pb_instr(b, INSTR_READ, count)->outputs = outputs;
  pb_instr(b, INSTR_FETCH, 0)->args = outputs;
  pb_entry(b, "main", 0, 1, 0, 3, false);
  b->entries.items[0].changes_state = 1;
  b->kernel_count = 1;
  return pb_finish(b);
}

/* Runs a task for so many steps; the last value. */
static float run_task(const char *folder, int steps, int64_t save_steps, bool save) {
  struct program_builder b;
  struct task *task;
  struct saver *saver;
  float last = -1;
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  assert_int_equal(saver_create(task, &(struct saver_config){.folder = folder, .save_steps = save_steps, .keep = SAVER_KEEP}, &saver), OK);
  for (int i = 0; i < steps; i++) {
    struct tensor *value;
    assert_int_equal(task_run(task, 0, NULL, &value, NULL), OK);
    last = *(float *)value->data;
    tensor_release(value);
  }
  if (save)
    assert_int_equal(saver_finish(saver), OK);
  task_close(task);
  saver_destroy(saver);
  task_destroy(task);
  pb_end(&b);
  return last;
}

static void variables_are_restored_where_they_were(void **state) {
  assert_true(run_task(*state, 3, 0, true) == 3);
  assert_true(run_task(*state, 2, 0, true) == 5);
}

static void a_task_that_is_killed_goes_on_from_its_last_save(void **state) {
  run_task(*state, 7, 3, false); /* saved after 3 and 6 */
  assert_true(run_task(*state, 1, 0, false) == 7);
}

static void only_the_last_checkpoints_are_kept(void **state) {
  char path[256];
  run_task(*state, 9, 1, true);
  for (int i = 1; i <= 9; i++) {
    snprintf(path, sizeof path, "%s/model.ckpt-%d.index", (const char *)*state, i);
    assert_int_equal(access(path, F_OK) == 0, i > 9 - SAVER_KEEP);
  }
}

static void a_damaged_checkpoint_is_an_error(void **state) {
  char path[256];
  struct program_builder b;
  struct task *task;
  struct saver *saver;
  run_task(*state, 1, 0, true);
  snprintf(path, sizeof path, "%s/model.ckpt-1.index", (const char *)*state);
  assert_int_equal(truncate(path, 10), 0);
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  assert_int_not_equal(saver_create(task, &(struct saver_config){.folder = *state, .keep = SAVER_KEEP}, &saver), OK);
  task_destroy(task);
  pb_end(&b);
}

/* A file in the folder's place: nothing can be saved there, whoever asks. */
static void a_folder_that_cannot_be_written_is_known_at_the_start(void **state) {
  char path[256];
  struct program_builder b;
  struct task *task;
  struct saver *saver;
  snprintf(path, sizeof path, "%s/file", (const char *)*state);
  fclose(fopen(path, "w"));
  snprintf(path, sizeof path, "%s/file/below", (const char *)*state);
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  assert_int_equal(saver_create(task, &(struct saver_config){.folder = path, .keep = SAVER_KEEP}, &saver), DATA_LOSS);
  assert_non_null(strstr(status_text(), path));
  assert_int_equal(saver_create(task, &(struct saver_config){.folder = "/proc/nowhere", .keep = SAVER_KEEP}, &saver), DATA_LOSS);
  task_destroy(task);
  pb_end(&b);
}

/* What is written behind the steps is there after a while. */
static void wait_for(const char *path) {
  for (int i = 0; i < 5000 && access(path, F_OK) != 0; i++)
    usleep(2000);
  assert_int_equal(access(path, F_OK), 0);
}

static void a_save_that_fails_does_not_end_the_training_and_is_told_at_the_end(void **state) {
  char folder[256], away[256], path[300];
  struct program_builder b;
  struct task *task;
  struct saver *saver;
  struct tensor *value;
  snprintf(folder, sizeof folder, "%s/kept", (const char *)*state);
  snprintf(away, sizeof away, "%s/away", (const char *)*state);
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  assert_int_equal(saver_create(task, &(struct saver_config){.folder = folder, .save_steps = 2, .keep = SAVER_KEEP}, &saver), OK);
  for (int step = 1; step <= 7; step++) {
    if (step == 4) {
      snprintf(path, sizeof path, "%s/checkpoint", folder); /* the last file of a checkpoint */
      wait_for(path);
      assert_int_equal(rename(folder, away), 0);
      fclose(fopen(folder, "w"));
    }
    usleep(step == 5 || step == 6 ? 50000 : 0); /* else it is still being tried when the next is due */
    if (step == 6)
      assert_true(unlink(folder) == 0 && rename(away, folder) == 0);
    assert_int_equal(task_run(task, 0, NULL, &value, NULL), OK);
    tensor_release(value);
  }
  assert_int_equal(saver_finish(saver), DATA_LOSS);
  assert_non_null(strstr(status_text(), "the last checkpoint is there"));
  static const struct {
    int number;
    bool is_there;
  } checkpoints[] = {{2, true}, {4, false}, {6, true}, {7, true}};
  for (size_t i = 0; i < sizeof checkpoints / sizeof *checkpoints; i++) {
    snprintf(path, sizeof path, "%s/model.ckpt-%d.index", folder, checkpoints[i].number);
    assert_int_equal(access(path, F_OK) == 0, checkpoints[i].is_there);
  }
  task_close(task);
  saver_destroy(saver);
  task_destroy(task);
  pb_end(&b);
}

static void what_a_killed_task_was_writing_is_removed(void **state) {
  char dead[256], alive[256], foreign[256];
  snprintf(dead, sizeof dead, "%s/model.ckpt-3.data-00000-of-00001.tempstate%d", (const char *)*state, 0x3fffffff);
  snprintf(alive, sizeof alive, "%s/model.ckpt-3.index.tempstate%d", (const char *)*state, (int)getppid());
  snprintf(foreign, sizeof foreign, "%s/mine.tempstate%d", (const char *)*state, 0x3fffffff);
  fclose(fopen(dead, "w"));
  fclose(fopen(alive, "w"));
  fclose(fopen(foreign, "w"));
  run_task(*state, 1, 0, true);
  assert_int_not_equal(access(dead, F_OK), 0);
  assert_int_equal(access(alive, F_OK), 0);
  assert_int_equal(access(foreign, F_OK), 0);
}

/* ---- checkpoints of others ---- */

/* One float of that name, as another program would write it; the slice of a whole of 6, or all. */
static void write_foreign(const char *prefix, const char *key, const char *slice_text, int64_t count, float first) {
  struct checkpoint_writer *writer;
  struct checkpoint_slice slice;
  struct shape whole, shape = {.rank = slice_text ? 1 : 0, .dims = {count}};
  struct tensor *tensor;
  assert_int_equal(tensor_create(DTYPE_FLOAT, &shape, &tensor), OK);
  for (int64_t i = 0; i < tensor->count; i++)
    ((float *)tensor->data)[i] = first + (float)i;
  assert_int_equal(checkpoint_writer_create(prefix, &writer), OK);
  if (slice_text) {
    assert_int_equal(checkpoint_slice_parse(slice_text, &whole, &slice), OK);
    assert_int_equal(checkpoint_writer_add_slice(writer, key, &whole, &slice, tensor), OK);
  } else {
    assert_int_equal(checkpoint_writer_add(writer, key, tensor), OK);
  }
  assert_int_equal(checkpoint_writer_close(writer), OK);
  tensor_release(tensor);
}

static void write_text(const char *folder, const char *name, const char *text) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  fputs(text, file);
  fclose(file);
}

static void the_state_file_is_honoured_whatever_the_prefix(void **state) {
  char prefix[300], text[1024], path[300];
  static const char *const forms[] = {
    "model_checkpoint_path: \"my-model-1200\"\nall_model_checkpoint_paths: \"my-model-1200\"\n",
    "all_model_checkpoint_paths : 'my-model-1200' model_checkpoint_path:\n 'my-model-1200' last_preserved_timestamp: "
    "1.5",
    "model_checkpoint_path: \"%s/my-model-1200\"\n"};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    snprintf(prefix, sizeof prefix, "%s/my-model-1200", (const char *)*state);
    write_foreign(prefix, "count", NULL, 1, 1200);
    snprintf(text, sizeof text, forms[i], (const char *)*state);
    write_text(*state, "checkpoint", text);
    assert_true(run_task(*state, 3, 0, true) == 1203);
    snprintf(path, sizeof path, "%s/model.ckpt-1203.index", (const char *)*state);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/my-model-1200.index", (const char *)*state);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
  }
}

static void as_many_checkpoints_are_kept_as_are_asked_for(void **state) {
  char path[300];
  struct program_builder b;
  struct task *task;
  struct saver *saver;
  struct tensor *value;
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  assert_int_equal(saver_create(task, &(struct saver_config){.folder = *state, .save_steps = 1, .keep = 2}, &saver), OK);
  for (int i = 1; i <= 4; i++) {
    assert_int_equal(task_run(task, 0, NULL, &value, NULL), OK);
    tensor_release(value);
    snprintf(path, sizeof path, "%s/model.ckpt-%d.index", (const char *)*state, i);
    wait_for(path);
  }
  assert_int_equal(saver_finish(saver), OK);
  for (int i = 1; i <= 4; i++) {
    snprintf(path, sizeof path, "%s/model.ckpt-%d.index", (const char *)*state, i);
    assert_int_equal(access(path, F_OK) == 0, i > 2);
  }
  saver_destroy(saver);
  task_destroy(task);
  pb_end(&b);
}

static void two_tasks_do_not_keep_their_variables_in_one_folder(void **state) {
  struct program_builder b, c;
  struct task *task, *other;
  struct saver *saver, *second;
  const struct saver_config config = {.folder = *state, .keep = 2};
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  assert_int_equal(task_create(counter(&c), kernels, 1, &other), OK);
  assert_int_equal(saver_create(task, &config, &saver), OK);
  assert_int_equal(saver_create(other, &config, &second), FAILED_PRECONDITION);
  saver_destroy(saver);
  assert_int_equal(saver_create(other, &config, &second), OK);
  saver_destroy(second);
  task_destroy(task);
  task_destroy(other);
  pb_end(&b);
  pb_end(&c);
}

static void a_task_starts_from_any_checkpoint_and_names_what_it_lacks(void **state) {
  char prefix[300], folder[300];
  struct program_builder b;
  struct task *task;
  struct saver *saver;
  struct tensor *value;
  snprintf(prefix, sizeof prefix, "%s/elsewhere/model", (const char *)*state);
  snprintf(folder, sizeof folder, "%s/own", (const char *)*state);
  write_foreign(prefix, "count", NULL, 1, 40);
  const struct saver_config config = {.folder = folder, .keep = 5, .restore = prefix};
  for (int turn = 0; turn < 2; turn++) { /* the second time its own checkpoint is newer */
    assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
    assert_int_equal(saver_create(task, &config, &saver), OK);
    assert_int_equal(task_run(task, 0, NULL, &value, NULL), OK);
    assert_true(*(float *)value->data == (float)(41 + turn));
    tensor_release(value);
    assert_int_equal(saver_finish(saver), OK);
    saver_destroy(saver);
    task_destroy(task);
    pb_end(&b);
  }
  write_foreign(prefix, "another", NULL, 1, 40);
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  assert_int_equal(saver_create(task, &(struct saver_config){.keep = 5, .restore = prefix}, &saver), NOT_FOUND);
  assert_non_null(strstr(status_text(), prefix));
  task_destroy(task);
  pb_end(&b);
}

/* Part 1 of 2 of a whole that is stored in other parts. */
static void a_part_of_a_variable_is_put_together_from_other_parts(void **state) {
  char prefixes[3][300], prefix[300];
  struct program_builder b;
  struct task *task;
  struct saver *saver;
  const char *slices[] = {"6 0,2", "6 2,2", "6 4,2"}, *parts[3];
  for (int i = 0; i < 3; i++) {
    snprintf(prefixes[i], sizeof prefixes[i], "%s/%d", (const char *)*state, i);
    write_foreign(parts[i] = prefixes[i], "w/Adam", slices[i], 2, (float)(2 * i));
  }
  snprintf(prefix, sizeof prefix, "%s/model", (const char *)*state);
  assert_int_equal(checkpoint_merge(parts, 3, prefix, false), OK);
  const struct program *program = counter(&b);
  struct variable *variable;
  assert_int_equal(task_create(program, kernels, 1, &task), OK);
  variable = &task->variables[0];
  variable->name = "w/part_1/Adam";
  variable->slice = "6 3,3";
  variable->shape = (struct shape){1, {3}};
  assert_int_equal(saver_create(task, &(struct saver_config){.keep = 5, .restore = prefix}, &saver), OK);
  assert_memory_equal(variable->value->data, ((float[]){3, 4, 5}), 3 * sizeof(float));
  saver_destroy(saver);
  task_destroy(task);
  pb_end(&b);
}

/* ---- copies ---- */

static void a_snapshot_has_the_values_of_its_moment_whatever_steps_do_meanwhile(void **state) {
  char prefix[300];
  struct program_builder b;
  struct task *task;
  struct tensor *value;
  struct wire_buffer note = {0};
  struct note_head head = {.id = 7, .holders = 1, .steps = 2}, read;
  struct arena arena;
  struct checkpoint *checkpoint;
  struct checkpoint_value kept;
  snprintf(prefix, sizeof prefix, "%s/model", (const char *)*state);
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  for (int step = 0; step < 5; step++) {
    if (step == 1)
      snapshot_prepare(task);
    if (step == 2)
      snapshot_take(task, &head, &note);
    assert_int_equal(task_run(task, 0, NULL, &value, NULL), OK);
    tensor_release(value);
  }
  assert_int_equal(snapshot_write(task, prefix, &note), OK);
  wire_buffer_free(&note);
  arena_init(&arena);
  assert_int_equal(checkpoint_open(prefix, &arena, &checkpoint), OK);
  assert_int_equal(checkpoint_read(checkpoint, "count", &kept), OK);
  assert_true(*(float *)kept.data == 2);
  assert_int_equal(checkpoint_table(checkpoint)->count, 2); /* the header and the variable: other readers see nothing else */
  assert_int_equal(restore_peek(prefix, &read, NULL), OK);
  assert_true(read.id == 7 && read.holders == 1 && read.steps == 2);
  arena_deinit(&arena);
  task_destroy(task);
  pb_end(&b);
}

static void a_reset_puts_variables_of_its_containers_back(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task;
  struct tensor *value;
  static const struct {
    const char *containers;
    float next;
  } resets[] = {{NULL, 1}, {NULL, 2}, {"elsewhere", 3}, {"elsewhere\nlocalhostile", 4}, {"elsewhere\nlocalhost", 1}, {NULL, 2}};
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  for (size_t i = 0; i < sizeof resets / sizeof *resets; i++) {
    if (resets[i].containers)
      task_reset_all(task, resets[i].containers);
    assert_int_equal(task_run(task, 0, NULL, &value, NULL), OK);
    assert_true(*(float *)value->data == resets[i].next);
    tensor_release(value);
  }
  task_destroy(task);
  pb_end(&b);
}

static long file_size(const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  fclose(file);
  return size;
}

static void a_trace_names_what_ran(void **state) {
  char path[256], text[2048] = "";
  struct program_builder b;
  struct task *task;
  struct trace *trace;
  struct tensor *value;
  snprintf(path, sizeof path, "%s/trace.json", (const char *)*state);
  assert_int_equal(task_create(counter(&b), kernels, 1, &task), OK);
  assert_int_equal(trace_create(path, 0, "worker \"0\"", &trace), OK);
  task_set_trace(task, trace);
  assert_int_equal(task_run(task, 0, NULL, &value, NULL), OK);
  tensor_release(value);
  task_destroy(task);
  assert_int_equal(trace_close(trace), OK);
  FILE *file = fopen(path, "r");
  assert_true(fread(text, 1, sizeof text - 1, file) > 0);
  fclose(file);
  assert_non_null(strstr(text, "\"cat\": \"Op\", \"name\": \"node\""));
  assert_non_null(strstr(text, "worker \\\"0\\\""));
  pb_end(&b);
}

static void an_event_has_only_what_is_a_number(void **state) {
  struct events *events;
  char command[300];
  struct tensor *number, *vector;
  assert_int_equal(tensor_copy_in(DTYPE_FLOAT, &(struct shape){0}, &(float){1.5f}, &number), OK);
  assert_int_equal(tensor_copy_in(DTYPE_FLOAT, &(struct shape){1, {2}}, (float[]){1, 2}, &vector), OK);
  assert_int_equal(events_create(*state, "worker_0", &events), OK);
  events_begin(events, 1);
  events_add(events, "loss", number);
  events_add(events, "weights", vector);
  assert_int_equal(events_end(events), OK);
  events_begin(events, 2);
  assert_int_equal(events_end(events), OK); /* nothing to say */
  assert_int_equal(events_close(events), OK);
  tensor_release(number);
  tensor_release(vector);
  char path[300];
  snprintf(command, sizeof command, "ls %s/events*", (const char *)*state);
  FILE *list = popen(command, "r");
  assert_non_null(fgets(path, sizeof path, list));
  pclose(list);
  path[strcspn(path, "\n")] = 0;
  /* two records: 16 bytes around each; time 9, version 15; time 9, step 2, summary 2 + value 5 + tag 6 + number 5 */
  assert_int_equal(file_size(path), 16 + 9 + 15 + 16 + 9 + 2 + 2 + 5 + 6 + 5);
}

static int make_folder(void **state) {
  *state = malloc(TEMP_PATH_SIZE);
  return temp_folder(*state) ? 0 : -1;
}
static int remove_folder(void **state) {
  int result = temp_folder_remove(*state);
  free(*state);
  return result;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(variables_are_restored_where_they_were, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_task_that_is_killed_goes_on_from_its_last_save, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(only_the_last_checkpoints_are_kept, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_damaged_checkpoint_is_an_error, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_written_is_known_at_the_start, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_save_that_fails_does_not_end_the_training_and_is_told_at_the_end, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(what_a_killed_task_was_writing_is_removed, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(the_state_file_is_honoured_whatever_the_prefix, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(as_many_checkpoints_are_kept_as_are_asked_for, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(two_tasks_do_not_keep_their_variables_in_one_folder, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_task_starts_from_any_checkpoint_and_names_what_it_lacks, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_part_of_a_variable_is_put_together_from_other_parts, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_snapshot_has_the_values_of_its_moment_whatever_steps_do_meanwhile, make_folder, remove_folder),
    cmocka_unit_test(a_reset_puts_variables_of_its_containers_back),
    cmocka_unit_test_setup_teardown(a_trace_names_what_ran, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(an_event_has_only_what_is_a_number, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
