/* codegen_phase.c: the tiles of a kernel.
 *
 * A par loop at the top, with the par loops that are all of its body, is a chain: its iterations, numbered in row-major
 * order, are dealt to tiles in equal ranges, sized by a cost estimate so that a tile is worth a thread's while and a
 * small kernel is one tile. A range is run row by row: the innermost loop of the chain stays a plain counted loop. */
#include <string.h>

#include "targets/cpu/codegen.h"

#define TILE_NS 25000.0    /* a tile should take about this long */
#define SINGLE_NS 40000.0  /* and a kernel below this is not divided */
#define UNKNOWN_TRIPS 8.0  /* for loops whose extent is only known inside */

/* ---- finding phases ---- */

static bool uses_chain_local(const struct kernel *k, expr_id e, const struct phase *p) {
  for (int i = 0; i < p->chain_count; i++)
    if (expr_uses_local(k, e, p->chain[i]->local))
      return true;
  return false;
}

static bool expr_loads(const struct kernel *k, expr_id e) {
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_LOAD)
    return true;
  for (int i = 0; i < x->count; i++)
    if (expr_loads(k, expr_operand(k, e, i)))
      return true;
  return false;
}

static bool is_par(const struct stmt *s) { return s && s->kind == STMT_FOR && s->loop == LOOP_PAR; }

/* Whether e uses locals i and j only as neighbouring indices [.. i, j ..] of buffers whose second dimension is j's extent. */
struct merge_test {
  const struct kernel *k;
  uint32_t outer, inner;
  expr_id extent; /* of inner */
};
static bool index_merges(const struct merge_test *t, const struct kernel_buffer *b, const expr_id *index);

static bool expr_merges(const struct merge_test *t, expr_id e) {
  const struct expr *x = expr_get(t->k, e);
  if (x->op == SCALAR_LOCAL)
    return x->imm != t->outer && x->imm != t->inner;
  if (x->op == SCALAR_LOAD)
    return index_merges(t, &t->k->buffers.items[x->imm], &t->k->operands.items[x->first]);
  for (int i = 0; i < x->count; i++)
    if (!expr_merges(t, expr_operand(t->k, e, i)))
      return false;
  return true;
}
static bool is_local(const struct kernel *k, expr_id e, uint32_t local) {
  return expr_get(k, e)->op == SCALAR_LOCAL && expr_get(k, e)->imm == local;
}
static bool dim_is_extent(const struct kernel *k, kernel_dim dim, expr_id extent) {
  const struct expr *x = expr_get(k, extent);
  return DIM_IS_SIZE(dim) ? x->op == SCALAR_SIZE && x->imm == SIZE_OF_DIM(dim) : x->op == SCALAR_CONST && x->imm == dim;
}
static bool index_merges(const struct merge_test *t, const struct kernel_buffer *b, const expr_id *index) {
  for (int d = 0; d < b->rank; d++) {
    if (is_local(t->k, index[d], t->outer) && d + 1 < b->rank && is_local(t->k, index[d + 1], t->inner) &&
        dim_is_extent(t->k, b->dims[d + 1], t->extent)) {
      d++;
      continue;
    }
    if (!expr_merges(t, index[d]))
      return false;
  }
  return true;
}
static bool block_merges(const struct merge_test *t, const struct stmt *s) {
  for (; s; s = s->next) {
    if (s->value != NO_EXPR && !expr_merges(t, s->value))
      return false;
    if (s->kind == STMT_STORE && !index_merges(t, &t->k->buffers.items[s->buffer], s->index))
      return false;
    for (int i = 0; s->kind == STMT_CHECK && i < 2; i++)
      if (s->shown[i] != NO_EXPR && !expr_merges(t, s->shown[i]))
        return false;
    if (!block_merges(t, s->body) || !block_merges(t, s->otherwise))
      return false;
  }
  return true;
}

static void find_chain(const struct kernel *k, const struct stmt *s, struct phase *p) {
  for (; is_par(s) && p->chain_count < CHAIN_MAX; s = s->body) {
    if (uses_chain_local(k, s->value, p) || expr_loads(k, s->value))
      break;
    p->chain[p->chain_count++] = s;
    p->inside = s->body;
    if (!is_par(s->body) || s->body->next)
      break;
  }
  for (int i = 0; i + 1 < p->chain_count; i++) {
    const struct stmt *inner = p->chain[i + 1];
    struct merge_test t = {k, p->chain[i]->local, inner->local, inner->value};
    p->merged[i] = block_merges(&t, p->inside);
  }
}

