/* lower_control.c: If, Case and While over library functions become the two region ops.
 *
 * A region is a flow of its own: values come in through parameters; variables are reached directly, by number. Shapes inside
 * may use the symbols known outside; a symbol bound inside is not known outside, so a result whose shape needs one gets
 * new symbols there, bound from what comes out. */
#include <string.h>

#include "ir/kernel/formula_words.h"
#include "ir/graph/function.h"
#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"

/* ---- the condition ---- */

static struct element is_not_zero(struct formula *f, struct element a, struct element b, struct element c) {
  (void)b, (void)c;
  return NE(a, f_const_like(f, a, 0));
}

static struct element differs(struct formula *f, struct element a, struct element b, struct element c) {
  (void)c;
  return NE(a, b);
}

/* TensorFlow's truth: a number that is not 0, a string or a tensor that has elements. */
static status condition_value(struct op_call *c, value_id v, value_id *out) {
  struct flow_value x = *op_value(c, v);
  *out = v;
  if (x.rank > 0) {
    dim n = op_count(c, x.rank, x.dims);
    value_id count = op_dims_value(c, DTYPE_INT64, 0, &n, 1);
    return op_map(c, &count, 1, DTYPE_BOOL, is_not_zero, out);
  }
  if (x.dtype == DTYPE_BOOL)
    return OK;
  if (x.dtype == DTYPE_STRING) {
    static const struct string_view empty = {"", 0};
    const value_id in[] = {v, op_constant(c, DTYPE_STRING, 0, NULL, &empty)};
    return op_map(c, in, 2, DTYPE_BOOL, differs, out);
  }
  return op_map(c, &v, 1, DTYPE_BOOL, is_not_zero, out);
}

status build_to_bool(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  TRY(condition_value(c, v, &v));
  op_set_output(c, 0, v);
  return OK;
}

/* ---- regions ---- */

/* A region under construction: what it takes of the call's inputs. */
struct region {
  struct flow *flow;
  struct bound *rets;
  uint32_t ret_count;
  bool has_effects;
  uint32_t first_symbol; /* symbols from here on were made inside */
};

static status call_function(struct op_call *inner, const void *function, const struct bound *args, uint32_t arg_count, struct bound *rets,
                            uint32_t ret_count) {
  const struct attr_func *f = function;
  return lower_body(inner, f->name, f->attrs, f->attr_count, args, arg_count, rets, ret_count);
}

/* Inputs that are known, small and the same in every turn are repeated inside of a region: axes, shapes. */
#define FIXED_ELEMENTS 1024
static bool is_fixed(struct op_call *c, value_id v) {
  const struct flow_value *x = op_value(c, v);
  int64_t count = op_dim_value(c, op_count(c, x->rank, x->dims));
  return x->data && count >= 0 && count <= FIXED_ELEMENTS;
}

static value_id repeat_constant(struct op_call *c, struct flow *flow, const struct flow_value *x) {
  flow_id id;
  struct flow_node *n = flow_add_node(flow, FLOW_CONST, c->node->name, c->node->op, c->node->task, &id);
  value_id v = flow_add_value(flow, x->dtype, x->rank, x->dims);
  flow->values.items[v].data = x->data;
  flow->values.items[v].content = x->content;
  flow->values.items[v].producer = id;
  vec_push(&n->outputs, v);
  return v;
}

/* Arguments inside: variables are themselves, what is fixed (shapes[i].data) a constant, values are parameters of the given
 * dims. */
static struct bound *region_arguments(struct op_call *c, struct flow *flow, const struct bound *in, uint32_t count,
                                      const struct flow_value *shapes) {
  struct bound *args = ARENA_ARRAY(c->lw->arena, struct bound, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    args[i] = (struct bound){.var = in[i].var, .maker = in[i].maker};
    if (!in[i].value)
      continue;
    if (shapes[i].data) {
      args[i].value = repeat_constant(c, flow, &shapes[i]);
      continue;
    }
    args[i].value = flow_add_value(flow, shapes[i].dtype, shapes[i].rank, shapes[i].dims);
    flow->values.items[args[i].value].content = shapes[i].content;
    flow->values.items[args[i].value].length = shapes[i].length;
    flow->values.items[args[i].value].index = flow->params.count;
    vec_push(&flow->params, args[i].value);
  }
  return args;
}

