/* loop_rows.c: see loop_rows.h. */
#include "compiler/loop/loop_rows.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/pass/pass.h"

/* ---- sizes ---- */

static void note_symbol(void *self, uint32_t symbol) { ((bool *)self)[symbol] = true; }

/* A node that binds a size of what is there in front of the loop does no more than look whether it is so. */
static void unmark_outside(struct flow *f, const struct flow_node *loop, bool *inside) {
  bool *outside = calloc(dims_symbol_count(f->dims) + 1, 1);
  for (uint32_t i = 0; i < loop->inputs.count; i++) {
    const struct flow_value *x = &f->values.items[loop->inputs.items[i]];
    for (int d = 0; d < x->rank; d++)
      dim_symbols(f->dims, dim_resolve(f->dims, x->dims[d]), outside);
  }
  for (uint32_t i = 0; i < dims_symbol_count(f->dims); i++)
    inside[i] = inside[i] && !outside[i];
  free(outside);
}
/* inside[symbol]: it has its value in a turn of the loop only. */
static void mark_inside(struct flow *f, const struct flow_node *loop, bool *inside) {
  const struct flow *body = loop->branches[1];
  for (flow_id id = 1; id < body->nodes.count; id++)
    if (body->nodes.items[id])
      flow_node_binds(body, body->nodes.items[id], note_symbol, inside);
  for (uint32_t i = 0; i < loop_var_count(loop); i++) {
    const struct flow_value *x = &f->values.items[loop->inputs.items[i]], *y = &body->values.items[body->params.items[i]];
    for (int d = 0; d < y->rank; d++)
      if (d >= x->rank || dim_equal(f->dims, x->dims[d], y->dims[d]) != 1)
        dim_symbols(f->dims, dim_resolve(f->dims, y->dims[d]), inside);
  }
  unmark_outside(f, loop, inside);
}

static bool mentions(struct flow *f, dim d, const bool *symbols) {
  bool *of = calloc(dims_symbol_count(f->dims) + 1, 1), found = false;
  dim_symbols(f->dims, dim_resolve(f->dims, d), of);
  for (uint32_t i = 0; i < dims_symbol_count(f->dims); i++)
    found = found || (of[i] && symbols[i]);
  free(of);
  return found;
}

bool loop_dims_last(struct flow *f, const struct flow_node *loop, const dim *dims, uint32_t count) {
  if (!count)
    return true;
  bool *inside = calloc(dims_symbol_count(f->dims) + 1, 1), last = true;
  mark_inside(f, loop, inside);
  for (uint32_t d = 0; d < count && last; d++)
    last = !mentions(f, dims[d], inside);
  free(inside);
  return last;
}
bool loop_sizes_last(struct flow *f, const struct flow_node *loop, const struct flow_value *x) {
  return !x->any_rank && loop_dims_last(f, loop, x->dims, (uint32_t)x->rank);
}

/* ---- types ---- */

bool loop_rows_may_be(enum dtype dtype) { return dtype != DTYPE_STRING && dtype != DTYPE_RESOURCE && dtype != DTYPE_VARIANT; }

struct flow_value loop_array_of(struct flow_value row, dim count) {
  memmove(row.dims + 1, row.dims, sizeof *row.dims * (size_t)row.rank);
  row.dims[0] = count;
  row.rank++;
  return row;
}
bool values_are_alike(struct flow *f, const struct flow_value *a, const struct flow_value *b) {
  bool alike = a->dtype == b->dtype && a->rank == b->rank && !a->any_rank && !b->any_rank;
  for (int d = 0; alike && d < a->rank; d++)
    alike = dim_equal(f->dims, a->dims[d], b->dims[d]) == 1;
  return alike;
}

/* ---- which row ---- */

const struct flow_value *loop_row_saved(const struct flow *f, const struct flow_node *n, value_id v, const struct flow_node **by) {
  const struct flow_value *row = &n->branches[1]->values.items[v];
  if (row->producer || row->index < loop_var_count(n))
    return NULL;
  const struct flow_value *array = &f->values.items[n->inputs.items[row->index]];
  const struct flow_node *first = f->nodes.items[array->producer];
  *by = first;
  return first && first->op == FLOW_WHILE && array->index >= loop_var_count(first)
         ? &first->branches[1]->values.items[first->branches[1]->results.items[array->index]]
         : NULL;
}
bool loop_row_number(const struct flow *f, const struct flow_node *n, value_id v, bool *from_last) {
  uint32_t var = loop_var_of(n, v);
  if (var != UINT32_MAX) {
    *from_last = false;
    return loop_counts(f, n, var);
  }
  /* or a row of what a loop in front of this one counted */
  const struct flow_node *first;
  const struct flow_value *saved = loop_row_saved(f, n, v, &first);
  *from_last = n->from_last;
  return saved && !first->from_last && !saved->producer && saved->index < loop_var_count(first) && loop_counts(f, first, saved->index);
}

bool loop_may_face(const struct flow_node *n, bool from_last) { return n->rows_in + n->rows_out == 0 || n->from_last == from_last; }

/* ---- values of the body ---- */

bool loop_is_variable_memory(const struct flow *f, value_id v) {
  const struct flow_node *n = f->nodes.items[f->values.items[v].producer];
  while (n && n->op == FLOW_ALIAS)
    n = f->nodes.items[f->values.items[n->inputs.items[0]].producer];
  return n && n->op == FLOW_READ;
}

bool loop_may_be_row(struct flow *f, const struct flow_node *loop, value_id v) {
  const struct flow *body = loop->branches[1];
  const struct flow_value *x = &body->values.items[v];
  const struct flow_node *maker = body->nodes.items[x->producer];
  return loop_rows_may_be(x->dtype) && x->rank < LIMIT_RANK && loop_sizes_last(f, loop, x) && !(x->producer && maker->guard_count) &&
         !loop_is_variable_memory(body, v);
}
