/* ops_dataset.c: datasets and iterators. A dataset is made by calls into the runtime where the graph makes it. What an iterator does for
 * an element runs where the element is asked for: IteratorGetNext holds the functions of all datasets that its iterator may read from,
 * as regions, under the names of their nodes. They are found by walking back from the iterator's initializers; functions within
 * functions are found while their bodies are lowered. */
#include <string.h>

#include "ir/graph/function.h"
#include "ir/lower/lower_frame.h"
#include "ir/ops/op_rows.h"
#include "ir/ops/host/dataset_function.h"
#include "ir/ops/host/dataset_maker.h"
#include "ir/lower/host_call.h"

/* ---- what a function takes ---- */

/* The functions that a dataset may have, in the order of their captured values among the inputs. */
enum function_takes { TAKES_ELEMENT, TAKES_KEY, TAKES_GROUP, TAKES_STATE };
static const struct function_kind {
  const char *attr, *captures; /* captures: a list attribute, as long as its captured values */
  bool is_only;                /* found by the node's name alone */
  enum function_takes takes;
} function_kinds[] = {
  {"f", "Targuments", true, TAKES_ELEMENT},
  {"predicate", "Targuments", true, TAKES_ELEMENT},
  {"key_func", "Tkey_func_other_arguments", false, TAKES_ELEMENT},
  {"init_func", "Tinit_func_other_arguments", false, TAKES_KEY},
  {"reduce_func", "Treduce_func_other_arguments", false, TAKES_GROUP},
  {"window_size_func", "Twindow_size_func_other_arguments", false, TAKES_KEY},
  {"finalize_func", "Tfinalize_func_other_arguments", false, TAKES_STATE},
  {"map_func", "Tmap_func_args", false, TAKES_ELEMENT},
  {"index_map_func", "Tindex_map_func_args", false, TAKES_KEY},
  {"shard_func", "Tshard_func_args", false, TAKES_ELEMENT},
};
#define FUNCTION_KINDS (sizeof function_kinds / sizeof *function_kinds)

/* The input that captured values begin with: behind the dataset, the state, and the path of what is saved. */
static uint32_t first_capture(const struct node *node) {
  const struct attr_value *states = node->def ? node_attr(node, "Tstate") : NULL;
  return 1 + (states && states->kind == ATTR_LIST ? states->list.count : 0) + (dataset_function_at(node, "shard_func") != NULL);
}

/* Some have a function that they do not use. */
static bool uses_function(const struct node *node, const char *attr) {
  return dataset_function_at(node, attr) && (strcmp(attr, "shard_func") != 0 || node_attr_int(node, "use_shard_func", 1));
}

/* Sizes that an element brings are other ones in the next, and may be 1: none is taken for another's. */
void dataset_function_add(struct op_call *c, struct dataset_function *f, struct flow_value shape, const struct node *maker) {
  for (int d = 0; d < shape.rank; d++)
    op_note_given(c, shape.dims[d]);
  vec_push(&f->args, (struct bound){.maker = maker});
  vec_push(&f->shapes, shape);
}

/* An index matrix, values, and a shape: a slice of a sparse tensor. */
static void add_sparse_slice(struct op_call *c, struct dataset_function *f, const struct node *dataset) {
  const struct frame *fr = dataset_frame(c, dataset);
  int shape_rank;
  dim shape_dims[LIMIT_RANK], entries = op_new_symbol(c), rank = NO_DIM;
  if (fr && fr->graph == op_graph(c) && lower_feed_shape(c->lw, fr->graph, dataset->inputs[2], &shape_rank, shape_dims) == OK &&
      shape_rank == 1 && op_dim_value(c, shape_dims[0]) > 0)
    rank = op_dim(c, op_dim_value(c, shape_dims[0]) - 1);
  rank = rank == NO_DIM ? op_new_symbol(c) : rank;
  struct flow_value indices = {.dtype = DTYPE_INT64, .rank = 2, .dims = {entries, rank}};
  struct flow_value values = {.dtype = (enum dtype)node_attr_int(dataset, "Tvalues", DTYPE_FLOAT), .rank = 1, .dims = {entries}};
  struct flow_value shape = {.dtype = DTYPE_INT64, .rank = 1, .dims = {rank}};
  dataset_function_add(c, f, indices, NULL);
  dataset_function_add(c, f, values, NULL);
  dataset_function_add(c, f, shape, NULL);
}

