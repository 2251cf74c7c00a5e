/* codegen_phase.c: the tiles of a kernel.
 *
 * A par loop at the top, with the par loops that are all of its body, is a chain. Neighbours in it that index every buffer
 * together become one loop; the loop that is best vectorised is run innermost. The iterations, numbered in row-major order,
 * are dealt to tiles in equal ranges, sized by a cost estimate so that a tile is worth a thread's while and a small kernel
 * is one tile. A range is run row by row.
 *
 * Where a vectorised loop reduces (contractions, windows), iterations of a second loop of the chain are run together
 * ("copies"), so that what they load alike is loaded once. Then a range counts blocks of copies x a few vectors. */
#include <string.h>

#include "targets/cpu/codegen.h"

/* ---- finding phases ---- */

static bool uses_chain_local(struct codegen *c, expr_id e, const struct phase *p) {
  for (int i = 0; i < p->chain_count; i++)
    if (expr_uses_local(c, e, p->chain[i]->local))
      return true;
  return false;
}

static bool is_par(const struct stmt *s) { return s && s->kind == STMT_FOR && s->loop == LOOP_PAR; }

/* Whether e uses locals i and j only as neighbouring indices [.. i, j ..] of buffers whose second dimension is j's extent. */
struct merge_test {
  struct codegen *c;
  const struct kernel *k;
  uint8_t *seen; /* by expression: it does */
  uint32_t outer, inner;
  expr_id extent; /* of inner */
};
static bool index_merges(const struct merge_test *t, const struct kernel_buffer *b, const expr_id *index);

