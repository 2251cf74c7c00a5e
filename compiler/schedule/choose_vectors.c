/* choose_vectors.c: how plain loops run, those that no step has marked: which of them become vectors, and which run together with it.
 *
 * A par nest at the top is a chain of loops (ir/kernel/kernel_nests.h) that is dealt to threads in ranges: of its groups the one is taken
 * whose lanes make the nest cheapest, and goes innermost. Where its vectors sum up (contractions, windows), pick elements that lie side by
 * side along another loop (transpositions), or repeat what takes long for each turn of another loop (a channel's deviation, for each
 * pixel), iterations of that other one run together, so that what they load alike is loaded once, and worked out once.
 * Elsewhere each loop is taken that is cheaper as vectors (ir/schedule/vectors.h), the outermost first. */
#include "compiler/schedule/choose.h"

#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel_nests.h"
#include "ir/schedule/vectors.h"

#define SHORT_VECTORS 4 /* of a row; its rest weighs */
#define MAP_TURNS_MIN 4 /* that run together, where nothing is summed up */
#define GUESS_SHARE 0.3 /* of what iterations cost one by one */
#define GUESS_COST 2
#define GUESS_COST_APART 6 /* of lanes with addresses of their own: images of a batch, of which there may be four */
#define WRITTEN_MOST 64    /* operations of a loop among lanes whose turns are written one after the other */

struct chooser {
  struct kernel *k;
  struct kernel_uses uses;
  const struct machine *machine;
  struct vector_costs costs;
  struct kernel_nest nests[NESTS_MAX];
  int nest_count;
  int fused; /* sums of products */
};

/* ---- sums of products ---- */

/* What waits in a local; an element of an update in place rounds as it stands. */
static int fuse_sums(struct kernel *k, struct stmt *s, const struct stmt *end) {
  int found = 0;
  for (; s != end; s = s->next)
    found += (s->kind == STMT_SET && stmt_fuse_product(k, s)) + fuse_sums(k, s->body, NULL) + fuse_sums(k, s->otherwise, NULL);
  return found;
}

/* ---- loops that are written out ---- */

/* Operations of a block with all turns of its loops; more than any limit where their number is not known. */
static double operations_of(struct chooser *c, const struct stmt *s) {
  double sum = 0;
  int64_t turns;
  for (; s; s = s->next) {
    bool is_known = s->kind != STMT_WHILE && (s->kind != STMT_FOR || expr_is_const(c->k, s->value, &turns));
    double inside = operations_of(c, s->body) + operations_of(c, s->otherwise);
    sum += !is_known ? WRITTEN_MOST + 1 : s->kind == STMT_FOR ? (double)turns * inside : 1 + stmt_operations(&c->costs, s) + inside;
  }
  return sum;
}
/* Short loops that all lanes run alike, as over a pool's window: written out, their indices and tests are constants. */
static void write_out(struct chooser *c, struct stmt *s) {
  int64_t turns;
  for (; s; s = s->next) {
    if (s->kind == STMT_FOR && expr_is_const(c->k, s->value, &turns) && turns <= UNROLL_MAX &&
        (double)turns * operations_of(c, s->body) <= WRITTEN_MOST)
      s->run = RUN_UNROLL;
    write_out(c, s->body);
    write_out(c, s->otherwise);
  }
}
static void mark_vectors(struct chooser *c, struct stmt *loop, uint32_t lanes) {
  loop->run = RUN_VECTORS;
  loop->width = (int32_t)lanes;
  write_out(c, loop->body);
}

/* ---- loops by themselves ---- */

