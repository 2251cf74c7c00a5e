/* codegen_lanes.c: which loop becomes the lanes of vectors, and how.
 *
 * A loop may be vectorised when it is par, or red and carries nothing but reductions (x = op(x, e)); what is inside must
 * run alike in all lanes: loops with the same extent, conditions and while loops by masks. Of a nest the loop is taken whose
 * lanes make the nest cheapest by a simple count: an operation costs one, a gather as much as its lanes, a contiguous or
 * uniform load one for all lanes, one of lanes two apart or backwards a few. What is left at the end of a loop runs once more
 * under a mask; a loop with checks is left to scalar code from where a check fails.
 *
 * A sum is split over lanes whose number depends on the kernel and the CPU alone, and added up as a tree: the same bits whatever the
 * number of threads. With --math strict it is not split. */
#include <assert.h>
#include <string.h>

#include "targets/cpu/codegen.h"

#define LONG_BODY 40 /* operations */

double loop_trips(const struct kernel *k, expr_id extent) {
  const struct expr *x = expr_get(k, extent);
  int64_t n;
  if (expr_is_const(k, extent, &n))
    return n < 0 ? 0 : (double)n;
  if (x->op == SCALAR_SUB) /* the part of a range that is left */
    return loop_trips(k, expr_operand(k, extent, 0));
  if (x->op != SCALAR_MIN)
    return TRIPS_OPEN;
  double a = loop_trips(k, expr_operand(k, extent, 0)), b = loop_trips(k, expr_operand(k, extent, 1));
  return a < b ? a : b;
}

/* ---- reductions ---- */

static bool is_reduction_op(enum scalar_op op) {
  return op == SCALAR_ADD || op == SCALAR_MUL || op == SCALAR_MIN || op == SCALAR_MAX || op == SCALAR_AND || op == SCALAR_OR ||
         op == SCALAR_XOR;
}
/* Whether the result depends on the order of the terms, and that is to be kept. */
static bool keeps_order(const struct codegen *c, const struct stmt *s, enum scalar_op op) {
  return c->m->math == MATH_STRICT && dtype_is_float(c->k->locals.items[s->local].dtype) && (op == SCALAR_ADD || op == SCALAR_MUL);
}
/* x = op(x, e) or op(e, x) where e does not use x; fma(e, f, x) counts as add. */
static bool match_reduction(struct codegen *c, const struct stmt *s, enum scalar_op *op) {
  const struct kernel *k = c->k;
  const struct expr *x = expr_get(k, s->value);
  if (x->op == SCALAR_FMA) {
    *op = SCALAR_ADD;
    expr_id last = expr_operand(k, s->value, 2);
    return expr_get(k, last)->op == SCALAR_LOCAL && expr_get(k, last)->imm == s->local &&
           !expr_uses_local(c, expr_operand(k, s->value, 0), s->local) && !expr_uses_local(c, expr_operand(k, s->value, 1), s->local);
  }
  if (!is_reduction_op(x->op))
    return false;
  *op = x->op;
  for (int i = 0; i < 2; i++) {
    expr_id self = expr_operand(k, s->value, i), other = expr_operand(k, s->value, 1 - i);
    if (expr_get(k, self)->op == SCALAR_LOCAL && expr_get(k, self)->imm == s->local && !expr_uses_local(c, other, s->local))
      return true;
  }
  return false;
}

static void declared_inside(const struct stmt *s, uint8_t *inside) {
  for (; s; s = s->next) {
    if (s->kind == STMT_VAR || s->kind == STMT_FOR)
      inside[s->local] = 1;
    declared_inside(s->body, inside);
    declared_inside(s->otherwise, inside);
  }
}

struct reductions {
  struct reduction {
    uint32_t local;
    enum scalar_op op;
  } items[16];
  int count;
};

