/* ops_graph.c: constants, placeholders, identities and what exists for its edges only. */
#include <stdlib.h>
#include <string.h>

#include "base/tensor.h"
#include "ir/graph/function.h"
#include "ir/lower/lower.h"
#include "ir/ops/arrange.h"
#include "ir/kernel/formula_words.h"
#include "ir/lower/lower_walk.h"

status build_const(struct op_call *c) {
  const struct attr_value *a = node_attr(c->node, "value");
  if (!a || a->kind != ATTR_TENSOR)
    return fail(INVALID_ARGUMENT, "no attribute 'value'");
  const struct constant *k = a->tensor;
  if (k->dtype != op_output_dtype(c, 0))
    return fail(INVALID_ARGUMENT, "Type mismatch between value (%s) and dtype (%s)", dtype_name(k->dtype),
                dtype_name(op_output_dtype(c, 0)));
  dim dims[LIMIT_RANK];
  for (int i = 0; i < k->rank; i++)
    dims[i] = op_dim(c, k->dims[i]);
  op_set_output(c, 0, op_constant(c, k->dtype, k->rank, dims, k->data));
  return OK;
}

/* Nothing is fed: that is wrong once its elements are used, in a step that comes to it. Often only its shape is, or it belongs to a side of
 * a cond that is not taken: then the call is dropped, or skipped. */
status build_placeholder(struct op_call *c) {
  const struct edge self = {(uint32_t)(c->node - op_frame(c)->graph->nodes.items), 0};
  enum dtype dtype = op_output_dtype(c, 0);
  int rank;
  dim dims[LIMIT_RANK];
  if (dtype == DTYPE_RESOURCE || dtype == DTYPE_VARIANT || !lower_feed_has_rank(op_frame(c)->graph, self))
    return lower_refuse_unfed(c->node);
  TRY(lower_feed_shape(c->lw, op_frame(c)->graph, self, &rank, dims));
  struct flow_node *n = op_emit(c, FLOW_HOST, false);
  n->host = "not_fed";
  n->attrs = ARENA_NEW(op_arena(c), struct flow_attr);
  n->attrs[0] = (struct flow_attr){"dtype", {.kind = ATTR_TYPE, .i = dtype}};
  n->attr_count = 1;
  op_set_output(c, 0, op_add_output(c, n, dtype, rank, dims));
  op_note_unfed(c);
  return OK;
}

/* A reference stays one; a value passes. What is read from a reference, `w/read` of a TensorFlow 1 variable, shares its memory. */
static status pass_through(struct op_call *c, uint32_t i) {
  struct bound b = c->in[i];
  bool ref_out = c->node->output_dtypes[i] > DTYPE_REF || op_output_dtype(c, i) == DTYPE_RESOURCE;
  if (b.var && !b.value && ref_out) {
    c->out[i] = b;
    return OK;
  }
  value_id v;
  TRY(op_input(c, i, &v));
  bool reference = b.var && !b.value && op_value(c, v)->dtype != DTYPE_RESOURCE;
  c->out[i] =
    (struct bound){.value = v, .maker = b.maker, .shares = reference ? b.var : b.shares, .after = reference || b.shares ? b.after : 0};
  return OK;
}
status build_identity(struct op_call *c) { return pass_through(c, 0); }
status build_guarantee_const(struct op_call *c) {
  if (op_output_dtype(c, 0) == DTYPE_RESOURCE)
    return fail(INVALID_ARGUMENT, "Input tensor cannot be a resource variable handle.");
  return pass_through(c, 0);
}
status build_identity_n(struct op_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++)
    TRY(pass_through(c, i));
  return OK;
}

#define LATE_REFERENCES 12 /* each is a condition on whatever uses them */

static struct element is_index(struct formula *f, struct element a, struct element b, struct element c) {
  (void)c;
  return EQ(a, b);
}

/* Reference `from` or one behind it, under conditions on the index: a reference is a variable's number here, so that whatever uses it is
 * there for each. */
static status select_late(struct op_call *c, value_id index, uint32_t from, struct bound *out) {
  if (from + 2 >= c->in_count) {
    *out = c->in[from + 1];
    return OK;
  }
  int64_t number = from;
  struct bound rest;
  const value_id in[] = {index, op_constant_i64s(c, DTYPE_INT32, 0, NULL, &number, 1)};
  value_id taken;
  TRY(op_map(c, in, 2, DTYPE_BOOL, is_index, &taken));
  struct op_call others = *c;
  others.guards = guards_add(c->lw, c->guards, (struct flow_guard){taken, false});
  TRY(select_late(&others, index, from + 1, &rest));
  *out = bound_alternatives(c, taken, rest, c->in[from + 1]);
  return OK;
}

