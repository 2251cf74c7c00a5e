/* entry_variants.c: which variants an entry needs: found by lowering it and seeing what it lacks. */
#include "compiler/pass/entry_variants.h"

#include <string.h>

#include "compiler/pass/pass.h"
#include "ir/graph/feed_ranks.h"

#define RANKS 7     /* a feed without a rank is tried with 0 .. 6 dimensions, a single one that takes none of these with more */
#define FEW_FEEDS 3 /* without a rank: most combinations of small ranks are there */
#define FEW_MAX 90  /* combinations that work, of few feeds and of many; ... */
#define MANY_MAX 36
#define TRIES_MAX 1500    /* ... and all that are lowered */
#define DECIDED_MAX 32    /* of one combination: which sizes are 1 */
#define VARIANT_NODES 400 /* larger entries are models: their feeds' sizes are batches, and compiling them twice takes long */
#define SIZES 7           /* sizes 0 .. 6 of what decides a rank: real shapes are not longer */
#define SIZES_DEEP 3      /* of one combination */
#define WRONG_MAX 300
#define UNLIKELY 1000 /* what a rank costs that the ops which take the feed do not take, as a rule */

/* Ranks of feeds to try, -1 where nothing has asked for one yet, and sizes of feeds. */
struct combination {
  int *ranks;
  struct feed_size *sizes;
  uint32_t size_count;
  int cost;
};

struct variants {
  struct build *build;
  const struct entry_spec *spec;
  struct lower_request request;
  int *ranks;       /* per feed */
  rank_set *likely; /* per feed */
  VEC(struct combination) open;
  uint32_t tries, decided, worked;
  int rank_first, rank_end; /* those that are tried */
  uint32_t wanted;          /* a feed whose rank one of the answers needs: its number + 1 */
  VEC(struct entry) wrong;  /* combinations that the graph refuses */
  struct lower_notes notes; /* of the last lowering */
  status last;              /* of the last lowering that failed, UNIMPLEMENTED stays; OK: no combination was whole */
  const char *last_text;
};

/* An entry that only says what is wrong with such feeds: `e` is what the lowering left. */
static void make_failed(struct variants *v, status code, struct entry *e) {
  struct build *b = v->build;
  const struct lower_request *r = &v->request;
  struct flow *flow = flow_create(&b->arena, e->flow->dims);
  e->failed = code;
  e->failed_text = arena_strdup(&b->arena, status_text());
  for (uint32_t i = 0; i < e->feeds.count; i++) {
    struct flow_value x = e->flow->values.items[e->feeds.items[i].value];
    e->feeds.items[i].value = flow_add_value(flow, x.dtype, x.rank, x.dims);
  }
  e->fetches.count = 0;
  for (uint32_t i = 0; i < r->fetch_count; i++) {
    const struct node *n = &b->model.graph->nodes.items[r->fetches[i].node];
    value_id x = flow_add_value(flow, dtype_base(n->output_dtypes[r->fetches[i].port]), 0, NULL);
    vec_push(
      &e->fetches,
      (struct flow_port){.name = r->fetch_names[i], .value = x, .tensor = arena_printf(&b->arena, "%s:%u", n->name, r->fetches[i].port)});
  }
  e->flow = flow;
  e->replicated = false;
}

static void add_wrong(struct variants *v, status code, struct entry *e) {
  if (v->last != UNIMPLEMENTED) {
    v->last = code;
    v->last_text = arena_strdup(&v->build->arena, status_text());
  }
  if (!e->flow || e->feeds.count < v->request.feed_count || v->wrong.count == WRONG_MAX)
    return; /* it failed before there was anything to say it of */
  make_failed(v, code, e);
  vec_push(&v->wrong, *e);
}

static status lower_as(struct variants *v, enum lower_mode mode, const bool *ones, uint32_t count, struct lower_notes *notes,
                       struct entry *e) {
  v->tries++;
  return entry_lower(v->build, v->spec, &v->request, mode, ones, count, notes, e);
}

/* How many nodes are left when what nobody needs is gone. */
static uint32_t live_nodes(struct build *b, const struct flow *flow) {
  bool *keep = ARENA_ARRAY(&b->arena, bool, flow->nodes.count + 1);
  uint32_t count = 0;
  flow_mark_live(flow, keep);
  for (flow_id id = 1; id < flow->nodes.count; id++)
    count += keep[id];
  return count;
}

/* What the graph refused once a broadcast had taken sizes for equal, in *e: it may be right where one of them is 1. */
static status add_unassumed(struct variants *v, const bool *ones, uint32_t count, struct entry *e) {
  struct entry other;
  struct lower_notes notes;
  const char *why = arena_strdup(&v->build->arena, status_text());
  if (lower_as(v, LOWER_BROADCASTS, ones, count, &notes, &other) != OK)
    return fail(INVALID_ARGUMENT, "%s", why);
  *e = other;
  vec_push(&v->build->entries, other);
  return OK;
}

