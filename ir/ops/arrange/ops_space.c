/* ops_space.c: blocks of space moved into depth or batch and back: one nest over the output with div and mod. */
#include <string.h>

#include "ir/ops/arrange.h"

/* ---- SpaceToDepth, DepthToSpace ---- */

struct layout {
  int batch, height, width, depth;
};

static status read_layout(struct op_call *c, const struct flow_value *x, struct layout *out) {
  const char *format = node_attr_string(c->node, "data_format", "NHWC");
  if (x->rank != 4)
    return fail(strcmp(format, "NCHW_VECT_C") == 0 ? UNIMPLEMENTED : INVALID_ARGUMENT, "Input rank should be: 4 instead of: %d", x->rank);
  if (strcmp(format, "NHWC") == 0)
    *out = (struct layout){0, 1, 2, 3};
  else if (strcmp(format, "NCHW") == 0)
    *out = (struct layout){0, 2, 3, 1};
  else
    return fail(UNIMPLEMENTED, "data_format %s", format);
  return OK;
}

/* `by`: at least 1 */
static status divided(struct op_call *c, dim n, dim by, const char *what, dim *out) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id size = kb_dim(&guard, n), block = kb_dim(&guard, by);
  kb_check(&guard, kb_eq(&guard, kb_mod(&guard, size, block), kb_int(&guard, 0)), INVALID_ARGUMENT,
           arena_printf(op_arena(c), "%s %%d should be divisible by %%d", what), size, block);
  *out = dim_floordiv(op_dims(c), n, by);
  return guard_finish(&guard);
}

static status block_input(struct op_call *c, value_id *v, struct layout *l, int64_t *block) {
  TRY(op_input(c, 0, v));
  struct flow_value x = *op_value(c, *v);
  *block = node_attr_int(c->node, "block_size", 0);
  if (*block < 2)
    return fail(INVALID_ARGUMENT, "Block size should be > 1: %lld", (long long)*block);
  if (*block > 1 << 20)
    return fail(INVALID_ARGUMENT, "Block size %lld is too large", (long long)*block);
  return read_layout(c, &x, l);
}

status build_space_to_depth(struct op_call *c) {
  value_id v;
  struct layout l;
  int64_t block;
  TRY(block_input(c, &v, &l, &block));
  struct flow_value x = *op_value(c, v);
  dim dims[4] = {x.dims[0], x.dims[1], x.dims[2], x.dims[3]}, depth = x.dims[l.depth];
  TRY(divided(c, x.dims[l.height], op_dim(c, block), "Image height", &dims[l.height]));
  TRY(divided(c, x.dims[l.width], op_dim(c, block), "Image width", &dims[l.width]));
  dims[l.depth] = op_mul(c, depth, op_dim(c, block * block));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, 4, dims);
  expr_id at[4], from[4], n = kb_int(&kb, block), d = kb_dim(&kb, depth);
  kb_loops(&kb, LOOP_PAR, 4, dims, at);
  expr_id place = kb_div(&kb, at[l.depth], d);
  from[l.batch] = at[l.batch];
  from[l.depth] = kb_mod(&kb, at[l.depth], d);
  from[l.height] = kb_add(&kb, kb_mul(&kb, at[l.height], n), kb_div(&kb, place, n));
  from[l.width] = kb_add(&kb, kb_mul(&kb, at[l.width], n), kb_mod(&kb, place, n));
  kb_store(&kb, out, at, kb_load(&kb, in, from));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_depth_to_space(struct op_call *c) {
  value_id v;
  struct layout l;
  int64_t block;
  TRY(block_input(c, &v, &l, &block));
  struct flow_value x = *op_value(c, v);
  dim dims[4] = {x.dims[0], x.dims[1], x.dims[2], x.dims[3]};
  TRY(divided(c, x.dims[l.depth], op_dim(c, block * block), "Input depth dimension", &dims[l.depth]));
  dims[l.height] = op_mul(c, x.dims[l.height], op_dim(c, block));
  dims[l.width] = op_mul(c, x.dims[l.width], op_dim(c, block));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, 4, dims);
  expr_id at[4], from[4], n = kb_int(&kb, block), depth = kb_dim(&kb, dims[l.depth]);
  kb_loops(&kb, LOOP_PAR, 4, dims, at);
  expr_id place = kb_add(&kb, kb_mul(&kb, kb_mod(&kb, at[l.height], n), n), kb_mod(&kb, at[l.width], n));
  from[l.batch] = at[l.batch];
  from[l.depth] = kb_add(&kb, kb_mul(&kb, place, depth), at[l.depth]);
  from[l.height] = kb_div(&kb, at[l.height], n);
  from[l.width] = kb_div(&kb, at[l.width], n);
  kb_store(&kb, out, at, kb_load(&kb, in, from));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- batch ---- */

