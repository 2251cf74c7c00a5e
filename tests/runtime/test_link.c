/* test_link.c: two ends of a link over memory: messages and tensors in order, in place, and a peer that misbehaves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/net/link.h"
#include "tests/runtime/http2_pair.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct end {
  struct http2 *http2;
  struct link link;
  bool has_link;
  status refuse_with, received;
  int hellos, messages, tensors, controls;
  uint64_t control_sum;
  struct message last;
  struct tensor *tensor;
  uint64_t in_place, elsewhere; /* bytes of tensors that came where they belong, or not */
};

static status on_hello(void *self, const struct message *hello) {
  struct end *end = self;
  end->hellos++;
  end->last = *hello;
  return end->refuse_with;
}
static void on_message(void *self, const struct message *message) {
  struct end *end = self;
  end->messages++;
  end->last = *message;
}
static void on_tensor(void *self, const struct message *message, struct tensor *tensor) {
  struct end *end = self;
  end->tensors++;
  end->last = *message;
  tensor_release(end->tensor);
  end->tensor = tensor;
}
static void on_control(void *self, const struct message *message, const void *data, size_t size) {
  struct end *end = self;
  end->controls++;
  end->last.topic = message->topic;
  end->last.bytes = size;
  end->control_sum = 0;
  for (size_t i = 0; i < size; i++)
    end->control_sum += ((const uint8_t *)data)[i];
}
static status on_challenge(void *self) {
  struct end *end = self;
  return link_send(&end->link, &(struct message){.kind = MESSAGE_HELLO, .task = 1});
}
static const struct link_handler link_events = {.on_hello = on_hello,
                                                .on_message = on_message,
                                                .on_tensor = on_tensor,
                                                .on_control = on_control,
                                                .on_challenge = on_challenge};

static void on_headers(void *self, struct http2_stream *stream) {
  struct end *end = self;
  if (end->has_link)
    return;
  assert_int_equal(http2_respond(stream, 200, "application/grpc"), OK);
  end->has_link = true;
  link_init(&end->link, stream, &link_events, end, 0);
}
static void on_data(void *self, struct http2_stream *stream, const uint8_t *data, size_t size) {
  struct end *end = self;
  (void)stream;
  uint8_t *target = NULL;
  if (end->received == OK && link_target(&end->link, &target) > 0)
    *(target == data ? &end->in_place : &end->elsewhere) += size;
  if (end->received == OK)
    end->received = link_receive(&end->link, data, size);
}
static void on_end(void *self, struct http2_stream *stream) { (void)self, (void)stream; }
static void on_close(void *self, struct http2_stream *stream, uint32_t error) {
  struct end *end = self;
  (void)stream, (void)error;
  if (end->has_link)
    link_deinit(&end->link);
  end->has_link = false;
}
static void on_goaway(void *self, uint32_t error) { (void)self, (void)error; }
static const struct http2_handler handler = {on_headers, on_data, on_end, on_close, on_goaway};

struct fixture {
  struct http2_pair pair;
  struct end near, far; /* near dials */
};

static void fixture_open(struct fixture *f, size_t piece_max) {
  memset(f, 0, sizeof *f);
  f->pair.piece_max = piece_max;
  f->pair.seed = 9;
  assert_int_equal(http2_create(false, &handler, &f->near, &f->pair.client), OK);
  assert_int_equal(http2_create(true, &handler, &f->far, &f->pair.server), OK);
  f->near.has_link = true;
  link_init(&f->near.link, http2_request(f->pair.client, LINK_PATH, "far", NULL), &link_events, &f->near, 0);
}

static void fixture_greet(struct fixture *f) {
  assert_int_equal(link_send(&f->near.link, &(struct message){.kind = MESSAGE_HELLO, .task = 1}), OK);
  pair_pump(&f->pair);
  assert_int_equal(link_send(&f->far.link, &(struct message){.kind = MESSAGE_HELLO, .task = 0}), OK);
  pair_pump(&f->pair);
  assert_true(f->near.link.is_open && f->far.link.is_open);
}

