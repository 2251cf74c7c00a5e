/* order_release.c: when the memory of values is not needed any more; the order's verifier and its text. */
#include <stdio.h>
#include <stdlib.h>

#include "compiler/pass/order.h"

/* ---- releases ---- */

struct release_walk {
  const struct flow *flow;
  uint32_t *last; /* per value: place in the order + 1 of its memory's last use; 0: nobody gives it up */
};

static void note_use(struct release_walk *w, value_id v, uint32_t place) {
  if (v)
    w->last[flow_root(w->flow, v)] = place + 1;
}

static void note_node(struct release_walk *w, const struct flow_node *n, uint32_t place) {
  for (uint32_t i = 0; i < flow_input_count(n); i++)
    note_use(w, flow_input(n, i), place);
  for (uint32_t i = 0; i < n->outputs.count; i++)
    note_use(w, n->outputs.items[i], place);
}

/* Not given up: strings, whose elements may have been copied as views; parameters and results, which are the caller's. But objects in
 * parameters are: a list that only its last user has is changed in place. */
static void keep_others(struct release_walk *w) {
  const struct flow *f = w->flow;
  for (value_id v = 1; v < f->values.count; v++)
    if (f->values.items[v].dtype == DTYPE_STRING)
      w->last[v] = 0;
  for (uint32_t i = 0; i < f->params.count; i++)
    if (f->values.items[f->params.items[i]].dtype != DTYPE_VARIANT)
      w->last[f->params.items[i]] = 0;
  for (uint32_t i = 0; i < f->results.count; i++)
    w->last[flow_root(f, f->results.items[i])] = 0;
}

void order_releases(const struct flow *f, struct order *order) {
  struct release_walk w = {.flow = f, .last = calloc((size_t)f->values.count + 1, sizeof *w.last)};
  uint32_t *start = calloc((size_t)order->nodes.count + 2, sizeof *start);
  for (uint32_t i = 0; i < order->nodes.count; i++)
    note_node(&w, f->nodes.items[order->nodes.items[i]], i);
  keep_others(&w);
  uint32_t total = 0;
  for (value_id v = 1; v < f->values.count; v++)
    if (w.last[v])
      start[w.last[v]]++, total++;
  for (uint32_t i = 1; i < order->nodes.count + 2; i++)
    start[i] += start[i - 1];
  order->release.count = 0;
  vec_reserve(&order->release, total + 1);
  order->release.count = total;
  for (value_id v = 1; v < f->values.count; v++)
    if (w.last[v])
      order->release.items[start[w.last[v] - 1]++] = (struct order_release){order->nodes.items[w.last[v] - 1], v};
  free(w.last);
  free(start);
}

/* ---- the verifier ---- */

struct order_check {
  const struct flow *flow;
  uint32_t *place; /* per node: its place + 1 */
  uint32_t *gone;  /* per value: the place + 1 after which its memory was given up */
};

static status check_before(const struct order_check *c, flow_id before, flow_id id) {
  if (before && c->flow->nodes.items[before] && (!c->place[before] || c->place[before] >= c->place[id]))
    return fail(INTERNAL, "order: #%u runs before #%u, which it needs", id, before);
  return OK;
}

static status check_node(const struct order_check *c, flow_id id) {
  const struct flow_node *n = c->flow->nodes.items[id];
  for (uint32_t i = 0; i < flow_input_count(n); i++) {
    value_id v = flow_input(n, i), root = v ? flow_root(c->flow, v) : 0;
    TRY(check_before(c, c->flow->values.items[v].producer, id));
    if (c->gone[root] && c->gone[root] < c->place[id])
      return fail(INTERNAL, "order: #%u uses %%%u, which was given up", id, v);
  }
  for (uint32_t i = 0; i < n->controls.count; i++)
    TRY(check_before(c, n->controls.items[i], id));
  return OK;
}

static status check_order(struct order_check *c) {
  const struct flow *f = c->flow;
  const struct order *order = f->order;
  for (uint32_t i = 0; i < order->nodes.count; i++) {
    if (c->place[order->nodes.items[i]])
      return fail(INTERNAL, "order: #%u runs twice", order->nodes.items[i]);
    c->place[order->nodes.items[i]] = i + 1;
  }
  for (uint32_t i = 0; i < order->release.count; i++)
    c->gone[order->release.items[i].value] = c->place[order->release.items[i].after];
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && !c->place[id])
      return fail(INTERNAL, "order: #%u never runs", id);
    else if (f->nodes.items[id])
      TRY(check_node(c, id));
  for (uint32_t i = 0; i < order->needs.count; i++)
    TRY(check_before(c, order->needs.items[i].before, order->needs.items[i].after));
  return OK;
}

status order_verify(const struct flow *f) {
  struct order_check c = {
    .flow = f, .place = calloc((size_t)f->nodes.count + 1, sizeof *c.place), .gone = calloc((size_t)f->values.count + 1, sizeof *c.gone)};
  status result = check_order(&c);
  free(c.place);
  free(c.gone);
  return result;
}

/* ---- text ---- */

static void print_order(FILE *out, const struct flow *f, int indent) {
  const struct order *order = f->order;
  uint32_t release = 0;
  for (uint32_t i = 0; i < order->nodes.count; i++) {
    flow_id id = order->nodes.items[i];
    const struct flow_node *n = f->nodes.items[id];
    fprintf(out, "%*s", indent, "");
    flow_print_node(out, f, id);
    for (bool first = true; release < order->release.count && order->release.items[release].after == id; release++, first = false)
      fprintf(out, "%s%%%u", first ? " releases " : ", ", order->release.items[release].value);
    fprintf(out, "  ; %s\n", n->name ? n->name : "");
    for (uint32_t r = 0; n->op != FLOW_HOST && r < n->region_count; r++) {
      fprintf(out, "%*sregion %u {\n", indent + 2, "", r);
      print_order(out, n->branches[r], indent + 4);
      fprintf(out, "%*s}\n", indent + 2, "");
    }
  }
  for (uint32_t i = 0; i < order->needs.count; i++)
    fprintf(out, "%*s#%u before #%u\n", indent, "", order->needs.items[i].before, order->needs.items[i].after);
}

void order_print(const struct flow *f, struct arena *arena, FILE *out) {
  (void)arena;
  print_order(out, f, 0);
}