/* Every set to a local from outside is a reduction, always with the same operation, and nothing else reads that local. */
static bool collect_sets(struct codegen *c, const struct stmt *s, const uint8_t *inside, struct reductions *r) {
  for (; s; s = s->next) {
    if (s->kind == STMT_SET && !inside[s->local]) {
      enum scalar_op op;
      if (!match_reduction(c, s, &op) || keeps_order(c, s, op))
        return false;
      int i = 0;
      while (i < r->count && r->items[i].local != s->local)
        i++;
      if (i == 16 || (i < r->count && r->items[i].op != op))
        return false;
      r->items[i] = (struct reduction){s->local, op};
      if (i == r->count)
        r->count++;
    }
    if (!collect_sets(c, s->body, inside, r) || !collect_sets(c, s->otherwise, inside, r))
      return false;
  }
  return true;
}
static bool reads_reduction(struct codegen *c, expr_id e, const struct reductions *r, uint32_t but) {
  for (int i = 0; e != NO_EXPR && i < r->count; i++)
    if (r->items[i].local != but && expr_uses_local(c, e, r->items[i].local))
      return true;
  return false;
}
static bool reads_outside_sets(struct codegen *c, const struct stmt *s, const struct reductions *r) {
  for (; s; s = s->next) {
    if (reads_reduction(c, s->value, r, s->kind == STMT_SET ? s->local : UINT32_MAX))
      return true;
    for (int i = 0; i < s->index_count; i++)
      if (reads_reduction(c, s->index[i], r, UINT32_MAX))
        return true;
    if (reads_outside_sets(c, s->body, r) || reads_outside_sets(c, s->otherwise, r))
      return true;
  }
  return false;
}
static bool find_reductions(struct codegen *c, const struct stmt *body, struct reductions *r) {
  uint8_t *inside = arena_alloc(&c->m->arena, c->k->locals.count + 1);
  declared_inside(body, inside);
  r->count = 0;
  return collect_sets(c, body, inside, r) && !reads_outside_sets(c, body, r);
}

/* ---- legality ---- */

static void mark_locals(struct codegen *c, const struct stmt *s, bool varying, bool jammed) {
  for (; s; s = s->next) {
    if (s->kind == STMT_VAR) {
      c->locals[s->local].varying = varying;
      c->locals[s->local].jammed = jammed;
    } else if (s->kind == STMT_FOR) {
      c->locals[s->local].in_memory = c->locals[s->local].varying = c->locals[s->local].jammed = false;
    }
    mark_locals(c, s->body, varying, jammed);
    mark_locals(c, s->otherwise, varying, jammed);
  }
}

/* What must hold of an expression: nothing without vectors; under a condition no load that all lanes share. */
static bool expr_fits(struct codegen *c, expr_id e, bool conditional, uint8_t *seen) {
  const struct kernel *k = c->k;
  const struct expr *x = expr_get(k, e);
  if (e == NO_EXPR || seen[e])
    return true;
  seen[e] = 1;
  if (x->dtype == DTYPE_STRING || (conditional && x->op == SCALAR_LOAD && !(c->flags[e] & EXPR_VARYING)))
    return false;
  for (int i = 0; i < x->count; i++)
    if (!expr_fits(c, expr_operand(k, e, i), conditional, seen))
      return false;
  return true;
}

struct legality {
  bool is_par, has_check, has_store, has_red;
  int turning; /* while loops around the statement: stores in one are refused, as their lanes mostly lie apart */
};
static bool block_fits(struct codegen *c, const struct stmt *s, bool conditional, struct legality *l) {
  uint8_t *seen = arena_alloc(&c->m->arena, c->k->exprs.count);
  for (; s; s = s->next) {
    memset(seen, 0, c->k->exprs.count);
    bool varying = s->value != NO_EXPR && (c->flags[s->value] & EXPR_VARYING), index_varies = false;
    if (!expr_fits(c, s->value, conditional, seen))
      return false;
    for (int i = 0; i < s->index_count; i++) {
      index_varies = index_varies || (c->flags[s->index[i]] & EXPR_VARYING);
      if (!expr_fits(c, s->index[i], conditional, seen))
        return false;
    }
    if ((s->kind == STMT_WHILE && !l->is_par) || (s->kind == STMT_FOR && varying))
      return false;
    if (s->kind == STMT_STORE && (!l->is_par || !index_varies || l->turning))
      return false;
    if (s->kind == STMT_CHECK && (!l->is_par || l->has_store || conditional))
      return false;
    l->has_store = l->has_store || s->kind == STMT_STORE;
    l->has_check = l->has_check || s->kind == STMT_CHECK;
    l->has_red = l->has_red || (s->kind == STMT_FOR && s->loop == LOOP_RED);
    bool inner = conditional || ((s->kind == STMT_IF || s->kind == STMT_WHILE) && varying);
    l->turning += s->kind == STMT_WHILE;
    if (!block_fits(c, s->body, inner, l) || !block_fits(c, s->otherwise, inner, l))
      return false;
    l->turning -= s->kind == STMT_WHILE;
  }
  return true;
}

