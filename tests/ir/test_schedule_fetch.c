/* Hints: what they ask for, seen by kernels that store a mark where the scheduled one has a hint. */
#include <stdlib.h>

#include "base/arena.h"
#include "tests/ir/schedule_kernels.h"

#define LINE 16 /* floats */

/* d is larger than b: what is asked for behind the end of b is marked there. */
static const char few_rows[] =
  "kernel k(in a: f32[24,96], in b: f32[96,64], out c: f32[24,64], inout d: f32[192,64]) { par i0 < 24 {"
  "  par i1 < 64 { var v0: f32 = 0:f32 red i2 < 96 { v0 = add(v0, mul(a[i0,i2], b[i2,i1])) } c[i0,i1] = v0 } } }";
static const char panels[] =
  "kernel k(in a: f32[n0,64], in b: f32[4,64,32], out c: f32[n0,128], inout d: f32[6,64,32]) sizes 1 { par i0 < n0 { par i1 < 128 {"
  "  var v0: f32 = 0:f32 red i2 < 64 { v0 = add(v0, mul(a[i0,i2], b[floordiv(i1, 32),i2,floormod(i1, 32)])) } c[i0,i1] = v0 } } }";

/* The text with `d[..] = 1:f32` for each `fetch b[..]`; the number of those. */
static int with_marks(const char *text, struct arena *arena, const char **out) {
  static const char hint[] = "fetch b[";
  int count = 0;
  *out = "";
  for (const char *at; (at = strstr(text, hint)); count++) {
    const char *end = strchr(at, '\n');
    *out =
      arena_printf(arena, "%s%.*sd[%.*s = 1:f32", *out, (int)(at - text), text, (int)(end - at) - (int)strlen(hint), at + strlen(hint));
    text = end;
  }
  *out = arena_printf(arena, "%s%s", *out, text);
  return count;
}

/* Marks of the scheduled kernel for `rows` rows, where their number is open: d. */
static float *marks_of(const char *plain, const char *text, int64_t rows, int hints, struct arena *arena) {
  struct schedule s = steps(text, arena);
  struct kernel *k = parsed(plain, arena), *scheduled = NULL;
  const char *marked;
  if (schedule_apply(k, &s, arena, &scheduled) != OK)
    fail_msg("%s: %s", text, status_text());
  assert_int_equal(with_marks(kernel_print(scheduled, arena), arena, &marked), hints);
  k = parsed(marked, arena);
  void *buffers[64] = {0};
  for (uint32_t i = 0; i < 4; i++)
    buffers[i] = arena_alloc(arena, 1 << 20);
  assert_int_equal(kernel_eval(k, buffers, &rows), OK);
  return buffers[3];
}

#define FEW_ROWS(rows)                                                                                                \
  "name i0 i1 i2 -> m n k; split n 32 -> no ni; split m " #rows " -> mo mi; order no mo mi ni; split k 32 -> kb kk; " \
  "sink mo mi ni under kb in stack; stage b at kb by kk ni -> pk pi; "

/* Each turn asks for the block behind its own, once and whole, a line at a time, the last one for what is not there; in the last form each
 * turn of n asks for its own column. */
static void blocks_are_asked_for(void **state) {
  (void)state;
  static const char *const forms[] = {
    FEW_ROWS(8) "split kk 16 -> kc kd; sink mi ni under kc kd in stack; fetch b at kb ahead 1 over mo kc",
    FEW_ROWS(8) "sink mi ni under kk in stack; fetch b at kb ahead 1 over mo",
    FEW_ROWS(8) "sink mi ni under kk in stack; fetch b at kb ahead 1 over kk",
    FEW_ROWS(4) "split mo 2 -> mt mr; sink mi ni under kk in stack; fetch b at kb ahead 1 over mt mr",
    "name i0 i1 i2 -> m n k; split k 32 -> kb kk; fetch b at kb ahead 1 over kk",
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    struct arena arena;
    arena_init(&arena);
    const float *d = marks_of(few_rows, forms[i], 0, 1, &arena);
    for (int e = 0; e < 192 * 64; e++)
      if ((d[e] != 0) != ((i == 4 || e % LINE == 0) && e / 64 >= 32 && e / 64 < 128))
        fail_msg("%s: element %d,%d", forms[i], e / 64, e % 64);
    arena_deinit(&arena);
  }
}

/* Of a number of rows that is open the turns share, however many there are; without a whole tile nothing is asked for. */
static void panels_are_asked_for(void **state) {
  (void)state;
  static const char form[] = "name i0 i1 i2 -> m n k; split n 32 -> no ni; order no m ni; split m 8 -> mo mi tail cut 4 2 1; "
                             "split k 16 -> ko ki; sink mi ni under ko ki in stack; fetch b at no ahead 1 over mo ko; run no tasks";
  for (int64_t rows = 7; rows < 60; rows += 13) {
    struct arena arena;
    arena_init(&arena);
    const float *d = marks_of(panels, form, rows, 1, &arena);
    for (int e = 0; e < 6 * 64 * 32; e++)
      if ((d[e] != 0) != (rows >= 8 && e % LINE == 0 && e >= 64 * 32 && e < 5 * 64 * 32))
        fail_msg("%d rows: element %d,%d,%d", (int)rows, e / 2048, e / 32 % 64, e % 32);
    arena_deinit(&arena);
  }
}

/* The last block is shorter, and so is the last part of each: all that is there is asked for, but for the first block. */
static void ragged_blocks_are_asked_for(void **state) {
  (void)state;
  static const char form[] = "name i0 i1 i2 -> m n k; split n 32 -> no ni; split m 8 -> mo mi; order no mo mi ni; split k 40 -> kb kk; "
                             "sink mo mi ni under kb in stack; stage b at kb by kk ni -> pk pi; split kk 16 -> kc kd; "
                             "sink mi ni under kc kd in stack; fetch b at kb ahead 1 over mo kc";
  struct arena arena;
  arena_init(&arena);
  const float *d = marks_of(few_rows, form, 0, 1, &arena);
  for (int e = 0; e < 96 * 64; e++)
    if ((d[e] != 0) != (e % LINE == 0 && e / 64 >= 40))
      fail_msg("element %d,%d", e / 64, e % 64);
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_asked_for), cmocka_unit_test(panels_are_asked_for),
                                     cmocka_unit_test(ragged_blocks_are_asked_for)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
