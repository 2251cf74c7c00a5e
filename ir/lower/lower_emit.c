/* lower_emit.c: what a builder adds to the flow: nodes with their outputs, constants, other views of values; and dims as it writes them. */
#include <string.h>

#include "ir/lower/lower_state.h"

void op_add_control(struct op_call *c, flow_id id) {
  for (uint32_t i = 0; i < c->controls.count; i++)
    if (c->controls.items[i] == id)
      return;
  if (id)
    vec_push(&c->controls, id);
}

uint32_t op_arg_index(const struct op_call *c, const char *name) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < c->node->def->input_count; i++) {
    const struct op_arg *arg = &c->node->def->inputs[i];
    if (strcmp(arg->name, name) == 0)
      return at;
    if (arg->number_attr)
      at += (uint32_t)node_attr_int(c->node, arg->number_attr, 1);
    else if (arg->list_attr)
      at += node_attr(c->node, arg->list_attr) ? node_attr(c->node, arg->list_attr)->list.count : 0;
    else
      at++;
  }
  return UINT32_MAX;
}

bool op_takes(const struct op_call *c, const char *name) { return op_arg_index(c, name) != UINT32_MAX; }

void op_set_output(struct op_call *c, uint32_t i, value_id v) {
  c->too_many = c->too_many || i >= c->out_count;
  if (i < c->out_count)
    c->out[i] = (struct bound){.value = v};
}

enum dtype op_output_dtype(const struct op_call *c, uint32_t i) {
  return i < c->node->output_count ? dtype_base(c->node->output_dtypes[i]) : DTYPE_INVALID;
}

struct flow_node *op_emit(struct op_call *c, enum flow_op op, bool effect) {
  flow_id id;
  struct flow_node *n = flow_add_node(c->lw->walk.flow, op, c->node->name, c->node->op, c->node->task, &id);
  n->stateful = effect && op != FLOW_READ;
  if (c->guards) {
    n->guards = c->guards->list;
    n->guard_count = c->guards->count;
  }
  if (effect) {
    for (uint32_t i = 0; i < c->controls.count; i++)
      vec_push(&n->controls, c->controls.items[i]);
    if (c->effect)
      vec_push(&n->controls, c->effect);
    c->effect = id;
  }
  return n;
}

value_id op_add_output(struct op_call *c, struct flow_node *n, enum dtype dtype, int rank, const dim *dims) {
  struct flow *f = c->lw->walk.flow;
  value_id v = flow_add_value(f, dtype, rank, dims);
  for (flow_id id = f->nodes.count - 1; id > 0; id--)
    if (f->nodes.items[id] == n) {
      f->values.items[v].producer = id;
      break;
    }
  f->values.items[v].index = n->outputs.count;
  vec_push(&n->outputs, v);
  return v;
}

value_id op_constant(struct op_call *c, enum dtype dtype, int rank, const dim *dims, const void *data) {
  struct flow_node *n = op_emit(c, FLOW_CONST, false);
  value_id v = op_add_output(c, n, dtype, rank, dims);
  op_value(c, v)->data = data;
  return v;
}

value_id op_constant_i64s(struct op_call *c, enum dtype dtype, int rank, const int64_t *sizes, const int64_t *values, uint32_t count) {
  dim dims[LIMIT_RANK];
  for (int i = 0; i < rank; i++)
    dims[i] = op_dim(c, sizes[i]);
  size_t size = dtype_size(dtype);
  char *data = arena_alloc_aligned(c->lw->arena, size * count + 16, 64);
  for (uint32_t i = 0; i < count; i++)
    memcpy(data + size * i, &values[i], size);
  return op_constant(c, dtype, rank, dims, data);
}

value_id op_alias(struct op_call *c, value_id v, enum dtype dtype, int rank, const dim *dims) {
  struct flow_value x = *op_value(c, v);
  bool same = x.dtype == dtype && x.rank == rank;
  for (int i = 0; i < rank && same; i++)
    same = dim_equal(c->lw->dims, x.dims[i], dims[i]) == 1;
  if (same)
    return v;
  struct flow_node *n = op_emit(c, FLOW_ALIAS, false);
  vec_push(&n->inputs, v);
  value_id r = op_add_output(c, n, dtype, rank, dims);
  op_value(c, r)->data = x.data;
  op_value(c, r)->content = x.dtype == dtype ? x.content : NULL;
  return r;
}

/* ---- dims ---- */

dim op_dim(struct op_call *c, int64_t value) { return dim_const(c->lw->dims, value); }

int64_t op_dim_value(struct op_call *c, dim d) {
  int64_t v;
  return d != NO_DIM && dim_is_const(c->lw->dims, dim_resolve(c->lw->dims, d), &v) ? v : -1;
}

dim op_count(struct op_call *c, int rank, const dim *dims) {
  dim n = op_dim(c, 1);
  for (int i = 0; i < rank; i++)
    n = dim_mul(c->lw->dims, n, dims[i]);
  return n;
}

dim op_new_symbol(struct op_call *c) { return dim_symbol(c->lw->dims, arena_printf(c->lw->arena, "n%u", dims_symbol_count(c->lw->dims))); }

const char *op_shape_text(struct op_call *c, int rank, const dim *dims) {
  const char *text = "[";
  for (int i = 0; i < rank; i++)
    text = arena_printf(c->lw->arena, "%s%s%s", text, i ? "," : "", dim_text(c->lw->dims, dim_resolve(c->lw->dims, dims[i])));
  return arena_printf(c->lw->arena, "%s]", text);
}

status op_axis(struct op_call *c, int64_t axis, int rank, int *out) {
  (void)c;
  if (axis < -rank || axis >= rank)
    return fail(INVALID_ARGUMENT, "axis %lld is not in [%d,%d)", (long long)axis, -rank, rank);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return OK;
}
