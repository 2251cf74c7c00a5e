/* csr_matrix.c: compressed rows: transposing by counting, products row by row, and an up-looking Cholesky factorization
 * (T. Davis, Direct Methods for Sparse Linear Systems, 2006, chapter 4). */
#include "runtime/value/csr_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void csr_destroy(struct object *object) {
  struct csr *m = (struct csr *)object;
  free(m->batch_at);
  free(m->row_at);
  free(m->columns);
  free(m->values);
  free(m);
}
static const struct object_kind csr_kind = {"CSRSparseMatrix", csr_destroy, NULL, NULL, NULL};

static status out_of_memory(void) { return fail(RESOURCE_EXHAUSTED, "no memory for a sparse matrix"); }

status csr_create(enum dtype dtype, int rank, int64_t batch, int64_t rows, int64_t cols, int64_t entries, struct csr **out) {
  if (batch < 0 || rows < 0 || cols < 0 || batch >= INT32_MAX || rows >= INT32_MAX || cols >= INT32_MAX || entries > INT32_MAX ||
      (rows + 1) * batch > INT32_MAX)
    return fail(INVALID_ARGUMENT, "a batch of %lld sparse matrices of %lld by %lld: their indices must be below Int32Max", (long long)batch,
                (long long)rows, (long long)cols);
  struct csr *m = calloc(1, sizeof *m);
  if (!m)
    return out_of_memory();
  object_init(&m->object, &csr_kind);
  m->dtype = dtype;
  m->rank = rank;
  m->batch = batch;
  m->rows = rows;
  m->cols = cols;
  m->batch_at = calloc((size_t)batch + 1, sizeof *m->batch_at);
  m->row_at = calloc((size_t)((rows + 1) * batch) + 1, sizeof *m->row_at);
  m->columns = calloc((size_t)entries + 1, sizeof *m->columns);
  m->values = calloc((size_t)entries + 1, dtype_size(dtype));
  if (!m->batch_at || !m->row_at || !m->columns || !m->values) {
    object_release(&m->object);
    return out_of_memory();
  }
  *out = m;
  return OK;
}

status csr_input(const struct host_call *call, uint32_t i, enum dtype dtype, struct csr **out) {
  struct object *object;
  TRY(object_input(call, i, &csr_kind, &object));
  *out = (struct csr *)object;
  if (dtype != DTYPE_INVALID && (*out)->dtype != dtype)
    return fail(INVALID_ARGUMENT, "Asked for a CSRSparseMatrix of type %s but saw dtype: %s", dtype_name(dtype), dtype_name((*out)->dtype));
  return OK;
}

/* ---- transposing ---- */

status csr_transpose(const struct csr *m, bool conjugate, struct csr **out) {
  struct csr *t;
  TRY(csr_create(m->dtype, m->rank, m->batch, m->cols, m->rows, csr_count(m), &t));
  memcpy(t->batch_at, m->batch_at, sizeof *t->batch_at * (size_t)(m->batch + 1));
  for (int64_t b = 0; b < m->batch; b++) {
    int32_t *at = t->row_at + b * (t->rows + 1);
    for (int64_t i = m->batch_at[b]; i < m->batch_at[b + 1]; i++)
      at[m->columns[i] + 1]++;
    for (int64_t r = 0; r < t->rows; r++)
      at[r + 1] += at[r];
    for (int64_t r = 0; r < m->rows; r++)
      for (int64_t i = csr_row(m, b, r); i < csr_row(m, b, r + 1); i++) {
        int64_t to = t->batch_at[b] + at[m->columns[i]]++;
        double complex value = csr_get(m->dtype, m->values, i);
        t->columns[to] = (int32_t)r;
        csr_put(t->dtype, t->values, to, conjugate ? conj(value) : value);
      }
    for (int64_t r = t->rows; r > 0; r--) /* each has moved on to the next one's beginning */
      at[r] = at[r - 1];
    at[0] = 0;
  }
  *out = t;
  return OK;
}

/* ---- products ---- */

struct product {
  const struct csr *a, *b;
  struct csr *out;
  int64_t used, room;
  double complex *sum; /* of a row, by column */
  int64_t *seen;       /* the row that last had the column, plus one */
  int32_t *found;      /* columns of the row */
};

static int compare_columns(const void *x, const void *y) { return *(const int32_t *)x - *(const int32_t *)y; }

static status make_room(struct product *p, int64_t count) {
  if (p->used + count <= p->room)
    return OK;
  p->room = (p->used + count) * 2;
  if (p->room > INT32_MAX)
    return fail(RESOURCE_EXHAUSTED, "a sparse product of %lld entries", (long long)p->room);
  int32_t *columns = realloc(p->out->columns, (size_t)(p->room + 1) * sizeof *columns);
  p->out->columns = columns ? columns : p->out->columns;
  void *values = columns ? realloc(p->out->values, (size_t)(p->room + 1) * dtype_size(p->out->dtype)) : NULL;
  p->out->values = values ? values : p->out->values;
  return values ? OK : out_of_memory();
}

