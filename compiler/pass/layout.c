/* layout.c: the pass `layout`: second factors of contractions are brought into panels once; see layout.h.
 *
 * A reader is a kernel and its buffer whose value is a constant, what a variable holds, or comes into a loop from in front of it. Readers
 * of one value that want the same panels are one wish, which is granted when all of them together gain more than the panels cost.
 * Who gains nothing joins a variable's wish where that costs less than having it dense. */
#include "compiler/pass/layout.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/flow_kernel.h"
#include "compiler/loop/loop_form.h"
#include "compiler/edit/part_walk.h"
#include "compiler/loop/loop_edit.h"
#include "compiler/pass/layout_wish.h"
#include "compiler/schedule/choose.h"

#define TURNS_USUAL 8         /* of a loop that does not say */
#define VECTORS_MAX 3         /* of the widest CPU in a panel: two load little; one or three where they leave fewer lanes to nothing */
#define COPY_BYTES (16 << 20) /* of a constant that somebody else reads as it is: the program has it twice */

/* ---- sources ---- */

static bool is_handed_on(const struct flow_node *n, uint32_t i) {
  return n->op == FLOW_WHILE && loop_is_regular(n) && i < loop_var_count(n) && loop_hands_on(n, i);
}
/* Where the value is what a variable holds, under whatever shape: that, and what is read of it. */
static void find_variable(const struct layouter *l, struct source *s) {
  const struct flow *f = s->scope->flow;
  value_id root = flow_root(f, s->value);
  const struct flow_node *n = f->nodes.items[f->values.items[root].producer];
  if (!n || n->op != FLOW_READ || !l->held[n->var].may || f->values.items[root].dtype != f->values.items[s->value].dtype)
    return;
  s->var = n->var + 1;
  s->read = root;
}
/* False: the value is made where it is read, or differs from turn to turn. */
static bool find_source(const struct layouter *l, struct scope *s, value_id v, struct source *out) {
  bool through_if = false, through_loop = false;
  for (;; s = s->outer) {
    const struct flow_value *x = &s->flow->values.items[v];
    *out = (struct source){.data = x->data, .scope = s, .value = v};
    if (x->data || x->producer || !s->outer) {
      if (!x->data && !through_if)
        find_variable(l, out);
      return x->data || out->var || (through_loop && !through_if);
    }
    const struct flow_node *n = s->outer->flow->nodes.items[s->node];
    if (n->op != FLOW_IF && !is_handed_on(n, x->index))
      return through_loop && !through_if;
    through_if = through_if || n->op == FLOW_IF;
    through_loop = through_loop || n->op == FLOW_WHILE;
    v = n->inputs.items[x->index + (n->op == FLOW_IF)];
  }
}
static bool is_same_source(const struct source *a, const struct source *b) {
  if (a->var || b->var)
    return a->var == b->var;
  return a->data || b->data ? a->data == b->data : a->scope == b->scope && a->value == b->value;
}

static double turns_of(const struct scope *s) {
  const struct flow_node *n = s->outer->flow->nodes.items[s->node];
  dim turns = n->op == FLOW_WHILE ? loop_turns(s->outer->flow, n) : NO_DIM;
  int64_t count;
  if (n->op != FLOW_WHILE)
    return 1;
  return turns != NO_DIM && dim_is_const(s->flow->dims, turns, &count) ? (double)count : TURNS_USUAL;
}
double layout_runs(const struct scope *s, const struct scope *around) {
  double runs = 1;
  for (; s->outer && s != around; s = s->outer)
    runs *= turns_of(s);
  return runs;
}

/* ---- what may be read before its loop turns ---- */

static bool needs_variable(const struct flow_node *n, uint32_t var) {
  if (n->op != FLOW_READ && n->op != FLOW_KERNEL)
    return false;
  for (uint32_t i = 0; i < node_touch_count(n); i++) {
    uint32_t touched = UINT32_MAX;
    if (node_touch(n, i, &touched) != TOUCH_NONE && touched == var)
      return n->op == FLOW_KERNEL || n->imm == READ_NOW;
  }
  return false;
}
/* A variable that is read for a loop alone may have no value as long as the loop makes no turn. Panels need it: only where a turn is
 * certain, or where the step needs it anyway. */
