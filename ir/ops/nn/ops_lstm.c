/* ops_lstm.c: LSTM cells with peepholes and clipping (Hochreiter and Schmidhuber 1997; Gers et al. 2000), one step or a whole sequence,
 * and their gradients. The four gates are the columns of one matrix: input, then cell and forget (or forget and cell), output. */
#include <string.h>

#include "ir/ops/nn/cell.h"

enum gate { GATE_INPUT, GATE_CELL, GATE_FORGET, GATE_OUTPUT };
enum { WCI, WCF, WCO };
enum { SAVED_I, SAVED_CS, SAVED_F, SAVED_O, SAVED_CI, SAVED_CO, SAVED_H, SAVED_COUNT }; /* what a step gives, in TensorFlow's order */

struct lstm {
  bool timed; /* a sequence [time, batch, ...] */
  bool peephole, forget_first;
  dim time, batch, input, cell, gates;
  enum dtype dtype, sum;
  value_id limit, x, cs_prev, h_prev, w, peep[3], bias; /* limit: steps that count */
};

/* Inputs [seq_len_max], x, cs_prev, h_prev, w, wci, wcf, wco, b; *next: the number of the input behind them. */
static status lstm_begin(struct op_call *c, struct lstm *l, uint32_t *next) {
  memset(l, 0, sizeof *l);
  uint32_t i = 0;
  l->timed = op_takes(c, "seq_len_max");
  l->forget_first = c->row->form & ROW_FORGET_FIRST;
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
  if (l->timed && op_value(c, l->limit)->rank != 0)
    return fail(INVALID_ARGUMENT, "seq_len_max must be rank 0 but is rank %d", op_value(c, l->limit)->rank);
  l->time = x.dims[0];
  l->batch = x.dims[l->timed];
  l->input = x.dims[l->timed + 1];
  l->cell = s.dims[1];
  l->gates = op_mul(c, l->cell, op_dim(c, 4));
  l->dtype = x.dtype;
  l->sum = sum_dtype(x.dtype);
  dim state[2] = {l->batch, l->cell}, weights[2] = {op_add(c, l->input, l->cell), l->gates};
  TRY(expect_shape(c, l->cs_prev, "cs_prev", 2, state));
  TRY(expect_shape(c, l->h_prev, "h_prev", 2, state));
  TRY(expect_shape(c, l->w, "w", 2, weights));
  static const char *const names[3] = {"wci", "wcf", "wco"};
  for (int k = 0; k < 3; k++)
    TRY(expect_shape(c, l->peep[k], names[k], 1, &l->cell));
  return expect_shape(c, l->bias, "b", 1, &l->gates);
}

/* ---- expressions ---- */

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
static void store_at(struct kb *kb, const struct lstm *l, uint32_t buffer, expr_id t, expr_id i, expr_id j, struct element e) {
  expr_id at[3] = {t, i, j};
  store_as(kb, buffer, l->timed ? at : &at[1], e);
}
static struct element peeped(struct kb *kb, const struct lstm *l, struct element gate, struct element state, int which, expr_id cell) {
  return l->peephole ? e_add(kb, gate, e_mul(kb, state, kb_load(kb, kb_in(kb, l->peep[which]), &cell))) : gate;
}

/* ---- forward ---- */

struct lstm_buffers {
  uint32_t x, w, bias, state, hidden, gates, out[SAVED_COUNT];
};

/* gates = [x, h] w + b */
static void all_gates(struct kb *kb, const struct lstm *l, const struct lstm_buffers *u, expr_id t) {
  expr_id b = kb_for_dim(kb, LOOP_PAR, l->batch), j = kb_for_dim(kb, LOOP_PAR, l->gates);
  struct accumulator acc = acc_zero(kb, l->sum);
  expr_id k = kb_for_dim(kb, LOOP_RED, l->input);
  struct element e = f_cast(&kb->f, l->sum, load_at(kb, l, u->x, t, b, k));
  acc_add(kb, &acc, e_mul(kb, e, f_cast(&kb->f, l->sum, load2(kb, u->w, k, j))));
  kb_close(kb, 1);
  k = kb_for_dim(kb, LOOP_RED, l->cell);
  e = f_cast(&kb->f, l->sum, load2(kb, u->hidden, b, k));
  acc_add(kb, &acc, e_mul(kb, e, f_cast(&kb->f, l->sum, load2(kb, u->w, kb_add(kb, kb_dim(kb, l->input), k), j))));
  kb_close(kb, 1);
  store2(kb, u->gates, b, j, e_add(kb, f_cast(&kb->f, l->dtype, acc_get(kb, &acc)), kb_load(kb, u->bias, &j)));
  kb_close(kb, 2);
}

