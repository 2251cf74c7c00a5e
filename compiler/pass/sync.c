/* sync.c: see sync.h.
 *
 * Steps of all workers meet in rounds on each task that holds what a round makes (runtime/resource/round.h). Such a part enters the round
 * before it reads, and gives when all has come that it brings: what it has read of the task's variables is copied by then, and the means
 * are made of the contributions of those that the round takes.
 *
 * Behind the means the steps of all workers are alike, so each of them could make the updates; on a server one of them does (a guard, as in
 * conds): the first that has all that they need, so that none of it can be missing any more. The others wait until it has ended them. What
 * they want to know of a variable's new value they compute for themselves from the old one, as the leader does. What an optimizer's op
 * changes in place is read after the updates instead, unless other updates of the step are made of it (of several steps in one). */
#include "compiler/pass/sync.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/flow_kernel.h"
#include "compiler/edit/update_values.h"

uint32_t sync_workers(const struct build *b) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->cluster.tasks.count; i++)
    count += strcmp(b->cluster.tasks.items[i].job, build_replicated(b)) == 0;
  return count;
}

static uint32_t first_worker(const struct build *b) {
  uint32_t worker = cluster_find(&b->cluster, build_replicated(b), 0);
  for (uint32_t i = 0; worker == UINT32_MAX && i < b->cluster.tasks.count; i++)
    if (strcmp(b->cluster.tasks.items[i].job, build_replicated(b)) == 0)
      worker = i;
  return worker;
}

/* ---- host calls ---- */

static void add_int(struct flow_attr **at, const char *name, int64_t value) {
  *(*at)++ = (struct flow_attr){.name = name, .value = {.kind = ATTR_INT, .i = value}};
}
static void add_text(struct flow_attr **at, struct arena *arena, const char *name, const char *text) {
  (*at)->name = name;
  (*at)->value.kind = ATTR_STRING;
  (*at)->value.s.data = arena_strdup(arena, text);
  (*at)->value.s.size = strlen(text);
  (*at)++;
}

static struct flow_node *add_meeting(struct flow *f, const char *host, const struct flow_node *named, uint32_t task, flow_id *id) {
  struct flow_node *n = flow_append(f, FLOW_HOST, named, task, id);
  n->host = n->tf_op = host;
  n->blocks = n->stateful = true;
  return n;
}

/* ---- means ---- */

/* "0 2": the tasks that hold what the entry's rounds make, in order; the first one decides. */
static const char *holder_list(struct build *b, const uint8_t *holds) {
  const char *text = "";
  for (uint32_t t = 0; t < b->cluster.tasks.count; t++)
    if (holds[t])
      text = arena_printf(&b->arena, "%s%s%u", text, *text ? " " : "", t);
  return text;
}

static value_id add_mean(struct build *b, struct flow *f, value_id of, bool is_sum, uint32_t task, uint32_t number) {
  const struct flow_node *maker = f->nodes.items[f->values.items[of].producer];
  struct flow_attr *attrs = ARENA_ARRAY(&b->arena, struct flow_attr, 3), *at = attrs;
  flow_id id;
  struct flow_node *n = add_meeting(f, "SyncValue", maker, task, &id);
  add_int(&at, "instance_key", number);
  add_text(&at, &b->arena, "final_op", is_sum ? "Id" : "Div");
  add_text(&at, &b->arena, "kind", "reduce");
  n->attrs = attrs;
  n->attr_count = (uint32_t)(at - attrs);
  n->guards = maker->guards;
  n->guard_count = maker->guard_count;
  vec_push(&n->inputs, of);
  return flow_append_output(f, n, id, f->values.items[of]);
}

/* The mean's number: the same in all variants of an entry. */
static uint32_t mean_number(struct build *b, struct map *keys, const char *entry, uint32_t i) {
  const char *text = arena_printf(&b->arena, "%s %u", entry, i);
  uint32_t number = keys->count;
  if (!map_find(keys, text, &number))
    map_insert(keys, text, number);
  return number;
}

