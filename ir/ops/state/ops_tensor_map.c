/* ops_tensor_map.c: maps from tensors to tensors, as variants: a change makes a new map. What is put in is remembered for the node
 * that made the first map of a chain: the shape of its keys, and of the value for each edge that a key came on. */
#include <string.h>

#include "ir/lower/lower.h"
#include "ir/lower/host_call.h"

#define VALUES_MAX 64

/* A scalar about the map, or the map. */
status build_tensor_map(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, 0, NULL);
  if (op_output_dtype(c, 0) == DTYPE_VARIANT)
    c->out[0].maker = c->in_count ? c->in[0].maker : c->node;
  return OK;
}

/* values[0] is the keys' shape; from the second on they are values', by keys[i]: where the key came from. */
static int64_t key_source(const struct op_call *c) { return (int64_t)c->node->inputs[1].node * 256 + c->node->inputs[1].port; }

/* Sizes that are constants. */
static struct flow_value lasting(struct op_call *c, value_id v) {
  struct flow_value x = op_lasting_shape(c, op_value(c, v), false);
  for (int d = 0; d < x.rank; d++)
    x.dims[d] = op_dim_value(c, x.dims[d]) >= 0 ? x.dims[d] : NO_DIM;
  return x;
}

status build_tensor_map_insert(struct op_call *c) {
  TRY(build_tensor_map(c));
  struct object_shapes *o = lower_object(c->lw, c->in[0].maker);
  if (!o || o->count > VALUES_MAX)
    return OK;
  int64_t *keys = ARENA_ARRAY(op_arena(c), int64_t, VALUES_MAX + 2);
  struct flow_value *values = ARENA_ARRAY(op_arena(c), struct flow_value, VALUES_MAX + 2);
  if (o->count) {
    memcpy(keys, o->keys, sizeof *keys * o->count);
    memcpy(values, o->values, sizeof *values * o->count);
  } else {
    values[o->count++] = lasting(c, c->in[1].value);
  }
  keys[o->count] = key_source(c);
  values[o->count++] = lasting(c, c->in[2].value);
  o->keys = keys;
  o->values = values;
  return OK;
}

/* What was put under this key, the last time; or under any. */
static const struct flow_value *noted(const struct op_call *c, const struct object_shapes *o) {
  for (uint32_t i = o ? o->count : 0; i > 1; i--)
    if (o->keys[i - 1] == key_source(c))
      return &o->values[i - 1];
  return o && o->count > 1 ? &o->values[o->count - 1] : NULL;
}

static status output_like(struct op_call *c, struct flow_node *n, const struct flow_value *x, bool batch) {
  dim dims[LIMIT_RANK];
  if (!x && c->in[0].maker && !op_in_region(c))
    return fail(INVALID_ARGUMENT, "nothing was put into the map '%s'", c->in[0].maker->name);
  if (!x)
    return fail(UNIMPLEMENTED, "the rank of what is in the map is not known while compiling");
  if (x->rank + batch > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", x->rank + batch);
  if (batch)
    dims[0] = op_new_symbol(c);
  for (int d = 0; d < x->rank; d++)
    dims[d + batch] = x->dims[d] == NO_DIM ? op_new_symbol(c) : x->dims[d];
  op_host_output(c, n, 0, x->rank + batch, dims);
  return OK;
}

status build_tensor_map_lookup(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  return output_like(c, n, noted(c, lower_object(c->lw, c->in[0].maker)), false);
}

status build_tensor_map_keys(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  const struct object_shapes *o = lower_object(c->lw, c->in[0].maker);
  return output_like(c, n, o && o->count ? o->values : NULL, true);
}
