/* raw_loop.c: what sockets alone can do: a server and as many clients as there are workers, each a process, exchanging messages of two
 * sizes.
 *
 *   raw_loop PATH CLIENTS SEND_BYTES RECEIVE_BYTES ROUNDS
 *
 * Each client sends and receives ROUNDS times over a Unix socket; prints seconds, and the median and p99 of a round in us. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE (1 << 20)

static size_t send_bytes, receive_bytes;
static long rounds;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void move(ssize_t (*how)(int, char *, size_t), int fd, char *memory, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t moved = how(fd, memory + at, size - at < PIECE ? size - at : PIECE);
    if (moved <= 0)
      exit(1);
    at += (size_t)moved;
  }
}
static ssize_t write_some(int fd, char *memory, size_t size) { return write(fd, memory, size); }
static ssize_t read_some(int fd, char *memory, size_t size) { return read(fd, memory, size); }

static char *memory_of(size_t size) {
  char *memory = malloc(size + 1);
  if (!memory)
    exit(1);
  memset(memory, 1, size + 1);
  return memory;
}

static void *serve(void *socket_number) {
  int fd = (int)(long)socket_number;
  char *in = memory_of(send_bytes), *out = memory_of(receive_bytes);
  for (long i = 0; i < rounds; i++) {
    move(read_some, fd, in, send_bytes);
    move(write_some, fd, out, receive_bytes);
  }
  close(fd);
  free(in);
  free(out);
  return NULL;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void client(const struct sockaddr_un *address, int report) {
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  char *out = memory_of(send_bytes), *in = memory_of(receive_bytes);
  double *times = malloc(sizeof *times * (size_t)rounds);
  if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 || !times)
    exit(1);
  double begin = now_s();
  for (long i = 0; i < rounds; i++) {
    double at = now_s();
    move(write_some, fd, out, send_bytes);
    move(read_some, fd, in, receive_bytes);
    times[i] = now_s() - at;
  }
  double seconds = now_s() - begin;
  qsort(times, (size_t)rounds, sizeof *times, compare);
  double result[3] = {seconds, 1e6 * times[rounds / 2], 1e6 * times[rounds * 99 / 100]};
  if (write(report, result, sizeof result) != sizeof result)
    exit(1);
  exit(0);
}

int main(int argc, char **argv) {
  if (argc != 6)
    return 64;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);
  int clients = atoi(argv[2]), reports[2], listener = socket(AF_UNIX, SOCK_STREAM, 0);
  send_bytes = (size_t)atoll(argv[3]);
  receive_bytes = (size_t)atoll(argv[4]);
  rounds = atol(argv[5]);
  unlink(argv[1]);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, clients) != 0 || pipe(reports) != 0)
    return 1;
  for (int i = 0; i < clients; i++)
    if (fork() == 0)
      client(&address, reports[1]);
  for (int i = 0; i < clients; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, serve, (void *)(long)accept(listener, NULL, NULL));
  }
  double worst[3] = {0}, one[3];
  for (int i = 0; i < clients; i++) {
    if (read(reports[0], one, sizeof one) != sizeof one)
      return 1;
    for (int j = 0; j < 3; j++)
      worst[j] = one[j] > worst[j] ? one[j] : worst[j];
  }
  while (wait(NULL) > 0)
    ;
  unlink(argv[1]);
  printf("%.6f %.2f %.2f\n", worst[0], worst[1], worst[2]);
  return 0;
}
