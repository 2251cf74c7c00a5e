/* test_lower_walk.c: which files of ir/lower are one circle of calls (ir/lower/lower_walk.h): the others lie below it, or above. Asked of
 * the objects that were built. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "tests/support/test.h"

static const char walk[] = " lower lower_alternatives lower_choice lower_control lower_function lower_implementation lower_loop"
                           " lower_optimizer lower_variable ";

struct symbol {
  char file[64], name[128];
  bool is_defined;
};
static VEC(struct symbol) symbols;
static VEC(char *) files;

static int number_of(const char *file) {
  for (uint32_t i = 0; i < files.count; i++)
    if (strcmp(files.items[i], file) == 0)
      return (int)i;
  return -1;
}

/* Functions alone: names of one object's own are not listed by -g. */
static void read_symbols(void) {
  char line[1024];
  FILE *in = popen("cd " SOURCE_DIR "/ir/lower && ls *.c | sed 's/\\.c$//' && nm -gA " BINARY_DIR "/libtfc_ir.a 2>/dev/null", "r");
  assert_non_null(in);
  while (fgets(line, sizeof line, in)) {
    struct symbol s = {0};
    char kind;
    char *object = strstr(line, ".a:");
    line[strcspn(line, "\n")] = 0;
    if (!object) {
      vec_push(&files, strdup(line));
    } else if (sscanf(object + 3, "%63[^.].c.o:%*[0-9a-f ]%c %127s", s.file, &kind, s.name) == 3) {
      s.is_defined = kind == 'T';
      if (number_of(s.file) >= 0)
        vec_push(&symbols, s);
    }
  }
  pclose(in);
}

/* calls[a * count + b]: file a uses a function of file b. */
static bool *find_calls(void) {
  uint32_t n = files.count;
  bool *calls = calloc((size_t)n * n, 1);
  for (uint32_t i = 0; i < symbols.count; i++)
    for (uint32_t k = 0; k < symbols.count && !symbols.items[i].is_defined; k++) {
      int a = number_of(symbols.items[i].file), b = number_of(symbols.items[k].file);
      if (a >= 0 && b >= 0 && a != b && symbols.items[k].is_defined && strcmp(symbols.items[i].name, symbols.items[k].name) == 0)
        calls[(uint32_t)a * n + (uint32_t)b] = true;
    }
  return calls;
}

/* Takes away what calls none of the rest, and what none of the rest calls, until nothing goes. */
static void peel(const bool *calls, bool *is_gone) {
  uint32_t n = files.count;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < n; i++) {
      bool uses = false, is_used = false;
      for (uint32_t k = 0; k < n; k++) {
        uses = uses || (!is_gone[k] && calls[i * n + k]);
        is_used = is_used || (!is_gone[k] && calls[k * n + i]);
      }
      more = more || (!is_gone[i] && !(uses && is_used));
      is_gone[i] = is_gone[i] || !(uses && is_used);
    }
  }
}

static void only_files_of_the_walk_are_a_circle(void **state) {
  (void)state;
  read_symbols();
  bool *calls = find_calls(), *is_gone = calloc(files.count + 1, 1);
  assert_true(files.count > 9 && symbols.count > 9);
  peel(calls, is_gone);
  for (uint32_t i = 0; i < files.count; i++) {
    char word[80];
    snprintf(word, sizeof word, " %s ", files.items[i]);
    if (!is_gone[i] != (strstr(walk, word) != NULL))
      test_fail("ir/lower/%s.c is %s the circle", files.items[i], is_gone[i] ? "no longer in" : "in");
    free(files.items[i]);
  }
  free(calls);
  free(is_gone);
  vec_free(&symbols);
  vec_free(&files);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_files_of_the_walk_are_a_circle),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
