/* test_variable.c: variables that are read while another step gives them a value and takes it away; copies aside. */
#include "runtime/memory/variable.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/program/program_check.h"
#include "tests/support/program_builder.h"
#include "tests/support/test.h"

#define ROUNDS 1000000

static void *assign_and_forget(void *argument) {
  struct variable *variable = argument;
  float value = 3;
  for (int i = 0; i < ROUNDS; i++) {
    (void)!variable_assign(variable, &(struct shape){0}, &value);
    (void)variable_forget(variable);
  }
  return NULL;
}

static void a_variable_may_be_forgotten_while_it_is_read(void **state) {
  (void)state;
  struct variable variable = {.name = "v", .container = "localhost", .dtype = DTYPE_FLOAT, .has_shape = true};
  pthread_t thread;
  int others = 0;
  pthread_mutex_init(&variable.lock, NULL);
  assert_int_equal(pthread_create(&thread, NULL, assign_and_forget, &variable), 0);
  for (int i = 0; i < ROUNDS; i++) {
    struct tensor *value;
    status result = variable_read(&variable, &value);
    if (result == OK) {
      others += *(float *)value->data != 3;
      tensor_release(value);
    } else {
      others += result != FAILED_PRECONDITION;
    }
  }
  pthread_join(thread, NULL);
  assert_int_equal(others, 0);
  assert_false(variable_forget(&variable));
  variable_deinit(&variable);
}

/* ---- copies aside ---- */

static void variable_of_floats(struct variable *out, int64_t count) {
  *out = (struct variable){.name = "v", .container = "localhost", .dtype = DTYPE_FLOAT, .has_shape = true, .shape = {1, {count}}};
  pthread_mutex_init(&out->lock, NULL);
}

/* A first checkpoint would else have to get it while a step waits. */
static void memory_for_the_copy_is_there_before_the_first_value(void **state) {
  (void)state;
  struct variable variable;
  struct tensor *copy;
  const float value[2] = {3, 4};
  variable_of_floats(&variable, 2);
  variable_prepare_aside(&variable);
  const struct tensor *memory = variable.aside;
  assert_non_null(memory);
  assert_int_equal(variable_assign(&variable, &variable.shape, value), OK);
  variable_mark(&variable);
  assert_int_equal(variable_take_aside(&variable, &copy), OK);
  assert_ptr_equal(copy, memory);
  assert_memory_equal(copy->data, value, sizeof value);
  tensor_release(copy);
  variable_deinit(&variable);
}

static void *prepare(void *argument) {
  variable_prepare_aside(argument);
  return NULL;
}

static void memory_that_comes_late_does_not_replace_a_copy(void **state) {
  (void)state;
  struct variable variable;
  struct tensor *copy;
  pthread_t thread;
  const int64_t count = 4 << 20;
  float *ones = calloc((size_t)count, sizeof *ones);
  for (int64_t i = 0; i < count; i++)
    ones[i] = 1;
  for (unsigned round = 0; round < 40; round++) {
    variable_of_floats(&variable, count);
    assert_int_equal(variable_assign(&variable, &variable.shape, ones), OK);
    assert_int_equal(pthread_create(&thread, NULL, prepare, &variable), 0);
    usleep(round * 50);
    variable_mark(&variable);
    assert_int_equal(variable_assign(&variable, &variable.shape, ones), OK);
    pthread_join(thread, NULL);
    assert_int_equal(variable_take_aside(&variable, &copy), OK);
    assert_true(((const float *)copy->data)[0] == 1 && ((const float *)copy->data)[count - 1] == 1);
    tensor_release(copy);
    variable_deinit(&variable);
  }
  free(ones);
}

/* ---- in panels ---- */

#define ROWS 3
#define COLUMNS 7
#define WIDTH 4 /* two panels, the second one of which is not full */