static void cell_step(struct kb *kb, const struct lstm *l, const struct lstm_buffers *u, expr_id t) {
  struct formula *f = &kb->f;
  const struct node *node = kb->c->node;
  double clip = node_attr_float(node, "cell_clip", 0), forget_bias = node_attr_float(node, "forget_bias", 0);
  expr_id b = kb_for_dim(kb, LOOP_PAR, l->batch), j = kb_for_dim(kb, LOOP_PAR, l->cell);
  struct element old = e_now(kb, load2(kb, u->state, b, j)), out[SAVED_COUNT], gate[4];
  for (int g = 0; g < 4; g++)
    gate[g] = load2(kb, u->gates, b, gate_column(kb, l, (enum gate)g, j));
  out[SAVED_I] = e_now(kb, f_sigmoid(f, peeped(kb, l, gate[GATE_INPUT], old, WCI, j)));
  out[SAVED_CI] = e_now(kb, f_unary(f, SCALAR_TANH, gate[GATE_CELL]));
  out[SAVED_F] = e_now(kb, f_sigmoid(f, peeped(kb, l, e_add(kb, gate[GATE_FORGET], f_const(f, forget_bias)), old, WCF, j)));
  struct element cs = e_add(kb, e_mul(kb, out[SAVED_I], out[SAVED_CI]), e_mul(kb, out[SAVED_F], old));
  if (clip > 0)
    cs = f_binary(f, SCALAR_MIN, f_binary(f, SCALAR_MAX, cs, f_const(f, -clip)), f_const(f, clip));
  out[SAVED_CS] = e_now(kb, cs);
  out[SAVED_CO] = e_now(kb, f_unary(f, SCALAR_TANH, out[SAVED_CS]));
  out[SAVED_O] = e_now(kb, f_sigmoid(f, peeped(kb, l, gate[GATE_OUTPUT], out[SAVED_CS], WCO, j)));
  out[SAVED_H] = e_mul(kb, out[SAVED_O], out[SAVED_CO]);
  for (int i = 0; i < SAVED_COUNT; i++)
    store_at(kb, l, u->out[i], t, b, j, out[i]);
  if (l->timed) {
    store2(kb, u->state, b, j, out[SAVED_CS]);
    store2(kb, u->hidden, b, j, out[SAVED_H]);
  }
  kb_close(kb, 2);
}

static void copy_state(struct kb *kb, const struct lstm *l, uint32_t from, uint32_t to) {
  dim dims[2] = {l->batch, l->cell};
  expr_id at[2];
  kb_loops(kb, LOOP_PAR, 2, dims, at);
  kb_store(kb, to, at, kb_load(kb, from, at));
  kb_close(kb, 2);
}

/* Opens the loop over time and the steps that count; the index of the step. */
static expr_id open_time(struct kb *kb, const struct lstm *l, bool backwards) {
  if (!l->timed)
    return NO_EXPR;
  expr_id steps = kb_index(kb, kb_load(kb, kb_in(kb, l->limit), NULL)), t = kb_for_dim(kb, LOOP_SEQ, l->time);
  if (backwards)
    t = kb_sub(kb, kb_sub(kb, kb_dim(kb, l->time), kb_int(kb, 1)), t);
  kb_if(kb, kb_lt(kb, t, steps));
  return t;
}

status build_lstm(struct op_call *c) {
  struct lstm l;
  struct lstm_buffers u;
  uint32_t next;
  TRY(lstm_begin(c, &l, &next));
  struct kb kb;
  kb_begin(&kb, c, l.dtype);
  u.x = kb_in(&kb, l.x);
  u.w = kb_in(&kb, l.w);
  u.bias = kb_in(&kb, l.bias);
  u.state = kb_in(&kb, l.cs_prev);
  u.hidden = kb_in(&kb, l.h_prev);
  dim dims[3] = {l.time, l.batch, l.cell}, gates[2] = {l.batch, l.gates};
  for (int i = 0; i < SAVED_COUNT; i++)
    u.out[i] = kb_out(&kb, l.dtype, 2 + l.timed, l.timed ? dims : &dims[1]);
  u.gates = kb_scratch(&kb, l.dtype, 2, gates);
  if (l.timed) {
    uint32_t state = kb_scratch(&kb, l.dtype, 2, &dims[1]), hidden = kb_scratch(&kb, l.dtype, 2, &dims[1]);
    copy_state(&kb, &l, u.state, state);
    copy_state(&kb, &l, u.hidden, hidden);
    u.state = state;
    u.hidden = hidden;
  }
  expr_id t = open_time(&kb, &l, false);
  all_gates(&kb, &l, &u, t);
  cell_step(&kb, &l, &u, t);
  if (l.timed) {
    kb_else(&kb);
    expr_id at[3] = {t, 0, 0};
    kb_loops(&kb, LOOP_PAR, 2, &dims[1], &at[1]);
    for (int i = 0; i < SAVED_COUNT; i++)
      kb_store(&kb, u.out[i], at, f_const(&kb.f, 0));
    kb_close(&kb, 4);
  }
  for (int i = 0; i < SAVED_COUNT; i++)
    op_set_output(c, (uint32_t)i, kb_value(&kb, u.out[i]));
  return kb_finish_guarded(&kb);
}

