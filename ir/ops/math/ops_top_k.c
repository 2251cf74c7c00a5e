/* ops_top_k.c: TopK: the largest elements of each row, in order, or in the order of the heap that finds them. A few are found by a list; of
 * many, or all of the row as in tf.sort and tf.argsort, the row's places are sorted. And NthElement, the one at a place. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/place_sort.h"

/* A list takes up to k steps for each element: it keeps LIST_FEW; or LIST_MAX where an element goes in only now and then, as of rows more
 * than LIST_SHARE times as long, or open ones. */
#define LIST_MAX 256
#define LIST_FEW 64
#define LIST_SHARE 16

static status top_k_count(struct op_call *c, dim *k) {
  if (c->in_count < 2) {
    *k = op_dim(c, node_attr_int(c->node, "k", 0));
    return OK;
  }
  value_id v;
  dim *elements;
  int count;
  TRY(op_input(c, 1, &v));
  TRY(op_elements(c, v, &elements, &count));
  if (count != 1)
    return fail(INVALID_ARGUMENT, "k must be scalar, got %d elements", count);
  *k = elements[0];
  return OK;
}

struct top_list {
  struct kb *kb;
  uint32_t values, indices;
  enum dtype index_dtype;
  int rank;
  expr_id at[LIMIT_RANK]; /* the outer loops' variables */
  uint32_t input, heap;   /* where the order is that of a heap: numbers of elements */
};

/* ---- a list of the k best so far, kept in order while the row is read ---- */

static struct element list_value(struct top_list *t, expr_id i) {
  t->at[t->rank - 1] = i;
  return kb_load(t->kb, t->values, t->at);
}
static void list_put(struct top_list *t, expr_id i, struct element value, struct element index) {
  t->at[t->rank - 1] = i;
  kb_store(t->kb, t->values, t->at, value);
  kb_store(t->kb, t->indices, t->at, index);
}

/* Element number i goes in behind all that are not smaller: equal ones keep their order. */
static void list_insert(struct top_list *t, expr_id i, expr_id k, struct element e) {
  struct kb *kb = t->kb;
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0);
  uint32_t place = kb_local(kb, expr_binary(kb->k, SCALAR_MIN, i, k)), moving = kb_local(kb, kb_lt(kb, zero, k));
  expr_id before = kb_clamp(kb, kb_sub(kb, kb_get(kb, place), one), k);
  expr_id more = kb_and(kb, kb_get(kb, moving), kb_lt(kb, zero, kb_get(kb, place)));
  kb_while(kb, more);
  kb_if(kb, f_binary(&kb->f, SCALAR_LT, list_value(t, before), e).re);
  kb_if(kb, kb_lt(kb, kb_get(kb, place), k));
  t->at[t->rank - 1] = before;
  struct element old_index = kb_load(kb, t->indices, t->at);
  list_put(t, kb_get(kb, place), list_value(t, before), old_index);
  kb_close(kb, 1);
  kb_set(kb, place, kb_sub(kb, kb_get(kb, place), one));
  kb_else(kb);
  kb_set(kb, moving, expr_int(kb->k, DTYPE_BOOL, 0));
  kb_close(kb, 2);
  kb_if(kb, kb_lt(kb, kb_get(kb, place), k));
  list_put(t, kb_get(kb, place), e, real_element(expr_cast(kb->k, t->index_dtype, i)));
  kb_close(kb, 1);
}

/* ---- `sorted` false: a heap of the k best, the worst at its top, in the order in which TensorFlow's is left ---- */

static struct element row_value(struct top_list *t, expr_id number) {
  t->at[t->rank - 1] = number;
  return kb_load(t->kb, t->input, t->at);
}
static expr_id heap_get(struct top_list *t, expr_id place) {
  t->at[t->rank - 1] = place;
  return kb_load(t->kb, t->heap, t->at).re;
}
static void heap_put(struct top_list *t, expr_id place, expr_id number) {
  t->at[t->rank - 1] = place;
  kb_store(t->kb, t->heap, t->at, real_element(number));
}
/* Whether element a comes before b: it is larger, or the first of equal ones. */
static expr_id comes_before(struct top_list *t, expr_id a, expr_id b) {
  struct formula *f = &t->kb->f;
  struct element x = row_value(t, a), y = row_value(t, b);
  expr_id smaller = f_binary(f, SCALAR_LT, x, y).re, larger = f_binary(f, SCALAR_LT, y, x).re;
  return kb_or(t->kb, larger, kb_and(t->kb, expr_unary(t->kb->k, SCALAR_NOT, smaller), kb_lt(t->kb, a, b)));
}
static expr_id now(struct kb *kb, expr_id e) { return kb_get(kb, kb_local(kb, e)); }
static expr_id truth(struct kb *kb, bool value) { return expr_int(kb->k, DTYPE_BOOL, value); }

