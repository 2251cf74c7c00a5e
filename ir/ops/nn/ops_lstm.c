/* ops_lstm.c: LSTM cells, one step or a whole sequence, and their gradients.
 *
 * What needs no earlier step is one product over all steps, in front of the loop over time (what x gives to the gates) or behind it (the
 * gradients of x and of the weights); in the loop is what does, a product with the hidden state and the cell's elements. */
#include "ir/lower/turns.h"
#include "ir/ops/nn/lstm.h"

/* ---- forward ---- */

/* What x gives to the gates of the steps that count; rows of x behind them are not read. */
static status input_gates(struct op_call *c, const struct lstm *l, value_id *out) {
  dim x[2] = {op_mul(c, l->timed ? l->time : op_dim(c, 1), l->batch), l->input}, gates[3] = {l->steps, l->batch, l->gates};
  struct lstm_product p = {.a = op_alias(c, l->x, l->dtype, 2, x), .b = l->w, .skip = NO_DIM, .is_wide = true};
  p.rows = lstm_rows(c, l);
  p.columns = l->gates;
  p.terms = l->input;
  TRY(lstm_product(c, l, &p, out));
  *out = op_alias(c, *out, l->sum, 2 + l->timed, l->timed ? gates : &gates[1]);
  return OK;
}

enum { FIXED_GATES, FIXED_W, FIXED_BIAS, FIXED_PEEP, FIXED_COUNT = FIXED_PEEP + 3 };

static status turn_forward(const struct turn *turn) {
  const struct lstm *l = turn->self;
  const value_id *fixed = turn->fixed;
  struct lstm_step s = {.gates = fixed[FIXED_GATES], .row = turn->row, .w = fixed[FIXED_W], .bias = fixed[FIXED_BIAS]};
  s.cs_prev = turn->states[0];
  s.h_prev = turn->states[1];
  memcpy(s.peep, fixed + FIXED_PEEP, sizeof s.peep);
  TRY(lstm_forward(turn->call, l, &s, turn->rows));
  turn->next[0] = turn->rows[SAVED_CS];
  turn->next[1] = turn->rows[SAVED_H];
  return OK;
}

/* The steps that count, and zeros for the others. */
static status fill_time(struct op_call *c, const struct lstm *l, value_id *array) {
  struct flow_value x = *op_value(c, *array);
  if (dim_equal(op_dims(c), l->steps, l->time) == 1)
    return OK;
  struct kb kb;
  kb_begin(&kb, c, l->dtype);
  dim dims[3] = {l->time, x.dims[1], x.dims[2]};
  uint32_t in = kb_in(&kb, *array), out = kb_out(&kb, l->dtype, 3, dims);
  expr_id at[3];
  kb_loops(&kb, LOOP_PAR, 3, x.dims, at);
  kb_store(&kb, out, at, kb_load(&kb, in, at));
  kb_close(&kb, 3);
  dims[0] = dim_sub(op_dims(c), l->time, l->steps);
  kb_loops(&kb, LOOP_PAR, 3, dims, at);
  at[0] = kb_add(&kb, kb_dim(&kb, l->steps), at[0]);
  kb_store(&kb, out, at, f_const(&kb.f, 0));
  kb_close(&kb, 3);
  *array = kb_value(&kb, out);
  return kb_finish_guarded(&kb);
}

status build_lstm(struct op_call *c) {
  struct lstm l;
  uint32_t next;
  value_id gates, out[SAVED_COUNT];
  TRY(lstm_begin(c, &l, &next));
  TRY(input_gates(c, &l, &gates));
  struct lstm_step s = {.gates = gates, .cs_prev = l.cs_prev, .h_prev = l.h_prev, .w = l.w, .bias = l.bias};
  memcpy(s.peep, l.peep, sizeof s.peep);
  TRY(lstm_forward(c, &l, &s, out));
  for (uint32_t i = 0; i < SAVED_COUNT; i++)
    op_set_output(c, i, out[i]);
  return OK;
}

