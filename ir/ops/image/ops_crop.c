/* ops_crop.c: crops of images, brought to one size, with the gradients of image and boxes. A box is [y1, x1, y2, x2], 1 being the last
 * pixel. Positions are computed in float. */
#include <math.h>
#include <string.h>

#include "ir/ops/element_words.h"

struct crop_axis {
  dim in, out;
  int first, last; /* columns of the box */
};
struct crop {
  value_id boxes, which;
  struct crop_axis axes[2];
  dim images, count, depth;
  bool nearest;
};

static struct element corner(struct kb *kb, uint32_t boxes, expr_id box, int column) {
  expr_id at[2] = {box, kb_int(kb, column)};
  return kb_load(kb, boxes, at);
}

/* ---- arguments ---- */

static status crop_boxes(struct op_call *c, uint32_t input, struct crop *p) {
  TRY(op_input(c, input, &p->boxes));
  TRY(op_input(c, input + 1, &p->which));
  struct flow_value b = *op_value(c, p->boxes), w = *op_value(c, p->which);
  if (b.rank != 2 || w.rank != 1)
    return fail(INVALID_ARGUMENT, "boxes must be 2-D and box_index 1-D: %s, %s", op_shape_text(c, b.rank, b.dims),
                op_shape_text(c, w.rank, w.dims));
  p->count = w.dims[0];
  TRY(op_equal_dims(c, b.dims[0], w.dims[0], "box_index has incompatible shape"));
  const char *method = node_attr_string(c->node, "method", "bilinear");
  p->nearest = strcmp(method, "nearest") == 0;
  if (!p->nearest && strcmp(method, "bilinear") != 0)
    return fail(INVALID_ARGUMENT, "method must be 'bilinear' or 'nearest', not '%s'", method);
  for (int i = 0; i < 2; i++)
    p->axes[i].first = i, p->axes[i].last = i + 2;
  return op_equal_dims(c, b.dims[1], op_dim(c, 4), "boxes must have 4 columns");
}

static status crop_image(struct op_call *c, int rank, const dim *dims, struct crop *p) {
  if (rank != 4)
    return fail(INVALID_ARGUMENT, "the image must be 4-D: %s", op_shape_text(c, rank, dims));
  p->images = dims[0];
  p->depth = dims[3];
  for (int i = 0; i < 2; i++) {
    p->axes[i].in = dims[1 + i];
    TRY(op_require_le(c, op_dim(c, 1), dims[1 + i], "image dimensions must be positive"));
  }
  return OK;
}

static status crop_grads(struct op_call *c, value_id grads, struct crop *p) {
  struct flow_value g = *op_value(c, grads);
  if (g.rank != 4)
    return fail(INVALID_ARGUMENT, "grads image must be 4-D: %s", op_shape_text(c, g.rank, g.dims));
  for (int i = 0; i < 2; i++) {
    p->axes[i].out = g.dims[1 + i];
    TRY(op_require_le(c, op_dim(c, 1), g.dims[1 + i], "grads dimensions must be positive"));
  }
  TRY(op_equal_dims(c, g.dims[0], p->count, "boxes and grads have incompatible shape"));
  return op_equal_dims(c, g.dims[3], p->depth, "image and grads depth differ");
}

/* As in TensorFlow, ahead of what the boxes are asked for. */
static status countable_crops(struct op_call *c, const struct crop *p) {
  const dim dims[] = {p->count, p->axes[0].out, p->axes[1].out, p->depth};
  struct kb guard;
  guard_begin(&guard, c);
  guard.f.dtype = DTYPE_DOUBLE;
  struct element count = e_num(&guard, 1);
  for (int i = 0; i < 4; i++)
    count = e_mul(&guard, count, e_of(&guard, DTYPE_DOUBLE, kb_dim(&guard, dims[i])));
  kb_check(&guard, e_lt(&guard, count, e_num(&guard, 0x1p63)), INVALID_ARGUMENT, "the crops have more elements than can be counted",
           NO_EXPR, NO_EXPR);
  return guard_finish(&guard);
}

static status known_box_indices(struct op_call *c, const struct crop *p) {
  struct kb guard;
  guard_begin(&guard, c);
  uint32_t w = kb_in(&guard, p->which);
  expr_id images = kb_dim(&guard, p->images), i = kb_for_dim(&guard, LOOP_SEQ, p->count), at = kb_index(&guard, kb_load(&guard, w, &i));
  kb_check(&guard, kb_in_range(&guard, at, images), OUT_OF_RANGE, "box_index has values outside [0, batch_size): %d of %d", at, images);
  kb_close(&guard, 1);
  return guard_finish(&guard);
}

