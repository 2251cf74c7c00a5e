/* Loops that become one (collapse), or two (unfold): which do, which do not, and that the kernel stores the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/schedule/collapse.h"
#include "ir/schedule/line_up.h"
#include "ir/schedule/unfold.h"

#include <cmocka.h>

struct rewrite_case {
  const char *name, *kernel, *expected; /* NULL: the kernel stays as it is */
};
struct rewrites {
  const struct rewrite_case *cases;
  size_t count;
  struct kernel *(*rewrite)(struct kernel *k, struct arena *arena);
};

static const struct rewrite_case collapsed[] = {
  {"a map over a shape is one over a vector",
   "kernel k(in a: f32[2,3,4], out b: f32[2,3,4]) { par i0 < 2 { par i1 < 3 { par i2 < 4 { b[i0,i1,i2] = mul(a[i0,i1,i2], 2:f32) } } } }",
   "kernel k(in a: f32[24], out b: f32[24]) { par i0 < 24 { b[i0] = mul(a[i0], 2:f32) } }"},
  {"a convolution of one tap is a product",
   "kernel k(in a: f32[2,3,3,5], in b: f32[1,1,5,4], in c: f32[4], in d: f32[2,3,3,4], out e: f32[2,3,3,4]) { par i0 < 2 { par i1 < "
   "3 { par "
   "i2 < 3 { par i3 < 4 { var v0: f32 = 0:f32 red i4 < 1 { red i5 < 1 { red i6 < 5 { v0 = add(v0, mul(a[i0,add(i1, i4),add(i2, i5),i6], "
   "b[i4,i5,i6,i3])) } } } e[i0,i1,i2,i3] = add(add(v0, c[i3]), d[i0,i1,i2,i3]) } } } } }",
   "kernel k(in a: f32[18,5], in b: f32[5,4], in c: f32[4], in d: f32[18,4], out e: f32[18,4]) { par i0 < 18 { par i1 < 4 { var v0: f32 = "
   "0:f32 red i2 < 5 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } e[i0,i1] = add(add(v0, c[i1]), d[i0,i1]) } } }"},
  {"its filter's gradient is one, too: sums keep their order",
   "kernel k(in a: f32[2,3,3,5], in b: f32[2,3,3,4], out c: f32[1,1,5,4]) { par i0 < 1 { par i1 < 1 { par i2 < 5 { par i3 < 4 { var "
   "v0: f32 "
   "= 0:f32 red i4 < 2 { red i5 < 3 { red i6 < 3 { v0 = add(v0, mul(a[i4,add(i5, i0),add(i6, i1),i2], b[i4,i5,i6,i3])) } } } "
   "c[i0,i1,i2,i3] = v0 } } } } }",
   "kernel k(in a: f32[18,5], in b: f32[18,4], out c: f32[5,4]) { par i0 < 5 { par i1 < 4 { var v0: f32 = 0:f32 red i2 < 18 { v0 = add(v0, "
   "mul(a[i2,i0], b[i2,i1])) } c[i0,i1] = v0 } } }"},
  {"rows that a stride leaves out stay",
   "kernel k(in a: f32[2,6,4], out b: f32[2,3,4]) { par i0 < 2 { par i1 < 3 { par i2 < 4 { b[i0,i1,i2] = a[i0,mul(i1, 2),i2] } } } }",
   NULL},
  {"what is broadcast keeps its loop",
   "kernel k(in a: f32[2,3,4], in b: f32[2,4], out c: f32[2,3,4]) { par i0 < 2 { par i1 < 3 { par i2 < 4 { c[i0,i1,i2] = add(a[i0,i1,i2], "
   "b[i0,i2]) } } } }",
   NULL},
  {"but those behind it are one",
   "kernel k(in a: f32[2,3,4], in b: f32[2], out c: f32[2,3,4]) { par i0 < 2 { par i1 < 3 { par i2 < 4 { c[i0,i1,i2] = add(a[i0,i1,i2], "
   "b[i0]) } } } }",
   "kernel k(in a: f32[2,12], in b: f32[2], out c: f32[2,12]) { par i0 < 2 { par i1 < 12 { c[i0,i1] = add(a[i0,i1], b[i0]) } } }"},
  {"a transposition stays", "kernel k(in a: f32[3,2], out b: f32[2,3]) { par i0 < 2 { par i1 < 3 { b[i0,i1] = a[i1,i0] } } }", NULL},
  {"a part of a row is no whole one", "kernel k(in a: f32[2,5], out b: f32[2,3]) { par i0 < 2 { par i1 < 3 { b[i0,i1] = a[i0,i1] } } }",
   NULL},
  {"the first rows of more are whole", "kernel k(in a: f32[4,3], out b: f32[2,3]) { par i0 < 2 { par i1 < 3 { b[i0,i1] = a[i0,i1] } } }",
   "kernel k(in a: f32[12], out b: f32[6]) { par i0 < 6 { b[i0] = a[i0] } }"},
  {"a variable that is a number, too, keeps its loop",
   "kernel k(in a: i64[2,3], out b: i64[2,3]) { par i0 < 2 { par i1 < 3 { b[i0,i1] = add(a[i0,i1], i1) } } }", NULL},
  {"a buffer that another nest walks through otherwise",
   "kernel k(in a: f32[2,3], out b: f32[2,3], out c: f32[3,2]) { par i0 < 2 { par i1 < 3 { b[i0,i1] = a[i0,i1] } } par i2 < 3 { par i3 < 2 "
   "{ c[i2,i3] = b[i3,i2] } } }",
   NULL},
  {"several sums of one row",
   "kernel k(in a: f32[2,3,4], out b: f32[2,3]) { par i0 < 2 { par i1 < 3 { var v0: f32 = -inf:f32 red i2 < 4 { v0 = max(v0, "
   "a[i0,i1,i2]) } "
   "var v1: f32 = 0:f32 red i3 < 4 { v1 = add(v1, sub(a[i0,i1,i3], v0)) } b[i0,i1] = v1 } } }",
   "kernel k(in a: f32[6,4], out b: f32[6]) { par i0 < 6 { var v0: f32 = -inf:f32 red i1 < 4 { v0 = max(v0, a[i0,i1]) } var v1: f32 "
   "= 0:f32 "
   "red i2 < 4 { v1 = add(v1, sub(a[i0,i2], v0)) } b[i0] = v1 } }"},
  {"loops of different kinds are not one",
   "kernel k(in a: f32[2,3], out b: f32[2]) { par i0 < 2 { var v0: f32 = 0:f32 red i1 < 3 { v0 = add(v0, a[i0,i1]) } b[i0] = v0 } }", NULL},
  {"an open size stays open",
   "kernel k(in a: f32[n0,3,4], out b: f32[n0,3,4]) sizes 1 { par i0 < n0 { par i1 < 3 { par i2 < 4 { b[i0,i1,i2] = a[i0,i1,i2] } } } }",
   "kernel k(in a: f32[n0,12], out b: f32[n0,12]) sizes 1 { par i0 < n0 { par i1 < 12 { b[i0,i1] = a[i0,i1] } } }"},
  {"sizes of what is not loaded stay, too", "kernel k(in a: f32[n0,n0,3], out b: f32[n0]) sizes 1 { par i0 < n0 { b[i0] = 1:f32 } }", NULL},
  {"dimensions of one element are gone",
   "kernel k(in a: f32[3,1,4], in b: f32[1,1,4], out c: f32[3,1,4]) { par i0 < 3 { par i1 < 1 { par i2 < 4 { c[i0,i1,i2] = "
   "add(a[i0,i1,i2], "
   "b[0,i1,i2]) } } } }",
   "kernel k(in a: f32[3,4], in b: f32[4], out c: f32[3,4]) { par i0 < 3 { par i1 < 4 { c[i0,i1] = add(a[i0,i1], b[i1]) } } }"},
  {"also in what is gathered",
   "kernel k(in a: i64[2,3,1], in b: f32[7,1], out c: f32[2,3,1]) { par i0 < 2 { par i1 < 3 { par i2 < 1 { c[i0,i1,i2] = "
   "b[max(min(a[i0,i1,0], 6), 0),i2] } } } }",
   "kernel k(in a: i64[6], in b: f32[7], out c: f32[6]) { par i0 < 6 { par i1 < 1 { c[i0] = b[max(min(a[i0], 6), 0)] } } }"},
  {"steps in order stay", "kernel k(in a: f32[2,3], out b: f32[2,3]) { seq i0 < 2 { seq i1 < 3 { b[i0,i1] = a[i0,i1] } } }", NULL},
  {"complex ones, by parts",
   "kernel k(in a: c64[2,3], out b: c64[2,3]) { par i0 < 2 { par i1 < 3 { b.re[i0,i1] = a.im[i0,i1] b.im[i0,i1] = a.re[i0,i1] } } }",
   "kernel k(in a: c64[6], out b: c64[6]) { par i0 < 6 { b.re[i0] = a.im[i0] b.im[i0] = a.re[i0] } }"},
};

