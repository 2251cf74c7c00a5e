/* schedule_part.c: the step `part`: a sum in parts that threads may take, and the sum of these.
 *
 *   par c { var v = 0; red i { v = v + .. } d = v }
 *   becomes  buffer e; par po c { var v = 0; red pi { v = v + .. } e[po,c] = v }; par c { var v = 0; red ps { v = v + e[ps,c] } d = v }
 *
 * How many parts there are stands in the step: it changes a sum's tree, so that nothing but the kernel and its sizes may decide it. What
 * stands before the sum in its block is computed in both nests. */
#include <stdlib.h>

#include "ir/schedule/schedule_rewrite.h"

/* What the sum carries. */
struct carried {
  uint32_t local, buffer;
  enum scalar_op op; /* v = op(v, ..) */
};
struct parting {
  struct kernel *k;
  const struct step *s;
  struct stmt *top;             /* the nest at the top of the kernel */
  struct stmt *par[STEP_LOOPS]; /* its loops around the block of the sum */
  int par_count;
  struct stmt *block, *red; /* the block, and the sum's outermost loop in it */
  VEC(struct carried) carried;
};

/* ---- conditions ---- */

static struct stmt *in_block(const struct kernel *k, struct stmt *block, const char *name) {
  while (block && !loop_is(k, block, name))
    block = block->next;
  return block;
}
/* Whether the sum stands in the nest that begins at `top`. */
static bool find_sum(struct parting *g, struct stmt *top) {
  g->top = top;
  g->par_count = 0;
  for (struct stmt *s = top; s && s->kind == STMT_FOR && s->loop == LOOP_PAR && g->par_count < STEP_LOOPS; s = s->body) {
    g->par[g->par_count++] = s;
    g->block = s->body;
    g->red = in_block(g->k, s->body, g->s->on[0]);
    if (g->red || !s->body || s->body->next)
      return g->red != NULL;
  }
  return false;
}

/* Numbers alone: what may be computed twice. */
static bool is_pure(const struct stmt *s, const struct stmt *end) {
  for (; s != end; s = s->next) {
    bool fits = s->kind == STMT_VAR || s->kind == STMT_SET || s->kind == STMT_IF || s->kind == STMT_FOR;
    if (!fits || !is_pure(s->body, NULL) || !is_pure(s->otherwise, NULL))
      return false;
  }
  return true;
}
static bool adds_up(enum scalar_op op) { return op == SCALAR_ADD || op == SCALAR_MUL || op == SCALAR_MIN || op == SCALAR_MAX; }

/* The operation by which a set takes something to the local; SCALAR_NONE: it is none of those that parts can be joined by. */
static enum scalar_op set_op(const struct kernel *k, const struct stmt *set) {
  const struct expr *x = expr_get(k, set->value);
  expr_id own = NO_EXPR;
  int places = 0;
  for (int i = 0; i < x->count; i++) {
    const struct expr *operand = expr_get(k, expr_operand(k, set->value, i));
    bool is_own = operand->op == SCALAR_LOCAL && operand->imm == set->local;
    own = is_own ? expr_operand(k, set->value, i) : own;
    places += expr_reads_local(k, expr_operand(k, set->value, i), set->local);
  }
  if (places != 1 || own == NO_EXPR)
    return SCALAR_NONE;
  if (x->op == SCALAR_FMA && expr_operand(k, set->value, 2) == own)
    return SCALAR_ADD;
  return adds_up(x->op) ? x->op : SCALAR_NONE;
}
/* Whether all that the statements do with the local is to take something to it, always by one operation. */
static bool only_takes(const struct kernel *k, const struct stmt *s, struct carried *v) {
  expr_id used[LIMIT_RANK + 4];
  for (; s; s = s->next) {
    bool own = s->kind == STMT_SET && s->local == v->local;
    enum scalar_op op = own ? set_op(k, s) : v->op;
    int n = own ? 0 : stmt_exprs(s, used);
    for (int i = 0; i < n; i++)
      if (expr_reads_local(k, used[i], v->local))
        return false;
    if ((own && op == SCALAR_NONE) || (v->op != SCALAR_NONE && op != v->op))
      return false;
    v->op = op;
    if (!only_takes(k, s->body, v) || !only_takes(k, s->otherwise, v))
      return false;
  }
  return true;
}

