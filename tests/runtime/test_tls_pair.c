/* test_tls_pair.c: two ends of TLS joined by memory: what goes in comes out, and nothing else does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "compiler/certificate.h"
#include "runtime/net/tls.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static char folder[] = "/tmp/tfc-pair-XXXXXX";
static struct tls_context *ps, *worker, *stranger;

static const char *file(const char *name, const char *suffix) {
  static char paths[8][64];
  static int turn;
  char *path = paths[turn++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s.%s", folder, name, suffix);
  return path;
}

static status context_make(const struct authority *authority, const char *name, const char *as, const char *ca, struct tls_context **out) {
  char cert[64], key[64], trusted[64];
  snprintf(cert, sizeof cert, "%s", file(as, "crt"));
  snprintf(key, sizeof key, "%s", file(as, "key"));
  snprintf(trusted, sizeof trusted, "%s", file(ca, "crt"));
  TRY(authority_issue(authority, &(struct certificate_request){.name = name, .host = "127.0.0.1", .days = 1}, cert, key));
  return tls_context_create(&(struct tls_files){cert, key, trusted}, name, out);
}

static int make(void **state) {
  (void)state;
  struct authority *authority = NULL, *other = NULL;
  bool made =
    mkdtemp(folder) && authority_create("a", &authority) == OK && authority_create("b", &other) == OK &&
    authority_write(authority, file("ca", "crt"), file("ca", "key")) == OK &&
    authority_write(other, file("cb", "crt"), file("cb", "key")) == OK && context_make(authority, "ps_0", "ps_0", "ca", &ps) == OK &&
    context_make(authority, "worker_0", "worker_0", "ca", &worker) == OK && context_make(other, "worker_0", "other", "cb", &stranger) == OK;
  authority_destroy(authority);
  authority_destroy(other);
  return !made;
}

static int end(void **state) {
  (void)state;
  char command[80];
  tls_context_release(ps);
  tls_context_release(worker);
  tls_context_release(stranger);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0;
}

/* What one end has read. */
struct seen {
  uint8_t *data;
  size_t size, room;
  status code;
  char text[200];
};

static void read_all(struct tls *tls, struct seen *seen) {
  uint8_t piece[7000];
  size_t got = 1;
  while (seen->code == OK && got > 0) {
    seen->code = tls_read(tls, piece, sizeof piece, &got);
    if (seen->size + got > seen->room)
      seen->data = realloc(seen->data, seen->room = 2 * (seen->size + got));
    if (got > 0)
      memcpy(seen->data + seen->size, piece, got);
    seen->size += got;
  }
}

/* Moves what one end has to say to the other, in pieces; flip: one bit of it is another. Returns how much it was. */
static size_t move(struct tls *from, struct tls *to, struct seen *seen, size_t piece_max, size_t flip) {
  const uint8_t *bytes;
  size_t size = tls_output(from, &bytes);
  uint8_t *copy = malloc(size + 1);
  memcpy(copy, bytes, size);
  tls_sent(from, size);
  if (flip < size)
    copy[flip] ^= 0x10;
  for (size_t at = 0, piece; at < size; at += piece) {
    piece = size - at < piece_max ? size - at : piece_max;
    if (seen->code == OK)
      seen->code = tls_receive(to, copy + at, piece);
    read_all(to, seen);
  }
  if (seen->code != OK && !seen->text[0])
    snprintf(seen->text, sizeof seen->text, "%s", status_text());
  free(copy);
  return size;
}

struct pair {
  struct tls *client, *server;
  struct seen of_client, of_server;
};

static void pair_open(struct pair *p, struct tls_context *client, const char *dialled, struct tls_context *server, size_t piece_max) {
  *p = (struct pair){0};
  assert_int_equal(tls_create(client, dialled, &p->client), OK);
  assert_int_equal(tls_create(server, NULL, &p->server), OK);
  assert_int_equal(tls_receive(p->client, NULL, 0), OK);
  while (move(p->client, p->server, &p->of_server, piece_max, SIZE_MAX) + move(p->server, p->client, &p->of_client, piece_max, SIZE_MAX) >
         0)
    continue;
}

static void pair_close(struct pair *p) {
  tls_destroy(p->client);
  tls_destroy(p->server);
  free(p->of_client.data);
  free(p->of_server.data);
}

