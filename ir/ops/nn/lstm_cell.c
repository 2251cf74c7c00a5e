/* lstm_cell.c: see lstm.h. */
#include <string.h>

#include "ir/ops/nn/lstm.h"
#include "ir/ops/op_rows.h"

/* The steps that count are a size: the first so many rows of a sequence. */
static status count_steps(struct op_call *c, struct lstm *l) {
  if (op_value(c, l->limit)->rank != 0)
    return fail(INVALID_ARGUMENT, "seq_len_max must be rank 0 but is rank %d", op_value(c, l->limit)->rank);
  dim *limit;
  int count;
  if (op_has_known_elements(c, l->limit, &limit, &count) && limit[0] != NO_DIM) {
    l->steps = dim_min(op_dims(c), dim_max(op_dims(c), limit[0], op_dim(c, 0)), l->time);
    if (dim_equal(op_dims(c), limit[0], l->time) == 1)
      l->steps = l->time;
    return OK;
  }
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t in = kb_in(&kb, l->limit), out = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id steps = expr_binary(kb.k, SCALAR_MAX, kb_index(&kb, kb_load(&kb, in, NULL)), kb_int(&kb, 0));
  kb_store(&kb, out, NULL, real_element(expr_binary(kb.k, SCALAR_MIN, steps, kb_dim(&kb, l->time))));
  value_id v = kb_value(&kb, out);
  TRY(kb_finish_guarded(&kb));
  TRY(op_elements(c, v, &limit, &count));
  l->steps = limit[0];
  return OK;
}

static status check_shapes(struct op_call *c, struct lstm *l) {
  dim state[2] = {l->batch, l->cell}, weights[2] = {op_add(c, l->input, l->cell), l->gates};
  TRY(expect_shape(c, l->cs_prev, "cs_prev", 2, state));
  TRY(expect_shape(c, l->h_prev, "h_prev", 2, state));
  TRY(expect_shape(c, l->w, "w", 2, weights));
  static const char *const names[3] = {"wci", "wcf", "wco"};
  for (int k = 0; k < 3; k++)
    TRY(expect_shape(c, l->peep[k], names[k], 1, &l->cell));
  return expect_shape(c, l->bias, "b", 1, &l->gates);
}

status lstm_begin(struct op_call *c, struct lstm *l, uint32_t *next) {
  memset(l, 0, sizeof *l);
  uint32_t i = 0;
  l->timed = op_takes(c, "seq_len_max");
  l->forget_first = OP_ROW(c, lstm_row)->forget_first;
  l->peephole = node_attr_int(c->node, "use_peephole", 0);
  if (l->timed)
    TRY(op_input(c, i++, &l->limit));
  value_id *in[] = {&l->x, &l->cs_prev, &l->h_prev, &l->w, &l->peep[WCI], &l->peep[WCF], &l->peep[WCO], &l->bias};
  for (uint32_t k = 0; k < 8; k++)
    TRY(op_input(c, i++, in[k]));
  *next = i;
  struct flow_value x = *op_value(c, l->x), s = *op_value(c, l->cs_prev);
  if (x.rank != 2 + l->timed || s.rank != 2)
    return fail(INVALID_ARGUMENT, "x must be %dD and cs_prev 2D, not %s and %s", 2 + l->timed, op_shape_text(c, x.rank, x.dims),
                op_shape_text(c, s.rank, s.dims));
  l->time = x.dims[0];
  l->batch = x.dims[l->timed];
  l->input = x.dims[l->timed + 1];
  l->cell = s.dims[1];
  l->gates = op_mul(c, l->cell, op_dim(c, 4));
  l->dtype = x.dtype;
  l->sum = sum_dtype(x.dtype);
  l->steps = op_dim(c, 1);
  if (l->timed)
    TRY(count_steps(c, l));
  return check_shapes(c, l);
}

dim lstm_rows(struct op_call *c, const struct lstm *l) { return op_mul(c, l->steps, l->batch); }

/* ---- elements ---- */