void sync_means(struct build *b, struct entry *e, struct gradients *g, struct map *keys) {
  struct flow *f = e->flow;
  uint32_t count = f->nodes.count, values = f->values.count;
  bool *for_gradient = calloc(count + 1, 1);
  value_id *mean = calloc(values + 1, sizeof *mean);
  gradients_mark(f, g, for_gradient);
  for (uint32_t i = 0; i < g->items.count; i++) {
    uint32_t task = b->vars.items[g->items.items[i].var].task;
    task = task == TASK_SELF ? first_worker(b) : task;
    if (g->items.items[i].gathered) {
      struct flow_node *n = f->nodes.items[f->values.items[g->items.items[i].gathered].producer];
      n->task = task;
      n->host = "SyncValue"; /* kind: a gather, unless it says */
      continue;
    }
    mean[g->items.items[i].value] =
      add_mean(b, f, g->items.items[i].value, g->items.items[i].kind == GRADIENT_SUM, task, mean_number(b, keys, e->name, i));
  }
  for (flow_id id = 1; id < count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (!n || for_gradient[id] || n->op == FLOW_FETCH)
      continue;
    for (uint32_t i = 0; i < node_input_count(n); i++) {
      value_id v = node_input(n, i);
      if (v && v < values && mean[v])
        node_replace_input(n, v, mean[v], f->arena);
    }
  }
  free(for_gradient);
  free(mean);
}

/* ---- rounds ---- */

/* What a variable holds after an update. */
struct new_value {
  flow_id update;
  uint32_t var;
  value_id value;
};
struct round {
  struct build *build;
  struct flow *flow;
  const char *entry, *holders;
  bool leads; /* the task has variables that are updated once for all */
  bool turns; /* of the entry: means are made of others */
  uint32_t task;
  const struct reach *reach; /* of the nodes that were there before the means */
  bool *led;                 /* per node: only the leader's step runs it */
  uint32_t led_count;
  VEC(struct new_value) news; /* where somebody has asked */
  bool in_place;              /* they may also be what ops make that change variables in place */
  bool *behind;               /* per node: it needs a mean */
  VEC(flow_id) late;          /* reads that wait for the leader's updates */
};

static flow_id before(const struct round *r, flow_id id, uint32_t var) { return reach_update_before(r->reach, id, var); }
static bool is_led(const struct round *r, flow_id id) { return id < r->led_count && r->led[id]; }

static bool may_be_led(const struct flow_node *n) {
  return !node_calls(n) && n->op != FLOW_FEED && n->op != FLOW_FETCH && n->op != FLOW_CONST && n->op != FLOW_BIND && n->op != FLOW_NOOP;
}

/* Updates of the server's variables, and what is only for them. */
static void find_led(struct round *r) {
  struct flow *f = r->flow;
  uint8_t *users = calloc(f->nodes.count + 1, 1); /* 1: some are led, 2: some are not */
  free(r->led);
  r->led_count = f->nodes.count;
  r->led = calloc(r->led_count + 1, 1);
  for (flow_id id = f->nodes.count - 1; id > 0; id--) {
    const struct flow_node *n = f->nodes.items[id];
    if (!n)
      continue;
    r->led[id] = n->task == r->task && (node_updates_inside(n) || (may_be_led(n) && users[id] == 1));
    for (uint32_t i = 0; i < node_input_count(n); i++)
      if (node_input(n, i))
        users[f->values.items[node_input(n, i)].producer] |= r->led[id] ? 1 : 2;
  }
  free(users);
}

/* ---- new values ---- */

static value_id value_after(struct round *r, flow_id update, uint32_t var);

static value_id value_before(struct round *r, flow_id update, uint32_t var) {
  const struct flow_var *v = &r->build->vars.items[var];
  struct flow_value like = {.dtype = v->dtype, .rank = v->rank};
  flow_id id, earlier = before(r, update, var);
  if (earlier)
    return value_after(r, earlier, var);
  if (!v->has_shape)
    return NO_VALUE;
  for (int d = 0; d < v->rank; d++)
    like.dims[d] = dim_const(r->flow->dims, v->dims[d]);
  struct flow_node *read = flow_append(r->flow, FLOW_READ, r->flow->nodes.items[update], r->task, &id);
  read->var = var;
  return flow_append_output(r->flow, read, id, like);
}

