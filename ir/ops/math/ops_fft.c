/* ops_fft.c: discrete Fourier transforms over the last axes, complex and real.
 *
 * An axis whose length has no prime factors but 2, 3, 5 and 7 goes through Stockham's autosorting steps, of four ways where that can be,
 * one kernel each, parallel over all butterflies; another that is short is summed directly, and others are a call into the runtime. The
 * roots of unity come from a table. Real transforms are complex ones of which half is kept, or made up from the symmetry. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/lower/host_call.h"

#define DIRECT_MAX 128 /* of a length that is summed directly: n steps for each of n */
#define WAYS_MAX 7     /* the largest prime factor of a length that goes by steps */

static struct element mul(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_MUL, a, b); }

/* e^(-+2 pi i k / n) for k in [0, n) */
static status roots_of_unity(struct op_call *c, enum dtype dtype, dim n, bool inverse, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_DOUBLE);
  uint32_t o = kb_out(&kb, dtype, 1, &n);
  expr_id k = kb_for_dim(&kb, LOOP_PAR, n);
  struct element turn = f_binary(&kb.f, SCALAR_DIV, real_element(expr_cast(kb.k, DTYPE_DOUBLE, k)),
                                 real_element(expr_cast(kb.k, DTYPE_DOUBLE, kb_dim(&kb, n))));
  struct element angle = mul(&kb, turn, f_const(&kb.f, inverse ? 2 * M_PI : -2 * M_PI));
  struct element root = {f_unary(&kb.f, SCALAR_COS, angle).re, f_unary(&kb.f, SCALAR_SIN, angle).re};
  kb_store(&kb, o, &k, f_cast(&kb.f, dtype, root));
  kb_close(&kb, 1);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* out[k] = sum over j of x[j] * root[j * k mod n] */
static status transform_directly(struct op_call *c, int axis, bool inverse, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  value_id roots;
  TRY(roots_of_unity(c, x.dtype, x.dims[axis], inverse, &roots));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, *value), w = kb_in(&kb, roots), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  memcpy(at, index, sizeof at);
  struct accumulator acc = acc_zero(&kb, x.dtype);
  at[axis] = kb_for_dim(&kb, LOOP_RED, x.dims[axis]);
  expr_id which = kb_mod(&kb, kb_mul(&kb, at[axis], index[axis]), kb_dim(&kb, x.dims[axis]));
  acc_add(&kb, &acc, mul(&kb, kb_load(&kb, a, at), kb_load(&kb, w, &which)));
  kb_close(&kb, 1);
  kb_store(&kb, o, index, acc_get(&kb, &acc));
  kb_close(&kb, x.rank);
  *value = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* One of Stockham's steps along an axis of n elements, of which `width` have been sorted together so far: loops over all butterflies of
 * `ways` elements, n / ways apart, which go behind each other. */
struct butterfly {
  struct kb kb;
  uint32_t in, out, roots;
  int axis, ways, loops;
  int64_t n, width;
  expr_id index[LIMIT_RANK], group, place;
};

static void butterfly_begin(struct op_call *c, value_id value, value_id roots, struct butterfly *b) {
  struct flow_value x = *op_value(c, value);
  struct kb *kb = &b->kb;
  kb_begin(kb, c, x.dtype);
  b->in = kb_in(kb, value);
  b->roots = kb_in(kb, roots);
  b->out = kb_out(kb, x.dtype, x.rank, x.dims);
  b->loops = x.rank + 1;
  for (int i = 0; i < x.rank; i++)
    if (i != b->axis)
      b->index[i] = kb_for_dim(kb, LOOP_PAR, x.dims[i]);
  b->group = kb_for(kb, LOOP_PAR, kb_int(kb, b->n / (b->ways * b->width)));
  b->place = kb_for(kb, LOOP_PAR, kb_int(kb, b->width));
}
static struct element butterfly_load(struct butterfly *b, int way) {
  struct kb *kb = &b->kb;
  expr_id at = kb_add(kb, kb_mul(kb, b->group, kb_int(kb, b->width)), b->place);
  b->index[b->axis] = kb_add(kb, at, kb_int(kb, b->n / b->ways * way));
  struct accumulator e = acc_begin(kb, kb_load(kb, b->in, b->index));
  return acc_get(kb, &e);
}
/* Turned by `way` times the group's root. */
static void butterfly_store(struct butterfly *b, int way, struct element e) {
  struct kb *kb = &b->kb;
  expr_id which = kb_mul(kb, b->group, kb_int(kb, b->width * way));
  if (way)
    e = mul(kb, kb_load(kb, b->roots, &which), e);
  expr_id at = kb_add(kb, kb_mul(kb, b->group, kb_int(kb, b->ways * b->width)), b->place);
  b->index[b->axis] = kb_add(kb, at, kb_int(kb, b->width * way));
  kb_store(kb, b->out, b->index, e);
}
static status butterfly_end(struct butterfly *b, value_id *value) {
  kb_close(&b->kb, b->loops);
  *value = kb_value(&b->kb, b->out);
  return kb_finish(&b->kb);
}

