/* lower_function.c: the shape of what is fed, and calls of library functions. */
#include <stdlib.h>
#include <string.h>

#include "ir/graph/attr_hash.h"
#include "ir/graph/function.h"
#include "ir/graph/gradient.h"
#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"

#define TRIALS_MAX 4 /* trials within trials: what is put in depends on what was taken out of another */

/* ---- feeds ---- */

static status shape_from_attr(struct lower *lw, const struct attr_shape *s, const char *name, int *rank, dim *dims) {
  if (s->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a feed of rank %d", s->rank);
  *rank = s->rank;
  for (int i = 0; i < s->rank; i++)
    dims[i] = s->dims[i] >= 0 ? dim_const(lw->dims, s->dims[i])
                              : dim_symbol(lw->dims, s->rank == 1 ? name : arena_printf(lw->arena, "%s.%d", name, i));
  return OK;
}

/* Feeds of the placeholders that a trial needs. `loose`: those without a rank are taken for scalars. */
static status bind_placeholders(struct lower *trial, const bool *needed, bool loose) {
  const struct graph *graph = trial->walk.frame->graph;
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *n = &graph->nodes.items[i];
    dim d[LIMIT_RANK];
    int rank = 0;
    if (!needed[i] || strcmp(n->op, "Placeholder") != 0)
      continue;
    struct edge e = {i, 0};
    if (!loose || lower_feed_has_rank(graph, e))
      TRY(lower_feed_shape(trial, graph, e, &rank, d));
    frame_outputs(trial, trial->walk.frame, i)[0] =
      (struct bound){.value = flow_add_value(trial->walk.flow, dtype_base(n->output_dtypes[0]), rank, d)};
    trial->walk.frame->lowered[i] = true;
    trial->walk.frame->token_known[i] = true;
  }
  return OK;
}

static status probed_shape(struct lower *trial, int *rank, dim *dims) {
  const struct shape_probe *probe = trial->walk.probe;
  const struct node *node = &probe->graph->nodes.items[probe->edge.node];
  const struct bound *bound = trial->walk.frame->bound[probe->edge.node];
  value_id v;
  if (!bound) {
    *rank = probe->rank;
    memcpy(dims, probe->dims, sizeof *dims * (size_t)probe->rank);
    return probe->found ? OK : fail(UNIMPLEMENTED, "%s (%s): its shape is not known while compiling", node->name, node->op);
  }
  struct bound b = bound[probe->edge.port];
  struct op_call c = {.lw = trial, .node = node, .in = &b, .in_count = 1};
  TRY(op_input(&c, 0, &v));
  *rank = op_value(&c, v)->rank;
  memcpy(dims, op_value(&c, v)->dims, sizeof *dims * (size_t)*rank);
  return OK;
}

/* Lowers what is before an edge into a flow that is thrown away, to see its shape: constants, and new symbols. */
static status try_edge(struct lower *trial, const struct graph *graph, struct edge edge, bool loose, int *rank, dim *dims) {
  struct lower_request r = {.graph = graph, .fetches = &edge, .fetch_count = 1};
  bool *needed = ARENA_ARRAY(trial->arena, bool, graph->nodes.count + 1);
  uint32_t *order = ARENA_ARRAY(trial->arena, uint32_t, graph->nodes.count + 1);
  TRY(lower_mark_needed(&r, needed));
  TRY(graph_order(graph, order));
  trial->walk.flow = flow_create(trial->arena, trial->dims);
  trial->walk.frame = NULL;
  trial->walk.frame = frame_create(trial, graph);
  trial->walk.frame->needed = needed;
  trial->walk.frame->wanted = &edge;
  trial->walk.frame->wanted_count = 1;
  TRY(bind_placeholders(trial, needed, loose));
  trial->walk.probe = &(struct shape_probe){.graph = graph, .edge = edge};
  TRY(frame_lower_nodes(trial, trial->walk.frame, order));
  TRY(probed_shape(trial, rank, dims));
  for (int i = 0; i < *rank; i++)
    if (!dim_is_const(trial->dims, dims[i], NULL))
      dims[i] = op_new_symbol(&(struct op_call){.lw = trial});
  return OK;
}

