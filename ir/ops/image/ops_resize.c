/* ops_resize.c: images of another size: by the nearest pixel, by two or by four on each axis, and the gradients of the first
 * two. Positions and weights are computed in float, as TensorFlow does. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"
#include "ir/ops/image/resize_pass.h"
#include "ir/ops/quantized/quantized.h"

struct resize {
  value_id images;
  dim dims[4]; /* of the larger problem: batch, height, width, channels of the input */
  dim out[2];
  bool align, half_pixel;
};
/* One axis of a position: the pixels to read and how much of each. */
#define TAPS_MAX 4
struct taps {
  int count;
  expr_id at[TAPS_MAX];
  struct element weight[TAPS_MAX];
};

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, DTYPE_FLOAT, v); }
static struct element bin(struct kb *kb, enum scalar_op op, struct element a, struct element b) { return f_binary(&kb->f, op, a, b); }
static struct element as_float(struct kb *kb, expr_id e) { return real_element(expr_cast(kb->k, DTYPE_FLOAT, e)); }
static expr_id as_int(struct kb *kb, struct element e) { return expr_cast(kb->k, DTYPE_INT64, e.re); }

/* ---- positions ---- */

/* The step between output positions in the input: between corners, or between sizes. */
static struct element axis_scale(struct kb *kb, const struct resize *r, dim in, dim out) {
  expr_id one = kb_int(kb, 1), n = kb_dim(kb, in), m = kb_dim(kb, out);
  struct element whole = bin(kb, SCALAR_DIV, as_float(kb, n), as_float(kb, m));
  if (!r->align)
    return whole;
  expr_id many = kb_and(kb, kb_lt(kb, one, m), kb_lt(kb, one, n)), less = expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, m, one), one);
  struct element corners = bin(kb, SCALAR_DIV, as_float(kb, kb_sub(kb, n, one)), as_float(kb, less));
  return f_select(&kb->f, real_element(many), corners, whole);
}

static struct element axis_position(struct kb *kb, const struct resize *r, struct element scale, expr_id o) {
  struct element at = as_float(kb, o);
  if (!r->half_pixel)
    return bin(kb, SCALAR_MUL, at, scale);
  at = bin(kb, SCALAR_MUL, bin(kb, SCALAR_ADD, at, num(kb, 0.5)), scale);
  return bin(kb, SCALAR_SUB, at, num(kb, 0.5));
}

static struct taps nearest_taps(struct kb *kb, const struct resize *r, dim in, dim out, expr_id o) {
  struct element scale = axis_scale(kb, r, in, out), at = as_float(kb, o), half = num(kb, 0.5);
  if (r->half_pixel)
    at = bin(kb, SCALAR_ADD, at, half);
  at = bin(kb, SCALAR_MUL, at, scale);
  if (r->align)
    at = bin(kb, SCALAR_ADD, at, half); /* rounds half away from zero: positions are not negative */
  expr_id i = as_int(kb, f_unary(&kb->f, SCALAR_FLOOR, at));
  return (struct taps){1, {kb_clamp(kb, i, kb_dim(kb, in))}, {num(kb, 1)}};
}

/* The pixels on both sides of a position, which is between them; of one that is whole both are the same. */
struct between {
  expr_id low, high;
  struct element part; /* of the way from low to high */
};
static struct between between_pixels(struct kb *kb, const struct resize *r, dim in, dim out, expr_id o) {
  struct element at = axis_position(kb, r, axis_scale(kb, r, in, out), o), low = f_unary(&kb->f, SCALAR_FLOOR, at);
  expr_id n = kb_dim(kb, in), high = as_int(kb, f_unary(&kb->f, SCALAR_CEIL, at));
  return (struct between){kb_clamp(kb, as_int(kb, low), n), kb_clamp(kb, high, n), bin(kb, SCALAR_SUB, at, low)};
}
static struct taps linear_taps(struct kb *kb, const struct resize *r, dim in, dim out, expr_id o) {
  struct between b = between_pixels(kb, r, in, out, o);
  return (struct taps){2, {b.low, b.high}, {bin(kb, SCALAR_SUB, num(kb, 1), b.part), b.part}};
}

