/* codegen_panel.c: the panels of a packed operand, and the phase that fills them. See codegen_pack.c. */
#include "targets/cpu/codegen_pack.h"

/* ---- panels ---- */

value panel_base(struct codegen *c, const struct phase *p, value panel) {
  value number = NULL;
  for (int i = 0; i < p->pack.outer_count; i++) {
    value index = c->locals[p->chain[p->loops[p->pack.outer[i]].last]->local].at[0];
    value extent = emit_loop_extent(c, p, p->pack.outer[i]);
    number = number ? LLVMBuildNSWAdd(c->b, LLVMBuildNSWMul(c->b, number, extent, ""), index, "") : index;
  }
  number = number ? LLVMBuildNSWAdd(c->b, LLVMBuildNSWMul(c->b, number, emit_panel_count(c, p), ""), panel, "") : panel;
  value offset = LLVMBuildNSWMul(c->b, LLVMBuildNSWMul(c->b, number, emit_pack_terms(c, p), ""), const_i64(c, panel_row_bytes(p)), "");
  return LLVMBuildInBoundsGEP2(c->b, c->m->i8, c->panels, &offset, 1, "");
}
/* The row of a panel for the red loops at hand. */
static value panel_row(struct codegen *c, const struct phase *p) {
  value row = c->depth;
  for (int i = 0; !c->depth && i < p->pack.red_count; i++) {
    const struct local_slot *slot = &c->locals[p->pack.red[i]->local];
    value index = slot->at[slot->jammed ? c->copy : 0];
    row = row ? LLVMBuildNSWAdd(c->b, LLVMBuildNSWMul(c->b, row, emit_expr(c, p->pack.red[i]->value), ""), index, "") : index;
  }
  value offset = LLVMBuildNSWMul(c->b, row, const_i64(c, panel_row_bytes(p)), "");
  return LLVMBuildInBoundsGEP2(c->b, c->m->i8, c->panel, &offset, 1, "");
}
bool emit_packed_factor(struct codegen *c, expr_id e, value *out) {
  const struct phase *p = c->packing;
  LLVMTypeRef element = type_of_dtype(c->m, p->pack.dtype);
  if (e == p->pack.packed) {
    *out = LLVMBuildLoad2(c->b, LLVMVectorType(element, p->pack.lanes), panel_row(c, p), "");
    LLVMSetAlignment(*out, 64);
    return true;
  }
  if (e != p->pack.plain || !c->plain_row)
    return false;
  value at = const_i64(c, c->copy);
  *out = LLVMBuildLoad2(c->b, element, LLVMBuildInBoundsGEP2(c->b, element, c->plain_row, &at, 1, ""), "");
  return true;
}

value mask_before(struct codegen *c, value left, uint32_t lanes) {
  value steps[1024];
  for (uint32_t i = 0; i < lanes; i++)
    steps[i] = LLVMConstInt(c->m->i32, i, false);
  left = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){left, const_i64(c, lanes)}, 2);
  value count = splat(c, LLVMBuildTrunc(c->b, left, c->m->i32, ""), lanes);
  return LLVMBuildICmp(c->b, LLVMIntULT, LLVMConstVector(steps, lanes), count, "");
}
value panel_mask(struct codegen *c, const struct phase *p, value base) {
  return mask_before(c, LLVMBuildNSWSub(c->b, emit_loop_extent(c, p, p->loop_count - 1), base, ""), p->pack.lanes);
}

/* ---- the packing phase ---- */

static uint32_t lane_local_of(const struct phase *p) { return p->chain[p->loops[p->loop_count - 1].last]->local; }

/* Lane by lane; those beyond the end repeat the last, which nothing reads. */
static void store_lanes(struct codegen *c, const struct phase *p, value base) {
  struct counted_loop lanes = loop_begin(c, const_i64(c, 0), const_i64(c, p->pack.lanes), const_i64(c, 1));
  value last = LLVMBuildNSWSub(c->b, emit_loop_extent(c, p, p->loop_count - 1), const_i64(c, 1), "");
  value at = LLVMBuildNSWAdd(c->b, base, lanes.index, "");
  set_phase_loop(c, p, p->loop_count - 1, call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){at, last}, 2));
  value v = emit_expr(c, p->pack.packed);
  LLVMBuildStore(c->b, v, LLVMBuildInBoundsGEP2(c->b, LLVMTypeOf(v), panel_row(c, p), &lanes.index, 1, ""));
  loop_end(c, &lanes);
}
static void store_row(struct codegen *c, const struct phase *p, value base) {
  uint32_t local = lane_local_of(p);
  lanes_enter(c, local, p->pack.lanes, NULL);
  c->lane_base = base;
  c->mask = panel_mask(c, p, base);
  value v = splat(c, emit_expr(c, p->pack.packed), p->pack.lanes);
  LLVMSetAlignment(LLVMBuildStore(c->b, v, panel_row(c, p)), 64);
  c->mask = NULL;
  lanes_leave(c, local, NULL);
}

