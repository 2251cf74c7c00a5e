/* codegen_cost.c: how much work a phase is, in nanoseconds (ir/schedule/cost.h), and the tiles that it makes: code that works them out from
 * the sizes. */
#include <string.h>

#include "ir/kernel/contraction.h"
#include "targets/cpu/codegen.h"

/* ---- of statements ---- */

/* What no loop changes is worked out once in front of them: rates and other numbers of an update. */
static double expr_ns(const struct codegen *c, expr_id e, uint8_t *seen) {
  const struct expr *x = expr_get(c->k, e);
  if (e == NO_EXPR || seen[e] || !(c->view.exprs[e] & VIEW_LOCALS))
    return 0;
  seen[e] = 1;
  double sum = op_scalar_ns(x->op, x->dtype);
  for (int i = 0; i < x->count; i++)
    sum += expr_ns(c, expr_operand(c->k, e, i), seen);
  return sum;
}
static value const_f64(struct codegen *c, double v) { return LLVMConstReal(c->m->f64, v); }

/* About the most that the loop may have, where its extent depends on loops around it; of what tiles leave over the half. */
static value emit_trips(struct codegen *c, expr_id extent) {
  const struct expr *x = expr_get(c->k, extent);
  int64_t by;
  if (expr_of_sizes(c, extent))
    return LLVMBuildSIToFP(c->b, emit_expr(c, extent), c->m->f64, "");
  if (x->op == SCALAR_SUB || (x->op == SCALAR_ADD && expr_is_const(c->k, expr_operand(c->k, extent, 1), NULL)))
    return emit_trips(c, expr_operand(c->k, extent, 0));
  if (x->op == SCALAR_FLOORDIV && expr_is_const(c->k, expr_operand(c->k, extent, 1), &by) && by > 0)
    return LLVMBuildFDiv(c->b, emit_trips(c, expr_operand(c->k, extent, 0)), const_f64(c, (double)by), "");
  if (x->op == SCALAR_FLOORMOD && expr_is_const(c->k, expr_operand(c->k, extent, 1), &by) && by > 0)
    return const_f64(c, (double)(by - 1) / 2);
  for (int i = 0; x->op == SCALAR_MIN && i < 2; i++)
    if (expr_of_sizes(c, expr_operand(c->k, extent, i)))
      return emit_trips(c, expr_operand(c->k, extent, i));
  return const_f64(c, TRIPS_INSIDE);
}

static value emit_block_cost(struct codegen *c, const struct stmt *s) {
  value sum = const_f64(c, 0);
  uint8_t *seen = arena_alloc(&c->m->arena, c->k->exprs.count);
  for (; s; s = s->next) {
    memset(seen, 0, c->k->exprs.count);
    double own = STATEMENT_NS + expr_ns(c, s->value, seen);
    for (int i = 0; i < s->index_count; i++)
      own += expr_ns(c, s->index[i], seen);
    value nested = LLVMBuildFAdd(c->b, emit_block_cost(c, s->body), emit_block_cost(c, s->otherwise), "");
    if (s->kind == STMT_FOR) {
      value trips = emit_trips(c, s->value);
      nested = LLVMBuildFMul(c->b, nested, trips, "");
    }
    sum = LLVMBuildFAdd(c->b, sum, LLVMBuildFAdd(c->b, const_f64(c, own), nested, ""), "");
  }
  return sum;
}

/* ---- of scheduled nests ---- */

