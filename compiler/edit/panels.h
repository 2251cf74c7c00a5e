/* panels.h: how a contraction's second factor lies when it is kept for reading: in panels.
 *
 * Of the dimension along the lanes so many elements as a panel is wide lie side by side; in front of them, outermost first, stand the
 * dimensions that no term of the sum moves with, the panels, and the dimensions of the sum: b: f32[k,n] with panels of 16 is
 * f32[ceil(n/16),k,16], with zeros behind the last column. That is an ordinary dense value: what reads it is an ordinary kernel, which
 * loads b[i/16,k,i%16] instead of b[k,i] and stores the same bits.
 *
 * Owner: the arena given. */
#ifndef TFC_COMPILER_PANELS_H
#define TFC_COMPILER_PANELS_H

#include "ir/flow/flow.h"
#include "ir/kernel/contraction.h"

struct panels {
  int rank;                 /* of the dense value */
  int64_t dims[LIMIT_RANK]; /* its sizes */
  int lanes;                /* the dimension whose elements lie side by side in a panel; */
  int64_t first, count;     /* so many of them, from this one on */
  int64_t width;            /* of a panel */
  int order[LIMIT_RANK];    /* the other dimensions, outermost first; */
  int outer;                /* so many of them stand in front of the panels */
};

/* What would make the second factor of a contraction panels. False: it is no argument of its own that is read at one place, with known
 * sizes, or its lanes do not move with one dimension alone. */
bool panels_of(const struct contraction *c, int64_t width, struct panels *out);
bool panels_equal(const struct panels *a, const struct panels *b);
/* "[1/16][0][1%16]": dimensions of the dense value. */
const char *panels_text(const struct panels *p, struct arena *arena);
/* The sizes of the value in panels, of which there are rank + 1; how many elements it has. */
int64_t panels_sizes(const struct panels *p, int64_t *sizes);

/* The elements of a dense value, each of `element` bytes, as panels. */
void *panels_pack(const struct panels *p, const void *dense, size_t element, struct arena *arena);
/* The kernel that does the same: in a: the dense value, out b. */
struct kernel *panels_kernel(const struct panels *p, enum dtype dtype, struct arena *arena);
/* The node's kernel reads `packed` where it loads from `buffer`. */
void panels_read(struct flow *flow, struct flow_node *node, uint32_t buffer, const struct panels *p, value_id packed);

#endif
