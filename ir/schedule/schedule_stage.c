/* schedule_stage.c: the step `stage`: what loops read of a buffer is copied first, in the order in which they read it.
 *
 *   red k { par n { .. b[k,no*32+n] .. } }
 *   becomes  buffer e; par k n { e[k,n] = b[k,no*32+n] }; red k { par n { .. e[k,n] .. } }
 *
 * A whole dimension of the buffer may stand for a loop, where what is read of it moves in another way (taps from the last to the first,
 * rows from where an image begins): `by .0 k` copies all of it, and reads go where they went.
 *
 * `computed`: instead of what is read, what becomes of it without other loops of the inside, the largest such expression: then
 * e[k,n] = cast(b[k,no*32+n]), and each value is converted once. */
#include <stdlib.h>

#include "ir/schedule/schedule_rewrite.h"

struct staging {
  struct kernel *k;
  const struct step *s;
  struct stmt *at;             /* the copy is made when a turn of this loop begins */
  struct stmt *by[STEP_LOOPS]; /* the loops inside whose variables tell the copy's elements, in the order of its dimensions; */
  int whole[STEP_LOOPS];       /* where that is NULL, the buffer's dimension that is copied as a whole */
  int count;
  expr_id load;  /* what is read, */
  expr_id value; /* and what is copied: the same, unless it is computed */
  expr_id when;  /* whether it is loaded at all: the loops around it that are not listed have turns */
};

/* ---- conditions ---- */

static bool expr_has(const struct kernel *k, expr_id e, expr_id part) {
  if (e == part)
    return true;
  for (int i = 0; i < expr_get(k, e)->count; i++)
    if (expr_has(k, expr_operand(k, e, i), part))
      return true;
  return false;
}
static bool stmt_has(const struct kernel *k, const struct stmt *s, expr_id part) {
  expr_id used[LIMIT_RANK + 4];
  int n = stmt_exprs(s, used);
  for (int i = 0; i < n; i++)
    if (expr_has(k, used[i], part))
      return true;
  return false;
}
static bool block_has(const struct kernel *k, const struct stmt *s, expr_id part) {
  for (; s; s = s->next)
    if (stmt_has(k, s, part) || block_has(k, s->body, part) || block_has(k, s->otherwise, part))
      return true;
  return false;
}

static void find_loads(const struct kernel *k, expr_id e, uint32_t buffer, expr_id *found, bool *several) {
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_LOAD && x->imm == (int64_t)buffer) {
    *several = *several || (*found != NO_EXPR && *found != e);
    *found = e;
  }
  for (int i = 0; i < x->count; i++)
    find_loads(k, expr_operand(k, e, i), buffer, found, several);
}
static void find_loads_in(const struct kernel *k, const struct stmt *s, uint32_t buffer, expr_id *found, bool *several) {
  expr_id used[LIMIT_RANK + 4];
  for (; s; s = s->next) {
    int n = stmt_exprs(s, used);
    for (int i = 0; i < n && s->kind != STMT_FETCH; i++)
      find_loads(k, used[i], buffer, found, several);
    find_loads_in(k, s->body, buffer, found, several);
    find_loads_in(k, s->otherwise, buffer, found, several);
  }
}

static bool stmts_write(const struct stmt *s, uint32_t buffer) {
  for (; s; s = s->next)
    if ((s->kind == STMT_STORE && s->buffer == buffer) || stmts_write(s->body, buffer) || stmts_write(s->otherwise, buffer))
      return true;
  return false;
}

/* The loop of this name inside of the statements; more than one is none. */
static struct stmt *only_loop(const struct kernel *k, struct stmt *block, const char *name) {
  loops_found found = {0};
  find_loops(block, k, name, &found);
  struct stmt *loop = found.count == 1 ? found.items[0] : NULL;
  vec_free(&found);
  return loop;
}

/* Whether e reads no local that begins inside of the block, but for those of the loops listed. */
static bool is_outside(const struct staging *g, expr_id e, const struct stmt *block, int listed) {
  for (const struct stmt *s = block; s; s = s->next) {
    bool known = false;
    for (int i = 0; i < listed; i++)
      known = known || s == g->by[i];
    bool begins = s->kind == STMT_FOR || s->kind == STMT_VAR;
    if ((begins && !known && expr_reads_local(g->k, e, s->local)) || !is_outside(g, e, s->body, listed) ||
        !is_outside(g, e, s->otherwise, listed))
      return false;
  }
  return true;
}