/* A vector's operation. */
static double vector_ns(const struct codegen *c, expr_id e, uint8_t *seen) {
  const struct expr *x = expr_get(c->k, e);
  if (e == NO_EXPR || seen[e])
    return 0;
  seen[e] = 1;
  if (x->op == SCALAR_LOAD)
    return is_register_access(c, (uint32_t)x->imm) ? 0 : op_vector_ns(x->op, x->dtype);
  double sum = op_vector_ns(x->op, x->dtype);
  struct pair pair;
  if (find_pair(c, e, &pair))
    return sum + (double)FACTORS * op_vector_ns(SCALAR_LOAD, x->dtype) + vector_ns(c, pair.sum, seen);
  for (int i = 0; i < x->count; i++)
    sum += vector_ns(c, expr_operand(c->k, e, i), seen);
  return sum;
}
/* vectors: of each statement; 0 outside lanes. */
static value emit_scheduled_cost(struct codegen *c, const struct stmt *s, const struct stmt *end, double vectors) {
  value sum = const_f64(c, 0);
  for (; s != end; s = s->next) {
    uint8_t *seen = arena_alloc(&c->m->arena, c->k->exprs.count);
    double own = s->kind == STMT_FOR ? (s->run == RUN_PLAIN ? LOOP_NS : 0)
               : vectors > 0         ? vectors * vector_ns(c, s->value, seen)
                                     : expr_ns(c, s->value, seen);
    if (s->kind == STMT_STORE && !is_register_access(c, s->buffer))
      own += STORE_NS * (vectors > 1 ? vectors : 1);
    bool lanes = s->kind == STMT_FOR && s->run == RUN_LANES;
    double inner = lanes ? (double)(s->width + c->m->cpu->vector_bytes / 4 - 1) / (c->m->cpu->vector_bytes / 4) : vectors;
    value nested = emit_scheduled_cost(c, s->body, NULL, inner);
    nested = LLVMBuildFAdd(c->b, nested, emit_scheduled_cost(c, s->otherwise, NULL, inner), "");
    if (s->kind == STMT_FOR && !lanes)
      nested = LLVMBuildFMul(c->b, nested, emit_trips(c, s->value), "");
    sum = LLVMBuildFAdd(c->b, sum, LLVMBuildFAdd(c->b, const_f64(c, own), nested, ""), "");
  }
  return sum;
}
static bool touches(const struct codegen *c, const struct stmt *s, const struct stmt *end, uint32_t buffer) {
  for (; s != end; s = s->next)
    if ((s->kind == STMT_STORE && s->buffer == buffer) || (s->value != NO_EXPR && expr_loads_from(c, s->value, buffer)) ||
        touches(c, s->body, NULL, buffer) || touches(c, s->otherwise, NULL, buffer))
      return true;
  return false;
}
/* Nanoseconds to bring the nest's buffers from memory, once; of each no more than an element for each of `turns`, unless that is NULL. */
static value emit_traffic(struct codegen *c, const struct phase *p, value turns) {
  value sum = const_f64(c, 0);
  for (uint32_t i = 0; i < c->k->buffers.count; i++) {
    const struct kernel_buffer *b = &c->k->buffers.items[i];
    if (b->mode == BUFFER_LOCAL || !touches(c, p->nest.body, p->nest.body->next, i))
      continue;
    value bytes = LLVMBuildSIToFP(c->b, emit_buffer_bytes(c, b), c->m->f64, "");
    value used = turns ? LLVMBuildFMul(c->b, turns, const_f64(c, (double)dtype_size(b->dtype)), "") : bytes;
    sum = LLVMBuildFAdd(c->b, sum, call_intrinsic(c, "llvm.minnum", c->m->f64, (value[]){bytes, used}, 2), "");
  }
  return LLVMBuildFMul(c->b, sum, const_f64(c, BYTE_NS), "");
}
static value emit_scheduled_phase_cost(struct codegen *c, const struct phase *p) {
  value work =
    emit_scheduled_cost(c, p->nest.chain.count ? p->nest.chain.inside : p->nest.body, p->nest.chain.count ? NULL : p->nest.body->next, 0);
  work = LLVMBuildFMul(c->b, LLVMBuildSIToFP(c->b, emit_task_count(c, p), c->m->f64, ""), work, "");
  return call_intrinsic(c, "llvm.maxnum", c->m->f64, (value[]){work, emit_traffic(c, p, NULL)}, 2);
}

/* ---- of phases ---- */

value emit_loop_extent(struct codegen *c, const struct phase *p, int loop) {
  value total = NULL, zero = const_i64(c, 0);
  for (int i = p->nest.chain.groups[loop].first; i <= p->nest.chain.groups[loop].last; i++) {
    value extent = emit_expr(c, p->nest.chain.loops[i]->value);
    extent = call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){extent, zero}, 2);
    total = total ? LLVMBuildNSWMul(c->b, total, extent, "") : extent;
  }
  return total;
}
static value divide_up(struct codegen *c, value n, int64_t by) {
  return LLVMBuildUDiv(c->b, LLVMBuildNSWAdd(c->b, n, const_i64(c, by - 1), ""), const_i64(c, by), "");
}
int64_t phase_chunk(const struct phase *p) { return 4 * (int64_t)p->plan.lanes; }

