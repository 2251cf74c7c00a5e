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
#include "ir/kernel/contraction.h"
#include "targets/cpu/codegen_pack.h"

#define CHUNK_BYTES (1 << 19) /* of panels, at most: */
#define CHUNK_SHARE 2         /* of L2, one over this */
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

value emit_pack_terms(struct codegen *c, const struct phase *p) {
  value total = NULL;
  for (int i = 0; i < p->pack.red_count; i++) {
    value extent = emit_expr(c, p->pack.red[i]->value);
    extent = call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){extent, const_i64(c, 0)}, 2);
    total = total ? LLVMBuildNSWMul(c->b, total, extent, "") : extent;
  }
  return total;
}
value emit_divided_up(struct codegen *c, value n, value by) {
  return LLVMBuildUDiv(c->b, LLVMBuildNSWAdd(c->b, n, LLVMBuildNSWSub(c->b, by, const_i64(c, 1), ""), ""), by, "");
}
value emit_panel_count(struct codegen *c, const struct phase *p) {
  return emit_divided_up(c, emit_loop_extent(c, p, p->loop_count - 1), const_i64(c, p->pack.lanes));
}
value emit_pack_panels(struct codegen *c, const struct phase *p) {
  value total = emit_panel_count(c, p);
  for (int i = 0; i < p->pack.outer_count; i++)
    total = LLVMBuildNSWMul(c->b, total, emit_loop_extent(c, p, p->pack.outer[i]), "");
  return total;
}
int64_t panel_row_bytes(const struct phase *p) { return (int64_t)dtype_size(p->pack.dtype) * p->pack.lanes; }

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
  value rows = LLVMBuildNSWMul(c->b, emit_pack_panels(c, p), emit_pack_terms(c, p), "");
  value bytes = LLVMBuildNSWMul(c->b, rows, const_i64(c, panel_row_bytes(p)), "");
  return LLVMBuildSelect(c->b, emit_pack_condition(c, p), bytes, const_i64(c, 0), "");
}
/* Panels of one chunk. */
value emit_panel_chunk(struct codegen *c, const struct phase *p) {
  if (p->pack.packs_both)
    return const_i64(c, BLOCK_CHUNK);
  value depth = LLVMBuildNSWMul(c->b, emit_pack_terms(c, p), const_i64(c, panel_row_bytes(p)), "");
  int64_t bytes = c->m->cpu->bytes[LEVEL_L2] / CHUNK_SHARE;
  value fit =
    LLVMBuildUDiv(c->b, const_i64(c, bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES), LLVMBuildNSWAdd(c->b, depth, const_i64(c, 1), ""), "");
  fit = call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){fit, const_i64(c, 1)}, 2);
  return call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){fit, const_i64(c, 16)}, 2);
}
value emit_row_blocks(struct codegen *c, const struct phase *p) {
  return emit_divided_up(c, emit_loop_extent(c, p, p->loop_count - 2), const_i64(c, (int64_t)ROW_GROUPS * p->pack.copies));
}
value emit_packed_elements(struct codegen *c, const struct phase *p) {
  value total = LLVMBuildNSWMul(c->b, emit_row_blocks(c, p), emit_divided_up(c, emit_panel_count(c, p), emit_panel_chunk(c, p)), "");
  for (int i = 0; i < p->loop_count - 2; i++)
    total = LLVMBuildNSWMul(c->b, total, emit_loop_extent(c, p, i), "");
  return total;
}
