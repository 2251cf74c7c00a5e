/* test_dim.c: symbolic sizes: one id for one value, and sums and products of any length. */
#include "ir/size/dim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#define SYMBOLS 100

struct fixture {
  struct arena arena;
  struct dim_table *t;
  dim n[SYMBOLS];
  int64_t values[SYMBOLS];
};

static struct fixture *fixture_make(void) {
  static struct fixture f;
  arena_init(&f.arena);
  f.t = dims_create(&f.arena);
  for (int i = 0; i < SYMBOLS; i++) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    f.n[i] = dim_symbol(f.t, name);
    f.values[i] = i % 3 + 1;
  }
  return &f;
}

static void equal_sizes_have_one_id(void **state) {
  (void)state;
  struct fixture *f = fixture_make();
  dim a = f->n[0], b = f->n[1], two = dim_const(f->t, 2);
  assert_int_equal(dim_add(f->t, a, b), dim_add(f->t, b, a));
  assert_int_equal(dim_mul(f->t, a, dim_add(f->t, b, two)), dim_add(f->t, dim_mul(f->t, b, a), dim_add(f->t, a, a)));
  assert_int_equal(dim_floordiv(f->t, dim_mul(f->t, a, dim_const(f->t, 6)), two), dim_mul(f->t, a, dim_const(f->t, 3)));
  assert_int_equal(dim_sub(f->t, a, a), dim_const(f->t, 0));
  assert_int_equal(dim_mod(f->t, dim_mul(f->t, a, two), two), dim_const(f->t, 0));
  arena_deinit(&f->arena);
}

static void a_sum_of_a_hundred_sizes_is_right(void **state) {
  (void)state;
  struct fixture *f = fixture_make();
  dim total = dim_const(f->t, 5);
  int64_t expected = 5;
  for (int i = 0; i < SYMBOLS; i++) {
    total = dim_add(f->t, total, f->n[i]);
    expected += f->values[i];
  }
  assert_int_equal(dim_eval(f->t, total, f->values), expected);
  assert_int_equal(dim_less(f->t, dim_const(f->t, 4), total), 1);
  arena_deinit(&f->arena);
}

static void a_product_of_forty_sizes_is_right(void **state) {
  (void)state;
  struct fixture *f = fixture_make();
  dim total = dim_const(f->t, 1), sums = dim_const(f->t, 1);
  int64_t expected = 1, expected_sums = 1;
  for (int i = 0; i < 40; i++) {
    total = dim_mul(f->t, total, f->n[i]);
    expected *= f->values[i];
  }
  for (int i = 0; i < 12; i++) {
    sums = dim_mul(f->t, sums, dim_add(f->t, f->n[i], f->n[i + 1]));
    expected_sums *= f->values[i] + f->values[i + 1];
  }
  assert_int_equal(dim_eval(f->t, total, f->values), expected);
  assert_int_equal(dim_eval(f->t, sums, f->values), expected_sums);
  arena_deinit(&f->arena);
}

static void the_edges_of_integers_do_no_harm(void **state) {
  (void)state;
  struct fixture *f = fixture_make();
  dim least = dim_const(f->t, INT64_MIN), most = dim_const(f->t, INT64_MAX), minus = dim_const(f->t, -1);
  assert_int_equal(dim_floordiv(f->t, least, minus), least);
  assert_int_equal(dim_floordiv(f->t, dim_mul(f->t, f->n[0], least), minus), dim_mul(f->t, f->n[0], least));
  assert_int_equal(dim_floordiv(f->t, f->n[0], dim_const(f->t, 0)), NO_DIM);
  (void)dim_less(f->t, dim_mul(f->t, dim_max(f->t, f->n[0], most), most), least);
  (void)dim_equal(f->t, dim_add(f->t, most, f->n[1]), least);
  arena_deinit(&f->arena);
}

static void nested_bounds_are_found_in_little_time(void **state) {
  (void)state;
  struct fixture *f = fixture_make();
  dim d = f->n[0];
  for (int i = 1; i < 60; i++) /* each level mentions the one before twice */
    d = dim_min(f->t, dim_add(f->t, d, f->n[i]), dim_add(f->t, dim_floordiv(f->t, d, dim_const(f->t, 2)), dim_const(f->t, 7)));
  assert_int_equal(dim_less(f->t, d, dim_const(f->t, 0)), 0);
  arena_deinit(&f->arena);
}

/* 2 and n + 1 are equal where n is 1. */
static void what_makes_two_sizes_equal_is_one_symbols_value(void **state) {
  (void)state;
  struct fixture *f = fixture_make();
  dim one = dim_const(f->t, 1), two = dim_const(f->t, 2), a = two, b = dim_add(f->t, f->n[0], one);
  dim_isolate(f->t, &a, &b);
  assert_int_equal(a, f->n[0]);
  assert_int_equal(b, one);
  a = dim_sub(f->t, two, f->n[1]), b = dim_const(f->t, 0);
  dim_isolate(f->t, &a, &b);
  assert_int_equal(a, f->n[1]);
  assert_int_equal(b, two);
  dim twice = a = dim_mul(f->t, f->n[0], two), sum = b = dim_add(f->t, f->n[1], f->n[2]);
  dim_isolate(f->t, &a, &b); /* of several nobody can say it */
  assert_int_equal(a, twice);
  assert_int_equal(b, sum);
  arena_deinit(&f->arena);
}

/* As for the turns of a loop, each of which finds sizes of its own: at any depth, and what a symbol stands for, too. */
static void symbols_are_replaced_wherever_they_stand(void **state) {
  (void)state;
  struct fixture *f = fixture_make();
  dim symbols[SYMBOLS + 1] = {[1] = f->n[2], [3] = dim_const(f->t, 4)};
  dim nested = dim_floordiv(f->t, dim_add(f->t, f->n[1], dim_const(f->t, 5)), f->n[3]);
  dim expected = dim_floordiv(f->t, dim_add(f->t, f->n[2], dim_const(f->t, 5)), dim_const(f->t, 4));
  assert_int_equal(dim_replace(f->t, dim_mul(f->t, f->n[0], nested), symbols), dim_mul(f->t, f->n[0], expected));
  assert_int_equal(dim_replace(f->t, dim_min(f->t, f->n[1], f->n[0]), symbols), dim_min(f->t, f->n[2], f->n[0]));
  assert_int_equal(dim_replace(f->t, f->n[0], symbols), f->n[0]);
  assert_int_equal(dim_replace(f->t, NO_DIM, symbols), NO_DIM);
  assert_true(dim_unify(f->t, f->n[4], dim_add(f->t, f->n[1], f->n[0])));
  assert_int_equal(dim_replace(f->t, f->n[4], symbols), dim_add(f->t, f->n[2], f->n[0]));
  arena_deinit(&f->arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_sizes_have_one_id),
    cmocka_unit_test(a_sum_of_a_hundred_sizes_is_right),
    cmocka_unit_test(a_product_of_forty_sizes_is_right),
    cmocka_unit_test(the_edges_of_integers_do_no_harm),
    cmocka_unit_test(nested_bounds_are_found_in_little_time),
    cmocka_unit_test(what_makes_two_sizes_equal_is_one_symbols_value),
    cmocka_unit_test(symbols_are_replaced_wherever_they_stand),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
