/* ops_suppression.c: the choice among boxes that overlap: the best is taken, those that overlap it too much are dropped or lose score
 * (Bodla et al., "Soft-NMS"), and so on. A box is [y1, x1, y2, x2], in any order of its corners. */
#include <math.h>
#include <string.h>

#include "ir/ops/element_words.h"
#include "ir/ops/image/score_queue.h"

/* ---- intersection over union ---- */

struct span {
  struct element low, high;
};
static struct span span_of(struct kb *kb, const struct element box[4], int axis) {
  return (struct span){e_min(kb, box[axis], box[axis + 2]), e_max(kb, box[axis], box[axis + 2])};
}
static struct element length(struct kb *kb, struct span s) { return e_sub(kb, s.high, s.low); }

/* In float. Boxes without area overlap nothing. */
static struct element intersection_over_union(struct kb *kb, const struct element a[4], const struct element b[4]) {
  struct element zero = f_const_as(&kb->f, DTYPE_FLOAT, 0), areas[2] = {zero, zero}, common = zero;
  for (int axis = 0; axis < 2; axis++) {
    struct span p = span_of(kb, a, axis), q = span_of(kb, b, axis), both = {e_max(kb, p.low, q.low), e_min(kb, p.high, q.high)};
    struct element overlap = e_max(kb, length(kb, both), zero);
    areas[0] = axis ? e_mul(kb, areas[0], length(kb, p)) : length(kb, p);
    areas[1] = axis ? e_mul(kb, areas[1], length(kb, q)) : length(kb, q);
    common = axis ? e_mul(kb, common, overlap) : overlap;
  }
  expr_id flat = kb_or(kb, e_le(kb, areas[0], zero), e_le(kb, areas[1], zero));
  return e_select(kb, flat, zero, e_div(kb, common, e_sub(kb, e_add(kb, areas[0], areas[1]), common)));
}

/* ---- one list of boxes ---- */

struct suppression {
  value_id boxes, scores, limit, similarity, score, sigma; /* thresholds; NO_VALUE where the op has none */
  bool overlaps;                                           /* boxes is a square of similarities */
  enum dtype dtype;                                        /* of the scores */
  dim count;
};
struct chosen {
  value_id boxes, scores, number; /* as many places as there are boxes, of which `number` count */
};

static status scalar_argument(struct op_call *c, uint32_t i, value_id *out) {
  TRY(op_input(c, i, out));
  struct flow_value v = *op_value(c, *out);
  return v.rank == 0 ? OK : fail(INVALID_ARGUMENT, "input %u must be 0-D, got shape %s", i, op_shape_text(c, v.rank, v.dims));
}

/* Thresholds of similarities of boxes are in [0, 1], others may be anything. */
static status check_limits(struct op_call *c, const struct suppression *s) {
  struct kb kb;
  guard_begin(&kb, c);
  kb.f.dtype = DTYPE_FLOAT;
  expr_id n = kb_index(&kb, kb_load(&kb, kb_in(&kb, s->limit), NULL));
  kb_check(&kb, kb_le(&kb, kb_int(&kb, 0), n), INVALID_ARGUMENT, "output size must be non-negative: %d", n, NO_EXPR);
  if (!s->overlaps) {
    struct element t = e_num(&kb, node_attr_float(c->node, "iou_threshold", 0.5));
    if (s->similarity)
      t = load_as(&kb, DTYPE_FLOAT, kb_in(&kb, s->similarity), NULL);
    kb_check(&kb, kb_and(&kb, e_le(&kb, e_num(&kb, 0), t), e_le(&kb, t, e_num(&kb, 1))), INVALID_ARGUMENT,
             "iou_threshold must be in [0, 1]", NO_EXPR, NO_EXPR);
  }
  if (s->sigma)
    kb_check(&kb, e_le(&kb, e_num(&kb, 0), load_as(&kb, DTYPE_FLOAT, kb_in(&kb, s->sigma), NULL)), INVALID_ARGUMENT,
             "soft_nms_sigma must be >= 0", NO_EXPR, NO_EXPR);
  return guard_finish(&kb);
}