/* The rank of a component whose shape nobody says; -1: not known. A reduction's state is as it was first: what it becomes is checked when
 * its function is there. */
static int unsaid_rank(struct op_call *c, const struct node *dataset, uint32_t i, enum dtype dtype) {
  bool is_boxed = dtype == DTYPE_VARIANT;
  bool is_state = dataset == c->node && is_op(dataset, "ReduceDataset") && i + 1 < c->in_count && c->in[i + 1].value;
  return is_state && !is_boxed ? op_value(c, c->in[i + 1].value)->rank : dataset_element_rank(c, dataset, i, is_boxed);
}

/* The components of the elements of a dataset. */
static status add_components(struct op_call *c, struct dataset_function *f, const struct node *dataset) {
  const struct attr_value *types, *shapes;
  if (dataset && is_op(dataset, "SparseTensorSliceDataset")) {
    add_sparse_slice(c, f, dataset);
    return OK;
  }
  if (dataset && strstr(dataset->op, "MatchingFilesDataset")) {
    dataset_function_add(c, f, (struct flow_value){.dtype = DTYPE_STRING}, NULL);
    return OK;
  }
  if (!dataset_spec(dataset, &types, &shapes))
    return fail(UNIMPLEMENTED, "%s: the elements of its dataset are not known while compiling", f->name);
  for (uint32_t i = 0; i < types->list.count; i++) {
    const struct attr_shape *shape = &shapes->list.items[i].shape;
    struct flow_value value = {.dtype = (enum dtype)types->list.items[i].i, .rank = shape->rank};
    if (shape->unknown_rank)
      value.rank = unsaid_rank(c, dataset, i, value.dtype);
    value.any_rank = value.rank == DATASET_ANY_RANK;
    value.rank = value.any_rank ? 0 : value.rank;
    if (value.rank < 0 || value.rank > LIMIT_RANK)
      return fail(UNIMPLEMENTED, "%s: the rank of component %u of its dataset is not known while compiling", f->name, i);
    for (int d = 0; d < value.rank; d++)
      value.dims[d] = shape->unknown_rank || shape->dims[d] < 0 ? op_new_symbol(c) : op_dim(c, shape->dims[d]);
    dataset_function_add(c, f, value, value.dtype == DTYPE_VARIANT ? dataset_component_maker(c, dataset, i) : NULL);
  }
  return OK;
}

/* What is captured from beside the dataset is passed in; its sizes are those it has then. */
static void add_captured(struct op_call *c, struct dataset_function *f, struct bound in, const struct flow_value *shape) {
  if (in.var && !in.value) {
    vec_push(&f->args, in);
    vec_push(&f->shapes, (struct flow_value){0});
    return;
  }
  struct flow_value value = {.dtype = shape->dtype, .rank = shape->rank};
  for (int d = 0; d < shape->rank; d++)
    value.dims[d] = op_dim_value(c, shape->dims[d]) >= 0 ? shape->dims[d] : op_new_symbol(c);
  dataset_function_add(c, f, value, in.maker);
}

/* An input of a dataset that is made elsewhere, perhaps in another entry: handles are made again here, values are looked at for their
 * shapes. */
static status walked_input(struct op_call *c, const struct node *node, uint32_t i, struct bound *in, struct flow_value *shape) {
  struct frame *fr = dataset_frame(c, node);
  struct edge e = node->inputs[i];
  const struct node *from = fr ? &fr->graph->nodes.items[e.node] : NULL;
  if (!fr)
    return fail(UNIMPLEMENTED, "%s: a dataset whose function captures something, out of another function", node->name);
  shape->dtype = dtype_base(from->output_dtypes[e.port]);
  if (shape->dtype == DTYPE_VARIANT) { /* a dataset, or a boxed tensor */
    in->maker = dataset_maker_at(fr, e);
    shape->rank = in->maker && dataset_boxed_rank(in->maker) > 0 ? dataset_boxed_rank(in->maker) : 0;
    for (int d = 0; d < shape->rank; d++)
      shape->dims[d] = op_new_symbol(c);
    return OK;
  }
  bool is_known = fr->lowered[e.node] && fr->bound[e.node];
  if (is_known && fr->bound[e.node][e.port].value) { /* perhaps of the flow around this one: it is not read here */
    *in = fr->bound[e.node][e.port];
    *shape = fr->flow->values.items[in->value];
    return OK;
  }
  TRY(lower_check_feed(c->lw, fr, e));
  if (shape->dtype != DTYPE_RESOURCE && fr->graph == op_graph(c))
    return lower_feed_shape(c->lw, op_graph(c), e, &shape->rank, shape->dims);
  if (!is_known && (op_in_region(c) || fr->graph != op_graph(c)))
    return fail(UNIMPLEMENTED, "%s: a dataset that captures a handle, read within a function", from->name);
  if (!is_known)
    TRY(frame_lower_node(c->lw, fr, e.node));
  struct bound made = fr->bound[e.node][e.port];
  *in = (struct bound){.var = made.var, .maker = made.maker};
  return OK;
}