/* Where dimension d of the buffer is copied as a whole: which of the copy's; -1: it is not. */
static int whole_of(const struct staging *g, int d) {
  for (int i = 0; i < g->count; i++)
    if (!g->by[i] && g->whole[i] == d)
      return i;
  return -1;
}
static status find_whole(struct staging *g, int i) {
  const struct kernel_buffer *b = &g->k->buffers.items[g->s->buffer];
  int d = atoi(g->s->on[i] + 1);
  if (b->mode != BUFFER_IN || d >= b->rank || DIM_IS_SIZE(b->dims[d]) || whole_of(g, d) >= 0)
    return REFUSED("dimension %s of that buffer is not copied as a whole", g->s->on[i]);
  g->whole[i] = d;
  return OK;
}
/* Extents are known in front, so that the copy has what the loops read; they may hang on loops listed before. */
static status find_by(struct staging *g) {
  for (; g->count < STEP_LOOPS && g->s->on[g->count]; g->count++) {
    int i = g->count;
    if (*g->s->on[i] == '.') {
      TRY(find_whole(g, i));
      continue;
    }
    g->by[i] = only_loop(g->k, g->at->body, g->s->on[i]);
    if (!g->by[i])
      return REFUSED("inside of loop %s there is not one loop %s", g->s->at[0], g->s->on[i]);
    if (expr_has_load(g->k, g->by[i]->value) || !is_outside(g, g->by[i]->value, g->at->body, i))
      return REFUSED("the extent of loop %s is not known at loop %s", g->s->on[i], g->s->at[0]);
  }
  return OK;
}

/* g->load stays NO_EXPR where the loop loads nothing from the buffer. */
static status find_load(struct staging *g) {
  bool several = false;
  find_loads_in(g->k, g->at->body, g->s->buffer, &g->load, &several);
  return several ? REFUSED("loop %s loads from that buffer at several places", g->s->at[0]) : OK;
}
static status check_load(const struct staging *g) {
  struct kernel *k = g->k;
  for (int i = 0; i < expr_get(k, g->load)->count; i++)
    if (expr_has_load(k, expr_operand(k, g->load, i)))
      return REFUSED("the place that is read is loaded");
  for (int d = 0; d < expr_get(k, g->load)->count; d++)
    if (whole_of(g, d) < 0 && !is_outside(g, expr_operand(k, g->load, d), g->at->body, g->count))
      return REFUSED("what is read moves with more loops than those");
  return OK;
}

/* ---- what is computed ---- */

/* Whether statements set a variable that e reads. */
static bool stmts_change(const struct kernel *k, const struct stmt *s, expr_id e) {
  for (; s; s = s->next)
    if ((s->kind == STMT_SET && expr_reads_local(k, e, s->local)) || stmts_change(k, s->body, e) || stmts_change(k, s->otherwise, e))
      return true;
  return false;
}
/* The largest expressions within e that hold the load and move with no more loops than those listed. */
static void find_values(struct staging *g, expr_id e, bool *several) {
  if (!expr_has(g->k, e, g->load))
    return;
  bool fits = g->s->as == DTYPE_INVALID || expr_get(g->k, e)->dtype == g->s->as;
  if (fits && is_outside(g, e, g->at->body, g->count) && !stmts_change(g->k, g->at->body, e)) {
    *several = *several || (g->value != NO_EXPR && g->value != e);
    g->value = e;
    return;
  }
  for (int i = 0; i < expr_get(g->k, e)->count; i++)
    find_values(g, expr_operand(g->k, e, i), several);
}
static void find_values_in(struct staging *g, const struct stmt *s, bool *several) {
  expr_id used[LIMIT_RANK + 4];
  for (; s; s = s->next) {
    int n = stmt_exprs(s, used);
    for (int i = 0; i < n && s->kind != STMT_FETCH; i++)
      find_values(g, used[i], several);
    find_values_in(g, s->body, several);
    find_values_in(g, s->otherwise, several);
  }
}
static status find_value(struct staging *g) {
  bool several = false;
  g->value = g->load;
  if (!g->s->computed)
    return OK;
  for (int i = 0; i < g->count; i++)
    if (!g->by[i])
      return REFUSED("what is computed has no dimension that is copied as a whole");
  g->value = NO_EXPR;
  find_values_in(g, g->at->body, &several);
  if (!several && g->value == NO_EXPR)
    return REFUSED("loop %s computes nothing of that dtype of that buffer", g->s->at[0]);
  return several ? REFUSED("loop %s computes several values of that buffer", g->s->at[0]) : OK;
}
static status check_value(const struct staging *g, expr_id e) {
  struct kernel *k = g->k;
  const struct expr *x = expr_get(k, e);
  bool is_load = x->op == SCALAR_LOAD;
  if (is_load && stmts_write(g->at->body, (uint32_t)x->imm))
    return REFUSED("the loop writes what is copied");
  if (is_load && dtype_is_complex(k->buffers.items[x->imm].dtype))
    return REFUSED("parts of complex numbers are not copied");
  if (x->dtype == DTYPE_STRING)
    return REFUSED("strings are not copied");
  for (int i = 0; i < x->count; i++)
    TRY(check_value(g, expr_operand(k, e, i)));
  return OK;
}