/* A program with f32[3,7] in panels of 4 columns, which starts with `packed`. */
static const struct program *program_with_panels(struct program_builder *b, const float *packed) {
  static const int64_t words[] = {[PANEL_RANK] = 2,      [PANEL_LANES] = 1,           [PANEL_COUNT] = COLUMNS,
                                  [PANEL_WIDTH] = WIDTH, [PANEL_OUTER] = 0,           [PANEL_WORDS] = ROWS,
                                  [PANEL_WORDS + 1] = 0, [PANEL_WORDS + 2] = COLUMNS, [PANEL_WORDS + 3] = 0};
  static const int64_t packed_dims[] = {2, ROWS, WIDTH};
  pb_begin(b);
  uint32_t number = pb_variable(b, "w", DTYPE_FLOAT, false);
  struct program_variable *v = &b->variables.items[number];
  v->rank = 2;
  v->dims = b->words.count;
  vec_push(&b->words, ROWS);
  vec_push(&b->words, COLUMNS);
  v->panels = b->words.count + 1;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    vec_push(&b->words, words[i]);
  v->has_initial = PROGRAM_INITIAL_DATA;
  v->initial_rank = 3;
  v->initial_dims = b->words.count;
  for (int i = 0; i < 3; i++)
    vec_push(&b->words, packed_dims[i]);
  v->initial = b->data.count;
  for (size_t i = 0; i < sizeof(float) * 2 * ROWS * WIDTH; i++)
    vec_push(&b->data, ((const char *)packed)[i]);
  return pb_finish(b);
}
static float dense_at(int row, int column, float from) { return from + (float)(row * COLUMNS + column); }
static void fill_packed(float packed[2][ROWS][WIDTH], float from) {
  for (int p = 0; p < 2; p++)
    for (int row = 0; row < ROWS; row++)
      for (int i = 0; i < WIDTH; i++)
        packed[p][row][i] = p * WIDTH + i < COLUMNS ? dense_at(row, p * WIDTH + i, from) : 0;
}
static void check_value(struct variable *variable, float from) {
  float packed[2][ROWS][WIDTH];
  struct tensor *value;
  fill_packed(packed, from);
  assert_int_equal(variable_read(variable, &value), OK);
  assert_true(shape_equal(&value->shape, &(struct shape){3, {2, ROWS, WIDTH}}));
  assert_memory_equal(value->data, packed, sizeof packed);
  tensor_release(value);
}

/* Steps have it as it lies, checkpoints have it dense. */
static void a_variable_in_panels_is_dense_in_checkpoints(void **state) {
  (void)state;
  float packed[2][ROWS][WIDTH], dense[ROWS][COLUMNS];
  struct program_builder b;
  struct variable variable = {0}, copy = {0};
  struct tensor *aside;
  fill_packed(packed, 1);
  const struct program *program = program_with_panels(&b, &packed[0][0][0]);
  assert_int_equal(program_check(program), OK);
  assert_int_equal(variable_init(&variable, program, 0), OK);
  check_value(&variable, 1);
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++)
      dense[row][column] = dense_at(row, column, 50);
  const struct shape declared = {2, {ROWS, COLUMNS}}, turned = {2, {COLUMNS, ROWS}};
  assert_int_equal(variable_restore(&variable, &declared, dense), OK);
  check_value(&variable, 50);
  assert_int_equal(variable_restore(&variable, &turned, dense), INVALID_ARGUMENT);
  assert_non_null(strstr(status_text(), "'w' has shape [3,7], assigned is [7,3]"));
  variable_mark(&variable);
  assert_int_equal(variable_assign(&variable, &variable.shape, packed), OK);
  assert_int_equal(variable_take_aside(&variable, &aside), OK);
  assert_true(shape_equal(&aside->shape, &declared));
  assert_memory_equal(aside->data, dense, sizeof dense);
  tensor_release(aside);
  check_value(&variable, 1);
  assert_int_equal(variable_clone(&variable, &copy), OK);
  assert_int_equal(variable_restore(&copy, &declared, dense), OK);
  check_value(&copy, 50);
  variable_deinit(&copy);
  variable_deinit(&variable);
  pb_end(&b);
}

static void panels_that_are_none_are_refused(void **state) {
  (void)state;
  static const struct {
    int word;
    int64_t value;
  } wrong[] = {{PANEL_RANK, 0},          {PANEL_RANK, LIMIT_RANK},
               {PANEL_LANES, 2},         {PANEL_LANES, -1},
               {PANEL_COUNT, 6},         {PANEL_WIDTH, 0},
               {PANEL_WIDTH, INT64_MAX}, {PANEL_OUTER, 2},
               {PANEL_WORDS, 4},         {PANEL_WORDS, 0},
               {PANEL_WORDS, INT64_MAX}, {PANEL_WORDS + 1, 1},
               {PANEL_WORDS + 1, 7},     {PANEL_WORDS + 2, COLUMNS + 1}};
  const float packed[2 * ROWS * WIDTH] = {0};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct program_builder b;
    const struct program *program = program_with_panels(&b, packed);
    int64_t *words = (int64_t *)(uintptr_t)program_words(program, program_variable(program, 0)->panels - 1);
    words[wrong[i].word] = wrong[i].value;
    assert_int_equal(program_check(program), DATA_LOSS);
    pb_end(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_variable_may_be_forgotten_while_it_is_read),
    cmocka_unit_test(memory_for_the_copy_is_there_before_the_first_value),
    cmocka_unit_test(memory_that_comes_late_does_not_replace_a_copy),
    cmocka_unit_test(a_variable_in_panels_is_dense_in_checkpoints),
    cmocka_unit_test(panels_that_are_none_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