static enum scalar_op sum_of(const struct flow_node *n) {
  const char *op = n->op == FLOW_KERNEL && n->inputs.count == 1 ? n->tf_op : "";
  bool adds = strcmp(op, "AssignAddVariableOp") == 0 || strcmp(op, "AssignAdd") == 0;
  bool subtracts = strcmp(op, "AssignSubVariableOp") == 0 || strcmp(op, "AssignSub") == 0;
  return adds ? SCALAR_ADD : subtracts ? SCALAR_SUB : SCALAR_NONE;
}

/* Where the update's guards do not hold the variable keeps what it had. */
static value_id merge_guarded(struct round *r, const struct flow_node *update, value_id old, value_id new) {
  for (uint32_t i = update->guard_count; i-- > 0;) {
    flow_id id;
    struct flow_node *m = flow_append(r->flow, FLOW_MERGE, update, r->task, &id);
    struct flow_guard g = update->guards[i];
    m->guards = update->guards;
    m->guard_count = i;
    vec_push(&m->inputs, g.predicate);
    vec_push(&m->inputs, g.expected ? old : new);
    vec_push(&m->inputs, g.expected ? new : old);
    new = flow_append_output(r->flow, m, id, r->flow->values.items[old]);
  }
  return new;
}

static void note_new(struct round *r, flow_id update, uint32_t var, value_id old, value_id new) {
  const struct flow_node *n = r->flow->nodes.items[update];
  if (new && (old || !n->guard_count))
    vec_push(&r->news, (struct new_value){update, var, merge_guarded(r, n, old, new)});
}

static void find_sum(struct round *r, flow_id update, uint32_t var) {
  struct flow_node *n = r->flow->nodes.items[update];
  value_id old = value_before(r, update, var);
  value_id new = old ? flow_append_map(r->flow, n, r->task, "new_value", sum_of(n), old, n->inputs.items[0]) : NO_VALUE;
  if (new) {
    struct flow_node *sum = vec_last(&r->flow->nodes);
    sum->guards = n->guards;
    sum->guard_count = n->guard_count;
  }
  note_new(r, update, var, old, new);
}

/* Of all variables that an op changes in place: each worker does what it does, beside the leader. */
static void find_changed(struct round *r, flow_id update) {
  struct flow_node *n = r->flow->nodes.items[update];
  uint32_t count = n->kernel->buffers.count;
  value_id *old = calloc(count + 1, sizeof *old), *made = calloc(count + 1, sizeof *made);
  bool all = true;
  for (uint32_t b = 0; b < count && all; b++)
    if (n->kernel->buffers.items[b].mode == BUFFER_INOUT) {
      old[b] = value_before(r, update, n->args[b].var - 1);
      all = old[b] != NO_VALUE;
    }
  if (all) {
    struct flow_node *changed = update_append_values(r->flow, n, r->task, old, made);
    changed->guards = n->guards;
    changed->guard_count = n->guard_count;
  }
  for (uint32_t b = 0; b < count && all; b++)
    if (made[b])
      note_new(r, update, n->args[b].var - 1, old[b], made[b]);
  free(old);
  free(made);
}

static value_id known_value(const struct round *r, flow_id update, uint32_t var) {
  for (uint32_t i = 0; i < r->news.count; i++)
    if (r->news.items[i].update == update && r->news.items[i].var == var)
      return r->news.items[i].value;
  return NO_VALUE;
}

/* What the variable holds after an update that says it; NO_VALUE: it is changed in place, in a way that no value has. */
static value_id value_after(struct round *r, flow_id update, uint32_t var) {
  const struct flow_node *n = r->flow->nodes.items[update];
  if (known_value(r, update, var))
    return known_value(r, update, var);
  if (n->op == FLOW_ASSIGN)
    note_new(r, update, var, n->guard_count ? value_before(r, update, var) : NO_VALUE, n->inputs.items[0]);
  else if (sum_of(n) != SCALAR_NONE)
    find_sum(r, update, var);
  else if (r->in_place && update_has_values(n))
    find_changed(r, update);
  return known_value(r, update, var);
}

