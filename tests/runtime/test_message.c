/* test_message.c: messages between tasks as bytes and back, and bytes that are none. */
#include <stdlib.h>
#include <string.h>
#include "runtime/net/message.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static size_t round_trip(const struct message *message, struct message *out) {
  uint8_t bytes[MESSAGE_BYTES];
  size_t size = message_encode(message, bytes), head = 0;
  assert_int_equal(message_head_size(bytes, 3, (uint32_t)size, &head), OK);
  assert_int_equal(head, 0);
  assert_int_equal(message_head_size(bytes, size, (uint32_t)(size + message->bytes), &head), OK);
  assert_int_equal(head, size);
  assert_int_equal(message_decode(bytes, head, out), OK);
  assert_int_equal(out->kind, message->kind);
  return size;
}

static void every_kind_survives_the_wire(void **state) {
  (void)state;
  static struct message out;
  round_trip(
    &(struct message){.kind = MESSAGE_HELLO, .task = 7, .task_count = 9, .flags = 5, .incarnation = 3, .nonce = {1, 2}, .proof = {3, 4}},
    &out);
  assert_int_equal(out.task, 7);
  assert_int_equal(out.task_count, 9);
  assert_int_equal(out.flags, 5);
  assert_int_equal(out.incarnation, 3);
  assert_int_equal(out.nonce[1], 2);
  assert_int_equal(out.proof[1], 4);
  assert_false(out.is_proved);
  round_trip(&(struct message){.kind = MESSAGE_CHALLENGE, .nonce = {7, 8}}, &out);
  assert_int_equal(out.nonce[1], 8);
  round_trip(&(struct message){.kind = MESSAGE_START, .entry = 4, .step = UINT64_C(1) << 60, .command = 3, .serial = UINT64_C(1) << 40},
             &out);
  assert_int_equal(out.entry, 4);
  assert_true(out.command == 3 && out.serial == UINT64_C(1) << 40);
  round_trip(&(struct message){.kind = MESSAGE_CONTROL, .topic = 200, .bytes = NET_CONTROL_BYTES}, &out);
  assert_true(out.topic == 200 && out.bytes == NET_CONTROL_BYTES);
  assert_true(out.step == UINT64_C(1) << 60);
  round_trip(&(struct message){.kind = MESSAGE_TENSOR, .transfer = 8, .step = 2, .dtype = DTYPE_HALF, .shape = {3, {2, 3, 4}}, .bytes = 48},
             &out);
  assert_int_equal(out.transfer, 8);
  assert_int_equal(out.shape.rank, 3);
  assert_int_equal(out.shape.dims[2], 4);
  round_trip(&(struct message){.kind = MESSAGE_DONE, .step = 6, .code = OUT_OF_RANGE, .text = "queue 'q' is closed"}, &out);
  assert_int_equal(out.code, OUT_OF_RANGE);
  assert_string_equal(out.text, "queue 'q' is closed");
  round_trip(&(struct message){.kind = MESSAGE_RESET, .text = "localhost\nqueues"}, &out);
  assert_string_equal(out.text, "localhost\nqueues");
  round_trip(&(struct message){.kind = MESSAGE_CANCEL, .step = 5}, &out);
  assert_int_equal(out.step, 5);
  round_trip(&(struct message){.kind = MESSAGE_BYE, .code = UNAVAILABLE, .text = "nobody came"}, &out);
  assert_int_equal(out.code, UNAVAILABLE);
  assert_string_equal(out.text, "nobody came");
  round_trip(&(struct message){.kind = MESSAGE_READY, .number = 1}, &out);
  assert_int_equal(out.number, 1);
  round_trip(&(struct message){.kind = MESSAGE_LEFT, .number = 9}, &out);
  assert_int_equal(out.number, 9);
  for (int kind = MESSAGE_FINISHED; kind <= MESSAGE_PING; kind++)
    assert_int_equal(round_trip(&(struct message){.kind = (enum message_kind)kind}, &out), 8);
}

static void a_long_text_is_cut(void **state) {
  (void)state;
  static struct message message = {.kind = MESSAGE_DONE, .code = INTERNAL}, out;
  memset(message.text, 'x', sizeof message.text); /* no NUL */
  round_trip(&message, &out);
  assert_int_equal(strlen(out.text), NET_TEXT_BYTES - 1);
}

/* A TENSOR's head whose fields are then spoilt. */
static size_t tensor_head(uint8_t *bytes, int dtype, int rank, int64_t dim, uint64_t size) {
  struct message message = {.kind = MESSAGE_TENSOR, .dtype = DTYPE_FLOAT, .shape = {LIMIT_RANK, {0}}};
  for (int i = 0; i < LIMIT_RANK; i++)
    message.shape.dims[i] = dim;
  message_encode(&message, bytes);
  bytes[1] = (uint8_t)dtype;
  bytes[2] = (uint8_t)rank;
  memcpy(bytes + 16, &size, 8);
  return 24 + 8 * (size_t)rank;
}

