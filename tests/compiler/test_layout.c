/* test_layout.c: which constants, variables and invariants of loops are brought into panels: who reads them, for which CPUs, at what
 * price. */
#include "compiler/pass/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/pipeline.h"
#include "tests/support/temp_path.h"
#include "tests/support/test.h"

struct layout_case {
  const char *name, *graph, *entry, *cpu; /* entries have `;` between them */
  const char *layout;                     /* without the first line, and without what it saves */
  const char *kept;                       /* constants that are still there as they were */
};

#define X "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"shape\" value { shape { "
#define ROWS(rows, columns) X "dim { size: " rows " } dim { size: " columns " } } } } } "
#define W(name, rows, columns)                                                                                              \
  "node { name: \"" name "\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"value\" value { " \
  "tensor { dtype: DT_FLOAT tensor_shape { dim { size: " rows " } dim { size: " columns " } } float_val: 0.5 } } } } "
#define BOOL(key, is) "attr { key: \"" key "\" value { b: " is " } } "
#define FLOATS "attr { key: \"T\" value { type: DT_FLOAT } } "
#define MATMUL_OF(name, a, b, turned_a, turned_b)                                                                    \
  "node { name: \"" name "\" op: \"MatMul\" input: \"" a "\" input: \"" b "\" " FLOATS BOOL("transpose_a", turned_a) \
    BOOL("transpose_b", turned_b) "} "
#define MATMUL(name, a, b, turned) MATMUL_OF(name, a, b, "false", turned)
#define ONE ROWS("128", "256") W("w", "256", "500") MATMUL("y", "x", "w", "false")

static const struct layout_case cases[] = {
  {"a constant", ONE, "main: x -> y", "x86-64-v3", "f32[32,256,16] = [1/16][0][1%16] of w;", ""},
  {"for wider vectors", ONE, "main: x -> y", "x86-64-v4", "f32[16,256,32] = [1/32][0][1%32] of w;", ""},
  {"for several CPUs: what all can read", ONE, "main: x -> y", "x86-64-v3,x86-64-v4", "f32[16,256,32] = [1/32][0][1%32] of w;", ""},
  {"not where one of them has no multiply-add", ONE, "main: x -> y", "x86-64,x86-64-v3", "", "w"},
  {"an open number of rows", ROWS("-1", "256") W("w", "256", "500") MATMUL("y", "x", "w", "false"), "main: x -> y", "x86-64-v3",
   "f32[32,256,16] = [1/16][0][1%16] of w;", ""},
  {"one row, where a panel comes faster than rows of a far one", ROWS("1", "1024") W("w", "1024", "2048") MATMUL("y", "x", "w", "false"),
   "main: x -> y", "znver4", "f32[64,1024,32] = [1/32][0][1%32] of w;", ""},
  {"a constant that is the first factor", ROWS("128", "256") W("w", "64", "128") MATMUL("y", "w", "x", "false"), "main: x -> y",
   "x86-64-v3", "", "w"},
  {"rows that lie across and come from afar cost more than panels gain",
   ROWS("6272", "256") W("w", "6272", "128") MATMUL_OF("y", "x", "w", "true", "false"), "main: x -> y", "sapphirerapids", "", "w"},
  {"read by two", ONE MATMUL("z", "u", "w", "false") "node { name: \"u\" op: \"Tanh\" input: \"x\" " FLOATS "} ", "main: x -> y, z",
   "x86-64-v3", "f32[32,256,16] = [1/16][0][1%16] of w;", ""},
  {"read by two as each wants it", ONE MATMUL("z", "y", "w", "true"), "main: x -> y, z", "x86-64-v3",
   "f32[32,256,16] = [1/16][0][1%16] of w;f32[16,500,16] = [0/16][1][0%16] of w;", ""},
  {"and by one who wants it as it is", ONE, "main: x -> y, w", "x86-64-v3", "f32[32,256,16] = [1/16][0][1%16] of w;", "w"},
  {"which is too much of a large one", ROWS("64", "2100") W("w", "2100", "2100") MATMUL("y", "x", "w", "false"), "main: x -> y, w",
   "x86-64-v3", "", "w"},
  {"large, but nobody's else", ROWS("64", "2100") W("w", "2100", "2100") MATMUL("y", "x", "w", "false"), "main: x -> y", "x86-64-v3",
   "f32[132,2100,16] = [1/16][0][1%16] of w;", ""},
};

