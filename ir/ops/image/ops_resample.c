/* ops_resample.c: images scaled and moved, each pixel a weighted sum around where it comes from. The weights are a matrix for each axis
 * [results, pixels], of which a row has a first and a last pixel that count. All in float. */
#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "ir/ops/element_words.h"

/* ---- the filters: a weight for a distance of at least 0, up to a radius ---- */

typedef struct element (*filter_formula)(struct kb *kb, struct element x, double radius);

static struct element lanczos(struct kb *kb, struct element x, double radius) {
  struct element pi = e_num(kb, (double)3.14159265359f), r = e_num(kb, radius), turn = e_mul(kb, pi, x);
  struct element top = e_mul(kb, r, f_unary(&kb->f, SCALAR_SIN, turn));
  top = e_mul(kb, top, f_unary(&kb->f, SCALAR_SIN, e_div(kb, turn, r)));
  struct element bottom = e_mul(kb, e_mul(kb, e_mul(kb, pi, pi), x), x);
  struct element near = e_select(kb, e_le(kb, x, e_num(kb, 1e-3)), e_num(kb, 1), e_div(kb, top, bottom));
  return e_select(kb, e_lt(kb, r, x), e_num(kb, 0), near);
}
static struct element gaussian(struct kb *kb, struct element x, double radius) {
  double sigma = radius / 3;
  struct element square = f_unary(&kb->f, SCALAR_NEG, e_mul(kb, x, x));
  struct element e = f_unary(&kb->f, SCALAR_EXP, e_div(kb, square, e_num(kb, 2 * sigma * sigma)));
  return e_select(kb, e_le(kb, e_num(kb, radius), x), e_num(kb, 0), e);
}
static struct element box(struct kb *kb, struct element x, double radius) {
  (void)radius;
  struct element half = e_num(kb, 0.5);
  return e_select(kb, e_lt(kb, x, half), e_num(kb, 1), e_select(kb, e_eq(kb, x, half), half, e_num(kb, 0)));
}
static struct element triangle(struct kb *kb, struct element x, double radius) {
  (void)radius;
  struct element one = e_num(kb, 1);
  return e_select(kb, e_lt(kb, x, one), e_sub(kb, one, x), e_num(kb, 0));
}
static struct element two_cubics(struct kb *kb, struct element x, const double near[4], const double far[4]) {
  struct element e = e_select(kb, e_le(kb, e_num(kb, 1), x), f_poly(&kb->f, x, 4, far), f_poly(&kb->f, x, 4, near));
  return e_select(kb, e_le(kb, e_num(kb, 2), x), e_num(kb, 0), e);
}
static struct element keys_cubic(struct kb *kb, struct element x, double radius) {
  (void)radius;
  static const double near[4] = {1.5, -2.5, 0, 1}, far[4] = {-0.5, 2.5, -4, 2};
  return two_cubics(kb, x, near, far);
}
static struct element mitchell_cubic(struct kb *kb, struct element x, double radius) {
  (void)radius;
  static const double near[4] = {7.0 / 6, -2, 0, 8.0 / 9}, far[4] = {-7.0 / 18, 2, -10.0 / 3, 16.0 / 9};
  return two_cubics(kb, x, near, far);
}

struct filter {
  const char *name;
  filter_formula formula;
  double radius;
};
static const struct filter filters[] = {
  {"lanczos1", lanczos, 1}, {"lanczos3", lanczos, 3},  {"lanczos5", lanczos, 5},     {"gaussian", gaussian, 1.5},
  {"box", box, 1},          {"triangle", triangle, 1}, {"keyscubic", keys_cubic, 2}, {"mitchellcubic", mitchell_cubic, 2},
};

/* ---- the weights ---- */

struct resample {
  const struct filter *filter;
  bool antialias;
  value_id scale, translation;
  struct flow_value image; /* before: [batch, height, width, channels] */
  dim out[4];
  value_id weights[2], spans[2]; /* of rows and columns: [out, in], [out, 2]: first and number of pixels */
};