static struct stmt *only_red_inside(const struct stmt *s) {
  struct stmt *inner = s->body;
  return s->loop == LOOP_RED && inner && !inner->next && inner->kind == STMT_FOR && inner->loop == LOOP_RED ? inner : NULL;
}
/* Lanes of an open number of turns, each with addresses of its own, must gain more than a little: there may be few. */
static bool may_be_few(const struct chooser *c, const struct stmt *loop, const struct vector_plan *plan) {
  return (plan->gathers || plan->scatters) && !expr_is_const(c->k, loop->value, NULL) && loop_trips(c->k, loop->value) >= TRIPS_OPEN &&
         plan->share * GUESS_COST_APART > 1;
}
/* The loop itself, or one of those that it sums up over with nothing between them, marked. */
static bool take_vectors(struct chooser *c, struct stmt *loop) {
  struct vector_plan plan;
  while (loop && (!loop_is_vectors(&c->costs, loop, &plan) || may_be_few(c, loop, &plan)))
    loop = only_red_inside(loop);
  if (loop)
    mark_vectors(c, loop, plan.lanes);
  return loop != NULL;
}
static void choose_in(struct chooser *c, struct stmt *s, const struct stmt *end) {
  for (; s != end; s = s->next) {
    if (s->kind == STMT_FOR && take_vectors(c, s))
      continue;
    choose_in(c, s->body, NULL);
    choose_in(c, s->otherwise, NULL);
  }
}

/* ---- chains ---- */

static uint32_t local_of(const struct chain *chain, int group) { return group_loop(chain, group)->local; }
static double trips_of(const struct chooser *c, const struct chain *chain, int group) { return group_trips(c->k, chain, group); }

/* Writes the groups' loops in this order. */
static void order_groups(struct chain *chain, const int *order) {
  struct stmt headers[CHAIN_MAX];
  struct chain_group groups[CHAIN_MAX];
  int count = 0;
  for (int g = 0; g < chain->group_count; g++) {
    struct chain_group from = chain->groups[order[g]];
    groups[g].first = count;
    for (int i = from.first; i <= from.last; i++)
      headers[count++] = *chain->loops[i];
    groups[g].last = count - 1;
  }
  for (int i = 0; i < count; i++) {
    chain->loops[i]->local = headers[i].local;
    chain->loops[i]->value = headers[i].value;
  }
  memcpy(chain->groups, groups, sizeof groups);
}
static void move_group(struct chain *chain, int from, int to) {
  int order[CHAIN_MAX];
  for (int i = 0; i < chain->group_count; i++)
    order[i] = i == to ? from : i < from ? i : i < to ? i + 1 : i;
  order_groups(chain, order);
}

/* Loads of a loop's iterations. */
struct sharing {
  const struct chooser *c;
  uint32_t lane, other;
  bool *seen;         /* by expression */
  int shared, single; /* that they share; those of one element for all lanes, of each turn another one */
};
static void count_loads(struct sharing *s, expr_id e) {
  const struct kernel *k = s->c->k;
  const struct expr *x = expr_get(k, e);
  if (e == NO_EXPR || s->seen[e])
    return;
  s->seen[e] = true;
  bool moves = uses_local(&s->c->uses, e, s->lane), differs = uses_local(&s->c->uses, e, s->other);
  s->shared += x->op == SCALAR_LOAD && moves && !differs;
  s->single += x->op == SCALAR_LOAD && !moves && differs;
  for (int i = 0; i < x->count; i++)
    count_loads(s, expr_operand(k, e, i));
}
static void count_in(struct sharing *s, const struct stmt *t, bool inside_red) {
  for (; t; t = t->next) {
    if (inside_red)
      count_loads(s, t->value);
    count_in(s, t->body, inside_red || (t->kind == STMT_FOR && t->loop == LOOP_RED));
  }
}
/* Of sums over which a group's iterations run together with the vectors of another one. */
static struct sharing count_shared(const struct chooser *c, const struct chain *chain, int lanes, int group) {
  struct sharing s = {.c = c, .lane = local_of(chain, lanes), .other = local_of(chain, group)};
  s.seen = calloc(c->k->exprs.count + 1, sizeof *s.seen);
  count_in(&s, chain->inside, false);
  free(s.seen);
  return s;
}
/* As many as registers last for; of a known number a divisor. */
static uint32_t rows_together(const struct chooser *c, const struct chain *chain, int group) {
  uint32_t most = c->machine->vector_bytes == 64 ? 8 : 6;
  double trips = trips_of(c, chain, group);
  for (int i = chain->groups[group].first; i <= chain->groups[group].last; i++)
    if (!expr_is_const(c->k, chain->loops[i]->value, NULL))
      return most;
  if (trips <= most)
    return (uint32_t)trips;
  for (uint32_t n = most; n >= 4; n--)
    if ((uint64_t)trips % n == 0)
      return n;
  return most;
}
/* Operations of an iteration. An open number of them is a guess, often many times too high: vectors whose lanes are loaded one by one,
 * which gain little in any case, then count as more than they are said to cost; those that store apart do, whatever they gain. */
