/* control.h: short messages of one part of the runtime to the same part of other tasks: checkpoints, rounds, ledgers.
 *
 * They travel on the link between two tasks, in order with everything else that is sent there (steps, tensors), each once.
 *
 * Threads: all functions from any. Owner: the cluster.
 */
#ifndef TFC_RUNTIME_CLUSTER_CONTROL_H
#define TFC_RUNTIME_CLUSTER_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;

/* Who talks to whom. */
enum control_topic {
  CONTROL_LEDGER = 1, /* a driver asks the tasks of its entries what they have of it: command, last step, finished */
  CONTROL_CHECKPOINT, /* the coordinator cuts a checkpoint of the job: FREEZE .. COMMIT */
  CONTROL_HISTORY,    /* a holder came back without its state: what everybody goes back to */
  CONTROL_ROUND,      /* synchronous rounds over several ps */
  CONTROL_VIEW,       /* who is a replica of an all-reduce */
  CONTROL_STATUS,     /* what a task is at, for those who ask from outside */
  CONTROL_TOPICS,
};

/* At most NET_CONTROL_BYTES (64 KiB); copied. False: the task has no link (or is this one), or there is no memory: nothing was sent. */
bool cluster_send_control(struct cluster *cluster, uint32_t task, enum control_topic topic, const void *data, size_t size);

/* Called on the network thread: must not wait; may send. data is valid during the call. */
typedef void control_handler(void *self, uint32_t from, const void *data, size_t size);
/* Who hears the topic: before cluster_start. What comes for a topic without a handler is dropped. */
void cluster_on_control(struct cluster *cluster, enum control_topic topic, control_handler *handler, void *self);

#endif
