/* test_join.c: which kernels become one that hands rows on, and which do not: by size, by who else takes what they make, by the CPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/pipeline.h"
#include "tests/support/temp_path.h"
#include "tests/support/test.h"

struct join_case {
  const char *name, *graph, *entry, *cpu;
  const char *kernels; /* their names, each with the number of its scratch buffers where it has any, in the order of the flow */
};

#define TYPED(key) "attr { key: \"" key "\" value { type: DT_FLOAT } } "
#define DIM(n) "dim { size: " n " } "
#define X(name, heads, rows, width)                                                                                             \
  "node { name: \"" name "\" op: \"Placeholder\" " TYPED("dtype") "attr { key: \"shape\" value { shape { " DIM(heads) DIM(rows) \
    DIM(width) "} } } } "
#define PRODUCT(name, a, b, turned)                                              \
  "node { name: \"" name "\" op: \"BatchMatMulV2\" input: \"" a "\" input: \"" b \
  "\" " TYPED("T") "attr { key: \"adj_y\" value { b: " turned " } } } "
#define OF(name, op, a) "node { name: \"" name "\" op: \"" op "\" input: \"" a "\" " TYPED("T") "} "
#define WITH(name, op, a, b) "node { name: \"" name "\" op: \"" op "\" input: \"" a "\" input: \"" b "\" " TYPED("T") "} "
/* Its nodes are s, p and y, each with `n` behind. */
#define ATTENTION(n, q, k, v) PRODUCT("s" n, q, k, "true") OF("p" n, "Softmax", "s" n) PRODUCT("y" n, "p" n, v, "false")
#define QKV(rows, width) X("q", "4", rows, width) X("k", "4", rows, width) X("v", "4", rows, width)
#define LONG QKV("1536", "32") ATTENTION("", "q", "k", "v")
/* Over all but the first dimension, which stay with one element each. */
#define SUM(name, a)                                                                                                                    \
  "node { name: \"axes\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \"value\" value { tensor { dtype: " \
  "DT_INT32 tensor_shape { " DIM("2") "} int_val: 1 int_val: 2 } } } } node { name: \"" name "\" op: \"Sum\" input: \"" a               \
                                      "\" input: \"axes\" " TYPED("T") "attr { key: \"keep_dims\" value { b: true } } } "

#define JOINED "LineUp BatchMatMulV2_Softmax_BatchMatMulV2(2) "
#define APART "BatchMatMulV2 Softmax BatchMatMulV2 "
static const struct join_case cases[] = {
  {"attention", LONG, "main: q, k, v -> y", "x86-64-v4", JOINED},
  {"for several CPUs", LONG, "main: q, k, v -> y", "x86-64-v3,x86-64-v4", JOINED},
  {"also where products are rounded", LONG, "main: q, k, v -> y", "x86-64,x86-64-v4", JOINED},
  {"not where one of them has no schedule for it: its cache is too small", QKV("4096", "32") ATTENTION("", "q", "k", "v"),
   "main: q, k, v -> y", "x86-64,x86-64-v4", APART},
  {"what somebody else takes is stored, too", LONG, "main: q, k, v -> y, p", "x86-64-v4", "LineUp BatchMatMulV2_Softmax_BatchMatMulV2(1) "},
  {"of as many images as a step brings",
   X("q", "-1", "1536", "32") X("k", "-1", "1536", "32") X("v", "-1", "1536", "32") ATTENTION("", "q", "k", "v"), "main: q, k, v -> y",
   "x86-64-v4", JOINED},
  {"not of as many rows", X("q", "4", "-1", "32") X("k", "4", "1536", "32") X("v", "4", "1536", "32") ATTENTION("", "q", "k", "v"),
   "main: q, k, v -> y", "x86-64-v4", APART},
  {"little is left in the caches", QKV("256", "32") ATTENTION("", "q", "k", "v"), "main: q, k, v -> y", "x86-64-v4", APART},
  {"rows that have no blocks", QKV("1531", "32") ATTENTION("", "q", "k", "v"), "main: q, k, v -> y", "x86-64-v4", APART},
  {"what is needed of all rows in between parts them",
   QKV("1536", "32") PRODUCT("s", "q", "k", "true") OF("p", "Softmax", "s") SUM("t", "p") WITH("tv", "Mul", "t", "v")
     PRODUCT("y", "p", "tv", "false"),
   "main: q, k, v -> y", "x86-64-v4", "LineUp BatchMatMulV2_Softmax(1) Sum Mul BatchMatMulV2 "},
  {"what is refused leaves nothing behind: two vectors are wider than 16 columns",
   X("a", "4", "1536", "16") ATTENTION("1", "a", "a", "a") X("q", "4", "1536", "32") X("kt", "4", "32", "1536")
     PRODUCT("s", "q", "kt", "false") OF("p", "Softmax", "s") PRODUCT("y", "p", "q", "false"),
   "main: a, q, kt -> y1, y", "x86-64-v4", APART "BatchMatMulV2_Softmax_BatchMatMulV2(2) "},
};

static char *kernels_of(const struct flow *f) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    uint32_t scratch = 0;
    for (uint32_t i = 0; n && n->op == FLOW_KERNEL && i < n->kernel->buffers.count; i++)
      scratch += n->kernel->buffers.items[i].mode == BUFFER_SCRATCH;
    if (n && n->op == FLOW_KERNEL)
      fputs(n->kernel->name, out);
    if (scratch)
      fprintf(out, "(%u)", scratch);
    fputs(n && n->op == FLOW_KERNEL ? " " : "", out);
  }
  fclose(out);
  return text;
}

static void kernels_are_joined_that_hand_long_rows_on(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct build b = {0};
    char path[TEMP_PATH_SIZE];
    assert_true(temp_file(path, ".pbtxt", cases[i].graph, strlen(cases[i].graph)));
    arena_init(&b.arena);
    b.options.graph_path = path;
    b.options.cpu = cases[i].cpu;
    vec_push(&b.options.entries, cases[i].entry);
    if (pipeline_run(&b) != OK)
      test_fail("%s: %s", cases[i].name, status_text());
    const struct flow *f = b.entries.items[0].parts.items[0].flow;
    char *kernels = kernels_of(f);
    if (strcmp(kernels, cases[i].kernels) != 0)
      test_fail("%s: '%s'", cases[i].name, kernels);
    for (value_id v = 1; v < f->values.count; v++)
      if (f->values.items[v].producer >= f->nodes.count)
        test_fail("%s: value %u has a producer that is not there", cases[i].name, v);
    free(kernels);
    unlink(path);
    model_deinit(&b.model);
    vec_free(&b.options.entries);
    arena_deinit(&b.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_are_joined_that_hand_long_rows_on)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