static void fixture_close(struct fixture *f) {
  http2_destroy(f->pair.client);
  http2_destroy(f->pair.server);
  tensor_release(f->near.tensor);
  tensor_release(f->far.tensor);
}

static struct tensor *bytes_tensor(int64_t count) {
  struct tensor *tensor;
  assert_int_equal(tensor_create(DTYPE_UINT8, &(struct shape){1, {count}}, &tensor), OK);
  for (int64_t i = 0; i < count; i++)
    ((uint8_t *)tensor->data)[i] = (uint8_t)(i * 13 >> 2);
  return tensor;
}

static const uint8_t key[PROOF_KEY_BYTES] = {1, 2, 3}, other_key[PROOF_KEY_BYTES] = {1, 2, 4};

/* Both ends prove their HELLOs; the listener's nonce is `nonce`. */
static void fixture_prove(struct fixture *f, const uint8_t *near_key, const uint8_t *far_key, uint8_t nonce) {
  uint8_t own[PROOF_NONCE_BYTES] = {55}, listeners[PROOF_NONCE_BYTES] = {nonce};
  assert_int_equal(link_prove(&f->near.link, near_key, PROOF_DIALLER, own), OK);
  pair_pump(&f->pair); /* its stream */
  assert_int_equal(link_prove(&f->far.link, far_key, PROOF_LISTENER, listeners), OK);
  pair_pump(&f->pair);
  if (f->far.hellos > 0 && f->far.received == OK)
    assert_int_equal(link_send(&f->far.link, &(struct message){.kind = MESSAGE_HELLO, .task = 0}), OK);
  pair_pump(&f->pair);
}

static void each_side_proves_its_hello(void **state) {
  (void)state;
  for (size_t piece_max = 0; piece_max < 3; piece_max++) {
    struct fixture f;
    fixture_open(&f, piece_max);
    fixture_prove(&f, key, key, 66);
    assert_true(f.far.hellos == 1 && f.far.last.is_proved && f.far.last.task == 1);
    assert_true(f.near.hellos == 1 && f.near.last.is_proved && f.near.last.task == 0);
    fixture_close(&f);
  }
}

static void another_key_proves_nothing(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  fixture_prove(&f, other_key, key, 66);
  assert_true(f.far.hellos == 1 && !f.far.last.is_proved);
  assert_true(f.near.hellos == 1 && !f.near.last.is_proved);
  fixture_close(&f);
}

/* The bytes that the dialler said, said again on another connection, at whose other end is another nonce. */
static void recorded_bytes_prove_nothing(void **state) {
  (void)state;
  static uint8_t recorded[4096];
  for (int is_same = 0; is_same < 2; is_same++) {
    size_t size = 0;
    struct fixture f;
    fixture_open(&f, 0);
    f.pair.record = recorded;
    f.pair.record_max = sizeof recorded;
    fixture_prove(&f, key, key, 66);
    size = f.pair.recorded;
    assert_true(size > 0 && f.far.last.is_proved);
    fixture_close(&f);
    fixture_open(&f, 0);
    uint8_t nonce[PROOF_NONCE_BYTES] = {is_same ? 66 : 67};
    for (size_t at = 0; at < size; at++) {
      http2_receive(f.pair.server, 0, recorded + at, 1);
      if (f.far.has_link && !f.far.link.key)
        assert_int_equal(link_prove(&f.far.link, key, PROOF_LISTENER, nonce), OK);
    }
    assert_int_equal(f.far.hellos, 1);
    assert_int_equal(f.far.last.is_proved, is_same); /* which no listener has twice */
    fixture_close(&f);
  }
}

static void a_challenge_comes_once_and_to_who_dialled(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  fixture_prove(&f, key, key, 66);
  assert_int_equal(link_send(&f.near.link, &(struct message){.kind = MESSAGE_CHALLENGE}), OK);
  pair_pump(&f.pair);
  assert_int_equal(f.far.received, DATA_LOSS);
  assert_int_equal(link_send(&f.far.link, &(struct message){.kind = MESSAGE_CHALLENGE}), OK);
  pair_pump(&f.pair);
  assert_int_equal(f.near.received, DATA_LOSS);
  fixture_close(&f);
}

