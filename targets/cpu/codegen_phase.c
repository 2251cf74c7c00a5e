/* codegen_phase.c: the tiles of a kernel.
 *
 * A par loop at the top, with the par loops that are all of its body, is a chain. Neighbours in it that index every buffer together are
 * run as one loop, a group (ir/kernel/kernel_nests.h). The iterations, numbered in row-major order, are dealt to tiles in equal ranges,
 * sized by a cost estimate so that a tile is worth a thread's while and a small kernel is one tile. A range is run row by row.
 *
 * Where iterations of the last group but one are marked to run together ("copies"), a range counts blocks of copies x a few vectors. */
#include <string.h>

#include "targets/cpu/codegen.h"

/* ---- finding phases ---- */

static uint32_t local_of(const struct phase *p, int group) { return group_loop(&p->nest.chain, group)->local; }

static struct phase read_marks(struct codegen *c, const struct kernel_nest *nest) {
  const struct chain *chain = &nest->chain;
  struct phase p = {.nest = *nest, .copies = 1};
  int last = chain->group_count - 1;
  if (nest->is_scheduled || group_loop(chain, last)->run != RUN_VECTORS)
    return p;
  const struct stmt *rows = last > 0 ? group_loop(chain, last - 1) : NULL;
  if (rows && rows->run == RUN_TOGETHER) {
    p.copies = (uint32_t)rows->width;
    c->costs.together.local = rows->local;
    c->costs.together.count = p.copies;
  }
  p.has_lanes = true;
  p.plan = vectors_plan(c, group_loop(chain, last), group_trips(c->k, chain, last));
  c->costs.together.count = 0;
  return p;
}

int kernel_phases(struct codegen *c, struct phase *out) {
  struct kernel_nest nests[NESTS_MAX];
  int count = kernel_nests(&c->uses, nests);
  for (int i = 0; i < count; i++)
    out[i] = read_marks(c, &nests[i]);
  if (count > 0)
    return count;
  out[0] = (struct phase){.nest.body = c->k->body, .is_serial = true, .copies = 1};
  return 1;
}

value emit_phase_condition(struct codegen *c, const struct phase *p) {
  value holds = LLVMConstInt(c->m->i1, 1, false);
  for (int i = 0; i < p->nest.condition_count; i++) {
    value v = emit_expr(c, p->nest.conditions[i].value);
    holds = LLVMBuildAnd(c->b, holds, p->nest.conditions[i].inverted ? LLVMBuildNot(c->b, v, "") : v, "");
  }
  return holds;
}

/* ---- running a range ---- */

void set_phase_loop(struct codegen *c, const struct phase *p, int loop, value index) {
  for (int i = p->nest.chain.groups[loop].first; i < p->nest.chain.groups[loop].last; i++)
    c->locals[p->nest.chain.loops[i]->local].at[0] = const_i64(c, 0);
  c->locals[local_of(p, loop)].at[0] = index;
}
/* Whether all ranges of the last loop are of whole vectors, as are tiles: then there is no code for what is left of one. */
static bool rows_are_whole(struct codegen *c, const struct phase *p) {
  int64_t n, width = 1;
  for (int i = p->nest.chain.groups[p->nest.chain.group_count - 1].first; i <= p->nest.chain.groups[p->nest.chain.group_count - 1].last;
       i++) {
    if (!expr_is_const(c->k, p->nest.chain.loops[i]->value, &n))
      return false;
    width = n > 0 && width % p->plan.lanes != 0 ? width * n : width;
  }
  return width % p->plan.lanes == 0 && phase_has_whole_tiles(p);
}
static void emit_row(struct codegen *c, const struct phase *p, value begin, value end) {
  int last = p->nest.chain.group_count - 1;
  set_phase_loop(c, p, last, begin);
  if (p->has_lanes) {
    emit_vectors(c, group_loop(&p->nest.chain, last), begin, end, &p->plan, rows_are_whole(c, p));
    return;
  }
  struct counted_loop loop = loop_begin(c, begin, end, const_i64(c, 1));
  set_phase_loop(c, p, last, loop.index);
  emit_block(c, p->nest.chain.inside);
  loop_end(c, &loop);
}

