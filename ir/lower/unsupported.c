/* unsupported.c: a walk over nodes and the bodies of the functions that they call; each function is looked at once. */
#include "ir/lower/unsupported.h"

#include <stdlib.h>
#include <string.h>

#include "ir/graph/function.h"
#include "ir/lower/lower.h"

/* Whether an op's name fits a pattern, in which each `*` stands for any letters. */
static bool fits(const char *pattern, size_t length, const char *op) {
  if (length == 0)
    return *op == 0;
  if (*pattern != '*')
    return *pattern == *op && fits(pattern + 1, length - 1, op + 1);
  for (;; op++) {
    if (fits(pattern + 1, length - 1, op))
      return true;
    if (!*op)
      return false;
  }
}

static bool is_among(const char *patterns, const char *op) {
  for (const char *at = patterns; *at; at += strspn(at, " ")) {
    size_t length = strcspn(at, " ");
    if (fits(at, length, op))
      return true;
    at += length;
  }
  return false;
}

static const struct left_out left_out[] = {
#define LEFT_OUT(reason, patterns) {reason, patterns},
#include "ir/left_out.def"
#undef LEFT_OUT
};

const struct left_out *left_out_list(uint32_t *count) {
  *count = sizeof left_out / sizeof *left_out;
  return left_out;
}

const struct left_out *left_out_find(const char *op) {
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
    if (is_among(left_out[i].patterns, op))
      return &left_out[i];
  return NULL;
}

const char *unsupported_reason(const char *op) {
  const struct left_out *found = left_out_find(op);
  return found ? found->reason : NULL;
}

struct search {
  const struct graph *graph;
  struct arena *arena;
  struct unsupported *out;
  struct map ops;     /* op -> number in out */
  bool *seen;         /* per function */
  VEC(uint32_t) open; /* functions to look at */
};

static void want_function(struct search *s, const char *name) {
  uint32_t at;
  if (!map_find(&s->graph->function_names, name, &at) || s->seen[at])
    return;
  s->seen[at] = true;
  vec_push(&s->open, at);
}

static void want_functions(struct search *s, const struct attr_value *v) {
  if (v->kind == ATTR_FUNC)
    want_function(s, v->func->name);
  for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.count; i++)
    want_functions(s, &v->list.items[i]);
}

static void look_at(struct search *s, const char *op, const char *name, const struct attr *attrs, uint32_t attr_count) {
  uint32_t at;
  want_function(s, op);
  for (uint32_t i = 0; i < attr_count; i++)
    want_functions(s, &attrs[i].value);
  if (op_row_find(op) || function_find(s->graph, op))
    return;
  if (!map_find(&s->ops, op, &at)) {
    at = s->out->ops.count;
    map_insert(&s->ops, op, at);
    vec_push(&s->out->ops, (struct unsupported_op){.op = op, .reason = unsupported_reason(op)});
  }
  vec_push(&s->out->ops.items[at].nodes, name);
}

/* The node of a body that a source text ("node:out:0", "^node") names; NO_NODE for an argument. */
static uint32_t source_node(struct search *s, const struct map *names, const char *text) {
  uint32_t at;
  text += *text == '^';
  char *name = arena_strndup(s->arena, text, strcspn(text, ":"));
  return map_find(names, name, &at) ? at : NO_NODE;
}

/* The nodes of a body that its results and effects need. */
static void mark_body(struct search *s, const struct function *f, bool *needed) {
  const struct function_body *body = f->body;
  struct map names = {0};
  VEC(uint32_t) stack = {0};
  for (uint32_t n = 0; n < body->node_count; n++) {
    const struct op_def *def = registry_find(body->nodes[n].op);
    map_insert(&names, body->nodes[n].name, n);
    const struct function *callee = def ? NULL : function_find(s->graph, body->nodes[n].op);
    if (def ? def->is_stateful : callee && callee->is_stateful)
      vec_push(&stack, n);
  }
  for (uint32_t i = 0; i < f->ret_count; i++)
    vec_push(&stack, source_node(s, &names, body->ret_sources[i]));
  for (uint32_t i = 0; i < body->control_count; i++)
    vec_push(&stack, source_node(s, &names, body->control_sources[i]));
  while (stack.count) {
    uint32_t n = stack.items[--stack.count];
    if (n == NO_NODE || needed[n])
      continue;
    needed[n] = true;
    for (uint32_t i = 0; i < body->nodes[n].input_count; i++)
      vec_push(&stack, source_node(s, &names, body->nodes[n].inputs[i]));
  }
  vec_free(&stack);
  map_deinit(&names);
}

static void look_into(struct search *s, const struct function *f) {
  const struct function_body *body = f->body;
  bool *needed = ARENA_ARRAY(s->arena, bool, body->node_count + 1);
  mark_body(s, f, needed);
  for (uint32_t n = 0; n < body->node_count; n++) {
    const struct function_node *node = &body->nodes[n];
    if (needed[n])
      look_at(s, node->op, arena_printf(s->arena, "%s/%s", f->name, node->name), node->attrs, node->attr_count);
  }
}

void unsupported_find(const struct graph *graph, const bool *needed, struct arena *arena, struct unsupported *out) {
  struct search s = {.graph = graph, .arena = arena, .out = out, .seen = calloc(graph->functions.count + 1, 1)};
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const struct node *n = &graph->nodes.items[i];
    if (needed[i])
      look_at(&s, n->op, n->name, n->attrs, n->attr_count);
  }
  while (s.open.count)
    look_into(&s, &graph->functions.items[s.open.items[--s.open.count]]);
  free(s.seen);
  vec_free(&s.open);
  map_deinit(&s.ops);
}

void unsupported_deinit(struct unsupported *list) {
  for (uint32_t i = 0; i < list->ops.count; i++)
    vec_free(&list->ops.items[i].nodes);
  vec_free(&list->ops);
}
