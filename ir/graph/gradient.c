/* gradient.c: reverse-mode differentiation of a function's body. */
#include "ir/graph/gradient.h"

#include <string.h>

#include "ir/graph/registry.h"

typedef VEC(struct edge) edge_list;

struct derivation {
  struct graph *graph; /* the result: arguments, the body's nodes, the gradient's */
  const char *prefix;
  uint32_t arg_count;  /* x: the first nodes; gradients end there */
  uint32_t node_count; /* without the gradient's nodes */
  uint32_t *first;     /* per node: where its outputs' gradients are in `grads` */
  edge_list *grads;    /* per output: what has come back to it */
  uint32_t *pending;   /* per node: how many gradients are still to come */
  VEC(uint32_t) ready; /* nodes to which all has come back */
};

static enum dtype dtype_of(const struct derivation *d, struct edge e) {
  return dtype_base(d->graph->nodes.items[e.node].output_dtypes[e.port]);
}

/* ---- nodes ---- */

/* A node with one output. */
static status add_simple(struct derivation *d, const char *op, const edge_list *inputs, const struct attr *attrs, uint32_t attr_count,
                         struct edge *out) {
  struct node node = {.op = op, .attrs = attrs, .attr_count = attr_count, .inputs = inputs->items, .input_count = inputs->count};
  uint32_t at;
  TRY(function_add_node(d->graph, d->prefix, node, &at));
  *out = (struct edge){at, 0};
  return OK;
}

/* Zeros like the value of an output; for a resource, like the float that a variable holds. */
static status add_zeros(struct derivation *d, struct edge like, struct edge *out) {
  enum dtype dtype = dtype_of(d, like);
  edge_list input = {.items = &like, .count = 1};
  if (dtype == DTYPE_RESOURCE) {
    dtype = DTYPE_FLOAT;
    const struct attr of_read = attr_of_type("dtype", dtype);
    TRY(add_simple(d, "ReadVariableOp", &input, &of_read, 1, &like));
  }
  const struct attr t = attr_of_type("T", dtype);
  return add_simple(d, "ZerosLike", &input, &t, 1, out);
}

/* All that has come back to an output, as one tensor. */
static status sum_gradients(struct derivation *d, struct edge of, struct edge *out) {
  const edge_list *grads = &d->grads[d->first[of.node] + of.port];
  enum dtype dtype = dtype_of(d, of);
  if (!grads->count || dtype == DTYPE_BOOL)
    return add_zeros(d, of, out);
  if (grads->count == 1) {
    *out = grads->items[0];
    return OK;
  }
  const struct attr attrs[] = {attr_of_type("T", dtype == DTYPE_RESOURCE ? DTYPE_FLOAT : dtype), attr_of_int("N", grads->count)};
  return add_simple(d, "AddN", grads, attrs, 2, out);
}

/* The SymbolicGradient of a node of the body: from its inputs and the gradients of its outputs. */
static status add_gradient(struct derivation *d, uint32_t of, const struct edge *dy, uint32_t *out) {
  struct arena *arena = d->graph->arena;
  const struct node *n = &d->graph->nodes.items[of];
  uint32_t x_count = n->input_count, count = x_count + n->output_count;
  struct edge *inputs = ARENA_ARRAY(arena, struct edge, count + 1);
  uint8_t *in = arena_alloc(arena, count + 1), *result = arena_alloc(arena, x_count + 1);
  for (uint32_t i = 0; i < count; i++) {
    inputs[i] = i < x_count ? n->inputs[i] : dy[i - x_count];
    in[i] = (uint8_t)dtype_of(d, inputs[i]);
    if (i < x_count)
      result[i] = in[i] == DTYPE_RESOURCE ? DTYPE_FLOAT : in[i];
  }
  struct attr_func *f = ARENA_NEW(arena, struct attr_func);
  *f = (struct attr_func){.name = n->op, .attrs = n->attrs, .attr_count = n->attr_count};
  const struct attr attrs[] = {attr_of_types(arena, "Tin", in, count),
                               attr_of_types(arena, "Tout", result, x_count),
                               {.name = "f", .value = {.kind = ATTR_FUNC, .func = f}}};
  struct node node = {.name = arena_printf(arena, "%s_grad", n->name),
                      .op = "SymbolicGradient",
                      .attrs = attrs,
                      .attr_count = 3,
                      .inputs = inputs,
                      .input_count = count};
  return function_add_node(d->graph, d->prefix, node, out);
}

