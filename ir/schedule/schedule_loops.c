/* schedule_loops.c: the steps that change loops alone: split, fuse, order, run. */
#include "ir/schedule/schedule_rewrite.h"

#define CHAIN_MAX 32

/* ---- split ---- */

/* Turns of `size` over the `rest` of the range from `base` on; `whole`: full ones only. Of one turn each, in a tail with a name of its own,
 * that is the only loop. */
static void split_piece(struct kernel *k, const struct step *s, const struct stmt *loop, struct stmt **tail, expr_id base, expr_id rest,
                        int64_t size, bool whole, const char *name) {
  expr_id turns = floordiv(k, whole ? rest : add(k, rest, number(k, size - 1)), size);
  struct stmt *outer = loop_make(k, tail, loop, turns, name);
  if (size == 1 && name == s->made[2]) {
    copy_body(k, loop, add(k, base, expr_local(k, outer->local)), &outer->body);
    return;
  }
  expr_id at = mul(k, expr_local(k, outer->local), size);
  expr_id extent = whole ? number(k, size) : expr_binary(k, SCALAR_MIN, number(k, size), sub(k, rest, at));
  struct stmt *inner = loop_make(k, &outer->body, loop, extent, s->made[1]);
  copy_body(k, loop, add(k, add(k, base, at), expr_local(k, inner->local)), &inner->body);
}

static status split_loop(struct kernel *k, const struct step *s, struct stmt *loop) {
  expr_id extent = loop->value, zero = number(k, 0), rest;
  struct stmt *pieces = NULL;
  TRY(loop_check_plain(k, loop));
  if (!expr_never_negative(k, extent))
    extent = expr_binary(k, SCALAR_MAX, extent, zero);
  rest = extent;
  for (int i = 0; i < STEP_NUMBERS && s->n[i]; i++) {
    bool last = i + 1 == STEP_NUMBERS || !s->n[i + 1], whole = !last || expr_divides(k, rest, s->n[i]);
    expr_id base = i ? sub(k, extent, rest) : zero, left = floormod(k, rest, s->n[i]);
    int64_t turns;
    if (!expr_is_const(k, floordiv(k, rest, s->n[i]), &turns) || turns > 0 || (last && left != zero))
      split_piece(k, s, loop, &pieces, base, rest, s->n[i], whole, i && s->made[2] ? s->made[2] : s->made[0]);
    rest = left;
  }
  if (!pieces)
    split_piece(k, s, loop, &pieces, zero, extent, s->n[0], true, s->made[0]);
  replace_loop(loop, pieces);
  return OK;
}

status step_split(struct kernel *k, const struct step *s) { return each_loop(k, s, s->on[0], split_loop); }

/* ---- chains: perfect nests ---- */

/* The loops from `top` down to the last of the names, each alone in the one before; 0 where a name is missing. */
static int find_chain(const struct kernel *k, struct stmt *top, const char *const *names, struct stmt **chain) {
  int count = 0, missing = name_count(names);
  for (struct stmt *s = top; s && s->kind == STMT_FOR && count < CHAIN_MAX; s = s->body) {
    if (count && s->next)
      return 0;
    chain[count++] = s;
    missing -= name_listed(names, loop_name(k, s));
    if (!missing)
      return count;
    if (s->body && s->body->next)
      return 0;
  }
  return 0;
}

typedef status chain_act(struct kernel *k, const struct step *s, struct stmt **chain, int count);

/* Acts on each nest that begins with one of the step's loops. */
static status each_chain(struct kernel *k, const struct step *s, struct stmt *block, chain_act *act, bool *any) {
  struct stmt *chain[CHAIN_MAX];
  for (struct stmt *t = block; t; t = t->next) {
    if (t->kind == STMT_FOR && name_listed(s->on, loop_name(k, t))) {
      int count = find_chain(k, t, s->on, chain);
      if (!count)
        return REFUSED("the loops are no perfect nest below %s", loop_name(k, t));
      TRY(act(k, s, chain, count));
      *any = true;
      continue;
    }
    TRY(each_chain(k, s, t->body, act, any));
    TRY(each_chain(k, s, t->otherwise, act, any));
  }
  return OK;
}
static status all_chains(struct kernel *k, const struct step *s, chain_act *act) {
  bool any = false;
  TRY(each_chain(k, s, k->body, act, &any));
  return any ? OK : REFUSED("there is no loop %s", s->on[0]);
}

/* Whether each loop of the chain knows its extent where it stands. */
static bool extents_stand(const struct kernel *k, struct stmt *const *chain, int count) {
  for (int i = 0; i < count; i++) {
    if (expr_has_load(k, chain[i]->value))
      return false;
    for (int j = i; j < count; j++)
      if (expr_reads_local(k, chain[i]->value, chain[j]->local))
        return false;
  }
  return true;
}

