/* schedule_fetch.c: the steps that change nothing but a line: fetch (hints) and fma. */
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
static int64_t line_elements(const struct fetching *f) { return LINE_BYTES / (int64_t)dtype_size(f->k->buffers.items[f->buffer].dtype); }

/* Whether neighbouring turns of the loop read neighbouring elements: the variable stands bare in a sum. */
static bool is_bare_term(const struct kernel *k, expr_id e, uint32_t local) {
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_LOCAL)
    return x->imm == (int64_t)local;
  return x->op == SCALAR_ADD && (is_bare_term(k, expr_operand(k, e, 0), local) || is_bare_term(k, expr_operand(k, e, 1), local));
}

/* One hint for each line that the load touches: along what lies side by side in steps of a line, else for each turn of a loop. */
static status add_hints(struct fetching *f, expr_id load) {
  struct kernel *k = f->k;
  struct copy c;
  struct stmt **tail = &f->hints;
  int count = expr_get(k, load)->count;
  int64_t turns = 1;
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
    bool side = is_bare_term(k, expr_operand(k, load, count - 1), loop->local);
    int64_t step = side ? line_elements(f) : 1;
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
