/* ops_sample_box.c: a random crop of an image of a given size, its shape and area in given ranges, that covers enough of one of the boxes;
 * attempts are drawn until one does. A box is [y1, x1, y2, x2] in [0, 1]. The words of the random stream are taken as TensorFlow does. */
#include <math.h>
#include <string.h>

#include "ir/ops/element_words.h"
#include "ir/ops/random/random_stream.h"

struct sample {
  value_id size, boxes, covered; /* covered: NO_VALUE: an attribute */
  enum dtype dtype;
  dim box_count;
  double aspect[2], area[2];
  int64_t attempts;
  bool whole_image;
  struct random_source source;
};

/* ---- arguments ---- */

static status two_floats(struct op_call *c, const char *attr, double out[2]) {
  const struct attr_value *v = node_attr(c->node, attr);
  if (!v || v->list.count != 2)
    return fail(INVALID_ARGUMENT, "%s must have 2 elements", attr);
  for (int i = 0; i < 2; i++) {
    out[i] = v->list.items[i].f;
    if (!(out[i] > 0))
      return fail(INVALID_ARGUMENT, "%s must be positive, not %g", attr, out[i]);
  }
  return OK;
}

static status sample_attributes(struct op_call *c, struct sample *s) {
  TRY(two_floats(c, "aspect_ratio_range", s->aspect));
  TRY(two_floats(c, "area_range", s->area));
  if (s->area[0] > 1 || s->area[1] > 1)
    return fail(INVALID_ARGUMENT, "Area range must be less then or equal to 1.0: [%g, %g]", s->area[0], s->area[1]);
  s->attempts = node_attr_int(c->node, "max_attempts", 100);
  if (s->attempts < 1)
    return fail(INVALID_ARGUMENT, "Max attempts must be positive, not %lld", (long long)s->attempts);
  if (node_attr_float(c->node, "min_object_covered", 0) < 0)
    return fail(INVALID_ARGUMENT, "Min object covered must be non-negative");
  s->whole_image = node_attr_int(c->node, "use_image_if_no_bounding_boxes", 0);
  return OK;
}

static status check_values(struct op_call *c, const struct sample *s) {
  struct kb kb;
  guard_begin(&kb, c);
  kb.f.dtype = DTYPE_FLOAT;
  expr_id none = kb_int(&kb, 0), two = kb_int(&kb, 2), i = kb_for(&kb, LOOP_SEQ, two);
  expr_id n = kb_index(&kb, kb_load(&kb, kb_in(&kb, s->size), &i));
  kb_check(&kb, kb_in_range(&kb, n, kb_int(&kb, INT32_MAX)), INVALID_ARGUMENT, "image height or width is out of bounds: %d", n, NO_EXPR);
  kb_close(&kb, 1);
  if (s->covered)
    kb_check(&kb, e_le(&kb, e_num(&kb, 0), kb_load(&kb, kb_in(&kb, s->covered), NULL)), INVALID_ARGUMENT,
             "Min object covered must be non-negative", NO_EXPR, NO_EXPR);
  if (!s->whole_image)
    kb_check(&kb, kb_lt(&kb, none, kb_dim(&kb, s->box_count)), INVALID_ARGUMENT,
             "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not provide any.", NO_EXPR,
             NO_EXPR);
  expr_id at[2] = {kb_for_dim(&kb, LOOP_SEQ, s->box_count), kb_for(&kb, LOOP_SEQ, kb_int(&kb, 4))};
  struct element e = kb_load(&kb, kb_in(&kb, s->boxes), at);
  kb_check(&kb, kb_and(&kb, e_le(&kb, e_num(&kb, 0), e), e_le(&kb, e, e_num(&kb, 1))), INVALID_ARGUMENT,
           "All bounding box coordinates must be in [0.0, 1.0]: box %d, coordinate %d", at[0], at[1]);
  kb_close(&kb, 2);
  return guard_finish(&kb);
}

