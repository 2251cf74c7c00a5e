/* choose.h: schedules for the nests of a kernel, and which of them costs least.
 *
 * Generators, one for each class of nests (choose_product.c ...), propose steps (ir/schedule/schedule.h) with what they are expected to
 * cost (ir/schedule/cost.h); there is no search beyond them. A kernel's schedule is that of its nests, one after the other; a nest
 * without steps stays plain loops. Which of those become vectors is chosen last (choose_vectors.c), for all that steps have left plain.
 *
 * Owner: the arena given. Not safe for two threads at once on one arena. */
#ifndef TFC_COMPILER_SCHEDULE_CHOOSE_H
#define TFC_COMPILER_SCHEDULE_CHOOSE_H

#include "ir/kernel/contraction.h"
#include "ir/schedule/cost.h"
#include "ir/schedule/schedule.h"

/* What texts say of a nest or kernel without steps. */
#define PLAIN_LOOPS "plain loops"

/* One way to run a nest. */
struct candidate {
  const char *steps; /* NULL: as plain loops, some of which become vectors (vectors_choose); so do those of nests that `part` made */
  double cycles;     /* expected, of one core; of all but plain loops times GAIN_MIN */
  double less;       /* and for few rows or terms, where their number is open; 0: not judged */
  uint32_t size;     /* these steps are for calls in which this size is below `below`; below 0: for all */
  int64_t below;
};
struct candidates {
  VEC(struct candidate) items; /* the first is plain loops; of a nest whose sums are in parts there is no other */
};

/* A nest, as generators see it. */
struct nest {
  const struct kernel *k;
  const struct kernel_uses *uses;
  const struct machine *machine;
  const struct stmt *top;
  int first_loop; /* the position (i0, i1 ...) of its outermost loop */
  int number;     /* of the nest in the kernel: part of its loops' names where it is not 0 */
  int shared;     /* outermost loops that all nests of the kernel will share (the step `join`): turns, for it */
  struct arena *arena;
};

/* Where sizes are open, candidates are judged for these; and those that are for few rows, or terms, beside each other for less. */
#define ROWS_USUAL 64
#define COLUMNS_USUAL 1024
#define TERMS_USUAL 2048
#define ROWS_LESS 16
#define TERMS_LESS 64
#define FEW_ROWS 33 /* from so many rows on what is right for many of them is taken */

/* A later block of a factor, or panel, is asked for (`fetch .. over`). */
#define ASKING_TERMS 16 /* of a tile, between hints */

/* Tasks that a kernel should have: two for each core, as far as that is known, so many at least and at most. Fewer copy less, and read a
 * factor again less often. */
#define TASKS_MIN 4
#define TASKS_MAX 8
static inline int64_t tasks_wanted(const struct machine *machine) {
  int64_t wanted = machine->cores < 1 ? TASKS_MAX : 2 * (int64_t)machine->cores;
  return wanted < TASKS_MIN ? TASKS_MIN : wanted < TASKS_MAX ? wanted : TASKS_MAX;
}
/* And the fewest that are worth a thought, one for each core (two, as a program may run where there are more), and what that costs. */
#define FEWER_TASKS 1.05 /* of what they are expected to take: a core that begins late has nobody to take over from it */
static inline int64_t tasks_fewest(const struct machine *machine) {
  return machine->cores < 1 ? tasks_wanted(machine) : machine->cores > 2 ? machine->cores : 2;
}

static inline int64_t divide_up(int64_t a, int64_t by) { return (a + by - 1) / by; }

/* False: it is no nest over panels; there are no other schedules for one that is. */
bool propose_panels(const struct nest *n, const struct contraction *c, struct candidates *out);         /* choose_panels.c */
void propose_products(const struct nest *n, const struct contraction *c, struct candidates *out);       /* choose_product.c */
void propose_product_blocks(const struct nest *n, const struct contraction *c, struct candidates *out); /* choose_blocks.c */
void propose_streams(const struct nest *n, const struct contraction *c, struct candidates *out);        /* choose_stream.c */
void propose_filters(const struct nest *n, const struct contraction *c, struct candidates *out);        /* choose_filter.c */
void propose_convs(const struct nest *n, const struct contraction *c, struct candidates *out);          /* choose_conv.c */
void propose_taps(const struct nest *n, const struct contraction *c, struct candidates *out);           /* choose_taps.c */
void propose_turned(const struct nest *n, const struct contraction *c, struct candidates *out);         /* choose_turned.c */
void propose_crossed(const struct nest *n, const struct contraction *c, struct candidates *out);        /* choose_crossed.c */
void propose_squares(const struct nest *n, struct candidates *out);                                     /* choose_squares.c */
void propose_ranges(const struct nest *n, struct candidates *out);                                      /* choose_ranges.c */
void propose_parts(const struct nest *n, struct candidates *out);                                       /* choose_parts.c */

