/* schedule_kernels.h: the kernels of tests of schedules. */
#ifndef TFC_TESTS_IR_SCHEDULE_KERNELS_H
#define TFC_TESTS_IR_SCHEDULE_KERNELS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ir/schedule/schedule.h"

#include <cmocka.h>

static const char product[] = "kernel product(in a: f32[6,1024], in b: f32[1024,2000], in c: f32[2000], out d: f32[6,2000]) {"
                              "  par i0 < 6 { par i1 < 2000 { var v0: f32 = 0:f32"
                              "    red i2 < 1024 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) }"
                              "    d[i0,i1] = max(add(v0, c[i1]), 0:f32) } } }";
static const char filter[] = "kernel filter(in a: f32[8,58,3712], in b: f32[8,56,56,64], out c: f32[3,192,64]) {"
                             "  par i0 < 3 { par i1 < 192 { par i2 < 64 { var v0: f32 = 0:f32"
                             "    red i3 < 8 { red i4 < 56 { red i5 < 56 {"
                             "      v0 = add(v0, mul(a[i3,add(i4, i0),add(mul(i5, 64), i1)], b[i3,i4,i5,i2])) } } }"
                             "    c[i0,i1,i2] = v0 } } } }";
/* an open number of terms */
static const char across_open[] = "kernel across(in a: f32[n0,8], in b: f32[n0,40], out c: f32[8,40]) sizes 1 { par i0 < 8 { par i1 < 40 { "
                                  "var v0: f32 = 0:f32 red i2 < n0 { v0 = add(v0, mul(a[i2,i0], b[i2,i1])) } c[i0,i1] = v0 } } }";
static const char open_map[] = "kernel map(in a: f32[n0], out b: f32[n0]) sizes 1 { par i0 < n0 { b[i0] = neg(a[i0]) } }";
static const char depthwise[] = "kernel depthwise(in a: f32[14,28,32], in b: f32[3,3,32], out c: f32[14,28,32]) {"
                                "  par i0 < 14 { par i1 < 28 { par i2 < 32 { var v0: f32 = 0:f32"
                                "    red i3 < 3 { red i4 < 3 {"
                                "      %0 = sub(add(i0, i3), 1) %1 = sub(add(i1, i4), 1)"
                                "      v0 = add(v0, mul(select(and(and(le(0, %0), lt(%0, 14)), and(le(0, %1), lt(%1, 28))),"
                                "        a[max(min(%0, 13), 0),max(min(%1, 27), 0),i2], 0:f32), b[i3,i4,i2])) } }"
                                "    c[i0,i1,i2] = v0 } } } }";
static const char turned[] =
  "kernel turned(in a: f32[n0,64], in b: f32[n1,64], out c: f32[n0,100]) sizes 2 {"
  "  par i0 < n0 { par i1 < 100 { var v0: f32 = 0:f32 red i2 < 64 { v0 = add(v0, mul(a[i0,i2], b[i1,i2])) } c[i0,i1] = v0 } } }";
static const char fewer[] = /* of the first factor's rows */
  "kernel fewer(in a: f32[n0,64], in b: f32[100,64], out c: f32[n1,100]) sizes 2 {"
  "  par i0 < n1 { par i1 < 100 { var v0: f32 = 0:f32 red i2 < 64 { v0 = add(v0, mul(a[i0,i2], b[i1,i2])) } c[i0,i1] = v0 } } }";
static const char flipped[] =
  "kernel flipped(in a: f32[10,6], in b: f32[3,20,6], out c: f32[8,20]) {"
  "  par i0 < 8 { par i1 < 20 { var v0: f32 = 0:f32"
  "    red i2 < 3 { red i3 < 6 { v0 = add(v0, mul(a[add(i0, i2),i3], b[sub(2, i2),i1,i3])) } } c[i0,i1] = v0 } } }";
static const char blocked[] =
  "kernel k(in a: f32[16,64], in b: f32[64,40], out c: f32[16,40]) {"
  "  par i0 < 16 { par i1 < 40 { var v0: f32 = 0:f32 red i2 < 64 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }";
static const char square[] =
  "kernel square(in a: f32[6,4], out b: f32[6,4]) { par i0 < 6 { par i1 < 4 { b[i0,i1] = mul(a[i0,i1], a[i0,i1]) } } }";
static const char checked[] =
  "kernel checked(in a: i32[8,4], out b: f32[8]) { par i0 < 8 { var v0: f32 = 0:f32"
  "  red i1 < 4 { check le(0:i32, a[i0,i1]) else INVALID_ARGUMENT \"below 0\" v0 = add(v0, 1:f32) } b[i0] = v0 } }";

static const char moments[] = "kernel moments(in a: f32[n0,6], out b: f32[6], out c: f32[6]) sizes 1 { par i0 < 6 { var v0: f32 = 0:f32"
                              "  red i1 < n0 { v0 = add(v0, a[i1,i0]) } var v1: f32 = div(v0, cast.f32(n0)) var v2: f32 = -inf:f32"
                              "  red i2 < n0 { v2 = max(v2, sub(a[i2,i0], v1)) } b[i0] = v1 c[i0] = v2 } }";
