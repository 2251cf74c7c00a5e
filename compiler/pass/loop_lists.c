/* loop_lists.c: tensor lists of which each turn of a loop takes or sets the next element, as recurrent layers and map_fn do.
 *
 * What a list was made of, and what is made of it behind the loop, are arrays with a row for each element. Where the number of turns is
 * that of the elements, the body takes the rows of the one and makes those of the other, and nobody needs the list. Gradients do the same:
 * they take the elements of a list that they empty on the way, and add lists of one element each, which are zeros elsewhere. A list of
 * one element (a recurrent layer's last output) is its element. */
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/edit/loop_form.h"
#include "compiler/edit/loop_rows.h"
#include "compiler/pass/loops.h"

/* A variable of a loop that is a list. */
struct list_var {
  struct flow *flow;
  flow_id loop;
  uint32_t var;
};
static struct flow_node *loop_of(const struct list_var *x) { return x->flow->nodes.items[x->loop]; }
static struct flow *body_of(const struct list_var *x) { return loop_of(x)->branches[1]; }
static value_id param_of(const struct list_var *x) { return body_of(x)->params.items[x->var]; }
static value_id result_of(const struct list_var *x) { return body_of(x)->results.items[x->var]; }

static bool is_host(const struct flow_node *n, const char *name) {
  return n && n->op == FLOW_HOST && !n->guard_count && strcmp(n->host, name) == 0;
}
/* What makes the value, if it is a call of that name; else NULL. */
static const struct flow_node *made_by(const struct flow *f, value_id v, const char *name) {
  const struct flow_node *n = f->nodes.items[f->values.items[v].producer];
  return is_host(n, name) ? n : NULL;
}

/* ---- shapes ---- */

static bool same_dims(struct flow *f, const dim *a, const dim *b, int count) {
  for (int d = 0; d < count; d++)
    if (dim_equal(f->dims, a[d], b[d]) != 1)
      return false;
  return true;
}
/* Whether the array, of so many elements, has rows like x. */
static bool has_rows_like(struct flow *f, const struct flow_value *array, dim count, const struct flow_value *x) {
  return array->dtype == x->dtype && loop_rows_may_be(x->dtype) && !array->any_rank && !x->any_rank && array->rank == x->rank + 1 &&
         dim_equal(f->dims, array->dims[0], count) == 1 && same_dims(f, array->dims + 1, x->dims, x->rank);
}
/* Whether elements with these dims fit the shape that a list is made with: -1 for a size that may be any, a scalar for all. */
static bool shape_allows(struct flow *f, value_id shape, int rank, const dim *dims) {
  const struct flow_value *said = &f->values.items[shape];
  const int32_t *sizes = said->data;
  int64_t length;
  if (!sizes || said->dtype != DTYPE_INT32)
    return false;
  bool fits = said->rank == 0 ? sizes[0] == -1 : dim_is_const(f->dims, said->dims[0], &length) && length == rank;
  for (int d = 0; fits && said->rank && d < rank; d++)
    fits = sizes[d] == -1 || dim_equal(f->dims, dim_const(f->dims, sizes[d]), dims[d]) == 1;
  return fits;
}

/* ---- taking ---- */

