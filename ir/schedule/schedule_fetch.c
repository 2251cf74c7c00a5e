/* schedule_fetch.c: the steps that change nothing but a line: fetch (hints) and fma.
 *
 * `fetch b at k ahead 16`: a turn asks for all that the turn 16 later loads. `fetch b at kb ahead 1 over mo nj`: where that is much, the
 * turns of mo and nj, which stand inside, ask for a share each, so that it comes while they compute. All places that the loops around a
 * load go through are one line of places, of which turn number t of mo and nj takes the next few from t * few on; turns that a last loop
 * lacks of its bound lack their share. */
#include "ir/schedule/machine.h"
#include "ir/schedule/schedule_rewrite.h"

/* ---- fetch ---- */

struct fetching {
  struct kernel *k;
  const struct step *s;
  struct stmt *at;
  struct stmt *over[STEP_LOOPS];   /* each inside of the one before */
  VEC(const struct stmt *) inside; /* loops between `at` and the statement at hand */
  bool *seen;                      /* by expression */
  struct stmt *hints;
};

/* Elements of the last dimension that lie in one line. */
static int64_t line_elements(const struct fetching *f) { return LINE_BYTES / (int64_t)dtype_size(f->k->buffers.items[f->s->buffer].dtype); }

/* Elements between those that neighbouring turns of the loop read, one or a pair's two: the variable stands in a sum, bare or times that,
 * or in what is left of one by whole lines (places in a panel). 0: they lie apart. */
static int64_t elements_apart(const struct fetching *f, expr_id e, uint32_t local) {
  const struct kernel *k = f->k;
  const struct expr *x = expr_get(k, e);
  int64_t times, apart;
  if (x->op == SCALAR_MUL && expr_is_const(k, expr_operand(k, e, 1), &times) && times == 2)
    return elements_apart(f, expr_operand(k, e, 0), local) == 1 ? 2 : 0;
  if (x->op == SCALAR_FLOORMOD)
    return expr_divides(k, expr_operand(k, e, 1), line_elements(f)) ? elements_apart(f, expr_operand(k, e, 0), local) : 0;
  if (x->op != SCALAR_ADD)
    return expr_is_local(k, e, local);
  apart = elements_apart(f, expr_operand(k, e, 0), local);
  return apart ? apart : elements_apart(f, expr_operand(k, e, 1), local);
}

/* A loop around the load: its first turn stands for all where it has no constant bound or the load does not move with it. */
struct place_loop {
  int64_t turns; /* lines, of one along what lies side by side */
  int64_t step;
};
static struct place_loop place_loop_of(const struct fetching *f, expr_id load, const struct stmt *loop) {
  struct place_loop p = {1, 1};
  if (!expr_reads_local(f->k, load, loop->local) || !expr_at_most(f->k, loop->value, &p.turns))
    return (struct place_loop){1, 1};
  int64_t apart = elements_apart(f, expr_operand(f->k, load, expr_get(f->k, load)->count - 1), loop->local);
  p.step = apart ? line_elements(f) / apart : 1;
  p.turns = (p.turns + p.step - 1) / p.step;
  return p;
}

/* The number of a turn of the loops over, and how many there are; a loop without a constant bound has as many as its extent says then. */
static void count_turns(struct fetching *f, expr_id *turn, expr_id *turns) {
  *turn = number(f->k, 0);
  *turns = number(f->k, 1);
  for (int i = 0; i < name_count(f->s->on); i++) {
    int64_t most;
    bool is_bound = expr_at_most(f->k, f->over[i]->value, &most);
    expr_id extent = is_bound ? number(f->k, most) : f->over[i]->value;
    *turn = add(f->k, expr_binary(f->k, SCALAR_MUL, *turn, extent), expr_local(f->k, f->over[i]->local));
    *turns = expr_binary(f->k, SCALAR_MUL, *turns, extent);
  }
}

/* Hints for `each` of the load's places from number `first` on. */
static status put_hints(struct fetching *f, struct stmt **tail, expr_id load, expr_id first, expr_id each) {
  struct kernel *k = f->k;
  int64_t lines = 0;
  int count = expr_get(k, load)->count;
  expr_id index[LIMIT_RANK];
  struct stmt *loop = stmt_for(k, tail, LOOP_SEQ, each);
  expr_id rest = add(k, first, expr_local(k, loop->local));
  struct copy c;
  k->locals.items[loop->local].name = arena_printf(k->arena, "%s_line", f->s->at[0]);
  loop->run = expr_is_const(k, each, &lines) ? RUN_UNROLL : RUN_PLAIN;
  copy_begin(&c, k, k);
  c.local[f->at->local] = add(k, expr_local(k, f->at->local), number(k, f->s->n[0]));
  for (uint32_t i = f->inside.count; i-- > 0;) {
    struct place_loop p = place_loop_of(f, load, f->inside.items[i]);
    c.local[f->inside.items[i]->local] = mul(k, floormod(k, rest, p.turns), p.step);
    rest = floordiv(k, rest, p.turns);
  }
  for (int d = 0; d < count; d++)
    index[d] = copy_expr(&c, expr_operand(k, load, d));
  copy_end(&c);
  stmt_fetch(k, &loop->body, f->s->buffer, index, count);
  return lines <= UNROLL_MAX ? OK : REFUSED("a turn would ask for %d lines", (int)lines);
}