/* Four groups of eight channels, 3 taps, with a bias; the gradient of its input; that of its filter. */
#define GROUPED(channel)                                                                                                                 \
  "kernel k(in a: f32[2,7,32], in b: f32[3,8,32], in c: f32[32], out d: f32[2,5,32]) { par i0 < 2 { par i1 < 5 { par i2 < 32 { var v0: " \
  "f32 = 0:f32 red i3 < 3 { red i4 < 8 { v0 = add(v0, mul(a[i0,add(i1, i3)," channel                                                     \
  "], b[i3,i4,i2])) } } d[i0,i1,i2] = max(add(v0, c[i2]), 0:f32) } } } }"
static const struct rewrite_case unfolded[] = {
  {"groups are an axis of a convolution", GROUPED("add(i4, mul(floordiv(i2, 8), 8))"),
   "kernel k(in a: f32[2,7,4,8], in b: f32[3,8,4,8], in c: f32[4,8], out d: f32[2,5,4,8]) { par i0 < 2 { par i1 < 5 { par i2 < 4 { par i3 "
   "< 8 { var v0: f32 = 0:f32 red i4 < 3 { red i5 < 8 { v0 = add(v0, mul(a[i0,add(i1, i4),i2,i5], b[i4,i5,i2,i3])) } } d[i0,i1,i2,i3] = "
   "max(add(v0, c[i2,i3]), 0:f32) } } } } }"},
  {"of the gradient of its input, too",
   "kernel k(in a: f32[2,7,32], in b: f32[3,8,32], out c: f32[2,5,32]) { par i0 < 2 { par i1 < 5 { par i2 < 32 { var v0: f32 = 0:f32 "
   "red i3 "
   "< 3 { red i4 < 8 { %0 = add(i4, mul(floordiv(i2, 8), 8)) v0 = add(v0, mul(a[i0,sub(add(i1, 2), i3),%0], b[i3,floormod(i2, 8),%0])) } } "
   "c[i0,i1,i2] = v0 } } } }",
   "kernel k(in a: f32[2,7,4,8], in b: f32[3,8,4,8], out c: f32[2,5,4,8]) { par i0 < 2 { par i1 < 5 { par i2 < 4 { par i3 < 8 { var v0: "
   "f32 "
   "= 0:f32 red i4 < 3 { red i5 < 8 { v0 = add(v0, mul(a[i0,sub(add(i1, 2), i4),i2,i5], b[i4,i3,i2,i5])) } } c[i0,i1,i2,i3] = v0 } } } "
   "} }"},
  {"and, in front, of the gradient of its filter",
   "kernel k(in a: f32[2,7,32], in b: f32[2,5,32], out c: f32[3,8,32]) { par i0 < 3 { par i1 < 8 { par i2 < 32 { var v0: f32 = 0:f32 "
   "red i3 "
   "< 2 { red i4 < 5 { v0 = add(v0, mul(a[i3,add(i4, i0),add(i1, mul(floordiv(i2, 8), 8))], b[i3,i4,i2])) } } c[i0,i1,i2] = v0 } } } }",
   "kernel k(in a: f32[2,7,4,8], in b: f32[2,5,4,8], out c: f32[3,8,4,8]) { par i0 < 4 { par i1 < 3 { par i2 < 8 { par i3 < 8 { var v0: "
   "f32 "
   "= 0:f32 red i4 < 2 { red i5 < 5 { v0 = add(v0, mul(a[i4,add(i5, i1),i0,i2], b[i4,i5,i0,i3])) } } c[i1,i2,i0,i3] = v0 } } } } }"},
  {"groups of other channels in than out",
   "kernel k(in a: f32[5,12], in b: f32[6,8], out c: f32[5,8]) { par i0 < 5 { par i1 < 8 { var v0: f32 = 0:f32 red i2 < 6 { v0 = add(v0, "
   "mul(a[i0,add(i2, mul(floordiv(i1, 4), 6))], b[i2,i1])) } c[i0,i1] = v0 } } }",
   "kernel k(in a: f32[5,2,6], in b: f32[6,2,4], out c: f32[5,2,4]) { par i0 < 5 { par i1 < 2 { par i2 < 4 { var v0: f32 = 0:f32 red i3 "
   "< 6 "
   "{ v0 = add(v0, mul(a[i0,i1,i3], b[i3,i1,i2])) } c[i0,i1,i2] = v0 } } } }"},
  {"of several nests: phases of a gradient",
   "kernel k(in a: f32[5,16], in b: f32[2,8,16], out c: f32[10,16]) { par i0 < 5 { par i1 < 16 { var v0: f32 = 0:f32 red i2 < 8 { v0 = "
   "add(v0, mul(a[i0,add(i2, mul(floordiv(i1, 8), 8))], b[0,i2,i1])) } c[mul(i0, 2),i1] = v0 } } par i3 < 5 { par i4 < 16 { var v1: f32 = "
   "0:f32 red i5 < 8 { v1 = add(v1, mul(a[i3,add(i5, mul(floordiv(i4, 8), 8))], b[1,i5,i4])) } c[add(mul(i3, 2), 1),i4] = v1 } } }",
   "kernel k(in a: f32[5,2,8], in b: f32[2,8,2,8], out c: f32[10,2,8]) { par i0 < 5 { par i1 < 2 { par i2 < 8 { var v0: f32 = 0:f32 red i3 "
   "< 8 { v0 = add(v0, mul(a[i0,i1,i3], b[0,i3,i1,i2])) } c[mul(i0, 2),i1,i2] = v0 } } } par i4 < 5 { par i5 < 2 { par i6 < 8 { var v1: "
   "f32 "
   "= 0:f32 red i7 < 8 { v1 = add(v1, mul(a[i4,i5,i7], b[1,i7,i5,i6])) } c[add(mul(i4, 2), 1),i5,i6] = v1 } } } }"},
  {"what another nest reads otherwise keeps its dimension",
   "kernel k(in a: f32[5,16], in b: f32[8,16], out c: f32[5,16], out d: f32[80]) { par i0 < 5 { par i1 < 16 { var v0: f32 = 0:f32 red "
   "i2 < 8 "
   "{ v0 = add(v0, mul(a[i0,add(i2, mul(floordiv(i1, 8), 8))], b[i2,i1])) } c[i0,i1] = v0 } } par i3 < 80 { d[i3] = a[floordiv(i3, "
   "16),floormod(i3, 16)] } }",
   "kernel k(in a: f32[5,16], in b: f32[8,2,8], out c: f32[5,2,8], out d: f32[80]) { par i0 < 5 { par i1 < 2 { par i2 < 8 { var v0: f32 = "
   "0:f32 red i3 < 8 { v0 = add(v0, mul(a[i0,add(i3, mul(i1, 8))], b[i3,i1,i2])) } c[i0,i1,i2] = v0 } } } par i4 < 80 { d[i4] = "
   "a[floordiv(i4, 16),floormod(i4, 16)] } }"},
  {"two channels of a group are no vector", GROUPED("add(floormod(i4, 2), mul(floordiv(i2, 2), 2))"), NULL},
  {"a channel for each of several is no group of them", GROUPED("floordiv(i2, 8)"), NULL},
  {"a map is no convolution",
   "kernel k(in a: f32[2,32], out b: f32[2,32]) { par i0 < 2 { par i1 < 32 { b[i0,i1] = a[i0,floordiv(add(i1, i0), 8)] } } }", NULL},
};