static bool is_certain(const struct reader *r, const struct source *from) {
  const struct flow *f = from->scope->flow;
  const struct flow_node *read = f->nodes.items[f->values.items[from->value].producer];
  if (!read || read->op != FLOW_READ || read->imm != READ_IN_LOOP)
    return true;
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && !f->nodes.items[id]->guard_count && needs_variable(f->nodes.items[id], read->var))
      return true;
  for (const struct scope *s = r->scope; s != from->scope; s = s->outer) {
    dim turns = loop_turns(s->outer->flow, s->outer->flow->nodes.items[s->node]);
    int64_t count;
    if (turns == NO_DIM || !dim_is_const(f->dims, turns, &count) || count < 1)
      return false;
  }
  return true;
}

/* ---- gains ---- */

/* Of the kernel's nest `number`; in panels: 0 where it has no schedule. */
static double nest_cycles(const struct kernel *k, int number, const struct machine *machine, struct arena *arena, bool in_panels) {
  struct kernel_uses uses;
  struct nest n = nest_first(k, &uses, machine, arena);
  struct candidates all = {0};
  while (n.number < number)
    nest_next(&n);
  nest_candidates(&n, &all);
  uint32_t best = candidates_cheapest(&n, &all);
  double cycles = in_panels && best == 0 ? 0 : all.items.items[best].cycles;
  vec_free(&all.items);
  return cycles;
}
/* The buffer that the value is bound to: alone (takes_once). */
static uint32_t buffer_of(const struct reader *r) {
  uint32_t i = 0;
  while (r->node->args[i].value != r->value)
    i++;
  return i;
}
/* Cycles that one run of the kernel saves, on the CPU that saves least; below 0: that it loses. before: what it takes now, by CPU. False:
 * one of them has no schedule for it. */
static bool run_gain(const struct layouter *l, const struct reader *r, const struct panels *panels, const double *before, double *least) {
  struct build *b = l->build;
  struct flow_node trial = *r->node; /* its lists are the clone's own */
  bool is_known = true;
  *least = 0;
  memset(&trial.inputs, 0, sizeof trial.inputs);
  memset(&trial.outputs, 0, sizeof trial.outputs);
  panels_read(r->scope->flow, &trial, buffer_of(r), panels, r->value);
  for (uint32_t i = 0; i < b->cpus.count; i++) {
    double after = nest_cycles(trial.kernel, r->number, cpu_machine(&b->cpus, i), &b->arena, true);
    is_known = is_known && after > 0;
    *least = i == 0 || before[i] - after < *least ? before[i] - after : *least;
  }
  vec_free(&trial.inputs);
  vec_free(&trial.outputs);
  return is_known;
}
double layout_pack_cycles(const struct layouter *l, const struct panels *p, enum dtype dtype) {
  struct product_work w = {.batch = 1, .m = 1, .k = 1, .width = (double)p->count, .bytes = (double)dtype_size(dtype)};
  double most = 0;
  for (int i = 0; i < p->rank; i++)
    w.k *= i == p->lanes ? 1 : (double)p->dims[i];
  for (uint32_t i = 0; i < l->build->cpus.count; i++) {
    double cycles = product_pack_cycles(cpu_machine(&l->build->cpus, i), &w);
    most = cycles > most ? cycles : most;
  }
  return most;
}

/* ---- wishes ---- */

