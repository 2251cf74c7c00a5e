/* lower_frame.c: frames, regions, and lowerings apart: what the walk opens and closes. */
#include "ir/lower/lower_frame.h"

#include <string.h>

#include "ir/lower/lower_state.h"

struct frame *frame_create(struct lower *lw, const struct graph *graph) {
  struct frame *fr = ARENA_NEW(lw->arena, struct frame);
  uint32_t n = graph->nodes.count + 1;
  fr->graph = graph;
  fr->flow = lw->walk.flow;
  fr->bound = ARENA_ARRAY(lw->arena, struct bound *, n);
  fr->lowered = ARENA_ARRAY(lw->arena, bool, n);
  fr->token = ARENA_ARRAY(lw->arena, flow_id, n);
  fr->token_known = ARENA_ARRAY(lw->arena, bool, n);
  fr->data_token = ARENA_ARRAY(lw->arena, flow_id, n);
  fr->data_token_known = ARENA_ARRAY(lw->arena, bool, n);
  fr->has_effect = ARENA_ARRAY(lw->arena, bool, n);
  fr->is_aside = ARENA_ARRAY(lw->arena, bool, n);
  fr->guards = ARENA_ARRAY(lw->arena, const struct guards *, n);
  fr->dead = ARENA_ARRAY(lw->arena, bool, n);
  fr->parent = lw->walk.frame;
  fr->older = lw->walk.newest_frame;
  lw->walk.newest_frame = fr;
  fr->task = TASK_DRIVER;
  return fr;
}

void frame_drop(struct lower *lw, struct frame *fr) { lw->walk.newest_frame = fr->older; }

/* ---- regions ---- */

/* Symbols that are there before the outermost region begins mean the same everywhere. */
struct flow *region_enter(struct lower *lw, struct flow *region) {
  struct flow *outer = lw->walk.flow;
  if (lw->walk.region_depth++ == 0)
    lw->facts.outer_symbols = dims_symbol_count(lw->dims);
  lw->walk.flow = region;
  return outer;
}

void region_leave(struct lower *lw, struct flow *outer) {
  lw->walk.region_depth--;
  lw->walk.flow = outer;
}

/* ---- outputs ---- */

struct bound *frame_outputs(struct lower *lw, struct frame *fr, uint32_t node) {
  if (!fr->bound[node])
    fr->bound[node] = ARENA_ARRAY(lw->arena, struct bound, fr->graph->nodes.items[node].output_count + 1);
  return fr->bound[node];
}

static void note_use(const struct graph *g, bool **used, struct edge e) {
  if (e.port < g->nodes.items[e.node].output_count)
    used[e.node][e.port] = true;
}

static bool **find_uses(const struct frame *fr) {
  const struct graph *g = fr->graph;
  bool **used = ARENA_ARRAY(g->arena, bool *, g->nodes.count + 1);
  for (uint32_t n = 0; n < g->nodes.count; n++)
    used[n] = ARENA_ARRAY(g->arena, bool, g->nodes.items[n].output_count + 1);
  for (uint32_t i = 0; i < fr->wanted_count; i++)
    note_use(g, used, fr->wanted[i]);
  for (uint32_t n = 0; n < g->nodes.count; n++)
    for (uint32_t i = 0; fr->needed[n] && i < g->nodes.items[n].input_count; i++)
      note_use(g, used, g->nodes.items[n].inputs[i]);
  return used;
}

bool frame_output_used(struct frame *fr, const struct node *node, uint32_t port) {
  const struct graph *g = fr->graph;
  if (node < g->nodes.items || node >= g->nodes.items + g->nodes.count)
    return true;
  fr->used = fr->used ? fr->used : find_uses(fr);
  return fr->used[node - g->nodes.items][port];
}

bool frame_only_takes(const struct frame *fr, const struct node *node, uint32_t port, const char *op) {
  const struct graph *g = fr->graph;
  bool here = node >= g->nodes.items && node < g->nodes.items + g->nodes.count;
  uint32_t index = here ? (uint32_t)(node - g->nodes.items) : 0;
  for (uint32_t i = 0; here && i < fr->wanted_count; i++)
    here = fr->wanted[i].node != index || fr->wanted[i].port != port;
  for (uint32_t n = 0; here && n < g->nodes.count; n++)
    for (uint32_t i = 0; fr->needed[n] && i < g->nodes.items[n].input_count; i++) {
      const struct edge e = g->nodes.items[n].inputs[i];
      here = here && (e.node != index || e.port != port || strcmp(g->nodes.items[n].op, op) == 0);
    }
  return here;
}

/* ---- state ---- */

const char *op_state_name(const struct op_call *c) {
  const struct frame *fr = c->lw->walk.frame;
  bool shared = fr && fr->state && strlen(c->node->name) > fr->prefix;
  return shared ? arena_printf(c->lw->arena, "%s/%s", fr->state, c->node->name + fr->prefix) : c->node->name;
}

uint32_t lower_object_number(const struct lower *lw, const struct node *maker) {
  uint32_t i = 0;
  while (i < lw->facts.objects.count && lw->facts.objects.items[i]->maker != maker)
    i++;
  return i;
}