status build_block_lstm(struct op_call *c) {
  struct lstm l;
  uint32_t next;
  value_id gates, last[2], out[SAVED_COUNT];
  TRY(lstm_begin(c, &l, &next));
  TRY(input_gates(c, &l, &gates));
  const value_id states[] = {l.cs_prev, l.h_prev}, fixed[] = {gates, l.w, l.bias, l.peep[WCI], l.peep[WCF], l.peep[WCO]};
  struct turns turns = {.count = l.steps, .states = states, .state_count = 2, .fixed = fixed, .fixed_count = FIXED_COUNT};
  turns.row_count = SAVED_COUNT;
  turns.self = &l;
  turns.build = turn_forward;
  TRY(lower_turns(c, &turns, last, out));
  for (uint32_t i = 0; i < SAVED_COUNT; i++) {
    TRY(fill_time(c, &l, &out[i]));
    op_set_output(c, i, out[i]);
  }
  return OK;
}

/* ---- gradient ---- */

/* Inputs behind the cell's: i, cs, f, o, ci, co, [h], cs_grad, h_grad. */
static status lstm_grad_begin(struct op_call *c, struct lstm *l, struct lstm_back *s) {
  static const char *const names[] = {"i", "cs", "f", "o", "ci", "co", "h"};
  uint32_t next;
  *s = (struct lstm_back){0};
  TRY(lstm_begin(c, l, &next));
  int saved = l->timed ? SAVED_COUNT : SAVED_H;
  dim dims[3] = {l->time, l->batch, l->cell};
  for (int i = 0; i < saved + 2; i++) {
    value_id v;
    TRY(op_input(c, next++, &v));
    TRY(expect_shape(c, v, i < saved ? names[i] : "a gradient of cs or h", 2 + l->timed, l->timed ? dims : &dims[1]));
    *(i < saved ? &s->saved[i] : i == saved ? &s->cs_grad : &s->h_grad) = v;
  }
  s->cs_prev = l->cs_prev;
  memcpy(s->peep, l->peep, sizeof s->peep);
  return OK;
}

status build_lstm_cell_grad(struct op_call *c) {
  struct lstm l;
  struct lstm_back s;
  value_id dgates, dcs, peep[3];
  TRY(lstm_grad_begin(c, &l, &s));
  TRY(lstm_backward(c, &l, &s, &dgates, &dcs));
  TRY(lstm_peephole_gradients(c, &l, &s, dgates, peep));
  op_set_output(c, 0, dcs);
  op_set_output(c, 1, dgates);
  for (uint32_t i = 0; i < 3; i++)
    op_set_output(c, 2 + i, peep[i]);
  return OK;
}

/* ---- gradient of a sequence ---- */

enum { BACK_W, BACK_CS_PREV, BACK_CS_GRAD, BACK_H_GRAD, BACK_PEEP, BACK_SAVED = BACK_PEEP + 3, BACK_COUNT = BACK_SAVED + SAVED_H };

static status turn_backward(const struct turn *turn) {
  const struct lstm *l = turn->self;
  const value_id *fixed = turn->fixed;
  struct lstm_back s = {.row = turn->row, .cs_next = turn->states[0], .h_next = turn->states[1], .cs_prev = fixed[BACK_CS_PREV]};
  s.cs_grad = fixed[BACK_CS_GRAD];
  s.h_grad = fixed[BACK_H_GRAD];
  memcpy(s.peep, fixed + BACK_PEEP, sizeof s.peep);
  memcpy(s.saved, fixed + BACK_SAVED, sizeof *s.saved * SAVED_H);
  TRY(lstm_backward(turn->call, l, &s, &turn->rows[0], &turn->next[0]));
  struct lstm_product p = {.a = turn->rows[0], .b = fixed[BACK_W], .turned_b = true, .skip = l->input};
  p.rows = l->batch;
  p.columns = l->cell;
  p.terms = l->gates;
  return lstm_product(turn->call, l, &p, &turn->next[1]);
}

/* last: gradients of cs_prev and h_prev; dgates: [steps, batch, gates] */
static status run_backward(struct op_call *c, const struct lstm *l, const struct lstm_back *s, value_id *last, value_id *dgates) {
  struct kb kb;
  kb_begin(&kb, c, l->dtype);
  dim state[2] = {l->batch, l->cell};
  uint32_t zeros = kb_out(&kb, l->dtype, 2, state);
  kb_fill(&kb, zeros, 2, state, f_const(&kb.f, 0));
  value_id nothing = kb_value(&kb, zeros);
  TRY(kb_finish_guarded(&kb));
  const value_id states[] = {nothing, nothing};
  value_id fixed[BACK_COUNT] = {l->w, s->cs_prev, s->cs_grad, s->h_grad};
  memcpy(fixed + BACK_PEEP, s->peep, sizeof s->peep);
  memcpy(fixed + BACK_SAVED, s->saved, sizeof *s->saved * SAVED_H);
  struct turns turns = {.count = l->steps, .backwards = true, .states = states, .state_count = 2, .fixed = fixed, .row_count = 1};
  turns.fixed_count = BACK_COUNT;
  turns.self = l;
  turns.build = turn_backward;
  return lower_turns(c, &turns, last, dgates);
}

