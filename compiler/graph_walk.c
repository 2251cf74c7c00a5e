/* graph_walk.c: with a stack and a mark for each node; loops of a graph are no trouble. */
#include "compiler/graph_walk.h"

#include <stdlib.h>
#include <string.h>

static bool *marks_create(const struct graph *graph) {
  bool *marks = vec_grow(NULL, &(uint32_t){0}, graph->nodes.count + 1, sizeof *marks);
  memset(marks, 0, graph->nodes.count + 1);
  return marks;
}

bool *ancestors_mark(const struct graph *graph, const uint32_t *seeds, uint32_t count) {
  bool *seen = marks_create(graph);
  VEC(uint32_t) stack = {0};
  for (uint32_t i = 0; i < count; i++)
    vec_push(&stack, seeds[i]);
  while (stack.count) {
    uint32_t at = stack.items[--stack.count];
    const struct node *node = &graph->nodes.items[at];
    if (seen[at])
      continue;
    seen[at] = true;
    for (uint32_t i = 0; i < node->input_count; i++)
      vec_push(&stack, node->inputs[i].node);
    for (uint32_t i = 0; i < node->control_count; i++)
      vec_push(&stack, node->controls[i]);
  }
  vec_free(&stack);
  return seen;
}

static uint32_t source_count(const struct node *node) { return node->input_count + node->control_count; }
static uint32_t source_of(const struct node *node, uint32_t i) {
  return i < node->input_count ? node->inputs[i].node : node->controls[i - node->input_count];
}

/* Users of node n: items[first[n]] .. items[first[n + 1] - 1]. */
struct users {
  uint32_t *first, *items;
};

static struct users users_find(const struct graph *graph) {
  uint32_t count = graph->nodes.count, total = 0;
  struct users users = {.first = calloc((size_t)count + 2, sizeof *users.first)};
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < source_count(&graph->nodes.items[i]); k++, total++)
      users.first[source_of(&graph->nodes.items[i], k) + 2]++;
  for (uint32_t i = 2; i < count + 2; i++)
    users.first[i] += users.first[i - 1];
  users.items = calloc((size_t)total + 1, sizeof *users.items);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < source_count(&graph->nodes.items[i]); k++)
      users.items[users.first[source_of(&graph->nodes.items[i], k) + 1]++] = i;
  return users;
}

bool *descendants_mark(const struct graph *graph, const bool *starts) {
  bool *seen = marks_create(graph);
  struct users users = users_find(graph);
  VEC(uint32_t) stack = {0};
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    if (starts[i])
      vec_push(&stack, i);
  while (stack.count) {
    uint32_t at = stack.items[--stack.count];
    if (seen[at])
      continue;
    seen[at] = true;
    for (uint32_t i = users.first[at]; i < users.first[at + 1]; i++)
      vec_push(&stack, users.items[i]);
  }
  vec_free(&stack);
  free(users.first);
  free(users.items);
  return seen;
}

#define DEPTH_MAX 64 /* of loops in each other; a circle through Enter alone has no depth */

static bool is_op(const struct node *node, const char *op) {
  return strcmp(node->op, op) == 0 || (strncmp(node->op, "Ref", 3) == 0 && strcmp(node->op + 3, op) == 0);
}
static uint8_t depth_behind(const struct node *node, uint8_t depth) {
  if (is_op(node, "Enter"))
    return depth < DEPTH_MAX ? depth + 1 : depth;
  return is_op(node, "Exit") && depth ? depth - 1 : depth;
}

bool *loops_mark(const struct graph *graph) {
  bool *inside = marks_create(graph);
  struct users users = users_find(graph);
  uint8_t *depths = calloc((size_t)graph->nodes.count + 1, 1);
  VEC(uint32_t) stack = {0};
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    if (is_op(&graph->nodes.items[i], "Enter"))
      vec_push(&stack, i);
  while (stack.count) {
    uint32_t at = stack.items[--stack.count];
    uint8_t depth = depth_behind(&graph->nodes.items[at], depths[at]);
    for (uint32_t i = users.first[at]; i < users.first[at + 1]; i++)
      if (depths[users.items[i]] < depth) {
        depths[users.items[i]] = depth;
        vec_push(&stack, users.items[i]);
      }
  }
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    inside[i] = depth_behind(&graph->nodes.items[i], depths[i]) > 0;
  vec_free(&stack);
  free(depths);
  free(users.first);
  free(users.items);
  return inside;
}
