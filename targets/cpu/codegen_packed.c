/* codegen_packed.c: the phase of a contraction that computes with panels: groups of rows that are read in place, or packed too, block by
 * block of terms, on the stack. See codegen_pack.c. */
#include "targets/cpu/codegen_pack.h"

#define FETCH_AHEAD 16 /* terms, of what is packed on the stack */

/* ---- the phase that computes ---- */

/* One group of rows times the panels from .. to-1. */
static void emit_panel_loop(struct codegen *c, const struct phase *p, value from, value to) {
  uint32_t lane = p->chain[p->loops[p->loop_count - 1].last]->local;
  struct counted_loop loop = loop_begin(c, from, to, const_i64(c, 1));
  value base = LLVMBuildNSWMul(c->b, loop.index, const_i64(c, p->pack.lanes), "");
  set_phase_loop(c, p, p->loop_count - 1, base);
  c->panel = panel_base(c, p, loop.index);
  c->packing = p;
  lanes_enter(c, lane, p->pack.lanes, p->inside);
  c->lane_base = base;
  c->mask = panel_mask(c, p, base);
  emit_block(c, p->inside);
  c->mask = NULL;
  c->packing = NULL;
  lanes_leave(c, lane, p->inside);
  loop_end(c, &loop);
}

/* Copies beyond the last row stand for that one too; the first to do so is the one with the right factors, and stores last. */
static void set_copies(struct codegen *c, const struct phase *p, value first) {
  int loop = p->loop_count - 2;
  struct local_slot *slot = &c->locals[p->chain[p->loops[loop].last]->local];
  value most = LLVMBuildNSWSub(c->b, emit_loop_extent(c, p, loop), const_i64(c, 1), "");
  set_phase_loop(c, p, loop, first);
  for (uint32_t i = 0; i < p->pack.copies; i++) {
    value row = LLVMBuildNSWAdd(c->b, first, const_i64(c, i), "");
    slot->at[i] = p->pack.is_safe && i ? call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){row, most}, 2) : row;
  }
}

/* The last group may reach beyond the rows: it repeats the last row, or, where that would show, goes row by row. */
static void emit_row_group(struct codegen *c, const struct phase *p, value first, value from, value to) {
  int loop = p->loop_count - 2;
  struct local_slot *slot = &c->locals[p->chain[p->loops[loop].last]->local];
  value extent = emit_loop_extent(c, p, loop);
  LLVMBasicBlockRef done = new_block(c, "group_done");
  if (!p->pack.is_safe) {
    LLVMBasicBlockRef full = new_block(c, "group"), partial = new_block(c, "few");
    value after = LLVMBuildNSWAdd(c->b, first, const_i64(c, p->pack.copies), "");
    LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLE, after, extent, ""), full, partial);
    LLVMPositionBuilderAtEnd(c->b, partial);
    c->generation++;
    struct counted_loop single = loop_begin(c, first, extent, const_i64(c, 1));
    set_phase_loop(c, p, loop, single.index);
    emit_panel_loop(c, p, from, to);
    loop_end(c, &single);
    LLVMBuildBr(c->b, done);
    LLVMPositionBuilderAtEnd(c->b, full);
    c->generation++;
  }
  set_copies(c, p, first);
  slot->jammed = true;
  c->copies = p->pack.copies;
  emit_panel_loop(c, p, from, to);
  slot->jammed = false;
  c->copies = 1;
  LLVMBuildBr(c->b, done);
  LLVMPositionBuilderAtEnd(c->b, done);
  c->generation++;
}

/* ---- both factors packed ---- */

struct blocks {
  value rows, sums;   /* on the stack: [group][term][copy] and [row of the tile][lane of the chunk] */
  value first, count; /* the terms of this block */
  value is_first, is_last;
};
static uint32_t element_bytes(const struct phase *p) { return (uint32_t)dtype_size(p->pack.dtype); }

