/* Random schedules of random kernels: the scheduled kernel gives the bits that the plain one gives, as long as no step says that it changes
 * sums; then values that are close.
 *
 *   test_schedule_random             the seeds of the test command
 *   test_schedule_random 1000 5000   seeds 1000 .. 5999; one that fails is told with its schedule */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/schedule/schedule.h"

#include <cmocka.h>

#define SEEDS 250
#define STEPS 14
#define SIZES 3

static uint64_t state;
static uint32_t draw(uint32_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 33) % below;
}
static bool one_in(uint32_t n) { return draw(n) == 0; }

/* ---- kernels ---- */

struct problem {
  const char *text, *names; /* the first step: words for its loops */
  int64_t sizes[SIZES];
};

/* A dimension: its number, or a size parameter of that value. */
static const char *dimension(struct arena *a, struct problem *p, int *open, int64_t value) {
  if (*open >= SIZES || !one_in(3))
    return arena_printf(a, "%d", (int)value);
  p->sizes[*open] = value;
  return arena_printf(a, "n%d", (*open)++);
}

static void draw_product(struct arena *a, struct problem *p) {
  int open = 0;
  int64_t sizes[3];
  for (int i = 0; i < 3; i++)
    sizes[i] = 1 + draw(i == 2 ? 12 : 40);
  const char *m = dimension(a, p, &open, sizes[2]), *n = dimension(a, p, &open, sizes[0]), *k = dimension(a, p, &open, sizes[1]);
  bool ta = one_in(2), tb = one_in(2), bias = one_in(2);
  const char *type = one_in(4) ? "f64" : "f32", *x = ta ? "a[i2,i0]" : "a[i0,i2]", *y = tb ? "b[i1,i2]" : "b[i2,i1]";
  x = one_in(3) ? arena_printf(a, "max(%s, 0:%s)", x, type) : x; /* what may be computed before it is copied */
  y = one_in(3) ? arena_printf(a, "cast.%s(cast.bf16(%s))", type, y) : y;
  y = one_in(3) ? arena_printf(a, "select(lt(c[i1], 1:%s), %s, 0:%s)", type, y, type) : y;
  p->names = "name i0 i1 i2 -> m n k";
  p->text = arena_printf(a,
                         "kernel product(in a: %s[%s,%s], in b: %s[%s,%s], in c: %s[%s], out d: %s[%s,%s]) sizes %d {"
                         " par i0 < %s { par i1 < %s { var v0: %s = 0:%s red i2 < %s { v0 = add(v0, mul(%s, %s)) } d[i0,i1] = %s } } }",
                         type, ta ? k : m, ta ? m : k, type, tb ? n : k, tb ? k : n, type, n, type, m, n, open, m, n, type, type, k, x, y,
                         bias ? arena_printf(a, "max(add(v0, c[i1]), 0:%s)", type) : "v0");
}

static void draw_forward(struct arena *a, struct problem *p) {
  int kh = 1 + (int)draw(3), stride = 1 + (int)draw(2), h = 2 + (int)draw(6), c = 1 + (int)draw(5), co = 1 + (int)draw(20);
  int rows = (h - 1) * stride + kh;
  p->names = "name i0 i1 i2 i3 i4 i5 -> n h w co kh kc";
  p->text = arena_printf(a,
                         "kernel conv(in a: f32[2,%d,%d], in b: f32[%d,%d,%d], out c: f32[2,%d,%d,%d]) {"
                         " par i0 < 2 { par i1 < %d { par i2 < %d { par i3 < %d { var v0: f32 = 0:f32"
                         "  red i4 < %d { red i5 < %d { v0 = add(v0, mul(a[i0,add(mul(i1, %d), i4),add(mul(i2, %d), i5)], b[i4,i5,i3])) } }"
                         "  c[i0,i1,i2,i3] = v0 } } } } }",
                         rows, rows * c, kh, kh * c, co, h, h, co, h, h, co, kh, kh * c, stride, stride * c);
}

