/* codegen_scalar.c: the scalar operations as LLVM IR. Every function takes scalars or vectors alike. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "targets/cpu/codegen.h"

LLVMTypeRef type_in_memory(struct cpu_module *m, enum dtype dtype) {
  switch (dtype_real(dtype)) {
  case DTYPE_FLOAT: return m->f32;
  case DTYPE_DOUBLE: return m->f64;
  case DTYPE_HALF: return m->f16;
  case DTYPE_STRING: return m->string;
  default: break;
  }
  switch (dtype_size(dtype)) {
  case 1: return m->i8;
  case 2: return m->i16;
  case 4: return m->i32;
  default: return m->i64;
  }
}
LLVMTypeRef type_of_dtype(struct cpu_module *m, enum dtype dtype) { return dtype == DTYPE_BOOL ? m->i1 : type_in_memory(m, dtype); }
LLVMTypeRef type_widened(LLVMTypeRef type, uint32_t lanes) { return lanes > 1 ? LLVMVectorType(type, lanes) : type; }

bool is_wide(value v) { return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind; }
static LLVMTypeRef scalar_type(value v) {
  LLVMTypeRef t = LLVMTypeOf(v);
  return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}
static uint32_t width_of(value v) { return is_wide(v) ? LLVMGetVectorSize(LLVMTypeOf(v)) : 1; }

static value splat_const(value like, value element) {
  if (!is_wide(like))
    return element;
  value elements[1024];
  uint32_t n = width_of(like);
  assert(n <= 1024);
  for (uint32_t i = 0; i < n; i++)
    elements[i] = element;
  return LLVMConstVector(elements, n);
}
value const_i64(struct codegen *c, int64_t v) { return LLVMConstInt(c->m->i64, (uint64_t)v, true); }
value const_like(value like, double v) { return splat_const(like, LLVMConstReal(scalar_type(like), v)); }
value const_int_like(value like, int64_t v) { return splat_const(like, LLVMConstInt(scalar_type(like), (uint64_t)v, true)); }

value splat(struct codegen *c, value v, uint32_t lanes) {
  if (lanes <= 1 || is_wide(v))
    return v;
  LLVMTypeRef wide = LLVMVectorType(LLVMTypeOf(v), lanes);
  value one = LLVMBuildInsertElement(c->b, LLVMGetPoison(wide), v, LLVMConstInt(c->m->i32, 0, false), "");
  return LLVMBuildShuffleVector(c->b, one, LLVMGetPoison(wide), LLVMConstNull(LLVMVectorType(c->m->i32, lanes)), "");
}
void match_width(struct codegen *c, value *v, int count) {
  uint32_t lanes = 1;
  for (int i = 0; i < count; i++)
    if (is_wide(v[i]))
      lanes = width_of(v[i]);
  for (int i = 0; i < count; i++)
    v[i] = splat(c, v[i], lanes);
}

value call_intrinsic(struct codegen *c, const char *name, LLVMTypeRef type, value *args, int count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  assert(id);
  value f = LLVMGetIntrinsicDeclaration(c->m->module, id, &type, 1);
  return LLVMBuildCall2(c->b, LLVMGlobalGetValueType(f), f, args, (unsigned)count, "");
}

static void mark_pure(struct cpu_module *m, value f) {
  static const char *const names[] = {"memory", "nounwind", "willreturn"};
  for (int i = 0; i < 3; i++) {
    unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
    LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(m->context, kind, 0));
  }
}
/* The function for each lane, in a loop over memory: a copy of the call for each would be most of a kernel's code. */
static value call_lanes(struct codegen *c, LLVMTypeRef type, value f, value *args, int count) {
  LLVMTypeRef vector = LLVMTypeOf(args[0]), element = LLVMGetElementType(vector);
  value at[3], one[3], result = emit_alloca(c, vector, "lanes");
  uint32_t generation = c->generation;
  for (int i = 0; i < count; i++) {
    at[i] = emit_alloca(c, vector, "lanes");
    LLVMBuildStore(c->b, args[i], at[i]);
  }
  struct counted_loop lanes = loop_begin(c, const_i64(c, 0), const_i64(c, width_of(args[0])), const_i64(c, 1));
  for (int i = 0; i < count; i++)
    one[i] = LLVMBuildLoad2(c->b, element, LLVMBuildGEP2(c->b, element, at[i], &lanes.index, 1, ""), "");
  LLVMBuildStore(c->b, LLVMBuildCall2(c->b, type, f, one, (unsigned)count, ""), LLVMBuildGEP2(c->b, element, result, &lanes.index, 1, ""));
  loop_end(c, &lanes);
  c->generation = generation; /* the loop made no value that is known by an expression */
  return LLVMBuildLoad2(c->b, vector, result, "");
}

