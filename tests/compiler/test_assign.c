/* test_assign.c: flows written as lines of text, and what the pass `assign` makes of them.
 *
 * A flow is a list of words, as in test_order.c: `r=read0` reads variable 0 as r, `x=feed()`, `k=add(r,x)` one of the kernels below,
 * `a=alias(r)`, `fetch(k)`, `assign0(k)`; `#n` at the end makes the node come after node n. Variables are f32[4], variable 9 is open.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "compiler/pass/assign.h"
#include "tests/support/test.h"

#define ADD "#4 kernel add(inout var0, in %2) after #1"

static const char *const kernels[][2] = {
  {"add", "kernel add(in a: f32[4], in b: f32[4], out c: f32[4]) { par i0 < 4 { c[i0] = add(a[i0], b[i0]) } }"},
  {"twice", "kernel twice(in a: f32[4], out b: f32[4]) { par i0 < 4 { b[i0] = add(a[i0], a[i0]) } }"},
  {"flip", "kernel flip(in a: f32[4], out b: f32[4]) { par i0 < 4 { b[i0] = a[sub(3, i0)] } }"},
  {"checked",
   "kernel checked(in a: f32[4], out b: f32[4]) { par i0 < 4 { check lt(0:f32, a[i0]) else INVALID_ARGUMENT \"no\" b[i0] = a[i0] } }"},
  {"sum",
   "kernel sum(in a: f32[4], in b: f32[4,9], out c: f32[4]) { par i0 < 4 { var v0: f32 = 0:f32 red i1 < 9 { v0 = add(v0, b[i0,i1]) } "
   "c[i0] = add(a[i0], v0) } }"},
  {"bump", "kernel bump(inout a: f32[4], in b: f32[4]) { par i0 < 4 { a[i0] = add(a[i0], b[i0]) } }"},
  {"large", "kernel large(out a: f32[4,9]) { par i0 < 4 { par i1 < 9 { a[i0,i1] = 1:f32 } } }"},
  {"two", "kernel two(in a: f32[4], out b: f32[4], out c: f32[4]) { par i0 < 4 { b[i0] = a[i0] c[i0] = a[i0] } }"},
};

static const struct assign_case {
  const char *name;
  const char *nodes[8];
  const char *flow; /* as it becomes; NULL: as it is */
} cases[] = {
  {"what is only assigned is made in the variable", {"x=feed()", "k=twice(x)", "assign0(k)"}, "#1 feed();#3 kernel twice(in %1, out var0)"},
  {"the old value is updated in place", {"r=read0", "x=feed()", "k=add(r,x)", "assign0(k)"}, "#1 read var0();#2 feed();" ADD},
  {"two reads of the old value are one buffer",
   {"r=read0", "q=read0", "k=add(r,q)", "assign0(k)"},
   "#1 read var0();#2 read var0();#4 kernel add(inout var0) after #1, #2"},
  {"other users of the old value do not matter here: the order protects them",
   {"r=read0", "x=feed()", "k=add(r,x)", "assign0(k)", "fetch(r)"},
   "#1 read var0();#2 feed();" ADD ";#5 fetch(%1)"},
  {"an epilogue takes the old value",
   {"r=read0", "x=feed9()", "k=sum(r,x)", "assign0(k)"},
   "#1 read var0();#2 feed();#4 kernel sum(inout var0, in %2) after #1"},
  {"another variable's value is read", {"r=read1", "k=flip(r)", "assign0(k)"}, "#1 read var1();#3 kernel flip(in %1, out var0)"},
  {"what the assignment waits for the kernel waits for",
   {"x=feed()", "y=feed()", "k=twice(x)#2", "assign0(k)#1#3"},
   "#1 feed();#2 feed();#4 kernel twice(in %1, out var0) after #1, #2"},
  {"what else is made of it stays", {"x=feed()", "k=twice(x)", "assign0(k)", "fetch(k)"}, NULL},
  {"a value for two variables stays", {"x=feed()", "k=twice(x)", "assign0(k)", "assign1(k)"}, NULL},
  {"who waits for the kernel does not wait for the update", {"x=feed()", "k=twice(x)", "r=read0#2", "assign0(k)"}, NULL},
  {"a kernel that may fail leaves the variable as it was", {"x=feed()", "k=checked(x)", "assign0(k)"}, NULL},
  {"a kernel that makes two values stays", {"x=feed()", "k=two(x)", "assign0(k)"}, NULL},
  {"elements of the old value that others need stay", {"r=read0", "k=flip(r)", "assign0(k)"}, NULL},
  {"the old value by another name stays", {"r=read0", "a=alias(r)", "k=twice(a)", "assign0(k)"}, NULL},
  {"what was read before another update stays", {"r=read0", "x=feed()", "assign0(x)#1", "k=add(r,x)", "assign0(k)#3"}, NULL},
  {"a variable whose shape is open stays", {"x=feed()", "k=twice(x)", "assign9(k)"}, NULL},
  {"what is large does not wait for the update", {"r=read0", "l=large()", "k=sum(r,l)", "assign0(k)"}, NULL},
  {"but where the update is needed it need not",
   {"r=read0", "l=large()", "k=sum(r,l)", "assign0(k)", "q=read0#4"},
   "#1 read var0();#2 kernel large(out %2);#4 kernel sum(inout var0, in %2) after #1;#5 read var0() after #4"},
  {"an update takes what is made of the old value",
   {"r=read0", "x=feed()", "k=add(r,x)", "bump0(k)"},
   "#1 read var0();#2 feed();#4 kernel bump(inout var0, in %2) after #1"},
  {"an update takes nothing that is made of the old value in another order", {"r=read0", "k=flip(r)", "bump0(k)"}, NULL},
  {"an update takes nothing that others need", {"r=read0", "x=feed()", "k=add(r,x)", "bump0(k)", "fetch(k)"}, NULL},
  {"what has nothing of the old value was left by fusing", {"x=feed()", "k=twice(x)", "bump0(k)"}, NULL},
  {"a kernel under a condition stays", {"r=read0", "x=feed()", "k=add(r,x)if", "assign0(k)"}, NULL},
};

