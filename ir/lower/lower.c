/* lower.c: the walk over the nodes that an entry needs, in topological order, calling each op's row; control edges become
 * orderings of effects.
 *
 * Order of effects: a control edge a -> b says that a's effects happen before b's. A pure node has none of its own, but
 * passes on those of its inputs; so every node has a token: its last effect, or a join of the tokens before it, made only
 * when somebody asks. */
#include "ir/lower/lower.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/gradient_name.h"
#include "ir/graph/function.h"
#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"
#include "ir/lower/unsupported.h"

/* ---- what is needed ---- */

static bool is_fed(const struct lower_request *r, uint32_t node, uint32_t port) {
  for (uint32_t i = 0; i < r->feed_count; i++)
    if (r->feeds[i].node == node && (r->feeds[i].port == port || port == UINT32_MAX))
      return true;
  return false;
}

static bool feed_is_open(const struct lower_request *r, uint32_t i) {
  return r->feed_ranks && r->feed_ranks[i] < 0 && !lower_feed_has_rank(r->graph, r->feeds[i]);
}

status lower_mark_needed(const struct lower_request *r, bool *needed) {
  const struct graph *g = r->graph;
  VEC(uint32_t) stack = {0};
  for (uint32_t i = 0; i < r->fetch_count; i++)
    if (!is_fed(r, r->fetches[i].node, r->fetches[i].port))
      vec_push(&stack, r->fetches[i].node);
  for (uint32_t i = 0; i < r->target_count; i++)
    vec_push(&stack, r->targets[i]);
  while (stack.count) {
    uint32_t n = stack.items[--stack.count];
    if (needed[n])
      continue;
    needed[n] = true;
    const struct node *node = &g->nodes.items[n];
    for (uint32_t i = 0; i < node->input_count; i++)
      if (!is_fed(r, node->inputs[i].node, node->inputs[i].port))
        vec_push(&stack, node->inputs[i].node);
    for (uint32_t i = 0; i < node->control_count; i++)
      if (strcmp(g->nodes.items[node->controls[i]].op, "Placeholder") != 0 || !is_fed(r, node->controls[i], UINT32_MAX))
        vec_push(&stack, node->controls[i]);
  }
  vec_free(&stack);
  return OK;
}

status lower_check_rows(const struct graph *graph, const bool *needed) {
  const char *first = NULL, *list = "";
  struct map seen = {0};
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *n = &graph->nodes.items[i];
    if (!needed[i] || op_row_find(n->op) || function_find(graph, n->op) || !map_insert(&seen, n->op, i))
      continue;
    if (!first)
      first = n->name;
    list = arena_printf(graph->arena, "%s%s%s", list, *list ? ", " : "", n->op);
    if (unsupported_reason(n->op))
      list = arena_printf(graph->arena, "%s (%s)", list, unsupported_reason(n->op));
  }
  map_deinit(&seen);
  return first ? fail(UNIMPLEMENTED, "%s: op not supported: %s", first, list) : OK;
}

/* ---- tokens ---- */

/* One node that stands for all: the only one, or a join. */
static flow_id join_tokens(struct lower *lw, const struct node *node, const flow_id *all, uint32_t count) {
  if (count <= 1)
    return count ? all[0] : 0;
  flow_id id;
  struct flow_node *join = flow_add_node(lw->walk.flow, FLOW_NOOP, node->name, node->op, node->task, &id);
  for (uint32_t i = 0; i < count; i++)
    vec_push(&join->controls, all[i]);
  return id;
}

/* by_data: a pure node's own control inputs, and what comes to it so through its data inputs. */
flow_id frame_token(struct lower *lw, struct frame *fr, uint32_t n, bool by_data) {
  flow_id *token = by_data ? fr->data_token : fr->token;
  bool *known = by_data ? fr->data_token_known : fr->token_known, aside = !by_data && fr->is_aside[n];
  if ((known[n] && !aside) || (by_data && fr->token_known[n] && fr->has_effect[n]))
    return known[n] ? token[n] : 0;
  known[n] = true; /* loops through back edges end here */
  fr->is_aside[n] = fr->is_aside[n] && by_data;
  const struct node *node = &fr->graph->nodes.items[n];
  VEC(flow_id) all = {0};
  if (aside)
    vec_push(&all, token[n]);
  for (uint32_t i = 0; i < node->input_count + node->control_count; i++) {
    uint32_t from = i < node->input_count ? node->inputs[i].node : node->controls[i - node->input_count];
    flow_id t = fr->lowered[from] ? frame_token(lw, fr, from, by_data && i < node->input_count) : 0;
    bool listed = t == 0;
    for (uint32_t j = 0; j < all.count; j++)
      listed = listed || all.items[j] == t;
    if (!listed)
      vec_push(&all, t);
  }
  token[n] = join_tokens(lw, node, all.items, all.count);
  vec_free(&all);
  return token[n];
}

