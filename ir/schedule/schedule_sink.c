/* schedule_sink.c: the step `sink`: loops of par go under a sum.
 *
 *   par mi { par ni { var v = 0; red k { v = v + .. } d = v } }
 *   becomes  buffer e; par mi ni { e = 0 }; red k { par mi ni { e = e + .. } }; par mi ni { d = e }
 *
 * Turns of par are independent, so that what stands before the sum, in it and behind it may each run for all of them; what goes from one
 * part to the next is kept, for each turn, in an element of a buffer. */
#include <stdlib.h>

#include "ir/schedule/schedule_rewrite.h"

/* A var from before the sum that the sum or what is behind uses. */
struct kept {
  uint32_t local, buffer;
  bool is_set; /* in the sum */
};
struct sinking {
  struct kernel *k;
  const struct step *s;
  struct stmt *par[STEP_LOOPS], *red[STEP_LOOPS]; /* outermost first */
  int par_count, red_count;
  struct stmt *behind; /* the first statement behind the sum; NULL: none */
  VEC(struct kept) kept;
  const struct stmt *result; /* in result: the store behind the sum */
  expr_id started;           /* first: whether this is not the first turn */
};

/* ---- conditions ---- */

/* The loops that go down: a perfect nest of exactly these. */
static status find_pars(struct sinking *g, struct stmt *top) {
  struct stmt *s = top;
  g->par_count = name_count(g->s->on);
  for (int i = 0; i < g->par_count; i++, s = s->body) {
    if (!s || s->kind != STMT_FOR || s->loop != LOOP_PAR || s->run != RUN_PLAIN || (i && s->next) || !loop_is(g->k, s, g->s->on[i]))
      return REFUSED("the loops are no perfect nest of par in this order, without marks");
    if (expr_has_load(g->k, s->value))
      return REFUSED("the extent of loop %s is loaded", g->s->on[i]);
    g->par[i] = s;
  }
  return OK;
}

/* The nest of the sum in the innermost block; red_count 0: there is none. */
static status find_reds(struct sinking *g) {
  struct stmt *s = g->par[g->par_count - 1]->body;
  int count = name_count(g->s->at);
  while (s && !loop_is(g->k, s, g->s->at[0]))
    s = s->next;
  if (!s)
    return OK;
  g->behind = s->next;
  for (int i = 0; i < count; i++, s = s->body) {
    if (!s || !loop_is(g->k, s, g->s->at[i]) || (i && s->next))
      return REFUSED("the loops of the sum are no perfect nest");
    if (s->loop == LOOP_PAR || expr_has_load(g->k, s->value) || s->run != RUN_PLAIN)
      return REFUSED("loop %s is par, is marked or has an extent that is loaded", g->s->at[i]);
    for (int j = 0; j < g->par_count; j++)
      if (expr_reads_local(g->k, s->value, g->par[j]->local))
        return REFUSED("the extent of loop %s hangs on %s", g->s->at[i], g->s->on[j]);
    g->red[i] = s;
  }
  g->red_count = count;
  return OK;
}

static bool reads_nest(const struct sinking *g, uint32_t local) {
  return stmts_read_local(g->k, g->red[0], NULL, local) || stmts_set_local(g->red[0], NULL, local);
}

/* What goes from one part to the next. */
static status find_kept(struct sinking *g) {
  const struct stmt *block = g->par[g->par_count - 1]->body;
  if (stmts_have(block, NULL, STMT_CHECK) || stmts_have(block, NULL, STMT_WHILE))
    return REFUSED("there is a check or a while in the nest");
  for (const struct stmt *s = block; s != g->red[0]; s = s->next) {
    if (s->kind == STMT_BUFFER)
      return REFUSED("a buffer begins before the sum: sink the outer loops first");
    if (s->kind == STMT_VAR && reads_nest(g, s->local))
      vec_push(&g->kept, (struct kept){.local = s->local, .is_set = stmts_set_local(g->red[0], g->behind, s->local)});
  }
  for (int i = 0; i < g->par_count; i++)
    for (uint32_t j = 0; j < g->kept.count; j++)
      if (expr_reads_local(g->k, g->par[i]->value, g->kept.items[j].local))
        return REFUSED("the extent of loop %s changes", g->s->on[i]);
  return g->kept.count ? OK : REFUSED("the sum carries nothing");
}

