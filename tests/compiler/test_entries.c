/* test_entries.c: --entry texts, and what is compiled without any. */
#include "compiler/entries.h"
#include "compiler/pass/pass.h"
#include "tests/support/graph_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define LINES                                         \
  "x Placeholder - dtype=FLOAT\n"                     \
  "y Placeholder - dtype=FLOAT\n"                     \
  "s Add - x y T=FLOAT\n"                             \
  "two SoftmaxCrossEntropyWithLogits - s x T=FLOAT\n" \
  "step NoOp - ^s\n"

/* cost = x * w is made smaller; an optimizer's names. */
#define TRAINS                                                                       \
  "x Placeholder - dtype=FLOAT\n"                                                    \
  "w VariableV2 - dtype=FLOAT shape=1\n"                                             \
  "one Const - dtype=FLOAT value=1\n"                                                \
  "w/Assign Assign - w one T=FLOAT\n"                                                \
  "w/read Identity - w T=FLOAT\n"                                                    \
  "cost Mul - x w/read T=FLOAT\n"                                                    \
  "answer Neg - cost T=FLOAT\n"                                                      \
  "gradients/Shape Shape - cost T=FLOAT\n"                                           \
  "gradients/grad_ys_0 Fill - gradients/Shape one T=FLOAT\n"                         \
  "gradients/cost_grad/Mul Mul - gradients/grad_ys_0 x T=FLOAT\n"                    \
  "rate Const - dtype=FLOAT value=1\n"                                               \
  "Descent/update_w ApplyGradientDescent - w rate gradients/cost_grad/Mul T=FLOAT\n" \
  "Descent NoOp - ^Descent/update_w\n"

#define STARTS                                                                   \
  "one Const - dtype=FLOAT value=1\n"                                            \
  "t HashTableV2 - key_dtype=FLOAT value_dtype=FLOAT\n"                          \
  "t/init LookupTableImportV2 - t one one Tin=FLOAT Tout=FLOAT\n"                \
  "data TensorDataset - one Toutput_types=FLOAT output_shapes=?\n"               \
  "it IteratorV2 - output_types=FLOAT output_shapes=? shared_name= container=\n" \
  "make MakeIterator - data it\n"                                                \
  "w VariableV2 - dtype=FLOAT shape=1\n"                                         \
  "w/Assign Assign - w one T=FLOAT\n"                                            \
  "got LookupTableFindV2 - t one one Tin=FLOAT Tout=FLOAT\n"

#define PORTS(keys, names)                                                                                                   \
  for (uint32_t i = 0; i < spec->keys.count; i++)                                                                            \
  fprintf(out, "%s%s%s%s", i ? ", " : "", spec->keys.items[i], strcmp(spec->keys.items[i], spec->names.items[i]) ? "=" : "", \
          strcmp(spec->keys.items[i], spec->names.items[i]) ? spec->names.items[i] : "")

/* "name: feeds -> fetches | targets", entries on lines of their own. */
static char *specs_text(const struct build *build) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  for (uint32_t k = 0; k < build->specs.count; k++) {
    const struct entry_spec *spec = &build->specs.items[k];
    fprintf(out, "%s%s: ", k ? "\n" : "", spec->name);
    PORTS(feed_keys, feeds);
    fprintf(out, " -> ");
    PORTS(fetch_keys, fetches);
    fprintf(out, " | ");
    for (uint32_t i = 0; i < spec->targets.count; i++)
      fprintf(out, "%s%s", i ? ", " : "", spec->targets.items[i]);
  }
  for (uint32_t i = 0; i < build->aliases.count; i++)
    fprintf(out, "\n%s is %s", build->aliases.items[i].name, build->aliases.items[i].entry);
  fclose(out);
  return text;
}

