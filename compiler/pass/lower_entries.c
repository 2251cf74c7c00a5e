/* lower_entries.c: every entry of the build as a flow of core ops, over one table of variables. */
#include <string.h>

#include "compiler/pass/pass.h"
#include "ir/lower.h"

static uint32_t find_var(void *self, const struct flow_var *wanted) {
  struct build *b = self;
  for (uint32_t i = 0; i < b->vars.count; i++) {
    const struct flow_var *v = &b->vars.items[i];
    if (v->task == wanted->task && strcmp(v->name, wanted->name) == 0 && strcmp(v->container, wanted->container) == 0)
      return i;
  }
  vec_push(&b->vars, *wanted);
  return b->vars.count - 1;
}
static const struct flow_var *get_var(void *self, uint32_t var) { return &((struct build *)self)->vars.items[var]; }

static status resolve_outputs(struct build *b, const char *const *names, uint32_t count, struct edge *out) {
  for (uint32_t i = 0; i < count; i++)
    TRY(graph_find_output(b->model.graph, names[i], &out[i]));
  return OK;
}

static status make_request(struct build *b, const struct entry_spec *spec, struct lower_request *r) {
  *r = (struct lower_request){.graph = b->model.graph, .feed_count = spec->feeds.count, .fetch_count = spec->fetches.count,
                              .target_count = spec->targets.count};
  r->feeds = ARENA_ARRAY(&b->arena, struct edge, r->feed_count + 1);
  r->fetches = ARENA_ARRAY(&b->arena, struct edge, r->fetch_count + 1);
  r->targets = ARENA_ARRAY(&b->arena, uint32_t, r->target_count + 1);
  r->feed_names = spec->feed_keys.items;
  r->fetch_names = spec->fetch_keys.items;
  TRY(resolve_outputs(b, spec->feeds.items, r->feed_count, r->feeds));
  TRY(resolve_outputs(b, spec->fetches.items, r->fetch_count, r->fetches));
  for (uint32_t i = 0; i < r->target_count; i++) {
    r->targets[i] = graph_find(b->model.graph, spec->targets.items[i]);
    if (r->targets[i] == NO_NODE)
      return fail(NOT_FOUND, "the graph has no operation '%s'", spec->targets.items[i]);
  }
  return OK;
}

/* `misfits`, `undecided`: see struct lower. */
static status lower_with(struct build *b, const struct entry_spec *spec, const struct lower_request *r, bool misfits, bool *undecided,
                         struct entry *e) {
  struct lower lw = {.arena = &b->arena, .dims = dims_create(&b->arena), .find_var = find_var, .get_var = get_var, .self = b,
                     .misfits = misfits};
  *e = (struct entry){.name = spec->name};
  status s = lower_entry(&lw, r, e);
  vec_free(&lw.objects);
  *undecided = lw.undecided;
  for (flow_id id = 1; s == OK && id < e->flow->nodes.count; id++)
    e->replicated = e->replicated || (e->flow->nodes.items[id] && e->flow->nodes.items[id]->task == TASK_SELF);
  return s;
}

/* ---- feeds of unknown rank: one variant of the entry for each combination ---- */

#define RANKS_ONE 6 /* ranks 0 .. 5 for one such feed, 0 .. 4 for two, 0 .. 3 for three */

static int ranks_each(uint32_t feeds) { return feeds == 1 ? RANKS_ONE : feeds == 2 ? 5 : feeds == 3 ? 4 : 0; }

/* An entry that only says what is wrong with feeds of these ranks. */
static void make_failed(struct build *b, const struct entry_spec *spec, const struct lower_request *r, status code, struct entry *e) {
  *e = (struct entry){.name = spec->name, .failed = code, .failed_text = arena_strdup(&b->arena, status_text())};
  struct dim_table *dims = dims_create(&b->arena);
  e->flow = flow_create(&b->arena, dims);
  for (uint32_t i = 0; i < r->feed_count + r->fetch_count; i++) {
    bool is_feed = i < r->feed_count;
    struct edge at = is_feed ? r->feeds[i] : r->fetches[i - r->feed_count];
    const struct node *n = &b->model.graph->nodes.items[at.node];
    bool any = is_feed && !lower_feed_has_rank(r->graph, at);
    dim d[LIMIT_RANK];
    int rank = any ? r->feed_ranks[i] : 0;
    for (int k = 0; k < rank; k++)
      d[k] = dim_symbol(dims, "n");
    value_id v = flow_add_value(e->flow, dtype_base(n->output_dtypes[at.port]), rank, d);
    struct flow_port port = {.name = is_feed ? r->feed_names[i] : r->fetch_names[i - r->feed_count], .value = v,
                             .tensor = arena_printf(&b->arena, "%s:%u", n->name, at.port), .any_rank = is_feed};
    if (is_feed)
      vec_push(&e->feeds, port);
    else
      vec_push(&e->fetches, port);
  }
}

static status lower_variants(struct build *b, const struct entry_spec *spec, struct lower_request *r, uint32_t unknown) {
  int each = ranks_each(unknown), total = 1, *ranks = ARENA_ARRAY(&b->arena, int, r->feed_count + 1);
  if (!each)
    return fail(UNIMPLEMENTED, "entry '%s': %u fed placeholders without a rank: give them shapes", spec->name, unknown);
  for (uint32_t i = 0; i < unknown; i++)
    total *= each;
  uint32_t first = b->entries.count;
  VEC(struct entry) wrong = {0};
  status s = OK;
  r->feed_ranks = ranks;
  for (int v = 0; v < total; v++) {
    int rest = v;
    for (uint32_t i = 0; i < r->feed_count; i++)
      if (!lower_feed_has_rank(r->graph, r->feeds[i]))
        ranks[i] = rest % each, rest /= each;
    struct entry e;
    bool undecided;
    s = lower_with(b, spec, r, false, &undecided, &e);
    if (s == OK) {
      vec_push(&b->entries, e);
      continue;
    }
    make_failed(b, spec, r, s, &e);
    vec_push(&wrong, e);
  }
  bool any = b->entries.count > first;
  for (uint32_t i = 0; any && i < wrong.count; i++) {
    struct entry *e = &wrong.items[i];
    e->replicated = b->entries.items[first].replicated;
    vec_push(&b->entries, *e);
  }
  vec_free(&wrong);
  for (uint32_t i = first + 1; i < b->entries.count; i++)
    b->entries.items[i].is_variant = true;
  return any ? OK : s; /* wrong for every rank: what the last one reported */
}

static status lower_one(struct build *b, const struct entry_spec *spec) {
  struct lower_request r;
  TRY(make_request(b, spec, &r));
  uint32_t unknown = 0;
  for (uint32_t i = 0; i < r.feed_count; i++)
    unknown += !lower_feed_has_rank(r.graph, r.feeds[i]);
  if (unknown)
    return lower_variants(b, spec, &r, unknown);
  struct entry e;
  bool undecided;
  TRY(lower_with(b, spec, &r, false, &undecided, &e));
  vec_push(&b->entries, e);
  if (undecided && lower_with(b, spec, &r, true, &undecided, &e) == OK) {
    e.is_variant = true;
    vec_push(&b->entries, e);
  }
  return OK;
}

status pass_lower(struct build *b) {
  for (uint32_t i = 0; i < b->specs.count; i++)
    TRY(lower_one(b, &b->specs.items[i]));
  return OK;
}
