/* scheduled_cases.h: scheduled kernels: text, sizes to run them with, and whether they call functions that the evaluator takes from libm:
 * then results are alike, else they have the same bits. */
#ifndef TFC_TESTS_SCHEDULED_CASES_H
#define TFC_TESTS_SCHEDULED_CASES_H

/* a product of few rows with bias and relu: any number of rows, by tails of 4, 2 and 1; columns that fill no vector */
#define NI "par ni < min(32, sub(n1, mul(no, 32))) lanes 32 {"
#define FEW(e, rows, count, first)                                                                                                        \
  "par no < floordiv(add(n1, 31), 32) tasks { par mo < " count " {"                                                                       \
  "  buffer " e ": f32[" rows ",32] in register"                                                                                          \
  "  par mi < " rows " unroll {" NI e "[mi,ni] = 0:f32 } }"                                                                               \
  "  red k < n2 { fetch b[add(k, 16),mul(no, 32)] par mi < " rows " unroll {" NI e "    [mi,ni] = fma(a[add(" first ", add(mul(mo, " rows \
  "), mi)),k], b[k,add(mul(no, 32), ni)]," e "[mi,ni]) } } }"                                                                             \
  "  par mi < " rows " unroll {" NI "                                                                                      "              \
  "    d[add(" first ", add(mul(mo, " rows "), mi)),add(mul(no, 32), ni)] = max(add(" e                                                   \
  "[mi,ni], c[add(mul(no, 32), ni)]), 0:f32) } } } }"