static expr_id gate_column(struct kb *kb, const struct lstm *l, enum gate gate, expr_id cell) {
  int place = gate;
  if (l->forget_first && (gate == GATE_CELL || gate == GATE_FORGET))
    place = gate == GATE_CELL ? GATE_FORGET : GATE_CELL;
  return kb_add(kb, kb_mul(kb, kb_dim(kb, l->cell), kb_int(kb, place)), cell);
}
/* An element of what may have a time in front. */
static struct element load_at(struct kb *kb, const struct lstm *l, uint32_t buffer, expr_id t, expr_id i, expr_id j) {
  expr_id at[3] = {t, i, j};
  return kb_load(kb, buffer, l->timed ? at : &at[1]);
}
static expr_id row_number(struct kb *kb, value_id row) { return row ? kb_load(kb, kb_in(kb, row), NULL).re : NO_EXPR; }
/* peep: buffers of wci, wcf, wco */
static struct element peeped(struct kb *kb, const struct lstm *l, struct element gate, struct element state, uint32_t peep, expr_id cell) {
  return l->peephole ? e_add(kb, gate, e_mul(kb, state, kb_load(kb, peep, &cell))) : gate;
}
static void peep_buffers(struct kb *kb, const struct lstm *l, const value_id *peep, uint32_t *out) {
  for (int i = 0; i < 3; i++)
    out[i] = l->peephole ? kb_in(kb, peep[i]) : 0;
}

/* ---- products ---- */

status lstm_product(struct op_call *c, const struct lstm *l, const struct lstm_product *p, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, l->sum);
  dim dims[2] = {p->rows, p->columns};
  uint32_t a = kb_in(&kb, p->a), b = kb_in(&kb, p->b), o = kb_out(&kb, p->is_wide ? l->sum : l->dtype, 2, dims);
  expr_id at[2];
  kb_loops(&kb, LOOP_PAR, 2, dims, at);
  struct accumulator acc = acc_zero(&kb, l->sum);
  expr_id k = kb_for_dim(&kb, LOOP_RED, p->terms);
  expr_id row = p->turned_b ? at[1] : k, column = p->turned_b ? k : at[1];
  if (p->skip != NO_DIM)
    row = kb_add(&kb, kb_dim(&kb, p->skip), row);
  struct element e = f_cast(&kb.f, l->sum, p->turned_a ? load2(&kb, a, k, at[0]) : load2(&kb, a, at[0], k));
  acc_add(&kb, &acc, e_mul(&kb, e, f_cast(&kb.f, l->sum, load2(&kb, b, row, column))));
  kb_close(&kb, 1);
  store_as(&kb, o, at, acc_get(&kb, &acc));
  kb_close(&kb, 2);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* ---- forward ---- */

/* gates = x's part + h w + b */
static status sum_gates(struct op_call *c, const struct lstm *l, const struct lstm_step *s, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, l->dtype);
  dim dims[2] = {l->batch, l->gates};
  uint32_t h = kb_in(&kb, s->h_prev), w = kb_in(&kb, s->w), x = kb_in(&kb, s->gates), bias = kb_in(&kb, s->bias);
  uint32_t o = kb_out(&kb, l->dtype, 2, dims);
  expr_id t = row_number(&kb, s->row), at[2];
  kb_loops(&kb, LOOP_PAR, 2, dims, at);
  struct accumulator acc = acc_zero(&kb, l->sum);
  expr_id k = kb_for_dim(&kb, LOOP_RED, l->cell);
  struct element e = f_cast(&kb.f, l->sum, load2(&kb, h, at[0], k));
  acc_add(&kb, &acc, e_mul(&kb, e, f_cast(&kb.f, l->sum, load2(&kb, w, kb_add(&kb, kb_dim(&kb, l->input), k), at[1]))));
  kb_close(&kb, 1);
  struct element sum = f_cast(&kb.f, l->dtype, e_add(&kb, load_at(&kb, l, x, t, at[0], at[1]), acc_get(&kb, &acc)));
  kb_store(&kb, o, at, e_add(&kb, sum, kb_load(&kb, bias, &at[1])));
  kb_close(&kb, 2);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* Of one element; gate: by enum gate; peep: buffers. */
static void cell_elements(struct kb *kb, const struct lstm *l, const struct element *gate, struct element old, const uint32_t *peep,
                          expr_id j, struct element *out) {
  struct formula *f = &kb->f;
  const struct node *node = kb->c->node;
  double clip = node_attr_float(node, "cell_clip", 0), forget_bias = node_attr_float(node, "forget_bias", 0);
  out[SAVED_I] = e_now(kb, f_sigmoid(f, peeped(kb, l, gate[GATE_INPUT], old, peep[WCI], j)));
  out[SAVED_CI] = e_now(kb, f_unary(f, SCALAR_TANH, gate[GATE_CELL]));
  out[SAVED_F] = e_now(kb, f_sigmoid(f, peeped(kb, l, e_add(kb, gate[GATE_FORGET], f_const(f, forget_bias)), old, peep[WCF], j)));
  struct element cs = e_add(kb, e_mul(kb, out[SAVED_I], out[SAVED_CI]), e_mul(kb, out[SAVED_F], old));
  if (clip > 0)
    cs = f_binary(f, SCALAR_MIN, f_binary(f, SCALAR_MAX, cs, f_const(f, -clip)), f_const(f, clip));
  out[SAVED_CS] = e_now(kb, cs);
  out[SAVED_CO] = e_now(kb, f_unary(f, SCALAR_TANH, out[SAVED_CS]));
  out[SAVED_O] = e_now(kb, f_sigmoid(f, peeped(kb, l, gate[GATE_OUTPUT], out[SAVED_CS], peep[WCO], j)));
  out[SAVED_H] = e_mul(kb, out[SAVED_O], out[SAVED_CO]);
}