/* To outermost loops of 2, 3 and 4. */
static struct kernel *cut_to_2_3_4(struct kernel *k, struct arena *arena) {
  static const int64_t extents[] = {2, 3, 4};
  struct kernel *made = kernel_cut_loops(k, extents, 3, arena);
  return made && strcmp(kernel_print(made, arena), kernel_print(k, arena)) != 0 ? made : k;
}
static const struct rewrite_case cut[] = {
  {"rows in blocks, and their dimensions; what is no index is counted",
   "kernel k(in a: f32[24,5], in b: f32[5,6], out c: f32[24,6]) { par i0 < 24 { par i1 < 6 { var v0: f32 = 0:f32 red i2 < 5 { v0 = add(v0, "
   "mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = select(lt(i0, i1), v0, 0:f32) } } }",
   "kernel k(in a: f32[2,3,4,5], in b: f32[5,6], out c: f32[2,3,4,6]) { par i0 < 2 { par i1 < 3 { par i2 < 4 { par i3 < 6 { var "
   "v0: f32 = 0:f32 red i4 < 5 { v0 = add(v0, mul(a[i0,i1,i2,i4], b[i4,i3])) } c[i0,i1,i2,i3] = select(lt(add(mul(i0, 12), "
   "add(mul(i1, 4), i2)), i3), v0, 0:f32) } } } } }"},
  {"loops that are there already stay",
   "kernel k(in a: f32[6,4,5], out b: f32[6,4]) { par i0 < 6 { par i1 < 4 { var v0: f32 = 0:f32 red i2 < 5 { v0 = add(v0, a[i0,i1,i2]) } "
   "b[i0,i1] = v0 } } }",
   "kernel k(in a: f32[2,3,4,5], out b: f32[2,3,4]) { par i0 < 2 { par i1 < 3 { par i2 < 4 { var v0: f32 = 0:f32 red i3 < 5 { v0 "
   "= add(v0, a[i0,i1,i2,i3]) } b[i0,i1,i2] = v0 } } } }"},
  {"loops that end elsewhere", "kernel k(in a: f32[8,3], out b: f32[8,3]) { par i0 < 8 { par i1 < 3 { b[i0,i1] = a[i0,i1] } } }", NULL},
  {"too few loops", "kernel k(in a: f32[6], out b: f32[6]) { par i0 < 6 { b[i0] = a[i0] } }", NULL},
};