static value offset_of(struct codegen *c, value base, value index, int64_t bytes) {
  value offset = LLVMBuildNSWMul(c->b, index, const_i64(c, bytes), "");
  return LLVMBuildInBoundsGEP2(c->b, c->m->i8, base, &offset, 1, "");
}
static value group_rows(struct codegen *c, const struct phase *p, const struct blocks *b, value group) {
  return offset_of(c, b->rows, group, (int64_t)DEPTH_BLOCK * p->pack.copies * element_bytes(p));
}

/* The red loops' variables for a term by its number. */
static void set_red_loops(struct codegen *c, const struct phase *p, value number) {
  for (int i = p->pack.red_count - 1; i >= 0; i--) {
    value extent = i ? emit_expr(c, p->pack.red[i]->value) : NULL;
    c->locals[p->pack.red[i]->local].at[0] = i ? LLVMBuildURem(c->b, number, extent, "") : number;
    number = i ? LLVMBuildUDiv(c->b, number, extent, "") : number;
  }
}
/* Asks for the copies' factors of a later term: where terms lie far apart, nothing else foresees them. What is loaded from a place that is
 * loaded itself stays as it is: that place may be none. */
static void fetch_plain(struct codegen *c, const struct phase *p, const struct blocks *b, value term) {
  const struct expr *load = expr_get(c->k, p->pack.plain);
  bool known = load->op == SCALAR_LOAD;
  for (int i = 0; known && i < load->count; i++)
    known = !expr_loads(c, expr_operand(c->k, p->pack.plain, i));
  if (!known)
    return;
  term = LLVMBuildNSWAdd(c->b, b->first, term, "");
  set_red_loops(c, p, LLVMBuildNSWAdd(c->b, term, const_i64(c, FETCH_AHEAD), ""));
  emit_hint(c, fetch_address(c, (uint32_t)load->imm, &c->k->operands.items[load->first]));
  set_red_loops(c, p, term);
  c->generation++;
}
/* The rows' factors of the block: rows are lanes here. Term by term, as transposed factors lie. */
static void pack_plain(struct codegen *c, const struct phase *p, const struct blocks *b, value row, value row_end) {
  int loop = p->loop_count - 2;
  uint32_t local = p->chain[p->loops[loop].last]->local;
  value copies = const_i64(c, p->pack.copies);
  struct counted_loop terms = loop_begin(c, const_i64(c, 0), b->count, const_i64(c, 1));
  set_red_loops(c, p, LLVMBuildNSWAdd(c->b, b->first, terms.index, ""));
  struct counted_loop groups = loop_begin(c, row, row_end, copies);
  value group = LLVMBuildUDiv(c->b, LLVMBuildNSWSub(c->b, groups.index, row, ""), copies, "");
  set_phase_loop(c, p, loop, groups.index);
  fetch_plain(c, p, b, terms.index);
  lanes_enter(c, local, p->pack.copies, NULL);
  c->lane_base = groups.index;
  c->mask = mask_before(c, LLVMBuildNSWSub(c->b, emit_loop_extent(c, p, loop), groups.index, ""), p->pack.copies);
  value v = splat(c, emit_expr(c, p->pack.plain), p->pack.copies);
  value at = offset_of(c, group_rows(c, p, b, group), terms.index, (int64_t)p->pack.copies * element_bytes(p));
  LLVMSetAlignment(LLVMBuildStore(c->b, v, at), 16);
  c->mask = NULL;
  lanes_leave(c, local, NULL);
  loop_end(c, &groups);
  loop_end(c, &terms);
}

