/* panels.h: kernels and second factors in panels (base/panels.h).
 *
 * A value in panels is an ordinary dense value: what reads it is an ordinary kernel, which loads b[i/16,k,i%16] instead of b[k,i] and
 * stores the same bits.
 *
 * Owner: the arena given. */
#ifndef TFC_COMPILER_PANELS_H
#define TFC_COMPILER_PANELS_H

#include "base/panels.h"
#include "ir/flow/flow.h"
#include "ir/kernel/contraction.h"

/* What would make the second factor of a contraction panels. False: it is no argument of its own that is read at one place, with known
 * sizes, or its lanes do not move with one dimension alone. */
bool panels_of(const struct contraction *c, int64_t width, struct panels *out);
bool panels_equal(const struct panels *a, const struct panels *b);
/* "[1/16][0][1%16]": dimensions of the dense value. */
const char *panels_text(const struct panels *p, struct arena *arena);

/* in a: the dense value, out b: the same in panels; and the other way round. */
struct kernel *panels_kernel(const struct panels *p, enum dtype dtype, struct arena *arena);
struct kernel *panels_back_kernel(const struct panels *p, enum dtype dtype, struct arena *arena);
/* The node's kernel reads `packed` where it loads from `buffer`. */
void panels_read(struct flow *flow, struct flow_node *node, uint32_t buffer, const struct panels *p, value_id packed);

#endif
