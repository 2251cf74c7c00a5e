/* gradients.c: the gradient of a variable is found by structure: it is the earliest value of the variable's shape that all ways from
 * data to the variable's updates lead through (a dominator), and through which lead all ways to whatever it reaches. So what the
 * optimizer makes of it (slots, clipping, averages) comes behind the mean, and what only has the shape by chance, like an activation
 * of a square layer, does not count: other variables' updates are reached past it. The same rule cuts what else follows the data: the
 * averages of a batch normalization before they are moved.
 *
 * A step may train in turn: a generator learns from the critic that the step has changed, averages move twice. Then a value that changes
 * one variable also reaches the updates of others, past which other data lead. Where that leaves something, what is read of a variable
 * after its update is taken for alike, the earliest value is cut first, and once all are cut the flow is gone through as it is.
 *
 * Scalars tie all variables together (the norm of all gradients); they are left out at first. What data still reach then they reach
 * by scalars: cut where these are made.
 * This is what "the mean of the gradients" leaves open in Li et al., "Scaling distributed machine learning with the parameter server"
 * (2014), and what MirroredStrategy is told by its optimizers. */
#include "compiler/pass/gradients.h"

#include <stdlib.h>
#include <string.h>

#include "base/gradient_name.h"
#include "compiler/edit/flow_edit.h"
#include "compiler/edit/unroll.h"
#include "compiler/pass/gradient_rows.h"

uint32_t gradients_updated(const struct reach *r, flow_id id) {
  const struct flow_node *n = r->flow->nodes.items[id];
  uint32_t var = UINT32_MAX;
  for (uint32_t i = 0; i < node_touch_count(n); i++)
    if (node_touch(n, i, &var) == TOUCH_UPDATE)
      return var;
  return UINT32_MAX;
}

bool gradients_has_shape(const struct reach *r, const struct flow_value *v, const struct flow_var *var) {
  bool same = var->has_shape && v->rank == var->rank && v->dtype == var->dtype;
  for (int d = 0; same && d < v->rank; d++) {
    int64_t size;
    same = dim_is_const(r->flow->dims, dim_resolve(r->flow->dims, v->dims[d]), &size) && size == var->dims[d];
  }
  return same;
}

static bool is_number(enum dtype t) { return dtype_is_float(t) || (dtype_is_integer(t) && dtype_size(t) >= 4); }

bool gradients_has_rows(const struct reach *r, const struct flow_value *v, const struct flow_var *var) {
  bool same = var->has_shape && v->rank == var->rank && v->rank > 0 && v->dtype == var->dtype;
  for (int d = 1; same && d < v->rank; d++) {
    int64_t size;
    same = dim_is_const(r->flow->dims, dim_resolve(r->flow->dims, v->dims[d]), &size) && size == var->dims[d];
  }
  return same;
}

/* Rows of the variable, of which only the values come from data: their number and where they are is alike on all workers. */
static bool is_fixed_rows(const struct reach *r, value_id v, const struct flow_var *var) {
  const struct flow_value *x = &r->flow->values.items[v];
  int64_t size;
  return gradients_has_rows(r, x, var) && dim_is_const(r->flow->dims, dim_resolve(r->flow->dims, x->dims[0]), &size) && is_number(x->dtype);
}

/* Made in every step of every worker, or in none. */
static bool is_made_alike(const struct reach *r, const struct flow_node *n) {
  for (uint32_t i = 0; i < n->guard_count; i++)
    if (r->differs[n->guards[i].predicate] && !r->cut[n->guards[i].predicate])
      return false;
  return true;
}

static bool may_be_cut(const struct reach *r, value_id v, const struct flow_var *var) {
  const struct flow_value *x = &r->flow->values.items[v];
  if (!is_number(x->dtype) || r->cut[v] || r->carried[v] || !reach_is_own(r, v) || !is_made_alike(r, r->flow->nodes.items[x->producer]))
    return false;
  return gradients_has_shape(r, x, var) || is_fixed_rows(r, v, var) || (r->scalars && x->rank == 0 && dtype_is_float(x->dtype));
}