static const struct {
  const char *text, *spec; /* NULL: refused */
  status code;
  const char *error;
} texts[] = {
  {"main: x, y -> s | step", "main: x, y -> s | step", OK, NULL},
  {" main :x,y->s|step ", "main: x, y -> s | step", OK, NULL},
  {"init: -> | step", "init:  ->  | step", OK, NULL},
  {"main: -> s", "main:  -> s | ", OK, NULL},
  {"main: ->", "main:  ->  | ", OK, NULL},
  {"main: x:0 -> two:1, two", "main: x:0 -> two:1, two | ", OK, NULL},
  {"main: x -> s, s", "main: x -> s | ", OK, NULL},
  {"main: s -> s, two", "main: s -> s, two | ", OK, NULL},
  {"main: a=x, b = y:0 -> sum=s, two", "main: a=x, b=y:0 -> sum=s, two | ", OK, NULL},
  {"main: a=x, a=y -> s", NULL, INVALID_ARGUMENT, "two feeds are called 'a'"},
  {"main: x -> s=", NULL, INVALID_ARGUMENT, "'s=' is neither TENSOR nor KEY=TENSOR"},
  {"main: inputs -> s", NULL, NOT_FOUND, "no tensor 'inputs', its placeholders are: x, y"},
  {"main: tow -> s", NULL, NOT_FOUND, "no tensor 'tow', the nearest are: two, x, y, s; did you mean 'two'?"},
  {"main: -> two_", NULL, NOT_FOUND, "no tensor 'two_', the nearest are: two, x, y, s; did you mean 'two'?"},
  {"main: -> | steps", NULL, NOT_FOUND, "no operation 'steps', the nearest are: step, s, two, x, y; did you mean 'step'?"},
  {"main", NULL, INVALID_ARGUMENT, "':' is missing"},
  {"main: x", NULL, INVALID_ARGUMENT, "'->' is missing"},
  {": -> s", NULL, INVALID_ARGUMENT, "'' is no name"},
  {"a b: -> s", NULL, INVALID_ARGUMENT, "'a b' is no name"},
  {"main: x,, y -> s", NULL, INVALID_ARGUMENT, "an empty name"},
  {"main: x, -> s", NULL, INVALID_ARGUMENT, "an empty name"},
  {"main: x, x:0 -> s", NULL, INVALID_ARGUMENT, "the tensor 'x:0' is fed twice"},
  {"main: nowhere -> s", NULL, NOT_FOUND, "entry 'main': the graph has no tensor 'nowhere'"},
  {"main: -> nowhere", NULL, NOT_FOUND, "nowhere"},
  {"main: -> s:1", NULL, NOT_FOUND, "s:1"},
  {"main: -> step", NULL, NOT_FOUND, "'step' (NoOp) has 0 outputs"},
  {"main: -> | nowhere", NULL, NOT_FOUND, "no operation 'nowhere'"},
};

static void texts_of_entries_are_read_and_checked(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct build build;
    assert_int_equal(graph_builder_build(LINES, NULL, &build), OK);
    vec_push(&build.options.entries, texts[i].text);
    status result = entries_resolve(&build);
    if (result != texts[i].code || (texts[i].error && !strstr(status_text(), texts[i].error)))
      fail_msg("'%s': %s %s", texts[i].text, status_name(result), status_text());
    char *text = specs_text(&build);
    if (texts[i].spec)
      assert_string_equal(text, texts[i].spec);
    free(text);
    graph_builder_free(&build);
  }
}

static void two_entries_of_one_name_are_refused(void **state) {
  (void)state;
  struct build build;
  assert_int_equal(graph_builder_build(LINES, NULL, &build), OK);
  vec_push(&build.options.entries, "a: -> s");
  vec_push(&build.options.entries, "a: -> x");
  assert_int_equal(entries_resolve(&build), INVALID_ARGUMENT);
  assert_non_null(strstr(status_text(), "two entries are named 'a'"));
  graph_builder_free(&build);
}

