/* codegen_lanes.c: loops that are marked as vectors (RUN_VECTORS).
 *
 * What is left at the end of a loop runs once more under a mask; a loop with checks is left to scalar code from where a check fails.
 *
 * A sum is split over the lanes of the mark, and added up as a tree: the same bits whatever the number of threads. */
#include <assert.h>
#include <string.h>

#include "targets/cpu/codegen.h"

struct vector_plan vectors_plan(struct codegen *c, const struct stmt *loop, double trips) {
  struct vector_plan plan;
  bool may = vector_plan_make(&c->costs, loop->local, loop->loop == LOOP_PAR, trips, loop->body, (uint32_t)loop->width, &plan);
  assert(may); /* kernel_verify_marks.c */
  (void)may;
  return plan;
}

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

/* ---- writing a vector loop ---- */

static value lane_numbers(struct codegen *c, uint32_t lanes) {
  value steps[LANES_MAX];
  for (uint32_t i = 0; i < lanes; i++)
    steps[i] = LLVMConstInt(c->m->i32, i, false);
  return LLVMConstVector(steps, lanes);
}

static void emit_lanes(struct codegen *c, const struct stmt *loop, value base, value mask) {
  c->view.loop = loop->local;
  c->lane_base = base;
  c->mask = mask;
  c->set_mask = loop->loop == LOOP_PAR ? NULL : mask;
  emit_block(c, loop->body);
  c->mask = c->set_mask = NULL;
}

void lanes_enter(struct codegen *c, uint32_t local, uint32_t lanes, const struct stmt *body) {
  mark_locals(c, body, true, c->copies > 1);
  c->locals[local].varying = true;
  c->locals[local].in_memory = false;
  c->lanes = lanes;
  c->view.loop = local;
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
static void emit_tail(struct codegen *c, const struct stmt *loop, value base, value end, const struct vector_plan *plan) {
  LLVMBasicBlockRef tail = new_block(c, "tail"), rest = new_block(c, "after");
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, base, end, ""), tail, rest);
  LLVMPositionBuilderAtEnd(c->b, tail);
  c->generation++;
  emit_lanes(c, loop, base, mask_of(c, base, end, plan->lanes));
  LLVMBuildBr(c->b, rest);
  LLVMPositionBuilderAtEnd(c->b, rest);
}

/* Lanes as long as checks hold; from where one does not, and what is left, goes through scalar code. */
static void emit_checked_loop(struct codegen *c, const struct stmt *loop, value begin, value end, value whole_end,
                              const struct vector_plan *plan) {
  value resume = emit_alloca(c, c->m->i64, "resume"), step = const_i64(c, plan->lanes);
  LLVMBasicBlockRef bail = new_block(c, "bail");
  LLVMBuildStore(c->b, begin, resume);
  lanes_enter(c, loop->local, plan->lanes, loop->body);
  c->bail = bail;
  struct counted_loop counted = loop_begin(c, begin, whole_end, step);
  LLVMBuildStore(c->b, counted.index, resume);
  emit_lanes(c, loop, counted.index, NULL);
  LLVMBuildStore(c->b, LLVMBuildNSWAdd(c->b, counted.index, step, ""), resume);
  loop_end(c, &counted);
  lanes_leave(c, loop->local, loop->body);
  c->bail = NULL;
  LLVMBuildBr(c->b, bail);
  LLVMPositionBuilderAtEnd(c->b, bail);
  struct counted_loop scalar = loop_begin(c, LLVMBuildLoad2(c->b, c->m->i64, resume, ""), end, const_i64(c, 1));
  c->locals[loop->local].at[0] = scalar.index;
  emit_block(c, loop->body);
  loop_end(c, &scalar);
}