/* Calls a function of libm ("exp": expf for float); lane by lane for vectors. */
value call_libm(struct codegen *c, const char *name, value *args, int count) {
  struct cpu_module *m = c->m;
  LLVMTypeRef t = scalar_type(args[0]);
  char full[32];
  snprintf(full, sizeof full, "%s%s", name, t == m->f32 ? "f" : "");
  LLVMTypeRef params[3] = {t, t, t}, type = LLVMFunctionType(t, params, (unsigned)count, false);
  value f = LLVMGetNamedFunction(m->module, full);
  if (!f) {
    f = LLVMAddFunction(m->module, full, type);
    mark_pure(m, f);
  }
  return is_wide(args[0]) ? call_lanes(c, type, f, args, count) : LLVMBuildCall2(c->b, type, f, args, (unsigned)count, "");
}

/* ---- integers ---- */

static value build_is(struct codegen *c, LLVMIntPredicate p, value a, int64_t k) {
  return LLVMBuildICmp(c->b, p, a, const_int_like(a, k), "");
}

/* Quotient or remainder truncated towards zero; by 0: 0; MIN/-1 wraps. Constant divisors need no guards. */
static value divide(struct codegen *c, bool is_unsigned, bool remainder, value a, value b) {
  value one = const_int_like(b, 1), zero = const_int_like(b, 0);
  value is_zero = build_is(c, LLVMIntEQ, b, 0);
  value safe = LLVMBuildSelect(c->b, is_zero, one, b, "");
  if (is_unsigned) {
    value r = remainder ? LLVMBuildURem(c->b, a, safe, "") : LLVMBuildUDiv(c->b, a, safe, "");
    return LLVMBuildSelect(c->b, is_zero, zero, r, "");
  }
  value is_minus = build_is(c, LLVMIntEQ, b, -1);
  safe = LLVMBuildSelect(c->b, is_minus, one, safe, "");
  value r = remainder ? LLVMBuildSRem(c->b, a, safe, "") : LLVMBuildSDiv(c->b, a, safe, "");
  r = LLVMBuildSelect(c->b, is_minus, remainder ? zero : LLVMBuildNeg(c->b, a, ""), r, "");
  return LLVMBuildSelect(c->b, is_zero, zero, r, "");
}
value emit_index_division(struct codegen *c, bool remainder, bool narrow, value a, value b) {
  value v[2] = {a, b};
  match_width(c, v, 2);
  LLVMTypeRef type = LLVMTypeOf(v[0]), half = type_widened(c->m->i32, width_of(v[0]));
  if (!narrow)
    return divide(c, true, remainder, v[0], v[1]);
  value r = divide(c, true, remainder, LLVMBuildTrunc(c->b, v[0], half, ""), LLVMBuildTrunc(c->b, v[1], half, ""));
  return LLVMBuildZExt(c->b, r, type, "");
}
static value floor_divide(struct codegen *c, bool is_unsigned, bool remainder, value a, value b) {
  if (is_unsigned)
    return divide(c, true, remainder, a, b);
  value r = divide(c, false, true, a, b), zero = const_int_like(b, 0);
  value differ = LLVMBuildICmp(c->b, LLVMIntSLT, LLVMBuildXor(c->b, r, b, ""), zero, "");
  value adjust = LLVMBuildAnd(c->b, LLVMBuildICmp(c->b, LLVMIntNE, r, zero, ""), differ, "");
  if (remainder)
    return LLVMBuildSelect(c->b, adjust, LLVMBuildAdd(c->b, r, b, ""), r, "");
  value q = divide(c, false, false, a, b);
  return LLVMBuildSelect(c->b, adjust, LLVMBuildSub(c->b, q, const_int_like(q, 1), ""), q, "");
}
static value shift(struct codegen *c, enum scalar_op op, bool is_unsigned, value a, value n) {
  int64_t width = LLVMGetIntTypeWidth(scalar_type(a));
  value outside = build_is(c, LLVMIntUGE, n, width);
  n = LLVMBuildSelect(c->b, outside, const_int_like(n, width - 1), n, "");
  if (op == SCALAR_SHL)
    return LLVMBuildShl(c->b, a, n, "");
  return is_unsigned ? LLVMBuildLShr(c->b, a, n, "") : LLVMBuildAShr(c->b, a, n, "");
}
static LLVMTypeRef like_width(value v, LLVMTypeRef element) { return type_widened(element, width_of(v)); }

