/* test_attacks.c: a task under attack by strangers on its address: it stays up, serves its peers, and its memory stays bounded.
 * Raw bytes over sockets; the attacks are those of notes on HTTP/2 servers since 2019. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <pthread.h>
#include <stdatomic.h>
#include "runtime/cluster/cluster.h"
#include "runtime/net/grpc_server.h"
#include "runtime/net/http2.h"
#include "runtime/net/loop.h"
#include "runtime/net/net_limits.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef __SANITIZE_THREAD__ /* ten times as slow, and each byte has some beside it that say who has touched it */
#define PEER_MS 20000
#define SHADOW 4
#else
#define PEER_MS 4000 /* 2 s where the machine has nothing else to do */
#define SHADOW 0
#endif

static struct cluster *cluster;
static char path[80], peer_path[80];
static struct cluster_task tasks[2] = {{"ps", 0, NULL}, {"worker", 0, NULL}};

static void quiet(void *self, const char *line) { (void)self, (void)line; }

static long resident_kib(void) {
  long pages = 0, total = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%ld %ld", &total, &pages) != 2)
    pages = 0;
  if (file)
    fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024) / (1 + SHADOW);
}

static int dial(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  struct timeval patience = {.tv_sec = 5};
  strcpy(address.sun_path, path + 5);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

/* False when the task has cut the connection, or takes nothing more. */
static bool put(int fd, const void *data, size_t size) { return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size; }

static void drain(int fd) {
  char buffer[65536];
  while (recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) > 0)
    ;
}

static bool is_cut(int fd) { /* reads to the end */
  char buffer[65536];
  ssize_t got;
  while ((got = recv(fd, buffer, sizeof buffer, 0)) > 0)
    ;
  return got == 0 || errno == ECONNRESET;
}