/* ---- gradient ---- */

struct lstm_grad {
  uint32_t x, w, cs_prev, h_prev, saved[SAVED_COUNT], cs_grad, h_grad;
  uint32_t cs_prev_grad, dgates, peep_grad[3];
  uint32_t h_prev_grad, x_grad, w_grad, b_grad; /* of a sequence */
};

/* The state before step t. */
static struct element before(struct kb *kb, const struct lstm *l, uint32_t first, uint32_t later, expr_id t, expr_id b, expr_id j) {
  struct element e = load2(kb, first, b, j);
  if (!l->timed)
    return e;
  expr_id last = expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, t, kb_int(kb, 1)), kb_int(kb, 0));
  return f_select(&kb->f, real_element(kb_eq(kb, t, kb_int(kb, 0))), e, load_at(kb, l, later, last, b, j));
}

/* Of the gates' sums and of the state before; what came from later steps is in cs_prev_grad and h_prev_grad. */
static void gate_gradients(struct kb *kb, const struct lstm *l, const struct lstm_grad *g, expr_id t) {
  expr_id b = kb_for_dim(kb, LOOP_PAR, l->batch), j = kb_for_dim(kb, LOOP_PAR, l->cell);
  struct element s[SAVED_COUNT], d[4], dh = load_at(kb, l, g->h_grad, t, b, j), dc = load_at(kb, l, g->cs_grad, t, b, j);
  for (int i = 0; i < SAVED_H; i++)
    s[i] = load_at(kb, l, g->saved[i], t, b, j);
  if (l->timed) {
    dh = e_now(kb, e_add(kb, load2(kb, g->h_prev_grad, b, j), dh));
    dc = e_now(kb, e_add(kb, load2(kb, g->cs_prev_grad, b, j), dc));
  }
  struct element co = s[SAVED_CO], ci = s[SAVED_CI], old = before(kb, l, g->cs_prev, g->saved[SAVED_CS], t, b, j);
  d[GATE_OUTPUT] = e_now(kb, e_mul(kb, e_mul(kb, e_mul(kb, s[SAVED_O], one_minus(kb, s[SAVED_O])), dh), co));
  struct element dcs = e_add(kb, e_mul(kb, e_mul(kb, one_minus(kb, e_mul(kb, co, co)), dh), s[SAVED_O]), dc);
  dcs = e_now(kb, peeped(kb, l, dcs, d[GATE_OUTPUT], WCO, j));
  d[GATE_CELL] = e_mul(kb, e_mul(kb, one_minus(kb, e_mul(kb, ci, ci)), dcs), s[SAVED_I]);
  d[GATE_FORGET] = e_now(kb, e_mul(kb, e_mul(kb, e_mul(kb, s[SAVED_F], one_minus(kb, s[SAVED_F])), dcs), old));
  d[GATE_INPUT] = e_now(kb, e_mul(kb, e_mul(kb, e_mul(kb, s[SAVED_I], one_minus(kb, s[SAVED_I])), dcs), ci));
  for (int i = 0; i < 4; i++)
    store2(kb, g->dgates, b, gate_column(kb, l, (enum gate)i, j), d[i]);
  struct element back = peeped(kb, l, e_mul(kb, dcs, s[SAVED_F]), d[GATE_INPUT], WCI, j);
  store2(kb, g->cs_prev_grad, b, j, peeped(kb, l, back, d[GATE_FORGET], WCF, j));
  kb_close(kb, 2);
}

/* Adds to what was there, in a sequence. */
static void accumulate1(struct kb *kb, const struct lstm *l, uint32_t buffer, expr_id j, const struct accumulator *acc) {
  struct element e = f_cast(&kb->f, l->dtype, acc_get(kb, acc));
  kb_store(kb, buffer, &j, l->timed ? e_add(kb, kb_load(kb, buffer, &j), e) : e);
}

