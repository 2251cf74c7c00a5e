/* flow_copy.c: see flow_copy.h. */
#include "compiler/edit/flow_copy.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"

void flow_copy_begin(struct flow_copy *c, const struct flow *from, struct flow *to) {
  *c = (struct flow_copy){.from = from, .to = to};
  c->value = calloc(from->values.count + 1, sizeof *c->value);
  c->node = calloc(from->nodes.count + 1, sizeof *c->node);
}

void flow_copy_end(struct flow_copy *c) {
  free(c->value);
  free(c->node);
  free(c->symbol);
}

/* ---- sizes ---- */

void flow_copy_new_symbols(struct flow_copy *c, const bool *own, uint32_t count) {
  struct dim_table *dims = c->to->dims;
  c->symbol = calloc(dims_symbol_count(dims) + count + 1, sizeof *c->symbol);
  for (uint32_t s = 0; s < count; s++)
    c->symbol[s] = own[s] ? dim_symbol(dims, dims_symbol_name(dims, s)) : NO_DIM;
  for (uint32_t s = 0; s < count; s++) {
    dim was = dim_of_symbol(dims, s), is = dim_resolve(dims, was);
    if (!own[s] || is == was)
      continue;
    dims_set_reason(dims, dim_reason(dims, was));
    dim_unify(dims, c->symbol[s], dim_replace(dims, is, c->symbol));
  }
}

static dim copy_size(const struct flow_copy *c, dim d) { return c->symbol ? dim_replace(c->to->dims, d, c->symbol) : d; }
static const dim *copy_sizes(const struct flow_copy *c, const dim *from, int64_t count) {
  if (!from || !c->symbol)
    return from;
  dim *to = ARENA_ARRAY(c->to->arena, dim, count + 1);
  for (int64_t i = 0; i < count; i++)
    to[i] = copy_size(c, from[i]);
  return to;
}
static const uint32_t *copy_binds(const struct flow_copy *c, const struct flow_node *n) {
  uint32_t *binds = ARENA_ARRAY(c->to->arena, uint32_t, n->bind_count + 1);
  for (uint32_t i = 0; i < n->bind_count; i++) {
    binds[i] = n->binds[i];
    if (c->symbol && c->symbol[n->binds[i]] != NO_DIM)
      dim_is_symbol(c->to->dims, c->symbol[n->binds[i]], &binds[i]);
  }
  return binds;
}

/* ---- nodes ---- */

/* As in the other flow; who makes it is the caller's to say. */
static value_id copy_value(const struct flow_copy *c, value_id v) {
  struct flow_value x = c->from->values.items[v];
  int64_t elements = 1;
  for (int d = 0; d < x.rank; d++) {
    int64_t size = 0;
    elements *= x.content && dim_is_const(c->to->dims, x.dims[d], &size) ? size : 1;
    x.dims[d] = copy_size(c, x.dims[d]);
  }
  x.content = copy_sizes(c, x.content, elements);
  x.length = copy_size(c, x.length);
  vec_push(&c->to->values, x);
  return c->value[v] = c->to->values.count - 1;
}

static struct flow *copy_region(const struct flow_copy *outer, const struct flow *from) {
  struct flow_copy c;
  struct flow *to = flow_create(from->arena, from->dims);
  to->parent = outer->to;
  flow_copy_begin(&c, from, to);
  c.symbol = outer->symbol;
  for (uint32_t i = 0; i < from->params.count; i++)
    vec_push(&to->params, copy_value(&c, from->params.items[i]));
  for (flow_id id = 1; id < from->nodes.count; id++) {
    flow_id copy;
    if (from->nodes.items[id])
      flow_copy_guards(&c, flow_copy_node(&c, id, &copy), NULL, 0);
  }
  for (uint32_t i = 0; i < from->results.count; i++)
    vec_push(&to->results, c.value[from->results.items[i]]);
  c.symbol = NULL;
  flow_copy_end(&c);
  return to;
}

static void copy_regions(struct flow_copy *c, const struct flow_node *n, struct flow_node *to) {
  to->branches = ARENA_ARRAY(c->to->arena, struct flow *, n->region_count + 1);
  for (uint32_t i = 0; i < n->region_count; i++)
    to->branches[i] = copy_region(c, n->branches[i]);
  for (uint32_t i = 0; i < 2; i++)
    to->regions[i] = i < n->region_count && n->regions[i] ? to->branches[i] : NULL;
}

static void copy_args(const struct flow_copy *c, const struct flow_node *n, struct flow_node *to) {
  to->args = arena_copy(c->to->arena, n->args, sizeof *n->args * n->kernel->buffers.count);
  for (uint32_t i = 0; i < n->kernel->buffers.count; i++) {
    to->args[i].value = c->value[n->args[i].value];
    to->args[i].dims = copy_sizes(c, n->args[i].dims, n->args[i].rank);
  }
  to->sizes = (dim *)copy_sizes(c, n->sizes, n->kernel->size_count);
}

struct flow_node *flow_copy_node(struct flow_copy *c, flow_id of, flow_id *id) {
  const struct flow_node *n = c->from->nodes.items[of];
  struct flow_node *to = flow_append(c->to, n->op, n, n->task, id);
  *to = *n;
  memset(&to->inputs, 0, sizeof to->inputs);
  memset(&to->outputs, 0, sizeof to->outputs);
  memset(&to->controls, 0, sizeof to->controls);
  c->node[of] = *id;
  for (uint32_t i = 0; i < n->inputs.count; i++)
    vec_push(&to->inputs, c->value[n->inputs.items[i]]);
  for (uint32_t i = 0; i < n->outputs.count; i++) {
    value_id v = copy_value(c, n->outputs.items[i]);
    c->to->values.items[v].producer = *id;
    vec_push(&to->outputs, v);
  }
  for (uint32_t i = 0; i < n->controls.count; i++)
    vec_push(&to->controls, c->node[n->controls.items[i]]);
  if (n->op == FLOW_KERNEL)
    copy_args(c, n, to);
  if (n->op == FLOW_BIND)
    to->binds = copy_binds(c, n);
  if (n->region_count)
    copy_regions(c, n, to);
  return to;
}

void flow_copy_guards(const struct flow_copy *c, struct flow_node *copy, const struct flow_guard *around, uint32_t count) {
  struct flow_guard *guards = ARENA_ARRAY(c->to->arena, struct flow_guard, count + copy->guard_count + 1);
  for (uint32_t i = 0; i < count; i++)
    guards[i] = around[i];
  for (uint32_t i = 0; i < copy->guard_count; i++)
    guards[count + i] = (struct flow_guard){c->value[copy->guards[i].predicate], copy->guards[i].expected};
  copy->guards = guards;
  copy->guard_count += count;
}