/* image_size, bounding_boxes, [min_object_covered], [seed] */
static status sample_begin(struct op_call *c, struct sample *s) {
  value_id seed;
  memset(s, 0, sizeof *s);
  TRY(sample_attributes(c, s));
  TRY(op_input(c, 0, &s->size));
  TRY(op_input(c, 1, &s->boxes));
  struct flow_value size = *op_value(c, s->size), b = *op_value(c, s->boxes);
  if (size.rank != 1 || b.rank != 3)
    return fail(INVALID_ARGUMENT, "image_size must be 1-dimensional and bounding_boxes 3-dimensional: %s, %s",
                op_shape_text(c, size.rank, size.dims), op_shape_text(c, b.rank, b.dims));
  TRY(op_equal_dims(c, size.dims[0], op_dim(c, 3), "image_size must contain 3 elements"));
  TRY(op_equal_dims(c, b.dims[2], op_dim(c, 4), "bounding boxes must have shape [4] or [*, 4]"));
  s->dtype = size.dtype;
  if (c->in_count > 2) {
    TRY(op_input(c, 2, &s->covered));
    struct flow_value v = *op_value(c, s->covered);
    if (v.rank != 0)
      return fail(INVALID_ARGUMENT, "min_object_covered must be 0-D, got shape %s", op_shape_text(c, v.rank, v.dims));
  }
  dim flat[2] = {op_mul(c, b.dims[0], b.dims[1]), b.dims[2]};
  s->box_count = flat[0];
  s->boxes = op_alias(c, s->boxes, b.dtype, 2, flat);
  if (c->in_count > 3) {
    TRY(op_input(c, 3, &seed));
    s->source.keeper = RANDOM_STATELESS;
    TRY(random_scramble(c, seed, &s->source.key, &s->source.counter));
  } else {
    s->source = random_stateful(c);
  }
  return check_values(c, s);
}

/* ---- rectangles of whole pixels ---- */

struct rectangle {
  expr_id edge[4]; /* y1, x1, y2, x2 */
};

static struct element to_float(struct kb *kb, expr_id e) { return e_of(kb, DTYPE_FLOAT, e); }
static expr_id rounded(struct kb *kb, struct element e) { return kb_now(kb, e_int(kb, f_unary(&kb->f, SCALAR_RINT, e))); }
static struct element area(struct kb *kb, const struct rectangle *r) {
  return to_float(kb, kb_mul(kb, kb_sub(kb, r->edge[3], r->edge[1]), kb_sub(kb, r->edge[2], r->edge[0])));
}

static struct element common_area(struct kb *kb, const struct rectangle *a, const struct rectangle *b) {
  struct rectangle r;
  for (int i = 0; i < 4; i++)
    r.edge[i] = kb_now(kb, expr_binary(kb->k, i < 2 ? SCALAR_MAX : SCALAR_MIN, a->edge[i], b->edge[i]));
  expr_id empty = kb_or(kb, kb_lt(kb, r.edge[2], r.edge[0]), kb_lt(kb, r.edge[3], r.edge[1]));
  return e_select(kb, empty, e_num(kb, 0), area(kb, &r));
}

/* What is sampled, as expressions and locals of the kernel. */
struct sampling {
  const struct sample *s;
  struct word_stream *words;
  expr_id height, width;
  struct element covered;
  uint32_t edge[4], done; /* locals: the crop, and whether it is good */
};

/* Sets `good` when the crop covers enough of the box. */
static void cover(struct kb *kb, const struct sampling *p, const struct rectangle *crop, const struct rectangle *box, uint32_t good) {
  struct element object = e_now(kb, area(kb, box)), one = e_num(kb, 1);
  struct element share = e_div(kb, common_area(kb, crop, box), object);
  expr_id enough = kb_and(kb, e_le(kb, one, object), e_le(kb, p->covered, share));
  kb_set(kb, good, kb_or(kb, kb_get(kb, good), enough));
}

static void accept_if_covering(struct kb *kb, const struct sampling *p, const struct rectangle *crop) {
  uint32_t good = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 0));
  uint32_t boxes = kb_in(kb, p->s->boxes);
  expr_id at[2] = {kb_for_dim(kb, LOOP_SEQ, p->s->box_count), 0};
  struct rectangle box;
  for (int i = 0; i < 4; i++) {
    at[1] = kb_int(kb, i);
    box.edge[i] = kb_now(kb, e_int(kb, e_mul(kb, kb_load(kb, boxes, at), to_float(kb, i % 2 ? p->width : p->height))));
  }
  cover(kb, p, crop, &box, good);
  kb_close(kb, 1);
  kb_if(kb, kb_eq(kb, kb_dim(kb, p->s->box_count), kb_int(kb, 0)));
  struct rectangle image = {{kb_int(kb, 0), kb_int(kb, 0), p->height, p->width}};
  cover(kb, p, crop, &image, good);
  kb_close(kb, 1);
  kb_if(kb, kb_and(kb, kb_get(kb, good), e_le(kb, e_num(kb, 1), area(kb, crop))));
  for (int i = 0; i < 4; i++)
    kb_set(kb, p->edge[i], crop->edge[i]);
  kb_set(kb, p->done, expr_int(kb->k, DTYPE_BOOL, 1));
  kb_close(kb, 1);
}

