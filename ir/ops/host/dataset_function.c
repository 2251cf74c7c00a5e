/* dataset_function.c: see dataset_function.h. A function's body becomes a region of the node that holds it; a state is lowered until
 * its sizes stay. */
#include "ir/ops/host/dataset_function.h"

#include <string.h>

#include "ir/graph/function.h"
#include "ir/ops/op_rows.h"
#include "ir/ops/host/dataset_maker.h"
#include "ir/lower/host_call.h"
#include "ir/lower/lower_walk.h"

static status region_arguments(struct op_call *c, struct flow *flow, const struct dataset_function *f, struct bound *args) {
  for (uint32_t i = 0; i < f->args.count; i++) {
    const struct flow_value *shape = &f->shapes.items[i];
    args[i] = f->args.items[i];
    if (args[i].var)
      continue;
    args[i].value = flow_add_value(flow, shape->dtype, shape->rank, shape->dims);
    flow->values.items[args[i].value].index = flow->params.count;
    vec_push(&flow->params, args[i].value);
    if (shape->any_rank)
      TRY(op_any_rank(c, args[i].value, ANY_RANK, &args[i]));
  }
  return OK;
}

static status lower_function_body(struct op_call *c, const struct dataset_function *f, struct flow *flow) {
  const struct function *function = function_find(op_graph(c), f->func->name);
  if (!function)
    return fail(NOT_FOUND, "the graph has no function '%s'", f->func->name);
  struct node *caller = arena_copy(op_arena(c), f->node, sizeof *f->node);
  caller->task = c->node->task;
  caller->assigned = c->node->assigned;
  struct op_call inner = {.lw = c->lw, .node = caller};
  uint32_t ret_count = 0;
  TRY(function_ret_count(function, f->func->attrs, f->func->attr_count, op_arena(c), &ret_count));
  struct bound *rets = ARENA_ARRAY(op_arena(c), struct bound, ret_count + 1);
  struct bound *args = ARENA_ARRAY(op_arena(c), struct bound, f->args.count + 1);
  TRY(region_arguments(&inner, flow, f, args));
  status s = lower_body_as_written(&inner, f->func, args, f->args.count, rets, ret_count);
  for (uint32_t i = 0; i < ret_count && s == OK; i++) {
    struct op_call read = {.lw = c->lw, .node = caller, .in = &rets[i], .in_count = 1};
    value_id v = NO_VALUE;
    if (rets[i].dead && lower_is_awaiting(c->lw)) {
      lower_await_result(flow, i < f->shapes.count ? &f->shapes.items[i] : NULL);
      continue;
    }
    s = rets[i].alternatives ? lower_any_rank(&read, rets[i], &v) : op_input(&read, 0, &v);
    vec_push(&flow->results, v);
  }
  const struct attr_value *states = node_attr(f->node, "Tstate");
  for (uint32_t i = 0; states && i < states->list.count && i < ret_count && i < f->args.count && s == OK; i++)
    lower_join_list(c, f->args.items[i].maker, rets[i].maker);
  vec_free(&inner.body);
  return s;
}

static status build_function(struct op_call *c, const struct dataset_function *f, struct flow **out) {
  *out = flow_create(op_arena(c), op_dims(c));
  struct flow *outer = (*out)->parent = region_enter(c->lw, *out);
  status s = lower_function_body(c, f, *out);
  region_leave(c->lw, outer);
  return s;
}

/* Sizes that a scan's function does not keep of its state are other ones for each element: they become symbols. True when one did. */
static bool open_state(struct op_call *c, struct dataset_function *f, const struct flow *flow) {
  const struct attr_value *states = is_op(f->node, "ScanDataset") ? node_attr(f->node, "Tstate") : NULL;
  bool opened = false;
  for (uint32_t k = 0; states && k < states->list.count && k < f->shapes.count && k < flow->results.count; k++) {
    struct flow_value *taken = &f->shapes.items[k];
    const struct flow_value *made = &flow->values.items[flow->results.items[k]];
    for (int d = 0; d < taken->rank && made->rank == taken->rank; d++)
      if (op_dim_value(c, taken->dims[d]) >= 0 && dim_equal(op_dims(c), taken->dims[d], made->dims[d]) != 1) {
        op_note_given(c, taken->dims[d] = op_new_symbol(c));
        opened = true;
      }
  }
  return opened;
}

/* The function until the sizes of its state, and what it knows of lists, have settled. */
static status build_settled(struct op_call *c, struct dataset_function *f, struct flow **out) {
  struct awaiting awaiting;
  for (uint32_t i = 0; i < f->args.count; i++)
    lower_object(c->lw, f->args.items[i].maker); /* its lists are there before its body */
  lower_await_begin(c->lw, &awaiting);
  status s = OK;
  for (bool changed = true; changed && s == OK;) {
    s = build_function(c, f, out);
    changed = s == OK && open_state(c, f, *out);
    changed |= lower_await_again(c->lw, &awaiting);
  }
  lower_await_end(c->lw, &awaiting);
  return s;
}

