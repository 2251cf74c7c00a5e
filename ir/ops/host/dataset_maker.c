/* dataset_maker.c: which node makes a dataset, and what its elements are, as far as the graph says it. */
#include "ir/ops/host/dataset_maker.h"

#include <string.h>

#include "ir/graph/function.h"
#include "ir/ops/op_rows.h"
#include "ir/lower/host_call.h"

const struct attr_func *dataset_function_at(const struct node *node, const char *attr) {
  const struct attr_value *value = node->def ? node_attr(node, attr) : NULL;
  return value && value->kind == ATTR_FUNC ? value->func : NULL;
}

int dataset_boxed_rank(const struct node *maker) {
  if (is_op(maker, "RaggedTensorToVariant"))
    return node_attr_int(maker, "batched_input", 0) != 0;
  return is_op(maker, "SerializeSparse") ? 1 : is_op(maker, "SerializeManySparse") ? 2 : -1;
}

struct frame *dataset_frame(const struct op_call *c, const struct node *node) {
  struct frame *fr = op_newest_frame(c);
  while (fr && !(node >= fr->graph->nodes.items && node < fr->graph->nodes.items + fr->graph->nodes.count))
    fr = fr->older;
  return fr;
}

static bool is_one_of(const struct node *node, const char *const *ops, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (is_op(node, ops[i]))
      return true;
  return false;
}

/* Ops that hand a dataset on; of several that are packed the first stands for all, whose elements are alike. */
static bool hands_on(const struct node *node) {
  static const char *const ops[] = {"Identity", "WrapDatasetVariant", "UnwrapDatasetVariant", "Pack"};
  return node->input_count && is_one_of(node, ops, sizeof ops / sizeof *ops);
}

const struct node *dataset_maker_at(const struct frame *fr, struct edge e) {
  const struct node *node = &fr->graph->nodes.items[e.node];
  for (int i = 0; i < 32; i++) {
    const struct bound *bound = fr->lowered[e.node] && fr->bound[e.node] ? &fr->bound[e.node][e.port] : NULL;
    if (bound && bound->maker)
      return bound->maker;
    if (!hands_on(node))
      break;
    e = node->inputs[0];
    node = &fr->graph->nodes.items[e.node];
  }
  return node;
}

const struct node *dataset_maker(const struct op_call *c, const struct node *node, uint32_t i) {
  const struct frame *fr = dataset_frame(c, node);
  return fr && i < node->input_count ? dataset_maker_at(fr, node->inputs[i]) : NULL;
}

bool dataset_spec(const struct node *dataset, const struct attr_value **types, const struct attr_value **shapes) {
  bool known = dataset && dataset->def;
  *types = known ? node_attr(dataset, "output_types") : NULL;
  if (known && !*types)
    *types = node_attr(dataset, "Toutput_types");
  *shapes = *types ? node_attr(dataset, "output_shapes") : NULL;
  return *shapes && (*shapes)->kind == ATTR_LIST && (*shapes)->list.count == (*types)->list.count;
}

/* The shape of component i of the elements: at least its rank, where that is known. */
static const struct attr_value *component_shape(struct op_call *c, const struct node *dataset, const struct attr_value *shapes, uint32_t i,
                                                bool is_boxed) {
  int rank = shapes->list.items[i].shape.unknown_rank && !is_boxed ? dataset_element_rank(c, dataset, i, false) : -1;
  if (rank < 0)
    return &shapes->list.items[i];
  struct attr_value *shape = ARENA_NEW(op_arena(c), struct attr_value);
  int64_t *dims = ARENA_ARRAY(op_arena(c), int64_t, (size_t)rank + 1);
  for (int d = 0; d < rank; d++)
    dims[d] = -1;
  shape->kind = ATTR_SHAPE;
  shape->shape = (struct attr_shape){.rank = rank, .dims = dims};
  return shape;
}

/* A node that stands for the dataset of one component of a window. */
static const struct node *window_maker(struct op_call *c, const struct node *window, uint32_t component) {
  const struct attr_value *types, *shapes;
  const struct node *source = dataset_maker(c, window, 0);
  if (!dataset_spec(source, &types, &shapes) || component >= types->list.count)
    return NULL;
  struct node *made = arena_copy(op_arena(c), source, sizeof *source);
  struct attr *attrs = ARENA_ARRAY(op_arena(c), struct attr, 2);
  attrs[0] = (struct attr){"output_shapes", {.kind = ATTR_LIST}};
  attrs[0].value.list.items = component_shape(c, source, shapes, component, types->list.items[component].i == DTYPE_VARIANT);
  attrs[1] = (struct attr){"output_types", {.kind = ATTR_LIST}};
  attrs[1].value.list.items = &types->list.items[component];
  attrs[0].value.list.count = attrs[1].value.list.count = 1;
  made->attrs = attrs;
  made->attr_count = 2;
  made->input_count = 0;
  return made;
}

const struct attr_func *dataset_mapping(const struct node *dataset) {
  return strstr(dataset->op, "Map") && !is_op(dataset, "FlatMapDataset") ? dataset_function_at(dataset, "f") : NULL;
}

