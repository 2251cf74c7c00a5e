/* hold.c: what a part changes comes after what it receives.
 *
 * A task whose driver is lost in the middle of a step must have applied all of its part, or nothing: so updates of
 * variables and calls that others see wait until everything the part receives has come; from then on it needs nobody.
 * In each part that another task drives a node joins the receives, and what changes something comes after it. Left out
 * are receives that themselves depend on a change of the same part: the runtime rehearses such a part
 * (runtime/step/rehearsal.h). Often they do so only because a message says that the change was made, and others wait for
 * that (an average that is updated after all tasks have updated their weights): such a message says that the change is
 * going to be made, and leaves as soon as all has come that it does not lead to. Meetings of all workers are left out,
 * too: a round has members of its own, and is to begin early.
 *
 * Then all parts are put in one topological order again, so that parts that run in order and wait for each other cannot
 * wait in a circle; what is not held back keeps its place. */
#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/pass/pass.h"
#include "compiler/pass/sync.h"

struct hold_edge {
  uint32_t from, to;
};
struct adjacency {
  uint32_t *at, *list; /* of node i: list[at[i] .. at[i + 1]) */
};
/* The nodes of all parts of an entry: node n of part p is base[p] + n. */
struct hold {
  struct build *build;
  struct entry *entry;
  uint32_t *base, count;
  VEC(struct hold_edge) edges;
  struct adjacency next; /* successors */
  uint32_t *place;       /* per node: where it stood; what joins receives stands behind the last of them */
  uint32_t *order, ordered;
};

static struct flow *part_flow(const struct hold *h, uint32_t part) { return h->entry->parts.items[part].flow; }

static struct flow_node *node_at(const struct hold *h, uint32_t part, uint32_t i) {
  const struct flow *flow = part_flow(h, part);
  return i < flow->nodes.count ? flow->nodes.items[i] : NULL;
}

static void add_edge(struct hold *h, uint32_t from, uint32_t to) {
  if (from != to)
    vec_push(&h->edges, (struct hold_edge){from, to});
}

/* ---- what depends on what ---- */

static void add_value_edge(struct hold *h, uint32_t part, value_id v, uint32_t to) {
  flow_id producer = v ? part_flow(h, part)->values.items[v].producer : 0;
  if (producer)
    add_edge(h, h->base[part] + producer, to);
}

static void add_node_edges(struct hold *h, uint32_t part, flow_id id) {
  const struct flow_node *n = node_at(h, part, id);
  uint32_t to = h->base[part] + id;
  for (uint32_t i = 0; i < n->inputs.count; i++)
    add_value_edge(h, part, n->inputs.items[i], to);
  for (uint32_t i = 0; n->op == FLOW_KERNEL && i < n->kernel->buffers.count; i++)
    if (n->kernel->buffers.items[i].mode == BUFFER_IN)
      add_value_edge(h, part, n->args[i].value, to);
  for (uint32_t i = 0; i < n->guard_count; i++)
    add_value_edge(h, part, n->guards[i].predicate, to);
  for (uint32_t i = 0; i < n->controls.count; i++)
    add_edge(h, h->base[part] + n->controls.items[i], to);
}

struct binder_note {
  uint32_t *binder; /* per symbol: the node that gives it its value, the first in the order; 0 */
  flow_id node;
};
static void note_binder(void *self, uint32_t symbol) {
  struct binder_note *note = self;
  if (!note->binder[symbol])
    note->binder[symbol] = note->node;
}

/* A size that a node needs is known since an earlier one. */
static void add_symbol_edges(struct hold *h, uint32_t part) {
  const struct flow *flow = part_flow(h, part);
  uint32_t symbols = dims_symbol_count(flow->dims);
  struct binder_note note = {.binder = calloc(symbols + 1, sizeof *note.binder)};
  bool *seen = calloc(symbols + 1, sizeof *seen);
  for (flow_id id = 1; id < flow->nodes.count; id++) {
    if (!flow->nodes.items[id])
      continue;
    memset(seen, 0, symbols);
    flow_node_symbols(flow, flow->nodes.items[id], seen);
    for (uint32_t s = 0; s < symbols; s++)
      if (seen[s] && note.binder[s])
        add_edge(h, h->base[part] + note.binder[s], h->base[part] + id);
    note.node = id;
    flow_node_binds(flow, flow->nodes.items[id], note_binder, &note);
  }
  free(note.binder);
  free(seen);
}