/* ---- one node ---- */

/* The builder must know an axis that the step computes: every value that it can have is tried. The axis is the last input of that value:
 * gather(x, i, axis=i) takes it twice. */
static status try_axes(struct op_call *c, status failed) {
  for (uint32_t i = c->in_count; i-- > 0;)
    if (c->in[i].value == c->lw->wants.value)
      return lower_for_each_axis(c, i, c->lw->wants.axis_count);
  return failed;
}

/* Variants that were only put elsewhere are what they were: made by the same node. */
static void note_makers(struct op_call *c) {
  const struct node *maker = NULL;
  for (uint32_t i = 0; i < c->in_count && !maker; i++)
    maker = c->in[i].value && op_value(c, c->in[i].value)->dtype == DTYPE_VARIANT ? c->in[i].maker : NULL;
  for (uint32_t i = 0; i < c->out_count && maker; i++) {
    const struct flow_value *v = c->out[i].value ? op_value(c, c->out[i].value) : NULL;
    const struct flow_node *n = v && v->dtype == DTYPE_VARIANT && !c->out[i].maker ? c->lw->walk.flow->nodes.items[v->producer] : NULL;
    if (n && n->op == FLOW_HOST && strcmp(n->host, "VariantTake") == 0)
      c->out[i].maker = maker;
  }
}

/* The builder must know a size. One that the step computes has a handful of values, as it decides a rank: each is lowered, if it is the
 * size of an input. */
static status try_sizes(struct op_call *c, status failed) {
  struct lower *lw = c->lw;
  dim size = dim_resolve(lw->dims, lw->wants.size);
  if (op_dim_is_late(c, size) && lower_has_size(c, size))
    return lower_for_each_size(c, size);
  bool *seen = ARENA_ARRAY(lw->arena, bool, dims_symbol_count(lw->dims) + 1);
  dim_symbols(lw->dims, size, seen);
  for (uint32_t s = lw->facts.feed_symbols; s-- > 0;)
    lw->found.wants_symbol = seen[s] && lw->walk.trial_depth == 0 ? s + 1 : lw->found.wants_symbol;
  return failed;
}

status lower_call_node(struct op_call *c) {
  const struct node *node = c->node;
  if (node->def == NULL)
    return lower_call_selected(c, node->op, node->attrs, node->attr_count);
  c->row = op_row_find(node->op);
  if (!c->row)
    return fail(UNIMPLEMENTED, "op not supported");
  c->lw->wants.value = NO_VALUE;
  c->lw->wants.axis = false;
  TRY(lower_gather_inputs(c));
  c->lw->wants.size = NO_DIM;
  c->lw->wants.var = 0;
  status s = c->row->build(c);
  if (s == OK)
    note_makers(c);
  if (s == OK && c->too_many)
    return fail(INVALID_ARGUMENT, "its attributes list more outputs than the %u that their numbers say", c->out_count);
  if (s == UNIMPLEMENTED && c->lw->wants.var)
    return lower_each_rank(c);
  if (s == UNIMPLEMENTED && c->lw->wants.size != NO_DIM)
    return try_sizes(c, s);
  return s == UNIMPLEMENTED && c->lw->wants.axis ? try_axes(c, s) : s;
}

/* The conditions of the node, from its inputs and controls. True: it never runs, and so nothing that needs it. */
static bool guard_node(struct lower *lw, struct frame *fr, struct op_call *c, uint32_t index) {
  const struct node *node = c->node;
  bool merges = strcmp(node->op, "Merge") == 0 || strcmp(node->op, "RefMerge") == 0, dead = false;
  for (uint32_t i = 0; i < c->in_count && !merges; i++) {
    c->guards = guards_join(lw, c->guards, c->in[i].guards);
    dead = dead || c->in[i].dead;
  }
  for (uint32_t i = 0; i < node->control_count && strcmp(node->op, "ControlTrigger") != 0; i++) {
    c->guards = guards_join(lw, c->guards, fr->guards[node->controls[i]]);
    dead = dead || fr->dead[node->controls[i]];
  }
  fr->guards[index] = c->guards;
  fr->dead[index] = dead;
  if (!dead)
    return false;
  struct bound *outputs = frame_outputs(lw, fr, index);
  for (uint32_t i = 0; i < node->output_count; i++)
    outputs[i].dead = true;
  return fr->lowered[index] = true;
}

