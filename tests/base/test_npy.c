#include "base/npy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_path.h"
#include "tests/support/test.h"

static char folder[TEMP_PATH_SIZE];

static int folder_make(void **state) {
  (void)state;
  return temp_folder(folder) ? 0 : -1;
}

static int folder_remove(void **state) {
  (void)state;
  return rmdir(folder); /* fails when a test left something behind */
}

static const char *place(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* A version 1.0 file with that header and data. */
static status parse(const char *header, const void *data, size_t size, struct tensor **out) {
  unsigned char file[1024] = "\x93NUMPY\x01";
  size_t length = strlen(header);
  file[8] = (unsigned char)length;
  file[9] = (unsigned char)(length >> 8);
  memcpy(file + 10, header, length);
  memcpy(file + 10 + length, data, size);
  return npy_parse(file, 10 + length + size, "test", out);
}

static void numpy_types_become_ours(void **state) {
  (void)state;
  static const struct {
    const char *descr;
    enum dtype dtype;
  } cases[] = {
    {"<f4", DTYPE_FLOAT},  {"<f8", DTYPE_DOUBLE}, {"<f2", DTYPE_HALF},   {"<V2", DTYPE_BFLOAT16},  {"|b1", DTYPE_BOOL},
    {"|i1", DTYPE_INT8},   {"<i2", DTYPE_INT16},  {"<i4", DTYPE_INT32},  {"<i8", DTYPE_INT64},     {"|u1", DTYPE_UINT8},
    {"<u2", DTYPE_UINT16}, {"<u4", DTYPE_UINT32}, {"<u8", DTYPE_UINT64}, {"<c8", DTYPE_COMPLEX64}, {"<c16", DTYPE_COMPLEX128},
    {"|S5", DTYPE_STRING}, {"=f4", DTYPE_FLOAT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char header[128], data[64] = {0};
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }\n", cases[i].descr);
    struct tensor *t;
    assert_int_equal(parse(header, data, sizeof data, &t), OK);
    assert_int_equal(t->dtype, cases[i].dtype);
    assert_int_equal(t->count, 2);
    tensor_release(t);
  }
}

#define ELEVEN_ONES "1,1,1,1,1,1,1,1,1,1,1"
#define THIRTY_THREE_ONES ELEVEN_ONES "," ELEVEN_ONES "," ELEVEN_ONES
static void damaged_files_are_refused(void **state) {
  (void)state;
  static const char *const headers[] = {
    "",
    "{",
    "{}",
    "{'descr': '<f4'}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, }",
    "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999999,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1099511627776, 1099511627776)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (" THIRTY_THREE_ONES ")}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1000,)}",
    "{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<f99999999999', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '|O8', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<i4S', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '|S0', 'fortran_order': False, 'shape': (1099511627776,)}",
    "{'descr': '|S268435456', 'fortran_order': False, 'shape': (1099511627776,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'other': 3}",
  };
  struct tensor *t = NULL;
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
    assert_int_equal(parse(headers[i], "\0\0\0\0\0\0\0\0", 8, &t), INVALID_ARGUMENT);
  assert_int_equal(npy_parse("\x93NUMPY\x01\x00\xff\xff{", 11, "test", &t), INVALID_ARGUMENT);
  assert_int_equal(npy_parse("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, "test", &t), INVALID_ARGUMENT);
  assert_int_equal(npy_parse("\x93NUMPY\x09\x00\x00\x00", 10, "test", &t), INVALID_ARGUMENT);
  assert_int_equal(npy_parse("", 0, "test", &t), INVALID_ARGUMENT);
}

static void columns_first_becomes_rows_first(void **state) {
  (void)state;
  static const int32_t stored[] = {0, 3, 1, 4, 2, 5}, expected[] = {0, 1, 2, 3, 4, 5};
  struct tensor *t;
  assert_int_equal(parse("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3)}\n", stored, sizeof stored, &t), OK);
  assert_memory_equal(t->data, expected, sizeof expected);
  tensor_release(t);
}

static void big_endian_numbers_are_turned_round(void **state) {
  (void)state;
  struct tensor *t;
  assert_int_equal(parse("{'descr': '>i4', 'fortran_order': False, 'shape': (1,)}\n", "\1\2\3\4", 4, &t), OK);
  assert_int_equal(*(int32_t *)t->data, 0x01020304);
  tensor_release(t);
  assert_int_equal(parse("{'descr': '>c8', 'fortran_order': False, 'shape': ()}\n", "\x3f\x80\0\0\x40\0\0\0", 8, &t), OK);
  assert_true(((float *)t->data)[0] == 1.0f && ((float *)t->data)[1] == 2.0f);
  tensor_release(t);
}

static void padding_of_strings_is_dropped(void **state) {
  (void)state;
  struct tensor *t;
  assert_int_equal(parse("{'descr': '|S3', 'fortran_order': False, 'shape': (3,)}\n", "abca\0\0\0x\0", 9, &t), OK);
  const struct string_view *v = t->data;
  assert_int_equal(v[0].size, 3);
  assert_int_equal(v[1].size, 1);
  assert_int_equal(v[2].size, 2); /* the NUL in front is the string's */
  tensor_release(t);
}

static void characters_become_utf8(void **state) {
  (void)state;
  static const uint32_t stored[] = {'a', 0, 0, 0xe9, 0x20ac, 0x1f600};
  uint32_t turned[6];
  for (int i = 0; i < 6; i++)
    turned[i] = __builtin_bswap32(stored[i]);
  for (int big = 0; big < 2; big++) {
    struct tensor *t;
    assert_int_equal(
      parse(big ? "{'descr': '>U3', 'fortran_order': False, 'shape': (2,)}\n" : "{'descr': '<U3', 'fortran_order': False, 'shape': (2,)}\n",
            big ? turned : stored, sizeof stored, &t),
      OK);
    const struct string_view *v = t->data;
    assert_int_equal(t->dtype, DTYPE_STRING);
    assert_int_equal(v[0].size, 1);
    assert_memory_equal(v[0].data, "a", 1);
    assert_int_equal(v[1].size, 9);
    assert_memory_equal(v[1].data, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9);
    tensor_release(t);
  }
}

static void numbers_that_are_no_character_and_objects_are_refused(void **state) {
  (void)state;
  struct tensor *t;
  static const uint32_t bad[] = {0xd800, 0x110000, 0xffffffff};
  for (int i = 0; i < 3; i++)
    assert_int_equal(parse("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}\n", &bad[i], 4, &t), INVALID_ARGUMENT);
  assert_int_equal(parse("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n", "\x80\x04", 2, &t), INVALID_ARGUMENT);
  assert_non_null(strstr(status_text(), "astype('S')"));
}

static void what_is_written_is_read_again(void **state) {
  (void)state;
  for (int d = 1; d < DTYPE_COUNT; d++) {
    if ((!*dtype_npy((enum dtype)d) && d != DTYPE_BFLOAT16) || (d >= DTYPE_QINT8 && d <= DTYPE_QUINT16 && d != DTYPE_BFLOAT16))
      continue;
    struct tensor *t, *back;
    assert_int_equal(tensor_create((enum dtype)d, &(struct shape){3, {2, 1, 3}}, &t), OK);
    if (d == DTYPE_STRING)
      for (int i = 0; i < 6; i++)
        ((struct string_view *)t->data)[i] = (struct string_view){"abcdef", (uint64_t)i};
    else
      memset(t->data, 1, (size_t)tensor_byte_size(t));
    assert_int_equal(npy_write(place("a.npy"), t), OK);
    assert_int_equal(npy_read(place("a.npy"), &back), OK);
    assert_int_equal(back->dtype, d);
    assert_string_equal(shape_text(&back->shape), "[2,1,3]");
    if (d != DTYPE_STRING)
      assert_memory_equal(back->data, t->data, (size_t)tensor_byte_size(t));
    else
      assert_int_equal(((struct string_view *)back->data)[5].size, 5);
    tensor_release(t);
    tensor_release(back);
  }
  unlink(place("a.npy"));
}

static void values_are_stacked(void **state) {
  (void)state;
  struct npy_writer *w;
  struct tensor *t, *back;
  assert_int_equal(npy_writer_create(place("s.npy"), &w), OK);
  assert_int_equal(tensor_create(DTYPE_INT32, &(struct shape){1, {2}}, &t), OK);
  for (int32_t step = 0; step < 5; step++) {
    ((int32_t *)t->data)[0] = step;
    ((int32_t *)t->data)[1] = -step;
    assert_int_equal(npy_writer_add(w, t), OK);
  }
  assert_int_not_equal(access(place("s.npy"), F_OK), 0); /* nothing half-written under the name */
  assert_int_equal(npy_writer_close(w, true), OK);
  assert_int_equal(npy_read(place("s.npy"), &back), OK);
  assert_string_equal(shape_text(&back->shape), "[5,2]");
  assert_int_equal(((int32_t *)back->data)[9], -4);
  tensor_release(t);
  tensor_release(back);
  unlink(place("s.npy"));
}

static void strings_are_stacked_to_the_widest(void **state) {
  (void)state;
  struct npy_writer *w;
  struct tensor *t, *back;
  assert_int_equal(npy_writer_create(place("s.npy"), &w), OK);
  assert_int_equal(tensor_create(DTYPE_STRING, &(struct shape){0, {0}}, &t), OK);
  for (uint64_t step = 0; step < 4; step++) {
    *(struct string_view *)t->data = (struct string_view){"abcd", step};
    assert_int_equal(npy_writer_add(w, t), OK);
  }
  assert_int_equal(npy_writer_close(w, true), OK);
  assert_int_equal(npy_read(place("s.npy"), &back), OK);
  for (uint64_t step = 0; step < 4; step++)
    assert_int_equal(((struct string_view *)back->data)[step].size, step);
  tensor_release(t);
  tensor_release(back);
  unlink(place("s.npy"));
}

static void values_that_disagree_are_not_stacked(void **state) {
  (void)state;
  struct npy_writer *w;
  struct tensor *a, *b, *h;
  assert_int_equal(npy_writer_create(place("s.npy"), &w), OK);
  assert_int_equal(tensor_create(DTYPE_BOOL, &(struct shape){1, {2}}, &a), OK);
  assert_int_equal(tensor_create(DTYPE_BOOL, &(struct shape){1, {3}}, &b), OK);
  assert_int_equal(tensor_create(DTYPE_RESOURCE, &(struct shape){1, {2}}, &h), OK);
  memset(a->data, 0, 2);
  assert_int_equal(npy_writer_add(w, a), OK);
  assert_int_equal(npy_writer_add(w, b), INVALID_ARGUMENT);
  assert_int_equal(npy_writer_add(w, h), INVALID_ARGUMENT);
  npy_writer_destroy(w); /* the folder must be empty afterwards */
  tensor_release(a);
  tensor_release(b);
  tensor_release(h);
}

static void files_that_cannot_be_are_named(void **state) {
  (void)state;
  struct tensor *t;
  struct npy_writer *w;
  assert_int_equal(npy_read("/nowhere/x.npy", &t), NOT_FOUND);
  assert_non_null(strstr(status_text(), "/nowhere/x.npy"));
  assert_int_equal(npy_read("/tmp", &t), INVALID_ARGUMENT);
  assert_int_equal(npy_writer_create("/nowhere/x.npy", &w), DATA_LOSS);
  assert_non_null(strstr(status_text(), "/nowhere/x.npy"));
}

/* Devices and pipes stay what they are, and links lead where they led. */
static void what_is_no_plain_file_is_written_to(void **state) {
  (void)state;
  struct tensor *t, *back;
  struct stat is;
  int ends[2];
  char path[64], bytes[4096];
  assert_int_equal(tensor_create(DTYPE_INT32, &(struct shape){1, {3}}, &t), OK);
  memcpy(t->data, (int32_t[]){1, 2, 3}, 12);
  assert_int_equal(mkfifo(place("pipe"), 0600), 0);
  int keeps_open = open(place("pipe"), O_RDWR);
  assert_int_equal(npy_write(place("pipe"), t), OK);
  ssize_t size = read(keeps_open, bytes, sizeof bytes);
  close(keeps_open);
  assert_int_equal(npy_parse(bytes, (size_t)size, "pipe", &back), OK);
  assert_int_equal(((int32_t *)back->data)[2], 3);
  assert_int_equal(back->shape.rank, 1);
  tensor_release(back);
  assert_true(stat(place("pipe"), &is) == 0 && S_ISFIFO(is.st_mode));
  assert_int_equal(npy_write("/dev/null", t), OK);
  assert_true(stat("/dev/null", &is) == 0 && S_ISCHR(is.st_mode));
  assert_int_equal(npy_write("/dev/full", t), DATA_LOSS);
  assert_non_null(strstr(status_text(), "/dev/full"));
  assert_int_equal(pipe(ends), 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
  assert_int_equal(npy_write(path, t), OK);
  assert_true(read(ends[0], bytes, sizeof bytes) > 12);
  close(ends[0]);
  close(ends[1]);
  assert_int_equal(symlink("plain.npy", place("link")), 0);
  assert_int_equal(npy_write(place("plain.npy"), t), OK);
  assert_int_equal(npy_write(place("link"), t), OK);
  assert_true(lstat(place("link"), &is) == 0 && S_ISLNK(is.st_mode));
  assert_int_equal(npy_write(place("."), t), DATA_LOSS);
  unlink(place("pipe"));
  unlink(place("link"));
  unlink(place("plain.npy"));
  tensor_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numpy_types_become_ours),
    cmocka_unit_test(damaged_files_are_refused),
    cmocka_unit_test(columns_first_becomes_rows_first),
    cmocka_unit_test(big_endian_numbers_are_turned_round),
    cmocka_unit_test(padding_of_strings_is_dropped),
    cmocka_unit_test(characters_become_utf8),
    cmocka_unit_test(numbers_that_are_no_character_and_objects_are_refused),
    cmocka_unit_test(what_is_written_is_read_again),
    cmocka_unit_test(values_are_stacked),
    cmocka_unit_test(strings_are_stacked_to_the_widest),
    cmocka_unit_test(values_that_disagree_are_not_stacked),
    cmocka_unit_test(files_that_cannot_be_are_named),
    cmocka_unit_test(what_is_no_plain_file_is_written_to),
  };
  return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