static bool is_fed(const struct reach *r, value_id v) { return r->flow->nodes.items[r->flow->values.items[v].producer]->op == FLOW_FEED; }

/* By its name: TensorFlow made it when it derived a gradient. */
static bool is_derived(const struct reach *r, value_id v) {
  return gradient_name_is(r->flow->nodes.items[r->flow->values.items[v].producer]->name);
}

/* A value that a derived gradient is made of is on the way forward, even if it has the variable's shape: the gradient at a mean is
 * no mean of gradients. Then the last value that was derived is cut, or nothing. */
static value_id move_behind_forward(const struct reach *r, flow_id update, const struct flow_var *var, value_id chosen) {
  value_id v = r->node_dominator[update], last = 0;
  bool forward = false;
  if (!chosen || is_derived(r, chosen))
    return chosen;
  for (; v != chosen; v = r->dominator[v]) {
    forward = forward || is_derived(r, v);
    if (!last && is_derived(r, v) && may_be_cut(r, v, var))
      last = v;
  }
  return forward ? last : chosen;
}

/* The earliest dominator that may be cut; what depends on no variable, like data that were only scaled, when there is nothing else; the
 * data themselves at last. */
value_id gradients_choose(const struct reach *r, flow_id update, const struct flow_var *var) {
  const struct flow_value *values = r->flow->values.items;
  value_id best = 0, plain = 0, fed = 0;
  for (value_id v = r->node_dominator[update]; v; v = r->dominator[v]) {
    if (!may_be_cut(r, v, var))
      continue;
    if (r->of_variables[v])
      best = !best || gradients_has_shape(r, &values[v], var) || !gradients_has_shape(r, &values[best], var) ? v : best;
    else if (is_fed(r, v))
      fed = v;
    else
      plain = v;
  }
  return move_behind_forward(r, update, var, best ? best : plain ? plain : fed);
}

static bool is_listed(const struct gradients *g, uint32_t from, value_id v) {
  for (uint32_t i = from; i < g->items.count; i++)
    if (g->items.items[i].value == v)
      return true;
  return false;
}

/* Whether there was anything to cut. */
static bool cut_updates(struct reach *r, struct gradients *out) {
  uint32_t before = out->items.count;
  for (uint32_t i = 0; i < r->updates.count; i++) {
    uint32_t var = gradients_updated(r, r->updates.items[i]);
    value_id v = var != UINT32_MAX ? gradients_choose(r, r->updates.items[i], &r->build->vars.items[var]) : 0;
    if (v && !is_listed(out, before, v))
      vec_push(&out->items, (struct gradient){.value = v, .var = var});
  }
  for (uint32_t i = before; i < out->items.count; i++)
    r->cut[out->items.items[i].value] = true;
  return out->items.count > before;
}

/* Where what follows a cut is what another one is made of, it sees the worker's own: there it is cut again. */
static void cut_updates_through(struct reach *r, struct gradients *out, bool scalars) {
  do
    reach_run(r, scalars);
  while (cut_updates(r, out));
}

/* Nobody may be left who wants a mean: all that take the value are for others. */
static bool is_wanted(const struct reach *r, value_id v) {
  for (flow_id id = 1; id < r->flow->nodes.count; id++) {
    const struct flow_node *n = r->flow->nodes.items[id];
    if (n && n->op != FLOW_FETCH && !r->own[id] && node_takes(n, v))
      return true;
  }
  return false;
}

static void drop_unwanted(struct reach *r, struct gradients *out) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < out->items.count; i++) {
    struct gradient g = out->items.items[i];
    if (g.kind != GRADIENT_MEAN || is_wanted(r, g.value))
      out->items.items[kept++] = g;
    else
      r->cut[g.value] = false;
  }
  out->items.count = kept;
}

/* ---- gradients that go on ---- */

/* Whether a node that takes v leads only to updates that are reached through v alone. */
static bool is_own_user(const struct reach *r, flow_id id, value_id v) {
  const struct flow_node *n = r->flow->nodes.items[id];
  bool any = false;
  for (uint32_t i = 0; i < r->updates.count; i++) {
    bool reached = r->updates.items[i] == id;
    for (uint32_t k = 0; k < n->outputs.count; k++)
      reached = reached || r->reaches[(size_t)n->outputs.items[k] * r->words + i / 64] >> i % 64 & 1;
    if (reached && !reach_comes_by(r, r->updates.items[i], v))
      return false;
    any = any || reached;
  }
  return any;
}

