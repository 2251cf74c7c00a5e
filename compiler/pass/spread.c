/* spread.c: --strategy: steps that were lowered for one machine, and so far are each worker's own, become those of the cluster.
 *
 *   ps-async    variables go round the tasks of job ps, each with its slots; what changes them is computed there, everything else
 *               by each worker
 *   ps-sync     the same, but the gradients are the means of all workers' (gradients.c), and are applied once for all (sync.c)
 *   allreduce   each worker has its own copy of everything; gradients are the means of all workers'
 * Flows are looked at after lowering: functions are inlined, and every update is one of a variable, whoever wrote the optimizer. */
#include <stdlib.h>
#include <string.h>

#include "compiler/pass/flow_edit.h"
#include "compiler/pass/homes.h"
#include "compiler/pass/pass.h"
#include "compiler/pass/regions.h"
#include "compiler/pass/sync.h"

struct spread {
  struct build *build;
  struct reach *reaches; /* per entry */
  struct gradients *gradients;
  uint32_t looked; /* entries */
  struct map keys;
};

#define FIRST_GATHER (1 << 20) /* means have the numbers below */

/* The chief runs these by itself before the others begin. */
static bool initializes(const struct entry *e) { return strcmp(e->name, "init") == 0 || strncmp(e->name, "local_init", 10) == 0; }

static status look(struct spread *s, uint32_t i) {
  struct build *b = s->build;
  struct entry *e = &b->entries.items[i];
  regions_open(b, e->flow);
  if (!initializes(e))
    gradients_of_sums(b, e->flow, &s->gradients[i]);
  reach_init(&s->reaches[i], b, e->flow);
  if (!initializes(e) && gradients_split(&s->reaches[i], e->flow)) {
    reach_deinit(&s->reaches[i]);
    reach_init(&s->reaches[i], b, e->flow);
  }
  status result = initializes(e) ? OK : gradients_find(&s->reaches[i], &s->gradients[i]);
  return status_prefix(result, "entry %s: ", e->name);
}

/* ---- rows ---- */

static const char **users_of(struct build *b, const struct flow *f, value_id v, const bool *for_gradient, uint32_t *count) {
  VEC(const char *) names = {0};
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && !for_gradient[id] && f->nodes.items[id]->op != FLOW_FETCH && node_takes(f->nodes.items[id], v))
      vec_push(&names, f->nodes.items[id]->name);
  const char **copy = arena_copy(&b->arena, names.items, (names.count + 1) * sizeof *copy);
  *count = names.count;
  vec_free(&names);
  return copy;
}

static void ask_for_rows(struct spread *s, uint32_t entry) {
  struct build *b = s->build;
  const struct flow *f = b->entries.items[entry].flow;
  const struct gradients *g = &s->gradients[entry];
  bool *for_gradient = calloc(f->nodes.count + 1, 1);
  gradients_mark(f, g, for_gradient);
  for (uint32_t i = 0; i < g->items.count; i++) {
    if (g->items.items[i].kind < GRADIENT_ROWS || g->items.items[i].gathered)
      continue;
    struct lower_gather what = {.value = f->nodes.items[f->values.items[g->items.items[i].value].producer]->name};
    what.users = users_of(b, f, g->items.items[i].value, for_gradient, &what.user_count);
    what.is_mean = g->items.items[i].kind == GRADIENT_ROWS;
    what.pair = b->gathers.count / 2;
    what.key = FIRST_GATHER + b->gathers.count;
    what.workers = sync_workers(b);
    vec_push(&b->gathers, what);
  }
  free(for_gradient);
}

/* Once more, with the rows of all workers where one's were. */
static status lower_again(struct spread *s) {
  struct build *b = s->build;
  for (uint32_t i = 0; i < b->entries.count; i++) {
    reach_deinit(&s->reaches[i]);
    vec_free(&s->gradients[i].items);
  }
  b->entries.count = 0;
  TRY(pass_lower(b));
  TRY(pass_dead(b));
  return OK;
}

static status look_at_all(struct spread *s) {
  struct build *b = s->build;
  s->reaches = ARENA_ARRAY(&b->arena, struct reach, b->entries.count + 1);
  s->gradients = ARENA_ARRAY(&b->arena, struct gradients, b->entries.count + 1);
  status result = OK;
  for (s->looked = 0; s->looked < b->entries.count && result == OK; s->looked++)
    result = look(s, s->looked);
  return result;
}