/* `loops`: result i takes the place of argument i, so that what is fixed is no result. origins: of the arguments; no flow: not known. */
static status build_region(struct op_call *c, struct region_body body, bool loops, const struct origin *origins, const struct bound *in,
                           uint32_t in_count, const struct flow_value *shapes, uint32_t ret_count, struct region *out) {
  struct lower *lw = c->lw;
  struct op_call inner = *c;
  memset(&inner.controls, 0, sizeof inner.controls);
  memset(&inner.body, 0, sizeof inner.body);
  inner.effect = 0;
  *out = (struct region){.flow = flow_create(lw->arena, lw->dims), .ret_count = ret_count};
  out->rets = ARENA_ARRAY(lw->arena, struct bound, ret_count + 1);
  out->first_symbol = dims_symbol_count(lw->dims);
  struct bound *args = region_arguments(c, out->flow, in, in_count, shapes);
  for (uint32_t i = 0; i < in_count; i++)
    if (args[i].value)
      lower_note_origin(lw, out->flow, args[i].value, origins[i]);
  struct flow *outer = out->flow->parent = region_enter(lw, out->flow);
  status s = body.build(&inner, body.self, args, in_count, out->rets, ret_count);
  for (uint32_t i = 0; i < ret_count && s == OK; i++) {
    value_id v = NO_VALUE;
    struct op_call read = {.lw = lw, .node = c->node, .in = &out->rets[i], .in_count = 1};
    bool handle = out->rets[i].var && !out->rets[i].value;
    if (out->rets[i].dead && lower_is_awaiting(lw)) {
      out->rets[i].value = lower_await_result(out->flow, loops ? &shapes[i] : NULL);
      continue;
    }
    if (loops && in[i].value && shapes[i].data)
      out->rets[i].value = NO_VALUE;
    if (handle || (loops && in[i].value && shapes[i].data))
      continue; /* a variable's handle, a constant: the same outside */
    s = op_input(&read, 0, &v);
    out->rets[i].value = v;
    vec_push(&out->flow->results, v);
  }
  region_leave(lw, outer);
  out->has_effects = inner.body.count > 0;
  vec_free(&inner.body);
  return s;
}

/* Values read from a variable's memory may not leave a region as that memory: they are copied. */
static status copy_results(struct op_call *c, struct region *r) {
  struct flow *outer = c->lw->walk.flow;
  c->lw->walk.flow = r->flow;
  status s = OK;
  for (uint32_t i = 0; i < r->flow->results.count && s == OK; i++) {
    value_id v = r->flow->results.items[i];
    const struct flow_node *n = r->flow->nodes.items[r->flow->values.items[v].producer];
    while (n && n->op == FLOW_ALIAS)
      n = r->flow->nodes.items[r->flow->values.items[n->inputs.items[0]].producer];
    if (n && n->op == FLOW_READ) {
      struct op_call copy = {.lw = c->lw, .node = c->node};
      s = op_copy(&copy, v, &r->flow->results.items[i]);
    }
  }
  c->lw->walk.flow = outer;
  return s;
}

static bool known_outside(struct op_call *c, dim d, uint32_t first_symbol) {
  return !dim_has_symbol_from(c->lw->dims, dim_resolve(c->lw->dims, d), first_symbol);
}

static value_id region_result(const struct region *r, uint32_t i) {
  uint32_t at = 0;
  for (uint32_t j = 0; j < i; j++)
    at += r->rets[j].value != NO_VALUE;
  return r->flow->results.items[at];
}

/* ---- if ---- */

static int result_rank(const struct region *r, uint32_t i) { return r->flow->values.items[region_result(r, i)].rank; }

/* The first branch whose result i has another rank than that of branch 0; count where there is none. */
static uint32_t other_rank(const struct region *regions, uint32_t count, uint32_t i) {
  uint32_t b = 1;
  while (b < count && result_rank(&regions[b], i) == result_rank(&regions[0], i))
    b++;
  return b;
}

