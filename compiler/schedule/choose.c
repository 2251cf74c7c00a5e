/* choose.c: the cheapest candidate of each nest of a kernel; see choose.h. */
#include "compiler/schedule/choose.h"

#include <string.h>

#include "compiler/schedule/tune.h"
#include "ir/schedule/vectors.h"

/* Whether a factor has results of its own: a product, no sum of products beside each other or of what one number scales. */
static bool has_matrix(const struct contraction *c) {
  if (!expr_has_load(c->k, c->factor[0]) || !expr_has_load(c->k, c->factor[1]))
    return false;
  for (int i = 0; i < c->par_count; i++)
    if (c->axes[i].role == ROLE_M || c->axes[i].role == ROLE_N)
      return true;
  return false;
}

bool stores_sum(const struct contraction *c) {
  const struct stmt *s = c->sum->next;
  const struct expr *value = s && s->kind == STMT_STORE && !s->next ? expr_get(c->k, s->value) : NULL;
  return value && value->op == SCALAR_LOCAL && (uint32_t)value->imm == c->local && c->k->buffers.items[s->buffer].mode == BUFFER_OUT &&
         c->k->buffers.items[s->buffer].dtype == c->dtype;
}
bool is_group(const struct contraction *c, int axis) {
  const struct contraction_axis *a = &c->axes[axis];
  return axis != c->lanes && a->role == ROLE_BATCH && a->stride[0] > 0 && a->stride[1] > 0; /* STRIDE_OPEN is less */
}
bool has_groups(const struct contraction *c) {
  for (int i = 0; i < c->par_count; i++)
    if (is_group(c, i))
      return true;
  return false;
}
bool is_computed(const struct contraction *c) {
  bool any = false;
  for (int i = 0; i < FACTORS; i++)
    any = any || (c->load[i] != NO_EXPR && c->guard[i] == NO_EXPR && c->factor[i] != c->load[i]);
  return any;
}
expr_id narrow_factor(const struct contraction *c, int factor) {
  const struct expr *x = expr_get(c->k, c->factor[factor]);
  expr_id from = x->op == SCALAR_CAST ? expr_operand(c->k, c->factor[factor], 0) : NO_EXPR;
  return from != NO_EXPR && expr_get(c->k, from)->dtype == DTYPE_BFLOAT16 ? from : NO_EXPR;
}
bool is_computed_narrow(const struct contraction *c, int factor) { return narrow_factor(c, factor) != c->load[factor]; }
const char *narrow_text(const struct contraction *c, int factor) { return is_computed_narrow(c, factor) ? " computed bf16" : ""; }
bool may_have_pairs(const struct nest *n, const struct contraction *c) {
  return n->machine->pair_rate > 0 && !n->machine->is_strict && c->dtype == DTYPE_FLOAT && narrow_factor(c, 0) != NO_EXPR &&
         narrow_factor(c, 1) != NO_EXPR;
}
bool may_be_paired(const struct nest *n, const struct contraction *c) {
  int64_t terms = c->axes[c->axis_count - 1].extent;
  return may_have_pairs(n, c) && terms > 0 && terms % PAIR_TERMS == 0;
}
bool find_product(const struct nest *n, const struct contraction *c, int *rows, int *columns, struct product_work *work) {
  double bytes = (double)dtype_size(c->dtype);
  *work = (struct product_work){.batch = 1, .bytes = bytes, .lanes = (double)n->machine->vector_bytes / bytes};
  *rows = *columns = -1;
  for (int i = 0; i < c->axis_count; i++) {
    const struct contraction_axis *a = &c->axes[i];
    int *found = a->role == ROLE_M ? rows : columns;
    bool is_sum = i >= c->par_count, is_turn = a->role == ROLE_BATCH;
    if (a->extent < 1 || a->role == ROLE_WINDOW || (!is_sum && !is_turn && *found >= 0))
      return false;
    if (is_turn && !is_sum)
      work->batch *= (double)a->extent;
    else if (!is_sum)
      *found = i;
  }
  if (c->axis_count != c->par_count + 1 || *rows < 0 || *columns < 0)
    return false;
  work->m = (double)c->axes[*rows].extent;
  work->width = (double)c->axes[*columns].extent;
  work->k = (double)c->axes[c->par_count].extent;
  return true;
}
double axis_turns(const struct contraction_axis *a) { return a->most >= 0 ? (double)a->most : a->role == ROLE_M ? ROWS_USUAL : 1; }
double axis_terms(const struct contraction *c, int axis) {
  const struct contraction_axis *a = &c->axes[axis];
  return a->most >= 0 ? (double)a->most : axis < c->axis_count - 1 ? ROWS_USUAL : TERMS_USUAL;
}
int64_t lanes_for(const struct nest *n, enum dtype dtype, int64_t width) {
  int64_t lanes = n->machine->vector_bytes / (int64_t)dtype_size(dtype);
  while (lanes > 4 && width < lanes)
    lanes /= 2;
  return lanes;
}
/* Loops that nests share are turns, whatever the factors make of them. */
static void take_turns(const struct nest *n, struct contraction *c) {
  for (int i = 0; i < n->shared && i < c->par_count; i++)
    c->axes[i].role = ROLE_BATCH;
}
/* Of plain loops over a product; generators of other classes know better. What is open is taken for what generators take it for. */
static double plain_cycles(const struct nest *n, const struct contraction *c) {
  const struct contraction_axis *sum = &c->axes[c->axis_count - 1];
  double bytes = (double)dtype_size(c->dtype), of[2] = {1, 1}; /* rows, columns */
  struct product_work w = {.batch = 1, .k = 1, .bytes = bytes, .lanes = (double)n->machine->vector_bytes / bytes};
  for (int i = c->par_count; i < c->axis_count; i++)
    w.k *= axis_terms(c, i);
  for (int i = 0; i < c->par_count; i++) {
    static const double usual[] = {ROWS_USUAL, COLUMNS_USUAL};
    const struct contraction_axis *a = &c->axes[i];
    int kind = a->role == ROLE_N ? 1 : a->role == ROLE_M ? 0 : -1;
    double extent = (double)(a->extent >= 0 ? a->extent : a->most >= 0 ? a->most : 1);
    *(kind < 0 ? &w.batch : &of[kind]) *= a->extent < 0 && a->most < 0 && kind >= 0 ? usual[kind] : extent;
    w.is_open = w.is_open || (kind == 0 && a->extent < 0);
  }
  w.m = of[0];
  w.width = of[1];
  w.is_transposed = sum->stride[0] != 1;
  w.is_along = sum->stride[1] == 1;
  w.is_computed = is_computed(c);
  w.stride = (sum->stride[1] < 0 ? w.width : (double)sum->stride[1]) * bytes;
  return product_plain_cycles(n->machine, &w);
}
/* By the class of the contraction. */
static void propose_for_class(const struct nest *n, const struct contraction *c, struct candidates *out) {
  propose_convs(n, c, out);
  propose_taps(n, c, out);
  if (c->test)
    return;
  propose_products(n, c, out);
  propose_streams(n, c, out);
  propose_filters(n, c, out);
  propose_turned(n, c, out);
  propose_crossed(n, c, out);
  propose_product_blocks(n, c, out);
}
void nest_candidates(const struct nest *n, struct candidates *out) {
  struct contraction c;
  vec_push(&out->items, (struct candidate){0});
  if (block_trips(n->k, n->k->body) > TRIPS_MAX)
    return;
  bool found = contraction_find(n->uses, n->top, &c), is_product = found && has_matrix(&c);
  if (is_product && n->shared)
    take_turns(n, &c);
  if (is_product)
    out->items.items[0].cycles = plain_cycles(n, &c);
  if (n->shared) {
    if (is_product) {
      propose_products(n, &c, out);
      propose_product_blocks(n, &c, out);
    }
    return;
  }
  if (!n->machine->is_strict && !is_product)
    propose_parts(n, out);
  if (!found)
    propose_squares(n, out);
  if (found && !propose_panels(n, &c, out))
    propose_for_class(n, &c, out);
  if (!is_product && out->items.count == 1)
    propose_ranges(n, out);
  for (uint32_t i = 1; i < out->items.count; i++)
    out->items.items[i].cycles *= GAIN_MIN;
}

