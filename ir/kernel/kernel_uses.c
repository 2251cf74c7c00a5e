/* kernel_uses.c: see kernel_uses.h. */
#include "ir/kernel/kernel_uses.h"

#define USES_LOAD 0
#define USES_VAR 1
#define USES_LOOP 2
#define USES_FIRST 3 /* locals from here on, then buffers */

static uint64_t *row_of(const struct kernel_uses *u, expr_id e) { return u->sets + (size_t)e * u->words; }
static void set_bit(uint64_t *row, uint32_t bit) { row[bit / 64] |= UINT64_C(1) << bit % 64; }
static bool has_bit(const struct kernel_uses *u, expr_id e, uint32_t bit) { return row_of(u, e)[bit / 64] >> bit % 64 & 1; }

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
static int64_t bound_of(const struct kernel_uses *u, const struct expr *x, const int64_t *locals) {
  const struct kernel *k = u->k;
  int64_t v[2] = {-1, -1}, sum;
  if (x->dtype != DTYPE_INT64)
    return -1;
  for (int i = 0; i < x->count && i < 2; i++)
    v[i] = u->bounds[k->operands.items[x->first + (uint32_t)i]];
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
  case SCALAR_MAX: return both ? (v[0] > v[1] ? v[0] : v[1]) : v[0] >= 0 || v[1] >= 0 ? INT64_MAX : -1;
  default: return -1;
  }
}

void kernel_uses_find(const struct kernel *k, struct arena *arena, struct kernel_uses *u) {
  u->k = k;
  u->words = (USES_FIRST + k->locals.count + k->buffers.count + 63) / 64;
  u->sets = ARENA_ARRAY(arena, uint64_t, (size_t)u->words * k->exprs.count);
  u->bounds = ARENA_ARRAY(arena, int64_t, k->exprs.count);
  int64_t *locals = ARENA_ARRAY(arena, int64_t, k->locals.count + 1);
  bound_loops(k, k->body, locals);
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *x = expr_get(k, e);
    uint64_t *row = row_of(u, e);
    u->bounds[e] = bound_of(u, x, locals);
    for (int i = 0; i < x->count; i++)
      for (uint32_t w = 0; w < u->words; w++)
        row[w] |= row_of(u, expr_operand(k, e, i))[w];
    if (x->op == SCALAR_LOCAL) {
      set_bit(row, USES_FIRST + (uint32_t)x->imm);
      set_bit(row, k->locals.items[x->imm].is_loop ? USES_LOOP : USES_VAR);
    } else if (x->op == SCALAR_LOAD) {
      set_bit(row, USES_LOAD);
      set_bit(row, USES_FIRST + k->locals.count + (uint32_t)x->imm);
    }
  }
}

bool uses_local(const struct kernel_uses *u, expr_id e, uint32_t local) { return has_bit(u, e, USES_FIRST + local); }
bool uses_buffer(const struct kernel_uses *u, expr_id e, uint32_t buffer) {
  return has_bit(u, e, USES_FIRST + u->k->locals.count + buffer);
}
bool uses_loads(const struct kernel_uses *u, expr_id e) { return has_bit(u, e, USES_LOAD); }
bool uses_vars(const struct kernel_uses *u, expr_id e) { return has_bit(u, e, USES_VAR); }
bool uses_only_sizes(const struct kernel_uses *u, expr_id e) {
  return !has_bit(u, e, USES_LOAD) && !has_bit(u, e, USES_VAR) && !has_bit(u, e, USES_LOOP);
}

#define COEFFICIENT_DEPTH 24 /* of sums and products in an index; what is deeper counts as not affine */

static bool find_coefficient(const struct kernel_uses *u, expr_id e, uint32_t local, int depth, int64_t *out) {
  const struct kernel *k = u->k;
  const struct expr *x = expr_get(k, e);
  int64_t a, b, factor;
  *out = 0;
  if (!uses_local(u, e, local))
    return true;
  if (x->op == SCALAR_LOCAL) {
    *out = 1;
    return true;
  }
  if (depth == 0)
    return false;
  if (x->op == SCALAR_ADD || x->op == SCALAR_SUB) {
    if (!find_coefficient(u, expr_operand(k, e, 0), local, depth - 1, &a) ||
        !find_coefficient(u, expr_operand(k, e, 1), local, depth - 1, &b))
      return false;
    return x->op == SCALAR_ADD ? !__builtin_add_overflow(a, b, out) : !__builtin_sub_overflow(a, b, out);
  }
  for (int i = 0; x->op == SCALAR_MUL && i < 2; i++)
    if (expr_is_const(k, expr_operand(k, e, i), &factor))
      return find_coefficient(u, expr_operand(k, e, 1 - i), local, depth - 1, &a) && !__builtin_mul_overflow(a, factor, out);
  return false;
}
bool index_coefficient(const struct kernel_uses *u, expr_id e, uint32_t local, int64_t *out) {
  return find_coefficient(u, e, local, COEFFICIENT_DEPTH, out);
}

bool index_stride(const struct kernel_uses *u, uint32_t buffer, const expr_id *index, uint32_t local, int64_t *out) {
  const struct kernel_buffer *b = &u->k->buffers.items[buffer];
  int64_t step = 1, sum = 0;
  bool known = true; /* step is */
  for (int d = b->rank - 1; d >= 0; d--) {
    int64_t coefficient, moved;
    if (!index_coefficient(u, index[d], local, &coefficient) || (coefficient != 0 && !known))
      return false;
    if (coefficient != 0 && (__builtin_mul_overflow(coefficient, step, &moved) || __builtin_add_overflow(sum, moved, &sum)))
      return false;
    known = known && !DIM_IS_SIZE(b->dims[d]) && !__builtin_mul_overflow(step, b->dims[d], &step);
  }
  *out = sum;
  return true;
}
