/* cuda_prelude.c: the scalar operations as device functions, NAME_DTYPE. In the templates $T is the C type, $U the unsigned
 * type to compute in, $S the dtype's short name, $W its width in bits, $F the suffix of libm's functions. */
#include <string.h>

#include "targets/cuda/cuda.h"

static const char head[] =
  "/* floats that only a reduction may fuse: compile with --fmad=false */\n"
  "typedef struct { unsigned short bits; } f16;\n"
  "typedef struct { unsigned short bits; } bf16;\n"
  "struct tfc_fault { int code, check; long long shown[3]; };\n"
  "static __device__ float f32_bits(unsigned u) { union { unsigned u; float f; } x; x.u = u; return x.f; }\n"
  "static __device__ unsigned bits_f32(float f) { union { unsigned u; float f; } x; x.f = f; return x.u; }\n"
  "static __device__ double f64_bits(unsigned long long u) { union { unsigned long long u; double f; } x; x.u = u; return x.f; }\n"
  "static __device__ unsigned long long bits_f64(double f) { union { unsigned long long u; double f; } x; x.f = f; return x.u; }\n"
  "static __device__ f16 f16_bits(unsigned u) { f16 r; r.bits = (unsigned short)u; return r; }\n"
  "static __device__ bf16 bf16_bits(unsigned u) { bf16 r; r.bits = (unsigned short)u; return r; }\n"
  "static __device__ float f32_of_bf16(bf16 v) { return f32_bits((unsigned)v.bits << 16); }\n"
  "static __device__ bf16 bf16_of_f32(float v) {\n"
  "  unsigned u = bits_f32(v);\n"
  "  return bf16_bits(v != v ? u >> 16 | 0x40u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);\n"
  "}\n"
  "static __device__ float f32_of_f16(f16 v) {\n"
  "  unsigned sign = (unsigned)(v.bits & 0x8000u) << 16, e = v.bits >> 10 & 31u, m = v.bits & 0x3ffu;\n"
  "  if (e == 31u) return f32_bits(sign | 0x7f800000u | m << 13);\n"
  "  if (e == 0u) { float f = (float)m * 0x1p-24f; return sign ? -f : f; }\n"
  "  return f32_bits(sign | (e + 112u) << 23 | m << 13);\n"
  "}\n"
  "static __device__ f16 f16_of_f32(float v) {\n"
  "  unsigned u = bits_f32(v), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;\n"
  "  if (a > 0x7f800000u) return f16_bits(sign | 0x7e00u);\n"
  "  if (a >= 0x477ff000u) return f16_bits(sign | 0x7c00u);\n"
  "  if (a < 0x38800000u) { float f = f32_bits(a) + 0.5f; return f16_bits(sign | (bits_f32(f) - 0x3f000000u)); }\n"
  "  return f16_bits(sign | (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13);\n"
  "}\n"
  "static __device__ int i32_of_f64(double v) { return v > -2147483649.0 && v < 2147483648.0 ? (int)v : (-2147483647 - 1); }\n"
  "static __device__ long long i64_of_f64(double v) {\n"
  "  return v >= -0x1p63 && v < 0x1p63 ? (long long)v : (-9223372036854775807LL - 1);\n"
  "}\n"
  "static __device__ unsigned u32_of_f64(double v) { return (unsigned)i64_of_f64(v); }\n"
  "static __device__ unsigned long long u64_of_f64(double v) {\n"
  "  return v >= 0x1p63 && v < 0x1p64 ? (unsigned long long)v : (unsigned long long)i64_of_f64(v);\n"
  "}\n"
  "static __device__ void tfc_fail(struct tfc_fault *fault, int code, int check, long long a, long long b, long long c) {\n"
  "  if (atomicCAS(&fault->code, 0, code) == 0) { fault->check = check; fault->shown[0] = a; fault->shown[1] = b; fault->shown[2] = c; }\n"
  "}\n"
  "static __device__ bool and_bool(bool a, bool b) { return a && b; }\n"
  "static __device__ bool or_bool(bool a, bool b) { return a || b; }\n"
  "static __device__ bool xor_bool(bool a, bool b) { return a != b; }\n"
  "static __device__ bool not_bool(bool a) { return !a; }\n"
  "static __device__ bool eq_bool(bool a, bool b) { return a == b; }\n"
  "static __device__ bool ne_bool(bool a, bool b) { return a != b; }\n"
  "static __device__ bool lt_bool(bool a, bool b) { return !a && b; }\n"
  "static __device__ bool le_bool(bool a, bool b) { return !a || b; }\n"
  "static __device__ bool min_bool(bool a, bool b) { return a && b; }\n"
  "static __device__ bool max_bool(bool a, bool b) { return a || b; }\n"
  "static __device__ unsigned mulhi_u32(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }\n"
  "static __device__ unsigned long long mulhi_u64(unsigned long long a, unsigned long long b) {\n"
  "  unsigned long long al = a & 0xffffffffu, ah = a >> 32, bl = b & 0xffffffffu, bh = b >> 32;\n"
  "  unsigned long long m = ah * bl + (al * bl >> 32), n = al * bh + (m & 0xffffffffu);\n"
  "  return ah * bh + (m >> 32) + (n >> 32);\n"
  "}\n";