int stmt_loops(const struct stmt *s) {
  int count = s->kind == STMT_FOR;
  for (const struct stmt *t = s->body; t; t = t->next)
    count += stmt_loops(t);
  for (const struct stmt *t = s->otherwise; t; t = t->next)
    count += stmt_loops(t);
  return count;
}

/* Whether products round by themselves, and sums keep their order and all terms. */
static bool keeps_values(const struct schedule *s) {
  for (uint32_t i = 0; i < s->variants.count; i++)
    for (uint32_t j = 0; j < s->variants.items[i].steps.count; j++) {
      const struct step *step = &s->variants.items[i].steps.items[j];
      if (step->op == STEP_FMA || step->op == STEP_PART || step->op == STEP_PAIR || step->regroup || (step->op == STEP_CUT && !step->n[0]))
        return false;
    }
  return true;
}
/* What a kernel's form does not allow the steps themselves refuse: generators look at sizes and roles alone. */
bool nest_allows(const struct nest *n, const char *steps) {
  struct schedule s = {0};
  struct kernel *out;
  bool may = schedule_parse(steps, n->arena, &s) == OK && (!n->machine->is_strict || keeps_values(&s));
  if (!may || schedule_apply(n->k, &s, n->arena, &out) != OK)
    return false;
  kernel_free(out);
  return true;
}
const char *candidate_text(const struct candidate *c, struct arena *arena) {
  return c->below ? arena_printf(arena, "when n%u < %lld: %s else:", c->size, (long long)c->below, c->steps) : c->steps;
}
/* Of those for all sizes; 0: plain loops. */
static uint32_t cheapest(const struct nest *n, const struct candidates *all) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < all->items.count; i++) {
    const struct candidate *c = &all->items.items[i];
    bool is_first = best == 0 && n->shared; /* nests that share loops stay plain only if there is no other way */
    if (!c->below && (is_first || c->cycles < all->items.items[best].cycles) && nest_allows(n, candidate_text(c, n->arena)))
      best = i;
  }
  return best;
}
/* Of those for calls in which this size is small; 0: there is none. */
static uint32_t cheapest_below(const struct nest *n, const struct candidates *all, uint32_t size) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < all->items.count; i++) {
    const struct candidate *c = &all->items.items[i];
    bool is_less = best == 0 || c->less < all->items.items[best].less;
    if (c->below && c->size == size && is_less && nest_allows(n, candidate_text(c, n->arena)))
      best = i;
  }
  return best;
}
uint32_t candidates_cheapest(const struct nest *n, const struct candidates *all) {
  uint32_t best = cheapest(n, all);
  for (uint32_t size = 0; size < n->k->size_count; size++) {
    uint32_t few = cheapest_below(n, all, size);
    best = few && all->items.items[few].cycles < all->items.items[best].cycles ? few : best;
  }
  return best;
}

