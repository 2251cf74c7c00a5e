/* schedule_join.c: the step `join`: all nests at the kernel's top share their outermost loops.
 *
 *   par i { par j { s[i,j] = .. } }; par i { par j { d[i,j] = .. s[i,..] .. } }
 *   becomes  par i { buffer e; par j { e[j] = .. }; par j { d[i,j] = .. e[..] .. } }
 *
 * A turn of the shared loops may read of what the nests store only what it stored itself: each buffer that one nest stores and another one
 * uses has the shared loops as the indices of its first dimensions, everywhere. Scratch of which that is true is what one turn writes, on
 * the stack. Or nobody reads it, and no two nests store the same element: the phases of a strided result, d[2i] and d[2i+1]. */
#include <stdlib.h>

#include "ir/schedule/schedule_rewrite.h"

/* All values of an index: `rest`, and any multiples of `step` more; 0: `rest` alone. */
struct residue {
  int64_t step, rest;
};
/* Where a nest stores. */
struct place {
  uint32_t buffer;
  int nest, count;
  struct residue index[LIMIT_RANK];
};
struct joining {
  struct kernel *k;
  int count;                   /* shared loops */
  uint32_t shared[LIMIT_RANK]; /* their variables */
  int nests;                   /* up to now */
  VEC(struct place) places;
  /* by buffer */
  bool *uses;    /* a nest up to now uses it, */
  bool *mixed;   /* several do */
  bool *stores;  /* one stores it */
  bool *loads;   /* one loads it */
  bool *aligned; /* the shared loops are its first indices */
};

/* ---- which loops ---- */

/* The shared loops of a nest, outermost first; the innermost may hold any block. */
static status nest_loops(const struct kernel *k, int count, struct stmt *top, struct stmt **out) {
  struct stmt *s = top;
  for (int i = 0; i < count; i++, s = s->body) {
    int64_t turns;
    bool is_size = i == 0 && s && s->kind == STMT_FOR && expr_get(k, s->value)->op == SCALAR_SIZE;
    if (!s || s->kind != STMT_FOR || s->loop != LOOP_PAR || (i && s->next) || (s->run != RUN_PLAIN && s->run != RUN_TASKS))
      return REFUSED("a nest does not begin with %d loops of par", count);
    if (!is_size && !expr_is_const(k, s->value, &turns))
      return REFUSED("loop %s has no constant extent", loop_name(k, s));
    out[i] = s;
  }
  return OK;
}
static status check_equal(const struct kernel *k, int count, struct stmt *const *first, struct stmt *const *loops) {
  for (int i = 0; i < count; i++)
    if (first[i]->value != loops[i]->value)
      return REFUSED("loops %s and %s have not the same extent", loop_name(k, first[i]), loop_name(k, loops[i]));
  return OK;
}

/* ---- building ---- */

/* Work for threads are the shared loops alone. */
static void clear_tasks(struct stmt *s) {
  for (; s; s = s->next) {
    if (s->kind == STMT_FOR && s->run == RUN_TASKS)
      s->run = RUN_PLAIN;
    clear_tasks(s->body);
    clear_tasks(s->otherwise);
  }
}
/* The nest's block behind those that are there, with the shared variables for its own. */
static void append_nest(struct joining *j, struct stmt *const *loops, struct stmt **tail) {
  struct copy c;
  copy_begin(&c, j->k, j->k);
  for (int i = 0; i < j->count; i++)
    c.local[loops[i]->local] = expr_local(j->k, j->shared[i]);
  copy_stmts(&c, loops[j->count - 1]->body, NULL, tail);
  copy_end(&c);
}
static struct stmt **open_shared(struct joining *j, struct stmt *const *loops, struct stmt **tail) {
  for (int i = 0; i < j->count; i++) {
    struct stmt *made = loop_make(j->k, tail, loops[i], loops[i]->value, j->k->locals.items[loops[i]->local].name);
    made->run = RUN_TASKS;
    j->shared[i] = made->local;
    tail = &made->body;
  }
  return tail;
}

/* ---- what turns have to themselves ---- */