static struct kernel *collapse_known(struct kernel *k, struct arena *arena) { return kernel_collapse(k, NULL, arena); }
static const struct rewrites forms[] = {{collapsed, sizeof collapsed / sizeof *collapsed, collapse_known},
                                        {unfolded, sizeof unfolded / sizeof *unfolded, kernel_unfold},
                                        {cut, sizeof cut / sizeof *cut, cut_to_2_3_4}};
#define FORMS (sizeof forms / sizeof *forms)

static struct kernel *parsed(const char *text, struct arena *arena) {
  struct kernel *k = NULL;
  if (kernel_parse(text, arena, &k) != OK)
    fail_msg("%s: %s", text, status_text());
  return k;
}

static void check_form(const struct rewrites *form, const struct rewrite_case *is) {
  struct arena arena;
  arena_init(&arena);
  struct kernel *k = parsed(is->kernel, &arena), *made = form->rewrite(k, &arena);
  if (kernel_verify(made) != OK)
    fail_msg("%s: %s", is->name, status_text());
  char *got = kernel_print(made, &arena);
  char *expected = is->expected ? kernel_print(parsed(is->expected, &arena), &arena) : got;
  if (strcmp(got, expected) != 0 || (is->expected == NULL) != (made == k))
    fail_msg("%s:\n%s", is->name, got);
  if (form->rewrite(made, &arena) != made)
    fail_msg("%s: a second time there is more", is->name);
  arena_deinit(&arena);
}
static void loops_are_one_or_two_where_memory_says_so(void **state) {
  (void)state;
  for (size_t f = 0; f < FORMS; f++)
    for (size_t i = 0; i < forms[f].count; i++)
      check_form(&forms[f], &forms[f].cases[i]);
}

