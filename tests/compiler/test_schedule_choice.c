/* What is chosen for kernels: steps that apply, that differ where machines and sizes differ, and none where the target does as well. */
#include "tests/compiler/choice_cases.h"
#include "tests/support/kernel_runner.h"

static void kernels_get_the_steps_that_fit_size_and_machine(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct arena arena;
    struct schedule s = {0};
    struct kernel *k, *out;
    arena_init(&arena);
    k = parsed(cases[i].kernel, &arena);
    const char *steps = chosen(k, cases[i].cpu, &arena);
    if ((steps != NULL) != (cases[i].expected != NULL) || (steps && !strstr(steps, cases[i].expected)))
      test_fail("%s: %s", cases[i].name, steps ? steps : "plain loops");
    if (steps && (schedule_parse(steps, &arena, &s) != OK || schedule_apply(k, &s, &arena, &out) != OK))
      test_fail("%s: %s", cases[i].name, status_text());
    arena_deinit(&arena);
  }
}

/* Every candidate for every case applies: also those that are never chosen. */
static void every_candidate_applies(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct proposals p;
    struct kernel *out;
    proposals_begin(&p, cases[i].kernel, machine_find(cases[i].cpu));
    nest_candidates(&p.nest, &p.all);
    assert_true(!p.all.items.items[0].steps || p.all.items.count == 1);
    for (uint32_t j = !p.all.items.items[0].steps; j < p.all.items.count; j++) {
      const struct candidate *c = &p.all.items.items[j];
      struct schedule s = {0};
      if (schedule_parse(candidate_text(c, &p.arena), &p.arena, &s) != OK || schedule_apply(p.k, &s, &p.arena, &out) != OK)
        test_fail("%s: %s: %s", cases[i].name, c->steps, status_text());
    }
    proposals_end(&p);
  }
}

static void nests_share_loops_where_the_second_cache_keeps_their_factors(void **state) {
  (void)state;
  static const struct {
    const char *kernel, *cpu;
    int loops;
  } shared[] = {
    {HANDED_ON("2", "3", "24", "96", "32"), "x86-64-v4", 2},
    {HANDED_ON("2", "3", "24", "96", "16"), "x86-64-v4", 0}, /* no schedule: two vectors are wider than the result */
    {HANDED_ON("1", "64", "32", "4096", "64"), "x86-64-v4", 2},
    {HANDED_ON("1", "64", "32", "8192", "64"), "x86-64-v4", 0}, /* blocks of rows would read the factors anew from beyond */
    {HANDED_ON("2", "3", "24", "96", "32"), "x86-64", 2},       /* also without fused multiply-adds */
  };
  for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
    struct arena arena;
    arena_init(&arena);
    if (schedule_shared_loops(parsed(shared[i].kernel, &arena), machine_find(shared[i].cpu), &arena) != shared[i].loops)
      test_fail("kernel %zu", i);
    arena_deinit(&arena);
  }
}

static void a_kernel_without_products_is_left_alone(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *k = parsed("kernel k(in a: f32[64], out b: f32[64]) { par i0 < 64 { b[i0] = exp(a[i0]) } }", &arena);
  assert_null(chosen(k, "x86-64-v4", &arena));
  arena_deinit(&arena);
}

/* No candidate applies, as both factors are one buffer: few rows have no code of their own either. */
static void plain_loops_have_no_variants(void **state) {
  (void)state;
  struct arena arena;
  arena_init(&arena);
  struct kernel *k =
    parsed("kernel k(in a: bf16[n0,64], out b: f32[n0,n0]) sizes 1 { par i0 < n0 { par i1 < n0 { var v0: f32 = 0:f32 red i2 "
           "< 64 { v0 = add(v0, mul(cast.f32(a[i0,i2]), cast.f32(a[i1,i2]))) } b[i0,i1] = v0 } } }",
           &arena);
  assert_null(chosen(k, "x86-64-v4", &arena));
  arena_deinit(&arena);
}

/* What several threads write costs by the line; what is updated in place stays with its thread. */
static void sharing_costs_what_lines_of_results_do(void **state) {
  (void)state;
  static const struct {
    const char *kernel;
    int64_t lines;
  } sharing[] = {
    {"kernel k(in a: f32[1024], out b: f32[1024]) { par i0 < 1024 { b[i0] = exp(a[i0]) } }", 64},
    {"kernel k(in a: f32[1024], inout b: f32[1024]) { par i0 < 1024 { b[i0] = add(b[i0], a[i0]) } }", 0},
  };
  for (size_t i = 0; i < sizeof sharing / sizeof *sharing; i++) {
    struct arena arena;
    arena_init(&arena);
    struct kernel *k = parsed(sharing[i].kernel, &arena);
    struct compiled made = compile_kernels(&k, 1, "native");
    assert_int_equal(made.code->query(NULL, KERNEL_SHARING), sharing[i].lines);
    dlclose(made.handle);
    arena_deinit(&arena);
  }
}

