/* fourier.c: see fourier.h. Between steps the real parts of a line lie in front of all its imaginary parts: vectors are loaded and stored
 * as they are. */
#include "ir/ops/math/fourier.h"

#include <math.h>
#include <string.h>

#include "base/fourier.h"
#include "ir/lower/host_call.h"
#include "ir/ops/accumulate.h"
#include "ir/ops/math/fourier_roots.h"

#define DIRECT_MAX 128      /* of a length that is summed directly: n steps for each of n */
#define WAYS_MAX 13         /* the largest prime factor of a length that goes by steps */
#define TABLE_MIN 64        /* a length that goes as a table of two axes */
#define TABLE_AXES 3        /* of one that is turned: parts, rows, columns */
#define TABLE_SIDE_MIN 8    /* and the least side of one */
#define CHIRP_MAX (1 << 15) /* of a length whose chirps are constants of the executable */

/* Lines of n elements that are transformed, `run` apart: a value [before..., n * run] of complex elements, or one [before..., 2 * n * run]
 * of their parts. */
struct lines {
  int before;
  dim dims[LIMIT_RANK];
  int64_t n;
  dim run;
  bool inverse;
  enum dtype complex;
};

static dim line_length(struct op_call *c, const struct lines *l) { return dim_mul(op_dims(c), op_dim(c, l->n), l->run); }

/* The value's dims and dtype, as complex elements or in parts. Returns its rank. */
static int line_shape(struct op_call *c, const struct lines *l, bool in_parts, dim *dims, enum dtype *dtype) {
  memcpy(dims, l->dims, sizeof *dims * (size_t)l->before);
  dims[l->before] = dim_mul(op_dims(c), line_length(c, l), op_dim(c, in_parts ? 2 : 1));
  *dtype = in_parts ? dtype_real(l->complex) : l->complex;
  return l->before + 1;
}
static uint32_t line_out(struct kb *kb, const struct lines *l, bool in_parts) {
  dim dims[LIMIT_RANK];
  enum dtype dtype;
  int rank = line_shape(kb->c, l, in_parts, dims, &dtype);
  return kb_out(kb, dtype, rank, dims);
}
static bool is_in_parts(const struct kb *kb, uint32_t buffer) { return !dtype_is_complex(kb->k->buffers.items[buffer].dtype); }

/* index: of the lines' other axes, then free for where on the line. */
static struct element line_load(struct kb *kb, const struct lines *l, uint32_t buffer, expr_id *index, expr_id at) {
  index[l->before] = at;
  struct element e = kb_load(kb, buffer, index);
  if (!is_in_parts(kb, buffer))
    return e;
  index[l->before] = kb_add(kb, at, kb_dim(kb, line_length(kb->c, l)));
  return (struct element){e.re, kb_load(kb, buffer, index).re};
}
static void line_store(struct kb *kb, const struct lines *l, uint32_t buffer, expr_id *index, expr_id at, struct element e) {
  index[l->before] = at;
  if (!is_in_parts(kb, buffer)) {
    kb_store(kb, buffer, index, e);
    return;
  }
  kb_store(kb, buffer, index, real_element(e.re));
  index[l->before] = kb_add(kb, at, kb_dim(kb, line_length(kb->c, l)));
  kb_store(kb, buffer, index, real_element(e.im));
}

/* ---- one step ---- */

static struct element mul(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_MUL, a, b); }
static struct element add(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_ADD, a, b); }
static struct element sub(struct kb *kb, struct element a, struct element b) { return f_binary(&kb->f, SCALAR_SUB, a, b); }

/* A line as rows of columns: element (row, column) is turned by e^(-+2 pi i row column / n). */
struct table {
  int64_t columns;
  value_id parts;             /* all of these numbers, in parts; or NO_VALUE: */
  struct fourier_roots roots; /* they would be too many */
};

/* Loops over all butterflies of `ways` elements, n / ways apart, which go behind each other; `width` have been sorted together so far. */
struct butterfly {
  struct kb kb;
  const struct lines *lines;
  const struct table *table; /* of the last step, where its elements are rows of one; or NULL */
  uint32_t in, out, parts;
  struct fourier_roots roots, turns;
  int ways;
  int64_t width;
  expr_id index[LIMIT_RANK], group, place;
};