/* The nests of a kernel, one after the other: for (n = nest_first(...); n.top; nest_next(&n)). `uses` is filled. */
struct nest nest_first(const struct kernel *k, struct kernel_uses *uses, const struct machine *machine, struct arena *arena);
void nest_next(struct nest *n);
/* All candidates for a nest. out->items is the caller's to free. */
void nest_candidates(const struct nest *n, struct candidates *out);
/* The schedule of a candidate alone: what is for some calls only leaves plain loops for the others. NULL: plain loops. */
const char *candidate_text(const struct candidate *c, struct arena *arena);
/* Whether steps apply to the nest's kernel. */
bool nest_allows(const struct nest *n, const char *steps);
/* Whether what is stored is the sum itself, in an output that it may wait in. */
bool stores_sum(const struct contraction *c);
/* Whether a par axis is over groups of channels, each with its own part of both factors. (What a ragged sum's bounds hang on moves a
 * factor, too, but not by a constant.) */
bool is_group(const struct contraction *c, int axis);
bool has_groups(const struct contraction *c);
/* Whether a factor is computed of the one place that it loads. */
bool is_computed(const struct contraction *c);
/* Pairs of bfloat16 (the step `pair`). What a factor is converted from, where that is of this dtype; NO_EXPR: it is something else. Whether
 * it is computed of what is loaded, and what `stage` says then. */
#define PAIR_TERMS 2
#define PAIR_BYTES 2 /* of an element */
expr_id narrow_factor(const struct contraction *c, int factor);
bool is_computed_narrow(const struct contraction *c, int factor);
const char *narrow_text(const struct contraction *c, int factor);
/* Whether the machine multiplies pairs of both factors; and whether, beside that, the innermost loop's terms make pairs without a rest. */
bool may_have_pairs(const struct nest *n, const struct contraction *c);
bool may_be_paired(const struct nest *n, const struct contraction *c);
/* A product over one axis of a sum, with one of rows and one of columns, all of known extents; the others are turns. Of *work strides, and
 * what lies across, are left 0. */
bool find_product(const struct nest *n, const struct contraction *c, int *rows, int *columns, struct product_work *work);
/* Turns of a parallel loop around a tile; of an open number what is usual: of images as many as of rows, else one. */
double axis_turns(const struct contraction_axis *axis);
/* Terms of a sum's loop; of an open number what is usual: of the innermost one, and of images around it. */
double axis_terms(const struct contraction *c, int axis);
/* Elements of a vector, or of the part of one that so many channels side by side fill; 4 at least. */
int64_t lanes_for(const struct nest *n, enum dtype dtype, int64_t width);
/* Loops of a statement, itself among them. */
int stmt_loops(const struct stmt *s);
/* The one that the cost model would take, of those that the kernel's form allows. */
uint32_t candidates_cheapest(const struct nest *n, const struct candidates *all);
/* A kernel's schedule as text; NULL: every nest stays plain loops. With a tuner (tune.h) what it measures decides before the cost
 * does. */
struct tuner;
status schedule_choose(const struct kernel *k, const struct machine *machine, struct tuner *tuner, struct arena *arena, const char **out);
/* The kernel by that schedule: the caller's (kernel_free), or, as all stays plain loops, NULL. */
status schedule_make(const struct kernel *k, const struct machine *machine, struct tuner *tuner, struct arena *arena, const char **steps,
                     struct kernel **out);
/* A copy of a kernel, with steps applied or none, in which the loops that they left plain say how they run (choose_vectors.c): RUN_VECTORS,
 * RUN_TOGETHER, RUN_UNROLL; and sums of products there round once for each term, where the machine can. */
struct kernel *vectors_choose(const struct kernel *k, const struct machine *machine, struct arena *arena);
/* The loops that all nests of the kernel share in its schedule, where they hand scratch on; 0: it has no such schedule. */
int schedule_shared_loops(const struct kernel *k, const struct machine *machine, struct arena *arena);
/* Cycles that the nests which have candidates are expected to take, each by its cheapest. */
double schedule_cycles(const struct kernel *k, const struct machine *machine, struct arena *arena);
/* The same as plain loops. */
double schedule_work(const struct kernel *k, const struct machine *machine, struct arena *arena);

#endif
