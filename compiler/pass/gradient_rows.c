/* gradient_rows.c: see gradient_rows.h. Of the values that have rows of the variable, in the order of nodes, and of those that may be their
 * indices the first two are taken that all ways from data to an update lead through, and not through the rows alone: first of rows that
 * lead to nothing else, then of those that other gradients are made of, too. Rows of several tables may have the same indices, and several
 * indices the same rows. */
#include "compiler/pass/gradient_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/gradient_name.h"
#include "compiler/edit/flow_edit.h"

#define ROWS_TRIED 64 /* pairs of values that may be rows and their indices, for each variable */

static bool is_indices(const struct reach *r, value_id v) {
  const struct flow_value *x = &r->flow->values.items[v];
  return x->rank == 1 && (x->dtype == DTYPE_INT32 || x->dtype == DTYPE_INT64);
}

struct rows_pair {
  uint32_t rows, indices; /* which candidates */
  bool are_own;           /* all that the rows lead to is reached through them only */
  bool are_stored;
};

struct rows_search {
  struct reach *r;
  flow_id update;
  const struct flow_var *var;
  bool *seen;                  /* per node */
  VEC(value_id) rows, indices; /* candidates */
  VEC(struct rows_pair) pairs; /* of them: of the same rows, as far as can be seen at a glance */
  VEC(flow_id) reached;        /* updates that are to be alike by the pair that is tried */
};

static void mark_cone(struct rows_search *s, flow_id id) {
  const struct flow_node *n = s->r->flow->nodes.items[id];
  if (!n || s->seen[id])
    return;
  s->seen[id] = true;
  for (uint32_t i = 0; i < node_input_count(n); i++)
    if (node_input(n, i) && reach_leads_to(s->r, node_input(n, i), id))
      mark_cone(s, s->r->flow->values.items[node_input(n, i)].producer);
  if (s->r->before[id] && !s->r->settled)
    mark_cone(s, s->r->before[id]);
}

static bool has_dims_of(const struct flow *f, value_id a, value_id b) {
  bool same = f->values.items[a].rank == f->values.items[b].rank;
  for (int d = 0; same && d < f->values.items[a].rank; d++)
    same = flow_is_same_dim(f, a, b, d);
  return same;
}

/* What a value is another shape of, one that is said beside it, or a sum over nothing, or the negative; NO_VALUE: none. */
static value_id shaped_of(const struct flow *f, value_id v) {
  const struct flow_node *maker = f->nodes.items[f->values.items[v].producer];
  if (maker->op == FLOW_ALIAS)
    return maker->inputs.items[0];
  if (maker->op != FLOW_KERNEL || !maker->tf_op || node_input_count(maker) == 0)
    return NO_VALUE;
  value_id of = node_input(maker, 0);
  bool is_other = strcmp(maker->tf_op, "Sum") == 0 || strcmp(maker->tf_op, "Neg") == 0;
  return of && (strcmp(maker->tf_op, "BroadcastTo") == 0 || (is_other && has_dims_of(f, of, v))) ? of : NO_VALUE;
}

/* Before what it is only another shape of: that shape says how many rows one worker has, and what comes to it is to say so, too. */
static void push_rows(struct rows_search *s, value_id v) {
  uint32_t at = s->rows.count;
  for (value_id of = shaped_of(s->r->flow, v); of; of = shaped_of(s->r->flow, of))
    for (uint32_t i = 0; i < s->rows.count; i++)
      if (s->rows.items[i] == of && i < at)
        at = i;
  vec_push(&s->rows, v);
  memmove(s->rows.items + at + 1, s->rows.items + at, (s->rows.count - 1 - at) * sizeof *s->rows.items);
  s->rows.items[at] = v;
}

/* Candidates: what comes to the update; and what is in the cut already, for other variables. */
static void list_rows(struct rows_search *s, const struct gradients *known) {
  for (uint32_t i = 0; i < known->items.count; i++)
    if (known->items.items[i].kind == GRADIENT_INDICES)
      vec_push(&s->indices, known->items.items[i].value);
  for (flow_id id = 1; id < s->r->flow->nodes.count; id++)
    for (uint32_t i = 0; s->seen[id] && i < s->r->flow->nodes.items[id]->outputs.count; i++) {
      value_id v = s->r->flow->nodes.items[id]->outputs.items[i];
      const struct flow_value *x = &s->r->flow->values.items[v];
      if (!s->r->differs[v] || s->r->cut[v] || s->r->carried[v])
        continue;
      if (is_indices(s->r, v))
        vec_push(&s->indices, v);
      else if (gradients_has_rows(s->r, x, s->var) && s->r->of_variables[v])
        push_rows(s, v);
    }
  for (uint32_t i = 0; i < known->items.count; i++) {
    const struct gradient *g = &known->items.items[i];
    if (g->kind == GRADIENT_ROWS && !g->gathered && gradients_has_rows(s->r, &s->r->flow->values.items[g->value], s->var))
      vec_push(&s->rows, g->value);
  }
}

