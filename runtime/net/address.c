/* address.c: texts to sockets. */
#include "runtime/net/address.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/map.h"

#define HOST_BYTES 256 /* a DNS name has at most 253 */
/* While strangers come faster than they are accepted the queue is full: TCP tries again after a second, so there is to be room; at a Unix
 * socket who finds it full knows at once and comes again, so it is to be short. */
#define BACKLOG 4096
#define BACKLOG_UNIX 128
#define BIND_TRIES 10 /* a port may be somebody's end of a connection for a moment: of a dial that is refused, say */
#define BIND_PAUSE_US 30000
#define CLAIM_KEY UINT64_C(0x636c61696d) /* so that the lock of a path is no task's name beside its address */

static const char *unix_path(const char *text) { return strncmp(text, "unix:", 5) == 0 ? text + 5 : NULL; }

/* Splits at the last ':'; [v6]:port loses its brackets. */
static status split(const char *text, char host[HOST_BYTES], char port[8]) {
  const char *colon = strrchr(text, ':');
  size_t host_size = colon ? (size_t)(colon - text) : 0;
  char *end = NULL;
  unsigned long number = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0;
  bool is_v6 = host_size > 2 && text[0] == '[' && colon[-1] == ']';
  if (is_v6) {
    text++;
    host_size -= 2;
  }
  bool has_colon = host_size > 0 && memchr(text, ':', host_size) != NULL;
  if (host_size == 0 || host_size >= HOST_BYTES || memchr(text, '/', host_size) || has_colon != is_v6 || !end || *end || number == 0 ||
      number > 65535)
    return fail(INVALID_ARGUMENT, "Could not interpret \"%s\" as a host-port pair.", text - (is_v6 ? 1 : 0));
  memcpy(host, text, host_size);
  host[host_size] = 0;
  snprintf(port, 8, "%lu", number);
  return OK;
}

status address_check(const char *text) {
  char host[HOST_BYTES], port[8];
  const char *path = unix_path(text);
  if (!path)
    return split(text, host, port);
  if (!*path || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
    return fail(INVALID_ARGUMENT, "'%s': the path of a socket has 1 to %zu bytes", text, sizeof((struct sockaddr_un *)0)->sun_path - 1);
  return OK;
}

static status lookup(const char *host, const char *port, int flags, struct addrinfo **out) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
  int failure = getaddrinfo(host, port, &hints, out);
  return failure == 0 ? OK : fail(UNAVAILABLE, "the name %s cannot be resolved: %s", host, gai_strerror(failure));
}

bool address_is_literal(const char *text) {
  char host[HOST_BYTES], port[8];
  struct addrinfo *found = NULL;
  if (unix_path(text))
    return true;
  if (split(text, host, port) != OK)
    return false;
  if (strcmp(host, "localhost") == 0)
    return true;
  bool is_number = lookup(host, port, AI_NUMERICHOST, &found) == OK;
  if (is_number)
    freeaddrinfo(found);
  return is_number;
}

void address_beside(const char *text, uint64_t key, struct address *out) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  /* the first byte is 0: a name that is no file, and goes with its process */
  int size = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "tfc-%016" PRIx64, hash_bytes(text, strlen(text), key));
  *out = (struct address){.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size)};
  memcpy(&out->storage, &address, sizeof address);
}

bool address_is_beside(const struct address *address) {
  return address->storage.ss_family == AF_UNIX && ((const struct sockaddr_un *)&address->storage)->sun_path[0] == 0;
}

static bool is_same_user(int fd, struct ucred *out) {
  socklen_t size = sizeof *out;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, out, &size) == 0 && (out->uid == geteuid() || out->uid == 0);
}

bool address_peer_is_same_user(int fd) {
  struct ucred peer;
  return is_same_user(fd, &peer);
}

bool address_find_process(const struct address *address, pid_t *out) {
  struct ucred peer;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  bool found = fd >= 0 && connect(fd, (const struct sockaddr *)&address->storage, address->size) == 0 && is_same_user(fd, &peer);
  if (fd >= 0)
    close(fd);
  if (found)
    *out = peer.pid;
  return found;
}

static void list_add(struct address_list *list, const void *data, socklen_t size) {
  if (list->count == ADDRESS_MAX || size > sizeof list->items[0].storage)
    return;
  memcpy(&list->items[list->count].storage, data, size);
  list->items[list->count++].size = size;
}

