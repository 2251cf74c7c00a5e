/* ops_host.c: ops that are one call into the runtime. Most of them are rows HOST of ops.def, with a text for the shapes of what they give:
 *
 *   output ; output ; ...   the last one's is repeated
 *   output:  =2      the shape of input 2            *       all inputs broadcast
 *            [?,2]   a matrix of new size by 2       =0[?]   the shape of input 0, then a new size
 *            @       a handle
 * Sizes that depend on data are new symbols, which the runtime binds from what the call gives. */
#include "ir/lower/host_call.h"

#include <stdlib.h>
#include <string.h>

#include "ir/lower/lower_walk.h"
#include "ir/ops/op_rows.h"

/* ---- the call ---- */

void op_host_attrs(struct op_call *c, struct flow_node *n) {
  const struct op_def *def = c->node->def;
  n->attrs = ARENA_ARRAY(op_arena(c), struct flow_attr, def->attr_count + 1u);
  for (uint32_t i = 0; i < def->attr_count; i++) {
    const struct attr_value *value = node_attr(c->node, def->attrs[i].name);
    if (value && value->kind != ATTR_NONE && value->kind != ATTR_FUNC && value->kind != ATTR_PLACEHOLDER)
      n->attrs[n->attr_count++] = (struct flow_attr){def->attrs[i].name, *value};
  }
}

void op_host_add_attr(struct op_call *c, struct flow_node *n, const char *name, struct attr_value value) {
  struct flow_attr *attrs = ARENA_ARRAY(op_arena(c), struct flow_attr, n->attr_count + 1);
  if (n->attr_count)
    memcpy(attrs, n->attrs, n->attr_count * sizeof *attrs);
  attrs[n->attr_count++] = (struct flow_attr){name, value};
  n->attrs = attrs;
}

void op_host_pass_attr(struct op_call *c, struct flow_node *n, const char *name) {
  const struct attr_value *value = node_attr(c->node, name);
  if (value)
    op_host_add_attr(c, n, name + 1, *value);
}

status op_host(struct op_call *c, enum host_kind kind, const char *host, struct flow_node **out) {
  for (uint32_t i = 0; i < c->in_count; i++) {
    if (c->in[i].var && !c->in[i].value && i < c->node->input_count && c->node->input_dtypes[i] == DTYPE_RESOURCE)
      return fail(INVALID_ARGUMENT, "Trying to access resource '%s' using the wrong type: it is a variable",
                  op_var(c, c->in[i].var - 1)->name);
    TRY(op_input(c, i, &c->in[i].value)); /* may read variables: before the call is there */
  }
  struct flow_node *n = op_emit(c, FLOW_HOST, kind != HOST_PURE);
  n->host = host ? host : c->node->op;
  n->stateful = kind >= HOST_CHANGES;
  n->blocks = kind == HOST_WAITS;
  for (uint32_t i = 0; i < c->in_count; i++)
    vec_push(&n->inputs, c->in[i].value);
  op_host_attrs(c, n);
  *out = n;
  return OK;
}

void op_host_output(struct op_call *c, struct flow_node *n, uint32_t i, int rank, const dim *dims) {
  bool handle = i < c->node->output_count && c->node->output_dtypes[i] == DTYPE_REF + DTYPE_STRING; /* what TensorFlow 1 calls a resource */
  op_set_output(c, i, op_add_output(c, n, handle ? DTYPE_RESOURCE : op_output_dtype(c, i), rank, dims));
}

status op_host_output_shaped(struct op_call *c, struct flow_node *n, uint32_t i, const struct attr_shape *shape) {
  if (shape->unknown_rank)
    return fail(UNIMPLEMENTED, "the rank of output %u is not known while compiling", i);
  if (shape->rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "output %u of rank %d", i, shape->rank);
  dim dims[LIMIT_RANK];
  for (int d = 0; d < shape->rank; d++)
    dims[d] = shape->dims[d] < 0 ? op_new_symbol(c) : op_dim(c, shape->dims[d]);
  op_host_output(c, n, i, shape->rank, dims);
  return OK;
}

status op_any_rank(struct op_call *c, value_id whole, rank_set ranks, struct bound *out) {
  struct flow_node *n;
  struct bound in = {.value = whole}, rank;
  struct op_call ask = *c;
  ask.in = &in;
  ask.in_count = 1;
  ask.out = &rank;
  op_value(c, whole)->any_rank = true;
  TRY(op_host(&ask, HOST_PURE, "tensor_rank", &n));
  value_id count = op_add_output(&ask, n, DTYPE_INT32, 0, NULL);
  return lower_ranks(c, whole, count, ranks, out);
}

/* ---- the words ---- */

static status input_shape(struct op_call *c, uint32_t i, int *rank, dim *dims) {
  if (i >= c->in_count || !c->in[i].value)
    return fail(INVALID_ARGUMENT, "input %u has no value", i);
  const struct flow_value *x = op_value(c, c->in[i].value);
  *rank = x->rank;
  memcpy(dims, x->dims, sizeof *dims * LIMIT_RANK);
  return OK;
}