/* `number` goes down from a place until nothing below comes after it. */
static void sift_down(struct top_list *t, expr_id place, expr_id length, expr_id number) {
  struct kb *kb = t->kb;
  expr_id one = kb_int(kb, 1);
  uint32_t at = kb_local(kb, place), moving = kb_local(kb, truth(kb, true));
  kb_while(kb, kb_get(kb, moving));
  kb_set(kb, moving, truth(kb, false));
  uint32_t child = kb_local(kb, kb_add(kb, kb_mul(kb, kb_get(kb, at), kb_int(kb, 2)), one));
  kb_if(kb, kb_lt(kb, kb_get(kb, child), length));
  kb_if(kb, kb_lt(kb, kb_add(kb, kb_get(kb, child), one), length));
  expr_id left = now(kb, heap_get(t, kb_get(kb, child))), right = now(kb, heap_get(t, kb_add(kb, kb_get(kb, child), one)));
  expr_id both = now(kb, comes_before(t, left, right));
  kb_set(kb, child, expr_select(kb->k, both, kb_add(kb, kb_get(kb, child), one), kb_get(kb, child)));
  kb_close(kb, 1);
  expr_id last = now(kb, heap_get(t, kb_get(kb, child)));
  kb_if(kb, comes_before(t, number, last));
  heap_put(t, kb_get(kb, at), last);
  kb_set(kb, at, kb_get(kb, child));
  kb_set(kb, moving, truth(kb, true));
  kb_close(kb, 3);
  heap_put(t, kb_get(kb, at), number);
}
/* `number` goes up from a place until nothing above comes before it. */
static void sift_up(struct top_list *t, expr_id place, expr_id number) {
  struct kb *kb = t->kb;
  uint32_t at = kb_local(kb, place), moving = kb_local(kb, truth(kb, true));
  kb_while(kb, kb_and(kb, kb_get(kb, moving), kb_lt(kb, kb_int(kb, 0), kb_get(kb, at))));
  expr_id above = now(kb, kb_div(kb, kb_sub(kb, kb_get(kb, at), kb_int(kb, 1)), kb_int(kb, 2)));
  expr_id first = now(kb, heap_get(t, above)), up = now(kb, comes_before(t, first, number));
  kb_set(kb, moving, up);
  kb_if(kb, up);
  heap_put(t, kb_get(kb, at), first);
  kb_set(kb, at, above);
  kb_close(kb, 2);
  heap_put(t, kb_get(kb, at), number);
}

/* The first k + 1 elements become a heap that loses its worst; each that comes before the worst then takes its place: the rest of the heap
 * closes over it, and the new one goes in behind. */
static void fill_heap(struct top_list *t, expr_id k, expr_id width) {
  struct kb *kb = t->kb;
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0), all = kb_add(kb, k, one), last = kb_sub(kb, k, one);
  expr_id i = kb_for(kb, LOOP_SEQ, all);
  heap_put(t, i, i);
  kb_close(kb, 1);
  expr_id parents = kb_div(kb, all, kb_int(kb, 2)), parent = kb_sub(kb, kb_sub(kb, parents, one), kb_for(kb, LOOP_SEQ, parents));
  sift_down(t, parent, all, now(kb, heap_get(t, parent)));
  kb_close(kb, 1);
  sift_down(t, zero, k, now(kb, heap_get(t, k)));
  expr_id number = kb_add(kb, all, kb_for(kb, LOOP_SEQ, kb_sub(kb, width, all)));
  kb_if(kb, comes_before(t, number, now(kb, heap_get(t, zero))));
  sift_down(t, zero, last, now(kb, heap_get(t, last)));
  sift_up(t, last, number);
  kb_close(kb, 2);
  expr_id place = kb_for(kb, LOOP_SEQ, k), found = now(kb, heap_get(t, place));
  struct accumulator e = acc_begin(kb, row_value(t, found));
  list_put(t, place, acc_get(kb, &e), real_element(expr_cast(kb->k, t->index_dtype, found)));
  kb_close(kb, 1);
}

/* ---- the op ---- */

static status check_count(struct op_call *c, dim count, dim width) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id k = kb_dim(&guard, count), n = kb_dim(&guard, width);
  kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), k), INVALID_ARGUMENT, "Need k >= 0, got %d", k, NO_EXPR);
  kb_check(&guard, kb_le(&guard, k, n), INVALID_ARGUMENT, "input must have at least k columns. Had %d, needed %d", n, k);
  return guard_finish(&guard);
}