static status multiply_row(struct product *p, int64_t a_batch, int64_t b_batch, int64_t row, int64_t number) {
  int64_t count = 0;
  bool is_complex = dtype_is_complex(p->out->dtype);
  for (int64_t i = csr_row(p->a, a_batch, row); i < csr_row(p->a, a_batch, row + 1); i++) {
    double complex factor = csr_get(p->a->dtype, p->a->values, i);
    int64_t inner = p->a->columns[i];
    for (int64_t k = csr_row(p->b, b_batch, inner); k < csr_row(p->b, b_batch, inner + 1); k++) {
      int32_t column = p->b->columns[k];
      if (p->seen[column] != number) {
        p->seen[column] = number;
        p->sum[column] = 0;
        p->found[count++] = column;
      }
      double complex x = csr_get(p->b->dtype, p->b->values, k);
      p->sum[column] += is_complex ? factor * x : creal(factor) * creal(x); /* the latter is much cheaper */
    }
  }
  if (count)
    qsort(p->found, (size_t)count, sizeof *p->found, compare_columns);
  TRY(make_room(p, count));
  for (int64_t k = 0; k < count; k++, p->used++) {
    p->out->columns[p->used] = p->found[k];
    csr_put(p->out->dtype, p->out->values, p->used, p->sum[p->found[k]]);
  }
  return OK;
}

static status multiply_all(struct product *p) {
  struct csr *out = p->out;
  for (int64_t b = 0, number = 1; b < out->batch; b++) {
    out->batch_at[b] = (int32_t)p->used;
    for (int64_t r = 0; r < out->rows; r++, number++) {
      TRY(multiply_row(p, p->a->batch == 1 ? 0 : b, p->b->batch == 1 ? 0 : b, r, number));
      out->row_at[b * (out->rows + 1) + r + 1] = (int32_t)(p->used - out->batch_at[b]);
    }
    out->batch_at[b + 1] = (int32_t)p->used;
  }
  return OK;
}

status csr_multiply(const struct csr *a, const struct csr *b, struct csr **out) {
  if (a->rank != b->rank)
    return fail(INVALID_ARGUMENT, "Ranks of A and B must match, saw: %d vs. %d.", a->rank, b->rank);
  if (a->batch != b->batch && a->batch != 1 && b->batch != 1)
    return fail(INVALID_ARGUMENT, "Batch sizes of A and B are not compatible.  Batch sizes are: %lld vs. %lld", (long long)a->batch,
                (long long)b->batch);
  if (a->cols != b->rows)
    return fail(INVALID_ARGUMENT, "Inner product dimensions of A and B do not agree.  Shapes are: [%lld,%lld] vs. [%lld,%lld]",
                (long long)a->rows, (long long)a->cols, (long long)b->rows, (long long)b->cols);
  struct product p = {.a = a, .b = b};
  int64_t batch = a->batch > b->batch ? a->batch : b->batch;
  TRY(csr_create(a->dtype, a->rank, batch, a->rows, b->cols, 0, &p.out));
  p.sum = calloc((size_t)b->cols + 1, sizeof *p.sum);
  p.seen = calloc((size_t)b->cols + 1, sizeof *p.seen);
  p.found = calloc((size_t)b->cols + 1, sizeof *p.found);
  status s = p.sum && p.seen && p.found ? multiply_all(&p) : out_of_memory();
  free(p.sum);
  free(p.seen);
  free(p.found);
  if (s != OK)
    object_release(&p.out->object);
  else
    *out = p.out;
  return s;
}

/* ---- Cholesky ---- */

struct column {
  int32_t *rows;
  double complex *values;
  int32_t count, room;
};
struct factor {
  const struct csr *m, *turned; /* turned: the adjoint, whose rows are the columns of m */
  struct product rows;          /* the result, as it grows */
  const int32_t *permutation;
  int32_t *inverse;
  struct column *columns; /* of the factor, below the diagonal */
  double *diagonal;
  double complex *x; /* the row being solved */
  bool *there;
};

static status column_push(struct column *c, int32_t row, double complex value) {
  if (c->count == c->room) {
    int32_t room = c->room * 2 + 4;
    int32_t *rows = realloc(c->rows, (size_t)room * sizeof *rows);
    c->rows = rows ? rows : c->rows;
    double complex *values = rows ? realloc(c->values, (size_t)room * sizeof *values) : NULL;
    c->values = values ? values : c->values;
    if (!values)
      return out_of_memory();
    c->room = room;
  }
  c->rows[c->count] = row;
  c->values[c->count++] = value;
  return OK;
}

