/* sparse.h: what builders of ops on sparse tensors share: indices [n, rank], values [n], a shape [rank]. Private to ir/ops. */
#ifndef TFC_IR_OPS_SPARSE_SPARSE_H
#define TFC_IR_OPS_SPARSE_SPARSE_H

#include "ir/ops/arrange.h"

struct sparse {
  value_id indices, values, shape; /* values: NO_VALUE when the op has none */
  int rank;
  dim count;            /* of the entries */
  dim dims[LIMIT_RANK]; /* the shape, where sparse_dims was called */
};

/* Reads and checks three inputs; values may be UINT32_MAX. */
status sparse_input(struct op_call *c, uint32_t indices, uint32_t values, uint32_t shape, struct sparse *out);
status sparse_dims(struct op_call *c, struct sparse *s, const char *what);
/* Checks that the dims, which have been read, are those of some tensor: their product is an i64, else the step fails with `code`. */
status sparse_check_size(struct op_call *c, const struct sparse *s, status code);
/* Whether it is: a bool. */
expr_id kb_sparse_has_size(struct kb *kb, const struct sparse *s);
/* The index of entry `row` in locals. */
void kb_sparse_index(struct kb *kb, const struct sparse *s, expr_id row, expr_id *index);
/* The same, checked against the dims. */
void kb_sparse_index_checked(struct kb *kb, const struct sparse *s, expr_id row, expr_id *index);
/* The number of an index in row-major order. */
expr_id kb_sparse_flat(struct kb *kb, const struct sparse *s, const expr_id *index);
/* Rows picks[first .. first + count) of v, which is [n, ...]. */
status op_pick_rows(struct op_call *c, value_id v, value_id picks, dim first, dim count, value_id *out);
/* The first `count` rows of v. */
status op_first_rows(struct op_call *c, value_id v, dim count, value_id *out);
/* Scratch perm[n]: the numbers of keys[0 .. n) (a scratch buffer, which is sorted too) in stable ascending order. */
uint32_t kb_sort_keys(struct kb *kb, uint32_t keys, dim n);

#endif