/* Where the sums of a copy wait between blocks. */
static value waiting_sums(struct codegen *c, const struct phase *p, const struct blocks *b, value group, value panel) {
  value row = LLVMBuildNSWAdd(c->b, LLVMBuildNSWMul(c->b, group, const_i64(c, p->pack.copies), ""), const_i64(c, c->copy), "");
  value at = LLVMBuildNSWAdd(c->b, LLVMBuildNSWMul(c->b, row, const_i64(c, BLOCK_CHUNK), ""), panel, "");
  return offset_of(c, b->sums, at, panel_row_bytes(p));
}
static void resume_sums(struct codegen *c, const struct phase *p, const struct blocks *b, value group, value panel) {
  struct local_slot *slot = &c->locals[p->pack.sum];
  for (c->copy = 0; c->copy < c->copies; c->copy++) {
    value waiting = LLVMBuildLoad2(c->b, slot->type, waiting_sums(c, p, b, group, panel), "");
    LLVMSetAlignment(waiting, 64);
    value fresh = LLVMBuildLoad2(c->b, slot->type, slot->at[c->copy], "");
    LLVMBuildStore(c->b, LLVMBuildSelect(c->b, b->is_first, fresh, waiting, ""), slot->at[c->copy]);
  }
  c->copy = 0;
}
static void leave_sums(struct codegen *c, const struct phase *p, const struct blocks *b, value group, value panel) {
  struct local_slot *slot = &c->locals[p->pack.sum];
  for (c->copy = 0; c->copy < c->copies; c->copy++) {
    value v = LLVMBuildLoad2(c->b, slot->type, slot->at[c->copy], "");
    LLVMSetAlignment(LLVMBuildStore(c->b, v, waiting_sums(c, p, b, group, panel)), 64);
  }
  c->copy = 0;
}

/* The block's terms of one group of rows and one panel; after the last block what follows the sum. */
static void emit_block_of_terms(struct codegen *c, const struct phase *p, const struct blocks *b, value group, value from, value panel) {
  uint32_t lane = p->chain[p->loops[p->loop_count - 1].last]->local;
  value base = LLVMBuildNSWMul(c->b, panel, const_i64(c, p->pack.lanes), ""), place = LLVMBuildNSWSub(c->b, panel, from, "");
  const struct stmt *red = p->pack.red[0];
  LLVMBasicBlockRef finish = new_block(c, "finish"), leave = new_block(c, "leave"), done = new_block(c, "terms_done");
  set_phase_loop(c, p, p->loop_count - 1, base);
  c->panel = panel_base(c, p, panel);
  lanes_enter(c, lane, p->pack.lanes, p->inside);
  c->lane_base = base;
  c->mask = panel_mask(c, p, base);
  emit_statements(c, p->inside, red);
  resume_sums(c, p, b, group, place);
  value rows = group_rows(c, p, b, group);
  struct counted_loop terms = loop_begin(c, const_i64(c, 0), b->count, const_i64(c, 1));
  c->packing = p;
  c->depth = LLVMBuildNSWAdd(c->b, b->first, terms.index, "");
  c->plain_row = offset_of(c, rows, terms.index, (int64_t)p->pack.copies * element_bytes(p));
  emit_block(c, p->pack.set);
  c->packing = NULL;
  c->depth = c->plain_row = NULL;
  loop_end(c, &terms);
  LLVMBuildCondBr(c->b, b->is_last, finish, leave);
  LLVMPositionBuilderAtEnd(c->b, leave);
  leave_sums(c, p, b, group, place);
  LLVMBuildBr(c->b, done);
  LLVMPositionBuilderAtEnd(c->b, finish);
  emit_statements(c, red->next, NULL);
  LLVMBuildBr(c->b, done);
  LLVMPositionBuilderAtEnd(c->b, done);
  c->mask = NULL;
  lanes_leave(c, lane, p->inside);
}

