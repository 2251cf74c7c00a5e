/* test_order.c: flows written as lines of text, and the order they must get.
 *
 * A flow is a list of words: `r0=read0` reads variable 0 as r0, `a=alias(r0)`, `k=use(r0,a)` a kernel, `assign0(k)` updates
 * variable 0, `add0(k)` is a kernel that does, `send(k)`, `recv=recv()`; `!x` at the end makes the node come after the node that made x, `#n`
 * after node n.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "compiler/pass/order.h"
#include "tests/support/test.h"

struct order_case {
  const char *name;
  const char *nodes[16];
  const char *order; /* the nodes' numbers from 1; `s` a snapshot */
};

static const struct order_case cases[] = {
  {"nodes keep their order", {"r=read0", "k=use(r)", "send(k)"}, "1 2 3"},
  {"an update waits for later uses of the old value", {"r=read0", "c=const()", "assign0(c)", "k=use(r)", "send(k)"}, "1 2 4 5 3"},
  {"an update waits for uses of an alias", {"r=read0", "a=alias(r)", "c=const()", "assign0(c)", "k=use(a)"}, "1 2 3 5 4"},
  {"a use that needs the update reads a copy", {"r=read0", "c=const()", "assign0(c)", "k=use(r)#3", "send(k)"}, "1 2 s 3 4 5"},
  {"a copy is made of an alias too", {"r=read0", "a=alias(r)", "c=const()", "assign0(c)", "k=use(a)#4"}, "1 2 3 s 4 5"},
  {"a value that was used before the update needs no copy", {"r=read0", "send(r)", "c=const()", "assign0(c)", "q=read0#4"}, "1 2 3 4 5"},
  {"what depends on an update keeps its place among receives",
   {"c=const()", "assign0(c)", "q=read0#2", "send(q)", "v=recv()"},
   "1 2 3 4 5"},
  {"swapping two variables takes one copy", {"a=read0", "b=read1", "assign0(b)", "assign1(a)"}, "1 2 s 3 4"},
  {"assigning a variable to itself needs no copy", {"r=read0", "assign0(r)"}, "1 2"},
  {"updates of one variable keep their order", {"c=const()", "assign0(c)", "d=const()", "assign0(d)"}, "1 3 2 4"},
  {"a read after the update reads the new value", {"c=const()", "assign0(c)", "r=read0#2", "send(r)"}, "1 2 3 4"},
  {"a read beside an update that is needed early sees the old value",
   {"c=const()", "assign0(c)", "q=read0#2", "r=read0", "k=use(r)", "l=use(q)"},
   "1 4 s 2 3 5 6"},
  {"a read that waits for a receive keeps its place", {"c=const()", "assign0(c)", "q=read0#2", "v=recv()", "r=read0#4"}, "1 2 3 4 5"},
  {"what is sent goes right behind what makes it", {"v=recv()", "k=use(v)", "l=use(v)", "send(k)"}, "1 2 4 3"},
  {"what is sent of a variable needs no copy", {"c=const()", "assign0(c)", "q=read0#2", "r=read0", "send(r)", "send(q)"}, "1 4 5 2 3 6"},
  {"a read whose inputs are copies runs before the update",
   {"a=read0", "b=read1", "c=const()", "assign0(c)", "assign1(c)#4", "q=read1#5", "assign2(c)", "p=read2#7", "k=use(a,b)", "r=read2#9",
    "d=const()", "e=const()", "f=const()", "g=const()"},
   "1 2 3 s 4 s 5 6 9 10 7 8 11 12 13 14"},
  {"an update that nobody else waits for runs behind what it takes", {"r=read0", "g=use(r)", "h=use(g)", "add0(g)"}, "1 2 4 3"},
  {"but not in front of a use of the old value", {"r=read0", "g=use(r)", "h=use(r)", "add0(g)", "j=use(h)"}, "1 2 3 5 4"},
  {"nor in front of a read", {"r=read0", "g=use(r)", "add0(g)", "q=read0", "h=use(q)"}, "1 2 4 5 3"},
  {"nor where the step may still wait for another task", {"r=read0", "g=use(r)", "add0(g)", "h=use(g)", "send(h)"}, "1 2 4 5 3"},
  {"uses of other variables are nobody's concern", {"r=read0", "c=const()", "assign1(c)", "k=use(r)#3"}, "1 2 3 4"},
};

struct fixture {
  struct arena arena;
  struct flow *flow;
  struct map values;
};

