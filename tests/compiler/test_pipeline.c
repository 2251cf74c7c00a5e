/* test_pipeline.c: the table of passes is in order, and golden IR: what a pass is given and what it makes of it.
 *
 * tests/golden_ir/CASE holds graph.pbtxt, args (the pass, then arguments of `tfc build`), and the recorded texts in.ir and
 * out.ir; beside them out.order, out.lanes and so on: what passes that decide about the program have decided. With --bless (or
 * TFC_BLESS=1) the texts are written instead of compared: read the difference before it is committed. */
#include "compiler/pipeline.h"
#include "tests/support/temp_path.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define CASES SOURCE_DIR "/tests/golden_ir"
#define ARGS_MAX 16

static bool bless;

/* ---- the table ---- */

static void each_pass_comes_after_those_whose_facts_it_needs(void **state) {
  (void)state;
  unsigned facts = 0;
  for (uint32_t i = 0; i < pass_count; i++) {
    if ((facts & passes[i].needs) != passes[i].needs)
      fail_msg("pass %s needs facts %#x, there are %#x", passes[i].name, passes[i].needs, facts);
    facts = (facts | passes[i].gives) & ~passes[i].breaks;
  }
  assert_true(facts & FACT_PARTS);
}

static void each_pass_has_a_name_and_a_sentence_of_its_own(void **state) {
  (void)state;
  for (uint32_t i = 0; i < pass_count; i++) {
    assert_non_null(passes[i].run);
    assert_true(passes[i].name[0] && passes[i].after[0]);
    for (uint32_t j = 0; j < i; j++) {
      assert_string_not_equal(passes[i].name, passes[j].name);
      assert_string_not_equal(passes[i].after, passes[j].after);
    }
  }
}

/* Reading is the only way in: no fact may be given twice, but after a pass that broke it. */
static void no_fact_is_given_twice(void **state) {
  (void)state;
  unsigned facts = 0;
  for (uint32_t i = 0; i < pass_count; i++) {
    if (facts & passes[i].gives)
      fail_msg("pass %s gives what is there already", passes[i].name);
    facts = (facts | passes[i].gives) & ~passes[i].breaks;
  }
}

/* ---- golden IR ---- */

struct golden {
  char folder[512];
  char *args_text, *args[ARGS_MAX]; /* the pass, then options with their values */
  int arg_count;
  char cluster_path[64]; /* a file for the cluster's JSON; "" */
  struct build build;
};

/* The whole file, NUL-terminated; NULL when there is none. */
static char *file_read(const char *folder, const char *name) {
  char path[1024], *text = NULL;
  size_t size = 0;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *in = fopen(path, "r");
  if (!in)
    return NULL;
  FILE *out = open_memstream(&text, &size);
  for (int c; (c = fgetc(in)) != EOF;)
    fputc(c, out);
  fclose(in);
  fclose(out);
  return text;
}

static void file_write(const char *folder, const char *name, const char *text) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fputs(text, out);
  fclose(out);
}

static void write_cluster(struct golden *g, const char *json) {
  assert_true(temp_file(g->cluster_path, ".json", json, strlen(json)));
  g->build.options.cluster_path = g->cluster_path;
}

static void set_option(struct golden *g, const char *name, char *value) {
  if (strcmp(name, "--entry") == 0)
    vec_push(&g->build.options.entries, value);
  else if (strcmp(name, "--cpu") == 0)
    g->build.options.cpu = value;
  else if (strcmp(name, "--replicate") == 0)
    g->build.options.replicate = value;
  else if (strcmp(name, "--strategy") == 0)
    g->build.options.strategy = value;
  else if (strcmp(name, "--cluster") == 0)
    write_cluster(g, value);
  else
    fail_msg("%s: %s is no option of a golden case", g->folder, name);
}

static void golden_init(struct golden *g, const char *name) {
  memset(g, 0, sizeof *g);
  snprintf(g->folder, sizeof g->folder, "%s/%s", CASES, name);
  g->args_text = file_read(g->folder, "args");
  assert_non_null(g->args_text);
  for (char *line = strtok(g->args_text, "\n"); line && g->arg_count < ARGS_MAX; line = strtok(NULL, "\n"))
    g->args[g->arg_count++] = line;
  assert_true(g->arg_count % 2 == 1);
  arena_init(&g->build.arena);
  g->build.options.graph_path = arena_printf(&g->build.arena, "%s/graph.pbtxt", g->folder);
  g->build.options.cpu = "x86-64-v3";
  for (int i = 1; i < g->arg_count; i += 2)
    set_option(g, g->args[i], g->args[i + 1]);
}

static void golden_deinit(struct golden *g) {
  if (g->cluster_path[0])
    unlink(g->cluster_path);
  model_deinit(&g->build.model);
  vec_free(&g->build.options.entries);
  arena_deinit(&g->build.arena);
  free(g->args_text);
}

/* The first line in which two texts differ, for the report. */
static uint32_t first_difference(const char *a, const char *b) {
  uint32_t line = 1;
  for (; *a && *a == *b; a++, b++)
    line += *a == '\n';
  return line;
}

