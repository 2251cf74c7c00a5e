/* means.c: see means.h. Flows are looked at after lowering: functions are inlined, and every update is one of a variable, whoever wrote the
 * optimizer. */
#include "compiler/pass/means.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/pass/pass.h"
#include "compiler/edit/regions.h"
#include "compiler/pass/sync.h"

#define FIRST_GATHER (1 << 20) /* means have the numbers below */

/* The chief runs these by itself before the others begin. */
static bool initializes(const struct entry *e) { return strcmp(e->name, "init") == 0 || strncmp(e->name, "local_init", 10) == 0; }

static status look(struct build *b, struct means *m, uint32_t i) {
  struct entry *e = &b->entries.items[i];
  regions_open(b, e->flow);
  if (!initializes(e))
    gradients_of_sums(b, e->flow, &m->gradients[i]);
  reach_init(&m->reaches[i], b, e->flow);
  if (!initializes(e) && gradients_split(&m->reaches[i], e->flow)) {
    reach_deinit(&m->reaches[i]);
    reach_init(&m->reaches[i], b, e->flow);
  }
  status result = initializes(e) ? OK : gradients_find(&m->reaches[i], &m->gradients[i]);
  return status_prefix(result, "entry %s: ", e->name);
}

/* ---- rows ---- */

/* The nodes that take a value: those that gradients are made of, or the others. */
static const char **takers_of(struct build *b, const struct flow *f, value_id v, const bool *for_gradient, bool of_gradient,
                              uint32_t *count) {
  VEC(const char *) names = {0};
  for (flow_id id = 1; id < f->nodes.count; id++)
    if (f->nodes.items[id] && for_gradient[id] == of_gradient && f->nodes.items[id]->op != FLOW_FETCH && node_takes(f->nodes.items[id], v))
      vec_push(&names, f->nodes.items[id]->name);
  const char **copy = arena_copy(&b->arena, names.items, names.count * sizeof *copy);
  *count = names.count;
  vec_free(&names);
  return copy;
}

/* Whether a node adds up rows by their indices. */
static bool adds_up(const struct flow_node *n) {
  return n->tf_op && (strcmp(n->tf_op, "UnsortedSegmentSum") == 0 || strstr(n->tf_op, "ScatterAdd") || strstr(n->tf_op, "ScatterSub"));
}

/* Whether it makes a multiple of its one input that is marked, by a number. */
static bool scales(const struct flow *f, const struct flow_node *n, const bool *marked) {
  bool divides = n->tf_op && strcmp(n->tf_op, "RealDiv") == 0, multiplies = n->tf_op && strcmp(n->tf_op, "Mul") == 0;
  if (n->op == FLOW_ALIAS || (n->tf_op && (strcmp(n->tf_op, "Neg") == 0 || strcmp(n->tf_op, "Cast") == 0)))
    return true;
  bool fits = node_input_count(n) == 2 && (multiplies || (divides && marked[node_input(n, 0)]));
  return fits && f->values.items[node_input(n, marked[node_input(n, 0)])].rank == 0;
}

/* Whether all that is made of rows, before they are added up, is a multiple of them: then it is all one who adds them up first. */
static bool are_only_summed(const struct flow *f, const struct gradient *rows, const bool *for_gradient) {
  bool *of_rows = calloc(f->values.count + 1, 1), only = true;
  of_rows[rows->value] = true;
  for (flow_id id = 1; id < f->nodes.count && only; id++) {
    const struct flow_node *n = f->nodes.items[id];
    uint32_t count = 0;
    for (uint32_t i = 0; n && !for_gradient[id] && n->op != FLOW_FETCH && i < node_input_count(n); i++)
      count += node_input(n, i) && of_rows[node_input(n, i)];
    if (count == 0 || (count == 1 && adds_up(n)))
      continue;
    only = count == 1 && scales(f, n, of_rows);
    for (uint32_t i = 0; i < n->outputs.count; i++)
      of_rows[n->outputs.items[i]] = true;
  }
  free(of_rows);
  return only;
}

/* Whether rows that were of one index each are to be so when they are those of all workers. */
static bool wants_once(const struct flow *f, const struct gradients *g, const struct gradient *of, const bool *for_gradient) {
  for (uint32_t i = 0; i < g->items.count; i++) {
    const struct gradient *rows = &g->items.items[i];
    if (rows->kind == GRADIENT_ROWS && rows->pair == of->pair && rows->once && !rows->gathered && !are_only_summed(f, rows, for_gradient))
      return true;
  }
  return false;
}

/* The indices of a pair; NULL: they are several lists, or not all rows and indices are of one each. */
static const struct gradient *sole_indices(const struct gradients *g, uint32_t pair) {
  const struct gradient *found = NULL;
  for (uint32_t i = 0; i < g->items.count; i++) {
    const struct gradient *x = &g->items.items[i];
    if (x->kind < GRADIENT_ROWS || x->pair != pair || x->gathered)
      continue;
    if (x->once != ROWS_ONCE || (found && x->kind == GRADIENT_INDICES))
      return NULL;
    found = x->kind == GRADIENT_INDICES ? x : found;
  }
  return found;
}