/* A row of each of the copies; at the end of their loop the few that are left run one by one. */
static void emit_block_of_copies(struct codegen *c, const struct phase *p, value unit, value begin, value end) {
  int loop = p->nest.chain.group_count - 2;
  struct local_slot *slot = &c->locals[local_of(p, loop)];
  value extent = emit_loop_extent(c, p, loop), first = LLVMBuildNSWMul(c->b, unit, const_i64(c, p->copies), "");
  value after = LLVMBuildNSWAdd(c->b, first, const_i64(c, p->copies), "");
  LLVMBasicBlockRef full = new_block(c, "copies"), partial = new_block(c, "few"), done = new_block(c, "copies_done");
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLE, after, extent, ""), full, partial);
  LLVMPositionBuilderAtEnd(c->b, full);
  set_phase_loop(c, p, loop, first);
  for (uint32_t i = 0; i < p->copies; i++)
    slot->at[i] = LLVMBuildNSWAdd(c->b, first, const_i64(c, i), "");
  slot->jammed = true;
  c->copies = p->copies;
  emit_row(c, p, begin, end);
  slot->jammed = false;
  c->copies = 1;
  LLVMBuildBr(c->b, done);
  LLVMPositionBuilderAtEnd(c->b, partial);
  c->generation++;
  struct counted_loop single = loop_begin(c, first, extent, const_i64(c, 1));
  set_phase_loop(c, p, loop, single.index);
  emit_row(c, p, begin, end);
  loop_end(c, &single);
  LLVMBuildBr(c->b, done);
  LLVMPositionBuilderAtEnd(c->b, done);
}

/* The indices of the loops before `count`, from their joint number. */
static void set_outer_loops(struct codegen *c, const struct phase *p, int count, value row, value *units) {
  for (int i = count - 1; i >= 0; i--) {
    value index = i ? LLVMBuildURem(c->b, row, units[i], "") : row;
    row = i ? LLVMBuildUDiv(c->b, row, units[i], "") : row;
    set_phase_loop(c, p, i, index);
  }
}

/* ---- rows whose length is told ---- */

static bool divides_by_told(struct codegen *c, const struct phase *p) {
  for (int i = 1; i < p->nest.chain.group_count; i++)
    for (int j = p->nest.chain.groups[i].first; j <= p->nest.chain.groups[i].last; j++)
      if (!expr_is_const(c->k, p->nest.chain.loops[j]->value, NULL))
        return true;
  return false;
}
/* As an odometer counts: the loops' indices in the next row. */
static void emit_next_row(struct codegen *c, int count, const value *index, const value *units, value *out) {
  value carry = const_i64(c, 1);
  for (int i = count - 1; i >= 0; i--) {
    value next = LLVMBuildNSWAdd(c->b, index[i], carry, "");
    value wraps = LLVMBuildICmp(c->b, LLVMIntEQ, next, units[i], "");
    out[i] = i ? LLVMBuildSelect(c->b, wraps, const_i64(c, 0), next, "") : next;
    carry = LLVMBuildZExt(c->b, wraps, c->m->i64, "");
  }
}
static value phi_of(struct codegen *c, value first, LLVMBasicBlockRef from) {
  value phi = LLVMBuildPhi(c->b, c->m->i64, "");
  LLVMAddIncoming(phi, &first, &from, 1);
  return phi;
}
/* The number of an iteration is taken apart once: to divide by a size for each row would take as long as a short one. state: its number,
 * its column, the indices of the loops around. */
