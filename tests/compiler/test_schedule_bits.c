/* What is chosen and proposed for kernels, compiled: the bits of the schedule by the evaluator, however many threads there are. */
#include "ir/kernel/scalar.h"
#include "tests/compiler/choice_cases.h"
#include "tests/support/kernel_runner.h"

/* Products in blocks, with rests, that the evaluator can follow; all that are proposed. */
static const char *const small[] = {
  PRODUCT("16", "528", "52", ""), ACROSS("72", "32", "64"),    ACROSS("24", "272", "52"),    TRANSPOSED("16", "72", "64"),
  TRANSPOSED("16", "530", "64"),  TRANSPOSED("17", "2", "64"), TRANSPOSED("23", "10", "96"), APART("24", "64", "4", "10", "20"),
};
static void check_candidate_of(const struct kernel *k, const struct candidate *c, const int64_t *sizes, struct arena *arena) {
  struct schedule s = {0};
  struct kernel *out;
  char what[200];
  if (schedule_parse(candidate_text(c, arena), arena, &s) != OK || schedule_apply(k, &s, arena, &out) != OK)
    test_fail("%s: %s", c->steps, status_text());
  struct compiled made = compile_kernels(&out, 1, "native");
  if (!agree(out, made.code, sizes, 0, 0, what, sizeof what))
    test_fail("%s: %s", c->steps, what);
  if (!agree(k, made.code, sizes, 1e-4, 1e-4, what, sizeof what)) /* fma alone makes them differ */
    test_fail("%s: the plain kernel: %s", c->steps, what);
  dlclose(made.handle);
}
static void check_candidate(const struct kernel *k, const struct candidate *c, struct arena *arena) {
  check_candidate_of(k, c, NULL, arena);
}
/* Of all blocks that are proposed for the machine; one of them has these words. */
static void check_blocks(const char *text, const struct machine *machine, const char *has) {
  struct proposals p;
  struct contraction c;
  bool is_there = false;
  proposals_begin(&p, text, machine);
  assert_true(contraction_find(&p.uses, p.k->body, &c));
  vec_push(&p.all.items, (struct candidate){0});
  propose_product_blocks(&p.nest, &c, &p.all);
  for (uint32_t j = 1; j < p.all.items.count; j++) {
    is_there = is_there || strstr(p.all.items.items[j].steps, has);
    check_candidate(p.k, &p.all.items.items[j], &p.arena);
  }
  if (!is_there)
    test_fail("%s: nothing is proposed that has '%s'", text, has);
  proposals_end(&p);
}
static void blocks_give_the_bits_of_their_schedules(void **state) {
  (void)state;
  struct machine machine = *machine_find("x86-64-v3");
  machine.bytes[LEVEL_L2] = 512 << 10;
  for (size_t i = 0; i < sizeof small / sizeof *small; i++)
    check_blocks(small[i], &machine, "");
}
/* Of six rows by four vectors: whole ones, with a rest of rows, of several blocks of terms. */
static void flat_tiles_give_the_bits_of_their_schedules(void **state) {
  (void)state;
  static const char *const texts[] = {TRANSPOSED("18", "72", "64"), TRANSPOSED("23", "10", "128"), TRANSPOSED("16", "1030", "64")};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    check_blocks(texts[i], machine_find("icelake-server"), "split n 64 -> ns ni");
}

/* Of an open number of rows, of images, of terms, each called with several that its candidate is for: what the target does by itself has
 * other bits. And a far factor for few known rows. */