struct fixture {
  struct arena arena;
  struct flow *flow;
  struct map values;
};

static value_id add_value(struct fixture *f, flow_id maker, const char *name, const char *end, bool is_wide) {
  dim dims[2] = {dim_const(f->flow->dims, 4), dim_const(f->flow->dims, 9)};
  value_id v = flow_add_value(f->flow, DTYPE_FLOAT, 1 + is_wide, dims);
  f->flow->values.items[v].producer = maker;
  vec_push(&f->flow->nodes.items[maker]->outputs, v);
  map_insert(&f->values, arena_strndup(&f->arena, name, (size_t)(end - name)), v);
  return v;
}

static void add_inputs(struct fixture *f, struct flow_node *node, const char *text) {
  const char *at = strchr(text, '(');
  while (at && *at != ')' && at[1] != ')') {
    size_t length = strcspn(at + 1, ",)");
    uint32_t value = 0;
    assert_true(map_find(&f->values, arena_strndup(&f->arena, at + 1, length), &value));
    vec_push(&node->inputs, value);
    at += length + 1;
  }
}

static void bind_kernel(struct fixture *f, struct flow_node *node, flow_id id, const char *text) {
  uint32_t input = 0;
  node->args = ARENA_ARRAY(&f->arena, struct flow_arg, node->kernel->buffers.count);
  for (uint32_t i = 0; i < node->kernel->buffers.count; i++) {
    const struct kernel_buffer *b = &node->kernel->buffers.items[i];
    if (b->mode == BUFFER_IN)
      node->args[i].value = node->inputs.items[input++];
    else if (b->mode == BUFFER_OUT)
      node->args[i].value = add_value(f, id, text, strchr(text, '='), b->rank == 2);
    else
      node->args[i].var = (uint32_t)atoi(text + strcspn(text, "0123456789")) + 1;
  }
}

static enum flow_op op_of(const char *word) {
  static const struct {
    const char *word;
    enum flow_op op;
  } words[] = {{"read", FLOW_READ}, {"assign", FLOW_ASSIGN}, {"alias", FLOW_ALIAS}, {"feed", FLOW_FEED}, {"fetch", FLOW_FETCH}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strncmp(word, words[i].word, strlen(words[i].word)) == 0)
      return words[i].op;
  return FLOW_KERNEL;
}