/* The rank that the branch which was taken gives result i. */
static status taken_rank(struct op_call *c, value_id choice, const struct region *regions, uint32_t count, uint32_t i, value_id *out) {
  bool is_bool = op_value(c, choice)->dtype == DTYPE_BOOL;
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  expr_id taken = kb_index(&kb, kb_load(&kb, kb_in(&kb, choice), NULL)), rank = expr_int(kb.k, DTYPE_INT32, result_rank(&regions[0], i));
  uint32_t o = kb_out(&kb, DTYPE_INT32, 0, NULL);
  for (uint32_t b = 1; b < count; b++) /* a bool takes branch 1 when it is false */
    rank = expr_select(kb.k, expr_binary(kb.k, SCALAR_EQ, taken, kb_int(&kb, is_bool ? 0 : b)),
                       expr_int(kb.k, DTYPE_INT32, result_rank(&regions[b], i)), rank);
  kb_store(&kb, o, NULL, real_element(rank));
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* Result i of the node, whose rank depends on the branch. */
static status split_ranks(struct op_call *c, struct flow_node *n, value_id choice, const struct region *regions, uint32_t count,
                          uint32_t i) {
  value_id whole = op_add_output(c, n, op_output_dtype(c, i), 0, NULL), rank;
  rank_set ranks = 0;
  op_value(c, whole)->any_rank = true;
  for (uint32_t b = 0; b < count; b++)
    ranks |= ranks_of(result_rank(&regions[b], i));
  TRY(taken_rank(c, choice, regions, count, i, &rank));
  return lower_ranks(c, whole, rank, ranks, &c->out[i]);
}

static status join_result(struct op_call *c, const struct region *regions, uint32_t count, uint32_t i, struct flow_value *out) {
  *out = regions[0].flow->values.items[region_result(&regions[0], i)];
  out->data = NULL;
  out->content = NULL;
  for (uint32_t b = 0; b < count; b++) {
    const struct flow_value *x = &regions[b].flow->values.items[region_result(&regions[b], i)];
    for (int d = 0; d < out->rank; d++)
      if (dim_equal(c->lw->dims, x->dims[d], out->dims[d]) != 1 || !known_outside(c, x->dims[d], regions[b].first_symbol)) {
        out->dims[d] = op_new_symbol(c);
        op_note_given(c, out->dims[d]); /* one branch may well give 1 */
      }
  }
  return OK;
}

static bool dim_differs(struct dim_table *t, dim a, dim b) { return b == NO_DIM || dim_equal(t, a, b) != 1; }
static bool is_held(const struct node *maker) { return maker && strcmp(maker->op, "OptionalNone") != 0; }
static bool same_kinds(const struct object_shapes *a, const struct object_shapes *b) {
  if (a->count != b->count)
    return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->values[i].rank != b->values[i].rank || a->values[i].dtype != b->values[i].dtype)
      return false;
  return true;
}
static void copy_object(struct op_call *c, struct object_shapes *to, const struct object_shapes *from) {
  const struct node *maker = to->maker;
  *to = *from;
  to->maker = maker;
  to->other = NULL;
  to->values = ARENA_ARRAY(c->lw->arena, struct flow_value, from->count + 1);
  to->makers = ARENA_ARRAY(c->lw->arena, const struct node *, from->count + 1);
  for (uint32_t i = 0; i < from->count; i++) {
    to->values[i] = from->values[i];
    to->makers[i] = from->makers[i];
  }
}
/* Of two lists the first stands for both, unless elements differ in rank: then nothing is known of them. */
static const struct node *join_lists(struct op_call *c, const struct node *a, const struct node *b) {
  const struct object_shapes *o = lower_object(c->lw, a), *p = lower_object(c->lw, b);
  bool differ = o && p && o->count && p->count && o->values->rank != p->values->rank;
  return differ ? NULL : a ? a : b;
}
/* Of what an optional holds, where each branch makes its own: of the same kind what they have in common, else one or the other. */
static void join_object(struct op_call *c, struct object_shapes *to, const struct object_shapes *from) {
  while (!same_kinds(to, from) && to->other)
    to = to->other;
  if (!same_kinds(to, from)) {
    to->other = ARENA_NEW(c->lw->arena, struct object_shapes);
    to->other->maker = to->maker;
    copy_object(c, to->other, from);
    return;
  }
  for (uint32_t i = 0; i < to->count; i++) {
    struct flow_value *x = &to->values[i];
    for (int d = 0; d < x->rank; d++)
      if (x->dims[d] != NO_DIM && dim_differs(c->lw->dims, x->dims[d], from->values[i].dims[d]))
        x->dims[d] = NO_DIM;
    to->makers[i] = join_lists(c, to->makers[i], from->makers[i]);
  }
}
/* A maker for an optional that the branches hand out, each one of its own. */
static const struct node *join_makers(struct op_call *c, const struct region *regions, uint32_t count, uint32_t i,
                                      const struct node *first) {
  struct node *made = ARENA_ARRAY(c->lw->arena, struct node, 1);
  *made = *first;
  struct object_shapes *o = lower_object(c->lw, made);
  copy_object(c, o, lower_object(c->lw, first));
  o->pushed = (struct origin){0};
  o->choice = op_origin(c, c->in[0].value);
  o->branches = ARENA_ARRAY(c->lw->arena, struct branch_own, count);
  for (uint32_t b = 0; b < count; b++) {
    o->branches[b] = (struct branch_own){regions[b].rets[i].maker, {regions[b].flow, regions[b].rets[i].value}};
    if (is_held(regions[b].rets[i].maker))
      join_object(c, o, lower_object(c->lw, regions[b].rets[i].maker));
  }
  return made;
}
/* Whose objects result i is: those of the branch that has one; of lists the first that was made, which is any of them from then on. */
static const struct node *result_maker(struct op_call *c, const struct region *regions, uint32_t count, uint32_t i) {
  const struct node *first = NULL;
  for (uint32_t b = 0; b < count; b++) {
    const struct node *maker = regions[b].rets[i].maker;
    if (first && is_held(maker) && maker != first && strcmp(maker->op, "OptionalFromValue") == 0 && strcmp(first->op, maker->op) == 0)
      return join_makers(c, regions, count, i, first);
    first = first ? lower_either_list(c, first, maker) : is_held(maker) ? maker : NULL;
  }
  return first ? first : regions[0].rets[i].maker;
}

