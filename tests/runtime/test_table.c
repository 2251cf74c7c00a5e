/* Lookup tables: filled once, or changed at any time. */
#include <malloc.h>
#include <string.h>

#include "runtime/resource/dense_table.h"
#include "runtime/resource/table.h"
#include "tests/support/test.h"

struct fixture {
  struct container *container;
  struct table *table;
};

static struct fixture make(bool is_mutable) {
  struct fixture f;
  struct table_spec spec = {.key = DTYPE_STRING, .value = DTYPE_INT64, .is_mutable = is_mutable};
  bool is_new;
  assert_int_equal(container_create(&f.container), OK);
  assert_int_equal(container_get(f.container, "localhost", "t", &table_maker, &spec, &is_new, (struct resource **)&f.table), OK);
  return f;
}

static struct tensor *keys_of(const char *a, const char *b) {
  struct string_view views[] = {{a, strlen(a)}, {b, strlen(b)}};
  struct tensor *t;
  assert_int_equal(tensor_copy_in(DTYPE_STRING, &(struct shape){1, {2}}, views, &t), OK);
  return t;
}

static struct tensor *numbers_of(int64_t a, int64_t b) {
  struct tensor *t;
  assert_int_equal(tensor_copy_in(DTYPE_INT64, &(struct shape){1, {2}}, (int64_t[]){a, b}, &t), OK);
  return t;
}

static void assert_finds(struct table *table, const char *key, int64_t expected) {
  struct string_view view = {key, strlen(key)};
  int64_t otherwise = -1;
  struct tensor *k, *o, *found;
  assert_int_equal(tensor_copy_in(DTYPE_STRING, &(struct shape){0}, &view, &k), OK);
  assert_int_equal(tensor_copy_in(DTYPE_INT64, &(struct shape){0}, &otherwise, &o), OK);
  assert_int_equal(table_find(table, k, o, &found), OK);
  assert_int_equal(*(int64_t *)found->data, expected);
  tensor_release(k);
  tensor_release(o);
  tensor_release(found);
}

static struct tensor *strings(int64_t count) {
  struct tensor *t;
  assert_int_equal(tensor_create(DTYPE_STRING, &(struct shape){1, {count}}, &t), OK);
  return t;
}
static struct tensor *numbers(int64_t count) {
  struct tensor *t;
  assert_int_equal(tensor_create(DTYPE_INT64, &(struct shape){1, {count}}, &t), OK);
  memset(t->data, 0, (size_t)tensor_byte_size(t));
  return t;
}

static void a_table_is_filled_once(void **state) {
  (void)state;
  struct fixture f = make(false);
  struct tensor *keys = keys_of("a", ""), *values = numbers_of(1, 2), *others = numbers_of(3, 4);
  assert_false(table_is_initialized(f.table));
  assert_int_equal(table_initialize(f.table, keys, values), OK);
  assert_int_equal(table_initialize(f.table, keys, values), OK);
  assert_int_equal(table_initialize(f.table, keys, others), OK); /* as many: TensorFlow looks no further, and keeps the old */
  struct tensor *more_keys = strings(3), *more = numbers(3);
  assert_int_equal(table_initialize(f.table, more_keys, more), FAILED_PRECONDITION);
  tensor_release(more_keys);
  tensor_release(more);
  assert_int_equal(table_insert(f.table, keys, others, false), UNIMPLEMENTED);
  assert_finds(f.table, "a", 1);
  assert_finds(f.table, "", 2);
  assert_finds(f.table, "b", -1);
  tensor_release(keys);
  tensor_release(values);
  tensor_release(others);
  container_destroy(f.container);
}

static void one_key_with_two_values_is_refused(void **state) {
  (void)state;
  struct fixture f = make(false);
  struct tensor *keys = keys_of("a", "a"), *values = numbers_of(1, 2), *same = numbers_of(1, 1);
  assert_int_equal(table_initialize(f.table, keys, values), FAILED_PRECONDITION);
  assert_false(table_is_initialized(f.table));
  assert_int_equal(table_initialize(f.table, keys, same), OK);
  assert_int_equal(table_size(f.table), 1);
  tensor_release(keys);
  tensor_release(values);
  tensor_release(same);
  container_destroy(f.container);
}

static void removed_keys_are_gone_until_they_come_again(void **state) {
  (void)state;
  struct fixture f = make(true);
  struct tensor *keys = keys_of("x", "y"), *values = numbers_of(1, 2), *out_keys, *out_values;
  for (int round = 0; round < 100; round++) {
    assert_int_equal(table_insert(f.table, keys, values, false), OK);
    assert_finds(f.table, "y", 2);
    assert_int_equal(table_size(f.table), 2);
    assert_int_equal(table_remove(f.table, keys), OK);
    assert_int_equal(table_remove(f.table, keys), OK);
    assert_finds(f.table, "y", -1);
    assert_int_equal(table_size(f.table), 0);
  }
  assert_int_equal(table_insert(f.table, keys, values, true), OK);
  assert_int_equal(table_export(f.table, &out_keys, &out_values), OK);
  assert_int_equal(out_keys->count, 2);
  assert_int_equal(((int64_t *)out_values->data)[0] + ((int64_t *)out_values->data)[1], 3);
  tensor_release(out_keys);
  tensor_release(out_values);
  tensor_release(keys);
  tensor_release(values);
  container_destroy(f.container);
}

