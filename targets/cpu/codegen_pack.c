/* codegen_pack.c: contractions with one operand packed.
 *
 * A contraction is a sum of products, x[m, k] * y[k, n], inside par loops: matrix products of any transposition, batched
 * ones, convolutions and their gradients. The operand that varies with the lanes is copied into panels first, in a phase
 * of its own: for each group of lanes all its k one after the other, zeros at the end. Then every inner loop reads
 * whole vectors in order, whatever the operand's layout was, and what was computed while packing (a cast, a mask) is
 * computed once. The other operand is read in place, an element broadcast at a time, several rows ("copies") together: their
 * accumulators fill the registers.
 *
 * Where the other operand does not lie in the order of the sum (transposed, strided, the gradient of a filter) or the sum is
 * long, it is packed too: for a block of terms, by the tile that needs it, on the stack. Partial sums wait there as well.
 *
 * Panels that fit in half of the second-level cache make a chunk; a tile is a chunk times a block of rows. With few rows
 * packing does not pay: whether to pack is decided when the sizes are known, and the plain code stands beside. */
#include <string.h>

#include "ir/kernel/contraction.h"
#include "targets/cpu/codegen.h"

#define ROW_GROUPS 8          /* groups of copies in a tile */
#define CHUNK_BYTES (1 << 19) /* of panels */
#define DEPTH_BLOCK 256       /* terms of a block where both factors are packed */
#define BLOCK_CHUNK 8         /* panels in a tile then */
#define FETCH_AHEAD 16        /* terms, of what is packed on the stack */
#define DEPTH_MAX 6000        /* terms that need no blocks */
#define ROWS_MIN 33           /* below, packing costs more than it gives */
#define ONE_VECTOR_GAIN 1.15  /* from which on panels of one register are better than of two */
#define ROWS_MIN_STRIDED 4    /* the same where the plain code would gather */

/* ---- planning ---- */

/* Whether a loop of the phase moves the factor. */
static bool moves(const struct phase *p, const struct contraction *x, int factor, int loop) {
  for (int i = p->loops[loop].first; i <= p->loops[loop].last; i++)
    if (x->axes[i].in[factor])
      return true;
  return false;
}
/* The loop of the phase that ends with an axis. */
static int loop_of_axis(const struct phase *p, int axis) {
  int loop = p->loop_count - 1;
  while (loop >= 0 && p->loops[loop].last != axis)
    loop--;
  return loop;
}
static double loop_trips_of(const struct kernel *k, const struct phase *p, int loop, bool *known) {
  double trips = 1;
  *known = true;
  for (int i = p->loops[loop].first; i <= p->loops[loop].last; i++) {
    trips *= loop_trips(k, p->chain[i]->value);
    *known = *known && expr_is_const(k, p->chain[i]->value, NULL);
  }
  return trips;
}

/* Whether neighbouring terms of the sum lie side by side in everything that e loads. */
static bool lies_along(struct codegen *c, expr_id e, uint32_t local, uint8_t *seen) {
  const struct kernel *k = c->k;
  const struct expr *x = expr_get(k, e);
  int64_t step;
  if (seen[e])
    return true;
  seen[e] = 1;
  for (int i = 0; i < x->count; i++)
    if (x->op != SCALAR_LOAD && !lies_along(c, expr_operand(k, e, i), local, seen))
      return false;
  for (int i = 0; x->op == SCALAR_LOAD && i < x->count; i++)
    if (!expr_coefficient(c, expr_operand(k, e, i), local, &step) || (step != 0 && (step != 1 || i + 1 < x->count)))
      return false;
  return true;
}
static bool moves_in_sum(const struct contraction *x, int factor) {
  for (int i = x->par_count; i < x->axis_count; i++)
    if (x->axes[i].in[factor])
      return true;
  return false;
}
static bool wants_both(struct codegen *c, const struct contraction *x, const struct packing *pack) {
  double terms = 1;
  for (int i = 0; i < pack->red_count; i++)
    terms *= loop_trips(c->k, pack->red[i]->value);
  bool along = lies_along(c, pack->plain, pack->red[pack->red_count - 1]->local, arena_alloc(&c->m->arena, c->k->exprs.count));
  return pack->is_safe && moves_in_sum(x, 0) && (!along || terms > DEPTH_MAX);
}