static const struct {
  const char *kernel, *has; /* a candidate with these words is among them */
  int64_t sizes[4];         /* -1 ends them */
} few[] = {
  {PRODUCT("n0", "160", "520", " sizes 1"), "when n0 < 17", {0, 1, 7, 16}},
  {PRODUCT("7", "160", "520", ""), "tail cut 3", {1, -1}},
  {PRODUCT("13", "40", "48", ""), "split m 5 -> mo mi tail cut 3", {1, -1}}, /* tiles of as many rows, but the last */
  {PRODUCT("19", "400", "64", ""), "split m ", {1, -1}},                     /* none where tasks have parts of them, with other rests */
  {PRODUCT("25", "400", "64", ""), "mr 5 -> mo mi;", {1, -1}},               /* or none */
  {ACROSS_OPEN("16", "30"), "when n0 < 512", {0, 1, 256, -1}},
  {ACROSS_OPEN("16", "30"), "under kb in stack", {3, 256, 300, 513}},
  {SUM_OF_TURNS("3", "16", "30"), "when n0 < 170", {0, 1, 83, -1}},
  {SUM_OF_TURNS("3", "16", "30"), "under ka kb in stack", {0, 1, 256, 300}},
  {"kernel k(in a: f32[n0,9,32], in b: f32[32,40], out c: f32[n0,9,40]) sizes 1 { par i0 < n0 { par i1 < 9 { par i2 < 40 { var v0: f32 = "
   "0:f32 red i3 < 32 { v0 = add(v0, mul(a[i0,i1,i3], b[i3,i2])) } c[i0,i1,i2] = v0 } } } }",
   "order ba no m ni",
   {0, 1, 3, -1}},
  {BATCHED_OF("n0", "i0,i3,i2", " sizes 1"), "order ba no m", {0, 1, 3, -1}},
  {TRANSPOSED("5", "45", "64"), "sink m ni under kb kk in register", {1, -1}},
  {TRANSPOSED("7", "16", "24"), "sink m ni under kb kk in register", {1, -1}},
  {"kernel k(in a: f64[3,3,21], in b: f64[3,12,21], in c: f64[12], out d: f64[3,3,12]) { par i0 < 3 { par i1 < 3 { par i2 < 12 { var v0: "
   "f64 = 0:f64 red i3 < 21 { v0 = add(v0, mul(a[i0,i1,i3], b[i0,i2,i3])) } d[i0,i1,i2] = add(v0, c[i2]) } } } }",
   "order ba no m ni; split k 4 -> kb kk",
   {1, -1}},
  {ACROSS("48", "30", "12"), "split n 12 -> no nc", {1, -1}}, /* a vector and a half of columns */
  {CROSSED_OF("f32", "n0", "33", "40", "", "a[i0,i2,i1]", " sizes 1"), "run i0 lo tasks", {0, 1, 3, -1}},
  {BATCHED_OF("n0", "i0,i2,i3", " sizes 1"), "stage b at no by nj k ni", {0, 1, 3, -1}},
};
static void what_is_open_gives_the_bits_of_its_schedules(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
    struct machine machine = *machine_find("x86-64-v3");
    struct proposals p;
    int compared = 0;
    machine.bytes[LEVEL_L2] = 512 << 10;
    proposals_begin(&p, few[i].kernel, &machine);
    nest_candidates(&p.nest, &p.all);
    for (uint32_t j = 1; j < p.all.items.count; j++) {
      const struct candidate *c = &p.all.items.items[j];
      for (int s = 0; strstr(candidate_text(c, &p.arena), few[i].has) && s < 4 && few[i].sizes[s] >= 0; s++, compared++)
        check_candidate_of(p.k, c, &few[i].sizes[s], &p.arena);
    }
    if (!compared)
      test_fail("%s: no candidate has %s", few[i].kernel, few[i].has);
    proposals_end(&p);
  }
}

/* Of images, an open number, around so many terms each; the first factor is of `first`, its element a[`at`]. */
#define SUM_OF_IMAGES(first, at, terms, rows, columns)                                                                                   \
  "kernel k(in a: f32[" first "], in b: f32[n0," terms "," columns "], out c: f32[" rows "," columns "]) sizes 1 { par i0 < " rows       \
  " { par i1 < " columns " { var v0: f32 = 0:f32 red i2 < n0 { red i3 < " terms " { v0 = add(v0, mul(a[" at "], b[i2,i3,i1])) } } c[i0," \
  "i1] = v0 } } }"