/* The tallest crop of this shape that fits, with TensorFlow's allowances for rounding. */
static expr_id tallest(struct kb *kb, const struct sampling *p, struct element most, struct element aspect) {
  expr_id height = rounded(kb, f_unary(&kb->f, SCALAR_SQRT, e_div(kb, most, aspect))), one = kb_int(kb, 1);
  expr_id wide = kb_lt(kb, p->width, rounded(kb, e_mul(kb, to_float(kb, height), aspect)));
  struct element room = e_sub(kb, e_add(kb, e_of(kb, DTYPE_DOUBLE, p->width), f_const_as(&kb->f, DTYPE_DOUBLE, 0.5)),
                              f_const_as(&kb->f, DTYPE_DOUBLE, (double)0.0000001f));
  expr_id fitting = kb_now(kb, e_int(kb, e_div(kb, room, e_cast(kb, DTYPE_DOUBLE, aspect))));
  expr_id still = kb_lt(kb, p->width, rounded(kb, e_mul(kb, to_float(kb, fitting), aspect)));
  height = kb_select(kb, wide, kb_select(kb, still, kb_sub(kb, fitting, one), fitting), height);
  return kb_now(kb, expr_binary(kb->k, SCALAR_MIN, height, p->height));
}

/* One attempt. */
static void attempt(struct kb *kb, const struct sampling *p) {
  const struct sample *s = p->s;
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0);
  struct element u = real_element(words_float(p->words));
  struct element range = e_num(kb, (double)((float)s->aspect[1] - (float)s->aspect[0]));
  struct element aspect = e_now(kb, e_add(kb, e_mul(kb, u, range), e_num(kb, s->aspect[0])));
  struct element width = to_float(kb, p->width), height = to_float(kb, p->height);
  struct element least = e_now(kb, e_mul(kb, e_mul(kb, e_num(kb, s->area[0]), width), height));
  struct element most = e_now(kb, e_mul(kb, e_mul(kb, e_num(kb, s->area[1]), width), height));
  expr_id positive = kb_and(kb, kb_lt(kb, zero, p->width), kb_lt(kb, zero, p->height));
  kb_if(kb, kb_and(kb, positive, expr_int(kb->k, DTYPE_BOOL, s->area[0] <= s->area[1])));
  uint32_t h = kb_local(kb, rounded(kb, f_unary(&kb->f, SCALAR_SQRT, e_div(kb, least, aspect))));
  expr_id top = tallest(kb, p, most, aspect);
  kb_if(kb, kb_lt(kb, kb_get(kb, h), top));
  expr_id more = words_below(p->words, kb_add(kb, kb_sub(kb, top, kb_get(kb, h)), one), false);
  kb_set(kb, h, kb_add(kb, kb_get(kb, h), more));
  kb_else(kb);
  kb_set(kb, h, top);
  kb_close(kb, 1);
  uint32_t w = kb_local(kb, rounded(kb, e_mul(kb, to_float(kb, kb_get(kb, h)), aspect)));
  for (int i = 0; i < 2; i++) { /* a pixel more where it is too small, then a pixel less where it is too large */
    struct element now = to_float(kb, kb_mul(kb, kb_get(kb, w), kb_get(kb, h)));
    kb_if(kb, i ? e_lt(kb, most, now) : e_lt(kb, now, least));
    kb_set(kb, h, kb_add(kb, kb_get(kb, h), kb_int(kb, i ? -1 : 1)));
    kb_set(kb, w, rounded(kb, e_mul(kb, to_float(kb, kb_get(kb, h)), aspect)));
    kb_close(kb, 1);
  }
  expr_id high = kb_now(kb, kb_get(kb, h)), wide = kb_now(kb, kb_get(kb, w));
  struct element size = to_float(kb, kb_mul(kb, wide, high));
  expr_id good = kb_and(kb, e_le(kb, least, size), e_le(kb, size, most));
  good = kb_and(kb, good, kb_and(kb, kb_le(kb, wide, p->width), kb_le(kb, high, p->height)));
  good = kb_and(kb, good, kb_and(kb, kb_lt(kb, zero, wide), kb_lt(kb, zero, high)));
  kb_if(kb, good);
  uint32_t at[2] = {kb_local(kb, zero), kb_local(kb, zero)};
  for (int i = 0; i < 2; i++) {
    expr_id room = kb_sub(kb, i ? p->width : p->height, i ? wide : high);
    kb_if(kb, kb_lt(kb, zero, room));
    kb_set(kb, at[i], words_below(p->words, room, false));
    kb_close(kb, 1);
  }
  expr_id y = kb_now(kb, kb_get(kb, at[0])), x = kb_now(kb, kb_get(kb, at[1]));
  struct rectangle crop = {{y, x, kb_add(kb, y, high), kb_add(kb, x, wide)}};
  accept_if_covering(kb, p, &crop);
  kb_close(kb, 2);
}