static void emit_blocks(struct codegen *c, const struct phase *p, value row, value row_end, value from, value to) {
  struct local_slot *slot = &c->locals[p->chain[p->loops[p->loop_count - 2].last]->local];
  value zero = const_i64(c, 0), one = const_i64(c, 1), size = const_i64(c, DEPTH_BLOCK), copies = const_i64(c, p->pack.copies);
  value total = emit_pack_terms(c, p), end = call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){total, one}, 2);
  uint64_t row_bytes = (uint64_t)ROW_GROUPS * DEPTH_BLOCK * p->pack.copies * element_bytes(p);
  uint64_t sum_bytes = (uint64_t)ROW_GROUPS * p->pack.copies * BLOCK_CHUNK * (uint64_t)panel_row_bytes(p);
  struct blocks b = {.rows = emit_alloca(c, LLVMArrayType2(c->m->i8, row_bytes), "rows"),
                     .sums = emit_alloca(c, LLVMArrayType2(c->m->i8, sum_bytes), "sums")};
  LLVMSetAlignment(b.rows, 64);
  LLVMSetAlignment(b.sums, 64);
  struct counted_loop blocks = loop_begin(c, zero, end, size);
  b.first = blocks.index;
  b.count = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){LLVMBuildNSWSub(c->b, total, b.first, ""), size}, 2);
  b.is_first = LLVMBuildICmp(c->b, LLVMIntEQ, b.first, zero, "");
  b.is_last = LLVMBuildICmp(c->b, LLVMIntSGE, LLVMBuildNSWAdd(c->b, b.first, size, ""), total, "");
  pack_plain(c, p, &b, row, row_end);
  struct counted_loop groups = loop_begin(c, row, row_end, copies);
  value group = LLVMBuildUDiv(c->b, LLVMBuildNSWSub(c->b, groups.index, row, ""), copies, "");
  set_copies(c, p, groups.index);
  struct counted_loop panels = loop_begin(c, from, to, one);
  slot->jammed = true;
  c->copies = p->pack.copies;
  emit_block_of_terms(c, p, &b, group, from, panels.index);
  slot->jammed = false;
  c->copies = 1;
  loop_end(c, &panels);
  loop_end(c, &groups);
  loop_end(c, &blocks);
}

void emit_packed_tiles(struct codegen *c, const struct phase *p, value begin, value end) {
  int rows = p->loop_count - 2;
  value elements = emit_packed_elements(c, p), grain = emit_phase_grain(c, p);
  value first = LLVMBuildNSWMul(c->b, begin, grain, "");
  value last = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){LLVMBuildNSWMul(c->b, end, grain, ""), elements}, 2);
  value blocks = emit_row_blocks(c, p), panels = emit_panel_count(c, p), chunk = emit_panel_chunk(c, p);
  value extent = emit_loop_extent(c, p, rows), size = const_i64(c, (int64_t)ROW_GROUPS * p->pack.copies);
  struct counted_loop loop = loop_begin(c, first, last, const_i64(c, 1));
  value block = LLVMBuildURem(c->b, loop.index, blocks, ""), rest = LLVMBuildUDiv(c->b, loop.index, blocks, "");
  for (int i = rows - 1; i >= 0; i--) {
    value n = emit_loop_extent(c, p, i);
    set_phase_loop(c, p, i, LLVMBuildURem(c->b, rest, n, ""));
    rest = LLVMBuildUDiv(c->b, rest, n, "");
  }
  value from = LLVMBuildNSWMul(c->b, rest, chunk, ""); /* slowest: the chunk stays in the cache */
  value to = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){LLVMBuildNSWAdd(c->b, from, chunk, ""), panels}, 2);
  value row = LLVMBuildNSWMul(c->b, block, size, "");
  value row_end = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){LLVMBuildNSWAdd(c->b, row, size, ""), extent}, 2);
  if (p->pack.packs_both) {
    emit_blocks(c, p, row, row_end, from, to);
  } else {
    struct counted_loop groups = loop_begin(c, row, row_end, const_i64(c, p->pack.copies));
    emit_row_group(c, p, groups.index, from, to);
    loop_end(c, &groups);
  }
  loop_end(c, &loop);
}