/* The loop whose iterations fill groups of copies best. */
static int find_copy_loop(struct codegen *c, const struct phase *p, const struct contraction *x, int lane, const struct packing *pack,
                          uint32_t *copies) {
  uint32_t most = pack->vectors > 2 || c->m->cpu->vector_bytes == 32 ? 6 : c->m->cpu->vector_bytes == 64 ? 8 : 4;
  if (pack->vectors == 1)
    most = c->m->cpu->vector_bytes >= 32 ? 12 : 8;
  bool fixed = pack->packs_both; /* rows are vectors then */
  if (fixed)
    most = c->m->cpu->vector_bytes == 64 ? 8 : 4;
  double best = 0;
  int chosen = -1;
  for (int i = p->loop_count - 1; i >= 0; i--) {
    bool known;
    double trips = loop_trips_of(c->k, p, i, &known);
    if (i == lane || trips < 2 || !moves(p, x, 0, i) || moves(p, x, 1, i))
      continue;
    uint32_t n = most;
    double fill = 0.9;
    for (uint32_t try = most; known && try >= (fixed ? most : 2); try--) {
      double groups = (double)(((uint64_t)trips + try - 1) / try), filled = trips / (groups * try) * (try < 4 ? 0.6 : 1);
      if (try == most || filled > fill + 0.05) {
        fill = filled;
        n = try;
      }
    }
    if (fill > best + 0.01) {
      best = fill;
      chosen = i;
      *copies = n;
    }
  }
  return chosen;
}

static bool reads_what_it_stores(struct codegen *c, const struct stmt *inside) {
  for (const struct stmt *s = inside; s; s = s->next)
    for (const struct stmt *t = inside; s->kind == STMT_STORE && t; t = t->next)
      if (t->value != NO_EXPR && t->kind != STMT_FOR && expr_loads_from(c, t->value, s->buffer))
        return true;
  return false;
}

static void move_to_end(struct phase *p, int loop, int end) {
  struct phase_loop moved = p->loops[loop];
  for (int i = loop; i < end; i++)
    p->loops[i] = p->loops[i + 1];
  p->loops[end] = moved;
}

/* The share of the lanes of whole panels that stand for iterations. */
static double lane_fill(uint64_t trips, uint32_t lanes) { return (double)trips / (double)((trips + lanes - 1) / lanes * lanes); }

/* Registers of lanes: with 32 of them 4 x 6 accumulators load least, where the lanes' loop is long or a multiple of that; one where two
 * would leave many lanes to nothing. */
static uint32_t choose_vectors(struct codegen *c, const struct phase *p, int lane, uint32_t size) {
  bool known;
  uint32_t native = c->m->cpu->vector_bytes / size, four = 4 * native;
  uint64_t trips = (uint64_t)loop_trips_of(c->k, p, lane, &known);
  if (known && lane_fill(trips, native) > ONE_VECTOR_GAIN * lane_fill(trips, 2 * native))
    return 1;
  return c->m->cpu->vector_bytes == 64 && known && (trips % four == 0 || trips > 6 * four) ? 4 : 2;
}

/* What can be packed: a sum of floats in lanes, each factor with loops of its own. */
static bool fits_packing(struct codegen *c, const struct phase *p, const struct contraction *x, int lane) {
  bool known;
  size_t size = dtype_size(x->dtype);
  return (size == 4 || size == 8) && x->par_count == p->chain_count && p->loop_count >= 2 && x->axis_count - x->par_count <= CHAIN_MAX &&
         lane >= 0 && loop_trips_of(c->k, p, lane, &known) >= 6 && moves(p, x, 1, lane) && !moves(p, x, 0, lane) && moves_in_sum(x, 1);
}

/* Loops that the packed factor varies with; rows: the others' product, at least, where there are any. */
static double sort_loops(struct codegen *c, struct phase *p, const bool *packed, struct packing *pack, bool *all_known) {
  double rows = 1;
  *all_known = true;
  for (int i = 0; i < p->loop_count - 1; i++) {
    bool known;
    double trips = loop_trips_of(c->k, p, i, &known);
    if (packed[p->loops[i].last]) {
      pack->outer[pack->outer_count++] = i;
    } else {
      rows *= known ? trips : 1;
      *all_known = *all_known && known;
    }
  }
  return rows;
}

static void take_contraction(struct codegen *c, const struct phase *p, const struct contraction *x, struct packing *pack) {
  pack->plain = x->factor[0];
  pack->packed = x->factor[1];
  pack->dtype = x->dtype;
  pack->sum = x->local;
  pack->set = x->set;
  for (int i = x->par_count; i < x->axis_count; i++)
    pack->red[pack->red_count++] = x->axes[i].loop;
  pack->is_safe = !reads_what_it_stores(c, p->inside);
}

