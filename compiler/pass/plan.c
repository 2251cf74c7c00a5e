/* plan.c: storage of every value, then lives, in one walk over a part in its order. */
#include "compiler/pass/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/pass/lanes.h"
#include "compiler/pass/order.h"
#include "compiler/edit/part_walk.h"
#include "compiler/pass/pass.h"

#define PARTIAL_NODES_MAX 50000 /* beyond, a program that holds the part twice would be large */

bool entry_has_partial_runs(const struct entry *entry) {
  return entry->feeds.count > 0 && entry->fetches.count > 0 && entry->feeds.count + entry->fetches.count > 2 && !entry->is_variant &&
         !entry->failed && entry->flow->nodes.count < PARTIAL_NODES_MAX;
}

enum dim_answer { DIM_NOT_ASKED, DIM_KNOWN, DIM_LATE };
struct planner {
  struct dim_table *dims;
  uint32_t symbols;
  bool *start, *seen;   /* per symbol: known when the part starts */
  VEC(uint8_t) answers; /* per dim */
  uint32_t position;
  bool is_partial;
};

/* ---- storage ---- */

static bool find_known(struct planner *p, dim d) {
  bool known = true;
  memset(p->seen, 0, p->symbols);
  dim_symbols(p->dims, dim_resolve(p->dims, d), p->seen);
  for (uint32_t s = 0; s < p->symbols && known; s++)
    known = !p->seen[s] || p->start[s];
  return known;
}

/* Whether a size is known when the part starts. */
static bool is_known(struct planner *p, dim d) {
  int64_t value;
  if (dim_is_const(p->dims, dim_resolve(p->dims, d), &value))
    return true;
  while (p->answers.count <= d)
    vec_push(&p->answers, DIM_NOT_ASKED);
  if (p->answers.items[d] == DIM_NOT_ASKED)
    p->answers.items[d] = find_known(p, d) ? DIM_KNOWN : DIM_LATE;
  return p->answers.items[d] == DIM_KNOWN;
}

static void place_value(struct planner *p, const struct flow *f, struct plan *plan, value_id v, enum program_storage storage) {
  bool known = true;
  for (int i = 0; i < f->values.items[v].rank && known && storage == STORAGE_ARENA; i++)
    known = is_known(p, f->values.items[v].dims[i]);
  plan->places[v] = (struct plan_place){.storage = (uint8_t)(known ? storage : STORAGE_TENSOR), .is_there = true, .root = v};
}

static enum program_storage storage_of(const struct flow_node *n) {
  switch (n->op) {
  case FLOW_CONST: return STORAGE_CONST;
  case FLOW_KERNEL:
  case FLOW_VARIABLE: return STORAGE_ARENA;
  case FLOW_READ: return STORAGE_VARIABLE;
  case FLOW_ALIAS: return STORAGE_ALIAS;
  default: return STORAGE_TENSOR;
  }
}

static void place_outputs(struct planner *p, const struct flow *f, struct plan *plan, const struct flow_node *n) {
  for (uint32_t i = 0; n->op == FLOW_KERNEL && i < n->kernel->buffers.count; i++)
    if (flow_arg_is_output(n, i))
      place_value(p, f, plan, n->args[i].value, STORAGE_ARENA);
  for (uint32_t i = 0; n->op != FLOW_KERNEL && i < n->outputs.count; i++) {
    place_value(p, f, plan, n->outputs.items[i], storage_of(n));
    if (n->op == FLOW_ALIAS)
      plan->places[n->outputs.items[i]].root = plan->places[n->inputs.items[0]].root;
  }
}

/* A value that outlives the step cannot be in the arena; strings are copied when they leave in any case. */
static void let_escape(const struct flow *f, struct plan *plan, value_id v) {
  value_id root = plan->places[v].root;
  if (plan->places[root].storage == STORAGE_ARENA && f->values.items[root].dtype != DTYPE_STRING)
    plan->places[root].storage = STORAGE_TENSOR;
}

