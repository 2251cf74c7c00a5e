/* ops_reshape.c: the same elements under another shape. One size may be -1: what is missing. Where the shape has a 0 beside it, TensorFlow
 * divides the input's sizes that are not 0, so that [0,3] becomes [3,0] for [-1,0]. */
#include "ir/lower/lower.h"
#include "ir/ops/arrange.h"

/* The product of the sizes that are not 0. */
static dim filled_count(struct op_call *c, const struct flow_value *x) {
  dim n = op_dim(c, 1);
  for (int i = 0; i < x->rank; i++)
    n = op_mul(c, n, dim_max(op_dims(c), x->dims[i], op_dim(c, 1)));
  return n;
}

/* What a kernel finds out of a shape. */
struct shape_facts {
  uint32_t product, holes, zeros; /* locals: the product of the sizes that are not 0, how many are -1, how many are 0 */
};

static struct shape_facts read_shape(struct kb *kb, uint32_t shape, dim length) {
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0), none = kb_int(kb, -1);
  struct shape_facts s = {kb_local(kb, one), kb_local(kb, zero), kb_local(kb, zero)};
  expr_id i = kb_for_dim(kb, LOOP_SEQ, length), d = kb_index(kb, kb_load(kb, shape, &i));
  expr_id is_hole = kb_eq(kb, d, none), is_zero = kb_eq(kb, d, zero);
  kb_check(kb, kb_le(kb, none, d), INVALID_ARGUMENT, "Size %d must be non-negative, not %d", i, d);
  kb_set(kb, s.product, kb_mul(kb, kb_get(kb, s.product), kb_select(kb, kb_or(kb, is_hole, is_zero), one, d)));
  kb_set(kb, s.holes, kb_add(kb, kb_get(kb, s.holes), expr_cast(kb->k, DTYPE_INT64, is_hole)));
  kb_set(kb, s.zeros, kb_add(kb, kb_get(kb, s.zeros), expr_cast(kb->k, DTYPE_INT64, is_zero)));
  kb_close(kb, 1);
  return s;
}

/* A shape of which elements are unknown while compiling: a kernel puts the missing size in the place of -1, checks that the
 * counts agree, and the result is bound. */