/* Blocks of the dimensions 1 .. count; what is padded (or cropped) before and after each is an input [count, 2]. */
struct blocks {
  int count;
  dim size[LIMIT_RANK], product;
  value_id borders;
};

/* The sizes of blocks that a vector says. */
static status given_blocks(struct op_call *c, struct blocks *b) {
  value_id shape;
  TRY(op_input(c, 1, &shape));
  if (op_value(c, shape)->rank != 1)
    return fail(INVALID_ARGUMENT, "block_shape rank should be 1 instead of %d", op_value(c, shape)->rank);
  TRY(op_vector_length(c, shape, "block_shape", &b->count));
  if (b->count > LIMIT_RANK)
    return OK; /* no input has so many dimensions */
  struct kb guard;
  guard_begin(&guard, c);
  expr_id one = kb_int(&guard, 1), most = kb_int(&guard, INT32_MAX), product = one;
  for (int i = 0; i < b->count; i++) {
    expr_id n = kb_element(&guard, shape, i);
    kb_check(&guard, kb_le(&guard, one, n), INVALID_ARGUMENT, "All values in block_shape must be positive, got value, %d at index %d", n,
             kb_int(&guard, i));
    kb_check(&guard, kb_le(&guard, n, kb_div(&guard, most, product)), INVALID_ARGUMENT, "block_shape is too large", NO_EXPR, NO_EXPR);
    product = kb_mul(&guard, product, n);
  }
  TRY(guard_finish(&guard));
  return op_bound_dims(c, shape, b->count, b->size);
}

static status read_blocks(struct op_call *c, const struct flow_value *x, struct blocks *b) {
  int64_t own = node_attr_int(c->node, "block_size", 0);
  bool has_shape = op_takes(c, "block_shape");
  *b = (struct blocks){.count = 2, .size = {op_dim(c, own), op_dim(c, own)}, .product = op_dim(c, 1)};
  if (!has_shape && own > INT32_MAX / own)
    return fail(INVALID_ARGUMENT, "Block size %lld is too large", (long long)own);
  if (!has_shape && x->rank != 4)
    return fail(INVALID_ARGUMENT, "Input rank should be: 4 instead of: %d", x->rank);
  if (has_shape)
    TRY(given_blocks(c, b));
  if (x->rank < 1 + b->count)
    return fail(INVALID_ARGUMENT, "input rank should be >= %d instead of %d", 1 + b->count, x->rank);
  TRY(op_input(c, has_shape ? 2 : 1, &b->borders));
  struct flow_value p = *op_value(c, b->borders);
  dim wanted[] = {op_dim(c, b->count), op_dim(c, 2)};
  for (int d = 0; d < 2; d++)
    if (p.rank != 2 || op_equal_dims(c, p.dims[d], wanted[d], "sizes of paddings or crops") != OK)
      return fail(INVALID_ARGUMENT, "paddings or crops should have shape [%d, 2] instead of %s", b->count,
                  op_shape_text(c, p.rank, p.dims));
  b->borders = op_alias(c, b->borders, p.dtype, 2, wanted);
  for (int i = 0; i < b->count; i++)
    b->product = op_mul(c, b->product, b->size[i]);
  return OK;
}

