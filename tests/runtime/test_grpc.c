/* test_grpc.c: gRPC's framing. */
#include <stdlib.h>
#include <string.h>
#include "runtime/net/grpc.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Three messages: 3 bytes, none, 2 bytes. */
static const uint8_t three[] = {0, 0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 'd', 'e'};

/* Reads with the bytes cut at `cut`; writes "abc||de|". */
static void read_cut(size_t cut, char *out) {
  struct grpc_reader reader = {.size = 0};
  const uint8_t *parts[2] = {three, three + cut}, *piece = NULL;
  size_t sizes[2] = {cut, sizeof three - cut}, size = 0;
  for (int i = 0; i < 2; i++)
    for (;;) {
      enum grpc_event event = grpc_read(&reader, &parts[i], &sizes[i], &piece, &size);
      if (event == GRPC_NEED_MORE)
        break;
      if (event == GRPC_BYTES) {
        memcpy(out, piece, size);
        out += size;
      }
      if (event == GRPC_END)
        *out++ = '|';
    }
  *out = 0;
  assert_true(grpc_reader_is_between(&reader));
}

static void messages_are_found_wherever_the_bytes_are_cut(void **state) {
  (void)state;
  for (size_t cut = 0; cut <= sizeof three; cut++) {
    char out[32];
    read_cut(cut, out);
    assert_string_equal(out, "abc||de|");
  }
}

static void a_prefix_survives_writing_and_reading(void **state) {
  (void)state;
  static const uint32_t sizes[] = {0, 1, 255, 256, 65536, 0x12345678, UINT32_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct grpc_reader reader = {.size = 0};
    uint8_t prefix[GRPC_PREFIX_BYTES];
    const uint8_t *at = prefix, *piece;
    size_t left = sizeof prefix, size;
    grpc_write_prefix(sizes[i], prefix);
    assert_int_equal(grpc_read(&reader, &at, &left, &piece, &size), GRPC_BEGIN);
    assert_int_equal(reader.size, sizes[i]);
    assert_int_equal(left, 0);
  }
}

static void compressed_messages_are_refused(void **state) {
  (void)state;
  struct grpc_reader reader = {.size = 0};
  const uint8_t bytes[] = {1, 0, 0, 0, 1, 'x'}, *at = bytes, *piece;
  size_t left = sizeof bytes, size;
  assert_int_equal(grpc_read(&reader, &at, &left, &piece, &size), GRPC_COMPRESSED);
}

static void a_half_message_is_not_between(void **state) {
  (void)state;
  for (size_t cut = 1; cut < 8; cut++) {
    struct grpc_reader reader = {.size = 0};
    const uint8_t *at = three, *piece;
    size_t left = cut, size;
    while (grpc_read(&reader, &at, &left, &piece, &size) != GRPC_NEED_MORE)
      ;
    assert_false(grpc_reader_is_between(&reader));
  }
}

static void timeouts_are_in_milliseconds_rounded_up(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t ms;
  } cases[] = {
    {"1H", 3600000},    {"2M", 120000}, {"3S", 3000},
    {"100m", 100},      {"1u", 1},      {"1500u", 2},
    {"99999999n", 100}, {"0S", 0},      {"99999999H", INT64_C(359999996400000)},
    {"", -1},           {"S", -1},      {"5", -1},
    {"5x", -1},         {"5SS", -1},    {"123456789m", -1},
    {"-5S", -1},        {" 5S", -1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(grpc_parse_timeout(cases[i].text), cases[i].ms);
}

static void percent_decoding_leaves_what_is_no_escape(void **state) {
  (void)state;
  static const struct {
    const char *encoded, *decoded;
  } cases[] = {{"plain", "plain"}, {"a%20b%25", "a b%"}, {"%0A%5B%5b", "\n[["}, {"%", "%"}, {"%4", "%4"},
               {"%zz", "%zz"},     {"100%", "100%"},     {"%00x", "%00x"},      {"", ""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[32];
    strcpy(text, cases[i].encoded);
    grpc_percent_decode(text);
    assert_string_equal(text, cases[i].decoded);
  }
}

static void content_types_of_grpc_are_known(void **state) {
  (void)state;
  assert_true(grpc_is_content_type("application/grpc"));
  assert_true(grpc_is_content_type("application/grpc+proto"));
  assert_true(grpc_is_content_type("application/grpc;charset=utf-8"));
  assert_false(grpc_is_content_type("application/grpc-web"));
  assert_false(grpc_is_content_type("application/json"));
  assert_false(grpc_is_content_type(""));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(messages_are_found_wherever_the_bytes_are_cut),
    cmocka_unit_test(a_prefix_survives_writing_and_reading),
    cmocka_unit_test(compressed_messages_are_refused),
    cmocka_unit_test(a_half_message_is_not_between),
    cmocka_unit_test(timeouts_are_in_milliseconds_rounded_up),
    cmocka_unit_test(percent_decoding_leaves_what_is_no_escape),
    cmocka_unit_test(content_types_of_grpc_are_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
