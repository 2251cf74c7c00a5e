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

static void ask_for_rows(struct build *b, const struct means *m, uint32_t entry) {
  const struct flow *f = b->entries.items[entry].flow;
  const struct gradients *g = &m->gradients[entry];
  bool *for_gradient = calloc(f->nodes.count + 1, 1);
  gradients_mark(f, g, for_gradient);
  for (uint32_t i = 0; i < g->items.count; i++) {
    if (g->items.items[i].kind < GRADIENT_ROWS || g->items.items[i].gathered)
      continue;
    struct lower_gather what = {.value = f->nodes.items[f->values.items[g->items.items[i].value].producer]->name};
    what.users = takers_of(b, f, g->items.items[i].value, for_gradient, false, &what.user_count);
    what.makers = takers_of(b, f, g->items.items[i].value, for_gradient, true, &what.maker_count);
    what.is_mean = g->items.items[i].kind == GRADIENT_ROWS && !g->items.items[i].is_stored;
    what.pair = g->items.items[i].pair;
    what.key = FIRST_GATHER + b->gathers.count;
    what.workers = sync_workers(b);
    vec_push(&b->gathers, what);
  }
  free(for_gradient);
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
      ask_for_rows(b, m, i);
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
