/* ops_list.c: tensor arrays, stacks and tensor lists. The lists live in the runtime; here the rank and the fixed sizes of what
 * comes out are found: from an attribute or an input that says the element's shape, or from what was put in before. */
#include <string.h>

#include "ir/lower.h"
#include "ir/ops/host_call.h"

/* ---- element shapes ---- */

/* Elements of another size than those before: that size is none of the list's. */
static void join_element(struct op_call *c, struct flow_value *known, const struct flow_value *x) {
  for (int d = 0; d < known->rank && known->rank == x->rank; d++)
    if (known->dims[d] != NO_DIM && (x->dims[d] == NO_DIM || dim_equal(c->lw->dims, known->dims[d], x->dims[d]) != 1))
      known->dims[d] = NO_DIM;
}

/* Remembers the shape of an element (rows: without the first dimension) for the list that input `handle` is. A loop's body
 * may come here several times, until the shapes of its variables have settled. */
static void note_element(struct op_call *c, const struct node *maker, const struct flow_value *x, bool rows) {
  struct object_shapes *o = maker ? lower_object(c->lw, maker) : NULL;
  if (!o)
    return;
  struct flow_value element = *x;
  element.data = NULL;
  element.content = NULL;
  for (int d = 0; d < x->rank; d++) /* what changes from turn to turn of a loop is not the element's shape */
    if (!op_dim_is_outer(c, x->dims[d]))
      element.dims[d] = NO_DIM;
  if (rows && x->rank > 0) {
    memmove(element.dims, element.dims + 1, sizeof(dim) * (LIMIT_RANK - 1));
    element.rank--;
  }
  if (o->count) {
    join_element(c, o->values, &element);
    return;
  }
  o->count = 1;
  o->values = ARENA_NEW(c->lw->arena, struct flow_value);
  *o->values = element;
}

static void note_attr(struct op_call *c, const char *name) {
  const struct attr_value *a = node_attr(c->node, name);
  if (!a || a->kind != ATTR_SHAPE || a->shape.unknown_rank || a->shape.rank > LIMIT_RANK)
    return;
  struct flow_value x = {.rank = a->shape.rank};
  for (int d = 0; d < x.rank; d++)
    x.dims[d] = a->shape.dims[d] < 0 ? NO_DIM : op_dim(c, a->shape.dims[d]);
  note_element(c, c->node, &x, false);
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
    out->dims[d] = e[d] != NO_DIM && dim_is_const(c->lw->dims, e[d], &size) && size < 0 ? NO_DIM : e[d];
  return true;
}

/* Rank and dims of an element: constants stay, other sizes are new symbols, bound from what comes. `said`: or NULL. */
static status element_dims(struct op_call *c, const struct node *maker, const struct flow_value *said, int *rank, dim *dims) {
  const struct object_shapes *o = maker ? lower_object(c->lw, maker) : NULL;
  const struct flow_value *known = o && o->count ? o->values : NULL;
  if (!known && !said)
    return fail(UNIMPLEMENTED, "the rank of the elements of '%s' is not known while compiling", maker ? maker->name : "?");
  *rank = known ? known->rank : said->rank;
  for (int d = 0; d < *rank; d++) {
    dim best = known ? known->dims[d] : said->dims[d];
    if (known && said && said->rank == *rank && op_dim_value(c, best) < 0 && said->dims[d] != NO_DIM && op_dim_value(c, said->dims[d]) >= 0)
      best = said->dims[d];
    dims[d] = best != NO_DIM && op_dim_is_outer(c, best) ? best : op_new_symbol(c);
  }
  return OK;
}

/* Lists of lists: who made the element that comes out is who made what went in. */
static void note_maker(struct op_call *c, const struct node *list, const struct node *element) {
  struct object_shapes *o = list ? lower_object(c->lw, list) : NULL;
  if (!o || !element)
    return;
  o->makers = ARENA_NEW(c->lw->arena, const struct node *);
  o->makers[0] = element;
}

static const struct node *element_maker(struct op_call *c, const struct node *list) {
  const struct object_shapes *o = list ? lower_object(c->lw, list) : NULL;
  return o && o->makers ? o->makers[0] : NULL;
}

static status read_all(struct op_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++) {
    value_id v;
    TRY(op_input(c, i, &v));
    c->in[i].value = v;
  }
  return OK;
}

static status list_call(struct op_call *c, enum host_kind kind, struct flow_node **n) {
  TRY(read_all(c));
  return op_host(c, kind, NULL, n);
}

/* ---- tensor arrays ---- */