static status axis_weights(struct op_call *c, struct resample *r, int axis) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  dim sizes[2] = {r->out[1 + axis], r->image.dims[1 + axis]}, pair[2] = {sizes[0], op_dim(c, 2)};
  uint32_t s = kb_in(&kb, r->scale), t = kb_in(&kb, r->translation), o = kb_out(&kb, DTYPE_FLOAT, 2, sizes),
           p = kb_out(&kb, DTYPE_INT64, 2, pair);
  expr_id which = kb_int(&kb, axis), at[2], one = kb_int(&kb, 1), zero = kb_int(&kb, 0), n = kb_dim(&kb, sizes[1]);
  struct element half = e_num(&kb, 0.5), inverse = e_div(&kb, e_num(&kb, 1), kb_load(&kb, s, &which));
  struct element shift = e_mul(&kb, f_unary(&kb.f, SCALAR_NEG, inverse), kb_load(&kb, t, &which));
  struct element wide = r->antialias ? e_max(&kb, inverse, e_num(&kb, 1)) : e_num(&kb, 1),
                 reach = e_mul(&kb, e_num(&kb, r->filter->radius), wide);
  struct element narrow = e_div(&kb, e_num(&kb, 1), wide);
  at[0] = kb_for_dim(&kb, LOOP_PAR, sizes[0]);
  at[1] = kb_for_dim(&kb, LOOP_SEQ, sizes[1]);
  kb_store(&kb, o, at, e_num(&kb, 0));
  kb_close(&kb, 1);
  struct element centre = e_now(&kb, e_add(&kb, e_mul(&kb, e_add(&kb, e_of(&kb, DTYPE_FLOAT, at[0]), half), inverse), shift));
  expr_id seen = kb_and(&kb, e_le(&kb, e_num(&kb, 0), centre), e_le(&kb, centre, e_of(&kb, DTYPE_FLOAT, n)));
  expr_id first = kb_clamp(&kb, e_int(&kb, e_ceil(&kb, e_sub(&kb, e_sub(&kb, centre, reach), half))), n);
  expr_id last = kb_clamp(&kb, e_int(&kb, e_floor(&kb, e_sub(&kb, e_add(&kb, centre, reach), half))), n);
  first = kb_now(&kb, kb_select(&kb, seen, first, zero));
  expr_id count = kb_now(&kb, kb_select(&kb, seen, kb_sub(&kb, kb_add(&kb, last, one), first), zero));
  struct accumulator total = acc_zero(&kb, DTYPE_FLOAT);
  at[1] = kb_add(&kb, first, kb_for(&kb, LOOP_SEQ, count));
  struct element away = e_sub(&kb, e_add(&kb, e_of(&kb, DTYPE_FLOAT, at[1]), half), centre);
  struct element w = e_now(&kb, r->filter->formula(&kb, f_unary(&kb.f, SCALAR_ABS, e_mul(&kb, away, narrow)), r->filter->radius));
  kb_store(&kb, o, at, w);
  acc_add(&kb, &total, w);
  kb_close(&kb, 1);
  struct element sum = acc_get(&kb, &total);
  expr_id enough = e_le(&kb, e_num(&kb, 1000.0 * (double)FLT_MIN), f_unary(&kb.f, SCALAR_ABS, sum));
  struct element factor = e_now(&kb, e_select(&kb, enough, e_div(&kb, e_num(&kb, 1), sum), e_num(&kb, 0)));
  at[1] = kb_add(&kb, first, kb_for(&kb, LOOP_SEQ, count));
  kb_store(&kb, o, at, e_mul(&kb, kb_load(&kb, o, at), factor));
  kb_close(&kb, 1);
  expr_id pair_at[2] = {at[0], zero}, next_at[2] = {at[0], one};
  kb_store(&kb, p, pair_at, real_element(first));
  kb_store(&kb, p, next_at, real_element(count));
  kb_close(&kb, 1);
  r->weights[axis] = kb_value(&kb, o);
  r->spans[axis] = kb_value(&kb, p);
  return kb_finish_guarded(&kb);
}

static status resample_begin(struct op_call *c, struct resample *r) {
  const char *name = node_attr_string(c->node, "kernel_type", "lanczos3");
  r->filter = NULL;
  for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
    if (strcasecmp(filters[i].name, name) == 0)
      r->filter = &filters[i];
  if (!r->filter)
    return fail(INVALID_ARGUMENT, "Unrecognized kernel type: %s", name);
  r->antialias = node_attr_int(c->node, "antialias", 1);
  TRY(op_input(c, 2, &r->scale));
  TRY(op_input(c, 3, &r->translation));
  struct flow_value s = *op_value(c, r->scale), t = *op_value(c, r->translation);
  if (s.rank != 1 || t.rank != 1)
    return fail(INVALID_ARGUMENT, "scale and translation must be 1-dimensional: %s, %s", op_shape_text(c, s.rank, s.dims),
                op_shape_text(c, t.rank, t.dims));
  TRY(op_equal_dims(c, s.dims[0], op_dim(c, 2), "scale must have two elements"));
  TRY(op_equal_dims(c, t.dims[0], op_dim(c, 2), "translation must have two elements"));
  struct kb guard;
  guard_begin(&guard, c);
  guard.f.dtype = DTYPE_FLOAT;
  expr_id i = kb_for(&guard, LOOP_SEQ, kb_int(&guard, 2));
  kb_check(&guard, e_lt(&guard, e_num(&guard, 0), kb_load(&guard, kb_in(&guard, r->scale), &i)), INVALID_ARGUMENT,
           "Scale must be greater than zero.", NO_EXPR, NO_EXPR);
  kb_close(&guard, 1);
  return guard_finish(&guard);
}

