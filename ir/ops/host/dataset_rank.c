/* dataset_rank.c: the rank of boxed tensors among the components of a dataset's elements, found by walking back to what boxes them: also
 * into functions that give datasets (of flat_map, interleave, group_by_window), whose arguments are elements of the dataset around them,
 * or datasets of these. */
#include <string.h>

#include "ir/graph/function.h"
#include "ir/ops/host/dataset_maker.h"

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

/* Of a tensor that a node boxes, or that an argument is. */
static int rank_of_box(struct walk w, const struct node *maker) {
  uint32_t index;
  const struct scope *s = maker ? scope_of(&w, maker, &index) : NULL;
  if (!s)
    return maker ? dataset_boxed_rank(maker) : -1;
  const struct node *source = leave(&w, s);
  return rank_of(w, source, index);
}

/* ---- datasets ---- */

/* Of the elements of the dataset that a function gives. */
static int rank_in_function(struct walk w, const struct node *dataset, const struct attr_func *func, uint32_t i) {
  struct op_call *c = w.c;
  const struct function *function = function_find(op_graph(c), func->name);
  struct instance body;
  if (!function || function_instantiate(op_graph(c), function, func->attrs, func->attr_count, dataset->name, op_arena(c), &body) != OK)
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

/* What a function makes of an element, behind the state of a scan. */
static int rank_of_mapped(struct walk w, const struct node *dataset, const struct attr_func *func, uint32_t i) {
  const struct attr_value *list = node_attr(dataset, "Tstate");
  uint32_t states = list && list->kind == ATTR_LIST ? list->list.count : 0;
  int rank, argument = dataset_handed_result(w.c, dataset, func, states + i, &rank);
  w.depth++;
  if (argument >= 0 && (uint32_t)argument < states)
    rank = rank_of_box(w, dataset_maker(w.c, dataset, 1 + (uint32_t)argument));
  else if (argument >= 0)
    rank = rank_of(w, dataset_maker(w.c, dataset, 0), (uint32_t)argument - states);
  return rank < 0 ? -1 : rank + (strstr(dataset->op, "MapAndBatch") != NULL);
}

static int rank_of_zipped(struct walk w, const struct node *dataset, uint32_t i) {
  w.depth++;
  const struct node *part = dataset_zipped(w.c, dataset, &i);
  return rank_of(w, part, i);
}

/* Of elements that are those of the source, in batches or out of them. */
static int rank_of_passed(struct walk w, const struct node *dataset, uint32_t i) {
  w.depth++;
  int rank = rank_of(w, dataset_maker(w.c, dataset, 0), i);
  bool joins = strstr(dataset->op, "Batch") && !strstr(dataset->op, "Unbatch") && !strstr(dataset->op, "Rebatch");
  return rank < 0 || is_op(dataset, "WindowDataset") ? -1 : rank + joins - is_op(dataset, "UnbatchDataset");
}

static int rank_of(struct walk w, const struct node *dataset, uint32_t i) {
  uint32_t index;
  if (!dataset || w.depth >= DEPTH_MAX)
    return -1;
  const struct scope *s = scope_of(&w, dataset, &index);
  if (s)
    return rank_in_argument(w, s, index, i);
  if (is_op(dataset, "TensorDataset"))
    return rank_of_box(w, dataset_maker(w.c, dataset, i));
  if (is_op(dataset, "TensorSliceDataset")) {
    int rank = rank_of_box(w, dataset_maker(w.c, dataset, i));
    return rank > 0 ? rank - 1 : -1;
  }
  if (strstr(dataset->op, "DenseToSparseBatch"))
    return 1;
  if (is_op(dataset, "ReduceDataset")) /* its state is as it was first */
    return rank_of_box(w, dataset_maker(w.c, dataset, i + 1));
  const struct attr_func *func = is_op(dataset, "ScanDataset") ? dataset_function_at(dataset, "f") : dataset_mapping(dataset);
  if (func)
    return rank_of_mapped(w, dataset, func, i);
  if (gives_datasets(dataset))
    return rank_in_function(w, dataset, gives_datasets(dataset), i);
  if (is_op(dataset, "ZipDataset"))
    return rank_of_zipped(w, dataset, i);
  return dataset_function_at(dataset, "f") ? -1 : rank_of_passed(w, dataset, i);
}

int dataset_element_rank(struct op_call *c, const struct node *dataset, uint32_t i) { return rank_of((struct walk){.c = c}, dataset, i); }

int dataset_factory_rank(struct op_call *c, const struct node *iterator, uint32_t i) {
  const struct attr_func *func = dataset_function_at(iterator, "dataset_factory");
  return func ? rank_in_function((struct walk){.c = c}, iterator, func, i) : -1;
}