static bool begins_with_shared(const struct joining *j, const expr_id *index, int count) {
  for (int i = 0; i < j->count; i++)
    if (i >= count || !expr_is_local(j->k, index[i], j->shared[i]))
      return false;
  return true;
}
static void see_element(struct joining *j, uint32_t buffer, const expr_id *index, int count) {
  j->uses[buffer] = true;
  j->aligned[buffer] = j->aligned[buffer] && begins_with_shared(j, index, count);
}
static int64_t common_step(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}
#define RESIDUE_DEPTH 12 /* of an index: longer ones are any number */
static struct residue residue_of(const struct kernel *k, expr_id e, int depth) {
  const struct expr *x = expr_get(k, e);
  const struct residue any = {1, 0};
  if (x->op == SCALAR_CONST)
    return (struct residue){0, x->imm};
  if ((x->op != SCALAR_ADD && x->op != SCALAR_SUB && x->op != SCALAR_MUL) || depth == RESIDUE_DEPTH)
    return any;
  struct residue a = residue_of(k, expr_operand(k, e, 0), depth + 1), b = residue_of(k, expr_operand(k, e, 1), depth + 1), out;
  if (x->op == SCALAR_MUL && a.step && b.step)
    return any;
  if (x->op == SCALAR_MUL) { /* one is a number */
    int64_t by = a.step ? b.rest : a.rest, step = a.step ? a.step : b.step, rest = a.step ? a.rest : b.rest;
    bool fits = !__builtin_mul_overflow(step, by, &out.step) && !__builtin_mul_overflow(rest, by, &out.rest) && out.step != INT64_MIN;
    return fits ? out : any;
  }
  out.step = common_step(a.step, b.step);
  bool over = x->op == SCALAR_ADD ? __builtin_add_overflow(a.rest, b.rest, &out.rest) : __builtin_sub_overflow(a.rest, b.rest, &out.rest);
  return over ? any : out;
}
static bool residues_meet(struct residue a, struct residue b) {
  int64_t step = common_step(a.step, b.step), apart;
  if (__builtin_sub_overflow(a.rest, b.rest, &apart))
    return true;
  return step ? apart % step == 0 : apart == 0;
}
static void see_place(struct joining *j, const struct stmt *s) {
  struct place at = {.buffer = s->buffer, .nest = j->nests, .count = s->index_count};
  for (int i = 0; i < at.count; i++)
    at.index[i] = residue_of(j->k, s->index[i], 0);
  vec_push(&j->places, at);
}
static void see_expr(struct joining *j, expr_id e, bool *seen) {
  const struct expr *x = expr_get(j->k, e);
  if (e == NO_EXPR || seen[e])
    return;
  seen[e] = true;
  if (x->op == SCALAR_LOAD) {
    see_element(j, (uint32_t)x->imm, &j->k->operands.items[x->first], x->count);
    j->loads[x->imm] = true;
  }
  for (int i = 0; i < x->count; i++)
    see_expr(j, expr_operand(j->k, e, i), seen);
}
static void see_block(struct joining *j, const struct stmt *s, bool *seen) {
  for (; s; s = s->next) {
    expr_id used[LIMIT_RANK + 4];
    int count = stmt_exprs(s, used);
    for (int i = 0; i < count; i++)
      see_expr(j, used[i], seen);
    if (s->kind == STMT_STORE) {
      see_element(j, s->buffer, s->index, s->index_count);
      see_place(j, s);
      j->stores[s->buffer] = true;
    }
    see_block(j, s->body, seen);
    see_block(j, s->otherwise, seen);
  }
}
/* What one nest became. */
static void see_nest(struct joining *j, const struct stmt *s) {
  uint32_t buffers = j->k->buffers.count;
  bool *before = j->uses, *seen = calloc(j->k->exprs.count + 1, 1);
  j->uses = calloc(buffers + 1, 1);
  see_block(j, s, seen);
  for (uint32_t b = 0; b < buffers; b++) {
    j->mixed[b] = j->mixed[b] || (before[b] && j->uses[b]);
    before[b] = before[b] || j->uses[b];
  }
  free(j->uses);
  free(seen);
  j->uses = before;
  j->nests++;
}
static bool places_meet(const struct place *a, const struct place *b) {
  for (int i = 0; i < a->count; i++)
    if (!residues_meet(a->index[i], b->index[i]))
      return false;
  return true;
}
/* Whether nobody reads the buffer, and nests store different elements of it. */
static bool is_apart(const struct joining *j, uint32_t buffer) {
  for (uint32_t a = 0; a < j->places.count; a++)
    for (uint32_t b = 0; b < a; b++) {
      const struct place *x = &j->places.items[a], *y = &j->places.items[b];
      if (x->buffer == buffer && y->buffer == buffer && x->nest != y->nest && places_meet(x, y))
        return false;
    }
  return !j->loads[buffer];
}
static status check_turns(const struct joining *j) {
  for (uint32_t b = 0; b < j->k->buffers.count; b++)
    if (j->mixed[b] && j->stores[b] && !j->aligned[b] && !is_apart(j, b))
      return REFUSED("a turn may use of buffer %s what another one stores", j->k->buffers.items[b].name);
  return OK;
}

/* ---- scratch ---- */