/* Elements of the longest vector of a CPU of the build, so that all have whole ones; 0: one has no schedules for panels. */
static int64_t vector_width(const struct build *b, enum dtype dtype) {
  int64_t widest = 0;
  for (uint32_t i = 0; i < b->cpus.count; i++) {
    const struct machine *machine = cpu_machine(&b->cpus, i);
    int64_t lanes = machine->vector_bytes / (int64_t)dtype_size(dtype);
    if (!machine->has_fma)
      return 0;
    widest = lanes > widest ? lanes : widest;
  }
  return widest;
}
static bool takes_once(const struct reader *r) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < r->node->kernel->buffers.count; i++)
    count += r->node->args[i].value == r->value;
  return r->value && count == 1;
}
/* What a run of its nest takes now, by CPU. */
static const double *cycles_before(const struct layouter *l, const struct reader *r) {
  struct build *b = l->build;
  double *before = ARENA_ARRAY(&b->arena, double, b->cpus.count);
  for (uint32_t i = 0; i < b->cpus.count; i++)
    before[i] = nest_cycles(r->node->kernel, r->number, cpu_machine(&b->cpus, i), &b->arena, false);
  return before;
}
/* The panels that gain most; 0: none gain. */
static double best_panels(const struct layouter *l, const struct reader *r, const struct contraction *c, struct panels *out) {
  int64_t width = vector_width(l->build, c->dtype);
  const double *before = width ? cycles_before(l, r) : NULL;
  double most = 0, gain;
  struct panels panels;
  for (int vectors = 1; width && vectors <= VECTORS_MAX; vectors++) {
    if (panels_of(c, width * vectors, &panels) && run_gain(l, r, &panels, before, &gain) && gain > most) {
      most = gain;
      *out = panels;
    }
  }
  return most;
}
static bool is_whole(const struct panels *p) { return p->first == 0 && p->count == p->dims[p->lanes]; }
static void add_reader(struct layouter *l, const struct reader *r, const struct panels *panels, enum dtype dtype) {
  uint32_t i = 0;
  while (i < l->wishes.count &&
         !(is_same_source(&l->wishes.items[i].source, &r->source) && panels_equal(&l->wishes.items[i].panels, panels)))
    i++;
  if (i == l->wishes.count)
    vec_push(&l->wishes, ((struct wish){.source = r->source, .panels = *panels, .dtype = dtype}));
  l->wishes.items[i].gain += r->gain;
  vec_push(&l->wishes.items[i].readers, *r);
}
/* In front of the loop that the reader is in, or loops around it, the value may be brought into panels in each step. */
static bool is_invariant(const struct reader *r) { return r->scope != r->source.scope && is_certain(r, &r->source); }
static void add_wish(struct layouter *l, struct reader *r, const struct contraction *c) {
  struct panels panels;
  if (!takes_once(r) || !find_source(l, r->scope, r->value, &r->source))
    return;
  bool is_known = r->source.data || is_invariant(r);
  if (!is_known && !r->source.var)
    return;
  r->gain = best_panels(l, r, c, &panels) * layout_runs(r->scope, NULL);
  if (r->gain <= 0 && r->source.var)
    vec_push(&l->others, *r);
  if (r->gain <= 0)
    return;
  r->source.var = is_whole(&panels) ? r->source.var : 0; /* a variable lies in panels as a whole */
  if (is_known || r->source.var)
    add_reader(l, r, &panels, r->node->kernel->buffers.items[buffer_of(r)].dtype);
}
static void look_at_kernel(struct layouter *l, struct scope *s, struct flow_node *n) {
  struct kernel_uses uses;
  const struct machine *any = cpu_machine(&l->build->cpus, 0);
  for (struct nest nest = nest_first(n->kernel, &uses, any, &l->build->arena); nest.top; nest_next(&nest)) {
    struct contraction c;
    bool is_product = contraction_find(&uses, nest.top, &c) && (c.dtype == DTYPE_FLOAT || c.dtype == DTYPE_DOUBLE);
    if (!is_product || c.load[1] == NO_EXPR || c.test || c.is_ragged)
      continue;
    struct reader r = {.scope = s, .node = n, .number = nest.number, .value = n->args[expr_get(n->kernel, c.load[1])->imm].value};
    add_wish(l, &r, &c);
  }
}
/* Whether the reader's nest can have what it reads in these panels. */
static bool may_have(const struct layouter *l, const struct reader *r, const struct panels *panels) {
  struct kernel_uses uses;
  struct contraction c;
  struct panels own;
  struct nest n = nest_first(r->node->kernel, &uses, cpu_machine(&l->build->cpus, 0), &l->build->arena);
  while (n.number < r->number)
    nest_next(&n);
  return contraction_find(&uses, n.top, &c) && panels_of(&c, panels->width, &own) && panels_equal(&own, panels);
}
/* What the wish saves if it is granted; below 0: it cannot be. */
static double saved(const struct layouter *l, const struct wish *w) {
  double dense = layout_dense_cycles(l, w);
  return dense < 0 ? -1 : w->gain - dense;
}
/* What its readers save who have the panels made in front of their loops, if it is not. */
static double saved_by_loops(const struct layouter *l, const struct wish *w) {
  double sum = 0;
  for (uint32_t i = 0; i < w->readers.count; i++) {
    const struct reader *r = &w->readers.items[i];
    double gain = r->gain - layout_pack_cycles(l, &w->panels, w->dtype) * layout_runs(r->source.scope, NULL);
    sum += is_invariant(r) && gain > 0 ? gain : 0;
  }
  return sum;
}
/* Whether the reader may have the wish's panels; what that gains him, which may be less than nothing, is in *r then. */
static bool may_join(const struct layouter *l, const struct wish *w, struct reader *r) {
  double gain;
  if (r->source.var != w->source.var || !may_have(l, r, &w->panels) || !run_gain(l, r, &w->panels, cycles_before(l, r), &gain))
    return false;
  r->gain = gain * layout_runs(r->scope, NULL);
  r->is_joined = true;
  return true;
}
/* So many of them join, if the wish saves more with them than *most, which is that then. */
static void join_if_better(const struct layouter *l, struct wish *w, const struct reader *r, uint32_t count, double *most) {
  uint32_t first = w->readers.count;
  double gain = w->gain;
  for (uint32_t i = 0; i < count; i++) {
    w->gain += r[i].gain;
    vec_push(&w->readers, r[i]);
  }
  double now = saved(l, w);
  bool is_better = now > *most;
  *most = is_better ? now : *most;
  w->gain = is_better ? w->gain : gain;
  w->readers.count = is_better ? w->readers.count : first;
}
/* Those who gain nothing have the panels of others where a dense value, which would be made for them, costs more than they lose: all of
 * them, as one dense value may be for several, or one after the other those for whom alone that holds. */
