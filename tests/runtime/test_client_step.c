/* test_client_step.c: steps as clients run them, on hand-made programs: in parts, recorded, explained, out of memory. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/program/program_check.h"
#include "runtime/step/memory_report.h"
#include "runtime/step/partial.h"
#include "runtime/step/step_stats.h"
#include "runtime/step/task.h"
#include "tests/support/program_builder.h"
#include "tests/support/test.h"

static int64_t one_tile(const int64_t *sizes, int64_t what) {
  (void)sizes;
  return what >= 0 || what == KERNEL_PHASES ? 1 : 0;
}
/* out[i] = in[i] * 2 */
static void run_double(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)phase, (void)begin, (void)end;
  for (int64_t i = 0; i < call->sizes[0]; i++)
    ((float *)call->buffers[1])[i] = ((const float *)call->buffers[0])[i] * 2;
}
static atomic_bool is_held;
static void run_held(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end) {
  (void)phase, (void)begin, (void)end;
  while (atomic_load(&is_held))
    usleep(1000);
  run_double(call, phase, begin, end);
}
static const struct kernel_code kernels[] = {{run_double, one_tile}, {run_held, one_tile}};
enum { DOUBLE, HELD, KERNELS };

/* x: [n], y: [m] -> a = 2x, b = 2y, as a part that runs in order and one that runs by counts. */
static void add_instrs(struct program_builder *b, bool by_counts, int kernel) {
  uint32_t first = b->instrs.count;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t in = i * 2, out = i * 2 + 1;
    struct program_range outputs = PB_LIST(b, in);
    struct program_instr *feed = pb_instr(b, INSTR_FEED, i);
    feed->outputs = outputs;
    feed->node = pb_text(b, i ? "y" : "x");
    feed->tf_op = pb_text(b, "Placeholder");
    struct program_range made = PB_LIST(b, out);
    struct program_instr *instr = pb_kernel(b, (uint32_t)kernel, PB_LIST(b, in, out), -1 - (int64_t)i);
    instr->outputs = made;
    instr->flags = INSTR_MAKES | (by_counts ? INSTR_LATE : 0);
    instr->node = pb_text(b, i ? "b" : "a");
    instr->tf_op = pb_text(b, "Double");
    struct program_range args = PB_LIST(b, out);
    pb_instr(b, INSTR_FETCH, i)->args = args;
  }
  for (uint32_t i = 0; by_counts && i < 6; i++) {
    uint32_t next = i + 1;
    struct program_range successors = pb_list(b, i % 3 < 2, &next);
    b->instrs.items[first + i].successors = successors;
    b->instrs.items[first + i].need_count = i % 3 > 0;
  }
}

static void add_slots(struct program_builder *b) {
  for (int64_t i = 0; i < 2; i++) {
    pb_slot(b, DTYPE_FLOAT, 1, -1 - i, STORAGE_TENSOR);
    pb_slot(b, DTYPE_FLOAT, 1, -1 - i, STORAGE_TENSOR);
  }
}

static struct task *load(struct program_builder *b, int kernel) {
  struct task *task = NULL;
  pb_begin(b);
  pb_port(b, "x", DTYPE_FLOAT, 1, -1);
  pb_port(b, "y", DTYPE_FLOAT, 1, -2);
  pb_port(b, "a", DTYPE_FLOAT, 1, -1);
  pb_port(b, "b", DTYPE_FLOAT, 1, -2);
  add_slots(b);
  add_instrs(b, false, kernel);
  pb_entry(b, "main", 2, 2, 2, 6, false);
  b->sizes = b->kernels = 0; /* of each part */
  add_slots(b);
  for (uint32_t i = 4; i < 8; i++)
    b->slots.items[i].root = i - 4;
  add_instrs(b, true, kernel);
  vec_push(&b->blocks, (struct program_block){.instrs = {6, 6}});
  vec_push(&b->parts, (struct program_part){.block = 1, .slots = {4, 4}, .instr_count = 6, .dataflow = 1});
  struct program_range needs = PB_LIST(b, 1, 0, 0, 1);
  struct program_entry *entry = &b->entries.items[0];
  entry->functions = (struct program_range){1, 1};
  entry->partial = 2;
  entry->partial_needs = needs;
  b->kernel_count = KERNELS;
  const struct program *program = pb_finish(b);
  if (program_check(program) != OK)
    test_fail("program_check: %s", status_text());
  assert_int_equal(task_create(program, kernels, 1, &task), OK);
  return task;
}

static void unload(struct program_builder *b, struct task *task) {
  task_close(task);
  task_destroy(task);
  pb_end(b);
}