static bool reaches_update(const struct flow *f, flow_id from) {
  bool *reached = calloc(f->nodes.count + 1, 1), found = false;
  reached[from] = true;
  for (bool more = true; more && !found;) {
    more = false;
    for (flow_id id = 1; id < f->nodes.count && !found; id++) {
      const struct flow_node *n = f->nodes.items[id];
      if (!n || reached[id])
        continue;
      for (uint32_t i = 0; i < node_input_count(n); i++)
        reached[id] = reached[id] || (node_input(n, i) && reached[f->values.items[node_input(n, i)].producer]);
      more = more || reached[id];
      found = reached[id] && node_updates_inside(n);
    }
  }
  free(reached);
  return found;
}

static void replace_uses(struct round *r, value_id from, value_id to, bool led) {
  for (flow_id id = 1; id < r->flow->nodes.count; id++)
    if (r->flow->nodes.items[id] && is_led(r, id) == led && node_takes(r->flow->nodes.items[id], from))
      node_replace_input(r->flow->nodes.items[id], from, to, r->flow->arena);
}

static void take_new(struct round *r, flow_id id, value_id new) {
  struct flow *f = r->flow;
  struct flow_node *n = f->nodes.items[id];
  value_id old = n->outputs.items[0];
  replace_uses(r, old, new, true);
  replace_uses(r, old, new, false);
  f->values.items[old].producer = 0;
  n->outputs.count = 0;
  n->op = FLOW_NOOP; /* others may come after it */
}

static bool is_taken_by_led(const struct round *r, value_id v) {
  for (flow_id id = 1; id < r->flow->nodes.count; id++)
    if (r->flow->nodes.items[id] && is_led(r, id) && node_takes(r->flow->nodes.items[id], v))
      return true;
  return false;
}

/* The others read when the leader's updates are made; it reads for itself, if it wants to. */
static void read_late(struct round *r, flow_id id) {
  struct flow *f = r->flow;
  struct flow_node *n = f->nodes.items[id];
  flow_id again;
  vec_push(&r->late, id);
  if (!is_taken_by_led(r, n->outputs.items[0]))
    return;
  struct flow_node *own = flow_append(f, FLOW_READ, n, n->task, &again);
  own->var = n->var;
  own->guards = n->guards;
  own->guard_count = n->guard_count;
  for (uint32_t i = 0; i < n->controls.count; i++)
    vec_push(&own->controls, n->controls.items[i]);
  value_id old = n->outputs.items[0];
  replace_uses(r, old, flow_append_output(f, own, again, f->values.items[old]), true);
}

/* A read of a new value for others than the leader. What changes a variable in the same step cannot wait for it. */
static status read_new(struct round *r, flow_id id) {
  const struct flow_node *n = r->flow->nodes.items[id];
  flow_id update = before(r, id, n->var);
  bool must = reaches_update(r->flow, id);
  r->in_place = must;
  value_id new = value_after(r, update, n->var);
  if (new)
    take_new(r, id, new);
  else if (!must)
    read_late(r, id);
  else
    return fail(UNIMPLEMENTED, "%s (%s): --strategy %s: what '%s' (%s) has made of '%s' changes another variable in the same step", n->name,
                n->tf_op, r->build->options.strategy, r->flow->nodes.items[update]->name, r->flow->nodes.items[update]->tf_op,
                r->build->vars.items[n->var].name);
  return OK;
}

static bool is_late(const struct round *r, flow_id id) {
  for (uint32_t i = 0; i < r->late.count; i++)
    if (r->late.items[i] == id)
      return true;
  return false;
}

/* What a new value is made of may be new, too: it was the leader's alone until somebody else asked. */
static status read_new_values(struct round *r) {
  find_led(r);
  for (bool more = true; more;) {
    more = false;
    for (flow_id id = 1; id < r->flow->nodes.count; id++) {
      const struct flow_node *n = r->flow->nodes.items[id];
      if (!n || n->op != FLOW_READ || n->task != r->task || !before(r, id, n->var) || is_led(r, id) || is_late(r, id))
        continue;
      TRY(read_new(r, id));
      find_led(r);
      more = true;
    }
  }
  return OK;
}

/* ---- the meetings ---- */

bool sync_is_mean(const struct flow_node *n) { return node_is_call(n, "SyncValue"); }

static bool is_round(const struct flow_node *n) { return node_is_call(n, "SyncRound"); }

bool sync_meets(const struct flow_node *n) { return sync_is_mean(n) || is_round(n); }