static size_t frame(uint8_t *to, size_t length, uint8_t type, uint8_t flags, uint32_t stream) {
  uint8_t head[9] = {(uint8_t)(length >> 16), (uint8_t)(length >> 8),  (uint8_t)length,        type,           flags,
                     (uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
  memcpy(to, head, 9);
  return 9 + length;
}

static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
static void greet(int fd) { assert_true(put(fd, hello, sizeof hello - 1)); }

/* A peer connects, and is served; says how long it took. */
static void peer_is_served(void) {
  struct cluster *worker = NULL;
  uint32_t ps = 0;
  uint64_t began_ms = loop_now_ms();
  struct cluster_config config = {.task = 1, .task_count = 2, .tasks = tasks, .timeout_s = 10, .log = quiet};
  assert_int_equal(cluster_create(&config, &worker), OK);
  assert_int_equal(cluster_start(worker), OK);
  assert_int_equal(cluster_wait_peers(worker, &ps, 1), OK);
  uint64_t taken_ms = loop_now_ms() - began_ms;
  print_message("           a peer was in after %d ms\n", (int)taken_ms);
  assert_true(taken_ms < PEER_MS);
  cluster_destroy(worker);
}

/* HEADERS of a request: POST of a path, with gRPC's content type; more follows. */
static size_t request(uint8_t *to, const char *path, uint32_t stream) {
  size_t at = 9, path_size = strlen(path);
  static const char type[] = "\x41\x04"
                             "here"
                             "\x5f\x10"
                             "application/grpc";
  memcpy(to + at, "\x83\x86\x44", 3);
  to[at + 3] = (uint8_t)path_size;
  memcpy(to + at + 4, path, path_size);
  at += 4 + path_size;
  memcpy(to + at, type, sizeof type - 1);
  at += sizeof type - 1;
  frame(to, at - 9, 1, 4, stream);
  return at;
}

#define CREATE "/tensorflow.MasterService/CreateSession"

static void rapid_resets_end_the_connection(void **state) {
  (void)state;
  uint8_t bytes[64];
  int fd = dial();
  bool is_open = true;
  greet(fd);
  for (uint32_t i = 0; i < 200000 && is_open; i++) {
    size_t size = frame(bytes, 3, 1, 4, 2 * i + 1);
    memcpy(bytes + 9, "\x83\x86\x84", 3); /* POST / */
    size += frame(bytes + size, 4, 3, 0, 2 * i + 1);
    memcpy(bytes + size - 4, "\0\0\0\x08", 4);
    is_open = put(fd, bytes, size);
    drain(fd);
  }
  assert_true(!is_open || is_cut(fd));
  close(fd);
  peer_is_served();
}

static void floods_of_control_frames_end_the_connection(void **state) {
  (void)state;
  static const struct { uint8_t type, length; } kinds[] = {{6, 8}, {4, 0}, {2, 5}, {8, 4}};
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    uint8_t bytes[32] = {0};
    int fd = dial();
    bool is_open = true;
    greet(fd);
    size_t size = frame(bytes, kinds[kind].length, kinds[kind].type, 0, kinds[kind].type == 2 ? 1 : 0);
    bytes[12] = kinds[kind].type == 8;
    for (int i = 0; i < 300000 && is_open; i++)
      is_open = put(fd, bytes, size); /* nothing is read: its answers pile up */
    assert_true(!is_open || is_cut(fd));
    close(fd);
  }
  peer_is_served();
}

static void endless_continuations_end_the_connection(void **state) {
  (void)state;
  uint8_t bytes[9 + 1000];
  int fd = dial();
  bool is_open = true;
  greet(fd);
  size_t size = frame(bytes, 3, 1, 0, 1);
  memcpy(bytes + 9, "\x83\x86\x84", 3);
  put(fd, bytes, size);
  memset(bytes, 0x90, sizeof bytes);
  size = frame(bytes, 1000, 9, 0, 1);
  for (int i = 0; i < 100000 && is_open; i++)
    is_open = put(fd, bytes, size);
  assert_true(!is_open || is_cut(fd));
  close(fd);
  peer_is_served();
}

static void header_bombs_cost_nothing(void **state) {
  (void)state;
  long before = resident_kib();
  uint8_t *bytes = malloc(9 + 40000);
  for (int round = 0; round < 50; round++) {
    int fd = dial();
    greet(fd);
    /* one field of 4000 bytes into the table, then references to it, one byte each */
    size_t at = 9;
    memcpy(bytes + at, "\x83\x86\x84\x40\x01x\x7f\xa1\x1e", 9);
    at += 9;
    memset(bytes + at, 'a', 4000);
    at += 4000;
    memset(bytes + at, 0xbe, 20000);
    at += 20000;
    frame(bytes, at - 9, 1, 5, 1);
    put(fd, bytes, at);
    close(fd);
  }
  free(bytes);
  peer_is_served();
  assert_true(resident_kib() - before < 32 * 1024);
}

static void a_claimed_gigabyte_is_not_allocated(void **state) {
  (void)state;
  long before = resident_kib();
  for (int round = 0; round < 20; round++) {
    uint8_t bytes[256];
    int fd = dial();
    greet(fd);
    static const char fields[] = "\x83\x86\x41\x04"
                                 "here"
                                 "\x44\x0e/tfc.Task/Link\x5f\x10"
                                 "application/grpc";
    size_t size = frame(bytes, sizeof fields - 1, 1, 4, 1);
    memcpy(bytes + 9, fields, sizeof fields - 1);
    size_t data = frame(bytes + size, 6, 0, 0, 1);
    memcpy(bytes + size + 9, "\0\x3f\xff\xff\xff\3", 6);
    put(fd, bytes, size + data);
    drain(fd);
    close(fd);
  }
  peer_is_served();
  assert_true(resident_kib() - before < 32 * 1024);
}

static void garbage_is_cut_off(void **state) {
  (void)state;
  unsigned seed = 11;
  for (int round = 0; round < 200; round++) {
    uint8_t bytes[500];
    int fd = dial();
    if (round % 2)
      greet(fd);
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (uint8_t)rand_r(&seed);
    put(fd, bytes, sizeof bytes);
    close(fd);
  }
  peer_is_served();
}

static void idle_strangers_do_not_keep_a_peer_out(void **state) {
  (void)state;
  static int fds[NET_STRANGERS - 2];
  for (int i = 0; i < NET_STRANGERS - 2; i++)
    fds[i] = dial();
  peer_is_served();
  for (int i = 0; i < NET_STRANGERS - 2; i++)
    close(fds[i]);
  peer_is_served();
}

static void the_oldest_of_too_many_strangers_goes(void **state) {
  (void)state;
  static int fds[NET_STRANGERS + 20];
  for (int i = 0; i < NET_STRANGERS + 20; i++)
    fds[i] = dial();
  peer_is_served();
  assert_true(is_cut(fds[0]));
  for (int i = 0; i < NET_STRANGERS + 20; i++)
    close(fds[i]);
  peer_is_served();
}

static int crowd[NET_STRANGERS + 64];
#define CROWD ((int)(sizeof crowd / sizeof *crowd))

/* Strangers with a request each that does not end. */
static void crowd_come(const char *path) {
  uint8_t bytes[256];
  for (int i = 0; i < CROWD; i++) {
    crowd[i] = dial();
    greet(crowd[i]);
    put(crowd[i], bytes, request(bytes, path, 1));
  }
}

static void crowd_go(void) {
  for (int i = 0; i < CROWD; i++)
    close(crowd[i]);
}

static void strangers_with_a_request_each_do_not_keep_a_peer_out(void **state) {
  (void)state;
  static const char *const paths[] = {"/", CREATE, "/tfc.Task/Link"};
  for (int i = 0; i < 3; i++) {
    crowd_come(paths[i]);
    peer_is_served();
    crowd_go();
    peer_is_served();
  }
}

static atomic_bool storm_is_over;

/* Connects, says what a task would, and goes, as fast as it can. */
static void *storm(void *unused) {
  uint8_t bytes[256];
  size_t size = request(bytes, "/tfc.Task/Link", 1);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strcpy(address.sun_path, path + 5);
  for (int kept[64] = {0}, i = 0; !storm_is_over || kept[i % 64]; i++) {
    if (kept[i % 64])
      close(kept[i % 64]);
    kept[i % 64] = storm_is_over ? 0 : socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (kept[i % 64] > 0 && connect(kept[i % 64], (struct sockaddr *)&address, sizeof address) == 0 &&
        put(kept[i % 64], hello, sizeof hello - 1))
      put(kept[i % 64], bytes, size);
  }
  return unused;
}

static void a_storm_of_connections_does_not_keep_a_peer_out(void **state) {
  (void)state;
  pthread_t threads[2];
  storm_is_over = false;
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, storm, NULL), 0);
  for (int i = 0; i < 10; i++)
    peer_is_served();
  storm_is_over = true;
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
}

