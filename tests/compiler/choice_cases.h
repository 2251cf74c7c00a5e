/* choice_cases.h: kernels of all classes, and a part of the steps that are chosen for them. */
#ifndef TFC_TESTS_COMPILER_CHOICE_CASES_H
#define TFC_TESTS_COMPILER_CHOICE_CASES_H

#include <string.h>

#include "compiler/schedule/choose.h"
#include "tests/support/test.h"

struct choice_case {
  const char *name, *kernel, *cpu;
  const char *expected; /* a part of the steps; NULL: none are chosen */
};

#define PRODUCT(rows, depth, columns, sizes)                                                                                              \
  "kernel k(in a: f32[" rows "," depth "], in b: f32[" depth "," columns "], out c: f32[" rows "," columns "])" sizes " { par i0 < " rows \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " depth " { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }"
#define BIASED                                                                                                                    \
  "kernel k(in a: f32[32,1040], in b: f32[1040,260], out c: f32[32,260]) { par i0 < 32 { par i1 < 260 { var v0: f32 = 0:f32 red " \
  "i2 < 1040 "                                                                                                                    \
  "{ v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = max(v0, 0:f32) } } }"
#define SUM_OF_TURNS(turns, rows, columns)                                                                       \
  "kernel k(in a: f32[n0," turns "," rows "], in b: f32[" turns ",n0," columns "], out c: f32[" rows "," columns \
  "]) sizes 1 { par i0 < " rows " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " turns                  \
  " { red i3 < n0 { v0 = add(v0, mul(a[i3,i2,i0], b[i2,i3,i1])) } } "                                            \
  "c[i0,i1] = v0 } } }"
#define TRANSPOSED(rows, depth, columns)                                                                                         \
  "kernel k(in a: f32[" rows "," depth "], in b: f32[" columns "," depth "], out c: f32[" rows "," columns "]) { par i0 < " rows \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " depth " { v0 = add(v0, mul(a[i0,i2], b[i1,i2])) } c[i0,i1] = v0 } } }"
/* c = a*b, of which nothing is known: b[rows,columns], an element of it at `index`. */
#define NARROW_PRODUCT(rows, depth, columns)                                                                                        \
  "kernel k(in a: bf16[" rows "," depth "], in b: bf16[" depth "," columns "], out c: f32[" rows "," columns "]) { par i0 < " rows  \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " depth " { v0 = add(v0, mul(cast.f32(a[i0,i2]), cast.f32(b[i2,i1]))) } " \
  "c[i0,i1] = v0 } } }"
#define NARROW_TRANSPOSED(rows, depth, columns)                                                                                   \
  "kernel k(in a: bf16[" rows "," depth "], in b: f32[" columns "," depth "], out c: f32[" rows "," columns "]) { par i0 < " rows \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " depth " { v0 = add(v0, mul(cast.f32(a[i0,i2]), "                      \
  "cast.f32(cast.bf16(b[i1,i2])))) } c[i0,i1] = v0 } } }"
#define NARROW_ACROSS(rows, depth, columns)                                                                                       \
  "kernel k(in a: f32[" depth "," rows "], in b: bf16[" depth "," columns "], out c: f32[" rows "," columns "]) { par i0 < " rows \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " depth " { v0 = add(v0, mul(cast.f32(cast.bf16(a[i2,i0])), "           \
  "cast.f32(b[i2,i1]))) } c[i0,i1] = v0 } } }"
#define NARROW_ACROSS_OPEN(rows, columns)                                                                                               \
  "kernel k(in a: bf16[n0," rows "], in b: f32[n0," columns "], out c: f32[" rows "," columns "]) sizes 1 { par i0 < " rows             \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < n0 { v0 = add(v0, mul(cast.f32(a[i2,i0]), cast.f32(cast.bf16(b[i2,i1])))) } " \
  "c[i0,i1] = v0 } } }"
#define OPEN_PRODUCT(rows, columns, index)                                                                                              \
  "kernel k(in a: f32[n0,n1], in b: f32[" rows "," columns "], out c: f32[n0,n2]) sizes 3 { par i0 < n0 { par i1 < n2 { var v0: f32 = " \
  "0:f32 red i2 < n1 { v0 = add(v0, mul(a[i0,i2], b[" index "])) } c[i0,i1] = v0 } } }"
#define ACROSS_OPEN(rows, columns)                                                                                         \
  "kernel k(in a: f32[n0," rows "], in b: f32[n0," columns "], out c: f32[" rows "," columns "]) sizes 1 { par i0 < " rows \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < n0 { v0 = add(v0, mul(a[i2,i0], b[i2,i1])) } c[i0,i1] = v0 } } }"
#define HEADS(b, m, i, j) " par i" i " < " b " { par i" j " < " m " {"
/* Rows of a product, the largest of each taken off, and these rows' product: heads, blocks of rows, rows, columns, terms. */
#define HANDED_ON(b, m, r, n, k)                                                                                                       \
  "kernel k(in a: f32[" b "," m "," r "," k "], in b: f32[" b "," k "," n "], in c: f32[" b "," n "," k "], out d: f32[" b "," m "," r \
  "," k "], scratch e: f32[" b "," m "," r "," n "], scratch f: f32[" b "," m "," r "," n "]) {" HEADS(                                \
    b, m, "0", "1") " par i2 < " r " { par i3 < " n " { var v0: f32 = 0:f32 red i4 < " k                                               \
                    " { v0 = add(v0, mul(a[i0,i1,i2,i4], b[i0,i4,i3])) } e[i0,i1,i2,i3] = v0 } } } }" HEADS(                           \
                      b, m, "5",                                                                                                       \
                      "6") " par i7 < " r " { var v1: f32 = -inf:f32 red i8 < " n " { v1 = max(v1, e[i5,i6,i7,i8]) } par i9 < " n      \
                           " { f[i5,i6,i7,i9] = sub(e[i5,i6,i7,i9], v1) } } } }" HEADS(                                                \
                             b, m, "10",                                                                                               \
                             "11") " par i12 < " r " { par i13 < " k " { var v2: f32 = 0:f32 red i14 < " n                             \
                                   " { v2 = add(v2, mul(f[i10,i11,i12,i14], c[i10,i14,i13])) } d[i10,i11,i12,i13] = v2 } } } } }"
#define ACROSS(rows, depth, columns)                                                                                             \
  "kernel k(in a: f32[" depth "," rows "], in b: f32[" depth "," columns "], out c: f32[" rows "," columns "]) { par i0 < " rows \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " depth " { v0 = add(v0, mul(a[i2,i0], b[i2,i1])) } c[i0,i1] = v0 } } }"
/* 3 x 3, the image is padded before */
#define PIXELS(images, high, channels, sizes)                                                                                    \
  "kernel k(in a: f32[" images ",4,2048], in b: f32[3,1536," channels "], out c: f32[" images "," high ",2," channels "])" sizes \
  " { par i0 < " images " { par i1 < " high " { par i2 < 2 { par i3 < " channels                                                 \
  " { var v0: f32 = 0:f32 red i4 < 3 { red i5 < 1536 { v0 = "                                                                    \
  "add(v0, mul(a[i0,add(i1, i4),add(mul(i2, 512), i5)], b[i4,i5,i3])) } } c[i0,i1,i2,i3] = v0 } } } } }"
#define BATCHED_OF(count, second, sizes)                                                                                     \
  "kernel k(in a: f32[" count ",64,64], in b: f32[" count ",64,64], out c: f32[" count ",64,64])" sizes " { par i0 < " count \
  " { par i1 < 64 { par i2 < 64 { var v0: f32 = 0:f32 red i3 < 64 { v0 = add(v0, mul(a[i0,i1,i3], b[" second                 \
  "])) } c[i0,i1,i2] = v0 } } } }"
#define BATCHED BATCHED_OF("64", "i0,i3,i2", "")

/* What lies along one axis goes along the other, with what `value` makes of it. */
#define CROSSED_OF(dtype, count, rows, columns, more, value, sizes)                                                           \
  "kernel k(in a: " dtype "[" count "," columns "," rows "]" more ", out b: " dtype "[" count "," rows "," columns "])" sizes \
  " { par i0 < " count " { par i1 < " rows " { par i2 < " columns " { b[i0,i1,i2] = " value " } } } }"
#define CROSSED(count, rows, columns) CROSSED_OF("f32", count, rows, columns, "", "a[i0,i2,i1]", "")

/* the second factor in panels of `width` columns */
#define PANELED(rows, depth, panels, width, sizes)                                                                                         \
  "kernel k(in a: f32[" rows "," depth "], in b: f32[" panels "," depth "," width "], out c: f32[" rows ",256])" sizes " { par i0 < " rows \
  " { par i1 < 256 { var v0: f32 = 0:f32 red i2 < " depth " { v0 = add(v0, mul(a[i0,i2], b[floordiv(i1, " width "),i2,floormod(i1, " width \
  ")])) } c[i0,i1] = v0 } } }"

/* 3 x 3, or `taps` of one channel; the image is padded before, its columns and channels are one dimension */
#define PANELED_IMAGES                                                                                                                 \
  "kernel k(in a: f32[n0,16,512], in b: f32[2,3,96,16], out c: f32[n0,14,14,32]) sizes 1 { par i0 < n0 { par i1 < 14 { par i2 < 14 { " \
  "par i3 < 32 { var v0: f32 = 0:f32 red i4 < 3 { red i5 < 96 { v0 = add(v0, mul(a[i0,add(i1, i4),add(mul(i2, 32), i5)], "             \
  "b[floordiv(i3, 16),i4,i5,floormod(i3, 16)])) } } c[i0,i1,i2,i3] = v0 } } } } }"
