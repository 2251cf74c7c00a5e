/* ops_list.c: tensor arrays, stacks and tensor lists. The lists live in the runtime; here the rank and the fixed sizes of what
 * comes out are found: from an attribute or an input that says the element's shape, or from what was put in before. */
#include <string.h>

#include "ir/lower/lower_frame.h"
#include "ir/lower/host_call.h"
#include "ir/ops/op_rows.h"

/* ---- element shapes ---- */

/* Remembers the shape of an element (rows: without the first dimension) for the list that input `handle` is. A loop's body
 * may come here several times, until the shapes of its variables have settled. */
static void note_element(struct op_call *c, const struct node *maker, const struct flow_value *x, bool rows) {
  struct object_shapes *o = lower_object(c->lw, maker);
  if (o)
    lower_note_element(c, o, op_lasting_shape(c, x, rows));
}

/* What the maker says of all elements. */
static void note_said(struct op_call *c, const struct flow_value *x) {
  note_element(c, c->node, x, false);
  lower_object(c->lw, c->node)->said = true;
  lower_object(c->lw, c->node)->ranks = 0;
}

/* The element that an index input says; -1 where it is not known while compiling. */
static int64_t known_index(struct op_call *c, uint32_t input) {
  dim *e;
  int count;
  if (op_value(c, c->in[input].value)->rank != 0 || op_known_elements(c, c->in[input].value, &e, &count) != OK || e[0] == NO_DIM)
    return -1;
  return op_dim_value(c, e[0]);
}

/* The same for one element (at: its index, or -1): elements may have different shapes. */
static void note_item(struct op_call *c, const struct node *maker, const struct flow_value *x, int64_t at) {
  note_element(c, maker, x, false);
  struct object_shapes *o = lower_object(c->lw, maker);
  struct flow_value element = op_lasting_shape(c, x, false);
  for (uint32_t i = 1; o && at >= 0 && i < o->count; i++)
    if (o->keys[i] == at) {
      if (o->values[i].rank == element.rank)
        lower_join_element(c, &o->values[i], &element);
      else
        o->values[i] = element;
      return;
    }
  if (!o || at < 0 || o->count > OBJECT_KEYED_MAX)
    return;
  int64_t *keys = ARENA_ARRAY(op_arena(c), int64_t, OBJECT_KEYED_MAX + 1);
  if (o->keys)
    memcpy(keys, o->keys, sizeof *keys * (OBJECT_KEYED_MAX + 1));
  keys[o->count] = at;
  o->keys = keys;
  o->values[o->count++] = element;
}

/* How long the list is that comes by input `input`: NO_DIM where it is not known while compiling. */
static dim list_length(struct op_call *c, uint32_t input) { return op_value(c, c->in[input].value)->length; }
static int64_t known_length(struct op_call *c, uint32_t input) {
  dim length = list_length(c, input);
  return length == NO_DIM ? -1 : op_dim_value(c, length);
}

static void note_length(struct op_call *c, dim length) { op_value(c, c->out[0].value)->length = length; }
static void note_known_length(struct op_call *c, int64_t length) { note_length(c, length < 0 ? NO_DIM : op_dim(c, length)); }

/* A length that an input says, which may be that of something fed. */
static dim said_length(struct op_call *c, uint32_t input) {
  dim *e;
  int count;
  bool known = op_value(c, c->in[input].value)->rank == 0 && op_known_elements(c, c->in[input].value, &e, &count) == OK;
  return known && e[0] != NO_DIM && dim_less(op_dims(c), e[0], op_dim(c, 0)) == 0 ? e[0] : NO_DIM;
}

/* What is remembered of an element (-1: of any). */
static const struct flow_value *noted(const struct object_shapes *o, int64_t at) {
  for (uint32_t i = 1; o && at >= 0 && i < o->count; i++)
    if (o->keys[i] == at)
      return &o->values[i];
  return o && o->count ? o->values : NULL;
}

