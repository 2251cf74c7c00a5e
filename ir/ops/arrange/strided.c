/* strided.c: what begin, end, strides and the five masks of StridedSlice say about each dimension.
 *
 * First the sparse description (one entry for each index written in x[...]) is spread over the dimensions, as
 * TensorFlow's documentation of StridedSlice defines it; then each dimension's start and length are computed by a kernel of
 * its own, which folds while compiling where begin and end are known, also for symbolic dims. */
#include "ir/ops/arrange.h"

#include <string.h>

#define SPEC_MAX 32 /* masks are 32 bits */

/* One dimension of the sliced value. */
struct range {
  int index; /* into begin, end and strides; -1: the whole dimension */
  bool from_start, to_end, shrunk;
};

struct spread {
  struct op_call *c;
  int64_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask;
  int count, rank;
  struct range ranges[LIMIT_RANK];
  int full;                       /* dimensions described so far */
  int out[SPEC_MAX + LIMIT_RANK]; /* the dimension behind each place of the result; -1: a new axis */
  int out_count;
};

static bool bit(int64_t mask, int i) { return mask >> i & 1; }

static status add_whole(struct spread *s, int upto) {
  for (; s->full < upto; s->full++) {
    s->ranges[s->full] = (struct range){.index = -1};
    s->out[s->out_count++] = s->full;
  }
  return OK;
}

static status add_range(struct spread *s, int i) {
  if (s->full >= s->rank)
    return fail(INVALID_ARGUMENT, "Index out of range using input dim %d; input has only %d dims", s->full, s->rank);
  bool shrunk = bit(s->shrink_mask, i);
  s->ranges[s->full] = (struct range){.index = i, .from_start = bit(s->begin_mask, i), .to_end = bit(s->end_mask, i), .shrunk = shrunk};
  if (!shrunk)
    s->out[s->out_count++] = s->full;
  s->full++;
  return OK;
}

static status spread_spec(struct spread *s) {
  int ellipsis = -1, after = 0; /* new axes after the ellipsis describe no dimension */
  for (int i = 0; i < s->count; i++) {
    if (bit(s->ellipsis_mask, i) && ellipsis >= 0)
      return fail(INVALID_ARGUMENT, "Multiple ellipses in slice spec not allowed");
    if (bit(s->ellipsis_mask, i))
      ellipsis = i;
    else if (ellipsis >= 0 && bit(s->new_axis_mask, i))
      after++;
  }
  for (int i = 0; i < s->count; i++) {
    if (i == ellipsis) {
      int upto = s->rank - (s->count - i - 1) + after;
      TRY(add_whole(s, upto < s->rank ? upto : s->rank));
    } else if (bit(s->new_axis_mask, i)) {
      s->out[s->out_count++] = -1;
    } else {
      TRY(add_range(s, i));
    }
  }
  if (ellipsis < 0)
    TRY(add_whole(s, s->rank));
  if (s->full < s->rank)
    return fail(INVALID_ARGUMENT, "the slice describes %d of %d dimensions", s->full, s->rank);
  return s->out_count > LIMIT_RANK ? fail(UNIMPLEMENTED, "a slice of rank %d", s->out_count) : OK;
}

/* ---- one dimension ---- */

static expr_id from_end(struct kb *kb, expr_id x, expr_id n) { return kb_select(kb, kb_lt(kb, x, kb_int(kb, 0)), kb_add(kb, x, n), x); }
static expr_id clamped(struct kb *kb, expr_id x, expr_id low, expr_id high) {
  return expr_binary(kb->k, SCALAR_MIN, expr_binary(kb->k, SCALAR_MAX, x, low), high);
}

/* Where a bound lies: masked at the first (or beyond the last) place in the direction of the stride, else within
 * [0, n], or [-1, n-1] when going down. */
static expr_id place_towards(struct kb *kb, value_id bounds, const struct range *r, bool masked, bool is_end, bool down, expr_id n) {
  expr_id low = kb_int(kb, down ? -1 : 0), high = down ? kb_sub(kb, n, kb_int(kb, 1)) : n;
  if (masked)
    return is_end != down ? high : low;
  return clamped(kb, from_end(kb, kb_element(kb, bounds, r->index), n), low, high);
}

