/* kernel_lanes.h: loops whose iterations are the lanes of vectors: what differs from lane to lane, how what is accessed moves, and whether
 * a loop may run so at all. These are facts; which loop does is chosen (compiler/schedule/choose_vectors.c) and marked (RUN_VECTORS).
 *
 * A par loop may when what is inside runs alike in all lanes: loops of the same extent, conditions and `while`s by masks. A red one may
 * when it carries nothing but reductions, x = op(x, e), of which nothing else knows.
 *
 * Owner: the arena given. A view is for one thread at a time. */
#ifndef TFC_IR_KERNEL_KERNEL_LANES_H
#define TFC_IR_KERNEL_KERNEL_LANES_H

#include "ir/kernel/kernel_uses.h"

/* What a local or an expression is made of. */
#define VIEW_VARIES 1 /* it differs from lane to lane, */
#define VIEW_COPIED 2 /* or between iterations that run together */
#define VIEW_LOCALS 4 /* of expressions: any local */

struct lane_view {
  const struct kernel_uses *uses;
  uint32_t loop;   /* the variable whose iterations are lanes */
  uint8_t *locals; /* by local: VIEW_VARIES, VIEW_COPIED */
  uint8_t *exprs;  /* by expression; as of the last lane_view_update */
};
void lane_view_create(const struct kernel_uses *uses, struct arena *arena, struct lane_view *out); /* nothing varies */
void lane_view_update(struct lane_view *v); /* after what is known of locals has changed */
static inline bool view_varies(const struct lane_view *v, expr_id e) { return (v->exprs[e] & VIEW_VARIES) != 0; }

/* Elements in memory (parts of complex ones) from lane to lane, -2 .. 2: 0: the same for all. STRIDE_FAR: each lane has an address. */
#define STRIDE_FAR INT64_MAX
int64_t lane_stride(const struct lane_view *v, uint32_t buffer, const expr_id *index);
bool lane_is_affine(const struct lane_view *v, uint32_t buffer, const expr_id *index); /* its index can be a scalar */

/* ---- reductions ---- */

#define REDUCTIONS_MAX 16
struct reductions {
  struct reduction {
    uint32_t local;
    enum scalar_op op; /* x = op(x, e), or op(e, x), where e does not use x; fma(e, f, x) counts as add */
  } items[REDUCTIONS_MAX];
  int count;
};
/* Whether every `set` in the body to a local from outside is a reduction, always with the same operation, and nothing else reads that
 * local. keeps_order: float sums and products are none. */
bool reductions_find(const struct kernel_uses *uses, const struct stmt *body, bool keeps_order, struct reductions *out);

/* What changes nothing: bits as in struct expr. -0 of floats' sums. */
int64_t reduction_identity(enum scalar_op op, enum dtype dtype);
/* The red loop of vectors whose sums stay split over all turns of s: s itself, or what is all of the bodies of s and of red loops without
 * marks inside of it. NULL: there is none, or an extent of these loops reads the sums. */
const struct stmt *split_sum(const struct kernel_uses *uses, const struct stmt *s, struct reductions *out);

/* ---- a loop as lanes ---- */

/* Whether turns of a loop with this body may do different things, so that they cannot run together: conditions, checks, `while`s, extents
 * that hang on its variable. */
bool turns_part_ways(const struct kernel_uses *uses, const struct stmt *body, uint32_t loop);

struct lane_facts {
  bool has_check, has_red;
  struct reductions sums; /* of a red loop; a par one has none */
};
/* From here on the loop's iterations are lanes, for the locals of its body too. False: it may not run so, and nothing has changed. */
bool lane_view_enter(struct lane_view *v, uint32_t loop, bool is_par, const struct stmt *body, bool keeps_order, struct lane_facts *out);
void lane_view_leave(struct lane_view *v, uint32_t loop, const struct stmt *body, const struct lane_facts *facts);

#endif
