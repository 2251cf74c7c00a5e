/* ops_permute.c: elements of one dimension or the dimensions themselves in another order: Transpose, Reverse, Roll,
 * ReverseSequence, InvertPermutation. Each is one nest over the output with an index computation. */
#include <string.h>

#include "ir/ops/arrange.h"

/* ---- Transpose ---- */

/* True when the dimensions that are not 1 keep their order: then the elements do as well. */
static bool keeps_order(struct op_call *c, int rank, const dim *dims, const int64_t *perm) {
  int64_t last = -1;
  for (int i = 0; i < rank; i++) {
    if (op_dim_value(c, dims[perm[i]]) == 1)
      continue;
    if (perm[i] < last)
      return false;
    last = perm[i];
  }
  return true;
}

static status check_permutation(int rank, const int64_t *perm) {
  bool seen[LIMIT_RANK] = {false};
  for (int i = 0; i < rank; i++) {
    if (perm[i] < 0 || perm[i] >= rank)
      return fail(INVALID_ARGUMENT, "%lld is out of range [0 .. %d)", (long long)perm[i], rank);
    seen[perm[i]] = true;
  }
  for (int i = 0; i < rank; i++)
    if (!seen[i])
      return fail(INVALID_ARGUMENT, "%d is missing from the permutation", i);
  return OK;
}

static struct element maybe_conjugate(struct kb *kb, bool conjugate, struct element e) { return conjugate ? f_conj(&kb->f, e) : e; }

static status transpose_known(struct op_call *c, value_id v, const int64_t *perm, bool conjugate) {
  struct flow_value x = *op_value(c, v);
  dim dims[LIMIT_RANK];
  for (int i = 0; i < x.rank; i++)
    dims[i] = x.dims[perm[i]];
  if (keeps_order(c, x.rank, x.dims, perm) && !conjugate) {
    op_set_output(c, 0, op_alias(c, v, x.dtype, x.rank, dims));
    return OK;
  }
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK], index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, at);
  for (int i = 0; i < x.rank; i++)
    index[perm[i]] = at[i];
  kb_store(&kb, out, at, maybe_conjugate(&kb, conjugate, kb_load(&kb, in, index)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}

/* The permutation is computed by the step: so are the dims. */
static status permuted_dims(struct op_call *c, value_id v, value_id perm, dim *dims) {
  struct flow_value x = *op_value(c, v);
  dim length = op_dim(c, x.rank);
  struct kb guard, kb;
  guard_begin(&guard, c);
  for (int i = 0; i < x.rank; i++) {
    expr_id p = kb_element(&guard, perm, i), among = kb_eq(&guard, kb_element(&guard, perm, 0), kb_int(&guard, i));
    kb_check(&guard, kb_in_range(&guard, p, kb_int(&guard, x.rank)), INVALID_ARGUMENT,
             arena_printf(op_arena(c), "%%d is out of range [0 .. %d)", x.rank), p, NO_EXPR);
    for (int j = 1; j < x.rank; j++)
      among = kb_or(&guard, among, kb_eq(&guard, kb_element(&guard, perm, j), kb_int(&guard, i)));
    kb_check(&guard, among, INVALID_ARGUMENT, "%d is missing from the permutation", kb_int(&guard, i), NO_EXPR);
  }
  TRY(guard_finish(&guard));
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t out = kb_out(&kb, DTYPE_INT64, 1, &length);
  for (int i = 0; i < x.rank; i++) {
    expr_id at = kb_int(&kb, i), p = kb_element(&kb, perm, i), n = kb_int(&kb, 0);
    for (int j = 0; j < x.rank; j++)
      n = kb_select(&kb, kb_eq(&kb, p, kb_int(&kb, j)), kb_dim(&kb, x.dims[j]), n);
    kb_store(&kb, out, &at, real_element(n));
  }
  value_id shape = kb_value(&kb, out);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, shape, x.rank, dims);
}

static status transpose_computed(struct op_call *c, value_id v, value_id perm, bool conjugate) {
  struct flow_value x = *op_value(c, v);
  dim dims[LIMIT_RANK];
  TRY(permuted_dims(c, v, perm, dims));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK], index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, at);
  for (int j = 0; j < x.rank; j++) {
    index[j] = kb_int(&kb, 0);
    for (int i = 0; i < x.rank; i++)
      index[j] = kb_select(&kb, kb_eq(&kb, kb_element(&kb, perm, i), kb_int(&kb, j)), at[i], index[j]);
  }
  kb_store(&kb, out, at, maybe_conjugate(&kb, conjugate, kb_load(&kb, in, index)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_transpose(struct op_call *c) {
  value_id v, p;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &p));
  int rank = op_value(c, v)->rank;
  TRY(op_vector_of(c, &p, rank, "perm"));
  bool conjugate = OP_ROW(c, transpose_row)->conjugates && dtype_is_complex(op_value(c, v)->dtype);
  int64_t perm[LIMIT_RANK];
  bool known = true;
  for (int i = 0; i < rank; i++)
    known = known && op_known_int(c, p, i, &perm[i]);
  if (!known)
    return transpose_computed(c, v, p, conjugate);
  TRY(check_permutation(rank, perm));
  return transpose_known(c, v, perm, conjugate);
}