static status check_select(struct op_call *c, value_id index) {
  struct kb kb;
  kb_begin(&kb, c, DTYPE_INT32);
  kb.effect = true;
  expr_id at = kb_index(&kb, kb_load(&kb, kb_in(&kb, index), NULL)), count = kb_int(&kb, c->in_count - 1);
  kb_check(&kb, kb_and(&kb, expr_binary(kb.k, SCALAR_LE, kb_int(&kb, 0), at), kb_lt(&kb, at, count)), INVALID_ARGUMENT,
           "Index must be in the range [0, %d) but got %d", count, at);
  return kb_finish(&kb);
}

/* One of several references. */
status build_ref_select(struct op_call *c) {
  value_id index;
  int64_t which;
  int count;
  dim *known;
  TRY(op_input(c, 0, &index));
  if (op_value(c, index)->rank != 0)
    return fail(INVALID_ARGUMENT, "Index must be a scalar, but it has shape %s",
                op_shape_text(c, op_value(c, index)->rank, op_value(c, index)->dims));
  TRY(op_known_elements(c, index, &known, &count));
  if (known[0] == NO_DIM || op_dim_value(c, known[0]) < 0) {
    if (c->in_count - 1 > LATE_REFERENCES)
      return fail(UNIMPLEMENTED, "one of %u references, which only the step chooses: at most %d are possible", c->in_count - 1,
                  LATE_REFERENCES);
    TRY(check_select(c, index));
    return select_late(c, index, 0, &c->out[0]);
  }
  which = op_dim_value(c, known[0]);
  if (which < 0 || which + 1 >= c->in_count)
    return fail(INVALID_ARGUMENT, "Index must be in the range [0, %u) but got %lld", c->in_count - 1, (long long)which);
  c->out[0] = c->in[which + 1];
  return OK;
}

status build_noop(struct op_call *c) {
  (void)c;
  return OK;
}

status build_ensure_shape(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  const struct attr_shape *shape = node_attr_shape(c->node, "shape");
  if (shape) {
    bool fits = shape->rank == x.rank;
    for (int i = 0; i < x.rank && fits; i++)
      fits = shape->dims[i] < 0 || dim_equal(op_dims(c), x.dims[i], op_dim(c, shape->dims[i])) != 0;
    if (!fits) {
      const char *want = "[";
      for (int i = 0; i < shape->rank; i++)
        want = shape->dims[i] < 0 ? arena_printf(op_arena(c), "%s%s?", want, i ? "," : "")
                                  : arena_printf(op_arena(c), "%s%s%lld", want, i ? "," : "", (long long)shape->dims[i]);
      return fail(INVALID_ARGUMENT, "Shape of tensor %s %s is not compatible with expected shape %s].", c->node->name,
                  op_shape_text(c, x.rank, x.dims), want);
    }
    for (int i = 0; i < x.rank; i++)
      if (shape->dims[i] >= 0)
        TRY(op_equal_dims(c, x.dims[i], op_dim(c, shape->dims[i]), "Shape of tensor is not compatible with expected shape"));
  }
  op_set_output(c, 0, v);
  return OK;
}

/* Whether a device text names the task that the node is on: what it leaves out fits any. */
static bool task_is_named(const char *assigned, const char *text, size_t size) {
  for (size_t at = 0; at < size;) {
    size_t length = text[at] == '/' ? 1 : 0;
    while (at + length < size && text[at + length] != '/')
      length++;
    bool is_task = length > 5 && (memcmp(text + at, "/job:", 5) == 0 || memcmp(text + at, "/task:", 6) == 0);
    const char *part = is_task && assigned ? memmem(assigned, strlen(assigned), text + at, length) : NULL;
    if (is_task && (!part || (part[length] && part[length] != '/')))
      return false;
    at += length;
  }
  return true;
}

status build_partitioned_call(struct op_call *c) {
  const struct attr_value *f = node_attr(c->node, "f");
  if (!f || f->kind != ATTR_FUNC)
    return fail(INVALID_ARGUMENT, "no attribute 'f'");
  const struct function *function = function_find(op_graph(c), f->func->name);
  if (!function)
    return fail(INVALID_ARGUMENT, "Failed to find function \"%s\" in function library", f->func->name);
  if (function_has_lists(function))
    return fail(INVALID_ARGUMENT, "Function %s has an argument or result that is a list: such a call takes single tensors only",
                f->func->name);
  return lower_call_selected(c, f->func->name, f->func->attrs, f->func->attr_count);
}