/* What gives result i of a function, behind what hands it on. */
static struct edge result_edge(const struct instance *body, uint32_t i) {
  struct edge e = body->rets[i];
  for (int step = 0; step < 16 && e.node >= body->arg_count && is_op(&body->graph->nodes.items[e.node], "Identity"); step++)
    e = body->graph->nodes.items[e.node].inputs[0];
  return e;
}

bool dataset_body(const struct op_call *c, const char *name, const struct attr_func *func, struct instance *out) {
  const struct function *function = func ? function_find(op_graph(c), func->name) : NULL;
  return function && function_instantiate(op_graph(c), function, func->attrs, func->attr_count, name, op_arena(c), out) == OK;
}

int dataset_handed_result(struct op_call *c, const struct node *dataset, const struct attr_func *func, uint32_t i, int *rank) {
  struct instance body;
  *rank = -1;
  if (!dataset_body(c, dataset->name, func, &body))
    return -1;
  uint32_t at = i < body.ret_count ? result_edge(&body, i).node : 0;
  bool is_handed = i < body.ret_count && at < body.arg_count;
  if (i < body.ret_count && !is_handed)
    *rank = dataset_boxed_rank(&body.graph->nodes.items[at]);
  instance_deinit(&body);
  return is_handed ? (int)at : -1;
}

bool dataset_hands_on(const struct node *dataset) {
  static const char *const passing[] = {
    "TakeDataset",      "SkipDataset",         "RepeatDataset",    "PrefetchDataset",          "ShuffleDatasetV3",
    "ShuffleDataset",   "FilterDataset",       "OptionsDataset",   "CacheDatasetV2",           "CacheDataset",
    "ShardDataset",     "BatchDatasetV2",      "UnbatchDataset",   "ConcatenateDataset",       "UniqueDataset",
    "TakeWhileDataset", "IgnoreErrorsDataset", "RebatchDatasetV2", "AssertCardinalityDataset", "DirectedInterleaveDataset"};
  return is_one_of(dataset, passing, sizeof passing / sizeof *passing);
}

const struct node *dataset_handed(struct op_call *c, const struct node *dataset) {
  return dataset_maker(c, dataset, is_op(dataset, "DirectedInterleaveDataset"));
}

const struct node *dataset_zipped(struct op_call *c, const struct node *dataset, uint32_t *i) {
  for (uint32_t k = 0; k < dataset->input_count; k++) {
    const struct attr_value *types, *shapes;
    const struct node *part = dataset_maker(c, dataset, k);
    if (!dataset_spec(part, &types, &shapes) || *i < types->list.count)
      return part;
    *i -= types->list.count;
  }
  return NULL;
}

/* A dataset's own graph, which a SavedModel keeps of one that an object holds, does not say the shape of what these give. */
bool dataset_gives_scalars(const struct node *dataset) {
  static const char *const scalars[] = {"TextLineDataset", "TFRecordDataset",          "TFRecordDatasetV2",
                                        "RangeDataset",    "FixedLengthRecordDataset", "FixedLengthRecordDatasetV2",
                                        "RandomDataset",   "RandomDatasetV2"};
  return is_one_of(dataset, scalars, sizeof scalars / sizeof *scalars);
}

/* What makes component i of a scan's elements where its function gives the same also as a state, as a loop over a dataset that may end
 * early does: a list stays what it was first. */
static const struct node *scanned_maker(struct op_call *c, const struct node *scan, uint32_t i) {
  const struct attr_value *list = node_attr(scan, "Tstate");
  uint32_t states = list && list->kind == ATTR_LIST ? list->list.count : 0;
  struct instance body;
  if (!dataset_body(c, scan->name, dataset_function_at(scan, "f"), &body))
    return NULL;
  uint32_t state = i + states < body.ret_count ? 0 : states;
  for (; state < states; state++) {
    const struct edge made = result_edge(&body, i + states), kept = result_edge(&body, state);
    if (made.node == kept.node && made.port == kept.port)
      break;
  }
  instance_deinit(&body);
  return state < states ? dataset_maker(c, scan, 1 + state) : NULL;
}

/* Behind datasets that hand elements on, and functions that hand the component through. The state of a reduction is what it was first. */
const struct node *dataset_component_maker(struct op_call *c, const struct node *dataset, uint32_t i) {
  for (int step = 0; step < 32; step++) {
    const struct attr_func *func = dataset_mapping(dataset);
    const struct node *source = func ? dataset_maker(c, dataset, 0) : dataset_hands_on(dataset) ? dataset_handed(c, dataset) : NULL;
    if (!source)
      break;
    int rank, argument = func ? dataset_handed_result(c, dataset, func, i, &rank) : (int)i;
    if (argument < 0)
      return NULL;
    dataset = source;
    i = (uint32_t)argument;
  }
  if (is_op(dataset, "TensorDataset") || is_op(dataset, "TensorSliceDataset"))
    return dataset_maker(c, dataset, i);
  if (is_op(dataset, "ReduceDataset"))
    return dataset_maker(c, dataset, 1 + i);
  if (is_op(dataset, "ScanDataset"))
    return scanned_maker(c, dataset, i);
  return is_op(dataset, "WindowDataset") ? window_maker(c, dataset, i) : NULL;
}
