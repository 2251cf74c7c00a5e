/* master_graph.c: a client's GraphDef against the table of nodes of the build. */
#include "runtime/master/master_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/vec.h"
#include "runtime/master/master_attr.h"
#include "runtime/program/program.h"

#define NAMES_SHOWN 8
#define ADDED 2 /* in `known`: by this very message */

struct text {
  const char *data;
  size_t size;
};
struct input {
  struct text node;
  uint32_t port;
};
typedef VEC(struct input) input_list;

struct client_node {
  struct text name, op;
  input_list inputs, controls;
  VEC(struct wire) attrs;
};

static int text_compare(const char *a, const char *b, size_t size) { /* a: NUL-terminated */
  int order = strncmp(a, b, size);
  return order != 0 ? order : a[size] != 0;
}

uint32_t master_node_find(const struct master_config *config, const char *name, size_t size) {
  uint32_t low = 0, high = config->node_count;
  if (memchr(name, 0, size))
    return UINT32_MAX;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = text_compare(config->nodes[middle].name, name, size);
    if (order == 0)
      return middle;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return UINT32_MAX;
}

/* ---- one node ---- */

/* "name", "name:1", "^name" */
static void input_add(struct client_node *node, const struct wire_field *field) {
  struct text text = {(const char *)field->data, field->size};
  if (text.size > 0 && text.data[0] == '^') {
    vec_push(&node->controls, (struct input){{text.data + 1, text.size - 1}, UINT32_MAX});
    return;
  }
  uint32_t port = 0;
  size_t digits = 0;
  while (digits < text.size && digits < 9 && text.data[text.size - 1 - digits] >= '0' && text.data[text.size - 1 - digits] <= '9')
    digits++;
  if (digits > 0 && digits < text.size && text.data[text.size - 1 - digits] == ':') {
    for (size_t i = text.size - digits; i < text.size; i++)
      port = port * 10 + (uint32_t)(text.data[i] - '0');
    text.size -= digits + 1;
  }
  vec_push(&node->inputs, (struct input){text, port});
}

static bool node_read(struct wire wire, struct client_node *out) {
  struct wire_field field;
  out->name = out->op = (struct text){"", 0};
  out->inputs.count = out->controls.count = out->attrs.count = 0;
  while (wire_next(&wire, &field)) {
    if (field.type != WIRE_BYTES)
      continue;
    if (field.number == 1)
      out->name = (struct text){(const char *)field.data, field.size};
    else if (field.number == 2)
      out->op = (struct text){(const char *)field.data, field.size};
    else if (field.number == 3)
      input_add(out, &field);
    else if (field.number == 5)
      vec_push(&out->attrs, wire_inside(&field));
  }
  return !wire.is_bad && out->name.size > 0;
}

static int compare_inputs(const void *a, const void *b) {
  const struct input *x = a, *y = b;
  size_t common = x->node.size < y->node.size ? x->node.size : y->node.size;
  int order = memcmp(x->node.data, y->node.data, common);
  return order != 0 ? order : (x->node.size > y->node.size) - (x->node.size < y->node.size);
}

static uint64_t hash_list(uint64_t hash, const struct input *inputs, uint32_t count) {
  char *name = NULL;
  for (uint32_t i = 0; i < count; i++) {
    name = strndup(inputs[i].node.data, inputs[i].node.size);
    hash = program_hash_input(hash, name ? name : "", inputs[i].port);
    free(name);
  }
  return hash;
}

static uint64_t hash_inputs(struct client_node *node) {
  if (node->controls.count > 1)
    qsort(node->controls.items, node->controls.count, sizeof *node->controls.items, compare_inputs);
  return hash_list(hash_list(0, node->inputs.items, node->inputs.count), node->controls.items, node->controls.count);
}

/* ---- the graph ---- */

struct check {
  const struct master_config *config;
  uint8_t *known;
  uint32_t stranger_count;
  char strangers[1024];
};

static void stranger_add(struct check *check, const struct client_node *node, const char *why) {
  size_t used = strlen(check->strangers);
  if (check->stranger_count++ < NAMES_SHOWN)
    snprintf(check->strangers + used, sizeof check->strangers - used, "%s'%.*s' (%.*s%s)", used ? ", " : "",
             (int)(node->name.size < 200 ? node->name.size : 200), node->name.data, (int)(node->op.size < 60 ? node->op.size : 60),
             node->op.data, why);
}

static bool attrs_agree(const struct master_node *built, const struct client_node *node) {
  for (uint32_t i = 0; i < node->attrs.count; i++)
    if (!master_attr_agrees(built, node->attrs.items[i]))
      return false;
  return true;
}

static status node_check(struct check *check, struct client_node *node) {
  uint32_t number = master_node_find(check->config, node->name.data, node->name.size);
  if (number == UINT32_MAX) {
    stranger_add(check, node, "");
    return OK;
  }
  const struct master_node *built = &check->config->nodes[number];
  if (check->known[number] == ADDED)
    return fail(INVALID_ARGUMENT, "node '%s' occurs twice in the graph", built->name);
  if (check->known[number])
    return fail(INVALID_ARGUMENT,
                "GraphDef argument to Extend includes node '%s', which was created by a previous call to "
                "Create or Extend in this session.",
                built->name);
  check->known[number] = ADDED;
  if (text_compare(built->op, node->op.data, node->op.size) != 0)
    stranger_add(check, node, ", of another op when built");
  else if (built->input_hash != hash_inputs(node))
    stranger_add(check, node, ", with other inputs when built");
  else if (!attrs_agree(built, node))
    stranger_add(check, node, ", with other attributes when built");
  return OK;
}

static status nodes_check(struct check *check, struct wire graph_def) {
  struct client_node node = {0};
  struct wire_field field;
  status code = OK;
  while (code == OK && wire_next(&graph_def, &field)) {
    if (field.number != 1 || field.type != WIRE_BYTES)
      continue;
    code = node_read(wire_inside(&field), &node) ? node_check(check, &node) : fail(INVALID_ARGUMENT, "a GraphDef that is none");
  }
  vec_free(&node.inputs);
  vec_free(&node.controls);
  vec_free(&node.attrs);
  if (code == OK && graph_def.is_bad)
    code = fail(INVALID_ARGUMENT, "a GraphDef that is none");
  if (code == OK && check->stranger_count > 0)
    code = fail(FAILED_PRECONDITION,
                "the client's graph has %u nodes that the compiled graph has not: %s%s. Nothing can be added to a "
                "compiled program; build it from this graph",
                check->stranger_count, check->strangers, check->stranger_count > NAMES_SHOWN ? ", ..." : "");
  return code;
}

status master_graph_add(const struct master_config *config, struct wire graph_def, uint8_t *known) {
  struct check check = {.config = config, .known = known};
  status code = nodes_check(&check, graph_def);
  for (uint32_t i = 0; i < config->node_count; i++)
    if (known[i] == ADDED)
      known[i] = code == OK;
  return code;
}
