/* Checkpoints: what is written is read again, in whole, in slices and merged. (Files that TensorFlow wrote: test_bundle.c.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checkpoint_v1.h"
#include "base/checkpoint_write.h"
#include "tests/support/temp_path.h"
#include "tests/support/test.h"

static char folder[TEMP_PATH_SIZE];
static struct arena arena;

static const char *path_of(const char *name) { return arena_printf(&arena, "%s/%s", folder, name); }

static struct tensor *floats(int64_t rows, int64_t columns, float first) {
  struct tensor *t;
  assert_int_equal(tensor_create(DTYPE_FLOAT, &(struct shape){2, {rows, columns}}, &t), OK);
  for (int64_t i = 0; i < t->count; i++)
    ((float *)t->data)[i] = first + (float)i;
  return t;
}

static struct tensor *strings(void) {
  struct string_view views[] = {{"abc", 3}, {"", 0}, {"x\0y", 3}};
  struct tensor *t;
  assert_int_equal(tensor_copy_in(DTYPE_STRING, &(struct shape){1, {3}}, views, &t), OK);
  return t;
}

static void what_is_written_is_read_again(void **state) {
  (void)state;
  struct checkpoint_writer *writer;
  struct checkpoint *checkpoint;
  struct checkpoint_value value;
  struct tensor *a = floats(3, 2, 1), *b = strings();
  assert_int_equal(checkpoint_writer_create(path_of("sub/model"), &writer), OK);
  assert_int_equal(checkpoint_writer_add(writer, "w", b), OK);
  assert_int_equal(checkpoint_writer_add(writer, "a/v", a), OK);
  assert_int_equal(checkpoint_writer_add(writer, "w", b), INVALID_ARGUMENT);
  assert_int_equal(checkpoint_writer_close(writer), OK);
  assert_int_equal(checkpoint_open(path_of("sub/model"), &arena, &checkpoint), OK);
  assert_int_equal(checkpoint_read(checkpoint, "a/v", &value), OK);
  assert_int_equal(value.shape.rank, 2);
  assert_memory_equal(value.data, a->data, 24);
  assert_int_equal(checkpoint_read(checkpoint, "w", &value), OK);
  assert_int_equal(((struct string_view *)value.data)[2].size, 3);
  assert_memory_equal(((struct string_view *)value.data)[2].data, "x\0y", 3);
  assert_int_equal(checkpoint_read(checkpoint, "nope", &value), NOT_FOUND);
  tensor_release(a);
  tensor_release(b);
}

/* Enough keys for several blocks of the index, out of order. */
static void many_keys_come_back_sorted(void **state) {
  (void)state;
  struct checkpoint_writer *writer;
  struct checkpoint *checkpoint;
  struct checkpoint_value value;
  struct tensor *t = floats(1, 1, 0);
  assert_int_equal(checkpoint_writer_create(path_of("many"), &writer), OK);
  for (int i = 0; i < 9000; i++) {
    *(float *)t->data = (float)(i * 7919 % 9000);
    assert_int_equal(checkpoint_writer_add(writer, arena_printf(&arena, "layer_%05d/a_long_name_of_a_weight", i * 7919 % 9000), t), OK);
  }
  assert_int_equal(checkpoint_writer_close(writer), OK);
  assert_int_equal(checkpoint_open(path_of("many"), &arena, &checkpoint), OK);
  assert_int_equal(checkpoint_table(checkpoint)->count, 9001);
  for (int i = 0; i < 9000; i += 97) {
    assert_int_equal(checkpoint_read(checkpoint, arena_printf(&arena, "layer_%05d/a_long_name_of_a_weight", i), &value), OK);
    assert_true(*(float *)value.data == (float)i);
  }
  tensor_release(t);
}

/* "w": strings; "a": two slices of [4,1] in the order of rows 2-3, 0-1. */
static const char *write_first_form(void) {
  struct tensor *half = floats(2, 1, 1), *b = strings();
  struct checkpoint_v1_tensor tensors[] = {
    {"a", {2, {4, 1}}, {.rank = 2, .start = {2, 0}, .length = {2, -1}}, half},
    {"w", {1, {3}}, {.rank = 1, .length = {-1}}, b},
    {"a", {2, {4, 1}}, {.rank = 2, .start = {0, 0}, .length = {2, -1}}, half},
  };
  const char *path = path_of("first");
  assert_int_equal(checkpoint_v1_write(path, tensors, 3), OK);
  tensor_release(half);
  tensor_release(b);
  return path;
}