static void draw_filter_gradient(struct arena *a, struct problem *p) {
  int kh = 1 + (int)draw(3), h = 2 + (int)draw(6), c = 1 + (int)draw(6), co = 1 + (int)draw(20), open = 0;
  const char *n = dimension(a, p, &open, 1 + draw(3));
  p->names = "name i0 i1 i2 i3 i4 i5 -> kh kc co n h w";
  p->text = arena_printf(a,
                         "kernel filter(in a: f32[%s,%d,%d], in b: f32[%s,%d,%d,%d], out c: f32[%d,%d,%d]) sizes %d {"
                         " par i0 < %d { par i1 < %d { par i2 < %d { var v0: f32 = 0:f32"
                         "  red i3 < %s { red i4 < %d { red i5 < %d {"
                         "   v0 = add(v0, mul(a[i3,add(i4, i0),add(mul(i5, %d), i1)], b[i3,i4,i5,i2])) } } }"
                         "  c[i0,i1,i2] = v0 } } } }",
                         n, h + kh - 1, (h + kh - 1) * c, n, h, h, co, kh, kh * c, co, open, kh, kh * c, co, n, h, h, c);
}

/* Windows with a border that is tested inside of the sum: by a statement, or by a factor that is 0 outside. */
static void draw_border(struct arena *a, struct problem *p) {
  static const char test[] = "and(and(le(0, %0), lt(%0, H)), and(lt(%1, W), le(0, %1)))",
                    at[] = "a[max(min(%0, X), 0),min(max(%1, 0), Y),i2]";
  int h = 2 + (int)draw(6), w = 2 + (int)draw(12), c = 1 + (int)draw(20), stride = 1 + (int)draw(2);
  const char *row = one_in(3) ? "sub(add(i0, 2), i3)" : stride == 2 ? "sub(add(mul(i0, 2), i3), 1)" : "sub(add(i0, i3), 1)";
  int in_h = h, in_w = w, kind = (int)draw(3);
  const char *value = arena_printf(a, "select(%s, %s, %s)", test, at, kind == 1 ? "-inf:f32" : "0:f32");
  const char *term = kind == 0 ? arena_printf(a, "v0 = add(v0, mul(%s, b[i3,i4,i2]))", value)
                   : kind == 1 ? arena_printf(a, "v0 = max(v0, %s)", value)
                               : arena_printf(a, "if %s { v0 = add(v0, mul(a[%%0,%%1,i2], b[i3,i4,i2])) }", test);
  const char *text = arena_printf(a,
                                  "kernel border(in a: f32[%d,%d,%d], in b: f32[3,3,%d], out c: f32[%d,%d,%d]) {"
                                  " par i0 < %d { par i1 < %d { par i2 < %d { var v0: f32 = %s"
                                  "  red i3 < 3 { red i4 < 3 { %%0 = %s %%1 = sub(add(i1, i4), 1) %s } }"
                                  "  c[i0,i1,i2] = v0 } } } }",
                                  in_h, in_w, c, c, h, w, c, h, w, c, kind == 1 ? "-inf:f32" : "0:f32", row, term);
  char *made = arena_alloc(a, strlen(text) * 2);
  size_t n = 0;
  for (const char *t = text; *t; t++) { /* sizes for the words of the test and the clamps */
    int value_of = *t == 'H' ? in_h : *t == 'W' ? in_w : *t == 'X' ? in_h - 1 : *t == 'Y' ? in_w - 1 : -1;
    n += (size_t)(value_of >= 0 ? sprintf(made + n, "%d", value_of) : sprintf(made + n, "%c", *t));
  }
  p->text = made;
  p->names = "name i0 i1 i2 i3 i4 -> h w c kh kw";
}

/* Nests that hand rows on: a product, what is made of its rows, and the sum of these with something else. The first loops of all are alike;
 * at times the last nest reads another row. */
