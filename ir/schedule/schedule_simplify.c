/* schedule_simplify.c: expressions that the ranges of loops decide: comparisons, minima and maxima, quotients and remainders. Of integers
 * only, so that no value changes. What can have but one value is that number. */
#include <stdlib.h>

#include "ir/schedule/schedule_rewrite.h"

#define FAR (INT64_C(1) << 60) /* a bound from here on is none */

struct range {
  int64_t low, high; /* both reached or not, never passed */
};
struct simplifier {
  struct kernel *k;
  struct range *local;  /* by local */
  bool *is_dim;         /* by size: an argument has as many elements along a dimension, so that it is not below 0 */
  expr_id *memo;        /* by expression that was there at the start: what it became */
  VEC(struct range) of; /* by expression; low > high: not worked out yet */
};

static const struct range anything = {-FAR, FAR};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static bool is_known(struct range r) { return r.low > -FAR && r.high < FAR; }

/* Bounds that are far stay far. */
static int64_t sum(int64_t a, int64_t b) {
  if (a <= -FAR || a >= FAR || b <= -FAR || b >= FAR)
    return a <= -FAR || b <= -FAR ? -FAR : FAR;
  return most(-FAR, least(FAR, a + b));
}
static int64_t difference(int64_t a, int64_t b) { return sum(a, b <= -FAR ? FAR : b >= FAR ? -FAR : -b); }
static int64_t times(int64_t a, int64_t b) {
  __int128 v = (__int128)a * b;
  return v > FAR ? FAR : v < -FAR ? -FAR : (int64_t)v;
}
static int64_t floor_by(int64_t a, int64_t by) { return a <= -FAR || a >= FAR ? a : a / by - (a % by < 0); }

static struct range product(struct range a, struct range b) {
  if (!is_known(a) || !is_known(b))
    return a.low >= 0 && b.low >= 0 ? (struct range){times(a.low, b.low), FAR} : anything;
  int64_t v[4] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)};
  return (struct range){least(least(v[0], v[1]), least(v[2], v[3])), most(most(v[0], v[1]), most(v[2], v[3]))};
}

/* ---- ranges ---- */

static struct range range_of(struct simplifier *f, expr_id e);

static struct range operation_range(struct simplifier *f, expr_id e, const struct expr *x) {
  int first = x->op == SCALAR_SELECT;
  if (x->count != 2 + first)
    return anything;
  struct range a = range_of(f, expr_operand(f->k, e, first)), b = range_of(f, expr_operand(f->k, e, first + 1));
  int64_t by = b.low == b.high ? b.low : 0;
  switch (x->op) {
  case SCALAR_ADD: return (struct range){sum(a.low, b.low), sum(a.high, b.high)};
  case SCALAR_SUB: return (struct range){difference(a.low, b.high), difference(a.high, b.low)};
  case SCALAR_MUL: return product(a, b);
  case SCALAR_MIN: return (struct range){least(a.low, b.low), least(a.high, b.high)};
  case SCALAR_MAX: return (struct range){most(a.low, b.low), most(a.high, b.high)};
  case SCALAR_SELECT: return (struct range){least(a.low, b.low), most(a.high, b.high)};
  case SCALAR_FLOORDIV: return by > 0 ? (struct range){floor_by(a.low, by), floor_by(a.high, by)} : anything;
  case SCALAR_FLOORMOD: return by > 0 ? (struct range){0, a.low >= 0 ? least(a.high, by - 1) : by - 1} : anything;
  default: return anything;
  }
}

static struct range range_of(struct simplifier *f, expr_id e) {
  while (f->of.count <= e)
    vec_push(&f->of, (struct range){1, 0});
  if (f->of.items[e].low <= f->of.items[e].high)
    return f->of.items[e];
  struct expr x = *expr_get(f->k, e);
  struct range r = anything;
  if (x.dtype != DTYPE_INT64)
    r = anything;
  else if (x.op == SCALAR_CONST)
    r = x.imm > -FAR && x.imm < FAR ? (struct range){x.imm, x.imm} : anything;
  else if (x.op == SCALAR_SIZE)
    r = (struct range){f->is_dim[x.imm] ? 0 : -FAR, f->k->known_below > 0 && f->k->known_size == x.imm ? f->k->known_below - 1 : FAR};
  else if (x.op == SCALAR_LOCAL)
    r = f->local[x.imm];
  else if (x.op != SCALAR_LOAD)
    r = operation_range(f, e, &x);
  return f->of.items[e] = r;
}

