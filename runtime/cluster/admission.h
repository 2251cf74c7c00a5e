/* admission.h: who of those that connect gets a place, memory and time: decided here, without sockets, clock or threads.
 *
 * Whoever is accepted is a *stranger* until it has shown what it is: a *peer* by the HELLO that it proves (net/link.h), a *client* by a
 * call that the master has answered well. Strangers have NET_STRANGERS places and NET_STRANGERS_BYTES together; the one that is worth least
 * makes room for the next, so that a peer always gets in: it needs two messages, far less than it takes to drive it out again. Clients have
 * a share of memory of their own, and go after all strangers; peers are not counted.
 *
 * Threads: the loop's; a guest's has_session and the bytes from any. Owner: the cluster; a guest is part of its channel.
 */
#ifndef TFC_RUNTIME_CLUSTER_ADMISSION_H
#define TFC_RUNTIME_CLUSTER_ADMISSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "runtime/net/grpc_server.h"

#define ADMISSION_SAID_MAX 20 /* lines in ten seconds: an attack must not fill a disk */

struct guest {
  struct grpc_guest grpc;                   /* whose memory its calls count as */
  bool is_in;                               /* between admission_enter and admission_leave */
  bool is_greeting;                         /* it has opened a link */
  bool is_going;                            /* was told to: its place is counted no more */
  uint64_t useful_ms;                       /* when it came, or last was in a call */
  uint64_t waiting_since_ms, waiting_bytes; /* for its bytes, or for its taking ours; 0: not waiting */
  struct guest *newer, *older;
};

struct admission {
  struct guest *newest, *oldest; /* all that are no peers */
  uint32_t count;                /* of them, without those that are going */
  uint64_t log_since_ms;         /* refusals that were said, and those that were not */
  uint32_t said, unsaid;
  uint64_t said_hashes[ADMISSION_SAID_MAX];
};

/* What a guest is at. */
struct guest_state {
  bool has_calls;  /* streams are open */
  bool is_waiting; /* for it: for the rest of a request, or for its taking an answer */
  uint64_t bytes;  /* that have moved so far */
};

/* One more was accepted. Returns who has to go for it; NULL: nobody. */
struct guest *admission_enter(struct admission *admission, struct guest *guest, uint64_t now_ms);
/* It has closed, or proved that it is a peer; more than once is allowed. */
void admission_leave(struct admission *admission, struct guest *guest);
/* To be asked now and then: why it has to go; NULL: it may stay. */
const char *admission_check(struct guest *guest, const struct guest_state *state, uint64_t now_ms);
/* Whether the refusal of a stranger is worth a line in the log: the same not again within ten seconds, and not too many; *unsaid: how many
 * were not worth one before. */
bool admission_may_say(struct admission *admission, const char *text, uint64_t now_ms, uint32_t *unsaid);

#endif
