/* flow.c: building and printing flows. */
#include "ir/flow/flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct flow *flow_create(struct arena *arena, struct dim_table *dims) {
  struct flow *f = ARENA_NEW(arena, struct flow);
  f->arena = arena;
  f->dims = dims;
  vec_push(&f->values, (struct flow_value){0});
  vec_push(&f->nodes, NULL);
  return f;
}

struct flow_value *flow_value_get(const struct flow *f, value_id v) {
  return &f->values.items[v];
}

value_id flow_add_value(struct flow *f, enum dtype dtype, int rank, const dim *dims) {
  struct flow_value v = {.dtype = dtype, .rank = rank};
  if (rank > 0)
    memcpy(v.dims, dims, sizeof *dims * (size_t)rank);
  vec_push(&f->values, v);
  return f->values.count - 1;
}

struct flow_node *flow_add_node(struct flow *f, enum flow_op op, const char *name, const char *tf_op, uint32_t task, flow_id *out) {
  struct flow_node *n = ARENA_NEW(f->arena, struct flow_node);
  n->op = op;
  n->name = name;
  n->tf_op = tf_op;
  n->task = task;
  vec_push(&f->nodes, n);
  if (out)
    *out = f->nodes.count - 1;
  return n;
}

#define BYTES_MAX (INT64_C(1) << 50) /* so that sums of many do not overflow */

int64_t flow_value_bytes(const struct flow *f, value_id v, bool *open) {
  const struct flow_value *x = &f->values.items[v];
  int64_t bytes = (int64_t)dtype_size(x->dtype), d;
  for (int i = 0; i < x->rank; i++) {
    if (!dim_is_const(f->dims, dim_resolve(f->dims, x->dims[i]), &d))
      *open = true, d = 1;
    if (__builtin_mul_overflow(bytes, d, &bytes) || bytes > BYTES_MAX)
      bytes = BYTES_MAX;
  }
  return bytes;
}

value_id flow_root(const struct flow *f, value_id v) {
  const struct flow_node *n;
  while ((n = f->nodes.items[f->values.items[v].producer]) && n->op == FLOW_ALIAS)
    v = n->inputs.items[0];
  return v;
}

bool flow_is_view(const struct flow_node *n) { return n->op == FLOW_ALIAS && n->controls.count == 0 && n->guard_count == 0; }

bool node_follows(const struct flow_node *n, flow_id before) {
  for (uint32_t i = 0; i < n->controls.count; i++)
    if (n->controls.items[i] == before)
      return true;
  return false;
}

uint32_t flow_buffer_of(const struct flow_node *n, value_id v) {
  uint32_t i = 0;
  while (n->args[i].value != v)
    i++;
  return i;
}

struct flow_arg flow_arg_of_variable(const struct flow *f, uint32_t var, value_id v) {
  const struct flow_value *x = &f->values.items[v];
  return (struct flow_arg){.var = var + 1, .dims = arena_copy(f->arena, x->dims, sizeof *x->dims * (size_t)x->rank), .rank = x->rank};
}

bool flow_arg_is_output(const struct flow_node *node, uint32_t i) {
  return node->args[i].value != NO_VALUE && !node->args[i].var && node->kernel->buffers.items[i].mode != BUFFER_IN &&
         node->kernel->buffers.items[i].mode != BUFFER_SCRATCH;
}

static uint32_t own_inputs(const struct flow_node *node) {
  return node->op == FLOW_KERNEL ? node->kernel->buffers.count : node->inputs.count;
}

uint32_t flow_input_count(const struct flow_node *node) { return own_inputs(node) + node->guard_count; }

value_id flow_input(const struct flow_node *node, uint32_t i) {
  if (i >= own_inputs(node))
    return node->guards[i - own_inputs(node)].predicate;
  if (node->op != FLOW_KERNEL)
    return node->inputs.items[i];
  return node->kernel->buffers.items[i].mode == BUFFER_IN ? node->args[i].value : NO_VALUE;
}

bool flow_is_same_dim(const struct flow *f, value_id a, value_id b, int d) {
  return dim_equal(f->dims, dim_resolve(f->dims, f->values.items[a].dims[d]), dim_resolve(f->dims, f->values.items[b].dims[d])) == 1;
}

const char *flow_value_text(const struct flow *f, value_id v) {
  const struct flow_value *x = &f->values.items[v];
  const char *text = arena_printf(f->arena, "%s[", dtype_short(x->dtype));
  for (int i = 0; i < x->rank; i++)
    text = arena_printf(f->arena, "%s%s%s", text, i ? "," : "", dim_text(f->dims, dim_resolve(f->dims, x->dims[i])));
  return arena_printf(f->arena, "%s]", text);
}

