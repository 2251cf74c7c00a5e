/* ops_sdca.c: stochastic dual coordinate ascent. */
#include "ir/ops/element_words.h"

/* A variable's numbers drawn towards 0 by `by`, and no further. NaN stays. */
static status shrink(struct op_call *c, uint32_t input, double by) {
  uint32_t var;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(op_input_var(c, input, &var));
  TRY(op_updated_dims(c, input, var, &rank, dims));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t w = kb_var(&kb, var, BUFFER_INOUT, rank, dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  struct element x = kb_load(&kb, w, index), size = f_unary(&kb.f, SCALAR_ABS, x);
  struct element rest = e_max(&kb, e_sub(&kb, size, e_num(&kb, by)), e_num(&kb, 0));
  kb_store(&kb, w, index, e_mul(&kb, f_sign(&kb.f, x), rest));
  kb_close(&kb, rank);
  return kb_finish(&kb);
}

status build_sdca_shrink(struct op_call *c) {
  double l1 = node_attr_float(c->node, "l1", 0), l2 = node_attr_float(c->node, "l2", 0);
  for (uint32_t i = 0; i < c->in_count; i++)
    TRY(shrink(c, i, (float)(l1 / l2)));
  return OK;
}
