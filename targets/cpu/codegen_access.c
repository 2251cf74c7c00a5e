/* codegen_access.c: expressions and the elements of buffers.
 *
 * Within a statement an expression is written once (memo); LLVM joins what statements share. An access whose address does
 * not vary with the lane is one scalar load; one that grows by one element a lane is a vector load; others whose lanes are not far apart
 * are picked from vectors (codegen_strided.c); the rest are gathers. */
#include <string.h>

#include "targets/cpu/codegen.h"

value buffer_dim(struct codegen *c, kernel_dim dim) { return DIM_IS_SIZE(dim) ? c->sizes[SIZE_OF_DIM(dim)] : const_i64(c, dim); }

void codegen_flags(struct codegen *c) {
  for (uint32_t i = 0; i < c->k->locals.count; i++)
    c->view.locals[i] = (uint8_t)((c->locals[i].varying ? VIEW_VARIES : 0) | (c->locals[i].jammed ? VIEW_COPIED : 0));
  lane_view_update(&c->view);
  c->generation++;
}

static value emit_address_index(struct codegen *c, expr_id e);

/* The element's number: a scalar, of lane 0, or one for each lane where those are far apart. */
static value linear_index(struct codegen *c, const struct kernel_buffer *buffer, const expr_id *index, int64_t stride) {
  value sum = NULL;
  for (int d = 0; d < buffer->rank; d++) {
    value v[2] = {sum, stride == STRIDE_FAR ? emit_expr(c, index[d]) : emit_address_index(c, index[d])};
    if (sum) {
      value dim = buffer_dim(c, buffer->dims[d]);
      v[0] = LLVMBuildNSWMul(c->b, sum, is_wide(sum) ? splat(c, dim, c->lanes) : dim, "");
      match_width(c, v, 2);
      sum = LLVMBuildNSWAdd(c->b, v[0], v[1], "");
    } else {
      sum = v[1];
    }
  }
  return sum ? sum : const_i64(c, 0);
}

static value element_address(struct codegen *c, uint32_t number, const expr_id *index, int part, int64_t stride) {
  const struct kernel_buffer *buffer = &c->k->buffers.items[number];
  value at = linear_index(c, buffer, index, stride);
  if (dtype_is_complex(buffer->dtype)) {
    at = LLVMBuildNSWMul(c->b, at, const_int_like(at, 2), "");
    if (part)
      at = LLVMBuildNSWAdd(c->b, at, const_int_like(at, 1), "");
  }
  return LLVMBuildInBoundsGEP2(c->b, type_in_memory(c->m, buffer->dtype), c->buffers[number], &at, 1, "");
}

static uint32_t alignment_of(enum dtype dtype) {
  size_t size = dtype_size(dtype_real(dtype));
  return size > 8 ? 8 : (uint32_t)size;
}

static value full_mask(struct codegen *c) { return c->mask ? c->mask : LLVMConstAllOnes(LLVMVectorType(c->m->i1, c->lanes)); }
value call_masked(struct codegen *c, const char *name, LLVMTypeRef types[2], value *args, int count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  value f = LLVMGetIntrinsicDeclaration(c->m->module, id, types, 2);
  return LLVMBuildCall2(c->b, LLVMGlobalGetValueType(f), f, args, (unsigned)count, "");
}

/* Lanes of a load at address, which is one for all or a vector of them. */
static value load_lanes(struct codegen *c, LLVMTypeRef element, value address, uint32_t align) {
  LLVMTypeRef wide = LLVMVectorType(element, c->lanes), types[2] = {wide, LLVMTypeOf(address)};
  value passthru = LLVMConstNull(wide), alignment = LLVMConstInt(c->m->i32, align, false);
  if (is_wide(address))
    return call_masked(c, "llvm.masked.gather", types, (value[]){address, alignment, full_mask(c), passthru}, 4);
  if (c->mask)
    return call_masked(c, "llvm.masked.load", types, (value[]){address, alignment, c->mask, passthru}, 4);
  value v = LLVMBuildLoad2(c->b, wide, address, "");
  LLVMSetAlignment(v, align);
  return v;
}

static int64_t widened_stride(struct codegen *c, uint32_t buffer, const expr_id *index) {
  return c->lanes <= 1 ? 0 : lane_stride(&c->view, buffer, index);
}
static struct stride short_stride(const struct kernel_buffer *buffer, int64_t stride) {
  return (struct stride){.lanes = (int32_t)stride, .parts = dtype_is_complex(buffer->dtype) ? 2 : 1};
}

value fetch_address(struct codegen *c, uint32_t buffer, const expr_id *index) {
  const struct kernel_buffer *b = &c->k->buffers.items[buffer];
  value at = linear_index(c, b, index, 0), bytes = const_i64(c, (int64_t)dtype_size(b->dtype));
  at = LLVMBuildMul(c->b, at, bytes, "");
  return LLVMBuildGEP2(c->b, c->m->i8, c->buffers[buffer], &at, 1, "");
}

