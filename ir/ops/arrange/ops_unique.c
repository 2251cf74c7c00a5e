/* ops_unique.c: Unique and its forms, ListDiff: elements (or slices along an axis) looked up in a hash table.
 *
 * The table is scratch memory of the kernel: open addressing with twice as many places as keys, holding the number of the
 * key plus one. Strings are hashed by a call into the runtime before (the kernel language only compares them); those that are known while
 * compiling all hash alike. */
#include <string.h>

#include "ir/ops/arrange.h"
#include "ir/lower/host_call.h"

/* Keys are slices [., i, .] of a value seen as [before, count, after]. */
struct keys {
  value_id value;
  enum dtype dtype;
  dim before, count, after;
  value_id hashes; /* of strings: i64, of the same shape; NO_VALUE: none */
};

/* Bits that are equal where elements are: the two zeros of floats are one. */
static expr_id element_bits(struct kb *kb, enum dtype dtype, struct element e) {
  enum dtype part = dtype_real(dtype);
  expr_id x = e.re;
  if (dtype_is_float(part)) {
    expr_id zero = expr_float(kb->k, part, 0);
    x = kb_select(kb, kb_eq(kb, x, zero), zero, x);
    size_t size = dtype_size(part);
    x = expr_bitcast(kb->k, size == 8 ? DTYPE_INT64 : size == 4 ? DTYPE_INT32 : DTYPE_INT16, x);
  }
  return expr_cast(kb->k, DTYPE_UINT64, expr_cast(kb->k, DTYPE_INT64, x));
}

static expr_id u64(struct kb *kb, uint64_t bits) { return expr_bits(kb->k, DTYPE_UINT64, (int64_t)bits); }

/* The first place to look at for key i of the buffer, in a table of `size` places. */
static expr_id key_slot(struct kb *kb, const struct keys *keys, uint32_t buffer, expr_id i, expr_id size) {
  if (keys->dtype == DTYPE_STRING && !keys->hashes)
    return kb_int(kb, 0);
  if (keys->hashes)
    buffer = kb_in(kb, keys->hashes);
  uint32_t hash = kb_local(kb, u64(kb, 0));
  expr_id at[3] = {kb_for_dim(kb, LOOP_SEQ, keys->before), i, NO_EXPR};
  at[2] = kb_for_dim(kb, LOOP_SEQ, keys->after);
  expr_id mixed = kb_add(kb, kb_get(kb, hash), element_bits(kb, kb->k->buffers.items[buffer].dtype, kb_load(kb, buffer, at)));
  mixed = kb_mul(kb, mixed, u64(kb, UINT64_C(0x9e3779b97f4a7c15)));
  kb_set(kb, hash, expr_binary(kb->k, SCALAR_XOR, mixed, expr_binary(kb->k, SCALAR_SHR, mixed, u64(kb, 32))));
  kb_close(kb, 2);
  expr_id slot = expr_binary(kb->k, SCALAR_REM, kb_get(kb, hash), expr_cast(kb->k, DTYPE_UINT64, size));
  return expr_cast(kb->k, DTYPE_INT64, slot);
}

/* A bool local: key i of buffer a equals key j of buffer b. */
static uint32_t keys_equal(struct kb *kb, const struct keys *keys, uint32_t a, expr_id i, uint32_t b, expr_id j) {
  uint32_t equal = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  expr_id x[3] = {kb_for_dim(kb, LOOP_SEQ, keys->before), i, NO_EXPR}, y[3];
  x[2] = kb_for_dim(kb, LOOP_SEQ, keys->after);
  y[0] = x[0], y[1] = j, y[2] = x[2];
  struct element same = f_binary(&kb->f, SCALAR_EQ, kb_load(kb, a, x), kb_load(kb, b, y));
  kb_set(kb, equal, kb_and(kb, kb_get(kb, equal), same.re));
  kb_close(kb, 2);
  return equal;
}

/* A table of keys of `stored` (a buffer); key number t is stored[number[t]] when `number` is a buffer. */
struct table {
  uint32_t slots, stored;
  uint32_t numbers;
  bool has_numbers;
  dim size;
};

static void table_begin(struct kb *kb, struct table *t, dim keys) {
  struct op_call *c = kb->c;
  t->size = op_add(c, op_mul(c, keys, op_dim(c, 2)), op_dim(c, 1));
  t->slots = kb_scratch(kb, DTYPE_INT64, 1, &t->size);
  kb_fill(kb, t->slots, 1, &t->size, real_element(kb_int(kb, 0)));
}

struct found {
  uint32_t slot, number; /* locals: where the search ended; the number of the equal key, -1 without one */
};

