/* contraction.h: sums of products, known in the IR.
 *
 * A contraction is a nest of par loops whose body sums products of two factors by a nest of red loops and stores what it makes of the
 * sum: products of any transposition, batched ones, convolutions and both their gradients, depthwise ones. What each loop means for
 * the factors is its axis' role; targets, costs and schedules ask here and look at no expression themselves.
 *
 * In the text form (contraction_text) axes stand outermost first, each with its role, its number of iterations, and how far apart its
 * neighbours lie in the two factors and in the result:
 *   m 64[1024,0,512] n 512[0,1,1] k 1024[1,512,0] lanes 1                  c[64,512] = a[64,1024] * b[1024,512]
 * `?` is an extent or a distance that is no constant, `14?` an extent that is never more; `ragged`: the number of terms hangs on par axes;
 * `under if`: terms are there only where a condition holds; `lanes` numbers the axis along which results lie side by side.
 *
 * Owner: none; it points into the kernel. Reading is safe for many threads. */
#ifndef TFC_IR_KERNEL_CONTRACTION_H
#define TFC_IR_KERNEL_CONTRACTION_H

#include "ir/kernel/kernel_uses.h"

enum axis_role {
  ROLE_BATCH,  /* par: both factors vary with it (or none) */
  ROLE_M,      /* par: the first factor alone */
  ROLE_N,      /* par: the second factor alone */
  ROLE_K,      /* red */
  ROLE_WINDOW, /* red, and in an index together with a par axis: a convolution's taps; a filter gradient's rows and columns */
};
enum { FACTOR_RESULT = 2, FACTORS = 2 };
#define CONTRACTION_AXES 24
#define STRIDE_OPEN INT64_MIN /* no constant */

struct contraction_axis {
  const struct stmt *loop;
  enum axis_role role;
  int64_t extent;    /* -1: no constant; that of a red loop may hang on par axes */
  int64_t most;      /* it is never more; -1: no constant */
  bool in[2];        /* whether a factor varies with it */
  int64_t stride[3]; /* elements between neighbours: in what each factor loads, and (FACTOR_RESULT) in the last store */
};

struct contraction {
  const struct kernel *k;
  const struct stmt *top;    /* the outermost par loop */
  const struct stmt *inside; /* the block in the innermost one: vars, the sum's loops, stores */
  const struct stmt *sum;    /* the outermost red loop */
  const struct stmt *set;    /* local = local + factor[0] * factor[1] */
  const struct stmt *test;   /* the `if` around it, without else; NULL: none */
  bool is_ragged;            /* the number of terms hangs on par axes */
  uint32_t local;
  enum dtype dtype; /* of the sum */
  /* factor[1] is the one that varies with the lanes, where one alone does; else as they stand in the text */
  expr_id factor[2];
  expr_id load[2];  /* what a factor loads; NO_EXPR: nothing or several things */
  expr_id guard[2]; /* the factor is 0 where this does not hold; NO_EXPR: it is what it loads everywhere */
  int par_count, axis_count;
  struct contraction_axis axes[CONTRACTION_AXES]; /* par_count par axes and then the red ones, outermost first */
  int lanes;                                      /* the axis along which results lie side by side; -1: none */
};

/* Whether the statement `top` is one: a par nest in the kernel. `uses` is of the same kernel. */
bool contraction_find(const struct kernel_uses *uses, const struct stmt *top, struct contraction *out);
/* The buffer that a factor loads; it loads one. */
const struct kernel_buffer *contraction_buffer(const struct contraction *c, int factor);
/* The kernel's size that an axis has as its extent; -1: it is none. */
int64_t contraction_size(const struct contraction *c, int axis);
/* The text form, without a newline. */
char *contraction_text(const struct contraction *c, struct arena *arena);

#endif
