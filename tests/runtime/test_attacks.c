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
#include "runtime/cluster/cluster.h"
#include "runtime/net/loop.h"
#include "runtime/net/net_limits.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
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
static bool put(int fd, const void *data, size_t size) {
  return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

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
  uint8_t head[9] = {(uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length, type, flags,
                     (uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
  memcpy(to, head, 9);
  return 9 + length;
}

static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
static void greet(int fd) { assert_true(put(fd, hello, sizeof hello - 1)); }

/* A peer connects, and is served. */
static void peer_is_served(void) {
  struct cluster *worker = NULL;
  uint32_t ps = 0;
  struct cluster_config config = {.task = 1, .task_count = 2, .tasks = tasks, .timeout_s = 10, .has_phases = true, .log = quiet};
  assert_int_equal(cluster_create(&config, &worker), OK);
  assert_int_equal(cluster_start(worker), OK);
  assert_int_equal(cluster_wait_peers(worker, &ps, 1), OK);
  cluster_destroy(worker);
}

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
  static const struct {
    uint8_t type, length;
  } kinds[] = {{6, 8}, {4, 0}, {2, 5}, {8, 4}};
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
    static const char fields[] = "\x83\x86\x44\x0e/tfc.Task/Link\x5f\x10" "application/grpc";
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
  };
  return cmocka_run_group_tests(tests, task_open, task_close);
}
