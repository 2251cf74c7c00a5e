/* ops_pool_position.c: the gradients of MaxPoolWithArgmax, which know by position where each maximum was. */
#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/nn/pool.h"

struct positions {
  struct pool pool;
  value_id gradient, argmax;
  bool with_batch;
};

/* input, grad, argmax */
static status positions_begin(struct op_call *c, bool gradient_is_output, struct positions *p) {
  value_id input;
  TRY(op_input(c, 0, &input));
  TRY(op_input(c, 1, &p->gradient));
  TRY(op_input(c, 2, &p->argmax));
  struct flow_value x = *op_value(c, input);
  if (x.rank != 4)
    return fail(INVALID_ARGUMENT, "tensor_in must be 4-dimensional: %s", op_shape_text(c, x.rank, x.dims));
  TRY(pool_begin(c, x.rank, x.dims, UINT32_MAX, &p->pool));
  TRY(pool_check(c, &p->pool, p->gradient, gradient_is_output, "grad"));
  TRY(pool_check(c, &p->pool, p->argmax, true, "argmax"));
  p->with_batch = node_attr_int(c->node, "include_batch_in_index", 0);
  return OK;
}

/* The index into the input that a position names, checked to lie in its batch. */
static void place_of(struct kb *kb, const struct positions *p, uint32_t argmax, const expr_id *index, expr_id *place) {
  const struct pool *pool = &p->pool;
  expr_id at = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, argmax, index))));
  expr_id image = kb_dim(kb, op_count(kb->c, 3, &pool->in[1]));
  expr_id first = p->with_batch ? kb_mul(kb, index[0], image) : kb_int(kb, 0);
  at = kb_sub(kb, at, first);
  kb_check(kb, kb_in_range(kb, at, image), INVALID_ARGUMENT, "Invalid output gradient index: %d, not below %d", at, image);
  place[0] = index[0];
  for (int i = 3; i > 0; i--) {
    expr_id n = kb_dim(kb, pool->in[i]);
    place[i] = kb_mod(kb, at, n);
    at = kb_div(kb, at, n);
  }
}

status build_max_pool_grad_with_argmax(struct op_call *c) {
  struct positions p = {0};
  TRY(positions_begin(c, true, &p));
  enum dtype dtype = op_value(c, p.gradient)->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t g = kb_in(&kb, p.gradient), a = kb_in(&kb, p.argmax), o = kb_out(&kb, dtype, 4, p.pool.in);
  kb_fill(&kb, o, 4, p.pool.in, f_const(&kb.f, 0));
  expr_id index[4], place[4];
  index[0] = kb_for_dim(&kb, LOOP_PAR, p.pool.out[0]);
  kb_loops(&kb, LOOP_SEQ, 3, &p.pool.out[1], &index[1]);
  place_of(&kb, &p, a, index, place);
  kb_store(&kb, o, place, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, o, place), kb_load(&kb, g, index)));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

status build_max_pool_grad_grad_with_argmax(struct op_call *c) {
  struct positions p = {0};
  TRY(positions_begin(c, false, &p));
  enum dtype dtype = op_value(c, p.gradient)->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t g = kb_in(&kb, p.gradient), a = kb_in(&kb, p.argmax), o = kb_out(&kb, dtype, 4, p.pool.out);
  expr_id index[4], place[4];
  kb_loops(&kb, LOOP_PAR, 4, p.pool.out, index);
  place_of(&kb, &p, a, index, place);
  kb_store(&kb, o, index, kb_load(&kb, g, place));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
