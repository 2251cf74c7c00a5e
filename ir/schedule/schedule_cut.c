/* schedule_cut.c: the step `cut`: a loop over parts of its range.
 *
 * At constants, it becomes several. Without them, a sum becomes shorter: where its terms are nothing but for a range of the loop, as with
 * the border of a convolution, it runs over that range, and does not test for it. */
#include <stdlib.h>

#include "ir/schedule/schedule_rewrite.h"

#define TESTS_MAX 16

/* ---- at constants ---- */

static status cut_at(struct kernel *k, const struct step *s, struct stmt *loop) {
  struct stmt *pieces = NULL;
  expr_id extent = loop->value;
  int64_t from = 0, whole;
  bool known = expr_is_const(k, extent, &whole);
  TRY(loop_check_plain(k, loop));
  for (int i = 0; i < name_count(s->made); i++) {
    bool last = i + 1 == name_count(s->made);
    if (!last && (s->n[i] <= from || (known && s->n[i] >= whole)))
      return REFUSED("the points of a cut ascend inside of the range");
    expr_id end = last ? extent : expr_binary(k, SCALAR_MIN, extent, number(k, s->n[i]));
    struct stmt *piece = loop_make(k, &pieces, loop, sub(k, end, number(k, from)), s->made[i]);
    copy_body(k, loop, add(k, number(k, from), expr_local(k, piece->local)), &piece->body);
    from = last ? from : s->n[i];
  }
  replace_loop(loop, pieces);
  return OK;
}

/* ---- tests that a loop decides ---- */

/* What a term hangs on: tests that must all hold, `own` of them of the loop. */
struct guard {
  expr_id whole; /* the condition */
  expr_id owner; /* the select; NO_EXPR: a statement */
  expr_id tests[TESTS_MAX];
  bool own[TESTS_MAX];
  int count;
  struct {
    expr_id value; /* is in [low, high] where the term is there */
    int64_t low, high;
  } facts[TESTS_MAX];
  int fact_count;
};

static bool flatten(const struct kernel *k, expr_id e, struct guard *g) {
  if (expr_get(k, e)->op == SCALAR_AND)
    return flatten(k, expr_operand(k, e, 0), g) && flatten(k, expr_operand(k, e, 1), g);
  if (g->count == TESTS_MAX)
    return false;
  g->tests[g->count++] = e;
  return true;
}

/* e = factor * local + *rest, with a factor of -1, 0 or 1. */
static bool split_linear(struct kernel *k, expr_id e, uint32_t local, int *factor, expr_id *rest) {
  if (!expr_reads_local(k, e, local)) {
    *factor = 0;
    *rest = e;
    return true;
  }
  struct expr x = *expr_get(k, e);
  if (x.op == SCALAR_LOCAL) {
    *factor = 1;
    *rest = number(k, 0);
    return true;
  }
  int a, b;
  expr_id p, q;
  if ((x.op != SCALAR_ADD && x.op != SCALAR_SUB) || !split_linear(k, expr_operand(k, e, 0), local, &a, &p) ||
      !split_linear(k, expr_operand(k, e, 1), local, &b, &q))
    return false;
  *factor = x.op == SCALAR_ADD ? a + b : a - b;
  *rest = expr_binary(k, (enum scalar_op)x.op, p, q);
  return *factor >= -1 && *factor <= 1;
}

/* The range of the loop in which `test`, a <= b or a < b, holds: *low and *end shrink to it. */
static bool narrow(struct kernel *k, expr_id test, uint32_t local, expr_id *low, expr_id *end) {
  struct expr x = *expr_get(k, test);
  int factor_a, factor_b;
  expr_id a, b;
  if ((x.op != SCALAR_LE && x.op != SCALAR_LT) || expr_get(k, expr_operand(k, test, 0))->dtype != DTYPE_INT64 ||
      !split_linear(k, expr_operand(k, test, 0), local, &factor_a, &a) || !split_linear(k, expr_operand(k, test, 1), local, &factor_b, &b))
    return false;
  int factor = factor_b - factor_a;
  int strict = x.op == SCALAR_LT;
  if (factor == 1) /* local + b - a >= strict */
    *low = expr_binary(k, SCALAR_MAX, *low, add(k, sub(k, a, b), number(k, strict)));
  else if (factor == -1) /* local <= b - a - strict */
    *end = expr_binary(k, SCALAR_MIN, *end, add(k, sub(k, b, a), number(k, 1 - strict)));
  return factor == 1 || factor == -1;
}