/* Two steps of two ways, one behind the other, as one: of four, with three roots where those have four. */
static status butterfly_of_four(struct op_call *c, struct butterfly *b, bool inverse, value_id roots, value_id *value) {
  struct element x[4];
  struct formula *f = &b->kb.f;
  butterfly_begin(c, *value, roots, b);
  for (int i = 0; i < 4; i++)
    x[i] = butterfly_load(b, i);
  struct element even = f_binary(f, SCALAR_ADD, x[0], x[2]), odd = f_binary(f, SCALAR_ADD, x[1], x[3]);
  struct element first = f_binary(f, SCALAR_SUB, x[0], x[2]);
  struct element left = inverse ? x[3] : x[1], right = inverse ? x[1] : x[3]; /* their difference times -i or i, a quarter's root */
  struct element turned = {expr_binary(b->kb.k, SCALAR_SUB, left.im, right.im), expr_binary(b->kb.k, SCALAR_SUB, right.re, left.re)};
  butterfly_store(b, 0, f_binary(f, SCALAR_ADD, even, odd));
  butterfly_store(b, 1, f_binary(f, SCALAR_ADD, first, turned));
  butterfly_store(b, 2, f_binary(f, SCALAR_SUB, even, odd));
  butterfly_store(b, 3, f_binary(f, SCALAR_SUB, first, turned));
  return butterfly_end(b, value);
}
/* e^(-+2 pi i k / ways) */
static struct element root_of(struct formula *f, int k, int ways, bool inverse) {
  double angle = (inverse ? 2 : -2) * M_PI * k / ways;
  enum dtype real = dtype_real(f->dtype);
  return f_complex(f, f_const_as(f, real, cos(angle)), f_const_as(f, real, sin(angle)));
}
/* Of few ways, each a sum over all of them. */
static status butterfly_of_few(struct op_call *c, struct butterfly *b, bool inverse, value_id roots, value_id *value) {
  struct element x[WAYS_MAX];
  struct formula *f = &b->kb.f;
  butterfly_begin(c, *value, roots, b);
  for (int i = 0; i < b->ways; i++)
    x[i] = butterfly_load(b, i);
  for (int way = 0; way < b->ways; way++) {
    struct element sum = x[0];
    for (int i = 1; i < b->ways; i++) {
      int turn = i * way % b->ways;
      bool is_half = 2 * turn == b->ways;
      struct element e = turn && !is_half ? mul(&b->kb, root_of(f, turn, b->ways, inverse), x[i]) : x[i];
      sum = f_binary(f, is_half ? SCALAR_SUB : SCALAR_ADD, sum, e);
    }
    butterfly_store(b, way, sum);
  }
  return butterfly_end(b, value);
}

/* The ways of the next step of what is left of a length; 0: it has none so few. */
static int next_ways(int64_t left) {
  static const int ways[] = {4, 2, 3, 5, WAYS_MAX};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (left % ways[i] == 0)
      return ways[i];
  return 0;
}
static bool has_steps(int64_t n) {
  while (n > 1 && next_ways(n))
    n /= next_ways(n);
  return n == 1;
}
static status transform_by_steps(struct op_call *c, int axis, int64_t n, bool inverse, value_id *value) {
  value_id roots;
  TRY(roots_of_unity(c, op_value(c, *value)->dtype, op_value(c, *value)->dims[axis], inverse, &roots));
  for (int64_t width = 1; width < n;) {
    struct butterfly b = {.axis = axis, .n = n, .width = width, .ways = next_ways(n / width)};
    TRY(b.ways == 4 ? butterfly_of_four(c, &b, inverse, roots, value) : butterfly_of_few(c, &b, inverse, roots, value));
    width *= b.ways;
  }
  return OK;
}

/* Divides by the length: the inverse's share for one axis. */
static status divide_by_length(struct op_call *c, int axis, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, *value), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct element e = kb_load(&kb, a, index);
  enum dtype real = dtype_real(x.dtype);
  expr_id n = expr_cast(kb.k, real, kb_dim(&kb, x.dims[axis]));
  e.re = expr_binary(kb.k, SCALAR_DIV, e.re, n);
  e.im = expr_binary(kb.k, SCALAR_DIV, e.im, n);
  kb_store(&kb, o, index, e);
  kb_close(&kb, x.rank);
  *value = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* A length that is known late, or that is long and no power of two. */