/* Whether none of the updates is reached when the rows and their indices are alike on all workers, or not. */
static bool none_differs(struct reach *r, const struct rows_search *s, value_id rows, bool with_rows, value_id indices, bool with_indices) {
  r->cut[rows] = with_rows;
  r->cut[indices] = with_indices;
  reach_run(r, false);
  for (uint32_t i = 0; i < s->reached.count; i++)
    if (r->node_differs[s->reached.items[i]])
      return false;
  return true;
}

static bool is_reached(const struct reach *r, value_id v, uint32_t update) {
  return r->reaches[(size_t)v * r->words + update / 64] >> update % 64 & 1;
}

/* Whether by both together the update is alike, and all that the rows lead to where they are its own, but not by the rows alone. Either may
 * be in the cut already, for another variable. */
static bool cuts_all(struct rows_search *s, value_id rows, value_id indices, bool are_own) {
  struct reach *r = s->r;
  bool had_rows = r->cut[rows], had_indices = r->cut[indices];
  s->reached.count = 0;
  for (uint32_t i = 0; i < r->updates.count; i++)
    if (are_own ? is_reached(r, rows, i) : r->updates.items[i] == s->update)
      vec_push(&s->reached, r->updates.items[i]);
  bool all = s->reached.count > 0 && !none_differs(r, s, rows, true, indices, false) && none_differs(r, s, rows, true, indices, true);
  if (!all)
    none_differs(r, s, rows, had_rows, indices, had_indices);
  return all;
}

/* Whether a node only gives integers another shape or type. */
static bool keeps_integers(const struct flow *f, const struct flow_node *n) {
  bool casts = n->op == FLOW_KERNEL && n->tf_op && strcmp(n->tf_op, "Cast") == 0;
  return n->op == FLOW_ALIAS || (casts && !dtype_is_float(f->values.items[node_input(n, 0)].dtype));
}

static const struct flow_node *maker_of_indices(const struct flow *f, value_id v) {
  const struct flow_node *maker = f->nodes.items[f->values.items[v].producer];
  while (keeps_integers(f, maker))
    maker = f->nodes.items[f->values.items[node_input(maker, 0)].producer];
  return maker;
}

static bool is_of_unique(const struct flow_node *maker) { return maker->tf_op && strncmp(maker->tf_op, "Unique", 6) == 0; }

/* What was looked up is each there once; the number of each that came to Unique is made beside others. */
static bool is_unique(const struct flow *f, value_id indices) {
  const struct flow_node *maker = maker_of_indices(f, indices);
  return is_of_unique(maker) && maker->outputs.count == 1;
}

/* By node: whether a value is made of what it makes. Freed by the caller. */
static bool *sources_of(const struct flow *f, value_id v) {
  bool *sources = calloc(f->nodes.count + 1, 1);
  sources[f->values.items[v].producer] = true;
  reach_mark_sources(f, sources);
  return sources;
}
static bool is_made_of_unique(const struct flow *f, value_id v) {
  bool *sources = sources_of(f, v), made = false;
  for (flow_id id = 1; id < f->nodes.count && !made; id++)
    made = sources[id] && is_of_unique(f->nodes.items[id]);
  free(sources);
  return made;
}

/* Whether a value is made of another one; of NO_VALUE: of a gradient. */
static bool is_made_of(const struct flow *f, value_id v, value_id of) {
  bool *sources = sources_of(f, v), made = false;
  for (flow_id id = 1; id < f->nodes.count && !made; id++) {
    const struct flow_node *n = f->nodes.items[id];
    made = sources[id] && (of ? node_takes(n, of) : n->name && gradient_name_is(n->name));
  }
  free(sources);
  return made;
}

/* Whether a worker has added up its rows by their indices already: an optimizer that squares them would add the squares of the workers'
 * sums. Where the lookup itself was of unique indices the rows were never apart: they are added up when they are those of all workers. */
static bool are_added_up(const struct flow *f, value_id rows, value_id indices) {
  return is_of_unique(maker_of_indices(f, indices)) && (!is_unique(f, indices) || !is_made_of(f, rows, indices));
}

