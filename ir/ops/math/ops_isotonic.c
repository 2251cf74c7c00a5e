/* ops_isotonic.c: IsotonicRegression: the closest numbers that never rise, for each row: neighbours that rise are
 * pooled into one block with their mean, until none are left (pool adjacent violators). */
#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"

struct pool {
  struct kb *kb;
  enum dtype dtype;            /* of the sums */
  uint32_t sums, sizes, first; /* of each block: the buffers are rows of the output's shape */
  expr_id at[LIMIT_RANK];
  int rank;
};

static void put(struct pool *p, uint32_t buffer, expr_id block, struct element e) {
  p->at[p->rank - 1] = block;
  kb_store(p->kb, buffer, p->at, e);
}
static struct element get(struct pool *p, uint32_t buffer, expr_id block) {
  p->at[p->rank - 1] = block;
  return kb_load(p->kb, buffer, p->at);
}

static struct element mean(struct pool *p, expr_id block) {
  struct element size = f_cast(&p->kb->f, p->dtype, get(p, p->sizes, block));
  return f_binary(&p->kb->f, SCALAR_DIV, get(p, p->sums, block), size);
}

/* While the last of `count` blocks is above the one before it, the two become one. */
static void pool_last(struct pool *p, uint32_t count, expr_id n) {
  struct kb *kb = p->kb;
  expr_id one = kb_int(kb, 1), two = kb_int(kb, 2);
  uint32_t rises = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_get(kb, rises));
  expr_id last = kb_clamp(kb, kb_sub(kb, kb_get(kb, count), one), n), before = kb_clamp(kb, kb_sub(kb, kb_get(kb, count), two), n);
  expr_id has_two = kb_le(kb, two, kb_get(kb, count));
  kb_set(kb, rises, kb_and(kb, has_two, f_binary(&kb->f, SCALAR_LT, mean(p, before), mean(p, last)).re));
  kb_if(kb, kb_get(kb, rises));
  put(p, p->sums, before, f_binary(&kb->f, SCALAR_ADD, get(p, p->sums, before), get(p, p->sums, last)));
  put(p, p->sizes, before, f_binary(&kb->f, SCALAR_ADD, get(p, p->sizes, before), get(p, p->sizes, last)));
  kb_set(kb, count, kb_sub(kb, kb_get(kb, count), one));
  kb_close(kb, 2);
}

static void write_blocks(struct pool *p, uint32_t count, uint32_t values, uint32_t segments) {
  struct kb *kb = p->kb;
  expr_id block = kb_for(kb, LOOP_SEQ, kb_get(kb, count)), size = kb_get(kb, kb_local(kb, get(p, p->sizes, block).re));
  struct accumulator level = acc_begin(kb, mean(p, block));
  expr_id place = kb_add(kb, get(p, p->first, block).re, kb_for(kb, LOOP_SEQ, size));
  p->at[p->rank - 1] = place;
  store_as(kb, values, p->at, acc_get(kb, &level));
  kb_store(kb, segments, p->at, real_element(expr_cast(kb->k, DTYPE_INT32, block)));
  kb_close(kb, 2);
}

status build_isotonic_regression(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 1)
    return fail(INVALID_ARGUMENT, "Shape must be at least rank 1 but is rank 0");
  enum dtype out = op_output_dtype(c, 0);
  struct kb kb;
  struct pool p = {.kb = &kb, .dtype = sum_dtype(out), .rank = x.rank};
  kb_begin(&kb, c, p.dtype);
  uint32_t in = kb_in(&kb, v), values = kb_out(&kb, out, x.rank, x.dims), segments = kb_out(&kb, DTYPE_INT32, x.rank, x.dims);
  p.sums = kb_out(&kb, p.dtype, x.rank, x.dims);
  p.sizes = kb_out(&kb, DTYPE_INT64, x.rank, x.dims);
  p.first = kb_out(&kb, DTYPE_INT64, x.rank, x.dims);
  kb_loops(&kb, LOOP_PAR, x.rank - 1, x.dims, p.at);
  uint32_t count = kb_local(&kb, kb_int(&kb, 0));
  expr_id n = kb_dim(&kb, x.dims[x.rank - 1]), i = kb_for_dim(&kb, LOOP_SEQ, x.dims[x.rank - 1]), one = kb_int(&kb, 1);
  p.at[x.rank - 1] = i;
  struct accumulator e = acc_begin(&kb, load_as(&kb, p.dtype, in, p.at));
  put(&p, p.sums, kb_get(&kb, count), acc_get(&kb, &e));
  put(&p, p.sizes, kb_get(&kb, count), real_element(one));
  put(&p, p.first, kb_get(&kb, count), real_element(i));
  kb_set(&kb, count, kb_add(&kb, kb_get(&kb, count), one));
  pool_last(&p, count, n);
  kb_close(&kb, 1);
  write_blocks(&p, count, values, segments);
  kb_close(&kb, x.rank - 1);
  op_set_output(c, 0, kb_value(&kb, values));
  op_set_output(c, 1, kb_value(&kb, segments));
  return kb_finish(&kb);
}