static void tensors_and_messages_keep_their_order(void **state) {
  (void)state;
  static const int64_t sizes[] = {0, 1, 7, 2047, 2048, 2049, 70000, 3000000};
  static const size_t piece_max[] = {0, 1, 17, 5000};
  for (size_t p = 0; p < 4; p++) {
    struct fixture f;
    fixture_open(&f, piece_max[p]);
    fixture_greet(&f);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes - (p == 1); i++) {
      struct message message = {.step = i, .transfer = 4};
      struct tensor *tensor = tensor_retain(bytes_tensor(sizes[i]));
      assert_int_equal(link_send_tensor(&f.near.link, &message, tensor), OK);
      assert_int_equal(link_send(&f.near.link, &(struct message){.kind = MESSAGE_START, .step = i, .entry = 2}), OK);
      pair_pump(&f.pair);
      assert_int_equal(f.far.received, OK);
      assert_int_equal(f.far.tensors, i + 1);
      assert_int_equal(f.far.messages, i + 1);
      assert_int_equal(f.far.last.kind, MESSAGE_START);
      assert_int_equal(f.far.tensor->count, sizes[i]);
      assert_memory_equal(f.far.tensor->data, tensor->data, sizes[i]);
      assert_int_equal(tensor->references, 1);
      tensor_release(tensor);
    }
    fixture_close(&f);
  }
}

static void control_messages_keep_their_place_and_bytes(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 2047, 70, NET_CONTROL_BYTES};
  static uint8_t data[NET_CONTROL_BYTES];
  memset(data, 3, sizeof data);
  for (size_t piece_max = 0; piece_max < 3; piece_max++) {
    struct fixture f;
    fixture_open(&f, piece_max);
    fixture_greet(&f);
    for (int i = 0; i < 5; i++) {
      assert_int_equal(link_send_control(&f.near.link, (uint8_t)(i + 1), data, sizes[i]), OK);
      assert_int_equal(link_send_tensor(&f.near.link, &(struct message){.step = 1}, bytes_tensor(9)), OK);
      pair_pump(&f.pair);
      assert_int_equal(f.far.received, OK);
      assert_int_equal(f.far.controls, i + 1);
      assert_int_equal(f.far.tensors, i + 1);
      assert_int_equal(f.far.control_sum, 3 * sizes[i]);
    }
    fixture_close(&f);
  }
}

/* Moves bytes as a connection does: read to where the link wants them, as far as the frame reaches. */
static void pump_to_target(struct fixture *f) {
  const struct iovec *pieces;
  static uint8_t buffer[16384];
  while (http2_output(f->pair.client, &pieces) > 0) {
    size_t done = 0, size = pieces[0].iov_len;
    while (done < size) {
      uint8_t *to = buffer;
      size_t room = link_target(&f->far.link, &to), left = http2_frame_left(f->pair.server);
      room = room && left ? (room < left ? room : left) : sizeof buffer;
      if (room == sizeof buffer)
        to = buffer;
      size_t take = size - done < room ? size - done : room;
      memcpy(to, (uint8_t *)pieces[0].iov_base + done, take);
      assert_int_equal(http2_receive(f->pair.server, 0, to, take), OK);
      done += take;
    }
    http2_written(f->pair.client, done);
    pair_move(&f->pair, f->pair.server, f->pair.client);
  }
}

static void large_tensors_land_in_place(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  fixture_greet(&f);
  struct tensor *tensor = tensor_retain(bytes_tensor(50000000));
  assert_int_equal(link_send_tensor(&f.near.link, &(struct message){.step = 1}, tensor), OK);
  pump_to_target(&f);
  assert_int_equal(f.far.received, OK);
  assert_int_equal(f.far.tensors, 1);
  assert_memory_equal(f.far.tensor->data, tensor->data, 50000000);
  assert_true(f.far.in_place > 49000000);
  tensor_release(tensor);
  fixture_close(&f);
}

