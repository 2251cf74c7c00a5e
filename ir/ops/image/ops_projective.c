/* ops_projective.c: images under projective transforms: for each pixel of the result, the place (ax + by + c) / k, (dx + ey + f) / k
 * with k = gx + hy + 1 that it comes from. */
#include <string.h>

#include "ir/ops/element_words.h"

enum fill { FILL_CONSTANT, FILL_REFLECT, FILL_WRAP, FILL_NEAREST };
struct projection {
  struct flow_value image;
  value_id images, transforms, fill_value; /* fill_value: NO_VALUE: 0 */
  dim out[4];
  enum fill fill;
  bool bilinear;
};

static status projection_modes(struct op_call *c, struct projection *p) {
  static const char *const fills[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
  const char *how = node_attr_string(c->node, "interpolation", ""), *fill = node_attr_string(c->node, "fill_mode", "CONSTANT");
  p->bilinear = strcmp(how, "BILINEAR") == 0;
  if (!p->bilinear && strcmp(how, "NEAREST") != 0)
    return fail(UNIMPLEMENTED, "interpolation '%s'", how);
  for (int i = 0; i < 4; i++)
    if (strcmp(fill, fills[i]) == 0) {
      p->fill = (enum fill)i;
      return OK;
    }
  return fail(UNIMPLEMENTED, "fill_mode '%s'", fill);
}

/* images, transforms, output_shape, [fill_value] */
static status projection_begin(struct op_call *c, struct projection *p) {
  value_id size;
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 0, &p->images));
  TRY(op_input(c, 1, &p->transforms));
  TRY(op_input(c, 2, &size));
  p->fill_value = NO_VALUE;
  if (c->in_count > 3)
    TRY(op_input(c, 3, &p->fill_value));
  TRY(projection_modes(c, p));
  p->image = *op_value(c, p->images);
  struct flow_value t = *op_value(c, p->transforms);
  if (p->image.rank != 4)
    return fail(INVALID_ARGUMENT, "Input images must have rank 4: %s", op_shape_text(c, p->image.rank, p->image.dims));
  if (t.rank != 2)
    return fail(INVALID_ARGUMENT, "Input transform should be num_images x 8 or 1 x 8: %s", op_shape_text(c, t.rank, t.dims));
  TRY(op_equal_dims(c, t.dims[1], op_dim(c, 8), "Input transform should be num_images x 8 or 1 x 8"));
  struct kb guard;
  guard_begin(&guard, c);
  expr_id n = kb_dim(&guard, t.dims[0]), images = kb_dim(&guard, p->image.dims[0]);
  kb_check(&guard, kb_or(&guard, kb_eq(&guard, n, kb_int(&guard, 1)), kb_eq(&guard, n, images)), INVALID_ARGUMENT,
           "Input transform should be num_images x 8 or 1 x 8: %d for %d", n, images);
  TRY(guard_finish(&guard));
  TRY(op_sizes(c, size, "output_shape", 2, dims));
  memcpy(p->out, p->image.dims, sizeof p->out);
  memcpy(&p->out[1], dims, 2 * sizeof *dims);
  for (int i = 0; i < 2; i++)
    TRY(op_require_le(c, op_dim(c, 1), dims[i], "output dimensions must be positive"));
  return OK;
}

/* ---- places outside of the image ---- */

static struct element whole_times(struct kb *kb, expr_id n, struct element ratio) {
  return e_of(kb, DTYPE_FLOAT, kb_mul(kb, n, e_int(kb, ratio)));
}

/* [dcba|abcd|dcba] */
static struct element reflected(struct kb *kb, struct element x, expr_id n) {
  expr_id two = kb_mul(kb, n, kb_int(kb, 2));
  struct element period = e_of(kb, DTYPE_FLOAT, two), zero = e_num(kb, 0), one = e_num(kb, 1), size = e_of(kb, DTYPE_FLOAT, n);
  struct element minus = f_unary(&kb->f, SCALAR_NEG, x);
  struct element below = e_add(kb, whole_times(kb, two, e_div(kb, minus, period)), x);
  below = e_select(kb, e_lt(kb, below, f_unary(&kb->f, SCALAR_NEG, size)), e_add(kb, below, period),
                   e_sub(kb, f_unary(&kb->f, SCALAR_NEG, below), one));
  struct element above = e_sub(kb, x, whole_times(kb, two, e_div(kb, x, period)));
  above = e_select(kb, e_le(kb, size, above), e_sub(kb, e_sub(kb, period, above), one), above);
  return e_select(kb, e_lt(kb, x, zero), below, e_select(kb, e_lt(kb, e_sub(kb, size, one), x), above, x));
}
/* [abcd|abcd|abcd] */
static struct element wrapped(struct kb *kb, struct element x, expr_id n) {
  expr_id less = expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, n, kb_int(kb, 1)), kb_int(kb, 1));
  struct element gaps = e_of(kb, DTYPE_FLOAT, less), size = e_of(kb, DTYPE_FLOAT, n), zero = e_num(kb, 0),
                 minus = f_unary(&kb->f, SCALAR_NEG, x);
  expr_id turns = kb_add(kb, e_int(kb, e_div(kb, minus, gaps)), kb_int(kb, 1));
  struct element below = e_add(kb, x, e_of(kb, DTYPE_FLOAT, kb_mul(kb, n, turns)));
  struct element above = e_sub(kb, x, whole_times(kb, n, e_div(kb, x, gaps)));
  return e_select(kb, e_lt(kb, x, zero), below, e_select(kb, e_lt(kb, e_sub(kb, size, e_num(kb, 1)), x), above, x));
}

