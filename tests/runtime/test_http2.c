/* test_http2.c: two HTTP/2 ends joined by memory, and an end that is fed what no peer should send. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/runtime/http2_pair.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* What one end has seen. */
struct seen {
  struct http2 *http2;
  struct http2_stream *stream;
  int headers, ends, closes, goaways;
  uint32_t error;
  char path[64], content_type[64];
  int grpc_status, http_status;
  char grpc_message[256];
  uint8_t *data;
  size_t size;
};

static void on_headers(void *self, struct http2_stream *stream) {
  struct seen *seen = self;
  seen->headers++;
  seen->stream = stream;
  seen->http_status = stream->http_status;
  snprintf(seen->path, sizeof seen->path, "%.63s", stream->path);
  snprintf(seen->content_type, sizeof seen->content_type, "%.63s", stream->content_type);
}
static void on_data(void *self, struct http2_stream *stream, const uint8_t *data, size_t size) {
  struct seen *seen = self;
  (void)stream;
  seen->data = realloc(seen->data, seen->size + size);
  memcpy(seen->data + seen->size, data, size);
  seen->size += size;
}
static void on_end(void *self, struct http2_stream *stream) {
  struct seen *seen = self;
  seen->ends++;
  seen->grpc_status = stream->grpc_status;
  snprintf(seen->grpc_message, sizeof seen->grpc_message, "%s", stream->grpc_message ? stream->grpc_message : "");
}
static void on_close(void *self, struct http2_stream *stream, uint32_t error) {
  struct seen *seen = self;
  seen->closes++;
  seen->error = error;
  if (seen->stream == stream)
    seen->stream = NULL;
}
static void on_goaway(void *self, uint32_t error) {
  struct seen *seen = self;
  (void)error;
  seen->goaways++;
}
static const struct http2_handler handler = {on_headers, on_data, on_end, on_close, on_goaway};

struct fixture {
  struct http2_pair pair;
  struct seen client, server;
};

static void fixture_open(struct fixture *f, size_t piece_max) {
  *f = (struct fixture){.pair = {.piece_max = piece_max, .seed = 5}};
  assert_int_equal(http2_create(false, &handler, &f->client, &f->pair.client), OK);
  assert_int_equal(http2_create(true, &handler, &f->server, &f->pair.server), OK);
}

static void fixture_close(struct fixture *f) {
  http2_destroy(f->pair.client);
  http2_destroy(f->pair.server);
  free(f->client.data);
  free(f->server.data);
}

static void a_call_goes_there_and_back(void **state) {
  (void)state;
  for (size_t piece_max = 0; piece_max < 4; piece_max++) {
    struct fixture f;
    fixture_open(&f, piece_max);
    struct http2_stream *call = http2_request(f.pair.client, "/a.B/C", "here", NULL);
    assert_int_equal(http2_send_copy(call, "question", 8), OK);
    http2_finish(call);
    pair_pump(&f.pair);
    assert_string_equal(f.server.path, "/a.B/C");
    assert_string_equal(f.server.content_type, "application/grpc");
    assert_memory_equal(f.server.data, "question", 8);
    assert_int_equal(f.server.ends, 1);
    assert_int_equal(http2_respond(f.server.stream, 200, "application/grpc"), OK);
    assert_int_equal(http2_send_copy(f.server.stream, "answer", 6), OK);
    http2_finish_grpc(f.server.stream, 0, NULL);
    pair_pump(&f.pair);
    assert_int_equal(f.client.http_status, 200);
    assert_memory_equal(f.client.data, "answer", 6);
    assert_int_equal(f.client.grpc_status, 0);
    assert_int_equal(f.client.closes, 1);
    assert_int_equal(f.server.closes, 1);
    fixture_close(&f);
  }
}

static void an_error_is_told_in_headers_only(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  http2_finish(http2_request(f.pair.client, "/x", "here", NULL));
  pair_pump(&f.pair);
  http2_finish_grpc(f.server.stream, 9, "no\nway, 100% \xc3\xa4");
  pair_pump(&f.pair);
  assert_int_equal(f.client.grpc_status, 9);
  assert_string_equal(f.client.grpc_message, "no%0Away, 100%25 %C3%A4");
  assert_int_equal(f.client.size, 0);
  fixture_close(&f);
}