/* Bounds of an expression that a test of the loop proves: for clamps, which are then gone. */
static void note_fact(struct guard *g, const struct kernel *k, expr_id test) {
  bool strict = expr_get(k, test)->op == SCALAR_LT;
  expr_id a = expr_operand(k, test, 0), b = expr_operand(k, test, 1);
  int64_t bound;
  bool is_low = expr_is_const(k, a, &bound);
  if (!is_low && !expr_is_const(k, b, &bound))
    return;
  expr_id value = is_low ? b : a;
  int i = 0;
  while (i < g->fact_count && g->facts[i].value != value)
    i++;
  if (i == g->fact_count) {
    g->facts[g->fact_count++].value = value;
    g->facts[i].low = INT64_MIN;
    g->facts[i].high = INT64_MAX;
  }
  if (is_low)
    g->facts[i].low = bound + strict;
  else
    g->facts[i].high = bound - strict;
}

/* ---- where a term is guarded ---- */

static bool is_zero(const struct kernel *k, expr_id e) {
  int64_t bits;
  return expr_is_const(k, e, &bits) && bits == 0;
}

/* The select that makes the factor e 0, in a product or by itself. */
static expr_id guarded_factor(const struct kernel *k, expr_id e, uint32_t local) {
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_SELECT)
    return is_zero(k, expr_operand(k, e, 2)) && expr_reads_local(k, expr_operand(k, e, 0), local) ? e : NO_EXPR;
  if (x->op != SCALAR_MUL)
    return NO_EXPR;
  expr_id first = guarded_factor(k, expr_operand(k, e, 0), local);
  return first ? first : guarded_factor(k, expr_operand(k, e, 1), local);
}

static const struct stmt *find_var(const struct stmt *s, uint32_t local) {
  for (; s; s = s->next) {
    if (s->kind == STMT_VAR && s->local == local)
      return s;
    const struct stmt *inside = find_var(s->body, local);
    inside = inside ? inside : find_var(s->otherwise, local);
    if (inside)
      return inside;
  }
  return NULL;
}

/* A sum that begins with a number that is not -0 is not changed by adding 0. */
static bool keeps_with_zero(const struct kernel *k, uint32_t local) {
  const struct stmt *var = find_var(k->body, local);
  enum dtype dtype = k->locals.items[local].dtype;
  if (!dtype_is_float(dtype))
    return true;
  return var && expr_is_const(k, var->value, NULL) && expr_get(k, var->value)->imm != expr_double_to_bits(dtype, -0.0);
}

/* x = x + term, x = fma(a, b, x): the select in the term. x = max(x, select(inside, e, lowest)) where x began with `lowest`, min alike. */
static expr_id guarded_term(struct kernel *k, const struct stmt *set, uint32_t local) {
  struct expr x = *expr_get(k, set->value);
  expr_id self = expr_local(k, set->local);
  if (x.op == SCALAR_FMA && expr_operand(k, set->value, 2) == self && keeps_with_zero(k, set->local)) {
    expr_id first = guarded_factor(k, expr_operand(k, set->value, 0), local);
    return first ? first : guarded_factor(k, expr_operand(k, set->value, 1), local);
  }
  for (int i = 0; x.count == 2 && i < 2; i++) {
    expr_id term = expr_operand(k, set->value, 1 - i);
    if (expr_operand(k, set->value, i) != self)
      continue;
    if (x.op == SCALAR_ADD && keeps_with_zero(k, set->local))
      return guarded_factor(k, term, local);
    const struct stmt *var = find_var(k->body, set->local);
    if ((x.op == SCALAR_MAX || x.op == SCALAR_MIN) && expr_get(k, term)->op == SCALAR_SELECT && var && expr_is_const(k, var->value, NULL) &&
        expr_operand(k, term, 2) == var->value)
      return term;
  }
  return NO_EXPR;
}

/* The statement in a perfect nest of red loops. */
static struct stmt *innermost(struct stmt *loop) {
  struct stmt *s = loop;
  while (s && s->kind == STMT_FOR && s->loop == LOOP_RED && !(s != loop && s->next))
    s = s->body;
  return s && !s->next ? s : NULL;
}

