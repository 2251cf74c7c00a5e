/* vectors.h: what loops cost as lanes of vectors, in operations (cost.h): a short one is 1, a gather as much as its lanes, a contiguous or
 * uniform load one for all lanes, one of lanes two apart or backwards a few. What decides which loop becomes vectors
 * (compiler/schedule/choose_vectors.c) is asked again by targets, for the size of a task.
 *
 * Owner: the arena given. One thread at a time. */
#ifndef TFC_IR_SCHEDULE_VECTORS_H
#define TFC_IR_SCHEDULE_VECTORS_H

#include "ir/kernel/kernel_lanes.h"
#include "ir/kernel/kernel_nests.h"
#include "ir/schedule/machine.h"

struct vector_costs {
  const struct machine *machine;
  struct lane_view view;
  bool *seen;             /* by expression, of the statement at hand */
  bool gathers, scatters; /* of the plan at hand */
  struct {
    uint32_t local;
    double count; /* > 1: so many turns of this loop run together: what does not move with it is worked out once for them */
  } together;
};
void vector_costs_create(const struct kernel_uses *uses, const struct machine *machine, struct arena *arena, struct vector_costs *out);

/* Iterations of a loop, of a group; a guess where their number is not constant. */
double loop_trips(const struct kernel *k, expr_id extent);
double group_trips(const struct kernel *k, const struct chain *chain, int group);
/* Turns of the nest in the block that has most. Of more than TRIPS_MAX none ends while anybody waits, and integers do not count them: such
 * a kernel, of a damaged graph, stays as it is. */
#define TRIPS_MAX 0x1p50
double block_trips(const struct kernel *k, const struct stmt *block);

struct vector_plan {
  uint32_t lanes;
  uint32_t native; /* of one register */
  bool has_check, has_red;
  bool gathers, scatters; /* each lane loads from an address of its own, stores to one */
  bool is_long;           /* written once, with a mask all the way */
  double cost;            /* of the whole loop */
  double share;           /* of what it costs without lanes, and turn by turn */
};
/* So many lanes, or half of them as long as that leaves clearly fewer without an element in the last vectors of so many trips. */
uint32_t lanes_that_fit(uint32_t lanes, uint32_t native, double trips);
/* Whether a loop with this body can be vectors of so many lanes, and at what cost. lanes 0: of how many, unless its trips are too few. */
bool vector_plan_make(struct vector_costs *c, uint32_t local, bool is_par, double trips, const struct stmt *body, uint32_t lanes,
                      struct vector_plan *out);
/* Whether a loop is to be vectors: when that costs less than without. Sequential loops are not. */
bool loop_is_vectors(struct vector_costs *c, const struct stmt *loop, struct vector_plan *out);
/* Of a block without vectors, but in loops inside that are to be; and of one statement's value. */
double block_operations(struct vector_costs *c, const struct stmt *body);
double stmt_operations(struct vector_costs *c, const struct stmt *s);

#endif