/* ---- what may be read in front ---- */

static const struct stmt *loop_of(const struct stmt *s, uint32_t local) {
  const struct stmt *found = NULL;
  for (; s && !found; s = s->next) {
    if (s->kind == STMT_FOR && s->local == local)
      return s;
    found = loop_of(s->body, local);
    if (!found)
      found = loop_of(s->otherwise, local);
  }
  return found;
}
/* Where a loop runs over what is left of a limit of this kind from `begin` on, as the inner one of a split does: that; else NO_EXPR. */
static expr_id limit_of(const struct kernel *k, expr_id extent, expr_id begin, enum scalar_op kind) {
  const struct expr *x = expr_get(k, extent);
  if (x->op == SCALAR_MIN) {
    expr_id limit = limit_of(k, expr_operand(k, extent, 0), begin, kind);
    return limit != NO_EXPR ? limit : limit_of(k, expr_operand(k, extent, 1), begin, kind);
  }
  bool ends = x->op == SCALAR_SUB && expr_operand(k, extent, 1) == begin && expr_get(k, expr_operand(k, extent, 0))->op == kind;
  return ends ? expr_operand(k, extent, 0) : NO_EXPR;
}
/* begin + i < limit, of such a loop i. */
static expr_id rest_limit(const struct kernel *k, expr_id begin, expr_id i, enum scalar_op kind) {
  const struct expr *x = expr_get(k, i);
  const struct stmt *loop = x->op == SCALAR_LOCAL ? loop_of(k->body, (uint32_t)x->imm) : NULL;
  return loop ? limit_of(k, loop->value, begin, kind) : NO_EXPR;
}
static bool rest_at_most(const struct kernel *k, expr_id begin, expr_id i, int64_t *most) {
  expr_id limit = rest_limit(k, begin, i, SCALAR_CONST);
  bool known = limit != NO_EXPR && expr_is_const(k, limit, most);
  *most -= known;
  return known;
}
static bool index_at_most(const struct kernel *k, expr_id e, int64_t *most);
/* Of what is divided by a constant, or of what is left then. */
static bool quotient_at_most(const struct kernel *k, expr_id e, int64_t by, int64_t *most) {
  bool known = index_at_most(k, expr_operand(k, e, 0), most), is_rest = expr_get(k, e)->op == SCALAR_FLOORMOD;
  if (is_rest)
    *most = known && *most < by ? *most : by - 1;
  else if (known)
    *most /= by;
  return known || is_rest;
}
/* What an index never exceeds: of sums and products of loops' variables, which are not negative, and of what fused loops make of them. */
static bool index_at_most(const struct kernel *k, expr_id e, int64_t *most) {
  const struct expr *x = expr_get(k, e);
  int64_t a, b;
  if (x->op == SCALAR_LOCAL) {
    const struct stmt *loop = loop_of(k->body, (uint32_t)x->imm);
    bool known = loop && expr_at_most(k, loop->value, most);
    *most -= known;
    return known;
  }
  if ((x->op == SCALAR_FLOORDIV || x->op == SCALAR_FLOORMOD) && expr_is_const(k, expr_operand(k, e, 1), &b) && b > 0)
    return quotient_at_most(k, e, b, most);
  if (x->op != SCALAR_ADD && x->op != SCALAR_MUL)
    return expr_is_const(k, e, most);
  if (x->op == SCALAR_ADD && rest_at_most(k, expr_operand(k, e, 0), expr_operand(k, e, 1), most))
    return true;
  return index_at_most(k, expr_operand(k, e, 0), &a) && index_at_most(k, expr_operand(k, e, 1), &b) &&
         !(x->op == SCALAR_ADD ? __builtin_add_overflow(a, b, most) : __builtin_mul_overflow(a, b, most));
}
static bool is_size(const struct kernel *k, expr_id e, uint32_t size) {
  return e != NO_EXPR && expr_get(k, e)->op == SCALAR_SIZE && expr_get(k, e)->imm == size;
}
/* Of a loop of as many turns as the size says, or of one that was split. */
static bool index_is_below(const struct kernel *k, expr_id e, uint32_t size) {
  const struct expr *x = expr_get(k, e);
  const struct stmt *loop = x->op == SCALAR_LOCAL ? loop_of(k->body, (uint32_t)x->imm) : NULL;
  if (loop)
    return is_size(k, loop->value, size);
  return x->op == SCALAR_ADD && is_size(k, rest_limit(k, expr_operand(k, e, 0), expr_operand(k, e, 1), SCALAR_SIZE), size);
}
/* Whether the place exists in all turns of all loops, so that it may be read whether it is needed or not. */
static bool load_is_always_there(const struct staging *g, expr_id load) {
  const struct kernel *k = g->k;
  const struct expr *x = expr_get(k, load);
  const struct kernel_buffer *b = &k->buffers.items[x->imm];
  bool there = b->mode == BUFFER_IN;
  for (int d = 0; d < b->rank && there; d++) {
    expr_id index = expr_operand(k, load, d);
    int64_t most;
    there = (load == g->load && whole_of(g, d) >= 0) ||
            (expr_never_negative(k, index) && (DIM_IS_SIZE(b->dims[d]) ? index_is_below(k, index, SIZE_OF_DIM(b->dims[d]))
                                                                       : index_at_most(k, index, &most) && most < b->dims[d]));
  }
  return there;
}
static bool is_always_there(const struct staging *g, expr_id e) {
  const struct expr *x = expr_get(g->k, e);
  bool there = x->op != SCALAR_LOAD || load_is_always_there(g, e);
  for (int i = 0; i < x->count && there; i++)
    there = is_always_there(g, expr_operand(g->k, e, i));
  return there;
}