/* Blocks of each turn of an outer loop of terms: of several caches, with rests of terms, rows and columns. */
static void blocks_of_each_turn_give_the_bits_of_their_schedules(void **state) {
  (void)state;
  static const char *const texts[] = {SUM_OF_TURNS("3", "16", "100"), SUM_OF_IMAGES("n0,64,16", "i2,i3,i0", "64", "16", "96"),
                                      SUM_OF_IMAGES("19,n0,40", "i0,i2,i3", "40", "19", "100"),
                                      SUM_OF_IMAGES("32,n0,64", "i0,i2,i3", "64", "32", "128")};
  static const char *const cpus[] = {"x86-64-v3", "znver4", "znver5", "sapphirerapids"};
  static const int64_t sizes[] = {0, 3};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    int blocks = 0;
    for (size_t j = 0; j < sizeof cpus / sizeof *cpus; j++) {
      struct machine machine = *machine_find(cpus[j]);
      struct proposals p;
      machine.bytes[LEVEL_L2] = j % 2 ? 192 << 10 : 512 << 10;
      proposals_begin(&p, texts[i], &machine);
      nest_candidates(&p.nest, &p.all);
      for (uint32_t c = 1; c < p.all.items.count; c++)
        for (int s = 0; strstr(p.all.items.items[c].steps, "under ka kb in stack") && s < 2; s++, blocks++)
          check_candidate_of(p.k, &p.all.items.items[c], &sizes[s], &p.arena);
      proposals_end(&p);
    }
    if (!blocks)
      test_fail("%s: no blocks", texts[i]);
  }
}

/* Nothing is known: tiles and blocks of rests of all axes, of none, and of more than a block. */
static void products_of_open_sizes_give_the_bits_of_their_schedules(void **state) {
  (void)state;
  static const char *const texts[] = {OPEN_PRODUCT("n1", "n2", "i2,i1"), OPEN_PRODUCT("n2", "n1", "i1,i2")};
  static const char *const cpus[] = {"native", "x86-64-v3", "x86-64"};
  static const int64_t sizes[][3] = {{5, 3, 7}, {40, 300, 83}, {0, 4, 4}, {3, 0, 5}, {270, 17, 33}};
  for (size_t i = 0; i < 6; i++) {
    struct proposals p;
    proposals_begin(&p, texts[i / 3], machine_find(cpus[i % 3]));
    nest_candidates(&p.nest, &p.all);
    assert_true(p.all.items.count > 1);
    for (uint32_t j = 1; j < p.all.items.count; j++)
      for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const struct candidate *c = &p.all.items.items[j];
        if (*c->steps && (!c->below || sizes[s][c->size] < c->below)) /* plain loops have other bits */
          check_candidate_of(p.k, c, sizes[s], &p.arena);
      }
    proposals_end(&p);
  }
}

/* Factors that are computed of what they load: each element once for a task. */
#define COMPUTED(type, sum, first, second, at)                                                                                        \
  "kernel k(in a: " type "[" first "], in b: " type "[" second "], out c: " sum "[20,83]) { par i0 < 20 { par i1 < 83 { var v0: " sum \
  " = 0:" sum " red i2 < 40 { v0 = add(v0, mul(cast." sum "(a[" at ") } c[i0,i1] = v0 } } }"
