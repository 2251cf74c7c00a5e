/* ops_draw.c: the outlines of boxes drawn on images. A box is [y1, x1, y2, x2], 1 being the last pixel. */
#include <string.h>

#include "ir/ops/element_words.h"

/* Colours that are taken in turn where none are given: yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia. */
#define COLOURS 10
static const double colours[COLOURS][4] = {{1, 1, 0, 1},     {0, 0, 1, 1},   {1, 0, 0, 1},   {0, 1, 0, 1}, {0.5, 0, 0.5, 1},
                                           {0.5, 0.5, 0, 1}, {0.5, 0, 0, 1}, {0, 0, 0.5, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

struct drawing {
  value_id images, boxes, colours; /* colours: NO_VALUE for the usual ones */
  struct flow_value image, box;
  dim colour_count;
};

static status drawing_begin(struct op_call *c, struct drawing *d) {
  TRY(op_input(c, 0, &d->images));
  TRY(op_input(c, 1, &d->boxes));
  d->image = *op_value(c, d->images);
  d->box = *op_value(c, d->boxes);
  if (d->image.rank != 4 || d->box.rank != 3)
    return fail(INVALID_ARGUMENT, "The rank of the images should be 4, of the boxes 3: %s, %s",
                op_shape_text(c, d->image.rank, d->image.dims), op_shape_text(c, d->box.rank, d->box.dims));
  TRY(op_equal_dims(c, d->image.dims[0], d->box.dims[0], "The batch sizes should be the same"));
  TRY(op_equal_dims(c, d->box.dims[2], op_dim(c, 4), "The size of the third dimension of the box"));
  struct kb guard;
  guard_begin(&guard, c);
  expr_id depth = kb_dim(&guard, d->image.dims[3]), known = expr_int(guard.k, DTYPE_BOOL, 0);
  static const int depths[] = {1, 3, 4};
  for (int i = 0; i < 3; i++)
    known = kb_or(&guard, known, kb_eq(&guard, depth, kb_int(&guard, depths[i])));
  kb_check(&guard, known, INVALID_ARGUMENT, "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), not %d", depth, NO_EXPR);
  TRY(guard_finish(&guard));
  d->colours = NO_VALUE;
  if (c->in_count < 3)
    return OK;
  TRY(op_input(c, 2, &d->colours));
  struct flow_value v = *op_value(c, d->colours);
  if (v.rank != 2)
    return fail(INVALID_ARGUMENT, "colors must be a 2-D matrix: %s", op_shape_text(c, v.rank, v.dims));
  d->colour_count = v.dims[0];
  TRY(op_require_le(c, d->image.dims[3], v.dims[1], "colors must have equal or more channels than the image: %d, not %d"));
  if (op_dim_value(c, op_count(c, 2, v.dims)) == 0)
    d->colours = NO_VALUE;
  return OK;
}

/* A corner of a box as a pixel, truncated. */
static expr_id edge(struct kb *kb, const struct drawing *d, expr_id image, expr_id box, int which) {
  expr_id at[3] = {image, box, kb_int(kb, which)};
  dim size = d->image.dims[1 + which % 2];
  struct element room = e_of(kb, DTYPE_FLOAT, kb_sub(kb, kb_dim(kb, size), kb_int(kb, 1)));
  return kb_now(kb, e_int(kb, e_mul(kb, load_as(kb, DTYPE_FLOAT, kb_in(kb, d->boxes), at), room)));
}

static expr_id between(struct kb *kb, expr_id low, expr_id x, expr_id high) { return kb_and(kb, kb_le(kb, low, x), kb_le(kb, x, high)); }

/* Whether the outline of a box goes through a pixel; an inverted box has none. */
static expr_id on_outline(struct kb *kb, const struct drawing *d, expr_id image, expr_id box, expr_id y, expr_id x) {
  expr_id e[4];
  for (int i = 0; i < 4; i++)
    e[i] = edge(kb, d, image, box, i);
  expr_id rows = between(kb, e[0], y, e[2]), columns = between(kb, e[1], x, e[3]);
  expr_id lines = kb_or(kb, kb_or(kb, kb_eq(kb, y, e[0]), kb_eq(kb, y, e[2])), kb_or(kb, kb_eq(kb, x, e[1]), kb_eq(kb, x, e[3])));
  return kb_and(kb, kb_and(kb, rows, columns), lines);
}

static struct element usual_colour(struct kb *kb, const struct drawing *d, expr_id number, expr_id channel) {
  bool grey = op_dim_value(kb->c, d->image.dims[3]) == 1;
  struct element e = e_num(kb, 0);
  for (int i = 0; i < COLOURS; i++)
    for (int k = 0; k < 4; k++) {
      expr_id here = kb_and(kb, kb_eq(kb, number, kb_int(kb, i)), kb_eq(kb, channel, kb_int(kb, k)));
      e = e_select(kb, here, e_num(kb, grey && k == 0 ? 1 : colours[i][k]), e);
    }
  if (grey || op_dim_value(kb->c, d->image.dims[3]) > 1)
    return e;
  return e_select(kb, kb_eq(kb, kb_dim(kb, d->image.dims[3]), kb_int(kb, 1)), e_num(kb, 1), e);
}

/* The last box whose outline goes through a pixel gives its colour. */
status build_draw_bounding_boxes(struct op_call *c) {
  struct drawing d;
  TRY(drawing_begin(c, &d));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  uint32_t a = kb_in(&kb, d.images);
  kb_in(&kb, d.boxes);
  uint32_t colour = d.colours ? kb_in(&kb, d.colours) : 0, o = kb_out(&kb, d.image.dtype, 4, d.image.dims);
  expr_id index[4];
  kb_loops(&kb, LOOP_PAR, 3, d.image.dims, index);
  uint32_t last = kb_local(&kb, kb_int(&kb, -1));
  expr_id box = kb_for_dim(&kb, LOOP_SEQ, d.box.dims[1]);
  kb_if(&kb, on_outline(&kb, &d, index[0], box, index[1], index[2]));
  kb_set(&kb, last, box);
  kb_close(&kb, 2);
  index[3] = kb_for_dim(&kb, LOOP_SEQ, d.image.dims[3]);
  kb_if(&kb, kb_lt(&kb, kb_get(&kb, last), kb_int(&kb, 0)));
  kb_store(&kb, o, index, kb_load(&kb, a, index));
  kb_else(&kb);
  expr_id none = d.colours ? kb_eq(&kb, kb_dim(&kb, d.colour_count), kb_int(&kb, 0)) : expr_int(kb.k, DTYPE_BOOL, 1);
  kb_if(&kb, none);
  expr_id at[2] = {kb_mod(&kb, kb_get(&kb, last), kb_int(&kb, COLOURS)), index[3]};
  store_as(&kb, o, index, usual_colour(&kb, &d, at[0], at[1]));
  if (d.colours) {
    kb_else(&kb);
    at[0] = kb_mod(&kb, kb_get(&kb, last), kb_dim(&kb, d.colour_count));
    store_as(&kb, o, index, kb_load(&kb, colour, at));
  }
  kb_close(&kb, 6);
  op_set_output(c, 0, kb_value(&kb, o));
  return kb_finish_guarded(&kb);
}
