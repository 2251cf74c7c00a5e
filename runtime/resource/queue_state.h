/* queue_state.h: what a queue is made of, for queue.c (attempts and what comes of them), queue_ring.c (the tuples it holds) and
 * queue_batch.c (the outputs of those who take).
 *
 * Private to the folder. All but queue_tuple_free and queue_attempt_outputs are under the queue's lock.
 */
#ifndef TFC_RUNTIME_RESOURCE_QUEUE_STATE_H
#define TFC_RUNTIME_RESOURCE_QUEUE_STATE_H

#include "runtime/resource/queue.h"

#include <pthread.h>
#include "runtime/resource/philox_stream.h"
#include "runtime/resource/token_share.h"

struct attempt {
  struct attempt *next;
  struct host_call *call;
  enum { ATTEMPT_ENQUEUE, ATTEMPT_DEQUEUE, ATTEMPT_CLOSE } kind;
  bool many, up_to;
  int64_t each;            /* DEQUEUE of a token: so many of one value are for each driver; 0: of anything else */
  struct tensor ***tuples; /* ENQUEUE: to be put; DEQUEUE: taken so far */
  int64_t count, done;     /* tuples wanted, and put or taken */
  status code;
  char text[256];
};
struct line {
  struct attempt *first, **last;
};
/* Tasks whose steps have come, for who asks why another waits. */
struct seen {
  uint32_t drivers[RESOURCE_WAIT_DRIVERS], count;
};
struct queue {
  struct resource resource; /* first */
  struct queue_spec spec;
  pthread_mutex_t lock;
  struct tensor ***tuples; /* ring */
  int64_t start, size, room;
  struct line givers, takers, token_takers;
  struct token_shares shares;
  struct seen filled_by, emptied_by;
  struct philox random;
  bool closed;
};

/* With its tensors; accepts NULL. */
void queue_tuple_free(struct tensor **tuple, uint32_t count);
/* The place of the i-th tuple in the ring. Valid until the queue changes. */
struct tensor ***queue_ring_at(struct queue *q, int64_t i);
/* False: no memory, and the tuple stays the caller's. The second puts it where it leaves next. */
bool queue_ring_push(struct queue *q, struct tensor **tuple);
bool queue_ring_push_front(struct queue *q, struct tensor **tuple);
/* Takes the tuple that leaves next, of a queue that has one. Owner: the caller. */
struct tensor **queue_ring_take(struct queue *q);

/* The outputs of an attempt that has taken all its tuples: batches where it takes many. RESOURCE_EXHAUSTED; INVALID_ARGUMENT: the rank of a
 * batch is over the limit. */
status queue_attempt_outputs(const struct queue *q, struct attempt *a);

#endif
