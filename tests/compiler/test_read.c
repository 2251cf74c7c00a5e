#include "compiler/read/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "compiler/read/file_kind.h"
#include "compiler/read/import.h"
#include "tests/support/temp_path.h"
#include "tests/support/test.h"
#include "tests/support/text_graph.h"

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus/"

/* ---- wire bytes for tests ---- */

typedef VEC(char) wire;

static void put(wire *w, const void *data, size_t size) {
  vec_reserve(w, w->count + (uint32_t)size);
  memcpy(w->items + w->count, data, size);
  w->count += (uint32_t)size;
}

static void put_varint(wire *w, uint64_t value) {
  for (; value > 127; value >>= 7)
    vec_push(w, (char)(value | 128));
  vec_push(w, (char)value);
}

static void put_field(wire *w, unsigned id, const void *data, size_t size) {
  put_varint(w, id << 3 | 2);
  put_varint(w, size);
  put(w, data, size);
}

static void put_text(wire *w, unsigned id, const char *text) { put_field(w, id, text, strlen(text)); }

/* Puts what is in `w` into a field of its own. */
static void wrap(wire *w, unsigned id) {
  wire inner = *w;
  *w = (wire){0};
  put_field(w, id, inner.items, inner.count);
  vec_free(&inner);
}

static status parse(const wire *w) {
  struct arena arena;
  struct model model = {0};
  arena_init(&arena);
  status result = model_parse(w->items, w->count, &arena, &model);
  model_deinit(&model);
  arena_deinit(&arena);
  return result;
}

/* ---- kinds ---- */

