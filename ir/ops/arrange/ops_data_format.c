/* ops_data_format.c: dimension numbers and per-dimension vectors carried from one layout to another. */
#include <string.h>

#include "ir/ops/arrange.h"

/* The two layouts as dimension letters; each is a permutation of the other. */
static status read_formats(struct op_call *c, char *source_names, char *target_names, int *rank) {
  const char *from = node_attr_string(c->node, "src_format", "NHWC"), *to = node_attr_string(c->node, "dst_format", "NCHW");
  size_t n = strlen(from);
  if ((n != 4 && n != 5) || strlen(to) != n)
    return fail(INVALID_ARGUMENT,
                "Source and destination format must be of length 4 or 5 and alike, received src_format = %s, dst_format = %s", from, to);
  for (size_t i = 0; i < n; i++)
    if (!strchr(from, to[i]) || !strchr(to, from[i]) || strchr(to + i + 1, to[i]))
      return fail(INVALID_ARGUMENT, "Destination and source format must determine a permutation, got %s and %s", from, to);
  memcpy(source_names, from, n + 1);
  memcpy(target_names, to, n + 1);
  *rank = (int)n;
  return OK;
}

status build_data_format_dim_map(struct op_call *c) {
  value_id v;
  char from[6], to[6];
  int rank;
  TRY(op_input(c, 0, &v));
  TRY(read_formats(c, from, to, &rank));
  struct flow_value x = *op_value(c, v);
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id at[LIMIT_RANK], mapped = kb_int(&kb, 0);
  kb_loops(&kb, LOOP_PAR, x.rank, x.dims, at);
  expr_id d = kb_mod(&kb, kb_index(&kb, kb_load(&kb, in, at)), kb_int(&kb, rank));
  for (int i = 0; i < rank; i++)
    mapped = kb_select(&kb, kb_eq(&kb, d, kb_int(&kb, i)), kb_int(&kb, strchr(to, from[i]) - to), mapped);
  kb_store(&kb, out, at, real_element(expr_cast(kb.k, x.dtype, mapped)));
  kb_close(&kb, x.rank);
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish(&kb);
}

/* Keeps the spatial dimensions' names; false when they are not all there. */
static bool keep_spatial(char *names, int rank) {
  char *end = names;
  for (const char *p = names; *p; p++)
    if (*p == 'H' || *p == 'W' || (*p == 'D' && rank == 5))
      *end++ = *p;
  *end = 0;
  return end - names == rank - 2;
}

/* The spatial dimensions in both formats; false when one does not name them. */
static bool spatial_formats(const char *from, const char *to, int rank, char *spatial_from, char *spatial_to) {
  strcpy(spatial_from, from);
  strcpy(spatial_to, to);
  return keep_spatial(spatial_from, rank) & keep_spatial(spatial_to, rank);
}

/* A row for each dimension, or for the spatial ones alone, where they have names; of a matrix rows of two. */
static status check_rows(struct op_call *c, const struct flow_value *x, int rank, bool is_named) {
  if (x->rank != 1 && x->rank != 2)
    return fail(INVALID_ARGUMENT, "input must be a vector or 2D tensor, but got shape %s", op_shape_text(c, x->rank, x->dims));
  struct kb guard;
  guard_begin(&guard, c);
  expr_id n = kb_dim(&guard, x->dims[0]), all = kb_int(&guard, rank), spatial = kb_int(&guard, rank - 2);
  kb_check(&guard, kb_or(&guard, kb_eq(&guard, n, all), kb_eq(&guard, n, spatial)), INVALID_ARGUMENT,
           arena_printf(op_arena(c), "input must have %d or %d rows, but has %%d", rank - 2, rank), n, NO_EXPR);
  if (!is_named)
    kb_check(&guard, kb_eq(&guard, n, all), INVALID_ARGUMENT,
             arena_printf(op_arena(c), "Format specifier must contain %sH and W for %dD case", rank == 5 ? "D, " : "", rank - 2), NO_EXPR,
             NO_EXPR);
  if (x->rank == 2)
    kb_check(&guard, kb_eq(&guard, kb_dim(&guard, x->dims[1]), kb_int(&guard, 2)), INVALID_ARGUMENT,
             "Second dimension of 2D input must be of size 2, but is %d", kb_dim(&guard, x->dims[1]), NO_EXPR);
  return guard_finish(&guard);
}

/* Where row i comes from: whether all dimensions have one may be known to the step alone. */
static expr_id source_row(struct kb *kb, const char *from, const char *to, int rank, int i, expr_id is_all) {
  char spatial_from[6], spatial_to[6];
  expr_id all = kb_int(kb, strchr(from, to[i]) - from);
  if (!spatial_formats(from, to, rank, spatial_from, spatial_to) || i >= rank - 2)
    return all;
  return kb_select(kb, is_all, all, kb_int(kb, strchr(spatial_from, spatial_to[i]) - spatial_from));
}

status build_data_format_vec_permute(struct op_call *c) {
  value_id v;
  char from[6] = "", to[6] = "", spatial_from[6], spatial_to[6];
  int rank;
  TRY(op_input(c, 0, &v));
  TRY(read_formats(c, from, to, &rank));
  struct flow_value x = *op_value(c, v);
  TRY(check_rows(c, &x, rank, spatial_formats(from, to, rank, spatial_from, spatial_to)));
  struct kb kb;
  kb_begin(&kb, c, x.dtype);
  uint32_t in = kb_in(&kb, v), out = kb_out(&kb, x.dtype, x.rank, x.dims);
  expr_id n = kb_dim(&kb, x.dims[0]), is_all = kb_eq(&kb, n, kb_int(&kb, rank));
  for (int i = 0; i < rank; i++) {
    bool is_there = i < rank - 2 || op_dim_value(c, x.dims[0]) == rank;
    if (!is_there && op_dim_value(c, x.dims[0]) >= 0)
      continue;
    expr_id target[2] = {kb_int(&kb, i), NO_EXPR}, source[2] = {source_row(&kb, from, to, rank, i, is_all), NO_EXPR};
    if (!is_there)
      kb_if(&kb, is_all);
    target[1] = source[1] = x.rank == 2 ? kb_for_dim(&kb, LOOP_PAR, x.dims[1]) : NO_EXPR;
    kb_store(&kb, out, target, kb_load(&kb, in, source));
    kb_close(&kb, x.rank - 1 + !is_there);
  }
  op_set_output(c, 0, kb_value(&kb, out));
  return kb_finish_guarded(&kb);
}