static status make_buffers(struct sinking *g, struct stmt **tail) {
  kernel_dim dims[STEP_LOOPS];
  enum space space = g->s->space == IN_STACK ? SPACE_STACK : SPACE_REGISTER;
  for (int i = 0; i < g->par_count; i++)
    if (!expr_at_most(g->k, g->par[i]->value, &dims[i]) || dims[i] < 0)
      return REFUSED("the extent of loop %s has no constant bound", g->s->on[i]);
  for (uint32_t i = 0; i < g->kept.count; i++) {
    enum dtype dtype = g->k->locals.items[g->kept.items[i].local].dtype;
    g->kept.items[i].buffer = kernel_add_block_buffer(g->k, dtype, space, g->par_count, dims);
    stmt_buffer(g->k, tail, g->kept.items[i].buffer);
  }
  return OK;
}

/* ---- waiting in the result ---- */

static bool loads_buffer(const struct kernel *k, expr_id e, uint32_t buffer) {
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_LOAD && x->imm == (int64_t)buffer)
    return true;
  for (int i = 0; i < x->count; i++)
    if (loads_buffer(k, expr_operand(k, e, i), buffer))
      return true;
  return false;
}
static bool stmts_touch(const struct kernel *k, const struct stmt *s, const struct stmt *but, uint32_t buffer) {
  expr_id used[LIMIT_RANK + 4];
  for (; s; s = s->next) {
    int n = stmt_exprs(s, used);
    for (int i = 0; i < n; i++)
      if (loads_buffer(k, used[i], buffer))
        return true;
    if (s != but && s->kind == STMT_STORE && s->buffer == buffer)
      return true;
    if (stmts_touch(k, s->body, but, buffer) || stmts_touch(k, s->otherwise, but, buffer))
      return true;
  }
  return false;
}

/* The store of the bare sum. */
static status find_result(struct sinking *g) {
  const struct kernel *k = g->k;
  uint32_t local = g->kept.items[0].local;
  expr_id sum = expr_local(g->k, local);
  for (const struct stmt *s = g->behind; s; s = s->next)
    if (s->kind == STMT_STORE && s->value == sum)
      g->result = s;
  if (!g->result || g->kept.count != 1 || k->buffers.items[g->result->buffer].dtype != k->locals.items[local].dtype)
    return REFUSED("behind the sum there is no store of it as it is, or it carries more than one value");
  for (const struct stmt *s = g->behind; s; s = s->next)
    if (s != g->result && stmts_read_local(k, s, s->next, local))
      return REFUSED("the sum is used behind it by more than its store");
  for (int i = 0; i < g->result->index_count; i++)
    if (expr_has_load(k, g->result->index[i]))
      return REFUSED("where the sum is stored is loaded");
  return stmts_touch(k, k->body, g->result, g->result->buffer) ? REFUSED("the result is used elsewhere too") : OK;
}

/* `first`: not the first turn of the sum. */
static status find_started(struct sinking *g) {
  struct kernel *k = g->k;
  int64_t turns;
  expr_id zero = expr_int(k, DTYPE_INT64, 0);
  for (int i = 0; i < g->red_count; i++) {
    if (!expr_is_const(k, g->red[i]->value, &turns) || turns < 1)
      return REFUSED("loop %s may have no first turn", g->s->at[i]);
    expr_id later = expr_binary(k, SCALAR_LT, zero, expr_local(k, g->red[i]->local));
    g->started = g->started == NO_EXPR ? later : expr_binary(k, SCALAR_OR, g->started, later);
  }
  const struct stmt *start = g->par[g->par_count - 1]->body;
  bool bare = start->kind == STMT_VAR && start->local == g->kept.items[0].local && start->next == g->red[0];
  return bare && expr_is_const(k, start->value, NULL) ? OK : REFUSED("the sum does not start from a constant, alone");
}

/* ---- the three nests ---- */

static void place_element(const struct sinking *g, struct copy *c, const struct kept *kept, struct element *out) {
  *out = (struct element){.buffer = kept->buffer, .count = g->par_count};
  for (int i = 0; i < g->par_count; i++)
    out->index[i] = c->local[g->par[i]->local];
  if (!g->result)
    return;
  out->buffer = g->result->buffer;
  out->count = g->result->index_count;
  for (int i = 0; i < out->count; i++)
    out->index[i] = copy_expr(c, g->result->index[i]);
}

/* The loops, with vars as elements; gives the place for what is inside. */
static struct stmt **open_nest(const struct sinking *g, struct copy *c, struct element *elements, struct stmt **tail) {
  copy_begin(c, g->k, g->k);
  for (int i = 0; i < g->par_count; i++)
    tail = copy_loop(c, g->par[i], tail);
  for (uint32_t i = 0; i < g->kept.count; i++) {
    place_element(g, c, &g->kept.items[i], &elements[i]);
    c->element[g->kept.items[i].local] = &elements[i];
  }
  return tail;
}