/* A value of its own for the users of v that only change what is reached through it; false: all are such, or none. */
static bool split_value(const struct reach *r, struct flow *f, value_id v) {
  VEC(flow_id) own = {0};
  uint32_t users = 0, count = r->flow->nodes.count;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    if (!f->nodes.items[id] || !node_takes(f->nodes.items[id], v))
      continue;
    users++;
    if (id < count && is_own_user(r, id, v))
      vec_push(&own, id);
  }
  bool splits = own.count > 0 && own.count < users;
  if (splits) {
    flow_id made;
    const struct flow_node *maker = f->nodes.items[f->values.items[v].producer];
    struct flow_node *alias = flow_append(f, FLOW_ALIAS, maker, maker->task, &made);
    alias->guards = maker->guards;
    alias->guard_count = maker->guard_count;
    vec_push(&alias->inputs, v);
    value_id copy = flow_append_output(f, alias, made, f->values.items[v]);
    for (uint32_t i = 0; i < own.count; i++)
      node_replace_input(f->nodes.items[own.items[i]], v, copy, f->arena);
  }
  vec_free(&own);
  return splits;
}

bool gradients_split(struct reach *r, struct flow *f) {
  bool any = false;
  reach_run(r, false);
  VEC(value_id) found = {0};
  for (uint32_t i = 0; i < r->updates.count; i++) {
    uint32_t var = gradients_updated(r, r->updates.items[i]);
    if (var == UINT32_MAX || gradients_choose(r, r->updates.items[i], &r->build->vars.items[var]))
      continue;
    for (value_id v = r->node_dominator[r->updates.items[i]]; v; v = r->dominator[v])
      if (gradients_has_shape(r, &r->flow->values.items[v], &r->build->vars.items[var]) && !r->carried[v] && !reach_is_own(r, v))
        vec_push(&found, v);
  }
  bool *seen = calloc(f->values.count + 1, 1);
  for (uint32_t i = 0; i < found.count; i++) {
    if (!seen[found.items[i]])
      any = split_value(r, f, found.items[i]) || any;
    seen[found.items[i]] = true;
  }
  free(seen);
  vec_free(&found);
  if (any)
    flow_sort(f);
  return any;
}

/* ---- scalars ---- */

struct scalar_search {
  struct reach *r;
  struct gradients *out;
  const bool *raw; /* per value: data come to it past scalars too */
  bool *seen;      /* per node */
  uint32_t var;    /* whose update is looked at */
};

/* Made of more than scalars: of many elements, or from nowhere. What this walk has cut leads nowhere any more, but it is somewhere: the
 * mean of its square would be no square of the mean. */
static bool is_reduction(const struct scalar_search *s, flow_id id) {
  const struct flow_node *n = s->r->flow->nodes.items[id];
  bool any = false, whole = false;
  for (uint32_t i = 0; i < node_input_count(n); i++) {
    value_id v = node_input(n, i);
    bool leads = v && reach_leads_to(s->r, v, id);
    any = any || leads || (v && s->r->cut[v]);
    whole = whole || (leads && (s->raw[v] || !dtype_is_float(s->r->flow->values.items[v].dtype)));
  }
  return !any || whole;
}

static bool is_first_scalar(const struct scalar_search *s, value_id v) {
  const struct flow_value *x = &s->r->flow->values.items[v];
  const struct flow_node *maker = s->r->flow->nodes.items[x->producer];
  return x->rank == 0 && dtype_is_float(x->dtype) && !s->r->carried[v] && is_reduction(s, x->producer) && is_made_alike(s->r, maker);
}

/* From an update back to the first scalars that are made of data: a loss, a norm of what only this worker has, the gradient of a
 * scalar. */
