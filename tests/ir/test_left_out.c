/* test_left_out.c: what tfc says of the ops that it has not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/lower/lower.h"
#include "ir/lower/unsupported.h"
#include "ir/ops/op_rows.h"
#include "tests/support/test.h"

static void every_op_of_the_registry_has_a_row_or_a_reason(void **state) {
  (void)state;
  int wrong = 0;
  for (uint32_t i = 0; i < registry_count(); i++) {
    const char *op = registry_at(i)->name;
    if (op_row_find(op) || unsupported_reason(op))
      continue;
    fprintf(stderr, "%s has no row in ops.def, and left_out.def does not say why\n", op);
    wrong++;
  }
  assert_int_equal(wrong, 0);
}

/* But for the rules of optimizers, which make the names of four forms each, some of which TensorFlow has not. */
static void every_row_is_of_an_op_of_the_registry(void **state) {
  (void)state;
  uint32_t count;
  int wrong = 0;
  const struct op_row *rows = op_rows(&count);
  for (uint32_t i = 0; i < count; i++) {
    if (rows[i].build == build_update || registry_find(rows[i].name))
      continue;
    fprintf(stderr, "%s has a row in ops.def, and is no op of TensorFlow's registry (ir/tf_ops.txt)\n", rows[i].name);
    wrong++;
  }
  assert_int_equal(wrong, 0);
}

static bool has_op_without_row(const struct left_out *family) {
  for (uint32_t i = 0; i < registry_count(); i++)
    if (!op_row_find(registry_at(i)->name) && left_out_find(registry_at(i)->name) == family)
      return true;
  return false;
}

/* A name that is written out is an op's, and one without a row; a pattern may fit ops that have one. */
static int check_word(const char *word) {
  if (strchr(word, '*') || (registry_find(word) && !op_row_find(word)))
    return 0;
  fprintf(stderr, "left_out.def has '%s', which %s\n", word, registry_find(word) ? "has a row" : "is no op of the registry");
  return 1;
}

static void what_is_left_out_is_an_op_without_a_row(void **state) {
  (void)state;
  uint32_t count;
  int wrong = 0;
  const struct left_out *families = left_out_list(&count);
  for (uint32_t i = 0; i < count; i++) {
    assert_true(has_op_without_row(&families[i]));
    char *words = strdup(families[i].patterns);
    for (char *at = strtok(words, " "); at; at = strtok(NULL, " "))
      wrong += check_word(at);
    free(words);
  }
  assert_int_equal(wrong, 0);
}

static void reasons_are_of_the_first_family_that_fits(void **state) {
  (void)state;
  assert_string_equal(unsupported_reason("PyFunc"), "it calls Python code, which is not in the graph");
  assert_string_equal(unsupported_reason("TPUExecute"), "it runs on TPUs");
  assert_string_equal(unsupported_reason("LoadTPUEmbeddingADAMParameters"), "it runs on TPUs");
  assert_null(unsupported_reason("NoSuchOp"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_op_of_the_registry_has_a_row_or_a_reason),
    cmocka_unit_test(every_row_is_of_an_op_of_the_registry),
    cmocka_unit_test(what_is_left_out_is_an_op_without_a_row),
    cmocka_unit_test(reasons_are_of_the_first_family_that_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