static void draw_handed_on(struct arena *a, struct problem *p) {
  int b = 1 + (int)draw(3), m = 2 + (int)draw(6), n = 1 + (int)draw(20), k = 1 + (int)draw(6);
  p->names = "name i0 i1 i2 i3 i4 i5 i6 i7 i8 i9 -> b m n k b1 m1 l1 b2 m2 l2";
  p->text = arena_printf(a,
                         "kernel rows(in a: f32[%d,%d,%d], in b: f32[%d,%d], out c: f32[%d,%d], scratch d: f32[%d,%d,%d], "
                         "scratch e: f32[%d,%d,%d]) {"
                         " par i0 < %d { par i1 < %d { par i2 < %d { var v0: f32 = 0:f32"
                         "  red i3 < %d { v0 = add(v0, mul(a[i0,i1,i3], b[i3,i2])) } d[i0,i1,i2] = v0 } } }"
                         " par i4 < %d { par i5 < %d { par i6 < %d { e[i4,i5,i6] = mul(d[i4,i5,i6], d[i4,i5,0]) } } }"
                         " par i7 < %d { par i8 < %d { var v1: f32 = 0:f32"
                         "  red i9 < %d { v1 = add(v1, mul(e[i7,%s,i9], 3:f32)) } c[i7,i8] = v1 } } }",
                         b, m, k, k, n, b, m, b, m, n, b, m, n, b, m, n, k, b, m, n, b, m, n,
                         one_in(4) ? arena_printf(a, "sub(%d, i8)", m - 1) : "i8");
}

static void draw_map(struct arena *a, struct problem *p) {
  int open = 0;
  const char *m = dimension(a, p, &open, draw(20)), *n = dimension(a, p, &open, 1 + draw(40));
  p->names = "name i0 i1 -> m n";
  p->text = arena_printf(a,
                         "kernel map(in a: f32[%s,%s], in b: f32[%s], inout c: f32[%s,%s]) sizes %d {"
                         " par i0 < %s { par i1 < %s { var v0: f32 = mul(a[i0,i1], b[i1]) c[i0,i1] = sub(c[i0,i1], mul(v0, v0)) } } }",
                         m, n, n, m, n, open, m, n);
}

/* Statistics of a row, then a map over it. */
static void draw_rows(struct arena *a, struct problem *p) {
  int open = 0;
  const char *m = dimension(a, p, &open, 1 + draw(20)), *n = dimension(a, p, &open, 1 + draw(40));
  p->names = "name i0 i1 i2 i3 -> m n0x n1x n";
  p->text = arena_printf(a,
                         "kernel rows(in a: f32[%s,%s], out b: f32[%s,%s], out c: f32[%s]) sizes %d {"
                         " par i0 < %s { var v0: f32 = -inf:f32 red i1 < %s { v0 = max(v0, a[i0,i1]) }"
                         "  var v1: f32 = 0:f32 red i2 < %s { v1 = add(v1, mul(a[i0,i2], sub(a[i0,i2], v0))) }"
                         "  c[i0] = v1 par i3 < %s { b[i0,i3] = mul(sub(a[i0,i3], v0), v1) } } }",
                         m, n, m, n, m, open, m, n, n, n);
}

static struct problem draw_problem(struct arena *a) {
  static void (*const kinds[])(struct arena *, struct problem *) = {draw_product,   draw_product,  draw_forward, draw_filter_gradient,
                                                                    draw_border,    draw_border,   draw_map,     draw_rows,
                                                                    draw_handed_on, draw_handed_on};
  struct problem p = {0};
  kinds[draw(sizeof kinds / sizeof *kinds)](a, &p);
  return p;
}

/* ---- steps ---- */

#define LOOPS_MAX 200
struct found {
  const struct kernel *k;
  const struct stmt *loop[LOOPS_MAX];
  int around[LOOPS_MAX]; /* the loop around this one, when nothing else stands between them; -1 */
  int count;
};
static void find_loops(struct found *f, const struct stmt *s, int around) {
  for (; s; s = s->next) {
    int at = f->count;
    if (s->kind == STMT_FOR && at < LOOPS_MAX) {
      f->loop[at] = s;
      f->around[at] = around;
      f->count++;
    }
    find_loops(f, s->body, s->kind == STMT_FOR ? at : -1);
    find_loops(f, s->otherwise, -1);
  }
}
static const char *name_at(const struct found *f, int at) { return f->k->locals.items[f->loop[at]->local].name; }