/* ---- rules ---- */

static bool is_operation(const struct kernel *k, expr_id e, enum scalar_op op, expr_id second) {
  return expr_get(k, e)->op == op && expr_operand(k, e, 1) == second;
}

/* floordiv and floormod of `a` by the constant expression `c`. */
static expr_id simplify_division(struct simplifier *f, expr_id e, bool rest, expr_id a, expr_id c) {
  struct kernel *k = f->k;
  struct range r = range_of(f, a);
  int64_t by = expr_get(k, c)->imm;
  if (by < 1)
    return e;
  if (is_known(r) && floor_by(r.low, by) == floor_by(r.high, by)) {
    int64_t whole = floor_by(r.low, by), gone = whole < 0 ? -whole * by : whole * by;
    return !rest ? expr_int(k, DTYPE_INT64, whole) : expr_binary(k, whole < 0 ? SCALAR_ADD : SCALAR_SUB, a, expr_int(k, DTYPE_INT64, gone));
  }
  for (int i = 0; expr_get(k, a)->op == SCALAR_ADD && i < 2; i++) { /* x*c + y with y in [0, c) */
    expr_id many = expr_operand(k, a, i), few = expr_operand(k, a, 1 - i);
    if (is_operation(k, many, SCALAR_MUL, c) && range_of(f, few).low >= 0 && range_of(f, few).high < by)
      return rest ? few : expr_operand(k, many, 0);
  }
  return e;
}

/* (x / c) * c + x % c */
static bool is_whole(const struct kernel *k, expr_id many, expr_id few) {
  if (expr_get(k, many)->op != SCALAR_MUL || expr_get(k, few)->op != SCALAR_FLOORMOD)
    return false;
  expr_id c = expr_operand(k, few, 1), quotient = expr_operand(k, many, 0);
  int64_t by;
  return expr_is_const(k, c, &by) && by > 0 && expr_operand(k, many, 1) == c && is_operation(k, quotient, SCALAR_FLOORDIV, c) &&
         expr_operand(k, quotient, 0) == expr_operand(k, few, 0);
}

/* (a + b) - a is b, of integers: they wrap. */
static expr_id simplify_difference(const struct kernel *k, expr_id e, expr_id a, expr_id b) {
  for (int i = 0; expr_get(k, a)->op == SCALAR_ADD && i < 2; i++)
    if (expr_operand(k, a, i) == b)
      return expr_operand(k, a, 1 - i);
  return e;
}

/* a + by <= b, always */
static bool stays_below(struct range a, struct range b, int64_t by) { return a.high < FAR && b.low > -FAR && a.high + by <= b.low; }

static expr_id simplify_one(struct simplifier *f, expr_id e) {
  struct kernel *k = f->k;
  struct expr x = *expr_get(k, e);
  if (x.count != 2 || expr_get(k, expr_operand(k, e, 0))->dtype != DTYPE_INT64)
    return e;
  expr_id a = expr_operand(k, e, 0), b = expr_operand(k, e, 1);
  expr_id yes = expr_int(k, DTYPE_BOOL, 1), no = expr_int(k, DTYPE_BOOL, 0);
  struct range ra = range_of(f, a), rb = range_of(f, b), all = range_of(f, e);
  if (x.dtype == DTYPE_INT64 && is_known(all) && all.low == all.high)
    return expr_int(k, DTYPE_INT64, all.low);
  switch (x.op) {
  case SCALAR_LE: return stays_below(ra, rb, 0) ? yes : stays_below(rb, ra, 1) ? no : e;
  case SCALAR_LT: return stays_below(ra, rb, 1) ? yes : stays_below(rb, ra, 0) ? no : e;
  case SCALAR_MIN: return stays_below(ra, rb, 0) ? a : stays_below(rb, ra, 0) ? b : e;
  case SCALAR_MAX: return stays_below(ra, rb, 0) ? b : stays_below(rb, ra, 0) ? a : e;
  case SCALAR_ADD: return is_whole(k, a, b) || is_whole(k, b, a) ? expr_operand(k, is_whole(k, a, b) ? b : a, 0) : e;
  case SCALAR_SUB: return simplify_difference(k, e, a, b);
  case SCALAR_FLOORDIV:
  case SCALAR_FLOORMOD: return expr_is_const(k, b, NULL) ? simplify_division(f, e, x.op == SCALAR_FLOORMOD, a, b) : e;
  default: return e;
  }
}