/* The node's place in the user's program, where the graph says it. */
static const char *node_place(const struct lower *lw, const struct frame *fr, const struct node *node) {
  bool named = lw->graph->places.count && strlen(node->name) >= fr->prefix;
  return named ? graph_place(lw->graph, node->name + fr->prefix, fr->function ? fr->function : "") : NULL;
}

static bool text_begins(const char *with) { return strncmp(status_text(), with, strlen(with)) == 0; }

/* The error with the node's name in front, unless it has it or that of a node in the function that it calls, and its place behind; once. */
static status blame(struct lower *lw, const struct frame *fr, const struct node *node, status s) {
  if (!text_begins(arena_printf(lw->arena, "%s (%s): ", node->name, node->op)) && !text_begins(arena_printf(lw->arena, "%s/", node->name)))
    s = status_prefix(s, "%s (%s): ", node->name, node->op);
  char subject[512];
  if (gradient_name_subject(node->name, subject, sizeof subject) && !strstr(status_text(), "; in the gradient of "))
    status_suffix(s, "; in the gradient of '%s'", subject);
  const char *place = node_place(lw, fr, node);
  return place && !strstr(status_text(), "; made at ") ? status_suffix(s, "; made at %s", place) : s;
}

/* The nodes that a call has added, from number `from` on, and those of their regions that have no place of their own. */
static void set_places(struct flow *f, flow_id from, const char *place) {
  for (flow_id id = from; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (!n || n->place)
      continue;
    n->place = place;
    for (uint32_t i = 0; i < n->region_count; i++)
      set_places(n->branches[i], 1, place);
  }
}

status lower_check_feed(struct lower *lw, const struct frame *fr, struct edge e) {
  const struct lower_request *r = lw->walk.request;
  for (uint32_t i = 0; r && fr->graph == r->graph && i < r->feed_count && lw->walk.trial_depth == 0; i++) {
    if (r->feeds[i].node != e.node || r->feeds[i].port != e.port || !feed_is_open(r, i))
      continue;
    lw->found.wants_feed = i + 1;
    return fail(UNIMPLEMENTED, "%s: its rank is not known while compiling", r->feed_names[i]);
  }
  return OK;
}

/* What an output that is another view of input i shares with it: the memory of a variable. */
static bool shares_input(const struct op_call *c, value_id v, uint32_t i) {
  const struct flow *f = c->lw->walk.flow;
  const struct bound *in = &c->in[i];
  bool reference = in->var && !in->value && !op_var(c, in->var - 1)->is_resource;
  const struct flow_node *n = f->nodes.items[f->values.items[v].producer];
  while (n && n->op == FLOW_ALIAS && v != in->value) {
    v = n->inputs.items[0];
    n = f->nodes.items[f->values.items[v].producer];
  }
  return reference ? n && n->op == FLOW_READ && n->var == in->var - 1 : in->shares && v == in->value;
}

/* In TensorFlow a reshaped variable still is the variable's memory. */
static void note_shared(struct op_call *c) {
  for (uint32_t k = 0; k < c->out_count && c->node->def; k++) {
    const struct bound *out = &c->out[k];
    const struct flow *f = c->lw->walk.flow;
    const struct flow_node *n = out->value && !out->shares ? f->nodes.items[f->values.items[out->value].producer] : NULL;
    for (uint32_t i = 0; n && n->op == FLOW_ALIAS && i < c->in_count && !out->shares; i++) {
      uint32_t var = shares_input(c, out->value, i) ? (c->in[i].var ? c->in[i].var : c->in[i].shares) : 0;
      if (!var || !op_var(c, var - 1)->has_shape)
        continue;
      c->out[k].shares = var;
      c->out[k].after = c->in[i].after;
    }
  }
}

/* Whether the call looks at a variable that something before has updated. */
static bool sees_update(const struct op_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++) {
    uint32_t var = c->in[i].var ? c->in[i].var : c->in[i].shares;
    if (var && lower_may_have_changed(c->lw, var - 1))
      return true;
  }
  return false;
}
/* What the node comes after: its control inputs, what its inputs' nodes have done, and the frame's own. Where it looks at a variable, it
 * does so when all inputs are there, and the update may be what another one comes after. */