static void join_others(const struct layouter *l, struct wish *w) {
  VEC(struct reader) may = {0};
  uint32_t first = w->readers.count;
  double held = saved(l, w), left = saved_by_loops(l, w), most = held > left ? held : left;
  for (uint32_t i = 0; i < l->others.count; i++) {
    struct reader r = l->others.items[i];
    if (may_join(l, w, &r))
      vec_push(&may, r);
  }
  join_if_better(l, w, may.items, may.count, &most);
  for (uint32_t i = 0; i < may.count && w->readers.count < first + may.count; i++)
    join_if_better(l, w, &may.items[i], 1, &most);
  vec_free(&may);
}
static void look_at_scope(struct layouter *l, struct scope *s) {
  for (flow_id id = 1; id < s->flow->nodes.count; id++)
    if (s->flow->nodes.items[id] && s->flow->nodes.items[id]->op == FLOW_KERNEL)
      look_at_kernel(l, s, s->flow->nodes.items[id]);
}
static void add_scopes(struct layouter *l, const struct entry *e, struct flow *f, struct scope *outer, flow_id node) {
  struct scope *s = ARENA_ARRAY(&l->build->arena, struct scope, 1);
  *s = (struct scope){.entry = e, .flow = f, .outer = outer, .node = node, .nodes = f->nodes.count};
  vec_push(&l->scopes, s);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    for (uint32_t r = n && n->op == FLOW_WHILE; n && n->op != FLOW_HOST && r < n->region_count; r++)
      add_scopes(l, e, n->branches[r], s, id);
  }
}
static status add_part(struct build *b, const struct part_ref *part, void *self) {
  (void)b;
  add_scopes(self, part->entry, part->flow, NULL, 0);
  return OK;
}

/* ---- granting ---- */

