/* ops_color.c: colours along the last axis: RGB and HSV, and the adjustments of hue, saturation and contrast. */
#include <string.h>

#include "ir/ops/accumulate.h"
#include "ir/ops/arrange.h"

typedef struct element pixel[3];

static struct element k_(struct formula *f, double v) { return f_const(f, v); }
static struct element bin(struct formula *f, enum scalar_op op, struct element a, struct element b) { return f_binary(f, op, a, b); }
static struct element add(struct formula *f, struct element a, struct element b) { return bin(f, SCALAR_ADD, a, b); }
static struct element sub(struct formula *f, struct element a, struct element b) { return bin(f, SCALAR_SUB, a, b); }
static struct element mul(struct formula *f, struct element a, struct element b) { return bin(f, SCALAR_MUL, a, b); }

/* ---- the two colour spaces; hue, saturation and value in [0,1] ---- */

static void rgb_to_hsv(struct formula *f, const pixel rgb, pixel hsv) {
  struct element r = rgb[0], g = rgb[1], b = rgb[2], zero = k_(f, 0), one = k_(f, 1);
  struct element value = bin(f, SCALAR_MAX, bin(f, SCALAR_MAX, r, g), b), low = bin(f, SCALAR_MIN, bin(f, SCALAR_MIN, r, g), b);
  struct element range = sub(f, value, low), colourful = bin(f, SCALAR_LT, zero, range), lit = bin(f, SCALAR_LT, zero, value);
  struct element norm = bin(f, SCALAR_DIV, k_(f, 1.0 / 6), f_select(f, colourful, range, one));
  struct element of_green = add(f, mul(f, norm, sub(f, b, r)), k_(f, 2.0 / 6));
  struct element of_blue = add(f, mul(f, norm, sub(f, r, g)), k_(f, 4.0 / 6));
  struct element hue = f_select(f, bin(f, SCALAR_EQ, g, value), of_green, of_blue);
  hue = f_select(f, bin(f, SCALAR_EQ, r, value), mul(f, norm, sub(f, g, b)), hue);
  hue = f_select(f, colourful, hue, zero);
  hsv[0] = f_select(f, bin(f, SCALAR_LT, hue, zero), add(f, hue, one), hue);
  hsv[1] = f_select(f, lit, bin(f, SCALAR_DIV, range, f_select(f, lit, value, one)), zero);
  hsv[2] = value;
}

static struct element clip(struct formula *f, struct element a) { return bin(f, SCALAR_MIN, bin(f, SCALAR_MAX, a, k_(f, 0)), k_(f, 1)); }
static void hsv_to_rgb(struct formula *f, const pixel hsv, pixel rgb) {
  struct element sixth = mul(f, hsv[0], k_(f, 6)), one = k_(f, 1), share[3];
  static const double centre[3] = {3, 2, 4};
  for (int i = 0; i < 3; i++) {
    struct element away = f_unary(f, SCALAR_ABS, sub(f, sixth, k_(f, centre[i])));
    share[i] = clip(f, i == 0 ? sub(f, away, one) : sub(f, k_(f, 2), away));
    rgb[i] = mul(f, add(f, mul(f, sub(f, share[i], one), hsv[1]), one), hsv[2]);
  }
}

/* ---- one pixel after the other ---- */

typedef void (*pixel_formula)(struct formula *f, const pixel in, struct element parameter, pixel out);

static void formula_to_hsv(struct formula *f, const pixel in, struct element parameter, pixel out) {
  (void)parameter;
  rgb_to_hsv(f, in, out);
}
static void formula_to_rgb(struct formula *f, const pixel in, struct element parameter, pixel out) {
  (void)parameter;
  hsv_to_rgb(f, in, out);
}
static void formula_hue(struct formula *f, const pixel in, struct element delta, pixel out) {
  pixel hsv;
  rgb_to_hsv(f, in, hsv);
  struct element hue = add(f, hsv[0], delta);
  hsv[0] = sub(f, hue, f_unary(f, SCALAR_FLOOR, hue));
  hsv_to_rgb(f, hsv, out);
}
static void formula_saturation(struct formula *f, const pixel in, struct element scale, pixel out) {
  pixel hsv;
  rgb_to_hsv(f, in, hsv);
  hsv[1] = clip(f, mul(f, hsv[1], scale));
  hsv_to_rgb(f, hsv, out);
}

/* TensorFlow has two codes for this: one of the adjustments, one of the colour spaces. */
static status three_channels(struct op_call *c, dim channels, status code) {
  struct kb guard;
  guard_begin(&guard, c);
  expr_id n = kb_dim(&guard, channels);
  kb_check(&guard, kb_eq(&guard, n, kb_int(&guard, 3)), code, "input must have 3 channels but instead has %d channels", n, NO_EXPR);
  return guard_finish(&guard);
}

