/* order.c: one walk in the order of node numbers, in which updates are held back until something needs them, or nothing can tell any more
 * when they run.
 *
 * A value that is read from a variable, or an alias of one, carries the variable (`origin`); each variable has the list of uses
 * of such values. An update may run when all uses of values read so far have run. One that is needed earlier gets
 * snapshots of the values that still have uses; before it runs, reads that nothing orders after it run: who reads beside an update sees
 * the old value, wherever he stands (TensorFlow runs such reads first, as roots of its graph). The lists are short: a variable
 * has a handful of readers.
 */
#include "compiler/pass/order.h"

#include <stdlib.h>

#include "compiler/edit/part_walk.h"
#include "compiler/pass/pass.h"

struct reader {
  flow_id node;
  uint32_t next; /* index + 1 of the next reader of the same variable, or 0 */
};

struct order_walk {
  struct flow *flow;
  struct order *out;
  uint32_t node_count, value_count; /* before snapshots are added */
  uint32_t *origin;                 /* per value: variable + 1 whose memory it is, or 0 */
  uint8_t *state;                   /* per node: enum node_state */
  uint32_t *use_at;                 /* per value: its users are use_list[use_at[v] .. use_at[v + 1]) */
  flow_id *use_list;
  VEC(flow_id) held;      /* updates that wait, by number */
  VEC(value_id) read;     /* values that carry a variable, made so far */
  flow_id *last_update;   /* per variable seen in this flow */
  uint32_t *first_reader; /* per variable: index + 1 into readers of its first one, or 0 */
  VEC(struct reader) readers;
  uint32_t var_count;
  VEC(uint32_t) updated; /* scratch of collect_updates */
  bool may_stop;         /* a node may wait for another task, or fail: updates stay behind it */
};
enum node_state { NODE_LATER, NODE_HELD, NODE_BUSY, NODE_DONE };

static bool kernel_updates(const struct flow_node *node, uint32_t var) {
  for (uint32_t i = 0; i < node->kernel->buffers.count; i++)
    if (node->args[i].var == var + 1 && node->kernel->buffers.items[i].mode != BUFFER_IN)
      return true;
  return false;
}

static bool updates_var(const struct flow_node *node, uint32_t var);

static bool flow_updates(const struct flow *flow, uint32_t var) {
  for (uint32_t i = 1; i < flow->nodes.count; i++)
    if (flow->nodes.items[i] && updates_var(flow->nodes.items[i], var))
      return true;
  return false;
}

/* Whether a node, or a node in its regions, updates the variable (var: its number). */
static bool updates_var(const struct flow_node *node, uint32_t var) {
  if (node->op == FLOW_ASSIGN)
    return node->var == var;
  if (node->op == FLOW_KERNEL)
    return kernel_updates(node, var);
  for (uint32_t i = 0; i < node->region_count; i++)
    if (flow_updates(node->branches[i], var))
      return true;
  return false;
}

static void add_updates(struct order_walk *s, const struct flow_node *node) {
  if (node->op == FLOW_ASSIGN)
    vec_push(&s->updated, node->var);
  for (uint32_t i = 0; node->op == FLOW_KERNEL && i < node->kernel->buffers.count; i++)
    if (node->args[i].var && node->kernel->buffers.items[i].mode != BUFFER_IN)
      vec_push(&s->updated, node->args[i].var - 1);
  for (uint32_t r = 0; r < node->region_count; r++)
    for (uint32_t i = 1; i < node->branches[r]->nodes.count; i++)
      if (node->branches[r]->nodes.items[i])
        add_updates(s, node->branches[r]->nodes.items[i]);
}

/* Puts into `updated` the variables that a node, or one in its regions, updates; some may be there twice. */
static void collect_updates(struct order_walk *s, const struct flow_node *node) {
  s->updated.count = 0;
  add_updates(s, node);
}

static bool is_update(struct order_walk *s, const struct flow_node *node) {
  collect_updates(s, node);
  return s->updated.count > 0;
}

/* ---- tables ---- */

static uint32_t input_count(const struct flow_node *node) { return node ? flow_input_count(node) : 0; }

