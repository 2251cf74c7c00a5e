/* Schedules: their text, what steps make of kernels, what they refuse. */
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
static const char backward[] = "kernel backward(in a: f32[4,5], out b: f32[4,5], scratch c: f32[4,5]) {"
                               " par i0 < 4 { par i1 < 5 { c[i0,i1] = neg(a[i0,i1]) } }"
                               " par i2 < 4 { par i3 < 5 { b[i2,i3] = c[sub(3, i2),i3] } } }";
static const char uneven[] = "kernel uneven(in a: f32[4,5], out b: f32[4], out c: f32[n0,5]) sizes 1 {"
                             " par i0 < 4 { par i1 < 5 { b[i0] = a[i0,i1] } } par i2 < n0 { par i3 < 5 { c[i2,i3] = a[0,i3] } } }";

static struct kernel *parsed(const char *text, struct arena *arena) {
  struct kernel *k = NULL;
  if (kernel_parse(text, arena, &k) != OK)
    fail_msg("%s: %s", text, status_text());
  return k;
}
static struct schedule steps(const char *text, struct arena *arena) {
  struct schedule s = {0};
  if (schedule_parse(text, arena, &s) != OK)
    fail_msg("%s: %s", text, status_text());
  return s;
}

/* ---- text ---- */

static void printing_what_was_parsed_gives_the_text(void **state) {
  (void)state;
  static const char *const texts[] = {
    "",
    "name i0 i1 i2 -> m n k; fma; split n 32 -> no ni; order no m ni; split m 8 -> mo mi tail cut 4 2 1; "
    "sink mi ni under k in register; fetch b at k ahead 16; run no tasks; run mi unroll; run ni lanes",
    "fuse kh kc -> t; sink t co under n hb in result first; sink t co under h w in stack; order n h regroup; cut w at 1 55 -> wl w wr; "
    "run co lanes 64; fetch b27 at k ahead 1; stage a at no by k ni -> ak an; stage b at m by .0 k .12 -> b0 bk bl",
    "part k 4 -> po pi ps; join 2",
    "when n0 < 64: run i0 unroll\nelse: when n1 < 9: fma\nelse: run i0 tasks",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct arena arena;
    arena_init(&arena);
    struct schedule s = steps(texts[i], &arena);
    assert_string_equal(schedule_print(&s, &arena), texts[i]);
    arena_deinit(&arena);
  }
}

static void mistakes_are_told(void **state) {
  (void)state;
  static const char *const texts[] = {
    "glue m",
    "join",
    "join 0",
    "join m",
    "split m -> mo mi",
    "split m 0 -> mo mi",
    "split m 8 -> mo",
    "split m 8 4 -> mo mi",
    "name i0 i1 -> m",
    "run m",
    "run m sideways",
    "sink m under k",
    "sink m in stack",
    "fetch 3 at k ahead 1",
    "fetch b at k ahead 0",
    "cut w -> a",
    "cut w at 1 -> a",
    "fuse m -> t",
    "order",
    "when n0 < 4: fma",
    "when m < 4: fma else: fma",
    "run m tasks }",
    "stage b at m by k",
    "stage b by k -> bk",
    "stage b at m by . k -> x y",
    "stage b at m by .k -> x",
    "stage b at m by .100 -> x",
    "order .0 m",
    "order a b c d e f g h i j l m n o p q r s",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct arena arena;
    arena_init(&arena);
    struct schedule s = {0};
    if (schedule_parse(texts[i], &arena, &s) != INVALID_ARGUMENT)
      fail_msg("%s is no schedule", texts[i]);
    arena_deinit(&arena);
  }
}

/* ---- results ---- */