static bool all_of_kind(struct stmt *const *chain, int count, enum loop_kind loop) {
  for (int i = 0; i < count; i++)
    if (chain[i]->loop != loop)
      return false;
  return true;
}

/* ---- order ---- */

void loops_swap(struct stmt *a, struct stmt *b) {
  struct stmt x = *a, y = *b;
  *a = y;
  *b = x;
  a->next = x.next;
  a->body = x.body;
  b->next = y.next;
  b->body = y.body;
}

static status order_chain(struct kernel *k, const struct step *s, struct stmt **chain, int count) {
  if (!all_of_kind(chain, count, LOOP_PAR) && !(s->regroup && all_of_kind(chain, count, LOOP_RED)))
    return REFUSED("only loops of par change places, and red ones with `regroup`");
  for (int i = 0, next = 0; i < count; i++) {
    if (!name_listed(s->on, loop_name(k, chain[i])))
      continue;
    for (int j = i; j < count; j++)
      if (loop_is(k, chain[j], s->on[next]) && j != i)
        loops_swap(chain[i], chain[j]);
    next++;
  }
  return extents_stand(k, chain, count) ? OK : REFUSED("the extent of a loop hangs on one that would be inside of it");
}

status step_order(struct kernel *k, const struct step *s) { return all_chains(k, s, order_chain); }

/* ---- fuse ---- */

static status fuse_chain(struct kernel *k, const struct step *s, struct stmt **chain, int count) {
  struct stmt *fused = NULL;
  struct copy c;
  if (count != name_count(s->on) || !all_of_kind(chain, count, chain[0]->loop))
    return REFUSED("the loops are no neighbours of one kind");
  expr_id extent = number(k, 1), rest;
  for (int i = 0; i < count; i++) {
    if (!loop_is(k, chain[i], s->on[i]) || expr_has_load(k, chain[i]->value) || chain[i]->run != RUN_PLAIN)
      return REFUSED("loop %s stands elsewhere, is marked or has an extent that is loaded", s->on[i]);
    for (int j = 0; j < i; j++)
      if (expr_reads_local(k, chain[i]->value, chain[j]->local))
        return REFUSED("the nest of loop %s is not rectangular", s->on[i]);
    expr_id turns = expr_never_negative(k, chain[i]->value) ? chain[i]->value : expr_binary(k, SCALAR_MAX, chain[i]->value, number(k, 0));
    extent = expr_binary(k, SCALAR_MUL, extent, turns);
  }
  struct stmt *loop = loop_make(k, &fused, chain[0], extent, s->made[0]);
  copy_begin(&c, k, k);
  rest = expr_local(k, loop->local);
  for (int i = count - 1; i >= 0; i--) {
    c.local[chain[i]->local] = i ? expr_binary(k, SCALAR_FLOORMOD, rest, chain[i]->value) : rest;
    rest = expr_binary(k, SCALAR_FLOORDIV, rest, chain[i]->value);
  }
  copy_stmts(&c, chain[count - 1]->body, NULL, &loop->body);
  copy_end(&c);
  replace_loop(chain[0], fused);
  return OK;
}

status step_fuse(struct kernel *k, const struct step *s) { return all_chains(k, s, fuse_chain); }

/* ---- run ---- */

static status run_loop(struct kernel *k, const struct step *s, struct stmt *loop) {
  int64_t most = 0, width = s->n[0];
  bool bounded = expr_at_most(k, loop->value, &most);
  TRY(loop_check_plain(k, loop));
  if ((s->run == RUN_TASKS || s->run == RUN_LANES || s->run == RUN_TOGETHER) && loop->loop != LOOP_PAR)
    return REFUSED("loop %s is not par", loop_name(k, loop));
  if (s->run == RUN_VECTORS && !run_takes_width(s->run, width))
    return REFUSED("vectors of loop %s are of a power of two of lanes, up to %d", loop_name(k, loop), LANES_MAX);
  if (s->run == RUN_TOGETHER && !run_takes_width(s->run, width))
    return REFUSED("of loop %s 2 to %d turns may run together", loop_name(k, loop), TOGETHER_MAX);
  if (s->run == RUN_UNROLL && (!expr_is_const(k, loop->value, &most) || most > UNROLL_MAX))
    return REFUSED("loop %s has no constant extent up to %d", loop_name(k, loop), UNROLL_MAX);
  if (s->run == RUN_LANES && (!bounded || most > LANES_MAX || (width && most > width)))
    return REFUSED("loop %s is not known to fit into lanes", loop_name(k, loop));
  loop->run = s->run;
  loop->width = !run_has_width(s->run) ? 0 : width ? (int32_t)width : most < 1 ? 1 : (int32_t)most;
  return OK;
}

status step_run(struct kernel *k, const struct step *s) {
  for (int i = 0; i < name_count(s->on); i++)
    TRY(each_loop(k, s, s->on[i], run_loop));
  return OK;
}