/* An optional that but one branch has: who takes something out of it has that branch's. */
static struct origin only_origin(const struct region *regions, uint32_t count, uint32_t i) {
  struct origin found = {0};
  for (uint32_t b = 0; b < count; b++) {
    const struct node *maker = regions[b].rets[i].maker;
    if (!maker || (is_held(maker) && found.flow))
      return (struct origin){0};
    if (is_held(maker))
      found = (struct origin){regions[b].flow, regions[b].rets[i].value};
  }
  return found;
}

/* Result i of a branch that has one; those that do not know theirs yet take it up. */
static struct bound fill_awaited(const struct region *regions, uint32_t count, uint32_t i) {
  uint32_t known = 0;
  while (known + 1 < count && regions[known].rets[i].dead)
    known++;
  for (uint32_t b = 0; b < count && regions[known].rets[i].value && !regions[known].rets[i].dead; b++)
    if (regions[b].rets[i].dead)
      regions[b].flow->values.items[region_result(&regions[b], i)] = regions[known].flow->values.items[region_result(&regions[known], i)];
  return regions[known].rets[i].dead ? (struct bound){.dead = true} : regions[known].rets[i];
}

static status emit_if(struct op_call *c, value_id choice, struct region *regions, uint32_t count) {
  bool effects = false;
  for (uint32_t b = 0; b < count; b++) {
    effects = effects || regions[b].has_effects;
    TRY(copy_results(c, &regions[b]));
  }
  struct flow_node *n = op_emit(c, FLOW_IF, effects);
  vec_push(&n->inputs, choice);
  for (uint32_t i = 1; i < c->in_count; i++)
    if (c->in[i].value && !is_fixed(c, c->in[i].value))
      vec_push(&n->inputs, c->in[i].value);
  n->region_count = count;
  n->branches = ARENA_ARRAY(c->lw->arena, struct flow *, count);
  for (uint32_t b = 0; b < count; b++)
    n->branches[b] = regions[b].flow;
  for (uint32_t i = 0; i < c->out_count; i++) {
    const struct bound r = fill_awaited(regions, count, i);
    if (!r.value) {
      c->out[i] = r;
      continue;
    }
    struct flow_value x;
    if (other_rank(regions, count, i) < count) {
      TRY(split_ranks(c, n, choice, regions, count, i));
      continue;
    }
    TRY(join_result(c, regions, count, i, &x));
    c->out[i] = (struct bound){.value = op_add_output(c, n, x.dtype, x.rank, x.dims), .maker = result_maker(c, regions, count, i)};
    lower_note_origin(c->lw, op_flow(c), c->out[i].value, only_origin(regions, count, i));
  }
  return OK;
}

static status inline_branch(struct op_call *c, const struct attr_func *f) {
  struct bound *in = c->in;
  c->in++;
  c->in_count--;
  status s = lower_call_function(c, f->name, f->attrs, f->attr_count);
  c->in = in;
  c->in_count++;
  return s;
}

