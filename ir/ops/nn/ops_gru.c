/* ops_gru.c: a GRU cell (Cho et al. 2014) and its gradient. The reset and update gates are the columns of one matrix. */
#include <string.h>

#include "ir/ops/nn/cell.h"

struct gru {
  dim batch, input, cell, both, rows; /* both: columns of the two gates; rows: of x and h together */
  enum dtype dtype, sum;
  value_id in[6]; /* x, h_prev, w_ru, w_c, b_ru, b_c */
};
enum { X, H_PREV, W_RU, W_C, B_RU, B_C };

static status gru_begin(struct op_call *c, struct gru *g) {
  for (uint32_t i = 0; i < 6; i++)
    TRY(op_input(c, i, &g->in[i]));
  struct flow_value x = *op_value(c, g->in[X]), h = *op_value(c, g->in[H_PREV]);
  if (x.rank != 2 || h.rank != 2)
    return fail(INVALID_ARGUMENT, "Rank of x and h_prev must be 2, got %d and %d", x.rank, h.rank);
  g->batch = x.dims[0];
  g->input = x.dims[1];
  g->cell = h.dims[1];
  g->both = op_mul(c, g->cell, op_dim(c, 2));
  g->rows = op_add(c, g->input, g->cell);
  g->dtype = x.dtype;
  g->sum = sum_dtype(x.dtype);
  dim state[2] = {g->batch, g->cell}, w_ru[2] = {g->rows, g->both}, w_c[2] = {g->rows, g->cell};
  TRY(expect_shape(c, g->in[H_PREV], "h_prev", 2, state));
  TRY(expect_shape(c, g->in[W_RU], "w_ru", 2, w_ru));
  TRY(expect_shape(c, g->in[W_C], "w_c", 2, w_c));
  TRY(expect_shape(c, g->in[B_RU], "b_ru", 1, &g->both));
  return expect_shape(c, g->in[B_C], "b_c", 1, &g->cell);
}

static struct element load_sum(struct kb *kb, const struct gru *g, uint32_t buffer, expr_id i, expr_id j) {
  return f_cast(&kb->f, g->sum, load2(kb, buffer, i, j));
}

/* ([x, h] w + b)[row, j]; reset: NO_BUFFER or what h is multiplied by before. */
#define NO_BUFFER UINT32_MAX
static struct element gate(struct kb *kb, const struct gru *g, int w, int b, uint32_t reset, expr_id row, expr_id j) {
  uint32_t x = kb_in(kb, g->in[X]), h = kb_in(kb, g->in[H_PREV]), weights = kb_in(kb, g->in[w]);
  struct accumulator acc = acc_zero(kb, g->sum);
  expr_id k = kb_for_dim(kb, LOOP_RED, g->input);
  acc_add(kb, &acc, e_mul(kb, load_sum(kb, g, x, row, k), load_sum(kb, g, weights, k, j)));
  kb_close(kb, 1);
  k = kb_for_dim(kb, LOOP_RED, g->cell);
  struct element e = load2(kb, h, row, k);
  if (reset != NO_BUFFER)
    e = e_mul(kb, e, load2(kb, reset, row, k));
  expr_id from = kb_add(kb, kb_dim(kb, g->input), k);
  acc_add(kb, &acc, e_mul(kb, f_cast(&kb->f, g->sum, e), load_sum(kb, g, weights, from, j)));
  kb_close(kb, 1);
  return e_add(kb, f_cast(&kb->f, g->dtype, acc_get(kb, &acc)), kb_load(kb, kb_in(kb, g->in[b]), &j));
}

/* r, u, c, h */
status build_gru(struct op_call *c) {
  struct gru g;
  TRY(gru_begin(c, &g));
  struct kb kb;
  kb_begin(&kb, c, g.dtype);
  dim state[2] = {g.batch, g.cell};
  for (int i = 0; i < 6; i++)
    kb_in(&kb, g.in[i]);
  uint32_t out[4];
  for (int i = 0; i < 4; i++)
    out[i] = kb_out(&kb, g.dtype, 2, state);
  expr_id b, j;
  for (int i = 0; i < 2; i++) {
    b = kb_for_dim(&kb, LOOP_PAR, g.batch);
    j = kb_for_dim(&kb, LOOP_PAR, g.cell);
    expr_id column = i ? kb_add(&kb, kb_dim(&kb, g.cell), j) : j;
    store2(&kb, out[i], b, j, f_sigmoid(&kb.f, gate(&kb, &g, W_RU, B_RU, NO_BUFFER, b, column)));
    kb_close(&kb, 2);
  }
  b = kb_for_dim(&kb, LOOP_PAR, g.batch);
  j = kb_for_dim(&kb, LOOP_PAR, g.cell);
  struct element candidate = f_unary(&kb.f, SCALAR_TANH, gate(&kb, &g, W_C, B_C, out[0], b, j));
  candidate = e_now(&kb, candidate);
  store2(&kb, out[2], b, j, candidate);
  struct element away = e_sub(&kb, load2(&kb, kb_in(&kb, g.in[H_PREV]), b, j), candidate);
  store2(&kb, out[3], b, j, e_add(&kb, e_mul(&kb, load2(&kb, out[1], b, j), away), candidate));
  kb_close(&kb, 2);
  for (uint32_t i = 0; i < 4; i++)
    op_set_output(c, i, kb_value(&kb, out[i]));
  return kb_finish_guarded(&kb);
}

