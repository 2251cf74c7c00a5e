/* bench_schedule: how far what the cost model chooses is from the best that was proposed, for a corpus of kernels, on one core.
 *
 *   ninja bench_schedule && ./bench_schedule [-v] [PART OF A NAME]
 *
 * Each proposed schedule and plain loops, `own`, are timed in turn, round after round, by the thread's own clock; a figure is the best of
 * its rounds, beside the core's peak of the same run. `loss` is the time of the chosen one over the best one's, less 1. -v: every
 * candidate with its steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kernel_timer.h"
#include "compiler/schedule/choose.h"
#include "ir/schedule/collapse.h"

#define SECONDS 0.024 /* of each candidate */

/* ---- the corpus ---- */

struct bench_case {
  const char *form; /* "nn", "nt", "tn": which factors of c[m,n] = a[m,k] * b[k,n] are transposed; "cv": a convolution; "dw": its filter's;
                      "pv", "ps": one of a padded image, of stride 1 and 2;
                      "pn": "nn" with its second factor in panels; "tr": a transposition, an element of which counts as k multiply-adds */
  int64_t m, k, n;  /* others than products: pixels of a side of the result, channels in and out */
  int64_t batch;    /* products: how many; others: images */
  int64_t taps;     /* of a side; "pn": columns of a panel */
};
static const struct bench_case cases[] = {
  {"nn", 1, 784, 128, 1, 0},     {"nn", 1, 1024, 10, 1, 0},     {"nn", 1, 256, 1024, 1, 0},    {"nn", 1, 1024, 1024, 1, 0},
  {"nn", 1, 3136, 1024, 1, 0},   {"nn", 2, 2048, 2048, 1, 0},   {"nn", 4, 3136, 1024, 1, 0},   {"nn", 8, 3136, 1024, 1, 0},
  {"nn", 2, 256, 512, 1, 0},     {"nn", 4, 256, 512, 1, 0},     {"nn", 8, 256, 512, 1, 0},     {"nn", 16, 256, 512, 1, 0},
  {"nn", 32, 256, 512, 1, 0},    {"nn", 64, 128, 512, 1, 0},    {"nn", 64, 256, 512, 1, 0},    {"nn", 128, 256, 512, 1, 0},
  {"nn", 16, 784, 128, 1, 0},    {"nn", 64, 784, 128, 1, 0},    {"nn", 128, 784, 128, 1, 0},   {"nn", 512, 784, 128, 1, 0},
  {"nn", 512, 64, 2, 1, 0},      {"nn", 256, 2048, 4, 1, 0},    {"nn", 64, 1024, 10, 1, 0},    {"nn", 128, 128, 10, 1, 0},
  {"nn", 64, 500, 500, 1, 0},    {"nn", 1024, 256, 256, 1, 0},  {"nn", 1024, 64, 64, 1, 0},    {"nn", 64, 64, 64, 64, 0},
  {"nn", 64, 16, 64, 64, 0},     {"nn", 4, 1024, 1024, 1, 0},   {"nn", 8, 1024, 1024, 1, 0},   {"nn", 16, 1024, 1024, 1, 0},
  {"nn", 12, 768, 768, 1, 0},    {"nn", 64, 1024, 1024, 1, 0},  {"nn", 64, 3136, 1024, 1, 0},  {"nn", 128, 1024, 2048, 1, 0},
  {"nn", 256, 2048, 2048, 1, 0}, {"nn", 256, 1024, 2048, 1, 0}, {"nn", 256, 2048, 1000, 1, 0}, {"nn", 512, 512, 512, 1, 0},
  {"nn", 1024, 256, 1024, 1, 0}, {"nn", 1024, 1024, 256, 1, 0}, {"tn", 128, 64, 512, 1, 0},    {"tn", 256, 64, 512, 1, 0},
  {"tn", 784, 128, 128, 1, 0},   {"tn", 128, 128, 10, 1, 0},    {"tn", 1024, 64, 10, 1, 0},    {"tn", 64, 64, 64, 64, 0},
  {"tn", 256, 6272, 64, 1, 0},   {"tn", 128, 1568, 512, 1, 0},  {"tn", 256, 1024, 256, 1, 0},  {"tn", 256, 1024, 1024, 1, 0},
  {"tn", 1024, 64, 1024, 1, 0},  {"tn", 3136, 64, 1024, 1, 0},  {"tn", 2048, 256, 2048, 1, 0}, {"tn", 1024, 256, 2048, 1, 0},
  {"tn", 2048, 256, 1000, 1, 0}, {"nt", 256, 1000, 2048, 1, 0}, {"nt", 256, 2048, 2048, 1, 0}, {"nt", 256, 2048, 1024, 1, 0},
  {"nt", 64, 128, 784, 1, 0},    {"nt", 64, 512, 256, 1, 0},    {"nt", 8, 256, 512, 1, 0},     {"nt", 1024, 1024, 256, 1, 0},
  {"nt", 1024, 256, 1024, 1, 0}, {"nt", 1024, 256, 256, 1, 0},  {"nt", 64, 32, 64, 128, 0},    {"nn", 64, 64, 32, 128, 0},
  {"tn", 64, 64, 32, 128, 0},    {"nt", 64, 64, 64, 64, 0},     {"nt", 4, 1024, 3136, 1, 0},   {"nt", 16, 1024, 3136, 1, 0},
  {"nt", 32, 1024, 1024, 1, 0},  {"nt", 64, 1024, 3136, 1, 0},  {"nt", 64, 1024, 1024, 1, 0},  {"nt", 128, 10, 128, 1, 0},
  {"nt", 3, 1024, 3136, 1, 0},   {"nt", 8, 1024, 3136, 1, 0},   {"nt", 12, 1024, 1024, 1, 0},  {"nt", 5, 1000, 2048, 1, 0},
  {"nt", 20, 256, 512, 1, 0},    {"nt", 4, 128, 1024, 16, 0},   {"nt", 6, 64, 512, 32, 0},     {"nt", 16, 1000, 2048, 1, 0},
  {"dw", 14, 32, 64, 64, 5},     {"dw", 32, 16, 16, 32, 3},     {"dw", 16, 32, 32, 32, 3},     {"dw", 8, 64, 64, 32, 3},
  {"dw", 56, 64, 64, 8, 3},      {"dw", 28, 128, 128, 8, 3},    {"dw", 14, 256, 256, 8, 3},    {"dw", 7, 512, 512, 8, 3},
  {"cv", 14, 32, 64, 64, 5},     {"cv", 14, 64, 32, 64, 5},     {"cv", 32, 16, 16, 32, 3},     {"cv", 16, 32, 32, 32, 3},
  {"cv", 8, 64, 64, 32, 3},      {"cv", 56, 64, 64, 8, 3},      {"cv", 28, 128, 128, 8, 3},    {"cv", 7, 512, 512, 1, 3},
  {"cv", 7, 512, 512, 2, 3},     {"cv", 14, 256, 256, 1, 3},    {"cv", 14, 256, 256, 8, 3},    {"cv", 8, 448, 384, 2, 3},
  {"cv", 73, 192, 80, 2, 3},     {"cv", 17, 128, 192, 2, 3},    {"cv", 28, 256, 256, 2, 3},    {"cv", 28, 512, 512, 1, 3},
  {"cv", 56, 256, 256, 1, 3},    {"pv", 16, 64, 64, 2, 3},      {"pv", 8, 128, 128, 2, 3},     {"pv", 4, 256, 256, 2, 3},
  {"pv", 2, 512, 512, 2, 3},     {"pv", 31, 80, 192, 2, 3},     {"pv", 147, 32, 32, 1, 3},     {"ps", 28, 128, 128, 2, 3},
  {"ps", 17, 288, 384, 2, 3},    {"ps", 28, 256, 512, 2, 1},    {"ps", 14, 512, 1024, 2, 1},   {"ps", 7, 1024, 2048, 2, 1},
  {"ps", 14, 256, 512, 1, 1},    {"nn", 6272, 64, 256, 1, 0},   {"nn", 6272, 256, 64, 1, 0},   {"nn", 1568, 128, 512, 1, 0},
  {"nn", 392, 1024, 256, 1, 0},  {"nn", 98, 2048, 512, 1, 0},   {"nn", 49, 512, 2048, 1, 0},   {"nn", 8, 2048, 512, 1, 0},
  {"nn", 7, 1024, 1024, 1, 0},   {"nn", 12, 2048, 2048, 1, 0},  {"nn", 10, 1000, 1000, 1, 0},  {"nn", 20, 768, 3072, 1, 0},
  {"pn", 1, 3136, 1024, 1, 32},  {"pn", 2, 2048, 2048, 1, 32},  {"pn", 8, 1024, 1024, 1, 16},  {"pn", 8, 1024, 1024, 1, 32},
  {"pn", 32, 1024, 1024, 1, 8},  {"pn", 32, 1024, 1024, 1, 16}, {"pn", 32, 1024, 1024, 1, 24}, {"pn", 32, 1024, 1024, 1, 32},
  {"nt", 1024, 64, 1024, 8, 0},  {"nn", 1024, 1024, 64, 8, 0},  {"tn", 1024, 1024, 64, 8, 0},  {"nt", 128, 64, 128, 96, 0},
  {"nt", 144, 1024, 1024, 1, 0}, {"nt", 576, 512, 512, 1, 0},   {"nt", 98, 512, 2048, 1, 0},   {"nt", 577, 64, 577, 12, 0},
  {"nn", 577, 577, 64, 12, 0},   {"tn", 577, 577, 64, 12, 0},   {"nt", 197, 64, 197, 48, 0},   {"nn", 197, 197, 64, 48, 0},
  {"tn", 197, 197, 64, 48, 0},   {"tn", 384, 384, 64, 64, 0},   {"tn", 1000, 1000, 64, 8, 0},  {"tn", 768, 768, 64, 16, 0},
  {"tn", 512, 512, 64, 64, 0},   {"tn", 4096, 4096, 64, 4, 0},  {"nn", 128, 128, 64, 96, 0},   {"tn", 128, 128, 64, 96, 0},
  {"pn", 32, 1000, 1024, 1, 16}, {"pn", 64, 2048, 1024, 1, 24}, {"pn", 64, 2048, 1024, 1, 32}, {"pn", 64, 128, 512, 1, 16},
  {"pn", 64, 128, 512, 1, 32},   {"pn", 25, 256, 512, 1, 32},   {"pn", 196, 256, 1024, 1, 16}, {"pn", 196, 256, 1024, 1, 32},
  {"tr", 1024, 16, 1024, 1, 0},  {"tr", 2048, 16, 2048, 1, 0},  {"tr", 64, 16, 512, 32, 0},    {"tr", 64, 16, 784, 8, 0},
  {"tr", 784, 16, 64, 8, 0},     {"tr", 577, 16, 64, 12, 0},    {"tr", 64, 16, 577, 12, 0},    {"tr", 1000, 16, 1000, 1, 0},
  {"tr", 24, 16, 24, 128, 0},    {"tr", 16, 16, 8, 256, 0},     {"tr", 8, 16, 16, 256, 0},     {"tn", 64, 6272, 256, 1, 0},
  {"tn", 256, 6272, 128, 1, 0},  {"tn", 512, 1568, 128, 1, 0},  {"tn", 512, 1568, 256, 1, 0},  {"tn", 256, 392, 1024, 1, 0},
  {"tn", 1024, 392, 256, 1, 0},  {"tn", 1024, 392, 512, 1, 0},  {"tn", 512, 98, 2048, 1, 0},   {"tn", 2048, 98, 512, 1, 0},
  {"tn", 512, 392, 1024, 1, 0},
};
#define CASES (sizeof cases / sizeof *cases)