void emit_hint(struct codegen *c, value address) {
  struct cpu_module *m = c->m;
  value args[4] = {address, LLVMConstInt(m->i32, 0, false), LLVMConstInt(m->i32, 3, false), LLVMConstInt(m->i32, 1, false)};
  unsigned id = LLVMLookupIntrinsicID("llvm.prefetch", strlen("llvm.prefetch"));
  value f = LLVMGetIntrinsicDeclaration(m->module, id, (LLVMTypeRef[]){m->ptr}, 1);
  LLVMBuildCall2(c->b, LLVMGlobalGetValueType(f), f, args, 4, "");
}

static value emit_load(struct codegen *c, expr_id e) {
  const struct expr *x = expr_get(c->k, e);
  uint32_t number = (uint32_t)x->imm;
  if (is_register_access(c, number))
    return emit_register_load(c, number, &c->k->operands.items[x->first]);
  const struct kernel_buffer *buffer = &c->k->buffers.items[number];
  const expr_id *index = &c->k->operands.items[x->first];
  int64_t stride = widened_stride(c, number, index);
  bool is_picked = stride != 0 && stride != 1 && stride != STRIDE_FAR;
  value address = element_address(c, number, index, is_picked ? 0 : x->part, stride), v;
  LLVMTypeRef element = type_in_memory(c->m, buffer->dtype);
  if (stride == 0) {
    v = LLVMBuildLoad2(c->b, element, address, "");
    LLVMSetAlignment(v, alignment_of(buffer->dtype));
  } else if (is_picked) {
    v = emit_strided_load(c, element, address, alignment_of(buffer->dtype), short_stride(buffer, stride), (uint32_t)x->part);
  } else {
    v = load_lanes(c, element, address, alignment_of(buffer->dtype));
  }
  return buffer->dtype == DTYPE_BOOL ? LLVMBuildICmp(c->b, LLVMIntNE, v, const_int_like(v, 0), "") : v;
}

value emit_word_load(struct codegen *c, uint32_t number, const expr_id *index, bool is_same) {
  enum dtype dtype = c->k->buffers.items[number].dtype;
  LLVMTypeRef word = LLVMIntTypeInContext(c->m->context, 16 * (unsigned)dtype_size(dtype));
  value address = element_address(c, number, index, 0, 0);
  if (!is_same)
    return load_lanes(c, word, address, alignment_of(dtype));
  value v = LLVMBuildLoad2(c->b, word, address, "");
  LLVMSetAlignment(v, alignment_of(dtype));
  return v;
}

void emit_word_store(struct codegen *c, const struct stmt *s, value words) {
  value address = element_address(c, s->buffer, s->index, 0, 0);
  LLVMSetAlignment(LLVMBuildStore(c->b, words, address), alignment_of(c->k->buffers.items[s->buffer].dtype));
}

/* A truth is a byte in memory. */
static value as_stored(struct codegen *c, enum dtype dtype, value v) {
  return dtype == DTYPE_BOOL ? LLVMBuildZExt(c->b, v, type_widened(c->m->i8, is_wide(v) ? c->lanes : 1), "") : v;
}
void emit_store_value(struct codegen *c, const struct stmt *s, value v) {
  const struct kernel_buffer *buffer = &c->k->buffers.items[s->buffer];
  if (is_register_access(c, s->buffer)) {
    emit_register_store(c, s, v);
    return;
  }
  v = as_stored(c, buffer->dtype, v);
  int64_t stride = widened_stride(c, s->buffer, s->index);
  bool is_picked = stride == -1 || (stride == 2 && !dtype_is_complex(buffer->dtype) && c->m->cpu->vector_bytes == 64);
  if (stride != 0 && stride != 1 && !is_picked)
    stride = STRIDE_FAR;
  value address = element_address(c, s->buffer, s->index, s->part, stride);
  uint32_t align = alignment_of(buffer->dtype);
  if (stride == 0) {
    LLVMSetAlignment(LLVMBuildStore(c->b, v, address), align);
    return;
  }
  v = splat(c, v, c->lanes);
  if (is_picked) {
    emit_strided_store(c, type_in_memory(c->m, buffer->dtype), address, align, short_stride(buffer, stride), &v);
    return;
  }
  LLVMTypeRef types[2] = {LLVMTypeOf(v), LLVMTypeOf(address)};
  value alignment = LLVMConstInt(c->m->i32, align, false);
  if (is_wide(address))
    call_masked(c, "llvm.masked.scatter", types, (value[]){v, address, alignment, full_mask(c)}, 4);
  else if (c->mask)
    call_masked(c, "llvm.masked.store", types, (value[]){v, address, alignment, c->mask}, 4);
  else
    LLVMSetAlignment(LLVMBuildStore(c->b, v, address), align);
}
void emit_store(struct codegen *c, const struct stmt *s) { emit_store_value(c, s, emit_expr(c, s->value)); }

