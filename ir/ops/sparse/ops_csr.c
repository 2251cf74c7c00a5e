/* ops_csr.c: sparse matrices as variants. A variant says nothing of its matrix; rank and sizes are remembered with the node
 * that made it. */
#include <string.h>

#include "ir/ops/arrange.h"
#include "ir/lower/host_call.h"
#include "ir/ops/sparse/sparse_host.h"

/* Output 0 is a matrix of this rank and these sizes (NO_DIM: not known). */
static void matrix_output(struct op_call *c, struct flow_node *n, int rank, const dim *dims) {
  struct object_shapes *o = lower_object(c->lw, c->node);
  struct flow_value m = {.rank = rank};
  memcpy(m.dims, dims, sizeof *dims * (size_t)rank);
  o->count = 1;
  o->values = ARENA_NEW(op_arena(c), struct flow_value);
  *o->values = op_lasting_shape(c, &m, false);
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->node;
}

/* The matrix of input i as it was remembered. */
static status matrix_input(struct op_call *c, uint32_t i, struct flow_value *out) {
  const struct object_shapes *o = lower_object(c->lw, c->in[i].maker);
  if (!o || !o->count)
    return fail(UNIMPLEMENTED, "the rank of a sparse matrix is not known while compiling");
  *out = *o->values;
  return OK;
}

/* A call whose input 0 is a matrix. */
static status matrix_call(struct op_call *c, struct flow_node **n, struct flow_value *m) {
  TRY(op_host(c, HOST_PURE, NULL, n));
  return matrix_input(c, 0, m);
}

static void swap_last(struct flow_value *m) {
  dim last = m->dims[m->rank - 1];
  m->dims[m->rank - 1] = m->dims[m->rank - 2];
  m->dims[m->rank - 2] = last;
}

static dim size_or_symbol(struct op_call *c, dim d) { return d == NO_DIM ? op_new_symbol(c) : d; }

status build_csr_of_sparse(struct op_call *c) {
  struct flow_node *n;
  dim *dims;
  int rank;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  TRY(op_known_elements(c, n->inputs.items[2], &dims, &rank));
  if (rank != 2 && rank != 3)
    return fail(INVALID_ARGUMENT, "SparseTensor must have rank 2 or 3; but indices has rank: %d", rank);
  matrix_output(c, n, rank, dims);
  return OK;
}

status build_csr_of_dense(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  struct flow_value x = *op_value(c, n->inputs.items[0]);
  if (x.rank != 2 && x.rank != 3)
    return fail(INVALID_ARGUMENT, "params must have rank == 2 or 3; but saw shape: %s", op_shape_text(c, x.rank, x.dims));
  matrix_output(c, n, x.rank, x.dims);
  return OK;
}

status build_csr_to_dense(struct op_call *c) {
  struct flow_node *n;
  struct flow_value m;
  dim dims[LIMIT_RANK];
  TRY(matrix_call(c, &n, &m));
  for (int d = 0; d < m.rank; d++)
    dims[d] = size_or_symbol(c, m.dims[d]);
  op_host_output(c, n, 0, m.rank, dims);
  return OK;
}

status build_csr_to_sparse(struct op_call *c) {
  struct flow_node *n;
  struct flow_value m;
  TRY(matrix_call(c, &n, &m));
  return op_sparse_outputs(c, n, 0, op_dim(c, m.rank));
}

status build_csr_nnz(struct op_call *c) {
  struct flow_node *n;
  struct flow_value m;
  TRY(matrix_call(c, &n, &m));
  dim batch = m.rank == 3 ? size_or_symbol(c, m.dims[0]) : NO_DIM;
  op_host_output(c, n, 0, m.rank - 2, &batch);
  return OK;
}

/* Transposed, or a factor: its sizes are those of input 0. */
status build_csr_unary(struct op_call *c) {
  struct flow_node *n;
  struct flow_value m;
  TRY(matrix_call(c, &n, &m));
  if (OP_ROW(c, csr_row)->transposed)
    swap_last(&m);
  matrix_output(c, n, m.rank, m.dims);
  return OK;
}

static struct element formula_conj(struct formula *f, struct element a, struct element b, struct element c) {
  (void)b, (void)c;
  return f_conj(f, a);
}

/* Of numbers, or of a sparse matrix. */
status build_conj(struct op_call *c) {
  value_id x, out;
  struct flow_node *n;
  struct flow_value m;
  TRY(op_input(c, 0, &x));
  if (op_value(c, x)->dtype != DTYPE_VARIANT) {
    TRY(op_map(c, &x, 1, op_output_dtype(c, 0), formula_conj, &out));
    op_set_output(c, 0, out);
    return OK;
  }
  TRY(op_host(c, HOST_PURE, "SparseMatrixConj", &n));
  TRY(matrix_input(c, 0, &m));
  matrix_output(c, n, m.rank, m.dims);
  return OK;
}

static bool turned(const struct op_call *c, const char *transpose, const char *adjoint) {
  return node_attr_int(c->node, transpose, 0) != 0 || node_attr_int(c->node, adjoint, 0) != 0;
}

status build_csr_sparse_matmul(struct op_call *c) {
  struct flow_node *n;
  struct flow_value a, b;
  TRY(matrix_call(c, &n, &a));
  TRY(matrix_input(c, 1, &b));
  if (a.rank != b.rank)
    return fail(INVALID_ARGUMENT, "Ranks of A and B must match, saw: %d vs. %d.", a.rank, b.rank);
  if (turned(c, "transpose_a", "adjoint_a"))
    swap_last(&a);
  if (turned(c, "transpose_b", "adjoint_b"))
    swap_last(&b);
  a.dims[a.rank - 1] = b.dims[b.rank - 1];
  if (a.rank == 3)
    a.dims[0] = NO_DIM;
  matrix_output(c, n, a.rank, a.dims);
  return OK;
}

status build_csr_matmul(struct op_call *c) {
  struct flow_node *n;
  struct flow_value a;
  TRY(matrix_call(c, &n, &a));
  struct flow_value b = *op_value(c, n->inputs.items[1]);
  if (a.rank != b.rank)
    return fail(INVALID_ARGUMENT, "Ranks of a and b must match, saw: %d vs. %d.", a.rank, b.rank);
  if (turned(c, "transpose_a", "adjoint_a"))
    swap_last(&a);
  if (turned(c, "transpose_b", "adjoint_b"))
    swap_last(&b);
  b.dims[b.rank - 2] = size_or_symbol(c, a.dims[a.rank - 2]);
  if (node_attr_int(c->node, "transpose_output", 0))
    swap_last(&b);
  op_host_output(c, n, 0, b.rank, b.dims);
  return OK;
}
