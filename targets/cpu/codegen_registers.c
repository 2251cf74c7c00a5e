/* codegen_registers.c: buffers of a scheduled nest that live in registers.
 *
 * Such a buffer is a block of registers: vectors along its last dimension where a loop over lanes runs along it, else a scalar
 * for each element. Each is an alloca of its own, which LLVM promotes: indices are
 * constants once the loops that are to be unrolled have been. */
#include <assert.h>

#include "targets/cpu/codegen.h"

static bool lies_in_registers(const struct codegen *c, uint32_t buffer) {
  const struct kernel_buffer *b = &c->k->buffers.items[buffer];
  return b->mode == BUFFER_LOCAL && b->space == SPACE_REGISTER;
}
bool is_register_access(const struct codegen *c, uint32_t buffer) { return lies_in_registers(c, buffer); }

/* ---- which buffers are vectors ---- */

static void note_access(struct codegen *c, uint32_t buffer, const expr_id *index, int count) {
  const struct expr *last = count ? expr_get(c->k, index[count - 1]) : NULL;
  if (lies_in_registers(c, buffer) && last && last->op == SCALAR_LOCAL && c->lane_widths[last->imm])
    c->registers[buffer].is_vector = true;
}
static void note_lanes(struct codegen *c, const struct stmt *s) {
  for (; s; s = s->next) {
    if (s->kind == STMT_FOR && s->run == RUN_LANES)
      c->lane_widths[s->local] = (uint32_t)s->width;
    note_lanes(c, s->body);
    note_lanes(c, s->otherwise);
  }
}
static void note_stores(struct codegen *c, const struct stmt *s) {
  for (; s; s = s->next) {
    if (s->kind == STMT_STORE)
      note_access(c, s->buffer, s->index, s->index_count);
    note_stores(c, s->body);
    note_stores(c, s->otherwise);
  }
}
void codegen_registers(struct codegen *c) {
  const struct kernel *k = c->k;
  c->registers = ARENA_ARRAY(&c->m->arena, struct register_block, k->buffers.count + 1);
  c->lane_widths = ARENA_ARRAY(&c->m->arena, uint32_t, k->locals.count + 1);
  note_lanes(c, k->body);
  note_stores(c, k->body);
  for (expr_id e = 1; e < k->exprs.count; e++) {
    const struct expr *x = expr_get(k, e);
    if (x->op == SCALAR_LOAD && x->count)
      note_access(c, (uint32_t)x->imm, &k->operands.items[x->first], x->count);
  }
}

/* ---- the statement ---- */

/* Its registers begin anew, so that nothing is carried from the last time. */
static void open_block(struct codegen *c, uint32_t buffer) {
  const struct kernel_buffer *b = &c->k->buffers.items[buffer];
  struct register_block *r = &c->registers[buffer];
  int64_t last = b->rank ? b->dims[b->rank - 1] : 1;
  r->lanes = r->is_vector ? vector_lanes(c, last) : 1;
  r->row = (uint32_t)(last + r->lanes - 1) / r->lanes;
  r->count = r->row;
  for (int d = 0; d < b->rank - 1; d++)
    r->count *= (uint32_t)b->dims[d];
  r->type = type_widened(type_of_dtype(c->m, b->dtype), r->lanes);
  r->at = ARENA_ARRAY(&c->m->arena, value, r->count + 1);
  for (uint32_t i = 0; i < r->count; i++)
    r->at[i] = emit_alloca(c, r->type, "register");
}
void emit_buffer(struct codegen *c, const struct stmt *s) {
  const struct kernel_buffer *b = &c->k->buffers.items[s->buffer];
  if (lies_in_registers(c, s->buffer)) {
    open_block(c, s->buffer);
    return;
  }
  if (b->space == SPACE_TASK)
    return; /* the phase was given it */
  uint64_t bytes = dtype_size(b->dtype);
  for (int d = 0; d < b->rank; d++)
    bytes *= (uint64_t)b->dims[d];
  c->buffers[s->buffer] = emit_alloca(c, LLVMArrayType2(c->m->i8, bytes), "stack");
  LLVMSetAlignment(c->buffers[s->buffer], 64);
}

/* ---- accesses ---- */