/* Calls back for each value that leaves: sent, fetched, given on by a merge or as a result. */
static void each_leaving(const struct flow *f, struct plan *plan, void (*leave)(const struct flow *, struct plan *, value_id)) {
  for (uint32_t i = 0; i < f->order->nodes.count; i++) {
    const struct flow_node *n = f->nodes.items[f->order->nodes.items[i]];
    if (n->op == FLOW_SEND || n->op == FLOW_FETCH)
      leave(f, plan, n->inputs.items[0]);
    for (uint32_t side = 1; n->op == FLOW_MERGE && side < 3; side++)
      leave(f, plan, n->inputs.items[side]);
  }
  for (uint32_t i = 0; i < f->results.count; i++)
    leave(f, plan, f->results.items[i]);
}

/* What a kernel makes for a row of a loop's array it makes there; anything else is copied when the turn ends. */
static void let_be_row(struct plan *plan, value_id v) {
  struct plan_place *root = &plan->places[plan->places[v].root];
  if (root->storage == STORAGE_ARENA)
    root->storage = STORAGE_ROW;
}

/* rows: so many of the results, the last, are rows. */
static void place_values(struct planner *p, const struct flow *f, struct plan *plan, uint32_t rows) {
  for (uint32_t i = 0; i < f->params.count; i++)
    place_value(p, f, plan, f->params.items[i], STORAGE_TENSOR);
  for (uint32_t i = 0; i < f->order->nodes.count; i++)
    place_outputs(p, f, plan, f->nodes.items[f->order->nodes.items[i]]);
  for (uint32_t i = f->results.count - rows; i < f->results.count; i++)
    let_be_row(plan, f->results.items[i]);
  each_leaving(f, plan, let_escape);
}

/* ---- lives ---- */

/* Nodes that do nothing while a step runs; where nodes run by counts, their edges count. */
static bool is_static(const struct plan *plan, const struct flow_node *n) {
  if (plan->by_counts)
    return false;
  if (n->op == FLOW_CONST || n->op == FLOW_NOOP)
    return true;
  if (n->op != FLOW_ALIAS)
    return false;
  uint8_t storage = plan->places[plan->places[n->outputs.items[0]].root].storage;
  return storage == STORAGE_ARENA || storage == STORAGE_CONST;
}

static void note_use(struct plan *plan, value_id v, uint32_t position) {
  struct plan_place *root = &plan->places[plan->places[v].root];
  if (!root->first)
    root->first = position;
  root->last = position;
}

static status plan_flow(struct planner *p, struct flow *f, bool by_counts, uint32_t rows);

static status plan_node(struct planner *p, const struct flow *f, struct plan *plan, flow_id id) {
  const struct flow_node *n = f->nodes.items[id];
  for (uint32_t r = 0; (n->op == FLOW_IF || n->op == FLOW_WHILE) && r < n->region_count; r++)
    TRY(plan_flow(p, n->branches[r], false, r == 1 ? n->rows_out : 0));
  plan->at[id] = ++p->position;
  for (uint32_t i = 0; i < flow_input_count(n); i++)
    if (flow_input(n, i))
      note_use(plan, flow_input(n, i), plan->at[id]);
  for (uint32_t i = 0; n->op == FLOW_KERNEL && i < n->kernel->buffers.count; i++)
    if (flow_arg_is_output(n, i))
      note_use(plan, n->args[i].value, plan->at[id]);
  for (uint32_t i = 0; n->op != FLOW_KERNEL && i < n->outputs.count; i++)
    note_use(plan, n->outputs.items[i], plan->at[id]);
  return OK;
}

/* Members of a group run at the same time: their values live through all of it. */
static void end_group(const struct flow *f, struct plan *plan, uint32_t begin, uint32_t end, uint32_t first, uint32_t last) {
  for (uint32_t i = begin; i < end; i++) {
    const struct flow_node *n = f->nodes.items[f->order->nodes.items[i]];
    for (uint32_t j = 0; n->op == FLOW_KERNEL && j < n->kernel->buffers.count; j++) {
      if (!n->args[j].value)
        continue;
      struct plan_place *root = &plan->places[plan->places[n->args[j].value].root];
      if (root->first > first && root->first <= last)
        root->first = first;
      if (root->last >= first && root->last < last)
        root->last = last;
    }
  }
}

