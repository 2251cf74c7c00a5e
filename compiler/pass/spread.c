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
static bool is_seen(const struct flow_node *n) { return (n->op == FLOW_HOST || n->region_count) && node_changes(n); }
static bool keeps_order(const struct flow_node *n, const struct flow_node *before) {
  return n->op == FLOW_NOOP || is_seen(n) || is_seen(before) || nodes_share_variable(n, before);
}

/* What a node comes after; a node that only joins others stands for those. */
static void keep_orders(const struct flow *f, struct flow_node *n) {
  VEC(flow_id) controls = {0};
  for (uint32_t i = 0; i < n->controls.count; i++)
    vec_push(&controls, n->controls.items[i]);
  n->controls.count = 0;
  for (uint32_t i = 0; i < controls.count; i++) {
    const struct flow_node *before = f->nodes.items[controls.items[i]];
    bool joins = before->op == FLOW_NOOP;
    for (uint32_t k = 0; k < (joins ? before->controls.count : 1); k++) {
      flow_id id = joins ? before->controls.items[k] : controls.items[i];
      if (keeps_order(n, f->nodes.items[id]))
        node_follow(n, id);
    }
  }
  vec_free(&controls);
}

static void drop_orders(struct flow *f, const struct reach *r) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id])
      keep_orders(f, f->nodes.items[id]);
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