static status enter_trial(struct lower *trial) {
  return ++trial->walk.trial_depth > TRIALS_MAX ? fail(UNIMPLEMENTED, "shapes that depend on each other") : OK;
}

static status shape_of_edge(const struct lower *lw, const struct graph *graph, struct edge edge, bool loose, int *rank, dim *dims) {
  struct lower trial = lower_apart(lw);
  status result = enter_trial(&trial);
  if (result == OK)
    result = try_edge(&trial, graph, edge, loose, rank, dims);
  lower_free(&trial);
  return result;
}

static bool top_shape(const struct lower *lw, struct edge edge, bool loose, int *rank, int64_t *sizes) {
  dim dims[LIMIT_RANK];
  if (shape_of_edge(lw, lw->graph, edge, loose, rank, dims) != OK)
    return false;
  for (int i = 0; i < *rank; i++)
    if (!dim_is_const(lw->dims, dims[i], &sizes[i]))
      sizes[i] = -1;
  return true;
}

bool lower_static_shape(const struct lower *lw, struct edge edge, int *rank, int64_t *sizes) {
  return top_shape(lw, edge, true, rank, sizes);
}
bool lower_said_shape(const struct lower *lw, struct edge edge, int *rank, int64_t *sizes) {
  return top_shape(lw, edge, false, rank, sizes);
}

static bool is_placeholder(const struct node *n) {
  return strcmp(n->op, "Placeholder") == 0 || strcmp(n->op, "PlaceholderWithDefault") == 0;
}

#define SCALARS_SAID 22 /* the first graphs in which the shape [] of a placeholder means a scalar: before, none was written so too */

/* The shape that the graph says a feed has; NULL: none. */
static const struct attr_shape *said_shape(const struct graph *graph, const struct node *node, uint32_t port) {
  const struct attr_shape *shape = is_placeholder(node) ? node_attr_shape(node, "shape") : NULL;
  if (shape && !shape->rank && graph->producer && graph->producer < SCALARS_SAID && strcmp(node->op, "Placeholder") == 0)
    shape = NULL;
  return shape ? shape : node_output_shape(node, port);
}

/* Whether what a node computes has the rank of placeholders: at least one that it needs has none that the graph says. */
static bool is_behind_open(const struct graph *graph, struct edge edge) {
  struct lower_request r = {.graph = graph, .fetches = &edge, .fetch_count = 1};
  bool *needed = calloc(graph->nodes.count + 1, sizeof *needed);
  bool found = !needed || lower_mark_needed(&r, needed) != OK;
  for (uint32_t i = 0; i < graph->nodes.count && !found; i++) {
    const struct node *n = &graph->nodes.items[i];
    found = needed[i] && strcmp(n->op, "Placeholder") == 0 && !said_shape(graph, n, 0);
  }
  free(needed);
  return found;
}

bool lower_feed_has_rank(const struct graph *graph, struct edge feed) {
  const struct node *node = &graph->nodes.items[feed.node];
  return said_shape(graph, node, feed.port) || (!is_placeholder(node) && !is_behind_open(graph, feed));
}

status lower_feed_shape(struct lower *lw, const struct graph *graph, struct edge feed, int *rank, dim *dims) {
  const struct node *node = &graph->nodes.items[feed.node];
  const struct attr_shape *shape = said_shape(graph, node, feed.port);
  if (shape)
    return shape_from_attr(lw, shape, node->name, rank, dims);
  if (is_placeholder(node))
    return fail(UNIMPLEMENTED, "%s (Placeholder): its rank is not known while compiling", node->name);
  return shape_of_edge(lw, graph, feed, false, rank, dims);
}

status lower_refuse_unfed(const struct node *p) {
  return fail(INVALID_ARGUMENT, "%s (%s): You must feed a value for placeholder tensor '%s' with dtype %s", p->name, p->op, p->name,
              dtype_name(dtype_base(p->output_dtypes[0])));
}

/* ---- calls ---- */

static bool is_stateful(const struct graph *g, const struct node *n) {
  const struct function *callee = n->def ? NULL : function_find(g, n->op);
  return n->def ? n->def->is_stateful : callee && callee->is_stateful;
}