/* ---- cost ---- */

static bool divides(const struct expr *x) { return op_effort(x->op) == EFFORT_DIVIDE || op_effort(x->op) == EFFORT_LONG; }
/* Integer divisions are done lane by lane, but for those by constants of small indices. */
static bool divides_by_lane(const struct codegen *c, expr_id e) {
  const struct expr *x = expr_get(c->k, e);
  if (dtype_is_float(x->dtype) || !divides(x) || x->count != 2) /* a square root of integers has one */
    return false;
  expr_id by = expr_operand(c->k, e, 1);
  int64_t a = c->uses.bounds[expr_operand(c->k, e, 0)], b = c->uses.bounds[by];
  return !(expr_is_const(c->k, by, NULL) && a >= 0 && a <= INT32_MAX && b >= 0 && b <= INT32_MAX);
}

/* Costs of what a statement evaluates; lanes: native lanes, 1 for scalar code. */
static double expr_cost(struct codegen *c, expr_id e, double lanes, uint8_t *seen) {
  const struct kernel *k = c->k;
  const struct expr *x = expr_get(k, e);
  if (e == NO_EXPR || seen[e])
    return 0;
  seen[e] = 1;
  double sum = op_operations(x->op);
  if (lanes > 1 && (c->flags[e] & EXPR_VARYING)) {
    bool alone = divides_by_lane(c, e) || (op_effort(x->op) == EFFORT_FUNCTION && !has_math(c, x->op, x->dtype));
    if (x->op == SCALAR_LOAD)
      sum = access_operations(c, (uint32_t)x->imm, &k->operands.items[x->first], lanes, GATHER_OPERATIONS);
    else if (alone)
      sum *= lanes; /* done lane by lane */
    else if (x->op != SCALAR_LOAD && dtype_size(x->dtype) == 8)
      sum *= WIDE_SHARE;
  }
  if (x->op == SCALAR_LOAD && lanes > 1 && access_is_affine(c, (uint32_t)x->imm, &k->operands.items[x->first]))
    return sum; /* its index is a scalar that costs next to nothing */
  for (int i = 0; i < x->count; i++)
    sum += expr_cost(c, expr_operand(k, e, i), lanes, seen) * (x->op == SCALAR_LOAD ? INDEX_SHARE : 1);
  return sum;
}
static double best_cost(struct codegen *c, const struct stmt *s);

/* What stores that lie apart cost more in a loop along which they lie side by side: lanes then are lines of their own, often as many powers
 * of two apart, of which a cache keeps few until their next element comes. */
