/* ops_optional.c: optionals, composite tensors and compressed elements as variants: values that hold several tensors. What they hold is
 * remembered for the node that made them, so that what is taken out again has a rank. */
#include <string.h>

#include "ir/lower/lower.h"
#include "ir/lower/host_call.h"

static void note_components(struct op_call *c) {
  struct object_shapes *o = lower_object(c->lw, c->node);
  o->count = c->in_count;
  o->values = ARENA_ARRAY(op_arena(c), struct flow_value, c->in_count + 1);
  o->makers = ARENA_ARRAY(op_arena(c), const struct node *, c->in_count + 1);
  for (uint32_t i = 0; i < c->in_count; i++) {
    o->values[i] = op_lasting_shape(c, op_value(c, c->in[i].value), false);
    o->makers[i] = c->in[i].maker;
  }
  if (c->in_count == 1 && c->in[0].value)
    o->pushed = op_origin(c, c->in[0].value);
}

/* OptionalFromValue, OptionalNone, CompositeTensorVariantFromComponents, CompressElement */
status build_bundle_make(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  note_components(c);
  op_host_output(c, n, 0, 0, NULL);
  c->out[0].maker = c->node;
  lower_object(c->lw, c->node)->made = (struct origin){op_flow(c), c->out[0].value};
  return OK;
}

/* What the attribute says of component i; NULL: no rank. */
static const struct attr_shape *said_shape(struct op_call *c, uint32_t i) {
  const struct attr_value *said = node_attr(c->node, "output_shapes");
  const struct attr_shape *shape = said && said->kind == ATTR_LIST && i < said->list.count ? &said->list.items[i].shape : NULL;
  return shape && !shape->unknown_rank && shape->rank <= LIMIT_RANK ? shape : NULL;
}
/* Output i: of the rank and dims that the attribute says, else of what was put in; where neither is known, of the rank that comes. */
static status put_component(struct op_call *c, struct flow_node *n, const struct object_shapes *o, uint32_t i) {
  const struct attr_shape *shape = said_shape(c, i);
  bool noted = o && i < o->count, known = shape != NULL;
  dim dims[LIMIT_RANK];
  if (!noted && !known) {
    op_host_output(c, n, i, 0, NULL);
    return op_any_rank(c, c->out[i].value, ANY_RANK, &c->out[i]);
  }
  int rank = known ? shape->rank : o->values[i].rank;
  for (int d = 0; d < rank; d++) {
    dims[d] = known && shape->dims[d] >= 0 ? op_dim(c, shape->dims[d]) : noted && o->values[i].rank == rank ? o->values[i].dims[d] : NO_DIM;
    if (!op_dim_is_outer(c, dims[d]))
      dims[d] = op_new_symbol(c);
  }
  op_host_output(c, n, i, rank, dims);
  return OK;
}

/* The kind of composite tensor that metadata (a TypeSpecProto) says: its field 1, which is written first. */
static int metadata_class(const struct node *n) {
  const struct attr_value *a = node_attr(n, "metadata");
  return a && a->kind == ATTR_STRING && a->s.size >= 2 && a->s.data[0] == 8 ? a->s.data[1] : 0;
}

/* What is known of a composite value must be what is wanted of it. */
static status check_composite(struct op_call *c, const struct object_shapes *o) {
  const struct node *maker = c->in[0].maker;
  if (!op_takes(c, "encoded") || !maker)
    return OK;
  if (strcmp(maker->op, "CompositeTensorVariantFromComponents") != 0)
    return fail(INVALID_ARGUMENT, "The input `encoded` is not a valid CompositeTensorVariant tensor: '%s' (%s) made it", maker->name,
                maker->op);
  if (metadata_class(maker) != metadata_class(c->node))
    return fail(INVALID_ARGUMENT, "`encoded` contains another kind of tensor than `type_spec` says");
  if (o->count != c->out_count)
    return fail(INVALID_ARGUMENT, "Encoded value has %u tensor components; expected %u components based on type_spec", o->count,
                c->out_count);
  for (uint32_t i = 0; i < o->count; i++)
    if (o->values[i].dtype != op_output_dtype(c, i))
      return fail(INVALID_ARGUMENT, "Tensor component %u had dtype %s; expected dtype %s", i, dtype_name(o->values[i].dtype),
                  dtype_name(op_output_dtype(c, i)));
  return OK;
}

static bool holds_outputs(struct op_call *c, const struct object_shapes *o) {
  bool same = o->count == c->out_count;
  for (uint32_t i = 0; same && i < o->count; i++) {
    const struct attr_shape *said = said_shape(c, i);
    same = o->values[i].dtype == op_output_dtype(c, i) && (!said || said->rank == o->values[i].rank);
  }
  return same;
}
/* Of what it may be the first that fits what is taken; else the first. */
static const struct object_shapes *fitting_object(struct op_call *c, const struct object_shapes *first) {
  const struct object_shapes *o = first;
  while (o && !holds_outputs(c, o))
    o = o->other;
  return o ? o : first;
}

/* OptionalGetValue, CompositeTensorVariantToComponents, UncompressElement */
status build_bundle_take(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  const struct object_shapes *o = fitting_object(c, lower_object(c->lw, c->in[0].maker));
  TRY(check_composite(c, o));
  for (uint32_t i = 0; i < c->out_count; i++) {
    TRY(put_component(c, n, o, i));
    c->out[i].maker = o && i < o->count && o->makers ? o->makers[i] : NULL;
  }
  if (o && c->out_count == 1 && origin_equal(o->made, op_origin(c, c->in[0].value))) /* not of a loop that makes another one */
    lower_note_origin(c->lw, op_flow(c), c->out[0].value, o->pushed);
  return OK;
}