static void collect_controls(struct lower *lw, struct frame *fr, struct op_call *c) {
  const struct node *node = c->node;
  bool sees = sees_update(c);
  for (uint32_t i = 0; i < node->control_count; i++) {
    flow_id t = fr->lowered[node->controls[i]] ? frame_token(lw, fr, node->controls[i], false) : 0;
    if (t)
      vec_push(&c->controls, t);
  }
  for (uint32_t i = 0; i < node->input_count; i++) {
    flow_id t = fr->lowered[node->inputs[i].node] ? frame_token(lw, fr, node->inputs[i].node, !sees) : 0;
    if (t)
      vec_push(&c->controls, t);
  }
  for (uint32_t i = 0; i < fr->entry_controls.count; i++)
    vec_push(&c->controls, fr->entry_controls.items[i]);
  if (sees)
    op_after_inputs(c);
}

static bool takes_value(const struct flow_node *n, value_id v) {
  for (uint32_t i = 0; i < flow_input_count(n); i++)
    if (flow_input(n, i) == v)
      return true;
  return false;
}
/* Notes what the last effect of a call says about the order of others: of the call's nodes it may be one that takes some inputs alone, or
 * only checks what another one computes. */
static void note_effect(struct lower *lw, struct frame *fr, const struct op_call *c, uint32_t index) {
  const struct flow *f = lw->walk.flow;
  const struct flow_node *effect = f->nodes.items[c->effect];
  fr->token[index] = c->effect;
  fr->has_effect[index] = true;
  fr->token_known[index] = true;
  vec_push(&fr->effects, c->effect);
  for (uint32_t i = 0; i < c->in_count; i++)
    fr->is_aside[index] = fr->is_aside[index] || (c->in[i].value && !takes_value(effect, c->in[i].value));
  for (uint32_t k = 0; k < c->out_count && effect->op == FLOW_KERNEL; k++) {
    flow_id maker = c->out[k].value ? f->values.items[c->out[k].value].producer : c->effect;
    if (maker == c->effect || (maker && node_follows(f->nodes.items[maker], c->effect)))
      continue;
    fr->data_token[index] = c->effect;
    fr->data_token_known[index] = true;
  }
}

static void note_probed(struct lower *lw, const struct frame *fr, uint32_t index) {
  struct shape_probe *probe = lw->walk.probe;
  if (!probe || fr->graph != probe->graph || probe->edge.node != index || !fr->bound[index][probe->edge.port].value)
    return;
  const struct flow_value *v = &lw->walk.flow->values.items[fr->bound[index][probe->edge.port].value];
  probe->found = true;
  probe->rank = v->rank;
  memcpy(probe->dims, v->dims, sizeof *v->dims * (size_t)v->rank);
}

status frame_lower_node(struct lower *lw, struct frame *fr, uint32_t index) {
  const struct node *node = &fr->graph->nodes.items[index];
  struct op_call c = {.lw = lw, .node = node, .in_count = node->input_count, .out_count = node->output_count};
  c.in = ARENA_ARRAY(lw->arena, struct bound, node->input_count + 1);
  for (uint32_t i = 0; i < node->input_count; i++) {
    const struct edge e = node->inputs[i];
    TRY(lower_check_feed(lw, fr, e));
    if (!fr->bound[e.node])
      return fail(INVALID_ARGUMENT, "%s (%s): input '%s:%u' is not computed here", node->name, node->op,
                  fr->graph->nodes.items[e.node].name, e.port);
    c.in[i] = fr->bound[e.node][e.port];
  }
  if (guard_node(lw, fr, &c, index))
    return OK;
  collect_controls(lw, fr, &c);
  /* outputs that are fed stay what they are */
  const char *place = node_place(lw, fr, node);
  dims_set_reason(lw->dims, arena_printf(lw->arena, "%s (%s)%s%s%s", node->name, node->op, place ? ", made at " : "", place ? place : "",
                                         place ? "," : ""));
  struct bound *outputs = frame_outputs(lw, fr, index);
  c.out = ARENA_ARRAY(lw->arena, struct bound, node->output_count + 1);
  flow_id first = lw->walk.flow->nodes.count;
  bool whole = !node->def || strcmp(node->op, "PartitionedCall") == 0 || strcmp(node->op, "StatefulPartitionedCall") == 0;
  bool done;
  status s = lower_optimized(&c, fr, index, &done);
  if (s == OK && !done)
    s = whole ? lower_call_node(&c) : lower_each_alternative(&c);
  if (s != OK)
    return blame(lw, fr, node, s);
  note_shared(&c);
  lower_note_softmax(&c, fr, index);
  if (place)
    set_places(lw->walk.flow, first, place);
  for (uint32_t i = 0; i < node->output_count; i++)
    if (!outputs[i].value && !outputs[i].var && !outputs[i].alternatives) {
      outputs[i] = c.out[i];
      if (!c.keeps_guards)
        outputs[i].guards = c.guards;
    }
  fr->lowered[index] = true;
  note_probed(lw, fr, index);
  if (c.effect)
    note_effect(lw, fr, &c, index);
  vec_free(&c.controls);
  vec_free(&c.body);
  return OK;
}