#define D(x) ((long long)(x))
static char *product_text(struct arena *arena, const struct bench_case *c) {
  bool ta = c->form[0] == 't', tb = c->form[1] == 't';
  return arena_printf(
    arena,
    "kernel k(in a: f32[%lld,%lld,%lld], in b: f32[%lld,%lld,%lld], out c: f32[%lld,%lld,%lld]) { par i0 < %lld { par i1 < "
    "%lld { par i2 < %lld { var v0: f32 = 0:f32 red i3 < %lld { v0 = add(v0, mul(a[i0,%s], b[i0,%s])) } c[i0,i1,i2] = v0 } } } }",
    D(c->batch), D(ta ? c->k : c->m), D(ta ? c->m : c->k), D(c->batch), D(tb ? c->n : c->k), D(tb ? c->k : c->n), D(c->batch), D(c->m),
    D(c->n), D(c->batch), D(c->m), D(c->n), D(c->k), ta ? "i3,i1" : "i1,i3", tb ? "i2,i3" : "i3,i2");
}
static char *transposition_text(struct arena *arena, const struct bench_case *c) {
  return arena_printf(arena,
                      "kernel k(in a: f32[%lld,%lld,%lld], out b: f32[%lld,%lld,%lld]) { par i0 < %lld { par i1 < %lld { par i2 < %lld { "
                      "b[i0,i1,i2] = a[i0,i2,i1] } } } }",
                      D(c->batch), D(c->m), D(c->n), D(c->batch), D(c->n), D(c->m), D(c->batch), D(c->n), D(c->m));
}
static bool is_paneled(const struct bench_case *c) { return strcmp(c->form, "pn") == 0; }
static char *paneled_text(struct arena *arena, const struct bench_case *c) {
  long long width = c->taps, panels = (c->n + c->taps - 1) / c->taps;
  return arena_printf(arena,
                      "kernel k(in a: f32[%lld,%lld], in b: f32[%lld,%lld,%lld], out c: f32[%lld,%lld]) { par i0 < %lld { par i1 < %lld { "
                      "var v0: f32 = 0:f32 red i2 < %lld { v0 = add(v0, mul(a[i0,i2], b[floordiv(i1, %lld),i2,floormod(i1, %lld)])) } "
                      "c[i0,i1] = v0 } } }",
                      D(c->m), D(c->k), panels, D(c->k), width, D(c->m), D(c->n), D(c->m), D(c->n), D(c->k), width, width);
}
/* Of a convolution: the rows and columns that a tap meets are those inside of the image. */
static char *filter_text(struct arena *arena, const struct bench_case *c) {
  int64_t pad = (c->taps - 1) / 2;
  char *range[2], *low[2];
  for (int i = 0; i < 2; i++) {
    low[i] = arena_printf(arena, "max(sub(%lld, i%d), 0)", D(pad), i);
    range[i] = arena_printf(arena, "sub(min(sub(%lld, i%d), %lld), %s)", D(c->m + pad), i, D(c->m), low[i]);
  }
  return arena_printf(
    arena,
    "kernel k(in a: f32[%lld,%lld,%lld,%lld], in b: f32[%lld,%lld,%lld,%lld], out c: f32[%lld,%lld,%lld,%lld]) { par i0 < "
    "%lld { par i1 < %lld { par i2 < %lld { par i3 < %lld { var v0: f32 = 0:f32 red i4 < %lld { red i5 < %s { red i6 < %s "
    "{ %%0 = add(i5, %s) %%1 = add(i6, %s) v0 = add(v0, mul(a[i4,sub(add(%%0, i0), %lld),sub(add(%%1, i1), %lld),i2], "
    "b[i4,%%0,%%1,i3])) } } } c[i0,i1,i2,i3] = v0 } } } } }",
    D(c->batch), D(c->m), D(c->m), D(c->k), D(c->batch), D(c->m), D(c->m), D(c->n), D(c->taps), D(c->taps), D(c->k), D(c->n), D(c->taps),
    D(c->taps), D(c->k), D(c->n), D(c->batch), range[0], range[1], low[0], low[1], D(pad), D(pad));
}
/* The convolution itself: rows inside, columns under a test. */
static char *conv_text(struct arena *arena, const struct bench_case *c) {
  int64_t pad = (c->taps - 1) / 2;
  char *low = arena_printf(arena, "max(sub(%lld, i1), 0)", D(pad));
  return arena_printf(
    arena,
    "kernel k(in a: f32[%lld,%lld,%lld,%lld], in b: f32[%lld,%lld,%lld,%lld], out c: f32[%lld,%lld,%lld,%lld]) { par i0 < "
    "%lld { par i1 < %lld { par i2 < %lld { par i3 < %lld { var v0: f32 = 0:f32 red i4 < sub(min(sub(%lld, i1), %lld), %s) "
    "{ red i5 < %lld { red i6 < %lld { %%0 = add(i4, %s) %%1 = sub(add(i2, i5), %lld) if and(le(0, %%1), lt(%%1, %lld)) { "
    "v0 = add(v0, mul(a[i0,sub(add(i1, %%0), %lld),%%1,i6], b[%%0,i5,i6,i3])) } } } } c[i0,i1,i2,i3] = v0 } } } } }",
    D(c->batch), D(c->m), D(c->m), D(c->k), D(c->taps), D(c->taps), D(c->k), D(c->n), D(c->batch), D(c->m), D(c->m), D(c->n), D(c->batch),
    D(c->m), D(c->m), D(c->n), D(c->m + pad), D(c->taps), low, D(c->taps), D(c->k), low, D(pad), D(c->m), D(pad));
}
/* Of an image that has all that windows reach. */
static int64_t stride_of(const struct bench_case *c) { return c->form[1] == 's' ? 2 : 1; }
static char *padded_text(struct arena *arena, const struct bench_case *c) {
  int64_t side = (c->m - 1) * stride_of(c) + c->taps;
  return arena_printf(
    arena,
    "kernel k(in a: f32[%lld,%lld,%lld,%lld], in b: f32[%lld,%lld,%lld,%lld], out c: f32[%lld,%lld,%lld,%lld]) { par i0 < %lld { par i1 < "
    "%lld { par i2 < %lld { par i3 < %lld { var v0: f32 = 0:f32 red i4 < %lld { red i5 < %lld { red i6 < %lld { v0 = add(v0, "
    "mul(a[i0,add(mul(i1, %lld), i4),add(mul(i2, %lld), i5),i6], b[i4,i5,i6,i3])) } } } c[i0,i1,i2,i3] = v0 } } } } }",
    D(c->batch), D(side), D(side), D(c->k), D(c->taps), D(c->taps), D(c->k), D(c->n), D(c->batch), D(c->m), D(c->m), D(c->n), D(c->batch),
    D(c->m), D(c->m), D(c->n), D(c->taps), D(c->taps), D(c->k), D(stride_of(c)), D(stride_of(c)));
}
static bool is_padded(const struct bench_case *c) { return c->form[0] == 'p' && !is_paneled(c); }
static bool is_filter(const struct bench_case *c) { return c->form[0] == 'd'; }
static bool is_conv(const struct bench_case *c) { return c->taps > 0 && !is_paneled(c); }
static double case_flops(const struct bench_case *c) {
  double product = 2.0 * (double)(c->m * c->k * c->n) * (double)c->batch;
  int64_t pad = is_padded(c) ? 0 : (c->taps - 1) / 2, inside = c->m * c->taps - pad * (pad + 1); /* taps inside, of a row of outputs */
  return is_conv(c) ? product * (double)(inside * inside) / (double)c->m : product;
}
static const char *case_name(struct arena *arena, const struct bench_case *c) {
  const char *batch = c->batch > 1 ? arena_printf(arena, "%lldx", D(c->batch)) : "";
  const char *taps = is_conv(c)    ? arena_printf(arena, " %lldx%lld", D(c->taps), D(c->taps))
                   : is_paneled(c) ? arena_printf(arena, " by %lld", D(c->taps))
                                   : "";
  return arena_printf(arena, "%s %s%lldx%lldx%lld%s", c->form, batch, D(c->m), D(c->k), D(c->n), taps);
}