static bool expr_merges(const struct merge_test *t, expr_id e) {
  const struct expr *x = expr_get(t->k, e);
  if (t->seen[e] || (!expr_uses_local(t->c, e, t->outer) && !expr_uses_local(t->c, e, t->inner)))
    return true;
  t->seen[e] = 1; /* where it is not so, nothing is asked any more */
  if (x->op == SCALAR_LOCAL)
    return x->imm != t->outer && x->imm != t->inner;
  if (x->op == SCALAR_LOAD)
    return index_merges(t, &t->k->buffers.items[x->imm], &t->k->operands.items[x->first]);
  for (int i = 0; i < x->count; i++)
    if (!expr_merges(t, expr_operand(t->k, e, i)))
      return false;
  return true;
}
static bool dim_is_extent(const struct kernel *k, kernel_dim dim, expr_id extent) {
  const struct expr *x = expr_get(k, extent);
  return DIM_IS_SIZE(dim) ? x->op == SCALAR_SIZE && x->imm == SIZE_OF_DIM(dim) : x->op == SCALAR_CONST && x->imm == dim;
}
static bool index_merges(const struct merge_test *t, const struct kernel_buffer *b, const expr_id *index) {
  for (int d = 0; d < b->rank; d++) {
    if (expr_is_local(t->k, index[d], t->outer) && d + 1 < b->rank && expr_is_local(t->k, index[d + 1], t->inner) &&
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
    for (int i = 0; s->kind == STMT_CHECK && i < STATUS_SHOWN; i++)
      if (s->shown[i] != NO_EXPR && !expr_merges(t, s->shown[i]))
        return false;
    if (!block_merges(t, s->body) || !block_merges(t, s->otherwise))
      return false;
  }
  return true;
}

static void find_chain(struct codegen *c, const struct stmt *s, struct phase *p) {
  for (; is_par(s) && p->chain_count < CHAIN_MAX; s = s->body) {
    if (uses_chain_local(c, s->value, p) || expr_loads(c, s->value))
      break;
    p->chain[p->chain_count++] = s;
    p->inside = s->body;
    if (!is_par(s->body) || s->body->next)
      break;
  }
}

/* Neighbours become one loop where every buffer allows it. */
static void merge_chain(struct codegen *c, struct phase *p) {
  p->loop_count = 0;
  for (int i = 0; i < p->chain_count; i++) {
    struct merge_test t = {c, c->k, arena_alloc(&c->m->arena, c->k->exprs.count), 0, p->chain[i]->local, p->chain[i]->value};
    bool merges = false;
    if (i > 0) {
      t.outer = p->chain[i - 1]->local;
      merges = block_merges(&t, p->inside);
    }
    if (merges)
      p->loops[p->loop_count - 1].last = i;
    else
      p->loops[p->loop_count++] = (struct phase_loop){i, i};
  }
}

static uint32_t local_of(const struct phase *p, int loop) { return p->chain[p->loops[loop].last]->local; }
static double trips_of(const struct kernel *k, const struct phase *p, int loop) {
  double trips = 1;
  for (int i = p->loops[loop].first; i <= p->loops[loop].last; i++)
    trips *= loop_trips(k, p->chain[i]->value);
  return trips;
}
static void move_loop(struct phase *p, int from, int to) {
  struct phase_loop moved = p->loops[from];
  for (int i = from; i < to; i++)
    p->loops[i] = p->loops[i + 1];
  p->loops[to] = moved;
}

/* The loop of the chain that makes the best lanes goes innermost. */
static void choose_lane_loop(struct codegen *c, struct phase *p) {
  double all = 1, best;
  int chosen = -1;
  for (int i = 0; i < p->loop_count; i++)
    all *= trips_of(c->k, p, i);
  best = all * scalar_block_cost(c, p->inside);
  for (int i = p->loop_count - 1; i >= 0; i--) {
    struct lane_plan plan;
    double trips = trips_of(c->k, p, i);
    if (plan_lanes(c, local_of(p, i), true, trips, p->inside, &plan) && plan.cost * all / trips < best) {
      best = plan.cost * all / trips;
      chosen = i;
      p->plan = plan;
    }
  }
  p->has_lanes = chosen >= 0;
  if (p->has_lanes)
    move_loop(p, chosen, p->loop_count - 1);
}

/* For copies: loads that a loop's iterations share, loads that differ; and nothing that would part their ways. */
struct sharing {
  struct codegen *c;
  const struct kernel *k;
  uint32_t lane, other;
  int shared, own;
};
static void count_loads(struct sharing *s, expr_id e, uint8_t *seen) {
  const struct expr *x = expr_get(s->k, e);
  if (e == NO_EXPR || seen[e])
    return;
  seen[e] = 1;
  bool uses_other = x->op == SCALAR_LOAD && expr_uses_local(s->c, e, s->other);
  if (x->op == SCALAR_LOAD && !uses_other && expr_uses_local(s->c, e, s->lane))
    s->shared++;
  if (uses_other)
    s->own++;
  for (int i = 0; i < x->count; i++)
    count_loads(s, expr_operand(s->k, e, i), seen);
}
static bool can_share(struct sharing *s, const struct stmt *t, bool inside_red, uint8_t *seen) {
  for (; t; t = t->next) {
    bool loops = t->kind == STMT_FOR;
    if (t->kind == STMT_IF || t->kind == STMT_WHILE || t->kind == STMT_CHECK || (loops && expr_uses_local(s->c, t->value, s->other)))
      return false;
    if (inside_red)
      count_loads(s, t->value, seen);
    if (!can_share(s, t->body, inside_red || (loops && t->loop == LOOP_RED), seen))
      return false;
  }
  return true;
}
static uint32_t choose_copies(double trips, bool known, uint32_t most) {
  if (known && trips <= most)
    return (uint32_t)trips;
  for (uint32_t n = most; known && n >= 4; n--)
    if ((uint64_t)trips % n == 0)
      return n;
  return most;
}
/* A transposition: lanes are gathered along a loop whose neighbours lie side by side in another: run together, they use up
 * the cache lines that the gathers fetch. */
static bool transposes(struct codegen *c, uint32_t lane, uint32_t other) {
  const struct kernel *k = c->k;
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *x = expr_get(k, e);
    int64_t step;
    if (x->op != SCALAR_LOAD || x->count < 2)
      continue;
    expr_id last = expr_operand(k, e, x->count - 1);
    if (expr_coefficient(c, last, other, &step) && step == 1 && expr_uses_local(c, e, lane) && !expr_uses_local(c, last, lane))
      return true;
  }
  return false;
}