static status gather_rows(struct spread *s) {
  struct build *b = s->build;
  for (uint32_t i = 0; i < b->entries.count; i++)
    if (s->gradients[i].wants_rows)
      ask_for_rows(s, i);
  if (!b->gathers.count)
    return OK;
  TRY(lower_again(s));
  TRY(look_at_all(s));
  for (uint32_t i = 0; i < b->entries.count; i++)
    if (s->gradients[i].wants_rows)
      return fail(UNIMPLEMENTED,
                  "entry %s: --strategy %s: gradients of single rows of '%s', used where those of several workers cannot be "
                  "together",
                  b->entries.items[i].name, b->options.strategy, b->vars.items[vec_last(&s->gradients[i].items).var].name);
  return OK;
}

/* ---- tasks ---- */

/* Beside the variables of a server only the order of what touches the same ones counts, and of host calls. */
static bool keeps_order(const struct flow_node *n, const struct flow_node *before) {
  uint32_t var, other;
  if (before->op == FLOW_HOST || n->op == FLOW_HOST || n->region_count || before->region_count)
    return true;
  if (!node_touch_count(n) || !node_touch_count(before))
    return true;
  for (uint32_t i = 0; i < node_touch_count(n); i++)
    for (uint32_t k = 0; node_touch(n, i, &var) != TOUCH_NONE && k < node_touch_count(before); k++)
      if (node_touch(before, k, &other) != TOUCH_NONE && var == other)
        return true;
  return false;
}

static void drop_orders(struct flow *f, const flow_id *before) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    uint32_t kept = 0;
    for (uint32_t i = 0; n && i < n->controls.count; i++)
      if (keeps_order(n, f->nodes.items[n->controls.items[i]]))
        n->controls.items[kept++] = n->controls.items[i];
    if (!n)
      continue;
    n->controls.count = kept;
    if (before[id])
      node_follow(n, before[id]);
  }
}

static status place_on_servers(struct spread *s) {
  struct build *b = s->build;
  struct homes h;
  homes_init(&h, b);
  for (uint32_t i = 0; i < b->entries.count; i++)
    if (s->gradients[i].trains)
      homes_tie(&h, &s->reaches[i]);
  homes_assign(&h);
  status result = OK;
  for (uint32_t i = 0; i < b->entries.count && result == OK; i++) {
    drop_orders(b->entries.items[i].flow, s->reaches[i].before);
    result = homes_place(&h, &s->reaches[i], b->entries.items[i].flow, &s->gradients[i]);
  }
  homes_deinit(&h);
  return result;
}

static void note_replicas(struct entry *e) {
  e->replicated = false;
  for (flow_id id = 1; id < e->flow->nodes.count; id++)
    e->replicated = e->replicated || (e->flow->nodes.items[id] && e->flow->nodes.items[id]->task == TASK_SELF);
}

static status synchronise(struct spread *s, uint32_t i) {
  struct build *b = s->build;
  struct entry *e = &b->entries.items[i];
  uint32_t count = e->flow->nodes.count;
  if (s->gradients[i].trains && b->strategy != STRATEGY_PS_ASYNC) {
    sync_means(b, e, &s->gradients[i], &s->keys);
    TRY(sync_rounds(b, e, s->reaches[i].before, count));
  }
  note_replicas(e);
  return OK;
}

status pass_spread(struct build *b) {
  struct spread s = {.build = b};
  if (b->strategy == STRATEGY_NONE)
    return OK;
  status result = look_at_all(&s);
  if (result == OK && b->strategy != STRATEGY_PS_ASYNC)
    result = gather_rows(&s);
  if (result == OK && b->strategy != STRATEGY_ALLREDUCE)
    result = place_on_servers(&s);
  for (uint32_t i = 0; i < b->entries.count && result == OK; i++)
    result = synchronise(&s, i);
  for (uint32_t i = 0; i < s.looked; i++) {
    reach_deinit(&s.reaches[i]);
    vec_free(&s.gradients[i].items);
  }
  map_deinit(&s.keys);
  return result;
}