int kernel_phases(const struct kernel *k, struct phase *out) {
  int count = 0;
  for (const struct stmt *s = k->body; s; s = s->next) {
    if (!is_par(s) || count == PHASES_MAX) {
      memset(out, 0, sizeof *out);
      out[0].body = k->body;
      out[0].is_serial = true;
      return 1;
    }
    memset(&out[count], 0, sizeof *out);
    out[count].body = s;
    find_chain(k, s, &out[count]);
    out[count].is_serial = out[count].chain_count == 0;
    if (out[count++].is_serial)
      return memset(out, 0, sizeof *out), out[0].body = k->body, out[0].is_serial = true, 1;
  }
  if (count == 0) {
    memset(out, 0, sizeof *out);
    out[0].is_serial = true;
    count = 1;
  }
  return count;
}

/* ---- cost ---- */

static double scalar_ns(const struct expr *x) {
  switch (x->op) {
  case SCALAR_CONST: case SCALAR_SIZE: case SCALAR_LOCAL: return 0;
  case SCALAR_DIV: case SCALAR_SQRT: case SCALAR_REM: case SCALAR_FLOORDIV: case SCALAR_FLOORMOD: return 0.5;
  case SCALAR_EXP: case SCALAR_LOG: case SCALAR_TANH: case SCALAR_EXPM1: case SCALAR_LOG1P: case SCALAR_SIN: case SCALAR_COS:
  case SCALAR_ERF: return x->dtype == DTYPE_FLOAT ? 0.5 : 8;
  default: return x->op >= SCALAR_SQRT ? 10 : 0.05;
  }
}
static double expr_ns(const struct codegen *c, expr_id e, uint8_t *seen) {
  const struct expr *x = expr_get(c->k, e);
  if (e == NO_EXPR || seen[e])
    return 0;
  seen[e] = 1;
  double sum = scalar_ns(x);
  for (int i = 0; i < x->count; i++)
    sum += expr_ns(c, expr_operand(c->k, e, i), seen);
  return sum;
}
static bool expr_of_sizes(const struct kernel *k, expr_id e) {
  const struct expr *x = expr_get(k, e);
  if (x->op == SCALAR_LOCAL || x->op == SCALAR_LOAD)
    return false;
  for (int i = 0; i < x->count; i++)
    if (!expr_of_sizes(k, expr_operand(k, e, i)))
      return false;
  return true;
}
static value const_f64(struct codegen *c, double v) { return LLVMConstReal(c->m->f64, v); }

static value emit_block_cost(struct codegen *c, const struct stmt *s) {
  value sum = const_f64(c, 0);
  uint8_t *seen = arena_alloc(&c->m->arena, c->k->exprs.count);
  for (; s; s = s->next) {
    memset(seen, 0, c->k->exprs.count);
    double own = 0.05 + expr_ns(c, s->value, seen);
    for (int i = 0; i < s->index_count; i++)
      own += expr_ns(c, s->index[i], seen);
    value nested = LLVMBuildFAdd(c->b, emit_block_cost(c, s->body), emit_block_cost(c, s->otherwise), "");
    if (s->kind == STMT_FOR) {
      value trips = expr_of_sizes(c->k, s->value) ? LLVMBuildSIToFP(c->b, emit_expr(c, s->value), c->m->f64, "")
                                                  : const_f64(c, UNKNOWN_TRIPS);
      nested = LLVMBuildFMul(c->b, nested, trips, "");
    }
    sum = LLVMBuildFAdd(c->b, sum, LLVMBuildFAdd(c->b, const_f64(c, own), nested, ""), "");
  }
  return sum;
}

