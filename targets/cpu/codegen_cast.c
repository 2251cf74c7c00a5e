/* codegen_cast.c: conversions between dtypes, to the letter of scalars.def.
 *
 * bfloat16 is kept as its bits and rounded by integer arithmetic, so that no CPU needs a library call for it. */
#include "targets/cpu/codegen.h"

static LLVMTypeRef like(value v, LLVMTypeRef element) {
  return is_wide(v) ? LLVMVectorType(element, LLVMGetVectorSize(LLVMTypeOf(v))) : element;
}

static value float_of_bfloat16(struct codegen *c, value v) {
  value bits = LLVMBuildZExt(c->b, v, like(v, c->m->i32), "");
  return LLVMBuildBitCast(c->b, LLVMBuildShl(c->b, bits, const_int_like(bits, 16), ""), like(v, c->m->f32), "");
}
/* To nearest even: adds half of the last place, less one where the place is even; NaN keeps its top bits, made quiet. */
static value bfloat16_of_float(struct codegen *c, value v) {
  value bits = LLVMBuildBitCast(c->b, v, like(v, c->m->i32), "");
  value high = LLVMBuildLShr(c->b, bits, const_int_like(bits, 16), "");
  value odd = LLVMBuildAnd(c->b, high, const_int_like(bits, 1), "");
  value sum = LLVMBuildAdd(c->b, bits, LLVMBuildAdd(c->b, odd, const_int_like(bits, 0x7fff), ""), "");
  value rounded = LLVMBuildLShr(c->b, sum, const_int_like(bits, 16), "");
  value quiet = LLVMBuildOr(c->b, high, const_int_like(bits, 0x40), "");
  value r = LLVMBuildSelect(c->b, LLVMBuildFCmp(c->b, LLVMRealUNO, v, v, ""), quiet, rounded, "");
  return LLVMBuildTrunc(c->b, r, like(v, c->m->i16), "");
}

value float_of(struct codegen *c, enum dtype dtype, value v) {
  if (dtype == DTYPE_BFLOAT16)
    return float_of_bfloat16(c, v);
  return dtype == DTYPE_HALF ? LLVMBuildFPExt(c->b, v, like(v, c->m->f32), "") : v;
}
value rounded_to(struct codegen *c, enum dtype dtype, value v) {
  if (dtype == DTYPE_BFLOAT16)
    return bfloat16_of_float(c, v);
  return dtype == DTYPE_HALF ? LLVMBuildFPTrunc(c->b, v, like(v, c->m->f16), "") : v;
}

/* low <= v < high (both exact in v's type), low itself allowed only when `closed` */
static value in_range(struct codegen *c, value v, double low, double high, bool closed) {
  value above = LLVMBuildFCmp(c->b, closed ? LLVMRealOGE : LLVMRealOGT, v, const_like(v, low), "");
  return LLVMBuildAnd(c->b, above, LLVMBuildFCmp(c->b, LLVMRealOLT, v, const_like(v, high), ""), "");
}
static value to_signed(struct codegen *c, value v, LLVMTypeRef element, value inside) {
  value r = LLVMBuildFPToSI(c->b, v, like(v, element), "");
  int64_t least = LLVMGetIntTypeWidth(element) == 64 ? INT64_MIN : INT32_MIN;
  return LLVMBuildSelect(c->b, inside, r, const_int_like(r, least), "");
}
static value integer_of_float(struct codegen *c, enum dtype to, value v) {
  struct cpu_module *m = c->m;
  LLVMTypeRef element = LLVMTypeOf(v);
  if (is_wide(v))
    element = LLVMGetElementType(element);
  if (to == DTYPE_BOOL)
    return LLVMBuildFCmp(c->b, LLVMRealUNE, v, const_like(v, 0), "");
  if (to == DTYPE_INT64)
    return to_signed(c, v, m->i64, in_range(c, v, -0x1p63, 0x1p63, true));
  if (to == DTYPE_UINT64) {
    value r = to_signed(c, v, m->i64, in_range(c, v, -0x1p63, 0x1p63, false));
    value upper = LLVMBuildFPToUI(c->b, v, like(v, m->i64), "");
    return LLVMBuildSelect(c->b, in_range(c, v, 0x1p63, 0x1p64, true), upper, r, "");
  }
  if (to == DTYPE_UINT32)
    return LLVMBuildTrunc(c->b, to_signed(c, v, m->i64, in_range(c, v, -0x1p63, 0x1p63, false)), like(v, m->i32), "");
  value inside = element == m->f32 ? in_range(c, v, -2147483648.0, 2147483648.0, true) : in_range(c, v, -2147483649.0, 2147483648.0, false);
  value r = to_signed(c, v, m->i32, inside);
  return dtype_size(to) == 4 ? r : LLVMBuildTrunc(c->b, r, like(v, type_in_memory(m, to)), "");
}

static value integer_of_integer(struct codegen *c, enum dtype to, enum dtype from, value v) {
  LLVMTypeRef type = like(v, type_of_dtype(c->m, to));
  if (to == DTYPE_BOOL)
    return from == DTYPE_BOOL ? v : LLVMBuildICmp(c->b, LLVMIntNE, v, const_int_like(v, 0), "");
  size_t from_size = from == DTYPE_BOOL ? 0 : dtype_size(from);
  if (dtype_size(to) < from_size)
    return LLVMBuildTrunc(c->b, v, type, "");
  if (dtype_size(to) == from_size)
    return v;
  return dtype_is_signed(from) || from == DTYPE_QINT8 || from == DTYPE_QINT16 || from == DTYPE_QINT32 ? LLVMBuildSExt(c->b, v, type, "")
                                                                                                      : LLVMBuildZExt(c->b, v, type, "");
}

value emit_cast(struct codegen *c, enum dtype to, enum dtype from, value v) {
  struct cpu_module *m = c->m;
  if (!dtype_is_float(from) && !dtype_is_float(to))
    return integer_of_integer(c, to, from, v);
  if (!dtype_is_float(from)) {
    LLVMTypeRef type = like(v, to == DTYPE_DOUBLE ? m->f64 : m->f32);
    bool is_unsigned = dtype_is_unsigned(from) || from == DTYPE_BOOL || from == DTYPE_QUINT8 || from == DTYPE_QUINT16;
    value r = is_unsigned ? LLVMBuildUIToFP(c->b, v, type, "") : LLVMBuildSIToFP(c->b, v, type, "");
    return rounded_to(c, to, r);
  }
  v = float_of(c, from, v);
  if (!dtype_is_float(to))
    return integer_of_float(c, to, v);
  if (from == DTYPE_DOUBLE && to != DTYPE_DOUBLE)
    v = LLVMBuildFPTrunc(c->b, v, like(v, m->f32), "");
  if (from != DTYPE_DOUBLE && to == DTYPE_DOUBLE)
    return LLVMBuildFPExt(c->b, v, like(v, m->f64), "");
  return rounded_to(c, to, v);
}