/* ---- the walk ---- */

/* A gradient has come back to an output, or it is known that none will. */
static void arrive(struct derivation *d, struct edge at, const struct edge *gradient) {
  if (gradient)
    vec_push(&d->grads[d->first[at.node] + at.port], *gradient);
  if (--d->pending[at.node] == 0)
    vec_push(&d->ready, at.node);
}

/* Counts the edges by which gradients come back: those among the nodes that the results need. */
static void count_pending(struct derivation *d, const struct edge *rets, uint32_t ret_count) {
  bool *reached = ARENA_ARRAY(d->graph->arena, bool, d->node_count + 1);
  VEC(uint32_t) stack = {0};
  for (uint32_t i = 0; i < ret_count; i++) {
    d->pending[rets[i].node]++;
    vec_push(&stack, rets[i].node);
  }
  while (stack.count) {
    uint32_t n = stack.items[--stack.count];
    if (reached[n])
      continue;
    reached[n] = true;
    const struct node *node = &d->graph->nodes.items[n];
    for (uint32_t i = 0; i < node->input_count; i++) {
      d->pending[node->inputs[i].node]++;
      vec_push(&stack, node->inputs[i].node);
    }
  }
  vec_free(&stack);
}

/* From the gradients of a node's outputs to those of its inputs. */
static status step_back(struct derivation *d, uint32_t at) {
  struct node n = d->graph->nodes.items[at]; /* a copy: nodes are added */
  struct edge *dy = ARENA_ARRAY(d->graph->arena, struct edge, n.output_count + 1);
  bool ends = gradient_ends_at(n.op);
  uint32_t gradient = 0;
  for (uint32_t i = 0; i < n.output_count && !ends; i++)
    TRY(sum_gradients(d, (struct edge){at, i}, &dy[i]));
  if (!ends)
    TRY(add_gradient(d, at, dy, &gradient));
  for (uint32_t i = 0; i < n.input_count; i++)
    arrive(d, n.inputs[i], ends ? NULL : &(struct edge){gradient, i});
  return OK;
}

/* What is on a cycle never becomes ready: nothing comes back through TensorFlow 1's loops, as in TensorFlow. */
static status walk(struct derivation *d, const struct edge *rets, const struct edge *dy, uint32_t ret_count, struct edge *dx) {
  count_pending(d, rets, ret_count);
  for (uint32_t i = 0; i < ret_count; i++)
    arrive(d, rets[i], &dy[i]);
  for (uint32_t i = 0; i < d->ready.count; i++)
    if (d->ready.items[i] >= d->arg_count)
      TRY(step_back(d, d->ready.items[i]));
  for (uint32_t i = 0; i < d->arg_count; i++)
    TRY(sum_gradients(d, (struct edge){i, 0}, &dx[i]));
  return OK;
}

/* ---- the instance ---- */

static void copy_node(struct graph *to, const struct node *from, uint32_t arg_count, uint32_t inserted) {
  struct node node = *from;
  struct edge *inputs = ARENA_ARRAY(to->arena, struct edge, node.input_count + 1);
  uint32_t *controls = ARENA_ARRAY(to->arena, uint32_t, node.control_count + 1);
  for (uint32_t i = 0; i < node.input_count; i++) {
    inputs[i] = node.inputs[i];
    inputs[i].node += inputs[i].node >= arg_count ? inserted : 0;
  }
  for (uint32_t i = 0; i < node.control_count; i++)
    controls[i] = node.controls[i] + (node.controls[i] >= arg_count ? inserted : 0);
  node.inputs = inputs;
  node.controls = controls;
  map_insert(&to->names, node.name, to->nodes.count);
  vec_push(&to->nodes, node);
}

