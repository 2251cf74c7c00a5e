/* csr_matrix.h: batches of sparse matrices in compressed rows, as objects in variants.
 *
 * Matrix b of the batch has the entries batch_at[b] .. batch_at[b + 1]; its row r those from batch_at[b] + row_at[b * (rows + 1) + r]
 * on. Elements are read and computed as double complex, whatever the dtype (float, double, complex64, complex128). */
#ifndef TFC_RUNTIME_VALUE_CSR_MATRIX_H
#define TFC_RUNTIME_VALUE_CSR_MATRIX_H

#include <complex.h>

#include "runtime/host/object.h"

struct csr {
  struct object object;
  enum dtype dtype;
  int rank; /* 2, or 3 with a batch */
  int64_t batch, rows, cols;
  int32_t *batch_at, *row_at, *columns;
  void *values;
};

/* With room for `entries`; batch_at and row_at are 0. INVALID_ARGUMENT for sizes that int32 cannot count. */
status csr_create(enum dtype dtype, int rank, int64_t batch, int64_t rows, int64_t cols, int64_t entries, struct csr **out);
/* The matrix that input i holds. `dtype`: what the op wants; DTYPE_INVALID: any. */
status csr_input(const struct host_call *call, uint32_t i, enum dtype dtype, struct csr **out);

static inline int64_t csr_count(const struct csr *m) { return m->batch_at[m->batch]; }
/* The first entry of a row; that of row + 1 is its end. */
static inline int64_t csr_row(const struct csr *m, int64_t b, int64_t row) { return m->batch_at[b] + m->row_at[b * (m->rows + 1) + row]; }

static inline double complex csr_get(enum dtype dtype, const void *values, int64_t i) {
  switch (dtype) {
  case DTYPE_FLOAT: return ((const float *)values)[i];
  case DTYPE_DOUBLE: return ((const double *)values)[i];
  case DTYPE_COMPLEX64: return ((const float complex *)values)[i];
  default: return ((const double complex *)values)[i];
  }
}

static inline void csr_put(enum dtype dtype, void *values, int64_t i, double complex value) {
  switch (dtype) {
  case DTYPE_FLOAT: ((float *)values)[i] = (float)creal(value); return;
  case DTYPE_DOUBLE: ((double *)values)[i] = creal(value); return;
  case DTYPE_COMPLEX64: ((float complex *)values)[i] = (float complex)value; return;
  default: ((double complex *)values)[i] = value; return;
  }
}

/* New matrices. */
status csr_transpose(const struct csr *m, bool conjugate, struct csr **out);
/* a b, of the same rank; either may be a batch of one, for the whole batch. INVALID_ARGUMENT when sizes do not fit. */
status csr_multiply(const struct csr *a, const struct csr *b, struct csr **out);
/* Lower L with L L^H = P A P^T, for row p of the result taken from row permutation[p]; A is read below the diagonal. */
status csr_cholesky(const struct csr *m, const int32_t *permutation, struct csr **out);

#endif