/* In front, only what is loaded later may be loaded: g->when becomes true where one of the ways to the load is gone. */
static status find_ways(struct staging *g, const struct stmt *block, expr_id here) {
  struct kernel *k = g->k;
  for (const struct stmt *s = block; s; s = s->next) {
    if (stmt_has(k, s, g->value))
      g->when = g->when == NO_EXPR ? here : expr_binary(k, SCALAR_OR, g->when, here);
    if (!block_has(k, s->body, g->value) && !block_has(k, s->otherwise, g->value))
      continue;
    if (s->kind != STMT_FOR)
      return REFUSED("what is read is read under a condition");
    bool listed = false;
    for (int i = 0; i < g->count; i++)
      listed = listed || g->by[i] == s;
    if (!listed && (expr_has_load(k, s->value) || !is_outside(g, s->value, g->at->body, 0)))
      return REFUSED("the extent of loop %s is not known at loop %s", loop_name(k, s), g->s->at[0]);
    expr_id turns = expr_binary(k, SCALAR_LT, number(k, 0), s->value);
    TRY(find_ways(g, s->body, listed ? here : expr_binary(k, SCALAR_AND, here, turns)));
  }
  return OK;
}

/* ---- the copy ---- */

static status make_buffer(struct staging *g, struct stmt **tail, uint32_t *buffer) {
  const struct kernel_buffer *from = &g->k->buffers.items[g->s->buffer];
  kernel_dim dims[STEP_LOOPS];
  for (int i = 0; i < g->count; i++)
    if (!g->by[i])
      dims[i] = from->dims[g->whole[i]];
    else if (!expr_at_most(g->k, g->by[i]->value, &dims[i]) || dims[i] < 0)
      return REFUSED("the extent of loop %s has no constant bound", g->s->on[i]);
  *buffer = kernel_add_block_buffer(g->k, expr_get(g->k, g->value)->dtype, SPACE_STACK, g->count, dims);
  stmt_buffer(g->k, tail, *buffer);
  return OK;
}

