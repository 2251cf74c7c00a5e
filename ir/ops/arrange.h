/* arrange.h: what the builders of rearrangements, gathers and scatters share. Private to ir/ops.
 *
 * Arguments such as begin, paddings or multiples may be known while compiling, known as symbolic sizes, or computed by the
 * step: kb_element gives any of them as an expression. What must hold of them is said in a guard: a kernel of checks that
 * is evaluated while compiling where that is possible, and otherwise runs before the work. */
#ifndef TFC_IR_OPS_ARRANGE_H
#define TFC_IR_OPS_ARRANGE_H

#include "ir/lower/lower.h"
#include "ir/ops/op_rows.h"

/* Element i (row-major) of a small integer value of constant dims, as an i64 expression. */
expr_id kb_element(struct kb *kb, value_id v, int i);
/* The element i when it is a constant: true. */
bool op_known_int(struct op_call *c, value_id v, int i, int64_t *out);
/* Element i of the shape, or of what else the value holds; checked to be constant in number: INVALID_ARGUMENT otherwise. */
status op_vector_length(struct op_call *c, value_id v, const char *what, int *out);
/* *v is a vector of so many elements, where that is not known yet from now on: the step checks it. */
status op_vector_of(struct op_call *c, value_id *v, int count, const char *what);

/* A kernel of checks only: begin, kb_check ..., finish. */
void guard_begin(struct kb *guard, struct op_call *c);
status guard_finish(struct kb *guard);
/* kb_finish, after the guards. */
status kb_finish_guarded(struct kb *kb);
/* a <= b, else INVALID_ARGUMENT with the text (up to two %d: a and b). */
status op_require_le(struct op_call *c, dim a, dim b, const char *text);

/* Zero, false or the empty string; of the dtype of a buffer. */
struct element kb_zero(struct kb *kb, enum dtype dtype);
/* The largest or smallest finite value (integers: the limits). */
struct element kb_limit(struct kb *kb, enum dtype dtype, bool highest);
/* out[...] = value for all places of a buffer with these dims. */
void kb_fill(struct kb *kb, uint32_t buffer, int rank, const dim *dims, struct element value);
/* Output 0 is zeros, after the guards. */
status op_zeros(struct op_call *c, int rank, const dim *dims);
expr_id kb_eq(struct kb *kb, expr_id a, expr_id b);
expr_id kb_ne(struct kb *kb, expr_id a, expr_id b);
expr_id kb_le(struct kb *kb, expr_id a, expr_id b);
expr_id kb_or(struct kb *kb, expr_id a, expr_id b);
/* Or there is nothing: a size is 0. */
expr_id kb_or_empty(struct kb *kb, expr_id holds, int rank, const dim *dims);
expr_id kb_select(struct kb *kb, expr_id condition, expr_id a, expr_id b);
/* 0 <= a < count */
expr_id kb_in_range(struct kb *kb, expr_id a, expr_id count);

/* The elements of an i64 vector that a kernel computes, as dims: known, symbolic, or bound by the step. */
status op_bound_dims(struct op_call *c, value_id v, int count, dim *out);
/* A shape argument: a vector of sizes, checked not to be negative. */
status op_shape_dims(struct op_call *c, value_id v, const char *what, int *rank, dim *dims);
/* The same of a vector that must have `count` elements, also where its length is not known while compiling. */
status op_sizes(struct op_call *c, value_id v, const char *what, int count, dim *dims);
/* An axis input or attribute made non-negative; TensorFlow's text. */
status op_known_axis(struct op_call *c, value_id v, const char *what, int rank, int *out);
dim op_add(struct op_call *c, dim a, dim b);
dim op_mul(struct op_call *c, dim a, dim b);

/* acc combined with x, any way but those of segments. */
struct element kb_combine(struct kb *kb, enum combine how, struct element acc, struct element x);
/* The same for MIN and MAX of rows in order: of two that NaN makes incomparable the later one stays, so that what follows
 * a NaN is the result; TensorFlow's reductions of segments are like that. */
struct element kb_combine_last(struct kb *kb, enum combine how, struct element acc, struct element x);
/* What is done with an index that is out of range. */
enum bad_index { BAD_INDEX_FAILS, BAD_INDEX_IS_DROPPED };
status op_bad_index(struct op_call *c, enum bad_index *out); /* the attribute bad_indices_policy */
/* The dims of a variable; those it does not fix are read. */
status op_updated_dims(struct op_call *c, uint32_t input, uint32_t var, int *rank, dim *dims);
/* Output 0 of a ref form of an update is the variable after it. */
void op_set_ref_output(struct op_call *c, uint32_t var);

/* A slice of every dimension of a value: from start, length places, stride apart. */
struct sliced {
  int rank;                   /* of what is sliced */
  value_id start[LIMIT_RANK]; /* an i64 scalar; NO_VALUE: 0 */
  int64_t stride[LIMIT_RANK]; /* 0: known when the step runs: element stride_at of `strides` */
  int stride_at[LIMIT_RANK];
  value_id strides;
  dim lengths[LIMIT_RANK];
  int axis[LIMIT_RANK]; /* where the dimension is in out_dims; -1: it is taken out (length 1) */
  int out_rank;
  dim out_dims[LIMIT_RANK];
};
/* As TensorFlow's StridedSlice writes it: inputs begin, end, strides from number `first`, and the masks. */
status op_strided(struct op_call *c, uint32_t first, int rank, const dim *dims, struct sliced *out);
/* The index into the sliced value for an index of its slice (out_rank places). */
void kb_sliced_index(struct kb *kb, const struct sliced *s, const expr_id *at, expr_id *index);

#endif
