/* panels.h: how a contraction's second factor lies when it is kept for reading: in panels.
 *
 * Of the dimension along the lanes so many elements as a panel is wide lie side by side; in front of them, outermost first, stand the
 * dimensions that no term of the sum moves with, the panels, and the dimensions of the sum: b: f32[k,n] with panels of 16 is
 * f32[ceil(n/16),k,16], with zeros behind the last column. Threads: none of this is kept anywhere. */
#ifndef TFC_BASE_PANELS_H
#define TFC_BASE_PANELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

struct panels {
  int rank;                 /* of the dense value, below LIMIT_RANK */
  int64_t dims[LIMIT_RANK]; /* its sizes */
  int lanes;                /* the dimension whose elements lie side by side in a panel; */
  int64_t first, count;     /* so many of them, from this one on */
  int64_t width;            /* of a panel */
  int order[LIMIT_RANK];    /* the other dimensions, outermost first; */
  int outer;                /* so many of them stand in front of the panels */
};

/* The sizes of the value in panels, of which there are rank + 1; how many elements it has. */
int64_t panels_sizes(const struct panels *p, int64_t *sizes);
/* From the elements of a dense value, each of `element` bytes, to panels. */
void panels_pack(const struct panels *p, const void *dense, size_t element, void *packed);
/* And back: the elements of the dense value that are in panels. */
void panels_unpack(const struct panels *p, const void *packed, size_t element, void *dense);

#endif