static status suppression_inputs(struct op_call *c, struct suppression *s) {
  memset(s, 0, sizeof *s);
  s->overlaps = op_takes(c, "overlaps");
  TRY(op_input(c, 0, &s->boxes));
  TRY(op_input(c, 1, &s->scores));
  value_id *scalars[] = {&s->limit, &s->similarity, &s->score, &s->sigma};
  for (uint32_t i = 2; i < c->in_count; i++)
    TRY(scalar_argument(c, i, scalars[i - 2]));
  struct flow_value b = *op_value(c, s->boxes), x = *op_value(c, s->scores);
  if (b.rank != 2 || x.rank != 1)
    return fail(INVALID_ARGUMENT, "boxes or overlaps must be 2-D and scores 1-D: %s, %s", op_shape_text(c, b.rank, b.dims),
                op_shape_text(c, x.rank, x.dims));
  s->count = b.dims[0];
  s->dtype = x.dtype;
  TRY(op_equal_dims(c, b.dims[1], s->overlaps ? b.dims[0] : op_dim(c, 4),
                    s->overlaps ? "overlaps must be square" : "boxes must have 4 columns"));
  TRY(op_equal_dims(c, x.dims[0], b.dims[0], "scores has incompatible shape"));
  return check_limits(c, s);
}

/* The buffers and locals of a choice. A box that waits has met the boxes chosen before number `met`. */
struct choice {
  const struct suppression *s;
  uint32_t boxes, scores, met, out, out_scores;
  struct score_queue waiting;
  uint32_t taken;
  struct element similarity, least, scale;
  expr_id soft;
};

static struct element threshold(struct kb *kb, value_id v, struct element otherwise) {
  return v ? e_now(kb, e_cast(kb, kb->f.dtype, kb_load(kb, kb_in(kb, v), NULL))) : otherwise;
}

static struct element similarity_of(struct kb *kb, const struct choice *h, expr_id p, expr_id q) {
  if (h->s->overlaps) {
    expr_id at[2] = {p, q};
    return kb_load(kb, h->boxes, at);
  }
  struct element a[4], b[4];
  for (int i = 0; i < 4; i++) {
    expr_id at[2] = {p, kb_int(kb, i)}, other[2] = {q, at[1]};
    a[i] = load_as(kb, DTYPE_FLOAT, h->boxes, at);
    b[i] = load_as(kb, DTYPE_FLOAT, h->boxes, other);
  }
  return e_cast(kb, kb->f.dtype, intersection_over_union(kb, a, b));
}

/* The candidate meets the boxes chosen since it last waited, the latest first, until one drops it or takes too much of its score. */
static void meet_chosen(struct kb *kb, const struct choice *h, expr_id candidate, uint32_t score, uint32_t dropped) {
  expr_id from = kb_now(kb, kb_load(kb, h->met, &candidate).re), one = kb_int(kb, 1);
  uint32_t j = kb_local(kb, kb_sub(kb, kb_get(kb, h->taken), one));
  uint32_t going = kb_local(kb, kb_le(kb, from, kb_get(kb, j)));
  kb_while(kb, kb_get(kb, going));
  expr_id at = kb_now(kb, kb_get(kb, j)), other = kb_index(kb, kb_load(kb, h->out, &at));
  struct element similarity = e_now(kb, similarity_of(kb, h, candidate, other));
  expr_id near_enough = kb_or(kb, h->soft, e_le(kb, similarity, h->similarity));
  uint32_t weight = kb_local(kb, e_select(kb, near_enough, e_num(kb, 1), e_num(kb, 0)).re);
  kb_if(kb, h->soft);
  kb_set(kb, weight, f_unary(&kb->f, SCALAR_EXP, e_mul(kb, e_mul(kb, h->scale, similarity), similarity)).re);
  kb_close(kb, 1);
  kb_set(kb, score, e_mul(kb, real_element(kb_get(kb, score)), real_element(kb_get(kb, weight))).re);
  kb_set(kb, dropped, kb_and(kb, kb_not(kb, h->soft), e_lt(kb, h->similarity, similarity)));
  kb_set(kb, j, kb_sub(kb, kb_get(kb, j), one));
  expr_id over = kb_or(kb, kb_get(kb, dropped), e_le(kb, real_element(kb_get(kb, score)), h->least));
  kb_set(kb, going, kb_and(kb, kb_not(kb, over), kb_le(kb, from, kb_get(kb, j))));
  kb_close(kb, 1);
  kb_store(kb, h->met, &candidate, real_element(kb_get(kb, h->taken)));
}