/* What one turn has of a buffer, as one of the block. */
static uint32_t turn_buffer(struct joining *j, uint32_t buffer) {
  struct kernel_buffer b = j->k->buffers.items[buffer];
  kernel_dim dims[LIMIT_RANK + 1] = {1};
  int rank = b.rank - j->count;
  for (int i = 0; i < rank; i++)
    dims[i] = b.dims[j->count + i];
  return kernel_add_block_buffer(j->k, b.dtype, SPACE_STACK, rank ? rank : 1, dims);
}
/* The index of an element in the turn's own. */
static int turn_index(struct joining *j, const expr_id *index, int count, expr_id *out) {
  int n = 0;
  for (int i = j->count; i < count; i++)
    out[n++] = index[i];
  if (n == 0)
    out[n++] = number(j->k, 0);
  return n;
}
static void shrink_stores(struct joining *j, struct stmt *s, uint32_t from, uint32_t to) {
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE && s->buffer == from) {
      expr_id *index = ARENA_ARRAY(j->k->arena, expr_id, s->index_count + 1);
      s->index_count = (uint8_t)turn_index(j, s->index, s->index_count, index);
      s->index = index;
      s->buffer = to;
    }
    shrink_stores(j, s->body, from, to);
    shrink_stores(j, s->otherwise, from, to);
  }
}
static void shrink_loads(struct joining *j, struct stmt *block, uint32_t from, uint32_t to) {
  struct copy c;
  copy_begin(&c, j->k, j->k);
  for (expr_id e = 1; e < c.exprs; e++) {
    const struct expr x = *expr_get(j->k, e);
    expr_id index[LIMIT_RANK], own[LIMIT_RANK + 1];
    if (x.op != SCALAR_LOAD || x.imm != (int64_t)from || !begins_with_shared(j, &j->k->operands.items[x.first], x.count))
      continue;
    for (int i = 0; i < x.count; i++)
      index[i] = copy_expr(&c, expr_operand(j->k, e, i));
    int count = turn_index(j, index, x.count, own);
    c.memo[e] = expr_load(j->k, to, x.part, own, count);
  }
  replace_exprs(&c, block);
  copy_end(&c);
}
/* The argument is left without a use. */
static void shrink(struct joining *j, uint32_t buffer, struct stmt **block) {
  uint32_t own = turn_buffer(j, buffer);
  struct stmt *begin = NULL;
  stmt_buffer(j->k, &begin, own);
  begin->next = *block;
  *block = begin;
  shrink_loads(j, begin->next, buffer, own);
  shrink_stores(j, begin->next, buffer, own);
}
/* Whether what a turn has of it is of an open size. */
static bool has_size(const struct kernel_buffer *b, int shared) {
  for (int i = shared; i < b->rank; i++)
    if (DIM_IS_SIZE(b->dims[i]))
      return true;
  return false;
}

/* ---- the step ---- */

static status join_nests(struct joining *j, struct stmt **made) {
  struct stmt *first[LIMIT_RANK], *loops[LIMIT_RANK], **tail, **end;
  TRY(nest_loops(j->k, j->count, j->k->body, first));
  tail = end = open_shared(j, first, made);
  for (struct stmt *top = j->k->body; top; top = top->next) {
    TRY(nest_loops(j->k, j->count, top, loops));
    TRY(check_equal(j->k, j->count, first, loops));
    append_nest(j, loops, tail);
    see_nest(j, *end);
    while (*end)
      end = &(*end)->next;
  }
  TRY(check_turns(j));
  clear_tasks(*tail);
  uint32_t arguments = j->k->buffers.count; /* what is behind them shrinking adds */
  for (uint32_t b = 0; b < arguments; b++)
    if (j->k->buffers.items[b].mode == BUFFER_SCRATCH && j->aligned[b] && j->uses[b] && !has_size(&j->k->buffers.items[b], j->count))
      shrink(j, b, tail);
  return OK;
}
/* Buffers of blocks come with the copies of nests: there are at most twice as many as now. */
static bool *flags(const struct kernel *k, bool value) {
  uint32_t count = 2 * k->buffers.count + 1;
  bool *all = malloc(count);
  for (uint32_t i = 0; i < count; i++)
    all[i] = value;
  return all;
}
status step_join(struct kernel *k, const struct step *s) {
  struct joining j = {.k = k, .count = (int)s->n[0]};
  struct stmt *made = NULL;
  if (j.count >= LIMIT_RANK)
    return REFUSED("no nest has so many loops to share");
  if (!k->body || !k->body->next)
    return REFUSED("at the top of the kernel is one nest alone");
  j.uses = flags(k, false);
  j.stores = flags(k, false);
  j.loads = flags(k, false);
  j.mixed = flags(k, false);
  j.aligned = flags(k, true);
  status result = join_nests(&j, &made);
  free(j.uses);
  free(j.stores);
  free(j.loads);
  vec_free(&j.places);
  free(j.mixed);
  free(j.aligned);
  if (result == OK)
    k->body = made;
  return result;
}