/* `own`: the node is being lowered, its inputs are c's; else it is walked over. */
static status add_inputs(struct op_call *c, struct dataset_function *f, uint32_t first, uint32_t count, bool own) {
  for (uint32_t i = first; i < first + count && i < f->node->input_count; i++) {
    struct bound in = {0};
    struct flow_value shape = {0};
    if (own)
      in = c->in[i];
    else
      TRY(walked_input(c, f->node, i, &in, &shape));
    if (own && in.value)
      shape = *op_value(c, in.value);
    add_captured(c, f, in, &shape);
  }
  return OK;
}

static uint32_t list_length(const struct node *node, const char *attr) {
  const struct attr_value *list = node_attr(node, attr);
  return list && list->kind == ATTR_LIST ? list->list.count : 0;
}

/* The state of a reduction has the shapes of its result: it may change within those. */
static status add_states(struct op_call *c, struct dataset_function *f, uint32_t count, bool own) {
  const struct attr_value *types, *shapes;
  if (!is_op(f->node, "ReduceDataset") || !dataset_spec(f->node, &types, &shapes) || types->list.count != count)
    return add_inputs(c, f, 1, count, own);
  return add_components(c, f, f->node);
}

/* State, element, captured values: in the order of the function's arguments. Those of a group take its key, or key and elements; where
 * groups have states, that of a group, or it and an element. */
static status add_arguments(struct op_call *c, struct dataset_function *f, const struct function_kind *kind, const struct node *source,
                            bool own) {
  const struct flow_value key = {.dtype = DTYPE_INT64}, dataset = {.dtype = DTYPE_VARIANT};
  bool reduces_states = kind->takes == TAKES_GROUP && dataset_function_at(f->node, "init_func");
  if (kind->takes == TAKES_STATE || reduces_states)
    f->state_of = arena_printf(op_arena(c), "%s:init_func", f->node->name);
  if (kind->takes == TAKES_STATE)
    return OK;
  if (kind->takes == TAKES_KEY || (kind->takes == TAKES_GROUP && !reduces_states)) {
    dataset_function_add(c, f, key, NULL);
    if (kind->takes == TAKES_GROUP)
      dataset_function_add(c, f, dataset, source);
    return OK;
  }
  if (kind->is_only)
    TRY(add_states(c, f, list_length(f->node, "Tstate"), own));
  return add_components(c, f, source);
}

static bool is_noted(const struct dataset_functions *all, const char *name) {
  for (uint32_t i = 0; i < all->list.count; i++)
    if (strcmp(all->list.items[i].name, name) == 0)
      return true;
  return false;
}

static status note_functions(struct op_call *c, const struct node *node, const struct node *source, bool own) {
  struct dataset_functions *all = op_datasets(c);
  uint32_t first = first_capture(node);
  for (size_t k = 0; k < FUNCTION_KINDS; k++) {
    const struct function_kind *kind = &function_kinds[k];
    struct dataset_function f = {.name = node->name, .node = node, .func = dataset_function_at(node, kind->attr)};
    if (!f.func || !uses_function(node, kind->attr))
      continue;
    if (!kind->is_only)
      f.name = arena_printf(op_arena(c), "%s:%s", node->name, kind->attr);
    uint32_t captures = list_length(node, kind->captures);
    if (!is_noted(all, f.name)) {
      TRY(add_arguments(c, &f, kind, source, own));
      TRY(add_inputs(c, &f, first, captures, own));
      vec_push(&all->list, f);
    }
    first += captures;
  }
  return OK;
}