/* Looks for key i of `buffer`: walks from its first place to an equal key or a free place. */
static struct found table_find(struct kb *kb, const struct table *t, const struct keys *keys, uint32_t buffer, expr_id i) {
  expr_id size = kb_dim(kb, t->size), one = kb_int(kb, 1), zero = kb_int(kb, 0);
  struct found f = {kb_local(kb, key_slot(kb, keys, buffer, i, size)), kb_local(kb, kb_int(kb, -1))};
  uint32_t open = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_while(kb, kb_get(kb, open));
  expr_id slot = kb_get(kb, f.slot), held = kb_get(kb, kb_local(kb, kb_load(kb, t->slots, &slot).re));
  kb_if(kb, kb_eq(kb, held, zero));
  kb_set(kb, open, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_else(kb);
  expr_id number = kb_sub(kb, held, one), other = number;
  if (t->has_numbers)
    other = kb_get(kb, kb_local(kb, kb_load(kb, t->numbers, &number).re));
  uint32_t equal = keys_equal(kb, keys, buffer, i, t->stored, other);
  kb_if(kb, kb_get(kb, equal));
  kb_set(kb, f.number, number);
  kb_set(kb, open, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_else(kb);
  kb_set(kb, f.slot, kb_mod(kb, kb_add(kb, slot, one), size));
  kb_close(kb, 3);
  return f;
}
static void table_add(struct kb *kb, const struct table *t, const struct found *f, expr_id number) {
  expr_id slot = kb_get(kb, f->slot);
  kb_store(kb, t->slots, &slot, real_element(kb_add(kb, number, kb_int(kb, 1))));
}

/* ---- Unique ---- */

struct unique {
  struct keys keys;
  value_id first;  /* i64 [count of keys]: where each distinct key is first */
  value_id number; /* of each key's distinct one, in the dtype of output 1 */
  dim distinct;
};

static status find_distinct(struct op_call *c, struct unique *u) {
  const struct keys *keys = &u->keys;
  enum dtype number_dtype = op_output_dtype(c, 1);
  struct kb kb;
  kb_begin(&kb, c, keys->dtype);
  uint32_t in = kb_in(&kb, keys->value), count = kb_out(&kb, DTYPE_INT64, 0, NULL);
  uint32_t first = kb_out(&kb, DTYPE_INT64, 1, &keys->count), numbers = kb_out(&kb, number_dtype, 1, &keys->count);
  struct table t = {.stored = in, .numbers = first, .has_numbers = true};
  kb_fill(&kb, first, 1, &keys->count, real_element(kb_int(&kb, 0)));
  table_begin(&kb, &t, keys->count);
  uint32_t distinct = kb_local(&kb, kb_int(&kb, 0));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, keys->count);
  struct found f = table_find(&kb, &t, keys, in, i);
  kb_if(&kb, kb_lt(&kb, kb_get(&kb, f.number), kb_int(&kb, 0)));
  expr_id number = kb_get(&kb, distinct);
  table_add(&kb, &t, &f, number);
  kb_store(&kb, first, &number, real_element(i));
  kb_set(&kb, f.number, number);
  kb_set(&kb, distinct, kb_add(&kb, number, kb_int(&kb, 1)));
  kb_close(&kb, 1);
  kb_store(&kb, numbers, &i, real_element(expr_cast(kb.k, number_dtype, kb_get(&kb, f.number))));
  kb_close(&kb, 1);
  kb_store(&kb, count, NULL, real_element(kb_get(&kb, distinct)));
  u->first = kb_value(&kb, first);
  u->number = kb_value(&kb, numbers);
  value_id total = kb_value(&kb, count);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, total, 1, &u->distinct);
}