static bool runs_along_lanes(const struct codegen *c, const struct kernel_buffer *b, const expr_id *index) {
  const struct expr *last = expr_get(c->k, index[b->rank - 1]);
  return c->lanes > 1 && last->op == SCALAR_LOCAL && last->imm == c->view.loop;
}
/* The last index of an element, or of a vector's first one. */
static value last_index(struct codegen *c, const struct kernel_buffer *b, const expr_id *index) {
  return runs_along_lanes(c, b, index) ? c->lane_base : emit_expr(c, index[b->rank - 1]);
}
/* The number of a register in its block: a constant, but for loops that run although they were to be unrolled. */
static value register_number(struct codegen *c, const struct kernel_buffer *b, const struct register_block *r, const expr_id *index) {
  value sum = const_i64(c, 0);
  for (int d = 0; d < b->rank; d++) {
    bool last = d == b->rank - 1;
    value at = last ? LLVMBuildUDiv(c->b, last_index(c, b, index), const_i64(c, r->lanes), "") : emit_expr(c, index[d]);
    sum = LLVMBuildNSWAdd(c->b, LLVMBuildNSWMul(c->b, sum, const_i64(c, last ? r->row : b->dims[d]), ""), at, "");
  }
  return sum;
}
static value register_at(struct codegen *c, uint32_t buffer, const expr_id *index) {
  const struct kernel_buffer *b = &c->k->buffers.items[buffer];
  const struct register_block *r = &c->registers[buffer];
  value number = register_number(c, b, r, index);
  if (r->rolled)
    return LLVMBuildInBoundsGEP2(c->b, r->type, r->rolled, &number, 1, "");
  assert(LLVMIsAConstantInt(number) && LLVMConstIntGetZExtValue(number) < r->count);
  return r->at[LLVMConstIntGetZExtValue(number)];
}
/* The number of an element in its register. */
static value lane_number(struct codegen *c, const struct kernel_buffer *b, const struct register_block *r, const expr_id *index) {
  return LLVMBuildURem(c->b, last_index(c, b, index), const_i64(c, r->lanes), "");
}
/* The first lanes of a vector, or with lanes behind it that hold nothing. */
static value resized(struct codegen *c, value v, uint32_t lanes) {
  uint32_t have = LLVMGetVectorSize(LLVMTypeOf(v));
  if (have == lanes)
    return v;
  value *at = ARENA_ARRAY(&c->m->arena, value, lanes);
  for (uint32_t i = 0; i < lanes; i++)
    at[i] = i < have ? LLVMConstInt(c->m->i32, i, false) : LLVMGetPoison(c->m->i32);
  return LLVMBuildShuffleVector(c->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(at, lanes), "");
}
/* v, and behind its lanes those of a longer vector. */
static value with_the_rest(struct codegen *c, value v, value old, uint32_t lanes) {
  uint32_t have = LLVMGetVectorSize(LLVMTypeOf(v));
  value *own = ARENA_ARRAY(&c->m->arena, value, lanes);
  for (uint32_t i = 0; i < lanes; i++)
    own[i] = LLVMConstInt(c->m->i1, i < have, false);
  return have >= lanes ? resized(c, v, lanes) : LLVMBuildSelect(c->b, LLVMConstVector(own, lanes), resized(c, v, lanes), old, "");
}
value emit_register_load(struct codegen *c, uint32_t buffer, const expr_id *index) {
  const struct kernel_buffer *b = &c->k->buffers.items[buffer];
  const struct register_block *r = &c->registers[buffer];
  value v = LLVMBuildLoad2(c->b, r->type, register_at(c, buffer, index), "");
  if (r->lanes == 1)
    return v;
  return runs_along_lanes(c, b, index) ? resized(c, v, c->lanes) : LLVMBuildExtractElement(c->b, v, lane_number(c, b, r, index), "");
}
void emit_register_store(struct codegen *c, const struct stmt *s, value v) {
  const struct kernel_buffer *b = &c->k->buffers.items[s->buffer];
  const struct register_block *r = &c->registers[s->buffer];
  value at = register_at(c, s->buffer, s->index), old = LLVMBuildLoad2(c->b, r->type, at, "");
  if (r->lanes > 1 && !runs_along_lanes(c, b, s->index)) {
    v = LLVMBuildInsertElement(c->b, old, v, lane_number(c, b, r, s->index), "");
  } else if (r->lanes > 1) {
    v = splat(c, v, c->lanes);
    if (c->set_mask)
      v = LLVMBuildSelect(c->b, c->set_mask, v, resized(c, old, c->lanes), "");
    v = with_the_rest(c, v, old, r->lanes);
  }
  LLVMBuildStore(c->b, v, at);
}

/* ---- blocks in memory, for a loop over registers ---- */

static bool block_loads(const struct codegen *c, const struct stmt *s, uint32_t buffer) {
  for (; s; s = s->next) {
    if (s->value != NO_EXPR && expr_loads_from(c, s->value, buffer))
      return true;
    if (block_loads(c, s->body, buffer) || block_loads(c, s->otherwise, buffer))
      return true;
  }
  return false;
}
void registers_to_memory(struct codegen *c, const struct stmt *body) {
  for (uint32_t i = 0; i < c->k->buffers.count; i++) {
    struct register_block *r = &c->registers[i];
    if (!lies_in_registers(c, i) || !r->at || r->rolled || !block_loads(c, body, i))
      continue;
    value array = emit_alloca(c, LLVMArrayType2(r->type, r->count), "registers");
    for (uint32_t n = 0; n < r->count; n++) {
      value at = const_i64(c, n), v = LLVMBuildLoad2(c->b, r->type, r->at[n], "");
      LLVMBuildStore(c->b, v, LLVMBuildInBoundsGEP2(c->b, r->type, array, &at, 1, ""));
    }
    r->rolled = array;
  }
}
void registers_from_memory(struct codegen *c) {
  for (uint32_t i = 0; i < c->k->buffers.count; i++)
    c->registers[i].rolled = NULL;
}
