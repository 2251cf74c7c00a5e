/* ops_ctc.c: connectionist temporal classification: CTCLoss with its gradient, CTCGreedyDecoder.
 *
 * Graves et al. 2006: the labels with blanks around them are the states u of a chain; alpha(t, u) is the log-probability of
 * the ways that reach u at time t, beta(t, u) of those that go on from there. The last class is the blank. */
#include <math.h>
#include <string.h>

#include "ir/ops/arrange.h"

/* log(e^a + e^b); -inf is log 0. */
static expr_id log_sum(struct kb *kb, expr_id a, expr_id b) {
  enum dtype dtype = (enum dtype)expr_get(kb->k, a)->dtype;
  expr_id top = expr_binary(kb->k, SCALAR_MAX, a, b), low = expr_binary(kb->k, SCALAR_MIN, a, b);
  expr_id none = expr_float(kb->k, dtype, -INFINITY);
  expr_id sum = kb_add(kb, top, expr_unary(kb->k, SCALAR_LOG1P, expr_unary(kb->k, SCALAR_EXP, kb_sub(kb, low, top))));
  return kb_select(kb, kb_eq(kb, low, none), top, sum);
}

struct ctc {
  value_id inputs, indices, labels, lengths;
  enum dtype dtype;
  dim times, batch, classes, count, states; /* count: of labels of all; states: of the longest chain */
  bool merges, collapses, ignores_longer;
  value_id firsts; /* i64 [batch + 1]: where each row's labels begin */
  /* in the kernel */
  uint32_t in, chain, alpha, beta, probs;
};

/* ---- labels ---- */

/* Where each row's labels begin, and the longest row; indices ascend by row. */
static status find_labels(struct op_call *c, struct ctc *t) {
  dim rows = op_add(c, t->batch, op_dim(c, 1)), longest;
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t in = kb_in(&kb, t->indices), firsts = kb_out(&kb, DTYPE_INT64, 1, &rows), most = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1), n = kb_dim(&kb, t->batch);
  kb_fill(&kb, firsts, 1, &rows, real_element(zero));
  expr_id at[2] = {kb_for_dim(&kb, LOOP_SEQ, t->count), zero}, row = kb_get(&kb, kb_local(&kb, kb_load(&kb, in, at).re));
  kb_check(&kb, kb_in_range(&kb, row, n), INVALID_ARGUMENT, "label batch index must be between 0 and %d, but saw %d", n, row);
  expr_id after = kb_add(&kb, row, one);
  kb_store(&kb, firsts, &after, real_element(kb_add(&kb, kb_load(&kb, firsts, &after).re, one)));
  kb_close(&kb, 1);
  uint32_t top = kb_local(&kb, zero);
  expr_id b = kb_for(&kb, LOOP_SEQ, n), next = kb_add(&kb, b, one), own = kb_get(&kb, kb_local(&kb, kb_load(&kb, firsts, &next).re));
  kb_set(&kb, top, expr_binary(kb.k, SCALAR_MAX, kb_get(&kb, top), own));
  kb_store(&kb, firsts, &next, real_element(kb_add(&kb, own, kb_load(&kb, firsts, &b).re)));
  kb_close(&kb, 1);
  kb_store(&kb, most, NULL, real_element(kb_get(&kb, top)));
  t->firsts = kb_value(&kb, firsts);
  value_id v = kb_value(&kb, most);
  TRY(kb_finish_guarded(&kb));
  TRY(op_bound_dims(c, v, 1, &longest));
  t->states = op_add(c, op_mul(c, longest, op_dim(c, 2)), op_dim(c, 1));
  return OK;
}

/* chain[b, :] = blank, label, blank, ...; two locals: the number of states, and that of labels. Labels from the blank on end
 * the list. */
