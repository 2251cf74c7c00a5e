/* ops_softmax.c: softmax over the last axis and the losses made of it. The largest logit is subtracted first, so that no
 * exponential overflows; half and bfloat16 are computed in float. */

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/op_rows.h"

/* One row of logits while a kernel is in its loops: loads x - max, with max and sum already computed. Exponentials wait where the result
 * made of them will be, if that has their dtype: the row stays in the first cache, and to compute them again takes longer. But a short row
 * is one vector, which is computed again sooner than part of one can be loaded behind its store. */
#define SHORT_ROW 16
struct row {
  struct kb *kb;
  uint32_t logits, result;
  bool waits;
  int rank, out_rank; /* of the logits; of the loops (logits may be broadcast) */
  dim width;
  enum dtype dtype; /* to compute in */
  struct element max, sum;
};

static struct element row_load(struct row *r, const expr_id *index) {
  return f_cast(&r->kb->f, r->dtype, kb_load_broadcast(r->kb, r->logits, r->out_rank, index));
}
static struct element row_shifted(struct row *r, const expr_id *index) {
  return f_binary(&r->kb->f, SCALAR_SUB, row_load(r, index), r->max);
}
static struct element row_exp(struct row *r, const expr_id *index) {
  return r->waits ? kb_load(r->kb, r->result, index) : f_unary(&r->kb->f, SCALAR_EXP, row_shifted(r, index));
}
static void row_result(struct row *r, uint32_t buffer) {
  r->result = buffer;
  int64_t width = op_dim_value(r->kb->c, r->width);
  r->waits = r->kb->k->buffers.items[buffer].dtype == r->dtype && !(width >= 0 && width <= SHORT_ROW);
}
static void row_store_exps(struct row *r, expr_id *index) {
  index[r->out_rank - 1] = kb_for_dim(r->kb, LOOP_PAR, r->width);
  kb_store(r->kb, r->result, index, f_unary(&r->kb->f, SCALAR_EXP, row_shifted(r, index)));
  kb_close(r->kb, 1);
}

/* Emits the two reductions, and exponentials that wait between them; index has the outer loops' variables, its last place is used here. */
static void row_begin(struct row *r, expr_id *index) {
  struct kb *kb = r->kb;
  struct accumulator max = acc_begin(kb, f_lowest(&kb->f));
  index[r->out_rank - 1] = kb_for_dim(kb, LOOP_RED, r->width);
  acc_set(kb, &max, f_binary(&kb->f, SCALAR_MAX, acc_get(kb, &max), row_load(r, index)));
  kb_close(kb, 1);
  r->max = acc_get(kb, &max);
  if (r->waits)
    row_store_exps(r, index);
  struct accumulator sum = acc_zero(kb, r->dtype);
  index[r->out_rank - 1] = kb_for_dim(kb, LOOP_RED, r->width);
  acc_add(kb, &sum, row_exp(r, index));
  kb_close(kb, 1);
  r->sum = acc_get(kb, &sum);
}

