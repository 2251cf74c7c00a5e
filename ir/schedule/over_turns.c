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

static uint32_t wrap_sum(struct kernel *k, struct stmt *sum, int64_t turns) {
  struct stmt *made = NULL, *loop = stmt_for(k, &made, LOOP_RED, number(k, turns)), *inner = ARENA_NEW(k->arena, struct stmt);
  *inner = *sum;
  inner->next = NULL;
  loop->body = inner;
  uint32_t turn = loop->local;
  replace_loop(sum, made);
  return turn;
}
static void add_dim(struct kernel *k, struct kernel_buffer *b, int64_t extent) {
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

struct kernel *kernel_over_turns(const struct kernel *k, const bool *is_row, int64_t turns, struct arena *arena, int64_t *terms) {
  struct arena work;
  struct kernel_uses uses;
  struct contraction c;
  struct kernel *made = NULL;
  arena_init(&work);
  struct kernel *copied = schedule_copy(k, &work);
  kernel_uses_find(copied, &work, &uses);
  if (copied->body && !copied->body->next && !copied->size_count && contraction_find(&uses, copied->body, &c) && !c.is_ragged &&
      stores_the_sum(&c) && has_row(&c, is_row) && has_room(copied, is_row)) {
    *terms = terms_of(&c);
    uint32_t turn = wrap_sum(copied, (struct stmt *)c.sum, turns);
    for (uint32_t i = 0; i < copied->buffers.count; i++)
      if (is_row[i])
        add_dim(copied, &copied->buffers.items[i], turns);
    index_rows(copied, is_row, turn);
    made = schedule_copy(copied, arena); /* without the expressions that are no longer used */
  }
  kernel_free(copied);
  arena_deinit(&work);
  return made;
}