/* The array whose rows are the list's elements. */
static value_id rows_of_list(struct flow *f, value_id list) {
  const struct flow_node *n = made_by(f, list, "TensorListFromTensor");
  const struct flow_value *x = n ? &f->values.items[n->inputs.items[0]] : NULL;
  return x && x->rank > 0 && shape_allows(f, n->inputs.items[1], x->rank - 1, x->dims + 1) ? n->inputs.items[0] : NO_VALUE;
}
/* The call that sets an element of the variable and gives its next value; NULL: there is none, or the list may grow. */
static const struct flow_node *setter_of(const struct list_var *x) {
  const struct flow_node *n = made_by(body_of(x), result_of(x), "TensorListSetItem");
  return n && n->inputs.items[0] == param_of(x) ? n : NULL;
}
/* Whether turns that begin at this end find the element that each takes as it was in front of the loop. */
static bool leaves_others(const struct list_var *x, bool from_last) {
  const struct flow_node *set = setter_of(x);
  bool sets_last;
  return loop_hands_on(loop_of(x), x->var) ||
         (set && loop_row_number(x->flow, loop_of(x), set->inputs.items[1], &sets_last) && sets_last == from_last);
}
/* The call takes element after element of a list that was made of an array: its rows. */
static bool take_row(struct flow *f, flow_id loop, struct flow_node *get, dim turns) {
  struct flow_node *n = f->nodes.items[loop];
  struct list_var x = {f, loop, loop_var_of(n, get->inputs.items[0])};
  bool from_last;
  if (x.var == UINT32_MAX || !loop_row_number(f, n, get->inputs.items[1], &from_last) || !leaves_others(&x, from_last) ||
      !loop_may_face(n, from_last))
    return false;
  value_id array = rows_of_list(f, n->inputs.items[x.var]);
  if (!array || !has_rows_like(f, &f->values.items[array], turns, &body_of(&x)->values.items[get->outputs.items[0]]))
    return false;
  n->from_last = from_last;
  flow_replace_uses(body_of(&x), get->outputs.items[0], loop_add_row_in(f, loop, array));
  node_make_noop(get);
  return true;
}
static bool take_rows(struct flow *f, flow_id loop, dim turns) {
  const struct flow *body = f->nodes.items[loop]->branches[1];
  bool any = false;
  for (flow_id id = 1; id < body->nodes.count; id++)
    if (is_host(body->nodes.items[id], "TensorListGetItem"))
      any |= take_row(f, loop, body->nodes.items[id], turns);
  return any;
}

/* ---- setting ---- */

/* Whether nobody else in the body takes the value. */
static bool is_used_once(const struct flow *body, value_id v) {
  flow_id user;
  return flow_use_count(body, v, &user) == 1;
}
static bool sets_row(const struct list_var *x, const struct flow_node *set, bool *from_last) {
  return set && loop_row_number(x->flow, loop_of(x), set->inputs.items[1], from_last);
}
/* The call that sets the element of the turn, in the variable itself. */
static const struct flow_node *sets_in_variable(const struct list_var *x, bool *from_last) {
  const struct flow_node *set = setter_of(x);
  return sets_row(x, set, from_last) && is_used_once(body_of(x), param_of(x)) && is_used_once(body_of(x), result_of(x)) ? set : NULL;
}
/* The same in a list of its own, which is added to the variable: of zeros at first, and zeros elsewhere. */
static const struct flow_node *sets_by_adding(const struct list_var *x, bool *from_last) {
  const struct flow *body = body_of(x);
  const struct flow_node *sum = made_by(body, result_of(x), "TensorListAdd");
  if (!sum || sum->inputs.count != 2 || !is_used_once(body, param_of(x)) || !is_used_once(body, result_of(x)) ||
      !made_by(x->flow, loop_of(x)->inputs.items[x->var], "TensorListZerosLike"))
    return NULL;
  int own = sum->inputs.items[0] == param_of(x);
  const struct flow_node *set = made_by(body, sum->inputs.items[own], "TensorListSetItem");
  bool is_ours = set && sum->inputs.items[!own] == param_of(x) && made_by(body, set->inputs.items[0], "TensorListReserve");
  return is_ours && sets_row(x, set, from_last) ? set : NULL;
}
/* Whether a value of the body can be the row of an array in each turn. */
static bool may_be_row(const struct list_var *x, value_id v) {
  const struct flow *body = body_of(x);
  const struct flow_value *like = &body->values.items[v];
  const struct flow_node *maker = body->nodes.items[like->producer];
  return loop_rows_may_be(like->dtype) && like->rank < LIMIT_RANK && loop_sizes_last(x->flow, loop_of(x), like) &&
         !(like->producer && maker->guard_count) && !loop_is_variable_memory(body, v);
}
/* Elements of what the loop's list is before it begins: zeros, or not there. */
static bool begins_like(const struct list_var *x, const struct flow_value *item) {
  value_id first = loop_of(x)->inputs.items[x->var];
  const struct flow_node *made = made_by(x->flow, first, "TensorListReserve");
  return made_by(x->flow, first, "TensorListZerosLike") || (made && shape_allows(x->flow, made->inputs.items[0], item->rank, item->dims));
}
/* What takes the whole list behind the loop takes the array of which the turns make rows. */
static bool give_rows(const struct list_var *x, dim turns) {
  struct flow *f = x->flow;
  bool any = false, from_last;
  value_id list = loop_of(x)->outputs.items[x->var];
  const struct flow_node *set = sets_in_variable(x, &from_last);
  set = set ? set : sets_by_adding(x, &from_last);
  if (!set || loop_condition_takes(loop_of(x), x->var) || !loop_may_face(loop_of(x), from_last) || !may_be_row(x, set->inputs.items[2]) ||
      !begins_like(x, &body_of(x)->values.items[set->inputs.items[2]]))
    return false;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *stack = f->nodes.items[id];
    if (!is_host(stack, "TensorListStack") || stack->inputs.items[0] != list ||
        !has_rows_like(f, &f->values.items[stack->outputs.items[0]], turns, &body_of(x)->values.items[set->inputs.items[2]]))
      continue;
    loop_of(x)->from_last = from_last;
    flow_replace_uses(f, stack->outputs.items[0], loop_add_row_out(f, x->loop, set->inputs.items[2], turns));
    node_make_noop(stack);
    any = true;
  }
  return any;
}