static value multiply_high(struct codegen *c, value a, value b) {
  unsigned width = LLVMGetIntTypeWidth(scalar_type(a));
  LLVMTypeRef twice = like_width(a, LLVMIntTypeInContext(c->m->context, width * 2));
  value p = LLVMBuildMul(c->b, LLVMBuildZExt(c->b, a, twice, ""), LLVMBuildZExt(c->b, b, twice, ""), "");
  return LLVMBuildTrunc(c->b, LLVMBuildLShr(c->b, p, const_int_like(p, width), ""), LLVMTypeOf(a), "");
}

/* i64 tfc_pow(i64 base, i64 exponent): by squaring; wraps. Narrower types are cut afterwards. */
static value power_function(struct cpu_module *m) {
  value f = LLVMGetNamedFunction(m->module, "tfc_pow");
  if (f)
    return f;
  LLVMTypeRef params[2] = {m->i64, m->i64};
  f = LLVMAddFunction(m->module, "tfc_pow", LLVMFunctionType(m->i64, params, 2, false));
  LLVMSetLinkage(f, LLVMInternalLinkage);
  LLVMBuilderRef b = LLVMCreateBuilderInContext(m->context);
  LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(m->context, f, "entry");
  LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(m->context, f, "loop");
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(m->context, f, "done");
  value zero = LLVMConstInt(m->i64, 0, false), one = LLVMConstInt(m->i64, 1, false);
  LLVMPositionBuilderAtEnd(b, entry);
  LLVMBuildBr(b, loop);
  LLVMPositionBuilderAtEnd(b, loop);
  value result = LLVMBuildPhi(b, m->i64, ""), base = LLVMBuildPhi(b, m->i64, ""), e = LLVMBuildPhi(b, m->i64, "");
  value odd = LLVMBuildTrunc(b, e, m->i1, "");
  value next = LLVMBuildSelect(b, odd, LLVMBuildMul(b, result, base, ""), result, "");
  value rest = LLVMBuildLShr(b, e, one, "");
  value squared = LLVMBuildMul(b, base, base, "");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, rest, zero, ""), done, loop);
  value starts[3] = {one, LLVMGetParam(f, 0), LLVMGetParam(f, 1)}, nexts[3] = {next, squared, rest}, phis[3] = {result, base, e};
  for (int i = 0; i < 3; i++) {
    LLVMAddIncoming(phis[i], &starts[i], &entry, 1);
    LLVMAddIncoming(phis[i], &nexts[i], &loop, 1);
  }
  LLVMPositionBuilderAtEnd(b, done);
  LLVMBuildRet(b, next);
  LLVMDisposeBuilder(b);
  mark_pure(m, f);
  return f;
}
static value power_integer(struct codegen *c, bool is_unsigned, value a, value e) {
  value f = power_function(c->m);
  LLVMTypeRef type = LLVMTypeOf(a), element = scalar_type(a), i64 = c->m->i64;
  value result = LLVMGetPoison(type);
  for (uint32_t lane = 0; lane < width_of(a); lane++) {
    value at = LLVMConstInt(c->m->i32, lane, false), args[2];
    args[0] = is_wide(a) ? LLVMBuildExtractElement(c->b, a, at, "") : a;
    args[1] = is_wide(e) ? LLVMBuildExtractElement(c->b, e, at, "") : e;
    for (int i = 0; i < 2; i++)
      args[i] = is_unsigned ? LLVMBuildZExtOrBitCast(c->b, args[i], i64, "") : LLVMBuildSExtOrBitCast(c->b, args[i], i64, "");
    value r = LLVMBuildTruncOrBitCast(c->b, LLVMBuildCall2(c->b, LLVMGlobalGetValueType(f), f, args, 2, ""), element, "");
    result = is_wide(a) ? LLVMBuildInsertElement(c->b, result, r, at, "") : r;
  }
  if (is_unsigned)
    return result;
  return LLVMBuildSelect(c->b, build_is(c, LLVMIntSLT, e, 0), const_int_like(result, 0), result, "");
}

