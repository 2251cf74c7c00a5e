/* codegen_uses.c: what each expression is made of: which locals it uses, which buffers it loads from, how large an index is.
 *
 * Expressions are a DAG whose walks may visit a node exponentially often; so these sets are worked out once, in the order
 * of the ids, and asked for everywhere else. */
#include "targets/cpu/codegen.h"

#define USES_LOAD 0
#define USES_VAR 1
#define USES_LOOP 2
#define USES_FIRST 3 /* locals from here on, then buffers */

static uint64_t *row_of(const struct codegen *c, expr_id e) { return c->uses + (size_t)e * c->uses_words; }
static void set_bit(uint64_t *row, uint32_t bit) { row[bit / 64] |= UINT64_C(1) << bit % 64; }
static bool has_bit(const struct codegen *c, expr_id e, uint32_t bit) { return row_of(c, e)[bit / 64] >> bit % 64 & 1; }

/* Loops begin at 0: what their variables reach. */
static void bound_loops(const struct kernel *k, const struct stmt *s, int64_t *bounds) {
  for (; s; s = s->next) {
    int64_t extent;
    if (s->kind == STMT_FOR)
      bounds[s->local] = !expr_is_const(k, s->value, &extent) ? INT64_MAX : extent < 1 ? 0 : extent - 1;
    bound_loops(k, s->body, bounds);
    bound_loops(k, s->otherwise, bounds);
  }
}
/* The largest value of an i64 that is never negative, INT64_MAX when it is not known; -1: it may be negative. */
static int64_t bound_of(const struct codegen *c, const struct expr *x, const int64_t *locals) {
  const struct kernel *k = c->k;
  int64_t v[2] = {-1, -1}, sum;
  if (x->dtype != DTYPE_INT64)
    return -1;
  for (int i = 0; i < x->count && i < 2; i++)
    v[i] = c->bounds[k->operands.items[x->first + (uint32_t)i]];
  bool both = v[0] >= 0 && v[1] >= 0, known = both && v[0] < INT64_MAX && v[1] < INT64_MAX;
  switch (x->op) {
  case SCALAR_CONST: return x->imm < 0 ? -1 : x->imm;
  case SCALAR_SIZE: return INT64_MAX;
  case SCALAR_LOCAL: return k->locals.items[x->imm].is_loop ? locals[x->imm] : -1;
  case SCALAR_ADD: return known && !__builtin_add_overflow(v[0], v[1], &sum) ? sum : -1;
  case SCALAR_MUL: return known && !__builtin_mul_overflow(v[0], v[1], &sum) ? sum : -1;
  case SCALAR_DIV:
  case SCALAR_FLOORDIV: return both ? v[0] : -1;
  case SCALAR_REM:
  case SCALAR_FLOORMOD: return both ? (v[0] < v[1] ? v[0] : v[1]) : -1;
  case SCALAR_MIN: return both ? (v[0] < v[1] ? v[0] : v[1]) : -1;
  case SCALAR_MAX: return both ? (v[0] > v[1] ? v[0] : v[1]) : v[0] == -1 ? v[1] : v[0];
  default: return -1;
  }
}

void codegen_uses(struct codegen *c) {
  const struct kernel *k = c->k;
  c->uses_words = (USES_FIRST + k->locals.count + k->buffers.count + 63) / 64;
  c->uses = ARENA_ARRAY(&c->m->arena, uint64_t, (size_t)c->uses_words * k->exprs.count);
  c->bounds = ARENA_ARRAY(&c->m->arena, int64_t, k->exprs.count);
  int64_t *locals = ARENA_ARRAY(&c->m->arena, int64_t, k->locals.count + 1);
  bound_loops(k, k->body, locals);
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *x = expr_get(k, e);
    uint64_t *row = row_of(c, e);
    c->bounds[e] = bound_of(c, x, locals);
    for (int i = 0; i < x->count; i++)
      for (uint32_t w = 0; w < c->uses_words; w++)
        row[w] |= row_of(c, expr_operand(k, e, i))[w];
    if (x->op == SCALAR_LOCAL) {
      set_bit(row, USES_FIRST + (uint32_t)x->imm);
      set_bit(row, k->locals.items[x->imm].is_loop ? USES_LOOP : USES_VAR);
    } else if (x->op == SCALAR_LOAD) {
      set_bit(row, USES_LOAD);
      set_bit(row, USES_FIRST + k->locals.count + (uint32_t)x->imm);
    }
  }
}

bool expr_uses_local(const struct codegen *c, expr_id e, uint32_t local) { return has_bit(c, e, USES_FIRST + local); }
bool expr_loads_from(const struct codegen *c, expr_id e, uint32_t buffer) {
  return has_bit(c, e, USES_FIRST + c->k->locals.count + buffer);
}
bool expr_loads(const struct codegen *c, expr_id e) { return has_bit(c, e, USES_LOAD); }
bool expr_uses_var(const struct codegen *c, expr_id e) { return has_bit(c, e, USES_VAR); }
bool expr_of_sizes(const struct codegen *c, expr_id e) {
  return !has_bit(c, e, USES_LOAD) && !has_bit(c, e, USES_VAR) && !has_bit(c, e, USES_LOOP);
}

#define COEFFICIENT_DEPTH 24 /* of sums and products in an index; what is deeper counts as not affine */

static bool find_coefficient(const struct codegen *c, expr_id e, uint32_t local, int depth, int64_t *out) {
  const struct kernel *k = c->k;
  const struct expr *x = expr_get(k, e);
  int64_t a, b, factor;
  *out = 0;
  if (!expr_uses_local(c, e, local))
    return true;
  if (x->op == SCALAR_LOCAL) {
    *out = 1;
    return true;
  }
  if (depth == 0)
    return false;
  if (x->op == SCALAR_ADD || x->op == SCALAR_SUB) {
    if (!find_coefficient(c, expr_operand(k, e, 0), local, depth - 1, &a) ||
        !find_coefficient(c, expr_operand(k, e, 1), local, depth - 1, &b))
      return false;
    return x->op == SCALAR_ADD ? !__builtin_add_overflow(a, b, out) : !__builtin_sub_overflow(a, b, out);
  }
  for (int i = 0; x->op == SCALAR_MUL && i < 2; i++)
    if (expr_is_const(k, expr_operand(k, e, i), &factor))
      return find_coefficient(c, expr_operand(k, e, 1 - i), local, depth - 1, &a) && !__builtin_mul_overflow(a, factor, out);
  return false;
}
bool expr_coefficient(const struct codegen *c, expr_id e, uint32_t local, int64_t *out) {
  return find_coefficient(c, e, local, COEFFICIENT_DEPTH, out);
}