static uint32_t square_of(const struct codegen *c, const struct phase *p) {
  return c->m->cpu->vector_bytes / (uint32_t)dtype_size(p->pack.dtype);
}
/* Lanes that lie apart while the terms lie side by side: squares of both are loaded along the terms and transposed. */
static void store_square(struct codegen *c, const struct phase *p, value base, value term) {
  uint32_t n = square_of(c, p), red = p->pack.red[p->pack.red_count - 1]->local;
  struct local_slot *slot = &c->locals[lane_local_of(p)];
  value v[COPIES_MAX], last = LLVMBuildNSWSub(c->b, emit_loop_extent(c, p, p->loop_count - 1), const_i64(c, 1), "");
  struct counted_loop lanes = loop_begin(c, const_i64(c, 0), const_i64(c, p->pack.lanes), const_i64(c, n));
  set_phase_loop(c, p, p->loop_count - 1, base);
  for (uint32_t i = 0; i < n; i++) {
    value at = LLVMBuildNSWAdd(c->b, LLVMBuildNSWAdd(c->b, base, lanes.index, ""), const_i64(c, i), "");
    slot->at[i] = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){at, last}, 2);
  }
  slot->jammed = true;
  c->copies = n;
  lanes_enter(c, red, n, NULL);
  c->lane_base = term;
  for (c->copy = 0; c->copy < n; c->copy++)
    v[c->copy] = splat(c, emit_expr(c, p->pack.packed), n);
  c->copy = 0;
  slot->jammed = false;
  c->copies = 1;
  lanes_leave(c, red, NULL);
  emit_transpose(c, v, n);
  for (uint32_t i = 0; i < n; i++) {
    c->locals[red].at[0] = LLVMBuildNSWAdd(c->b, term, const_i64(c, i), "");
    value place = LLVMBuildInBoundsGEP2(c->b, type_of_dtype(c->m, p->pack.dtype), panel_row(c, p), &lanes.index, 1, "");
    LLVMSetAlignment(LLVMBuildStore(c->b, v[i], place), 16);
  }
  loop_end(c, &lanes);
}

static void pack_innermost(struct codegen *c, const struct phase *p, value base, value begin, value end, uint32_t step) {
  struct counted_loop loop = loop_begin(c, begin, end, const_i64(c, step));
  c->locals[p->pack.red[p->pack.red_count - 1]->local].at[0] = loop.index;
  if (step > 1)
    store_square(c, p, base, loop.index);
  else if (p->pack.is_strided)
    store_lanes(c, p, base);
  else
    store_row(c, p, base);
  loop_end(c, &loop);
}
static void pack_rows(struct codegen *c, const struct phase *p, value base, int red) {
  const struct stmt *s = p->pack.red[red];
  value extent = emit_expr(c, s->value), zero = const_i64(c, 0), whole = zero;
  if (red + 1 < p->pack.red_count) {
    struct counted_loop loop = loop_begin(c, zero, extent, const_i64(c, 1));
    c->locals[s->local].at[0] = loop.index;
    pack_rows(c, p, base, red + 1);
    loop_end(c, &loop);
    return;
  }
  if (p->pack.is_square) {
    whole = LLVMBuildAnd(c->b, extent, const_i64(c, -(int64_t)square_of(c, p)), "");
    pack_innermost(c, p, base, zero, whole, square_of(c, p));
  }
  pack_innermost(c, p, base, whole, extent, 1);
}

void emit_pack_tiles(struct codegen *c, const struct phase *p, value begin, value end) {
  value total = emit_pack_panels(c, p), grain = emit_pack_grain(c, p), panels = emit_panel_count(c, p);
  value first = LLVMBuildNSWMul(c->b, begin, grain, "");
  value last = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){LLVMBuildNSWMul(c->b, end, grain, ""), total}, 2);
  struct counted_loop loop = loop_begin(c, first, last, const_i64(c, 1));
  value panel = LLVMBuildURem(c->b, loop.index, panels, ""), rest = LLVMBuildUDiv(c->b, loop.index, panels, "");
  for (int i = p->pack.outer_count - 1; i >= 0; i--) {
    value extent = emit_loop_extent(c, p, p->pack.outer[i]);
    set_phase_loop(c, p, p->pack.outer[i], LLVMBuildURem(c->b, rest, extent, ""));
    rest = LLVMBuildUDiv(c->b, rest, extent, "");
  }
  value base = LLVMBuildNSWMul(c->b, panel, const_i64(c, p->pack.lanes), "");
  set_phase_loop(c, p, p->loop_count - 1, base);
  c->panel = panel_base(c, p, panel);
  pack_rows(c, p, base, 0);
  loop_end(c, &loop);
}
