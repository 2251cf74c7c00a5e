/* Scheduled kernels on the CPU: the evaluator's bits with any number of threads, and sums that stay in registers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include "ir/schedule/schedule.h"
#include "tests/support/kernel_runner.h"
#include "tests/targets/scheduled_cases.h"

#include <cmocka.h>

static struct kernel *parsed(const char *text, struct arena *arena) {
  struct kernel *k = NULL;
  if (kernel_parse(text, arena, &k) != OK || kernel_verify(k) != OK)
    fail_msg("%s: %s", text, status_text());
  return k;
}

/* ---- threads ---- */

struct share {
  const struct kernel_code *code;
  const struct kernel_call *call;
  int64_t phase, begin, end;
};
static void *run_share(void *argument) {
  struct share *s = argument;
  _mm_setcsr(_mm_getcsr() | 0x8040);
  if (s->begin < s->end)
    s->code->run(s->call, s->phase, s->begin, s->end);
  return NULL;
}
static void run_on(int threads, const struct kernel_code *code, void *const *buffers, const int64_t *sizes) {
  struct kernel_fault fault = {0};
  struct kernel_call call = {buffers, sizes, aligned_block((size_t)code->query(sizes, KERNEL_SCRATCH)), &fault};
  for (int64_t phase = 0; phase < code->query(sizes, KERNEL_PHASES); phase++) {
    int64_t tiles = code->query(sizes, phase);
    pthread_t ids[8];
    struct share shares[8];
    for (int i = 0; i < threads; i++) {
      shares[i] = (struct share){code, &call, phase, tiles * i / threads, tiles * (i + 1) / threads};
      assert_int_equal(pthread_create(&ids[i], NULL, run_share, &shares[i]), 0);
    }
    for (int i = 0; i < threads; i++)
      pthread_join(ids[i], NULL);
  }
  assert_int_equal(fault.code, 0);
  free(call.scratch);
}

static void compare(const struct kernel *k, void *const *ours, void *const *theirs, const int64_t *sizes, bool calls, const char *how) {
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    const struct kernel_buffer *b = &k->buffers.items[i];
    if (b->mode >= BUFFER_SCRATCH)
      continue;
    int64_t count = buffer_count(k, i, sizes);
    int64_t at = calls ? first_difference(b->dtype, ours[i], theirs[i], count, 1e-6, 1e-7) : -1;
    if (at >= 0 || (!calls && memcmp(ours[i], theirs[i], (size_t)count * dtype_size(b->dtype)) != 0))
      fail_msg("%s, sizes %d %d %d, %s: buffer %s is not the evaluator's, element %d", k->name, (int)sizes[0], (int)sizes[1], (int)sizes[2],
               how, b->name, (int)at);
    const unsigned char *behind = (const unsigned char *)ours[i] + (size_t)count * dtype_size(b->dtype);
    for (int j = 0; j < 64; j++)
      if (behind[j] != 0xcd) /* as aligned_block left it */
        fail_msg("%s, sizes %d %d %d, %s: wrote behind buffer %s", k->name, (int)sizes[0], (int)sizes[1], (int)sizes[2], how, b->name);
  }
}
static void run_case(const struct kernel *k, const struct kernel_code *code, const int64_t *sizes, bool calls) {
  static const int threads[] = {1, 2, 3, 7};
  void *ours[RUNNER_BUFFERS] = {0}, *theirs[RUNNER_BUFFERS] = {0}, *fresh[RUNNER_BUFFERS] = {0};
  struct sequence s = {11};
  for (uint32_t i = 0; i < k->buffers.count && k->buffers.items[i].mode < BUFFER_SCRATCH; i++) {
    size_t bytes = (size_t)buffer_count(k, i, sizes) * dtype_size(k->buffers.items[i].dtype);
    ours[i] = aligned_block(bytes);
    theirs[i] = aligned_block(bytes);
    fresh[i] = aligned_block(bytes);
    fill_random(k->buffers.items[i].dtype, fresh[i], buffer_count(k, i, sizes), &s);
    memcpy(theirs[i], fresh[i], bytes);
  }
  if (kernel_eval(k, theirs, sizes) != OK)
    fail_msg("%s: %s", k->name, status_text());
  for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
    char how[32];
    for (uint32_t i = 0; ours[i]; i++)
      memcpy(ours[i], fresh[i], (size_t)buffer_count(k, i, sizes) * dtype_size(k->buffers.items[i].dtype));
    run_on(threads[t], code, ours, sizes);
    snprintf(how, sizeof how, "%d threads", threads[t]);
    compare(k, ours, theirs, sizes, calls, how);
  }
  for (uint32_t i = 0; i < RUNNER_BUFFERS; i++) {
    free(ours[i]);
    free(theirs[i]);
    free(fresh[i]);
  }
}
static void run_cases(const char *cpu) {
  struct arena arena;
  struct kernel *kernels[SCHEDULED_COUNT];
  arena_init(&arena);
  for (size_t i = 0; i < SCHEDULED_COUNT; i++)
    kernels[i] = vectors_choose(parsed(scheduled[i].text, &arena), machine_find(cpu), &arena);
  struct compiled c = compile_kernels(kernels, SCHEDULED_COUNT, cpu);
  for (size_t i = 0; i < SCHEDULED_COUNT; i++)
    for (int n = 0; scheduled[i].sizes[n][0] >= 0; n++)
      run_case(kernels[i], &c.code[i], scheduled[i].sizes[n], scheduled[i].calls);
  dlclose(c.handle);
  arena_deinit(&arena);
}
static void scheduled_kernels_have_the_evaluators_bits(void **state) {
  (void)state;
  run_cases("native");
}
static void the_same_bits_without_avx512(void **state) {
  (void)state;
  run_cases("x86-64-v3");
}
static void the_same_bits_without_vectors_of_avx(void **state) {
  (void)state;
  run_cases("x86-64");
}

