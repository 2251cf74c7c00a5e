/* flow_kernel.c: see flow_kernel.h. */
#include "compiler/edit/flow_kernel.h"

#include "compiler/edit/flow_edit.h"

struct flow_node *flow_append_kernel(struct flow *f, const struct flow_node *named, uint32_t task, struct kernel *k, const value_id *in,
                                     struct flow_value result) {
  flow_id id;
  struct flow_node *n = flow_append(f, FLOW_KERNEL, named, task, &id);
  n->kernel = k;
  n->args = ARENA_ARRAY(f->arena, struct flow_arg, k->buffers.count + 1);
  value_id out = flow_append_output(f, n, id, result);
  for (uint32_t i = 0; i < k->buffers.count; i++) {
    bool is_in = k->buffers.items[i].mode == BUFFER_IN;
    n->args[i].value = is_in ? in[i] : out;
    if (is_in)
      vec_push(&n->inputs, in[i]);
  }
  return n;
}

value_id flow_append_map(struct flow *f, const struct flow_node *named, uint32_t task, const char *name, enum scalar_op op, value_id a,
                         value_id b) {
  struct flow_value x = f->values.items[a];
  struct kernel *k = kernel_create(f->arena, name);
  kernel_dim dims[LIMIT_RANK];
  dim *sizes = ARENA_ARRAY(f->arena, dim, LIMIT_RANK);
  expr_id index[LIMIT_RANK];
  for (int d = 0; d < x.rank; d++) {
    int64_t size;
    if (dim_is_const(f->dims, dim_resolve(f->dims, x.dims[d]), &size)) {
      dims[d] = size;
      continue;
    }
    sizes[k->size_count] = x.dims[d];
    dims[d] = DIM_OF_SIZE(k->size_count);
    k->size_count++;
  }
  uint32_t inputs = b ? 2 : 1;
  for (uint32_t i = 0; i <= inputs; i++)
    kernel_add_buffer(k, x.dtype, i < inputs ? BUFFER_IN : BUFFER_OUT, x.rank, dims);
  struct stmt **tail = &k->body;
  for (int d = 0; d < x.rank; d++) {
    struct stmt *loop = stmt_for(k, tail, LOOP_PAR, expr_dim(k, dims[d]));
    index[d] = expr_local(k, loop->local);
    tail = &loop->body;
  }
  for (int part = 0; part < (dtype_is_complex(x.dtype) ? 2 : 1); part++) {
    expr_id value = expr_load(k, 0, part, index, x.rank);
    if (b)
      value = expr_binary(k, op, value, expr_load(k, 1, part, index, x.rank));
    stmt_store(k, tail, inputs, part, index, x.rank, value);
    while (*tail)
      tail = &(*tail)->next;
  }
  struct flow_node *n = flow_append_kernel(f, named, task, k, (const value_id[]){a, b}, x);
  n->sizes = sizes;
  return n->outputs.items[0];
}
