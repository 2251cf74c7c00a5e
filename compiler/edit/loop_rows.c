/* loop_rows.c: see loop_rows.h. */
#include "compiler/edit/loop_rows.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/loop_form.h"
#include "compiler/pass/pass.h"

/* ---- sizes ---- */

static void note_symbol(void *self, uint32_t symbol) { ((bool *)self)[symbol] = true; }

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
}

static bool mentions(struct flow *f, dim d, const bool *symbols) {
  bool *of = calloc(dims_symbol_count(f->dims) + 1, 1), found = false;
  dim_symbols(f->dims, dim_resolve(f->dims, d), of);
  for (uint32_t i = 0; i < dims_symbol_count(f->dims); i++)
    found = found || (of[i] && symbols[i]);
  free(of);
  return found;
}

bool loop_sizes_last(struct flow *f, const struct flow_node *loop, const struct flow_value *x) {
  bool *inside = calloc(dims_symbol_count(f->dims) + 1, 1), last = !x->any_rank;
  mark_inside(f, loop, inside);
  for (int d = 0; d < x->rank && last; d++)
    last = !mentions(f, x->dims[d], inside);
  free(inside);
  return last;
}

/* ---- which row ---- */

bool loop_rows_may_be(enum dtype dtype) { return dtype != DTYPE_STRING && dtype != DTYPE_RESOURCE && dtype != DTYPE_VARIANT; }

bool loop_row_number(const struct flow *f, const struct flow_node *n, value_id v, bool *from_last) {
  uint32_t var = loop_var_of(n, v);
  if (var != UINT32_MAX) {
    *from_last = false;
    return loop_counts(f, n, var);
  }
  const struct flow_value *row = &n->branches[1]->values.items[v];
  if (row->producer)
    return false;
  /* a row of what a loop in front of this one counted */
  value_id array = n->inputs.items[row->index];
  const struct flow_node *first = f->nodes.items[f->values.items[array].producer];
  bool back;
  *from_last = n->from_last;
  return first && first->op == FLOW_WHILE && f->values.items[array].index >= loop_var_count(first) &&
         loop_row_number(f, first, first->branches[1]->results.items[f->values.items[array].index], &back) && back == first->from_last;
}

bool loop_may_face(const struct flow_node *n, bool from_last) { return n->rows_in + n->rows_out == 0 || n->from_last == from_last; }

/* ---- arrays ---- */

value_id loop_add_row_out(struct flow *f, flow_id loop, value_id v, dim turns) {
  struct flow_node *n = f->nodes.items[loop];
  struct flow *body = n->branches[1];
  for (uint32_t i = loop_var_count(n); i < n->outputs.count; i++)
    if (body->results.items[i] == v)
      return n->outputs.items[i];
  struct flow_value like = body->values.items[v];
  memmove(like.dims + 1, like.dims, sizeof *like.dims * (size_t)like.rank);
  like.rank++;
  like.dims[0] = n->rows_out ? f->values.items[vec_last(&n->outputs)].dims[0] : turns;
  if (like.dims[0] == NO_DIM)
    like.dims[0] = dim_symbol(f->dims, arena_printf(f->arena, "n%u", dims_symbol_count(f->dims)));
  vec_push(&body->results, v);
  n->rows_out++;
  return flow_append_output(f, n, loop, like);
}

value_id loop_add_row_in(struct flow *f, flow_id loop, value_id array) {
  struct flow_node *n = f->nodes.items[loop];
  struct flow *body = n->branches[1];
  for (uint32_t i = loop_var_count(n); i < n->inputs.count; i++)
    if (n->inputs.items[i] == array)
      return body->params.items[i];
  const struct flow_value *like = &f->values.items[array];
  value_id row = flow_add_value(body, like->dtype, like->rank - 1, like->dims + 1);
  body->values.items[row].index = body->params.count;
  vec_push(&body->params, row);
  vec_push(&n->inputs, array);
  n->rows_in++;
  return row;
}

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