#define FILTER(taps, rows, columns, images, high, wide, padded, line, pixel)                                                           \
  "kernel k(in a: f32[" images "," padded "," line "], in b: f32[" images "," high "," wide "," columns "], out c: f32[" taps "," rows \
  "," columns "]) { par i0 < " taps " { par i1 < " rows " { par i2 < " columns " { var v0: f32 = 0:f32 red i3 < " images               \
  " { red i4 < " high " { red i5 < " wide " { v0 = add(v0, mul(a[i3,add(i4, i0),add(mul(i5, " pixel                                    \
  "), i1)], b[i3,i4,i5,i2])) } } } c[i0,i1,i2] = v0 } } } }"

/* one tap, met by the image's pixels in steps of two */
#define APART(rows, columns, images, side, wide)                                                                                     \
  "kernel k(in a: f32[" images "," wide "," wide "," rows "], in b: f32[" images "," side "," side "," columns "], out c: f32[" rows \
  "," columns "]) { par i0 < " rows " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " images " { red i3 < " side             \
  " { red i4 < " side " { v0 = add(v0, mul(a[i2,mul(i3, 2),mul(i4, 2),i0], b[i2,i3,i4,i1])) } } } c[i0,i1] = v0 } } }"

/* the first factor lies along both loops of terms, the second across them in the other order */
#define TWO_TERMS(rows, outer, inner, columns)                                                                                 \
  "kernel k(in a: f32[" rows "," outer "," inner "], in b: f32[" inner "," outer "," columns "], out c: f32[" rows "," columns \
  "]) { par i0 < " rows " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < " outer " { red i3 < " inner                   \
  " { v0 = add(v0, mul(a[i0,i2,i3], b[i3,i2,i1])) } } c[i0,i1] = v0 } } }"

/* 3 x 3; the rows and columns inside */
#define RAGGED(rows, columns, images, side, more, sizes)                                                                                 \
  "kernel k(in a: f32[" images "," side "," side "," rows "], in b: f32[" images "," side "," side "," columns "], out c: f32[3,3," rows \
  "," columns "])" sizes " { par i0 < 3 { par i1 < 3 { par i2 < " rows " { par i3 < " columns " { var v0: f32 = 0:f32 red i4 < " images  \
  " { red i5 < sub(min(sub(" more ", i0), " side "), max(sub(1, i0), 0)) { red i6 < sub(min(sub(" more ", i1), " side                    \
  "), max(sub(1, i1), 0)) { %0 = add(i5, max(sub(1, i0), 0)) %1 = add(i6, max(sub(1, i1), 0)) "                                          \
  "v0 = add(v0, mul(a[i4,sub(add(%0, i0), 1),sub(add(%1, i1), 1),i2], b[i4,%0,%1,i3])) } } } c[i0,i1,i2,i3] = v0 } } } } }"

/* 3 x 3, columns under a test, rows inside; `filter` is read at `place` */
#define TESTED_OF(images, wide, in, out, sizes, filter, place)                                                                    \
  "kernel k(in a: f32[" images ",6," wide "," in "], in b: f32[3,3," filter "], out c: f32[" images ",6," wide "," out "])" sizes \
  " { par i0 < " images " { par i1 < 6 { par i2 < " wide " { par i3 < " out                                                       \
  " { var v0: f32 = 0:f32 red i4 < sub(min(sub(7, i1), 3), max(sub(1, i1), 0)) { red i5 < 3 { red i6 < " in                       \
  " { %0 = add(i4, max(sub(1, i1), 0)) %1 = sub(add(i2, i5), 1) if and(le(0, %1), lt(%1, " wide                                   \
  ")) { v0 = add(v0, mul(a[i0,sub(add(i1, %0), 1),%1,i6], b[" place "])) } } } } c[i0,i1,i2,i3] = max(v0, 0:f32) } } } } }"
#define TESTED(images, wide, in, out, sizes) TESTED_OF(images, wide, in, out, sizes, in "," out, "%0,i5,i6,i3")
/* of the gradient of an input: the filter lies along the sum, its taps from the last to the first */
#define TURNED(images, wide, in, out, sizes) TESTED_OF(images, wide, in, out, sizes, out "," in, "sub(2, %0),sub(2, i5),i3,i6")

/* 3 x 3 in a padded image, whose columns and channels are one dimension; of one tap, every second pixel; rows inside, one column */
#define PADDED(images, side, in, out, padded, line, run)                                                                                 \
  "kernel k(in a: f32[" images "," padded "," line "], in b: f32[3," run "," out "], out c: f32[" images "," side "," side "," out       \
  "]) { par i0 < " images " { par i1 < " side " { par i2 < " side " { par i3 < " out " { var v0: f32 = 0:f32 red i4 < 3 { red i5 < " run \
  " { v0 = add(v0, mul(a[i0,add(i1, i4),add(mul(i2, " in "), i5)], b[i4,i5,i3])) } } c[i0,i1,i2,i3] = max(v0, 0:f32) } } } } }"
#define NARROW_PADDED(images, side, in, out, padded, line, run)                                                                          \
  "kernel k(in a: bf16[" images "," padded "," line "], in b: f32[3," run "," out "], out c: f32[" images "," side "," side "," out      \
  "]) { par i0 < " images " { par i1 < " side " { par i2 < " side " { par i3 < " out " { var v0: f32 = 0:f32 red i4 < 3 { red i5 < " run \
  " { v0 = add(v0, mul(cast.f32(a[i0,add(i1, i4),add(mul(i2, " in "), i5)]), cast.f32(cast.bf16(b[i4,i5,i3])))) } } "                    \
  "c[i0,i1,i2,i3] = v0 } } } } }"
#define NARROW_TURNED(images, side, in, out, padded)                                                                                   \
  "kernel k(in a: bf16[" images "," padded "," padded "," in "], in b: bf16[3,3," out "," in "], out c: f32[" images "," side "," side \
  "," out "]) { par i0 < " images " { par i1 < " side " { par i2 < " side " { par i3 < " out                                           \
  " { var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { red "                                                                              \
  "i6 < " in " { v0 = add(v0, mul(cast.f32(a[i0,sub(add(i1, 2), i4),sub(add(i2, 2), i5),i6]), cast.f32(b[i4,i5,i3,i6]))) } } } "       \
  "c[i0,i1,i2,i3] = v0 } } } } }"
#define NARROW_FILTER(taps, rows, columns, images, high, wide, padded, line, pixel)                                                      \
  "kernel k(in a: bf16[" images "," padded "," line "], in b: bf16[" images "," high "," wide "," columns "], out c: f32[" taps "," rows \
  "," columns "]) { par i0 < " taps " { par i1 < " rows " { par i2 < " columns " { var v0: f32 = 0:f32 red i3 < " images                 \
  " { red i4 < " high " { red i5 < " wide " { v0 = add(v0, mul(cast.f32(a[i3,add(i4, i0),add(mul(i5, " pixel                             \
  "), i1)]), cast.f32(b[i3,i4,i5,i2]))) } } } c[i0,i1,i2] = mul(v0, 0x1p-1:f32) } } } }"
#define STRIDED(images, side, in, out, from)                                                                                         \
  "kernel k(in a: f32[" images "," from "," from "," in "], in b: f32[" in "," out "], out c: f32[" images "," side "," side "," out \
  "]) { par i0 < " images " { par i1 < " side " { par i2 < " side " { par i3 < " out " { var v0: f32 = 0:f32 red i4 < " in           \
  " { v0 = add(v0, mul(a[i0,mul(i1, 2),mul(i2, 2),i4], b[i4,i3])) } c[i0,i1,i2,i3] = v0 } } } } }"
#define COLUMN(images, side, in, out)                                                                                                    \
  "kernel k(in a: f32[" images ",6," side "," in "], in b: f32[3," in "," out "], out c: f32[" images ",6," side "," out                 \
  "]) { par i0 < " images " { par i1 < 6 { par i2 < " side " { par i3 < " out " { var v0: f32 = 0:f32 red i4 < sub(min(sub(7, i1), 3), " \
  "max(sub(1, i1), 0)) { red i5 < " in " { %0 = add(i4, max(sub(1, i1), 0)) v0 = add(v0, mul(a[i0,sub(add(i1, %0), 1),i2,i5], "          \
  "b[%0,i5,i3])) } } c[i0,i1,i2,i3] = v0 } } } } }"
/* 3 x 3 in a padded image, eight groups of eight channels; the gradient of the input; that of the filter */
#define GROUPED(row, column, filter)                                                                                            \
  "kernel k(in a: f32[8,34,34,8,8], in b: f32[3,3,8,8,8], out c: f32[8,32,32,8,8]) { par i0 < 8 { par i1 < 32 { par i2 < 32 { " \
  "par i3 < 8 { par i4 < 8 { var v0: f32 = 0:f32 red i5 < 3 { red i6 < 3 { red i7 < 8 { v0 = add(v0, mul(a[i0," row "," column  \
  ",i3,i7], b[i5,i6," filter "])) } } } c[i0,i1,i2,i3,i4] = v0 } } } } } }"
#define GROUPED_FILTER                                                                                                               \
  "kernel k(in a: f32[8,34,34,8,8], in b: f32[8,32,32,8,8], out c: f32[3,3,8,8,8]) { par i0 < 8 { par i1 < 3 { par i2 < 3 { par i3 " \
  "< 8 { par i4 < 8 { var v0: f32 = 0:f32 red i5 < 8 { red i6 < 32 { red i7 < 32 { v0 = add(v0, mul(a[i5,add(i6, i1),add(i7, "       \
  "i2),i0,i3], b[i5,i6,i7,i0,i4])) } } } c[i1,i2,i3,i0,i4] = v0 } } } } } }"