static status map_pixels(struct op_call *c, pixel_formula formula, int rank_min) {
  value_id v, vp = NO_VALUE;
  TRY(op_input(c, 0, &v));
  if (c->in_count > 1)
    TRY(op_input(c, 1, &vp));
  struct flow_value x = *op_value(c, v);
  if (x.rank < rank_min)
    return fail(INVALID_ARGUMENT, "input must be at least %d-D, got shape%s", rank_min, op_shape_text(c, x.rank, x.dims));
  TRY(three_channels(c, x.dims[x.rank - 1], vp ? INVALID_ARGUMENT : FAILED_PRECONDITION));
  struct kb kb;
  kb_begin(&kb, c, sum_dtype(x.dtype));
  uint32_t a = kb_in(&kb, v), b = vp ? kb_in(&kb, vp) : 0, o = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank - 1, x.dims, index);
  struct element parameter = vp ? load_as(&kb, kb.f.dtype, b, NULL) : k_(&kb.f, 0);
  pixel in, out;
  for (int i = 0; i < 3; i++) {
    index[x.rank - 1] = kb_int(&kb, i);
    in[i] = load_as(&kb, kb.f.dtype, a, index);
  }
  formula(&kb.f, in, parameter, out);
  for (int i = 0; i < 3; i++) {
    index[x.rank - 1] = kb_int(&kb, i);
    store_as(&kb, o, index, out[i]);
  }
  kb_close(&kb, x.rank - 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
status build_rgb_to_hsv(struct op_call *c) { return map_pixels(c, formula_to_hsv, 1); }
status build_hsv_to_rgb(struct op_call *c) { return map_pixels(c, formula_to_rgb, 1); }
status build_adjust_hue(struct op_call *c) { return map_pixels(c, formula_hue, 3); }
status build_adjust_saturation(struct op_call *c) { return map_pixels(c, formula_saturation, 3); }

/* ---- contrast: away from the mean of each channel of each image ---- */

/* images, contrast_factor, and in the first version, whose result is float, min_value and max_value */
status build_adjust_contrast(struct op_call *c) {
  value_id v, vf, limits[2] = {NO_VALUE, NO_VALUE};
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &vf));
  for (uint32_t i = 2; i < c->in_count; i++)
    TRY(op_input(c, i, &limits[i - 2]));
  struct flow_value x = *op_value(c, v);
  int rank = x.rank;
  if (rank < 3)
    return fail(INVALID_ARGUMENT, "input must be at least 3-D, got shape%s", op_shape_text(c, rank, x.dims));
  enum dtype sum = DTYPE_FLOAT;
  struct kb kb;
  kb_begin(&kb, c, sum);
  struct formula *f = &kb.f;
  uint32_t a = kb_in(&kb, v), b = kb_in(&kb, vf), o = kb_out(&kb, op_output_dtype(c, 0), rank, x.dims);
  expr_id index[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, rank - 3, x.dims, index);
  index[rank - 1] = kb_for_dim(&kb, LOOP_PAR, x.dims[rank - 1]);
  struct accumulator acc = acc_zero(&kb, sum);
  kb_loops(&kb, LOOP_RED, 2, &x.dims[rank - 3], &index[rank - 3]);
  acc_add(&kb, &acc, load_as(&kb, sum, a, index));
  kb_close(&kb, 2);
  expr_id pixels = kb_mul(&kb, kb_dim(&kb, x.dims[rank - 3]), kb_dim(&kb, x.dims[rank - 2]));
  struct accumulator mean = acc_begin(&kb, bin(f, SCALAR_DIV, acc_get(&kb, &acc), real_element(expr_cast(kb.k, sum, pixels))));
  kb_loops(&kb, LOOP_PAR, 2, &x.dims[rank - 3], &index[rank - 3]);
  struct element away = sub(f, load_as(&kb, sum, a, index), acc_get(&kb, &mean));
  struct element factor = load_as(&kb, sum, b, NULL);
  struct element e = add(f, mul(f, away, factor), acc_get(&kb, &mean));
  if (limits[0]) {
    struct element low = kb_load(&kb, kb_in(&kb, limits[0]), NULL), high = kb_load(&kb, kb_in(&kb, limits[1]), NULL);
    e = bin(f, SCALAR_MIN, bin(f, SCALAR_MAX, e, low), high);
  }
  store_as(&kb, o, index, e);
  kb_close(&kb, rank);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