/* The same for a stride of which only the step knows whether it goes down. */
static expr_id bound_place(struct kb *kb, value_id bounds, const struct range *r, bool masked, bool is_end, expr_id stride, expr_id n) {
  return kb_select(kb, kb_lt(kb, stride, kb_int(kb, 0)), place_towards(kb, bounds, r, masked, is_end, true, n),
                   place_towards(kb, bounds, r, masked, is_end, false, n));
}

static expr_id range_length(struct kb *kb, expr_id begin, expr_id end, expr_id stride) {
  expr_id zero = kb_int(kb, 0), down = kb_lt(kb, stride, zero);
  expr_id step = expr_binary(kb->k, SCALAR_MAX, kb_select(kb, down, kb_sub(kb, zero, stride), stride), kb_int(kb, 1));
  expr_id span = kb_select(kb, down, kb_sub(kb, begin, end), kb_sub(kb, end, begin));
  expr_id count = kb_div(kb, kb_add(kb, span, kb_sub(kb, step, kb_int(kb, 1))), step);
  return expr_binary(kb->k, SCALAR_MAX, count, zero);
}

/* A kernel with two results: start and length. `known`: the stride, or 0. */
static status resolve_range(struct op_call *c, const value_id *spec, const struct range *r, dim n, int64_t known, value_id *start,
                            dim *length) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  uint32_t out_start = kb_out(&kb, DTYPE_INT64, 0, NULL), out_length = kb_out(&kb, DTYPE_INT64, 0, NULL);
  expr_id size = kb_dim(&kb, n), begin, count = kb_int(&kb, 1);
  if (r->shrunk) {
    begin = from_end(&kb, kb_element(&kb, spec[0], r->index), size);
  } else {
    expr_id stride = known ? kb_int(&kb, known) : kb_element(&kb, spec[2], r->index);
    begin = bound_place(&kb, spec[0], r, r->from_start, false, stride, size);
    count = range_length(&kb, begin, bound_place(&kb, spec[1], r, r->to_end, true, stride, size), stride);
  }
  kb_store(&kb, out_start, NULL, real_element(begin));
  kb_store(&kb, out_length, NULL, real_element(count));
  *start = kb_value(&kb, out_start);
  value_id v = kb_value(&kb, out_length);
  TRY(kb_finish_guarded(&kb));
  if (r->shrunk) {
    *length = op_dim(c, 1);
    return OK;
  }
  return op_bound_dims(c, v, 1, length);
}

static status check_shrunk(struct spread *s, const value_id *spec, const dim *dims) {
  struct kb guard;
  guard_begin(&guard, s->c);
  for (int d = 0; d < s->rank; d++) {
    const struct range *r = &s->ranges[d];
    if (!r->shrunk || r->index < 0)
      continue;
    expr_id n = kb_dim(&guard, dims[d]), at = kb_element(&guard, spec[0], r->index);
    kb_check(&guard, kb_in_range(&guard, from_end(&guard, at, n), n), INVALID_ARGUMENT, "slice index %d of dimension %d out of bounds.", at,
             kb_int(&guard, d));
  }
  return guard_finish(&guard);
}

/* A stride that the step computes is checked there. */
static status check_stride(struct spread *s, value_id strides, const struct range *r) {
  struct kb guard;
  guard_begin(&guard, s->c);
  expr_id stride = kb_element(&guard, strides, r->index), zero = kb_int(&guard, 0);
  kb_check(&guard, expr_binary(guard.k, SCALAR_NE, stride, zero), INVALID_ARGUMENT, "strides[%d] must be non-zero",
           kb_int(&guard, r->index), NO_EXPR);
  if (r->shrunk)
    kb_check(&guard, kb_lt(&guard, zero, stride), INVALID_ARGUMENT, "only stride 1 allowed on non-range indexing.", NO_EXPR, NO_EXPR);
  return guard_finish(&guard);
}