static const struct {
  const char *about, *lines, *specs;
} defaults[] = {
  {"main fetches what nothing consumes, and is fed the placeholders", LINES, "main: x, y -> two, two:1 | "},
  {"a known name is an entry", LINES "train_op NoOp - ^step\n", "train_op: x, y ->  | train_op"},
  {"what initialises is called init too, and compiled once", "init_all NoOp -\n" LINES,
   "init:  ->  | init_all\nmain: x, y -> two, two:1 | \ninit_all is init"},
  {"init and train_step", "init NoOp -\n" LINES "train_step NoOp - ^s\n", "init:  ->  | init\ntrain_step: x, y ->  | train_step"},
  {"the only optimizer's last operation is a training step, with the loss that its gradients are of", TRAINS,
   "init:  ->  | w/Assign\ntrain: x -> loss=cost | Descent\nmain: x -> answer | "},
  {"a step that the graph names shows the loss as well", TRAINS "train_op NoOp - ^Descent\n",
   "init:  ->  | w/Assign\ntrain_op: x -> loss=cost | train_op"},
  {"of two optimizers each step has the name of its operation; looking at a variable afterwards is none",
   TRAINS "adam/Other ApplyGradientDescent - w rate gradients/cost_grad/Mul T=FLOAT\nlook Identity - w ^Descent T=FLOAT\n",
   "init:  ->  | w/Assign\nDescent: x -> loss=cost | Descent\nOther: x -> loss=cost | adam/Other\nmain: x -> answer | "},
  {"init runs what its operation leaves out: tables, the only initialiser of an iterator, other variables", "init NoOp -\n" STARTS,
   "init:  ->  | init, t/init, make, w/Assign\nmain:  -> got | "},
  {"two initialisers of one iterator are a choice, a variable that is fed has no value to start with",
   STARTS "again MakeIterator - data it\nv VariableV2 - dtype=FLOAT shape=1\np Placeholder - dtype=FLOAT\nv/Assign Assign - v p T=FLOAT\n",
   "init:  ->  | t/init, w/Assign\nmain: p -> w/Assign, got, v/Assign | "},
  {"what a loop of TensorFlow 1 makes in a turn is not fetched",
   "n Const - dtype=FLOAT value=1\ne Enter - n T=FLOAT frame_name=f\nm Merge - e next T=FLOAT N=2\nc Const - ^m dtype=FLOAT value=9\n"
   "l Less - m c T=FLOAT\nt LoopCond - l\ns Switch - m t T=FLOAT\ni Identity - s:1 T=FLOAT\nnext NextIteration - i T=FLOAT\n"
   "aside Neg - i T=FLOAT\nout Exit - s T=FLOAT\n",
   "main:  -> out | "},
  {"handles are not fetched", "h VarHandleOp - dtype=FLOAT shape=1\nc Const - dtype=FLOAT value=1\n", "main:  -> c | "},
};

static void graphs_without_entries_get_their_usual_ones(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
    struct build build;
    if (graph_builder_build(defaults[i].lines, NULL, &build) != OK || entries_resolve(&build) != OK)
      fail_msg("%s: %s", defaults[i].about, status_text());
    char *text = specs_text(&build);
    if (strcmp(text, defaults[i].specs))
      fail_msg("%s: %s", defaults[i].about, text);
    free(text);
    graph_builder_free(&build);
  }
}

static void signatures_and_collections_come_first(void **state) {
  (void)state;
  struct build build;
  assert_int_equal(graph_builder_build(LINES "train NoOp -\n", NULL, &build), OK);
  struct signature_tensor b = {"b", "y:0"}, a = {"a", "x:0"}, sum = {"sum", "s:0"};
  struct signature signature = {.name = "serve"};
  vec_push(&signature.inputs, b);
  vec_push(&signature.inputs, a);
  vec_push(&signature.outputs, sum);
  vec_push(&build.model.signatures, signature);
  struct attr_value items[] = {{.kind = ATTR_STRING, .s = {"step", 4}}, {.kind = ATTR_STRING, .s = {"s:0", 3}}};
  struct attr collection = {"train_op", {.kind = ATTR_LIST, .list = {items, 2}}};
  vec_push(&build.model.collections, collection);
  assert_int_equal(entries_resolve(&build), OK);
  char *text = specs_text(&build);
  assert_string_equal(text, "serve: a=x:0, b=y:0 -> sum=s:0 | \ntrain_op: x, y -> s:0 | step");
  free(text);
  vec_free(&build.model.signatures.items[0].inputs);
  vec_free(&build.model.signatures.items[0].outputs);
  vec_free(&build.model.signatures);
  vec_free(&build.model.collections);
  graph_builder_free(&build);
}