static void store_chain(struct kb *kb, const struct ctc *t, expr_id b, uint32_t *states, expr_id *given) {
  expr_id one = kb_int(kb, 1), two = kb_int(kb, 2), blank = kb_sub(kb, kb_dim(kb, t->classes), one), next = kb_add(kb, b, one);
  expr_id yes = expr_int(kb->k, DTYPE_BOOL, 1);
  uint32_t firsts = kb_in(kb, t->firsts), labels = kb_in(kb, t->labels);
  expr_id first = kb_get(kb, kb_local(kb, kb_load(kb, firsts, &b).re)), end = kb_get(kb, kb_local(kb, kb_load(kb, firsts, &next).re));
  *given = kb_sub(kb, end, first);
  kb_check(kb, kb_lt(kb, kb_int(kb, 0), *given), INVALID_ARGUMENT, "Labels length is zero in batch %d", b, NO_EXPR);
  kb_store(kb, t->chain, (expr_id[]){b, kb_int(kb, 0)}, real_element(blank));
  *states = kb_local(kb, one);
  uint32_t previous = kb_local(kb, kb_int(kb, -1)), ended = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 0));
  expr_id i = kb_add(kb, first, kb_for(kb, LOOP_SEQ, *given));
  expr_id label = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, labels, &i))));
  kb_if(kb, t->collapses ? kb_ne(kb, label, kb_get(kb, previous)) : yes);
  kb_check(kb, kb_le(kb, kb_int(kb, 0), label), INVALID_ARGUMENT, "All labels must be nonnegative integers, batch: %d label: %d", b, label);
  kb_if(kb, kb_le(kb, blank, label));
  kb_set(kb, ended, yes);
  kb_else(kb);
  kb_check(kb, kb_eq(kb, kb_get(kb, ended), expr_int(kb->k, DTYPE_BOOL, 0)), INVALID_ARGUMENT,
           "Saw a non-null label (index >= num_classes - 1) following a null label, batch: %d label: %d", b, label);
  expr_id place = kb_get(kb, *states);
  kb_store(kb, t->chain, (expr_id[]){b, place}, real_element(label));
  kb_store(kb, t->chain, (expr_id[]){b, kb_add(kb, place, one)}, real_element(blank));
  kb_set(kb, *states, kb_add(kb, place, two));
  kb_close(kb, 2);
  kb_set(kb, previous, label);
  kb_close(kb, 1);
}

/* ---- the chain ---- */

/* probs[b, t, :] = softmax of the inputs' row */
static void store_softmax(struct kb *kb, const struct ctc *t, expr_id b, expr_id time) {
  expr_id row[3] = {time, b, NO_EXPR}, to[3] = {b, time, NO_EXPR};
  uint32_t top = kb_local(kb, expr_float(kb->k, t->dtype, -INFINITY)), sum = kb_local(kb, expr_float(kb->k, t->dtype, 0));
  row[2] = kb_for_dim(kb, LOOP_SEQ, t->classes);
  kb_set(kb, top, expr_binary(kb->k, SCALAR_MAX, kb_get(kb, top), kb_load(kb, t->in, row).re));
  kb_close(kb, 1);
  row[2] = to[2] = kb_for_dim(kb, LOOP_SEQ, t->classes);
  kb_store(kb, t->probs, to, real_element(expr_unary(kb->k, SCALAR_EXP, kb_sub(kb, kb_load(kb, t->in, row).re, kb_get(kb, top)))));
  kb_set(kb, sum, kb_add(kb, kb_get(kb, sum), kb_load(kb, t->probs, to).re));
  kb_close(kb, 1);
  to[2] = kb_for_dim(kb, LOOP_SEQ, t->classes);
  kb_store(kb, t->probs, to, real_element(expr_binary(kb->k, SCALAR_DIV, kb_load(kb, t->probs, to).re, kb_get(kb, sum))));
  kb_close(kb, 1);
}

static expr_id label_at(struct kb *kb, const struct ctc *t, expr_id b, expr_id u) {
  return kb_get(kb, kb_local(kb, kb_load(kb, t->chain, (expr_id[]){b, u}).re));
}
static expr_id log_prob(struct kb *kb, const struct ctc *t, expr_id b, expr_id time, expr_id label) {
  return expr_unary(kb->k, SCALAR_LOG, kb_load(kb, t->probs, (expr_id[]){b, time, label}).re);
}

/* sum += what comes from state v at another time: alpha there, or beta and the probability of v there. */
static void add_way(struct kb *kb, const struct ctc *t, uint32_t sum, bool forward, expr_id b, expr_id time, expr_id v) {
  expr_id way = kb_load(kb, forward ? t->alpha : t->beta, (expr_id[]){b, time, v}).re;
  if (!forward)
    way = kb_add(kb, way, log_prob(kb, t, b, time, label_at(kb, t, b, v)));
  kb_set(kb, sum, log_sum(kb, kb_get(kb, sum), way));
}

/* All ways between state u and its neighbours at the time before (forward) or after: itself, the next, and the next but one
 * when that is another label and no blank. */
