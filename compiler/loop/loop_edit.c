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

/* The array whose rows the loop only hands on as those of output i; NO_VALUE: there is none. */
static value_id array_handed_on(struct flow *f, const struct flow_node *n, uint32_t i) {
  const struct flow_value *row = &n->branches[1]->values.items[n->branches[1]->results.items[i]];
  if (row->producer || row->index < loop_var_count(n))
    return NO_VALUE;
  value_id array = n->inputs.items[row->index];
  return values_are_alike(f, &f->values.items[array], &f->values.items[n->outputs.items[i]]) ? array : NO_VALUE;
}
bool loops_hand_rows_on(const struct build *b, struct flow *f) {
  (void)b;
  bool any = false;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (!n || n->op != FLOW_WHILE || !loop_is_regular(n))
      continue;
    for (uint32_t i = loop_var_count(n); i < n->outputs.count; i++) {
      flow_id user;
      value_id array = array_handed_on(f, n, i);
      if (!array || !flow_use_count(f, n->outputs.items[i], &user))
        continue;
      flow_replace_uses(f, n->outputs.items[i], array);
      any = true;
    }
  }
  return any;
}
