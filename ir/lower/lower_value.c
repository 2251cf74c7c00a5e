/* lower_value.c: what builders ask of values and dims: inputs, contents, broadcasting, constants. */
#include <string.h>

#include "ir/lower/lower_state.h"

/* ---- inputs and outputs ---- */

void op_add_control(struct op_call *c, flow_id id) {
  for (uint32_t i = 0; i < c->controls.count; i++)
    if (c->controls.items[i] == id)
      return;
  if (id)
    vec_push(&c->controls, id);
}

/* What the memory of the variable that a value shares holds now, in the value's shape. */
static status read_again(struct op_call *c, struct bound b, value_id *out) {
  TRY(lower_read_variable(c, (struct bound){.var = b.shares, .after = b.after}, out));
  const struct flow_value was = *op_value(c, b.value);
  if (was.producer && c->lw->walk.flow->nodes.items[was.producer]->op == FLOW_ALIAS)
    *out = op_alias(c, *out, was.dtype, was.rank, was.dims);
  return OK;
}

status op_input(struct op_call *c, uint32_t i, value_id *out) {
  struct bound b = c->in[i];
  if (b.alternatives)
    return fail(UNIMPLEMENTED, "input %u has a rank that only the step knows", i);
  if (b.rank_open != NO_DIM && strcmp(c->node->op, "Reshape") != 0) {
    c->lw->wants.size = b.rank_open;
    return fail(UNIMPLEMENTED, "the rank of input %u is not known while compiling: it was reduced over axes that are not", i);
  }
  bool shares = b.value && b.shares && (b.rereads || c->controls.count);
  if (shares && lower_may_have_changed(c->lw, b.shares - 1) && op_var(c, b.shares - 1)->task == c->node->task)
    return read_again(c, b, out);
  if (b.value) {
    *out = b.value;
    return OK;
  }
  if (b.var)
    return lower_read_variable(c, b, out);
  return fail(INVALID_ARGUMENT, "input %u is never computed", i);
}

status op_read(const struct op_call *c, struct bound b, value_id *out) {
  struct op_call one = *c;
  one.in = &b;
  one.in_count = 1;
  one.guards = b.guards;
  memset(&one.controls, 0, sizeof one.controls); /* they grow: a list of its own */
  for (uint32_t i = 0; i < c->controls.count; i++)
    vec_push(&one.controls, c->controls.items[i]);
  status s = op_input(&one, 0, out);
  vec_free(&one.controls);
  return s;
}

status op_input_var(struct op_call *c, uint32_t i, uint32_t *out) {
  struct bound b = c->in[i];
  if (!b.var)
    return fail(INVALID_ARGUMENT, "input %u is no variable", i);
  op_add_control(c, b.after);
  *out = b.var - 1;
  return OK;
}

uint32_t op_arg_index(const struct op_call *c, const char *name) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < c->node->def->input_count; i++) {
    const struct op_arg *arg = &c->node->def->inputs[i];
    if (strcmp(arg->name, name) == 0)
      return at;
    if (arg->number_attr)
      at += (uint32_t)node_attr_int(c->node, arg->number_attr, 1);
    else if (arg->list_attr)
      at += node_attr(c->node, arg->list_attr) ? node_attr(c->node, arg->list_attr)->list.count : 0;
    else
      at++;
  }
  return UINT32_MAX;
}

bool op_takes(const struct op_call *c, const char *name) { return op_arg_index(c, name) != UINT32_MAX; }

void op_set_output(struct op_call *c, uint32_t i, value_id v) {
  c->too_many = c->too_many || i >= c->out_count;
  if (i < c->out_count)
    c->out[i] = (struct bound){.value = v};
}
enum dtype op_output_dtype(const struct op_call *c, uint32_t i) {
  return i < c->node->output_count ? dtype_base(c->node->output_dtypes[i]) : DTYPE_INVALID;
}