static void add_ways(struct kb *kb, const struct ctc *t, uint32_t sum, bool forward, expr_id b, expr_id time, expr_id u, expr_id states) {
  expr_id one = kb_int(kb, 1), two = kb_int(kb, 2), blank = kb_sub(kb, kb_dim(kb, t->classes), one), own = label_at(kb, t, b, u);
  expr_id near = forward ? kb_sub(kb, u, one) : kb_add(kb, u, one), far = forward ? kb_sub(kb, u, two) : kb_add(kb, u, two);
  if (!t->merges)
    kb_if(kb, kb_eq(kb, own, blank));
  add_way(kb, t, sum, forward, b, time, u);
  if (!t->merges)
    kb_close(kb, 1);
  kb_if(kb, kb_in_range(kb, near, states));
  add_way(kb, t, sum, forward, b, time, near);
  kb_close(kb, 1);
  kb_if(kb, kb_and(kb, kb_in_range(kb, far, states), kb_ne(kb, own, blank)));
  if (t->merges)
    kb_if(kb, kb_ne(kb, label_at(kb, t, b, far), own));
  add_way(kb, t, sum, forward, b, time, far);
  kb_close(kb, t->merges ? 2 : 1);
}

static void store_alpha(struct kb *kb, const struct ctc *t, expr_id b, expr_id length, expr_id states) {
  expr_id one = kb_int(kb, 1), time = kb_for(kb, LOOP_SEQ, length), u = kb_for(kb, LOOP_SEQ, states);
  uint32_t sum = kb_local(kb, expr_float(kb->k, t->dtype, -INFINITY));
  kb_if(kb, kb_lt(kb, kb_int(kb, 0), time));
  add_ways(kb, t, sum, true, b, kb_sub(kb, time, one), u, states);
  kb_else(kb);
  kb_if(kb, kb_le(kb, u, one)); /* a way begins with the first blank or label */
  kb_set(kb, sum, expr_float(kb->k, t->dtype, 0));
  kb_close(kb, 2);
  expr_id p = log_prob(kb, t, b, time, label_at(kb, t, b, u));
  kb_store(kb, t->alpha, (expr_id[]){b, time, u}, real_element(kb_add(kb, p, kb_get(kb, sum))));
  kb_close(kb, 2);
}
static void store_beta(struct kb *kb, const struct ctc *t, expr_id b, expr_id length, expr_id states) {
  expr_id one = kb_int(kb, 1), two = kb_int(kb, 2), last = kb_sub(kb, length, one);
  expr_id time = kb_get(kb, kb_local(kb, kb_sub(kb, last, kb_for(kb, LOOP_SEQ, length)))), u = kb_for(kb, LOOP_SEQ, states);
  uint32_t sum = kb_local(kb, expr_float(kb->k, t->dtype, -INFINITY));
  kb_if(kb, kb_lt(kb, time, last));
  add_ways(kb, t, sum, false, b, kb_add(kb, time, one), u, states);
  kb_else(kb);
  kb_if(kb, kb_le(kb, kb_sub(kb, states, two), u)); /* and ends with the last label or blank */
  kb_set(kb, sum, expr_float(kb->k, t->dtype, 0));
  kb_close(kb, 2);
  kb_store(kb, t->beta, (expr_id[]){b, time, u}, real_element(kb_get(kb, sum)));
  kb_close(kb, 2);
}

/* ---- loss and gradient ---- */

/* Row t of the gradient: y(c) - e^(sum over states of c of alpha + beta, less log p). */
static void store_gradient(struct kb *kb, const struct ctc *t, uint32_t grad, expr_id b, expr_id length, expr_id states, expr_id log_p) {
  expr_id time = kb_for(kb, LOOP_SEQ, length), to[3] = {time, b, NO_EXPR};
  to[2] = kb_for_dim(kb, LOOP_SEQ, t->classes);
  expr_id y = kb_load(kb, t->probs, (expr_id[]){b, time, to[2]}).re;
  kb_store(kb, grad, to, real_element(y));
  kb_close(kb, 1);
  kb_if(kb, kb_lt(kb, expr_float(kb->k, t->dtype, -INFINITY), log_p));
  expr_id u = kb_for(kb, LOOP_SEQ, states), index[3] = {b, time, u};
  expr_id share = kb_sub(kb, kb_add(kb, kb_load(kb, t->alpha, index).re, kb_load(kb, t->beta, index).re), log_p);
  to[2] = label_at(kb, t, b, u);
  kb_store(kb, grad, to, real_element(kb_sub(kb, kb_load(kb, grad, to).re, expr_unary(kb->k, SCALAR_EXP, share))));
  kb_close(kb, 3);
}

static void store_loss(struct kb *kb, const struct ctc *t, uint32_t loss, uint32_t grad, expr_id b, expr_id length, expr_id states) {
  expr_id time = kb_for(kb, LOOP_SEQ, length);
  store_softmax(kb, t, b, time);
  kb_close(kb, 1);
  store_alpha(kb, t, b, length, states);
  store_beta(kb, t, b, length, states);
  uint32_t log_p = kb_local(kb, expr_float(kb->k, t->dtype, -INFINITY));
  expr_id u = kb_for(kb, LOOP_SEQ, states), index[3] = {b, kb_int(kb, 0), u};
  kb_set(kb, log_p, log_sum(kb, kb_get(kb, log_p), kb_add(kb, kb_load(kb, t->alpha, index).re, kb_load(kb, t->beta, index).re)));
  kb_close(kb, 1);
  kb_store(kb, loss, &b, real_element(expr_unary(kb->k, SCALAR_NEG, kb_get(kb, log_p))));
  store_gradient(kb, t, grad, b, length, states, kb_get(kb, log_p));
}

