/* homes.c: see homes.h. */
#include "compiler/pass/homes.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"

#define JOB_PS "ps"

void homes_init(struct homes *h, struct build *b) {
  *h = (struct homes){.build = b, .parent = calloc(b->vars.count + 1, sizeof *h->parent)};
  for (uint32_t i = 0; i < b->vars.count; i++)
    h->parent[i] = i;
  for (uint32_t i = 0; i < b->cluster.tasks.count; i++)
    if (strcmp(b->cluster.tasks.items[i].job, JOB_PS) == 0)
      vec_push(&h->servers, i);
}

void homes_deinit(struct homes *h) {
  free(h->parent);
  vec_free(&h->servers);
}

static uint32_t root(const struct homes *h, uint32_t var) {
  while (h->parent[var] != var)
    var = h->parent[var];
  return var;
}

/* The earliest variable stands for the group. */
static void tie(struct homes *h, uint32_t a, uint32_t b) {
  a = root(h, a), b = root(h, b);
  h->parent[a > b ? a : b] = a > b ? b : a;
}

static bool moves(const struct homes *h, uint32_t var) { return !h->build->vars.items[var].zero_initial; }

/* ---- groups ---- */

struct tying {
  struct homes *homes;
  const struct reach *r;
  uint32_t *stamp, round;
  uint32_t with;
};

static void tie_found(void *self, uint32_t var, enum touch touch) {
  struct tying *t = self;
  (void)touch;
  if (!moves(t->homes, var))
    return;
  if (t->with != UINT32_MAX)
    tie(t->homes, var, t->with);
  t->with = var;
}

/* What an update is made of, but for scalars, back to the gradients. */
static void tie_sources(struct tying *t, flow_id id) {
  const struct flow *f = t->r->flow;
  const struct flow_node *n = f->nodes.items[id];
  uint32_t var;
  if (!n || t->stamp[id] == t->round)
    return;
  t->stamp[id] = t->round;
  for (uint32_t i = 0; i < node_touch_count(n); i++)
    if (node_touch(n, i, &var) != TOUCH_NONE && t->homes->build->vars.items[var].rank != 0)
      tie_found(t, var, TOUCH_READ);
  for (uint32_t i = 0; i < node_input_count(n); i++) {
    value_id v = node_input(n, i);
    if (v && !t->r->cut[v] && !reach_is_scalar(t->r, v))
      tie_sources(t, f->values.items[v].producer);
  }
}

void homes_tie(struct homes *h, const struct reach *r) {
  struct tying t = {.homes = h, .r = r, .stamp = calloc(r->flow->nodes.count + 1, sizeof *t.stamp)};
  for (flow_id id = 1; id < r->flow->nodes.count; id++) {
    const struct flow_node *n = r->flow->nodes.items[id];
    uint32_t var;
    if (!n)
      continue;
    t.with = UINT32_MAX;
    for (uint32_t i = 0; node_updates(n) && i < node_touch_count(n); i++)
      if (node_touch(n, i, &var) == TOUCH_UPDATE)
        tie_found(&t, var, TOUCH_UPDATE);
    for (uint32_t i = 0; i < n->region_count; i++)
      flow_touches(n->branches[i], tie_found, &t);
    t.round++;
    if (node_updates(n) && t.with != UINT32_MAX && h->build->vars.items[t.with].rank != 0)
      tie_sources(&t, id);
  }
  free(t.stamp);
}

void homes_assign(struct homes *h) {
  uint32_t turn = 0;
  for (uint32_t i = 0; i < h->build->vars.count; i++) {
    struct flow_var *v = &h->build->vars.items[i];
    if (!moves(h, i) || v->task != TASK_SELF)
      continue;
    v->task = root(h, i) == i ? h->servers.items[turn++ % h->servers.count] : h->build->vars.items[root(h, i)].task;
  }
}

/* ---- nodes ---- */

struct placing {
  struct homes *homes;
  const struct reach *r;
  struct flow *flow;
  bool *for_gradient; /* per node: a gradient is made of it */
  uint32_t *server;   /* per node: of the first update that it is for, + 1; 0: none */
  uint32_t *given;    /* per value: the server that has it as a gradient, + 1 */
};

/* The one server whose variables a node touches, + 1; 0: it touches none. */
struct server_note {
  const struct homes *homes;
  uint32_t server;
  bool several, updates;
};
static void note_server(void *self, uint32_t var, enum touch touch) {
  struct server_note *n = self;
  uint32_t task = n->homes->build->vars.items[var].task;
  if (task == TASK_SELF)
    return;
  n->several = n->several || (n->server && n->server != task + 1);
  n->updates = n->updates || touch == TOUCH_UPDATE;
  n->server = task + 1;
}
static struct server_note node_servers(const struct homes *h, const struct flow_node *n) {
  struct server_note note = {.homes = h};
  node_touches(n, note_server, &note);
  return note;
}