static void tensors_that_cannot_be_are_refused_before_memory_is_taken(void **state) {
  (void)state;
  static const struct {
    int dtype, rank;
    int64_t dim;
    uint64_t bytes;
  } cases[] = {
    {DTYPE_FLOAT, 1, 4, 15}, /* not 16 */
    {DTYPE_FLOAT, 1, 4, 17},
    {DTYPE_FLOAT, 1, -1, 0},
    {DTYPE_FLOAT, 2, INT64_MAX, 4}, /* the product overflows */
    {DTYPE_FLOAT, 8, 1 << 20, 0},
    {DTYPE_FLOAT, 1, INT64_C(1) << 39, UINT64_C(1) << 41}, /* 2 TiB */
    {0, 1, 1, 4},
    {99, 1, 1, 4},
    {DTYPE_FLOAT + DTYPE_REF, 1, 1, 4},
    {DTYPE_RESOURCE, 1, 1, 8},
    {DTYPE_VARIANT, 1, 1, 8},
    {DTYPE_STRING, 1, 4, 15}, /* four lengths need 16 */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t bytes[MESSAGE_BYTES];
    static struct message out;
    size_t size = tensor_head(bytes, cases[i].dtype, cases[i].rank, cases[i].dim, cases[i].bytes);
    assert_int_equal(message_decode(bytes, size, &out), DATA_LOSS);
  }
}

static void sizes_that_do_not_fit_the_kind_are_refused(void **state) {
  (void)state;
  static const struct {
    uint8_t kind, third;
    uint32_t size;
  } cases[] = {{0, 0, 8},
               {MESSAGE_KINDS, 0, 8},
               {255, 0, 8},
               {MESSAGE_HELLO, 0, 31},
               {MESSAGE_HELLO, 0, 33},
               {MESSAGE_START, 0, 31},
               {MESSAGE_PING, 0, 9},
               {MESSAGE_DONE, 0, 8},
               {MESSAGE_DONE, 0, MESSAGE_BYTES + 1},
               {MESSAGE_TENSOR, LIMIT_RANK + 1, 4096},
               {MESSAGE_TENSOR, 8, 80}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t bytes[8] = {cases[i].kind, 0, cases[i].third};
    size_t head = 0;
    assert_int_equal(message_head_size(bytes, 8, cases[i].size, &head), DATA_LOSS);
  }
}

static void a_code_that_is_none_is_refused(void **state) {
  (void)state;
  uint8_t bytes[16] = {MESSAGE_DONE, 17};
  static struct message out;
  assert_int_equal(message_decode(bytes, sizeof bytes, &out), DATA_LOSS);
}

static void a_control_message_that_is_too_long_is_refused(void **state) {
  (void)state;
  static struct message out;
  uint8_t bytes[MESSAGE_BYTES];
  size_t size = message_encode(&(struct message){.kind = MESSAGE_CONTROL, .bytes = NET_CONTROL_BYTES + 1}, bytes);
  assert_int_equal(message_decode(bytes, size, &out), DATA_LOSS);
}

static struct tensor *strings_of(const struct string_view *views, int64_t count) {
  struct tensor *tensor;
  assert_int_equal(tensor_copy_in(DTYPE_STRING, &(struct shape){1, {count}}, views, &tensor), OK);
  return tensor;
}

static void strings_survive_packing(void **state) {
  (void)state;
  static const struct string_view views[] = {{"one", 3}, {"", 0}, {"t\0o", 3}};
  struct tensor *tensor = strings_of(views, 3), *back = NULL;
  struct message message = {.kind = MESSAGE_TENSOR, .dtype = DTYPE_STRING, .shape = tensor->shape};
  uint8_t *block = NULL;
  assert_int_equal(message_payload_size(tensor, &message.bytes), OK);
  assert_int_equal(message.bytes, 12 + 6);
  assert_int_equal(message_pack_strings(tensor, message.bytes, &block), OK);
  assert_int_equal(message_unpack_strings(&message, block, &back), OK);
  for (int i = 0; i < 3; i++) {
    const struct string_view *view = (const struct string_view *)back->data + i;
    assert_int_equal(view->size, views[i].size);
    assert_memory_equal(view->data, views[i].data, views[i].size);
  }
  tensor_release(tensor);
  tensor_release(back);
}

static void lengths_that_do_not_add_up_are_refused(void **state) {
  (void)state;
  static const uint32_t cases[][2] = {{0, 0}, {3, 4}, {7, 0}, {UINT32_MAX, 7}, {6, UINT32_MAX}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct message message = {.kind = MESSAGE_TENSOR, .dtype = DTYPE_STRING, .shape = {1, {2}}, .bytes = 8 + 6};
    struct tensor *out = NULL;
    uint8_t *block = calloc(1, 14);
    memcpy(block, cases[i], 8);
    assert_int_equal(message_unpack_strings(&message, block, &out), DATA_LOSS); /* takes the block */
    assert_null(out);
  }
}

static void random_bytes_never_do_harm(void **state) {
  (void)state;
  unsigned seed = 1;
  for (int round = 0; round < 200000; round++) {
    uint8_t bytes[128];
    static struct message out;
    size_t head = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (uint8_t)rand_r(&seed);
    bytes[0] %= MESSAGE_KINDS + 1;
    bytes[2] %= 10;
    uint32_t size = 8 + (uint32_t)rand_r(&seed) % 120;
    if (message_head_size(bytes, sizeof bytes, size, &head) == OK && head <= sizeof bytes) {
      status code = message_decode(bytes, head, &out);
      assert_true(code == OK || code == DATA_LOSS || code == FAILED_PRECONDITION);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_kind_survives_the_wire),
    cmocka_unit_test(a_long_text_is_cut),
    cmocka_unit_test(tensors_that_cannot_be_are_refused_before_memory_is_taken),
    cmocka_unit_test(sizes_that_do_not_fit_the_kind_are_refused),
    cmocka_unit_test(a_code_that_is_none_is_refused),
    cmocka_unit_test(a_control_message_that_is_too_long_is_refused),
    cmocka_unit_test(strings_survive_packing),
    cmocka_unit_test(lengths_that_do_not_add_up_are_refused),
    cmocka_unit_test(random_bytes_never_do_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
