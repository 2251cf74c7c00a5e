/* region_trim.c: what regions take and do not use: captures of conds, variables of loops that only feed themselves; and arrays whose rows
 * a loop makes for nobody. */
#include "compiler/edit/region_trim.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/loop/loop_form.h"
#include "compiler/pass/pass.h"

/* used[value]: a node that must run, a guard of one, or a result takes it. */
static bool *mark_used(const struct flow *f) {
  bool *used = calloc(f->values.count + 1, 1), *keep = calloc(f->nodes.count + 1, 1);
  flow_mark_live(f, keep);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    for (uint32_t i = 0; n && keep[id] && i < n->inputs.count; i++)
      used[n->inputs.items[i]] = true;
    for (uint32_t i = 0; n && keep[id] && i < n->guard_count; i++)
      used[n->guards[i].predicate] = true;
  }
  for (uint32_t i = 0; i < f->results.count; i++)
    used[f->results.items[i]] = true;
  free(keep);
  return used;
}

/* live[i] where the region uses its parameter i: for those of its results that are live, gives[]; NULL: all. */
static bool mark_params(struct flow *region, bool *live, const bool *gives) {
  uint32_t count = region->results.count;
  value_id *all = malloc((count + 1) * sizeof *all);
  memcpy(all, region->results.items, count * sizeof *all);
  region->results.count = 0;
  for (uint32_t i = 0; i < count; i++)
    if (!gives || gives[i])
      region->results.items[region->results.count++] = all[i];
  bool *used = mark_used(region), changed = false;
  memcpy(region->results.items, all, count * sizeof *all);
  region->results.count = count;
  for (uint32_t i = 0; i < region->params.count; i++)
    if (used[region->params.items[i]] && !live[i])
      live[i] = changed = true;
  free(used);
  free(all);
  return changed;
}

/* Sizes that the parameter gives its region are needed with it. */
static bool gives_sizes(const struct flow *f, value_id outside, const struct flow *region, value_id inside) {
  const struct flow_value *x = &f->values.items[outside], *y = &region->values.items[inside];
  bool gives = x->rank != y->rank || x->any_rank || y->any_rank;
  for (int d = 0; !gives && d < x->rank; d++)
    gives = dim_equal(f->dims, x->dims[d], y->dims[d]) != 1;
  return gives;
}

static void keep_values(struct flow *f, value_id *items, uint32_t *count, const bool *live) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < *count; i++)
    if (live[i]) {
      f->values.items[items[i]].index = kept;
      items[kept++] = items[i];
    }
  *count = kept;
}

static void keep_ids(value_id *items, uint32_t *count, const bool *live) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < *count; i++)
    if (live[i])
      items[kept++] = items[i];
  *count = kept;
}

static bool trim_if(struct flow *f, struct flow_node *n) {
  uint32_t count = n->inputs.count - 1, before = count;
  bool *live = calloc(count + 1, 1);
  for (uint32_t r = 0; r < n->region_count; r++)
    mark_params(n->branches[r], live, NULL);
  for (uint32_t r = 0; r < n->region_count; r++)
    for (uint32_t i = 0; i < count; i++)
      live[i] |= gives_sizes(f, n->inputs.items[i + 1], n->branches[r], n->branches[r]->params.items[i]);
  for (uint32_t r = 0; r < n->region_count; r++)
    keep_values(n->branches[r], n->branches[r]->params.items, &n->branches[r]->params.count, live);
  keep_ids(n->inputs.items + 1, &count, live);
  n->inputs.count = count + 1;
  free(live);
  return count < before;
}

/* The arrays whose rows somebody takes. Where nobody takes any, one may be what says how long they are. */
static void mark_rows(const struct flow *f, const struct flow_node *n, const bool *used, bool *rows) {
  const value_id *arrays = n->outputs.items + loop_var_count(n);
  bool any = false;
  int64_t length;
  for (uint32_t i = 0; i < n->rows_out; i++)
    any |= rows[i] = used[arrays[i]];
  if (n->rows_out && !any)
    rows[0] = !dim_is_const(f->dims, dim_resolve(f->dims, f->values.items[arrays[0]].dims[0]), &length);
}

/* live: parameters of the body; gives: its results. */
static void mark_loop(const struct flow *f, const struct flow_node *n, const bool *used, bool *live, bool *gives) {
  const struct flow *body = n->branches[1];
  uint32_t vars = loop_var_count(n);
  for (uint32_t i = 0; i < vars; i++)
    live[i] = used[n->outputs.items[i]] || gives_sizes(f, n->inputs.items[i], body, body->params.items[i]) ||
              gives_sizes(f, n->outputs.items[i], body, body->params.items[i]);
  mark_rows(f, n, used, gives + vars);
  mark_params(n->branches[0], live, NULL);
  do
    memcpy(gives, live, vars);
  while (mark_params(n->branches[1], live, gives));
}

static bool trim_while(struct flow *f, struct flow_node *n, const bool *used) {
  struct flow *condition = n->branches[0], *body = n->branches[1];
  uint32_t before = n->inputs.count + n->outputs.count, vars = loop_var_count(n);
  bool *live = calloc(n->inputs.count + 1, 1), *gives = calloc(n->outputs.count + 1, 1);
  mark_loop(f, n, used, live, gives);
  n->rows_out = n->rows_in = 0;
  for (uint32_t i = vars; i < n->outputs.count; i++)
    n->rows_out += gives[i];
  for (uint32_t i = vars; i < n->inputs.count; i++)
    n->rows_in += live[i];
  keep_values(condition, condition->params.items, &condition->params.count, live);
  keep_values(body, body->params.items, &body->params.count, live);
  keep_ids(body->results.items, &body->results.count, gives);
  keep_values(f, n->outputs.items, &n->outputs.count, gives);
  keep_ids(n->inputs.items, &n->inputs.count, live);
  free(live);
  free(gives);
  return n->inputs.count + n->outputs.count < before;
}

/* Whether the regions take and give one for one what the node takes and gives. */
static bool is_regular(const struct flow_node *n) {
  if (n->op == FLOW_WHILE)
    return loop_is_regular(n);
  bool regular = n->region_count > 0;
  for (uint32_t r = 0; r < n->region_count; r++)
    regular = regular && n->branches[r]->params.count == n->inputs.count - 1;
  return regular;
}

bool flow_trim_regions(struct flow *f) {
  bool *used = mark_used(f), changed = false;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (!n || (n->op != FLOW_IF && n->op != FLOW_WHILE) || !is_regular(n))
      continue;
    changed |= n->op == FLOW_IF ? trim_if(f, n) : trim_while(f, n, used);
    for (uint32_t r = 0; r < n->region_count; r++)
      changed |= flow_trim_regions(n->branches[r]);
  }
  free(used);
  return changed;
}