/* ---- measuring ---- */

struct run {
  const char *steps; /* NULL: plain loops */
  double cycles, seconds;
  struct kernel *kernel;
};
typedef VEC(struct run) runs;

static bool add_run(struct arena *arena, const struct kernel *k, const struct candidate *c, runs *out) {
  struct run r = {.steps = c->steps, .cycles = c->cycles};
  struct schedule s = {0};
  if (!c->steps) {
    r.kernel = (struct kernel *)k;
  } else if (schedule_parse(candidate_text(c, arena), arena, &s) != OK || schedule_apply(k, &s, arena, &r.kernel) != OK) {
    fprintf(stderr, "%s\n  %s\n", c->steps, status_text());
    return false;
  }
  if (c->steps)
    r.kernel->name = arena_printf(arena, "k%u", out->count);
  vec_push(out, r);
  return true;
}
static bool time_runs(struct arena *arena, const struct kernel *k, runs *out) {
  struct kernel_uses uses;
  struct candidates all = {0};
  kernel_uses_find(k, arena, &uses);
  struct nest n = {.k = k, .uses = &uses, .machine = machine_find("native"), .top = k->body, .arena = arena};
  nest_candidates(&n, &all);
  struct kernel **kernels = ARENA_ARRAY(arena, struct kernel *, all.items.count + 1);
  for (uint32_t i = 0; i < all.items.count; i++)
    add_run(arena, k, &all.items.items[i], out);
  vec_free(&all.items);
  for (uint32_t i = 0; i < out->count; i++)
    kernels[i] = out->items[i].kernel;
  const struct kernel_code *codes = compile_kernels(kernels, out->count);
  double *seconds = ARENA_ARRAY(arena, double, out->count + 1);
  if (codes)
    best_seconds(k, codes, out->count, NULL, 1, SECONDS, seconds);
  for (uint32_t i = 0; i < out->count; i++)
    out->items[i].seconds = seconds[i];
  return codes != NULL;
}