static void what_is_sent_comes_in_whatever_pieces(void **state) {
  (void)state;
  static const size_t pieces[] = {1, 7, 1000, 100000, 1 << 22};
  uint8_t *data = malloc(3000000);
  for (size_t i = 0; i < 3000000; i++)
    data[i] = (uint8_t)(i * 7 >> 3);
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    struct pair p;
    size_t size = pieces[i] < 1000 ? 80000 : 3000000;
    struct iovec parts[] = {
      {data, 9}, {data + 9, 1}, {data + 10, 40000}, {data + 40010, 16384}, {data + 56394, 5}, {data + 56399, size - 56399}};
    pair_open(&p, worker, "ps_0", ps, pieces[i]);
    assert_true(tls_is_open(p.client) && tls_is_open(p.server));
    assert_true(tls_is_for(p.server, "worker_0") && tls_is_for(p.client, "ps_0") && !tls_is_for(p.server, "worker_1"));
    assert_false(tls_is_for(p.server, "127.0.0.1")); /* a host is no task */
    for (size_t part = 0, sent = 0, taken = 1; sent < size && taken > 0; sent += taken) {
      assert_int_equal(tls_send(p.client, parts + part, (int)(sizeof parts / sizeof *parts - part), &taken), OK);
      move(p.client, p.server, &p.of_server, pieces[i], SIZE_MAX);
      for (size_t left = taken; left > 0;) {
        size_t of_part = left < parts[part].iov_len ? left : parts[part].iov_len;
        parts[part].iov_base = (uint8_t *)parts[part].iov_base + of_part;
        parts[part].iov_len -= of_part;
        left -= of_part;
        part += parts[part].iov_len == 0;
      }
    }
    assert_int_equal(p.of_server.code, OK);
    assert_int_equal(p.of_server.size, size);
    assert_memory_equal(p.of_server.data, data, size);
    tls_finish(p.client);
    assert_true(move(p.client, p.server, &p.of_server, pieces[i], SIZE_MAX) > 0);
    assert_int_equal(p.of_server.code, OK);
    pair_close(&p);
  }
  free(data);
}

static void who_is_not_who_it_should_be_is_refused(void **state) {
  (void)state;
  struct pair p;
  pair_open(&p, worker, "ps_1", ps, 1000);
  assert_int_equal(p.of_client.code, UNAUTHENTICATED);
  assert_non_null(strstr(p.of_client.text, "is not for ps_1: it names ps_0"));
  assert_int_equal(p.of_server.code, UNAUTHENTICATED);
  assert_non_null(strstr(p.of_server.text, "the other side refuses this task's certificate"));
  pair_close(&p);
  pair_open(&p, stranger, "ps_0", ps, 1000);
  assert_non_null(strstr(p.of_client.text, "of another CA"));
  pair_close(&p);
}

static void a_changed_bit_ends_it(void **state) {
  (void)state;
  struct pair p;
  char text[] = "the weights";
  size_t taken;
  for (size_t flip = 0; flip < 30; flip++) {
    pair_open(&p, worker, "ps_0", ps, 1000);
    assert_int_equal(tls_send(p.client, &(struct iovec){text, sizeof text}, 1, &taken), OK);
    move(p.client, p.server, &p.of_server, 1000, flip);
    assert_int_equal(p.of_server.size, 0);
    assert_true(p.of_server.code == UNAUTHENTICATED || flip == 3 || flip == 4); /* the length: more is waited for */
    pair_close(&p);
  }
}

static void bytes_of_another_connection_are_refused(void **state) {
  (void)state;
  struct pair p, q;
  struct seen seen = {0};
  const uint8_t *bytes;
  char text[] = "the weights";
  size_t taken;
  pair_open(&p, worker, "ps_0", ps, 1000);
  pair_open(&q, worker, "ps_0", ps, 1000);
  assert_int_equal(tls_send(p.client, &(struct iovec){text, sizeof text}, 1, &taken), OK);
  size_t size = tls_output(p.client, &bytes);
  for (int again = 0; again < 2; again++) /* the same connection takes them once */
    seen.code = again == 0 || seen.code != OK ? seen.code : tls_receive(p.server, bytes, size);
  assert_int_equal(tls_receive(q.server, bytes, size), OK);
  read_all(q.server, &seen);
  assert_int_equal(seen.code, UNAUTHENTICATED);
  assert_int_equal(seen.size, 0);
  free(seen.data);
  pair_close(&p);
  pair_close(&q);
}

static void random_bytes_never_do_harm(void **state) {
  (void)state;
  unsigned seed = 3;
  uint8_t bytes[3000];
  for (int round = 0; round < 300; round++) {
    struct tls *server;
    struct seen seen = {0};
    assert_int_equal(tls_create(ps, NULL, &server), OK);
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (uint8_t)rand_r(&seed);
    if (round % 2)
      memcpy(bytes, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11); /* as a ClientHello begins */
    seen.code = tls_receive(server, bytes, sizeof bytes);
    read_all(server, &seen);
    assert_false(tls_is_open(server));
    free(seen.data);
    tls_destroy(server);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_sent_comes_in_whatever_pieces),
    cmocka_unit_test(who_is_not_who_it_should_be_is_refused),
    cmocka_unit_test(a_changed_bit_ends_it),
    cmocka_unit_test(bytes_of_another_connection_are_refused),
    cmocka_unit_test(random_bytes_never_do_harm),
  };
  return cmocka_run_group_tests(tests, make, end);
}