status frame_lower_nodes(struct lower *lw, struct frame *fr, const uint32_t *order) {
  TRY(loops_find(lw, fr->graph, order, &fr->loops));
  if (fr->loops)
    return loops_lower_scope(lw, fr, order, fr->needed);
  for (uint32_t i = 0; i < fr->graph->nodes.count; i++)
    if (fr->needed[order[i]] && !fr->lowered[order[i]])
      TRY(frame_lower_node(lw, fr, order[i]));
  return OK;
}

/* ---- entries ---- */

/* The dtype and dims of a fed tensor: from a placeholder's attributes, or from what its node would compute. */
static status feed_value(struct lower *lw, const struct lower_request *r, uint32_t i, value_id *out) {
  struct edge e = r->feeds[i];
  const struct node *node = &r->graph->nodes.items[e.node];
  enum dtype dtype = dtype_base(node->output_dtypes[e.port]);
  dim dims[LIMIT_RANK];
  int rank;
  if (r->feed_ranks && !lower_feed_has_rank(r->graph, e)) {
    rank = r->feed_ranks[i];
    for (int d = 0; d < rank; d++)
      dims[d] = dim_symbol(lw->dims, arena_printf(lw->arena, "%s.%d", node->name, d));
  } else {
    TRY(lower_feed_shape(lw, r->graph, e, &rank, dims));
  }
  for (uint32_t k = 0; k < r->feed_size_count; k++)
    if (r->feed_sizes[k].feed == i && r->feed_sizes[k].axis < rank)
      dims[r->feed_sizes[k].axis] = dim_const(lw->dims, r->feed_sizes[k].size);
  struct flow_node *n = flow_add_node(lw->walk.flow, FLOW_FEED, node->name, node->op, TASK_DRIVER, NULL);
  n->imm = i;
  *out = flow_add_value(lw->walk.flow, dtype, rank, dims);
  vec_push(&n->outputs, *out);
  lw->walk.flow->values.items[*out].producer = lw->walk.flow->nodes.count - 1;
  return OK;
}

static struct flow_port feed_port(struct lower *lw, const struct lower_request *r, uint32_t i, value_id v) {
  struct edge e = r->feeds[i];
  return (struct flow_port){.name = r->feed_names[i],
                            .value = v,
                            .tensor = arena_printf(lw->arena, "%s:%u", r->graph->nodes.items[e.node].name, e.port),
                            .any_rank = !lower_feed_has_rank(r->graph, e),
                            .every_rank = feed_is_open(r, i)};
}

static status add_feeds(struct lower *lw, const struct lower_request *r, struct entry *out) {
  for (uint32_t i = 0; i < r->feed_count; i++) {
    value_id v;
    struct edge e = r->feeds[i];
    const struct node *node = &r->graph->nodes.items[e.node];
    if (feed_is_open(r, i)) {
      v = flow_add_value(lw->walk.flow, dtype_base(node->output_dtypes[e.port]), 0, NULL);
      vec_push(&out->feeds, feed_port(lw, r, i, v));
      continue;
    }
    status s = feed_value(lw, r, i, &v);
    if (s != OK)
      return status_prefix(s, "%s: ", r->feed_names[i]);
    frame_outputs(lw, lw->walk.frame, e.node)[e.port] = (struct bound){.value = v};
    lw->walk.frame->lowered[e.node] = true;
    lw->walk.frame->token_known[e.node] = true;
    vec_push(&out->feeds, feed_port(lw, r, i, v));
  }
  return OK;
}

/* A variant or a handle cannot be fetched. But what makes it may fail, and that is what the step has to report: so it runs, and refuses
 * behind it. */
static value_id refuse_fetch(struct op_call *c, value_id v) {
  struct flow_node *n = op_emit(c, FLOW_HOST, true);
  n->host = "refuse_fetch";
  vec_push(&n->inputs, v);
  return op_add_output(c, n, DTYPE_INT32, 0, NULL);
}