static void computed_factors_give_the_bits_of_their_schedules(void **state) {
  (void)state;
  static const char *const texts[] = {
    COMPUTED("bf16", "f32", "20,40", "40,83", "i0,i2]), cast.f32(b[i2,i1]))"),
    COMPUTED("f16", "f32", "20,40", "83,40", "i0,i2]), cast.f32(b[i1,i2]))"),
    COMPUTED("i8", "i32", "20,40", "40,83", "i0,i2]), cast.i32(b[i2,i1]))"),
    COMPUTED("i8", "i32", "20,40", "83,40", "i0,i2]), cast.i32(b[i1,i2]))"),
    "kernel k(in a: bf16[40,24], in b: f32[40,96], out c: f32[24,96]) { par i0 < 24 { par i1 < 96 { var v0: f32 = 0:f32 red i2 < 40 "
    "{ v0 = add(v0, mul(cast.f32(a[i2,i0]), max(b[i2,i1], 0:f32))) } c[i0,i1] = v0 } } }",
    "kernel k(in a: f32[n0,40], in b: bf16[40,83], out c: f32[n0,83]) sizes 1 { par i0 < n0 { par i1 < 83 { var v0: f32 = 0:f32 red i2 < "
    "40 { v0 = add(v0, mul(mul(a[i0,i2], 3:f32), cast.f32(b[i2,i1]))) } c[i0,i1] = v0 } } }",
    "kernel k(in a: bf16[16,700], in b: f32[700,96], out c: f32[16,96]) { par i0 < 16 { par i1 < 96 { var v0: f32 = 0:f32 red i2 < 700 "
    "{ v0 = add(v0, mul(cast.f32(a[i0,i2]), b[i2,i1])) } c[i0,i1] = v0 } } }",
    "kernel k(in a: bf16[n0,300], in b: f32[300,96], out c: f32[n0,96]) sizes 1 { par i0 < n0 { par i1 < 96 { var v0: f32 = 0:f32 red i2 < "
    "300 { v0 = add(v0, mul(cast.f32(a[i0,i2]), b[i2,i1])) } c[i0,i1] = v0 } } }",
  };
  static const char *const cpus[] = {"native", "x86-64-v3", "x86-64", "znver5"}; /* the last reads far blocks in place */
  static const int64_t sizes[] = {261};
  bool in_place = false;
  for (size_t i = 0; i < 4 * sizeof texts / sizeof *texts; i++) {
    struct machine machine = *machine_find(cpus[i % 4]);
    struct proposals p;
    int computed = 0;
    machine.bytes[LEVEL_L2] = i % 4 == 3 ? 512 << 10 : machine.bytes[LEVEL_L2];
    proposals_begin(&p, texts[i / 4], &machine);
    nest_candidates(&p.nest, &p.all);
    for (uint32_t j = 1; j < p.all.items.count; j++)
      if (strstr(p.all.items.items[j].steps, "computed")) {
        check_candidate_of(p.k, &p.all.items.items[j], sizes, &p.arena);
        computed++;
        in_place = in_place || !strstr(p.all.items.items[j].steps, "stage b");
      }
    if (!computed && i % 4 < 3)
      test_fail("%s, %s: no candidate computes before it copies", texts[i / 4], cpus[i % 4]);
    proposals_end(&p);
  }
  assert_true(in_place);
}

/* Terms two by two, as an instruction has them: all that are proposed, with rests of rows, columns and blocks, along the sum by squares and
 * without, of what is converted on the way. */