static void cut_scalars_of(struct scalar_search *s, flow_id id) {
  struct reach *r = s->r;
  const struct flow_node *n = r->flow->nodes.items[id];
  if (s->seen[id] || !n)
    return;
  s->seen[id] = true;
  for (uint32_t i = 0; i < node_input_count(n); i++) {
    value_id v = node_input(n, i);
    if (!v || !r->differs[v] || r->cut[v] || s->raw[v])
      continue;
    if (is_first_scalar(s, v)) {
      r->cut[v] = true;
      vec_push(&s->out->items, (struct gradient){.value = v, .var = s->var});
    } else {
      cut_scalars_of(s, r->flow->values.items[v].producer);
    }
  }
  if (r->before[id])
    cut_scalars_of(s, r->before[id]);
}

/* What differs behind the gradients differs by scalars. */
static void cut_scalars(struct reach *r, struct gradients *out) {
  reach_run(r, false);
  bool *raw = arena_copy(r->flow->arena, r->differs, r->flow->values.count);
  for (value_id v = 1; v < r->flow->values.count; v++)
    raw[v] = raw[v] && !reach_is_scalar(r, v);
  reach_run(r, true);
  struct scalar_search s = {.r = r, .out = out, .raw = raw, .seen = calloc(r->flow->nodes.count + 1, 1)};
  for (uint32_t i = 0; i < r->updates.count; i++) {
    s.var = gradients_updated(r, r->updates.items[i]);
    if (s.var != UINT32_MAX)
      cut_scalars_of(&s, r->updates.items[i]);
  }
  free(s.seen);
}

/* ---- in turn ---- */

/* Of what may be cut for the updates that are left the earliest; `passed`: updates that are not asked. *update: whose it is. */
static value_id earliest(const struct reach *r, const bool *passed, flow_id *update) {
  const struct flow_value *values = r->flow->values.items;
  value_id first = NO_VALUE;
  for (uint32_t i = 0; i < r->updates.count; i++) {
    flow_id id = r->updates.items[i];
    uint32_t var = gradients_updated(r, id);
    value_id v = var != UINT32_MAX && !passed[id] ? gradients_choose(r, id, &r->build->vars.items[var]) : NO_VALUE;
    if (!v || (first && values[v].producer >= values[first].producer))
      continue;
    first = v;
    *update = id;
  }
  return first;
}

static void cut_rows(struct reach *r, struct gradients *out) {
  uint32_t before = out->items.count;
  reach_run(r, false);
  gradient_rows_cut(r, out);
  out->wants_rows = out->items.count > before;
}

/* One after the other, the earliest value first: what is made of a gradient, such as the means of its squares, is not reached then. */
static void cut_in_turn(struct reach *r, struct gradients *out) {
  bool *passed = calloc(r->flow->nodes.count + 1, 1);
  value_id v;
  flow_id update = 0;
  r->settled = true;
  cut_rows(r, out);
  while ((v = earliest(r, passed, &update)) != NO_VALUE) {
    if (gradient_rows_come(r, update, &r->build->vars.items[gradients_updated(r, update)])) {
      passed[update] = true;
      continue;
    }
    r->cut[v] = true;
    vec_push(&out->items, (struct gradient){.value = v, .var = gradients_updated(r, update)});
    reach_run(r, false);
  }
  r->settled = false;
  free(passed);
}

/* ---- sums ---- */

/* The input of an update that is added to the variable; NO_VALUE: it is changed in another way. *node: the node that takes it. */
static value_id added_value(const struct flow *f, flow_id id, uint32_t var, flow_id *node) {
  const struct flow_node *n = f->nodes.items[id];
  *node = id;
  if (n->guard_count)
    return NO_VALUE;
  if (n->op == FLOW_KERNEL && n->inputs.count == 1)
    return strcmp(n->tf_op, "AssignAddVariableOp") == 0 || strcmp(n->tf_op, "AssignAdd") == 0 ? n->inputs.items[0] : NO_VALUE;
  *node = n->op == FLOW_ASSIGN ? f->values.items[n->inputs.items[0]].producer : 0;
  const struct flow_node *sum = f->nodes.items[*node];
  if (!sum || sum->op != FLOW_KERNEL || sum->inputs.count != 2 || (strcmp(sum->tf_op, "AddV2") != 0 && strcmp(sum->tf_op, "Add") != 0))
    return NO_VALUE;
  for (uint32_t i = 0; i < 2; i++) {
    const struct flow_node *old = f->nodes.items[f->values.items[sum->inputs.items[i]].producer];
    if (old->op == FLOW_READ && old->var == var)
      return sum->inputs.items[1 - i];
  }
  return NO_VALUE;
}

