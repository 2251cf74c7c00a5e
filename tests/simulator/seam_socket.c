/* seam_socket.c: sockets, epoll, events and names of machines. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/simulator/fiber.h"
#include "tests/simulator/net.h"
#include "tests/simulator/poll.h"
#include "tests/simulator/process.h"
#include "tests/simulator/seam.h"
#include "tests/simulator/world.h"

static int answer(int error) {
  if (error)
    errno = error;
  return error ? -1 : 0;
}
static ssize_t answer_size(int64_t size) {
  if (size < 0)
    errno = (int)-size;
  return size < 0 ? -1 : (ssize_t)size;
}
static struct endpoint *find(int fd) { return (struct endpoint *)process_file(fd, &endpoint_kind); }

int simulated_socket(int family, int kind, int protocol) {
  (void)kind, (void)protocol;
  return process_add_file(process_self(), &endpoint_create(process_self(), family)->file);
}

int simulated_bind(int fd, const struct sockaddr *address, socklen_t size) {
  struct endpoint *endpoint = find(fd);
  return endpoint ? answer(endpoint_bind(endpoint, address, size)) : -1;
}

int simulated_listen(int fd, int backlog) {
  struct endpoint *endpoint = find(fd);
  (void)backlog;
  return endpoint ? answer(endpoint_listen(endpoint)) : -1;
}

int simulated_connect(int fd, const struct sockaddr *address, socklen_t size) {
  struct endpoint *endpoint = find(fd);
  return endpoint ? answer(endpoint_connect(endpoint, address, size)) : -1;
}

static void give_name(const struct name *name, struct sockaddr *address, socklen_t *size) {
  if (!address)
    return;
  memcpy(address, &name->address, *size < name->size ? *size : name->size);
  *size = name->size;
}

int simulated_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags) {
  struct endpoint *listener = find(fd);
  (void)flags;
  fiber_maybe_give_way();
  struct endpoint *accepted = listener ? endpoint_accept(listener) : NULL;
  if (!accepted)
    return listener ? answer(EAGAIN) : -1;
  give_name(&accepted->other, address, size);
  return process_add_file(process_self(), &accepted->file);
}

ssize_t simulated_sendmsg(int fd, const struct msghdr *message, int flags) {
  struct endpoint *endpoint = find(fd);
  (void)flags;
  fiber_maybe_give_way();
  return endpoint ? answer_size(endpoint_send(endpoint, message->msg_iov, message->msg_iovlen)) : -1;
}

ssize_t simulated_send(int fd, const void *data, size_t size, int flags) {
  struct iovec piece = {(void *)data, size};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
  return simulated_sendmsg(fd, &message, flags);
}

ssize_t simulated_recvmsg(int fd, struct msghdr *message, int flags) {
  struct endpoint *endpoint = find(fd);
  fiber_maybe_give_way();
  return endpoint ? answer_size(endpoint_receive(endpoint, message->msg_iov, message->msg_iovlen, flags & MSG_PEEK)) : -1;
}

ssize_t simulated_recv(int fd, void *out, size_t size, int flags) {
  struct iovec piece = {out, size};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
  return simulated_recvmsg(fd, &message, flags);
}

int simulated_shutdown(int fd, int how) {
  struct endpoint *endpoint = find(fd);
  if (endpoint && how != SHUT_RD)
    endpoint_shut(endpoint);
  return endpoint ? 0 : -1;
}

int simulated_getsockopt(int fd, int level, int option, void *value, socklen_t *size) {
  struct endpoint *endpoint = find(fd);
  if (!endpoint)
    return -1;
  memset(value, 0, *size);
  if (level == SOL_SOCKET && option == SO_ERROR) {
    int error = endpoint->state == ENDPOINT_FAILED || endpoint->is_reset ? endpoint->error ? endpoint->error : ECONNRESET : 0;
    memcpy(value, &error, sizeof error);
    endpoint->error = 0;
  }
  if (level == SOL_SOCKET && option == SO_PEERCRED) {
    struct ucred peer = {.pid = 1, .uid = simulated_geteuid(), .gid = 1000};
    memcpy(value, &peer, sizeof peer);
  }
  return 0;
}

int simulated_setsockopt(int fd, int level, int option, const void *value, socklen_t size) {
  (void)level, (void)option, (void)value, (void)size;
  return find(fd) ? 0 : -1;
}

int simulated_getsockname(int fd, struct sockaddr *address, socklen_t *size) {
  struct endpoint *endpoint = find(fd);
  if (endpoint)
    give_name(&endpoint->own, address, size);
  return endpoint ? 0 : -1;
}

int simulated_getpeername(int fd, struct sockaddr *address, socklen_t *size) {
  struct endpoint *endpoint = find(fd);
  if (!endpoint || endpoint->state != ENDPOINT_CONNECTED)
    return endpoint ? answer(ENOTCONN) : -1;
  give_name(&endpoint->other, address, size);
  return 0;
}

int simulated_ioctl(int fd, unsigned long request, ...) {
  struct endpoint *endpoint = find(fd);
  va_list arguments;
  va_start(arguments, request);
  int *out = va_arg(arguments, int *);
  va_end(arguments);
  if (!endpoint || request != SIOCOUTQ)
    return endpoint ? answer(ENOTTY) : -1;
  *out = (int)endpoint_unsent(endpoint);
  return 0;
}

/* ---- epoll ---- */