/* Whether what is for few is worth code of its own beside what is for many. */
static bool is_worth(const struct candidate *few, const struct candidate *many) {
  bool is_same = strcmp(few->steps, many->steps ? many->steps : "") == 0; /* both may be plain loops */
  return !is_same && (many->less == 0 || few->less * GAIN_MIN < many->less);
}
/* "when n0 < 33: ... else:" for each size whose few turns have steps of their own; NULL: none has. */
static const char *few_text(const struct nest *n, const struct candidates *all, const struct candidate *many) {
  const char *text = NULL;
  for (uint32_t size = 0; size < n->k->size_count; size++) {
    uint32_t best = cheapest_below(n, all, size);
    if (!best || !is_worth(&all->items.items[best], many))
      continue;
    text = arena_printf(n->arena, "%s%s%s", text ? text : "", text ? " " : "", candidate_text(&all->items.items[best], n->arena));
  }
  return text;
}
/* few: for calls in which a size is small, as few_text has it. */
static status pick(const struct nest *n, struct tuner *tuner, struct candidate *out, const char **few) {
  struct candidates all = {0};
  uint32_t best;
  bool is_measured = false;
  nest_candidates(n, &all);
  status result = tuner ? tuner_pick(tuner, n, &all, &is_measured, &best) : OK;
  if (!is_measured)
    best = cheapest(n, &all);
  *out = all.items.items[best];
  *few = is_measured ? NULL : few_text(n, &all, out);
  vec_free(&all.items);
  return result;
}