status address_resolve(const char *text, struct address_list *out) {
  char host[HOST_BYTES], port[8];
  const char *path = unix_path(text);
  out->count = 0;
  TRY(address_check(text));
  if (path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    list_add(out, &address, sizeof address);
    return OK;
  }
  struct addrinfo *found = NULL;
  TRY(split(text, host, port));
  TRY(lookup(host, port, 0, &found));
  static const int families[] = {AF_INET, AF_INET6};
  for (int i = 0; i < 2; i++)
    for (const struct addrinfo *at = found; at; at = at->ai_next)
      if (at->ai_family == families[i])
        list_add(out, at->ai_addr, at->ai_addrlen);
  freeaddrinfo(found);
  return out->count > 0 ? OK : fail(UNAVAILABLE, "the name %s has no address", host);
}

void address_set_options(int fd, const struct address *address) {
  int one = 1;
  if (address->storage.ss_family != AF_UNIX)
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* A socket file stays behind when its process was killed: it may go then. A port may be one end of a connection. */
static bool nobody_listens(const struct address *address) {
  int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool stale = fd >= 0 && connect(fd, (const struct sockaddr *)&address->storage, address->size) != 0 && errno == ECONNREFUSED;
  if (fd >= 0)
    close(fd);
  return stale;
}

static status in_use(const char *text, bool is_connection) {
  return fail(ALREADY_EXISTS, "cannot listen on %s: %s", text,
              is_connection ? "a connection of another program has this port" : "somebody listens there already");
}

/* A port, or a name, may be taken for a moment by somebody's end that is going. */
static int bind_patiently(int fd, const struct address *address) {
  int bound = bind(fd, (const struct sockaddr *)&address->storage, address->size);
  for (int i = 0; i < BIND_TRIES && bound != 0 && errno == EADDRINUSE; i++) {
    usleep(BIND_PAUSE_US);
    bound = bind(fd, (const struct sockaddr *)&address->storage, address->size);
  }
  return bound;
}

status address_claim(const struct address *address, const char *text, int *out) {
  struct address lock;
  *out = -1;
  if (address->storage.ss_family != AF_UNIX || address_is_beside(address))
    return OK;
  address_beside(((const struct sockaddr_un *)&address->storage)->sun_path, CLAIM_KEY, &lock);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return fail(UNAVAILABLE, "cannot listen on %s: %s", text, strerror(errno));
  if (bind_patiently(fd, &lock) != 0) {
    status code = errno == EADDRINUSE ? in_use(text, false) : fail(UNAVAILABLE, "cannot listen on %s: %s", text, strerror(errno));
    close(fd);
    return code;
  }
  *out = fd;
  return OK;
}

status address_listen(const struct address *address, const char *text, int *out) {
  int family = address->storage.ss_family, one = 1;
  int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return fail(UNAVAILABLE, "cannot listen on %s: %s", text, strerror(errno));
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (family == AF_INET6)
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  int bound = family == AF_UNIX ? bind(fd, (const struct sockaddr *)&address->storage, address->size) : bind_patiently(fd, address);
  if (bound != 0 && errno == EADDRINUSE && family == AF_UNIX && !address_is_beside(address) && nobody_listens(address)) {
    address_unlink(address);
    bound = bind(fd, (const struct sockaddr *)&address->storage, address->size);
  }
  if (bound != 0 || listen(fd, family == AF_UNIX ? BACKLOG_UNIX : BACKLOG) != 0) {
    status code =
      errno == EADDRINUSE ? in_use(text, nobody_listens(address)) : fail(UNAVAILABLE, "cannot listen on %s: %s", text, strerror(errno));
    close(fd);
    return code;
  }
  *out = fd;
  return OK;
}

status address_dial(const struct address *address, int *out) {
  int family = address->storage.ss_family;
  int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return fail(UNAVAILABLE, "no socket: %s", strerror(errno));
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)); /* the port of this end may be what another task is to listen on */
  address_set_options(fd, address);
  if (connect(fd, (const struct sockaddr *)&address->storage, address->size) != 0 && errno != EINPROGRESS) {
    status code =
      errno == EAGAIN ? fail(RESOURCE_EXHAUSTED, "more connect there than are let in") : fail(UNAVAILABLE, "%s", strerror(errno));
    close(fd);
    return code;
  }
  if (address_is_beside(address) && !address_peer_is_same_user(fd)) {
    close(fd);
    return fail(UNAVAILABLE, "another user listens there");
  }
  *out = fd;
  return OK;
}

void address_unlink(const struct address *address) {
  if (address->storage.ss_family == AF_UNIX && !address_is_beside(address))
    unlink(((const struct sockaddr_un *)&address->storage)->sun_path);
}