static struct tensor *floats(int64_t count, float value) {
  struct tensor *tensor = NULL;
  assert_int_equal(tensor_create(DTYPE_FLOAT, &(struct shape){1, {count}}, &tensor), OK);
  for (int64_t i = 0; i < count; i++)
    ((float *)tensor->data)[i] = value;
  return tensor;
}

struct runner {
  pthread_t thread;
  struct task *task;
  struct run_request request;
  status code;
};
static void *run_thread(void *self) {
  struct runner *runner = self;
  struct tensor *feeds[2] = {NULL, NULL}, *fetches[2];
  if (runner->request.partial) {
    runner->code = task_run(runner->task, 0, NULL, NULL, &runner->request);
    partial_end(runner->request.partial, runner->code, runner->code == OK ? "" : status_text());
    return NULL;
  }
  feeds[0] = floats(1, 1);
  feeds[1] = floats(1, 1);
  runner->code = task_run(runner->task, 0, feeds, fetches, &runner->request);
  for (int i = 0; i < 2; i++) {
    tensor_release(feeds[i]);
    tensor_release(fetches[i]);
  }
  return NULL;
}

/* ---- partial runs ---- */

static void feeds_of_a_partial_run_come_in_any_order_and_with_any_size(void **state) {
  (void)state;
  static const atomic_bool never;
  for (uint32_t order = 0; order < 2; order++) {
    struct program_builder b;
    struct task *task = load(&b, DOUBLE);
    struct partial *partial;
    struct tensor *fetched;
    assert_int_equal(partial_create(2, 2, &partial), OK);
    struct runner runner = {.task = task, .request = {.partial = partial}};
    pthread_create(&runner.thread, NULL, run_thread, &runner);
    for (uint32_t turn = 0; turn < 2; turn++) {
      uint32_t which = turn ^ order;
      partial_feed(partial, which, floats(3 + which, 5));
      if (partial_await(partial, which, &never, &fetched) != OK)
        test_fail("%s", status_text());
      assert_int_equal(fetched->shape.dims[0], 3 + which);
      assert_true(((float *)fetched->data)[2] == 10);
      tensor_release(fetched);
    }
    assert_int_equal(partial_await_end(partial, &never), OK);
    pthread_join(runner.thread, NULL);
    partial_destroy(partial);
    unload(&b, task);
  }
}

static void a_partial_run_that_is_given_up_ends(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load(&b, DOUBLE);
  struct partial *partial;
  struct tensor *fetched;
  static atomic_bool gone;
  assert_int_equal(partial_create(2, 2, &partial), OK);
  atomic_store(&gone, false);
  struct runner runner = {.task = task, .request = {.gone = &gone, .partial = partial}};
  pthread_create(&runner.thread, NULL, run_thread, &runner);
  partial_feed(partial, 0, floats(1, 1));
  assert_int_equal(partial_await(partial, 0, &gone, &fetched), OK);
  tensor_release(fetched);
  atomic_store(&gone, true);
  task_poll_clients(task);
  pthread_join(runner.thread, NULL);
  assert_int_equal(runner.code, CANCELLED);
  static const atomic_bool never;
  assert_int_equal(partial_await(partial, 1, &never, &fetched), CANCELLED);
  partial_destroy(partial);
  unload(&b, task);
}

/* ---- what a step is at ---- */

static void await_words(struct task *task, const atomic_bool *gone, const char *words) {
  char text[1024] = "";
  for (int i = 0; i < 5000 && !strstr(text, words); i++) {
    usleep(1000);
    task_explain(task, gone, text, sizeof text);
  }
  if (!strstr(text, words))
    test_fail("'%s' lacks '%s'", text, words);
}

static void a_step_says_what_it_is_in_and_what_it_waits_for(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load(&b, HELD);
  static atomic_bool gone, other;
  char text[256];
  atomic_store(&is_held, true);
  struct runner runner = {.task = task, .request = {.gone = &gone}};
  pthread_create(&runner.thread, NULL, run_thread, &runner);
  await_words(task, &gone, "/job:worker/task:0 is in Double 'a'");
  await_words(task, NULL, "Double 'a'");
  task_explain(task, &other, text, sizeof text);
  assert_string_equal(text, "");
  atomic_store(&is_held, false);
  pthread_join(runner.thread, NULL);
  assert_int_equal(runner.code, OK);
  struct partial *partial;
  assert_int_equal(partial_create(2, 2, &partial), OK);
  runner = (struct runner){.task = task, .request = {.gone = &gone, .partial = partial}};
  atomic_store(&gone, false);
  pthread_create(&runner.thread, NULL, run_thread, &runner);
  await_words(task, &gone, "waits for Placeholder 'x'; /job:worker/task:0 waits for Placeholder 'y'");
  atomic_store(&gone, true);
  task_poll_clients(task);
  pthread_join(runner.thread, NULL);
  partial_destroy(partial);
  unload(&b, task);
}