static void parse_kernel(struct fixture *f, struct flow_node *node, const char *word) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (strncmp(word, kernels[i][0], strcspn(word, "0(")) == 0)
      assert_int_equal(kernel_parse(kernels[i][1], &f->arena, &node->kernel), OK);
  assert_non_null(node->kernel);
}

static void add_node(struct fixture *f, const char *text) {
  const char *sign = strchr(text, '='), *word = sign ? sign + 1 : text;
  flow_id id;
  struct flow_node *node = flow_add_node(f->flow, op_of(word), text, "Test", 0, &id);
  add_inputs(f, node, word);
  if (node->op == FLOW_READ || node->op == FLOW_ASSIGN)
    node->var = (uint32_t)atoi(word + strcspn(word, "0123456789"));
  for (const char *control = strchr(text, '#'); control; control = strchr(control + 1, '#'))
    vec_push(&node->controls, (flow_id)atoi(control + 1));
  if (strstr(text, ")if")) {
    node->guards = ARENA_NEW(&f->arena, struct flow_guard);
    node->guard_count = 1;
  }
  if (node->op == FLOW_KERNEL) {
    parse_kernel(f, node, word);
    bind_kernel(f, node, id, text);
  } else if (sign) {
    add_value(f, id, text, sign, strchr(word, '9') != NULL);
  }
}

static void fixture_init(struct fixture *f, const struct assign_case *c) {
  memset(f, 0, sizeof *f);
  arena_init(&f->arena);
  f->flow = flow_create(&f->arena, dims_create(&f->arena));
  for (uint32_t i = 0; i < 8 && c->nodes[i]; i++)
    add_node(f, c->nodes[i]);
}

static void fixture_deinit(struct fixture *f) {
  map_deinit(&f->values);
  arena_deinit(&f->arena);
}

/* Nodes, with what they wait for. */
static char *flow_text(const struct flow *f) {
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  for (flow_id id = 1, count = 0; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (!n)
      continue;
    fprintf(out, count++ ? ";" : "");
    flow_print_node(out, f, id);
    for (uint32_t i = 0; i < n->controls.count; i++)
      fprintf(out, "%s#%u", i ? ", " : " after ", n->controls.items[i]);
  }
  fclose(out);
  return text;
}

static void assign(struct fixture *f) {
  struct flow_var vars[10];
  for (uint32_t i = 0; i < 10; i++)
    vars[i] = (struct flow_var){.name = "w", .dtype = DTYPE_FLOAT, .has_shape = i < 9, .rank = 1, .dims = {4}};
  assign_in_place(f->flow, vars, 10);
}

static void kernels_store_in_variables(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct fixture f;
    fixture_init(&f, &cases[i]);
    char *before = flow_text(f.flow);
    assign(&f);
    char *after = flow_text(f.flow);
    if (strcmp(after, cases[i].flow ? cases[i].flow : before) != 0)
      test_fail("%s: %s\nbecame %s", cases[i].name, before, after);
    free(before);
    free(after);
    fixture_deinit(&f);
  }
}

/* The fourth node becomes what the third made, in a variable of 1 2 3 4. */
static void check_update(const struct assign_case *c, const float *wanted) {
  struct fixture f;
  float w[4] = {1, 2, 3, 4}, x[36];
  for (int i = 0; i < 36; i++)
    x[i] = (float)(i + 1);
  fixture_init(&f, c);
  assign(&f);
  const struct kernel *k = f.flow->nodes.items[4]->kernel;
  assert_int_equal(kernel_verify(k), OK);
  assert_int_equal(kernel_eval(k, (void *[]){w, x}, NULL), OK);
  assert_memory_equal(w, wanted, sizeof w);
  fixture_deinit(&f);
}

static void an_update_in_place_computes_the_same(void **state) {
  (void)state;
  check_update(&(struct assign_case){"", {"r=read0", "x=feed9()", "k=sum(r,x)", "assign0(k)"}, NULL}, (float[]){46, 128, 210, 292});
  check_update(&(struct assign_case){"", {"r=read0", "x=feed()", "k=add(r,x)", "bump0(k)"}, NULL}, (float[]){3, 6, 9, 12});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_store_in_variables), cmocka_unit_test(an_update_in_place_computes_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
