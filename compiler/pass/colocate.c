/* colocate.c: union-find over the graph's nodes. Edges come first and in order, so that a variable's device is known when
 * its users join; a user's own wish gives way to it. `_class` comes second, and cannot overrule. */
#include "compiler/pass/colocate.h"

#include <stdio.h>
#include <string.h>

#include "ir/graph/registry.h"

struct colocator {
  struct build *build;
  struct graph *graph;
  struct colocation *out;
};

uint32_t colocation_root(const struct colocation *colocation, uint32_t node) {
  uint32_t *parent = colocation->parent;
  while (parent[node] != node) {
    parent[node] = parent[parent[node]];
    node = parent[node];
  }
  return node;
}

static bool is_ref_or_resource(int dtype) { return dtype > DTYPE_REF || dtype == DTYPE_RESOURCE; }

/* Variables, queues, tables: what makes the thing that others refer to. */
static bool is_resource_maker(const struct node *node) {
  return node->input_count == 0 && node->output_count == 1 && is_ref_or_resource(node->output_dtypes[0]);
}

static status members_init(struct colocator *c) {
  struct arena *arena = &c->build->arena;
  uint32_t count = c->graph->nodes.count;
  c->out->parent = ARENA_ARRAY(arena, uint32_t, count + 1);
  c->out->groups = ARENA_ARRAY(arena, struct colocation_group, count + 1);
  c->out->own = ARENA_ARRAY(arena, struct device_spec, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    const struct node *node = &c->graph->nodes.items[i];
    if (!device_parse(arena, node->device, &c->out->own[i]))
      return fail(INVALID_ARGUMENT, "Malformed device specification '%s' in node: %s (%s)", node->device, node->name, node->op);
    c->out->parent[i] = i;
    c->out->groups[i].requested = c->out->own[i];
    c->out->groups[i].resource = is_resource_maker(node) ? c->out->own[i] : DEVICE_SPEC_OPEN;
  }
  return OK;
}

/* Makes the groups of two nodes one. */
static status groups_join(struct colocator *c, uint32_t x, uint32_t y) {
  struct arena *arena = &c->build->arena;
  uint32_t a = colocation_root(c->out, x), b = colocation_root(c->out, y);
  bool soft = c->build->options.soft_placement;
  if (a == b)
    return OK;
  struct colocation_group joined = c->out->groups[a];
  const struct colocation_group *other = &c->out->groups[b];
  status result = device_merge(arena, &other->requested, soft, &joined.requested);
  if (result == OK)
    result = device_merge(arena, &other->resource, soft, &joined.resource);
  if (result != OK)
    return status_prefix(result, "Cannot colocate nodes {{colocation_node %s}} and {{colocation_node %s}}: ", c->graph->nodes.items[x].name,
                         c->graph->nodes.items[y].name);
  uint32_t root = a < b ? a : b; /* the earliest node: errors name it, and the choice does not depend on the order */
  c->out->parent[a] = c->out->parent[b] = root;
  c->out->groups[root] = joined;
  return OK;
}

/* What a reference is made of binds: the user of a reference goes there, whatever it asks for itself. */
static status user_yields(struct colocator *c, uint32_t src, uint32_t dst) {
  struct arena *arena = &c->build->arena;
  const struct colocation_group *from = &c->out->groups[colocation_root(c->out, src)];
  struct colocation_group *to = &c->out->groups[colocation_root(c->out, dst)];
  const char *src_name = c->graph->nodes.items[src].name, *dst_name = c->graph->nodes.items[dst].name;
  if (!device_compatible(&from->resource, &to->resource))
    return fail(INVALID_ARGUMENT,
                "Cannot place the graph because a reference or resource edge connects colocation groups with "
                "incompatible resource devices: %s vs %s. The edge src node is %s , and the dst node is %s",
                device_text(arena, &from->resource), device_text(arena, &to->resource), src_name, dst_name);
  if (device_compatible(&from->requested, &to->requested))
    return OK;
  if (c->build->options.log_device_placement)
    printf("Ignoring device specification %s for node '%s' because the input edge from '%s' is a reference connection "
           "and already has a device field set to %s\n",
           device_text(arena, &to->requested), dst_name, src_name, device_text(arena, &from->requested));
  to->requested = from->requested;
  device_override(&to->requested, &to->resource);
  return OK;
}

/* Ops whose bodies place the uses of their handles themselves. */
static bool is_exempt(const struct node *node) {
  static const char *const ops[] = {"PartitionedCall", "StatefulPartitionedCall", "IdentityN"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (!strcmp(node->op, ops[i]))
      return true;
  return !node->def || strstr(node->op, "Dataset");
}

static status edges_join(struct colocator *c) {
  for (uint32_t dst = 0; dst < c->graph->nodes.count; dst++) {
    const struct node *node = &c->graph->nodes.items[dst];
    for (uint32_t i = 0; i < node->input_count; i++) {
      if (!is_ref_or_resource(node->input_dtypes[i]) || is_exempt(node))
        continue;
      uint32_t src = node->inputs[i].node;
      TRY(user_yields(c, src, dst));
      status result = groups_join(c, src, dst);
      if (result != OK)
        return status_prefix(result, "Nodes were connected by a reference or resource connection (requiring them to be "
                                     "on the same device), but the two nodes were assigned two different devices: ");
    }
  }
  return OK;
}

static status class_join(struct colocator *c, struct map *leaders, uint32_t node, const char *group) {
  uint32_t leader;
  if (!map_find(leaders, group, &leader)) {
    map_insert(leaders, group, node);
    return OK;
  }
  status result = groups_join(c, node, leader);
  return c->build->options.soft_placement ? OK : result;
}

static status node_classes_join(struct colocator *c, struct map *leaders, uint32_t at) {
  const struct node *node = &c->graph->nodes.items[at];
  const struct attr_value *classes = attr_find(node->attrs, node->attr_count, "_class");
  TRY(class_join(c, leaders, at, node->name));
  for (uint32_t i = 0; classes && classes->kind == ATTR_LIST && i < classes->list.count; i++) {
    const struct attr_value *item = &classes->list.items[i];
    if (item->kind == ATTR_STRING && !strncmp(item->s.data, "loc:@", 5))
      TRY(class_join(c, leaders, at, item->s.data + 5));
  }
  return OK;
}

status colocation_make(struct build *build, struct colocation *out) {
  struct colocator c = {.build = build, .graph = build->model.graph, .out = out};
  TRY(members_init(&c));
  TRY(edges_join(&c));
  struct map leaders = {0};
  status result = OK;
  for (uint32_t i = 0; i < c.graph->nodes.count && result == OK; i++)
    result = node_classes_join(&c, &leaders, i);
  map_deinit(&leaders);
  return result;
}