static void keys_of_another_dtype_are_refused(void **state) {
  (void)state;
  struct fixture f = make(true);
  struct tensor *numbers = numbers_of(1, 2);
  assert_int_equal(table_insert(f.table, numbers, numbers, false), INVALID_ARGUMENT);
  assert_string_equal(status_text(), "Key must be type string but got int64");
  tensor_release(numbers);
  container_destroy(f.container);
}

static struct fixture make_numbers(const struct dense_spec *dense) {
  struct fixture f;
  struct table_spec spec = {.key = DTYPE_INT64, .value = DTYPE_INT64, .is_mutable = true, .dense = dense};
  bool is_new;
  assert_int_equal(container_create(&f.container), OK);
  assert_int_equal(container_get(f.container, "localhost", "t", &table_maker, &spec, &is_new, (struct resource **)&f.table), OK);
  return f;
}

static void change(struct table *table, int64_t key, bool insert) {
  struct tensor *t;
  assert_int_equal(tensor_copy_in(DTYPE_INT64, &(struct shape){0}, &key, &t), OK);
  assert_int_equal(insert ? table_insert(table, t, t, false) : table_remove(table, t), OK);
  tensor_release(t);
}

/* The order is TensorFlow's, recorded. */
static void what_is_removed_leaves_no_trace(void **state) {
  (void)state;
  static const int64_t order[] = {1090, 1080, 1070, 1060, 1050, 1040, 1020, 1010, 1000, 329, 1030, 322, 315, 308, 301, 294, 287, 280};
  struct fixture f = make_numbers(NULL);
  struct tensor *keys, *values;
  for (int64_t i = 0; i < 48; i++)
    change(f.table, i * 7, true);
  for (int64_t i = 0; i < 40; i++)
    change(f.table, i * 7, false);
  for (int64_t key = 1000; key < 1100; key++) {
    change(f.table, key, true);
    if (key % 10)
      change(f.table, key, false);
  }
  assert_int_equal(table_export(f.table, &keys, &values), OK);
  assert_int_equal(keys->count, 18);
  assert_memory_equal(keys->data, order, sizeof order);
  tensor_release(keys);
  tensor_release(values);
  size_t before = mallinfo2().uordblks;
  for (int64_t key = 10000; key < 110000; key++) {
    change(f.table, key, true);
    change(f.table, key, false);
  }
  assert_true(mallinfo2().uordblks < before + 100000);
  container_destroy(f.container);
}

static void a_table_with_almost_no_load_is_refused(void **state) {
  (void)state;
  struct tensor *keys = numbers_of(-1, -2), *some = numbers_of(5, 6);
  struct tensor empty = {.dtype = DTYPE_INT64, .data = keys->data, .count = 1};
  struct dense_spec spec = {.key = DTYPE_INT64, .value = DTYPE_INT64, .empty_key = &empty, .buckets = 4, .max_load = 1e-30};
  struct fixture f = make_numbers(&spec);
  assert_int_equal(table_insert(f.table, some, some, false), RESOURCE_EXHAUSTED);
  assert_int_equal(table_size(f.table), 0);
  tensor_release(keys);
  tensor_release(some);
  container_destroy(f.container);
}

#define MANY 1000

static struct resource *get(struct container *container, const char *space, int number, bool expect_new) {
  struct table_spec spec = {.key = DTYPE_STRING, .value = DTYPE_INT64, .is_mutable = true};
  struct resource *resource;
  char name[32];
  bool is_new;
  snprintf(name, sizeof name, "t%d", number);
  assert_int_equal(container_get(container, space, name, &table_maker, &spec, &is_new, &resource), OK);
  assert_int_equal(is_new, expect_new);
  return resource;
}

static void each_of_a_thousand_tables_is_found_by_its_name(void **state) {
  (void)state;
  struct container *container;
  struct resource *made[MANY];
  assert_int_equal(container_create(&container), OK);
  for (int i = 0; i < MANY; i++)
    made[i] = get(container, "a", i, true);
  for (int i = 0; i < MANY; i++)
    assert_ptr_equal(get(container, "a", i, false), made[i]);
  assert_ptr_not_equal(get(container, "at1", 7, true), made[7]);
  assert_ptr_not_equal(get(container, "", 7, true), made[7]);
  for (int round = 0; round < 2; round++) {
    made[7]->is_destroyed = true;
    struct resource *again = get(container, "a", 7, true);
    assert_ptr_not_equal(again, made[7]);
    assert_ptr_equal(get(container, "a", 7, false), again);
    made[7] = again;
  }
  container_destroy(container);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_table_is_filled_once),
    cmocka_unit_test(one_key_with_two_values_is_refused),
    cmocka_unit_test(removed_keys_are_gone_until_they_come_again),
    cmocka_unit_test(keys_of_another_dtype_are_refused),
    cmocka_unit_test(what_is_removed_leaves_no_trace),
    cmocka_unit_test(a_table_with_almost_no_load_is_refused),
    cmocka_unit_test(each_of_a_thousand_tables_is_found_by_its_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