static void a_half_received_tensor_is_given_back(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  fixture_greet(&f);
  assert_int_equal(link_send_tensor(&f.near.link, &(struct message){.step = 1}, bytes_tensor(3000000)), OK);
  for (int i = 0; i < 5; i++)
    pair_move(&f.pair, f.pair.client, f.pair.server);
  assert_int_equal(f.far.tensors, 0);
  fixture_close(&f); /* the sanitizer sees what stays */
}

static void a_refused_hello_ends_the_link(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  f.far.refuse_with = FAILED_PRECONDITION;
  assert_int_equal(link_send(&f.near.link, &(struct message){.kind = MESSAGE_HELLO}), OK);
  pair_pump(&f.pair);
  assert_int_equal(f.far.received, FAILED_PRECONDITION);
  assert_false(f.far.link.is_open);
  fixture_close(&f);
}

static void a_silent_link_pings_and_knows_when_it_last_heard(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  fixture_greet(&f);
  uint64_t now_ms = 1000;
  assert_int_equal(link_tick(&f.near.link, now_ms), OK);
  assert_int_equal(link_tick(&f.far.link, now_ms), OK);
  for (; now_ms < 20000; now_ms += 250) { /* both live */
    assert_int_equal(link_tick(&f.near.link, now_ms), OK);
    assert_int_equal(link_tick(&f.far.link, now_ms), OK);
    pair_pump(&f.pair);
  }
  assert_int_equal(f.near.messages, 0); /* pings are not handed on */
  uint64_t quiet_ms = now_ms;
  for (; now_ms < quiet_ms + 8000; now_ms += 250) /* the far one is dead */
    assert_int_equal(link_tick(&f.near.link, now_ms), OK);
  assert_in_range(quiet_ms - f.near.link.received_ms, 0, NET_PING_MS + 500);
  assert_in_range(now_ms - f.far.link.received_ms, 8000, 10000);
  fixture_close(&f);
}

static void a_link_says_nothing_before_its_hello(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  pair_pump(&f.pair); /* the far one has the stream, and may take a while to decide */
  for (uint64_t now_ms = 1000; now_ms < 10 * NET_PING_MS; now_ms += 250) {
    assert_int_equal(link_tick(&f.near.link, now_ms), OK);
    assert_int_equal(link_tick(&f.far.link, now_ms), OK);
    pair_pump(&f.pair);
  }
  assert_int_equal(f.near.received, OK);
  assert_int_equal(f.far.received, OK);
  fixture_greet(&f);
  fixture_close(&f);
}

/* ---- a peer that misbehaves: raw bytes on the stream ---- */

static status hostile(const void *bytes, size_t size, bool greeted) {
  struct fixture f;
  fixture_open(&f, 0);
  if (greeted)
    fixture_greet(&f);
  assert_int_equal(http2_send_copy(f.near.link.stream, bytes, size), OK);
  pair_pump(&f.pair);
  status code = f.far.received;
  assert_int_equal(f.far.tensors, 0);
  fixture_close(&f);
  return code;
}

static size_t message_bytes(uint8_t *out, const struct message *message, uint32_t extra) {
  size_t size = message_encode(message, out + GRPC_PREFIX_BYTES);
  grpc_write_prefix((uint32_t)size + extra, out);
  return GRPC_PREFIX_BYTES + size;
}

static void nothing_is_taken_before_hello(void **state) {
  (void)state;
  uint8_t bytes[GRPC_PREFIX_BYTES + MESSAGE_BYTES];
  for (int kind = MESSAGE_HELLO + 1; kind < MESSAGE_KINDS; kind++) {
    size_t size = message_bytes(bytes, &(struct message){.kind = (enum message_kind)kind, .dtype = DTYPE_UINT8, .shape = {1, {0}}}, 0);
    assert_int_equal(hostile(bytes, size, false), DATA_LOSS);
  }
}