/* ---- registers ---- */

struct tile_case {
  const char *cpu;
  int rows, lanes, vectors; /* vectors: registers of a row */
  bool masked;              /* registers are left for masks, where they take any */
};
static const struct tile_case tiles[] = {
  {"znver4", 1, 128, 8, true},    {"znver4", 2, 128, 8, true},    {"znver4", 4, 64, 4, true},         {"znver4", 4, 96, 6, true},
  {"znver4", 6, 64, 4, true},     {"znver4", 8, 32, 2, true},     {"znver4", 8, 48, 3, true},         {"znver4", 12, 32, 2, true},
  {"znver4", 16, 16, 1, true},    {"znver4", 24, 16, 1, true},    {"icelake-server", 8, 48, 3, true}, {"x86-64-v3", 4, 16, 2, true},
  {"x86-64-v3", 6, 16, 2, false}, {"x86-64-v3", 4, 24, 3, false},
};
#define TILES (sizeof tiles / sizeof *tiles)

/* A product with bias (open: of any size), rows that lie apart. */
static char *tile_text(struct arena *arena, const struct tile_case *t, bool open) {
  const char *columns = open ? "n0" : "960", *terms = open ? "n1" : "256";
  char *ni = open ? arena_printf(arena, "par ni < min(%d, sub(n0, mul(no, %d))) lanes %d", t->lanes, t->lanes, t->lanes)
                  : arena_printf(arena, "par ni < %d lanes %d", t->lanes, t->lanes);
  char *tasks = open ? arena_printf(arena, "floordiv(add(n0, %d), %d)", t->lanes - 1, t->lanes) : arena_printf(arena, "%d", 960 / t->lanes);
  return arena_printf(arena,
                      "kernel tile(in a: f32[480,%s], in b: f32[%s,%s], in c: f32[%s], out d: f32[480,%s]) sizes 2 {"
                      "  par no < %s tasks { par mo < %d {"
                      "    buffer e: f32[%d,%d] in register"
                      "    par mi < %d unroll { %s { e[mi,ni] = 0:f32 } }"
                      "    red k < %s { par mi < %d unroll { %s {"
                      "      e[mi,ni] = fma(a[add(mul(mo, %d), mi),k], b[k,add(mul(no, %d), ni)], e[mi,ni]) } } }"
                      "    par mi < %d unroll { %s {"
                      "      d[add(mul(mo, %d), mi),add(mul(no, %d), ni)] = add(e[mi,ni], c[add(mul(no, %d), ni)]) } } } } }",
                      terms, terms, columns, columns, columns, tasks, 480 / t->rows, t->rows, t->lanes, t->rows, ni, terms, t->rows, ni,
                      t->rows, t->lanes, t->rows, ni, t->rows, t->lanes, t->lanes);
}
static char *filter_text(struct arena *arena, const struct tile_case *t) {
  return arena_printf(
    arena,
    "kernel tile(in a: f32[8,14,14,48], in b: f32[8,14,14,%d], out c: f32[3,3,48,%d]) {"
    "  par kh < 3 tasks { par kw < 3 tasks { par n < 1 { par cb < %d {"
    "    buffer d: f32[%d,%d] in register"
    "    par ci < %d unroll { par co < %d lanes %d {"
    "      d[ci,co] = select(eq(n, 0), 0:f32, c[kh,kw,add(mul(cb, %d), ci),co]) } }"
    "    red h < sub(min(14, sub(15, kh)), max(0, sub(1, kh))) { red w < sub(min(14, sub(15, kw)), max(0, sub(1, kw))) {"
    "      par ci < %d unroll { par co < %d lanes %d {"
    "        d[ci,co] = fma(a[n,sub(add(add(max(0, sub(1, kh)), h), kh), 1),sub(add(add(max(0, sub(1, kw)), w), kw), 1),"
    "                         add(mul(cb, %d), ci)], b[n,add(max(0, sub(1, kh)), h),add(max(0, sub(1, kw)), w),co], d[ci,co]) } } } }"
    "    par ci < %d unroll { par co < %d lanes %d { c[kh,kw,add(mul(cb, %d), ci),co] = d[ci,co] } } } } } } }",
    t->lanes, t->lanes, 48 / t->rows, t->rows, t->lanes, t->rows, t->lanes, t->lanes, t->rows, t->rows, t->lanes, t->lanes, t->rows,
    t->rows, t->lanes, t->lanes, t->rows);
}

