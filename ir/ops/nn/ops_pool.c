/* ops_pool.c: pooling over windows of any axes, with gradients. Each axis of the data has its own window; those of size and
 * stride 1 are just loops. What lies outside of the input does not count: not for a maximum, not in the number of a mean. */

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/nn/pool.h"

/* ---- geometry ---- */

/* ksize or strides: an attribute, or an input, whose elements may be known only to the step. */
static status pool_sizes(struct op_call *c, const char *attr, uint32_t input, int rank, dim *out) {
  if (input >= c->in_count) {
    int64_t values[LIMIT_RANK];
    TRY(window_list(c, attr, rank, values));
    for (int i = 0; i < rank; i++)
      out[i] = op_dim(c, values[i]);
    return OK;
  }
  value_id v;
  TRY(op_input(c, input, &v));
  struct flow_value x = *op_value(c, v);
  if (x.rank != 1)
    return fail(INVALID_ARGUMENT, "%s must be a vector: %s", attr, op_shape_text(c, x.rank, x.dims));
  TRY(op_equal_dims(c, x.dims[0], op_dim(c, rank), arena_printf(op_arena(c), "%s must have %d elements", attr, rank)));
  struct kb guard;
  guard_begin(&guard, c);
  for (int i = 0; i < rank; i++) {
    expr_id n = kb_element(&guard, v, i),
            good = kb_and(&guard, kb_lt(&guard, kb_int(&guard, 0), n), kb_le(&guard, n, kb_int(&guard, WINDOW_MAX)));
    kb_check(&guard, good, INVALID_ARGUMENT, arena_printf(op_arena(c), "%s must be positive, not %%d", attr), n, NO_EXPR);
  }
  TRY(guard_finish(&guard));
  return op_bound_dims(c, v, rank, out);
}

static expr_id both_one(struct kb *kb, dim a, dim b) {
  return kb_and(kb, kb_eq(kb, kb_dim(kb, a), kb_int(kb, 1)), kb_eq(kb, kb_dim(kb, b), kb_int(kb, 1)));
}

/* What TensorFlow has: windows over space, or (maxima of images only) over whole groups of channels, not both. */
static status pool_supported(struct op_call *c, const struct pool *p, bool over_depth) {
  const char *format = node_attr_string(c->node, "data_format", "NHWC");
  int channel = format[1] == 'C' ? 1 : p->rank - 1;
  struct kb kb;
  guard_begin(&kb, c);
  const struct window_axis *depth = &p->axes[channel];
  expr_id size = kb_dim(&kb, depth->size), one = kb_eq(&kb, size, kb_int(&kb, 1)), flat = expr_int(kb.k, DTYPE_BOOL, 1);
  kb_check(&kb, both_one(&kb, p->axes[0].size, p->axes[0].stride), UNIMPLEMENTED, "Pooling is not yet supported on the batch dimension.",
           NO_EXPR, NO_EXPR);
  if (over_depth) {
    for (int i = 1; i < p->rank; i++)
      if (i != channel)
        flat = kb_and(&kb, flat, kb_eq(&kb, kb_dim(&kb, p->axes[i].size), kb_int(&kb, 1)));
    kb_check(&kb, kb_or(&kb, one, flat), UNIMPLEMENTED,
             "MaxPooling supports exactly one of pooling across depth or pooling across width/height.", NO_EXPR, NO_EXPR);
    expr_id divides = kb_eq(&kb, kb_mod(&kb, kb_dim(&kb, depth->in), size), kb_int(&kb, 0));
    kb_check(&kb, kb_or(&kb, one, divides), UNIMPLEMENTED,
             "Depthwise max pooling requires the depth window (%d) to evenly divide the input depth", size, NO_EXPR);
    kb_check(&kb, kb_or(&kb, one, kb_eq(&kb, kb_dim(&kb, depth->stride), size)), UNIMPLEMENTED,
             "Depthwise max pooling requires the depth window to equal the depth stride", NO_EXPR, NO_EXPR);
  } else {
    kb_check(&kb, both_one(&kb, depth->size, depth->stride), UNIMPLEMENTED, "Pooling is not yet supported on the depth dimension.", NO_EXPR,
             NO_EXPR);
  }
  return guard_finish(&kb);
}

