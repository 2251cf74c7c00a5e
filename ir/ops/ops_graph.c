/* ops_graph.c: constants, placeholders, identities and what exists for its edges only. */
#include <string.h>

#include "ir/lower.h"
#include "ir/lower_frame.h"

status build_const(struct op_call *c) {
  const struct attr_value *a = node_attr(c->node, "value");
  if (!a || a->kind != ATTR_TENSOR)
    return fail(INVALID_ARGUMENT, "no attribute 'value'");
  const struct constant *k = a->tensor;
  dim dims[LIMIT_RANK];
  for (int i = 0; i < k->rank; i++)
    dims[i] = op_dim(c, k->dims[i]);
  op_set_output(c, 0, op_constant(c, k->dtype, k->rank, dims, k->data));
  return OK;
}

status build_placeholder(struct op_call *c) {
  return fail(INVALID_ARGUMENT, "You must feed a value for placeholder tensor '%s' with dtype %s", c->node->name,
              dtype_name(op_output_dtype(c, 0)));
}

/* A reference stays one; a value passes. */
static status pass_through(struct op_call *c, uint32_t i) {
  struct bound b = c->in[i];
  bool ref_out = c->node->output_dtypes[i] > DTYPE_REF || op_output_dtype(c, i) == DTYPE_RESOURCE;
  if (b.var && !b.value && ref_out) {
    c->out[i] = b;
    return OK;
  }
  value_id v;
  TRY(op_input(c, i, &v));
  c->out[i] = (struct bound){.value = v, .maker = b.maker};
  return OK;
}
status build_identity(struct op_call *c) { return pass_through(c, 0); }
status build_identity_n(struct op_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++)
    TRY(pass_through(c, i));
  return OK;
}

status build_noop(struct op_call *c) {
  (void)c;
  return OK;
}

status build_ensure_shape(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  const struct attr_value *a = node_attr(c->node, "shape");
  if (a && !a->shape.unknown_rank) {
    bool fits = a->shape.rank == x.rank;
    for (int i = 0; i < x.rank && fits; i++)
      fits = a->shape.dims[i] < 0 || dim_equal(c->lw->dims, x.dims[i], op_dim(c, a->shape.dims[i])) != 0;
    if (!fits) {
      const char *want = "[";
      for (int i = 0; i < a->shape.rank; i++)
        want = a->shape.dims[i] < 0 ? arena_printf(c->lw->arena, "%s%s?", want, i ? "," : "")
                                    : arena_printf(c->lw->arena, "%s%s%lld", want, i ? "," : "", (long long)a->shape.dims[i]);
      return fail(INVALID_ARGUMENT, "Shape of tensor %s %s is not compatible with expected shape %s].", c->node->name,
                  op_shape_text(c, x.rank, x.dims), want);
    }
    for (int i = 0; i < x.rank; i++)
      if (a->shape.dims[i] >= 0)
        TRY(op_equal_dims(c, x.dims[i], op_dim(c, a->shape.dims[i]), "Shape of tensor is not compatible with expected shape"));
  }
  op_set_output(c, 0, v);
  return OK;
}

status build_partitioned_call(struct op_call *c) {
  const struct attr_value *f = node_attr(c->node, "f");
  if (!f || f->kind != ATTR_FUNC)
    return fail(INVALID_ARGUMENT, "no attribute 'f'");
  return lower_call_function(c, f->func->name, f->func->attrs, f->func->attr_count);
}

status build_bitcast(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  enum dtype dtype = op_output_dtype(c, 0);
  size_t from = dtype_size(x.dtype), to = dtype_size(dtype);
  dim dims[LIMIT_RANK];
  int rank = x.rank;
  memcpy(dims, x.dims, sizeof dims);
  if (from > to) {
    if (rank == LIMIT_RANK)
      return fail(UNIMPLEMENTED, "a result of rank %d", rank + 1);
    dims[rank++] = op_dim(c, (int64_t)(from / to));
  } else if (from < to) {
    if (rank == 0 || dim_equal(c->lw->dims, dims[rank - 1], op_dim(c, (int64_t)(to / from))) == 0)
      return fail(INVALID_ARGUMENT, "Cannot bitcast from %s to %s: the last dimension must be %zu", dtype_name(x.dtype),
                  dtype_name(dtype), to / from);
    TRY(op_equal_dims(c, dims[rank - 1], op_dim(c, (int64_t)(to / from)), "the last dimension"));
    rank--;
  }
  op_set_output(c, 0, op_alias(c, v, dtype, rank, dims));
  return OK;
}