/* mode: of what it writes. */
static struct kernel *use_kernel(struct arena *arena, uint32_t inputs, enum buffer_mode mode) {
  struct kernel *k = kernel_create(arena, "use");
  for (uint32_t i = 0; i < inputs; i++)
    kernel_add_buffer(k, DTYPE_FLOAT, BUFFER_IN, 0, NULL);
  uint32_t out = kernel_add_buffer(k, DTYPE_FLOAT, mode, 0, NULL);
  stmt_store(k, &k->body, out, 0, NULL, 0, expr_load(k, 0, 0, NULL, 0));
  return k;
}

static void add_inputs(struct fixture *f, struct flow_node *node, const char *text) {
  const char *open = strchr(text, '(');
  while (open && open[1] && open[1] != ')') {
    size_t length = strcspn(open + 1, ",)");
    char *name = arena_strndup(&f->arena, open + 1, length);
    uint32_t value = 0;
    assert_true(map_find(&f->values, name, &value));
    vec_push(&node->inputs, value);
    open += length + 1;
    if (*open == ')')
      break;
  }
}

/* var: as a flow_arg has it, of what is updated. */
static void bind_kernel(struct fixture *f, struct flow_node *node, uint32_t var) {
  node->kernel = use_kernel(&f->arena, node->inputs.count, var ? BUFFER_INOUT : BUFFER_OUT);
  node->args = ARENA_ARRAY(&f->arena, struct flow_arg, node->inputs.count + 1);
  for (uint32_t i = 0; i < node->inputs.count; i++)
    node->args[i].value = node->inputs.items[i];
  node->args[node->inputs.count].var = var;
}

static void add_node(struct fixture *f, const char *text) {
  static const struct {
    const char *word;
    enum flow_op op;
  } words[] = {{"read", FLOW_READ},   {"assign", FLOW_ASSIGN}, {"alias", FLOW_ALIAS}, {"use", FLOW_KERNEL},
               {"const", FLOW_CONST}, {"send", FLOW_SEND},     {"recv", FLOW_RECV},   {"add", FLOW_KERNEL}};
  const char *sign = strchr(text, '='), *word = sign ? sign + 1 : text;
  enum flow_op op = FLOW_NOOP;
  const char *after = word;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strncmp(word, words[i].word, strlen(words[i].word)) == 0) {
      op = words[i].op;
      after = word + strlen(words[i].word);
    }
  flow_id id;
  struct flow_node *node = flow_add_node(f->flow, op, text, "Test", 0, &id);
  if (op == FLOW_READ || op == FLOW_ASSIGN)
    node->var = (uint32_t)atoi(after);
  add_inputs(f, node, after);
  const char *control = strchr(text, '#');
  if (control)
    vec_push(&node->controls, (flow_id)atoi(control + 1));
  if (op == FLOW_KERNEL)
    bind_kernel(f, node, sign ? 0 : (uint32_t)atoi(after) + 1);
  if (!sign)
    return;
  value_id out = flow_add_value(f->flow, DTYPE_FLOAT, 0, NULL);
  f->flow->values.items[out].producer = id;
  vec_push(&node->outputs, out);
  map_insert(&f->values, arena_strndup(&f->arena, text, (size_t)(sign - text)), out);
  if (op == FLOW_KERNEL)
    node->args[node->inputs.count].value = out;
}

static const char *order_text(const struct order *order, uint32_t written, struct arena *arena) {
  const char *text = "";
  for (uint32_t i = 0; i < order->nodes.count; i++) {
    flow_id id = order->nodes.items[i];
    const char *gap = *text ? " " : "";
    text = id > written ? arena_printf(arena, "%s%ss", text, gap) : arena_printf(arena, "%s%s%u", text, gap, id);
  }
  return text;
}

static void order_keeps_values_apart(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct fixture f = {0};
    arena_init(&f.arena);
    f.flow = flow_create(&f.arena, dims_create(&f.arena));
    uint32_t written = 0;
    for (; written < 16 && cases[i].nodes[written]; written++)
      add_node(&f, cases[i].nodes[written]);
    struct order order;
    assert_int_equal(order_flow(f.flow, &order), OK);
    const char *text = order_text(&order, written, &f.arena);
    if (strcmp(text, cases[i].order) != 0)
      test_fail("%s: order is %s, must be %s", cases[i].name, text, cases[i].order);
    vec_free(&order.nodes);
    vec_free(&order.needs);
    vec_free(&order.release);
    map_deinit(&f.values);
    arena_deinit(&f.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(order_keeps_values_apart)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
