/* place_sort.h: puts the places 0 .. n-1 of a row in the order of what stands there, inside of a kernel: by merging runs that double in
 * length, or, long rows whose elements have a key, by its bytes. Equal elements keep their order. Private to ir/ops. */
#ifndef TFC_IR_OPS_PLACE_SORT_H
#define TFC_IR_OPS_PLACE_SORT_H

#include "ir/ops/arrange.h"

struct place_sort {
  struct kb *kb;
  int axis;               /* of the rows */
  uint32_t order, merged; /* i64 buffers of the tensor's shape, which are written over; then `order` holds the places */
  expr_id at[LIMIT_RANK]; /* the loops over the other axes; at[axis] is set here, and by whoever else uses it */
  /* Whether the element at place a must stand before the one at place b. */
  expr_id (*comes_before)(struct place_sort *s, expr_id a, expr_id b);
  const void *data; /* for it */
  /* The key of the element at a place, an unsigned number of so many bytes, smaller ones first, that agrees with comes_before but for NaN,
   * which only keys put in an order; NULL: there is none. */
  expr_id (*key)(struct place_sort *s, expr_id place);
  int key_bytes;
  uint32_t counts; /* for keys: a buffer like `order`, whose rows are PLACE_COUNTS times as long */
};
#define PLACE_COUNTS 2
#define PLACE_KEYS_MIN 128 /* elements of a row: with fewer its bytes take longer to count than the row to merge */
void place_sort(struct place_sort *s, dim length);
/* The place that stands at i. */
expr_id place_sort_get(struct place_sort *s, expr_id i);

/* place_radix.c: by keys; n >= PLACE_KEYS_MIN */
void place_radix_sort(struct place_sort *s, expr_id n);

#endif
