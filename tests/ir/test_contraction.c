/* Contractions: what a nest of loops is for its factors, told from the text of kernels. */
#include "ir/kernel/contraction.h"

#include <string.h>

#include "tests/support/test.h"

struct contraction_case {
  const char *name, *kernel;
  const char *expected; /* of the kernel's first statement; NULL: no contraction */
};

#define MATRICES(a, b) "kernel k(in a: f32[" a "], in b: f32[" b "], out c: f32[64,512]) "
#define PRODUCT(a, b) "par i0 < 64 { par i1 < 512 { var v0: f32 = 0:f32 red i2 < 1024 { v0 = add(v0, mul(" a ", " b ")) } c[i0,i1] = v0 } }"

static const struct contraction_case cases[] = {
  {"a * b", MATRICES("64,1024", "1024,512") "{" PRODUCT("a[i0,i2]", "b[i2,i1]") "}",
   "m 64[1024,0,512] n 512[0,1,1] k 1024[1,512,0] lanes 1"},
  {"a * b^T", MATRICES("64,1024", "512,1024") "{" PRODUCT("a[i0,i2]", "b[i1,i2]") "}",
   "m 64[1024,0,512] n 512[0,1024,1] k 1024[1,1,0] lanes 1"},
  {"a^T * b", MATRICES("1024,64", "1024,512") "{" PRODUCT("a[i2,i0]", "b[i2,i1]") "}",
   "m 64[1,0,512] n 512[0,1,1] k 1024[64,512,0] lanes 1"},
  {"a^T * b^T", MATRICES("1024,64", "512,1024") "{" PRODUCT("a[i2,i0]", "b[i1,i2]") "}",
   "m 64[1,0,512] n 512[0,1024,1] k 1024[64,1,0] lanes 1"},
  {"factors the other way round", MATRICES("64,1024", "1024,512") "{" PRODUCT("b[i2,i1]", "a[i0,i2]") "}",
   "m 64[1024,0,512] n 512[0,1,1] k 1024[1,512,0] lanes 1"},
  {"an fma",
   "kernel k(in a: f32[64,8], in b: f32[8,32], out c: f32[64,32]) { par i0 < 64 { par i1 < 32 { var v0: f32 = 0:f32"
   " red i2 < 8 { v0 = fma(b[i2,i1], a[i0,i2], v0) } c[i0,i1] = max(v0, 0:f32) } } }",
   "m 64[8,0,32] n 32[0,1,1] k 8[1,32,0] lanes 1"},
  {"open rows and depth",
   "kernel k(in a: f32[n0,n1], in b: f32[n1,32], out c: f32[n0,32]) sizes 2 { par i0 < n0 { par i1 < 32 {"
   " var v0: f32 = 0:f32 red i2 < n1 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
   "m ?[?,0,32] n 32[0,1,1] k ?[1,32,0] lanes 1"},
  {"batched",
   "kernel k(in a: f32[4,64,16], in b: f32[4,16,64], out c: f32[4,64,64]) { par i0 < 4 { par i1 < 64 { par i2 < 64 {"
   " var v0: f32 = 0:f32 red i3 < 16 { v0 = add(v0, mul(a[i0,i1,i3], b[i0,i3,i2])) } c[i0,i1,i2] = v0 } } } }",
   "batch 4[1024,1024,4096] m 64[16,0,64] n 64[0,1,1] k 16[1,64,0] lanes 2"},
  {"a cast and a mask in a factor",
   "kernel k(in a: f16[8,16], in b: f32[16,32], in c: f32[16,32], out d: f32[8,32]) { par i0 < 8 { par i1 < 32 { var v0: f32 = 0:f32"
   " red i2 < 16 { v0 = add(v0, mul(cast.f32(a[i0,i2]), mul(b[i2,i1], c[i2,i1]))) } d[i0,i1] = v0 } } }",
   "m 8[16,0,32] n 32[0,?,1] k 16[1,?,0] lanes 1"},
  {"a convolution, stride 2",
   "kernel k(in a: f32[4,9,27], in b: f32[3,9,16], out c: f32[4,4,4,16]) { par i0 < 4 { par i1 < 4 { par i2 < 4 { par i3 < 16 {"
   " var v0: f32 = 0:f32 red i4 < 3 { red i5 < 9 { v0 = add(v0, mul(a[i0,add(mul(i1, 2), i4),add(mul(i2, 6), i5)], b[i4,i5,i3])) } }"
   " c[i0,i1,i2,i3] = v0 } } } } }",
   "m 4[243,0,256] m 4[54,0,64] m 4[6,0,16] n 16[0,1,1] window 3[27,144,0] window 9[1,16,0] lanes 3"},
  {"a padded convolution",
   "kernel k(in a: f32[4,8,8,3], in b: f32[3,3,16], out c: f32[4,8,8,16]) { par i0 < 4 { par i1 < 8 { par i2 < 8 { par i3 < 16 {"
   " var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { %0 = sub(add(i1, i4), 1)"
   " v0 = add(v0, mul(select(and(le(0, %0), lt(%0, 8)), a[i0,%0,i2,i5], 0:f32), b[i4,i5,i3])) } } c[i0,i1,i2,i3] = v0 } } } } }",
   "m 4[192,0,1024] m 8[24,0,128] m 8[3,0,16] n 16[0,1,1] window 3[24,48,0] k 3[1,16,0] guard 0 lanes 3"},
  {"its filter gradient",
   "kernel k(in a: f32[4,10,30], in b: f32[4,8,8,16], out c: f32[3,9,16]) { par i0 < 3 { par i1 < 9 { par i2 < 16 { var v0: f32 = 0:f32"
   " red i3 < 4 { red i4 < 8 { red i5 < 8 { v0 = add(v0, mul(a[i3,add(i4, i0),add(mul(i5, 3), i1)], b[i3,i4,i5,i2])) } } } "
   "c[i0,i1,i2] = v0 } } } }",
   "m 3[30,0,144] m 9[1,0,16] n 16[0,1,1] k 4[300,1024,0] window 8[30,128,0] window 8[3,16,0] lanes 2"},
  {"its filter gradient over the rows inside",
   "kernel k(in a: f32[4,8,8,3], in b: f32[4,8,8,16], out c: f32[3,3,16]) { par i0 < 3 { par i1 < 3 { par i2 < 16 { var v0: f32 = 0:f32"
   " red i3 < 4 { red i4 < sub(min(sub(9, i0), 8), max(sub(1, i0), 0)) { red i5 < 8 { %0 = add(i4, max(sub(1, i0), 0))"
   " v0 = add(v0, mul(a[i3,sub(add(%0, i0), 1),i5,i1], b[i3,%0,i5,i2])) } } } c[i0,i1,i2] = v0 } } } }",
   "batch 3[?,?,48] m 3[1,0,16] n 16[0,1,1] k 4[192,1024,0] window 8?[24,128,0] k 8[3,16,0] ragged lanes 2"},
  {"terms under a condition",
   "kernel k(in a: f32[4,8], in b: f32[3,16], out c: f32[4,8,16]) { par i0 < 4 { par i1 < 8 { par i2 < 16 { var v0: f32 = 0:f32"
   " red i3 < 3 { %0 = sub(add(i1, i3), 1)"
   " if and(le(0, %0), lt(%0, 8)) { v0 = add(v0, mul(a[i0,%0], b[i3,i2])) } } c[i0,i1,i2] = v0 } } } }",
   "m 4[8,0,128] m 8[1,0,16] n 16[0,1,1] window 3[1,16,0] under if lanes 2"},
  {"its input gradient",
   "kernel k(in a: f32[4,10,10,16], in b: f32[3,3,3,16], out c: f32[4,8,8,3]) { par i0 < 4 { par i1 < 8 { par i2 < 8 { par i3 < 3 {"
   " var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { red i6 < 16 { v0 = add(v0, mul(a[i0,sub(add(i1, 2), i4),sub(add(i2, 2), "
   "i5),i6], b[i4,i5,i3,i6]))"
   " } } } c[i0,i1,i2,i3] = v0 } } } } }",
   "m 4[1600,0,192] m 8[160,0,24] m 8[16,0,3] n 3[0,16,1] window 3[-160,144,0] window 3[-16,48,0] k 16[1,1,0] lanes 3"},
  {"depthwise",
   "kernel k(in a: f32[4,10,10,32], in b: f32[3,3,32], out c: f32[4,8,8,32]) { par i0 < 4 { par i1 < 8 { par i2 < 8 { par i3 < 32 {"
   " var v0: f32 = 0:f32 red i4 < 3 { red i5 < 3 { v0 = add(v0, mul(a[i0,add(i1, i4),add(i2, i5),i3], b[i4,i5,i3])) } } "
   "c[i0,i1,i2,i3] = v0 } } } } }",
   "m 4[3200,0,2048] m 8[320,0,256] m 8[32,0,32] batch 32[1,1,1] window 3[320,96,0] window 3[32,32,0] lanes 3"},
  {"grouped",
   "kernel k(in a: f32[64,4,8], in b: f32[4,8,16], out c: f32[64,4,16]) { par i0 < 64 { par i1 < 4 { par i2 < 16 {"
   " var v0: f32 = 0:f32 red i3 < 8 { v0 = add(v0, mul(a[i0,i1,i3], b[i1,i3,i2])) } c[i0,i1,i2] = v0 } } } }",
   "m 64[32,0,64] batch 4[8,128,16] n 16[0,1,1] k 8[1,16,0] lanes 2"},
  {"a matrix times a vector",
   "kernel k(in a: f32[64,8], in b: f32[8], out c: f32[64,1]) { par i0 < 64 { var v0: f32 = 0:f32"
   " red i1 < 8 { v0 = add(v0, mul(a[i0,i1], b[i1])) } c[i0,0] = v0 } }",
   "n 64[0,8,1] k 8[1,1,0] lanes 0"},
  {"a sum",
   "kernel k(in a: f32[64,8], out b: f32[64]) { par i0 < 64 { var v0: f32 = 0:f32 red i1 < 8 { v0 = add(v0, a[i0,i1]) } b[i0] = v0 } }",
   NULL},
  {"a map", "kernel k(in a: f32[64], in b: f32[64], out c: f32[64]) { par i0 < 64 { c[i0] = mul(a[i0], b[i0]) } }", NULL},
  {"a difference",
   "kernel k(in a: f32[64,8], in b: f32[8], out c: f32[64]) { par i0 < 64 { var v0: f32 = 0:f32"
   " red i1 < 8 { v0 = sub(v0, mul(a[i0,i1], b[i1])) } c[i0] = v0 } }",
   NULL},
  {"two sums",
   "kernel k(in a: f32[64,8], in b: f32[8], out c: f32[64]) { par i0 < 64 { var v0: f32 = 0:f32 var v1: f32 = 0:f32"
   " red i1 < 8 { v0 = add(v0, mul(a[i0,i1], b[i1])) v1 = add(v1, b[i1]) } c[i0] = add(v0, v1) } }",
   NULL},
  {"a factor that needs another sum",
   "kernel k(in a: f32[64,8], in b: f32[8], out c: f32[64]) { par i0 < 64 { var v0: f32 = 0:f32 var v1: f32 = b[i0]"
   " red i1 < 8 { v0 = add(v0, mul(a[i0,i1], v1)) } c[i0] = v0 } }",
   NULL},
  {"a check inside",
   "kernel k(in a: f32[64,8], in b: f32[8], out c: f32[64]) { par i0 < 64 { check lt(i0, 9) else OUT_OF_RANGE \"x\""
   " var v0: f32 = 0:f32 red i1 < 8 { v0 = add(v0, mul(a[i0,i1], b[i1])) } c[i0] = v0 } }",
   NULL},
  {"a depth that depends on the row",
   "kernel k(in a: f32[64,64], in b: f32[64], out c: f32[64]) { par i0 < 64 { var v0: f32 = 0:f32"
   " red i1 < i0 { v0 = add(v0, mul(a[i0,i1], b[i1])) } c[i0] = v0 } }",
   "n 64[0,64,1] k 63?[1,1,0] ragged lanes 0"},
  {"a depth that depends on another sum's term",
   "kernel k(in a: f32[64,64], in b: f32[64], out c: f32[64]) { par i0 < 64 { var v0: f32 = 0:f32"
   " red i1 < 4 { red i2 < i1 { v0 = add(v0, mul(a[i0,i1], b[i2])) } } c[i0] = v0 } }",
   NULL},
  {"a depth that is loaded",
   "kernel k(in a: f32[64,64], in b: f32[64], in c: i64[64], out d: f32[64]) { par i0 < 64 { var v0: f32 = 0:f32"
   " red i1 < c[i0] { v0 = add(v0, mul(a[i0,i1], b[i1])) } d[i0] = v0 } }",
   NULL},
  {"rows in order",
   "kernel k(in a: f32[64,8], in b: f32[8], out c: f32[64]) { seq i0 < 64 { var v0: f32 = 0:f32"
   " red i1 < 8 { v0 = add(v0, mul(a[i0,i1], b[i1])) } c[i0] = v0 } }",
   NULL},
};

static void nests_are_told_by_the_roles_of_their_loops(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct arena arena;
    struct kernel *k = NULL;
    struct kernel_uses uses;
    struct contraction c;
    arena_init(&arena);
    if (kernel_parse(cases[i].kernel, &arena, &k) != OK)
      test_fail("%s: %s", cases[i].name, status_text());
    kernel_uses_find(k, &arena, &uses);
    bool found = contraction_find(&uses, k->body, &c);
    const char *text = found ? contraction_text(&c, &arena) : NULL;
    if (found != (cases[i].expected != NULL) || (found && strcmp(text, cases[i].expected) != 0))
      test_fail("%s: %s", cases[i].name, text ? text : "no contraction");
    arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nests_are_told_by_the_roles_of_their_loops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