static void choose_copy_loop(struct codegen *c, struct phase *p) {
  p->copies = 1;
  if (!p->has_lanes || p->plan.has_check)
    return;
  for (int i = p->loop_count - 2; i >= 0 && !p->plan.has_red; i--) {
    uint8_t *seen = arena_alloc(&c->m->arena, c->k->exprs.count);
    struct sharing s = {c, c->k, local_of(p, p->loop_count - 1), local_of(p, i), 0, 0};
    if (!transposes(c, s.lane, s.other) || trips_of(c->k, p, i) < 4 || !can_share(&s, p->inside, false, seen))
      continue;
    if (p->plan.lanes > c->m->cpu->vector_bytes / 4)
      p->plan.lanes = c->m->cpu->vector_bytes / 4;
    p->copies = trips_of(c->k, p, i) < COPIES_MAX ? (uint32_t)trips_of(c->k, p, i) : COPIES_MAX;
    move_loop(p, i, p->loop_count - 2);
    return;
  }
  if (!p->plan.has_red)
    return;
  uint32_t native = c->m->cpu->vector_bytes / 4;
  for (int i = p->loop_count - 2; i >= 0; i--) {
    uint8_t *seen = arena_alloc(&c->m->arena, c->k->exprs.count);
    struct sharing s = {c, c->k, local_of(p, p->loop_count - 1), local_of(p, i), 0, 0};
    if (!can_share(&s, p->inside, false, seen) || s.shared == 0 || trips_of(c->k, p, i) < 2)
      continue;
    bool known = true;
    for (int j = p->loops[i].first; j <= p->loops[i].last; j++)
      known = known && expr_is_const(c->k, p->chain[j]->value, NULL);
    if (p->plan.lanes > 2 * native)
      p->plan.lanes = 2 * native;
    p->copies = choose_copies(trips_of(c->k, p, i), known, c->m->cpu->vector_bytes == 64 ? 8 : 6);
    move_loop(p, i, p->loop_count - 2);
    return;
  }
}

static void plan_phase(struct codegen *c, const struct stmt *s, struct phase *p) {
  memset(p, 0, sizeof *p);
  p->body = s;
  p->copies = 1;
  find_chain(c, s, p);
  p->is_serial = p->chain_count == 0;
  if (p->is_serial)
    return;
  merge_chain(c, p);
  choose_lane_loop(c, p);
  choose_copy_loop(c, p);
}

/* A nest with marks: its outermost loops of tasks are the chain. */
static void plan_scheduled(struct codegen *c, const struct stmt *s, struct phase *p) {
  memset(p, 0, sizeof *p);
  p->body = s;
  p->is_scheduled = true;
  p->copies = 1;
  for (; s && s->kind == STMT_FOR && s->run == RUN_TASKS && p->chain_count < CHAIN_MAX; s = s->body) {
    if (uses_chain_local(c, s->value, p) || expr_loads(c, s->value))
      break;
    p->chain[p->chain_count++] = s;
    p->inside = s->body;
    if (!s->body || s->body->next)
      break;
  }
}