static void widen_groups(const struct flow *f, struct plan *plan) {
  const struct lanes *l = f->lanes;
  for (uint32_t i = 0; !plan->by_counts && i < f->order->nodes.count; i++) {
    uint32_t group = l->group[f->order->nodes.items[i]], begin = i, first = plan->at[f->order->nodes.items[i]], last = first;
    if (!group)
      continue;
    for (uint32_t j = i + 1; j < f->order->nodes.count; j++)
      if (l->group[f->order->nodes.items[j]] == group)
        i = j, last = plan->at[f->order->nodes.items[j]];
      else if (l->group[f->order->nodes.items[j]])
        break;
    end_group(f, plan, begin, i + 1, first, last);
  }
}

static status plan_flow(struct planner *p, struct flow *f, bool by_counts, uint32_t rows) {
  struct plan **out = p->is_partial ? &f->partial_plan : &f->plan;
  if (*out)
    return fail(INTERNAL, "a region of two parts");
  struct plan *plan = *out = ARENA_NEW(f->arena, struct plan);
  plan->by_counts = by_counts;
  plan->places = ARENA_ARRAY(f->arena, struct plan_place, f->values.count + 1);
  plan->at = ARENA_ARRAY(f->arena, uint32_t, f->nodes.count + 1);
  place_values(p, f, plan, rows);
  for (uint32_t i = 0; i < f->order->nodes.count; i++)
    if (!is_static(plan, f->nodes.items[f->order->nodes.items[i]]))
      TRY(plan_node(p, f, plan, f->order->nodes.items[i]));
  p->position++;
  for (uint32_t i = 0; i < f->results.count; i++)
    note_use(plan, f->results.items[i], p->position);
  widen_groups(f, plan);
  plan->positions = p->position + 1;
  return OK;
}

/* ---- parts ---- */

/* The symbols of the feeds' shapes: the driver knows them when it starts. */
static void note_feeds(struct planner *p, const struct entry *e) {
  uint32_t symbol;
  for (uint32_t i = 0; i < e->feeds.count; i++) {
    const struct flow_value *value = &e->flow->values.items[e->feeds.items[i].value];
    for (int d = 0; d < value->rank; d++)
      if (dim_is_symbol(p->dims, dim_resolve(p->dims, value->dims[d]), &symbol))
        p->start[symbol] = true;
  }
}

static status plan_mode(const struct part_ref *part, bool knows_feeds, bool is_partial) {
  struct planner p = {.dims = part->flow->dims, .symbols = dims_symbol_count(part->flow->dims), .is_partial = is_partial};
  p.start = calloc((size_t)p.symbols + 1, sizeof *p.start);
  p.seen = calloc((size_t)p.symbols + 1, sizeof *p.seen);
  if (knows_feeds)
    note_feeds(&p, part->entry);
  status result = plan_flow(&p, part->flow, is_partial || part->flow->lanes->by_counts, 0);
  free(p.start);
  free(p.seen);
  vec_free(&p.answers);
  return result;
}

static status plan_part(struct build *b, const struct part_ref *part, void *self) {
  (void)self;
  if (part->is_function)
    return part->flow->plan ? OK : plan_mode(part, false, false); /* several calls may run it */
  bool drives = part->task == TASK_DRIVER || part->task == TASK_SELF;
  TRY(plan_mode(part, drives || b->cluster.tasks.count == 1, false));
  return entry_has_partial_runs(part->entry) ? plan_mode(part, false, true) : OK;
}

status pass_plan(struct build *b) { return part_each(b, plan_part, NULL); }

/* ---- the verifier ---- */

