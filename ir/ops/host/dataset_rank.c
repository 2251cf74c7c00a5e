/* dataset_rank.c: the rank of components of a dataset's elements, found by walking back to what makes them, or boxes them: also into
 * functions that give datasets (of flat_map, interleave, group_by_window), whose arguments are elements of the dataset around them, or
 * datasets of these, or what they capture. */
#include <string.h>

#include "ir/graph/function.h"
#include "ir/ops/host/dataset_function.h"
#include "ir/ops/host/dataset_maker.h"
#include "ir/ops/op_rows.h"

#define DEPTH_MAX 32

/* A function that the walk is in. */
struct scope {
  const struct frame *frame; /* of its body, of which nothing is lowered: so that what makes datasets is found */
  const struct node *dataset;
  const struct scope *outer;
};
struct walk {
  struct op_call *c;
  const struct scope *scope;
  int depth;
  bool is_boxed;
};

static int rank_of(struct walk w, const struct node *dataset, uint32_t i);

/* ---- arguments of functions ---- */

/* The scope that an argument belongs to, and which it is; NULL: it is none. */
static const struct scope *scope_of(const struct walk *w, const struct node *node, uint32_t *index) {
  const struct scope *s = is_op(node, "_Arg") ? w->scope : NULL;
  while (s && (node < s->frame->graph->nodes.items || node >= s->frame->graph->nodes.items + s->frame->graph->nodes.count))
    s = s->outer;
  *index = s ? (uint32_t)(node - s->frame->graph->nodes.items) : 0;
  return s;
}

/* The dataset whose elements a function takes, from outside of it. */
static const struct node *leave(struct walk *w, const struct scope *s) {
  w->scope = s->outer;
  w->depth++;
  return dataset_maker(w->c, s->dataset, 0);
}

/* Component i of a dataset's elements is a dataset: its elements are component *i of the elements of the dataset that is returned; NULL:
 * that is not known. */
static const struct node *inside(struct walk *w, const struct node *dataset, uint32_t *i) {
  for (; dataset && w->depth < DEPTH_MAX; w->depth++) {
    uint32_t index;
    const struct scope *s = scope_of(w, dataset, &index);
    if (s && dataset_function_at(s->dataset, "reduce_func")) {
      dataset = leave(w, s);
    } else if (s) {
      const struct node *source = leave(w, s);
      dataset = source ? inside(w, source, &index) : NULL;
      *i = index;
    } else if (is_op(dataset, "WindowDataset")) {
      return dataset_maker(w->c, dataset, 0);
    } else {
      dataset = dataset_hands_on(dataset) ? dataset_handed(w->c, dataset) : NULL;
    }
  }
  return NULL;
}

/* Of the elements of a dataset that is an argument: a group, or a component of an element. */
static int rank_in_argument(struct walk w, const struct scope *s, uint32_t index, uint32_t i) {
  const struct node *source = leave(&w, s);
  if (!dataset_function_at(s->dataset, "reduce_func")) {
    source = source && i == 0 ? inside(&w, source, &index) : NULL;
    i = index;
  }
  return rank_of(w, source, i);
}

/* Of the value of input i of a node, where that is lowered. */
static int rank_of_value(const struct walk *w, const struct node *node, uint32_t i) {
  const struct frame *fr = dataset_frame(w->c, node);
  if (!fr || i >= node->input_count)
    return -1;
  struct edge e = node->inputs[i];
  value_id v = fr->lowered[e.node] && fr->bound[e.node] ? fr->bound[e.node][e.port].value : NO_VALUE;
  const struct flow_value *held = v ? &fr->flow->values.items[v] : NULL;
  return held && !held->any_rank ? held->rank : -1;
}

/* Of a tensor that is input i of a node, or that it boxes: also what is an argument there, a component of an element or captured. */
static int rank_of_input(struct walk w, const struct node *node, uint32_t i) {
  const struct attr_value *types, *shapes;
  uint32_t index;
  const struct node *maker = dataset_maker(w.c, node, i);
  const struct scope *s = maker ? scope_of(&w, maker, &index) : NULL;
  if (!s)
    return maker && w.is_boxed ? dataset_boxed_rank(maker) : rank_of_value(&w, node, i);
  const struct node *source = leave(&w, s);
  if (!dataset_spec(source, &types, &shapes) || index < types->list.count)
    return rank_of(w, source, index);
  return w.depth < DEPTH_MAX ? rank_of_input(w, s->dataset, 1 + index - types->list.count) : -1;
}

/* ---- datasets ---- */

/* Of the elements of the dataset that a function gives. */
static int rank_in_function(struct walk w, const struct node *dataset, const struct attr_func *func, uint32_t i) {
  struct op_call *c = w.c;
  struct instance body;
  if (!dataset_body(c, dataset->name, func, &body))
    return -1;
  struct frame *fr = frame_create(c->lw, body.graph);
  const struct scope scope = {fr, dataset, w.scope};
  w.scope = &scope;
  w.depth++;
  int rank = body.ret_count == 1 ? rank_of(w, dataset_maker_at(fr, body.rets[0]), i) : -1;
  frame_drop(c->lw, fr);
  instance_deinit(&body);
  return rank;
}

/* The function whose results are datasets, which are read behind each other or in turn; NULL: there is none. */
static const struct attr_func *gives_datasets(const struct node *dataset) {
  const struct attr_func *func = dataset_function_at(dataset, "reduce_func");
  bool reads = is_op(dataset, "FlatMapDataset") || strstr(dataset->op, "Interleave");
  return func || !reads ? func : dataset_function_at(dataset, "f");
}

