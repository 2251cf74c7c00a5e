/* lower_value.c: what builders ask of integer values: their elements, as dims or as numbers. */
#include <string.h>

#include "ir/lower/lower_state.h"

static int64_t element_at(const struct flow_value *v, int64_t i) {
  const char *p = (const char *)v->data + i * (int64_t)dtype_size(v->dtype);
  switch (v->dtype) {
  case DTYPE_INT64:
  case DTYPE_UINT64: return *(const int64_t *)(const void *)p;
  case DTYPE_INT32:
  case DTYPE_QINT32: return *(const int32_t *)(const void *)p;
  case DTYPE_UINT32: return *(const uint32_t *)(const void *)p;
  case DTYPE_INT16: return *(const int16_t *)(const void *)p;
  case DTYPE_UINT16: return *(const uint16_t *)(const void *)p;
  case DTYPE_INT8: return *(const int8_t *)p;
  default: return *(const uint8_t *)p;
  }
}

status op_const_size(struct op_call *c, dim d, const char *what, int64_t *out) {
  if (d != NO_DIM && dim_is_const(c->lw->dims, dim_resolve(c->lw->dims, d), out))
    return OK;
  c->lw->wants.size = d;
  return fail(UNIMPLEMENTED, "%s is not known while compiling", what);
}

static status element_count(struct op_call *c, const struct flow_value *v, int *count) {
  int64_t n = 1, d;
  for (int i = 0; i < v->rank; i++) {
    if (op_const_size(c, v->dims[i], "a size", &d) != OK)
      return fail(UNIMPLEMENTED, "the number of elements of a shape is not known while compiling: %s", op_shape_text(c, v->rank, v->dims));
    n *= d;
  }
  if (n > LIMIT_CONTENT)
    return fail(UNIMPLEMENTED, "a shape argument of %lld elements", (long long)n);
  *count = (int)n;
  return OK;
}

status op_known_elements(struct op_call *c, value_id id, dim **out, int *count) {
  struct flow_value v = *op_value(c, id);
  TRY(element_count(c, &v, count));
  dim *d = ARENA_ARRAY(c->lw->arena, dim, *count + 1);
  for (int i = 0; i < *count; i++)
    d[i] = v.data ? op_dim(c, element_at(&v, i)) : v.content ? dim_resolve(c->lw->dims, v.content[i]) : NO_DIM;
  *out = d;
  return OK;
}

bool op_has_known_elements(struct op_call *c, value_id id, dim **out, int *count) {
  dim asked = c->lw->wants.size;
  bool known = op_known_elements(c, id, out, count) == OK;
  c->lw->wants.size = known ? c->lw->wants.size : asked;
  return known;
}

/* A bind runs wherever its value is made: others ask for the same elements under other guards. */
static void guard_as_made(struct op_call *c, struct flow_node *n, value_id v) {
  flow_id maker = op_value(c, v)->producer;
  const struct flow_node *made = maker ? c->lw->walk.flow->nodes.items[maker] : NULL;
  n->guards = made ? made->guards : NULL;
  n->guard_count = made ? made->guard_count : 0;
}
/* The elements that are not known are bound, all with one node, when the value is there. */
status op_elements(struct op_call *c, value_id id, dim **out, int *count) {
  TRY(op_known_elements(c, id, out, count));
  bool all = true;
  for (int i = 0; i < *count; i++)
    all = all && (*out)[i] != NO_DIM;
  if (all)
    return OK;
  struct flow_node *n = op_emit(c, FLOW_BIND, false);
  vec_push(&n->inputs, id);
  guard_as_made(c, n, id);
  uint32_t *binds = ARENA_ARRAY(c->lw->arena, uint32_t, *count);
  dim *content = ARENA_ARRAY(c->lw->arena, dim, *count);
  for (int i = 0; i < *count; i++) {
    dim s = op_new_symbol(c);
    dim_is_symbol(c->lw->dims, s, &binds[i]);
    if ((*out)[i] == NO_DIM)
      (*out)[i] = s;
    content[i] = (*out)[i];
  }
  n->binds = binds;
  n->bind_count = (uint32_t)*count;
  op_value(c, id)->content = content; /* whoever asks next gets the same symbols */
  return OK;
}

status op_given_shape(struct op_call *c, value_id v, const char *what, dim **out, int *rank) {
  struct flow_value x = *op_value(c, v);
  if (x.rank != 1)
    return fail(INVALID_ARGUMENT, "%s must be a vector of {int32,int64}, got shape %s", what, op_shape_text(c, x.rank, x.dims));
  TRY(op_elements(c, v, out, rank));
  for (int i = 0; i < *rank; i++)
    op_note_given(c, (*out)[i]);
  return OK;
}

status op_const_ints(struct op_call *c, value_id id, const char *what, int64_t **out, int *count) {
  dim *d;
  TRY(op_known_elements(c, id, &d, count));
  *out = ARENA_ARRAY(c->lw->arena, int64_t, *count + 1);
  for (int i = 0; i < *count; i++)
    if (d[i] == NO_DIM || !dim_is_const(c->lw->dims, d[i], &(*out)[i])) {
      c->lw->wants.value = id;
      return fail(UNIMPLEMENTED, "%s must be known while compiling", what);
    }
  return OK;
}

status op_const_int(struct op_call *c, value_id id, const char *what, int64_t *out) {
  int64_t *values;
  int count;
  TRY(op_const_ints(c, id, what, &values, &count));
  if (count != 1)
    return fail(INVALID_ARGUMENT, "%s must be a scalar, not %s", what, op_shape_text(c, op_value(c, id)->rank, op_value(c, id)->dims));
  *out = values[0];
  return OK;
}

status op_const_axis(struct op_call *c, value_id id, const char *what, int count, int64_t *out) {
  status s = op_const_int(c, id, what, out);
  c->lw->wants.axis = s != OK && c->lw->wants.value == id;
  c->lw->wants.axis_count = count;
  return s;
}
