/* ops_boxes.c: boxes in images: crops of another size, and the choice among boxes that overlap. A box is [y1, x1, y2, x2]. */
#include <math.h>
#include <string.h>

#include "ir/ops/accumulate.h"

static struct element num(struct kb *kb, double v) { return f_const_as(&kb->f, DTYPE_FLOAT, v); }
static struct element bin(struct kb *kb, enum scalar_op op, struct element a, struct element b) { return f_binary(&kb->f, op, a, b); }
static struct element as_float(struct kb *kb, expr_id e) { return real_element(expr_cast(kb->k, DTYPE_FLOAT, e)); }
static struct element corner(struct kb *kb, uint32_t boxes, expr_id box, int which) {
  expr_id at[2] = {box, kb_int(kb, which)};
  return load_as(kb, DTYPE_FLOAT, boxes, at);
}

static status check_boxes(struct op_call *c, value_id v, struct flow_value *out) {
  *out = *op_value(c, v);
  if (out->rank != 2)
    return fail(INVALID_ARGUMENT, "boxes must be 2-D: %s", op_shape_text(c, out->rank, out->dims));
  return op_equal_dims(c, out->dims[1], op_dim(c, 4), "boxes must have 4 columns");
}

/* ---- CropAndResize ---- */

struct crop_axis {
  dim in, out;
  int first, last; /* columns of the box */
};
struct crop_position {
  struct element at, low, part;
  expr_id inside, i, j;
};

static struct crop_position crop_position(struct kb *kb, const struct crop_axis *a, uint32_t boxes, expr_id box, expr_id o) {
  struct element begin = corner(kb, boxes, box, a->first), end = corner(kb, boxes, box, a->last);
  expr_id n = kb_dim(kb, a->in), m = kb_dim(kb, a->out), one = kb_int(kb, 1), many = kb_lt(kb, one, m);
  struct element room = as_float(kb, kb_sub(kb, n, one));
  struct element steps = as_float(kb, expr_binary(kb->k, SCALAR_MAX, kb_sub(kb, m, one), one));
  struct element scale = bin(kb, SCALAR_DIV, bin(kb, SCALAR_MUL, bin(kb, SCALAR_SUB, end, begin), room), steps);
  struct element spread = bin(kb, SCALAR_ADD, bin(kb, SCALAR_MUL, begin, room), bin(kb, SCALAR_MUL, as_float(kb, o), scale));
  struct element centre = bin(kb, SCALAR_MUL, bin(kb, SCALAR_MUL, num(kb, 0.5), bin(kb, SCALAR_ADD, begin, end)), room);
  struct crop_position p = {.at = f_select(&kb->f, real_element(many), spread, centre)};
  p.inside = kb_and(kb, bin(kb, SCALAR_LE, num(kb, 0), p.at).re, bin(kb, SCALAR_LE, p.at, room).re);
  p.low = f_unary(&kb->f, SCALAR_FLOOR, p.at);
  p.part = bin(kb, SCALAR_SUB, p.at, p.low);
  p.i = kb_clamp(kb, expr_cast(kb->k, DTYPE_INT64, p.low.re), n);
  p.j = kb_clamp(kb, expr_cast(kb->k, DTYPE_INT64, f_unary(&kb->f, SCALAR_CEIL, p.at).re), n);
  return p;
}

static struct element lerp(struct kb *kb, struct element a, struct element b, struct element part) {
  return bin(kb, SCALAR_ADD, a, bin(kb, SCALAR_MUL, bin(kb, SCALAR_SUB, b, a), part));
}
static struct element crop_pixel(struct kb *kb, uint32_t image, expr_id batch, expr_id y, expr_id x, expr_id channel) {
  expr_id at[4] = {batch, y, x, channel};
  return load_as(kb, DTYPE_FLOAT, image, at);
}
static expr_id round_away(struct kb *kb, struct element at, dim count) {
  struct element up = f_unary(&kb->f, SCALAR_FLOOR, bin(kb, SCALAR_ADD, at, num(kb, 0.5)));
  return kb_clamp(kb, expr_cast(kb->k, DTYPE_INT64, up.re), kb_dim(kb, count));
}

