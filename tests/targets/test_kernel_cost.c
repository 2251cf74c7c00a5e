/* What kernels say that they cost, by which threads are shared out: within a few times of what they take, and what is not worth a second
 * thread in one tile. The bounds are wide; what counts a whole buffer for a slice of it, or elements for vectors, is far beyond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/kernel_runner.h"

#include <cmocka.h>

static const struct cost_case {
  const char *what, *text;
  int64_t size; /* n0 */
  int64_t least_ns, most_ns;
  int64_t least_tiles, most_tiles; /* of the phase that has most */
  const char *steps;               /* of its schedule, or NULL */
} cases[] = {
  {"a slice of what is large", "kernel k(in a: f32[4000000], in b: i64[1], out c: f32[256]) { par i0 < 256 { c[i0] = a[add(i0, b[0])] } }",
   0, 100, 1000, 1, 1, NULL},
  {"rows of a table",
   "kernel k(in a: f32[100000,64], in b: i64[8], out c: f32[8,64]) { par i0 < 8 { par i1 < 64 { c[i0,i1] = a[b[i0],i1] } } }", 0, 100, 3000,
   1, 1, NULL},
  {"a row that is updated in place",
   "kernel k(inout a: f32[100000,64], in b: i64[1]) { par i0 < 64 { a[b[0],i0] = add(a[b[0],i0], 1:f32) } }", 0, 100, 1000, 1, 1, NULL},
  {"what comes from memory", "kernel k(in a: f32[n0], out b: f32[n0]) sizes 1 { par i0 < n0 { b[i0] = add(a[i0], 1:f32) } }", 1000000,
   100000, 500000, 12, 60, NULL},
  {"a few of them", "kernel k(in a: f32[n0], out b: f32[n0]) sizes 1 { par i0 < n0 { b[i0] = add(a[i0], 1:f32) } }", 1000, 100, 2000, 1, 1,
   NULL},
  {"numbers that no loop changes",
   "kernel k(in a: f32[20000], in b: f32[], out c: f32[20000]) { par i0 < 20000 { c[i0] = mul(a[i0], div(sqrt(b[]), log(b[]))) } }", 0,
   2000, 12000, 2, 2, NULL},
  {"functions of each", "kernel k(in a: f32[20000], out b: f32[20000]) { par i0 < 20000 { b[i0] = exp(a[i0]) } }", 0, 4000, 60000, 1, 8,
   NULL},
  {"a product",
   "kernel k(in a: f32[128,784], in b: f32[784,128], out c: f32[128,128]) { par i0 < 128 { par i1 < 128 { var v0: f32 = 0:f32 red i2 < 784 "
   "{ v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
   0, 80000, 1500000, 2, 256, NULL},
  {"rests of tiles, which are one or none",
   "kernel k(in a: f32[118,784], in b: f32[784,128], out c: f32[118,128]) { par i0 < 118 { par i1 < 128 { var v0: f32 = 0:f32 red i2 < 784 "
   "{ v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }",
   0, 80000, 900000, 80, 80,
   "name i0 i1 i2 -> m n k; fma; split n 16 -> no ni; split m 12 -> mg mr; order no mg mr ni; split mr 6 -> mo mi tail cut 4 2 1; "
   "sink mi ni under k in register; run no mg tasks; run mi unroll; run ni lanes"},
};
#define CASES (sizeof cases / sizeof *cases)

static int64_t most_tiles(const struct kernel_code *code, const int64_t *sizes) {
  int64_t most = 0;
  for (int64_t phase = 0; phase < code->query(sizes, KERNEL_PHASES); phase++) {
    int64_t tiles = code->query(sizes, phase);
    most = tiles > most ? tiles : most;
  }
  return most;
}

static struct kernel *made_of(const struct cost_case *c, struct arena *arena) {
  struct kernel *k;
  struct schedule steps = {0};
  if (kernel_parse(c->text, arena, &k) != OK ||
      (c->steps && (schedule_parse(c->steps, arena, &steps) != OK || schedule_apply(k, &steps, arena, &k) != OK)))
    fail_msg("%s: %s", c->what, status_text());
  return k;
}
static void kernels_know_about_what_they_cost(void **state) {
  (void)state;
  struct arena arena;
  struct kernel *kernels[CASES];
  arena_init(&arena);
  for (size_t i = 0; i < CASES; i++)
    kernels[i] = made_of(&cases[i], &arena);
  struct compiled made = compile_kernels(kernels, CASES, "x86-64-v3");
  for (size_t i = 0; i < CASES; i++) {
    const struct cost_case *c = &cases[i];
    int64_t ns = made.code[i].query(&c->size, KERNEL_COST), tiles = most_tiles(&made.code[i], &c->size);
    if (ns < c->least_ns || ns > c->most_ns || tiles < c->least_tiles || tiles > c->most_tiles)
      fail_msg("%s: %lld ns in %lld tiles", c->what, (long long)ns, (long long)tiles);
  }
  dlclose(made.handle);
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_know_about_what_they_cost)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