/* Sends to all of the crowd, as much as they take: data of a request that is not taken. */
static void *flood(void *unused) {
  static uint8_t bytes[9 + 16384];
  frame(bytes, 16384, 0, 0, 1);
  while (!storm_is_over)
    for (int i = 0; i < CROWD; i++)
      send(crowd[i], bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  return unused;
}

static void a_flood_of_data_does_not_keep_a_peer_out(void **state) {
  (void)state;
  pthread_t thread;
  storm_is_over = false;
  crowd_come("/");
  assert_int_equal(pthread_create(&thread, NULL, flood, NULL), 0);
  for (int i = 0; i < 5; i++)
    peer_is_served();
  storm_is_over = true;
  pthread_join(thread, NULL);
  crowd_go();
}

/* A client's end, for what it is answered. */
struct answer {
  bool is_over;
  int grpc_status;
  char text[512];
};

static void answer_end(void *self, struct http2_stream *stream) {
  struct answer *answer = self;
  answer->is_over = true;
  answer->grpc_status = stream->grpc_status;
  snprintf(answer->text, sizeof answer->text, "%s", stream->grpc_message ? stream->grpc_message : "");
}
static void answer_headers(void *self, struct http2_stream *stream) { (void)self, (void)stream; }
static void answer_data(void *self, struct http2_stream *stream, const uint8_t *data, size_t size) {
  (void)self, (void)stream, (void)data, (void)size;
}
static void answer_close(void *self, struct http2_stream *stream, uint32_t error) {
  (void)stream, (void)error, ((struct answer *)self)->is_over = true;
}
static void answer_goaway(void *self, uint32_t error) { (void)self, (void)error; }

static struct answer ask(const char *asked) {
  static const struct http2_handler handler = {answer_headers, answer_data, answer_end, answer_close, answer_goaway};
  struct answer answer = {.grpc_status = -1};
  struct http2 *http2;
  int fd = dial();
  assert_int_equal(http2_create(false, &handler, &answer, &http2), OK);
  struct http2_stream *stream = http2_request(http2, asked, "here", NULL);
  assert_int_equal(http2_send_copy(stream, "\0\0\0\0\0", 5), OK);
  http2_finish(stream);
  while (!answer.is_over) {
    const struct iovec *pieces;
    uint8_t bytes[4096];
    while (http2_output(http2, &pieces) > 0) {
      assert_true(put(fd, pieces[0].iov_base, pieces[0].iov_len));
      http2_written(http2, pieces[0].iov_len);
    }
    ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got <= 0 || http2_receive(http2, loop_now_ms(), bytes, (size_t)got) != OK)
      break;
  }
  http2_destroy(http2);
  close(fd);
  return answer;
}