static void a_huge_message_before_hello_is_refused_by_its_length(void **state) {
  (void)state;
  static const uint8_t prefix[] = {0, 0xff, 0xff, 0xff, 0xff, MESSAGE_HELLO};
  assert_int_equal(hostile(prefix, sizeof prefix, false), DATA_LOSS);
}

static void messages_that_break_the_rules_end_the_link(void **state) {
  (void)state;
  uint8_t bytes[GRPC_PREFIX_BYTES + MESSAGE_BYTES] = {0};
  struct message tensor = {.kind = MESSAGE_TENSOR, .dtype = DTYPE_UINT8, .shape = {1, {100}}, .bytes = 100};
  size_t size = message_bytes(bytes, &(struct message){.kind = MESSAGE_HELLO}, 0);
  assert_int_equal(hostile(bytes, size, true), DATA_LOSS); /* a second HELLO */
  size = message_bytes(bytes, &(struct message){.kind = MESSAGE_MORE}, 5);
  assert_int_equal(hostile(bytes, size + 5, true), DATA_LOSS); /* of no tensor */
  size = message_bytes(bytes, &tensor, 101);
  assert_int_equal(hostile(bytes, size, true), DATA_LOSS); /* more bytes than it has */
  size = message_bytes(bytes, &(struct message){.kind = MESSAGE_CONTROL, .bytes = 4}, 5);
  assert_int_equal(hostile(bytes, size + 5, true), DATA_LOSS); /* another size than it says */
  size = message_bytes(bytes, &tensor, 50);
  assert_int_equal(hostile(bytes, size, true), DATA_LOSS); /* a small tensor in two messages */
  grpc_write_prefix(3, bytes);
  assert_int_equal(hostile(bytes, 8, true), DATA_LOSS); /* too short for any */
  bytes[0] = 1;
  assert_int_equal(hostile(bytes, 8, true), DATA_LOSS); /* compressed */
}

static void random_bytes_never_do_harm(void **state) {
  (void)state;
  unsigned seed = 4;
  for (int round = 0; round < 3000; round++) {
    struct fixture f;
    fixture_open(&f, 50);
    fixture_greet(&f);
    for (int i = 0; i < 20 && f.far.received == OK; i++) {
      uint8_t bytes[GRPC_PREFIX_BYTES + 200];
      uint32_t size = 8 + (uint32_t)rand_r(&seed) % 120;
      for (size_t k = 0; k < sizeof bytes; k++)
        bytes[k] = rand_r(&seed) % 3 ? 0 : (uint8_t)rand_r(&seed);
      grpc_write_prefix(size, bytes);
      bytes[5] = (uint8_t)(rand_r(&seed) % (MESSAGE_KINDS + 1));
      http2_send_copy(f.near.link.stream, bytes, GRPC_PREFIX_BYTES + size);
      pair_pump(&f.pair);
    }
    fixture_close(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_side_proves_its_hello),
    cmocka_unit_test(another_key_proves_nothing),
    cmocka_unit_test(recorded_bytes_prove_nothing),
    cmocka_unit_test(a_challenge_comes_once_and_to_who_dialled),
    cmocka_unit_test(tensors_and_messages_keep_their_order),
    cmocka_unit_test(control_messages_keep_their_place_and_bytes),
    cmocka_unit_test(large_tensors_land_in_place),
    cmocka_unit_test(a_half_received_tensor_is_given_back),
    cmocka_unit_test(a_refused_hello_ends_the_link),
    cmocka_unit_test(a_silent_link_pings_and_knows_when_it_last_heard),
    cmocka_unit_test(a_link_says_nothing_before_its_hello),
    cmocka_unit_test(nothing_is_taken_before_hello),
    cmocka_unit_test(a_huge_message_before_hello_is_refused_by_its_length),
    cmocka_unit_test(messages_that_break_the_rules_end_the_link),
    cmocka_unit_test(random_bytes_never_do_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