/* Takes the best of those that wait, or lets it wait again with a score that is less. */
static void choose_one(struct kb *kb, struct choice *h) {
  expr_id no = expr_int(kb->k, DTYPE_BOOL, 0), candidate = queue_best(kb, &h->waiting);
  struct element original = e_now(kb, kb_load(kb, h->out_scores, &candidate));
  uint32_t score = kb_local(kb, original.re), dropped = kb_local(kb, no);
  meet_chosen(kb, h, candidate, score, dropped);
  struct element left = e_now(kb, real_element(kb_get(kb, score)));
  expr_id stays = kb_not(kb, kb_get(kb, dropped)), same = kb_now(kb, kb_and(kb, stays, e_eq(kb, left, original)));
  kb_store(kb, h->out_scores, &candidate, left);
  kb_if(kb, kb_and(kb, kb_and(kb, stays, e_lt(kb, h->least, left)), kb_not(kb, same)));
  queue_lower_best(kb, &h->waiting);
  kb_else(kb);
  queue_drop_best(kb, &h->waiting);
  kb_close(kb, 1);
  kb_if(kb, same);
  expr_id place = kb_now(kb, kb_get(kb, h->taken));
  kb_store(kb, h->out, &place, e_of(kb, DTYPE_INT32, candidate));
  kb_set(kb, h->taken, kb_add(kb, place, kb_int(kb, 1)));
  kb_close(kb, 1);
}

static status choose_boxes(struct op_call *c, const struct suppression *s, struct chosen *out) {
  struct kb kb;
  kb_begin(&kb, c, s->dtype);
  struct choice h = {.s = s};
  h.boxes = kb_in(&kb, s->boxes);
  h.scores = kb_in(&kb, s->scores);
  expr_id limit = kb_now(&kb, kb_index(&kb, kb_load(&kb, kb_in(&kb, s->limit), NULL)));
  h.similarity = threshold(&kb, s->similarity, e_num(&kb, node_attr_float(c->node, "iou_threshold", 0.5)));
  h.least = threshold(&kb, s->score, kb_limit(&kb, s->dtype, false));
  struct element sigma = threshold(&kb, s->sigma, e_num(&kb, 0)), none = e_num(&kb, 0);
  h.soft = kb_now(&kb, e_lt(&kb, none, sigma));
  h.scale = e_now(&kb, e_select(&kb, h.soft, e_div(&kb, e_num(&kb, -0.5), sigma), none));
  h.out = kb_out(&kb, DTYPE_INT32, 1, &s->count);
  h.out_scores = kb_out(&kb, s->dtype, 1, &s->count);
  queue_create(&kb, &h.waiting, h.out_scores, s->count);
  h.met = kb_scratch(&kb, DTYPE_INT64, 1, &s->count);
  uint32_t n = kb_out(&kb, DTYPE_INT32, 0, NULL);
  queue_start(&kb, &h.waiting);
  expr_id i = kb_for_dim(&kb, LOOP_SEQ, s->count);
  struct element e = e_now(&kb, kb_load(&kb, h.scores, &i));
  kb_store(&kb, h.out_scores, &i, e);
  kb_store(&kb, h.met, &i, real_element(kb_int(&kb, 0)));
  kb_store(&kb, h.out, &i, f_const_as(&kb.f, DTYPE_INT32, 0));
  kb_if(&kb, e_lt(&kb, h.least, e));
  queue_add(&kb, &h.waiting, i);
  kb_close(&kb, 2);
  h.taken = kb_local(&kb, kb_int(&kb, 0));
  expr_id some = kb_lt(&kb, kb_int(&kb, 0), kb_get(&kb, h.waiting.length));
  kb_while(&kb, kb_and(&kb, some, kb_lt(&kb, kb_get(&kb, h.taken), limit)));
  choose_one(&kb, &h);
  kb_close(&kb, 1);
  kb_store(&kb, n, NULL, e_of(&kb, DTYPE_INT32, kb_get(&kb, h.taken)));
  *out = (struct chosen){kb_value(&kb, h.out), kb_value(&kb, h.out_scores), kb_value(&kb, n)};
  return kb_finish_guarded(&kb);
}