static status pool_explicit(struct op_call *c, struct pool *p) {
  const struct attr_value *list = node_attr(c->node, "explicit_paddings");
  if (!list || list->list.count != (uint32_t)p->rank * 2)
    return fail(INVALID_ARGUMENT, "explicit_paddings must have %d elements", p->rank * 2);
  for (int i = 0; i < p->rank; i++) {
    p->axes[i].explicit_before = list->list.items[2 * i].i;
    p->axes[i].explicit_after = list->list.items[2 * i + 1].i;
    TRY(window_explicit(&p->axes[i]));
    int64_t size = op_dim_value(c, p->axes[i].size);
    if (size >= 0 && (p->axes[i].explicit_before >= size || p->axes[i].explicit_after >= size))
      return fail(INVALID_ARGUMENT, "explicit padding needs to be smaller than the window size %lld", (long long)size);
  }
  return OK;
}

status pool_begin(struct op_call *c, int rank, const dim *dims, uint32_t first_input, struct pool *p) {
  enum padding padding;
  dim sizes[LIMIT_RANK], strides[LIMIT_RANK];
  if (rank < 4 || rank > 5)
    return fail(INVALID_ARGUMENT, "tensor_in must be 4- or 5-dimensional, not of rank %d", rank);
  TRY(window_padding(c, &padding));
  TRY(pool_sizes(c, "ksize", first_input, rank, sizes));
  TRY(pool_sizes(c, "strides", first_input == UINT32_MAX ? first_input : first_input + 1, rank, strides));
  p->rank = rank;
  p->disjoint = true;
  for (int i = 0; i < rank; i++) {
    p->axes[i].in = p->in[i] = dims[i];
    p->axes[i].size = sizes[i];
    p->axes[i].stride = strides[i];
    p->axes[i].dilation = 1;
  }
  const struct pool_row *row = OP_ROW(c, pool_row);
  bool over_depth = rank == 4 && row->over_depth, by_place = row->by_place;
  TRY(pool_supported(c, p, over_depth));
  p->is_explicit = padding == PADDING_EXPLICIT;
  if (p->is_explicit)
    TRY(pool_explicit(c, p));
  for (int i = 0; i < rank; i++) {
    p->slides[i] = i > 0 && (op_dim_value(c, sizes[i]) != 1 || op_dim_value(c, strides[i]) != 1);
    if (i == rank - 1 && by_place)
      p->slides[i] = false; /* channels that are pooled together count one by one there, as in TensorFlow */
    p->disjoint = p->disjoint && dim_less(op_dims(c), strides[i], sizes[i]) == 0;
    if (p->slides[i])
      TRY(window_solve(c, padding, &p->axes[i]));
    p->out[i] = p->slides[i] ? p->axes[i].out : dims[i];
  }
  return OK;
}

status pool_check(struct op_call *c, const struct pool *p, value_id v, bool output, const char *what) {
  struct flow_value x = *op_value(c, v);
  if (x.rank != p->rank)
    return fail(INVALID_ARGUMENT, "%s must be %d-dimensional: %s", what, p->rank, op_shape_text(c, x.rank, x.dims));
  for (int i = 0; i < p->rank; i++)
    TRY(op_equal_dims(c, x.dims[i], output ? p->out[i] : p->in[i], what));
  return OK;
}

/* A window of so many elements is written out. Loops over larger ones end at the border, and so do those of windows that begin in front of
 * it where it is asked what is inside: each element would have two tests. */