static void an_early_answer_stops_the_client(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  struct http2_stream *call = http2_request(f.pair.client, "/x", "here", NULL);
  http2_send_copy(call, "part", 4);
  pair_pump(&f.pair);
  http2_finish_grpc(f.server.stream, 8, "enough");
  pair_pump(&f.pair);
  assert_int_equal(f.client.grpc_status, 8);
  assert_int_equal(f.client.closes, 1);
  assert_int_equal(f.client.error, 0); /* RST_STREAM NO_ERROR */
  fixture_close(&f);
}

static int released;
static void count_release(void *owner) {
  (void)owner;
  released++;
}

static void bytes_of_others_are_not_copied_and_given_back_once(void **state) {
  (void)state;
  struct fixture f;
  size_t size = (size_t)200 << 20; /* more than the windows */
  uint8_t *memory = malloc(size);
  for (size_t i = 0; i < size; i++)
    memory[i] = (uint8_t)(i * 7 >> 3);
  fixture_open(&f, 0);
  struct http2_stream *call = http2_request(f.pair.client, "/x", "here", NULL);
  released = 0;
  assert_int_equal(http2_send(call, memory, size, count_release, memory), OK);
  const struct iovec *pieces;
  bool is_in_place = false;
  while (pair_move(&f.pair, f.pair.client, f.pair.server) + pair_move(&f.pair, f.pair.server, f.pair.client) > 0) {
    int count = http2_output(f.pair.client, &pieces);
    for (int i = 0; i < count; i++)
      is_in_place = is_in_place || ((uint8_t *)pieces[i].iov_base >= memory && (uint8_t *)pieces[i].iov_base < memory + size);
    if (f.server.size < size)
      assert_int_equal(released, 0);
  }
  assert_true(is_in_place);
  assert_int_equal(released, 1);
  assert_int_equal(f.server.size, size);
  assert_memory_equal(f.server.data, memory, size);
  fixture_close(&f);
  free(memory);
}

static void what_was_not_sent_is_given_back(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  struct http2_stream *call = http2_request(f.pair.client, "/x", "here", NULL);
  released = 0;
  http2_send(call, "abc", 3, count_release, NULL);
  const struct iovec *pieces;
  http2_output(f.pair.client, &pieces); /* in a round, but never written */
  http2_send(call, "def", 3, count_release, NULL);
  fixture_close(&f);
  assert_int_equal(released, 2);
}

static void sending_on_a_finished_stream_is_refused(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  struct http2_stream *call = http2_request(f.pair.client, "/x", "here", NULL);
  http2_finish(call);
  released = 0;
  assert_int_equal(http2_send(call, "abc", 3, count_release, NULL), CANCELLED);
  assert_int_equal(http2_send_copy(call, "abc", 3), CANCELLED);
  assert_int_equal(released, 1);
  fixture_close(&f);
}

static void small_pieces_share_a_frame(void **state) {
  (void)state;
  struct fixture f;
  fixture_open(&f, 0);
  struct http2_stream *call = http2_request(f.pair.client, "/x", "here", NULL);
  pair_pump(&f.pair);
  for (int i = 0; i < 100; i++)
    http2_send_copy(call, "0123456789", 10);
  const struct iovec *pieces;
  assert_int_equal(http2_output(f.pair.client, &pieces), 2); /* the frame's header, and all of them */
  assert_int_equal(pieces[0].iov_len, 9);
  assert_int_equal(pieces[1].iov_len, 1000);
  pair_pump(&f.pair);
  assert_int_equal(f.server.size, 1000);
  fixture_close(&f);
}

/* ---- hostile peers ---- */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};

struct lone {
  struct http2 *server;
  struct seen seen;
};

static void lone_open(struct lone *lone) {
  *lone = (struct lone){.server = NULL};
  assert_int_equal(http2_create(true, &handler, &lone->seen, &lone->server), OK);
}