/* The phases of a kernel, or of a branch for some sizes. */
struct phase_list {
  struct phase *items; /* PHASES_MAX */
  int count;
  struct phase_condition conditions[CONDITIONS_MAX];
  int condition_count;
};
static bool add_phase(struct codegen *c, const struct stmt *s, struct phase_list *list) {
  if (list->count == PHASES_MAX)
    return false;
  struct phase *p = &list->items[list->count++];
  if (stmt_is_scheduled(s))
    plan_scheduled(c, s, p);
  else if (is_par(s))
    plan_phase(c, s, p);
  else
    return false;
  p->condition_count = list->condition_count;
  memcpy(p->conditions, list->conditions, sizeof p->conditions);
  return !p->is_serial;
}
/* false: these are no phases. */
static bool add_phases(struct codegen *c, const struct stmt *s, struct phase_list *list) {
  for (; s; s = s->next) {
    if (s->kind == STMT_BUFFER && c->k->buffers.items[s->buffer].space == SPACE_TASK)
      continue;
    if (s->kind != STMT_IF) {
      if (s->kind != STMT_FOR || !add_phase(c, s, list))
        return false;
      continue;
    }
    if (!expr_of_sizes(c, s->value) || list->condition_count == CONDITIONS_MAX)
      return false;
    struct phase_condition *condition = &list->conditions[list->condition_count++];
    *condition = (struct phase_condition){s->value, false};
    if (!add_phases(c, s->body, list))
      return false;
    condition->inverted = true;
    if (!add_phases(c, s->otherwise, list))
      return false;
    list->condition_count--;
  }
  return true;
}

int kernel_phases(struct codegen *c, struct phase *out) {
  struct phase_list list = {.items = out};
  if (c->k->body && add_phases(c, c->k->body, &list))
    return list.count;
  memset(out, 0, sizeof *out);
  out[0].body = c->k->body;
  out[0].is_serial = true;
  out[0].copies = 1;
  return 1;
}

value emit_phase_condition(struct codegen *c, const struct phase *p) {
  value holds = LLVMConstInt(c->m->i1, 1, false);
  for (int i = 0; i < p->condition_count; i++) {
    value v = emit_expr(c, p->conditions[i].value);
    holds = LLVMBuildAnd(c->b, holds, p->conditions[i].inverted ? LLVMBuildNot(c->b, v, "") : v, "");
  }
  return holds;
}

/* ---- running a range ---- */

void set_phase_loop(struct codegen *c, const struct phase *p, int loop, value index) {
  for (int i = p->loops[loop].first; i < p->loops[loop].last; i++)
    c->locals[p->chain[i]->local].at[0] = const_i64(c, 0);
  c->locals[local_of(p, loop)].at[0] = index;
}
/* Whether all ranges of the last loop are of whole vectors, as are tiles: then there is no code for what is left of one. */
static bool rows_are_whole(struct codegen *c, const struct phase *p) {
  int64_t n, width = 1;
  for (int i = p->loops[p->loop_count - 1].first; i <= p->loops[p->loop_count - 1].last; i++) {
    if (!expr_is_const(c->k, p->chain[i]->value, &n))
      return false;
    width = n > 0 && width % p->plan.lanes != 0 ? width * n : width;
  }
  return width % p->plan.lanes == 0 && phase_has_whole_tiles(p);
}
static void emit_row(struct codegen *c, const struct phase *p, value begin, value end) {
  int last = p->loop_count - 1;
  set_phase_loop(c, p, last, begin);
  if (p->has_lanes) {
    emit_lane_loop(c, local_of(p, last), begin, end, p->inside, &p->plan, rows_are_whole(c, p));
    return;
  }
  struct counted_loop loop = loop_begin(c, begin, end, const_i64(c, 1));
  set_phase_loop(c, p, last, loop.index);
  emit_block(c, p->inside);
  loop_end(c, &loop);
}

/* A row of each of the copies; at the end of their loop the few that are left run one by one. */
static void emit_block_of_copies(struct codegen *c, const struct phase *p, value unit, value begin, value end) {
  int loop = p->loop_count - 2;
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
  for (int i = 1; i < p->loop_count; i++)
    for (int j = p->loops[i].first; j <= p->loops[i].last; j++)
      if (!expr_is_const(c->k, p->chain[j]->value, NULL))
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
  int count = p->loop_count - 1;
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
  int count = p->loop_count;
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
  (p->is_scheduled ? emit_scheduled_tiles : emit_plain_tiles)(c, p, begin, end);
}