static status add_fetches(struct lower *lw, const struct lower_request *r, struct entry *out) {
  for (uint32_t i = 0; i < r->fetch_count; i++) {
    struct edge e = r->fetches[i];
    const struct node *node = &r->graph->nodes.items[e.node];
    TRY(lower_check_feed(lw, lw->walk.frame, e));
    struct bound b = lw->walk.frame->bound[e.node] ? lw->walk.frame->bound[e.node][e.port] : (struct bound){0};
    struct op_call c = {.lw = lw, .node = node, .in = &b, .in_count = 1, .guards = b.guards};
    flow_id token = b.var && !b.value ? frame_token(lw, lw->walk.frame, e.node, true) : 0;
    if (token) /* a reference is read when its node has run */
      vec_push(&c.controls, token);
    value_id v;
    status s =
      b.dead ? fail(INVALID_ARGUMENT, "is never computed: it lies on the side of a cond that is not taken") : lower_any_rank(&c, b, &v);
    if (s != OK)
      return status_prefix(s, "%s (%s): ", node->name, node->op);
    enum dtype dtype = lw->walk.flow->values.items[v].dtype;
    if (dtype == DTYPE_RESOURCE || dtype == DTYPE_VARIANT)
      v = refuse_fetch(&c, v);
    struct flow_node *n = flow_add_node(lw->walk.flow, FLOW_FETCH, node->name, node->op, TASK_DRIVER, NULL);
    n->imm = i;
    n->guards = b.guards ? b.guards->list : NULL;
    n->guard_count = b.guards ? b.guards->count : 0;
    vec_push(&n->inputs, v);
    vec_push(&out->fetches,
             (struct flow_port){.name = r->fetch_names[i], .value = v, .tensor = arena_printf(lw->arena, "%s:%u", node->name, e.port)});
    vec_free(&c.controls);
  }
  return OK;
}

/* A target runs, and may fail, also where nobody takes what it gives. */
static void keep_target(struct lower *lw, uint32_t target) {
  const struct node *node = &lw->graph->nodes.items[target];
  const struct bound *outputs = lw->walk.frame->bound[target];
  for (uint32_t i = 0; outputs && i < node->output_count; i++) {
    value_id v = outputs[i].value;
    struct flow_node *n = v ? lw->walk.flow->nodes.items[lw->walk.flow->values.items[v].producer] : NULL;
    if (n && node->def && !node_attr(node, "f")) /* of a function what nobody takes is left out */
      n->is_target = true;
  }
}

static status walk_entry(struct lower *lw, const struct lower_request *r, struct entry *out) {
  const struct graph *g = r->graph;
  bool *needed = ARENA_ARRAY(lw->arena, bool, g->nodes.count + 1);
  uint32_t *order = ARENA_ARRAY(lw->arena, uint32_t, g->nodes.count + 1);
  TRY(lower_mark_needed(r, needed));
  TRY(lower_check_rows(g, needed));
  TRY(graph_order(g, order));
  lw->walk.flow = out->flow = flow_create(lw->arena, lw->dims);
  lw->walk.entry = out;
  lw->walk.request = r;
  lw->walk.frame = NULL;
  lw->graph = g;
  lw->walk.frame = frame_create(lw, g);
  lw->facts.assigned_ranks = ARENA_NEW(lw->arena, struct assigned_rank *);
  lw->walk.frame->needed = needed;
  lw->walk.frame->wanted = r->fetches;
  lw->walk.frame->wanted_count = r->fetch_count;
  TRY(add_feeds(lw, r, out));
  lw->facts.feed_symbols = dims_symbol_count(lw->dims);
  status s = frame_lower_nodes(lw, lw->walk.frame, order);
  bool asks = lw->found.wants_feed || lw->found.wants_symbol; /* what a variant of the entry may know */
  TRY(s == UNIMPLEMENTED && lw->not_fed && !asks ? lower_refuse_unfed(lw->not_fed) : s);
  TRY(add_fetches(lw, r, out));
  for (uint32_t i = 0; i < r->target_count; i++) {
    vec_push(&out->targets, g->nodes.items[r->targets[i]].name);
    keep_target(lw, r->targets[i]);
  }
  return OK;
}

status lower_entry(const struct lower_options *options, const struct lower_request *r, struct lower_findings *found, struct entry *out) {
  struct lower lw = {.arena = options->arena, .dims = options->dims, .options = options};
  status s = walk_entry(&lw, r, out);
  *found = lw.found;
  lower_free(&lw);
  return s;
}