static status lone_feed(struct lone *lone, const void *data, size_t size) { return http2_receive(lone->server, 0, data, size); }

/* Takes its output; true when it ends the connection. */
static bool lone_is_over(struct lone *lone) {
  const struct iovec *pieces;
  for (int count; (count = http2_output(lone->server, &pieces)) > 0;)
    http2_written(lone->server, pieces[0].iov_len);
  return http2_is_over(lone->server);
}

static void lone_close(struct lone *lone) {
  http2_destroy(lone->server);
  free(lone->seen.data);
}

static void what_is_no_http2_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "\x16\x03\x01\x02", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct lone lone;
    lone_open(&lone);
    assert_int_equal(lone_feed(&lone, texts[i], strlen(texts[i])), DATA_LOSS);
    lone_close(&lone);
  }
}

static void frame_put(uint8_t *to, size_t length, uint8_t type, uint8_t flags, uint32_t stream) {
  uint8_t head[9] = {(uint8_t)(length >> 16), (uint8_t)(length >> 8),  (uint8_t)length,        type,           flags,
                     (uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
  memcpy(to, head, 9);
}

static void lone_begin(struct lone *lone) {
  lone_open(lone);
  assert_int_equal(lone_feed(lone, preface, strlen(preface)), OK);
  assert_int_equal(lone_feed(lone, settings, sizeof settings), OK);
  assert_false(lone_is_over(lone));
}

static void a_block_of_many_fields_is_cut_off(void **state) {
  (void)state;
  struct lone lone;
  lone_begin(&lone);
  /* one byte each: ":method GET" is index 2, "accept-encoding" is index 16 */
  uint8_t frame[9 + 4 + 2000];
  frame_put(frame, 2004, 1, 5, 1);
  memcpy(frame + 9, "\x82\x86\x84\x81", 4);
  frame[12] = 0x84;
  memset(frame + 13, 0x90, 2000);
  lone_feed(&lone, frame, sizeof frame);
  lone_is_over(&lone);
  assert_int_equal(lone.seen.headers, 0);
  lone_close(&lone);
}

/* Takes its output; the error of the GOAWAY in it, or -1 without one. */
static int lone_goaway(struct lone *lone) {
  uint8_t bytes[4096];
  size_t size = 0;
  const struct iovec *pieces;
  for (int count; (count = http2_output(lone->server, &pieces)) > 0;) {
    assert_true(size + pieces[0].iov_len <= sizeof bytes);
    memcpy(bytes + size, pieces[0].iov_base, pieces[0].iov_len);
    size += pieces[0].iov_len;
    http2_written(lone->server, pieces[0].iov_len);
  }
  for (size_t at = 0; at + 17 <= size; at += 9u + (bytes[at + 1] << 8) + bytes[at + 2])
    if (bytes[at + 3] == 7)
      return bytes[at + 16];
  return -1;
}

/* RFC 7540, 4.2: what carries headers and is larger than allowed ends the connection; h2spec sends somewhat more than 16 KiB. */
static void a_header_frame_that_is_too_large_is_a_frame_size_error(void **state) {
  (void)state;
  static const size_t sizes[] = {(16 << 10) + 1, 17600, 1 << 20, (1 << 20) + 1, (1 << 24) - 1};
  for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
    struct lone lone;
    size_t size = sizes[i / 2];
    bool is_continued = i % 2;
    uint8_t *frame = malloc(9 + size), first[9 + 3];
    lone_begin(&lone);
    frame_put(first, 3, 1, 0, 1);
    memcpy(first + 9, "\x82\x86\x84", 3);
    if (is_continued)
      lone_feed(&lone, first, sizeof first);
    frame_put(frame, size, is_continued ? 9 : 1, is_continued ? 4 : 5, 1);
    memset(frame + 9, 0x90, size);
    lone_feed(&lone, frame, 9 + size);
    assert_int_equal(lone_goaway(&lone), 6);
    assert_true(lone_is_over(&lone));
    assert_int_equal(lone.seen.headers, 0);
    lone_close(&lone);
    free(frame);
  }
}

static void a_flood_of_useless_frames_ends_the_connection(void **state) {
  (void)state;
  static const struct {
    uint8_t type, length;
  } kinds[] = {{6, 8} /* PING */, {4, 0} /* SETTINGS */, {2, 5} /* PRIORITY */, {8, 4} /* WINDOW_UPDATE */};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    struct lone lone;
    bool is_over = false;
    uint8_t frame[9 + 8] = {0};
    lone_begin(&lone);
    frame_put(frame, kinds[i].length, kinds[i].type, 0, kinds[i].type == 2 ? 1 : 0);
    memset(frame + 9, 0, 8);
    frame[12] = kinds[i].type == 8; /* an increment of 1 */
    for (int n = 0; n < 10000 && !is_over; n++)
      is_over = lone_feed(&lone, frame, 9u + kinds[i].length) != OK || lone_is_over(&lone);
    if (!is_over)
      fail_msg("frames of type %d", kinds[i].type);
    lone_close(&lone);
  }
}

