/* lower_loop.c: loops of TensorFlow 1 (Enter, Merge, Switch, NextIteration, Exit in one frame) become the While region op.
 *
 * A node's loop is the frame it runs in: Enter goes into one, Exit leaves it, everything else is where its inputs are. From
 * outside a loop is one node: its inputs are those of its Enters, its outputs its Exits. Inside, each Merge of an Enter and a
 * NextIteration is a loop variable; other Enters bring in what does not change. The condition is what LoopCond needs of the
 * variables, the body what the NextIterations need of the other side of the loop's Switches. Without a LoopCond, which does nothing
 * but hand on, the condition is what decides the Switch of an Exit. Loops inside the body are lowered in the same way. */
#include <stdlib.h>

#include "ir/lower/loop_frames.h"
#include "ir/lower/lower_state.h"
#include "ir/lower/lower_walk.h"

/* ---- order with loops as single nodes ---- */

static status lower_loop(struct lower *lw, struct frame *fr, uint32_t index, const uint32_t *order, const bool *needed);

struct walk {
  struct lower *lw;
  struct frame *fr;
  const uint32_t *order;
  const bool *needed;
  const bool *before; /* in a loop: what runs ahead of its condition, ... */
  bool is_condition;  /* which is lowered there; in the body only the values that are used again */
  uint8_t *state;     /* per node, then per loop: 1 open, 2 done */
};

static status visit_node(struct walk *w, uint32_t id);

/* In the body of a loop: what its condition has done already. */
static bool is_done_before(const struct walk *w, uint32_t id) { return w->before && !w->is_condition && w->before[id]; }

static status visit_input(struct walk *w, const struct node *n, uint32_t i) {
  uint32_t control = i < n->input_count ? NO_NODE : n->controls[i - n->input_count];
  if (control == NO_NODE)
    return visit_node(w, n->inputs[i].node);
  return is_done_before(w, control) ? OK : visit_node(w, control);
}

/* The inputs of a loop's Enters, and control inputs from outside of any of its nodes. */
static status visit_loop_inputs(struct walk *w, uint32_t loop) {
  const struct graph *g = w->fr->graph;
  const struct loops *l = w->fr->loops;
  for (uint32_t id = 0; id < g->nodes.count; id++) {
    const struct node *n = &g->nodes.items[id];
    if (!w->needed[id] || !l->of[id] || !loop_is_within(l, l->of[id], loop))
      continue;
    for (uint32_t i = 0; i < n->input_count + n->control_count; i++) {
      uint32_t from = i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count];
      if (!loop_is_within(l, l->of[from], loop) || (l->of[from] == w->fr->scope && !loop))
        TRY(visit_input(w, n, i));
    }
  }
  return OK;
}

static status visit_loop(struct walk *w, uint32_t loop) {
  uint8_t *state = &w->state[w->fr->graph->nodes.count + loop];
  if (*state == 2)
    return OK;
  if (*state == 1)
    return fail(INVALID_ARGUMENT, "the loop '%s' needs its own result", w->fr->loops->items.items[loop].name);
  *state = 1;
  TRY(visit_loop_inputs(w, loop));
  status s = lower_loop(w->lw, w->fr, loop, w->order, w->needed);
  *state = 2;
  return s == OK ? OK : status_prefix(s, "in the loop '%s': ", w->fr->loops->items.items[loop].name);
}

/* Nodes of this scope come in the graph's order; only loops, whose parts lie scattered in it, look ahead. */
static status visit_node(struct walk *w, uint32_t id) {
  const struct graph *g = w->fr->graph;
  const struct loops *l = w->fr->loops;
  const struct node *n = &g->nodes.items[id];
  if (w->state[id] || w->fr->lowered[id] || (!w->needed[id] && !w->fr->scope)) /* what is fed is not needed */
    return OK;
  if (l->of[id] != w->fr->scope) {
    uint32_t child = loop_child_of(l, w->fr->scope, l->of[id]);
    return child ? visit_loop(w, child) : OK;
  }
  w->state[id] = 1;
  if (loop_is_op(n, "Exit") && !l->plain[id]) {
    w->state[id] = 2;
    uint32_t child = loop_child_of(l, w->fr->scope, l->of[n->inputs[0].node]);
    return child ? visit_loop(w, child) : OK;
  }
  for (uint32_t i = 0; i < n->input_count + n->control_count; i++)
    TRY(visit_input(w, n, i));
  w->state[id] = 2;
  TRY(loops_check_inputs(l, g, id));
  uint32_t effects = w->fr->effects.count;
  TRY(frame_lower_node(w->lw, w->fr, id));
  if (is_done_before(w, id) && w->fr->effects.count != effects)
    return fail(UNIMPLEMENTED, "%s (%s): has effects in the condition of a loop, and its value is used in the body", n->name, n->op);
  return OK;
}