/* The shape that all inputs broadcast to. Scalars go with everything. */
static status broadcast_shape(struct op_call *c, const struct flow_node *n, int *rank, dim *dims) {
  *rank = 0;
  for (uint32_t i = 0; i < n->inputs.count; i++) {
    struct flow_value x = *op_value(c, n->inputs.items[i]);
    if (x.rank == 0)
      continue;
    if (*rank == 0) {
      *rank = x.rank;
      memcpy(dims, x.dims, sizeof x.dims);
      continue;
    }
    if (x.rank != *rank)
      return fail(INVALID_ARGUMENT, "Input shapes do not match: %s vs. %s", op_shape_text(c, *rank, dims),
                  op_shape_text(c, x.rank, x.dims));
    for (int d = 0; d < x.rank; d++)
      if (op_dim_value(c, dims[d]) == 1)
        dims[d] = x.dims[d];
      else if (op_dim_value(c, x.dims[d]) != 1)
        TRY(op_equal_dims(c, dims[d], x.dims[d], "Input shapes do not match"));
  }
  return OK;
}

static status bracket_shape(struct op_call *c, const char *word, int *rank, dim *dims) {
  for (const char *p = word; *p == '[' || *p == ',';) {
    p++;
    if (*p == ']')
      break;
    if (*rank == LIMIT_RANK)
      return fail(UNIMPLEMENTED, "a result of rank %d", LIMIT_RANK + 1);
    char *end = (char *)(uintptr_t)p + 1;
    dims[(*rank)++] = *p == '?' ? op_new_symbol(c) : op_dim(c, strtol(p, &end, 10));
    p = end;
  }
  return OK;
}

static status add_output(struct op_call *c, struct flow_node *n, uint32_t i, const char *word) {
  int rank = 0;
  dim dims[LIMIT_RANK];
  if (*word == '@') {
    c->out[i] = (struct bound){.value = op_add_output(c, n, DTYPE_RESOURCE, 0, NULL), .maker = c->node};
    return OK;
  }
  if (*word == '*')
    TRY(broadcast_shape(c, n, &rank, dims));
  if (*word == '=') {
    char *end;
    uint32_t input = (uint32_t)strtoul(word + 1, &end, 10);
    rank = op_value(c, n->inputs.items[input])->rank;
    memcpy(dims, op_value(c, n->inputs.items[input])->dims, sizeof dims);
    word = end;
  }
  if (*word == '[')
    TRY(bracket_shape(c, word, &rank, dims));
  op_host_output(c, n, i, rank, dims);
  return OK;
}

status build_host(struct op_call *c) {
  const struct host_row *row = OP_ROW(c, host_row);
  const char *word = row->outputs;
  struct flow_node *n;
  TRY(op_host(c, row->kind, NULL, &n));
  for (uint32_t i = 0; i < c->out_count; i++) {
    TRY(add_output(c, n, i, word));
    const char *next = strchr(word, ';');
    word = next ? next + 1 : word;
  }
  return OK;
}

/* ---- those whose shapes need more ---- */

/* Marks the axes that are known; false where one is not. */
static status join_axes(struct op_call *c, value_id v, int rank, bool *reduced, int *count, bool *known) {
  dim *axes;
  TRY(op_known_elements(c, v, &axes, count));
  *known = true;
  for (int i = 0; i < *count; i++) {
    int axis;
    int64_t value;
    if (axes[i] == NO_DIM || !dim_is_const(op_dims(c), axes[i], &value)) {
      *known = false;
      continue;
    }
    if (op_axis(c, value, rank, &axis) != OK)
      return fail(OUT_OF_RANGE, "Invalid reduction dimension %lld for input with %d dimension(s)", (long long)value, rank);
    if (reduced[axis])
      return fail(INVALID_ARGUMENT, "Duplicate reduction dimension %d", axis);
    reduced[axis] = true;
  }
  return *count > rank ? fail(INVALID_ARGUMENT, "%d axes of %d", *count, rank) : OK;
}

/* The axes are usually known; then the shape is, too. Else their number says the rank. */
status build_reduce_join(struct op_call *c) {
  int rank, count, out_rank = 0;
  dim dims[LIMIT_RANK], kept[LIMIT_RANK];
  bool reduced[LIMIT_RANK] = {false}, keep = node_attr_int(c->node, "keep_dims", 0) != 0, known;
  value_id axes;
  struct flow_node *n;
  TRY(op_input(c, 1, &axes));
  TRY(op_host(c, HOST_PURE, NULL, &n));
  TRY(input_shape(c, 0, &rank, dims));
  TRY(join_axes(c, axes, rank, reduced, &count, &known));
  for (int d = 0; d < rank && known; d++)
    if (!reduced[d])
      kept[out_rank++] = dims[d];
    else if (keep)
      kept[out_rank++] = op_dim(c, 1);
  for (int d = 0; d < rank - (keep ? 0 : count) && !known; d++)
    kept[out_rank++] = op_new_symbol(c);
  op_host_output(c, n, 0, out_rank, kept);
  return OK;
}

