/* sync.c: updates that are made once for all workers (--strategy ps-sync, allreduce).
 *
 * strategy.c has put a mean in front of every gradient; here the entries that hold such means are completed. With ps-sync the
 * steps of all workers meet on each ps twice: when they begin, where one of them is told that it leads, and when its
 * updates are made, before any of them ends. Only the leader's step updates that ps's variables (a guard, as in conds).
 * With allreduce the means are made on the first worker, and each worker updates its own variables by itself.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/pass/pass.h"

struct synchroniser {
  struct build *build;
  struct flow *flow;
  uint32_t group_size;
  const char *entry;
};

static bool is_mean(const struct flow_node *node) {
  return node && node->op == FLOW_HOST && strcmp(node->host, "CollectiveReduce") == 0;
}

static bool updates_variables(const struct flow_node *node) {
  if (node->op == FLOW_ASSIGN)
    return true;
  for (uint32_t i = 0; node->op == FLOW_KERNEL && i < node->kernel->buffers.count; i++)
    if (node->args[i].var && node->kernel->buffers.items[i].mode != BUFFER_IN)
      return true;
  return false;
}

/* ---- new nodes ---- */

static struct flow_attr *round_attrs(struct synchroniser *s, uint32_t task, const char *when) {
  struct arena *a = &s->build->arena;
  struct flow_attr *attrs = ARENA_ARRAY(a, struct flow_attr, 2);
  char *round = arena_printf(a, "%s %u %s", s->entry, task, when);
  attrs[0].name = "group_size";
  attrs[0].value = (struct attr_value){.kind = ATTR_INT, .i = s->group_size};
  attrs[1].name = "round";
  attrs[1].value.kind = ATTR_STRING;
  attrs[1].value.s.data = round;
  attrs[1].value.s.size = strlen(round);
  return attrs;
}

static struct flow_node *add_round(struct synchroniser *s, uint32_t task, const char *when, flow_id *id) {
  struct flow_node *node = flow_add_node(s->flow, FLOW_HOST, "sync", "SyncRound", task, id);
  node->host = "SyncRound";
  node->attrs = round_attrs(s, task, when);
  node->attr_count = 2;
  node->blocks = true;
  node->stateful = true;
  return node;
}

/* Node numbers are an order: the last node becomes the first. */
static void move_last_to_front(struct flow *f) {
  uint32_t last = f->nodes.count - 1;
  struct flow_node *node = f->nodes.items[last];
  memmove(&f->nodes.items[2], &f->nodes.items[1], (last - 1) * sizeof *f->nodes.items);
  f->nodes.items[1] = node;
  for (uint32_t v = 1; v < f->values.count; v++)
    if (f->values.items[v].producer)
      f->values.items[v].producer = f->values.items[v].producer == last ? 1 : f->values.items[v].producer + 1;
  for (uint32_t n = 1; n < f->nodes.count; n++)
    for (uint32_t i = 0; f->nodes.items[n] && i < f->nodes.items[n]->controls.count; i++)
      f->nodes.items[n]->controls.items[i]++;
}

static void add_guard(struct synchroniser *s, struct flow_node *node, value_id leads) {
  struct flow_guard *guards = ARENA_ARRAY(&s->build->arena, struct flow_guard, node->guard_count + 1);
  guards[0] = (struct flow_guard){.predicate = leads, .expected = true};
  if (node->guard_count)
    memcpy(guards + 1, node->guards, node->guard_count * sizeof *guards);
  node->guards = guards;
  node->guard_count++;
}

/* ---- ps-sync ---- */

static status check_update(const struct flow_node *node) {
  for (uint32_t i = 0; node->op == FLOW_KERNEL && i < node->kernel->buffers.count; i++)
    if (node->args[i].value && node->kernel->buffers.items[i].mode == BUFFER_OUT)
      return fail(UNIMPLEMENTED, "%s (%s): an update that also gives a value, in a synchronous step", node->name, node->tf_op);
  return OK;
}

static bool has_updates(const struct flow *f, uint32_t task) {
  for (uint32_t n = 1; n < f->nodes.count; n++)
    if (f->nodes.items[n] && f->nodes.items[n]->task == task && updates_variables(f->nodes.items[n]))
      return true;
  return false;
}

static status synchronise_ps(struct synchroniser *s, uint32_t task) {
  struct flow *f = s->flow;
  flow_id first, last;
  if (!has_updates(f, task))
    return OK;
  struct flow_node *begin = add_round(s, task, "begins", &first);
  value_id leads = flow_add_value(f, DTYPE_BOOL, 0, NULL);
  f->values.items[leads].producer = first;
  vec_push(&begin->outputs, leads);
  move_last_to_front(f);
  struct flow_node *end = add_round(s, task, "ends", &last);
  for (uint32_t n = 2; n < last; n++) {
    struct flow_node *node = f->nodes.items[n];
    if (!node || node->task != task || !updates_variables(node))
      continue;
    TRY(check_update(node));
    add_guard(s, node, leads);
    vec_push(&end->controls, n);
  }
  return OK;
}

/* ---- the entries ---- */

/* Means of values that each worker has are made on the first worker. */
static void gather_on_first_worker(struct synchroniser *s) {
  uint32_t worker = cluster_find(&s->build->cluster, s->build->options.replicate, 0);
  for (uint32_t i = 0; worker == UINT32_MAX && i < s->build->cluster.tasks.count; i++)
    if (strcmp(s->build->cluster.tasks.items[i].job, s->build->options.replicate) == 0)
      worker = i;
  for (uint32_t n = 1; n < s->flow->nodes.count; n++)
    if (is_mean(s->flow->nodes.items[n]) && s->flow->nodes.items[n]->task == TASK_SELF)
      s->flow->nodes.items[n]->task = worker;
}

static bool has_means(const struct flow *f) {
  for (uint32_t n = 1; n < f->nodes.count; n++)
    if (is_mean(f->nodes.items[n]))
      return true;
  return false;
}

static uint32_t count_workers(const struct build *b) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->cluster.tasks.count; i++)
    count += strcmp(b->cluster.tasks.items[i].job, b->options.replicate) == 0;
  return count;
}

status pass_sync(struct build *b) {
  if (!b->options.strategy)
    return OK;
  for (uint32_t i = 0; i < b->entries.count; i++) {
    struct entry *entry = &b->entries.items[i];
    struct synchroniser s = {.build = b, .flow = entry->flow, .group_size = count_workers(b), .entry = entry->name};
    if (!has_means(entry->flow))
      continue;
    gather_on_first_worker(&s);
    for (uint32_t t = 0; t < b->cluster.tasks.count; t++)
      if (strcmp(b->options.strategy, "ps-sync") == 0 && strcmp(b->cluster.tasks.items[t].job, "ps") == 0)
        TRY(synchronise_ps(&s, t));
  }
  return OK;
}