struct nest nest_first(const struct kernel *k, struct kernel_uses *uses, const struct machine *machine, struct arena *arena) {
  kernel_uses_find(k, arena, uses);
  return (struct nest){.k = k, .uses = uses, .machine = machine, .arena = arena, .top = k->body};
}
void nest_next(struct nest *n) {
  n->first_loop += stmt_loops(n->top);
  n->top = n->top->next;
  n->number++;
}

/* ---- nests that share loops ---- */

/* Constant outermost par loops, one the only statement of another, that all nests have alike; the first may be of a size. */
static int common_loops(const struct kernel *k) {
  int common = STEP_LOOPS;
  for (const struct stmt *top = k->body; top; top = top->next) {
    int count = 0;
    for (const struct stmt *s = top, *t = k->body; s && t && count < common; s = s->body, t = t->body, count++)
      if (s->kind != STMT_FOR || s->loop != LOOP_PAR || (count && s->next) || s->value != t->value ||
          !(expr_is_const(k, s->value, NULL) || (!count && expr_get(k, s->value)->op == SCALAR_SIZE)))
        break;
    common = count;
  }
  return common;
}
static bool hands_scratch_on(const struct kernel *k) {
  for (uint32_t i = 0; i < k->buffers.count; i++)
    if (k->buffers.items[i].mode == BUFFER_SCRATCH)
      return true;
  return false;
}
/* Whether the second cache holds what turns that follow each other read again: the second factor. */
static bool keeps_factor(const struct nest *n, const struct contraction *c) {
  double bytes = (double)dtype_size(c->dtype);
  for (int i = n->shared; i < c->axis_count; i++)
    bytes *= c->axes[i].in[1] ? (double)c->axes[i].extent : 1;
  return bytes <= (double)n->machine->bytes[LEVEL_L2];
}
/* Steps of the cheapest candidate of each product, in *text; false: one has none. */
static bool choose_shared(struct nest n, const char **text) {
  bool any = false;
  *text = "";
  for (; n.top; nest_next(&n)) {
    struct candidates all = {0};
    nest_candidates(&n, &all);
    uint32_t best = cheapest(&n, &all);
    if (best)
      *text = arena_printf(n.arena, "%s%s; ", *text, all.items.items[best].steps);
    struct contraction c;
    bool is_product = contraction_find(n.uses, n.top, &c) && has_matrix(&c);
    any = any || is_product;
    vec_free(&all.items);
    if (is_product && (!best || !keeps_factor(&n, &c)))
      return false;
  }
  return any;
}
/* The innermost of the loops that nests have alike is rows of a turn, which products keep to themselves. NULL: they share none. */
static const char *joined_steps(const struct kernel *k, const struct machine *machine, struct arena *arena, int *shared) {
  struct kernel_uses uses;
  struct nest n = nest_first(k, &uses, machine, arena);
  const char *text;
  if (!k->body || !k->body->next || !hands_scratch_on(k))
    return NULL;
  n.shared = common_loops(k) - 1;
  if (n.shared < 1 || !choose_shared(n, &text))
    return NULL;
  *shared = n.shared;
  text = arena_printf(arena, "%sjoin %d", text, n.shared);
  return nest_allows(&n, text) ? text : NULL;
}
int schedule_shared_loops(const struct kernel *k, const struct machine *machine, struct arena *arena) {
  int shared;
  return joined_steps(k, machine, arena, &shared) ? shared : 0;
}

