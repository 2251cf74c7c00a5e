/* What was measured decides before the cost does: it is found again in its folder, and only what is still proposed is taken from there. */
#include "compiler/schedule/tune.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/temp_path.h"
#include "tests/support/test.h"

#define PRODUCT(rows, sizes)                                                                                  \
  "kernel k(in a: f32[" rows ",256], in b: f32[256,512], out c: f32[" rows ",512])" sizes " { par i0 < " rows \
  " { par i1 < 512 { var v0: f32 = 0:f32 red i2 < 256 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }"

static char folder[TEMP_PATH_SIZE];
static struct arena arena;

static const char *chosen(const char *text, struct tuner *t) {
  struct kernel *k;
  const char *steps = NULL;
  assert_int_equal(kernel_parse(text, &arena, &k), OK);
  assert_int_equal(schedule_choose(k, machine_find("native"), t, &arena, &steps), OK);
  return steps ? steps : "plain loops";
}

/* The only file of the folder; NULL: none. */
static const char *finding(void) {
  const char *path = NULL;
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  for (struct dirent *entry; (entry = readdir(dir));)
    if (entry->d_name[0] != '.') {
      assert_null(path);
      path = arena_printf(&arena, "%s/%s", folder, entry->d_name);
    }
  closedir(dir);
  return path;
}
static const char *first_line(const char *path) {
  char line[1024] = "";
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  line[strcspn(line, "\n")] = 0;
  return arena_strdup(&arena, line);
}
static void write_line(const char *path, const char *line) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%s\n", line);
  fclose(file);
}

static int begin(void **state) {
  (void)state;
  arena_init(&arena);
  return !temp_folder(folder);
}
static int end(void **state) {
  (void)state;
  const char *path = finding();
  if (path)
    unlink(path);
  rmdir(folder);
  arena_deinit(&arena);
  return 0;
}

static void what_was_measured_is_found_again(void **state) {
  (void)state;
  struct tuner t = {.seconds = 30, .folder = folder};
  assert_int_equal(tuner_open(&t), OK);
  const char *steps = chosen(PRODUCT("8", ""), &t);
  assert_int_equal(t.measured, 1);
  assert_true(t.seconds > 0 && t.seconds < 30);
  assert_string_equal(first_line(finding()), steps);
  struct tuner later = {.seconds = 0, .folder = folder};
  assert_string_equal(chosen(PRODUCT("8", ""), &later), steps);
  assert_int_equal(later.known, 1);
  assert_int_equal(later.measured + later.guessed, 0);
}

/* The cost model takes steps for this kernel on every machine with multiply-adds. */
static void a_finding_decides_against_the_cost(void **state) {
  (void)state;
  struct tuner t = {.seconds = 30, .folder = folder}, later = {.folder = folder};
  chosen(PRODUCT("8", ""), &t);
  write_line(finding(), "plain loops");
  assert_string_equal(chosen(PRODUCT("8", ""), &later), "plain loops");
  assert_int_equal(later.known, 1);
}

static void steps_that_nobody_proposes_are_not_taken(void **state) {
  (void)state;
  struct tuner t = {.seconds = 30, .folder = folder}, later = {.folder = folder};
  chosen(PRODUCT("8", ""), &t);
  write_line(finding(), "split n 3 -> x y");
  assert_string_not_equal(chosen(PRODUCT("8", ""), &later), "split n 3 -> x y");
  assert_int_equal(later.guessed, 1);
}

static void without_time_or_with_open_sizes_the_cost_decides(void **state) {
  (void)state;
  struct tuner none = {.folder = folder}, open = {.seconds = 30, .folder = folder};
  assert_string_equal(chosen(PRODUCT("8", ""), &none), chosen(PRODUCT("8", ""), NULL));
  assert_int_equal(none.guessed, 1);
  assert_string_equal(chosen(PRODUCT("n0", " sizes 1"), &open), chosen(PRODUCT("n0", " sizes 1"), NULL));
  assert_int_equal(open.guessed, 1);
  assert_null(finding());
}

static void a_folder_that_cannot_be_made_is_named(void **state) {
  (void)state;
  struct tuner t = {.folder = "/proc/no/folder"};
  assert_int_equal(tuner_open(&t), DATA_LOSS);
  assert_non_null(strstr(status_text(), "--cache /proc/no/folder"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_was_measured_is_found_again, begin, end),
    cmocka_unit_test_setup_teardown(a_finding_decides_against_the_cost, begin, end),
    cmocka_unit_test_setup_teardown(steps_that_nobody_proposes_are_not_taken, begin, end),
    cmocka_unit_test_setup_teardown(without_time_or_with_open_sizes_the_cost_decides, begin, end),
    cmocka_unit_test(a_folder_that_cannot_be_made_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