/* ---- making datasets ---- */

/* How many captured values (not variables, which functions reach by themselves) the runtime passes on. */
static uint32_t count_values(const struct op_call *c, uint32_t first, uint32_t length) {
  uint32_t count = 0;
  for (uint32_t i = first; i < first + length && i < c->in_count; i++)
    count += c->in[i].value != NO_VALUE;
  return count;
}

/* "captures" of the only function, or "captures:NAME" for each. */
static void add_captures(struct op_call *c, struct flow_node *n) {
  uint32_t first = first_capture(c->node);
  for (size_t k = 0; k < FUNCTION_KINDS; k++) {
    const struct function_kind *kind = &function_kinds[k];
    if (!dataset_function_at(c->node, kind->attr))
      continue;
    uint32_t length = list_length(c->node, kind->captures);
    const char *name = kind->is_only ? "captures" : arena_printf(op_arena(c), "captures:%s", kind->attr);
    op_host_add_attr(c, n, name, (struct attr_value){.kind = ATTR_INT, .i = count_values(c, first, length)});
    first += length;
  }
}

/* How many values a function gives, where no attribute says it. */
static status add_result_count(struct op_call *c, struct flow_node *n, const char *attr, const char *name) {
  const struct attr_func *func = dataset_function_at(c->node, attr);
  const struct function *function = func ? function_find(op_graph(c), func->name) : NULL;
  uint32_t count = 0;
  if (!func)
    return OK;
  if (!function)
    return fail(NOT_FOUND, "the graph has no function '%s'", func->name);
  TRY(function_ret_count(function, func->attrs, func->attr_count, op_arena(c), &count));
  op_host_add_attr(c, n, name, (struct attr_value){.kind = ATTR_INT, .i = count});
  return OK;
}

/* Whether a function makes datasets of the files that its argument names, or one that flattens datasets in it does: what TensorFlow
 * shares out to workers by files. `seen`: those that were asked. */
static bool reads_files(const struct graph *graph, const struct attr_func *func, struct map *seen) {
  const struct function *function = func ? function_find(graph, func->name) : NULL;
  const struct function_body *body = function && map_insert(seen, func->name, 1) ? function->body : NULL;
  bool reads = false;
  for (uint32_t i = 0; body && i < body->node_count && !reads; i++) {
    const struct function_node *n = &body->nodes[i];
    bool is_reader = strstr(n->op, "RecordDataset") || strstr(n->op, "TextLineDataset");
    bool is_flattening = strstr(n->op, "FlatMapDataset") || strstr(n->op, "InterleaveDataset");
    reads = is_reader && n->input_count && strncmp(n->inputs[0], "args_0", 6) == 0;
    for (uint32_t k = 0; k < n->attr_count && !reads && is_flattening; k++)
      reads = n->attrs[k].value.kind == ATTR_FUNC && reads_files(graph, n->attrs[k].value.func, seen);
  }
  return reads;
}

static void note_files(struct op_call *c, struct flow_node *n) {
  struct map seen = {0};
  if (reads_files(op_graph(c), dataset_function_at(c->node, "f"), &seen))
    op_host_add_attr(c, n, "reads_files", (struct attr_value){.kind = ATTR_INT, .i = 1});
  map_deinit(&seen);
}

/* Seeds or a cache whose handle is a constant belong to a dataset that an object of the graph holds: it is made when that is loaded, and
 * others that were made of it have the same handle. */
static void note_kept(struct op_call *c, struct flow_node *n) {
  for (uint32_t i = 0; i < c->in_count; i++) {
    const struct flow_value *in = c->in[i].value ? op_value(c, c->in[i].value) : NULL;
    if (in && in->dtype == DTYPE_RESOURCE && in->data) {
      op_host_add_attr(c, n, "kept", (struct attr_value){.kind = ATTR_INT, .i = *(const int64_t *)in->data});
      return;
    }
  }
}

