/* lower_entries.c: every entry of the build as a flow of core ops, over one table of variables. */
#include <string.h>

#include "compiler/pass/entry_variants.h"
#include "compiler/pass/pass.h"
#include "ir/lower/lower.h"

static uint32_t find_var(void *self, const struct flow_var *wanted) {
  struct build *b = self;
  const char *key = arena_printf(&b->arena, "%u %zu %s %s", wanted->task, strlen(wanted->container), wanted->container, wanted->name);
  uint32_t at;
  if (map_find(&b->var_names, key, &at))
    return at;
  map_insert(&b->var_names, key, b->vars.count);
  vec_push(&b->vars, *wanted);
  return b->vars.count - 1;
}
static const struct flow_var *get_var(void *self, uint32_t var) { return &((struct build *)self)->vars.items[var]; }

static void open_var(void *self, uint32_t number, int rank, const int64_t *dims) {
  struct build *b = self;
  struct flow_var *var = &b->vars.items[number];
  var->has_shape = false;
  var->rank = rank;
  for (int i = 0; i < rank; i++)
    var->dims[i] = dims[i];
  b->vars_opened = true;
}

static status resolve_outputs(struct build *b, const char *const *names, uint32_t count, struct edge *out) {
  for (uint32_t i = 0; i < count; i++)
    TRY(graph_find_output(b->model.graph, names[i], &out[i]));
  return OK;
}

status entry_request(struct build *b, const struct entry_spec *spec, struct lower_request *r) {
  *r = (struct lower_request){
    .graph = b->model.graph, .feed_count = spec->feeds.count, .fetch_count = spec->fetches.count, .target_count = spec->targets.count};
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

/* The dimension of a feed that has this symbol. */
static bool find_fed_size(const struct entry *e, const struct dim_table *dims, uint32_t symbol, struct feed_size *out) {
  for (uint32_t i = 0; e->flow && i < e->feeds.count; i++) {
    const struct flow_value *x = &e->flow->values.items[e->feeds.items[i].value];
    for (int d = 0; d < x->rank; d++) {
      uint32_t s;
      *out = (struct feed_size){.feed = i, .axis = d};
      if (dim_is_symbol(dims, x->dims[d], &s) && s == symbol)
        return true;
    }
  }
  return false;
}

status entry_lower(struct build *b, const struct entry_spec *spec, const struct lower_request *r, enum lower_mode mode, const bool *ones,
                   uint32_t one_count, struct lower_notes *notes, struct entry *e) {
  const struct lower_options options = {.arena = &b->arena,
                                        .dims = dims_create(&b->arena),
                                        .find_var = find_var,
                                        .get_var = get_var,
                                        .open_var = open_var,
                                        .self = b,
                                        .misfits = mode == LOWER_MISFITS,
                                        .broadcasts = mode == LOWER_BROADCASTS,
                                        .ones = ones,
                                        .one_count = one_count,
                                        .gathers = b->gathers.items,
                                        .gather_count = b->gathers.count};
  struct lower_findings found;
  *e = (struct entry){.name = spec->name};
  status s = lower_entry(&options, r, &found, e);
  *notes = (struct lower_notes){.undecided = found.undecided, .assumed = found.assumed, .wants_feed = found.wants_feed};
  notes->wants_fed_size = found.wants_symbol && find_fed_size(e, options.dims, found.wants_symbol - 1, &notes->wants_size);
  for (flow_id id = 1; s == OK && id < e->flow->nodes.count; id++)
    e->replicated = e->replicated || (e->flow->nodes.items[id] && e->flow->nodes.items[id]->task == TASK_SELF);
  return s;
}

/* Every entry, so that what is wrong with each is known; without one that was asked for there is no build. */
static status lower_all(struct build *b) {
  status first = OK;
  bool asked = false;
  const char *text = NULL;
  b->vars_opened = false;
  b->entries.count = b->dropped.count = 0;
  for (uint32_t i = 0; i < b->specs.count; i++) {
    const struct entry_spec *spec = &b->specs.items[i];
    status s = entry_lower_variants(b, spec);
    if (s == OK || b->vars_opened)
      continue;
    const char *why = arena_printf(&b->arena, "%s: %s", status_name(s), status_text());
    vec_push(&b->dropped, (struct entry_dropped){spec->name, why});
    if (first == OK || (!spec->is_guess && !asked))
      first = s, text = arena_strdup(&b->arena, status_text());
    asked = asked || !spec->is_guess;
  }
  return first == OK || b->vars_opened || (!asked && b->entries.count) ? OK : fail(first, "%s", text);
}

/* An entry may find that a variable's shape changes, which those before it did not know. A variable opens a few times at most: its sizes,
 * then its rank. */
status pass_lower(struct build *b) {
  status s;
  do {
    s = lower_all(b);
  } while (s == OK && b->vars_opened);
  return s;
}