static void butterfly_begin(struct op_call *c, value_id value, bool in_parts, struct butterfly *b) {
  const struct lines *l = b->lines;
  struct kb *kb = &b->kb;
  kb_begin(kb, c, l->complex);
  b->in = kb_in(kb, value);
  fourier_roots_in(kb, &b->roots);
  if (b->table && b->table->parts != NO_VALUE) {
    b->parts = kb_in(kb, b->table->parts);
  } else if (b->table) {
    b->turns = b->table->roots;
    fourier_roots_in(kb, &b->turns);
  }
  b->out = line_out(kb, l, in_parts);
  kb_loops(kb, LOOP_PAR, l->before, l->dims, b->index);
  b->group = kb_for(kb, LOOP_PAR, kb_int(kb, l->n / (b->ways * b->width)));
  b->place = kb_for_dim(kb, LOOP_PAR, dim_mul(op_dims(c), op_dim(c, b->width), l->run));
}
/* `elements` of the line, and the place in its run */
static expr_id butterfly_at(struct butterfly *b, expr_id elements) {
  struct kb *kb = &b->kb;
  return kb_add(kb, kb_mul(kb, elements, kb_dim(kb, b->lines->run)), b->place);
}
static struct element butterfly_load(struct butterfly *b, int way) {
  struct kb *kb = &b->kb;
  expr_id from = kb_add(kb, kb_mul(kb, b->group, kb_int(kb, b->width)), kb_int(kb, b->lines->n / b->ways * way));
  struct accumulator e = acc_begin(kb, line_load(kb, b->lines, b->in, b->index, butterfly_at(b, from)));
  return acc_get(kb, &e);
}
static struct element table_turn(struct butterfly *b, expr_id at) {
  struct kb *kb = &b->kb;
  if (b->table->parts == NO_VALUE) {
    expr_id columns = kb_int(kb, b->table->columns);
    return fourier_root(kb, &b->turns, kb_mul(kb, kb_div(kb, at, columns), kb_mod(kb, at, columns)));
  }
  struct lines table = *b->lines;
  expr_id index[1];
  table.before = 0;
  return line_load(kb, &table, b->parts, index, at);
}
/* Turned by `way` times the group's root; the last step has one group, and nothing to turn but what a table wants. */
static void butterfly_store(struct butterfly *b, int way, struct element e) {
  struct kb *kb = &b->kb;
  expr_id to = kb_add(kb, kb_mul(kb, b->group, kb_int(kb, b->ways * b->width)), kb_int(kb, b->width * way)), at = butterfly_at(b, to);
  if (way && b->width * b->ways < b->lines->n)
    e = mul(kb, fourier_root(kb, &b->roots, kb_mul(kb, b->group, kb_int(kb, b->width * way))), e);
  if (b->table)
    e = mul(kb, table_turn(b, at), e);
  line_store(kb, b->lines, b->out, b->index, at, e);
}
static status butterfly_end(struct butterfly *b, value_id *value) {
  kb_close(&b->kb, b->lines->before + 2);
  *value = kb_value(&b->kb, b->out);
  return kb_finish(&b->kb);
}