#define WRITTEN_MOST 9
static bool ends_at_border(struct op_call *c, const struct pool *p, bool is_asked) {
  int64_t count = 1;
  bool begins_outside = false;
  for (int i = 0; i < p->rank; i++) {
    int64_t size = p->slides[i] ? op_dim_value(c, p->axes[i].size) : 1;
    begins_outside = begins_outside || (p->slides[i] && op_dim_value(c, p->axes[i].pad) != 0);
    if (size < 0 || size > WRITTEN_MOST || (count *= size) > WRITTEN_MOST)
      return true;
  }
  return is_asked && begins_outside;
}
/* The part of an axis' window that is inside: where it begins, and its extent. */
static expr_id inside_from(struct kb *kb, const struct window_axis *a, expr_id out, expr_id *extent) {
  expr_id zero = kb_int(kb, 0), size = kb_dim(kb, a->size), begin = window_position(kb, a, out, zero);
  expr_id first = expr_binary(kb->k, SCALAR_MAX, begin, zero), left = kb_sub(kb, kb_dim(kb, a->in), first);
  expr_id kept = kb_add(kb, size, expr_binary(kb->k, SCALAR_MIN, begin, zero));
  *extent = expr_binary(kb->k, SCALAR_MIN, size, expr_binary(kb->k, SCALAR_MIN, kept, left));
  return first;
}
int pool_window_loops(struct kb *kb, const struct pool *p, enum loop_kind loop, const expr_id *out, expr_id *at, expr_id *k,
                      expr_id *inside) {
  int open = 0;
  expr_id extent, all = expr_int(kb->k, DTYPE_BOOL, 1);
  bool ends = ends_at_border(kb->c, p, inside != NULL);
  for (int i = 0; i < p->rank; i++) {
    const struct window_axis *a = &p->axes[i];
    bool stays = !p->slides[i] || window_stays_inside(kb->c, a);
    at[i] = out[i];
    if (!p->slides[i])
      continue;
    open++;
    expr_id first = !stays && ends ? inside_from(kb, a, out[i], &extent) : window_position(kb, a, out[i], kb_int(kb, 0));
    expr_id element = !stays && ends ? kb_for(kb, loop, extent) : kb_for_dim(kb, loop, a->size);
    at[i] = kb_add(kb, first, element);
    if (!stays && !ends) {
      all = kb_and(kb, all, window_within(kb, at[i], a->in));
      at[i] = kb_clamp(kb, at[i], kb_dim(kb, a->in));
    }
    if (k)
      k[i] = !stays && ends ? kb_sub(kb, at[i], window_position(kb, a, out[i], kb_int(kb, 0))) : element;
  }
  if (inside)
    *inside = all;
  return open;
}

expr_id pool_count(struct kb *kb, const struct pool *p, const expr_id *out, enum dtype dtype) {
  expr_id n = kb_int(kb, 1), zero = kb_int(kb, 0);
  for (int i = 0; i < p->rank; i++) {
    if (!p->slides[i])
      continue;
    const struct window_axis *a = &p->axes[i];
    expr_id begin = window_position(kb, a, out[i], zero), end = kb_add(kb, begin, kb_dim(kb, a->size));
    if (!window_stays_inside(kb->c, a)) {
      end = expr_binary(kb->k, SCALAR_MIN, end, kb_dim(kb, a->in));
      begin = expr_binary(kb->k, SCALAR_MAX, begin, zero);
    }
    n = kb_mul(kb, n, window_stays_inside(kb->c, a) ? kb_dim(kb, a->size) : kb_sub(kb, end, begin));
  }
  return expr_cast(kb->k, dtype, n);
}

/* ---- forward ---- */