static double lanes_cost(const struct chooser *c, const struct chain *chain, int group, const struct vector_plan *plan) {
  bool is_known = true;
  for (int i = chain->groups[group].first; i <= chain->groups[group].last; i++)
    is_known = is_known && expr_is_const(c->k, chain->loops[i]->value, NULL);
  double guess = is_known ? 1 : plan->scatters ? GUESS_COST_APART : plan->share <= GUESS_SHARE ? 1 : GUESS_COST;
  return plan->cost / trips_of(c, chain, group) * guess;
}
/* What iterations of another group that will run together with a sum's vectors load alike is loaded once for them. */
static void share_cost(struct chooser *c, const struct chain *chain, int lanes, struct vector_plan *plan) {
  for (int i = chain->group_count - 1; i >= 0 && plan->has_red; i--) {
    struct vector_plan shared;
    uint32_t other = local_of(chain, i);
    if (i == lanes || trips_of(c, chain, i) < 2 || turns_part_ways(&c->uses, chain->inside, other) ||
        !count_shared(c, chain, lanes, i).shared)
      continue;
    c->costs.together.local = other;
    c->costs.together.count = rows_together(c, chain, i);
    vector_plan_make(&c->costs, local_of(chain, lanes), true, trips_of(c, chain, lanes), chain->inside, plan->lanes, &shared);
    c->costs.together.count = 0;
    plan->cost = shared.cost;
    return;
  }
}
/* The group that makes the best vectors goes innermost; false: none does. */
static bool take_lanes(struct chooser *c, struct chain *chain, struct vector_plan *out) {
  double all = 1, best;
  int chosen = -1;
  for (int i = 0; i < chain->group_count; i++)
    all *= trips_of(c, chain, i);
  best = all * block_operations(&c->costs, chain->inside);
  for (int i = chain->group_count - 1; i >= 0; i--) {
    struct vector_plan plan;
    if (!vector_plan_make(&c->costs, local_of(chain, i), true, trips_of(c, chain, i), chain->inside, 0, &plan))
      continue;
    share_cost(c, chain, i, &plan);
    if (all * lanes_cost(c, chain, i, &plan) < best) {
      best = all * lanes_cost(c, chain, i, &plan);
      chosen = i;
      *out = plan;
    }
  }
  if (chosen >= 0)
    move_group(chain, chosen, chain->group_count - 1);
  return chosen >= 0;
}

/* ---- iterations that run together ---- */

/* A transposition: lanes are gathered along a loop whose neighbours lie side by side in another: run together, they use up
 * the cache lines that the gathers fetch. */
static bool transposes(const struct chooser *c, uint32_t lane, uint32_t other) {
  const struct kernel *k = c->k;
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *x = expr_get(k, e);
    int64_t step;
    if (x->op != SCALAR_LOAD || x->count < 2)
      continue;
    expr_id last = expr_operand(k, e, x->count - 1);
    if (index_coefficient(&c->uses, last, other, &step) && step == 1 && uses_local(&c->uses, e, lane) && !uses_local(&c->uses, last, lane))
      return true;
  }
  return false;
}