static int draw_tails(struct arena *a, int size, const char **text) {
  *text = "";
  for (int tail = size / 2; tail && !one_in(3); tail /= 2)
    *text = arena_printf(a, "%s%s %d", *text, **text ? "" : " tail cut", tail);
  return 0;
}
static const char *draw_split(struct arena *a, const struct found *f, int number) {
  static const int sizes[] = {2, 3, 4, 5, 8, 16};
  const char *tail;
  int size = sizes[draw(6)];
  draw_tails(a, size, &tail);
  return arena_printf(a, "split %s %d -> %c%d_o %c%d_i%s", name_at(f, (int)draw((uint32_t)f->count)), size, 'p', number, 'p', number, tail);
}

/* The loops around and with `at`, outermost first, at most `most`. */
static int chain_of(const struct found *f, int at, int most, const char **names, enum loop_kind kind) {
  int chain[8], n = 0;
  for (; at >= 0 && n < most && n < 8 && f->loop[at]->loop == kind; at = f->around[at])
    chain[n++] = at;
  for (int i = 0; i < n; i++)
    names[i] = name_at(f, chain[n - 1 - i]);
  return n;
}

static const char *draw_order(struct arena *a, const struct found *f, bool *regroups) {
  const char *names[8], *text = "order";
  int at = (int)draw((uint32_t)f->count);
  enum loop_kind kind = f->loop[at]->loop;
  int n = chain_of(f, at, 2 + (int)draw(4), names, kind);
  for (int left = n; left; left--) {
    int i = (int)draw((uint32_t)left);
    text = arena_printf(a, "%s %s", text, names[i]);
    names[i] = names[left - 1];
  }
  *regroups = kind == LOOP_RED && one_in(2);
  return n < 2 ? NULL : arena_printf(a, "%s%s", text, *regroups ? " regroup" : "");
}

/* Loops that keep their place in registers must be written out or lanes. */
static const char *draw_sink(struct arena *a, const struct found *f) {
  const char *names[8], *pars = "", *runs = "";
  int at = (int)draw((uint32_t)f->count), inner = at;
  if (f->loop[at]->loop != LOOP_RED)
    return NULL;
  int around = -1;
  for (int i = 0; i < f->count; i++)
    for (const struct stmt *s = f->loop[i]->body; s; s = s->next)
      around = s == f->loop[at] ? i : around;
  int n = around < 0 ? 0 : chain_of(f, around, 1 + (int)draw(3), names, LOOP_PAR);
  for (int i = 0; i < n; i++) {
    pars = arena_printf(a, "%s %s", pars, names[i]);
    runs = arena_printf(a, "%s; run %s %s", runs, names[i], i + 1 == n ? "lanes" : "unroll");
  }
  const char *under = name_at(f, at);
  for (int i = at + 1; i < f->count && one_in(2); i++)
    if (f->around[i] == inner && f->loop[inner]->body == f->loop[i] && !f->loop[i]->next && f->loop[i]->loop == LOOP_RED) {
      under = arena_printf(a, "%s %s", under, name_at(f, i));
      inner = i;
    }
  switch (draw(4)) {
  case 0: return n ? arena_printf(a, "sink%s under %s in stack", pars, under) : NULL;
  case 1: return n ? arena_printf(a, "sink%s under %s in result%s", pars, under, one_in(2) ? " first" : "") : NULL;
  default: return n ? arena_printf(a, "sink%s under %s in register%s", pars, under, runs) : NULL;
  }
}