/* Whether rows are no gradient but what is stored in the variable: those of all workers are, and none is a share of a mean. */
static bool are_stored(const struct rows_search *s, value_id rows) {
  const char *op = s->r->flow->nodes.items[s->update]->tf_op;
  return op && strstr(op, "ScatterUpdate") && !is_made_of(s->r->flow, rows, NO_VALUE);
}

/* Rows of their own first, then the earliest; of those that are stored the last, as what is behind others is made for the model, too. */
static int compare_pairs(const void *a, const void *b) {
  const struct rows_pair *x = a, *y = b;
  if (x->are_own != y->are_own)
    return x->are_own ? -1 : 1;
  if (x->are_stored != y->are_stored)
    return x->are_stored ? 1 : -1;
  if (x->rows != y->rows)
    return (x->rows < y->rows) != (x->are_stored && !x->are_own) ? -1 : 1;
  return (x->indices > y->indices) - (x->indices < y->indices);
}

static void try_pair(struct rows_search *s, uint32_t i, uint32_t k) {
  value_id rows = s->rows.items[i], indices = s->indices.items[k];
  if (!flow_is_same_dim(s->r->flow, rows, indices, 0) || are_added_up(s->r->flow, rows, indices))
    return;
  bool are_own = !s->r->cut[rows] && reach_is_passed(s->r, rows);
  if (are_own || s->r->cut[rows] || reach_comes_by(s->r, s->update, rows))
    vec_push(&s->pairs, (struct rows_pair){i, k, are_own, are_stored(s, rows)});
}

/* Where the indices are alike all ways must lead through the rows: they do not through values on the way forward. */
static void find_pairs(struct rows_search *s) {
  s->pairs.count = 0;
  for (uint32_t k = 0; k < s->indices.count; k++) {
    s->r->blocked = s->indices.items[k];
    reach_run(s->r, false);
    for (uint32_t i = 0; i < s->rows.count; i++)
      try_pair(s, i, k);
  }
  s->r->blocked = NO_VALUE;
  reach_run(s->r, false);
  if (s->pairs.count)
    qsort(s->pairs.items, s->pairs.count, sizeof *s->pairs.items, compare_pairs);
}

/* Of rows or indices in the cut; NULL: they are not. */
static const struct gradient *find_cut(const struct gradients *g, value_id v) {
  for (uint32_t i = 0; i < g->items.count; i++)
    if (g->items.items[i].value == v && g->items.items[i].kind >= GRADIENT_ROWS)
      return &g->items.items[i];
  return NULL;
}

/* Whether what is in the cut already can be of this pair, too. */
static bool fits(const struct gradient *rows, const struct gradient *indices, bool stored) {
  return (!rows || rows->is_stored == stored) && (!rows || !indices || rows->pair == indices->pair);
}

/* Rows that are not the update's own are a gradient, or stored: of other sums over data nobody has said that they are a mean. */
static bool cut_pair(struct rows_search *s, const struct rows_pair *pair, uint32_t var, struct gradients *out) {
  value_id rows = s->rows.items[pair->rows], indices = s->indices.items[pair->indices];
  const struct gradient *known_rows = find_cut(out, rows), *known_indices = find_cut(out, indices);
  bool stored = pair->are_stored, has_rows = known_rows != NULL, has_indices = known_indices != NULL;
  uint32_t number = has_rows ? known_rows->pair : has_indices ? known_indices->pair : indices;
  if (!fits(known_rows, known_indices, stored) || (!pair->are_own && !stored && !is_made_of(s->r->flow, rows, NO_VALUE)))
    return false;
  if (!cuts_all(s, rows, indices, pair->are_own))
    return false;
  struct gradient found = {.value = rows, .var = var, .kind = GRADIENT_ROWS, .pair = number, .is_stored = stored};
  if (!stored && is_made_of_unique(s->r->flow, indices))
    found.once = is_unique(s->r->flow, indices) ? ROWS_ONCE : ROWS_OF_ONCE;
  if (!has_rows)
    vec_push(&out->items, found);
  found.value = indices;
  found.kind = GRADIENT_INDICES;
  found.is_stored = false;
  if (!has_indices)
    vec_push(&out->items, found);
  return true;
}

/* The first rows that do. */
static bool cut_rows_of(struct rows_search *s, uint32_t var, struct gradients *out) {
  for (uint32_t i = 0; i < s->pairs.count && i < ROWS_TRIED; i++)
    if (cut_pair(s, &s->pairs.items[i], var, out))
      return true;
  return false;
}

