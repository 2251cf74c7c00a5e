/* kernel_lanes.c: see kernel_lanes.h. */
#include "ir/kernel/kernel_lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/scalar.h"

/* ---- what varies ---- */

void lane_view_create(const struct kernel_uses *uses, struct arena *arena, struct lane_view *out) {
  *out = (struct lane_view){.uses = uses};
  out->locals = ARENA_ARRAY(arena, uint8_t, uses->k->locals.count + 1);
  out->exprs = ARENA_ARRAY(arena, uint8_t, uses->k->exprs.count + 1);
  lane_view_update(out);
}

/* Operands come before users, so one pass in order suffices. */
void lane_view_update(struct lane_view *v) {
  const struct kernel *k = v->uses->k;
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *x = expr_get(k, e);
    uint8_t of = x->op == SCALAR_LOCAL ? (uint8_t)(v->locals[x->imm] | VIEW_LOCALS) : 0;
    for (int i = 0; i < x->count; i++)
      of |= v->exprs[expr_operand(k, e, i)];
    v->exprs[e] = of;
  }
}

/* ---- accesses ---- */

#define COEFFICIENT_DEPTH 24 /* of sums and products in an index */

/* The coefficient of the lane's loop in an index whose remaining parts are the same in all lanes. */
static bool lane_coefficient_at(const struct lane_view *v, expr_id e, int depth, int64_t *out) {
  const struct kernel *k = v->uses->k;
  const struct expr *x = expr_get(k, e);
  int64_t a, b;
  *out = 0;
  if (!view_varies(v, e))
    return true;
  if (x->op == SCALAR_LOCAL) {
    *out = 1;
    return x->imm == v->loop;
  }
  if ((x->op != SCALAR_ADD && x->op != SCALAR_SUB && x->op != SCALAR_MUL) || depth == 0)
    return false;
  if (!lane_coefficient_at(v, expr_operand(k, e, 0), depth - 1, &a) || !lane_coefficient_at(v, expr_operand(k, e, 1), depth - 1, &b))
    return false;
  if (x->op == SCALAR_MUL) {
    int64_t factor;
    return expr_is_const(k, expr_operand(k, e, 1), &factor) && !__builtin_mul_overflow(a, factor, out);
  }
  *out = x->op == SCALAR_ADD ? a + b : a - b;
  return true;
}
static bool lane_coefficient(const struct lane_view *v, expr_id e, int64_t *out) {
  return lane_coefficient_at(v, e, COEFFICIENT_DEPTH, out);
}

int64_t lane_stride(const struct lane_view *v, uint32_t number, const expr_id *index) {
  const struct kernel_buffer *buffer = &v->uses->k->buffers.items[number];
  int moving = -1, last = buffer->rank - 1;
  for (int d = 0; d < buffer->rank; d++) {
    if (!view_varies(v, index[d]))
      continue;
    if (moving >= 0)
      return STRIDE_FAR;
    moving = d;
  }
  if (moving < 0)
    return 0;
  int64_t stride, apart = dtype_is_complex(buffer->dtype) ? 2 : 1; /* elements of neighbours in that dimension */
  for (; last > moving && apart <= 2; last--)
    apart = buffer->dims[last] == 1 || buffer->dims[last] == 2 ? apart * buffer->dims[last] : STRIDE_FAR;
  if (apart > 2 || !lane_coefficient(v, index[moving], &stride) || stride > 2 || stride < -2)
    return STRIDE_FAR;
  stride *= apart;
  return stride != 0 && stride <= 2 && stride >= -2 ? stride : STRIDE_FAR;
}
bool lane_is_affine(const struct lane_view *v, uint32_t buffer, const expr_id *index) {
  int64_t coefficient;
  for (int d = 0; d < v->uses->k->buffers.items[buffer].rank; d++)
    if (!lane_coefficient(v, index[d], &coefficient))
      return false;
  return true;
}

/* ---- reductions ---- */

static bool is_reduction_op(enum scalar_op op) {
  return op == SCALAR_ADD || op == SCALAR_MUL || op == SCALAR_MIN || op == SCALAR_MAX || op == SCALAR_AND || op == SCALAR_OR ||
         op == SCALAR_XOR;
}
/* Whether the result depends on the order of the terms. */
static bool has_order(const struct kernel *k, const struct stmt *s, enum scalar_op op) {
  return dtype_is_float(k->locals.items[s->local].dtype) && (op == SCALAR_ADD || op == SCALAR_MUL);
}
static bool match_reduction(const struct kernel_uses *uses, const struct stmt *s, enum scalar_op *op) {
  const struct kernel *k = uses->k;
  const struct expr *x = expr_get(k, s->value);
  if (x->op == SCALAR_FMA) {
    *op = SCALAR_ADD;
    return expr_is_local(k, expr_operand(k, s->value, 2), s->local) && !uses_local(uses, expr_operand(k, s->value, 0), s->local) &&
           !uses_local(uses, expr_operand(k, s->value, 1), s->local);
  }
  if (!is_reduction_op(x->op))
    return false;
  *op = x->op;
  for (int i = 0; i < 2; i++)
    if (expr_is_local(k, expr_operand(k, s->value, i), s->local) && !uses_local(uses, expr_operand(k, s->value, 1 - i), s->local))
      return true;
  return false;
}