status lstm_forward(struct op_call *c, const struct lstm *l, const struct lstm_step *s, value_id *out) {
  value_id sums;
  TRY(sum_gates(c, l, s, &sums));
  struct kb kb;
  kb_begin(&kb, c, l->dtype);
  dim dims[2] = {l->batch, l->cell};
  uint32_t gates = kb_in(&kb, sums), state = kb_in(&kb, s->cs_prev), peep[3], o[SAVED_COUNT];
  peep_buffers(&kb, l, s->peep, peep);
  for (int i = 0; i < SAVED_COUNT; i++)
    o[i] = kb_out(&kb, l->dtype, 2, dims);
  expr_id at[2];
  kb_loops(&kb, LOOP_PAR, 2, dims, at);
  struct element gate[4], e[SAVED_COUNT], old = e_now(&kb, kb_load(&kb, state, at));
  for (int g = 0; g < 4; g++)
    gate[g] = load2(&kb, gates, at[0], gate_column(&kb, l, (enum gate)g, at[1]));
  cell_elements(&kb, l, gate, old, peep, at[1], e);
  for (int i = 0; i < SAVED_COUNT; i++)
    store_as(&kb, o[i], at, e[i]);
  kb_close(&kb, 2);
  for (int i = 0; i < SAVED_COUNT; i++)
    out[i] = kb_value(&kb, o[i]);
  return kb_finish_guarded(&kb);
}

/* ---- backward ---- */

struct element lstm_before(struct kb *kb, const struct lstm *l, uint32_t first, uint32_t later, expr_id t, expr_id b, expr_id j) {
  struct element e = load2(kb, first, b, j);
  if (!l->timed)
    return e;
  expr_id last = expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, t, kb_int(kb, 1)), kb_int(kb, 0));
  return f_select(&kb->f, real_element(kb_eq(kb, t, kb_int(kb, 0))), e, load_at(kb, l, later, last, b, j));
}

/* Gradients d of the gates' sums and, returned, of the state before; s: what the step has saved; dh, dc: of what it gives. */
static struct element cell_gradients(struct kb *kb, const struct lstm *l, const struct element *s, struct element old, struct element dh,
                                     struct element dc, const uint32_t *peep, expr_id j, struct element *d) {
  struct element co = s[SAVED_CO], ci = s[SAVED_CI];
  d[GATE_OUTPUT] = e_now(kb, e_mul(kb, e_mul(kb, e_mul(kb, s[SAVED_O], one_minus(kb, s[SAVED_O])), dh), co));
  struct element dcs = e_add(kb, e_mul(kb, e_mul(kb, one_minus(kb, e_mul(kb, co, co)), dh), s[SAVED_O]), dc);
  dcs = e_now(kb, peeped(kb, l, dcs, d[GATE_OUTPUT], peep[WCO], j));
  d[GATE_CELL] = e_mul(kb, e_mul(kb, one_minus(kb, e_mul(kb, ci, ci)), dcs), s[SAVED_I]);
  d[GATE_FORGET] = e_now(kb, e_mul(kb, e_mul(kb, e_mul(kb, s[SAVED_F], one_minus(kb, s[SAVED_F])), dcs), old));
  d[GATE_INPUT] = e_now(kb, e_mul(kb, e_mul(kb, e_mul(kb, s[SAVED_I], one_minus(kb, s[SAVED_I])), dcs), ci));
  struct element back = peeped(kb, l, e_mul(kb, dcs, s[SAVED_F]), d[GATE_INPUT], peep[WCI], j);
  return peeped(kb, l, back, d[GATE_FORGET], peep[WCF], j);
}

