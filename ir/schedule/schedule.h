/* schedule.h: how a kernel runs, as data: a list of steps, each of which rewrites the kernel. ir/README.md specifies them.
 *
 *   name i0 i1 i2 -> m n k; fma; split n 32 -> no ni; split m 8 -> mo mi tail cut 4 2 1; order no mo mi ni
 *
 * Steps name loops: those of the kernel by position (i0, i1 ...) until `name` gives them words, later ones by what made them. A step acts
 * on all loops of a name, alike. It either keeps the kernel's values, bit for bit (sums keep their order; `fma`, `part`, `cut kh`, vectors
 * of a red loop and what is marked *regroup* apart: compiler/schedule/choose.c has the list for --math strict), or refuses. No step looks
 * at a target: widths, distances, tails, whether products are fused are said by who schedules.
 *
 * Owner: the arenas given. Not safe for two threads at once on one arena.
 */
#ifndef TFC_IR_SCHEDULE_SCHEDULE_H
#define TFC_IR_SCHEDULE_SCHEDULE_H

#include "ir/kernel/kernel.h"

enum step_op {
  STEP_NAME,  /* name i0 i1 -> m n             words for loops */
  STEP_SPLIT, /* split m 8 -> mo mi            m = 8*mo + mi; mi ends at min(8, rest).
                 split m 8 -> mo mi tail cut 4 2 1   full turns alone, then loops of the smaller sizes over the rest
                 split k 2 -> kp kw tail kt cut 1    its outer loops have a name of their own, so that steps act on full turns alone; of
                 size 1 they are all */
  STEP_FUSE,  /* fuse m n -> t                 a perfect nest of one kind becomes one loop */
  STEP_ORDER, /* order no mo ni                loops of a perfect nest of par stand in this order, in the places that they have;
                 `regroup`: of red */
  STEP_RUN,   /* run no tasks, run mi ni unroll, run ni lanes, run ni lanes 16 (the width is else what the extent says),
                 run i vectors 64, run j together 6 */
  STEP_SINK,  /* sink mi ni under k in register     what the sum over k carries becomes a buffer over the perfect nest of par mi, ni: a nest
                 that starts it, k around a nest that adds, a nest that finishes. `in stack`.
                 sink mi ni under n in result [first]  it waits in the result that is stored behind k; `first`: the first turn starts it */
  STEP_FETCH, /* fetch b at k ahead 16         each turn of k asks for what buffer b gives to the turn 16 later
                 fetch b at kb ahead 1 over mo nj       the turns of mo and nj, inside of kb and of each other, ask for a share each */
  STEP_FMA,   /* fma                           sums of products round once for each term: x = x + a*b is x = fma(a, b, x) */
  STEP_CUT,   /* cut w at 1 55 -> wl w wr      copies of a loop over parts of its range.
                 cut kh                        a sum over kh whose terms are nothing outside of a range loses them, and the test for the
                 range: terms under `if`, and factors select(inside, x, 0). A dropped term is taken for 0, though its other factor be NaN or
                 infinite */
  STEP_STAGE, /* stage b at no by k ni -> bk bn     each turn of no first copies what loops k and ni inside of it read of buffer b, to the
                 stack: an array over k and ni, filled by loops bk and bn. All loads of b in there are of one place.
                 stage b at no by .0 k -> b0 bk         dimension 0 of b is copied as a whole
                 stage b computed at no by k ni -> bk bn     what is computed of it in there as long as only those loops move it, and loops
                 around: cast.f32(b[k,ni]), or a select on another buffer's element
                 stage b computed bf16 at no by k ni -> bk bn     the largest such expression of this dtype */
  STEP_PART, /* part i 16 -> po pi ps         the sum over i, which stands in a nest at the kernel's top, in 16 parts: a nest of par po with
                 the sum over pi, and the nest as it was with the sum of the parts, over ps */
  STEP_JOIN, /* join 2                        all nests at the kernel's top share their 2 outermost loops, whose turns are tasks. Of what
                nests store a turn reads what it stored itself: of scratch it keeps that part alone, on the stack */
  STEP_PAIR, /* pair kr                       a sum over kr of two terms, which round once, becomes one value: the second term is added
                first, as instructions that multiply pairs do */
};
enum step_space { IN_REGISTER, IN_STACK, IN_RESULT };

#define STEP_LOOPS 16
#define STEP_NUMBERS 6
struct step {
  enum step_op op;
  const char *on[STEP_LOOPS]; /* loops; stage: what stands behind `by`, also dimensions (".0"); fetch: what stands behind `over`. NULL ends
                              the list, as in those below */
  const char *made[STEP_LOOPS]; /* name, split, fuse, cut, stage, part: the loops that it makes */
  const char *at[STEP_LOOPS];   /* sink: the loops under which; fetch, stage: the loop */
  int64_t n[STEP_NUMBERS];      /* split: size, tails; run: width or 0; fetch: distance; cut: points or none; part: how many; join: loops;
                              0 ends the list */
  uint32_t buffer;              /* fetch, stage: by its number */
  enum loop_run run;
  enum step_space space; /* sink */
  bool first;            /* sink in result */
  bool computed;         /* stage: what becomes of what is read, */
  enum dtype as;         /* of this dtype; DTYPE_INVALID: of any */
  bool regroup;          /* order: of red loops, which changes sums */
};

/* Steps for kernels of which size parameter `size` is below `below`; the last variant of a schedule is for all others (below 0). */
struct variant {
  uint32_t size;
  int64_t below;
  VEC(struct step) steps;
};
struct schedule {
  VEC(struct variant) variants; /* at least one; several become branches of an `if` on sizes at the kernel's top */
};

/* The text form: steps with `;` between them; variants are `when n0 < 64: STEPS else: STEPS`. print(parse(text)) is the text, but for
 * spaces and lines. Parse: INVALID_ARGUMENT with the place. */
status schedule_parse(const char *text, struct arena *arena, struct schedule *out);
char *schedule_print(const struct schedule *s, struct arena *arena);

/* The scheduled kernel, a new one in the arena with the same arguments, sizes and name; blocks' buffers behind its arguments.
 * FAILED_PRECONDITION: the step that does not apply, and why; *out is unchanged then. k is not changed. */
status schedule_apply(const struct kernel *k, const struct schedule *s, struct arena *arena, struct kernel **out);
/* The kernel as it is, a new one, whose loops may be marked. */
struct kernel *schedule_copy(const struct kernel *k, struct arena *arena);
/* What such a kernel has beside its arena. */
void kernel_free(struct kernel *k);
/* A statement of such a kernel that adds a product of floats to what it writes, x = x + a * b, rounds once for it: x = fma(a, b, x). False:
 * it is none. */
bool stmt_fuse_product(struct kernel *k, struct stmt *s);

#endif
