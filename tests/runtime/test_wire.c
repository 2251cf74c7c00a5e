/* test_wire.c: protobuf's wire format and TensorProto, good and bad. */
#include <stdlib.h>
#include <string.h>
#include "runtime/value/tensor_message.h"
#include "base/wire.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void fields_survive_writing_and_reading(void **state) {
  (void)state;
  struct wire_buffer b = {0};
  wire_put_varint(&b, 1, UINT64_MAX);
  wire_put_text(&b, 2, "text");
  wire_put_fixed64(&b, 3, 0x0102030405060708);
  size_t inner = wire_begin(&b, 4);
  wire_put_varint(&b, 1, 300);
  wire_end(&b, inner);
  struct wire wire = wire_over(b.data, b.size);
  struct wire_field f;
  assert_true(wire_next(&wire, &f) && f.number == 1 && f.value == UINT64_MAX);
  assert_true(wire_next(&wire, &f) && f.number == 2 && f.size == 4 && memcmp(f.data, "text", 4) == 0);
  assert_true(wire_next(&wire, &f) && f.number == 3 && f.value == 0x0102030405060708);
  assert_true(wire_next(&wire, &f) && f.number == 4);
  struct wire in = wire_inside(&f);
  assert_true(wire_next(&in, &f) && f.number == 1 && f.value == 300);
  assert_false(wire_next(&in, &f) || in.is_bad);
  assert_false(wire_next(&wire, &f) || wire.is_bad);
  wire_buffer_free(&b);
}