static double lines_kept_open(struct codegen *c, const struct stmt *loop, double lanes) {
  double sum = 0;
  for (const struct stmt *s = loop->body; s; s = s->next) {
    int64_t step;
    if (s->kind == STMT_STORE && s->index_count && access_is_far(c, s->buffer, s->index) &&
        expr_coefficient(c, s->index[s->index_count - 1], loop->local, &step) && (step == 1 || step == -1))
      sum += lanes * OPEN_LINE_OPERATIONS;
  }
  return sum;
}
static double block_cost(struct codegen *c, const struct stmt *s, double lanes) {
  double sum = 0;
  uint8_t *seen = arena_alloc(&c->m->arena, c->k->exprs.count);
  for (; s; s = s->next) {
    memset(seen, 0, c->k->exprs.count);
    sum += 0.5 + expr_cost(c, s->value, lanes, seen);
    if (s->kind == STMT_STORE)
      sum += lanes > 1 ? access_operations(c, s->buffer, s->index, lanes, SCATTER_OPERATIONS) : 1;
    if (s->kind == STMT_FOR)
      sum += lanes > 1 ? loop_trips(c->k, s->value) * (block_cost(c, s->body, lanes) + lines_kept_open(c, s, lanes)) : best_cost(c, s);
    else if (s->kind == STMT_WHILE)
      sum += TRIPS_INSIDE * (lanes > 1 ? SLOWEST_LANE : 1) * block_cost(c, s->body, lanes);
    else
      sum += block_cost(c, s->body, lanes) + block_cost(c, s->otherwise, lanes);
  }
  return sum;
}

double stmt_operations(struct codegen *c, const struct stmt *s) {
  return expr_cost(c, s->value, 1, arena_alloc(&c->m->arena, c->k->exprs.count));
}

static uint32_t widest_element(struct codegen *c, const struct stmt *s) {
  uint32_t widest = 1;
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE)
      widest = (uint32_t)dtype_size(dtype_real(c->k->buffers.items[s->buffer].dtype)) > widest
               ? (uint32_t)dtype_size(dtype_real(c->k->buffers.items[s->buffer].dtype))
               : widest;
    if (s->kind == STMT_SET || s->kind == STMT_VAR)
      widest = (uint32_t)dtype_size(c->k->locals.items[s->local].dtype) > widest ? (uint32_t)dtype_size(c->k->locals.items[s->local].dtype)
                                                                                 : widest;
    uint32_t inner = widest_element(c, s->body), other = widest_element(c, s->otherwise);
    widest = inner > widest ? inner : widest;
    widest = other > widest ? other : widest;
  }
  return widest;
}
static uint32_t varying_count(struct codegen *c) {
  uint32_t count = 0;
  for (expr_id e = 1; e < c->k->exprs.count; e++)
    if ((c->flags[e] & EXPR_VARYING) && expr_get(c->k, e)->op > SCALAR_LOAD)
      count += op_operations(expr_get(c->k, e)->op) <= 1 ? 1 : divides_by_lane(c, e) ? LONG_BODY : 6;
  return count;
}

/* Lanes in one register, times a few for independent operations where registers last. */
static uint32_t choose_lanes(struct codegen *c, const struct stmt *body, double trips, bool is_par, uint32_t *native) {
  uint32_t element = widest_element(c, body), heavy = varying_count(c);
  uint32_t lanes = c->m->cpu->vector_bytes / (element < 2 ? 2 : element);
  *native = lanes;
  uint32_t factor = !is_par ? 4 : heavy <= 12 ? 4 : heavy <= 30 ? 2 : 1;
  while (factor > 1 && (double)(lanes * factor) > trips)
    factor /= 2;
  lanes *= factor;
  while (lanes > 4 && (double)lanes >= 2 * trips)
    lanes /= 2;
  return lanes;
}

/* ---- the choice ---- */