struct scheduled_case {
  const char *text;
  int64_t sizes[10][3]; /* a first one of -1 ends them */
  bool calls;           /* functions: close to the evaluator's results, else equal to them */
};
static const struct scheduled_case scheduled[] = {
  {"kernel few(in a: f32[n0,n2], in b: f32[n2,n1], in c: f32[n1], out d: f32[n0,n1]) sizes 3 {" FEW("e", "8", "floordiv(n0, 8)", "0")
     FEW("f", "4", "floordiv(floormod(n0, 8), 4)", "mul(floordiv(n0, 8), 8)") FEW(
       "g", "2", "floordiv(floormod(n0, 4), 2)", "mul(floordiv(n0, 4), 4)") FEW("h", "1", "floormod(n0, 2)", "mul(floordiv(n0, 2), 2)") "}",
   {{8, 64, 16}, {1, 1, 1}, {15, 33, 7}, {23, 100, 40}, {0, 5, 5}, {4, 0, 3}, {3, 31, 0}, {40, 200, 64}, {-1}},
   false},
  /* from panels, of which the next one is asked for: a share by each part of the sum, as many as an open number of rows leaves */
  {"kernel panels(in a: f32[n0,64], in b: f32[3,64,16], out c: f32[n0,48]) sizes 1 { par no < 3 tasks { par mo < floordiv(n0, 4) {"
   "  buffer d: f32[4,16] in register"
   "  par mi < 4 unroll { par ni < 16 lanes 16 { d[mi,ni] = 0:f32 } }"
   "  red ko < 4 { %0 = mul(floordiv(n0, 4), 4) if lt(mul(add(mul(mo, 4), ko), floordiv(add(%0, 63), %0)), 64) {"
   "      seq no_share < floordiv(add(%0, 63), %0) {"
   "        fetch b[add(no, 1),add(mul(add(mul(mo, 4), ko), floordiv(add(%0, 63), %0)), no_share),0] } }"
   "    red ki < 16 { par mi < 4 unroll { par ni < 16 lanes 16 { %1 = add(mul(ko, 16), ki)"
   "      d[mi,ni] = fma(a[add(mul(mo, 4), mi),%1], b[no,%1,ni], d[mi,ni]) } } } }"
   "  par mi < 4 unroll { par ni < 16 lanes 16 { c[add(mul(mo, 4), mi),add(mul(no, 16), ni)] = d[mi,ni] } } } } }",
   {{4}, {20}, {3}, {0}, {-1}},
   false},
  /* the second factor transposed: lanes gather */
  {"kernel transposed(in a: f32[8,n0], in b: f32[48,n0], out c: f32[8,48]) sizes 1 { par mo < 2 tasks { par no < 2 tasks {"
   "  buffer d: f32[4,24] in register"
   "  par mi < 4 unroll { par ni < 24 lanes 24 { d[mi,ni] = 0:f32 } }"
   "  red k < n0 { par mi < 4 unroll { par ni < 24 lanes 24 {"
   "    d[mi,ni] = fma(a[add(mul(mo, 4), mi),k], b[add(mul(no, 24), ni),k], d[mi,ni]) } } }"
   "  par mi < 4 unroll { par ni < 24 lanes 24 { c[add(mul(mo, 4), mi),add(mul(no, 24), ni)] = d[mi,ni] } } } } }",
   {{1}, {19}, {0}, {-1}},
   false},
  /* the same by dots: lanes along the sum, added up by halves */
  {"kernel dots(in a: f32[n0,64], in b: f32[6,64], out c: f32[n0,6]) sizes 1 { par m < n0 tasks { par no < 3 tasks {"
   "  buffer d: f32[2,16] in register"
   "  par ni < 2 unroll { par kl < 16 lanes 16 { d[ni,kl] = 0:f32 } }"
   "  red ko < 4 { par ni < 2 unroll { par kl < 16 lanes 16 {"
   "    d[ni,kl] = fma(a[m,add(mul(ko, 16), kl)], b[add(mul(no, 2), ni),add(mul(ko, 16), kl)], d[ni,kl]) } } }"
   "  par ni < 2 unroll {"
   "    par kh < 8 lanes 8 { buffer e: f32[8] in register e[kh] = d[ni,kh] d[ni,kh] = mul(e[kh], 2:f32) }"
   "    var v0: f32 = 0:f32"
   "    red kl < 16 unroll { v0 = add(v0, mul(d[ni,kl], a[m,kl])) }"
   "    c[m,add(mul(no, 2), ni)] = v0 } } } }",
   {{1}, {9}, {-1}},
   false},
  /* copies by squares, transposed; the last ones are no whole ones */
  {"kernel squares(in a: f32[32,n0], in b: f64[8,n0], out c: f32[n0,32], out d: f64[n0,8]) sizes 1 {"
   "  par kq < floordiv(add(n0, 15), 16) tasks { par ms < 2 { par mt < 16 unroll { par kr < min(16, sub(n0, mul(kq, 16))) lanes 16 {"
   "    c[add(mul(kq, 16), kr),add(mul(ms, 16), mt)] = a[add(mul(ms, 16), mt),add(mul(kq, 16), kr)] } } } }"
   "  par kq < floordiv(add(n0, 7), 8) tasks { par mt < 8 unroll { par kr < min(8, sub(n0, mul(kq, 8))) lanes 8 {"
   "    d[add(mul(kq, 8), kr),mt] = b[mt,add(mul(kq, 8), kr)] } } } }",
   {{16}, {1}, {40}, {15}, {-1}},
   false},
  /* vectors of any extent, what is left under a mask; sums over them, also in two loops, in halves at the end; masks among them */
  {"kernel vectors(in a: f32[n0,n1], in b: i32[n1], out c: f32[n0,n1], out d: f32[n0], out e: f32[], out f: i32[]) sizes 2 {"
   "  par i0 < n0 { par i1 < n1 vectors 32 { c[i0,i1] = mul(a[i0,i1], cast.f32(b[i1])) } }"
   "  par i2 < n0 { var v0: f32 = 1:f32 var v1: f32 = -inf:f32"
   "    red i3 < n1 vectors 16 { v0 = fma(a[i2,i3], a[i2,i3], v0) if lt(0:f32, a[i2,i3]) { v1 = max(v1, c[i2,i3]) } }"
   "    d[i2] = add(v0, max(v1, 0:f32)) }"
   "  par i4 < 1 { var v2: f32 = 0:f32 red i5 < n0 { red i6 < n1 vectors 64 { v2 = add(v2, a[i5,i6]) } } e[] = v2"
   "    var v3: i32 = 7:i32 red i7 < n1 vectors 8 { v3 = xor(v3, b[i7]) } f[] = v3 } }",
   {{1, 1}, {3, 64}, {5, 77}, {40, 16}, {2, 0}, {0, 9}, {-1}},
   false},
  /* sums that are added up for each turn of a written loop; and one that its own extent reads, which is not split */
  {"kernel splits(in a: f32[3,n0], out b: f32[], out c: i64[], out d: f32[n0,3]) sizes 1 { par i0 < 1 { var v0: f32 = 0:f32"
   "  red i1 < 3 unroll { red i2 < n0 vectors 16 { v0 = add(v0, a[i1,i2]) } } b[] = v0"
   "  var v1: i64 = 5 red i3 < v1 vectors 8 { v1 = add(v1, i3) } c[] = v1 }"
   "  par i4 < n0 vectors 16 { par i5 < 3 unroll { d[i4,i5] = a[i5,i4] } } }",
   {{1}, {40}, {0}, {-1}},
   false},
  /* turns that run together with vectors: rows that share a factor, and columns that share lines */
  {"kernel together(in a: f32[n0,40], in b: f32[40,24], out c: f32[n0,24], out d: f32[40,n0]) sizes 1 {"
   "  par i0 < n0 together 6 { par i1 < 24 vectors 16 { var v0: f32 = 0:f32 red i2 < 40 { v0 = fma(a[i0,i2], b[i2,i1], v0) }"
   "    c[i0,i1] = v0 } }"
   "  par i3 < 40 together 16 { par i4 < n0 vectors 16 { d[i3,i4] = mul(a[i4,i3], 2:f32) } } }",
   {{1}, {6}, {16}, {77}, {0}, {-1}},
   false},
  /* parts of a sum and of a maximum that needs it, in memory that all threads share; nests without marks, and one sum alone */
  {"kernel moments(in a: f32[n0,20], out b: f32[20], out c: f32[20], out d: f32[]) sizes 1 {"
   "  buffer e: f32[4,20] in task"
   "  par po < 4 { par m < 20 { var v0: f32 = 0:f32 %0 = floordiv(add(n0, 3), 4)"
   "    red pi < min(%0, sub(n0, mul(po, %0))) { v0 = add(v0, a[add(mul(po, %0), pi),m]) } e[po,m] = v0 } }"
   "  buffer f: f32[4,20] in task"
   "  par qo < 4 { par m < 20 { var v1: f32 = 0:f32 red ps < 4 { v1 = add(v1, e[ps,m]) } var v2: f32 = div(v1, cast.f32(n0))"
   "    var v3: f32 = -inf:f32 %0 = floordiv(add(n0, 3), 4)"
   "    red qi < min(%0, sub(n0, mul(qo, %0))) { v3 = max(v3, sub(a[add(mul(qo, %0), qi),m], v2)) } f[qo,m] = v3 } }"
   "  par m < 20 { var v4: f32 = 0:f32 red ps < 4 { v4 = add(v4, e[ps,m]) } b[m] = div(v4, cast.f32(n0))"
   "    var v5: f32 = -inf:f32 red qs < 4 { v5 = max(v5, f[qs,m]) } c[m] = v5 }"
   "  par one < 1 tasks { var v6: f32 = 0:f32 red ps < 4 { v6 = add(v6, f[ps,one]) } d[] = v6 } }",
   {{1}, {3}, {16}, {1000}, {-1}},
   false},
  /* a filter's gradient by blocks of rows, its partial sums in the result; borders cut */
  {"kernel filter(in a: f32[2,10,9,8], in b: f32[2,10,9,20], out c: f32[3,3,8,20]) {"
   "  par kh < 3 tasks { par kw < 3 tasks { red n < 2 { red hb < 3 { par cb < 2 {"
   "    buffer d: f32[4,20] in register"
   "    par ci < 4 unroll { par co < 20 lanes 20 {"
   "      d[ci,co] = select(and(eq(n, 0), eq(hb, 0)), 0:f32, c[kh,kw,add(mul(cb, 4), ci),co]) } }"
   "    red h < sub(min(min(10, mul(add(hb, 1), 4)), sub(11, kh)), max(mul(hb, 4), sub(1, kh))) {"
   "      red w < sub(9, cast.i64(ne(kw, 1))) {"
   "        %0 = add(max(mul(hb, 4), sub(1, kh)), h)"
   "        %1 = add(max(0, sub(1, kw)), w)"
   "        par ci < 4 unroll { par co < 20 lanes 20 {"
   "          d[ci,co] = fma(a[n,sub(add(%0, kh), 1),sub(add(%1, kw), 1),add(mul(cb, 4), ci)], b[n,%0,%1,co], d[ci,co]) } } } }"
   "    par ci < 4 unroll { par co < 20 lanes 20 { c[kh,kw,add(mul(cb, 4), ci),co] = d[ci,co] } } } } } } } }",
   {{0}, {-1}},
   false},
  /* an epilogue with a mask of another dtype, a result of bool, and a long one that runs its rows as a loop */
  {"kernel epilogue(in a: f32[8,n0], in b: bool[8,n0], out c: f32[8,n0], out d: bool[8,n0], out e: bf16[8,n0], out f: f32[8,n0]) sizes 1 {"
   "  par no < floordiv(add(n0, 23), 24) tasks {"
   "    buffer g: f32[8,24] in register"
   "    par m < 8 unroll { par ni < min(24, sub(n0, mul(no, 24))) lanes 24 { g[m,ni] = mul(a[m,add(mul(no, 24), ni)], 3:f32) } }"
   "    par m < 8 unroll { par ni < min(24, sub(n0, mul(no, 24))) lanes 24 {"
   "      %0 = add(mul(no, 24), ni)"
   "      if b[m,%0] { g[m,ni] = add(g[m,ni], 1:f32) } else { g[m,ni] = neg(g[m,ni]) }"
   "      c[m,%0] = select(b[m,%0], g[m,ni], 0:f32) d[m,%0] = lt(g[m,ni], 0:f32) e[m,%0] = cast.bf16(g[m,ni]) } }"
   "    par m < 8 unroll { par ni < min(24, sub(n0, mul(no, 24))) lanes 24 {"
   "      f[m,add(mul(no, 24), ni)] = div(1:f32, add(1:f32, exp(neg(g[m,ni])))) } } } }",
   {{1}, {24}, {50}, {0}, {-1}},
   true},
  /* variants by size; what is left over has no marks; scalars in registers */
  {"kernel variants(in a: f32[n0], out b: f32[n0]) sizes 1 {"
   "  if lt(n0, 16) { par i0 < n0 { b[i0] = neg(a[i0]) } } else { if lt(n0, 100) {"
   "    par io < floordiv(n0, 4) tasks {"
   "      buffer c: f32[4] in register"
   "      par i < 4 unroll { c[i] = mul(a[add(mul(io, 4), i)], 2:f32) }"
   "      par i < 4 unroll { b[add(mul(io, 4), i)] = c[sub(3, 0)] } }"
   "    par i1 < floormod(n0, 4) { b[sub(sub(n0, 1), i1)] = 7:f32 } } else {"
   "    par io < floordiv(add(n0, 6), 7) tasks { par i < min(7, sub(n0, mul(io, 7))) lanes 7 { b[add(mul(io, 7), i)] = "
   "a[add(mul(io, 7), i)] } } } } }",
   {{0}, {15}, {16}, {99}, {100}, {777}, {-1}},
   false},
  /* a factor copied into panels by a phase before, in double; the other one on the stack */
  {"kernel staged(in a: f64[n0,40], in b: f64[40,24], out c: f64[n0,24], scratch d: f64[3,40,8]) sizes 1 {"
   "  par no < 3 tasks { par k < 40 { par ni < 8 lanes 8 { d[no,k,ni] = mul(b[k,add(mul(no, 8), ni)], 2:f64) } } }"
   "  par mo < floordiv(add(n0, 3), 4) tasks {"
   "    buffer e: f64[40,4] in stack"
   "    par mi < min(4, sub(n0, mul(mo, 4))) { par k < 40 { e[k,mi] = a[add(mul(mo, 4), mi),k] } }"
   "    par no < 3 { par mi < min(4, sub(n0, mul(mo, 4))) {"
   "      buffer f: f64[8] in register"
   "      par ni < 8 lanes 8 { f[ni] = 0:f64 }"
   "      red k < 40 { par ni < 8 lanes 8 { f[ni] = fma(e[k,mi], d[no,k,ni], f[ni]) } }"
   "      par ni < 8 lanes 8 { c[add(mul(mo, 4), mi),add(mul(no, 8), ni)] = f[ni] } } } } }",
   {{1}, {4}, {10}, {0}, {-1}},
   false},
  /* integers; lanes of one element; a nest of two extents that are open */
  {"kernel widths(in a: i32[n0,n1], out b: i32[n0,n1], out c: i64[n0,n1]) sizes 2 {"
   "  par m < n0 tasks { par no < floordiv(add(n1, 4), 5) { par ni < min(5, sub(n1, mul(no, 5))) lanes 5 {"
   "    b[m,add(mul(no, 5), ni)] = add(a[m,add(mul(no, 5), ni)], 1:i32) } }"
   "    par no < floordiv(add(n1, 39), 40) { par ni < min(40, sub(n1, mul(no, 40))) lanes 40 {"
   "      c[m,add(mul(no, 40), ni)] = add(mul(cast.i64(a[m,add(mul(no, 40), ni)]), 3), add(mul(no, 40), ni)) } } }"
   "  par m < n0 tasks { par ni < min(1, n1) lanes 1 { b[m,ni] = 5:i32 } } }",
   {{1, 1}, {3, 5}, {7, 44}, {2, 160}, {2, 0}, {-1}},
   false},
  /* a nest with marks beside statements that are no phases */
  {"kernel serial(in a: f32[n0], out b: f32[n0], out c: f32[]) sizes 1 {"
   "  var v0: f32 = 0:f32 seq i0 < n0 { v0 = add(v0, a[i0]) } c[] = v0"
   "  par io < floordiv(add(n0, 7), 8) { par i < min(8, sub(n0, mul(io, 8))) lanes 8 { b[add(mul(io, 8), i)] = "
   "add(a[add(mul(io, 8), i)], v0) } } }",
   {{1}, {8}, {21}, {0}, {-1}},
   false},
  /* fewer elements than lanes, always; two extents that are open in one block */
  {"kernel extents(in a: f32[20], in b: f32[n0], in c: f32[n1], out d: f32[20], out e: f32[n0], out f: f32[n1]) sizes 2 {"
   "  par i < 1 tasks { par j < 20 lanes 32 { d[j] = neg(a[j]) }"
   "    par j < min(16, n0) lanes 16 { e[j] = neg(b[j]) } par j < min(24, n1) lanes 24 { f[j] = mul(c[j], a[mul(2, n1)]) } } }",
   {{16, 8}, {5, 1}, {1, 3}, {16, 0}, {0, 9}, {-1}},
   false},
  /* long computations in a nest of unrolled loops, which then read the registers again */
  {"kernel gates(in a: f32[n0,2,3,16], out b: f32[n0,2,3,16], out c: f32[n0,2,16]) sizes 1 { par m < n0 tasks {"
   "  buffer d: f32[2,3,16] in register"
   "  par i < 2 unroll { par g < 3 unroll { par u < 16 lanes 16 { d[i,g,u] = mul(a[m,i,g,u], 2:f32) } } }"
   "  par i < 2 unroll { par g < 3 unroll { par u < 16 lanes 16 { b[m,i,g,u] = tanh(d[i,g,u]) } }"
   "    par u < 16 lanes 16 { c[m,i,u] = add(d[i,0,u], d[i,2,u]) } }"
   "  par g < 3 unroll { par i < 2 { par u < 16 lanes 16 { if lt(u, 8) { b[m,i,g,u] = add(b[m,i,g,u], exp(d[1,g,u])) } } } } } }",
   {{1}, {5}, {-1}},
   true},
  {"kernel rolled(in a: f32[n0,4,3,16], out b: f32[n0,4,3,16], out c: f32[n0,4,16]) sizes 1 { par m < n0 tasks {"
   "  buffer d: f32[4,3,16] in register"
   "  par i < 4 unroll { par g < 3 unroll { par u < 16 lanes 16 { d[i,g,u] = mul(a[m,i,g,u], 2:f32) } } }"
   "  par i < 4 unroll { par g < 3 unroll { par u < 16 lanes 16 { b[m,i,g,u] = tanh(d[i,g,u]) } }"
   "    par u < 16 lanes 16 { c[m,i,u] = add(d[i,0,u], d[i,2,u]) } } } }",
   {{1}, {5}, {-1}},
   true},
};
#define SCHEDULED_COUNT (sizeof scheduled / sizeof *scheduled)

#endif