/* The chosen boxes (and their scores) as outputs of `length` places; behind the chosen there are zeros. */
static status chosen_output(struct op_call *c, const struct suppression *s, const struct chosen *h, dim length, bool scores) {
  struct kb kb;
  enum dtype dtype = scores ? s->dtype : DTYPE_INT32;
  kb_begin(&kb, c, dtype);
  uint32_t a = kb_in(&kb, h->boxes), x = scores ? kb_in(&kb, h->scores) : 0, n = kb_in(&kb, h->number), o = kb_out(&kb, dtype, 1, &length);
  expr_id i = kb_for_dim(&kb, LOOP_PAR, length), number = kb_index(&kb, kb_load(&kb, n, NULL));
  kb_if(&kb, kb_lt(&kb, i, number));
  expr_id at = scores ? kb_clamp(&kb, kb_index(&kb, kb_load(&kb, a, &i)), kb_dim(&kb, s->count)) : i;
  kb_store(&kb, o, &i, kb_load(&kb, scores ? x : a, &at));
  kb_else(&kb);
  kb_store(&kb, o, &i, e_num(&kb, 0));
  kb_close(&kb, 2);
  op_set_output(c, scores, kb_value(&kb, o));
  return kb_finish(&kb);
}

status build_non_max_suppression(struct op_call *c) {
  struct suppression s;
  struct chosen h;
  dim length;
  TRY(suppression_inputs(c, &s));
  TRY(choose_boxes(c, &s, &h));
  TRY(op_bound_dims(c, node_attr_int(c->node, "pad_to_max_output_size", 0) ? s.limit : h.number, 1, &length));
  TRY(chosen_output(c, &s, &h, length, false));
  if (c->out_count == 3)
    TRY(chosen_output(c, &s, &h, length, true));
  if (c->out_count > 1)
    op_set_output(c, c->out_count - 1, h.number);
  return OK;
}

/* ---- CombinedNonMaxSuppression: for each class of each image, then the best of all classes ---- */

struct combined {
  value_id boxes, scores, per_class, total, iou, score;
  dim batch, count, sets, classes; /* sets of boxes: 1 or one for each class */
  dim each, candidates, length;    /* at most chosen of a class; of all classes; places of the result */
};

static status combined_inputs(struct op_call *c, struct combined *n) {
  TRY(op_input(c, 0, &n->boxes));
  TRY(op_input(c, 1, &n->scores));
  value_id *scalars[] = {&n->per_class, &n->total, &n->iou, &n->score};
  for (uint32_t i = 0; i < 4; i++)
    TRY(scalar_argument(c, 2 + i, scalars[i]));
  struct flow_value b = *op_value(c, n->boxes), x = *op_value(c, n->scores);
  if (b.rank != 4 || x.rank != 3)
    return fail(INVALID_ARGUMENT, "boxes must be 4-D and scores 3-D: %s, %s", op_shape_text(c, b.rank, b.dims),
                op_shape_text(c, x.rank, x.dims));
  n->batch = b.dims[0];
  n->count = b.dims[1];
  n->sets = b.dims[2];
  n->classes = x.dims[2];
  TRY(op_equal_dims(c, x.dims[0], n->batch, "boxes and scores must have same batch size"));
  TRY(op_equal_dims(c, x.dims[1], n->count, "scores has incompatible shape"));
  TRY(op_equal_dims(c, b.dims[3], op_dim(c, 4), "boxes must have 4 columns"));
  struct kb kb;
  guard_begin(&kb, c);
  kb.f.dtype = DTYPE_FLOAT;
  expr_id sets = kb_dim(&kb, n->sets);
  kb_check(&kb, kb_or(&kb, kb_eq(&kb, sets, kb_int(&kb, 1)), kb_eq(&kb, sets, kb_dim(&kb, n->classes))), INVALID_ARGUMENT,
           "third dimension of boxes must be either 1 or num classes, not %d", sets, NO_EXPR);
  for (int i = 0; i < 2; i++) {
    expr_id size = kb_index(&kb, kb_load(&kb, kb_in(&kb, *scalars[i]), NULL));
    const char *text = i ? "max_total_size must be > 0: %d" : "max_size_per_class must be positive: %d";
    kb_check(&kb, kb_lt(&kb, kb_int(&kb, 0), size), INVALID_ARGUMENT, text, size, NO_EXPR);
  }
  struct element t = kb_load(&kb, kb_in(&kb, n->iou), NULL);
  kb_check(&kb, kb_and(&kb, e_le(&kb, e_num(&kb, 0), t), e_le(&kb, t, e_num(&kb, 1))), INVALID_ARGUMENT, "iou_threshold must be in [0, 1]",
           NO_EXPR, NO_EXPR);
  return guard_finish(&kb);
}