static void declared_inside(const struct stmt *s, bool *inside) {
  for (; s; s = s->next) {
    if (s->kind == STMT_VAR || s->kind == STMT_FOR)
      inside[s->local] = true;
    declared_inside(s->body, inside);
    declared_inside(s->otherwise, inside);
  }
}

static bool add_reduction(struct reductions *r, uint32_t local, enum scalar_op op) {
  int i = 0;
  while (i < r->count && r->items[i].local != local)
    i++;
  if (i < r->count)
    return r->items[i].op == op;
  if (i == REDUCTIONS_MAX)
    return false;
  r->items[r->count++] = (struct reduction){local, op};
  return true;
}
static bool collect_sets(const struct kernel_uses *uses, const struct stmt *s, const bool *inside, bool keeps_order, struct reductions *r) {
  for (; s; s = s->next) {
    enum scalar_op op;
    if (s->kind == STMT_SET && !inside[s->local]) {
      if (!match_reduction(uses, s, &op) || (keeps_order && has_order(uses->k, s, op)) || !add_reduction(r, s->local, op))
        return false;
    }
    if (!collect_sets(uses, s->body, inside, keeps_order, r) || !collect_sets(uses, s->otherwise, inside, keeps_order, r))
      return false;
  }
  return true;
}
static bool reads_reduction(const struct kernel_uses *uses, expr_id e, const struct reductions *r, uint32_t but) {
  for (int i = 0; e != NO_EXPR && i < r->count; i++)
    if (r->items[i].local != but && uses_local(uses, e, r->items[i].local))
      return true;
  return false;
}
static bool reads_outside_sets(const struct kernel_uses *uses, const struct stmt *s, const struct reductions *r) {
  for (; s; s = s->next) {
    if (reads_reduction(uses, s->value, r, s->kind == STMT_SET ? s->local : UINT32_MAX))
      return true;
    for (int i = 0; i < s->index_count; i++)
      if (reads_reduction(uses, s->index[i], r, UINT32_MAX))
        return true;
    if (reads_outside_sets(uses, s->body, r) || reads_outside_sets(uses, s->otherwise, r))
      return true;
  }
  return false;
}
bool reductions_find(const struct kernel_uses *uses, const struct stmt *body, bool keeps_order, struct reductions *out) {
  bool *inside = calloc(uses->k->locals.count + 1, sizeof *inside);
  declared_inside(body, inside);
  out->count = 0;
  bool found = collect_sets(uses, body, inside, keeps_order, out) && !reads_outside_sets(uses, body, out);
  free(inside);
  return found;
}

int64_t reduction_identity(enum scalar_op op, enum dtype dtype) {
  bool is_unsigned = dtype_is_unsigned(dtype) || dtype == DTYPE_BOOL;
  int64_t least = is_unsigned ? 0 : INT64_MIN >> (64 - 8 * (int)dtype_size(dtype));
  if (dtype_is_float(dtype))
    return expr_double_to_bits(dtype, op == SCALAR_ADD ? -0.0 : op == SCALAR_MUL ? 1 : op == SCALAR_MIN ? INFINITY : -INFINITY);
  switch (op) {
  case SCALAR_MUL: return scalar_wrap(dtype, 1);
  case SCALAR_AND: return scalar_wrap(dtype, -1);
  case SCALAR_MIN: return scalar_wrap(dtype, ~least);
  case SCALAR_MAX: return least;
  default: return 0;
  }
}

const struct stmt *split_sum(const struct kernel_uses *uses, const struct stmt *s, struct reductions *out) {
  const struct stmt *outer = s;
  while (s->run == RUN_PLAIN && s->loop == LOOP_RED && s->body && !s->body->next && s->body->kind == STMT_FOR && s->body->loop == LOOP_RED)
    s = s->body;
  if (s->run != RUN_VECTORS || s->loop != LOOP_RED || !reductions_find(uses, s->body, false, out))
    return NULL;
  for (const struct stmt *loop = outer; loop != s->body; loop = loop->body)
    if (reads_reduction(uses, loop->value, out, UINT32_MAX))
      return NULL;
  return s;
}

/* ---- whether a loop may ---- */

bool turns_part_ways(const struct kernel_uses *uses, const struct stmt *s, uint32_t loop) {
  for (; s; s = s->next)
    if (s->kind == STMT_IF || s->kind == STMT_WHILE || s->kind == STMT_CHECK || (s->kind == STMT_FOR && uses_local(uses, s->value, loop)) ||
        turns_part_ways(uses, s->body, loop))
      return true;
  return false;
}

