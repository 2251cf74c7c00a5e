/* graph.c: finding things in a graph, and its topological order. */
#include "ir/graph/graph.h"

#include <stdlib.h>
#include <string.h>

const struct attr_value *attr_find(const struct attr *attrs, uint32_t count, const char *name) {
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t mid = (low + high) / 2;
    int c = strcmp(attrs[mid].name, name);
    if (c == 0)
      return &attrs[mid].value;
    if (c < 0)
      low = mid + 1;
    else
      high = mid;
  }
  return NULL;
}

struct attr attr_of_types(struct arena *arena, const char *name, const uint8_t *dtypes, uint32_t count) {
  struct attr_value *items = ARENA_ARRAY(arena, struct attr_value, count + 1);
  for (uint32_t i = 0; i < count; i++)
    items[i] = (struct attr_value){.kind = ATTR_TYPE, .i = dtypes[i]};
  struct attr attr = {.name = name, .value = {.kind = ATTR_LIST}};
  attr.value.list.items = items;
  attr.value.list.count = count;
  return attr;
}

const char *graph_place(const struct graph *graph, const char *node, const char *function) {
  uint32_t at;
  return graph->places.count && map_find(&graph->place_names, arena_printf(graph->arena, "%s@%s", node, function), &at)
         ? graph->places.items[at]
         : NULL;
}

uint32_t graph_find(const struct graph *graph, const char *name) {
  uint32_t at;
  return map_find(&graph->names, name, &at) ? at : NO_NODE;
}

status graph_find_output(const struct graph *graph, const char *tensor, struct edge *out) {
  const char *colon = strrchr(tensor, ':');
  size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
  bool has_port = digits && digits < 10 && !colon[1 + digits];
  unsigned long port = has_port ? strtoul(colon + 1, NULL, 10) : 0;
  char *name = strndup(tensor, has_port ? (size_t)(colon - tensor) : strlen(tensor));
  uint32_t node = graph_find(graph, name);
  free(name);
  if (node == NO_NODE)
    return fail(NOT_FOUND, "the graph has no tensor '%s'", tensor);
  if (port >= graph->nodes.items[node].output_count && graph->nodes.items[node].def)
    return fail(NOT_FOUND, "the graph has no tensor '%s': '%s' (%s) has %u outputs", tensor, graph->nodes.items[node].name,
                graph->nodes.items[node].op, graph->nodes.items[node].output_count);
  *out = (struct edge){node, (uint32_t)port};
  return OK;
}

/* Whether an edge closes a loop of TensorFlow 1's control flow. */
static bool is_back_edge(const struct graph *g, const struct node *to, uint32_t from) {
  return (strcmp(to->op, "Merge") == 0 || strcmp(to->op, "RefMerge") == 0) &&
         (strcmp(g->nodes.items[from].op, "NextIteration") == 0 || strcmp(g->nodes.items[from].op, "RefNextIteration") == 0);
}

/* Depth-first, iteratively; nodes come out in the order of the file where edges leave it open. */
status graph_order(const struct graph *g, uint32_t *order) {
  struct visit {
    uint32_t node, next;
  };
  VEC(struct visit) stack = {0};
  uint8_t *state = calloc(g->nodes.count + 1, 1); /* 0 new, 1 open, 2 done */
  uint32_t done = 0;
  status result = OK;
  for (uint32_t root = 0; root < g->nodes.count && result == OK; root++) {
    if (state[root])
      continue;
    vec_push(&stack, (struct visit){root, 0});
    state[root] = 1;
    while (stack.count && result == OK) {
      struct visit *top = &vec_last(&stack);
      const struct node *n = &g->nodes.items[top->node];
      if (top->next == n->input_count + n->control_count) {
        state[top->node] = 2;
        order[done++] = top->node;
        stack.count--;
        continue;
      }
      uint32_t i = top->next++;
      uint32_t from = i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count];
      if (state[from] == 2 || (i < n->input_count && is_back_edge(g, n, from)))
        continue;
      if (state[from] == 1)
        result = fail(INVALID_ARGUMENT, "%s (%s): is on a cycle through '%s'", n->name, n->op, g->nodes.items[from].name);
      state[from] = 1;
      vec_push(&stack, (struct visit){from, 0});
    }
  }
  vec_free(&stack);
  free(state);
  return result;
}

/* Frees what is not in the arena. An instance of a function (ir/graph/function.h) shares its library: not for those. */
static void graph_deinit(struct graph *graph) {
  map_deinit(&graph->names);
  map_deinit(&graph->function_names);
  map_deinit(&graph->place_names);
  map_deinit(&graph->gradients);
  vec_free(&graph->gradient_names);
  vec_free(&graph->places);
  vec_free(&graph->nodes);
  vec_free(&graph->functions);
}

void model_deinit(struct model *model) {
  if (model->graph)
    graph_deinit(model->graph);
  for (uint32_t i = 0; i < model->signatures.count; i++) {
    vec_free(&model->signatures.items[i].inputs);
    vec_free(&model->signatures.items[i].outputs);
  }
  vec_free(&model->signatures);
  for (uint32_t i = 0; i < model->queue_runners.count; i++)
    vec_free(&model->queue_runners.items[i].enqueue_ops);
  vec_free(&model->queue_runners);
  vec_free(&model->savers);
  vec_free(&model->assets);
  vec_free(&model->objects);
  vec_free(&model->captures);
  vec_free(&model->methods);
  vec_free(&model->collections);
}