static void what_is_cut_or_no_message_is_bad(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t size;
  } cases[] = {
    {"\x08", 1},                                              /* a number that does not come */
    {"\x08\x80", 2},                                          /* half a number */
    {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* eleven bytes of one */
    {"\x0a\x05"
     "abc",
     5},                                                  /* bytes that are not there */
    {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* 2^64 - 1 of them */
    {"\x09\x01\x02", 3},                                  /* half a fixed64 */
    {"\x0d\x01", 2},
    {"\x0b", 1},     /* a group */
    {"\x0e", 1},     /* type 6 */
    {"\x00\x00", 2}, /* field 0 */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct wire wire = wire_over((const uint8_t *)cases[i].bytes, cases[i].size);
    struct wire_field f;
    assert_false(wire_next(&wire, &f));
    assert_true(wire.is_bad);
  }
}

/* TensorProto bytes: dtype, a shape of one dimension (-2: scalar, -3: unknown rank), then raw fields. */
static struct tensor *read_proto(int dtype, int64_t dim, const char *fields, size_t size, status *code) {
  struct wire_buffer b = {0};
  struct tensor *tensor = NULL;
  wire_put_varint(&b, 1, (uint64_t)dtype);
  size_t shape = wire_begin(&b, 2);
  if (dim == -3)
    wire_put_varint(&b, 3, 1);
  else if (dim != -2) {
    size_t inner = wire_begin(&b, 2);
    wire_put_varint(&b, 1, (uint64_t)dim);
    wire_end(&b, inner);
  }
  wire_end(&b, shape);
  wire_put_raw(&b, fields, size);
  *code = tensor_message_read(wire_over(b.data, b.size), &tensor);
  wire_buffer_free(&b);
  return tensor;
}

#define BYTES(text) text, sizeof text - 1

static void tensors_are_read_in_every_form(void **state) {
  (void)state;
  static const struct {
    int dtype;
    int64_t dim;
    const char *fields;
    size_t size;
    const char *elements;
    size_t element_bytes;
  } cases[] = {
    {DTYPE_INT32, 2, BYTES("\x22\x08\1\0\0\0\2\0\0\0"), BYTES("\1\0\0\0\2\0\0\0")},                     /* content */
    {DTYPE_INT32, 2, BYTES("\x3a\x02\x01\x02"), BYTES("\1\0\0\0\2\0\0\0")},                             /* packed */
    {DTYPE_INT32, 2, BYTES("\x38\x01\x38\x02"), BYTES("\1\0\0\0\2\0\0\0")},                             /* not packed */
    {DTYPE_INT32, 3, BYTES("\x38\x07"), BYTES("\7\0\0\0\7\0\0\0\7\0\0\0")},                             /* the last is repeated */
    {DTYPE_INT32, 1, BYTES("\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), BYTES("\xff\xff\xff\xff")}, /* -1 */
    {DTYPE_INT32, 2, BYTES(""), BYTES("\0\0\0\0\0\0\0\0")},                                             /* nothing: zeros */
    {DTYPE_UINT8, 2, BYTES("\x3a\x03\x01\x02\x03"), BYTES("\1\2")},                                     /* too many: cut */
    {DTYPE_FLOAT, -2, BYTES("\x2d\0\0\x80\x3f"), BYTES("\0\0\x80\x3f")},                                /* a scalar 1.0 */
    {DTYPE_DOUBLE, 1, BYTES("\x32\x08\0\0\0\0\0\0\xf0\x3f"), BYTES("\0\0\0\0\0\0\xf0\x3f")},
    {DTYPE_COMPLEX64, 1, BYTES("\x4a\x08\0\0\x80\x3f\0\0\0\x40"), BYTES("\0\0\x80\x3f\0\0\0\x40")},
    {DTYPE_BOOL, 3, BYTES("\x5a\x02\x01\x00"), BYTES("\1\0\0")},
    {DTYPE_HALF, 2, BYTES("\x6a\x02\x80\x78"), BYTES("\0\x3c\0\x3c")},
    {DTYPE_UINT64, 1, BYTES("\x88\x01\x05"), BYTES("\5\0\0\0\0\0\0\0")},
    {DTYPE_FLOAT, 0, BYTES(""), BYTES("")},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    status code;
    struct tensor *tensor = read_proto(cases[i].dtype, cases[i].dim, cases[i].fields, cases[i].size, &code);
    assert_int_equal(code, OK);
    assert_int_equal(tensor_byte_size(tensor), cases[i].element_bytes);
    if (cases[i].element_bytes)
      assert_memory_equal(tensor->data, cases[i].elements, cases[i].element_bytes);
    tensor_release(tensor);
  }
}

static void strings_are_read_from_content_and_values(void **state) {
  (void)state;
  static const struct {
    const char *fields;
    size_t size;
    const char *second;
  } cases[] = {
    {BYTES("\x22\x05\x01\x02"
           "xyz"),
     "yz"},
    {BYTES("\x42\x01x\x42\x02yz"), "yz"},
    {BYTES("\x42\x02yz"), "yz"},
    {BYTES(""), ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    status code;
    struct tensor *tensor = read_proto(DTYPE_STRING, 2, cases[i].fields, cases[i].size, &code);
    assert_int_equal(code, OK);
    const struct string_view *views = tensor->data;
    assert_int_equal(views[1].size, strlen(cases[i].second));
    assert_memory_equal(views[1].data, cases[i].second, views[1].size);
    tensor_release(tensor);
  }
}

static void tensors_that_lie_are_refused(void **state) {
  (void)state;
  static const struct {
    int dtype;
    int64_t dim;
    const char *fields;
    size_t size;
  } cases[] = {
    {DTYPE_FLOAT, 2, BYTES("\x22\x04\0\0\x80\x3f")}, /* four bytes for eight */
    {DTYPE_FLOAT, -1, BYTES("")},
    {DTYPE_FLOAT, -3, BYTES("")},                               /* unknown rank */
    {DTYPE_FLOAT, INT64_C(1) << 39, BYTES("\x2d\0\0\x80\x3f")}, /* terabytes from one number */
    {DTYPE_FLOAT, INT64_MAX, BYTES("")},
    {DTYPE_STRING, INT64_C(1) << 39, BYTES("\x42\x01x")},
    {DTYPE_STRING, 2,
     BYTES("\x22\x05\x01\x03"
           "xyz")}, /* lengths do not add up */
    {DTYPE_STRING, 2,
     BYTES("\x22\x05\x01\x01"
           "xyz")},
    {DTYPE_STRING, 2, BYTES("\x22\x02\xff\xff")},
    {DTYPE_RESOURCE, 1, BYTES("")},
    {0, 1, BYTES("")},
    {101, 1, BYTES("")},
    {DTYPE_FLOAT, 1, BYTES("\x22\x7f")},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    status code;
    assert_null(read_proto(cases[i].dtype, cases[i].dim, cases[i].fields, cases[i].size, &code));
    assert_int_equal(code, INVALID_ARGUMENT);
  }
}

static void a_long_string_is_not_multiplied(void **state) {
  (void)state;
  struct wire_buffer b = {0};
  char *megabyte = calloc(1, 1 << 20);
  status code;
  wire_put_bytes(&b, 8, megabyte, 1 << 20);
  assert_null(read_proto(DTYPE_STRING, 1000000, (const char *)b.data, b.size, &code));
  assert_int_equal(code, INVALID_ARGUMENT);
  wire_buffer_free(&b);
  free(megabyte);
}

static void a_written_tensor_is_read_again(void **state) {
  (void)state;
  static const struct string_view views[] = {{"a", 1}, {"", 0}, {"ccc", 3}};
  struct tensor *tensors[3], *back;
  assert_int_equal(tensor_copy_in(DTYPE_STRING, &(struct shape){2, {3, 1}}, views, &tensors[0]), OK);
  assert_int_equal(tensor_copy_in(DTYPE_INT16, &(struct shape){2, {1, 2}}, "\1\0\2\0", &tensors[1]), OK);
  assert_int_equal(tensor_copy_in(DTYPE_DOUBLE, &(struct shape){0, {0}}, "\0\0\0\0\0\0\xf0\x3f", &tensors[2]), OK);
  for (int i = 0; i < 3; i++) {
    struct wire_buffer b = {0};
    struct wire_field named, field;
    tensor_message_write(&b, 1, "x:0", tensors[i]);
    struct wire wire = wire_over(b.data, b.size);
    assert_true(wire_next(&wire, &named) && named.number == 1 && wire.at == wire.end);
    struct wire inside = wire_inside(&named);
    assert_true(wire_next(&inside, &field) && field.number == 1 && field.size == 3);
    assert_true(wire_next(&inside, &field) && field.number == 2 && inside.at == inside.end);
    assert_int_equal(tensor_message_read(wire_inside(&field), &back), OK);
    assert_int_equal(back->shape.rank, tensors[i]->shape.rank);
    if (i > 0)
      assert_memory_equal(back->data, tensors[i]->data, tensor_byte_size(back));
    else
      assert_memory_equal(((struct string_view *)back->data)[2].data, "ccc", 3);
    tensor_release(back);
    tensor_release(tensors[i]);
    wire_buffer_free(&b);
  }
}

static void random_bytes_never_do_harm(void **state) {
  (void)state;
  unsigned seed = 8;
  for (int round = 0; round < 100000; round++) {
    uint8_t bytes[64];
    struct tensor *tensor = NULL;
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (uint8_t)(rand_r(&seed) % (i % 2 ? 256 : 128));
    bytes[0] = 0x08;
    bytes[1] = (uint8_t)(rand_r(&seed) % 25);
    if (tensor_message_read(wire_over(bytes, (size_t)rand_r(&seed) % 64), &tensor) == OK)
      tensor_release(tensor);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(fields_survive_writing_and_reading), cmocka_unit_test(what_is_cut_or_no_message_is_bad),
    cmocka_unit_test(tensors_are_read_in_every_form),     cmocka_unit_test(strings_are_read_from_content_and_values),
    cmocka_unit_test(tensors_that_lie_are_refused),       cmocka_unit_test(a_long_string_is_not_multiplied),
    cmocka_unit_test(a_written_tensor_is_read_again),     cmocka_unit_test(random_bytes_never_do_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
