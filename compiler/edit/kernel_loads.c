/* kernel_loads.c: see kernel_loads.h. */
#include "compiler/edit/kernel_loads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 31

struct loads {
  const struct kernel *k;
  uint32_t buffer;
  struct kernel_loads found;
  bool is_gathered; /* by an index that is loaded itself */
  const struct stmt *loops[DEPTH_MAX];
  int depth;
  bool *seen;
};

#define SUM_VISITS 256 /* of a longer sum nothing is said: expressions are a DAG, whose walk may be much longer than it is large */

/* e = the sum of factors[d] * loop d, and what does not move; false: it is no such sum. */
struct loop_sum {
  double factors[DEPTH_MAX];
  int visits;
};
static bool is_sum_of_loops(const struct loads *l, expr_id e, double factor, struct loop_sum *sum) {
  const struct kernel *k = l->k;
  if (++sum->visits > SUM_VISITS)
    return false;
  const struct expr *x = expr_get(k, e);
  int64_t by;
  for (int i = 0; x->op == SCALAR_MUL && i < 2; i++)
    if (expr_is_const(k, expr_operand(k, e, i), &by))
      return is_sum_of_loops(l, expr_operand(k, e, 1 - i), factor * (double)by, sum);
  if (x->op == SCALAR_ADD || x->op == SCALAR_SUB)
    return is_sum_of_loops(l, expr_operand(k, e, 0), factor, sum) &&
           is_sum_of_loops(l, expr_operand(k, e, 1), x->op == SCALAR_SUB ? -factor : factor, sum);
  for (int d = 0; d < l->depth && x->op == SCALAR_LOCAL; d++)
    if (x->imm == l->loops[d]->local)
      sum->factors[d] += factor;
  return x->op == SCALAR_LOCAL || x->op == SCALAR_CONST || x->op == SCALAR_SIZE;
}
/* An index that stays inside: max(min(i, n - 1), 0). */
static expr_id without_clamp(const struct kernel *k, expr_id e) {
  const struct expr *x = expr_get(k, e);
  while (x->op == SCALAR_MIN || x->op == SCALAR_MAX) {
    int moving = expr_get(k, expr_operand(k, e, 0))->op == SCALAR_CONST ? 1 : 0;
    e = expr_operand(k, e, moving);
    x = expr_get(k, e);
  }
  return e;
}
/* Whether loops that move an index together give it a value more than once: of a window, i + j, they do; of i * 4 + j with j < 4 they do
 * not. Of two whose extents are not known, one may well be 1: the axes of a reduction that the step knows. */
static bool index_repeats(const struct loads *l, expr_id e) {
  struct loop_sum sum = {.visits = 0};
  double *factors = sum.factors, reach = 0, known_reach = 0;
  e = without_clamp(l->k, e);
  if (!is_sum_of_loops(l, e, 1, &sum))
    return false;
  for (;;) { /* from the loop with the least steps on: each must step over all that those before it reach */
    int least = -1;
    int64_t extent;
    for (int d = 0; d < l->depth; d++)
      if (factors[d] != 0 && (least < 0 || fabs(factors[d]) < fabs(factors[least])))
        least = d;
    if (least < 0)
      return false;
    bool known = expr_is_const(l->k, l->loops[least]->value, &extent);
    double step = fabs(factors[least]), length = !known ? INT32_MAX : extent > 1 ? (double)(extent - 1) : 0;
    if (length > 0 && step <= (known ? reach : known_reach))
      return true;
    reach += step * length;
    known_reach += known ? step * length : 0;
    factors[least] = 0;
  }
}

static bool runs_once(const struct kernel *k, const struct stmt *loop) {
  int64_t extent;
  return expr_is_const(k, loop->value, &extent) && extent == 1;
}

static void look_at_expr(struct loads *l, expr_id e) {
  if (l->seen[e])
    return;
  l->seen[e] = true;
  const struct expr *x = expr_get(l->k, e);
  if (x->op == SCALAR_LOAD && x->imm == (int64_t)l->buffer) {
    l->found.count++;
    for (int d = 0; d < l->depth; d++) {
      bool moves = runs_once(l->k, l->loops[d]);
      for (int i = 0; i < x->count && !moves; i++)
        moves = expr_reads_local(l->k, expr_operand(l->k, e, i), l->loops[d]->local);
      l->found.repeated = l->found.repeated || !moves;
    }
    for (int i = 0; i < x->count; i++) {
      l->found.repeated = l->found.repeated || index_repeats(l, expr_operand(l->k, e, i));
      l->is_gathered = l->is_gathered || expr_has_load(l->k, expr_operand(l->k, e, i));
    }
  }
  for (int i = 0; i < x->count; i++)
    look_at_expr(l, expr_operand(l->k, e, i));
}

static void look_at_block(struct loads *l, const struct stmt *s) {
  for (; s; s = s->next) {
    memset(l->seen, 0, l->k->exprs.count);
    look_at_expr(l, s->value);
    for (int i = 0; i < s->index_count; i++)
      look_at_expr(l, s->index[i]);
    bool opens = s->kind == STMT_FOR && l->depth < DEPTH_MAX;
    if (opens)
      l->loops[l->depth++] = s;
    if (s->kind == STMT_WHILE)
      l->found.repeated = true;
    look_at_block(l, s->body);
    if (opens)
      l->depth--;
    look_at_block(l, s->otherwise);
  }
}

struct kernel_loads kernel_loads(const struct kernel *k, uint32_t buffer) {
  struct loads l = {.k = k, .buffer = buffer, .seen = calloc(k->exprs.count + 1, 1)};
  look_at_block(&l, k->body);
  l.found.repeated = l.found.repeated || (l.is_gathered && l.found.count > 1); /* neighbours that a table names: others name them, too */
  free(l.seen);
  return l.found;
}