static status crop_inputs(struct op_call *c, value_id in[3], struct crop_axis axes[2], dim *boxes) {
  value_id size;
  dim *elements;
  int count;
  struct flow_value b;
  for (uint32_t i = 0; i < 3; i++)
    TRY(op_input(c, i, &in[i]));
  TRY(op_input(c, 3, &size));
  TRY(op_elements(c, size, &elements, &count));
  TRY(check_boxes(c, in[1], &b));
  struct flow_value x = *op_value(c, in[0]), which = *op_value(c, in[2]);
  if (x.rank != 4 || which.rank != 1 || count != 2)
    return fail(INVALID_ARGUMENT, "image must be 4-D, box_ind 1-D and crop_size of two elements: %s, %s", op_shape_text(c, x.rank, x.dims),
                op_shape_text(c, which.rank, which.dims));
  TRY(op_equal_dims(c, which.dims[0], b.dims[0], "box_ind has incompatible shape"));
  for (int i = 0; i < 2; i++) {
    if (dim_less(c->lw->dims, elements[i], op_dim(c, 1)) == 1)
      return fail(INVALID_ARGUMENT, "crop dimensions must be positive");
    axes[i] = (struct crop_axis){.in = x.dims[1 + i], .out = elements[i], .first = i, .last = i + 2};
  }
  *boxes = b.dims[0];
  return OK;
}

status build_crop_and_resize(struct op_call *c) {
  value_id in[3];
  struct crop_axis axes[2];
  dim boxes;
  TRY(crop_inputs(c, in, axes, &boxes));
  struct flow_value x = *op_value(c, in[0]);
  bool nearest = strcmp(node_attr_string(c->node, "method", "bilinear"), "nearest") == 0;
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  dim dims[4] = {boxes, axes[0].out, axes[1].out, x.dims[3]};
  uint32_t a = kb_in(&kb, in[0]), b = kb_in(&kb, in[1]), w = kb_in(&kb, in[2]), o = kb_out(&kb, DTYPE_FLOAT, 4, dims);
  expr_id index[4], images = kb_dim(&kb, x.dims[0]);
  kb_loops(&kb, LOOP_PAR, 4, dims, index);
  expr_id batch = kb_index(&kb, kb_load(&kb, w, index));
  expr_id known = kb_and(&kb, expr_binary(kb.k, SCALAR_LE, kb_int(&kb, 0), batch), kb_lt(&kb, batch, images));
  kb_check(&kb, known, OUT_OF_RANGE, "box_index has values outside [0, batch_size): %d of %d", batch, images);
  struct crop_position y = crop_position(&kb, &axes[0], b, index[0], index[1]), p = crop_position(&kb, &axes[1], b, index[0], index[2]);
  struct element e;
  if (nearest) {
    e = crop_pixel(&kb, a, batch, round_away(&kb, y.at, axes[0].in), round_away(&kb, p.at, axes[1].in), index[3]);
  } else {
    struct element top = lerp(&kb, crop_pixel(&kb, a, batch, y.i, p.i, index[3]), crop_pixel(&kb, a, batch, y.i, p.j, index[3]), p.part);
    struct element bottom = lerp(&kb, crop_pixel(&kb, a, batch, y.j, p.i, index[3]), crop_pixel(&kb, a, batch, y.j, p.j, index[3]), p.part);
    e = lerp(&kb, top, bottom, y.part);
  }
  struct element outside = num(&kb, node_attr_float(c->node, "extrapolation_value", 0));
  kb_store(&kb, o, index, f_select(&kb.f, real_element(kb_and(&kb, y.inside, p.inside)), e, outside));
  kb_close(&kb, 4);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish(&kb);
}

/* ---- NonMaxSuppression: the best box is taken, those that overlap it too much are dropped, and so on ---- */