static void transform_in_runtime(struct op_call *c, int axis, bool inverse, value_id *value) {
  const struct flow_value x = *op_value(c, *value);
  struct flow_node *n = op_emit(c, FLOW_HOST, false);
  n->host = "fourier";
  vec_push(&n->inputs, *value);
  op_host_add_attr(c, n, "axis", (struct attr_value){.kind = ATTR_INT, .i = axis});
  op_host_add_attr(c, n, "inverse", (struct attr_value){.kind = ATTR_INT, .i = inverse});
  *value = op_add_output(c, n, x.dtype, x.rank, x.dims);
}

static status transform_axis(struct op_call *c, int axis, bool inverse, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  int64_t n = op_dim_value(c, x.dims[axis]);
  if (n >= 4 && has_steps(n)) {
    TRY(transform_by_steps(c, axis, n, inverse, value));
  } else if ((n >= 0 && n <= DIRECT_MAX) || x.data) {
    TRY(transform_directly(c, axis, inverse, value));
  } else {
    transform_in_runtime(c, axis, inverse, value);
  }
  return inverse ? divide_by_length(c, axis, value) : OK;
}

/* ---- complex ---- */

/* The number of axes is the row's (FFT, FFT2D, FFT3D), or (FFTND) the length of a list of axes, which must be the last ones. */
static status axes_of_op(struct op_call *c, int rank, int *count) {
  *count = c->row->form & ROW_3D ? 3 : c->row->form & ROW_2D ? 2 : 1;
  if (op_takes(c, "axes")) {
    value_id v;
    int64_t *axes;
    TRY(op_input(c, 2, &v));
    TRY(op_const_ints(c, v, "axes", &axes, count));
    for (int i = 0; i < *count; i++) {
      int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis != rank - *count + i)
        return fail(INVALID_ARGUMENT, "axes must be successive and ascending, the last one -1");
    }
    if (*count == 0)
      return fail(INVALID_ARGUMENT, "axes must not be empty");
  }
  if (rank < *count)
    return fail(INVALID_ARGUMENT, "Input must have rank of at least %d but got: %d", *count, rank);
  return OK;
}

static status read_lengths(struct op_call *c, int axes, dim **out) {
  value_id v;
  int count;
  TRY(op_input(c, 1, &v));
  TRY(op_elements(c, v, out, &count));
  if (count != axes)
    return fail(INVALID_ARGUMENT, "fft_length must have shape [%d], has %d elements", axes, count);
  for (int i = 0; i < count; i++)
    if (dim_less(op_dims(c), (*out)[i], op_dim(c, 0)) == 1)
      return fail(INVALID_ARGUMENT, "fft_length[%d] must >= 0, but got: %s", i, dim_text(op_dims(c), (*out)[i]));
  return OK;
}

/* Cut to the sizes, or filled up with zeros. */
static status resize(struct op_call *c, const dim *dims, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, *value), o = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK], inside = expr_int(kb.k, DTYPE_BOOL, 1), some = inside;
  for (int i = 0; i < x.rank; i++)
    some = kb_and(&kb, some, kb_lt(&kb, kb_int(&kb, 0), kb_dim(&kb, x.dims[i])));
  kb_loops(&kb, LOOP_PAR, x.rank, dims, index);
  for (int i = 0; i < x.rank; i++) {
    expr_id have = kb_dim(&kb, x.dims[i]);
    at[i] = kb_clamp(&kb, index[i], have);
    inside = kb_and(&kb, inside, kb_lt(&kb, index[i], have));
  }
  struct accumulator e = acc_zero(&kb, x.dtype);
  kb_if(&kb, kb_and(&kb, some, inside));
  acc_set(&kb, &e, kb_load(&kb, a, at));
  kb_close(&kb, 1);
  kb_store(&kb, o, index, acc_get(&kb, &e));
  kb_close(&kb, x.rank);
  *value = kb_value(&kb, o);
  return kb_finish(&kb);
}

status build_fft(struct op_call *c) {
  value_id v;
  int axes;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(axes_of_op(c, x.rank, &axes));
  if (op_takes(c, "axes")) {
    dim *lengths;
    TRY(read_lengths(c, axes, &lengths));
    memcpy(&x.dims[x.rank - axes], lengths, sizeof *lengths * (size_t)axes);
    TRY(resize(c, x.dims, &v));
  }
  for (int i = 0; i < axes; i++)
    TRY(transform_axis(c, x.rank - 1 - i, c->row->form & ROW_INVERSE, &v));
  op_set_output(c, 0, v);
  return OK;
}

/* ---- real ---- */