/* An element times -i, forward, or i: a quarter's root. */
static struct element quarter(struct butterfly *b, struct element e) {
  struct formula *f = &b->kb.f;
  return b->lines->inverse ? (struct element){f_unary(f, SCALAR_NEG, real_element(e.im)).re, e.re}
                           : (struct element){e.im, f_unary(f, SCALAR_NEG, real_element(e.re)).re};
}
static void store_two(struct butterfly *b, const struct element *x) {
  butterfly_store(b, 0, add(&b->kb, x[0], x[1]));
  butterfly_store(b, 1, sub(&b->kb, x[0], x[1]));
}
/* Two steps of two ways, one behind the other, as one: with three roots where those have four. */
static void store_four(struct butterfly *b, const struct element *x) {
  struct kb *kb = &b->kb;
  struct element even = add(kb, x[0], x[2]), first = sub(kb, x[0], x[2]), odd = add(kb, x[1], x[3]);
  struct element turned = quarter(b, sub(kb, x[1], x[3]));
  butterfly_store(b, 0, add(kb, even, odd));
  butterfly_store(b, 1, add(kb, first, turned));
  butterfly_store(b, 2, sub(kb, even, odd));
  butterfly_store(b, 3, sub(kb, first, turned));
}
/* The sum over pairs of the function of 2 pi `way` / `ways` times the pair's number, with the pair's element as factor. */
static struct element pair_sum(struct butterfly *b, double (*of)(double), int way, const struct element *pairs) {
  struct kb *kb = &b->kb;
  enum dtype real = dtype_real(b->lines->complex);
  struct element sum = {NO_EXPR, NO_EXPR};
  for (int i = 1; 2 * i < b->ways; i++) {
    struct element factor = f_const_as(&kb->f, real, of(2 * M_PI * (i * way % b->ways) / b->ways));
    struct element term = {mul(kb, factor, real_element(pairs[i].re)).re, mul(kb, factor, real_element(pairs[i].im)).re};
    sum = i == 1 ? term : add(kb, sum, term);
  }
  return sum;
}
/* An odd number of ways: elements i and ways - i have the same cosine, and sines of opposite signs; so have results. */
static void store_odd(struct butterfly *b, const struct element *x) {
  struct kb *kb = &b->kb;
  struct element sums[WAYS_MAX], differences[WAYS_MAX], all = x[0];
  for (int i = 1; 2 * i < b->ways; i++) {
    struct accumulator sum = acc_begin(kb, add(kb, x[i], x[b->ways - i]));
    struct accumulator difference = acc_begin(kb, sub(kb, x[i], x[b->ways - i]));
    sums[i] = acc_get(kb, &sum), differences[i] = acc_get(kb, &difference);
    all = add(kb, all, sums[i]);
  }
  butterfly_store(b, 0, all);
  for (int way = 1; 2 * way < b->ways; way++) {
    struct accumulator level = acc_begin(kb, add(kb, x[0], pair_sum(b, cos, way, sums)));
    struct accumulator turned = acc_begin(kb, quarter(b, pair_sum(b, sin, way, differences)));
    butterfly_store(b, way, add(kb, acc_get(kb, &level), acc_get(kb, &turned)));
    butterfly_store(b, b->ways - way, sub(kb, acc_get(kb, &level), acc_get(kb, &turned)));
  }
}
static status butterfly(struct op_call *c, struct butterfly *b, bool in_parts, value_id *value) {
  struct element x[WAYS_MAX] = {{NO_EXPR, NO_EXPR}};
  butterfly_begin(c, *value, in_parts, b);
  for (int i = 0; i < b->ways; i++)
    x[i] = butterfly_load(b, i);
  if (b->ways == 4)
    store_four(b, x);
  else if (b->ways == 2)
    store_two(b, x);
  else
    store_odd(b, x);
  return butterfly_end(b, value);
}

/* ---- all steps of a length ---- */

/* The ways of the next step of what is left of a length; 0: it has none so few. */
static int next_ways(int64_t left) {
  static const int ways[] = {4, 2, 3, 5, 7, 11, WAYS_MAX};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (left % ways[i] == 0)
      return ways[i];
  return 0;
}
static bool has_steps(int64_t n) { /* not of nothing */
  if (n < 1)
    return false;
  while (n > 1 && next_ways(n))
    n /= next_ways(n);
  return n == 1;
}
/* table: whose rows the lines' elements are, or NULL; the result is then left in parts. */
static status transform_by_steps(struct op_call *c, const struct lines *l, const struct table *table, value_id *value) {
  struct fourier_roots roots = fourier_roots(c, l->complex, l->n, l->n, l->inverse);
  for (int64_t width = 1; width < l->n;) {
    struct butterfly b = {.lines = l, .width = width, .ways = next_ways(l->n / width), .roots = roots};
    width *= b.ways;
    b.table = width == l->n ? table : NULL;
    TRY(butterfly(c, &b, width < l->n || table, value));
  }
  return OK;
}