/* The innermost loop that begins at a label: up to the jump back to it; NULL: no such jump, or another loop in between. */
static const char *loop_end_of(const char *label, const char *name) {
  char jump[48], inner[48] = "";
  snprintf(jump, sizeof jump, "\t%s\n", name);
  for (const char *line = strchr(label, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
    if (line[0] == '.' && strncmp(line, ".LBB", 4) == 0)
      snprintf(inner, sizeof inner, "\t%.*s\n", (int)strcspn(line, ":"), line);
    if (strncmp(line, ".Lfunc_end", 10) == 0)
      return NULL;
    size_t length = strcspn(line, "\n") + 1;
    if (line[0] != '\t' || line[1] != 'j')
      continue;
    if (length > strlen(jump) && strncmp(line + length - strlen(jump), jump, strlen(jump)) == 0)
      return line;
    if (inner[0] && length > strlen(inner) && strncmp(line + length - strlen(inner), inner, strlen(inner)) == 0)
      return NULL;
  }
  return NULL;
}
/* AT&T's order: what is written comes last. */
static bool stores_vector(const char *line, size_t length) {
  return length > 6 && strncmp(line, "\tvmov", 5) == 0 && line[length - 1] == ')';
}
static bool reads_stack(const char *line, size_t length) {
  for (size_t i = 0; line[1] == 'v' && i + 5 < length; i++)
    if (strncmp(line + i, "(%rsp", 5) == 0)
      return true;
  return false;
}
struct loop_facts {
  int multiplies, stores, reloads;
};
static struct loop_facts facts_of(const char *from, const char *to) {
  struct loop_facts f = {0};
  for (const char *line = from; line < to; line = strchr(line, '\n') + 1) {
    size_t length = strcspn(line, "\n#");
    f.multiplies += strncmp(line, "\tvfm", 4) == 0;
    f.stores += stores_vector(line, length);
    f.reloads += reads_stack(line, length);
  }
  return f;
}

/* Every innermost loop with the tile's multiply-adds keeps its sums in registers. */
static void check_assembly(const struct tile_case *t, const char *text, const char *what) {
  struct arena arena;
  arena_init(&arena);
  struct kernel *k = parsed(text, &arena);
  struct target_unit unit = {.kernels = &k, .count = 1};
  struct target_options options = {.cpu = t->cpu};
  char *assembly;
  int found = 0;
  assert_int_equal(target_find("cpu")->emit(&options, &unit, "asm", &arena, &assembly), OK);
  for (const char *at = assembly; (at = strstr(at, "\n.LBB")); at++) {
    char name[40];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, ":"), at + 1);
    const char *end = loop_end_of(at + 1, name);
    struct loop_facts f = end ? facts_of(at + 1, end) : (struct loop_facts){0};
    if (f.multiplies == 0)
      continue;
    found++;
    if (f.multiplies != t->rows * t->vectors || f.stores || f.reloads)
      fail_msg("%s: %s %dx%d: a loop of %d multiply-adds, %d stores of vectors, %d reloads", t->cpu, what, t->rows, t->lanes, f.multiplies,
               f.stores, f.reloads);
  }
  if (!found)
    fail_msg("%s: %s %dx%d: no loop with multiply-adds", t->cpu, what, t->rows, t->lanes);
  arena_deinit(&arena);
}
/* What the target writes for the kernel with these steps applied. */
static char *emitted(const char *text, const char *steps, const char *cpu, const char *kind, struct arena *arena) {
  struct kernel *k = NULL;
  struct schedule s = {0};
  assert_int_equal(schedule_parse(steps, arena, &s), OK);
  assert_int_equal(schedule_apply(parsed(text, arena), &s, arena, &k), OK);
  struct target_unit unit = {.kernels = &k, .count = 1};
  struct target_options options = {.cpu = cpu};
  char *written;
  assert_int_equal(target_find("cpu")->emit(&options, &unit, kind, arena, &written), OK);
  return written;
}
/* Pairs of bfloat16 are one instruction where the CPU has it: 8 rows by 2 vectors of them in the innermost loop, beside which nothing is
 * multiplied. */
