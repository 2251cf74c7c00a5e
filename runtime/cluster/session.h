/* session.h: what two tasks have said to each other, beyond any one connection.
 *
 * Each side numbers what it sends from 1 and keeps it until the other has acknowledged it. When the connection is cut, the next one
 * begins with what each has received, and each side repeats what the other lacks: nothing is lost, nothing comes twice, and the order
 * stays. HELLO, ACK, PING and what decides about a link have no number: they belong to a connection.
 *
 * The numbers are not on the wire: both sides count. A connection that a newer one has replaced is never read again, so that no message of
 * it is counted in the wrong place.
 *
 * No I/O, no clock, no threads: times are handed in. Owner: the peer.
 */
#ifndef TFC_RUNTIME_CLUSTER_SESSION_H
#define TFC_RUNTIME_CLUSTER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

/* When what was received is acknowledged by a message of its own; else the next message takes the acknowledgement along, or the next
 * tick. */
#define SESSION_ACK_MESSAGES 64
#define SESSION_ACK_BYTES (1 << 20)
/* From here on a message that is sent anyway takes it along. */
#define SESSION_ACK_ALONG 8

/* One message that may have to be repeated; part of a larger object. */
struct session_item {
  uint64_t number;
  struct session_item *next;
};

/* Which pair of lives a session joins: the incarnations of both, and how often each of them had given the other up before. */
struct session_key {
  uint64_t incarnation;
  uint32_t given_up;
};

enum session_health {
  SESSION_WELL,
  SESSION_SUSPECTED, /* the connection stands, and nothing has come for NET_SILENCE_MS */
  SESSION_LOST,
};

struct session {
  bool is_alive;
  struct session_key other; /* as it said in its HELLO */
  /* sending */
  struct session_item *first, *last, *unsent; /* not acknowledged, in order; the first that this connection has not had */
  uint64_t queued, acknowledged;              /* numbers */
  uint64_t goodbye;                           /* that of our good-bye; 0: not said */
  /* receiving */
  uint64_t received, told, untold_bytes;
  /* liveness */
  uint64_t heard_ms;
  bool is_suspected;
};

void session_begin(struct session *session, struct session_key other, uint64_t now_ms);
/* What was not acknowledged, as a list; the session is not alive any more. */
struct session_item *session_end(struct session *session);

/* Behind everything else. */
void session_push(struct session *session, struct session_item *item);
/* The next one for the present connection, which counts as sent from now on; NULL: none. */
struct session_item *session_next(struct session *session);

/* A message with a number has come, of so many bytes. */
void session_take(struct session *session, uint64_t bytes);
/* An acknowledgement ought to be sent: as a message of its own (along: with one that is sent anyway). */
bool session_owes_ack(const struct session *session, bool along);
/* The number to acknowledge, which counts as told. */
uint64_t session_ack(struct session *session);

/* The other has received so many messages: *freed is the list of those that may go. False: it cannot have (nothing has changed). */
bool session_acknowledged(struct session *session, uint64_t received, struct session_item **freed);

/* Whether the HELLO of a task with this key goes on with this session: it must be the same life of the other, and the other must mean the
 * present life of ours (or know of none: it had not heard our HELLO). */
bool session_continues(const struct session *session, struct session_key other, struct session_key own, struct session_key meant);
/* A new connection stands, at whose other end so many messages have been received. False as above: the session cannot go on. */
bool session_resume(struct session *session, uint64_t received, uint64_t now_ms, struct session_item **freed);
bool session_is_drained(const struct session *session);
/* Our good-bye was acknowledged; also when the session is over by now. */
bool session_has_heard_goodbye(const struct session *session);

void session_heard(struct session *session, uint64_t now_ms);
/* is_up: it has a connection. timeout_ms: --timeout. A connection that stands is never given up before NET_SILENCE_MS. */
enum session_health session_health(const struct session *session, bool is_up, uint64_t now_ms, uint64_t timeout_ms);

#endif