/* Lowers with the ranks, sizes and ones as they are set now; an entry for them, where that works. */
static status add_decided(struct variants *v, const bool *ones, uint32_t count, struct entry *e) {
  struct entry more;
  struct lower_notes other;
  status s = lower_as(v, LOWER_FIRST, ones, count, &v->notes, e);
  if (v->notes.wants_feed)
    return fail(UNIMPLEMENTED, "the rank of '%s' is not known", v->request.feed_names[v->notes.wants_feed - 1]);
  if (s == INVALID_ARGUMENT && v->notes.assumed)
    return add_unassumed(v, ones, count, e);
  TRY(s);
  vec_push(&v->build->entries, *e);
  bool small = live_nodes(v->build, e->flow) <= VARIANT_NODES;
  if (v->notes.undecided && lower_as(v, LOWER_MISFITS, ones, count, &other, &more) == OK)
    vec_push(&v->build->entries, more);
  else if (v->notes.assumed && small && lower_as(v, LOWER_BROADCASTS, ones, count, &other, &more) == OK)
    vec_push(&v->build->entries, more);
  return OK;
}

/* The other answers to what was asked after the first `count` questions. */
static void add_answers(struct variants *v, const bool *ones, uint32_t count, uint32_t asked) {
  for (uint32_t i = count; i < asked && v->decided < DECIDED_MAX; i++) {
    struct entry e;
    bool *answers = ARENA_ARRAY(&v->build->arena, bool, i + 1);
    if (count)
      memcpy(answers, ones, count * sizeof *answers);
    answers[i] = true;
    v->decided++;
    status s = add_decided(v, answers, i + 1, &e);
    v->wanted = v->wanted ? v->wanted : v->notes.wants_feed;
    uint32_t here = e.decisions.count;
    if (s != OK)
      add_wrong(v, s, &e);
    add_answers(v, answers, i + 1, here);
  }
}

static status add_one(struct variants *v, struct entry *e) {
  uint32_t before = v->build->entries.count, wrong = v->wrong.count;
  v->decided = v->wanted = 0;
  status s = add_decided(v, NULL, 0, e);
  struct lower_notes notes = v->notes;
  if (e->decisions.count == 0 || notes.wants_feed || (s != OK && notes.wants_fed_size))
    return s;
  char *why = arena_strdup(&v->build->arena, status_text());
  struct entry first = *e;
  add_answers(v, NULL, 0, e->decisions.count);
  v->notes = notes;
  if (v->wanted) { /* all of it again, for each rank of that feed */
    v->build->entries.count = before;
    v->wrong.count = wrong;
    v->notes.wants_feed = v->wanted;
    return fail(UNIMPLEMENTED, "the rank of '%s' is not known", v->request.feed_names[v->wanted - 1]);
  }
  if (s == OK)
    return OK;
  s = fail(s, "%s", why);
  if (v->build->entries.count == before) { /* whatever the sizes are */
    v->wrong.count = wrong;
    e->decisions.count = 0;
    return s;
  }
  add_wrong(v, s, &first);
  return OK;
}

/* ---- ranks and sizes ---- */

static uint32_t unranked_feeds(const struct variants *v) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < v->request.feed_count; i++)
    count += !lower_feed_has_rank(v->request.graph, v->request.feeds[i]);
  return count;
}

/* Ranks that the graph's ops take are likely; of them those that are alike; then a scalar beside them; then, of few feeds, small ones.
 * Sizes that decide a rank are small, too. */
static int combination_cost(const struct variants *v, const struct combination *at) {
  int cost = 0, largest = 0, differ = 0, own = 0;
  const int *ranks = at->ranks;
  for (uint32_t i = 0; i < v->request.feed_count; i++) {
    largest = ranks[i] > largest ? ranks[i] : largest;
    cost += ranks[i] > 4;
    for (uint32_t j = 0; j < i && ranks[i] >= 0; j++) {
      int distance = ranks[j] < 0 || ranks[i] == ranks[j] ? 0 : ranks[i] && ranks[j] ? 2 : 1;
      differ = distance > differ ? distance : differ;
      cost += distance;
    }
  }
  for (uint32_t i = 0; i < v->request.feed_count; i++)
    own += ranks[i] >= 0 && !ranks_have(v->likely[i], ranks[i]) ? UNLIKELY : 0;
  for (uint32_t i = 0; i < at->size_count; i++)
    own += at->sizes[i].size > 3 ? 2 : at->sizes[i].size > 2;
  return own + (unranked_feeds(v) > FEW_FEEDS ? cost : differ < 2 ? 0 : largest <= 3 ? 1 : 2 + largest);
}