struct flow_node *op_emit(struct op_call *c, enum flow_op op, bool effect) {
  flow_id id;
  struct flow_node *n = flow_add_node(c->lw->walk.flow, op, c->node->name, c->node->op, c->node->task, &id);
  n->stateful = effect && op != FLOW_READ;
  if (c->guards) {
    n->guards = c->guards->list;
    n->guard_count = c->guards->count;
  }
  if (effect) {
    for (uint32_t i = 0; i < c->controls.count; i++)
      vec_push(&n->controls, c->controls.items[i]);
    if (c->effect)
      vec_push(&n->controls, c->effect);
    c->effect = id;
  }
  return n;
}

value_id op_add_output(struct op_call *c, struct flow_node *n, enum dtype dtype, int rank, const dim *dims) {
  struct flow *f = c->lw->walk.flow;
  value_id v = flow_add_value(f, dtype, rank, dims);
  for (flow_id id = f->nodes.count - 1; id > 0; id--)
    if (f->nodes.items[id] == n) {
      f->values.items[v].producer = id;
      break;
    }
  f->values.items[v].index = n->outputs.count;
  vec_push(&n->outputs, v);
  return v;
}

value_id op_constant(struct op_call *c, enum dtype dtype, int rank, const dim *dims, const void *data) {
  struct flow_node *n = op_emit(c, FLOW_CONST, false);
  value_id v = op_add_output(c, n, dtype, rank, dims);
  op_value(c, v)->data = data;
  return v;
}

value_id op_constant_i64s(struct op_call *c, enum dtype dtype, int rank, const int64_t *sizes, const int64_t *values, uint32_t count) {
  dim dims[LIMIT_RANK];
  for (int i = 0; i < rank; i++)
    dims[i] = op_dim(c, sizes[i]);
  size_t size = dtype_size(dtype);
  char *data = arena_alloc_aligned(c->lw->arena, size * count + 16, 64);
  for (uint32_t i = 0; i < count; i++)
    memcpy(data + size * i, &values[i], size);
  return op_constant(c, dtype, rank, dims, data);
}

value_id op_alias(struct op_call *c, value_id v, enum dtype dtype, int rank, const dim *dims) {
  struct flow_value x = *op_value(c, v);
  bool same = x.dtype == dtype && x.rank == rank;
  for (int i = 0; i < rank && same; i++)
    same = dim_equal(c->lw->dims, x.dims[i], dims[i]) == 1;
  if (same)
    return v;
  struct flow_node *n = op_emit(c, FLOW_ALIAS, false);
  vec_push(&n->inputs, v);
  value_id r = op_add_output(c, n, dtype, rank, dims);
  op_value(c, r)->data = x.data;
  op_value(c, r)->content = x.dtype == dtype ? x.content : NULL;
  return r;
}

/* ---- contents ---- */

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

value_id op_dims_value(struct op_call *c, enum dtype dtype, int rank, const dim *dims, int count) {
  struct kb kb;
  kb_begin(&kb, c, dtype);
  dim length = op_dim(c, count);
  uint32_t o = kb_out(&kb, dtype, rank, &length);
  for (int i = 0; i < count; i++) {
    expr_id at = kb_int(&kb, i);
    kb_store(&kb, o, &at, real_element(expr_cast(kb.k, dtype, kb_dim(&kb, dims[i]))));
  }
  value_id v = kb_value(&kb, o);
  status s = kb_finish(&kb);
  (void)s; /* a kernel without checks cannot fail */
  return v;
}

/* ---- dims ---- */

dim op_dim(struct op_call *c, int64_t value) { return dim_const(c->lw->dims, value); }
int64_t op_dim_value(struct op_call *c, dim d) {
  int64_t v;
  return d != NO_DIM && dim_is_const(c->lw->dims, dim_resolve(c->lw->dims, d), &v) ? v : -1;
}
dim op_count(struct op_call *c, int rank, const dim *dims) {
  dim n = op_dim(c, 1);
  for (int i = 0; i < rank; i++)
    n = dim_mul(c->lw->dims, n, dims[i]);
  return n;
}
dim op_new_symbol(struct op_call *c) { return dim_symbol(c->lw->dims, arena_printf(c->lw->arena, "n%u", dims_symbol_count(c->lw->dims))); }