/* c->in from 1 on as branch b has it: what earlier branches of the same choice made is what that of its number made, as in a gradient. */
static const struct bound *branch_inputs(struct op_call *c, uint32_t b, struct origin *origins) {
  struct bound *in = ARENA_ARRAY(c->lw->arena, struct bound, c->in_count + 1);
  const struct origin choice = op_origin(c, c->in[0].value);
  for (uint32_t i = 1; i < c->in_count; i++) {
    const struct object_shapes *o = lower_object(c->lw, c->in[i].maker);
    in[i - 1] = c->in[i];
    origins[i - 1] = op_origin(c, c->in[i].value);
    if (o && o->branches && origin_equal(o->choice, choice)) {
      in[i - 1].maker = o->branches[b].maker;
      origins[i - 1] = o->branches[b].value;
    }
  }
  return in;
}
/* The regions of branches over c->in from 1 on. */
static status build_regions(struct op_call *c, const struct region_body *bodies, uint32_t count, struct region *regions) {
  struct flow_value *shapes = ARENA_ARRAY(c->lw->arena, struct flow_value, c->in_count + 1);
  for (uint32_t i = 1; i < c->in_count; i++)
    if (c->in[i].value) {
      shapes[i - 1] = *op_value(c, c->in[i].value);
      if (!is_fixed(c, c->in[i].value))
        shapes[i - 1].data = NULL;
    }
  struct origin *origins = ARENA_ARRAY(c->lw->arena, struct origin, c->in_count + 1);
  uint32_t outside = c->lw->facts.branch_symbols;
  status s = OK;
  for (uint32_t b = 0; b < count && s == OK; b++) {
    c->lw->facts.branch_symbols = dims_symbol_count(c->lw->dims);
    const struct bound *in = branch_inputs(c, b, origins);
    s = build_region(c, bodies[b], false, origins, in, c->in_count - 1, shapes, c->out_count, &regions[b]);
  }
  c->lw->facts.branch_symbols = outside;
  return s;
}

status lower_branches(struct op_call *c, value_id choice, const struct region_body *bodies, uint32_t count) {
  struct region *regions = ARENA_ARRAY(c->lw->arena, struct region, count);
  TRY(build_regions(c, bodies, count, regions));
  return emit_if(c, choice, regions, count);
}

status lower_branch_trial(struct op_call *c, const struct region_body *body) {
  struct region region;
  return build_regions(c, body, 1, &region);
}

static status build_branches(struct op_call *c, value_id choice, const struct attr_func *const *functions, uint32_t count) {
  struct region_body *bodies = ARENA_ARRAY(c->lw->arena, struct region_body, count);
  for (uint32_t b = 0; b < count; b++)
    bodies[b] = (struct region_body){functions[b], call_function};
  return lower_branches(c, choice, bodies, count);
}

/* A scalar of this dtype that is known, here or as what it was first; NULL: it is not. */
static const void *known_scalar(const struct op_call *c, value_id v, enum dtype dtype) {
  const struct origin first = op_origin(c, v);
  const struct flow_value *x = &first.flow->values.items[first.value];
  return x->data && x->dtype == dtype && x->rank == 0 ? x->data : NULL;
}

status build_if(struct op_call *c) {
  const struct attr_value *then = node_attr(c->node, "then_branch"), *otherwise = node_attr(c->node, "else_branch");
  if (!then || !otherwise || then->kind != ATTR_FUNC || otherwise->kind != ATTR_FUNC)
    return fail(INVALID_ARGUMENT, "has no then_branch or else_branch");
  value_id condition;
  TRY(op_input(c, 0, &condition));
  TRY(condition_value(c, condition, &condition));
  const bool *known = known_scalar(c, condition, DTYPE_BOOL);
  if (known)
    return inline_branch(c, *known ? then->func : otherwise->func);
  const struct attr_func *const functions[] = {then->func, otherwise->func};
  return build_branches(c, condition, functions, 2);
}

/* An index out of range takes the last branch. */
static struct element formula_branch(struct formula *f, struct element a, struct element b, struct element c) {
  (void)c;
  return SELECT(OR(LT(a, K(0)), GE(a, b)), SUB(b, K(1)), a);
}

