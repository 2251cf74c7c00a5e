/* host_csr.c: sparse matrices as variants: made of dense and sparse tensors and turned back, and their arithmetic. */
#include <stdlib.h>
#include <string.h>

#include "runtime/value/csr_matrix.h"
#include "runtime/value/sparse_tensor.h"

static enum dtype type_attr(const struct host_call *call, const char *name) { return (enum dtype)host_attr_int(call, name, DTYPE_FLOAT); }

/* ---- made of entries ---- */

/* Entries in the order of their rows; `values`: one for each. */
static status csr_of_entries(const int64_t *indices, int64_t count, const int64_t *dims, int rank, enum dtype dtype, struct csr **out) {
  struct csr *m;
  int64_t batch = rank == 3 ? dims[0] : 1, last = -1;
  TRY(csr_create(dtype, rank, batch, dims[rank - 2], dims[rank - 1], count, &m));
  for (int64_t i = 0; i < count; i++) {
    const int64_t *index = indices + i * rank;
    int64_t b = rank == 3 ? index[0] : 0, row = index[rank - 2], column = index[rank - 1];
    if (b < 0 || b >= batch || row < 0 || row >= m->rows || column < 0 || column >= m->cols) {
      object_release(&m->object);
      return fail(INVALID_ARGUMENT, "Index %lld, row %lld, column %lld: is outside of valid range", (long long)i, (long long)row,
                  (long long)column);
    }
    m->row_at[b * (m->rows + 1) + row + 1]++;
    m->columns[i] = (int32_t)column;
    for (; last < b; last++)
      m->batch_at[last + 1] = (int32_t)i;
  }
  for (; last < batch; last++)
    m->batch_at[last + 1] = (int32_t)count;
  for (int64_t b = 0; b < batch; b++)
    for (int64_t r = 0; r < m->rows; r++)
      m->row_at[b * (m->rows + 1) + r + 1] += m->row_at[b * (m->rows + 1) + r];
  *out = m;
  return OK;
}

status host_csr_of_sparse(struct host_call *call) {
  struct sparse_tensor s;
  struct csr *m;
  TRY(sparse_tensor_read(&call->inputs[0], &call->inputs[1], &call->inputs[2], &s));
  TRY(sparse_tensor_check_bounds(&s));
  if (s.rank != 2 && s.rank != 3)
    return fail(INVALID_ARGUMENT, "SparseTensor must have rank 2 or 3; but indices has rank: %d", s.rank);
  TRY(csr_of_entries(s.indices, s.count, s.dims, s.rank, s.values->dtype, &m));
  if (s.count)
    memcpy(m->values, s.values->data, (size_t)tensor_byte_size(s.values));
  return object_output(call, 0, &m->object);
}

status host_csr_of_dense(struct host_call *call) {
  const struct tensor *dense = &call->inputs[0], *indices = &call->inputs[1];
  int rank = dense->shape.rank;
  struct csr *m;
  if (rank != 2 && rank != 3)
    return fail(INVALID_ARGUMENT, "params must have rank == 2 or 3; but saw shape: %s", shape_text(&dense->shape));
  if (indices->shape.rank != 2 || indices->shape.dims[1] != rank)
    return fail(INVALID_ARGUMENT, "indices must be a matrix whose indices.shape[1] is the rank of params, but saw shape: %s",
                shape_text(&indices->shape));
  TRY(csr_of_entries(indices->data, indices->shape.dims[0], dense->shape.dims, rank, dense->dtype, &m));
  size_t size = dtype_size(dense->dtype);
  for (int64_t i = 0; i < indices->shape.dims[0]; i++) {
    const int64_t *index = (const int64_t *)indices->data + i * rank;
    int64_t from = 0;
    for (int d = 0; d < rank; d++)
      from = from * dense->shape.dims[d] + index[d];
    memcpy((char *)m->values + (size_t)i * size, (const char *)dense->data + (size_t)from * size, size);
  }
  return object_output(call, 0, &m->object);
}

/* ---- turned back ---- */

