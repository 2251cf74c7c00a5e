/* address.h: where a task is: "host:port", "[v6]:port" or "unix:PATH", as sockets.
 * All sockets made here are non-blocking and closed on exec. Any thread. */
#ifndef TFC_RUNTIME_NET_ADDRESS_H
#define TFC_RUNTIME_NET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include "base/status.h"

#define ADDRESS_MAX 8 /* of one name: v4 and v6, a few each */

struct address {
  struct sockaddr_storage storage;
  socklen_t size;
};
struct address_list {
  struct address items[ADDRESS_MAX];
  uint32_t count;
};

/* Checks the text alone. INVALID_ARGUMENT with the text. */
status address_check(const char *text);
/* True when resolving needs no name server: numbers, localhost, unix:PATH. */
bool address_is_literal(const char *text);
/* IPv4 first. INVALID_ARGUMENT as above; UNAVAILABLE when the name is not known (now). May wait for a name server. */
status address_resolve(const char *text, struct address_list *out);

/* A second way to a task on the same host: a Unix socket without a file, twice as fast as TCP over loopback. Its name is made of
 * `text` and `key`, so both sides find it without asking; on another host nobody listens there. */
void address_beside(const char *text, uint64_t key, struct address *out);
/* Whether it was made by address_beside. */
bool address_is_beside(const struct address *address);
/* Whether a process of this user (or of root) listens on this Unix socket, and which; 0: one whose number is of no use here. */
bool address_find_process(const struct address *address, pid_t *out);
/* The other end of a connected Unix socket runs as the same user (or as root). */
bool address_peer_is_same_user(int fd);

/* A socket file is no lock: of two processes that find one that nobody listens on, both would replace it. So who listens on one holds the
 * lock of its path, which goes with its process. *out: close it when nothing listens any more; -1: the address needs none. ALREADY_EXISTS:
 * somebody has it. */
status address_claim(const struct address *address, const char *text, int *out);
/* ALREADY_EXISTS when somebody listens there, else UNAVAILABLE with the reason. A socket file that nobody listens on any more is
 * replaced. */
status address_listen(const struct address *address, const char *text, int *out);
/* A socket that is connected or connecting (then it becomes writable). RESOURCE_EXHAUSTED: the queue there is full; else UNAVAILABLE with
 * the reason. */
status address_dial(const struct address *address, int *out);
/* For accepted sockets: no delay on TCP. */
void address_set_options(int fd, const struct address *address);
/* Removes the socket file. */
void address_unlink(const struct address *address);

#endif