/* The sides of the table of a length: as even as they can be. 1: it has none. */
static int64_t table_side(int64_t n) {
  int64_t side = (int64_t)sqrt((double)n);
  while (side >= TABLE_SIDE_MIN && n % side)
    side--;
  return n >= TABLE_MIN && side >= TABLE_SIDE_MIN ? side : 1;
}
static struct table make_table(struct op_call *c, const struct lines *rows, int64_t columns) {
  int64_t n = rows->n * columns;
  struct table t = {.columns = columns, .parts = NO_VALUE};
  if (fourier_is_large(rows->complex, n)) {
    t.roots = fourier_roots(c, rows->complex, n, n, rows->inverse);
    return t;
  }
  struct numbers all = numbers_begin(c, rows->complex, 2 * n);
  for (int64_t i = 0; i < n; i++)
    fourier_root_of(&all.of[i], &all.of[n + i], i / columns * (i % columns), n, rows->inverse);
  t.parts = numbers_end(&all, true);
  return t;
}
/* Rows become columns, in both parts. */
static status turn_table(struct op_call *c, const struct lines *l, int64_t columns, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  dim dims[LIMIT_RANK], flat = x.dims[l->before], sides[3] = {op_dim(c, 2), op_dim(c, columns), op_dim(c, l->n)};
  expr_id index[LIMIT_RANK];
  int rank = l->before + TABLE_AXES;
  memcpy(dims, l->dims, sizeof *dims * (size_t)l->before);
  dims[rank - 3] = sides[0], dims[rank - 2] = sides[2], dims[rank - 1] = sides[1];
  *value = op_alias(c, *value, x.dtype, rank, dims);
  memcpy(&dims[l->before], sides, sizeof sides);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, *value), o = kb_out(&kb, x.dtype, rank, dims);
  kb_loops(&kb, LOOP_PAR, rank, dims, index);
  expr_id from[LIMIT_RANK];
  memcpy(from, index, sizeof from);
  from[rank - 2] = index[rank - 1], from[rank - 1] = index[rank - 2];
  kb_store(&kb, o, index, kb_load(&kb, a, from));
  kb_close(&kb, rank);
  *value = kb_value(&kb, o);
  TRY(kb_finish(&kb));
  dims[l->before] = flat;
  *value = op_alias(c, *value, x.dtype, l->before + 1, dims);
  return OK;
}
/* Elements side by side have no runs: as rows of a table they have, of its columns, and behind that as its columns, of its rows. */
static status transform_as_table(struct op_call *c, const struct lines *l, int64_t side, value_id *value) {
  int64_t columns = l->n / side;
  struct lines down = *l, across = *l;
  down.n = side, down.run = op_dim(c, columns);
  across.n = columns, across.run = op_dim(c, side);
  struct table table = make_table(c, &down, columns);
  TRY(transform_by_steps(c, &down, &table, value));
  TRY(turn_table(c, &down, columns, value));
  return transform_by_steps(c, &across, NULL, value);
}

/* ---- other lengths ---- */

/* out[k] = sum over j of x[j] * root[j * k mod n] */
static status transform_directly(struct op_call *c, const struct lines *l, value_id *value) {
  struct fourier_roots roots = fourier_roots(c, l->complex, l->n, l->n, l->inverse);
  struct kb kb;
  kb_begin(&kb, c, l->complex);
  uint32_t a = kb_in(&kb, *value), o = line_out(&kb, l, false);
  fourier_roots_in(&kb, &roots);
  expr_id index[LIMIT_RANK], n = kb_int(&kb, l->n), run = kb_dim(&kb, l->run);
  kb_loops(&kb, LOOP_PAR, l->before, l->dims, index);
  expr_id k = kb_for(&kb, LOOP_PAR, n), place = kb_for_dim(&kb, LOOP_PAR, l->run);
  struct accumulator acc = acc_zero(&kb, l->complex);
  expr_id j = kb_for(&kb, LOOP_RED, n), which = kb_mod(&kb, kb_mul(&kb, j, k), n);
  struct element x = line_load(&kb, l, a, index, kb_add(&kb, kb_mul(&kb, j, run), place));
  acc_add(&kb, &acc, mul(&kb, x, fourier_root(&kb, &roots, which)));
  kb_close(&kb, 1);
  line_store(&kb, l, o, index, kb_add(&kb, kb_mul(&kb, k, run), place), acc_get(&kb, &acc));
  kb_close(&kb, l->before + 2);
  *value = kb_value(&kb, o);
  return kb_finish(&kb);
}

static status transform_lines(struct op_call *c, const struct lines *l, value_id *value);

