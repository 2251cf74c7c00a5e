/* token_round.c: what is computed from taken gradients and ends in a queue; from there the rest is found. */
#include "compiler/token_round.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/graph_walk.h"
#include "ir/ops/token_attrs.h"
#include "ir/graph/registry.h"

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }
static bool is_take(const struct node *node) { return strstr(node->op, "AccumulatorTakeGradient") != NULL; }
static bool is_enqueue(const struct node *node) { return begins(node->op, "QueueEnqueue") && node->input_count > 1; }
static bool is_dequeue(const struct node *node) { return begins(node->op, "QueueDequeue") && node->input_count > 0; }
static bool is_assign(const struct node *node) {
  return (strcmp(node->op, "Assign") == 0 || strcmp(node->op, "AssignVariableOp") == 0) && node->input_count > 1;
}
bool token_round_sets_step(const struct node *node) { return strstr(node->op, "AccumulatorSetGlobalStep") != NULL; }

typedef bool (*node_test)(const struct node *node);

/* What depends on nodes of a kind, on any queue or on one. */
static bool *mark_behind(const struct graph *graph, node_test test, uint32_t queue) {
  bool *starts = vec_grow(NULL, &(uint32_t){0}, graph->nodes.count + 1, sizeof *starts);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    starts[i] = test(node) && (queue == NO_NODE || node->inputs[0].node == queue);
  }
  bool *marks = descendants_mark(graph, starts);
  free(starts);
  return marks;
}

/* The token becomes the local step. */
static uint32_t find_step(const struct graph *graph, uint32_t queue) {
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    const struct node *value = is_assign(node) ? &graph->nodes.items[node->inputs[1].node] : NULL;
    if (value && is_dequeue(value) && value->inputs[0].node == queue)
      return i;
  }
  return NO_NODE;
}

/* Another assignment to the local step than its token's and, by TensorFlow's naming, its first one. */
static uint32_t find_local_init(const struct graph *graph, uint32_t step) {
  uint32_t variable = graph->nodes.items[step].inputs[0].node;
  const char *name = graph->nodes.items[variable].name;
  size_t length = strlen(name);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    bool is_first = strncmp(node->name, name, length) == 0 && strcmp(node->name + length, "/Assign") == 0;
    if (i != step && is_assign(node) && node->inputs[0].node == variable && !is_first)
      return i;
  }
  return NO_NODE;
}

/* Tokens that come from no round: of several the last, which a hook has made. */
static uint32_t find_first_tokens(const struct graph *graph, uint32_t queue, const bool *taken, const bool *behind) {
  uint32_t found = NO_NODE;
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    if (is_enqueue(&graph->nodes.items[i]) && graph->nodes.items[i].inputs[0].node == queue && !taken[i] && !behind[i])
      found = i;
  return found;
}

/* What comes after the tokens, as the averages of variables do: the last of it that nothing else needs. */
static uint32_t find_end(const struct graph *graph, uint32_t enqueue, const bool *behind) {
  bool *starts = vec_grow(NULL, &(uint32_t){0}, graph->nodes.count + 1, sizeof *starts), *used;
  memset(starts, 0, graph->nodes.count + 1);
  starts[enqueue] = true;
  bool *after = descendants_mark(graph, starts);
  memset(used = starts, 0, graph->nodes.count + 1);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    for (uint32_t k = 0; k < node->input_count; k++)
      used[node->inputs[k].node] = true;
    for (uint32_t k = 0; k < node->control_count; k++)
      used[node->controls[k]] = true;
  }
  uint32_t end = enqueue;
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    if (after[i] && !used[i] && !behind[i])
      end = i;
  free(after);
  free(starts);
  return end;
}

static int64_t find_required(const struct graph *graph) {
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *node = &graph->nodes.items[i];
    const struct attr_value *value = is_take(node) ? node_attr(&graph->nodes.items[node->inputs[1].node], "value") : NULL;
    if (value && value->tensor && value->tensor->dtype == DTYPE_INT32 && value->tensor->count == 1)
      return *(const int32_t *)value->tensor->data;
  }
  return 0;
}

static bool round_of(const struct graph *graph, uint32_t enqueue, const bool *taken, struct token_round *out) {
  uint32_t queue = graph->nodes.items[enqueue].inputs[0].node, step = find_step(graph, queue);
  if (step == NO_NODE)
    return false;
  bool *behind = mark_behind(graph, is_dequeue, queue);
  *out = (struct token_round){.queue = queue, .enqueue = enqueue, .step = step, .required = find_required(graph)};
  out->local_init = find_local_init(graph, step);
  out->first_tokens = find_first_tokens(graph, queue, taken, behind);
  out->end = find_end(graph, enqueue, behind);
  free(behind);
  return true;
}

bool token_round_find(const struct graph *graph, struct arena *arena, struct token_round *out) {
  bool *taken = mark_behind(graph, is_take, NO_NODE), found = false;
  for (uint32_t i = 0; i < graph->nodes.count && !found; i++)
    found = taken[i] && is_enqueue(&graph->nodes.items[i]) && round_of(graph, i, taken, out);
  if (found) {
    bool *kept = ARENA_ARRAY(arena, bool, graph->nodes.count + 1);
    memcpy(kept, taken, graph->nodes.count);
    out->taken = kept;
  }
  free(taken);
  return found;
}

/* ---- marks ---- */

static void attr_add(struct graph *graph, struct node *node, const char *name, int64_t value) {
  struct attr *attrs = ARENA_ARRAY(graph->arena, struct attr, node->attr_count + 1);
  uint32_t at = 0;
  while (at < node->attr_count && strcmp(node->attrs[at].name, name) < 0)
    at++;
  if (at)
    memcpy(attrs, node->attrs, at * sizeof *attrs);
  attrs[at] = attr_of_int(name, value);
  if (at < node->attr_count)
    memcpy(attrs + at + 1, node->attrs + at, (node->attr_count - at) * sizeof *attrs);
  node->attrs = attrs;
  node->attr_count++;
}

int64_t token_round_share(const struct token_round *round, int64_t replicas) {
  bool may_repeat = round->first_tokens != NO_NODE && round->required > replicas;
  return may_repeat ? (round->required + replicas - 1) / replicas : 1;
}

void token_round_mark(struct graph *graph, const struct token_round *round, int64_t replicas) {
  int64_t share = token_round_share(round, replicas);
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    struct node *node = &graph->nodes.items[i];
    if (is_take(node))
      attr_add(graph, node, ATTR_GRADIENTS_EACH, share);
    else if (is_dequeue(node) && node->inputs[0].node == round->queue)
      attr_add(graph, node, ATTR_TOKENS_EACH, share);
  }
}