static void a_smaller_stream_number_ends_the_connection(void **state) {
  (void)state;
  struct lone lone;
  uint8_t frame[9 + 3];
  static const uint32_t numbers[] = {1, 7, 9, 5};
  lone_begin(&lone);
  for (int i = 0; i < 4; i++) {
    frame_put(frame, 3, 1, 4, numbers[i]);
    memcpy(frame + 9, "\x82\x86\x84", 3); /* GET / */
    lone_feed(&lone, frame, sizeof frame);
    assert_int_equal(lone_is_over(&lone), i == 3);
  }
  lone_close(&lone);
}

static void useless_frames_now_and_then_are_fine(void **state) {
  (void)state;
  struct lone lone;
  uint8_t frame[17] = {0};
  lone_begin(&lone);
  frame_put(frame, 8, 6, 0, 0);
  for (uint64_t second = 1; second < 20000; second++) {
    assert_int_equal(http2_receive(lone.server, second * 1000, frame, sizeof frame), OK);
    assert_false(lone_is_over(&lone));
  }
  lone_close(&lone);
}

static void random_frames_never_do_harm(void **state) {
  (void)state;
  unsigned seed = 3;
  for (int round = 0; round < 3000; round++) {
    struct lone lone;
    lone_open(&lone);
    lone_feed(&lone, preface, strlen(preface));
    lone_feed(&lone, settings, sizeof settings);
    for (int frames = 0; frames < 6; frames++) {
      uint8_t frame[9 + 64];
      size_t length = (size_t)rand_r(&seed) % 64;
      for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (uint8_t)rand_r(&seed);
      frame_put(frame, length, (uint8_t)(rand_r(&seed) % 11), (uint8_t)(rand_r(&seed) & 0x2d), (uint32_t)rand_r(&seed) % 5);
      if (lone_feed(&lone, frame, 9 + length) != OK || lone_is_over(&lone))
        break;
      if (lone.seen.stream && rand_r(&seed) % 2)
        http2_finish_grpc(lone.seen.stream, 1, "x");
    }
    lone_close(&lone);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_call_goes_there_and_back),
    cmocka_unit_test(an_error_is_told_in_headers_only),
    cmocka_unit_test(an_early_answer_stops_the_client),
    cmocka_unit_test(bytes_of_others_are_not_copied_and_given_back_once),
    cmocka_unit_test(what_was_not_sent_is_given_back),
    cmocka_unit_test(sending_on_a_finished_stream_is_refused),
    cmocka_unit_test(small_pieces_share_a_frame),
    cmocka_unit_test(what_is_no_http2_is_refused),
    cmocka_unit_test(a_block_of_many_fields_is_cut_off),
    cmocka_unit_test(a_header_frame_that_is_too_large_is_a_frame_size_error),
    cmocka_unit_test(a_flood_of_useless_frames_ends_the_connection),
    cmocka_unit_test(a_smaller_stream_number_ends_the_connection),
    cmocka_unit_test(useless_frames_now_and_then_are_fine),
    cmocka_unit_test(random_frames_never_do_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