/* Neither part may be computed from what the other overwrites. */
static bool stores_parts(struct codegen *c, const struct stmt *s, const struct stmt *other) {
  return other && s->kind == STMT_STORE && other->kind == STMT_STORE && c->lanes > 1 && c->copies == 1 && other->buffer == s->buffer &&
         s->part == 0 && other->part == 1 && memcmp(s->index, other->index, sizeof *s->index * (size_t)s->index_count) == 0 &&
         !is_register_access(c, s->buffer) && !expr_loads_from(c, other->value, s->buffer);
}
bool emit_store_of_parts(struct codegen *c, const struct stmt *s, const struct stmt *other) {
  if (!stores_parts(c, s, other))
    return false;
  const struct kernel_buffer *buffer = &c->k->buffers.items[s->buffer];
  int64_t stride = widened_stride(c, s->buffer, s->index);
  if (stride != 2 && stride != -2)
    return false;
  value parts[2] = {splat(c, emit_expr(c, s->value), c->lanes), splat(c, emit_expr(c, other->value), c->lanes)};
  value address = element_address(c, s->buffer, s->index, 0, stride);
  emit_strided_store(c, type_in_memory(c->m, buffer->dtype), address, alignment_of(buffer->dtype), short_stride(buffer, stride), parts);
  return true;
}

/* Two turns that store elements side by side, each of which another lane's two lie behind; neither computed from the other. */
static bool stores_turns(const struct codegen *c, const struct stmt *loop) {
  const struct stmt *s = loop->body;
  int64_t turns;
  bool is_one = expr_is_const(c->k, loop->value, &turns) && turns == 2 && s && !s->next && s->kind == STMT_STORE && s->index_count > 0;
  if (!is_one || c->lanes <= 1 || c->copies > 1 || is_register_access(c, s->buffer) || expr_loads_from(c, s->value, s->buffer) ||
      dtype_is_complex(c->k->buffers.items[s->buffer].dtype))
    return false;
  for (int d = 0; d + 1 < s->index_count; d++)
    if (expr_uses_local(c, s->index[d], loop->local))
      return false;
  return expr_is_local(c->k, s->index[s->index_count - 1], loop->local) && lane_stride(&c->view, s->buffer, s->index) == 2;
}
bool emit_store_of_turns(struct codegen *c, const struct stmt *loop) {
  if (!stores_turns(c, loop))
    return false;
  const struct stmt *s = loop->body;
  enum dtype dtype = c->k->buffers.items[s->buffer].dtype;
  value parts[2], address = NULL;
  for (int turn = 1; turn >= 0; turn--) {
    c->locals[loop->local].at[0] = const_i64(c, turn);
    c->generation++;
    parts[turn] = as_stored(c, dtype, splat(c, emit_expr(c, s->value), c->lanes));
    address = element_address(c, s->buffer, s->index, 0, 2);
  }
  emit_strided_store(c, type_in_memory(c->m, dtype), address, alignment_of(dtype), (struct stride){.lanes = 2, .parts = 2}, parts);
  return true;
}

value const_of(struct codegen *c, enum dtype dtype, int64_t bits) {
  LLVMTypeRef type = type_of_dtype(c->m, dtype);
  if (dtype == DTYPE_STRING)
    return LLVMConstNull(type);
  if (dtype == DTYPE_FLOAT || dtype == DTYPE_DOUBLE || dtype == DTYPE_HALF) {
    LLVMTypeRef word = dtype == DTYPE_FLOAT ? c->m->i32 : dtype == DTYPE_HALF ? c->m->i16 : c->m->i64;
    return LLVMConstBitCast(LLVMConstInt(word, (uint64_t)bits, false), type);
  }
  return LLVMConstInt(type, (uint64_t)bits, false);
}

static value emit_local(struct codegen *c, uint32_t local) {
  struct local_slot *slot = &c->locals[local];
  value at = slot->at[slot->jammed ? c->copy : 0];
  if (slot->in_memory)
    return LLVMBuildLoad2(c->b, slot->type, at, "");
  if (c->lanes <= 1 || local != c->view.loop)
    return at;
  value steps[1024];
  for (uint32_t i = 0; i < c->lanes; i++)
    steps[i] = const_i64(c, i);
  return LLVMBuildNSWAdd(c->b, splat(c, c->lane_base, c->lanes), LLVMConstVector(steps, c->lanes), "");
}

static value *memo_slot(struct codegen *c, int set, expr_id e) {
  struct memo *m = &c->memo[set][e];
  if (m->generation != c->generation) {
    memset(m->at, 0, sizeof *m->at * c->copies);
    m->generation = c->generation;
  }
  return &m->at[c->view.exprs[e] & VIEW_COPIED ? c->copy : 0];
}