/* The cubic kernel for distance x in [0,1] (near) or x + 1 (far); a is its slope at 1. */
static struct element cubic_weight(struct kb *kb, double a, struct element x, bool far) {
  if (far) {
    const double c[] = {a, -5 * a, 8 * a, -4 * a};
    return f_poly(&kb->f, bin(kb, SCALAR_ADD, x, num(kb, 1)), 4, c);
  }
  const double c[] = {a + 2, -(a + 3), 0, 1};
  return f_poly(&kb->f, x, 4, c);
}

/* Distances are multiples of 1/1024, for which TensorFlow has a table. With half-pixel centres, pixels outside have no
 * weight and the others are scaled up. */
static struct taps cubic_taps(struct kb *kb, const struct resize *r, dim in, dim out, expr_id o) {
  double a = r->half_pixel ? -0.5 : -0.75;
  struct element at = axis_position(kb, r, axis_scale(kb, r, in, out), o), low = f_unary(&kb->f, SCALAR_FLOOR, at);
  struct element steps = f_unary(&kb->f, SCALAR_RINT, bin(kb, SCALAR_MUL, bin(kb, SCALAR_SUB, at, low), num(kb, 1024)));
  struct element x = bin(kb, SCALAR_MUL, steps, num(kb, 1.0 / 1024)), rest = bin(kb, SCALAR_SUB, num(kb, 1), x), sum = num(kb, 0);
  struct taps t = {.count = 4};
  expr_id n = kb_dim(kb, in);
  for (int i = 0; i < 4; i++) {
    expr_id place = kb_add(kb, as_int(kb, low), kb_int(kb, i - 1));
    t.weight[i] = cubic_weight(kb, a, i < 2 ? x : rest, i == 0 || i == 3);
    t.at[i] = kb_clamp(kb, place, n);
    if (r->half_pixel) {
      struct element inside = real_element(expr_binary(kb->k, SCALAR_EQ, place, t.at[i]));
      t.weight[i] = f_select(&kb->f, inside, t.weight[i], num(kb, 0));
    }
    sum = bin(kb, SCALAR_ADD, sum, t.weight[i]);
  }
  for (int i = 0; i < 4 && r->half_pixel; i++)
    t.weight[i] = bin(kb, SCALAR_DIV, t.weight[i], sum);
  return t;
}

typedef struct taps (*taps_of_axis)(struct kb *kb, const struct resize *r, dim in, dim out, expr_id o);

/* ---- forward ---- */

static status resize_read(struct op_call *c, value_id images, struct resize *r) {
  struct flow_value x = *op_value(c, images);
  if (x.rank != 4)
    return fail(INVALID_ARGUMENT, "input must be 4-dimensional%s", op_shape_text(c, x.rank, x.dims));
  for (int i = 1; i < 4; i++)
    TRY(op_require_le(c, op_dim(c, 1), x.dims[i], "an image must be of non-zero size and have at least one channel"));
  r->images = images;
  memcpy(r->dims, x.dims, sizeof r->dims);
  r->align = node_attr_int(c->node, OP_ROW(c, resize_row)->is_prefixed ? "resize_align_corners" : "align_corners", 0);
  r->half_pixel = node_attr_int(c->node, "half_pixel_centers", 0);
  return OK;
}
static status resize_begin(struct op_call *c, value_id images, struct resize *r) {
  TRY(resize_read(c, images, r));
  bool both = r->align && r->half_pixel;
  return both ? fail(INVALID_ARGUMENT, "If half_pixel_centers is True, align_corners must be False.") : OK;
}

static status read_size(struct op_call *c, uint32_t input, dim out[2]) {
  value_id v;
  dim elements[LIMIT_RANK];
  TRY(op_input(c, input, &v));
  TRY(op_sizes(c, v, "size", 2, elements));
  for (int i = 0; i < 2; i++) {
    TRY(op_require_le(c, op_dim(c, 1), elements[i], "output dimensions must be positive"));
    out[i] = elements[i];
  }
  return OK;
}

