/* kernel_nests.c: see kernel_nests.h. */
#include "ir/kernel/kernel_nests.h"

#include <stdlib.h>
#include <string.h>

static bool is_par(const struct stmt *s) { return s && s->kind == STMT_FOR && s->loop == LOOP_PAR; }

/* ---- loops that run as one ---- */

/* Whether e uses locals i and j only as neighbouring indices [.. i, j ..] of buffers whose second dimension is j's extent. */
struct merge_test {
  const struct kernel_uses *uses;
  bool *seen; /* by expression: it does */
  uint32_t outer, inner;
  expr_id extent; /* of inner */
};
static bool index_merges(const struct merge_test *t, const struct kernel_buffer *b, const expr_id *index);

static bool expr_merges(const struct merge_test *t, expr_id e) {
  const struct kernel *k = t->uses->k;
  const struct expr *x = expr_get(k, e);
  if (t->seen[e] || (!uses_local(t->uses, e, t->outer) && !uses_local(t->uses, e, t->inner)))
    return true;
  t->seen[e] = true; /* where it is not so, nothing is asked any more */
  if (x->op == SCALAR_LOCAL)
    return x->imm != t->outer && x->imm != t->inner;
  if (x->op == SCALAR_LOAD)
    return index_merges(t, &k->buffers.items[x->imm], &k->operands.items[x->first]);
  for (int i = 0; i < x->count; i++)
    if (!expr_merges(t, expr_operand(k, e, i)))
      return false;
  return true;
}
static bool dim_is_extent(const struct kernel *k, kernel_dim dim, expr_id extent) {
  const struct expr *x = expr_get(k, extent);
  return DIM_IS_SIZE(dim) ? x->op == SCALAR_SIZE && x->imm == SIZE_OF_DIM(dim) : x->op == SCALAR_CONST && x->imm == dim;
}
static bool index_merges(const struct merge_test *t, const struct kernel_buffer *b, const expr_id *index) {
  const struct kernel *k = t->uses->k;
  for (int d = 0; d < b->rank; d++) {
    if (expr_is_local(k, index[d], t->outer) && d + 1 < b->rank && expr_is_local(k, index[d + 1], t->inner) &&
        dim_is_extent(k, b->dims[d + 1], t->extent)) {
      d++;
      continue;
    }
    if (!expr_merges(t, index[d]))
      return false;
  }
  return true;
}
static bool block_merges(const struct merge_test *t, const struct stmt *s) {
  for (; s; s = s->next) {
    if (s->value != NO_EXPR && !expr_merges(t, s->value))
      return false;
    if (s->kind == STMT_STORE && !index_merges(t, &t->uses->k->buffers.items[s->buffer], s->index))
      return false;
    for (int i = 0; s->kind == STMT_CHECK && i < STATUS_SHOWN; i++)
      if (s->shown[i] != NO_EXPR && !expr_merges(t, s->shown[i]))
        return false;
    if (!block_merges(t, s->body) || !block_merges(t, s->otherwise))
      return false;
  }
  return true;
}
static bool loops_merge(const struct kernel_uses *uses, const struct chain *c, const struct stmt *outer, const struct stmt *inner) {
  struct merge_test t = {.uses = uses, .outer = outer->local, .inner = inner->local, .extent = inner->value};
  t.seen = calloc(uses->k->exprs.count + 1, sizeof *t.seen);
  bool merges = block_merges(&t, c->inside);
  free(t.seen);
  return merges;
}

/* ---- chains ---- */

static bool uses_chain_local(const struct kernel_uses *uses, expr_id e, const struct chain *c) {
  for (int i = 0; i < c->count; i++)
    if (uses_local(uses, e, c->loops[i]->local))
      return true;
  return false;
}
void chain_group(const struct kernel_uses *uses, struct chain *c) {
  c->group_count = 0;
  for (int i = 0; i < c->count; i++) {
    if (i > 0 && loops_merge(uses, c, c->loops[i - 1], c->loops[i]))
      c->groups[c->group_count - 1].last = i;
    else
      c->groups[c->group_count++] = (struct chain_group){i, i};
  }
}
static void find_chain(const struct kernel_uses *uses, struct stmt *s, bool of_tasks, struct chain *c) {
  for (; is_par(s) && (s->run == RUN_TASKS) == of_tasks && s->run != RUN_UNROLL && c->count < CHAIN_MAX; s = s->body) {
    if (uses_chain_local(uses, s->value, c) || uses_loads(uses, s->value))
      break;
    c->loops[c->count++] = s;
    c->inside = s->body;
    if (!s->body || s->body->next || s->run == RUN_VECTORS)
      break;
  }
  if (!of_tasks)
    chain_group(uses, c);
  for (int i = 0; of_tasks && i < c->count; i++)
    c->groups[c->group_count++] = (struct chain_group){i, i};
}

/* ---- nests ---- */

struct nest_list {
  const struct kernel_uses *uses;
  struct kernel_nest *items; /* NESTS_MAX */
  int count;
  struct nest_condition conditions[CONDITIONS_MAX];
  int condition_count;
};
static bool add_nest(struct nest_list *list, struct stmt *s) {
  bool is_scheduled = stmt_is_scheduled(s);
  if (list->count == NESTS_MAX || (!is_scheduled && !is_par(s)))
    return false;
  struct kernel_nest *n = &list->items[list->count++];
  *n = (struct kernel_nest){.body = s, .is_scheduled = is_scheduled, .condition_count = list->condition_count};
  memcpy(n->conditions, list->conditions, sizeof n->conditions);
  find_chain(list->uses, s, is_scheduled, &n->chain);
  return is_scheduled || n->chain.count > 0;
}
/* false: these are no nests. */
static bool add_nests(struct nest_list *list, struct stmt *s) {
  for (; s; s = s->next) {
    if (s->kind == STMT_BUFFER && list->uses->k->buffers.items[s->buffer].space == SPACE_TASK)
      continue;
    if (s->kind != STMT_IF) {
      if (s->kind != STMT_FOR || !add_nest(list, s))
        return false;
      continue;
    }
    if (!uses_only_sizes(list->uses, s->value) || list->condition_count == CONDITIONS_MAX)
      return false;
    struct nest_condition *condition = &list->conditions[list->condition_count++];
    *condition = (struct nest_condition){s->value, false};
    if (!add_nests(list, s->body))
      return false;
    condition->inverted = true;
    if (!add_nests(list, s->otherwise))
      return false;
    list->condition_count--;
  }
  return true;
}
int kernel_nests(const struct kernel_uses *uses, struct kernel_nest *out) {
  struct nest_list list = {.uses = uses, .items = out};
  return uses->k->body && add_nests(&list, uses->k->body) ? list.count : 0;
}

bool block_joins_nests(const struct stmt *block) {
  bool found = false;
  for (const struct stmt *s = block; s; s = s->next) {
    if (s->kind != STMT_BUFFER && (s->kind != STMT_FOR || (s->loop != LOOP_PAR && !stmt_is_scheduled(s))))
      return false; /* a sum stands here where steps left its rows one turn */
    found = found || (s->kind == STMT_FOR && !stmt_is_scheduled(s));
  }
  return found && block->next;
}
