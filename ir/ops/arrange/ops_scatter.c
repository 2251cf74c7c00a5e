/* ops_scatter.c: updates put at indices, into zeros (ScatterNd), copies (TensorScatter*) or variables (Scatter*, ScatterNd*).
 *
 * The updates are taken one after the other, so that repeated indices give the same result every time; the places of one
 * update's row are independent. */
#include <string.h>

#include "ir/ops/arrange.h"

struct scatter {
  enum combine how;
  value_id indices, updates;
  int batch;      /* dimensions of indices that number updates */
  int depth;      /* places of the target that an index gives */
  bool is_nd;     /* the last dimension of indices holds the places; else an index is one row */
  bool is_scalar; /* one update for all places */
  enum bad_index bad;
  int rank;
  dim dims[LIMIT_RANK]; /* of the target */
};

static expr_id update_number(struct kb *kb, const struct scatter *s, const expr_id *at) {
  expr_id flat = kb_int(kb, 0);
  for (int d = 0; d < s->batch; d++)
    flat = kb_add(kb, kb_mul(kb, flat, kb_dim(kb, op_value(kb->c, s->indices)->dims[d])), at[d]);
  return flat;
}

/* Loads the places of the update at `at` into locals, since the loops over its row are inside. */
static expr_id load_places(struct kb *kb, const struct scatter *s, uint32_t indices, const expr_id *at, expr_id *places) {
  expr_id from[LIMIT_RANK + 1], inside = expr_int(kb->k, DTYPE_BOOL, 1);
  memcpy(from, at, sizeof *at * (size_t)s->batch);
  for (int d = 0; d < s->depth; d++) {
    from[s->batch] = kb_int(kb, d);
    places[d] = kb_get(kb, kb_local(kb, kb_index(kb, kb_load(kb, indices, from))));
    inside = kb_and(kb, inside, kb_in_range(kb, places[d], kb_dim(kb, s->dims[d])));
  }
  return inside;
}

static void check_places(struct kb *kb, const struct scatter *s, const expr_id *at, const expr_id *places, expr_id inside) {
  struct op_call *c = kb->c;
  expr_id number = update_number(kb, s, at);
  if (s->is_nd)
    kb_check(kb, inside, INVALID_ARGUMENT,
             arena_printf(op_arena(c), "indices[%%d] does not index into shape %s", op_shape_text(c, s->rank, s->dims)), number, NO_EXPR);
  else
    kb_check_index(kb, inside, "indices[%d] = %d is not in [0, %d)", number, places[0], kb_dim(kb, s->dims[0]));
}

static void store_updates(struct kb *kb, const struct scatter *s, uint32_t out) {
  uint32_t indices = kb_in(kb, s->indices), updates = kb_in(kb, s->updates);
  expr_id at[2 * LIMIT_RANK], places[LIMIT_RANK];
  int inner = s->rank - s->depth;
  kb_loops(kb, LOOP_SEQ, s->batch, op_value(kb->c, s->indices)->dims, at);
  expr_id inside = load_places(kb, s, indices, at, places);
  if (s->bad == BAD_INDEX_FAILS)
    check_places(kb, s, at, places, inside);
  else
    kb_if(kb, inside);
  kb_loops(kb, LOOP_PAR, inner, s->dims + s->depth, at + s->batch);
  memcpy(places + s->depth, at + s->batch, sizeof *at * (size_t)inner);
  struct element update = kb_load(kb, updates, at);
  bool replaces = s->how == COMBINE_SET;
  kb_store(kb, out, places, replaces ? update : kb_combine(kb, s->how, kb_load(kb, out, places), update));
  kb_close(kb, s->batch + inner + (s->bad == BAD_INDEX_IS_DROPPED));
}

/* ---- checks ---- */

static status check_updates(struct op_call *c, struct scatter *s) {
  struct flow_value i = *op_value(c, s->indices), u = *op_value(c, s->updates);
  s->is_scalar = !s->is_nd && u.rank == 0 && s->batch + s->rank - s->depth > 0;
  if (s->is_scalar)
    return OK;
  bool fits = u.rank == s->batch + s->rank - s->depth;
  for (int d = 0; d < u.rank && fits; d++)
    fits = dim_equal(op_dims(c), u.dims[d], d < s->batch ? i.dims[d] : s->dims[d - s->batch + s->depth]) != 0;
  if (!fits)
    return fail(INVALID_ARGUMENT,
                "Must have updates.shape = indices.shape%s + params.shape[%d:], got updates.shape: %s, indices.shape: %s, params.shape: %s",
                s->is_nd ? "[:-1]" : "", s->depth, op_shape_text(c, u.rank, u.dims), op_shape_text(c, i.rank, i.dims),
                op_shape_text(c, s->rank, s->dims));
  for (int d = 0; d < u.rank; d++)
    TRY(op_equal_dims(c, u.dims[d], d < s->batch ? i.dims[d] : s->dims[d - s->batch + s->depth], "updates and target"));
  return OK;
}

