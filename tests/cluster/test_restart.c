/* test_restart.c: a task that is started anew goes on from its checkpoint, with what no checkpoint holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/npy.h"
#include "tests/support/temp_path.h"
#include "tests/support/test.h"

#define MODEL SOURCE_DIR "/tests/golden/models/savedmodel_tables/saved_model"

static char folder[TEMP_PATH_SIZE];

static void must(const char *command) {
  if (system(command) != 0)
    test_fail("%s", command);
}

/* The places of "a", "q" and "c" in the model's table, after a step that changes a variable: else nothing is saved. */
static void look(int64_t *places) {
  char command[512];
  struct tensor *found;
  snprintf(
    command, sizeof command,
    "cd %s && out/localhost_0 --checkpoint-dir saved --entry set --entry look --feed look_s=s.npy --fetch StatefulPartitionedCall:1=i.npy >log 2>&1 || { cat log; false; }",
    folder);
  must(command);
  snprintf(command, sizeof command, "%s/i.npy", folder);
  assert_int_equal(npy_read(command, &found), OK);
  assert_int_equal(found->count, 3);
  memcpy(places, found->data, 3 * sizeof *places);
  tensor_release(found);
}

static void tables_of_a_saved_model_are_filled_at_every_start(void **state) {
  (void)state;
  int64_t places[3];
  char command[256];
  for (int start = 0; start < 2; start++) {
    look(places);
    assert_int_equal(places[0], 0);
    assert_int_equal(places[1], -1);
    assert_int_equal(places[2], 2);
  }
  snprintf(command, sizeof command, "test -e %s/saved/checkpoint", folder); /* else nothing was restored */
  must(command);
}

static int build(void **state) {
  char command[512], path[96];
  struct string_view words[3] = {{"a", 1}, {"q", 1}, {"c", 1}};
  struct tensor *s;
  (void)state;
  if (!temp_folder(folder) || tensor_copy_in(DTYPE_STRING, &(struct shape){1, {3}}, words, &s) != OK)
    return 1;
  snprintf(path, sizeof path, "%s/s.npy", folder);
  status result = npy_write(path, s);
  tensor_release(s);
  snprintf(command, sizeof command,
           "cd %s && %s/tfc build %s -o out --entry 'set: -> | Variable/Assign' --entry 'look: look_s -> StatefulPartitionedCall:1'",
           folder, BINARY_DIR, MODEL);
  return result != OK || system(command) != 0;
}

static int clean(void **state) {
  (void)state;
  return temp_folder_remove(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tables_of_a_saved_model_are_filled_at_every_start)};
  return cmocka_run_group_tests(tests, build, clean);
}