/* [x, h] of each step that counts, h as it was before: what the weights have been multiplied by. */
static status step_inputs(struct op_call *c, const struct lstm *l, value_id h, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, l->dtype);
  dim dims[3] = {l->steps, l->batch, op_add(c, l->input, l->cell)};
  uint32_t x = kb_in(&kb, l->x), first = kb_in(&kb, l->h_prev), later = kb_in(&kb, h), o = kb_out(&kb, l->dtype, 3, dims);
  for (int hidden = 0; hidden < 2; hidden++) {
    expr_id at[3];
    dims[2] = hidden ? l->cell : l->input;
    kb_loops(&kb, LOOP_PAR, 3, dims, at);
    struct element e = hidden ? lstm_before(&kb, l, first, later, at[0], at[1], at[2]) : kb_load(&kb, x, at);
    if (hidden)
      at[2] = kb_add(&kb, kb_dim(&kb, l->input), at[2]);
    kb_store(&kb, o, at, e);
    kb_close(&kb, 3);
  }
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* d: the gates' gradients, a row for each step and each of its batch. */
static status x_gradient(struct op_call *c, const struct lstm *l, value_id d, value_id *out) {
  struct lstm_product p = {.a = d, .b = l->w, .turned_b = true, .skip = NO_DIM};
  p.rows = lstm_rows(c, l);
  p.columns = l->input;
  p.terms = l->gates;
  TRY(lstm_product(c, l, &p, out));
  dim dims[3] = {l->steps, l->batch, l->input};
  *out = op_alias(c, *out, l->dtype, 3, dims);
  return fill_time(c, l, out);
}

static status weight_gradient(struct op_call *c, const struct lstm *l, value_id h, value_id d, value_id *out) {
  value_id inputs;
  TRY(step_inputs(c, l, h, &inputs));
  dim dims[2] = {lstm_rows(c, l), op_add(c, l->input, l->cell)};
  struct lstm_product p = {.a = op_alias(c, inputs, l->dtype, 2, dims), .b = d, .turned_a = true, .skip = NO_DIM};
  p.rows = dims[1];
  p.columns = l->gates;
  p.terms = dims[0];
  return lstm_product(c, l, &p, out);
}

static status bias_gradient(struct op_call *c, const struct lstm *l, value_id d, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, l->sum);
  uint32_t in = kb_in(&kb, d), o = kb_out(&kb, l->dtype, 1, &l->gates);
  expr_id j = kb_for_dim(&kb, LOOP_PAR, l->gates);
  struct accumulator acc = acc_zero(&kb, l->sum);
  expr_id row = kb_for_dim(&kb, LOOP_RED, lstm_rows(c, l));
  acc_add(&kb, &acc, f_cast(&kb.f, l->sum, load2(&kb, in, row, j)));
  kb_close(&kb, 1);
  store_as(&kb, o, &j, acc_get(&kb, &acc));
  kb_close(&kb, 1);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* Of x, cs_prev, h_prev, w, wci, wcf, wco, b. */
status build_block_lstm_grad(struct op_call *c) {
  struct lstm l;
  struct lstm_back s;
  value_id dgates, out[8];
  TRY(lstm_grad_begin(c, &l, &s));
  TRY(run_backward(c, &l, &s, &out[1], &dgates));
  dim rows[2] = {lstm_rows(c, &l), l.gates};
  value_id d = op_alias(c, dgates, l.dtype, 2, rows);
  TRY(x_gradient(c, &l, d, &out[0]));
  TRY(weight_gradient(c, &l, s.saved[SAVED_H], d, &out[3]));
  TRY(lstm_peephole_gradients(c, &l, &s, dgates, &out[4]));
  TRY(bias_gradient(c, &l, d, &out[7]));
  for (uint32_t i = 0; i < 8; i++)
    op_set_output(c, i, out[i]);
  return OK;
}