status build_tensor_array(struct op_call *c) {
  struct flow_node *n;
  TRY(list_call(c, HOST_PURE, &n));
  op_host_output(c, n, 0, 0, NULL);
  op_host_output(c, n, 1, 0, NULL);
  c->out[0].maker = c->node;
  note_attr(c, "element_shape");
  return OK;
}

/* The gradients' elements have the shapes of the array's own. */
status build_tensor_array_grad(struct op_call *c) {
  struct flow_node *n;
  TRY(list_call(c, HOST_PURE, &n));
  op_host_output(c, n, 0, 0, NULL);
  op_host_output(c, n, 1, 0, NULL);
  c->out[0].maker = c->in[0].maker;
  return OK;
}

/* Write, Scatter, Split: the value is input "value"; the flow comes out. */
status build_tensor_array_write(struct op_call *c) {
  struct flow_node *n;
  TRY(list_call(c, HOST_PURE, &n));
  const struct flow_value *x = op_value(c, c->in[op_arg_index(c, "value")].value);
  bool split = strstr(c->node->op, "Split") != NULL;
  struct flow_value element = *x;
  if (split && x->rank > 0)
    element.dims[0] = NO_DIM;
  note_element(c, c->in[0].maker, &element, strstr(c->node->op, "Scatter") != NULL);
  op_host_output(c, n, 0, 0, NULL);
  return OK;
}

status build_tensor_array_read(struct op_call *c) {
  struct flow_node *n;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(list_call(c, HOST_PURE, &n));
  TRY(element_dims(c, c->in[0].maker, NULL, &rank, dims));
  op_host_output(c, n, 0, rank, dims);
  return OK;
}