status build_dataset(struct op_call *c) {
  struct flow_node *n = op_emit(c, FLOW_HOST, false);
  n->host = c->node->op;
  for (uint32_t i = 0; i < c->in_count; i++)
    if (c->in[i].value)
      vec_push(&n->inputs, c->in[i].value);
  op_host_attrs(c, n);
  add_captures(c, n);
  note_files(c, n);
  note_kept(c, n);
  TRY(add_result_count(c, n, "init_func", "states"));
  TRY(add_result_count(c, n, "map_func", "mapped"));
  c->out[0] = (struct bound){.value = op_add_output(c, n, DTYPE_VARIANT, 0, NULL), .maker = c->node};
  return op_datasets(c) ? note_functions(c, c->node, c->in_count ? c->in[0].maker : NULL, true) : OK;
}

/* ---- the functions behind an iterator ---- */

static bool walked_before(struct dataset_functions *all, const struct node *node) {
  for (uint32_t i = 0; i < all->walked.count; i++)
    if (all->walked.items[i] == node)
      return true;
  vec_push(&all->walked, node);
  return false;
}

static status walk_dataset(struct op_call *c, const struct node *node, int depth);

/* What makes a dataset's input, or, where several are packed, all that do. */
static status walk_input(struct op_call *c, const struct node *node, uint32_t i, int depth) {
  const struct frame *fr = dataset_frame(c, node);
  const struct node *from = fr ? &fr->graph->nodes.items[node->inputs[i].node] : NULL;
  if (!from || !(is_op(from, "Pack") || is_op(from, "Identity")))
    return walk_dataset(c, dataset_maker(c, node, i), depth + 1);
  for (uint32_t k = 0; k < from->input_count; k++)
    TRY(walk_input(c, from, k, depth));
  return OK;
}

static status walk_dataset(struct op_call *c, const struct node *node, int depth) {
  if (!node || walked_before(op_datasets(c), node) || !dataset_frame(c, node))
    return OK;
  if (depth > 200)
    return fail(UNIMPLEMENTED, "%s: datasets from datasets more than 200 deep", node->name);
  for (uint32_t i = 0; i < node->input_count; i++)
    if (dtype_base(node->input_dtypes[i]) == DTYPE_VARIANT)
      TRY(walk_input(c, node, i, depth));
  return note_functions(c, node, dataset_maker(c, node, 0), false);
}

static void note_factory(struct op_call *c, const struct node *maker) {
  struct dataset_function f = {.name = maker->name, .node = maker, .func = dataset_function_at(maker, "dataset_factory")};
  vec_push(&op_datasets(c)->list, f);
}

/* All initializers of the iterator that `maker` makes; an iterator that is known by a string may be any. */
static status walk_initializers(struct op_call *c, const struct node *maker) {
  bool any = strncmp(maker->op, "IteratorFromStringHandle", 24) == 0;
  for (struct frame *fr = op_newest_frame(c); fr; fr = fr->older)
    for (uint32_t i = 0; i < fr->graph->nodes.count; i++) {
      const struct node *node = &fr->graph->nodes.items[i];
      if (is_op(node, "MakeIterator") && node->input_count == 2 && (any || dataset_maker(c, node, 1) == maker))
        TRY(walk_dataset(c, dataset_maker(c, node, 0), 0));
      if (any && is_op(node, "OneShotIterator"))
        note_factory(c, node);
    }
  return OK;
}

/* ---- the next element ---- */

/* The dataset whose elements the call gives; NULL: it is not known. */
static const struct node *read_dataset(struct op_call *c) {
  const struct node *maker = c->in[0].maker;
  if (!maker || dtype_base(c->node->input_dtypes[0]) == DTYPE_VARIANT)
    return maker;
  for (struct frame *fr = op_newest_frame(c); fr; fr = fr->older)
    for (uint32_t i = 0; i < fr->graph->nodes.count; i++) {
      const struct node *node = &fr->graph->nodes.items[i];
      if (is_op(node, "MakeIterator") && node->input_count == 2 && dataset_maker(c, node, 1) == maker)
        return dataset_maker(c, node, 0);
    }
  return NULL;
}

