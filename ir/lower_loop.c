/* lower_loop.c: loops of TensorFlow 1 (Enter, Merge, Switch, NextIteration, Exit in one frame) become the While region op.
 *
 * A node's loop is the frame it runs in: Enter goes into one, Exit leaves it, everything else is where its inputs are. From
 * outside a loop is one node: its inputs are those of its Enters, its outputs its Exits. Inside, each Merge of an Enter and a
 * NextIteration is a loop variable; other Enters bring in what does not change. The condition is what LoopCond needs of the
 * variables, the body what the NextIterations need of the other side of the loop's Switches. Loops inside the body are
 * lowered in the same way. */
#include <stdlib.h>
#include <string.h>

#include "ir/lower_frame.h"

struct loop {
  const char *name;       /* frame_name */
  uint32_t parent;
  VEC(uint32_t) enters, merges, exits; /* nodes; merges: loop variables */
  uint32_t condition;     /* the LoopCond node */
  VEC(uint32_t) needs;    /* nodes outside that must be lowered before */
  bool lowered;
};
struct loops {
  VEC(struct loop) items; /* items[0]: outside of all */
  uint32_t *of;           /* per node */
  bool *plain;            /* per node: of a frame that does not turn: Enter and Exit only hand on */
};

static bool is_op(const struct node *n, const char *name) {
  return strcmp(n->op, name) == 0 || (strncmp(n->op, "Ref", 3) == 0 && strcmp(n->op + 3, name) == 0);
}

/* ---- finding ---- */

static uint32_t depth_of(const struct loops *l, uint32_t loop) {
  uint32_t depth = 0;
  for (; loop; loop = l->items.items[loop].parent)
    depth++;
  return depth;
}

static uint32_t loop_named(struct loops *l, uint32_t parent, const char *name) {
  for (uint32_t i = 1; i < l->items.count; i++)
    if (l->items.items[i].parent == parent && strcmp(l->items.items[i].name, name) == 0)
      return i;
  vec_push(&l->items, (struct loop){.name = name, .parent = parent, .condition = NO_NODE});
  return l->items.count - 1;
}

static uint32_t deepest_input(const struct loops *l, const struct graph *g, const struct node *n, const bool *seen) {
  uint32_t best = 0;
  for (uint32_t i = 0; i < n->input_count + n->control_count; i++) {
    uint32_t from = i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count];
    uint32_t loop = l->of[from];
    if (!seen[from])
      continue; /* a back edge */
    if (is_op(&g->nodes.items[from], "Exit"))
      loop = l->of[from]; /* set to the loop that it leaves to */
    if (depth_of(l, loop) > depth_of(l, best))
      best = loop;
  }
  return best;
}

static void note_structure(struct loops *l, const struct graph *g, uint32_t id) {
  const struct node *n = &g->nodes.items[id];
  struct loop *loop = &l->items.items[l->of[id]];
  if (is_op(n, "Enter"))
    vec_push(&loop->enters, id);
  if (is_op(n, "LoopCond"))
    loop->condition = id;
  if (is_op(n, "Merge"))
    for (uint32_t i = 0; i < n->input_count; i++)
      if (is_op(&g->nodes.items[n->inputs[i].node], "NextIteration"))
        vec_push(&loop->merges, id);
}

/* Frames without a LoopCond and without loop variables are no loops: their nodes belong to the loop around. */
static void dissolve_plain(struct loops *l, struct arena *arena, const struct graph *g) {
  l->plain = ARENA_ARRAY(arena, bool, g->nodes.count + 1);
  for (uint32_t f = 1; f < l->items.count; f++) {
    struct loop *loop = &l->items.items[f];
    if (loop->condition != NO_NODE || loop->merges.count)
      continue;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
      if (l->of[i] == f) {
        l->plain[i] = is_op(&g->nodes.items[i], "Enter");
        l->of[i] = loop->parent;
      }
    }
    for (uint32_t i = 0; i < loop->exits.count; i++)
      l->plain[loop->exits.items[i]] = true;
    for (uint32_t i = 1; i < l->items.count; i++)
      if (l->items.items[i].parent == f)
        l->items.items[i].parent = loop->parent;
  }
}