/* x..., dy..., the body's nodes; rets are moved with them, dy are set. */
static status copy_body(const struct instance *body, struct graph *to, const char *prefix, struct edge *rets, struct edge *dy) {
  const struct graph *from = body->graph;
  for (uint32_t i = 0; i < body->arg_count; i++)
    copy_node(to, &from->nodes.items[i], body->arg_count, 0);
  for (uint32_t i = 0; i < body->ret_count; i++) {
    struct edge e = body->rets[i];
    struct node arg = function_arg_node(arena_printf(to->arena, "%s/gradient_%u", prefix, i),
                                        dtype_base(from->nodes.items[e.node].output_dtypes[e.port]), body->arg_count + i, to->arena);
    rets[i] = (struct edge){e.node + (e.node >= body->arg_count ? body->ret_count : 0), e.port};
    dy[i].port = 0;
    TRY(function_add_node(to, prefix, arg, &dy[i].node));
  }
  for (uint32_t i = body->arg_count; i < from->nodes.count; i++)
    copy_node(to, &from->nodes.items[i], body->arg_count, body->ret_count);
  return OK;
}

static void derivation_init(struct derivation *d, struct graph *graph, uint32_t arg_count, const char *prefix) {
  uint32_t count = graph->nodes.count, outputs = 0;
  *d = (struct derivation){.graph = graph, .prefix = prefix, .arg_count = arg_count, .node_count = count};
  d->first = ARENA_ARRAY(graph->arena, uint32_t, count + 1);
  d->pending = ARENA_ARRAY(graph->arena, uint32_t, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    d->first[i] = outputs;
    outputs += graph->nodes.items[i].output_count;
  }
  d->first[count] = outputs;
  d->grads = ARENA_ARRAY(graph->arena, edge_list, outputs + 1);
}

static status derive(const struct instance *body, const char *prefix, struct instance *out) {
  struct graph *graph = out->graph;
  struct edge *rets = ARENA_ARRAY(graph->arena, struct edge, body->ret_count + 1);
  struct edge *dy = ARENA_ARRAY(graph->arena, struct edge, body->ret_count + 1);
  struct edge *dx = ARENA_ARRAY(graph->arena, struct edge, body->arg_count + 1);
  struct derivation d;
  TRY(copy_body(body, graph, prefix, rets, dy));
  derivation_init(&d, graph, body->arg_count, prefix);
  status s = walk(&d, rets, dy, body->ret_count, dx);
  for (uint32_t i = 0; i < d.first[d.node_count]; i++)
    vec_free(&d.grads[i]);
  vec_free(&d.ready);
  out->arg_count = body->arg_count + body->ret_count;
  out->rets = dx;
  out->ret_count = body->arg_count;
  return s;
}

status gradient_instantiate(const struct graph *library, const struct attr_func *f, const char *prefix, struct arena *arena,
                            struct instance *out) {
  const struct function *function = function_find(library, f->name);
  if (strcmp(f->name, "SymbolicGradient") == 0)
    return fail(INVALID_ARGUMENT, "Can't take gradient of SymbolicGradient");
  if (!function)
    return gradient_of_op(library, f, prefix, arena, out);
  struct instance body, made = {.graph = function_graph(library, arena)};
  TRY(function_instantiate(library, function, f->attrs, f->attr_count, prefix, arena, &body));
  status s = derive(&body, prefix, &made);
  instance_deinit(&body);
  if (s != OK) {
    instance_deinit(&made);
    return status_prefix(s, "gradient of function '%s': ", f->name);
  }
  *out = made;
  return OK;
}
