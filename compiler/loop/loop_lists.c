/* loop_lists.c: tensor lists of which each turn of a loop takes or sets the next element, as recurrent layers and map_fn do.
 *
 * What a list was made of, and what is made of it behind the loop, are arrays with a row for each element. Where the number of turns is
 * that of the elements, the body takes the rows of the one and makes those of the other, and nobody needs the list. Gradients do the same:
 * they take the elements of a list that they empty on the way, and add lists of one element each, which are zeros elsewhere. A list of
 * one element (a recurrent layer's last output) is its element. */
#include <string.h>

#include "compiler/edit/flow_edit.h"
#include "compiler/loop/loop_edit.h"
#include "compiler/loop/loop_form.h"
#include "compiler/loop/loop_rows.h"
#include "compiler/loop/loops.h"

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

/* What makes the value, if it is a call of that name; else NULL. */
static const struct flow_node *made_by(const struct flow *f, value_id v, const char *name) {
  const struct flow_node *n = f->nodes.items[f->values.items[v].producer];
  return node_is_free_call(n, name) ? n : NULL;
}

/* ---- shapes ---- */

/* Whether the array, of so many elements, has rows like x. */
static bool has_rows_like(struct flow *f, const struct flow_value *array, dim count, const struct flow_value *x) {
  if (!loop_rows_may_be(x->dtype) || x->rank == LIMIT_RANK)
    return false;
  const struct flow_value wanted = loop_array_of(*x, count);
  return values_are_alike(f, array, &wanted);
}
/* The size that a list's shape says for dimension d, of `rank`; NO_DIM: it is not known. */
static dim said_size(struct flow *f, const struct flow_value *said, int d) {
  if (said->content)
    return said->content[d];
  return said->data && said->dtype == DTYPE_INT32 ? dim_const(f->dims, ((const int32_t *)said->data)[d]) : NO_DIM;
}
/* Whether elements with these dims fit the shape that a list, or what takes of it, says: -1 for a size that may be any, a scalar for all.
 * is_full: whether it says all sizes. */
static bool shape_allows(struct flow *f, const struct flow_value *said, int rank, const dim *dims, bool *is_full) {
  int64_t length, size;
  *is_full = said->rank == 1;
  if (said->rank == 0) {
    dim any = said_size(f, said, 0);
    return any != NO_DIM && dim_is_const(f->dims, any, &size) && size == -1;
  }
  if (said->rank != 1 || !dim_is_const(f->dims, said->dims[0], &length) || length != rank)
    return false;
  for (int d = 0; d < rank; d++) {
    dim is = said_size(f, said, d);
    bool is_any = is != NO_DIM && dim_is_const(f->dims, is, &size) && size == -1;
    *is_full = *is_full && !is_any;
    if (is == NO_DIM || (!is_any && dim_equal(f->dims, is, dims[d]) != 1))
      return false;
  }
  return true;
}
static bool allows(struct flow *f, const struct flow *in, value_id shape, int rank, const dim *dims) {
  bool is_full;
  return shape_allows(f, &in->values.items[shape], rank, dims, &is_full);
}
static bool is_one(const struct flow *f, dim d) { return d != NO_DIM && dim_equal(f->dims, d, dim_const(f->dims, 1)) == 1; }
static bool is_some(const struct flow *f, dim turns) {
  int64_t count;
  return turns != NO_DIM && dim_is_const(f->dims, turns, &count) && count > 0;
}

/* ---- taking ---- */

/* The array whose rows are the list's elements. */
static value_id rows_of_list(struct flow *f, value_id list) {
  const struct flow_node *n = made_by(f, list, "TensorListFromTensor");
  const struct flow_value *x = n ? &f->values.items[n->inputs.items[0]] : NULL;
  return x && x->rank > 0 && allows(f, f, n->inputs.items[1], x->rank - 1, x->dims + 1) ? n->inputs.items[0] : NO_VALUE;
}
/* The call that sets an element of the variable and gives its next value; NULL: there is none. */
static const struct flow_node *setter_of(const struct list_var *x) {
  const struct flow_node *n = made_by(body_of(x), result_of(x), "TensorListSetItem");
  return n && n->inputs.items[0] == param_of(x) ? n : NULL;
}
static bool sets_row(const struct list_var *x, const struct flow_node *set, bool *from_last) {
  return set && loop_row_number(x->flow, loop_of(x), set->inputs.items[1], from_last);
}
/* Whether turns that begin at this end find the element that each takes as it was in front of the loop. */
static bool leaves_others(const struct list_var *x, bool from_last) {
  bool sets_last;
  return loop_hands_on(loop_of(x), x->var) || (sets_row(x, setter_of(x), &sets_last) && sets_last == from_last);
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
  const struct flow_value *item = &body_of(&x)->values.items[get->outputs.items[0]];
  if (!array || !has_rows_like(f, &f->values.items[array], turns, item) ||
      !allows(f, body_of(&x), get->inputs.items[2], item->rank, item->dims))
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
    if (node_is_free_call(body->nodes.items[id], "TensorListGetItem"))
      any |= take_row(f, loop, body->nodes.items[id], turns);
  return any;
}