/* The nodes of an instance that must be lowered: what its results (those that are used) and control results need, and whatever has
 * effects. */
static void mark_body(const struct instance *body, const bool *used, bool *needed) {
  const struct graph *g = body->graph;
  VEC(uint32_t) stack = {0};
  for (uint32_t i = 0; i < body->ret_count; i++)
    if (used[i])
      vec_push(&stack, body->rets[i].node);
  for (uint32_t i = 0; i < body->control_count; i++)
    vec_push(&stack, body->controls[i]);
  for (uint32_t i = 0; i < g->nodes.count; i++)
    if (is_stateful(g, &g->nodes.items[i]))
      vec_push(&stack, i);
  while (stack.count) {
    uint32_t n = stack.items[--stack.count];
    if (needed[n])
      continue;
    needed[n] = true;
    for (uint32_t i = 0; i < g->nodes.items[n].input_count; i++)
      vec_push(&stack, g->nodes.items[n].inputs[i].node);
    for (uint32_t i = 0; i < g->nodes.items[n].control_count; i++)
      vec_push(&stack, g->nodes.items[n].controls[i]);
  }
  vec_free(&stack);
}

static void place_body(struct graph *g, const struct node *caller) {
  for (uint32_t i = 0; i < g->nodes.count; i++) {
    g->nodes.items[i].task = caller->task;
    g->nodes.items[i].assigned = caller->assigned;
  }
}

static status walk_body(struct lower *lw, struct frame *fr, const struct instance *body, const bool *used) {
  const struct graph *g = body->graph;
  bool *needed = ARENA_ARRAY(lw->arena, bool, g->nodes.count + 1);
  uint32_t *order = ARENA_ARRAY(lw->arena, uint32_t, g->nodes.count + 1);
  mark_body(body, used, needed);
  fr->needed = needed;
  fr->wanted = body->rets;
  fr->wanted_count = body->ret_count;
  for (uint32_t i = 0; i < body->arg_count; i++)
    needed[i] = false; /* arguments are there */
  TRY(lower_check_rows(g, needed));
  TRY(graph_order(g, order));
  return frame_lower_nodes(lw, fr, order);
}

/* What a call by a name runs: a function of the library, or the gradient of one. */
struct callee {
  const char *name;           /* of the function: of one whose gradient it is, that one's */
  const struct attr_func *of; /* what is to be differentiated, or NULL */
  const struct attr *attrs;
  uint32_t attr_count;
  bool calls_share; /* what its body calls is one body again and again */
};

static struct callee find_callee(struct lower *lw, const char *name, const struct attr *attrs, uint32_t attr_count) {
  const struct attr_value *of = strcmp(name, "SymbolicGradient") == 0 ? attr_find(attrs, attr_count, "f") : NULL;
  if (!of || of->kind != ATTR_FUNC)
    return (struct callee){.name = name, .attrs = attrs, .attr_count = attr_count};
  const char *given = function_gradient(lw->graph, of->func->name);
  return (struct callee){
    .name = given ? given : of->func->name, .of = given ? NULL : of->func, .attrs = of->func->attrs, .attr_count = of->func->attr_count};
}

static status instantiate_callee(struct lower *lw, const struct callee *callee, const char *prefix, struct instance *out) {
  if (callee->of)
    return gradient_instantiate(lw->graph, callee->of, prefix, lw->arena, out);
  const struct function *f = function_find(lw->graph, callee->name);
  if (!f)
    return fail(NOT_FOUND, "Function %s is not defined: the graph has none of that name", callee->name);
  return function_instantiate(lw->graph, f, callee->attrs, callee->attr_count, prefix, lw->arena, out);
}

