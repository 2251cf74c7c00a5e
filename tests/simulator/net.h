/* net.h: the network between simulated machines: connections as streams of bytes that take their time, get stuck, and break.
 *
 * Machine n has the address 10.0.0.(n + 1) and the name m(n); names that begin with a zero byte are of one machine, as abstract ones of
 * Unix sockets. What is on its way arrives also after its sender has ended.
 */
#ifndef TFC_TESTS_SIMULATOR_NET_H
#define TFC_TESTS_SIMULATOR_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tests/simulator/process.h"

enum net_cut {
  NET_CUT_RESET,  /* both ends are told */
  NET_CUT_END,    /* both ends read an end: a box in between has closed it */
  NET_CUT_HALF,   /* only one is told */
  NET_CUT_SILENT, /* nobody is: what is sent vanishes */
  NET_CUT_COUNT
};

struct segment {
  enum { SEGMENT_DATA, SEGMENT_END, SEGMENT_RESET } kind;
  uint32_t size, at; /* at: read so far */
  char *data;
};

struct name {
  struct sockaddr_storage address;
  socklen_t size;
};

enum endpoint_state { ENDPOINT_NEW, ENDPOINT_LISTENS, ENDPOINT_CONNECTS, ENDPOINT_CONNECTED, ENDPOINT_FAILED };

/* One end of a connection, or a listener. It stays when its process has closed it. */
struct endpoint {
  struct file file; /* first */
  enum endpoint_state state;
  struct machine *machine;
  struct endpoint *peer;
  struct name own, other;
  VEC(struct segment) segments; /* to be read here, in order */
  uint32_t first, arrived;      /* segments: the first unread, and how many of all have arrived */
  uint64_t held;                /* bytes on their way here, or unread */
  uint64_t last_due_ns;         /* when the last of them arrives */
  uint64_t stuck_until_ns;      /* none of them before that */
  uint64_t sent;                /* bytes */
  uint64_t cut_at;              /* after so many sent bytes the connection breaks, */
  enum net_cut cut_how;         /* in this manner */
  bool has_bound, is_shut, is_closed, is_gone, is_reset,
    is_ended;        /* is_gone: a reset has come, to be read; is_ended: the peer has no more to say */
  bool is_swallowed; /* what is sent from here vanishes */
  int error;
  uint32_t try_count;             /* to connect */
  VEC(struct endpoint *) waiting; /* to be accepted */
};

extern const struct file_kind endpoint_kind;

struct endpoint *endpoint_create(struct process *process, int family);
/* As poll has it: EPOLLIN and so on. */
uint32_t endpoint_events(const struct endpoint *endpoint);
/* 0, or an errno; EINPROGRESS. */
int endpoint_bind(struct endpoint *endpoint, const struct sockaddr *address, socklen_t size);
int endpoint_listen(struct endpoint *endpoint);
int endpoint_connect(struct endpoint *endpoint, const struct sockaddr *address, socklen_t size);
/* NULL: nobody waits. */
struct endpoint *endpoint_accept(struct endpoint *endpoint);
/* Bytes, or -errno. */
int64_t endpoint_send(struct endpoint *endpoint, const struct iovec *pieces, size_t count);
int64_t endpoint_receive(struct endpoint *endpoint, const struct iovec *pieces, size_t count, bool peek);
void endpoint_shut(struct endpoint *endpoint);
/* Bytes sent that the peer's machine has not taken. */
uint64_t endpoint_unsent(const struct endpoint *endpoint);

/* ---- what goes wrong ---- */

/* Connections between two machines (or on one) that are there now. */
uint32_t net_connections(uint32_t a, uint32_t b);
/* Breaks one of them after `after` more bytes that one of its ends sends. False: there is none. */
bool net_cut(uint32_t a, uint32_t b, enum net_cut how, uint64_t after);
/* What is, or will be, on its way in one of them arrives only after `until`; others pass meanwhile. False: there is none. */
bool net_stick(uint32_t a, uint32_t b, uint64_t until_ns);
/* All connections of the machine break: of what is on its way from and to it, only some arrives. */
void net_tear(uint32_t machine);
/* Nothing passes between the machines until then. */
void net_block(uint32_t a, uint32_t b, uint64_t until_ns);
/* The machine refuses who connects until then. */
void net_refuse(uint32_t machine, uint64_t until_ns);
/* All connections between them always take so much longer: they are far from each other. */
void net_set_distance(uint32_t a, uint32_t b, uint64_t more_ns);
/* They do so for now. */
void net_slow(uint32_t a, uint32_t b, uint64_t more_ns);

#endif