/* The build's, or what the pass has decided. */
static char *text_of(struct build *b, unsigned facts, const char *pass) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (pass)
    assert_true(pipeline_print_pass(b, pass, out));
  else
    pipeline_print(b, facts, out);
  fclose(out);
  return text;
}

/* Takes the text. */
static uint32_t compare_or_bless(const struct golden *g, const char *name, char *text) {
  if (bless) {
    file_write(g->folder, name, text);
    free(text);
    return 0;
  }
  char *wanted = file_read(g->folder, name);
  bool same = wanted && strcmp(wanted, text) == 0;
  if (!same)
    print_error("%s/%s: differs from line %u on (--bless rewrites it)\n", g->folder, name, wanted ? first_difference(wanted, text) : 1);
  free(wanted);
  free(text);
  return !same;
}

/* Runs all passes; 1 for each text that differs: what the case's pass is given and makes, and what the last ones decide. */
static uint32_t golden_run(struct golden *g) {
  struct build *b = &g->build;
  unsigned facts = 0;
  uint32_t different = 0;
  bool found = false;
  for (uint32_t i = 0; i < pass_count; i++) {
    bool is_wanted = strcmp(passes[i].name, g->args[0]) == 0;
    different += is_wanted ? compare_or_bless(g, "in.ir", text_of(b, facts, NULL)) : 0;
    status result = pipeline_run_part(b, passes[i].name, passes[i].name);
    if (result != OK)
      fail_msg("%s: pass %s: %s: %s", g->folder, passes[i].name, status_name(result), status_text());
    facts = (facts | passes[i].gives) & ~passes[i].breaks;
    different += is_wanted ? compare_or_bless(g, "out.ir", text_of(b, facts, NULL)) : 0;
    if (passes[i].print)
      different += compare_or_bless(g, arena_printf(&b->arena, "out.%s", passes[i].name), text_of(b, facts, passes[i].name));
    found = found || is_wanted;
  }
  if (!found)
    fail_msg("%s: there is no pass '%s'", g->folder, g->args[0]);
  return different;
}

static int is_case(const struct dirent *entry) { return entry->d_type == DT_DIR && entry->d_name[0] != '.' && entry->d_name[0] != '_'; }

static void passes_make_of_golden_graphs_what_was_recorded(void **state) {
  (void)state;
  struct dirent **names;
  int count = scandir(CASES, &names, is_case, alphasort);
  uint32_t different = 0;
  assert_true(count >= 12);
  for (int i = 0; i < count; i++) {
    struct golden g;
    golden_init(&g, names[i]->d_name);
    different += golden_run(&g);
    golden_deinit(&g);
    free(names[i]);
  }
  free(names);
  assert_int_equal(different, 0);
}

/* ---- the texts of ir/README.md ---- */

/* Any blanks become one. */
static void squeeze(char *text) {
  char *to = text;
  for (const char *at = text; *at; at++)
    if (!strchr(" \n", *at))
      *to++ = *at;
    else if (to > text && to[-1] != ' ')
      *to++ = ' ';
  *to = 0;
}

/* Pieces of the block, between `...`, stand in the golden text in this order. */
static bool is_excerpt(char *block, char *golden) {
  char *rest = NULL;
  const char *at = golden;
  squeeze(golden);
  squeeze(block);
  for (char *piece = block; piece && at; piece = rest) {
    rest = strstr(piece, " ... ");
    if (rest)
      *rest = 0, rest += 5;
    at = strstr(at, piece);
    if (!at)
      print_error("'%.200s' is not in it, or not behind the piece before it\n", piece);
  }
  return at != NULL;
}

/* A block of code behind a line `<!-- CASE/FILE -->`. */
static void texts_of_the_readme_are_golden_ones(void **state) {
  (void)state;
  char *readme = file_read(SOURCE_DIR, "ir/README.md"), name[128];
  uint32_t blocks = 0, wrong = 0;
  assert_non_null(readme);
  for (char *at = readme; (at = strstr(at, "<!-- ")); blocks++) {
    assert_int_equal(sscanf(at, "<!-- %127[^ \n] -->", name), 1);
    char *begin = strstr(at, "```\n"), *end = begin ? strstr(begin + 4, "\n```") : NULL, *golden = file_read(CASES, name);
    if (!golden || !end)
      fail_msg("%s: no such file, or no block behind it", name);
    *end = 0;
    bool is_golden = is_excerpt(begin + 4, golden);
    if (!is_golden)
      print_error("ir/README.md shows a text of %s that is not in that file\n", name);
    wrong += !is_golden;
    free(golden);
    at = end + 1;
  }
  free(readme);
  assert_true(blocks > 0);
  assert_int_equal(wrong, 0);
}

int main(int argc, char **argv) {
  const char *wish = getenv("TFC_BLESS");
  bless = (argc > 1 && strcmp(argv[1], "--bless") == 0) || (wish && strcmp(wish, "1") == 0);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_pass_comes_after_those_whose_facts_it_needs),
    cmocka_unit_test(each_pass_has_a_name_and_a_sentence_of_its_own),
    cmocka_unit_test(no_fact_is_given_twice),
    cmocka_unit_test(passes_make_of_golden_graphs_what_was_recorded),
    cmocka_unit_test(texts_of_the_readme_are_golden_ones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