static struct shape shape_of(const struct csr *m) {
  if (m->rank == 2)
    return (struct shape){2, {m->rows, m->cols}};
  return (struct shape){3, {m->batch, m->rows, m->cols}};
}

status host_csr_to_dense(struct host_call *call) {
  struct csr *m;
  TRY(csr_input(call, 0, type_attr(call, "type"), &m));
  struct shape shape = shape_of(m);
  TRY(host_make_output(call, 0, m->dtype, &shape));
  size_t size = dtype_size(m->dtype);
  char *out = call->outputs[0]->data;
  if (out)
    memset(out, 0, (size_t)tensor_byte_size(call->outputs[0]));
  for (int64_t b = 0; b < m->batch; b++)
    for (int64_t r = 0; r < m->rows; r++)
      for (int64_t i = csr_row(m, b, r); i < csr_row(m, b, r + 1); i++)
        memcpy(out + (size_t)((b * m->rows + r) * m->cols + m->columns[i]) * size, (const char *)m->values + (size_t)i * size, size);
  return OK;
}

status host_csr_to_sparse(struct host_call *call) {
  struct csr *m;
  TRY(csr_input(call, 0, type_attr(call, "type"), &m));
  int64_t count = csr_count(m);
  struct shape shape = shape_of(m);
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){2, {count, m->rank}}));
  TRY(tensor_copy_in(m->dtype, &(struct shape){1, {count}}, m->values, &call->outputs[1]));
  TRY(tensor_copy_in(DTYPE_INT64, &(struct shape){1, {m->rank}}, shape.dims, &call->outputs[2]));
  int64_t *to = call->outputs[0]->data;
  for (int64_t b = 0; b < m->batch; b++)
    for (int64_t r = 0; r < m->rows; r++)
      for (int64_t i = csr_row(m, b, r); i < csr_row(m, b, r + 1); i++) {
        if (m->rank == 3)
          *to++ = b;
        *to++ = r;
        *to++ = m->columns[i];
      }
  return OK;
}

/* One matrix of the batch as its three vectors. */
status host_csr_components(struct host_call *call) {
  struct csr *m;
  TRY(csr_input(call, 0, type_attr(call, "type"), &m));
  if (call->inputs[1].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "index should be a scalar, but saw: %s", shape_text(&call->inputs[1].shape));
  int64_t b = host_scalar_int(&call->inputs[1]);
  if (b < 0 || b >= m->batch)
    return fail(INVALID_ARGUMENT, "index (%lld) not in [0, %lld)", (long long)b, (long long)m->batch);
  int64_t from = m->batch_at[b], count = m->batch_at[b + 1] - from;
  TRY(tensor_copy_in(DTYPE_INT32, &(struct shape){1, {m->rows + 1}}, m->row_at + b * (m->rows + 1), &call->outputs[0]));
  TRY(tensor_copy_in(DTYPE_INT32, &(struct shape){1, {count}}, m->columns + from, &call->outputs[1]));
  return tensor_copy_in(m->dtype, &(struct shape){1, {count}}, (const char *)m->values + (size_t)from * dtype_size(m->dtype),
                        &call->outputs[2]);
}

status host_csr_nnz(struct host_call *call) {
  struct csr *m;
  TRY(csr_input(call, 0, DTYPE_INVALID, &m));
  TRY(host_make_output(call, 0, DTYPE_INT32, &(struct shape){m->rank - 2, {m->batch}}));
  for (int64_t b = 0; b < m->batch; b++)
    ((int32_t *)call->outputs[0]->data)[b] = m->batch_at[b + 1] - m->batch_at[b];
  return OK;
}

/* ---- arithmetic ---- */

status host_csr_transpose(struct host_call *call) {
  struct csr *m, *t;
  TRY(csr_input(call, 0, type_attr(call, "type"), &m));
  TRY(csr_transpose(m, host_attr_int(call, "conjugate", 0), &t));
  return object_output(call, 0, &t->object);
}