static const char *const op_names[] = {
  [FLOW_FEED] = "feed",   [FLOW_FETCH] = "fetch", [FLOW_CONST] = "const",   [FLOW_KERNEL] = "kernel",
  [FLOW_ALIAS] = "alias", [FLOW_READ] = "read",   [FLOW_ASSIGN] = "assign", [FLOW_VARIABLE] = "is_initialized",
  [FLOW_HOST] = "host",   [FLOW_BIND] = "bind",   [FLOW_IF] = "if",         [FLOW_WHILE] = "while",
  [FLOW_SEND] = "send",   [FLOW_RECV] = "recv",   [FLOW_NOOP] = "noop",     [FLOW_MERGE] = "merge"};

struct printer {
  FILE *out;
  struct arena *arena;
  int indent;
};

static void print_flow(struct printer *p, const struct flow *f);

static void print_task(FILE *out, uint32_t task) {
  if (task == TASK_DRIVER)
    fprintf(out, " @driver");
  else if (task == TASK_SELF)
    fprintf(out, " @self");
  else
    fprintf(out, " @%u", task);
}

static void print_args(FILE *out, const struct flow_node *n) {
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++) {
    static const char *const modes[] = {"in", "out", "inout", "scratch"};
    fprintf(out, "%s%s ", i ? ", " : "", modes[n->kernel->buffers.items[i].mode]);
    if (n->args[i].var)
      fprintf(out, "var%u", n->args[i].var - 1);
    else
      fprintf(out, "%%%u", n->args[i].value);
  }
}

void flow_print_node(FILE *out, const struct flow *f, flow_id id) {
  const struct flow_node *n = f->nodes.items[id];
  fprintf(out, "#%u %s", id, op_names[n->op]);
  if (n->op == FLOW_KERNEL) {
    fprintf(out, " %s(", n->kernel->name);
    print_args(out, n);
  } else {
    if (n->op == FLOW_HOST)
      fprintf(out, " %s", n->host);
    if (n->op == FLOW_READ || n->op == FLOW_ASSIGN || n->op == FLOW_VARIABLE)
      fprintf(out, " var%u", n->var);
    if (n->op == FLOW_SEND || n->op == FLOW_RECV) {
      fprintf(out, " t%lld %s", (long long)n->imm, n->op == FLOW_SEND ? "to" : "from");
      print_task(out, n->peer);
    }
    fprintf(out, "(");
    for (uint32_t i = 0; i < n->inputs.count; i++)
      fprintf(out, "%s%s%%%u", i ? ", " : "", i == n->inputs.count - n->rows_in ? "rows " : "", n->inputs.items[i]);
  }
  fprintf(out, ")%s", n->op == FLOW_READ && n->imm == READ_IN_LOOP ? " in loop" : n->from_last ? " from last" : "");
}

static void print_node(struct printer *p, const struct flow *f, flow_id id) {
  const struct flow_node *n = f->nodes.items[id];
  fprintf(p->out, "%*s", p->indent, "");
  for (uint32_t i = 0; i < n->outputs.count; i++)
    fprintf(p->out, "%s%s%%%u: %s", i ? ", " : "", i == n->outputs.count - n->rows_out ? "rows " : "", n->outputs.items[i],
            flow_value_text(f, n->outputs.items[i]));
  fputs(n->outputs.count ? " = " : "", p->out);
  flow_print_node(p->out, f, id);
  for (uint32_t i = 0; i < n->bind_count; i++)
    fprintf(p->out, "%s%s", i ? ", " : " binds ", dims_symbol_name(f->dims, n->binds[i]));
  for (uint32_t i = 0; i < n->controls.count; i++)
    fprintf(p->out, "%s#%u", i ? ", " : " after ", n->controls.items[i]);
  for (uint32_t i = 0; i < n->guard_count; i++)
    fprintf(p->out, "%s%s%%%u", i ? ", " : " if ", n->guards[i].expected ? "" : "not ", n->guards[i].predicate);
  print_task(p->out, n->task);
  fprintf(p->out, "  ; %s (%s)\n", n->name ? n->name : "", n->tf_op ? n->tf_op : "");
  p->indent += 2;
  for (uint32_t i = 0; i < n->region_count; i++) {
    fprintf(p->out, "%*sregion %u {\n", p->indent, "", i);
    p->indent += 2;
    print_flow(p, n->branches[i]);
    p->indent -= 2;
    fprintf(p->out, "%*s}\n", p->indent, "");
  }
  p->indent -= 2;
}

static void print_flow(struct printer *p, const struct flow *f) {
  for (uint32_t i = 0; i < f->params.count; i++)
    fprintf(p->out, "%*sparam %%%u: %s\n", p->indent, "", f->params.items[i], flow_value_text(f, f->params.items[i]));
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id])
      print_node(p, f, id);
  for (uint32_t i = 0; i < f->results.count; i++)
    fprintf(p->out, "%*sresult %%%u\n", p->indent, "", f->results.items[i]);
}

char *flow_print(const struct flow *f, struct arena *arena) {
  char *buffer = NULL;
  size_t size = 0;
  struct printer p = {.out = open_memstream(&buffer, &size), .arena = arena};
  print_flow(&p, f);
  fclose(p.out);
  char *text = arena_strndup(arena, buffer, size);
  free(buffer);
  return text;
}