struct span {
  struct element low, high;
};
static struct span box_span(struct kb *kb, uint32_t boxes, expr_id box, int axis) {
  struct element a = corner(kb, boxes, box, axis), b = corner(kb, boxes, box, axis + 2);
  return (struct span){bin(kb, SCALAR_MIN, a, b), bin(kb, SCALAR_MAX, a, b)};
}
static struct element length(struct kb *kb, struct span s) { return bin(kb, SCALAR_SUB, s.high, s.low); }

/* Whether the boxes' intersection over union is above the threshold; boxes without area overlap nothing. */
static expr_id overlaps(struct kb *kb, uint32_t boxes, expr_id p, expr_id q, struct element threshold) {
  struct element areas[2] = {num(kb, 1), num(kb, 1)}, common = num(kb, 1), zero = num(kb, 0);
  for (int axis = 0; axis < 2; axis++) {
    struct span a = box_span(kb, boxes, p, axis), b = box_span(kb, boxes, q, axis);
    areas[0] = bin(kb, SCALAR_MUL, areas[0], length(kb, a));
    areas[1] = bin(kb, SCALAR_MUL, areas[1], length(kb, b));
    struct span both = {bin(kb, SCALAR_MAX, a.low, b.low), bin(kb, SCALAR_MIN, a.high, b.high)};
    common = bin(kb, SCALAR_MUL, common, bin(kb, SCALAR_MAX, length(kb, both), zero));
  }
  struct element all = bin(kb, SCALAR_SUB, bin(kb, SCALAR_ADD, areas[0], areas[1]), common);
  expr_id real = kb_and(kb, bin(kb, SCALAR_LT, zero, areas[0]).re, bin(kb, SCALAR_LT, zero, areas[1]).re);
  return kb_and(kb, real, bin(kb, SCALAR_LT, threshold, bin(kb, SCALAR_DIV, common, all)).re);
}

struct suppression {
  value_id boxes, scores, limit, iou, score; /* iou, score: NO_VALUE where the op has none */
  dim count;
};

static status suppression_inputs(struct op_call *c, struct suppression *s) {
  struct flow_value b;
  memset(s, 0, sizeof *s);
  TRY(op_input(c, 0, &s->boxes));
  TRY(op_input(c, 1, &s->scores));
  TRY(op_input(c, 2, &s->limit));
  if (c->in_count > 3)
    TRY(op_input(c, 3, &s->iou));
  if (c->in_count > 4)
    TRY(op_input(c, 4, &s->score));
  TRY(check_boxes(c, s->boxes, &b));
  struct flow_value x = *op_value(c, s->scores);
  if (x.rank != 1)
    return fail(INVALID_ARGUMENT, "scores must be 1-D: %s", op_shape_text(c, x.rank, x.dims));
  s->count = b.dims[0];
  return op_equal_dims(c, x.dims[0], b.dims[0], "scores has incompatible shape");
}

static struct element scalar_or(struct kb *kb, value_id v, double otherwise) {
  return v ? load_as(kb, DTYPE_FLOAT, kb_in(kb, v), NULL) : num(kb, otherwise);
}