/* Conj of a matrix: twice transposed, conjugated once. */
status host_csr_conj(struct host_call *call) {
  struct csr *m, *t, *back;
  TRY(csr_input(call, 0, DTYPE_INVALID, &m));
  TRY(csr_transpose(m, true, &t));
  status s = csr_transpose(t, false, &back);
  object_release(&t->object);
  return s == OK ? object_output(call, 0, &back->object) : s;
}

struct sides {
  bool transpose_a, transpose_b, conjugate_a, conjugate_b;
};

static status read_sides(const struct host_call *call, struct sides *out) {
  bool adjoint_a = host_attr_int(call, "adjoint_a", 0), adjoint_b = host_attr_int(call, "adjoint_b", 0);
  bool a = host_attr_int(call, "transpose_a", 0), b = host_attr_int(call, "transpose_b", 0);
  if ((adjoint_a && a) || (adjoint_b && b))
    return fail(INVALID_ARGUMENT, "Only one of adjoint_%c and transpose_%c may be true.", adjoint_a && a ? 'a' : 'b',
                adjoint_a && a ? 'a' : 'b');
  *out = (struct sides){a || adjoint_a, b || adjoint_b, adjoint_a, adjoint_b};
  return OK;
}

/* A new reference of the matrix, turned where that is wanted. */
static status turned(struct csr *m, bool transpose, bool conjugate, struct csr **out) {
  if (transpose)
    return csr_transpose(m, conjugate, out);
  *out = (struct csr *)object_retain(&m->object);
  return OK;
}

status host_csr_sparse_matmul(struct host_call *call) {
  struct csr *in[2], *a = NULL, *b = NULL, *product;
  struct sides sides;
  TRY(read_sides(call, &sides));
  for (uint32_t i = 0; i < 2; i++)
    TRY(csr_input(call, i, type_attr(call, "type"), &in[i]));
  status s = turned(in[0], sides.transpose_a, sides.conjugate_a, &a);
  s = s == OK ? turned(in[1], sides.transpose_b, sides.conjugate_b, &b) : s;
  s = s == OK ? csr_multiply(a, b, &product) : s;
  object_release(a ? &a->object : NULL);
  object_release(b ? &b->object : NULL);
  return s == OK ? object_output(call, 0, &product->object) : s;
}

/* sum[k] += factor * b[at + k * stride]: a row of b, or a column. Products of complex numbers are dear, those of real ones are not. */
static void add_row(double complex *sum, double complex factor, const struct tensor *b, int64_t at, int64_t stride, int64_t count,
                    bool conjugate) {
  const float *single = b->data;
  const double *real = b->data;
  for (int64_t k = 0; k < count && b->dtype == DTYPE_FLOAT; k++)
    sum[k] += creal(factor) * single[at + k * stride];
  for (int64_t k = 0; k < count && b->dtype == DTYPE_DOUBLE; k++)
    sum[k] += creal(factor) * real[at + k * stride];
  for (int64_t k = 0; k < count && dtype_is_complex(b->dtype); k++) {
    double complex x = csr_get(b->dtype, b->data, at + k * stride);
    sum[k] += factor * (conjugate ? conj(x) : x);
  }
}

/* out[rows, cols] of one matrix of the batch */
static void multiply_dense(const struct csr *a, int64_t batch, const struct tensor *b, const struct sides *sides, int64_t cols,
                           double complex *out) {
  int rank = b->shape.rank;
  int64_t b_rows = b->shape.dims[rank - 2], b_cols = b->shape.dims[rank - 1], base = batch * b_rows * b_cols;
  for (int64_t r = 0; r < a->rows; r++)
    for (int64_t i = csr_row(a, batch, r); i < csr_row(a, batch, r + 1); i++) {
      double complex factor = csr_get(a->dtype, a->values, i);
      int64_t to = sides->transpose_a ? a->columns[i] : r, inner = sides->transpose_a ? r : a->columns[i];
      add_row(out + to * cols, sides->conjugate_a ? conj(factor) : factor, b, base + (sides->transpose_b ? inner : inner * b_cols),
              sides->transpose_b ? b_cols : 1, cols, sides->conjugate_b);
    }
}