void take_for(struct codegen *c, expr_id e, value v) { *memo_slot(c, 0, e) = v; }

/* inside ? load : 0, the same for all lanes (padding): choosing the address keeps the value a load that is broadcast. */
static bool is_padded_load(struct codegen *c, const struct expr *x) {
  const struct kernel *k = c->k;
  if (c->lanes <= 1 || x->op != SCALAR_SELECT || (x->dtype != DTYPE_FLOAT && x->dtype != DTYPE_DOUBLE))
    return false;
  const expr_id *operands = &k->operands.items[x->first];
  return expr_get(k, operands[1])->op == SCALAR_LOAD && expr_get(k, operands[2])->op == SCALAR_CONST &&
         expr_get(k, operands[2])->imm == 0 && !view_varies(&c->view, operands[0]) && !view_varies(&c->view, operands[1]);
}
static value emit_padded_load(struct codegen *c, const struct expr *x) {
  const expr_id *operands = &c->k->operands.items[x->first];
  const struct expr *load = expr_get(c->k, operands[1]);
  value zero = LLVMGetNamedGlobal(c->m->module, "zero"), condition = emit_expr(c, operands[0]);
  if (!zero) {
    zero = LLVMAddGlobal(c->m->module, c->m->i64, "zero");
    LLVMSetInitializer(zero, const_i64(c, 0));
    LLVMSetLinkage(zero, LLVMInternalLinkage);
    LLVMSetAlignment(zero, 64);
  }
  value address = element_address(c, (uint32_t)load->imm, &c->k->operands.items[load->first], load->part, 0);
  value v = LLVMBuildLoad2(c->b, type_in_memory(c->m, x->dtype), LLVMBuildSelect(c->b, condition, address, zero, ""), "");
  LLVMSetAlignment(v, alignment_of(x->dtype));
  return v;
}

/* A division of indices; NULL when e is none. */
static value emit_division(struct codegen *c, const struct expr *x) {
  const expr_id *operands = x->count ? &c->k->operands.items[x->first] : NULL;
  bool remainder = x->op == SCALAR_FLOORMOD || x->op == SCALAR_REM;
  if (x->dtype != DTYPE_INT64 || (!remainder && x->op != SCALAR_FLOORDIV && x->op != SCALAR_DIV))
    return NULL;
  int64_t a = c->uses.bounds[operands[0]], b = c->uses.bounds[operands[1]];
  if (a < 0 || b < 0)
    return NULL;
  return emit_index_division(c, remainder, a <= INT32_MAX && b <= INT32_MAX, emit_expr(c, operands[0]), emit_expr(c, operands[1]));
}

value emit_expr(struct codegen *c, expr_id e) {
  const struct expr *x = expr_get(c->k, e);
  if (x->op == SCALAR_CONST)
    return const_of(c, x->dtype, x->imm);
  if (x->op == SCALAR_SIZE)
    return c->sizes[x->imm];
  value *slot = memo_slot(c, 0, e);
  if (*slot)
    return *slot;
  value v[3], result;
  if (is_padded_load(c, x)) {
    result = emit_padded_load(c, x);
  } else if ((result = emit_division(c, x)) || (result = emit_pair(c, e))) {
    return *slot = result;
  } else if (x->op == SCALAR_LOCAL) {
    result = emit_local(c, (uint32_t)x->imm);
  } else if (x->op == SCALAR_LOAD) {
    result = emit_load(c, e);
  } else {
    for (int i = 0; i < x->count; i++)
      v[i] = emit_expr(c, expr_operand(c->k, e, i));
    result = emit_scalar(c, x->op, x->dtype, expr_get(c->k, expr_operand(c->k, e, 0))->dtype, v);
  }
  return *slot = result;
}

static value emit_address_index(struct codegen *c, expr_id e) {
  const struct expr *x = expr_get(c->k, e);
  if (x->op == SCALAR_LOCAL && x->imm == c->view.loop && c->lanes > 1)
    return c->lane_base;
  if (x->op != SCALAR_ADD && x->op != SCALAR_SUB && x->op != SCALAR_MUL)
    return emit_expr(c, e);
  value *slot = memo_slot(c, 1, e);
  if (*slot)
    return *slot;
  value a = emit_address_index(c, expr_operand(c->k, e, 0)), b = emit_address_index(c, expr_operand(c->k, e, 1));
  return *slot = x->op == SCALAR_ADD ? LLVMBuildNSWAdd(c->b, a, b, "")
               : x->op == SCALAR_SUB ? LLVMBuildNSWSub(c->b, a, b, "")
                                     : LLVMBuildNSWMul(c->b, a, b, "");
}