/* ---- values ---- */

static size_t buffer_bytes(const struct kernel *k, uint32_t b) {
  size_t bytes = dtype_size(k->buffers.items[b].dtype);
  for (int d = 0; d < k->buffers.items[b].rank; d++)
    bytes *= DIM_IS_SIZE(k->buffers.items[b].dims[d]) ? 3 : (size_t)k->buffers.items[b].dims[d];
  return bytes;
}
/* What the kernel stores in each buffer, of inputs that are the same each time. */
static void run(const struct kernel *k, void **buffers) {
  const int64_t sizes[] = {3};
  for (uint32_t b = 0; b < k->buffers.count; b++) {
    size_t bytes = buffer_bytes(k, b);
    buffers[b] = calloc(1, bytes);
    bool is_float = k->buffers.items[b].dtype == DTYPE_FLOAT;
    for (size_t i = 0; is_float && i < bytes / 4; i++)
      ((float *)buffers[b])[i] = (float)((i * 37 + b * 11) % 101) / 7 - 5;
  }
  assert_int_equal(kernel_eval(k, buffers, sizes), OK);
}
static void check_bits(const struct rewrites *form, const struct rewrite_case *is) {
  struct arena arena;
  void *before[8], *after[8];
  arena_init(&arena);
  struct kernel *k = parsed(is->kernel, &arena), *made = form->rewrite(k, &arena);
  assert_int_equal(made->buffers.count, k->buffers.count);
  run(k, before);
  run(made, after);
  for (uint32_t b = 0; b < k->buffers.count; b++) {
    assert_int_equal(buffer_bytes(k, b), buffer_bytes(made, b));
    if (memcmp(before[b], after[b], buffer_bytes(k, b)) != 0)
      fail_msg("%s: buffer %s differs", is->name, k->buffers.items[b].name);
    free(before[b]);
    free(after[b]);
  }
  arena_deinit(&arena);
}
static void the_same_bits_are_stored(void **state) {
  (void)state;
  for (size_t f = 0; f < FORMS; f++)
    for (size_t i = 0; i < forms[f].count; i++)
      check_bits(&forms[f], &forms[f].cases[i]);
}