/* The taps of all positions of an axis: 0 the rows, 1 the columns. */
static status axis_table(struct op_call *c, const struct resize *r, int axis, taps_of_axis taps, struct axis_taps *out) {
  struct kb kb;
  expr_id o;
  kb_begin(&kb, c, DTYPE_FLOAT);
  int count = taps == nearest_taps ? 1 : taps == linear_taps ? 2 : TAPS_MAX;
  *out = (struct axis_taps){.count = op_dim(c, count), .is_between = count == 2};
  const dim dims[2] = {r->out[axis], out->count};
  uint32_t at = kb_out(&kb, DTYPE_INT32, 2, dims), weight = kb_out(&kb, DTYPE_FLOAT, 2, dims);
  kb_loops(&kb, LOOP_PAR, 1, dims, &o);
  struct taps t = taps(&kb, r, r->dims[1 + axis], r->out[axis], o);
  for (int i = 0; i < t.count; i++) {
    const expr_id place[2] = {o, kb_int(&kb, i)};
    kb_store(&kb, at, place, real_element(expr_cast(kb.k, DTYPE_INT32, t.at[i])));
    kb_store(&kb, weight, place, t.weight[i]);
  }
  kb_close(&kb, 1);
  out->at = kb_value(&kb, at), out->weight = kb_value(&kb, weight);
  return kb_finish_guarded(&kb);
}
/* Rows that are left out need no columns: the axis that makes the image smaller goes first. */
static bool rows_first(struct op_call *c, const struct resize *r) {
  int64_t in = op_dim_value(c, r->dims[1]), out = op_dim_value(c, r->out[0]);
  return in > out && out > 0;
}
static status resize_axes(struct op_call *c, const struct resize *r, const struct axis_taps taps[2], value_id factor) {
  int first = rows_first(c, r) ? 0 : 1;
  value_id half, whole;
  TRY(resize_pass(c, r->images, 1 + first, &taps[first], NO_VALUE, DTYPE_FLOAT, &half));
  TRY(resize_pass(c, half, 2 - first, &taps[1 - first], factor, op_output_dtype(c, 0), &whole));
  op_set_output(c, 0, whole);
  return OK;
}
static status resize_sizes(struct op_call *c, struct resize *r) {
  value_id images;
  TRY(op_input(c, 0, &images));
  TRY(resize_begin(c, images, r));
  return read_size(c, 1, r->out);
}
static status resize_weighted(struct op_call *c, taps_of_axis taps) {
  struct resize r;
  struct axis_taps axes[2];
  TRY(resize_sizes(c, &r));
  for (int i = 0; i < 2; i++)
    TRY(axis_table(c, &r, i, taps, &axes[i]));
  return resize_axes(c, &r, axes, NO_VALUE);
}
status build_resize_bilinear(struct op_call *c) { return resize_weighted(c, linear_taps); }
status build_resize_bicubic(struct op_call *c) { return resize_weighted(c, cubic_taps); }