static void store_crop(struct kb *kb, const struct sampling *p, const uint32_t out[3]) {
  enum dtype dtype = p->s->dtype;
  expr_id edge[4], zero = kb_int(kb, 0);
  for (int i = 0; i < 4; i++)
    edge[i] = kb_get(kb, p->edge[i]);
  for (int i = 0; i < 3; i++) {
    expr_id at = kb_int(kb, i);
    kb_store(kb, out[0], &at, e_of(kb, dtype, i < 2 ? edge[i] : zero));
    kb_store(kb, out[1], &at, e_of(kb, dtype, i < 2 ? kb_sub(kb, edge[2 + i], edge[i]) : kb_int(kb, -1)));
  }
  for (int i = 0; i < 4; i++) {
    expr_id at[3] = {zero, zero, kb_int(kb, i)};
    kb_store(kb, out[2], at, e_div(kb, to_float(kb, edge[i]), to_float(kb, i % 2 ? p->width : p->height)));
  }
}

status build_sample_distorted_bounding_box(struct op_call *c) {
  struct sample s;
  TRY(sample_begin(c, &s));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  struct sampling p = {.s = &s};
  uint32_t size = kb_in(&kb, s.size), out[3];
  kb_in(&kb, s.boxes);
  p.covered = s.covered ? kb_load(&kb, kb_in(&kb, s.covered), NULL) : e_num(&kb, node_attr_float(c->node, "min_object_covered", 0.1));
  struct random_state state = random_bind(&kb, &s.source);
  dim three = op_dim(c, 3), box[3] = {op_dim(c, 1), op_dim(c, 1), op_dim(c, 4)};
  out[0] = kb_out(&kb, s.dtype, 1, &three);
  out[1] = kb_out(&kb, s.dtype, 1, &three);
  out[2] = kb_out(&kb, DTYPE_FLOAT, 3, box);
  expr_id zero = kb_int(&kb, 0), one = kb_int(&kb, 1);
  p.height = kb_now(&kb, kb_index(&kb, kb_load(&kb, size, &zero)));
  p.width = kb_now(&kb, kb_index(&kb, kb_load(&kb, size, &one)));
  struct word_stream words = words_begin(&kb, random_load(&kb, &s.source, &state));
  p.words = &words;
  for (int i = 0; i < 4; i++)
    p.edge[i] = kb_local(&kb, i < 2 ? zero : i == 2 ? p.height : p.width);
  p.done = kb_local(&kb, expr_int(kb.k, DTYPE_BOOL, 0));
  uint32_t tries = kb_local(&kb, zero);
  kb_while(&kb, kb_and(&kb, kb_not(&kb, kb_get(&kb, p.done)), kb_lt(&kb, kb_get(&kb, tries), kb_int(&kb, s.attempts))));
  attempt(&kb, &p);
  kb_set(&kb, tries, kb_add(&kb, kb_get(&kb, tries), one));
  kb_close(&kb, 1);
  store_crop(&kb, &p, out);
  random_advance(&kb, &s.source, &state, kb_int(&kb, s.attempts));
  for (uint32_t i = 0; i < 3; i++)
    op_set_output(c, i, kb_value(&kb, out[i]));
  return kb_finish_guarded(&kb);
}
