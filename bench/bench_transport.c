/* bench_transport.c: how fast tensors cross between two tasks on this machine, beside a plain socket loop of the same run.
 *
 *   bench_transport [MiB per tensor, default 64] [seconds per row, default 2]
 *
 * Rows: a raw socket over memory of the same size as the tensors, written and read in 1 MiB pieces; the exchange of
 * runtime/cluster/cluster.h with tensors of the given size; and the round trip of an empty message (raw: one byte; exchange: START answered
 * by DONE). Two threads of one process each way, as two tasks of a host would have it.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "compiler/certificate.h"
#include "runtime/cluster/cluster.h"

#define IN_FLIGHT 4
#define PIECE (1 << 20)
#define ROUNDS 20000

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- raw ---- */

static void socket_pair(bool use_unix, int out[2]) {
  if (use_unix) {
    socketpair(AF_UNIX, SOCK_STREAM, 0, out);
    return;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  bind(listener, (struct sockaddr *)&address, size);
  listen(listener, 1);
  getsockname(listener, (struct sockaddr *)&address, &size);
  out[0] = socket(AF_INET, SOCK_STREAM, 0);
  connect(out[0], (struct sockaddr *)&address, size);
  out[1] = accept(listener, NULL, NULL);
  for (int i = 0; i < 2; i++)
    setsockopt(out[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  close(listener);
}

struct raw_end {
  int fd;
  int64_t bytes;
  char *memory;
};

/* Into memory as large as the tensors in flight: a buffer that stays in the cache would flatter it. */
static void *raw_drain(void *self) {
  const struct raw_end *end = self;
  char *memory = end->memory;
  ssize_t got = 1;
  for (int64_t at = 0; got > 0; at = (at + got) % (IN_FLIGHT * end->bytes))
    got = read(end->fd, memory + at, (size_t)(IN_FLIGHT * end->bytes - at < PIECE ? IN_FLIGHT * end->bytes - at : PIECE));
  return NULL;
}

static double raw_bandwidth(bool use_unix, int64_t bytes, double seconds) {
  int ends[2];
  pthread_t thread;
  char *memory = malloc((size_t)(IN_FLIGHT * bytes));
  memset(memory, 1, (size_t)(IN_FLIGHT * bytes)); /* mapped before the clock runs */
  socket_pair(use_unix, ends);
  struct raw_end end = {ends[1], bytes, malloc((size_t)(IN_FLIGHT * bytes))};
  memset(end.memory, 1, (size_t)(IN_FLIGHT * bytes));
  pthread_create(&thread, NULL, raw_drain, &end);
  double sent = 0, began = seconds_now(), taken = 0;
  for (int64_t at = 0; (taken = seconds_now() - began) < seconds; at = (at + PIECE) % (IN_FLIGHT * bytes))
    sent += (double)write(ends[0], memory + at, PIECE);
  close(ends[0]);
  pthread_join(thread, NULL);
  close(ends[1]);
  free(memory);
  free(end.memory);
  return sent / taken / 1e9;
}

static void *raw_echo(void *self) {
  int fd = *(int *)self;
  char byte;
  while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1)
    ;
  return NULL;
}

static double raw_round_trip(bool use_unix) {
  int ends[2];
  pthread_t thread;
  char byte = 0;
  socket_pair(use_unix, ends);
  pthread_create(&thread, NULL, raw_echo, &ends[1]);
  double began = seconds_now();
  for (int i = 0; i < ROUNDS; i++)
    if (write(ends[0], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
      break;
  double taken = seconds_now() - began;
  close(ends[0]);
  pthread_join(thread, NULL);
  close(ends[1]);
  return taken / ROUNDS * 1e6;
}

/* ---- the exchange ---- */

struct counter {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  long count;
  struct cluster *cluster; /* whose task answers */
};
static struct counter received = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL};
static struct counter answered = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL};

static void counter_add(struct counter *counter) {
  pthread_mutex_lock(&counter->lock);
  counter->count++;
  pthread_cond_signal(&counter->changed);
  pthread_mutex_unlock(&counter->lock);
}

static void counter_wait(struct counter *counter, long count) {
  pthread_mutex_lock(&counter->lock);
  while (counter->count < count)
    pthread_cond_wait(&counter->changed, &counter->lock);
  pthread_mutex_unlock(&counter->lock);
}

static void take_tensor(void *self, uint32_t from, uint64_t step, uint32_t transfer, struct tensor *tensor) {
  (void)self, (void)from, (void)step, (void)transfer;
  tensor_release(tensor);
  counter_add(&received);
}
static void take_start(void *self, uint32_t driver, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial) {
  (void)self, (void)entry, (void)command, (void)serial;
  struct exchange *exchange = cluster_exchange(received.cluster);
  exchange->done(exchange->self, driver, step, OK, "");
}
static void take_done(void *self, uint32_t from, uint64_t step, status code, const char *text) {
  (void)self, (void)from, (void)step, (void)code, (void)text;
  counter_add(&answered);
}

/* Certificates of a CA of this run, in its folder; removed at the end. */
static char folder[] = "/tmp/tfc-bench-XXXXXX";
static const char *const cert_names[] = {"ps_0", "worker_0", "ca"};

static const char *cert_file(int i, const char *suffix) {
  static char paths[8][128];
  static int turn;
  char *path = paths[turn++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s.%s", folder, cert_names[i], suffix);
  return path;
}

static void certificates_make(void) {
  struct authority *authority = NULL;
  status code = mkdtemp(folder) ? authority_create("bench", &authority) : UNAVAILABLE;
  for (int i = 0; i < 2 && code == OK; i++)
    code =
      authority_issue(authority, &(struct certificate_request){.name = cert_names[i], .days = 1}, cert_file(i, "crt"), cert_file(i, "key"));
  if (code == OK)
    code = authority_write(authority, cert_file(2, "crt"), cert_file(2, "key"));
  authority_destroy(authority);
  if (code != OK)
    exit(1);
}

static void certificates_remove(void) {
  for (int i = 0; i < 3; i++) {
    unlink(cert_file(i, "crt"));
    unlink(cert_file(i, "key"));
  }
  rmdir(folder);
}

static struct cluster *task_start(const struct cluster_task *tasks, uint32_t task, bool is_sealed) {
  struct tls_files files = {0};
  if (is_sealed)
    files = (struct tls_files){strdup(cert_file((int)task, "crt")), strdup(cert_file((int)task, "key")), strdup(cert_file(2, "crt"))};
  struct cluster_config config = {.tls = files,
                                  .task = task,
                                  .task_count = 2,
                                  .tasks = tasks,
                                  .timeout_s = 10,
                                  .has_phases = true,
                                  .only_addresses = true,
                                  .sink = {.on_start = take_start, .on_tensor = take_tensor, .on_done = take_done}};
  struct cluster *cluster = NULL;
  if (cluster_create(&config, &cluster) != OK || cluster_start(cluster) != OK) {
    fprintf(stderr, "error: %s\n", status_text());
    exit(1);
  }
  return cluster;
}

static double exchange_bandwidth(struct exchange *worker, int64_t bytes, double seconds) {
  struct tensor *tensors[IN_FLIGHT];
  for (int i = 0; i < IN_FLIGHT; i++) {
    if (tensor_create(DTYPE_UINT8, &(struct shape){1, {bytes}}, &tensors[i]) != OK)
      exit(1);
    memset(tensors[i]->data, i, (size_t)bytes);
  }
  long sent = 0, before = received.count;
  double began = 0;
  for (long warm = 2 * IN_FLIGHT; began == 0 || seconds_now() - began < seconds;) {
    worker->send(worker->self, 0, 1, 1, tensor_retain(tensors[sent % IN_FLIGHT]));
    if (++sent > IN_FLIGHT)
      counter_wait(&received, before + sent - IN_FLIGHT);
    if (sent == warm && began == 0) { /* the memory at both ends is in use by now */
      counter_wait(&received, before + sent);
      before += sent;
      sent = 0;
      began = seconds_now();
    }
  }
  counter_wait(&received, before + sent);
  double taken = seconds_now() - began;
  for (int i = 0; i < IN_FLIGHT; i++)
    tensor_release(tensors[i]);
  return (double)sent * (double)bytes / taken / 1e9;
}

static double exchange_round_trip(struct exchange *worker) {
  long before = answered.count;
  double began = seconds_now();
  for (long i = 1; i <= ROUNDS; i++) {
    worker->start(worker->self, 0, (uint64_t)i, 0, 0, 0);
    counter_wait(&answered, before + i);
  }
  return (seconds_now() - began) / ROUNDS * 1e6;
}

static void measure(const char *name, bool use_unix, bool is_sealed, int64_t bytes, double seconds) {
  char addresses[2][64];
  for (int i = 0; i < 2; i++)
    snprintf(addresses[i], sizeof addresses[i], use_unix ? "unix:/tmp/tfc-bench-%d-%d" : "127.0.0.1:%d",
             use_unix ? (int)getpid() : 20000 + (int)(getpid() * 2 % 10000) + i, i);
  struct cluster_task tasks[2] = {{"ps", 0, addresses[0]}, {"worker", 0, addresses[1]}};
  struct cluster *ps = task_start(tasks, 0, is_sealed), *worker = task_start(tasks, 1, is_sealed);
  uint32_t zero = 0;
  received.cluster = ps;
  if (cluster_wait_peers(worker, &zero, 1) != OK)
    exit(1);
  struct exchange *exchange = cluster_exchange(worker);
  double raw = raw_bandwidth(use_unix, bytes, seconds), ours = exchange_bandwidth(exchange, bytes, seconds);
  double raw_trip = raw_round_trip(use_unix), trip = exchange_round_trip(exchange);
  printf("%-12s %8.2f %10.2f %7.0f %% %12.1f %12.1f\n", name, raw, ours, 100 * ours / raw, raw_trip, trip);
  cluster_destroy(worker);
  cluster_destroy(ps);
}

int main(int argc, char **argv) {
  int64_t bytes = (argc > 1 ? atoll(argv[1]) : 64) << 20;
  double seconds = argc > 2 ? atof(argv[2]) : 2;
  printf("%-12s %8s %10s %9s %12s %12s\n", "", "raw GB/s", "tensors", "of raw", "raw trip us", "trip us");
  certificates_make();
  measure("TCP", false, false, bytes, seconds);
  measure("Unix socket", true, false, bytes, seconds);
  measure("TCP, TLS", false, true, bytes, seconds);
  measure("Unix, TLS", true, true, bytes, seconds);
  certificates_remove();
  return 0;
}