static bool is_structure(const struct node *n) {
  return loop_is_op(n, "Enter") || loop_is_op(n, "NextIteration") || loop_is_op(n, "LoopCond");
}

static bool is_root(const struct walk *w, uint32_t id) {
  const struct frame *fr = w->fr;
  uint32_t loop = fr->loops->of[id];
  if (!w->needed[id] || !loop_is_within(fr->loops, loop, fr->scope) || (w->before && w->before[id] != w->is_condition))
    return false;
  return loop != fr->scope || !fr->scope || fr->loops->plain[id] || !is_structure(&fr->graph->nodes.items[id]);
}

static status lower_scope(struct walk *w) {
  w->state = calloc(w->fr->graph->nodes.count + w->fr->loops->items.count + 1, 1);
  status s = OK;
  for (uint32_t i = 0; i < w->fr->graph->nodes.count && s == OK; i++)
    if (is_root(w, w->order[i]))
      s = visit_node(w, w->order[i]);
  free(w->state);
  return s;
}

status loops_lower_scope(struct lower *lw, struct frame *fr, const uint32_t *order, const bool *needed) {
  return lower_scope(&(struct walk){.lw = lw, .fr = fr, .order = order, .needed = needed});
}

/* ---- one loop ---- */

/* What comes into a loop: one for each Enter. */
struct entering {
  uint32_t enter;
  uint32_t merge; /* the loop variable's Merge; NO_NODE: it does not change */
  uint32_t next;  /* the node that feeds the NextIteration */
  uint32_t next_port;
  struct bound in; /* outside */
  struct flow_value shape;
  bool open[LIMIT_RANK]; /* dims that change from turn to turn: symbols, which each turn binds anew */
  bool is_param;         /* a value; else a variable or a constant */
  value_id result;       /* in the body */
  uint32_t param;        /* its number among the parameters */
  bool rereads;          /* it shares the memory of a variable that the loop changes */
};
struct looping {
  struct lower *lw;
  struct frame *outer;
  struct loop *loop;
  uint32_t index;
  const uint32_t *order;
  const bool *needed;
  const bool *before; /* per node: find_before */
  struct entering *vars;
  uint32_t var_count, param_count;
  struct edge decides; /* what the loop's Switches are decided by */
  const struct node *blame;
};

static status collect_entering(struct looping *p) {
  const struct graph *g = p->outer->graph;
  p->vars = ARENA_ARRAY(p->lw->arena, struct entering, p->loop->enters.count + 1);
  for (uint32_t i = 0; i < p->loop->enters.count; i++) {
    uint32_t id = p->loop->enters.items[i];
    if (!p->needed[id])
      continue;
    const struct node *enter = &g->nodes.items[id];
    struct entering *v = &p->vars[p->var_count++];
    *v = (struct entering){.enter = id, .merge = NO_NODE};
    TRY(lower_check_feed(p->lw, p->outer, enter->inputs[0]));
    struct bound *from = p->outer->bound[enter->inputs[0].node];
    if (!from)
      return fail(INVALID_ARGUMENT, "%s (%s): its input is not computed", enter->name, enter->op);
    v->in = from[enter->inputs[0].port];
    for (uint32_t m = 0; m < p->loop->merges.count; m++) {
      const struct node *merge = &g->nodes.items[p->loop->merges.items[m]];
      for (uint32_t k = 0; k < merge->input_count; k++) {
        const struct node *other = &g->nodes.items[merge->inputs[1 - (k ? 1 : 0)].node];
        if (merge->input_count == 2 && merge->inputs[k].node == id && loop_is_op(other, "NextIteration")) {
          v->merge = p->loop->merges.items[m];
          v->next = other->inputs[0].node;
          v->next_port = other->inputs[0].port;
        }
      }
    }
  }
  return OK;
}