/* A value that is received is sent before. */
static void add_transfer_edges(struct hold *h) {
  VEC(uint32_t) sender = {0};
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t p = 0; p < h->entry->parts.count; p++)
      for (flow_id id = 1; id < part_flow(h, p)->nodes.count; id++) {
        const struct flow_node *n = node_at(h, p, id);
        if (!n || n->op != (pass ? FLOW_RECV : FLOW_SEND))
          continue;
        while (sender.count <= (uint32_t)n->imm)
          vec_push(&sender, 0);
        if (!pass)
          sender.items[n->imm] = h->base[p] + id;
        else if (sender.items[n->imm])
          add_edge(h, sender.items[n->imm], h->base[p] + id);
      }
  vec_free(&sender);
}

/* A round gives its means when all that its members bring has come: whoever needs one of them needs that. */
static void add_round_edges(struct hold *h) {
  bool *is_mean = calloc((size_t)h->count + 1, sizeof *is_mean);
  VEC(uint32_t) gives = {0};
  for (uint32_t p = 0; p < h->entry->parts.count; p++)
    for (flow_id id = 1; id < part_flow(h, p)->nodes.count; id++) {
      const struct flow_node *n = node_at(h, p, id);
      is_mean[h->base[p] + id] = n && sync_is_mean(n);
      if (n && sync_gives(n))
        vec_push(&gives, h->base[p] + id);
    }
  for (uint32_t i = 0, count = h->edges.count; i < count; i++)
    for (uint32_t k = 0; is_mean[h->edges.items[i].from] && k < gives.count; k++)
      add_edge(h, gives.items[k], h->edges.items[i].to);
  vec_free(&gives);
  free(is_mean);
}

static void collect_edges(struct hold *h) {
  for (uint32_t p = 0; p < h->entry->parts.count; p++) {
    for (flow_id id = 1; id < part_flow(h, p)->nodes.count; id++)
      if (node_at(h, p, id))
        add_node_edges(h, p, id);
    add_symbol_edges(h, p);
  }
  add_transfer_edges(h);
  add_round_edges(h);
}

static struct adjacency adjacency_of(const struct hold *h, bool backwards) {
  struct adjacency a = {calloc((size_t)h->count + 2, sizeof *a.at), calloc((size_t)h->edges.count + 1, sizeof *a.list)};
  for (uint32_t i = 0; i < h->edges.count; i++)
    a.at[(backwards ? h->edges.items[i].to : h->edges.items[i].from) + 2]++;
  for (uint32_t i = 2; i < h->count + 2; i++)
    a.at[i] += a.at[i - 1];
  for (uint32_t i = 0; i < h->edges.count; i++) {
    struct hold_edge e = h->edges.items[i];
    a.list[a.at[(backwards ? e.to : e.from) + 1]++] = backwards ? e.from : e.to;
  }
  return a;
}
static void adjacency_free(struct adjacency *a) {
  free(a->at);
  free(a->list);
}

static void index_edges(struct hold *h) {
  adjacency_free(&h->next);
  h->next = adjacency_of(h, false);
}

/* Marks all that comes behind the nodes of `todo`, which it empties, but for these themselves. */
typedef VEC(uint32_t) node_list;
static bool *mark_behind(const struct hold *h, const struct adjacency *a, node_list *todo) {
  bool *behind = calloc((size_t)h->count + 1, sizeof *behind);
  while (todo->count > 0) {
    uint32_t node = todo->items[--todo->count];
    for (uint32_t i = a->at[node]; i < a->at[node + 1]; i++)
      if (!behind[a->list[i]]) {
        behind[a->list[i]] = true;
        vec_push(todo, a->list[i]);
      }
  }
  vec_free(todo);
  return behind;
}

/* ---- one order of all parts ---- */

/* Nodes that can run, the one with the smallest key on top. */
struct ready {
  uint32_t *heap, count;
  const uint32_t *key;
};

