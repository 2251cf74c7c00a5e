/* schedule_fetch.c: the steps that change nothing but a line: fetch (hints) and fma.
 *
 * `fetch b at kb ahead 1 over mo nj`: what a turn of kb later reads of b is much. The turns of mo and nj, which stand inside, ask for a
 * share each, so that it comes while they compute. All places that the loops around the first load go through are one line of places
 * then, of which turn number t of mo and nj takes the next few from t * few on. Turns that a last loop lacks of its bound lack their share. */
#include "ir/schedule/machine.h"
#include "ir/schedule/schedule_rewrite.h"

/* ---- fetch ---- */

struct fetching {
  struct kernel *k;
  uint32_t buffer;
  struct stmt *at;                 /* the loop that gets the hints */
  expr_id later;                   /* its variable, some turns on */
  VEC(const struct stmt *) inside; /* loops between `at` and the statement at hand */
  VEC(expr_id) done;               /* loads that have their hint */
  struct stmt *hints;
};

/* Elements of the last dimension that lie in one line. */
static int64_t line_elements(const struct kernel *k, uint32_t buffer) {
  return LINE_BYTES / (int64_t)dtype_size(k->buffers.items[buffer].dtype);
}

/* Whether neighbouring turns of the loop read neighbouring elements: the variable stands bare in a sum, or in what is left of one by whole
 * lines (places in a panel). */
static bool is_bare_term(const struct kernel *k, expr_id e, uint32_t local, int64_t line) {
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_LOCAL)
    return x->imm == (int64_t)local;
  if (x->op != SCALAR_ADD)
    return x->op == SCALAR_FLOORMOD && expr_divides(k, expr_operand(k, e, 1), line) && is_bare_term(k, expr_operand(k, e, 0), local, line);
  return is_bare_term(k, expr_operand(k, e, 0), local, line) || is_bare_term(k, expr_operand(k, e, 1), local, line);
}

/* A hint would load what tells its place, maybe beyond the end. */
static status check_place(const struct kernel *k, expr_id load) {
  for (int i = 0; i < expr_get(k, load)->count; i++)
    if (expr_has_load(k, expr_operand(k, load, i)))
      return REFUSED("the place that is read is loaded");
  return OK;
}

/* One hint for each line that the load touches: along what lies side by side in steps of a line, else for each turn of a loop. */
static status add_hints(struct fetching *f, expr_id load) {
  struct kernel *k = f->k;
  struct copy c;
  struct stmt **tail = &f->hints;
  int count = expr_get(k, load)->count;
  int64_t turns = 1, line = line_elements(k, f->buffer);
  TRY(check_place(k, load));
  copy_begin(&c, k, k);
  c.local[f->at->local] = f->later;
  for (uint32_t i = 0; i < f->inside.count; i++) {
    const struct stmt *loop = f->inside.items[i];
    int64_t most;
    if (!expr_reads_local(k, load, loop->local))
      continue;
    if (!expr_at_most(k, loop->value, &most)) {
      c.local[loop->local] = expr_int(k, DTYPE_INT64, 0);
      continue;
    }
    bool side = is_bare_term(k, expr_operand(k, load, count - 1), loop->local, line);
    int64_t step = side ? line : 1;
    struct stmt *made = stmt_for(k, tail, LOOP_SEQ, expr_int(k, DTYPE_INT64, (most + step - 1) / step));
    turns *= (most + step - 1) / step;
    k->locals.items[made->local].name = arena_printf(k->arena, "%s_line", loop_name(k, loop));
    made->run = RUN_UNROLL;
    c.local[loop->local] = expr_binary(k, SCALAR_MUL, expr_local(k, made->local), expr_int(k, DTYPE_INT64, step));
    tail = &made->body;
  }
  expr_id index[LIMIT_RANK];
  for (int i = 0; i < count; i++)
    index[i] = copy_expr(&c, expr_operand(k, load, i));
  copy_end(&c);
  stmt_fetch(k, tail, f->buffer, index, count);
  return turns <= UNROLL_MAX ? OK : REFUSED("a turn would ask for %d lines", (int)turns);
}