status build_softmax(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 1)
    return fail(INVALID_ARGUMENT, "logits must have >= 1 dimension, got %s", op_shape_text(c, x.rank, x.dims));
  bool is_log = OP_ROW(c, softmax_row)->log;
  struct kb kb;
  struct row r = {.kb = &kb, .rank = x.rank, .out_rank = x.rank, .width = x.dims[x.rank - 1], .dtype = sum_dtype(x.dtype)};
  kb_begin(&kb, c, r.dtype);
  r.logits = kb_in(&kb, v);
  uint32_t o = kb_out(&kb, x.dtype, x.rank, x.dims);
  if (!is_log)
    row_result(&r, o);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 1, x.dims, index);
  row_begin(&r, index);
  struct element of_row = is_log ? f_unary(&kb.f, SCALAR_LOG, r.sum) : f_binary(&kb.f, SCALAR_DIV, f_const(&kb.f, 1), r.sum);
  struct accumulator once = acc_begin(&kb, of_row);
  of_row = acc_get(&kb, &once);
  index[x.rank - 1] = kb_for_dim(&kb, LOOP_PAR, r.width);
  struct element e =
    is_log ? f_binary(&kb.f, SCALAR_SUB, row_shifted(&r, index), of_row) : f_binary(&kb.f, SCALAR_MUL, row_exp(&r, index), of_row);
  store_as(&kb, o, index, e);
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* loss = sum over classes of label * (log(sum) - (x - max)); backprop = exp(x - max) / sum - label */
status build_softmax_cross_entropy(struct op_call *c) {
  value_id vx, vl;
  TRY(op_input(c, 0, &vx));
  TRY(op_input(c, 1, &vl));
  struct flow_value x = *op_value(c, vx), labels = *op_value(c, vl);
  int rank;
  dim dims[LIMIT_RANK];
  if (x.rank != 2 || labels.rank > 2)
    return fail(INVALID_ARGUMENT, "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional: %s and %s",
                op_shape_text(c, x.rank, x.dims), op_shape_text(c, labels.rank, labels.dims));
  TRY(op_broadcast(c, vx, vl, &rank, dims));
  struct kb kb;
  struct row r = {.kb = &kb, .rank = x.rank, .out_rank = 2, .width = dims[1], .dtype = sum_dtype(x.dtype)};
  kb_begin(&kb, c, r.dtype);
  r.logits = kb_in(&kb, vx);
  uint32_t l = kb_in(&kb, vl), loss = kb_out(&kb, x.dtype, 1, dims), back = kb_out(&kb, x.dtype, 2, dims);
  row_result(&r, back);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, 1, dims, index);
  kb_loops_over(&kb, 2, dims);
  row_begin(&r, index);
  struct accumulator log_sum = acc_begin(&kb, f_unary(&kb.f, SCALAR_LOG, r.sum)), total = acc_zero(&kb, r.dtype);
  index[1] = kb_for_dim(&kb, LOOP_RED, r.width);
  struct element label = f_cast(&kb.f, r.dtype, kb_load_broadcast(&kb, l, 2, index));
  struct element away = f_binary(&kb.f, SCALAR_SUB, acc_get(&kb, &log_sum), row_shifted(&r, index));
  acc_add(&kb, &total, f_binary(&kb.f, SCALAR_MUL, label, away));
  kb_close(&kb, 1);
  store_as(&kb, loss, index, acc_get(&kb, &total));
  index[1] = kb_for_dim(&kb, LOOP_PAR, r.width);
  label = f_cast(&kb.f, r.dtype, kb_load_broadcast(&kb, l, 2, index));
  struct element p = f_binary(&kb.f, SCALAR_DIV, row_exp(&r, index), r.sum);
  store_as(&kb, back, index, f_binary(&kb.f, SCALAR_SUB, p, label));
  kb_close(&kb, 2);
  op_set_output(c, 0, kb_value(&kb, loss));
  op_set_output(c, 1, kb_value(&kb, back));
  return kb_finish(&kb);
}

/* The same with the number of the class as label. */
status build_sparse_softmax_cross_entropy(struct op_call *c) {
  value_id vx, vl;
  TRY(op_input(c, 0, &vx));
  TRY(op_input(c, 1, &vl));
  struct flow_value x = *op_value(c, vx), labels = *op_value(c, vl);
  if (x.rank != 2 || labels.rank != 1)
    return fail(INVALID_ARGUMENT, "logits must be 2-D and labels 1-D, but got shapes %s and %s", op_shape_text(c, x.rank, x.dims),
                op_shape_text(c, labels.rank, labels.dims));
  TRY(op_equal_dims(c, x.dims[0], labels.dims[0], "logits and labels must have the same first dimension"));
  TRY(op_require_le(c, op_dim(c, 1), x.dims[1], "Must have at least %d class, but got %d"));
  struct kb kb;
  struct row r = {.kb = &kb, .rank = 2, .out_rank = 2, .width = x.dims[1], .dtype = sum_dtype(x.dtype)};
  kb_begin(&kb, c, r.dtype);
  r.logits = kb_in(&kb, vx);
  uint32_t l = kb_in(&kb, vl), loss = kb_out(&kb, x.dtype, 1, x.dims), back = kb_out(&kb, x.dtype, 2, x.dims);
  row_result(&r, back);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, 1, x.dims, index);
  expr_id width = kb_dim(&kb, r.width), label = kb_index(&kb, kb_load(&kb, l, index));
  expr_id within = kb_and(&kb, expr_binary(kb.k, SCALAR_LE, kb_int(&kb, 0), label), kb_lt(&kb, label, width));
  kb_check(&kb, within, INVALID_ARGUMENT, "Received a label value of %d which is outside the valid range of [0, %d)", label, width);
  row_begin(&r, index);
  index[1] = label;
  struct element own = row_shifted(&r, index);
  store_as(&kb, loss, index, f_binary(&kb.f, SCALAR_SUB, f_unary(&kb.f, SCALAR_LOG, r.sum), own));
  index[1] = kb_for_dim(&kb, LOOP_PAR, r.width);
  struct element p = f_binary(&kb.f, SCALAR_DIV, row_exp(&r, index), r.sum);
  struct element is_label = real_element(expr_binary(kb.k, SCALAR_EQ, index[1], label));
  store_as(&kb, back, index, f_select(&kb.f, is_label, f_binary(&kb.f, SCALAR_SUB, p, f_const(&kb.f, 1)), p));
  kb_close(&kb, 2);
  op_set_output(c, 0, kb_value(&kb, loss));
  op_set_output(c, 1, kb_value(&kb, back));
  return kb_finish_guarded(&kb);
}