static const struct result {
  const char *kernel, *steps, *text;
} results[] = {
  {product,
   "name i0 i1 i2 -> m n k; fma; fma; split n 32 -> no ni; order no m ni; split m 4 -> mo mi tail cut 2 1; "
   "sink mi ni under k in register; fetch b at k ahead 16; run no tasks; run mi unroll; run ni lanes",
   "kernel product(in a: f32[6,1024], in b: f32[1024,2000], in c: f32[2000], out d: f32[6,2000]) {\n"
   "  par no < 63 tasks {\n"
   "    buffer e: f32[4,32] in register\n"
   "    par mi < 4 unroll {\n"
   "      par ni < min(32, sub(2000, mul(no, 32))) lanes 32 {\n"
   "        e[mi,ni] = 0:f32\n"
   "      }\n"
   "    }\n"
   "    red k < 1024 {\n"
   "      seq ni_line < 2 unroll {\n"
   "        fetch b[add(k, 16),add(mul(no, 32), mul(ni_line, 16))]\n"
   "      }\n"
   "      par mi < 4 unroll {\n"
   "        par ni < min(32, sub(2000, mul(no, 32))) lanes 32 {\n"
   "          e[mi,ni] = fma(a[mi,k], b[k,add(mul(no, 32), ni)], e[mi,ni])\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    par mi < 4 unroll {\n"
   "      par ni < min(32, sub(2000, mul(no, 32))) lanes 32 {\n"
   "        %0 = add(mul(no, 32), ni)\n"
   "        d[mi,%0] = max(add(e[mi,ni], c[%0]), 0:f32)\n"
   "      }\n"
   "    }\n"
   "    buffer f: f32[2,32] in register\n"
   "    par mi < 2 unroll {\n"
   "      par ni < min(32, sub(2000, mul(no, 32))) lanes 32 {\n"
   "        f[mi,ni] = 0:f32\n"
   "      }\n"
   "    }\n"
   "    red k < 1024 {\n"
   "      seq ni_line < 2 unroll {\n"
   "        fetch b[add(k, 16),add(mul(no, 32), mul(ni_line, 16))]\n"
   "      }\n"
   "      par mi < 2 unroll {\n"
   "        par ni < min(32, sub(2000, mul(no, 32))) lanes 32 {\n"
   "          f[mi,ni] = fma(a[add(4, mi),k], b[k,add(mul(no, 32), ni)], f[mi,ni])\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    par mi < 2 unroll {\n"
   "      par ni < min(32, sub(2000, mul(no, 32))) lanes 32 {\n"
   "        %0 = add(mul(no, 32), ni)\n"
   "        d[add(4, mi),%0] = max(add(f[mi,ni], c[%0]), 0:f32)\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {filter,
   "name i0 i1 i2 i3 i4 i5 -> kh kc co n h w; fma; split h 4 -> hb h4; split kc 4 -> kb k4; fuse kh kb -> t; run t tasks; "
   "sink k4 co under n hb in result first; sink k4 co under h4 w in register; run k4 unroll; run co lanes",
   "kernel filter(in a: f32[8,58,3712], in b: f32[8,56,56,64], out c: f32[3,192,64]) {\n"
   "  par t < 144 tasks {\n"
   "    red n < 8 {\n"
   "      red hb < 14 {\n"
   "        buffer d: f32[4,64] in register\n"
   "        par k4 < 4 unroll {\n"
   "          par co < 64 lanes 64 {\n"
   "            d[k4,co] = select(or(lt(0, n), lt(0, hb)), c[floordiv(t, 48),add(mul(floormod(t, 48), 4), k4),co], 0:f32)\n"
   "          }\n"
   "        }\n"
   "        red h4 < 4 {\n"
   "          red w < 56 {\n"
   "            par k4 < 4 unroll {\n"
   "              par co < 64 lanes 64 {\n"
   "                %0 = add(mul(hb, 4), h4)\n"
   "                d[k4,co] = fma(a[n,add(%0, floordiv(t, 48)),add(mul(w, 64), add(mul(floormod(t, 48), 4), k4))], b[n,%0,w,co], "
   "d[k4,co])\n"
   "              }\n"
   "            }\n"
   "          }\n"
   "        }\n"
   "        par k4 < 4 unroll {\n"
   "          par co < 64 lanes 64 {\n"
   "            c[floordiv(t, 48),add(mul(floormod(t, 48), 4), k4),co] = d[k4,co]\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {across_open,
   "when n0 < 9: name i0 i1 i2 -> m n k; split n 8 -> ns ni; split ns 2 -> no nj; order no m nj ni; stage b at no by nj k ni "
   "-> pj pk pi; run no tasks\n"
   "else: name i0 i1 i2 -> m n k; split n 16 -> no ni; split m 4 -> mb mi; order no mb mi ni; split k 8 -> kb kk; sink mb mi "
   "ni under kb in stack; stage b at kb by kk ni -> pk pi; stage a at mb by mi kk -> qm qk",
   "kernel across(in a: f32[n0,8], in b: f32[n0,40], out c: f32[8,40]) sizes 1 {\n"
   "  if lt(n0, 9) {\n"
   "    par no < 3 tasks {\n"
   "      buffer d: f32[2,8,8] in stack\n"
   "      par pj < min(2, sub(5, mul(no, 2))) {\n"
   "        par pk < n0 {\n"
   "          par pi < 8 {\n"
   "            d[pj,pk,pi] = b[pk,add(mul(add(mul(no, 2), pj), 8), pi)]\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "      par m < 8 {\n"
   "        par nj < min(2, sub(5, mul(no, 2))) {\n"
   "          par ni < 8 {\n"
   "            var v0: f32 = 0:f32\n"
   "            red k < n0 {\n"
   "              v0 = add(v0, mul(a[k,m], d[nj,k,ni]))\n"
   "            }\n"
   "            c[m,add(mul(add(mul(no, 2), nj), 8), ni)] = v0\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "  } else {\n"
   "    par no < 3 {\n"
   "      buffer e: f32[2,4,16] in stack\n"
   "      par mb < 2 {\n"
   "        par mi < 4 {\n"
   "          par ni < min(16, sub(40, mul(no, 16))) {\n"
   "            e[mb,mi,ni] = 0:f32\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "      red kb < floordiv(add(n0, 7), 8) {\n"
   "        buffer f: f32[8,16] in stack\n"
   "        par pk < min(8, sub(n0, mul(kb, 8))) {\n"
   "          par pi < min(16, sub(40, mul(no, 16))) {\n"
   "            f[pk,pi] = b[add(mul(kb, 8), pk),add(mul(no, 16), pi)]\n"
   "          }\n"
   "        }\n"
   "        par mb < 2 {\n"
   "          buffer g: f32[4,8] in stack\n"
   "          par qm < 4 {\n"
   "            par qk < min(8, sub(n0, mul(kb, 8))) {\n"
   "              g[qm,qk] = a[add(mul(kb, 8), qk),add(mul(mb, 4), qm)]\n"
   "            }\n"
   "          }\n"
   "          par mi < 4 {\n"
   "            par ni < min(16, sub(40, mul(no, 16))) {\n"
   "              var v1: f32 = e[mb,mi,ni]\n"
   "              red kk < min(8, sub(n0, mul(kb, 8))) {\n"
   "                v1 = add(v1, mul(g[mi,kk], f[kk,ni]))\n"
   "              }\n"
   "              e[mb,mi,ni] = v1\n"
   "            }\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "      par mb < 2 {\n"
   "        par mi < 4 {\n"
   "          par ni < min(16, sub(40, mul(no, 16))) {\n"
   "            c[add(mul(mb, 4), mi),add(mul(no, 16), ni)] = e[mb,mi,ni]\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {open_map, "when n0 < 64: \nelse: name i0 -> n; split n 16 -> no ni; run no tasks; run ni lanes",
   "kernel map(in a: f32[n0], out b: f32[n0]) sizes 1 {\n"
   "  if lt(n0, 64) {\n"
   "    par i0 < n0 {\n"
   "      b[i0] = neg(a[i0])\n"
   "    }\n"
   "  } else {\n"
   "    par no < floordiv(add(n0, 15), 16) tasks {\n"
   "      par ni < min(16, sub(n0, mul(no, 16))) lanes 16 {\n"
   "        %0 = add(mul(no, 16), ni)\n"
   "        b[%0] = neg(a[%0])\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {blocked,
   "name i0 i1 i2 -> m n k; split n 16 -> ns ni; split ns 2 -> no nj; split m 4 -> mo mi; order no mo nj mi ni; split k 32 -> kb kk; "
   "sink mo nj mi ni under kb in stack; stage b at kb by nj kk ni -> pj pk pi; order pk pj pi; stage a at mo by mi kk -> qm qk",
   "kernel k(in a: f32[16,64], in b: f32[64,40], out c: f32[16,40]) {\n"
   "  par no < 2 {\n"
   "    buffer d: f32[4,2,4,16] in stack\n"
   "    par mo < 4 {\n"
   "      par nj < min(2, sub(3, mul(no, 2))) {\n"
   "        par mi < 4 {\n"
   "          par ni < min(16, sub(40, mul(add(mul(no, 2), nj), 16))) {\n"
   "            d[mo,nj,mi,ni] = 0:f32\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    red kb < 2 {\n"
   "      buffer e: f32[2,32,16] in stack\n"
   "      par pk < 32 {\n"
   "        par pj < min(2, sub(3, mul(no, 2))) {\n"
   "          par pi < min(16, sub(40, mul(add(mul(no, 2), pj), 16))) {\n"
   "            e[pj,pk,pi] = b[add(mul(kb, 32), pk),add(mul(add(mul(no, 2), pj), 16), pi)]\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "      par mo < 4 {\n"
   "        buffer f: f32[4,32] in stack\n"
   "        par qm < 4 {\n"
   "          par qk < 32 {\n"
   "            f[qm,qk] = a[add(mul(mo, 4), qm),add(mul(kb, 32), qk)]\n"
   "          }\n"
   "        }\n"
   "        par nj < min(2, sub(3, mul(no, 2))) {\n"
   "          par mi < 4 {\n"
   "            par ni < min(16, sub(40, mul(add(mul(no, 2), nj), 16))) {\n"
   "              var v0: f32 = d[mo,nj,mi,ni]\n"
   "              red kk < 32 {\n"
   "                v0 = add(v0, mul(f[mi,kk], e[nj,kk,ni]))\n"
   "              }\n"
   "              d[mo,nj,mi,ni] = v0\n"
   "            }\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    par mo < 4 {\n"
   "      par nj < min(2, sub(3, mul(no, 2))) {\n"
   "        par mi < 4 {\n"
   "          par ni < min(16, sub(40, mul(add(mul(no, 2), nj), 16))) {\n"
   "            c[add(mul(mo, 4), mi),add(mul(add(mul(no, 2), nj), 16), ni)] = d[mo,nj,mi,ni]\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {turned,
   "name i0 i1 i2 -> m n k; split n 16 -> no ni; order no m ni; stage b at no by k ni -> bk bn; split m 2 -> mo mi tail cut 1; sink mi ni "
   "under k in register; "
   "run no tasks; run mi unroll; run ni bn lanes",
   "kernel turned(in a: f32[n0,64], in b: f32[n1,64], out c: f32[n0,100]) sizes 2 {\n"
   "  par no < 7 tasks {\n"
   "    buffer d: f32[64,16] in stack\n"
   "    if lt(0, n0) {\n"
   "      par bk < 64 {\n"
   "        par bn < min(16, sub(100, mul(no, 16))) lanes 16 {\n"
   "          d[bk,bn] = b[add(mul(no, 16), bn),bk]\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    par mo < floordiv(n0, 2) {\n"
   "      buffer e: f32[2,16] in register\n"
   "      par mi < 2 unroll {\n"
   "        par ni < min(16, sub(100, mul(no, 16))) lanes 16 {\n"
   "          e[mi,ni] = 0:f32\n"
   "        }\n"
   "      }\n"
   "      red k < 64 {\n"
   "        par mi < 2 unroll {\n"
   "          par ni < min(16, sub(100, mul(no, 16))) lanes 16 {\n"
   "            e[mi,ni] = add(e[mi,ni], mul(a[add(mul(mo, 2), mi),k], d[k,ni]))\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "      par mi < 2 unroll {\n"
   "        par ni < min(16, sub(100, mul(no, 16))) lanes 16 {\n"
   "          c[add(mul(mo, 2), mi),add(mul(no, 16), ni)] = e[mi,ni]\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    par mo < floormod(n0, 2) {\n"
   "      buffer f: f32[1,16] in register\n"
   "      par ni < min(16, sub(100, mul(no, 16))) lanes 16 {\n"
   "        f[0,ni] = 0:f32\n"
   "      }\n"
   "      red k < 64 {\n"
   "        par ni < min(16, sub(100, mul(no, 16))) lanes 16 {\n"
   "          f[0,ni] = add(f[0,ni], mul(a[add(sub(n0, floormod(n0, 2)), mo),k], d[k,ni]))\n"
   "        }\n"
   "      }\n"
   "      par ni < min(16, sub(100, mul(no, 16))) lanes 16 {\n"
   "        c[add(sub(n0, floormod(n0, 2)), mo),add(mul(no, 16), ni)] = f[0,ni]\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {depthwise,
   "name i0 i1 i2 i3 i4 -> h w c kh kw; fma; cut kh; split w 7 -> wo w7; cut wo at 1 3 -> wl wm wr; "
   "sink w7 c under kh kw in register; run h tasks; run kw w7 unroll; run c lanes",
   "kernel depthwise(in a: f32[14,28,32], in b: f32[3,3,32], out c: f32[14,28,32]) {\n"
   "  par h < 14 tasks {\n"
   "    buffer d: f32[7,32] in register\n"
   "    par w7 < 7 unroll {\n"
   "      par c < 32 lanes 32 {\n"
   "        d[w7,c] = 0:f32\n"
   "      }\n"
   "    }\n"
   "    %0 = sub(h, 1)\n"
   "    red kh < sub(min(3, sub(14, %0)), max(0, sub(0, %0))) {\n"
   "      red kw < 3 unroll {\n"
   "        par w7 < 7 unroll {\n"
   "          par c < 32 lanes 32 {\n"
   "            %0 = sub(add(w7, kw), 1)\n"
   "            %1 = add(max(0, sub(0, sub(h, 1))), kh)\n"
   "            d[w7,c] = fma(select(le(0, %0), a[sub(add(h, %1), 1),max(%0, 0),c], 0:f32), b[%1,kw,c], d[w7,c])\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    par w7 < 7 unroll {\n"
   "      par c < 32 lanes 32 {\n"
   "        c[h,w7,c] = d[w7,c]\n"
   "      }\n"
   "    }\n"
   "    par wm < 2 {\n"
   "      buffer e: f32[7,32] in register\n"
   "      par w7 < 7 unroll {\n"
   "        par c < 32 lanes 32 {\n"
   "          e[w7,c] = 0:f32\n"
   "        }\n"
   "      }\n"
   "      %0 = sub(h, 1)\n"
   "      red kh < sub(min(3, sub(14, %0)), max(0, sub(0, %0))) {\n"
   "        red kw < 3 unroll {\n"
   "          par w7 < 7 unroll {\n"
   "            par c < 32 lanes 32 {\n"
   "              %0 = add(max(0, sub(0, sub(h, 1))), kh)\n"
   "              e[w7,c] = fma(a[sub(add(h, %0), 1),sub(add(add(mul(add(1, wm), 7), w7), kw), 1),c], b[%0,kw,c], e[w7,c])\n"
   "            }\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "      par w7 < 7 unroll {\n"
   "        par c < 32 lanes 32 {\n"
   "          c[h,add(mul(add(1, wm), 7), w7),c] = e[w7,c]\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    buffer f: f32[7,32] in register\n"
   "    par w7 < 7 unroll {\n"
   "      par c < 32 lanes 32 {\n"
   "        f[w7,c] = 0:f32\n"
   "      }\n"
   "    }\n"
   "    %0 = sub(h, 1)\n"
   "    red kh < sub(min(3, sub(14, %0)), max(0, sub(0, %0))) {\n"
   "      red kw < 3 unroll {\n"
   "        par w7 < 7 unroll {\n"
   "          par c < 32 lanes 32 {\n"
   "            %0 = sub(add(add(21, w7), kw), 1)\n"
   "            %1 = add(max(0, sub(0, sub(h, 1))), kh)\n"
   "            f[w7,c] = fma(select(lt(%0, 28), a[sub(add(h, %1), 1),min(%0, 27),c], 0:f32), b[%1,kw,c], f[w7,c])\n"
   "          }\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    par w7 < 7 unroll {\n"
   "      par c < 32 lanes 32 {\n"
   "        c[h,add(21, w7),c] = f[w7,c]\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {flipped, "name i0 i1 i2 i3 -> m n t k; split n 16 -> no ni; order no m ni; stage b at no by .0 k ni -> b0 bk bn; run no tasks",
   "kernel flipped(in a: f32[10,6], in b: f32[3,20,6], out c: f32[8,20]) {\n"
   "  par no < 2 tasks {\n"
   "    buffer d: f32[3,6,16] in stack\n"
   "    par b0 < 3 {\n"
   "      par bk < 6 {\n"
   "        par bn < min(16, sub(20, mul(no, 16))) {\n"
   "          d[b0,bk,bn] = b[b0,add(mul(no, 16), bn),bk]\n"
   "        }\n"
   "      }\n"
   "    }\n"
   "    par m < 8 {\n"
   "      par ni < min(16, sub(20, mul(no, 16))) {\n"
   "        var v0: f32 = 0:f32\n"
   "        red t < 3 {\n"
   "          red k < 6 {\n"
   "            v0 = add(v0, mul(a[add(m, t),k], d[sub(2, t),k,ni]))\n"
   "          }\n"
   "        }\n"
   "        c[m,add(mul(no, 16), ni)] = v0\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {square, "name i0 i1 -> m n; fuse m n -> t; split t 4 -> to ti; run to tasks; run ti lanes",
   "kernel square(in a: f32[6,4], out b: f32[6,4]) {\n"
   "  par to < 6 tasks {\n"
   "    par ti < 4 lanes 4 {\n"
   "      %0 = a[to,ti]\n"
   "      b[to,ti] = mul(%0, %0)\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {open_map, "split i0 8 -> no ni tail cut 4 1; run ni unroll",
   "kernel map(in a: f32[n0], out b: f32[n0]) sizes 1 {\n"
   "  par no < floordiv(n0, 8) {\n"
   "    par ni < 8 unroll {\n"
   "      %0 = add(mul(no, 8), ni)\n"
   "      b[%0] = neg(a[%0])\n"
   "    }\n"
   "  }\n"
   "  par no < floordiv(floormod(n0, 8), 4) {\n"
   "    par ni < 4 unroll {\n"
   "      %0 = add(sub(n0, floormod(n0, 8)), ni)\n"
   "      b[%0] = neg(a[%0])\n"
   "    }\n"
   "  }\n"
   "  par no < floormod(floormod(n0, 8), 4) {\n"
   "    %0 = add(sub(n0, floormod(floormod(n0, 8), 4)), no)\n"
   "    b[%0] = neg(a[%0])\n"
   "  }\n"
   "}\n"},
  {moments, "part i1 4 -> po pi ps; part i2 4 -> qo qi qs",
   "kernel moments(in a: f32[n0,6], out b: f32[6], out c: f32[6]) sizes 1 {\n"
   "  buffer d: f32[4,6] in task\n"
   "  par po < 4 {\n"
   "    par i0 < 6 {\n"
   "      var v0: f32 = 0:f32\n"
   "      %0 = floordiv(add(n0, 3), 4)\n"
   "      red pi < min(%0, sub(n0, mul(po, %0))) {\n"
   "        v0 = add(v0, a[add(mul(po, floordiv(add(n0, 3), 4)), pi),i0])\n"
   "      }\n"
   "      d[po,i0] = v0\n"
   "    }\n"
   "  }\n"
   "  buffer e: f32[4,6] in task\n"
   "  par qo < 4 {\n"
   "    par i1 < 6 {\n"
   "      var v1: f32 = 0:f32\n"
   "      red ps < 4 {\n"
   "        v1 = add(v1, d[ps,i1])\n"
   "      }\n"
   "      var v2: f32 = div(v1, cast.f32(n0))\n"
   "      var v3: f32 = -inf:f32\n"
   "      %0 = floordiv(add(n0, 3), 4)\n"
   "      red qi < min(%0, sub(n0, mul(qo, %0))) {\n"
   "        v3 = max(v3, sub(a[add(mul(qo, floordiv(add(n0, 3), 4)), qi),i1], v2))\n"
   "      }\n"
   "      e[qo,i1] = v3\n"
   "    }\n"
   "  }\n"
   "  par i2 < 6 {\n"
   "    var v4: f32 = 0:f32\n"
   "    red ps < 4 {\n"
   "      v4 = add(v4, d[ps,i2])\n"
   "    }\n"
   "    var v5: f32 = div(v4, cast.f32(n0))\n"
   "    var v6: f32 = -inf:f32\n"
   "    red qs < 4 {\n"
   "      v6 = max(v6, e[qs,i2])\n"
   "    }\n"
   "    b[i2] = v5\n"
   "    c[i2] = v6\n"
   "  }\n"
   "}\n"},
  {whole, "part i0 8 -> po pi ps",
   "kernel whole(in a: f32[100], out b: f32[]) {\n"
   "  buffer c: f32[8,1] in task\n"
   "  par po < 8 {\n"
   "    var v0: f32 = 1:f32\n"
   "    red pi < min(13, sub(100, mul(po, 13))) {\n"
   "      v0 = mul(v0, a[add(mul(po, 13), pi)])\n"
   "    }\n"
   "    c[po,0] = v0\n"
   "  }\n"
   "  par one < 1 tasks {\n"
   "    var v1: f32 = 1:f32\n"
   "    red ps < 8 {\n"
   "      v1 = mul(v1, c[ps,one])\n"
   "    }\n"
   "    b[] = v1\n"
   "  }\n"
   "}\n"},
  {handed_on, "name i0 i1 i2 i3 -> b m n k; run b m tasks; run n lanes; join 1",
   "kernel handed(in a: f32[2,3,4], in b: f32[4,5], out c: f32[2,3,5], scratch d: f32[1,1,1], scratch e: f32[1,1]) {\n"
   "  par b < 2 tasks {\n"
   "    buffer f: f32[3] in stack\n"
   "    buffer g: f32[3,5] in stack\n"
   "    par m < 3 {\n"
   "      par n < 5 lanes 5 {\n"
   "        var v0: f32 = 0:f32\n"
   "        red k < 4 {\n"
   "          v0 = add(v0, mul(a[b,m,k], b[k,n]))\n"
   "        }\n"
   "        g[m,n] = v0\n"
   "      }\n"
   "    }\n"
   "    par i0 < 3 {\n"
   "      var v1: f32 = 0:f32\n"
   "      red i1 < 5 {\n"
   "        v1 = add(v1, g[i0,i1])\n"
   "      }\n"
   "      f[i0] = v1\n"
   "    }\n"
   "    par i2 < 3 {\n"
   "      par i3 < 5 {\n"
   "        c[b,i2,i3] = mul(g[i2,i3], f[i2])\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
  {handed_on, "join 2",
   "kernel handed(in a: f32[2,3,4], in b: f32[4,5], out c: f32[2,3,5], scratch d: f32[1,1,1], scratch e: f32[1,1]) {\n"
   "  par i0 < 2 tasks {\n"
   "    par i1 < 3 tasks {\n"
   "      buffer f: f32[1] in stack\n"
   "      buffer g: f32[5] in stack\n"
   "      par i2 < 5 {\n"
   "        var v0: f32 = 0:f32\n"
   "        red i3 < 4 {\n"
   "          v0 = add(v0, mul(a[i0,i1,i3], b[i3,i2]))\n"
   "        }\n"
   "        g[i2] = v0\n"
   "      }\n"
   "      var v1: f32 = 0:f32\n"
   "      red i4 < 5 {\n"
   "        v1 = add(v1, g[i4])\n"
   "      }\n"
   "      f[0] = v1\n"
   "      par i5 < 5 {\n"
   "        c[i0,i1,i5] = mul(g[i5], f[0])\n"
   "      }\n"
   "    }\n"
   "  }\n"
   "}\n"},
};

static void steps_make_kernels(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
    struct arena arena;
    arena_init(&arena);
    struct schedule s = steps(results[i].steps, &arena);
    struct kernel *k = parsed(results[i].kernel, &arena), *scheduled = NULL;
    char *before = kernel_print(k, &arena);
    if (schedule_apply(k, &s, &arena, &scheduled) != OK)
      fail_msg("%s: %s", results[i].steps, status_text());
    assert_string_equal(kernel_print(scheduled, &arena), results[i].text);
    assert_string_equal(kernel_print(k, &arena), before);
    arena_deinit(&arena);
  }
}

/* ---- refusals ---- */

#define NAMES "name i0 i1 i2 -> m n k; "
static const struct refusal {
  const char *kernel, *steps, *why;
} refusals[] = {
  {product, "run i3 tasks", "step 1, run i3 tasks: there is no loop i3"},
  {open_map, "fma", "step 1, fma: there is no sum of products"},
  {product, "run i2 lanes 1024", "not par"},
  {product, "run i2 tasks", "not par"},
  {product, "run i1 lanes", "into lanes"},
  {product, "run i1 unroll", "no constant extent"},
  {product, "run i0 unroll; run i0 tasks", "marked"},
  {product, "run i1 tasks", "outermost"},
  {product, NAMES "order m k", "no perfect nest"},
  {product, NAMES "split n 7 -> no ni; order ni no", "hangs on one"},
  {product, NAMES "split k 8 -> ko kl; order kl ko", "only loops of par"},
  {product, NAMES "fuse m k -> t", "no perfect nest"},
  {product, NAMES "split n 7 -> no ni; fuse no ni -> t", "not rectangular"},
  {product, NAMES "cut n at 2000 -> l r", "inside of the range"},
  {product, NAMES "sink m n under k in register", "registers"},
  {product, NAMES "sink n m under k in stack", "in this order"},
  {product, NAMES "sink m under k in stack", "no loop k"},
  {product, NAMES "sink n under k in result", "no store of it as it is"},
  {product, NAMES "sink n under k in stack first", "in the result"},
  {product, NAMES "split n 8 -> k ni", "taken"},
  {product, NAMES "fetch c at k ahead 4", "nothing that moves"},
  {product, NAMES "fetch z at k ahead 4", "no such buffer"},
  {product, NAMES "cut k", "no test says"},
  {product, NAMES "cut n", "no sum"},
  {product, NAMES "stage b at m by k n -> x x", "taken"},
  {across_open, NAMES "order n m; stage b at n by k -> x", "the extent of loop k has no constant bound"},
  {product, NAMES "stage b at m by k -> bk", "moves with more loops"},
  {product, NAMES "stage b at k by n -> bn", "not one loop n"},
  {product, NAMES "stage d at m by n -> x", "loads nothing"},
  {flipped, "stage b at i1 by .3 i3 -> x y", "dimension .3 of that buffer is not copied as a whole"},
  {flipped, "stage b at i1 by .0 .0 i3 -> x y z", "dimension .0 of that buffer is not copied as a whole"},
  {flipped, "stage b at i0 by .0 i3 -> x y", "moves with more loops"},
  {turned, NAMES "stage b at m by .0 k -> x y", "dimension .0 of that buffer is not copied as a whole"},
  {fewer, NAMES "split n 48 -> ns ni; split ns 2 -> no nj; split m 4 -> mo mi; order no mo nj mi ni; stage a at mo by mi k -> x y",
   "loop ni is not known at loop mo"},
  {filter, "sink i2 under i4 in register", "no loop i4"},
  {open_map, "run i0 lanes 16", "into lanes"},
  {open_map, "when n3 < 4: fma\nelse: run i0 tasks", "no size n3"},
  {product, NAMES "part q 4 -> x y z", "no nest of par with loop q in it"},
  {product, NAMES "part n 4 -> x y z", "loop n is no loop of a sum"},
  {moments, "run i0 tasks; part i1 4 -> x y z", "marked"},
  {product, NAMES "part k 4 -> m y z", "taken"},
  {strange, "part i1 4 -> x y z", "no sum, product, minimum or maximum"},
  {strange, "part i2 4 -> x y z", "more happens than numbers"},
  {checked, "part i1 4 -> x y z", "more happens than numbers"},
  {checked, "sink i0 under i1 in register; run i0 unroll", "check"},
  {product, "join 1", "one nest alone"},
  {handed_on, "join 3", "does not begin with 3 loops of par"},
  {handed_on, "run i4 lanes; join 2", "does not begin with 2 loops of par"},
  {handed_on, "split i8 2 -> mo mi; join 2", "have not the same extent"},
  {backward, "join 1", "a turn may read of buffer c what another one stores"},
  {uneven, "join 1", "loop i2 has no constant extent"},
};

static void steps_that_do_not_apply_say_why(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    struct arena arena;
    arena_init(&arena);
    struct schedule s = steps(refusals[i].steps, &arena);
    struct kernel *scheduled = NULL;
    if (schedule_apply(parsed(refusals[i].kernel, &arena), &s, &arena, &scheduled) != FAILED_PRECONDITION || scheduled ||
        !strstr(status_text(), refusals[i].why))
      fail_msg("%s: %s", refusals[i].steps, scheduled ? kernel_print(scheduled, &arena) : status_text());
    arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(printing_what_was_parsed_gives_the_text),
    cmocka_unit_test(mistakes_are_told),
    cmocka_unit_test(steps_make_kernels),
    cmocka_unit_test(steps_that_do_not_apply_say_why),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