static status finite_boxes(struct op_call *c, const struct crop *p) {
  struct kb guard;
  guard_begin(&guard, c);
  guard.f.dtype = DTYPE_FLOAT;
  uint32_t b = kb_in(&guard, p->boxes);
  expr_id at[2];
  at[0] = kb_for_dim(&guard, LOOP_SEQ, p->count);
  at[1] = kb_for(&guard, LOOP_SEQ, kb_int(&guard, 4));
  struct element size = f_unary(&guard.f, SCALAR_ABS, kb_load(&guard, b, at));
  kb_check(&guard, e_lt(&guard, size, e_num(&guard, INFINITY)), INVALID_ARGUMENT, "Boxes contains at least one element that is not finite",
           NO_EXPR, NO_EXPR);
  kb_close(&guard, 2);
  return guard_finish(&guard);
}

/* ---- positions ---- */

struct crop_position {
  struct element at, part;
  expr_id inside, i, j;
};

/* divided: the scale is the box times (pixels / steps), as the gradient of the boxes has it; else (box times pixels) / steps. */
static struct crop_position crop_position(struct kb *kb, const struct crop_axis *a, uint32_t boxes, expr_id box, expr_id o, bool divided) {
  struct element begin = corner(kb, boxes, box, a->first), end = corner(kb, boxes, box, a->last), span = e_sub(kb, end, begin);
  expr_id n = kb_dim(kb, a->in), m = kb_dim(kb, a->out), one = kb_int(kb, 1), many = kb_lt(kb, one, m);
  struct element room = e_of(kb, DTYPE_FLOAT, kb_sub(kb, n, one));
  struct element steps = e_of(kb, DTYPE_FLOAT, expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, m, one), one));
  struct element scale = divided ? e_mul(kb, span, e_div(kb, room, steps)) : e_div(kb, e_mul(kb, span, room), steps);
  struct element spread = e_add(kb, e_mul(kb, begin, room), e_mul(kb, e_of(kb, DTYPE_FLOAT, o), scale));
  struct element centre = e_mul(kb, e_mul(kb, e_num(kb, 0.5), e_add(kb, begin, end)), room);
  struct crop_position p = {.at = e_select(kb, many, spread, centre)};
  p.inside = kb_and(kb, e_le(kb, e_num(kb, 0), p.at), e_le(kb, p.at, room));
  struct element low = e_floor(kb, p.at);
  p.part = e_sub(kb, p.at, low);
  p.i = kb_clamp(kb, e_int(kb, low), n);
  p.j = kb_clamp(kb, e_int(kb, e_ceil(kb, p.at)), n);
  return p;
}

static struct element lerp(struct kb *kb, struct element a, struct element b, struct element part) {
  return e_add(kb, a, e_mul(kb, e_sub(kb, b, a), part));
}
static struct element crop_pixel(struct kb *kb, uint32_t image, expr_id batch, expr_id y, expr_id x, expr_id channel) {
  expr_id at[4] = {batch, y, x, channel};
  return load_as(kb, DTYPE_FLOAT, image, at);
}
static expr_id nearest_pixel(struct kb *kb, struct element at, dim count) {
  return kb_clamp(kb, e_int(kb, e_round_away(kb, at)), kb_dim(kb, count));
}

/* ---- forward: image, boxes, box_ind, crop_size ---- */