static void pairs_give_the_bits_of_their_schedules(void **state) {
  (void)state;
  static const char *const texts[] = {
    NARROW_PRODUCT("21", "40", "83"),
    NARROW_TRANSPOSED("17", "550", "70"),
    NARROW_ACROSS("16", "34", "52"),
    NARROW_PRODUCT("24", "543", "80"),
    NARROW_TRANSPOSED("16", "65", "64"),
    NARROW_ACROSS("16", "275", "64"),
    NARROW_ACROSS_OPEN("16", "64"),
    NARROW_PADDED("2", "6", "4", "40", "8", "32", "12"),
    NARROW_TURNED("1", "7", "32", "32", "9"),
    NARROW_TURNED("1", "5", "10", "24", "7"),
    NARROW_FILTER("3", "24", "32", "2", "5", "16", "7", "144", "8"),
    "kernel k(in a: bf16[2,6,48], in b: bf16[3,24,40], out c: f32[2,6,4,40]) { par i0 < 2 { par i1 < 6 { par i2 < 4 { par i3 < 40 "
    "{ var v0: f32 = 0:f32 %0 = sub(i1, 1) red i4 < sub(min(sub(6, %0), 3), max(sub(0, %0), 0)) { red i5 < 24 { %0 = add(i4, "
    "max(sub(0, sub(i1, 1)), 0)) v0 = add(v0, mul(cast.f32(a[i0,sub(add(i1, %0), 1),add(mul(i2, 8), i5)]), cast.f32(b[%0,i5,i3])))"
    " } } c[i0,i1,i2,i3] = v0 } } } } }",
    "kernel k(in a: f32[n0,40], in b: bf16[40,83], out c: f32[n0,83]) sizes 1 { par i0 < n0 { par i1 < 83 { var v0: f32 = 0:f32 red i2 < "
    "40 { v0 = add(v0, mul(cast.f32(cast.bf16(mul(a[i0,i2], 3:f32))), cast.f32(b[i2,i1]))) } c[i0,i1] = v0 } } }",
  };
  static const int64_t sizes[] = {0, 1, 37, 300}; /* of what is open */
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct proposals p;
    int paired = 0;
    proposals_begin(&p, texts[i], machine_find("znver4"));
    nest_candidates(&p.nest, &p.all);
    for (uint32_t j = 1; j < p.all.items.count; j++)
      for (size_t s = 0; strstr(p.all.items.items[j].steps, "; pair ") && s < (p.k->size_count ? sizeof sizes / sizeof *sizes : 1); s++) {
        check_candidate_of(p.k, &p.all.items.items[j], &sizes[s], &p.arena);
        paired++;
      }
    if (!paired)
      test_fail("%s: nothing is proposed that has pairs", texts[i]);
    proposals_end(&p);
  }
}

/* A square of pairs: copied, computed, and one whose rows do not lie side by side, which looks like it in the last dimension. */
static void squares_of_pairs_have_the_bits_of_their_elements(void **state) {
  (void)state;
  static const char *const values[] = {"a[i0,i1,add(mul(i2, 2), i3)]", "max(a[i0,i1,add(mul(i2, 2), i3)], 0:bf16)",
                                       "a[i0,add(i1, i2),add(mul(i2, 2), i3)]", "a[add(i0, i3),i1,add(mul(i2, 2), i3)]",
                                       "a[i0,i1,add(mul(i2, 2), sub(1, i3))]"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    struct proposals p;
    struct candidate c = {.steps = "run i1 i3 unroll; run i2 lanes"};
    struct arena arena;
    arena_init(&arena);
    proposals_begin(&p,
                    arena_printf(&arena,
                                 "kernel k(in a: bf16[4,31,32], out b: bf16[3,16,16,2]) { par i0 < 3 { par i1 < 16 { par i2 < 16 { par i3 "
                                 "< 2 { b[i0,i2,i1,i3] = %s } } } } }",
                                 values[i]),
                    machine_find("native"));
    check_candidate(p.k, &c, &p.arena);
    proposals_end(&p);
    arena_deinit(&arena);
  }
}

/* Under --math strict schedules have the bits of the plain kernel. */
static void strict_schedules_keep_all_values(void **state) {
  (void)state;
  static const char *const texts[] = {PRODUCT("40", "300", "83", ""), TRANSPOSED("33", "260", "70"), TRANSPOSED("5", "64", "96"),
                                      OPEN_PRODUCT("n1", "n2", "i2,i1"), PRODUCT("3", "1024", "1100", "")};
  static const int64_t sizes[] = {40, 30, 83};
  int scheduled = 0;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct arena arena;
    struct schedule s = {0};
    struct machine machine = machine_strict(machine_find("native"));
    char what[200];
    const char *steps;
    arena_init(&arena);
    struct kernel *k = parsed(texts[i], &arena), *out = k;
    assert_int_equal(schedule_choose(k, &machine, NULL, &arena, &steps), OK);
    scheduled += steps != NULL;
    if (!steps) { /* plain loops are as good */
      arena_deinit(&arena);
      continue;
    }
    if (strstr(steps, "fma") || schedule_parse(steps, &arena, &s) != OK || schedule_apply(k, &s, &arena, &out) != OK)
      test_fail("%s: %s", texts[i], steps);
    struct compiled made = compile_kernels(&out, 1, "native");
    if (!agree(k, made.code, sizes, 0, 0, what, sizeof what))
      test_fail("%s: %s", texts[i], what);
    dlclose(made.handle);
    arena_deinit(&arena);
  }
  assert_true(scheduled > 0);
}