static status find_guard(struct kernel *k, const struct step *s, struct stmt *loop, struct guard *g) {
  struct stmt *term = innermost(loop);
  if (!term || (term->kind != STMT_SET && (term->kind != STMT_IF || term->otherwise)))
    return REFUSED("inside of loop %s there is more than one term", s->on[0]);
  g->owner = term->kind == STMT_SET ? guarded_term(k, term, loop->local) : NO_EXPR;
  if (term->kind == STMT_SET && g->owner == NO_EXPR)
    return REFUSED("no test says where the terms of loop %s are 0", s->on[0]);
  g->whole = term->kind == STMT_IF ? term->value : expr_operand(k, g->owner, 0);
  return flatten(k, g->whole, g) ? OK : REFUSED("too many tests");
}

/* The extent and the start of the range in which the tests of the loop hold. */
static status find_bounds(struct kernel *k, const struct step *s, struct stmt *loop, struct guard *g, expr_id *low, expr_id *end) {
  bool any = false;
  *low = number(k, 0);
  *end = loop->value;
  for (int i = 0; i < g->count; i++) {
    g->own[i] = expr_reads_local(k, g->tests[i], loop->local);
    if (!g->own[i])
      continue;
    if (expr_has_load(k, g->tests[i]) || !narrow(k, g->tests[i], loop->local, low, end))
      return REFUSED("a test of loop %s is no bound of it", s->on[0]);
    any = true;
    note_fact(g, k, g->tests[i]);
  }
  for (struct stmt *t = loop->body; t && t->kind == STMT_FOR; t = t->body)
    if (expr_reads_local(k, *low, t->local) || expr_reads_local(k, *end, t->local))
      return REFUSED("a test of loop %s hangs on loop %s inside of it", s->on[0], loop_name(k, t));
  return any ? OK : REFUSED("no test of the sum is of loop %s", s->on[0]);
}

/* ---- without the test ---- */

/* min(e, c) and max(e, c) are e where the facts say so. */
static void drop_clamps(struct copy *c, const struct guard *g) {
  for (expr_id e = 1; e < c->exprs; e++) {
    const struct expr x = *expr_get(c->from, e);
    int64_t bound;
    if ((x.op != SCALAR_MIN && x.op != SCALAR_MAX) || !expr_is_const(c->from, expr_operand(c->from, e, 1), &bound))
      continue;
    for (int i = 0; i < g->fact_count; i++) {
      expr_id value = copy_expr(c, g->facts[i].value), inner = expr_operand(c->from, e, 0);
      bool same = inner == g->facts[i].value || c->memo[inner] == value;
      if (same && (x.op == SCALAR_MIN ? g->facts[i].high <= bound : g->facts[i].low >= bound))
        c->memo[e] = value;
    }
  }
}

static expr_id rest_of_tests(struct copy *c, const struct guard *g) {
  expr_id rest = expr_int(c->to, DTYPE_BOOL, 1);
  for (int i = 0; i < g->count; i++)
    if (!g->own[i])
      rest = expr_binary(c->to, SCALAR_AND, rest, copy_expr(c, g->tests[i]));
  return rest;
}

static void drop_tests(struct kernel *k, struct stmt *loop, const struct guard *g) {
  struct copy c;
  copy_begin(&c, k, k);
  drop_clamps(&c, g);
  c.memo[g->whole] = rest_of_tests(&c, g);
  replace_exprs(&c, loop->body);
  copy_end(&c);
}

static status cut_guard(struct kernel *k, const struct step *s, struct stmt *loop) {
  struct guard g = {0};
  struct stmt *made = NULL;
  expr_id low, end;
  TRY(loop_check_plain(k, loop));
  if (loop->loop != LOOP_RED)
    return REFUSED("loop %s is no sum", s->on[0]);
  TRY(find_guard(k, s, loop, &g));
  TRY(find_bounds(k, s, loop, &g, &low, &end));
  drop_tests(k, loop, &g);
  struct stmt *shorter = loop_make(k, &made, loop, sub(k, end, low), s->on[0]);
  copy_body(k, loop, add(k, low, expr_local(k, shorter->local)), &shorter->body);
  replace_loop(loop, made);
  return OK;
}

status step_cut(struct kernel *k, const struct step *s) {
  TRY(each_loop(k, s, s->on[0], s->n[0] ? cut_at : cut_guard));
  kernel_simplify(k);
  return OK;
}