/* ---- setting ---- */

/* Whether nobody else in the body takes the value. */
static bool is_used_once(const struct flow *body, value_id v) {
  flow_id user;
  return flow_use_count(body, v, &user) == 1;
}
/* The call that sets the element of the turn, in the variable itself. */
static const struct flow_node *sets_in_variable(const struct list_var *x, bool *from_last) {
  const struct flow_node *set = setter_of(x);
  return sets_row(x, set, from_last) && is_used_once(body_of(x), param_of(x)) && is_used_once(body_of(x), result_of(x)) ? set : NULL;
}
/* An integer of the body, or what a loop in front saved of it; NO_DIM: it is not known. */
static dim known_number(const struct flow *f, const struct flow_node *n, value_id v) {
  const struct flow_node *first;
  const struct flow_value *x = &n->branches[1]->values.items[v], *saved = loop_row_saved(f, n, v, &first);
  x = saved ? saved : x;
  return x->rank == 0 && x->content ? x->content[0] : NO_DIM;
}
/* The same in a list of its own, which is added to the variable: of zeros at first, and zeros elsewhere. */
static const struct flow_node *sets_by_adding(const struct list_var *x, dim turns, bool *from_last) {
  const struct flow *body = body_of(x);
  const struct flow_node *sum = made_by(body, result_of(x), "TensorListAdd");
  if (!sum || sum->inputs.count != 2 || !is_used_once(body, param_of(x)) || !is_used_once(body, result_of(x)) ||
      !made_by(x->flow, loop_of(x)->inputs.items[x->var], "TensorListZerosLike"))
    return NULL;
  int own = sum->inputs.items[0] == param_of(x);
  const struct flow_node *set = made_by(body, sum->inputs.items[own], "TensorListSetItem");
  const struct flow_node *made =
    set && sum->inputs.items[!own] == param_of(x) ? made_by(body, set->inputs.items[0], "TensorListReserve") : NULL;
  dim length = made ? known_number(x->flow, loop_of(x), made->inputs.items[1]) : NO_DIM;
  return length != NO_DIM && dim_equal(x->flow->dims, length, turns) == 1 && sets_row(x, set, from_last) ? set : NULL;
}
/* Whether the list that the loop begins with has elements like the item: zeros, or none yet; is_full: zeros where nobody sets them. */
static bool begins_like(const struct list_var *x, const struct flow_value *item, bool *is_full) {
  const struct flow *f = x->flow;
  value_id first = loop_of(x)->inputs.items[x->var];
  const struct flow_node *made = made_by(f, first, "TensorListReserve");
  *is_full = true;
  if (!made)
    return made_by(f, first, "TensorListZerosLike");
  const struct attr_value *dtype = node_call_attr(made, "element_dtype");
  return dtype && dtype->i == (int64_t)item->dtype &&
         shape_allows(x->flow, &f->values.items[made->inputs.items[0]], item->rank, item->dims, is_full);
}
/* A stack of all elements of the list, which are like the item. */
static bool stacks(struct flow *f, const struct flow_node *n, value_id list, dim count, const struct flow_value *item) {
  return node_is_free_call(n, "TensorListStack") && n->inputs.items[0] == list &&
         has_rows_like(f, &f->values.items[n->outputs.items[0]], count, item) && allows(f, f, n->inputs.items[1], item->rank, item->dims);
}
/* What takes the whole list behind the loop takes the array of which the turns make rows. */
static bool give_rows(const struct list_var *x, dim turns) {
  struct flow *f = x->flow;
  bool any = false, from_last, is_full;
  value_id list = loop_of(x)->outputs.items[x->var];
  const struct flow_node *set = sets_in_variable(x, &from_last);
  set = set ? set : sets_by_adding(x, turns, &from_last);
  dim length = f->values.items[loop_of(x)->inputs.items[x->var]].length; /* which neither changes */
  if (!set || length == NO_DIM || dim_equal(f->dims, length, turns) != 1 || loop_condition_takes(loop_of(x), x->var) ||
      !loop_may_face(loop_of(x), from_last) || !loop_may_be_row(f, loop_of(x), set->inputs.items[2]))
    return false;
  const struct flow_value item = body_of(x)->values.items[set->inputs.items[2]];
  if (!begins_like(x, &item, &is_full) || (!is_full && !is_some(f, turns)))
    return false;
  for (flow_id id = 1; id < f->nodes.count; id++) {
    struct flow_node *stack = f->nodes.items[id];
    if (!stacks(f, stack, list, turns, &item))
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
  return node_is_free_call(n, "TensorListGetItem") && n->inputs.items[0] == list && is_first(f, n->inputs.items[1]);
}
/* Whether the body does nothing but take the element and set it. */
static bool is_element(const struct list_var *x, const struct flow_node *set) {
  const struct flow *body = body_of(x);
  if (!set || !is_first(body, set->inputs.items[1]) || !is_used_once(body, result_of(x)) || loop_condition_takes(loop_of(x), x->var))
    return false;
  for (uint32_t i = 0; i < body->results.count; i++)
    if (body->results.items[i] == param_of(x))
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
    if (n && node_takes(n, list) && !stacks(f, n, list, dim_const(f->dims, 1), item))
      return false;
  }
  return true;
}
/* Its type and shape alone. */
static struct flow_value type_of(const struct flow_value *x) {
  struct flow_value type = {.dtype = x->dtype, .rank = x->rank};
  memcpy(type.dims, x->dims, sizeof type.dims);
  return type;
}
static value_id zeros_like(struct flow *f, const struct flow_node *named, const struct flow_value *like) {
  int64_t bytes = (int64_t)dtype_size(like->dtype), size;
  flow_id id;
  for (int d = 0; d < like->rank; d++) {
    if (!dim_is_const(f->dims, dim_resolve(f->dims, like->dims[d]), &size))
      return NO_VALUE;
    bytes *= size;
  }
  struct flow_node *n = flow_append(f, FLOW_CONST, named, named->task, &id);
  value_id v = flow_append_output(f, n, id, *like);
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
static value_id first_element(const struct list_var *x, const struct flow_value *item, dim turns) {
  struct flow *f = x->flow;
  value_id list = loop_of(x)->inputs.items[x->var], array = rows_of_list(f, list);
  bool is_full, is_set_first = is_some(f, turns) && is_used_once(body_of(x), param_of(x));
  if (!array)
    return begins_like(x, item, &is_full) && (is_full || is_set_first) ? zeros_like(f, loop_of(x), item) : NO_VALUE;
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
static bool hold_element(const struct list_var *x, dim turns) {
  struct flow *f = x->flow;
  struct flow_node *n = loop_of(x);
  const struct flow_node *set = setter_of(x);
  value_id list = n->outputs.items[x->var];
  if (!is_element(x, set) || !is_one(f, f->values.items[list].length) || !loop_may_be_row(f, n, set->inputs.items[2]))
    return false;
  value_id item = set->inputs.items[2];
  const struct flow_value like = type_of(&body_of(x)->values.items[item]);
  value_id first = is_taken_whole(x, &like) ? first_element(x, &like, turns) : NO_VALUE;
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
    if (!node_is_free_call(stack, "TensorListStack") || stack->inputs.items[0] != list)
      continue;
    flow_replace_uses(f, stack->outputs.items[0], alias_of(f, stack, list, f->values.items[stack->outputs.items[0]]));
    node_make_noop(stack);
  }
  return true;
}

/* ---- all loops ---- */

static bool rewrite_lists(struct flow *f, flow_id loop) {
  const struct flow_node *n = f->nodes.items[loop];
  dim turns = loop_turns_known(f, loop);
  bool any = false;
  for (uint32_t i = 0; i < loop_var_count(n); i++) {
    struct list_var x = {f, loop, i};
    bool is_list = f->values.items[n->outputs.items[i]].dtype == DTYPE_VARIANT;
    any |= is_list && !loop_hands_on(n, i) && (hold_element(&x, turns) || (turns != NO_DIM && give_rows(&x, turns)));
  }
  return (turns != NO_DIM && take_rows(f, loop, turns)) || any;
}

bool loops_list_rows(const struct build *b, struct flow *f) {
  (void)b;
  uint32_t count = f->nodes.count;
  bool any = false;
  for (flow_id id = 1; id < count; id++)
    if (f->nodes.items[id] && f->nodes.items[id]->op == FLOW_WHILE && loop_is_regular(f->nodes.items[id]))
      any |= rewrite_lists(f, id);
  if (any)
    flow_sort(f);
  return any;
}