/* What must hold of an expression: nothing without vectors; under a condition no load that all lanes share. */
static bool expr_fits(const struct lane_view *v, expr_id e, bool conditional, bool *seen) {
  const struct kernel *k = v->uses->k;
  const struct expr *x = expr_get(k, e);
  if (e == NO_EXPR || seen[e])
    return true;
  seen[e] = true;
  if (x->dtype == DTYPE_STRING || (conditional && x->op == SCALAR_LOAD && !view_varies(v, e)))
    return false;
  for (int i = 0; i < x->count; i++)
    if (!expr_fits(v, expr_operand(k, e, i), conditional, seen))
      return false;
  return true;
}

struct legality {
  const struct lane_view *view;
  bool *seen; /* by expression, of the statement at hand */
  bool is_par, has_check, has_store, has_red;
  int turning; /* `while`s around the statement: stores in one are refused, as their lanes mostly lie apart */
};
static bool exprs_fit(const struct legality *l, const struct stmt *s, bool conditional) {
  memset(l->seen, 0, l->view->uses->k->exprs.count * sizeof *l->seen);
  for (int i = 0; i < s->index_count; i++)
    if (!expr_fits(l->view, s->index[i], conditional, l->seen))
      return false;
  return expr_fits(l->view, s->value, conditional, l->seen);
}
static bool stmt_fits(const struct legality *l, const struct stmt *s, bool conditional) {
  bool varies = s->value != NO_EXPR && view_varies(l->view, s->value), index_varies = false;
  for (int i = 0; i < s->index_count; i++)
    index_varies = index_varies || view_varies(l->view, s->index[i]);
  if (s->kind == STMT_BUFFER || s->kind == STMT_FETCH)
    return false; /* steps' own: no lane has a buffer to itself */
  if ((s->kind == STMT_WHILE && !l->is_par) || (s->kind == STMT_FOR && varies))
    return false;
  if (s->kind == STMT_STORE && (!l->is_par || !index_varies || l->turning))
    return false;
  return s->kind != STMT_CHECK || (l->is_par && !l->has_store && !conditional);
}
static bool block_fits(struct legality *l, const struct stmt *s, bool conditional) {
  for (; s; s = s->next) {
    if (!exprs_fit(l, s, conditional) || !stmt_fits(l, s, conditional))
      return false;
    l->has_store = l->has_store || s->kind == STMT_STORE;
    l->has_check = l->has_check || s->kind == STMT_CHECK;
    l->has_red = l->has_red || (s->kind == STMT_FOR && s->loop == LOOP_RED);
    bool varies = s->value != NO_EXPR && view_varies(l->view, s->value);
    bool inner = conditional || ((s->kind == STMT_IF || s->kind == STMT_WHILE) && varies);
    l->turning += s->kind == STMT_WHILE;
    if (!block_fits(l, s->body, inner) || !block_fits(l, s->otherwise, inner))
      return false;
    l->turning -= s->kind == STMT_WHILE;
  }
  return true;
}

static void mark_locals(struct lane_view *v, const struct stmt *s, uint8_t as) {
  for (; s; s = s->next) {
    if (s->kind == STMT_VAR || s->kind == STMT_FOR)
      v->locals[s->local] = s->kind == STMT_VAR ? as : 0;
    mark_locals(v, s->body, as);
    mark_locals(v, s->otherwise, as);
  }
}
static void mark_all(struct lane_view *v, uint32_t loop, const struct stmt *body, const struct lane_facts *facts, uint8_t as) {
  mark_locals(v, body, as);
  for (int i = 0; i < facts->sums.count; i++)
    v->locals[facts->sums.items[i].local] = as;
  v->locals[loop] = as;
  lane_view_update(v);
}
bool lane_view_enter(struct lane_view *v, uint32_t loop, bool is_par, const struct stmt *body, bool keeps_order, struct lane_facts *out) {
  struct legality l = {.view = v, .is_par = is_par};
  uint32_t outer = v->loop;
  *out = (struct lane_facts){0};
  if (!reductions_find(v->uses, body, keeps_order, &out->sums) || is_par != (out->sums.count == 0))
    return false;
  mark_all(v, loop, body, out, VIEW_VARIES);
  v->loop = loop;
  l.seen = calloc(v->uses->k->exprs.count + 1, sizeof *l.seen);
  bool fits = block_fits(&l, body, false);
  free(l.seen);
  out->has_check = l.has_check;
  out->has_red = l.has_red;
  if (!fits) {
    lane_view_leave(v, loop, body, out);
    v->loop = outer;
  }
  return fits;
}
void lane_view_leave(struct lane_view *v, uint32_t loop, const struct stmt *body, const struct lane_facts *facts) {
  mark_all(v, loop, body, facts, 0);
}