/* An element of a gradient of what the step gives: with what comes from later steps. */
static struct element given_gradient(struct kb *kb, const struct lstm *l, uint32_t here, uint32_t later, expr_id t, const expr_id *at) {
  struct element e = load_at(kb, l, here, t, at[0], at[1]);
  return l->timed ? e_now(kb, e_add(kb, kb_load(kb, later, at), e)) : e;
}

status lstm_backward(struct op_call *c, const struct lstm *l, const struct lstm_back *s, value_id *dgates, value_id *dcs) {
  struct kb kb;
  kb_begin(&kb, c, l->dtype);
  dim dims[2] = {l->batch, l->cell}, gates[2] = {l->batch, l->gates};
  uint32_t saved[SAVED_H], peep[3], dh = kb_in(&kb, s->h_grad), dc = kb_in(&kb, s->cs_grad), first = kb_in(&kb, s->cs_prev);
  for (int i = 0; i < SAVED_H; i++)
    saved[i] = kb_in(&kb, s->saved[i]);
  uint32_t h_next = l->timed ? kb_in(&kb, s->h_next) : 0, cs_next = l->timed ? kb_in(&kb, s->cs_next) : 0;
  peep_buffers(&kb, l, s->peep, peep);
  uint32_t o_cs = kb_out(&kb, l->dtype, 2, dims), o_gates = kb_out(&kb, l->dtype, 2, gates);
  expr_id t = row_number(&kb, s->row), at[2];
  kb_loops(&kb, LOOP_PAR, 2, dims, at);
  struct element e[SAVED_H], d[4];
  for (int i = 0; i < SAVED_H; i++)
    e[i] = load_at(&kb, l, saved[i], t, at[0], at[1]);
  struct element h = given_gradient(&kb, l, dh, h_next, t, at), cs = given_gradient(&kb, l, dc, cs_next, t, at);
  struct element old = lstm_before(&kb, l, first, saved[SAVED_CS], t, at[0], at[1]);
  struct element back = cell_gradients(&kb, l, e, old, h, cs, peep, at[1], d);
  for (int i = 0; i < 4; i++)
    store2(&kb, o_gates, at[0], gate_column(&kb, l, (enum gate)i, at[1]), d[i]);
  kb_store(&kb, o_cs, at, back);
  kb_close(&kb, 2);
  *dgates = kb_value(&kb, o_gates);
  *dcs = kb_value(&kb, o_cs);
  return kb_finish_guarded(&kb);
}

static void sum_peepholes(struct kb *kb, const struct lstm *l, const struct lstm_back *s, value_id dgates, const uint32_t *out) {
  static const enum gate gates[3] = {GATE_INPUT, GATE_FORGET, GATE_OUTPUT};
  uint32_t d = kb_in(kb, dgates), first = kb_in(kb, s->cs_prev), saved = kb_in(kb, s->saved[SAVED_CS]);
  expr_id j = kb_for_dim(kb, LOOP_PAR, l->cell);
  struct accumulator acc[3];
  for (int i = 0; i < 3; i++)
    acc[i] = acc_zero(kb, l->sum);
  expr_id t = l->timed ? kb_for_dim(kb, LOOP_RED, l->steps) : NO_EXPR, b = kb_for_dim(kb, LOOP_RED, l->batch);
  struct element old = lstm_before(kb, l, first, saved, t, b, j);
  for (int i = 0; i < 3; i++) {
    struct element state = i == WCO ? load_at(kb, l, saved, t, b, j) : old;
    acc_add(kb, &acc[i], f_cast(&kb->f, l->sum, e_mul(kb, load_at(kb, l, d, t, b, gate_column(kb, l, gates[i], j)), state)));
  }
  kb_close(kb, 1 + l->timed);
  for (int i = 0; i < 3; i++)
    store_as(kb, out[i], &j, acc_get(kb, &acc[i]));
  kb_close(kb, 1);
}

status lstm_peephole_gradients(struct op_call *c, const struct lstm *l, const struct lstm_back *s, value_id dgates, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, l->dtype);
  uint32_t o[3];
  for (int i = 0; i < 3; i++)
    o[i] = kb_out(&kb, l->dtype, 1, &l->cell);
  if (l->peephole)
    sum_peepholes(&kb, l, s, dgates, o);
  for (int i = 0; i < 3 && !l->peephole; i++)
    kb_fill(&kb, o[i], 1, &l->cell, f_const(&kb.f, 0));
  for (int i = 0; i < 3; i++)
    out[i] = kb_value(&kb, o[i]);
  return kb_finish_guarded(&kb);
}