bool plan_lanes(struct codegen *c, uint32_t local, bool is_par, double trips, const struct stmt *body, struct lane_plan *out) {
  struct reductions r = {.count = 0};
  struct legality l = {.is_par = is_par};
  memset(out, 0, sizeof *out);
  if (c->lanes > 1 || trips < 3 || (!is_par && (!find_reductions(c, body, &r) || r.count == 0)))
    return false;
  if (is_par && (!find_reductions(c, body, &r) || r.count > 0))
    return false;
  uint32_t old_local = c->lane_local;
  mark_locals(c, body, true, false);
  for (int i = 0; i < r.count; i++)
    c->locals[r.items[i].local].varying = true;
  c->locals[local].varying = true;
  c->lane_local = local;
  codegen_flags(c);
  bool fits = block_fits(c, body, false, &l);
  if (fits) {
    uint32_t native;
    out->lanes = choose_lanes(c, body, trips, is_par, &native);
    out->is_par = is_par;
    out->is_long = c->m->cpu->vector_bytes == 64 && varying_count(c) > LONG_BODY;
    out->has_check = l.has_check;
    out->has_red = l.has_red;
    double width = native < out->lanes ? native : out->lanes;
    width = trips < width ? trips : width;
    out->cost = trips / width * block_cost(c, body, width > 1 ? width : 1.01) + (is_par ? PAR_OPERATIONS : RED_OPERATIONS);
    out->share = out->cost / (trips * block_cost(c, body, 1.01));
  }
  mark_locals(c, body, false, false);
  for (int i = 0; i < r.count; i++)
    c->locals[r.items[i].local].varying = false;
  c->locals[local].varying = false;
  c->lane_local = old_local;
  codegen_flags(c);
  return fits;
}

static bool is_vector_loop(struct codegen *c, const struct stmt *s, struct lane_plan *plan, double *cost) {
  double trips = loop_trips(c->k, s->value), scalar = 1 + trips * block_cost(c, s->body, 1);
  bool good = s->loop != LOOP_SEQ && plan_lanes(c, s->local, s->loop == LOOP_PAR, trips, s->body, plan) && plan->cost < scalar;
  *cost = good ? plan->cost : scalar;
  return good;
}
static double best_cost(struct codegen *c, const struct stmt *s) {
  struct lane_plan plan;
  double cost;
  is_vector_loop(c, s, &plan, &cost);
  return cost;
}
double scalar_block_cost(struct codegen *c, const struct stmt *body) { return block_cost(c, body, 1); }

/* ---- writing a vector loop ---- */

static value lane_numbers(struct codegen *c, uint32_t lanes) {
  value steps[1024];
  for (uint32_t i = 0; i < lanes; i++)
    steps[i] = LLVMConstInt(c->m->i32, i, false);
  return LLVMConstVector(steps, lanes);
}

static void emit_lanes(struct codegen *c, uint32_t local, value base, value mask, const struct stmt *body, const struct lane_plan *plan) {
  c->lane_local = local;
  c->lane_base = base;
  c->mask = mask;
  c->set_mask = plan->is_par ? NULL : mask;
  emit_block(c, body);
  c->mask = c->set_mask = NULL;
}

void lanes_enter(struct codegen *c, uint32_t local, uint32_t lanes, const struct stmt *body) {
  mark_locals(c, body, true, c->copies > 1);
  c->locals[local].varying = true;
  c->locals[local].in_memory = false;
  c->lanes = lanes;
  c->lane_local = local;
  codegen_flags(c);
}
void lanes_leave(struct codegen *c, uint32_t local, const struct stmt *body) {
  mark_locals(c, body, false, c->copies > 1);
  c->locals[local].varying = false;
  c->lanes = 1;
  codegen_flags(c);
}

value mask_of(struct codegen *c, value base, value end, uint32_t lanes) {
  value left = LLVMBuildNSWSub(c->b, end, base, "");
  left = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){left, const_i64(c, lanes)}, 2);
  left = call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){left, const_i64(c, 0)}, 2);
  return LLVMBuildICmp(c->b, LLVMIntULT, lane_numbers(c, lanes), splat(c, LLVMBuildTrunc(c->b, left, c->m->i32, ""), lanes), "");
}

/* What whole vectors have left. */
static void emit_tail(struct codegen *c, uint32_t local, value base, value end, const struct stmt *body, const struct lane_plan *plan) {
  LLVMBasicBlockRef tail = new_block(c, "tail"), rest = new_block(c, "after");
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, base, end, ""), tail, rest);
  LLVMPositionBuilderAtEnd(c->b, tail);
  c->generation++;
  emit_lanes(c, local, base, mask_of(c, base, end, plan->lanes), body, plan);
  LLVMBuildBr(c->b, rest);
  LLVMPositionBuilderAtEnd(c->b, rest);
}

