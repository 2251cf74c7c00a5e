#include "base/tensor.h"

#include <string.h>

#include "base/crc32c.h"
#include "tests/support/test.h"

static void counts_are_products_or_refused(void **state) {
  (void)state;
  static const struct {
    struct shape shape;
    int64_t count;
  } cases[] = {
    {{0, {0}}, 1},
    {{2, {2, 3}}, 6},
    {{3, {2, 0, 3}}, 0},
    {{1, {-1}}, -1},
    {{2, {0, -1}}, -1},
    {{2, {INT64_C(1) << 40, 1}}, INT64_C(1) << 40},
    {{2, {INT64_C(1) << 40, 2}}, -1},
    {{3, {INT64_C(1) << 32, INT64_C(1) << 32, 0}}, -1},
    {{2, {INT64_MAX, INT64_MAX}}, -1},
    {{9, {1, 1, 1, 1, 1, 1, 1, 1, 1}}, 1},
    {{LIMIT_RANK + 1, {1, 1, 1, 1, 1, 1, 1, 1}}, -1},
    {{-1, {0}}, -1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(shape_count(&cases[i].shape), cases[i].count);
}

static void shapes_are_printed(void **state) {
  (void)state;
  assert_string_equal(shape_text(&(struct shape){2, {2, 3}}), "[2,3]");
  assert_string_equal(shape_text(&(struct shape){0, {0}}), "[]");
}

static void a_tensor_is_aligned_and_counted(void **state) {
  (void)state;
  struct tensor *t;
  assert_int_equal(tensor_create(DTYPE_FLOAT, &(struct shape){2, {3, 5}}, &t), OK);
  assert_int_equal((uintptr_t)t->data % 64, 0);
  assert_int_equal(tensor_byte_size(t), 60);
  assert_ptr_equal(tensor_retain(t), t);
  tensor_release(t);
  memset(t->data, 1, 60);
  tensor_release(t);
  tensor_release(NULL);
}

static void what_is_no_tensor_is_refused(void **state) {
  (void)state;
  struct tensor *t;
  assert_int_equal(tensor_create((enum dtype)99, &(struct shape){0, {0}}, &t), INVALID_ARGUMENT);
  assert_int_equal(tensor_create(DTYPE_FLOAT, &(struct shape){1, {-3}}, &t), INVALID_ARGUMENT);
}

static void a_copy_of_strings_has_bytes_of_its_own(void **state) {
  (void)state;
  char bytes[] = "abcdef";
  struct string_view views[] = {{bytes, 2}, {bytes + 2, 0}, {bytes + 2, 4}};
  struct tensor *t, *copy;
  assert_int_equal(tensor_copy_in(DTYPE_STRING, &(struct shape){1, {3}}, views, &t), OK);
  assert_int_equal(tensor_clone(t, &copy), OK);
  memset(bytes, 'x', sizeof bytes);
  tensor_release(t);
  const struct string_view *v = copy->data;
  assert_int_equal(v[0].size, 2);
  assert_memory_equal(v[0].data, "ab", 2);
  assert_int_equal(v[1].size, 0);
  assert_memory_equal(v[2].data, "cdef", 4);
  tensor_release(copy);
}

static void tensors_are_equal_by_what_they_hold(void **state) {
  (void)state;
  static const int32_t numbers[] = {1, 2}, others[] = {1, 3};
  static const struct string_view texts[] = {{"ab", 2}, {"c", 1}}, parts[] = {{"a", 1}, {"bc", 2}};
  static const struct {
    enum dtype dtype;
    struct shape shape;
    const void *data;
  } of[] = {
    {DTYPE_INT32, {1, {2}}, numbers}, {DTYPE_INT32, {1, {2}}, others},  {DTYPE_INT32, {2, {1, 2}}, numbers},
    {DTYPE_FLOAT, {1, {2}}, numbers}, {DTYPE_STRING, {1, {2}}, texts},  {DTYPE_STRING, {1, {2}}, parts},
    {DTYPE_INT32, {1, {0}}, NULL},    {DTYPE_INT32, {2, {0, 1}}, NULL},
  };
  enum { COUNT_OF = sizeof of / sizeof *of };
  struct tensor *t[COUNT_OF], *again[COUNT_OF];
  for (size_t i = 0; i < COUNT_OF; i++) {
    assert_int_equal(tensor_copy_in(of[i].dtype, &of[i].shape, of[i].data, &t[i]), OK);
    assert_int_equal(tensor_clone(t[i], &again[i]), OK);
  }
  for (size_t i = 0; i < COUNT_OF; i++) {
    assert_true(tensor_hash(t[i]) == tensor_hash(again[i]));
    for (size_t k = 0; k < COUNT_OF; k++)
      assert_int_equal(tensor_equal(t[i], again[k]), i == k);
  }
  for (size_t i = 0; i < COUNT_OF; i++) {
    tensor_release(t[i]);
    tensor_release(again[i]);
  }
}

static void given_memory_is_given_back(struct tensor *t) { ++*(int *)t->owner; }

static void memory_of_others_goes_back_to_them(void **state) {
  (void)state;
  int times = 0;
  float number = 1;
  struct tensor *t;
  assert_int_equal(tensor_create(DTYPE_FLOAT, &(struct shape){1, {0}}, &t), OK);
  t->data = &number;
  t->owner = &times;
  t->release_data = given_memory_is_given_back;
  tensor_release(t);
  assert_int_equal(times, 1);
}

/* RFC 3720, appendix B.4 */
static void checksums_are_those_of_the_standard(void **state) {
  (void)state;
  unsigned char bytes[32] = {0};
  assert_int_equal(crc32c(bytes, 32), 0x8a9136aa);
  memset(bytes, 0xff, 32);
  assert_int_equal(crc32c(bytes, 32), 0x62a8ab43);
  for (unsigned i = 0; i < 32; i++)
    bytes[i] = (unsigned char)i;
  assert_int_equal(crc32c(bytes, 32), 0x46dd794e);
  assert_int_equal(crc32c_extend(crc32c(bytes, 11), bytes + 11, 21), 0x46dd794e);
  assert_int_equal(crc32c(NULL, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_are_products_or_refused),         cmocka_unit_test(shapes_are_printed),
    cmocka_unit_test(a_tensor_is_aligned_and_counted),        cmocka_unit_test(what_is_no_tensor_is_refused),
    cmocka_unit_test(a_copy_of_strings_has_bytes_of_its_own), cmocka_unit_test(tensors_are_equal_by_what_they_hold),
    cmocka_unit_test(memory_of_others_goes_back_to_them),     cmocka_unit_test(checksums_are_those_of_the_standard),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