/* A sum in parts takes no less than what it reads: there are tiles for several threads. */
static void parts_of_sums_are_tiles(void **state) {
  (void)state;
  static const char sums[] =
    "kernel k(in a: f32[32768,16], in b: f32[32768,16], out c: f32[16]) { par i0 < 16 { var v0: f32 = 0:f32 red i1 < 32768 { v0 = add(v0, "
    "mul(a[i1,i0], b[i1,i0])) } c[i0] = v0 } }";
  struct arena arena;
  struct schedule s = {0};
  arena_init(&arena);
  struct kernel *k = parsed(sums, &arena);
  const char *steps = chosen(k, "native", &arena);
  assert_non_null(steps);
  assert_non_null(strstr(steps, "part i1 16 -> po pi ps"));
  assert_int_equal(schedule_parse(steps, &arena, &s), OK);
  assert_int_equal(schedule_apply(k, &s, &arena, &k), OK);
  struct compiled made = compile_kernels(&k, 1, "native");
  assert_true(made.code->query(NULL, 0) > 1);
  dlclose(made.handle);
  arena_deinit(&arena);
}

/* A damaged graph's loops turn more often than an integer counts: they are left as they are. */
static void loops_that_never_end_are_left_alone(void **state) {
  (void)state;
  static const char sums[] =
    "kernel k(in a: f32[16], out b: f32[16]) { par i0 < 16 { var v0: f32 = 0:f32 red i1 < 3 { red i2 < 9223372036854775807 { "
    "v0 = add(v0, a[i0]) } } b[i0] = v0 } }";
  struct arena arena;
  arena_init(&arena);
  const struct kernel *k = parsed(sums, &arena);
  assert_null(chosen(k, "native", &arena));
  kernel_free(vectors_choose(k, machine_find("native"), &arena));
  arena_deinit(&arena);
}

static int64_t tasks_of(const struct kernel *k, const struct stmt *s) {
  int64_t turns = 1, all = 1;
  for (; s; s = s->next)
    if (s->kind == STMT_FOR && s->run == RUN_TASKS && expr_is_const(k, s->value, &turns))
      all *= turns * tasks_of(k, s->body);
  return all;
}
/* Where cores are known, a kernel has no more tasks than pay for the copies that each of them makes, as many for each core. */
static void tasks_are_as_many_as_cores_want(void **state) {
  (void)state;
  static const struct {
    int cores;
    int64_t least, most;
  } rows[] = {{0, 8, 16}, {1, 4, 6}, {2, 4, 6}, {3, 6, 9}, {16, 8, 16}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct arena arena;
    struct machine machine = *machine_find("x86-64-v4");
    struct kernel *out;
    const char *steps;
    arena_init(&arena);
    machine.cores = rows[i].cores;
    const struct kernel *k = parsed(ACROSS("256", "1024", "1024"), &arena);
    assert_int_equal(schedule_make(k, &machine, NULL, &arena, &steps, &out), OK);
    assert_non_null(out);
    int64_t tasks = tasks_of(out, out->body);
    if (tasks < rows[i].least || tasks > rows[i].most || (rows[i].cores > 1 && rows[i].cores < 4 && tasks % rows[i].cores))
      test_fail("%d cores: %lld tasks: %s", rows[i].cores, (long long)tasks, steps);
    arena_deinit(&arena);
  }
}

/* 43 strips in five tasks would be 25 and 18 for two cores; in seven they are 22 and 21. */
static void few_tasks_give_cores_the_same(void **state) {
  (void)state;
  struct arena arena;
  struct machine machine = *machine_find("sapphirerapids");
  const char *steps;
  arena_init(&arena);
  machine.cores = 2;
  assert_int_equal(schedule_choose(parsed(PRODUCT("256", "2048", "2048", ""), &arena), &machine, NULL, &arena, &steps), OK);
  if (!steps || !strstr(steps, "split n 48 -> ns ni; split ns 7 -> no nj;"))
    test_fail("%s", steps ? steps : "plain loops");
  arena_deinit(&arena);
}

/* Each task of some columns copies all rows of the first factor. */
static void tasks_that_copy_the_same_rows_are_one_for_each_core(void **state) {
  (void)state;
  struct arena arena;
  struct machine machine = *machine_find("sapphirerapids");
  struct kernel *out;
  const char *steps;
  arena_init(&arena);
  machine.cores = 2;
  assert_int_equal(schedule_make(parsed(ACROSS("3136", "64", "1024"), &arena), &machine, NULL, &arena, &steps, &out), OK);
  assert_non_null(out);
  if (tasks_of(out, out->body) != 2)
    test_fail("%s", steps);
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(kernels_get_the_steps_that_fit_size_and_machine),
    cmocka_unit_test(every_candidate_applies),
    cmocka_unit_test(nests_share_loops_where_the_second_cache_keeps_their_factors),
    cmocka_unit_test(a_kernel_without_products_is_left_alone),
    cmocka_unit_test(plain_loops_have_no_variants),
    cmocka_unit_test(sharing_costs_what_lines_of_results_do),
    cmocka_unit_test(parts_of_sums_are_tiles),
    cmocka_unit_test(loops_that_never_end_are_left_alone),
    cmocka_unit_test(tasks_are_as_many_as_cores_want),
    cmocka_unit_test(few_tasks_give_cores_the_same),
    cmocka_unit_test(tasks_that_copy_the_same_rows_are_one_for_each_core),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
