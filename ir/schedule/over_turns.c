/* over_turns.c: see over_turns.h. */
#include "ir/schedule/over_turns.h"

#include <string.h>

#include "ir/kernel/contraction.h"
#include "ir/schedule/schedule_rewrite.h"

/* ---- which kernels ---- */

/* Nothing but a var that begins at 0, the sum, and a store of it where no load says. */
static bool stores_the_sum(const struct contraction *c) {
  const struct stmt *var = c->inside, *store = c->sum->next;
  int64_t start;
  bool is_sum = var->kind == STMT_VAR && var->local == c->local && expr_is_const(c->k, var->value, &start) && start == 0 &&
                var->next == c->sum && store && store->kind == STMT_STORE && !store->next && expr_is_local(c->k, store->value, c->local);
  for (int i = 0; is_sum && i < store->index_count; i++)
    is_sum = !expr_has_load(c->k, store->index[i]);
  return is_sum;
}
static bool has_row(const struct contraction *c, const bool *is_row) {
  for (int f = 0; f < FACTORS; f++)
    if (c->load[f] != NO_EXPR && is_row[expr_get(c->k, c->load[f])->imm])
      return true;
  return false;
}
static int64_t terms_of(const struct contraction *c) {
  int64_t terms = 1;
  for (int i = c->par_count; i < c->axis_count; i++)
    terms *= c->axes[i].extent < 1 ? 1 : c->axes[i].extent;
  return terms;
}
static bool has_room(const struct kernel *k, const bool *is_row) {
  for (uint32_t i = 0; i < k->buffers.count; i++)
    if (is_row[i] && (k->buffers.items[i].mode != BUFFER_IN || k->buffers.items[i].rank == LIMIT_RANK))
      return false;
  return true;
}

/* ---- the rewrite ---- */

/* A loop of so many turns around this one; its variable. */
static uint32_t wrap_loop(struct kernel *k, struct stmt *inside, enum loop_kind kind, kernel_dim turns) {
  expr_id extent = DIM_IS_SIZE(turns) ? expr_size(k, k->size_count++) : number(k, turns);
  struct stmt *made = NULL, *loop = stmt_for(k, &made, kind, extent), *inner = ARENA_NEW(k->arena, struct stmt);
  *inner = *inside;
  inner->next = NULL;
  loop->body = inner;
  uint32_t turn = loop->local;
  replace_loop(inside, made);
  return turn;
}
static void add_dim(struct kernel *k, struct kernel_buffer *b, kernel_dim extent) {
  kernel_dim *dims = ARENA_ARRAY(k->arena, kernel_dim, b->rank + 1);
  memcpy(dims + 1, b->dims, sizeof *dims * (size_t)b->rank);
  dims[0] = extent;
  b->dims = dims;
  b->rank++;
}
static void index_rows(struct kernel *k, const bool *is_row, uint32_t turn) {
  struct copy c;
  copy_begin(&c, k, k);
  for (expr_id e = 1; e < c.exprs; e++) {
    const struct expr x = *expr_get(k, e);
    expr_id index[LIMIT_RANK];
    if (x.op != SCALAR_LOAD || !is_row[x.imm])
      continue;
    index[0] = expr_local(k, turn);
    for (int i = 0; i < x.count; i++)
      index[i + 1] = copy_expr(&c, expr_operand(k, e, i));
    c.memo[e] = expr_load(k, (uint32_t)x.imm, x.part, index, x.count + 1);
  }
  replace_exprs(&c, k->body);
  copy_end(&c);
}

/* A copy of a kernel that is a sum of products, which is rewritten. */
struct rewrite {
  struct arena work;
  struct kernel *k;
  struct kernel_uses uses; /* of what it was */
  struct contraction c;
};
static bool begin_rewrite(struct rewrite *r, const struct kernel *k, const bool *is_row) {
  arena_init(&r->work);
  r->k = schedule_copy(k, &r->work);
  kernel_uses_find(r->k, &r->work, &r->uses);
  return r->k->body && !r->k->body->next && contraction_find(&r->uses, r->k->body, &r->c) && !r->c.is_ragged && stores_the_sum(&r->c) &&
         has_row(&r->c, is_row) && has_room(r->k, is_row);
}
/* Rows get their dimension. */
static void lengthen_rows(struct rewrite *r, const bool *is_row, kernel_dim turns, uint32_t turn) {
  for (uint32_t i = 0; i < r->k->buffers.count; i++)
    if (is_row[i])
      add_dim(r->k, &r->k->buffers.items[i], turns);
  index_rows(r->k, is_row, turn);
}
static void end_rewrite(struct rewrite *r) {
  kernel_free(r->k);
  arena_deinit(&r->work);
}

struct kernel *kernel_over_turns(const struct kernel *k, const bool *is_row, kernel_dim turns, struct arena *arena, int64_t *terms) {
  struct rewrite r;
  struct kernel *made = NULL;
  if (begin_rewrite(&r, k, is_row)) {
    *terms = terms_of(&r.c);
    lengthen_rows(&r, is_row, turns, wrap_loop(r.k, (struct stmt *)r.c.sum, LOOP_RED, turns));
    made = schedule_copy(r.k, arena); /* without the expressions that are no longer used */
  }
  end_rewrite(&r);
  return made;
}

/* ---- for each turn ---- */

#define ROWS_OPEN 32 /* of a step that says how many it has */