/* ---- Reverse, Roll ---- */

/* out[at] = in[index(at)] with one expression for each dimension, made by `along`. */
typedef expr_id (*along_formula)(struct kb *kb, const value_id *inputs, int rank, int axis, expr_id at, expr_id n);

static status copy_along(struct op_call *c, const value_id *inputs, along_formula along) {
  struct flow_value x = *op_value(c, inputs[0]);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, inputs[0]), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  for (int i = 0; i < x.rank; i++)
    index[i] = along(&kb, inputs, x.rank, i, at[i], kb_dim(&kb, x.dims[i]));
  kb_store(&kb, out, at, kb_load(&kb, in, index));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

static expr_id is_axis(struct kb *kb, value_id axes, int k, int rank, int axis) {
  expr_id a = kb_element(kb, axes, k);
  return kb_or(kb, kb_eq(kb, a, kb_int(kb, axis)), kb_eq(kb, a, kb_int(kb, axis - rank)));
}
static int element_total(struct op_call *c, value_id v) {
  return op_value(c, v)->rank == 0 ? 1 : (int)op_dim_value(c, op_value(c, v)->dims[0]);
}

static expr_id mirrored(struct kb *kb, expr_id at, expr_id n) { return kb_sub(kb, kb_sub(kb, n, kb_int(kb, 1)), at); }

static expr_id reverse_axes(struct kb *kb, const value_id *inputs, int rank, int axis, expr_id at, expr_id n) {
  expr_id any = expr_int(kb->k, DTYPE_BOOL, 0);
  for (int k = 0; k < element_total(kb->c, inputs[1]); k++)
    any = kb_or(kb, any, is_axis(kb, inputs[1], k, rank, axis));
  return kb_select(kb, any, mirrored(kb, at, n), at);
}
static expr_id reverse_flags(struct kb *kb, const value_id *inputs, int rank, int axis, expr_id at, expr_id n) {
  (void)rank;
  expr_id flag = kb_ne(kb, kb_element(kb, inputs[1], axis), kb_int(kb, 0));
  return kb_select(kb, flag, mirrored(kb, at, n), at);
}

static status check_axes(struct op_call *c, value_id axes, int count, int rank, bool once) {
  struct kb guard;
  guard_begin(&guard, c);
  for (int k = 0; k < count; k++) {
    expr_id a = kb_element(&guard, axes, k), shifted = kb_add(&guard, a, kb_int(&guard, rank));
    kb_check(&guard, kb_in_range(&guard, shifted, kb_int(&guard, 2 * rank)), INVALID_ARGUMENT,
             arena_printf(op_arena(c), "'axis'[%%d] = %%d is out of valid range [%d, %d)", -rank, rank), kb_int(&guard, k), a);
    expr_id own = kb_mod(&guard, shifted, kb_int(&guard, rank ? rank : 1));
    for (int j = 0; j < k && once; j++) {
      expr_id other = kb_add(&guard, kb_element(&guard, axes, j), kb_int(&guard, rank));
      kb_check(&guard, kb_ne(&guard, own, kb_mod(&guard, other, kb_int(&guard, rank ? rank : 1))), INVALID_ARGUMENT,
               "axis %d specified more than once.", own, NO_EXPR);
    }
  }
  return guard_finish(&guard);
}

status build_reverse_v2(struct op_call *c) {
  value_id v[2];
  int count;
  TRY(op_input(c, 0, &v[0]));
  TRY(op_input(c, 1, &v[1]));
  if (op_value(c, v[0])->rank == 0) { /* whatever the axes are */
    op_set_output(c, 0, v[0]);
    return OK;
  }
  TRY(op_vector_length(c, v[1], "axis", &count));
  if (count > LIMIT_RANK)
    return fail(INVALID_ARGUMENT, "more axes than dimensions");
  TRY(check_axes(c, v[1], count, op_value(c, v[0])->rank, true));
  return copy_along(c, v, reverse_axes);
}

status build_reverse(struct op_call *c) {
  value_id v[2];
  TRY(op_input(c, 0, &v[0]));
  TRY(op_input(c, 1, &v[1]));
  TRY(op_vector_of(c, &v[1], op_value(c, v[0])->rank, "dims"));
  return copy_along(c, v, reverse_flags);
}

static expr_id roll_axis(struct kb *kb, const value_id *inputs, int rank, int axis, expr_id at, expr_id n) {
  expr_id shift = kb_int(kb, 0);
  bool moved = false;
  for (int k = 0; k < element_total(kb->c, inputs[2]); k++) {
    expr_id here = is_axis(kb, inputs[2], k, rank, axis);
    int64_t known;
    moved = moved || !expr_is_const(kb->k, here, &known) || known;
    shift = kb_add(kb, shift, kb_select(kb, here, kb_element(kb, inputs[1], k), kb_int(kb, 0)));
  }
  return moved ? kb_mod(kb, kb_sub(kb, at, shift), n) : at;
}