static void ready_push(struct ready *r, uint32_t node) {
  uint32_t at = r->count++;
  for (; at > 0 && r->key[r->heap[(at - 1) / 2]] > r->key[node]; at = (at - 1) / 2)
    r->heap[at] = r->heap[(at - 1) / 2];
  r->heap[at] = node;
}

static uint32_t ready_pop(struct ready *r) {
  uint32_t top = r->heap[0], last = r->heap[--r->count], at = 0;
  for (uint32_t child; (child = at * 2 + 1) < r->count; at = child) {
    if (child + 1 < r->count && r->key[r->heap[child + 1]] < r->key[r->heap[child]])
      child++;
    if (r->key[r->heap[child]] >= r->key[last])
      break;
    r->heap[at] = r->heap[child];
  }
  r->heap[at] = last;
  return top;
}

/* Into h->order: among those that can run next the one with the smallest key. */
static void sort_nodes(struct hold *h, const uint32_t *key) {
  struct ready ready = {.heap = calloc((size_t)h->count + 1, sizeof *ready.heap), .key = key};
  uint32_t *needs = calloc((size_t)h->count + 1, sizeof *needs);
  for (uint32_t i = 0; i < h->edges.count; i++)
    needs[h->edges.items[i].to]++;
  for (uint32_t i = 0; i < h->count; i++)
    if (needs[i] == 0)
      ready_push(&ready, i);
  for (h->ordered = 0; ready.count > 0; h->ordered++) {
    uint32_t node = ready_pop(&ready);
    h->order[h->ordered] = node;
    for (uint32_t i = h->next.at[node]; i < h->next.at[node + 1]; i++)
      if (--needs[h->next.list[i]] == 0)
        ready_push(&ready, h->next.list[i]);
  }
  free(ready.heap);
  free(needs);
}

/* Where each node stands now: an order of all parts that keeps the order of each. */
static void find_places(struct hold *h) {
  uint32_t edges = h->edges.count;
  uint32_t *key = calloc((size_t)h->count + 1, sizeof *key);
  for (uint32_t p = 0; p < h->entry->parts.count; p++)
    for (flow_id id = 1; id < part_flow(h, p)->nodes.count; id++) {
      key[h->base[p] + id] = id;
      if (id > 1)
        add_edge(h, h->base[p] + id - 1, h->base[p] + id);
    }
  index_edges(h);
  sort_nodes(h, key);
  for (uint32_t i = 0; i < h->ordered; i++)
    h->place[h->order[i]] = i;
  h->edges.count = edges;
  free(key);
}

/* ---- holding ---- */

static bool is_meeting(const struct flow_node *n) { return n->op == FLOW_HOST && strncmp(n->host, "Collective", 10) == 0; }

static bool is_held(const struct flow_node *n) { return n && node_changes(n) && !is_meeting(n); }

struct change_note {
  const struct build *build;
  bool changes;
};
static void note_change(void *self, uint32_t var, enum touch touch) {
  struct change_note *note = self;
  note->changes = note->changes || (touch == TOUCH_UPDATE && !note->build->vars.items[var].zero_initial);
}
/* What no early receive depends on. A replica's state is given away while its step waits: there that is a change of a variable, not what a
 * call gives or what is drawn. Calls of other tasks' parts may be what another step waits for. */
static bool is_change(const struct hold *h, const struct flow_node *n) {
  struct change_note note = {.build = h->build};
  if (n && h->build->strategy == STRATEGY_ALLREDUCE)
    node_touches(n, note_change, &note);
  return h->build->strategy == STRATEGY_ALLREDUCE ? note.changes : is_held(n);
}

/* What needs a change of this part, directly or through other tasks. */
static bool *mark_after_changes(struct hold *h, uint32_t part) {
  node_list changes = {0};
  for (flow_id id = 1; id < part_flow(h, part)->nodes.count; id++)
    if (is_change(h, node_at(h, part, id)))
      vec_push(&changes, h->base[part] + id);
  return mark_behind(h, &h->next, &changes);
}