void gradients_of_sums(struct build *b, struct flow *f, struct gradients *out) {
  uint32_t count = f->nodes.count, var = 0;
  for (flow_id id = 1; id < count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && i < node_touch_count(n); i++) {
      flow_id user, made;
      if (node_touch(n, i, &var) != TOUCH_UPDATE || !b->vars.items[var].is_sum)
        continue;
      value_id v = added_value(f, id, var, &user);
      if (!v || !dtype_is_float(f->values.items[v].dtype))
        continue;
      struct flow_node *own = flow_append(f, FLOW_ALIAS, n, n->task, &made);
      vec_push(&own->inputs, v);
      struct gradient g = {.value = flow_append_output(f, own, made, f->values.items[v]), .var = var, .kind = GRADIENT_SUM};
      node_replace_input(f->nodes.items[user], v, g.value, f->arena);
      vec_push(&out->items, g);
    }
  }
  if (f->nodes.count > count)
    flow_sort(f);
}

/* ---- rows that are gathered already ---- */

/* What the flow was lowered with: all workers' rows are alike. */
static void take_gathered(struct reach *r, struct gradients *out) {
  for (flow_id id = 1; id < r->flow->nodes.count; id++) {
    const struct flow_node *n = r->flow->nodes.items[id];
    bool ours = false;
    for (uint32_t i = 0; n && n->op == FLOW_HOST && strcmp(n->host, "CollectiveGather") == 0 && i < r->build->gathers.count; i++)
      ours = ours || r->build->gathers.items[i].value == n->name;
    if (!ours)
      continue;
    r->cut[n->outputs.items[0]] = true;
    vec_push(&out->items,
             (struct gradient){.value = n->inputs.items[0], .var = UINT32_MAX, .kind = GRADIENT_ROWS, .gathered = n->outputs.items[0]});
  }
}

/* The variable that gathered rows are for: the first whose update is made of them. */
static void find_targets(struct reach *r, struct gradients *out) {
  bool *reached = calloc(r->flow->nodes.count + 1, 1);
  for (uint32_t i = 0; i < out->items.count; i++) {
    if (!out->items.items[i].gathered)
      continue;
    memset(reached, 0, r->flow->nodes.count);
    flow_id first = r->flow->values.items[out->items.items[i].gathered].producer;
    reached[first] = true;
    for (flow_id id = first + 1; id < r->flow->nodes.count && out->items.items[i].var == UINT32_MAX; id++) {
      const struct flow_node *n = r->flow->nodes.items[id];
      for (uint32_t k = 0; n && k < node_input_count(n); k++) {
        value_id v = node_input(n, k);
        reached[id] = reached[id] || (v && !reach_is_scalar(r, v) && reached[r->flow->values.items[v].producer]);
      }
      if (reached[id])
        out->items.items[i].var = gradients_updated(r, id);
    }
  }
  free(reached);
}

/* Whether an update depends on data and on what variables held; or an optimizer's op changes it, whatever its gradient is made of. */
static bool trains(const struct reach *r) {
  for (flow_id id = 1; id < r->flow->nodes.count; id++) {
    const struct flow_node *n = r->flow->nodes.items[id];
    if (n && n->op == FLOW_KERNEL && n->tf_op && strstr(n->tf_op, "Apply") && node_updates(n))
      return true;
  }
  for (uint32_t i = 0; i < r->updates.count; i++)
    if (r->node_depends[r->updates.items[i]])
      return true;
  return false;
}