/* Few of them, or in the heap's order. */
static status keep_best(struct op_call *c, value_id v, dim k, bool sorted) {
  struct flow_value x = *op_value(c, v);
  dim n = x.dims[x.rank - 1], dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[x.rank - 1] = k;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  struct top_list t = {.kb = &kb, .rank = x.rank, .index_dtype = op_output_dtype(c, 1)};
  uint32_t a = kb_in(&kb, v);
  t.values = kb_out(&kb, x.dtype, x.rank, dims);
  t.indices = kb_out(&kb, t.index_dtype, x.rank, dims);
  if (!sorted) {
    dim heap[LIMIT_RANK];
    memcpy(heap, dims, sizeof heap);
    heap[x.rank - 1] = dim_add(op_dims(c), k, op_dim(c, 1));
    t.input = a;
    t.heap = kb_scratch(&kb, DTYPE_INT64, x.rank, heap);
  }
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 1, dims, index);
  expr_id count = kb_dim(&kb, k), width = kb_dim(&kb, n);
  memcpy(t.at, index, sizeof t.at);
  if (!sorted) { /* one element or all of them are sorted all the same */
    kb_if(&kb, kb_and(&kb, kb_lt(&kb, kb_int(&kb, 1), count), kb_lt(&kb, count, width)));
    fill_heap(&t, count, width);
    kb_else(&kb);
  }
  index[x.rank - 1] = kb_for_dim(&kb, LOOP_SEQ, n);
  struct accumulator e = acc_begin(&kb, kb_load(&kb, a, index));
  list_insert(&t, index[x.rank - 1], count, acc_get(&kb, &e));
  kb_close(&kb, sorted ? x.rank : x.rank + 1);
  op_set_output(c, 0, kb_value(&kb, t.values));
  op_set_output(c, 1, kb_value(&kb, t.indices));
  return kb_finish_guarded(&kb);
}

/* ---- all places of the row, sorted ---- */

/* Larger ones first; equal ones stay in their order. */
static expr_id is_larger(struct place_sort *s, expr_id a, expr_id b) {
  const uint32_t *in = s->data;
  s->at[s->axis] = a;
  struct element first = kb_load(s->kb, *in, s->at);
  s->at[s->axis] = b;
  return f_binary(&s->kb->f, SCALAR_LT, kb_load(s->kb, *in, s->at), first).re;
}

static expr_id is_smaller(struct place_sort *s, expr_id a, expr_id b) { return is_larger(s, b, a); }

/* An unsigned number in the order of the values; the zeros are one. */
static expr_id ordered_bits(struct kb *kb, struct element e, int bytes) {
  struct kernel *k = kb->k;
  enum dtype own = expr_get(k, e.re)->dtype, bits = bytes == 8 ? DTYPE_UINT64 : DTYPE_UINT32;
  expr_id top = expr_int(k, bits, (int64_t)(UINT64_C(1) << (8 * bytes - 1)));
  if (dtype_is_unsigned(own) || own == DTYPE_BOOL)
    return expr_cast(k, bits, e.re);
  if (!dtype_is_float(own))
    return expr_binary(k, SCALAR_XOR, expr_bitcast(k, bits, expr_cast(k, bytes == 8 ? DTYPE_INT64 : DTYPE_INT32, e.re)), top);
  enum dtype wide = bytes == 8 ? DTYPE_DOUBLE : DTYPE_FLOAT;
  struct element sum = f_binary(&kb->f, SCALAR_ADD, f_cast(&kb->f, wide, e), f_const_as(&kb->f, wide, 0));
  expr_id x = kb_get(kb, kb_local(kb, expr_bitcast(k, bits, sum.re)));
  expr_id negative = expr_binary(k, SCALAR_NE, expr_binary(k, SCALAR_AND, x, top), expr_int(k, bits, 0));
  return expr_binary(k, SCALAR_XOR, x, expr_select(k, negative, expr_int(k, bits, -1), top));
}
static expr_id rising_key(struct place_sort *s, expr_id place) {
  const uint32_t *in = s->data;
  s->at[s->axis] = place;
  return ordered_bits(s->kb, kb_load(s->kb, *in, s->at), s->key_bytes);
}
static expr_id falling_key(struct place_sort *s, expr_id place) {
  expr_id key = rising_key(s, place);
  return expr_binary(s->kb->k, SCALAR_XOR, key, expr_int(s->kb->k, expr_get(s->kb->k, key)->dtype, -1));
}
/* The places of rows of x, the larger first or the smaller. */
static struct place_sort places_of(struct kb *kb, const struct flow_value *x, const uint32_t *in, bool falling) {
  dim dims[LIMIT_RANK];
  struct place_sort s = {.kb = kb, .axis = x->rank - 1, .comes_before = falling ? is_larger : is_smaller, .data = in};
  s.key = falling ? falling_key : rising_key;
  s.key_bytes = dtype_size(x->dtype) == 8 ? 8 : 4;
  s.order = kb_out(kb, DTYPE_INT64, x->rank, x->dims);
  s.merged = kb_out(kb, DTYPE_INT64, x->rank, x->dims);
  memcpy(dims, x->dims, sizeof dims);
  dims[x->rank - 1] = op_mul(kb->c, x->dims[x->rank - 1], op_dim(kb->c, PLACE_COUNTS));
  s.counts = kb_out(kb, DTYPE_INT64, x->rank, dims);
  return s;
}

