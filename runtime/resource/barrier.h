/* barrier.h: barriers: components of tuples come one by one, each under the key of its tuple; complete tuples can be taken,
 * those whose first component came first in front.
 *
 * Semantics and texts are those of TensorFlow's Barrier. The complete tuples are in a queue (queue.h), and so who takes waits
 * as there. Threads: any. Owner: the container.
 */
#ifndef TFC_RUNTIME_RESOURCE_BARRIER_H
#define TFC_RUNTIME_RESOURCE_BARRIER_H

#include "runtime/resource/queue.h"

struct barrier_spec {
  uint32_t component_count; /* at most QUEUE_COMPONENTS_MAX - 2: the queue has the place and the key in front */
  struct queue_component components[QUEUE_COMPONENTS_MAX];
};
struct barrier;

extern const struct resource_maker barrier_maker; /* argument: const struct barrier_spec * */
/* INVALID_ARGUMENT when a shared barrier is another than wanted. */
status barrier_match(const struct barrier *barrier, const struct barrier_spec *wanted);
/* Row i of values is the component of the tuple keys[i]. CANCELLED when the barrier is closed for it, INVALID_ARGUMENT. */
status barrier_insert(struct barrier *barrier, struct host_call *call, uint32_t component, const struct tensor *keys,
                      const struct tensor *values);
/* Takes count tuples into call->outputs (places, keys, components), or leaves the call pending; small: fewer when the barrier
 * is closed. OUT_OF_RANGE when there will not be enough. */
status barrier_take(struct barrier *barrier, struct host_call *call, int64_t count, bool small);
status barrier_close(struct barrier *barrier, struct host_call *call, bool cancel_pending);
int64_t barrier_size(struct barrier *barrier, bool incomplete);

#endif