bool sync_gives(const struct flow_node *n) {
  const struct attr_value *when = is_round(n) ? node_call_attr(n, "when") : NULL;
  return when && strncmp(when->s.data, "gives", when->s.size) == 0;
}

/* What all calls of an entry's rounds say: which one, and who holds what it makes. */
static void name_round(struct build *b, struct flow_node *n, const struct round *r, const char *when) {
  struct flow_attr *attrs = ARENA_ARRAY(&b->arena, struct flow_attr, n->attr_count + 5), *at = attrs + n->attr_count;
  if (n->attr_count)
    memcpy(attrs, n->attrs, n->attr_count * sizeof *attrs);
  add_text(&at, &b->arena, "round", r->entry);
  add_text(&at, &b->arena, "holders", r->holders);
  add_int(&at, "has_leader", r->leads);
  add_int(&at, "has_turns", r->turns);
  if (when)
    add_text(&at, &b->arena, "when", when);
  n->attrs = attrs;
  n->attr_count = (uint32_t)(at - attrs);
}

static struct flow_node *add_round(struct round *r, const char *when, flow_id *id) {
  static const struct flow_node named = {.name = "sync"};
  struct flow_node *n = add_meeting(r->flow, "SyncRound", &named, r->task, id);
  name_round(r->build, n, r, when);
  return n;
}

/* `n` runs after the value is here: taken in where another task makes it, so that it is waited for. */
static void await_value(struct round *r, struct flow_node *n, value_id v) {
  flow_id producer = r->flow->values.items[v].producer;
  const struct flow_node *p = r->flow->nodes.items[producer];
  if (p->task == r->task)
    node_follow(n, producer);
  else if (!p->guard_count && !node_takes(n, v))
    vec_push(&n->inputs, v);
}

/* What comes after any value that is made of all workers', in any way; or, `led`, after the leader's updates. */
static bool *find_behind(const struct round *r, bool led) {
  const struct flow *f = r->flow;
  bool *behind = calloc(f->nodes.count + 1, 1);
  for (bool more = true; more;) {
    more = false;
    for (flow_id id = 1; id < f->nodes.count; id++) {
      const struct flow_node *n = f->nodes.items[id];
      bool is = n && led && is_led(r, id);
      if (!n || behind[id])
        continue;
      for (uint32_t i = 0; i < node_input_count(n) && !is; i++) {
        flow_id from = node_input(n, i) ? f->values.items[node_input(n, i)].producer : 0;
        is = from && (behind[from] || (!led && sync_is_mean(f->nodes.items[from])));
      }
      for (uint32_t i = 0; i < n->controls.count && !is; i++)
        is = behind[n->controls.items[i]] || (!led && sync_is_mean(f->nodes.items[n->controls.items[i]]));
      behind[id] = is;
      more = more || is;
    }
  }
  return behind;
}

/* Everything that the part reads or brings comes behind `enters`, and before `gives`. */
static flow_id enter_and_give(struct round *r, uint32_t count) {
  struct flow *f = r->flow;
  flow_id entered, given;
  add_round(r, "enters", &entered);
  struct flow_node *gives = add_round(r, "gives", &given);
  node_follow(gives, entered);
  for (flow_id id = 1; id < count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (!n || n->task != r->task || (!sync_is_mean(n) && !node_touch_count(n) && !n->region_count))
      continue;
    node_follow(n, entered);
    if (!sync_is_mean(n))
      continue;
    name_round(r->build, n, r, NULL);
    for (uint32_t i = 0; i < n->inputs.count; i++) /* what is made of other means comes later */
      if (!r->behind[f->values.items[n->inputs.items[i]].producer])
        await_value(r, gives, n->inputs.items[i]);
  }
  return given;
}

/* What every step reads of the server's variables before they change: copies, which the leader's updates do not touch. */
static void read_before(struct round *r, flow_id given, flow_id led, uint32_t count) {
  struct flow *f = r->flow;
  for (flow_id id = 1; id < count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (!n || n->task != r->task || is_led(r, id) || !node_touch_count(n) || is_late(r, id))
      continue;
    if (n->op != FLOW_READ) {
      node_follow(f->nodes.items[r->behind[id] ? led : given], id);
      continue;
    }
    value_id v = n->outputs.items[0], copy = flow_append_map(f, n, r->task, "copy", SCALAR_NONE, v, NO_VALUE);
    flow_id made = f->values.items[copy].producer;
    struct flow_node *k = f->nodes.items[made];
    k->stateful = true; /* not fused with its users: they run later */
    k->guards = n->guards;
    k->guard_count = n->guard_count;
    for (flow_id user = 1; user < count; user++)
      if (f->nodes.items[user] && !is_led(r, user) && node_takes(f->nodes.items[user], v))
        node_replace_input(f->nodes.items[user], v, copy, f->arena);
    node_follow(f->nodes.items[r->behind[id] ? led : given], made);
  }
}