/* Values become parameters, but what is known and does not change is repeated inside. */
static status shape_entering(struct looping *p) {
  for (uint32_t i = 0; i < p->var_count; i++) {
    struct entering *v = &p->vars[i];
    const struct node *enter = &p->outer->graph->nodes.items[v->enter];
    struct op_call c = {.lw = p->lw, .node = enter, .in = &v->in, .in_count = 1, .guards = v->in.guards};
    if (v->in.var && !v->in.value && (enter->output_dtypes[0] > DTYPE_REF || enter->output_dtypes[0] == DTYPE_RESOURCE))
      continue;
    TRY(op_input(&c, 0, &v->in.value));
    v->in.var = 0;
    v->shape = p->lw->walk.flow->values.items[v->in.value];
    if (v->merge != NO_NODE) {
      v->shape.data = NULL;
      v->shape.content = NULL;
    }
    v->is_param = !v->shape.data;
    if (v->is_param)
      v->param = p->param_count++;
  }
  return OK;
}

/* A frame for the inside of the loop, over a new flow: parameters are bound to Enters and Merges. */
static struct frame *open_region(struct looping *p, struct flow *flow) {
  struct lower *lw = p->lw;
  lw->walk.flow = flow;
  struct frame *fr = frame_create(lw, p->outer->graph);
  fr->function = p->outer->function;
  fr->prefix = p->outer->prefix;
  fr->state = p->outer->state;
  fr->calls_share = p->outer->calls_share;
  fr->needed = p->outer->needed;
  fr->wanted = p->outer->wanted;
  fr->wanted_count = p->outer->wanted_count;
  fr->used = p->outer->used;
  fr->loops = p->outer->loops;
  fr->scope = p->index;
  for (uint32_t i = 0; i < p->var_count; i++) {
    struct entering *v = &p->vars[i];
    struct bound b = {.var = v->in.var, .maker = v->in.maker, .shares = v->merge == NO_NODE ? v->in.shares : 0, .rereads = v->rereads};
    if (v->in.value) {
      b.value = flow_add_value(flow, v->shape.dtype, v->shape.rank, v->shape.dims);
      struct flow_value *x = &flow->values.items[b.value];
      if (v->is_param) {
        x->index = flow->params.count;
        x->content = v->shape.content;
        vec_push(&flow->params, b.value);
      } else {
        struct flow_node *n = flow_add_node(flow, FLOW_CONST, p->blame->name, p->blame->op, p->blame->task, &x->producer);
        x->data = v->shape.data;
        x->content = v->shape.content;
        vec_push(&n->outputs, b.value);
      }
    }
    frame_outputs(lw, fr, v->enter)[0] = b;
    fr->lowered[v->enter] = fr->token_known[v->enter] = true;
    if (v->merge != NO_NODE) {
      frame_outputs(lw, fr, v->merge)[0] = b;
      fr->lowered[v->merge] = fr->token_known[v->merge] = true;
    }
  }
  return fr;
}

/* A Switch of the loop itself. */
static bool is_loop_switch(const struct looping *p, uint32_t id) {
  const struct node *n = &p->outer->graph->nodes.items[id];
  return p->outer->loops->of[id] == p->index && loop_is_op(n, "Switch") && n->inputs[1].node == p->decides.node &&
         n->inputs[1].port == p->decides.port;
}

/* Inside the body their true side is the loop variable. */
static void bind_switches(struct looping *p, struct frame *fr) {
  const struct graph *g = fr->graph;
  for (uint32_t id = 0; id < g->nodes.count; id++) {
    const struct node *n = &g->nodes.items[id];
    if (!is_loop_switch(p, id))
      continue;
    struct bound *from = fr->bound[n->inputs[0].node];
    if (!from)
      continue;
    struct bound *out = frame_outputs(p->lw, fr, id);
    out[0] = out[1] = from[n->inputs[0].port];
    fr->lowered[id] = fr->token_known[id] = true;
  }
}

static bool is_variable(const struct looping *p, uint32_t id) {
  for (uint32_t i = 0; i < p->loop->merges.count; i++)
    if (p->loop->merges.items[i] == id)
      return true;
  return false;
}

/* Whether a node runs behind a Switch of the loop, as one of its inputs does. */
static bool comes_behind(const struct looping *p, uint32_t id, const bool *before) {
  const struct loops *l = p->outer->loops;
  const struct node *n = &p->outer->graph->nodes.items[id];
  for (uint32_t i = 0; !is_variable(p, id) && i < n->input_count + n->control_count; i++) {
    uint32_t from = i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count];
    if (loop_is_within(l, l->of[from], p->index) && !before[from])
      return true;
  }
  return false;
}