status build_resize_nearest(struct op_call *c) {
  struct resize r;
  struct axis_taps axes[2];
  struct kb kb;
  expr_id index[4], from[4];
  TRY(resize_sizes(c, &r));
  for (int i = 0; i < 2; i++)
    TRY(axis_table(c, &r, i, nearest_taps, &axes[i]));
  kb_begin(&kb, c, DTYPE_FLOAT);
  const dim dims[4] = {r.dims[0], r.out[0], r.out[1], r.dims[3]};
  uint32_t a = kb_in(&kb, r.images), o = kb_out(&kb, op_output_dtype(c, 0), 4, dims);
  kb_loops(&kb, LOOP_PAR, 4, dims, index);
  memcpy(from, index, sizeof from);
  for (int i = 0; i < 2; i++)
    from[1 + i] = kb_index(&kb, kb_load(&kb, kb_in(&kb, axes[i].at), (const expr_id[]){index[1 + i], kb_int(&kb, 0)}));
  kb_store(&kb, o, index, kb_load(&kb, a, from));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* ---- by area: the mean of what lies under a pixel of the result, pixels at its border by their share ---- */

struct cover {
  struct element begin, end, step;
  expr_id first, count;
};

static struct cover cover_of(struct kb *kb, const struct resize *r, dim in, dim out, expr_id o) {
  struct cover v = {.step = axis_scale(kb, r, in, out)};
  v.begin = bin(kb, SCALAR_MUL, as_float(kb, o), v.step);
  v.end = bin(kb, SCALAR_MUL, as_float(kb, kb_add(kb, o, kb_int(kb, 1))), v.step);
  v.first = as_int(kb, f_unary(&kb->f, SCALAR_FLOOR, v.begin));
  v.count = kb_sub(kb, as_int(kb, f_unary(&kb->f, SCALAR_CEIL, v.end)), v.first);
  return v;
}

/* The share of pixel i that is covered. */
static struct element cover_share(struct kb *kb, const struct cover *v, expr_id i) {
  struct formula *f = &kb->f;
  struct element here = as_float(kb, i), next = as_float(kb, kb_add(kb, i, kb_int(kb, 1)));
  struct element ends = bin(kb, SCALAR_LT, v->end, next), begins = bin(kb, SCALAR_LT, here, v->begin);
  struct element inner = f_select(f, ends, bin(kb, SCALAR_SUB, v->end, here), num(kb, 1));
  return f_select(f, begins, f_select(f, ends, v->step, bin(kb, SCALAR_SUB, next, v->begin)), inner);
}

/* A pixel of the result covers no more than the step, whole, and one. */
static dim covered_most(struct op_call *c, const struct resize *r, dim in, dim out) {
  struct dim_table *t = op_dims(c);
  dim one = op_dim(c, 1), less = r->align ? dim_max(t, dim_sub(t, out, one), one) : out;
  return dim_add(t, dim_floordiv(t, dim_sub(t, dim_add(t, in, less), one), less), one);
}
static status cover_table(struct op_call *c, const struct resize *r, int axis, struct axis_taps *out) {
  struct kb kb;
  expr_id place[2];
  dim in = r->dims[1 + axis];
  kb_begin(&kb, c, DTYPE_FLOAT);
  *out = (struct axis_taps){.count = covered_most(c, r, in, r->out[axis]), .skips = true};
  const dim dims[2] = {r->out[axis], out->count};
  uint32_t at = kb_out(&kb, DTYPE_INT32, 2, dims), weight = kb_out(&kb, DTYPE_FLOAT, 2, dims);
  kb_loops(&kb, LOOP_PAR, 2, dims, place);
  struct cover v = cover_of(&kb, r, in, r->out[axis], place[0]);
  expr_id i = kb_add(&kb, v.first, place[1]);
  struct element is_covered = real_element(kb_lt(&kb, place[1], v.count)), share = cover_share(&kb, &v, i);
  kb_store(&kb, at, place, real_element(expr_cast(kb.k, DTYPE_INT32, kb_clamp(&kb, i, kb_dim(&kb, in)))));
  kb_store(&kb, weight, place, f_select(&kb.f, is_covered, share, num(&kb, 0)));
  kb_close(&kb, 2);
  out->at = kb_value(&kb, at), out->weight = kb_value(&kb, weight);
  return kb_finish_guarded(&kb);
}
/* 1 over the pixels that one of the result covers. */
static status cover_factor(struct op_call *c, const struct resize *r, value_id *out) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t o = kb_out(&kb, DTYPE_FLOAT, 0, NULL);
  struct element y = axis_scale(&kb, r, r->dims[1], r->out[0]), x = axis_scale(&kb, r, r->dims[2], r->out[1]);
  kb_store(&kb, o, NULL, bin(&kb, SCALAR_DIV, num(&kb, 1), bin(&kb, SCALAR_MUL, y, x)));
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}
status build_resize_area(struct op_call *c) {
  struct resize r;
  struct axis_taps axes[2];
  value_id factor;
  TRY(resize_sizes(c, &r));
  TRY(cover_factor(c, &r, &factor));
  for (int i = 0; i < 2; i++)
    TRY(cover_table(c, &r, i, &axes[i]));
  return resize_axes(c, &r, axes, factor);
}

/* ---- of quantised images: integers in fixed point ---- */

