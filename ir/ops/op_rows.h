/* op_rows.h: the shapes of the rows of ops.def, for the builders that read them. Private to ir/. */
#ifndef TFC_IR_OPS_OP_ROWS_H
#define TFC_IR_OPS_OP_ROWS_H

#include "ir/lower/lower.h"

struct map_row {
  int inputs;
  map_formula formula;
  map_formula holds; /* NULL: nothing to check */
  status code;
  const char *text;
};
struct reduce_row {
  struct element (*start)(struct formula *f);
  struct element (*combine)(struct formula *f, struct element acc, struct element x);
  struct element (*finish)(struct formula *f, struct element acc, expr_id n);
};
status build_map(struct op_call *c);
status build_reduce(struct op_call *c);
status build_update(struct op_call *c);

/* The parts of formulas that only rows use. */
struct element f_nonzero_integer(struct formula *f, struct element x);     /* true for floats */
struct element f_nonnegative_integer(struct formula *f, struct element x); /* true for floats */
struct element f_truncate(struct formula *f, struct element x);            /* towards zero; integers are whole */
struct element f_mean(struct formula *f, struct element sum, expr_id n);

/* What a reduction adds up in, and its step: `next` into the locals, `im` only where it has one. */
enum dtype op_accumulator_dtype(enum dtype dtype);
void op_set_accumulator(struct kb *kb, uint32_t re, uint32_t im, struct element next);
/* The same as the call's output for axes that are not known while compiling. Where not even their number is, the axes stay as 1
 * and the output is marked (struct bound.rank_open), if nothing but a Reshape takes it. */
status op_reduce_at_runtime(struct op_call *c, value_id v, value_id axes, bool keep, const struct reduce_row *row);
/* Reduces the axes marked in `reduced` of v by a row, keeping them as 1 or not. */
status op_reduce(struct op_call *c, value_id v, const bool *reduced, bool keep, const struct reduce_row *row, value_id *out);

/* One element of an optimizer update (ops/state/optimizers.c): what its rule reads and sets. */
struct update {
  struct op_call *c;
  struct formula *f;
  struct kb *kb;
  const expr_id *index; /* of the element in the variables */
  struct element grad;
  uint32_t var_buffers[6]; /* var and slots, by input number */
  uint32_t var_count;
  bool sparse;
};

#endif