/* Of the loop's nodes those that run before it is decided whether there is another turn: what no Switch of the loop comes before. A loop
 * inside is one node: it runs when all that comes to it is there. */
static const bool *find_before(const struct looping *p) {
  const struct graph *g = p->outer->graph;
  const struct loops *l = p->outer->loops;
  bool *before = ARENA_ARRAY(p->lw->arena, bool, g->nodes.count + 1), *behind = ARENA_ARRAY(p->lw->arena, bool, l->items.count);
  for (uint32_t id = 0; id < g->nodes.count; id++)
    before[id] = loop_is_within(l, l->of[id], p->index) && !is_loop_switch(p, id);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t at = 0; at < g->nodes.count; at++) {
      uint32_t id = p->order[at];
      uint32_t inner = before[id] ? loop_child_of(l, p->index, l->of[id]) : 0;
      if (!before[id] || !(behind[inner] || comes_behind(p, id, before)))
        continue;
      before[id] = false;
      behind[inner] = inner != 0;
      changed = true;
    }
  }
  return before;
}

static status bound_value(struct looping *p, struct frame *fr, uint32_t node, uint32_t port, value_id *out) {
  const struct node *n = &fr->graph->nodes.items[node];
  if (!fr->bound[node])
    return fail(INVALID_ARGUMENT, "%s (%s): is not computed inside of the loop", n->name, n->op);
  struct op_call c = {.lw = p->lw, .node = n, .in = &fr->bound[node][port], .in_count = 1};
  return op_input(&c, 0, out);
}

/* What an Enter that is not constant brings in is there in the first turn alone: the loop ends at once, or never gives anything. */
static status check_turns(const struct looping *p, const struct flow *flow, uint32_t decides, value_id v) {
  const struct node *n = &p->outer->graph->nodes.items[decides];
  const bool *known = flow->values.items[v].data;
  if (!loop_is_op(n, "Enter") || node_attr_int(n, "is_constant", 0) || (known && !*known))
    return OK;
  return fail(UNIMPLEMENTED, "%s (%s): decides in the first turn alone whether there is another", n->name, n->op);
}

static status build_condition(struct looping *p, struct flow *flow, bool *has_effects) {
  struct frame *fr = open_region(p, flow);
  p->lw->walk.frame = fr;
  struct walk walk = {.lw = p->lw, .fr = fr, .order = p->order, .needed = p->needed, .before = p->before, .is_condition = true};
  TRY(lower_scope(&walk));
  const struct edge e = p->loop->condition == NO_NODE ? p->decides : fr->graph->nodes.items[p->loop->condition].inputs[0];
  value_id v;
  TRY(bound_value(p, fr, e.node, e.port, &v));
  TRY(check_turns(p, flow, e.node, v));
  vec_push(&flow->results, v);
  *has_effects = *has_effects || fr->effects.count > 0;
  return OK;
}

/* A result that is the memory of a variable is copied: the loop's variables are its own. */
static status own_value(struct looping *p, value_id *v) {
  const struct flow *f = p->lw->walk.flow;
  const struct flow_node *n = f->nodes.items[f->values.items[*v].producer];
  while (n && n->op == FLOW_ALIAS)
    n = f->nodes.items[f->values.items[n->inputs.items[0]].producer];
  struct op_call c = {.lw = p->lw, .node = p->blame};
  return n && n->op == FLOW_READ ? op_copy(&c, *v, v) : OK;
}

static status build_body(struct looping *p, struct flow *flow, bool *has_effects) {
  struct frame *fr = open_region(p, flow);
  bind_switches(p, fr);
  p->lw->walk.frame = fr;
  TRY(lower_scope(&(struct walk){.lw = p->lw, .fr = fr, .order = p->order, .needed = p->needed, .before = p->before}));
  for (uint32_t i = 0; i < p->var_count; i++) {
    struct entering *v = &p->vars[i];
    if (!v->is_param)
      continue;
    if (v->merge == NO_NODE)
      v->result = fr->bound[v->enter][0].value;
    else
      TRY(bound_value(p, fr, v->next, v->next_port, &v->result));
    TRY(own_value(p, &v->result));
    vec_push(&flow->results, v->result);
  }
  *has_effects = fr->effects.count > 0;
  return OK;
}

