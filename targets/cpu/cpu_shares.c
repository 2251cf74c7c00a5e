/* cpu_shares.c: see cpu_shares.h. How long a kernel takes the code generator is about how many operations its code has: those of its text,
 * each as often as loops that are written out say, and as often as vectors longer than the CPU's are cut. */
#include "targets/cpu/cpu_shares.h"

#include <stdlib.h>

#define KERNEL_OPERATIONS 60 /* what every kernel takes: its functions run and query, and each function its passes */
#define NATIVE_LANES 8

/* ---- how much code ---- */

struct operations {
  const struct kernel *k;
  uint32_t *seen; /* by expression: the statement that counted it last */
  uint32_t statement;
};

static double expr_operations(struct operations *o, expr_id e) {
  if (e == NO_EXPR || o->seen[e] == o->statement)
    return 0;
  double sum = expr_get(o->k, e)->count > 0;
  o->seen[e] = o->statement;
  for (int i = 0; i < expr_get(o->k, e)->count; i++)
    sum += expr_operations(o, expr_operand(o->k, e, i));
  return sum;
}

/* How often a loop's body is written. */
static double loop_copies(const struct operations *o, const struct stmt *s) {
  int64_t n = 1;
  if (s->run == RUN_UNROLL && expr_is_const(o->k, s->value, &n))
    return (double)n;
  return s->run == RUN_LANES && s->width > NATIVE_LANES ? (double)s->width / NATIVE_LANES : 1;
}

static double block_operations(struct operations *o, const struct stmt *s) {
  double sum = 0;
  for (; s; s = s->next) {
    o->statement++;
    sum += 1 + expr_operations(o, s->value);
    for (int i = 0; i < s->index_count; i++)
      sum += expr_operations(o, s->index[i]);
    double inside = block_operations(o, s->body) + block_operations(o, s->otherwise);
    sum += s->kind == STMT_FOR ? loop_copies(o, s) * inside : inside;
  }
  return sum;
}

static double kernel_operations(const struct kernel *k) {
  struct operations o = {.k = k, .seen = calloc(k->exprs.count, sizeof *o.seen)};
  double sum = KERNEL_OPERATIONS + (o.seen ? block_operations(&o, k->body) : 0);
  free(o.seen);
  return sum;
}

/* ---- dealing ---- */

struct sized {
  uint32_t number;
  double operations;
};
static int compare_sized(const void *a, const void *b) {
  const struct sized *x = a, *y = b;
  if (x->operations != y->operations)
    return x->operations > y->operations ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

void kernel_shares(struct kernel *const *kernels, uint32_t count, uint32_t modules, uint32_t *out) {
  struct sized *order = calloc(count + 1, sizeof *order);
  double *load = calloc(modules, sizeof *load);
  if (!order || !load)
    abort();
  for (uint32_t i = 0; i < count; i++)
    order[i] = (struct sized){i, kernel_operations(kernels[i])};
  qsort(order, count, sizeof *order, compare_sized);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t least = 0;
    for (uint32_t m = 1; m < modules; m++)
      if (load[m] < load[least])
        least = m;
    out[order[i].number] = least;
    load[least] += order[i].operations;
  }
  free(order);
  free(load);
}