/* ---- the table ---- */

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
/* One line; the loss, or -1 where it could not be built. */
static double bench_case(const struct bench_case *c, double peak, bool verbose) {
  struct arena arena;
  struct kernel *k;
  runs all = {0};
  arena_init(&arena);
  const char *text = is_filter(c)               ? filter_text(&arena, c)
                   : is_padded(c)               ? padded_text(&arena, c)
                   : is_paneled(c)              ? paneled_text(&arena, c)
                   : strcmp(c->form, "tr") == 0 ? transposition_text(&arena, c)
                   : is_conv(c)                 ? conv_text(&arena, c)
                                                : product_text(&arena, c);
  if (kernel_parse(text, &arena, &k) != OK || !time_runs(&arena, kernel_collapse(k, NULL, &arena), &all)) {
    fprintf(stderr, "%s\n%s\n", text, status_text());
    return -1;
  }
  struct run *own = &all.items[0], *best = own, *chosen = own;
  for (uint32_t i = 1; i < all.count; i++) {
    struct run *r = &all.items[i];
    best = r->seconds < best->seconds ? r : best;
    chosen = r->cycles < chosen->cycles ? r : chosen;
  }
  double flops = case_flops(c), loss = chosen->seconds / best->seconds - 1;
  printf("%-26s %10.1f %6.2f %6.2f %6.2f %6.1f%%  %s\n", case_name(&arena, c), chosen->seconds * 1e6, flops / own->seconds / peak,
         flops / best->seconds / peak, flops / chosen->seconds / peak, loss * 100, chosen->steps ? "" : "own");
  for (uint32_t i = 0; i < all.count && verbose; i++)
    printf("    %6.2f %12.0f %s\n", flops / all.items[i].seconds / peak, all.items[i].cycles,
           all.items[i].steps ? all.items[i].steps : "plain loops");
  fflush(stdout);
  vec_free(&all);
  arena_deinit(&arena);
  return loss;
}

int main(int argc, char **argv) {
  double losses[CASES], peak = measure_peak() * 1e9;
  size_t count = 0;
  bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  const char *part = argc > 1 + verbose ? argv[1 + verbose] : "";
  printf("peak of one core: %.0f GFLOP/s; shares of it:\n%-26s %10s %6s %6s %6s %7s\n", peak * 1e-9, "kernel", "us", "own", "best",
         "chosen", "loss");
  for (size_t i = 0; i < CASES; i++) {
    struct arena arena;
    arena_init(&arena);
    bool wanted = strstr(case_name(&arena, &cases[i]), part) != NULL;
    arena_deinit(&arena);
    double loss = wanted ? bench_case(&cases[i], peak, verbose) : -1;
    if (loss >= 0)
      losses[count++] = loss;
  }
  qsort(losses, count, sizeof *losses, compare_doubles);
  if (count)
    printf("loss: median %.1f %%, worst %.1f %%\n", losses[count / 2] * 100, losses[count - 1] * 100);
  return 0;
}