/* Values of which a nested sum makes more are vars while it runs. */
static void open_vars(const struct sinking *g, struct copy *c, const struct element *elements, struct stmt **tail) {
  for (uint32_t i = 0; i < g->kept.count; i++) {
    uint32_t local = g->kept.items[i].local;
    if (!g->kept.items[i].is_set)
      continue;
    struct stmt *var = stmt_var(g->k, tail, g->k->locals.items[local].dtype, element_value(g->k, &elements[i]));
    c->element[local] = NULL;
    c->local[local] = expr_local(g->k, var->local);
  }
}
static void close_vars(const struct sinking *g, struct copy *c, const struct element *elements, struct stmt **tail) {
  for (uint32_t i = 0; i < g->kept.count; i++)
    if (g->kept.items[i].is_set)
      stmt_store(g->k, tail, elements[i].buffer, 0, elements[i].index, elements[i].count, c->local[g->kept.items[i].local]);
}

static void add_nest(const struct sinking *g, struct element *elements, struct stmt **tail) {
  const struct stmt *body = g->red[g->red_count - 1]->body, *start = g->par[g->par_count - 1]->body;
  bool in_vars = stmts_have(body, NULL, STMT_FOR) || (g->started != NO_EXPR && (body->next || body->kind != STMT_SET));
  struct copy c;
  tail = open_nest(g, &c, elements, tail);
  for (uint32_t i = 0; i < g->kept.count && g->started != NO_EXPR; i++) {
    elements[i].started = g->started;
    elements[i].start = start->value;
  }
  if (in_vars)
    open_vars(g, &c, elements, tail);
  copy_stmts(&c, body, NULL, tail);
  if (in_vars)
    close_vars(g, &c, elements, tail);
  copy_end(&c);
}

static void part_nest(const struct sinking *g, struct element *elements, const struct stmt *s, const struct stmt *end, struct stmt **tail) {
  struct copy c;
  if (s == end || (s == g->result && s->next == end))
    return;
  tail = open_nest(g, &c, elements, tail);
  for (; s != end; s = s->next)
    if (s != g->result)
      copy_stmts(&c, s, s->next, tail);
  copy_end(&c);
}

static void build(const struct sinking *g, struct stmt **pieces) {
  struct element *elements = calloc(g->kept.count, sizeof *elements);
  const struct stmt *block = g->par[g->par_count - 1]->body;
  if (g->started == NO_EXPR)
    part_nest(g, elements, block, g->red[0], pieces);
  struct stmt **tail = pieces;
  for (int i = 0; i < g->red_count; i++) {
    while (*tail)
      tail = &(*tail)->next;
    *tail = arena_copy(g->k->arena, g->red[i], sizeof **tail);
    (*tail)->next = (*tail)->body = NULL;
    tail = &(*tail)->body;
  }
  add_nest(g, elements, tail);
  part_nest(g, elements, g->behind, NULL, pieces);
  free(elements);
}

/* *done: the loop was such a nest. */
static status sink_loop(struct kernel *k, const struct step *s, struct stmt *top, bool *done) {
  struct sinking g = {.k = k, .s = s};
  struct stmt *pieces = NULL;
  status result = find_pars(&g, top);
  if (result == OK)
    result = find_reds(&g);
  if (result == OK && g.red_count) {
    result = find_kept(&g);
    if (result == OK)
      result = s->space == IN_RESULT ? find_result(&g) : make_buffers(&g, &pieces);
    if (result == OK && s->first)
      result = s->space == IN_RESULT ? find_started(&g) : REFUSED("`first` is for sums that wait in the result");
    if (result == OK) {
      build(&g, &pieces);
      replace_loop(top, pieces);
      *done = true;
    }
  }
  vec_free(&g.kept);
  return result;
}

status step_sink(struct kernel *k, const struct step *s) {
  loops_found found = {0};
  bool done = false;
  find_loops(k->body, k, s->on[0], &found);
  status result = found.count ? OK : REFUSED("there is no loop %s", s->on[0]);
  for (uint32_t i = 0; i < found.count && result == OK; i++)
    result = sink_loop(k, s, found.items[i], &done);
  vec_free(&found);
  return result != OK || done ? result : REFUSED("no loop %s stands inside of them", s->at[0]);
}