/* Squares of a vector and of half of one, with rests of both axes; of what is computed of two elements that lie across, one along and one
 * of a row; of doubles and integers. */
static void transpositions_give_the_bits_of_their_schedules(void **state) {
  (void)state;
  static const char *const texts[] = {
    CROSSED("3", "64", "32"),
    CROSSED("3", "37", "67"),
    CROSSED("2", "8", "24"),
    CROSSED_OF("f64", "3", "20", "41", "", "neg(a[i0,i2,i1])", ""),
    CROSSED_OF("i32", "3", "33", "47", "", "a[i0,i2,i1]", ""),
    "kernel k(in a: f32[3,67,37], in b: f32[67,37], in c: f32[37,67], in d: f32[37], out e: f32[3,37,67]) { par i0 < 3 { par i1 < 37 { par "
    "i2 < 67 { e[i0,i1,i2] = add(mul(max(a[i0,i2,i1], c[i1,i2]), b[i2,i1]), d[i1]) } } } }"};
  static const char *const cpus[] = {"native", "x86-64-v3"};
  for (size_t i = 0; i < 2 * sizeof texts / sizeof *texts; i++) {
    struct proposals p;
    proposals_begin(&p, texts[i / 2], machine_find(cpus[i % 2]));
    nest_candidates(&p.nest, &p.all);
    if (p.all.items.count != 2)
      test_fail("%s: %d candidates", texts[i / 2], (int)p.all.items.count);
    check_candidate(p.k, &p.all.items.items[1], &p.arena);
    proposals_end(&p);
  }
}

/* What is used twice of each element, again and again, is looked at once; three elements that lie across are too many. */
static void squares_of_long_computations_are_found_at_once(void **state) {
  (void)state;
  struct proposals p;
  struct arena arena;
  arena_init(&arena);
  const char *steps = "%0 = a[i0,i2,i1] ";
  for (int i = 0; i < 60; i++)
    steps = arena_printf(&arena, "%s%%%d = sub(mul(%%%d, 0x1p-1:f32), mul(%%%d, %%%d)) ", steps, i + 1, i, i, i);
  proposals_begin(&p,
                  arena_printf(&arena,
                               "kernel k(in a: f32[3,67,37], out b: f32[3,37,67]) { par i0 < 3 { par i1 < 37 { par i2 < 67 { %s "
                               "b[i0,i1,i2] = %%60 } } } }",
                               steps),
                  machine_find("native"));
  nest_candidates(&p.nest, &p.all);
  assert_int_equal(p.all.items.count, 2);
  check_candidate(p.k, &p.all.items.items[1], &p.arena);
  proposals_end(&p);
  proposals_begin(&p,
                  "kernel k(in a: f32[64,64], in b: f32[64,64], in c: f32[64,64], out d: f32[64,64]) { par i0 < 64 { par i1 < 64 { "
                  "d[i0,i1] = add(add(a[i1,i0], b[i1,i0]), c[i1,i0]) } } }",
                  machine_find("native"));
  nest_candidates(&p.nest, &p.all);
  assert_int_equal(p.all.items.count, 1);
  proposals_end(&p);
  arena_deinit(&arena);
}

/* By channel, with rests of tiles and of vectors, and the gradient of such a filter. */
static void depthwise_convolutions_give_the_bits_of_their_schedules(void **state) {
  (void)state;
  static const char *const texts[] = {BY_CHANNEL("11", "40"), BY_CHANNEL("7", "64"), TAPS("3", "7", "64"),  TAPS("3", "17", "64"),
                                      TAPS("5", "9", "64"),   TAPS("9", "18", "20"), TAPS("3", "9", "900"), TAPS_INSIDE("9", "19", "40")};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct proposals p;
    proposals_begin(&p, texts[i], machine_find("native"));
    nest_candidates(&p.nest, &p.all);
    assert_true(p.all.items.count > 1);
    for (uint32_t j = 1; j < p.all.items.count; j++)
      check_candidate(p.k, &p.all.items.items[j], &p.arena);
    proposals_end(&p);
  }
}

