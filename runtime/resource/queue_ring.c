/* queue_ring.c: the tuples of a queue in a ring, which is a heap where they have priorities. */
#include "runtime/resource/queue_state.h"

#include <stdlib.h>

void queue_tuple_free(struct tensor **tuple, uint32_t count) {
  for (uint32_t i = 0; tuple && i < count; i++)
    tensor_release(tuple[i]);
  free(tuple);
}

struct tensor ***queue_ring_at(struct queue *q, int64_t i) {
  return &q->tuples[(q->start + i) % q->room];
}

static bool ring_reserve(struct queue *q) {
  if (q->size < q->room)
    return true;
  int64_t room = q->room * 2 + 8;
  struct tensor ***grown = malloc((size_t)room * sizeof *grown);
  if (!grown)
    return false;
  for (int64_t i = 0; i < q->size; i++)
    grown[i] = *queue_ring_at(q, i);
  free(q->tuples);
  q->tuples = grown;
  q->start = 0;
  q->room = room;
  return true;
}

static int64_t priority_of(struct tensor **tuple) { return *(const int64_t *)tuple[0]->data; }

/* Priority queues: the ring is a binary heap, the smallest priority on top. Among equal ones the order is that of the heap:
 * TensorFlow's, whose heap moves in the same way. */
static void heap_rise(struct queue *q, int64_t at, struct tensor **tuple) {
  for (int64_t parent; at > 0 && priority_of(*queue_ring_at(q, parent = (at - 1) / 2)) > priority_of(tuple); at = parent)
    *queue_ring_at(q, at) = *queue_ring_at(q, parent);
  *queue_ring_at(q, at) = tuple;
}

/* The last one has lost its place to the top's: the hole sinks to a leaf, and from there the last one rises. */
static void heap_fill_top(struct queue *q, struct tensor **last) {
  int64_t hole = 0;
  for (int64_t child; (child = hole * 2 + 1) < q->size; hole = child) {
    if (child + 1 < q->size && priority_of(*queue_ring_at(q, child + 1)) <= priority_of(*queue_ring_at(q, child)))
      child++;
    *queue_ring_at(q, hole) = *queue_ring_at(q, child);
  }
  heap_rise(q, hole, last);
}

bool queue_ring_push(struct queue *q, struct tensor **tuple) {
  if (!ring_reserve(q))
    return false;
  q->size++;
  if (q->spec.kind == QUEUE_PRIORITY)
    heap_rise(q, q->size - 1, tuple);
  else
    *queue_ring_at(q, q->size - 1) = tuple;
  return true;
}

bool queue_ring_push_front(struct queue *q, struct tensor **tuple) {
  if (q->spec.kind == QUEUE_PRIORITY)
    return queue_ring_push(q, tuple);
  if (!ring_reserve(q))
    return false;
  q->start = (q->start + q->room - 1) % q->room;
  q->size++;
  *queue_ring_at(q, 0) = tuple;
  return true;
}

/* Takes the tuple that leaves next. */
struct tensor **queue_ring_take(struct queue *q) {
  bool shuffle = q->spec.kind == QUEUE_SHUFFLE;
  int64_t i = shuffle ? (int64_t)(philox_next(&q->random) % (uint64_t)q->size) : 0;
  struct tensor **tuple = *queue_ring_at(q, i), **last = *queue_ring_at(q, q->size - 1);
  q->size--;
  if (shuffle)
    *queue_ring_at(q, i) = last; /* the order means nothing */
  else if (q->spec.kind == QUEUE_PRIORITY && q->size)
    heap_fill_top(q, last);
  else if (q->spec.kind != QUEUE_PRIORITY)
    q->start = (q->start + 1) % q->room;
  return tuple;
}