static void emit_told_tiles(struct codegen *c, const struct phase *p, value first, value last, const value *units) {
  LLVMBasicBlockRef enter = new_block(c, "enter"), rows = new_block(c, "rows"), done = new_block(c, "rows_done");
  int count = p->nest.chain.group_count - 1;
  value start[CHAIN_MAX + 2] = {first}, state[CHAIN_MAX + 2], next[CHAIN_MAX + 2];
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, first, last, ""), enter, done);
  LLVMPositionBuilderAtEnd(c->b, enter);
  start[1] = LLVMBuildURem(c->b, first, units[count], "");
  value row = LLVMBuildUDiv(c->b, first, units[count], "");
  for (int i = count - 1; i >= 0; i--) {
    start[i + 2] = i ? LLVMBuildURem(c->b, row, units[i], "") : row;
    row = i ? LLVMBuildUDiv(c->b, row, units[i], "") : row;
  }
  LLVMBuildBr(c->b, rows);
  LLVMPositionBuilderAtEnd(c->b, rows);
  c->generation++;
  for (int i = 0; i < count + 2; i++)
    state[i] = phi_of(c, start[i], enter);
  value left = LLVMBuildNSWSub(c->b, last, state[0], ""), rest = LLVMBuildNSWSub(c->b, units[count], state[1], "");
  value take = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){left, rest}, 2);
  for (int i = 0; i < count; i++)
    set_phase_loop(c, p, i, state[i + 2]);
  emit_row(c, p, state[1], LLVMBuildNSWAdd(c->b, state[1], take, ""));
  next[0] = LLVMBuildNSWAdd(c->b, state[0], take, "");
  next[1] = const_i64(c, 0);
  emit_next_row(c, count, state + 2, units, next + 2);
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(c->b);
  for (int i = 0; i < count + 2; i++)
    LLVMAddIncoming(state[i], &next[i], &latch, 1);
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, next[0], last, ""), rows, done);
  LLVMPositionBuilderAtEnd(c->b, done);
}

/* while (at < last) { the row's indices; from its column to its end or the range's; at += what was done } */
static void emit_plain_tiles(struct codegen *c, const struct phase *p, value begin, value end) {
  value units[CHAIN_MAX], elements = emit_phase_elements(c, p), grain = emit_phase_grain(c, p);
  value first = LLVMBuildNSWMul(c->b, begin, grain, "");
  value last = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){LLVMBuildNSWMul(c->b, end, grain, ""), elements}, 2);
  int count = p->nest.chain.group_count;
  if (count == 1) {
    emit_row(c, p, first, last);
    return;
  }
  for (int i = 0; i < count; i++)
    units[i] = emit_phase_units(c, p, i);
  if (p->copies == 1 && divides_by_told(c, p)) {
    emit_told_tiles(c, p, first, last, units);
    return;
  }
  value width = units[count - 1];
  LLVMBasicBlockRef before = LLVMGetInsertBlock(c->b), rows = new_block(c, "rows"), done = new_block(c, "rows_done");
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, first, last, ""), rows, done);
  LLVMPositionBuilderAtEnd(c->b, rows);
  c->generation++;
  value at = LLVMBuildPhi(c->b, c->m->i64, "at");
  LLVMAddIncoming(at, &first, &before, 1);
  value row = LLVMBuildUDiv(c->b, at, width, ""), column = LLVMBuildNSWSub(c->b, at, LLVMBuildNSWMul(c->b, row, width, ""), "");
  value left = LLVMBuildNSWSub(c->b, last, at, ""), rest = LLVMBuildNSWSub(c->b, width, column, "");
  value take = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){left, rest}, 2);
  value to = LLVMBuildNSWAdd(c->b, column, take, "");
  if (p->copies > 1) {
    value block = LLVMBuildURem(c->b, row, units[count - 2], ""), chunk = const_i64(c, phase_chunk(p));
    set_outer_loops(c, p, count - 2, LLVMBuildUDiv(c->b, row, units[count - 2], ""), units);
    to = LLVMBuildNSWMul(c->b, to, chunk, "");
    to = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){to, emit_loop_extent(c, p, count - 1)}, 2);
    emit_block_of_copies(c, p, block, LLVMBuildNSWMul(c->b, column, chunk, ""), to);
  } else {
    set_outer_loops(c, p, count - 1, row, units);
    emit_row(c, p, column, to);
  }
  value next = LLVMBuildNSWAdd(c->b, at, take, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(c->b);
  LLVMAddIncoming(at, &next, &latch, 1);
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, next, last, ""), rows, done);
  LLVMPositionBuilderAtEnd(c->b, done);
}

void emit_phase_tiles(struct codegen *c, const struct phase *p, value begin, value end) {
  (p->nest.is_scheduled ? emit_scheduled_tiles : emit_plain_tiles)(c, p, begin, end);
}