/* What is given fits the arguments: their number, and their dtypes. */
static status check_args(struct lower *lw, const char *name, const struct instance *body, const struct bound *args, uint32_t arg_count,
                         uint32_t ret_count) {
  if (body->arg_count != arg_count || body->ret_count != ret_count)
    return fail(INVALID_ARGUMENT, "function '%s' has %u arguments and %u results, not %u and %u", name, body->arg_count, body->ret_count,
                arg_count, ret_count);
  for (uint32_t i = 0; i < arg_count; i++) {
    enum dtype want = dtype_base(body->graph->nodes.items[i].output_dtypes[0]);
    enum dtype have = args[i].value ? lw->walk.flow->values.items[args[i].value].dtype : want;
    if (have != want)
      return fail(INVALID_ARGUMENT, "function '%s': argument %u is %s, not %s", name, i, dtype_name(want), dtype_name(have));
  }
  return OK;
}

/* Which results of a call somebody takes. A function is called as a whole, but a gradient is taken apart: what nobody takes may be of an
 * op that has no rule. */
static const bool *used_results(struct op_call *c, const struct callee *callee, uint32_t count) {
  bool *used = ARENA_ARRAY(c->lw->arena, bool, count + 1);
  for (uint32_t i = 0; i < count; i++)
    used[i] = !callee->of || frame_output_used(c->lw->walk.frame, c->node, i);
  return used;
}

/* What the state of a body's nodes is named after: the call and which function it is that it calls, as a node may call several. Where all
 * calls share it: the function and the caller's attributes. */
static const char *state_of_body(struct op_call *c, const struct callee *callee) {
  struct arena *arena = c->lw->arena;
  const struct frame *caller = c->lw->walk.frame;
  const struct function *f = function_find(c->lw->graph, callee->name);
  const char *name = arena_printf(arena, "%s%s", callee->of ? "gradient of " : "", callee->name);
  if (!f || !f->is_shared)
    return arena_printf(arena, "%s[%s]", caller->calls_share ? caller->state : op_state_name(c), name);
  for (uint32_t i = 0; i < callee->attr_count; i++)
    if (callee->attrs[i].name[0] != '_')
      name = arena_printf(arena, "%s,%s=%08x", name, callee->attrs[i].name, attr_hash_value(&callee->attrs[i].value));
  return name;
}

/* Lowers an instance in a frame of its own, behind the call's controls. */
static status lower_instance(struct op_call *c, const struct callee *callee, const struct instance *body, const bool *used,
                             const struct bound *args, struct bound *rets) {
  struct lower *lw = c->lw;
  const char *state = state_of_body(c, callee);
  place_body(body->graph, c->node);
  struct frame *caller = lw->walk.frame, *fr = frame_create(lw, body->graph);
  fr->function = callee->name;
  fr->call = c->node;
  fr->state = state;
  fr->calls_share = callee->calls_share;
  fr->prefix = strlen(c->node->name) + 1;
  for (uint32_t i = 0; i < body->arg_count; i++) {
    frame_outputs(lw, fr, i)[0] = args[i];
    fr->lowered[i] = fr->token_known[i] = true;
    fr->token[i] = args[i].after;
  }
  for (uint32_t i = 0; i < c->controls.count; i++)
    vec_push(&fr->entry_controls, c->controls.items[i]);
  lw->walk.frame = fr;
  lw->walk.depth++;
  status s = walk_body(lw, fr, body, used);
  lw->walk.depth--;
  lw->walk.frame = caller;
  TRY(s);
  for (uint32_t i = 0; i < body->ret_count; i++)
    if (used[i])
      rets[i] = fr->bound[body->rets[i].node][body->rets[i].port];
  for (uint32_t i = 0; i < fr->effects.count; i++)
    vec_push(&c->body, fr->effects.items[i]);
  return OK;
}

/* How often the function is being lowered, around this call. */
static uint32_t open_calls(const struct lower *lw, const char *name) {
  uint32_t count = 0;
  for (const struct frame *fr = lw->walk.frame; fr; fr = fr->parent)
    count += fr->function && strcmp(fr->function, name) == 0;
  return count;
}

/* Too many calls are open: the function that calls itself is the innermost one of the library that is open more than once. */
static status refuse_depth(const struct lower *lw, const char *name) {
  for (const struct frame *fr = lw->walk.frame; fr; fr = fr->parent)
    if (fr->function && function_find(lw->graph, fr->function) && open_calls(lw, fr->function) > 1)
      return fail(UNIMPLEMENTED, "function '%s' calls itself: recursion is not supported", fr->function);
  return fail(UNIMPLEMENTED, "calls are more than %d deep: '%s'", LIMIT_NESTING, name);
}