/* [before, count, after]: the keys with the given numbers. */
static status take_keys(struct op_call *c, const struct keys *keys, value_id numbers, dim count, value_id *out) {
  dim dims[3] = {keys->before, count, keys->after};
  struct kb kb;
  kb_begin(&kb, c, keys->dtype);
  uint32_t in = kb_in(&kb, keys->value), picks = kb_in(&kb, numbers), o = kb_out(&kb, keys->dtype, 3, dims);
  expr_id at[3];
  kb_loops(&kb, LOOP_PAR, 3, dims, at);
  expr_id from[3] = {at[0], kb_load(&kb, picks, &at[1]).re, at[2]};
  kb_store(&kb, o, at, kb_load(&kb, in, from));
  kb_close(&kb, 3);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

static status count_keys(struct op_call *c, const struct unique *u, value_id *out) {
  enum dtype dtype = op_output_dtype(c, 2);
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t numbers = kb_in(&kb, u->number), o = kb_out(&kb, dtype, 1, &u->distinct);
  kb_fill(&kb, o, 1, &u->distinct, f_const_as(&kb.f, dtype, 0));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, u->keys.count);
  expr_id n = kb_get(&kb, kb_local(&kb, kb_index(&kb, kb_load(&kb, numbers, &i))));
  kb_store(&kb, o, &n, f_binary(&kb.f, SCALAR_ADD, kb_load(&kb, o, &n), f_const_as(&kb.f, dtype, 1)));
  kb_close(&kb, 1);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* Dims around an axis that the step computes: out[0..3) before, count, after. */
static status dims_around(struct op_call *c, const struct flow_value *x, value_id axis, dim *out) {
  struct kb guard, kb;
  guard_begin(&guard, c);
  expr_id a = kb_element(&guard, axis, 0), rank = kb_int(&guard, x->rank);
  kb_check(&guard, kb_in_range(&guard, kb_add(&guard, a, rank), kb_int(&guard, 2 * x->rank)), INVALID_ARGUMENT,
           arena_printf(op_arena(c), "axis has to be between [0, %d)", x->rank), NO_EXPR, NO_EXPR);
  TRY(guard_finish(&guard));
  dim three = op_dim(c, 3);
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &three);
  expr_id own = kb_element(&kb, axis, 0), one = kb_int(&kb, 1), product[3] = {one, one, one};
  own = kb_select(&kb, kb_lt(&kb, own, kb_int(&kb, 0)), kb_add(&kb, own, kb_int(&kb, x->rank)), own);
  for (int d = 0; d < x->rank; d++) {
    expr_id place = kb_int(&kb, d), n = kb_dim(&kb, x->dims[d]);
    product[0] = kb_mul(&kb, product[0], kb_select(&kb, kb_lt(&kb, place, own), n, one));
    product[1] = kb_mul(&kb, product[1], kb_select(&kb, kb_eq(&kb, place, own), n, one));
    product[2] = kb_mul(&kb, product[2], kb_select(&kb, kb_lt(&kb, own, place), n, one));
  }
  for (int i = 0; i < 3; i++) {
    expr_id at = kb_int(&kb, i);
    kb_store(&kb, o, &at, real_element(product[i]));
  }
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 3, out);
}

/* The dims of x with the axis' one replaced. */
static status dims_with(struct op_call *c, const struct flow_value *x, value_id axis, dim count, dim *out) {
  dim length = op_dim(c, x->rank);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t o = kb_out(&kb, DTYPE_INT64, 1, &length);
  expr_id own = kb_element(&kb, axis, 0);
  own = kb_select(&kb, kb_lt(&kb, own, kb_int(&kb, 0)), kb_add(&kb, own, kb_int(&kb, x->rank)), own);
  for (int d = 0; d < x->rank; d++) {
    expr_id at = kb_int(&kb, d);
    kb_store(&kb, o, &at, real_element(kb_select(&kb, kb_eq(&kb, own, at), kb_dim(&kb, count), kb_dim(&kb, x->dims[d]))));
  }
  value_id v = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, x->rank, out);
}

/* Strings are hashed unless all that are compared are known while compiling: then so is the result. */
static void hash_keys(struct op_call *c, struct keys *keys) {
  const struct flow_value x = *op_value(c, keys->value);
  struct flow_node *n = op_emit(c, FLOW_HOST, false);
  n->host = "StringToHashBucketFast";
  vec_push(&n->inputs, keys->value);
  op_host_add_attr(c, n, "num_buckets", (struct attr_value){.kind = ATTR_INT, .i = INT64_MAX});
  keys->hashes = op_add_output(c, n, DTYPE_INT64, x.rank, x.dims);
}

static bool wants_hashes(const struct op_call *c, const struct keys *keys) {
  return keys->dtype == DTYPE_STRING && !op_value(c, keys->value)->data;
}

static status unique_keys(struct op_call *c, value_id v, value_id axis, struct keys *out) {
  struct flow_value x = *op_value(c, v);
  dim around[3] = {op_dim(c, 1), x.rank ? x.dims[0] : op_dim(c, 1), op_dim(c, 1)};
  if (axis)
    TRY(dims_around(c, &x, axis, around));
  else if (x.rank != 1)
    return fail(INVALID_ARGUMENT, "unique expects a 1D vector.");
  *out = (struct keys){op_alias(c, v, x.dtype, 3, around), x.dtype, around[0], around[1], around[2], NO_VALUE};
  return OK;
}