static void pairs_are_instructions(void **state) {
  (void)state;
  static const struct {
    const char *cpu;
    int pairs, multiplies;
  } cpus[] = {{"znver4", 16, 0}, {"sapphirerapids", 16, 0}, {"x86-64-v4", 0, 32}};
  static const char text[] =
    "kernel k(in a: bf16[8,64], in b: bf16[64,32], out c: f32[8,32]) { par i0 < 8 { par i1 < 32 { var v0: f32 = 0:f32 "
    "red i2 < 64 { v0 = add(v0, mul(cast.f32(a[i0,i2]), cast.f32(b[i2,i1]))) } c[i0,i1] = v0 } } }";
  static const char steps[] =
    "name i0 i1 i2 -> m n k; fma; split n 32 -> no ni; split m 8 -> mo mi; order no mo mi ni; split k 2 -> kp kw; "
    "stage b at no by kp ni kw -> pk pi pw; sink mi ni under kp in register; pair kw; run no tasks; "
    "run mi pw unroll; run ni pi lanes";
  for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
    struct arena arena;
    arena_init(&arena);
    const char *assembly = emitted(text, steps, cpus[i].cpu, "asm", &arena);
    int pairs = 0, multiplies = 0;
    for (const char *line = assembly; (line = strchr(line, '\n')); line++) {
      pairs += strncmp(line, "\n\tvdpbf16ps", 11) == 0;
      multiplies += strncmp(line, "\n\tvfm", 5) == 0;
    }
    if (pairs != cpus[i].pairs || multiplies != cpus[i].multiplies)
      fail_msg("%s: %d pairs, %d multiply-adds", cpus[i].cpu, pairs, multiplies);
    arena_deinit(&arena);
  }
}
/* What borders decide in an unrolled loop is decided while compiling, so that three taps load what they meet alike once: of a row of eight
 * places eight vectors of the image and eight of the gradient. */
static void taps_load_each_place_once(void **state) {
  (void)state;
  static const char text[] =
    "kernel k(in a: f32[8,16], in b: f32[8,16], out c: f32[3,16]) { par i0 < 3 { par i1 < 16 { var v0: f32 = 0:f32 red i2 < 8 { %0 = "
    "sub(add(i2, i0), 1) if and(le(0, %0), lt(%0, 8)) { v0 = add(v0, mul(a[%0,i1], b[i2,i1])) } } c[i0,i1] = v0 } } }";
  static const char steps[] = "name i0 i1 i2 -> x m w; fma; sink x m under w in register; run x w unroll; run m lanes";
  struct arena arena;
  arena_init(&arena);
  int loads = 0;
  for (const char *at = emitted(text, steps, "x86-64-v4", "llvm", &arena); (at = strstr(at, "load <16 x float>")); at++)
    loads++;
  assert_int_equal(loads, 16);
  arena_deinit(&arena);
}
static void sums_stay_in_registers(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  for (size_t i = 0; i < TILES; i++) {
    check_assembly(&tiles[i], tile_text(&arena, &tiles[i], false), "product");
    if (tiles[i].masked)
      check_assembly(&tiles[i], tile_text(&arena, &tiles[i], true), "product of any size");
    if (48 % tiles[i].rows == 0)
      check_assembly(&tiles[i], filter_text(&arena, &tiles[i]), "filter");
  }
  arena_deinit(&arena);
}

int main(void) {
  _mm_setcsr(_mm_getcsr() | 0x8040); /* denormals are zero, as in the runtime's threads */
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(scheduled_kernels_have_the_evaluators_bits),
    cmocka_unit_test(the_same_bits_without_avx512),
    cmocka_unit_test(the_same_bits_without_vectors_of_avx),
    cmocka_unit_test(sums_stay_in_registers),
    cmocka_unit_test(pairs_are_instructions),
    cmocka_unit_test(taps_load_each_place_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
