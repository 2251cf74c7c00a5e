/* codegen_square.c: a square of elements that lie along one loop where they are read and along the other where they go: rows are loaded as
 * vectors, transposed in registers, and what is computed of them is stored as vectors. Otherwise each element would be stored by itself. */
#include "targets/cpu/codegen.h"

/* n vectors of n lanes, n a power of two: v[i][j] becomes v[j][i]. A step for each bit of the numbers. */
static void emit_transpose(struct codegen *c, value *v, uint32_t n) {
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

static bool moves_by_one(struct codegen *c, expr_id e, uint32_t local) {
  int64_t step;
  return index_coefficient(&c->uses, e, local, &step) && step == 1;
}
/* Whether the last of these indices, and it alone, moves with `along`: by one; and not with `across`. */
static bool lies_along(struct codegen *c, const expr_id *index, int count, uint32_t along, uint32_t across) {
  for (int i = 0; i + 1 < count; i++)
    if (expr_uses_local(c, index[i], along))
      return false;
  return count > 0 && moves_by_one(c, index[count - 1], along) && !expr_uses_local(c, index[count - 1], across);
}

struct turned_loads {
  expr_id of[SQUARE_LOADS];
  int count;
  uint8_t *seen; /* by expression */
};
/* Whether what e loads for each of the rows lies along them, or along the lanes, to be transposed. */
static bool find_turned(struct codegen *c, expr_id e, uint32_t lanes, uint32_t rows, struct turned_loads *out) {
  const struct expr *x = expr_get(c->k, e);
  if (out->seen[e] || !expr_uses_local(c, e, rows))
    return true;
  out->seen[e] = 1;
  if (x->op != SCALAR_LOAD) {
    for (int i = 0; i < x->count; i++)
      if (!find_turned(c, expr_operand(c->k, e, i), lanes, rows, out))
        return false;
    return true;
  }
  const expr_id *index = &c->k->operands.items[x->first];
  enum dtype dtype = c->k->buffers.items[x->imm].dtype;
  if (is_register_access(c, (uint32_t)x->imm) || dtype_is_complex(dtype))
    return false;
  if (!lies_along(c, index, x->count, lanes, rows) || !dtype_is_word(dtype))
    return lies_along(c, index, x->count, rows, lanes);
  if (out->count == SQUARE_LOADS)
    return false;
  out->of[out->count++] = e;
  return true;
}
/* Whether the loop holds one loop of lanes, and as many turns of each make a square that vectors hold, of elements of so many bytes. */
static bool has_sides(struct codegen *c, const struct stmt *rows, size_t bytes) {
  const struct stmt *lanes = rows->body;
  int64_t count;
  bool holds = lanes && !lanes->next && lanes->kind == STMT_FOR && lanes->run == RUN_LANES && c->lanes == 1 && c->copies == 1;
  return holds && expr_is_const(c->k, rows->value, &count) && count == lanes->width && count <= COPIES_MAX && (count & (count - 1)) == 0 &&
         count * (int64_t)bytes <= c->m->cpu->vector_bytes;
}
/* What a block does is to store to memory; NULL: it does something else. */
static const struct stmt *only_store(const struct codegen *c, const struct stmt *block) {
  return block && !block->next && block->kind == STMT_STORE && !is_register_access(c, block->buffer) ? block : NULL;
}
static bool find_square(struct codegen *c, const struct stmt *rows, struct turned_loads *out) {
  const struct stmt *lanes = rows->body, *store = lanes ? only_store(c, lanes->body) : NULL;
  if (!store)
    return false;
  enum dtype dtype = c->k->buffers.items[store->buffer].dtype;
  *out = (struct turned_loads){.seen = arena_alloc(&c->m->arena, c->k->exprs.count)};
  return dtype_is_word(dtype) && has_sides(c, rows, dtype_size(dtype)) &&
         lies_along(c, store->index, store->index_count, rows->local, lanes->local) &&
         find_turned(c, store->value, lanes->local, rows->local, out) && out->count > 0;
}

/* ---- of pairs ---- */

/* Whether the load is of pairs that lie side by side along the lanes: its last index alone moves with these, and with a pair's turns. */
static bool is_load_of_pairs(struct codegen *c, const struct expr *load, uint32_t lanes, uint32_t pair) {
  const expr_id *index = &c->k->operands.items[load->first];
  int64_t step;
  for (int d = 0; d + 1 < load->count; d++)
    if (expr_uses_local(c, index[d], lanes) || expr_uses_local(c, index[d], pair))
      return false;
  return load->count > 0 && !is_register_access(c, (uint32_t)load->imm) && moves_by_one(c, index[load->count - 1], pair) &&
         index_coefficient(&c->uses, index[load->count - 1], lanes, &step) && step == 2;
}
/* Whether some load of e is. */
static bool loads_pairs(struct codegen *c, expr_id e, uint32_t lanes, uint32_t pair) {
  const struct expr *x = expr_get(c->k, e);
  bool found = x->op == SCALAR_LOAD && is_load_of_pairs(c, x, lanes, pair);
  for (int i = 0; i < x->count && !found && x->op != SCALAR_LOAD; i++)
    found = loads_pairs(c, expr_operand(c->k, e, i), lanes, pair);
  return found;
}
/* The elements of a pair lie side by side where they go, too, and pairs along the rows. */
static bool stores_pairs(struct codegen *c, const struct stmt *store, uint32_t rows, uint32_t lanes, uint32_t pair) {
  const struct kernel_buffer *to = &c->k->buffers.items[store->buffer];
  int last = store->index_count - 1;
  for (int d = 0; d < last; d++)
    if (expr_uses_local(c, store->index[d], pair))
      return false;
  return last > 0 && dtype_size(to->dtype) == 2 && to->dims[last] == 2 && expr_is_local(c->k, store->index[last], pair) &&
         lies_along(c, store->index, last, rows, lanes);
}
/* A square of pairs of elements of two bytes each. */
static bool is_square_of_pairs(struct codegen *c, const struct stmt *rows) {
  if (!has_sides(c, rows, 4))
    return false;
  const struct stmt *lanes = rows->body, *pair = lanes->body;
  int64_t turns;
  if (!pair || pair->next || pair->kind != STMT_FOR || !expr_is_const(c->k, pair->value, &turns) || turns != 2)
    return false;
  const struct stmt *store = only_store(c, pair->body);
  return store && stores_pairs(c, store, rows->local, lanes->local, pair->local) && loads_pairs(c, store->value, lanes->local, pair->local);
}

/* One loop as `n` lanes, the other at one of its turns. */
static void enter_row(struct codegen *c, uint32_t along, uint32_t n, uint32_t other, uint32_t turn) {
  c->locals[other].at[0] = const_i64(c, turn);
  c->generation++;
  lanes_enter(c, along, n, NULL);
  c->lane_base = const_i64(c, 0);
}
/* What is stored of a row of the square, as words; pairs that are copied as they are are loaded as such. */
static value emit_row_of_pairs(struct codegen *c, const struct stmt *pair, const struct stmt *store) {
  value v[2], at[2 * COPIES_MAX];
  const struct expr *x = expr_get(c->k, store->value);
  LLVMTypeRef words = LLVMVectorType(c->m->i32, c->lanes);
  if (x->op == SCALAR_LOAD) {
    c->locals[pair->local].at[0] = const_i64(c, 0);
    return emit_word_load(c, (uint32_t)x->imm, &c->k->operands.items[x->first], false);
  }
  for (uint32_t turn = 0; turn < 2; turn++) {
    c->locals[pair->local].at[0] = const_i64(c, turn);
    c->generation++;
    v[turn] = splat(c, emit_expr(c, store->value), c->lanes);
  }
  for (uint32_t i = 0; i < 2 * c->lanes; i++)
    at[i] = LLVMConstInt(c->m->i32, i / 2 + i % 2 * c->lanes, false);
  return LLVMBuildBitCast(c->b, LLVMBuildShuffleVector(c->b, v[0], v[1], LLVMConstVector(at, 2 * c->lanes), ""), words, "");
}
static void emit_square_of_pairs(struct codegen *c, const struct stmt *rows) {
  const struct stmt *lanes = rows->body, *pair = lanes->body, *store = pair->body;
  uint32_t n = (uint32_t)lanes->width;
  value v[COPIES_MAX];
  for (uint32_t i = 0; i < n; i++) {
    enter_row(c, lanes->local, n, rows->local, i);
    v[i] = emit_row_of_pairs(c, pair, store);
    lanes_leave(c, lanes->local, NULL);
  }
  emit_transpose(c, v, n);
  for (uint32_t i = 0; i < n; i++) {
    enter_row(c, rows->local, n, lanes->local, i);
    c->locals[pair->local].at[0] = const_i64(c, 0);
    emit_word_store(c, store, v[i]);
    lanes_leave(c, rows->local, NULL);
  }
}
bool is_square_copy(struct codegen *c, const struct stmt *rows) {
  struct turned_loads turned;
  return find_square(c, rows, &turned) || is_square_of_pairs(c, rows);
}
void emit_square_copy(struct codegen *c, const struct stmt *rows) {
  if (is_square_of_pairs(c, rows)) {
    emit_square_of_pairs(c, rows);
    return;
  }
  const struct stmt *lanes = rows->body, *store = lanes->body;
  uint32_t n = (uint32_t)lanes->width;
  struct turned_loads turned;
  value v[SQUARE_LOADS][COPIES_MAX];
  find_square(c, rows, &turned);
  for (int e = 0; e < turned.count; e++) {
    for (uint32_t i = 0; i < n; i++) {
      enter_row(c, lanes->local, n, rows->local, i);
      v[e][i] = splat(c, emit_expr(c, turned.of[e]), n);
      lanes_leave(c, lanes->local, NULL);
    }
    emit_transpose(c, v[e], n);
  }
  for (uint32_t i = 0; i < n; i++) {
    enter_row(c, rows->local, n, lanes->local, i);
    for (int e = 0; e < turned.count; e++)
      take_for(c, turned.of[e], v[e][i]);
    emit_store(c, store);
    lanes_leave(c, rows->local, NULL);
  }
}