/* Lanes as long as checks hold; from where one does not, and what is left, goes through scalar code. */
static void emit_checked_loop(struct codegen *c, uint32_t local, value begin, value end, value whole_end, const struct stmt *body,
                              const struct lane_plan *plan) {
  value resume = emit_alloca(c, c->m->i64, "resume"), step = const_i64(c, plan->lanes);
  LLVMBasicBlockRef bail = new_block(c, "bail");
  LLVMBuildStore(c->b, begin, resume);
  lanes_enter(c, local, plan->lanes, body);
  c->bail = bail;
  struct counted_loop loop = loop_begin(c, begin, whole_end, step);
  LLVMBuildStore(c->b, loop.index, resume);
  emit_lanes(c, local, loop.index, NULL, body, plan);
  LLVMBuildStore(c->b, LLVMBuildNSWAdd(c->b, loop.index, step, ""), resume);
  loop_end(c, &loop);
  lanes_leave(c, local, body);
  c->bail = NULL;
  LLVMBuildBr(c->b, bail);
  LLVMPositionBuilderAtEnd(c->b, bail);
  struct counted_loop scalar = loop_begin(c, LLVMBuildLoad2(c->b, c->m->i64, resume, ""), end, const_i64(c, 1));
  c->locals[local].at[0] = scalar.index;
  c->no_lanes++;
  emit_block(c, body);
  c->no_lanes--;
  loop_end(c, &scalar);
}

/* Iterations begin .. end-1 of the loop of `local`. A long body is written once, with a mask all the way. */
void emit_lane_loop(struct codegen *c, uint32_t local, value begin, value end, const struct stmt *body, const struct lane_plan *plan,
                    bool exact) {
  value whole = LLVMBuildAnd(c->b, LLVMBuildNSWSub(c->b, end, begin, ""), const_i64(c, -(int64_t)plan->lanes), "");
  bool masked = !exact && plan->is_long;
  value whole_end = exact || masked ? end : LLVMBuildNSWAdd(c->b, begin, whole, "");
  if (plan->has_check) {
    emit_checked_loop(c, local, begin, end, exact ? end : LLVMBuildNSWAdd(c->b, begin, whole, ""), body, plan);
    return;
  }
  lanes_enter(c, local, plan->lanes, body);
  struct counted_loop loop = loop_begin(c, begin, whole_end, const_i64(c, plan->lanes));
  emit_lanes(c, local, loop.index, masked ? mask_of(c, loop.index, end, plan->lanes) : NULL, body, plan);
  loop_end(c, &loop);
  if (!exact && !masked)
    emit_tail(c, local, whole_end, end, body, plan);
  lanes_leave(c, local, body);
}

/* ---- wide accumulators ---- */

static value identity_of(struct codegen *c, enum scalar_op op, enum dtype dtype) {
  LLVMTypeRef type = type_of_dtype(c->m, dtype);
  bool u = dtype_is_unsigned(dtype) || dtype == DTYPE_BOOL;
  unsigned bits = LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
  if (dtype_is_float(dtype)) {
    double v = op == SCALAR_ADD ? -0.0 : op == SCALAR_MUL ? 1 : op == SCALAR_MIN ? __builtin_inf() : -__builtin_inf();
    int64_t encoded = expr_double_to_bits(dtype, v);
    return dtype == DTYPE_BFLOAT16 ? LLVMConstInt(type, (uint64_t)encoded, false) : LLVMConstReal(type, v);
  }
  uint64_t high = bits ? UINT64_C(1) << (bits - 1) : 0;
  switch (op) {
  case SCALAR_MUL: return LLVMConstInt(type, 1, false);
  case SCALAR_AND: return LLVMConstAllOnes(type);
  case SCALAR_MIN: return LLVMConstInt(type, u ? UINT64_MAX : high - 1, false);
  case SCALAR_MAX: return LLVMConstInt(type, u ? 0 : high, false);
  default: return LLVMConstInt(type, 0, false);
  }
}