/* The node of the indices of which all workers' are to be there once; NULL: they are as they come. */
static status find_indices(const struct build *b, const struct entry *e, const struct gradients *g, const struct gradient *of,
                           const bool *for_gradient, const char **out) {
  const struct flow *f = e->flow;
  *out = NULL;
  if (!wants_once(f, g, of, for_gradient))
    return OK;
  const struct gradient *indices = sole_indices(g, of->pair);
  if (!indices)
    return fail(UNIMPLEMENTED,
                "entry %s: --strategy %s: '%s': gradients of rows that were looked up by Unique indices, which were then changed or joined "
                "with others, are not only summed up: look the table up by the Unique indices themselves, or take an optimizer that adds "
                "up the rows of one index",
                e->name, b->options.strategy, f->nodes.items[f->values.items[of->value].producer]->name);
  *out = f->nodes.items[f->values.items[indices->value].producer]->name;
  return OK;
}

static status ask_for_rows(struct build *b, const struct means *m, uint32_t entry) {
  const struct flow *f = b->entries.items[entry].flow;
  const struct gradients *g = &m->gradients[entry];
  bool *for_gradient = calloc(f->nodes.count + 1, 1);
  gradients_mark(f, g, for_gradient);
  status result = OK;
  for (uint32_t i = 0; i < g->items.count && result == OK; i++) {
    if (g->items.items[i].kind < GRADIENT_ROWS || g->items.items[i].gathered)
      continue;
    struct lower_gather what = {.value = f->nodes.items[f->values.items[g->items.items[i].value].producer]->name};
    what.users = takers_of(b, f, g->items.items[i].value, for_gradient, false, &what.user_count);
    what.makers = takers_of(b, f, g->items.items[i].value, for_gradient, true, &what.maker_count);
    what.is_mean = g->items.items[i].kind == GRADIENT_ROWS && !g->items.items[i].is_stored;
    what.pair = g->items.items[i].pair;
    result = find_indices(b, &b->entries.items[entry], g, &g->items.items[i], for_gradient, &what.indices);
    what.key = FIRST_GATHER + b->gathers.count;
    what.workers = sync_workers(b);
    vec_push(&b->gathers, what);
  }
  free(for_gradient);
  return result;
}

/* The variable whose rows are not gathered. */
static const char *rows_var(const struct build *b, const struct gradients *g) {
  for (uint32_t i = 0; i < g->items.count; i++)
    if (g->items.items[i].kind == GRADIENT_ROWS && !g->items.items[i].gathered)
      return b->vars.items[g->items.items[i].var].name;
  return "";
}

/* Whether rows of all workers are wanted in the number that one of them has: what takes them says so by another of its inputs. */
static bool is_of_one_worker(const struct flow *f, const struct gradient *g) {
  return g->gathered && flow_is_same_dim(f, g->value, g->gathered, 0);
}

static status check_sizes(const struct build *b, const struct entry *e, const struct gradients *g) {
  for (uint32_t i = 0; i < g->items.count; i++)
    if (is_of_one_worker(e->flow, &g->items.items[i]))
      return fail(UNIMPLEMENTED, "entry %s: --strategy %s: '%s': the rows of all workers, taken where each has as many as before", e->name,
                  b->options.strategy, e->flow->nodes.items[e->flow->values.items[g->items.items[i].value].producer]->name);
  return OK;
}

/* The flows have been lowered with the rows of all workers, as far as they can be together. */
static status check_rows(const struct build *b, const struct means *m) {
  for (uint32_t i = 0; i < b->entries.count; i++)
    if (m->gradients[i].wants_rows)
      return fail(UNIMPLEMENTED,
                  "entry %s: --strategy %s: gradients of single rows of '%s', used where those of several workers cannot be "
                  "together",
                  b->entries.items[i].name, b->options.strategy, rows_var(b, &m->gradients[i]));
  for (uint32_t i = 0; i < b->entries.count; i++)
    TRY(check_sizes(b, &b->entries.items[i], &m->gradients[i]));
  return OK;
}

static status find_rows(struct build *b, struct means *m) {
  if (b->gathers.count)
    return check_rows(b, m);
  for (uint32_t i = 0; i < b->entries.count; i++)
    if (m->gradients[i].wants_rows)
      TRY(ask_for_rows(b, m, i));
  if (b->gathers.count)
    means_deinit(m); /* it is found again in what is lowered with them */
  return OK;
}

status pass_means(struct build *b) {
  if (b->strategy == STRATEGY_NONE)
    return OK;
  struct means *m = b->means = ARENA_NEW(&b->arena, struct means);
  m->reaches = ARENA_ARRAY(&b->arena, struct reach, b->entries.count + 1);
  m->gradients = ARENA_ARRAY(&b->arena, struct gradients, b->entries.count + 1);
  status result = OK;
  for (; m->count < b->entries.count && result == OK; m->count++)
    result = look(b, m, m->count);
  if (result == OK && b->strategy != STRATEGY_PS_ASYNC)
    result = find_rows(b, m);
  if (result != OK)
    means_deinit(m);
  return result;
}

void means_deinit(struct means *m) {
  for (uint32_t i = 0; i < m->count; i++) {
    reach_deinit(&m->reaches[i]);
    vec_free(&m->gradients[i].items);
  }
  m->count = 0;
}