static uint32_t count_uses(const struct layouter *l, const void *data) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < l->scopes.count; i++) {
    const struct flow *f = l->scopes.items[i]->flow;
    for (flow_id id = 1; id < f->nodes.count; id++)
      for (uint32_t j = 0; f->nodes.items[id] && j < node_input_count(f->nodes.items[id]); j++)
        count += f->values.items[node_input(f->nodes.items[id], j)].data == data;
    for (uint32_t j = 0; j < f->results.count; j++)
      count += f->values.items[f->results.items[j]].data == data;
  }
  return count;
}
static void expect_packs(struct layouter *l, uint32_t first) {
  for (uint32_t i = first; i < l->wishes.count; i++) {
    struct wish *w = &l->wishes.items[i];
    if (w->source.var)
      w->pack = layout_dense_cycles(l, w);
    else if (!w->source.data)
      w->pack = layout_pack_cycles(l, &w->panels, w->dtype) * layout_runs(w->source.scope, NULL);
  }
}
/* A variable lies one way: the first of those that save most. */
static bool is_best(const struct layouter *l, const struct wish *w) {
  for (uint32_t i = 0; i < l->wishes.count; i++) {
    const struct wish *other = &l->wishes.items[i];
    double more = (other->gain - other->pack) - (w->gain - w->pack);
    if (w->source.var && other->source.var == w->source.var && other->pack >= 0 && (more > 0 || (more == 0 && other < w)))
      return false;
  }
  return true;
}
static bool pays(const struct wish *w) { return w->pack >= 0 && w->gain > w->pack * GAIN_MIN; }
static bool is_granted(const struct layouter *l, const struct wish *w) {
  if (!w->source.data)
    return pays(w) && is_best(l, w);
  int64_t sizes[LIMIT_RANK + 1], bytes = panels_sizes(&w->panels, sizes) * (int64_t)dtype_size(w->dtype);
  return bytes <= COPY_BYTES || count_uses(l, w->source.data) == w->readers.count;
}

/* ---- making ---- */

struct flow_value layout_value_of(const struct panels *p, enum dtype dtype, struct dim_table *dims) {
  struct flow_value x = {.dtype = dtype, .rank = p->rank + 1};
  int64_t sizes[LIMIT_RANK + 1];
  panels_sizes(p, sizes);
  for (int i = 0; i < x.rank; i++)
    x.dims[i] = dim_const(dims, sizes[i]);
  return x;
}
static const struct flow_node *node_of(const struct source *s, const struct reader *r) {
  const struct flow_node *n = s->scope->flow->nodes.items[s->scope->flow->values.items[s->value].producer];
  return n ? n : r->node;
}
static value_id make_constant(struct wish *w, const struct reader *r, struct arena *arena) {
  struct flow *f = r->scope->flow;
  flow_id id;
  int64_t sizes[LIMIT_RANK + 1];
  if (!w->packed) {
    void *packed = arena_alloc(arena, (size_t)panels_sizes(&w->panels, sizes) * dtype_size(w->dtype));
    panels_pack(&w->panels, w->source.data, dtype_size(w->dtype), packed);
    w->packed = packed;
  }
  struct flow_node *n = flow_append(f, FLOW_CONST, node_of(&w->source, r), r->node->task, &id);
  value_id v = flow_append_output(f, n, id, layout_value_of(&w->panels, w->dtype, f->dims));
  f->values.items[v].data = w->packed;
  return v;
}
/* In front of the loop `loop` of the scope. */
static value_id make_kernel(struct wish *w, const struct reader *r, const struct flow_node *loop) {
  struct flow *f = w->source.scope->flow;
  struct flow_node *from = f->nodes.items[f->values.items[w->source.value].producer];
  struct kernel *pack = panels_kernel(&w->panels, w->dtype, f->arena);
  struct flow_node *n = flow_append_kernel(f, node_of(&w->source, r), loop->task, pack, (const value_id[]){w->source.value},
                                           layout_value_of(&w->panels, w->dtype, f->dims));
  n->guards = loop->guards;
  n->guard_count = loop->guard_count;
  if (from && from->op == FLOW_READ)
    from->imm = READ_NOW;
  return n->outputs.items[0];
}
void layout_note(struct layouter *l, const struct wish *w, const struct scope *s, const struct flow_node *like, value_id v) {
  struct flow *f = s->flow;
  if (!f->layout)
    f->layout = ARENA_ARRAY(&l->build->arena, struct layout, 1);
  vec_push(&f->layout->values, ((struct layout_value){v, w->panels, like->name, w->gain, w->pack}));
}
static value_id find_placed(const struct wish *w, const struct scope *s, value_id of) {
  for (uint32_t i = 0; i < w->placed.count; i++)
    if (w->placed.items[i].scope == s && w->placed.items[i].of == of)
      return w->placed.items[i].value;
  return NO_VALUE;
}
/* The value in panels, as the nodes of a scope know it. */
static value_id place(struct layouter *l, struct wish *w, const struct reader *r, struct scope *s) {
  value_id of = w->source.var ? r->source.read : NO_VALUE, v = find_placed(w, s, of);
  if (v)
    return v;
  if (w->source.data) {
    v = make_constant(w, r, &l->build->arena);
    s->has_new = true;
  } else if (s->outer == r->source.scope && !w->source.var) {
    s->outer->has_new = true;
    v = loop_add_invariant(s->outer->flow, s->node, make_kernel(w, r, s->outer->flow->nodes.items[s->node]));
  } else {
    v = loop_add_invariant(s->outer->flow, s->node, place(l, w, r, s->outer));
  }
  vec_push(&w->placed, ((struct placed){s, of, v}));
  layout_note(l, w, s, node_of(&r->source, r), v);
  return v;
}

