/* How loops run that no step has marked: which become vectors, which run together with them, on which machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler/schedule/choose.h"

#include <cmocka.h>

static const struct vectors_case {
  const char *cpu;
  bool is_strict;
  const char *kernel;   /* what is inside of the braces, with the arguments in front */
  const char *expected; /* the statements' text */
} cases[] = {
  /* a map: as many lanes as leave registers; both loops run as one where the buffers let them */
  {"x86-64-v4", false, "in a: f32[n0,100], out b: f32[n0,100]) sizes 1 { par i0 < n0 { par i1 < 100 { b[i0,i1] = neg(a[i0,i1]) } }",
   "  par i0 < n0 {\n    par i1 < 100 vectors 64 {\n      b[i0,i1] = neg(a[i0,i1])\n    }\n  }\n"},
  {"x86-64-v3", false, "in a: f64[9], out b: f64[9]) { par i0 < 9 { b[i0] = neg(a[i0]) }",
   "  par i0 < 9 vectors 4 {\n    b[i0] = neg(a[i0])\n  }\n"},
  /* the columns lie side by side, whichever loop is outermost */
  {"x86-64-v3", false,
   "in a: f32[64,64], in b: f32[64], out c: f32[64,64]) { par i0 < 64 { par i1 < 64 { c[i1,i0] = add(a[i1,i0], b[i0]) } }",
   "  par i0 < 64 {\n    par i1 < 64 vectors 32 {\n      c[i0,i1] = add(a[i0,i1], b[i1])\n    }\n  }\n"},
  /* a transposition: columns that share the lines which gathers bring */
  {"x86-64-v4", false, "in a: f32[64,80], out b: f32[80,64]) { par i0 < 80 { par i1 < 64 { b[i0,i1] = a[i1,i0] } }",
   "  par i0 < 80 together 16 {\n    par i1 < 64 vectors 16 {\n      b[i0,i1] = a[i1,i0]\n    }\n  }\n"},
  /* rows of a product share what they load of the second factor; of twelve rows six at a time */
  {"x86-64-v3", false,
   "in a: f32[12,40], in b: f32[40,64], out c: f32[12,64]) { par i0 < 12 { par i1 < 64 { var v0: f32 = 0:f32 red i2 < 40 { v0 = add(v0, "
   "mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } }",
   "  par i0 < 12 together 6 {\n    par i1 < 64 vectors 16 {\n      var v0: f32 = 0:f32\n      red i2 < 40 {\n        v0 = fma(a[i0,i2], "
   "b[i2,i1], v0)\n      }\n      c[i0,i1] = v0\n    }\n  }\n"},
  {"x86-64", false, /* which cannot round once */
   "in a: f32[12,40], in b: f32[40,64], out c: f32[12,64]) { par i0 < 12 { par i1 < 64 { var v0: f32 = 0:f32 red i2 < 40 { v0 = add(v0, "
   "mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } }",
   "  par i0 < 12 together 6 {\n    par i1 < 64 vectors 8 {\n      var v0: f32 = 0:f32\n      red i2 < 40 {\n        v0 = add(v0, "
   "mul(a[i0,i2], b[i2,i1]))\n      }\n      c[i0,i1] = v0\n    }\n  }\n"},
  /* what takes long is worked out once for several pixels; a short row's rest under its mask once for several rows */
  {"x86-64-v4", false,
   "in a: f32[n0,64], in b: f32[64], out c: f32[n0,64]) sizes 1 { par i0 < n0 { par i1 < 64 { c[i0,i1] = div(a[i0,i1], sqrt(b[i1])) } }",
   "  par i0 < n0 together 8 {\n    par i1 < 64 vectors 32 {\n      c[i0,i1] = div(a[i0,i1], sqrt(b[i1]))\n    }\n  }\n"},
  {"x86-64-v4", false,
   "in a: f32[n0,24], in b: f32[24], out c: f32[n0,24]) sizes 1 { par i0 < n0 { par i1 < 24 { c[i0,i1] = add(a[i0,i1], b[i1]) } }",
   "  par i0 < n0 together 8 {\n    par i1 < 24 vectors 16 {\n      c[i0,i1] = add(a[i0,i1], b[i1])\n    }\n  }\n"},
  {"x86-64-v4", false,
   "in a: f32[n0,64], in b: f32[64], out c: f32[n0,64]) sizes 1 { par i0 < n0 { par i1 < 64 { c[i0,i1] = add(a[i0,i1], b[i1]) } }",
   "  par i0 < n0 {\n    par i1 < 64 vectors 64 {\n      c[i0,i1] = add(a[i0,i1], b[i1])\n    }\n  }\n"},
  /* lanes of which few are lost in a row's last vector; sums of few turns for all columns at once */
  {"x86-64-v4", false,
   "in a: f32[64,144], in b: f32[144], out c: f32[64,144]) { par i0 < 64 { par i1 < 144 { c[i0,i1] = add(a[i0,i1], b[i1]) } }",
   "  par i0 < 64 {\n    par i1 < 144 vectors 16 {\n      c[i0,i1] = add(a[i0,i1], b[i1])\n    }\n  }\n"},
  {"x86-64-v4", false,
   "in a: f32[99,3,96], in b: f32[99,96], out c: f32[3,96]) { par i0 < 3 { par i1 < 96 { var v0: f32 = 0:f32 red i2 < 99 { v0 = add(v0, "
   "mul(a[i2,i0,i1], b[i2,i1])) } c[i0,i1] = v0 } }",
   "  par i0 < 3 together 3 {\n    par i1 < 96 vectors 128 {\n      var v0: f32 = 0:f32\n      red i2 < 99 {\n        v0 = "
   "fma(a[i2,i0,i1], b[i2,i1], v0)\n      }\n      c[i0,i1] = v0\n    }\n  }\n"},
  /* a sum along what lies side by side is split over lanes, */
  {"x86-64-v4", false,
   "in a: f32[n0,512], out b: f32[n0]) sizes 1 { par i0 < n0 { var v0: f32 = 0:f32 red i1 < 512 { v0 = add(v0, a[i0,i1]) } b[i0] = v0 }",
   "  par i0 < n0 {\n    var v0: f32 = 0:f32\n    red i1 < 512 vectors 64 {\n      v0 = add(v0, a[i0,i1])\n    }\n    b[i0] = v0\n  }\n"},
  /* also a short one, over all turns of the sum around it, and of an open number of images, whose elements lanes would load one by one; */
  {"x86-64-v4", false,
   "in a: f32[n0,1024,8,8], out b: f32[n0,8]) sizes 1 { par i0 < n0 { par i1 < 8 { var v0: f32 = 0:f32 red i2 < 1024 { red i3 < 8 { "
   "v0 = add(v0, a[i0,i2,i1,i3]) } } b[i0,i1] = v0 } }",
   "  par i0 < n0 {\n    par i1 < 8 {\n      var v0: f32 = 0:f32\n      red i2 < 1024 {\n        red i3 < 8 vectors 8 {\n"
   "          v0 = add(v0, a[i0,i2,i1,i3])\n        }\n      }\n      b[i0,i1] = v0\n    }\n  }\n"},
  /* not where its order is to be kept; a maximum has none */
  {"x86-64-v4", true,
   "in a: f32[512], out b: f32[], out c: f32[]) { var v0: f32 = 0:f32 red i0 < 512 { v0 = add(v0, mul(a[i0], a[i0])) } b[] = v0 "
   "var v1: f32 = 0:f32 red i1 < 512 { v1 = max(v1, a[i1]) } c[] = v1",
   "  var v0: f32 = 0:f32\n  red i0 < 512 {\n    %0 = a[i0]\n    v0 = add(v0, mul(%0, %0))\n  }\n  b[] = v0\n  var v1: f32 = 0:f32\n"
   "  red i1 < 512 vectors 64 {\n    v1 = max(v1, a[i1])\n  }\n  c[] = v1\n"},
  /* a window's loops are written out among lanes */
  {"x86-64-v4", false,
   "in a: f32[9,9,64], out b: f32[8,8,64]) { par i0 < 8 { par i1 < 8 { par i2 < 64 { var v0: f32 = -inf:f32 red i3 < 2 { "
   "red i4 < 2 { v0 = max(v0, a[add(i0, i3),add(i1, i4),i2]) } } b[i0,i1,i2] = v0 } } }",
   "  par i0 < 8 {\n    par i1 < 8 {\n      par i2 < 64 vectors 64 {\n        var v0: f32 = -inf:f32\n        red i3 < 2 unroll {\n"
   "          red i4 < 2 unroll {\n            v0 = max(v0, a[add(i0, i3),add(i1, i4),i2])\n          }\n        }\n"
   "        b[i0,i1,i2] = v0\n      }\n    }\n  }\n"},
  /* nothing of strings, of what is in order, and of too few turns */
  {"x86-64-v4", false, "in a: str[90], out b: bool[90]) { par i0 < 90 { b[i0] = eq(a[i0], a[0]) }",
   "  par i0 < 90 {\n    b[i0] = eq(a[i0], a[0])\n  }\n"},
  {"x86-64-v4", false, "in a: f32[90], out b: f32[90]) { seq i0 < 90 { b[i0] = a[i0] }", "  seq i0 < 90 {\n    b[i0] = a[i0]\n  }\n"},
  {"x86-64-v4", false, "in a: f32[2], out b: f32[2]) { par i0 < 2 { b[i0] = a[i0] }", "  par i0 < 2 {\n    b[i0] = a[i0]\n  }\n"},
  /* who marks a nest has said all of it; the next one is another's */
  {"x86-64-v4", false,
   "in a: f32[64,64], out b: f32[64,64], out c: f32[64]) { par i0 < 64 vectors 16 { par i1 < 64 { b[i0,i1] = a[i0,i1] } } "
   "par i2 < 64 { c[i2] = a[i2,0] }",
   "  par i0 < 64 vectors 16 {\n    par i1 < 64 {\n      b[i0,i1] = a[i0,i1]\n    }\n  }\n"
   "  par i2 < 64 vectors 64 {\n    c[i2] = a[i2,0]\n  }\n"},
  /* nests that share a task's turns: those that steps have left plain, also beside a sum whose rows are one turn */
  {"x86-64-v4", false,
   "in a: f32[4,64], out b: f32[4,64], in c: f32[8,16], out d: f32[4,16]) { par i0 < 4 tasks { par i1 < 64 { b[i0,i1] = neg(a[i0,i1]) } "
   "buffer e: f32[16] in register par i2 < 16 lanes 16 { e[i2] = 0:f32 } red i3 < 8 { par i4 < 16 lanes 16 { e[i4] = fma(a[i0,i3], "
   "c[i3,i4], e[i4]) } } par i5 < 16 lanes 16 { d[i0,i5] = e[i5] } }",
   "  par i0 < 4 tasks {\n    par i1 < 64 vectors 64 {\n      b[i0,i1] = neg(a[i0,i1])\n    }\n    buffer e: f32[16] in register\n"
   "    par i2 < 16 lanes 16 {\n      e[i2] = 0:f32\n    }\n    red i3 < 8 {\n      par i4 < 16 lanes 16 {\n"
   "        e[i4] = fma(a[i0,i3], c[i3,i4], e[i4])\n      }\n    }\n    par i5 < 16 lanes 16 {\n      d[i0,i5] = e[i5]\n    }\n  }\n"},
};

static void plain_loops_become_vectors_where_that_is_worth_it(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct arena arena;
    struct kernel *k;
    arena_init(&arena);
    struct machine strict = machine_strict(machine_find(cases[i].cpu));
    char *text = arena_printf(&arena, "kernel k(%s }", cases[i].kernel);
    if (kernel_parse(text, &arena, &k) != OK)
      fail_msg("%s: %s", text, status_text());
    const char *before = kernel_print(k, &arena);
    struct kernel *chosen = vectors_choose(k, cases[i].is_strict ? &strict : machine_find(cases[i].cpu), &arena);
    const char *got = strchr(kernel_print(chosen, &arena), '\n') + 1;
    char *expected = arena_printf(&arena, "%s}\n", cases[i].expected);
    if (strcmp(got, expected) != 0 || kernel_verify(chosen) != OK)
      fail_msg("case %zu, on %s:\n%snot\n%s", i, cases[i].cpu, got, expected);
    assert_string_equal(kernel_print(k, &arena), before);
    assert_string_equal(strchr(kernel_print(vectors_choose(chosen, &strict, &arena), &arena), '\n') + 1, expected);
    arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(plain_loops_become_vectors_where_that_is_worth_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
