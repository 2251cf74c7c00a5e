/* master_session.h: the sessions of clients: a handle, a version, and the nodes each has sent. All under the master's lock, but for
 * the nodes of a session that the caller holds a reference of and that has one user at a time (Create, Extend). */
#ifndef TFC_RUNTIME_MASTER_MASTER_SESSION_H
#define TFC_RUNTIME_MASTER_MASTER_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "runtime/master/master_options.h"

struct callable;

struct session {
  char handle[17];            /* 16 hex digits of a random number */
  int64_t version;            /* of the graph: grows with each Extend */
  uint8_t *known;             /* a byte for each node of the build (master_graph.h) */
  atomic_uint_fast64_t *seen; /* for each task, the incarnation that a run of it has met; 0: none yet */
  struct session_options options;
  struct callable *callables; /* master_callable.h */
  uint32_t callable_count;
  int64_t next_callable;
  uint32_t references; /* the list's, and one for each call in progress */
  bool is_closed;
  uint64_t used_ms;
  struct session *next;
};
struct session_list {
  struct session *first;
  uint32_t count;
};

/* With one reference for the caller and one of the list's. When there are LIMIT_MASTER_SESSIONS, the one unused for the longest time
 * makes room; RESOURCE_EXHAUSTED when all are in use. */
status session_create(struct session_list *list, uint32_t node_count, uint32_t task_count, struct session **out);
/* NULL: none. Retains it. */
struct session *session_find(struct session_list *list, const char *handle, uint64_t size);
void session_release(struct session *session); /* accepts NULL */
/* Takes it off the list and marks it closed. */
void session_close(struct session_list *list, struct session *session);
void session_close_all(struct session_list *list);

/* The last 10000 request ids: true when this one was there. 0 is never. */
struct request_ids {
  uint64_t ring[10000];
  uint32_t next;
  uint32_t slots[32768]; /* open addressing: index into ring + 1 */
};
bool request_ids_add(struct request_ids *ids, uint64_t id);

#endif