static void grant(struct layouter *l, struct wish *w) {
  if (w->source.var)
    layout_hold(l, w);
  for (uint32_t i = 0; i < w->readers.count; i++) {
    const struct reader *r = &w->readers.items[i];
    value_id packed = place(l, w, r, r->scope);
    panels_read(r->scope->flow, r->node, buffer_of(r), &w->panels, packed);
  }
}
/* Each reader of what the variable does not lie in may have it so in front of its loop, like any other value. */
static void leave_to_loops(struct layouter *l, uint32_t wish) {
  struct wish w = l->wishes.items[wish]; /* their list may move */
  for (uint32_t i = 0; i < w.readers.count; i++) {
    struct reader r = w.readers.items[i];
    r.source.var = 0;
    if (!r.is_joined && is_invariant(&r))
      add_reader(l, &r, &w.panels, w.dtype);
  }
}
static void hold_variables(struct layouter *l) {
  uint32_t count = l->wishes.count;
  bool *held = ARENA_ARRAY(&l->build->arena, bool, count + 1);
  for (uint32_t i = 0; i < count; i++)
    held[i] = l->wishes.items[i].source.var && is_granted(l, &l->wishes.items[i]);
  for (uint32_t i = 0; i < count; i++)
    if (held[i])
      grant(l, &l->wishes.items[i]);
    else if (l->wishes.items[i].source.var)
      leave_to_loops(l, i);
}
/* Constants that nobody reads any more are not in the program; new nodes come before those that read them. */
static void finish(struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    flow_id user;
    if (n && n->op == FLOW_CONST && !n->is_target && flow_use_count(f, n->outputs.items[0], &user) == 0)
      node_make_noop(n);
  }
  flow_sort(f);
}

status pass_layout(struct build *b) {
  struct layouter l = {.build = b};
  if (b->options.math == MATH_STRICT)
    return OK; /* panels need schedules, which order sums anew */
  status result = part_each(b, add_part, &l);
  layout_find_held(&l);
  for (uint32_t i = 0; i < l.scopes.count; i++)
    look_at_scope(&l, l.scopes.items[i]);
  for (uint32_t i = 0; i < l.wishes.count; i++)
    if (l.wishes.items[i].source.var)
      join_others(&l, &l.wishes.items[i]);
  expect_packs(&l, 0);
  uint32_t first = l.wishes.count;
  hold_variables(&l);
  expect_packs(&l, first);
  for (uint32_t i = 0; i < l.wishes.count; i++)
    if (!l.wishes.items[i].source.var && is_granted(&l, &l.wishes.items[i]))
      grant(&l, &l.wishes.items[i]);
  layout_sweep(&l);
  for (uint32_t i = 0; i < l.scopes.count; i++)
    if (l.scopes.items[i]->has_new)
      finish(l.scopes.items[i]->flow);
  for (uint32_t i = 0; i < l.wishes.count; i++) {
    vec_free(&l.wishes.items[i].readers);
    vec_free(&l.wishes.items[i].placed);
  }
  vec_free(&l.wishes);
  vec_free(&l.others);
  vec_free(&l.scopes);
  layout_free_held(&l);
  return result;
}
