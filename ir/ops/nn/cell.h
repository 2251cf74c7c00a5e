/* cell.h: what the cells of recurrent networks share: matrices of states, gates and weights. Private to ir/ops. */
#ifndef TFC_IR_OPS_NN_CELL_H
#define TFC_IR_OPS_NN_CELL_H

#include "ir/ops/element_words.h"

/* An argument must have these dims; INVALID_ARGUMENT naming it. */
static inline status expect_shape(struct op_call *c, value_id v, const char *name, int rank, const dim *dims) {
  struct flow_value x = *op_value(c, v);
  if (x.rank != rank)
    return fail(INVALID_ARGUMENT, "%s must be rank %d but is rank %d", name, rank, x.rank);
  for (int i = 0; i < rank; i++)
    TRY(op_equal_dims(c, x.dims[i], dims[i], arena_printf(op_arena(c), "%s: dimension %d", name, i)));
  return OK;
}

static inline struct element load2(struct kb *kb, uint32_t buffer, expr_id i, expr_id j) {
  expr_id at[2] = {i, j};
  return kb_load(kb, buffer, at);
}
static inline void store2(struct kb *kb, uint32_t buffer, expr_id i, expr_id j, struct element e) {
  expr_id at[2] = {i, j};
  store_as(kb, buffer, at, e);
}
static inline struct element one_minus(struct kb *kb, struct element a) { return e_sub(kb, e_num(kb, 1), a); }

#endif