static void the_first_form_is_one_file_of_slices(void **state) {
  (void)state;
  struct checkpoint *checkpoint;
  struct checkpoint_value value;
  assert_int_equal(checkpoint_open(write_first_form(), &arena, &checkpoint), OK);
  assert_int_equal(checkpoint_read(checkpoint, "a", &value), OK);
  assert_int_equal(value.count, 4);
  assert_memory_equal(value.data, (float *)value.data + 2, 8); /* both halves are the same numbers */
  assert_int_equal(checkpoint_read(checkpoint, "w", &value), OK);
  assert_memory_equal(((struct string_view *)value.data)[2].data, "x\0y", 3);
  assert_int_equal(checkpoint_read(checkpoint, "nope", &value), NOT_FOUND);
}

/* Whichever byte is damaged, a checksum sees it, or what is read is what was written. */
static void damage_of_the_first_form_is_found(void **state) {
  (void)state;
  const char *path = write_first_form();
  char bytes[4096];
  FILE *file = fopen(path, "rb");
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  for (size_t i = 0; i < size; i++) {
    struct checkpoint *checkpoint;
    struct checkpoint_value value;
    bytes[i] ^= 0x41;
    file = fopen(path, "wb");
    fwrite(bytes, 1, size, file);
    fclose(file);
    bytes[i] ^= 0x41;
    if (checkpoint_open(path, &arena, &checkpoint) == OK && checkpoint_read(checkpoint, "a", &value) == OK)
      assert_int_equal(value.count, 4);
  }
}

static void write_half(const char *prefix, int64_t first) {
  struct checkpoint_writer *writer;
  struct shape whole = {2, {5, 2}};
  int64_t rows = first ? 2 : 3;
  struct checkpoint_slice slice = {.rank = 2, .start = {first, 0}, .length = {rows, -1}};
  struct tensor *part = floats(rows, 2, (float)(first * 2));
  assert_int_equal(checkpoint_writer_create(prefix, &writer), OK);
  assert_int_equal(checkpoint_writer_add_slice(writer, "part", &whole, &slice, part), OK);
  assert_int_equal(checkpoint_writer_close(writer), OK);
  tensor_release(part);
}

static void slices_of_two_tasks_become_one_tensor(void **state) {
  (void)state;
  struct checkpoint *checkpoint;
  struct checkpoint_value value;
  const char *parts[] = {path_of("tmp/part-0"), path_of("tmp/part-1")};
  write_half(parts[0], 0);
  write_half(parts[1], 3);
  assert_int_equal(checkpoint_merge(parts, 2, path_of("merged"), false), OK);
  assert_int_equal(checkpoint_open(path_of("merged"), &arena, &checkpoint), OK);
  assert_int_equal(checkpoint_shards(checkpoint), 2);
  assert_int_equal(checkpoint_read(checkpoint, "part", &value), OK);
  assert_int_equal(value.count, 10);
  for (int i = 0; i < 10; i++)
    assert_true(((float *)value.data)[i] == (float)i);
  assert_int_not_equal(access(path_of("tmp/part-0.index"), F_OK), 0);
}

static void a_part_that_is_missing_is_named(void **state) {
  (void)state;
  const char *parts[] = {path_of("tmp/gone")};
  assert_int_equal(checkpoint_merge(parts, 1, path_of("never"), false), NOT_FOUND);
  assert_non_null(strstr(status_text(), "tmp/gone"));
}

static int folder_make(void **state) {
  (void)state;
  arena_init(&arena);
  return temp_folder(folder) ? 0 : -1;
}

static int folder_remove(void **state) {
  (void)state;
  int result = system(arena_printf(&arena, "rm -r '%s'", folder));
  arena_deinit(&arena);
  return result;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_written_is_read_again),         cmocka_unit_test(many_keys_come_back_sorted),
    cmocka_unit_test(the_first_form_is_one_file_of_slices),  cmocka_unit_test(damage_of_the_first_form_is_found),
    cmocka_unit_test(slices_of_two_tasks_become_one_tensor), cmocka_unit_test(a_part_that_is_missing_is_named),
  };
  return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