static void on_call(void *self, struct grpc_call *call) {
  (void)self;
  grpc_call_reply(call, OK, NULL, NULL, 0);
}

/* 4 MiB of a request that is announced to have 16 MiB, once the task's settings allow so much. */
static void send_much(int fd) {
  static uint8_t bytes[9 + 16384];
  assert_true(recv(fd, bytes, sizeof bytes, 0) > 0);
  put(fd, bytes, frame(bytes, 0, 4, 1, 0));
  frame(bytes, 16384, 0, 0, 1);
  for (int i = 0; i < 256; i++) {
    memcpy(bytes + 9, "\0\1\0\0\0", 5);
    if (!put(fd, bytes, sizeof bytes))
      break;
  }
}

static void requests_of_strangers_hold_at_most_64_mib_together(void **state) {
  (void)state;
  uint8_t bytes[256];
  cluster_set_service(cluster, &(struct grpc_service){NULL, on_call});
  long before = resident_kib();
  for (int i = 0; i < 200; i++) {
    crowd[i] = dial();
    greet(crowd[i]);
    put(crowd[i], bytes, request(bytes, CREATE, 1));
    send_much(crowd[i]);
  }
  assert_int_equal(ask(CREATE).grpc_status, OK); /* what it asks for costs nothing */
  peer_is_served();
  print_message("           200 unfinished requests of 4 MiB hold %ld KiB\n", resident_kib() - before);
  assert_true(resident_kib() - before < 64 * 1024);
  for (int i = 0; i < 200; i++)
    close(crowd[i]);
  peer_is_served();
  cluster_set_service(cluster, NULL);
}

static void clients_are_refused_while_tasks_run_phases(void **state) {
  (void)state;
  struct cluster *worker = NULL;
  uint32_t ps = 0;
  struct cluster_config config = {.task = 1, .task_count = 2, .tasks = tasks, .timeout_s = 10, .has_phases = true, .log = quiet};
  cluster_set_service(cluster, &(struct grpc_service){NULL, on_call});
  assert_int_equal(cluster_create(&config, &worker), OK);
  assert_int_equal(cluster_start(worker), OK);
  assert_int_equal(cluster_wait_peers(worker, &ps, 1), OK);
  struct answer answer = ask(CREATE);
  assert_int_equal(answer.grpc_status, PERMISSION_DENIED);
  assert_non_null(strstr(answer.text, "--allow-clients"));
  cluster_announce_finished(worker);
  usleep(100000);
  assert_int_equal(ask(CREATE).grpc_status, OK);
  cluster_destroy(worker);
  cluster_set_service(cluster, NULL);
}

static int task_open(void **state) {
  (void)state;
  snprintf(path, sizeof path, "unix:/tmp/tfc-attacked-%d", (int)getpid());
  snprintf(peer_path, sizeof peer_path, "unix:/tmp/tfc-attacked-%d-peer", (int)getpid());
  tasks[0].address = path;
  tasks[1].address = peer_path;
  struct cluster_config config = {.task_count = 2, .tasks = tasks, .timeout_s = 10, .log = quiet};
  return cluster_create(&config, &cluster) != OK || cluster_start(cluster) != OK;
}

static int task_close(void **state) {
  (void)state;
  cluster_destroy(cluster);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rapid_resets_end_the_connection),
    cmocka_unit_test(floods_of_control_frames_end_the_connection),
    cmocka_unit_test(endless_continuations_end_the_connection),
    cmocka_unit_test(header_bombs_cost_nothing),
    cmocka_unit_test(a_claimed_gigabyte_is_not_allocated),
    cmocka_unit_test(garbage_is_cut_off),
    cmocka_unit_test(idle_strangers_do_not_keep_a_peer_out),
    cmocka_unit_test(the_oldest_of_too_many_strangers_goes),
    cmocka_unit_test(strangers_with_a_request_each_do_not_keep_a_peer_out),
    cmocka_unit_test(a_storm_of_connections_does_not_keep_a_peer_out),
    cmocka_unit_test(a_flood_of_data_does_not_keep_a_peer_out),
    cmocka_unit_test(requests_of_strangers_hold_at_most_64_mib_together),
    cmocka_unit_test(clients_are_refused_while_tasks_run_phases),
  };
  return cmocka_run_group_tests(tests, task_open, task_close);
}