/* What is for a gradient, and from the last node to the first for whose update. */
static void look_back(struct placing *p, const struct gradients *g) {
  struct flow *f = p->flow;
  gradients_mark(f, g, p->for_gradient);
  for (uint32_t i = 0; i < g->items.count; i++)
    p->given[g->items.items[i].gathered ? g->items.items[i].gathered : g->items.items[i].value] =
      p->homes->build->vars.items[g->items.items[i].var].task + 1;
  for (flow_id id = f->nodes.count - 1; id > 0; id--) {
    const struct flow_node *n = f->nodes.items[id];
    if (!n)
      continue;
    struct server_note note = node_servers(p->homes, n);
    if (!p->server[id] && note.updates)
      p->server[id] = note.server;
    for (uint32_t i = 0; i < node_input_count(n); i++) {
      value_id v = node_input(n, i);
      flow_id from = v ? f->values.items[v].producer : 0;
      if (!from)
        continue;
      if (p->server[id] && !p->r->cut[v])
        p->server[from] = p->server[id];
    }
  }
}

static double weight(const struct flow *f, value_id v) {
  double elements = 1;
  for (int d = 0; d < f->values.items[v].rank; d++) {
    int64_t size;
    elements *= dim_is_const(f->dims, dim_resolve(f->dims, f->values.items[v].dims[d]), &size) ? (double)size : 1e6;
  }
  return elements;
}

static bool is_server(const struct homes *h, uint32_t task) {
  for (uint32_t i = 0; i < h->servers.count; i++)
    if (h->servers.items[i] == task)
      return true;
  return false;
}

static double weight_of_outputs(const struct flow *f, const struct flow_node *n) {
  double sum = 0;
  for (uint32_t i = 0; i < n->outputs.count; i++)
    sum += weight(f, n->outputs.items[i]);
  return sum;
}

/* Beside the update that it is for; what makes little of much (a norm) where the most of it is. */
static uint32_t choose_server(const struct placing *p, const struct flow_node *n, uint32_t of_update) {
  double largest = weight_of_outputs(p->flow, n);
  uint32_t best = of_update;
  for (uint32_t i = 0; i < node_input_count(n); i++) {
    value_id v = node_input(n, i);
    if (!v)
      continue;
    const struct flow_node *maker = p->flow->nodes.items[p->flow->values.items[v].producer];
    uint32_t at = p->given[v] ? p->given[v] : maker->op != FLOW_CONST && is_server(p->homes, maker->task) ? maker->task + 1 : 0;
    if (at && weight(p->flow, v) > largest) {
      largest = weight(p->flow, v);
      best = at;
    }
  }
  return best - 1;
}

static bool stays(const struct placing *p, const struct flow_node *n, flow_id id) {
  return n->op == FLOW_FEED || n->op == FLOW_FETCH || node_calls(n) || p->for_gradient[id] || !p->server[id] ||
         (n->task != TASK_SELF && n->task != TASK_DRIVER);
}

static bool has_own_state(const struct placing *p, const struct flow_node *n) {
  uint32_t var;
  for (uint32_t i = 0; i < node_touch_count(n); i++)
    if (node_touch(n, i, &var) != TOUCH_NONE && p->homes->build->vars.items[var].task == TASK_SELF)
      return true;
  return false;
}

static status place_node(struct placing *p, flow_id id) {
  struct flow_node *n = p->flow->nodes.items[id];
  struct server_note note = node_servers(p->homes, n);
  if (note.several || (note.server && has_own_state(p, n)))
    return fail(UNIMPLEMENTED, "%s (%s): a loop or op that changes variables of several tasks, with --strategy %s", n->name, n->tf_op,
                p->homes->build->options.strategy);
  if (note.server)
    n->task = note.server - 1;
  else if (!stays(p, n, id) && !has_own_state(p, n))
    n->task = choose_server(p, n, p->server[id]);
  return OK;
}

status homes_place(struct homes *h, const struct reach *r, struct flow *f, const struct gradients *g) {
  struct placing p = {.homes = h,
                      .r = r,
                      .flow = f,
                      .for_gradient = calloc(f->nodes.count + 1, 1),
                      .server = calloc(f->nodes.count + 1, sizeof *p.server),
                      .given = calloc(f->values.count + 1, sizeof *p.given)};
  look_back(&p, g);
  status result = OK;
  for (flow_id id = 1; id < f->nodes.count && result == OK; id++)
    if (f->nodes.items[id])
      result = place_node(&p, id);
  free(p.for_gradient);
  free(p.server);
  free(p.given);
  return result;
}