static void collect_uses(struct order_walk *s) {
  uint32_t values = s->flow->values.count;
  s->use_at = ARENA_ARRAY(s->flow->arena, uint32_t, values + 2);
  for (uint32_t n = 1; n < s->node_count; n++)
    for (uint32_t i = 0; i < input_count(s->flow->nodes.items[n]); i++)
      s->use_at[flow_input(s->flow->nodes.items[n], i) + 2]++;
  for (uint32_t v = 2; v < values + 2; v++)
    s->use_at[v] += s->use_at[v - 1];
  s->use_list = ARENA_ARRAY(s->flow->arena, flow_id, s->use_at[values + 1] + 1);
  for (uint32_t n = 1; n < s->node_count; n++)
    for (uint32_t i = 0; i < input_count(s->flow->nodes.items[n]); i++)
      s->use_list[s->use_at[flow_input(s->flow->nodes.items[n], i) + 1]++] = n;
}

static void count_var(struct order_walk *s, uint32_t var) {
  if (var + 1 > s->var_count)
    s->var_count = var + 1;
}

/* Counts the variables that nodes (of regions too) mention. */
static void collect_vars(struct order_walk *s, const struct flow *flow) {
  for (uint32_t n = 1; n < flow->nodes.count; n++) {
    const struct flow_node *node = flow->nodes.items[n];
    if (!node)
      continue;
    if (node->op == FLOW_ASSIGN || node->op == FLOW_READ)
      count_var(s, node->var);
    for (uint32_t i = 0; node->op == FLOW_KERNEL && i < node->kernel->buffers.count; i++)
      if (node->args[i].var)
        count_var(s, node->args[i].var - 1);
    for (uint32_t i = 0; i < node->region_count; i++)
      collect_vars(s, node->branches[i]);
  }
}

static void add_readers(struct order_walk *s, const struct flow_node *node, flow_id top) {
  if (node->op == FLOW_READ || node->op == FLOW_VARIABLE) {
    if (node->var >= s->var_count)
      return; /* nothing updates it */
    vec_push(&s->readers, (struct reader){top, s->first_reader[node->var]});
    s->first_reader[node->var] = s->readers.count;
  }
  for (uint32_t r = 0; r < node->region_count; r++)
    for (uint32_t i = 1; i < node->branches[r]->nodes.count; i++)
      if (node->branches[r]->nodes.items[i])
        add_readers(s, node->branches[r]->nodes.items[i], top);
}

static void collect_readers(struct order_walk *s) {
  s->first_reader = ARENA_ARRAY(s->flow->arena, uint32_t, s->var_count + 1);
  for (uint32_t n = s->node_count - 1; n > 0; n--) /* from the last: lists begin with the first reader */
    if (s->flow->nodes.items[n])
      add_readers(s, s->flow->nodes.items[n], n);
}

/* ---- the walk ---- */

static status emit(struct order_walk *s, flow_id id);

static void need(struct order_walk *s, flow_id before, flow_id after) {
  if (before && before != after)
    vec_push(&s->out->needs, (struct order_need){before, after});
}

/* What a node reads from variables: its outputs carry them on. */
static void note_reads(struct order_walk *s, const struct flow_node *node, flow_id id) {
  uint32_t origin = 0;
  if (node->op == FLOW_READ) {
    origin = node->var + 1;
    need(s, s->last_update[node->var], id);
  } else if (node->op == FLOW_ALIAS) {
    origin = node->inputs.items[0] < s->value_count ? s->origin[node->inputs.items[0]] : 0; /* a snapshot carries none */
  }
  if (!origin)
    return;
  s->origin[node->outputs.items[0]] = origin;
  vec_push(&s->read, node->outputs.items[0]);
}

static bool has_later_use(const struct order_walk *s, value_id v, flow_id update) {
  for (uint32_t i = s->use_at[v]; i < s->use_at[v + 1]; i++)
    if (s->state[s->use_list[i]] != NODE_DONE && s->use_list[i] != update)
      return true;
  return false;
}

/* An update that reads the old value beside what it updates: a kernel's buffers must not overlap, regions and kernels
 * may read after they have written. An assignment moves memory as a whole. */
static bool uses_while_updating(const struct flow_node *node, value_id v) {
  if (node->op == FLOW_ASSIGN)
    return false;
  for (uint32_t i = 0; i < input_count(node); i++)
    if (flow_input(node, i) == v)
      return true;
  return false;
}