static const char integers[] =
  "static __device__ $T add_$S($T a, $T b) { return ($T)(($U)a + ($U)b); }\n"
  "static __device__ $T sub_$S($T a, $T b) { return ($T)(($U)a - ($U)b); }\n"
  "static __device__ $T mul_$S($T a, $T b) { return ($T)(($U)a * ($U)b); }\n"
  "static __device__ $T fma_$S($T a, $T b, $T c) { return ($T)(($U)a * ($U)b + ($U)c); }\n"
  "static __device__ $T neg_$S($T a) { return ($T)(0 - ($U)a); }\n"
  "static __device__ $T not_$S($T a) { return ($T)~a; }\n"
  "static __device__ $T and_$S($T a, $T b) { return ($T)(a & b); }\n"
  "static __device__ $T or_$S($T a, $T b) { return ($T)(a | b); }\n"
  "static __device__ $T xor_$S($T a, $T b) { return ($T)(a ^ b); }\n"
  "static __device__ $T min_$S($T a, $T b) { return b < a ? b : a; }\n"
  "static __device__ $T max_$S($T a, $T b) { return a < b ? b : a; }\n"
  "static __device__ $T shl_$S($T a, $T b) { return ($T)(($U)a << ((unsigned long long)b < $W ? (int)b : $W - 1)); }\n"
  "static __device__ $T shr_$S($T a, $T b) { return ($T)(a >> ((unsigned long long)b < $W ? (int)b : $W - 1)); }\n"
  "static __device__ unsigned char popcount_$S($T a) {\n"
  "  unsigned long long u = (unsigned long long)a & (~0ULL >> (64 - $W));\n"
  "  unsigned char n = 0;\n"
  "  for (; u; u &= u - 1) n++;\n"
  "  return n;\n"
  "}\n"
  "static __device__ bool eq_$S($T a, $T b) { return a == b; }\n"
  "static __device__ bool ne_$S($T a, $T b) { return a != b; }\n"
  "static __device__ bool lt_$S($T a, $T b) { return a < b; }\n"
  "static __device__ bool le_$S($T a, $T b) { return a <= b; }\n"
  "static __device__ $T floor_$S($T a) { return a; }\n"
  "static __device__ $T ceil_$S($T a) { return a; }\n"
  "static __device__ $T rint_$S($T a) { return a; }\n"
  "static __device__ $T trunc_$S($T a) { return a; }\n";

static const char signed_integers[] =
  "static __device__ $T abs_$S($T a) { return a < 0 ? ($T)(0 - ($U)a) : a; }\n"
  "static __device__ $T div_$S($T a, $T b) { return b == 0 ? ($T)0 : b == -1 ? neg_$S(a) : ($T)(a / b); }\n"
  "static __device__ $T rem_$S($T a, $T b) { return b == 0 || b == -1 ? ($T)0 : ($T)(a % b); }\n"
  "static __device__ $T floordiv_$S($T a, $T b) {\n"
  "  $T q = div_$S(a, b), r = rem_$S(a, b);\n"
  "  return r != 0 && (r < 0) != (b < 0) ? ($T)(q - 1) : q;\n"
  "}\n"
  "static __device__ $T floormod_$S($T a, $T b) { $T r = rem_$S(a, b); return r != 0 && (r < 0) != (b < 0) ? ($T)(r + b) : r; }\n"
  "static __device__ $T pow_$S($T a, $T b) {\n"
  "  $T r = 1;\n"
  "  if (b < 0) return 0;\n"
  "  for (; b; b = ($T)(b >> 1), a = mul_$S(a, a)) if (b & 1) r = mul_$S(r, a);\n"
  "  return r;\n"
  "}\n";

static const char unsigned_integers[] = "static __device__ $T abs_$S($T a) { return a; }\n"
                                        "static __device__ $T div_$S($T a, $T b) { return b == 0 ? ($T)0 : ($T)(a / b); }\n"
                                        "static __device__ $T rem_$S($T a, $T b) { return b == 0 ? ($T)0 : ($T)(a % b); }\n"
                                        "static __device__ $T floordiv_$S($T a, $T b) { return div_$S(a, b); }\n"
                                        "static __device__ $T floormod_$S($T a, $T b) { return rem_$S(a, b); }\n"
                                        "static __device__ $T pow_$S($T a, $T b) {\n"
                                        "  $T r = 1;\n"
                                        "  for (; b; b = ($T)(b >> 1), a = mul_$S(a, a)) if (b & 1) r = mul_$S(r, a);\n"
                                        "  return r;\n"
                                        "}\n";