/* The chosen boxes in order, in a buffer as long as there are boxes, and how many they are. */
static status choose_boxes(struct op_call *c, const struct suppression *s, value_id *chosen, value_id *number) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t b = kb_in(&kb, s->boxes), x = kb_in(&kb, s->scores);
  expr_id limit = kb_index(&kb, kb_load(&kb, kb_in(&kb, s->limit), NULL));
  struct element iou = scalar_or(&kb, s->iou, node_attr_float(c->node, "iou_threshold", 0.5)), least = scalar_or(&kb, s->score, -INFINITY);
  uint32_t out = kb_out(&kb, DTYPE_INT32, 1, &s->count), alive = kb_out(&kb, DTYPE_BOOL, 1, &s->count), n = kb_out(&kb, DTYPE_INT32, 0, NULL);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, s->count);
  bool all = s->score == NO_VALUE;
  struct element enough = all ? real_element(expr_int(kb.k, DTYPE_BOOL, 1)) : bin(&kb, SCALAR_LT, least, load_as(&kb, DTYPE_FLOAT, x, &i));
  kb_store(&kb, alive, &i, enough);
  kb_store(&kb, out, &i, real_element(expr_int(kb.k, DTYPE_INT32, 0)));
  kb_close(&kb, 1);
  uint32_t taken = kb_local(&kb, kb_int(&kb, 0)), more = kb_local(&kb, kb_lt(&kb, kb_int(&kb, 0), limit));
  kb_while(&kb, kb_get(&kb, more));
  uint32_t best = kb_local(&kb, kb_int(&kb, -1)), top = kb_local(&kb, num(&kb, -INFINITY).re);
  i = kb_for_dim(&kb, LOOP_SEQ, s->count);
  struct element score = load_as(&kb, DTYPE_FLOAT, x, &i);
  expr_id first = kb_lt(&kb, kb_get(&kb, best), kb_int(&kb, 0)), larger = kb_lt(&kb, kb_get(&kb, top), score.re);
  expr_id better = kb_and(&kb, kb_load(&kb, alive, &i).re, expr_binary(kb.k, SCALAR_OR, first, larger));
  kb_if(&kb, better);
  kb_set(&kb, best, i);
  kb_set(&kb, top, score.re);
  kb_close(&kb, 2);
  expr_id found = expr_binary(kb.k, SCALAR_LE, kb_int(&kb, 0), kb_get(&kb, best));
  kb_if(&kb, found);
  expr_id place = kb_get(&kb, taken), winner = kb_get(&kb, best);
  kb_store(&kb, out, &place, real_element(expr_cast(kb.k, DTYPE_INT32, winner)));
  kb_set(&kb, taken, kb_add(&kb, place, kb_int(&kb, 1)));
  i = kb_for_dim(&kb, LOOP_SEQ, s->count);
  expr_id dropped = expr_binary(kb.k, SCALAR_OR, expr_binary(kb.k, SCALAR_EQ, i, winner), overlaps(&kb, b, i, winner, iou));
  kb_store(&kb, alive, &i, real_element(kb_and(&kb, kb_load(&kb, alive, &i).re, expr_unary(kb.k, SCALAR_NOT, dropped))));
  kb_close(&kb, 2);
  kb_set(&kb, more, kb_and(&kb, found, kb_lt(&kb, kb_get(&kb, taken), limit)));
  kb_close(&kb, 1);
  kb_store(&kb, n, NULL, real_element(expr_cast(kb.k, DTYPE_INT32, kb_get(&kb, taken))));
  *chosen = kb_value(&kb, out);
  *number = kb_value(&kb, n);
  return kb_finish(&kb);
}

status build_non_max_suppression(struct op_call *c) {
  struct suppression s;
  value_id chosen, number;
  dim *elements;
  int count;
  TRY(suppression_inputs(c, &s));
  TRY(choose_boxes(c, &s, &chosen, &number));
  bool padded = node_attr_int(c->node, "pad_to_max_output_size", 0);
  TRY(op_elements(c, padded ? s.limit : number, &elements, &count));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  uint32_t a = kb_in(&kb, chosen), o = kb_out(&kb, DTYPE_INT32, 1, elements);
  expr_id i = kb_for_dim(&kb, LOOP_PAR, elements[0]), boxes = kb_dim(&kb, s.count);
  if (padded) { /* beyond the boxes there are zeros, as behind the chosen */
    kb_if(&kb, kb_lt(&kb, i, boxes));
    kb_store(&kb, o, &i, kb_load(&kb, a, &i));
    kb_else(&kb);
    kb_store(&kb, o, &i, f_const(&kb.f, 0));
    kb_close(&kb, 1);
  } else {
    kb_store(&kb, o, &i, kb_load(&kb, a, &i));
  }
  kb_close(&kb, 1);
  op_set_output(c, 0, kb_value(&kb, o));
  if (c->out_count > 1)
    op_set_output(c, 1, number);
  return kb_finish(&kb);
}