/* A component of a rank that the graph does not say. */
static status set_unsaid(struct op_call *c, struct flow_node *n, uint32_t i) {
  dim dims[LIMIT_RANK];
  const struct node *maker = c->in[0].maker;
  bool is_own = is_op(c->node, "ReduceDataset");
  bool by_factory = maker && is_op(maker, "OneShotIterator") && op_output_dtype(c, i) == DTYPE_VARIANT;
  int rank = by_factory ? dataset_factory_rank(c, maker, i) : unsaid_rank(c, is_own ? c->node : read_dataset(c), i, op_output_dtype(c, i));
  if (rank == DATASET_ANY_RANK) {
    op_host_output(c, n, i, 0, NULL);
    return op_any_rank(c, c->out[i].value, ANY_RANK, &c->out[i]);
  }
  if (rank < 0)
    return fail(UNIMPLEMENTED, "the rank of output %u is not known while compiling", i);
  for (int d = 0; d < rank; d++)
    dims[d] = op_new_symbol(c);
  op_host_output(c, n, i, rank, dims);
  return OK;
}

static status set_components(struct op_call *c, struct flow_node *n) {
  const struct attr_value *shapes = node_attr(c->node, "output_shapes");
  if (is_op(c->node, "IteratorGetNextAsOptional")) {
    op_host_output(c, n, 0, 0, NULL);
    return OK;
  }
  for (uint32_t i = 0; i < c->out_count; i++) {
    if (!shapes || shapes->kind != ATTR_LIST || i >= shapes->list.count)
      return fail(INVALID_ARGUMENT, "component %u has no shape", i);
    if (shapes->list.items[i].shape.unknown_rank)
      TRY(set_unsaid(c, n, i));
    else
      TRY(op_host_output_shaped(c, n, i, &shapes->list.items[i].shape));
    if (is_op(c->node, "ReduceDataset") && i + 1 < c->in_count) /* a list is still what it was first */
      c->out[i].maker = c->in[i + 1].maker;
  }
  return OK;
}

static status collect_functions(struct op_call *c, const struct node *maker) {
  if (!maker)
    return fail(UNIMPLEMENTED, "an iterator that is not known while compiling");
  if (!is_op(maker, "OneShotIterator"))
    return walk_initializers(c, maker);
  note_factory(c, maker);
  return OK;
}

/* The functions of the dataset that is input 0, and the node's own. */
static status collect_own_functions(struct op_call *c, const struct node *unused) {
  (void)unused;
  uint32_t at = is_op(c->node, "InitializeTableFromDataset");
  const struct node *source = c->in[at].maker ? c->in[at].maker : dataset_maker(c, c->node, at);
  TRY(walk_dataset(c, source, 0));
  return note_functions(c, c->node, source, true);
}

/* The call with those inputs that are values: variables are reached by the functions themselves. */
static void emit_mover(struct op_call *c, struct flow_node **out) {
  struct flow_node *n = op_emit(c, FLOW_HOST, true);
  n->host = c->node->op;
  n->stateful = true;
  for (uint32_t i = 0; i < c->in_count; i++)
    if (c->in[i].value)
      vec_push(&n->inputs, c->in[i].value);
  op_host_attrs(c, n);
  *out = n;
}

/* A call that moves through datasets, with the functions it may need. */
static status build_mover(struct op_call *c, status (*collect)(struct op_call *, const struct node *)) {
  struct dataset_functions all = {0}, *outer = op_collect_datasets(c, &all);
  struct flow_list flows = {0};
  struct flow_node *n;
  status s = collect(c, c->in[0].maker);
  if (s == OK)
    s = dataset_functions_build(c, &flows);
  if (s == OK) {
    emit_mover(c, &n);
    dataset_functions_attach(c, n, &all, &flows);
    s = set_components(c, n);
  }
  op_collect_datasets(c, outer);
  vec_free(&flows);
  dataset_functions_free(&all);
  return s;
}

status build_iterator_next(struct op_call *c) { return build_mover(c, collect_functions); }
status build_dataset_question(struct op_call *c) { return build_mover(c, collect_own_functions); }

/* A handle, and for an anonymous iterator what deletes it. */
status build_iterator(struct op_call *c) {
  struct flow_node *n;
  TRY(op_host(c, HOST_PURE, NULL, &n));
  c->out[0] = (struct bound){.value = op_add_output(c, n, DTYPE_RESOURCE, 0, NULL), .maker = c->node};
  if (c->out_count > 1)
    c->out[1] = (struct bound){.value = op_add_output(c, n, DTYPE_VARIANT, 0, NULL)};
  return OK;
}