status build_crop_and_resize(struct op_call *c) {
  value_id image, size;
  struct crop p = {0};
  dim elements[LIMIT_RANK];
  TRY(op_input(c, 0, &image));
  TRY(op_input(c, 3, &size));
  struct flow_value x = *op_value(c, image);
  TRY(crop_image(c, x.rank, x.dims, &p));
  TRY(crop_boxes(c, 1, &p));
  TRY(op_sizes(c, size, "crop_size", 2, elements));
  for (int i = 0; i < 2; i++) {
    p.axes[i].out = elements[i];
    TRY(op_require_le(c, op_dim(c, 1), elements[i], "crop dimensions must be positive"));
  }
  TRY(countable_crops(c, &p));
  TRY(known_box_indices(c, &p));
  TRY(finite_boxes(c, &p));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  dim dims[4] = {p.count, p.axes[0].out, p.axes[1].out, p.depth};
  uint32_t a = kb_in(&kb, image), b = kb_in(&kb, p.boxes), w = kb_in(&kb, p.which), o = kb_out(&kb, DTYPE_FLOAT, 4, dims);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 4, dims, index);
  expr_id batch = kb_clamp(&kb, kb_index(&kb, kb_load(&kb, w, index)), kb_dim(&kb, p.images));
  struct crop_position y = crop_position(&kb, &p.axes[0], b, index[0], index[1], false);
  struct crop_position z = crop_position(&kb, &p.axes[1], b, index[0], index[2], false);
  struct element e;
  if (p.nearest) {
    e = crop_pixel(&kb, a, batch, nearest_pixel(&kb, y.at, p.axes[0].in), nearest_pixel(&kb, z.at, p.axes[1].in), index[3]);
  } else {
    struct element top = lerp(&kb, crop_pixel(&kb, a, batch, y.i, z.i, index[3]), crop_pixel(&kb, a, batch, y.i, z.j, index[3]), z.part);
    struct element bottom = lerp(&kb, crop_pixel(&kb, a, batch, y.j, z.i, index[3]), crop_pixel(&kb, a, batch, y.j, z.j, index[3]), z.part);
    e = lerp(&kb, top, bottom, y.part);
  }
  struct element outside = e_num(&kb, node_attr_float(c->node, "extrapolation_value", 0));
  kb_store(&kb, o, index, e_select(&kb, kb_and(&kb, y.inside, z.inside), e, outside));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* ---- gradient of the image: grads, boxes, box_ind, image_size ---- */

static void add_to(struct kb *kb, uint32_t out, expr_id batch, expr_id y, expr_id x, expr_id channel, struct element e) {
  expr_id at[4] = {batch, y, x, channel};
  kb_store(kb, out, at, e_add(kb, kb_load(kb, out, at), e_cast(kb, kb->k->buffers.items[out].dtype, e)));
}

/* Boxes overlap: they run in order, only the channels at once. */
status build_crop_and_resize_grad_image(struct op_call *c) {
  value_id grads, size;
  struct crop p = {0};
  dim dims[LIMIT_RANK];
  TRY(op_input(c, 0, &grads));
  TRY(op_input(c, 3, &size));
  TRY(crop_boxes(c, 1, &p));
  TRY(op_sizes(c, size, "image_size", 4, dims));
  TRY(crop_image(c, 4, dims, &p));
  TRY(crop_grads(c, grads, &p));
  TRY(known_box_indices(c, &p));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  enum dtype dtype = op_output_dtype(c, 0);
  uint32_t g = kb_in(&kb, grads), b = kb_in(&kb, p.boxes), w = kb_in(&kb, p.which), o = kb_out(&kb, dtype, 4, dims);
  kb_fill(&kb, o, 4, dims, f_const_as(&kb.f, dtype, 0));
  expr_id index[4];
  index[3] = kb_for_dim(&kb, LOOP_PAR, p.depth);
  index[0] = kb_for_dim(&kb, LOOP_SEQ, p.count);
  for (int i = 0; i < 2; i++)
    index[1 + i] = kb_for_dim(&kb, LOOP_SEQ, p.axes[i].out);
  expr_id batch = kb_clamp(&kb, kb_index(&kb, kb_load(&kb, w, index)), kb_dim(&kb, p.images));
  struct crop_position y = crop_position(&kb, &p.axes[0], b, index[0], index[1], false);
  struct crop_position x = crop_position(&kb, &p.axes[1], b, index[0], index[2], false);
  kb_if(&kb, kb_and(&kb, y.inside, x.inside));
  struct element e = kb_load(&kb, g, index), one = e_num(&kb, 1);
  if (p.nearest) {
    add_to(&kb, o, batch, nearest_pixel(&kb, y.at, p.axes[0].in), nearest_pixel(&kb, x.at, p.axes[1].in), index[3], e);
  } else {
    struct element top = e_mul(&kb, e_sub(&kb, one, y.part), e), bottom = e_mul(&kb, y.part, e), left = e_sub(&kb, one, x.part);
    add_to(&kb, o, batch, y.i, x.i, index[3], e_mul(&kb, left, top));
    add_to(&kb, o, batch, y.i, x.j, index[3], e_mul(&kb, x.part, top));
    add_to(&kb, o, batch, y.j, x.i, index[3], e_mul(&kb, left, bottom));
    add_to(&kb, o, batch, y.j, x.j, index[3], e_mul(&kb, x.part, bottom));
  }
  kb_close(&kb, 5);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}