/* A hint would load what tells its place, maybe beyond the end. */
static status check_place(const struct kernel *k, expr_id load) {
  for (int i = 0; i < expr_get(k, load)->count; i++)
    if (expr_has_load(k, expr_operand(k, load, i)))
      return REFUSED("the place that is read is loaded");
  return OK;
}
static status add_hints(struct fetching *f, expr_id load) {
  struct kernel *k = f->k;
  struct stmt **tail = &f->hints;
  expr_id turn, turns;
  int64_t places = 1, most;
  TRY(check_place(k, load));
  count_turns(f, &turn, &turns);
  for (uint32_t i = 0; i < f->inside.count; i++)
    places *= place_loop_of(f, load, f->inside.items[i]).turns;
  expr_id each = expr_binary(k, SCALAR_FLOORDIV, add(k, turns, number(k, places - 1)), turns);
  expr_id first = expr_binary(k, SCALAR_MUL, turn, each), asked = expr_binary(k, SCALAR_MUL, turns, each);
  if (!expr_is_const(k, asked, &most) || most > places) /* the last turns have nothing to ask for */
    tail = &stmt_if(k, tail, expr_binary(k, SCALAR_LT, first, number(k, places)))->body;
  return put_hints(f, tail, load, first, each);
}

/* Where loops share the hints, only the first load has some: what tails and cuts load is of the same places. */
static status look_at_expr(struct fetching *f, expr_id e) {
  const struct expr *x = expr_get(f->k, e);
  int count = x->count;
  if (f->seen[e] || (f->s->on[0] && f->hints))
    return OK;
  f->seen[e] = true;
  if (x->op == SCALAR_LOAD && x->imm == (int64_t)f->s->buffer && expr_reads_local(f->k, e, f->at->local))
    TRY(add_hints(f, e));
  for (int i = 0; i < count; i++)
    TRY(look_at_expr(f, expr_operand(f->k, e, i)));
  return OK;
}
static status look_at_block(struct fetching *f, const struct stmt *s) {
  expr_id used[LIMIT_RANK + 4];
  for (; s; s = s->next) {
    int n = s->kind == STMT_FETCH ? 0 : stmt_exprs(s, used);
    for (int i = 0; i < n; i++)
      TRY(look_at_expr(f, used[i]));
    if (s->kind == STMT_FOR)
      vec_push(&f->inside, s);
    TRY(look_at_block(f, s->body));
    TRY(look_at_block(f, s->otherwise));
    f->inside.count -= s->kind == STMT_FOR;
  }
  return OK;
}

/* Of several loops of a name, as tails make them, the first one: it has the most turns. */
static struct stmt *first_loop(const struct kernel *k, struct stmt *block, const char *name) {
  loops_found found = {0};
  find_loops(block, k, name, &found);
  struct stmt *loop = found.count ? found.items[0] : NULL;
  vec_free(&found);
  return loop;
}
/* The hints stand in front, in the last of the loops over, or in `at`. */
static status fetch_at(struct kernel *k, const struct step *s, struct stmt *loop) {
  struct fetching f = {.k = k, .s = s, .at = loop, .seen = ARENA_ARRAY(k->arena, bool, k->exprs.count)};
  struct stmt *in = loop;
  for (int i = 0; i < name_count(s->on); i++) {
    f.over[i] = first_loop(k, in->body, s->on[i]);
    if (!f.over[i])
      return REFUSED("inside of loop %s there is no loop %s", loop_name(k, in), s->on[i]);
    in = f.over[i];
  }
  status result = look_at_block(&f, loop->body);
  if (result == OK && !f.hints)
    result = REFUSED("loop %s loads nothing that moves with it from that buffer", s->at[0]);
  vec_free(&f.inside);
  if (result != OK)
    return result;
  struct stmt **end = &f.hints;
  while (*end)
    end = &(*end)->next;
  *end = in->body;
  in->body = f.hints;
  return OK;
}

status step_fetch(struct kernel *k, const struct step *s) {
  TRY(step_check_buffer(k, s));
  return each_loop(k, s, s->at[0], fetch_at);
}

/* ---- fma ---- */

/* What the statement writes, as an expression that reads it. */
static expr_id written(struct kernel *k, const struct stmt *s) {
  if (s->kind == STMT_SET)
    return expr_local(k, s->local);
  return s->kind == STMT_STORE ? expr_load(k, s->buffer, s->part, s->index, s->index_count) : NO_EXPR;
}

bool stmt_fuse_product(struct kernel *k, struct stmt *s) {
  expr_id self = written(k, s);
  if (self == NO_EXPR)
    return false;
  struct expr x = *expr_get(k, s->value);
  bool floats = x.dtype == DTYPE_FLOAT || x.dtype == DTYPE_DOUBLE;
  for (int i = 0; floats && x.op == SCALAR_ADD && i < 2; i++) {
    expr_id product = expr_operand(k, s->value, 1 - i);
    if (expr_operand(k, s->value, i) != self || expr_get(k, product)->op != SCALAR_MUL)
      continue;
    expr_id operands[3] = {expr_operand(k, product, 0), expr_operand(k, product, 1), self};
    s->value = expr_make(k, SCALAR_FMA, (enum dtype)x.dtype, operands, 3);
    return true;
  }
  return false;
}
static bool is_fused(struct kernel *k, const struct stmt *s) {
  expr_id self = written(k, s);
  return self != NO_EXPR && expr_get(k, s->value)->op == SCALAR_FMA && expr_operand(k, s->value, 2) == self;
}
/* Sums that round once a term, those that did so before (for another nest's sake) among them. */
static int fuse_block(struct kernel *k, struct stmt *s) {
  int found = 0;
  for (; s; s = s->next)
    found += fuse_block(k, s->body) + fuse_block(k, s->otherwise) + (stmt_fuse_product(k, s) || is_fused(k, s));
  return found;
}

status step_fma(struct kernel *k, const struct step *s) {
  (void)s;
  return fuse_block(k, k->body) ? OK : REFUSED("there is no sum of products");
}
