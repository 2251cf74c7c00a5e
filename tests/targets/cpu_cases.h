/* cpu_cases.h: kernels that every target must run as the evaluator does, each with sizes to run it with. */
#ifndef TFC_TESTS_CPU_CASES_H
#define TFC_TESTS_CPU_CASES_H

struct text_case {
  const char *text;
  int64_t sizes[6][3]; /* up to six bindings; the first of -1 ends them */
};
#define ONCE    \
  {             \
    {0}, { -1 } \
  }
#define SIZES                           \
  {                                     \
    {0}, {1}, {7}, {64}, {1009}, { -1 } \
  }
#define PAIRS                                          \
  {                                                    \
    {0, 5}, {3, 0}, {1, 1}, {5, 17}, {37, 129}, { -1 } \
  }

static const struct text_case texts[] = {
  /* element-wise, with rows, broadcasts and symbolic sizes */
  {"kernel map(in a: f32[n0], out b: f32[n0]) sizes 1 { par i0 < n0 { b[i0] = div(1:f32, add(1:f32, exp(neg(a[i0])))) } }", SIZES},
  {"kernel bias(in a: f32[n0,n1], in b: f32[n1], out c: f32[n0,n1]) sizes 2 { par i0 < n0 { par i1 < n1 {"
   " c[i0,i1] = max(add(a[i0,i1], b[i1]), 0:f32) } } }",
   PAIRS},
  {"kernel rank4(in a: f32[n0,3,5,n1], in b: f32[5,1], out c: f32[n0,3,5,n1]) sizes 2 { par i0 < n0 { par i1 < 3 { par i2 < 5 { "
   "par i3 < n1 {"
   " c[i0,i1,i2,i3] = mul(a[i0,i1,i2,i3], b[i2,0]) } } } } }",
   PAIRS},
  {"kernel transpose(in a: f32[n0,n1], out b: f32[n1,n0]) sizes 2 { par i0 < n1 { par i1 < n0 { b[i0,i1] = a[i1,i0] } } }", PAIRS},
  {"kernel reverse(in a: f64[n0], out b: f64[n0]) sizes 1 { par i0 < n0 { b[i0] = a[sub(sub(n0, 1), i0)] } }", SIZES},
  {"kernel stride(in a: i16[2000], out b: i16[n0]) sizes 1 { par i0 < min(n0, 1000) { b[i0] = a[mul(i0, 2)] }"
   " par i1 < sub(n0, min(n0, 1000)) { b[add(i1, 1000)] = 3:i16 } }",
   SIZES},
  {"kernel select(in a: f32[n0], in b: bool[n0], out c: f32[n0], out d: bool[n0]) sizes 1 { par i0 < n0 {"
   " c[i0] = select(b[i0], a[i0], neg(a[i0])) d[i0] = and(b[i0], lt(a[i0], 0:f32)) } }",
   SIZES},
  {"kernel update(inout a: f32[n0], in b: f32[n0]) sizes 1 { par i0 < n0 { a[i0] = sub(a[i0], mul(0x1.47ae14p-7:f32, b[i0])) } }", SIZES},
  {"kernel adam(inout a: f32[n0], inout b: f32[n0], inout c: f32[n0], in d: f32[n0], in e: f32[]) sizes 1 { par i0 < n0 {"
   " b[i0] = add(b[i0], mul(sub(d[i0], b[i0]), 0x1.99999ap-4:f32))"
   " c[i0] = add(c[i0], mul(sub(mul(d[i0], d[i0]), c[i0]), 0x1.99999ap-4:f32))"
   " a[i0] = sub(a[i0], div(mul(e[], b[i0]), add(sqrt(abs(c[i0])), 0x1p-10:f32))) } }",
   SIZES},
  {"kernel half(in a: f16[n0], in b: f16[n0], out c: f16[n0]) sizes 1 { par i0 < n0 { c[i0] = add(mul(a[i0], b[i0]), exp(a[i0])) } }",
   SIZES},
  {"kernel brain(in a: bf16[n0], in b: bf16[n0], out c: bf16[n0]) sizes 1 { par i0 < n0 { c[i0] = sub(mul(a[i0], b[i0]), a[i0]) } }",
   SIZES},
  {"kernel integers(in a: i32[n0], in b: i32[n0], out c: i32[n0]) sizes 1 { par i0 < n0 {"
   " c[i0] = add(floordiv(a[i0], b[i0]), mul(floormod(a[i0], b[i0]), add(div(a[i0], 3:i32), rem(a[i0], 3:i32)))) } }",
   SIZES},
  {"kernel flat(in a: f32[n0,7], out b: f32[7,n0]) sizes 1 { par i0 < mul(7, n0) {"
   " b[floordiv(i0, n0),floormod(i0, n0)] = a[floordiv(i0, 7),floormod(i0, 7)] } }",
   SIZES},

  /* complex parts */
  {"kernel product(in a: c64[n0], in b: c64[n0], out c: c64[n0]) sizes 1 { par i0 < n0 {"
   " c.re[i0] = sub(mul(a.re[i0], b.re[i0]), mul(a.im[i0], b.im[i0]))"
   " c.im[i0] = add(mul(a.re[i0], b.im[i0]), mul(a.im[i0], b.re[i0])) } }",
   SIZES},
  {"kernel conjugate(in a: c128[n0,n1], out b: c128[n1,n0]) sizes 2 { par i0 < n1 { par i1 < n0 {"
   " b.re[i0,i1] = a.re[i1,i0] b.im[i0,i1] = neg(a.im[i1,i0]) } } }",
   PAIRS},

  /* strings */
  {"kernel words(in a: str[n0], in b: str[n0], out c: bool[n0], out d: str[n0], out e: bool[n0]) sizes 1 { par i0 < n0 {"
   " c[i0] = lt(a[i0], b[i0]) e[i0] = eq(a[i0], b[i0]) d[i0] = select(ne(a[i0], b[i0]), a[i0], \"\":str) } }",
   SIZES},

  /* reductions over rows, columns, everything */
  {"kernel rowsum(in a: f32[n0,n1], out b: f32[n0]) sizes 2 { par i0 < n0 { var v0: f32 = 0:f32 red i1 < n1 { v0 = add(v0, a[i0,i1]) }"
   " b[i0] = v0 } }",
   PAIRS},
  {"kernel colsum(in a: f32[n0,n1], out b: f32[n1]) sizes 2 { par i0 < n1 { var v0: f32 = 0:f32 red i1 < n0 { v0 = add(v0, a[i1,i0]) }"
   " b[i0] = div(v0, 3:f32) } }",
   PAIRS},
  {"kernel total(in a: f32[n0,n1], out b: f32[]) sizes 2 { var v0: f32 = 0:f32 red i0 < n0 { red i1 < n1 { v0 = add(v0, "
   "mul(a[i0,i1], a[i0,i1])) } }"
   " b[] = sqrt(v0) }",
   PAIRS},
  {"kernel rowmax(in a: f32[n0,n1], out b: f32[n0], out c: f32[n0]) sizes 2 { par i0 < n0 { var v0: f32 = -inf:f32 var v1: f32 = inf:f32"
   " red i1 < n1 { v0 = max(v0, a[i0,i1]) v1 = min(a[i0,i1], v1) } b[i0] = v0 c[i0] = v1 } }",
   PAIRS},
  {"kernel mean64(in a: f64[n0,n1], out b: f64[n0]) sizes 2 { par i0 < n0 { var v0: f64 = 0:f64 red i1 < n1 { v0 = add(a[i0,i1], v0) }"
   " b[i0] = div(v0, cast.f64(n1)) } }",
   PAIRS},
  {"kernel anyall(in a: bool[n0,n1], out b: bool[n0], out c: bool[n0]) sizes 2 { par i0 < n0 { var v0: bool = false var v1: bool = true"
   " red i1 < n1 { v0 = or(v0, a[i0,i1]) v1 = and(v1, a[i0,i1]) } b[i0] = v0 c[i0] = v1 } }",
   PAIRS},
  {"kernel intsum(in a: i32[n0,n1], out b: i32[n0], out c: i64[n0]) sizes 2 { par i0 < n0 { var v0: i32 = 0:i32 var v1: i64 = 5"
   " red i1 < n1 { v0 = add(v0, a[i0,i1]) v1 = mul(v1, cast.i64(add(a[i0,i1], 11:i32))) } b[i0] = v0 c[i0] = v1 } }",
   PAIRS},
  {"kernel argmax(in a: f32[n0,n1], out b: i64[n0]) sizes 2 { par i0 < n0 { var v0: f32 = -inf:f32 var v1: i64 = 0 red i1 < n1 {"
   " if lt(v0, a[i0,i1]) { v0 = a[i0,i1] v1 = i1 } } b[i0] = v1 } }",
   PAIRS},
  {"kernel halfsum(in a: f16[n0,n1], out b: f16[n0]) sizes 2 { par i0 < n0 { var v0: f32 = 0:f32 red i1 < n1 { v0 = add(v0, "
   "cast.f32(a[i0,i1])) }"
   " b[i0] = cast.f16(v0) } }",
   PAIRS},

  /* several loops in a row */
  {"kernel softmax(in a: f32[n0,n1], out b: f32[n0,n1]) sizes 2 { par i0 < n0 { var v0: f32 = -inf:f32 red i1 < n1 { v0 = "
   "max(v0, a[i0,i1]) }"
   " var v1: f32 = 0:f32 red i2 < n1 { v1 = add(v1, exp(sub(a[i0,i2], v0))) } par i3 < n1 { b[i0,i3] = div(exp(sub(a[i0,i3], "
   "v0)), v1) } } }",
   PAIRS},
  {"kernel phases(in a: f32[n0,n1], out b: f32[n0,n1], scratch c: f32[n1]) sizes 2 { par i0 < n1 { var v0: f32 = 0:f32"
   " red i1 < n0 { v0 = add(v0, a[i1,i0]) } c[i0] = v0 } par i2 < n0 { par i3 < n1 { b[i2,i3] = sub(a[i2,i3], c[i3]) } } }",
   PAIRS},
  {"kernel cumsum(in a: f32[n0,n1], out b: f32[n0,n1]) sizes 2 { par i0 < n0 { var v0: f32 = 0:f32 seq i1 < n1 { v0 = add(v0, a[i0,i1])"
   " b[i0,i1] = v0 } } }",
   PAIRS},
  {"kernel scatter(inout a: f32[21], in b: i32[n0], in c: f32[n0]) sizes 1 { seq i0 < n0 {"
   " a[add(cast.i64(b[i0]), 10)] = add(a[add(cast.i64(b[i0]), 10)], c[i0]) } }",
   SIZES},
  {"kernel bisect(in a: f64[n0], out b: i64[n0]) sizes 1 { par i0 < n0 { var v0: i64 = 0 var v1: i64 = n0 while lt(v0, v1) {"
   " if lt(cast.i64(mul(a[i0], 100:f64)), floordiv(add(v0, v1), 2)) { v1 = floordiv(add(v0, v1), 2) }"
   " else { v0 = add(floordiv(add(v0, v1), 2), 1) } } b[i0] = v0 } }",
   SIZES},
  {"kernel series(in a: f64[n0,n1], out b: f64[n0,n1]) sizes 2 { par i0 < n0 { par i1 < n1 { var v0: f64 = 1:f64 var v1: f64 = 0:f64"
   " var v2: i64 = 0 if lt(0:f64, a[i0,i1]) { while and(lt(0x1p-20:f64, v0), lt(v2, 40)) { v0 = mul(v0, a[i0,i1]) v1 = add(v1, v0)"
   " v2 = add(v2, 1) while lt(3:f64, v1) { v1 = sub(v1, 1:f64) } } } else { v1 = a[i0,i1] } b[i0,i1] = add(v1, cast.f64(v2)) } } }",
   PAIRS},
  {"kernel triangle(in a: f32[n0,n0], out b: f32[n0]) sizes 1 { par i0 < n0 { var v0: f32 = 0:f32 red i1 < i0 { v0 = add(v0, a[i0,i1]) }"
   " b[i0] = v0 } }",
   {{0}, {1}, {7}, {64}, {-1}}},
  {"kernel conditional(in a: f32[n0], out b: f32[n0]) sizes 1 { par i0 < n0 { if lt(a[i0], 0:f32) { b[i0] = 1:f32 } else { "
   "b[i0] = a[i0] } } }",
   SIZES},
  {"kernel pad(in a: f32[n0,n1], out b: f32[n0,n1]) sizes 2 { par i0 < n0 { par i1 < n1 {"
   " b[i0,i1] = select(le(1, i1), a[i0,max(sub(i1, 1), 0)], 0:f32) } } }",
   PAIRS},
  {"kernel gather(in a: f32[21,n1], in b: i32[n0], out c: f32[n0,n1]) sizes 2 { par i0 < n0 { par i1 < n1 {"
   " check le(b[i0], 10:i32) else INVALID_ARGUMENT \"%d\": cast.i64(b[i0]) c[i0,i1] = a[add(cast.i64(b[i0]), 10),i1] } } }",
   PAIRS},

  /* contractions and windows */
  {"kernel dot(in a: f32[n0,n1], in b: f32[n1,n2], out c: f32[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f32 = 0:f32"
   " red i2 < n1 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
   {{0, 3, 4}, {3, 0, 4}, {1, 1, 1}, {5, 17, 9}, {33, 65, 129}, {-1}}},
  {"kernel conv(in a: f32[2,9,9,3], in b: f32[3,3,3,n0], out c: f32[2,9,9,n0]) sizes 1 { par i0 < 2 { par i1 < 9 { par i2 < 9 { "
   "par i3 < n0 {"
   " var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { red i6 < 3 {"
   " %0 = add(i1, sub(i4, 1)) %1 = add(i2, sub(i5, 1))"
   " v0 = add(v0, mul(select(and(and(le(0, %0), lt(%0, 9)), and(le(0, %1), lt(%1, 9))), a[i0,min(max(%0, 0), 8),min(max(%1, 0), "
   "8),i6], 0:f32),"
   " b[i4,i5,i6,i3])) } } } c[i0,i1,i2,i3] = max(v0, 0:f32) } } } } }",
   {{1}, {8}, {33}, {64}, {-1}}},
  {"kernel maxpool(in a: f32[2,8,8,n0], out b: f32[2,4,4,n0]) sizes 1 { par i0 < 2 { par i1 < 4 { par i2 < 4 { par i3 < n0 { "
   "var v0: f32 = -inf:f32"
   " red i4 < 2 { red i5 < 2 { v0 = max(v0, a[i0,add(mul(i1, 2), i4),add(mul(i2, 2), i5),i3]) } } b[i0,i1,i2,i3] = v0 } } } } }",
   {{1}, {8}, {33}, {64}, {-1}}},

/* every transposition, other dtypes, batches, epilogues, strides, gradients of convolutions; edges of all block sizes */
#define PRODUCTS                                                              \
  {                                                                           \
    {1, 1, 1}, {4, 60, 33}, {17, 9, 65}, {33, 257, 39}, {66, 11, 300}, { -1 } \
  }
  {"kernel dot_nt(in a: f32[n0,n1], in b: f32[n2,n1], out c: f32[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f32 = 0:f32"
   " red i2 < n1 { v0 = add(v0, mul(a[i0,i2], b[i1,i2])) } c[i0,i1] = v0 } } }",
   PRODUCTS},
  {"kernel dot_tn(in a: f32[n1,n0], in b: f32[n1,n2], out c: f32[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f32 = 0:f32"
   " red i2 < n1 { v0 = add(v0, mul(a[i2,i0], b[i2,i1])) } c[i0,i1] = v0 } } }",
   PRODUCTS},
  {"kernel dot_tt(in a: f32[n1,n0], in b: f32[n2,n1], out c: f32[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f32 = 0:f32"
   " red i2 < n1 { v0 = add(v0, mul(b[i1,i2], a[i2,i0])) } c[i0,i1] = v0 } } }",
   PRODUCTS},
  {"kernel dot_tn64(in a: f64[n1,n0], in b: f64[n1,n2], out c: f64[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f64 = 1:f64"
   " red i2 < n1 { v0 = fma(a[i2,i0], b[i2,i1], v0) } c[i0,i1] = v0 } } }",
   PRODUCTS},
  {"kernel dot_int(in a: i32[n0,n1], in b: i32[n1,n2], out c: i32[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: i32 = 0:i32"
   " red i2 < n1 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
   PRODUCTS},
  {"kernel dot_half(in a: f16[n0,n1], in b: f16[n1,n2], out c: f16[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f32 = 0:f32"
   " red i2 < n1 { v0 = add(v0, mul(cast.f32(a[i0,i2]), cast.f32(b[i2,i1]))) } c[i0,i1] = cast.f16(v0) } } }",
   PRODUCTS},
  {"kernel dot_brain(in a: bf16[n1,n0], in b: bf16[n2,n1], out c: bf16[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f32 = 0:f32"
   " red i2 < n1 { v0 = add(v0, mul(cast.f32(a[i2,i0]), cast.f32(b[i1,i2]))) } c[i0,i1] = cast.bf16(v0) } } }",
   PRODUCTS},
  {"kernel dense(in a: f32[n0,n1], in b: f32[n1,n2], in c: f32[n2], in d: f32[n0], in e: f32[], out f: f32[n0,n2], out g: "
   "bool[n0,n2]) sizes 3 {"
   " par i0 < n0 { par i1 < n2 { var v0: f32 = 0:f32 red i2 < n1 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) }"
   " %0 = add(mul(v0, e[]), add(c[i1], d[i0])) f[i0,i1] = max(%0, 0:f32) g[i0,i1] = lt(%0, 0:f32) } } }",
   PRODUCTS},
  {"kernel step(in a: f32[n1,n0], in b: f32[n1,n2], inout c: f32[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f32 = 0:f32"
   " red i2 < n1 { v0 = add(v0, mul(a[i2,i0], b[i2,i1])) } c[i0,i1] = sub(c[i0,i1], mul(v0, 0x1p-4:f32)) } } }",
   PRODUCTS},
  {"kernel masked(in a: f32[n0,n1], in b: f32[n0,n1], in c: f32[n2,n1], out d: f32[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 "
   "{ var v0: f32 = 0:f32"
   " red i2 < n1 { v0 = add(v0, mul(select(lt(b[i0,i2], 0:f32), 0:f32, a[i0,i2]), c[i1,i2])) } d[i0,i1] = v0 } } }",
   PRODUCTS},
  {"kernel batch(in a: f32[2,3,n0,n1], in b: f32[1,3,n1,n2], out c: f32[2,3,n0,n2]) sizes 3 { par i0 < 2 { par i1 < 3 { par i2 "
   "< n0 { par i3 < n2 {"
   " var v0: f32 = 0:f32 red i4 < n1 { v0 = add(v0, mul(a[i0,i1,i2,i4], b[0,i1,i4,i3])) } c[i0,i1,i2,i3] = v0 } } } } }",
   PRODUCTS},
  {"kernel batch_tn(in a: f32[2,n1,n0], in b: f32[2,n2,n1], out c: f32[2,n0,n2]) sizes 3 { par i0 < 2 { par i1 < n0 { par i2 < n2 {"
   " var v0: f32 = 0:f32 red i3 < n1 { v0 = add(v0, mul(a[i0,i3,i1], b[i0,i2,i3])) } c[i0,i1,i2] = v0 } } } }",
   PRODUCTS},
  {"kernel fixed(in a: f32[17,2100], in b: f32[2100,33], out c: f32[17,33]) { par i0 < 17 { par i1 < 33 { var v0: f32 = 0:f32"
   " red i2 < 2100 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
   ONCE},
  {"kernel fixed_one(in a: f32[1,300], in b: f32[300,64], out c: f32[1,64]) { par i0 < 1 { par i1 < 64 { var v0: f32 = 0:f32"
   " red i2 < 300 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
   ONCE},
  {"kernel complex_dot(in a: c64[n0,n1], in b: c64[n1,n2], out c: c64[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f32 "
   "= 0:f32 var v1: f32 = 0:f32"
   " red i2 < n1 { v0 = add(v0, sub(mul(a.re[i0,i2], b.re[i2,i1]), mul(a.im[i0,i2], b.im[i2,i1])))"
   " v1 = add(v1, add(mul(a.re[i0,i2], b.im[i2,i1]), mul(a.im[i0,i2], b.re[i2,i1]))) } c.re[i0,i1] = v0 c.im[i0,i1] = v1 } } }",
   PRODUCTS},
  {"kernel conv_stride(in a: f32[n0,11,9,5], in b: f32[3,2,5,20], out c: f32[n0,5,5,20]) sizes 1 { par i0 < n0 { par i1 < 5 { "
   "par i2 < 5 { par i3 < 20 {"
   " var v0: f32 = 0:f32 red i4 < 3 { red i5 < 2 { red i6 < 5 { %0 = add(mul(i2, 2), i5)"
   " v0 = add(v0, mul(select(lt(%0, 9), a[i0,add(mul(i1, 2), i4),min(%0, 8),i6], 0:f32), b[i4,i5,i6,i3])) } } } c[i0,i1,i2,i3] "
   "= v0 } } } } }",
   {{0}, {1}, {3}, {-1}}},
  {"kernel conv_filter(in a: f32[n0,9,9,13], in b: f32[n0,9,9,33], out c: f32[3,3,13,33]) sizes 1 { par i0 < 3 { par i1 < 3 { "
   "par i2 < 13 { par i3 < 33 {"
   " var v0: f32 = 0:f32 red i4 < n0 { red i5 < 9 { red i6 < 9 { %0 = add(i5, sub(i0, 1)) %1 = add(i6, sub(i1, 1))"
   " v0 = add(v0, mul(select(and(and(le(0, %0), lt(%0, 9)), and(le(0, %1), lt(%1, 9))), a[i4,min(max(%0, 0), 8),min(max(%1, 0), "
   "8),i2], 0:f32),"
   " b[i4,i5,i6,i3])) } } } c[i0,i1,i2,i3] = v0 } } } } }",
   {{0}, {1}, {5}, {-1}}},
  {"kernel conv_input(in a: f32[n0,9,9,33], in b: f32[3,3,13,33], out c: f32[n0,9,9,13]) sizes 1 { par i0 < n0 { par i1 < 9 { "
   "par i2 < 9 { par i3 < 13 {"
   " var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { red i6 < 33 { %0 = sub(i1, sub(i4, 1)) %1 = sub(i2, sub(i5, 1))"
   " v0 = add(v0, mul(select(and(and(le(0, %0), lt(%0, 9)), and(le(0, %1), lt(%1, 9))), a[i0,min(max(%0, 0), 8),min(max(%1, 0), "
   "8),i6], 0:f32),"
   " b[i4,i5,i3,i6])) } } } c[i0,i1,i2,i3] = v0 } } } } }",
   {{0}, {1}, {5}, {-1}}},
  {"kernel outer(in a: f32[n0], in b: f32[n1], out c: f32[n0,n1]) sizes 2 { par i0 < n0 { par i1 < n1 { var v0: f32 = 0:f32"
   " red i2 < 1 { v0 = add(v0, mul(a[i0], b[i1])) } c[i0,i1] = v0 } } }",
   PAIRS},
  {"kernel depthwise(in a: f32[2,9,9,n0], in b: f32[3,3,n0], out c: f32[2,7,7,n0]) sizes 1 { par i0 < 2 { par i1 < 7 { par i2 < "
   "7 { par i3 < n0 {"
   " var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { v0 = add(v0, mul(a[i0,add(i1, i4),add(i2, i5),i3], b[i4,i5,i3])) } } "
   "c[i0,i1,i2,i3] = v0 } } } } }",
   {{1}, {8}, {33}, {64}, {-1}}},
  /* parts of a sum of which the last have fewer than no turns */
  {"kernel parts(in a: f32[n0], out b: f32[16]) sizes 1 { par i0 < 16 { var v0: f32 = 0:f32 %0 = floordiv(add(n0, 15), 16) "
   "red i1 < min(%0, sub(n0, mul(i0, %0))) { v0 = add(v0, a[add(mul(i0, %0), i1)]) } b[i0] = v0 } }",
   {{1}, {3}, {17}, {100}, {121}, {-1}}},
};
#define TEXT_COUNT (sizeof texts / sizeof *texts)

#endif