static void peephole_gradients(struct kb *kb, const struct lstm *l, const struct lstm_grad *g, expr_id t) {
  static const enum gate gates[3] = {GATE_INPUT, GATE_FORGET, GATE_OUTPUT};
  expr_id j = kb_for_dim(kb, LOOP_PAR, l->cell);
  struct accumulator acc[3];
  for (int i = 0; i < 3; i++)
    acc[i] = acc_zero(kb, l->sum);
  expr_id b = kb_for_dim(kb, LOOP_RED, l->batch);
  struct element old = before(kb, l, g->cs_prev, g->saved[SAVED_CS], t, b, j);
  for (int i = 0; i < 3; i++) {
    struct element state = i == WCO ? load_at(kb, l, g->saved[SAVED_CS], t, b, j) : old;
    acc_add(kb, &acc[i], f_cast(&kb->f, l->sum, e_mul(kb, load2(kb, g->dgates, b, gate_column(kb, l, gates[i], j)), state)));
  }
  kb_close(kb, 1);
  for (int i = 0; i < 3; i++)
    accumulate1(kb, l, g->peep_grad[i], j, &acc[i]);
  kb_close(kb, 1);
}

/* The row of w behind x (0) or behind h (1). */
static expr_id weight_row(struct kb *kb, const struct lstm *l, bool hidden, expr_id k) {
  return hidden ? kb_add(kb, kb_dim(kb, l->input), k) : k;
}

/* Of x and of the hidden state before: the gates' gradients times w transposed; of w and b: summed over time and batch. */
static void product_gradients(struct kb *kb, const struct lstm *l, const struct lstm_grad *g, expr_id t) {
  for (int hidden = 0; hidden < 2; hidden++) {
    dim rows = hidden ? l->cell : l->input;
    expr_id b = kb_for_dim(kb, LOOP_PAR, l->batch), k = kb_for_dim(kb, LOOP_PAR, rows);
    struct accumulator acc = acc_zero(kb, l->sum);
    expr_id j = kb_for_dim(kb, LOOP_RED, l->gates);
    struct element d = f_cast(&kb->f, l->sum, load2(kb, g->dgates, b, j));
    acc_add(kb, &acc, e_mul(kb, d, f_cast(&kb->f, l->sum, load2(kb, g->w, weight_row(kb, l, hidden, k), j))));
    kb_close(kb, 1);
    if (hidden)
      store2(kb, g->h_prev_grad, b, k, acc_get(kb, &acc));
    else
      store_at(kb, l, g->x_grad, t, b, k, acc_get(kb, &acc));
    kb_close(kb, 2);
    k = kb_for_dim(kb, LOOP_PAR, rows);
    j = kb_for_dim(kb, LOOP_PAR, l->gates);
    acc = acc_zero(kb, l->sum);
    b = kb_for_dim(kb, LOOP_RED, l->batch);
    struct element e = hidden ? before(kb, l, g->h_prev, g->saved[SAVED_H], t, b, k) : load_at(kb, l, g->x, t, b, k);
    acc_add(kb, &acc, e_mul(kb, f_cast(&kb->f, l->sum, e), f_cast(&kb->f, l->sum, load2(kb, g->dgates, b, j))));
    kb_close(kb, 1);
    expr_id row = weight_row(kb, l, hidden, k);
    store2(kb, g->w_grad, row, j, e_add(kb, load2(kb, g->w_grad, row, j), f_cast(&kb->f, l->dtype, acc_get(kb, &acc))));
    kb_close(kb, 2);
  }
  expr_id j = kb_for_dim(kb, LOOP_PAR, l->gates);
  struct accumulator acc = acc_zero(kb, l->sum);
  expr_id b = kb_for_dim(kb, LOOP_RED, l->batch);
  acc_add(kb, &acc, f_cast(&kb->f, l->sum, load2(kb, g->dgates, b, j)));
  kb_close(kb, 1);
  accumulate1(kb, l, g->b_grad, j, &acc);
  kb_close(kb, 1);
}