static value compare_integers(struct codegen *c, enum scalar_op op, bool is_unsigned, value a, value b) {
  switch (op) {
  case SCALAR_EQ: return LLVMBuildICmp(c->b, LLVMIntEQ, a, b, "");
  case SCALAR_NE: return LLVMBuildICmp(c->b, LLVMIntNE, a, b, "");
  case SCALAR_LT: return LLVMBuildICmp(c->b, is_unsigned ? LLVMIntULT : LLVMIntSLT, a, b, "");
  default: return LLVMBuildICmp(c->b, is_unsigned ? LLVMIntULE : LLVMIntSLE, a, b, "");
  }
}
static value pick_integer(struct codegen *c, enum scalar_op op, bool is_unsigned, value a, value b) {
  const char *name = op == SCALAR_MIN ? (is_unsigned ? "llvm.umin" : "llvm.smin") : is_unsigned ? "llvm.umax" : "llvm.smax";
  return call_intrinsic(c, name, LLVMTypeOf(a), (value[]){a, b}, 2);
}

static value emit_integer(struct codegen *c, enum scalar_op op, enum dtype dtype, enum dtype in, value *v) {
  bool u = dtype_is_unsigned(in) || in == DTYPE_BOOL;
  switch (op) {
  case SCALAR_ADD: return LLVMBuildAdd(c->b, v[0], v[1], "");
  case SCALAR_SUB: return LLVMBuildSub(c->b, v[0], v[1], "");
  case SCALAR_MUL: return LLVMBuildMul(c->b, v[0], v[1], "");
  case SCALAR_FMA: return LLVMBuildAdd(c->b, LLVMBuildMul(c->b, v[0], v[1], ""), v[2], "");
  case SCALAR_DIV: return divide(c, u, false, v[0], v[1]);
  case SCALAR_REM: return divide(c, u, true, v[0], v[1]);
  case SCALAR_FLOORDIV: return floor_divide(c, u, false, v[0], v[1]);
  case SCALAR_FLOORMOD: return floor_divide(c, u, true, v[0], v[1]);
  case SCALAR_MIN:
  case SCALAR_MAX: return pick_integer(c, op, u, v[0], v[1]);
  case SCALAR_AND: return LLVMBuildAnd(c->b, v[0], v[1], "");
  case SCALAR_OR: return LLVMBuildOr(c->b, v[0], v[1], "");
  case SCALAR_XOR: return LLVMBuildXor(c->b, v[0], v[1], "");
  case SCALAR_SHL:
  case SCALAR_SHR: return shift(c, op, u, v[0], v[1]);
  case SCALAR_MULHI: return multiply_high(c, v[0], v[1]);
  case SCALAR_NEG: return LLVMBuildNeg(c->b, v[0], "");
  case SCALAR_ABS: return u ? v[0] : LLVMBuildSelect(c->b, build_is(c, LLVMIntSLT, v[0], 0), LLVMBuildNeg(c->b, v[0], ""), v[0], "");
  case SCALAR_NOT: return LLVMBuildNot(c->b, v[0], "");
  case SCALAR_POPCOUNT: {
    value n = call_intrinsic(c, "llvm.ctpop", LLVMTypeOf(v[0]), v, 1);
    return emit_cast(c, dtype, in == DTYPE_BOOL ? DTYPE_BOOL : LLVMGetIntTypeWidth(scalar_type(n)) == 8 ? DTYPE_UINT8 : DTYPE_UINT64, n);
  }
  case SCALAR_EQ:
  case SCALAR_NE:
  case SCALAR_LT:
  case SCALAR_LE: return compare_integers(c, op, u, v[0], v[1]);
  case SCALAR_POW: return power_integer(c, u, v[0], v[1]);
  default: return v[0]; /* rounding: integers are round */
  }
}

/* ---- floats ---- */