bool plan_packing(struct codegen *c, struct phase *p) {
  const struct kernel *k = c->k;
  struct packing pack = {0};
  struct contraction x;
  if (!contraction_find(&c->uses, p->body, &x) || x.is_ragged || x.test)
    return false;
  int lane = loop_of_axis(p, x.lanes);
  if (!fits_packing(c, p, &x, lane))
    return false;
  uint32_t size = (uint32_t)dtype_size(x.dtype), copies = 0;
  take_contraction(c, p, &x, &pack);
  pack.packs_both = wants_both(c, &x, &pack);
  pack.vectors = choose_vectors(c, p, lane, size);
  pack.vectors = pack.packs_both && pack.vectors > 2 ? 2 : pack.vectors;
  int copy = find_copy_loop(c, p, &x, lane, &pack, &copies);
  if (copy < 0)
    return false;
  pack.lanes = pack.vectors * c->m->cpu->vector_bytes / size;
  pack.copies = copies;
  bool packed[CHAIN_MAX] = {false}, all_known; /* by the last axis of a loop: it moves the packed factor */
  for (int i = 0; i < p->loop_count; i++)
    packed[p->loops[i].last] = moves(p, &x, 1, i);
  move_to_end(p, copy, p->loop_count - 1);
  move_to_end(p, lane > copy ? lane - 1 : lane, p->loop_count - 1);
  double rows = sort_loops(c, p, packed, &pack, &all_known);
  uint32_t local = p->chain[p->loops[p->loop_count - 1].last]->local;
  pack.is_strided = expr_is_strided(c, pack.packed, local);
  uint8_t *seen = arena_alloc(&c->m->arena, k->exprs.count);
  pack.is_square = pack.is_strided && lies_along(c, pack.packed, pack.red[pack.red_count - 1]->local, seen);
  pack.rows_min = pack.is_strided ? ROWS_MIN_STRIDED : ROWS_MIN;
  pack.always = rows >= pack.rows_min;
  if (all_known && !pack.always)
    return false;
  p->pack = pack;
  p->has_packing = true;
  return true;
}

/* ---- sizes ---- */

static value emit_red_total(struct codegen *c, const struct phase *p) {
  value total = NULL;
  for (int i = 0; i < p->pack.red_count; i++) {
    value extent = emit_expr(c, p->pack.red[i]->value);
    extent = call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){extent, const_i64(c, 0)}, 2);
    total = total ? LLVMBuildNSWMul(c->b, total, extent, "") : extent;
  }
  return total;
}
static value divide_up(struct codegen *c, value n, value by) {
  return LLVMBuildUDiv(c->b, LLVMBuildNSWAdd(c->b, n, LLVMBuildNSWSub(c->b, by, const_i64(c, 1), ""), ""), by, "");
}
static value emit_panels(struct codegen *c, const struct phase *p) {
  return divide_up(c, emit_loop_extent(c, p, p->loop_count - 1), const_i64(c, p->pack.lanes));
}
value emit_pack_panels(struct codegen *c, const struct phase *p) {
  value total = emit_panels(c, p);
  for (int i = 0; i < p->pack.outer_count; i++)
    total = LLVMBuildNSWMul(c->b, total, emit_loop_extent(c, p, p->pack.outer[i]), "");
  return total;
}
static int64_t panel_row_bytes(const struct phase *p) { return (int64_t)dtype_size(p->pack.dtype) * p->pack.lanes; }

