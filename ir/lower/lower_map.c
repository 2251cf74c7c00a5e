/* lower_map.c: the commonest kernels: a formula over elements, a copy, another dtype. */
#include <string.h>

#include "ir/lower/lower.h"

status op_map(struct op_call *c, const value_id *inputs, int count, enum dtype out, map_formula formula, value_id *result) {
  struct flow_value first = *op_value(c, inputs[0]);
  int rank = first.rank;
  dim dims[LIMIT_RANK];
  memcpy(dims, first.dims, sizeof dims);
  value_id shape = inputs[0];
  for (int i = 1; i < count; i++) {
    TRY(op_broadcast(c, shape, inputs[i], &rank, dims));
    if (i + 1 < count)
      shape = flow_add_value(op_flow(c), first.dtype, rank, dims);
  }
  struct kb kb;
  kb_begin(&kb, c, first.dtype);
  uint32_t buffers[3] = {0, 0, 0};
  for (int i = 0; i < count; i++)
    buffers[i] = kb_in(&kb, inputs[i]);
  uint32_t o = kb_out(&kb, out, rank, dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  struct element e[3] = {{0, 0}, {0, 0}, {0, 0}};
  for (int i = 0; i < count; i++)
    e[i] = kb_load_broadcast(&kb, buffers[i], rank, index);
  kb_store(&kb, o, index, f_cast(&kb.f, out, formula(&kb.f, e[0], e[1], e[2])));
  kb_close(&kb, rank);
  *result = kb_value(&kb, o);
  return kb_finish(&kb);
}

static struct element formula_copy(struct formula *f, struct element a, struct element b, struct element c) {
  (void)f, (void)b, (void)c;
  return a;
}

status op_copy(struct op_call *c, value_id v, value_id *out) { return op_map(c, &v, 1, op_value(c, v)->dtype, formula_copy, out); }

status op_cast(struct op_call *c, value_id v, enum dtype dtype, value_id *out) {
  struct flow_value x = *op_value(c, v);
  if (x.dtype == dtype) {
    *out = v;
    return OK;
  }
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  kb_store(&kb, o, index, f_cast(&kb.f, dtype, kb_load(&kb, a, index)));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}