/* Whoever leads has all that the updates need. */
static void await_inputs(struct round *r, struct flow_node *leads, uint32_t count) {
  bool *behind = find_behind(r, true);
  for (flow_id id = 1; id < count; id++) {
    const struct flow_node *n = r->flow->nodes.items[id];
    for (uint32_t i = 0; n && is_led(r, id) && i < node_input_count(n); i++)
      if (node_input(n, i) && !behind[r->flow->values.items[node_input(n, i)].producer])
        await_value(r, leads, node_input(n, i));
  }
  free(behind);
}

static void lead_updates(struct round *r, flow_id given, uint32_t count) {
  struct flow *f = r->flow;
  flow_id first, last;
  struct flow_node *begin = add_round(r, "leads", &first);
  value_id leads = flow_append_output(f, begin, first, (struct flow_value){.dtype = DTYPE_BOOL});
  struct flow_node *end = add_round(r, "ends", &last);
  node_follow(begin, given);
  node_follow(end, first);
  read_before(r, given, first, count);
  await_inputs(r, begin, count);
  for (flow_id id = 1; id < count; id++) {
    struct flow_node *n = f->nodes.items[id];
    if (!n || !is_led(r, id))
      continue;
    node_guard(n, (struct flow_guard){leads, true}, f->arena);
    if (node_updates_inside(n))
      node_follow(end, id);
  }
  for (uint32_t i = 0; i < r->late.count; i++)
    node_follow(f->nodes.items[r->late.items[i]], last);
}

static bool has_updates(const struct flow *f, uint32_t task) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->task == task && node_updates_inside(f->nodes.items[id]))
      return true;
  return false;
}

static bool has_values(const struct flow *f, uint32_t task) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->task == task && sync_is_mean(f->nodes.items[id]))
      return true;
  return false;
}

static bool has_turns(const struct flow *f, const bool *behind) {
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && behind[id] && sync_is_mean(f->nodes.items[id]))
      return true;
  return false;
}

static status make_round(struct round *r) {
  if (r->leads)
    TRY(read_new_values(r));
  uint32_t count = r->flow->nodes.count;
  r->behind = find_behind(r, false);
  r->turns = has_turns(r->flow, r->behind);
  flow_id given = enter_and_give(r, count);
  if (r->leads)
    lead_updates(r, given, count);
  return OK;
}

status sync_rounds(struct build *b, struct entry *e, const struct reach *reach) {
  status result = OK;
  uint32_t tasks = b->cluster.tasks.count;
  uint8_t *holds = ARENA_ARRAY(&b->arena, uint8_t, tasks + 1), *leads = ARENA_ARRAY(&b->arena, uint8_t, tasks + 1);
  for (uint32_t t = 0; t < tasks; t++) {
    leads[t] = strcmp(b->cluster.tasks.items[t].job, build_replicated(b)) != 0 && has_updates(e->flow, t);
    holds[t] = leads[t] || has_values(e->flow, t);
  }
  const char *holders = holder_list(b, holds);
  for (uint32_t t = 0; t < tasks && result == OK; t++) {
    if (!holds[t])
      continue;
    struct round r = {.build = b, .flow = e->flow, .entry = e->name, .holders = holders, .leads = leads[t], .task = t, .reach = reach};
    result = make_round(&r);
    vec_free(&r.late);
    free(r.led);
    free(r.behind);
    vec_free(&r.news);
  }
  /* a round is decided when all tasks have what is given: no part may wait for a mean before it has sent all that it gives */
  struct round whole = {.flow = e->flow};
  bool *behind = find_behind(&whole, false);
  flow_sort_last(e->flow, behind);
  free(behind);
  return result;
}