static struct kernel *copy_kernel(const struct flow_value *value, struct arena *arena, dim *sizes) {
  struct kernel *k = kernel_create(arena, "snapshot");
  kernel_dim dims[LIMIT_RANK];
  expr_id index[LIMIT_RANK];
  k->size_count = (uint32_t)value->rank;
  for (int i = 0; i < value->rank; i++) {
    dims[i] = DIM_OF_SIZE(i);
    sizes[i] = value->dims[i];
  }
  uint32_t from = kernel_add_buffer(k, value->dtype, BUFFER_IN, value->rank, dims);
  uint32_t to = kernel_add_buffer(k, value->dtype, BUFFER_OUT, value->rank, dims);
  struct stmt **tail = &k->body;
  for (int i = 0; i < value->rank; i++) {
    struct stmt *loop = stmt_for(k, tail, LOOP_PAR, expr_size(k, (uint32_t)i));
    index[i] = expr_local(k, loop->local);
    tail = &loop->body;
  }
  for (int part = 0; part <= dtype_is_complex(value->dtype); part++)
    tail = &stmt_store(k, tail, to, part, index, value->rank, expr_load(k, from, part, index, value->rank))->next;
  return k;
}

static void replace_guards(struct order_walk *s, struct flow_node *user, value_id old, value_id copy) {
  struct flow_guard *guards = arena_copy(s->flow->arena, user->guards, user->guard_count * sizeof *guards);
  for (uint32_t i = 0; i < user->guard_count; i++)
    if (guards[i].predicate == old)
      guards[i].predicate = copy;
  user->guards = guards;
}

/* From here on the users that have not run read the copy. */
static void replace_later_uses(struct order_walk *s, value_id old, value_id copy, flow_id update) {
  for (uint32_t i = s->use_at[old]; i < s->use_at[old + 1]; i++) {
    struct flow_node *user = s->flow->nodes.items[s->use_list[i]];
    if (s->state[s->use_list[i]] == NODE_DONE || (s->use_list[i] == update && user->op == FLOW_ASSIGN))
      continue;
    if (user->guard_count)
      replace_guards(s, user, old, copy);
    for (uint32_t j = 0; j < user->inputs.count; j++)
      if (user->inputs.items[j] == old)
        user->inputs.items[j] = copy;
    for (uint32_t j = 0; user->op == FLOW_KERNEL && j < user->kernel->buffers.count; j++)
      if (user->args[j].value == old && user->kernel->buffers.items[j].mode == BUFFER_IN)
        user->args[j].value = copy;
  }
}

static void snapshot(struct order_walk *s, value_id v, flow_id update) {
  struct flow_value value = *flow_value_get(s->flow, v);
  const struct flow_node *updater = s->flow->nodes.items[update];
  flow_id id;
  struct flow_node *node = flow_add_node(s->flow, FLOW_KERNEL, updater->name, updater->tf_op, updater->task, &id);
  const struct flow_node *reader = s->flow->nodes.items[value.producer];
  node->guards = reader ? reader->guards : NULL; /* a value that is not there is not copied */
  node->guard_count = reader ? reader->guard_count : 0;
  node->sizes = ARENA_ARRAY(s->flow->arena, dim, value.rank + 1);
  node->kernel = copy_kernel(&value, s->flow->arena, node->sizes);
  value_id copy = flow_add_value(s->flow, value.dtype, value.rank, value.dims);
  s->flow->values.items[copy].producer = id;
  node->args = ARENA_ARRAY(s->flow->arena, struct flow_arg, 2);
  node->args[0].value = v;
  node->args[1].value = copy;
  vec_push(&node->inputs, v);
  vec_push(&node->outputs, copy);
  vec_push(&s->out->nodes, id);
  vec_push(&s->flow->nodes.items[update]->controls, id);
  need(s, id, update);
  replace_later_uses(s, v, copy, update);
}

/* All that an update has to wait for, or be protected from: uses of values that are its variable's memory. */
static void protect_reads(struct order_walk *s, flow_id id) {
  struct flow_node *node = s->flow->nodes.items[id];
  for (uint32_t i = 0; i < s->read.count; i++) {
    value_id v = s->read.items[i];
    uint32_t origin = s->origin[v];
    if (!origin || !updates_var(node, origin - 1))
      continue;
    need(s, s->flow->values.items[v].producer, id);
    for (uint32_t j = s->use_at[v]; j < s->use_at[v + 1]; j++)
      if (s->state[s->use_list[j]] == NODE_DONE)
        need(s, s->use_list[j], id);
    if (has_later_use(s, v, id) || uses_while_updating(node, v))
      snapshot(s, v, id);
    s->origin[v] = 0; /* nobody reads it through the variable any more */
  }
  collect_updates(s, node);
  for (uint32_t i = 0; i < s->updated.count; i++) {
    need(s, s->last_update[s->updated.items[i]], id);
    s->last_update[s->updated.items[i]] = id;
  }
}