static void mark_together(struct chain *chain, int group, uint32_t count) {
  move_group(chain, group, chain->group_count - 2);
  struct stmt *loop = group_loop(chain, chain->group_count - 2);
  loop->run = RUN_TOGETHER;
  loop->width = (int32_t)count;
}
/* At most so many vectors of each of several turns. */
static void limit_lanes(const struct chooser *c, const struct chain *chain, struct vector_plan *plan, uint32_t vectors) {
  uint32_t most = vectors * plan->native;
  plan->lanes = lanes_that_fit(plan->lanes < most ? plan->lanes : most, plan->native, trips_of(c, chain, chain->group_count - 1));
}
/* As many as leave the turns' sums in registers: what is read once more for each part of the columns comes from afar. is_product: elements
 * are loaded for all lanes, and that is less the more there are. */
static void widen_lanes(const struct chooser *c, const struct chain *chain, struct vector_plan *plan, uint32_t turns, bool is_product) {
  double trips = trips_of(c, chain, chain->group_count - 1);
  if (plan->lanes < plan->native)
    return; /* they are all */
  plan->lanes = plan->native;
  while (plan->lanes < trips && 2 * plan->lanes / plan->native * turns <= c->machine->registers / 4 * 3)
    plan->lanes *= 2;
  if (!is_product)
    plan->lanes = lanes_that_fit(plan->lanes, plan->native, trips);
}

/* What takes long, differs from lane to lane and is the same for all turns of a loop: a channel's deviation, of all pixels. */
static bool shares_effort(const struct chooser *c, expr_id e, uint32_t lane, uint32_t other, bool *seen) {
  const struct kernel *k = c->k;
  const struct expr *x = expr_get(k, e);
  if (e == NO_EXPR || seen[e] || !uses_local(&c->uses, e, lane))
    return false;
  seen[e] = true;
  if (op_effort((enum scalar_op)x->op) >= EFFORT_DIVIDE && !uses_local(&c->uses, e, other))
    return true;
  for (int i = 0; i < x->count; i++)
    if (shares_effort(c, expr_operand(k, e, i), lane, other, seen))
      return true;
  return false;
}
static bool block_shares_effort(const struct chooser *c, const struct stmt *s, uint32_t lane, uint32_t other) {
  for (; s; s = s->next) {
    bool *seen = calloc(c->k->exprs.count + 1, sizeof *seen);
    bool shares = shares_effort(c, s->value, lane, other, seen);
    free(seen);
    if (shares || block_shares_effort(c, s->body, lane, other))
      return true;
  }
  return false;
}
/* Whether most of a row's code would be for what whole vectors leave. */
static bool is_ragged(const struct chooser *c, const struct chain *chain, const struct vector_plan *plan) {
  int64_t trips = 1, n;
  for (int i = chain->groups[chain->group_count - 1].first; i < chain->count; i++) {
    if (!expr_is_const(c->k, chain->loops[i]->value, &n))
      return false;
    trips *= n;
  }
  return trips % plan->lanes && trips < SHORT_VECTORS * plan->lanes;
}
/* Which iterations run together, of the groups from the innermost on whose turns may: false, these do not. */
typedef bool share_with(struct chooser *c, struct chain *chain, int group, struct vector_plan *plan);

static bool share_factor(struct chooser *c, struct chain *chain, int group, struct vector_plan *plan) {
  struct sharing s = count_shared(c, chain, chain->group_count - 1, group);
  if (!s.shared)
    return false;
  uint32_t turns = rows_together(c, chain, group);
  widen_lanes(c, chain, plan, turns, s.single > 0);
  mark_together(chain, group, turns);
  return true;
}
static bool share_lines(struct chooser *c, struct chain *chain, int group, struct vector_plan *plan) {
  double trips = trips_of(c, chain, group);
  if (trips < MAP_TURNS_MIN || !transposes(c, local_of(chain, chain->group_count - 1), local_of(chain, group)))
    return false;
  limit_lanes(c, chain, plan, 1);
  mark_together(chain, group, trips < TOGETHER_MAX ? (uint32_t)trips : TOGETHER_MAX);
  return true;
}
static bool share_values(struct chooser *c, struct chain *chain, int group, struct vector_plan *plan) {
  uint32_t lane = local_of(chain, chain->group_count - 1), other = local_of(chain, group);
  if (trips_of(c, chain, group) < MAP_TURNS_MIN || !(is_ragged(c, chain, plan) || block_shares_effort(c, chain->inside, lane, other)))
    return false;
  limit_lanes(c, chain, plan, 2);
  mark_together(chain, group, rows_together(c, chain, group));
  return true;
}
static bool take_together(struct chooser *c, struct chain *chain, share_with *share, struct vector_plan *plan) {
  for (int i = chain->group_count - 2; i >= 0; i--)
    if (trips_of(c, chain, i) >= 2 && !turns_part_ways(&c->uses, chain->inside, local_of(chain, i)) && share(c, chain, i, plan))
      return true;
  return false;
}