static status refuse(const struct reach *r) {
  flow_id id = r->updates.items[0];
  const struct flow_node *n = r->flow->nodes.items[id];
  uint32_t var = gradients_updated(r, id);
  if (n->op == FLOW_WHILE)
    return fail(UNIMPLEMENTED,
                "%s (%s): --strategy %s: a loop around steps of training: its turns must be a number that is known while compiling, "
                "with no more than %d nodes in all, and what it hands on have the same shape in all of them: %s",
                n->name, n->tf_op, r->build->options.strategy, UNROLL_NODES_MAX, reach_path(r, id, r->flow->arena));
  const char *what = var == UINT32_MAX ? "what a region changes" : arena_printf(r->flow->arena, "'%s'", r->build->vars.items[var].name);
  return fail(UNIMPLEMENTED,
              "%s (%s): --strategy %s: %s is not changed by a mean of what the workers have: nothing of its shape, "
              "and no rows with their indices, are passed by all that comes from data: %s",
              n->name, n->tf_op, r->build->options.strategy, what, reach_path(r, id, r->flow->arena));
}

/* A fed scalar is taken for alike on all workers, as a learning rate is. A step of which it is all the data would train each worker
 * by itself: the node of a gradient that is made of one, in an entry that changes variables; 0: there is none. */
static flow_id derived_of_scalar(const struct flow *f) {
  bool *of_scalar = calloc(f->nodes.count + 1, 1), updates = false;
  flow_id found = 0;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (!n)
      continue;
    of_scalar[id] = n->op == FLOW_FEED && dtype_is_float(f->values.items[n->outputs.items[0]].dtype);
    for (uint32_t i = 0; i < node_input_count(n); i++)
      of_scalar[id] = of_scalar[id] || (node_input(n, i) && of_scalar[f->values.items[node_input(n, i)].producer]);
    updates = updates || node_updates(n);
    if (!found && of_scalar[id] && gradient_name_is(n->name))
      found = id;
  }
  free(of_scalar);
  return updates ? found : 0;
}

static status refuse_scalar(const struct reach *r) {
  const struct flow *f = r->flow;
  flow_id id = derived_of_scalar(f);
  if (!id)
    return OK;
  const struct flow_node *n = f->nodes.items[id];
  return fail(UNIMPLEMENTED,
              "%s (%s): --strategy %s: all that this gradient is made of is fed as scalars, which are taken for "
              "the same on all workers; feed the data as a batch",
              n->name, n->tf_op, r->build->options.strategy);
}

static void cut_at_once(struct reach *r, struct gradients *out) {
  cut_rows(r, out);
  cut_updates_through(r, out, false);
}

/* What is left differs by scalars. */
static void cut_rest(struct reach *r, struct gradients *out) {
  cut_scalars(r, out);
  cut_updates_through(r, out, true);
}

static void undo_cuts(struct reach *r, struct gradients *out, uint32_t count) {
  for (; out->items.count > count; out->items.count--)
    r->cut[vec_last(&out->items).value] = false;
  out->wants_rows = false;
}

status gradients_find(struct reach *r, struct gradients *out) {
  uint32_t sums = out->items.count;
  bool alone = r->build->strategy == STRATEGY_PS_ASYNC;
  take_gathered(r, out);
  find_targets(r, out);
  reach_run(r, true);
  out->trains = out->items.count > sums || trains(r);
  if (!out->trains) {
    out->items.count = 0;
    return alone ? OK : refuse_scalar(r);
  }
  for (uint32_t i = 0; i < sums; i++)
    r->cut[out->items.items[i].value] = true;
  uint32_t given = out->items.count;
  cut_at_once(r, out);
  cut_rest(r, out);
  if (r->updates.count && !alone) {
    undo_cuts(r, out, given);
    cut_in_turn(r, out);
    cut_rest(r, out);
  }
  if (alone)
    return OK;
  if (r->updates.count)
    return refuse(r);
  drop_unwanted(r, out);
  return out->items.count ? OK : refuse_scalar(r);
}

void gradients_mark(const struct flow *f, const struct gradients *g, bool *for_gradient) {
  for (uint32_t i = 0; i < g->items.count; i++)
    for_gradient[f->values.items[g->items.items[i].value].producer] = true;
  reach_mark_sources(f, for_gradient);
}