static status combined_sizes(struct op_call *c, struct combined *n) {
  struct dim_table *t = op_dims(c);
  dim limit, total;
  TRY(op_bound_dims(c, n->per_class, 1, &limit));
  TRY(op_bound_dims(c, n->total, 1, &total));
  n->each = dim_min(t, limit, n->count);
  n->candidates = dim_mul(t, n->each, n->classes);
  n->length = node_attr_int(c->node, "pad_per_class", 0) ? dim_min(t, total, dim_mul(t, limit, n->classes)) : total;
  return OK;
}

struct combined_buffers {
  uint32_t boxes, scores, chosen;   /* per class: which are chosen */
  struct score_queue waiting, best; /* boxes of a class, candidates of an image */
  uint32_t score, class_of, box_of; /* candidates of an image */
  uint32_t out_boxes, out_scores, out_classes, out_number;
};

static void load_box(struct kb *kb, uint32_t boxes, expr_id image, expr_id box, expr_id set, struct element out[4]) {
  for (int i = 0; i < 4; i++) {
    expr_id at[4] = {image, box, set, kb_int(kb, i)};
    out[i] = kb_load(kb, boxes, at);
  }
}

/* Greedy choice for one class of one image; the count of the image's candidates goes up by those that were chosen. */
static void suppress_class(struct kb *kb, const struct combined *n, struct combined_buffers *u, expr_id image, expr_id class,
                           struct element iou, struct element least, uint32_t found) {
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0), set = kb_lt(kb, one, kb_dim(kb, n->sets)), each = kb_dim(kb, n->each);
  set = kb_select(kb, set, class, zero);
  u->waiting.at[0] = image;
  u->waiting.at[2] = class;
  queue_start(kb, &u->waiting);
  expr_id i = kb_for_dim(kb, LOOP_SEQ, n->count), at[3] = {image, i, class};
  kb_if(kb, e_lt(kb, least, kb_load(kb, u->scores, at)));
  queue_add(kb, &u->waiting, i);
  kb_close(kb, 2);
  uint32_t taken = kb_local(kb, zero);
  kb_while(kb, kb_and(kb, kb_lt(kb, zero, kb_get(kb, u->waiting.length)), kb_lt(kb, kb_get(kb, taken), each)));
  expr_id candidate = at[1] = queue_best(kb, &u->waiting);
  queue_drop_best(kb, &u->waiting);
  uint32_t dropped = kb_local(kb, expr_int(kb->k, DTYPE_BOOL, 0)), j = kb_local(kb, kb_sub(kb, kb_get(kb, taken), one));
  struct element a[4], b[4];
  load_box(kb, u->boxes, image, candidate, set, a);
  for (int k = 0; k < 4; k++)
    a[k] = e_now(kb, a[k]);
  kb_while(kb, kb_and(kb, kb_not(kb, kb_get(kb, dropped)), kb_le(kb, zero, kb_get(kb, j))));
  expr_id other = kb_now(kb, kb_get(kb, j));
  load_box(kb, u->boxes, image, kb_now(kb, kb_load(kb, u->chosen, &other).re), set, b);
  kb_set(kb, dropped, e_lt(kb, iou, intersection_over_union(kb, a, b)));
  kb_set(kb, j, kb_sub(kb, other, one));
  kb_close(kb, 1);
  kb_if(kb, kb_not(kb, kb_get(kb, dropped)));
  expr_id place = kb_now(kb, kb_get(kb, taken)), slot = kb_add(kb, kb_mul(kb, each, class), place);
  kb_store(kb, u->chosen, &place, real_element(candidate));
  kb_store(kb, u->score, &slot, kb_load(kb, u->scores, at));
  kb_store(kb, u->class_of, &slot, real_element(class));
  kb_store(kb, u->box_of, &slot, real_element(candidate));
  kb_set(kb, taken, kb_add(kb, place, one));
  kb_set(kb, found, kb_add(kb, kb_get(kb, found), one));
  queue_add(kb, &u->best, slot);
  kb_close(kb, 2);
}