status build_symbolic_gradient(struct op_call *c) {
  return lower_call_function(c, "SymbolicGradient", c->node->attrs, c->node->attr_count);
}

status build_bitcast(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  struct flow_value x = *op_value(c, v);
  enum dtype dtype = op_output_dtype(c, 0);
  size_t from = dtype_size(x.dtype), to = dtype_size(dtype);
  dim dims[LIMIT_RANK];
  int rank = x.rank;
  memcpy(dims, x.dims, sizeof dims);
  if (from > to) {
    if (rank == LIMIT_RANK)
      return fail(UNIMPLEMENTED, "a result of rank %d", rank + 1);
    dims[rank++] = op_dim(c, (int64_t)(from / to));
  } else if (from < to) {
    if (rank == 0 || dim_equal(op_dims(c), dims[rank - 1], op_dim(c, (int64_t)(to / from))) == 0)
      return fail(INVALID_ARGUMENT, "Cannot bitcast from %s to %s: the last dimension must be %zu", dtype_name(x.dtype), dtype_name(dtype),
                  to / from);
    TRY(op_equal_dims(c, dims[rank - 1], op_dim(c, (int64_t)(to / from)), "the last dimension"));
    rank--;
  }
  op_set_output(c, 0, op_alias(c, v, dtype, rank, dims));
  return OK;
}

/* Whether a device's name ends in a number other than 0: "/device:CPU:1". */
static bool is_another_number(const struct string_view *device) {
  uint64_t at = device->size;
  bool other = false;
  for (; at > 0 && device->data[at - 1] >= '0' && device->data[at - 1] <= '9'; at--)
    other = other || device->data[at - 1] != '0';
  return other && at > 0 && device->data[at - 1] == ':';
}

/* The function runs where the call is placed: a target on another task would need the call to be placed there. */
status build_remote_call(struct op_call *c) {
  const struct attr_value *f = node_attr(c->node, "f");
  value_id target;
  TRY(op_input(c, 0, &target));
  const struct flow_value *t = op_value(c, target);
  if (!f || f->kind != ATTR_FUNC)
    return fail(INVALID_ARGUMENT, "no attribute 'f'");
  if (!t->data || t->rank != 0)
    return fail(UNIMPLEMENTED, "a target that is not known while compiling");
  const struct string_view *name = t->data;
  if (!task_is_named(c->node->assigned, name->data, name->size))
    return fail(UNIMPLEMENTED, "a function on another task ('%.*s')", (int)name->size, name->data);
  if (is_another_number(name))
    return fail(INTERNAL, "Currently don't support instantiating functions on device: %.*s", (int)name->size, name->data);
  struct op_call inner = *c;
  inner.in++;
  inner.in_count--;
  status s = lower_call_as_written(&inner, f->func);
  op_go_on(c, &inner);
  return s;
}

/* A value that nobody uses, where a function needs a result: zeros, none where a size is not known. */
status build_fake_param(struct op_call *c) {
  const struct attr_shape *said = node_attr_shape(c->node, "shape");
  int rank = said ? said->rank : 0;
  enum dtype dtype = op_output_dtype(c, 0);
  if (dtype == DTYPE_RESOURCE || dtype == DTYPE_VARIANT || rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a value of dtype %s and rank %d", dtype_name(dtype), rank);
  struct shape shape = {.rank = rank};
  dim dims[LIMIT_RANK];
  for (int i = 0; i < rank; i++) {
    shape.dims[i] = said->dims[i] < 0 ? 0 : said->dims[i];
    dims[i] = op_dim(c, shape.dims[i]);
  }
  if (shape_count(&shape) < 0)
    return fail(INVALID_ARGUMENT, "%s is no shape of a tensor", shape_text(&shape));
  return op_zeros(c, rank, dims);
}

status build_deep_copy(struct op_call *c) {
  value_id v;
  TRY(op_input(c, 0, &v));
  TRY(op_copy(c, v, &v));
  op_set_output(c, 0, v);
  return OK;
}

/* Which of the listed kinds of device the node is on: a CPU. */
status build_device_index(struct op_call *c) {
  const struct attr_value *names = node_attr(c->node, "device_names");
  int64_t index = 0, count = names ? names->list.count : 0;
  while (index < count && strcmp(names->list.items[index].s.data, "CPU") != 0)
    index++;
  op_set_output(c, 0, op_constant_i64s(c, DTYPE_INT32, 0, NULL, &index, 1));
  return OK;
}