static status look_at_expr(struct fetching *f, expr_id e) {
  const struct kernel *k = f->k;
  const struct expr *x = expr_get(k, e);
  for (uint32_t i = 0; i < f->done.count; i++)
    if (f->done.items[i] == e)
      return OK;
  bool loads = x->op == SCALAR_LOAD && x->imm == (int64_t)f->buffer && expr_reads_local(k, e, f->at->local);
  int count = x->count;
  vec_push(&f->done, e);
  if (loads)
    TRY(add_hints(f, e));
  for (int i = 0; i < count; i++)
    TRY(look_at_expr(f, expr_operand(k, e, i)));
  return OK;
}

static status look_at_block(struct fetching *f, const struct stmt *s) {
  expr_id used[LIMIT_RANK + 4];
  for (; s; s = s->next) {
    int n = stmt_exprs(s, used);
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

static status fetch_at(struct kernel *k, const struct step *s, struct stmt *loop) {
  struct fetching f = {.k = k, .buffer = s->buffer, .at = loop};
  f.later = expr_binary(k, SCALAR_ADD, expr_local(k, loop->local), expr_int(k, DTYPE_INT64, s->n[0]));
  status result = look_at_block(&f, loop->body);
  if (result == OK && !f.hints)
    result = REFUSED("loop %s loads nothing that moves with it from that buffer", s->at[0]);
  vec_free(&f.inside);
  vec_free(&f.done);
  if (result != OK)
    return result;
  struct stmt **end = &f.hints;
  while (*end)
    end = &(*end)->next;
  *end = loop->body;
  loop->body = f.hints;
  return OK;
}

/* ---- fetch over ---- */

struct sharing {
  struct kernel *k;
  const struct step *s;
  struct stmt *at;
  struct stmt *over[STEP_LOOPS];   /* each inside of the one before */
  VEC(const struct stmt *) inside; /* loops between `at` and the statement at hand; of the load, once it is found */
  bool *seen;                      /* by expression */
  expr_id load;
};

/* Of several loops of a name, as tails make them, the first one: it has the most turns. */
static struct stmt *first_loop(const struct kernel *k, struct stmt *block, const char *name) {
  loops_found found = {0};
  find_loops(block, k, name, &found);
  struct stmt *loop = found.count ? found.items[0] : NULL;
  vec_free(&found);
  return loop;
}
static status find_over(struct sharing *f) {
  struct stmt *in = f->at;
  for (int i = 0; i < name_count(f->s->on); i++) {
    f->over[i] = first_loop(f->k, in->body, f->s->on[i]);
    if (!f->over[i])
      return REFUSED("inside of loop %s there is no loop %s", loop_name(f->k, in), f->s->on[i]);
    in = f->over[i];
  }
  return OK;
}

static void find_moving_load(struct sharing *f, expr_id e) {
  const struct expr *x = expr_get(f->k, e);
  if (f->seen[e] || f->load != NO_EXPR)
    return;
  f->seen[e] = true;
  if (x->op == SCALAR_LOAD && x->imm == (int64_t)f->s->buffer && expr_reads_local(f->k, e, f->at->local))
    f->load = e;
  for (int i = 0; i < x->count; i++)
    find_moving_load(f, expr_operand(f->k, e, i));
}
/* The first load that moves with `at`, and the loops around it. */
static bool find_place(struct sharing *f, const struct stmt *s) {
  expr_id used[LIMIT_RANK + 4];
  for (; s; s = s->next) {
    int n = s->kind == STMT_FETCH ? 0 : stmt_exprs(s, used);
    for (int i = 0; i < n; i++)
      find_moving_load(f, used[i]);
    if (f->load != NO_EXPR)
      return true;
    if (s->kind == STMT_FOR)
      vec_push(&f->inside, s);
    if (find_place(f, s->body) || find_place(f, s->otherwise))
      return true;
    f->inside.count -= s->kind == STMT_FOR;
  }
  return false;
}

/* A bound of a loop's turns, also of one over parts of what is left: floordiv(max(min(64, ..), 0) + 15, 16). */
static bool turns_at_most(const struct kernel *k, expr_id e, int64_t *most) {
  const struct expr *x = expr_get(k, e);
  int64_t by;
  if (expr_at_most(k, e, most))
    return true;
  bool by_constant = (x->op == SCALAR_ADD || x->op == SCALAR_FLOORDIV || x->op == SCALAR_MAX) &&
                     expr_is_const(k, expr_operand(k, e, 1), &by) && by >= (x->op == SCALAR_FLOORDIV);
  if (!by_constant || !turns_at_most(k, expr_operand(k, e, 0), most))
    return false;
  *most = x->op == SCALAR_ADD ? *most + by : x->op == SCALAR_FLOORDIV ? *most / by : *most > by ? *most : by;
  return true;
}

/* A loop's variable in the hint: 0 where it has no constant bound or the load does not move with it. */
struct place_loop {
  const struct stmt *loop;
  int64_t turns; /* lines, of one along what lies side by side */
  bool is_side;
};
static struct place_loop place_loop_of(const struct sharing *f, const struct stmt *loop, expr_id last) {
  struct place_loop p = {.loop = loop};
  int64_t line = line_elements(f->k, f->s->buffer);
  if (!expr_reads_local(f->k, f->load, loop->local) || !turns_at_most(f->k, loop->value, &p.turns))
    p.turns = 1;
  p.is_side = p.turns > 1 && is_bare_term(f->k, last, loop->local, line);
  p.turns = p.is_side ? (p.turns + line - 1) / line : p.turns;
  return p;
}

/* The number of a turn of the loops over, and how many there are; a loop without a constant bound has as many as its extent says then. */
static void count_turns(struct sharing *f, expr_id *turn, expr_id *turns) {
  *turn = number(f->k, 0);
  *turns = number(f->k, 1);
  for (int i = 0; i < name_count(f->s->on); i++) {
    int64_t most;
    bool is_bound = turns_at_most(f->k, f->over[i]->value, &most);
    expr_id extent = is_bound ? number(f->k, most) : f->over[i]->value;
    *turn = add(f->k, expr_binary(f->k, SCALAR_MUL, *turn, extent), expr_local(f->k, f->over[i]->local));
    *turns = expr_binary(f->k, SCALAR_MUL, *turns, extent);
  }
}

/* Hints for `each` places from number `first` on, a line each. */
static status put_hints(struct sharing *f, struct stmt **tail, expr_id first, expr_id each) {
  struct kernel *k = f->k;
  int count = expr_get(k, f->load)->count;
  int64_t lines, line = line_elements(k, f->s->buffer);
  expr_id index[LIMIT_RANK], last = expr_operand(k, f->load, count - 1);
  struct stmt *loop = stmt_for(k, tail, LOOP_SEQ, each);
  expr_id rest = add(k, first, expr_local(k, loop->local));
  struct copy c;
  k->locals.items[loop->local].name = arena_printf(k->arena, "%s_share", f->s->at[0]);
  loop->run = expr_is_const(k, each, &lines) ? RUN_UNROLL : RUN_PLAIN;
  copy_begin(&c, k, k);
  c.local[f->at->local] = add(k, expr_local(k, f->at->local), number(k, f->s->n[0]));
  for (uint32_t i = f->inside.count; i-- > 0;) {
    struct place_loop p = place_loop_of(f, f->inside.items[i], last);
    expr_id at = p.turns > 1 ? floormod(k, rest, p.turns) : number(k, 0);
    rest = p.turns > 1 ? floordiv(k, rest, p.turns) : rest;
    c.local[p.loop->local] = p.is_side ? mul(k, at, line) : at;
  }
  for (int d = 0; d < count; d++)
    index[d] = copy_expr(&c, expr_operand(k, f->load, d));
  copy_end(&c);
  stmt_fetch(k, &loop->body, f->s->buffer, index, count);
  return loop->run == RUN_PLAIN || lines <= UNROLL_MAX ? OK : REFUSED("a turn would ask for %d lines", (int)lines);
}

static status share_hints(struct sharing *f) {
  struct kernel *k = f->k;
  struct stmt *hints = NULL, **tail = &hints, *in = f->over[name_count(f->s->on) - 1];
  expr_id turn, turns, last = expr_operand(k, f->load, expr_get(k, f->load)->count - 1);
  int64_t places = 1, most;
  TRY(check_place(k, f->load));
  count_turns(f, &turn, &turns);
  for (uint32_t i = 0; i < f->inside.count; i++)
    places *= place_loop_of(f, f->inside.items[i], last).turns;
  expr_id each = expr_binary(k, SCALAR_FLOORDIV, add(k, turns, number(k, places - 1)), turns);
  expr_id first = expr_binary(k, SCALAR_MUL, turn, each), asked = expr_binary(k, SCALAR_MUL, turns, each);
  if (!expr_is_const(k, asked, &most) || most > places) /* the last turns have nothing to ask for */
    tail = &stmt_if(k, tail, expr_binary(k, SCALAR_LT, first, number(k, places)))->body;
  TRY(put_hints(f, tail, first, each));
  hints->next = in->body;
  in->body = hints;
  return OK;
}

static status fetch_over_at(struct kernel *k, const struct step *s, struct stmt *loop) {
  struct sharing f = {.k = k, .s = s, .at = loop, .seen = ARENA_ARRAY(k->arena, bool, k->exprs.count)};
  status result = find_over(&f);
  if (result == OK && !find_place(&f, loop->body))
    result = REFUSED("loop %s loads nothing that moves with it from that buffer", s->at[0]);
  if (result == OK)
    result = share_hints(&f);
  vec_free(&f.inside);
  return result;
}

status step_fetch(struct kernel *k, const struct step *s) {
  TRY(step_check_buffer(k, s));
  return each_loop(k, s, s->at[0], s->on[0] ? fetch_over_at : fetch_at);
}

/* ---- fma ---- */

/* What the statement writes, as an expression that reads it. */
static expr_id written(struct kernel *k, const struct stmt *s) {
  if (s->kind == STMT_SET)
    return expr_local(k, s->local);
  return s->kind == STMT_STORE ? expr_load(k, s->buffer, s->part, s->index, s->index_count) : NO_EXPR;
}

/* Sums that round once a term, those that did so before (for another nest's sake) among them. */
static int fuse_block(struct kernel *k, struct stmt *s) {
  int found = 0;
  for (; s; s = s->next) {
    found += fuse_block(k, s->body) + fuse_block(k, s->otherwise);
    if (s->kind != STMT_SET && s->kind != STMT_STORE)
      continue;
    expr_id self = written(k, s);
    struct expr x = *expr_get(k, s->value);
    bool floats = x.dtype == DTYPE_FLOAT || x.dtype == DTYPE_DOUBLE;
    found += x.op == SCALAR_FMA && expr_operand(k, s->value, 2) == self;
    for (int i = 0; floats && x.op == SCALAR_ADD && i < 2; i++) {
      expr_id product = expr_operand(k, s->value, 1 - i);
      if (expr_operand(k, s->value, i) != self || expr_get(k, product)->op != SCALAR_MUL)
        continue;
      expr_id operands[3] = {expr_operand(k, product, 0), expr_operand(k, product, 1), self};
      s->value = expr_make(k, SCALAR_FMA, (enum dtype)x.dtype, operands, 3);
      found++;
      break;
    }
  }
  return found;
}

status step_fma(struct kernel *k, const struct step *s) {
  (void)s;
  return fuse_block(k, k->body) ? OK : REFUSED("there is no sum of products");
}