status build_case(struct op_call *c) {
  const struct attr_value *list = node_attr(c->node, "branches");
  if (!list || list->kind != ATTR_LIST || list->list.count == 0)
    return fail(INVALID_ARGUMENT, "has no branches");
  uint32_t count = list->list.count;
  const struct attr_func **functions = ARENA_ARRAY(c->lw->arena, const struct attr_func *, count);
  for (uint32_t i = 0; i < count; i++)
    functions[i] = list->list.items[i].func;
  value_id in[2], choice;
  int64_t n = count;
  TRY(op_input(c, 0, &in[0]));
  const int32_t *known = known_scalar(c, in[0], DTYPE_INT32);
  if (known)
    return inline_branch(c, functions[*known < 0 || (uint32_t)*known >= count ? count - 1 : (uint32_t)*known]);
  in[1] = op_constant_i64s(c, DTYPE_INT32, 0, NULL, &n, 1);
  TRY(op_map(c, in, 2, DTYPE_INT32, formula_branch, &choice));
  return build_branches(c, choice, functions, count);
}

/* ---- while ---- */

/* Gives up what the body does not keep: dims that change become symbols, `open` from then on: each turn binds them anew.
 * *changed says whether one did. */
static status generalise(struct op_call *c, struct flow_value *shapes, bool (*open)[LIMIT_RANK], const struct region *body, bool *changed) {
  for (uint32_t i = 0; i < c->in_count; i++) {
    if (!c->in[i].value || shapes[i].data)
      continue;
    const struct flow_value *x = &body->flow->values.items[region_result(body, i)];
    if (x->rank != shapes[i].rank)
      return fail(UNIMPLEMENTED, "a loop whose variable %u changes its rank from %d to %d", i, shapes[i].rank, x->rank);
    for (int d = 0; d < x->rank; d++)
      if (!open[i][d] && dim_equal(c->lw->dims, x->dims[d], shapes[i].dims[d]) != 1) {
        shapes[i].dims[d] = op_new_symbol(c);
        open[i][d] = *changed = true;
      }
  }
  return OK;
}

/* What a body keeps of a variable: its value, or of a list at least its length. */
enum kept { KEPT_VALUE, KEPT_LENGTH };

/* Whether the node gives what its first input is, as far as it is to be kept. */
static bool hands_on(const struct function_node *n, enum kept kept) {
  const struct attr_value *grows = attr_find(n->attrs, n->attr_count, "resize_if_index_out_of_bounds");
  bool sets = kept == KEPT_LENGTH && strcmp(n->op, "TensorListSetItem") == 0 && !(grows && grows->i);
  return n->input_count && (strcmp(n->op, "Identity") == 0 || sets);
}

/* Whether the function gives argument i back as result i. */
static bool passes_through(const struct function *f, uint32_t i, enum kept kept) {
  const char *text = f && !function_has_lists(f) && i < f->ret_count && i < f->arg_count ? f->body->ret_sources[i] : NULL;
  for (int depth = 0; text && depth < LIMIT_NESTING; depth++) {
    size_t length = strcspn(text, ":");
    if (!text[length] && strcmp(text, f->args[i].name) == 0)
      return true;
    const char *next = NULL;
    for (uint32_t n = 0; n < f->body->node_count && !next; n++) {
      const struct function_node *node = &f->body->nodes[n];
      if (strlen(node->name) == length && strncmp(node->name, text, length) == 0 && hands_on(node, kept))
        next = node->inputs[0];
    }
    text = next;
  }
  return false;
}

/* The loop's variables as they are in all turns; what the body hands through has its origin and may be known. */
static struct flow_value *loop_shapes(struct op_call *c, const struct function *body, struct origin *origins) {
  struct flow_value *shapes = ARENA_ARRAY(c->lw->arena, struct flow_value, c->in_count + 1);
  for (uint32_t i = 0; i < c->in_count; i++) {
    value_id v = c->in[i].value;
    if (!v)
      continue;
    shapes[i] = *op_value(c, v);
    bool same = passes_through(body, i, KEPT_VALUE);
    if (same)
      origins[i] = op_origin(c, v);
    if (!passes_through(body, i, KEPT_LENGTH))
      shapes[i].length = NO_DIM;
    if (!same || !is_fixed(c, v))
      shapes[i].data = NULL;
    if (!same)
      shapes[i].content = NULL;
  }
  return shapes;
}