static void choose_chain(struct chooser *c, struct chain *chain) {
  struct vector_plan plan;
  if (!take_lanes(c, chain, &plan)) {
    choose_in(c, chain->inside, NULL);
    return;
  }
  int before = chain->group_count;
  chain_group(&c->uses, chain); /* neighbours that were none before may run as one */
  int last = chain->group_count - 1;
  if (chain->group_count < before)
    vector_plan_make(&c->costs, local_of(chain, last), true, trips_of(c, chain, last), chain->inside, 0, &plan);
  if (plan.has_red)
    take_together(c, chain, share_factor, &plan);
  else if (!take_together(c, chain, share_lines, &plan))
    take_together(c, chain, share_values, &plan);
  mark_vectors(c, chain->loops[chain->count - 1], plan.lanes);
}

/* ---- a kernel ---- */

static void fuse_nest(struct chooser *c, struct stmt *s) {
  if (c->machine->has_fma && !stmt_is_marked(s))
    c->fused += fuse_sums(c->k, s, s->next);
}
static void choose_nest(struct chooser *c, struct stmt *s) {
  int i = 0;
  if (stmt_is_marked(s))
    return; /* whoever did it has said all */
  while (i < c->nest_count && c->nests[i].body != s)
    i++;
  if (i < c->nest_count)
    choose_chain(c, &c->nests[i].chain);
  else
    choose_in(c, s, s->next);
}

/* What one task runs. */
static struct stmt *task_body(struct stmt *s) {
  while (s && s->kind == STMT_FOR && s->run == RUN_TASKS && !s->next)
    s = s->body;
  return s;
}
/* What no step has marked: statements at the top, under `if`s there, and nests that were joined. */
static void each_plain(struct chooser *c, struct stmt *s, void (*act)(struct chooser *c, struct stmt *s)) {
  for (; s; s = s->next) {
    if (!stmt_is_scheduled(s)) {
      if (s->kind != STMT_IF)
        act(c, s);
    } else if (s->kind == STMT_FOR && s->run == RUN_TASKS && block_joins_nests(task_body(s->body))) {
      each_plain(c, task_body(s->body), act);
    }
    if (s->kind == STMT_IF) {
      each_plain(c, s->body, act);
      each_plain(c, s->otherwise, act);
    }
  }
}

struct kernel *vectors_choose(const struct kernel *k, const struct machine *machine, struct arena *arena) {
  struct chooser c = {.machine = machine, .k = schedule_copy(k, arena)};
  struct arena work;
  if (block_trips(k, k->body) > TRIPS_MAX)
    return c.k;
  arena_init(&work);
  each_plain(&c, c.k->body, fuse_nest);
  if (c.fused) { /* costs count expressions: without the products that nobody uses any more */
    struct kernel *fused = c.k;
    c.k = schedule_copy(fused, arena);
    kernel_free(fused);
  }
  kernel_uses_find(c.k, &work, &c.uses);
  vector_costs_create(&c.uses, machine, &work, &c.costs);
  c.nest_count = kernel_nests(&c.uses, c.nests);
  each_plain(&c, c.k->body, choose_nest);
  arena_deinit(&work);
  return c.k;
}