static status find_carried(struct parting *g) {
  for (const struct stmt *s = g->block; s != g->red; s = s->next) {
    struct carried v = {.local = s->local, .op = SCALAR_NONE};
    if (s->kind != STMT_VAR || !stmts_set_local(g->red, g->red->next, s->local))
      continue;
    if (!only_takes(g->k, g->red->body, &v))
      return REFUSED("what loop %s carries is no sum, product, minimum or maximum", g->s->on[0]);
    if (stmts_set_local(g->block, g->red, s->local))
      return REFUSED("what loop %s carries is set in front of it", g->s->on[0]);
    vec_push(&g->carried, v);
  }
  return g->carried.count ? OK : REFUSED("loop %s carries nothing from its block", g->s->on[0]);
}
static status check_sum(const struct parting *g) {
  TRY(loop_check_plain(g->k, g->red));
  for (int i = 0; i < g->par_count; i++)
    TRY(loop_check_plain(g->k, g->par[i]));
  if (g->red->loop != LOOP_RED)
    return REFUSED("loop %s is no loop of a sum", g->s->on[0]);
  if (!is_pure(g->block, g->red) || !is_pure(g->red->body, NULL))
    return REFUSED("in loop %s, or in front of it in its block, more happens than numbers", g->s->on[0]);
  for (int i = 0; i < g->par_count; i++)
    if (expr_reads_local(g->k, g->red->value, g->par[i]->local))
      return REFUSED("the extent of loop %s hangs on a loop around it", g->s->on[0]);
  return expr_has_load(g->k, g->red->value) ? REFUSED("the extent of loop %s is loaded", g->s->on[0]) : OK;
}
static status make_buffers(struct parting *g, struct stmt **tail) {
  kernel_dim dims[STEP_LOOPS + 1] = {g->s->n[0]};
  for (int i = 0; i < g->par_count; i++)
    if (!expr_is_const(g->k, g->par[i]->value, &dims[i + 1]) || dims[i + 1] < 1)
      return REFUSED("the loops around loop %s have no constant extents", g->s->on[0]);
  if (g->par_count == STEP_LOOPS)
    return REFUSED("there are too many loops around loop %s", g->s->on[0]);
  for (uint32_t i = 0; i < g->carried.count; i++) {
    enum dtype dtype = g->k->locals.items[g->carried.items[i].local].dtype;
    g->carried.items[i].buffer = kernel_add_block_buffer(g->k, dtype, SPACE_TASK, g->par_count + 1, dims);
    stmt_buffer(g->k, tail, g->carried.items[i].buffer);
  }
  return OK;
}

/* ---- the two nests ---- */

static expr_id neutral(struct kernel *k, enum scalar_op op, enum dtype dtype) {
  bool is_float = dtype_is_float(dtype);
  int value = op == SCALAR_MUL;
  return is_float ? expr_float(k, dtype, value) : expr_int(k, dtype, value);
}
/* The loops around the sum, anew; gives the place for what is inside. */
static struct stmt **open_pars(const struct parting *g, struct copy *c, struct stmt **tail) {
  copy_begin(c, g->k, g->k);
  for (int i = 0; i < g->par_count; i++)
    tail = copy_loop(c, g->par[i], tail);
  return tail;
}
static uint32_t copied(const struct parting *g, const struct copy *c, uint32_t local) {
  return (uint32_t)expr_get(g->k, c->local[local])->imm;
}
/* The part's element, in a nest whose copies are c. */
static int place(const struct parting *g, const struct copy *c, expr_id part, expr_id *index) {
  index[0] = part;
  for (int i = 0; i < g->par_count; i++)
    index[i + 1] = c->local[g->par[i]->local];
  return g->par_count + 1;
}
static struct stmt *var_of(struct stmt *block, uint32_t local) {
  while (block && (block->kind != STMT_VAR || block->local != local))
    block = block->next;
  return block;
}