#define ROW_LOOPS 2   /* of a turn: places and channels */
#define TURNS_LEAST 8 /* which threads share */
/* Whether those whose number is known are as many. */
static bool has_turns(const struct kernel *k, int shared) {
  int64_t turns = 1, each;
  for (const struct stmt *s = k->body; shared > 0 && turns < TURNS_LEAST; s = s->body, shared--)
    if (expr_is_const(k, s->value, &each))
      turns *= each < TURNS_LEAST ? each : TURNS_LEAST;
  return turns >= TURNS_LEAST;
}
/* Whether all that a block stores goes to one buffer: *buffer, if that is known. */
static bool stores_to(const struct stmt *s, uint32_t *buffer, bool *known) {
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE && *known && s->buffer != *buffer)
      return false;
    if (s->kind == STMT_STORE) {
      *buffer = s->buffer;
      *known = true;
    }
    if (!stores_to(s->body, buffer, known) || !stores_to(s->otherwise, buffer, known))
      return false;
  }
  return true;
}
/* Of plain nests that store the phases of one result: they share the loops around their rows, as all read the same rows of what is strided.
 * NULL: they are none. */
static const char *phases_steps(const struct kernel *k, const struct machine *machine, struct arena *arena) {
  struct kernel_uses uses;
  const struct nest n = nest_first(k, &uses, machine, arena);
  int shared = k->body && k->body->next ? common_loops(k) - ROW_LOOPS : 0;
  uint32_t buffer = 0;
  bool known = false, may = shared > 0 && has_turns(k, shared) && stores_to(k->body, &buffer, &known);
  const char *text = arena_printf(arena, "join %d", shared);
  return may && nest_allows(&n, text) ? text : NULL;
}

status schedule_choose(const struct kernel *k, const struct machine *machine, struct tuner *tuner, struct arena *arena, const char **out) {
  struct kernel_uses uses;
  int shared;
  *out = joined_steps(k, machine, arena, &shared);
  if (*out)
    return OK;
  for (struct nest n = nest_first(k, &uses, machine, arena); n.top; nest_next(&n)) {
    struct candidate best;
    const char *few;
    TRY(pick(&n, tuner, &best, &few));
    if (few && !k->body->next) { /* `when` chooses a schedule of the whole kernel: of several nests this one keeps its own */
      *out = arena_printf(arena, "%s%s%s", few, best.steps ? " " : "", best.steps ? best.steps : "");
      return OK;
    }
    if (best.steps)
      *out = *out ? arena_printf(arena, "%s; %s", *out, best.steps) : best.steps;
  }
  *out = *out ? *out : phases_steps(k, machine, arena);
  return OK;
}
status schedule_make(const struct kernel *k, const struct machine *machine, struct tuner *tuner, struct arena *arena, const char **steps,
                     struct kernel **out) {
  struct schedule s = {0};
  *out = NULL;
  TRY(schedule_choose(k, machine, tuner, arena, steps));
  if (!*steps)
    return OK;
  TRY(schedule_parse(*steps, arena, &s));
  if (schedule_apply(k, &s, arena, out) != OK)
    return fail(INTERNAL, "schedule of kernel %s: %s", k->name, arena_strdup(arena, status_text()));
  return OK;
}

static double sum_nests(const struct kernel *k, const struct machine *machine, struct arena *arena, bool of_cheapest) {
  struct kernel_uses uses;
  double cycles = 0;
  for (struct nest n = nest_first(k, &uses, machine, arena); n.top; nest_next(&n)) {
    struct candidates all = {0};
    nest_candidates(&n, &all);
    cycles += all.items.items[of_cheapest ? candidates_cheapest(&n, &all) : 0].cycles;
    vec_free(&all.items);
  }
  return cycles;
}
double schedule_cycles(const struct kernel *k, const struct machine *machine, struct arena *arena) {
  return sum_nests(k, machine, arena, true);
}
double schedule_work(const struct kernel *k, const struct machine *machine, struct arena *arena) {
  return sum_nests(k, machine, arena, false);
}