/* A value with the elements on a new first dimension of size `count`. */
static status output_stacked(struct op_call *c, struct flow_node *n, const struct flow_value *said, dim count) {
  int rank;
  dim dims[LIMIT_RANK];
  TRY(element_dims(c, c->in[0].maker, said, &rank, dims));
  if (rank == LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a stack of rank %d", rank + 1);
  memmove(dims + 1, dims, sizeof(dim) * (size_t)rank);
  dims[0] = count;
  op_host_output(c, n, 0, rank + 1, dims);
  return OK;
}

static bool said_by_attr(struct op_call *c, const char *name, struct flow_value *out) {
  const struct attr_value *a = node_attr(c->node, name);
  if (!a || a->kind != ATTR_SHAPE || a->shape.unknown_rank || a->shape.rank > LIMIT_RANK)
    return false;
  *out = (struct flow_value){.rank = a->shape.rank};
  for (int d = 0; d < out->rank; d++)
    out->dims[d] = a->shape.dims[d] < 0 ? NO_DIM : op_dim(c, a->shape.dims[d]);
  return true;
}

status build_tensor_array_gather(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  TRY(list_call(c, HOST_PURE, &n));
  bool any = said_by_attr(c, "element_shape", &said);
  return output_stacked(c, n, any ? &said : NULL, op_value(c, c->in[1].value)->dims[0]);
}

/* Concat of tensor arrays and tensor lists: elements behind each other, and their lengths. */
status build_list_concat(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  int rank;
  dim dims[LIMIT_RANK], count;
  TRY(list_call(c, HOST_PURE, &n));
  bool any = strstr(c->node->op, "ConcatV2") && c->in_count > 1 && shape_of_input(c, 1, &said);
  TRY(element_dims(c, c->in[0].maker, any ? &said : NULL, &rank, dims));
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
  TRY(list_call(c, HOST_PURE, &n));
  op_host_output(c, n, 0, 0, NULL);
  return OK;
}

status build_list_close(struct op_call *c) {
  (void)c; /* a list goes with its last use */
  return OK;
}

/* ---- stacks ---- */

status build_stack(struct op_call *c) {
  struct flow_node *n;
  TRY(list_call(c, HOST_PURE, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->node;
  return OK;
}

/* What is pushed is the same in each turn of a loop when all its elements are sizes that mean the same everywhere: the
 * shapes that gradients of loops keep. Then what is popped is known too. */
static void note_content(struct op_call *c, const struct node *maker, const struct flow_value *x) {
  struct object_shapes *o = maker ? lower_object(c->lw, maker) : NULL;
  dim *e = NULL;
  int count = 0;
  if (!o || o->varies)
    return;
  bool known = (x->content || x->data) && (x->dtype == DTYPE_INT32 || x->dtype == DTYPE_INT64) &&
               op_known_elements(c, c->in[1].value, &e, &count) == OK;
  for (int i = 0; i < count && known; i++)
    known = op_dim_is_outer(c, e[i]) && (!o->values->content || dim_equal(c->lw->dims, o->values->content[i], e[i]) == 1);
  o->varies = !known;
  o->values->content = known ? e : NULL;
}

status build_stack_push(struct op_call *c) {
  struct flow_node *n;
  TRY(list_call(c, HOST_CHANGES, &n));
  struct flow_value x = *op_value(c, c->in[1].value);
  note_element(c, c->in[0].maker, &x, false);
  note_content(c, c->in[0].maker, &x);
  op_host_output(c, n, 0, x.rank, x.dims);
  c->out[0].maker = c->in[1].maker;
  return OK;
}

status build_stack_pop(struct op_call *c) {
  struct flow_node *n;
  int rank;
  dim dims[LIMIT_RANK];
  TRY(list_call(c, HOST_CHANGES, &n));
  TRY(element_dims(c, c->in[0].maker, NULL, &rank, dims));
  op_host_output(c, n, 0, rank, dims);
  op_value(c, c->out[0].value)->content = lower_object(c->lw, c->in[0].maker)->values->content;
  return OK;
}

/* ---- tensor lists ---- */

/* EmptyTensorList, TensorListReserve: the element's shape is input 0. */
status build_list_new(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  TRY(list_call(c, HOST_PURE, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->node;
  if (shape_of_input(c, 0, &said))
    note_element(c, c->node, &said, false);
  return OK;
}

/* A list from the rows of a tensor (or pieces of it): TensorListFromTensor, TensorListScatter(V2), TensorListSplit. */
status build_list_from(struct op_call *c) {
  struct flow_node *n;
  TRY(list_call(c, HOST_PURE, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->node;
  struct flow_value x = *op_value(c, c->in[0].value);
  bool split = strcmp(c->node->op, "TensorListSplit") == 0;
  if (split && x.rank > 0)
    x.dims[0] = NO_DIM;
  note_element(c, c->node, &x, !split);
  return OK;
}

/* A new list from an old one and, for some, an element at the argument that `row->data` names. */
status build_list_change(struct op_call *c) {
  struct flow_node *n;
  TRY(list_call(c, HOST_PURE, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->in[0].maker;
  const char *element = c->row->data;
  if (element)
    note_maker(c, c->in[0].maker, c->in[op_arg_index(c, element)].maker);
  if (element)
    note_element(c, c->in[0].maker, op_value(c, c->in[op_arg_index(c, element)].value), strstr(c->node->op, "Scatter") != NULL);
  return OK;
}

static status element_output(struct op_call *c, struct flow_node *n, uint32_t output, uint32_t shape_input) {
  struct flow_value said;
  int rank;
  dim dims[LIMIT_RANK];
  bool any = shape_of_input(c, shape_input, &said);
  TRY(element_dims(c, c->in[0].maker, any ? &said : NULL, &rank, dims));
  op_host_output(c, n, output, rank, dims);
  c->out[output].maker = element_maker(c, c->in[0].maker);
  return OK;
}

status build_list_get(struct op_call *c) {
  struct flow_node *n;
  TRY(list_call(c, HOST_PURE, &n));
  return element_output(c, n, 0, 2);
}

status build_list_pop(struct op_call *c) {
  struct flow_node *n;
  TRY(list_call(c, HOST_PURE, &n));
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->in[0].maker;
  return element_output(c, n, 1, 1);
}

status build_list_stack(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  TRY(list_call(c, HOST_PURE, &n));
  bool any = shape_of_input(c, 1, &said);
  int64_t count = node_attr_int(c->node, "num_elements", -1);
  return output_stacked(c, n, any ? &said : NULL, count < 0 ? op_new_symbol(c) : op_dim(c, count));
}

status build_list_gather(struct op_call *c) {
  struct flow_node *n;
  struct flow_value said;
  TRY(list_call(c, HOST_PURE, &n));
  bool any = shape_of_input(c, 2, &said);
  return output_stacked(c, n, any ? &said : NULL, op_value(c, c->in[1].value)->dims[0]);
}

/* The sizes of the element's shape: as many as its rank, where that is known. */
status build_list_element_shape(struct op_call *c) {
  struct flow_node *n;
  int rank;
  dim dims[LIMIT_RANK], length;
  TRY(list_call(c, HOST_PURE, &n));
  TRY(element_dims(c, c->in[0].maker, NULL, &rank, dims));
  length = op_dim(c, rank);
  op_host_output(c, n, 0, 1, &length);
  return OK;
}