static void emit_loop(struct op_call *c, struct region *regions, struct flow_value *shapes, const struct origin *origins) {
  struct flow_node *n = op_emit(c, FLOW_WHILE, regions[0].has_effects || regions[1].has_effects);
  n->region_count = 2;
  n->branches = ARENA_ARRAY(c->lw->arena, struct flow *, 2);
  for (int r = 0; r < 2; r++)
    n->branches[r] = n->regions[r] = regions[r].flow;
  for (uint32_t i = 0; i < c->in_count; i++) {
    if (!c->in[i].value || shapes[i].data) {
      c->out[i] = c->in[i];
      continue;
    }
    vec_push(&n->inputs, c->in[i].value);
    for (int d = 0; d < shapes[i].rank; d++)
      if (!known_outside(c, shapes[i].dims[d], regions[1].first_symbol) || shapes[i].dims[d] != op_value(c, c->in[i].value)->dims[d])
        shapes[i].dims[d] = op_new_symbol(c);
    c->out[i] = (struct bound){.value = op_add_output(c, n, shapes[i].dtype, shapes[i].rank, shapes[i].dims), .maker = c->in[i].maker};
    op_value(c, c->out[i].value)->length = shapes[i].length;
    lower_note_origin(c->lw, op_flow(c), c->out[i].value, origins[i]);
  }
}

/* The condition also sees what the last turn leaves. What the body's turns ask of a dim that the body changes need not hold there: the
 * gradient of a variable that was empty in front of the loop is empty in the end. */
static struct flow_value *condition_shapes(struct op_call *c, const struct flow_value *shapes, bool (*open)[LIMIT_RANK],
                                           const struct region *body) {
  struct flow_value *copy = arena_copy(c->lw->arena, shapes, sizeof *shapes * (c->in_count + 1));
  for (uint32_t i = 0; i < c->in_count; i++)
    for (int d = 0; c->in[i].value && !shapes[i].data && d < shapes[i].rank; d++) {
      dim left = body->flow->values.items[region_result(body, i)].dims[d];
      if (open[i][d] && dim_resolve(c->lw->dims, shapes[i].dims[d]) != shapes[i].dims[d] &&
          dim_differs(c->lw->dims, left, shapes[i].dims[d]))
        copy[i].dims[d] = op_new_symbol(c);
    }
  return copy;
}

/* The body until its variables' shapes have settled, then the condition. What each turn binds anew is of the region, too. */
static status build_turns(struct op_call *c, struct region_body cond, struct region_body body, struct flow_value *shapes,
                          const struct origin *origins, struct region *regions) {
  bool(*open)[LIMIT_RANK] = arena_alloc(c->lw->arena, sizeof *open * (c->in_count + 1));
  struct flow *outer = region_enter(c->lw, c->lw->walk.flow);
  struct awaiting awaiting;
  lower_await_begin(c->lw, &awaiting);
  status s = OK;
  for (bool changed = true; changed && s == OK;) { /* ends: each turn opens a dim, or of a list's elements a rank */
    changed = false;
    s = build_region(c, body, true, origins, c->in, c->in_count, shapes, c->in_count, &regions[1]);
    s = s == OK ? generalise(c, shapes, open, &regions[1], &changed) : s;
    for (uint32_t i = 0; i < c->in_count && s == OK; i++)
      changed |= lower_join_list(c, c->in[i].maker, regions[1].rets[i].maker);
    changed |= lower_await_again(c->lw, &awaiting);
  }
  lower_await_end(c->lw, &awaiting);
  if (s == OK)
    s = build_region(c, cond, false, origins, c->in, c->in_count, condition_shapes(c, shapes, open, &regions[1]), 1, &regions[0]);
  region_leave(c->lw, outer);
  return s;
}
static status build_loop(struct op_call *c, struct region_body cond, struct region_body body, struct flow_value *shapes,
                         const struct origin *origins) {
  struct region regions[2];
  TRY(build_turns(c, cond, body, shapes, origins, regions));
  struct flow *outer = c->lw->walk.flow;
  c->lw->walk.flow = regions[0].flow;
  status s = condition_value(c, regions[0].flow->results.items[0], &regions[0].flow->results.items[0]);
  c->lw->walk.flow = outer;
  TRY(s);
  TRY(copy_results(c, &regions[1]));
  emit_loop(c, regions, shapes, origins);
  return OK;
}

