/* spread.c: --strategy: steps that were lowered for one machine, and so far are each worker's own, become those of the cluster.
 *
 *   ps-async    variables go round the tasks of job ps, each with its slots; what changes them is computed there, everything else
 *               by each worker
 *   ps-sync     the same, but the gradients are the means of all workers' (means.c), and are applied once for all (sync.c)
 *   allreduce   each worker has its own copy of everything; gradients are the means of all workers' */
#include "compiler/edit/flow_edit.h"
#include "compiler/pass/homes.h"
#include "compiler/pass/means.h"
#include "compiler/pass/pass.h"
#include "compiler/pass/sync.h"

struct spread {
  struct build *build;
  struct reach *reaches; /* per entry */
  struct gradients *gradients;
  struct map keys;
};

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

static void drop_orders(struct flow *f, const struct reach *r) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *n = f->nodes.items[id];
    uint32_t kept = 0;
    for (uint32_t i = 0; n && i < n->controls.count; i++)
      if (keeps_order(n, f->nodes.items[n->controls.items[i]]))
        n->controls.items[kept++] = n->controls.items[i];
    if (!n)
      continue;
    n->controls.count = kept;
  }
  for (uint32_t i = 0; i < r->befores.count; i++)
    if (f->nodes.items[r->befores.items[i].node])
      node_follow(f->nodes.items[r->befores.items[i].node], r->befores.items[i].update);
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
    drop_orders(b->entries.items[i].flow, &s->reaches[i]);
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

/* Rounds and orders of variables are laid over each other: a node that waits for what waits for it would never run. */
static status verify_order(const struct flow *f) {
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    flow_id latest = 0;
    for (uint32_t i = 0; n && i < flow_input_count(n); i++)
      if (flow_input(n, i) && f->values.items[flow_input(n, i)].producer > latest)
        latest = f->values.items[flow_input(n, i)].producer;
    for (uint32_t i = 0; n && i < n->controls.count; i++)
      latest = n->controls.items[i] > latest ? n->controls.items[i] : latest;
    if (latest >= id)
      return fail(INTERNAL, "%s (%s): waits for '%s', which waits for it", n->name, n->tf_op, f->nodes.items[latest]->name);
  }
  return OK;
}

/* With the means in it no update of the step differs from worker to worker: their variables would go apart. */
static status verify_alike(struct build *b, const struct entry *e) {
  struct reach r;
  status result = OK;
  reach_init(&r, b, e->flow);
  r.explicit = true;
  for (flow_id id = 1; id < e->flow->nodes.count; id++) {
    const struct flow_node *n = e->flow->nodes.items[id];
    for (uint32_t i = 0; n && sync_meets(n) && i < n->outputs.count; i++)
      r.cut[n->outputs.items[i]] = true;
  }
  reach_run(&r, true);
  if (r.updates.count) {
    const struct flow_node *n = e->flow->nodes.items[r.updates.items[0]];
    result = fail(INTERNAL, "%s (%s): --strategy %s: the workers would change a variable each in its own way: %s", n->name, n->tf_op,
                  b->options.strategy, reach_path(&r, r.updates.items[0], e->flow->arena));
  }
  reach_deinit(&r);
  return result;
}

static status synchronise(struct spread *s, uint32_t i) {
  struct build *b = s->build;
  struct entry *e = &b->entries.items[i];
  if (s->gradients[i].trains && b->strategy != STRATEGY_PS_ASYNC) {
    sync_means(b, e, &s->gradients[i], &s->keys);
    TRY(sync_rounds(b, e, &s->reaches[i]));
    TRY(verify_alike(b, e));
  }
  note_replicas(e);
  return verify_order(e->flow);
}

status pass_spread(struct build *b) {
  if (b->strategy == STRATEGY_NONE)
    return OK;
  struct spread s = {.build = b, .reaches = b->means->reaches, .gradients = b->means->gradients};
  status result = b->strategy == STRATEGY_ALLREDUCE ? OK : place_on_servers(&s);
  for (uint32_t i = 0; i < b->entries.count && result == OK; i++)
    result = synchronise(&s, i);
  means_deinit(b->means);
  map_deinit(&s.keys);
  return result;
}
