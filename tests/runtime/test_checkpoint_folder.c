/* test_checkpoint_folder.c: a complete checkpoint keeps its name and its files when the state file cannot be written. */
#include "runtime/checkpoint/checkpoint_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_path.h"
#include "tests/support/test.h"

static char folder_path[TEMP_PATH_SIZE];

static const char *path_of(const char *name, const char *ending) {
  static char path[TEMP_PATH_SIZE + CHECKPOINT_NAME_MAX + 16];
  snprintf(path, sizeof path, "%s/%s%s", folder_path, name, ending);
  return path;
}

static void what_is_complete_is_not_written_over(void **state) {
  struct checkpoint_folder folder;
  char first[CHECKPOINT_NAME_MAX], second[CHECKPOINT_NAME_MAX], text[4096];
  (void)state;
  assert_true(temp_folder(folder_path));
  assert_int_equal(checkpoint_folder_open(&folder, folder_path, 5), OK);
  assert_int_equal(checkpoint_folder_begin(&folder, 7, first, sizeof first), OK);
  FILE *file = fopen(path_of(first, ".index"), "w");
  assert_non_null(file);
  fclose(file);
  assert_int_equal(mkdir(path_of("checkpoint", ".tmp"), 0700), 0); /* where the state file is written beside */
  assert_int_not_equal(checkpoint_folder_add(&folder, first), OK);
  assert_int_equal(checkpoint_folder_begin(&folder, 7, second, sizeof second), OK);
  assert_string_not_equal(first, second);
  assert_int_equal(access(path_of(first, ".index"), R_OK), 0);
  assert_int_equal(rmdir(path_of("checkpoint", ".tmp")), 0);
  assert_int_equal(checkpoint_folder_add(&folder, second), OK);
  file = fopen(path_of("checkpoint", ""), "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  assert_non_null(strstr(text, first));
  assert_non_null(strstr(text, second));
  checkpoint_folder_close(&folder);
  unlink(path_of(first, ".index"));
  unlink(path_of("checkpoint", ""));
  assert_int_equal(rmdir(folder_path), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_complete_is_not_written_over)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