/* Starts the kernel. Inputs behind the cell's: i, cs, f, o, ci, co, [h], cs_grad, h_grad. */
static status lstm_grad_begin(struct op_call *c, struct lstm *l, struct lstm_grad *g, struct kb *kb) {
  static const char *const names[] = {"i", "cs", "f", "o", "ci", "co", "h"};
  uint32_t next;
  *g = (struct lstm_grad){0};
  TRY(lstm_begin(c, l, &next));
  kb_begin(kb, c, l->dtype);
  int saved = l->timed ? SAVED_COUNT : SAVED_H;
  dim dims[3] = {l->time, l->batch, l->cell};
  for (int i = 0; i < saved + 2; i++) {
    value_id v;
    TRY(op_input(c, next++, &v));
    TRY(expect_shape(c, v, i < saved ? names[i] : "a gradient of cs or h", 2 + l->timed, l->timed ? dims : &dims[1]));
    *(i < saved ? &g->saved[i] : i == saved ? &g->cs_grad : &g->h_grad) = kb_in(kb, v);
  }
  g->x = kb_in(kb, l->x);
  g->w = kb_in(kb, l->w);
  g->cs_prev = kb_in(kb, l->cs_prev);
  g->h_prev = kb_in(kb, l->h_prev);
  for (int i = 0; i < 3 && l->peephole; i++)
    kb_in(kb, l->peep[i]);
  return OK;
}

status build_lstm_cell_grad(struct op_call *c) {
  struct lstm l;
  struct lstm_grad g;
  struct kb kb;
  TRY(lstm_grad_begin(c, &l, &g, &kb));
  dim state[2] = {l.batch, l.cell}, gates[2] = {l.batch, l.gates};
  g.cs_prev_grad = kb_out(&kb, l.dtype, 2, state);
  g.dgates = kb_out(&kb, l.dtype, 2, gates);
  for (int i = 0; i < 3; i++)
    g.peep_grad[i] = kb_out(&kb, l.dtype, 1, &l.cell);
  gate_gradients(&kb, &l, &g, NO_EXPR);
  if (l.peephole)
    peephole_gradients(&kb, &l, &g, NO_EXPR);
  for (int i = 0; i < 3 && !l.peephole; i++)
    kb_fill(&kb, g.peep_grad[i], 1, &l.cell, f_const(&kb.f, 0));
  op_set_output(c, 0, kb_value(&kb, g.cs_prev_grad));
  op_set_output(c, 1, kb_value(&kb, g.dgates));
  for (uint32_t i = 0; i < 3; i++)
    op_set_output(c, 2 + i, kb_value(&kb, g.peep_grad[i]));
  return kb_finish_guarded(&kb);
}

status build_lstm_grad(struct op_call *c) {
  struct lstm l;
  struct lstm_grad g;
  struct kb kb;
  TRY(lstm_grad_begin(c, &l, &g, &kb));
  kb_in(&kb, l.limit);
  dim x[3] = {l.time, l.batch, l.input}, state[2] = {l.batch, l.cell}, w[2] = {op_add(c, l.input, l.cell), l.gates};
  dim gates[2] = {l.batch, l.gates};
  struct element zero = f_const(&kb.f, 0);
  g.x_grad = kb_out(&kb, l.dtype, 3, x);
  g.cs_prev_grad = kb_out(&kb, l.dtype, 2, state);
  g.h_prev_grad = kb_out(&kb, l.dtype, 2, state);
  g.w_grad = kb_out(&kb, l.dtype, 2, w);
  for (int i = 0; i < 3; i++)
    g.peep_grad[i] = kb_out(&kb, l.dtype, 1, &l.cell);
  g.b_grad = kb_out(&kb, l.dtype, 1, &l.gates);
  g.dgates = kb_scratch(&kb, l.dtype, 2, gates);
  kb_fill(&kb, g.cs_prev_grad, 2, state, zero);
  kb_fill(&kb, g.h_prev_grad, 2, state, zero);
  kb_fill(&kb, g.w_grad, 2, w, zero);
  for (int i = 0; i < 3; i++)
    kb_fill(&kb, g.peep_grad[i], 1, &l.cell, zero);
  kb_fill(&kb, g.b_grad, 1, &l.gates, zero);
  expr_id t = open_time(&kb, &l, true);
  gate_gradients(&kb, &l, &g, t);
  product_gradients(&kb, &l, &g, t);
  if (l.peephole)
    peephole_gradients(&kb, &l, &g, t);
  kb_else(&kb);
  expr_id at[3] = {t, 0, 0};
  kb_loops(&kb, LOOP_PAR, 2, &x[1], &at[1]);
  kb_store(&kb, g.x_grad, at, zero);
  kb_close(&kb, 4);
  const uint32_t out[] = {g.x_grad, g.cs_prev_grad, g.h_prev_grad, g.w_grad, g.peep_grad[0], g.peep_grad[1], g.peep_grad[2], g.b_grad};
  for (uint32_t i = 0; i < 8; i++)
    op_set_output(c, i, kb_value(&kb, out[i]));
  return kb_finish_guarded(&kb);
}