/* The factor that is no row, where the other one is; -1: none. */
static int steady_factor(const struct contraction *c, const bool *is_row) {
  bool row[FACTORS];
  for (int f = 0; f < FACTORS; f++) {
    if (c->load[f] == NO_EXPR)
      return -1;
    row[f] = is_row[expr_get(c->k, c->load[f])->imm];
  }
  return row[0] == row[1] ? -1 : row[0] ? 1 : 0;
}
static int64_t uses_of(const struct contraction *c, int factor) {
  int64_t uses = 1;
  for (int i = 0; i < c->par_count; i++) {
    int64_t extent = c->axes[i].extent < 0 ? ROWS_OPEN : c->axes[i].extent;
    uses *= c->axes[i].in[factor] || extent < 1 ? 1 : extent;
  }
  return uses;
}
static void store_rows(struct rewrite *r, kernel_dim turns, uint32_t turn) {
  struct stmt *store = r->c.sum->next;
  expr_id *index = ARENA_ARRAY(r->k->arena, expr_id, store->index_count + 1);
  memcpy(index + 1, store->index, sizeof *index * (size_t)store->index_count);
  index[0] = expr_local(r->k, turn);
  store->index = index;
  store->index_count++;
  add_dim(r->k, &r->k->buffers.items[store->buffer], turns);
}

struct kernel *kernel_each_turn(const struct kernel *k, const bool *is_row, kernel_dim turns, struct arena *arena, int64_t *uses,
                                uint32_t *steady) {
  struct rewrite r;
  struct kernel *made = NULL;
  int factor = begin_rewrite(&r, k, is_row) ? steady_factor(&r.c, is_row) : -1;
  if (factor >= 0 && r.k->buffers.items[r.c.sum->next->buffer].rank < LIMIT_RANK) {
    *uses = uses_of(&r.c, factor);
    *steady = (uint32_t)expr_get(r.k, r.c.load[factor])->imm;
    uint32_t turn = wrap_loop(r.k, (struct stmt *)r.c.top, LOOP_PAR, turns);
    store_rows(&r, turns, turn);
    lengthen_rows(&r, is_row, turns, turn);
    made = schedule_copy(r.k, arena);
  }
  end_rewrite(&r);
  return made;
}

/* ---- some of the terms ---- */

/* The loop over all terms along `dim` where the factor is loaded, whose variable is no part of another index; NULL: there is none. */
static struct stmt *loop_of_terms(const struct rewrite *r, expr_id load, int dim) {
  const struct contraction *c = &r->c;
  const kernel_dim *dims = r->k->buffers.items[expr_get(r->k, load)->imm].dims;
  const struct stmt *found = NULL;
  for (int i = c->par_count; i < c->axis_count && !DIM_IS_SIZE(dims[dim]); i++)
    if (expr_is_local(r->k, expr_operand(r->k, load, dim), c->axes[i].loop->local) && c->axes[i].extent == dims[dim])
      found = c->axes[i].loop;
  for (int i = 0; found && i < expr_get(r->k, load)->count; i++)
    if (i != dim && uses_local(&r->uses, expr_operand(r->k, load, i), found->local))
      return NULL;
  return (struct stmt *)found;
}
static void narrow_dim(struct kernel *k, struct kernel_buffer *b, int dim, int64_t count) {
  b->dims = arena_copy(k->arena, b->dims, sizeof *b->dims * (size_t)b->rank);
  b->dims[dim] = count;
}
/* Its variable counts from `from` on, but where the part is loaded. */
static void shift_terms(struct kernel *k, expr_id load, int dim, uint32_t term, int64_t from) {
  struct copy c;
  expr_id index[LIMIT_RANK];
  copy_begin(&c, k, k);
  c.local[term] = expr_binary(k, SCALAR_ADD, expr_local(k, term), number(k, from));
  const struct expr x = *expr_get(k, load); /* a copy: new expressions move it */
  for (int i = 0; i < x.count; i++)
    index[i] = i == dim ? expr_local(k, term) : copy_expr(&c, expr_operand(k, load, i));
  c.memo[load] = expr_load(k, (uint32_t)x.imm, x.part, index, x.count);
  replace_exprs(&c, k->body);
  copy_end(&c);
}

static bool is_wide_float(enum dtype dtype) { return dtype == DTYPE_FLOAT || dtype == DTYPE_DOUBLE; }
struct kernel *kernel_of_terms(const struct kernel *k, uint32_t part, int dim, int64_t from, int64_t count, struct arena *arena) {
  struct rewrite r;
  struct kernel *made = NULL;
  bool *is_part = ARENA_ARRAY(arena, bool, k->buffers.count + 1);
  is_part[part] = true;
  int other = begin_rewrite(&r, k, is_part) && is_wide_float(r.c.dtype) ? steady_factor(&r.c, is_part) : -1;
  expr_id load = other >= 0 ? r.c.load[1 - other] : NO_EXPR;
  struct stmt *loop = load != NO_EXPR && !r.c.test && r.c.factor[1 - other] == load ? loop_of_terms(&r, load, dim) : NULL;
  if (loop) {
    shift_terms(r.k, load, dim, loop->local, from);
    narrow_dim(r.k, &r.k->buffers.items[part], dim, count);
    loop->value = number(r.k, count);
    made = schedule_copy(r.k, arena);
  }
  end_rewrite(&r);
  return made;
}