/* ---- factors in line ---- */

static const struct line_case {
  const char *name, *kernel, *expected, *copy; /* NULL: there is none */
} lines[] = {
  {"a batch of products whose factor was transposed",
   "kernel k(in a: f32[2,3,4], in b: f32[4,2,5], out c: f32[2,3,5]) { par i0 < 2 { par i1 < 3 { par i2 < 5 { "
   "var v0: f32 = 0:f32 red i3 < 4 "
   "{ v0 = add(v0, mul(a[i0,i1,i3], b[i3,i0,i2])) } c[i0,i1,i2] = v0 } } } }",
   "kernel k(in a: f32[2,3,4], in b: f32[4,2,5], out c: f32[2,3,5], in d: f32[2,4,5]) { par i0 < 2 { par i1 < 3 { par i2 < 5 { "
   "var v0: f32 = 0:f32 red i3 < 4 { v0 = add(v0, mul(a[i0,i1,i3], d[i0,i3,i2])) } c[i0,i1,i2] = v0 } } } }",
   "kernel LineUp(in a: f32[4,2,5], out b: f32[2,4,5]) { par i0 < 2 { par i1 < 4 { par i2 < 5 { b[i0,i1,i2] = a[i1,i0,i2] } } } }"},
  {"one that lies along the sum",
   "kernel k(in a: f32[3,4], in b: f32[5,4], out c: f32[3,5]) { par i0 < 3 { par i1 < 5 { var v0: f32 = 0:f32 red i2 < 4 { v0 = add(v0, "
   "mul(a[i0,i2], b[i1,i2])) } c[i0,i1] = v0 } } }",
   "kernel k(in a: f32[3,4], in b: f32[5,4], out c: f32[3,5], in d: f32[4,5]) { par i0 < 3 { par i1 < 5 { var v0: f32 = 0:f32 red "
   "i2 < 4 { v0 = add(v0, mul(a[i0,i2], d[i2,i1])) } c[i0,i1] = v0 } } }",
   "kernel LineUp(in a: f32[5,4], out b: f32[4,5]) { par i0 < 4 { par i1 < 5 { b[i0,i1] = a[i1,i0] } } }"},
  {"one that lies as it is read",
   "kernel k(in a: f32[3,4], in b: f32[4,5], out c: f32[3,5]) { par i0 < 3 { par i1 < 5 { var v0: f32 = 0:f32 red i2 < 4 { v0 = add(v0, "
   "mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
   NULL, NULL},
  {"no product", "kernel k(in a: f32[3,4], out b: f32[4,3]) { par i0 < 4 { par i1 < 3 { b[i0,i1] = a[i1,i0] } } }", NULL, NULL},
  {"an open size",
   "kernel k(in a: f32[3,n0], in b: f32[5,n0], out c: f32[3,5]) sizes 1 { par i0 < 3 { par i1 < 5 { var v0: f32 = 0:f32 red i2 < n0 { v0 = "
   "add(v0, mul(a[i0,i2], b[i1,i2])) } c[i0,i1] = v0 } } }",
   NULL, NULL},
};
static void second_factors_are_copied_into_the_order_of_sums(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    struct arena arena;
    arena_init(&arena);
    struct kernel *k = parsed(lines[i].kernel, &arena), *copy = NULL;
    uint32_t buffer = 9;
    struct kernel *made = kernel_line_up(k, &arena, &copy, &buffer);
    if (!lines[i].expected != !made)
      fail_msg("%s: %s", lines[i].name, made ? kernel_print(made, &arena) : "none");
    if (made) {
      assert_int_equal(buffer, 1);
      assert_string_equal(kernel_print(made, &arena), kernel_print(parsed(lines[i].expected, &arena), &arena));
      assert_string_equal(kernel_print(copy, &arena), kernel_print(parsed(lines[i].copy, &arena), &arena));
    }
    arena_deinit(&arena);
  }
}