/* Convolutions whose filter is in a cache, and beyond one; along the sum, with squares and without. */
static void convolutions_give_the_bits_of_their_schedules(void **state) {
  (void)state;
  static const char *const texts[] = {TESTED("1", "11", "4", "80", ""), TURNED("1", "11", "4", "80", ""),
                                      TURNED("1", "11", "16", "80", "")};
  for (int i = 0; i < 6; i++) {
    struct proposals p;
    struct machine machine = *machine_find("native");
    bool far = i % 2, fetched = false, staged = false;
    machine.bytes[LEVEL_L2] = far ? 1024 : 1024 * 1024;
    proposals_begin(&p, texts[i / 2], &machine);
    nest_candidates(&p.nest, &p.all);
    assert_true(p.all.items.count > 1);
    for (uint32_t j = 1; j < p.all.items.count; j++) {
      fetched = fetched || strstr(p.all.items.items[j].steps, "fetch b at kc");
      staged = staged || strstr(p.all.items.items[j].steps, "stage b at mo by");
      check_candidate(p.k, &p.all.items.items[j], &p.arena);
    }
    assert_int_equal(fetched, far && i / 2 == 0);
    assert_int_equal(staged, far || i / 2 > 0);
    proposals_end(&p);
  }
}

/* The tiles of each phase as `threads` of them would have them. */
static void run_dealt(const struct kernel_code *code, void *const *buffers, const int64_t *sizes, int64_t threads) {
  struct kernel_fault fault = {0};
  struct kernel_call call = {buffers, sizes, aligned_block((size_t)code->query(sizes, KERNEL_SCRATCH)), &fault};
  for (int64_t phase = 0; phase < code->query(sizes, KERNEL_PHASES); phase++)
    for (int64_t i = threads, tiles = code->query(sizes, phase); i-- > 0;)
      code->run(&call, phase, tiles * i / threads, tiles * (i + 1) / threads);
  free(call.scratch);
}
static size_t buffer_bytes(const struct kernel *k, uint32_t buffer, const int64_t *sizes) {
  return (size_t)buffer_count(k, buffer, sizes) * dtype_size(k->buffers.items[buffer].dtype);
}
static uint32_t output_of(const struct kernel *k) {
  uint32_t i = 0;
  while (k->buffers.items[i].mode != BUFFER_OUT)
    i++;
  return i;
}
static void check_threads(const char *name, const struct kernel *k, const struct kernel_code *code, const int64_t *sizes) {
  void *buffers[RUNNER_BUFFERS] = {0}, *once = NULL;
  uint32_t out = output_of(k);
  size_t bytes = buffer_bytes(k, out, sizes);
  random_inputs(k, sizes, buffers);
  for (int64_t threads = 1; threads <= 7; threads += threads < 3 ? 1 : 4) {
    run_dealt(code, buffers, sizes, threads);
    if (!once)
      once = memcpy(aligned_block(bytes), buffers[out], bytes);
    if (memcmp(once, buffers[out], bytes) != 0)
      test_fail("%s: %d threads give other bits", name, (int)threads);
    memset(buffers[out], 0xcd, bytes);
  }
  free(once);
  for (int i = 0; i < RUNNER_BUFFERS; i++)
    free(buffers[i]);
}