/* The first elements of each axis, as another dtype; an input that is too short is an error. */
static status crop(struct op_call *c, value_id v, const dim *dims, enum dtype dtype, value_id *out) {
  struct flow_value x = *op_value(c, v);
  if (op_dim_value(c, op_count(c, x.rank, x.dims)) == 0) { /* nothing becomes zeros of any size */
    TRY(resize(c, dims, &v));
    return op_cast(c, v, dtype, out);
  }
  for (int i = 0; i < x.rank; i++)
    if (dim_less(op_dims(c), x.dims[i], dims[i]) == 1)
      return fail(INVALID_ARGUMENT, "Input dimension %d must have length of at least %s but got: %s", i, dim_text(op_dims(c), dims[i]),
                  dim_text(op_dims(c), x.dims[i]));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, v), o = kb_out(&kb, dtype, x.rank, dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, index);
  for (int i = 0; i < x.rank; i++) {
    expr_id have = kb_dim(&kb, x.dims[i]), want = kb_dim(&kb, dims[i]);
    if (dim_equal(op_dims(c), x.dims[i], dims[i]) != 1)
      kb_check(&kb, expr_binary(kb.k, SCALAR_LE, want, have), INVALID_ARGUMENT, "Input must have length of at least %d but got: %d", want,
               have);
  }
  kb_store(&kb, o, index, f_cast(&kb.f, dtype, kb_load(&kb, a, index)));
  kb_close(&kb, x.rank);
  *out = kb_value(&kb, o);
  return kb_finish(&kb);
}

/* n / 2 + 1: what of a real transform is not implied by its symmetry; nothing of a transform of nothing */
static dim half_length(struct op_call *c, dim n) {
  if (op_dim_value(c, n) == 0)
    return n;
  return dim_add(op_dims(c), dim_floordiv(op_dims(c), n, op_dim(c, 2)), op_dim(c, 1));
}

status build_rfft(struct op_call *c) {
  value_id v;
  dim *lengths, dims[LIMIT_RANK];
  int axes;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(axes_of_op(c, x.rank, &axes));
  TRY(read_lengths(c, axes, &lengths));
  memcpy(dims, x.dims, sizeof dims);
  memcpy(&dims[x.rank - axes], lengths, sizeof *dims * (size_t)axes);
  enum dtype complex = op_output_dtype(c, 0);
  TRY(crop(c, v, dims, complex, &v));
  TRY(transform_axis(c, x.rank - 1, false, &v));
  dims[x.rank - 1] = half_length(c, dims[x.rank - 1]);
  TRY(crop(c, v, dims, complex, &v));
  for (int i = 1; i < axes; i++)
    TRY(transform_axis(c, x.rank - 1 - i, false, &v));
  op_set_output(c, 0, v);
  return OK;
}

/* The whole last axis from its first half: element n - k is the conjugate of element k. */
static status unfold_half(struct op_call *c, dim n, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  dim dims[LIMIT_RANK];
  memcpy(dims, x.dims, sizeof dims);
  dims[x.rank - 1] = n;
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, *value), o = kb_out(&kb, x.dtype, x.rank, dims);
  expr_id index[LIMIT_RANK], at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, dims, index);
  memcpy(at, index, sizeof at);
  expr_id k = index[x.rank - 1], half = kb_dim(&kb, x.dims[x.rank - 1]), first = kb_lt(&kb, k, half);
  at[x.rank - 1] = expr_select(kb.k, first, k, kb_sub(&kb, kb_dim(&kb, n), k));
  struct element e = kb_load(&kb, a, at);
  kb_store(&kb, o, index, f_select(&kb.f, real_element(first), e, f_conj(&kb.f, e)));
  kb_close(&kb, x.rank);
  *value = kb_value(&kb, o);
  return kb_finish(&kb);
}

static struct element formula_real(struct formula *f, struct element a, struct element b, struct element c) {
  (void)f, (void)b, (void)c;
  return f_real(a);
}

status build_irfft(struct op_call *c) {
  value_id v, out;
  dim *lengths, dims[LIMIT_RANK];
  int axes;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  TRY(axes_of_op(c, x.rank, &axes));
  TRY(read_lengths(c, axes, &lengths));
  memcpy(dims, x.dims, sizeof dims);
  memcpy(&dims[x.rank - axes], lengths, sizeof *dims * (size_t)axes);
  dim last = dims[x.rank - 1];
  dims[x.rank - 1] = half_length(c, last);
  TRY(crop(c, v, dims, x.dtype, &v));
  for (int i = axes - 1; i >= 1; i--)
    TRY(transform_axis(c, x.rank - 1 - i, true, &v));
  TRY(unfold_half(c, last, &v));
  TRY(transform_axis(c, x.rank - 1, true, &v));
  TRY(op_map(c, &v, 1, op_output_dtype(c, 0), formula_real, &out));
  op_set_output(c, 0, out);
  return OK;
}
