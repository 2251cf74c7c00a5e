/* lstm.h: an LSTM cell with peepholes and clipping (Hochreiter and Schmidhuber 1997; Gers et al. 2000), and the kernels of its steps. The
 * four gates are the columns of one matrix: input, then cell and forget (or forget and cell), output. Private to ir/ops. */
#ifndef TFC_IR_OPS_NN_LSTM_H
#define TFC_IR_OPS_NN_LSTM_H

#include "ir/ops/nn/cell.h"

enum gate { GATE_INPUT, GATE_CELL, GATE_FORGET, GATE_OUTPUT };
enum { WCI, WCF, WCO };
enum { SAVED_I, SAVED_CS, SAVED_F, SAVED_O, SAVED_CI, SAVED_CO, SAVED_H, SAVED_COUNT }; /* what a step gives, in TensorFlow's order */

struct lstm {
  bool timed; /* a sequence [time, batch, ...] */
  bool peephole, forget_first;
  dim time, batch, input, cell, gates;
  dim steps; /* that count: the first of `time`; 1 where there is no time */
  enum dtype dtype, sum;
  value_id limit, x, cs_prev, h_prev, w, peep[3], bias; /* limit: steps that count */
};

/* Inputs [seq_len_max], x, cs_prev, h_prev, w, wci, wcf, wco, b; *next: the number of the input behind them. */
status lstm_begin(struct op_call *c, struct lstm *l, uint32_t *next);
/* The rows of all steps that count, one below the other. */
dim lstm_rows(struct op_call *c, const struct lstm *l);

/* ---- products ---- */

/* Of matrices in the cell's dtype, summed in one wide enough. */
struct lstm_product {
  value_id a, b;
  bool turned_a, turned_b; /* transposed */
  dim rows, columns, terms;
  dim skip;     /* so many rows of b are in front of those that it takes; NO_DIM: none */
  bool is_wide; /* not rounded to the cell's dtype yet */
};
status lstm_product(struct op_call *c, const struct lstm *l, const struct lstm_product *p, value_id *out);

/* ---- a step forward ---- */

/* What a step's kernels read: as they are in the flow that the kernels are added to. */
struct lstm_step {
  value_id gates; /* what x gives to them in all steps: [steps, batch, gates], wide; of one step without the first dimension */
  value_id row;   /* the step's number; NO_VALUE where there is no time */
  value_id cs_prev, h_prev, w, bias, peep[3];
};
/* out: SAVED_COUNT of [batch, cell] */
status lstm_forward(struct op_call *c, const struct lstm *l, const struct lstm_step *s, value_id *out);

/* ---- a step backward ---- */

struct lstm_back {
  value_id row;                                 /* as above; of a sequence the following have all steps: */
  value_id saved[SAVED_COUNT], cs_grad, h_grad; /* saved[SAVED_H] is not read */
  value_id cs_prev, peep[3];                    /* cs_prev: before the first step */
  value_id cs_next, h_next;                     /* of a sequence: gradients from later steps */
};
/* dgates: of the gates' sums [batch, gates]; dcs: of the state before [batch, cell]. */
status lstm_backward(struct op_call *c, const struct lstm *l, const struct lstm_back *s, value_id *dgates, value_id *dcs);
/* Gradients of wci, wcf, wco over all steps; dgates: of all of them. Zeros without peepholes. */
status lstm_peephole_gradients(struct op_call *c, const struct lstm *l, const struct lstm_back *s, value_id dgates, value_id *out);
/* The state before step t: an element of `first`, [batch, cell], or of the step before in `later`, buffers of the kernel. */
struct element lstm_before(struct kb *kb, const struct lstm *l, uint32_t first, uint32_t later, expr_id t, expr_id b, expr_id j);

#endif