/* What is counted of a loop: its iterations, or blocks of them. */
value emit_phase_units(struct codegen *c, const struct phase *p, int loop) {
  value extent = emit_loop_extent(c, p, loop);
  if (p->copies > 1 && loop == p->nest.chain.group_count - 1)
    return divide_up(c, extent, phase_chunk(p));
  return p->copies > 1 && loop == p->nest.chain.group_count - 2 ? divide_up(c, extent, p->copies) : extent;
}
value emit_phase_elements(struct codegen *c, const struct phase *phase) {
  value total = const_i64(c, 1);
  for (int i = 0; i < phase->nest.chain.group_count; i++)
    total = LLVMBuildNSWMul(c->b, total, emit_phase_units(c, phase, i), "");
  return total;
}
static bool sums_in_registers(const struct phase *p) { return p->copies > 1 && p->plan.has_red; }
/* Of the time that its statements are taken for, element by element. */
static double lanes_share(const struct phase *p) {
  double share = LANES_NS_SHARE * p->plan.share;
  return !p->has_lanes || sums_in_registers(p) || share > 1 ? 1 : share;
}
/* How often the innermost of the loops runs. */
static value emit_turns(struct codegen *c, const struct stmt *s) {
  value most = const_f64(c, 1);
  for (; s; s = s->next) {
    if (!s->body && !s->otherwise)
      continue;
    value inner = call_intrinsic(c, "llvm.maxnum", c->m->f64, (value[]){emit_turns(c, s->body), emit_turns(c, s->otherwise)}, 2);
    if (s->kind == STMT_FOR)
      inner = LLVMBuildFMul(c->b, inner, emit_trips(c, s->value), "");
    most = call_intrinsic(c, "llvm.maxnum", c->m->f64, (value[]){most, inner}, 2);
  }
  return most;
}
static value emit_whole_cost(struct codegen *c, const struct phase *phase) {
  if (phase->nest.is_scheduled)
    return emit_scheduled_phase_cost(c, phase);
  if (phase->is_serial)
    return emit_block_cost(c, phase->nest.body);
  value extents = const_f64(c, 1),
        turn = LLVMBuildFMul(c->b, emit_block_cost(c, phase->nest.chain.inside), const_f64(c, lanes_share(phase)), "");
  for (int i = 0; i < phase->nest.chain.group_count; i++)
    extents = LLVMBuildFMul(c->b, extents, LLVMBuildSIToFP(c->b, emit_loop_extent(c, phase, i), c->m->f64, ""), "");
  value total = LLVMBuildFMul(c->b, turn, extents, ""), traffic;
  if (sums_in_registers(phase)) {
    total = LLVMBuildFMul(c->b, total, const_f64(c, JAMMED_SHARE), ""); /* of a sum alone, less than what it reads takes */
    traffic = emit_traffic(c, phase, NULL);
  } else if (phase->has_lanes) {
    traffic = emit_traffic(c, phase, LLVMBuildFMul(c->b, extents, emit_turns(c, phase->nest.chain.inside), ""));
  } else {
    return total;
  }
  return call_intrinsic(c, "llvm.maxnum", c->m->f64, (value[]){total, traffic}, 2);
}
value emit_phase_cost(struct codegen *c, const struct phase *phase) {
  return LLVMBuildSelect(c->b, emit_phase_condition(c, phase), emit_whole_cost(c, phase), const_f64(c, 0), "");
}

/* ---- tiles ---- */

/* TASK_NS worth of elements, half of them at most; all of them when that is not worth a second thread. */
static value emit_grain(struct codegen *c, value elements, value cost) {
  value count = LLVMBuildSIToFP(c->b, elements, c->m->f64, "");
  value share = LLVMBuildFDiv(c->b, LLVMBuildFMul(c->b, count, const_f64(c, TASK_NS), ""), cost, "");
  value small = LLVMBuildFCmp(c->b, LLVMRealULT, cost, const_f64(c, SINGLE_NS), "");
  value half = LLVMBuildFMul(c->b, count, const_f64(c, 0.5), "");
  share = call_intrinsic(c, "llvm.minnum", c->m->f64, (value[]){share, half}, 2);
  share = LLVMBuildSelect(c->b, small, count, share, ""); /* the cost may be 0 */
  value ideal = LLVMBuildSelect(c->b, small, elements, LLVMBuildFPToSI(c->b, share, c->m->i64, ""), "");
  return call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){ideal, const_i64(c, 1)}, 2);
}
#define LINES_OF 64 /* elements, whatever their size */

static value round_up(struct codegen *c, value n, int64_t power) {
  return LLVMBuildAnd(c->b, LLVMBuildNSWAdd(c->b, n, const_i64(c, power - 1), ""), const_i64(c, -power), "");
}
/* Plain loops: in whole cache lines, and always in whole vectors: tiles that share one read the same lines. */
static value emit_plain_grain(struct codegen *c, const struct phase *phase) {
  value elements = emit_phase_elements(c, phase), grain = emit_grain(c, elements, emit_phase_cost(c, phase));
  if (phase->copies > 1)
    return grain;
  value vectors = round_up(c, grain, phase->has_lanes ? phase->plan.lanes : 1);
  value few = LLVMBuildICmp(c->b, LLVMIntSLT, grain, const_i64(c, LINES_OF), "");
  return LLVMBuildSelect(c->b, few, vectors, round_up(c, grain, LINES_OF), "");
}
bool phase_has_whole_tiles(const struct phase *p) { return p->copies > 1 || LINES_OF % p->plan.lanes == 0; }
value emit_phase_grain(struct codegen *c, const struct phase *phase) {
  return phase->nest.is_scheduled ? emit_grain(c, emit_task_count(c, phase), emit_whole_cost(c, phase)) : emit_plain_grain(c, phase);
}

static value divide_up_by(struct codegen *c, value n, value by) {
  return LLVMBuildUDiv(c->b, LLVMBuildNSWAdd(c->b, n, LLVMBuildNSWSub(c->b, by, const_i64(c, 1), ""), ""), by, "");
}
static value emit_tile_count(struct codegen *c, const struct phase *phase) {
  if (phase->is_serial)
    return const_i64(c, 1);
  return divide_up_by(c, phase->nest.is_scheduled ? emit_task_count(c, phase) : emit_phase_elements(c, phase), emit_phase_grain(c, phase));
}
value emit_phase_tile_count(struct codegen *c, const struct phase *phase) {
  value count = emit_tile_count(c, phase);
  return phase->nest.condition_count ? LLVMBuildSelect(c->b, emit_phase_condition(c, phase), count, const_i64(c, 0), "") : count;
}