/* i1: whether there are rows enough. */
value emit_pack_condition(struct codegen *c, const struct phase *p) {
  if (p->pack.always)
    return LLVMConstInt(c->m->i1, 1, false);
  value rows = const_i64(c, 1);
  for (int i = 0; i < p->loop_count - 1; i++) {
    bool outer = false;
    for (int j = 0; j < p->pack.outer_count; j++)
      outer = outer || p->pack.outer[j] == i;
    if (!outer)
      rows = LLVMBuildNSWMul(c->b, rows, emit_loop_extent(c, p, i), "");
  }
  return LLVMBuildICmp(c->b, LLVMIntSGE, rows, const_i64(c, p->pack.rows_min), "");
}
value emit_pack_bytes(struct codegen *c, const struct phase *p) {
  value rows = LLVMBuildNSWMul(c->b, emit_pack_panels(c, p), emit_red_total(c, p), "");
  value bytes = LLVMBuildNSWMul(c->b, rows, const_i64(c, panel_row_bytes(p)), "");
  return LLVMBuildSelect(c->b, emit_pack_condition(c, p), bytes, const_i64(c, 0), "");
}
/* Panels of one chunk. */
static value emit_chunk(struct codegen *c, const struct phase *p) {
  if (p->pack.packs_both)
    return const_i64(c, BLOCK_CHUNK);
  value depth = LLVMBuildNSWMul(c->b, emit_red_total(c, p), const_i64(c, panel_row_bytes(p)), "");
  value fit = LLVMBuildUDiv(c->b, const_i64(c, CHUNK_BYTES), LLVMBuildNSWAdd(c->b, depth, const_i64(c, 1), ""), "");
  fit = call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){fit, const_i64(c, 1)}, 2);
  return call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){fit, const_i64(c, 16)}, 2);
}
static value emit_row_blocks(struct codegen *c, const struct phase *p) {
  return divide_up(c, emit_loop_extent(c, p, p->loop_count - 2), const_i64(c, (int64_t)ROW_GROUPS * p->pack.copies));
}
value emit_packed_elements(struct codegen *c, const struct phase *p) {
  value total = LLVMBuildNSWMul(c->b, emit_row_blocks(c, p), divide_up(c, emit_panels(c, p), emit_chunk(c, p)), "");
  for (int i = 0; i < p->loop_count - 2; i++)
    total = LLVMBuildNSWMul(c->b, total, emit_loop_extent(c, p, i), "");
  return total;
}

/* ---- panels ---- */

/* Where the panel of the lanes at hand begins: by the loops that the packed operand depends on. */
static value panel_base(struct codegen *c, const struct phase *p, value panel) {
  value number = NULL;
  for (int i = 0; i < p->pack.outer_count; i++) {
    value index = c->locals[p->chain[p->loops[p->pack.outer[i]].last]->local].at[0];
    value extent = emit_loop_extent(c, p, p->pack.outer[i]);
    number = number ? LLVMBuildNSWAdd(c->b, LLVMBuildNSWMul(c->b, number, extent, ""), index, "") : index;
  }
  number = number ? LLVMBuildNSWAdd(c->b, LLVMBuildNSWMul(c->b, number, emit_panels(c, p), ""), panel, "") : panel;
  value offset = LLVMBuildNSWMul(c->b, LLVMBuildNSWMul(c->b, number, emit_red_total(c, p), ""), const_i64(c, panel_row_bytes(p)), "");
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

/* lanes x i1: those before `left` */
static value mask_before(struct codegen *c, value left, uint32_t lanes) {
  value steps[1024];
  for (uint32_t i = 0; i < lanes; i++)
    steps[i] = LLVMConstInt(c->m->i32, i, false);
  left = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){left, const_i64(c, lanes)}, 2);
  value count = splat(c, LLVMBuildTrunc(c->b, left, c->m->i32, ""), lanes);
  return LLVMBuildICmp(c->b, LLVMIntULT, LLVMConstVector(steps, lanes), count, "");
}
static value panel_mask(struct codegen *c, const struct phase *p, value base) {
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

/* v[i][j] becomes v[j][i]: a step for each bit of the numbers. */
static void transpose(struct codegen *c, value *v, uint32_t n) {
  value low[COPIES_MAX], high[COPIES_MAX];
  for (uint32_t bit = 1; bit < n; bit *= 2) {
    for (uint32_t e = 0; e < n; e++) {
      low[e] = LLVMConstInt(c->m->i32, e & bit ? n + e - bit : e, false);
      high[e] = LLVMConstInt(c->m->i32, e & bit ? n + e : e + bit, false);
    }
    for (uint32_t i = 0; i < n; i++) {
      if (i & bit)
        continue;
      value a = v[i], b = v[i + bit];
      v[i] = LLVMBuildShuffleVector(c->b, a, b, LLVMConstVector(low, n), "");
      v[i + bit] = LLVMBuildShuffleVector(c->b, a, b, LLVMConstVector(high, n), "");
    }
  }
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
  transpose(c, v, n);
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
  value total = emit_pack_panels(c, p), grain = emit_pack_grain(c, p), panels = emit_panels(c, p);
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
  value total = emit_red_total(c, p), end = call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){total, one}, 2);
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
  value blocks = emit_row_blocks(c, p), panels = emit_panels(c, p), chunk = emit_chunk(c, p);
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