/* The axis of UniqueV2: a vector of one element or none. */
static status unique_axis(struct op_call *c, value_id *out) {
  *out = NO_VALUE;
  if (c->in_count < 2)
    return OK;
  value_id axis;
  TRY(op_input(c, 1, &axis));
  struct flow_value a = *op_value(c, axis);
  int64_t count = 0;
  if (a.rank == 1)
    TRY(op_const_size(c, a.dims[0], "the length of axis", &count));
  if (a.rank != 1 || count > 1)
    return fail(INVALID_ARGUMENT, "axis does not support input tensors larger than 1 elements");
  *out = count ? axis : NO_VALUE;
  return OK;
}

status build_unique(struct op_call *c) {
  value_id v, axis, y, counts;
  struct unique u = {0};
  TRY(op_input(c, 0, &v));
  TRY(unique_axis(c, &axis));
  TRY(unique_keys(c, v, axis, &u.keys));
  if (wants_hashes(c, &u.keys))
    hash_keys(c, &u.keys);
  TRY(find_distinct(c, &u));
  TRY(take_keys(c, &u.keys, u.first, u.distinct, &y));
  struct flow_value x = *op_value(c, v);
  dim dims[LIMIT_RANK] = {u.distinct};
  if (axis)
    TRY(dims_with(c, &x, axis, u.distinct, dims));
  op_set_output(c, 0, op_alias(c, y, x.dtype, x.rank, dims));
  op_set_output(c, 1, u.number);
  if (c->out_count < 3)
    return OK;
  TRY(count_keys(c, &u, &counts));
  op_set_output(c, 2, counts);
  return OK;
}

/* ---- ListDiff: what is in x and not in y, and where ---- */

static status find_missing(struct op_call *c, const struct keys *x, const struct keys *y, value_id *kept, dim *count) {
  struct kb kb;
  kb_begin(&kb, c, x->dtype);
  uint32_t in = kb_in(&kb, x->value), known = kb_in(&kb, y->value);
  uint32_t total = kb_out(&kb, DTYPE_INT64, 0, NULL), places = kb_out(&kb, DTYPE_INT64, 1, &x->count);
  struct table t = {.stored = known};
  kb_fill(&kb, places, 1, &x->count, real_element(kb_int(&kb, 0)));
  table_begin(&kb, &t, y->count);
  expr_id j = kb_for_dim(&kb, LOOP_SEQ, y->count);
  struct found f = table_find(&kb, &t, y, known, j);
  kb_if(&kb, kb_lt(&kb, kb_get(&kb, f.number), kb_int(&kb, 0)));
  table_add(&kb, &t, &f, j);
  kb_close(&kb, 2);
  uint32_t kept_count = kb_local(&kb, kb_int(&kb, 0));
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, x->count);
  f = table_find(&kb, &t, x, in, i);
  kb_if(&kb, kb_lt(&kb, kb_get(&kb, f.number), kb_int(&kb, 0)));
  expr_id at = kb_get(&kb, kept_count);
  kb_store(&kb, places, &at, real_element(i));
  kb_set(&kb, kept_count, kb_add(&kb, at, kb_int(&kb, 1)));
  kb_close(&kb, 2);
  kb_store(&kb, total, NULL, real_element(kb_get(&kb, kept_count)));
  *kept = kb_value(&kb, places);
  value_id v = kb_value(&kb, total);
  TRY(kb_finish_guarded(&kb));
  return op_bound_dims(c, v, 1, count);
}

status build_list_diff(struct op_call *c) {
  value_id v[2], kept, out;
  struct keys keys[2];
  dim count;
  for (uint32_t i = 0; i < 2; i++) {
    TRY(op_input(c, i, &v[i]));
    if (op_value(c, v[i])->rank != 1)
      return fail(INVALID_ARGUMENT, "%s should be a 1D vector.", i ? "y" : "x");
    TRY(unique_keys(c, v[i], NO_VALUE, &keys[i]));
  }
  if (wants_hashes(c, &keys[0]) || wants_hashes(c, &keys[1]))
    for (uint32_t i = 0; i < 2; i++)
      hash_keys(c, &keys[i]);
  TRY(find_missing(c, &keys[0], &keys[1], &kept, &count));
  TRY(take_keys(c, &keys[0], kept, count, &out));
  op_set_output(c, 0, op_alias(c, out, keys[0].dtype, 1, &count));
  enum dtype dtype = op_output_dtype(c, 1);
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t in = kb_in(&kb, kept), o = kb_out(&kb, dtype, 1, &count);
  expr_id i = kb_for_dim(&kb, LOOP_PAR, count);
  kb_store(&kb, o, &i, real_element(expr_cast(kb.k, dtype, kb_load(&kb, in, &i).re)));
  kb_close(&kb, 1);
  op_set_output(c, 1, kb_value(&kb, o));
  return kb_finish(&kb);
}