status loops_find(struct lower *lw, const struct graph *g, const uint32_t *order, struct loops **out) {
  bool any = false;
  for (uint32_t i = 0; i < g->nodes.count; i++)
    any = any || is_op(&g->nodes.items[i], "Enter");
  *out = NULL;
  if (!any)
    return OK;
  struct loops *l = ARENA_NEW(lw->arena, struct loops);
  vec_push(&l->items, (struct loop){.name = ""});
  l->of = ARENA_ARRAY(lw->arena, uint32_t, g->nodes.count + 1);
  bool *seen = calloc(g->nodes.count + 1, 1);
  for (uint32_t i = 0; i < g->nodes.count; i++) {
    uint32_t id = order[i];
    const struct node *n = &g->nodes.items[id];
    uint32_t inner = deepest_input(l, g, n, seen);
    seen[id] = true;
    if (is_op(n, "Enter")) {
      const char *name = node_attr_string(n, "frame_name", "");
      l->of[id] = loop_named(l, inner, name);
    } else if (is_op(n, "Exit")) {
      vec_push(&l->items.items[inner].exits, id);
      l->of[id] = l->items.items[inner].parent;
    } else {
      l->of[id] = inner;
    }
    note_structure(l, g, id);
  }
  free(seen);
  dissolve_plain(l, lw->arena, g);
  *out = l;
  return OK;
}

/* ---- order with loops as single nodes ---- */

/* The child of `scope` that holds `loop`, or 0 when `loop` is the scope itself. */
static uint32_t child_of(const struct loops *l, uint32_t scope, uint32_t loop) {
  while (loop && l->items.items[loop].parent != scope)
    loop = l->items.items[loop].parent;
  return loop;
}
static bool is_within(const struct loops *l, uint32_t loop, uint32_t scope) {
  for (; loop != scope && loop; loop = l->items.items[loop].parent)
    ;
  return loop == scope;
}

static status lower_loop(struct lower *lw, struct frame *fr, uint32_t index, const uint32_t *order, const bool *needed);

struct walk {
  struct lower *lw;
  struct frame *fr;
  const uint32_t *order;
  const bool *needed;
  uint8_t *state; /* per node, then per loop: 1 open, 2 done */
};

static status visit_node(struct walk *w, uint32_t id);

/* The inputs of a loop's Enters, and control inputs from outside of any of its nodes. */
static status visit_loop_inputs(struct walk *w, uint32_t loop) {
  const struct graph *g = w->fr->graph;
  const struct loops *l = w->fr->loops;
  for (uint32_t id = 0; id < g->nodes.count; id++) {
    const struct node *n = &g->nodes.items[id];
    if (!w->needed[id] || !l->of[id] || !is_within(l, l->of[id], loop))
      continue;
    for (uint32_t i = 0; i < n->input_count + n->control_count; i++) {
      uint32_t from = i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count];
      if (!is_within(l, l->of[from], loop) || (l->of[from] == w->fr->scope && !loop))
        TRY(visit_node(w, from));
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
  if (w->state[id] || w->fr->lowered[id])
    return OK;
  if (l->of[id] != w->fr->scope) {
    uint32_t child = child_of(l, w->fr->scope, l->of[id]);
    return child ? visit_loop(w, child) : OK;
  }
  w->state[id] = 1;
  if (is_op(n, "Exit") && !l->plain[id]) {
    w->state[id] = 2;
    uint32_t child = child_of(l, w->fr->scope, l->of[n->inputs[0].node]);
    return child ? visit_loop(w, child) : OK;
  }
  for (uint32_t i = 0; i < n->input_count + n->control_count; i++)
    TRY(visit_node(w, i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count]));
  w->state[id] = 2;
  return frame_lower_node(w->lw, w->fr, id);
}

static bool is_structure(const struct node *n) {
  return is_op(n, "Enter") || is_op(n, "NextIteration") || is_op(n, "LoopCond");
}

