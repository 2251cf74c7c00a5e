/* test_transfer.c: a program that receives three values, and what others may claim to send. */
#include "runtime/step/exchange.h"
#include "runtime/step/transfer.h"
#include "tests/support/program_builder.h"
#include "tests/support/test.h"

static struct program_builder b;
static struct transfer_table *table;

static void receive(uint32_t number, uint32_t from, uint32_t slot) {
  struct program_range outputs = PB_LIST(&b, slot);
  struct program_instr *instr = pb_instr(&b, INSTR_RECV, number);
  instr->peer = from;
  instr->outputs = outputs;
}

/* This is worker_0 of 0 .. 3: transfer 5 is float[8] of task 2, 6 is float[?] of the driver, 7 is int32 of task 1 in one entry, float of
 * the driver in another. */
static int make(void **state) {
  (void)state;
  pb_begin(&b);
  for (int i = 1; i < 4; i++)
    vec_push(&b.tasks, (struct program_task){.job = pb_text(&b, "worker"), .index = (uint32_t)i});
  receive(5, 2, pb_slot(&b, DTYPE_FLOAT, 1, 8, STORAGE_TENSOR));
  receive(6, PROGRAM_TASK_DRIVER, pb_slot(&b, DTYPE_FLOAT, 1, -1, STORAGE_TENSOR));
  receive(7, 1, pb_slot(&b, DTYPE_INT32, 0, 0, STORAGE_TENSOR));
  receive(7, PROGRAM_TASK_SELF, pb_slot(&b, DTYPE_FLOAT, 0, 0, STORAGE_TENSOR));
  pb_entry(&b, "main", 0, 0, 1, 4, false);
  return transfer_table_create(pb_finish(&b), &table) != OK;
}

static int end(void **state) {
  (void)state;
  transfer_table_destroy(table);
  pb_end(&b);
  return 0;
}

#define STEP_OF(task) ((uint64_t)(task) << 48 | 77)

static void only_what_is_compiled_may_come(void **state) {
  (void)state;
  static const struct {
    struct transfer_claim claim;
    bool may;
  } rows[] = {
    {{2, 5, STEP_OF(1), DTYPE_FLOAT, {1, {8}}}, true},
    {{2, 5, STEP_OF(0), DTYPE_FLOAT, {1, {8}}}, true},
    {{1, 5, STEP_OF(1), DTYPE_FLOAT, {1, {8}}}, false}, /* of another task */
    {{2, 5, STEP_OF(1), DTYPE_FLOAT, {1, {9}}}, false}, /* of another size */
    {{2, 5, STEP_OF(1), DTYPE_FLOAT, {2, {8, 1}}}, false},
    {{2, 5, STEP_OF(1), DTYPE_DOUBLE, {1, {8}}}, false},
    {{2, 4, STEP_OF(1), DTYPE_FLOAT, {1, {8}}}, false}, /* nobody receives it */
    {{2, 8, STEP_OF(1), DTYPE_FLOAT, {0}}, false},
    {{3, 6, STEP_OF(3), DTYPE_FLOAT, {1, {1000}}}, true},
    {{3, 6, STEP_OF(1), DTYPE_FLOAT, {1, {1000}}}, false}, /* another drives that step */
    {{1, 7, STEP_OF(3), DTYPE_INT32, {0}}, true},
    {{3, 7, STEP_OF(3), DTYPE_FLOAT, {0}}, true},
    {{3, 7, STEP_OF(3), DTYPE_INT32, {0}}, false},
    {{1, TRANSFER_STATS + 1, STEP_OF(0), DTYPE_UINT8, {1, {9}}}, true},
    {{1, TRANSFER_STATS + 1, STEP_OF(1), DTYPE_UINT8, {1, {9}}}, false}, /* we have not asked for it */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if ((transfer_check(table, &rows[i].claim) == OK) != rows[i].may)
      test_fail("row %zu", i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_is_compiled_may_come)};
  return cmocka_run_group_tests(tests, make, end);
}