/* [num_segments] and what segment_ids leave of the inputs' shape */
status build_unsorted_segment_join(struct op_call *c) {
  int rank, ids_rank, count;
  dim dims[LIMIT_RANK], ids[LIMIT_RANK], out[LIMIT_RANK], *segments;
  struct flow_node *n;
  TRY(input_shape(c, 0, &rank, dims));
  TRY(input_shape(c, 1, &ids_rank, ids));
  if (ids_rank > rank || ids_rank == 0)
    return fail(INVALID_ARGUMENT, "segment_ids' shape %s is no prefix of inputs' %s", op_shape_text(c, ids_rank, ids),
                op_shape_text(c, rank, dims));
  for (int d = 0; d < ids_rank; d++)
    TRY(op_equal_dims(c, dims[d], ids[d], "inputs and segment_ids"));
  TRY(op_elements(c, c->in[2].value, &segments, &count));
  if (count != 1)
    return fail(INVALID_ARGUMENT, "Number of segments must be a scalar");
  TRY(op_host(c, HOST_PURE, NULL, &n));
  out[0] = segments[0];
  for (int d = ids_rank; d < rank; d++)
    out[d - ids_rank + 1] = dims[d];
  op_host_output(c, n, 0, rank - ids_rank + 1, out);
  return OK;
}

/* The value passes; what is printed is an effect beside it. */
status build_print(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_CHANGES, NULL, &n));
  c->out[0] = (struct bound){.value = n->inputs.items[0], .after = 0};
  return OK;
}

/* "[text 3 ...]": what is known of the data of an assertion. */
static const char *assert_text(struct op_call *c) {
  const char *text = "";
  for (uint32_t i = 1; i < c->in_count; i++) {
    value_id v;
    int64_t number;
    const char *item = "?";
    if (op_input(c, i, &v) == OK) {
      const struct flow_value *x = op_value(c, v);
      if (x->rank == 0 && x->data && x->dtype == DTYPE_STRING)
        item = ((const struct string_view *)x->data)->data;
      else if (x->rank == 0 && x->content && dim_is_const(op_dims(c), x->content[0], &number))
        item = arena_printf(op_arena(c), "%lld", (long long)number);
      else
        item = arena_printf(op_arena(c), "%s%s", dtype_name(x->dtype), op_shape_text(c, x->rank, x->dims));
    }
    text = arena_printf(op_arena(c), "%s%s%s", text, i > 1 ? " " : "", item);
  }
  return text;
}

/* An assertion that is known to hold says nothing; one that always fails is an error of the build: it comes before errors of what it
 * guards. */
status build_assert(struct op_call *c) {
  value_id condition;
  struct flow_node *n;
  TRY(op_input(c, 0, &condition));
  const struct flow_value *x = op_value(c, condition);
  if (x->rank != 0)
    return fail(INVALID_ARGUMENT, "In[0] should be a scalar: %s", op_shape_text(c, x->rank, x->dims));
  if (x->data && *(const bool *)x->data)
    return OK;
  if (x->data && !op_in_region(c) && !op_in_trial(c) && !c->guards)
    return fail(INVALID_ARGUMENT, "assertion failed: [%s]", assert_text(c));
  return op_host(c, HOST_CHANGES, NULL, &n);
}

/* Fixed length rows: as many elements as fit, where the length is known. */
status build_decode_padded_raw(struct op_call *c) {
  int rank, count;
  dim dims[LIMIT_RANK], *length;
  value_id fixed;
  struct flow_node *n;
  TRY(op_input(c, 1, &fixed));
  TRY(op_elements(c, fixed, &length, &count)); /* in front of the call: what it gives has that size */
  TRY(op_host(c, HOST_PURE, NULL, &n));
  TRY(input_shape(c, 0, &rank, dims));
  if (rank == LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a result of rank %d", rank + 1);
  dim size = op_dim(c, (int64_t)dtype_size(op_output_dtype(c, 0)));
  dims[rank] = dim_floordiv(op_dims(c), length[0], size);
  op_host_output(c, n, 0, rank + 1, dims);
  return OK;
}

/* The strings with pos and len, which have one shape; the call broadcasts. */
status build_substr(struct op_call *c) {
  int rank;
  dim dims[LIMIT_RANK];
  value_id in[2];
  struct flow_node *n;
  TRY(op_input(c, 0, &in[0]));
  TRY(op_input(c, 1, &in[1]));
  TRY(op_broadcast(c, in[0], in[1], &rank, dims));
  TRY(op_host(c, HOST_PURE, NULL, &n));
  op_host_output(c, n, 0, rank, dims);
  return OK;
}

/* Row splits, one more than strings; code points, and where each began. */
status build_unicode_decode(struct op_call *c) {
  int rank;
  dim dims[LIMIT_RANK];
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  TRY(input_shape(c, 0, &rank, dims));
  dim splits = dim_add(op_dims(c), op_count(c, rank, dims), op_dim(c, 1)), codes = op_new_symbol(c);
  op_host_output(c, n, 0, 1, &splits);
  for (uint32_t i = 1; i < c->out_count; i++)
    op_host_output(c, n, i, 1, &codes);
  return OK;
}