#define HANDLE                                                                                                                           \
  "node { name: \"w\" op: \"VarHandleOp\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"shape\" value { shape { dim { " \
  "size: 256 } dim { size: 500 } } } } attr { key: \"shared_name\" value { s: \"w\" } } } "
#define DTYPE_OF "attr { key: \"dtype\" value { type: DT_FLOAT } } "
#define READ(name) "node { name: \"" name "\" op: \"ReadVariableOp\" input: \"w\" " DTYPE_OF "} "
#define UPDATE(name, op, value) "node { name: \"" name "\" op: \"" op "\" input: \"w\" input: \"" value "\" " DTYPE_OF "} "
#define GIVEN(rows, columns)                                                                                                           \
  "node { name: \"g\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"shape\" value { shape { dim " \
  "{ size: " rows " } dim { size: " columns " } } } } } "
#define HELD ROWS("128", "256") HANDLE READ("r") MATMUL("y", "x", "r", "false")
#define IN_PANELS "f32[16,256,32] = [1/32][0][1%32] of "

static const struct layout_case variable_cases[] = {
  {"read alone", HELD, "main: x -> y", "x86-64-v4", IN_PANELS "r;", ""},
  {"an open number of rows", ROWS("-1", "256") HANDLE READ("r") MATMUL("y", "x", "r", "false"), "main: x -> y", "x86-64-v4", IN_PANELS "r;",
   ""},
  {"given by another entry", HELD GIVEN("256", "500") UPDATE("a", "AssignVariableOp", "g"), "main: x -> y; give: g -> | a", "x86-64-v4",
   IN_PANELS "r;", ""},
  {"of whatever shape", HELD GIVEN("-1", "500") UPDATE("a", "AssignVariableOp", "g"), "main: x -> y; give: g -> | a", "x86-64-v4", "", ""},
  {"given by the step itself", HELD GIVEN("256", "500") UPDATE("a", "AssignVariableOp", "g"), "main: x, g -> y | a", "x86-64-v4", "", ""},
  {"updated in place", HELD GIVEN("256", "500") UPDATE("a", "AssignAddVariableOp", "g"), "main: x -> y; add: g -> | a", "x86-64-v4", "",
   ""},
  {"fetched now and then", HELD READ("f"), "main: x -> y; look: -> f", "x86-64-v4", IN_PANELS "r;" IN_PANELS "f;", ""},
  {"fetched by each step", HELD READ("f"), "main: x -> y, f", "x86-64-v4", "", ""},
  {"read otherwise by another entry", HELD "node { name: \"t\" op: \"Tanh\" input: \"r\" " FLOATS "} ", "main: x -> y; other: -> t",
   "x86-64-v4", "", ""},
  {"asked for", HELD "node { name: \"i\" op: \"VarIsInitializedOp\" input: \"w\" } ", "main: x -> y; ask: -> i", "x86-64-v4",
   IN_PANELS "r;", ""},
  {"read as two want it: as it is", HELD MATMUL("z", "y", "r", "true"), "main: x -> y, z", "x86-64-v4", "", ""},
  {"of no rows", ROWS("0", "256") HANDLE READ("r") MATMUL("y", "x", "r", "false"), "main: x -> y", "x86-64-v4", "", ""},
  {"read by few rows, too, which gain nothing by it", HELD GIVEN("2", "256") MATMUL("z", "g", "r", "false"), "main: x, g -> y, z",
   "x86-64-v4", IN_PANELS "r;", ""},
  {"not where a CPU has no multiply-add", HELD, "main: x -> y", "x86-64,x86-64-v4", "", ""},
};