status build_max_pool(struct op_call *c) {
  value_id v;
  struct pool p = {0};
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(pool_begin(c, x.rank, x.dims, 1, &p));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, p.rank, p.out);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, p.rank, p.out, index);
  struct element none = kb_limit(&kb, x.dtype, false); /* NaN and -inf do not count: a window of nothing else gives the lowest number */
  struct accumulator acc = acc_begin(&kb, none);
  int open = pool_window_loops(&kb, &p, LOOP_RED, index, at, NULL, NULL);
  struct element most = acc_get(&kb, &acc), e = kb_load(&kb, a, at);
  acc_set(&kb, &acc, f_select(&kb.f, f_binary(&kb.f, SCALAR_LT, most, e), e, most));
  kb_close(&kb, open);
  kb_store(&kb, o, index, acc_get(&kb, &acc));
  kb_close(&kb, p.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

status build_avg_pool(struct op_call *c) {
  value_id v;
  struct pool p = {0};
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(pool_begin(c, x.rank, x.dims, UINT32_MAX, &p));
  struct kb kb;
  enum dtype sum = sum_dtype(x.dtype);
  kb_begin(&kb, c, sum);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, p.rank, p.out);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK], inside;
  kb_loops(&kb, LOOP_PAR, p.rank, p.out, index);
  struct accumulator acc = acc_zero(&kb, sum);
  int open = pool_window_loops(&kb, &p, LOOP_RED, index, at, NULL, &inside);
  acc_add(&kb, &acc, f_select(&kb.f, real_element(inside), load_as(&kb, sum, a, at), f_const(&kb.f, 0)));
  kb_close(&kb, open);
  struct element n = real_element(pool_count(&kb, &p, index, sum));
  store_as(&kb, o, index, f_binary(&kb.f, SCALAR_DIV, acc_get(&kb, &acc), n));
  kb_close(&kb, p.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* ---- the maximum and its place: the first of equal ones ---- */

/* The maximum of one window: the first element counts whatever it is. `position` gets its index into the input; NULL: nobody asks. */
static struct element find_maximum(struct kb *kb, const struct pool *p, uint32_t input, const expr_id *out, expr_id *position) {
  expr_id at[LIMIT_RANK], inside;
  uint32_t place[LIMIT_RANK]; /* locals, on the axes that slide */
  struct accumulator value = acc_begin(kb, f_lowest(&kb->f));
  uint32_t none = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 1));
  for (int i = 0; i < p->rank; i++)
    if (position && p->slides[i])
      place[i] = kb_local(kb, kb_int(kb, 0));
  int open = pool_window_loops(kb, p, LOOP_SEQ, out, at, NULL, &inside);
  struct accumulator e = acc_begin(kb, kb_load(kb, input, at));
  struct element larger = f_binary(&kb->f, SCALAR_LT, acc_get(kb, &value), acc_get(kb, &e));
  kb_if(kb, kb_and(kb, inside, expr_binary(kb->k, SCALAR_OR, larger.re, kb_get(kb, none))));
  acc_set(kb, &value, acc_get(kb, &e));
  kb_set(kb, none, expr_int(kb->k, DTYPE_BOOL, 0));
  for (int i = 0; i < p->rank; i++)
    if (position && p->slides[i])
      kb_set(kb, place[i], at[i]);
  kb_close(kb, 1 + open);
  for (int i = 0; i < p->rank && position; i++)
    position[i] = p->slides[i] ? kb_get(kb, place[i]) : out[i];
  return acc_get(kb, &value);
}

static expr_id flat_position(struct kb *kb, const struct pool *p, const expr_id *position, bool with_batch) {
  expr_id flat = with_batch ? position[0] : kb_int(kb, 0);
  for (int i = 1; i < p->rank; i++)
    flat = kb_add(kb, kb_mul(kb, flat, kb_dim(kb, p->in[i])), position[i]);
  return flat;
}

status build_max_pool_with_argmax(struct op_call *c) {
  value_id v;
  struct pool p = {0};
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(pool_begin(c, x.rank, x.dims, UINT32_MAX, &p));
  TRY(op_require_le(c, op_dim(c, 1), op_count(c, x.rank, x.dims), "tensor_in must not be empty"));
  bool with_batch = node_attr_int(c->node, "include_batch_in_index", 0);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  enum dtype where = op_output_dtype(c, 1);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, x.dtype, p.rank, p.out), n = kb_out(&kb, where, p.rank, p.out);
  expr_id index[LIMIT_RANK], position[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, p.rank, p.out, index);
  kb_store(&kb, o, index, find_maximum(&kb, &p, a, index, position));
  kb_store(&kb, n, index, real_element(expr_cast(kb.k, where, flat_position(&kb, &p, position, with_batch))));
  kb_close(&kb, p.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  op_set_output(c, 1, kb_value(&kb, n));
  return kb_finish_guarded(&kb);
}

/* ---- gradients ---- */

void pool_fill_zero(struct kb *kb, const struct pool *p, uint32_t out) {
  expr_id index[LIMIT_RANK];
  kb_loops(kb, LOOP_PAR, p->rank, p->in, index);
  kb_store(kb, out, index, f_const(&kb->f, 0));
  kb_close(kb, p->rank);
}

