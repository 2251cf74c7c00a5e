/* loop_frames.c: finds the loops of TensorFlow 1 in a graph.
 *
 * A node's loop is the frame it runs in: Enter goes into one, Exit leaves it, everything else is where its inputs are. */
#include "ir/lower/loop_frames.h"
#include "ir/lower/lower_state.h"

#include <stdlib.h>
#include <string.h>

bool loop_is_op(const struct node *n, const char *name) {
  return strcmp(n->op, name) == 0 || (strncmp(n->op, "Ref", 3) == 0 && strcmp(n->op + 3, name) == 0);
}

static uint32_t depth_of(const struct loops *l, uint32_t loop) {
  uint32_t depth = 0;
  for (; loop; loop = l->items.items[loop].parent)
    depth++;
  return depth;
}

static uint32_t loop_named(struct loops *l, uint32_t parent, const char *name) {
  for (uint32_t i = 1; i < l->items.count; i++)
    if (l->items.items[i].parent == parent && strcmp(l->items.items[i].name, name) == 0)
      return i;
  vec_push(&l->items, (struct loop){.name = name, .parent = parent, .condition = NO_NODE});
  return l->items.count - 1;
}

static uint32_t deepest_input(const struct loops *l, const struct node *n, const bool *seen) {
  uint32_t best = 0;
  for (uint32_t i = 0; i < n->input_count + n->control_count; i++) {
    uint32_t from = i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count];
    uint32_t loop = l->of[from]; /* of an Exit: that which it leaves to */
    if (!seen[from])
      continue; /* a back edge */
    if (depth_of(l, loop) > depth_of(l, best))
      best = loop;
  }
  return best;
}

static void note_structure(struct loops *l, const struct graph *g, uint32_t id) {
  const struct node *n = &g->nodes.items[id];
  struct loop *loop = &l->items.items[l->of[id]];
  if (loop_is_op(n, "Enter"))
    vec_push(&loop->enters, id);
  if (loop_is_op(n, "LoopCond"))
    loop->condition = id;
  if (loop_is_op(n, "Merge"))
    for (uint32_t i = 0; i < n->input_count; i++)
      if (loop_is_op(&g->nodes.items[n->inputs[i].node], "NextIteration"))
        vec_push(&loop->merges, id);
}

/* Frames without a LoopCond and without loop variables are no loops: their nodes belong to the loop around. */
static void dissolve_plain(struct loops *l, struct arena *arena, const struct graph *g) {
  l->plain = ARENA_ARRAY(arena, bool, g->nodes.count + 1);
  for (uint32_t f = 1; f < l->items.count; f++) {
    struct loop *loop = &l->items.items[f];
    if (loop->condition != NO_NODE || loop->merges.count)
      continue;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
      if (l->of[i] == f) {
        l->plain[i] = loop_is_op(&g->nodes.items[i], "Enter") || loop_is_op(&g->nodes.items[i], "NextIteration");
        l->of[i] = loop->parent;
      }
    }
    for (uint32_t i = 0; i < loop->exits.count; i++)
      l->plain[loop->exits.items[i]] = true;
    for (uint32_t i = 1; i < l->items.count; i++)
      if (l->items.items[i].parent == f)
        l->items.items[i].parent = loop->parent;
  }
}

status loops_find(struct lower *lw, const struct graph *g, const uint32_t *order, struct loops **out) {
  bool any = false;
  for (uint32_t i = 0; i < g->nodes.count; i++)
    any = any || loop_is_op(&g->nodes.items[i], "Enter");
  *out = NULL;
  if (!any)
    return OK;
  struct loops *l = ARENA_NEW(lw->arena, struct loops);
  vec_push(&l->items, (struct loop){.name = ""});
  l->of = ARENA_ARRAY(lw->arena, uint32_t, g->nodes.count + 1);
  bool *seen = calloc(g->nodes.count + 1, 1);
  for (uint32_t i = 0; i < g->nodes.count; i++) {
    uint32_t id = order[i];
    const struct node *n = &g->nodes.items[id];
    uint32_t inner = deepest_input(l, n, seen);
    seen[id] = true;
    if (loop_is_op(n, "Enter")) {
      const char *name = node_attr_string(n, "frame_name", "");
      l->of[id] = loop_named(l, inner, name);
    } else if (loop_is_op(n, "Exit")) {
      vec_push(&l->items.items[inner].exits, id);
      l->of[id] = l->items.items[inner].parent;
    } else {
      l->of[id] = inner;
    }
    note_structure(l, g, id);
  }
  free(seen);
  l->frame = arena_copy(lw->arena, l->of, sizeof *l->of * (g->nodes.count + 1));
  dissolve_plain(l, lw->arena, g);
  *out = l;
  return OK;
}

status loops_check_inputs(const struct loops *l, const struct graph *g, uint32_t id) {
  const struct node *n = &g->nodes.items[id];
  uint32_t first = 0, frame = 0;
  for (uint32_t i = 0; i < n->input_count + n->control_count; i++) {
    uint32_t from = i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count];
    if (i && l->frame[from] != frame)
      return fail(INVALID_ARGUMENT,
                  "{{node %s}} has inputs from different frames. The input {{node %s}} is in frame '%s'. The input "
                  "{{node %s}} is in frame '%s'.",
                  n->name, g->nodes.items[first].name, l->items.items[frame].name, g->nodes.items[from].name,
                  l->items.items[l->frame[from]].name);
    first = i ? first : from;
    frame = l->frame[first];
  }
  return OK;
}

uint32_t loop_child_of(const struct loops *l, uint32_t scope, uint32_t loop) {
  while (loop && l->items.items[loop].parent != scope)
    loop = l->items.items[loop].parent;
  return loop;
}
bool loop_is_within(const struct loops *l, uint32_t loop, uint32_t scope) {
  for (; loop != scope && loop; loop = l->items.items[loop].parent)
    ;
  return loop == scope;
}