/* 3 x 3 x 3, its columns under a test; along: the filter is that of a gradient of an input */
#define VOLUME_OF(in, out, filter, place)                                                                                               \
  "kernel k(in a: f32[2,8,16,16," in "], in b: f32[3,3,3," filter "], out c: f32[2,8,16,16," out                                        \
  "]) { par i0 < 2 { par i1 < 8 { par i2 < 16 { par i3 < 16 { par i4 < " out                                                            \
  " { var v0: f32 = 0:f32 red i5 < sub(min(sub(9, i1), 3), max(sub(1, i1), 0)) { red i6 < sub(min(sub(17, i2), 3), max(sub(1, i2), 0))" \
  " { red i7 < 3 { red i8 < " in                                                                                                        \
  " { %0 = sub(add(i3, i7), 1) if and(le(0, %0), lt(%0, 16)) { %1 = add(i5, max(sub(1, i1), 0)) %2 = add(i6, max(sub(1, i2), 0)) "      \
  "v0 = add(v0, mul(a[i0,sub(add(i1, %1), 1),sub(add(i2, %2), 1),%0,i8], b[" place "])) } } } } } c[i0,i1,i2,i3,i4] = v0 } } } } } }"
#define VOLUME(in, out) VOLUME_OF(in, out, in "," out, "%1,%2,i7,i8,i4")
#define VOLUME_TURNED(in, out) VOLUME_OF(in, out, out "," in, "sub(2, %1),sub(2, %2),sub(2, i7),i4,i8")
#define VOLUME_FILTER                                                                                                                 \
  "kernel k(in a: f32[2,18,34,102], in b: f32[2,16,32,32,16], out c: f32[3,3,9,16]) { par i0 < 3 { par i1 < 3 { par i2 < 9 { par i3 " \
  "< 16 { var v0: f32 = 0:f32 red i4 < 2 { red i5 < 16 { red i6 < 32 { red i7 < 32 { v0 = add(v0, mul(a[i4,add(i5, i0),add(i6, "      \
  "i1),add(mul(i7, 3), i2)], b[i4,i5,i6,i7,i3])) } } } } c[i0,i1,i2,i3] = v0 } } } } }"
/* two phases of the gradient of an input, of stride 2 along its columns */
#define PHASES                                                                                                                            \
  "kernel k(in a: f32[2,15,32], in b: f32[3,32,32], out c: f32[2,28,32]) { par i0 < 2 { par i1 < 14 { par i2 < 32 { var v0: f32 = 0:f32 " \
  "red i3 < 2 { red i4 < 32 { v0 = add(v0, mul(a[i0,sub(add(i1, 1), i3),i4], b[mul(i3, 2),i2,i4])) } } c[i0,mul(i1, 2),i2] = v0 } } } "   \
  "par i5 < 2 { par i6 < 14 { par i7 < 32 { var v1: f32 = 0:f32 red i8 < 32 { v1 = add(v1, mul(a[i5,add(i6, 1),i8], b[1,i7,i8])) } "      \
  "c[i5,add(mul(i6, 2), 1),i7] = v1 } } } }"

/* 3 x 3 by channel: columns under a test, rows inside; and the gradient of its filter, both under one */
#define BY_CHANNEL(wide, channels)                                                                                               \
  "kernel k(in a: f32[2,6," wide "," channels "], in b: f32[3,3," channels ",1], out c: f32[2,6," wide "," channels              \
  "]) { par i0 < 2 { par i1 < 6 { par i2 < " wide " { par i3 < " channels                                                        \
  " { var v0: f32 = 0:f32 red i4 < sub(min(sub(7, i1), 3), max(sub(1, i1), 0)) { red i5 < 3 { %0 = add(i4, max(sub(1, i1), 0)) " \
  "%1 = sub(add(i2, i5), 1) if and(le(0, %1), lt(%1, " wide                                                                      \
  ")) { v0 = add(v0, mul(a[i0,sub(add(i1, %0), 1),%1,i3], b[%0,i5,i3,0])) } } } c[i0,i1,i2,i3] = v0 } } } } }"
#define TAPS(taps, side, channels)                                                                                                    \
  "kernel k(in a: f32[2," side "," side "," channels "], in b: f32[2," side "," side "," channels "], out c: f32[" taps "," taps      \
  "," channels "]) { par i0 < " taps " { par i1 < " taps " { par i2 < " channels " { var v0: f32 = 0:f32 red i3 < 2 { red i4 < " side \
  " { red i5 < " side " { %0 = sub(add(i4, i0), 1) %1 = sub(add(i5, i1), 1) if and(and(le(0, %0), lt(%0, " side                       \
  ")), and(le(0, %1), lt(%1, " side "))) { v0 = add(v0, mul(a[i3,%0,%1,i2], b[i3,i4,i5,i2])) } } } } c[i0,i1,i2] = v0 } } } }"

/* The same with stride 2 of images that were padded before: no tap lies outside. */
#define TAPS_INSIDE(side, padded, channels)                                                                                         \
  "kernel k(in a: f32[2," padded "," padded "," channels "], in b: f32[2," side "," side "," channels "], out c: f32[3,3," channels \
  "]) { par i0 < 3 { par i1 < 3 { par i2 < " channels " { var v0: f32 = 0:f32 red i3 < 2 { red i4 < " side " { red i5 < " side      \
  " { v0 = add(v0, mul(a[i3,add(mul(i4, 2), i0),add(mul(i5, 2), i1),i2], b[i3,i4,i5,i2])) } } } c[i0,i1,i2] = v0 } } } }"

/* A mean, and the greatest distance from it, of each channel. */
#define MOMENTS_OF(type, channels, images, side, first, second, sizes)                                                                   \
  "kernel k(in a: f32[" type "], out b: f32[" channels "], out c: f32[" channels "])" sizes " { par i0 < " channels                      \
  " { var v0: f32 = 0:f32 red i1 < " images " { red i2 < " side " { red i3 < " side " { v0 = add(v0, a[" first                           \
  "]) } } } var v1: f32 = div(v0, cast.f32(" images ")) var v2: f32 = -inf:f32 red i4 < " images " { red i5 < " side " { red i6 < " side \
  " { v2 = max(v2, sub(a[" second "], v1)) } } } b[i0] = v1 c[i0] = v2 } }"
#define MOMENTS(images, side, channels, sizes) \
  MOMENTS_OF(images "," side "," side "," channels, channels, images, side, "i1,i2,i3,i0", "i4,i5,i6,i0", sizes)
#define MOMENTS_APART(images, side, channels) \
  MOMENTS_OF(images "," channels "," side "," side, channels, images, side, "i1,i0,i2,i3", "i4,i0,i5,i6", "")
#define SUM(count) \
  "kernel k(in a: f32[" count "], in b: f32[], out c: f32[]) { var v0: f32 = b[] red i0 < " count " { v0 = add(v0, a[i0]) } c[] = v0 }"