static void fill_buffer(struct staging *g, struct stmt **tail, uint32_t buffer) {
  struct kernel *k = g->k;
  struct copy c;
  expr_id index[STEP_LOOPS], from[LIMIT_RANK];
  int rank = expr_get(k, g->load)->count;
  tail = &stmt_if(k, tail, g->when)->body;
  copy_begin(&c, k, k);
  for (int i = 0; i < g->count; i++) {
    expr_id extent = g->by[i] ? copy_expr(&c, g->by[i]->value) : number(k, k->buffers.items[buffer].dims[i]);
    struct stmt *loop = stmt_for(k, tail, LOOP_PAR, extent);
    k->locals.items[loop->local].name = g->s->made[i];
    index[i] = expr_local(k, loop->local);
    if (g->by[i])
      c.local[g->by[i]->local] = index[i];
    tail = &loop->body;
  }
  for (int d = 0; d < rank; d++)
    from[d] = whole_of(g, d) < 0 ? copy_expr(&c, expr_operand(k, g->load, d)) : index[whole_of(g, d)];
  expr_id value = g->value == g->load ? expr_load(k, g->s->buffer, 0, from, rank) : copy_expr(&c, g->value);
  stmt_store(k, tail, buffer, 0, index, g->count, value);
  copy_end(&c);
}

static void use_buffer(struct staging *g, uint32_t buffer) {
  struct copy c;
  expr_id index[STEP_LOOPS];
  for (int i = 0; i < g->count; i++)
    index[i] = g->by[i] ? expr_local(g->k, g->by[i]->local) : expr_operand(g->k, g->load, g->whole[i]);
  expr_id staged = expr_load(g->k, buffer, 0, index, g->count);
  copy_begin(&c, g->k, g->k);
  c.memo[g->value] = staged;
  replace_exprs(&c, g->at->body);
  copy_end(&c);
}

/* A loop of the step that there is none of inside of this one; NULL: all are there. */
static const char *missing_loop(const struct kernel *k, const struct step *s, const struct stmt *loop) {
  for (int i = 0; i < STEP_LOOPS && s->on[i]; i++) {
    loops_found found = {0};
    if (*s->on[i] != '.')
      find_loops(loop->body, k, s->on[i], &found);
    bool is_missing = *s->on[i] != '.' && !found.count;
    vec_free(&found);
    if (is_missing)
      return s->on[i];
  }
  return NULL;
}
/* A loop that loads nothing from the buffer, or has not all of those loops inside, stays as it is: of a name that several nests have, those
 * that start or finish sums. */
static status stage_at(struct kernel *k, const struct step *s, struct stmt *loop) {
  struct staging g = {.k = k, .s = s, .at = loop};
  struct stmt *pieces = NULL;
  uint32_t buffer = 0;
  TRY(find_load(&g));
  if (g.load == NO_EXPR || missing_loop(k, s, loop))
    return OK;
  TRY(find_by(&g));
  TRY(check_load(&g));
  TRY(find_value(&g));
  TRY(check_value(&g, g.value));
  g.when = expr_int(k, DTYPE_BOOL, 1);
  if (!is_always_there(&g, g.value)) {
    g.when = NO_EXPR;
    TRY(find_ways(&g, loop->body, expr_int(k, DTYPE_BOOL, 1)));
  }
  TRY(make_buffer(&g, &pieces, &buffer));
  fill_buffer(&g, &pieces, buffer);
  use_buffer(&g, buffer);
  pieces->next->next = loop->body;
  loop->body = pieces;
  return OK;
}

static status nothing_staged(struct kernel *k, const struct step *s) {
  loops_found found = {0};
  const char *missing = NULL;
  find_loops(k->body, k, s->at[0], &found);
  for (uint32_t i = 0; i < found.count && !missing; i++)
    missing = missing_loop(k, s, found.items[i]);
  vec_free(&found);
  return missing ? REFUSED("inside of loop %s there is not one loop %s", s->at[0], missing)
                 : REFUSED("loop %s loads nothing from that buffer", s->at[0]);
}
status step_stage(struct kernel *k, const struct step *s) {
  uint32_t before = k->buffers.count;
  TRY(step_check_buffer(k, s));
  TRY(each_loop(k, s, s->at[0], stage_at));
  return k->buffers.count > before ? OK : nothing_staged(k, s);
}