/* After how, dims and inputs are set. */
static status scatter_depth(struct op_call *c, struct scatter *s) {
  struct flow_value i = *op_value(c, s->indices);
  enum dtype dtype = op_value(c, s->updates)->dtype;
  if (dtype == DTYPE_STRING && s->how != COMBINE_SET)
    return fail(UNIMPLEMENTED, "a scatter of strings that does not replace them");
  TRY(op_bad_index(c, &s->bad));
  s->batch = i.rank - s->is_nd;
  s->depth = 1;
  if (s->is_nd && i.rank < 1)
    return fail(INVALID_ARGUMENT, "indices must be at least a vector");
  if (s->is_nd) {
    int64_t depth;
    TRY(op_const_size(c, i.dims[i.rank - 1], "the last dimension of indices", &depth));
    if (depth > s->rank)
      return fail(INVALID_ARGUMENT, "The inner %lld dimensions of indices do not index into shape %s", (long long)depth,
                  op_shape_text(c, s->rank, s->dims));
    s->depth = (int)depth;
  }
  if (s->rank < s->depth)
    return fail(INVALID_ARGUMENT, "params must be at least 1-D, got shape []");
  return check_updates(c, s);
}

/* ---- new tensors ---- */

/* What TensorFlow refuses in these, though not in a variable. */
static status check_new(struct op_call *c, const struct scatter *s) {
  struct flow_value u = *op_value(c, s->updates);
  if (u.rank == 0)
    return fail(INVALID_ARGUMENT, "Updates shape must have rank at least one. Found:[]");
  if (s->depth && !s->batch)
    return fail(INVALID_ARGUMENT, "indices of one dimension stand for rows of one index: updates.shape %s does not fit",
                op_shape_text(c, u.rank, u.dims));
  if (s->depth)
    return OK;
  struct kb guard;
  guard_begin(&guard, c);
  kb_check(&guard, kb_eq(&guard, kb_dim(&guard, op_count(c, u.rank, u.dims)), kb_int(&guard, 0)), INVALID_ARGUMENT,
           "Indices and updates specified for empty output shape", NO_EXPR, NO_EXPR);
  return guard_finish(&guard);
}

status build_scatter_nd(struct op_call *c) {
  struct scatter s = {.how = COMBINE_ADD, .is_nd = true};
  value_id shape;
  TRY(op_input(c, 0, &s.indices));
  TRY(op_input(c, 1, &s.updates));
  TRY(op_input(c, 2, &shape));
  TRY(op_shape_dims(c, shape, "shape", &s.rank, s.dims));
  TRY(scatter_depth(c, &s));
  TRY(check_new(c, &s));
  enum dtype dtype = op_value(c, s.updates)->dtype;
  struct kb kb;
  kb_begin(&kb, c, dtype);
  uint32_t out = kb_out(&kb, dtype, s.rank, s.dims);
  kb_fill(&kb, out, s.rank, s.dims, kb_zero(&kb, dtype));
  store_updates(&kb, &s, out);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

status build_tensor_scatter(struct op_call *c) {
  struct scatter s = {.how = OP_ROW(c, combine_row)->how, .is_nd = true};
  value_id v;
  TRY(op_input(c, 0, &v));
  TRY(op_input(c, 1, &s.indices));
  TRY(op_input(c, 2, &s.updates));
  struct flow_value x = *op_value(c, v);
  s.rank = x.rank;
  memcpy(s.dims, x.dims, sizeof x.dims);
  TRY(scatter_depth(c, &s));
  TRY(check_new(c, &s));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, s.rank, s.dims);
  expr_id at[LIMIT_RANK];
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  kb_store(&kb, out, at, kb_load(&kb, in, at));
  kb_close(&kb, x.rank);
  store_updates(&kb, &s, out);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}

/* ---- variables ---- */

static status scatter_into_variable(struct op_call *c, bool is_nd) {
  struct scatter s = {.how = OP_ROW(c, combine_row)->how, .is_nd = is_nd};
  uint32_t var;
  TRY(op_input_var(c, 0, &var));
  TRY(op_input(c, 1, &s.indices));
  TRY(op_input(c, 2, &s.updates));
  TRY(op_updated_dims(c, 0, var, &s.rank, s.dims));
  TRY(scatter_depth(c, &s));
  struct kb kb;
  kb_begin(&kb, c, op_value(c, s.updates)->dtype);
  uint32_t out = kb_var(&kb, var, BUFFER_INOUT, s.rank, s.dims);
  store_updates(&kb, &s, out);
  TRY(kb_finish(&kb));
  op_set_ref_output(c, var);
  return OK;
}
status build_scatter(struct op_call *c) { return scatter_into_variable(c, false); }
status build_scatter_nd_var(struct op_call *c) { return scatter_into_variable(c, true); }
