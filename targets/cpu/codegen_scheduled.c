/* codegen_scheduled.c: loops are written as their marks (ir/kernel/kernel.h) say; nothing is chosen here. Those of vectors are in
 * codegen_lanes.c.
 *
 * Loops of tasks are the tile space of a phase. Lanes are vectors of the machine; where the extent may be smaller than the loop's width,
 * what stands where it becomes known is written for whole vectors and for masked ones, and one test chooses. Unrolled loops are written
 * out, but for long computations (functions of numbers): those run as a loop over registers that were put into memory. */
#include <string.h>

#include "targets/cpu/codegen.h"

#define LONG_BODY 20 /* operations: a function of a number is as many */
#define ROLLED_MIN 3 /* iterations that are worth a loop */

/* ---- lanes ---- */

static enum lane_extent extent_of(const struct codegen *c, const struct stmt *s) {
  int64_t n;
  if (expr_is_const(c->k, s->value, &n))
    return n >= s->width ? EXTENT_WHOLE : n > 0 ? EXTENT_PART : EXTENT_NONE;
  return s->value == c->known.extent && s->width == c->known.width ? c->known.as : EXTENT_OPEN;
}

uint32_t vector_lanes(const struct codegen *c, int64_t width) {
  uint32_t native = c->m->cpu->vector_bytes / 4, lanes = 1;
  while (lanes < native && lanes < width)
    lanes *= 2;
  return lanes;
}

/* Lanes from the extent on compute nothing; count: the most that there may be. */
static void emit_block_lanes(struct codegen *c, const struct stmt *s, value extent, int64_t count) {
  uint32_t lanes = vector_lanes(c, s->width);
  int64_t whole = 0;
  if (lanes == 1) {
    c->locals[s->local].at[0] = const_i64(c, 0);
    emit_block(c, s->body);
    return;
  }
  if (LLVMIsAConstantInt(extent))
    whole = LLVMConstIntGetSExtValue(extent);
  lanes_enter(c, s->local, lanes, s->body);
  for (int64_t first = 0; first < count; first += lanes) {
    c->lane_base = const_i64(c, first);
    c->mask = first + lanes <= whole ? NULL : mask_of(c, c->lane_base, extent, lanes);
    emit_block(c, s->body);
  }
  c->mask = NULL;
  lanes_leave(c, s->local, s->body);
}
static void emit_lanes(struct codegen *c, const struct stmt *s) {
  enum lane_extent known = extent_of(c, s);
  value extent = known == EXTENT_WHOLE ? const_i64(c, s->width) : emit_expr(c, s->value);
  int64_t count = s->width;
  expr_is_const(c->k, s->value, &count);
  if (known == EXTENT_WHOLE || known == EXTENT_PART)
    emit_block_lanes(c, s, extent, count);
  if (known != EXTENT_OPEN)
    return;
  LLVMBasicBlockRef some = new_block(c, "lanes"), done = new_block(c, "lanes_done");
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSGT, extent, const_i64(c, 0), ""), some, done);
  LLVMPositionBuilderAtEnd(c->b, some);
  c->generation++;
  emit_block_lanes(c, s, extent, count);
  LLVMBuildBr(c->b, done);
  LLVMPositionBuilderAtEnd(c->b, done);
  c->generation++;
}

/* ---- an extent becomes known ---- */

static bool binds_any(const struct codegen *c, const struct stmt *s, expr_id e) {
  for (; s; s = s->next)
    if (((s->kind == STMT_FOR || s->kind == STMT_VAR) && expr_uses_local(c, e, s->local)) || binds_any(c, s->body, e) ||
        binds_any(c, s->otherwise, e))
      return true;
  return false;
}
/* A loop over lanes in s whose extent is open, but the same all through `block`; NULL: none. */
static const struct stmt *find_open_lanes(const struct codegen *c, const struct stmt *s, const struct stmt *block) {
  const struct stmt *found = NULL;
  for (; s && !found; s = s->next) {
    if (s->kind == STMT_FOR && s->run == RUN_LANES && extent_of(c, s) == EXTENT_OPEN && !expr_loads(c, s->value) &&
        !uses_vars(&c->uses, s->value) && !binds_any(c, block, s->value))
      return s;
    found = find_open_lanes(c, s->body, block);
    if (!found)
      found = find_open_lanes(c, s->otherwise, block);
  }
  return found;
}
static void emit_version(struct codegen *c, LLVMBasicBlockRef at, LLVMBasicBlockRef done, enum lane_extent as, const struct stmt *block) {
  LLVMPositionBuilderAtEnd(c->b, at);
  c->known.as = as;
  emit_block(c, block);
  LLVMBuildBr(c->b, done);
}
static void emit_scheduled_block(struct codegen *c, const struct stmt *block) {
  const struct stmt *lanes = c->known.extent || c->lanes > 1 ? NULL : find_open_lanes(c, block, block);
  if (!lanes) {
    emit_block(c, block);
    return;
  }
  c->generation++;
  value extent = emit_expr(c, lanes->value);
  LLVMBasicBlockRef whole = new_block(c, "whole"), less = new_block(c, "less"), part = new_block(c, "part"), none = new_block(c, "none");
  LLVMBasicBlockRef done = new_block(c, "versions_done");
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSGE, extent, const_i64(c, lanes->width), ""), whole, less);
  LLVMPositionBuilderAtEnd(c->b, less);
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSGT, extent, const_i64(c, 0), ""), part, none);
  c->known.extent = lanes->value;
  c->known.width = lanes->width;
  emit_version(c, whole, done, EXTENT_WHOLE, block);
  emit_version(c, part, done, EXTENT_PART, block);
  emit_version(c, none, done, EXTENT_NONE, block);
  c->known.extent = NO_EXPR;
  LLVMPositionBuilderAtEnd(c->b, done);
  c->generation++;
}