/* The element shape that an attribute says. */
static bool said_by_attr(struct op_call *c, const char *name, struct flow_value *out) {
  const struct attr_shape *shape = node_attr_shape(c->node, name);
  if (!shape || shape->rank > LIMIT_RANK)
    return false;
  *out = (struct flow_value){.rank = shape->rank};
  for (int d = 0; d < out->rank; d++)
    out->dims[d] = shape->dims[d] < 0 ? NO_DIM : op_dim(c, shape->dims[d]);
  return true;
}

/* The element shape that an input says: a vector of sizes, -1 where one is not known; a scalar says nothing. */
static bool shape_of_input(struct op_call *c, uint32_t i, struct flow_value *out) {
  value_id v;
  dim *e;
  int count;
  int64_t size;
  if (op_input(c, i, &v) != OK || op_value(c, v)->rank != 1 || op_known_elements(c, v, &e, &count) != OK || count > LIMIT_RANK)
    return false;
  *out = (struct flow_value){.rank = count};
  for (int d = 0; d < count; d++)
    out->dims[d] = e[d] != NO_DIM && dim_is_const(op_dims(c), e[d], &size) && size < 0 ? NO_DIM : e[d];
  return true;
}

/* Rank and dims of an element (at: which, or -1): constants stay, other sizes are new symbols, bound from what comes. `said`: or NULL; an
 * element of its rank is asked for, whatever others of the list have. */
static status element_dims(struct op_call *c, const struct node *maker, const struct flow_value *said, int64_t at, int *rank, dim *dims) {
  const struct flow_value *known = noted(lower_object(c->lw, maker), at);
  if (!known && !said && maker && !op_in_region(c))
    return fail(INVALID_ARGUMENT, "no element of '%s' was written, and the element shape is not fully defined", maker->name);
  if (!known && !said)
    return fail(UNIMPLEMENTED, "the rank of the elements of '%s' is not known while compiling", maker ? maker->name : "?");
  known = known && said && known->rank != said->rank ? NULL : known;
  *rank = known ? known->rank : said->rank;
  for (int d = 0; d < *rank; d++) {
    dim best = known ? known->dims[d] : said->dims[d];
    if (known && said && op_dim_value(c, best) < 0 && said->dims[d] != NO_DIM && op_dim_value(c, said->dims[d]) >= 0)
      best = said->dims[d];
    dims[d] = op_dim_is_outer(c, best) ? best : op_new_symbol(c);
  }
  return OK;
}

static const struct node *element_maker(struct op_call *c, const struct node *list) {
  const struct object_shapes *o = lower_object(c->lw, list);
  return o && o->makers ? o->makers[0] : NULL;
}

/* Output `output`, an element, of which more may be known in a later walk over the loop's body. */
static bool is_awaited(struct op_call *c, uint32_t output, const struct flow_value *said, int64_t at) {
  const struct node *list = c->in[0].maker;
  bool awaited = !said && !noted(lower_object(c->lw, list), at) && lower_await_element(c->lw, list);
  c->out[output].dead = awaited;
  return awaited;
}

/* Which ranks what comes out may have, where it is not known which element that is and nobody says its shape. */
static rank_set element_ranks(struct op_call *c, const struct flow_value *said, int64_t at) {
  const struct object_shapes *o = lower_object(c->lw, c->in[0].maker);
  return o && !said && noted(o, at) == o->values ? o->ranks : 0;
}

/* An output of the call that is an element (at: which, or -1), or, where there is a `count`, so many of them on a new first dimension.
 * Elements of several ranks were put in by what has several ranks, or by several: the step asks what comes out for its rank. */