/* The stride, or 0 where it is not known while compiling. */
static status known_stride(struct spread *s, value_id strides, const struct range *r, int64_t *out) {
  *out = 1;
  if (r->index < 0)
    return OK;
  if (!op_known_int(s->c, strides, r->index, out)) {
    *out = r->shrunk ? 1 : 0;
    return check_stride(s, strides, r);
  }
  if (*out == 0)
    return fail(INVALID_ARGUMENT, "strides[%d] must be non-zero", r->index);
  if (r->shrunk && *out < 0)
    return fail(INVALID_ARGUMENT, "only stride 1 allowed on non-range indexing.");
  return *out < -INT32_MAX || *out > INT32_MAX ? fail(UNIMPLEMENTED, "a stride of %lld", (long long)*out) : OK;
}

static status read_spec(struct op_call *c, uint32_t first, struct spread *s, value_id *spec) {
  for (uint32_t i = 0; i < 3; i++) {
    TRY(op_input(c, first + i, &spec[i]));
    struct flow_value v = *op_value(c, spec[i]);
    if (v.rank != 1)
      return fail(INVALID_ARGUMENT, "Expected begin, end, and strides to be 1D tensors, but got shape %s",
                  op_shape_text(c, v.rank, v.dims));
    int64_t n;
    TRY(op_const_size(c, v.dims[0], "the number of indices of a slice", &n));
    if (n > SPEC_MAX)
      return fail(INVALID_ARGUMENT, "a slice whose number of indices is too large");
    if (i && n != s->count)
      return fail(INVALID_ARGUMENT, "Expected begin, end, and strides to be 1D equal size tensors");
    s->count = (int)n;
  }
  return OK;
}

status op_strided(struct op_call *c, uint32_t first, int rank, const dim *dims, struct sliced *out) {
  struct spread s = {.c = c,
                     .rank = rank,
                     .begin_mask = node_attr_int(c->node, "begin_mask", 0),
                     .end_mask = node_attr_int(c->node, "end_mask", 0),
                     .ellipsis_mask = node_attr_int(c->node, "ellipsis_mask", 0),
                     .new_axis_mask = node_attr_int(c->node, "new_axis_mask", 0),
                     .shrink_mask = node_attr_int(c->node, "shrink_axis_mask", 0)};
  value_id spec[3];
  TRY(read_spec(c, first, &s, spec));
  TRY(spread_spec(&s));
  TRY(check_shrunk(&s, spec, dims));
  *out = (struct sliced){.rank = rank, .out_rank = s.out_count, .strides = spec[2]};
  for (int d = 0; d < rank; d++) {
    const struct range *r = &s.ranges[d];
    TRY(known_stride(&s, spec[2], r, &out->stride[d]));
    out->stride_at[d] = r->index;
    out->lengths[d] = dims[d];
    out->axis[d] = -1;
    bool whole = r->index < 0 || (!r->shrunk && r->from_start && r->to_end && out->stride[d] == 1);
    if (!whole)
      TRY(resolve_range(c, spec, r, dims[d], out->stride[d], &out->start[d], &out->lengths[d]));
  }
  for (int i = 0; i < s.out_count; i++) {
    out->out_dims[i] = s.out[i] < 0 ? op_dim(c, 1) : out->lengths[s.out[i]];
    if (s.out[i] >= 0)
      out->axis[s.out[i]] = i;
  }
  return OK;
}

void kb_sliced_index(struct kb *kb, const struct sliced *s, const expr_id *at, expr_id *index) {
  for (int d = 0; d < s->rank; d++) {
    expr_id moved = kb_int(kb, 0);
    if (s->axis[d] >= 0)
      moved = kb_mul(kb, at[s->axis[d]], s->stride[d] ? kb_int(kb, s->stride[d]) : kb_element(kb, s->strides, s->stride_at[d]));
    index[d] = s->start[d] ? kb_add(kb, moved, kb_element(kb, s->start[d], 0)) : moved;
  }
}