/* ---- unrolled loops ---- */

static double operations_of(struct codegen *c, const struct stmt *s) {
  double sum = 0;
  for (; s; s = s->next)
    sum += stmt_operations(&c->costs, s) + operations_of(c, s->body) + operations_of(c, s->otherwise);
  return sum;
}
static bool stores_registers(const struct codegen *c, const struct stmt *s) {
  for (; s; s = s->next)
    if (s->kind == STMT_BUFFER || (s->kind == STMT_STORE && is_register_access(c, s->buffer)) || stores_registers(c, s->body) ||
        stores_registers(c, s->otherwise))
      return true;
  return false;
}
static void emit_rolled(struct codegen *c, const struct stmt *s, int64_t count) {
  c->in_rolled = true;
  registers_to_memory(c, s->body);
  struct counted_loop loop = loop_begin(c, const_i64(c, 0), const_i64(c, count), const_i64(c, 1));
  c->locals[s->local].at[0] = loop.index;
  emit_block(c, s->body);
  loop_end(c, &loop);
  registers_from_memory(c);
  c->in_rolled = false;
}
static void emit_unrolled(struct codegen *c, const struct stmt *s) {
  int64_t count = 0;
  expr_is_const(c->k, s->value, &count);
  if (is_square_copy(c, s) && extent_of(c, s->body) == EXTENT_WHOLE) {
    emit_square_copy(c, s);
    return;
  }
  if (count >= ROLLED_MIN && c->lanes == 1 && !c->in_rolled && operations_of(c, s->body) > LONG_BODY && !stores_registers(c, s->body)) {
    emit_rolled(c, s, count);
    return;
  }
  if (emit_store_of_turns(c, s))
    return;
  for (int64_t i = 0; i < count; i++) {
    c->locals[s->local].at[0] = const_i64(c, i);
    c->generation++;
    emit_block(c, s->body);
  }
}

static void emit_plain(struct codegen *c, const struct stmt *s) {
  struct counted_loop loop = loop_begin(c, const_i64(c, 0), emit_expr(c, s->value), const_i64(c, 1));
  c->locals[s->local].at[0] = loop.index;
  emit_scheduled_block(c, s->body);
  loop_end(c, &loop);
}
void emit_for(struct codegen *c, const struct stmt *s) {
  if (s->run == RUN_LANES)
    emit_lanes(c, s);
  else if (s->run == RUN_UNROLL)
    emit_unrolled(c, s);
  else if (!emit_for_vectors(c, s))
    emit_plain(c, s);
}

/* The line of cache of one element, soon to be read. */
void emit_fetch(struct codegen *c, const struct stmt *s) { emit_hint(c, fetch_address(c, s->buffer, s->index)); }

/* ---- tiles ---- */

static value emit_extent(struct codegen *c, const struct stmt *s) {
  return call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){emit_expr(c, s->value), const_i64(c, 0)}, 2);
}
value emit_task_count(struct codegen *c, const struct phase *p) {
  value total = const_i64(c, 1);
  for (int i = 0; i < p->nest.chain.count; i++)
    total = LLVMBuildNSWMul(c->b, total, emit_extent(c, p->nest.chain.loops[i]), "");
  return total;
}
static void set_task(struct codegen *c, const struct phase *p, value number) {
  for (int i = p->nest.chain.count - 1; i >= 0; i--) {
    value extent = i ? emit_extent(c, p->nest.chain.loops[i]) : NULL;
    c->locals[p->nest.chain.loops[i]->local].at[0] = i ? LLVMBuildURem(c->b, number, extent, "") : number;
    number = i ? LLVMBuildUDiv(c->b, number, extent, "") : number;
  }
}
/* Each by itself: what the one's loops over lanes leave open is nothing to the others. */
static void emit_task(struct codegen *c, const struct stmt *block) {
  if (!block_joins_nests(block)) {
    emit_scheduled_block(c, block);
    return;
  }
  for (const struct stmt *s = block; s; s = s->next) {
    struct stmt alone = *s;
    alone.next = NULL;
    emit_scheduled_block(c, &alone);
  }
}
void emit_scheduled_tiles(struct codegen *c, const struct phase *p, value begin, value end) {
  value count = emit_task_count(c, p), grain = emit_phase_grain(c, p);
  value first = LLVMBuildNSWMul(c->b, begin, grain, "");
  value last = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){LLVMBuildNSWMul(c->b, end, grain, ""), count}, 2);
  struct counted_loop loop = loop_begin(c, first, last, const_i64(c, 1));
  set_task(c, p, loop.index);
  if (p->nest.chain.count)
    emit_task(c, p->nest.chain.inside);
  else
    emit_statements(c, p->nest.body, p->nest.body->next);
  loop_end(c, &loop);
}
