/* loop_edit.c: see loop_edit.h. */
#include "compiler/loop/loop_edit.h"

#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/loop/loop_rows.h"

/* ---- variables ---- */

static void insert(value_id *items, uint32_t count, uint32_t at, value_id v) {
  memmove(items + at + 1, items + at, sizeof *items * (count - at));
  items[at] = v;
}

/* Each list is one longer: the new one stands at `at`, in front of the rows. */
static value_id add_param(struct flow *region, uint32_t at, struct flow_value like) {
  value_id v = flow_add_value(region, like.dtype, like.rank, like.dims);
  vec_push(&region->params, v);
  insert(region->params.items, region->params.count - 1, at, v);
  for (uint32_t i = at; i < region->params.count; i++)
    region->values.items[region->params.items[i]].index = i;
  return v;
}

value_id loop_add_invariant(struct flow *f, flow_id loop, value_id outer) {
  struct flow_node *n = f->nodes.items[loop];
  struct flow_value like = f->values.items[outer];
  uint32_t at = loop_var_count(n);
  vec_push(&n->inputs, outer);
  insert(n->inputs.items, n->inputs.count - 1, at, outer);
  add_param(n->branches[0], at, like);
  value_id param = add_param(n->branches[1], at, like);
  vec_push(&n->branches[1]->results, param);
  insert(n->branches[1]->results.items, n->branches[1]->results.count - 1, at, param);
  insert(n->outputs.items, n->outputs.count - 1, at, flow_append_output(f, n, loop, like));
  for (uint32_t i = at; i < n->outputs.count; i++)
    f->values.items[n->outputs.items[i]].index = i;
  return param;
}

value_id loop_copy_constant(struct flow *to, const struct flow *from, value_id v) {
  const struct flow_value like = from->values.items[v];
  flow_id id;
  struct flow_node *n = flow_append(to, FLOW_CONST, from->nodes.items[like.producer], from->nodes.items[like.producer]->task, &id);
  value_id copy = flow_append_output(to, n, id, like);
  to->values.items[copy].data = like.data;
  to->values.items[copy].content = like.content;
  return copy;
}

/* ---- arrays ---- */

value_id loop_add_row_out(struct flow *f, flow_id loop, value_id v, dim turns) {
  struct flow_node *n = f->nodes.items[loop];
  struct flow *body = n->branches[1];
  for (uint32_t i = loop_var_count(n); i < n->outputs.count; i++)
    if (body->results.items[i] == v)
      return n->outputs.items[i];
  dim count = n->rows_out ? f->values.items[vec_last(&n->outputs)].dims[0] : turns;
  if (count == NO_DIM)
    count = dim_symbol(f->dims, arena_printf(f->arena, "n%u", dims_symbol_count(f->dims)));
  vec_push(&body->results, v);
  n->rows_out++;
  return flow_append_output(f, n, loop, loop_array_of(body->values.items[v], count));
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

/* The loop's output `from` is the array `to`. */
static bool is_handed_on(struct flow *f, const struct flow_node *n, uint32_t row, value_id *from, value_id *to) {
  const struct flow *body = n->branches[1];
  const struct flow_value *x = &body->values.items[body->results.items[row]];
  flow_id user;
  if (x->producer || x->index < loop_var_count(n))
    return false;
  *from = n->outputs.items[row];
  *to = n->inputs.items[x->index];
  return dim_equal(f->dims, f->values.items[*from].dims[0], f->values.items[*to].dims[0]) == 1 && flow_use_count(f, *from, &user);
}
bool loops_hand_rows_on(const struct build *b, struct flow *f) {
  (void)b;
  bool any = false;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    value_id from, to;
    for (uint32_t i = n && n->op == FLOW_WHILE && loop_is_regular(n) ? loop_var_count(n) : UINT32_MAX; n && i < n->outputs.count; i++) {
      if (!is_handed_on(f, n, i, &from, &to))
        continue;
      flow_replace_uses(f, from, to);
      any = true;
    }
  }
  return any;
}