/* The arguments of a function that takes nothing but the components of the source's elements: false where not all ranks are known. */
static bool add_elements(struct walk w, const struct node *source, struct dataset_function *f) {
  struct instance body;
  if (!dataset_body(w.c, f->name, f->func, &body))
    return false;
  bool known = true;
  for (uint32_t k = 0; known && k < body.arg_count; k++) {
    struct flow_value value = {.dtype = dtype_base(body.graph->nodes.items[k].output_dtypes[0]), .rank = rank_of(w, source, k)};
    known = value.dtype != DTYPE_VARIANT && value.rank >= 0 && value.rank <= LIMIT_RANK;
    for (int d = 0; known && d < value.rank; d++)
      value.dims[d] = op_new_symbol(w.c);
    if (known)
      dataset_function_add(w.c, f, value, NULL);
  }
  instance_deinit(&body);
  return known;
}

/* Of result i of a function: one that an iterator calls by itself, or of a dataset within a function. */
static int rank_of_result(const struct walk *w, const struct node *dataset, const struct attr_func *func, uint32_t i) {
  const struct dataset_functions *all = op_datasets(w->c);
  for (uint32_t k = 0; all && k < all->list.count; k++)
    if (all->list.items[k].node == dataset)
      return dataset_function_rank(w->c, &all->list.items[k], i);
  struct dataset_function f = {.name = dataset->name, .node = dataset, .func = func};
  int rank = w->scope && add_elements(*w, dataset_maker(w->c, dataset, 0), &f) ? dataset_function_rank(w->c, &f, i) : -1;
  vec_free(&f.args);
  vec_free(&f.shapes);
  return rank;
}

/* What a function makes of an element, behind the state of a scan. */
static int rank_of_mapped(struct walk w, const struct node *dataset, const struct attr_func *func, uint32_t i) {
  const struct attr_value *list = node_attr(dataset, "Tstate");
  uint32_t states = list && list->kind == ATTR_LIST ? list->list.count : 0;
  int rank, argument = dataset_handed_result(w.c, dataset, func, states + i, &rank);
  w.depth++;
  if (argument < 0 && !w.is_boxed)
    rank = rank_of_result(&w, dataset, func, states + i);
  else if (argument >= 0 && (uint32_t)argument < states)
    rank = rank_of_input(w, dataset, 1 + (uint32_t)argument);
  else if (argument >= 0)
    rank = rank_of(w, dataset_maker(w.c, dataset, 0), (uint32_t)argument - states);
  return rank < 0 ? rank : rank + (strstr(dataset->op, "MapAndBatch") != NULL);
}

static int rank_of_zipped(struct walk w, const struct node *dataset, uint32_t i) {
  w.depth++;
  const struct node *part = dataset_zipped(w.c, dataset, &i);
  return rank_of(w, part, i);
}

/* Of elements that are those of the source, in batches or out of them. */
static int rank_of_passed(struct walk w, const struct node *dataset, uint32_t i) {
  w.depth++;
  bool batches = strstr(dataset->op, "Batch") != NULL;
  if (is_op(dataset, "WindowDataset") || (!w.is_boxed && !batches && !dataset_hands_on(dataset)))
    return -1;
  int rank = rank_of(w, dataset_handed(w.c, dataset), i);
  bool joins = batches && !strstr(dataset->op, "Unbatch") && !strstr(dataset->op, "Rebatch");
  return rank < 0 ? rank : rank + joins - is_op(dataset, "UnbatchDataset");
}

/* What the dataset says of a component, whatever comes before it. */
static int said_rank(const struct node *dataset, uint32_t i) {
  const struct attr_value *types, *shapes;
  if (dataset_gives_scalars(dataset))
    return 0;
  bool said = dataset_spec(dataset, &types, &shapes) && i < shapes->list.count && !shapes->list.items[i].shape.unknown_rank;
  return said ? shapes->list.items[i].shape.rank : -1;
}

static int rank_of(struct walk w, const struct node *dataset, uint32_t i) {
  uint32_t index;
  if (!dataset || w.depth >= DEPTH_MAX)
    return -1;
  const struct scope *s = scope_of(&w, dataset, &index);
  if (s)
    return rank_in_argument(w, s, index, i);
  int said = w.is_boxed ? -1 : said_rank(dataset, i);
  if (said >= 0)
    return said;
  if (is_op(dataset, "TensorDataset"))
    return rank_of_input(w, dataset, i);
  if (is_op(dataset, "TensorSliceDataset")) {
    int rank = rank_of_input(w, dataset, i);
    return rank > 0 ? rank - 1 : -1;
  }
  if (strstr(dataset->op, "DenseToSparseBatch"))
    return 1;
  if (is_op(dataset, "ReduceDataset")) /* its state is as it was first */
    return rank_of_input(w, dataset, i + 1);
  const struct attr_func *func = is_op(dataset, "ScanDataset") ? dataset_function_at(dataset, "f") : dataset_mapping(dataset);
  if (func)
    return rank_of_mapped(w, dataset, func, i);
  if (gives_datasets(dataset))
    return rank_in_function(w, dataset, gives_datasets(dataset), i);
  if (is_op(dataset, "ZipDataset"))
    return rank_of_zipped(w, dataset, i);
  return dataset_function_at(dataset, "f") ? -1 : rank_of_passed(w, dataset, i);
}

int dataset_element_rank(struct op_call *c, const struct node *dataset, uint32_t i, bool is_boxed) {
  return rank_of((struct walk){.c = c, .is_boxed = is_boxed}, dataset, i);
}

int dataset_factory_rank(struct op_call *c, const struct node *iterator, uint32_t i) {
  const struct attr_func *func = dataset_function_at(iterator, "dataset_factory");
  return func ? rank_in_function((struct walk){.c = c, .is_boxed = true}, iterator, func, i) : -1;
}