static const char floats[] =
  "static __device__ $T add_$S($T a, $T b) { return a + b; }\n"
  "static __device__ $T sub_$S($T a, $T b) { return a - b; }\n"
  "static __device__ $T mul_$S($T a, $T b) { return a * b; }\n"
  "static __device__ $T div_$S($T a, $T b) { return a / b; }\n"
  "static __device__ $T fma_$S($T a, $T b, $T c) { return fma$F(a, b, c); }\n"
  "static __device__ $T rem_$S($T a, $T b) { return fmod$F(a, b); }\n"
  "static __device__ $T floordiv_$S($T a, $T b) { return floor$F(a / b); }\n"
  "static __device__ $T floormod_$S($T a, $T b) { $T r = fmod$F(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }\n"
  "static __device__ $T min_$S($T a, $T b) { return b != b ? b : b < a ? b : a; }\n"
  "static __device__ $T max_$S($T a, $T b) { return b != b ? b : a < b ? b : a; }\n"
  "static __device__ $T neg_$S($T a) { return -a; }\n"
  "static __device__ $T abs_$S($T a) { return fabs$F(a); }\n"
  "static __device__ bool eq_$S($T a, $T b) { return a == b; }\n"
  "static __device__ bool ne_$S($T a, $T b) { return a != b; }\n"
  "static __device__ bool lt_$S($T a, $T b) { return a < b; }\n"
  "static __device__ bool le_$S($T a, $T b) { return a <= b; }\n";

static const char float_function[] = "static __device__ $T $N_$S($T a) { return $N$F(a); }\n";
static const char float_function2[] = "static __device__ $T $N_$S($T a, $T b) { return $N$F(a, b); }\n";
static const char half_function[] = "static __device__ $S $N_$S($S a) { return $S_of_f32($N_f32(f32_of_$S(a))); }\n";
static const char half_function2[] = "static __device__ $S $N_$S($S a, $S b) { return $S_of_f32($N_f32(f32_of_$S(a), f32_of_$S(b))); }\n";
static const char half_function3[] =
  "static __device__ $S $N_$S($S a, $S b, $S c) { return $S_of_f32($N_f32(f32_of_$S(a), f32_of_$S(b), f32_of_$S(c))); }\n";
static const char half_compare[] = "static __device__ bool $N_$S($S a, $S b) { return $N_f32(f32_of_$S(a), f32_of_$S(b)); }\n";

struct substitution {
  const char *type, *compute, *dtype, *width, *suffix, *name;
};
static void print_template(FILE *out, const char *text, const struct substitution *s) {
  for (; *text; text++) {
    if (*text != '$') {
      fputc(*text, out);
      continue;
    }
    text++;
    fputs(*text == 'T'   ? s->type
          : *text == 'U' ? s->compute
          : *text == 'S' ? s->dtype
          : *text == 'W' ? s->width
          : *text == 'F' ? s->suffix
                         : s->name,
          out);
  }
}

static bool is_float_only(enum scalar_op op) { return op >= SCALAR_FLOOR && op <= SCALAR_NEXTAFTER; }

static void print_float_functions(FILE *out, struct substitution s) {
  for (int op = SCALAR_FLOOR; op <= SCALAR_NEXTAFTER; op++) {
    s.name = scalar_text(op);
    print_template(out, scalar_operands(op) == 1 ? float_function : float_function2, &s);
  }
}
static void print_half_functions(FILE *out, struct substitution s) {
  for (int op = SCALAR_ADD; op < SCALAR_OP_COUNT; op++) {
    bool compares = op >= SCALAR_EQ && op <= SCALAR_LE;
    bool arithmetic = (op >= SCALAR_ADD && op <= SCALAR_MAX) || op == SCALAR_FMA || op == SCALAR_NEG || op == SCALAR_ABS;
    if (!compares && !arithmetic && !is_float_only(op))
      continue;
    s.name = scalar_text(op);
    const char *const by_count[] = {half_function, half_function2, half_function3};
    print_template(out, compares ? half_compare : by_count[scalar_operands(op) - 1], &s);
  }
}

void cuda_print_prelude(FILE *out) {
  static const struct substitution ints[] = {
    {"signed char", "unsigned", "i8", "8", "", ""},   {"short", "unsigned", "i16", "16", "", ""},
    {"int", "unsigned", "i32", "32", "", ""},         {"long long", "unsigned long long", "i64", "64", "", ""},
    {"unsigned char", "unsigned", "u8", "8", "", ""}, {"unsigned short", "unsigned", "u16", "16", "", ""},
    {"unsigned", "unsigned", "u32", "32", "", ""},    {"unsigned long long", "unsigned long long", "u64", "64", "", ""},
  };
  static const struct substitution reals[] = {{"float", "", "f32", "32", "f", ""}, {"double", "", "f64", "64", "", ""}};
  static const struct substitution halves[] = {{"f16", "", "f16", "16", "", ""}, {"bf16", "", "bf16", "16", "", ""}};
  fputs(head, out);
  for (int i = 0; i < 8; i++) {
    print_template(out, integers, &ints[i]);
    print_template(out, i < 4 ? signed_integers : unsigned_integers, &ints[i]);
  }
  for (int i = 0; i < 2; i++) {
    print_template(out, floats, &reals[i]);
    print_float_functions(out, reals[i]);
  }
  for (int i = 0; i < 2; i++)
    print_half_functions(out, halves[i]);
}