/* Dims that the body changes become symbols; true when one did. */
static status generalise(struct looping *p, const struct flow *body, bool *changed) {
  struct op_call c = {.lw = p->lw, .node = p->blame};
  for (uint32_t i = 0; i < p->var_count; i++) {
    struct entering *v = &p->vars[i];
    if (!v->is_param)
      continue;
    const struct flow_value *x = &body->values.items[v->result];
    if (x->rank != v->shape.rank)
      return fail(UNIMPLEMENTED, "a loop variable changes its rank from %d to %d", v->shape.rank, x->rank);
    for (int d = 0; d < x->rank; d++)
      if (!v->open[d] && dim_equal(p->lw->dims, x->dims[d], v->shape.dims[d]) != 1) {
        v->shape.dims[d] = op_new_symbol(&c);
        v->open[d] = *changed = true;
      }
  }
  return OK;
}

/* What the body changes is another value in the next turn; true when one was not known to be. */
static void find_changed(struct looping *p, bool *changed) {
  for (uint32_t i = 0; i < p->var_count; i++) {
    struct entering *v = &p->vars[i];
    if (v->merge != NO_NODE || v->rereads || !v->in.shares || !lower_may_have_changed(p->lw, v->in.shares - 1))
      continue;
    v->rereads = *changed = true;
  }
}

static status build_regions(struct looping *p, struct flow **regions, bool *has_effects) {
  struct flow *outer = region_enter(p->lw, NULL); /* one after the other */
  struct frame *frame = p->lw->walk.frame;
  status s = OK;
  bool changed = true;
  while (changed && s == OK) { /* ends: each turn opens a dim, or finds a change */
    changed = false;
    regions[1] = flow_create(p->lw->arena, p->lw->dims);
    s = build_body(p, regions[1], has_effects);
    if (s == OK)
      s = generalise(p, regions[1], &changed);
    find_changed(p, &changed);
  }
  regions[0] = flow_create(p->lw->arena, p->lw->dims);
  if (s == OK)
    s = build_condition(p, regions[0], has_effects);
  region_leave(p->lw, outer);
  p->lw->walk.frame = frame;
  regions[0]->parent = regions[1]->parent = outer;
  return s;
}

/* The Switch that an Exit leaves through; the gradient of what enters a loop has identities between. */
static const struct node *exit_switch(const struct graph *g, uint32_t exit) {
  const struct node *through = &g->nodes.items[g->nodes.items[exit].inputs[0].node];
  while (loop_is_op(through, "Identity"))
    through = &g->nodes.items[through->inputs[0].node];
  return through;
}

/* What decides the loop's turns: its LoopCond, else that which decides the Switch of an Exit. */
static status find_decision(struct looping *p) {
  const struct graph *g = p->outer->graph;
  p->decides = (struct edge){.node = p->loop->condition};
  for (uint32_t i = 0; i < p->loop->exits.count && p->decides.node == NO_NODE; i++) {
    const struct node *through = exit_switch(g, p->loop->exits.items[i]);
    if (!loop_is_op(through, "Switch"))
      continue;
    p->decides = through->inputs[1];
    p->blame = through;
  }
  if (p->decides.node == NO_NODE || p->loop->enters.count == 0)
    return fail(INVALID_ARGUMENT, "has no LoopCond");
  if (p->loop->condition != NO_NODE)
    p->blame = &g->nodes.items[p->loop->condition];
  return OK;
}

/* The Exits give the values of their loop variables after the last turn. */
static void bind_exits(struct looping *p, const struct bound *outputs, flow_id effect) {
  const struct graph *g = p->outer->graph;
  for (uint32_t i = 0; i < p->loop->exits.count; i++) {
    uint32_t id = p->loop->exits.items[i];
    const struct node *through = exit_switch(g, id);
    for (uint32_t v = 0; v < p->var_count; v++) {
      uint32_t variable = p->vars[v].merge == NO_NODE ? p->vars[v].enter : p->vars[v].merge;
      if (loop_is_op(through, "Switch") && variable == through->inputs[0].node)
        frame_outputs(p->lw, p->outer, id)[0] = outputs[v];
    }
    p->outer->lowered[id] = true;
    if (effect) {
      p->outer->token[id] = effect;
      p->outer->token_known[id] = true;
    }
  }
}