/* ---- records ---- */

/* What a step waited for is in its record as long as it waited: here the feeds of a partial run, which are no nodes, and the kernels. */
static void a_trace_of_a_step_that_waits_has_what_came_after(void **state) {
  (void)state;
  static const atomic_bool never;
  struct program_builder b;
  struct task *task = load(&b, DOUBLE);
  struct partial *partial;
  struct wire_buffer metadata = {0};
  assert_int_equal(partial_create(2, 2, &partial), OK);
  struct runner runner = {.task = task, .request = {.partial = partial}};
  assert_int_equal(step_stats_create(task, &runner.request.stats), OK);
  pthread_create(&runner.thread, NULL, run_thread, &runner);
  partial_feed(partial, 1, floats(3, 5));
  partial_feed(partial, 0, floats(3, 5));
  assert_int_equal(partial_await_end(partial, &never), OK);
  pthread_join(runner.thread, NULL);
  step_stats_write(runner.request.stats, &metadata);
  assert_non_null(memmem(metadata.data, metadata.size, "b = Double(y)", 13));
  wire_buffer_free(&metadata);
  step_stats_destroy(runner.request.stats);
  partial_destroy(partial);
  unload(&b, task);
}

static bool has_bytes(const struct wire_buffer *b, const char *text) { return memmem(b->data, b->size, text, strlen(text)) != NULL; }

static void a_recorded_step_lists_its_nodes_with_inputs_and_device(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load(&b, DOUBLE);
  struct tensor *feeds[2] = {floats(2, 1), floats(3, 1)}, *fetches[2];
  struct run_request request = {.reports_memory = true};
  struct wire_buffer metadata = {0};
  assert_int_equal(step_stats_create(task, &request.stats), OK);
  assert_int_equal(task_run(task, 0, feeds, fetches, &request), OK);
  step_stats_write(request.stats, &metadata);
  assert_true(has_bytes(&metadata, "/job:worker/replica:0/task:0/device:CPU:0"));
  assert_true(has_bytes(&metadata, "a = Double(x)") && has_bytes(&metadata, "b = Double(y)"));
  struct wire wire = wire_over(metadata.data, metadata.size), stats, device;
  struct wire_field field;
  int nodes = 0;
  assert_true(wire_next(&wire, &field) && field.number == 1);
  stats = wire_inside(&field);
  assert_true(wire_next(&stats, &field) && field.number == 1);
  device = wire_inside(&field);
  while (wire_next(&device, &field))
    nodes += field.number == 2;
  assert_int_equal(nodes, 2);
  wire_buffer_free(&metadata);
  entry_graphs_write(task, 0, &metadata);
  assert_true(has_bytes(&metadata, "Double") && has_bytes(&metadata, "Placeholder"));
  wire_buffer_free(&metadata);
  step_stats_destroy(request.stats);
  for (int i = 0; i < 2; i++) {
    tensor_release(feeds[i]);
    tensor_release(fetches[i]);
  }
  unload(&b, task);
}

/* AddressSanitizer ends a program that asks for so much, unless told not to. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

static void out_of_memory_names_the_largest_tensors(void **state) {
  (void)state;
  struct program_builder b;
  struct task *task = load(&b, DOUBLE);
  struct tensor *small = floats(1 << 18, 1), *large = NULL, *fetches[2];
  struct tensor claimed = {.dtype = DTYPE_FLOAT, .shape = {1, {INT64_C(1) << 40}}, .count = INT64_C(1) << 40, .references = 1};
  large = &claimed; /* never read: its output cannot be made */
  struct tensor *feeds[2] = {small, large};
  struct run_request request = {.reports_memory = true};
  assert_int_equal(task_run(task, 0, feeds, fetches, &request), RESOURCE_EXHAUSTED);
  assert_non_null(strstr(status_text(), MEMORY_REPORT "/job:worker/task:0: "));
  assert_non_null(strstr(status_text(), "1.0 MiB float[262144] of Double 'a'"));
  request.reports_memory = false;
  assert_int_equal(task_run(task, 0, feeds, fetches, &request), RESOURCE_EXHAUSTED);
  assert_null(strstr(status_text(), MEMORY_REPORT));
  tensor_release(small);
  unload(&b, task);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(feeds_of_a_partial_run_come_in_any_order_and_with_any_size),
    cmocka_unit_test(a_partial_run_that_is_given_up_ends),
    cmocka_unit_test(a_step_says_what_it_is_in_and_what_it_waits_for),
    cmocka_unit_test(a_trace_of_a_step_that_waits_has_what_came_after),
    cmocka_unit_test(a_recorded_step_lists_its_nodes_with_inputs_and_device),
    cmocka_unit_test(out_of_memory_names_the_largest_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