/* a + (b - a) * share / 2^bits, times 2^bits; all i64. */
static expr_id fixed_lerp(struct kb *kb, expr_id a, expr_id b, expr_id share, int bits) {
  return kb_add(kb, kb_mul(kb, a, kb_int(kb, INT64_C(1) << bits)), kb_mul(kb, kb_sub(kb, b, a), share));
}

/* Of a share in fixed point; pixels are floats on the way to it. */
#define BYTE_BITS 7
#define WORD_BITS 30
static expr_id fixed_pixel(struct kb *kb, const struct element corner[4], struct element y, struct element x, int bits) {
  expr_id unit = kb_int(kb, INT64_C(1) << bits), half = kb_int(kb, INT64_C(1) << (bits - 1)), q[4];
  for (int i = 0; i < 4; i++)
    q[i] = kb_index(kb, f_cast(&kb->f, DTYPE_FLOAT, corner[i]));
  struct element scale = num(kb, (double)(INT64_C(1) << bits));
  expr_id across = as_int(kb, bin(kb, SCALAR_MUL, x, scale)), down = as_int(kb, bin(kb, SCALAR_MUL, y, scale));
  expr_id top = fixed_lerp(kb, q[0], q[1], across, bits), bottom = fixed_lerp(kb, q[2], q[3], across, bits);
  expr_id step = expr_binary(kb->k, SCALAR_DIV, kb_sub(kb, bottom, top), unit);
  return expr_binary(kb->k, SCALAR_DIV, kb_add(kb, kb_add(kb, top, kb_mul(kb, step, down)), half), unit);
}

static struct element float_pixel(struct kb *kb, const struct element corner[4], struct element y, struct element x) {
  struct element top = bin(kb, SCALAR_ADD, corner[0], bin(kb, SCALAR_MUL, bin(kb, SCALAR_SUB, corner[1], corner[0]), x));
  struct element bottom = bin(kb, SCALAR_ADD, corner[2], bin(kb, SCALAR_MUL, bin(kb, SCALAR_SUB, corner[3], corner[2]), x));
  return bin(kb, SCALAR_ADD, top, bin(kb, SCALAR_MUL, bin(kb, SCALAR_SUB, bottom, top), y));
}

/* images, size, min, max; an image that keeps its size is copied */
status build_quantized_resize_bilinear(struct op_call *c) {
  value_id images, min, max;
  struct resize r;
  TRY(op_input(c, 0, &images));
  TRY(quantized_scalar(c, 2, true, &min));
  TRY(quantized_scalar(c, 3, true, &max));
  images = quantized_in(c, images);
  enum dtype dtype = op_value(c, images)->dtype;
  TRY(resize_read(c, images, &r)); /* with half_pixel_centers or align_corners or both */
  TRY(read_size(c, 1, r.out));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  dim dims[4] = {r.dims[0], r.out[0], r.out[1], r.dims[3]};
  uint32_t a = kb_in(&kb, images), o = kb_out(&kb, dtype, 4, dims);
  expr_id index[4], same = expr_int(kb.k, DTYPE_BOOL, 1);
  kb_loops(&kb, LOOP_PAR, 4, dims, index);
  for (int i = 0; i < 2; i++)
    same = kb_and(&kb, same, kb_eq(&kb, kb_dim(&kb, r.dims[1 + i]), kb_dim(&kb, r.out[i])));
  struct between y = between_pixels(&kb, &r, r.dims[1], r.out[0], index[1]), x = between_pixels(&kb, &r, r.dims[2], r.out[1], index[2]);
  struct element corner[4], e;
  for (int i = 0; i < 4; i++) {
    expr_id at[4] = {index[0], i < 2 ? y.low : y.high, i % 2 ? x.high : x.low, index[3]};
    corner[i] = kb_load(&kb, a, at);
  }
  if (dtype == DTYPE_FLOAT)
    e = float_pixel(&kb, corner, y.part, x.part);
  else
    e = real_element(expr_cast(kb.k, dtype, fixed_pixel(&kb, corner, y.part, x.part, dtype == DTYPE_UINT8 ? BYTE_BITS : WORD_BITS)));
  expr_id here[4] = {index[0], kb_clamp(&kb, index[1], kb_dim(&kb, r.dims[1])), kb_clamp(&kb, index[2], kb_dim(&kb, r.dims[2])), index[3]};
  kb_store(&kb, o, index, f_select(&kb.f, real_element(same), kb_load(&kb, a, here), e));
  kb_close(&kb, 4);
  value_id out = kb_value(&kb, o);
  TRY(kb_finish_guarded(&kb));
  quantized_out(c, 0, out);
  op_set_output(c, 1, min);
  op_set_output(c, 2, max);
  return OK;
}