status loops_lower_scope(struct lower *lw, struct frame *fr, const uint32_t *order, const bool *needed) {
  struct walk w = {.lw = lw, .fr = fr, .order = order, .needed = needed};
  w.state = calloc(fr->graph->nodes.count + fr->loops->items.count + 1, 1);
  status s = OK;
  for (uint32_t i = 0; i < fr->graph->nodes.count && s == OK; i++) {
    uint32_t id = order[i];
    if (needed[id] && is_within(fr->loops, fr->loops->of[id], fr->scope) && !(fr->loops->of[id] == fr->scope && fr->scope && !fr->loops->plain[id] && is_structure(&fr->graph->nodes.items[id])))
      s = visit_node(&w, id);
  }
  free(w.state);
  return s;
}

/* ---- one loop ---- */

/* What comes into a loop: one for each Enter. */
struct entering {
  uint32_t enter;
  uint32_t merge;         /* the loop variable's Merge; NO_NODE: it does not change */
  uint32_t next;          /* the node that feeds the NextIteration */
  uint32_t next_port;
  struct bound in;        /* outside */
  struct flow_value shape;
  bool open[LIMIT_RANK];  /* dims that change from turn to turn: symbols, which each turn binds anew */
  bool is_param;          /* a value; else a variable or a constant */
  value_id result;        /* in the body */
  uint32_t param;         /* its number among the parameters */
};
struct looping {
  struct lower *lw;
  struct frame *outer;
  struct loop *loop;
  uint32_t index;
  const uint32_t *order;
  const bool *needed;
  struct entering *vars;
  uint32_t var_count, param_count;
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
        if (merge->input_count == 2 && merge->inputs[k].node == id && is_op(other, "NextIteration")) {
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
    v->shape = p->lw->flow->values.items[v->in.value];
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
  lw->flow = flow;
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
    struct bound b = {.var = v->in.var, .maker = v->in.maker};
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

/* The Switches of the loop itself: inside the body their true side is the loop variable. */
static void bind_switches(struct looping *p, struct frame *fr) {
  const struct graph *g = fr->graph;
  for (uint32_t id = 0; id < g->nodes.count; id++) {
    const struct node *n = &g->nodes.items[id];
    if (fr->loops->of[id] != p->index || !is_op(n, "Switch") || n->inputs[1].node != p->loop->condition)
      continue;
    struct bound *from = fr->bound[n->inputs[0].node];
    if (!from)
      continue;
    struct bound *out = frame_outputs(p->lw, fr, id);
    out[0] = out[1] = from[n->inputs[0].port];
    fr->lowered[id] = fr->token_known[id] = true;
  }
}

/* Everything that LoopCond's input needs. */
static void mark_condition(const struct looping *p, bool *needed) {
  const struct graph *g = p->outer->graph;
  VEC(uint32_t) stack = {0};
  vec_push(&stack, g->nodes.items[p->loop->condition].inputs[0].node);
  while (stack.count) {
    uint32_t id = stack.items[--stack.count];
    const struct node *n = &g->nodes.items[id];
    if (needed[id] || (p->outer->loops->of[id] == p->index && (is_op(n, "Enter") || is_op(n, "Merge"))))
      continue;
    needed[id] = true;
    for (uint32_t i = 0; i < n->input_count; i++)
      vec_push(&stack, n->inputs[i].node);
    for (uint32_t i = 0; i < n->control_count; i++)
      vec_push(&stack, n->controls[i]);
  }
  vec_free(&stack);
}

static status bound_value(struct looping *p, struct frame *fr, uint32_t node, uint32_t port, value_id *out) {
  const struct node *n = &fr->graph->nodes.items[node];
  if (!fr->bound[node])
    return fail(INVALID_ARGUMENT, "%s (%s): is not computed inside of the loop", n->name, n->op);
  struct op_call c = {.lw = p->lw, .node = n, .in = &fr->bound[node][port], .in_count = 1};
  return op_input(&c, 0, out);
}

static status build_condition(struct looping *p, struct flow *flow) {
  bool *needed = ARENA_ARRAY(p->lw->arena, bool, p->outer->graph->nodes.count + 1);
  mark_condition(p, needed);
  struct frame *fr = open_region(p, flow);
  p->lw->frame = fr;
  TRY(loops_lower_scope(p->lw, fr, p->order, needed));
  const struct edge e = fr->graph->nodes.items[p->loop->condition].inputs[0];
  value_id v;
  TRY(bound_value(p, fr, e.node, e.port, &v));
  vec_push(&flow->results, v);
  return OK;
}

/* A result that is the memory of a variable is copied: the loop's variables are its own. */
static status own_value(struct looping *p, value_id *v) {
  const struct flow *f = p->lw->flow;
  const struct flow_node *n = f->nodes.items[f->values.items[*v].producer];
  while (n && n->op == FLOW_ALIAS)
    n = f->nodes.items[f->values.items[n->inputs.items[0]].producer];
  struct op_call c = {.lw = p->lw, .node = p->blame};
  return n && n->op == FLOW_READ ? op_copy(&c, *v, v) : OK;
}

static status build_body(struct looping *p, struct flow *flow, bool *has_effects) {
  bool *needed = ARENA_ARRAY(p->lw->arena, bool, p->outer->graph->nodes.count + 1);
  memcpy(needed, p->needed, p->outer->graph->nodes.count);
  struct frame *fr = open_region(p, flow);
  bind_switches(p, fr);
  p->lw->frame = fr;
  TRY(loops_lower_scope(p->lw, fr, p->order, needed));
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

static status build_regions(struct looping *p, struct flow **regions, bool *has_effects) {
  struct flow *outer = p->lw->flow;
  struct frame *frame = p->lw->frame;
  status s = OK;
  bool changed = true;
  if (p->lw->region_depth++ == 0)
    p->lw->outer_symbols = dims_symbol_count(p->lw->dims);
  while (changed && s == OK) { /* ends: each turn opens a dim */
    changed = false;
    regions[1] = flow_create(p->lw->arena, p->lw->dims);
    s = build_body(p, regions[1], has_effects);
    if (s == OK)
      s = generalise(p, regions[1], &changed);
  }
  regions[0] = flow_create(p->lw->arena, p->lw->dims);
  if (s == OK)
    s = build_condition(p, regions[0]);
  p->lw->region_depth--;
  p->lw->flow = outer;
  p->lw->frame = frame;
  regions[0]->parent = regions[1]->parent = outer;
  return s;
}

/* The Switch that an Exit leaves through; the gradient of what enters a loop has identities between. */
static const struct node *exit_switch(const struct graph *g, uint32_t exit) {
  const struct node *through = &g->nodes.items[g->nodes.items[exit].inputs[0].node];
  while (is_op(through, "Identity"))
    through = &g->nodes.items[through->inputs[0].node];
  return through;
}

/* The Exits give the values of their loop variables after the last turn. */
static void bind_exits(struct looping *p, const struct bound *outputs, flow_id effect) {
  const struct graph *g = p->outer->graph;
  for (uint32_t i = 0; i < p->loop->exits.count; i++) {
    uint32_t id = p->loop->exits.items[i];
    const struct node *through = exit_switch(g, id);
    for (uint32_t v = 0; v < p->var_count; v++)
      if (is_op(through, "Switch") && p->vars[v].merge == through->inputs[0].node)
        frame_outputs(p->lw, p->outer, id)[0] = outputs[v];
    p->outer->lowered[id] = true;
    if (effect) {
      p->outer->token[id] = effect;
      p->outer->token_known[id] = true;
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
    vec_push(&n->inputs, v->in.value);
    const struct flow_value *x = &lw->flow->values.items[v->in.value];
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
  if (p.loop->condition == NO_NODE || p.loop->enters.count == 0)
    return fail(INVALID_ARGUMENT, "has no LoopCond");
  p.blame = &fr->graph->nodes.items[p.loop->condition];
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
  TRY(shape_entering(&p));
  TRY(build_regions(&p, regions, &has_effects));
  emit_while(&p, regions, has_effects);
  return OK;
}

/* These ops mean nothing by themselves: whoever gets here has found one outside of a whole loop, or in a frame that does not turn,
 * where they hand on what comes. */
status build_identity(struct op_call *c); /* of ops.def, as this */

status build_loop_part(struct op_call *c) {
  const struct frame *fr = c->lw->frame;
  uint32_t id = (uint32_t)(c->node - fr->graph->nodes.items);
  if (fr->loops && fr->loops->plain[id])
    return build_identity(c);
  return fail(INVALID_ARGUMENT, "is no part of a loop with Enter, Merge, LoopCond, Switch and Exit");
}