static const char whole[] =
  "kernel whole(in a: f32[100], out b: f32[]) { var v0: f32 = 1:f32 red i0 < 100 { v0 = mul(v0, a[i0]) } b[] = v0 }";
static const char strange[] =
  "kernel strange(in a: f32[100,4], out b: f32[4], out c: f32[4]) { par i0 < 4 { var v0: f32 = 1:f32 var v1: f32 = 1:f32"
  "  red i1 < 100 { v0 = sub(a[i1,i0], v0) } b[i0] = v0 red i2 < 100 { v1 = add(v1, a[i2,i0]) } c[i0] = v1 } }";

/* Rows of a product, then what their sums make of them, which others may take, too. */
static const char handed_on[] =
  "kernel handed(in a: f32[2,3,4], in b: f32[4,5], out c: f32[2,3,5], scratch d: f32[2,3,5], scratch e: f32[2,3]) {"
  " par i0 < 2 { par i1 < 3 { par i2 < 5 { var v0: f32 = 0:f32"
  "  red i3 < 4 { v0 = add(v0, mul(a[i0,i1,i3], b[i3,i2])) } d[i0,i1,i2] = v0 } } }"
  " par i4 < 2 { par i5 < 3 { var v1: f32 = 0:f32"
  "  red i6 < 5 { v1 = add(v1, d[i4,i5,i6]) } e[i4,i5] = v1 } }"
  " par i7 < 2 { par i8 < 3 { par i9 < 5 { c[i7,i8,i9] = mul(d[i7,i8,i9], e[i7,i8]) } } } }";
/* As many images as the size says, the rows of each as many as a size, too. */
static const char of_images[] = "kernel of_images(in a: f32[n0,n1,5], out b: f32[n0,n1,5], scratch c: f32[n0,n1,5]) sizes 2 {"
                                " par i0 < n0 { par i1 < n1 { par i2 < 5 { c[i0,i1,i2] = neg(a[i0,i1,i2]) } } }"
                                " par i3 < n0 { par i4 < n1 { par i5 < 5 { b[i3,i4,i5] = c[i3,i4,sub(4, i5)] } } } }";
static const char backward[] = "kernel backward(in a: f32[4,5], out b: f32[4,5], scratch c: f32[4,5]) {"
                               " par i0 < 4 { par i1 < 5 { c[i0,i1] = neg(a[i0,i1]) } }"
                               " par i2 < 4 { par i3 < 5 { b[i2,i3] = c[sub(3, i2),i3] } } }";
/* The phases of a result: even and odd rows; rows of which the second nest's are some of the first's; a row that it reads, too. */
static const char phases[] = "kernel phases(in a: f32[2,3,5], out b: f32[2,6,5]) {"
                             " par i0 < 2 { par i1 < 3 { par i2 < 5 { b[i0,mul(i1, 2),i2] = a[i0,i1,i2] } } }"
                             " par i3 < 2 { par i4 < 3 { par i5 < 5 { b[i3,add(mul(2, i4), 1),i5] = neg(a[i3,i4,i5]) } } } }";
static const char phases_meet[] = "kernel phases(in a: f32[2,3,5], out b: f32[2,9,5]) {"
                                  " par i0 < 2 { par i1 < 3 { par i2 < 5 { b[i0,mul(i1, 2),i2] = a[i0,i1,i2] } } }"
                                  " par i3 < 2 { par i4 < 3 { par i5 < 5 { b[i3,add(mul(3, i4), 1),i5] = neg(a[i3,i4,i5]) } } } }";
static const char phases_read[] = "kernel phases(in a: f32[2,3,5], inout b: f32[2,6,5]) {"
                                  " par i0 < 2 { par i1 < 3 { par i2 < 5 { b[i0,mul(i1, 2),i2] = a[i0,i1,i2] } } }"
                                  " par i3 < 2 { par i4 < 3 { par i5 < 5 { b[i3,add(mul(2, i4), 1),i5] = b[i3,0,i5] } } } }";
static const char uneven[] = "kernel uneven(in a: f32[4,5], out b: f32[4], out c: f32[n0,5]) sizes 1 {"
                             " par i0 < 4 { par i1 < 5 { b[i0] = a[i0,i1] } } par i2 < n0 { par i3 < 5 { c[i2,i3] = a[0,i3] } } }";

static inline struct kernel *parsed(const char *text, struct arena *arena) {
  struct kernel *k = NULL;
  if (kernel_parse(text, arena, &k) != OK)
    fail_msg("%s: %s", text, status_text());
  return k;
}
static inline struct schedule steps(const char *text, struct arena *arena) {
  struct schedule s = {0};
  if (schedule_parse(text, arena, &s) != OK)
    fail_msg("%s: %s", text, status_text());
  return s;
}

#endif
