/* conv_spread.c: depthwise convolutions of several results for each channel: see conv.h.
 *
 * A result's channel is then a quotient of its number, by which no vector of channels can be loaded. One copy of the image, in which each
 * channel stands as often as it has results, costs a load and a store for each element of a result, where a sum has a term for each tap. */
#include <string.h>

#include "ir/ops/arrange.h"
#include "ir/ops/nn/conv.h"
#include "ir/ops/op_rows.h"

bool conv_spreads(struct op_call *c, const struct conv *v) {
  return v->depthwise && !v->layout.channels_first && op_dim_value(c, v->multiplier) != 1;
}

void conv_spread(struct op_call *c, struct conv *v, dim *filter) {
  v->is_spread = true;
  filter[v->layout.spatial] = v->in_channels = v->group_in = v->out_channels;
  filter[v->layout.spatial + 1] = v->multiplier = v->group_out = op_dim(c, 1);
}

status conv_spread_input(struct op_call *c, const struct conv *v, value_id *input) {
  struct flow_value x = *op_value(c, *input);
  expr_id index[LIMIT_RANK];
  dim dims[LIMIT_RANK];
  struct kb kb;
  memcpy(dims, x.dims, sizeof dims);
  dims[x.rank] = v->multiplier;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, *input), b = kb_out(&kb, x.dtype, x.rank + 1, dims);
  kb_loops(&kb, LOOP_PAR, x.rank + 1, dims, index);
  kb_store(&kb, b, index, kb_load(&kb, a, index));
  kb_close(&kb, x.rank + 1);
  value_id made = kb_value(&kb, b);
  TRY(kb_finish_guarded(&kb));
  dims[x.rank - 1] = v->out_channels;
  *input = op_alias(c, made, x.dtype, x.rank, dims);
  return OK;
}

status conv_gather_input(struct op_call *c, const struct conv *v, value_id *gradient) {
  struct flow_value g = *op_value(c, *gradient);
  bool reduced[LIMIT_RANK] = {0};
  reduced[g.rank] = true;
  g.dims[g.rank - 1] = v->in_channels;
  g.dims[g.rank] = v->multiplier;
  value_id parts = op_alias(c, *gradient, g.dtype, g.rank + 1, g.dims);
  return op_reduce(c, parts, reduced, false, op_row_find("Sum")->data, gradient);
}