/* A place in a window as one number. */
static expr_id place_number(struct kb *kb, const struct pool *p, const expr_id *k) {
  expr_id number = kb_int(kb, 0);
  for (int i = 0; i < p->rank; i++)
    if (p->slides[i])
      number = kb_add(kb, kb_mul(kb, number, kb_dim(kb, p->axes[i].size)), k[i]);
  return expr_cast(kb->k, DTYPE_INT32, number);
}
/* What has a window's gradient where NaN and -inf are all that it has, or NaN comes first: TensorFlow's ways differ. */
enum nothing_larger {
  FIRST_STAYS,  /* what comes first is the maximum until something larger comes; nothing is larger than NaN */
  FIRST_IF_ALL, /* oneDNN: NaN does not count; of nothing else it is the window's first element, which may be outside: then none */
  NONE_IF_ALL   /* volumes: NaN does not count; of nothing else none */
};
static enum nothing_larger nothing_larger(const struct pool *p, enum dtype dtype) {
  bool is_library = !p->is_explicit && (dtype == DTYPE_FLOAT || dtype == DTYPE_BFLOAT16);
  return is_library ? FIRST_IF_ALL : p->rank == 4 ? FIRST_STAYS : NONE_IF_ALL;
}
/* The window's first element that is inside: its position, and which element it is along each axis. */
static void first_inside(struct kb *kb, const struct pool *p, const expr_id *out, expr_id *at, expr_id *k) {
  expr_id zero = kb_int(kb, 0);
  for (int i = 0; i < p->rank; i++) {
    at[i] = p->slides[i] ? window_position(kb, &p->axes[i], out[i], zero) : out[i];
    k[i] = zero;
    if (!p->slides[i] || window_stays_inside(kb->c, &p->axes[i]))
      continue;
    k[i] = expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, zero, at[i]), zero);
    at[i] = kb_clamp(kb, at[i], kb_dim(kb, p->in[i]));
  }
}
/* Which element of the window a position is: one at the border once more is that element. */
static expr_id number_of(struct kb *kb, const struct pool *p, const expr_id *out, const expr_id *at, const expr_id *k) {
  expr_id own[LIMIT_RANK] = {NO_EXPR};
  for (int i = 0; i < p->rank; i++) {
    bool stays = !p->slides[i] || window_stays_inside(kb->c, &p->axes[i]);
    own[i] = stays ? k[i] : kb_sub(kb, at[i], window_position(kb, &p->axes[i], out[i], kb_int(kb, 0)));
  }
  return place_number(kb, p, own);
}
/* A local with the place of the window's first maximum; -1: it has none. */
static uint32_t first_maximum(struct kb *kb, const struct pool *p, uint32_t input, const expr_id *out) {
  expr_id at[LIMIT_RANK], k[LIMIT_RANK] = {NO_EXPR}, none = expr_int(kb->k, DTYPE_INT32, -1);
  enum dtype dtype = kb->k->buffers.items[input].dtype;
  enum nothing_larger otherwise = nothing_larger(p, dtype);
  first_inside(kb, p, out, at, k);
  expr_id first = place_number(kb, p, k), is_inside = expr_binary(kb->k, SCALAR_EQ, first, expr_int(kb->k, DTYPE_INT32, 0));
  if (otherwise != FIRST_STAYS)
    first = otherwise == NONE_IF_ALL ? none : expr_select(kb->k, is_inside, first, none);
  struct accumulator most = acc_begin(kb, otherwise == FIRST_STAYS ? kb_load(kb, input, at) : kb_limit(kb, dtype, false));
  uint32_t place = kb_local(kb, first);
  int open = pool_window_loops(kb, p, LOOP_SEQ, out, at, k, NULL);
  struct element e = kb_load(kb, input, at);
  uint32_t takes = kb_local(kb, f_binary(&kb->f, SCALAR_LT, acc_get(kb, &most), e).re);
  kb_set(kb, place, expr_select(kb->k, kb_get(kb, takes), number_of(kb, p, out, at, k), kb_get(kb, place)));
  acc_set(kb, &most, f_select(&kb->f, real_element(kb_get(kb, takes)), e, acc_get(kb, &most)));
  kb_close(kb, open);
  return place;
}