static status sort_rows(struct op_call *c, value_id v, dim k) {
  struct flow_value x = *op_value(c, v);
  dim n = x.dims[x.rank - 1], dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[x.rank - 1] = k;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), values = kb_out(&kb, x.dtype, x.rank, dims), indices = kb_out(&kb, op_output_dtype(c, 1), x.rank, dims);
  struct place_sort s = places_of(&kb, &x, &in, true);
  kb_loops(&kb, LOOP_PAR, x.rank - 1, x.dims, s.at);
  place_sort(&s, n);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, k), to[LIMIT_RANK], place = kb_get(&kb, kb_local(&kb, place_sort_get(&s, i)));
  memcpy(to, s.at, sizeof to);
  s.at[s.axis] = place;
  kb_store(&kb, values, to, kb_load(&kb, in, s.at));
  kb_store(&kb, indices, to, real_element(expr_cast(kb.k, op_output_dtype(c, 1), place)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, values));
  op_set_output(c, 1, kb_value(&kb, indices));
  return kb_finish_guarded(&kb);
}

status build_top_k(struct op_call *c) {
  value_id v;
  dim k = NO_DIM;
  TRY(op_input(c, 0, &v));
  TRY(top_k_count(c, &k));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 1)
    return fail(INVALID_ARGUMENT, "input must be >= 1-D, got shape []");
  TRY(check_count(c, k, x.dims[x.rank - 1]));
  int64_t count = op_dim_value(c, k), n = op_dim_value(c, x.dims[x.rank - 1]);
  bool sorted = node_attr_int(c->node, "sorted", 1) != 0, few = count >= 0 && count <= LIST_MAX;
  few = few && (count <= LIST_FEW || n < 0 || n > LIST_SHARE * count);
  return sorted && !few ? sort_rows(c, v, k) : keep_best(c, v, k, sorted);
}

/* On a CPU TensorFlow looks at all elements, so that nothing is approximate. */
status build_approx_top_k(struct op_call *c) {
  if (node_attr_int(c->node, "reduction_dimension", -1) != -1 || !node_attr_int(c->node, "is_max_k", 1))
    return fail(INVALID_ARGUMENT, "Could not find device for node: only the largest of the last dimension are found on a CPU");
  return build_top_k(c);
}

/* input, n */
status build_nth_element(struct op_call *c) {
  value_id v, which;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &which));
  struct flow_value x = *op_value(c, v);
  if (x.rank < 1 || op_value(c, which)->rank != 0)
    return fail(INVALID_ARGUMENT, x.rank < 1 ? "Input must be at least rank 1" : "N must be scalar");
  struct kb guard, kb;
  guard_begin(&guard, c);
  expr_id n = kb_element(&guard, which, 0), last = kb_dim(&guard, x.dims[x.rank - 1]);
  kb_check(&guard, kb_le(&guard, kb_int(&guard, 0), n), INVALID_ARGUMENT, "n must be non-negative, got %d", n, NO_EXPR);
  kb_check(&guard, kb_lt(&guard, n, last), INVALID_ARGUMENT, "Input must have at least n+1 columns: n is %d, columns %d", n, last);
  TRY(guard_finish(&guard));
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank - 1, x.dims);
  bool reverse = node_attr_int(c->node, "reverse", 0) != 0;
  struct place_sort s = places_of(&kb, &x, &in, reverse);
  kb_loops(&kb, LOOP_PAR, x.rank - 1, x.dims, s.at);
  place_sort(&s, x.dims[x.rank - 1]);
  s.at[s.axis] = kb_get(&kb, kb_local(&kb, place_sort_get(&s, kb_element(&kb, which, 0))));
  kb_store(&kb, out, s.at, kb_load(&kb, in, s.at));
  kb_close(&kb, x.rank - 1);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