/* ---- lists of one element ---- */

static bool is_first(const struct flow *f, value_id index) {
  const struct flow_value *x = &f->values.items[index];
  return x->data && x->dtype == DTYPE_INT32 && x->rank == 0 && *(const int32_t *)x->data == 0;
}
static bool takes_first(const struct flow *f, const struct flow_node *n, value_id list) {
  return is_host(n, "TensorListGetItem") && n->inputs.items[0] == list && is_first(f, n->inputs.items[1]);
}
/* Whether the body does nothing but take the element and set it. */
static bool is_element(const struct list_var *x, const struct flow_node *set) {
  const struct flow *body = body_of(x);
  if (!set || !is_first(body, set->inputs.items[1]) || !is_used_once(body, result_of(x)) || loop_condition_takes(loop_of(x), x->var))
    return false;
  for (flow_id id = 1; id < body->nodes.count; id++) {
    const struct flow_node *n = body->nodes.items[id];
    if (n && n != set && node_takes(n, param_of(x)) && !takes_first(body, n, param_of(x)))
      return false;
  }
  return true;
}
/* Whether what is done with the list behind the loop can be done with its element. */
static bool is_taken_whole(const struct list_var *x, const struct flow_value *item) {
  struct flow *f = x->flow;
  value_id list = loop_of(x)->outputs.items[x->var];
  for (uint32_t i = 0; i < f->results.count; i++)
    if (f->results.items[i] == list)
      return false;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    const struct flow_node *n = f->nodes.items[id];
    if (n && node_takes(n, list) &&
        !(is_host(n, "TensorListStack") && has_rows_like(f, &f->values.items[n->outputs.items[0]], dim_const(f->dims, 1), item)))
      return false;
  }
  return true;
}
static value_id zeros_like(struct flow *f, const struct flow_node *named, const struct flow_value *like) {
  int64_t bytes = (int64_t)dtype_size(like->dtype), size;
  flow_id id;
  for (int d = 0; d < like->rank; d++) {
    if (!dim_is_const(f->dims, dim_resolve(f->dims, like->dims[d]), &size))
      return NO_VALUE;
    bytes *= size;
  }
  struct flow_value x = {.dtype = like->dtype, .rank = like->rank};
  memcpy(x.dims, like->dims, sizeof x.dims);
  struct flow_node *n = flow_append(f, FLOW_CONST, named, named->task, &id);
  value_id v = flow_append_output(f, n, id, x);
  f->values.items[v].data = memset(arena_alloc(f->arena, (size_t)bytes + 1), 0, (size_t)bytes + 1);
  return v;
}
static value_id alias_of(struct flow *f, const struct flow_node *named, value_id v, struct flow_value like) {
  flow_id id;
  struct flow_node *n = flow_append(f, FLOW_ALIAS, named, named->task, &id);
  n->guards = named->guards;
  n->guard_count = named->guard_count;
  vec_push(&n->inputs, v);
  return flow_append_output(f, n, id, like);
}
/* The element of the list that the loop begins with; NO_VALUE: it is not known. */
static value_id first_element(const struct list_var *x, const struct flow_value *item) {
  struct flow *f = x->flow;
  value_id list = loop_of(x)->inputs.items[x->var], array = rows_of_list(f, list);
  if (!array)
    return begins_like(x, item) ? zeros_like(f, loop_of(x), item) : NO_VALUE;
  return has_rows_like(f, &f->values.items[array], dim_const(f->dims, 1), item) ? alias_of(f, loop_of(x), array, *item) : NO_VALUE;
}
static void become(struct flow_value *v, const struct flow_value *like) {
  v->dtype = like->dtype;
  v->rank = like->rank;
  v->length = NO_DIM;
  memcpy(v->dims, like->dims, sizeof v->dims);
}
static void take_element(const struct list_var *x) {
  struct flow *body = body_of(x);
  for (flow_id id = 1; id < body->nodes.count; id++) {
    struct flow_node *n = body->nodes.items[id];
    if (!n || !takes_first(body, n, param_of(x)))
      continue;
    flow_replace_uses(body, n->outputs.items[0], param_of(x));
    node_make_noop(n);
  }
}
/* The variable is the element itself. */
static bool hold_element(const struct list_var *x) {
  struct flow *f = x->flow;
  struct flow_node *n = loop_of(x);
  const struct flow_node *set = setter_of(x);
  value_id list = n->outputs.items[x->var];
  if (!is_element(x, set) || dim_equal(f->dims, f->values.items[list].length, dim_const(f->dims, 1)) != 1 ||
      !may_be_row(x, set->inputs.items[2]))
    return false;
  value_id item = set->inputs.items[2];
  struct flow_value like = {.dtype = body_of(x)->values.items[item].dtype, .rank = body_of(x)->values.items[item].rank};
  memcpy(like.dims, body_of(x)->values.items[item].dims, sizeof like.dims);
  value_id first = is_taken_whole(x, &like) ? first_element(x, &like) : NO_VALUE;
  if (!first)
    return false;
  n->inputs.items[x->var] = first;
  become(&n->branches[0]->values.items[n->branches[0]->params.items[x->var]], &like);
  become(&body_of(x)->values.items[param_of(x)], &like);
  become(&f->values.items[list], &like);
  body_of(x)->results.items[x->var] = item;
  take_element(x);
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *stack = f->nodes.items[id];
    if (!is_host(stack, "TensorListStack") || stack->inputs.items[0] != list)
      continue;
    flow_replace_uses(f, stack->outputs.items[0], alias_of(f, stack, list, f->values.items[stack->outputs.items[0]]));
    node_make_noop(stack);
  }
  return true;
}

/* ---- all loops ---- */

static bool work_on(struct flow *f, flow_id loop) {
  const struct flow_node *n = f->nodes.items[loop];
  dim turns = loop_turns_known(f, loop);
  bool any = false;
  for (uint32_t i = 0; i < loop_var_count(n); i++) {
    struct list_var x = {f, loop, i};
    bool is_list = f->values.items[n->outputs.items[i]].dtype == DTYPE_VARIANT;
    any |= is_list && !loop_hands_on(n, i) && (hold_element(&x) || (turns != NO_DIM && give_rows(&x, turns)));
  }
  return (turns != NO_DIM && take_rows(f, loop, turns)) || any;
}

bool loops_list_rows(const struct build *b, struct flow *f) {
  (void)b;
  uint32_t count = f->nodes.count;
  bool any = false;
  for (flow_id id = 1; id < count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_WHILE && loop_is_regular(f->nodes.items[id]))
      any |= work_on(f, id);
  if (any)
    flow_sort(f);
  return any;
}