/* A snapshot (they have the numbers from node_count on, and no state) has run since it was made. */
static bool is_done(const struct order_walk *s, flow_id id) {
  return !s->flow->nodes.items[id] || id >= s->node_count || s->state[id] == NODE_DONE;
}

static bool waits(const struct order_walk *s, flow_id id) { return !is_done(s, id) && s->state[id] != NODE_BUSY; }

/* Runs what this node needs and has not run, held updates among it. */
static status emit_needs(struct order_walk *s, const struct flow_node *node) {
  for (uint32_t i = 0; i < input_count(node); i++) {
    value_id v = flow_input(node, i);
    flow_id producer = v ? s->flow->values.items[v].producer : 0;
    if (producer && waits(s, producer))
      TRY(emit(s, producer));
  }
  for (uint32_t i = 0; i < node->controls.count; i++)
    if (waits(s, node->controls.items[i]))
      TRY(emit(s, node->controls.items[i]));
  return OK;
}

/* Nodes looked at for each read beside an update, which keeps the walk linear: a read has few nodes before it, and one that has more
 * keeps its place. */
#define READ_SEARCH_MAX 32

/* Whether a node that has not run could run now: what it waits for has run, or is pure and could run too. */
static bool may_run_now(struct order_walk *s, flow_id id, int *budget) {
  const struct flow_node *node = s->flow->nodes.items[id];
  if (is_done(s, id))
    return true;
  bool pure = node->op == FLOW_READ || node->op == FLOW_VARIABLE || node->op == FLOW_CONST || node->op == FLOW_ALIAS ||
              node->op == FLOW_KERNEL || node->op == FLOW_FEED || node->op == FLOW_IF || node->op == FLOW_NOOP;
  if (s->state[id] != NODE_LATER || !pure || is_update(s, node) || --*budget < 0)
    return false;
  for (uint32_t i = 0; i < input_count(node); i++) {
    value_id v = flow_input(node, i);
    if (v && s->flow->values.items[v].producer && !may_run_now(s, s->flow->values.items[v].producer, budget))
      return false;
  }
  for (uint32_t i = 0; i < node->controls.count; i++)
    if (!may_run_now(s, node->controls.items[i], budget))
      return false;
  return true;
}

/* Reads of what `update` is about to change, which no edge orders after it. */
static status emit_readers(struct order_walk *s, flow_id update) {
  VEC(uint32_t) vars = {0};
  collect_updates(s, s->flow->nodes.items[update]);
  for (uint32_t i = 0; i < s->updated.count; i++)
    vec_push(&vars, s->updated.items[i]);
  status result = OK;
  for (uint32_t i = 0; i < vars.count; i++)
    for (uint32_t r = s->first_reader[vars.items[i]]; r && result == OK; r = s->readers.items[r - 1].next) {
      int budget = READ_SEARCH_MAX;
      flow_id id = s->readers.items[r - 1].node;
      if (s->state[id] == NODE_LATER && may_run_now(s, id, &budget))
        result = emit(s, id);
    }
  vec_free(&vars);
  return result;
}

/* Whether nothing that a node needs is still to run. */
static bool is_ready(const struct order_walk *s, const struct flow_node *node) {
  for (uint32_t i = 0; i < input_count(node); i++) {
    flow_id producer = s->flow->values.items[flow_input(node, i)].producer;
    if (producer && !is_done(s, producer))
      return false;
  }
  for (uint32_t i = 0; i < node->controls.count; i++)
    if (!is_done(s, node->controls.items[i]))
      return false;
  return true;
}

/* Whether a held update would need no snapshot now. */
static bool runs_freely(const struct order_walk *s, flow_id id) {
  const struct flow_node *node = s->flow->nodes.items[id];
  for (uint32_t i = 0; i < s->read.count; i++) {
    value_id v = s->read.items[i];
    if (s->origin[v] && updates_var(node, s->origin[v] - 1) && (has_later_use(s, v, id) || uses_while_updating(node, v)))
      return false;
  }
  return true;
}

static bool has_read_all(const struct order_walk *s, uint32_t var) {
  for (uint32_t r = s->first_reader[var]; r; r = s->readers.items[r - 1].next)
    if (!is_done(s, s->readers.items[r - 1].node))
      return false;
  return true;
}
static bool is_settled(struct order_walk *s, flow_id update) {
  const struct flow_node *node = s->flow->nodes.items[update];
  if (node->op != FLOW_KERNEL || !is_update(s, node) || !is_ready(s, node) || !runs_freely(s, update))
    return false;
  for (uint32_t i = 0; i < s->updated.count; i++)
    if (!has_read_all(s, s->updated.items[i]))
      return false;
  return true;
}
/* What can go to another task goes at once: that one need not wait for the rest. So does an update whose variable has been read by all, and
 * used: what the kernel before it made is still in the caches, and need not be kept. */