/* b where it is smaller (larger), else a; NaN when one is, but for --math fast, where that is one instruction. */
static value pick_float(struct codegen *c, enum scalar_op op, value a, value b) {
  value take = op == SCALAR_MIN ? LLVMBuildFCmp(c->b, LLVMRealOLT, b, a, "") : LLVMBuildFCmp(c->b, LLVMRealOLT, a, b, "");
  value r = LLVMBuildSelect(c->b, take, b, a, "");
  if (c->m->math == MATH_FAST)
    return r;
  return LLVMBuildSelect(c->b, LLVMBuildFCmp(c->b, LLVMRealUNO, b, b, ""), b, r, "");
}
static value floor_mod_float(struct codegen *c, value a, value b) {
  value r = LLVMBuildFRem(c->b, a, b, ""), zero = const_like(a, 0);
  value differ = LLVMBuildXor(c->b, LLVMBuildFCmp(c->b, LLVMRealOLT, r, zero, ""), LLVMBuildFCmp(c->b, LLVMRealOLT, b, zero, ""), "");
  value adjust = LLVMBuildAnd(c->b, LLVMBuildFCmp(c->b, LLVMRealUNE, r, zero, ""), differ, "");
  return LLVMBuildSelect(c->b, adjust, LLVMBuildFAdd(c->b, r, b, ""), r, "");
}
static value call_float_intrinsic(struct codegen *c, const char *name, value *v, int count) {
  return call_intrinsic(c, name, LLVMTypeOf(v[0]), v, count);
}
static value emit_float(struct codegen *c, enum scalar_op op, value *v) {
  switch (op) {
  case SCALAR_ADD: return LLVMBuildFAdd(c->b, v[0], v[1], "");
  case SCALAR_SUB: return LLVMBuildFSub(c->b, v[0], v[1], "");
  case SCALAR_MUL: return LLVMBuildFMul(c->b, v[0], v[1], "");
  case SCALAR_DIV: return LLVMBuildFDiv(c->b, v[0], v[1], "");
  case SCALAR_REM: return LLVMBuildFRem(c->b, v[0], v[1], "");
  case SCALAR_FLOORDIV: {
    value q = LLVMBuildFDiv(c->b, v[0], v[1], "");
    return call_float_intrinsic(c, "llvm.floor", &q, 1);
  }
  case SCALAR_FLOORMOD: return floor_mod_float(c, v[0], v[1]);
  case SCALAR_MIN:
  case SCALAR_MAX: return pick_float(c, op, v[0], v[1]);
  case SCALAR_FMA: return call_float_intrinsic(c, "llvm.fma", v, 3);
  case SCALAR_NEG: return LLVMBuildFNeg(c->b, v[0], "");
  case SCALAR_ABS: return call_float_intrinsic(c, "llvm.fabs", v, 1);
  case SCALAR_FLOOR: return call_float_intrinsic(c, "llvm.floor", v, 1);
  case SCALAR_CEIL: return call_float_intrinsic(c, "llvm.ceil", v, 1);
  case SCALAR_RINT: return call_float_intrinsic(c, "llvm.rint", v, 1);
  case SCALAR_TRUNC: return call_float_intrinsic(c, "llvm.trunc", v, 1);
  case SCALAR_SQRT: return call_float_intrinsic(c, "llvm.sqrt", v, 1);
  case SCALAR_EQ: return LLVMBuildFCmp(c->b, LLVMRealOEQ, v[0], v[1], "");
  case SCALAR_NE: return LLVMBuildFCmp(c->b, LLVMRealUNE, v[0], v[1], "");
  case SCALAR_LT: return LLVMBuildFCmp(c->b, LLVMRealOLT, v[0], v[1], "");
  case SCALAR_LE: return LLVMBuildFCmp(c->b, LLVMRealOLE, v[0], v[1], "");
  default: break;
  }
  value written_out = emit_math(c, op, v);
  return written_out ? written_out : call_libm(c, scalar_text(op), v, scalar_operands(op));
}

/* ---- strings: {data, size} ---- */

static value compare_strings(struct codegen *c, enum scalar_op op, value a, value b) {
  struct cpu_module *m = c->m;
  LLVMTypeRef params[3] = {m->ptr, m->ptr, m->i64}, type = LLVMFunctionType(m->i32, params, 3, false);
  value f = LLVMGetNamedFunction(m->module, "memcmp");
  if (!f)
    f = LLVMAddFunction(m->module, "memcmp", type);
  value size_a = LLVMBuildExtractValue(c->b, a, 1, ""), size_b = LLVMBuildExtractValue(c->b, b, 1, "");
  value shorter = pick_integer(c, SCALAR_MIN, true, size_a, size_b);
  value args[3] = {LLVMBuildExtractValue(c->b, a, 0, ""), LLVMBuildExtractValue(c->b, b, 0, ""), shorter};
  value order = LLVMBuildCall2(c->b, type, f, args, 3, ""), zero = const_int_like(order, 0);
  value same_bytes = LLVMBuildICmp(c->b, LLVMIntEQ, order, zero, "");
  value same = LLVMBuildAnd(c->b, same_bytes, LLVMBuildICmp(c->b, LLVMIntEQ, size_a, size_b, ""), "");
  if (op == SCALAR_EQ)
    return same;
  if (op == SCALAR_NE)
    return LLVMBuildNot(c->b, same, "");
  value by_size = LLVMBuildICmp(c->b, op == SCALAR_LT ? LLVMIntULT : LLVMIntULE, size_a, size_b, "");
  return LLVMBuildSelect(c->b, same_bytes, by_size, LLVMBuildICmp(c->b, LLVMIntSLT, order, zero, ""), "");
}