/* The turns from begin to end: an extent may be below 0, as that of a part of a range which begins behind its end. */
static value turns_between(struct codegen *c, value begin, value end) {
  value turns = LLVMBuildNSWSub(c->b, end, begin, "");
  bool is_known = LLVMIsAConstantInt(turns) && LLVMConstIntGetSExtValue(turns) >= 0;
  return is_known ? turns : call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){turns, const_i64(c, 0)}, 2);
}
/* A long body is written once, with a mask all the way. */
void emit_vectors(struct codegen *c, const struct stmt *loop, value begin, value end, const struct vector_plan *plan, bool exact) {
  value whole = LLVMBuildAnd(c->b, turns_between(c, begin, end), const_i64(c, -(int64_t)plan->lanes), "");
  bool masked = !exact && plan->is_long;
  value whole_end = exact || masked ? end : LLVMBuildNSWAdd(c->b, begin, whole, "");
  if (plan->has_check) {
    emit_checked_loop(c, loop, begin, end, exact ? end : LLVMBuildNSWAdd(c->b, begin, whole, ""), plan);
    return;
  }
  lanes_enter(c, loop->local, plan->lanes, loop->body);
  struct counted_loop counted = loop_begin(c, begin, whole_end, const_i64(c, plan->lanes));
  emit_lanes(c, loop, counted.index, masked ? mask_of(c, counted.index, end, plan->lanes) : NULL);
  loop_end(c, &counted);
  if (!exact && !masked)
    emit_tail(c, loop, whole_end, end, plan);
  lanes_leave(c, loop->local, loop->body);
}

/* ---- wide accumulators ---- */