static void collection_put(struct build *build, const char *name, struct attr_value *items, uint32_t count) {
  vec_push(&build->model.collections, (struct attr){name, {.kind = ATTR_LIST, .list = {items, count}}});
}

/* What a MonitoredSession leaves in its MetaGraphDef. */
static void a_managed_session_initialises_in_one_entry(void **state) {
  (void)state;
  struct build build;
  struct attr_value init[] = {{.kind = ATTR_STRING, .s = {"first", 5}}, {.kind = ATTR_STRING, .s = {"first", 5}}},
                    local[] = {{.kind = ATTR_STRING, .s = {"second", 6}}}, loss[] = {{.kind = ATTR_STRING, .s = {"s:0", 3}}},
                    train[] = {{.kind = ATTR_STRING, .s = {"step", 4}}};
  assert_int_equal(graph_builder_build(LINES "first NoOp -\nsecond NoOp -\n", NULL, &build), OK);
  collection_put(&build, "init_op", init, 2);
  collection_put(&build, "local_init_op", local, 1);
  collection_put(&build, "losses", loss, 1);
  collection_put(&build, "train_op", train, 1);
  build.options.replicate = "worker";
  assert_int_equal(entries_resolve(&build), OK);
  char *text = specs_text(&build);
  assert_string_equal(text, "init:  ->  | first, second\ninit_op:  ->  | first\nlocal_init_op:  ->  | second\n"
                            "train_op: x, y -> loss=s | step\nlocal_init:  ->  | second");
  free(text);
  vec_free(&build.model.collections);
  graph_builder_free(&build);
}

static void a_graph_without_outputs_needs_an_entry(void **state) {
  (void)state;
  struct build build;
  assert_int_equal(graph_builder_build("n NoOp -\n", NULL, &build), OK);
  assert_int_equal(entries_resolve(&build), INVALID_ARGUMENT);
  assert_non_null(strstr(status_text(), "--entry"));
  graph_builder_free(&build);
}

/* More than are tried: an entry that was never whole is not one that works. */
static void feeds_too_many_of_which_lack_a_rank_are_refused(void **state) {
  (void)state;
  const int feeds = 310;
  struct build build;
  char *lines = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&lines, &size);
  for (int i = 0; i < feeds; i++)
    fprintf(out, "x%d Placeholder - dtype=FLOAT\n", i);
  fprintf(out, "sum AddN -");
  for (int i = 0; i < feeds; i++)
    fprintf(out, " x%d", i);
  fprintf(out, " N=%d T=FLOAT\n", feeds);
  fclose(out);
  assert_int_equal(graph_builder_build(lines, NULL, &build), OK);
  assert_int_equal(entries_resolve(&build), OK);
  assert_int_equal(pass_place(&build), OK);
  assert_int_equal(pass_lower(&build), UNIMPLEMENTED);
  assert_non_null(strstr(status_text(), "310 fed placeholders without a rank"));
  map_deinit(&build.var_names);
  graph_builder_free(&build);
  free(lines);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_of_entries_are_read_and_checked),           cmocka_unit_test(two_entries_of_one_name_are_refused),
    cmocka_unit_test(graphs_without_entries_get_their_usual_ones),     cmocka_unit_test(signatures_and_collections_come_first),
    cmocka_unit_test(a_managed_session_initialises_in_one_entry),      cmocka_unit_test(a_graph_without_outputs_needs_an_entry),
    cmocka_unit_test(feeds_too_many_of_which_lack_a_rank_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