static void files_are_told_apart_by_content(void **state) {
  (void)state;
  static const struct {
    const char *name;
    enum file_message message;
    bool is_text;
  } cases[] = {
    {"graph.pb", FILE_GRAPH, false},       {"functions.pb", FILE_GRAPH, false},
    {"meta.meta", FILE_META_GRAPH, false}, {"saved_model.pb", FILE_SAVED_MODEL, false},
    {"function.pbtxt", FILE_GRAPH, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[512], data[16384];
    snprintf(path, sizeof path, CORPUS "%s", cases[i].name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    struct file_kind kind = file_kind_of(data, size);
    assert_int_equal(kind.message, cases[i].message);
    assert_int_equal(kind.is_text, cases[i].is_text);
    struct arena arena;
    struct model model = {0};
    arena_init(&arena);
    assert_int_equal(model_read(path, &arena, &model), OK);
    assert_int_equal(strlen(model.sha256), 64);
    model_deinit(&model);
    arena_deinit(&arena);
  }
}

static void short_beginnings_are_told_apart_too(void **state) {
  (void)state;
  static const struct {
    const char *data;
    size_t size;
    enum file_message message;
  } cases[] = {
    {"\x22\x02\x08\x05", 4, FILE_GRAPH},              /* versions alone */
    {"\x12\x04\x22\x02\x08\x05", 6, FILE_META_GRAPH}, /* a graph in field 2 */
    {"\x12\x02\x0a\x00", 4, FILE_GRAPH},              /* a library in field 2 */
    {"\x08\x01\x12\x00", 4, FILE_SAVED_MODEL},
    {"# comment\n\n  meta_info_def { }", 30, FILE_META_GRAPH},
    {"saved_model_schema_version: 1", 29, FILE_SAVED_MODEL},
    {"versions { }", 12, FILE_GRAPH},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(file_kind_of(cases[i].data, cases[i].size).message, cases[i].message);
}

static void a_meta_graph_brings_signatures_collections_and_saver(void **state) {
  (void)state;
  struct text_graph g;
  assert_int_equal(text_graph_read(&g, "meta_info_def { tags: 'serve' stripped_op_list { op { name: 'x' } } }"
                                       "graph_def { node { name: 'a' op: 'NoOp' } }"
                                       "saver_def { filename_tensor_name: 'save/Const:0' restore_op_name: 'save/restore_all' version: V2 }"
                                       "collection_def { key: 'train_op' value { node_list { value: 'a' value: 'b' } } }"
                                       "collection_def { key: 'bytes' value { bytes_list { value: '\\000\\001' } } }"
                                       "signature_def { key: 'predict' value { inputs { key: 'in' value { name: 'a:0' dtype: DT_FLOAT } } "
                                       "outputs { key: 'out' value { name: 'a:1' } } method_name: 'm' } }"),
                   OK);
  const struct model *m = &g.model;
  assert_string_equal(m->restore_op, "save/restore_all");
  assert_string_equal(m->restore_feed, "save/Const:0");
  assert_int_equal(m->collections.count, 2);
  assert_string_equal(m->collections.items[0].value.list.items[1].s.data, "b");
  assert_int_equal(m->collections.items[1].value.list.items[0].s.size, 2);
  assert_int_equal(m->signatures.count, 1);
  assert_string_equal(m->signatures.items[0].inputs.items[0].tensor, "a:0");
  assert_string_equal(m->signatures.items[0].outputs.items[0].key, "out");
  text_graph_deinit(&g);
}

/* ---- constants ---- */

#define CONST(tensor) "node { name: 'c' op: 'Const' attr { key: 'value' value { tensor { " tensor " } } } }"
#define DIMS(n) "tensor_shape { dim { size: " n " } } "

static void every_form_of_a_constant_is_laid_out(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t size;
    const char *bytes;
  } cases[] = {
    {CONST("dtype: DT_INT32 " DIMS("3") "int_val: [1, -2]"), 12, "\1\0\0\0\xfe\xff\xff\xff\xfe\xff\xff\xff"},
    {CONST("dtype: DT_INT32 " DIMS("2")), 8, "\0\0\0\0\0\0\0\0"},
    {CONST("dtype: DT_INT8 " DIMS("2") "int_val: [1, -2]"), 2, "\1\xfe"},
    {CONST("dtype: DT_UINT16 " DIMS("2") "int_val: 65535"), 4, "\xff\xff\xff\xff"},
    {CONST("dtype: DT_HALF " DIMS("2") "half_val: [15360, 1]"), 4, "\0\x3c\1\0"},
    {CONST("dtype: DT_BFLOAT16 half_val: 16256"), 2, "\x80\x3f"},
    {CONST("dtype: DT_FLOAT float_val: 1"), 4, "\0\0\x80\x3f"},
    {CONST("dtype: DT_DOUBLE double_val: -inf"), 8, "\0\0\0\0\0\0\xf0\xff"},
    {CONST("dtype: DT_BOOL " DIMS("2") "bool_val: [true, false]"), 2, "\1\0"},
    {CONST("dtype: DT_INT64 int64_val: -1"), 8, "\xff\xff\xff\xff\xff\xff\xff\xff"},
    {CONST("dtype: DT_UINT64 uint64_val: 18446744073709551615"), 8, "\xff\xff\xff\xff\xff\xff\xff\xff"},
    {CONST("dtype: DT_COMPLEX64 " DIMS("2") "scomplex_val: [1, 2]"), 16, "\0\0\x80\x3f\0\0\0\x40\0\0\x80\x3f\0\0\0\x40"},
    {CONST("dtype: DT_INT16 " DIMS("2") "tensor_content: '\\001\\002\\003\\004'"), 4, "\1\2\3\4"},
    {CONST("dtype: DT_FLOAT " DIMS("0")), 0, ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct text_graph g;
    assert_int_equal(text_graph_read(&g, cases[i].text), OK);
    const struct constant *k = g.model.graph->nodes.items[0].attrs[0].value.tensor;
    assert_int_equal((size_t)k->count * dtype_size(k->dtype), cases[i].size);
    assert_memory_equal(k->data, cases[i].bytes, cases[i].size);
    text_graph_deinit(&g);
  }
}

static void strings_come_in_two_forms(void **state) {
  (void)state;
  static const char *const texts[] = {
    CONST("dtype: DT_STRING " DIMS("3") "string_val: 'ab' string_val: '\\000'"),
    CONST("dtype: DT_STRING " DIMS("3") "tensor_content: '\\002\\001\\001ab\\000\\000'"),
  };
  for (size_t i = 0; i < 2; i++) {
    struct text_graph g;
    assert_int_equal(text_graph_read(&g, texts[i]), OK);
    const struct string_view *v = g.model.graph->nodes.items[0].attrs[0].value.tensor->data;
    assert_memory_equal(v[0].data, "ab", 2);
    assert_int_equal(v[1].size, 1);
    assert_memory_equal(v[2].data, "\0", 1);
    text_graph_deinit(&g);
  }
}

static void constants_that_cannot_be_are_refused_before_memory_is_taken(void **state) {
  (void)state;
  static const struct {
    const char *text;
    status code;
  } cases[] = {
    {CONST("dtype: DT_FLOAT " DIMS("2") "tensor_content: 'abc'"), INVALID_ARGUMENT},
    {CONST("dtype: DT_FLOAT " DIMS("-1")), INVALID_ARGUMENT},
    {CONST("dtype: DT_FLOAT tensor_shape { unknown_rank: true }"), INVALID_ARGUMENT},
    {CONST("dtype: DT_FLOAT " DIMS("9223372036854775807")), INVALID_ARGUMENT},
    {CONST("dtype: DT_FLOAT tensor_shape { dim { size: 4294967296 } dim { size: 4294967296 } }"), INVALID_ARGUMENT},
    {CONST("dtype: DT_FLOAT " DIMS("1099511627776") "float_val: 1"), RESOURCE_EXHAUSTED},
    {CONST("dtype: DT_STRING " DIMS("1099511627776") "string_val: 'a'"), RESOURCE_EXHAUSTED},
    {CONST("dtype: DT_STRING " DIMS("2") "tensor_content: '\\377\\377'"), INVALID_ARGUMENT},
    {CONST("dtype: DT_STRING " DIMS("1") "tensor_content: '\\005a'"), INVALID_ARGUMENT},
    {CONST("dtype: DT_STRING " DIMS("1") "tensor_content: '\\001ab'"), INVALID_ARGUMENT},
    {CONST("dtype: 77"), INVALID_ARGUMENT},
    {CONST("dtype: DT_FLOAT_REF"), INVALID_ARGUMENT},
    {CONST("dtype: DT_RESOURCE resource_handle_val { name: 'table_0' maybe_type_name: 'N10tensorflow6lookup15LookupInterfaceE' }"),
     UNIMPLEMENTED},
    {CONST("dtype: DT_RESOURCE tensor_content: '12345678'"), UNIMPLEMENTED},
    {CONST("dtype: DT_RESOURCE"), UNIMPLEMENTED},
    {CONST("dtype: DT_VARIANT"), UNIMPLEMENTED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct text_graph g;
    assert_int_equal(text_graph_read(&g, cases[i].text), cases[i].code);
    assert_non_null(strstr(status_text(), "c (Const)"));
    assert_true(g.arena.total < 1 << 20);
    text_graph_deinit(&g);
  }
}

static void many_small_fills_share_one_bound(void **state) {
  (void)state;
  struct arena scratch;
  arena_init(&scratch);
  wire w = {0};
  for (int i = 0; i < 1000; i++) {
    const char *node = arena_printf(
      &scratch, "node { name: 'c%d' op: 'Const' attr { key: 'value' value { tensor { dtype: DT_INT8 " DIMS("1000000") "int_val: 1 } } } } ",
      i);
    put(&w, node, strlen(node));
  }
  assert_int_equal(parse(&w), RESOURCE_EXHAUSTED);
  vec_free(&w);
  arena_deinit(&scratch);
}

/* ---- graphs that are none ---- */

static void graphs_that_cannot_be_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text;
    const char *named;
  } cases[] = {
    {"node { name: 'a' op: 'NoOp' } node { name: 'a' op: 'NoOp' }", "a (NoOp)"},
    {"node { op: 'NoOp' }", "no name"},
    {"node { name: 'a' }", "no op"},
    {"node { name: 'a' op: 'Neg' input: 'nowhere' }", "'nowhere' is no node"},
    {"node { name: 'a' op: 'Neg' input: '' }", "'' is no node"},
    {"node { name: 'a' op: 'Neg' input: 'a:99999999999' }", "is no node"},
    {"node { name: 'a' op: 'Neg' input: '^a:0' }", "is no node"},
    {"node { name: 'a' op: 'NoOp' attr { key: 'x' } }", "'x'"},
    {"library { function { node_def { } } }", "no name"},
    {"library { function { signature { name: 'F' output_arg { name: 'y' type: DT_FLOAT } } } }", "'y'"},
    {"library { function { signature { name: 'F' } } function { signature { name: 'F' } } }", "two functions"},
    {"node { name: 'a", "line 1"},
    {"node {\n name: 'a'\n op }", "line 3"},
    {"node: 3", "line 1"},
    {"hello world", "line 1"},
    {"hello: world", "no node"},
    {"", "empty"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct text_graph g;
    status result = text_graph_read(&g, cases[i].text);
    if (result != INVALID_ARGUMENT || !strstr(status_text(), cases[i].named))
      print_error("case %zu: %s\n", i, status_text());
    assert_int_equal(result, INVALID_ARGUMENT);
    assert_non_null(strstr(status_text(), cases[i].named));
    text_graph_deinit(&g);
  }
}

static void a_length_of_two_gigabytes_is_cut_off(void **state) {
  (void)state;
  wire w = {0};
  put_varint(&w, 1 << 3 | 2);
  put_varint(&w, UINT64_C(0x7fffffff));
  put(&w,
      "\x0a\x01"
      "a",
      3);
  assert_int_equal(parse(&w), INVALID_ARGUMENT);
  vec_free(&w);
}

static void names_with_a_nul_are_refused(void **state) {
  (void)state;
  wire w = {0};
  put_field(&w, 1, "a\0b", 3);
  put_text(&w, 2, "NoOp");
  wrap(&w, 1);
  assert_int_equal(parse(&w), INVALID_ARGUMENT);
  vec_free(&w);
}

/* attr { value { func { attr { value { func ... */
static void nested_deeply(wire *w, int depth) {
  put_text(w, 1, "f");
  for (int i = 0; i < depth; i++) {
    wrap(w, 10); /* AttrValue.func */
    wrap(w, 2);  /* AttrEntry.value */
    wrap(w, 2);  /* NameAttrList.attr */
  }
  wrap(w, 10);
  wrap(w, 2);
  wire node = {0};
  put_text(&node, 1, "a");
  put_text(&node, 2, "NoOp");
  put_field(&node, 5, w->items, w->count);
  vec_free(w);
  *w = node;
  wrap(w, 1);
}

static void nesting_is_bounded(void **state) {
  (void)state;
  static const int depths[] = {1, 20, 40, 2000};
  for (int i = 0; i < 4; i++) {
    wire w = {0};
    nested_deeply(&w, depths[i]);
    assert_int_equal(parse(&w), depths[i] < 30 ? OK : INVALID_ARGUMENT);
    vec_free(&w);
  }
  wire text = {0};
  for (int i = 0; i < 100000; i++)
    put(&text, "node {", 6);
  assert_int_equal(parse(&text), INVALID_ARGUMENT);
  vec_free(&text);
}

static void empty_messages_may_not_grow_out_of_proportion(void **state) {
  (void)state;
  wire w = {0};
  for (int i = 0; i < 1000000; i++)
    put(&w, "\x42\x00", 2); /* ListValue.tensor: {} */
  wrap(&w, 1);
  wrap(&w, 2);
  wire node = {0};
  put_text(&node, 1, "a");
  put_text(&node, 2, "NoOp");
  put_field(&node, 5, w.items, w.count);
  wrap(&node, 1);
  assert_int_equal(parse(&node), RESOURCE_EXHAUSTED);
  vec_free(&w);
  vec_free(&node);
}

static void fields_from_the_future_are_skipped(void **state) {
  (void)state;
  wire w = {0};
  put_text(&w, 1, "a");
  put_text(&w, 2, "NoOp");
  put_text(&w, 99, "anything");
  put_varint(&w, 98 << 3 | 5);
  put(&w, "\1\2\3\4", 4);
  wrap(&w, 1);
  put_varint(&w, 77 << 3);
  put_varint(&w, 5);
  assert_int_equal(parse(&w), OK);
  vec_free(&w);
}

/* ---- files ---- */

static void files_that_are_none_are_named(void **state) {
  (void)state;
  struct arena arena;
  struct model model = {0};
  arena_init(&arena);
  assert_int_equal(model_read("/nowhere/graph.pb", &arena, &model), NOT_FOUND);
  assert_non_null(strstr(status_text(), "/nowhere/graph.pb"));
  assert_int_equal(model_read("/tmp", &arena, &model), NOT_FOUND);
  assert_non_null(strstr(status_text(), "saved_model.pb"));
  assert_int_equal(model_read("/dev/zero", &arena, &model), INVALID_ARGUMENT);
  char path[TEMP_PATH_SIZE], pipe[80];
  assert_true(temp_folder(path));
  snprintf(pipe, sizeof pipe, "%s/pipe", path);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  assert_int_equal(model_read(pipe, &arena, &model), INVALID_ARGUMENT); /* and does not wait for a writer */
  unlink(pipe);
  rmdir(path);
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(files_are_told_apart_by_content),
    cmocka_unit_test(short_beginnings_are_told_apart_too),
    cmocka_unit_test(a_meta_graph_brings_signatures_collections_and_saver),
    cmocka_unit_test(every_form_of_a_constant_is_laid_out),
    cmocka_unit_test(strings_come_in_two_forms),
    cmocka_unit_test(constants_that_cannot_be_are_refused_before_memory_is_taken),
    cmocka_unit_test(many_small_fills_share_one_bound),
    cmocka_unit_test(graphs_that_cannot_be_are_refused),
    cmocka_unit_test(a_length_of_two_gigabytes_is_cut_off),
    cmocka_unit_test(names_with_a_nul_are_refused),
    cmocka_unit_test(nesting_is_bounded),
    cmocka_unit_test(empty_messages_may_not_grow_out_of_proportion),
    cmocka_unit_test(fields_from_the_future_are_skipped),
    cmocka_unit_test(files_that_are_none_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