static const char *draw_run(struct arena *a, const struct found *f) {
  static const char *const runs[] = {"tasks", "lanes", "unroll", "together 3", "vectors 4"};
  int at = (int)draw((uint32_t)f->count);
  return arena_printf(a, "run %s %s", name_at(f, at), runs[draw(f->loop[at]->loop == LOOP_PAR ? 5 : 4)]); /* red ones' sums would change */
}
static const char *draw_fuse(struct arena *a, const struct found *f, int number) {
  const char *names[8], *text = "fuse";
  int at = (int)draw((uint32_t)f->count), n = chain_of(f, at, 2 + (int)draw(2), names, f->loop[at]->loop);
  for (int i = 0; i < n; i++)
    text = arena_printf(a, "%s %s", text, names[i]);
  return n < 2 ? NULL : arena_printf(a, "%s -> f%d", text, number);
}
static const char *draw_cut(struct arena *a, const struct found *f, int number) {
  if (one_in(2))
    return arena_printf(a, "cut %s", name_at(f, (int)draw((uint32_t)f->count)));
  return arena_printf(a, "cut %s at %d -> c%d_l c%d_r", name_at(f, (int)draw((uint32_t)f->count)), 1 + (int)draw(8), number, number);
}

/* What some loops inside of one read, or compute of it; at times of a whole dimension. */
static const char *draw_stage(struct arena *a, const struct found *f, int number) {
  int at = (int)draw((uint32_t)f->count);
  const char *by = "", *makes = "";
  int n = 0;
  bool computed = one_in(2);
  if (!computed && one_in(2)) {
    by = arena_printf(a, " .%d", (int)draw(3));
    makes = arena_printf(a, " s%d_%d", number, n++);
  }
  for (int i = at + 1; i < f->count && n < 4; i++)
    if (!one_in(3)) {
      by = arena_printf(a, "%s %s", by, name_at(f, i));
      makes = arena_printf(a, "%s s%d_%d", makes, number, n++);
    }
  const char *what = !computed ? "" : one_in(2) ? " computed" : " computed bf16";
  return *by ? arena_printf(a, "stage %c%s at %s by%s ->%s", 'a' + (int)draw(2), what, name_at(f, at), by, makes) : NULL;
}

static const char *draw_fetch(struct arena *a, const struct found *f) {
  int at = (int)draw((uint32_t)f->count);
  const char *over = "";
  for (int i = at + 1; one_in(2) && i < f->count && i < at + 4; i++)
    if (one_in(2))
      over = arena_printf(a, "%s %s", *over ? over : " over", name_at(f, i));
  return arena_printf(a, "fetch %c at %s ahead %d%s", 'a' + (int)draw(2), name_at(f, at), 1 + (int)draw(9), over);
}

/* Sums change by it: of `max` they do not, but nobody asks. */
static const char *draw_part(struct arena *a, const struct found *f, int number, bool *regroups) {
  *regroups = true;
  return arena_printf(a, "part %s %d -> q%d_o q%d_i q%d_s", name_at(f, (int)draw((uint32_t)f->count)), 2 + (int)draw(4), number, number,
                      number);
}

static const char *draw_join(struct arena *a, const struct found *f) {
  return f->k->body->next ? arena_printf(a, "join %d", 1 + (int)draw(2)) : NULL;
}

/* Terms of some sum two by two, which changes its order. */
static const char *draw_pair(struct arena *a, const struct found *f, int number, bool *regroups) {
  int at = (int)draw((uint32_t)f->count);
  while (at < f->count && f->loop[at]->loop != LOOP_RED)
    at++;
  *regroups = true;
  const char *tail = one_in(2) ? arena_printf(a, " tail r%d_t cut 1", number) : "";
  return at < f->count ? arena_printf(a, "split %s 2 -> r%d_o r%d_i%s; pair r%d_i", name_at(f, at), number, number, tail, number) : NULL;
}