struct object_shapes *lower_object(struct lower *lw, const struct node *maker) {
  if (!maker)
    return NULL;
  uint32_t number = lower_object_number(lw, maker);
  if (number < lw->facts.objects.count)
    return lw->facts.objects.items[number];
  struct object_shapes *o = ARENA_NEW(lw->arena, struct object_shapes);
  o->maker = maker;
  vec_push(&lw->facts.objects, o);
  return o;
}

bool lower_join_element(struct op_call *c, struct flow_value *known, const struct flow_value *x) {
  bool changed = false;
  for (int d = 0; d < known->rank && known->rank == x->rank; d++)
    if (known->dims[d] != NO_DIM && (x->dims[d] == NO_DIM || dim_equal(op_dims(c), known->dims[d], x->dims[d]) != 1)) {
      known->dims[d] = NO_DIM;
      changed = true;
    }
  return changed;
}

void lower_note_element(struct op_call *c, struct object_shapes *o, struct flow_value element) {
  o->ranks |= ranks_of(element.rank);
  if (o->count && o->said && o->values->rank == element.rank) { /* the first element fills in what was left open */
    for (int d = 0; d < element.rank; d++)
      if (o->values->dims[d] == NO_DIM)
        o->values->dims[d] = element.dims[d];
    o->said = false;
    return;
  }
  if (o->count) {
    lower_join_element(c, o->values, &element);
    return;
  }
  o->values = ARENA_ARRAY(op_arena(c), struct flow_value, OBJECT_KEYED_MAX + 1);
  o->values[o->count++] = element;
}

static bool is_list(const struct node *maker) { return maker && strstr(maker->op, "TensorList"); }

bool lower_join_list(struct op_call *c, const struct node *list, const struct node *other) {
  if (list == other || !is_list(list) || !is_list(other))
    return false;
  struct object_shapes *o = lower_object(c->lw, list), *p = lower_object(c->lw, other);
  rank_set ranks = o->ranks | p->ranks;
  bool changed = ranks != o->ranks || (!o->count && p->count) || (p->makers && !o->makers);
  if (p->count && o->count && !o->said)
    changed |= lower_join_element(c, o->values, p->values);
  else if (p->count)
    lower_note_element(c, o, *p->values);
  o->ranks = ranks;
  o->makers = o->makers ? o->makers : p->makers;
  o->count = o->count > 1 ? 1 : o->count; /* which element was which does not hold for the other */
  o->pushed = (struct origin){0};
  o->pushed_by = "";
  return changed;
}

const struct node *lower_either_list(struct op_call *c, const struct node *a, const struct node *b) {
  if (a == b || !is_list(a) || !is_list(b))
    return a;
  bool is_a = lower_object_number(c->lw, a) < lower_object_number(c->lw, b);
  lower_join_list(c, is_a ? a : b, is_a ? b : a);
  return is_a ? a : b;
}

/* Most values are no such scalars: the list stays short. */
static bool has_origin(const struct flow *flow, value_id v) {
  const struct flow_value *x = &flow->values.items[v];
  return v && x->rank == 0 && (x->dtype == DTYPE_BOOL || x->dtype == DTYPE_INT32 || x->dtype == DTYPE_VARIANT);
}
struct origin op_origin(const struct op_call *c, value_id v) {
  const struct origin here = {c->lw->walk.flow, v};
  for (uint32_t i = has_origin(here.flow, v) ? c->lw->facts.origins.count : 0; i-- > 0;)
    if (origin_equal(c->lw->facts.origins.items[i].value, here))
      return c->lw->facts.origins.items[i].of;
  return here;
}
void lower_note_origin(struct lower *lw, const struct flow *flow, value_id v, struct origin of) {
  const struct origin value = {flow, v};
  if (of.flow && has_origin(flow, v) && !origin_equal(of, value))
    vec_push(&lw->facts.origins, ((struct known_origin){value, of}));
}

struct lower lower_apart(const struct lower *lw) {
  struct lower apart = *lw;
  memset(&apart.facts.objects, 0, sizeof apart.facts.objects);
  memset(&apart.facts.origins, 0, sizeof apart.facts.origins);
  memset(&apart.facts.met, 0, sizeof apart.facts.met);
  memset(&apart.facts.given_ranks, 0, sizeof apart.facts.given_ranks);
  memset(&apart.facts.given, 0, sizeof apart.facts.given);
  memset(&apart.facts.changed, 0, sizeof apart.facts.changed);
  memset(&apart.facts.temporaries, 0, sizeof apart.facts.temporaries);
  apart.walk.awaiting = NULL; /* it has other lists */
  return apart;
}

void lower_free(struct lower *lw) {
  vec_free(&lw->facts.objects);
  vec_free(&lw->facts.origins);
  vec_free(&lw->facts.met);
  vec_free(&lw->facts.given_ranks);
  vec_free(&lw->facts.given);
  vec_free(&lw->facts.changed);
  vec_free(&lw->facts.temporaries);
}