/* Each output's gradient goes to the first of its window's maxima, the others get nothing. Windows that overlap add to the same places, so
 * that their axes run in order; others give each of their elements a value. */
static void give_to_maxima(struct kb *kb, const struct pool *p, uint32_t a, uint32_t g, uint32_t o) {
  expr_id index[LIMIT_RANK], at[LIMIT_RANK], k[LIMIT_RANK] = {NO_EXPR}, inside;
  int64_t always;
  for (int i = 0; i < p->rank; i++)
    index[i] = kb_for_dim(kb, p->slides[i] && !p->disjoint ? LOOP_SEQ : LOOP_PAR, p->out[i]);
  uint32_t place = first_maximum(kb, p, a, index);
  int open = pool_window_loops(kb, p, LOOP_SEQ, index, at, k, p->disjoint ? &inside : NULL);
  expr_id wins = expr_binary(kb->k, SCALAR_EQ, kb_get(kb, place), place_number(kb, p, k));
  struct element part = f_select(&kb->f, real_element(wins), kb_load(kb, g, index), f_const(&kb->f, 0));
  if (p->disjoint && !expr_is_const(kb->k, inside, &always))
    kb_if(kb, inside), open++;
  kb_store(kb, o, at, p->disjoint ? part : f_binary(&kb->f, SCALAR_ADD, kb_load(kb, o, at), part));
  kb_close(kb, open + p->rank);
}

bool pool_covers(struct op_call *c, const struct pool *p) {
  for (int i = 0; i < p->rank; i++) {
    const struct window_axis *a = &p->axes[i];
    if (!p->slides[i])
      continue;
    int64_t size = op_dim_value(c, a->size), in = op_dim_value(c, a->in), out = op_dim_value(c, a->out);
    int64_t pad = op_dim_value(c, a->pad);
    if (size < 0 || size != op_dim_value(c, a->stride) || in < 0 || pad < 0 || out * size < in + pad)
      return false;
  }
  return true;
}

static status give_gradient(struct op_call *c, const struct pool *p, value_id input, value_id gradient) {
  struct flow_value x = *op_value(c, input);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, input), g = kb_in(&kb, gradient), o = kb_out(&kb, x.dtype, p->rank, p->in);
  if (!p->disjoint || !pool_covers(c, p))
    pool_fill_zero(&kb, p, o);
  give_to_maxima(&kb, p, a, g, o);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* orig_input, orig_output, grad */
status build_max_pool_grad(struct op_call *c) {
  value_id input, output, gradient;
  struct pool p = {0};
  TRY(op_input(c, 0, &input));
  TRY(op_input(c, 1, &output));
  TRY(op_input(c, 2, &gradient));
  struct flow_value x = *op_value(c, input);
  TRY(pool_begin(c, x.rank, x.dims, 3, &p));
  TRY(pool_check(c, &p, output, true, "orig_output"));
  TRY(pool_check(c, &p, gradient, true, "grad"));
  return give_gradient(c, &p, input, gradient);
}

/* The gradient of that gradient: each output takes the element where its window has the maximum. */
status build_max_pool_grad_grad(struct op_call *c) {
  value_id input, output, gradient;
  struct pool p = {0};
  TRY(op_input(c, 0, &input));
  TRY(op_input(c, 1, &output));
  TRY(op_input(c, 2, &gradient));
  struct flow_value x = *op_value(c, input);
  TRY(pool_begin(c, x.rank, x.dims, 3, &p));
  TRY(pool_check(c, &p, output, true, "orig_output"));
  TRY(pool_check(c, &p, gradient, false, "grad"));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, input), g = kb_in(&kb, gradient), o = kb_out(&kb, x.dtype, p.rank, p.out);
  expr_id index[LIMIT_RANK], position[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, p.rank, p.out, index);
  find_maximum(&kb, &p, a, index, position);
  kb_store(&kb, o, index, kb_load(&kb, g, position));
  kb_close(&kb, p.rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