struct accumulators {
  struct reductions r;
  struct local_slot saved[16];
};
static void open_accumulators(struct codegen *c, uint32_t lanes, struct accumulators *a) {
  for (int i = 0; i < a->r.count; i++) {
    struct local_slot *slot = &c->locals[a->r.items[i].local];
    enum dtype dtype = c->k->locals.items[a->r.items[i].local].dtype;
    a->saved[i] = *slot;
    slot->varying = true;
    slot->type = type_widened(type_of_dtype(c->m, dtype), lanes);
    slot->at[0] = emit_alloca(c, slot->type, "sum");
    LLVMBuildStore(c->b, splat(c, identity_of(c, a->r.items[i].op, dtype), lanes), slot->at[0]);
  }
}
/* Halves are combined until one lane is left. */
static value reduce_lanes(struct codegen *c, enum scalar_op op, enum dtype dtype, value v, uint32_t lanes) {
  value at[512];
  for (; lanes > 1; lanes /= 2) {
    value parts[2];
    for (uint32_t half = 0; half < 2; half++) {
      for (uint32_t i = 0; i < lanes / 2; i++)
        at[i] = LLVMConstInt(c->m->i32, half * lanes / 2 + i, false);
      parts[half] = LLVMBuildShuffleVector(c->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(at, lanes / 2), "");
    }
    v = emit_scalar(c, op, dtype, dtype, parts);
  }
  return LLVMBuildExtractElement(c->b, v, LLVMConstInt(c->m->i32, 0, false), "");
}
static void close_accumulators(struct codegen *c, uint32_t lanes, struct accumulators *a) {
  for (int i = 0; i < a->r.count; i++) {
    struct local_slot *slot = &c->locals[a->r.items[i].local];
    enum dtype dtype = c->k->locals.items[a->r.items[i].local].dtype;
    value wide = LLVMBuildLoad2(c->b, slot->type, slot->at[0], "");
    *slot = a->saved[i];
    value both[2] = {LLVMBuildLoad2(c->b, slot->type, slot->at[0], ""), reduce_lanes(c, a->r.items[i].op, dtype, wide, lanes)};
    LLVMBuildStore(c->b, emit_scalar(c, a->r.items[i].op, dtype, dtype, both), slot->at[0]);
  }
  codegen_flags(c);
}

/* red loops around the vector loop, as long as they hold nothing else, keep the accumulators wide. */
static void emit_red_nest(struct codegen *c, const struct stmt *s, const struct stmt *vector, const struct lane_plan *plan) {
  value extent = emit_expr(c, s->value);
  if (s == vector) {
    int64_t n;
    bool exact = expr_is_const(c->k, s->value, &n) && n > 0 && n % plan->lanes == 0;
    emit_lane_loop(c, s->local, const_i64(c, 0), extent, s->body, plan, exact);
    return;
  }
  struct counted_loop loop = loop_begin(c, const_i64(c, 0), extent, const_i64(c, 1));
  c->locals[s->local].at[0] = loop.index;
  emit_red_nest(c, s->body, vector, plan);
  loop_end(c, &loop);
}

bool emit_for_lanes(struct codegen *c, const struct stmt *s) {
  struct lane_plan plan;
  double cost;
  const struct stmt *vector = s;
  if (c->lanes > 1 || c->copies > 1 || c->no_lanes)
    return false;
  while (!is_vector_loop(c, vector, &plan, &cost)) {
    const struct stmt *inner = vector->body;
    if (vector->loop != LOOP_RED || !inner || inner->next || inner->kind != STMT_FOR || inner->loop != LOOP_RED)
      return false;
    vector = inner;
  }
  if (s->loop == LOOP_PAR) {
    emit_red_nest(c, s, vector, &plan);
    return true;
  }
  struct accumulators a;
  if (!find_reductions(c, vector->body, &a.r))
    return false;
  open_accumulators(c, plan.lanes, &a);
  emit_red_nest(c, s, vector, &plan);
  close_accumulators(c, plan.lanes, &a);
  return true;
}