/* ---- gradients: each output pixel's is shared out to the pixels it was made of ---- */

/* grads, original_image: r->dims is the image the gradient is for, r->out the size of grads. */
static status grad_sizes(struct op_call *c, struct resize *r, value_id *grads) {
  value_id image;
  TRY(op_input(c, 0, grads));
  TRY(op_input(c, 1, &image));
  TRY(resize_begin(c, image, r));
  struct flow_value g = *op_value(c, *grads);
  if (g.rank != 4)
    return fail(INVALID_ARGUMENT, "input_grad must be 4-dimensional: %s", op_shape_text(c, g.rank, g.dims));
  r->dims[0] = g.dims[0]; /* the image gives its height and width only */
  r->dims[3] = g.dims[3];
  r->out[0] = g.dims[1];
  r->out[1] = g.dims[2];
  return OK;
}
/* The axis that becomes smaller goes first. */
static status resize_grad(struct op_call *c, taps_of_axis taps) {
  struct resize r;
  value_id grads, half, whole;
  TRY(grad_sizes(c, &r, &grads));
  struct axis_taps axes[2];
  int first = rows_first(c, &r) ? 1 : 0;
  for (int i = 0; i < 2; i++)
    TRY(axis_table(c, &r, i, taps, &axes[i]));
  enum dtype dtype = op_output_dtype(c, 0);
  TRY(resize_pass_back(c, grads, 1 + first, &axes[first], r.dims[1 + first], sum_dtype(dtype), &half));
  TRY(resize_pass_back(c, half, 2 - first, &axes[1 - first], r.dims[2 - first], dtype, &whole));
  op_set_output(c, 0, whole);
  return OK;
}
status build_resize_bilinear_grad(struct op_call *c) { return resize_grad(c, linear_taps); }
status build_resize_bicubic_grad(struct op_call *c) { return resize_grad(c, cubic_taps); }

/* Pixels are taken in order: several add to one. */
static status share_out_nearest(struct op_call *c, const struct resize *r, value_id grads) {
  enum dtype dtype = op_output_dtype(c, 0), sum = sum_dtype(dtype);
  struct kb kb;
  kb_begin(&kb, c, sum);
  dim dims[4] = {r->dims[0], r->out[0], r->out[1], r->dims[3]};
  uint32_t g = kb_in(&kb, grads), o = kb_out(&kb, dtype, 4, r->dims);
  expr_id index[4], at[4];
  kb_loops(&kb, LOOP_PAR, 4, r->dims, at);
  kb_store(&kb, o, at, f_const_as(&kb.f, dtype, 0));
  kb_close(&kb, 4);
  for (int i = 0; i < 4; i++)
    index[i] = kb_for_dim(&kb, i == 1 || i == 2 ? LOOP_SEQ : LOOP_PAR, dims[i]);
  struct taps y = nearest_taps(&kb, r, r->dims[1], r->out[0], index[1]), x = nearest_taps(&kb, r, r->dims[2], r->out[1], index[2]);
  expr_id to[4] = {index[0], y.at[0], x.at[0], index[3]};
  store_as(&kb, o, to, bin(&kb, SCALAR_ADD, load_as(&kb, sum, o, to), load_as(&kb, sum, g, index)));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
/* grads, size of the image */
status build_resize_nearest_grad(struct op_call *c) {
  value_id grads;
  struct resize r;
  TRY(op_input(c, 0, &grads));
  TRY(resize_begin(c, grads, &r));
  r.out[0] = r.dims[1];
  r.out[1] = r.dims[2];
  TRY(read_size(c, 1, &r.dims[1]));
  return share_out_nearest(c, &r, grads);
}