/* What it finds of datasets in the function is not the list's. */
static status build_aside(struct op_call *aside, const void *f, struct flow **out) {
  struct dataset_functions inside = {0}, *outer = op_collect_datasets(aside, &inside);
  struct dataset_function of = *(const struct dataset_function *)f;
  status s = build_settled(aside, &of, out);
  op_collect_datasets(aside, outer);
  dataset_functions_free(&inside);
  return s;
}

int dataset_function_rank(struct op_call *c, const struct dataset_function *f, uint32_t i) {
  struct flow *flow;
  if (lower_aside(c, build_aside, f, &flow) != OK || i >= flow->results.count)
    return -1;
  const struct flow_value *made = &flow->values.items[flow->results.items[i]];
  return made->any_rank ? DATASET_ANY_RANK : made->rank;
}

/* A state has the ranks that it begins with, and any sizes. */
static status take_state(struct op_call *c, struct dataset_function *f, const struct flow_list *flows) {
  const struct dataset_functions *all = op_datasets(c);
  uint32_t i = 0;
  while (i < flows->count && strcmp(all->list.items[i].name, f->state_of) != 0)
    i++;
  if (i == flows->count)
    return fail(UNIMPLEMENTED, "%s: its state is made by '%s', which is not found while compiling", f->name, f->state_of);
  struct dataset_function with = {.name = f->name, .node = f->node, .func = f->func, .state_of = f->state_of};
  const struct flow *made = flows->items[i];
  for (uint32_t k = 0; k < made->results.count; k++) {
    struct flow_value state = made->values.items[made->results.items[k]];
    if (state.any_rank)
      return fail(UNIMPLEMENTED, "%s: component %u of its state has a rank that only the step knows", f->name, k);
    struct flow_value value = {.dtype = state.dtype, .rank = state.rank};
    for (int d = 0; d < state.rank; d++)
      value.dims[d] = op_new_symbol(c);
    dataset_function_add(c, &with, value, NULL);
  }
  for (uint32_t k = 0; k < f->args.count; k++) {
    vec_push(&with.args, f->args.items[k]);
    vec_push(&with.shapes, f->shapes.items[k]);
  }
  vec_free(&f->args);
  vec_free(&f->shapes);
  *f = with;
  return OK;
}

/* A reduction may not give a state of other ranks than it took. */
static status check_state(const struct dataset_function *f, const struct flow *flow) {
  bool reduces = (f->state_of && strstr(f->name, ":reduce_func")) || is_op(f->node, "ReduceDataset");
  for (uint32_t k = 0; reduces && k < flow->results.count && k < f->shapes.count; k++) {
    const struct flow_value *made = &flow->values.items[flow->results.items[k]], *taken = &f->shapes.items[k];
    if (made->any_rank)
      return fail(UNIMPLEMENTED, "%s: component %u of its state has a rank that only the step knows", f->node->name, k);
    if (made->dtype != taken->dtype || made->rank != taken->rank)
      return fail(UNIMPLEMENTED, "%s: component %u of its state is %s of rank %d, and becomes %s of rank %d", f->node->name, k,
                  dtype_name(taken->dtype), taken->rank, dtype_name(made->dtype), made->rank);
  }
  return OK;
}

/* The list grows while bodies are lowered. */
status dataset_functions_build(struct op_call *c, struct flow_list *flows) {
  struct dataset_functions *all = op_datasets(c);
  for (uint32_t i = 0; i < all->list.count; i++) {
    if (all->list.items[i].state_of)
      TRY(take_state(c, &all->list.items[i], flows));
    struct dataset_function f = all->list.items[i];
    struct flow *flow;
    TRY(build_settled(c, &f, &flow));
    TRY(check_state(&f, flow));
    vec_push(flows, flow);
  }
  return OK;
}

void dataset_functions_free(struct dataset_functions *all) {
  vec_free(&all->walked);
  for (uint32_t i = 0; i < all->list.count; i++) {
    vec_free(&all->list.items[i].args);
    vec_free(&all->list.items[i].shapes);
  }
  vec_free(&all->list);
}

void dataset_functions_attach(struct op_call *c, struct flow_node *n, const struct dataset_functions *all, const struct flow_list *flows) {
  struct attr_value *names = ARENA_ARRAY(op_arena(c), struct attr_value, all->list.count + 1), list = {.kind = ATTR_LIST};
  for (uint32_t i = 0; i < all->list.count; i++) {
    names[i].kind = ATTR_STRING;
    names[i].s.data = all->list.items[i].name;
    names[i].s.size = strlen(all->list.items[i].name);
  }
  list.list.items = names;
  list.list.count = all->list.count;
  op_host_add_attr(c, n, "functions", list);
  n->region_count = flows->count;
  n->branches = ARENA_ARRAY(op_arena(c), struct flow *, flows->count + 1);
  for (uint32_t i = 0; i < flows->count; i++)
    n->branches[i] = flows->items[i];
}