static bool takes_indices(const struct reach *r, const struct flow_node *n) {
  for (uint32_t i = 0; i < node_input_count(n); i++)
    if (node_input(n, i) && is_indices(r, node_input(n, i)))
      return true;
  return false;
}

/* Whether somebody takes rows without their indices; `outside`: who is in no branch. */
static bool is_shared(const struct flow *f, const struct reach *r, value_id rows, bool outside) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (n && n->op != FLOW_FETCH && !(outside && n->guard_count) && node_takes(n, rows) && !takes_indices(r, n))
      return true;
  }
  return false;
}

/* What a branch has made rows of: rows from outside; NO_VALUE: none. */
static value_id rows_handed_in(const struct reach *r, value_id rows, const struct flow_var *var) {
  const struct flow *f = r->flow;
  const struct flow_node *maker = f->nodes.items[f->values.items[rows].producer];
  while (rows && maker && maker->guard_count) {
    rows = NO_VALUE;
    for (uint32_t i = 0; i < node_input_count(maker) && !rows; i++)
      if (node_input(maker, i) && gradients_has_rows(r, &f->values.items[node_input(maker, i)], var))
        rows = node_input(maker, i);
    maker = f->nodes.items[f->values.items[rows].producer];
  }
  return rows;
}

/* Whether a gradient is summed up from rows that others take too, such as a norm, or what decides whether there is a step: then they are
 * what is to be alike. Other sums of them are none: the branches of a cond have one each. */
static bool is_summed_of_shared_rows(const struct reach *r, value_id v, const struct flow_var *var) {
  const struct flow *f = r->flow;
  const struct flow_node *maker = f->nodes.items[f->values.items[v].producer];
  for (uint32_t i = 0; takes_indices(r, maker) && i < node_input_count(maker); i++) {
    value_id rows = node_input(maker, i);
    if (!rows || !gradients_has_rows(r, &f->values.items[rows], var))
      continue;
    value_id given = maker->guard_count ? rows_handed_in(r, rows, var) : NO_VALUE;
    if (is_shared(f, r, rows, false) || (given && is_shared(f, r, given, true)))
      return true;
  }
  return false;
}

void gradient_rows_cut(struct reach *r, struct gradients *out) {
  for (uint32_t i = 0; i < r->updates.count; i++) {
    flow_id id = r->updates.items[i];
    uint32_t var = gradients_updated(r, id);
    value_id whole = var == UINT32_MAX ? NO_VALUE : gradients_choose(r, id, &r->build->vars.items[var]);
    if (var == UINT32_MAX || (whole && !is_summed_of_shared_rows(r, whole, &r->build->vars.items[var])))
      continue;
    struct rows_search s = {.r = r, .update = id, .var = &r->build->vars.items[var], .seen = calloc(r->flow->nodes.count + 1, 1)};
    mark_cone(&s, id);
    list_rows(&s, out);
    find_pairs(&s);
    if (cut_rows_of(&s, var, out))
      i = UINT32_MAX; /* the updates that are left, from the first */
    free(s.seen);
    vec_free(&s.rows);
    vec_free(&s.indices);
    vec_free(&s.pairs);
    vec_free(&s.reached);
  }
}

/* Makes the variable's sum of rows, or is the update that takes them. */
static bool makes_sum(const struct rows_search *s, flow_id id) {
  const struct flow_node *n = s->r->flow->nodes.items[id];
  bool makes = id == s->update;
  for (uint32_t i = 0; i < n->outputs.count; i++)
    makes = makes || gradients_has_shape(s->r, &s->r->flow->values.items[n->outputs.items[i]], s->var);
  return makes;
}

static bool sums_rows(const struct rows_search *s, flow_id id) {
  const struct flow_node *n = s->r->flow->nodes.items[id];
  bool indices = false, rows = false;
  for (uint32_t i = 0; i < node_input_count(n); i++) {
    value_id v = node_input(n, i);
    if (!v || !reach_leads_to(s->r, v, id))
      continue;
    indices = indices || is_indices(s->r, v);
    rows = rows || dtype_is_float(s->r->flow->values.items[v].dtype);
  }
  return indices && rows && makes_sum(s, id);
}

bool gradient_rows_come(struct reach *r, flow_id update, const struct flow_var *var) {
  struct rows_search s = {.r = r, .update = update, .var = var, .seen = calloc(r->flow->nodes.count + 1, 1)};
  bool found = false;
  mark_cone(&s, update);
  for (flow_id id = 1; id < r->flow->nodes.count && !found; id++)
    found = s.seen[id] && sums_rows(&s, id);
  free(s.seen);
  return found;
}