/* One axis (0: rows) of `from`; forward: by the rows of the weights, backward: by their columns. */
static status apply_weights(struct op_call *c, const struct resample *r, value_id from, int axis, bool backward, enum dtype dtype,
                            value_id *out) {
  struct flow_value x = *op_value(c, from);
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  dim dims[4];
  memcpy(dims, x.dims, sizeof dims);
  dims[1 + axis] = backward ? r->image.dims[1 + axis] : r->out[1 + axis];
  uint32_t a = kb_in(&kb, from), w = kb_in(&kb, r->weights[axis]), p = kb_in(&kb, r->spans[axis]), o = kb_out(&kb, dtype, 4, dims);
  expr_id index[4], at[4], pair[2], zero = kb_int(&kb, 0);
  kb_loops(&kb, LOOP_PAR, 4, dims, index);
  memcpy(at, index, sizeof at);
  struct accumulator acc = acc_zero(&kb, DTYPE_FLOAT);
  if (backward) {
    at[1 + axis] = pair[0] = kb_for_dim(&kb, LOOP_RED, r->out[1 + axis]);
    pair[1] = index[1 + axis];
  } else {
    expr_id first[2] = {index[1 + axis], zero}, count[2] = {index[1 + axis], kb_int(&kb, 1)};
    expr_id start = kb_load(&kb, p, first).re;
    at[1 + axis] = pair[1] = kb_add(&kb, start, kb_for(&kb, LOOP_RED, kb_load(&kb, p, count).re));
    pair[0] = index[1 + axis];
  }
  acc_add(&kb, &acc, e_mul(&kb, kb_load(&kb, w, pair), load_as(&kb, DTYPE_FLOAT, a, at)));
  kb_close(&kb, 1);
  store_as(&kb, o, index, acc_get(&kb, &acc));
  kb_close(&kb, 4);
  *out = kb_value(&kb, o);
  return kb_finish_guarded(&kb);
}

/* images, size, scale, translation */
status build_scale_and_translate(struct op_call *c) {
  struct resample r;
  value_id images, size, rows, out;
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 0, &images));
  TRY(op_input(c, 1, &size));
  r.image = *op_value(c, images);
  if (r.image.rank != 4)
    return fail(INVALID_ARGUMENT, "input must be 4-dimensional: %s", op_shape_text(c, r.image.rank, r.image.dims));
  TRY(op_sizes(c, size, "size", 2, dims));
  for (int i = 0; i < 2; i++)
    TRY(op_require_le(c, op_dim(c, 1), dims[i], "output dimensions must be positive"));
  for (int i = 1; i < 4; i++)
    TRY(op_require_le(c, op_dim(c, 1), r.image.dims[i], "input image must be of non-zero size and have at least one channel"));
  memcpy(r.out, r.image.dims, sizeof r.out);
  memcpy(&r.out[1], dims, 2 * sizeof *dims);
  TRY(resample_begin(c, &r));
  for (int i = 0; i < 2; i++)
    TRY(axis_weights(c, &r, i));
  TRY(apply_weights(c, &r, images, 0, false, DTYPE_FLOAT, &rows));
  TRY(apply_weights(c, &r, rows, 1, false, DTYPE_FLOAT, &out));
  op_set_output(c, 0, out);
  return OK;
}

/* grads, original_image, scale, translation */
status build_scale_and_translate_grad(struct op_call *c) {
  struct resample r;
  value_id grads, image, rows, out;
  TRY(op_input(c, 0, &grads));
  TRY(op_input(c, 1, &image));
  r.image = *op_value(c, image);
  struct flow_value g = *op_value(c, grads);
  if (g.rank != 4 || r.image.rank != 4)
    return fail(INVALID_ARGUMENT, "input_grad and original_image must be 4-dimensional: %s, %s", op_shape_text(c, g.rank, g.dims),
                op_shape_text(c, r.image.rank, r.image.dims));
  memcpy(r.out, g.dims, sizeof r.out);
  TRY(resample_begin(c, &r));
  for (int i = 0; i < 2; i++)
    TRY(axis_weights(c, &r, i));
  TRY(apply_weights(c, &r, grads, 0, true, DTYPE_FLOAT, &rows));
  TRY(apply_weights(c, &r, rows, 1, true, op_output_dtype(c, 0), &out));
  op_set_output(c, 0, out);
  return OK;
}