/* (d w transposed)[row, k] over `columns` columns. */
static struct element back_through(struct kb *kb, const struct gru *g, uint32_t d, int w, dim columns, expr_id row, expr_id k) {
  struct accumulator acc = acc_zero(kb, g->sum);
  expr_id j = kb_for_dim(kb, LOOP_RED, columns);
  acc_add(kb, &acc, e_mul(kb, load_sum(kb, g, d, row, j), load_sum(kb, g, kb_in(kb, g->in[w]), k, j)));
  kb_close(kb, 1);
  return f_cast(&kb->f, g->dtype, acc_get(kb, &acc));
}

/* behind the cell's inputs r, u, c, d_h; gives d_x, d_h_prev and the gradients of the sums: d_c_bar, d_r_bar_u_bar */
status build_gru_grad(struct op_call *c) {
  struct gru g;
  value_id saved[4];
  static const char *const names[4] = {"r", "u", "c", "d_h"};
  TRY(gru_begin(c, &g));
  dim state[2] = {g.batch, g.cell}, x[2] = {g.batch, g.input}, both[2] = {g.batch, g.both};
  for (uint32_t i = 0; i < 4; i++) {
    TRY(op_input(c, 6 + i, &saved[i]));
    TRY(expect_shape(c, saved[i], names[i], 2, state));
  }
  struct kb kb;
  kb_begin(&kb, c, g.dtype);
  for (int i = H_PREV; i <= W_C; i++)
    kb_in(&kb, g.in[i]);
  uint32_t h = kb_in(&kb, g.in[H_PREV]), s[4];
  for (int i = 0; i < 4; i++)
    s[i] = kb_in(&kb, saved[i]);
  uint32_t dx = kb_out(&kb, g.dtype, 2, x), dh = kb_out(&kb, g.dtype, 2, state), dc = kb_out(&kb, g.dtype, 2, state),
           dru = kb_out(&kb, g.dtype, 2, both), dhr = kb_scratch(&kb, g.dtype, 2, state);
  expr_id b = kb_for_dim(&kb, LOOP_PAR, g.batch), j = kb_for_dim(&kb, LOOP_PAR, g.cell), cell = kb_dim(&kb, g.cell),
          inputs = kb_dim(&kb, g.input);
  struct element u = load2(&kb, s[1], b, j), candidate = load2(&kb, s[2], b, j), d = load2(&kb, s[3], b, j), old = load2(&kb, h, b, j);
  store2(&kb, dc, b, j, e_mul(&kb, e_mul(&kb, d, one_minus(&kb, u)), one_minus(&kb, e_mul(&kb, candidate, candidate))));
  struct element du = e_mul(&kb, e_mul(&kb, e_mul(&kb, d, e_sub(&kb, old, candidate)), u), one_minus(&kb, u));
  store2(&kb, dru, b, kb_add(&kb, cell, j), du);
  kb_close(&kb, 2);
  b = kb_for_dim(&kb, LOOP_PAR, g.batch);
  j = kb_for_dim(&kb, LOOP_PAR, g.cell);
  struct element product = back_through(&kb, &g, dc, W_C, g.cell, b, kb_add(&kb, inputs, j));
  product = e_now(&kb, product);
  struct element r = load2(&kb, s[0], b, j);
  store2(&kb, dhr, b, j, product);
  store2(&kb, dru, b, j, e_mul(&kb, e_mul(&kb, e_mul(&kb, product, load2(&kb, h, b, j)), r), one_minus(&kb, r)));
  kb_close(&kb, 2);
  b = kb_for_dim(&kb, LOOP_PAR, g.batch);
  j = kb_for_dim(&kb, LOOP_PAR, g.input);
  struct element first = back_through(&kb, &g, dru, W_RU, g.both, b, j);
  store2(&kb, dx, b, j, e_add(&kb, first, back_through(&kb, &g, dc, W_C, g.cell, b, j)));
  kb_close(&kb, 2);
  b = kb_for_dim(&kb, LOOP_PAR, g.batch);
  j = kb_for_dim(&kb, LOOP_PAR, g.cell);
  first = back_through(&kb, &g, dru, W_RU, g.both, b, kb_add(&kb, inputs, j));
  struct element direct = e_mul(&kb, load2(&kb, s[3], b, j), load2(&kb, s[1], b, j));
  store2(&kb, dh, b, j, e_add(&kb, e_add(&kb, first, e_mul(&kb, load2(&kb, dhr, b, j), load2(&kb, s[0], b, j))), direct));
  kb_close(&kb, 2);
  const uint32_t out[4] = {dx, dh, dc, dru};
  for (uint32_t i = 0; i < 4; i++)
    op_set_output(c, i, kb_value(&kb, out[i]));
  return kb_finish_guarded(&kb);
}
