/* entry_variants.c: which variants an entry needs: found by lowering it and seeing what it lacks. */
#include "compiler/pass/entry_variants.h"

#define RANKS_ONE 6   /* ranks 0 .. 5 for one feed without a rank, 0 .. 4 for two, 0 .. 3 for three */
#define VARIANT_NODES 400 /* larger entries are models: their feeds' sizes are batches, and compiling them twice takes long */
#define LENGTHS 7     /* lengths 0 .. 6 of a vector that decides a rank: real shapes are not longer */

struct variants {
  struct build *build;
  const struct entry_spec *spec;
  struct lower_request request;
  int *ranks, *lengths;      /* per feed; lengths: -1 open */
  VEC(struct entry) wrong;   /* combinations that the graph refuses */
  struct lower_notes notes;  /* of the last lowering */
  status last;               /* of the last lowering that failed */
  const char *last_text;
};

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
                             .tensor = arena_printf(&b->arena, "%s:%u", n->name, at.port), .any_rank = any};
    if (is_feed)
      vec_push(&e->feeds, port);
    else
      vec_push(&e->fetches, port);
  }
}

static void add_wrong(struct variants *v, status code) {
  struct entry e;
  v->last = code;
  v->last_text = arena_strdup(&v->build->arena, status_text());
  make_failed(v->build, v->spec, &v->request, code, &e);
  vec_push(&v->wrong, e);
}

/* Lowers with the ranks and lengths as they are set now. */
static status add_one(struct variants *v) {
  struct entry e;
  struct lower_notes other;
  TRY(entry_lower(v->build, v->spec, &v->request, LOWER_FIRST, &v->notes, &e));
  vec_push(&v->build->entries, e);
  bool small = e.flow->nodes.count <= VARIANT_NODES;
  if (v->notes.undecided && entry_lower(v->build, v->spec, &v->request, LOWER_MISFITS, &other, &e) == OK)
    vec_push(&v->build->entries, e);
  else if (v->notes.assumed && small && entry_lower(v->build, v->spec, &v->request, LOWER_BROADCASTS, &other, &e) == OK)
    vec_push(&v->build->entries, e);
  return OK;
}

/* A fed vector of integers whose length is open, from number `from` on; feed_count when there is none. */
static uint32_t open_vector(const struct variants *v, uint32_t from) {
  const struct lower_request *r = &v->request;
  for (uint32_t i = from; i < r->feed_count; i++) {
    if (v->lengths[i] >= 0)
      continue;
    const struct node *n = &r->graph->nodes.items[r->feeds[i].node];
    enum dtype dtype = dtype_base(n->output_dtypes[r->feeds[i].port]);
    const struct attr_value *a = node_attr(n, "shape");
    bool any = !lower_feed_has_rank(r->graph, r->feeds[i]);
    bool vector = any ? v->ranks[i] == 1 : a && a->kind == ATTR_SHAPE && a->shape.rank == 1 && a->shape.dims[0] < 0;
    if (vector && (dtype == DTYPE_INT32 || dtype == DTYPE_INT64))
      return i;
  }
  return r->feed_count;
}

/* One for each length of a fed vector, of the first one whose length helps: two of them may be needed (two sparse shapes). */
static void add_lengths(struct variants *v, int vectors) {
  uint32_t before = v->build->entries.count, count = v->request.feed_count;
  for (uint32_t i = open_vector(v, 0); i < count && v->build->entries.count == before; i = open_vector(v, i + 1)) {
    uint32_t wrong = v->wrong.count;
    for (v->lengths[i] = 0; v->lengths[i] < LENGTHS; v->lengths[i]++) {
      status s = add_one(v);
      if (s == UNIMPLEMENTED && v->notes.wants_length && vectors > 1)
        add_lengths(v, vectors - 1);
      else if (s != OK && s != UNIMPLEMENTED)
        add_wrong(v, s);
    }
    v->lengths[i] = -1;
    if (v->build->entries.count == before)
      v->wrong.count = wrong;
  }
}

/* One combination of ranks; where it needs the length of a fed vector, one for each length. */
static void add_combination(struct variants *v) {
  status s = add_one(v);
  if (s == OK)
    return;
  if (s != UNIMPLEMENTED || !v->notes.wants_length || open_vector(v, 0) == v->request.feed_count) {
    add_wrong(v, s);
    return;
  }
  char *why = arena_strdup(&v->build->arena, status_text());
  uint32_t before = v->build->entries.count;
  add_lengths(v, 2);
  if (v->build->entries.count == before) { /* the length was not what it lacked */
    v->last = UNIMPLEMENTED;
    v->last_text = why;
  }
}

static status add_all(struct variants *v) {
  const struct lower_request *r = &v->request;
  uint32_t unknown = 0;
  for (uint32_t i = 0; i < r->feed_count; i++)
    unknown += !lower_feed_has_rank(r->graph, r->feeds[i]);
  int each = unknown ? ranks_each(unknown) : 1, total = 1;
  if (!each)
    return fail(UNIMPLEMENTED, "entry '%s': %u fed placeholders without a rank: give them shapes", v->spec->name, unknown);
  for (uint32_t i = 0; i < unknown; i++)
    total *= each;
  for (int c = 0; c < total; c++) {
    int rest = c;
    for (uint32_t i = 0; i < r->feed_count; i++)
      if (!lower_feed_has_rank(r->graph, r->feeds[i]))
        v->ranks[i] = rest % each, rest /= each;
    add_combination(v);
  }
  return OK;
}

status entry_lower_variants(struct build *b, const struct entry_spec *spec) {
  struct variants v = {.build = b, .spec = spec};
  TRY(entry_request(b, spec, &v.request));
  v.request.feed_ranks = v.ranks = ARENA_ARRAY(&b->arena, int, v.request.feed_count + 1);
  v.request.feed_lengths = v.lengths = ARENA_ARRAY(&b->arena, int, v.request.feed_count + 1);
  for (uint32_t i = 0; i < v.request.feed_count; i++)
    v.lengths[i] = -1;
  uint32_t first = b->entries.count;
  TRY(add_all(&v));
  if (b->entries.count == first) /* wrong for every combination: what the last one reported */
    return fail(v.last, "%s", v.last_text);
  for (uint32_t i = 0; i < v.wrong.count; i++) {
    struct entry e = v.wrong.items[i];
    e.replicated = b->entries.items[first].replicated;
    vec_push(&b->entries, e);
  }
  vec_free(&v.wrong);
  for (uint32_t i = first + 1; i < b->entries.count; i++)
    b->entries.items[i].is_variant = true;
  return OK;
}