status lower_body(struct op_call *c, const char *name, const struct attr *attrs, uint32_t attr_count, const struct bound *args,
                  uint32_t arg_count, struct bound *rets, uint32_t ret_count) {
  struct lower *lw = c->lw;
  struct instance body;
  struct callee callee = find_callee(lw, name, attrs, attr_count);
  if (lw->walk.depth >= LIMIT_NESTING)
    return refuse_depth(lw, callee.name);
  TRY(instantiate_callee(lw, &callee, c->node->name, &body));
  TRY(check_args(lw, callee.name, &body, args, arg_count, ret_count));
  return lower_instance(c, &callee, &body, used_results(c, &callee, ret_count), args, rets);
}

status lower_body_as_written(struct op_call *c, const struct attr_func *f, const struct bound *args, uint32_t arg_count, struct bound *rets,
                             uint32_t ret_count) {
  bool outer = c->lw->walk.as_written;
  c->lw->walk.as_written = true;
  status s = lower_body(c, f->name, f->attrs, f->attr_count, args, arg_count, rets, ret_count);
  c->lw->walk.as_written = outer;
  return s;
}

status lower_scalars(struct op_call *c, const struct attr_func *f, const enum dtype *dtypes, uint32_t arg_count, value_id *args,
                     uint32_t ret_count, value_id *rets, struct flow **out) {
  struct lower trial = lower_apart(c->lw);
  *out = flow_create(trial.arena, trial.dims);
  region_enter(&trial, *out);
  struct op_call inner = {.lw = &trial, .node = c->node};
  struct bound *given = ARENA_ARRAY(trial.arena, struct bound, arg_count + 1),
               *made = ARENA_ARRAY(trial.arena, struct bound, ret_count + 1);
  for (uint32_t i = 0; i < arg_count; i++)
    given[i].value = args[i] = flow_add_value(*out, dtypes[i], 0, NULL);
  status result = lower_body(&inner, f->name, f->attrs, f->attr_count, given, arg_count, made, ret_count);
  for (uint32_t i = 0; i < ret_count; i++)
    rets[i] = made[i].value;
  lower_free(&trial);
  vec_free(&inner.body);
  vec_free(&inner.controls);
  return result;
}

status lower_aside(struct op_call *c, status (*build)(struct op_call *aside, const void *self, struct flow **out), const void *self,
                   struct flow **out) {
  struct lower trial = lower_apart(c->lw);
  struct op_call aside = {.lw = &trial, .node = c->node};
  status result = enter_trial(&trial);
  if (result == OK)
    result = build(&aside, self, out);
  lower_free(&trial);
  vec_free(&aside.body);
  vec_free(&aside.controls);
  return result;
}

/* The call's effect is all effects of the body. */
static void join_effects(struct op_call *c) {
  if (c->body.count == 0)
    return;
  flow_id id;
  struct flow_node *join = flow_add_node(c->lw->walk.flow, FLOW_NOOP, c->node->name, c->node->op, c->node->task, &id);
  for (uint32_t i = 0; i < c->body.count; i++)
    vec_push(&join->controls, c->body.items[i]);
  vec_free(&c->body); /* the call may be a copy, whose list nobody else frees */
  c->effect = id;
}

status lower_call_function(struct op_call *c, const char *function, const struct attr *attrs, uint32_t attr_count) {
  TRY(lower_body(c, function, attrs, attr_count, c->in, c->in_count, c->out, c->out_count));
  join_effects(c);
  return OK;
}

status lower_call_body(struct op_call *c, const struct instance *body) {
  const struct callee callee = {.name = c->node->op, .calls_share = true};
  bool outer = c->lw->walk.as_written;
  TRY(check_args(c->lw, callee.name, body, c->in, c->in_count, c->out_count));
  c->lw->walk.as_written = true;
  status s = lower_instance(c, &callee, body, used_results(c, &callee, c->out_count), c->in, c->out);
  c->lw->walk.as_written = outer;
  TRY(s);
  join_effects(c);
  return OK;
}
