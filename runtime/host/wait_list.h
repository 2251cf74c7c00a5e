/* wait_list.h: host calls that wait at a resource: a line, looked at from the front, or all of it where each may go on alone.
 *
 * The resource's lock guards it. A call ends outside of the lock: take what is ready into a list of its own, unlock, then
 * wait_list_finish.
 */
#ifndef TFC_RUNTIME_HOST_WAIT_LIST_H
#define TFC_RUNTIME_HOST_WAIT_LIST_H

#include <pthread.h>
#include "runtime/host/host.h"

struct wait_entry {
  struct wait_entry *next;
  struct host_call *call;
  int64_t number; /* what the call asked for: the resource's own */
  void *own;      /* more of it, or NULL; ends with the entry */
  void (*free_own)(void *own);
  status code; /* its result, once it is ready */
  char text[256];
};
struct wait_list {
  struct wait_entry *first, **last;
  pthread_mutex_t *lock; /* the resource's */
};

void wait_list_init(struct wait_list *list, pthread_mutex_t *lock);
/* Under the lock: the call waits at the end of the line; it is pending from now on. NULL without memory. */
struct wait_entry *wait_list_add(struct wait_list *list, struct host_call *call, int64_t number);
/* Under the lock: the same. */
bool wait_list_drop(struct wait_list *list, const struct host_call *call);
/* Under the lock: whether the call (host.h) stands in the line; it is compared, not read. */
bool wait_list_has(const struct wait_list *list, const void *call);
/* Under the lock: takes the first out of the line and puts it on the list of those that are over. */
void wait_list_move_first(struct wait_list *list, status code, const char *text, struct wait_entry **over);
/* Under the lock: the same for the entry at `at`, a link of the line. */
void wait_list_move(struct wait_list *list, struct wait_entry **at, status code, const char *text, struct wait_entry **over);
/* Under the lock, for a call that has just been added: it does not wait if it is among those that are over. */
void wait_list_settle(const struct wait_entry *over, struct host_call *own);
/* Without the lock: tells all of them, but `own`, whose result is returned (OK when it is NULL, or not among them). */
status wait_list_finish(struct wait_entry *over, struct host_call *own);

#endif