/* What the loop's inputs, and its nodes' control inputs from outside, have done. */
static void collect_controls(struct looping *p, struct op_call *c) {
  struct frame *fr = p->outer;
  const struct loops *l = fr->loops;
  for (uint32_t id = 0; id < fr->graph->nodes.count; id++) {
    const struct node *n = &fr->graph->nodes.items[id];
    if (!l->of[id] || !loop_is_within(l, l->of[id], p->index))
      continue;
    for (uint32_t i = 0; i < n->input_count + n->control_count; i++) {
      bool by_data = i < n->input_count;
      uint32_t from = by_data ? n->inputs[i].node : n->controls[i - n->input_count];
      if (fr->lowered[from] && !loop_is_within(l, l->of[from], p->index))
        op_add_control(c, frame_token(p->lw, fr, from, by_data));
    }
  }
}

static void emit_while(struct looping *p, struct flow **regions, bool has_effects) {
  struct lower *lw = p->lw;
  const struct guards *guards = NULL;
  for (uint32_t i = 0; i < p->var_count; i++)
    guards = guards_join(lw, guards, p->vars[i].in.guards);
  struct op_call c = {.lw = lw, .node = p->blame, .guards = guards};
  for (uint32_t i = 0; i < p->outer->entry_controls.count; i++)
    vec_push(&c.controls, p->outer->entry_controls.items[i]);
  for (uint32_t i = 0; i < p->var_count; i++)
    if (p->vars[i].in.after)
      vec_push(&c.controls, p->vars[i].in.after);
  if (has_effects)
    collect_controls(p, &c);
  struct flow_node *n = op_emit(&c, FLOW_WHILE, has_effects);
  n->region_count = 2;
  n->branches = ARENA_ARRAY(lw->arena, struct flow *, 2);
  struct bound *outputs = ARENA_ARRAY(lw->arena, struct bound, p->var_count + 1);
  for (int r = 0; r < 2; r++)
    n->branches[r] = n->regions[r] = regions[r];
  for (uint32_t i = 0; i < p->var_count; i++) {
    struct entering *v = &p->vars[i];
    outputs[i] = v->in;
    outputs[i].guards = guards;
    outputs[i].after = c.effect;
    if (!v->is_param)
      continue;
    if (v->result != regions[1]->params.items[v->param]) /* what the body changes is the loop's own */
      outputs[i].shares = 0;
    vec_push(&n->inputs, v->in.value);
    const struct flow_value *x = &lw->walk.flow->values.items[v->in.value];
    for (int d = 0; d < v->shape.rank; d++)
      if (dim_equal(lw->dims, v->shape.dims[d], x->dims[d]) != 1)
        v->shape.dims[d] = op_new_symbol(&c);
    outputs[i].value = op_add_output(&c, n, v->shape.dtype, v->shape.rank, v->shape.dims);
  }
  if (c.effect)
    vec_push(&p->outer->effects, c.effect);
  bind_exits(p, outputs, c.effect);
  vec_free(&c.controls);
}

static status lower_loop(struct lower *lw, struct frame *fr, uint32_t index, const uint32_t *order, const bool *needed) {
  struct looping p = {.lw = lw, .outer = fr, .loop = &fr->loops->items.items[index], .index = index, .order = order, .needed = needed};
  TRY(find_decision(&p));
  struct flow *regions[2] = {NULL, NULL};
  bool has_effects = false;
  TRY(collect_entering(&p));
  for (uint32_t i = 0; i < p.var_count; i++)
    if (p.vars[i].in.dead) { /* a loop on the side of a cond that is not taken */
      struct bound *dead = ARENA_ARRAY(lw->arena, struct bound, p.var_count + 1);
      for (uint32_t j = 0; j < p.var_count; j++)
        dead[j].dead = true;
      bind_exits(&p, dead, 0);
      return OK;
    }
  p.before = find_before(&p);
  TRY(shape_entering(&p));
  TRY(build_regions(&p, regions, &has_effects));
  emit_while(&p, regions, has_effects);
  return OK;
}

/* These ops mean nothing by themselves: whoever gets here has found one outside of a whole loop, or in a frame that does not turn,
 * where they hand on what comes. */
status build_identity(struct op_call *c); /* of ops.def, as this */

status build_loop_part(struct op_call *c) {
  const struct frame *fr = c->lw->walk.frame;
  uint32_t id = (uint32_t)(c->node - fr->graph->nodes.items);
  if (fr->loops && fr->loops->plain[id])
    return build_identity(c);
  return fail(INVALID_ARGUMENT, "is no part of a loop with Enter, Merge, LoopCond, Switch and Exit");
}