static status read_ctc(struct op_call *c, struct ctc *t) {
  TRY(op_input(c, 0, &t->inputs));
  TRY(op_input(c, 1, &t->indices));
  TRY(op_input(c, 2, &t->labels));
  TRY(op_input(c, 3, &t->lengths));
  t->collapses = node_attr_int(c->node, "preprocess_collapse_repeated", 0) != 0;
  t->merges = node_attr_int(c->node, "ctc_merge_repeated", 1) != 0;
  t->ignores_longer = node_attr_int(c->node, "ignore_longer_outputs_than_inputs", 0) != 0;
  struct flow_value x = *op_value(c, t->inputs), i = *op_value(c, t->indices), v = *op_value(c, t->labels), s = *op_value(c, t->lengths);
  if (x.rank != 3 || i.rank != 2 || v.rank != 1 || s.rank != 1)
    return fail(INVALID_ARGUMENT, "inputs must be 3-D, labels_indices a matrix, labels_values and sequence_length vectors: %s, %s",
                op_shape_text(c, x.rank, x.dims), op_shape_text(c, i.rank, i.dims));
  t->dtype = x.dtype;
  t->times = x.dims[0], t->batch = x.dims[1], t->classes = x.dims[2], t->count = i.dims[0];
  TRY(op_require_le(c, op_dim(c, 1), t->classes, "num_classes must be at least %d, not %d"));
  TRY(op_require_le(c, op_dim(c, 1), t->times, "max_time must be at least %d, not %d"));
  TRY(op_require_le(c, op_dim(c, 1), t->batch, "batch_size must be at least %d, not %d"));
  TRY(op_equal_dims(c, i.dims[1], op_dim(c, 2), "the columns of labels_indices"));
  TRY(op_equal_dims(c, v.dims[0], i.dims[0], "labels_indices and labels_values must contain the same number of rows"));
  return op_equal_dims(c, s.dims[0], t->batch, "sequence_length and the batch");
}

status build_ctc_loss(struct op_call *c) {
  struct ctc t = {0};
  TRY(read_ctc(c, &t));
  TRY(find_labels(c, &t));
  dim grads[3] = {t.times, t.batch, t.classes}, chains[2] = {t.batch, t.states}, ways[3] = {t.batch, t.times, t.states},
      probs[3] = {t.batch, t.times, t.classes};
  struct kb kb;
  kb_begin(&kb, c, t.dtype);
  uint32_t lengths = kb_in(&kb, t.lengths), loss = kb_out(&kb, t.dtype, 1, &t.batch), grad = kb_out(&kb, t.dtype, 3, grads);
  t.in = kb_in(&kb, t.inputs);
  t.chain = kb_scratch(&kb, DTYPE_INT64, 2, chains);
  t.alpha = kb_scratch(&kb, t.dtype, 3, ways);
  t.beta = kb_scratch(&kb, t.dtype, 3, ways);
  t.probs = kb_scratch(&kb, t.dtype, 3, probs);
  struct element zero = f_const_as(&kb.f, t.dtype, 0);
  kb_fill(&kb, grad, 3, grads, zero);
  kb_fill(&kb, loss, 1, &t.batch, zero);
  expr_id b = kb_for_dim(&kb, LOOP_PAR, t.batch), length = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, lengths, &b))));
  kb_check(&kb, kb_and(&kb, kb_le(&kb, kb_int(&kb, 0), length), kb_le(&kb, length, kb_dim(&kb, t.times))), INVALID_ARGUMENT,
           "sequence_length(%d) = %d is not between 0 and the number of times", b, length);
  uint32_t states;
  expr_id given;
  store_chain(&kb, &t, b, &states, &given);
  expr_id fits = kb_le(&kb, given, length);
  if (t.ignores_longer)
    kb_if(&kb, fits);
  else
    kb_check(&kb, fits, INVALID_ARGUMENT, "Not enough time for target transition sequence (required: %d, available: %d)", given, length);
  store_loss(&kb, &t, loss, grad, b, length, kb_get(&kb, states));
  kb_close(&kb, t.ignores_longer ? 2 : 1);
  op_set_output(c, 0, kb_value(&kb, loss));
  op_set_output(c, 1, kb_value(&kb, grad));
  return kb_finish_guarded(&kb);
}