int simulated_epoll_create1(int flags) {
  (void)flags;
  return process_add_file(process_self(), &poller_create()->file);
}

int simulated_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event) {
  struct poller *poller = (struct poller *)process_file(epoll, &poller_kind);
  struct file *file = process_file(fd, NULL);
  uint32_t at = 0;
  if (!poller || !file)
    return -1;
  while (at < poller->watches.count && poller->watches.items[at].file != file)
    at++;
  bool is_there = at < poller->watches.count;
  if (is_there == (what == EPOLL_CTL_ADD))
    return answer(is_there ? EEXIST : ENOENT);
  if (what == EPOLL_CTL_ADD)
    vec_push(&poller->watches, (struct watch){file, fd, *event});
  else if (what == EPOLL_CTL_MOD)
    poller->watches.items[at].event = *event;
  else
    poller->watches.items[at] = poller->watches.items[--poller->watches.count];
  poll_wake(process_self());
  return 0;
}

int simulated_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms) {
  struct poller *poller = (struct poller *)process_file(epoll, &poller_kind);
  fiber_maybe_give_way();
  return poller ? poller_wait(poller, events, most, timeout_ms < 0 ? UINT64_MAX : world_now() + (uint64_t)timeout_ms * WORLD_MS) : -1;
}

int simulated_eventfd(unsigned count, int flags) {
  (void)flags;
  return process_add_file(process_self(), &counter_create(count, false)->file);
}

int simulated_timerfd_create(int clock, int flags) {
  (void)clock, (void)flags;
  return process_add_file(process_self(), &counter_create(0, true)->file);
}

static uint64_t in_ns(const struct timespec *time) { return (uint64_t)time->tv_sec * WORLD_S + (uint64_t)time->tv_nsec; }

int simulated_timerfd_settime(int fd, int flags, const struct itimerspec *due, struct itimerspec *old) {
  struct counter *counter = (struct counter *)process_file(fd, &counter_kind);
  (void)old;
  if (!counter)
    return -1;
  uint64_t at = in_ns(&due->it_value);
  counter_set_due(counter, at && !(flags & 1) ? world_now() + at : at, in_ns(&due->it_interval));
  return 0;
}

/* ---- names: mN is machine N ---- */

int simulated_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out) {
  struct {
    struct addrinfo info;
    struct sockaddr_in address;
  } *found = calloc(1, sizeof *found);
  char *end = NULL;
  unsigned long machine = host[0] == 'm' ? strtoul(host + 1, &end, 10) : 0;
  bool is_name = end && end > host + 1 && *end == 0 && machine < MACHINES_MAX;
  if (!found || !is_name || (hints->ai_flags & AI_NUMERICHOST)) {
    free(found);
    return EAI_NONAME;
  }
  simulated_usleep((useconds_t)random_below(world_random(), 2000));
  found->address = (struct sockaddr_in){
    .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10)), .sin_addr.s_addr = htonl(0x0a000001u + (uint32_t)machine)};
  found->info = (struct addrinfo){
    .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_addrlen = sizeof found->address, .ai_addr = (struct sockaddr *)&found->address};
  *out = &found->info;
  return 0;
}

void simulated_freeaddrinfo(struct addrinfo *list) { free(list); }
