/* ops_pool_average.c: the gradient of averages over windows.
 *
 * Of windows that do not overlap an element takes the share of the only one that may cover it. Of those one element apart it gathers them,
 * from shares with zeros around them, so that no sum tests for a border. Others share out what they have, one behind the other: elements
 * would look for one or two of them in a loop each. */
#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/nn/conv.h"
#include "ir/ops/nn/pool.h"

/* What each element of a window gets of its output's gradient, as sums are made. */
static status window_shares(struct op_call *c, const struct pool *p, value_id gradient, value_id *out) {
  struct kb kb;
  enum dtype sum = sum_dtype(op_value(c, gradient)->dtype);
  kb_begin(&kb, c, sum);
  uint32_t g = kb_in(&kb, gradient), o = kb_out(&kb, sum, p->rank, p->out);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, p->rank, p->out, index);
  struct element count = real_element(pool_count(&kb, p, index, sum));
  kb_store(&kb, o, index, f_binary(&kb.f, SCALAR_DIV, load_as(&kb, sum, g, index), count));
  kb_close(&kb, p->rank);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* Windows that do not overlap: the only one that may cover an element, and whether it does. */
static expr_id only_window(struct kb *kb, const struct pool *p, const expr_id *index, expr_id *at) {
  expr_id exists = expr_int(kb->k, DTYPE_BOOL, 1);
  bool covers = pool_covers(kb->c, p);
  for (int i = 0; i < p->rank; i++) {
    const struct window_axis *a = &p->axes[i];
    at[i] = index[i];
    if (!p->slides[i])
      continue;
    expr_id place = kb_add(kb, index[i], kb_dim(kb, a->pad)), stride = kb_dim(kb, a->stride);
    at[i] = kb_div(kb, place, stride);
    if (covers)
      continue;
    exists = kb_and(kb, exists, kb_lt(kb, kb_mod(kb, place, stride), kb_dim(kb, a->size)));
    exists = kb_and(kb, exists, kb_lt(kb, at[i], kb_dim(kb, p->out[i])));
    at[i] = kb_clamp(kb, at[i], kb_dim(kb, p->out[i]));
  }
  return exists;
}

/* Whether all windows are one element apart, by sizes and padding that are known: then zeros around the shares do for those that lack. */
static bool slides_by_one(struct op_call *c, const struct pool *p) {
  for (int i = 0; i < p->rank; i++) {
    int64_t size = p->slides[i] ? op_dim_value(c, p->axes[i].size) : 1, pad = p->slides[i] ? op_dim_value(c, p->axes[i].pad) : 0;
    if (p->slides[i] && (op_dim_value(c, p->axes[i].stride) != 1 || size < 1 || pad < 0 || pad >= size))
      return false;
  }
  return true;
}
static status add_lacking(struct op_call *c, const struct pool *p, value_id *shares) {
  dim before[LIMIT_RANK], to[LIMIT_RANK];
  for (int i = 0; i < p->rank; i++) {
    int64_t more = p->slides[i] ? op_dim_value(c, p->axes[i].size) - 1 : 0;
    before[i] = op_dim(c, p->slides[i] ? more - op_dim_value(c, p->axes[i].pad) : 0);
    to[i] = dim_add(op_dims(c), p->in[i], op_dim(c, more));
  }
  return conv_pad(c, *shares, before, to, shares);
}

/* Opens loops over a window whose shares have zeros for those that there are not; gives how many. */
static int padded_loops(struct kb *kb, const struct pool *p, const expr_id *index, expr_id *at) {
  int open = 0;
  for (int i = 0; i < p->rank; i++) {
    at[i] = index[i];
    if (!p->slides[i])
      continue;
    expr_id k = kb_for_dim(kb, LOOP_RED, p->axes[i].size);
    at[i] = kb_sub(kb, kb_add(kb, index[i], kb_int(kb, op_dim_value(kb->c, p->axes[i].size) - 1)), k);
    open++;
  }
  return open;
}

static status take_shares(struct op_call *c, const struct pool *p, value_id gradient, enum dtype dtype, value_id *out) {
  value_id shares;
  TRY(window_shares(c, p, gradient, &shares));
  if (!p->disjoint)
    TRY(add_lacking(c, p, &shares));
  struct kb kb;
  kb_begin(&kb, c, op_value(c, shares)->dtype);
  uint32_t s = kb_in(&kb, shares), o = kb_out(&kb, dtype, p->rank, p->in);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, p->rank, p->in, index);
  if (p->disjoint) {
    expr_id exists = only_window(&kb, p, index, at);
    store_as(&kb, o, index, f_select(&kb.f, real_element(exists), kb_load(&kb, s, at), f_const(&kb.f, 0)));
  } else {
    struct accumulator acc = acc_zero(&kb, op_value(c, shares)->dtype);
    int open = padded_loops(&kb, p, index, at);
    acc_add(&kb, &acc, kb_load(&kb, s, at));
    kb_close(&kb, open);
    store_as(&kb, o, index, acc_get(&kb, &acc));
  }
  kb_close(&kb, p->rank);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}
static status share_out(struct op_call *c, const struct pool *p, value_id gradient, enum dtype dtype, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, sum_dtype(dtype));
  uint32_t g = kb_in(&kb, gradient), o = kb_out(&kb, sum_dtype(dtype), p->rank, p->in);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK], inside;
  pool_fill_zero(&kb, p, o);
  for (int i = 0; i < p->rank; i++)
    index[i] = kb_for_dim(&kb, p->slides[i] ? LOOP_SEQ : LOOP_PAR, p->out[i]);
  struct element count = real_element(pool_count(&kb, p, index, sum_dtype(dtype)));
  struct element quotient = f_binary(&kb.f, SCALAR_DIV, load_as(&kb, sum_dtype(dtype), g, index), count);
  struct element share = real_element(kb_get(&kb, kb_local(&kb, quotient.re)));
  int open = pool_window_loops(&kb, p, LOOP_SEQ, index, at, NULL, &inside);
  share = f_select(&kb.f, real_element(inside), share, f_const(&kb.f, 0));
  kb_store(&kb, o, at, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, o, at), share));
  kb_close(&kb, open + p->rank);
  value_id sums = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_cast(c, sums, dtype, out);
}

/* orig_input_shape, grad */
status build_avg_pool_grad(struct op_call *c) {
  value_id shape, gradient, out;
  struct pool p = {0};
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 0, &shape));
  TRY(op_input(c, 1, &gradient));
  int rank = op_value(c, gradient)->rank;
  TRY(op_sizes(c, shape, "orig_input_shape", rank, dims));
  TRY(pool_begin(c, rank, dims, UINT32_MAX, &p));
  TRY(pool_check(c, &p, gradient, true, "grad"));
  bool takes = p.disjoint || slides_by_one(c, &p);
  TRY((takes ? take_shares : share_out)(c, &p, gradient, op_value(c, gradient)->dtype, &out));
  op_set_output(c, 0, out);
  return OK;
}