/* The next best candidate of an image goes to place `rank` of the result. */
static void take_candidate(struct kb *kb, const struct combined *n, struct combined_buffers *u, expr_id image, expr_id rank) {
  bool clip = node_attr_int(kb->c->node, "clip_boxes", 1);
  expr_id one = kb_int(kb, 1), zero = kb_int(kb, 0), slot = queue_best(kb, &u->best), at[3] = {image, rank, 0};
  queue_drop_best(kb, &u->best);
  expr_id class = kb_now(kb, kb_load(kb, u->class_of, &slot).re), box = kb_load(kb, u->box_of, &slot).re;
  kb_store(kb, u->out_scores, at, kb_load(kb, u->score, &slot));
  kb_store(kb, u->out_classes, at, e_of(kb, DTYPE_FLOAT, class));
  expr_id set = kb_select(kb, kb_lt(kb, one, kb_dim(kb, n->sets)), class, zero);
  struct element corners[4];
  load_box(kb, u->boxes, image, kb_clamp(kb, box, kb_dim(kb, n->count)), kb_clamp(kb, set, kb_dim(kb, n->sets)), corners);
  for (int k = 0; k < 4; k++) {
    at[2] = kb_int(kb, k);
    kb_store(kb, u->out_boxes, at, clip ? e_max(kb, e_min(kb, corners[k], e_num(kb, 1)), e_num(kb, 0)) : corners[k]);
  }
}

static void best_of_all_classes(struct kb *kb, const struct combined *n, struct combined_buffers *u, expr_id image, expr_id found) {
  expr_id number = kb_now(kb, expr_binary(kb->k, SCALAR_MIN, found, kb_dim(kb, n->length)));
  kb_store(kb, u->out_number, &image, e_of(kb, DTYPE_INT32, number));
  expr_id rank = kb_for_dim(kb, LOOP_SEQ, n->length), at[3] = {image, rank, 0};
  kb_if(kb, kb_lt(kb, rank, number));
  take_candidate(kb, n, u, image, rank);
  kb_else(kb);
  kb_store(kb, u->out_scores, at, e_num(kb, 0));
  kb_store(kb, u->out_classes, at, e_num(kb, 0));
  at[2] = kb_for(kb, LOOP_SEQ, kb_int(kb, 4));
  kb_store(kb, u->out_boxes, at, e_num(kb, 0));
  kb_close(kb, 3);
}

/* boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, score_threshold */
status build_combined_non_max_suppression(struct op_call *c) {
  struct combined n;
  TRY(combined_inputs(c, &n));
  TRY(combined_sizes(c, &n));
  struct kb kb;
  kb_begin(&kb, c, DTYPE_FLOAT);
  dim out[3] = {n.batch, n.length, op_dim(c, 4)};
  struct combined_buffers u = {.boxes = kb_in(&kb, n.boxes), .scores = kb_in(&kb, n.scores)};
  struct element iou = kb_load(&kb, kb_in(&kb, n.iou), NULL), least = kb_load(&kb, kb_in(&kb, n.score), NULL);
  u.out_boxes = kb_out(&kb, DTYPE_FLOAT, 3, out);
  u.out_scores = kb_out(&kb, DTYPE_FLOAT, 2, out);
  u.out_classes = kb_out(&kb, DTYPE_FLOAT, 2, out);
  u.out_number = kb_out(&kb, DTYPE_INT32, 1, out);
  u.chosen = kb_scratch(&kb, DTYPE_INT64, 1, &n.count);
  u.score = kb_scratch(&kb, DTYPE_FLOAT, 1, &n.candidates);
  u.class_of = kb_scratch(&kb, DTYPE_INT64, 1, &n.candidates);
  u.box_of = kb_scratch(&kb, DTYPE_INT64, 1, &n.candidates);
  queue_create(&kb, &u.waiting, u.scores, n.count);
  u.waiting.rank = 3;
  u.waiting.dim = 1;
  queue_create(&kb, &u.best, u.score, n.candidates);
  expr_id image = kb_for_dim(&kb, LOOP_SEQ, n.batch);
  queue_start(&kb, &u.best);
  uint32_t found = kb_local(&kb, kb_int(&kb, 0));
  expr_id class = kb_for_dim(&kb, LOOP_SEQ, n.classes);
  suppress_class(&kb, &n, &u, image, class, iou, least, found);
  kb_close(&kb, 1);
  best_of_all_classes(&kb, &n, &u, image, kb_get(&kb, found));
  kb_close(&kb, 1);
  const uint32_t outputs[] = {u.out_boxes, u.out_scores, u.out_classes, u.out_number};
  for (uint32_t k = 0; k < 4; k++)
    op_set_output(c, k, kb_value(&kb, outputs[k]));
  return kb_finish_guarded(&kb);
}