static expr_id simplify(struct simplifier *f, expr_id e) {
  struct kernel *k = f->k;
  if (e == NO_EXPR || f->memo[e])
    return e == NO_EXPR ? NO_EXPR : f->memo[e];
  struct expr x = *expr_get(k, e);
  expr_id operands[LIMIT_RANK], r = e;
  bool changed = false;
  for (int i = 0; i < x.count; i++) {
    expr_id operand = expr_operand(k, e, i);
    operands[i] = simplify(f, operand);
    changed = changed || operands[i] != operand;
  }
  if (changed && x.op == SCALAR_LOAD)
    r = expr_load(k, (uint32_t)x.imm, x.part, operands, x.count);
  else if (changed)
    r = expr_make(k, (enum scalar_op)x.op, (enum dtype)x.dtype, operands, x.count);
  return f->memo[e] = x.op == SCALAR_LOAD ? r : simplify_one(f, r);
}

/* ---- kernels ---- */

static void find_dims(struct simplifier *f) {
  for (uint32_t i = 0; i < f->k->buffers.count; i++) {
    const struct kernel_buffer *b = &f->k->buffers.items[i];
    for (int d = 0; d < b->rank && b->mode != BUFFER_SCRATCH && b->mode != BUFFER_LOCAL; d++)
      if (DIM_IS_SIZE(b->dims[d]))
        f->is_dim[SIZE_OF_DIM(b->dims[d])] = true;
  }
}
static void find_ranges(struct simplifier *f, const struct stmt *s) {
  for (; s; s = s->next) {
    if (s->kind == STMT_FOR) {
      int64_t high = range_of(f, s->value).high;
      f->local[s->local] = (struct range){0, high >= FAR ? FAR : most(0, high - 1)};
    }
    find_ranges(f, s->body);
    find_ranges(f, s->otherwise);
  }
}

static bool simplify_at(struct simplifier *f, expr_id *e) {
  expr_id before = *e;
  *e = simplify(f, before);
  return *e != before;
}
static bool simplify_block(struct simplifier *f, struct stmt *s) {
  bool changes = false;
  for (; s; s = s->next) {
    if (s->kind == STMT_CHECK)
      continue; /* it may be what says that a size is none */
    changes |= simplify_at(f, &s->value);
    for (int i = 0; i < s->index_count; i++)
      changes |= simplify_at(f, &s->index[i]);
    changes |= simplify_block(f, s->body);
    changes |= simplify_block(f, s->otherwise);
  }
  return changes;
}

bool kernel_simplify(struct kernel *k) {
  struct simplifier f = {.k = k};
  f.local = calloc(k->locals.count + 1, sizeof *f.local);
  f.memo = calloc(k->exprs.count + 1, sizeof *f.memo);
  f.is_dim = calloc(k->size_count + 1, sizeof *f.is_dim);
  for (uint32_t i = 0; i < k->locals.count; i++)
    f.local[i] = anything;
  find_dims(&f);
  find_ranges(&f, k->body);
  bool changes = simplify_block(&f, k->body);
  free(f.local);
  free(f.memo);
  free(f.is_dim);
  vec_free(&f.of);
  return changes;
}
