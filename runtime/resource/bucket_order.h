/* bucket_order.h: the order in which a chained hash map of growing prime size gives back its entries: that of the C++ library
 * TensorFlow is built with, and so of what its mutable tables export. Entries are numbers of the owner's.
 *
 * All entries are one list. A new one goes in front of the others of its bucket, or in front of all when its bucket is empty;
 * when the map grows, the list is built anew from its own order by the same rule. Threads: the owner's lock.
 */
#ifndef TFC_RUNTIME_RESOURCE_BUCKET_ORDER_H
#define TFC_RUNTIME_RESOURCE_BUCKET_ORDER_H

#include <stdint.h>
#include "base/status.h"

struct bucket_node {
  uint64_t hash;
  int64_t next; /* -1: the last */
};
struct bucket_order {
  struct bucket_node *nodes; /* by entry */
  int64_t room, first, count;
  uint64_t bucket_count;
  int64_t *before; /* per bucket: the node before its first, -1: the front of the list, -2: the bucket is empty */
};

void bucket_order_deinit(struct bucket_order *order);
/* A new entry. RESOURCE_EXHAUSTED. */
status bucket_order_add(struct bucket_order *order, int64_t entry, uint64_t hash);
void bucket_order_remove(struct bucket_order *order, int64_t entry);
/* Entry i becomes entry numbers[i], which is not greater, for all i < count; numbers that are no entries do not matter. */
void bucket_order_renumber(struct bucket_order *order, const int64_t *numbers, int64_t count);
/* All entries go; the size stays. */
void bucket_order_clear(struct bucket_order *order);
/* The first entry, and the one behind another; -1: none. */
static inline int64_t bucket_order_first(const struct bucket_order *order) { return order->count ? order->first : -1; }
static inline int64_t bucket_order_next(const struct bucket_order *order, int64_t entry) { return order->nodes[entry].next; }

#endif