/* re and im as one constant, divided. */
static value_id constant_of(struct op_call *c, enum dtype complex, const double *re, const double *im, int64_t count, double by) {
  struct numbers all = numbers_begin(c, complex, 2 * count);
  for (int64_t k = 0; k < count; k++)
    all.of[2 * k] = re[k] / by, all.of[2 * k + 1] = im[k] / by;
  return numbers_end(&all, false);
}
/* The first elements of the lines `from`, each times the factor of its place, as those of `to`, which are zeros behind them. */
static status scale_lines(struct op_call *c, const struct lines *from, const struct lines *to, value_id factors, value_id *value) {
  struct kb kb;
  kb_begin(&kb, c, to->complex);
  uint32_t a = kb_in(&kb, *value), w = kb_in(&kb, factors), o = line_out(&kb, to, false);
  expr_id index[LIMIT_RANK], run = kb_dim(&kb, to->run);
  kb_loops(&kb, LOOP_PAR, to->before, to->dims, index);
  expr_id k = kb_for(&kb, LOOP_PAR, kb_int(&kb, to->n)), place = kb_for_dim(&kb, LOOP_PAR, to->run);
  expr_id at = kb_add(&kb, kb_mul(&kb, k, run), place);
  struct accumulator e = acc_zero(&kb, to->complex);
  if (from->n < to->n)
    kb_if(&kb, kb_lt(&kb, k, kb_int(&kb, from->n)));
  acc_set(&kb, &e, mul(&kb, line_load(&kb, from, a, index, at), kb_load(&kb, w, &k)));
  if (from->n < to->n)
    kb_close(&kb, 1);
  line_store(&kb, to, o, index, at, acc_get(&kb, &e));
  kb_close(&kb, to->before + 2);
  *value = kb_value(&kb, o);
  return kb_finish(&kb);
}
/* j k = (j^2 + k^2 - (k - j)^2) / 2: a sum over j of products of what depends on j and on k - j. */
static status transform_by_chirp(struct op_call *c, const struct lines *l, value_id *value) {
  struct fourier f;
  TRY(fourier_init(&f, l->n, l->inverse, 1));
  struct lines longer = *l, back = *l;
  longer.n = back.n = f.size;
  longer.inverse = false, back.inverse = true;
  value_id chirp = constant_of(c, l->complex, f.chirp_re, f.chirp_im, f.n, 1);
  value_id filter = constant_of(c, l->complex, f.filter_re, f.filter_im, f.size, (double)f.size);
  fourier_deinit(&f);
  TRY(scale_lines(c, l, &longer, chirp, value));
  TRY(transform_lines(c, &longer, value));
  TRY(scale_lines(c, &longer, &longer, filter, value));
  TRY(transform_lines(c, &back, value));
  return scale_lines(c, &longer, l, chirp, value);
}

/* ---- any length ---- */

static bool is_known_well(int64_t n) { return n >= 0 && (has_steps(n) || n <= CHIRP_MAX); }
static status transform_lines(struct op_call *c, const struct lines *l, value_id *value) {
  if (l->n < 2 || (l->n <= DIRECT_MAX && !has_steps(l->n)))
    return transform_directly(c, l, value);
  if (!has_steps(l->n))
    return transform_by_chirp(c, l, value);
  bool is_table = op_dim_value(c, l->run) == 1 && l->before + TABLE_AXES <= LIMIT_RANK;
  int64_t side = is_table ? table_side(l->n) : 1;
  return side > 1 ? transform_as_table(c, l, side, value) : transform_by_steps(c, l, NULL, value);
}
/* Divides all elements by a number. */
static status divide(struct op_call *c, dim by, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t a = kb_in(&kb, *value), o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, index);
  struct element e = kb_load(&kb, a, index);
  expr_id n = expr_cast(kb.k, dtype_real(x.dtype), kb_dim(&kb, by));
  e.re = expr_binary(kb.k, SCALAR_DIV, e.re, n);
  e.im = expr_binary(kb.k, SCALAR_DIV, e.im, n);
  kb_store(&kb, o, index, e);
  kb_close(&kb, x.rank);
  *value = kb_value(&kb, o);
  return kb_finish(&kb);
}
/* A length that only the step knows, or that is too long for constants. */
static void transform_in_runtime(struct op_call *c, int axis, bool inverse, value_id *value) {
  const struct flow_value x = *op_value(c, *value);
  struct flow_node *n = op_emit(c, FLOW_HOST, false);
  n->host = "fourier";
  vec_push(&n->inputs, *value);
  op_host_add_attr(c, n, "axis", (struct attr_value){.kind = ATTR_INT, .i = axis});
  op_host_add_attr(c, n, "inverse", (struct attr_value){.kind = ATTR_INT, .i = inverse});
  *value = op_add_output(c, n, x.dtype, x.rank, x.dims);
}

status fourier_transform(struct op_call *c, int axis, bool inverse, value_id *value) {
  struct flow_value x = *op_value(c, *value);
  struct lines l = {.before = axis, .n = op_dim_value(c, x.dims[axis]), .inverse = inverse, .complex = x.dtype};
  l.run = op_count(c, x.rank - axis - 1, x.dims + axis + 1);
  memcpy(l.dims, x.dims, sizeof *l.dims * (size_t)axis);
  if (is_known_well(l.n)) {
    dim dims[LIMIT_RANK];
    enum dtype dtype;
    int rank = line_shape(c, &l, false, dims, &dtype);
    if (rank < x.rank)
      *value = op_alias(c, *value, dtype, rank, dims);
    TRY(transform_lines(c, &l, value));
    if (rank < x.rank)
      *value = op_alias(c, *value, dtype, x.rank, x.dims);
  } else {
    transform_in_runtime(c, axis, inverse, value);
  }
  return inverse ? divide(c, x.dims[axis], value) : OK;
}