/* "f32[2,3,16] = [1/16][0][1%16] of w;" for each value. */
static char *decided(struct build *b) {
  char *text = NULL, *lines = NULL;
  size_t size = 0, out_size = 0;
  FILE *out = open_memstream(&text, &size), *short_out = open_memstream(&lines, &out_size);
  assert_true(pipeline_print_pass(b, "layout", out));
  fclose(out);
  for (char *at = text, *end; (at = strchr(at, '%')) && (end = strstr(at, " for ")); at = strchr(end, '\n'))
    fprintf(short_out, "%.*s;", (int)(end - at - (strchr(at, ' ') + 1 - at)), strchr(at, ' ') + 1);
  fclose(short_out);
  free(text);
  return lines;
}
static char *kept_constants(const struct flow *f) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id]->op == FLOW_CONST && flow_value_get(f, f->nodes.items[id]->outputs.items[0])->rank == 2)
      fputs(f->nodes.items[id]->name, out);
  fclose(out);
  return text;
}

static void begin(struct build *b, const struct layout_case *c, char path[TEMP_PATH_SIZE]) {
  memset(b, 0, sizeof *b);
  assert_true(temp_file(path, ".pbtxt", c->graph, strlen(c->graph)));
  arena_init(&b->arena);
  b->options.graph_path = path;
  b->options.cpu = c->cpu;
  char *entries = arena_strdup(&b->arena, c->entry), *rest = NULL;
  for (char *at = strtok_r(entries, ";", &rest); at; at = strtok_r(NULL, ";", &rest))
    vec_push(&b->options.entries, at + strspn(at, " "));
}
static void end(struct build *b, const char *path) {
  unlink(path);
  model_deinit(&b->model);
  vec_free(&b->options.entries);
  arena_deinit(&b->arena);
}

/* Constants are asked for where the case says what is kept; a graph's variable lies in panels where something is decided. */
static void check_case(const struct layout_case *c, bool has_variable) {
  struct build b;
  char path[TEMP_PATH_SIZE];
  begin(&b, c, path);
  if (pipeline_run(&b) != OK)
    test_fail("%s: %s", c->name, status_text());
  char *layout = decided(&b), *kept = kept_constants(b.entries.items[0].parts.items[0].flow);
  if (strcmp(layout, c->layout) != 0)
    test_fail("%s: '%s'", c->name, layout);
  if (c->kept[0] && strcmp(kept, c->kept) != 0)
    test_fail("%s: kept are '%s'", c->name, kept);
  if (has_variable && (b.vars.items[0].panels != NULL) != (*layout != 0))
    test_fail("%s: the variable lies otherwise", c->name);
  free(layout);
  free(kept);
  end(&b, path);
}

static void constants_are_in_panels_where_that_gains(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_case(&cases[i], false);
}

/* All entries read them so: what two of them print is there twice. */
static void variables_are_in_panels_where_steps_only_read_them(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof variable_cases / sizeof *variable_cases; i++)
    check_case(&variable_cases[i], true);
}

static void strict_math_knows_no_panels(void **state) {
  (void)state;
  struct build b;
  char path[TEMP_PATH_SIZE];
  begin(&b, &cases[0], path);
  b.options.math = MATH_STRICT;
  assert_int_equal(pipeline_run(&b), OK);
  char *layout = decided(&b);
  assert_string_equal(layout, "");
  free(layout);
  end(&b, path);
}

static void a_reader_that_does_not_know_is_found(void **state) {
  (void)state;
  struct build b;
  char path[TEMP_PATH_SIZE];
  begin(&b, &cases[0], path);
  assert_int_equal(pipeline_run(&b), OK);
  struct flow *f = b.entries.items[0].parts.items[0].flow;
  assert_int_equal(layout_verify(f), OK);
  f->layout->values.items[0].panels.width = 8;
  assert_int_equal(layout_verify(f), INTERNAL);
  end(&b, path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(constants_are_in_panels_where_that_gains),
    cmocka_unit_test(variables_are_in_panels_where_steps_only_read_them),
    cmocka_unit_test(strict_math_knows_no_panels),
    cmocka_unit_test(a_reader_that_does_not_know_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