static status function_attr(struct op_call *c, const char *name, const struct attr_func **out) {
  const struct attr_value *v = node_attr(c->node, name);
  if (!v || v->kind != ATTR_FUNC)
    return fail(INVALID_ARGUMENT, "has no function '%s'", name);
  *out = v->func;
  return OK;
}

status build_while(struct op_call *c) {
  const struct attr_func *cond = NULL, *body = NULL;
  TRY(function_attr(c, "cond", &cond));
  TRY(function_attr(c, "body", &body));
  struct origin *origins = ARENA_ARRAY(c->lw->arena, struct origin, c->in_count + 1);
  return build_loop(c, (struct region_body){cond, call_function}, (struct region_body){body, call_function},
                    loop_shapes(c, function_find(c->lw->graph, body->name), origins), origins);
}

/* ---- for: a loop over start, limit, delta and what the body changes ---- */

static struct element for_continues(struct formula *f, struct element i, struct element limit, struct element delta) {
  return OR(AND(LT(K(0), delta), LT(i, limit)), AND(LE(delta, K(0)), LT(limit, i)));
}
static struct element for_next(struct formula *f, struct element i, struct element delta, struct element unused) {
  (void)unused;
  return ADD(i, delta);
}

static status for_condition(struct op_call *inner, const void *f, const struct bound *args, uint32_t arg_count, struct bound *rets,
                            uint32_t ret_count) {
  (void)f, (void)arg_count, (void)ret_count;
  const value_id in[] = {args[0].value, args[1].value, args[2].value};
  return op_map(inner, in, 3, DTYPE_BOOL, for_continues, &rets[0].value);
}

static status for_body(struct op_call *inner, const void *f, const struct bound *args, uint32_t arg_count, struct bound *rets,
                       uint32_t ret_count) {
  struct bound *given = ARENA_ARRAY(inner->lw->arena, struct bound, arg_count);
  given[0] = args[0];
  memcpy(given + 1, args + 3, sizeof *given * (arg_count - 3));
  TRY(call_function(inner, f, given, arg_count - 2, rets + 3, ret_count - 3));
  rets[1] = args[1];
  rets[2] = args[2];
  const value_id in[] = {args[0].value, args[2].value};
  return op_map(inner, in, 2, DTYPE_INT32, for_next, &rets[0].value);
}

static status check_for(struct op_call *c) {
  struct kb kb;
  struct element e[3];
  kb_begin(&kb, c, DTYPE_INT32);
  for (uint32_t i = 0; i < 3; i++) {
    value_id v;
    TRY(op_input(c, i, &v));
    c->in[i].value = v;
    if (op_value(c, v)->rank)
      return fail(INVALID_ARGUMENT, "%s must be a scalar", i == 0 ? "start" : i == 1 ? "limit" : "delta");
    e[i] = kb_load(&kb, kb_in(&kb, v), NULL);
  }
  struct formula *f = &kb.f;
  struct element fits =
    OR(OR(AND(LT(K(0), e[2]), LE(e[0], e[1])), AND(LT(e[2], K(0)), LE(e[1], e[0]))), AND(EQ(e[2], K(0)), EQ(e[0], e[1])));
  kb.effect = true;
  kb_check(&kb, fits.re, INVALID_ARGUMENT, "Invalid start/limit/delta: start %d, limit %d", expr_cast(kb.k, DTYPE_INT64, e[0].re),
           expr_cast(kb.k, DTYPE_INT64, e[1].re));
  return kb_finish(&kb);
}

status build_for(struct op_call *c) {
  const struct attr_func *body = NULL;
  TRY(function_attr(c, "body", &body));
  TRY(check_for(c));
  for (uint32_t i = 3; i < c->in_count; i++)
    if (!c->in[i].value && !(c->in[i].var && op_output_dtype(c, i - 3) == DTYPE_RESOURCE))
      TRY(op_input(c, i, &c->in[i].value));
  struct bound *out = c->out;
  c->out = ARENA_ARRAY(c->lw->arena, struct bound, c->in_count + 1);
  struct origin *origins = ARENA_ARRAY(c->lw->arena, struct origin, c->in_count + 1);
  struct flow_value *shapes = loop_shapes(c, NULL, origins);
  status s = build_loop(c, (struct region_body){NULL, for_condition}, (struct region_body){body, for_body}, shapes, origins);
  memcpy(out, c->out + 3, sizeof *out * (c->in_count - 3));
  c->out = out;
  return s;
}