static struct element brought_inside(struct kb *kb, const struct projection *p, struct element x, dim size) {
  if (p->fill == FILL_CONSTANT)
    return x;
  expr_id n = kb_dim(kb, size), single = kb_le(kb, n, kb_int(kb, 1));
  struct element top = e_of(kb, DTYPE_FLOAT, kb_sub(kb, n, kb_int(kb, 1))), zero = e_num(kb, 0);
  if (p->fill != FILL_NEAREST) {
    expr_id outside = kb_or(kb, e_lt(kb, x, zero), e_lt(kb, top, x));
    struct element moved = p->fill == FILL_REFLECT ? reflected(kb, x, n) : wrapped(kb, x, n);
    x = e_select(kb, kb_and(kb, single, outside), zero, moved);
  }
  return e_min(kb, e_max(kb, x, zero), top);
}

/* ---- pixels ---- */

static struct element pixel(struct kb *kb, const struct projection *p, const expr_id *index, struct element y, struct element x,
                            struct element fill) {
  struct element place[2] = {y, x};
  expr_id at[4], inside = expr_int(kb->k, DTYPE_BOOL, 1);
  memcpy(at, index, sizeof at);
  for (int i = 0; i < 2; i++) {
    expr_id n = kb_dim(kb, p->image.dims[1 + i]), here = e_int(kb, place[i]);
    inside = kb_and(kb, inside, kb_in_range(kb, here, n));
    at[1 + i] = kb_clamp(kb, here, n);
  }
  return e_select(kb, inside, kb_load(kb, kb_in(kb, p->images), at), fill);
}

static struct element between(struct kb *kb, const struct projection *p, const expr_id *index, struct element y, struct element x,
                              struct element fill) {
  struct element one = e_num(kb, 1), low[2] = {e_floor(kb, y), e_floor(kb, x)}, high[2] = {e_add(kb, low[0], one), e_add(kb, low[1], one)},
                 row[2];
  for (int i = 0; i < 2; i++) {
    struct element at = i ? high[0] : low[0];
    struct element left = e_cast(kb, DTYPE_FLOAT, pixel(kb, p, index, at, low[1], fill));
    struct element right = e_cast(kb, DTYPE_FLOAT, pixel(kb, p, index, at, high[1], fill));
    row[i] = e_add(kb, e_mul(kb, e_sub(kb, high[1], x), left), e_mul(kb, e_sub(kb, x, low[1]), right));
  }
  return e_add(kb, e_mul(kb, e_sub(kb, high[0], y), row[0]), e_mul(kb, e_sub(kb, y, low[0]), row[1]));
}

/* coefficient[first] * x + coefficient[first + 1] * y + constant */
static struct element linear(struct kb *kb, const struct element *coefficient, struct element x, struct element y,
                             struct element constant) {
  return e_add(kb, e_add(kb, e_mul(kb, coefficient[0], x), e_mul(kb, coefficient[1], y)), constant);
}

status build_image_projective_transform(struct op_call *c) {
  struct projection p;
  TRY(projection_begin(c, &p));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  kb_in(&kb, p.images);
  uint32_t t = kb_in(&kb, p.transforms), o = 0;
  struct element fill = f_const_as(&kb.f, p.image.dtype, 0), k[8];
  if (p.fill_value)
    fill = e_cast(&kb, p.image.dtype, kb_load(&kb, kb_in(&kb, p.fill_value), NULL));
  o = kb_out(&kb, p.image.dtype, 4, p.out);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 4, p.out, index);
  expr_id one_for_all = kb_eq(&kb, kb_dim(&kb, op_value(c, p.transforms)->dims[0]), kb_int(&kb, 1));
  for (int i = 0; i < 8; i++) {
    expr_id at[2] = {kb_select(&kb, one_for_all, kb_int(&kb, 0), index[0]), kb_int(&kb, i)};
    k[i] = kb_load(&kb, t, at);
  }
  struct element x = e_of(&kb, DTYPE_FLOAT, index[2]), y = e_of(&kb, DTYPE_FLOAT, index[1]), one = e_num(&kb, 1);
  struct element depth = linear(&kb, &k[6], x, y, one);
  expr_id infinite = e_eq(&kb, depth, e_num(&kb, 0));
  depth = e_select(&kb, infinite, one, depth);
  struct element in_x = brought_inside(&kb, &p, e_div(&kb, linear(&kb, &k[0], x, y, k[2]), depth), p.image.dims[2]);
  struct element in_y = brought_inside(&kb, &p, e_div(&kb, linear(&kb, &k[3], x, y, k[5]), depth), p.image.dims[1]);
  struct element e;
  if (p.bilinear)
    e = between(&kb, &p, index, in_y, in_x, fill);
  else
    e = pixel(&kb, &p, index, e_round_away(&kb, in_y), e_round_away(&kb, in_x), fill);
  store_as(&kb, o, index, e_select(&kb, infinite, e_cast(&kb, p.image.dtype, fill), e_cast(&kb, p.image.dtype, e)));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
