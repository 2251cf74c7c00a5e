/* cluster_tasks.h: clusters in this one process, each with its own thread and sockets, and what each was told. For the tests of them. */
#ifndef TFC_TESTS_RUNTIME_CLUSTER_TASKS_H
#define TFC_TESTS_RUNTIME_CLUSTER_TASKS_H

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "runtime/cluster/cluster.h"
#include "runtime/net/loop.h"
#include "runtime/net/net_limits.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define TASKS_MAX 4

/* What one task was told, in order. */
struct recorder {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int starts, tensors, dones, cancels, losses, joins, new_joins, controls;
  uint32_t driver, entry, from, transfer, lost;
  uint32_t command;
  uint64_t step, serial;
  status code;
  char text[512], reason[256], control[64], log[2048];
  struct tensor *tensor;
};

static void note_start(void *self, uint32_t driver, uint64_t step, uint32_t entry, uint32_t command, uint64_t serial) {
  struct recorder *r = self;
  pthread_mutex_lock(&r->lock);
  r->starts++;
  r->driver = driver;
  r->step = step;
  r->entry = entry;
  r->command = command;
  r->serial = serial;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}
static void note_tensor(void *self, uint32_t from, uint64_t step, uint32_t transfer, struct tensor *tensor) {
  struct recorder *r = self;
  pthread_mutex_lock(&r->lock);
  tensor_release(r->tensor);
  r->tensor = tensor;
  r->tensors++;
  r->from = from;
  r->step = step;
  r->transfer = transfer;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}
static void note_done(void *self, uint32_t from, uint64_t step, status code, const char *text) {
  struct recorder *r = self;
  pthread_mutex_lock(&r->lock);
  r->dones++;
  r->from = from;
  r->step = step;
  r->code = code;
  snprintf(r->text, sizeof r->text, "%s", text);
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}
static void note_cancel(void *self, uint64_t step) {
  struct recorder *r = self;
  pthread_mutex_lock(&r->lock);
  r->cancels++;
  r->step = step;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}
static void note_lost(void *self, uint32_t task, const char *reason) {
  struct recorder *r = self;
  pthread_mutex_lock(&r->lock);
  r->losses++;
  r->lost = task;
  snprintf(r->reason, sizeof r->reason, "%s", reason);
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}
static void note_joined(void *self, uint32_t task, bool is_new) {
  struct recorder *r = self;
  (void)task;
  pthread_mutex_lock(&r->lock);
  r->joins++;
  r->new_joins += is_new;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}
static void note_control(void *self, uint32_t from, const void *data, size_t size) {
  struct recorder *r = self;
  pthread_mutex_lock(&r->lock);
  r->controls++;
  r->from = from;
  snprintf(r->control, sizeof r->control, "%.*s", (int)size, (const char *)data);
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}
static void note_log(void *self, const char *line) {
  struct recorder *r = self;
  pthread_mutex_lock(&r->lock);
  snprintf(r->log + strlen(r->log), sizeof r->log - strlen(r->log), "%s\n", line);
  pthread_mutex_unlock(&r->lock);
}

static struct recorder recorders[TASKS_MAX];
static struct cluster *clusters[TASKS_MAX];
static char addresses[TASKS_MAX][108];
static struct cluster_task tasks[TASKS_MAX];

static bool wait_count(struct recorder *r, int *counter, int count) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 20;
  pthread_mutex_lock(&r->lock);
  while (*counter < count && pthread_cond_timedwait(&r->changed, &r->lock, &until) == 0)
    ;
  bool reached = *counter >= count;
  pthread_mutex_unlock(&r->lock);
  return reached;
}

/* An address of 127/8 of each task of each process: the tests that run beside this one find other free ports, and call nobody here. */
static struct in_addr own_host(uint32_t task) { return (struct in_addr){htonl(127u << 24 | ((uint32_t)getpid() << 2 & 0xffffff) | task)}; }

static int free_port(struct in_addr host) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = host};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
  getsockname(fd, (struct sockaddr *)&address, &size);
  close(fd);
  return ntohs(address.sin_port);
}

/* Tasks ps_0, worker_0, worker_1, worker_2. */
static void choose_addresses(bool use_unix) {
  for (uint32_t i = 0; i < TASKS_MAX; i++) {
    if (use_unix)
      snprintf(addresses[i], sizeof addresses[i], "unix:/tmp/tfc-test-%d-%u", (int)getpid(), i);
    else
      snprintf(addresses[i], sizeof addresses[i], "%s:%d", inet_ntoa(own_host(i)), free_port(own_host(i)));
    tasks[i] = (struct cluster_task){i == 0 ? "ps" : "worker", i == 0 ? 0 : i - 1, addresses[i]};
    recorders[i] = (struct recorder){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    clusters[i] = NULL;
  }
}

static struct cluster_config config_of(uint32_t task, uint32_t count, bool has_phases) {
  return (struct cluster_config){
    .task = task,
    .task_count = count,
    .tasks = tasks,
    .build_id = 77,
    .timeout_s = 10,
    .has_phases = has_phases,
    .only_addresses = true,
    .log = note_log,
    .log_self = &recorders[task],
    .sink = {&recorders[task], note_start, note_tensor, note_done, note_cancel, note_lost, .on_joined = note_joined}};
}

static void start_task(uint32_t task, uint32_t count, bool has_phases) {
  struct cluster_config config = config_of(task, count, has_phases);
  assert_int_equal(cluster_create(&config, &clusters[task]), OK);
  cluster_on_control(clusters[task], CONTROL_VIEW, note_control, &recorders[task]);
  assert_int_equal(cluster_start(clusters[task]), OK);
}

static void stop_tasks(void) {
  for (uint32_t i = 0; i < TASKS_MAX; i++) {
    cluster_destroy(clusters[i]);
    clusters[i] = NULL;
    tensor_release(recorders[i].tensor);
    recorders[i].tensor = NULL;
  }
}

static void need(uint32_t task, uint32_t other) {
  status code = cluster_wait_peers(clusters[task], &other, 1);
  if (code != OK)
    fail_msg("%s", status_text());
}

#endif