static struct combination copy_combination(struct variants *v, const struct combination *from) {
  struct combination next = {.ranks = ARENA_ARRAY(&v->build->arena, int, v->request.feed_count + 1), .size_count = from->size_count};
  next.sizes = ARENA_ARRAY(&v->build->arena, struct feed_size, from->size_count + 1);
  memcpy(next.ranks, from->ranks, v->request.feed_count * sizeof *next.ranks);
  if (from->size_count)
    memcpy(next.sizes, from->sizes, from->size_count * sizeof *next.sizes);
  return next;
}

static void open_combination(struct variants *v, struct combination next) {
  next.cost = combination_cost(v, &next);
  vec_push(&v->open, next);
}

/* The combination with every rank of one more feed. */
static void open_ranks(struct variants *v, const struct combination *from, uint32_t feed) {
  for (int rank = v->rank_first; rank < v->rank_end; rank++) {
    struct combination next = copy_combination(v, from);
    next.ranks[feed] = rank;
    open_combination(v, next);
  }
}

/* The combination with every value of one more size. */
static void open_sizes(struct variants *v, const struct combination *from, struct feed_size size) {
  for (size.size = 0; size.size < SIZES; size.size++) {
    struct combination next = copy_combination(v, from);
    next.sizes[next.size_count++] = size;
    open_combination(v, next);
  }
}

/* The likeliest one, the first of equals. */
static struct combination take_combination(struct variants *v) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < v->open.count; i++)
    if (v->open.items[i].cost < v->open.items[best].cost)
      best = i;
  struct combination taken = v->open.items[best];
  memmove(&v->open.items[best], &v->open.items[best + 1], (--v->open.count - best) * sizeof taken);
  return taken;
}

/* One combination; where it needs the rank or a size of a feed, those with it. */
static void add_combination(struct variants *v, const struct combination *at) {
  struct entry e;
  memcpy(v->ranks, at->ranks, v->request.feed_count * sizeof *v->ranks);
  v->request.feed_sizes = at->sizes;
  v->request.feed_size_count = at->size_count;
  status s = add_one(v, &e);
  v->worked += s == OK;
  if (s == OK)
    return;
  if (v->notes.wants_feed)
    open_ranks(v, at, v->notes.wants_feed - 1);
  else if (s == UNIMPLEMENTED && v->notes.wants_fed_size && at->size_count < SIZES_DEEP)
    open_sizes(v, at, v->notes.wants_size);
  else
    add_wrong(v, s, &e);
}

static void add_all(struct variants *v, int rank_first, int rank_end) {
  uint32_t count = v->request.feed_count;
  bool is_many = unranked_feeds(v) > FEW_FEEDS;
  uint32_t most = is_many ? MANY_MAX : FEW_MAX;
  struct combination none = {.ranks = ARENA_ARRAY(&v->build->arena, int, count + 1)};
  for (uint32_t i = 0; i < count; i++)
    none.ranks[i] = -1;
  vec_push(&v->open, none);
  v->rank_first = rank_first;
  v->rank_end = rank_end;
  while (v->open.count && v->worked < most && v->tries < TRIES_MAX) {
    struct combination next = take_combination(v);
    if (is_many && v->worked && next.cost >= 2 * UNLIKELY) /* what one of them is refused for is said already */
      return;
    add_combination(v, &next);
  }
}

/* With more dimensions than are likely. Where none works either, what is wrong with likely ones is what is said. */
static void add_large(struct variants *v) {
  const char *why = v->last_text;
  add_all(v, RANKS, LIMIT_RANK + 1);
  v->last = INVALID_ARGUMENT;
  v->last_text = why;
}

/* What the ops say of the feeds, before any is tried. */
static status find_likely(struct variants *v) {
  struct arena *arena = &v->build->arena;
  const struct graph *g = v->request.graph;
  v->likely = ARENA_ARRAY(arena, rank_set, v->request.feed_count + 1);
  if (!unranked_feeds(v))
    return OK; /* nobody asks */
  bool *needed = ARENA_ARRAY(arena, bool, g->nodes.count + 1);
  TRY(lower_mark_needed(&v->request, needed));
  return feed_ranks(g, needed, v->request.feeds, v->request.feed_count, arena, v->likely);
}

status entry_lower_variants(struct build *b, const struct entry_spec *spec) {
  struct variants v = {.build = b, .spec = spec};
  TRY(entry_request(b, spec, &v.request));
  v.request.feed_ranks = v.ranks = ARENA_ARRAY(&b->arena, int, v.request.feed_count + 1);
  uint32_t first = b->entries.count;
  TRY(find_likely(&v));
  add_all(&v, 0, RANKS);
  if (b->entries.count == first && v.last == INVALID_ARGUMENT && unranked_feeds(&v) == 1)
    add_large(&v);
  vec_free(&v.open);
  if (b->entries.count == first) { /* wrong for every combination */
    vec_free(&v.wrong);
    return v.last != OK
           ? fail(v.last, "%s", v.last_text)
           : fail(UNIMPLEMENTED, "entry '%s': %u fed placeholders without a rank: give them shapes", spec->name, unranked_feeds(&v));
  }
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
