/* codegen_kernel.c: the functions of a kernel, with the signatures of runtime/program/program.h.
 *
 *   NAME.phaseN (buffers ..., sizes ..., fault, begin, end)   the work: buffers are noalias arguments
 *   NAME.run    (call, phase, begin, end)                     unpacks the call and goes to the phase
 *   NAME.query  (sizes, what)                                 tiles, scratch, phases, cost */
#include <string.h>

#include "runtime/program/program.h"
#include "targets/cpu/codegen.h"

static void add_attribute(struct cpu_module *m, value f, unsigned param, const char *name, uint64_t v) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(f, param + 1, LLVMCreateEnumAttribute(m->context, kind, v));
}

static value create_function(struct codegen *c, const char *suffix, LLVMTypeRef type) {
  value f = LLVMAddFunction(c->m->module, arena_printf(&c->m->arena, "%s%s.%s", c->k->name, c->m->suffix, suffix), type);
  LLVMSetLinkage(f, LLVMInternalLinkage);
  unsigned kind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(c->m->context, kind, 0));
  c->function = f;
  c->entry = LLVMAppendBasicBlockInContext(c->m->context, f, "entry");
  LLVMPositionBuilderAtEnd(c->b, c->entry);
  c->generation++;
  return f;
}

static value load_word(struct codegen *c, LLVMTypeRef type, value base, int64_t index) {
  value at = const_i64(c, index * 8);
  value v = LLVMBuildLoad2(c->b, type, LLVMBuildInBoundsGEP2(c->b, c->m->i8, base, &at, 1, ""), "");
  LLVMSetAlignment(v, 8);
  return v;
}
static void load_sizes(struct codegen *c, value sizes) {
  for (uint32_t i = 0; i < c->k->size_count; i++)
    c->sizes[i] = load_word(c, c->m->i64, sizes, i);
}

/* ---- scratch: buffers of the kernel one after the other, each on a cache line ---- */

value emit_buffer_bytes(struct codegen *c, const struct kernel_buffer *b) {
  value bytes = const_i64(c, (int64_t)dtype_size(b->dtype));
  for (int d = 0; d < b->rank; d++)
    bytes = LLVMBuildNSWMul(c->b, bytes, buffer_dim(c, b->dims[d]), "");
  bytes = LLVMBuildNSWAdd(c->b, bytes, const_i64(c, 63), "");
  return LLVMBuildAnd(c->b, bytes, const_i64(c, ~INT64_C(63)), "");
}
static bool is_scratch(const struct kernel_buffer *b) { return b->mode == BUFFER_SCRATCH || b->space == SPACE_TASK; }
/* The offset of a scratch buffer; of the number of buffers: the size of all. */
static value scratch_offset(struct codegen *c, uint32_t buffer) {
  value sum = const_i64(c, 0);
  for (uint32_t i = 0; i < buffer; i++)
    if (is_scratch(&c->k->buffers.items[i]))
      sum = LLVMBuildNSWAdd(c->b, sum, emit_buffer_bytes(c, &c->k->buffers.items[i]), "");
  return sum;
}

/* ---- phases ---- */

static uint64_t constant_bytes(const struct kernel_buffer *b) {
  uint64_t bytes = dtype_size(b->dtype);
  for (int d = 0; d < b->rank; d++) {
    if (DIM_IS_SIZE(b->dims[d]))
      return 0;
    if (__builtin_mul_overflow(bytes, (uint64_t)b->dims[d], &bytes))
      return 0;
  }
  return bytes;
}

static uint32_t given_count(const struct kernel *k) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < k->buffers.count; i++)
    count += buffer_is_given(&k->buffers.items[i]);
  return count;
}
static LLVMTypeRef phase_type(struct codegen *c) {
  uint32_t buffers = given_count(c->k), sizes = c->k->size_count, n = 0;
  LLVMTypeRef *params = ARENA_ARRAY(&c->m->arena, LLVMTypeRef, buffers + sizes + 3);
  for (uint32_t i = 0; i < buffers; i++)
    params[n++] = c->m->ptr;
  for (uint32_t i = 0; i < sizes; i++)
    params[n++] = c->m->i64;
  params[n++] = c->m->ptr;
  params[n++] = c->m->i64;
  params[n++] = c->m->i64;
  return LLVMFunctionType(c->m->none, params, n, false);
}