static const struct choice_case cases[] = {
  {"a transposition", CROSSED("3", "64", "577"), "x86-64-v4",
   "split i1 16 -> lo li; order i0 lo i2 li; split i2 16 -> ro ri tail cut 1; run"},
  {"of sides that vectors do not fill", CROSSED("3", "24", "24"), "x86-64-v4", "split i1 8 -> lo li"},
  {"with rests that are too large", CROSSED("3", "7", "11"), "x86-64-v4", NULL},
  {"squares whose rows begin inside of lines, from afar", CROSSED("12", "64", "577"), "sapphirerapids", NULL},
  {"and of whole lines", CROSSED("12", "64", "592"), "sapphirerapids", "run i0 lo tasks; run ri unroll; run li lanes"},
  {"and where single elements take longer, all", CROSSED("12", "64", "577"), "icelake-server",
   "run i0 lo tasks; run ri unroll; run li lanes"},
  {"of bytes", CROSSED_OF("u8", "3", "64", "64", "", "a[i0,i2,i1]", ""), "x86-64-v4", NULL},
  {"into rows", CROSSED_OF("f32", "3", "64", "64", "", "a[i0,i1,i2]", ""), "x86-64-v4", NULL},
  {"few rows", PRODUCT("6", "256", "512", ""), "x86-64-v4",
   "split n 64 -> no ni; order no m ni; split m 6 -> mo mi; sink mi ni under ka in register"},
  {"open rows that are computed, many terms, 16 registers",
   "kernel k(in a: bf16[n0,1536], in b: bf16[1536,512], out c: f32[n0,512]) sizes 1 { par i0 < n0 { par i1 < 512 { var v0: f32 = 0:f32 red "
   "i2 < 1536 { v0 = add(v0, mul(cast.f32(a[i0,i2]), cast.f32(b[i2,i1]))) } c[i0,i1] = v0 } } }",
   "x86-64-v3", "stage a computed at kb by mr kk"},
  {"few rows, 16 registers", PRODUCT("4", "128", "256", ""), "x86-64-v3", "split m 4 -> mo mi; sink"},
  {"few rows, no multiply-add", PRODUCT("8", "256", "512", ""), "x86-64", "-> m n k; split n 8 -> ns ni"},
  {"columns that are no whole tile", PRODUCT("3136", "64", "24", ""), "x86-64-v3", "split n 24"},
  {"a factor beyond L2 is asked for ahead", PRODUCT("12", "1024", "1024", ""), "x86-64-v4", "fetch b at ka ahead 16"},
  {"also by one row of tiles", PRODUCT("8", "1024", "1024", ""), "x86-64-v4", "split m 8 -> mo mi; sink mi ni under ka in register; fetch"},
  {"but not where L3 is fast", PRODUCT("8", "1024", "1024", ""), "znver5", NULL},
  {"of more rows a block of it stays in L2, as it lies", PRODUCT("16", "1024", "1024", ""), "znver5",
   "order no mo nj mi ni; split k 512 -> kb kk; sink mo nj mi ni under kb in stack; sink mi ni under kk in register; run no tasks; run mi "
   "unroll; run ni lanes"},
  {"also of rows that are no whole tiles", PRODUCT("98", "2048", "512", ""), "znver5",
   "sink m nj ni under kb in stack; split m 8 -> mo mi tail cut 4 2 1; order mo nj mi ni; sink mi ni under kk in register; run no tasks"},
  {"but not beside so many rows that they do not stay", PRODUCT("256", "2048", "2048", ""), "znver5", "stage b at kb by nj kk ni"},
  {"few columns: rows are the vector, their factor is transposed", PRODUCT("512", "64", "2", ""), "x86-64-v3", "stage a at no by k mi"},
  {"of many terms fewer rows", PRODUCT("256", "2048", "4", ""), "znver5", "split m 32 -> mo mi"},
  {"which may lie along the rows", ACROSS("1024", "64", "10"), "znver5", "run mo no tasks; run ni unroll; run mi lanes"},
  {"also a bit more than a vector of columns", ACROSS("96", "4608", "24"), "x86-64-v4", "split m 48 -> mo mi; split n 24 -> no nc"},
  {"not two whole ones", ACROSS("96", "4608", "32"), "x86-64-v4", "split n 32"},
  {"but not where a vector has no more lanes", PRODUCT("512", "64", "8", ""), "x86-64-v3", NULL},
  {"a far factor where it lies, where caches keep up", PRODUCT("64", "500", "500", ""), "znver5", "split m 8 -> mo mi; sink"},
  {"and in blocks where they do not, of few rows the next one asked for", PRODUCT("64", "500", "500", ""), "avx512",
   "stage b at kb by nj kk ni -> pj pk pi; order pk pj pi; split kk 16 -> kc kd; sink mi ni under kc kd in register; "
   "fetch b at kb ahead 1 over nj mo kc"},
  {"not of many rows", PRODUCT("128", "500", "500", ""), "avx512", "fetch b at pk ahead 16; sink mi ni under kk in register"},
  {"and copied, a larger block of terms at a time, for more rows", PRODUCT("256", "2048", "2048", ""), "x86-64-v4",
   "split k 512 -> kb kk; sink mo nj mi ni under kb in stack; stage b at kb by nj kk ni -> pj pk pi; order pk pj pi; fetch b at pk ahead"},
  {"also where the result is not the sum itself", BIASED, "x86-64-v4", "sink nj mo mi ni under kb in stack; stage b at kb by nj kk ni"},
  {"rows that are no whole tiles end in smaller ones", PRODUCT("65", "1024", "1024", ""), "x86-64-v4",
   "sink nj m ni under kb in stack; stage b at kb by nj kk ni -> pj pk pi; order pk pj pi; split kk 16 -> kc kd; split m 8 -> mo mi tail "
   "cut 4 2 1; sink mi ni under kc kd in register; fetch b at kb ahead 1 over nj mo kc"},
  {"also of tasks that are not narrow", PRODUCT("260", "2048", "2048", ""), "x86-64-v4",
   "sink m nj ni under kb in stack; stage b at kb by nj kk ni -> pj pk pi; order pk pj pi; fetch b at pk ahead 16; split m 8 -> mo mi tail "
   "cut 4 2 1; order mo nj mi ni; sink mi ni under kk in register"},
  {"many rows meet a copied block", PRODUCT("2048", "1024", "1024", ""), "x86-64-v4",
   "stage b at kb by nj kk ni -> pj pk pi; order pk pj pi; fetch b at pk ahead 16"},
  {"open rows", PRODUCT("n0", "256", "512", " sizes 1"), "x86-64-v4", "split m 6 -> mo mi tail cut 4 2 1"},
  {"open rows, few by tiles, others by blocks", PRODUCT("n0", "784", "128", " sizes 1"), "x86-64-v3",
   "run ni lanes else: name i0 i1 i2 -> m n k; fma; split n 16 -> ns ni; split ns 1 -> no nj; split m 258 -> mc mr; order mc no mr nj ni; "
   "stage b at no by nj k ni"},
  {"open rows, many columns", PRODUCT("n0", "1024", "2048", " sizes 1"), "x86-64-v3",
   "split mr 6 -> mo mi tail cut 4 2 1; order mo nj mi ni"},
  {"open rows, many columns, wide vectors", PRODUCT("n0", "1024", "2048", " sizes 1"), "znver4",
   "split n 64 -> no ni; order no m ni; split m 6 -> mo mi tail cut 4 2 1"},
  {"one row", PRODUCT("1", "256", "512", ""), "x86-64-v4", NULL},
  {"one row, and a factor beyond L2 is read as it lies", PRODUCT("1", "602", "530", ""), "x86-64-v4",
   "split n 128 -> ns ni; split ns 3 -> nt no; split k 4 -> ko ki; order nt no m ni; sink no m ni under ko in stack; sink m ni under ki in "
   "register; fetch b at ki ahead 4; run nt tasks"},
  {"whose lines come by themselves on some machines", PRODUCT("1", "3136", "1024", ""), "znver4",
   "split n 64 -> ns ni; split ns 8 -> nt no; split k 8 -> ko ki; order nt no m ni; sink no m ni under ko in stack; sink m ni under ki in "
   "register; run nt tasks"},
  {"but not with so many rows", PRODUCT("5", "4096", "1024", ""), "znver4", "fetch b at ki ahead 16; run nt tasks"},
  {"several rows, whose sums wait less often", PRODUCT("4", "3136", "1024", ""), "znver4", "split k 16 -> ko ki"},
  {"few columns, whose rows make tasks", TRANSPOSED("1152", "192", "32"), "znver4",
   "split m 8 -> ms mi; split ms 36 -> mc mo; order mc no"},
  {"a rest of rows cannot hide lost lines", PRODUCT("12", "2048", "2048", ""), "znver4",
   "split n 64 -> no ni; order no m ni; split m 6 -> mo mi; sink"},
  {"lines of many pages are asked for a block ahead, also beside rows from beyond L2", PRODUCT("256", "2048", "2048", ""), "znver4",
   "order no nj mo mi ni; split k 128 -> kb kk; sink nj mo mi ni under kb in stack; stage b at kb by nj kk ni -> pj pk pi; order pk pj pi; "
   "split kk 16 -> kc kd; sink mi ni under kc kd in register; fetch b at kb ahead 1 over nj mo kc"},
  {"not by so many rows that a hint does not last", PRODUCT("1024", "2048", "2048", ""), "znver4", "fetch b at pk ahead 16"},
  {"a near factor stays where it lies beside rows that are copied, whose groups go into the parts", ACROSS("3136", "64", "1024"), "znver4",
   "split m 8 -> ms mi; split ms 7 -> mt mo; split mt 7 -> mc mb; order mc no mb mo nj mi ni; stage a at mb by mo k mi"},
  {"a larger one is copied", ACROSS("3136", "128", "1024"), "znver4", "stage b at no by nj k ni"},
  {"beyond L3 the CPU's own guess is left alone", PRODUCT("1", "2048", "1024", ""), "x86-64-v4", "under ki in register; run nt tasks"},
  {"few rows, and a factor in many pages", PRODUCT("5", "4096", "1024", ""), "znver4", "split n 32 -> ns ni; split ns 16 -> nt no"},
  {"few rows in one tile, where they find its pages", PRODUCT("5", "2000", "1024", ""), "znver4",
   "split n 64 -> no ni; order no m ni; split m 5 -> mo mi; sink mi ni under ka in register"},
  {"few rows in tiles of as many", PRODUCT("49", "512", "2048", ""), "znver4",
   "split n 48 -> no ni; order no m ni; split m 7 -> mo mi; sink"},
  {"also where two multiply-adds begin", PRODUCT("10", "1000", "1000", ""), "sapphirerapids", "split m 10 -> mo mi; sink"},
  {"rows whose sums would fill the registers go in two passes", PRODUCT("7", "2000", "1024", ""), "x86-64-v3",
   "order nt m no ni; split m 4 -> mo mi tail cut 3; order mo no mi ni; sink no mi ni under ko in stack; sink mi ni under ki"},
  {"or more", PRODUCT("12", "2000", "1024", ""), "x86-64-v3", "order nt m no ni; split m 4 -> mo mi; order mo no mi ni"},
  {"few open rows, and a far factor", PRODUCT("n0", "2000", "1024", " sizes 1"), "x86-64-v3",
   "when n0 < 17: name i0 i1 i2 -> m n k; fma; split n 16 -> ns ni; split ns 32 -> nt no; split k 4 -> ko ki; order nt m no ni; split m 4 "
   "-> mo mi tail cut 2 1; order mo no mi ni; sink no mi ni under ko in stack"},
  {"few pixels of open images", PIXELS("n0", "2", "512", " sizes 1"), "x86-64-v3",
   "when n0 < 5: name i0 i1 i2 i3 i4 i5 -> m bb bc n ka k; fma; split n 16 -> ns ni; split ns 16 -> nt no; split k 4 -> ko ki; order nt m "
   "no bb bc ni; sink no bb bc ni under ka ko in stack; sink bb bc ni under ki in register"},
  {"a vector times a matrix",
   "kernel k(in a: f32[600], in b: f32[600,1024], out c: f32[1024]) { par i0 < 1024 { var v0: f32 = 0:f32 red i1 < 600 { v0 = add(v0, "
   "mul(a[i1], b[i1,i0])) } c[i0] = max(v0, 0:f32) } }",
   "x86-64-v4", "order nt no ni; sink no ni under ko in stack"},
  {"columns that lie apart, few rows along the vectors", TRANSPOSED("16", "256", "512"), "x86-64-v4",
   "split m 16 -> mo mi; split n 516 -> no nc; order mo no nc mi; stage a at no by k mi -> kp mp"},
  {"columns that lie apart, 16 registers", TRANSPOSED("8", "256", "512"), "x86-64-v3",
   "split nc 12 -> nb ni tail cut 8 4 2 1; sink ni mi under k in register"},
  {"few rows, columns that lie apart: squares of these are transposed on their way", TRANSPOSED("8", "256", "512"), "znver5",
   "split n 32 -> no ni; order no m ni; split k 16 -> kb kk; sink m ni under kb kk in register; stage b at kb by kk ni -> kp np; split kp "
   "16 -> kq kr; split np 16 -> nq nr; order nq kq nr kr; run no tasks; run m nr unroll; run ni kr lanes"},
  {"by one vector where two leave a rest", TRANSPOSED("5", "256", "528"), "znver5", "split n 16 -> no ni; order no m ni; split k 16"},
  {"not where two rows are sums of vectors", TRANSPOSED("2", "1024", "3136"), "znver5", NULL},
  {"columns that lie apart, a factor in many pages", TRANSPOSED("16", "1024", "1600"), "x86-64-v4",
   "split nc 12 -> nb ni tail cut 8 4 2 1; sink ni mi under k in register; run mo no tasks; run ni mr unroll; run mi kr lanes"},
  {"columns that lie apart, copied by squares", TRANSPOSED("256", "1024", "2048"), "znver4",
   "split pk 16 -> pq pr; split pi 16 -> ps pt; order pj ps pq pt pr; fetch b at pq ahead 2"},
  {"also where two multiply-adds start in a cycle", TRANSPOSED("256", "1000", "2048"), "x86-64-v4",
   "stage b at kb by nj kk ni -> pj pk pi"},
  {"rows that lie apart, copied too", ACROSS("2048", "256", "2056"), "znver4",
   "split m 8 -> ms mi; split ms 8 -> mt mo; split mt 16 -> mc mb; order mc no mb mo nj mi ni; stage b at no by nj k ni"},
  {"and four vectors to a tile, where loads hold it up", TRANSPOSED("256", "1000", "2048"), "icelake-server",
   "split n 64 -> ns ni; split ns 4 -> no nj; order no m nj ni; split k 512 -> kb kk"},
  {"three where columns make no whole strips of them", TRANSPOSED("256", "1000", "2080"), "icelake-server",
   "split n 48 -> ns ni; split ns 6 -> no nj; split m 8 -> mo mi; order no mo nj mi ni; split k 512 -> kb kk; sink mo nj mi ni under kb "
   "in stack; stage b at kb by nj kk ni -> pj pk pi; split pk 16 -> pq pr; split pi 16 -> ps pt; order pj ps pq pt pr; fetch b at pq"},
  {"or loads hold nothing up", TRANSPOSED("256", "2048", "2048"), "sapphirerapids", "split n 48 -> ns ni;"},
  {"but no more than two where they cost as much", TRANSPOSED("256", "2048", "2048"), "znver5", "split n 32 -> ns ni;"},
  {"columns that lie apart, many rows", TRANSPOSED("256", "64", "128"), "x86-64-v4",
   "split pk 16 -> pq pr; split pi 16 -> ps pt; order pj ps pq pt pr"},
  {"columns that make no whole strip", TRANSPOSED("256", "64", "100"), "x86-64-v4", "order pj pq pi pr; split pi 16 -> ps pt tail cut 1"},
  {"all sizes open", OPEN_PRODUCT("n1", "n2", "i2,i1"), "x86-64-v4", "split k 256 -> kb kk; sink mr nj ni under kb in stack"},
  {"columns that lie apart, and few terms", TRANSPOSED("128", "10", "128"), "x86-64-v3",
   "stage b at no by nj k ni -> pj pk pi; split pk 8 -> pq pr; split pi 8 -> ps pt"},
  {"columns that lie apart, rows that fill no vector", TRANSPOSED("33", "256", "512"), "x86-64-v4",
   "stage b at no by nj k ni -> pj pk pi; split pk 16 -> pq pr; split pi 16 -> ps pt; order pj ps pq pt pr; fetch b at pq ahead 2; "
   "split m 8"},
  {"by two vectors of rows, 16 registers", TRANSPOSED("32", "1024", "1024"), "x86-64-v3",
   "split m 16 -> mo mi; split n 516 -> no nc; order mo no nc mi; stage a at no by k mi -> kp mp; split mp 8 -> mq mr"},
  {"many columns, 16 registers: all terms of as many strips as stay in L2", PRODUCT("256", "2048", "2048", ""), "x86-64-v3",
   "split n 16 -> ns ni; split ns 3 -> no nj; order no m nj ni; stage b at no by nj k ni -> pj pk pi; order pk pj pi; fetch b at pk ahead "
   "16; split m 6 -> mo mi tail cut 4 2 1; order mo nj mi ni; sink mi ni under k in register"},
  {"too many terms for that, 16 registers", PRODUCT("256", "8192", "1024", ""), "x86-64-v3",
   "split k 2736 -> kb kk; sink m nj ni under kb in stack"},
  {"many rows, 16 registers: parts of them are whole tiles", PRODUCT("4096", "512", "256", ""), "x86-64-v3",
   "split n 16 -> ns ni; split ns 8 -> no nj; split m 4 -> ms mi; split ms 256 -> mc mo; order mc no mo nj mi ni; stage b at no"},
  {"as many tasks as there shall be, of few strips", PRODUCT("8192", "512", "64", ""), "x86-64-v3",
   "split ns 4 -> no nj; split m 4 -> ms mi; split ms 256 -> mc mo"},
  {"rows that lie apart, many terms: sums wait in the result", ACROSS("256", "6272", "64"), "x86-64-v4",
   "split n 64 -> no ni; split m 36 -> mg mr; order no mg mr ni; split k 128 -> kb kk; sink mr ni under kb in result first; split mr 6 -> "
   "mo mi tail cut 4 2 1; sink mi ni under kk in register; run no mg tasks"},
  {"strips side by side share the first factor's block", ACROSS("64", "6272", "1024"), "sapphirerapids",
   "split n 64 -> no ni; split no 2 -> no nj; split m 66 -> mg mr; order no mg nj mr ni; split k 128 -> kb kk; "
   "sink nj mr ni under kb in result first; split mr 6 -> mo mi"},
  {"one strip: tasks have some of the rows", ACROSS("96", "512", "64"), "x86-64-v4",
   "split n 64 -> no ni; split m 12 -> mg mr; order no mg mr ni; split mr 6 -> mo mi; sink mi ni under ka in register; run no mg tasks"},
  {"what takes a microsecond is one task", ACROSS("96", "16", "64"), "x86-64-v4", "order no m ni; split m 6 -> mo mi; sink"},
  {"long rows from memory are asked for", ACROSS("1000", "2048", "64"), "znver5",
   "split k 128 -> kb kk; sink mr ni under kb in result first; split mr 6 -> mo mi tail cut 4 2 1; sink mi ni under kk in register; fetch "
   "a at kk ahead 128"},
  {"rows of a page come by themselves", ACROSS("1024", "2048", "64"), "znver5", "sink mi ni under kk in register; run no mg tasks"},
  {"attention: nests share the loops over heads and blocks of rows", HANDED_ON("2", "3", "24", "96", "32"), "x86-64-v4", "; join 2"},
  {"plain phases of one result share the loops around their rows",
   "kernel k(in a: f32[2,8,9,64], out b: f32[2,16,9,64]) { par i0 < 2 { par i1 < 8 { par i2 < 9 { par i3 < 64 { "
   "b[i0,mul(i1, 2),i2,i3] = a[i0,i1,i2,i3] } } } } par i4 < 2 { par i5 < 8 { par i6 < 9 { par i7 < 64 { "
   "b[i4,add(mul(i5, 2), 1),i6,i7] = neg(a[i4,i5,i6,i7]) } } } } }",
   "x86-64-v4", "join 2"},
  {"plain nests of results of their own do not",
   "kernel k(in a: f32[2,8,9,64], out b: f32[2,8,9,64], out c: f32[2,8,9,64]) { par i0 < 2 { par i1 < 8 { par i2 < 9 { par i3 < 64 { "
   "b[i0,i1,i2,i3] = a[i0,i1,i2,i3] } } } } par i4 < 2 { par i5 < 8 { par i6 < 9 { par i7 < 64 { c[i4,i5,i6,i7] = neg(a[i4,i5,i6,i7]) "
   "} } } } }",
   "x86-64-v4", NULL},
  {"attention on 16 registers", HANDED_ON("2", "3", "24", "96", "32"), "x86-64-v3", "; join 2"},

  {"rows that lie apart, 16 registers", ACROSS("2048", "256", "2056"), "x86-64-v3", "stage a at mb by mo k mi -> qo qk qi"},
  {"panels", PANELED("36", "1000", "16", "16", ""), "x86-64-v3", "split n 16 -> no ni; order no m ni; split m 6 -> mo mi; sink"},
  {"panels, as many rows as registers hold", PANELED("36", "1000", "8", "32", ""), "znver4", "split m 12 -> mo mi; sink"},
  {"panels, rows of whole pages: no more than the first cache has ways", PANELED("36", "1024", "8", "32", ""), "znver4",
   "split m 8 -> mo mi tail cut 4; sink"},
  {"the same of an open number", PANELED("n0", "1024", "8", "32", " sizes 1"), "znver4", "split ms 8 -> mo mi tail cut 4 2 1; sink"},
  {"batched", BATCHED, "x86-64-v4", "run ba no tasks"},
  {"batched, 16 registers", BATCHED, "x86-64-v3", "split n 16 -> no ni; order ba no m ni; split m 4 -> mo mi; sink"},
  {"a batch of products along the sum, 16 registers: there are tasks enough, whose strips are all of a product",
   BATCHED_OF("64", "i0,i2,i3", ""), "x86-64-v3",
   "split n 16 -> ns ni; split ns 4 -> no nj; split m 4 -> mo mi; order ba no mo nj mi ni; stage b at no by nj"},
  {"also of an open number", BATCHED_OF("n0", "i0,i2,i3", " sizes 1"), "x86-64-v3", "run ba no tasks"},
  {"a filter, by blocks of image rows", FILTER("3", "96", "32", "2", "16", "16", "18", "576", "32"), "x86-64-v4",
   "split k 48 -> kg kk; split kk 12 -> ko ki; split m 32 -> mo mi; order ba kg mo ko ki mi; split h 6 -> ho hi"},
  {"a padded filter, 16 registers: its sums begin in the result", FILTER("3", "96", "32", "2", "16", "16", "18", "576", "32"), "x86-64-v3",
   "sink ba kk mi under n ho in result first; split kk 6 -> ko ki tail cut 4 2 1"},
  {"a filter, with more channels by a wider tile", FILTER("3", "96", "64", "2", "8", "8", "10", "320", "32"), "x86-64-v4",
   "split kk 6 -> ko ki; split m 64 -> mo mi"},
  {"a filter with one vector of channels", FILTER("3", "48", "16", "2", "8", "8", "10", "160", "16"), "x86-64-v4",
   "split k 48 -> ko ki; split m 8 -> mo mi; order ba ko mo mi ki; sink mi ki under n h w in register"},
  {"a filter of one channel", FILTER("5", "5", "32", "3", "8", "9", "12", "13", "1"), "x86-64-v4",
   "split ba 2 -> bao bai tail cut 1; sink bai k m under n h w in register"},
  {"a filter of one tap, met in steps of two: a product over all pixels", APART("256", "512", "2", "28", "56"), "x86-64-v4",
   "fuse ka kb kc -> k; split n 48 -> ns ni; split ns 3 -> no nj; split m 8"},
  {"terms of two loops, which no copy of the rows makes one: they stay two", TWO_TERMS("1024", "16", "64", "1024"), "sapphirerapids",
   "stage b at mo by ka kb mi -> mp0 kbp mp"},
  {"a filter over what is inside", RAGGED("32", "64", "2", "16", "17", ""), "x86-64-v4",
   "split k 32 -> kg kk; split kk 4 -> ko ki; split m 64 -> mo mi; order ba bb kg mo ko ki mi; split h"},
  {"a filter, 16 registers: tiles with a rest, a row of taps a task", RAGGED("32", "64", "2", "16", "17", ""), "x86-64-v3",
   "split k 32 -> kg kk; split m 16 -> mo mi; order ba kg mo bb kk mi; split h 8 -> ho hi; sink bb kk mi under n ho in result; "
   "split kk 6 -> ko ki tail cut 4 2 1; sink ki mi under hi w in register; run ba kg mo tasks"},
  {"of an open number of images", RAGGED("32", "64", "n0", "8", "9", " sizes 1"), "x86-64-v4", "sink ko ki m"},
  {"over pixels two apart, of which the last tap meets fewer",
   "kernel k(in a: f32[2,56,56,128], in b: f32[2,28,28,128], out c: f32[3,3,128,128]) { par i0 < 3 { par i1 < 3 { par i2 < 128 { par i3 < "
   "128 { var v0: f32 = 0:f32 red i4 < 2 { red i5 < floordiv(sub(57, i0), 2) { red i6 < floordiv(sub(57, i1), 2) { v0 = add(v0, "
   "mul(a[i4,add(mul(i5, 2), i0),add(mul(i6, 2), i1),i2], b[i4,i5,i6,i3])) } } } c[i0,i1,i2,i3] = v0 } } } } }",
   "sapphirerapids", "split h 2 -> ho hi; sink ko ki mi under n ho in result; sink ki mi under hi w in register"},
  {"over what is inside, in the cache", RAGGED("16", "16", "4", "16", "17", ""), "znver4", NULL},
  {"a convolution, its columns under a test", TESTED("2", "28", "16", "32", ""), "x86-64-v4",
   "split w 7 -> wo wi; split m 32 -> mo mi; order ba bb mo wo wi mi; cut wo at 1 3 -> wp0 wp1 wp2; sink wi mi under ka t kc in register"},
  {"a row's rest is a tile of its own", TESTED("2", "17", "16", "16", ""), "x86-64-v4", "cut wo at 1 -> wp0 wp1; sink"},
  {"a row of one tile", TESTED("2", "5", "16", "40", ""), "x86-64-v4", "order ba bb mo wo wi mi; sink wi mi"},
  {"a filter beyond the caches is copied by its vectors", TESTED("2", "7", "512", "512", ""), "x86-64-v4",
   "order mo ba bb wo wi mi; stage b at mo by .0 .1 kc mi -> mp0 mp1 kcp mp; sink wi mi under ka t kc in register; run mo tasks"},
  {"by strips of less than half of the second cache", TESTED("1", "28", "512", "512", ""), "sapphirerapids",
   "split w 7 -> wo wi; split m 32 -> mo mi; order mo ba bb wo wi mi; stage b at mo by .0 .1 kc mi -> mp0 mp1 kcp mp"},
  {"one whose rows find their sets is asked for ahead", TESTED("2", "8", "448", "384", ""), "x86-64-v4",
   "order mo ba bb wo wi mi; sink wi mi under ka t kc in register; fetch b at kc ahead 32; run mo ba bb tasks"},
  {"one that lies along the sum is copied, too", TURNED("2", "14", "32", "32", ""), "x86-64-v4",
   "stage b at mo by .0 .1 kc mi -> mp0 mp1 kcp mp; split kcp 16 -> kcq kcr; split mp 16 -> mq mr; order mp0 mp1 mq kcq mr kcr; cut wo"},
  {"by a part of the rows where channels are few", TURNED("1", "128", "16", "16", ""), "x86-64-v4",
   "split bb 2 -> bbo bbi; order mo bbo ba bbi wo wi mi; stage b at bbo by"},
  {"by no squares where they leave a rest", TURNED("2", "6", "20", "40", ""), "x86-64-v3",
   "stage b at mo by .0 .1 kc mi -> mp0 mp1 kcp mp; cut wo"},
  {"a filter beyond the caches is asked for ahead", TESTED("2", "7", "512", "512", ""), "znver4",
   "split w 7 -> wo wi; split m 32 -> mo mi; order mo ba bb wo wi mi; sink wi mi under ka t kc in register; fetch b at kc ahead 32"},
  {"wide tiles where that leaves no rest", TESTED("2", "73", "32", "80", ""), "znver4", "split w 3 -> wo wi; split m 80 -> mo mi"},
  {"and narrow ones where the second cache would have to give four vectors for each term", TESTED("2", "147", "32", "64", ""),
   "sapphirerapids", "split w 7 -> wo wi; split m 32 -> mo mi; order ba bb mo wo wi mi; cut"},
  {"two vectors, while loads hide behind multiply-adds", TESTED("32", "8", "64", "64", ""), "sapphirerapids",
   "split w 8 -> wo wi; split m 32 -> mo mi"},
  {"and four, where they do not", TESTED("32", "8", "64", "64", ""), "icelake-server", "split w 4 -> wo wi; split m 64 -> mo mi"},
  {"an open number of images", TESTED("n0", "14", "16", "32", " sizes 1"), "x86-64-v4", "run ba bb tasks; run wi t unroll; run mi lanes"},
  {"groups of few channels: by a part of a vector", GROUPED("add(i1, i5)", "add(i2, i6)", "i7,i3,i4"), "x86-64-v4",
   "split w 16 -> wo wi; split m 8 -> mo mi; order ba bb bd mo wo wi mi; sink wi mi under ka kb kc in register; run ba bb bd tasks"},
  {"of the gradient of their input each has a copy of its part of the filter",
   GROUPED("sub(add(i1, 2), i5)", "sub(add(i2, 2), i6)", "i4,i3,i7"), "x86-64-v4",
   "order mo bd bao bai bb wo wi mi; stage b at bao by ka kb kc mi -> mp0 mp1 kcp mp"},
  {"of that of the filter a row of the window's taps are a tile", GROUPED_FILTER, "x86-64-v4",
   "split bc 3 -> bco bci; sink bci k m under n h w in register; run ba bb bco tasks; run bci k unroll"},
  {"or each by itself, by blocks of the image's rows", GROUPED_FILTER, "znver4", "sink ko ki mi under n ho in result"},
  {"a convolution of volumes", VOLUME("16", "32"), "x86-64-v4",
   "order ba bb bc mo wo wi mi; cut wo at 1 -> wp0 wp1; sink wi mi under ka kb t kd in register; run ba bb bc tasks"},
  {"the gradient of its input", VOLUME_TURNED("32", "16"), "x86-64-v3",
   "order mo bbo ba bbi bc wo wi mi; stage b at bbo by .0 .1 .2 kd mi -> mp0 mp1 mp2 kdp mp"},
  {"and of its filter", VOLUME_FILTER, "x86-64-v4", "sink k m under n kb h w in register; run ba bb tasks"},
  {"a convolution with 16 registers", TESTED("2", "12", "16", "32", ""), "x86-64-v3", "split w 6 -> wo wi; split m 16 -> mo mi"},
  {"a convolution without multiply-add", TESTED("2", "12", "16", "32", ""), "x86-64", "; split w "},
  {"a padded image, 16 registers", PADDED("2", "16", "64", "64", "18", "1152", "192"), "x86-64-v3",
   "split w 4 -> wo wi; split m 16 -> mo mi; order mo ba bb wo wi mi; sink wi mi under ka kb in register; fetch b at kb ahead 32"},
  {"a padded image", PADDED("2", "4", "256", "256", "6", "1536", "768"), "x86-64-v4", "sink wi mi under ka kb in register"},
  {"few pixels, and a filter beyond L2 is read as it lies", PADDED("2", "2", "512", "512", "4", "2048", "1536"), "x86-64-v3",
   "split k 4 -> ko ki; order nt no ba bb bc ni; sink no ba bb bc ni under ka ko in stack; sink ba bb bc ni under ki in register"},
  {"one tap, every second pixel", STRIDED("2", "28", "256", "512", "56"), "x86-64-v3",
   "stage b at mo by ka mi -> kap mp; sink wi mi under ka in register"},
  {"one tap, an open number of images",
   "kernel k(in a: f32[n0,196,64], in b: f32[64,96], out c: f32[n0,196,96]) sizes 1 { par i0 < n0 { par i1 < 196 { par i2 < 96 { var v0: "
   "f32 = 0:f32 red i3 < 64 { v0 = add(v0, mul(a[i0,i1,i3], b[i3,i2])) } c[i0,i1,i2] = v0 } } } }",
   "x86-64-v3",
   "name i0 i1 i2 i3 -> ba m n ka; fma; split n 16 -> no ni; order ba no m ni; split m 4 -> mo mi; sink mi ni under ka in register; run "
   "ba no tasks"},
  {"and by blocks, for each image",
   "kernel k(in a: f32[n0,196,256], in b: f32[256,1024], out c: f32[n0,196,1024]) sizes 1 { par i0 < n0 { par i1 < 196 { par i2 < 1024 { "
   "var v0: f32 = 0:f32 red i3 < 256 { v0 = add(v0, mul(a[i0,i1,i3], b[i3,i2])) } c[i0,i1,i2] = v0 } } } }",
   "x86-64-v3",
   "order ba no m nj ni; stage b at no by nj k ni -> pj pk pi; order pk pj pi; fetch b at pk ahead 16; split m 6 -> mo mi tail cut 4 2 1"},
  {"an open number of terms, in place, and in blocks", ACROSS_OPEN("1024", "2048"), "x86-64-v3",
   "run ni lanes else: name i0 i1 i2 -> m n k; fma; split n 16 -> ns ni"},
  {"what pads a row stands outside of its vectors",
   "kernel k(in a: f32[8,60,60,16], out b: f32[8,66,66,16]) { par i0 < 8 { par i1 < 66 { par i2 < 66 { par i3 < 16 { b[i0,i1,i2,i3] = "
   "select(and(and(le(3, i1), lt(i1, 63)), and(le(0, sub(i2, 3)), lt(sub(i2, 3), 60))), "
   "a[i0,max(min(sub(i1, 3), 59), 0),max(min(sub(i2, 3), 59), 0),i3], 0:f32) } } } } }",
   "x86-64-v4", "cut i2 at 3 63 -> i2a i2b i2c"},
  {"rows that are rolled are two copies",
   "kernel k(in a: f32[70,90], out b: f32[70,90]) { par i0 < 70 { par i1 < 90 { b[i0,i1] = "
   "a[floormod(sub(i0, 3), 70),floormod(sub(i1, 7), 90)] } } }",
   "x86-64-v3", "cut i1 at 7 -> i1a i1b"},
  {"what mirrors runs backwards at both ends",
   "kernel k(in a: f32[16,40], out b: f32[16,48]) { par i0 < 16 { par i1 < 48 { b[i0,i1] = a[i0,select(lt(sub(i1, 4), 0), sub(3, i1), "
   "select(lt(sub(i1, 4), 40), sub(i1, 4), sub(83, i1)))] } } }",
   "x86-64-v4", "cut i1 at 4 44 -> i1a i1b i1c"},
  {"tests of rows alone are worked out in front of their vectors",
   "kernel k(in a: f32[194,1024], out b: f32[200,1024]) { par i0 < 200 { par i1 < 1024 { b[i0,i1] = select(and(le(3, i0), lt(i0, 197)), "
   "a[max(min(sub(i0, 3), 193), 0),i1], 0:f32) } } }",
   "x86-64-v4", NULL},
  {"few outputs: short vectors", PADDED("2", "12", "16", "3", "14", "224", "48"), "x86-64-v4",
   "split w 12 -> wo wi; split m 4 -> mo mi; order ba bb mo wo wi mi; sink wi mi under ka kb in register; run ba bb tasks"},
  {"few outputs of a filter along the sum: vectors of terms",
   "kernel k(in a: f32[2,14,14,32], in b: f32[3,3,3,32], out c: f32[2,12,12,3]) { par i0 < 2 { par i1 < 12 { par i2 < 12 { par i3 < 3 { "
   "var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { red i6 < 32 { v0 = add(v0, mul(a[i0,add(i1, i4),add(i2, i5),i6], b[i4,i5,i3,i6])) } } } "
   "c[i0,i1,i2,i3] = v0 } } } } }",
   "x86-64-v4", NULL},
  {"pixels two apart of an open number of images: a far filter is read once for all of them",
   "kernel k(in a: f32[n0,14,14,1024], in b: f32[1024,2048], out c: f32[n0,7,7,2048]) sizes 1 { par i0 < n0 { par i1 < 7 { par i2 < 7 { "
   "par i3 < 2048 { var v0: f32 = 0:f32 red i4 < 1024 { v0 = add(v0, mul(a[i0,mul(i1, 2),mul(i2, 2),i4], b[i4,i3])) } c[i0,i1,i2,i3] = v0 "
   "} } } } }",
   "sapphirerapids", "order mo ba bb wo wi mi; stage b at mo by ka mi -> kap mp"},
  {"and of panels, where seven pixels fill a tile",
   "kernel k(in a: f32[n0,14,14,1024], in b: f32[64,1024,32], out c: f32[n0,7,7,2048]) sizes 1 { par i0 < n0 { par i1 < 7 { par i2 < 7 { "
   "par i3 < 2048 { var v0: f32 = 0:f32 red i4 < 1024 { v0 = add(v0, mul(a[i0,mul(i1, 2),mul(i2, 2),i4], b[floordiv(i3, "
   "32),i4,floormod(i3, 32)])) } c[i0,i1,i2,i3] = v0 } } } } }",
   "sapphirerapids", "-> ba bb m n ka; fma; split n 32 -> no ni; order no ba bb m ni; split m 7 -> mo mi"},
  {"rows are the columns of an open number of images", PANELED_IMAGES, "x86-64-v4",
   "-> ba bb m n ka kb; fma; split n 16 -> no ni; order ba bb no m ni; split m 12 -> mo mi tail cut 2"},
  {"a column of taps: all of them are copied", COLUMN("2", "16", "512", "512"), "x86-64-v3", "stage b at mo by .0 kb mi -> mp0 kbp mp"},
  {"phases of a gradient, each by itself", PHASES, "x86-64-v3", "stage b at mo"},
  {"by channel, channels innermost", BY_CHANNEL("56", "128"), "x86-64-v4",
   "order ba bb wo mo wi mi; cut wo at 1 6 -> wp0 wp1 wp2; sink wi mi under ka t in register; run ba bb tasks; run wi t unroll"},
  {"by channel with 16 registers", BY_CHANNEL("56", "128"), "x86-64-v3", "order ba bb wo mo wi mi"},
  {"the taps of a filter by channel", TAPS("3", "56", "128"), "x86-64-v4",
   "order mo y x mi; sink y x mi under n h w in register; cut h at 1 55 -> hp0 hp1 hp2; split w 8 -> wo wi; cut wo at 1 6"},
  {"a row of them, where there are many", TAPS("5", "14", "64"), "x86-64-v4",
   "cut h; split m 32 -> mo mi; order y mo x mi; sink x mi under n h w in register; split w 7 -> wo wi; cut wo at 1"},
  {"taps with 16 registers", TAPS("3", "12", "128"), "x86-64-v3",
   "split m 8 -> mo mi; order mo y x mi; sink y x mi under n h w in register; stage a at n"},
  {"taps of far images: whole pixels, row by row", TAPS("3", "56", "128"), "x86-64-v3",
   "split m 32 -> mg mr; split mr 8 -> mo mi; order mg mo y x mi; sink mo y x mi under n h in stack; sink y x mi under w in register"},
  {"the same by wider vectors", TAPS("3", "28", "256"), "sapphirerapids",
   "split m 64 -> mg mr; split mr 32 -> mo mi; order mg mo y x mi; sink mo y x mi under n h in stack; sink y x mi under w in register"},
  {"taps without multiply-add, channels that fill no vector", TAPS("3", "26", "17"), "x86-64",
   "m n h w; split m 4 -> mo mi; order mo y x mi; sink y x mi under n h w in register; cut h at 1 25 -> hp0 hp1 hp2; split w 8 -> wo wi; "
   "cut wo at 1 3 -> wop0 wop1 wop2; run mo tasks"},
  {"a small image is copied, pixels behind each other", TAPS("3", "7", "512"), "x86-64-v4",
   "sink y x mi under n h w in register; stage a at n by .1 .2 mi -> ph pw pm; cut h at 1 6 -> hp0 hp1 hp2"},
  {"by parts of a pair of lines sooner", TAPS("3", "8", "256"), "x86-64-v3",
   "split m 8 -> mo mi; order mo y x mi; sink y x mi under n h w "
   "in register; stage a at n by .1 .2 mi -> ph pw pm"},
  {"taps whose sums leave no registers for what is read again", TAPS("11", "26", "32"), "x86-64-v4",
   "split m 16 -> mo mi; order y mo x mi"},
  {"taps that are all inside: nothing is cut but a smaller last block", TAPS_INSIDE("26", "53", "32"), "x86-64-v4",
   "split m 16 -> mo mi; order mo y x mi; sink y x mi under n h w in register; split w 8 -> wo wi; cut wo at 3 -> wop0 wop1; run mo"},
  {"taps that reach far", TAPS("9", "26", "32"), "x86-64-v4", "split w 8 -> wo wi; cut wo at 1 2 3 -> wop0 wop1 wop2 wop3"},
  {"rows of any width: what full tiles leave is code of its own",
   "kernel k(in a: f32[2,5,258,96], in b: f32[3,3,96,64], out c: f32[2,3,n0,64]) sizes 1 { par i0 < 2 { par i1 < 3 { par i2 < n0 { par "
   "i3 < 64 { var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { red i6 < 96 { v0 = add(v0, mul(a[i0,add(i1, i4),add(i2, i5),i6], "
   "b[i4,i5,i6,i3])) } } } c[i0,i1,i2,i3] = v0 } } } } }",
   "znver4", "order ba bb mo w mi; split w 4 -> wo wi tail cut 2 1; sink wi mi under ka kb kc in register"},
  {"statistics of channels: parts, in the order of memory", MOMENTS("8", "32", "64", ""), "x86-64-v4",
   "split i0 64 -> ro0 ri0; fuse i1 i2 -> pt; part pt 16 -> po pi ps; sink ri0 under pi i3 in register; fuse i4 i5 -> pt0_1; part pt0_1 16 "
   "-> po0_1 pi0_1 ps0_1; sink ri0 under pi0_1 i6 in register; run po po0_1 ro0 tasks; run ri0 lanes"},
  {"fewer channels at a time with 16 registers", MOMENTS("16", "16", "128", ""), "x86-64-v3", "split i0 64 -> ro0 ri0; part i1 16 -> po"},
  {"also of an open number of images", MOMENTS("n0", "16", "64", " sizes 1"), "x86-64-v4", "split i0 64 -> ro0 ri0; part i1 16 -> po pi"},
  {"of so few that their sums would wait", MOMENTS("32", "32", "16", ""), "x86-64-v3", "part i1 16 -> po pi ps; part i4 16 -> po0_1"},
  {"of channels that lie apart", MOMENTS_APART("16", "16", "128"), "x86-64-v3", "part i1 16 -> po pi ps; part i4 16 -> po0_1"},
  {"of what is scaled",
   "kernel k(in a: f32[10000,64], in b: f32[64], out c: f32[64]) { par i0 < 64 { var v0: f32 = b[i0] red i1 < 10000 { v0 = add(v0, "
   "mul(a[i1,i0], 2:f32)) } c[i0] = v0 } }",
   "x86-64-v4", "split i0 64 -> ro0 ri0; part i1 16 -> po pi ps; sink ri0 under pi in register; run po ro0 tasks; run ri0 lanes"},
  {"of doubles: as many bytes at a time",
   "kernel k(in a: f64[10000,64], in b: f64[64], out c: f64[64]) { par i0 < 64 { var v0: f64 = b[i0] red i1 < 10000 { v0 = add(v0, "
   "a[i1,i0]) } c[i0] = v0 } }",
   "x86-64-v3", "split i0 32 -> ro0 ri0; part i1 16 -> po pi ps; sink ri0 under pi in register"},
  {"of few images", MOMENTS("8", "16", "64", ""), "x86-64-v3", NULL},
  {"one sum", SUM("1000000"), "x86-64-v3", "part i0 16 -> po1_0 pi1_0 ps1_0"},
  {"one long sum", SUM("4000000"), "x86-64-v3", "part i0 64 -> po1_0 pi1_0 ps1_0"},
  {"one that is longer than parts are many", SUM("100000000"), "x86-64-v3", "part i0 256 -> po1_0 pi1_0 ps1_0"},
  {"one sum, small", SUM("10000"), "x86-64-v3", NULL},
  {"bfloat16, by pairs of terms", NARROW_PRODUCT("32", "1024", "256"), "znver4",
   "split k 2 -> ku kw; split ku 256 -> kb kp; sink mo nj mi ni under kb in stack; stage b at kb by nj kp ni kw -> pj pk pi pw; order pk "
   "pj pi; fetch b at pk ahead 16; sink mi ni under kp in register; pair kw; run no tasks; run mi pw unroll"},
  {"blocks whose last one is smaller", NARROW_PRODUCT("64", "784", "128"), "sapphirerapids", "pair kw"},
  {"a sum over turns that are known, of rows that are not: the blocks of each turn", SUM_OF_TURNS("32", "128", "512"), "x86-64-v4",
   "split k 256 -> kb kk; sink mb mo nj mi ni under ka kb in stack; stage b at kb by nj kk ni -> pj pk pi; order pk pj pi; fetch b at pk "
   "ahead 16; stage a at mb by mo kk mi -> qo qk qi"},
  {"few of those by tiles", SUM_OF_TURNS("32", "128", "512"), "sapphirerapids",
   "when n0 < 16: name i0 i1 i2 i3 -> m n ka kb; fma; split n 64 -> no ni; order m no ni; split m 6 -> mo mi tail cut 4 2 1; "
   "order mo no mi ni"},
  {"an odd number of terms: the last one behind all", NARROW_PRODUCT("32", "1023", "256"), "znver4",
   "split k 2 -> ku kw tail kt cut 1; split ku 256 -> kb kp; sink mo nj mi ni under kb in stack; stage b at kb by nj kp ni kw"},
  {"an open one", NARROW_ACROSS_OPEN("256", "512"), "znver4", "split k 2 -> ku kw tail kt cut 1; split ku 128 -> kb kp"},
  {"a machine that multiplies no pairs", NARROW_PRODUCT("32", "1024", "256"), "x86-64-v4", "stage b computed at kb"},
  {"of what is rounded first", NARROW_TRANSPOSED("32", "1024", "256"), "znver4", "stage b computed bf16 at kb by nj kp ni kw"},
  {"the gradient of weights: rows are copied, too", NARROW_ACROSS("256", "64", "256"), "znver4",
   "stage a computed bf16 at mb by mo kp mi kw -> qo qk qi qw"},
  {"a convolution by pairs", NARROW_PADDED("2", "14", "64", "64", "16", "1024", "192"), "znver4",
   "split kb 2 -> kbu kbv; stage b computed bf16 at mo by ka kbu mi kbv -> mp0 kbp mp kbz; sink wi mi under ka kbu in register; pair kbv"},
  {"the gradient of its input", NARROW_TURNED("2", "14", "64", "64", "16"), "znver4", "order mp0 mp1 mq kcq mr kcr; sink wi mi under"},
  {"and of its filter", NARROW_FILTER("3", "192", "64", "2", "14", "14", "16", "1024", "64"), "znver4",
   "stage a at ho by ko hi wu ki wv -> qo qh qw qk qz; order qh qw qo qk; sink ki mi under hi wu in register; pair wv; run ba kg tasks"},
  {"a filter of channels that fill no vector", FILTER("3", "96", "20", "2", "8", "8", "10", "320", "32"), "x86-64-v4", NULL},
};

static inline struct kernel *parsed(const char *text, struct arena *arena) {
  struct kernel *k = NULL;
  if (kernel_parse(text, arena, &k) != OK)
    test_fail("%s: %s", text, status_text());
  return k;
}

static inline const char *chosen(const struct kernel *k, const char *cpu, struct arena *arena) {
  const char *steps;
  assert_int_equal(schedule_choose(k, machine_find(cpu), NULL, arena, &steps), OK);
  return steps;
}

/* What is proposed for the one nest of a kernel. */
struct proposals {
  struct arena arena;
  struct kernel *k;
  struct kernel_uses uses;
  struct nest nest;
  struct candidates all;
};
static inline void proposals_begin(struct proposals *p, const char *text, const struct machine *machine) {
  *p = (struct proposals){0};
  arena_init(&p->arena);
  p->k = parsed(text, &p->arena);
  kernel_uses_find(p->k, &p->arena, &p->uses);
  p->nest = (struct nest){.k = p->k, .uses = &p->uses, .machine = machine, .top = p->k->body, .arena = &p->arena};
}
static inline void proposals_end(struct proposals *p) {
  vec_free(&p->all.items);
  arena_deinit(&p->arena);
}

#endif
