/* Bundles that TensorFlow wrote, in the fuzz corpus: `v` float [2,2], `w` two strings; partitioned variables; and damaged
 * ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bundle_table.h"
#include "compiler/read/read.h"
#include "tests/support/temp_path.h"
#include "tests/support/test.h"

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus/"

static struct arena arena;
static char folder[TEMP_PATH_SIZE];
static struct {
  char index[1024], data[1024];
  size_t index_size, data_size;
} good;

static size_t slurp(const char *path, char *data) {
  FILE *f = fopen(path, "rb");
  size_t size = f ? fread(data, 1, 1024, f) : 0;
  if (f)
    fclose(f);
  return size;
}

static void write_file(const char *name, const void *data, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  fclose(f);
}

static int folder_make(void **state) {
  (void)state;
  arena_init(&arena);
  good.index_size = slurp(CORPUS "variables.index", good.index);
  good.data_size = slurp(CORPUS "variables.data-00000-of-00001", good.data);
  return temp_folder(folder) && good.index_size && good.data_size ? 0 : -1;
}

static int folder_remove(void **state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/b.index", folder);
  unlink(path);
  snprintf(path, sizeof path, "%s/b.data-00000-of-00001", folder);
  unlink(path);
  arena_deinit(&arena);
  return rmdir(folder);
}

/* Opens a copy with those bytes. */
static status copy_open(const char *index, size_t index_size, const char *data, size_t data_size, struct bundle **out) {
  char prefix[128];
  write_file("b.index", index, index_size);
  write_file("b.data-00000-of-00001", data, data_size);
  snprintf(prefix, sizeof prefix, "%s/b", folder);
  return bundle_open(prefix, &arena, out);
}

static void tensors_are_found_by_key(void **state) {
  (void)state;
  struct bundle *b;
  struct constant k;
  static const float expected[] = {1, 2, 3, 4};
  assert_int_equal(bundle_open(CORPUS "variables", &arena, &b), OK);
  assert_int_equal(bundle_read(b, "v", &k), OK);
  assert_int_equal(k.dtype, DTYPE_FLOAT);
  assert_int_equal(k.rank, 2);
  assert_memory_equal(k.data, expected, sizeof expected);
  assert_int_equal(bundle_read(b, "w", &k), OK);
  const struct string_view *v = k.data;
  assert_int_equal(k.count, 2);
  assert_int_equal(v[0].size, 3);
  assert_memory_equal(v[0].data, "abc", 3);
  assert_int_equal(v[1].size, 0);
}

/* Slices along the last dimension from 0, 3000 and 6000, and along the first from 0 and 75: keys with numbers of one, two
 * and three bytes. */
static void slices_of_partitioned_variables_are_joined(void **state) {
  (void)state;
  struct bundle *b;
  struct constant k;
  assert_int_equal(bundle_open(CORPUS "partitioned", &arena, &b), OK);
  assert_int_equal(bundle_read(b, "part", &k), OK);
  assert_int_equal(k.count, 2 * 9000);
  for (int64_t i = 0; i < k.count; i++)
    assert_int_equal(((const uint8_t *)k.data)[i], i & 255);
  assert_int_equal(bundle_read(b, "rows", &k), OK);
  assert_int_equal(k.count, 150 * 2);
  for (int64_t i = 0; i < k.count; i++)
    assert_int_equal(((const uint8_t *)k.data)[i], i & 255);
}

static void a_key_that_is_not_there_is_named_as_tensorflow_names_it(void **state) {
  (void)state;
  struct bundle *b;
  struct constant k;
  assert_int_equal(bundle_open(CORPUS "variables", &arena, &b), OK);
  assert_int_equal(bundle_read(b, "nope", &k), NOT_FOUND);
  assert_string_equal(status_text(), "Key nope not found in checkpoint");
}

static void a_bundle_that_is_not_there_is_not_found(void **state) {
  (void)state;
  struct bundle *b;
  assert_int_equal(bundle_open("/nowhere/variables", &arena, &b), NOT_FOUND);
  assert_non_null(strstr(status_text(), "/nowhere/variables"));
}

static void a_changed_byte_of_the_index_is_noticed(void **state) {
  (void)state;
  struct bundle *b;
  struct constant k;
  for (size_t i = 0; i < good.index_size; i++) {
    char index[1024];
    memcpy(index, good.index, good.index_size);
    index[i] ^= 1;
    if (copy_open(index, good.index_size, good.data, good.data_size, &b) == OK) {
      assert_int_equal(bundle_read(b, "v", &k), OK); /* only what nobody needs: padding and the metaindex */
      assert_true(i >= 61);
    }
  }
}

static void a_changed_byte_of_the_data_is_noticed(void **state) {
  (void)state;
  for (size_t i = 0; i < good.data_size; i++) {
    struct bundle *b;
    struct constant k;
    char data[1024];
    memcpy(data, good.data, good.data_size);
    data[i] ^= 1;
    assert_int_equal(copy_open(good.index, good.index_size, data, good.data_size, &b), OK);
    status v = bundle_read(b, "v", &k), w = bundle_read(b, "w", &k);
    assert_true((v == DATA_LOSS) != (w == DATA_LOSS));
  }
}

static void cut_off_files_are_noticed(void **state) {
  (void)state;
  struct bundle *b;
  struct constant k;
  for (size_t size = 0; size < good.index_size; size++)
    assert_int_equal(copy_open(good.index, size, good.data, good.data_size, &b), DATA_LOSS);
  assert_int_equal(copy_open(good.index, good.index_size, good.data, good.data_size - 1, &b), OK);
  assert_true((bundle_read(b, "v", &k) == DATA_LOSS) != (bundle_read(b, "w", &k) == DATA_LOSS));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(tensors_are_found_by_key),
    cmocka_unit_test(slices_of_partitioned_variables_are_joined),
    cmocka_unit_test(a_key_that_is_not_there_is_named_as_tensorflow_names_it),
    cmocka_unit_test(a_bundle_that_is_not_there_is_not_found),
    cmocka_unit_test(a_changed_byte_of_the_index_is_noticed),
    cmocka_unit_test(a_changed_byte_of_the_data_is_noticed),
    cmocka_unit_test(cut_off_files_are_noticed),
  };
  return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