static status check_product(const struct csr *a, const struct tensor *b, const struct sides *sides) {
  int rank = b->shape.rank;
  if (a->dtype != b->dtype)
    return fail(INVALID_ARGUMENT, "Input types don't match.  a.dtype == %s vs. b.dtype == %s", dtype_name(a->dtype), dtype_name(b->dtype));
  if (a->rank != rank)
    return fail(INVALID_ARGUMENT, "Ranks of a and b must match, saw: %d vs. %d.", a->rank, rank);
  if (rank == 3 && a->batch != b->shape.dims[0])
    return fail(INVALID_ARGUMENT, "Batch sizes of a and b must match, saw: %lld vs. %lld.", (long long)a->batch,
                (long long)b->shape.dims[0]);
  if ((sides->transpose_a ? a->rows : a->cols) != b->shape.dims[sides->transpose_b ? rank - 1 : rank - 2])
    return fail(INVALID_ARGUMENT, "Inner product dimensions of A and B do not agree. Shapes are: [%lld,%lld] vs. %s", (long long)a->rows,
                (long long)a->cols, shape_text(&b->shape));
  return OK;
}

status host_csr_matmul(struct host_call *call) {
  const struct tensor *b = &call->inputs[1];
  struct csr *a;
  struct sides sides;
  TRY(read_sides(call, &sides));
  TRY(csr_input(call, 0, DTYPE_INVALID, &a));
  TRY(check_product(a, b, &sides));
  bool turn = host_attr_int(call, "transpose_output", 0), conjugate = host_attr_int(call, "conjugate_output", 0);
  int64_t rows = sides.transpose_a ? a->cols : a->rows, cols = b->shape.dims[b->shape.rank - (sides.transpose_b ? 2 : 1)];
  struct shape shape = {a->rank, {a->batch, rows, cols}};
  shape.dims[a->rank - 2] = turn ? cols : rows;
  shape.dims[a->rank - 1] = turn ? rows : cols;
  TRY(host_make_output(call, 0, a->dtype, &shape));
  double complex *sum = calloc((size_t)(rows * cols) + 1, sizeof *sum);
  if (!sum)
    return fail(RESOURCE_EXHAUSTED, "no memory for a product of %lld by %lld", (long long)rows, (long long)cols);
  for (int64_t batch = 0; batch < a->batch; batch++) {
    memset(sum, 0, sizeof *sum * (size_t)(rows * cols));
    multiply_dense(a, batch, b, &sides, cols, sum);
    for (int64_t i = 0; i < rows * cols; i++) {
      int64_t to = turn ? i % cols * rows + i / cols : i;
      csr_put(a->dtype, call->outputs[0]->data, batch * rows * cols + to, conjugate ? conj(sum[i]) : sum[i]);
    }
  }
  free(sum);
  return OK;
}

status host_csr_cholesky(struct host_call *call) {
  const struct tensor *permutation = &call->inputs[1];
  struct csr *m, *factor;
  TRY(csr_input(call, 0, type_attr(call, "type"), &m));
  if (m->rows != m->cols)
    return fail(INVALID_ARGUMENT, "sparse matrix must be square; got: %lld != %lld", (long long)m->rows, (long long)m->cols);
  if (permutation->shape.rank + 1 != m->rank)
    return fail(INVALID_ARGUMENT, "sparse matrix must have the same rank as permutation; got: %d != %d + 1.", m->rank,
                permutation->shape.rank);
  if (permutation->shape.dims[m->rank - 2] != m->rows || permutation->count != m->batch * m->rows)
    return fail(INVALID_ARGUMENT,
                "permutation must have the same number of elements in each batch as the number of rows in sparse matrix; "
                "got: %s and %lld rows",
                shape_text(&permutation->shape), (long long)m->rows);
  TRY(csr_cholesky(m, permutation->data, &factor));
  return object_output(call, 0, &factor->object);
}
