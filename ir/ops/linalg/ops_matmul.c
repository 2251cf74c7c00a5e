/* ops_matmul.c: products of matrices, alone and in batches. Transposition is only an order of indices; the adjoint of the
 * batched forms conjugates as well. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/op_rows.h"

struct product {
  value_id a, b;
  bool turned_a, turned_b; /* the last two axes are exchanged */
  bool conjugate;          /* where turned */
  enum dtype dtype;        /* of the result */
};

static status check_sizes(struct op_call *c, const struct product *p, const struct flow_value *a, const struct flow_value *b, dim ka,
                          dim kb) {
  (void)p;
  if (dim_equal(op_dims(c), ka, kb) == 0)
    return fail(INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: %s, In[1]: %s", op_shape_text(c, a->rank, a->dims),
                op_shape_text(c, b->rank, b->dims));
  return op_equal_dims(c, ka, kb, "Matrix size-incompatible: inner sizes");
}

/* The axes before the matrices, broadcast against each other. */
static status batch_dims(struct op_call *c, const struct flow_value *a, const struct flow_value *b, int *rank, dim *dims) {
  value_id x = flow_add_value(op_flow(c), a->dtype, a->rank - 2, a->dims);
  value_id y = flow_add_value(op_flow(c), b->dtype, b->rank - 2, b->dims);
  bool equal = OP_ROW(c, matmul_row)->is_first_version;
  return equal ? op_broadcast_equal(c, x, y, rank, dims) : op_broadcast(c, x, y, rank, dims);
}

/* The index of one operand: its own batch axes, where 1 is repeated, then the matrix's two. */
static void operand_index(struct kb *kb, uint32_t buffer, int batch, const expr_id *index, bool turned, expr_id row, expr_id column,
                          expr_id *at) {
  const struct kernel_buffer b = kb->k->buffers.items[buffer];
  for (int i = 0; i < b.rank - 2; i++)
    at[i] = kb_broadcast_index(kb, buffer, i, batch + 2, index);
  at[b.rank - 2] = turned ? column : row;
  at[b.rank - 1] = turned ? row : column;
}

static status build_product(struct op_call *c, const struct product *p) {
  struct flow_value a = *op_value(c, p->a), b = *op_value(c, p->b);
  if (a.rank < 2 || b.rank < 2)
    return fail(INVALID_ARGUMENT, "In[0] and In[1] must be matrices: %s and %s", op_shape_text(c, a.rank, a.dims),
                op_shape_text(c, b.rank, b.dims));
  dim m = a.dims[a.rank - (p->turned_a ? 1 : 2)], ka = a.dims[a.rank - (p->turned_a ? 2 : 1)];
  dim n = b.dims[b.rank - (p->turned_b ? 2 : 1)], kb_ = b.dims[b.rank - (p->turned_b ? 1 : 2)];
  TRY(check_sizes(c, p, &a, &b, ka, kb_));
  int batch;
  dim dims[LIMIT_RANK];
  TRY(batch_dims(c, &a, &b, &batch, dims));
  dims[batch] = m;
  dims[batch + 1] = n;
  struct kb kb;
  enum dtype sum = sum_dtype(p->dtype);
  kb_begin(&kb, c, sum);
  uint32_t x = kb_in(&kb, p->a), y = kb_in(&kb, p->b), o = kb_out(&kb, p->dtype, batch + 2, dims);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, batch + 2, dims, index);
  struct accumulator acc = acc_zero(&kb, sum);
  expr_id k = kb_for_dim(&kb, LOOP_RED, ka);
  operand_index(&kb, x, batch, index, p->turned_a, index[batch], k, at);
  struct element ex = load_as(&kb, sum, x, at);
  operand_index(&kb, y, batch, index, p->turned_b, k, index[batch + 1], at);
  struct element ey = load_as(&kb, sum, y, at);
  ex = p->conjugate && p->turned_a ? f_conj(&kb.f, ex) : ex;
  ey = p->conjugate && p->turned_b ? f_conj(&kb.f, ey) : ey;
  acc_add(&kb, &acc, f_binary(&kb.f, SCALAR_MUL, ex, ey));
  kb_close(&kb, 1);
  store_as(&kb, o, index, acc_get(&kb, &acc));
  kb_close(&kb, batch + 2);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

status build_matmul(struct op_call *c) {
  struct product p = {.dtype = op_output_dtype(c, 0)};
  TRY(op_input(c, 0, &p.a));
  TRY(op_input(c, 1, &p.b));
  p.turned_a = node_attr_int(c->node, "transpose_a", 0);
  p.turned_b = node_attr_int(c->node, "transpose_b", 0);
  struct flow_value a = *op_value(c, p.a), b = *op_value(c, p.b);
  if (a.rank != 2 || b.rank != 2)
    return fail(INVALID_ARGUMENT, "In[0] and In[1] must be matrices: %s and %s", op_shape_text(c, a.rank, a.dims),
                op_shape_text(c, b.rank, b.dims));
  return build_product(c, &p);
}

status build_batch_matmul(struct op_call *c) {
  struct product p = {.dtype = op_output_dtype(c, 0), .conjugate = true};
  TRY(op_input(c, 0, &p.a));
  TRY(op_input(c, 1, &p.b));
  p.turned_a = node_attr_int(c->node, "adj_x", 0);
  p.turned_b = node_attr_int(c->node, "adj_y", 0);
  return build_product(c, &p);
}

/* The vector product along the last axis, which has three elements. */
status build_cross(struct op_call *c) {
  value_id va, vb;
  TRY(op_input(c, 0, &va));
  TRY(op_input(c, 1, &vb));
  struct flow_value a = *op_value(c, va);
  TRY(op_same_shape(c, va, vb, "Both inputs must be of same shape"));
  if (a.rank < 1)
    return fail(INVALID_ARGUMENT, "Input must be at least 1D");
  struct kb kb;
  guard_begin(&kb, c);
  kb_check(&kb, kb_eq(&kb, kb_dim(&kb, a.dims[a.rank - 1]), kb_int(&kb, 3)), FAILED_PRECONDITION,
           "Cross-products are only defined for 3-element vectors, not of %d elements", kb_dim(&kb, a.dims[a.rank - 1]), NO_EXPR);
  TRY(guard_finish(&kb));
  kb_begin(&kb, c, a.dtype);
  uint32_t x = kb_in(&kb, va), y = kb_in(&kb, vb), o = kb_out(&kb, a.dtype, a.rank, a.dims);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, a.rank - 1, a.dims, index);
  memcpy(at, index, sizeof at);
  struct element ex[3], ey[3];
  for (int i = 0; i < 3; i++) {
    at[a.rank - 1] = kb_int(&kb, i);
    ex[i] = kb_load(&kb, x, at);
    ey[i] = kb_load(&kb, y, at);
  }
  for (int i = 0; i < 3; i++) {
    int j = (i + 1) % 3, k = (i + 2) % 3;
    at[a.rank - 1] = kb_int(&kb, i);
    struct element left = f_binary(&kb.f, SCALAR_MUL, ex[j], ey[k]), right = f_binary(&kb.f, SCALAR_MUL, ex[k], ey[j]);
    kb_store(&kb, o, at, f_binary(&kb.f, SCALAR_SUB, left, right));
  }
  kb_close(&kb, a.rank - 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
