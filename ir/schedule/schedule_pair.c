/* schedule_pair.c: the step `pair`: two terms of a sum as one value, the second one first, as instructions for pairs of products have it.
 *
 *   red kr < 2 { v = fma(a[kr], b[kr], v) }   becomes   v = fma(a[0], b[0], fma(a[1], b[1], v))
 *
 * Machines that multiply pairs of bfloat16 add up so (vdpbf16ps), each product rounded once: what is computed is what the text says,
 * whether a target has such an instruction or writes two multiply-adds. */
#include "ir/schedule/schedule_rewrite.h"

/* The loop has two turns, which do nothing but add a product to a local from outside. */
static bool is_pair(const struct kernel *k, const struct stmt *loop) {
  const struct stmt *set = loop->body;
  int64_t extent;
  if (loop->loop != LOOP_RED || !expr_is_const(k, loop->value, &extent) || extent != 2 || !set || set->next || set->kind != STMT_SET)
    return false;
  const struct expr *x = expr_get(k, set->value);
  return x->op == SCALAR_FMA && expr_is_local(k, expr_operand(k, set->value, 2), set->local) &&
         !expr_reads_local(k, expr_operand(k, set->value, 0), set->local) &&
         !expr_reads_local(k, expr_operand(k, set->value, 1), set->local);
}
/* The sum's value behind one more turn, where `sum` was its value before. */
static expr_id added(struct kernel *k, const struct stmt *loop, int64_t turn, expr_id sum) {
  const struct stmt *set = loop->body;
  struct copy c;
  copy_begin(&c, k, k);
  c.local[loop->local] = number(k, turn);
  expr_id operands[3] = {copy_expr(&c, expr_operand(k, set->value, 0)), copy_expr(&c, expr_operand(k, set->value, 1)), sum};
  copy_end(&c);
  return expr_make(k, SCALAR_FMA, (enum dtype)expr_get(k, sum)->dtype, operands, 3);
}
static status pair_loop(struct kernel *k, const struct step *s, struct stmt *loop) {
  TRY(loop_check_plain(k, loop));
  if (!is_pair(k, loop))
    return REFUSED("loop %s is no sum of two products that round once", s->on[0]);
  struct stmt *made = NULL, *set = loop->body;
  stmt_set(k, &made, set->local, added(k, loop, 0, added(k, loop, 1, expr_operand(k, set->value, 2))));
  replace_loop(loop, made);
  return OK;
}

status step_pair(struct kernel *k, const struct step *s) { return each_loop(k, s, s->on[0], pair_loop); }