static value emit_bitcast(struct codegen *c, enum dtype to, enum dtype from, value v) {
  LLVMTypeRef type = like_width(v, type_in_memory(c->m, to));
  if (from == DTYPE_BOOL)
    v = LLVMBuildZExt(c->b, v, like_width(v, c->m->i8), "");
  if (to == DTYPE_BOOL)
    return LLVMBuildICmp(c->b, LLVMIntNE, v, const_int_like(v, 0), "");
  return LLVMBuildBitCast(c->b, v, type, "");
}

/* x to the power of a constant 3, 1/2, -1/2 or -1, as TensorFlow's graph optimizer writes them. (1 and 2 are none: kernel.c.) */
static value emit_power(struct codegen *c, enum dtype dtype, value *v) {
  LLVMBool loses;
  if (c->m->math == MATH_STRICT || (dtype != DTYPE_FLOAT && dtype != DTYPE_DOUBLE) || !LLVMIsAConstantFP(v[1]))
    return NULL;
  double power = LLVMConstRealGetDouble(v[1], &loses);
  value x = power == 0.5 || power == -0.5 ? call_intrinsic(c, "llvm.sqrt", LLVMTypeOf(v[0]), v, 1) : v[0];
  if (power == 3)
    return LLVMBuildFMul(c->b, LLVMBuildFMul(c->b, x, x, ""), x, "");
  if (power == -1 || power == -0.5)
    return LLVMBuildFDiv(c->b, const_like(x, 1), x, "");
  return power == 0.5 ? x : NULL;
}

/* --math fast: x / k as x * (1 / k), where that is a normal number. */
static value emit_scaled(struct codegen *c, enum dtype dtype, value *v) {
  LLVMBool loses;
  if (c->m->math != MATH_FAST || (dtype != DTYPE_FLOAT && dtype != DTYPE_DOUBLE) || !LLVMIsAConstantFP(v[1]))
    return NULL;
  double reciprocal = 1 / LLVMConstRealGetDouble(v[1], &loses);
  if (!(fabs(reciprocal) > 1e-30 && fabs(reciprocal) < 1e30))
    return NULL;
  return LLVMBuildFMul(c->b, v[0], const_like(v[0], reciprocal), "");
}

/* A shorter form for what one operand is a constant of; NULL: none. */
static value emit_with_constant(struct codegen *c, enum scalar_op op, enum dtype dtype, value *v) {
  return op == SCALAR_POW ? emit_power(c, dtype, v) : op == SCALAR_DIV ? emit_scaled(c, dtype, v) : NULL;
}

value emit_scalar(struct codegen *c, enum scalar_op op, enum dtype dtype, enum dtype in, value *v) {
  int count = scalar_operands(op);
  if (op == SCALAR_SELECT) {
    match_width(c, v + 1, 2);
    if (is_wide(v[0]))
      match_width(c, v, 3);
    return LLVMBuildSelect(c->b, v[0], v[1], v[2], "");
  }
  if (op == SCALAR_CAST)
    return emit_cast(c, dtype, in, v[0]);
  if (op == SCALAR_BITCAST)
    return emit_bitcast(c, dtype, in, v[0]);
  value shorter = emit_with_constant(c, op, dtype, v);
  if (shorter)
    return shorter;
  match_width(c, v, count);
  if (in == DTYPE_STRING)
    return compare_strings(c, op, v[0], v[1]);
  if (!dtype_is_float(in))
    return emit_integer(c, op, dtype, in, v);
  for (int i = 0; i < count; i++)
    v[i] = float_of(c, in, v[i]);
  value r = emit_float(c, op, v);
  return dtype_is_float(dtype) ? rounded_to(c, dtype, r) : r;
}
