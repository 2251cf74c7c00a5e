/* ops_pool_average.c: the gradient of averages over windows: each element gathers its shares of the windows that cover it.
 *
 * Shares are divided once, in front. Of windows that do not overlap an element has one; of those one element apart the shares have zeros
 * around them, so that no sum tests for a border. */
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

/* Opens loops over the windows that cover an element; gives how many. is_padded: the shares have zeros for those that there are not. */
static int covering_loops(struct kb *kb, const struct pool *p, bool is_padded, const expr_id *index, expr_id *at, expr_id *exists) {
  int open = 0;
  *exists = expr_int(kb->k, DTYPE_BOOL, 1);
  for (int i = 0; i < p->rank; i++) {
    at[i] = index[i];
    if (!p->slides[i])
      continue;
    expr_id here, k = kb_for_dim(kb, LOOP_RED, p->axes[i].size);
    open++;
    if (is_padded) {
      at[i] = kb_sub(kb, kb_add(kb, index[i], kb_int(kb, op_dim_value(kb->c, p->axes[i].size) - 1)), k);
      continue;
    }
    at[i] = kb_clamp(kb, window_source(kb, &p->axes[i], index[i], k, &here), kb_dim(kb, p->out[i]));
    *exists = kb_and(kb, *exists, here);
  }
  return open;
}

/* orig_input_shape, grad: each input gathers its share of every window that covers it. */
status build_avg_pool_grad(struct op_call *c) {
  value_id shape, gradient, shares;
  struct pool p = {0};
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 0, &shape));
  TRY(op_input(c, 1, &gradient));
  int rank = op_value(c, gradient)->rank;
  TRY(op_sizes(c, shape, "orig_input_shape", rank, dims));
  TRY(pool_begin(c, rank, dims, UINT32_MAX, &p));
  TRY(pool_check(c, &p, gradient, true, "grad"));
  enum dtype dtype = op_value(c, gradient)->dtype, sum = sum_dtype(dtype);
  TRY(window_shares(c, &p, gradient, &shares));
  bool is_padded = !p.disjoint && slides_by_one(c, &p);
  if (is_padded)
    TRY(add_lacking(c, &p, &shares));
  struct kb kb;
  kb_begin(&kb, c, sum);
  uint32_t s = kb_in(&kb, shares), o = kb_out(&kb, dtype, rank, p.in);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK], exists;
  kb_loops(&kb, LOOP_PAR, rank, p.in, index);
  if (p.disjoint) {
    exists = only_window(&kb, &p, index, at);
    store_as(&kb, o, index, f_select(&kb.f, real_element(exists), kb_load(&kb, s, at), f_const(&kb.f, 0)));
  } else {
    struct accumulator acc = acc_zero(&kb, sum);
    int open = covering_loops(&kb, &p, is_padded, index, at, &exists);
    acc_add(&kb, &acc, f_select(&kb.f, real_element(exists), kb_load(&kb, s, at), f_const(&kb.f, 0)));
    kb_close(&kb, open);
    store_as(&kb, o, index, acc_get(&kb, &acc));
  }
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