static status resolve_at_runtime(struct op_call *c, value_id shape, const struct flow_value *x, value_id *out) {
  struct flow_value v = *op_value(c, shape);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t a = kb_in(&kb, shape), o = kb_out(&kb, DTYPE_INT64, 1, v.dims);
  struct shape_facts s = read_shape(&kb, a, v.dims[0]);
  expr_id total = kb_dim(&kb, op_count(c, x->rank, x->dims)), product = kb_get(&kb, s.product), one = kb_int(&kb, 1), zero = kb_int(&kb, 0);
  expr_id some_zero = kb_lt(&kb, zero, kb_get(&kb, s.zeros)), has_hole = kb_eq(&kb, kb_get(&kb, s.holes), one);
  expr_id divisor = expr_binary(kb.k, SCALAR_MAX, product, one); /* sizes that overflow may multiply to 0 */
  expr_id missing = kb_div(&kb, kb_select(&kb, some_zero, kb_dim(&kb, filled_count(c, x)), total), divisor);
  expr_id have = kb_select(&kb, some_zero, zero, kb_select(&kb, has_hole, kb_mul(&kb, product, missing), product));
  kb_check(&kb, kb_le(&kb, kb_get(&kb, s.holes), one), INVALID_ARGUMENT, "Only one input size may be -1, not %d", kb_get(&kb, s.holes),
           NO_EXPR);
  kb_check(&kb, kb_eq(&kb, have, total), INVALID_ARGUMENT, "Input to reshape is a tensor with %d values, but the requested shape has %d",
           total, kb_select(&kb, some_zero, zero, product));
  missing = kb_get(&kb, kb_local(&kb, missing));
  expr_id i = kb_for_dim(&kb, LOOP_PAR, v.dims[0]), d = kb_index(&kb, kb_load(&kb, a, &i));
  kb_store(&kb, o, &i, real_element(kb_select(&kb, kb_eq(&kb, d, kb_int(&kb, -1)), missing, d)));
  kb_close(&kb, 1);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* What is known of a shape. */
struct wanted {
  dim *sizes;      /* NO_DIM: not known */
  int rank, hole;  /* hole: the place of -1; -1: none */
  bool late, zero; /* some size is not known; some is known to be 0 */
  dim product;     /* of those that are known and not 0 */
};

static status read_wanted(struct op_call *c, value_id shape, struct wanted *w) {
  int64_t value;
  *w = (struct wanted){.hole = -1, .product = op_dim(c, 1)};
  TRY(op_known_elements(c, shape, &w->sizes, &w->rank));
  if (w->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", w->rank);
  for (int i = 0; i < w->rank; i++) {
    bool known = w->sizes[i] != NO_DIM && dim_is_const(op_dims(c), w->sizes[i], &value);
    if (w->sizes[i] == NO_DIM)
      w->late = true;
    else if (known && value < -1)
      return fail(INVALID_ARGUMENT, "Size %d must be non-negative, not %lld", i, (long long)value);
    else if (known && value == -1 && w->hole >= 0)
      return fail(INVALID_ARGUMENT, "Only one input size may be -1, not both %d and %d", w->hole, i);
    else if (known && value == -1)
      w->hole = i;
    else if (known && value == 0)
      w->zero = true;
    else
      w->product = op_mul(c, w->product, w->sizes[i]);
  }
  return OK;
}

/* Sizes that only the step knows: they may well be 1 where another size is wanted. */
static status late_dims(struct op_call *c, const struct flow_value *x, value_id shape, const struct wanted *w, dim *dims) {
  value_id resolved;
  dim *bound;
  int rank;
  TRY(resolve_at_runtime(c, shape, x, &resolved));
  TRY(op_elements(c, resolved, &bound, &rank));
  for (int i = 0; i < rank; i++) { /* what is known stays better known than a symbol */
    dims[i] = w->sizes[i] != NO_DIM && i != w->hole ? w->sizes[i] : bound[i];
    op_note_given(c, dims[i]);
  }
  return OK;
}

static status check_counts(struct op_call *c, dim have, dim wanted) {
  if (dim_equal(op_dims(c), have, wanted) == 0)
    return fail(INVALID_ARGUMENT, "Input to reshape is a tensor with %s values, but the requested shape has %s", dim_text(op_dims(c), have),
                dim_text(op_dims(c), wanted));
  return op_equal_dims(c, have, wanted, "Input to reshape and the requested shape");
}

static status reshape_dims(struct op_call *c, value_id x, value_id shape, dim *dims, int *rank) {
  struct flow_value v = *op_value(c, x);
  struct wanted w;
  TRY(read_wanted(c, shape, &w));
  *rank = w.rank;
  if (w.late)
    return late_dims(c, &v, shape, &w, dims);
  dim count = op_count(c, v.rank, v.dims), none = op_dim(c, 0), missing = op_dim(c, 1);
  for (int i = 0; i < w.rank; i++)
    dims[i] = w.sizes[i];
  if (w.hole >= 0) {
    missing = dim_floordiv(op_dims(c), w.zero ? filled_count(c, &v) : count, w.product);
    dims[w.hole] = missing;
  }
  return check_counts(c, count, w.zero ? none : op_mul(c, w.product, missing));
}

status build_reshape(struct op_call *c) {
  value_id x, shape;
  TRY(op_input(c, 0, &x));
  TRY(op_input(c, 1, &shape));
  dim dims[LIMIT_RANK];
  int rank;
  dim one = op_dim(c, 1);
  if (op_value(c, shape)->rank == 0) /* a size alone is taken, too */
    shape = op_alias(c, shape, op_value(c, shape)->dtype, 1, &one);
  if (op_value(c, shape)->rank != 1)
    return fail(INVALID_ARGUMENT, "sizes input must be 1-D, not %s", op_shape_text(c, op_value(c, shape)->rank, op_value(c, shape)->dims));
  TRY(reshape_dims(c, x, shape, dims, &rank));
  op_set_output(c, 0, op_alias(c, x, op_value(c, x)->dtype, rank, dims));
  return OK;
}