struct accumulators {
  struct reductions r;
  struct local_slot saved[REDUCTIONS_MAX];
};
static void open_accumulators(struct codegen *c, uint32_t lanes, struct accumulators *a) {
  for (int i = 0; i < a->r.count; i++) {
    struct local_slot *slot = &c->locals[a->r.items[i].local];
    enum dtype dtype = c->k->locals.items[a->r.items[i].local].dtype;
    a->saved[i] = *slot;
    slot->varying = true;
    slot->type = type_widened(type_of_dtype(c->m, dtype), lanes);
    slot->at[0] = emit_alloca(c, slot->type, "sum");
    LLVMBuildStore(c->b, splat(c, const_of(c, dtype, reduction_identity(a->r.items[i].op, dtype)), lanes), slot->at[0]);
  }
}
/* The lanes of v from `first` on, in a vector of `lanes`; behind its last one, its first ones. */
static value lanes_from(struct codegen *c, value v, uint32_t first, uint32_t lanes) {
  value at[LANES_MAX];
  uint32_t own = LLVMGetVectorSize(LLVMTypeOf(v));
  for (uint32_t i = 0; i < lanes; i++)
    at[i] = LLVMConstInt(c->m->i32, (first + i) % own, false);
  return LLVMBuildShuffleVector(c->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(at, lanes), "");
}
/* Halves are combined until one lane is left; the last ones in a vector of a few, whose operations wait less than those of one number. */
#define LANES_LAST 4
static value reduce_lanes(struct codegen *c, enum scalar_op op, enum dtype dtype, value v, uint32_t lanes) {
  uint32_t last = lanes < LANES_LAST ? lanes : LANES_LAST;
  for (; lanes > 1; lanes /= 2) {
    uint32_t width = lanes / 2 > last ? lanes / 2 : last;
    value parts[2] = {lanes_from(c, v, 0, width), lanes_from(c, v, lanes / 2, width)};
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

/* Red loops around the vector loop, as long as they hold nothing else, keep the accumulators wide. */
static void emit_nest(struct codegen *c, const struct stmt *s, const struct stmt *vectors, const struct vector_plan *plan) {
  value extent = emit_expr(c, s->value);
  if (s == vectors) {
    int64_t n;
    bool exact = expr_is_const(c->k, s->value, &n) && n > 0 && n % plan->lanes == 0;
    emit_vectors(c, s, const_i64(c, 0), extent, plan, exact);
    return;
  }
  struct counted_loop loop = loop_begin(c, const_i64(c, 0), extent, const_i64(c, 1));
  c->locals[s->local].at[0] = loop.index;
  emit_nest(c, s->body, vectors, plan);
  loop_end(c, &loop);
}

struct vector_loop {
  const struct stmt *top, *vectors; /* the same, or a sum around that of the vectors */
  struct accumulators sums;
};
static void emit_as(struct codegen *c, struct vector_loop *v, const struct vector_plan *plan) {
  bool is_par = v->top->loop == LOOP_PAR;
  if (!is_par)
    open_accumulators(c, plan->lanes, &v->sums);
  emit_nest(c, v->top, v->vectors, plan);
  if (!is_par)
    close_accumulators(c, plan->lanes, &v->sums);
}

/* ---- few turns ---- */

/* Of an open loop of several registers: what runs where its turns fill but one. */
static bool find_plan_of_few(struct codegen *c, const struct vector_loop *v, const struct vector_plan *plan, struct vector_plan *few) {
  const struct stmt *loop = v->vectors;
  if (expr_is_const(c->k, loop->value, NULL) || plan->lanes <= plan->native || plan->native < 2 || plan->has_check)
    return false;
  for (const struct stmt *around = v->top; around != loop; around = around->body)
    if (expr_reads_local(c->k, loop->value, around->local))
      return false;
  return vector_plan_make(&c->costs, loop->local, loop->loop == LOOP_PAR, plan->native, loop->body, plan->native, few);
}
/* Whether a term is rounded on its own: a multiply-add would round it together with the one before. */
static bool rounds_terms(const struct kernel *k, const struct stmt *s) {
  for (; s; s = s->next)
    if ((s->kind == STMT_SET && expr_get(k, s->value)->op == SCALAR_FMA) || !rounds_terms(k, s->body) || !rounds_terms(k, s->otherwise))
      return false;
  return true;
}
/* A sum's tree stays what the mark says, lane i and lane i + native being added up last: so these may be two turns of one lane, unless sums
 * around have others between them. */
static bool may_take_two(const struct codegen *c, const struct vector_loop *v) {
  return v->top->loop == LOOP_PAR || (v->top == v->vectors && rounds_terms(c->k, v->top->body));
}
static void emit_few_or_many(struct codegen *c, struct vector_loop *v, const struct vector_plan *few, const struct vector_plan *plan) {
  LLVMBasicBlockRef of_few = new_block(c, "few"), of_many = new_block(c, "many"), done = new_block(c, "vectors_done");
  value most = const_i64(c, few->lanes * (may_take_two(c, v) ? 2 : 1));
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLE, emit_expr(c, v->vectors->value), most, ""), of_few, of_many);
  const struct vector_plan *plans[] = {few, plan};
  LLVMBasicBlockRef blocks[] = {of_few, of_many};
  for (int i = 0; i < 2; i++) {
    LLVMPositionBuilderAtEnd(c->b, blocks[i]);
    c->generation++;
    emit_as(c, v, plans[i]);
    LLVMBuildBr(c->b, done);
  }
  LLVMPositionBuilderAtEnd(c->b, done);
  c->generation++;
}

bool emit_for_vectors(struct codegen *c, const struct stmt *s) {
  struct vector_loop v = {.top = s};
  v.vectors = s->loop != LOOP_PAR ? split_sum(&c->uses, s, &v.sums.r) : s->run == RUN_VECTORS ? s : NULL;
  if (!v.vectors)
    return false;
  assert(c->lanes == 1 && c->copies == 1); /* kernel_verify_marks.c */
  struct vector_plan few, plan = vectors_plan(c, v.vectors, loop_trips(c->k, v.vectors->value));
  if (find_plan_of_few(c, &v, &plan, &few))
    emit_few_or_many(c, &v, &few, &plan);
  else
    emit_as(c, &v, &plan);
  return true;
}