static const char *draw_step(struct arena *a, const struct found *f, int number, bool *regroups) {
  *regroups = false;
  switch (draw(32)) {
  case 0:
  case 1:
  case 2: return draw_split(a, f, number);
  case 3:
  case 4: return draw_order(a, f, regroups);
  case 5: return draw_run(a, f);
  case 6: return draw_fuse(a, f, number);
  case 7:
  case 8:
  case 9: return draw_cut(a, f, number);
  case 11:
  case 12:
  case 19:
  case 20:
  case 21:
  case 24:
  case 26:
  case 27: return draw_stage(a, f, number);
  case 13:
  case 14:
  case 28: return draw_part(a, f, number, regroups);
  case 15:
  case 16:
  case 17:
  case 18: return draw_join(a, f);
  case 10:
  case 22:
  case 23: return draw_fetch(a, f);
  case 25: return draw_pair(a, f, number, regroups);
  default: return draw_sink(a, f);
  }
}

/* ---- running ---- */

static int64_t count_of(const struct kernel *k, uint32_t buffer, const int64_t *sizes) {
  const struct kernel_buffer *b = &k->buffers.items[buffer];
  int64_t n = 1;
  for (int d = 0; d < b->rank; d++)
    n *= DIM_IS_SIZE(b->dims[d]) ? sizes[SIZE_OF_DIM(b->dims[d])] : b->dims[d];
  return n;
}

#define BUFFERS_MAX 400
/* The kernel's buffers after it ran, from the same numbers each time. */
static status run(const struct kernel *k, const int64_t *sizes, struct arena *a, void **buffers) {
  uint64_t random = 88172645463325252u;
  for (uint32_t b = 0; b < k->buffers.count && k->buffers.items[b].mode != BUFFER_LOCAL; b++) {
    int64_t n = count_of(k, b, sizes);
    bool wide = k->buffers.items[b].dtype == DTYPE_DOUBLE;
    buffers[b] = arena_alloc(a, (size_t)(n + 1) * 8);
    for (int64_t i = 0; i < n; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      double v = (double)(int64_t)(random >> 40) / (1 << 22) - 2;
      if (wide)
        ((double *)buffers[b])[i] = v;
      else
        ((float *)buffers[b])[i] = (float)v;
    }
  }
  return kernel_eval(k, buffers, sizes);
}

static bool close_enough(enum dtype dtype, const void *x, const void *y, int64_t i) {
  double a = dtype == DTYPE_DOUBLE ? ((const double *)x)[i] : (double)((const float *)x)[i];
  double b = dtype == DTYPE_DOUBLE ? ((const double *)y)[i] : (double)((const float *)y)[i];
  return a == b || fabs(a - b) <= 1e-4 * (1 + fabs(a) + fabs(b));
}

static bool same(const struct kernel *plain, const struct kernel *scheduled, const struct problem *p, bool to_the_bit, struct arena *a) {
  void *x[BUFFERS_MAX] = {0}, *y[BUFFERS_MAX] = {0};
  if (scheduled->buffers.count > BUFFERS_MAX)
    return true;
  status expected = run(plain, p->sizes, a, x), got = run(scheduled, p->sizes, a, y);
  if (expected != OK || got != OK) {
    printf("plain %d, scheduled %d: %s\n", expected, got, status_text());
    return false;
  }
  for (uint32_t b = 0; b < plain->buffers.count; b++) {
    enum dtype dtype = plain->buffers.items[b].dtype;
    int64_t n = count_of(plain, b, p->sizes);
    if (plain->buffers.items[b].mode == BUFFER_SCRATCH)
      continue;
    if (to_the_bit ? memcmp(x[b], y[b], (size_t)n * dtype_size(dtype)) == 0 : true) {
      bool close = true;
      for (int64_t i = 0; i < n; i++)
        close = close && close_enough(dtype, x[b], y[b], i);
      if (close)
        continue;
    }
    printf("buffer %u differs\n", b);
    return false;
  }
  return true;
}

/* ---- the test ---- */