/* ---- gradient of the boxes: grads, image, boxes, box_ind ---- */

/* How much an end of the box moves the position o: the far end o's share of the way, the near end the rest. */
static void end_gradients(struct kb *kb, const struct crop_axis *a, expr_id o, struct element slope, const struct accumulator *acc) {
  expr_id one = kb_int(kb, 1), m = kb_dim(kb, a->out), many = kb_lt(kb, one, m);
  struct element room = e_of(kb, DTYPE_FLOAT, kb_sub(kb, kb_dim(kb, a->in), one));
  struct element steps = e_of(kb, DTYPE_FLOAT, expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, m, one), one));
  struct element far = e_mul(kb, e_of(kb, DTYPE_FLOAT, o), e_div(kb, room, steps));
  struct element half = e_mul(kb, e_mul(kb, slope, e_num(kb, 0.5)), room);
  acc_add(kb, &acc[a->first], e_select(kb, many, e_mul(kb, slope, e_sub(kb, room, far)), half));
  acc_add(kb, &acc[a->last], e_select(kb, many, e_mul(kb, slope, far), half));
}

status build_crop_and_resize_grad_boxes(struct op_call *c) {
  value_id grads, image;
  struct crop p = {0};
  TRY(op_input(c, 0, &grads));
  TRY(op_input(c, 1, &image));
  TRY(crop_boxes(c, 2, &p));
  if (p.nearest)
    return fail(INVALID_ARGUMENT, "method must be 'bilinear'");
  struct flow_value x = *op_value(c, image);
  TRY(crop_image(c, x.rank, x.dims, &p));
  TRY(crop_grads(c, grads, &p));
  TRY(known_box_indices(c, &p));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  dim dims[2] = {p.count, op_dim(c, 4)};
  uint32_t g = kb_in(&kb, grads), a = kb_in(&kb, image), b = kb_in(&kb, p.boxes), w = kb_in(&kb, p.which),
           o = kb_out(&kb, DTYPE_FLOAT, 2, dims);
  expr_id index[4];
  index[0] = kb_for_dim(&kb, LOOP_PAR, p.count);
  expr_id batch = kb_clamp(&kb, kb_index(&kb, kb_load(&kb, w, index)), kb_dim(&kb, p.images));
  struct accumulator acc[4];
  for (int i = 0; i < 4; i++)
    acc[i] = acc_zero(&kb, DTYPE_FLOAT);
  for (int i = 0; i < 2; i++)
    index[1 + i] = kb_for_dim(&kb, LOOP_SEQ, p.axes[i].out);
  struct crop_position y = crop_position(&kb, &p.axes[0], b, index[0], index[1], true);
  struct crop_position z = crop_position(&kb, &p.axes[1], b, index[0], index[2], true);
  kb_if(&kb, kb_and(&kb, y.inside, z.inside));
  index[3] = kb_for_dim(&kb, LOOP_SEQ, p.depth);
  struct element corners[4], one = e_num(&kb, 1), e = kb_load(&kb, g, index);
  for (int i = 0; i < 4; i++)
    corners[i] = crop_pixel(&kb, a, batch, i < 2 ? y.i : y.j, i % 2 ? z.j : z.i, index[3]);
  struct element down = e_mul(&kb, e_sub(&kb, one, z.part), e_sub(&kb, corners[2], corners[0]));
  down = e_add(&kb, down, e_mul(&kb, z.part, e_sub(&kb, corners[3], corners[1])));
  struct element across = e_mul(&kb, e_sub(&kb, one, y.part), e_sub(&kb, corners[1], corners[0]));
  across = e_add(&kb, across, e_mul(&kb, y.part, e_sub(&kb, corners[3], corners[2])));
  end_gradients(&kb, &p.axes[0], index[1], e_mul(&kb, down, e), acc);
  end_gradients(&kb, &p.axes[1], index[2], e_mul(&kb, across, e), acc);
  kb_close(&kb, 4);
  for (int i = 0; i < 4; i++) {
    index[1] = kb_int(&kb, i);
    kb_store(&kb, o, index, acc_get(&kb, &acc[i]));
  }
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