static bool goes_at_once(struct order_walk *s, const struct flow_node *behind, flow_id id) {
  const struct flow_node *node = s->flow->nodes.items[id];
  if (node->op == FLOW_SEND)
    return s->state[id] == NODE_LATER && is_ready(s, node);
  return !s->may_stop && behind->op == FLOW_KERNEL && waits(s, id) && is_settled(s, id);
}
static status emit_followers(struct order_walk *s, flow_id id) {
  const struct flow_node *node = s->flow->nodes.items[id];
  for (uint32_t i = 0; i < node->outputs.count; i++) {
    value_id v = node->outputs.items[i];
    for (uint32_t j = v < s->value_count ? s->use_at[v] : 0; v < s->value_count && j < s->use_at[v + 1]; j++)
      if (goes_at_once(s, node, s->use_list[j]))
        TRY(emit(s, s->use_list[j]));
  }
  return OK;
}
static bool may_stop(const struct flow *flow) {
  for (uint32_t n = 1; n < flow->nodes.count; n++) {
    const struct flow_node *node = flow->nodes.items[n];
    if (node && (node->op == FLOW_SEND || node->op == FLOW_RECV || node->op == FLOW_HOST || node->op == FLOW_BIND))
      return true;
    for (uint32_t r = 0; node && r < node->region_count; r++)
      if (may_stop(node->branches[r]))
        return true;
  }
  return false;
}

static status emit(struct order_walk *s, flow_id id) {
  struct flow_node *node = s->flow->nodes.items[id];
  bool updates = is_update(s, node);
  s->state[id] = NODE_BUSY;
  if (updates)
    TRY(emit_readers(s, id));
  TRY(emit_needs(s, node));
  if (updates)
    protect_reads(s, id);
  note_reads(s, node, id);
  vec_push(&s->out->nodes, id);
  s->state[id] = NODE_DONE;
  return emit_followers(s, id);
}

/* The updates that nothing waits for: those that disturb nobody first. */
static status flush(struct order_walk *s) {
  for (;;) {
    flow_id next = 0;
    for (uint32_t i = 0; i < s->held.count; i++) {
      flow_id id = s->held.items[i];
      if (s->state[id] != NODE_HELD)
        continue;
      if (!next)
        next = id;
      if (runs_freely(s, id)) {
        next = id;
        break;
      }
    }
    if (!next)
      return OK;
    TRY(emit(s, next));
  }
}

status order_flow(struct flow *flow, struct order *out) {
  struct order_walk s = {.flow = flow, .out = out, .node_count = flow->nodes.count, .value_count = flow->values.count};
  collect_vars(&s, flow);
  collect_uses(&s);
  collect_readers(&s);
  /* snapshots add values, but carry no variable */
  s.origin = ARENA_ARRAY(flow->arena, uint32_t, flow->values.count + 1);
  s.state = ARENA_ARRAY(flow->arena, uint8_t, flow->nodes.count + 1);
  s.last_update = ARENA_ARRAY(flow->arena, flow_id, s.var_count + 1);
  s.may_stop = may_stop(flow);
  *out = (struct order){0};
  status result = OK;
  for (uint32_t n = 1; n < s.node_count && result == OK; n++) {
    if (!flow->nodes.items[n] || s.state[n] == NODE_DONE)
      continue;
    if (!is_update(&s, flow->nodes.items[n])) {
      result = emit(&s, n);
      continue;
    }
    s.state[n] = NODE_HELD;
    vec_push(&s.held, n);
  }
  if (result == OK)
    result = flush(&s);
  vec_free(&s.held);
  vec_free(&s.read);
  vec_free(&s.updated);
  vec_free(&s.readers);
  order_releases(flow, out);
  return result;
}

static status order_part(struct build *b, const struct part_ref *part, struct flow *flow, void *self) {
  (void)b, (void)part, (void)self;
  if (flow->order)
    return OK; /* a function that several calls run */
  flow->order = ARENA_NEW(flow->arena, struct order);
  return order_flow(flow, flow->order);
}

status pass_order(struct build *b) { return part_each_flow(b, order_part, NULL); }