status build_roll(struct op_call *c) {
  value_id v[3];
  for (uint32_t i = 0; i < 3; i++)
    TRY(op_input(c, i, &v[i]));
  struct flow_value x = *op_value(c, v[0]), shift = *op_value(c, v[1]), axis = *op_value(c, v[2]);
  if (x.rank < 1)
    return fail(INVALID_ARGUMENT, "input must be 1-D or higher");
  if (shift.rank > 1 || axis.rank > 1 || shift.rank != axis.rank)
    return fail(INVALID_ARGUMENT, "shift and axis must be scalars or vectors of the same size");
  if (shift.rank == 1)
    TRY(op_equal_dims(c, shift.dims[0], axis.dims[0], "shift and axis must have the same size"));
  int64_t count = 1;
  if (axis.rank)
    TRY(op_const_size(c, axis.dims[0], "the length of axis", &count));
  TRY(check_axes(c, v[2], (int)count, x.rank, false));
  return copy_along(c, v, roll_axis);
}

/* ---- ReverseSequence ---- */

/* All of them, also where the input has no elements. */
static status check_lengths(struct op_call *c, value_id lengths, dim most, int64_t seq) {
  struct flow_value l = *op_value(c, lengths);
  struct kb guard;
  guard_begin(&guard, c);
  uint32_t in = kb_in(&guard, lengths);
  expr_id at = kb_for_dim(&guard, LOOP_PAR, l.dims[0]), length = kb_index(&guard, kb_load(&guard, in, &at));
  kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), length), INVALID_ARGUMENT, "seq_lens(%d) < 0", at, NO_EXPR);
  kb_check(&guard, kb_le(&guard, length, kb_dim(&guard, most)), INVALID_ARGUMENT,
           arena_printf(op_arena(c), "seq_lens(%%d) > input.dims(%lld)", (long long)seq), at, NO_EXPR);
  kb_close(&guard, 1);
  return guard_finish(&guard);
}

static void reverse_prefix(struct kb *kb, uint32_t in, uint32_t lengths, uint32_t out, int seq, int batch, const struct flow_value *x) {
  expr_id at[LIMIT_RANK], index[LIMIT_RANK];
  kb_loops(kb, LOOP_PAR, x->rank, x->dims, at);
  expr_id length = kb_index(kb, kb_load(kb, lengths, &at[batch]));
  memcpy(index, at, sizeof at);
  index[seq] = kb_select(kb, kb_lt(kb, at[seq], length), mirrored(kb, at[seq], length), at[seq]);
  kb_store(kb, out, at, kb_load(kb, in, index));
  kb_close(kb, x->rank);
}

status build_reverse_sequence(struct op_call *c) {
  value_id v, lengths;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &lengths));
  struct flow_value x = *op_value(c, v), l = *op_value(c, lengths);
  int64_t seq = node_attr_int(c->node, "seq_dim", 0), batch = node_attr_int(c->node, "batch_dim", 0);
  if (l.rank != 1)
    return fail(INVALID_ARGUMENT, "seq_lens input must be 1-dim, not %d", l.rank);
  if (batch == seq)
    return fail(INVALID_ARGUMENT, "batch_dim == seq_dim == %lld", (long long)seq);
  if (seq < 0 || seq >= x.rank)
    return fail(INVALID_ARGUMENT, "seq_dim must be < input rank ( %lld vs. %d)", (long long)seq, x.rank);
  if (batch < 0 || batch >= x.rank)
    return fail(INVALID_ARGUMENT, "batch_dim must be < input rank ( %lld vs. %d)", (long long)batch, x.rank);
  TRY(op_equal_dims(c, l.dims[0], x.dims[batch], "Length of seq_lens and input.dims(batch_dim)"));
  TRY(check_lengths(c, lengths, x.dims[seq], seq));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), lens = kb_in(&kb, lengths), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  reverse_prefix(&kb, in, lens, out, (int)seq, (int)batch, &x);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- InvertPermutation ---- */

status build_invert_permutation(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank != 1)
    return fail(INVALID_ARGUMENT, "invert_permutation expects a 1D vector.");
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, 1, x.dims);
  kb_fill(&kb, out, 1, x.dims, f_const_as(&kb.f, x.dtype, -1));
  expr_id n = kb_dim(&kb, x.dims[0]), i = kb_for(&kb, LOOP_SEQ, n), d = kb_index(&kb, kb_load(&kb, in, &i));
  kb_check(&kb, kb_in_range(&kb, d, n), INVALID_ARGUMENT, "%d is not between 0 and %d", d, n);
  kb_check(&kb, kb_lt(&kb, kb_index(&kb, kb_load(&kb, out, &d)), kb_int(&kb, 0)), INVALID_ARGUMENT, "%d is duplicated in the input.", d,
           NO_EXPR);
  kb_store(&kb, out, &d, real_element(expr_cast(kb.k, x.dtype, i)));
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}