/* What leads to some of the part's receives, in any part. */
static bool *mark_before(const struct hold *h, uint32_t part, const uint32_t *receives, uint32_t count) {
  struct adjacency before = adjacency_of(h, true);
  node_list ends = {0};
  for (uint32_t i = 0; i < count; i++)
    vec_push(&ends, h->base[part] + receives[i]);
  bool *marked = mark_behind(h, &before, &ends);
  adjacency_free(&before);
  return marked;
}

/* The node that stands for "all has come". Calls that lead to it come before. */
static void add_join(struct hold *h, uint32_t part, const uint32_t *receives, uint32_t count) {
  struct flow *flow = part_flow(h, part);
  flow_id join, end = flow->nodes.count;
  struct flow_node *n = flow_add_node(flow, FLOW_NOOP, "received", "NoOp", h->entry->parts.items[part].task, &join);
  uint32_t at = h->base[part] + join;
  bool *before = mark_before(h, part, receives, count);
  for (uint32_t i = 0; i < count; i++) {
    vec_push(&n->controls, receives[i]);
    add_edge(h, h->base[part] + receives[i], at);
    if (h->place[h->base[part] + receives[i]] > h->place[at])
      h->place[at] = h->place[h->base[part] + receives[i]];
  }
  for (flow_id id = 1; id < end; id++)
    if (is_held(flow->nodes.items[id]) && !before[h->base[part] + id]) {
      vec_push(&flow->nodes.items[id]->controls, join);
      add_edge(h, at, h->base[part] + id);
    }
  free(before);
}

/* Whether a receive of the part needs the node. */
static bool leads_back(struct hold *h, uint32_t part, uint32_t node) {
  node_list from = {0};
  bool leads = false;
  vec_push(&from, node);
  bool *behind = mark_behind(h, &h->next, &from);
  for (flow_id id = 1; id < part_flow(h, part)->nodes.count && !leads; id++)
    leads = behind[h->base[part] + id] && node_at(h, part, id) && node_at(h, part, id)->op == FLOW_RECV;
  free(behind);
  return leads;
}

static void remove_edge(struct hold *h, uint32_t from, uint32_t to) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < h->edges.count; i++)
    if (h->edges.items[i].from != from || h->edges.items[i].to != to)
      h->edges.items[kept++] = h->edges.items[i];
  h->edges.count = kept;
}

/* What part of a flow waits for. */
struct arrivals {
  VEC(uint32_t) early, late; /* receives that need no change of the part, and those that do */
  bool *after;               /* per node: it needs one */
  bool changes;
};

static void find_arrivals(struct hold *h, uint32_t part, struct arrivals *out) {
  *out = (struct arrivals){0};
  index_edges(h);
  out->after = mark_after_changes(h, part);
  for (flow_id id = 1; id < part_flow(h, part)->nodes.count; id++) {
    const struct flow_node *n = node_at(h, part, id);
    out->changes = out->changes || is_held(n);
    if (!n || n->op != FLOW_RECV)
      continue;
    if (out->after[h->base[part] + id])
      vec_push(&out->late, id);
    else
      vec_push(&out->early, id);
  }
}

static void arrivals_free(struct arrivals *arrivals) {
  vec_free(&arrivals->early);
  vec_free(&arrivals->late);
  free(arrivals->after);
}

/* A message that comes after changes, and leads back to the part: it comes after the arrivals instead. */
static bool release_message(struct hold *h, uint32_t part, flow_id id, const struct arrivals *arrivals) {
  struct flow_node *n = part_flow(h, part)->nodes.items[id];
  uint32_t kept = 0, dropped, count = n->controls.count, base = h->base[part];
  if (!leads_back(h, part, base + id))
    return false;
  for (uint32_t i = 0; i < count; i++) {
    flow_id before = n->controls.items[i];
    if (arrivals->after[base + before] || is_change(h, node_at(h, part, before)))
      remove_edge(h, base + before, base + id);
    else
      n->controls.items[kept++] = before;
  }
  dropped = count - kept;
  n->controls.count = kept;
  for (uint32_t i = 0; dropped > 0 && i < arrivals->early.count; i++) {
    vec_push(&n->controls, arrivals->early.items[i]);
    add_edge(h, base + arrivals->early.items[i], base + id);
  }
  return dropped > 0;
}