static void emit_equality_check(struct op_call *c, dim a, dim b, const char *what) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT64);
  kb.effect = true;
  expr_id x = kb_dim(&kb, a), y = kb_dim(&kb, b);
  kb_check(&kb, expr_binary(kb.k, SCALAR_EQ, x, y), INVALID_ARGUMENT, arena_printf(c->lw->arena, "%s: %%d and %%d must agree", what), x, y);
  status s = kb_finish(&kb);
  (void)s;
  c->guard = c->effect;
}

bool op_dim_is_late(struct op_call *c, dim d) {
  return dim_has_symbol_from(c->lw->dims, dim_resolve(c->lw->dims, d), c->lw->facts.feed_symbols);
}

bool op_may_unify(struct op_call *c, dim a, dim b) {
  uint32_t x, y;
  bool is_a = dim_is_symbol(c->lw->dims, dim_resolve(c->lw->dims, a), &x),
       is_b = dim_is_symbol(c->lw->dims, dim_resolve(c->lw->dims, b), &y);
  uint32_t newer = is_a && is_b ? (x > y ? x : y) : is_a ? x : y;
  uint32_t later = newer < c->lw->facts.feed_symbols ? c->lw->facts.feed_symbols : newer + 1;
  dim formula = dim_resolve(c->lw->dims, is_a ? b : a);
  if (is_a != is_b && (dim_has_symbol(c->lw->dims, formula, newer) || dim_has_symbol_from(c->lw->dims, formula, later)))
    /* n is not min(n, 1); a feed's size cannot wait for what is computed from it, nor a computed one for those after it: it is bound
     * before they are */
    return false;
  return (is_a || is_b) && !c->guards && newer >= c->lw->facts.branch_symbols;
}

status op_equal_dims(struct op_call *c, dim a, dim b, const char *what) {
  dim_isolate(c->lw->dims, &a, &b);
  int equal = dim_equal(c->lw->dims, a, b);
  if (equal == 1)
    return OK;
  if (equal == 0)
    return fail(INVALID_ARGUMENT, "%s: %s and %s must agree", what, dim_text(c->lw->dims, dim_resolve(c->lw->dims, a)),
                dim_text(c->lw->dims, dim_resolve(c->lw->dims, b)));
  if (!op_may_unify(c, a, b) || !dim_unify(c->lw->dims, a, b))
    emit_equality_check(c, a, b, what);
  return OK;
}

bool op_dim_is_outer(struct op_call *c, dim d) {
  if (d == NO_DIM)
    return false;
  return !c->lw->walk.region_depth || !dim_has_symbol_from(c->lw->dims, dim_resolve(c->lw->dims, d), c->lw->facts.outer_symbols);
}

struct flow_value op_lasting_shape(struct op_call *c, const struct flow_value *x, bool row) {
  int first = row && x->rank > 0;
  struct flow_value shape = {.dtype = x->dtype, .rank = x->rank - first};
  for (int d = 0; d < shape.rank; d++)
    shape.dims[d] = op_dim_is_outer(c, x->dims[d + first]) ? x->dims[d + first] : NO_DIM;
  return shape;
}

const char *op_shape_text(struct op_call *c, int rank, const dim *dims) {
  const char *text = "[";
  for (int i = 0; i < rank; i++)
    text = arena_printf(c->lw->arena, "%s%s%s", text, i ? "," : "", dim_text(c->lw->dims, dim_resolve(c->lw->dims, dims[i])));
  return arena_printf(c->lw->arena, "%s]", text);
}

status op_axis(struct op_call *c, int64_t axis, int rank, int *out) {
  (void)c;
  if (axis < -rank || axis >= rank)
    return fail(INVALID_ARGUMENT, "axis %lld is not in [%d,%d)", (long long)axis, -rank, rank);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return OK;
}
