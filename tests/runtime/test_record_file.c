/* Files of records: compressed ones in several members, and what a dataset gives behind a damaged file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/crc32c.h"
#include "runtime/data/dataset.h"
#include "runtime/data/inflate.h"
#include "runtime/data/record_file.h"
#include "tests/support/test.h"

#define CHUNK 65536 /* of inflate.c */
#define GZIP_WINDOW (MAX_WBITS + 16)

/* A file in memory; its name into `path`. */
static int make_file(const void *data, size_t size, char path[64]) {
  int descriptor = memfd_create("records", MFD_CLOEXEC);
  assert_true(descriptor >= 0);
  assert_int_equal(write(descriptor, data, size), size);
  snprintf(path, 64, "/proc/self/fd/%d", descriptor);
  return descriptor;
}

static struct string_view text_of(const char *text) { return (struct string_view){text, strlen(text)}; }

/* ---- members ---- */

/* One member that is not made smaller; returns its size. */
static size_t put_member(size_t count, uint8_t *out, size_t room) {
  static uint8_t data[CHUNK];
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, 0, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = data;
  z.avail_in = (uInt)count;
  z.next_out = out;
  z.avail_out = (uInt)room;
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  deflateEnd(&z);
  return room - z.avail_out;
}

static void a_member_may_end_with_a_chunk(void **state) {
  (void)state;
  static uint8_t file[2 * CHUNK + 1000];
  size_t count = CHUNK - 200, size, total;
  while ((size = put_member(count, file, sizeof file)) < CHUNK)
    count++;
  assert_int_equal(size, CHUNK);
  size += put_member(100, file + size, sizeof file - size);
  total = count + 100;

  struct wire_buffer bytes = {0};
  assert_int_equal(inflate_bytes(file, size, true, &bytes), OK);
  assert_int_equal(bytes.size, total);
  wire_buffer_free(&bytes);

  char path[64];
  int descriptor = make_file(file, size, path);
  struct record_file f = {0};
  struct string_view got;
  assert_int_equal(record_file_open(&f, text_of(path), text_of("GZIP")), OK);
  assert_int_equal(record_file_bytes(&f, 2 * total, &got), OK);
  assert_int_equal(got.size, total);
  record_file_free(&f);
  close(descriptor);
}

/* ---- damage ---- */

static size_t put_record(uint8_t *out, const char *text, bool is_good) {
  uint64_t size = strlen(text);
  uint32_t sums[2] = {crc32c_mask(crc32c(&size, 8)), crc32c_mask(crc32c(text, size)) + !is_good};
  memcpy(out, &size, 8);
  memcpy(out + 8, &sums[0], 4);
  memcpy(out + 12, text, size);
  memcpy(out + 12 + size, &sums[1], 4);
  return 16 + size;
}

/* As in TensorFlow: what follows is in the next file. */
static void behind_a_damaged_record_comes_the_next_file(void **state) {
  (void)state;
  static const struct program_instr instr;
  uint8_t data[100];
  char paths[2][64];
  size_t size = put_record(data, "a", true);
  size += put_record(data + size, "b", false);
  size += put_record(data + size, "c", true);
  int first = make_file(data, size, paths[0]), second = make_file(data, put_record(data, "d", true), paths[1]);
  struct string_view names[] = {text_of(paths[0]), text_of(paths[1])};
  struct tensor in = {.dtype = DTYPE_STRING, .shape = {1, {2}}, .count = 2, .data = names}, *inputs[] = {&in}, *element;
  struct dataset dataset = {.object = {.references = 2},
                            .kind = dataset_kind_find("TFRecordDataset"),
                            .words = {.instr = &instr},
                            .inputs = inputs,
                            .input_count = 1,
                            .component_count = 1};
  struct cursor *cursor;
  bool end = false;
  assert_int_equal(cursor_create(&dataset, &cursor), OK);
  for (const char *wanted = "a!d"; *wanted; wanted++) {
    assert_int_equal(cursor_next(cursor, NULL, &element, &end), *wanted == '!' ? DATA_LOSS : OK);
    assert_false(end);
    if (*wanted == '!')
      continue;
    assert_int_equal(*((const struct string_view *)element->data)->data, *wanted);
    tensor_release(element);
  }
  assert_int_equal(cursor_next(cursor, NULL, &element, &end), OK);
  assert_true(end);
  cursor_destroy(cursor);
  close(first);
  close(second);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_member_may_end_with_a_chunk),
    cmocka_unit_test(behind_a_damaged_record_comes_the_next_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
