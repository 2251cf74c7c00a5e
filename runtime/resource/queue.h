/* queue.h: bounded queues of tensors that steps share by name.
 *
 * A queue holds tuples, one tensor for each component. A full queue makes enqueuers wait, an empty one dequeuers. Those who
 * wait stand in two lines, enqueuers and dequeuers, and only the first of a line can proceed. Closing stands in the line of
 * the enqueuers, so that what was put before it still gets in. Semantics and texts are those of TensorFlow's FIFOQueue,
 * RandomShuffleQueue, PaddingFIFOQueue and PriorityQueue.
 *
 * A waiter is a host call (host.h): it ends through host_finish, so no thread blocks. Threads: every function from any
 * thread. Owner: the container (container.h).
 */
#ifndef TFC_RUNTIME_RESOURCE_QUEUE_H
#define TFC_RUNTIME_RESOURCE_QUEUE_H

#include <stdbool.h>
#include "base/status.h"
#include "base/tensor.h"
#include "runtime/host/host.h"
#include "runtime/memory/container.h"

#define QUEUE_COMPONENTS_MAX 64 /* components of a tuple: datasets of that time had at most a few dozen */

enum queue_kind { QUEUE_FIFO, QUEUE_SHUFFLE, QUEUE_PADDING, QUEUE_PRIORITY };

struct queue_component {
  enum dtype dtype;
  bool has_shape;     /* else elements of any shape */
  struct shape shape; /* PADDING: -1 where elements differ */
};
struct queue_spec {
  enum queue_kind kind;
  uint32_t component_count;
  struct queue_component components[QUEUE_COMPONENTS_MAX];
  int64_t capacity;          /* tuples; INT64_MAX: no bound */
  int64_t min_after_dequeue; /* SHUFFLE */
  int64_t seed, seed2;       /* SHUFFLE */
};
struct queue;

extern const struct resource_maker queue_maker; /* argument: const struct queue_spec * */
/* INVALID_ARGUMENT `Shared queue 'Q' has capacity A but requested capacity was B` and the like. */
status queue_match(const struct queue *queue, const struct queue_spec *wanted);

/* The calls below end at once, or set call->pending and end it later. Tuples: one reference of each tensor is taken. */
/* Adds count tuples (tuples[i * components + j]), one after the other as there is room. */
status queue_enqueue(struct queue *queue, struct host_call *call, struct tensor **tuples, int64_t count);
/* Takes one tuple into call->outputs. */
status queue_dequeue(struct queue *queue, struct host_call *call);
/* Takes a token of a round of workers (token_share.h), of those that are for the call's driver: `each` of one value. INVALID_ARGUMENT:
 * the queue
 * holds something else. */
status queue_dequeue_token(struct queue *queue, struct host_call *call, int64_t each);
/* Whoever waits for a token ends with this. */
void queue_fail_tokens(struct queue *queue, status code, const char *text);
/* Of a queue of which tokens were taken: nothing is in it, and nobody has had any: all has been put back to an earlier moment. */
void queue_reset_tokens(struct queue *queue);
/* Takes count tuples, stacked; up_to: fewer when the queue is closed and has no more. */
status queue_dequeue_many(struct queue *queue, struct host_call *call, int64_t count, bool up_to);
status queue_close(struct queue *queue, struct host_call *call, bool cancel_pending);

int64_t queue_size(struct queue *queue);
bool queue_is_closed(struct queue *queue);
const struct queue_spec *queue_get_spec(const struct queue *queue);
/* "FIFOQueue" */
const char *queue_kind_name(enum queue_kind kind);

#endif