/* A minimum or maximum may begin with what the whole begins with; sums and products begin with what changes nothing. */
static void start_parts(const struct parting *g, const struct copy *c, struct stmt *block) {
  for (uint32_t i = 0; i < g->carried.count; i++) {
    const struct carried *v = &g->carried.items[i];
    struct stmt *var = var_of(block, copied(g, c, v->local));
    if (v->op == SCALAR_ADD || v->op == SCALAR_MUL)
      var->value = neutral(g->k, v->op, g->k->locals.items[v->local].dtype);
  }
}
static void build_parts(const struct parting *g, struct stmt **pieces) {
  struct kernel *k = g->k;
  struct copy c;
  expr_id extent = g->red->value, turns, index[STEP_LOOPS + 1];
  if (!expr_never_negative(k, extent))
    extent = expr_binary(k, SCALAR_MAX, extent, number(k, 0));
  turns = floordiv(k, add(k, extent, number(k, g->s->n[0] - 1)), g->s->n[0]);
  struct stmt *parts = loop_make(k, pieces, g->par[0], number(k, g->s->n[0]), g->s->made[0]);
  expr_id part = expr_local(k, parts->local), first = expr_binary(k, SCALAR_MUL, part, turns);
  struct stmt **tail = open_pars(g, &c, &parts->body), **block = tail;
  copy_stmts(&c, g->block, g->red, tail);
  start_parts(g, &c, *block);
  expr_id rest = expr_divides(k, extent, g->s->n[0]) ? turns : expr_binary(k, SCALAR_MIN, turns, sub(k, extent, first));
  struct stmt *inside = loop_make(k, tail, g->red, rest, g->s->made[1]);
  c.local[g->red->local] = add(k, first, expr_local(k, inside->local));
  copy_stmts(&c, g->red->body, NULL, &inside->body);
  for (uint32_t i = 0; i < g->carried.count; i++) {
    int count = place(g, &c, part, index);
    stmt_store(k, tail, g->carried.items[i].buffer, 0, index, count, c.local[g->carried.items[i].local]);
  }
  copy_end(&c);
}
/* One sum alone: its nest stays, as a task, beside the nest of the parts. */
static bool is_single(const struct parting *g) {
  int64_t extent;
  for (int i = 0; i < g->par_count; i++)
    if (!expr_is_const(g->k, g->par[i]->value, &extent) || extent != 1)
      return false;
  return true;
}
static void build_whole(const struct parting *g, struct stmt **pieces) {
  struct kernel *k = g->k;
  struct copy c;
  expr_id index[STEP_LOOPS + 1];
  struct stmt **end = pieces;
  while (*end)
    end = &(*end)->next;
  struct stmt **tail = open_pars(g, &c, end);
  (*end)->run = is_single(g) ? RUN_TASKS : RUN_PLAIN;
  copy_stmts(&c, g->block, g->red, tail);
  struct stmt *sum = loop_make(k, tail, g->red, number(k, g->s->n[0]), g->s->made[2]);
  for (uint32_t i = 0; i < g->carried.count; i++) {
    const struct carried *v = &g->carried.items[i];
    int count = place(g, &c, expr_local(k, sum->local), index);
    expr_id part = expr_load(k, v->buffer, 0, index, count), own = c.local[v->local];
    stmt_set(k, &sum->body, copied(g, &c, v->local), expr_binary(k, v->op, own, part));
  }
  copy_stmts(&c, g->red->next, NULL, tail);
  copy_end(&c);
}

static status part_sum(struct parting *g) {
  struct stmt *pieces = NULL;
  TRY(check_sum(g));
  TRY(find_carried(g));
  TRY(make_buffers(g, &pieces));
  build_parts(g, &pieces);
  build_whole(g, &pieces);
  replace_loop(g->top, pieces);
  return OK;
}

/* A sum at the top of the kernel gets a loop of one turn around it, and all that stands beside it: the nest that parts need. */
static void wrap_top(struct kernel *k, const char *name) {
  struct stmt *sum = in_block(k, k->body, name), *loop = NULL;
  if (!sum || sum->loop != LOOP_RED)
    return;
  stmt_for(k, &loop, LOOP_PAR, number(k, 1));
  k->locals.items[loop->local].name = "one";
  loop->body = k->body;
  k->body = loop;
}

status step_part(struct kernel *k, const struct step *s) {
  struct parting g = {.k = k, .s = s};
  bool done = false;
  status result = OK;
  wrap_top(k, s->on[0]);
  for (struct stmt *top = k->body, *next; top && result == OK; top = next) {
    next = top->next;
    g.carried.count = 0;
    if (!find_sum(&g, top))
      continue;
    result = part_sum(&g);
    done = true;
  }
  vec_free(&g.carried);
  return result != OK || done ? result : REFUSED("at the top of the kernel is no nest of par with loop %s in it", s->on[0]);
}