/* n + borders, or n less the borders: known, symbolic or bound. */
static status bordered(struct op_call *c, const struct blocks *b, int i, dim n, bool grows, dim *out) {
  struct kb guard, kb;
  guard_begin(&guard, c);
  expr_id zero = kb_int(&guard, 0), before = kb_element(&guard, b->borders, 2 * i), after = kb_element(&guard, b->borders, 2 * i + 1);
  kb_check(&guard, kb_and(&guard, kb_le(&guard, zero, before), kb_le(&guard, zero, after)), INVALID_ARGUMENT,
           "paddings and crops must be non-negative: %d %d", before, after);
  if (!grows)
    kb_check(&guard, kb_le(&guard, kb_add(&guard, before, after), kb_dim(&guard, n)), INVALID_ARGUMENT, "cropped_shape[%d] is negative",
             kb_int(&guard, i), NO_EXPR);
  TRY(guard_finish(&guard));
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id both = kb_add(&kb, kb_element(&kb, b->borders, 2 * i), kb_element(&kb, b->borders, 2 * i + 1)), size = kb_dim(&kb, n);
  kb_store(&kb, o, NULL, real_element(grows ? kb_add(&kb, size, both) : kb_sub(&kb, size, both)));
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, out);
}

/* What lies in the padding is zero: stored first, then the elements of x at their places. */
static void store_blocks(struct kb *kb, const struct blocks *b, const struct flow_value *x, uint32_t in, uint32_t out, const dim *dims) {
  expr_id at[LIMIT_RANK], to[LIMIT_RANK], block = kb_int(kb, 0);
  kb_fill(kb, out, x->rank, dims, kb_zero(kb, x->dtype));
  kb_loops(kb, LOOP_PAR, x->rank, x->dims, at);
  memcpy(to, at, sizeof at);
  for (int i = 0; i < b->count; i++) {
    expr_id place = kb_add(kb, at[i + 1], kb_element(kb, b->borders, 2 * i)), size = kb_dim(kb, b->size[i]);
    to[i + 1] = kb_div(kb, place, size);
    block = kb_add(kb, kb_mul(kb, block, size), kb_mod(kb, place, size));
  }
  to[0] = kb_add(kb, kb_mul(kb, block, kb_dim(kb, x->dims[0])), at[0]);
  kb_store(kb, out, to, kb_load(kb, in, at));
  kb_close(kb, x->rank);
}

status build_space_to_batch(struct op_call *c) {
  value_id v;
  struct blocks b;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(read_blocks(c, &x, &b));
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  for (int i = 0; i < b.count; i++) {
    TRY(bordered(c, &b, i, x.dims[i + 1], true, &dims[i + 1]));
    TRY(divided(c, dims[i + 1], b.size[i], "padded_shape", &dims[i + 1]));
  }
  dims[0] = op_mul(c, x.dims[0], b.product);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, dims);
  store_blocks(&kb, &b, &x, in, out, dims);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_batch_to_space(struct op_call *c) {
  value_id v;
  struct blocks b;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(read_blocks(c, &x, &b));
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  TRY(divided(c, x.dims[0], b.product, "Batch dimension", &dims[0]));
  for (int i = 0; i < b.count; i++)
    TRY(bordered(c, &b, i, op_mul(c, x.dims[i + 1], b.size[i]), false, &dims[i + 1]));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id at[LIMIT_RANK], from[LIMIT_RANK], block = kb_int(&kb, 0);
  kb_loops(&kb, LOOP_PAR, x.rank, dims, at);
  memcpy(from, at, sizeof at);
  for (int i = 0; i < b.count; i++) {
    expr_id place = kb_add(&kb, at[i + 1], kb_element(&kb, b.borders, 2 * i)), size = kb_dim(&kb, b.size[i]);
    from[i + 1] = kb_div(&kb, place, size);
    block = kb_add(&kb, kb_mul(&kb, block, size), kb_mod(&kb, place, size));
  }
  from[0] = kb_add(&kb, kb_mul(&kb, block, kb_dim(&kb, dims[0])), at[0]);
  kb_store(&kb, out, at, kb_load(&kb, in, from));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