/* Elements of a row that go into row k of the permuted matrix: those on and before the diagonal (`below`) or behind it. */
static void load_part(struct factor *f, const struct csr *m, bool below, int64_t b, int64_t k) {
  int64_t row = f->permutation[k];
  for (int64_t i = csr_row(m, b, row); i < csr_row(m, b, row + 1); i++) {
    int64_t to = f->inverse[m->columns[i]];
    if (to > k || (m->columns[i] <= row) != below)
      continue;
    f->x[to] = csr_get(m->dtype, m->values, i);
    f->there[to] = true;
  }
}

/* x = row k of the permuted matrix, up to the diagonal: elements above A's diagonal are conjugates of those below. */
static void load_row(struct factor *f, int64_t b, int64_t k) {
  memset(f->x, 0, sizeof *f->x * (size_t)(k + 1));
  memset(f->there, 0, sizeof *f->there * (size_t)(k + 1));
  load_part(f, f->m, true, b, k);
  load_part(f, f->turned, false, b, k);
}

static status put_entry(struct factor *f, int64_t column, double complex value) {
  TRY(make_room(&f->rows, 1));
  f->rows.out->columns[f->rows.used] = (int32_t)column;
  csr_put(f->m->dtype, f->rows.out->values, f->rows.used++, value);
  return OK;
}

static status factor_row(struct factor *f, int64_t b, int64_t k) {
  load_row(f, b, k);
  for (int64_t j = 0; j < k; j++) {
    if (!f->there[j])
      continue;
    double complex l = f->x[j] / f->diagonal[j];
    const struct column *c = &f->columns[j];
    for (int32_t i = 0; i < c->count; i++) {
      f->x[c->rows[i]] -= l * conj(c->values[i]);
      f->there[c->rows[i]] = true;
    }
    f->x[k] -= l * conj(l);
    TRY(column_push(&f->columns[j], (int32_t)k, l));
    TRY(put_entry(f, j, l));
  }
  double d = creal(f->x[k]);
  if (!(d > 0))
    return fail(INVALID_ARGUMENT, "Sparse Cholesky factorization failed for batch index %lld. The input might not be valid.", (long long)b);
  f->diagonal[k] = sqrt(d);
  return put_entry(f, k, f->diagonal[k]);
}

static status factor_batch(struct factor *f, int64_t b, const int32_t *permutation) {
  struct csr *out = f->rows.out;
  int64_t n = f->m->rows;
  f->permutation = permutation;
  memset(f->inverse, 0xff, sizeof *f->inverse * (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    f->columns[i].count = 0;
    if (permutation[i] < 0 || permutation[i] >= n || f->inverse[permutation[i]] >= 0)
      return fail(INVALID_ARGUMENT, "%d at %lld: no permutation of %lld rows", permutation[i], (long long)i, (long long)n);
    f->inverse[permutation[i]] = (int32_t)i;
  }
  out->batch_at[b] = (int32_t)f->rows.used;
  for (int64_t k = 0; k < n; k++) {
    TRY(factor_row(f, b, k));
    out->row_at[b * (n + 1) + k + 1] = (int32_t)(f->rows.used - out->batch_at[b]);
  }
  out->batch_at[b + 1] = (int32_t)f->rows.used;
  return OK;
}

status csr_cholesky(const struct csr *m, const int32_t *permutation, struct csr **out) {
  struct factor f = {.m = m};
  struct csr *turned;
  size_t n = (size_t)m->rows;
  TRY(csr_create(m->dtype, m->rank, m->batch, m->rows, m->cols, 0, &f.rows.out));
  status s = csr_transpose(m, true, &turned);
  if (s != OK) {
    object_release(&f.rows.out->object);
    return s;
  }
  f.turned = turned;
  f.inverse = calloc(n + 1, sizeof *f.inverse);
  f.columns = calloc(n + 1, sizeof *f.columns);
  f.diagonal = calloc(n + 1, sizeof *f.diagonal);
  f.x = calloc(n + 1, sizeof *f.x);
  f.there = calloc(n + 1, sizeof *f.there);
  s = f.inverse && f.columns && f.diagonal && f.x && f.there ? OK : out_of_memory();
  for (int64_t b = 0; b < m->batch && s == OK; b++)
    s = factor_batch(&f, b, permutation + b * m->rows);
  for (size_t i = 0; f.columns && i < n; i++) {
    free(f.columns[i].rows);
    free(f.columns[i].values);
  }
  free(f.columns);
  free(f.inverse);
  free(f.diagonal);
  free(f.x);
  free(f.there);
  object_release(&turned->object);
  if (s != OK)
    object_release(&f.rows.out->object);
  else
    *out = f.rows.out;
  return s;
}