value emit_phase_elements(struct codegen *c, const struct phase *phase) {
  value total = const_i64(c, 1), zero = const_i64(c, 0);
  for (int i = 0; i < phase->chain_count; i++) {
    value extent = emit_expr(c, phase->chain[i]->value);
    extent = call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){extent, zero}, 2);
    total = LLVMBuildNSWMul(c->b, total, extent, "");
  }
  return total;
}
value emit_phase_cost(struct codegen *c, const struct phase *phase) {
  if (phase->is_serial)
    return emit_block_cost(c, phase->body);
  value elements = LLVMBuildSIToFP(c->b, emit_phase_elements(c, phase), c->m->f64, "");
  return LLVMBuildFMul(c->b, elements, emit_block_cost(c, phase->inside), "");
}
/* TILE_NS worth of iterations, in whole cache lines; all of them when that is less than two tiles. */
value emit_phase_grain(struct codegen *c, const struct phase *phase) {
  value elements = emit_phase_elements(c, phase), one = emit_block_cost(c, phase->inside);
  value all = LLVMBuildFMul(c->b, one, LLVMBuildSIToFP(c->b, elements, c->m->f64, ""), "");
  value ideal = LLVMBuildFPToSI(c->b, LLVMBuildFDiv(c->b, const_f64(c, TILE_NS), one, ""), c->m->i64, "");
  value down = LLVMBuildAnd(c->b, ideal, const_i64(c, ~INT64_C(63)), "");
  value grain = LLVMBuildSelect(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, ideal, const_i64(c, 64), ""), ideal, down, "");
  value small = LLVMBuildFCmp(c->b, LLVMRealOLT, all, const_f64(c, SINGLE_NS), "");
  grain = LLVMBuildSelect(c->b, small, elements, grain, "");
  return call_intrinsic(c, "llvm.smax", c->m->i64, (value[]){grain, const_i64(c, 1)}, 2);
}

/* ---- running a range ---- */

/* The loops that are left once merged ones have become one. */
struct merged_loop {
  uint32_t local;
  value extent;
};
static int merge_chain(struct codegen *c, const struct phase *p, struct merged_loop *out) {
  int count = 0;
  value extent = NULL;
  for (int i = 0; i < p->chain_count; i++) {
    value own = emit_expr(c, p->chain[i]->value);
    extent = extent ? LLVMBuildNSWMul(c->b, extent, own, "") : own;
    if (p->merged[i]) {
      c->locals[p->chain[i]->local].at[0] = const_i64(c, 0);
      continue;
    }
    out[count++] = (struct merged_loop){p->chain[i]->local, extent};
    extent = NULL;
  }
  return count;
}

/* rows: while (at < last) { the row's indices; the row from column to its end or the range's; at += what was done } */
void emit_phase_tiles(struct codegen *c, const struct phase *phase, value begin, value end) {
  struct merged_loop loops[CHAIN_MAX];
  value elements = emit_phase_elements(c, phase), grain = emit_phase_grain(c, phase);
  value first = LLVMBuildNSWMul(c->b, begin, grain, "");
  value last = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){LLVMBuildNSWMul(c->b, end, grain, ""), elements}, 2);
  int count = merge_chain(c, phase, loops);
  if (count == 1) {
    struct counted_loop loop = loop_begin(c, first, last, const_i64(c, 1));
    c->locals[loops[0].local].at[0] = loop.index;
    emit_block(c, phase->inside);
    loop_end(c, &loop);
    return;
  }
  value width = loops[count - 1].extent;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(c->b), rows = new_block(c, "rows"), done = new_block(c, "rows_done");
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, first, last, ""), rows, done);
  LLVMPositionBuilderAtEnd(c->b, rows);
  value at = LLVMBuildPhi(c->b, c->m->i64, "at");
  LLVMAddIncoming(at, &first, &before, 1);
  value row = LLVMBuildUDiv(c->b, at, width, ""), column = LLVMBuildNSWSub(c->b, at, LLVMBuildNSWMul(c->b, row, width, ""), "");
  value left = LLVMBuildNSWSub(c->b, last, at, ""), rest = LLVMBuildNSWSub(c->b, width, column, "");
  value take = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){left, rest}, 2);
  for (int i = count - 2; i >= 0; i--) {
    value index = i ? LLVMBuildURem(c->b, row, loops[i].extent, "") : row;
    row = i ? LLVMBuildUDiv(c->b, row, loops[i].extent, "") : row;
    c->locals[loops[i].local].at[0] = index;
  }
  struct counted_loop loop = loop_begin(c, column, LLVMBuildNSWAdd(c->b, column, take, ""), const_i64(c, 1));
  c->locals[loops[count - 1].local].at[0] = loop.index;
  emit_block(c, phase->inside);
  loop_end(c, &loop);
  value next = LLVMBuildNSWAdd(c->b, at, take, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(c->b);
  LLVMAddIncoming(at, &next, &latch, 1);
  LLVMBuildCondBr(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, next, last, ""), rows, done);
  LLVMPositionBuilderAtEnd(c->b, done);
}