static void emit_given(struct codegen *c, value f) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->k->buffers.count; i++) {
    const struct kernel_buffer *b = &c->k->buffers.items[i];
    if (!buffer_is_given(b))
      continue;
    c->buffers[i] = LLVMGetParam(f, n);
    add_attribute(c->m, f, n, "noalias", 0);
    if (constant_bytes(b))
      add_attribute(c->m, f, n, "dereferenceable", constant_bytes(b));
    if (b->mode == BUFFER_IN)
      add_attribute(c->m, f, n, "readonly", 0);
    n++;
  }
}
static value emit_phase(struct codegen *c, const struct phase *phase, int number) {
  uint32_t buffers = given_count(c->k), sizes = c->k->size_count;
  value f = create_function(c, arena_printf(&c->m->arena, "phase%d", number), phase_type(c));
  emit_given(c, f);
  for (uint32_t i = 0; i < sizes; i++)
    c->sizes[i] = LLVMGetParam(f, buffers + i);
  c->fault = LLVMGetParam(f, buffers + sizes);
  add_attribute(c->m, f, buffers + sizes, "noalias", 0);
  if (phase->is_serial)
    emit_block(c, phase->nest.body);
  else
    emit_phase_tiles(c, phase, LLVMGetParam(f, buffers + sizes + 1), LLVMGetParam(f, buffers + sizes + 2));
  LLVMBuildRetVoid(c->b);
  return f;
}

/* Where they are, in the order of a phase's parameters. */
static void load_given(struct codegen *c, value pointers, value scratch, value *out) {
  for (uint32_t i = 0; i < c->k->buffers.count; i++) {
    const struct kernel_buffer *b = &c->k->buffers.items[i];
    value offset = is_scratch(b) ? scratch_offset(c, i) : NULL;
    if (buffer_is_given(b))
      *out++ = offset ? LLVMBuildInBoundsGEP2(c->b, c->m->i8, scratch, &offset, 1, "") : load_word(c, c->m->ptr, pointers, i);
  }
}
static value emit_run(struct codegen *c, const value *phases, int count) {
  struct cpu_module *m = c->m;
  LLVMTypeRef params[4] = {m->ptr, m->i64, m->i64, m->i64};
  value f = create_function(c, "run", LLVMFunctionType(m->none, params, 4, false)), call = LLVMGetParam(f, 0);
  uint32_t buffers = given_count(c->k), sizes = c->k->size_count;
  value *args = ARENA_ARRAY(&m->arena, value, buffers + sizes + 3);
  value pointers = load_word(c, m->ptr, call, 0), scratch = load_word(c, m->ptr, call, 2);
  load_sizes(c, load_word(c, m->ptr, call, 1));
  load_given(c, pointers, scratch, args);
  for (uint32_t i = 0; i < sizes; i++)
    args[buffers + i] = c->sizes[i];
  args[buffers + sizes] = load_word(c, m->ptr, call, 3);
  args[buffers + sizes + 1] = LLVMGetParam(f, 2);
  args[buffers + sizes + 2] = LLVMGetParam(f, 3);
  LLVMBasicBlockRef done = new_block(c, "done");
  value which = LLVMBuildSwitch(c->b, LLVMGetParam(f, 1), done, (unsigned)count);
  for (int i = 0; i < count; i++) {
    LLVMBasicBlockRef block = new_block(c, "phase");
    LLVMAddCase(which, const_i64(c, i), block);
    LLVMPositionBuilderAtEnd(c->b, block);
    LLVMBuildCall2(c->b, LLVMGlobalGetValueType(phases[i]), phases[i], args, buffers + sizes + 3, "");
    LLVMBuildBr(c->b, done);
  }
  LLVMPositionBuilderAtEnd(c->b, done);
  LLVMBuildRetVoid(c->b);
  return f;
}