static status output_element(struct op_call *c, struct flow_node *n, uint32_t output, const struct flow_value *said, int64_t at,
                             dim count) {
  int rank, front = count != NO_DIM;
  dim dims[LIMIT_RANK + 1] = {count};
  if (is_awaited(c, output, said, at))
    return OK;
  rank_set ranks = element_ranks(c, said, at);
  if (ranks_are_many(ranks)) {
    TRY(op_any_rank(c, op_add_output(c, n, op_output_dtype(c, output), 0, NULL), ranks << front, &c->out[output]));
    return OK;
  }
  TRY(element_dims(c, c->in[0].maker, said, at, &rank, dims + front));
  if (rank + front > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a stack of rank %d", rank + front);
  op_host_output(c, n, output, rank + front, dims);
  c->out[output].maker = element_maker(c, c->in[0].maker);
  return OK;
}

/* What is put at the end of a list that was empty, by one node alone: all that comes out. NO_VALUE: something else is put there. A loop's
 * body comes here again until its shapes have settled. */
static void note_pushed(struct op_call *c, const struct node *list, value_id v) {
  struct object_shapes *o = lower_object(c->lw, list);
  if (!o)
    return;
  bool alone = v && strcmp(list->op, "EmptyTensorList") == 0 && (!o->pushed_by || strcmp(o->pushed_by, c->node->name) == 0);
  o->pushed = alone ? op_origin(c, v) : (struct origin){0};
  o->pushed_by = alone ? c->node->name : "";
}

/* Lists of variants: who made the element that comes out is who made what went in. */
static void note_maker(struct op_call *c, const struct node *list, const struct node *element) {
  struct object_shapes *o = lower_object(c->lw, list);
  if (!o || !element)
    return;
  o->makers = ARENA_NEW(op_arena(c), const struct node *);
  o->makers[0] = element;
}

/* What is done to a tensor array changes it, reading too: each use runs, in the order of the graph's edges. */
static status array_call(struct op_call *c, struct flow_node **n) { return op_host(c, HOST_CHANGES, NULL, n); }

/* The handle: a scalar of dtype resource, whatever the op's generation calls it. Gradients of older ones give no flow. */
static void array_handle(struct op_call *c, struct flow_node *n, const struct node *maker) {
  c->out[0] = (struct bound){.value = op_add_output(c, n, DTYPE_RESOURCE, 0, NULL), .maker = maker};
  if (c->out_count > 1)
    op_host_output(c, n, 1, 0, NULL);
}

/* ---- tensor arrays ---- */

status build_tensor_array(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  TRY(array_call(c, &n));
  array_handle(c, n, c->node);
  if (said_by_attr(c, "element_shape", &said))
    note_said(c, &said);
  return OK;
}

/* Elements with the dimensions of input 2 in front: a list of its own. */
static void note_prefixed(struct op_call *c, const struct node *array) {
  const struct object_shapes *o = lower_object(c->lw, array);
  const struct flow_value *lengths = op_value(c, c->in[2].value);
  int64_t front = lengths->rank == 1 ? op_dim_value(c, lengths->dims[0]) : -1;
  struct object_shapes *own = lower_object(c->lw, c->node);
  if (!o || front < 0)
    return;
  own->values = ARENA_ARRAY(op_arena(c), struct flow_value, OBJECT_KEYED_MAX + 1);
  own->keys = o->keys;
  for (own->count = 0; own->count < o->count; own->count++) {
    struct flow_value x = o->values[own->count];
    if (x.rank + front > LIMIT_RANK)
      return;
    memmove(x.dims + front, x.dims, sizeof *x.dims * (size_t)x.rank);
    for (int64_t d = 0; d < front; d++)
      x.dims[d] = NO_DIM;
    x.rank += (int)front;
    own->values[own->count] = x;
  }
}

/* The gradients' elements have the shapes of the array's own, unless a third input puts dimensions in front. */
status build_tensor_array_grad(struct op_call *c) {
  struct flow_node *n;
  TRY(array_call(c, &n));
  array_handle(c, n, c->in_count > 2 ? c->node : c->in[0].maker);
  if (c->in_count > 2)
    note_prefixed(c, c->in[0].maker);
  return OK;
}

/* Write, Scatter, Unpack, Split: the value is input "value"; the flow comes out. */
status build_tensor_array_write(struct op_call *c) {
  struct flow_node *n;
  TRY(array_call(c, &n));
  struct flow_value element = *op_value(c, c->in[op_arg_index(c, "value")].value);
  bool split = op_takes(c, "lengths");
  if (split && element.rank > 0)
    element.dims[0] = NO_DIM;
  if (op_takes(c, "index"))
    note_item(c, c->in[0].maker, &element, known_index(c, 1));
  else
    note_element(c, c->in[0].maker, &element, !split);
  note_maker(c, c->in[0].maker, c->in[op_arg_index(c, "value")].maker);
  op_host_output(c, n, 0, 0, NULL);
  return OK;
}

status build_tensor_array_read(struct op_call *c) {
  struct flow_node *n;
  TRY(array_call(c, &n));
  return output_element(c, n, 0, NULL, known_index(c, 1), NO_DIM);
}

/* The first element that a vector of indices says. */
static int64_t first_index(struct op_call *c, uint32_t input) {
  dim *e;
  int count;
  bool known = op_known_elements(c, c->in[input].value, &e, &count) == OK && count > 0 && e[0] != NO_DIM;
  return known ? op_dim_value(c, e[0]) : -1;
}

/* Whether the array that is input 0 has no elements, as far as anybody says: then neither has what is taken out of it, and no shape. */
static bool is_without_elements(struct op_call *c, const struct flow_value *said, int64_t first) {
  const struct node *maker = c->in[0].maker;
  return !said && first < 0 && maker && !op_in_region(c) && !noted(lower_object(c->lw, maker), -1);
}

/* TensorArrayPack, the first generation's, takes all. */
status build_tensor_array_gather(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  TRY(array_call(c, &n));
  bool any = said_by_attr(c, "element_shape", &said), pack = !op_takes(c, "indices");
  if (!pack && op_value(c, c->in[1].value)->rank != 1)
    return fail(INVALID_ARGUMENT, "Expected indices to be a vector");
  dim count = pack ? op_new_symbol(c) : op_value(c, c->in[1].value)->dims[0];
  int64_t first = pack ? -1 : first_index(c, 1);
  if (is_without_elements(c, any ? &said : NULL, first))
    return fail(UNIMPLEMENTED, "TensorArray '%s' has size zero, but its element shape is not fully defined", c->in[0].maker->name);
  return output_element(c, n, 0, any ? &said : NULL, first, count);
}

/* Concat of tensor arrays and tensor lists: elements behind each other, and their lengths. */
status build_list_concat(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  int rank;
  dim dims[LIMIT_RANK], count;
  bool array = op_takes(c, "flow_in");
  TRY(array ? array_call(c, &n) : op_host(c, HOST_PURE, NULL, &n));
  bool any = op_takes(c, "element_shape") && shape_of_input(c, 1, &said);
  if (array && said_by_attr(c, "element_shape_except0", &said) && said.rank < LIMIT_RANK) {
    memmove(said.dims + 1, said.dims, sizeof(dim) * (size_t)said.rank);
    said.dims[0] = NO_DIM;
    said.rank++;
    any = true;
  }
  if (is_awaited(c, 0, any ? &said : NULL, -1)) {
    c->out[1].dead = true;
    return OK;
  }
  TRY(element_dims(c, c->in[0].maker, any ? &said : NULL, -1, &rank, dims));
  if (rank < 1)
    return fail(INVALID_ARGUMENT, "Concat requires elements that are at least vectors");
  dims[0] = op_new_symbol(c);
  op_host_output(c, n, 0, rank, dims);
  count = op_new_symbol(c);
  op_host_output(c, n, 1, 1, &count);
  return OK;
}

/* A scalar about the list. */
status build_list_size(struct op_call *c) {
  struct flow_node *n;
  bool array = op_takes(c, "flow_in");
  TRY(array ? array_call(c, &n) : op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  dim length = array ? NO_DIM : list_length(c, 0);
  if (length != NO_DIM) {
    dim *content = ARENA_NEW(op_arena(c), dim);
    *content = length;
    op_value(c, c->out[0].value)->content = content;
  }
  return OK;
}

status build_list_close(struct op_call *c) {
  struct flow_node *n;
  return array_call(c, &n);
}

/* ---- stacks ---- */

status build_stack(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  array_handle(c, n, c->node);
  return OK;
}

status build_stack_close(struct op_call *c) {
  struct flow_node *n;
  return op_host(c, HOST_CHANGES, NULL, &n);
}

/* What is pushed is the same in each turn of a loop when all its elements are sizes that mean the same everywhere: the
 * shapes that gradients of loops keep. Then what is popped is known too. */
static void note_content(struct op_call *c, const struct node *maker, const struct flow_value *x) {
  struct object_shapes *o = lower_object(c->lw, maker);
  dim *e = NULL;
  int count = 0;
  if (!o || o->varies)
    return;
  bool known = (x->content || x->data) && (x->dtype == DTYPE_INT32 || x->dtype == DTYPE_INT64) &&
               op_known_elements(c, c->in[1].value, &e, &count) == OK;
  for (int i = 0; i < count && known; i++)
    known = op_dim_is_outer(c, e[i]) && (!o->values->content || dim_equal(op_dims(c), o->values->content[i], e[i]) == 1);
  o->varies = !known;
  o->values->content = known ? e : NULL;
}

status build_stack_push(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  struct flow_value x = *op_value(c, c->in[1].value);
  note_element(c, c->in[0].maker, &x, false);
  note_content(c, c->in[0].maker, &x);
  note_maker(c, c->in[0].maker, c->in[1].maker);
  op_host_output(c, n, 0, x.rank, x.dims);
  c->out[0].maker = c->in[1].maker;
  return OK;
}

status build_stack_pop(struct op_call *c) {
  struct flow_node *n;
  const struct object_shapes *stack = lower_object(c->lw, c->in[0].maker);
  if (stack && !stack->count && op_in_region(c)) { /* what pushes lies on the side of a cond that no step takes, and so does this */
    c->out[0].dead = true;
    return OK;
  }
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  TRY(output_element(c, n, 0, NULL, -1, NO_DIM));
  if (c->out[0].value)
    op_value(c, c->out[0].value)->content = stack->values->content;
  return OK;
}

/* ---- tensor lists ---- */

/* Remembers the element shape that a list is made with, which TensorListElementShape gives back. */
static void note_declared(struct op_call *c, uint32_t input) {
  struct object_shapes *o = lower_object(c->lw, c->node);
  value_id v = c->in[input].value;
  dim *e;
  int count;
  o->declared = NULL;
  o->undeclared = op_value(c, v)->rank == 0;
  if (o->undeclared || op_value(c, v)->rank != 1 || op_known_elements(c, v, &e, &count) != OK || count > LIMIT_RANK)
    return;
  o->declared = e;
  o->declared_rank = count;
}

/* EmptyTensorList, TensorListReserve: the element's shape is input 0. */
status build_list_new(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->node;
  note_declared(c, 0);
  note_length(c, op_takes(c, "num_elements") ? said_length(c, 1) : op_dim(c, 0));
  if (shape_of_input(c, 0, &said))
    note_said(c, &said);
  return OK;
}

/* A list from the rows of a tensor (or pieces of it): TensorListFromTensor, TensorListScatter(V2), TensorListSplit. */
status build_list_from(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->node;
  note_declared(c, op_arg_index(c, "element_shape"));
  struct flow_value x = *op_value(c, c->in[0].value);
  bool split = op_takes(c, "lengths");
  if (split && x.rank > 0)
    x.dims[0] = NO_DIM;
  note_element(c, c->node, &x, !split);
  note_maker(c, c->node, c->in[0].maker);
  if (!split && !op_takes(c, "indices") && x.rank > 0)
    note_length(c, x.dims[0]);
  return OK;
}

/* A new list from an old one and, for some, an element (`item`) or several (`tensor`). */
status build_list_change(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->in[0].maker;
  bool at_end = OP_ROW(c, list_row)->at_end, item = op_takes(c, "item"), element = item || op_takes(c, "tensor");
  uint32_t at = op_arg_index(c, item ? "item" : "tensor");
  if (element)
    note_maker(c, c->in[0].maker, c->in[at].maker);
  const struct flow_value *x = element ? op_value(c, c->in[at].value) : NULL;
  int64_t length = known_length(c, 0);
  if (element)
    note_pushed(c, c->in[0].maker, at_end ? c->in[at].value : NO_VALUE);
  if (item || at_end)
    note_item(c, c->in[0].maker, x, at_end ? length : known_index(c, 1));
  else if (element)
    note_element(c, c->in[0].maker, x, true);
  if (at_end)
    note_known_length(c, length < 0 ? -1 : length + 1);
  else if (op_takes(c, "size"))
    note_length(c, said_length(c, 1));
  else if (item && (!node_attr_int(c->node, "resize_if_index_out_of_bounds", 0) || (known_index(c, 1) >= 0 && known_index(c, 1) < length)))
    note_length(c, list_length(c, 0));
  return OK;
}

static status list_element(struct op_call *c, struct flow_node *n, uint32_t output, uint32_t shape_input, int64_t at) {
  struct flow_value said;
  bool any = shape_of_input(c, shape_input, &said);
  return output_element(c, n, output, any ? &said : NULL, at, NO_DIM);
}

status build_list_get(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  return list_element(c, n, 0, 2, known_index(c, 1));
}

status build_list_pop(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->in[0].maker;
  int64_t length = known_length(c, 0);
  note_known_length(c, length > 0 ? length - 1 : -1);
  TRY(list_element(c, n, 1, 1, length - 1));
  const struct object_shapes *o = lower_object(c->lw, c->in[0].maker);
  if (o && c->out[1].value)
    lower_note_origin(c->lw, op_flow(c), c->out[1].value, o->pushed);
  return OK;
}

status build_list_stack(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  bool any = shape_of_input(c, 1, &said);
  int64_t said_count = node_attr_int(c->node, "num_elements", -1);
  dim count = said_count < 0 ? list_length(c, 0) : op_dim(c, said_count);
  return output_element(c, n, 0, any ? &said : NULL, -1, count == NO_DIM ? op_new_symbol(c) : count);
}

status build_list_gather(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  bool any = shape_of_input(c, 2, &said);
  return output_element(c, n, 0, any ? &said : NULL, first_index(c, 1), op_value(c, c->in[1].value)->dims[0]);
}

/* The sizes that the list was made with, not those of its elements; a scalar -1 when it was made without. */
status build_list_element_shape(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  const struct node *maker = c->in[0].maker;
  const struct object_shapes *o = lower_object(c->lw, maker);
  if (!o || (!o->declared && !o->undeclared))
    return fail(UNIMPLEMENTED, "the element shape of '%s' is not known while compiling", maker ? maker->name : "?");
  dim length = op_dim(c, o->declared_rank);
  op_host_output(c, n, 0, o->declared != NULL, &length);
  bool whole = o->declared != NULL;
  for (int d = 0; d < o->declared_rank && whole; d++)
    whole = op_dim_is_outer(c, o->declared[d]);
  if (whole)
    op_value(c, c->out[0].value)->content = (dim *)(uintptr_t)o->declared;
  return OK;
}

/* Two lists behind each other; elements are known from the first, or else from the second. */
status build_list_concat_lists(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  const struct flow_value *a = op_value(c, c->in[0].value), *b = op_value(c, c->in[1].value);
  if (a->rank != b->rank)
    return fail(INVALID_ARGUMENT, "Incompatible input TensorList tensor shapes: %s vs. %s", op_shape_text(c, a->rank, a->dims),
                op_shape_text(c, b->rank, b->dims));
  op_host_output(c, n, 0, a->rank, a->dims);
  note_pushed(c, c->in[0].maker, NO_VALUE);
  note_pushed(c, c->in[1].maker, NO_VALUE);
  bool first = c->in[0].maker && lower_object(c->lw, c->in[0].maker)->count > 0;
  c->out[0].maker = first ? c->in[0].maker : c->in[1].maker;
  return OK;
}

/* A vector of lists, each with a row of the tensor more. */
status build_list_push_batch(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  const struct flow_value *lists = op_value(c, c->in[0].value), *rows = op_value(c, c->in[1].value);
  if (rows->rank < 1)
    return fail(INVALID_ARGUMENT, "Expected tensor to be at least a vector, but saw a scalar");
  if (lists->rank != 1)
    return fail(INVALID_ARGUMENT, "Expected input_handles to be a vector, but saw shape: %s", op_shape_text(c, lists->rank, lists->dims));
  TRY(op_equal_dims(c, lists->dims[0], rows->dims[0], "Expected tensor.shape[0] == input_handles.size"));
  note_element(c, c->in[0].maker, rows, true);
  note_pushed(c, c->in[0].maker, NO_VALUE);
  op_host_output(c, n, 0, 1, lists->dims);
  c->out[0].maker = c->in[0].maker;
  return OK;
}