/* An extent; that of a window where the loops around stand at 1, which is inside of what it looks at. */
static int64_t extent(const struct kernel *k, expr_id id, const int64_t *sizes) {
  const struct expr *e = &k->exprs.items[id];
  uint8_t types[3] = {0};
  int64_t values[3] = {0};
  switch (e->op) {
  case SCALAR_CONST: return e->imm;
  case SCALAR_SIZE: return sizes[e->imm];
  case SCALAR_LOCAL: return 1;
  default: break;
  }
  for (int i = 0; i < e->count; i++) {
    expr_id operand = k->operands.items[e->first + (uint32_t)i];
    types[i] = k->exprs.items[operand].dtype;
    values[i] = extent(k, operand, sizes);
  }
  return scalar_eval((enum scalar_op)e->op, (enum dtype)e->dtype, types, values);
}
/* How often the innermost statements run. */
static double turns(const struct kernel *k, const struct stmt *s, const int64_t *sizes) {
  double sum = 0;
  for (; s; s = s->next) {
    double inside = turns(k, s->body, sizes) + turns(k, s->otherwise, sizes);
    sum += (s->kind == STMT_FOR ? (double)extent(k, s->value, sizes) : 1) * (inside > 1 ? inside : 1);
  }
  return sum;
}

/* What was chosen gives the evaluator's bits, where that one can follow, and the same ones for 1, 2, 3 and 7 threads. */
#ifdef __SANITIZE_ADDRESS__ /* several times as slow: what it finds does not depend on how often a loop turns */
static const int64_t rows[] = {1, 5};
static const double turns_limit = 2e5;
#else
static const int64_t rows[] = {1, 5, 13, 64, 100};
static const double turns_limit = 2e6;
#endif
static void code_gives_the_bits_of_the_schedule_for_any_threads(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct arena arena;
    struct schedule s = {0};
    if ((i && strcmp(cases[i].kernel, cases[i - 1].kernel) == 0) || strstr(cases[i].kernel, " sizes 3")) /* for another CPU; above */
      continue;
    arena_init(&arena);
    struct kernel *k = parsed(cases[i].kernel, &arena), *out = k;
    const char *steps = chosen(k, "native", &arena);
    if (steps && (schedule_parse(steps, &arena, &s) != OK || schedule_apply(k, &s, &arena, &out) != OK))
      test_fail("%s: %s", cases[i].name, status_text());
    struct compiled made = compile_kernels(&out, 1, "native");
    for (size_t r = 0; steps && r < (k->size_count ? sizeof rows / sizeof *rows : 1); r++) {
      char what[200];
      bool small = turns(k, k->body, &rows[r]) <= turns_limit;
      double order = strstr(steps, "run ") && !strstr(steps, "join ") ? 0 : 1e-5; /* of sums in nests without marks the target decides */
      if (small && !agree(out, made.code, &rows[r], order, order, what, sizeof what))
        test_fail("%s: %s", cases[i].name, what);
      if (small && !agree(k, made.code, &rows[r], 1e-4, 1e-4, what, sizeof what)) /* fma alone makes them differ */
        test_fail("%s: the plain kernel: %s", cases[i].name, what);
      check_threads(cases[i].name, k, made.code, &rows[r]);
    }
    dlclose(made.handle);
    arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(blocks_give_the_bits_of_their_schedules),
    cmocka_unit_test(flat_tiles_give_the_bits_of_their_schedules),
    cmocka_unit_test(what_is_open_gives_the_bits_of_its_schedules),
    cmocka_unit_test(blocks_of_each_turn_give_the_bits_of_their_schedules),
    cmocka_unit_test(products_of_open_sizes_give_the_bits_of_their_schedules),
    cmocka_unit_test(computed_factors_give_the_bits_of_their_schedules),
    cmocka_unit_test(pairs_give_the_bits_of_their_schedules),
    cmocka_unit_test(squares_of_pairs_have_the_bits_of_their_elements),
    cmocka_unit_test(strict_schedules_keep_all_values),
    cmocka_unit_test(convolutions_give_the_bits_of_their_schedules),
    cmocka_unit_test(transpositions_give_the_bits_of_their_schedules),
    cmocka_unit_test(squares_of_long_computations_are_found_at_once),
    cmocka_unit_test(depthwise_convolutions_give_the_bits_of_their_schedules),
    cmocka_unit_test(code_gives_the_bits_of_the_schedule_for_any_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