static value kernel_cost(struct codegen *c, const struct phase *phases, int count) {
  value sum = LLVMConstReal(c->m->f64, 100);
  for (int i = 0; i < count; i++)
    sum = LLVMBuildFAdd(c->b, sum, emit_phase_cost(c, &phases[i]), "");
  value most = LLVMConstReal(c->m->f64, 1e15);
  sum = call_intrinsic(c, "llvm.minnum", c->m->f64, (value[]){sum, most}, 2);
  return LLVMBuildFPToSI(c->b, sum, c->m->i64, "");
}
/* Of a result that is larger than the caches most lines are nobody's when they are written again; what is updated in place stays with the
 * thread that updates it. */
static value kernel_sharing(struct codegen *c) {
  int64_t line_bytes = 64, most = c->m->cpu->bytes[LEVEL_L2];
  value bytes = const_i64(c, 0);
  for (uint32_t i = 0; i < c->k->buffers.count; i++)
    if (c->k->buffers.items[i].mode == BUFFER_OUT)
      bytes = LLVMBuildNSWAdd(c->b, bytes, emit_buffer_bytes(c, &c->k->buffers.items[i]), "");
  bytes = call_intrinsic(c, "llvm.smin", c->m->i64, (value[]){bytes, const_i64(c, most)}, 2);
  return LLVMBuildUDiv(c->b, bytes, const_i64(c, line_bytes), "");
}

static value emit_query(struct codegen *c, const struct phase *phases, int count) {
  struct cpu_module *m = c->m;
  LLVMTypeRef params[2] = {m->ptr, m->i64};
  value f = create_function(c, "query", LLVMFunctionType(m->i64, params, 2, false));
  load_sizes(c, LLVMGetParam(f, 0));
  LLVMBasicBlockRef other = new_block(c, "other");
  value which = LLVMBuildSwitch(c->b, LLVMGetParam(f, 1), other, (unsigned)count + 4);
  for (int64_t what = KERNEL_SHARING; what < count; what++) {
    LLVMBasicBlockRef block = new_block(c, "answer");
    LLVMAddCase(which, const_i64(c, what), block);
    LLVMPositionBuilderAtEnd(c->b, block);
    c->generation++;
    value answer = what == KERNEL_SCRATCH ? scratch_offset(c, c->k->buffers.count)
                 : what == KERNEL_PHASES  ? const_i64(c, count)
                 : what == KERNEL_COST    ? kernel_cost(c, phases, count)
                 : what == KERNEL_SHARING ? kernel_sharing(c)
                                          : emit_phase_tile_count(c, &phases[what]);
    LLVMBuildRet(c->b, answer);
  }
  LLVMPositionBuilderAtEnd(c->b, other);
  LLVMBuildRet(c->b, const_i64(c, 0));
  return f;
}

void emit_kernel(struct cpu_module *m, const struct kernel *k, value out[2]) {
  struct codegen c = {.m = m, .k = k, .b = m->builder, .lanes = 1, .copies = 1, .generation = 1};
  struct arena *a = &m->arena;
  c.buffers = ARENA_ARRAY(a, value, k->buffers.count + 1);
  c.sizes = ARENA_ARRAY(a, value, k->size_count + 1);
  c.locals = ARENA_ARRAY(a, struct local_slot, k->locals.count + 1);
  c.memo[0] = ARENA_ARRAY(a, struct memo, k->exprs.count);
  c.memo[1] = ARENA_ARRAY(a, struct memo, k->exprs.count);
  codegen_registers(&c);
  kernel_uses_find(k, a, &c.uses);
  lane_view_create(&c.uses, a, &c.view);
  vector_costs_create(&c.uses, m->cpu, a, &c.costs);
  codegen_flags(&c);
  struct phase phases[PHASES_MAX];
  value functions[PHASES_MAX];
  int count = kernel_phases(&c, phases);
  for (int i = 0; i < count; i++)
    functions[i] = emit_phase(&c, &phases[i], i);
  out[0] = emit_run(&c, functions, count);
  out[1] = emit_query(&c, phases, count);
}