static status check_use(const struct flow *f, const struct plan *plan, value_id v, flow_id id) {
  const struct plan_place *place = &plan->places[v], *root = &plan->places[place->root];
  if (!place->is_there || place->root != flow_root(f, v))
    return fail(INTERNAL, "plan: %%%u has no place of its own", v);
  if (plan->at[id] && (root->first > plan->at[id] || root->last < plan->at[id]))
    return fail(INTERNAL, "plan: #%u uses %%%u out of its life", id, v);
  return OK;
}

static status check_leaving(const struct flow *f, const struct plan *plan, value_id v) {
  value_id root = plan->places[v].root;
  if (plan->places[root].storage == STORAGE_ARENA && f->values.items[root].dtype != DTYPE_STRING)
    return fail(INTERNAL, "plan: %%%u leaves the part, but lies in its arena", v);
  return OK;
}

static status check_node(const struct flow *f, const struct plan *plan, flow_id id) {
  const struct flow_node *n = f->nodes.items[id];
  for (uint32_t i = 0; i < flow_input_count(n); i++)
    if (flow_input(n, i))
      TRY(check_use(f, plan, flow_input(n, i), id));
  for (uint32_t i = 0; n->op != FLOW_KERNEL && i < n->outputs.count; i++)
    TRY(check_use(f, plan, n->outputs.items[i], id));
  if (n->op == FLOW_SEND || n->op == FLOW_FETCH)
    TRY(check_leaving(f, plan, n->inputs.items[0]));
  for (uint32_t side = 1; n->op == FLOW_MERGE && side < 3; side++)
    TRY(check_leaving(f, plan, n->inputs.items[side]));
  return OK;
}

static status check_plan(const struct flow *f, const struct plan *plan) {
  for (uint32_t i = 0; i < f->order->nodes.count; i++)
    TRY(check_node(f, plan, f->order->nodes.items[i]));
  for (uint32_t i = 0; i < f->results.count; i++)
    TRY(check_leaving(f, plan, f->results.items[i]));
  return OK;
}

status plan_verify(const struct flow *f) {
  TRY(check_plan(f, f->plan));
  return f->partial_plan ? check_plan(f, f->partial_plan) : OK;
}

/* ---- text ---- */

static void print_place(FILE *out, const struct flow *f, const struct plan *plan, value_id v, int indent) {
  static const char *const names[] = {[STORAGE_ARENA] = "arena",       [STORAGE_TENSOR] = "tensor",  [STORAGE_CONST] = "constant",
                                      [STORAGE_VARIABLE] = "variable", [STORAGE_ALIAS] = "alias of", [STORAGE_ROW] = "row"};
  const struct plan_place *place = &plan->places[v];
  fprintf(out, "%*s%%%u: %s %s", indent, "", v, flow_value_text(f, v), names[place->storage]);
  if (place->storage == STORAGE_ALIAS)
    fprintf(out, " %%%u", place->root);
  else if (place->storage == STORAGE_ARENA && !plan->by_counts)
    fprintf(out, " from %u to %u", place->first, place->last);
  fputs("\n", out);
}

static void print_plan(FILE *out, const struct flow *f, int indent) {
  const struct plan *plan = f->plan;
  for (uint32_t i = 0; i < f->params.count; i++)
    print_place(out, f, plan, f->params.items[i], indent);
  for (uint32_t i = 0; i < f->order->nodes.count; i++) {
    const struct flow_node *n = f->nodes.items[f->order->nodes.items[i]];
    fprintf(out, "%*s", indent, "");
    if (plan->at[f->order->nodes.items[i]])
      fprintf(out, "%u: ", plan->at[f->order->nodes.items[i]]);
    flow_print_node(out, f, f->order->nodes.items[i]);
    fputs("\n", out);
    for (uint32_t r = 0; (n->op == FLOW_IF || n->op == FLOW_WHILE) && r < n->region_count; r++)
      print_plan(out, n->branches[r], indent + 4);
    for (uint32_t j = 0; j < n->outputs.count; j++)
      print_place(out, f, plan, n->outputs.items[j], indent + 2);
  }
}

void plan_print(const struct flow *f, struct arena *arena, FILE *out) {
  (void)arena;
  print_plan(out, f, 0);
}