static void a_scheduled_kernel_stays(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *k =
    parsed("kernel k(in a: f32[2,4], out b: f32[2,4]) { par i0 < 2 tasks { buffer c: f32[4] in register par mi < 4 lanes 4 { c[mi] "
           "= a[i0,mi] } par ni < 4 lanes 4 { b[i0,ni] = c[ni] } } }",
           &arena);
  assert_ptr_equal(kernel_collapse(k, NULL, &arena), k);
  k = parsed("kernel k(in a: f32[2,4], out b: f32[2,4]) { par i0 < 2 tasks { par ni < 4 lanes 4 { b[i0,ni] = a[i0,ni] } } }", &arena);
  assert_ptr_equal(kernel_collapse(k, NULL, &arena), k);
  arena_deinit(&arena);
}

static void sizes_beyond_all_numbers_stay(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *k = parsed("kernel k(in a: f32[3,9223372036854775807], out b: f32[4]) { par i0 < 4 { b[i0] = 0:f32 } }", &arena);
  assert_ptr_equal(kernel_collapse(k, NULL, &arena), k);
  arena_deinit(&arena);
}

/* Open extents: what the kernel becomes, of which sizes the new ones are products, and how often its loops are taken to turn. */
static const struct {
  const char *kernel, *expected; /* NULL: itself */
  struct size_product product;
  double usual;
} opened[] = {
  {"kernel k(in a: f32[n0,n1,n2,3], out b: f32[n0]) sizes 3 { par i0 < n0 { var v0: f32 = 0:f32 red i1 < n1 { red i2 < n2 { red i3 < 3 { "
   "v0 = add(v0, a[i0,i1,i2,i3]) } } } b[i0] = v0 } }",
   "kernel k(in a: f32[n0,n3], out b: f32[n0]) sizes 4 { par i0 < n0 { var v0: f32 = 0:f32 red i1 < n3 { v0 = add(v0, "
   "a[i0,i1]) } b[i0] = v0 } }",
   {3, {1, 2}, 2},
   64.0 * 64 * 3},
  {"kernel k(in a: f32[n0,10], in b: f32[n0,10], out c: f32[n0,10]) sizes 1 { par i0 < n0 { par i1 < 10 { c[i0,i1] = add(a[i0,i1], "
   "b[i0,i1]) } } }",
   "kernel k(in a: f32[n1], in b: f32[n1], out c: f32[n1]) sizes 2 { par i0 < n1 { c[i0] = add(a[i0], b[i0]) } }",
   {10, {0}, 1},
   640},
  {"kernel k(in a: f32[n0,100], out b: f32[n0,100]) sizes 1 { par i0 < n0 { par i1 < 100 { b[i0,i1] = a[i0,i1] } } }", NULL, {0}, 0},
  {"kernel k(in a: f32[n0,4], in b: f32[n0], out c: f32[n0,4]) sizes 1 { par i0 < n0 { par i1 < 4 { c[i0,i1] = add(a[i0,i1], b[i0]) } } }",
   NULL,
   {0},
   0},
};
static void open_loops_are_one_of_a_new_size(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof opened / sizeof *opened; i++) {
    struct arena arena;
    struct new_sizes sizes = {0};
    arena_init(&arena);
    struct kernel *k = parsed(opened[i].kernel, &arena), *made = kernel_collapse(k, &sizes, &arena);
    assert_int_equal(kernel_verify(made), OK);
    const struct kernel *expected = opened[i].expected ? parsed(opened[i].expected, &arena) : k;
    assert_string_equal(kernel_print(made, &arena), kernel_print(expected, &arena));
    assert_int_equal(sizes.count, opened[i].expected != NULL);
    if (sizes.count) {
      const struct size_product *p = &sizes.items[0], *q = &opened[i].product;
      assert_int_equal(p->factor, q->factor);
      assert_int_equal(p->count, q->count);
      assert_memory_equal(p->sizes, q->sizes, sizeof *p->sizes * (size_t)p->count);
      assert_true(made->usual[made->size_count - 1] == opened[i].usual);
    }
    arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(loops_are_one_or_two_where_memory_says_so),
    cmocka_unit_test(the_same_bits_are_stored),
    cmocka_unit_test(second_factors_are_copied_into_the_order_of_sums),
    cmocka_unit_test(a_scheduled_kernel_stays),
    cmocka_unit_test(sizes_beyond_all_numbers_stay),
    cmocka_unit_test(open_loops_are_one_of_a_new_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