static struct kernel *applied(const struct kernel *k, const char *text, struct arena *a) {
  struct schedule s;
  struct kernel *out = NULL;
  if (schedule_parse(text, a, &s) != OK) {
    printf("%s: %s\n", text, status_text());
    abort();
  }
  if (strcmp(schedule_print(&s, a), text) != 0) {
    printf("%s is printed as %s\n", text, schedule_print(&s, a));
    abort();
  }
  return schedule_apply(k, &s, a, &out) == OK ? out : NULL;
}

static const char *const words[] = {"split", "order", "run",  "fuse",      "cut",   "fetch", "stage",
                                    "sink",  "part",  "join", " computed", " over", " pair"};
#define WORDS (int)(sizeof words / sizeof *words)
struct tally {
  int drawn, refused, exact;
  int applied[WORDS];
};
static void count_step(struct tally *tally, const char *step) {
  for (int i = 0; i < WORDS; i++)
    tally->applied[i] += *words[i] == ' ' ? strstr(step, words[i]) != NULL : strncmp(step, words[i], strlen(words[i])) == 0;
}

static bool try_seed(uint64_t seed, struct tally *tally) {
  struct arena a;
  arena_init(&a);
  state = seed * 0x9E3779B97F4A7C15u + 1;
  for (int i = 0; i < 4; i++)
    draw(2);
  struct problem p = draw_problem(&a);
  struct kernel *k = NULL, *scheduled, *again = NULL;
  if (kernel_parse(p.text, &a, &k) != OK) {
    printf("%s: %s\n", p.text, status_text());
    abort();
  }
  const struct kernel *plain = one_in(2) ? applied(k, "fma", &a) : NULL;
  bool exact = true;
  const char *names = plain ? arena_printf(&a, "%s; fma", p.names) : p.names;
  scheduled = applied(k, names, &a);
  for (int i = 0; i < STEPS; i++) {
    struct found f = {.k = scheduled};
    bool regroups;
    find_loops(&f, scheduled->body, -1);
    const char *step = f.count ? draw_step(&a, &f, i, &regroups) : NULL;
    if (!step)
      continue;
    const char *longer = arena_printf(&a, "%s; %s", names, step);
    struct kernel *next = applied(k, longer, &a);
    tally->drawn++;
    tally->refused += !next;
    if (!next)
      continue;
    names = longer;
    scheduled = next;
    count_step(tally, step);
    exact = exact && !regroups;
  }
  tally->exact += exact;
  bool good = same(plain ? plain : k, scheduled, &p, exact, &a);
  const char *printed = kernel_print(scheduled, &a);
  if (good && (kernel_parse(printed, &a, &again) != OK || strcmp(kernel_print(again, &a), printed) != 0))
    good = printf("the text does not come back: %s\n", status_text()) < 0;
  if (!good)
    printf("seed %llu\n%s\n%s\n%s\n", (unsigned long long)seed, p.text, names, printed);
  arena_deinit(&a);
  return good;
}

static int try_seeds(uint64_t first, uint64_t count, struct tally *tally) {
  int bad = 0;
  for (uint64_t seed = first; seed < first + count; seed++)
    bad += !try_seed(seed, tally);
  return bad;
}

static void schedules_keep_what_kernels_compute(void **unused) {
  (void)unused;
  struct tally tally = {0};
  assert_int_equal(try_seeds(1, SEEDS, &tally), 0);
  assert_true(tally.refused * 3 < tally.drawn * 2); /* a good share applies */
  assert_true(tally.exact * 2 > SEEDS);
  for (int i = 0; i < WORDS; i++)
    assert_true(tally.applied[i] > SEEDS / 20);
}

int main(int argc, char **argv) {
  if (argc == 3) {
    struct tally tally = {0};
    int bad = try_seeds(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), &tally);
    printf("%d failed; %d steps drawn, %d refused; %d schedules keep every bit\n", bad, tally.drawn, tally.refused, tally.exact);
    for (int i = 0; i < WORDS; i++)
      printf("%s %d%s", words[i], tally.applied[i], i + 1 < WORDS ? ", " : " applied\n");
    return bad != 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(schedules_keep_what_kernels_compute)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