static bool release_messages(struct hold *h, uint32_t part, const struct arrivals *arrivals) {
  bool released = false;
  for (flow_id id = 1; arrivals->late.count > 0 && id < part_flow(h, part)->nodes.count; id++) {
    const struct flow_node *n = node_at(h, part, id);
    if (n && n->op == FLOW_SEND && arrivals->after[h->base[part] + id])
      released = release_message(h, part, id, arrivals) || released;
  }
  return released;
}

static bool hold_part(struct hold *h, uint32_t part) {
  struct arrivals arrivals;
  find_arrivals(h, part, &arrivals);
  if (release_messages(h, part, &arrivals)) {
    arrivals_free(&arrivals);
    find_arrivals(h, part, &arrivals);
  }
  bool holds = arrivals.changes && arrivals.early.count > 0;
  if (holds)
    add_join(h, part, arrivals.early.items, arrivals.early.count);
  arrivals_free(&arrivals);
  return holds;
}

/* The nodes of a part in the order that was found. */
static void renumber(struct hold *h, uint32_t part) {
  struct flow *flow = part_flow(h, part);
  uint32_t first = h->base[part], end = first + flow->nodes.count, count = 1;
  flow_id *now = calloc(flow->nodes.count, sizeof *now);
  struct flow_node **nodes = calloc(flow->nodes.count, sizeof(struct flow_node *));
  for (uint32_t i = 0; i < h->ordered; i++) {
    uint32_t node = h->order[i];
    if (node <= first || node >= end || !flow->nodes.items[node - first])
      continue;
    nodes[count] = flow->nodes.items[node - first];
    now[node - first] = count++;
  }
  for (uint32_t i = 0; i < flow->values.count; i++)
    flow->values.items[i].producer = now[flow->values.items[i].producer];
  for (uint32_t i = 1; i < count; i++)
    for (uint32_t j = 0; j < nodes[i]->controls.count; j++)
      nodes[i]->controls.items[j] = now[nodes[i]->controls.items[j]];
  memcpy(flow->nodes.items, nodes, count * sizeof(struct flow_node *));
  flow->nodes.count = count;
  free(now);
  free(nodes);
}

/* A driver's own part ends with its driver; but a replica of an all-reduce gives its state away while its step waits
 * for the others. */
static bool may_be_left(const struct hold *h, uint32_t part) {
  return h->entry->parts.items[part].task < h->build->cluster.tasks.count || h->build->strategy == STRATEGY_ALLREDUCE;
}

static status hold_parts(struct hold *h) {
  bool holds = false;
  collect_edges(h);
  find_places(h);
  for (uint32_t p = 0; p < h->entry->parts.count; p++)
    if (may_be_left(h, p))
      holds = hold_part(h, p) || holds;
  if (!holds)
    return OK;
  index_edges(h);
  sort_nodes(h, h->place);
  if (h->ordered != h->count)
    return fail(INTERNAL, "entry '%s': parts wait for each other in a circle", h->entry->name);
  for (uint32_t p = 0; p < h->entry->parts.count; p++)
    renumber(h, p);
  return OK;
}

static status hold_entry(struct build *b, struct entry *e) {
  struct hold h = {.build = b, .entry = e};
  if (e->parts.count < 2)
    return OK;
  h.base = calloc((size_t)e->parts.count + 1, sizeof *h.base);
  for (uint32_t p = 0; p < e->parts.count; p++) {
    h.base[p] = h.count;
    h.count += part_flow(&h, p)->nodes.count + 1; /* one is added at most */
  }
  h.place = calloc((size_t)h.count + 1, sizeof *h.place);
  h.order = calloc((size_t)h.count + 1, sizeof *h.order);
  status result = hold_parts(&h);
  vec_free(&h.edges);
  free(h.base);
  adjacency_free(&h.next);
  free(h.place);
  free(h.order);
  return result;
}

status pass_hold(struct build *b) {
  for (uint32_t i = 0; i < b->entries.count; i++)
    TRY(hold_entry(b, &b->entries.items[i]));
  return OK;
}
